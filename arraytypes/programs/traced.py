"""Traced arrays: an array type whose memory is the values of a graph.

`Traced[HostArray]` is an array type like another: trees, views, writes, library calls work on it as on any
place. But nothing is computed. Its memory is a cell that holds a node of a graph, and what is written to it
gives the cell another node. So a function that is called with traced arrays leaves behind the graph of all it
did, with its writes as values, whatever aliasing there was.

A graph that depends on no argument can be evaluated at any time, and is where somebody asks for values.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import VIEWS, DenseArray, compute, settle, wrap
from mirabelle.arraytypes.library import matrix_product, routine_of, scan
from mirabelle.arraytypes.parametric import ArrayMeta, checked_dtype, generic_class, making
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.calls import results_of
from mirabelle.arraytypes.programs.errors import PartsAsked, TraceError, because_of, shown_line, user_line
from mirabelle.arraytypes.programs.graph import (
    MATERIALIZE,
    Data,
    Map,
    Node,
    Part,
    Slot,
    c_strides,
    call_node,
    data_node,
    empty_node,
    fold_node,
    is_barrier,
    map_node,
    part_node,
    product_node,
    result_node,
    update_node,
)
from mirabelle.arraytypes.proxies import ProxyView, proxy_of
from mirabelle.arraytypes.random import filling
from mirabelle.dispatch import native, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

_names = itertools.count(1)
# What an array over processes says of this process's part.
_OF_PARTS = ("halo", "local", "owned", "layout", "communicator")
_new = object.__new__
_COPY = TABLE["copy"]


# What a function may ask of the order that memory lies in: nothing; whether another shape shows the memory,
# which matters where that is written; what it does otherwise, if the order is another one.
UNASKED, ASKED_IF_WRITTEN, ASKED = range(3)


class Cell:
    """Memory that is a value of a graph: at each time one, another after each write."""

    __slots__ = ("asked", "name", "value")

    def __init__(self, value: Node) -> None:
        self.value = value
        self.name = next(_names)
        # Has the function asked in what order it lies? (A graph takes it for C's.)
        self.asked = UNASKED


class TracedView(ProxyView):
    """A strided view of a cell."""

    __slots__ = ("buffer",)

    buffer: Cell

    def _shown(self, proxy: np.ndarray) -> Any:
        view = _new(type(self))
        view.buffer = self.buffer
        view.shape, view.dtype = proxy.shape, proxy.dtype
        view._proxy = proxy
        view._parts = None
        return view

    @property
    def node(self) -> Node:
        """The value it shows now."""
        return part_node(self.buffer.value, self.offset, self.shape, self.proxy.strides, self.dtype)

    def reshape(self, shape: tuple[int, ...], copy: bool = False) -> Any:
        if [n for n in shape if n != 1] == [n for n in self.shape if n != 1]:
            return super().reshape(shape)
        self.buffer.asked = max(self.buffer.asked, ASKED_IF_WRITTEN)
        try:
            return super().reshape(shape)
        except ValueError:
            self.order_asked()
            raise

    def order_asked(self) -> None:
        self.buffer.asked = ASKED

    def _refusal(self) -> Exception:
        return TraceError(because_of("NumPy asks for the values of an array"))


native.tell(traced=TracedView)


# (Cells of one layout share a proxy.)
_proxy = functools.lru_cache(maxsize=1 << 10)(proxy_of)


def view_of_node(family: Any, node: Node) -> TracedView:
    """A view of new memory that holds a value."""
    view = _new(family.view_type)
    view.buffer = Cell(node)
    view.shape, view.dtype = node.shape, node.dtype
    view._proxy = _proxy(node.shape, node.dtype)
    view._parts = None
    return view  # type: ignore[no-any-return]


def handle(family: Any, node: Node) -> Any:
    """A traced array that holds a value."""
    return wrap(family, Leaf(view_of_node(family, node)))


def node_of(version: Any) -> Node:
    """The value of a version."""
    kind = type(version)
    if kind is Leaf:
        view = version.view
        if version.table:
            return part_node(view.buffer.value, view.offset, view.shape, view.strides, view.dtype, True)
        return view.node  # type: ignore[no-any-return]
    if version.value is not None:
        return node_of(version.value)
    if kind is Reduced:
        r = version
        return fold_node(r.reduction, node_of(r.operand), r.axes, r.keepdims, r.shape, r.dtype)
    args = version.args
    sig = version.sig
    if sig.op is _COPY and sig.ins[0] == sig.out and isinstance(args[0], (Leaf, Broadcasted, Reduced)):
        return stretched(node_of(args[0]), version.shape)
    return map_node(
        sig,
        tuple([node_of(a) if isinstance(a, (Leaf, Broadcasted, Reduced)) else a for a in args]),
        version.shape,
    )


def stretched(node: Node, shape: tuple[int, ...]) -> Node:
    """A value stretched to a shape, as NumPy stretches."""
    if node.shape == shape:
        return node
    pad = len(shape) - len(node.shape)
    strides = [0] * max(pad, 0)
    for n, s, full in zip(
        node.shape[max(-pad, 0) :],
        c_strides(node.shape, node.dtype)[max(-pad, 0) :],
        shape[max(pad, 0) :],
        strict=True,
    ):
        strides.append(0 if n == 1 and full != 1 else s)
    return part_node(node, 0, shape, tuple(strides), node.dtype)


def cast(node: Node, dtype: np.dtype) -> Node:
    if node.dtype == dtype:
        return node
    return map_node(promotion.cast(node.dtype, dtype), (node,), node.shape)


def store(view: Any, value: Node) -> None:
    """Write a value to what a view shows."""
    cell = view.buffer
    value = cast(value, view.dtype)
    made: Any = update_node(cell.value, view.offset, view.shape, view.strides, view.dtype, value)
    cell.value = stretched(value, cell.value.shape) if made.is_whole else made


class Traced(DenseArray):
    """An array whose operations are recorded as a graph: what a compiled function is traced with.

    >>> import mirabelle as mb
    >>> x = mb.compiling.Traced[mb.HostArray]([1.0, 2.0])
    >>> y = x * 2 + 1               # a graph; nothing is computed
    >>> print(mb.to_numpy(y))       # it depends on no argument: it can be
    [3. 5.]
    """

    __module__ = "mirabelle"
    __slots__ = ()

    # (In Python: of a program for all sizes, whoever asks for a length is noted.)
    __len__ = AbstractArray.__len__
    size = AbstractArray.size

    # The family of the arrays that the program will run on, and the class of this family's views.
    inner: Any = None
    view_type: Any = None

    @classmethod
    def _subscripted(cls, parameters: tuple[Any, ...]) -> Any:
        if cls is not Traced:
            return None
        if len(parameters) != 1 or not (
            isinstance(parameters[0], ArrayMeta) and issubclass(parameters[0], DenseArray)
        ):
            raise TypeError(
                "Traced takes the type of the arrays that the program is for: "
                "mb.compiling.Traced[mb.HostArray]."
            )
        local = parameters[0]
        family = family_for(generic_class(local))
        return family[local.parameters] if local.parameters else family

    @classmethod
    def _spelled(cls, parameters: tuple[Any, ...]) -> str | None:
        return f"Traced[{cls.inner[parameters].__name__}]" if cls.inner is not None else None

    @classmethod
    def _reduce_family(cls) -> Any:
        return cls.__qualname__ if cls.inner is None else (family_for, (cls.inner,))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        if shapereads.current is not None:
            return shapereads.current.shape(self._node.shape)  # type: ignore[no-any-return]
        return self._node.shape  # type: ignore[no-any-return]

    @property
    def node(self) -> Node:
        """The value it holds now, as a node of its graph."""
        return verbs.leaf_of(self).view.node  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        # (Asked for what this type has not.)
        if name.startswith("_") or not hasattr(type(self).inner, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in _OF_PARTS and type(self).inner.home.kind == "distributed":
            given = "halo(1)" if name == "halo" else name
            raise PartsAsked(
                f"`x.{name}` is asked for in {shown_line(user_line(2))}, while the function is being compiled: "
                "it is of this process alone, and something else in the function cannot be done with parts. "
                "Write what is around as shifted slices, `x[2:] - x[:-2]`, or in a kernel (`@mb.kernel`) that "
                "reads `x[i - 1]`: it travels by itself there. Or compile a function of this process's arrays, "
                f"and give it `x.{given}`; in it, `mb.distributed.exchange` sends arrays."
            )
        raise AttributeError(
            f"`x.{name}` is asked for in {shown_line(user_line(2))}, while the function is being compiled: it "
            f"says how the memory of a {type(self).inner.__name__} lies, and a program has values only. Ask "
            f"for it outside of the compiled function, and pass in what it is: `f(x, x.{name})`."
        )

    # What DenseArray asks of a place

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> Any:
        return view_of_node(cls, empty_node(shape, dtype))

    @classmethod
    def _upload(cls, data: np.ndarray) -> Any:
        return view_of_node(cls, data_node(cls.inner, cls.inner._upload(data)))

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        return Leaf(cls._upload(np.asarray(x, checked_dtype(x.dtype))))

    @classmethod
    def _download(cls, view: Any) -> np.ndarray:
        node = view.node
        if node.bound:
            raise TraceError(because_of("The values of an array are asked for", node))
        data = evaluated(cls, view)
        return cls.inner._download(data)  # type: ignore[no-any-return]

    @classmethod
    def _fetched(cls, source: Any, view: Any) -> Any:
        if source is cls.inner:
            # (A copy: the memory may be written to by others.)
            mine = cls.inner._empty(view.shape, view.dtype)
            cls.inner._copy_into(mine, view)
            return view_of_node(cls, data_node(cls.inner, mine))
        return cls._upload(source._download(view))

    @classmethod
    def _taken(cls, x: Any) -> Any:
        """An array of the inner family as one of this: its contents as they are now."""
        if type(x).family is not cls.inner:
            return None
        leaf = verbs.leaf_of(x)
        if leaf.foreign or leaf.root is not None:
            return wrap(cls, Leaf(cls._fetched(cls.inner, leaf.view)))
        # Who holds the view counts as a reader: a later write to `x` goes to other memory.
        return handle(cls, data_node(cls.inner, leaf.view))

    @classmethod
    def _copy_into(cls, dest: Any, source: Any) -> None:
        store(dest, source.node)

    @classmethod
    def joins(cls, other: type[AbstractArray]) -> bool:
        return other is cls.inner or cls.inner.joins(other) or (other is None and cls.inner.home.rank < 2)

    @classmethod
    def _recorded(cls, kind: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The arrays that a call returns: computed now if it depends on no argument, else nodes."""
        operands: list[Node] = []
        template = _template((args, options), operands)
        found = results_of(cls, kind, name, template, operands)
        if found.values is not None:
            return found.rebuilt(
                lambda i: wrap(cls, Leaf(view_of_node(cls, data_node(cls.inner, found.values[i]))))
            )
        call = call_node(kind, name, template, tuple(operands), found.outputs)
        return found.rebuilt(lambda i: handle(cls, result_node(call, i)))

    @classmethod
    def _within(cls, index: Any, axis: int, n: int) -> Any:
        """An index array whose entries are looked at when the program runs."""
        node = verbs.leaf_of(index).view.node
        if not node.bound:
            return None
        return cls._recorded("within", "within", (verbs.leaf_of(index).view, axis, n), {})


