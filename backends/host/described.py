"""What `mb.explain` says of a kernel: how it runs, in words, and its source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.reduceframe import range_source
from mirabelle.backends.codegen.source import Layout, compilable
from mirabelle.backends.host import kernels, layout
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.settings import settings


@by_type
def described(
    family: Any,
    program: Program,
    shape: tuple[int, ...],
    folds: Sequence[Any],
    axes: tuple[int, ...],
    outs: list[Any],
    views: list[Any],
    shared: bool | None = None,
) -> Any:
    """How a kernel runs, in words, and its source; of reductions (`folds`) over `axes`, too.

    In a step of a compiled program it is known whether results are stored where operands lie (`shared`).
    """


@described.method
def _(
    family: type[DenseArray],
    program: Program,
    shape: tuple[int, ...],
    folds: Sequence[Any],
    axes: tuple[int, ...],
    outs: list[Any],
    views: list[Any],
    shared: bool | None = None,
) -> tuple[str, str]:
    neutral = all(f.reduction.scalar is None and f.reduction.neutral(f.dtype) is not None for f in folds)
    if not neutral or not compilable(program):
        return "NumPy on blocks (no compiled form for these dtypes)", ""
    if folds:
        r = layout.arrange_reduction(shape, axes, views)
        how = Layout(
            len(r.sizes), "c" * len(folds), r.classes, inner_kept=r.inner_kept, reduce_rank=len(r.reduced),
            reduce=tuple([f.reduction.ufunc.__name__ for f in folds]),
        )  # fmt: skip
    else:
        count = len(outs)
        operands = [*outs, *views]
        alone = shared is None
        a = layout.arrange_rows(shape, operands, count)[0] if alone else layout.arrange(shape, operands)
        how = Layout(len(a.sizes), a.classes[:count], a.classes[count:], a.tiled, shared=bool(shared))
    source = range_source(program, how)
    known, n = kernels.known(source), math.prod(shape)
    said = (
        "NumPy on the whole operands: it is small" if n <= settings.small_size
        else f"a compiled kernel ({known})" if known == "in memory"
        else "NumPy on cache-sized blocks, because its kernel does not compile" if known == "does not compile"
        else "NumPy on cache-sized blocks, until it is used often" if n < settings.compile_size
        else "NumPy on cache-sized blocks, while the kernel compiles"
    )  # fmt: skip
    return said, source.text
