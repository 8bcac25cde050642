"""Standard problems, each a complete short script: `python -m mirabelle.dg.examples.sod`.

Each has `setup(...)`, which returns a semidiscretization, the initial state, the span of time and options of
`dg.solve`, and `run(...)`, which solves it. Where the solution is known, `exact(x, t)` is it; what else it
takes are parameters of `setup`.

>>> from mirabelle.dg.examples import advection
>>> solution = advection.run(order=4, cells=8, cell="line", end=0.1)
>>> solution.errors(advection.exact)["u"].l2 < 1e-4
True
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from mirabelle import dg
from mirabelle.dg.spelled import Fields as Fields
from mirabelle.dg.spelled import Flux as Flux

Time: TypeAlias = Any  # a number, or an array without axes
Arrays: TypeAlias = Callable[..., Any]
Cells: TypeAlias = int | tuple[int, ...]
Problem: TypeAlias = tuple[dg.Semidiscretization, Callable[..., Fields], tuple[float, float], dict[str, Any]]


def solving(setup: Callable[..., Problem]) -> Callable[..., dg.Solution]:
    """A function that solves what `setup` returns.

    >>> from mirabelle.dg.examples import advection
    >>> solving(advection.setup)(cells=(2, 2), order=1, end=0.1)
    Solution at t = 0.1 after 1 steps
    """

    def run(callbacks: Any = (), **parameters: Any) -> dg.Solution:
        """Solve the problem; `parameters` are those of `setup`."""
        semi, initial, tspan, options = setup(**parameters)
        return dg.solve(semi, tspan, initial, callbacks=callbacks, **options)

    return run


def report(solution: dg.Solution, field: Any, exact: Any = None, path: str = "", **style: Any) -> None:
    """Print what was computed, with the errors if the exact solution is known, and write a picture.

    >>> import contextlib, io, tempfile
    >>> from mirabelle.dg.examples import advection
    >>> solution = advection.run(order=2, cells=4, cell="line", end=0.1)
    >>> with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as shown:
    ...     report(solution, "u", advection.exact, f"{folder}/wave.png")
    >>> "u: Errors(l2=" in shown.getvalue(), "wave.png" in shown.getvalue()
    (True, True)
    """
    print(solution.semi, solution.summary(), sep="\n")
    for name, errors in solution.errors(exact).items() if exact else ():
        print(f"{name}: {errors}")
    solution.plot(field, **style).figure.savefig(path or f"{field}.png", dpi=150)
    print(Path(path or f"{field}.png").resolve())
