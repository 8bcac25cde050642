"""What a method consists of: polynomials, numerical fluxes, the form of volume terms, limiters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mirabelle.dg.fluxes import lax_friedrichs
from mirabelle.dg.spelled import ArtificialViscosity
from mirabelle.dg.viscous import BR1, Viscous


class VolumeForm:
    """How the integral over a cell is taken. A form of one's own is a class with methods of
    `dg.volume_term`.

    >>> from mirabelle import dg
    >>> issubclass(dg.WeakForm, dg.VolumeForm)
    True
    """


@dataclass(frozen=True)
class WeakForm(VolumeForm):
    """Integrated by parts once: test functions are differentiated. Conserves with any quadrature.

    >>> from mirabelle import dg
    >>> dg.Solver(2, volume=dg.WeakForm()).volume
    WeakForm()
    """


@dataclass(frozen=True)
class StrongForm(VolumeForm):
    """Integrated by parts twice: fluxes are differentiated, and faces see the difference to the numerical
    flux.

    >>> from mirabelle import dg
    >>> dg.Solver(2, volume=dg.StrongForm()).volume
    StrongForm()
    """


@dataclass(frozen=True)
class FluxDifferencing(VolumeForm):
    """Two-point fluxes between the nodes of a line (T. C. Fisher, M. H. Carpenter,
    doi:10.1016/j.jcp.2013.06.014).

    With an entropy-conserving `volume_flux` the method conserves entropy up to what surface fluxes dissipate.
    It needs Gauss-Lobatto nodes on tensor-product cells.

    Parameters
    ----------
    volume_flux : callable
        A symmetric two-point flux, `dg.ranocha` say.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.FluxDifferencing(dg.ranocha).volume_flux.__name__
    'ranocha'
    """

    volume_flux: Callable[..., Any]


@dataclass(frozen=True)
class Solver:
    """A discontinuous Galerkin method.

    `order` is the polynomials' degree; `nodes` "gauss-lobatto" or "gauss" (tensor-product cells), "warp-blend"
    (simplices), or None for what is usual. `over_integration` is the degree up to which integrals of fluxes
    are exact; by default they are taken at the nodes. `viscous` treats second derivatives. `limiters` act
    after each stage, in their order.

    Parameters
    ----------
    order : int
        The polynomials' degree.
    nodes : {"gauss-lobatto", "gauss", "warp-blend"} or None
        The points that values are stored at; None is what is usual for the cell.
    surface_flux : callable, default lax_friedrichs
        The numerical flux between cells.
    volume : VolumeForm
        How cells are integrated over: the weak form by default, `dg.FluxDifferencing`, `dg.SubcellBlending`.
    viscous : Viscous
        How second derivatives are treated: `dg.BR1()` by default, `dg.LDG`, `dg.SIPG`.
    limiters : tuple, default ()
        What acts after each stage.
    over_integration : int or None
        The degree up to which integrals of fluxes are exact; None takes them at the nodes.
    artificial_viscosity : ArtificialViscosity or None
        Diffusion where there are shocks.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Solver(3, surface_flux=dg.hllc, volume=dg.FluxDifferencing(dg.ranocha)).order
    3
    """

    order: int
    nodes: str | None = None
    surface_flux: Callable[..., Any] = lax_friedrichs
    volume: VolumeForm = field(default_factory=WeakForm)
    viscous: Viscous = field(default_factory=BR1)
    limiters: tuple[Any, ...] = ()
    over_integration: int | None = None
    artificial_viscosity: ArtificialViscosity | None = None

    def __post_init__(self) -> None:
        for name, fits, cure in (
            ("surface_flux", callable(self.surface_flux), "dg.hllc"),
            ("volume", isinstance(self.volume, VolumeForm), "dg.FluxDifferencing(dg.ranocha)"),
            ("viscous", isinstance(self.viscous, Viscous), "dg.SIPG()"),
            ("limiters", _are_limiters(self.limiters), "(dg.PositivityLimiter(),)"),
        ):
            if not fits:
                raise ValueError(
                    f"Solver: {name}={getattr(self, name)!r} is of another kind. Give one such as "
                    f"`{name}={cure}`."
                )


def _are_limiters(given: Any) -> bool:
    return isinstance(given, tuple | list) and all(
        callable(each) and not isinstance(each, type) for each in given
    )
