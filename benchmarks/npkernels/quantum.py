"""Electron transport: self-energies of scattering, and a contour integral of solves."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def complexes(rng, *shape):
    return rng.random(shape) + 1j * rng.random(shape)


def scattering_inputs(
    rng, momenta, energies, phonon_momenta, frequencies, directions, atoms, neighbours, orbitals
):
    return (
        rng.integers(0, atoms, (atoms, neighbours)),
        complexes(rng, atoms, neighbours, directions, orbitals, orbitals),
        complexes(rng, momenta, energies, atoms, orbitals, orbitals),
        complexes(rng, phonon_momenta, frequencies, atoms, neighbours, directions, directions),
        np.zeros((momenta, energies, atoms, orbitals, orbitals), np.complex128),
    )


@kernel(
    scattering_inputs,
    size={
        "momenta": 3, "energies": 8, "phonon_momenta": 3, "frequencies": 3,
        "directions": 3, "atoms": 8, "neighbours": 2, "orbitals": 4,
    },
    tiny={
        "momenta": 2, "energies": 2, "phonon_momenta": 1, "frequencies": 2,
        "directions": 2, "atoms": 2, "neighbours": 2, "orbitals": 2,
    },
    writes=("sigma",),
)  # fmt: skip
@jit
def scattering_self_energies(neighbour, dh, green, phonons, sigma):
    """What electrons gain and lose to phonons, atom by atom and neighbour by neighbour."""
    momenta, energies = green.shape[:2]
    phonon_momenta, frequencies, atoms, neighbours, directions, _ = phonons.shape
    for k in range(momenta):
        for e in range(energies):
            for q in range(phonon_momenta):
                for w in range(min(frequencies, e + 1)):
                    for a in range(atoms):
                        for b in range(neighbours):
                            g = green[k - q, e - w, neighbour[a, b]]
                            for i in range(directions):
                                left = g @ dh[a, b, i]
                                for j in range(directions):
                                    right = dh[a, b, j] * phonons[q, w, a, b, i, j]
                                    sigma[k, e, a] += left @ right


def contour_inputs(rng, n, columns, slabs, points):
    angles = 2 * np.pi * (np.arange(points) + 0.5) / points
    radii = np.where(np.arange(points) % 2, 0.5, 2.0)
    contour = tuple(complex(z) for z in radii * np.exp(1j * angles))
    return complexes(rng, slabs + 1, n, n), contour, complexes(rng, n, columns)


@kernel(
    contour_inputs,
    size={"n": 250, "columns": 300, "slabs": 2, "points": 12},
    tiny={"n": 4, "columns": 3, "slabs": 2, "points": 2},
)
def contour_integral(xp, hamiltonian, contour, y):
    """Two moments of the resolvent, from solves along two circles."""
    slabs = hamiltonian.shape[0] - 1
    moment_0 = xp.zeros(y.shape, dtype=y.dtype)
    moment_1 = xp.zeros(y.shape, dtype=y.dtype)
    for z in contour:
        t = xp.zeros(hamiltonian.shape[1:], dtype=hamiltonian.dtype)
        for s in range(slabs + 1):
            t += z ** (slabs / 2 - s) * hamiltonian[s]
        x = xp.linalg.solve(t, y)
        if abs(z) < 1.0:
            x = -x
        moment_0 += x
        moment_1 += z * x
    return moment_0, moment_1
