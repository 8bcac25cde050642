"""What a kernel is: a NumPy program, the inputs it takes, and the arrays that count as its result."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.jit import Jitted

KERNELS: dict[str, Kernel] = {}


@dataclass(frozen=True)
class Kernel:
    """One program and what it is run on.

    `make(rng, **size)` gives the arguments in order: NumPy arrays, numbers and tuples of numbers.
    `writes` names the arguments that the program changes; they are results like those it returns.
    """

    name: str
    program: Callable[..., Any]
    make: Callable[..., Sequence[Any]]
    # Where NumPy takes 20 ms to 2 s, and where a test is quick even on the reference device.
    size: Mapping[str, int]
    tiny: Mapping[str, int]
    writes: tuple[str, ...] = ()
    rtol: float = 1e-10
    # A function of arrays that changes none of them: JAX compiles the same text.
    jax: bool = False
    # Array statements that one run executes, where the cost of a single one is of interest.
    statements: Callable[..., int] | None = None

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The program as Python runs it: neither it nor a function that it calls is compiled."""
        python: Any = getattr(self.program, "python", self.program)
        scope = dict(python.__globals__)
        for name, value in scope.items():
            if isinstance(value, Jitted):
                scope[name] = types.FunctionType(value.python.__code__, scope, name)
        return types.FunctionType(python.__code__, scope, self.name)

    @property
    def jitted(self) -> bool:
        """Does it loop over elements under mb.jit: it, or a function that it calls?"""
        if isinstance(self.program, Jitted):
            return True
        scope: Any = self.program.__globals__
        called = {i.argval for i in dis.get_instructions(self.program) if i.opname == "LOAD_GLOBAL"}
        return any(isinstance(scope.get(name), Jitted) for name in called)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters' names, without that for the namespace."""
        return tuple(n for n in inspect.signature(self.plain).parameters if n != "xp")

    @functools.cached_property
    def takes_namespace(self) -> bool:
        return "xp" in inspect.signature(self.plain).parameters

    def inputs(self, size: Mapping[str, int]) -> tuple[Any, ...]:
        """The arguments of this size, always the same."""
        return tuple(self.make(np.random.default_rng(42), **size))

    def run(self, program: Callable[..., Any], xp: Any, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Call a form of the program; what it returned, then the arguments it wrote to."""
        returned = program(xp, *arguments) if self.takes_namespace else program(*arguments)
        if returned is None:
            returned = ()
        elif not isinstance(returned, tuple):
            returned = (returned,)
        return (*returned, *[arguments[self.parameters.index(n)] for n in self.writes])


def kernel(
    make: Callable[..., Sequence[Any]],
    *,
    size: Mapping[str, int],
    tiny: Mapping[str, int],
    **traits: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated program under its own name."""

    def register(program: Callable[..., Any]) -> Callable[..., Any]:
        name = program.__name__
        assert name not in KERNELS, f"there are two kernels {name}"
        KERNELS[name] = Kernel(name, program, make, size, tiny, **traits)
        return program

    return register


def convert(arguments: Sequence[Any], make: Callable[[np.ndarray], Any]) -> list[Any]:
    """The arguments with every array made anew by `make`."""
    return [make(x) if isinstance(x, np.ndarray) else x for x in arguments]
