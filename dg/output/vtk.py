"""VTK files: cells as polynomials of any order (Lagrange cells), for ParaView, PyVista and meshio."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np

import mirabelle as mb
from mirabelle.dg.elements import ReferenceElement, element
from mirabelle.dg.output.files import replacing
from mirabelle.dg.output.pieces import fields
from mirabelle.dg.time.solution import Solution

# VTK's numbers of the linear cell and of the Lagrange cell. Not all readers know Lagrange cells of order 1.
LINEAR = {"line": 3, "triangle": 5, "quadrilateral": 9, "tetrahedron": 10, "hexahedron": 12}
LAGRANGE = {"line": 68, "triangle": 69, "quadrilateral": 70, "tetrahedron": 71, "hexahedron": 72}
NUMBERS = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "uint8": "UInt8"}


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
    path = Path(path)
    with replacing(path) as fresh, open(fresh, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in _lines(solution))
    return path


def _lines(solution: Solution) -> Iterator[str]:
    semi, mesh, equations = solution.semi, solution.semi.mesh, solution.semi.equations
    e = element(mesh.cell, max(semi.element.order, mesh.order))
    points = e.equispaced()[_vtk_order(e)]
    n, K = len(points), len(mesh)
    x, positions = mesh.positions(points), np.zeros((K, n, 3))
    positions[:, :, : mesh.dims] = x.transpose(2, 1, 0)
    u = semi.element.interpolation(points) @ mb.to_numpy(mb.materialize(solution.u))
    _, named = fields(equations, u, x)
    ids, kind = np.arange(n * K), (LAGRANGE if e.order > 1 else LINEAR)[mesh.cell]
    cells: Any = {"connectivity": ids, "offsets": ids[::n] + n, "types": np.full(K, kind, np.uint8)}
    yield '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
    yield f"<UnstructuredGrid>\n<FieldData>\n{_array('TimeValue', np.array([solution.t]))}\n</FieldData>"
    yield f'<Piece NumberOfPoints="{n * K}" NumberOfCells="{K}">'
    yield f"<Points>\n{_array('Points', positions.reshape(-1, 3))}\n</Points>"
    yield from ("<Cells>", *(_array(*item) for item in cells.items()), "</Cells>", "<PointData>")
    for name, values in named.items():
        yield _array(name, np.broadcast_to(mb.to_numpy(mb.materialize(values)), (n, K)).T)
    yield "</PointData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>"


def _vtk_order(e: ReferenceElement) -> np.ndarray:
    """The order of points in files of version 1.0, which meshio knows: two edges of hexahedra are swapped."""
    order, inside = e.vtk_order(), e.order - 1
    if e.cell == "hexahedron":
        at = slice(8 + 10 * inside, 8 + 12 * inside)
        order[at] = np.roll(order[at], inside)
    return order


def _array(name: str, values: np.ndarray) -> str:
    """An array as an element of XML: its number of bytes and the bytes."""
    data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(len(data).to_bytes(8, "little") + data).decode()
    shape = {"Points": 'NumberOfComponents="3"', "TimeValue": 'NumberOfTuples="1"'}.get(name, "")
    head = f'<DataArray type="{NUMBERS[values.dtype.name]}" Name="{escape(name)}" {shape} format="binary">'
    return f"{head}{text}</DataArray>"


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
