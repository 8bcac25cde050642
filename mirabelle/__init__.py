"""mirabelle: a Julia-style multiple-dispatch array hierarchy for Python.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> y = mb.exp(-x) * x          # of many elements a tree: nothing is computed yet
>>> print(mb.sum(y > 0.2))      # then one kernel
2
"""

import importlib as _importlib
import importlib.machinery as _machinery
import os as _os
import sys as _sys
import typing as _typing
import warnings as _warnings

# In a checkout the subpackages stand beside this folder, not in it (docs/design.md, section 1): who looks in it
# for them (an import, `python -m mirabelle`, Jedi) finds them by this. An installed package has them inside.
if _os.path.exists(_os.path.join(__path__[0], "..", "dispatch", "verbs.py")):

    class _Beside:
        @staticmethod
        def find_spec(name: str, path: _typing.Any = None, target: _typing.Any = None) -> _typing.Any:
            if path is None or [*path] != __path__:
                return None
            return _machinery.PathFinder.find_spec(name, [_os.path.dirname(__path__[0])], target)

    _sys.meta_path.append(_Beside)

from numpy import (
    False_,
    True_,
    bool_,
    cdouble,
    complex64,
    complex128,
    complexfloating,
    csingle,
    double,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    floating,
    half,
    inexact,
    inf,
    int8,
    int16,
    int32,
    int64,
    int_,
    intc,
    integer,
    intp,
    nan,
    newaxis,
    number,
    pi,
    signedinteger,
    single,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    uintp,
    unsignedinteger,
)

import mirabelle.arraytypes
import mirabelle.backends
import mirabelle.backends.host
from mirabelle.arraytypes.abstract import AbstractArray
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
from mirabelle.arraytypes.functions.choosing import choose, compress, extract, piecewise, put, putmask, select
from mirabelle.arraytypes.functions.elementary import (
    allclose,
    angle,
    around,
    array_equal,
    array_equiv,
    fabs,
    fix,
    float_power,
    i0,
    isclose,
    iscomplex,
    iscomplexobj,
    isneginf,
    isposinf,
    isreal,
    isrealobj,
    nan_to_num,
    real_if_close,
    rint,
    sinc,
    unwrap,
)
from mirabelle.arraytypes.functions.joining import (
    append,
    array_split,
    block,
    column_stack,
    concatenate,
    delete,
    dsplit,
    dstack,
    hsplit,
    hstack,
    insert,
    resize,
    split,
    vsplit,
    vstack,
)
from mirabelle.arraytypes.functions.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    concat,
    expand_dims,
    flip,
    moveaxis,
    repeat,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from mirabelle.arraytypes.functions.picking import (
    add_at,
    nonzero,
    put_along_axis,
    searchsorted,
    take,
    take_along_axis,
)
from mirabelle.arraytypes.functions.products import (
    cross,
    inner,
    kron,
    matrix_transpose,
    outer,
    tensordot,
    vdot,
    vecdot,
)
from mirabelle.arraytypes.functions.reducing import average, ptp
from mirabelle.arraytypes.functions.searching import argmax, argmin
from mirabelle.arraytypes.functions.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from mirabelle.arraytypes.functions.sorting import argsort, sort
from mirabelle.arraytypes.functions.turning import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    diag,
    diagflat,
    diagonal,
    fill_diagonal,
    fliplr,
    flipud,
    ravel,
    rollaxis,
    rot90,
    swapaxes,
    trace,
    transpose,
    trim_zeros,
)
from mirabelle.arraytypes.gpu import CuArray, ROCArray
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import kernel
from mirabelle.arraytypes.makers import default_array, namespace
from mirabelle.arraytypes.parts import sliding_window_view
from mirabelle.arraytypes.reductions import mapreduce, reduce
from mirabelle.arraytypes.reference import RefArray
from mirabelle.arraytypes.structured.banded import Banded, Bidiagonal, Diagonal, Identity, Tridiagonal, band
from mirabelle.arraytypes.structured.blocks import BlockDiagonal, block_diagonal
from mirabelle.arraytypes.structured.concat import Concat
from mirabelle.arraytypes.structured.conjugated import adjoint
from mirabelle.arraytypes.structured.implicit import Fill, Ones, Range, Zeros
from mirabelle.arraytypes.structured.inverse import inverse
from mirabelle.arraytypes.structured.kronecker import Kronecker, kronecker
from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum, kronecker_sum
from mirabelle.arraytypes.structured.lowrank import LowRank
from mirabelle.arraytypes.structured.mirrored import Hermitian, Symmetric
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.arraytypes.structured.toeplitz import Circulant, Toeplitz
from mirabelle.arraytypes.structured.triangular import (
    LowerTriangular,
    UnitLowerTriangular,
    UnitUpperTriangular,
    UpperTriangular,
)
from mirabelle.backends.mpi import environment as _environment
from mirabelle.backends.partners import watch as _watch_partners
from mirabelle.dispatch import loading as _loading
from mirabelle.dispatch.counters import count
from mirabelle.dispatch.errors import (
    AmbiguousMethodError,
    CommunicationError,
    DenseFallbackError,
    DenseFallbackWarning,
    DeviceError,
    GatheringWarning,
    LayoutError,
    MirabelleError,
    MissingMethodError,
    OutOfMemoryError,
    PlaceError,
    RemoteError,
    ScalarAccessError,
    UnfaithfulAnnotationError,
    UserFunctionError,
)
from mirabelle.dispatch.generic import generic, methods, override, which
from mirabelle.dispatch.native import compute_at_once as _compute_at_once
from mirabelle.dispatch.policy import allow_scalar, allow_transfer, eager
from mirabelle.dispatch.promotion import result_type
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tracebacks import ADVISERS as _ADVISERS
from mirabelle.dispatch.tracebacks import install as _show_few_frames
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
    dense,
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
    trunc,
    var,
    where,
)

