"""NumPy's names for what the array API standard calls otherwise: the same objects."""

from __future__ import annotations

from mirabelle.arraytypes.creation import asarray
from mirabelle.dispatch import verbs

absolute = verbs.abs
arccos, arccosh = verbs.acos, verbs.acosh
arcsin, arcsinh = verbs.asin, verbs.asinh
arctan, arctan2, arctanh = verbs.atan, verbs.atan2, verbs.atanh
amax, amin = verbs.max, verbs.min
asanyarray = asarray
bitwise_not = invert = verbs.bitwise_invert
conjugate = verbs.conj
degrees, radians = verbs.rad2deg, verbs.deg2rad
left_shift, right_shift = verbs.bitwise_left_shift, verbs.bitwise_right_shift
mod = verbs.remainder
power = verbs.pow
true_divide = verbs.divide
