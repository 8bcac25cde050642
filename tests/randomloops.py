"""Random loops over elements: indices that move up and down, in steps and in triangles, that count from the
end, that meet and do not; numbers that are gathered, carried, or a turn's own; branches and `continue`.

    python -m tests.randomloops 500 --seed 7 --array RefArray

runs each as a NumPy program and with `mb.compile` as kernels where the arrays are, and compares.
"""

import argparse
import importlib
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

# (by itself, because other packages leave a `tests` of theirs beside it)
sys.path[:0] = [str(Path(__file__).parent)]
from randompython import loaded, outcome  # noqa: E402

SIZE = 24
HEAD = """import math
import numpy as np


def helper(a, b):
    return 0.5 * a + 0.25 * b
"""


class Loops:
    """One random program: two loops or three, some within each other."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        # What each loop's variable may be multiplied with, so that it stays inside.
        self.within: dict[str, int] = {}
        self.own: list[str] = []
        # Half of them have few statements, of indices beside the loops' variables: many of these are parallel.
        self.plain = self.dice.random() < 0.5

    def text(self, name: str) -> str:
        lines = [line for _ in range(self.dice.randint(1, 3)) for line in self.loop("ijk")]
        body = "\n".join("    " + x for x in lines)
        return f"{HEAD}\n\ndef {name}(A, B, x, y, q, s, m, n):\n{body}\n    return A, B, x, y, q, s, m\n"

    def loop(self, names: str, around: bool = False) -> list[str]:
        d, v = self.dice, names[0]
        outer = list(self.within)
        choices = ["1, 22", "1, 11", "21, 0, -1", "1, 22, 2", "2, 21, 3", "2, n", "1, len(x) - 2"]
        if outer:
            choices += [f"1, {outer[-1]} + 1", f"{outer[-1]}, 22", f"{outer[-1]} + 1, 22", "3", "1, 4"]
        bounds = d.choice(choices)
        self.within[v] = 2 if bounds in ("1, 11", "3", "1, 4") else 1
        own = list(self.own)
        lines = []
        if names[1:] and d.random() < (0.5 if outer else 0.65):
            if d.random() < 0.35:
                lines += self.statement()
            lines += self.loop(names[1:], True)
            if d.random() < 0.3:
                lines += self.loop(names[1:], True)
            if d.random() < 0.3:
                lines += self.statement()
        else:
            for _ in range(d.randint(1, 1 if self.plain else 3)):
                lines += self.statement()
        del self.within[v]
        self.own = own
        return [f"for {v} in range({bounds}):", *["    " + x for x in lines]]

    def index(self) -> str:
        d = self.dice
        v = d.choice(list(self.within))
        if self.plain:
            return d.choice([v] * 8 + [f"{v} - 1", f"{v} + 1"])
        choices = [v] * 6 + [
            f"{v} + 1",
            f"{v} - 1",
            "0",
            "-1",
            f"-{v}",
            f"{v} - 3",
            f"n - {v}",
            f"{v} % 7",
            "q[2]",
        ]
        if self.within[v] == 2:
            choices += [f"2 * {v}", f"2 * {v} + 1", f"2 * {v} - 1"]
        return d.choice(choices)

    def element(self) -> str:
        d = self.dice
        name = d.choice(["A", "A", "B", "x", "y", "q"])
        if name in "AB":
            i, j = (
                (v if d.random() < 0.6 else self.index() for v in (*list(self.within)[:2], *self.within)[:2])
                if (len(self.within) > 1)
                else (self.index(), self.index())
            )
            return d.choice(
                [f"{name}[{i}, {j}]", f"{name}[{i}, {j}]", f"{name}[{j}, {i}]", f"{name}[{i}][{j}]"]
            )
        return f"{name}[{self.index()}]"

    def value(self, depth: int = 1) -> str:
        d = self.dice
        if not depth:
            return d.choice(
                [self.element(), self.element(), "0.5", "n", d.choice(list(self.within)), *self.own]
            )
        a, b = self.value(depth - 1), self.value(depth - 1)
        return d.choice(
            [
                f"0.5 * {a} + 0.25 * {b}",
                f"0.5 * ({a} - {b})",
                f"helper({a}, {b})",
                f"np.sin({a})",
                f"abs({a}) * 0.5",
                f"min({a}, 1.5 * {b})",
                f"(0.3 * {a} if {b} > 0.5 else 0.1)",
                f"{a} / (2.0 + abs({b})) * x[0]",
                f"math.cos({a}) * {b} * 0.5",
            ]
        )

    def statement(self) -> list[str]:
        d, target = self.dice, self.element()
        while target[0] == "q":
            target = self.element()
        kinds = ["set"] * 5 + ["add"] * 2 + ["own", "gather", "gather", "carry", "if", "skip", "count", "leave"]
        kinds += ["part"] * 2 + ["dot"]
        if self.plain:
            kinds = ["set"] * 8 + ["add", "gather", "if"]
        kind = d.choice(kinds)
        if kind == "own":
            self.own.append("t")
            return [f"t = {self.value()}"]
        if kind in ("part", "dot"):
            return self.part(target, kind == "dot")
        if kind == "gather":
            e = self.value()
            how = d.choice([f"s += {e}", f"s = s + {e}", f"s -= {e}", f"s = max(s, {e})", f"s = min(s, {e})"])
            return [how] if d.random() < 0.7 else [f"if {self.value(0)} > 0.5:", f"    {how}"]
        if kind == "count":
            return [f"if {self.value(0)} > 0.25:", "    m += 1"]
        if kind == "carry":
            return [f"s = 0.5 * s + {self.value()} * 0.25"]
        if kind == "if":
            return [f"if {self.value(0)} > 0.5:", f"    {target} = {self.value()}"]
        if kind == "skip":
            return [f"if {self.value(0)} > 0.75:", "    continue"]
        if kind == "leave" and d.random() < 0.5:
            return [f"if {self.value(0)} > 5:", "    break"]
        if kind == "add":
            return [f"{target} {d.choice(['+=', '-='])} 0.25 * {self.value(0)}", f"{target} *= 0.5"]
        v = d.choice(list(self.within))
        if d.random() < 0.3 and target[1:].startswith((f"[{v},", f"[{v}]")):
            beside = target.replace(f"[{v}", f"[{v} {d.choice(['- 1', '+ 1'])}", 1)
            return [f"{target} = 0.5 * {beside} + 0.25 * {self.value(0)}"]
        return [f"{target} = {self.value()}"]

    def part(self, target: str, product: bool) -> list[str]:
        """A row or a column of a matrix, or a part of it: written from others, or multiplied."""
        d, v = self.dice, self.dice.choice(list(self.within))
        ranges = [(":", ":"), ("1:", ":-1"), ("1:-1", "2:"), (f":{v}", f":{v}"), (f"{v}:", f"{v}:")]
        ranges += [
            (f"{v} + 1:n", "1:"),
            (f"{v} - 1:{v}", "3:4"),
            (f"n - {v}:n", f":{v}"),
            ("5:", "5:"),
            ("2:n", "2:n"),
        ]
        one, other = d.choice(ranges)

        def vector(part: str) -> str:
            i = d.choice([d.choice(list(self.within)), self.index()])
            return d.choice(
                [f"A[{i}, {part}]", f"A[{part}, {i}]", f"B[{i}, {part}]", f"x[{part}]", f"y[{part}]"]
            )

        a, b = vector(one), vector(d.choice([one, other]))
        if product:
            return [f"{target} = {d.choice([f'{a} @ {b}', f'np.dot({a}, {b})'])} * 0.05"]
        e = d.choice([f"{b} * 0.5", f"0.5 * ({b} - {self.element()})", f"np.sin({b} + {vector(one)})", "0.25"])
        return [f"{a} {d.choice(['=', '=', '+=', '*='])} {e}"]


def arguments(seed: int) -> list:
    rng = np.random.default_rng(seed)
    A, B = rng.random((2, SIZE, SIZE))
    if seed % 4 == 0:
        B[seed % SIZE, 3:7] = np.nan
    return [A, B, *rng.random((2, SIZE)), rng.integers(0, SIZE, SIZE), float(rng.random()), 0, 20 + seed % 2]


def failures(count: int, seed: int, folder: str, make, ran=None) -> list[str]:
    """Run programs, and say of each that differs how. `ran` gets the plan of each loop that was run."""
    import mirabelle as mb
    from mirabelle.arraytypes.programs.kernelloops import KernelLoop

    found = []
    whole = KernelLoop.run

    def run(self, plan, *rest):
        ran.append(plan)
        return whole(self, plan, *rest)

    if ran is not None:
        KernelLoop.run = run
    try:
        for number in range(seed, seed + count):
            path = Path(folder) / f"random_loops_{number}.py"
            path.write_text(Loops(number).text("program"))
            program = loaded(path).program
            compiled = mb.compile(program)
            for turn in range(2):
                given = arguments(2 * number + turn)
                mine = [make(a.copy()) if isinstance(a, np.ndarray) else a for a in given]
                # (At first loops of the host run while they are compiled.)
                with mb.settings.changed(compiler="thread" if turn else "process"):
                    wanted, got = outcome(program, given), outcome(compiled, mine)
                said = differs(got, wanted)
                if said:
                    found.append(f"loops {number}, call {turn}: {said}\n  {path}")
                    break
    finally:
        KernelLoop.run = whole
    return found


def differs(got, wanted) -> str:
    import mirabelle as mb

    if isinstance(wanted, ValueError):
        return ""  # (Parts of other sizes: compiled by Numba, some of these go on.)
    if isinstance(wanted, Exception) or isinstance(got, Exception):
        same = isinstance(got, Exception) and isinstance(wanted, Exception)
        return "" if same else f"{got!r}, not {wanted!r}"[:600]
    for at, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a = np.asarray(mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a)
        if a.dtype.kind != np.asarray(b).dtype.kind or not np.allclose(
            a, b, rtol=1e-9, atol=1e-9, equal_nan=True
        ):
            where = np.argwhere(~np.isclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))[:4].tolist()
            return f"result {at} ({a.dtype}, not {np.asarray(b).dtype}) differs at {where}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--array", default="RefArray")
    given = parser.parse_args()
    # (The host takes forever: all that can be kernels is.)
    importlib.import_module("mirabelle.arraytypes.programs.kernelloops").CORE = 1.0
    make, ran = getattr(importlib.import_module("mirabelle"), given.array), []
    folder = tempfile.mkdtemp()
    found = failures(given.count, given.seed, folder, make, ran)
    print("\n".join(found))
    kinds = ["Grid" if getattr(p.steps[0], "loops", 0) else type(p.steps[0]).__name__ for p in ran]
    print(f"{given.count} programs, {len(found)} differ; ran { ({k: kinds.count(k) for k in set(kinds)}) }")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
