"""The same operators as a user of NumPy or JAX writes them: gathers by index arrays, and `einsum`.

Nodes and matrices of the element and the mesh with its neighbours are mirabelle's; all else is written anew
here, so that equal results say something about both. Under JAX, one `jit` compiles a right-hand side or a
whole step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

GAMMA, VISCOSITY, PRANDTL = 1.4, 1e-3, 0.72
# M. H. Carpenter, C. A. Kennedy, NASA TM-109112 (1994): k = a k + f(u), u = u + b dt k.
LOW_STORAGE = (
    (0.0, 1432997174477 / 9575080441755),
    (-567301805773 / 1357537059087, 5161836677717 / 13612068292357),
    (-2404267990393 / 2016746695238, 1720146321549 / 2090206949498),
    (-3550918686646 / 2091501179385, 3134564353537 / 4481467310338),
    (-1275806237668 / 842570457699, 2277821191437 / 14882151754819),
)
PHYSICS = ("wave", "euler", "navier-stokes")

Arrays = Mapping[str, Any]


def arrays_of(semi: Any) -> dict[str, np.ndarray]:
    """A method on a mesh of tetrahedra, in NumPy: matrices of the element, metric terms, who touches whom."""
    from mirabelle import dg

    e, mesh, K = semi.element, semi.mesh, semi.K
    if mesh.cell != "tetrahedron" or mesh.order != 1 or semi.solver.over_integration is not None:
        raise ValueError("This is written for straight tetrahedra, without over-integration.")
    face = dg.element(e.face_cell, e.order)
    traces = np.eye(len(e.nodes))[e.face_nodes]  # (Nf, nq, Np)
    # Derivatives of reference coordinates by those of space: cells have edges of length 2 on the reference
    # cell.
    edges = (mesh.coordinates[:, 1:] - mesh.coordinates[:, :1]) / 2
    metric = np.moveaxis(np.linalg.inv(np.moveaxis(edges, 2, 0)), 0, 2)
    outward = np.einsum("fr,rdk->dfk", np.stack([f.normal for f in e.faces]), metric)
    scale = np.sqrt(np.sum(outward * outward, 0))
    touching = mesh.face_permutation(face.nodes)
    nodes = e.face_nodes.reshape(-1)
    return {
        "weak": np.concatenate([e.inverse_mass @ D.T @ e.mass for D in e.differentiation], 1),
        "lift": np.concatenate([e.inverse_mass @ (E.T @ face.mass) for E in traces], 1),
        "derivative": np.concatenate(e.differentiation, 0),
        "own": e.face_nodes.astype(np.int32),
        "neighbour": (nodes[touching // K] * K + touching % K).reshape(*e.face_nodes.shape, K).astype(np.int32),
        "metric": metric[:, :, None],  # (r, d, 1, K)
        "normal": (outward / scale)[:, :, None],  # (d, Nf, 1, K)
        "scale": scale[:, None],  # (Nf, 1, K)
    }


class Program:
    """Right-hand sides of waves or compressible flow; `xp` is NumPy or jax.numpy.

    States are (m, Np, K); arrays are given to each call, so that a compiler does not take them for constants.
    """

    def __init__(self, physics: str, xp: Any) -> None:
        if physics not in PHYSICS:
            raise ValueError(f"{physics} is not written in plain arrays.")
        self.xp, self.wave, self.viscous = xp, physics == "wave", physics == "navier-stokes"

    def rhs(self, a: Arrays, u: Any) -> Any:
        """Volume terms, Lax-Friedrichs fluxes at faces, and what these do to the nodes."""
        xp, n = self.xp, a["normal"]
        directions = [self.flux(u, m) for m in a["metric"]]
        inside, outside = self.both_sides(a, u)
        fastest = xp.maximum(self.speed(inside, n), self.speed(outside, n))
        numerical = 0.5 * (self.flux(inside, n) + self.flux(outside, n) + fastest * (inside - outside))
        if self.viscous:
            slopes = self.gradient(a, self.velocity_and_temperature(u))
            directions = [
                f - self.viscous_flux(u, slopes, m) for f, m in zip(directions, a["metric"], strict=True)
            ]
            mine, theirs = [
                s.reshape(3, 4, *s.shape[1:]) for s in self.both_sides(a, slopes.reshape(-1, *u.shape[1:]))
            ]
            diffused = self.viscous_flux(inside, mine, n) + self.viscous_flux(outside, theirs, n)
            numerical = numerical - 0.5 * diffused
        volume = xp.einsum("in,mnk->mik", a["weak"], xp.concatenate(directions, axis=1), optimize=True)
        values = (a["scale"] * numerical).reshape(len(u), -1, u.shape[2])
        return volume - xp.einsum("iq,mqk->mik", a["lift"], values, optimize=True)

    def step(self, a: Arrays, u: Any, dt: Any) -> Any:
        """A low-storage step of five stages."""
        k = 0.0
        for before, after in LOW_STORAGE:
            k = before * k + self.rhs(a, u)
            u = u + after * dt * k
        return u

    def both_sides(self, a: Arrays, values: Any) -> tuple[Any, Any]:
        """Fields (n, Np, K) at the points of faces: the cell's own, and its neighbours'."""
        return values[:, a["own"]], values.reshape(len(values), -1)[:, a["neighbour"]]

    # Physics

    def pressure(self, u: Any) -> Any:
        rho, x, y, z, energy = u
        return (GAMMA - 1.0) * (energy - 0.5 * (x * x + y * y + z * z) / rho)

    def flux(self, u: Any, n: Any) -> Any:
        """The flux along a vector of any length: of sound of speed 1, or of an ideal gas."""
        if self.wave:
            p, x, y, z = u
            return self.xp.stack([x * n[0] + y * n[1] + z * n[2], p * n[0], p * n[1], p * n[2]])
        rho, x, y, z, energy = u
        p, along = self.pressure(u), (x * n[0] + y * n[1] + z * n[2]) / rho
        momenta = [m * along + p * c for m, c in zip((x, y, z), n, strict=True)]
        return self.xp.stack([rho * along, *momenta, (energy + p) * along])

    def speed(self, u: Any, n: Any) -> Any:
        """The largest speed of a signal along a unit vector."""
        if self.wave:
            return 1.0
        rho, x, y, z, _ = u
        return self.xp.abs(x * n[0] + y * n[1] + z * n[2]) / rho + self.xp.sqrt(GAMMA * self.pressure(u) / rho)

    def velocity_and_temperature(self, u: Any) -> Any:
        """What the gradients of viscous fluxes are taken of."""
        return self.xp.stack([*(m / u[0] for m in u[1:4]), self.pressure(u) / u[0]])

    def gradient(self, a: Arrays, w: Any) -> Any:
        """Derivatives (d, n, Np, K), with means of both sides at faces (the first method of Bassi and
        Rebay)."""
        einsum, (n, nodes, K) = self.xp.einsum, w.shape
        along = einsum("jn,ink->ijk", a["derivative"], w, optimize=True).reshape(n, -1, nodes, K)
        inside, outside = self.both_sides(a, w)
        jumps = a["normal"][:, None] * (0.5 * a["scale"] * (outside - inside))
        lifted = einsum("iq,dnqk->dnik", a["lift"], jumps.reshape(len(jumps), n, -1, K), optimize=True)
        return einsum("rdk,nrik->dnik", a["metric"][:, :, 0], along, optimize=True) + lifted

    def viscous_flux(self, u: Any, g: Any, n: Any) -> Any:
        """The viscous flux along a vector; `g[a][k]` is the derivative of variable k along axis a."""
        dilation = 2.0 / 3.0 * (g[0][0] + g[1][1] + g[2][2])
        stress = [
            VISCOSITY * (sum(n[a] * (g[a][b] + g[b][a]) for a in range(3)) - dilation * n[b]) for b in range(3)
        ]
        heat = VISCOSITY * GAMMA / ((GAMMA - 1.0) * PRANDTL) * sum(n[a] * g[a][3] for a in range(3))
        work = sum(s * m for s, m in zip(stress, u[1:4], strict=True)) / u[0]
        return self.xp.stack([0.0 * heat, *stress, work + heat])


def compiled_by_jax(physics: str, semi: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """`rhs(u)` and `step(u, dt)`, each compiled as a whole."""
    import jax

    program = Program(physics, jax.numpy)
    arrays = {name: jax.numpy.asarray(x) for name, x in arrays_of(semi).items()}
    rhs, step = jax.jit(program.rhs), jax.jit(program.step)
    return lambda u: rhs(arrays, u), lambda u, dt: step(arrays, u, dt)
