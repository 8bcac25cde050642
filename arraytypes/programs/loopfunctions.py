"""Loops over elements as functions of `mb.jit`: until its code is there, a loop runs as NumPy runs it.

Compiling takes seconds, and a helper process does it. A function that is captured meanwhile goes on without a
program (`StillCompiling`); a loop that is run begins on NumPy's arrays, and is begun again when its code is
there, with what it wrote to put back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.jit import Jitted, is_coming
from mirabelle.arraytypes.programs.stillcompiling import StillCompiling, may_go_on
from mirabelle.dispatch.errors import UserFunctionError

# Whether code has come is asked so often, in seconds.
_EVERY = 0.02


class _CodeIsThere(BaseException):
    """Ends a loop that Python runs."""


class Turn:
    """Called at each turn of a loop that Python runs: ends it when there is code for it."""

    def __init__(self) -> None:
        self.here = threading.local()

    def __call__(self) -> None:
        now = time.perf_counter()
        if now >= self.here.next:
            if not self.here.coming():
                raise _CodeIsThere
            self.here.next = now + _EVERY

    @contextlib.contextmanager
    def asking(self, coming: Callable[[], bool]) -> Iterator[None]:
        self.here.coming, self.here.next = coming, time.perf_counter() + _EVERY
        yield


class LoopFunction(Jitted):
    """A loop as a compiled function; `numpys` makes the one that runs meanwhile, which calls a `Turn`."""

    def __init__(self, function: Any, options: dict[str, bool], numpys: Callable[[Turn], Any]) -> None:
        super().__init__(function, options)
        self._numpys = numpys
        self._turn = Turn()
        self._meanwhile: Any = None
        # The kinds of arguments for which code is here.
        self._ready: set[Any] = set()

    def check(self, args: Sequence[Any]) -> None:
        """Refuse to wait for code where whoever captures may go on without."""
        if may_go_on() and is_coming(self, args):
            raise StillCompiling(self.__name__, lambda: self._comes(args, False))

    def _run(self, views: list[Any]) -> Any:
        kinds = tuple([(x.dtype, x.ndim, x.flags.num) if type(x) is np.ndarray else type(x) for x in views])
        if kinds not in self._ready:
            if is_coming(self, views):
                with contextlib.suppress(_CodeIsThere):
                    return self._by_numpy(views)
            self._ready.add(kinds)
        return super()._run(views)

    def _by_numpy(self, views: list[Any]) -> Any:
        if self._meanwhile is None:
            self._meanwhile = self._numpys(self._turn)
        written = zip(views, self._uses(len(views)), strict=True)
        before = [(x, x.copy()) for x, (_, how) in written if how and isinstance(x, np.ndarray)]
        try:
            with self._turn.asking(lambda: self._comes(views, True)), np.errstate(all="ignore"):
                return self._meanwhile(*views)
        except _CodeIsThere:
            for x, values in before:
                if x.flags.writeable:
                    x[...] = values
            raise

    def _comes(self, args: Sequence[Any], refused: bool) -> bool:
        """Is code still coming? Or `refused`, if it turned out that there will be none."""
        try:
            return bool(is_coming(self, args))
        except UserFunctionError:
            return refused
