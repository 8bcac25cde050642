"""The values of a space's functions: at points of the mesh, and at points of its cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.divisions import inner_of, is_divided, seen_by_all
from mirabelle.arraytypes.meshdata.dofs import placed
from mirabelle.arraytypes.meshdata.evaluation import transformed
from mirabelle.arraytypes.meshdata.sharedmeshes import entries_of_tree
from mirabelle.arraytypes.meshdata.treearray import TreeArray, wrap, zeros
from mirabelle.dispatch import verbs


def zero_function(V: Any, array: Any, dtype: Any) -> Any:
    """`Space.zeros`, also of mixed spaces."""
    if is_divided(array):
        return _over(V, entries_of(V).made(array, 0, dtype))
    return zeros(V.tree, array=array, dtype=dtype)


def function_of(V: Any, values: Any, array: Any) -> Any:
    """`Space.function`, also of mixed spaces."""
    if not is_divided(array):
        return wrap(V.tree, array(values))
    flat = inner_of(array)(values)
    if flat.shape != (V.tree.size,):
        raise ValueError(
            f"This part of the mesh has {V.tree.size} degrees of freedom, ghosts included, and there are "
            f"numbers of shape {flat.shape}."
        )
    return _over(V, entries_of(V).vector(flat))


def _over(V: Any, x: Any) -> Any:
    """A distributed array of degrees of freedom, over the tree: unless that is of this process' part alone."""
    return x if V.mesh.topology.division is not None else wrap(V.tree, x)


def as_given(V: Any, x: Any, like: Any) -> Any:
    """A local array of degrees of freedom as a function like another: distributed, if that is."""
    divided = isinstance(getattr(like, "parent", like) if isinstance(like, TreeArray) else like, DArray)
    return _over(V, entries_of(V).vector(x)) if divided else wrap(V.tree, x)


def local_function(V: Any, u: Any) -> Any:
    """`Space.local`, also of mixed spaces."""
    if isinstance(u, TreeArray) and isinstance(u.parent, DArray):
        check(u, V)
        u = u.parent
    return wrap(V.tree, entries_of(V).local(u, ghosts=True)) if isinstance(u, DArray) else u


def entries_of(V: Any) -> Any:
    """Which process owns what of a space's degrees of freedom."""
    topology = V.mesh.topology
    if topology.division is not None:
        return topology.division.entries(V.tree)
    if topology.owned is not None:
        raise ValueError(
            "Functions are distributed arrays on a mesh that all processes have, or have divided together, and "
            "this is one process' part, made without the others: `mesh = md.part(mesh).mesh`."
        )
    return entries_of_tree(topology, V.tree)


def check(u: Any, V: Any) -> None:
    """Refuse what is no function of a space."""
    if not isinstance(u, TreeArray):
        raise TypeError(
            f"A function of a space is an array over its tree, and this is a {type(u).__name__}: make one by "
            "`V.zeros()` or `V.interpolate(f)`, or of a flat array by `md.wrap(V.tree, flat)`."
        )
    if u.tree != V.tree:
        raise ValueError(
            f"This array is over another tree, of {u.tree.size} entries, than that of the {V!r}: another mesh "
            "or another element. Interpolate it there: `W.interpolate(lambda x: V.evaluate(u, x))`."
        )


