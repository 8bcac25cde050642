"""What `program.profile()` measures: the time of each step, and what it comes to in lines of the program.

Each step is run by itself, with a clock around it; and the program is run as ever, as a whole, so that both can
be compared: as a whole there is less between the steps, and all that a call takes besides.

>>> import mirabelle as mb
>>> f = mb.compile(lambda x: mb.sum(x * 2 + 1))
>>> x = mb.HostArray([1.0, 2.0])
>>> p = f.program(x).profile(x, times=2)
>>> len(p.steps), p.steps[0].bytes, p.seconds > 0
(1, 24, True)
"""

from __future__ import annotations

import functools
import html
import itertools
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.cards import card, shown_bytes
from mirabelle.arraytypes.dense import evaluated
from mirabelle.arraytypes.programs.explaining import (
    Line,
    Repeat,
    StepFacts,
    facts_of_steps,
    gathered,
    place_text,
    said_line,
    shown_count,
    shown_seconds,
    source_text,
)
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.signature import Arguments, has_numpy, mapped
from mirabelle.dispatch.tree import Leaf

# So many steps are listed, and so many lines.
STEPS, LINES = 24, 40


class StepTime:
    """A step, and the seconds it took: the least of all rounds.

    `inside` are the steps of the plans within it (of a loop, of branches), all trips of a call together.
    """

    __slots__ = (
        "bytes", "flops", "inside", "kind", "label", "lines", "measured", "name", "number", "runs", "seconds",
        "works",
    )  # fmt: skip

    def __init__(
        self, facts: StepFacts, seconds: float, runs: float = 1, inside: list[list[StepTime]] | None = None
    ) -> None:
        self.number = facts.number
        self.name = facts.name
        self.kind = facts.kind
        self.label = facts.label
        # The user's lines, with the part of the time that each stands for: measured, or else estimated.
        self.lines = facts.lines
        self.measured = facts.measured
        # What each line reads, writes and computes in a kernel.
        self.works = facts.works
        self.seconds = seconds
        # How often it is run in a call of the program.
        self.runs = runs
        self.inside = inside or []
        self.bytes = runs * facts.moved
        self.flops = runs * facts.flops
        if self.inside:
            self.bytes = sum(s.bytes for steps in self.inside for s in steps)
            self.flops = sum(s.flops for steps in self.inside for s in steps)

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        return f"<step {self.name}: {self.label}, {shown_seconds(self.seconds)}>"


class LineTime:
    """A line of the user's program, and what the steps it stands for took."""

    __slots__ = ("bytes", "flops", "line", "seconds", "share", "steps")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.seconds = 0.0
        self.share = 0.0
        self.bytes = 0.0
        self.flops = 0.0
        # How many steps have to do with it.
        self.steps = 0

    @property
    def place(self) -> str:
        """The file and the number."""
        return place_text(self.line)

    @property
    def text(self) -> str:
        """What stands there."""
        return source_text(self.line)

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        return f"<line {self.place}: {100 * self.share:.0f} %, {shown_seconds(self.seconds)}>"


