"""Python's syntax trees, made and compiled by one thread at a time.

CPython 3.11 counts the depth of syntax trees for all threads together: two that parse at once may be told that
a tree is out of balance.
"""

from __future__ import annotations

import ast
from typing import Any

from mirabelle.dispatch.forks import ForkLock

lock = ForkLock()


def parse(text: str, mode: str = "exec") -> Any:
    """As `ast.parse`.

    >>> type(parse("x + 1", "eval").body).__name__
    'BinOp'
    """
    with lock:
        return ast.parse(text, mode=mode)


def compiled(tree: Any, filename: str, mode: str = "exec", **how: Any) -> Any:
    """As `compile`, of a tree.

    >>> eval(compiled(parse("2 + 1", "eval"), "<three>", "eval"))
    3
    """
    with lock:
        return compile(tree, filename, mode, **how)
