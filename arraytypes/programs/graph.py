"""The graph of a program: what its arrays are computed from.

A node is a value, an array that never changes: so equal nodes are one object, and a write makes
another value (`Update`). What memory a value lies in, and whether it lies in any, is decided when the graph
is lowered (`planning.py`). Passes rewrite nodes by `rebuilt`, and new kinds of nodes are subclasses.

Memory is thought of as in C's order: a `Part` shows elements of a value by an offset and strides, as NumPy's
views do, which says slices, transposes, reshapes, stretches and diagonals alike.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig

_serials = itertools.count(1)


def next_serial() -> int:
    """A number between those of the nodes that were made and those that will be."""
    return next(_serials)


# Keys of nodes that are gone stay until so many are known; who has their operands' ids now finds nothing there.
FEW_KNOWN = 1 << 14
_new = object.__new__


class _Work(threading.local):
    """What is being done with graphs in this thread."""

    def __init__(self) -> None:
        # Nodes by what they are. (No WeakValueDictionary: its methods would take much of the time.)
        self.known: dict[Any, weakref.ref[Node]] = {}
        self.most = FEW_KNOWN
        # The nodes that are asked for, each time, for who wants to know (see `anysize.py`).
        self.noted: list[Node] | None = None
        # Where the program is, which new nodes note: set while a function is captured. An operation that makes
        # several nodes finds its line once.
        self.current_line: Callable[[], Any] = lambda: None
        self.line_of_all: Any = None
        # How many blocks `undisturbed` there are, one in the other; and the graph that was gone through last:
        # passes that change nothing leave it to the next. (What is kept here cannot go.)
        self.blocks = 0
        self.latest: tuple[Any, list[Node]] = ((), [])
        self.latest_users: tuple[Any, dict[int, list[Node]]] = ((), {})


work = _Work()


class Node:
    """One value of a graph.

    `operands` are the values it is computed from, `line` is where the program says so (file, number), and
    `serial` is its place in the order of the program. `bound` tells whether it depends on what a program is
    called with.
    """

    __slots__ = ("__weakref__", "bound", "dtype", "line", "operands", "serial", "shape")

    shape: tuple[int, ...]
    dtype: np.dtype
    operands: tuple[Node, ...]
    line: Any
    serial: int
    bound: bool

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        """The same operation on other operands."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def label(self) -> str:
        """What it does, in a word or two."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        return f"<{self.label}: {self.dtype.name}{list(self.shape)}>"


def _made(cls: Any, key: Any, shape: tuple[int, ...], dtype: np.dtype, operands: tuple[Node, ...]) -> Any:
    """The node of a key, made if there is none. What else it consists of is the caller's to fill in."""
    here = work
    noted = here.noted
    if key is not None:
        known = here.known.get(key)
        found = None if known is None else known()
        if found is not None:
            if noted is not None:
                noted.append(found)
            return found
    node = _new(cls)
    node.shape = shape
    node.dtype = dtype
    node.operands = operands
    node.line = here.current_line() if here.line_of_all is None else here.line_of_all
    node.serial = next(_serials)
    node.bound = False
    for x in operands:
        if x.bound:
            node.bound = True
            break
    if key is not None:
        if len(here.known) >= here.most:
            here.known = {key: node for key, node in here.known.items() if node() is not None}
            here.most = max(FEW_KNOWN, 2 * len(here.known))
        here.known[key] = weakref.ref(node)
    if noted is not None:
        noted.append(node)
    return node


@contextlib.contextmanager
def noting(wanted: bool = True) -> Iterator[list[Node]]:
    """Within the block, it is written down which nodes this thread asks for."""
    made: list[Node] = []
    before, work.noted = work.noted, made if wanted else None
    try:
        yield made
    finally:
        work.noted = before


class Input(Node):
    """What the program is called with: its `number`-th array."""

    __slots__ = ("name", "number")

    number: int
    name: str

    @property
    def label(self) -> str:
        return self.name

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return self


def input_node(number: int, shape: tuple[int, ...], dtype: np.dtype, name: str) -> Input:
    node: Input = _made(Input, None, shape, dtype, ())
    node.number, node.name = number, name
    node.bound = True
    return node


