"""Which elements of its arrays an index-space kernel reads and writes, found from its source before it runs.

Numbers are followed from the thread's index through assignments, loops and branches into the indices, as
functions of the thread's index (`indexvalues`). A branch on an index counts for those threads only that may
take it. What is read from an array is not known, and neither is an index that is made of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.usercode import indexvalues as values
from mirabelle.arraytypes.usercode.effects import NO_VALUE, scope_of
from mirabelle.arraytypes.usercode.indexvalues import Box, IndexValue
from mirabelle.arraytypes.usercode.kernelsource import ATOMICS, COORDINATES, KernelSource, is_call

_SHAPES = ("shape", "size", "ndim")


class Access(NamedTuple):
    """An element that threads of a box read or write: an index for each dimension, None if it is not known."""

    name: str
    written: bool
    at: tuple[IndexValue | None, ...]
    box: Box
    line: int


class Accesses(NamedTuple):
    """What a kernel does to its arrays. `whole` are those it hands to a function or calls by another name."""

    found: list[Access]
    whole: dict[str, int]


class Launched(NamedTuple):
    """What is known of a launch: sizes of the index space, of a group and of arrays, and numbers given."""

    sizes: tuple[int, ...]
    group: tuple[int, ...]
    shapes: Mapping[str, tuple[int, ...]]
    numbers: Mapping[str, Any]


def accesses(source: KernelSource, launched: Launched, box: Box) -> Accesses:
    """What the threads of a box of the index space read and write."""
    reader = _Reader(source, launched)
    reader.block(source.body, _State({}, box))
    return Accesses(reader.found, reader.whole)


def deciding(source: KernelSource) -> frozenset[str]:
    """The parameters on whose values it may depend which elements are touched."""
    if source.deciding is not None:
        return source.deciding
    nodes = [n for s in source.body for n in ast.walk(s)]
    roots: list[ast.AST] = []
    made: dict[str, list[ast.AST]] = {}
    for n in nodes:
        if isinstance(n, ast.Subscript):
            roots.append(n.slice)
        elif isinstance(n, ast.For):
            roots.append(n.iter)
        elif isinstance(n, (ast.If, ast.While, ast.IfExp)):
            roots.append(n.test)
        elif isinstance(n, ast.BoolOp):
            roots += n.values
        elif is_call(n, source.context, *ATOMICS):
            roots.append(n.args[1])  # type: ignore[attr-defined]
        if isinstance(n, ast.Assign):
            for t in n.targets:
                for name in _stored(t):
                    made.setdefault(name, []).append(n.value)
        elif isinstance(n, (ast.AugAssign, ast.NamedExpr)):
            for name in _stored(n.target):
                made.setdefault(name, []).append(n.value)
    wanted: set[str] = set()
    while roots:
        for n in ast.walk(roots.pop()):
            if isinstance(n, ast.Name) and n.id not in wanted:
                wanted.add(n.id)
                roots += made.get(n.id, ())
    source.deciding = frozenset(wanted & set(source.parameters))
    return source.deciding


def _stored(target: ast.AST) -> Iterator[str]:
    for n in ast.walk(target):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id


class _State:
    """The values of variables, and the box of the threads that come here."""

    __slots__ = ("box", "env")

    def __init__(self, env: dict[str, Any], box: Box) -> None:
        self.env = env
        self.box = box

    def copy(self) -> _State:
        return _State(dict(self.env), self.box)

    @property
    def empty(self) -> bool:
        return any(a >= b for a, b in self.box)


class _Reader:
    """Goes through a kernel once."""

    def __init__(self, source: KernelSource, launched: Launched) -> None:
        self.source = source
        self.k = source.context
        self.launched = launched
        self.ndim = len(launched.sizes)
        self.look_up = scope_of(source.function)
        self.found: list[Access] = []
        self.whole: dict[str, int] = {}

    # Statements: the state after them, None where nobody comes on

    def block(self, statements: list[ast.stmt], state: _State | None) -> _State | None:
        for s in statements:
            if state is None or state.empty:
                return None
            state = self.statement(s, state)
        return state

    def statement(self, s: ast.stmt, state: _State) -> _State | None:
        if isinstance(s, (ast.Return, ast.Break, ast.Continue)):
            return None
        if isinstance(s, ast.Assign):
            value = self.value(s.value, state)
            for t in s.targets:
                self.assign(t, value, state)
        elif isinstance(s, ast.AnnAssign):
            self.assign(s.target, None if s.value is None else self.value(s.value, state), state)
        elif isinstance(s, ast.AugAssign):
            value = self.value(s.value, state)
            if isinstance(s.target, ast.Name):
                before = self.name(s.target, state)
                state.env[s.target.id] = self.combined(s.op, before, value, state)
            elif isinstance(s.target, ast.Subscript):
                self.subscript(s.target, state, written=False)
                self.subscript(s.target, state, written=True)
        elif isinstance(s, ast.If):
            return self.branch(s, state)
        elif isinstance(s, (ast.For, ast.While)):
            return self.loop(s, state)
        else:
            for e in ast.iter_child_nodes(s):
                if isinstance(e, ast.expr):
                    self.value(e, state)
        return state

    def assign(self, target: ast.expr, value: Any, state: _State) -> None:
        if isinstance(target, ast.Name):
            state.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value if type(value) is tuple and len(value) == len(target.elts) else None
            for i, t in enumerate(target.elts):
                self.assign(t, None if parts is None else parts[i], state)
        elif isinstance(target, ast.Subscript):
            self.subscript(target, state, written=True)

    def branch(self, s: ast.If, state: _State) -> _State | None:
        self.value(s.test, state)
        then = self.block(s.body, self.given(s.test, True, state))
        other = self.block(s.orelse, self.given(s.test, False, state))
        return _joined(then, other)

    def loop(self, s: ast.For | ast.While, state: _State) -> _State | None:
        stored = {n for inner in s.body for n in _stored(inner)}
        turn: Any = None
        if isinstance(s, ast.For):
            turn = self.turns(s.iter, state)
            stored |= set(_stored(s.target))
        state.env |= dict.fromkeys(stored)
        inside: _State | None = state.copy()
        if isinstance(s, ast.For):
            if turn is not False:
                assert inside is not None
                self.assign(s.target, turn, inside)
                self.block(s.body, inside)
        else:
            self.value(s.test, state)
            self.block(s.body, self.given(s.test, True, state))
        self.block(s.orelse, state.copy())
        state.env |= dict.fromkeys(n for inner in s.orelse for n in _stored(inner))
        return state

    def turns(self, e: ast.expr, state: _State) -> Any:
        """The variable of `range(...)`; False if it never turns, None if that is not known."""
        if not (isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "range"):
            self.value(e, state)
            return None
        parts = [self.value(a, state) for a in e.args]
        one = values.number(self.ndim, 1)
        start: Any = values.number(self.ndim, 0)
        stop: Any = None
        step: Any = one
        if len(parts) == 1:
            (stop,) = parts
        else:
            start, stop, *rest = parts
            step = rest[0] if rest else one
        if not all(isinstance(v, IndexValue) for v in (start, stop, step)) or stop is None:
            return None
        if step.low > 0 and step.is_linear and not any(step.coefs):
            first, last = start, stop.shifted(-1) if stop.period is None else None
        elif step.high < 0 and step.is_linear and not any(step.coefs):
            first, last = (stop.shifted(1) if stop.period is None else None), start
        else:
            return None
        if first is None or last is None:
            return None
        if first.over(state.box)[0] > last.over(state.box)[1]:
            return False
        return values.between(first, last, state.box)

    # Conditions: the state of the threads for which one holds

    def given(self, test: ast.expr, holds: bool, state: _State) -> _State | None:
        state = state.copy()
        return state if self.narrow(test, holds, state) else None

    def narrow(self, test: ast.expr, holds: bool, state: _State) -> bool:
        """Keep the threads for which a condition may hold; False if there are none."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.narrow(test.operand, not holds, state)
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:  # all of them
                return all(self.narrow(v, holds, state) for v in test.values)
            found: _State | None = None
            for v in test.values:
                found = _joined(found, self.given(v, holds, state))
            if found is None:
                return False
            state.env, state.box = found.env, found.box
            return True
        if isinstance(test, ast.Compare):
            parts = [test.left, *test.comparators]
            if not holds and len(test.ops) > 1:
                return True
            return all(
                self.compared(a, op if holds else _OPPOSITE.get(type(op), ast.Pass)(), b, state)  # type: ignore[arg-type]
                for a, op, b in zip(parts, test.ops, parts[1:], strict=False)
            )
        value = self.quietly(test, state)
        if isinstance(value, IndexValue) and value.is_number:
            return bool(value.low) == holds
        return True

    def quietly(self, e: ast.expr, state: _State) -> Any:
        """The value of an expression whose reads have been noted."""
        noted, self.found = self.found, []
        value = self.value(e, state)
        self.found = noted
        return value

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, state: _State) -> bool:
        a, b = self.quietly(left, state), self.quietly(right, state)
        if not (isinstance(a, IndexValue) and isinstance(b, IndexValue)):
            return True
        if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            if isinstance(op, (ast.Gt, ast.GtE)):
                left, right, a, b = right, left, b, a
            gap = int(isinstance(op, (ast.Lt, ast.Gt)))
            return self.below(left, a, right, b, gap, state)
        if isinstance(op, ast.Eq):
            return self.below(left, a, right, b, 0, state) and self.below(right, b, left, a, 0, state)
        if isinstance(op, ast.NotEq):
            return self.differs(a, b, state)
        return True

    def below(
        self, left: ast.expr, a: IndexValue, right: ast.expr, b: IndexValue, gap: int, state: _State
    ) -> bool:
        """Keep the threads for which `a + gap <= b` may be; and the variables."""
        over = values.added(a, values.negated(b, state.box), state.box)
        lowest = over.over(state.box)[0]
        if lowest + gap > 0:
            return False
        for d in range(self.ndim):
            if over.coefs[d] and over.low == over.high and sum(map(bool, over.coefs)) == 1:
                found = over.inside(d, (lowest, 1 - gap), state.box)
                if found is not None:
                    state.box = (*state.box[:d], found, *state.box[d + 1 :])
        for e, v, other, is_low in ((left, a, b, False), (right, b, a, True)):
            if isinstance(e, ast.Name) and e.id in state.env and not any(v.coefs) and v.is_linear:
                low, high = other.over(state.box)
                v = (
                    v._replace(low=max(v.low, low + gap))
                    if is_low
                    else v._replace(high=min(v.high, high - gap))
                )
                if v.low > v.high:
                    return False
                state.env[e.id] = v
        return not state.empty

    def differs(self, a: IndexValue, b: IndexValue, state: _State) -> bool:
        """Keep the threads for which `a != b` may be: cut off those at an end of the box."""
        apart = values.added(a, values.negated(b, state.box), state.box)
        if apart.is_number:
            return apart.low != 0
        used = [d for d, c in enumerate(apart.coefs) if c]
        if len(used) != 1 or apart.low != apart.high or not apart.is_linear:
            return True
        (d,) = used
        found = apart.inside(d, (0, 1), state.box)
        if found is None or found[0] == found[1]:
            return True
        start, stop = state.box[d]
        if found[0] == start:
            start = found[1]
        elif found[1] == stop:
            stop = found[0]
        state.box = (*state.box[:d], (start, stop), *state.box[d + 1 :])
        return not state.empty

    # Expressions

    def value(self, e: ast.expr, state: _State) -> Any:
        """The value of an expression: an index, a tuple of values, None; what it reads is noted."""
        method = getattr(self, f"_{type(e).__name__}", None)
        if method is not None:
            return method(e, state)
        for x in ast.iter_child_nodes(e):
            if isinstance(x, ast.expr):
                self.value(x, state)
        return None

    def constant(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(self.constant, value))
        if isinstance(value, (int, np.integer, np.bool_)):
            return values.number(self.ndim, int(value))
        return None

    def _Constant(self, e: ast.Constant, state: _State) -> Any:
        return self.constant(e.value)

    def name(self, e: ast.Name, state: _State) -> Any:
        if e.id in state.env:
            return state.env[e.id]
        if e.id in self.launched.shapes:
            self.whole.setdefault(e.id, e.lineno)
            return None
        if e.id in self.source.locals:
            return None
        if e.id in self.source.parameters:
            return self.constant(self.launched.numbers.get(e.id))
        value = self.look_up(e.id)
        return None if value is NO_VALUE else self.constant(value)

    _Name = name

    def _Tuple(self, e: ast.Tuple, state: _State) -> Any:
        return tuple([self.value(x, state) for x in e.elts])

    def _NamedExpr(self, e: ast.NamedExpr, state: _State) -> Any:
        value = state.env[e.target.id] = self.value(e.value, state)
        return value

    def _UnaryOp(self, e: ast.UnaryOp, state: _State) -> Any:
        v = self.value(e.operand, state)
        if isinstance(v, IndexValue) and isinstance(e.op, ast.USub):
            return values.negated(v, state.box)
        return v if isinstance(e.op, ast.UAdd) else None

    def _BinOp(self, e: ast.BinOp, state: _State) -> Any:
        a, b = self.value(e.left, state), self.value(e.right, state)
        return self.combined(e.op, a, b, state)

    def combined(self, op: ast.operator, a: Any, b: Any, state: _State) -> Any:
        if not (isinstance(a, IndexValue) and isinstance(b, IndexValue)):
            return None
        box = state.box
        if isinstance(op, ast.Add):
            return values.added(a, b, box)
        if isinstance(op, ast.Sub):
            return values.added(a, values.negated(b, box), box)
        if isinstance(op, ast.Mult):
            return values.multiplied(a, b, box)
        if isinstance(op, ast.FloorDiv):
            return values.divided(a, b, box)
        return values.remainder(a, b, box) if isinstance(op, ast.Mod) else None

    def _BoolOp(self, e: ast.BoolOp, state: _State) -> Any:
        inside: _State | None = state
        for x in e.values:
            if inside is None or inside.empty:
                break
            self.value(x, inside)
            inside = self.given(x, isinstance(e.op, ast.And), inside)

    def _IfExp(self, e: ast.IfExp, state: _State) -> Any:
        self.value(e.test, state)
        found: list[tuple[Any, Box]] = []
        for x, holds in ((e.body, True), (e.orelse, False)):
            inside = self.given(e.test, holds, state)
            if inside is not None and not inside.empty:
                found.append((self.value(x, inside), inside.box))
        return _either(found)

    def _Compare(self, e: ast.Compare, state: _State) -> Any:
        for x in (e.left, *e.comparators):
            self.value(x, state)

    def _Attribute(self, e: ast.Attribute, state: _State) -> Any:
        if isinstance(e.value, ast.Name):
            shape = self.shape(e.value, state)
            if shape is not None and e.attr in _SHAPES:
                return self.constant(
                    {"shape": shape, "ndim": len(shape), "size": int(np.prod(shape, dtype=np.int64))}[e.attr]
                )
            if e.value.id == self.k:
                return None
        self.value(e.value, state)
        return None

    def shape(self, e: ast.expr, state: _State) -> tuple[int, ...] | None:
        if isinstance(e, ast.Name) and e.id not in state.env:
            return self.launched.shapes.get(e.id)
        return None

    def _Subscript(self, e: ast.Subscript, state: _State) -> Any:
        if self.shape(e.value, state) is not None:
            self.subscript(e, state, written=False)
            return None
        if isinstance(e.value, ast.Name) and e.value.id in self.source.locals:
            self.value(e.slice, state)
            return None
        of, at = self.value(e.value, state), self.value(e.slice, state)
        if type(of) is tuple and isinstance(at, IndexValue) and at.is_number and -len(of) <= at.low < len(of):
            return of[at.low]
        return None

    def subscript(self, e: ast.Subscript, state: _State, written: bool) -> None:
        if self.shape(e.value, state) is not None:
            assert isinstance(e.value, ast.Name)
            self.touch(e.value.id, e.slice, state, written, e.lineno)
            return
        self.value(e.slice, state)
        if not (isinstance(e.value, ast.Name) and e.value.id in self.source.locals):
            self.value(e.value, state)

    def touch(self, name: str, at: ast.expr, state: _State, written: bool, line: int) -> None:
        index = self.value(at, state)
        parts = index if type(index) is tuple else (index,)
        ndim = len(self.launched.shapes[name])
        known = [p if isinstance(p, IndexValue) else None for p in parts][:ndim]
        known += [None] * (ndim - len(known))
        self.found.append(Access(name, written, tuple(known), state.box, line))

    def _Call(self, e: ast.Call, state: _State) -> Any:
        if is_call(e, self.k, *COORDINATES):
            return self.coordinate(e, state)
        if is_call(e, self.k, *ATOMICS):
            array, at, *rest = e.args
            for x in rest:
                self.value(x, state)
            if self.shape(array, state) is not None:
                self.touch(array.id, at, state, True, e.lineno)  # type: ignore[attr-defined]
            return None
        if isinstance(e.func, ast.Name) and not e.keywords and e.func.id not in state.env:
            if e.func.id == "len" and len(e.args) == 1:
                shape = self.shape(e.args[0], state)
                if shape:
                    return self.constant(shape[0])
            args = [self.value(a, state) for a in e.args]
            return self.builtin(e.func.id, args, state)
        for x in (*e.args, *(w.value for w in e.keywords)):
            self.value(x, state)
        return None

    def builtin(self, name: str, args: list[Any], state: _State) -> Any:
        if not args or not all(isinstance(a, IndexValue) for a in args):
            return None
        if name in ("min", "max"):
            found = args[0]
            for a in args[1:]:
                found = (values.least_of if name == "min" else values.greatest_of)(found, a, state.box)
            return found
        return args[0] if name == "int" and len(args) == 1 else None

    def coordinate(self, e: ast.Call, state: _State) -> Any:
        what = e.func.attr  # type: ignore[attr-defined]
        found = tuple([self.of_thread(what, d, state) for d in range(self.ndim)])
        if not e.args:
            return found
        d = e.args[0].value  # type: ignore[attr-defined]
        return found[d] if -self.ndim <= d < self.ndim else None

    def of_thread(self, what: str, d: int, state: _State) -> IndexValue:
        size, group = self.launched.sizes[d], self.launched.group[d]
        index = IndexValue(tuple(int(i == d) for i in range(self.ndim)), 0, 0)
        if what == "index":
            return index
        if what == "group":
            return index._replace(divisor=group)
        if what == "local":
            return values.interval(self.ndim, 0, group - 1)
        return values.number(self.ndim, {"size": size, "group_size": group, "groups": -(-size // group)}[what])


_OPPOSITE: dict[type, Any] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


def _either(found: list[tuple[Any, Box]]) -> Any:
    if not found:
        return None
    (a, a_box), *rest = found
    if not rest:
        return a
    ((b, b_box),) = rest
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        return tuple([_either([(x, a_box), (y, b_box)]) for x, y in zip(a, b, strict=True)])
    if isinstance(a, IndexValue) and isinstance(b, IndexValue):
        return values.either(a, a_box, b, b_box)
    return None


def _joined(a: _State | None, b: _State | None) -> _State | None:
    """The state of those that come from either side."""
    if a is None or a.empty:
        return b
    if b is None or b.empty:
        return a
    env = {
        n: _either([(a.env[n], a.box), (b.env[n], b.box)]) if n in a.env and n in b.env else None
        for n in a.env.keys() | b.env.keys()
    }
    box = tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a.box, b.box, strict=True))
    return _State(env, box)