def evaluated(V: Any, u: Any, points: Any, outside: str) -> Any:
    """`Space.evaluate`."""
    x = np.asarray(points, dtype=float)
    if x.ndim < 1 or x.shape[-1] != V.dim:
        raise ValueError(
            f"Points of this mesh have {V.dim} coordinates in their last axis, and these have the shape "
            f"{x.shape}: `V.evaluate(u, {[0.5] * V.dim})`."
        )
    if V.dim != V.element.dim:
        raise ValueError(
            f"Points are found in cells that fill the space, and these are of dimension {V.element.dim} in "
            f"{V.dim} dimensions. `V.sample(u, points)` has the values at points of the reference cells."
        )
    if outside not in ("nan", "raise"):
        raise ValueError(f'What lies outside is "nan" or "raise", not {outside!r}: `V.evaluate(u, points)`.')
    division = V.mesh.topology.division
    comm = division.comm if division is not None and isinstance(u, DArray) else None
    u = local_function(V, u)
    check(u, V)
    flat = x.reshape(-1, V.dim)
    if len(V.cells.corners):
        cells, at = V.locator.find(flat)
    else:  # (a process without cells)
        cells, at = np.full(len(flat), -1), np.full((len(flat), V.element.dim), np.nan)
    found = cells >= 0
    if comm is None or len(V.cells.corners):
        values = combined(V, u, np.maximum(cells, 0), at, x.shape[:-1])
    else:
        values = asarray(np.full((*x.shape[:-1], *V.value_shape), np.nan, u.dtype), device=leaf_family(type(u)))
    if comm is not None:
        values, found = seen_by_all(comm, values, found)
    missed = np.flatnonzero(~found)
    if len(missed) and outside == "raise":
        raise ValueError(
            f"The point {flat[missed[0]].tolist()} lies in no cell of the mesh"
            + (f", like {len(missed) - 1} others" if len(missed) > 1 else "")
            + '. With `outside="nan"` its value is NaN.'
        )
    return values


def combined(V: Any, u: Any, cells: np.ndarray, at: np.ndarray, shape: tuple[int, ...]) -> Any:
    """Sums over the cells' degrees of freedom at points (n, dim) that form a shape, gathered where u is."""
    weights = transformed(V.element, V.cells, cells, at)  # (n, K) or (n, K, space)
    weights[np.isnan(at[:, 0])] = np.nan  # (constants know no points)
    weights = weights if V.signs is None else weights * V.signs[cells][..., None]
    weights = weights[..., None] if weights.ndim == 2 else weights
    family, flat = leaf_family(type(u.parent)), u.parent
    entries = V.components_at(V.dofs.table[cells] * math.prod(V.block))  # (n, K, components)
    whole = (*shape, V.element.size, *V.value_shape)
    each = *V.dofs.table[cells].shape, math.prod(V.value_shape)
    weights = np.broadcast_to(weights, each).reshape(whole)
    entries = np.broadcast_to(entries, each).reshape(whole)
    kept = flat.dtype if flat.dtype.kind in "fc" else np.float64
    products = flat[placed(family, entries)] * placed(family, weights.astype(kept))
    return verbs.materialize(verbs.sum(products, axis=len(shape)))


def tabulated(V: Any, points: Any, derivatives: int) -> np.ndarray:
    """`Space.tabulate`."""
    at, n = np.asarray(points, dtype=float), len(V.cells.corners)
    cells, whole = np.repeat(np.arange(n), len(at)), np.tile(at, (n, 1))
    if not derivatives:
        values = transformed(V.element, V.cells, cells, whole)
    else:
        slopes, J = V.element.tabulate(whole, derivatives), V.cells.jacobians(cells, whole)
        if V.element.mapping == "contravariant":
            slopes = np.einsum("nij,nkjr->nkir", J / np.linalg.det(J)[:, None, None], slopes)
        elif V.element.mapping == "covariant":
            slopes = np.einsum("nji,nkjr->nkir", np.linalg.inv(J), slopes)
        values = np.einsum("nk...r,nrd->nk...d", slopes, np.linalg.inv(J))
    values = values.reshape(n, len(at), *values.shape[1:])
    if V.signs is None:
        return values
    return values * V.signs.reshape(n, 1, V.element.size, *[1] * (values.ndim - 3))


def sampled(V: Any, u: Any, points: Any) -> np.ndarray:
    """`Space.sample`."""
    u = local_function(V, u)
    check(u, V)
    at = V.element.cell.vertices if points is None else np.asarray(points, dtype=float)
    n, q = V.mesh.points("cell").size, len(at)
    if not n:  # (a process without cells)
        return np.empty((0, q, *V.value_shape), u.dtype)
    return verbs.to_numpy(combined(V, u, np.repeat(np.arange(n), q), np.tile(at, (n, 1)), (n, q)))
