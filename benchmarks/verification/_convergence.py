"""Errors of an example by order, cell type and refinement, and the rates at which they fall."""

from __future__ import annotations

import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TOLERANCE = 0.3
# Errors as small as this are those of rounding, and say nothing about rates.
ROUNDING = 1e-12
# The order of the time integration of `dg.solve`.
TIME_ORDER = 4

# Refinements by order; or the same for all orders.
Cells = Sequence[int] | Mapping[int, Sequence[int]]


@dataclass
class Table:
    """Errors of one cell type and order, from coarse to fine."""

    cell: str
    order: int
    expected: float
    cells: list[int] = field(default_factory=list)
    unknowns: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    l2: dict[str, list[float]] = field(default_factory=dict)
    linf: dict[str, list[float]] = field(default_factory=dict)
    failed: str = ""

    def add(self, cells: int, solution: Any, errors: Mapping[str, Any], seconds: float) -> None:
        self.cells.append(cells)
        self.unknowns.append(solution.semi.unknowns)
        self.steps.append(solution.steps)
        self.seconds.append(seconds)
        for name, error in errors.items():
            self.l2.setdefault(name, []).append(error.l2)
            self.linf.setdefault(name, []).append(error.linf)

    def rates(self, of: Mapping[str, Sequence[float]] | None = None) -> dict[str, list[float | None]]:
        """Between neighbouring refinements, by field; None where errors are those of rounding.

        >>> Table("line", 1, 2.0, cells=[4, 8], l2={"u": [4e-2, 1e-2]}).rates()
        {'u': [2.0]}
        """
        made: dict[str, list[float | None]] = {}
        for name, errors in (self.l2 if of is None else of).items():
            pairs = zip(errors[:-1], errors[1:], self.cells[:-1], self.cells[1:], strict=True)
            made[name] = [rate(*pair) for pair in pairs]
        return made

    @property
    def rate(self) -> float | None:
        """The lowest over the fields of their last rates of L2 errors; None if there is none."""
        last = [next((r for r in reversed(of) if r is not None), None) for of in self.rates().values()]
        return min((r for r in last if r is not None), default=None)

    @property
    def met(self) -> bool:
        """Whether no field's errors fall more slowly than they should."""
        if self.failed:
            return False
        small = [e < ROUNDING for errors in self.l2.values() for e in errors[1:]]
        return all(small) if self.rate is None else self.rate >= self.expected - TOLERANCE

    def as_json(self) -> dict[str, Any]:
        return {
            "cell": self.cell,
            "order": self.order,
            "expected": self.expected,
            "met": self.met,
            "rate_minus_expected": None if self.rate is None else self.rate - self.expected,
            "cells": self.cells,
            "unknowns": self.unknowns,
            "steps": self.steps,
            "seconds": [round(s, 3) for s in self.seconds],
            "l2": self.l2,
            "linf": self.linf,
            "rates": self.rates(),
            "rates_linf": self.rates(self.linf),
            **({"failed": self.failed} if self.failed else {}),
        }

    def __str__(self) -> str:
        """The table of L2 errors and their rates."""
        head = ["cells", "unknowns", "steps", *[c for name in self.l2 for c in (name, "rate")]]
        rates = self.rates()
        rows = [head]
        for i, cells in enumerate(self.cells):
            row = [str(cells), str(self.unknowns[i]), str(self.steps[i])]
            for name, errors in self.l2.items():
                found = rates[name][i - 1] if i else None
                row += [f"{errors[i]:.3e}", "-" if found is None else f"{found:.2f}"]
            rows.append(row)
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
        verdict = "met" if self.met else f"NOT MET {self.failed}".rstrip()
        title = f"{self.cell}, order {self.order}: expected rate {self.expected:g}, {verdict}"
        return "\n".join([title, *lines, ""])


def rate(coarse: float, fine: float, fewer: int, more: int) -> float | None:
    """The power of the cells' size with which an error falls.

    >>> rate(8e-3, 1e-3, 10, 20)
    3.0
    """
    if not (fine > ROUNDING and coarse > ROUNDING):
        return None
    return round(math.log(coarse / fine) / math.log(more / fewer), 12)


def convergence(
    example: Any,
    orders: Sequence[int],
    cells: Cells,
    cell_types: Sequence[str | None] = (None,),
    *,
    array: Any = None,
    expected: Callable[[int], float] = lambda order: order + 1.0,
    end_time: float | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Table]:
    """Tables of an example, one for each cell type and order, as they are found.

    `example` is a module of `mirabelle.dg.examples`, its name, or anything with their `setup`, whose initial
    state is the exact solution as a function of (x, t). `cells` are the refinements, or a dictionary of them by
    order. Time steps are shortened so that they fall as errors in space do. `parameters` are handed to `setup`.

    >>> from types import SimpleNamespace
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> def exact(x, t): return (mb.sin(2 * mb.pi * (x[0] - t)),)
    >>> def setup(order, cells, array=mb.HostArray):
    ...     mesh = dg.box(cells, periodic=True)
    ...     semi = dg.Semidiscretization(mesh, dg.Advection((1.0,)), dg.Solver(order), array=array)
    ...     return semi, exact, (0.0, 0.1), {"cfl": 0.5}
    >>> [table] = convergence(SimpleNamespace(setup=setup), [2], [4, 8])
    >>> table.met, round(table.rate)
    (True, 3)
    """
    import mirabelle as mb
    from mirabelle import dg

    module = (
        importlib.import_module(f"mirabelle.dg.examples.{example}") if isinstance(example, str) else example
    )
    known = inspect.signature(module.setup).parameters
    for cell in cell_types:
        for order in orders:
            refinements = cells[order] if isinstance(cells, Mapping) else cells
            table = Table(cell or "", order, expected(order))
            for n in refinements:
                given: dict[str, Any] = {
                    "order": order,
                    "cells": n,
                    "array": array or mb.HostArray,
                    **(parameters or {}),
                }
                if cell is not None:
                    given["cell"] = cell
                if missing := sorted(set(given) - set(known)):
                    raise TypeError(
                        f"setup of {example!r} has no parameter {missing[0]!r}; it has {', '.join(known)}."
                    )
                start = time.perf_counter()
                try:
                    semi, initial, tspan, options = module.setup(**given)
                    if end_time is not None:
                        tspan = (tspan[0], end_time)
                    options = shortened(dict(options), table.expected, n / refinements[0])
                    solution = dg.solve(semi, tspan, initial, **options)
                    table.cell = table.cell or semi.mesh.cell
                    table.add(n, solution, solution.errors(initial), time.perf_counter() - start)
                except Exception as error:
                    table.failed = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                    break
            yield table


def shortened(options: dict[str, Any], rate: float, refined: float) -> dict[str, Any]:
    """Options of `dg.solve` with time steps whose errors fall at least as fast as those in space.

    >>> shortened({"cfl": 0.5}, 6.0, 2.0)["cfl"] == 0.5 * 2 ** (1 - 6 / 4)
    True
    """
    options["callbacks"] = ()
    if "cfl" in options:
        options["cfl"] *= refined ** min(0.0, 1 - rate / TIME_ORDER)
    elif "dt" in options:
        options["dt"] *= refined ** -max(1.0, rate / TIME_ORDER)
    return options
