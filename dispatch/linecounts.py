"""What happens by line of the user's program: the counters of `mb.count()`, and the clock, read between lines.

Lines of the interpreter, of this package and of other installed packages are nobody's who asks: what happens
there is counted at the line of the user that called. One thread is followed, the one that opened the block.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any, TextIO

from mirabelle.dispatch.counters import Counters, count

NAMES = tuple(f.name for f in fields(Counters))
_values = attrgetter(*NAMES)
_MADE_READY = NAMES.index("compilations"), NAMES.index("captures")

Place = tuple[str, int]
# What is typed has no file; all else without one was made by a program.
PROMPTS = ("<stdin", "<python-input", "<ipython-input", "<doctest", "<string")


@dataclass
class LineCount:
    """What happened at a line: seconds, how often it was run, counters, and warnings of ours."""

    seconds: float = 0.0
    visits: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * len(NAMES))
    # In how many of the visits something was compiled or captured, and the seconds of those but the first.
    compiling: int = 0
    compiled_again: float = 0.0
    warned: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> int:
        return self.counts[NAMES.index(name)]


@functools.cache
def _ours() -> tuple[str, ...]:
    """Folders whose lines are not the user's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = ("mirabelle", "dispatch", "arraytypes", "backends", "dg") if _is_checkout(package) else ("",)
    installed = [*site.getsitepackages(), sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]]
    return (*(os.path.join(package, part) + os.sep for part in parts), *(p + os.sep for p in installed))


def _is_checkout(package: str) -> bool:
    return os.path.exists(os.path.join(package, "mirabelle", "__init__.py"))


@functools.cache
def is_users(code: CodeType) -> bool:
    """Is it code of the user, and not of this package, the interpreter or another installed package?"""
    made = code.co_filename.startswith("<") and not code.co_filename.startswith(PROMPTS)
    return not made and not code.co_filename.startswith(_ours())


class LineCounts:
    """A block in which everything is counted by line: `lines` maps (file, number) to a `LineCount`."""

    def __init__(self) -> None:
        self.lines: dict[Place, LineCount] = {}
        self.seconds = 0.0
        self._is_users: dict[CodeType, bool] = {}
        self._at: Place | None = None
        self._visit = [0.0, 0]

    def __enter__(self) -> LineCounts:
        self._counting = count()
        self._counters = self._counting.__enter__()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        self._shown: Callable[..., Any] = warnings.showwarning
        from mirabelle.dispatch.errors import DenseFallbackWarning, GatheringWarning

        for kind in (DenseFallbackWarning, GatheringWarning):
            warnings.simplefilter("always", kind)
        self._kinds = (DenseFallbackWarning, GatheringWarning)
        warnings.showwarning = self._note
        self._before = sys.gettrace()
        self._frames: list[tuple[FrameType, Any]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._users(frame.f_code):
                self._frames.append((frame, frame.f_trace))
                frame.f_trace = self._trace
            frame = frame.f_back
        self._at = self._place(sys._getframe(1))
        self._clock, self._values = time.perf_counter(), _values(self._counters)
        self._began = self._clock
        sys.settrace(self._trace)
        return self

    def __exit__(self, *problem: object) -> None:
        sys.settrace(self._before)
        self._account(None)
        self.seconds = self._clock - self._began
        for frame, trace in self._frames:
            frame.f_trace = trace
        self._warnings.__exit__(None, None, None)
        self._counting.__exit__(None, None, None)

    def _users(self, code: CodeType) -> bool:
        known = self._is_users.get(code)
        if known is None:
            known = self._is_users[code] = is_users(code)
        return known

    def _place(self, frame: FrameType | None) -> Place | None:
        while frame is not None and not self._users(frame.f_code):
            frame = frame.f_back
        return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if not self._users(frame.f_code):
            return None
        if event == "return":
            self._account(self._place(frame.f_back), back=True)
        elif event != "exception":
            self._account((frame.f_code.co_filename, frame.f_lineno), back=event == "call")
        return self._trace

    def _account(self, then: Place | None, back: bool = False) -> None:
        """What happened since the last event was the last line's; `back`: `then` was begun before."""
        now, values = time.perf_counter(), _values(self._counters)
        if self._at is not None:
            line = self.lines.get(self._at) or self.lines.setdefault(self._at, LineCount())
            passed = now - self._clock
            line.seconds += passed
            if values != self._values:
                counts = line.counts
                for i, (a, b) in enumerate(zip(self._values, values, strict=True)):
                    counts[i] += b - a
                if any(values[i] != self._values[i] for i in _MADE_READY):
                    line.compiling += 1
                    if line.compiling > 1:
                        line.compiled_again += passed
        if then is not None and not back:
            found = self.lines.get(then) or self.lines.setdefault(then, LineCount())
            found.visits += 1
        self._at, self._clock, self._values = then, time.perf_counter(), values

    def _note(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: TextIO | None = None, line: str | None = None,
    ) -> None:  # fmt: skip
        if issubclass(category, self._kinds) and self._at is not None:
            self.lines.setdefault(self._at, LineCount()).warned.append(f"{category.__name__}: {message}")
        else:
            self._shown(message, category, filename, lineno, file, line)
