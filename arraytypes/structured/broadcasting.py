"""Elementwise operations that keep structure where the function allows it.

What the structure of a result may be follows from those of the operands (`dispatch.styles.Structure`,
joined without order); that it is, from the function itself, which is evaluated at the zeros of the
operands. Then the operation runs over the stored parts alone, lazily, on their own place.

>>> import mirabelle as mb
>>> D = mb.Diagonal([1.0, 2.0, 3.0])
>>> type(mb.sin(D) * 2).__name__, type(D * mb.ones((3, 3))).__name__
('Diagonal[HostArray[float64, 1]]', 'Diagonal[HostArray[float64, 1]]')
>>> type(mb.UpperTriangular(mb.ones((3, 3))) * mb.LowerTriangular(mb.ones((3, 3)))).__name__
'Diagonal[HostArray[float64, 1]]'

A zero of the structure stays zero also where NumPy's would meet an infinity or NaN of a dense
operand: `Diagonal * dense` is diagonal whatever the dense entries are. Zeros have no sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import (
    argument_type,
    build,
    build_node,
    elementwise_rule,
    join_families,
    leaf_family,
)
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.structured.banded import Banded, band, banded_type, from_bands
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.implicit import Fill, Range, Zeros, filled, holds, range_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.promotion import WEAK
from mirabelle.dispatch.styles import DENSE, NUMBER, Structure, join_structure
from mirabelle.dispatch.tree import broadcast_shapes

# Operands whose zeros make the result zero whatever the other operands are.
_ABSORBING: dict[str, tuple[tuple[int, ...], ...]] = {
    "multiply": ((0,), (1,)),
    "logical_and": ((0,), (1,)),
    "bitwise_and": ((0,), (1,)),
    "bitwise_left_shift": ((0,),),
    "bitwise_right_shift": ((0,),),
    "copysign": ((0,),),
    "ldexp": ((0,),),
    "where": ((1, 2), (0, 2)),
    "fma": ((0, 2), (1, 2)),
}
# f(conj z) = conj f(z): of a Hermitian matrix the result is Hermitian.
_REAL_FUNCTIONS = {
    "add", "subtract", "multiply", "divide", "negative", "positive", "conj", "square", "exp", "expm1", "sin",
    "cos", "tan", "sinh", "cosh", "tanh", "abs", "real", "reciprocal", "copy",
}  # fmt: skip


def elementwise(op: Op, operands: tuple[Any, ...]) -> Any:
    """The result of an operation with a structured operand."""
    made = structured(op, operands) if op.nout == 1 else NotImplemented
    if made is not NotImplemented:
        return made
    if any(getattr(x, "carries_derivatives", False) for x in operands):
        return build(op, tuple(made_dense(x) if isinstance(x, Structured) else x for x in operands))
    return build_node(op, operands)


@elementwise_rule.method
def _(kind: type[Structured]) -> Any:
    return elementwise


def structured(op: Op, operands: tuple[Any, ...]) -> Any:
    """The result as a structured array; NotImplemented where it has no structure."""
    operands = tuple(as_array(x) if isinstance(x, np.ndarray) else x for x in operands)
    if not all(isinstance(x, (AbstractArray, bool, int, float, complex, np.generic)) for x in operands):
        return NotImplemented
    if len({leaf_family(type(x)) for x in operands if isinstance(x, AbstractArray)}) > 1:
        join_families(op.name, operands)  # an error, or a transfer that was allowed
        return NotImplemented
    arrays = [x for x in operands if isinstance(x, AbstractArray)]
    shape = broadcast_shapes([x.shape for x in arrays], op.name)
    plain = [x for x in arrays if not is_number(x)]
    differentiated = any(x.carries_derivatives for x in arrays)
    if not plain:
        return NotImplemented if differentiated else _of_fills(op, operands, shape)
    if any(isinstance(x, Range) for x in plain):
        if differentiated:
            return NotImplemented
        return range_of(op, operands, shape) if all(isinstance(x, Range) for x in plain) else NotImplemented
    if any(isinstance(x, Structured) and x.shape != shape for x in plain):
        return NotImplemented
    for x in plain:
        if isinstance(x, Structured):
            made = x._mapped(op, operands)
            if made is not NotImplemented:
                return made
    for rule in (_of_equal_layouts, _of_zeros, _of_mirrors, _of_proportions, _sum_with_dense):
        made = rule(op, operands, shape)
        if made is not NotImplemented:
            return made
    return NotImplemented


def is_number(x: Any) -> bool:
    """Does it stand for one value: a number, an array of no dimensions, a Fill?"""
    return not isinstance(x, AbstractArray) or isinstance(x, Fill) or x.ndim == 0


def value_of(x: Any) -> Any:
    """What stands for it in an operation on parts."""
    return x.value if isinstance(x, Fill) else x


# One value everywhere


def _of_fills(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    fills = [x for x in operands if isinstance(x, Fill)]
    family = leaf_family(type(fills[0]))
    known = [x.known if isinstance(x, Fill) else None if isinstance(x, AbstractArray) else x for x in operands]
    if all(v is not None for v in known):
        value = verbs.fetch(build(op, tuple(known)))[()]
    else:
        value = build(op, tuple(x.scalar if isinstance(x, Fill) else x for x in operands))
    special = [generic_class(type(x)) for x in fills if type(x).constant is not None]
    return filled(family, shape, value, next((cls for cls in special if holds(cls, value)), Fill))


# Parts that match


def _of_equal_layouts(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The operation part by part, for arrays whose entries are the same entries of their parts."""
    for x in operands:
        if isinstance(x, Structured) and x.layout is not None and x.structure == DENSE and not is_number(x):
            made = _in_layout_of(x, op, operands)
            if made is not NotImplemented:
                return made
    return NotImplemented


