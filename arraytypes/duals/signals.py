"""Convolutions and interpolation of dual numbers: products and sums, written with array functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.duals.base import no_rule, partials_of, value_in
from mirabelle.arraytypes.duals.routines import is_mine, on_values, rule_of, with_value
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.manipulation import flip, moveaxis
from mirabelle.arraytypes.functions.padding import pad
from mirabelle.arraytypes.functions.picking import searchsorted, take
from mirabelle.dispatch import verbs

# Convolutions


@rule_of("convolve", "correlate")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, v = operands
    value = on_values(routine, top, operands, options)
    n, m = a.shape[0], v.shape[0]
    if routine == "correlate":
        v = flip(verbs.conj(v) if v.dtype.kind == "c" else v)
    full: Any = None
    for x, y in ((a, v), (v, a)):
        if is_mine(x, top):
            part = _convolved(partials_of(x), value_in(y, top._tag))
            full = part if full is None else verbs.add(full, part)
    # The other modes are parts of the full one. (NumPy turns a correlation with the longer one around.)
    short, length = min(n, m), value.shape[0]
    start = {"full": 0, "valid": short - 1, "same": (short - 1) // 2}[options["mode"]]
    if options["mode"] == "same" and routine == "correlate" and m > n:
        start = short // 2
    return top._with(value, ((None, full[:, start : start + length]),))


def _convolved(p: Any, v: Any) -> Any:
    """Each row of partials convolved with `v`: in one call, as one vector with room between the rows."""
    apart = pad(p, ((0, 0), (0, v.shape[0] - 1)))
    made = library.call("convolve", verbs.reshape(apart, (-1,)), v, mode="full")
    return verbs.reshape(made[: apart.size], apart.shape)


# Interpolation, and what is evenly spaced


@rule_of("interp")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    x, xp, fp = operands
    left, right, period = (options.get(name) for name in ("left", "right", "period"))
    value = on_values(routine, top, operands, options)
    if is_mine(period, top):
        raise no_rule(top)
    if period is not None:
        period = abs(period)
        x, xp = verbs.remainder(x, period), verbs.remainder(xp, period)
        order = library.call("argsort", xp, axis=-1, kind="stable")
        xp, fp = take(xp, order), take(fp, order)
        xp = concatenate([verbs.subtract(xp[-1:], period), xp, verbs.add(xp[:1], period)])
        fp = concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    n = xp.shape[0]
    after = verbs.clip(searchsorted(xp, x, side="right"), 1, max(n - 1, 1))
    before = verbs.subtract(after, 1)
    after = verbs.minimum(after, n - 1)
    x0, f0 = take(xp, before), take(fp, before)
    wide = verbs.subtract(take(xp, after), x0)
    slope = verbs.divide(verbs.subtract(take(fp, after), f0), verbs.where(verbs.equal(wide, 0), 1.0, wide))
    made = verbs.add(f0, verbs.multiply(slope, verbs.subtract(x, x0)))
    made = verbs.where(verbs.less(x, xp[0]), fp[0] if left is None else left, made)
    made = verbs.where(verbs.greater(x, xp[-1]), fp[-1] if right is None else right, made)
    return with_value(made, value)


@rule_of("linspace")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    start, stop, num, endpoint, step, _, axis = operands
    found = on_values(routine, top, operands, options)
    value = found[0] if step else found
    steps = num - 1 if endpoint else num
    start, stop = (as_array(x, top) for x in (start, stop))
    wide = verbs.divide(verbs.subtract(stop, start), max(steps, 1))
    along = asarray(np.arange(float(num)).reshape(-1, *(1,) * wide.ndim), device=top.place)
    made = moveaxis(verbs.add(start, verbs.multiply(along, wide)), 0, axis)
    made = with_value(verbs.astype(made, value.dtype, copy=False), value) if value.dtype.kind in "fc" else value
    return (made, with_value(wide, found[1])) if step else made
