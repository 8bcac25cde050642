"""Loops in compiled programs: a loop is one step, a call whose results are the arrays that it writes to.

What stands before and after it may be done in it (`programs/passes/loops.py`): an argument has then several
arrays, those of which it is computed, and of which its results are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.lending import READ, WRITTEN, family_in_memory
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.formulas import FORMS, ROW, Formula, Fused
from mirabelle.arraytypes.meshdata.localkernels import LocalKernel
from mirabelle.arraytypes.meshdata.loops import Bound, lead_of, run_loop
from mirabelle.arraytypes.programs.effects import written_outside
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


class LoopKernel(Kernel):
    """A loop in the place of a kernel: what a launch of it records runs the loop where the program runs."""

    # What may be done in it.
    forms = FORMS

    def __init__(
        self,
        local: LocalKernel,
        bound: Sequence[Bound],
        atomics: bool,
        owners: bool = False,
    ) -> None:
        super().__init__(local.python)
        self.__name__ = local.name
        self.local = local
        # What is known of the arguments without their arrays, which are given anew for each run.
        self.bound = list(bound)
        self.atomics = atomics
        # Do entries take what points contribute to them, once all have run?
        self.owners = owners
        # The arrays of each argument, and where among all of them its own begin.
        self.names = [names_of(b) for b in bound]
        self.first = [0, *itertools.accumulate(map(len, self.names))]
        effects = {
            name: WRITTEN if b.intent.writes and i == 0 else READ
            for b, names in zip(bound, self.names, strict=True)
            for i, name in enumerate(names)
        }
        self._source = SimpleNamespace(
            parameters=list(effects), effects=effects, name=local.name, may_raise=True
        )

    def launcher_of(self, family: Any) -> Any:
        def run(_: Kernel, shape: tuple[int, ...], __: Any, arguments: list[Any]) -> None:
            # (Memory of the program is written in place, whoever else knows it.)
            arrays = [
                wrap(family, Leaf(x, True)) if hasattr(x, "strides") and len(x.shape) else x for x in arguments
            ]
            given = []
            for b, first, names in zip(self.bound, self.first, self.names, strict=False):
                own = 0 if b.fused is not None and not b.intent.writes else 1
                array = arrays[first] if own else None
                given.append(b.fused_with(b.fused, array, arrays[first + own : first + len(names)]))
            run_loop(lead_of(self.local, given), self.local, shape[0], given, self.atomics)

        return run

    # What is done in it

    def often(self, k: int, n: int) -> int:
        """How many elements of an argument n points read; 0 if they are the same for all."""
        b = self.bound[k]
        return 0 if b.whole else n * int(np.prod(b.row_shape)) * (b.dofs.arity if b.dofs is not None else 1)

    def finishes(self, k: int) -> bool:
        """Is each entry of an argument written once, so that what becomes of it can be done there?"""
        b = self.bound[k]
        if b.whole or b.intent is Intent.RW:
            return False
        if b.dofs is None:
            return True
        return self.owners and not self.atomics and b.intent.combines is not None and not b.dofs.strides

    def joined_with(self, parts: Mapping[int, tuple[np.dtype, Any, Any]]) -> LoopKernel:
        """The same loop with formulas: for some arguments the dtype that the loop sees, and what is before and
        after it."""
        bound = list(self.bound)
        for k, (dtype, before, after) in parts.items():
            b = bound[k]
            how = "table" if b.dofs is not None else "direct"
            if b.whole:
                how = "whole" if b.row_shape else "number"
            first = None if before is None else Formula(*before)
            if first is None and b.intent.combines is not None:
                first = Formula((("copy", (-1,), (dtype,), dtype),), ((ROW, dtype),))
            fused = Fused(how, dtype, first, None if after is None else Formula(*after))
            bound[k] = b.fused_with(fused, None, ())
        return LoopKernel(self.local, bound, self.atomics, self.owners)


def names_of(b: Bound) -> list[str]:
    """The names of all arrays of an argument."""
    more = b.fused.names(b.name) if b.fused is not None else []
    return more if b.fused is not None and not b.intent.writes else [b.name, *more]


@run_loop.method
def _(lead: Traced, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    """Record the loop: what it writes are values of the arrays from here on."""
    family: Any = type(lead).family
    for b in bound:
        if b.intent.writes and not isinstance(root_of(b.array), Traced):
            raise written_outside(b.array)
    arrays = [
        verbs.adapt(family, b.array)
        if isinstance(b.array, (AbstractArray, np.ndarray)) and family_in_memory(type(b.array)) is not family
        else b.array
        for b in bound
    ]
    owners = not issubclass(family.inner, HostArray)
    made = [b.with_array(b.name, b.intent, None) for b in bound]
    LoopKernel(kernel, made, atomics, owners)[n](*arrays)
