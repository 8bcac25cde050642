"""Errors that a function catches: what may raise them is computed where it stands.

A program computes later what its function wrote down, when no handler stands around it any more. So what can
fail in a `try` that may catch it is not recorded: the function is cut there (see pieces.py).
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from typing import Any

from mirabelle.arraytypes.programs.errors import TraceError, is_ours, shown_line
from mirabelle.dispatch import syntax

# What computing does not raise.
_OTHERS = frozenset(
    ("AttributeError", "ImportError", "KeyError", "ModuleNotFoundError", "NameError", "NotImplementedError",
     "OSError", "StopIteration", "TypeError", "FileNotFoundError", "KeyboardInterrupt")
)  # fmt: skip


def refuse_in_try(name: str) -> None:
    """Refuse to record what may fail within a `try` of the function's that may catch it."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_ours(file):
            line = frame.f_lineno
            if any(first <= line <= last for first, last in _tries(file, len(linecache.getlines(file)))):
                raise TraceError(
                    f"{name} may fail, and stands in a `try` that may catch that, in "
                    f"{shown_line((file, line))}: a program would raise it later, when it runs."
                )
        elif frame.f_code.co_name == "captured":
            return
        frame = frame.f_back


@functools.lru_cache(maxsize=256)
def _tries(file: str, _lines: int) -> tuple[tuple[int, int], ...]:
    """The lines of a file that stand in a `try` whose handlers may catch what computing raises."""
    try:
        tree = syntax.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    return tuple(
        [
            (n.body[0].lineno, n.body[-1].end_lineno or n.body[-1].lineno)
            for n in ast.walk(tree)
            if isinstance(n, (ast.Try, ast.TryStar)) and any(map(_may_catch, n.handlers))
        ]
    )


def _may_catch(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    if caught is None:
        return True
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    names = [x.attr if isinstance(x, ast.Attribute) else getattr(x, "id", "") for x in kinds]
    return not _OTHERS.issuperset(names)
