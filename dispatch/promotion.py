"""Result dtypes: NumPy's own rules (NEP 50), asked once per combination and kept.

>>> import numpy as np
>>> from mirabelle.dispatch.ops import TABLE
>>> from mirabelle.dispatch.promotion import signature
>>> signature(TABLE["add"], (np.dtype("float32"), float)).out
dtype('float32')
>>> signature(TABLE["add"], (np.dtype("int8"), np.dtype("float32"))).out
dtype('float32')
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.dispatch.ops import TABLE, Op, forgetting

# What a Python scalar is to the rules: weak, so that float32 + 1.0 stays float32.
WEAK: dict[type, Any] = {int: int, float: float, complex: complex, bool: np.dtype(bool)}
_EXEMPLAR: dict[Any, Any] = {int: 0, float: 0.0, complex: 0j}
_ids = itertools.count()


def _where(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)


# What evaluates operations that are no ufuncs on whole arrays, with the dtype the rules say.
_DIRECT: dict[str, Callable[..., Any]] = {"where": _where}


def through_int64(source: np.dtype, target: np.dtype) -> bool:
    """Are numbers converted by way of int64?

    (NumPy's vector code has other numbers than its own plain code for reals outside of uint32's range.)
    """
    return target == np.uint32 and source.kind in "fc"


def mark_of(*words: Any) -> int:
    """A number of what words say: the same in every process, never 0."""
    said = "\n".join(map(str, words)).encode()
    return int.from_bytes(hashlib.blake2b(said, digest_size=7).digest(), "little") or 1


class Sig:
    """An operation at definite dtypes: what its operands are cast to and what comes out."""

    __slots__ = ("cost", "direct", "id", "ins", "mark", "op", "out", "outs")

    def __init__(self, op: Op, ins: tuple[np.dtype, ...], outs: tuple[np.dtype, ...]) -> None:
        self.op = op
        self.ins = ins
        self.outs = outs
        self.out = outs[0]
        self.cost = op.cost
        # What evaluates it on whole NumPy arrays, where one call does.
        self.direct = (op.ufunc or _DIRECT.get(op.name)) if op.nout == 1 else None
        if op.name == "copy" or (op.name == "cast" and (ins[0].kind != "c" or self.out.kind in "cb")):
            self.direct = functools.partial(np.array, dtype=self.out)
            if ins[0].kind == "f" and through_int64(ins[0], self.out):
                self.direct = lambda x: np.array(np.asarray(x).astype(np.int64), dtype=np.uint32)
        self.id = next(_ids)
        # The same number in every process; 0 of what changes no value (see distributed/histories.py).
        self.mark = 0 if op.name == "copy" else mark_of(op.name, *outs)

    def __repr__(self) -> str:
        ins = ", ".join(d.name for d in self.ins)
        outs = ", ".join(d.name for d in self.outs)
        return f"{self.op.name}({ins}) -> {outs}"

    def __reduce__(self) -> Any:
        return (intern, (self.op, self.ins, self.outs))


_cache: dict[tuple[Op, tuple[Any, ...]], Sig] = {}
_interned: dict[tuple[Any, ...], Sig] = {}


def _forget() -> None:
    """Drop the signatures of operations that were forgotten. (Trees that wait hold theirs.)"""
    for table in (_cache, _interned):
        for key in [k for k in list(table) if k[0].forgotten]:
            table.pop(key, None)


forgetting.append(_forget)


def intern(op: Op, ins: tuple[np.dtype, ...], outs: tuple[np.dtype, ...]) -> Sig:
    """The one Sig of an operation at these dtypes."""
    key = (op, ins, outs)
    sig = _interned.get(key)
    if sig is None:
        # NumPy's one object for each dtype, so that equal dtypes mostly are the same.
        sig = _interned.setdefault(key, Sig(op, _single(ins), _single(outs)))
    return sig


def _single(dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
    return tuple([np.dtype(d.type) if d.isbuiltin else d for d in dtypes])


def signature(op: Op, argtypes: tuple[Any, ...]) -> Sig:
    """The signature for operands of these dtypes (or Python scalar types, which are weak)."""
    key = (op, argtypes)
    sig = _cache.get(key)
    if sig is None:
        sig = _cache[key] = _resolve(op, argtypes)
    return sig


def cast(source: np.dtype, target: np.dtype) -> Sig:
    """The signature of a cast."""
    return intern(TABLE["cast"], (source,), (target,))


def pick(sig: Sig, i: int) -> Sig:
    """The signature that takes the i-th result of an operation with several."""
    return intern(TABLE[f"pick{i}"], (sig.outs[i],), (sig.outs[i],))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The common dtype of arrays, dtypes and Python scalars (or their types), which are weak.

    Parameters
    ----------
    *arrays_and_dtypes : arrays, dtypes and numbers
        What is combined.

    Returns
    -------
    dtype
        A dtype of NumPy's, by NumPy's rules of promotion.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.result_type(mb.float32, float)
    dtype('float32')
    >>> mb.result_type(mb.RefArray([1, 2]), mb.float32, 2j)
    dtype('complex128')
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one array or dtype: mb.result_type(x, mb.float32).")
    return np.result_type(*map(_typed, arrays_and_dtypes))


def _typed(a: Any) -> Any:
    """What NumPy's rules look at: a dtype, or an exemplar of a weak scalar."""
    if isinstance(a, type):
        return _EXEMPLAR.get(a, a)
    if isinstance(a, (int, float, complex, np.dtype, str)):
        return a
    return getattr(a, "dtype", a)