class Profile:
    """Where a program spends its time.

    `steps` and `lines` say it by steps (in order) and by lines of the user's program (the longest first);
    `seconds` is the sum over the steps, `native_seconds` what the program takes as a whole: the least of
    `times` rounds each. `bandwidth` is what a copy of a large array reaches at this place, in bytes a second.
    """

    def __init__(
        self,
        program: Any,
        facts: list[StepFacts],
        steps: list[StepTime],
        events: list[tuple[int, float, float]],
        native_seconds: float,
        bandwidth: float | None,
        times: int,
    ) -> None:
        self.name = program.name
        self.inner = program.inner
        self.place = repr(program.inner.home)
        self.times = times
        self.steps = steps
        self.seconds = sum(s.seconds for s in steps)
        self.native_seconds = native_seconds
        self.bandwidth = bandwidth
        # The steps of the fastest round: (number, began, ended), from 0 on.
        self.events = events
        self.items = gathered(program.plan, facts)
        self.lines = _by_lines(steps)

    def sentence(self) -> str:
        """How long the program takes, and how long its steps do."""
        return (
            f"{shown_seconds(self.native_seconds)} as a whole, {shown_seconds(self.seconds)} step by step "
            f"(the least of {self.times})"
        )

    def roofline(self, steps: int = 10) -> Any:
        """The `steps` that take longest beside what their place reaches: a table, and a picture.

        >>> import mirabelle as mb
        >>> x = mb.ones(1000)
        >>> [p.bytes for p in mb.compile(lambda x: x * 2 + 1).profile(x, times=1).roofline().points]
        [16000]
        """
        from mirabelle.arraytypes.programs.rooflines import Roofline

        return Roofline(self, steps)

    def said_of_lines(self) -> str:
        """How lines that share a kernel were told apart; empty where none do."""
        shared = [s for s in _all_steps(self.steps) if len(s.works) > 1]
        if not shared:
            return ""
        measured = sum(s.measured for s in shared)
        if not measured:
            return "the time of lines that share a kernel is estimated: `profile(..., within=True)` measures it"
        rest = len(shared) - measured
        return f"lines that share a kernel are measured{f', in {rest} short steps estimated' if rest else ''}"

    # As text

    def __repr__(self) -> str:
        lines = [f"profile of {self.name} on {self.place}: {self.sentence()}"]
        if self.said_of_lines():
            lines.append(self.said_of_lines())
        if self.bandwidth:
            lines.append(f"a copy of a large array reaches {shown_bytes(self.bandwidth)}/s here")
        lines += ["", f"{'share':>6} {'time':>8} {'bytes':>10} {'per second':>12} {'flops':>7}  line"]
        for x in self.lines[:LINES]:
            lines.append(
                f"{100 * x.share:>5.1f}% {shown_seconds(x.seconds):>8} {shown_bytes(x.bytes):>10} "
                f"{shown_bytes(x.bandwidth) + '/s':>12} {shown_count(x.flops):>7}  {said_line(x.line)}".rstrip()
            )
        if len(self.lines) > LINES:
            rest = sum(x.share for x in self.lines[LINES:])
            lines.append(f"{100 * rest:>5.1f}% in {len(self.lines) - LINES} other lines")
        lines += ["", f"{'share':>6} {'time':>8} {'bytes':>10} {'per second':>12} {'flops':>7}  step"]
        rows = self._rows()
        for seconds, moved, flops, said, _ in rows[:STEPS]:
            share = seconds / self.seconds if self.seconds else 0.0
            rate = shown_bytes(moved / seconds if seconds else 0.0)
            lines.append(
                f"{100 * share:>5.1f}% {shown_seconds(seconds):>8} {shown_bytes(moved):>10} {rate + '/s':>12} "
                f"{shown_count(flops):>7}  {said}"
            )
        if len(rows) > STEPS:
            rest = sum(r[0] for r in rows[STEPS:]) / (self.seconds or 1.0)
            lines.append(f"{100 * rest:>5.1f}% in {len(rows) - STEPS} others: `profile.steps` has them all")
        return "\n".join(lines)

    def _rows(self) -> list[tuple[float, float, float, str, str]]:
        """Seconds, bytes, flops, name and kind of each step, those of all rounds of a repetition together."""
        rows: list[tuple[float, float, float, str, str]] = []
        for item in self.items:
            if isinstance(item, Repeat):
                first, length, count = item.first, item.length, item.count
            else:
                first, length, count = item, 1, 1
            for i in range(first, first + length):
                found = self.steps[i : first + length * count : length]
                said = f"{i}: {found[0].label}" + (f", {count} times" if count > 1 else "")
                for s in found:
                    rows += _rows_inside(s)
                rows.append(
                    (
                        sum(s.seconds for s in found),
                        sum(s.bytes for s in found),
                        sum(s.flops for s in found),
                        said,
                        found[0].kind,
                    )
                )
        rows.sort(key=lambda row: -row[0])
        return rows

    # As HTML

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.programs.picture import COLOURS, bar, code, colour_of, table

        facts = {
            "as a whole": shown_seconds(self.native_seconds),
            "step by step": shown_seconds(self.seconds),
            "rounds": f"{self.times}, of which the least counts",
            "place": self.place,
        }
        if self.said_of_lines():
            facts["lines"] = self.said_of_lines()
        if self.bandwidth:
            facts["a copy reaches"] = f"{shown_bytes(self.bandwidth)}/s"
        most = max([x.share for x in self.lines], default=0.0) or 1.0
        by_line = [
            [
                bar(x.share / most, COLOURS["kernel"]) + f"{100 * x.share:.1f} %",
                shown_seconds(x.seconds),
                shown_bytes(x.bytes),
                f"{shown_bytes(x.bandwidth)}/s",
                shown_count(x.flops),
                code(x.line),
            ]
            for x in self.lines[:LINES]
        ]
        rows = self._rows()
        longest = max([r[0] for r in rows], default=0.0) or 1.0
        by_step = [
            [
                bar(seconds / longest, colour_of(kind)) + f"{100 * seconds / (self.seconds or 1.0):.1f} %",
                shown_seconds(seconds),
                shown_bytes(moved),
                f"{shown_bytes(moved / seconds if seconds else 0.0)}/s",
                shown_count(flops),
                html.escape(said),
            ]
            for seconds, moved, flops, said, kind in rows[:STEPS]
        ]
        rest = ["time", "bytes", "per second", "flops"]
        steps = table(["share", *rest, "step"], by_step, {0, 5})
        return card(
            f"profile of {self.name}",
            facts,
            "",
            table(["share", *rest, "line"], by_line, {0, 5}),
            f"<details><summary style='cursor:pointer'>by steps</summary>{steps}</details>",
        )

    # As files

    def trace(self) -> dict[str, Any]:
        """The fastest round as events of Chrome's tracing format: each step, within its line of the program."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": what, "pid": 1, "tid": tid, "args": {"name": name}}
            for what, tid, name in (
                ("process_name", 0, f"{self.name} on {self.place}"),
                ("thread_name", 1, "step by step"),
                ("thread_name", 2, "as a whole"),
            )
        ]

        def event(name: str, kind: str, began: float, ended: float, args: dict[str, Any], tid: int = 1) -> None:
            events.append(
                {
                    "ph": "X", "name": name, "cat": kind, "pid": 1, "tid": tid,
                    "ts": round(began * 1e6, 3), "dur": round(max(ended - began, 0.0) * 1e6, 3), "args": args,
                }
            )  # fmt: skip

        event(self.name, "program", 0.0, self.native_seconds, {"rounds": self.times}, 2)
        run: list[Any] = []  # (line, began, ended) of the steps of one line, one after the other
        for number, began, ended in self.events:
            step = self.steps[number]
            line = max(step.lines, key=lambda x: step.lines[x], default=None)
            if run and run[0] == line:
                run[2] = ended
            else:
                if run:
                    event(said_line(run[0]), "line", run[1], run[2], {})
                run = [line, began, ended]
        if run:
            event(said_line(run[0]), "line", run[1], run[2], {})
        for number, began, ended in self.events:
            step = self.steps[number]
            seconds = ended - began
            args = {
                "step": number,
                "lines": [said_line(line) for line in step.lines],
                "bytes": step.bytes,
                "flops": step.flops,
                "bytes per second": step.bytes / seconds if seconds > 0 else None,
            }
            event(step.label, step.kind, began, ended, args)
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save(self, path: Any) -> str:
        """Write the fastest round as a trace: open it in chrome://tracing or https://ui.perfetto.dev.

        >>> import tempfile, os
        >>> import mirabelle as mb
        >>> f, x = mb.compile(lambda x: x + 1), mb.zeros(3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f.program(x).profile(x, times=1).save(os.path.join(folder, "trace.json"))
        >>> os.path.basename(path)
        'trace.json'
        """
        path = os.fspath(path)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)
        return path

    def picture(self, path: Any = "profile.png", lines: int = 20) -> str:
        """Draw what each line takes as bars to an image file, PNG or what its name ends in; returns its path.

        >>> import mirabelle as mb
        >>> f, x = mb.compile(lambda x: x + 1), mb.zeros(3)
        >>> f.profile(x, times=1).picture("profile.png")  # doctest: +SKIP
        'profile.png'
        """
        from mirabelle.arraytypes.programs.reports import drawn  # which brings what knows matplotlib

        return drawn(self, path, lines)


def _rows_inside(step: StepTime) -> list[tuple[float, float, float, str, str]]:
    rows = []
    for s in itertools.chain.from_iterable(step.inside):
        rows.append((s.seconds, s.bytes, s.flops, f"{s.name}: {s.label}, in {step.name}", s.kind))
        rows += _rows_inside(s)
    return rows


def _all_steps(steps: list[StepTime]) -> Iterator[StepTime]:
    for s in steps:
        yield s
        for inside in s.inside:
            yield from _all_steps(inside)


def _by_lines(steps: list[StepTime]) -> list[LineTime]:
    found: dict[Line, LineTime] = {}

    def add(step: StepTime) -> None:
        seconds, moved, flops = step.seconds, step.bytes, step.flops
        if step.inside:  # what is left is going from trip to trip
            moved = flops = 0.0
            for s in itertools.chain.from_iterable(step.inside):
                seconds -= s.seconds
                add(s)
        for line in dict.fromkeys([*step.lines, *step.works]):
            x = found.get(line)
            if x is None:
                x = found[line] = LineTime(line)
            part, work = step.lines.get(line, 0.0), step.works.get(line)
            x.seconds += part * max(seconds, 0.0)
            x.bytes += part * moved if work is None else step.runs * work.moved
            x.flops += part * flops if work is None else step.runs * work.flops
            x.steps += 1

    for step in steps:
        add(step)
    total = sum(x.seconds for x in found.values())
    for x in found.values():
        x.share = x.seconds / total if total else 0.0
    return sorted(found.values(), key=lambda x: -x.seconds)


# Measuring


def profiled(
    program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], times: int = 10, within: bool = False
) -> Profile:
    """Measure a program with these arguments, which keep what they hold; with `within`, lines in kernels."""
    from mirabelle.arraytypes.programs.reports import timed_runner, waiting

    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise ValueError(
            f"A profile takes at least one round, not times={times!r}: `program.profile(*args, times=10)`."
        )
    arrays = _arrays_of(program, args, kwargs)
    inner = program.inner
    inputs = _Inputs(program, arrays)
    _warmed(program.runner, inputs)
    native = _least(program.runner.run, waiting(inner), times, inputs.fresh)
    facts = facts_of_steps(program.plan, inner)
    runner = timed_runner(program.plan, inner)
    least: dict[int, float] = {}
    total: dict[int, float] = {}
    best: list[tuple[int, float, float]] = []
    shortest = float("inf")
    with _Within(inner, facts) as loops:
        _warmed(runner, inputs)
        loops.forget()
        for _ in range(times):
            runner.run(inputs.fresh())
            taken = 0.0
            for number, began, ended in runner.times:
                seconds = ended - began
                taken += seconds
                total[number] = total.get(number, 0.0) + seconds
                if seconds < least.get(number, float("inf")):
                    least[number] = seconds
            if taken < shortest:
                shortest, best = taken, runner.times
    if within:
        _measure_lines(program.plan, inner, facts, least, loops, inputs.fresh(), times)
    start = best[0][1] if best else 0.0
    events = [(number, began - start, ended - start) for number, began, ended in best]
    steps = []
    for f in facts:
        seconds = least.get(f.number, 0.0)
        # Of what is within a step the mean is known, which is made to fit the step's least.
        scale = seconds / total[f.number] if total.get(f.number) else 0.0
        steps.append(StepTime(f, seconds, 1, loops.times_of(f, scale, times)))
    made = Profile(program, facts, steps, events, native, bandwidth_of(inner), times)
    program._profile = made
    return made


# Kernels of several lines that take less than this part of the time are not measured line by line, nor more
# than so many.
HOT, MOST_HOT = 0.02, 8


def _measure_lines(
    plan: Any,
    inner: Any,
    facts: list[StepFacts],
    seconds: dict[int, float],
    loops: _Within,
    views: list[Any],
    times: int,
) -> None:
    """Measure what each line takes in the kernels that take longest, also within loops and branches."""
    if inner.home.rank > 2:
        raise ValueError(
            "Lines within kernels are measured on one place: call `f.profile(*args, within=True)` with "
            f"arrays of the inner type, {inner.inner.__name__}, or leave `within` out, and they are estimated."
        )
    from mirabelle.arraytypes.programs.linestages import Dissecting

    found: list[tuple[float, Any, StepFacts]] = [(seconds.get(f.number, 0.0), None, f) for f in facts]
    for inside in loops.plans:
        by_number = loops.sums[id(inside.graph)].seconds
        found += [(by_number.get(f.number, 0.0) / times, inside, f) for f in inside.steps]
    total = sum(seconds.values())
    hot = [x for x in found if len(x[2].works) > 1 and x[0] >= HOT * total]
    hot = sorted(hot, key=lambda x: -x[0])[:MOST_HOT]

    def dissecting(inside: Any, of: Any) -> Dissecting:
        return Dissecting(inner, of, [f.number for _, where, f in hot if where is inside], times)

    outside = dissecting(None, plan)
    runners = {id(x.graph): dissecting(x, x.plan) for x in loops.plans}
    before = [(x.graph, x.graph.runs[inner]) for x in loops.plans]
    try:
        for x in loops.plans:
            x.graph.runs[inner] = runners[id(x.graph)]
        outside.run(views)
    finally:
        for graph, runner in before:
            graph.runs[inner] = runner
    for _, inside, f in hot:
        shares = (outside if inside is None else runners[id(inside.graph)]).shares.get(f.number)
        if shares:
            f.lines, f.measured = shares, True


def _warmed(runner: Any, inputs: _Inputs) -> None:
    """Run until there is a kernel for everything: the first runs ask for them."""
    from mirabelle.arraytypes.programs.reports import settle

    for i in range(5):
        runner.run(inputs.fresh())
        settle(runner.plan, inputs.inner)
        if i and getattr(runner, "segments", ()) is not None:
            return


class _Within:
    """In a `with` block, the plans within steps are timed, too."""

    def __init__(self, inner: Any, facts: list[StepFacts]) -> None:
        from mirabelle.arraytypes.programs.reports import timed_runner

        self.inner = inner
        self.sums: dict[int, _Sums] = {}
        self.plans: list[Any] = []
        self.before: list[tuple[Any, Any]] = []
        stack = [x for f in facts for x in f.inside]
        while stack:
            inside = stack.pop()
            if id(inside.graph) not in self.sums:
                self.sums[id(inside.graph)] = _Sums(timed_runner(inside.plan, inner))
                self.plans.append(inside)
                self.before.append((inside.graph, inside.graph.runs[inner]))
            stack += [x for f in inside.steps for x in f.inside]

    def __enter__(self) -> _Within:
        for graph, _ in self.before:
            graph.runs[self.inner] = self.sums[id(graph)]
        return self

    def __exit__(self, *problem: object) -> None:
        for graph, runner in self.before:
            graph.runs[self.inner] = runner

    def forget(self) -> None:
        for sums in self.sums.values():
            sums.runs, sums.seconds = 0, {}

    def times_of(self, facts: StepFacts, scale: float, times: int) -> list[list[StepTime]]:
        """What the steps within a step took in a call."""
        return [
            [
                StepTime(
                    f,
                    self.sums[id(x.graph)].seconds.get(f.number, 0.0) * scale,
                    _whole(self.sums[id(x.graph)].runs / times),
                    self.times_of(f, scale, times),
                )
                for f in x.steps
            ]
            for x in facts.inside
        ]


def _whole(n: float) -> float:
    return int(n) if n == int(n) else n


class _Sums:
    """What runs a plan within a step, and adds up the times of its steps."""

    def __init__(self, timed: Any) -> None:
        self.timed = timed
        self.plan = timed.plan
        self.runs = 0
        self.seconds: dict[int, float] = {}

    def run(self, inputs: Any) -> list[Any]:
        made = self.timed.run(inputs)
        self.runs += 1
        for number, began, ended in self.timed.times:
            self.seconds[number] = self.seconds.get(number, 0.0) + ended - began
        return made  # type: ignore[no-any-return]


def _arrays_of(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    if program.key is None:  # from a file: it has its own way of telling what it is for
        from mirabelle.arraytypes.programs.calledwith import bound

        args, kwargs = bound(program.parameters, program.called_with, args, kwargs)
    if has_numpy((args, kwargs)):
        from mirabelle.arraytypes.programs.compiled import _as_ours

        args, kwargs = mapped((args, kwargs), functools.partial(_as_ours, {}))
    found = Arguments((args, kwargs))
    if program.key is None:
        program._check(found)
        return found.arrays
    if found.key != program.key:
        wanted = ", ".join(f"{x.name}: {x.dtype.name}{list(x.shape)}" for x in program.plan.inputs)
        given = ", ".join(f"{type(x).__name__} of shape {x.shape}" for x in found.arrays)
        raise TypeError(
            f"The program {program.name} is for other arguments (arrays {wanted or 'none'}; and numbers are "
            f"constants of a program) than these (arrays {given or 'none'}). For the program of these: "
            "`f.profile(*args)` with the compiled function f, or `f.program(*args).profile(*args)`."
        )
    return found.arrays


class _Inputs:
    """The views of the arguments; of those that the program writes to, copies, which begin anew each round."""

    def __init__(self, program: Any, arrays: list[Any]) -> None:
        self.inner = inner = program.inner
        self.views: list[Any] = []
        self.copied: list[tuple[Any, Any]] = []
        for i, x in enumerate(arrays):
            node = x._node
            view = in_c_order(inner, (node if type(node) is Leaf else evaluated(x)).view)
            if i in program.captured.written:
                made = inner._empty(view.shape, view.dtype)
                self.copied.append((made, view))
                view = made
            self.views.append(view)

    def fresh(self) -> list[Any]:
        for made, view in self.copied:
            self.inner._copy_into(made, view)
        return self.views


def _least(run: Any, wait: Any, times: int, fresh: Any) -> float:
    least = float("inf")
    for _ in range(times):
        given = fresh()
        wait()
        began = time.perf_counter()
        run(given)
        wait()
        least = min(least, time.perf_counter() - began)
    return least


# What a copy reaches, by array types: measured once in a process.
_bandwidths: dict[Any, float] = {}
# So large that no cache holds it.
COPIED = 1 << 26


def bandwidth_of(inner: Any) -> float | None:
    """Bytes a second that a copy of a large array reads and writes; None where that says nothing."""
    from mirabelle.arraytypes.programs.reports import waiting

    simulated = hasattr(inner, "driver") and inner.driver().simulated
    if inner.home.rank > 2 or simulated:
        return None
    found = _bandwidths.get(inner)
    if found is None:
        try:
            made = [inner._empty((COPIED // 8,), np.dtype(np.float64)) for _ in range(2)]
        except MemoryError:
            return None
        inner._copy_into(made[0], made[1])  # (memory that was never written is no memory yet)
        least = _least(lambda views: inner._copy_into(*views), waiting(inner), 4, lambda: (made[1], made[0]))
        found = _bandwidths[inner] = 2 * COPIED / least
    return found
