"""Random programs, compiled over processes: they give what NumPy gives.

`divided.py COUNT SEED [TYPE]`: so many programs from this seed on, with parts of this type.
"""

import sys

import numpy as np

import mirabelle as mb
from mirabelle.backends.host import kernels

D = mb.DArray[getattr(mb, sys.argv[3] if len(sys.argv) > 3 else "HostArray")]
comm = mb.distributed.communicator()
SHAPE = (24, 20)


class Writer:
    """A function of arrays x, y, z of one shape, a row r and a column c, as text."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.numbers = 0

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def part(self, name, rows, columns):
        """A part of a whole array that has so many rows and columns, from anywhere."""
        i = self.rng.integers(0, SHAPE[0] - rows + 1)
        j = self.rng.integers(0, SHAPE[1] - columns + 1)
        if self.rng.random() < 0.1:
            last = i - 1 if i else None
            return (
                f"{name}[{i + rows - 1}:{last}:-1, {j}:{j + columns}]"
                if last is not None
                else (f"{name}[{rows - 1}::-1, {j}:{j + columns}]")
            )
        return f"{name}[{i}:{i + rows}, {j}:{j + columns}]"

    def term(self, rows, columns):
        kind = self.rng.random()
        if kind < 0.1:
            return f"{self.rng.normal():.3f}"
        if kind < 0.2 and columns == SHAPE[1]:
            return "r"
        if kind < 0.25 and rows == SHAPE[0]:
            return "c"
        if kind < 0.3 and self.numbers:
            return f"s{self.rng.integers(self.numbers)}"
        return self.part(self.pick("x", "y", "z"), rows, columns)

    def expression(self, rows, columns, depth=0):
        if depth > 2 or self.rng.random() < 0.2:
            return self.term(rows, columns)
        a, b = (self.expression(rows, columns, depth + 1) for _ in range(2))
        return self.pick(f"({a} + {b})", f"({a} - {b})", f"0.5 * ({a} * {b})", f"mb.sin({a} + {b})")

    def statement(self):
        kind = self.rng.random()
        rows, columns = SHAPE[0] - self.rng.integers(0, 4), SHAPE[1] - self.rng.integers(0, 4)
        if self.rng.random() < 0.1:
            rows = 1
        name = self.pick("x", "y", "z")
        if kind < 0.45:
            return f"{self.part(name, rows, columns)} = {self.expression(rows, columns)}"
        if kind < 0.6:
            return f"{name} = {self.expression(*SHAPE)} + 0 * x"
        if kind < 0.65:
            return f"{name} = {name}.copy()"
        if kind < 0.7:
            return f"{name} = mb.roll({name}, {self.rng.integers(-3, 4)}, {self.rng.integers(2)})"
        if kind < 0.75:
            return f"{name}[{self.rng.integers(SHAPE[0])}] = {self.expression(1, SHAPE[1])}"
        if kind < 0.8:
            return f"r = mb.mean({name} + x, axis=0)"
        if kind < 0.85:
            return f"c = mb.max({name} * y, axis=1, keepdims=True)"
        if kind < 0.87:
            return f"{name} = mb.tanh({name} @ (x.T @ y) / 100)"
        if kind < 0.9:
            return f"{name}[1:-1] = {name}[:-2] + {name}[2:]"
        total, scale = self.pick(("sum", " / 480"), ("max", ""), ("mean", ""))
        operand = f"{self.expression(rows, columns)} + {self.term(rows, columns)}"
        self.numbers += 1
        return f"s{self.numbers - 1} = mb.{total}({operand}){scale}"

    def program(self):
        lines = [self.statement() for _ in range(self.rng.integers(2, 9))]
        names = ["x", "y", "z", "r", "c", *[f"s{i}" for i in range(self.numbers)]]
        return "\n    ".join(["def f(mb, x, y, z, r, c):", *lines, f"return {', '.join(names)}"])


def layout(rng, shape):
    choices = [mb.distributed.Block(0), mb.distributed.Block(1), mb.distributed.Replicated(), None]
    if rng.random() < 0.15:
        choices = [mb.distributed.BlockCyclic(0, 3)]  # (which is run step by step)
    if comm.size > 1:
        cut = int(rng.integers(3, 9))
        rest = SHAPE[0] - cut
        edges = [cut, *[rest // (comm.size - 1)] * (comm.size - 2)]
        choices.append(mb.distributed.Ragged(0, (*edges, SHAPE[0] - sum(edges))))
    if comm.size == 4:
        choices.append(mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2)))
    return choices[rng.integers(len(choices))]


def main(count, seed):
    divided = 0
    for k in range(seed, seed + count):
        rng = np.random.default_rng(k)
        text = Writer(rng).program()
        scope = {}
        exec(compile(text, f"<program {k}>", "exec"), scope)
        shapes = [SHAPE, SHAPE, SHAPE, SHAPE[1:], (SHAPE[0], 1)]
        data = [rng.normal(size=shape) for shape in shapes]
        layouts = [layout(rng, shape) if len(shape) == 2 and 1 not in shape else None for shape in shapes]
        compiled = mb.compile(lambda *args, f=scope["f"]: f(mb, *args))

        def arrays(data=data, layouts=layouts):
            return [
                D(a.copy()) if w is None else D(a.copy(), layout=w) for a, w in zip(data, layouts, strict=True)
            ]

        arguments, plain = arrays(), [a.copy() for a in data]
        for _ in range(2):
            kernels.settle()  # (the second time, kernels are there)
            found = compiled(*arguments)
            wanted = scope["f"](np, *plain)
            if max(np.abs(y).max() for y in (*wanted, *plain)) > 100:
                break  # (sines of large numbers say little)
            for name, x, y in zip("xyzrcstuvwabd", found, wanted, strict=False):
                assert np.allclose(mb.to_numpy(x), y, rtol=1e-9, atol=1e-9, equal_nan=True), (
                    f"{k}: {name}\n{text}"
                )
            for x, y in zip(arguments, plain, strict=True):
                assert np.allclose(mb.to_numpy(x), y, rtol=1e-9, atol=1e-9, equal_nan=True), (
                    f"{k}: arguments\n{text}"
                )
        program = next(iter(compiled.programs.values()))
        for segment in program.runner.segments:
            known = getattr(segment, "known", None)
            divided += known is not None and any(found[0] is not None for found in known.values())
    # One write: those of other ranks come between two, where Python does not buffer.
    print(f"fine {divided}\n", end="")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
