"""A problem in space: equations on a mesh by a solver, as du/dt = rhs(u, t) of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg import terms
from mirabelle.dg.elements import element as reference_element
from mirabelle.dg.equations import Equations
from mirabelle.dg.equations.base import dot
from mirabelle.dg.fluxes import SHARP
from mirabelle.dg.meshes import Mesh
from mirabelle.dg.operators import Boundary, operators, rule
from mirabelle.dg.returned import called, check_takes, described, ensure, one_each
from mirabelle.dg.solver import FluxDifferencing, Solver, StrongForm
from mirabelle.dg.spelled import Array, ArrayLike, DTypeLike, Fields, Number, Part, RungeKutta, Time
from mirabelle.dg.stability import stable_step

Made = TypeVar("Made")


def _shown(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"one of {type(thing).__name__}"


def _is_divided(array: Any) -> bool:
    """Does a constructor make arrays over processes?"""
    if not callable(array):
        return False
    made: Any = array(np.zeros(0))
    ensure(isinstance(made, mb.AbstractArray), f"array={array!r} makes no array of ours: `array=mb.HostArray`.")
    return mb.place(made).kind == "distributed"


@dataclass(frozen=True)
class Auxiliary:
    """The given fields of equations, where fluxes are taken."""

    nodes: Fields = ()
    points: Fields = ()
    inside: Fields = ()
    outside: Fields = ()


class Semidiscretization:
    """Equations on a mesh by a solver, with all arrays of one type.

    `boundary_conditions` are given by the names of the mesh's boundaries, `source(u, x, t, equations)` returns
    one array a field. `array` makes arrays: `mb.HostArray`, `mb.RefArray`, `mb.CuArray`, `mb.CuArray.on(1)`.
    With `mb.DArray[mb.HostArray]` the cells are divided over the processes (`dg.Divided`).

    Parameters
    ----------
    mesh : Mesh or DividedMesh
        The cells.
    equations : Equations
        What is solved.
    solver : Solver
        The method: `dg.Solver(order)`.
    boundary_conditions : mapping of str to boundary conditions, or None
        What holds at each of the mesh's boundaries.
    source : callable or None
        What is added to the rates, a function of `(u, x, t, equations)`.
    array : array type, default HostArray
        What makes the arrays.
    dtype : dtype, default float64
        Of all arrays.
    **more : options
        `ranks`, of a problem that is divided: the process of each cell.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> mesh = dg.box(8, lower=0.0, upper=2 * mb.pi, periodic=True)
    >>> semi = dg.Semidiscretization(mesh, dg.Advection((1.0,)), dg.Solver(order=4))
    >>> u = semi.state(lambda x, t: (mb.sin(x[0] - t),))
    >>> exact = semi.state(lambda x, t: (-mb.cos(x[0] - t),))
    >>> float(mb.max(mb.abs(semi.rhs(u, 0.0) - exact))) < 2e-3
    True
    """

    # The part of a divided mesh that this one is of, and the processes that have the others.
    part: Part | None = None
    comm: Any = None

    # (What `help` shows are its parameters.)
    # fmt: off
    def __new__(cls, mesh: Any, equations: Any, solver: Any, boundary_conditions: Any = None,
                source: Any = None, array: Any = mb.HostArray, dtype: Any = mb.float64, **more: Any) -> Self:
        # fmt: on
        if not isinstance(solver, Solver):
            raise TypeError(f"{solver!r} is no solver. Give one with an order: `dg.Solver(3)`.")
        if not isinstance(equations, Equations) or not hasattr(mesh, "check_boundaries"):
            raise TypeError(
                f"A semidiscretization takes a mesh, equations and a solver, and was given {_shown(mesh)}, "
                f"{_shown(equations)} and a solver: `dg.Semidiscretization(dg.box(8, periodic=True), "
                "dg.Advection((1.0,)), dg.Solver(3))`. A file is read by `dg.read_mesh(path)`."
            )
        if cls is Semidiscretization and _is_divided(array):
            from mirabelle.dg.divided import Divided

            return cast(Self, object.__new__(Divided))
        return super().__new__(cls)

    # fmt: off
    def __init__(self, mesh: Mesh, equations: Equations, solver: Solver,
                 boundary_conditions: Mapping[str, Any] | None = None,
                 source: Callable[[Fields, Fields, Any, Any], Any] | None = None,
                 array: Callable[..., Any] = mb.HostArray, dtype: DTypeLike = mb.float64) -> None:
        # fmt: on
        if equations.dims != mesh.dims:
            raise ValueError(
                f"{equations!r} is in {equations.dims}-D, and the mesh in {mesh.dims}-D: give both as many "
                f"dimensions, e.g. `dg.box({(8,) * equations.dims})`."
            )
        named = isinstance(boundary_conditions or {}, Mapping)
        ensure(named, f'Conditions have names, {{"x_neg": dg.SlipWall()}}: {boundary_conditions!r}.')
        given = dict(boundary_conditions or {})
        mesh.check_boundaries(given)
        for name, condition in given.items():
            if isinstance(condition, type) or not hasattr(condition, "flux"):
                raise ValueError(
                    f"The boundary {name!r} has {condition!r} for a condition. Give an object such as "
                    "`dg.SlipWall()` or `dg.FarField(lambda x, t: (...))`."
                )
        floats = callable(array) and np.dtype(dtype).kind == "f"
        ensure(floats, f"{array!r} and {dtype!r} make no floats. Say `array=mb.CuArray, dtype=mb.float32`.")
        if source is not None:
            check_takes(source, "u, x, t, equations")
        check_takes(solver.surface_flux, "u_left, u_right, normal, equations")
        if solver.artificial_viscosity is not None:
            equations = solver.artificial_viscosity.regularised(equations)
        self._kept: dict[Any, Any] = {}
        self.mesh, self.equations, self.solver, self.source = mesh, equations, solver, source
        self.boundary_conditions, self.array, self.dtype = given, array, np.dtype(cast(Any, dtype))
        self.element = reference_element(mesh.cell, solver.order, solver.nodes)
        self.rule = rule(self.element, solver.over_integration)
        self.strong = isinstance(solver.volume, StrongForm)
        if self.strong and (self.rule.volume_points is not None or self.rule.face_nodes is None):
            raise ValueError(
                "The strong form takes fluxes at nodes that lie on faces, too. Choose "
                "`volume=dg.WeakForm()` with over-integration and with Gauss nodes."
            )
        self.operators, self.geometry = operators(mesh, self.rule, self.strong, self.put, self.part, self.comm)
        if isinstance(solver.volume, FluxDifferencing) and self.operators.split is None:
            raise ValueError(
                "Flux differencing needs Gauss-Lobatto nodes on lines, quadrilaterals or hexahedra, without "
                f"over-integration; these are {self.element.kind_of_nodes} nodes on a {mesh.cell}. Choose "
                "`volume=dg.WeakForm()`."
            )
        self.x: Fields = tuple([self.put(c) for c in self._positions(self.element.nodes)])
        self.auxiliary = self._auxiliary()

    # What there is

    @property
    def K(self) -> int:
        """The number of cells."""
        return self.operators.neighbour.shape[-1]  # type: ignore[no-any-return]

    @property
    def fingerprint(self) -> str:
        """A short text that tells its mesh from others, whatever processes its cells are on."""
        return self.mesh.fingerprint

    @property
    def dims(self) -> int:
        """The number of space dimensions."""
        return self.mesh.dims

    @property
    def nodes(self) -> int:
        """The number of nodes of a cell."""
        return len(self.element.nodes)

    @property
    def line_shape(self) -> tuple[int, ...]:
        """The nodes of a tensor-product cell, along each reference direction."""
        return (self.solver.order + 1,) * self.dims

    @property
    def points(self) -> int:
        """The number of points of a cell where fluxes are taken."""
        return len(self.rule.volume_weights)

    @property
    def unknowns(self) -> int:
        """The number of unknowns: fields times nodes times cells."""
        return len(self.equations) * self.nodes * self.K

    @property
    def second_order(self) -> bool:
        """Whether the equations have second derivatives."""
        return self.equations.second_order

    def __repr__(self) -> str:
        return (
            f"Semidiscretization of {type(self.equations).__name__} on {self.K} {self.element.cell} cells, "
            f"order {self.solver.order}: {self.unknowns} unknowns as "
            f"{getattr(self.array, '__name__', self.array)}"
        )

    # Arrays of this place

    def put(self, values: ArrayLike) -> Array:
        """NumPy's values as an array of this semidiscretisation's type; floating-point numbers get its
        dtype."""
        values = np.asarray(values)
        dtype = self.dtype if values.dtype.kind == "f" else values.dtype
        return self.array(np.asarray(values, dtype, order="C"))

    def scalar(self, value: float) -> Array:
        """A number as an array without axes: what programs take where a number changes from call to call."""
        return self.put(np.asarray(float(value)))

    def fields(self, u: Array) -> Fields:
        """A state as a tuple of fields, with the equations' given fields behind them: what pointwise functions
        take."""
        return (*terms.split(u), *self.auxiliary.nodes)

    def kept(self, make: Callable[[Self], Made]) -> Made:
        """What `make(self)` returned at first: the constant arrays of a form, a sensor or a limiter."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]

    def state(self, function: Callable[[Fields, Any], Sequence[Any]], t: float = 0.0) -> mb.AbstractArray:
        """The state (m, Np, K) of conservative fields `function(x, t)` at the nodes.

        (Nodes on faces count as inside of their cell by some rounding errors: of a jump along faces each cell
        gets its own side.)
        """
        check_takes(function, "x, t")
        like = self.x[0] * 0.0
        values = self._one_a_field(function(self._inside(), t), function, like.shape)
        return mb.materialize(mb.astype(mb.stack([like + v for v in values]), self.dtype))

    def _inside(self) -> Fields:
        """The nodes' positions, drawn into their cells by more than positions are rounded."""
        share = 64 * float(np.finfo(float).eps)
        if self.dtype != np.float64:
            share = 4 * float(np.finfo(self.dtype).eps)
        inside = []
        for c in self.x:
            outwards = c - mb.mean(c, axis=0, keepdims=True)
            furthest = mb.max(mb.abs(outwards), axis=0, keepdims=True)
            by = share * self.of_all(mb.max(mb.abs(c)), "max") / furthest
            inside.append(mb.materialize(c - by * outwards))
        return tuple(inside)

    def _one_a_field(self, values: Any, function: Any, shape: tuple[int, ...]) -> Fields:
        """What a function of (x, t) returned, if there is one value a field."""
        cure = f"lambda x, t: ({('0.0, ' * len(self.equations)).strip()})"
        who = f"For the fields of {type(self.equations).__name__}, the function"
        return one_each(values, function, self.equations.names, shape, who, cure)

    def at_boundary(self, values: Array, there: Boundary) -> Fields:
        """Fields (n, Np, K) at the points of a boundary."""
        to_faces = self.operators.to_faces
        return terms.at_boundary(
            values if to_faces is None else mb.materialize(to_faces @ values), there.points
        )

    # The right-hand side

    def rhs(self, u: Array, t: Time = 0.0) -> mb.AbstractArray:
        """du/dt of a state at a time."""
        u = mb.hint(u, axes=("field", "node", "cell"))  # (what passes may read)
        return terms.right_hand_side(self, u, t)

    def limit(self, u: Array, t: Time = 0.0) -> Array:
        """A state as the solver's limiters leave it."""
        for limiter in self.solver.limiters:
            limited = limiter(self, u, t)
            if np.shape(limited) != u.shape:
                raise ValueError(
                    f"The limiter {called(limiter)} returned {described(limited)}. It has to return the state "
                    f"that it was given, changed: an array of the shape {tuple(u.shape)}."
                )
            u = limited
        return u

    def artificial_diffusivity(self, u: Array, faces: bool = False) -> Number:
        """What the solver's artificial viscosity adds to that of the equations: a number, one a cell (1, K), or
        the larger one of both cells at faces (Nf, 1, K)."""
        added = self.solver.artificial_viscosity
        return 0.0 if added is None else added.diffusivity(self, u, faces)

    def diffused(self, u: Array, jumps: Fields) -> Fields:
        """Jumps of the gradient variables at faces as viscous fluxes take them."""
        added = self.solver.artificial_viscosity
        return jumps if added is None else added.scaled_jumps(self, u, jumps)

    def max_dt(self, u: Array, cfl: float = 1.0, method: RungeKutta | None = None) -> Array:
        """The largest stable time step times `cfl`, as an array without axes; 0 of states that are not finite.

        The limit of a method comes from the spectrum of the operator on reference cells (`dg.stability`).
        """
        fields, o, element = self.fields(u), self.operators, self.element
        if element.is_tensor and self.rule.volume_points is not None:  # its mass matrix is that of Gauss nodes
            element = reference_element(element.cell, element.order, "gauss")
        limit = stable_step(element, method, self.solver.viscous)
        J: Any = 1.0 if o.correction is None else self._inverse_jacobian
        # Opposite faces of tensor-product cells are alike.
        faces, alike = (self.element.faces[1::2], 2) if element.is_tensor else (self.element.faces, 1)
        normals = [
            [
                J * sum(float(f.normal[r]) * o.node_metric[r][a] for r in range(self.dims))
                for a in range(self.dims)
            ]
            for f in faces
        ]
        rate: Any = 0.0
        for N in normals:
            size = mb.sqrt(dot(N, N))
            rate = rate + 0.5 * alike * size * self.equations.max_speed(fields, tuple([c / size for c in N]))
        # What rests in a system is smoothed at the speed of its fastest wave by fluxes that know only that one.
        alone = self.solver.surface_flux in SHARP or len(self.equations) == 1
        rate = rate / (limit.advection if alone else limit.jumps)
        if self.second_order:
            pairs = itertools.combinations_with_replacement(normals, 2)
            products: Any = sum((1 if a is b else 2) * mb.abs(dot(a, b)) for a, b in pairs)
            diffusivity = self.equations.diffusivity(fields) + self.artificial_diffusivity(u)
            rate = rate + diffusivity * products * (0.25 * alike * alike / limit.diffusion)
        fine = mb.isfinite(sum(terms.split(u))) & (rate < mb.inf)
        return cfl / self.of_all(mb.max(mb.where(fine, rate, mb.inf)), "max")

    def of_all(self, value: Array, op: str) -> Array:
        """A number of this process's cells combined with those of all others, on each of them."""
        return value if self.comm is None else mb.distributed.allreduce(value, op, self.comm)

    # Integrals

    @cached_property
    def _inverse_jacobian(self) -> Array:
        return self.put(1 / self.geometry.jacobian_at(self.element.nodes))

    @cached_property
    def weights(self) -> Array:
        """Weights of the nodes' values in integrals, (Np, K)."""
        e, r, g = self.element, self.rule, self.geometry
        if g.affine or (e.is_tensor and r.volume_points is None):
            return self.put(e.weights[:, None] * np.broadcast_to(g.jacobian_at(e.nodes), (self.nodes, self.K)))
        points, w = (
            e.quadrature(3 * e.order) if r.volume_points is None else (r.volume_points, r.volume_weights)
        )
        return self.put(e.interpolation(points).T @ (w[:, None] * g.jacobian_at(points)))

    @cached_property
    def volume(self) -> float:
        """The domain's volume."""
        return float(self.of_all(mb.sum(self.weights), "sum"))

    def integrate(self, values: Array) -> Array:
        """The integral over the domain of values at the nodes (..., Np, K); numbers stay on their place."""
        return self.of_all(mb.sum(self.weights * values, axis=(-2, -1)), "sum")

    @cached_property
    def cell_volumes(self) -> Array:
        """(1, K)."""
        return mb.materialize(mb.sum(self.weights, axis=0, keepdims=True))

    def means(self, u: Array) -> Array:
        """The mean of each field in each cell, (m, 1, K)."""
        return mb.sum(u * self.weights, axis=-2, keepdims=True) / self.cell_volumes

    def norms(
        self, u: Array, exact: Callable[[Fields, Any], Sequence[Any]], t: float
    ) -> dict[str, tuple[float, float]]:
        """(L2, Linf) of the error of each conservative field; L2 is taken by a finer quadrature, over the root
        of the volume."""
        check_takes(exact, "x, t")
        degree = 2 * self.solver.order + 4
        points, w = self.element.quadrature(degree)
        x = tuple(self._positions(points))
        J = np.broadcast_to(self.geometry.jacobian_at(points), (len(points), self.K))
        values = np.einsum("qp,mpk->mqk", self.element.interpolation(points), mb.to_numpy(mb.materialize(u)))
        wanted = [
            np.broadcast_to(mb.to_numpy(mb.materialize(v)), J.shape) if not np.isscalar(v) else v
            for v in self._one_a_field(exact(tuple([mb.HostArray(c) for c in x]), t), exact, J.shape)
        ]
        over = self.of_all(self.put(np.asarray(np.sum(w[:, None] * J))), "sum")
        out = {}
        for i, name in enumerate(self.equations.names):
            e = values[i] - wanted[i]
            square = self.of_all(self.put(np.asarray(np.sum(w[:, None] * J * e * e))), "sum")
            largest = self.of_all(self.put(np.asarray(np.abs(e).max())), "max")
            out[name] = float(mb.sqrt(square / over)), float(largest)
        return out

    def sample(self, u: Array, points: ArrayLike) -> np.ndarray:
        """The fields at points (d, n) anywhere in the domain, (m, n) in NumPy; NaN outside of it."""
        from mirabelle.dg.sampling import sampled

        return sampled(self, u, np.asarray(points, float))

    def _positions(self, reference: np.ndarray) -> np.ndarray:
        return self.geometry.at(self.geometry.positions, reference)

    def _auxiliary(self) -> Auxiliary:
        """The equations' given fields. Boundaries get theirs, too."""
        values = self.equations.auxiliary(self._inside())
        if not values:
            return Auxiliary()
        like = self.x[0] * 0.0
        nodes = mb.materialize(mb.stack([like + v for v in values]))
        to_points = self.operators.to_points
        points = terms.split(nodes if to_points is None else mb.materialize(to_points @ nodes))
        inside, outside = terms.both_sides(self.operators, nodes)
        for name, there in self.operators.boundaries.items():
            found = tuple([mb.materialize(v) for v in self.at_boundary(nodes, there)])
            self.operators.boundaries[name] = there.with_auxiliary(found)
        kept = [tuple([mb.materialize(v) for v in of]) for of in (points, inside, outside)]
        return Auxiliary(terms.split(nodes), *kept)