def _in_layout_of(first: Structured, op: Op, operands: tuple[Any, ...]) -> Any:
    taken: list[Any] = []
    for x in operands:
        if is_number(x):
            taken.append(None)
        elif isinstance(x, Structured) and x.layout == first.layout:
            taken.append(x.parts)
        else:
            parts = first._restrict(x)
            if parts is NotImplemented:
                return NotImplemented
            taken.append(parts)
    if (
        first.has_zeros
        and zero_structure(op, operands, lambda x: NUMBER if _shares(x, first) else None) is None
    ):
        return NotImplemented
    parts = tuple(
        build(op, tuple(value_of(x) if t is None else t[k] for x, t in zip(operands, taken, strict=True)))
        for k in range(len(first.parts))
    )
    return first._with_parts(parts)


def _shares(x: Any, first: Structured) -> bool:
    return isinstance(x, Structured) and x.layout == first.layout


# Zeros off some diagonals


def _of_zeros(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    found = zero_structure(op, operands, lambda x: x.structure if isinstance(x, Structured) else None)
    if found is None:
        return NotImplemented
    nothing = found.upper < -found.lower
    if not nothing and (len(shape) != 2 or shape[0] != shape[1]):
        return NotImplemented
    family = leaf_family(type(next(x for x in operands if isinstance(x, AbstractArray))))
    sig = promotion.signature(op, tuple(x.dtype if hasattr(x, "dtype") else WEAK[type(x)] for x in operands))
    if nothing:
        return filled(family, shape, sig.out.type(0), Zeros)
    made = _in_bands(op, operands, shape, found)
    return made if made is not NotImplemented else _in_triangle(op, operands, shape, found)


def _in_bands(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...], found: Structure) -> Any:
    if math.isinf(found.lower) or math.isinf(found.upper):
        return NotImplemented
    offsets = range(-int(found.lower), int(found.upper) + 1)
    if (banded_type(offsets)) is None:
        return NotImplemented
    return from_bands({k: build(op, tuple(_diagonal(x, k, shape) for x in operands)) for k in offsets})


def _diagonal(x: Any, k: int, shape: tuple[int, ...]) -> Any:
    """What an operation on the diagonal k reads of an operand."""
    return value_of(x) if is_number(x) else band(verbs.broadcast_to(x, shape), k)


def _in_triangle(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...], found: Structure) -> Any:
    from mirabelle.arraytypes.structured.triangular import LowerTriangular, UpperTriangular, filled_triangle

    if found.lower <= 0:
        cls: Any = UpperTriangular
    elif found.upper <= 0:
        cls = LowerTriangular
    else:
        return NotImplemented
    parts = tuple(value_of(x) if is_number(x) else filled_triangle(x, cls) for x in operands)
    part = build(op, parts)
    return cls(part if part.shape == shape else verbs.broadcast_to(part, shape))


