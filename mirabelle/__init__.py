"""mirabelle: a Julia-style multiple-dispatch array hierarchy for Python.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> y = mb.exp(-x) * x          # a tree: nothing is computed yet
>>> print(mb.sum(y > 0.2))      # one kernel
2
"""

import os as _os

# In a checkout the subpackages stand beside this folder, not in it (docs/design.md, section 1):
# this makes `python -m mirabelle` work there too. An installed package has them inside.
if _os.path.exists(_os.path.join(__path__[0], "..", "dispatch", "verbs.py")):
    __path__.append(_os.path.dirname(__path__[0]))

from numpy import (
    bool_,
    complex64,
    complex128,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

import mirabelle.arraytypes
import mirabelle.backends.host
import mirabelle.backends.reference
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import calibrate as _calibrate_writes
from mirabelle.arraytypes.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.reductions import mapreduce, reduce
from mirabelle.arraytypes.reference import RefArray
from mirabelle.arraytypes.userbroadcast import broadcast, map
from mirabelle.arraytypes.wrappers import (
    BroadcastTo,
    PermutedDims,
    Reshaped,
    Transpose,
    View,
    Wrapper,
)
from mirabelle.backends.explain import Explanation, broadcasted, explain
from mirabelle.backends.host.compiler import prepare as _prepare_kernels
from mirabelle.backends.host.direct import install as _install_direct
from mirabelle.dispatch.counters import Counters, count
from mirabelle.dispatch.errors import (
    AmbiguousMethodError,
    DeviceError,
    MirabelleError,
    MissingMethodError,
    PlaceError,
    ScalarAccessError,
    UnfaithfulAnnotationError,
    UserFunctionError,
)
from mirabelle.dispatch.generic import generic, methods, override, which, world
from mirabelle.dispatch.policy import allow_scalar, allow_transfer, eager
from mirabelle.dispatch.promotion import result_type
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted
from mirabelle.dispatch.verbs import (
    abs,
    accumulate,
    acos,
    acosh,
    adapt,
    add,
    all,
    any,
    asin,
    asinh,
    assign,
    astype,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    broadcast_to,
    cbrt,
    ceil,
    clip,
    conj,
    copy,
    copysign,
    copyto,
    cos,
    cosh,
    cospi,
    count_nonzero,
    deg2rad,
    divide,
    divmod,
    dot,
    equal,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fma,
    fmax,
    fmin,
    fmod,
    frexp,
    gamma,
    gcd,
    greater,
    greater_equal,
    heaviside,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    lcm,
    ldexp,
    less,
    less_equal,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lower,
    materialize,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    modf,
    multiply,
    negative,
    nextafter,
    norm,
    not_equal,
    parent,
    permute_dims,
    place,
    positive,
    pow,
    prod,
    rad2deg,
    real,
    reciprocal,
    remainder,
    reshape,
    round,
    show,
    sign,
    signbit,
    similar,
    sin,
    sinh,
    sinpi,
    spacing,
    sqrt,
    square,
    std,
    subtract,
    sum,
    tan,
    tanh,
    to_numpy,
    tree,
    trunc,
    var,
    where,
)

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
bool = bool_

_calibrate_writes()
_install_direct()
_prepare_kernels()
