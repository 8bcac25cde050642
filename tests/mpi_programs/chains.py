"""Random chains of stencils, compiled over processes: what is computed on both sides of a cut is the same.

`chains.py COUNT SEED [verbose]`: so many programs from this seed on. Statements read slices across the cuts, of
arrays that other statements write in place, in part, or anew; arguments are new at each call or kept, and their
sizes change between calls. Results are NumPy's to the last bit.
"""

import itertools
import sys

import numpy as np

import mirabelle as mb
from mirabelle.backends.host import kernels

D = mb.DArray[mb.HostArray]
comm = mb.distributed.communicator()
# A slice of an axis and what is cut off at both of its ends.
SHIFTS = {0: [":"], 1: [":-1", "1:"], 2: [":-2", "1:-1", "2:"], 4: [":-4", "1:-3", "2:-2", "3:-1", "4:"]}


class Chain:
    """A function of arrays u, v, w of one shape, as text, by slices that fit all sizes."""

    def __init__(self, rng):
        self.rng = rng
        self.nd = int(rng.integers(1, 3))
        self.dtype = self.pick("f8", "f8", "f4", "c16", "i8")
        self.numbers = 0
        self.names = ["u", "v", "w"]

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def part(self, less, moved=True):
        index = [self.pick(*SHIFTS[n]) if moved else SHIFTS[n][len(SHIFTS[n]) // 2] for n in less]
        return f"[{', '.join(index)}]"

    def value(self, less):
        """What has the shape of the arrays less so much along each axis."""
        terms = [f"{self.pick(*self.names)}{self.part(less)}" for _ in range(self.rng.integers(1, 5))]
        total = " + ".join(terms)
        if self.dtype == "i8":
            return self.pick(f"({total}) % 1009", f"xp.minimum({total}, 77) ^ 5", f"({total}) // {len(terms)}")
        if self.rng.random() < 0.15:
            return f"xp.where({terms[0]}.real < 0, {total}, 0) * {1 / len(terms):.4f}"
        return f"({total}) * {1 / len(terms):.4f}"

    def statement(self):
        kind, name = self.rng.random(), self.pick(*self.names)
        less = [int(self.pick(0, 2, 2, 4)) for _ in range(self.nd)]
        if kind < 0.55:
            return [f"{name}{self.part(less, self.rng.random() < 0.3)} = {self.value(less)}"]
        if kind < 0.65:
            return [f"{name}{self.part(less, False)} += {self.value(less)}", f"{name} %= 3"][
                : 1 + (self.dtype in ("f8", "f4"))
            ]
        if kind < 0.75:
            return [f"{name} = {self.value([0] * self.nd)}"]
        if kind < 0.8:
            return [f"{name} = {name}.copy()", f"{name}{self.part(less, False)} = {self.value(less)}"]
        if kind < 0.85:
            other = self.pick(*self.names)
            return [f"{name}, {other} = {other}, {name}"]
        if kind < 0.9:
            return [f"{name}{self.part(less, False)} = {self.rng.integers(5)}"]
        self.numbers += 1
        found = f"xp.max(xp.abs({name}{self.part(less)}))"
        return [f"s{self.numbers - 1} = {found}", f"{name} = {name} - {name} * (s{self.numbers - 1} > 5)"]

    def program(self):
        lines = []
        for _ in range(self.rng.integers(1, 4)):
            block = [line for _ in range(self.rng.integers(1, 4)) for line in self.statement()]
            times = int(self.pick(1, 2, 5, 12))
            head, pad = ([f"for _ in range({times}):"], "    ") if times > 1 else ([], "")
            lines += [*head, *[pad + line for line in block]]
        names = [*self.names, *[f"s{i}" for i in range(self.numbers)]]
        return "\n    ".join(["def f(xp, u, v, w):", *lines, f"return {', '.join(names)}"])


class Parts(Chain):
    """The same of halos: each line is of what lies around this process's part."""

    def statement(self):
        a, b = self.pick(*self.names), self.pick(*self.names)
        n, kept = int(self.rng.integers(1, 4)), self.pick("0.5", "0.25")
        if self.rng.random() < 0.2:
            return [f"{a} = {a} + mb.sum({b}) * 0.0"]
        return [f"{a} = around({a}, {b}, {n}, {kept})"]


def around(u, v, n, kept):
    if not isinstance(u, mb.AbstractArray):
        return kept * u + 0.25 * (np.roll(v, n, 0) + np.roll(v, -n, 0))
    h = v.halo((n, *[0] * (v.ndim - 1)), wrap=True)
    return mb.DArray.from_local(kept * u.local + 0.25 * (h[: -2 * n] + h[2 * n :]), u.layout)


def layouts(rng, shape, plain):
    found = [None, mb.distributed.Block(0), mb.distributed.Block(0)]
    if plain:
        return [found[rng.integers(len(found))]] * 3
    if len(shape) == 2:
        found += [mb.distributed.Block(1), mb.distributed.Replicated()]
        if comm.size == 4:
            found.append(mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2)))
    if comm.size > 1:
        cuts = sorted(rng.integers(0, shape[0] + 1, comm.size - 1).tolist())
        edges = [0, *cuts, shape[0]]
        found.append(mb.distributed.Ragged(0, tuple(b - a for a, b in itertools.pairwise(edges))))
    if rng.random() < 0.7:
        return [found[rng.integers(len(found))]] * 3
    return [found[rng.integers(len(found))] for _ in range(3)]


def main(count, seed, verbose):
    computed = 0
    for k in range(seed, seed + count):
        rng = np.random.default_rng([k, 32])
        kind = Parts if k % 5 == 4 else Chain
        chain = kind(rng)
        if kind is Parts:
            chain.dtype = "f8"
        text = chain.program()
        if verbose and comm.rank == 0:
            print(k, chain.dtype, text, flush=True)
        scope = {"around": around, "mb": mb}
        exec(compile(text.replace("mb.sum", "xp.sum"), f"<chain {k}>", "exec"), scope)
        compiled = mb.compile(lambda *args, f=scope["f"]: f(mb, *args))
        kept = {}
        for turn in range(5):
            rows = [9, 23, 40][rng.integers(3)] if kind is Chain else 40
            shape = (rows, int(rng.integers(5, 8)))[: chain.nd]
            if kind is Parts:
                shape = (40, 6)[: chain.nd]
            how = layouts(rng, shape, kind is Parts)
            data = [(rng.normal(size=shape) * 3).astype(chain.dtype) for _ in range(3)]
            if shape in kept and rng.random() < 0.5:
                arguments, plain = kept[shape]
            else:
                arguments = [
                    D(a.copy()) if w is None else D(a.copy(), layout=w) for a, w in zip(data, how, strict=True)
                ]
                plain = [a.copy() for a in data]
                kept[shape] = arguments, plain
            if turn % 2:
                kernels.settle()
            with np.errstate(all="ignore"):
                wanted = scope["f"](np, *plain)
            found = compiled(*arguments)
            for n, x, y in zip("uvw" + "s" * 9, (*found, *arguments), (*wanted, *plain), strict=False):
                made = mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)
                assert np.array_equal(made, y, equal_nan=True), f"{k}, call {turn}: {n} {shape}\n{text}"
        for program in compiled.programs.values():
            for segment in getattr(program.runner, "segments", ()):
                for found in getattr(segment, "known", {}).values():
                    computed += found[0] is not None and found[0][0].computed
    print(f"fine {computed}\n", end="")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), len(sys.argv) > 3)
