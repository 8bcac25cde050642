"""Random programs as Python source, so that names, temporaries and reference counts are real.

A program runs once on NumPy and once on mirabelle; both keep a log of what `note` saw. While
it is drawn each line is tried on NumPy, so that every program is a valid one.
"""

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
REDUCTIONS = ["sum", "max", "min", "any", "all", "count_nonzero"]
LIMIT = 128  # elements of the largest array of a program


class Draft:
    """A program as far as it is drawn: its lines, and what its names are on NumPy."""

    def __init__(self, draw, reshapes, shared):
        self.draw = draw
        self.reshapes = reshapes
        self.shared = shared
        self.lines = []
        self.space = {"xp": np, **operations(numpys, [])}
        self.own = set()
        self.made = 0

    @property
    def names(self):
        return [n for n, v in self.space.items() if n[0] == "n" and n[1:].isdigit()]

    def pick(self, choices):
        return self.draw(st.sampled_from(list(choices)))

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
        form = self.draw(st.integers(1, 5 if depth else 1))
        if form == 1:
            name = self.pick(self.arrays())
            return name + (self.pick(INDICES) if self.draw(st.booleans()) else "")
        if form == 2:
            return self.pick(UNARY).format(self.expression(depth - 1))
        return self.pick(BINARY).format(self.expression(depth - 1), self.operand(depth - 1))

    def operand(self, depth):
        """The same, or a scalar, or a 0-d result."""
        form = self.draw(st.integers(0, 3))
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

    # One method a kind of statement

    def create(self):
        seed, shape = self.draw(st.integers(0, 5)), self.pick(SHAPES)
        dtype = self.pick(["f8", "f8", "i8", "f4", "i4", "?"])
        name = self.fresh()
        if self.shared and self.draw(st.booleans()):
            other = self.fresh()
            self.attempt(f"{name}, {other} = shared({seed}, {shape}, {dtype!r})")
            return
        self.attempt(f"{name} = new({seed}, {shape}, {dtype!r})")
        self.own.add(name)

    def bind(self):
        text = self.expression(3)
        if self.usable(text) is not None:
            target = self.fresh() if self.draw(st.booleans()) or not self.names else self.pick(self.names)
            self.own.discard(target)
            self.attempt(f"{target} = {text}")

    def view(self):
        source = self.pick(self.arrays())
        how = self.pick([*INDICES, ".T", ".T", ".transpose()", ".mT"])
        if self.reshapes and source in self.own and self.draw(st.booleans()):
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
        index = self.pick(["[...]", "[:]", *INDICES])
        text = self.operand(2)
        try:
            part, value = self.value(dest + index), self.value(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        # What an out-of-range float becomes as an integer is not defined.
        if np.can_cast(np.result_type(value), part.dtype, "same_kind"):
            self.attempt(f"{dest}{index} = {text}")

    def update(self):
        dest = self.pick(self.arrays())
        index = self.pick(["", "", *INDICES])
        operator, text = self.pick(["+", "-", "*"]), self.operand(2)
        try:
            result = np.result_type(self.value(f"{dest}{index} {operator} {text}"))
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        # NumPy's elements are scalars, which `b[0] += 1` replaces and casts back as it likes; ours
        # are arrays, whose in-place operators refuse what they cannot hold.
        if np.can_cast(result, self.space[dest].dtype, "same_kind"):
            self.attempt(f"{dest}{index} {operator}= {text}")

    def reduce(self):
        name, axis = self.pick(REDUCTIONS), self.pick([None, 0, -1, 1])
        operand = self.expression(2)
        if not np.ndim(self.usable(operand)):
            return
        text = f"xp.{name}({operand}, axis={axis}, keepdims={self.draw(st.booleans())})"
        value = self.usable(text)
        # The order of a floating sum is ours to choose: `total` compares those to rounding.
        if value is not None and (name != "sum" or value.dtype.kind in "iu"):
            self.attempt(f"{self.fresh()} = {text}")

    def total(self):
        source = self.pick(self.arrays())
        if np.all(np.abs(self.space[source].astype(float)) < 1e100):
            self.attempt(f"total({source})")

    def look(self):
        self.attempt(f"{self.pick(['note', 'note', 'force'])}({self.pick(self.names)})")


STATEMENTS = [
    "create", "bind", "bind", "bind", "view", "view", "rename", "copy", "delete", "write", "write",
    "write", "update", "update", "reduce", "total", "look",
]  # fmt: skip


@st.composite
def programs(draw, reshapes=True, shared=False, lines=14):
    draft = Draft(draw, reshapes, shared)
    draft.create()
    for _ in range(draw(st.integers(1, lines))):
        if not draft.arrays():
            draft.create()
        getattr(draft, draft.pick(STATEMENTS))()
    draft.lines += [f"note({n})" for n in draft.names]
    body = "".join(f"    {line}\n" for line in draft.lines)
    return f"def program(xp, new, shared, copy, note, force, total):\n{body}"


def operations(make, log):
    """What a program may call besides the array functions; `log` receives what it sees."""

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
        log.append((np.sum(values) * (1e-5 if x.dtype == "f4" else 1e-12), np.array(contents(result))))

    return {
        "new": lambda seed, shape, dtype: make(ordinary(dtype, shape, seed)),
        "shared": shared,
        "copy": lambda x: x.copy(),
        "note": note,
        "force": force,
        "total": total,
    }


def numpys(x):
    return x


def run(source, xp, make):
    """Execute a program; returns its log."""
    space, log = {}, []
    exec(source, space)
    with np.errstate(all="ignore"), mb.allow_scalar():
        space["program"](xp=xp, **operations(make, log))
    return log


def assert_logs_agree(log, expected):
    assert len(log) == len(expected)
    for (how, mine), (_, numpys) in zip(log, expected, strict=True):
        assert mine.dtype == numpys.dtype and mine.shape == numpys.shape
        if how == "exact":
            np.testing.assert_array_equal(mine, numpys)
        else:
            np.testing.assert_allclose(mine, numpys, rtol=0, atol=how)
