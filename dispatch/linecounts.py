"""What happens by line of the user's program: the counters of `mb.count()`, and the clock, read between lines.

Lines of the interpreter, of this package and of other installed packages are nobody's who asks: what happens
there is counted at the line of the user that called. One thread is followed, the one that opened the block.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import os
import site
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from types import CodeType, FrameType
from typing import Any, TextIO

from mirabelle.dispatch.counters import Counters, add, count, curious
from mirabelle.dispatch.native import in_c

NAMES = tuple(f.name for f in fields(Counters))

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
    warned: list[Warning] = field(default_factory=list)
    # How often a function was captured for other shapes than the last time, and for other numbers.
    shapes: int = 0
    numbers: int = 0

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
    made = made or code.co_qualname.startswith("__create_fn__.")  # (by `dataclasses`)
    return not made and not code.co_filename.startswith(_ours())


def _kind(code: CodeType) -> int:
    """Is code the user's (0), followed (1), let alone after some calls (2), or does it hide what is in it (3)?

    What a function under `mb.compile` does while it is captured, and Numba, is at the line that calls.
    """
    if is_users(code):
        return 0
    file = code.co_filename
    if file.endswith(_CAPTURING) and code.co_name == "__init__":
        return 3
    if f"{os.sep}numba{os.sep}" in file:
        return 3
    return 2 if file.startswith(("<mirabelle", _OURS)) and not file.endswith(_FOLLOWING) else 1


def _kind_in_files(code: CodeType) -> int:
    """The same in programs that have files: what is called "<string>" was made by `exec`, by whomever."""
    return 1 if code.co_filename == "<string>" else _kind(code)


def _asked_in_string() -> bool:
    """Is the program that asks one of `python -c`?"""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == "<string>"


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CAPTURING = os.path.join("arraytypes", "programs", "program.py")
# Those that open blocks.
_FOLLOWING = ("linecounts.py", "diagnosis.py", "doctoring.py", "counters.py")


class LineCounts:
    """A block in which everything is counted by line: `lines` maps (file, number) to a `LineCount`.

    A line's seconds are those that it takes where nobody looks: what an event of the interpreter costs is
    measured (`_costs`), and taken off.
    """

    def __init__(self) -> None:
        self.lines: dict[Place, LineCount] = {}
        self.seconds = 0.0
        self._warned: list[tuple[Place, Warning]] = []
        self._captured: list[tuple[Place, bool, bool]] = []

    def __enter__(self) -> LineCounts:
        self._counting = count()
        counters = self._counting.__enter__()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        self._shown: Callable[..., Any] = warnings.showwarning
        from mirabelle.dispatch.errors import DenseFallbackWarning, GatheringWarning

        self._kinds = (DenseFallbackWarning, GatheringWarning)
        for kind in self._kinds:
            warnings.simplefilter("always", kind)
        warnings.showwarning = self._note
        self._before: Any = sys.gettrace()
        self._follower = in_c.Follower(_kind if _asked_in_string() else _kind_in_files)
        curious.append(self._note_capture)
        try:
            self._follower.start(counters)
        except RuntimeError:
            self._close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._follower.stop()
        self._close()
        costs = _costs()
        self.seconds = 0.0
        for code, number, seconds, visits, events, compiling, again, counts in self._follower.lines():
            line = self.lines.setdefault((code.co_filename, number), LineCount())
            left = max(seconds - costs.of(code, number, visits, events, counts), _LEAST * seconds)
            line.seconds += left
            line.visits += visits
            line.counts = [a + b for a, b in zip(line.counts, counts, strict=True)]
            line.compiling += compiling
            line.compiled_again += again
            self.seconds += left
        for place, warned in self._warned:
            self.lines.setdefault(place, LineCount()).warned.append(warned)
        for place, shapes, numbers in self._captured:
            line = self.lines.setdefault(place, LineCount())
            line.shapes += shapes
            line.numbers += numbers

    def _close(self) -> None:
        curious.remove(self._note_capture)
        if not isinstance(self._before, in_c.Follower):  # (which goes on by itself)
            sys.settrace(self._before)
        self._warnings.__exit__(None, None, None)
        self._counting.__exit__(None, None, None)

    def _note_capture(self, shapes: bool, numbers: bool) -> None:
        place = self._follower.place()
        if place is not None:
            self._captured.append((place, shapes, numbers))

    def _note(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: TextIO | None = None, line: str | None = None,
    ) -> None:  # fmt: skip
        place = self._follower.place()
        if isinstance(message, self._kinds) and place is not None:
            self._warned.append((place, message))
        else:
            self._shown(message, category, filename, lineno, file, line)


@functools.cache
def _instructions(code: CodeType) -> dict[int, int]:
    """How many instructions stand at each line."""
    found: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        if line is not None:
            found[line] = found.get(line, 0) + 1
    return found


# Loops whose lines have few instructions, more of the kinds that programs have, and something that is counted.
_LOOPS = """
def few(n, add):
    for _ in range(n):
        a = 1
        b = 2

def many(n, add):
    x, b = [1.0, 2.0], 2.5
    for _ in range(n):
        a = abs(x[1] + b * x[0]) - len(x)
        b = abs(x[0] + a * x[1]) - len(x)

def counted(n, add):
    for _ in range(n):
        a = 1
        add(scalar_reads=1)
"""


@dataclass
class _Costs:
    """What following costs beyond what is left out of lines: an event, an instruction, what is counted."""

    event: float
    instruction: float
    counted: float

    def of(self, code: CodeType, number: int, visits: int, events: int, counts: Sequence[int]) -> float:
        more = max(_instructions(code).get(number, 0) - _FEW, 0)
        counted = sum(counts[i] for i in _EACH)
        return events * self.event + visits * more * self.instruction + counted * self.counted


# The share of a line's time that is its own at least, however much following it may have cost.
_LEAST = 0.1
# A line of few instructions, whose cost is its event's; what is told to counters once each time.
_FEW = 3
_EACH = [NAMES.index(name) for name in ("launches", "scalar_reads", "library_calls")]


@functools.cache
def _costs() -> _Costs:
    loops: dict[str, Any] = {}
    exec(compile(_LOOPS, "<stdin>", "exec"), loops)
    few, many, counted = (
        contextvars.Context().run(_excess, loops[name]) for name in ("few", "many", "counted")
    )
    more = sum(_instructions(loops["many"].__code__).values()) - sum(
        _instructions(loops["few"].__code__).values()
    )
    return _Costs(few / 3, max(many - few, 0.0) / more, max(counted - few, 0.0))


def _excess(f: Callable[..., Any], n: int = 400) -> float:
    """How much longer a turn of a loop of three lines takes where it is followed, in the best of several."""
    alone, followed = [], []
    for _ in range(25):
        began = time.perf_counter()
        f(n, add)
        alone.append(time.perf_counter() - began)
        with count() as counters:
            follower = in_c.Follower(_kind)
            follower.start(counters)
            f(n, add)
            follower.stop()
        followed.append(sum(line[2] for line in follower.lines() if line[0] is f.__code__))
    return max(min(followed) - min(alone), 0.0) / n