# What comes with its first use, as a checker sees it; `_LATER` says the same to the interpreter.
if _typing.TYPE_CHECKING:
    from mirabelle import autodiff, compiling, distributed, ext, fft, lib, linalg, meshdata, random, types
    from mirabelle.arraytypes.devices import devices, free_memory, memory, set_memory_limit
    from mirabelle.arraytypes.diagnosis import doctor
    from mirabelle.arraytypes.distributed.darray import DArray
    from mirabelle.arraytypes.dlpack import from_dlpack
    from mirabelle.arraytypes.functions.aliases import (
        absolute,
        amax,
        amin,
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctan2,
        arctanh,
        asanyarray,
        bitwise_not,
        conjugate,
        degrees,
        invert,
        left_shift,
        mod,
        power,
        radians,
        right_shift,
        true_divide,
    )
    from mirabelle.arraytypes.functions.applying import apply_along_axis, apply_over_axes, vectorize
    from mirabelle.arraytypes.functions.binning import (
        bincount,
        digitize,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
    )
    from mirabelle.arraytypes.functions.calculus import (
        convolve,
        correlate,
        ediff1d,
        gradient,
        interp,
        trapezoid,
    )
    from mirabelle.arraytypes.functions.creating import eye, meshgrid, tril, triu
    from mirabelle.arraytypes.functions.dtypes import can_cast, finfo, iinfo, isdtype
    from mirabelle.arraytypes.functions.einsum import einsum, einsum_path
    from mirabelle.arraytypes.functions.grids import (
        bartlett,
        blackman,
        diag_indices,
        diag_indices_from,
        fromfunction,
        fromiter,
        geomspace,
        hamming,
        hanning,
        identity,
        indices,
        ix_,
        kaiser,
        logspace,
        mgrid,
        ndindex,
        ogrid,
        tri,
        tril_indices,
        tril_indices_from,
        triu_indices,
        triu_indices_from,
        vander,
    )
    from mirabelle.arraytypes.functions.info import __array_namespace_info__
    from mirabelle.arraytypes.functions.memory import (
        array,
        ascontiguousarray,
        asfortranarray,
        common_type,
        may_share_memory,
        min_scalar_type,
        ndim,
        promote_types,
        require,
        shape,
        shares_memory,
        size,
    )
    from mirabelle.arraytypes.functions.nans import (
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from mirabelle.arraytypes.functions.neighbours import cumulative_prod, cumulative_sum, diff
    from mirabelle.arraytypes.functions.numpys import (
        array2string,
        array_repr,
        array_str,
        asarray_chkfinite,
        dtype,
        errstate,
        get_printoptions,
        index_exp,
        isfortran,
        isscalar,
        issubdtype,
        iterable,
        mask_indices,
        ndenumerate,
        printoptions,
        s_,
        set_printoptions,
    )
    from mirabelle.arraytypes.functions.ordering import (
        argpartition,
        argwhere,
        flatnonzero,
        lexsort,
        packbits,
        partition,
        ravel_multi_index,
        sort_complex,
        unpackbits,
        unravel_index,
    )
    from mirabelle.arraytypes.functions.padding import pad
    from mirabelle.arraytypes.functions.polynomials import (
        poly,
        polyadd,
        polyder,
        polydiv,
        polyfit,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
    )
    from mirabelle.arraytypes.functions.quantiles import (
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        percentile,
        quantile,
    )
    from mirabelle.arraytypes.functions.reading import (
        frombuffer,
        fromfile,
        fromstring,
        genfromtxt,
        loadtxt,
        savetxt,
    )
    from mirabelle.arraytypes.functions.rows import c_, r_
    from mirabelle.arraytypes.functions.running import cumprod, cumsum
    from mirabelle.arraytypes.functions.statistics import corrcoef, cov
    from mirabelle.arraytypes.functions.vectors import matvec, vecmat
    from mirabelle.arraytypes.functions.vectorsets import (
        intersect1d,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
    )
    from mirabelle.arraytypes.graphs import capture
    from mirabelle.arraytypes.io import load, save, savez, savez_compressed
    from mirabelle.arraytypes.jit import jit
    from mirabelle.arraytypes.programs.compiled import compile
    from mirabelle.arraytypes.programs.controlflow import cond, fori_loop, while_loop
    from mirabelle.arraytypes.programs.hints import hint
    from mirabelle.arraytypes.programs.persistence import load_program
    from mirabelle.arraytypes.streams import stream, synchronize
    from mirabelle.arraytypes.userbroadcast import broadcast, map
    from mirabelle.backends.explain import explain

# Modules and the names that come from them; without names, the module itself.
_LATER = {
    "mirabelle.arraytypes.devices": "devices free_memory memory set_memory_limit",
    "mirabelle.arraytypes.diagnosis": "doctor",
    "mirabelle.arraytypes.distributed.darray": "DArray",
    "mirabelle.arraytypes.dlpack": "from_dlpack",
    "mirabelle.arraytypes.functions.aliases": """
        absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh asanyarray
        bitwise_not conjugate degrees invert left_shift mod power radians right_shift
        true_divide
    """,
    "mirabelle.arraytypes.functions.applying": "apply_along_axis apply_over_axes vectorize",
    "mirabelle.arraytypes.functions.binning": """
        bincount digitize histogram histogram2d histogram_bin_edges histogramdd
    """,
    "mirabelle.arraytypes.functions.calculus": "convolve correlate ediff1d gradient interp trapezoid",
    "mirabelle.arraytypes.functions.creating": "eye meshgrid tril triu",
    "mirabelle.arraytypes.functions.dtypes": "can_cast finfo iinfo isdtype",
    "mirabelle.arraytypes.functions.einsum": "einsum einsum_path",
    "mirabelle.arraytypes.functions.grids": """
        bartlett blackman diag_indices diag_indices_from fromfunction fromiter geomspace hamming
        hanning identity indices ix_ kaiser logspace mgrid ndindex ogrid tri tril_indices
        tril_indices_from triu_indices triu_indices_from vander
    """,
    "mirabelle.arraytypes.functions.info": "__array_namespace_info__",
    "mirabelle.arraytypes.functions.memory": """
        array ascontiguousarray asfortranarray common_type may_share_memory min_scalar_type ndim
        promote_types require shape shares_memory size
    """,
    "mirabelle.arraytypes.functions.nans": """
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar
    """,
    "mirabelle.arraytypes.functions.neighbours": "cumulative_prod cumulative_sum diff",
    "mirabelle.arraytypes.functions.numpys": """
        array2string array_repr array_str asarray_chkfinite dtype errstate get_printoptions
        index_exp isfortran isscalar issubdtype iterable mask_indices ndenumerate printoptions s_
        set_printoptions
    """,
    "mirabelle.arraytypes.functions.ordering": """
        argpartition argwhere flatnonzero lexsort packbits partition ravel_multi_index sort_complex
        unpackbits unravel_index
    """,
    "mirabelle.arraytypes.functions.padding": "pad",
    "mirabelle.arraytypes.functions.polynomials": """
        poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
    """,
    "mirabelle.arraytypes.functions.quantiles": """
        median nanmedian nanpercentile nanquantile percentile quantile
    """,
    "mirabelle.arraytypes.functions.reading": "frombuffer fromfile fromstring genfromtxt loadtxt savetxt",
    "mirabelle.arraytypes.functions.rows": "c_ r_",
    "mirabelle.arraytypes.functions.running": "cumprod cumsum",
    "mirabelle.arraytypes.functions.statistics": "corrcoef cov",
    "mirabelle.arraytypes.functions.vectorsets": "intersect1d setdiff1d setxor1d union1d unique",
    "mirabelle.arraytypes.functions.vectors": "matvec vecmat",
    "mirabelle.arraytypes.graphs": "capture",
    "mirabelle.arraytypes.io": "load save savez savez_compressed",
    "mirabelle.arraytypes.jit": "jit",
    "mirabelle.arraytypes.programs.compiled": "compile",
    "mirabelle.arraytypes.programs.controlflow": "cond fori_loop while_loop",
    "mirabelle.arraytypes.programs.hints": "hint",
    "mirabelle.arraytypes.programs.persistence": "load_program",
    "mirabelle.arraytypes.streams": "stream synchronize",
    "mirabelle.arraytypes.userbroadcast": "broadcast map",
    "mirabelle.autodiff": "",
    "mirabelle.backends.explain": "explain",
    "mirabelle.compiling": "",
    "mirabelle.fft": "",
    "mirabelle.lib": "",
    "mirabelle.linalg": "",
    "mirabelle.meshdata": "",
    "mirabelle.random": "",
    "mirabelle.distributed": "",
    "mirabelle.ext": "",
    "mirabelle.types": "",
}

# Names that moved: the old ones hold for one version. (Where a name comes from now, and the name.)
_MOVED_SINCE, _GONE_IN = "2026-11", "0.2"
_MOVED = {
    "types": """
        Adjoint BroadcastTo Conj Counters DenseArray DiagonalView Dual Explanation GPUArray Graph
        ImagPart Inverse KernelContext PermutedDims RealPart Reinterpreted Reshaped SlidingWindows
        Stream Structured Transpose Triangular View Wrapper
    """,
    "distributed": """
        Block BlockCyclic Communicator Layout LayoutReport Partial Ragged Replicated batch
        communicator connect exchange layout_of mpi_communicator redistribute together
        use_communicator use_layout
    """,
    "ext": """
        Broadcasted Implicit Reordered assign broadcasted lower outline show tree world
    """,
}

if "t" in getattr(_sys, "abiflags", ""):
    from mirabelle.dispatch.freethreading import warn_of_free_threads as _warn_of_free_threads

    _warn_of_free_threads()


def _advice(error: BaseException) -> str:
    """What an uncaught error is given for a note."""
    from mirabelle.arraytypes.advice import advice

    return advice(error)


_ADVISERS.append(_advice)
_show_few_frames()

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
bool = bool_


def _unknown(name: str) -> _typing.Any:
    """What a name stands for that is not in the table; raises an error that explains it if it is none."""
    for space, names in _MOVED.items():
        if name in names.split():
            _warnings.warn(
                f"mb.{name} is mb.{space}.{name} since {_MOVED_SINCE}. The old name goes with version "
                f"{_GONE_IN}.",
                DeprecationWarning,
                stacklevel=3,
            )
            return getattr(_importlib.import_module(f"mirabelle.{space}"), name)
    from mirabelle.arraytypes.advice import missing

    raise missing("mirabelle", name)


if not _typing.TYPE_CHECKING:  # (a checker would think that every name is there, and reads `__init__.pyi`)
    __getattr__, __dir__ = _loading.later(__name__, _LATER, ["__array_api_version__", "__version__"], _unknown)
    __all__ = __dir__()

_loading.arrays_come(__name__)
_compute_at_once()
_watch_partners()
if _environment.is_started():  # (by a launcher of MPI: who ends, and who has which card, is settled now)
    _loading.load("mirabelle.arraytypes.distributed")
