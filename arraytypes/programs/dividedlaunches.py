"""Launches of kernels (`@mb.kernel`) in plans over processes: what is fetched for them, and their parts.

Which process runs a kernel for which indices, and what it reads around its part, is found as for launches
outside of programs (`distributed/kernelranges.py`). Here it becomes steps of a process's plan: what several
statements need travels together, and the indices that need nothing of others are run meanwhile.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from mirabelle.arraytypes.distributed.kernelranges import KernelRanges, Region
from mirabelle.arraytypes.distributed.kernels import inner_box, linear, number_of, part_of, within
from mirabelle.arraytypes.distributed.overlapping import around
from mirabelle.arraytypes.distributed.transfers import Box
from mirabelle.arraytypes.distributed.views import Map
from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import LaunchStep, Ref, Storage
from mirabelle.arraytypes.usercode.kernelaccesses import Launched
from mirabelle.dispatch.errors import LayoutError


class LocalLaunch(NamedTuple):
    """The launch of a process's part, as a call of the program it is in."""

    template: Any
    routine: str
    line: Any
    kind: str = "kernel"


class LaunchItem:
    """A launch: which process runs it where, where its arrays are, and what brings what is not here."""

    def __init__(self, step: LaunchStep) -> None:
        self.step = step
        self.kernel, self.shape, self.group, self.arguments = step.call.template[0]
        # By parameters: arrays that are divided, and numbers that are values of the program.
        self.refs: dict[str, Ref] = {}
        self.numbers: dict[str, Ref] = {}
        for name, x in zip(self.kernel.source.parameters, self.arguments, strict=True):
            if isinstance(x, Slot):
                ref = step.operands[x.number]
                written = x.number in step.dests
                (self.refs if ref.shape or written else self.numbers)[name] = ref
        self.maps: dict[str, Map] = {}
        self.epochs: dict[str, Any] = {}
        self.ranges: KernelRanges = None  # type: ignore[assignment]

    @property
    def fits(self) -> bool:
        """Can it be divided beforehand? (Not what may fail on one process alone, and what hides its arrays.)"""
        hidden = any(_has_slots(x) for x in self.arguments if not isinstance(x, Slot))
        return bool(self.refs) and not hidden and not (self.kernel.boundscheck or self.kernel.source.may_raise)

    def divide(self, size: int) -> bool:
        """Find out who runs what; False if the kernel has to say why not when it is launched."""
        numbers = {
            n: None if isinstance(x, Slot) else number_of(x)
            for n, x in zip(self.kernel.source.parameters, self.arguments, strict=True)
        }
        shapes = {n: m.shape for n, m in self.maps.items()}
        try:
            self.ranges = KernelRanges(
                self.kernel, Launched(self.shape, self.group, shapes, numbers), self.maps, size
            )
        except LayoutError:
            return False
        # (What is written and read around would be put together, and taken apart again.)
        return not any(self.lacks(q) & self.ranges.written for q in range(size))

    def lacks(self, q: int) -> set[str]:
        """The arrays of which a process reads elements that it does not hold."""
        ranges = self.ranges
        return {
            n
            for n, region in ranges.regions[q].items()
            if all(a < b for a, b in region) and not within(region, ranges.held[n][q])
        }

    def needs(self, name: str, q: int) -> list[Box]:
        """The boxes of an array that a process reads, in places of the array."""
        region = self.ranges.regions[q].get(name)
        if region is None or any(a >= b for a, b in region):
            return []
        shape = self.maps[name].shape
        return list(itertools.product(*[linear(r, n) for r, n in zip(region, shape, strict=True)]))

    def wraps(self, name: str, q: int) -> bool:
        """Does what a process reads of an array go around its end?"""
        region = self.ranges.regions[q].get(name, ())
        return any(b > n for (_, b), n in zip(region, self.maps[name].shape, strict=False))

    def boxes(self, rank: int) -> tuple[Box | None, list[Box]]:
        """What a process runs at once, and what it runs when all has come."""
        box = self.ranges.boxes[rank]
        if box is None:
            return None, []
        lacking = self.lacks(rank)
        if not lacking:
            return box, []
        inner = inner_box(self.ranges, rank, box, lacking)
        return (None, [box]) if inner is None else (inner, around(box, inner))

    def regions(self, rank: int, box: Box) -> dict[str, Region | None]:
        """Where each array has to be for a box: all that is here, if that is enough. None where nothing is."""
        ranges = self.ranges
        reads = ranges.reads(box)
        found: dict[str, Region | None] = {}
        for name in self.maps:
            region, held = reads.get(name), ranges.held[name][rank]
            enough = region is None or any(a >= b for a, b in region) or within(region, held)
            found[name] = held if enough else region
        return found

    def local(self, box: Box, regions: dict[str, Region | None], refs: dict[str, Ref]) -> LaunchStep:
        """The step for a box, of arrays that lie so."""
        lying = {n: r or ((0, 0),) * len(self.maps[n].shape) for n, r in regions.items()}
        kernel, numbers = part_of(self.ranges, box, lying)
        operands: list[Ref] = []
        arguments: list[Any] = []
        written: dict[int, Storage] = {}
        for name, x in zip(self.kernel.source.parameters, self.arguments, strict=True):
            if not isinstance(x, Slot):
                arguments.append(x)
                continue
            if name in self.ranges.written:
                written[len(operands)] = refs[name].storage
            arguments.append(Slot(len(operands)))
            operands.append(refs[name])
        shape = tuple(b - a for a, b in box)
        call = LocalLaunch(
            ((kernel, shape, self.group, [*arguments, *numbers]), {}), self.kernel.__name__, self.step.call.line
        )
        made = LaunchStep(call, operands, written, self.step.launch)
        made.nodes = self.step.nodes
        return made


def _has_slots(nest: Any) -> bool:
    return isinstance(nest, Slot) or (isinstance(nest, (list, tuple)) and any(map(_has_slots, nest)))
