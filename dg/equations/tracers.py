"""Passive scalars in a flow: species that do not act back on the gas that carries them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mirabelle as mb
from mirabelle.dg.equations.base import Equations
from mirabelle.dg.equations.euler import CompressibleEuler
from mirabelle.dg.spelled import Fields, Number


@dataclass(frozen=True)
class Tracers(Equations):
    """A gas and the densities `rho Y` of `count` species of mass fractions `Y`, which diffuse by `mixing`.

    A numerical flux of the gas carries them by its flux of mass, so that fractions which sum to 1 keep to it.

    Parameters
    ----------
    carrier : CompressibleEuler
        The gas.
    count : int, default 1
        How many species.
    mixing : float, default 0.0
        Their diffusivity.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> mixture = dg.Tracers(dg.CompressibleEuler(1), count=2)
    >>> mixture.names, mixture.primitive_names
    (('rho', 'rho_v1', 'rho_e', 'rho_Y1', 'rho_Y2'), ('rho', 'v1', 'p', 'Y1', 'Y2'))
    >>> u = mixture.conservative(tuple(mb.HostArray([q]) for q in (2.0, 3.0, 1.0, 0.25, 0.75)))
    >>> [f.tolist() for f in mixture.flux(u, 0)[3:]]
    [[1.5], [4.5]]
    """

    carrier: CompressibleEuler
    count: int = 1
    mixing: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.carrier, CompressibleEuler) or self.count < 1:
            raise ValueError(
                f"Tracers: cannot put {self.count!r} tracers into {self.carrier!r}. Give a gas and how many "
                "there are: `Tracers(CompressibleEuler(2), count=1)`."
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "carrier":  # while it is unpickled there is no carrier yet
            raise AttributeError(name)
        return getattr(self.carrier, name)  # pressure, velocity, gamma, ...

    @property
    def dims(self) -> int:
        return self.carrier.dims

    @property
    def second_order(self) -> bool:  # type: ignore[override]
        return self.carrier.second_order

    @property
    def names(self) -> tuple[str, ...]:
        return self.carrier.names + tuple(f"rho_Y{i + 1}" for i in range(self.count))

    @property
    def primitive_names(self) -> tuple[str, ...]:
        return self.carrier.primitive_names + tuple(f"Y{i + 1}" for i in range(self.count))

    def fractions(self, u: Fields) -> Fields:
        """The mass fractions."""
        volume = 1.0 / u[0]
        return tuple(q * volume for q in u[len(self.carrier) :])

    def carried(self, flux: Fields, fractions: Fields) -> Fields:
        """A flux of the gas, and of the tracers that its mass carries."""
        return flux + tuple(flux[0] * y for y in fractions)

    def flux(self, u: Fields, axis: int) -> Fields:
        return self.carried(self.carrier.flux(u, axis), self.fractions(u))

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        return self.carried(self.carrier.normal_flux(u, normal), self.fractions(u))

    def primitive(self, u: Fields) -> Fields:
        return self.carrier.primitive(u) + self.fractions(u)

    def conservative(self, w: Fields) -> Fields:
        return self.carrier.conservative(w) + tuple(w[0] * y for y in w[len(self.carrier) :])

    def entropy_variables(self, u: Fields) -> Fields:
        return self.carrier.entropy_variables(u) + (0.0 * u[0],) * self.count

    def gradient_variables(self, u: Fields) -> Fields:
        return self.carrier.gradient_variables(u) + self.fractions(u)

    def viscous_flux(self, u: Fields, gradients: Sequence[Fields], axis: int) -> Fields:
        scale = self.mixing * u[0]
        species = gradients[axis][self.dims + 1 :]
        return self.carrier.viscous_flux(u, gradients, axis) + tuple(scale * g for g in species)

    def diffusivity(self, u: Fields) -> Number:
        return mb.maximum(self.carrier.diffusivity(u), self.mixing)


def _of_the_carrier(name: str) -> Any:
    return lambda self, *args: getattr(self.carrier, name)(*args)


for _name in ("max_speed", "speeds", "reflected", "positive", "entropy", "entropy_potential", "indicator"):
    setattr(Tracers, _name, _of_the_carrier(_name))
