"""How an operation on arrays builds a node: the generated methods of all elementwise verbs.

For each combination of argument types the place, the dtypes and the result type are worked
out once; what remains for a call is to compare shapes and to make the node.
"""

from __future__ import annotations

import contextvars
import functools
import math
import numbers
import operator
import re
import warnings
import weakref
from abc import ABCMeta
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import (
    VIEWS,
    DenseArray,
    _handle_class,
    computed,
    constructed_as,
    is_small,
    wrap,
)
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import counters, native, policy, promotion, verbs
from mirabelle.dispatch.errors import PlaceError
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.ops import TABLE, Op
from mirabelle.dispatch.promotion import WEAK, Sig
from mirabelle.dispatch.schedule import operations
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.styles import HOST, SCALAR, join_places
from mirabelle.dispatch.tree import (
    FOREIGN,
    Broadcasted,
    Leaf,
    broadcast_shapes,
    destination,
)

_new = object.__new__
Scalar = bool | int | float | complex | np.generic
Operand = AbstractArray | Scalar | np.ndarray


class Convertible(metaclass=ABCMeta):  # noqa: B024
    """What NumPy's operators would make an array of: it has `__array__`, and no arithmetic that goes first."""

    __slots__ = ()

    @classmethod
    def __subclasshook__(cls, t: type, /) -> Any:
        if cls is not Convertible or not hasattr(t, "__array__") or hasattr(t, "__array_ufunc__"):
            return NotImplemented
        priority = getattr(t, "__array_priority__", 0)
        return True if isinstance(priority, (int, float)) and priority <= 0 else NotImplemented


# Of what an operation makes arrays first.
Given = Operand | list | tuple | Convertible
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def raise_places(op: str, operands: Any) -> None:
    """The error for operands in different places."""
    shown = []
    for x in operands:
        if isinstance(x, type):
            shown.append(x.__name__)
        elif isinstance(x, np.ndarray):
            shown.append(f"a NumPy array of shape {x.shape} (host)")
        elif isinstance(x, AbstractArray):
            # (In a program, that which it stands for.)
            name = re.sub(r"^Traced\[(.*)\]$", r"\1", type(x).__name__)
            place = re.sub(r"^traced\((.*)\)$", r"\1", str(x.place))
            shown.append(f"{name} of shape {x.shape} ({place})")
    families = [leaf_family(type(x)) for x in operands if isinstance(x, AbstractArray) and x.place.rank > 1]
    devices = dict.fromkeys((getattr(f, "inner", None) or f).__name__ for f in families)
    device = next(iter(devices), "RefArray")
    # Of several devices none is the one that is meant.
    allow = "" if len(devices) > 1 else ", or allow it for a block with `with mb.allow_transfer():`"
    raise PlaceError(
        f"{op}: operands live in different places: {', '.join(shown)}. Data never moves unasked. "
        f"Move it once, with `mb.adapt(mb.{device}, x)`{allow}."
    )


def default_family() -> Any:
    from mirabelle.arraytypes.host import HostArray

    return HostArray


# What the innermost `mb.default_array` asks for: a Maker (see `arraytypes.makers`), or None.
asked: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_default_array", default=None)


def asked_family() -> Any:
    """The dense type of what is made of lists and numbers alone: that of `mb.default_array`, within it."""
    maker = asked.get()
    if maker is None:
        return default_family()
    from mirabelle.arraytypes.makers import maker_of  # which stands on this module

    return maker_of(maker).family


def leaf_family(t: Any) -> Any:
    """The dense type at the bottom of an array type."""
    while not issubclass(t, DenseArray):
        t = t.parent_type
    return t.family


def argument_type(t: type) -> Any:
    """What the promotion rules see of an argument of type `t`."""
    if issubclass(t, AbstractArray):
        return t.dtype
    weak = WEAK.get(t)
    if weak is not None:
        return weak
    if issubclass(t, np.generic):
        return checked_dtype(t)
    return None  # decided by the value: a NumPy array, or a subclass of a Python number


def elementwise_method(op: Op) -> Callable[..., Any]:
    """The generated method of an operation: types → function that builds the node."""

    def generated(*types: type) -> Any:
        if not any(issubclass(t, (AbstractArray, np.ndarray)) for t in types) and not all(
            issubclass(t, (bool, int, float, complex, np.generic)) for t in types
        ):
            return NotImplemented
        leading = _leading(types)
        if leading is None:
            return specialise(op, types)
        quick = specialised_rule(leading, op, types)
        return functools.partial(_ruled, elementwise_rule(leading), op) if quick is None else quick

    generated.__name__ = op.name
    return generated


