"""Elements of fenics-basix: Raviart-Thomas, Nédélec and BDM of any degree, bubbles, and many others.

Where a cell sees an edge or face the other way round, basix says by which matrix the functions there change.
A permutation with signs goes into the tables of a space; other elements are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.elements import KINDS, Element, element
from mirabelle.arraytypes.meshdata.referencecells import reference_cell

MAPPINGS = {"identity": "identity", "contravariantPiola": "contravariant", "covariantPiola": "covariant"}


@dataclass(frozen=True, eq=False, repr=False)
class BasixElement(Element):
    """An element that basix tabulates, in our order of functions: the cell's, its faces', edges', vertices'."""

    of: Any
    columns: np.ndarray  # which of basix's functions is the first, the second, ...

    def _table(self, x: np.ndarray, derivatives: int) -> np.ndarray:
        table = self.of.tabulate(derivatives, x.reshape(-1, self.dim))[:, :, self.columns]
        table = table.reshape(*table.shape[:1], *x.shape[:-1], len(self.columns), *self.value_shape)
        return np.moveaxis(table[1:], 0, -1) if derivatives else table[0]

    def order(self, kind: str, seen: tuple[int, ...]) -> np.ndarray:
        return np.abs(self._turned(kind, seen)).argmax(axis=1)

    def sign(self, kind: str, seen: tuple[int, ...]) -> Any:
        return self._turned(kind, seen).sum(axis=1)

    def _turned(self, kind: str, seen: tuple[int, ...]) -> np.ndarray:
        """The functions of a cell's entity by those of the mesh's: a permutation with signs."""
        n = self.entity_dofs[kind]
        odd = sum(a > b for i, a in enumerate(seen) for b in seen[i + 1 :]) % 2
        if not odd or kind == "cell":
            return np.eye(n)
        # The reflection is the last of the transformations that generate all others.
        turned: np.ndarray = self.of.entity_transformations()["interval" if kind == "edge" else "triangle"][-1]
        return turned

    def __reduce__(self) -> Any:
        if self.family in ("RT", "N") and self is element(self.family, self.shape, self.degree):
            return element, (self.family, self.shape, self.degree)
        raise TypeError(
            f"{self!r} is basix's, whose elements are not pickled. Send what makes it, and make it there."
        )

    def interpolation(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of the reference cell, and the matrix (K, components, points) that determines a function."""
        points = self.of.points
        matrix = self.of.interpolation_matrix[self.columns]
        return points, matrix.reshape(len(self.columns), -1, len(points))


def of_higher_degree(family: str, shape: str, degree: int) -> BasixElement:
    """Raviart-Thomas or Nédélec of a degree above 1."""
    try:
        basix: Any = import_module("basix")
    except ImportError:
        raise ImportError(
            f"{family} elements of degree {degree} are tabulated by basix, which is missing: "
            f'`pip install fenics-basix`. Without it there is `md.element("{family}", "{shape}", 1)`.'
        ) from None
    of = basix.create_element(
        basix.ElementFamily.RT if family == "RT" else basix.ElementFamily.N1E,
        basix.CellType[shape],
        degree,
        basix.LagrangeVariant.legendre,
    )
    return replace(from_basix(of), family=family)


def from_basix(of: Any) -> BasixElement:
    """An element of basix as one of ours, or a sentence that says why it cannot be."""
    shape = of.cell_type.name
    if shape not in ("interval", "triangle", "tetrahedron"):
        raise ValueError(
            f"Elements of basix are taken on intervals, triangles and tetrahedra, and this is one on a "
            f'{shape}, whose vertices basix numbers in another order. There is `md.element("Q", "{shape}", 2)`.'
        )
    mapping = MAPPINGS.get(of.map_type.name)
    if mapping is None or (mapping == "identity") != (not of.value_shape):
        raise ValueError(
            f"Functions of this element of basix have the shape {list(of.value_shape)} and the map "
            f"{of.map_type.name}: there are scalar ones, and vectors by Piola's maps. A vector of "
            "scalar ones is `md.space(mesh, element, components=2)`."
        )
    cell, dim = reference_cell(shape), len(of.entity_dofs) - 1
    counts, columns = {}, []
    for kind in (k for k in KINDS if k in cell.entities):
        dofs = of.entity_dofs[dim if kind == "cell" else {"face": 2, "edge": 1, "vertex": 0}[kind]]
        if dofs[0]:
            counts[kind] = len(dofs[0])
            columns += [c for entity in dofs for c in entity]
    if not of.discontinuous and not (
        _signed(of, "interval", counts.get("edge", 0)) and counts.get("face", 0) < 2
    ):
        raise ValueError(
            "Where cells see an edge or face the other way round, functions of this element "
            f"({of.family.name} of degree {of.degree}) are mixed by a matrix, and tables of degrees of freedom "
            "hold permutations and signs only. On triangles the variant `basix.LagrangeVariant.legendre` "
            "makes such of most; on tetrahedra there are those of the lowest degree."
        )
    family = of.family.name
    return BasixElement(family, shape, of.degree, counts, None, mapping, of, np.array(columns))


def _signed(of: Any, entity: str, dofs: int) -> bool:
    """Is the reflection of an edge a permutation with signs?"""
    if not dofs:
        return True
    matrix = np.abs(of.entity_transformations()[entity][-1])
    return bool(np.allclose(matrix.sum(axis=0), 1) and np.allclose(matrix.max(axis=0), 1))
