"""VTK files: cells as polynomials of any order (Lagrange cells), for ParaView, PyVista and meshio."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.dg.elements import element
from mirabelle.dg.output.files import replacing
from mirabelle.dg.output.pieces import fields
from mirabelle.dg.time.solution import Solution


def write_vtu(solution: Solution, path: Any) -> Path:
    """Write the conservative and primitive fields as an XML file of VTK (.vtu), which replaces an older one.

    Each cell has its own points, so jumps between cells are kept; fields and curved cells have their order.

    >>> import tempfile
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box((2, 2), periodic=True), dg.Advection((1.0, 0.0)), dg.Solver(3))
    >>> solution = dg.Solution(semi, semi.state(lambda x, t: (x[0],)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     'NumberOfPoints="64"' in write_vtu(solution, f"{folder}/a.vtu").read_text()
    True
    """
    semi, mesh, equations = solution.semi, solution.semi.mesh, solution.semi.equations
    e = element(mesh.cell, max(semi.element.order, mesh.order))
    points = e.equispaced()[e.vtk_order()]
    x = mesh.positions(points)
    u = semi.element.interpolation(points) @ mb.to_numpy(mb.materialize(solution.u))
    _, named = fields(equations, u, x)
    shape = (len(points), len(mesh))
    values = {n: np.broadcast_to(mb.to_numpy(mb.materialize(v)), shape).T for n, v in named.items()}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    cell = "interval" if mesh.cell == "line" else mesh.cell
    return md.write_vtk_cells(path, cell, e.order, x.transpose(2, 1, 0), values, solution.t)


def write_pvd(path: Any, series: Iterable[tuple[float, str]]) -> Path:
    """Write what ParaView opens as a series in time (.pvd): times, and files relative to it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_pvd(write_pvd(f"{folder}/a.pvd", [(0.0, "a_0.vtu"), (0.5, "a_1.vtu")]))
    [(0.0, 'a_0.vtu'), (0.5, 'a_1.vtu')]
    """
    rows = "".join(f'<DataSet timestep="{float(t)!r}" part="0" file="{escape(f)}"/>\n' for t, f in series)
    path = Path(path)
    with replacing(path) as fresh:
        fresh.write_text(f'<VTKFile type="Collection">\n<Collection>\n{rows}</Collection>\n</VTKFile>\n')
    return path


def read_pvd(path: Any) -> list[tuple[float, str]]:
    """The times and files of a series that `write_pvd` wrote."""
    return [(float(d.get("timestep", "nan")), d.get("file", "")) for d in xml.parse(path).iter("DataSet")]