@by_type
def elementwise_rule(kind: Any) -> Any:
    """The rule that a type has for all elementwise operations: a function of one and its operands; or None."""


@elementwise_rule.method
def _(kind: type[object]) -> None:
    return None


@by_type
def specialised_rule(kind: Any, op: Op, types: tuple[type, ...]) -> Any:
    """What the rule of a type is for one operation and operands of these types, if that is short; else None."""


@specialised_rule.method
def _(kind: type[object], op: Op, types: tuple[type, ...]) -> None:
    return None


def _leading(types: Any) -> Any:
    """That one of the types whose rule holds for all elementwise operations; None if none has any.

    Of several, that of structured arrays: whatever their parts hold, it takes the operation to the parts. (But
    before all that of a type which says so.)
    """
    found = None
    for t in types:
        if elementwise_rule(t) is None:
            continue
        if found is None or hasattr(t, "_stored"):
            found = t
        if hasattr(t, "_elementwise_first"):
            return t
    return found


def _ruled(rule: Any, op: Op, *operands: Any) -> Any:
    return rule(op, operands)


def build(op: Op, operands: tuple[Any, ...]) -> Any:
    """The result of an operation: what the type of an operand makes of it, or a node."""
    leading = _leading(map(type, operands))
    return build_node(op, operands) if leading is None else elementwise_rule(leading)(op, operands)


def specialise(op: Op, types: Any) -> Callable[..., Any]:
    """The function that builds the node of `op` for arguments of exactly these types."""
    if np.ndarray in types:
        return beside_numpys(op, types)
    simple = all(_reader(t) is not None or t in (int, float, complex) or t in _NUMPY_NUMBERS for t in types)
    families = {leaf_family(t) for t in types if issubclass(t, AbstractArray)} if simple else set()
    if not simple or len(families) != 1 or op.nout != 1 or len(types) > 3:
        return general(op)
    return in_c(op, types, next(iter(families)))


def beside_numpys(op: Op, types: Any) -> Callable[..., Any]:
    """What computes an operation on an array of ours and one of NumPy's: of few elements by NumPy."""
    ours = [t for t in types if t is not np.ndarray]
    if len(types) != 2 or len(ours) != 1 or _reader(ours[0]) is None or op.ufunc is None or op.nout != 1:
        return general(op)
    family = leaf_family(ours[0])
    if VIEWS.get(np.ndarray) is not family:
        return general(op)
    return native.in_c.OnMemory(op.ufunc, functools.partial(_handle_class, family), general(op))  # type: ignore[no-any-return]


def in_c(op: Op, types: Any, family: Any) -> Callable[..., Any]:
    """What builds it in C (dispatch/csrc/building.c)."""
    from mirabelle.arraytypes.wrappers import shown_part

    sig = promotion.signature(op, tuple(argument_type(t) for t in types))
    cls = _handle_class(family, sig.out, max(_ndim(t) for t in types))
    operands = []
    for t, dtype in zip(types, sig.ins, strict=True):
        read = _reader(t)
        kind = 3 if read is None else 0 if read is _node else 1 if read is shown_part else 2
        low, high = -(1 << 53), 1 << 53  # (beyond, the general way checks the conversion)
        if dtype.kind in "iu":
            low, high = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), (1 << 63) - 1)
        operands.append((kind, read, low, high))
    return native.in_c.Builder(  # type: ignore[no-any-return]
        sig, cls, op.name, general(op), tuple(operands), family._brief_trees
    )


def _ndim(t: type) -> int:
    return t.ndim if issubclass(t, AbstractArray) else 0


def _reader(t: type) -> Any:
    """How the version of an array of type `t` is captured; None where that is not settled by the type."""
    from mirabelle.arraytypes.wrappers import Wrapper, shown_by_rule, shown_part

    if issubclass(t, DenseArray):
        return _node if t.parameters and len(t.parameters) == 2 else None
    if issubclass(t, Wrapper) and isinstance(getattr(t, "ndim", None), int) and hasattr(t, "dtype"):
        root = t
        while issubclass(root, Wrapper):
            root = root.parent_type
        if issubclass(root, DenseArray):
            return shown_part if shown_by_rule(t) else verbs.capture
    return None


