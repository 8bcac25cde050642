"""Random programs as Python source, so that names, temporaries and reference counts are real.

A program runs once on NumPy and once on mirabelle; both keep a log of what `note` saw. While
it is drawn each line is tried on NumPy, so that every program is a valid one.
"""

import random

import numpy as np
from compare import contents
from hypothesis import strategies as st
from samples import ordinary

import mirabelle as mb

SHAPES = [(4,), (3, 4), (4, 4), (2, 3, 4), (1, 4), (0, 4), (4, 1)]
INDICES = [
    "[1:]", "[:-1]", "[::2]", "[::-1]", "[-1]", "[0]", "[..., 1:3]", "[..., ::-1]", "[..., 0]",
    "[None]", "[1:, 1:]", "[:-1, ::-2]", "[..., None]", "[1:3]", "[2:1]", "[()]",
]  # fmt: skip
UNARY = [
    "-{}",
    "abs({})",
    "xp.sqrt(abs({}))",
    "xp.exp(-abs({}))",
    "xp.sin({})",
    "xp.square({})",
    "xp.floor({})",
]
BINARY = [
    "({} + {})", "({} - {})", "({} * {})", "xp.maximum({}, {})", "xp.minimum({}, {})",
    "({} < {})", "({} == {})", "xp.where({} > 0, {}, 1)",
]  # fmt: skip
# With arrays, lists and masks in them; none names an element twice where it is written.
PICKS = [
    "[[0, 2]]", "[[-1, 0]]", "[..., [1, 0]]", "[[1], ..., [0]]", "[[0, 1], [1, 0]]",
    "[1:, [2, 0]]", "[[True, False, True]]", "[[]]", "[[1, 0], 1:]", "[[[0], [1]], [1, 2]]", "[None, [0, 1]]",
]  # fmt: skip
REPEATED = ["[[0, 2, 0]]", "[..., [1, 1]]"]
AXES = [None, 0, -1, 1, (0, 1), (0, -1), ()]
# The steps of recurrences over `k`: what is named before a write, and the write.
STEPS = [
    ("", "{x}[..., k] = {x}[..., k - 1] * 0.5 + {y}[..., k]"),
    ("", "{x}[k] = {x}[k - 1] + {y}[-k]"),
    ("", "{x}[k, 1:] -= {x}[k - 1, :-1]"),
    ("", "{x}[..., k:] = {x}[..., k:] + {x}[..., k - 1 : k] * 2"),
    ("", "{x}[k] = xp.max({x}[:k], axis=0)"),
    ("{t} = {x}[..., k - 1] * 2 + {y}[..., k]", "{x}[..., k] = {t} - {x}[..., k]"),
    ("{t} = xp.max({x}[k - 1] * 2, axis=-1)", "{x}[k] = {x}[k - 1] - {t}"),
    ("{t} = {y} - {t} * 0.5", "{x}[k] = {t}[k - 1]"),
    ("{t} = {t} * 0.5 + xp.minimum({y}, {t})", "{x}[...] = {t}"),
    ("{t} = {x}[k - 1]", "{x}[k], {x}[k - 1] = {t} + 1, {x}[k]"),
    ("{t} = {x}[[k - 1, 0]]", "{x}[k] = {t}[0] * 0.5"),
]
# Elements at other places; `k` is any small number.
MOVES = [
    "relaid({}, {k})",
    "relaid({}, {k})",
    "relaid({}.T, {k})",
    "xp.roll({}, {k}, axis=0)",
    "xp.roll({}, -{k}, axis=-1)",
    "xp.roll({}, {k})",
    "xp.sort({}, axis=0)",
    "xp.sort({}, axis=-1)",
    "xp.flip({}, axis=0)",
    "xp.concat([{}, {}], axis=0)",
    "xp.concat([{}, {}], axis=-1)",
    "xp.stack([{}, {}])",
    "xp.take(xp.stack([{}, {}]), [0, -1, 0], axis=0)",
    "xp.diff({}, axis=0)",
    "copy(xp.reshape({}, (-1,)))",
    "copy(xp.reshape({}, (2, -1)))",
    "xp.argmax({}, axis=0)",
    "xp.searchsorted(xp.sort(xp.reshape({}, (-1,))), {})",
    "xp.cumulative_sum(xp.floor({}), axis=0)",
    "xp.unique({})",
    "xp.where({}[:1] > 0, {}, 0)",
    "xp.repeat({}, 2, axis=0)",
    "xp.tile({}, 2)",
    "xp.nonzero({})[-1]",
    "xp.isin({}, {})",
]
REDUCTIONS = ["sum", "max", "min", "any", "all", "count_nonzero"]
# What a program is given: the array functions, and `operations`.
NAMES = ("xp", "new", "shared", "copy", "note", "force", "total", "relaid")
LIMIT = 128  # elements of the largest array of a program


