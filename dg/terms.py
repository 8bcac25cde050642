"""The right-hand side, term by term.

`right_hand_side` reads as the method; each of its steps is a generic function of the form, the
semidiscretisation and the state with a method in plain array language. A method for one's own form, equations
or type of arrays replaces it:

>>> import mirabelle as mb
>>> from mirabelle import dg
>>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(2))
>>> u = semi.state(lambda x, t: (mb.sin(x[0]),))
>>> def mine(form, semi, u, gradients): return 0.0 * u   # a specialised kernel would stand here
>>> with mb.override(dg.volume_term, (dg.WeakForm, object, mb.HostArray, object), mine):
...     rates = semi.rhs(u, 0.0)
>>> rates.shape
(1, 3, 4)
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.dg.operators import Boundary, Lines, Matrices, Operators
from mirabelle.dg.returned import described, one_each
from mirabelle.dg.solver import FluxDifferencing, VolumeForm
from mirabelle.dg.spelled import Array, Condition, Fields, Flux, Gradients, Semidiscretization, Time
from mirabelle.dg.traces import behind, sent_ahead
from mirabelle.dg.viscous import Viscous, slope_of_jumps


def right_hand_side(semi: Semidiscretization, u: Array, t: Time) -> mb.AbstractArray:
    """du/dt of a state (m, Np, K) at a time (an array without axes).

    Parameters
    ----------
    semi : Semidiscretization
        What is solved.
    u : array
        The state (m, Np, K).
    t : array
        The time, an array without axes.

    Returns
    -------
    array
        Of the shape, dtype and place of `u`, which stays as it is.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> semi, wave, _, _ = advection.setup(order=2, cells=4, cell="line")
    >>> dg.right_hand_side(semi, semi.state(wave), semi.scalar(0.0)).shape
    (1, 3, 4)
    """
    o = semi.operators
    # (What is on its way is held until the end.)
    under_way = [sent_ahead(at_faces(o, u), o.cut)]
    gradients = gradient(semi.solver.viscous, semi, u, t) if semi.second_order else None
    if gradients is not None:
        under_way.append(sent_ahead(at_faces(o, gradients[1]), o.cut))
    rates = _whole(semi, volume_term(semi.solver.volume, semi, u, gradients), "dg.volume_term")
    faces = lift(semi.operators.matrices, semi, surface_term(semi, u, gradients, t))
    rates = corrected(semi, rates + _whole(semi, faces, "dg.lift"))
    if semi.source is None:
        return rates
    sources = semi.source(semi.fields(u), semi.x, t, semi.equations)
    sources = one_each(sources, semi.source, semi.equations.names, rates.shape[1:], "The source")
    return stacked([rates[i] + s for i, s in enumerate(sources)], rates.shape)


def _whole(semi: Semidiscretization, rates: Array, name: str) -> Any:
    """Rates of all fields at all nodes: others would be stretched to them without a word."""
    expected = (len(semi.equations), semi.nodes, semi.K)
    if np.shape(rates) != expected:
        raise ValueError(
            f"A method of `{name}` returned {described(rates)}, and rates have the shape {expected}: fields, "
            f"nodes, cells. `mb.methods({name})` lists methods; `dg.terms.stacked` makes rates of fields."
        )
    return rates


# Pieces


def stacked(parts: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Values along a new first axis, each stretched to the others' shape, which is that of an array without
    its first axis."""
    return mb.stack([mb.broadcast_to(p, shape[1:]) for p in parts])


def split(values: Array) -> Fields:
    """The arrays along the first axis."""
    return tuple([values[i] for i in range(values.shape[0])])


def at_faces(o: Operators, values: Array) -> Array:
    """Fields (n, Np, K) where faces' points are numbered: the nodes themselves, or points of faces (n, Nf nq,
    K)."""
    return values if o.own is not None else mb.materialize(o.to_faces @ values)


def inside_faces(o: Operators, values: Array) -> Fields:
    """What fields (n, Np, K) are at the faces' points in the cell itself: a tuple of (Nf, nq, K)."""
    if o.own is not None:
        return tuple([v[o.own] for v in split(values)])
    return tuple([mb.reshape(v, (*o.faces, -1)) for v in split(at_faces(o, values))])


