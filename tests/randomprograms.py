"""Random programs of all dtypes as Python source: scalars of all kinds, constant tables, index arguments,
masks, views, writes, `out=` and gradients. One source is run on NumPy and on mirabelle, eager and compiled.

A program is `source` and the NumPy arrays it is called with (see `Program.script`, which can be pasted). While
it is drawn each line is tried on NumPy: so a program is a valid one, but for its last line now and then, which
NumPy refuses and mirabelle must refuse, too.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings

import numpy as np
from samples import DTYPES, edges, ordinary

import mirabelle as mb

REFUSALS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, FloatingPointError)
LARGEST = 160  # elements of an array of a program
SHAPES = [(4,), (4,), (3, 4), (3, 4), (4, 4), (2, 3, 4), (1, 4), (4, 1), (0, 4), (1,), ()]
SCALARS = [
    "-1", "0", "1", "2", "3", "-2", "100", "200", "-1.0", "0.0", "-0.0", "0.5", "2.0", "1.0", "1e30", "True",
    "False", "1j", "(2-1j)", "np.int8(-1)", "np.int64(-1)", "np.int64(2)", "np.uint8(3)", "np.uint64(1)",
    "np.float16(-1)", "np.float32(0.5)", "np.float64(-1)", "np.float64(2)", "np.bool_(True)",
    "np.complex64(1j)", "2**40", "float('inf')", "float('nan')",
]  # fmt: skip
UNARY = [
    "(-{})", "(-{})", "(+{})", "abs({})", "(~{})", "xp.sqrt({})", "xp.exp({})", "xp.sin({})", "xp.square({})",
    "xp.floor({})", "xp.trunc({})", "xp.round({})", "xp.sign({})", "xp.reciprocal({})", "xp.isnan({})",
    "xp.signbit({})", "xp.logical_not({})", "xp.conj({})", "(xp.real({}) + 0)", "(xp.imag({}) + 0)",
    "xp.isfinite({})",
]  # fmt: skip
BINARY = [
    "({} + {})", "({} + {})", "({} - {})", "({} - {})", "({} * {})", "({} * {})", "({} / {})", "({} / {})",
    "({} // {})", "({} % {})", "({} ** {})", "({} & {})", "({} | {})", "({} ^ {})", "({} << {})", "({} >> {})",
    "xp.maximum({}, {})", "xp.minimum({}, {})", "({} < {})", "({} >= {})", "({} == {})", "({} != {})",
    "xp.logical_and({}, {})", "xp.logical_xor({}, {})", "xp.copysign({}, {})", "xp.hypot({}, {})",
    "xp.where({} > 1, {}, 1)", "xp.where({}, {}, -1)",
]  # fmt: skip
# What the rules of the passes look for, again and again.
NESTED = [
    "(-(-{}))", "(-{0} + {1})", "({0} - (-{1}))", "({0} + 1 + 2)", "({0} * 2 * 3)", "(-({0} - {1}))",
    "({0} * -1)", "({0} * -1.0)", "({0} / -1)", "({0} / 2)", "({0} - 0)", "(0 - {0})", "({0} + 0)", "({0} * 0)",
    "({0} ** 1)", "({0} ** 2)", "({0} ** 0)", "({0} - {0})", "({0} // 1)", "abs(-{0})", "abs(abs({0}))",
    "xp.square(-{0})", "(~~{0})", "xp.logical_not({0} < {1})", "xp.logical_not({0} == {1})",
    "xp.maximum({0}, {0})", "({0} ^ {0})", "({0} & -1)", "xp.where(xp.logical_not({0} > 1), {0}, {1})",
    "({0} * 1.0 * 2)", "(0.5 * ({0} / 4))", "(1 * {0} + 0 * {1})", "{0}.astype('f4').astype('f8')",
    "{0}.astype('i2').astype('i8')", "{0}.astype('c16')", "xp.conj(xp.conj({0}))",
    "({0} + xp.real(xp.conj({0})))",
]  # fmt: skip
INDICES = [
    "[1:]", "[:-1]", "[::2]", "[::-1]", "[-1]", "[0]", "[..., 1:3]", "[..., ::-1]", "[..., 0]", "[None]",
    "[1:, 1:]", "[:-1, ::-2]", "[..., None]", "[1:3]", "[2:1]", "[()]", "[1:2]", "[..., :1]",
]  # fmt: skip
PICKS = [
    "[[0, 2]]", "[[-1, 0]]", "[..., [1, 0]]", "[[0, 1], [1, 0]]", "[1:, [2, 0]]", "[[]]",
    "[[[0], [1]], [1, 2]]",
]  # fmt: skip
MASKS = ["{} > 0", "{} == 1", "xp.isfinite({})", "~({} > 1)", "abs({}) < 1"]
TAKEN = [
    "{0}[{1}]", "xp.take({0}, {1}, axis=0)", "{0}[..., {1}]", "{0}[{1}] * 2 - {0}[{1}]", "{0}[{1}][::-1]",
]  # fmt: skip
STEPS = [
    "{x}[..., k] = {x}[..., k - 1] + {y}[..., k]", "{x}[k] = {y}[k - 1] * 2", "{x}[k:] += {x}[k - 1]",
]  # fmt: skip
VIEWS = [
    "{}.T", "{}.mT", "xp.flip({})", "xp.flip({}, axis=0)", "xp.asarray({})", "xp.squeeze({})",
    "xp.expand_dims({}, axis=0)", "xp.broadcast_to({}, (2, *{}.shape))", "xp.moveaxis({}, 0, -1)",
    "{}.astype({}.dtype, copy=False)", "{}.astype({}.dtype)", "{}.real", "xp.swapaxes({}, 0, -1)",
    "xp.atleast_2d({})", "{}.copy()", "xp.positive({})", "xp.rot90({})", "xp.diagonal({})", "xp.fliplr({})",
    "xp.ravel({})", "xp.reshape({}, (-1,))", "{}.reshape(2, -1)", "xp.asarray({}, copy=True)",
    "xp.split({}, 2)[0]", "xp.roll({}, 1)", "{}.flatten()", "xp.transpose({})", "{}.swapaxes(0, -1)",
    "xp.conj({})", "xp.require({})", "xp.ascontiguousarray({})", "xp.atleast_1d({})", "xp.nan_to_num({})",
    "xp.array({})", "xp.asanyarray({})", "xp.unstack({})[0]", "xp.take({}, 0, axis=0)",
    "xp.where(True, {}, {})", "{}.conj()",
]  # fmt: skip
# Whether these are views depends on how NumPy has laid the array out: asked of arrays in C's order only.
RELAYING = ("ravel", "reshape", "require", "contiguous")
OUT = [
    "xp.add({a}, {b}, out={x})", "xp.multiply({a}, {b}, out={x})", "xp.subtract({a}, {s}, out={x})",
    "xp.negative({a}, out={x})", "xp.maximum({a}, {b}, out={x}[...])", "xp.add({x}, {s}, out={x}[::-1])",
    "xp.square({x}, out={x})", "xp.multiply({x}, {s}, out={x}.T)", "xp.copyto({x}, {a})",
    "xp.clip({a}, 0, 2, out={x})", "xp.add({x}[1:], {x}[:-1], out={x}[1:])",
]  # fmt: skip
REDUCED = [
    "xp.max({}, axis={})", "xp.min({}, axis={})", "xp.any({}, axis={})", "xp.all({}, axis={})",
    "xp.count_nonzero({}, axis={})", "xp.sum(xp.floor({} % 8), axis={})", "xp.sum({} > 1, axis={})",
    "xp.max(xp.max({}, axis=0), axis={})", "xp.any(xp.any({}, axis=-1), axis={})",
    "xp.count_nonzero(xp.count_nonzero({}, axis=0), axis={})",
    "xp.sum(xp.sum({} > 1, axis=0), axis={})", "xp.prod({} > 0, axis={})", "xp.mean(xp.floor({} % 8), axis={})",
    "xp.min(xp.broadcast_to({}, (2, 3, 4)), axis={})", "xp.sum(xp.broadcast_to({} > 1, (2, 3, 4)), axis={})",
    "xp.argmax({}, axis={})", "xp.argmin({}, axis={})", "xp.sum({}, axis={})", "(xp.sum({}, axis={}) / -1)",
    "xp.prod({} % 3, axis={})",
]  # fmt: skip
AXES = [None, 0, -1, (0, -1), (), 1]
MOVED = [
    "xp.sort({}, axis=-1)", "xp.sort({}, axis=0)", "xp.argsort({}, axis=-1, kind='stable')",
    "xp.concat([{}, {}], axis=0)", "xp.stack([{}, {}])", "xp.stack([{}, {}], axis=-1)",
    "xp.roll({}, 1, axis=0)", "xp.take({}, [0, -1, 0], axis=0)", "xp.diff({}, axis=0)",
    "xp.repeat({}, 2, axis=0)", "xp.tile({}, 2)", "xp.cumulative_sum(xp.floor({} % 8), axis=0)",
    "xp.take_along_axis({0}, xp.argsort({0}, axis=-1, kind='stable'), axis=-1)", "xp.outer({}, {})",
    "xp.floor({} % 4) @ xp.floor({}.T % 4)", "xp.searchsorted(xp.arange(-4.0, 4.0), {})", "xp.clip({}, 0, 2)",
    "xp.clip({}, 0, 100).astype('u1')", "xp.stack([{0}, {1}])[0] - xp.stack([{0}, {1}])[1]", "xp.tril({})",
    "(xp.concat([{0}, {1}])[1:] + xp.concat([{0}, {1}])[:-1])", "xp.unique({})", "xp.median({})",
    "xp.isin({}, {})", "xp.pad({}, 1)", "xp.triu({})", "xp.kron({}, {})",
]  # fmt: skip
TABLES = [
    "xp.arange(4)", "xp.arange(4.0)", "xp.arange(12).reshape(3, 4)", "xp.linspace(0.0, 1.0, 4)",
    "xp.ones(4, dtype='u1')", "xp.full((3, 4), -1)", "xp.zeros((4,), dtype='f4')", "xp.eye(4)",
    "xp.sin(xp.arange(4.0) * 0.5)", "xp.arange(4, dtype='u1')", "xp.arange(4, dtype='f2')[::-1]",
    "xp.stack([xp.arange(4), xp.arange(4)])", "xp.full(4, 1j)", "xp.arange(8)[4:]",
    "xp.cumulative_sum(xp.arange(4))", "xp.ones((4, 4), dtype='?')", "xp.arange(3, -1, -1)", "xp.tri(4)",
]  # fmt: skip
# Scalar functions of `v`, a float64 vector of distinct numbers: `i` is an index array, `c` a table.
LOSSES = [
    "xp.sum(v * {c})", "xp.sum((v * 2 - {c}) ** 2)", "xp.sum(xp.sin(v) * v)", "xp.sum(v[{i}] ** 2)",
    "xp.sum(v[{i}] * {c})", "xp.sum(xp.sort(v) * {c})", "xp.median(v * v)",
    "xp.sum(xp.take(v, xp.argsort(v)) * {c})", "xp.sum(xp.where(v > 0, v * v, -v))", "xp.max(v * {c})",
    "xp.sum(v[::-1] * v)", "xp.sum(xp.exp(v[1:] - v[:-1]))", "xp.sum({c}[{i}] * v)", "xp.prod(v)",
    "xp.sum(xp.outer(v, v) @ {c})", "xp.sum(xp.cumulative_sum(v) * {c})",
    "xp.sum(xp.stack([v, v * -1])[:, {i}] * {c})", "xp.sum(xp.maximum(v, {c}) * 3)",
    "xp.sum(v * -1.0 + -v / -2)", "xp.sum(xp.concat([v, {c}]) ** 2)", "xp.mean(v / (v * v + 1))",
    "xp.sum(xp.roll(v, 1) * {c})", "xp.min(v) * v[0]", "xp.sum(xp.take({c}, {i}) * v ** 2)",
    "xp.sum(xp.sort(v * {c})[{i}] * {c})", "xp.sum(abs(v) ** 1.5)",
]  # fmt: skip
VECTORS = ["xp.arange(4.0)", "xp.sin(xp.arange(4.0) + 1)", "np.array([1.0, -2.0, 3.0, 0.5])", "xp.ones(4)"]
INDEXES = [
    "xp.asarray([3, 1, 2, 0])", "np.array([0, 0, 1, 3])", "[3, 2, 1, 0]", "xp.arange(4)[::-1]",
    "np.array([-1, 1, 2, 0], 'i1')",
]  # fmt: skip


class Program:
    """Lines of a function body, and the arrays it is called with."""

    def __init__(self, number, given, constants, lines, refused=""):
        self.number = number
        # name → (what makes an array of NumPy's, by which seed)
        self.given = given
        self.constants = constants
        self.lines = lines
        # What NumPy says of the last line, if it refuses it.
        self.refused = refused

    def shortened(self, lines):
        return Program(self.number, self.given, self.constants, lines, self.refused)

    @property
    def returned(self):
        """The names that are returned: all that stay bound."""
        bound = []
        for line in self.lines:
            name = line.split(" = ")[0]
            if name.isidentifier() and name not in bound:
                bound.append(name)
            elif line.startswith("del ") and line[4:] in bound:
                bound.remove(line[4:])
        return bound

    @property
    def source(self):
        """The function. (What is returned twice would be one array: each is returned once.)"""
        names = [*self.returned, *[n for n in self.given if any(n in line for line in self.lines)]]
        body = "".join(f"    {line}\n" for line in self.lines)
        head = f"def program(xp, gradient, {', '.join(self.given)}):\n"
        return f"{head}{body}    return {', '.join([*names, '()'])}\n"

    def arrays(self, turn=0):
        """The arguments of a call, by name."""
        return {name: argument(*how, turn) for name, how in self.given.items()}

    @property
    def halves(self):
        """Is there anything of float16 in it?"""
        given = [*self.constants.values(), *self.arrays().values()]
        return any(x.dtype == np.float16 for x in given) or "f2" in self.source or "float16" in self.source

    @property
    def script(self):
        """A script that shows what the program gives on NumPy, eager and compiled."""
        told = "".join(f"{n} = {told_array(x)}\n" for n, x in {**self.constants, **self.arrays()}.items())
        given = ", ".join(self.given)
        return (
            f"import numpy as np\nimport mirabelle as mb\nfrom randomprograms import differences\n\n"
            f"# program {self.number}\n{told}\n{self.source}\n"
            f"compiled = mb.compile(lambda *given: program(mb, mb.autodiff.gradient, *given))\n"
            f"print(program(np, differences, *[x.copy() for x in ({given},)]))\n"
            f"print(program(mb, mb.autodiff.gradient, *[mb.asarray(x.copy()) for x in ({given},)]))\n"
            f"print(compiled(*[mb.asarray(x.copy()) for x in ({given},)]))\n"
        )

    def function(self):
        space = {"np": np, **self.constants}
        exec(compile(self.source, f"<program {self.number}>", "exec"), space)
        return space["program"]


def told_array(x):
    values = repr(x.tolist()).replace("nan", "float('nan')").replace("inf", "float('inf')")
    return f"np.array({values}, {x.dtype.str[1:]!r}).reshape({x.shape})"


def argument(kind, dtype, shape, seed, turn):
    """An array that a program is called with; another one of its kind in another turn."""
    seed += 100 * turn
    if kind == "index":
        n = int(np.prod(shape))
        return (np.random.default_rng(seed).permutation(n) % 4 - 4 * (seed % 2)).reshape(shape).astype(dtype)
    if kind == "distinct":
        n = int(np.prod(shape))
        order = np.random.default_rng(seed).permutation(n)
        return ((order - n / 3) / 2 + 0.1).reshape(shape)
    if kind == "edges":
        values = edges(dtype)
        return np.random.default_rng(seed).choice(values, shape)
    return ordinary(dtype, shape, seed)


class Writer:
    """A program as far as it is drawn: its lines, and what its names are on NumPy."""

    def __init__(self, number):
        self.dice = random.Random(number)
        self.number = number
        self.lines, self.given, self.constants = [], {}, {}
        self.space = {"np": np, "xp": np, "gradient": differences}
        self.made = itertools.count(1)
        # (Only now and then: what an infinite number leaves behind hides other mistakes.)
        self.sharp = self.dice.random() < 0.3

    def pick(self, choices):
        return self.dice.choice(choices)

    def chance(self, p):
        return self.dice.random() < p

    def names(self, writable=False):
        named = [n for n in self.space if n[0] in "an" and n[1:].isdigit()]
        found = [n for n in named if isinstance(self.space[n], np.ndarray)]
        return [n for n in found if self.space[n].flags.writeable] if writable else found

    def array(self):
        return self.pick(self.names())

    def dtype(self):
        return self.pick(DTYPES)

    def fresh(self):
        return f"n{next(self.made)}"

    def attempt(self, line):
        """Add a line if NumPy takes it."""
        if "//" in line and (self.sharp or "inf" in line):
            return False  # (see `quiet`)
        if "**" in line and "axis=" in line:
            return False  # (NumPy's numbers have powers of other dtypes than its arrays)
        try:
            trial = self.replayed([*self.lines, line])
        except REFUSALS:
            return False
        if any(isinstance(x, np.ndarray) and x.size > LARGEST for x in trial.values()):
            return False
        self.space = trial
        self.lines.append(line)
        return True

    def replayed(self, lines):
        """What the names are after these lines. (A line that fails half-way has written something.)"""
        given = {name: argument(*how, 0) for name, how in self.given.items()}
        space = {"np": np, "xp": np, "gradient": differences, **self.constants, **given}
        with quiet(any("//" in line for line in lines)):
            for line in lines:
                exec(line, space)
        return space

    def usable(self, text):
        try:
            with quiet("//" in text):
                value = eval(text, self.space)
        except REFUSALS:
            return None
        return value if isinstance(value, (np.ndarray, np.generic)) and value.size <= LARGEST else None

    # Expressions

    def expression(self, depth=2):
        form = self.dice.randint(0, 7 if depth else 1)
        if form <= 1:
            return self.array() + (self.index() if self.chance(0.4) else "")
        if form == 2:
            return self.pick(UNARY).format(self.expression(depth - 1))
        if form == 3:
            return self.pick(NESTED).format(self.expression(depth - 1), self.operand(depth - 1))
        if form == 4:
            pair = [self.expression(depth - 1), self.operand(depth - 1)]
            self.dice.shuffle(pair)
            return self.pick(BINARY).format(*pair)
        if form == 5:
            return self.pick(REDUCED).format(self.expression(depth - 1), self.pick(AXES))
        if form == 6:
            return self.pick(MOVED).format(self.expression(depth - 1), self.array())
        return self.pick(BINARY).format(self.expression(depth - 1), self.expression(depth - 1))

    def operand(self, depth):
        form = self.dice.randint(0, 5)
        if form <= 2:
            return self.pick(SCALARS)
        if form == 3:
            return self.pick([*self.constants, self.pick(TABLES)])
        return self.expression(depth)

    def index(self, write=False):
        form = self.dice.randint(0, 4)
        if form <= 1:
            return self.pick(INDICES)
        if form == 2:
            return self.pick(PICKS)
        if form == 3:
            return f"[{self.mask()}]"
        indices = [n for n in self.names() if self.space[n].dtype.kind in "iu"]
        if not indices or write:
            return "[...]"
        return f"[{self.pick(['', '..., '])}{self.pick([*indices, self.pick(indices) + ' % 3'])}]"

    def mask(self):
        return self.pick(MASKS).format(self.array())

    # One method a kind of statement

    def table(self):
        self.attempt(f"{self.fresh()} = {self.pick(TABLES)}")

    def bind(self):
        text = self.expression(3)
        if self.usable(text) is not None:
            self.attempt(f"{self.fresh()} = {text}")

    def view(self):
        name = self.array()
        how = self.pick(VIEWS) if self.chance(0.7) else "{}" + self.index()
        if any(word in how for word in RELAYING) and not self.space[name].flags.c_contiguous:
            return
        self.attempt(f"{self.fresh()} = {how.format(*[name] * 3)}")

    def rename(self):
        self.attempt(f"{self.fresh()} = {self.array()}")

    def note(self):
        self.attempt(f"{self.fresh()} = {self.array()}.copy()")

    def delete(self):
        local = [n for n in self.names() if n[0] == "n"]
        if local:
            self.attempt(f"del {self.pick(local)}")

    def write(self):
        names = self.names(writable=True)
        if not names:
            return
        place = self.pick(names) + self.pick(["[...]", self.index(True), self.index(True)])
        text = self.operand(2)
        part, value = self.usable(place), self.usable(f"np.asarray({text})")
        if part is None or value is None or not writable(value, part):
            return
        masked = any(sign in place for sign in (">", "<", "==", "isfinite"))
        if masked and np.shares_memory(value, self.space[place.partition("[")[0]]):
            return  # (NumPy goes on reading there what it has written)
        self.attempt(f"{place} = {text}")

    def update(self):
        names = self.names(writable=True)
        if not names:
            return
        name = self.pick(names)
        place = name + self.pick(["", "", self.index(True)])
        operator, text = self.pick(["+", "-", "*", "*", "/", "//", "&", "|"]), self.operand(2)
        part, value = self.usable(place), self.usable(f"np.asarray({place} {operator} {text})")
        # (NumPy's elements are scalars, which are cast back as one likes; ours are arrays.)
        if part is not None and value is not None and np.ndim(part) and same_kind(value, part):
            self.attempt(f"{place} {operator}= {text}")

    def out(self):
        names = self.names(writable=True)
        if not names:
            return
        operands = {"a": self.expression(1), "b": self.operand(1), "s": self.pick(SCALARS)}
        form = self.pick(OUT).format(x=self.pick(names), **operands)
        if self.chance(0.5):
            self.attempt(f"{self.fresh()} = {form}" if "copyto" not in form else form)
        else:
            self.attempt(form)

    def gathered(self):
        """Elements of something by an index array that is an argument, or of our own."""
        indices = [n for n in self.names() if n[0] == "a" and self.space[n].dtype.kind in "iu"]
        if not indices:
            return
        table = self.pick([f"({self.expression(1)})", self.pick(TABLES), *self.constants])
        table = f"xp.asarray({table})" if table in self.constants else table
        form = self.pick(TAKEN)
        text = form.format(table, self.pick(indices))
        if self.usable(text) is not None:
            self.attempt(f"{self.fresh()} = {text}")

    def differentiated(self):
        vectors = [n for n in self.given if self.given[n][0] == "distinct"]
        if not vectors:
            return
        indices = [n for n in self.given if self.given[n][0] == "index" and self.space[n].shape == (4,)]
        loss = self.pick(LOSSES).format(c=self.pick(VECTORS), i=self.pick([*INDEXES, *indices]))
        x = self.pick(vectors)
        # (Differences round: nothing is computed from them. A structured gradient is none any more as a sum.)
        self.attempt(f"g{next(self.made)} = {x} * 0.0 + gradient(lambda v: {loss}, {x} * 1.0)")

    def loop(self):
        x, y = self.array(), self.array()
        step = self.pick(STEPS)
        if not self.space[x].flags.writeable or self.space[x].dtype.kind in "b":
            return
        if np.can_cast(self.space[y].dtype, self.space[x].dtype, "same_kind"):
            self.attempt(f"for k in range(1, {self.dice.randint(2, 4)}): {step.format(x=x, y=y)}")

    # The whole

    def begin(self):
        for k in range(self.dice.randint(1, 4)):
            kind = self.pick(["ordinary", "ordinary", "index", "distinct"])
            if kind == "index":
                how = ("index", self.pick(["i8", "i8", "i4", "i1"]), self.pick([(4,), (4,), (3,), (2, 4)]))
            elif kind == "distinct":
                how = ("distinct", "f8", (4,))
            else:
                dtype = self.dtype()
                how = ("edges" if self.sharp else "ordinary", dtype.str[1:], self.pick(SHAPES))
            # (Vectors to differentiate by are not written to: they stay distinct.)
            name = f"v{k}" if kind == "distinct" else f"a{k}"
            self.given[name] = (*how, self.dice.randint(0, 9))
            self.space[name] = argument(*self.given[name], 0)
        if not self.names():
            self.table()
            if not self.names():
                self.attempt("n0 = xp.arange(4.0)")
        for k in range(self.dice.randint(1, 2)):
            name = f"c{k}"
            made = ordinary(self.dtype(), self.pick([(4,), (3, 4)]), self.dice.randint(0, 9))
            made.flags.writeable = False
            self.constants[name] = self.space[name] = made

    def refused(self):
        """A last line that NumPy refuses, and what it says."""
        for _ in range(8 * bool(self.names())):
            place = self.array()
            line = self.pick([
                f"{self.fresh()} = {self.expression(2)}", f"{place}[...] = {self.expression(1)}",
                f"{place}[:] += {self.operand(1)}", f"{self.fresh()} = {self.pick(VIEWS).format(*[place] * 3)}",
            ])  # fmt: skip
            try:
                self.replayed([*self.lines, line])
            except FloatingPointError:
                continue
            except REFUSALS as e:
                if "dimension 0" in str(e) or "'positive'" in str(e):
                    continue  # (NumPy's numbers refuse some axes, and take others)
                if "read-only" in str(e) and "diagonal" in "".join(self.lines):
                    continue  # (its diagonals are read-only for reasons of history, ours are not)
                self.lines.append(line)
                return f"{type(e).__name__}: {e}"
        return ""


STATEMENTS = [
    "table", *["bind"] * 6, *["view"] * 4, "rename", "note", "note", "delete", *["write"] * 3, *["update"] * 3,
    "out", "out", "gathered", "gathered", "differentiated", "differentiated", "loop",
]  # fmt: skip


def drawn(number, lines=12, refusing=0.05):
    """The program of a number."""
    writer = Writer(number)
    writer.begin()
    for _ in range(writer.dice.randint(2, lines)):
        if not writer.names():
            writer.attempt(f"{writer.fresh()} = xp.arange(4.0)")
        getattr(writer, writer.pick(STATEMENTS))()
    refused = writer.refused() if writer.chance(refusing) else ""
    return Program(number, writer.given, writer.constants, writer.lines, refused)


class quiet:
    """NumPy without warnings, but for casts of what the dtype cannot hold: those are nobody's to compare.

    Nor is `//` of what is not finite, which is NaN with NumPy and as the standard has it with mirabelle.
    """

    def __init__(self, finite=False):
        self.finite = finite

    def __enter__(self):
        self.errors = np.errstate(all="ignore", invalid="raise" if self.finite else "warn")
        self.warnings = warnings.catch_warnings()
        self.warnings.__enter__()
        self.errors.__enter__()
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "invalid value encountered in cast", RuntimeWarning)

    def __exit__(self, kind, error, trace):
        self.errors.__exit__(kind, error, trace)
        self.warnings.__exit__(kind, error, trace)
        if kind is RuntimeWarning:
            raise FloatingPointError(str(error)) from None
        return False


def same_kind(value, part):
    return bool(np.can_cast(value.dtype, part.dtype, "same_kind"))


def writable(value, part):
    """Is a value written to a part converted to what every machine has?"""
    return same_kind(value, part) and (np.size(part) or np.size(value) or np.shape(value) == np.shape(part))


def differences(f, x, step=1e-5):
    """The gradient of a scalar function by differences."""
    made = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        made[i] = (f(up) - f(down)) / (2 * step)
    return made


# What programs come to


def plain(x):
    return np.array(mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else x)


def expected(program, turn=0):
    """What NumPy returns, with the arguments afterwards."""
    given = program.arrays(turn)
    with quiet("//" in program.source):
        results = program.function()(np, differences, *given.values())
        return [np.array(x) for x in results[:-1]]


class Wrong(AssertionError):
    """A program differs from NumPy's."""