_node = operator.attrgetter("_node")
native.tell(broadcast_shapes=broadcast_shapes)
# NumPy's numbers, which have a dtype of their own.
_NUMPY_NUMBERS = frozenset(
    t
    for t in (np.bool_, *np.sctypeDict.values())
    if isinstance(t, type) and issubclass(t, (np.bool_, np.number))
)


def at_once(h: Any) -> Any:
    """Evaluate a new node if it may not wait: eager mode, foreign memory, a tree grown large."""
    node = h._node
    if type(node) is Broadcasted:
        eager = policy.is_eager()
        if policy.writing.leaf is not None and not eager and _written_next(node):
            return h
        if eager or too_large(node):
            verbs.leaf_of(h)
    return h


# Below so many bytes a result goes sooner by way of memory of its own.
_LARGE = 1 << 16


def _written_next(node: Broadcasted) -> bool:
    """Is it the whole of a statement like `x += y`, about to be written where others can write, too?"""
    leaf, policy.writing.leaf = policy.writing.leaf, None
    first: Any = node.args and node.args[0]
    return (
        type(first) is Leaf
        and (first is leaf or first.root is leaf)
        and type(leaf.view) is np.ndarray
        and math.prod(node.shape) * node.dtype.itemsize >= _LARGE
        and node.size % FOREIGN <= settings.tree_limit
    )


native.tell(at_once=at_once)


def too_large(node: Broadcasted) -> bool:
    """Has the tree grown past the limit? (`size` counts shared parts several times.)"""
    if node.size <= settings.tree_limit:
        return False
    if node.size < FOREIGN:
        node.size = len(operations(node))
    return node.size > settings.tree_limit


def general(op: Op) -> Callable[..., Any]:
    """The function that builds a node for any operands, places and wrappers."""

    def build(*operands: Any) -> Any:
        return build_node(op, operands)

    build.__name__ = op.name
    return build


def build_node(op: Op, operands: tuple[Any, ...]) -> Any:
    """The result of an operation: a handle on a new node (a tuple of them if it has several)."""
    family = join_families(op.name, _without_mask(op, operands))
    versions: list[Any] = []
    argtypes: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    for x in operands:
        version, argtype, shape = operand(family, op, x)
        versions.append(version)
        argtypes.append(argtype)
        if shape is not None:
            shapes.append(shape)
    shape = shapes[0] if len(shapes) == 1 else broadcast_shapes(shapes or [()], op.name)
    if op.name in _COMPARISONS:
        argtypes = [
            np.dtype(np.float64) if t is int and not -(1 << 63) <= v < 1 << 64
            else np.min_scalar_type(v) if t is int and _out_of_range(v, argtypes) else t
            for v, t in zip(versions, argtypes, strict=True)
        ]  # fmt: skip
    sig = promotion.signature(op, tuple(argtypes))
    for v, t, target in zip(versions, argtypes, sig.ins, strict=True):
        if t in (int, float, complex):
            check_scalar(v, target)
    node = Broadcasted(sig, tuple(versions), shape)
    if op.nout > 1:
        return picks(family, node)
    return at_once(wrap(family, node))


def _out_of_range(value: int, argtypes: list[Any]) -> bool:
    return any(
        isinstance(t, np.dtype) and t.kind in "iu" and not np.iinfo(t).min <= value <= np.iinfo(t).max
        for t in argtypes
    )


def picks(family: Any, node: Broadcasted) -> tuple[Any, ...]:
    """The results of an operation with several, as handles that know of each other."""
    results = []
    node.reducers = []
    for i in range(node.sig.op.nout):
        picked = Broadcasted(promotion.pick(node.sig, i), (node,), node.shape)
        node.reducers.append(weakref.ref(picked))
        results.append(wrap(family, picked))
    return tuple(at_once(r) for r in results)


def check_scalar(value: Any, dtype: np.dtype) -> None:
    """A Python scalar must fit the dtype the operation works in (NumPy's rule and text)."""
    if dtype.kind in "iu" and isinstance(value, int):
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")
    elif isinstance(value, int) and dtype.kind in "fc":
        float(value)  # an integer too large for a float says so itself


