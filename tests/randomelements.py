"""Random programs of single elements and small slices, eagerly: reads and writes that overlap, views of views,
names that keep old values, `x[i] += y`, indices of all kinds, and indices that are out of range.

    python -m tests.randomelements 2000 --seed 7

runs each on NumPy and on arrays of ours, statement by statement, and compares all names after each.
"""

import argparse
import random
import sys
import warnings

import numpy as np

import mirabelle as mb

DTYPES = ["f8", "f8", "f8", "f4", "i8", "i4", "u1", "u2", "i2", "?", "c16", "f2"]
N, M = 7, 5
ERRORS = (
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    ZeroDivisionError,
    KeyError,
    NameError,
    AttributeError,
)
OPERATORS = ["+", "-", "*", "/", "+", "-", "*", "%", "&", "|", "^", "<<", ">>"]
AUGMENTED = ["+", "-", "*", "/", "+", "-", "*", "&", "|", "^", "<<", ">>"]
POWERS = ["2", "2", "0.5", "1", "0", "2.0", "True", "np.int64(2)", "-1"]
NUMBERS = ["1", "2", "0.5", "3", "-1", "2.0", "np.float64(1.5)", "True", "300", "1j", "np.float32(2)"]
COMPARED = ["<", "<=", ">", ">=", "==", "!="]
FUNCTIONS = ["np.sqrt({})", "abs({})", "-{}", "np.exp({} * 0)", "np.maximum({}, {})", "np.square({})",
             "np.minimum({}, {})", "np.add({}, {})", "~{}", "np.sum({})", "np.dot({}, {})", "np.flip({})",
             "np.where({} > {}, {}, 0)", "np.max({})", "np.where({} > {}, {}, {})",
             "np.where({} < 1, {}, 2.0)",
             "np.min({})", "np.sum({} > {})", "({}).max()", "np.where({}, {}, {})",
             "np.multiply({}, {})", "max({}, {})", "min({}, {})",
             "float({})", "int({})", "bool({})", "np.outer({}, {})", "np.mean({})", "({}).sum()"]  # fmt: skip
# What differs knowingly, in words of either's error: an array of one element is none for NumPy's elements,
# infinity no integer, and a number that is complex no real one.
KNOWN = [
    "an array element",
    "only 0-dimensional arrays",
    "convert float",
    "division by zero",
    "not 'complex'",
    "Python integer",
    "A complex number does not fit",
]


