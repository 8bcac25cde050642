"""What `program.explain()` says: what a program is called with, what it does step by step, the memory it needs.

Steps that follow one another again and again, as those of a loop, are said once. All of it is linear in the
number of steps.

>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x: mb.sum(x * 2 + 1), mb.zeros(8))
>>> e = program.explain()
>>> e.facts["steps"]
'1: 1 reduction'
>>> [s.flops for s in e.steps]
[24]
"""

from __future__ import annotations

import html
import itertools
import linecache
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mirabelle.arraytypes.cards import card, preformatted, shown_bytes
from mirabelle.arraytypes.programs.errors import file_text
from mirabelle.arraytypes.programs.exchanging import FinishStep, ReduceStep, StartStep
from mirabelle.arraytypes.programs.graph import Data, Fold, Map, Node, Update, counted, walked
from mirabelle.arraytypes.programs.linestages import Work, works_of
from mirabelle.arraytypes.programs.planning import OPERATION
from mirabelle.arraytypes.programs.steps import (
    CallStep,
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    Plan,
    ProductStep,
    Step,
    Storage,
)

# A file and a number, or None where nobody knows.
Line = Any
# So many rows of steps are shown, and so many places of memory; a chart is so wide.
ROWS, PLACES, WIDE = 160, 16, 60


# What a step is about


class StepFacts:
    """What is known of a step: `lines` are the user's, with the part of its time that each is thought to take.

    `works` says of a kernel what each of its lines reads, writes and computes. `inside` are the plans within
    it: what a loop does in each trip, what branches do.
    """

    __slots__ = (
        "flops", "inside", "kind", "label", "lines", "measured", "name", "number", "read", "seconds",
        "shape", "works", "written",
    )  # fmt: skip

    def __init__(self, step: Step, lines: dict[Line, float], inner: Any, prefix: str) -> None:
        self.number = step.number
        # Its number, after those of the steps it is in.
        self.name = f"{prefix}{step.number}"
        self.kind = kind_of(step)
        self.label = label_of(step)
        self.lines = lines
        # Was that measured?
        self.measured = False
        self.works = works_of(step)
        self.read, self.written = step.traffic
        self.flops = step.flops
        self.shape = step.shape
        self.inside = insides_of(step, inner, f"{self.name}.")
        if len(self.inside) == 1 and self.inside[0].trips is not None:
            trips, steps = self.inside[0].trips, self.inside[0].steps
            self.read = trips * sum(s.read for s in steps)
            self.written = trips * sum(s.written for s in steps)
            self.flops = trips * sum(s.flops for s in steps)
        # From the last profile, if there was one.
        self.seconds: float | None = None

    @property
    def moved(self) -> int:
        """Bytes read and written, each element once."""
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """Operations for each byte that is moved."""
        return self.flops / self.moved if self.moved else 0.0

    def __repr__(self) -> str:
        return f"<step {self.name}: {self.label}, {shown_bytes(self.moved)}, {self.flops} flops>"


class Inside:
    """A plan within a step: a branch, or what a loop does in each of its `trips` (None: as many as needed)."""

    __slots__ = ("graph", "items", "plan", "steps", "title", "trips")

    def __init__(self, title: str, trips: int | None, graph: Any, plan: Plan, inner: Any, prefix: str) -> None:
        self.title = title
        self.trips = trips
        self.graph = graph
        self.plan = plan
        self.steps = facts_of_steps(plan, inner, prefix)
        self.items = gathered(plan, self.steps)


def insides_of(step: Step, inner: Any, prefix: str) -> list[Inside]:
    """The plans within a step."""
    if not isinstance(step, CallStep):
        return []
    from mirabelle.arraytypes.programs.loops import Branches, Loop

    found = []
    for x in walked(step.call.template):
        if isinstance(x, Loop):
            graph: Any = x.steps
            plan = graph.runner(inner, x.owned if inner._runs_in_place else None).plan
            title = "each trip" if x.trips is None else f"each of {plural(x.trips, 'trip')}"
            found.append(Inside(title, x.trips, graph, plan, inner, prefix))
        elif isinstance(x, Branches):
            for title, graph, letter in (("if true", x.if_true, "t"), ("if false", x.if_false, "f")):
                found.append(Inside(title, None, graph, graph.runner(inner).plan, inner, f"{prefix}{letter}"))
    return found


