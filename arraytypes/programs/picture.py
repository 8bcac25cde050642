"""Pictures of compiled programs: what flows from step to step, when memory is used, the nodes of a small graph.

Boxes and lines are those of `arraytypes/boxes.py`, colours and pieces those of `arraytypes/pictures.py`.

>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x: mb.sum(x * 2 + 1), mb.zeros(8))
>>> drawing(steps_boxes(program.explain()))[:4]
'<svg'
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mirabelle.arraytypes import pictures
from mirabelle.arraytypes.boxes import Box, drawing, typed
from mirabelle.arraytypes.cards import preformatted, shown_bytes
from mirabelle.arraytypes.programs.explaining import (
    Item,
    Memory,
    ProgramExplanation,
    Repeat,
    StepFacts,
    place_text,
    plural,
    said_line,
    shown_count,
    shown_seconds,
    source_text,
)
from mirabelle.arraytypes.programs.graph import Call, Data, Empty, Input, Map, Node, Part, Result, Update

# More boxes than these are not drawn, of steps and of nodes; nor more rows, nor more pieces of memory.
STEPS, NODES, ROWS, PIECES = 60, 90, 120, 600
# So many steps of a repetition are named in its box.
NAMED = 6

COLOURS: dict[str, str] = {
    "kernel": "#2fa39a", "joint kernel": "#2fa39a", "reduction": "#a06cd5", "copy": "#8b95a5",
    "product": "#e8963a", "call": "#e8963a",
    "elementwise": "#2fa39a", "write": "#c9a227", "view": "#8b95a5", "result": "#e05c7a", "memory": "#8b95a5",
}  # fmt: skip


def colour_of(kind: str) -> str:
    """The colour of a kind of step or node."""
    found = COLOURS.get(kind)
    return pictures.OTHER if found is None else found


# What is drawn of steps


def steps_boxes(e: ProgramExplanation) -> list[Box]:
    """A box for each step, or for each repetition; for what is read and what is returned."""
    return _flow(e, e.items)


def _cut(items: Sequence[Item], e: ProgramExplanation) -> tuple[list[Any], str]:
    """What is drawn of many steps, and a sentence on what is not: steps of the same lines are put together."""
    if len(items) <= STEPS:
        return list(items), ""
    groups: list[Any] = []
    for item in items:
        lines = _lines_of(item, e)
        if groups and isinstance(groups[-1], _Run) and groups[-1].lines == lines:
            groups[-1].items.append(item)
        else:
            groups.append(_Run(lines, [item]))
    merged = [g.items[0] if len(g.items) == 1 else g for g in groups]
    steps = plural(len(e.steps), "step")
    said = f"Steps of the same lines are drawn together: {len(merged)} boxes for {steps}."
    if len(merged) > STEPS:
        said = (
            f"The program is too large for one picture: of {steps} in {len(merged)} groups the first {STEPS} "
            "groups are drawn."
        )
        merged = merged[:STEPS]
    elif len(merged) == len(items):
        said = ""
    return merged, said


class _Run:
    """Steps of the same lines, one after the other."""

    def __init__(self, lines: tuple[Any, ...], items: list[Item]) -> None:
        self.lines = lines
        self.items = items


def _lines_of(item: Any, e: ProgramExplanation) -> tuple[Any, ...]:
    if isinstance(item, _Run):
        return item.lines
    return tuple(dict.fromkeys(line for i in _first_numbers(item) for line in e.steps[i].lines))


def _first_numbers(item: Any) -> range:
    """The steps of an item; of a repetition, those of the first round."""
    if isinstance(item, Repeat):
        return range(item.first, item.first + item.length)
    return range(item, item + 1)


def _numbers(item: Any) -> Iterable[int]:
    """All steps of an item."""
    if isinstance(item, _Run):
        return [i for x in item.items for i in _numbers(x)]
    if isinstance(item, Repeat):
        return range(item.first, item.first + item.length * item.count)
    return range(item, item + 1)


def _flow(e: ProgramExplanation, items: Sequence[Any]) -> list[Box]:
    plan = e.program.plan
    place = pictures.COLOURS.get(getattr(e.program.inner.home, "kind", ""), pictures.OTHER)
    boxes: list[Box] = []
    sources: dict[int, Box] = {}
    # The box that wrote last to each storage.
    writer: dict[int, Box] = {}

    def source(s: Any) -> Box | None:
        if s.kind not in ("input", "data"):
            return None
        box = sources.get(s.number)
        if box is None:
            said = s.node.name if s.kind == "input" else "constant"
            title = f"{said}: {typed(s.node)}, {shown_bytes(s.nbytes)}"
            box = sources[s.number] = Box(said, [typed(s.node)], place, title, True)
            boxes.append(box)
        return box

    for item in items:
        box = _step_box(item, e)
        own: set[int] = set()
        for i in _numbers(item):
            step = plan.steps[i]
            for ref in step.reads:
                s = ref.storage
                if s.number not in own:
                    box.reading(writer.get(s.number) or source(s))
            for ref in step.writes:
                s = ref.storage
                if not ref.is_whole and s.number not in own:
                    box.reading(writer.get(s.number) or source(s), True)
                own.add(s.number)
        for number in own:
            writer[number] = box
        boxes.append(box)
    captured = e.program.captured
    count = len(captured.returned)
    for i, s in enumerate(plan.outputs):
        if i < count:
            said = "result" if count == 1 else f"result {i}"
        else:
            at = captured.written[i - count]
            said = plan.inputs[at].name if at < len(plan.inputs) else "written"
        made = writer.get(s.number) or source(s)
        if made is None:
            continue
        kind = typed(e.program.outputs[i])
        box = Box(said, [kind], COLOURS["result"], f"{said}: {kind}")
        box.reading(made)
        boxes.append(box)
    return boxes


def _step_box(item: Any, e: ProgramExplanation) -> Box:
    if isinstance(item, Repeat):
        inside = [e.steps[i] for i in _first_numbers(item)]
        said = f"{item.count} times {plural(item.length, 'step')}"
        seconds = e.seconds_of(item)
        box = Box(said, _named(inside, seconds), COLOURS[_main_kind(inside)], _title_of(inside))
        box.times = item.count
        return box
    if isinstance(item, _Run):
        inside = [e.steps[i] for x in item.items for i in _first_numbers(x)]
        count = len(list(_numbers(item)))
        line = next((line for line in item.lines if line is not None), None)
        notes = [place_text(line), source_text(line, 44)]
        box = Box(plural(count, "step"), notes, COLOURS[_main_kind(inside)], _title_of(inside))
        box.times = count
        return box
    facts = e.steps[item]
    lines = [line for line in facts.lines if line is not None]
    where = ", ".join(map(place_text, lines[:2])) + (" …" if len(lines) > 2 else "")
    notes = [f"{'×'.join(map(str, facts.shape)) or 'scalar'} · {shown_bytes(facts.moved)}", where]
    for inside in facts.inside:
        notes += [f"{inside.title}: {plural(len(inside.steps), 'step')}", *_named(inside.steps, None)]
    if facts.seconds is not None:
        notes.append(shown_seconds(facts.seconds))
    return Box(facts.label, notes, colour_of(facts.kind), _title(facts))


def _main_kind(steps: Sequence[StepFacts]) -> str:
    kinds = [s.kind for s in steps]
    for kind in ("product", "call", "kernel", "joint kernel", "reduction"):
        if kind in kinds:
            return kind
    return "copy"


def _named(steps: Sequence[StepFacts], seconds: float | None) -> list[str]:
    said = [f"{s.label} · {'×'.join(map(str, s.shape))}" for s in steps[:NAMED]]
    if len(steps) > NAMED:
        said.append(f"and {len(steps) - NAMED} more")
    return [*said, shown_seconds(seconds)] if seconds is not None else said


def _title(facts: StepFacts) -> str:
    said = f"step {facts.number}: {facts.label}"
    lines = "".join(f"\n{said_line(line)}" for line in facts.lines if line is not None)
    return f"{said}\n{shown_bytes(facts.moved)} moved, {shown_count(facts.flops)} flops{lines}"


def _title_of(steps: Sequence[StepFacts]) -> str:
    lines = dict.fromkeys(line for s in steps for line in s.lines if line is not None)
    few = list(lines)[:12]
    return "\n".join(map(said_line, few)) + ("\n…" if len(lines) > len(few) else "")


def _legend(kinds: Iterable[str], place: str) -> str:
    dots = [("arguments, constants", place)]
    dots += [(kind, COLOURS[kind]) for kind in dict.fromkeys(kinds) if kind in COLOURS]
    dots.append(("result", COLOURS["result"]))
    shown = "".join(
        f'<span style="white-space:nowrap;margin-right:1.2em"><span style="color:{colour}">●</span> '
        f"{html.escape(name)}</span>"
        for name, colour in dots
    )
    return f'<div style="font-size:11px;opacity:0.8;margin-bottom:0.4em">{shown}</div>'


def drawing_html(e: ProgramExplanation) -> str:
    """The picture of the steps, and a sentence on what is not in it."""
    if not e.steps:
        return ""
    items, said = _cut(e.items, e)
    place = pictures.COLOURS.get(getattr(e.program.inner.home, "kind", ""), pictures.OTHER)
    drawn = drawing(_flow(e, items))
    note = f'<div style="font-size:11px;opacity:0.8;margin-top:0.3em">{html.escape(said)}</div>' if said else ""
    legend = _legend([s.kind for s in e.steps], place)
    return f'{legend}<div style="overflow:auto;max-height:720px;padding:4px 8px 4px 0">{drawn}</div>{note}'


# The nodes of a graph


def graph_html(e: ProgramExplanation) -> str:
    """The nodes of the graph, where they are few enough."""
    nodes = e.program.graph
    if not nodes:
        return ""
    if len(nodes) > NODES:
        inside = (
            f'<div style="opacity:0.8">The graph has {len(nodes):,} nodes, too many for a picture: '
            "<code>program.graph</code> lists them.</div>"
        )
    else:
        drawn = drawing(node_boxes(e.program))
        inside = f'<div style="overflow:auto;max-height:720px;padding:4px">{drawn}</div>'
    return f"<details><summary style='cursor:pointer'>graph of {len(nodes):,} nodes</summary>{inside}</details>"


def node_boxes(program: Any) -> list[Box]:
    """A box for each node of a program's graph."""
    place = pictures.COLOURS.get(getattr(program.inner.home, "kind", ""), pictures.OTHER)
    boxes: dict[int, Box] = {}
    found: list[Box] = []
    for node in program.graph:
        is_source = isinstance(node, (Input, Data, Empty))
        said, kind = _said_of(node)
        colour = place if isinstance(node, (Input, Data)) else colour_of(kind)
        title = f"{said}: {typed(node)}" + (f"\n{said_line(node.line)}" if node.line else "")
        box = Box(said, [] if isinstance(node, Call) else [typed(node)], colour, title, is_source)
        for i, x in enumerate(node.operands):
            box.reading(boxes[id(x)], isinstance(node, Update) and i == 0)
        boxes[id(node)] = box
        found.append(box)
    for i, x in enumerate(program.outputs):
        count = len(program.captured.returned)
        said = f"result {i}" if i < count else "written"
        box = Box(said, [], COLOURS["result"])
        box.reading(boxes[id(x)])
        found.append(box)
    return found


