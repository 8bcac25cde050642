"""Is a graph one that can be run? Asked of graphs that come from a file, which anybody can have written.

What a kernel reads and writes is checked nowhere while it runs: so a node must not show memory that its source
has not, and what a gather or a scatter is told must be known to lie within. Shapes and dtypes are worked out
anew.

>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x: mb.sum(x[1:] * 2), mb.zeros(4))
>>> for node in program.graph:
...     check(node)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import (
    Call,
    Data,
    Empty,
    Fold,
    Input,
    Map,
    Node,
    Part,
    Product,
    Result,
    Slot,
    Update,
    call_node,
    map_node,
    result_node,
)
from mirabelle.arraytypes.programs.traced import _product_shape
from mirabelle.dispatch import promotion
from mirabelle.dispatch.ops import TABLE

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
# Arrays have at most so many dimensions, and so many bytes (addresses have to be worked out with them).
MOST_DIMENSIONS, MOST_BYTES = 64, 1 << 60


class InvalidNode(ValueError):
    """A node that contradicts itself or its operands."""


def check(node: Node) -> None:
    """Raise InvalidNode where a node cannot be what it says it is."""
    find = CHECKS.get(type(node))
    if find is None:
        raise InvalidNode(f"nodes of the kind {type(node).__name__} are not known here")
    check_shape(node.shape, node.dtype)
    _check_operands(node)
    find(node)


def check_shape(shape: Any, dtype: np.dtype) -> None:
    """Is it the shape of an array there can be?"""
    good = type(shape) is tuple and len(shape) <= MOST_DIMENSIONS
    good = good and all(type(n) is int and n >= 0 for n in shape)
    _require(good, f"{shape!r} is no shape")
    # (Of empty arrays, too: the strides are worked out.)
    size = math.prod([n or 1 for n in shape])
    _require(size * dtype.itemsize < MOST_BYTES, f"{shape!r} is too large a shape")


def check_output(node: Node) -> None:
    """Can a program return the node?"""
    several = isinstance(node, Map) and node.sig.op.nout > 1
    table = isinstance(node, Part) and node.table
    _require(not (several or table or isinstance(node, Call)), f"{node!r} is no array by itself")


def _require(holds: Any, otherwise: str) -> None:
    if not holds:
        raise InvalidNode(otherwise)


def _check_operands(node: Node) -> None:
    """What is no array by itself is read only by those that know what to do with it."""
    for x in node.operands:
        if type(x) is Call:
            _require(type(node) is Result, "a call is used as if it were an array")
        elif type(x) is Part and x.table:
            is_first = (
                type(node) is Map and node.sig.op is _GATHER and node.args[0] is x and node.args[1] is not x
            )
            _require(is_first, "what a gather reads is used as if it were an array")
        elif type(x) is Map and x.sig.op.nout > 1:
            picks = type(node) is Map and node.sig.op.name.startswith("pick")
            _require(picks, f"{x.sig.op.name} has several results, and is used as if it were an array")


# Nodes by their kinds


def _check_map(node: Any) -> None:
    sig, args = node.sig, node.args
    op = sig.op
    check_signature(op, sig.ins, sig.outs)
    _require(len(args) == op.nin, f"{op.name} has {len(args)} operands")
    for a, wanted in zip(args, sig.ins, strict=True):
        if isinstance(a, Node):
            if type(a) is Map and a.sig.op.nout > 1:
                i = int(op.name[4:])
                _require(i < len(a.sig.outs) and a.sig.outs[i] == wanted, f"{op.name} of {a.sig!r}")
            else:
                cast = op.name == "cast" or np.can_cast(a.dtype, wanted, "same_kind") or wanted == _BOOL
                _require(cast, f"an operand of {op.name} is {a.dtype.name}, and not {wanted.name}")
        else:
            number = (
                isinstance(a, (bool, int, float, complex, np.generic)) and np.asarray(a).dtype.kind in "biufc"
            )
            _require(number, f"{a!r} is an operand of {op.name}")
    # (The shape can be larger: a number, or few elements, for many.)
    shapes = [a.shape for a in args if isinstance(a, Node)]
    full = _stretched(*shapes, node.shape)
    _require(full == node.shape, f"{op.name} of shapes {shapes} has the shape {node.shape}")
    if op is _GATHER:
        table, index = args
        _require(type(table) is Part and table.table, "a gather reads what is no table")
        _require(
            isinstance(index, Node) and index.dtype == _INT64, "a gather is told by something else than int64"
        )
        _require(table.shape == node.shape, "a gather's table has another shape than the gather")


def check_signature(op: Any, ins: tuple[np.dtype, ...], outs: tuple[np.dtype, ...]) -> None:
    """Is there such an operation at these dtypes?"""
    _require(
        len(ins) == op.nin and len(outs) == op.nout,
        f"{op.name} has {len(ins)} operands and {len(outs)} results",
    )
    name = op.name
    if name == "cast":
        good = True
    elif name in ("copy", "materialize") or name.startswith("pick"):
        good = ins == outs
    elif op is _GATHER:
        good = ins == (outs[0], _INT64)
    else:
        try:
            found = promotion.signature(op, ins)
        except TypeError as e:
            raise InvalidNode(str(e)) from None
        good = found.ins == ins and found.outs == outs
    kinds = ", ".join(d.name for d in ins)
    _require(good, f"{name} does not make {outs[0].name} of {kinds}")


def folded_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction along axes."""
    ndim = len(shape)
    along = all(0 <= a < ndim for a in axes) and list(axes) == sorted(set(axes))
    _require(along, f"a reduction of {ndim} dimensions goes along {axes!r}")
    return tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])


