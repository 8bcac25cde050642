"""Time integration: Runge-Kutta methods, the loop over steps, what is done between steps."""

from mirabelle.dg.time.callbacks import Alive, Analysis, Callback, Probe, SteadyState
from mirabelle.dg.time.methods import (
    RK4,
    SSPRK3,
    BogackiShampine32,
    CarpenterKennedy54,
    DormandPrince54,
    RDPK3SpFSAL35,
    RungeKutta,
    stable_dt_factor,
)
from mirabelle.dg.time.solution import BlowUp, Solution
from mirabelle.dg.time.solve import solve

__all__ = [
    "RK4", "SSPRK3", "Alive", "Analysis", "BlowUp", "BogackiShampine32", "Callback", "CarpenterKennedy54",
    "DormandPrince54", "Probe", "RDPK3SpFSAL35", "RungeKutta", "Solution", "SteadyState", "solve",
    "stable_dt_factor",
]  # fmt: skip
