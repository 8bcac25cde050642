"""What a right-hand side has to move, and what others reach: the figures that measured ones stand beside.

Bytes an unknown of one right-hand side on affine tetrahedra in float64, counted from the method (26 doubles of
geometry and 32 B of connectivity a cell): *arrays*, where each flux, trace and product is an array of its own;
*three kernels*, volume, surface and lift; *one kernel* that reads states and neighbours' traces and writes
rates.
"""

from __future__ import annotations

from collections.abc import Mapping

# physics, order: arrays, three kernels, one kernel.
BYTES: Mapping[tuple[str, int], tuple[float, float, float]] = {
    ("wave", 1): (227.0, 164.0, 57.0),
    ("wave", 2): (179.6, 125.6, 42.0),
    ("wave", 3): (157.0, 106.0, 35.4),
    ("wave", 4): (143.4, 93.7, 31.7),
    ("euler", 1): (216.8, 156.8, 53.6),
    ("euler", 2): (175.0, 122.2, 40.6),
    ("euler", 3): (154.4, 104.0, 34.7),
    ("euler", 4): (141.7, 92.3, 31.3),
    ("navier-stokes", 1): (596.8, 548.8, 195.2),
    ("navier-stokes", 2): (491.2, 443.2, 157.8),
    ("navier-stokes", 3): (430.4, 382.4, 138.2),
    ("navier-stokes", 4): (389.7, 341.7, 125.9),
}

# Unknowns a second of one right-hand side of MIRGE's production stack (fusion and contraction, OpenCL) on an
# NVIDIA H200, measured on 2026-11-21: wave on 48 000, 24 576 and 13 182 tetrahedra, Euler on 34 992 and 6 000.
MIRGE_H200: Mapping[tuple[str, int], float] = {
    ("wave", 2): 4.5e9,
    ("wave", 3): 4.1e9,
    ("wave", 4): 2.9e9,
    ("euler", 1): 1.4e9,
    ("euler", 3): 1.2e9,
}

# Unknowns a second of the pytato stack on two cores of the machine of the host's figures, for orders 1 to 4:
# the lowest, the highest.
PYTATO_HOST: Mapping[str, tuple[float, float]] = {"wave": (16e6, 26e6), "euler": (9.5e6, 13e6)}


def bounds(physics: str, order: int, unknowns: int) -> dict[str, float] | None:
    """Bytes of one right-hand side, by how it is computed.

    >>> bounds("euler", 3, 1000)
    {'arrays': 154400.0, 'three_kernels': 104000.0, 'one_kernel': 34700.0}
    """
    found = BYTES.get((physics, order))
    if found is None:
        return None
    names = ("arrays", "three_kernels", "one_kernel")
    return {name: each * unknowns for name, each in zip(names, found, strict=True)}
