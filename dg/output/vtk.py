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


def write_vtu(solution: Solution, path: str | Path) -> Path:
    """Write the conservative and primitive fields as an XML file of VTK (.vtu), which replaces an older one.

    Each cell has its own points, so jumps between cells are kept; fields and curved cells have their order. Of
    a divided problem each process writes a file of its own, and what is returned (.pvtu) lists them.

    Parameters
    ----------
    solution : Solution
        What is written.
    path : str or path
        The file.

    Returns
    -------
    pathlib.Path
        The file that programs open: `path`, or the .pvtu of a divided problem.

    Examples
    --------
    >>> import tempfile
    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box((2, 2), periodic=True), dg.Advection((1.0, 0.0)), dg.Solver(3))
    >>> solution = dg.Solution(semi, semi.state(lambda x, t: (x[0],)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     'NumberOfPoints="64"' in dg.write_vtu(solution, f"{folder}/a.vtu").read_text()
    True
    """
    path = Path(path)
    semi: Any = solution.semi
    if not hasattr(semi, "local"):
        return _write(semi, mb.to_numpy(mb.materialize(solution.u)), solution.t, path)
    whole = path.with_suffix(".pvtu")
    files = [f"{path.stem}_{rank:04}.vtu" for rank in range(semi.processes.size)]
    with mb.distributed.together(semi.processes):
        mine = mb.to_numpy(mb.materialize(semi.taken(solution.u)))
        _write(semi.local, mine, solution.t, path.with_name(files[semi.processes.rank]))
    with mb.distributed.together(semi.processes):
        if semi.speaks:
            write_pvtu(whole, files)
    return whole


def _write(semi: Any, state: np.ndarray, t: float, path: Path) -> Path:
    mesh, equations = semi.mesh, semi.equations
    e = element(mesh.cell, max(semi.element.order, mesh.order))
    points = e.equispaced()[e.vtk_order()]
    x = mesh.positions(points)
    u = semi.element.interpolation(points) @ state
    _, named = fields(equations, u, x)
    shape = (len(points), len(mesh))
    values = {n: np.broadcast_to(mb.to_numpy(mb.materialize(v)), shape).T for n, v in named.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    cell = "interval" if mesh.cell == "line" else mesh.cell
    return md.write_vtk_cells(path, cell, e.order, x.transpose(2, 1, 0), values, t)


def write_pvtu(path: Path, files: Iterable[str]) -> Path:
    """Write what ParaView opens as one (.pvtu): the files of all processes, which lie beside it."""
    files = list(files)
    tree = xml.parse(path.with_name(files[0])).getroot()
    tag = "UnstructuredGrid"
    piece = tree.find(f"{tag}/Piece")
    assert piece is not None
    made = xml.Element("VTKFile", {**tree.attrib, "type": f"P{tag}"})
    grid = xml.SubElement(made, f"P{tag}", GhostLevel="0")
    kept = "type", "Name", "NumberOfComponents"
    for name in ("FieldData", "PointData", "CellData", "Points"):
        found = tree.find(f"{tag}/FieldData") if name == "FieldData" else piece.find(name)
        if found is None or name == "FieldData":
            continue
        section = xml.SubElement(grid, f"P{name}")
        for array in found:
            xml.SubElement(section, "PDataArray", {k: v for k, v in array.attrib.items() if k in kept})
    for file in files:
        xml.SubElement(grid, "Piece", Source=file)
    with replacing(path) as fresh:
        xml.ElementTree(made).write(fresh)
    return path


def write_pvd(path: str | Path, series: Iterable[tuple[float, str]]) -> Path:
    """Write what ParaView opens as a series in time (.pvd): times, and files relative to it.

    Parameters
    ----------
    path : str or path
        The file.
    series : iterable of pairs (float, str)
        Times, and the files of their pictures.

    Returns
    -------
    pathlib.Path
        `path`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.output.vtk import read_pvd
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_pvd(dg.write_pvd(f"{folder}/a.pvd", [(0.0, "a_0.vtu"), (0.5, "a_1.vtu")]))
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
