"""Elementwise functions used as NumPy's ufuncs: `mb.add(x, y, out=z, where=m)`, `mb.add.reduce(x)`.

One mechanism for all of them. A call with more than the operands, and a method of a function of two, are what
NumPy's ufunc of our arrays is (`arraytypes/interop.py`): reductions, scans, pairs and scatters by verbs.

>>> import mirabelle as mb
>>> x, y = mb.HostArray([1.0, 2.0, 3.0]), mb.zeros(3)
>>> mb.multiply(x, 2, out=y, where=x > 1) is y
True
>>> print(y, mb.maximum.reduce(x), mb.subtract.outer(x, [1.0, 2.0])[2])
[0. 4. 6.] 3.0 [2. 1.]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.functions.elementary import around
from mirabelle.arraytypes.interop import called, numpy_ufunc
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import TABLE, Op
from mirabelle.dispatch.signatures import with_options


def _with_options(verb: Any, function: np.ufunc | Op, nin: int, name: str) -> Any:
    """What answers a call of `verb` with NumPy's options, or with its outputs after the operands."""

    def further(*operands: Any, **options: Any) -> Any:
        outputs = operands[nin:]
        if outputs and (len(outputs) > function.nout or options.get("out") is not None):
            raise TypeError(
                f"{name}() takes {nin} operand{'s' * (nin > 1)}, and then where the result goes, once: "
                f"`mb.{name}({', '.join('xyz'[:nin])}, out=result)`."
            )
        if outputs:
            options["out"] = outputs
        return called(verb, function, operands[:nin], options)

    return further


def _rounded(x: Any, decimals: Any = 0, out: Any = None, **options: Any) -> Any:
    """mb.round(x, decimals), or mb.rint(x, out): one function here."""
    if decimals is None or isinstance(decimals, AbstractArray):
        decimals, out = 0, decimals
    if options and decimals:
        raise TypeError("round: where=, dtype= and casting= are of whole numbers, without decimals=.")
    if options:
        return called(verbs.round, TABLE["round"], (x,), {"out": out, **options})
    return around(x, decimals, out)


class _Methods:
    """The methods of NumPy's ufuncs, for one function of two operands."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def _run(self, method: str, *operands: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            options["out"] = out if isinstance(out, tuple) else (out,)
        return numpy_ufunc(self, self._ufunc, method, *operands, **options)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = True,
    ) -> Any:  # fmt: skip
        """The elements along an axis combined by the function, as np.add.reduce does."""
        options = {"dtype": dtype, "initial": initial}
        options = {k: v for k, v in options.items() if v is not None}
        if keepdims:
            options["keepdims"] = True
        if where is not True:
            options["where"] = where
        return self._run("reduce", as_array(array), axis=axis, out=out, **options)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The running combination along an axis, as np.add.accumulate gives it."""
        return self._run("accumulate", as_array(array), axis=axis, dtype=dtype, out=out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The combinations of the stretches that begin at `indices`, as np.add.reduceat gives them."""
        return self._run("reduceat", as_array(array), indices, axis=axis, dtype=dtype, out=out)

    def outer(self, A: Any, B: Any, /, **options: Any) -> Any:
        """The function of all pairs of elements, as np.add.outer: pending, and fused with what reads it."""
        return self._run("outer", A, B, **options)

    def at(self, a: Any, indices: Any, b: Any, /) -> None:
        """a[indices] = f(a[indices], b), for every entry of the index in turn, as np.add.at does."""
        if not isinstance(a, AbstractArray):
            raise TypeError(
                f"{self._ufunc.__name__}.at writes into an array of mirabelle, and this is a "
                f"{type(a).__name__}. Make one: `x = mb.asarray(a)`."
            )
        self._run("at", a, indices, b)


def _register() -> None:
    for name, verb in verbs.ELEMENTWISE.items():
        op = TABLE[name]
        if name in ("where", "real", "imag"):
            continue  # which are no ufuncs
        verb.further(_with_options(verb, op, op.nin, name))
        with_options(verb, _options)
        if op.nin == 2 and op.nout == 1 and op.ufunc is not None:
            methods = _Methods(op.ufunc)
            for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
                setattr(verb, method, getattr(methods, method))
    verbs.round.further(_rounded)
    verbs.matmul.further(_with_options(verbs.matmul, np.matmul, 2, "matmul"))


def _options(*, out: Any = None, where: Any = True) -> None:
    """What NumPy's functions take besides, as `help` shows it."""


_register()
