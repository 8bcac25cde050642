"""`mb.doctor`: what made a program slow, by line, with the cure and what it is expected to gain.

Nothing is measured here: `dispatch/linecounts.py` reads the counters of `mb.count()` and the clock between the
lines of the program, and the rules below say what a line's numbers mean. What a cure gains is an estimate from
the times that `docs/guide/performance.md` names; run the program again to know.
"""

from __future__ import annotations

import html
import json
import linecache
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs.explaining import shown_seconds
from mirabelle.dispatch.linecounts import LineCount, LineCounts

# What things cost where a cure was applied, in seconds: an element in a compiled loop, a statement inside of a
# compiled program, a byte of memory.
ELEMENT, STATEMENT, BYTE = 1e-8, 4e-7, 1e-10
# From where on a line is worth a word: element reads and writes, statements on few bytes, compilations.
READS, STATEMENTS, COMPILATIONS = 100, 200, 3
FEW_BYTES = 1 << 16
# A share of the time under which nothing is said.
WORTH = 0.01


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


def _reads_elements(line: LineCount) -> bool:
    """Are the numbers that a line asks for elements of arrays, and not results of operations on arrays?"""
    return line["bytes_read"] + line["bytes_written"] <= line["scalar_reads"] * 64


def _loops_over_elements(line: LineCount) -> tuple[str, str, float] | None:
    reads = line["scalar_reads"]
    if reads < READS or not _reads_elements(line):
        return None
    return (
        f"{reads} single elements are read or written",
        "say it for the whole array (`y = f(x)`, `mb.where`, `mb.cumsum`), or write the loop in a function "
        "under `@mb.jit`; to read all elements once, `for v in x.tolist():`",
        line.seconds - reads * ELEMENT,
    )


def _values_asked_for(line: LineCount) -> tuple[str, str, float] | None:
    reads, launches = line["scalar_reads"], line["launches"]
    if reads < READS or _reads_elements(line):
        return None
    return (
        f"{reads} times a number is asked for (by `float`, `if`, `print`, an index), so that what is pending "
        f"is computed here: {launches} launches",
        "ask every tenth time, or keep the number an array and choose with `mb.where`; in a compiled function "
        "`mb.while_loop` asks by itself",
        line.seconds * 0.9,
    )


def _compiled_again(line: LineCount) -> tuple[str, str, float] | None:
    if line.compiling < COMPILATIONS:
        return None
    return (
        f"kernels are compiled in {line.compiling} of {line.visits} visits",
        "let shapes, dtypes and constants repeat: hand a number that changes over as an argument or an array, "
        "pad to a few sizes, make a function once outside of the loop",
        line.compiled_again,
    )


def _moved(line: LineCount) -> tuple[str, str, float] | None:
    if line["transfers"] < 2:
        return None
    return (
        f"{line['transfers']} transfers between places",
        "make arrays where they are used (`mb.zeros(n, device=x.device)`, `mb.asarray(a, device=mb.CuArray)` "
        "once before the loop), and fetch results after it",
        line.seconds * 0.9,
    )


def _materialised(line: LineCount) -> tuple[str, str, float] | None:
    if not line["temporaries"] or line["bytes_written"] < FEW_BYTES:
        return None
    return (
        f"{line['temporaries']} operands are written to memory before the launch that reads them, of "
        f"{shown_bytes(line['bytes_read'] + line['bytes_written'])} that are moved",
        "let the reader take the expression itself: `mb.explain(expression)` names who needs it stored; "
        "a function under `@mb.compile` is planned as a whole",
        min(line.seconds, line["bytes_written"] * BYTE),
    )


def _small_statements(line: LineCount) -> tuple[str, str, float] | None:
    launches = line["launches"] + line["library_calls"]
    moved = line["bytes_read"] + line["bytes_written"]
    if launches < STATEMENTS or moved > launches * FEW_BYTES or line["scalar_reads"] >= READS:
        return None
    return (
        f"{launches} statements on {shown_bytes(moved // launches)} each: finding out what to do takes longer "
        "than doing it",
        "put the function that the loop calls, or the loop with `mb.fori_loop`, under `@mb.compile`",
        line.seconds - launches * STATEMENT,
    )


RULES: dict[str, Callable[[LineCount], tuple[str, str, float] | None]] = {
    "loop over elements": _loops_over_elements,
    "values asked for": _values_asked_for,
    "compiled again": _compiled_again,
    "moved between places": _moved,
    "materialised": _materialised,
    "small statements": _small_statements,
}


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
        """How long the block took, with the counting."""
        return self._counts.seconds

    @property
    def findings(self) -> list[Finding]:
        """What made the program slow: what is expected to gain most first."""
        found = [f for place, line in self._counts.lines.items() for f in _of_line(place, line)]
        worth = [f for f in found if f.gain >= WORTH * self.seconds]
        return sorted(worth, key=lambda f: (-f.gain, f.file, f.number))

    def __repr__(self) -> str:
        found = self.findings
        head = f"{shown_seconds(self.seconds)}, counted line by line. "
        if not found:
            return head + "Nothing that this library does made it slow."
        parts = [
            f"{_short(f.file)}:{f.number}: {f.kind}, {shown_seconds(f.seconds)}\n"
            f"    {f.text}\n  {f.what}.\n  Cure: {f.cure}.\n"
            f"  Expected to save up to {shown_seconds(f.gain)} ({f.gain / self.seconds:.0%} of the whole)."
            for f in found
        ]
        return "\n\n".join([head + "What cost most:", *parts])

    def json(self) -> str:
        """The findings as JSON."""
        return json.dumps({"seconds": self.seconds, "findings": [asdict(f) for f in self.findings]}, indent=1)

    def html(self) -> str:
        """The findings as a table."""
        columns = ("line", "", "what", "cure", "seconds", "may save")
        rows = [
            (
                f"{_short(f.file)}:{f.number}",
                f.text,
                f"{f.kind}: {f.what}",
                f.cure,
                shown_seconds(f.seconds),
                shown_seconds(f.gain),
            )
            for f in self.findings
        ]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in row)}</tr>" for row in rows)
        head = "".join(f"<th>{c}</th>" for c in columns)
        return f"<p>{shown_seconds(self.seconds)}</p><table><tr>{head}</tr>{body}</table>"

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
        found = rule(line)
        if found is not None:
            what, cure, gain = found
            yield Finding(kind, file, number, text, what, cure, line.seconds, min(max(gain, 0.0), line.seconds))
    for name, kind in (
        ("DenseFallbackWarning", "fell back to dense"),
        ("GatheringWarning", "moved between places"),
    ):
        said = [w.partition(": ")[2] for w in line.warned if w.startswith(name)]
        if said:
            what, _, cure = said[0].partition("; ")
            times = f", {len(said)} times" if len(said) > 1 else ""
            cure = cure.rstrip(".") or "the warning says it"
            yield Finding(
                kind, file, number, text, what.rstrip(".") + times, cure, line.seconds, line.seconds * 0.9
            )


def _short(file: str) -> str:
    return os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