def _without_mask(op: Op, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """What decides where an operation runs: NumPy's array as a mask goes where what it chooses from is."""
    chosen = op.name == "where" and isinstance(operands[0], np.ndarray)
    return operands[1:] if chosen and any(isinstance(x, AbstractArray) for x in operands[1:]) else operands


def join_families(op: str, operands: tuple[Any, ...]) -> Any:
    """The array type of the result; a PlaceError where data would have to move unasked."""
    device = host = None
    places = set()
    for x in operands:
        if isinstance(x, AbstractArray):
            family = leaf_family(type(x))
            if family.home.rank >= 2:
                # Of several the outermost: what stands for arrays of another, or divides them.
                device = family if device is None or _depth(family) >= _depth(device) else device
                places.add(family.home)
                continue
            host = family
        elif not isinstance(x, np.ndarray):
            continue
        # One number of the host joins a kernel anywhere, by value.
        places.add(HOST if x.ndim else SCALAR)
    if device is None:
        return host or (default_family() if places else asked_family())
    try:
        join_places(places)
    except PlaceError:
        if not policy.transfer_allowed() or len({p for p in places if p.rank >= 2}) > 1:
            raise_places(op, operands)
    return device


def _depth(family: Any) -> tuple[int, int]:
    home = family.home
    return home.rank, 0 if home.inner is None else home.inner.rank


def operand(family: Any, op: Op, x: Any) -> tuple[Any, Any, tuple[int, ...] | None]:
    """An operand as a version (or scalar), its dtype for promotion, its shape (None: scalar)."""
    t = type(x)
    if t in WEAK:
        return (np.bool_(x) if t is bool else x), WEAK[t], None
    if isinstance(x, AbstractArray):
        if leaf_family(t) is not family:
            if x.ndim == 0:  # a host scalar: its value joins the device's kernel
                return verbs.fetch(x)[()], x.dtype, ()
            x = verbs.adapt(family, x)
        version = verbs.capture(x)
        return version, x.dtype, version.shape
    if isinstance(x, np.ndarray):
        checked_dtype(x.dtype)
        if x.ndim == 0:
            return x[()], x.dtype.newbyteorder("="), ()
        if family.home.rank >= 2 and counters.active:
            counters.add(transfers=1)
        version = family._wrap_numpy(x)
        return version, version.dtype, x.shape
    if isinstance(x, np.generic):
        return x, checked_dtype(x.dtype), None
    if isinstance(x, numbers.Number):
        for weak in (int, float, complex):
            if isinstance(x, weak):
                convert: Any = weak
                return convert(x), weak, None
    from mirabelle.arraytypes import gpu_interop  # which stands on this module

    if gpu_interop.on_card(x):
        theirs = gpu_interop.shared(x)
        if leaf_family(type(theirs)) is not family:
            raise_places("assignment" if op.name == "copy" else op.name, (family, theirs))
        return operand(family, op, theirs)
    what = "An assignment" if op.name == "copy" else f"{op.name}()"
    raise TypeError(
        f"{what} takes arrays and numbers, and one operand is a {t.__name__}. Convert it "
        "first, for instance with mb.asarray(x)."
    )


def cast_to(x: Any, dtype: np.dtype) -> Any:
    """`x` with another dtype, lazily; `x` itself if it has it."""
    if x.dtype == dtype:
        return x
    if hasattr(x, "_cast") or x.carries_derivatives:
        return verbs.astype(x, dtype, copy=False)
    family = leaf_family(type(x))
    version = verbs.capture(x)
    warn_if_discarding(x.dtype, dtype)
    sig: Sig = promotion.cast(x.dtype, dtype)
    return at_once(wrap(family, Broadcasted(sig, (version,), version.shape)))


def warn_if_discarding(source: np.dtype, target: np.dtype) -> None:
    """NumPy's warning for what loses imaginary parts, on every place."""
    if source.kind == "c" and target.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part. Say which part is meant: "
            "mb.real(x), mb.imag(x) or mb.abs(x).",
            np.exceptions.ComplexWarning,
            stacklevel=5,
        )


def copied(x: Any, hold: bool = False) -> Any:
    """A pending copy of `x`, of its present contents. `hold`: pending also over foreign memory."""
    if x.carries_derivatives:
        return verbs.copy(x)
    family = leaf_family(type(x))
    version = verbs.capture(x)
    sig = promotion.signature(TABLE["copy"], (x.dtype,))
    h = wrap(family, Broadcasted(sig, (version,), version.shape))
    return h if hold else at_once(h)