def zero_structure(
    op: Op, operands: tuple[Any, ...], of: Callable[[Any], Structure | None]
) -> Structure | None:
    """Outside which structure the result is zero; None where it is not zero anywhere for sure.

    `of` gives the structure outside which an array is zero.
    """
    structures: list[Structure | None] = []
    values: list[Any] = []
    for x in operands:
        inside, value = _outside(x, of)
        structures.append(inside)
        values.append(value)
    found: list[Structure] = []
    # (Zeros of the structure and a number, NaN say, are known: nothing is to be assumed of them.)
    numbers = any(is_number(x) and not isinstance(x, Zeros) for x in operands)
    if all(v is not None for v in values):
        if not _is_zero_at(op, values):
            return None
        found.append(join_structure([s for s in structures if s is not None]))
    if not (numbers and found):
        for absorbing in _ABSORBING.get(op.name, ()):
            zero_there = [structures[i] for i in absorbing if values[i] is not None and values[i] == 0]
            if len(zero_there) == len(absorbing):
                found.append(join_structure([s for s in zero_there if s is not None]))
    if not found:
        return None
    return Structure(min(s.lower for s in found), min(s.upper for s in found))


def _outside(x: Any, of: Callable[[Any], Structure | None]) -> tuple[Structure | None, Any]:
    """(where an operand may be anything, what it is elsewhere or None if that is not known)."""
    if not isinstance(x, AbstractArray):
        return NUMBER, x
    if isinstance(x, Fill):
        return NUMBER, x.known
    inside = of(x)
    if inside is None or (math.isinf(inside.lower) and inside.lower > 0 and math.isinf(inside.upper)):
        return None, None
    return inside, x.dtype.type(0)


def _is_zero_at(op: Op, values: list[Any]) -> bool:
    """Is the result zero for these scalars?"""
    try:
        return bool(op.of_numbers(*values) == 0)
    except Exception:  # a user's function may be undefined there
        return False


# One half is the mirror of the other


def _of_mirrors(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    from mirabelle.arraytypes.structured.mirrored import Hermitian, Mirrored, Symmetric, upper_part

    if not any(isinstance(x, Mirrored) for x in operands):
        return NotImplemented
    joined = NUMBER
    for x in operands:
        if not is_number(x):
            joined |= x.structure if isinstance(x, Structured) else DENSE
        elif np.iscomplexobj(value_of(x)) or getattr(x, "dtype", np.dtype(float)).kind == "c":
            joined |= Structure(-math.inf, -math.inf, symmetric=True)
    if joined.symmetric:
        cls: Any = Symmetric
    elif joined.hermitian and op.name in _REAL_FUNCTIONS:
        cls = Hermitian
    else:
        return NotImplemented
    # What the part of a Hermitian matrix holds beside the real diagonal must not come into it.
    linear = op.name in ("add", "subtract", "negative", "positive", "conj", "real", "copy")
    clean = cls is Hermitian and not linear
    return cls(build(op, tuple(value_of(x) if is_number(x) else upper_part(x, clean) for x in operands)))


# Entries proportional to a part


def _of_proportions(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    at = [i for i, x in enumerate(operands) if not is_number(x)]
    if len(at) != 1 or not isinstance(operands[at[0]], Structured):
        return NotImplemented
    x = operands[at[0]]
    if op.name == "conj":
        return x._conjugated()
    if op.name == "real" and x.dtype.kind != "c":
        return x
    allowed = op.name in ("negative", "multiply") or (op.name == "divide" and at[0] == 0)
    if x.linear is None or not allowed:
        return NotImplemented
    parts = list(x.parts)
    parts[x.linear] = build(
        op, tuple(parts[x.linear] if i == at[0] else value_of(v) for i, v in enumerate(operands))
    )
    return x._with_parts(tuple(parts))


# Adding to some diagonals of a dense matrix


def _sum_with_dense(op: Op, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    if op.name not in ("add", "subtract") or not any(isinstance(x, Banded) for x in operands):
        return NotImplemented
    at = next(i for i, x in enumerate(operands) if isinstance(x, Banded))
    x, other = operands[at], operands[1 - at]
    if is_number(other) or other.shape != shape or (isinstance(other, Structured) and not other.fuses):
        return NotImplemented
    if isinstance(other, Structured):
        other = other._dense()
    if x.carries_derivatives or other.carries_derivatives:
        return build(op, (x._dense(), other) if at == 0 else (other, x._dense()))
    sig = promotion.signature(op, tuple(argument_type(type(v)) for v in operands))
    negated = op.name == "subtract" and at == 0
    out = computed(verbs.astype(verbs.negative(other) if negated else other, sig.out))
    update = verbs.subtract if op.name == "subtract" and at == 1 else verbs.add
    for k, part in zip(x.offsets, x.parts, strict=True):
        shown = diagonal_view(out, k)
        verbs.assign(shown, update(shown, part))
    return out
