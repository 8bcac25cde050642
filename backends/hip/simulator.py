"""A simulated AMD card: the simulator of `backends.gpu`, with cards of its own."""

from __future__ import annotations

from typing import Any

from mirabelle.backends.gpu.simulator import SimulatedDriver


class SimulatedHipDriver(SimulatedDriver):
    """A card that is none, for ROCArray (MIRABELLE_HIP=simulated)."""

    cards: dict[int, Any] = {}  # noqa: RUF012
    family = "mb.ROCArray"