class Data(Node):
    """Memory that was there before the program: a view of an array type, whose contents do not change."""

    __slots__ = ("family", "view")

    family: Any
    view: Any

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return self


def data_node(family: Any, view: Any) -> Data:
    node: Data = _made(Data, ("data", id(view)), view.shape, view.dtype, ())
    node.family, node.view = family, view
    return node


class Empty(Node):
    """Memory that nothing has been written to."""

    __slots__ = ()

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return self


def empty_node(shape: tuple[int, ...], dtype: np.dtype) -> Node:
    return _made(Empty, ("empty", shape, dtype), shape, dtype, ())  # type: ignore[no-any-return]


class Map(Node):
    """An elementwise operation: a signature, and arguments that are nodes or numbers."""

    __slots__ = ("args", "sig")

    sig: Sig
    args: tuple[Any, ...]

    @property
    def label(self) -> str:
        return self.sig.op.name

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        rest = iter(operands)
        return map_node(
            self.sig, tuple(next(rest) if isinstance(a, Node) else a for a in self.args), self.shape
        )


def map_node(sig: Sig, args: tuple[Any, ...], shape: tuple[int, ...]) -> Map:
    key: list[Any] = ["map", sig.id, shape]
    operands = []
    for a in args:
        if isinstance(a, Node):
            operands.append(a)
            key.append(id(a))
        else:
            key.append(number_key(a))
    node: Map = _made(Map, tuple(key), shape, sig.out, tuple(operands))
    node.sig, node.args = sig, args
    return node


def number_key(a: Any) -> Any:
    """What equal numbers share: 0.0 equals -0.0 and NaN does not equal itself, so those go by their text."""
    return (type(a), a) if a == a and a != 0 else (type(a), repr(a))


MATERIALIZE = TABLE["materialize"]


def is_barrier(node: Node) -> bool:
    """Is it a value that its author wants in memory (`mb.materialize`), and who reads it in another kernel?"""
    return type(node) is Map and node.sig.op is MATERIALIZE


class Fold(Node):
    """A reduction along axes."""

    __slots__ = ("axes", "keepdims", "reduction")

    reduction: Any
    axes: tuple[int, ...]
    keepdims: bool

    @property
    def label(self) -> str:
        return str(self.reduction.name)

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return fold_node(self.reduction, operands[0], self.axes, self.keepdims, self.shape, self.dtype)


