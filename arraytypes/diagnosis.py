"""`mb.doctor`: what made a program slow, by line, with the cure and what it is expected to gain.

Nothing is measured here: `dispatch/linecounts.py` reads the counters of `mb.count()` and the clock between the
lines of the program, takes off what that costs, and `slowlines.py` says what a line's numbers mean. What a cure
gains is an estimate from the times that `docs/guide/performance.md` names; run the program again to know.
"""

from __future__ import annotations

import html
import json
import linecache
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mirabelle.arraytypes.programs.explaining import shown_seconds
from mirabelle.arraytypes.slowlines import RULES, fell_back, gathered
from mirabelle.dispatch.errors import DenseFallbackWarning, GatheringWarning
from mirabelle.dispatch.linecounts import LineCount, LineCounts

# A share of the time under which a finding, or a line of the rest, is said shortly.
WORTH = 0.01
# So many lines of the rest are shown, and so many small findings.
SHOWN = 8


@dataclass
class Finding:
    """Something that made a line slow: what, the cure, the line's seconds, and those that the cure may save."""

    kind: str
    file: str
    number: int
    text: str
    what: str
    cure: str
    seconds: float
    gain: float


@dataclass
class Line:
    """A line, and how long it takes beside what cures may save."""

    file: str
    number: int
    text: str
    seconds: float


class Doctor:
    """What `mb.doctor()` found: printed as text, in a notebook as a table, `.json()` and `.html()`."""

    def __init__(self) -> None:
        self._counts = LineCounts()
        # What the call of a function gave, where one was called.
        self.result: Any = None

    def __enter__(self) -> Doctor:
        self._counts.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._counts.__exit__(*problem)

    @property
    def seconds(self) -> float:
        """How long the block took, less what watching it cost."""
        return self._counts.seconds

    @property
    def findings(self) -> list[Finding]:
        """What was found: what is expected to gain most first."""
        found = [f for place, line in self._counts.lines.items() for f in _of_line(place, line)]
        return sorted(found, key=lambda f: (-f.gain, f.file, f.number))

    @property
    def rest(self) -> list[Line]:
        """The lines and the seconds of each that no cure saves: those that took longest first."""
        saved: dict[tuple[str, int], float] = {}
        for f in self.findings:
            saved[f.file, f.number] = max(f.gain, saved.get((f.file, f.number), 0.0))
        lines = [
            Line(file, at, linecache.getline(file, at).strip(), line.seconds - saved.get((file, at), 0.0))
            for (file, at), line in self._counts.lines.items()
        ]
        return sorted(lines, key=lambda line: (-line.seconds, line.file, line.number))

    def __repr__(self) -> str:
        found, rest = self.findings, self.rest
        large = [f for f in found if f.gain >= WORTH * self.seconds]
        small = [f for f in found if f.gain < WORTH * self.seconds]
        head = f"{shown_seconds(self.seconds)}, less what it took to watch each line. "
        head += "What cost most:" if large else "Nothing that this library does made it slow."
        parts = [
            f"{_short(f.file)}:{f.number}: {f.kind}, {shown_seconds(f.seconds)}\n"
            f"    {f.text}\n  {f.what}.\n  Cure: {f.cure}.\n"
            f"  Saves at most {shown_seconds(f.gain)} ({f.gain / self.seconds:.0%} of the whole)."
            for f in large
        ]
        if small:
            lines = [
                f"{_short(f.file)}:{f.number}: {f.kind}, at most {shown_seconds(f.gain)}: {f.what}"
                f"\n    {f.text}"
                for f in small[:SHOWN]
            ]
            more = [f"and {len(small) - SHOWN} more (`.findings` has all)"] if len(small) > SHOWN else []
            parts.append("\n".join(["Found, too, and little to be gained by:", *lines, *more]))
        shown, others = self._longest(rest)
        if shown:
            saved = self.seconds - sum(line.seconds for line in rest)
            known = f"All cures together save at most {shown_seconds(saved)}. " if found else ""
            lines = [
                f"{_short(line.file)}:{line.number}: {shown_seconds(line.seconds)}\n    {line.text}"
                for line in shown
            ]
            other = [f"all other lines: {shown_seconds(others)}"] if len(rest) > len(shown) else []
            parts.append(
                "\n".join([f"{known}What took longest{' of the rest' if found else ''}:", *lines, *other])
            )
        return "\n\n".join([head, *parts])

    def _longest(self, rest: list[Line]) -> tuple[list[Line], float]:
        """Those of the rest that are shown, and the seconds of the others."""
        shown = [line for line in rest[:SHOWN] if line.seconds >= WORTH * self.seconds]
        return shown, sum(line.seconds for line in rest[len(shown) :])

    def json(self) -> str:
        """The findings, and the seconds of each line that no cure saves, as JSON."""
        told = {
            "seconds": self.seconds,
            "findings": [asdict(f) for f in self.findings],
            "rest": [asdict(line) for line in self.rest],
        }
        return json.dumps(told, indent=1)

    def html(self) -> str:
        """The findings as a table."""
        rest = self.rest
        shown, others = self._longest(rest)
        if not self.findings:
            return f"<pre>{html.escape(repr(self))}</pre>"
        columns = ("line", "what", "cure", "seconds", "may save at most")
        rows = [
            (
                _code_cell(f),
                f"<b>{f.kind}</b>: {_with_code(f.what)}",
                _with_code(f.cure),
                shown_seconds(f.seconds),
                f"{shown_seconds(f.gain)} ({f.gain / self.seconds:.0%})",
            )
            for f in self.findings
        ]
        rows += [(_code_cell(line), "", "", shown_seconds(line.seconds), "") for line in shown]
        if len(rest) > len(shown):
            rows.append(("all other lines", "", "", shown_seconds(others), ""))
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        head = "".join(f"<th>{c}</th>" for c in columns)
        said = f"{shown_seconds(self.seconds)}, less what it took to watch each line."
        return f"<p>{said}</p><table><tr>{head}</tr>{body}</table>"

    _repr_html_ = html


