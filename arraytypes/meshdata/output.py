"""Functions on a mesh as VTK's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.meshdata.elements import HIGHEST, element
from mirabelle.arraytypes.meshdata.rootrows import communicator_of
from mirabelle.arraytypes.meshdata.spacegeometry import entity_geometry
from mirabelle.arraytypes.meshdata.spacemaking import mesh_shape, space
from mirabelle.arraytypes.meshdata.spaces import Space
from mirabelle.arraytypes.meshdata.spacetables import targets
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.arraytypes.meshdata.vtkcells import vtk_nodes, write_vtk_cells, write_vtk_pieces
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.meshdata.meshes import Mesh


def write_vtk(path: str | os.PathLike[str], mesh: Mesh, fields: Mapping[str, Any], time: float = 0.0) -> Path:
    """Write functions on a mesh as an XML file of VTK (.vtu), for ParaView, PyVista and meshio.

    A field is a function of a Lagrange space, a pair `(V, u)` of any space and its function, or an array with a
    value for each vertex or for each cell. Functions keep their degree, and jump between cells where they do.

    Of a divided mesh (`md.part`) all processes write together: each a file of its own cells, "u_0.vtu" and so
    on, and the first one of the names of these, "u.pvtu", which programs open.

    Parameters
    ----------
    path : str or path
        The file.
    mesh : Mesh
        The mesh.
    fields : mapping of str to functions or arrays
        What is written, by the names that it gets.
    time : float, default 0.0
        The time that the file says.

    Returns
    -------
    pathlib.Path
        The file that programs open: `path`, or the .pvtu of a divided mesh.

    Examples
    --------
    >>> import tempfile
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(2, 2)
    >>> u = md.space(mesh, "P", 2).interpolate(lambda x: x[..., 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     'NumberOfPoints="48"' in md.write_vtk(f"{folder}/u.vtu", mesh, {"u": u}).read_text()
    True
    """
    shape = mesh_shape(mesh)
    found = {name: _function(mesh, name, given) for name, given in fields.items()}
    order = max([1, *(V.element.degree for V, _ in found.values() if isinstance(V, Space))])
    nodes = vtk_nodes(shape, order) / order
    geometry = entity_geometry(mesh, element("P", shape, 1), "cell")
    x = np.einsum("qk,nkd->nqd", geometry.element.tabulate(nodes), geometry.corners)
    values = {name: _sampled(mesh, V, u, nodes) for name, (V, u) in found.items()}
    division = mesh.topology.division
    if division is None:
        comm = communicator_of(u[-1] if isinstance(u, tuple) else u for u in fields.values())
        if comm is None:
            return write_vtk_cells(path, shape, order, x, values, time)
        made = on_all(comm, lambda: None if comm.rank else write_vtk_cells(path, shape, order, x, values, time))
        return Path(comm.bcast_object(None if made is None else str(made)))
    own = division.part.owned("cell")
    return write_vtk_pieces(
        division.comm, path, shape, order, x[:own], {k: v[:own] for k, v in values.items()}, time
    )


def _sampled(mesh: Any, V: Any, u: Any, nodes: np.ndarray) -> np.ndarray:
    if V == "vertex":
        at = element("P", mesh_shape(mesh), 1).tabulate(nodes)
        return np.einsum("qk,nk...->nq...", at, u[targets(mesh, "cell", "vertex")])
    if V == "cell":
        return np.repeat(u[:, None], len(nodes), axis=1)
    return V.sample(u, nodes)


def _function(mesh: Any, name: str, given: Any) -> tuple[Any, Any]:
    """A space and its function; or "vertex" or "cell" and the values there."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Space):
        V, u = given
        if V.mesh != mesh:
            raise ValueError(
                f"The field {name!r} is a function on another mesh than the one that is written. Interpolate "
                "it there: `W.interpolate(lambda x: V.evaluate(u, x))`."
            )
        return V, u
    if isinstance(given, TreeArray):
        return lagrange_space(mesh, name, given), given
    division = mesh.topology.division
    if isinstance(given, DArray) and division is not None:
        of = {kind: e for kind in ("vertex", "cell") if (e := division.entries(kind)).size == given.shape[0]}
        if len(of) == 1:
            [(kind, entries)] = of.items()
            return kind, verbs.to_numpy(entries.local(given, ghosts=True))
    values = verbs.to_numpy(verbs.materialize(given)) if isinstance(given, AbstractArray) else np.asarray(given)
    sizes = {k: mesh.points(k).size for k in ("vertex", "cell")}
    kinds = [kind for kind, size in sizes.items() if values.ndim and len(values) == size]
    if division is not None and not any(sizes.values()):  # (a process without points)
        kinds = kinds[:1]
    if len(kinds) != 1:
        raise ValueError(
            f"The field {name!r} has shape {values.shape}, and the mesh has {sizes['vertex']} vertices and "
            f"{sizes['cell']} cells: "
            + ("it may be of either" if kinds else "it is of neither")
            + f'. Give it as a function of a space: `{{"{name}": (V, u)}}`.'
        )
    return kinds[0], values


def lagrange_space(mesh: Any, name: str, u: TreeArray) -> Space:
    """The space of Lagrange elements on a mesh over whose tree an array is."""
    for family, degree in ((f, d) for f in ("P", "DP") for d in range(f == "P", HIGHEST + 1)):
        try:
            scalar = space(mesh, family, degree)
        except ValueError:
            continue
        components, rest = divmod(u.tree.size, scalar.tree.size)
        if not rest:
            for V in (scalar, space(mesh, family, degree, components=components)) if components else ():
                if V.tree == u.tree:
                    return V
    raise ValueError(
        f"The field {name!r} is an array over a tree of {u.tree.size} entries, which is that of no Lagrange "
        f'element on this mesh. Give its space as well: `{{"{name}": (V, u)}}`, and of mixed spaces '
        "each field, `W.split(u)`."
    )
