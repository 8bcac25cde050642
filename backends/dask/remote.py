"""Remote: what the notebook holds of an array that lives on the workers."""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.dispatch.errors import MirabelleError

if TYPE_CHECKING:
    from mirabelle.backends.dask.session import Session


class Remote:
    """An array on the workers of a session. Hand it to programs of the session; `fetch()` brings it here.

    The workers let go of it when nothing here holds it any more.
    """

    __module__ = "mirabelle"
    __slots__ = ("__weakref__", "dtype", "key", "kind", "layout", "session", "shape")

    def __init__(self, session: Session, key: Any, described: dict[str, Any]) -> None:
        self.session = session
        self.key = key
        # The type of the array there, and how it is divided: None if each worker has one of its own.
        self.kind: str = described["kind"]
        self.layout: str | None = described["layout"]
        self.shape: tuple[int, ...] = described["shape"]
        self.dtype: np.dtype = described["dtype"]
        weakref.finalize(self, release, weakref.ref(session), key).atexit = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: this array has no dimensions.")
        return self.shape[0]

    def fetch(self, rank: int = 0) -> np.ndarray:
        """Its contents as a NumPy array. Of an array that is not divided, that of a rank."""
        return self.session._fetch(self, rank)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"This array of {self.nbytes} bytes lives on the workers, and is not copied here unasked. "
            "Fetch it with x.fetch(), or compute with it in a program of the session."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"A Remote has no {name!r}: the array lives on the workers. Compute in a program, "
            f"session.run(lambda x: x.{name}, x), or fetch the whole with x.fetch()."
        )

    @staticmethod
    def _instead_of(name: str) -> str:
        """What to do where a function of mirabelle was called with one."""
        return (
            f"mb.{name} cannot compute with a Remote here: the array lives on the workers. Compute in a "
            f"program of the session, `session.run(mb.{name}, x)`, or fetch it first: `mb.{name}(x.fetch())`."
        )

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "A Remote cannot be computed with here: the array lives on the workers. Compute in a program of "
            "the session, `session.run(lambda x: x + 1, x)`, or fetch it first: `x.fetch() + 1`."
        )

    __array_ufunc__ = __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __getitem__ = __setitem__ = __iter__ = _refuse
    __float__ = __int__ = __bool__ = _refuse

    def __reduce__(self) -> Any:
        raise TypeError(
            "A Remote stands for an array of this session and cannot be pickled. Fetch it with x.fetch(), or "
            "save the array on the workers: session.run(mb.save, path, x)."
        )

    def __repr__(self) -> str:
        return f"<Remote {self._type()} of shape {self.shape} on {self._where()}>"

    def _repr_html_(self) -> str:
        """As the array shows itself on the workers, with its layout; or what is known of it here."""
        from mirabelle.arraytypes.cards import card
        from mirabelle.backends.dask import member

        shown = None
        with contextlib.suppress(MirabelleError):
            shown = self.session.run(member.card_of, self)
        if shown is not None:
            return shown
        rows = {
            "shape": " × ".join(map(str, self.shape)) or "()",
            "dtype": self.dtype.name,
            "layout": self.layout or "whole on each worker",
            "size": f"{self.nbytes:,} bytes",
            "workers": str(self.session.size),
        }
        return card(f"Remote {self.kind}", rows, "")

    def _type(self) -> str:
        return self.kind if "[" in self.kind else f"{self.kind}[{self.dtype}, {self.ndim}]"

    def _where(self) -> str:
        workers = f"{self.session.size} worker{'s' if self.session.size > 1 else ''}"
        return f"{workers}, {self.layout}" if self.layout else f"each of {workers}"


def release(session: Any, key: Any) -> None:
    """Nothing here holds an array, or a program, any more: its session tells the workers some time."""
    found = session()
    if found is not None:
        found._forget(key)