def fold_node(
    reduction: Any,
    operand: Node,
    axes: tuple[int, ...],
    keepdims: bool,
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> Fold:
    key = ("fold", id(reduction), id(operand), axes, keepdims, dtype)
    node: Fold = _made(Fold, key, shape, dtype, (operand,))
    node.reduction, node.axes, node.keepdims = reduction, axes, keepdims
    return node


class Part(Node):
    """A strided view of a value's elements. Offset and strides are in bytes of the value in C's order.

    A `table` is what a gather reads, from any place of the value on.
    """

    __slots__ = ("offset", "strides", "table")

    offset: int
    strides: tuple[int, ...]
    table: bool

    @property
    def label(self) -> str:
        return "table" if self.table else "part"

    @property
    def source(self) -> Node:
        return self.operands[0]

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return part_node(operands[0], self.offset, self.shape, self.strides, self.dtype, self.table)


def part_node(
    source: Node,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    table: bool = False,
) -> Node:
    """The part; the value itself where it shows all of it as it is."""
    if not table and offset == 0 and shape == source.shape and dtype == source.dtype:
        whole = c_strides(shape, dtype)
        if strides == whole or all(n == 1 or s == c for n, s, c in zip(shape, strides, whole, strict=True)):
            return source
    key = ("part", id(source), offset, shape, strides, dtype, table)
    node: Part = _made(Part, key, shape, dtype, (source,))
    node.offset, node.strides, node.table = offset, strides, table
    return node


def c_strides(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """The strides of memory in C's order."""
    step = dtype.itemsize
    if len(shape) == 1:
        return (step,)
    strides = []
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    return tuple(reversed(strides))


class Update(Node):
    """A value with one part of it replaced: operands are the value before and what is written.

    What is written has the shape of the part, or stretches to it, and has its dtype.
    """

    __slots__ = ("offset", "part_dtype", "part_shape", "strides")

    offset: int
    strides: tuple[int, ...]
    part_shape: tuple[int, ...]
    part_dtype: np.dtype

    @property
    def base(self) -> Node:
        return self.operands[0]

    @property
    def value(self) -> Node:
        return self.operands[1]

    @property
    def part_size(self) -> int:
        return math.prod(self.part_shape)

    @property
    def is_whole(self) -> bool:
        """Does it replace all there is?"""
        return (
            self.offset == 0
            and self.part_shape == self.shape
            and self.part_dtype == self.dtype
            and all(
                n == 1 or s == c
                for n, s, c in zip(self.shape, self.strides, c_strides(self.shape, self.dtype), strict=True)
            )
        )

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return update_node(
            operands[0], self.offset, self.part_shape, self.strides, self.part_dtype, operands[1]
        )


def update_node(
    base: Node,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    value: Node,
) -> Node:
    key = ("update", id(base), offset, shape, strides, dtype, id(value))
    node: Update = _made(Update, key, base.shape, base.dtype, (base, value))
    node.offset, node.part_shape, node.strides, node.part_dtype = offset, shape, strides, dtype
    return node


class Product(Node):
    """A matrix product, of stacks too."""

    __slots__ = ()

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return product_node(operands[0], operands[1], self.shape, self.dtype)


def product_node(x1: Node, x2: Node, shape: tuple[int, ...], dtype: np.dtype) -> Node:
    return _made(Product, ("product", id(x1), id(x2)), shape, dtype, (x1, x2))  # type: ignore[no-any-return]


class Call(Node):
    """A routine of the place's library. Its results are `Result`s of it; it has no shape of its own.

    `template` is a nest of its arguments, in which a `Slot` stands for an operand.
    """

    __slots__ = ("kind", "outputs", "routine", "template")

    routine: str
    kind: str
    template: Any
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]

    @property
    def label(self) -> str:
        return self.routine

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return call_node(self.kind, self.routine, self.template, operands, self.outputs)


class Slot:
    """Where an operand stands among the arguments of a call."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Slot({self.number})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and other.number == self.number

    def __hash__(self) -> int:
        return hash(("slot", self.number))


def call_node(
    kind: str,
    routine: str,
    template: Any,
    operands: tuple[Node, ...],
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...],
) -> Call:
    key = ("call", kind, routine, frozen(template), *map(id, operands))
    node: Call = _made(Call, key, (), np.dtype(np.bool_), operands)
    node.kind, node.routine, node.template, node.outputs = kind, routine, template, outputs
    if kind in MESSAGES:
        node.bound = True
    return node


# Kinds of calls that other processes take part in: whatever they are of, they are made when the program runs.
# ("after" is a value that is there after some of them.)
MESSAGES = frozenset(("send", "receive", "combine", "after"))
# What a call returns that others are to come after.
TOKEN: tuple[tuple[int, ...], np.dtype] = (), np.dtype(np.uint8)


def frozen(nest: Any) -> Any:
    """A nest of arguments as something that equals, and hashes as, equal nests."""
    if isinstance(nest, (list, tuple)):
        return (type(nest).__name__, *map(frozen, nest))
    if isinstance(nest, dict):
        return ("dict", *[(k, frozen(v)) for k, v in nest.items()])
    if isinstance(nest, (int, float, complex, bool, np.generic)):
        return number_key(nest)
    if isinstance(nest, (str, type(None), np.dtype, Slot, type)):
        return nest
    return "object", id(nest)


class Result(Node):
    """One of the arrays that a call returns."""

    __slots__ = ("number",)

    number: int

    @property
    def label(self) -> str:
        return f"{self.operands[0].label}[{self.number}]"

    def rebuilt(self, operands: tuple[Node, ...]) -> Node:
        return result_node(operands[0], self.number)


def result_node(call: Any, number: int) -> Node:
    shape, dtype = call.outputs[number]
    node: Result = _made(Result, ("result", id(call), number), shape, dtype, (call,))
    node.number = number
    return node


# Going through a graph


_serial_of = operator.attrgetter("serial")


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A graph is worked on within the block: its order and its readers are kept from one pass to the next.

    Its nodes are its own: one of another program would have its place in the order of that.
    """
    before = work.known, work.most
    if not work.blocks:
        work.known, work.most = {}, FEW_KNOWN
    work.blocks += 1
    try:
        yield
    finally:
        work.blocks -= 1
        if not work.blocks:
            work.known, work.most = before
        work.latest, work.latest_users = ((), []), ((), {})


def ordered(outputs: Iterable[Node]) -> list[Node]:
    """All nodes that some depend on, operands first, else in the order of the program. The list is not to be
    changed."""
    before, nodes = work.latest
    if before is outputs and before:
        return nodes
    nodes = _in_order(outputs)
    if work.blocks and type(outputs) is tuple:
        work.latest = outputs, nodes
    return nodes


def _in_order(outputs: Iterable[Node]) -> list[Node]:
    # (Nodes are equal only if they are the same.)
    found: dict[Node, None] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += node.operands
    # Where serials are equal, those that were found later are more likely to be operands.
    nodes = list(reversed(found))
    nodes.sort(key=_serial_of)
    seen: set[Node] = set()
    for node in nodes:
        if not seen.issuperset(node.operands):
            break
        seen.add(node)
    else:
        return nodes
    # Passes give what they make the place of what it was made from: then depth decides.
    placed: set[int] = set()
    result: list[Node] = []
    for node in nodes:
        if id(node) in placed:
            continue
        pending = [(node, iter(node.operands))]
        placed.add(id(node))
        while pending:
            top, rest = pending[-1]
            for x in rest:
                if id(x) not in placed:
                    placed.add(id(x))
                    pending.append((x, iter(x.operands)))
                    break
            else:
                result.append(top)
                pending.pop()
    return result


def users_of(nodes: Iterable[Node]) -> dict[int, list[Node]]:
    """For each node (by id) those that read it, each as often as it does. The lists are not to be changed."""
    before, found = work.latest_users
    if before is nodes:
        return found
    found = {}
    for node in nodes:
        for x in node.operands:
            readers = found.get(id(x))
            if readers is None:
                found[id(x)] = [node]
            else:
                readers.append(node)
    if nodes is work.latest[1]:
        work.latest_users = nodes, found
    return found


def rewritten(outputs: tuple[Node, ...], rule: Callable[[Node], Node]) -> tuple[Node, ...]:
    """The graph with a rule applied to each node, after its operands."""
    # Only nodes that became others: most stay as they are.
    changed: dict[Node, Node] = {}
    for node in ordered(outputs):
        moved = node
        if changed and not changed.keys().isdisjoint(node.operands):
            moved = placed_as(node, node.rebuilt(tuple([changed.get(x, x) for x in node.operands])))
        made = rule(moved)
        if made is not node:
            changed[node] = placed_as(node, made)
    return tuple([changed.get(x, x) for x in outputs]) if changed else tuple(outputs)


def placed_as(old: Node, new: Node) -> Node:
    """`new` in the place that `old` has in the program, if it was made for it, with all that was made on the
    way."""
    if new is old or new.serial <= old.serial:
        return new
    stack = [new]
    while stack:
        top = stack[-1]
        later = [x for x in top.operands if x.serial > old.serial]
        if later and top.serial > 0:
            top.serial = -top.serial  # (met: its operands come first)
            stack += later
            continue
        stack.pop()
        if top.serial < 0 or top.serial > old.serial:
            top.serial = max(old.serial, max([x.serial for x in top.operands], default=0))
            if top.line is None:
                top.line = old.line
    return new


def counted(nodes: Iterable[Node]) -> dict[str, int]:
    """How many nodes there are of each kind."""
    found: dict[str, int] = {}
    for node in nodes:
        found[type(node).__name__] = found.get(type(node).__name__, 0) + 1
    return found


def walked(nest: Any) -> Iterator[Any]:
    """What stands in a nest of lists, tuples and dictionaries."""
    if isinstance(nest, (list, tuple)):
        for x in nest:
            yield from walked(x)
    elif isinstance(nest, dict):
        for x in nest.values():
            yield from walked(x)
    else:
        yield nest
