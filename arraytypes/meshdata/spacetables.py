"""Tables of spaces: which degrees of freedom each cell has, in which order and with which signs.

An entity of a mesh has an order of its vertices, the same for all cells around it. How a cell sees it is a
permutation, and the element says what that does to the degrees of freedom there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.elements import Element

Positions = dict[str, np.ndarray]  # of each kind of entity, where its degrees of freedom stand: (entities, n)


def targets(mesh: Any, source: str, kind: str) -> np.ndarray:
    """The table of a map from points of one kind to those of another, (points, n)."""
    if source == kind:
        return np.arange(mesh.points(kind).size)[:, None]
    table: np.ndarray = mesh.closure(source, kind).target().table
    return table


def seen(cell_vertices: np.ndarray, entity_vertices: np.ndarray, local: np.ndarray) -> np.ndarray:
    """For each cell and entity the permutation s: vertex i of the mesh's entity is vertex s[i] of the cell's.

    >>> seen(np.array([[4, 2, 7]]), np.array([[[2, 7], [4, 7], [2, 4]]]), np.array([[1, 2], [0, 2], [0, 1]]))
    array([[[0, 1],
            [0, 1],
            [1, 0]]])
    """
    mine = cell_vertices[:, local]
    same = entity_vertices[..., :, None] == mine[..., None, :]
    if not same.any(axis=-1).all():
        cell, entity = np.argwhere(~same.any(axis=-1).all(axis=-1))[0]
        raise ValueError(
            f"Cell {cell} and its entity {entity} have different vertices, {mine[cell, entity].tolist()} and "
            f"{entity_vertices[cell, entity].tolist()}: the closure of this mesh counts entities in another "
            "order than the reference cell. Build the mesh by `md.Mesh(coordinates, cells)`."
        )
    return same.argmax(axis=-1)


def cell_tables(
    mesh: Any, element: Element, positions: Positions, source: str = "cell"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Where each cell has its degrees of freedom (cells, K), and their signs where an element has any.

    With another `source` than cells the element is one on these: on facets, say.
    """
    cells = mesh.points(source).size
    vertices = targets(mesh, source, "vertex")
    columns, signs = [np.empty((cells, 0), np.int64)], [np.empty((cells, 0))]
    for kind in element.entity_dofs:
        component = source if kind == "cell" else kind
        entities = targets(mesh, source, component)
        found = positions[component][entities]  # (cells, entities, n)
        if kind not in ("cell", "vertex"):
            local = np.array(element.cell.entities[kind])
            orders, sign = _as_seen(
                element, kind, seen(vertices, targets(mesh, kind, "vertex")[entities], local)
            )
            found = np.take_along_axis(found, orders, axis=2)
        else:
            sign = np.ones(found.shape)
        columns.append(found.reshape(cells, math.prod(found.shape[1:])))
        signs.append(sign.reshape(cells, math.prod(sign.shape[1:])))
    sign = np.concatenate(signs, axis=1)
    signed = element.mapping != "identity" or bool((sign < 0).any())
    return np.concatenate(columns, axis=1), sign if signed else None


def _as_seen(element: Element, kind: str, permutations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the permutations of entities do: where the degrees of freedom stand, and their signs."""
    m = permutations.shape[-1]
    codes, which = np.unique(permutations @ m ** np.arange(m), return_inverse=True)
    which = which.reshape(permutations.shape[:-1])
    orders = [tuple(int(code) // m**i % m for i in range(m)) for code in codes]
    n = element.entity_dofs[kind]
    order = np.array([element.order(kind, s) for s in orders], dtype=np.int64).reshape(-1, n)
    sign = np.array([np.broadcast_to(element.sign(kind, s), n) for s in orders], dtype=float).reshape(-1, n)
    return order[which], sign[which]
