"""Flux differences of a gas as a user of NumPy or JAX writes them: two-point fluxes of the nodes of lines.

Nodes, weights and derivatives of the line and the mesh with its neighbours are mirabelle's; all else is written
anew here, so that equal results say something about both. Under JAX, one `jit` compiles a right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

GAMMA = 1.4
# Other ways were slower under XLA: joined pairs i < j and one einsum, pairs padded or added in place to their
# nodes, fields apart from each other.
FORMS = {
    "all": "the fluxes of all n n pairs of a line's nodes, contracted with the split matrix by einsum",
    "half": "the fluxes of the pairs i < j, those equally far apart at a time, then the sum of each node",
    "half, logs": "the same with logarithms taken once a node, not for each pair",
}

Arrays = Mapping[str, Any]


def arrays_of(semi: Any) -> dict[str, np.ndarray]:
    """A method on a mesh of affine quadrilaterals or hexahedra, in NumPy: the split matrix, metric terms, who
    touches whom."""
    from mirabelle import dg

    e, corners, d, K = semi.element, semi.mesh.coordinates, semi.dims, semi.K
    # A reference cell's edges have length 2, and its vertices are counted with the first coordinate slowest.
    edges = np.stack([corners[:, 2 ** (d - 1 - r)] - corners[:, 0] for r in range(d)], 1) / 2
    if e.kind_of_nodes != "gauss-lobatto" or not np.allclose(corners[:, -1] - corners[:, 0], 2 * edges.sum(1)):
        raise ValueError("This is written for Gauss-Lobatto nodes on affine cells.")
    metric = np.moveaxis(np.linalg.inv(np.moveaxis(edges, 2, 0)), 0, 2)  # (r, d, K)
    size = np.sqrt(np.sum(metric * metric, 1))
    outward = [sign * m / s for m, s in zip(metric, size, strict=True) for sign in (-1, 1)]
    face = dg.element(e.face_cell, e.order, e.kind_of_nodes)
    touching, nodes = semi.mesh.face_permutation(face.nodes), e.face_nodes.reshape(-1)
    split = 2 * e.line.differentiation[0]
    return {
        "split": split - np.diag(np.diag(split)),  # faces cancel what a node has with itself
        "weight": e.line.weights,
        "own": e.face_nodes.astype(np.int32),
        "neighbour": (nodes[touching // K] * K + touching % K).reshape(*e.face_nodes.shape, K).astype(np.int32),
        "metric": metric[:, :, None],  # (r, d, 1, K)
        "normal": np.stack(outward, 1)[:, :, None],  # (d, Nf, 1, K)
        "scale": np.repeat(size, 2, axis=0)[:, None],  # (Nf, 1, K)
    }


class Program:
    """Right-hand sides with the flux of H. Ranocha (doi:10.1007/978-3-030-39647-3_42), inside of cells and
    between them; `xp` is NumPy or jax.numpy.

    States are (m, Np, K); arrays are given to each call, so that a compiler does not take them for constants.
    """

    def __init__(self, form: str, xp: Any) -> None:
        if form not in FORMS:
            raise ValueError(f"there is no form {form!r}; there are {', '.join(FORMS)}")
        self.xp, self.differences = xp, self.of_all_pairs if form == "all" else self.of_half_the_pairs
        self.logs_at_nodes = form.endswith("logs")

    def rhs(self, a: Arrays, u: Any) -> Any:
        """Flux differences along the lines of each direction, and numerical fluxes at their ends."""
        xp, n, d, w = self.xp, len(a["split"]), len(a["metric"]), self.values(u)
        inside, outside = w[:, a["own"]], w.reshape(len(w), -1)[:, a["neighbour"]]
        fluxes = a["scale"] * self.flux(inside, outside, a["normal"]) / a["weight"][0]
        fluxes = fluxes.reshape(len(u), 2 * d, *[n] * (d - 1), -1)
        total = 0.0
        for r, metric in enumerate(a["metric"]):
            lines = w.reshape(len(w), n**r, n, n ** (d - 1 - r), -1)
            rates = self.differences(a["split"], lines, metric[:, None, None])
            first, last = [fluxes[:, 2 * r + end].reshape(rates[:, :, :1].shape) for end in (0, 1)]
            ends = xp.concatenate([first, xp.zeros_like(rates[:, :, 2:]), last], 2)
            total = total - (rates + ends).reshape(u.shape)
        return total

    def of_all_pairs(self, split: Any, lines: Any, metric: Any) -> Any:
        """The sums of D_ij f(u_i, u_j) over j, for values (w, before, n, after, K)."""
        pairs = self.flux(lines[:, :, :, None], lines[:, :, None], metric[:, None])
        return self.xp.einsum("ij,mbijak->mbiak", split, pairs)

    def of_half_the_pairs(self, split: Any, lines: Any, metric: Any) -> Any:
        n = len(split)
        apart = {k: self.flux(lines[:, :, : n - k], lines[:, :, k:], metric) for k in range(1, n)}
        rows = [
            sum(split[i, j] * apart[abs(i - j)][:, :, min(i, j)] for j in range(n) if j != i) for i in range(n)
        ]
        return self.xp.stack(rows, 2)

    # Physics

    def values(self, u: Any) -> Any:
        """Density, velocity and pressure, and the logarithms of the first and the last of them."""
        rho, *momentum, energy = u
        v = [m / rho for m in momentum]
        p = (GAMMA - 1.0) * (energy - 0.5 * sum(m * c for m, c in zip(momentum, v, strict=True)))
        logs = [self.xp.log(rho), self.xp.log(p)] if self.logs_at_nodes else []
        return self.xp.stack([rho, *v, p, *logs])

    def flux(self, left: Any, right: Any, n: Any) -> Any:
        """The two-point flux along a vector of any length."""
        xp, d = self.xp, len(n)
        (rho, *v, p), (rho_, *v_, p_) = left[: d + 2], right[: d + 2]
        if self.logs_at_nodes:
            of_density, of_pressure = right[-2] - left[-2], right[-1] - left[-1]
            of_quotient = of_density - of_pressure
        else:
            of_density, of_quotient = xp.log(rho_ / rho), xp.log(rho_ * p / (rho * p_))
        along, along_ = [sum(c * x for c, x in zip(w, n, strict=True)) for w in (v, v_)]
        mass = self.logarithmic_mean(rho, rho_, of_density) * (0.5 * (along + along_))
        inner = p * p_ / (self.logarithmic_mean(rho * p_, rho_ * p, of_quotient) * (GAMMA - 1.0))
        energy = mass * (0.5 * sum(c * x for c, x in zip(v, v_, strict=True)) + inner)
        energy = energy + 0.5 * (p * along_ + p_ * along)
        pressure = 0.5 * (p + p_)
        momenta = [mass * (0.5 * (c + x)) + pressure * m for c, x, m in zip(v, v_, n, strict=True)]
        return xp.stack([mass, *momenta, energy])

    def logarithmic_mean(self, a: Any, b: Any, logarithm: Any) -> Any:
        """By a series where they are nearly equal; `logarithm` is that of b / a."""
        relative = (b - a) / (a + b)
        x = relative * relative
        far = x > 1e-4
        series = 2.0 + x * (2 / 3 + x * (2 / 5 + x * (2 / 7 + x * (2 / 9))))
        where = self.xp.where
        return where(far, b - a, a + b) / where(far, logarithm, series)


def compiled_by_jax(form: str, semi: Any) -> Callable[[Any], Any]:
    """`rhs(u)`, compiled as a whole."""
    import jax

    arrays = {name: jax.numpy.asarray(x) for name, x in arrays_of(semi).items()}
    rhs = jax.jit(Program(form, jax.numpy).rhs)
    return lambda u: rhs(arrays, u)
