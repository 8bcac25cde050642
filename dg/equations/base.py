"""What equations are: a small class of pointwise functions on tuples of arrays, one array a field.

A scalar law of one's own takes a dozen lines:

>>> from dataclasses import dataclass
>>> import mirabelle as mb
>>> @dataclass(frozen=True)
... class Traffic(Equations):
...     "Cars on a road (Lighthill, Whitham 1955, 10.1098/rspa.1955.0089; Richards 1956)."
...     limit: float = 1.0
...     dims = 1
...     names = ("density",)
...     def flux(self, u, axis):
...         return (self.limit * u[0] * (1 - u[0]),)
...     def max_speed(self, u, normal):
...         return mb.abs(self.limit * (1 - 2 * u[0]) * normal[0])
>>> road = Traffic(limit=30.0)
>>> u = (mb.HostArray([0.0, 0.25, 0.5]),)
>>> road.flux(u, 0)[0].tolist(), road.max_speed(u, (1.0,)).tolist()
([0.0, 5.625, 7.5], [30.0, 15.0, 0.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import mirabelle as mb
from mirabelle.dg.returned import looked_after
from mirabelle.dg.spelled import Condition, Fields, Number, Time


class Equations:
    """A system `u_t + div F(u) = div F_v(u, grad u)` of conservation laws.

    Pointwise functions get a tuple `u` of arrays: the conservative fields, then the auxiliary ones if there are
    any. They give tuples, or one array. A subclass is a frozen dataclass with plain numbers as its parameters;
    `dims`, `names`, `flux` and `max_speed` are enough for most methods.

    >>> from mirabelle.dg.equations import Advection
    >>> equations = Advection((1.0, 2.0))
    >>> len(equations), equations.dims, equations.names
    (1, 2, ('u',))
    """

    second_order: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A class that defines the first has the second made of it, whatever a base class said of another flux.
        for name, follows in (("flux", "normal_flux"), ("max_speed", "speeds")):
            if name in vars(cls) and follows not in vars(cls):
                setattr(cls, follows, getattr(Equations, follows))
        looked_after(cls, RETURNS)

    if TYPE_CHECKING:  # a subclass has it as a field, a property or an attribute, whichever reads best
        dims: Any

    # (Of any kind, so that checkers let a subclass have an attribute.)
    names: ClassVar[Any] = property(
        lambda self: self._lacks("names of its fields", "names"), doc="Names of the conservative fields."
    )

    @property
    def primitive_names(self) -> tuple[str, ...]:
        """Names of the primitive fields: those that people look at."""
        return self.names

    def __len__(self) -> int:
        return len(self.names)

    def _lacks(self, what: str, method: str) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} has no {what}, which something that was asked for needs. "
            f"Define `{method}` in the class, or choose a flux, limiter or callback that does without."
        )

    def flux(self, u: Fields, axis: int) -> Fields:
        """The physical flux along a coordinate axis."""
        self._lacks("flux", "flux(self, u, axis)")

    def normal_flux(self, u: Fields, normal: Fields) -> Fields:
        """The physical flux along a vector of any length: `sum_a F_a(u) normal_a`."""
        along = zip(*(self.flux(u, axis) for axis in range(self.dims)), strict=True)
        return tuple(dot(flux, normal) for flux in along)

    def max_speed(self, u: Fields, normal: Fields) -> Number:
        """The largest absolute wave speed along a unit vector."""
        self._lacks("wave speed", "max_speed(self, u, normal)")

    def speeds(self, u_left: Fields, u_right: Fields, normal: Fields) -> tuple[Number, Number]:
        """Bounds of the signal speeds of the Riemann problem of two states."""
        largest = mb.maximum(self.max_speed(u_left, normal), self.max_speed(u_right, normal))
        return -largest, largest

    def upwind(self, u_left: Fields, u_right: Fields, normal: Fields) -> Fields:
        """The flux of the exact solution of a linear Riemann problem, by characteristics."""
        self._lacks("characteristic splitting", "upwind(self, u_left, u_right, normal)")

    def reflected(self, u: Fields, normal: Fields) -> Fields:
        """The state behind a mirror at a wall with this unit normal."""
        self._lacks("mirror image", "reflected(self, u, normal)")

    def primitive(self, u: Fields) -> Fields:
        """The primitive fields of conservative ones."""
        return tuple(u[: len(self)])

    def conservative(self, w: Fields) -> Fields:
        """The conservative fields of primitive ones."""
        return tuple(w[: len(self)])

    def positive(self, u: Fields) -> dict[str, Number]:
        """The quantities, by their names, that are positive in every state there can be.

        A simulation starts from such states only, and one that blows up says which quantity had left them;
        steps do not look.

        >>> from mirabelle.dg.equations import CompressibleEuler
        >>> CompressibleEuler(1, gamma=1.5).positive((1.0, 2.0, 1.0))
        {'rho': 1.0, 'pressure': -0.5}
        """
        return {}

    def entropy_variables(self, u: Fields) -> Fields:
        """The gradient of the entropy by the conservative fields."""
        return tuple(u[: len(self)])

    def entropy(self, u: Fields) -> Number:
        """A convex function that smooth solutions conserve: here a square, which serves any scalar law."""
        return 0.5 * dot(self.entropy_variables(u), u[: len(self)])

    def entropy_potential(self, u: Fields, axis: int) -> Number:
        """`w . F_a - Q_a`, of the entropy variables `w`, the flux and the entropy flux `Q_a`."""
        self._lacks("entropy potential", "entropy_potential(self, u, axis)")

    def indicator(self, u: Fields) -> Number:
        """The field that sensors of shocks look at."""
        return u[0]

    def auxiliary(self, x: Fields) -> Fields:
        """Given fields at points `x`, say a velocity, which follow the conservative ones in `u`."""
        return ()

    def gradient_variables(self, u: Fields) -> Fields:
        """The fields whose gradients second-order terms are made of."""
        return tuple(u[: len(self)])

    def viscous_flux(self, u: Fields, gradients: Sequence[Fields], axis: int) -> Fields:
        """The flux `F_v` along an axis, of which the divergence is added; `gradients[axis][variable]`."""
        self._lacks("viscous flux", "viscous_flux(self, u, gradients, axis)")

    def boundary_values(
        self, condition: Condition, w: Fields, u: Fields, normal: Fields, x: Fields, t: Time
    ) -> Fields:
        """The gradient variables on a boundary, as its condition has them; `w` are those inside."""
        return condition.value(w, u, normal, x, t, self)

    def boundary_viscous_flux(
        self, condition: Condition, u: Fields, gradients: Sequence[Fields], normal: Fields, x: Fields, t: Time
    ) -> Fields:
        """The viscous flux out of a boundary, as its condition has it."""
        along = zip(*(self.viscous_flux(u, gradients, axis) for axis in range(self.dims)), strict=True)
        return condition.viscous(tuple([dot(f, normal) for f in along]), u, normal, x, t, self)

    def diffusivity(self, u: Fields) -> Number:
        """The largest diffusivity, for time steps."""
        self._lacks("diffusivity", "diffusivity(self, u)")


# What methods return: the fields, as many values as another argument has, any number of them, or one array.
RETURNS: dict[str, Any] = {
    **dict.fromkeys(
        ("flux", "normal_flux", "upwind", "conservative", "entropy_variables", "viscous_flux"),
        lambda equations, *given: equations.names,
    ),
    "primitive": lambda equations, u: equations.primitive_names,
    "reflected": lambda equations, u, normal: len(u),
    "speeds": lambda *given: 2,
    **dict.fromkeys(("auxiliary", "gradient_variables"), lambda *given: None),
    **dict.fromkeys(
        ("max_speed", "entropy", "entropy_potential", "indicator", "diffusivity"), lambda *given: float
    ),
}


class Linear(Equations):
    """Equations whose flux is linear in `u`, and whose entropy is a quadratic energy, half of `w . u`.

    >>> from mirabelle.dg.equations import Acoustics
    >>> Acoustics(1, density=2.0).entropy((2.0, 3.0)), Acoustics(1, density=2.0).entropy_variables((2.0, 3.0))
    (10.0, (1.0, 6.0))
    """

    def flux(self, u: Fields, axis: int) -> Fields:
        return self.normal_flux(u, tuple(float(axis == a) for a in range(self.dims)))

    def entropy_potential(self, u: Fields, axis: int) -> Number:
        return 0.5 * dot(self.entropy_variables(u), self.flux(u, axis))


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The scalar product of two tuples of fields.

    >>> dot((1.0, 2.0), (3.0, 4.0))
    11.0
    """
    products = [x * y for x, y in zip(a, b, strict=True)]
    return sum(products[1:], products[0])


