"""Patterns of schedules: which values of a graph "line 12", "exp", "waves.py:12 add[1]" or "#flux" are.

>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x: mb.exp(x) + mb.exp(-x), mb.zeros(3))
>>> [node.label for node in Finder(program.graph).found("exp")]
['exp', 'exp']
>>> Finder(program.graph).found("exp[1]")[0] is program.graph[3]
True
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mirabelle.arraytypes.programs.errors import file_text
from mirabelle.arraytypes.programs.graph import Node, Product, Result, Update

_OPERATION = r"(?P<operation>[A-Za-z_]\w*(?: loop)?)(?:\[(?P<turn>\d+)\])?"
_PLACE = re.compile(rf"(?:line (?P<line>\d+)|(?P<file>.+):(?P<at>\d+))(?: {_OPERATION})?")
_NAME = re.compile(_OPERATION)
# What some kinds of nodes are called beside their labels.
_ALSO: dict[type, tuple[str, ...]] = {Product: ("matmul",), Update: ("write",)}


class Pattern(NamedTuple):
    """A pattern taken apart: a file, a line, an operation and which of these; or a text or a tag."""

    file: str | None = None
    line: int | None = None
    operation: str | None = None
    turn: int | None = None
    text: str | None = None
    tag: str | None = None


def parsed(pattern: str) -> Pattern:
    """What a pattern says.

    >>> parsed("line 3 exp[1]")
    Pattern(file=None, line=3, operation='exp', turn=1, text=None, tag=None)
    >>> parsed("y = x[1:]").text
    'y = x[1:]'
    """
    if pattern.startswith("#"):
        return Pattern(tag=pattern[1:])
    found = _PLACE.fullmatch(pattern)
    if found is not None:
        turn = found["turn"]
        line = int(found["line"] or found["at"])
        return Pattern(found["file"], line, found["operation"], None if turn is None else int(turn))
    found = _NAME.fullmatch(pattern)
    if found is not None:
        turn = found["turn"]
        return Pattern(None, None, found["operation"], None if turn is None else int(turn))
    return Pattern(text=pattern)


def names_of(node: Node) -> tuple[str, ...]:
    """What a value may be called in a pattern."""
    if isinstance(node, Result):
        return (node.operands[0].label,)
    return (node.label, *_ALSO.get(type(node), ()))


def pattern_of(node: Node, turn: int | None = None) -> str:
    """The pattern of a value: its line, its operation, and which of these it is.

    >>> import mirabelle as mb
    >>> program = mb.compiling.trace(lambda x: x + 1, mb.zeros(3))
    >>> pattern_of(program.graph[0])
    'x'
    """
    name = names_of(node)[0] + ("" if turn is None else f"[{turn}]")
    return name if node.line is None else f"{file_text(node.line[0])}:{node.line[1]} {name}"


class Finder:
    """Finds the values of a graph that patterns are about: each pattern in about as much time as it finds."""

    def __init__(self, nodes: Iterable[Node], tags: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.tags = tags or {}
        self.known: dict[Pattern, list[Node]] = {}
        self.place: dict[int, int] = {}
        self.of_line: dict[Any, list[Node]] = {}
        self.of_name: dict[str, list[Node]] = {}
        for i, x in enumerate(nodes):
            self.place[id(x)] = i
            self.of_line.setdefault(x.line, []).append(x)
            for name in names_of(x):
                self.of_name.setdefault(name, []).append(x)
        self.lines: dict[int, list[Any]] = {}
        for line in self.of_line:
            if line is not None:
                self.lines.setdefault(line[1], []).append(line)

    def found(self, *patterns: str) -> list[Node]:
        """The values that patterns are about, in the order of the program."""
        made = {id(x): x for pattern in patterns for x in self._found(pattern)}
        return sorted(made.values(), key=lambda x: self.place[id(x)])

    def _found(self, pattern: str) -> list[Node]:
        said = parsed(pattern)
        if said.tag is not None:
            return self.found(*self.tags.get(said.tag, ()))
        every = said._replace(turn=None)  # (of which the turn is one)
        made = self.known.get(every)
        if made is None:
            made = [x for x in self._candidates(said) if matches(x, said)]
            if not made and said.file is not None:
                # (What has the form of a file and a line may be a text.)
                made = self._candidates(Pattern(text=pattern))
            made.sort(key=lambda x: self.place[id(x)])
            self.known[every] = made
        return made if said.turn is None else made[said.turn : said.turn + 1]

    def _candidates(self, said: Pattern) -> list[Node]:
        if said.line is not None:
            return [x for line in self.lines.get(said.line, ()) for x in self.of_line[line]]
        if said.text is not None:
            lines = [line for line in self.of_line if line is not None and said.text in text_of(line)]
            return [x for line in lines for x in self.of_line[line]]
        return self.of_name.get(said.operation or "", [])[:]


def matches(node: Node, said: Pattern) -> bool:
    """Is a value one that a pattern is about, but for which of several?"""
    if said.operation is not None and said.operation not in names_of(node):
        return False
    if said.line is None and said.text is None:
        return True
    if node.line is None:
        return False
    file, number = node.line
    if said.text is not None:
        return said.text in text_of(node.line)
    return number == said.line and (said.file is None or said.file in (file_text(file), Path(file).name))


def text_of(line: Any) -> str:
    """What stands in a line, with single blanks."""
    return " ".join(linecache.getline(*line).split())


def tops(found: list[Node], users: Mapping[int, list[Node]]) -> list[Node]:
    """Of values those that others read, or nobody: what a line computes, and not what it computes with."""
    mine = {id(x) for x in found}
    made = []
    for x in found:
        readers = users.get(id(x), ())
        if not readers or not all(id(u) in mine for u in readers):
            made.append(x)
    return made
