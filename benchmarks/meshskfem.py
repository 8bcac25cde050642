"""scikit-fem beside meshdata: assembly of the Laplacian, and the number that both find for a membrane."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

ELEMENTS = {1: "ElementTriP1", 2: "ElementTriP2"}


def library() -> Any:
    """scikit-fem (`pip install scikit-fem`), or None."""
    try:
        return importlib.import_module("skfem")
    except ImportError:
        return None


def basis_of(mesh: Any, degree: int) -> Any:
    """Its functions on a mesh of ours."""
    skfem = library()
    triangles = skfem.MeshTri(mesh.coordinates.T.copy(), mesh.cells["triangle"].T.astype(np.int64).copy())
    return skfem.Basis(triangles, getattr(skfem, ELEMENTS[degree])(), intorder=max(2 * degree - 2, 1))


def assembly(mesh: Any, degree: int) -> Callable[[], Any] | None:
    """The assembly of the Laplacian's matrix, whose pattern it finds each time; the mesh is known already."""
    if library() is None:
        return None
    laplace = importlib.import_module("skfem.models.poisson").laplace
    basis = basis_of(mesh, degree)
    return lambda: laplace.assemble(basis)


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """CPU seconds, best."""
    best = float("inf")
    for _ in range(rounds):
        t = time.process_time()
        call()
        best = min(best, time.process_time() - t)
    return best


def same(ours: np.ndarray, theirs: Any) -> None:
    """Entries of both matrices, whose numberings differ."""
    found, wanted = np.abs(ours).sum(), np.abs(theirs.data).sum()
    assert abs(found - wanted) < 1e-10 * wanted, (found, wanted)


def membrane_here(n: int = 16) -> float:
    """-div grad u = 1 with u = 0 around it, by quadratic elements: at the centre."""
    mesh = md.unit_square(n)
    V, corners = md.space(mesh, "P", 2), mesh.closure("cell", "vertex")
    at, w = md.quadrature("triangle", 2)
    slopes, means = V.element.tabulate(at, derivatives=1), w @ V.element.tabulate(at)

    def element(x: Any, K: Any, f: Any) -> None:
        J = np.stack([x[1] - x[0], x[2] - x[0]], axis=1)
        size, inverse = abs(np.linalg.det(J)), np.linalg.inv(J)
        for q in range(len(w)):
            g = slopes[q] @ inverse
            K += w[q] * size * (g @ g.T)
        f += size * means

    A, f = md.pattern(V.dofs).matrix(), V.zeros()
    md.loop(
        mesh.points("cell"), element, md.READ(mesh.coordinates, corners), md.INC(A.data, A.dofs),
        md.INC(f, V.dofs),
    )  # fmt: skip
    md.dirichlet(A, f, V.boundary_dofs(), 0.0)
    u, _ = mb.linalg.cg(A, f, rtol=1e-12)
    return float(V.evaluate(u, [0.5, 0.5]))


def membrane_there(n: int = 16) -> float | None:
    """The same by scikit-fem, with its direct solver."""
    skfem = library()
    if skfem is None:
        return None
    models = importlib.import_module("skfem.models.poisson")
    basis = basis_of(md.unit_square(n), 2)
    A, f = models.laplace.assemble(basis), models.unit_load.assemble(basis)
    u = skfem.solve(*skfem.condense(A, f, D=basis.get_dofs()))
    return float((basis.probes(np.array([[0.5], [0.5]])) @ u)[0])


def note() -> str:
    """What both find, as a line."""
    theirs = membrane_there()
    said = "-" if theirs is None else f"{theirs:.7f}"
    here = f"{membrane_here():.7f}"
    return f"A membrane by quadratic elements, at the centre: {here}; scikit-fem {said} (exact 0.0736714)."