def agree(got, wanted, where, halves=False):
    """Are results those that are wanted? `halves`: something may have been rounded to float16 on the way."""
    if len(got) != len(wanted):
        raise Wrong(f"{where}: {len(got)} results, {len(wanted)} expected")
    for k, (x, y) in enumerate(zip(got, wanted, strict=True)):
        x = plain(x)
        if x.shape != y.shape or x.dtype != y.dtype:
            raise Wrong(f"{where}, result {k}: {x.dtype}{list(x.shape)}, expected {y.dtype}{list(y.shape)}")
        if not alike(x, y, ROUNDING[2] if halves else 0.0):
            raise Wrong(f"{where}, result {k}: {short(x)}, expected {short(y)}")


def short(x):
    return " ".join(np.array2string(x, threshold=24).split())


# How far rounding may take results from NumPy's, as part of the largest number. (NumPy adds numbers of two
# bytes in four, or in two, as they lie in memory.)
ROUNDING = {2: 2e-2, 4: 1e-6, 8: 1e-7}


def alike(x, y, least=0.0):
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return alike(x.real, y.real, least) and alike(x.imag, y.imag, least)
        rounding = max(ROUNDING.get(y.dtype.itemsize, 1e-7), least)
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
            return False
        x, y = x[finite].astype("f8"), y[finite].astype("f8")
        scale = np.max(np.abs(y), initial=0.0)
        return bool(np.all(np.abs(x - y) <= rounding * scale + (1e-9 if scale else 1e-15)))


