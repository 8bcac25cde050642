"""Stable time steps, from the spectra of operators on reference cells.

Upwind advection and one-sided diffusion on a row of cells, and advection on a small periodic box of simplices,
are written out as matrices once for an element; a method's region of stability then says how large a step may
be.

>>> from mirabelle import dg
>>> from mirabelle.dg.stability import stable_step
>>> limit = stable_step(dg.element("line", 3, "gauss"), dg.RK4())    # of a dt (2 / h)
>>> round(limit.advection / 2, 4)
0.1454
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from mirabelle.dg.elements import ReferenceElement, element
from mirabelle.dg.meshes import box
from mirabelle.dg.operators import Rule, rule
from mirabelle.dg.time.methods import CarpenterKennedy54, stable_dt_factor

# Simplices of higher order have matrices too large to look at; they follow the row of cells.
HIGHEST = {"triangle": 6, "tetrahedron": 3}
WAVES = 48


class Limits(NamedTuple):
    """The largest stable step times half the speed over the cell's extent, and times diffusivity over its
    square."""

    advection: float
    diffusion: float


@functools.cache
def stable_step(of: ReferenceElement, method: Any = None) -> Limits:
    """The limits of an element with a method (by default `CarpenterKennedy54()`)."""
    method = CarpenterKennedy54() if method is None else method
    # A row of cells of lines. Of lumped masses, as the exact ones give the lower limit, too.
    line = rule(element("line", of.order, of.kind_of_nodes if of.is_tensor else "gauss"))
    advection = stable_dt_factor(_row(line, 1.0), method)
    diffusion = stable_dt_factor(_diffusion(line), method)
    if not of.is_tensor:
        order = min(of.order, HIGHEST[of.cell])
        same = rule(element("line", order, "gauss"))
        spectrum = _simplices(of.cell, order)

        def ratio(by: Any) -> float:
            return stable_dt_factor(spectrum, by) / stable_dt_factor(_row(same, 1.0), by)

        # Faces of simplices lie closer together than half of what they enclose suggests. Diffusion has a real
        # spectrum, and so one ratio for all methods.
        advection, diffusion = advection * ratio(method), diffusion * min(ratio(CarpenterKennedy54()), 1.0) ** 2
    return Limits(advection, diffusion)


def _waves() -> np.ndarray:
    return np.exp(1j * np.linspace(0, math.pi, WAVES))


def _one_sided(line: Rule, upwind: bool) -> list[np.ndarray]:
    """d/dξ with the value at faces from the left (upwind) or the right, for waves from cell to cell."""
    left, right = line.to_faces
    lift_left, lift_right = line.lift.T
    D = line.strong[0]
    out = []
    for z in _waves():
        # What the neighbour is: the cell itself times a phase.
        A = D.astype(complex)
        if upwind:
            A = A + np.outer(lift_left, left - right / z)
        else:
            A = A - np.outer(lift_right, right - left * z)
        out.append(A)
    return out


def _row(line: Rule, speed: float) -> np.ndarray:
    return np.concatenate([np.linalg.eigvals(-speed * A) for A in _one_sided(line, True)])


def _diffusion(line: Rule) -> np.ndarray:
    pairs = zip(_one_sided(line, True), _one_sided(line, False), strict=True)
    return np.concatenate([np.linalg.eigvals(A @ B) for A, B in pairs])


@functools.cache
def _simplices(cell: str, order: int) -> np.ndarray:
    """Eigenvalues of upwind advection in a unit box of few cells, over the rate that `max_dt` measures."""
    e = element(cell, order)
    r, d = rule(e), e.dims
    mesh = box((1,) * d, lower=(0.0,) * d, upper=(1.0,) * d, cell=cell, periodic=True)
    K, n, nq = len(mesh), len(e.nodes), r.face_points.shape[1]
    from mirabelle.dg.geometry import geometry

    g = geometry(mesh, e)
    normal, size = g.normals(r.face_points, np.stack([f.normal for f in e.faces]).astype(float))
    other = mesh.face_permutation(r.reference_face_points)
    nodes = np.asarray(r.face_nodes).reshape(-1)
    out = []
    for direction in ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.5, -0.25], [-1.0, 1.0, 0.5]):
        v = np.array(direction[:d]) / np.linalg.norm(direction[:d])
        along = np.einsum("d,dfqk->fqk", v, normal)[:, 0]  # (Nf, K)
        rate = 0.5 * (np.abs(along) * size[:, 0] / g.jacobian[0]).sum(0).max()
        A = np.zeros((n, K, n, K))
        transport = np.einsum("rdk,d->rk", g.contravariant[:, :, 0], v) / g.jacobian[0]
        for k in range(K):
            A[:, k, :, k] -= np.einsum("r,rij->ij", transport[:, k], r.strong)
            for q, node in enumerate(nodes):
                a = along[q // nq, k]
                if a < 0:
                    s = r.lift[:, q] * a * size[q // nq, 0, k] / g.jacobian[0, k]
                    there = other[q, k]
                    A[:, k, node, k] += s
                    A[:, k, nodes[there // K], there % K] -= s
        out.append(np.linalg.eigvals(A.reshape(n * K, n * K)) / rate)
    return np.concatenate(out)