def both_sides(o: Operators, values: Array) -> tuple[Fields, Fields]:
    """What fields (n, Np, K) are at the faces' points, in the cell itself and in its neighbour: tuples of (Nf,
    nq, K)."""
    outside = behind(at_faces(o, values), o.neighbour, o.cut)
    inside = inside_faces(o, values)
    return inside if o.cells is None else tuple([v[..., o.cells] for v in inside]), outside


def at_boundary(values: Array, places: Any) -> Fields:
    """Fields at the points of a boundary, in one row."""
    return tuple([mb.reshape(v, (-1,))[places] for v in split(values)])


def corrected(semi: Semidiscretization, rates: Array) -> Array:
    """What the reference element's inverse mass matrix made, for cells that are not affine."""
    c = semi.operators.correction
    if c is None:
        return rates
    if c.ndim == 2:
        return c * rates
    rates = mb.materialize(rates)
    return mb.sum(c * mb.expand_dims(rates, axis=-3), axis=-2)


def along_normal(fluxes: Sequence[Fields], normal: Fields) -> Fields:
    """Fluxes along coordinate axes as one along a normal."""
    return tuple([sum(f * n for f, n in zip(of, normal, strict=True)) for of in zip(*fluxes, strict=True)])


def difference(a: Sequence[Any], b: Sequence[Any]) -> Fields:
    """Field by field."""
    return tuple([x - y for x, y in zip(a, b, strict=True)])


def drawn(semi: Semidiscretization, slopes: Fields, jump: Fields, normal: Fields, steepness: Array) -> Fields:
    """Derivatives at a face, and along its normal the penalty on what lies between it and the cell.

    As a part of the viscous flux (R. Hartmann, P. Houston, doi:10.1016/j.jcp.2008.07.015) it leaves the jumps
    of what does not diffuse alone, as of the density of a gas, which are for upwind fluxes.
    """
    solver = semi.solver
    if not solver.viscous.penalty:
        return slopes
    pull = [slope_of_jumps(solver.viscous, solver.order, semi.dims, steepness) * w for w in jump]
    return tuple([q + p * c for q, (c, p) in zip(slopes, itertools.product(normal, pull), strict=True)])


# The volume


@mb.generic
def volume_term(form: VolumeForm, semi: Semidiscretization, u: Array, gradients: Gradients) -> Array:  # type: ignore[empty-body]
    """The integral over cells, as rates (m, Np, K). `gradients` are None, or what `dg.gradient` returned.

    Parameters
    ----------
    form : VolumeForm
        Methods are for its type.
    semi : Semidiscretization
        What is solved.
    u : array
        The state (m, Np, K).
    gradients : tuple of arrays or None
        What `dg.gradient` returned.

    Returns
    -------
    array
        Of shape (m, Np, K), without what comes in at faces.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> semi, wave, _, _ = advection.setup(order=2, cells=4, cell="line")
    >>> dg.volume_term(semi.solver.volume, semi, semi.state(wave), None).shape
    (1, 3, 4)
    """


def reference_fluxes(
    semi: Semidiscretization, u: Array, gradients: Any, *, advective: bool = True
) -> list[Fields]:
    """The flux along each direction of the reference cells, at the volume's points."""
    equations, o = semi.equations, semi.operators

    def at_points(values: Array) -> Fields:
        return split(values if o.to_points is None else mb.materialize(o.to_points @ values))

    fields = (*at_points(u), *semi.auxiliary.points)
    flows = [equations.normal_flux(fields, direction) for direction in o.metric] if advective else []
    if not semi.second_order:
        return flows
    slopes = _by_axis(at_points(gradients[0]), semi.dims)
    viscous = [equations.viscous_flux(fields, slopes, a) for a in range(semi.dims)]
    diffused = [along_normal(viscous, direction) for direction in o.metric]
    if not advective:
        return [tuple([-f for f in of]) for of in diffused]
    return [difference(*of) for of in zip(flows, diffused, strict=True)]


@mb.generic
def volume_rates(matrices: Any, semi: Semidiscretization, fluxes: Any) -> Any:
    """Fluxes along the reference directions, tuples of (nP, K), as rates (m, Np, K) at the nodes."""


