"""The source of a loop over mesh points: functions in `@mb.kernel`'s subset, for every backend.

Three forms. `lanes`: an index is a range of points, which a thread runs through in blocks: what a block's
points read is gathered first, then all are computed next to each other (processors do several at a time),
then written in the order of the points. `elements`: an index is a point; what it contributes to entries
that others reach, too, goes into a buffer. `gathered`: an index is an entry, which takes its contributions
from the buffer, in the order of the points: the same sums as those of `lanes`, without atomics.
"""

from __future__ import annotations

import functools
import linecache
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.formulas import NUMBER as ONE
from mirabelle.arraytypes.meshdata.formulas import VALUE, Formula, Fused, as_dtype
from mirabelle.arraytypes.meshdata.laneblocks import LaneBlock
from mirabelle.arraytypes.meshdata.lanetables import LEAST_OPERATIONS, LaneTable, lane_tables
from mirabelle.arraytypes.meshdata.localgraph import OPERATORS
from mirabelle.arraytypes.meshdata.localkernels import LocalProgram

# How the entries of an argument are reached.
DIRECT, TABLE, WHOLE, NUMBER = "direct", "table", "whole", "number"
# Expressions are as deep at most.
DEEPEST = 8
# Operations for each number read or written, from which on several points at a time are worth what it costs
# to put these side by side.
WORTH_BLOCKS = 3.5
_SCOPE: dict[str, Any] = {"np": np, "math": math, "__name__": __name__}


@dataclass(frozen=True)
class Argument:
    """What the source needs to know of an argument: never how many points there are."""

    name: str
    intent: Intent
    how: str
    arity: int
    block: tuple[int, ...]
    flat: bool
    partial: bool
    dtype: np.dtype
    # The name of its table: arguments that share one read it once.
    rows: str = ""
    # Of points in columns: how far apart what neighbouring layers reach is, by columns of the table.
    strides: tuple[int, ...] = ()
    # What surrounds the loop and is done in it.
    fused: Fused | None = None

    @property
    def names(self) -> list[str]:
        """The parameters of its arrays."""
        more = self.fused.names(self.name) if self.fused else []
        return more if self.fused and not self.intent.writes else [self.name, *more]

    @property
    def entries(self) -> int:
        """How many numbers its local array has."""
        return math.prod(self.block) * (self.arity if self.how == TABLE else 1)

    @property
    def scattered(self) -> bool:
        """Is it written where other points may write?"""
        return self.intent.writes and self.how == TABLE

    @property
    def buffered(self) -> bool:
        """Do contributions wait in a buffer, where each thread runs one point?"""
        if self.intent is Intent.RW:  # each entry is reached once
            return False
        return self.scattered or (self.intent.writes and self.how == WHOLE)

    def entry(self, j: int) -> tuple[int, tuple[int, ...]]:
        """The column of its table and the place in its block of a local entry."""
        size = math.prod(self.block)
        return j // size, tuple(int(i) for i in np.unravel_index(j % size, self.block)) if self.block else ()

    def row(self, point: str, k: int) -> str:
        """The row that a point reaches."""
        return self.lifted(f"{self.rows}[{'_column' if self.strides else point}, {k}]", k)

    def lifted(self, row: str, k: int) -> str:
        """The row in a layer, of that in the lowest."""
        step = self.strides[k] if self.strides else 0
        return f"{row} + {_product('_layer', step)}" if step else row

    def at(self, row: str, place: tuple[int, ...], name: str = "") -> str:
        """The element of a row's block."""
        name = name or self.name
        if self.how == NUMBER:
            return name
        if self.flat and self.how != WHOLE:
            size = math.prod(self.block)
            inner = int(np.ravel_multi_index(place, self.block)) if self.block else 0
            return f"{name}[{_sum(_product(row, size), inner)}]"
        index = ", ".join(([row] if self.how != WHOLE else []) + [str(i) for i in place])
        return f"{name}[{index or '0'}]"

    def value(self, row: str, place: tuple[int, ...]) -> str:
        """What is read there: of nothing zero."""
        there = self.at(row, place)
        if self.fused and self.fused.before:
            there = self.formula("b", self.fused.before, functools.partial(self.at, row, place))
        if not self.partial or self.how != TABLE:
            return there
        return f"{there} if {row} >= 0 else {'False' if self.dtype.kind == 'b' else '0'}"

    def formula(self, tag: str, formula: Formula, at: Callable[[str], str], value: str = "") -> str:
        """The expression of a formula whose sources stand where the argument's entries do."""

        def source(s: int) -> str:
            kind, name = formula.sources[s][0], f"{self.name}_{tag}{s}"
            return value if kind == VALUE else name if kind == ONE else at(name)

        return formula.text(source)

    def combined(self, at: Callable[[str], str], element: str) -> list[str]:
        """The statements that give an element what a point contributes. `at` is how an array is read there."""
        there, fused = at(self.name), self.fused
        if fused is None:
            return [_combined(self, there, element)]
        old = there if fused.before is None else self.formula("b", fused.before, at)
        if self.intent is Intent.INC:
            element = f"{old} + {element}"
        elif self.intent.combines:
            element = f"np.{self.intent.combines}({old}, {element})"
        return self.finished(at, [f"_w = {as_dtype(f'({element})', None, self.dtype)}"], "_w")

    def finished(self, at: Callable[[str], str], lines: list[str], value: str) -> list[str]:
        """The statements that write a value, as what becomes of it."""
        if self.fused and self.fused.after:
            value = self.formula("a", self.fused.after, at, value)
        return [*lines, f"{at(self.name)} = {value}"]