def _resolve(op: Op, argtypes: tuple[Any, ...]) -> Sig:
    if op.ufunc is not None:
        return _from_ufunc(op, argtypes)
    if op.name == "where":
        common = result_type(*argtypes[1:])
        return intern(op, (np.dtype(bool), common, common), (common,))
    if op.name in ("copy", "materialize"):
        (t,) = argtypes
        t = result_type(t)
        return intern(op, (t,), (t,))
    if op.name in ("real", "imag"):
        t = result_type(argtypes[0])
        part = np.dtype(f"f{t.itemsize // 2}") if t.kind == "c" else t
        return intern(op, (t,), (part,))
    if op.name == "complex":
        part = result_type(*argtypes)
        return intern(op, (part, part), (np.dtype(f"c{2 * part.itemsize}"),))
    dtypes = tuple(result_type(t) for t in argtypes)
    if op.name == "fma" or (op.scalar is not None and TABLE.get(op.name) is op):
        common = _floating(result_type(*argtypes), op, dtypes)
        return intern(op, (common,) * op.nin, (common,))
    return intern(op, dtypes, op.returned(dtypes))


def _floating(dtype: np.dtype, op: Op, given: tuple[np.dtype, ...]) -> np.dtype:
    if dtype.kind in "biu":
        return np.dtype(np.float64 if dtype.itemsize > 2 or dtype.kind == "b" else np.float32)
    if dtype.kind == "f":
        return dtype
    raise TypeError(
        f"{op.name}() takes real numbers, and its operands are {', '.join(d.name for d in given)}. "
        "Take mb.real(x), mb.imag(x) or mb.abs(x) first."
    )


def _from_ufunc(op: Op, argtypes: tuple[Any, ...]) -> Sig:
    ufunc = op.ufunc
    assert ufunc is not None
    if all(a in _EXEMPLAR for a in argtypes):
        argtypes = tuple(result_type(a) for a in argtypes)
    try:
        resolved = ufunc.resolve_dtypes((*argtypes, *([None] * op.nout)))
    except TypeError as e:
        names = ", ".join(a.name if isinstance(a, np.dtype) else a.__name__ for a in argtypes)
        if "boolean" in str(e):
            raise TypeError(str(e)) from None
        raise TypeError(
            f"{op.name}() is not defined for ({names}). "
            + (
                "Whole numbers and truths have bits. Compare: `x > 0`, or convert: `x.astype(mb.int64)`."
                if op.name.startswith("bitwise")
                else "Convert an operand first, for instance `x.astype(mb.float64)`."
            )
        ) from None
    return intern(op, tuple(resolved[: op.nin]), tuple(resolved[op.nin :]))


def code(dtype: np.dtype) -> str:
    """The short name of a dtype in generated source: f8, i4, b1, c16.

    >>> code(np.dtype("int32"))
    'i4'
    """
    return dtype.str[1:]