@volume_rates.method
def _(matrices: Matrices, semi: Any, fluxes: list) -> Any:
    shape = (semi.points, semi.K)
    joined = [mb.concat([mb.broadcast_to(f, shape) for f in of]) for of in zip(*fluxes, strict=True)]
    return matrices.volume @ mb.stack(joined)


@volume_rates.method
def _(matrices: Lines, semi: Any, fluxes: list) -> Any:
    total: Any = 0.0
    for r, flux in enumerate(fluxes):
        along = mb.materialize(stacked(flux, (len(flux), semi.nodes, semi.K)))
        along = mb.reshape(along, (len(flux), *semi.line_shape, semi.K))
        for j, column in enumerate(matrices.volume[r]):
            total = total + column * along[_at(r + 1, j)]
    return mb.reshape(total, (len(fluxes[0]), semi.nodes, semi.K))


def _at(axis: int, j: int) -> tuple[slice, ...]:
    """The index of one place along an axis, which stays."""
    return (*[slice(None)] * axis, slice(j, j + 1))


@volume_term.method
def _(form: VolumeForm, semi: Any, u: Any, gradients: Any) -> Any:
    return volume_rates(semi.operators.matrices, semi, reference_fluxes(semi, u, gradients))


@volume_term.method
def _(form: FluxDifferencing, semi: Any, u: Any, gradients: Any) -> Any:
    rates = flux_differences(form, semi, semi.fields(u))
    return with_diffusion(rates, semi, u, gradients)


def with_diffusion(rates: Array, semi: Semidiscretization, u: Array, gradients: Gradients) -> Any:
    """Rates of advection and, if the equations have second derivatives, those of diffusion in weak form."""
    if not semi.second_order:
        return rates
    fluxes = reference_fluxes(semi, u, gradients, advective=False)
    return rates + volume_rates(semi.operators.matrices, semi, fluxes)


