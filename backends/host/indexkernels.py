"""Index-space kernels on the host: groups over threads, compiled by Numba."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import Kernel, diverged, launcher, out_of_range
from mirabelle.backends.host import threads
from mirabelle.dispatch import syntax
from mirabelle.dispatch.settings import settings


@launcher(HostArray)
def launch(kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]) -> None:
    """Run a kernel over an index space: its groups on several threads, a group's threads in turn."""
    run = compiled(kernel, len(shape), arguments)
    if not kernel.source.grouped:
        group = _rows(shape)
    count = math.prod([-(-n // g) for n, g in zip(shape, group, strict=True)])
    # A thread of a kernel does more than one element of an elementwise operation, as a rule.
    if settings.num_threads < 2 or count < 2 or math.prod(shape) < settings.thread_size >> 4:
        run(0, count, *shape, *group, *arguments)
        return
    pieces = min(count, settings.num_threads * 8)
    edges = [count * i // pieces for i in range(pieces + 1)]
    run(0, 0, *shape, *group, *arguments)  # compiled once, not by each thread
    threads.run_all(
        [functools.partial(run, a, b, *shape, *group, *arguments) for a, b in itertools.pairwise(edges)]
    )


def compiled(kernel: Kernel, ndim: int, arguments: list[Any]) -> _Compiled:
    """A kernel as a function of ranges of groups, for arguments of these kinds."""
    key = (ndim, *map(_kind, arguments))
    run: Any = kernel.compiled.get(key)
    if run is None:
        with syntax.lock:
            run = kernel.compiled.get(key) or kernel.compiled.setdefault(
                key, _Compiled(kernel, ndim, arguments)
            )
    return run  # type: ignore[no-any-return]


def _kind(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_kind, x))
    return (x.dtype, x.ndim) if isinstance(x, np.ndarray) else type(x)


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Groups for a kernel to which they make no difference: long in the last dimension."""
    group: list[int] = []
    room = 4096
    for n in reversed(shape):
        group.append(max(1, min(n, room)))
        room //= group[-1]
    return tuple(reversed(group))


class _Compiled:
    """A kernel for arguments of certain kinds: called with a range of groups, sizes and arguments."""

    def __init__(self, kernel: Kernel, ndim: int, arguments: list[Any]) -> None:
        from mirabelle.backends.codegen.groupframe import GroupFrame
        from mirabelle.backends.host import elements, scalarloops

        self.kernel = kernel
        self.arguments = len(arguments)
        named = dict(zip(kernel.source.parameters, arguments, strict=True))
        sizes = [1] * (2 + 2 * ndim)

        def types_of(probe: Any, variables: list[str]) -> dict[str, np.dtype | None]:
            try:
                return scalarloops.number_types(probe, [*sizes, *arguments], variables)
            except Exception as e:
                raise scalarloops.explained(e, kernel, arguments) or e from None

        frame = GroupFrame(
            kernel.source,
            ndim,
            {n for n, x in named.items() if isinstance(x, np.ndarray)},
            {n for n, x in named.items() if isinstance(x, tuple)},
            elements.names(),
            types_of,
            padded=kernel.padded,
            checked=kernel.boundscheck,
        )
        self.dispatcher = scalarloops.engine(frame.function(), {})
        self.sites = frame.names.sites

    def __call__(self, *args: Any) -> None:
        try:
            line = self.dispatcher(*args)
        except IndexError as e:
            if len(e.args) < 5:
                raise
            site, axis, index, size, *thread = e.args
            name, line, leading = self.sites[site]
            raise out_of_range(self.kernel, name, axis - leading, index, size, thread, line) from None
        except Exception as e:
            from mirabelle.backends.host import scalarloops

            better = scalarloops.explained(e, self.kernel, args[len(args) - self.arguments :])
            if better is None:
                raise
            raise better from None
        if line:
            raise diverged(self.kernel, line)
