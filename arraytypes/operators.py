"""The operators of arrays: the generic functions themselves, bound as they are.

A checker of types sees what an operator gives, which the generic functions (whose methods are found at run
time) cannot tell it: an array, and of `divmod` two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from mirabelle.dispatch import native, verbs
from mirabelle.dispatch.policy import writing

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import ArrayLike, Index


def _reflected(verb: Any) -> Any:
    methods = verb.core.operator_table

    def reflected(self: Any, other: Any, /) -> Any:
        return methods[type(other), type(self)](other, self)

    reflected.__name__ = f"r{verb.__name__}"
    return native.operator(methods, reflected, 2, swapped=True)


def _written(x: Any, result: Any) -> Any:
    """The array, after what `x + y` came to is written to it."""
    if result.ndim != x.ndim:  # (an assignment would leave axes of 1 in front away)
        raise ValueError(
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast shape "
            f"{result.shape}. Write `x = x + y` for a new array, or reshape what is added."
        )
    return verbs.assign.core.table[type(x), type(result)](x, result, casting="same_kind")


_assign = native.operator(verbs.assign.core.table, verbs.assign, 2)


def _inplace(verb: Any) -> Any:
    method = verb.operator

    def inplace(self: Any, other: Any, /) -> Any:
        if not self.ndim and self._is_number():
            return NotImplemented  # Python rebinds the name: who else holds the result keeps it as it is
        leaf = self._shared()
        if leaf is None:
            result = method(self, other)
        else:
            writing.leaf = leaf
            try:
                result = method(self, other)
            finally:
                writing.leaf = None
        return result if result is NotImplemented else _written(self, result)

    inplace.__name__ = f"i{verb.__name__}"
    return native.in_c.Inplace(method, _assign, _written, inplace)


_raised_in_place = _inplace(verbs.pow)


def _is_root(x: Any, exponent: Any) -> bool:
    """As NumPy: the operator takes the square root for a literal 0.5, the function does not."""
    return type(exponent) is float and exponent == 0.5 and x.dtype.kind in "fc"


def _power(x: Any, exponent: Any, /) -> Any:
    # (As NumPy: the square of truth values is int8 for the operator, and int64 for the function.)
    if type(exponent) is int and exponent == 2 and x.dtype.kind == "b":
        return verbs.square(x)
    return verbs.pow.operator(x, exponent)


def _to_half(x: Any, exponent: float, /) -> Any:
    return verbs.sqrt(x) if _is_root(x, exponent) else verbs.pow.operator(x, exponent)


class Operators:
    """The operators, for `AbstractArray`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __add__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __radd__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __sub__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rsub__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __mul__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rmul__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __truediv__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rtruediv__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __floordiv__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rfloordiv__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __mod__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rmod__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __pow__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rpow__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __and__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rand__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __or__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __ror__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __xor__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rxor__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __lshift__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rlshift__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rshift__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rrshift__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __matmul__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __rmatmul__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __lt__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __le__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __gt__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __ge__(self, other: ArrayLike, /) -> AbstractArray: ...
        def __eq__(self, other: object, /) -> AbstractArray: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> AbstractArray: ...  # type: ignore[override]
        def __neg__(self) -> AbstractArray: ...
        def __pos__(self) -> AbstractArray: ...
        def __abs__(self) -> AbstractArray: ...
        def __invert__(self) -> AbstractArray: ...
        def __iadd__(self, other: ArrayLike, /) -> Self: ...
        def __isub__(self, other: ArrayLike, /) -> Self: ...
        def __imul__(self, other: ArrayLike, /) -> Self: ...
        def __itruediv__(self, other: ArrayLike, /) -> Self: ...
        def __ifloordiv__(self, other: ArrayLike, /) -> Self: ...
        def __imod__(self, other: ArrayLike, /) -> Self: ...
        def __ipow__(self, other: ArrayLike, /) -> Self: ...
        def __iand__(self, other: ArrayLike, /) -> Self: ...
        def __ior__(self, other: ArrayLike, /) -> Self: ...
        def __ixor__(self, other: ArrayLike, /) -> Self: ...
        def __ilshift__(self, other: ArrayLike, /) -> Self: ...
        def __irshift__(self, other: ArrayLike, /) -> Self: ...
        def __imatmul__(self, other: ArrayLike, /) -> Self: ...
        def __divmod__(self, other: ArrayLike, /) -> tuple[AbstractArray, AbstractArray]: ...
        def __rdivmod__(self, other: ArrayLike, /) -> tuple[AbstractArray, AbstractArray]: ...
        def __getitem__(self, index: Index, /) -> AbstractArray: ...
        def __setitem__(self, index: Index, value: ArrayLike, /) -> None: ...
    else:
        # Elementwise operators: the generic functions, bound as they are.

        __add__, __radd__ = verbs.add.operator, _reflected(verbs.add)
        __sub__, __rsub__ = verbs.subtract.operator, _reflected(verbs.subtract)
        __mul__, __rmul__ = verbs.multiply.operator, _reflected(verbs.multiply)
        __truediv__, __rtruediv__ = verbs.divide.operator, _reflected(verbs.divide)
        __floordiv__, __rfloordiv__ = verbs.floor_divide.operator, _reflected(verbs.floor_divide)
        __mod__, __rmod__ = verbs.remainder.operator, _reflected(verbs.remainder)
        __rpow__ = _reflected(verbs.pow)
        __and__, __rand__ = verbs.bitwise_and.operator, _reflected(verbs.bitwise_and)
        __or__, __ror__ = verbs.bitwise_or.operator, _reflected(verbs.bitwise_or)
        __xor__, __rxor__ = verbs.bitwise_xor.operator, _reflected(verbs.bitwise_xor)
        __lshift__ = verbs.bitwise_left_shift.operator
        __rlshift__ = _reflected(verbs.bitwise_left_shift)
        __rshift__ = verbs.bitwise_right_shift.operator
        __rrshift__ = _reflected(verbs.bitwise_right_shift)
        __matmul__, __rmatmul__ = verbs.matmul.operator, _reflected(verbs.matmul)
        __lt__, __le__ = verbs.less.operator, verbs.less_equal.operator
        __gt__, __ge__ = verbs.greater.operator, verbs.greater_equal.operator
        __eq__ = verbs.equal.operator
        __ne__ = verbs.not_equal.operator
        __neg__, __pos__ = verbs.negative.operator, verbs.positive.operator
        __abs__, __invert__ = verbs.abs.operator, verbs.bitwise_invert.operator

        __iadd__, __isub__ = _inplace(verbs.add), _inplace(verbs.subtract)
        __imul__, __itruediv__ = _inplace(verbs.multiply), _inplace(verbs.divide)
        __ifloordiv__, __imod__ = _inplace(verbs.floor_divide), _inplace(verbs.remainder)
        __iand__, __ior__ = _inplace(verbs.bitwise_and), _inplace(verbs.bitwise_or)
        __ixor__ = _inplace(verbs.bitwise_xor)
        __ilshift__ = _inplace(verbs.bitwise_left_shift)
        __irshift__ = _inplace(verbs.bitwise_right_shift)
        __imatmul__ = _inplace(verbs.matmul)

        __pow__ = native.operator(verbs.pow.core.operator_table, _power, 2, False, _to_half)

        def __ipow__(self, other: Any, /) -> Any:
            if _is_root(self, other) and (self.ndim or not self._is_number()):
                return _written(self, verbs.sqrt(self))
            return _raised_in_place(self, other)

        def __divmod__(self, other: Any, /) -> Any:
            return verbs.divmod.operator(self, other)

        def __rdivmod__(self, other: Any, /) -> Any:
            return verbs.divmod.operator(other, self)

        __getitem__ = native.operator(verbs.getitem.core.table, verbs.getitem, 2)
        __setitem__ = native.operator(verbs.setitem.core.table, verbs.setitem, 3)
