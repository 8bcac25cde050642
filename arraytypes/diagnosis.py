"""`mb.doctor`: what made a program slow, by line, with the cure and what it is expected to gain.

Nothing is measured here: `dispatch/linecounts.py` reads the counters of `mb.count()` and the clock between the
lines of the program, takes off what that costs, and the rules below say what a line's numbers mean. What a cure
gains is an estimate from the times that `docs/guide/performance.md` names; run the program again to know.
"""

from __future__ import annotations

import ast
import html
import json
import linecache
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs.explaining import shown_seconds
from mirabelle.dispatch.linecounts import LineCount, LineCounts

# What things cost, in seconds: an element in a compiled loop; a small statement where it is written, and inside
# of a compiled program; to stop for a number; a byte of memory.
ELEMENT, WRITTEN, STATEMENT, STOP, BYTE = 1e-8, 1e-6, 4e-7, 5e-6, 1e-10
# From where on a line is worth a word: element reads and writes, statements on few bytes, compilations.
READS, STATEMENTS, COMPILATIONS, GROWN = 100, 200, 3, 30
FEW_BYTES = 1 << 16
# A statement on so many bytes is one on single numbers.
NUMBERS = 40
# Functions that make a longer or a shorter array of an array.
_GROWING = {"append", "concat", "concatenate", "hstack", "vstack", "insert", "delete", "resize"}
# A share that makes a line one of those that took longest.
LONG = 0.1


# What a rule says: what happens, the cure, the seconds that this may save; or nothing.
Found = tuple[str, str, float] | None


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


def _on_elements(line: LineCount, text: str) -> bool:
    """Does a line work on single elements of arrays, and not with results of operations on arrays?"""
    moved, launches = line["bytes_read"] + line["bytes_written"], line["launches"]
    if line["scalar_reads"] >= READS:
        return moved <= line["scalar_reads"] * 64 or bool(_targets(text, ast.Subscript))
    return launches >= READS and line["scalar_reads"] + launches >= STATEMENTS and moved <= launches * NUMBERS