class Drawn:
    """Choices that Hypothesis makes."""

    def __init__(self, draw):
        self.draw = draw

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def pick(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def coin(self):
        return self.draw(st.booleans())


class Rolled:
    """Choices of a generator of random numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, low, high):
        return self.random.randint(low, high)

    def pick(self, choices):
        return self.random.choice(list(choices))

    def coin(self):
        return self.random.random() < 0.5


class Draft:
    """A program as far as it is drawn: its lines, and what its names are on NumPy."""

    def __init__(self, choices, reshapes=True, shared=False):
        self.number, self.pick, self.coin = choices.number, choices.pick, choices.coin
        self.reshapes = reshapes
        self.shared = shared
        self.lines = []
        self.space = {"xp": np, **operations(numpys, [])}
        self.own = set()
        self.made = 0

    @property
    def names(self):
        return [n for n, v in self.space.items() if n[0] == "n" and n[1:].isdigit()]

    def fresh(self):
        self.made += 1
        return f"n{self.made}"

    def arrays(self):
        return [n for n in self.names if isinstance(self.space[n], np.ndarray) and self.space[n].ndim]

    def value(self, text):
        with np.errstate(all="ignore"):
            return eval(text, self.space)

    def attempt(self, line):
        """Add a line if NumPy takes it."""
        try:
            with np.errstate(all="ignore"):
                exec(line, self.space)
        except (ValueError, TypeError, IndexError, OverflowError):
            return False
        self.lines.append(line)
        return True

    def expression(self, depth=2):
        """The text of an expression with an array in it."""
        form = self.number(1, 5 if depth else 1)
        if form == 1:
            name = self.pick(self.arrays())
            return name + (self.index() if self.coin() else "")
        if form == 2:
            return self.pick(UNARY).format(self.expression(depth - 1))
        return self.pick(BINARY).format(self.expression(depth - 1), self.operand(depth - 1))

    def operand(self, depth):
        """The same, or a scalar, or a 0-d result."""
        form = self.number(0, 3)
        if form == 0:
            return repr(self.pick([0, 1, 2, 3, 0.5, -1.5]))
        return self.pick(self.names) if form == 1 else self.expression(depth)

    def usable(self, text):
        """The value of an expression if it is an array small enough, else None."""
        try:
            value = self.value(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        return value if isinstance(value, (np.ndarray, np.generic)) and value.size <= LIMIT else None

    def index(self, write=False):
        """The text of an index of any kind; one to write to names no element twice."""
        form = self.number(0, 3 if write else 5)
        if form <= 1:
            return self.pick(INDICES)
        if form == 2:
            return self.pick(PICKS)
        if form == 3:
            return f"[{self.mask()}]"
        if form == 4:
            return self.pick(REPEATED)
        name = self.pick(self.arrays())
        kind = self.space[name].dtype.kind
        return f"[{self.pick(['', '..., ', '1:, '])}{name} % 3]" if kind == "i" else f"[{self.mask()}]"

    def mask(self):
        name = self.pick(self.arrays())
        return self.pick(["{} > 0", "{} < 1", "{}[0] > 0", "abs({}) == 1", "{}.T > 0.5"]).format(name)

    # One method a kind of statement

    def create(self):
        # (NumPy takes an empty mask of ours for a list of indices.)
        shapes = [s for s in SHAPES if 0 not in s] if self.shared else SHAPES
        seed, shape = self.number(0, 5), self.pick(shapes)
        dtype = self.pick(["f8", "f8", "i8", "f4", "i4", "?"])
        name = self.fresh()
        if self.shared and self.coin():
            other = self.fresh()
            self.attempt(f"{name}, {other} = shared({seed}, {shape}, {dtype!r})")
            return
        self.attempt(f"{name} = new({seed}, {shape}, {dtype!r})")
        self.own.add(name)

    def bind(self):
        text = self.expression(3)
        if self.usable(text) is not None:
            target = self.fresh() if self.coin() or not self.names else self.pick(self.names)
            self.own.discard(target)
            self.attempt(f"{target} = {text}")

    def view(self):
        source = self.pick(self.arrays())
        how = self.pick([self.index(), *INDICES, ".T", ".T", ".transpose()", ".mT"])
        if self.reshapes and source in self.own and self.coin():
            how = self.pick([".reshape(-1)", ".reshape(-1, 2)", ".ravel()", ".reshape(2, -1)[1]"])
        self.attempt(f"{self.fresh()} = {source}{how}")

    def rename(self):
        source, target = self.pick(self.names), self.pick([*self.names, self.fresh()])
        if source != target:
            self.own.discard(target)
            self.attempt(f"{target} = {source}")

    def copy(self):
        self.attempt(f"{self.fresh()} = copy({self.pick(self.arrays())})")

    def delete(self):
        if len(self.names) > 1:
            self.attempt(f"del {self.pick(self.names)}")

    def write(self):
        dest = self.pick(self.arrays())
        index = self.pick(["[...]", "[:]", self.index(True), self.index(True)])
        text = self.operand(2)
        if " > " in index or " < " in index or " == " in index:
            text += " + 0"  # (NumPy reads what it has just written where a mask is, and the value a view)
        try:
            part, value = self.value(dest + index), self.value(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        # What an out-of-range float becomes as an integer is not defined.
        if np.can_cast(np.result_type(value), part.dtype, "same_kind") and fits(value, part):
            self.attempt(f"{dest}{index} = {text}")

    def update(self):
        dest = self.pick(self.arrays())
        index = self.pick(["", self.index(True)])
        operator, text = self.pick(["+", "-", "*"]), self.operand(2)
        try:
            part, result = self.value(dest + index), self.value(f"{dest}{index} {operator} {text}")
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        # NumPy's elements are scalars, which `b[0] += 1` replaces and casts back as it likes; ours
        # are arrays, whose in-place operators refuse what they cannot hold.
        if np.can_cast(result.dtype, self.space[dest].dtype, "same_kind") and fits(result, part):
            self.attempt(f"{dest}{index} {operator}= {text}")

    def reduce(self):
        name, axis = self.pick(REDUCTIONS), self.pick(AXES)
        operand = self.expression(2)
        if not np.ndim(self.usable(operand)):
            return
        if name == "sum":  # of whole numbers, which is exact in any order
            operand = f"xp.floor({operand})"
        text = f"xp.{name}({operand}, axis={axis}, keepdims={self.coin()})"
        value = self.usable(text)
        if value is not None and (name != "sum" or self.whole(operand)):
            self.attempt(f"{self.fresh()} = {text}")

    def whole(self, text):
        value = np.abs(self.value(text).astype(float))
        return bool(np.all(value < 1e4))

    def swap(self):
        """Two parts that change places, as far as NumPy's views let them."""
        how = [*INDICES, *PICKS]
        a, b = (self.pick(self.arrays()) + self.pick(how) for _ in range(2))
        x, y = self.usable(a), self.usable(b)
        if x is not None and y is not None and x.dtype == y.dtype and fits(x, y) and fits(y, x):
            self.attempt(f"{a}, {b} = {b}, {a}")

    def loop(self):
        """A recurrence over the first or the last dimension, with names in its steps or without."""
        before, step = self.pick(STEPS)
        x, y, t = self.pick(self.arrays()), self.pick(self.arrays()), self.fresh()
        if self.space[x].dtype.kind != "f" or self.space[y].dtype.kind not in "fi":
            return
        body = "; ".join(s.format(x=x, y=y, t=t) for s in (before, step) if s)
        loop = f"for k in range(1, {self.number(2, 4)}): {body}"
        if before:
            loop = f"{t} = {self.pick([x, y])} * 1\n    {loop}"
        # One that fails on the way has written something: it is tried on copies first.
        trial = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.space.items()}
        try:
            with np.errstate(all="ignore"):
                exec(loop.replace("\n    ", "\n"), trial)
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        for line in loop.split("\n    "):
            self.attempt(line)

    def total(self):
        source = self.pick(self.arrays())
        if np.all(np.abs(self.space[source].astype(float)) < 1e100):
            self.attempt(f"total({source})")

    def move(self):
        """What takes elements to other places: on several processes, to other processes."""
        name = self.pick(self.arrays())
        text = self.pick(MOVES).format(name, self.pick(self.arrays()), k=self.number(0, 7))
        if self.usable(text) is not None:
            self.attempt(f"{self.fresh()} = {text}")

    def product(self):
        """A matrix product of whole numbers, which is exact in any order."""
        a, b = (f"xp.floor({self.pick(self.arrays())}{self.pick(['', '', '.T'])})" for _ in range(2))
        text = f"{a} @ {b}"
        value = self.usable(text)
        if value is not None and value.dtype.kind == "f" and self.whole(a) and self.whole(b):
            self.attempt(f"{self.fresh()} = {text}")

    def look(self):
        self.attempt(f"{self.pick(['note', 'note', 'force'])}({self.pick(self.names)})")