def _views(family: Any, result: Any) -> Any:
    """Results as routines give them: views."""
    if isinstance(result, (tuple, list)):
        return tuple(_views(family, r) for r in result)
    return verbs.leaf_of(result).view if isinstance(result, DenseArray) else result


def _template(nest: Any, operands: list[Node]) -> Any:
    """A nest of arguments with slots for the views in it, which become operands."""
    if isinstance(nest, TracedView):
        operands.append(nest.node)
        return Slot(len(operands) - 1)
    if isinstance(nest, (list, tuple)):
        return type(nest)([_template(x, operands) for x in nest]) if type(nest) in (list, tuple) else nest
    if isinstance(nest, dict):
        return {k: _template(x, operands) for k, x in nest.items()}
    return nest


def _product_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    shape: tuple[int, ...] = np.broadcast_shapes(left[:-2], right[:-2])
    if len(a) > 1:
        shape += left[-2:-1]
    if len(b) > 1:
        shape += right[-1:]
    return shape


def evaluated(family: Any, view: Any) -> Any:
    """The contents of a view that depends on no argument, in the memory of the inner family."""
    node = view.node
    if isinstance(node, Data):
        return node.view
    from mirabelle.arraytypes.programs.running import evaluate

    (made,) = evaluate(family.inner, (node,))
    if node is view.buffer.value:
        view.buffer.value = data_node(family.inner, made)
    return made