def kind_of(step: Step) -> str:
    """What a person calls such a step."""
    for kind, name in _KINDS.items():
        if isinstance(step, kind):
            return name
    return type(step).__name__.removesuffix("Step").lower() or "step"


_KINDS: dict[type, str] = {
    KernelStep: "kernel",
    JoinedStep: "joint kernel",
    FoldStep: "reduction",
    CopyStep: "copy",
    ProductStep: "product",
    CallStep: "call",
    StartStep: "sending",
    FinishStep: "receipt",
    ReduceStep: "combination",
}


def label_of(step: Step, longest: int = 40) -> str:
    """What a step does, shortly: its operations, and how often each occurs.

    >>> import mirabelle as mb
    >>> program = mb.compiling.trace(lambda x: (x + 1) * (x + 2) * x, mb.zeros(3))
    >>> label_of(program.plan.steps[0])
    'add ×2, multiply ×2'
    >>> program = mb.compiling.trace(lambda x, y: (x + 1, y + 1), mb.zeros(3), mb.zeros(5))
    >>> label_of(program.plan.steps[0])
    '2 in one launch: add'
    """
    if isinstance(step, JoinedStep):
        said = ", ".join(dict.fromkeys([label_of(member) for member in step.members]))
        said = f"{len(step.members)} in one launch: {said}"
        return said if len(said) <= longest else said[: longest - 1].rstrip(" ,×") + "…"
    request = getattr(step, "request", None)
    if request is None:
        return step.name
    names: dict[str, int] = {}
    for refs in request.key[0]:
        name = refs[0].op.name
        names[name] = names.get(name, 0) + 1
    if isinstance(step, FoldStep):
        for node in step.nodes:
            names[node.label] = names.get(node.label, 0) + 1
    said = ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in names.items()) or "copy"
    return said if len(said) <= longest else said[: longest - 1].rstrip(" ,×") + "…"


def facts_of_steps(plan: Plan, inner: Any, prefix: str = "") -> list[StepFacts]:
    """What is known of each step of a plan for arrays of a type."""
    lines = lines_of_steps(plan)
    return [StepFacts(step, at, inner, prefix) for step, at in zip(plan.steps, lines, strict=True)]


def lines_of_steps(plan: Plan) -> list[dict[Line, float]]:
    """For each step the lines of the user's program it does, and the part of its time that each stands for.

    A kernel of several lines is divided among them by an estimate: the bytes that each of them is the first to
    read, those it writes, and what its operations cost. (`profile(..., within=True)` measures it.)

    >>> import mirabelle as mb
    >>> program = mb.compiling.trace(lambda x: x * 2 + 1, mb.zeros(3))
    >>> [list(lines.values()) for lines in lines_of_steps(program.plan)]
    [[1.0]]
    """
    stored = {id(x) for step in plan.steps for x in step.nodes}
    found: list[dict[Line, float]] = []
    # What follows upon a copy: a write to the memory it fills, which is what the copy is for.
    following: dict[int, dict[Line, float]] = {}
    for step in reversed(plan.steps):
        lines = _estimated(works_of(step)) or _lines_of(step, stored)
        if not lines:
            for ref in step.writes:
                lines = following.get(ref.storage.number) or {ref.storage.node.line: 1.0}
        writing = {x.line: 1.0 for x in step.nodes if isinstance(x, Update)} or lines
        for ref in step.writes:
            following[ref.storage.number] = writing
        total = sum(lines.values()) or 1.0
        found.append({line: weight / total for line, weight in sorted(lines.items(), key=_place)})
    found.reverse()
    return found