def doctor(f: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Doctor:
    """What makes a program slow, by line, with the cure and what it may gain.

    Without arguments it is a block, `with mb.doctor() as found:`. With a function and its arguments, it calls
    that, and `found.result` is what the call gave. Only the thread that opens it is looked at.

    Parameters
    ----------
    f : callable, optional
        A function to call.
    *args, **kwargs
        What it is called with.

    Returns
    -------
    Doctor
        Prints what was found; `.findings`, `.json()` and `.html()` are the same for programs.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros(1000)
    >>> with mb.doctor() as found:
    ...     for i in range(1000):
    ...         x[i] = 2.0 * i
    >>> found.findings[0].kind, found.findings[0].text
    ('loop over elements', 'x[i] = 2.0 * i')
    """
    if f is not None and not callable(f):
        raise TypeError(
            f"mb.doctor takes a function and what it is called with, and {f!r:.60} is none. Write "
            "`mb.doctor(f, x)`, or `with mb.doctor() as found:` around a part of a program."
        )
    found = Doctor()
    if f is not None:
        with found:
            found.result = f(*args, **kwargs)
    return found


def _of_line(place: tuple[str, int], line: LineCount) -> Iterator[Finding]:
    file, number = place
    text = linecache.getline(file, number).strip()
    for kind, rule in RULES.items():
        found = rule(line, text)
        if found is not None:
            what, cure, gain = found
            yield Finding(kind, file, number, text, what, cure, line.seconds, min(max(gain, 0.0), line.seconds))
    for kind, warning, told in _WARNED:
        said = [w for w in line.warned if isinstance(w, warning)]
        if said:
            what, cure, gain = told(line, said[0], len(said))
            yield Finding(kind, file, number, text, what, cure, line.seconds, gain)


# What warnings of ours say of the line they come from.
_WARNED: tuple[tuple[str, type[Warning], Callable[[LineCount, Any, int], tuple[str, str, float]]], ...] = (
    ("fell back to dense", DenseFallbackWarning, fell_back),
    ("moved between places", GatheringWarning, gathered),
)


def _code_cell(line: Line | Finding) -> str:
    return f"{html.escape(_short(line.file))}:{line.number}<br><code>{html.escape(line.text)}</code>"


def _with_code(text: str) -> str:
    """A sentence for a page: what stands between backquotes is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _short(file: str) -> str:
    return os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
