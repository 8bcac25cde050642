"""Limits that reference counts are compared with, to measure them: how many there are when nobody else holds
what a function looks at depends on the version of Python."""

from __future__ import annotations

from typing import Any


class _Noting(int):
    """A limit that notes what is compared with it."""

    _seen: list[int]
    # Is it exceeded by everything, or by nothing?
    _exceeded = False

    def __new__(cls, seen: list[int]) -> Any:
        made = super().__new__(cls, 0)
        made._seen = seen
        return made

    def __lt__(self, count: object) -> bool:  # `count > limit` asks the subclass first
        self._seen.append(count)  # type: ignore[arg-type]
        return self._exceeded


class Least(_Noting):
    """A limit that notes what is compared with it, and that nothing exceeds."""

    def __ge__(self, count: object) -> bool:  # `count <= limit`
        self._seen.append(count)  # type: ignore[arg-type]
        return True

    def __add__(self, other: object) -> Any:
        return self


class Refusing(_Noting):
    """A limit that notes what is compared with it, and that everything exceeds."""

    _exceeded = True