def _product(row: str, size: int) -> str:
    return row if size == 1 else f"{row} * {size}"


def _sum(a: str, b: int) -> str:
    return f"{a} + {b}" if b else a


class Source:
    """The sources of a loop for arguments of certain kinds."""

    def __init__(self, name: str, program: LocalProgram, arguments: Sequence[Argument]) -> None:
        self.name = name
        self.program = program
        self.arguments = arguments
        self.read = program.read()
        # Of points in columns: the parameter for how many a column has, and where a point is.
        columns = any(a.strides for a in arguments)
        self.layers = ["_layers"] if columns else []
        self.place = ["_column = _p // _layers", "_layer = _p - _column * _layers"] if columns else []
        # The same of points one after the other: from before the first on.
        self.before = ["_column = {0} // _layers", "_layer = {0} - _column * _layers - 1"] if columns else []
        self.next = (
            ["_layer += 1", "if _layer == _layers:", "    _layer = 0", "    _column += 1"] if columns else []
        )

    @functools.cached_property
    def blocks(self) -> bool:
        """Are there so many operations that what several points read is put side by side?"""
        moved = sum(map(len, self.read)) + len(self.program.written)
        return self.program.operations >= min(WORTH_BLOCKS * moved, LEAST_OPERATIONS)

    @functools.cached_property
    def tables(self) -> list[LaneTable]:
        """What `lanes` computes by loops over tables."""
        return lane_tables(self.program) if self.blocks else []

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The parameters of `lanes` for these."""
        return {name: x for t in self.tables for name, x in t.parameters.items()}

    # The pieces

    def table_parameters(self) -> list[str]:
        return list(dict.fromkeys(a.rows for a in self.arguments if a.how == TABLE))

    def loads(self, point: str, into: str) -> list[str]:
        """What a point reads: `into` names the statement for an entry."""
        lines = [line for i in range(len(self.arguments)) for line in self.loads_of(i, point, into)]
        return list(dict.fromkeys(lines))  # (arguments may share a table)

    def loads_of(self, i: int, point: str, into: str) -> list[str]:
        """What a point reads of an argument."""
        a = self.arguments[i]
        if a.how in (WHOLE, NUMBER):
            return []
        lines = []
        for j in self.read[i]:
            k, place = a.entry(j)
            row = point
            if a.how == TABLE:
                row = f"_{a.rows}{k}"
                lines.append(f"{row} = {a.row(point, k)}")
            lines.append(into.format(i=i, j=j, value=a.value(row, place)))
        return list(dict.fromkeys(lines))

    def uniform(self) -> list[str]:
        """What is the same for all points."""
        lines = []
        for i, a in enumerate(self.arguments):
            if a.how == NUMBER:
                lines += [f"_v{i}_{j} = {a.value('', ())}" for j in self.read[i]]
            elif a.how == WHOLE and a.intent is Intent.READ:
                lines += [f"_v{i}_{j} = {a.value('', a.entry(j)[1])}" for j in self.read[i]]
        return lines

    def computed(self, inputs: str, wanted: Sequence[int] | None = None) -> tuple[list[str], dict[int, str]]:
        """Statements that compute all that is written (or wanted), and the expression of each node."""
        written = self.program.written if wanted is None else wanted
        lines: list[str] = []
        text: dict[int, str] = {}
        uses = self._uses(written)
        depth: dict[int, int] = {}
        for n in self.program.graph.reached(written):
            made = self._expression(n, inputs, text, lines)
            depth[n] = self._depth(n, text, depth)
            if depth[n] and (uses[n] > 1 or depth[n] > DEEPEST):
                lines.append(f"_t{n} = {made}")
                made = f"_t{n}"
            text[n] = made
        return lines, text

    def _uses(self, written: Sequence[int]) -> dict[int, int]:
        """How often the value of each node is needed."""
        graph = self.program.graph
        uses: dict[int, int] = dict.fromkeys(written, 2)
        for n in graph.reached(written):
            for a in graph.operands(n):
                uses[a] = uses.get(a, 0) + 1
        return uses

    def _expression(self, n: int, inputs: str, text: dict[int, str], lines: list[str]) -> str:
        """The expression of a node, of those of its operands. (Operands that come twice are named before.)"""
        what = self.program.graph.nodes[n]
        if what[0] == "constant":
            return _constant(what[1])
        if what[0] == "input":
            a = self.arguments[what[1]]
            uniform = a.how == NUMBER or (a.how == WHOLE and a.intent is Intent.READ)
            return ("_v{i}_{j}" if uniform else inputs).format(i=what[1], j=what[2])
        if what[0] in _EXTREMES:
            for a in what[1]:
                if not text[a].isidentifier():
                    lines.append(f"_t{a} = {text[a]}")
                    text[a] = f"_t{a}"
        return _operation(what[0], [text[a] for a in what[1]])

    def _depth(self, n: int, text: dict[int, str], depth: dict[int, int]) -> int:
        """How deep the expression of a node is, of operands that have names or expressions."""
        operands = self.program.graph.operands(n)
        return 1 + max(0 if text[a].isidentifier() else depth[a] for a in operands) if operands else 0

    # The forms

    def lanes(self, deferred: frozenset[str]) -> tuple[str, dict[str, Any]]:
        """A thread takes a range of points. What other ranges write to, too, it leaves in `_later`."""
        body, scope = LaneBlock(self, deferred).body() if self.blocks else self._one_by_one(deferred)
        body = ["_chunk = _k.index(0)", *self.uniform(), *body]
        later = [f"{a.name}_later" for a in self.arguments if a.name in deferred]
        buffers = [f"{a.name}_parts" for a in self.arguments if a.intent.writes and a.how == WHOLE]
        written = [f"{a.name}_goal" for a in self.arguments if a.name in deferred]
        arrays = [name for a in self.arguments for name in a.names]
        given = ["_bounds", *arrays, *self.table_parameters(), *written, *later, *buffers, *self.layers]
        given += [*self.weights, *(["_waits"] if deferred else [])]
        local = [line for line in body if ".private(" in line]
        return _function(self.name, given, local + [line for line in body if line not in local]), scope

    def _one_by_one(self, deferred: frozenset[str]) -> tuple[list[str], dict[str, Any]]:
        statements, text = self.computed("_v{i}_{j}")
        lines = ["_p = _each", *self.next, *self.loads("_p", "_v{i}_{j} = {value}"), *statements]
        rows = {line.split(" = ")[0] for line in lines}  # (no compiler knows that tables are not written to)

        def writing(chosen: Collection[str], waits: bool) -> list[str]:
            known, found = set(rows), []
            for i, j, a, n in self.outputs():
                if a.name in chosen:
                    found += self.scattered(a, i, j, text[n], known, waits)
            return found

        lines += self.writing(deferred, writing)
        before = [line.format("_bounds[_chunk]") for line in self.before]
        loop = "for _each in range(_bounds[_chunk], _bounds[_chunk + 1]):"
        return [*before, loop, *(f"    {x}" for x in lines)], {}

    def writing(
        self, deferred: frozenset[str], statements: Callable[[Collection[str], bool], list[str]]
    ) -> list[str]:
        """The statements that write: other ones at points that reach what is deferred. (They are few.)"""
        rest = {a.name for a in self.arguments if a.intent.writes} - deferred
        lines = statements(rest, False)
        if not deferred:
            return lines
        lines.append(f"if _waits[{'_column' if self.layers else '_p'}]:")
        lines += [f"    {line}" for line in statements(deferred, True) or ["pass"]]
        return [*lines, "else:", *(f"    {line}" for line in statements(deferred, False) or ["pass"])]

    def outputs(self) -> Iterator[tuple[int, int, Argument, int]]:
        """All that is written: the argument and its entry, and the node."""
        for i, a in enumerate(self.arguments):
            for j, n in enumerate(self.program.outputs[i] or ()):
                if n is not None:
                    yield i, j, a, n

    def scattered(self, a: Argument, i: int, j: int, element: str, rows: set[str], deferred: bool) -> list[str]:
        """How an entry of a block's point is written."""
        k, place = a.entry(j)
        if a.how == WHOLE:
            return [f"{a.name}_parts[{j}, _p] = {element}"]
        if a.how == DIRECT:
            return a.combined(functools.partial(a.at, "_p", place), element)
        lines = []
        row = f"_{a.name}_goal{k}" if deferred else f"_{a.rows}{k}"
        if row not in rows:
            rows.add(row)
            point = "_column" if a.strides else "_p"
            lines.append(f"{row} = {f'{a.name}_goal[{point}, {k}]' if deferred else a.row('_p', k)}")
        return lines + self.written(a, j % math.prod(a.block), row, element, deferred, k)

    def written(self, a: Argument, j: int, row: str, element: str, deferred: bool, k: int = 0) -> list[str]:
        """How an entry of a row's block is written. What is deferred of columns has a place for each layer."""
        there = f"({a.lifted(row, k)})" if deferred and a.strides else row
        inside = _combined(a, a.at(there, a.entry(j)[1]), element)
        if deferred:
            place = f"((-2 - {row}) * _layers + _layer)" if a.strides else f"(-2 - {row})"
            place = _sum(_product(place, math.prod(a.block)), j)
            later = f"    {a.name}_later[{place}] = {element}"
            return [f"if {row} >= 0:", f"    {inside}", f"elif {row} < -1:", later]
        return [f"if {row} >= 0:", f"    {inside}"] if a.partial else [inside]

    def elements(self, atomics: bool) -> tuple[str, dict[str, Any]]:
        """A thread takes one point.

        Registers are few: a sum grows when something is known that is added to it, its last value is written at
        once, and the row where an atomic operation goes is read again just before it (which keeps these apart).
        """
        body = ["_p = _k.index(0)", "_n = _k.size(0)", *self.place, *self.uniform()]
        body += self.loads("_p", "_v{i}_{j} = {value}")
        graph, written = self.program.graph, self.program.written
        uses = self._uses(written)
        later: dict[int, list[tuple[int, Argument]]] = {}
        for _, j, a, n in self.outputs():
            later.setdefault(n, []).append((j, a))
        text: dict[int, str] = {}
        depth: dict[int, int] = {}
        row = ""
        for n in graph.early(written):
            made = self._expression(n, "_v{i}_{j}", text, body)
            depth[n] = self._depth(n, text, depth)
            scaled = graph.nodes[n][0] == "multiply" and (uses[n] == 1 or graph.is_scaled(n))
            if depth[n] and not (scaled and depth[n] <= DEEPEST):
                body.append(f"_t{n} = {made}")
                made = f"_t{n}"
            text[n] = made
            for j, a in later.get(n, ()):
                k, place = a.entry(j)
                if a.how == DIRECT:
                    continue
                if a.scattered and (atomics or not a.buffered):
                    if row != f"_{a.name}_row{k}":
                        row = f"_{a.name}_row{k}"
                        body.append(f"{row} = {a.row('_p', k)}")
                    statement = _atomically(a, row, place, made)
                    body += [f"if {row} >= 0:", f"    {statement}"] if a.partial else [statement]
                else:
                    size = math.prod(a.block)
                    column = j if a.how == WHOLE else (j % size) * a.arity + k
                    body.append(f"{a.name}_parts[{column} * _n + _p] = {made}")
        for _, j, a, n in self.outputs():
            if a.how == DIRECT:
                body += a.combined(functools.partial(a.at, "_p", a.entry(j)[1]), text[n])
        parts = [f"{a.name}_parts" for a in self.arguments if a.buffered and not (atomics and a.scattered)]
        plain = [
            name
            for a in self.arguments
            if not (a.buffered and not a.intent.gathers) or (atomics and a.scattered)
            for name in a.names
        ]
        given = [*plain, *self.table_parameters(), *parts, *self.layers]
        return _function(self.name, given, body), {}

    def gathered(self, i: int) -> tuple[str, dict[str, Any]]:
        """A thread takes one entry of a block that is reached, and joins its contributions."""
        a = self.arguments[i]
        size = math.prod(a.block)
        reached = ["reached"] if a.fused is None else []  # (else it is every entry)
        body = ["_r, _b = _k.index(0), _k.index(1)", "_e = reached[_r]" if reached else "_e = _r"]
        places = [f"_e * {size} + _b" if size > 1 else "_e"] if a.flat or not a.block else None
        if places is None:
            inner, rest = [], "_b"
            for d in reversed(a.block[1:]):
                inner.append(f"({rest}) % {d}")
                rest = f"({rest}) // {d}"
            places = ["_e", rest, *reversed(inner)]

        def at(name: str) -> str:
            return f"{name}[{', '.join(places)}]"

        source = "parts[_b * stride + sources[_q]]" if size > 1 else "parts[sources[_q]]"
        if a.intent in (Intent.WRITE, Intent.RW):
            body += ["_q = starts[_r + 1] - 1", f"{at(a.name)} = {source}"]
        else:
            combine = {"add": "_s + {0}", "minimum": "np.minimum(_s, {0})", "maximum": "np.maximum(_s, {0})"}
            before = a.fused.before if a.fused else None
            first = a.formula("b", before, at) if before else at(a.name)
            body += [f"_s = {first}", "for _q in range(starts[_r], starts[_r + 1]):"]
            body += a.finished(at, [f"    _s = {combine[str(a.intent.combines)].format(source)}"], "_s")
        given = [*a.names, "parts", "stride", *reached, "starts", "sources"]
        return _function(f"{self.name}_{a.name}", given, body), {}