def combined(s: Number, v: Sequence[Any], t: Number, w: Sequence[Any]) -> Fields:
    """The combination `s v + t w` of two vectors.

    >>> combined(2.0, (1.0, 0.0), 3.0, (0.0, 1.0))
    (2.0, 3.0)
    """
    return tuple(s * a + t * b for a, b in zip(v, w, strict=True))


def mirrored(v: Sequence[Any], normal: Sequence[Any], times: float = 2.0) -> Fields:
    """A vector less twice its part along a unit normal, what a mirror shows; once: what lies in the mirror.

    >>> mirrored((1.0, 3.0), (0.0, 1.0)), mirrored((1.0, 3.0), (0.0, 1.0), times=1.0)
    ((1.0, -3.0), (1.0, 0.0))
    """
    return combined(1.0, v, -times * dot(v, normal), normal)


def check(equations: Equations, least_dims: int = 1, **positive: object) -> None:
    """Refuse numbers of dimensions that equations are not written in, and parameters that are not positive.

    >>> from mirabelle.dg.equations import Acoustics, Burgers
    >>> Acoustics(1, speed=-1.0)
    Traceback (most recent call last):
        ...
    ValueError: Acoustics: speed = -1.0 must be a positive number. Pass one: `Acoustics(..., speed=1.0)`.
    >>> Burgers(4)
    Traceback (most recent call last):
        ...
    ValueError: Burgers: dims = 4, but these equations are in 1 to 3 dimensions. Pass one: `Burgers(dims=3)`.
    """
    kind, dims = type(equations).__name__, equations.dims
    if dims not in range(least_dims, 4):
        between = f"these equations are in {least_dims} to 3 dimensions"
        raise ValueError(f"{kind}: dims = {dims!r}, but {between}. Pass one: `{kind}(dims=3)`.")
    for name, value in positive.items():
        if not (isinstance(value, int | float) and value > 0):
            wanted = f"must be a positive number. Pass one: `{kind}(..., {name}=1.0)`."
            raise ValueError(f"{kind}: {name} = {value!r} {wanted}")
