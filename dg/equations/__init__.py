"""Equations: pointwise physics, without meshes."""

from mirabelle.dg.equations.acoustics import Acoustics, HeterogeneousAcoustics
from mirabelle.dg.equations.advection import Advection, VariableAdvection
from mirabelle.dg.equations.base import Equations
from mirabelle.dg.equations.burgers import Burgers
from mirabelle.dg.equations.diffusion import AdvectionDiffusion, Diffusion
from mirabelle.dg.equations.euler import CompressibleEuler
from mirabelle.dg.equations.maxwell import Maxwell
from mirabelle.dg.equations.navierstokes import CompressibleNavierStokes, Constant, Sutherland
from mirabelle.dg.equations.tracers import Tracers

__all__ = [
    "Acoustics", "Advection", "AdvectionDiffusion", "Burgers", "CompressibleEuler", "CompressibleNavierStokes",
    "Constant", "Diffusion", "Equations", "HeterogeneousAcoustics", "Maxwell", "Sutherland", "Tracers",
    "VariableAdvection",
]  # fmt: skip
