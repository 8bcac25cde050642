"""Fourier transforms of the host: NumPy's, and SciPy's for large arrays, where it is installed.

SciPy's come from the same algorithms (pocketfft), use threads, and compute the transform of a
real array from half of it. So the last bits of a large transform depend on whether SciPy is there.
(What is called is its compiled module alone: pocketfft.py.)

SciPy keeps the plans of the last 16 lengths of each kind for good: for lengths near four million these are
gigabytes. Before they come to more than `PLAN_BYTES` it is made to let go of them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, pool
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch.settings import settings

# From this many elements on, the hand-over to SciPy is worth it.
LARGE = 1 << 15


# What plans may come to beside the one in use; lengths of smaller plans are not counted.
PLAN_BYTES, SMALL_PLAN = 64 << 20, 1 << 18
# SciPy keeps as many plans of one kind and precision: so many others take their place.
_KEPT = 16
# The plans that were used since SciPy last let go of all: their bytes, by the kind, the dtype and the length.
_plans: dict[tuple[bool, Any, int], int] = {}
_lock = threading.Lock()


@functools.lru_cache(maxsize=1 << 10)
def plan_bytes(n: int) -> int:
    """About how many bytes a plan for a length takes at most.

    >>> plan_bytes(1 << 20) >> 20, plan_bytes(1_000_003) >> 20
    (16, 76)
    """
    rest, factor = n, 2
    while factor * factor <= rest:
        if rest % factor:
            factor += 1
        else:
            rest //= factor
    # (A length with a large prime factor is transformed by way of two longer ones.)
    return n * (16 if rest * rest <= n else 80)


def _lengths(x: np.ndarray, options: dict[str, Any]) -> Iterable[int]:
    """The lengths of the transforms of an array, as the arguments of NumPy's functions say."""
    if "axes" in options or "s" in options or "axis" not in options:
        yield from options.get("s") or (x.shape[a] for a in options.get("axes") or range(x.ndim))
    yield options.get("n") or (x.shape[options.get("axis", -1)] if x.ndim else 1)


def note_plans(name: str, x: np.ndarray, options: dict[str, Any]) -> None:
    """Have SciPy let go of its plans, if with those for a transform that is to come they would be too many."""
    coming = {}
    for n in _lengths(x, options):
        nbytes = plan_bytes(int(n))
        if nbytes >= SMALL_PLAN:
            coming[name.startswith(("fft", "ifft")) and x.dtype.kind == "c", x.dtype, int(n)] = nbytes
    if not coming:
        return
    with _lock:
        new = sum(nbytes for key, nbytes in coming.items() if key not in _plans)
        if new and new + sum(_plans.values()) > PLAN_BYTES:
            _let_go()
        _plans.update(coming)


def _let_go() -> None:
    """Other, tiny plans take the place of those that SciPy keeps."""
    fft = scipys()
    for dtype in (np.float64, np.float32):
        for n in range(2, 2 + _KEPT):
            x: Any = np.zeros(n, dtype)
            fft.rfft(x)
            fft.fft(x + 0j)
            for kind in range(1, 5):
                fft.dct(x, kind)
                fft.dst(x, kind)
    _plans.clear()


def let_go() -> None:
    """Give back what SciPy's plans take."""
    with _lock:
        if _plans:
            _let_go()


pool.kept["plans"] = (lambda: sum(_plans.values()), let_go)


@functools.cache
def scipys() -> Any:
    """What has SciPy's transforms; None where SciPy is not installed."""
    from mirabelle.backends.host import pocketfft

    return pocketfft.transforms()


def _transform(name: str) -> None:
    def run(x: np.ndarray, **options: Any) -> Any:
        plain = getattr(np.fft, name, None)  # (NumPy imports its transforms with the first)
        found = scipys() if plain is None or x.size >= LARGE else None
        if found is not None:
            if x.dtype.kind == "b":
                x = x.astype(np.float64)
            note_plans(name, x, options)
            return getattr(found, name)(x, workers=settings.num_threads, **options)
        if plain is None:
            raise ImportError(f"mb.fft.{name} is SciPy's, and SciPy is not installed: `pip install scipy`.")
        return plain(x, **options)

    run.__name__ = name
    library.routine(HostArray, f"fft.{name}")(run)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"):
    _transform(_name)
for _name in ("dct", "idct", "dst", "idst"):
    _transform(_name)
