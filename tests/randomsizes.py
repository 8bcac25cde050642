"""Random functions that are called with random sizes: what NumPy computes, programs for any size compute."""

import random
import warnings

import numpy as np

SLICES = [
    "[1:]", "[:-1]", "[2:-2]", "[:3]", "[-4:]", "[5:9]", "[-9:-5]", "[::-1]", "[1:-1]", "[3:13]", "[-13:-3]",
    "[:7]", "[::2]", "[1::2]", "[::-3]",
]  # fmt: skip
PAIRS = [("[1:]", "[:-1]"), ("[2:]", "[:-2]"), ("[3:13]", "[-13:-3]"), ("[:5]", "[-5:]"), ("[5:9]", "[-9:-5]")]
PAIRS += [("[1:-1]", "[2:]"), ("[:-3]", "[3:]"), ("[8:12]", "[-10:-6]"), ("[20:30]", "[-20:-10]")]
PAIRS += [("[::2]", "[1::2]"), ("[::2]", "[::2]")]
UNARY = ["-{}", "{} * 2", "{} + 1", "xp.abs({})", "xp.minimum({}, 3)", "{} * {}", "xp.where({} > 1, {}, -1)"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "xp.maximum({}, {})", "xp.where({} > 0, {}, 2)"]
WHOLE = [
    "{}.T.T", "xp.flip({}, axis=0)", "xp.cumulative_sum({}, axis=0)", "xp.sort({}, axis=0)", "{}.copy()",
    "xp.roll({}, 2, axis=0)",
    "xp.concat([{}, {}[:2]], axis=0)[2:]", "{} - {}.max(axis=0)", "{} - {}.sum()", "{} / 4 + {}.mean(axis=0)",
    "{} - {}.min(axis=-1, keepdims=True)", "xp.stack([{}, {}])[1]", "xp.diff({}, axis=0).sum(axis=0) + {}",
]  # fmt: skip
# What looks at shapes.
SHAPED = [
    "{t} = {a} / {a}.shape[0]", "{t} = {a} * (1.0 / ({a}.shape[-1] + 1))", "{a}[: {a}.shape[0] // 2] *= 2",
    "{t} = {a} + 1 if {a}.shape[0] > 20 else {a} - 1", "{t} = {a} if {a}.shape[0] % 2 else -{a}",
    "{t} = xp.zeros({a}.shape) + {a}", "{t} = {a} + xp.arange({a}.shape[-1])",
    "{t} = {a} + {a}.reshape({a}.size)[1:].sum()", "{t} = {a} + {a}[{a}.shape[0] // 3] * 2",
    "{t} = {a} + {a}.reshape(-1, {a}.shape[-1])[0, 0]", "{t} = {a} * min({a}.shape)",
    "{t} = {a} + ({a}.shape[0] if {a}.shape[0] == {a}.shape[-1] else 2)",
    "{t} = sum([{a} * k for k in range({a}.shape[0] % 4)], {a})", "{t} = {a} * len({a})",
    "{t} = {a} + xp.sum({a}[-({a}.shape[0] // 4) :], axis=0)", "{t} = {a} - {a}.sum() / ({a}.size + 1)",
]  # fmt: skip
ENDS = [
    "{}.sum()",
    "{}.mean(axis=0)",
    "{}.max(axis=-1)",
    "{}.reshape(-1)[3:]",
    "{}[1:, ...]",
    "{}.T @ {}",
    "{}",
]