FAMILIES = {"host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray}


@contextlib.contextmanager
def anywhere(kind):
    """Programs name no place: what they make is on that of their arguments, and constants are sent there."""
    with np.errstate(all="ignore"), mb.allow_scalar(), mb.default_array(FAMILIES[kind]), mb.allow_transfer():
        yield


def eager(program, kind="host", turn=0):
    given = [FAMILIES[kind](x) for x in program.arrays(turn).values()]
    with anywhere(kind):
        return program.function()(mb, mb.autodiff.gradient, *given)[:-1]


def compiled(program, passes=None, kind="host", schedule=None):
    """The compiled function; it is called with turns. Its `program` is the program for one."""
    f = program.function()

    def written(*given):
        return f(mb, mb.autodiff.gradient, *given)

    made = mb.compile(written, passes=passes, whole=True, schedule=schedule)

    def call(turn=0):
        given = [FAMILIES[kind](x) for x in program.arrays(turn).values()]
        with anywhere(kind):
            return made(*given)[:-1]

    def planned(turn=0):
        given = [FAMILIES[kind](x) for x in program.arrays(turn).values()]
        with anywhere(kind):
            return made.program(*given)

    call.program = planned
    return call


# What NumPy says of values, of which kernels on cards say nothing (docs/guide/cards.md).
UNKNOWN = (
    "negative integer power", "out of bounds for int", "out of bounds for uint", "convert float NaN",
    "convert float inf",
)  # fmt: skip

# What mirabelle says where it refuses what NumPy computes, by its own words, on purpose.
SAID = [
    "takes matrices", "output parameter has shape", "is out of bounds for array of dimension 0",
    "live in different places", "lives on", "out of bounds for uint", "index 184467440737095516",
    "out of bounds for int", "Cannot cast the result of dtype",
]  # fmt: skip


def came(program, passes=None, kind="host", turns=2, only=("eager", "compiled")):
    """Run a program in all ways: "same", or why it could not be compared. Raises `Wrong` where it differs."""
    if program.refused:
        return refusing(program, passes, kind, only)
    outcome = "same"
    call = compiled(program, passes, kind)
    for turn in range(turns):
        try:
            wanted = expected(program, turn)
        except REFUSALS:
            return "refused by NumPy" if not turn else outcome
        if "eager" in only:
            try:
                got = eager(program, kind, turn)
            except Exception as e:
                if not any(text in str(e) for text in SAID):
                    raise
                return "refused by mirabelle"
            if "**" in program.source and any(numbers_power(x, y) for x, y in zip(got, wanted, strict=True)):
                return "a power of NumPy's numbers"
            agree(got, wanted, f"eager, call {turn}", program.halves)
        if "compiled" in only:
            try:
                got = call(turn)
            except Exception as e:
                if isinstance(e, mb.compiling.TraceError):
                    outcome = "cannot be compiled: " + str(e).split(" in ")[0][:50]
                    continue
                if not any(text in str(e) for text in SAID):
                    raise
                return "refused by mirabelle"
            agree(got, wanted, f"compiled, call {turn}", program.halves)
    return outcome


def numbers_power(x, y):
    """Is it a power of a truth value without axes? NumPy's numbers have eight bytes of it, its arrays one."""
    return not y.shape and y.dtype == np.int64 and plain(x).dtype == np.int8


def values(program):
    """All that a program makes before its last line, with its arguments."""
    lines = program.shortened(program.lines[:-1])
    with quiet("//" in program.source):
        return [*lines.function()(np, differences, *lines.arrays().values()), *program.arrays().values()]


def refusing(program, passes, kind, only):
    for how, call in (("eager", lambda: eager(program, kind)), ("compiled", compiled(program, passes, kind))):
        if how not in only:
            continue
        if kind != "host" and any(text in str(program.refused) for text in UNKNOWN):
            continue
        if how == "compiled" and passes != [] and "out of bounds" in str(program.refused):
            call = compiled(program, [], kind)  # (passes drop what nobody needs)
            if any(not np.size(x) for x in values(program)):
                continue
        try:
            for x in call():  # (what is pending fails when it is read)
                plain(x)
        except Exception:
            continue
        raise Wrong(f"{how}: NumPy refuses the last line ({program.refused})")
    return "both refuse"


def failure(program, **how):
    """What goes wrong with a program; empty if nothing does."""
    try:
        came(program, **how)
    except Wrong as e:
        return str(e)
    except Exception as e:
        return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"
    return ""


def shrunk(program, **how):
    """The program without lines that its failure does not need."""
    kind = failure(program, **how).split(":")[0].split(",")[0]
    lines = list(program.lines)
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(lines) - bool(program.refused))):
            shorter = program.shortened(lines[:k] + lines[k + 1 :])
            try:
                if not program.refused:
                    expected(shorter)
            except Exception:
                continue
            if failure(shorter, **how).split(":")[0].split(",")[0] == kind:
                lines, changed = shorter.lines, True
    return program.shortened(lines)