def flux_differences(form: FluxDifferencing, semi: Semidiscretization, fields: Fields) -> Any:
    """-sum_r sum_j 2 D_ij f(u_i, u_j) along the lines of nodes of each direction, as rates (m, Np, K).

    Fluxes are symmetric, so those of the nodes i < j are computed: first of neighbours, then of those two
    apart, and so on. One product makes rates of them.
    """
    o, n, m = semi.operators, semi.solver.order + 1, len(semi.equations)
    total: Any = 0.0
    for r, direction in enumerate(o.metric):
        before, after = n**r, n ** (semi.dims - 1 - r)

        def lines(v: Any, before: int = before, after: int = after) -> Any:
            return mb.reshape(v, (before, n, after, -1) if v.shape[0] > 1 else (1, 1, 1, -1))

        values, metric = [lines(v) for v in fields], [lines(c) for c in direction]
        found = []
        for apart in range(1, n):
            first, second = slice(None, n - apart), slice(apart, None)
            left, right = [
                tuple([v[:, some] if v.shape[1] > 1 else v for v in values]) for some in (first, second)
            ]
            normal = tuple([0.5 * (c[:, first] + c[:, second]) if c.shape[1] > 1 else c for c in metric])
            flux = form.volume_flux(left, right, normal, semi.equations)
            shape = (before, n - apart, after, semi.K)
            flux = one_each(flux, form.volume_flux, semi.equations.names, shape, "The flux volume_flux=")
            found.append([mb.broadcast_to(f, shape) for f in flux])
        pairs = mb.materialize(mb.stack([mb.concat(of, axis=1) for of in zip(*found, strict=True)]))
        rates = o.split @ mb.reshape(pairs, (m * before, n * (n - 1) // 2, -1))
        total = total + mb.reshape(rates, (m, semi.nodes, semi.K))
    return total


# Faces


def surface_term(semi: Semidiscretization, u: Array, gradients: Gradients, t: Time) -> Any:
    """Numerical fluxes at the faces' points, times the faces' Jacobian: (m, Nf nq, K)."""
    o = semi.operators
    if o.cut is not None and 0 < o.cut.first < semi.K and mb.place(u).kind == "traced" and gradients is None:
        # (Faces of cells that touch no other process's are computed while messages travel.)
        return mb.concat([surface_term(s, u, gradients, t) for s in semi.kept(before_and_at_the_cut)], axis=-1)
    inside, outside = both_sides(o, u)
    inside, outside = (*inside, *semi.auxiliary.inside), (*outside, *semi.auxiliary.outside)
    flux = interface_flux(semi.solver.surface_flux, semi, u, inside, outside, gradients)

    def outer(name: str, there: Boundary) -> Fields:
        flux = boundary_flux(semi.boundary_conditions[name], semi, u, gradients, t, there)
        return tuple([there.scale * f for f in flux])

    flux = with_boundaries(o, [o.scale * f for f in flux], outer)
    return mb.reshape(stacked(flux, (len(flux), *o.faces, semi.K)), (len(flux), -1, semi.K))


def before_and_at_the_cut(semi: Semidiscretization) -> list[Any]:
    """The problem at the faces of the cells that touch no other process's, and at those of the others."""
    o, found = semi.operators, []
    for cells in (slice(0, o.cut.first), slice(o.cut.first, semi.K)) if o.cut else ():
        made = copy.copy(semi)
        made.operators, made._kept = o.at_faces_of(cells), {}
        given = semi.auxiliary.inside, semi.auxiliary.outside
        inside, outside = [tuple([mb.copy(v[..., cells]) for v in of]) for of in given]
        made.auxiliary = replace(semi.auxiliary, inside=inside, outside=outside)
        found.append(made)
    return found


def with_boundaries(o: Operators, values: Sequence[Any], outer: Callable[[str, Boundary], Fields]) -> Fields:
    """Values at face points (Nf, nq, K), where a boundary is those that `outer` has for its points.

    A choice, not a write: so all of it stays one kernel.
    """
    if not o.boundaries:
        return tuple(values)
    found = [outer(*of) for of in o.boundaries.items()]
    rows = [mb.materialize(mb.concat(row)) for row in zip(*found, strict=True)]
    return tuple([mb.where(o.is_outer, row[o.outer], v) for row, v in zip(rows, values, strict=True)])


@mb.generic
def interface_flux(  # type: ignore[empty-body]
    numerical: Flux, semi: Semidiscretization, u: Array, inside: Fields, outside: Fields, gradients: Gradients
) -> Fields:  # pyright: ignore
    """The numerical flux between cells, of the fields on both sides. `gradients` are None, or what
    `dg.gradient` returned.

    Parameters
    ----------
    numerical : callable
        The numerical flux.
    semi : Semidiscretization
        What is solved.
    u : array
        The state (m, Np, K).
    inside : tuple of arrays
        The fields at faces' points, of the cell itself.
    outside : tuple of arrays
        Those of the neighbour.
    gradients : tuple of arrays or None
        What `dg.gradient` returned.

    Returns
    -------
    tuple of array
        A flux for each field, along the normal of the cell itself, of shape (Nf, nq, K). In strong form,
        less that of the cell's own fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> semi, wave, _, _ = advection.setup(order=2, cells=4, cell="line")
    >>> u = semi.state(wave)
    >>> sides = dg.terms.both_sides(semi.operators, u)
    >>> flux = dg.interface_flux(semi.solver.surface_flux, semi, u, *sides, None)
    >>> [f.shape for f in flux]
    [(2, 1, 4)]
    """


@interface_flux.method
def _(numerical: Any, semi: Any, u: Any, inside: Any, outside: Any, gradients: Any) -> Any:
    o, equations = semi.operators, semi.equations
    flux = numerical(inside, outside, o.normal, equations)
    flux = one_each(flux, numerical, equations.names, (*o.faces, semi.K), "The flux surface_flux=")
    own = equations.normal_flux(inside, o.normal) if semi.strong else None
    if semi.second_order:
        viscous, slopes = semi.solver.viscous, both_sides(o, gradients[1])
        if own:
            own = difference(own, _viscous_normal(semi, inside, inside_faces(o, gradients[0]), o.normal))
        w, other = equations.gradient_variables(inside), equations.gradient_variables(outside)
        value = viscous.value(w, other, o.normal)
        jumps = [difference(value, w), difference(other, value)]
        if viscous.penalty:
            jumps = [semi.diffused(u, jump) for jump in jumps]
        sides = []
        for fields, q, jump in zip((inside, outside), slopes, jumps, strict=True):
            q = drawn(semi, q, jump, o.normal, o.steepness)
            sides.append(_viscous_normal(semi, fields, q, o.normal))
        flux = difference(flux, viscous.flux(*sides, o.normal))
    return difference(flux, own) if own else tuple(flux)


@mb.generic
def boundary_flux(  # type: ignore[empty-body]
    condition: Condition, semi: Semidiscretization, u: Array, gradients: Gradients, t: Time, there: Boundary
) -> Fields:  # pyright: ignore
    """The flux through the points of one boundary, along the outward normal.

    Parameters
    ----------
    condition : boundary condition
        Methods are for its type.
    semi : Semidiscretization
        What is solved.
    u : array
        The state (m, Np, K).
    gradients : tuple of arrays or None
        What `dg.gradient` returned.
    t : array
        The time, an array without axes.
    there : Boundary
        Where the boundary's points are, with their normals.

    Returns
    -------
    tuple of array
        A flux for each field, at the boundary's points in one row. In strong form, less that of the cell's
        own fields.

    Examples
    --------
    >>> from mirabelle import dg
    >>> ends = {"x_neg": dg.Dirichlet((0.0,)), "x_pos": dg.SupersonicOutflow()}
    >>> equations, solver = dg.Advection((1.0,)), dg.Solver(2)
    >>> semi = dg.Semidiscretization(dg.box(4), equations, solver, boundary_conditions=ends)
    >>> u, t = semi.state(lambda x, t: (1 + x[0],)), semi.scalar(0.0)
    >>> flux = dg.boundary_flux(ends["x_neg"], semi, u, None, t, semi.operators.boundaries["x_neg"])
    >>> [f.shape for f in flux]
    [(1,)]
    """


@boundary_flux.method
def _(condition: Any, semi: Any, u: Any, gradients: Any, t: Any, there: Any) -> Any:
    equations = semi.equations
    inside = (*semi.at_boundary(u, there), *there.auxiliary)
    numerical = semi.solver.surface_flux
    flux = condition.flux(inside, there.normal, there.x, t, equations, numerical)
    flux = one_each(flux, condition.flux, equations.names, inside[0].shape, "The boundary condition")
    own = equations.normal_flux(inside, there.normal) if semi.strong else None
    if semi.second_order:
        slopes = semi.at_boundary(gradients[1], there)
        if own:
            whole = semi.at_boundary(gradients[0], there)
            own = difference(own, _viscous_normal(semi, inside, whole, there.normal))
        jump = _boundary_jump(semi, condition, inside, there, t)
        slopes = drawn(semi, slopes, jump, there.normal, there.steepness)
        by_axis = _by_axis(slopes, semi.dims)
        diffused = equations.boundary_viscous_flux(condition, inside, by_axis, there.normal, there.x, t)
        flux = difference(flux, diffused)
    return difference(flux, own) if own else tuple(flux)


def _boundary_jump(
    semi: Semidiscretization, condition: Condition, inside: Fields, there: Boundary, t: Time
) -> Fields:
    """The gradient variables on a boundary, less those inside."""
    own = semi.equations.gradient_variables(inside)
    return difference(semi.equations.boundary_values(condition, own, inside, there.normal, there.x, t), own)


@mb.generic
def lift(matrices: Matrices | Lines, semi: Semidiscretization, values: Array) -> Array:  # type: ignore[empty-body]
    """Fluxes at faces' points (m, Nf nq, K) as rates at the nodes.

    Parameters
    ----------
    matrices : object
        `semi.operators.matrices`; methods are for its type.
    semi : Semidiscretization
        What is solved.
    values : array
        Fluxes at faces' points (m, Nf nq, K).

    Returns
    -------
    array
        Of shape (m, Np, K).

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> semi, wave, _, _ = advection.setup(order=2, cells=4, cell="line")
    >>> dg.lift(semi.operators.matrices, semi, mb.ones((1, 2, 4))).shape  # (one point at each end of a cell)
    (1, 3, 4)
    """


@lift.method
def _(matrices: Matrices, semi: Any, values: Any) -> Any:
    return matrices.lift @ values


@lift.method
def _(matrices: Lines, semi: Any, values: Any) -> Any:
    (faces, _), m, ends = semi.operators.faces, values.shape[0], semi.line_shape[1:]
    values = mb.reshape(values, (m, faces, *ends, semi.K))
    total: Any = 0.0
    for r, sides in enumerate(matrices.lift):
        for side, column in enumerate(sides):
            total = total + column * mb.expand_dims(values[:, 2 * r + side], axis=r + 1)
    return mb.reshape(total, (m, semi.nodes, semi.K))


# Second derivatives


def _by_axis(values: Fields, dims: int) -> list[Fields]:
    """Derivatives, of all variables along the first axis first, as one tuple an axis."""
    n = len(values) // dims
    return [values[a * n : (a + 1) * n] for a in range(dims)]


def _viscous_normal(semi: Semidiscretization, fields: Fields, slopes: Fields, normal: Fields) -> Fields:
    by_axis = _by_axis(slopes, semi.dims)
    return along_normal([semi.equations.viscous_flux(fields, by_axis, a) for a in range(semi.dims)], normal)


@mb.generic
def gradient(viscous: Viscous, semi: Semidiscretization, u: Array, t: Time) -> tuple[Array, Array]:  # type: ignore[empty-body]
    """The gradient of the equations' gradient variables, (d n, Np, K): what cells see, and what faces see.

    Parameters
    ----------
    viscous : Viscous
        Methods are for its type.
    semi : Semidiscretization
        What is solved.
    u : array
        The state (m, Np, K).
    t : array
        The time, an array without axes.

    Returns
    -------
    tuple of array
        Two arrays, derivatives of all variables along the first axis first: with what jumps between cells
        add, and for faces. They are one and the same for some `viscous`.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import diffusion
    >>> semi, start, _, _ = diffusion.setup(order=2, cells=4)
    >>> of_cells, of_faces = dg.gradient(semi.solver.viscous, semi, semi.state(start), semi.scalar(0.0))
    >>> of_cells.shape, of_faces.shape
    ((1, 3, 4), (1, 3, 4))
    """


@gradient.method
def _(viscous: Any, semi: Any, u: Any, t: Any) -> Any:
    o, equations, d = semi.operators, semi.equations, semi.dims
    w = equations.gradient_variables(semi.fields(u))
    n, nodes = len(w), semi.nodes
    slopes = o.derivative @ stacked(w, (n, nodes, semi.K))
    along = [[slopes[i, r * nodes : (r + 1) * nodes] for i in range(n)] for r in range(d)]
    broken = stacked(
        [sum(o.node_metric[r][a] * along[r][i] for r in range(d)) for a in range(d) for i in range(n)],
        (d * n, nodes, semi.K),
    )
    inside, outside = both_sides(o, u)
    inside, outside = (*inside, *semi.auxiliary.inside), (*outside, *semi.auxiliary.outside)
    own = equations.gradient_variables(inside)
    value = viscous.value(own, equations.gradient_variables(outside), o.normal)
    jumps = [o.scale * (v - w) for v, w in zip(value, own, strict=True)]

    def outer(name: str, there: Boundary) -> Fields:
        fields = (*semi.at_boundary(u, there), *there.auxiliary)
        jump = _boundary_jump(semi, semi.boundary_conditions[name], fields, there, t)
        return tuple([there.scale * c * w for c in there.normal for w in jump])

    values = stacked(
        with_boundaries(o, [j * c for c in o.normal for j in jumps], outer), (d * n, *o.faces, semi.K)
    )
    whole = corrected(semi, broken - lift(o.matrices, semi, mb.reshape(values, (d * n, -1, semi.K))))
    found = [whole, corrected(semi, broken)] if viscous.broken else [whole]
    if semi.solver.artificial_viscosity is not None:
        found = [semi.solver.artificial_viscosity.scaled(semi, u, q) for q in found]
    found = [mb.materialize(q) for q in found]
    return found[0], found[-1]
