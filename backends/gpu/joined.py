"""Kernels of unlike sizes as one launch (see `programs/joining.py` and `codegen/joinedframe.py`)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from mirabelle.backends.codegen.gridframe import GridLayout, grid_source
from mirabelle.backends.codegen.joinedframe import joined_source
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.gpu.compiler import compiled_names
from mirabelle.backends.gpu.run import geometry, grid_layout

# Bytes of parameters that a kernel takes, everywhere.
PARAMETERS = 4096


def together(programs: Sequence[Program], operands: Sequence[Sequence[Any]]) -> tuple[list[int], list[int]]:
    """The numbers of members that one grid can go over, equal programs one after the other, and of the rest
    (tiles in shared memory, sizes of 64 bits)."""
    hows = [_layout(p, views)[0] for p, views in zip(programs, operands, strict=True)]
    fit = [i for i, how in enumerate(hows) if how.frame != "tiles" and not how.wide]
    first: dict[Any, int] = {}
    for i in fit:
        first.setdefault((id(programs[i]), hows[i].frame, hows[i].rank, hows[i].classes), i)
    fit.sort(key=lambda i: first[id(programs[i]), hows[i].frame, hows[i].rank, hows[i].classes])
    return fit, [i for i in range(len(hows)) if i not in fit]


def _layout(program: Program, views: Sequence[Any]) -> tuple[GridLayout, list[int], list[list[int]]]:
    aligned = not any(v.ptr & 15 for v in views)
    return grid_layout(program, views, len(program.outs), aligned)


def joined_plan(family: Any, programs: Sequence[Program], operands: Sequence[Sequence[Any]]) -> Any:
    """A launch of members that go `together`, as a function of all their addresses and then all their scalars;
    None where these are too many."""
    layouts = [_layout(p, views) for p, views in zip(programs, operands, strict=True)]
    hows = [how for how, _, _ in layouts]
    if len({(how.frame, how.lanes, how.gap) for how in hows}) > 1:
        # (The smaller ones have no elements for as many lanes as the larger ones.)
        hows = [dataclasses.replace(how, lanes=1, gap=1) for how in hows]
    shapes = [(sizes, strides) for _, sizes, strides in layouts]
    rows = [how.frame == "rows" for how in hows]
    found = [geometry(how, *shape) for how, shape in zip(hows, shapes, strict=True)]
    across = max([block[0] for (_, _, block), row in zip(found, rows, strict=True) if row], default=1)
    laid = [geometry(how, *shape, across) for how, shape in zip(hows, shapes, strict=True)]
    block = next((block for (_, _, block), row in zip(laid, rows, strict=True) if row), laid[0][2])
    sources = [grid_source(p, how) for p, how in zip(programs, hows, strict=True)]
    told = [(s, len(views), len(f)) for s, views, (f, _, _) in zip(sources, operands, laid, strict=True)]
    source = joined_source(told, [any(rows) and not row for row in rows])
    if 8 * len(source.codes) > PARAMETERS:
        return None
    driver = family.driver()
    key = "joined", family, source.text
    kernel = programs[0].plans.get(key)
    if kernel is None:
        kernel = programs[0].plans[key] = driver.load(source, compiled_names(source.functions))
    firsts = list(itertools.accumulate([grid[0] for _, grid, _ in laid]))
    fixed = [n for numbers, _, _ in laid for n in numbers] + firsts[:-1]
    grid = firsts[-1], max([g[1] for _, g, _ in laid]), 1
    return driver.launcher(kernel, source.codes, grid, block, tuple(fixed))
