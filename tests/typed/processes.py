"""Arrays over processes, and functions compiled beforehand, as users write them."""

from pathlib import Path
from typing import assert_type

import mirabelle as mb
from mirabelle import compiling


def spread() -> None:
    x = mb.arange(1e6, device=mb.DArray[mb.HostArray])
    rows = mb.distributed.Layout(mb.distributed.Block(0))
    assert_type(x.layout, mb.distributed.Layout)
    assert_type(mb.distributed.redistribute(x, rows), mb.AbstractArray)
    assert_type(x.local, mb.AbstractArray)
    assert_type(mb.distributed.communicator().rank, int)
    assert_type(float(mb.norm(x)), float)


@mb.compile
def step(u: mb.AbstractArray, n: int) -> mb.AbstractArray:
    return mb.fori_loop(0, n, lambda i, v: v + mb.sin(v) / (i + 1), u)


def built() -> None:
    x = mb.linspace(0, 1, 100)
    library = compiling.build(step.program(x, 3), name="step")
    assert_type(library.path, Path)

    def energy(v: mb.AbstractArray) -> mb.AbstractArray:
        return mb.sum(v * v)

    assert_type(mb.autodiff.value_and_gradient(energy, x), tuple[mb.AbstractArray, mb.AbstractArray])
    assert_type(mb.autodiff.jvp(energy, (x,), (x,)), tuple[mb.AbstractArray, mb.AbstractArray])
