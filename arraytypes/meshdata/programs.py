"""Loops in compiled programs: a loop is one step, a call whose results are the arrays that it writes to."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.lending import READ, WRITTEN, family_in_memory
from mirabelle.arraytypes.meshdata.localkernels import LocalKernel
from mirabelle.arraytypes.meshdata.loops import Bound, lead_of, run_loop
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


class LoopKernel(Kernel):
    """A loop in the place of a kernel: what a launch of it records runs the loop where the program runs."""

    def __init__(self, local: LocalKernel, bound: Sequence[Bound], atomics: bool) -> None:
        super().__init__(local.python)
        self.__name__ = local.name
        self.local = local
        # What is known of the arguments without their arrays, which are given anew for each run.
        self.bound = [b.with_array(b.name, b.intent, None) for b in bound]
        self.atomics = atomics
        effects = {b.name: WRITTEN if b.intent.writes else READ for b in bound}
        self._source = SimpleNamespace(
            parameters=list(effects), effects=effects, name=local.name, may_raise=True
        )

    def launcher_of(self, family: Any) -> Any:
        def run(_: Kernel, shape: tuple[int, ...], __: Any, arguments: list[Any]) -> None:
            # (Memory of the program is written in place, whoever else knows it.)
            arrays = [
                wrap(family, Leaf(x, True)) if hasattr(x, "strides") and len(x.shape) else x for x in arguments
            ]
            given = [b.with_array(b.name, b.intent, x) for b, x in zip(self.bound, arrays, strict=True)]
            run_loop(lead_of(self.local, given), self.local, shape[0], given, self.atomics)

        return run


@run_loop.method
def _(lead: Traced, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    """Record the loop: what it writes are values of the arrays from here on."""
    family = type(lead).family
    arrays = [
        verbs.adapt(family, b.array)
        if isinstance(b.array, (AbstractArray, np.ndarray)) and family_in_memory(type(b.array)) is not family
        else b.array
        for b in bound
    ]
    LoopKernel(kernel, bound, atomics)[n](*arrays)
