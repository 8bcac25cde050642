"""Snapshots: a simulation in an HDF5 file, to the last bit, so that a later run goes on as if nothing had been.

A file has the state, the mesh, and a header (JSON) with the time, the counters, what the control of the step
size remembers, the element and the equations: all it takes to draw it, and to see whether a run may go on.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg.elements import element
from mirabelle.dg.equations import Equations
from mirabelle.dg.meshes import Mesh
from mirabelle.dg.spelled import File, Semidiscretization
from mirabelle.dg.time.solution import Solution

FORMAT = "mirabelle.dg snapshot 1"
# The numbers and texts of a solution. Methods are given anew, timers count anew.
COUNTERS = {f.name for f in dataclasses.fields(Solution)} - {"semi", "u", "method", "timers", "told"}
ARRAYS = [f.name for f in dataclasses.fields(Mesh) if f.name not in ("cell", "order", "boundaries")]


def save(solution: Solution, path: File) -> Path:
    """Write a snapshot, which replaces an older one when it is whole.

    Parameters
    ----------
    solution : Solution
        What is written.
    path : str or path
        The file: HDF5, or `.npz` or `.zarr` by its name.

    Returns
    -------
    pathlib.Path
        `path`.

    Examples
    --------
    >>> import tempfile
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(2, periodic=True), dg.Advection((1.0,)), dg.Solver(3))
    >>> solution = dg.Solution(semi, semi.state(lambda x, t: (x[0],)), t=0.5, steps=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.load(dg.save(solution, f"{folder}/a.h5"), semi)
    Solution at t = 0.5 after 7 steps
    """
    semi: Any = solution.semi
    path, equations, e = named(path), semi.equations, semi.element
    if hasattr(semi, "stored"):  # (of a divided mesh each process writes its part)
        mesh, arrays = semi.cells, semi.stored()
    else:
        mesh = semi.mesh
        arrays = {f"mesh/{name}": getattr(mesh, name) for name in ARRAYS}
        arrays |= {f"boundaries/{name}": np.stack(pair) for name, pair in mesh.boundaries.items()}
    header = {
        "format": FORMAT,
        "solution": {name: getattr(solution, name) for name in sorted(COUNTERS)},
        "mesh": [semi.fingerprint, mesh.cell, mesh.order],
        "element": [e.cell, e.order, e.kind_of_nodes],
        "equations": repr(equations),
        "class": [type(equations).__module__, type(equations).__qualname__],
        "parameters": {f.name: getattr(equations, f.name) for f in dataclasses.fields(equations) if f.init},
    }
    text = np.frombuffer(json.dumps(header, default=repr).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    mb.save(path, {"u": solution.u, "header": text, **arrays})
    return path


def named(path: Any) -> Path:
    """The path of a snapshot, of which the ending says how it is written.

    >>> named("run")
    Traceback (most recent call last):
        ...
    ValueError: Snapshots are files .h5, .npz or .zarr, and 'run' is none. Name it so: "run.h5".
    """
    path = Path(path)
    if path.suffix not in (".h5", ".hdf5", ".npz", ".zarr"):
        raise ValueError(
            f"Snapshots are files .h5, .npz or .zarr, and {str(path)!r} is none. Name it so: "
            f'"{path.with_suffix(".h5")}".'
        )
    return path


def load(path: str | Path, semi: Semidiscretization | None = None) -> Solution:
    """The solution in a file, for `semi` to go on with: `dg.solve(semi, t_end, dg.load(path, semi), ...)`.

    Without a semidiscretization it can be looked at: plotted, written for VTK.

    Parameters
    ----------
    path : str or path
        The file.
    semi : Semidiscretization or None
        What the simulation goes on with; None is enough for looking at it.

    Returns
    -------
    dg.Solution
        With the time and the counters of the one that was saved. Without `semi` its state is a
        `mb.HostArray`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.load(dg.__file__)                                            # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: ... is no snapshot. Write one: dg.save(solution, "state.h5").
    """
    try:
        header = json.loads(mb.to_numpy(mb.load(path, "header")).tobytes())
    except (KeyError, ValueError):
        header = {}
    if header.get("format") != FORMAT:
        raise ValueError(f'{str(path)!r} is no snapshot. Write one: dg.save(solution, "state.h5").')
    if semi is None:
        semi = _stored(path, header)
        u = mb.load(path, "u", device=mb.HostArray)
    else:
        u = _in_order(path, semi)
        e = semi.element
        for what, there, here in (
            ("another element", header["element"], [e.cell, e.order, e.kind_of_nodes]),
            ("other equations", header["equations"], repr(semi.equations)),
            ("another type of numbers", str(u.dtype), str(np.dtype(semi.dtype))),
            ("another mesh", header["mesh"][0], semi.fingerprint),
        ):
            if there != here:
                raise ValueError(
                    f"The snapshot {str(path)!r} is of another simulation, with {what}: {there} there, and "
                    f"{here} here. Go on with what wrote it; only to look at it, load it alone: "
                    f"dg.load({str(path)!r})."
                )
        if isinstance(u, np.ndarray):
            u = semi.put(u)
    stored = header["solution"].items()
    kept: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored if k in COUNTERS}
    return Solution(semi, u, **kept)


def _in_order(path: Any, semi: Any) -> Any:
    """The state in a file with its cells in the order of `semi`; NumPy's, where they were in another."""
    try:
        there = mb.to_numpy(mb.load(path, "numbers"))
    except KeyError:
        there = None
    here = getattr(semi, "numbers", None)
    if there is None and here is None:
        return mb.load(path, "u", device=semi.array)
    u = mb.to_numpy(mb.load(path, "u", device=mb.HostArray))
    places = np.arange(u.shape[-1]) if there is None else np.argsort(there)
    if here is not None and len(here) != len(places):
        return u  # (of another mesh: that is said next)
    return u[..., places if here is None else places[here]]


def _stored(path: Any, header: dict[str, Any]) -> Semidiscretization:
    """What a file knows of a semidiscretization: enough to look at the state, not to go on."""
    stored: Any = mb.load(path)
    arrays = {name: mb.to_numpy(x) for name, x in stored.items()}
    boundaries = {k.partition("/")[2]: (*v.copy(),) for k, v in arrays.items() if k.startswith("boundaries/")}
    named: Any = {k: arrays[f"mesh/{k}"] for k in ARRAYS} | {"boundaries": boundaries}
    mesh = Mesh(*header["mesh"][1:], **named)
    module, name = header["class"]
    try:
        parameters = {k: tuple(v) if isinstance(v, list) else v for k, v in header["parameters"].items()}
        equations = getattr(importlib.import_module(module), name)(**parameters)
        assert isinstance(equations, Equations) and repr(equations) == header["equations"]
    except Exception:
        raise ValueError(
            f"The equations of {str(path)!r} cannot be made here: {header['equations']} of {module}. Give a "
            "semidiscretization with them: dg.load(path, semi)."
        ) from None
    return cast(Any, SimpleNamespace(mesh=mesh, equations=equations, element=element(*header["element"])))
