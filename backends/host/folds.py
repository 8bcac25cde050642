"""Folds and scans with a user's function of two scalars."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.ops import forgetting


@lru_cache(maxsize=64)
def _compiled(op: Callable[..., Any], scan: bool) -> Any:
    from mirabelle.backends.host import scalarloops

    f = _called(op)
    if scan:

        def scan_rows(rows, out):  # type: ignore[no-untyped-def]
            for i in range(rows.shape[0]):
                total = rows[i, 0]
                out[i, 0] = total
                for j in range(1, rows.shape[1]):
                    total = f(total, rows[i, j])
                    out[i, j] = total

        return scalarloops.engine(scan_rows, {})

    def fold_rows(rows, init, out):  # type: ignore[no-untyped-def]
        for i in range(rows.shape[0]):
            total = init
            for j in range(rows.shape[1]):
                total = f(total, rows[i, j])
            out[i] = total

    return scalarloops.engine(fold_rows, {})


def _called(op: Any) -> Any:
    """A function as others call it: as one of `mb.jit`, whose callers are kept on disk, too."""
    from mirabelle.arraytypes.jit import Jitted
    from mirabelle.arraytypes.usercode import userfunctions

    plain = isinstance(op, types.FunctionType) and userfunctions.calls_no_other(op)
    return Jitted(op, {}) if plain else userfunctions.jitted(op)


forgetting.append(_compiled.cache_clear)


def _run(op: Callable[..., Any], kernel: Any, *args: Any) -> None:
    from numba.core.errors import NumbaError

    try:
        kernel(*args)
    except NumbaError as e:
        raise UserFunctionError(
            f"{getattr(op, '__name__', op)}() cannot be compiled as an operation of two scalars: "
            f"{str(e).splitlines()[0]}. It must take two numbers and return one of the same kind."
        ) from None


def fold(op: Callable[..., Any], rows: np.ndarray, init: Any) -> np.ndarray:
    """Combine each row, starting from `init`."""
    out = np.empty(rows.shape[0], rows.dtype)
    _run(op, _compiled(op, False), rows, init, out)
    return out


def scan(op: Callable[..., Any], rows: np.ndarray) -> np.ndarray:
    """The running combination of each row."""
    out = np.empty_like(rows)
    if rows.shape[1]:
        _run(op, _compiled(op, True), rows, out)
    return out
