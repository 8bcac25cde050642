"""Mesh files: gmsh's and what meshio reads, and what gmsh makes of a description of a geometry."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.checking import GivenTwiceError
from mirabelle.arraytypes.meshdata.gmshwhole import WholeFile, is_known, whole_file
from mirabelle.arraytypes.meshdata.maps import Table
from mirabelle.arraytypes.meshdata.meshes import Mesh
from mirabelle.arraytypes.meshdata.points import Subset
from mirabelle.arraytypes.meshdata.shapes import SHAPES

GEOMETRIES = ".geo", ".geo_unrolled", ".step", ".stp", ".brep", ".iges", ".igs"
NAMES = {"line": "interval", "quad": "quadrilateral", "tetra": "tetrahedron", "wedge": "prism"}
Groups = dict[str, list[tuple[int, Table]]]


def read_mesh(path: str | os.PathLike[str], *, inverted: str = "flip") -> Mesh:
    """The mesh in a gmsh file (MSH 2.2 or 4.1), in another that meshio reads, or that gmsh makes of a geometry.

    Cells are those of the highest dimension in the file, by their corners: nodes of curved cells and nodes
    without cells are left out. Physical groups of cells, facets, edges and vertices become `markers`, by their
    names; one that has facets of several shapes is several, "wall triangle" and "wall quadrilateral".

    Parameters
    ----------
    path : str or path
        The file.
    inverted : {"error", "flip", "keep"}, default "flip"
        What is done about cells of negative volume.

    Returns
    -------
    mb.meshdata.Mesh
        A mesh of the cells' dimension, with `markers` of the groups by name.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.read_mesh("wing.msh")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no mesh file 'wing.msh'. A path begins in the folder that Python was started \
in, as "meshes/wing.msh", or at the root.
    """
    file = read_mesh_file(path)
    blocks = [(SHAPES[s], np.asarray(b.data)) for b in file.cells if (s := shape_in_file(b.type)) in SHAPES]
    dim = max((shape.dim for shape, _ in blocks), default=0)
    if not dim:
        raise ValueError(
            f"There are no cells in {Path(path).name!r} but {sorted({b.type for b in file.cells})}."
        )
    parts: dict[str, list[Table]] = {}
    for shape, data in blocks:
        if shape.dim == dim:
            parts.setdefault(shape.name, []).append(data[:, : shape.vertices])
    x = np.asarray(file.points, dtype=float)
    while x.shape[1] > dim and not np.ptp(x[:, -1:]):  # Files of plane meshes have a z as well.
        x = x[:, :-1]
    used, new = np.zeros(len(x), dtype=bool), np.full(len(x), -1, dtype=np.int64)
    for tables in parts.values():
        for table in tables:
            used[table.ravel()] = True
    new[used] = np.arange(np.count_nonzero(used))
    cells = {s: new[np.concatenate(tables)] for s, tables in parts.items()}
    try:
        mesh = Mesh(x[used], cells, inverted=inverted).check()
    except GivenTwiceError as error:
        if isinstance(file, WholeFile):
            raise ValueError(file.file.listed_twice()) from error
        raise
    for name, found in physical_groups(file).items():
        mesh._markers.update(_markers(mesh, name, [(d, new[nodes]) for d, nodes in found]))
    return mesh


def shape_in_file(kind: str) -> str:
    """Our name of a shape of meshio's, of whatever order.

    >>> shape_in_file("tetra10"), shape_in_file("vertex")
    ('tetrahedron', 'vertex')
    """
    plain = re.sub(r"\d+$", "", kind)
    return NAMES.get(plain, plain)


def read_mesh_file(path: str | os.PathLike[str], order: int | None = None) -> Any:
    """What is in a mesh file: points, blocks of cells, groups, nothing left out.

    gmsh's files (MSH 2.2 and 4.1) are read here, others by meshio; gmsh makes the mesh of a geometry, of
    cells of the given order. `md.read_mesh` and `dg.read_mesh` make meshes of it.

    Parameters
    ----------
    path : str or path
        The file.
    order : int or None
        Of cells that gmsh makes of a geometry; None is 1.

    Returns
    -------
    meshio.Mesh, or an object with the same attributes
        It has `points`, `cells` (each with a `type` and `data`, the nodes) and `cell_sets`. Of gmsh's files
        nodes are in gmsh's order.

    Examples
    --------
    ```python
    file = md.read_mesh_file("wing.geo", order=2)      # needs gmsh: pip install mirabelle[mesh]
    file.points.shape
    ```
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no mesh file {str(path)!r}. A path begins in the folder that Python was started in, as "
            f'"meshes/{path.name}", or at the root.'
        )
    with tempfile.TemporaryDirectory() as folder:
        made = path.suffix.lower() in GEOMETRIES
        file = Path(_made(path, f"{folder}/made.msh", order)) if made else path
        return whole_file(file) if is_known(file) else _by_meshio(file)