# Routines with a meaning of their own


def _scatter(family: Any, target: Any, *views: Any, op: str = "", **options: Any) -> None:
    """A scatter writes to its first argument: the values after it are a result of the call."""
    found = family._recorded("scatter", "scatter", (target, *views), {"op": op, **options})
    store(target, verbs.leaf_of(found).view.node)


def _gemm(family: Any, x1: Any, x2: Any, target: Any, *, alpha: Any, beta: Any) -> None:
    """alpha * (x1 @ x2) + beta * target, written to `target`."""
    total = verbs.matmul(handle(family, x1.node), handle(family, x2.node))
    if alpha != 1:
        total = verbs.multiply(total, alpha)
    if beta:
        total = verbs.add(total, verbs.multiply(handle(family, target.node), beta))
    store(target, verbs.leaf_of(total).view.node)


def _bounds(family: Any, view: Any) -> Any:
    if view.node.bound:
        raise TraceError(
            because_of("The least and the largest entry of an index array are asked for", view.node)
        )
    return routine_of(family.inner, "bounds")(evaluated(family, view))


@compute.method
def _(family: type[Traced], version: Any) -> Leaf:
    before = graph.work.line_of_all
    graph.work.line_of_all = graph.work.current_line()
    try:
        return settle(version, Leaf(view_of_node(family, node_of(version))))
    finally:
        graph.work.line_of_all = before