def _combined(a: Argument, element: str, value: str) -> str:
    """The statement that gives an element what a point contributes."""
    if a.intent is Intent.INC:
        return f"{element} += {value}"
    if a.intent.combines:
        return f"{element} = np.{a.intent.combines}({element}, {value})"
    return f"{element} = {value}"


def _atomically(a: Argument, row: str, place: tuple[int, ...], value: str) -> str:
    if a.intent.combines is None:
        return f"{a.at(row, place)} = {value}"
    method = {"add": "atomic_add", "minimum": "atomic_min", "maximum": "atomic_max"}[str(a.intent.combines)]
    name, _, index = a.at(row, place).partition("[")
    index = index[:-1]
    return f"_k.{method}({name}, {f'({index})' if ',' in index else index}, {value})"


def _constant(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if value != value else ("np.inf" if value > 0 else "(-np.inf)")
    if isinstance(value, complex) and not isinstance(value, (int, float)):
        return f"({value!r})"
    return f"({value!r})" if isinstance(value, (int, float)) and value < 0 else repr(value)


_WRITTEN = {
    "absolute": "abs({0})",
    "negative": "(-{0})",
    "logical_not": "(not {0})",
    "where": "({1} if {0} else {2})",
}
_WRITTEN |= {
    "logical_and": "({0} & {1})",
    "logical_or": "({0} | {1})",
    "real": "({0}).real",
    "imag": "({0}).imag",
}
# As NumPy's: NaN wins. (Its own function has branches, which keep compilers from taking several lanes at once.)
_EXTREMES = {
    "minimum": "({0} if ({0} < {1}) | ({0} != {0}) else {1})",
    "maximum": "({0} if ({0} > {1}) | ({0} != {0}) else {1})",
}
_WRITTEN |= _EXTREMES
_WRITTEN |= {"conjugate": "np.conj({0})"}


def _operation(op: str, args: list[str]) -> str:
    if op in OPERATORS:
        return f"({args[0]} {OPERATORS[op]} {args[1]})"
    form = _WRITTEN.get(op)
    return form.format(*args) if form else f"np.{op}({', '.join(args)})"


def _function(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    lines = [f"def {name}(_k, {', '.join(parameters)}):", *(f"    {line}" for line in body)]
    return "\n".join(lines) + "\n"


def made(name: str, text: str, scope: dict[str, Any]) -> Any:
    """The function of a source text, whose text tracebacks and compilers find."""
    file = f"<mirabelle loop {sha1(text.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {**_SCOPE, **scope}
    exec(compile(text, file, "exec"), names)
    return names[name]
