"""Random NumPy programs as people write them: loops over elements and slices, branches and `while` on values,
writes in place, views that are written through, helper functions, early returns.

    python -m tests.randompython 1000 --seed 7

writes programs to files (functions are compiled from their source), runs each on NumPy arrays as it is, and
with `mb.compile` on our arrays (`--array CuArray`), several times with other values, and compares what is
returned, what was written to, and what is raised.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

DTYPES = ["f8"] * 8 + ["f4", "i8", "i4", "c16", "u1", "?"]
HEAD = """import math
import numpy as np


def helper(a, b):
    return 0.5 * a + 0.25 * b


def picked(a, b):
    if a > b:
        return a - b
    return 0.5 * b


def smooth(a):
    out = np.zeros(len(a))
    for k in range(1, len(a) - 1):
        out[k] = (a[k - 1] + a[k + 1]) * 0.5
    return out
"""


class Writer:
    """One random program."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        d = self.dice
        kind = d.choice(DTYPES)
        self.kinds = [kind, d.choice([kind, kind, "f8"]), d.choice(DTYPES)]
        # Names by what they are: arrays of one and two dimensions, numbers.
        self.one = ["x", "y"]
        self.two = ["A"]
        self.real = ["s"]
        self.whole = ["n"]
        self.made = 0
        self.depth = 0

    def text(self, name: str) -> str:
        lines = self.block(self.dice.randint(2, 6))
        kept = sorted({*self.one[:4], *self.two[:2], *self.real[:3]})
        lines.append(f"return {', '.join(kept)}")
        body = "\n".join("    " + x for x in lines)
        return f"\n\ndef {name}(x, y, A, s, n):\n{body}\n"

    def fresh(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def block(self, count: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement()]

    def inner(self, count: int) -> list[str]:
        """The lines of a body: names that it makes are not known after it."""
        known = list(self.one), list(self.two), list(self.real), list(self.whole)
        self.depth += 1
        lines = self.block(count)
        self.depth -= 1
        self.one, self.two, self.real, self.whole = known
        return ["    " + x for x in lines]

    # Expressions

    def array(self, depth: int = 2) -> str:
        d = self.dice
        if depth == 0 or d.random() < 0.2:
            return d.choice(
                [
                    *self.one,
                    d.choice(self.one),
                    f"A[{d.randint(0, 2)}, :]",
                    "A[:, 1]",
                    f"({d.choice(self.one)} + 1)",
                ]
            )
        a, b = self.array(depth - 1), self.array(depth - 1)
        return d.choice(
            [
                f"({a} + {b})",
                f"({a} - 0.5 * {b})",
                f"({a} * 0.25)",
                f"np.sin({a})",
                f"np.abs({a})",
                f"helper({a}, {b})",
                f"np.where({a} > {b}, {a}, 0.5)",
                f"np.minimum({a}, 1.5)",
                f"({a} * {self.number()})",
                f"np.cos({a} * {d.choice(self.real)})",
                f"{d.choice(self.one)}[::-1]",
                f"np.roll({a}, 1)",
                f"({a}) / (2.0 + np.abs({b}))",
            ]
        )

    def number(self) -> str:
        d = self.dice
        return d.choice(
            [
                *self.real,
                "0.5",
                "2",
                "1.25",
                "n",
                d.choice(self.real),
                f"{d.choice(self.one)}[{d.choice(['0', '-1', '2'])}]",
                f"np.sum({d.choice(self.one)}) * 0.125",
                "A[1, 2]",
                f"{d.choice(self.one)}.max()",
                f"float({d.choice(self.one)}.real[1])",
                "math.cos(0.5)",
            ]
        )

    def condition(self) -> str:
        d = self.dice
        x = d.choice(self.one)
        return d.choice(
            [
                f"{x}.real.sum() > 0.5",
                f"{d.choice(self.real)} > 0.25",
                "n > 3",
                f"np.any({x} > 1)",
                f"{x}[1].real < {d.choice(self.one)}[0].real",
                "len(x) > 5",
                f"np.all(np.abs({x}) < 2)",
                f"abs({d.choice(self.real)}) < 1 and n % 2 == 0",
            ]
        )

    # Statements

    def statement(self) -> list[str]:
        d = self.dice
        kinds = [
            "new",
            "new",
            "write",
            "write",
            "part",
            "augmented",
            "number",
            "view",
            "swap",
            "if",
            "matrix",
            "made",
            "masked",
        ]
        if self.depth < 2:
            kinds += ["elements", "elements", "repeat", "sweep", "while", "rows", "moving", "table", "find"]
        return getattr(self, "_" + d.choice(kinds))()

    def _new(self) -> list[str]:
        line = self.array()
        name = self.fresh("t") if self.dice.random() < 0.6 else self.dice.choice(self.one)
        if name not in self.one:
            self.one.append(name)
        return [f"{name} = {line}"]

    def _write(self) -> list[str]:
        return [f"{self.dice.choice(self.one)}[...] = np.real({self.array()})"]

    def _part(self) -> list[str]:
        x, y = self.dice.choice(self.one), self.dice.choice(self.one)
        return [
            self.dice.choice(
                [
                    f"{x}[1:-1] = 0.5 * ({y}[2:] + {y}[:-2]).real",
                    f"{x}[::2] = {y}[::2].real * 0.5",
                    f"{x}[2] = {y}[0].real",
                    f"{x}[-1] = {self.number_real()}",
                    f"{x}[:n] = {y}[:n].real + 1",
                ]
            )
        ]

    def number_real(self) -> str:
        return self.dice.choice(["0.5", "1", "np.real(s)", "n", "2.5"])

    def _augmented(self) -> list[str]:
        x, y = self.dice.choice(["x", "y"]), self.dice.choice(self.one)
        return [
            self.dice.choice(
                [
                    f"x += 0.5 * np.real({y}) if x.dtype.kind in 'fc' else 1",
                    f"{x}[1:] -= {x}[:-1] // 2 if {x}.dtype.kind in 'iu' else 0",
                    "A[1] += A[0]",
                    "A *= 1",
                ]
            )
        ]

    def _number(self) -> list[str]:
        value = self.number()
        name = self.fresh("r") if self.dice.random() < 0.5 else "s"
        if name not in self.real:
            self.real.append(name)
        return [f"{name} = 0.5 * np.real({value})", f"{name} = min(max({name}, -3.0), 3.0)"]

    def _view(self) -> list[str]:
        x = self.dice.choice(self.one)
        v = self.fresh("v")
        lines = [f"{v} = {x}[{self.dice.choice(['1:', ':-1', '::2', '::-1'])}]", f"{v}[...] = {v} * 1"]
        if self.dice.random() < 0.5:
            lines.append(f"{v}[0] = {self.number_real()}")
        return lines

    def _swap(self) -> list[str]:
        return self.dice.choice(
            [["x, y = y, x"], ["t0 = x", "x = y * 1", "y = t0"], ["x = y"], ["x = x.copy()"]]
        )

    def _matrix(self) -> list[str]:
        return self.dice.choice(
            [
                ["A[1:, :] = A[:-1, :] * 0.5 if A.dtype.kind in 'fc' else A[:-1, :]"],
                ["A = A * 1"],
                ["A[:, 0] = A[:, 1]"],
                ["A = np.abs(A) * 0.5"],
                ["x = x + A[1] * 0"],
                ["A[...] = A[::-1]"],
            ]
        )

    def _made(self) -> list[str]:
        name = self.fresh("z")
        makers = ["zeros(len(x))", "ones(len(x))", "empty_like(x)", "zeros_like(y)", "full(len(x), 0.5)"]
        lines = [f"{name} = np.{self.dice.choice([*makers, 'arange(len(x)) * 0.1'])}"]
        if "empty" in lines[0]:
            lines.append(f"{name}[:] = 0")
        self.one.append(name)
        return lines

    def _masked(self) -> list[str]:
        x, y = self.dice.choice(self.one), self.dice.choice(self.one)
        return [
            self.dice.choice(
                [
                    f"{x}[{x} > 1] = 0",
                    f"{x}[np.abs({y}) < 0.5] *= 1",
                    f"s = float(np.real(np.sum({x}[{y} > 0]))) * 0.01",
                    "x = x[np.argsort(np.real(y), kind='stable')]",
                    f"s = len(np.nonzero({x})[0]) * 0.1",
                ]
            )
        ]

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.inner(self.dice.randint(1, 2))]
        if self.dice.random() < 0.5:
            lines += ["else:", *self.inner(1)]
        elif self.depth == 0 and self.dice.random() < 0.15:
            lines.append("    return x, y, A, s")
        return lines

    def _elements(self) -> list[str]:
        d = self.dice
        x, y = d.choice(self.one), d.choice(self.one)
        bounds = d.choice(["len(x)", "1, len(x)", "1, len(x) - 1", "len(x) - 2, 0, -1", "n"])
        body = d.choice(
            [
                [f"{x}[i] = np.real({y}[i]) * 0.5"],
                [f"{x}[i] = np.real({x}[i - 1] + {y}[i]) * 0.5"],
                [f"s = s * 0.5 + np.real({x}[i])", "s = min(s, 4.0)"],
                [f"if {x}[i].real > {y}[i].real:", f"    {x}[i] = {y}[i].real", "else:", "    s = s * 0.5"],
                [f"{x}[i] -= {x}[i] // 2" if self.kinds[0] not in ("c16", "?") else f"{x}[i] = {x}[i]"],
                [f"{x}[i] = np.real(helper({x}[i], {y}[i]))"],
                [f"{x}[i] = picked({x}[i].real, {y}[i].real)"],
                ["if i == 3:", "    continue", f"{x}[i] = i * 0.5"],
                [f"if {x}[i].real > 2.5:", "    break", "s = s + 0.01"],
                [f"s = s * 0.5 + 0.1 / (i - {d.choice(['3', 'n', '100'])})"],
                [f"{x}[i] = np.real({y}[i]) / (i + 1) + (n % (i + 1)) * 0.1"],
                [f"{x}[i] = math.sin(i * 0.1) + np.real({y}[-i])"],
                ["k = (i * 7 + 3) % len(x)", f"{x}[k] = np.real({y}[i]) * 0.5"],
            ]
        )
        return [f"for i in range({bounds}):", *["    " + b for b in body]]

    def _table(self) -> list[str]:
        body = self.dice.choice(
            [
                ["A[i, j] = np.real(A[i - 1, j] + A[i, j - 1]) * 0.5"],
                ["A[i, j] -= A[i, :j] @ A[:j, j] * 0" if self.kinds[2] in ("f8",) else "A[i, j] = A[j % 3, i]"],
                ["s = max(s * 0.9, np.real(A[i, j]) * 0.1)"],
                ["if A[i, j].real > x[j].real:", "    A[i, j] = 0"],
                ["x[j] = np.real(x[j] * 0.5 + A[i, j] * 0.25)"],
            ]
        )
        return [
            "for i in range(1, A.shape[0]):",
            f"    for j in range({self.dice.choice(['1, A.shape[1]', 'i, A.shape[1]', 'i'])}):",
            *["        " + b for b in body],
        ]

    def _repeat(self) -> list[str]:
        self.depth += 1
        lines = self.block(self.dice.randint(1, 2))
        self.depth -= 1
        self.one = [v for v in self.one if v in ("x", "y")]
        self.real = ["s"]
        return [f"for t in range({self.dice.choice(['3', 'n', '12', '40'])}):", *["    " + x for x in lines]]

    def _sweep(self) -> list[str]:
        x = self.dice.choice(self.one)
        return [
            "for k in range(1, min(n, len(x))):",
            f"    {x}[k:] = np.real({x}[k:]) * 0.5 + {x}[k - 1].real * 0.25",
        ]

    def _rows(self) -> list[str]:
        return [
            "for k in range(1, A.shape[0]):",
            f"    A[k] = {self.dice.choice(['A[k - 1] * 1', 'A[k] - A[k - 1] * 0', 'A[k, ::-1]'])}",
        ]

    def _moving(self) -> list[str]:
        return ["for v in x:", "    s = s * 0.5 + np.real(v) * 0.1"]

    def _find(self) -> list[str]:
        return ["p = 0", "while p < len(x) - 1 and x[p].real < 1.0:", "    p += 1", "s = s * 0.5 + p * 0.01"]

    def _while(self) -> list[str]:
        x, c = self.dice.choice(self.one), self.fresh("c")
        body = self.inner(1)
        return [
            f"{c} = 0",
            f"while np.abs({x}).max() > 0.3 and {c} < {self.dice.choice(['2', '6', '15'])}:",
            f"    {c} += 1",
            *body,
        ]


