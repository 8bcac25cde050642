"""Random programs of copies, views and writes in place, of arrays that may share memory: what is one array and
what is two. One source is run on NumPy and compiled."""

import numpy as np

import mirabelle as mb

# What is left of an axis where so much is cut off its ends.
SLICES = {0: [":"], 1: [":-1", "1:"], 2: [":-2", "1:-1", "2:"], 3: [":-3", "3:", "1:-2"]}
COPIES = ["{} * 1.0", "{}.copy()", "({}[:] + 0.0) * 1.0", "{}", "{}[::-1]", "{}[:, ::-1]", "-(-{})"]


class Writer:
    """A function of arrays u, v, w of one shape, as text."""

    def __init__(self, rng):
        self.rng, self.names, self.numbers = rng, ["u", "v", "w"], 0

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def name(self):
        return self.pick(*self.names)

    def index(self, less):
        return ", ".join([self.pick(*SLICES[n]) for n in less])

    def term(self, less):
        if self.rng.random() < 0.1:
            return self.pick("2.0", "0.0", "1.0", "-3.0")
        return f"{self.name()}[{self.index(less)}]{self.pick('', '', '', '[::-1]', '.copy()')}"

    def expression(self, less):
        a, b = self.term(less), self.term(less)
        forms = [f"{a} * 1.0", f"-(-{a})", f"xp.where(True, {a}, {b})", f"({a} + 0.0) * 1.0", a, a, a]
        others = [f"({a} {op} {b}) * {n}" for op in "+-*" for n in ("1.0", "0.5")]
        return self.pick(*forms, *others)

    def statement(self):
        kind, a, b, c = self.rng.random(), self.name(), self.name(), self.name()
        less = [int(self.pick(0, 1, 2, 2, 3)) for _ in range(2)]
        part = f"{a}[{self.index(less)}]"
        if kind < 0.4:
            return f"{part} = {self.expression(less)}"
        if kind < 0.5:
            return f"{part} {self.pick('+=', '-=', '*=')} {self.expression(less)}"
        if kind < 0.72:
            return f"{a} = {self.pick(*COPIES).format(b)}"
        if kind < 0.76:
            return f"{a}, {b} = {b}, {a}"
        if kind < 0.88:
            return self.pick(
                f"{a}[{self.pick('0', '-1', '2')}] = {b}[{self.pick('1', '-2')}]",
                f"{a} = xp.where({a} > 0, {b}, {c})",
                f"{a} = xp.roll({b}, {self.pick(1, -1, 2)}, axis={self.pick(0, 1)})",
                f"{a}[1:-1] = xp.mean({b}, axis=0)",
                f"{a}[...] = xp.cumsum({b}, axis={self.pick(0, 1)}) * 0.1",
                f"{a}[{b} > 1] = {self.pick('0.5', '-1.0')}",
                f"xp.add({b}, {c}, out={a})",
            )
        self.numbers += 1
        return f"s{self.numbers - 1} = xp.sum({part}); {b}[1:-1] = s{self.numbers - 1} * 0.01"

    def program(self):
        lines = [self.statement() for _ in range(self.rng.integers(2, 9))]
        if self.rng.random() < 0.3:
            k = self.rng.integers(len(lines))
            turns = [f"for _ in range({self.rng.integers(2, 4)}):", *[f"    {line}" for line in lines[k:]]]
            lines = [*lines[:k], *turns]
        numbers = [f"s{i}" for i in range(self.numbers)]
        zeros = [f"{s} = 0.0" for s in numbers]
        returned = f"return {', '.join(['u', 'v', 'w', *numbers])}"
        return "\n    ".join(["def f(xp, u, v, w):", *zeros, *lines, returned])


def arrays(rng, shape):
    """NumPy's arrays and ours: apart, one of them twice, or parts of one memory."""
    kind = rng.random()
    if kind < 0.15:
        memory = rng.normal(size=(shape[0] + 2, shape[1] + 1))
        ours = mb.HostArray(memory.copy())
        parts = [np.s_[:-2, :-1], np.s_[1:-1, 1:], np.s_[2:, :-1]]
        return [memory[p] for p in parts], [ours[p] for p in parts]
    plain = [rng.normal(size=shape) for _ in range(3)]
    ours = [mb.HostArray(x.copy()) for x in plain]
    if kind < 0.25:
        plain[1], ours[1] = plain[0], ours[0]
    return plain, ours


def difference(number, shapes, **options):
    """What a program gives that NumPy does not, in a text; "" if all is the same."""
    rng = np.random.default_rng([number, 99])
    text = Writer(rng).program()
    scope = {}
    exec(text, scope)
    compiled = mb.compile(lambda *x: scope["f"](mb, *x), **options)
    for shape in shapes:
        plain, ours = arrays(rng, shape)
        with np.errstate(all="ignore"):
            wanted = scope["f"](np, *plain)
        found = compiled(*ours)
        for x, y in zip((*found, *ours), (*wanted, *plain), strict=True):
            made = mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)
            large = np.abs(y).max() > 1e6  # (of what has grown so, sums in another order differ)
            if not (large or np.allclose(made, y, rtol=1e-9, atol=1e-9, equal_nan=True)):
                return f"program {number} on {shape}:\n{text}"
    return ""
