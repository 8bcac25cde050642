"""What all functions of matrices share: checks, dtypes, calls of the place's library, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.errors import MirabelleError

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class LinAlgError(MirabelleError, np.linalg.LinAlgError):
    """A function of matrices has no answer for these: a singular matrix, one that is not square, ...

    >>> import mirabelle as mb
    >>> try:
    ...     mb.linalg.inv(mb.HostArray([[1.0, 1.0], [1.0, 1.0]]))
    ... except mb.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


def check_matrices(name: str, x: Any) -> None:
    """Refuse what has no rows and columns."""
    if x.ndim < 2:
        raise LinAlgError(
            f"{name} takes a matrix, or a stack of them in the last two dimensions; this array has shape "
            f"{x.shape}. Make a vector one column with x[:, None]."
        )


def check_square(name: str, x: Any) -> None:
    check_matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise LinAlgError(
            f"{name} takes square matrices; these have {x.shape[-2]} rows and {x.shape[-1]} columns. For "
            "others there are mb.linalg.lstsq, pinv, qr and svd."
        )


def working_dtype(name: str, *operands: Any) -> np.dtype:
    """The dtype LAPACK works in: integers become double precision, half precision single."""
    dtype = promotion.result_type(*[_DOUBLE if x.dtype.kind in "biu" else x.dtype for x in operands])
    if dtype == np.float16:
        return _SINGLE
    if dtype.char not in "fdFD":
        raise TypeError(
            f"{name} works in single and double precision, not in {dtype.name}. Convert first: "
            "`x.astype(mb.float64)`."
        )
    return dtype


def inexact(name: str, *operands: Any) -> tuple[Any, ...]:
    """The operands in the dtype that LAPACK works in."""
    first = operands[0].dtype
    if first.char in "fdFD" and all(x.dtype is first for x in operands):
        return operands
    dtype = working_dtype(name, *operands)
    return tuple(cast_to(x, dtype) for x in operands)


def call(name: str, routine: str, *operands: Any, **options: Any) -> Any:
    """Run a routine of the place's LAPACK; half precision goes in and comes out, single is worked in."""
    half = all(x.dtype.char == "e" for x in operands)
    result = refusing(name, routine, *inexact(name, *operands), **options)
    return _halved(result) if half else result


def refusing(name: str, routine: str, *operands: Any, **options: Any) -> Any:
    """Run a routine as it is; what it refuses is said in a sentence."""
    try:
        return library.call(routine, *operands, **options)
    except (np.linalg.LinAlgError, ValueError) as e:
        if isinstance(e, MirabelleError):
            raise
        text = _sentence(name, str(e), any(getattr(x, "ndim", 0) > 2 for x in operands))
        if text is None:
            raise
        raise LinAlgError(text) from None


def _halved(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_halved(r) for r in result)
    if isinstance(result, AbstractArray) and result.dtype == _SINGLE:
        return cast_to(result, np.dtype(np.float16))
    return result


def _sentence(name: str, said: str, stack: bool) -> str | None:
    """What happened, the usual cause, the cure; None for what is no matter of matrices."""
    which = "a matrix of the stack" if stack else "the matrix"
    said = said.lower()
    if "singular" in said:
        return singular(name, which)
    if "positive" in said:
        return (
            f"{name}: {which} is not positive definite, to working precision. A symmetric matrix that is not "
            "has mb.linalg.ldl(A), any square one mb.linalg.lu(A); mb.linalg.factorize(A) chooses."
        )
    if "converge" in said:
        return (
            f"{name}: the iteration did not converge for {which}. Usually it holds NaN or infinity: see "
            "`mb.all(mb.isfinite(A))`."
        )
    if "empty" in said:
        return f"{name}: {which} has no elements, and this is not defined for none. Look at x.shape first."
    if "infs or nans" in said:
        return f"{name}: {which} holds NaN or infinity. See where: `mb.nonzero(~mb.isfinite(A))`."
    return None


def singular(name: str, which: str = "the matrix") -> str:
    return (
        f"{name}: {which} is singular, so that there is no solution, or more than one. The one of least "
        "squares is mb.linalg.lstsq(A, b); mb.linalg.pinv(A) is the pseudo-inverse."
    )


def adjoint(x: Any) -> Any:
    """The matrices transposed, and conjugated if they are complex."""
    return verbs.conj(x.mT) if x.dtype.kind == "c" else x.mT


def identity_like(x: Any, n: int, dtype: Any = None) -> Any:
    """The identity matrix of size `n` where `x` is."""
    from mirabelle.arraytypes.parts import diagonal_view

    made = verbs.similar(x, dtype=x.dtype if dtype is None else dtype, shape=(n, n))
    verbs.assign(made, 0)
    verbs.assign(diagonal_view(made), 1)
    return made