class Elements:
    """One random program."""

    def __init__(self, seed: int) -> None:
        d = self.dice = random.Random(seed)
        rng = np.random.default_rng(seed)
        dtypes = [d.choice(DTYPES)] * 3 if d.random() < 0.6 else [d.choice(DTYPES) for _ in range(3)]

        def drawn(dtype, *shape):
            x = rng.integers(0, 9, shape) if np.dtype(dtype).kind in "iub" else rng.normal(size=shape) * 3
            return x.astype(dtype)

        self.arrays = {
            "a": drawn(dtypes[0], N),
            "b": drawn(dtypes[1], N, M),
            "c": drawn(dtypes[2], N, N),
            "k": rng.integers(0, M, N).astype(d.choice(["i8", "i4", "u1"])),
        }
        self.beside = drawn(d.choice([*dtypes, "f8"]), N, M)
        self.vectors, self.tables, self.numbers = ["a", "k"], ["b", "c"], []
        self.lines = [self.statement() for _ in range(d.randint(6, 22))]

    def index(self, n=M):
        d = self.dice
        way = d.random()
        if way < 0.6:
            return str(d.randint(-n, n - 1))
        if way < 0.72:
            return f"np.int64({d.randint(-n, n - 1)})"
        if way < 0.85:
            return f"k[{d.randint(0, N - 1)}]"
        if way < 0.92 and self.numbers:
            return d.choice(self.numbers)
        return d.choice([str(n), str(-n - 1), "1.5", "None", "...", "2**70", "True", "np.uint8(3)", "'x'"])

    def slice(self, n=M):
        d = self.dice
        if d.random() < 0.5:
            i = d.randint(1, n)
            return d.choice([f":{i}", f"{i - 1}:", f"{i - 1}:{i}", "1:-1", ":", "::-1", "::2", f"-{i}:"])
        return d.choice([":", "1:", ":3", ":3", "1:4", "2:2", f":{self.index(n)}"])

    def element(self):
        d = self.dice
        if d.random() < 0.45:
            return f"{d.choice(self.vectors)}[{self.index()}]"
        comma = ", " if d.random() < 0.9 else "]["
        return f"{d.choice(self.tables)}[{self.index()}{comma}{self.index()}]"

    def part(self):
        d = self.dice
        way = d.random()
        if way < 0.35:
            return f"{d.choice(self.vectors)}[{self.slice()}]"
        if way < 0.55:
            return f"{d.choice(self.tables)}[{self.index()}, {self.slice()}]"
        if way < 0.75:
            return f"{d.choice(self.tables)}[{self.slice()}, {self.index()}]"
        if way < 0.85:
            return f"{d.choice(self.tables)}[{self.slice()}, {self.slice()}]"
        return f"{d.choice(self.tables)}[{self.index()}]"

    def numpys(self):
        """What shows memory of NumPy's: an array beside ours, of doubles or of ours' dtype."""
        d = self.dice
        if d.random() < 0.5:
            return d.choice(["n", "n[:3]", "n[1:]", "n[::-1]", "n[2]", "m[1]", "m[:, 2]", "m[:3, 1]"])
        return d.choice([f"m[{self.slice()}, {self.slice()}]", f"m[:, {self.slice()}]", f"n[{self.slice()}]"])

    def value(self, depth=0):
        d = self.dice
        way = d.random()
        if way < 0.06:
            return self.numpys()
        if way < 0.25:
            return self.element()
        if way < 0.35 and self.numbers:
            return d.choice(self.numbers)
        if way < 0.45:
            return self.part()
        if way < 0.57 or depth > 2:
            return d.choice(
                ["1", "2", "0.5", "3", "-1", "2.0", "np.float64(1.5)", "True", "300", "1j", "np.float32(2)"]
            )
        if way < 0.62:
            return d.choice(self.vectors)
        if way < 0.66:
            base, power = self.value(depth + 1), d.choice(POWERS)  # (of no truth values, and roots of reals)
            return f"(abs({base}) ** 0.5)" if power == "0.5" else f"(({base} * 1) ** {power})"
        if way < 0.85:
            return f"({self.value(depth + 1)} {d.choice(OPERATORS)} {self.value(depth + 1)})"
        if way < 0.92:
            return f"({self.value(depth + 1)} {d.choice(COMPARED)} {self.value(depth + 1)})"
        if way < 0.96:
            return f"({self.part()} @ {self.part()})"
        f = d.choice(FUNCTIONS)
        return f.format(*[self.value(depth + 1) for _ in range(f.count("{}"))])

    def statement(self):
        d = self.dice
        way = d.random()
        target = self.element() if d.random() < 0.6 else self.part()
        if way < 0.25:
            return f"{target} = {self.value()}"
        if way < 0.5:
            return f"{target} {d.choice(AUGMENTED)}= {self.value()}"
        if way < 0.62:
            name = f"s{d.randint(0, 3)}"
            line = f"{name} = {self.value()}"
            self.numbers.append(name)
            return line
        if way < 0.7 and self.numbers:
            return f"{d.choice(self.numbers)} {d.choice(AUGMENTED)}= {self.value()}"
        if way < 0.76:
            name = f"v{d.randint(0, 1)}"
            line = f"{name} = {self.part()}"
            self.vectors.append(name)
            return line
        if way < 0.82:
            other = self.value()
            return f"if {self.element()} {d.choice(COMPARED)} {other}: {target} = {self.value()}"
        if way < 0.92:
            other, op = d.choice(self.vectors), d.choice("+-*")
            t = d.choice(self.tables)
            return d.choice(
                [
                    f"for i in range(1, {M}): {other}[i] {op}= {other}[i - 1]",
                    f"for i in range(1, {M}): {t}[i, :i] {op}= {t}[i - 1, :i] * {other}[i]",
                    f"for i in range({M}): {t}[i, 0] {op}= {t}[i, :i] @ {other}[:i]",
                    f"for i in range({M}): kept.append({other}[i]); {other}[i] = {t}[i, i]",
                    f"for i in range({M}): {other}[i], {other}[-i - 1] = {other}[-i - 1], {other}[i]",
                    f"for i in range({M}): {other}[i] = abs({other}[i - 1] - {t}[i, -1])",
                    f"kept.extend({other})",
                    f"kept = [x {op} x for x in {other}]",
                    f"kept.append([int(i) for i in k if {t}[i, 0] > {other}[1]])",
                ]
            )
        if way < 0.96:
            return f"kept.append({self.element()}); del kept[:-6]"
        return d.choice(
            [
                f"n[{d.randint(0, M - 1)}] = {self.element()}",
                f"n[:3] = {self.part()}",
                f"s0 = n[1] * {self.element()}",
                f"{self.numpys()} {d.choice(AUGMENTED)}= {self.value()}",
                f"{self.numpys()} = {self.value()}",
                f"kept.append((len({self.part()}), {self.part()}.size, {self.value()} * 1))",
                f"for i in range({M}): m[i, :3] = {self.part()}; {self.part()} = m[i, :3] * {self.part()}",
            ]
        )

    def names(self, make):
        found = {name: make(x) for name, x in self.arrays.items()}
        return {**found, "np": np, "kept": [], "n": np.zeros(M), "m": self.beside.copy()}


def ran(line, names):
    """What is wrong with a statement, if anything; an error leaves what was done before it."""
    try:
        exec(line, names)
    except ERRORS as e:
        return e
    return None


def plain(x):
    if isinstance(x, mb.AbstractArray):
        return mb.to_numpy(x)
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    return x


def alike(x, y):
    if isinstance(x, (list, tuple)):
        return isinstance(y, (list, tuple)) and len(x) == len(y) and all(map(alike, x, y))
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def difference(seed, make=mb.HostArray, looks=0.3):
    """Where a program is not NumPy's, or None. Names are looked at now and then, and at the end."""
    program = Elements(seed)
    theirs, ours = program.names(np.array), program.names(make)
    dice = random.Random(seed)
    for at, line in enumerate(program.lines):
        wanted, found = ran(line, theirs), ran(line, ours)
        if any(word in f"{wanted} {found}" for word in KNOWN):
            return None
        if (wanted is None) != (found is None) or (
            isinstance(wanted, IndexError) and not isinstance(found, IndexError)
        ):
            return f"{seed}: {line!r}: {found!r}, not {wanted!r}"
        if dice.random() < looks or at == len(program.lines) - 1:
            for name, x in theirs.items():
                if name.startswith("__") or name in ("np", "i", "x"):
                    continue
                if not alike(x, plain(ours.get(name))):
                    lines = "\n".join(program.lines[: at + 1])
                    return f"{seed}: after\n{lines}\n{name} is\n{plain(ours.get(name))!r}, not\n{x!r}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.randomelements", description=__doc__)
    parser.add_argument("programs", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for seed in range(given.seed, given.seed + given.programs):
        said = difference(seed)
        if said:
            wrong += 1
            print(said, "\n", flush=True)
            if wrong > 8:
                break
    print(f"{given.programs} programs, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