def fits(value, part):
    """NumPy lets anything be written to no elements of an index with arrays."""
    return np.size(part) or np.size(value) or np.shape(value) == np.shape(part)


STATEMENTS = [
    "create", "bind", "bind", "bind", "view", "view", "rename", "copy", "delete", "write", "write",
    "write", "update", "update", "reduce", "reduce", "total", "look", "swap", "loop", "loop",
]  # fmt: skip


@st.composite
def programs(draw, reshapes=True, shared=False, lines=14):
    return written(Draft(Drawn(draw), reshapes, shared), lines)


def written(draft, lines, statements=STATEMENTS):
    """The text of a program, of so many lines at most or a few more."""
    draft.create()
    for _ in range(draft.number(1, lines)):
        if not draft.arrays():
            draft.create()
        getattr(draft, draft.pick(statements))()
    draft.lines += [f"note({n})" for n in draft.names]
    body = "".join(f"    {line}\n" for line in draft.lines)
    return f"def program({', '.join(NAMES)}):\n{body}"


def operations(make, log, relaid=None):
    """What a program may call besides the array functions; `log` receives what it sees.

    `relaid` gives the same elements in another layout.
    """

    def shared(seed, shape, dtype):
        x = ordinary(dtype, shape, seed)
        return (mb.asarray(x) if make is not numpys else x), x

    def note(x):
        log.append(("exact", np.array(contents(x))))

    def force(x):
        if isinstance(x, mb.AbstractArray):
            mb.materialize(x)

    def total(x):
        values = np.abs(contents(x).astype("f8"))
        result = (mb.sum(x) if isinstance(x, mb.AbstractArray) else np.sum(x)) * 1.0
        rounding = {"float16": 1e-2, "float32": 1e-5}.get(x.dtype.name, 1e-12)
        log.append((np.sum(values) * rounding, np.array(contents(result))))

    return {
        "new": lambda seed, shape, dtype: make(ordinary(dtype, shape, seed)),
        "shared": shared,
        "copy": lambda x: x.copy(),
        "note": note,
        "force": force,
        "total": total,
        "relaid": relaid or (lambda x, k: x.copy()),
    }


def numpys(x):
    return x


def run(source, xp, make, relaid=None):
    """Execute a program; returns its log."""
    space, log = {}, []
    exec(source, space)
    with np.errstate(all="ignore"), mb.allow_scalar():
        space["program"](xp=xp, **operations(make, log, relaid))
    return log


def assert_logs_agree(log, expected):
    assert len(log) == len(expected)
    for (how, mine), (_, numpys) in zip(log, expected, strict=True):
        assert mine.dtype == numpys.dtype and mine.shape == numpys.shape
        if how == "exact":
            np.testing.assert_array_equal(mine, numpys)
        else:
            np.testing.assert_allclose(mine, numpys, rtol=0, atol=how)
