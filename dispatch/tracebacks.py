"""Tracebacks on their way out: of the frames inside of this package, a user sees three.

An error passes through many functions of ours before it is seen, and who reads it wants the line of the program
and the sentence at the end. The hooks that Python calls for an error that nobody caught (`sys.excepthook`, that
of threads, and IPython's for cells and `%run`) are where frames are left out, and nowhere else: debuggers,
loggers and who catches an error have all of them, and so has everybody with `MIRABELLE_FULL_TRACEBACKS=1`. What
Python itself says of a mistake is given a note there with the cure.

Errors that stand behind one ("During handling of the above exception ...") are shown as short; those that our
own functions caught, and no line of the program has seen, are not shown.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from mirabelle.dispatch.settings import settings

# So many frames of ours, and of libraries that we call, remain: the first, which was called, and the last ones.
KEPT = 3


def trimmed(trace: types.TracebackType | None) -> tuple[types.TracebackType | None, int]:
    """A traceback without the middle of what is inside of the package, and how many frames are left out."""
    from mirabelle.dispatch.linecounts import is_users

    steps = list(_steps(trace))
    first = next((i for i, step in enumerate(steps) if _is_ours(step)), None)
    if first is None:
        return trace, 0
    inside = [i for i in range(first, len(steps)) if not is_users(steps[i].tb_frame.f_code)]
    left_out = set(inside[1 : len(inside) - KEPT + 1])
    made: types.TracebackType | None = None
    for i in reversed(range(len(steps))):
        if i not in left_out:
            made = types.TracebackType(made, steps[i].tb_frame, steps[i].tb_lasti, steps[i].tb_lineno)
    return made, len(left_out)


def _steps(trace: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_ours(step: types.TracebackType) -> bool:
    name = str(step.tb_frame.f_globals.get("__name__", ""))
    return name.startswith("mirabelle.") or PurePath(step.tb_frame.f_code.co_filename).name.startswith(
        "<mirabelle"
    )


# Functions that know a cure for what Python says: they give a text, or an empty one.
ADVISERS: list[Callable[[BaseException], str]] = []


def add_advice(error: BaseException) -> None:
    """Note the cure for a mistake beside what Python says of it."""
    notes = getattr(error, "__notes__", ())
    for adviser in ADVISERS:
        with contextlib.suppress(Exception):  # (an error that is shown must not become another one)
            text = adviser(error)
            if text and text not in notes:
                error.add_note(text)


def _behind(error: BaseException) -> BaseException | None:
    """The error that is shown before another one."""
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _is_inside(error: BaseException) -> bool:
    """Was an error raised and caught by functions of ours and of libraries, and of nobody else?"""
    from mirabelle.dispatch.linecounts import is_users

    steps = list(_steps(error.__traceback__))
    return bool(steps) and _is_ours(steps[0]) and not any(is_users(step.tb_frame.f_code) for step in steps)


class _Shortened:
    """Errors whose tracebacks and chains are shorter for a while."""

    def __init__(self) -> None:
        self.kept: list[tuple[BaseException, tuple[Any, ...]]] = []
        self.left_out = 0

    def shorten(self, error: BaseException, trace: types.TracebackType | None) -> None:
        """An error, and those that are shown with it."""
        if any(error is known for known, _ in self.kept):
            return
        before = (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__)
        self.kept.append((error, before))
        error.__traceback__, count = trimmed(trace)
        self.left_out += count
        shown = _behind(error)
        said = error.__cause__ if getattr(error, "explained", False) else None
        passed = {id(error)}  # (a chain may be a ring)
        while shown is not None and id(shown) not in passed and (shown is said or _is_inside(shown)):
            passed.add(id(shown))
            self.left_out += sum(1 for _ in _steps(shown.__traceback__))
            shown = _behind(shown)  # (an explained error's sentence says what was caught)
        if shown is not _behind(error):
            error.__cause__, error.__context__ = None, shown
            error.__suppress_context__ = False
        for other in (shown, *getattr(error, "exceptions", ())):
            if isinstance(other, BaseException):
                self.shorten(other, other.__traceback__)

    def restore(self) -> None:
        for error, before in self.kept:
            error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__ = before


@contextlib.contextmanager
def few_frames(error: BaseException, trace: types.TracebackType | None) -> Iterator[types.TracebackType | None]:
    """For a block in which an error is shown: the traceback to show, which is the error's own meanwhile."""
    add_advice(error)
    if settings.full_tracebacks:
        yield trace
        return
    shortened = _Shortened()
    try:
        shortened.shorten(error, trace)
        yield error.__traceback__
    finally:
        shortened.restore()
    if count := shortened.left_out:
        said = f"({count} frames inside are not shown: MIRABELLE_FULL_TRACEBACKS=1 shows them.)"
        print(said, file=sys.stderr)


def install() -> None:
    """From now on errors that nobody catches are shown so. What was there before shows them."""
    before = sys.excepthook
    if getattr(before, "shows_few_frames", False):
        return

    def shown(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        if not isinstance(error, Exception):
            # (An interrupt ends the process by its signal, as shells want it, unless text is run meanwhile.)
            before(kind, error, trace)
            return
        with few_frames(error, trace) as shorter:
            before(kind, error, shorter)

    shown.shows_few_frames = True  # type: ignore[attr-defined]
    sys.excepthook = shown
    before_in_threads = threading.excepthook

    def shown_of_thread(args: Any) -> None:
        if args.exc_value is None:
            before_in_threads(args)
            return
        with few_frames(args.exc_value, args.exc_traceback) as shorter:
            before_in_threads(threading.ExceptHookArgs((args.exc_type, args.exc_value, shorter, args.thread)))

    threading.excepthook = shown_of_thread
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return
    before_in_shell = shell.showtraceback

    def shown_in_shell(exc_tuple: Any = None, *args: Any, **options: Any) -> None:
        # (Cells, `%run`, `%run -m` and `%tb` come here. `%debug` has all frames.)
        error = exc_tuple[1] if exc_tuple else sys.exception() or getattr(sys, "last_value", None)
        if not isinstance(error, Exception):
            before_in_shell(exc_tuple, *args, **options)
            return
        trace = exc_tuple[2] if exc_tuple else error.__traceback__
        with few_frames(error, trace) as shorter:
            before_in_shell((type(error), error, shorter), *args, **options)
        sys.last_traceback = trace

    shell.showtraceback = shown_in_shell