def _by_meshio(path: Path) -> Any:
    meshio = _package("meshio", "Mesh files are read by")
    try:
        with redirect_stdout(StringIO()):  # meshio prints empty lines.
            return meshio.read(path)
    except (meshio.ReadError, SystemExit) as error:  # meshio ends the program where no reader fits.
        raise ValueError(
            f"meshio cannot read {path.name!r} ({error}). Let gmsh save it as MSH 4.1: `gmsh {path.name} "
            "-save -format msh41 -o mesh.msh`."
        ) from error


def _made(path: Path, made: str, order: int | None) -> str:
    """Let gmsh make the mesh of a geometry."""
    gmsh = _package("gmsh", f"Meshes of geometries such as {path.name!r} are made by")
    broken_pipe = getattr(signal, "SIGPIPE", None)
    handler = None if broken_pipe is None else signal.getsignal(broken_pipe)
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.open(str(path))
        gmsh.model.mesh.generate(gmsh.model.getDimension())
        if order is not None:
            gmsh.model.mesh.setOrder(order)
        gmsh.model.mesh.renumberNodes()
        gmsh.write(made)
    except Exception as error:
        raise ValueError(
            f"gmsh cannot make a mesh of {path.name!r}: {error}. Look at it there: `gmsh {path.name}`."
        ) from error
    finally:
        gmsh.finalize()
        if broken_pipe is not None:  # gmsh lets it end a process, which Python's sockets do not expect
            with suppress(ValueError):  # (another thread may not change it)
                signal.signal(broken_pipe, handler)
    return made


def _package(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except (ImportError, OSError):  # OSError: its own libraries are missing.
        raise ImportError(f"{what} {name}, which is missing: `pip install {name}`.") from None


def physical_groups(file: Any) -> Groups:
    """The named groups in a file of meshio's: for each the dimensions and nodes of its cells, corners first.

    Those are gmsh's physical groups, a group without a name by its number; of other formats, sets of cells.

    Parameters
    ----------
    file : meshio.Mesh or the like
        What `md.read_mesh_file` returns.

    Returns
    -------
    dict
        From names to lists of pairs: the dimension, and an int array of a row of nodes for each cell.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from mirabelle import meshdata as md
    >>> edges = SimpleNamespace(type="line", data=np.array([[0, 1], [1, 2]]))  # (as meshio has them)
    >>> file = SimpleNamespace(field_data={}, cell_sets={"wall": [[1]]}, cell_data={}, cells=[edges])
    >>> md.physical_groups(file)
    {'wall': [(1, array([[1, 2]]))]}
    """
    names = {(int(tag), int(dim)): name for name, (tag, dim) in file.field_data.items()}
    groups: Groups = {}
    for number, block in enumerate(file.cells):
        shape = shape_in_file(block.type)
        if shape not in SHAPES and shape != "vertex":
            continue
        dim, corners = (0, 1) if shape == "vertex" else (SHAPES[shape].dim, SHAPES[shape].vertices)
        sets = {name: found[number] for name, found in file.cell_sets.items() if not name.startswith("gmsh:")}
        if (tags := file.cell_data.get("gmsh:physical")) is not None:
            for tag in set(tags[number].tolist()) - {0}:
                sets[names.get((tag, dim), str(tag))] = np.flatnonzero(tags[number] == tag)
        for name, members in sets.items():
            if members is not None and len(members):
                nodes = np.asarray(block.data)[np.asarray(members, dtype=np.int64), :corners]
                groups.setdefault(name, []).append((dim, nodes))
    return groups


def _markers(mesh: Mesh, name: str, found: list[tuple[int, Table]]) -> dict[str, Subset]:
    """The points of a mesh that a group has."""
    shapes = {
        name: (0, 1) if s == "vertex" else (SHAPES[s].dim, SHAPES[s].vertices)
        for name, s in mesh.shapes.items()
    }
    numbers: dict[str, list[Table]] = {}
    for dim, vertices in found:
        component = next((c for c, key in shapes.items() if key == (dim, vertices.shape[1])), None)
        if component is not None:
            vertices = vertices[(vertices >= 0).all(axis=1)]
            at = mesh.topology.find(component, vertices)
            numbers.setdefault(component, []).append(at[at >= 0])
    subsets = {c: mesh.points(c).subset(np.unique(np.concatenate(at))) for c, at in numbers.items()}
    return {name if len(subsets) == 1 else f"{name} {c}": subset for c, subset in subsets.items()}
