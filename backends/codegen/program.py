"""Kernel programs: what a request computes, apart from sizes, strides and addresses.

A program is made once for each structure of a tree (operations, dtypes, what is shared, what
is stored) and is what plans and generated sources are cached on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.dispatch.ops import forgetting
from mirabelle.dispatch.promotion import Sig
from mirabelle.dispatch.schedule import SCALAR, Request


class Program:
    """Steps in order over leaves and scalars, and which of their values are results.

    A reference is a step's number, `-1 - leaf`, or `SCALAR + scalar`. A scalar has the dtype
    its step works in.
    """

    __slots__ = (
        "cost",
        "leaf_dtypes",
        "name",
        "out_dtypes",
        "outs",
        "places",
        "plans",
        "scalar_slots",
        "steps",
        "uses",
    )

    def __init__(
        self,
        steps: tuple[tuple[Any, ...], ...],
        outs: tuple[int, ...],
        leaf_dtypes: tuple[np.dtype, ...],
        out_dtypes: tuple[np.dtype, ...],
    ) -> None:
        self.steps: list[tuple[Sig, tuple[int, ...]]] = [(step[0], tuple(step[1:])) for step in steps]
        self.outs = outs
        self.leaf_dtypes = leaf_dtypes
        self.out_dtypes = out_dtypes
        # What each step's scalars become: one slot for each (scalar, dtype it is used in).
        slots: dict[tuple[int, np.dtype], int] = {}
        for sig, refs in self.steps:
            for ref, dtype in zip(refs, sig.ins, strict=True):
                if ref >= SCALAR:
                    slots.setdefault((ref - SCALAR, dtype), len(slots))
        self.scalar_slots = slots
        # The leaves of which nothing is read but where their elements lie.
        self.places = frozenset([-1 - refs[0] for sig, refs in self.steps if sig.op.name == "place"])
        self.cost = sum(sig.cost for sig, _ in self.steps) or 1
        self.name = "_".join(sig.op.name for sig, _ in self.steps)[:60] or "copy"
        # Each backend keeps here what it made of the program.
        self.plans: dict[Any, Any] = {}
        self.uses = 0

    def keep(self, how: tuple[Any, ...], plan: Any) -> None:
        """Keep the plan of a launch on operands of one layout; not too many of them."""
        if len(self.plans) > 256:
            self.plans = {k: v for k, v in list(self.plans.items()) if not isinstance(k, tuple)}
        self.plans[how] = plan

    def dtype_of(self, ref: int) -> np.dtype:
        """The dtype of a leaf's or step's reference."""
        if ref < 0:
            return self.leaf_dtypes[-1 - ref]
        return self.steps[ref][0].out

    def bytes_read(self, views: list[Any]) -> int:
        """How many bytes of its leaves a launch reads."""
        return sum([v.nbytes for j, v in enumerate(views) if j not in self.places])

    @property
    def user_functions(self) -> list[Any]:
        """The operations that only a compiler can run: scalar functions given by a user."""
        return [sig.op for sig, _ in self.steps if is_user_function(sig.op)]

    def signature(self) -> str:
        """A text that two programs share exactly if they compute the same."""
        parts = [",".join(d.str for d in self.leaf_dtypes)]
        for sig, refs in self.steps:
            parts.append(f"{sig.op.name}:{','.join(d.str for d in sig.ins)}:{refs}")
        parts.append(f"{self.outs}:{','.join(d.str for d in self.out_dtypes)}")
        return ";".join(parts)


def is_user_function(op: Any) -> bool:
    from mirabelle.dispatch.ops import TABLE

    return op.scalar is not None and TABLE.get(op.name) is not op


_programs: dict[Any, Program] = {}


def _forget() -> None:
    """Drop the programs of operations that were forgotten."""
    for key, program in list(_programs.items()):
        if any(sig.op.forgotten for sig, _ in program.steps):
            _programs.pop(key, None)


forgetting.append(_forget)


def program_for(request: Request, out_dtypes: tuple[np.dtype, ...]) -> Program:
    """The program of a request's structure."""
    key = (
        request.key,
        tuple([leaf.dtype.num for leaf in request.leaves]),
        tuple([d.num for d in out_dtypes]),
    )
    program = _programs.get(key)
    if program is None:
        steps, outs = request.key
        program = _programs[key] = Program(
            steps,
            outs,
            tuple(leaf.dtype for leaf in request.leaves),
            out_dtypes,
        )
        if len(_programs) > 4096:
            # Programs of user functions made anew in a loop must not pile up for ever.
            for old in list(_programs)[:1024]:
                del _programs[old]
    return program
