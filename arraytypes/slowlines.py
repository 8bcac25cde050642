"""What a line's numbers mean: the rules of the doctor (diagnosis.py), with the cure and what it saves at most.

A rule looks at what was counted at a line, and at the line's text, which says what numbers do not: whether what
is written is an element, whether an array grows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.dispatch.errors import DenseFallbackWarning, GatheringWarning
from mirabelle.dispatch.linecounts import LineCount

# What things cost, in seconds: an element in a compiled loop; a small statement; to stop for a number; a byte
# of memory; to make an array a little longer.
ELEMENT, WRITTEN, STOP, BYTE, GROW = 1e-8, 3.5e-7, 5e-6, 1e-10, 1.6e-5
# From where on a line is worth a word: element reads and writes, statements on few bytes, compilations.
READS, STATEMENTS, COMPILATIONS, GROWN = 100, 200, 3, 30
FEW_BYTES = 1 << 16
# The share of capturing that a program for all sizes saves: it is fitted to each.
ANY_SIZE = 0.6
# A share of a line's time that is nothing to be gained.
FEW = 0.1
# A statement on so many bytes is one on single numbers.
NUMBERS = 40
# Functions that make a longer or a shorter array of an array.
_GROWING = {"append", "concat", "concatenate", "hstack", "vstack", "insert", "delete", "resize"}

# What a rule says: what happens, the cure, the seconds that this may save; or nothing.
Found = tuple[str, str, float] | None


def _on_elements(line: LineCount, text: str) -> bool:
    """Does a line work on single elements of arrays, and not with results of operations on arrays?"""
    moved, launches = line["bytes_read"] + line["bytes_written"], line["launches"]
    if line["scalar_reads"] >= READS:
        return moved <= line["scalar_reads"] * 64 or bool(_elements(text) or _computed(text))
    return launches >= READS and line["scalar_reads"] + launches >= STATEMENTS and moved <= launches * NUMBERS


def _statements(text: str) -> list[ast.stmt]:
    """The simple statements of a line: of a loop that is written in one, those that it repeats."""
    for rest in ("", " pass"):
        try:
            found = ast.parse(text + rest).body
            break
        except (SyntaxError, ValueError):  # (a part of a statement, or the head of a block)
            found = []
    while len(found) == 1 and isinstance(found[0], (ast.For, ast.While, ast.If, ast.With)):
        if isinstance(found[0].body[0], ast.Pass):
            break
        found = found[0].body
    return found


def _targets(text: str, kind: type[ast.expr]) -> list[ast.expr]:
    """What a line assigns to, of one kind: elements, names."""
    found = []
    for statement in _statements(text):
        if isinstance(statement, ast.Assign):
            found += statement.targets
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            found.append(statement.target)
    return [t for t in found if isinstance(t, kind)]


def _elements(text: str) -> list[ast.Subscript]:
    """The elements, or rows, that a line assigns to; no parts."""
    found = [t for t in _targets(text, ast.Subscript) if isinstance(t, ast.Subscript)]
    return [t for t in found if not any(_is_part(x) for x in ast.walk(t.slice))]


def _is_part(x: ast.AST) -> bool:
    return isinstance(x, ast.Slice) or (isinstance(x, ast.Constant) and x.value in (..., None))


def _computed(text: str) -> list[ast.Subscript]:
    """The elements of a line whose index is an element of another array, `x[b[i]]`."""
    return [
        x
        for statement in _statements(text)
        for x in _outside_of_reductions(statement)
        if isinstance(x, ast.Subscript) and _indices(x)
    ]


def _outside_of_reductions(x: ast.AST) -> Iterator[ast.AST]:
    """What stands in a statement, but for what functions of modules and methods are given (`mb.sum(x[i])`)."""
    yield x
    if not (isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute)):
        for child in ast.iter_child_nodes(x):
            yield from _outside_of_reductions(child)


def _indices(x: ast.Subscript) -> list[ast.expr]:
    """The arrays by whose elements it is indexed."""
    if any(isinstance(part, ast.Slice) for part in ast.walk(x.slice)):
        return []
    return [part.value for part in ast.walk(x.slice) if isinstance(part, ast.Subscript)]


def _whole(x: ast.Subscript) -> str:
    """The same for all elements: `x[b]` for `x[b[i]]`."""
    return f"{ast.unparse(x.value)}[{', '.join(map(ast.unparse, _indices(x)))}]"


def _for_all(text: str) -> str:
    """How what a line does to single elements is said for the whole array."""
    for statement in _statements(text):
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
            x, by = statement.target, _indices(statement.target)
            if by and isinstance(statement.op, (ast.Add, ast.Sub)):
                array, index = ast.unparse(x.value), ", ".join(map(ast.unparse, by))
                index = f"({index})" if len(by) > 1 else index
                value = statement.value
                amount = ast.unparse(value) if isinstance(value, ast.Constant) else "values"
                sign = "-" if isinstance(statement.op, ast.Sub) else ""
                counts = f", or count with `mb.bincount({index})`" if len(by) == 1 and amount == "1" else ""
                return f"add to all elements at once, `mb.add_at({array}, {index}, {sign}{amount})`{counts}"
    for x in _computed(text):
        done = "write to" if isinstance(x.ctx, ast.Store) else "pick"
        return f"{done} all elements at once, `{_whole(x)}`"
    if any(isinstance(s, ast.AugAssign) for s in _statements(text)) and _elements(text):
        return (
            "say it for the whole array (`y += f(x)`; where the index is computed, "
            "`mb.add_at(y, indices, values)`)"
        )
    return "say it for the whole array (`y = f(x)`, `mb.where`, `mb.cumsum`, `mb.sum(A * A, axis=1)` for rows)"


def _is_statement(text: str) -> bool:
    """Is a line a whole statement, which is run at each visit, and not the head of a loop?"""
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def _grows(text: str) -> bool:
    """Does a line make an array longer: `x = mb.append(x, v)`?"""
    names = {t.id for t in _targets(text, ast.Name) if isinstance(t, ast.Name)}
    for call in [x for s in _statements(text) for x in ast.walk(s)] if names else ():
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) in _GROWING:
            return any(isinstance(n, ast.Name) and n.id in names for arg in call.args for n in ast.walk(arg))
    return False


def _loops_over_elements(line: LineCount, text: str) -> Found:
    if not _on_elements(line, text):
        return None
    elements = max(line["scalar_reads"], line["launches"])
    return (
        f"{elements} times single elements are read, written or computed with",
        f"{_for_all(text)}, or write the loop in a function under `@mb.jit`; to read all elements once, "
        "`for v in x.tolist():`",
        line.seconds - elements * ELEMENT,
    )


def _grows_an_array(line: LineCount, text: str) -> Found:
    if line.visits < GROWN or not _grows(text):
        return None
    return (
        f"in {line.visits} visits an array is made anew, a little longer or shorter, and copied",
        "append Python's numbers to a list, and make the array of it once, `mb.asarray(numbers)`; or make it "
        "at full length before the loop, and write to its elements in a function under `@mb.jit`",
        _copies(line),
    )


def _copies(line: LineCount) -> float:
    """What making it longer takes of a line: all, unless the line computes something else, too."""
    launches = line["launches"] + line["library_calls"]
    if launches <= 1.5 * line.visits:
        return line.seconds
    return line.visits * GROW + 2 * line["bytes_written"] * BYTE


def _values_asked_for(line: LineCount, text: str) -> Found:
    reads, launches = line["scalar_reads"], line["launches"]
    if reads < READS or _on_elements(line, text):
        return None
    return (
        f"{reads} times a number is asked for (by `float`, `if`, `print`, an index), so that what is pending "
        f"is computed here: {launches} launches",
        "ask less often, every tenth time say: what is asked for is not computed in between, and what ten "
        "turns leave pending is one pass over memory; in a compiled function `mb.while_loop` asks by itself",
        reads * STOP + 4 * line["bytes_written"] * BYTE,  # (written to new memory)
    )


def _compiled_again(line: LineCount, text: str) -> Found:
    """(What a visit takes in which nothing is compiled is no part of it, as far as there is one.)"""
    if line.compiling < COMPILATIONS:
        return None
    captured = f", and {line['captures']} times a function is captured" if line["captures"] else ""
    changing, cures = [], []
    if line.shapes >= line["captures"] / 2 > 0:
        changing.append("shapes")
        cures.append('`@mb.compile(sizes="any")` makes one program for all sizes; or pad to a few')
    if line.numbers >= line["captures"] / 2 > 0:
        changing.append("Python's numbers")
        cures.append("hand a number that changes over as an array, `f(x, mb.asarray(dt))`")
    saved = line.compiled_again - (line.compiling - 1) * _ready(line)
    return (
        f"something is compiled in {min(line.compiling, line.visits)} of {line.visits} visits{captured}"
        + (f", for other {' and '.join(changing)}" if changing else ""),
        "; ".join(cures)
        or "let shapes, dtypes and constants repeat: hand a number that changes over as an array, "
        '`f(x, mb.asarray(dt))`; where sizes change, `@mb.compile(sizes="any")` makes one program for all, or '
        "pad to a few sizes; make a function once, outside of the loop",
        saved * ANY_SIZE if changing == ["shapes"] else saved,
    )


def _ready(line: LineCount) -> float:
    """How long a visit takes in which nothing is compiled; 0 where there is none, or too little is known."""
    others = line.visits - line.compiling
    if others <= line.visits * FEW:  # (the last visit of a loop in one line, say)
        return 0.0
    made = line.compiled_again * line.compiling / max(line.compiling - 1, 1)
    return max(line.seconds - made, 0.0) / others


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
        line.seconds - moved * BYTE,
    )


def _inverts(line: LineCount, text: str) -> Found:
    if not re.search(r"\binv\([^()]*\)\s*@", text):
        return None
    return (
        "a matrix is inverted to be multiplied with",
        "solve: `mb.linalg.solve(A, b)` is a third of the work, and more accurate; with one matrix and many "
        "`b`, `F = mb.linalg.factorize(A)` once, then `F.solve(b)`",
        line.seconds * 0.8,
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
        "give a statement more elements (many small problems are one array with an axis more); or make the "
        "loop one program with `@mb.compile` (which takes some tens of ms once), or write it with its loops "
        "over elements in a function under `@mb.jit`",
        launches * WRITTEN,
    )


def fell_back(line: LineCount, said: DenseFallbackWarning, count: int) -> tuple[str, str, float]:
    """What it cost that a structured array was made dense: to write it; the routine is the dense one.

    (It is said once of an operation and a type, and happens at each visit.)
    """
    what, _, cure = str(said).partition("; ")
    saved = min((max(line.visits, 1) - 1) * said.nbytes * 2.5 * BYTE, line.seconds)
    times = f", {count} times" if count > 1 else f", at {line.visits} visits" if line.visits > 1 else ""
    cure = (
        ("where the same array comes again, make it dense once, before the loop; " if line.visits > 1 else "")
        + "the routine is the one for dense arrays and takes as long then: more is saved by another routine "
        f"alone, or a rule ({cure.rstrip('.')})"
    )
    return what.rstrip(".") + times, cure, saved


def gathered(line: LineCount, said: GatheringWarning, count: int) -> tuple[str, str, float]:
    """A divided array that was fetched to each process."""
    what, _, cure = str(said).partition("; ")
    times = f", {count} times" if count > 1 else ""
    return what.rstrip(".") + times, cure.rstrip(".") or "the warning says it", 0.9 * line.seconds


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
