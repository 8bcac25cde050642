"""Several kernels of a grid as one: its blocks are those of the one, then those of the next.

    def joined_add(y0_s0, x0_s0, n_s0, y0_s1, ..., first_s1):
        block = i4(block_x())
        if block < i4(first_s1):
            ... the body of the first kernel
        else:
            ... that of the second, whose blocks are counted from `first_s1`

What all threads of a block ask for takes next to nothing. Kernels of one source that follow each other have one
body, whose parameters are chosen first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import Writer

_KERNEL = re.compile(r"^def (\w+)\((.*?)\):\n", re.MULTILINE)
_ASSIGNED = re.compile(r"^\s*(\w+) = ", re.MULTILINE)


class _Member:
    """A kernel's source: its `element` function, its parameters, its body."""

    def __init__(self, source: KernelText, linear: bool) -> None:
        found = next(m for m in _KERNEL.finditer(source.text) if m[1] == source.name)
        self.element = source.text[: found.start()]
        self.parameters = found[2].split(", ")
        self.body = source.text[found.end() :]
        if linear:
            # (In blocks that are several rows of threads, of which there may be several above each other.)
            self.body = re.sub(r"\bthread_x\(\)", "i4(thread_y() * threads_x() + thread_x())", self.body)
            self.body = "    if i4(block_y()) > i4(0):\n        return\n" + self.body.replace(
                "i4(threads_x())", "i4(threads_x() * threads_y())"
            )
        self.names = {*self.parameters, *_ASSIGNED.findall(self.body), "element"}

    def renamed(self, text: str, suffix: str) -> str:
        """Text in which the kernel's own names are told from those of others."""
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: m[0] + suffix if m[0] in self.names else m[0], text)


def joined_source(members: Sequence[tuple[KernelText, int, int]], linear: Sequence[bool]) -> KernelText:
    """The source of kernels as one, given how many addresses each takes, and how many numbers are fixed of it
    when it is planned.

    Its parameters are the addresses of each, the scalars of each, what is fixed of each (sizes, strides), and
    the first blocks of all but the first. Equal sources follow each other. Those that are `linear` are for
    threads in a row, where blocks have several.
    """
    runs = [list(run) for _, run in itertools.groupby(range(len(members)), lambda i: members[i][0].text)]
    kinds = [_Member(members[run[0]][0], linear[run[0]]) for run in runs]
    w = Writer()
    for b, kind in enumerate(kinds):
        for line in kind.renamed(kind.element, f"_b{b}").splitlines():
            w(line)
    addresses: list[tuple[str, str]] = []
    scalars: list[tuple[str, str]] = []
    fixed: list[tuple[str, str]] = []
    for kind, run in zip(kinds, runs, strict=True):
        for s in run:
            source, operands, rest = members[s]
            named = [(f"{p}_s{s}", c) for p, c in zip(kind.parameters, source.codes, strict=True)]
            addresses += named[:operands]
            scalars += named[operands : len(named) - rest]
            fixed += named[len(named) - rest :]
    firsts = [(f"first_s{s}", "i8") for s in range(1, len(members))]
    parameters = [*addresses, *scalars, *fixed, *firsts]
    name = f"joined{len(members)}_{members[0][0].name}"
    w(f"def {name}({', '.join([p for p, _ in parameters])}):")
    w.depth += 1
    w("block = i4(block_x())")
    for b, (kind, run) in enumerate(zip(kinds, runs, strict=True)):
        _branch(w, run[-1], len(members), b == 0)
        for k, s in enumerate(run):
            _branch(w, s, run[-1] + 1, k == 0)
            w(f"first_b{b} = {f'i4(first_s{s})' if s else 'i4(0)'}")
            for p in kind.parameters:
                w(f"{p}_b{b} = {p}_s{s}")
            _end(w, len(run))
        body = kind.renamed(kind.body, f"_b{b}").replace("block_x()", f"i4(block - first_b{b})")
        for line in body.splitlines():
            w(line.removeprefix("    "))
        _end(w, len(kinds))
    functions = [f for i in (run[0] for run in runs) for f in members[i][0].functions]
    return KernelText(w.text(), name, tuple([c for _, c in parameters]), functions)


def _branch(w: Writer, last: int, end: int, begins: bool) -> None:
    """The question whether a block is of a member up to the `last`, of all before `end`."""
    if begins and last + 1 == end:
        return  # (there are no others)
    w(f"{'if' if begins else 'elif'} block < i4(first_s{last + 1}):" if last + 1 < end else "else:")
    w.depth += 1


def _end(w: Writer, alternatives: int) -> None:
    if alternatives > 1:
        w.depth -= 1


__all__ = ["joined_source"]
