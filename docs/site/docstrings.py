"""Docstrings, which are plain text with NumPy's sections, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

SECTIONS = (
    "Parameters",
    "Returns",
    "Yields",
    "Raises",
    "Attributes",
    "Differences to NumPy",
    "See Also",
    "Notes",
    "Examples",
)


def text_of(thing: Any) -> str:
    """The docstring, without what a class has inherited."""
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc or "")


def summary(thing: Any) -> str:
    """The first paragraph as one line."""
    return " ".join(text_of(thing).split("\n\n")[0].split())


def escaped(line: str) -> str:
    """A line of plain text in which Markdown sees nothing but `code`, and *what it begins with*."""
    pieces = re.split(r"(``.+?``|`[^`]*`|^\*{1,2}[A-Z][^*]*\*{1,2}(?=\s))", line)
    return "".join(p if i % 2 else re.sub(r"([*_<\[\]\\])", r"\\\1", p) for i, p in enumerate(pieces))


def sections(doc: str) -> Iterator[tuple[str, str]]:
    """The text before the first heading under the name "", then each section by its name."""
    heading = re.compile(rf"^({'|'.join(SECTIONS)})\n-{{3,}}\n", flags=re.MULTILINE)
    parts = heading.split(doc)
    yield "", parts[0].strip("\n")
    yield from zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True)


def parameters(body: str) -> str:
    """`name : type` and what is indented below, as a list."""
    found = []
    for entry in re.split(r"\n(?=\S)", body):
        head, *lines = entry.split("\n")
        names, _, kind = (part.strip() for part in head.partition(" : "))
        named = ", ".join(f"`{name.strip()}`" for name in names.split(","))
        said = escaped(" ".join(" ".join(lines).split()))
        kind = f" *({escaped(kind)})*" if kind else ""
        found.append(f"- {named}{kind}: {said}" if said else f"- {named}{kind}")
    return "\n".join(found)


def returned(body: str) -> str:
    """What comes back: its type, and what is indented below."""
    kind, *lines = body.split("\n")
    if not lines or not all(line.startswith("    ") for line in lines if line):
        return prose(body)
    return f"*{escaped(kind)}*: {escaped(' '.join(' '.join(lines).split()))}"


def prose(body: str) -> str:
    """Paragraphs, lists, doctests, blocks of code and indented text."""
    made = []
    for part in re.split(r"(^```\w*\n.*?^```$)", body, flags=re.MULTILINE | re.DOTALL):
        made += [part] if part.startswith("```") else [block(b) for b in re.split(r"\n\s*\n", part.strip("\n"))]
    return "\n\n".join(part for part in made if part)


def block(body: str) -> str:
    """What stands between two empty lines."""
    lines = body.split("\n")
    if lines[0].lstrip().startswith(">>>"):
        return f"```pycon\n{inspect.cleandoc(body)}\n```"
    if body.strip() and all(line.startswith("    ") for line in lines):
        return f"```text\n{inspect.cleandoc(body)}\n```"
    said = "\n".join(escaped(line) for line in lines)
    return said if lines[0].startswith("- ") else said.replace("\n- ", "\n\n- ")


def markdown(doc: str) -> str:
    """A whole docstring."""
    made = []
    for name, body in sections(doc):
        if name and name != "Examples":
            made.append(f"**{name}**")
        if name in ("Returns", "Yields"):
            made.append(returned(body))
        else:
            made.append(parameters(body) if name in ("Parameters", "Attributes", "Raises") else prose(body))
    return "\n\n".join(part for part in made if part)
