"""Where the degrees of freedom of a space are, and how a function determines them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.meshdata.elements import DIMS, Element, element, inner_nodes
from mirabelle.arraytypes.meshdata.evaluation import CellGeometry
from mirabelle.arraytypes.meshdata.quadrature import quadrature
from mirabelle.arraytypes.meshdata.referencecells import shape_of
from mirabelle.arraytypes.meshdata.spacetables import targets
from mirabelle.dispatch import verbs

MOMENTS = 6  # the degree of the rules by which fluxes and circulations of given functions are integrated


def entity_geometry(mesh: Any, of: Element, kind: str) -> CellGeometry:
    """The entities of a kind as cells of their own, with the vertices in the mesh's order."""
    vertices = targets(mesh, kind, "vertex")
    shape = of.shape if kind == "cell" else shape_of(DIMS[kind], vertices.shape[1])
    return CellGeometry(_first_degree(shape), np.asarray(mesh.coordinates, dtype=float)[vertices])


def _first_degree(shape: str) -> Element:
    return element("P", shape, 1)


def nodes(mesh: Any, of: Element, kind: str) -> np.ndarray:
    """Where each entity of a kind has its degrees of freedom, (entities, n, space): RT and N in the middle."""
    geometry = entity_geometry(mesh, of, kind)
    cell = geometry.element.cell
    if of.points is None:
        at = cell.vertices.mean(axis=0)[None]
    elif kind == "cell":
        at = of.points[: of.entity_dofs["cell"]]
    else:
        at = inner_nodes(cell.vertices, cell.shape, of.degree)
    return np.einsum("qk,nkd->nqd", geometry.element.tabulate(at), geometry.corners)


def moments(mesh: Any, of: Element, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Points (entities, q, space) and vectors there, which sum up a field's flux or circulation."""
    geometry = entity_geometry(mesh, of, kind)
    at, weights = quadrature(geometry.element.shape, MOMENTS)
    corners = geometry.corners
    edges = corners[:, 1:] - corners[:, :1]
    if of.mapping == "covariant":
        vectors = edges[:, 0]
    elif corners.shape[2] == 2:  # turned right
        vectors = edges[:, 0, ::-1] * [1.0, -1.0]
    else:
        vectors = np.cross(edges[:, 0], edges[:, 1])
    x = np.einsum("qk,nkd->nqd", geometry.element.tabulate(at), corners)
    return x, weights[:, None] * vectors[:, None, :]


def cellwise(V: Any, f: Any, flat: np.ndarray) -> None:
    """Interpolate cell by cell, as basix's elements say: all around an entity agree on what stands there."""
    at, matrix = V.element.interpolation()
    cells = np.arange(len(V.cells.corners))
    x = np.einsum("qk,nkd->nqd", V.cells.element.tabulate(at), V.cells.corners)
    values = values_at(f, x.reshape(-1, V.dim), V.value_shape, flat.dtype).reshape(*x.shape[:2], -1)
    if V.element.mapping != "identity":
        J = V.cells.jacobians(np.repeat(cells, len(at)), np.tile(at, (len(cells), 1)))
        J = J.reshape(len(cells), len(at), *J.shape[1:])
        if V.element.mapping == "covariant":
            values = np.einsum("nqji,nqj->nqi", J, values)
        else:
            values = np.linalg.det(J)[..., None] * np.linalg.solve(J, values[..., None])[..., 0]
        found = np.einsum("kcq,nqc->nk", matrix, values)[..., None]
    else:
        found = np.einsum("kq,nqc->nkc", matrix[:, 0], values)
    signs = 1.0 if V.signs is None else V.signs[..., None]
    flat[V.dofs.table] = (found * signs).reshape(*V.dofs.table.shape, *flat.shape[1:])


def values_at(f: Any, x: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What a function of points (n, space) gives there, (n, *shape); constants may be given as they are."""
    got = f(x) if callable(f) else f
    values = verbs.to_numpy(verbs.materialize(got)) if isinstance(got, AbstractArray) else np.asarray(got)
    wanted = (len(x), *shape)
    if values.shape in ((), shape):
        values = np.broadcast_to(values, wanted)
    if values.shape != wanted:
        one = f"{' x '.join(map(str, shape))} components" if shape else "a number"
        raise ValueError(
            f"The function was asked for its values at {len(x)} points, an array of shape {x.shape}, and gave "
            f"the shape {values.shape} instead of {wanted}: {one} for each point. Write it for arrays of "
            "points, as `lambda x: x[..., 0] ** 2`"
            + (", and join components by `np.stack([...], axis=-1)`." if shape else ".")
        )
    if values.dtype.kind not in ("biufc" if np.dtype(dtype).kind == "c" else "biuf"):
        raise TypeError(
            f"The function gave values of {values.dtype}, which an array of {np.dtype(dtype)} cannot hold. "
            "Complex ones are held with `V.interpolate(f, dtype=np.complex128)`."
        )
    return values