def _estimated(works: dict[Line, Work]) -> dict[Line, float]:
    """What lines are thought to take, in elements of memory, as planning reckons it."""
    return {line: w.moved / 8 + w.cost * OPERATION for line, w in works.items() if w.moved or w.cost}


def _place(item: tuple[Line, float]) -> tuple[bool, str, int]:
    line = item[0]
    return (True, "", 0) if line is None else (False, str(line[0]), int(line[1]))


def _lines_of(step: Step, stored: set[int]) -> dict[Line, float]:
    lines: dict[Line, float] = {}
    own = {id(x) for x in step.nodes}
    stack: list[Node] = list(step.nodes)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        cost = max(node.sig.cost, 1) if isinstance(node, Map) else 1
        lines[node.line] = lines.get(node.line, 0.0) + cost
        if isinstance(node, Update):
            inside: tuple[Node, ...] = (node.value,)
        else:
            inside = node.operands if isinstance(node, (Map, Fold)) else ()
        stack += [x for x in inside if isinstance(x, Map) and (id(x) not in stored or id(x) in own)]
    return lines


# Lines of source


def place_text(line: Line) -> str:
    """A line's file and number."""
    return "somewhere" if line is None else f"{file_text(line[0])}:{line[1]}"


def source_text(line: Line, longest: int = 88) -> str:
    """What stands in a line."""
    if line is None:
        return ""
    text = linecache.getline(*line).strip()
    return text if len(text) <= longest else text[: longest - 1] + "…"


def said_line(line: Line) -> str:
    """A line's place, and what stands there."""
    return f"{place_text(line)}  {source_text(line)}".rstrip()


# What comes again and again


class Repeat:
    """Steps that follow one another several times: `items` are those of the first time."""

    __slots__ = ("count", "first", "items", "length")

    def __init__(self, first: int, length: int, count: int, items: list[Any]) -> None:
        self.first = first
        self.length = length
        self.count = count
        self.items = items

    def __repr__(self) -> str:
        return f"{self.count} x {self.items}"


# A step's number, or several steps.
Item = int | Repeat
# How many later steps of the same kind are tried as the beginning of the next round.
CANDIDATES = 6