@matrix_product.method
def _(family: type[Traced], x1: Any, x2: Any) -> Any:
    a, b = verbs.leaf_of(x1).view.node, verbs.leaf_of(x2).view.node
    shape = _product_shape(a.shape, b.shape)
    dtype = np.matmul(np.zeros((1, 1), a.dtype), np.zeros((1, 1), b.dtype)).dtype
    return handle(family, product_node(a, b, shape, dtype))


@scan.method
def _(family: type[Traced], x: Any, op: Any, axis: int) -> Any:
    return family._recorded("accumulate", "accumulate", (verbs.leaf_of(x).view, op, axis), {})


@filling.fill.method
def _(
    family: type[Traced], view: Any, sampler: Any, stream: Any, parameters: tuple[Any, ...], piece: Any
) -> None:
    # (Which generators may be used here, they know themselves: see random/bitgenerator.py.)
    given = tuple(
        [verbs.leaf_of(verbs.adapt(family, p)).view if isinstance(p, AbstractArray) else p for p in parameters]
    )
    made = family._recorded("draw", "draw", (view.shape, view.dtype, sampler, stream, given, piece), {})
    store(view, verbs.leaf_of(made).view.node)


@routine_of.method
def _(family: type[Traced], name: str) -> Callable[..., Any]:
    own = _OWN.get(name)
    if own is not None:
        return functools.partial(own, family)
    routine_of(family.inner, name)  # which says what is wrong if there is none

    def record(*args: Any, **options: Any) -> Any:
        return _views(family, family._recorded("routine", name, args, options))

    return record


# (Of all routines these two alone write to what they are given.)
_OWN: dict[str, Any] = {"scatter": _scatter, "gemm": _gemm, "bounds": _bounds}


@verbs.materialize.method
def _(x: Traced) -> Any:
    """A barrier of the program: the value lies in memory, and kernels that read it come after the one that
    stores it."""
    cell = verbs.leaf_of(x).view.buffer
    value = cell.value
    if value.bound and type(value) in (Map, Part) and not is_barrier(value):
        # (All others lie in memory by themselves.)
        cell.value = map_node(promotion.signature(MATERIALIZE, (value.dtype,)), (value,), value.shape)
    return x


@verbs.copyto.method
def _(dest: Traced, src: Broadcasted) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    store(dest._node.view, node_of(src))  # type: ignore[union-attr]
    return dest


@verbs.copyto.method
def _(dest: Traced, src: Reduced) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    store(dest._node.view, node_of(src))  # type: ignore[union-attr]
    return dest


@verbs.numpy_view.method
def _(x: Traced, dtype: Any = None, copy: Any = None) -> np.ndarray:
    if x.node.bound:
        raise TraceError(because_of("NumPy asks for the values of an array", x.node))
    data = np.array(verbs.fetch(x), dtype)
    data.flags.writeable = False
    return data


_families: dict[Any, Any] = {}


def family_for(inner: Any) -> Any:
    """The type `Traced[inner]`, made when it is first asked for."""
    family = _families.get(inner)
    if family is None:
        with making:
            family = _families.get(inner) or _made(inner)
    return family


def _made(inner: Any) -> Any:
    name = f"Traced[{inner.__name__}]"
    made: Any = ArrayMeta(
        name,
        (Traced,),
        {
            "__slots__": (),
            "__module__": "mirabelle",
            "__qualname__": name,
            "__doc__": Traced.__doc__,
            "inner": inner,
            "stands_for": inner,
            "home": Place(4, "traced", 0, inner.home),
        },
    )
    kind = type(f"{inner.__name__}TracedView", (TracedView,), {"__slots__": (), "family": made})
    made.view_type = kind
    VIEWS[kind] = _families[inner] = made
    return made


__all__ = ["Traced", "family_for", "handle", "node_of", "store"]
