"""Polynomials with coefficients that are dual numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray, ones
from mirabelle.arraytypes.duals.base import no_rule, partials_of
from mirabelle.arraytypes.duals.routines import is_mine, on_values, only_first, rule_of, with_value
from mirabelle.arraytypes.functions.calculus import convolve
from mirabelle.arraytypes.functions.grids import vander
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.padding import pad
from mirabelle.arraytypes.functions.polynomials import polyder, polyval
from mirabelle.arraytypes.functions.solving import solve
from mirabelle.dispatch import verbs


def _aligned(made: Any, value: Any) -> Any:
    """Coefficients at the end of as many zeros, or without the first, as `value` has them."""
    missing = value.shape[0] - made.shape[0]
    return with_value(pad(made, (missing, 0)) if missing > 0 else made[-missing:], value)


@rule_of("polyadd", "polysub", "polymul")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    value = on_values(routine, top, operands, options)
    a, b = operands
    if routine == "polymul":
        return _aligned(convolve(a, b), value)
    n = max(a.shape[0], b.shape[0])
    a, b = (pad(x, (n - x.shape[0], 0)) for x in (a, b))
    return with_value(verbs.add(a, b) if routine == "polyadd" else verbs.subtract(a, b), value)


@rule_of("polydiv")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    quotient, remainder = on_values(routine, top, operands, options)
    u, v = operands
    n = v.shape[0]
    if u.shape[0] < n:
        return quotient, with_value(u, remainder)
    found = []
    for _ in range(u.shape[0] - n + 1):
        found.append(verbs.divide(u[:1], v[:1]))
        u = concatenate([verbs.subtract(u[1:n], verbs.multiply(found[-1], v[1:])), u[n:]])
    return with_value(concatenate(found), quotient), _aligned(u, remainder)


@rule_of("polyder", "polyint")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    p, m, *k = operands
    value = on_values(routine, top, operands, options)
    n = p.shape[0]
    if routine == "polyder":
        factors = [float(math.perm(n - 1 - i, m)) for i in range(max(n - m, 0))]
        made = p[: max(n - m, 0)]
    else:
        if k and k[0] is not None and is_mine(k[0], top):
            raise no_rule(top)
        factors = [1.0 / math.perm(n - 1 - i + m, m) for i in range(n)]
        made = p
    rows = verbs.multiply(partials_of(made), asarray(np.array(factors, made.dtype), device=made.place))
    return top._with(value, ((None, pad(rows, ((0, 0), (0, value.shape[0] - rows.shape[1])))),))


@rule_of("poly")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (zeros,) = operands
    if zeros.ndim != 1:
        raise no_rule(top, "mb.poly of a matrix")
    made = ones(1, dtype=zeros.dtype, device=zeros.place)
    for i in range(zeros.shape[0]):
        made = verbs.subtract(pad(made, (0, 1)), verbs.multiply(zeros[i], pad(made, (1, 0))))
    value = on_values(routine, top, operands, options)
    return with_value(verbs.real(made) if value.dtype.kind == "f" else made, value)


@rule_of("roots")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    # p(r) = 0, so dp(r) + p'(r) dr = 0.
    p = only_first(top, operands, options)
    value = on_values(routine, top, operands, options)
    slope = polyval(polyder(p._value), value)
    powers = vander(value, p.shape[0])
    change = verbs.matmul(
        verbs.astype(partials_of(p), powers.dtype, copy=False), verbs.permute_dims(powers, (1, 0))
    )
    return top._with(value, ((None, verbs.negative(verbs.divide(change, slope))),))


@rule_of("polyfit")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x, y, degree, *_ = operands
    w = options["w"]
    if options["full"] or options["cov"] or np.ndim(degree) or y.ndim > 1:
        raise no_rule(top, "mb.polyfit with full=, cov=, a list of degrees, or several columns")
    value = on_values(routine, top, operands, options)
    # (VᵀV) c = Vᵀy by the columns' sizes, as NumPy scales them: what c is is known, so is how it changes.
    columns = vander(x, int(degree) + 1)
    if w is not None:
        columns, y = verbs.multiply(columns, w[:, None]), verbs.multiply(y, w)
    turned = verbs.permute_dims(columns, (1, 0))
    rest = verbs.matmul(turned, verbs.subtract(y, verbs.matmul(columns, value)))
    normal = verbs.matmul(turned, columns)
    plain = normal._value if is_mine(normal, top) else normal
    change = solve(plain, verbs.permute_dims(partials_of(rest), (1, 0)))
    return top._with(value, ((None, verbs.permute_dims(change, (1, 0))),))
