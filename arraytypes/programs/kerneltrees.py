"""Trees of nodes as kernels compute them: operations in order, and the parts of memory that they read."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import Map, Node, Part, is_barrier, placed_as
from mirabelle.arraytypes.programs.passes.geometry import composed as composed_part
from mirabelle.arraytypes.programs.steps import Ref
from mirabelle.dispatch.schedule import SCALAR, Request


class KernelBuilder:
    """A tree of nodes as the steps of one kernel (see `dispatch.schedule`)."""

    def __init__(self, planner: Any, shape: tuple[int, ...]) -> None:
        self.planner = planner
        self.shape = shape
        self.leaves: list[Ref] = []
        self.versions: list[Node] = []
        self.scalars: list[Any] = []
        self.index: dict[Any, int] = {}
        self.steps: dict[tuple[Any, ...], int] = {}
        self.seen: dict[int, int] = {}
        # Values that this kernel itself computes, though they are stored; the updates it is for.
        self.inside: set[int] = set()
        self.owners: set[int] = set()

    def top(self, node: Node) -> int:
        """The reference of a value that this kernel stores."""
        if type(node) is Part:
            return self.leaf(self._part(node), self.planner.version_of(node.operands[0]))
        assert isinstance(node, Map)
        return self.map(node)

    def _part(self, node: Any) -> Ref:
        source = node.operands[0]
        planner = self.planner
        if isinstance(source, Part) and id(source) not in planner.where:
            flat: Any = composed(node)
            return Ref(
                planner.where[id(flat.operands[0])],
                flat.offset,
                flat.shape,
                flat.strides,
                flat.dtype,
                flat.table,
            )
        return Ref(planner.where[id(source)], node.offset, node.shape, node.strides, node.dtype, node.table)

    def operand(self, node: Node) -> int:
        planner = self.planner
        if type(node) is Map and (id(node) not in planner.stored or id(node) in self.inside):
            home = planner.home.get(id(node))
            if home is None or id(home) in self.owners:
                return self.map(node)
        return self.leaf(planner.ref(node), planner.version_of(node))

    def leaf(self, ref: Ref, version: Node) -> int:
        key = ref.key
        j = self.index.get(key)
        if j is None:
            j = self.index[key] = len(self.leaves)
            self.leaves.append(ref)
            self.versions.append(version)
        return -1 - j

    def scalar(self, a: Any) -> int:
        key = (type(a), a) if a == a and a != 0 else (type(a), repr(a))
        j = self.index.get(key)
        if j is None:
            j = self.index[key] = len(self.scalars)
            self.scalars.append(a)
        return SCALAR + j

    def map(self, node: Map) -> int:
        found = self.seen.get(id(node))
        if found is not None:
            return found
        if is_barrier(node):  # (the kernel that stores it computes what it is of)
            return self.operand(node.args[0])
        refs: list[Any] = [node.sig]
        for a in node.args:
            refs.append(self.operand(a) if isinstance(a, Node) else self.scalar(a))
        step = tuple(refs)
        found = self.steps.get(step)
        if found is None:
            found = self.steps[step] = len(self.steps)
        self.seen[id(node)] = found
        return found

    def request(self, outs: tuple[int, ...]) -> Request:
        return Request((tuple(self.steps), outs), self.leaves, self.scalars, self.shape, [])  # type: ignore[arg-type]


def composed(part: Any) -> Any:
    """A part of parts as a part of the value they show; None where strides cannot say it."""
    while isinstance(part.operands[0], Part):
        made = composed_part(part, part.operands[0])
        if not isinstance(made, Part):
            return None
        part = placed_as(part, made)
    return part
