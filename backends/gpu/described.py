"""What `mb.explain` says of a statement on a card: the kernels' source, grids and blocks.

The statement is planned as always, for a card that only takes notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.gpu.driver import Driver, Launcher
from mirabelle.backends.gpu.reduce import planned
from mirabelle.backends.gpu.run import make_plan
from mirabelle.backends.host.described import described
from mirabelle.dispatch.tree import Reduced


class _Notes(Driver):
    """A card that notes what it is given."""

    def __init__(self) -> None:
        self.sources: list[KernelText] = []
        self.launches: list[str] = []

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Any:
        self.sources.append(source)
        return source

    def launcher(
        self,
        kernel: Any,
        codes: tuple[str, ...],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        fixed: tuple[int, ...],
    ) -> Launcher:
        blocks, threads = (" x ".join(str(n) for n in x if n != 1) or "1" for x in (grid, block))
        self.launches.append(f"{kernel.name}: {blocks} blocks of {threads} threads")
        return lambda *_: None

    def driver(self) -> Driver:
        """As a family is asked for its driver."""
        return self


@described.method
def _(
    family: type[GPUArray],
    program: Program,
    shape: tuple[int, ...],
    folds: Sequence[Reduced],
    axes: tuple[int, ...],
    outs: list[Any],
    views: list[Any],
    shared: bool | None = None,
) -> tuple[str, str]:
    notes: Any = _Notes()
    kept = dict(program.plans)
    try:
        if folds:
            if any(f.reduction.scalar is None and f.reduction.neutral(f.dtype) is None for f in folds):
                return "a routine of the card's library (no value is neutral here)", ""
            planned(notes, program, shape, axes, list(folds), [*outs, *views], len(folds), 0)
        elif outs[0].size:
            aligned = not any(v.ptr & 15 for v in views)
            make_plan(notes, program, [*outs, *views], len(outs), aligned)
    finally:
        program.plans = kept
    return "; then ".join(notes.launches), "\n".join(dict.fromkeys(s.text for s in notes.sources))