def _targets(text: str, kind: type[ast.expr]) -> list[ast.expr]:
    """What a line assigns to, of one kind: elements, names."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):  # (a part of a statement, or the head of a block)
        return []
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return [t for t in targets if isinstance(t, kind)]


def _is_statement(text: str) -> bool:
    """Is a line a whole statement, which is run at each visit, and not the head of a loop?"""
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def _grows(text: str) -> bool:
    """Does a line make an array longer: `x = mb.append(x, v)`?"""
    names = {t.id for t in _targets(text, ast.Name) if isinstance(t, ast.Name)}
    for call in ast.walk(ast.parse(text)) if names else ():
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) in _GROWING:
            return any(isinstance(n, ast.Name) and n.id in names for arg in call.args for n in ast.walk(arg))
    return False


def _loops_over_elements(line: LineCount, text: str) -> Found:
    if not _on_elements(line, text):
        return None
    elements = max(line["scalar_reads"], line["launches"])
    return (
        f"{elements} times single elements are read, written or computed with",
        "say it for the whole array (`y = f(x)`, `mb.where`, `mb.cumsum`, `mb.sum(A * A, axis=1)` for rows), "
        "or write the loop in a function under `@mb.jit`; to read all elements once, `for v in x.tolist():`",
        line.seconds - elements * ELEMENT,
    )


def _grows_an_array(line: LineCount, text: str) -> Found:
    if line.visits < GROWN or not _grows(text):
        return None
    return (
        f"in {line.visits} visits an array is made anew, a little longer or shorter, and copied",
        "append Python's numbers to a list, and make the array of it once, `mb.asarray(numbers)`; or make it "
        "at full length before the loop, and write to its elements in a function under `@mb.jit`",
        line.seconds - line.visits * ELEMENT,
    )


def _values_asked_for(line: LineCount, text: str) -> Found:
    reads, launches = line["scalar_reads"], line["launches"]
    if reads < READS or _on_elements(line, text):
        return None
    return (
        f"{reads} times a number is asked for (by `float`, `if`, `print`, an index), so that what is pending "
        f"is computed here: {launches} launches",
        "ask less often, every tenth time say: computing stays, stopping for the number goes; in a compiled "
        "function `mb.while_loop` asks by itself",
        reads * STOP * 0.9,
    )


def _compiled_again(line: LineCount, text: str) -> Found:
    if line.compiling < COMPILATIONS:
        return None
    captured = f", and {line['captures']} times a function is captured" if line["captures"] else ""
    return (
        f"something is compiled in {min(line.compiling, line.visits)} of {line.visits} visits{captured}",
        "let shapes, dtypes and constants repeat: hand a number that changes over as an array, "
        '`f(x, mb.asarray(dt))`; where sizes change, `@mb.compile(sizes="any")` makes one program for all, or '
        "pad to a few sizes; make a function once, outside of the loop",
        line.compiled_again,
    )


def _moved(line: LineCount, text: str) -> Found:
    if line["transfers"] < 2:
        return None
    return (
        f"{line['transfers']} transfers between places",
        "make arrays where they are used (`mb.zeros(n, device=x.device)`, `mb.asarray(a, device=mb.CuArray)` "
        "once before the loop), and fetch results after it",
        line.seconds * 0.9,
    )


def _materialised(line: LineCount, text: str) -> Found:
    if not line["temporaries"] or line["bytes_written"] < FEW_BYTES:
        return None
    return (
        f"{line['temporaries']} operands are written to memory before the launch that reads them, of "
        f"{shown_bytes(line['bytes_read'] + line['bytes_written'])} that are moved",
        "let the reader take the expression itself: `mb.explain(expression)` names who needs it stored; "
        "a function under `@mb.compile` is planned as a whole",
        min(line.seconds, line["bytes_written"] * BYTE),
    )


def _handed_over(line: LineCount, text: str) -> Found:
    """Is an array made Python's or NumPy's again and again?"""
    if line.visits < GROWN or line["transfers"] or line["scalar_reads"] >= READS or not _is_statement(text):
        return None
    if not re.search(r"\.tolist\(|\bto_numpy\(|\bnp\.(as)?array\(", text):
        return None
    moved = line["bytes_read"] + line["bytes_written"]
    return (
        f"in {line.visits} visits an array is handed to Python or NumPy as a whole",
        "stay with arrays (`float(x[0])` for one element, `mb.sum(x)`; NumPy's functions are here, too), and "
        "hand over once, after the loop",
        0.9 * line.seconds - moved * BYTE,
    )


def _inverts(line: LineCount, text: str) -> Found:
    if not re.search(r"\binv\([^()]*\)\s*@", text):
        return None
    return (
        "a matrix is inverted to be multiplied with",
        "solve: `mb.linalg.solve(A, b)` is a third of the work, and more accurate; with one matrix and many "
        "`b`, `F = mb.linalg.factorize(A)` once, then `F.solve(b)`",
        line.seconds * 0.6,
    )


def _small_statements(line: LineCount, text: str) -> Found:
    launches = line["launches"] + line["library_calls"]
    moved = line["bytes_read"] + line["bytes_written"]
    if launches < STATEMENTS or moved > launches * FEW_BYTES or line["scalar_reads"] >= READS:
        return None
    if line.compiling >= COMPILATIONS or _on_elements(line, text) or _grows(text):
        return None
    return (
        f"{launches} statements on {shown_bytes(moved // launches)} each: finding out what to do takes longer "
        "than doing it",
        "give a statement more elements (many small problems are one array with an axis more); or make "
        "the loop, or a function of many such statements, one program with `@mb.compile` (to call one takes "
        "5 µs, as long as five statements)",
        launches * (WRITTEN - STATEMENT),
    )


RULES: dict[str, Callable[[LineCount, str], Found]] = {
    "loop over elements": _loops_over_elements,
    "an array that grows": _grows_an_array,
    "values asked for": _values_asked_for,
    "compiled again": _compiled_again,
    "moved between places": _moved,
    "handed over": _handed_over,
    "an inverse": _inverts,
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
        """How long the block took, less what watching it cost."""
        return self._counts.seconds

    @property
    def findings(self) -> list[Finding]:
        """What was found: what is expected to gain most first."""
        found = [f for place, line in self._counts.lines.items() for f in _of_line(place, line)]
        return sorted(found, key=lambda f: (-f.gain, f.file, f.number))

    def __repr__(self) -> str:
        found = self.findings
        head = f"{shown_seconds(self.seconds)}, less what it took to watch each line. "
        if not found:
            return f"{head}Nothing that this library does made it slow.{self._longest()}"
        parts = [
            f"{_short(f.file)}:{f.number}: {f.kind}, {shown_seconds(f.seconds)}\n"
            f"    {f.text}\n  {f.what}.\n  Cure: {f.cure}.\n"
            f"  Expected to save up to {shown_seconds(f.gain)} ({f.gain / self.seconds:.0%} of the whole)."
            for f in found
        ]
        return "\n\n".join([head + "What cost most:", *parts])

    def _longest(self) -> str:
        """The lines that took longest, where no rule knows why."""
        lines = sorted(self._counts.lines.items(), key=lambda item: -item[1].seconds)[:3]
        shown = [
            f"\n{_short(file)}:{at}: {shown_seconds(line.seconds)}\n    {linecache.getline(file, at).strip()}"
            for (file, at), line in lines
            if line.seconds >= LONG * self.seconds
        ]
        return "".join([" What took longest:" if shown else "", *shown])

    def json(self) -> str:
        """The findings as JSON."""
        return json.dumps({"seconds": self.seconds, "findings": [asdict(f) for f in self.findings]}, indent=1)

    def html(self) -> str:
        """The findings as a table."""
        if not self.findings:
            return f"<pre>{html.escape(repr(self))}</pre>"
        columns = ("line", "what", "cure", "seconds", "may save")
        rows = [
            (
                f"{html.escape(_short(f.file))}:{f.number}<br><code>{html.escape(f.text)}</code>",
                f"<b>{f.kind}</b>: {_with_code(f.what)}",
                _with_code(f.cure),
                shown_seconds(f.seconds),
                f"{shown_seconds(f.gain)} ({f.gain / self.seconds:.0%})",
            )
            for f in self.findings
        ]
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


def _with_code(text: str) -> str:
    """A sentence for a page: what stands between backquotes is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _short(file: str) -> str:
    return os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
