"""Discontinuous Galerkin methods, written as the mathematics reads, on any array.

Three nouns are kept apart: equations are pointwise physics, a mesh is geometry and who touches whom, a
solver says which polynomials, fluxes and forms are used. A `Semidiscretization` composes them for a type of
arrays, and `solve` goes through time.

>>> import mirabelle as mb
>>> from mirabelle import dg
>>> mesh = dg.box((4, 4), lower=(-1.0, -1.0), upper=(1.0, 1.0), periodic=True)
>>> semi = dg.Semidiscretization(mesh, dg.Advection((1.0, 0.5)), dg.Solver(order=4), array=mb.HostArray)
>>> def wave(x, t): return (mb.sin(mb.pi * (x[0] - t + x[1] - 0.5 * t)),)
>>> solution = dg.solve(semi, (0.0, 0.1), wave, cfl=0.5)
>>> solution.errors(wave)["u"].l2 < 2e-3
True
"""

from mirabelle.dg.boundary import (
    BoundaryCondition,
    Dirichlet,
    FarField,
    Neumann,
    NoSlipWall,
    Prescribed,
    SlipWall,
    SubsonicOutflow,
    SupersonicInflow,
    SupersonicOutflow,
    Symmetry,
)
from mirabelle.dg.capturing import ArtificialViscosity, SubcellBlending
from mirabelle.dg.divided import Divided
from mirabelle.dg.elements import ReferenceElement, element
from mirabelle.dg.equations import (
    Acoustics,
    Advection,
    AdvectionDiffusion,
    Burgers,
    CompressibleEuler,
    CompressibleNavierStokes,
    Constant,
    Diffusion,
    Equations,
    HeterogeneousAcoustics,
    Maxwell,
    Sutherland,
    Tracers,
    VariableAdvection,
)
from mirabelle.dg.fluxes import (
    central,
    chandrashekar,
    entropy_conservative,
    hll,
    hllc,
    kennedy_gruber,
    lax_friedrichs,
    plus_dissipation,
    ranocha,
    roe,
    rusanov,
    shima,
    upwind,
)
from mirabelle.dg.limiters import ModalFilter, PositivityLimiter
from mirabelle.dg.meshes import Mesh, box, read_mesh
from mirabelle.dg.meshes.divided import DividedMesh, read_parts, write_parts
from mirabelle.dg.output import Checkpoint, SaveSolution, load, movie, plot, save, thumbnail
from mirabelle.dg.output.vtk import write_pvd, write_vtu
from mirabelle.dg.semidiscretization import Semidiscretization
from mirabelle.dg.solver import FluxDifferencing, Solver, StrongForm, VolumeForm, WeakForm
from mirabelle.dg.terms import boundary_flux, gradient, interface_flux, lift, right_hand_side, volume_term
from mirabelle.dg.time import (
    RK4,
    SSPRK3,
    Alive,
    Analysis,
    BlowUp,
    BogackiShampine32,
    CarpenterKennedy54,
    DormandPrince54,
    Probe,
    RDPK3SpFSAL35,
    Solution,
    SteadyState,
    solve,
    stable_dt_factor,
)
from mirabelle.dg.viscous import BR1, LDG, SIPG, Viscous

__all__ = [
    "BR1", "LDG", "RK4", "SIPG", "SSPRK3", "Acoustics", "Advection", "AdvectionDiffusion", "Alive",
    "Analysis", "ArtificialViscosity", "BlowUp", "BogackiShampine32", "BoundaryCondition", "Burgers",
    "CarpenterKennedy54", "Checkpoint", "CompressibleEuler", "CompressibleNavierStokes", "Constant",
    "Diffusion", "Dirichlet", "Divided", "DividedMesh", "DormandPrince54", "Equations", "FarField",
    "FluxDifferencing", "HeterogeneousAcoustics", "Maxwell", "Mesh", "ModalFilter", "Neumann", "NoSlipWall",
    "PositivityLimiter", "Prescribed", "Probe", "RDPK3SpFSAL35", "ReferenceElement", "SaveSolution",
    "Semidiscretization", "SlipWall", "Solution", "Solver", "SteadyState", "StrongForm", "SubcellBlending",
    "SubsonicOutflow", "SupersonicInflow", "SupersonicOutflow", "Sutherland", "Symmetry", "Tracers",
    "VariableAdvection", "Viscous", "VolumeForm", "WeakForm", "boundary_flux", "box", "central",
    "chandrashekar", "element", "entropy_conservative", "gradient", "hll", "hllc", "interface_flux",
    "kennedy_gruber", "lax_friedrichs", "lift", "load", "movie", "plot", "plus_dissipation", "ranocha",
    "read_mesh", "read_parts", "right_hand_side", "roe", "rusanov", "save", "shima", "solve",
    "stable_dt_factor", "thumbnail", "upwind", "volume_term", "write_parts", "write_pvd", "write_vtu",
]  # fmt: skip
