"""Stable time steps, from the spectra of operators on reference cells.

Upwind advection and diffusion on a row of cells, and on a small periodic box of simplices, are written out as
matrices once for an element; a method's region of stability then says how large a step may be.

>>> from mirabelle import dg
>>> from mirabelle.dg.stability import stable_step
>>> limit = stable_step(dg.element("line", 3, "gauss"), dg.RK4())    # of a dt (2 / h)
>>> round(limit.advection / 2, 4)
0.1454
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mirabelle.dg.elements import ReferenceElement, element
from mirabelle.dg.geometry import geometry
from mirabelle.dg.meshes import box
from mirabelle.dg.operators import Rule, rule, surface_over_volume
from mirabelle.dg.time.methods import CarpenterKennedy54, stable_dt_factor
from mirabelle.dg.viscous import BR1, Viscous, slope_of_jumps

# Simplices of higher order have matrices too large to look at; they follow the row of cells.
HIGHEST, HIGHEST_DIFFUSING = {"triangle": 6, "tetrahedron": 3}, 2
WAVES = 48


class Limits(NamedTuple):
    """The largest stable step, times half the sum of the faces' sizes over the cell's volume times the speed,
    and times a quarter of the sum of all of their products times the diffusivity.

    `jumps` is for a flux that takes away the jumps of what rests as fast as the fastest wave runs (Lax and
    Friedrichs'): at high order that is stiffer than the wave.
    """

    advection: float
    diffusion: float
    jumps: float


@functools.cache
def stable_step(of: ReferenceElement, method: Any = None, viscous: Viscous | None = None) -> Limits:
    """The limits of an element with a method (by default `CarpenterKennedy54()`), and with the treatment of
    second derivatives (by default `BR1()`)."""
    method, viscous = method or CarpenterKennedy54(), viscous or BR1()
    line = rule(element("line", of.order, of.kind_of_nodes if of.is_tensor else "gauss"))
    advection = stable_dt_factor(_row(line), method)
    jumps = stable_dt_factor(np.concatenate([_row(line, 0.5), _row(line, 0.0)]), method)
    diffusion = stable_dt_factor(_diffusing_row(line, viscous, of.dims), method)
    if not of.is_tensor:
        # Faces of simplices lie closer together than half of what they enclose suggests.
        order = min(of.order, HIGHEST[of.cell])
        same, small = rule(element("line", order, "gauss")), small_box(of.cell, order, 1)
        advection *= stable_dt_factor(small.advecting(), method) / stable_dt_factor(_row(same), method)
        jumps *= stable_dt_factor(small.jumping(), method) / stable_dt_factor(_row(same, 0.0), method)
        # The fastest waves of diffusion change from cell to cell along all axes; thin cells have faster ones.
        order = min(order, HIGHEST_DIFFUSING)
        row = _diffusing_row(rule(element("line", order, "gauss")), viscous, of.dims)
        spectrum = np.concatenate([small_box(of.cell, order, 2, w).diffusing(viscous) for w in (1.0, 4.0)])
        diffusion *= stable_dt_factor(spectrum, method) / stable_dt_factor(row, method)
    return Limits(advection, diffusion, min(advection, jumps))


# A row of lines, by waves from cell to cell: what the neighbour is, is the cell itself times a phase


def _waves() -> np.ndarray:
    return np.exp(1j * np.linspace(0, math.pi, WAVES))


def _row(line: Rule, speed: float = 1.0) -> np.ndarray:
    """Eigenvalues of advection from the left to the right, where half of each jump is taken away at speed 1."""
    left, right = line.to_faces
    D, (before, after) = line.strong[0], line.lift.T
    down, up = 0.5 * (1.0 + speed), 0.5 * (1.0 - speed)
    return np.concatenate(
        [
            np.linalg.eigvals(
                -speed * D
                - np.outer(before, down * (left - right / z))
                - np.outer(after, up * (right - left * z))
            )
            for z in _waves()
        ]
    )


def _diffusing_row(line: Rule, viscous: Viscous, dims: int) -> np.ndarray:
    """Eigenvalues of diffusion along a row of cubes."""
    normal, inside = np.array([[-1.0], [1.0]]), line.to_faces
    (left, right), shares = inside, [_shares(viscous, n) for n in normal]
    pull = slope_of_jumps(viscous, line.element.order, dims, float(dims))
    found = []
    for z in _waves():
        outside = np.stack([right / z, left * z])
        A = _diffusion([line.strong[0]], line.lift, inside, outside, normal.T, np.array(shares), pull, viscous)
        found.append(np.linalg.eigvals(A))
    return np.concatenate(found)


# Any cells


def _shares(viscous: Viscous, normal: np.ndarray) -> tuple[float, float]:
    """The inside's parts in the value at a face, and in the flux."""
    of = (1.0,), (0.0,), tuple(map(float, normal))
    return float(viscous.value(*of)[0]), float(viscous.flux(*of)[0])


def _diffusion(
    slopes: Sequence[np.ndarray],
    lift: np.ndarray,
    inside: np.ndarray,
    outside: np.ndarray,
    normal: np.ndarray,
    shares: np.ndarray,
    pull: Any,
    viscous: Viscous,
) -> np.ndarray:
    """The matrix of diffusion, as `dg.terms` has it: derivatives in cells (d of them), what values at faces
    add (n, f), values there (f, n) on both sides, normals (d, f)."""
    of_value, of_flux = shares.T[:, :, None]
    value = of_value * inside + (1.0 - of_value) * outside
    whole = [G + lift @ (c[:, None] * (value - inside)) for G, c in zip(slopes, normal, strict=True)]
    seen = slopes if viscous.broken else whole

    def across(trace: np.ndarray, of: Sequence[np.ndarray]) -> Any:
        return sum(c[:, None] * (trace @ q) for c, q in zip(normal, of, strict=True))

    own = across(inside, seen) + pull * (value - inside)
    other = across(outside, seen) + pull * (outside - value)
    jump = of_flux * own + (1.0 - of_flux) * other - across(inside, whole)
    return sum(G @ q for G, q in zip(slopes, whole, strict=True)) + lift @ jump


class SmallBox:
    """Operators on a periodic box of few simplices, as matrices over all of its nodes: so many squares an axis,
    of a width, halved or cut into six."""

    def __init__(self, cell: str, order: int, cells: int, width: float = 1.0) -> None:
        e = element(cell, order)
        r, d = rule(e), e.dims
        upper = (width * cells, *(float(cells),) * (d - 1))
        mesh = box((cells,) * d, lower=(0.0,) * d, upper=upper, cell=cell, periodic=True)
        g = geometry(mesh, e)
        K, n, (faces, nq, _) = len(mesh), len(e.nodes), r.face_points.shape
        normal, size = g.normals(r.face_points, np.stack([f.normal for f in e.faces]).astype(float))
        self.rule, self.dims = r, d
        # Face points are numbered as (face, point, cell), nodes as (node, cell).
        self.normal = np.broadcast_to(normal, (d, faces, nq, K)).reshape(d, -1)
        sizes = (size / g.jacobian)[:, 0]  # (Nf, K)
        self.sizes = np.broadcast_to(sizes[:, None], (faces, nq, K)).reshape(-1)
        faces_normals = (normal * size / g.jacobian)[:, :, 0]  # (d, Nf, K)
        products = np.einsum("afk,agk->fgk", faces_normals, faces_normals)
        self.products = 0.25 * np.abs(products).sum((0, 1)).max()
        self.steepness = surface_over_volume(r, g, size).max()
        each = np.eye(K)
        self.inside = np.einsum("fi,kl->fkil", r.to_faces, each).reshape(-1, n * K)
        self.outside = self.inside[mesh.face_permutation(r.reference_face_points).reshape(-1)]
        self.lift = np.einsum("if,kl->ikfl", r.lift, each).reshape(n * K, -1) * self.sizes
        metric = g.contravariant[:, :, 0] / g.jacobian[0]  # (r, d, K)
        self.slopes = np.einsum("rak,rij,kl->aikjl", metric, r.strong, each).reshape(d, n * K, n * K)

    def advecting(self) -> np.ndarray:
        """Eigenvalues of upwind advection in several directions, over the rates that `max_dt` measures."""
        out = []
        for direction in ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.5, -0.25], [-1.0, 1.0, 0.5]):
            v = np.array(direction[: self.dims]) / np.linalg.norm(direction[: self.dims])
            along = v @ self.normal
            faces, nq = self.rule.face_points.shape[:2]
            rate = 0.5 * np.abs(along * self.sizes).reshape(faces, nq, -1)[:, 0].sum(0).max()
            upwind = np.minimum(along, 0.0)[:, None] * (self.outside - self.inside)
            A = -np.einsum("a,aij->ij", v, self.slopes) - self.lift @ upwind
            out.append(np.linalg.eigvals(A) / rate)
        return np.concatenate(out)

    def jumping(self) -> np.ndarray:
        """Eigenvalues where jumps are all that moves, over the rate that `max_dt` measures."""
        faces, nq = self.rule.face_points.shape[:2]
        rate = 0.5 * self.sizes.reshape(faces, nq, -1)[:, 0].sum(0).max()
        return np.linalg.eigvals(0.5 * self.lift @ (self.outside - self.inside)) / rate

    def diffusing(self, viscous: Viscous) -> np.ndarray:
        """Eigenvalues of diffusion, over the rates that `max_dt` measures."""
        shares = np.array([_shares(viscous, n) for n in self.normal.T])
        pull = slope_of_jumps(viscous, self.rule.element.order, self.dims, self.steepness)
        A = _diffusion(self.slopes, self.lift, self.inside, self.outside, self.normal, shares, pull, viscous)
        return np.linalg.eigvals(A) / self.products


small_box = functools.cache(SmallBox)
