"""Packages that only some things need, and what is said where one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, what: str) -> Any:
    """Import a module, or say what needs its package and how to install it.

    >>> from mirabelle.dg.optional import optional
    >>> optional("no_such_package.shapes", "Round shapes are drawn by")
    Traceback (most recent call last):
        ...
    ImportError: Round shapes are drawn by no_such_package, which is missing: `pip install no_such_package`.
    """
    try:
        return import_module(module)
    except (ImportError, OSError):  # OSError: its own libraries are missing.
        package = module.partition(".")[0]
        raise ImportError(f"{what} {package}, which is missing: `pip install {package}`.") from None
