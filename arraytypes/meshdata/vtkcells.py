"""VTK's files of cells (.vtu), for ParaView, PyVista and meshio: each with its own points, of any order."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterator, Mapping
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.distributed.agreement import on_all, on_root
from mirabelle.arraytypes.io import replacing

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

# VTK's numbers of the linear cell and of the Lagrange cell. Not all readers know Lagrange cells of order 1.
LINEAR = {"interval": 3, "triangle": 5, "quadrilateral": 9, "tetrahedron": 10, "hexahedron": 12, "prism": 13}
LAGRANGE = {"interval": 68, "triangle": 69, "quadrilateral": 70, "tetrahedron": 71, "hexahedron": 72}
NUMBERS = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "uint8": "UInt8"}
# Vertices, edges, faces and inside of boxes as VTK counts: on each axis its start (0), end (n) or inside (i).
BOX = {
    "interval": "0 n i",
    "quadrilateral": "00 n0 nn 0n i0 ni in 0i ii",
    "hexahedron": "000 n00 nn0 0n0 00n n0n nnn 0nn i00 ni0 in0 0i0 i0n nin inn 0in 00i n0i nni 0ni "
    "0ii nii i0i ini ii0 iin iii",
}


def vtk_nodes(shape: str, order: int) -> np.ndarray:
    """The nodes of VTK's Lagrange cell, in its order: (n, dim) whole numbers from 0 to `order`.

    Parameters
    ----------
    shape : str
        The cell.
    order : int
        Of its polynomials.

    Returns
    -------
    numpy.ndarray
        Integers, a row for each node; divided by `order` they are coordinates in the unit cell.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.vtk_nodes("triangle", 2).tolist()
    [[0, 0], [2, 0], [0, 2], [1, 0], [1, 1], [0, 1]]
    >>> md.vtk_nodes("quadrilateral", 1).tolist()
    [[0, 0], [1, 0], [1, 1], [0, 1]]
    """
    ranges = {"0": range(1), "n": range(order, order + 1), "i": range(1, order)}
    if shape in BOX:
        parts = BOX[shape].split()
        return np.array([p[::-1] for part in parts for p in product(*(ranges[at] for at in reversed(part)))])
    if shape == "prism" and order == 1:
        return np.array([(*xy, z) for z in (0, 1) for xy in ((0, 0), (1, 0), (0, 1))])
    if shape not in LAGRANGE:
        raise ValueError(
            f"VTK's cells of order {order} are those of {', '.join(LAGRANGE)}, and not of {shape!r}."
        )
    dim = 2 if shape == "triangle" else 3
    return np.array(list(_simplex([*np.eye(dim + 1, dim, -1, dtype=int) * order], order)))


def _simplex(corners: list[np.ndarray], n: int) -> Iterator[np.ndarray]:
    """The points of a triangle or tetrahedron of n steps as VTK counts: vertices, edges, faces, the inside."""
    if n < 1:
        yield from corners[: n + 1 if n == 0 else 0]
        return
    yield from corners
    solid = len(corners) == 4
    for a, b in ("01", "12", "20", "03", "13", "23") if solid else ("01", "12", "20"):
        start, end = corners[int(a)], corners[int(b)]
        yield from (start + (end - start) * k // n for k in range(1, n))
    faces = [[corners[int(k)] for k in face] for face in ("013", "231", "032", "021")] if solid else []
    for part in [*faces, corners]:
        # What is left inside has its corners a step towards all the others.
        yield from _simplex([a + (np.sum(part, 0) - len(part) * a) // n for a in part], n - len(part))


def write_vtk_cells(
    path: str | os.PathLike[str],
    shape: str,
    order: int,
    positions: ArrayLike,
    fields: Mapping[str, ArrayLike],
    time: float = 0.0,
) -> Path:
    """Write cells of one shape, which are polynomials of an order, as an XML file of VTK (.vtu).

    `positions` (cells, n, space) are where the nodes of each cell are, in the order of `md.vtk_nodes`, and
    `fields` what they have there: (cells, n), or (cells, n, components). The file replaces an older one when it
    is whole.

    Parameters
    ----------
    path : str or path
        The file.
    shape : str
        Of all cells.
    order : int
        Of their polynomials.
    positions : array (cells, n, space)
        Where the nodes of each cell are.
    fields : mapping of str to arrays
        What they have there, by the names that it gets.
    time : float, default 0.0
        The time that the file says.

    Returns
    -------
    pathlib.Path
        `path`.

    Examples
    --------
    >>> import tempfile
    >>> from mirabelle import meshdata as md
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = md.write_vtk_cells(f"{folder}/a.vtu", "interval", 1, [[[0.0], [1.0]]], {"u": [[3.0, 4.0]]})
    ...     'NumberOfPoints="2"' in made.read_text()
    True
    """
    path = Path(path)
    lines = list(_lines(shape, order, np.asarray(positions, dtype=float), fields, time))
    with replacing(path) as fresh, open(fresh, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def write_vtk_pieces(
    comm: Any, path: Any, shape: str, order: int, positions: Any, fields: Mapping[str, Any], time: float
) -> Path:
    """The same of cells that several processes have: a file for each, and one that names them."""
    path = Path(path).with_suffix(".pvtu")
    pieces = [path.with_name(f"{path.stem}_{r}.vtu") for r in range(comm.size)]
    on_all(comm, lambda: write_vtk_cells(pieces[comm.rank], shape, order, positions, fields, time))

    def together() -> None:
        cells = np.shape(positions)[:2]
        kinds = {name: _numbers(name, np.asarray(v), cells) for name, v in fields.items()}
        head = '<VTKFile type="PUnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
        lines = [head, '<PUnstructuredGrid GhostLevel="0">', "<PPoints>"]
        lines += [
            '<PDataArray type="Float64" Name="Points" NumberOfComponents="3"/>',
            "</PPoints>",
            "<PPointData>",
        ]
        for name, v in kinds.items():
            shown = f' NumberOfComponents="{v.shape[1]}"' if v.ndim == 2 else ""
            lines.append(f'<PDataArray type="{NUMBERS[v.dtype.name]}" Name="{escape(name)}"{shown}/>')
        lines += ["</PPointData>", *(f'<Piece Source="{escape(p.name)}"/>' for p in pieces)]
        with replacing(path) as fresh, open(fresh, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in (*lines, "</PUnstructuredGrid>", "</VTKFile>"))

    on_root(comm, together)
    return path


def _lines(shape: str, order: int, x: np.ndarray, fields: Mapping[str, Any], time: float) -> Iterator[str]:
    K, n, space = x.shape
    points = np.zeros((K, n, 3))
    points[:, :, :space] = x
    if shape == "hexahedron" and order > 1:  # Version 1.0, which meshio knows, has two edges swapped.
        swapped = np.arange(n)
        at = slice(8 + 10 * (order - 1), 8 + 12 * (order - 1))
        swapped[at] = np.roll(swapped[at], order - 1)
        points, fields = points[:, swapped], {name: np.asarray(v)[:, swapped] for name, v in fields.items()}
    ids, kind = np.arange(n * K), (LAGRANGE if order > 1 else LINEAR)[shape]
    cells: Any = {"connectivity": ids, "offsets": ids[::n] + n, "types": np.full(K, kind, np.uint8)}
    yield '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
    yield f"<UnstructuredGrid>\n<FieldData>\n{_array('TimeValue', np.array([float(time)]))}\n</FieldData>"
    yield f'<Piece NumberOfPoints="{n * K}" NumberOfCells="{K}">'
    yield f"<Points>\n{_array('Points', points.reshape(-1, 3))}\n</Points>"
    yield from ("<Cells>", *(_array(*item) for item in cells.items()), "</Cells>", "<PointData>")
    for name, values in fields.items():
        yield _array(name, _numbers(name, np.asarray(values), (K, n)))
    yield "</PointData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>"


def _numbers(name: str, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Values by points: one number, or a row of components (three of a vector in the plane, as VTK expects)."""
    if values.shape[:2] != shape:
        raise ValueError(
            f"The field {name!r} has values of shape {values.shape}, and there are {shape[0]} cells of "
            f"{shape[1]} points: its first axes are these."
        )
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"The field {name!r} has values of {values.dtype}, and VTK's files hold real numbers. Write its "
            f'parts: `{{"{name} re": u.real, "{name} im": u.imag}}`.'
        )
    flat = values.reshape(shape[0] * shape[1], math.prod(values.shape[2:]))
    if values.dtype.name not in NUMBERS:
        flat = flat.astype(np.int64 if values.dtype.kind in "biu" else np.float64)
    if flat.shape[1] == 1:
        return flat[:, 0]
    return np.pad(flat, ((0, 0), (0, 1))) if flat.shape[1] == 2 else flat


def _array(name: str, values: np.ndarray) -> str:
    """An array as an element of XML: its number of bytes and the bytes."""
    data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(len(data).to_bytes(8, "little") + data).decode()
    shape = f'NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    shape = 'NumberOfTuples="1"' if name == "TimeValue" else shape
    head = f'<DataArray type="{NUMBERS[values.dtype.name]}" Name="{escape(name)}" {shape} format="binary">'
    return f"{head}{text}</DataArray>"
