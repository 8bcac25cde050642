"""How pytest is called on each of several ranks."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def arguments(*given: str) -> list[str]:
    """The arguments of Python that run these tests; all of them, if none are named."""
    found = [
        *("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        *("-p", "ranks.plugin", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:benchmark"),
        *("-q", "--tb=short", *given),
    ]
    if not any((ROOT / a.partition("::")[0]).exists() for a in given if a[:1] != "-"):
        found.append(str(ROOT / "tests"))
    return found
