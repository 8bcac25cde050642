"""What backends say of compiled programs: how one runs, the source of its kernels, the time of each step.

The methods are in backends, and come with the first question.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.dispatch import loading
from mirabelle.dispatch.generic import generic

_of_the_first = functools.partial(generic, arity=1)


@generic
def manner(runner: Any) -> Any:
    """How what runs a program does it, in words."""


@_of_the_first
def slab_rows(runner: Any) -> Any:
    """How many rows go at once through statements that follow one another, by the numbers of their steps."""


@_of_the_first
def kernel_source(step: Any, inner: Any) -> Any:
    """The source of the kernel of a step, for arrays of the type `inner`."""


@_of_the_first
def timed_runner(plan: Any, inner: Any) -> Any:
    """What runs a plan for arrays of the type `inner`, and notes in `times` when each step began and ended."""


@_of_the_first
def settle(plan: Any, inner: Any) -> None:
    """Wait until nothing compiles any more, and nothing runs."""


@_of_the_first
def drawn(profile: Any, path: Any, lines: int) -> Any:
    """Draw a profile to an image file, PNG or what its name ends in; returns its path."""


def waiting(inner: Any) -> Callable[[], None]:
    """What waits until an array type's place has done all it was given."""
    family = getattr(inner, "inner", None) or inner
    for f in (inner, family):
        if isinstance(f, type) and issubclass(f, GPUArray):
            return f.driver().drain  # type: ignore[no-any-return]
    return _nothing


def _nothing() -> None:
    """The host is done when a call returns."""


loading.complete(__name__)
