"""Which values of a graph are numbers: the same at all places, and known."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import Map, Node, Part


def number(a: Any) -> Any:
    """The number that an argument is, everywhere; None if it is none."""
    while isinstance(a, Map) and len(a.args) == 1 and a.sig.op.name == "copy":
        a = a.args[0]
    return None if isinstance(a, Node) else a


def everywhere(node: Any) -> Any:
    """The number that a value is at all places; None if it is none, or is not known to be one."""
    while (
        type(node) is Part
        and not node.table
        and node.operands[0].size == 1
        and node.dtype == node.operands[0].dtype
    ):
        node = node.operands[0]
    return number(node) if type(node) is Map else None
