"""Shock capturing: finite volumes blended in where a sensor says so, and viscosity added there.

Sensors look at how much of a field's energy lies in the polynomials of the highest degree of a cell: little
where the solution is smooth (P.-O. Persson, J. Peraire, doi:10.2514/6.2006-112).

>>> import mirabelle as mb
>>> from mirabelle import dg
>>> form = dg.SubcellBlending(dg.ranocha, dg.hll)
>>> gas, mesh = dg.CompressibleEuler(1), dg.box(8, lower=0.0, upper=1.0, periodic=True)
>>> semi = dg.Semidiscretization(mesh, gas, dg.Solver(3, surface_flux=dg.hll, volume=form))
>>> u = semi.state(lambda x, t: gas.conservative((mb.where(x[0] < 0.45, 1.0, 0.1), 0.0, 1.0)))
>>> form.blending(semi, u).round(2).tolist()             # the jump is in the fourth cell
[[0.0, 0.0, 0.25, 0.5, 0.25, 0.0, 0.0, 0.0]]
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg.equations import Equations
from mirabelle.dg.fluxes import lax_friedrichs
from mirabelle.dg.returned import one, one_each
from mirabelle.dg.solver import FluxDifferencing
from mirabelle.dg.spelled import Array, Condition, Fields, Number, Semidiscretization, Time
from mirabelle.dg.terms import flux_differences, stacked, volume_term, with_diffusion
from mirabelle.dg.traces import behind, cells_behind

Indicator = Callable[[Fields], Any]


# Sensors


def _modes(semi: Semidiscretization) -> tuple[Any, Any]:
    """Nodal values to modal coefficients, and their squares to the energies that `energy_shares` compares."""
    degrees, n = semi.element.degrees, semi.solver.order
    parts = [degrees == n, degrees <= n, degrees == n - 1, degrees <= n - 1]
    return semi.put(semi.element.to_modes), semi.put(np.array(parts, float))


def energy_shares(semi: Semidiscretization, values: Array) -> list[Any]:
    """For degrees n and n - 1, which share of the energy of all up to it they have: arrays (1, K).

    >>> from mirabelle import dg
    >>> semi = dg.Semidiscretization(dg.box(1, lower=-1.0, periodic=True), dg.Burgers(), dg.Solver(2))
    >>> [float(s[0, 0].round(14)) for s in energy_shares(semi, semi.x[0] ** 2)]
    [0.44444444444444, 0.0]
    """
    to_modes, parts = semi.kept(_modes)
    modes = mb.materialize(to_modes @ mb.broadcast_to(values, (semi.nodes, semi.K)))
    energy = mb.materialize(parts @ (modes * modes))
    shares = [energy[i : i + 1] / mb.where(energy[i + 1] > 0, energy[i + 1], 1.0) for i in (0, 2)]
    return shares if semi.solver.order > 1 else shares[:1]  # the mean alone has all of its energy


def _indicated(indicator: Indicator | None, semi: Semidiscretization, fields: Fields) -> Any:
    """The field that a sensor looks at."""
    function = indicator or semi.equations.indicator
    return one(function(fields), function, (semi.nodes, semi.K), "The indicator")


def _neighbours(semi: Semidiscretization) -> tuple[Any, Any]:
    """The cells behind the faces of each cell, (Nf, 1, K), and the cut between processes."""
    return cells_behind(semi.part, semi.comm, semi.mesh, semi.put)  # type: ignore[no-any-return]


def _among_neighbours(semi: Semidiscretization, values: Array) -> Any:
    """The values of the cells behind faces, (Nf, K), of those of cells (1, K)."""
    neighbours, cut = semi.kept(_neighbours)
    return behind(mb.expand_dims(mb.materialize(values), axis=0), neighbours, cut)[0][:, 0]


# Blending with finite volumes


@dataclass(frozen=True)
class SubcellBlending(FluxDifferencing):
    """Flux differencing, blended with a first-order finite volume method on the cells' Gauss-Lobatto subcells.

    (S. Hennemann and others, J. Comput. Phys. 426, 2021, doi:10.1016/j.jcp.2020.109935.) Both share the
    numerical fluxes at faces; `surface_flux` is taken between subcells. Of the finite volumes a share of
    `alpha_max` is taken at most, none below `alpha_min`, at least half of what neighbours have if `smooth`.
    `indicator` is a function of the fields, by default `equations.indicator`. Where metric terms vary,
    interfaces of subcells get the normals with which a constant flow stays constant.

    Parameters
    ----------
    volume_flux : callable
        A symmetric two-point flux, `dg.ranocha` say.
    surface_flux : callable, default lax_friedrichs
        The numerical flux between subcells.
    alpha_max : float, default 0.5
        The largest share of finite volumes.
    alpha_min : float, default 0.001
        Shares below it are none.
    indicator : callable or None
        What the sensor looks at, a function of the fields; None is `equations.indicator`.
    smooth : bool, default True
        Give neighbours at least half of a cell's share.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc).alpha_max
    0.5
    """

    surface_flux: Callable[..., Any] = lax_friedrichs
    alpha_max: float = 0.5
    alpha_min: float = 0.001
    indicator: Indicator | None = None
    smooth: bool = True

    def blending(self, semi: Semidiscretization, u: Array) -> Array:
        """The share of finite volumes in each cell, (1, K)."""
        values = _indicated(self.indicator, semi, semi.fields(u))
        share = functools.reduce(mb.maximum, energy_shares(semi, values))
        threshold = 0.5 * 10 ** (-1.8 * (semi.solver.order + 1) ** 0.25)
        sharpness = math.log(0.9999 / 0.0001)
        alpha = 1.0 / (1.0 + mb.exp(sharpness - (sharpness / threshold) * share))
        alpha = mb.where(alpha < self.alpha_min, 0.0, mb.where(alpha > 1 - self.alpha_min, 1.0, alpha))
        alpha = mb.materialize(mb.minimum(alpha, self.alpha_max))
        if not self.smooth:
            return alpha
        behind = mb.max(_among_neighbours(semi, alpha), axis=0, keepdims=True)
        return mb.materialize(mb.maximum(alpha, 0.5 * behind))


@volume_term.method
def _(form: SubcellBlending, semi: Any, u: Any, gradients: Any) -> Any:
    alpha = form.blending(semi, u)
    smooth = flux_differences(form, semi, semi.fields(u))
    rates = (1.0 - alpha) * smooth + alpha * subcell_differences(form, semi, semi.fields(u))
    return with_diffusion(rates, semi, u, gradients)


def _subcell_normals(semi: Semidiscretization) -> list[tuple[Fields, Any]]:
    """Unit normals of the interfaces between subcells and their sizes, for the lines of each direction.

    From one interface to the next a normal changes by what the derivative of the metric terms is, integrated
    over the subcell; the derivatives of all directions sum to zero.
    """
    g, element, K = semi.geometry, semi.element, semi.K
    line, n = element.line, semi.solver.order + 1
    to_interfaces = np.cumsum(line.weights[:, None] * line.differentiation[0], 0)[:-1]
    to_interfaces[:, 0] += 1
    metric = g.at(g.contravariant, element.nodes) / (g.jacobian if g.affine else 1.0)
    out = []
    for r, direction in enumerate(metric):
        if g.affine:
            normal = direction.reshape(semi.dims, 1, 1, 1, K)
        else:
            normal = np.einsum("ij,dbjak->dbiak", to_interfaces, direction.reshape(semi.dims, n**r, n, -1, K))
        size = np.sqrt(np.sum(normal * normal, 0))
        out.append((tuple([semi.put(c) for c in normal / size]), semi.put(size)))
    return out


def _subcell_balance(semi: Semidiscretization) -> Any:
    """Fluxes through the inner interfaces of a line as rates of its subcells, (n, n - 1)."""
    per_width = np.diag(1 / semi.element.line.weights)
    return semi.put(per_width[:, 1:] - per_width[:, :-1])


def subcell_differences(form: SubcellBlending, semi: Semidiscretization, fields: Fields) -> Any:
    """What passes between subcells, as rates (m, Np, K); the faces' share is that of the surface term.

    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> form = dg.SubcellBlending(dg.central)
    >>> semi = dg.Semidiscretization(dg.box(1, periodic=True), dg.Advection((1.0,)), dg.Solver(2, volume=form))
    >>> u = semi.state(lambda x, t: (x[0],))                   # 0, 1/2, 1 on widths 1/6, 2/3, 1/6
    >>> (subcell_differences(form, semi, semi.fields(u)).round(12) + 0.0).tolist()
    [[[0.0], [-0.75], [3.0]]]
    """
    n, m, balance = semi.solver.order + 1, len(semi.equations), semi.kept(_subcell_balance)
    total: Any = 0.0
    for r, (normal, size) in enumerate(semi.kept(_subcell_normals)):
        before, after = n**r, n ** (semi.dims - 1 - r)
        lines = [mb.reshape(v, (before, n, after, -1) if v.shape[0] > 1 else (1, 1, 1, -1)) for v in fields]
        left, right = [
            tuple([v[:, some] if v.shape[1] > 1 else v for v in lines]) for some in (slice(-1), slice(1, None))
        ]
        flux = form.surface_flux(left, right, normal, semi.equations)
        shape = (before, n - 1, after, semi.K)
        flux = one_each(flux, form.surface_flux, semi.equations.names, shape, "The flux between subcells")
        flux = mb.materialize(stacked([size * f for f in flux], (m, *shape)))
        rates = balance @ mb.reshape(flux, (m * before, n - 1, -1))
        total = total + mb.reshape(rates, (m, semi.nodes, semi.K))
    return total


# Artificial viscosity


@dataclass(frozen=True)
class ArtificialViscosity:
    """Diffusion of the conservative fields in cells where the sensor finds a shock (P.-O. Persson, J. Peraire,
    doi:10.2514/6.2006-112).

    It is at most `strength` times h / order times the largest speed of waves in the cell. With S the decimal
    logarithm of the energy's share in the highest degree, it sets in at S = `threshold` - `width` and is full
    at `threshold` + `width`; the threshold is -1.5 - 4 log10 order if it is None. Works on all cells, with
    all equations; nothing diffuses through boundaries. `indicator` is a function of the fields, by default
    `equations.indicator`. Strong shocks want `viscous=BR1()`, `SIPG()` or `LDG(penalty=1.0)`.

    Parameters
    ----------
    strength : float, default 0.5
        How much there is at most.
    threshold : float or None
        Where it sets in; None is -1.5 - 4 log10 order.
    width : float, default 1.0
        How far around the threshold it grows.
    indicator : callable or None
        What the sensor looks at, a function of the fields; None is `equations.indicator`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> mesh, viscosity = dg.box((4, 4), cell="triangle", periodic=True), dg.ArtificialViscosity(0.5)
    >>> semi = dg.Semidiscretization(mesh, dg.Burgers(2), dg.Solver(3, artificial_viscosity=viscosity))
    >>> u = semi.state(lambda x, t: (mb.where(x[0] < 0.4, 1.0, 0.0),))
    >>> float(mb.max(semi.artificial_diffusivity(u))) > 0.01, semi.equations
    (True, RegularisedBurgers(dims=2))
    """

    strength: float = 0.5
    threshold: float | None = None
    width: float = 1.0
    indicator: Indicator | None = None

    def diffusivity(self, semi: Semidiscretization, u: Array, faces: bool = False) -> Number:
        """The viscosity of each cell, (1, K), or the larger one of both cells at faces, (Nf, 1, K)."""
        fields, order, d = semi.fields(u), max(semi.solver.order, 1), semi.dims
        share = energy_shares(semi, _indicated(self.indicator, semi, fields))[0]
        middle = -1.5 - 4 * math.log10(order) if self.threshold is None else self.threshold
        s = (mb.log10(mb.maximum(share, 1e-30)) - middle) / self.width
        ramp = 0.5 + 0.5 * mb.sin(0.5 * mb.pi * mb.clip(s, -1.0, 1.0))
        axes = [tuple([float(a == b) for b in range(d)]) for a in range(d)]
        speed = functools.reduce(mb.maximum, [semi.equations.max_speed(fields, axis) for axis in axes])
        fastest = mb.max(mb.broadcast_to(speed, (semi.nodes, semi.K)), axis=0, keepdims=True)
        epsilon = mb.materialize((self.strength / order) * semi.kept(_widths) * fastest * ramp)
        return (
            mb.expand_dims(mb.maximum(epsilon, _among_neighbours(semi, epsilon)), axis=1) if faces else epsilon
        )

    def regularised(self, equations: Equations) -> Equations:
        """The equations with the gradients of the conservative fields behind those that they had, if any."""
        made, kind = copy.copy(equations), cast(Any, type(equations))
        object.__setattr__(made, "__class__", _regularised(kind))
        object.__setattr__(made, "plain", equations)
        object.__setattr__(made, "added", self)
        return made

    def scaled(self, semi: Semidiscretization, u: Array, gradients: Array) -> Array:
        """Gradients (d n, Np, K) as viscous fluxes take them: those that were added, times the viscosity."""
        m, own = len(semi.equations), gradients.shape[0] // semi.dims - len(semi.equations)
        epsilon: Any = semi.artificial_diffusivity(u)
        factors = [mb.ones_like(epsilon)] * own + [epsilon] * m
        return mb.stack(factors * semi.dims) * gradients

    def scaled_jumps(self, semi: Semidiscretization, u: Array, jumps: Fields) -> Fields:
        """The same of jumps of the gradient variables at faces."""
        m, epsilon = len(semi.equations), semi.artificial_diffusivity(u, faces=True)
        return (*jumps[:-m], *[epsilon * w for w in jumps[-m:]])


def _widths(semi: Semidiscretization) -> Any:
    """The widths of cells, (1, K): of boxes of their volumes."""
    return semi.put(mb.to_numpy(semi.weights).sum(0, keepdims=True) ** (1 / semi.dims))


class Regularised(Equations):
    """What equations with artificial viscosity do in place of those of the class they are mixed with.

    Being still equations of that class, they have its numerical fluxes.

    >>> from mirabelle import dg
    >>> equations = dg.ArtificialViscosity().regularised(dg.Burgers())
    >>> isinstance(equations, dg.Burgers), equations.gradient_variables((3.0,)), equations.second_order
    (True, (3.0,), True)
    """

    second_order = True
    plain: Equations
    added: ArtificialViscosity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regularised) and (self.plain, self.added) == (other.plain, other.added)

    def __hash__(self) -> int:
        return hash((self.plain, self.added))

    def __reduce__(self) -> tuple[Any, ...]:
        return ArtificialViscosity.regularised, (self.added, self.plain)

    def gradient_variables(self, u: Fields) -> Fields:
        own = self.plain.gradient_variables(u) if self.plain.second_order else ()
        return (*own, *u[: len(self)])

    def viscous_flux(self, u: Fields, gradients: Sequence[Fields], axis: int) -> Fields:
        own = [g[: -len(self)] for g in gradients]
        added = gradients[axis][-len(self) :]
        if not self.plain.second_order:
            return tuple(added)
        return tuple([f + g for f, g in zip(self.plain.viscous_flux(u, own, axis), added, strict=True)])

    def diffusivity(self, u: Fields) -> Number:
        return self.plain.diffusivity(u) if self.plain.second_order else 0.0 * u[0]

    def boundary_values(
        self, condition: Condition, w: Fields, u: Fields, normal: Fields, x: Fields, t: Time
    ) -> Fields:
        own = w[: -len(self)]
        if self.plain.second_order:
            own = self.plain.boundary_values(condition, own, u, normal, x, t)
        return (*own, *w[-len(self) :])

    def boundary_viscous_flux(
        self, condition: Condition, u: Fields, gradients: Sequence[Fields], normal: Fields, x: Fields, t: Time
    ) -> Fields:
        if not self.plain.second_order:
            return tuple([0.0 * q for q in u[: len(self)]])
        own = [g[: -len(self)] for g in gradients]
        return self.plain.boundary_viscous_flux(condition, u, own, normal, x, t)


@functools.cache
def _regularised(kind: type[Equations]) -> type[Equations]:
    return type(f"Regularised{kind.__name__}", (Regularised, kind), {"__doc__": Regularised.__doc__})