def arguments(seed: int, kinds: list[str], turn: int) -> list:
    """The arguments of a program; other values at each turn, of the same shapes."""
    rng = np.random.default_rng(seed * 10 + turn)
    m = 4 + seed % 14 if seed % 5 else 60 + seed % 40

    def made(shape: tuple[int, ...], kind: str) -> np.ndarray:
        values = rng.standard_normal(shape)
        if kind == "c16":
            return values + 1j * rng.standard_normal(shape)
        if kind == "?":
            return values > 0
        return (
            values * (3 if kind in ("i8", "i4") else 1) if kind != "u1" else rng.integers(0, 9, shape)
        ).astype(kind)

    return [
        made((m,), kinds[0]),
        made((m,), kinds[1]),
        made((3 + seed % 4, m), kinds[2]),
        float(rng.random()),
        3 + turn % 2,
    ]


def outcome(f, args):
    """What a call returned and wrote, or the type of what it raised."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = f(*args)
    except Exception as e:
        return e
    return [*(found if isinstance(found, tuple) else (found,)), *args[:3]]


def differs(got, wanted) -> str:
    if isinstance(wanted, Exception):
        return "" if isinstance(got, Exception) else f"no {type(wanted).__name__}: {wanted}"
    if isinstance(got, Exception):
        return f"{type(got).__name__}: {got}"
    for at, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"result {at} of shape {a.shape}, not {b.shape}"
        low = any(k in (a.dtype, b.dtype) for k in (np.float32, np.complex64))
        if not np.allclose(a, b, rtol=1e-3 if low else 1e-7, atol=1e-3 if low else 1e-7, equal_nan=True):
            return f"result {at}: {a.ravel()[:6]} not {b.ravel()[:6]}"
    return ""


def modules(count: int, seed: int, folder: str) -> list:
    """So many programs, in a module each (from files: functions are compiled from their source)."""
    made = []
    for k in range(count):
        writer = Writer(seed + k)
        path = Path(folder) / f"random_python_{seed + k}.py"
        path.write_text(HEAD + writer.text("program"))
        made.append((seed + k, writer, loaded(path), path))
    return made


def loaded(path: Path):
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def failures(count: int, seed: int, folder: str, make=None, show=False) -> list[str]:
    """Run programs, and say of each that differs how."""
    import mirabelle as mb

    make = make or mb.HostArray
    found = []
    for number, writer, module, path in modules(count, seed, folder):
        compiled = mb.compile(module.program)
        for turn in range(4):
            given = arguments(number, writer.kinds, turn)
            mine = [make(a.copy()) if isinstance(a, np.ndarray) else a for a in given]
            wanted = outcome(module.program, given)
            # (At first loops run while they are compiled.)
            with mb.settings.changed(compiler="thread" if turn else "process"):
                got = outcome(compiled, mine)
            said = differs(
                [np.asarray(mb.to_numpy(g) if isinstance(g, mb.AbstractArray) else g) for g in got]
                if isinstance(got, list)
                else got,
                wanted,
            )
            if said:
                found.append(f"program {number}, call {turn}, {writer.kinds}: {said}\n  {path}")
                if show:
                    print(found[-1], flush=True)
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--array", default="HostArray", help="the type of arrays, as CuArray")
    parser.add_argument(
        "--kernels", action="store_true", help="loops over elements run where arrays are, if they can"
    )
    given = parser.parse_args()
    make = getattr(importlib.import_module("mirabelle"), given.array)
    if given.kernels:
        importlib.import_module("mirabelle.arraytypes.programs.kernelloops").CORE = 1.0
    with tempfile.TemporaryDirectory(delete=False) if sys.version_info >= (3, 12) else _kept() as folder:
        found = failures(given.count, given.seed, folder, make=make, show=True)
    print(f"{given.count} programs, {len(found)} differ")
    sys.exit(bool(found))


class _kept:
    def __enter__(self) -> str:
        return tempfile.mkdtemp()

    def __exit__(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    main()
