"""Routines of a place's library, called with dual numbers: one rule for each, by its name.

Whatever calls a routine comes here (see `arraytypes/library.py`): the values go to the routine as they are, and
a rule says what becomes of the partials. Most are linear in one operand: then the partials go the same way,
with their axes one further. What has no rule is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.duals.base import Dual, no_rule, outermost, partials_of, value_in
from mirabelle.arraytypes.duals.special import bessel_i1
from mirabelle.dispatch import verbs
from mirabelle.dispatch.naming import named, of_routines

# A rule: (name of the routine, dual number of the innermost differentiation, operands, options) → result.
Rule = Callable[[str, Any, Any, Any], Any]
RULES: dict[str, Rule] = {}


def called(routine: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A routine called with operands or options of which one is a dual number at least."""
    top = outermost(library.arrays_in((*operands, *options.values())))
    rule = RULES.get(routine)
    if rule is None:
        raise no_rule(top, f"mb.{routine}")
    return rule(routine, top, operands, options)


@library.differentiated.method
def _(x: Dual, routine: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return called(routine, operands, options)


def rule_of(*names: str) -> Callable[[Rule], Rule]:
    """The decorated function is the rule for these routines."""

    def register(rule: Rule) -> Rule:
        shown: Rule = named(rule, of_routines(names, "Dual"))
        for name in names:
            RULES[name] = shown
        return rule

    return register


def values_in(nest: Any, tag: Any) -> Any:
    """A nest of operands without the derivatives of one differentiation."""
    if isinstance(nest, dict):
        return {key: values_in(x, tag) for key, x in nest.items()}
    if isinstance(nest, (list, tuple)):
        made = [values_in(x, tag) for x in nest]
        return tuple(made) if isinstance(nest, tuple) else made
    return value_in(nest, tag)


def on_values(routine: str, top: Any, operands: Any, options: Any) -> Any:
    """The routine of the values alone."""
    return library.call(routine, *values_in(operands, top._tag), **values_in(options, top._tag))


def is_mine(x: Any, top: Any) -> bool:
    return isinstance(x, Dual) and x._tag is top._tag


def only_first(top: Any, operands: Any, options: Any) -> Any:
    """The first operand, if it is the only one that has derivatives."""
    rest = library.arrays_in((*operands[1:], *options.values()))
    if not is_mine(operands[0], top) or any(is_mine(x, top) for x in rest):
        raise no_rule(top)
    return operands[0]


def with_value(result: Any, value: Any) -> Any:
    """A dual number that was composed, with the value that the routine gave, to the last bit."""
    if not isinstance(result, Dual) or getattr(value, "_tag", None) is result._tag:
        return value  # a constant for this differentiation
    return result._with(value, result._now())


# Of what comes in steps there is no derivative

rule_of(
    "argsort", "argpartition", "argmax", "argmin", "lexsort", "searchsorted", "digitize", "isin", "nonzero",
    "may_share_memory", "shares_memory",
)(on_values)  # fmt: skip


# Linear in the first operand: what becomes of shape, operands and options with the directions in front

Further = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]


def linear(*names: str) -> Callable[[Further], Rule]:
    """The decorated function makes of (x, its partials, other operands, options) the last three of the call."""

    def register(further: Further) -> Rule:
        named(further, of_routines(names, "Dual"))

        def rule(routine: str, top: Any, operands: Any, options: Any) -> Any:
            x = only_first(top, operands, options)
            value = on_values(routine, top, operands, options)
            p, rest, options = further(x, partials_of(x), operands[1:], options)
            made = library.call(routine, p, *rest, **options)
            return top._with(value, ((None, verbs.reshape(made, (top._n, *value.shape))),))

        return rule_of(*names)(rule)

    return register


def _further(axes: Any, ndim: int) -> Any:
    """Axes of values, as those of partials."""
    if isinstance(axes, (tuple, list, range)):
        return tuple(a % ndim + 1 for a in axes)
    return axes % ndim + 1


@linear(
    "repeat",
    *[
        f"fft.{name}"
        for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "dct", "idct", "dst", "idst"]
    ],
)
def _(x: Any, p: Any, rest: Any, options: Any) -> Any:
    return p, rest, options | {"axis": _further(options["axis"], x.ndim)}


@linear(*[f"fft.{name}" for name in ["fftn", "ifftn", "rfftn", "irfftn", "fftshift", "ifftshift"]])
def _(x: Any, p: Any, rest: Any, options: Any) -> Any:
    return p, rest, options | {"axes": _further(options["axes"], x.ndim)}


@linear("roll")
def _(x: Any, p: Any, rest: Any, options: Any) -> Any:
    shift, axis = rest
    if axis is None:
        return verbs.reshape(p, (p.shape[0], -1)), (shift, 1), options
    return p, (shift, _further(axis, x.ndim)), options


@linear("tile")
def _(x: Any, p: Any, rest: Any, options: Any) -> Any:
    (times,) = rest
    return verbs.reshape(p, (p.shape[0], *(1,) * (len(times) - x.ndim), *x.shape)), ((1, *times),), options


@rule_of("i0")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (x,) = operands
    slope = bessel_i1(x._value)
    terms = tuple((slope if c is None else verbs.multiply(slope, c), base) for c, base in x._now())
    return x._with(on_values(routine, top, operands, options), terms)
