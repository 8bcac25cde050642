"""Random NumPy programs of shapes that `randompython` does not write: nested functions and closures, helpers
with several returns, early returns out of loops, tuples, lists and dictionaries of arrays, `enumerate`, `zip`,
`reversed`, parts with negative and variable steps, two names of one memory, indices that repeat, loops over two
dimensions with conditions, and all dtypes from bool to uint64.

    python -m tests.randomshapes 500 --seed 7
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from randompython import loaded, outcome

KINDS = ["f8"] * 5 + ["f4", "i8", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?", "c16"]
HEAD = """import math
import numpy as np

SCALE = 0.5
TABLE = np.array([1.0, 0.5, 0.25, 2.0])


def several(a, b):
    if np.sum(np.real(a)) > 1:
        return a
    if len(b) > 6:
        b = b * 1
        return b
    return np.where(a == b, a, b)


def sign(v):
    if v > 1:
        return 1
    elif v < 0:
        return -1
    return 0


def first_over(a, limit):
    for k in range(len(a)):
        if np.real(a[k]) > limit:
            return k
    return -1


def both(a, b):
    return a, b


def changed(a, k=2):
    a[k % len(a)] = 1
    return a
"""


class Shapes:
    """One random program of x, y (one dimension), A (two), an integer n and a number s."""

    def __init__(self, seed: int) -> None:
        self.dice = d = random.Random(seed)
        kind = d.choice(KINDS)
        self.kinds = [kind, d.choice([kind, kind, "f8", "i8"]), d.choice(["f8", kind, "i8"])]
        self.arrays = ["x", "y"]
        self.made = 0
        self.depth = 0

    def text(self) -> str:
        lines = self.block(self.dice.randint(3, 7))
        kept = ", ".join([*self.arrays[:5], "A", "s", "n"])
        return f"{HEAD}\n\ndef program(x, y, A, s, n):\n" + "".join(
            f"    {line}\n" for line in [*lines, f"return {kept}"]
        )

    def fresh(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def block(self, count: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement()]

    def inner(self, count: int) -> list[str]:
        known = [*self.arrays]
        self.depth += 1
        lines = self.block(count)
        self.depth -= 1
        self.arrays = known
        return ["    " + x for x in lines]

    def name(self) -> str:
        return self.dice.choice(self.arrays)

    def part(self) -> str:
        return self.dice.choice(
            [
                "::-1",
                "::2",
                "::-2",
                "1::n",
                "-2::-1",
                "::-n",
                "n:",
                ":-n",
                "n:n + 4",
                "-3:",
                ":0:-1",
                "1:-1",
                "n::-1",
            ]
        )

    def value(self, depth: int = 1) -> str:
        d = self.dice
        if not depth:
            return d.choice([self.name(), self.name(), f"{self.name()}[::-1]", "A[1]", "A[:, ::-1][0]"])
        a, b = self.value(depth - 1), self.value(depth - 1)
        return d.choice(
            [
                f"({a} + {b})",
                f"({a} * {b})",
                f"({a} - {d.choice(['1', '2', 'n', 's', '0.5'])})"
                if "?" not in self.kinds
                else f"({a} * 1 - {d.choice(['1', 'n', '0.5'])})",
                f"np.where({a} > {d.choice(['0', '1', 'n'])}, {a}, {b})" if "c16" not in self.kinds else a,
                f"np.where(np.abs({a}) > 1, {b}, {d.choice(['0', '1', 's'])})",
                f"several({a}, {b})",
                f"({a} == {b})",
                f"np.abs({a})",
                f"np.sqrt(np.abs({a}))",
                f"({a} // 3)" if "c16" not in self.kinds else f"{a} / 3",
                f"({a} % 5)" if "c16" not in self.kinds else f"{a} / 5",
                f"np.concatenate([{a}[1:], {b}[:1]])",
                f"np.cumsum({a})",
                f"({a} * np.float32(0.5))",
                f"({a} + np.int8(3))",
                f"{a}.astype({d.choice(['np.int16', 'np.uint8', 'np.float32', 'float', 'complex'])})"
                if "c16" not in self.kinds
                else a,
            ]
        )

    def condition(self) -> str:
        x = self.name()
        return self.dice.choice(
            [
                f"np.real({x}).sum() > 1",
                "n > 3",
                f"np.any({x} != 0)",
                f"first_over({x}, 0.5) > 1",
                f"{x}[0] == {x}[1]",
            ]
        )

    def number(self) -> str:
        x = self.name()
        return self.dice.choice(
            [
                f"float(np.real({x}[1]))",
                f"{x}.real.mean()",
                "0.25",
                f"len({x})",
                "TABLE[n % 4]",
                f"np.real({x}).max()",
            ]
        )

    # Statements

    def statement(self) -> list[str]:
        kinds = [
            "new", "new", "write", "part", "aliased", "tupled", "listed", "keyed", "repeated", "picked",
            "closure", "shifted", "stacked", "helper", "number", "comprehended",
        ]  # fmt: skip
        if self.depth < 2:
            kinds += [
                "if", "enumerated", "zipped", "reversed", "table", "table", "elements", "elements",
                "while_array", "left", "over_rows", "histogram", "swapping",
            ]  # fmt: skip
        return getattr(self, "_" + self.dice.choice(kinds))()

    def _new(self) -> list[str]:
        value = self.value(self.dice.randint(1, 2))
        name = self.fresh("t")
        self.arrays.append(name)
        return [f"{name} = {value}"]

    def _number(self) -> list[str]:
        return [f"s = min(max({self.number()} * 0.5, -2.0), 2.0)"]

    def _write(self) -> list[str]:
        x = self.dice.choice(["x", "y"])
        return [f"{x}[...] = np.real({self.value()}).astype({x}.dtype)"]

    def _part(self) -> list[str]:
        x, y, p = self.dice.choice(["x", "y"]), self.name(), self.part()
        same = self.dice.choice([p, p, "::-1"])
        return self.dice.choice(
            [
                [f"{x}[{p}] = 1"],
                [f"{x}[{p}] = {x}[{p}][::-1]"],
                [f"{x}[{p}] *= 2" if "?" not in self.kinds else f"{x}[{p}] = 0"],
                [
                    f"if len({y}[{same}]) == len({x}[{p}]):",
                    f"    {x}[{p}] = np.real({y}[{same}]).astype({x}.dtype)",
                ],
                ["A[::-1] = A * 1"],
                ["A[1:, ::-1] = A[:-1]"],
                ["A[:, n % 3::2] = 0"],
            ]
        )

    def _aliased(self) -> list[str]:
        x, v, w = self.dice.choice(["x", "y"]), self.fresh("v"), self.fresh("w")
        lines = [
            f"{v} = {x}[{self.dice.choice(['1:', '::2', '::-1', ':'])}]",
            f"{w} = {v}[{self.dice.choice(['1:', '::-1'])}]",
        ]
        lines += [f"{w}[0] = 1", f"{v}[-1] = 0"]
        if "?" not in self.kinds:
            lines.append(f"{w} += 1")
        lines.append(f"s = s * 0.5 + float(np.real({x}[1])) * 0.01 + float(np.real({v}[0])) * 0.01")
        return lines

    def _tupled(self) -> list[str]:
        a, b = self.fresh("p"), self.fresh("q")
        lines = self.dice.choice(
            [
                [f"{a}, {b} = both({self.value()}, {self.name()})"],
                [f"pair = ({self.name()}, {self.value()})", f"{a}, {b} = pair[::-1]"],
                [f"{a}, {b} = {self.name()} * 1, {self.name()} * 1", f"{a}, {b} = {b}, {a}"],
                [f"(({a}, {b}), z0) = both((x, y), {self.name()})"],
            ]
        )
        self.arrays += [a, b]
        return lines

    def _listed(self) -> list[str]:
        a = self.fresh("l")
        lines = self.dice.choice(
            [
                [
                    "rows = []",
                    "for k in range(3):",
                    f"    rows.append({self.name()} * k)",
                    f"{a} = rows[1] + rows[-1]",
                ],
                [f"rows = [{self.name()}, {self.name()} * 1]", f"rows[0] = {self.value()}", f"{a} = sum(rows)"],
                [
                    f"rows = [{self.name()} * 1 for k in range(n)]",
                    "rows[1][0] = 1",
                    f"{a} = rows[1] * 1 + rows[0]",
                ],
            ]
        )
        self.arrays.append(a)
        return lines

    def _keyed(self) -> list[str]:
        a = self.fresh("k")
        lines = [
            f"held = {{'a': {self.name()}, 'b': {self.value()}}}",
            f"held['a'] = held['a'] + {self.name()}",
            "for key, h in held.items():",
            "    s = s * 0.5 + float(np.real(h[0])) * 0.001",
            f"{a} = held['a'] * 1",
        ]
        self.arrays.append(a)
        return lines

    def _repeated(self) -> list[str]:
        x, y = self.dice.choice(["x", "y"]), self.name()
        index = self.dice.choice(
            ["np.array([0, 1, 1, 2, 2, 2])", "np.arange(6) % 3", "[0, 0, 1]", "np.array([-1, 0, -1])"]
        )
        if "?" in self.kinds:
            return [f"{x}[{index}] = 1"]
        return self.dice.choice(
            [
                [f"{x}[{index}] += 1"],
                [f"np.add.at({x}, {index}, 1)"],
                [f"{x}[{index}] *= 2"],
                [f"i0 = {index}", f"{x}[i0] = np.real({y}[i0]).astype({x}.dtype)"],
            ]
        )

    def _picked(self) -> list[str]:
        x, a = self.name(), self.fresh("m")
        return self.dice.choice(
            [
                [f"{a} = {x}[{x} != 0]", f"s = s * 0.5 + len({a}) * 0.01"],
                [f"x[np.abs(x) > 1] = {self.dice.choice(['0', '1'])}"],
                [f"s = s * 0.5 + np.count_nonzero({x}) * 0.01"],
                [f"{a} = np.nonzero({x})[0]", f"s = s * 0.5 + {a}.sum() * 0.001"],
            ]
        )

    def _closure(self) -> list[str]:
        f, a = self.fresh("f"), self.fresh("c")
        x, y = self.name(), self.name()
        self.arrays.append(a)
        return self.dice.choice(
            [
                [f"def {f}(u, k=n):", f"    return u * SCALE + {y}[0] * k", f"{a} = {f}({x})"],
                [f"{f} = lambda u: u * 2 + {y}", f"{a} = {f}({x}) * 1"],
                [
                    f"def {f}(u):",
                    "    if n > 3:",
                    "        return u * 1",
                    f"    return u + {y}",
                    f"{a} = {f}({x})",
                ],
                [
                    f"def {f}(k):",
                    f"    return {x}[k] * SCALE",
                    f"{a} = np.array([{f}(k) for k in range(len({x}))])",
                ],
            ]
        )

    def _shifted(self) -> list[str]:
        x, a = self.name(), self.fresh("b")
        self.arrays.append(a)
        return self.dice.choice(
            [
                [f"{a} = (np.abs({x}).astype(np.int64) << n) >> 1"],
                [f"{a} = (np.abs({x}).astype(np.uint8) ^ 0x55) & 0x3F"],
                [f"{a} = np.abs({x}).astype(np.uint32) * np.uint32(2654435761) >> np.uint32(3)"],
                [f"{a} = np.abs({x}).astype(np.int8) + np.int8(100)"],
                [
                    "h = 5381",
                    "for k in range(40):",
                    "    h = ((h << 5) + h + k) & 0xFFFFFFFF",
                    f"{a} = {x} * 1",
                    "s = s + h % 7 * 0.01",
                ],
            ]
        )

    def _stacked(self) -> list[str]:
        x, y = self.name(), self.name()
        a = self.fresh("e")
        self.arrays.append(a)
        return self.dice.choice(
            [
                [f"{a} = np.stack([{x} * 1, {y} * 1])[::-1][0]"],
                [f"{a} = np.vstack(({x} * 1, {y} * 1)).sum(axis=0)"],
                [f"{a} = np.outer({x}, {y})[1]"],
                [f"{a} = (A * 1).T[:, 0]", f"{a} = np.resize({a}, len(x))"],
            ]
        )

    def _helper(self) -> list[str]:
        return self.dice.choice(
            [
                [f"s = sign({self.number()}) * 0.5"],
                ["changed(x)"],
                ["y = changed(y, 1) * 1"],
                [f"n = max(2, first_over({self.name()}, 0.2) % 5)"],
            ]
        )

    def _comprehended(self) -> list[str]:
        x = self.name()
        return self.dice.choice(
            [
                [f"s = s * 0.5 + sum([float(np.real(v)) for v in {x}]) * 0.01"],
                [f"s = s * 0.5 + max(float(np.real(v)) for v in {x}) * 0.01"],
                [f"s = s + sum(1 for v in {x} if v != 0) * 0.01"],
            ]
        )

    # Branches and loops

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.inner(self.dice.randint(1, 2))]
        if self.dice.random() < 0.4:
            lines += [f"elif {self.condition()}:", *self.inner(1)]
        if self.dice.random() < 0.5:
            lines += ["else:", *self.inner(1)]
        return lines

    def _enumerated(self) -> list[str]:
        x, y = self.dice.choice(["x", "y"]), self.name()
        return self.dice.choice(
            [
                [f"for k, v in enumerate({y}):", "    s = s * 0.5 + k * float(np.real(v)) * 0.01"],
                [
                    f"for k, v in enumerate({y}):",
                    f"    if v != 0 and k < len({x}):",
                    f"        {x}[k] = k % 3",
                    "        continue",
                    "    s = s * 0.5",
                ],
                ["for k, row in enumerate(A):", "    A[k] = row[::-1] * 1"],
            ]
        )

    def _zipped(self) -> list[str]:
        x, y = self.name(), self.name()
        return [
            f"for a, b in zip({x}, {self.dice.choice([y, y + '[::-1]', 'range(5)'])}):",
            self.dice.choice(["    if a != b:", "    if np.real(a) > np.real(b):"]),
            f"        {self.dice.choice(['s = s * 0.5 + float(np.real(a)) * 0.01', 'break', 'continue'])}",
            "    s = s * 0.75",
        ]

    def _reversed(self) -> list[str]:
        x = self.dice.choice(["x", "y"])
        bounds = self.dice.choice(
            [f"reversed(range(1, len({x})))", f"range(len({x}) - 1, 0, -1)", f"range(1, len({x}), n)"]
        )
        body = self.dice.choice(
            [[f"{x}[k] = {x}[k - 1]"], [f"if {x}[k] != {x}[k - 1]:", f"    {x}[k - 1] = {x}[k]"]]
        )
        return [f"for k in {bounds}:", *["    " + b for b in body]]

    def _table(self) -> list[str]:
        d = self.dice
        body = d.choice(
            [
                [
                    "if A[i, j] > A[i - 1, j]:",
                    "    A[i, j] = A[i - 1, j]",
                    "elif j % 2:",
                    "    A[i, j] = 1",
                    "else:",
                    "    s = s * 0.5",
                ],
                ["if i == j:", "    continue", "A[i, j] = A[j % A.shape[0], i]"],
                ["if (i + j) % n == 0:", "    A[i, j] = A[i - 1, j - 1]", "    break"],
                ["A[i, j] += 1 if A[i, j] < 2 else 0"],
                ["k = (i * j) % len(x)", "x[k] = A[i, j]" if self.kinds[0] == "f8" else "y[0] = 1"],
            ]
        )
        if self.kinds[2] in ("c16", "?"):
            body = (
                body if "<" not in body[0] and ">" not in body[0] and "+=" not in body[0] else ["A[i, j] = 1"]
            )
        return [
            "for i in range(1, A.shape[0]):",
            f"    for j in range({d.choice(['A.shape[1]', 'i', '1, A.shape[1], 2'])}):",
            *["        " + b for b in body],
        ]

    def _elements(self) -> list[str]:
        d = self.dice
        x, y = d.choice(["x", "y"]), d.choice(["x", "y"])
        number = "np.real" if "c16" in self.kinds else ""
        body = d.choice(
            [
                [f"{x}[i] = {x}[i - 1]"],
                [
                    f"{x}[i] = sign({number}({y}[i]))"
                    if self.kinds[0][0] not in "u?" and self.kinds[1][0] not in "u?"
                    else f"{x}[i] = 1"
                ],
                [f"{x}[i] += 1" if "?" not in self.kinds else f"{x}[i] = 0"],
                [
                    f"{x}[i] = {x}[i] // 2 + {x}[i] % 3"
                    if "c16" not in self.kinds and "?" not in self.kinds
                    else f"{x}[i] = 0"
                ],
                ["t = i", f"while t > 0 and {x}[t - 1] == {x}[t]:", "    t -= 1", f"{y}[t] = 1"],
                [f"s = s * 0.5 + ({number}({x}[i]) if i % 3 else 1) * 0.01"],
                ["if i > n * 2:", "    break", f"{x}[-i] = {x}[i]"],
                [f"{x}[i], {y}[i] = {x}[i - 1], {y}[i - 1]"],
                ["n = max(2, (n * 3 + i) % 7)"],
                ["n = (n ^ (i << 2)) & 7 | 2"],
                [f"s = s + TABLE[i & 3] * SCALE * {number}({x}[i])", "s = min(s, 3.0)"],
            ]
        )
        return [
            f"for i in range({d.choice(['1, len(x)', '1, min(len(x), len(y))', 'len(x) - 1, 0, -1'])}):",
            *["    " + b for b in body],
        ]

    def _while_array(self) -> list[str]:
        c, x = self.fresh("c"), self.name()
        return [
            f"{c} = 0",
            f"while np.real({x}).max() > {c} and {c} < {self.dice.choice(['3', '20'])}:",
            f"    {c} += 1",
            *self.inner(1),
            *(["    if s > 1:", "        break"] if self.dice.random() < 0.4 else []),
        ]

    def _left(self) -> list[str]:
        """A return out of a loop."""
        value = self.dice.choice(["0", "1", "2"])
        return [
            f"for k in range({self.dice.choice(['n', '5', 'len(x)'])}):",
            f"    if {self.name()}[k % 4] == {value} and s > {self.dice.choice(['0.2', '5'])}:",
            "        return x, y, A, s, k",
            *self.inner(1),
        ]

    def _over_rows(self) -> list[str]:
        return self.dice.choice(
            [
                ["for row in A:", "    row[0] = row[-1]", "    s = s * 0.5 + float(np.real(row).sum()) * 0.01"],
                ["for k in range(A.shape[0]):", "    row = A[k]", "    row[k % 3:] = row[k % 3]"],
                ["for k in range(1, A.shape[0]):", "    A[k, ::-1] = A[k - 1] * 1"],
            ]
        )

    def _histogram(self) -> list[str]:
        a, x = self.fresh("h"), self.dice.choice(["x", "y"])
        self.arrays.append(a)
        lines = [
            f"{a} = np.zeros(len(x), dtype={self.dice.choice(['np.int64', 'np.int32', 'float', 'np.uint8'])})"
        ]
        return [*lines, f"for v in {x}:", f"    {a}[int(abs(v)) % len({a})] += 1"]

    def _swapping(self) -> list[str]:
        return [
            f"for k in range({self.dice.choice(['n', '4', '30'])}):",
            self.dice.choice(
                [
                    "    x, y = y, x",
                    "    x[:], y[:] = np.real(y).astype(x.dtype), np.real(x).astype(y.dtype)",
                    "    y = x; x = x.copy()",
                ]
            ),
            *self.inner(1),
        ]


def arguments(seed: int, kinds: list[str], turn: int) -> list:
    rng = np.random.default_rng(seed * 10 + turn)
    m = 6 + seed % 9 if seed % 4 == 1 else 18 + seed % 30

    def made(shape: tuple[int, ...], kind: str) -> np.ndarray:
        dtype = np.dtype(kind)
        if dtype.kind == "?" or dtype.kind == "b":
            return rng.random(shape) > 0.5
        if dtype.kind in "iu":
            low = -5 if dtype.kind == "i" else 0
            values = rng.integers(low, 9, shape)
            if seed % 3 == 0:
                values[..., 0] = min(np.iinfo(dtype).max, 2**62)
            return values.astype(dtype)
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)
        return values.astype(dtype)

    shapes = [(m,), (m,), (3 + seed % 3, m)]
    return [
        *[made(shape, k) for shape, k in zip(shapes, kinds, strict=True)],
        float(rng.random()),
        2 + turn % 3,
    ]


def differs(got, wanted) -> str:
    """How results differ, by values, shapes and dtypes."""
    import mirabelle as mb

    if isinstance(wanted, Exception) or isinstance(got, Exception):
        same = isinstance(got, Exception) and isinstance(wanted, Exception)
        return "" if same else f"{got!r}, not {wanted!r}"[:500]
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for at, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a, b = np.asarray(mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a), np.asarray(b)
        if a.shape != b.shape:
            return f"result {at} of shape {a.shape}, not {b.shape}"
        if b.ndim and a.dtype != b.dtype:
            return f"result {at} is {a.dtype}, not {b.dtype}"
        low = any(d in (np.float32, np.complex64, np.float16) for d in (a.dtype, b.dtype))
        tolerance = 2e-3 if low else 1e-7
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"result {at}: {a.ravel()[:8]} not {b.ravel()[:8]}"
    return ""


def failures(count: int, seed: int, folder: str, make=None, show: bool = False) -> list[str]:
    """Run programs, and say of each that differs how."""
    import mirabelle as mb

    make, found = make or mb.HostArray, []
    for number in range(seed, seed + count):
        writer = Shapes(number)
        path = Path(folder) / f"random_shapes_{number}.py"
        path.write_text(writer.text())
        program = loaded(path).program
        compiled = mb.compile(program)
        for turn in range(3):
            given = arguments(number, writer.kinds, turn)
            mine = [make(a.copy()) if isinstance(a, np.ndarray) else a for a in given]
            # (At first loops run while they are compiled.)
            with mb.settings.changed(compiler="thread" if turn else "process"):
                got = outcome(compiled, mine)
            said = differs(got, outcome(program, given))
            if said:
                found.append(f"shapes {number}, call {turn}, {writer.kinds}: {said}\n  {path}")
                if show:
                    print(found[-1], flush=True)
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--array", default="HostArray")
    given = parser.parse_args()
    import mirabelle as mb

    found = failures(given.count, given.seed, tempfile.mkdtemp(), make=getattr(mb, given.array), show=True)
    print(f"{given.count} programs, {len(found)} differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