@verbs.astype.method
def _(x: AbstractArray, dtype: Any, copy: bool = True, device: Any = None) -> Any:
    d = checked_dtype(dtype)
    if device is not None:
        moved = x.to_device(device)
        return verbs.astype(moved, d, copy=copy and moved is x)
    if x.dtype == d:
        return copied(x) if copy else x
    return cast_to(x, d)


@verbs.copy.method
def _(x: AbstractArray) -> Any:
    # In C order whatever the order of `x` is, as NumPy's copies are.
    family = leaf_family(type(x))
    if family.home.rank > 2:  # divided as `x` is
        return constructed_as(computed(copied(x, hold=True)), x)
    dest = destination(family._empty(x.shape, x.dtype))
    if isinstance(x, DenseArray) and type(x._node) is Leaf and is_small(dest.shape, 1):
        family._copy_into(dest.view, x._node.view)
        if counters.active:
            counters.launched(x._node.view.nbytes, dest.view.nbytes)
        dest.checked = False
        return constructed_as(wrap(family, dest), x)
    verbs.copyto(wrap(family, dest), copied(x, hold=True)._node)
    dest.checked = False
    return constructed_as(wrap(family, dest), x)


def _register() -> None:
    for name, verb in verbs.ELEMENTWISE.items():
        op = TABLE[name]
        if name == "pow":
            continue
        verb.generated(elementwise_method(op), signature=(Operand,) * op.nin)
    for verb in verbs.ELEMENTWISE.values():
        nin = verb.core.arity
        verb.core.register(_of_given(verb), (Given,) * nin)


def _of_given(verb: Any) -> Callable[..., Any]:
    """An operation some of whose operands are lists and the like, where the arrays among them are."""

    def build(*operands: Any) -> Any:
        from mirabelle.arraytypes.define import as_array  # which stands on this module

        like = next((x for x in operands if isinstance(x, AbstractArray)), None)
        return verb(*[x if isinstance(x, Operand) else as_array(x, like) for x in operands])

    return build


_register()

_pow = elementwise_method(TABLE["pow"])


def refuse_negative_power(n: int) -> Any:
    raise ValueError(
        "Integers to negative integer powers are not allowed. Convert the base first: "
        f"`x.astype(float) ** {n}`."
    )


@verbs.pow.generated(signature=(Operand, Operand))
def power_method(base: type, exponent: type) -> Any:
    build = _pow(base, exponent)
    if build is NotImplemented or not issubclass(base, AbstractArray):
        return build
    kind = base.dtype.kind
    if issubclass(exponent, np.signedinteger) and np.result_type(base.dtype, exponent).kind in "biu":

        def of_number(x: Any, n: Any) -> Any:
            return build(x, n) if n >= 0 or not x.size else refuse_negative_power(int(n))

        return of_number
    # (Products of two-byte numbers are rounded each to two bytes, and their powers once.)
    products = base.dtype != np.float16
    if exponent is not int:
        return build

    def power(x: Any, n: int) -> Any:
        # A literal small power is multiplications: faster, and as exact as pow. (Of truth values NumPy's
        # function has the dtype of integers, and its operator that of a square.)
        if kind == "b" and n >= 0:
            return build(x, n)
        if n == 2:
            return verbs.square(x)
        if n == 3 and products:
            return verbs.multiply(verbs.square(x), x)
        if n == 4 and products:
            return verbs.square(verbs.square(x))
        if n == 1:
            return verbs.positive(x)
        if n < 0 and kind in "biu":
            check_scalar(n, x.dtype if kind != "b" else np.dtype(np.int8))
            return build(x, 0) if not x.size else refuse_negative_power(n)
        if n == -1:
            return verbs.reciprocal(x)
        return build(x, n)

    return native.in_c.Power(verbs.square.operator, power)


@verbs.clip.method
def _(x: AbstractArray, min: Any = None, max: Any = None) -> Any:
    if x.dtype.kind in "iu":  # (bounds that the dtype does not reach are none, as with NumPy)
        info = np.iinfo(x.dtype)
        min = None if type(min) is int and min <= info.min else min
        max = None if type(max) is int and max >= info.max else max
    if min is not None:
        x = verbs.maximum(x, min)
    if max is not None:
        x = verbs.minimum(x, max)
    return copied(x) if min is None and max is None else x
