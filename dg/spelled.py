"""What annotations are spelled with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import mirabelle as mb

if TYPE_CHECKING:
    import os

    import matplotlib.axes
    import numpy.typing as npt

    from mirabelle import dg
    from mirabelle.dg import geometry, operators
    from mirabelle.dg.meshes import parts
    from mirabelle.dg.time import methods

Array: TypeAlias = mb.AbstractArray
# One for all, or one a point.
Number: TypeAlias = "mb.AbstractArray | float"
# (In a compiled step an array without axes.)
Time: TypeAlias = "mb.AbstractArray | float"
# One array a field, or a coordinate; numbers where somebody asks about one state, or one direction.
Fields: TypeAlias = tuple[Any, ...]
# Of the fields inside, those outside, the normal and the equations.
Flux: TypeAlias = Callable[[Fields, Fields, Fields, Any], Fields]
ArrayLike: TypeAlias = "mb.AbstractArray | npt.ArrayLike | Sequence[mb.AbstractArray]"
DTypeLike: TypeAlias = "npt.DTypeLike"
Axes: TypeAlias = "matplotlib.axes.Axes"
File: TypeAlias = "str | os.PathLike[str]"

# What `dg.gradient` returns: what cells see, and what faces see; None without second derivatives.
Gradients: TypeAlias = "tuple[mb.AbstractArray, mb.AbstractArray] | None"

# Classes of modules that import those that take them.
ArtificialViscosity: TypeAlias = "dg.ArtificialViscosity"
Boundary: TypeAlias = "operators.Boundary"
Condition: TypeAlias = "dg.BoundaryCondition"
Geometry: TypeAlias = "geometry.Geometry"
Mesh: TypeAlias = "dg.Mesh"
Operators: TypeAlias = "operators.Operators"
Part: TypeAlias = "parts.Part"
ReferenceElement: TypeAlias = "dg.ReferenceElement"
RungeKutta: TypeAlias = "methods.RungeKutta"
Solution: TypeAlias = "dg.Solution"
Semidiscretization: TypeAlias = "dg.Semidiscretization"