class Draft:
    """A function's source, and the shapes of its arguments as expressions of n, m, k."""

    def __init__(self, number: int) -> None:
        r = self.random = random.Random(number)
        self.number = number
        rank = r.choice([1, 1, 2, 2, 3])
        full = ["n", "m", "k"][:rank] if r.random() < 0.8 else ["n"] * rank
        self.shapes = [full, list(full)]
        if r.random() < 0.5:
            self.shapes.append(full[r.randrange(rank) :])
        if r.random() < 0.3 and rank > 1:
            self.shapes.append([full[0]] + ["1"] * (rank - 1))
        if r.random() < 0.2:
            self.shapes[1] = [full[0] + "+1", *full[1:]]
        self.staggered = self.shapes[1] != full
        names = [f"x{i}" for i in range(len(self.shapes))]
        shaped = r.random() < 0.6
        lines = []
        whole = ["x0"] if self.staggered else ["x0", "x1"]
        small = names[2:]
        for i in range(r.randrange(1, 7)):
            kind = r.random()
            a = r.choice(whole)
            if (kind < 0.1 or 0.4 < kind < 0.55) and shaped:
                lines.append(r.choice(SHAPED).format(t=f"t{i}", a=a))
                if lines[-1].startswith("t"):
                    whole.append(f"t{i}")
            elif kind < 0.25:
                e = r.choice(UNARY)
                lines.append(f"t{i} = " + e.format(*[a] * e.count("{}")))
                whole.append(f"t{i}")
            elif kind < 0.45:
                e = r.choice(BINARY)
                b = r.choice(whole + small)
                lines.append(f"t{i} = " + e.format(a, b))
                whole.append(f"t{i}")
            elif kind < 0.6:
                e = r.choice(WHOLE)
                lines.append(f"t{i} = " + e.format(*[a] * e.count("{}")))
                whole.append(f"t{i}")
            elif kind < 0.9:
                to, of = r.choice(PAIRS)
                if r.random() < 0.5:
                    to, of = of, to
                if self.staggered and r.random() < 0.6:
                    lines.append(f"{a}[...] += x1[1:] - x1[:-1]")
                elif r.random() < 0.6:
                    how, more = r.choice(["=", "+=", "-="]), r.choice(["", " * 2", " - 1"])
                    lines.append(f"{a}{to} {how} {r.choice(whole)}{of}{more}")
                else:
                    b = r.choice(whole)
                    lines.append(f"{a}{to} = {b}{of} + {r.choice(whole)}{to}")
            else:
                lines.append(f"{a}{r.choice(SLICES)} *= {r.choice(['2', '-1', '0.5'])}")
        ends = []
        for _ in range(r.randrange(1, 3)):
            e = r.choice(ENDS)
            ends.append(e.format(*[r.choice(whole)] * e.count("{}")))
        lines.append("return " + ", ".join(ends))
        self.source = f"def f(xp, {', '.join(names)}):\n" + "".join([f"    {line}\n" for line in lines])

    def function(self, xp):
        scope: dict = {"np": np}
        exec(self.source, scope)
        f = scope["f"]
        return lambda *args: f(xp, *args)

    def arguments(self, sizes, seed):
        rng = np.random.default_rng(seed)
        made = []
        for shape in self.shapes:
            lengths = [eval(e, dict(sizes)) for e in shape]
            made.append(rng.integers(-4, 5, lengths).astype(float))
        return made

    def sizes(self, k: int) -> dict:
        r = self.random
        choices = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 19, 20, 24, 25, 30, 31, 32, 33, 40, 50, 64]
        if k % 3 == 0:
            choices = choices[10:]
        return {name: r.choice(choices) for name in "nmk"}


def outcome(f, args):
    """What a call returns and leaves in its arguments, or the type of the error."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = f(*args)
    except (ValueError, IndexError, TypeError) as e:
        return type(e).__name__
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(x) for x in (*found, *args) if x is not None]


def same(a, b):
    """Are two outcomes the same?"""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    return all(
        x.shape == y.shape and x.dtype == y.dtype and np.allclose(x, y, rtol=1e-13, atol=1e-11, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def check(number, calls=9):
    """Call a random function with sizes; returns how many programs were made of templates."""
    import mirabelle as mb

    draft = Draft(number)
    plain, compiled = draft.function(np), mb.compile(draft.function(mb), sizes="any")
    for k in range(calls):
        sizes = draft.sizes(k)
        args = draft.arguments(sizes, k)
        expected = outcome(plain, [x.copy() for x in args])
        found = outcome(compiled, [mb.HostArray(x) for x in args])
        assert same(expected, found), f"function {number}, sizes {sizes}:\n{draft.source}\n{expected}\n{found}"
    return sum(type(p).__name__ == "Resized" for p in compiled.programs.values()), compiled.per_size