def _check_fold(node: Any) -> None:
    (operand,) = node.operands
    what = f"{node.reduction!r} of {operand.dtype.name}{list(operand.shape)}"
    good = node.dtype == operand.dtype or (node.reduction.name in ("any", "all") and node.dtype == _BOOL)
    _require(good, f"{what} is {node.dtype.name}")
    made = folded_shape(operand.shape, node.axes, node.keepdims)
    _require(made == node.shape, f"{what} along {node.axes} has the shape {node.shape}")


def extent(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Where the elements of a view begin that come first and last in memory, in bytes."""
    low = high = offset
    for n, s in zip(shape, strides, strict=True):
        if s < 0:
            low += s * (n - 1)
        else:
            high += s * (n - 1)
    return low, high


def _check_view(what: str, source: Node, offset: int, shape: Any, strides: Any, dtype: np.dtype) -> None:
    """Does a view show memory of its source only?"""
    check_shape(shape, dtype)
    _require(len(strides) == len(shape), f"{what} has {len(strides)} strides and {len(shape)} dimensions")
    steps = [s for n, s in zip(shape, strides, strict=True) if n > 1]
    aligned = not any(x % dtype.alignment for x in (offset, *steps))
    _require(aligned, f"{what} shows {dtype.name} where none can begin")
    low, high = (offset, offset - dtype.itemsize) if 0 in shape else extent(offset, shape, strides)
    inside = low >= 0 and high + dtype.itemsize <= source.nbytes
    _require(inside, f"{what} shows memory outside of the {source.nbytes} bytes of its source")


def _check_part(node: Any) -> None:
    what = f"a part of shape {node.shape}"
    _check_view(what, node.source, node.offset, node.shape, node.strides, node.dtype)


def _check_update(node: Any) -> None:
    base, value = node.operands
    what = f"a write of shape {node.part_shape}"
    _check_view(what, base, node.offset, node.part_shape, node.strides, node.part_dtype)
    _require(value.dtype == node.part_dtype, f"{what} writes {value.dtype.name} as {node.part_dtype.name}")
    fits = _stretched(value.shape, node.part_shape) == node.part_shape
    _require(fits, f"{what} writes an array of shape {value.shape}")


def _stretched(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def product_of(a: Node, b: Node) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the dtype of a matrix product."""
    what = f"a matrix product of shapes {a.shape} and {b.shape}"
    _require(a.shape and b.shape and a.shape[-1] == b.shape[-2:][0], what)
    return _product_shape(a.shape, b.shape), np.matmul(
        np.zeros((1, 1), a.dtype), np.zeros((1, 1), b.dtype)
    ).dtype


def _check_product(node: Any) -> None:
    shape, dtype = product_of(*node.operands)
    _require((shape, dtype) == (node.shape, node.dtype), f"a matrix product is {node.dtype.name}{node.shape}")


def _check_call(node: Any) -> None:
    find = KINDS.get(node.kind)
    if find is None:
        raise InvalidNode(f"there are no calls of the kind {node.kind!r}")
    for shape, dtype in node.outputs:
        check_shape(shape, dtype)
    try:
        args, options = _filled(node.template, node)
        find(node, *args, **options)
    except (TypeError, AttributeError) as e:
        raise InvalidNode(f"{node.routine} is called with other arguments than it takes: {e}") from None


def _filled(nest: Any, node: Any) -> Any:
    """The arguments of a call, with its operands in place of slots."""
    if isinstance(nest, Slot):
        n, count = nest.number, len(node.operands)
        _require(0 <= n < count, f"{node.routine} is called with operand {n} of {count}")
        return node.operands[n]
    if isinstance(nest, (list, tuple)):
        return type(nest)([_filled(x, node) for x in nest])
    return {k: _filled(x, node) for k, x in nest.items()} if isinstance(nest, dict) else nest


# What calls of each kind are called with: the call, and its arguments.


def _check_routine(node: Any, *args: Any, **options: Any) -> None:
    why = why_not_routine(node.routine)
    _require(why is None, f"the routine {node.routine!r} {why}")


def _check_accumulate(node: Any, x: Node, op: str | None, axis: int) -> None:
    _require(node.routine == "accumulate" and (op is None or _is_ufunc(op)), f"a scan with {op!r}")
    _require(type(axis) is int and 0 <= axis < max(x.ndim, 1), f"a scan along axis {axis}")


def _check_scatter(
    node: Any, target: Node, values: Node, *index: Node, op: str = "", distinct: bool = False
) -> None:
    known = node.routine == "scatter" and (op == "" or _is_ufunc(op)) and type(distinct) is bool
    _require(known and isinstance(values, Node), f"a scatter with {op!r}")
    _require(len(index) <= target.ndim, "a scatter with more index arrays than dimensions")
    _require(all(x.dtype.kind in "iu" for x in index), "a scatter is told by what is no integer")


def _check_within(node: Any, index: Node, low: int, n: int) -> None:
    good = node.routine == "within" and type(low) is int and type(n) is int and n >= 0
    _require(good and index.dtype.kind in "iu", "a check of no index array")


def _check_some(node: Any, values: Node, held: Node, op: str) -> None:
    good = node.routine == "some" and op in ("min", "max") and held.shape == () and held.dtype == _BOOL
    _require(good, "a check of no reduction")
    _require(node.outputs == (_array(values),), "a check that changes what it looks at")


def _check_while(node: Any, loop: Any, given: list[Node]) -> None:
    _check_carried(node, loop, given)
    _require(loop.trips is None and loop.condition.size == 1, "a loop whose condition is no truth value")


def _check_for(node: Any, loop: Any, given: list[Node], lower: Any = 0, upper: Any = 0) -> None:
    _check_carried(node, loop, given)
    _require(loop.condition is None and (loop.trips is None or loop.trips >= 0), "a loop without bounds")
    for x in (lower, upper):
        whole = x.size == 1 and x.dtype.kind in "iu" if isinstance(x, Node) else type(x) is int
        _require(whole, "a loop without bounds")


def _check_carried(node: Any, loop: Any, given: list[Node]) -> None:
    _check_taken("a loop", loop.inputs, given)
    carried = [*map(_array, loop.outputs)]
    same = carried == [*map(_array, loop.inputs[: len(carried)])] == list(node.outputs)
    _require(carried and same, "what a loop carries changes from trip to trip")


def _check_branches(node: Any, branches: Any, predicate: Node, given: list[Node]) -> None:
    _require(predicate.size == 1, "branches without a truth value")
    for graph in (branches.if_true, branches.if_false):
        _check_taken("a branch", graph.inputs, given)
        same = [*map(_array, graph.outputs)] == list(node.outputs)
        _require(same, "branches that give other arrays than they say")


def _check_taken(what: str, inputs: Any, given: list[Node]) -> None:
    """Does a graph within a graph get what it takes?"""
    same = type(given) is list and [*map(_array, given)] == [*map(_array, inputs)]
    _require(same, f"{what} takes other arrays than it is given")


def _array(x: Node) -> tuple[tuple[int, ...], np.dtype]:
    return x.shape, x.dtype


def _is_ufunc(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and isinstance(getattr(np, name, None), np.ufunc)


def _check_result(node: Any) -> None:
    (call,) = node.operands
    inside = type(call) is Call and 0 <= node.number < len(call.outputs)
    _require(inside and _array(node) == call.outputs[node.number], "a result is not what its call returns")


_GATHER = TABLE["gather"]

# What checks each kind of node, and each kind of call.
CHECKS: dict[type[Node], Callable[[Any], None]] = {
    **dict.fromkeys((Input, Data, Empty), lambda node: None),
    Map: _check_map,
    Fold: _check_fold,
    Part: _check_part,
    Update: _check_update,
    Product: _check_product,
    Call: _check_call,
    Result: _check_result,
}
KINDS: dict[str, Callable[..., None]] = {
    "routine": _check_routine,
    "accumulate": _check_accumulate,
    "scatter": _check_scatter,
    "within": _check_within,
    "some": _check_some,
    "while": _check_while,
    "for": _check_for,
    "cond": _check_branches,
}


# Routines

# Those that do nothing but compute, and look at whatever they are given before they read it. (A name is looked
# up in NumPy and SciPy: there is much there that a file must not be able to call. And what trusts its operands,
# such as the pivots of a factorisation, does so because the program made them.)
SAFE_ROUTINES = frozenset(
    (
        "argmax", "argmin", "argpartition", "argsort", "around", "average", "block", "concatenate", "convolve",
        "correlate", "cross", "diff", "digitize", "ediff1d", "einsum", "flip", "gradient", "histogram",
        "histogram2d", "histogram_bin_edges", "histogramdd", "i0", "interp", "isin", "kron", "lexsort",
        "median", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
        "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
        "packbits", "pad", "partition", "percentile", "poly", "polyadd", "polyder", "polydiv", "polyfit",
        "polyint", "polymul", "polysub", "polyval", "quantile", "ravel_multi_index", "repeat", "roll", "roots",
        "rot90", "searchsorted", "sort", "sort_complex", "stack", "take_along_axis", "tile", "tril", "triu",
        "trapezoid", "unpackbits", "unravel_index", "unwrap", "vander", "vecdot", "fft.fft", "fft.fft2",
        "fft.fftn", "fft.ifft", "fft.ifft2", "fft.ifftn", "fft.rfft", "fft.rfft2", "fft.rfftn", "fft.irfft",
        "fft.irfft2", "fft.irfftn", "fft.hfft", "fft.ihfft", "fft.dct", "fft.idct", "fft.dst", "fft.idst",
        "fft.dctn", "fft.idctn", "fft.dstn", "fft.idstn", "linalg.cholesky", "linalg.cond", "linalg.det",
        "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh", "linalg.expm", "linalg.hessenberg",
        "linalg.inv", "linalg.ldl", "linalg.logm", "linalg.lstsq", "linalg.lu", "linalg.lu_factor",
        "linalg.matrix_norm", "linalg.matrix_power", "linalg.matrix_rank", "linalg.norm", "linalg.pinv",
        "linalg.qr", "linalg.schur", "linalg.slogdet", "linalg.solve", "linalg.solve_triangular",
        "linalg.sqrtm", "linalg.svd", "linalg.svdvals",
    )
)  # fmt: skip
# Methods of NumPy's operations that are routines.
_METHODS = frozenset(("accumulate", "outer", "reduce", "reduceat"))


def why_not_routine(name: str) -> str | None:
    """Why a file must not name a routine, if it must not."""
    if name in SAFE_ROUTINES:
        return None
    operation, _, method = name.rpartition(".")
    if method in _METHODS and _is_ufunc(operation):
        return None
    return "is none of those that only compute"


# What indices are told


class Entries:
    """Between which numbers the entries of integer nodes lie, as far as that follows from the graph.

    Those of data are told by `remember`.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, int]] = {}

    def remember(self, node: Node, low: int, high: int) -> None:
        """Keep what is known, if the node's dtype can say it (else it wraps)."""
        if node.dtype.kind == "b":
            low, high = max(low, 0), min(high, 1)
        else:
            info = np.iinfo(node.dtype)
            if low < info.min or high > info.max:
                return
        self.known[id(node)] = low, high

    def of(self, x: Any) -> tuple[int, int] | None:
        if isinstance(x, Node):
            return self.known.get(id(x))
        if isinstance(x, (bool, int, np.bool_, np.integer)):
            return int(x), int(x)
        return None

    def work_out(self, node: Node) -> None:
        """Find what is known of a node whose operands have been looked at."""
        if node.dtype.kind not in "iub" or id(node) in self.known:
            return
        found: tuple[int, int] | None = None
        kind = type(node)
        if node.dtype.kind == "b":
            found = 0, 1
        elif kind is Map:
            found = self._of_map(node)
        elif kind is Part and node.operands[0].dtype == node.dtype:
            found = self.of(node.operands[0])
        elif kind is Update and node.part_dtype == node.dtype:  # type: ignore[attr-defined]
            old = (0, 0) if isinstance(node.operands[0], Empty) and node.is_whole else self.of(node.operands[0])  # type: ignore[attr-defined]
            found = _joined(old, self.of(node.operands[1]))
        elif kind is Result:
            call: Any = node.operands[0]
            if call.kind == "within":
                found = 0, max(call.template[0][2] - 1, 0)
        if found is not None:
            self.remember(node, *found)

    def _of_map(self, node: Any) -> tuple[int, int] | None:
        args, ins = node.args, node.sig.ins
        name = node.sig.op.name
        for a, d in zip(args, ins, strict=True):
            # (What an operation is given is cast to what it takes, which may change the numbers.)
            if isinstance(a, Node) and not np.can_cast(a.dtype, d, "safe"):
                return None
        if name == "gather":
            return self.of(args[0].operands[0]) if args[0].operands[0].dtype == node.dtype else None
        ranges = [self.of(a) for a in (args[1:] if name == "where" else args)]
        find = _RANGES.get(name)
        if find is None or None in ranges or any(d.kind not in "iub" for d in ins):
            return None
        return find(ranges[0], ranges[-1])  # type: ignore[arg-type]

    def bounded(self, index: Node, n: int) -> Node:
        """The index array, if its entries are known to lie in 0 to n - 1; else one that is looked at."""
        known = self.of(index)
        if known is not None and known[0] >= 0 and known[1] < n:
            return index
        call = call_node("within", "within", ((Slot(0), 0, n), {}), (index,), ((index.shape, _INT64),))
        call.line = index.line
        made = result_node(call, 0)
        made.line = index.line
        self.work_out(made)
        return made


def _joined(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _corners(f: Callable[[int, int], int], a: _Range, b: _Range) -> _Range:
    found = [f(x, y) for x in a for y in b]
    return min(found), max(found)


_Range = tuple[int, int]
# Between what an operation's results lie, by between what its first and its last operand do.
_RANGES: dict[str, Callable[[_Range, _Range], _Range | None]] = {
    **dict.fromkeys(("copy", "cast", "positive", "materialize"), lambda a, b: a),
    "where": _joined,
    "negative": lambda a, b: (-a[1], -a[0]),
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": lambda a, b: _corners(operator.mul, a, b),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "remainder": lambda a, b: (0, b[1] - 1) if b[0] > 0 else None,
    "floor_divide": lambda a, b: _corners(operator.floordiv, a, b) if b[0] > 0 else None,
}


def secured(node: Node, entries: Entries) -> Node:
    """The node, told by indices that are known to lie within what it reads or writes."""
    if type(node) is Map and node.sig.op is _GATHER and node.size:
        table: Any
        table, index = node.args
        low, high = extent(table.offset, table.shape, table.strides)
        itemsize = table.dtype.itemsize
        n = (table.source.nbytes - itemsize - high) // itemsize + 1
        known = entries.of(index)
        if known is None or low + known[0] * itemsize < 0 or known[1] >= n:
            return map_node(node.sig, (table, entries.bounded(index, n)), node.shape)
    elif type(node) is Call and node.kind == "scatter":
        args = node.template[0]
        target = node.operands[args[0].number]
        operands = list(node.operands)
        for axis, a in enumerate(args[2:]):
            operands[a.number] = entries.bounded(operands[a.number], target.shape[axis])
        if any(x is not y for x, y in zip(operands, node.operands, strict=True)):
            return node.rebuilt(tuple(operands))
    return node