def repeats(keys: Sequence[Any], first: int = 0) -> list[Item]:
    """Numbers of steps, with what comes again and again gathered.

    >>> repeats("abcbcbcd")
    [0, 3 x [1, 2], 7]
    >>> repeats("aabaabaab")
    [3 x [2 x [0], 2]]
    """
    n = len(keys)
    following: list[list[int]] = [[] for _ in range(n)]
    later: dict[Any, list[int]] = {}
    for i in reversed(range(n)):
        seen = later.setdefault(keys[i], [])
        following[i] = seen[-1 : -1 - CANDIDATES : -1]
        seen.append(i)
    ends: dict[int, int] = {}
    items: list[Item] = []
    i = 0
    while i < n:
        best = (0, 0)  # how many steps are covered, and minus the length of a round (the shorter the better)
        for j in following[i]:
            period = j - i
            # Up to where each step equals that a period later; asked once for each stretch.
            end = ends.get(period, -1)
            if end < i:
                end = i
                while end + period < n and keys[end] == keys[end + period]:
                    end += 1
                ends[period] = end
            rounds = 1 + (end - i) // period
            if rounds > 1:
                best = max(best, (rounds * period, -period))
        if best[0]:
            covered, length = best[0], -best[1]
            inside = repeats(keys[i : i + length], first + i) if length > 1 else [first + i]
            items.append(Repeat(first + i, length, covered // length, inside))
            i += covered
        else:
            items.append(first + i)
            i += 1
    return items


def key_of_step(step: Step, lines: Iterable[Line]) -> Any:
    """What steps have in common that do the same, in the same lines, with other memory."""
    request = getattr(step, "request", None)
    refs = tuple([(r.offset, r.shape, r.strides, r.dtype.num) for r in (*step.reads, *step.writes)])
    request_key = None if request is None else (request.key, request.shape)
    return type(step), step.name, request_key, getattr(step, "axes", None), refs, tuple(lines)


def gathered(plan: Plan, steps: list[StepFacts]) -> list[Item]:
    """The steps of a plan with what comes again and again gathered."""
    known: dict[Any, int] = {}
    keys = [
        known.setdefault((key_of_step(step, facts.lines), *[id(x.plan) for x in facts.inside]), len(known))
        for step, facts in zip(plan.steps, steps, strict=True)
    ]
    return repeats(keys)


def shown_count(n: float) -> str:
    """A large number as a person reads it."""
    for unit in ("", " k", " M", " G", " T"):
        if n < 1000:
            return f"{n:.0f}{unit}" if n >= 100 or not unit else f"{n:.1f}{unit}"
        n /= 1000
    return f"{n:.1f} P"


def shown_seconds(seconds: float) -> str:
    """A time as a person reads it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def plural(n: int, what: str) -> str:
    """A number of things."""
    if n == 1:
        return f"1 {what}"
    if what.endswith("y") and what[-2] not in "aeou":
        return f"{n:,} {what[:-1]}ies"
    return f"{n:,} {what}{'s' * (what[-1] != 's')}"


# Memory


class Memory:
    """What memory a program needs of its own, beside its arguments and constants."""

    def __init__(self, plan: Plan, steps: list[StepFacts]) -> None:
        self.planned = plan.arena_bytes
        self.unplanned = plan.unplanned_bytes
        self.peak = plan.peak_bytes
        self.steps = len(plan.steps)
        kept = [s for s in plan.storages if s.kind in ("temporary", "output", "made") and s.last >= 0]
        self.storages = kept
        # Until where each is needed: what takes over another's place ends it.
        self.ends = {s.number: s.last for s in kept}
        heirs: dict[int, list[Storage]] = {}
        for s in kept:
            if s.taken is not None:
                heirs.setdefault(s.taken.number, [s.taken]).append(s)
        for chain in heirs.values():
            chain.sort(key=lambda s: s.first)
            for s, after in itertools.pairwise(chain):
                self.ends[s.number] = max(after.first - 1, s.first)
            self.ends[chain[-1].number] = max(s.last for s in chain)
        self.outputs = {s.number for s in plan.outputs}
        self.live, self.at = self._fullest(kept)
        self.lines = steps[self.at].lines if steps else {}

    def _fullest(self, kept: list[Storage]) -> tuple[int, int]:
        """How many bytes are in use at once at most, and at which step."""
        change = [0] * (self.steps + 1)
        for s in kept:
            change[s.first] += s.nbytes
            if s.number not in self.outputs:
                change[self.ends[s.number] + 1] -= s.nbytes
        live = list(itertools.accumulate(change[: self.steps]))
        most = max(live, default=0)
        return most, live.index(most) if live else 0

    def until(self, s: Storage) -> int:
        """The last step at which a storage is needed: results are to the end."""
        return self.steps - 1 if s.number in self.outputs else self.ends[s.number]

    def sentence(self) -> str:
        said = f"{shown_bytes(self.planned)} of temporaries"
        if self.unplanned > self.planned:
            said += f" ({shown_bytes(self.unplanned)} if each had memory of its own)"
        return f"{said}, {shown_bytes(self.peak)} with results"

    def peak_sentence(self) -> str:
        lines = [line for line in self.lines if line is not None]
        where = f", in {said_line(lines[0])}" if lines else ""
        return f"{shown_bytes(self.live)} are in use at once at most: at step {self.at}{where}"

    def places(self) -> list[tuple[str, int, list[Storage]]]:
        """Temporaries by where they lie, then results: a name, bytes, and what lies there in turn."""
        rows: dict[Any, list[Storage]] = {}
        for s in self.storages:
            key = ("at", s.offset) if s.kind == "temporary" else ("result", s.number)
            rows.setdefault(key, []).append(s)
        named = []
        for (what, at), storages in rows.items():
            name = f"+{at}" if what == "at" else f"{storages[0]!r}"
            named.append((name, max(s.nbytes for s in storages), storages))
        named.sort(key=lambda row: -row[1])
        return named

    def chart(self) -> list[str]:
        """When each place of memory is used: a line a place, a column a step (or several steps)."""
        rows = self.places()
        if not rows or not self.steps:
            return []
        columns = min(self.steps, WIDE)
        drawn = rows[:PLACES]
        wide = max(len(name) for name, _, _ in drawn)
        sizes = [shown_bytes(n) for _, n, _ in drawn]
        wider = max(map(len, sizes))
        each = "a step" if columns == self.steps else f"{self.steps / columns:.3g} steps"
        lines = [f"{'':<{wide}}  {'':>{wider}}  step 0 to {self.steps - 1} (a column is {each})"]
        for (name, _, storages), size in zip(drawn, sizes, strict=True):
            cells = ["·"] * columns
            for turn, s in enumerate(sorted(storages, key=lambda s: s.first)):
                last = self.until(s)
                for c in range(s.first * columns // self.steps, last * columns // self.steps + 1):
                    # One after the other in two strengths; where several share a column, or a step, in a third.
                    cells[c] = "█▒"[turn % 2] if cells[c] == "·" else "▓"
            lines.append(f"{name:<{wide}}  {size:>{wider}}  {''.join(cells)}")
        if len(rows) > len(drawn):
            rest = sum(n for _, n, _ in rows[len(drawn) :])
            lines.append(f"and {plural(len(rows) - len(drawn), 'smaller place')}: {shown_bytes(rest)}")
        return lines


# All together


class ProgramExplanation:
    """A program in words: prints as text, shows as HTML with a picture of what depends on what.

    `facts` are short texts, `steps` what is known of each step, `items` their numbers with what comes again and
    again gathered, `memory` the memory it needs, `sources` the source of each kernel, if it was asked for.
    """

    def __init__(self, program: Any, source: bool = False) -> None:
        plan: Plan = program.plan
        self.program = program
        self.steps = facts_of_steps(plan, program.inner)
        self.items = gathered(plan, self.steps)
        self.memory = Memory(plan, self.steps)
        self.profile = getattr(program, "_profile", None)
        self.bandwidth: float | None = None
        if self.profile is not None:
            self.bandwidth = self.profile.bandwidth
            _note_seconds(self.steps, self.profile.steps)
        self.facts = _facts(program, self.steps, self.memory, self.profile)
        self.sources: list[tuple[str, str]] = []
        if source:
            self.sources = _sources(program, plan, self.steps)

    def rows(self) -> list[tuple[int, Any]]:
        """What a list of the steps shows, from above: a depth, and the facts of a step, or a title."""
        return list(self._rows(self.steps, self.items, 0))

    def _rows(self, steps: list[StepFacts], items: list[Item], depth: int) -> Iterator[tuple[int, Any]]:
        for item in items:
            if isinstance(item, Repeat):
                yield depth, self.repeat_title(item, steps)
                yield from self._rows(steps, item.items, depth + 1)
            else:
                yield depth, steps[item]
                for inside in steps[item].inside:
                    yield depth + 1, inside.title
                    yield from self._rows(inside.steps, inside.items, depth + 1)

    def repeat_title(self, item: Repeat, steps: list[StepFacts]) -> str:
        """How often, which steps, and the seconds of all."""
        said = f"{item.count} times: steps {steps[item.first].name} to "
        said += steps[item.first + item.length * item.count - 1].name
        seconds = self.seconds_of(item) if steps is self.steps else None
        return said if seconds is None else f"{said}, {shown_seconds(seconds)} in all"

    def seconds_of(self, item: Repeat) -> float | None:
        """What all rounds of a repetition take, by the last profile."""
        found = [self.steps[i].seconds for i in range(item.first, item.first + item.length * item.count)]
        return None if None in found else sum(found)  # type: ignore[arg-type]

    def fraction(self, facts: StepFacts) -> float | None:
        """The part of the memory's bandwidth that a step reached in the last profile."""
        if not facts.seconds or not self.bandwidth:
            return None
        return facts.moved / facts.seconds / self.bandwidth

    def __repr__(self) -> str:
        wide = max(map(len, self.facts))
        parts = ["\n".join(f"{k:<{wide}}  {v}" for k, v in self.facts.items())]
        if self.steps:
            parts.append("steps:\n" + _indented(self._table()))
        chart = self.memory.chart()
        if chart:
            said = [*chart, self.memory.peak_sentence()] if self.memory.live else chart
            parts.append("memory:\n" + _indented(said))
        for title, text in self.sources:
            parts.append(f"{title}:\n" + _indented(text.rstrip("\n").split("\n")))
        return "\n\n".join(parts)

    def _table(self) -> list[str]:
        timed, peak = self.profile is not None, self.bandwidth is not None
        head = f"{'':>6}  {'':<42} {'read':>10} {'written':>10} {'flops':>7} {'flops/B':>8}"
        lines = [head + (f" {'time':>8}" if timed else "") + (f" {'of peak':>8}" if peak else "")]
        rows = self.rows()
        above: tuple[Line, ...] | None = None
        for depth, row in rows[:ROWS]:
            pad = "  " * depth
            if isinstance(row, str):
                lines.append(f"{pad}{row}")
                above = None
                continue
            what = f"{pad}{row.label}"
            if tuple(row.lines) != above:
                above = tuple(row.lines)
                lines += [f"{pad}{said_line(line)}" for line in row.lines]
            said = (
                f"{row.name:>6}  {what:<42} {shown_bytes(row.read):>10} {shown_bytes(row.written):>10} "
                f"{shown_count(row.flops):>7} {row.intensity:>8.2f}"
            )
            if timed:
                said += f" {shown_seconds(row.seconds or 0.0):>8}"
            if peak:
                said += f" {_percent(self.fraction(row)):>8}"
            lines.append(said)
        if len(rows) > ROWS:
            lines.append(f"{plural(len(rows) - ROWS, 'more row')}: `program.plan.steps` has all steps.")
        return lines

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.programs import picture

        return card(
            f"program {self.program.name}",
            self.facts,
            "",
            picture.drawing_html(self),
            picture.steps_html(self),
            picture.memory_html(self),
            picture.graph_html(self),
            *[_details(title, preformatted(text)) for title, text in self.sources],
        )


def _details(title: str, inside: str) -> str:
    return f"<details><summary style='cursor:pointer'>{html.escape(title)}</summary>{inside}</details>"


def _indented(lines: list[str]) -> str:
    return "\n".join(("    " + line).rstrip() for line in lines)


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.0f} %"


def explained(program: Any, source: bool = False) -> ProgramExplanation:
    """What a program does. With `source`, also the source of each of its kernels."""
    return ProgramExplanation(program, source)


def _facts(program: Any, steps: list[StepFacts], memory: Memory, profile: Any) -> dict[str, str]:
    plan: Plan = program.plan
    facts: dict[str, str] = {}
    defined = getattr(program, "defined", None)
    facts["function"] = program.name + (f" in {place_text(defined)}" if defined else "")
    facts["called with"] = ", ".join(f"{x.name} {_typed(x)}" for x in plan.inputs) or "no arrays"
    captured = program.captured
    returned = program.outputs[: len(captured.returned)]
    if returned:
        facts["returns"] = ", ".join(map(_typed, returned))
    written = [plan.inputs[i].name for i in captured.written if i < len(plan.inputs)]
    if written:
        facts["writes to"] = ", ".join(written)
    constants = [x for x in (s.node for s in plan.storages) if isinstance(x, Data)]
    if constants:
        size = shown_bytes(sum(x.nbytes for x in constants))
        facts["constants"] = f"{plural(len(constants), 'array')} that were there before, {size}"
    facts["runs on"] = _runs(program)
    total = sum(program.seconds.values())
    stages = ", ".join(f"{k} {shown_seconds(v)}" for k, v in program.seconds.items())
    facts["compiled in"] = f"{shown_seconds(total)}: {stages}" if stages else "an earlier process"
    record = getattr(program, "record", None)
    if record:
        changed = [f"{name} {before} → {after}" for name, before, after, _ in record if before != after]
        same = [name for name, before, after, _ in record if before == after]
        said = [f"{', '.join(changed)} nodes"] if changed else []
        if same:
            said.append(f"as many nodes before and after {', '.join(same)}")
        facts["passes"] = "; ".join(said)
    if program.decided.decisions:
        facts["decided by you"] = ", ".join(map(repr, program.decided.decisions))
    nodes = program.graph
    facts["graph"] = f"{plural(len(nodes), 'node')}: {_counts(counted(nodes))}" if nodes else "no nodes"
    kinds: dict[str, int] = {}
    for s in steps:
        kinds[s.kind] = kinds.get(s.kind, 0) + 1
    facts["steps"] = f"{len(steps)}: " + ", ".join(plural(n, k) for k, n in kinds.items()) if steps else "none"
    if steps:
        read, written_bytes = sum(s.read for s in steps), sum(s.written for s in steps)
        flops = shown_count(sum(s.flops for s in steps))
        facts["a call moves"] = f"{shown_bytes(read)} read, {shown_bytes(written_bytes)} written, {flops} flops"
    facts["memory"] = memory.sentence()
    if profile is not None:
        facts["last profile"] = profile.sentence()
    return facts


def _counts(counts: dict[str, int]) -> str:
    names = {
        "Map": "elementwise", "Fold": "reduction", "Part": "view", "Update": "write", "Data": "constant",
        "Empty": "new memory", "Product": "product", "Result": "result", "Input": "input", "Call": "call",
    }  # fmt: skip
    many = sorted(counts.items(), key=lambda kv: -kv[1])
    same = ("elementwise", "new memory")
    return ", ".join(
        f"{n:,} {names[k]}" if names.get(k) in same else plural(n, names.get(k, k.lower())) for k, n in many
    )


def _typed(node: Node) -> str:
    return f"{node.dtype.name}{list(node.shape)}"


def _runs(program: Any) -> str:
    """Where and how a program runs."""
    from mirabelle.arraytypes.programs.reports import manner  # (which brings what backends say)

    return f"{program.inner.__name__}: {manner(program.runner)}"


def _sources(program: Any, plan: Plan, steps: list[StepFacts]) -> list[tuple[str, str]]:
    """The source of each kernel, once, with the steps that run it."""
    from mirabelle.arraytypes.programs.reports import kernel_source

    known: dict[Any, str] = {}
    users: dict[str, list[StepFacts]] = {}
    for step, facts in _all_steps(plan, steps):
        if getattr(step, "request", None) is None:
            continue
        key = key_of_step(step, ())
        text = known.get(key)
        if text is None:
            text = known[key] = kernel_source(step, program.inner)
        users.setdefault(text, []).append(facts)
    found = []
    for text, which in users.items():
        few = ", ".join([s.name for s in which[:6]]) + (f", … ({len(which)} in all)" if len(which) > 6 else "")
        found.append((f"kernel of step{'s' * (len(which) != 1)} {few}, {which[0].label}", text))
    return found


def _all_steps(plan: Plan, steps: list[StepFacts]) -> Iterator[tuple[Step, StepFacts]]:
    """The steps of a plan, and those of the plans within them."""
    for step, facts in zip(plan.steps, steps, strict=True):
        yield step, facts
        for inside in facts.inside:
            yield from _all_steps(inside.plan, inside.steps)


def _note_seconds(steps: list[StepFacts], timed: list[Any]) -> None:
    for facts, time in zip(steps, timed, strict=True):
        facts.seconds = time.seconds / time.runs if time.runs else 0.0
        for inside, times in zip(facts.inside, time.inside, strict=True):
            _note_seconds(inside.steps, times)