def _said_of(node: Node) -> tuple[str, str]:
    if isinstance(node, Map):
        numbers = [str(a)[:10] for a in node.args if not isinstance(a, Node)]
        return " ".join([node.label, *numbers]), "elementwise"
    if isinstance(node, Update):
        return "write", "write"
    if isinstance(node, Part):
        return ("gather from" if node.table else "view"), "view"
    if isinstance(node, Data):
        return "constant", "data"
    if isinstance(node, Empty):
        return "new memory", "memory"
    if isinstance(node, Result):
        return f"result {node.number} of {node.operands[0].label}", "call"
    kind = type(node).__name__.lower()
    return ("matrix product" if kind == "product" else node.label), {"fold": "reduction"}.get(kind, kind)


# Steps as a table

_CELL = (
    "border:none;background:none;padding:0.1em 0.9em 0.1em 0;white-space:nowrap;font-size:12px;"
    "vertical-align:top;text-align:{side}"
)
_LEFT, _RIGHT = _CELL.format(side="left"), _CELL.format(side="right")
_ROW = "background:none;border:none"


def bar(part: float, colour: str) -> str:
    """A share as a small bar."""
    return (
        '<span style="display:inline-block;width:64px;height:8px;background:rgba(128,128,128,0.18);'
        f'vertical-align:middle;margin-right:6px"><span style="display:block;height:8px;background:{colour};'
        f'width:{100 * min(part, 1.0):.1f}%"></span></span>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[int]) -> str:
    """Rows of cells, which are HTML; the columns with these numbers are texts, the others numbers."""
    heads = "".join(
        f'<th style="{_LEFT if i in texts else _RIGHT};opacity:0.6;font-weight:normal">{html.escape(h)}</th>'
        for i, h in enumerate(head)
    )
    cells = "".join(
        f'<tr style="{_ROW}">'
        + "".join(f'<td style="{_LEFT if i in texts else _RIGHT}">{c}</td>' for i, c in enumerate(row))
        + "</tr>"
        for row in rows
    )
    style = "border-collapse:collapse;border:none;color:inherit;margin:0"
    rows_html = f'<tr style="{_ROW}">{heads}</tr>{cells}'
    return f'<div style="overflow-x:auto"><table style="{style}">{rows_html}</table></div>'


def code(line: Any) -> str:
    """A line's place, and what stands there."""
    return f"<code style='background:none;color:inherit'>{html.escape(said_line(line))}</code>"


def steps_html(e: ProgramExplanation) -> str:
    """The steps with their lines, as a table."""
    rows = e.rows()
    if not rows:
        return ""
    timed, peak = e.profile is not None, e.bandwidth is not None
    most = max([s.seconds or 0.0 for s in e.steps], default=0.0) or 1.0
    cells = []
    for depth, row in rows[:ROWS]:
        pad = f"padding-left:{1.2 * depth:.1f}em"
        if isinstance(row, str):
            title = f'<span style="{pad};font-weight:600">{html.escape(row)}</span>'
            cells.append(["", title, *[""] * (5 + timed + peak)])
            continue
        colour = colour_of(row.kind)
        lines = "<br>".join(map(code, row.lines))
        made = [
            row.name,
            f'<span style="{pad}"><span style="color:{colour}">●</span> {html.escape(row.label)}</span>',
            shown_bytes(row.read),
            shown_bytes(row.written),
            shown_count(row.flops),
            f"{row.intensity:.2f}",
        ]
        if timed:
            made.append(bar((row.seconds or 0.0) / most, colour) + shown_seconds(row.seconds or 0.0))
        if peak:
            part = e.fraction(row)
            made.append("" if part is None else f"{100 * part:.0f} %")
        cells.append([*made, lines])
    head = ["", "step", "read", "written", "flops", "flops/B"]
    head += [*["time"][: int(timed)], *["of peak"][: int(peak)], "lines"]
    shown = table(head, cells, {0, 1, len(head) - 1})
    if len(rows) > ROWS:
        shown += (
            f'<div style="opacity:0.8;font-size:11px">{plural(len(rows) - ROWS, "row")} more are not shown: '
            "<code>program.plan.steps</code> has all steps.</div>"
        )
    is_open = " open" if len(rows) <= 24 else ""
    head_line = f"<summary style='cursor:pointer'>{plural(len(e.steps), 'step')}</summary>"
    return f"<details{is_open}>{head_line}{shown}</details>"


# Memory


def memory_html(e: ProgramExplanation) -> str:
    """Which temporary lies where, and when, as rectangles; results as bars below."""
    memory = e.memory
    drawn = memory_drawing(memory)
    if drawn is None:
        chart = memory.chart()
        inside = preformatted("\n".join(chart)) if chart else ""
    else:
        inside = f'<div style="overflow-x:auto;padding:4px 0">{drawn}</div>'
    if not inside:
        return ""
    said = html.escape(memory.peak_sentence())
    return (
        f"<details><summary style='cursor:pointer'>memory: {html.escape(memory.sentence())}</summary>{inside}"
        f'<div style="opacity:0.8;font-size:11px">{said}</div></details>'
    )


def memory_drawing(memory: Memory) -> str | None:
    """The program's memory over its steps; None where there is too much of it to be drawn."""
    storages = [s for s in memory.storages if s.nbytes]
    if not storages or len(storages) > PIECES or not memory.steps:
        return None
    wide, high, left = 560.0, 150.0, 66.0
    column = wide / memory.steps
    parts: list[str] = []
    temporaries = [s for s in storages if s.kind == "temporary"]
    others = [s for s in storages if s.kind != "temporary"]
    y = 4.0
    if memory.planned:
        for i, s in enumerate(temporaries):
            top = y + high * s.offset / memory.planned
            x = left + column * s.first
            w = column * (memory.until(s) - s.first + 1)
            h = max(high * s.nbytes / memory.planned, 1.5)
            title = f"{s!r}: {typed(s.node)}, {shown_bytes(s.nbytes)}, steps {s.first} to {memory.until(s)}"
            colour = (COLOURS["kernel"], "#4f8edc", "#a06cd5")[i % 3]
            shape = pictures.rectangle(x, top, w, h, colour, 0.35, 0.7)
            parts += [f"<g><title>{html.escape(title)}</title>", shape, "</g>"]
        parts.append(
            f'<rect x="{left}" y="{y}" width="{wide}" height="{high}" fill="none" stroke="currentColor" '
            'stroke-opacity="0.35" stroke-dasharray="3 3"/>'
        )
        parts.append(pictures.text(left - 6, y + 10, "temporaries", 9.5, "end"))
        parts.append(pictures.text(left - 6, y + 22, shown_bytes(memory.planned), 9.5, "end"))
        y += high + 10
    for s in sorted(others, key=lambda s: -s.nbytes)[:12]:
        last = memory.until(s)
        title = f"{s!r}: {typed(s.node)}, {shown_bytes(s.nbytes)}, steps {s.first} to {last}"
        colour = COLOURS["result"] if s.number in memory.outputs else COLOURS["product"]
        x, w = left + column * s.first, column * (last - s.first + 1)
        shape = pictures.rectangle(x, y, w, 8, colour, 0.35, 0.7)
        parts += [f"<g><title>{html.escape(title)}</title>", shape, "</g>"]
        parts.append(pictures.text(left - 6, y + 8, shown_bytes(s.nbytes), 9, "end"))
        y += 13
    parts.append(pictures.text(left, y + 10, "step 0", 9.5, "start"))
    parts.append(pictures.text(left + wide, y + 10, f"step {memory.steps - 1}", 9.5, "end"))
    at = left + column * (memory.at + 0.5)
    parts.append(pictures.stroke(at, 2, at, y, "#e05c7a", 1.0, "2 3"))
    return pictures.svg(left + wide + 8, y + 16, parts)
