"""Making spaces, and what cannot be one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.basixelements import from_basix
from mirabelle.arraytypes.meshdata.elements import Element, element
from mirabelle.arraytypes.meshdata.meshes import Mesh
from mirabelle.arraytypes.meshdata.spaces import Space


def mesh_shape(mesh: Any) -> str:
    """The shape of all cells of a mesh."""
    shapes = [mesh.shapes[c] for c in mesh.components(mesh.dim)]
    if len(shapes) > 1:
        raise ValueError(
            f"The cells of this mesh have several shapes, {', '.join(shapes)}, and a space has one element. "
            "Make a mesh of each, `md.Mesh(mesh.coordinates, {shape: mesh.cells[shape]})`, or divide its cells."
        )
    return shapes[0]


def space(
    mesh: Mesh, family: Any, degree: int | None = None, *, components: int | tuple[int, ...] | None = None
) -> Space:
    """The functions that are on each cell of a mesh of a family and degree: "P", "Q", "DP", "RT" or "N".

    With `components=2` they are vectors of two such functions, with `components=(2, 2)` matrices. `md.element`
    says which families there are. Instead of a family and a degree an element will do, also one of basix
    (`pip install fenics-basix`): `basix.create_element(basix.ElementFamily.RT, basix.CellType.triangle, 2)`.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    family : str or element
        "P", "Q", "DP", "RT" or "N"; or an element, one of basix say.
    degree : int or None
        Of the polynomials; None where an element is given.
    components : int, tuple of int or None
        The shape of a value: a vector's length, a matrix's shape; None is one number.

    Returns
    -------
    mb.meshdata.Space
        It holds no values: its `tree` and `dofs` are for arrays and loops, `interpolate(f)` makes a
        function.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> md.space(md.unit_square(2, 2), "P", 2, components=2)
    <space of P2 of 2 components on 8 triangles: 50 degrees of freedom>
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f'A space is one on a mesh, not on a {type(mesh).__name__}: `md.space(md.unit_square(8), "P", 2)`.'
        )
    of = _element(mesh, family, degree)
    return Space(mesh, of, _components(of, components))


def _element(mesh: Mesh, family: Any, degree: Any) -> Element:
    if isinstance(family, Element):
        of = family
    elif hasattr(family, "entity_transformations"):  # basix's
        of = from_basix(family)
    else:
        of = element(family, mesh_shape(mesh), int(degree) if isinstance(degree, np.integer) else degree)
    if of.shape != mesh_shape(mesh):
        raise ValueError(
            f"The element {of!r} is one on a {of.shape}, and the cells of this mesh are of the shape "
            f'{mesh_shape(mesh)}: `md.space(mesh, "{of.family}", {of.degree})`.'
        )
    if of.mapping != "identity" and of.dim != mesh.coordinates.shape[1]:
        raise ValueError(
            f"Functions of {of.family} are vectors of {of.dim} components, and this mesh lies in "
            f"{mesh.coordinates.shape[1]} dimensions. On surfaces there are Lagrange elements: "
            '`md.space(mesh, "P", 1)`.'
        )
    return of


def _components(of: Element, components: Any) -> tuple[int, ...]:
    given = () if components is None else components if isinstance(components, tuple) else (components,)
    if not all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) and c > 0 for c in given):
        raise ValueError(
            f"A space has a positive number of components, or a tuple of such, not {components!r}: "
            '`md.space(mesh, "P", 1, components=2)`.'
        )
    if given and of.mapping != "identity":
        raise ValueError(
            f"Functions of {of.family} are vectors already. Leave `components` out: "
            f'`md.space(mesh, "{of.family}", {of.degree})`.'
        )
    return tuple(int(c) for c in given)
