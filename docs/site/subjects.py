"""Which page of the reference has which name: by its module, or listed where one module has many subjects."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Subject:
    """A page: names of a namespace that are listed, or come from one of these modules."""

    page: str
    title: str
    about: str
    names: str = ""
    modules: str = ""

    def has(self, name: str, thing: Any) -> bool:
        module = str(getattr(thing, "__module__", "")).removeprefix("mirabelle.").removeprefix("arraytypes.")
        return name in self.names.split() or module in self.modules.split()


# The subjects of `mb.*`. A name belongs to the first that lists it, or else to the first with its module.
SUBJECTS = [
    Subject(
        "arrays",
        "Array types",
        "Types that are called to make an array.",
        names="AbstractArray HostArray CuArray ROCArray RefArray DArray",
    ),
    Subject(
        "structured",
        "Structured arrays",
        "Arrays that know what they look like, and what makes them.",
        names="""
                         Diagonal Identity Bidiagonal Tridiagonal Banded band LowerTriangular
            UpperTriangular             UnitLowerTriangular UnitUpperTriangular Symmetric
            Hermitian Toeplitz Circulant             Kronecker KroneckerSum LowRank BlockDiagonal
            CSR Concat Fill Zeros Ones Range adjoint             inverse kronecker kronecker_sum
            block_diagonal dense
        """,
    ),
    Subject(
        "creation",
        "Making arrays",
        "Arrays from values, shapes, functions and other arrays.",
        names="""
                         array ascontiguousarray asfortranarray asarray_chkfinite require copy
            similar r_ c_             mgrid ogrid mask_indices diag diagflat
        """,
        modules="creation functions.creating functions.grids functions.rows dlpack makers",
    ),
    Subject(
        "arithmetic",
        "Arithmetic",
        "Elementwise: operators by name, signs, roots, divisors.",
        names="""
                         add subtract multiply divide true_divide floor_divide remainder mod fmod
            divmod pow             power float_power negative positive abs absolute fabs sign
            square sqrt cbrt reciprocal             fma gcd lcm hypot maximum minimum fmax fmin
            clip heaviside copysign nextafter ldexp             frexp modf spacing signbit
        """,
    ),
    Subject(
        "elementary",
        "Exponentials, angles, special functions",
        "Elementwise functions of real and complex numbers.",
        names="""
                         exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan asin
            arcsin acos             arccos atan arctan atan2 arctan2 sinh cosh tanh asinh arcsinh
            acosh arccosh atanh             arctanh sinpi cospi deg2rad radians rad2deg degrees
            erf erfc gamma lgamma sinc i0             unwrap real imag conj conjugate angle
            real_if_close nan_to_num
        """,
    ),
    Subject(
        "rounding",
        "Rounding",
        "Elementwise: integers nearby.",
        names="floor ceil trunc round rint around fix",
    ),
    Subject(
        "comparing",
        "Comparing, logic, bits",
        "Elementwise questions and their combinations; bits of integers.",
        names="""
                         equal not_equal less less_equal greater greater_equal logical_and
            logical_or             logical_xor logical_not isnan isinf isfinite isneginf isposinf
            isreal iscomplex             isrealobj iscomplexobj isclose allclose array_equal
            array_equiv bitwise_and bitwise_or             bitwise_xor bitwise_invert bitwise_not
            invert bitwise_left_shift left_shift             bitwise_right_shift right_shift
            bitwise_count packbits unpackbits
        """,
    ),
    Subject(
        "reductions",
        "Sums, extrema, running sums",
        "Many elements to one, along axes.",
        names="""
                         sum prod mean std var max amax min amin any all count_nonzero argmax
            argmin average             ptp norm reduce mapreduce accumulate trace
        """,
        modules="functions.nans functions.running functions.neighbours",
    ),
    Subject(
        "statistics",
        "Quantiles, histograms, correlation",
        "What values are like, and how often they come.",
        names="nanmedian nanpercentile nanquantile",
        modules="functions.binning functions.quantiles functions.statistics",
    ),
    Subject(
        "calculus",
        "Differences, integrals, signals",
        "Of values on a grid.",
        modules="functions.calculus functions.padding",
    ),
    Subject(
        "products",
        "Products of vectors and matrices",
        "More are in [linear algebra](linalg.md).",
        names="matmul dot einsum einsum_path",
        modules="functions.products functions.einsum functions.vectors",
    ),
    Subject(
        "shapes",
        "Shapes, orders, joining",
        "The same elements in another shape or order; several arrays as one.",
        names="reshape permute_dims broadcast_to sliding_window_view astype ndim shape size",
        modules="functions.manipulation functions.turning functions.joining",
    ),
    Subject(
        "indexing",
        "Picking and choosing",
        "Elements by position, by condition, from several arrays.",
        names="""
                         where s_ index_exp ndenumerate ndindex argwhere flatnonzero unravel_index
            ravel_multi_index
        """,
        modules="functions.choosing functions.picking",
    ),
    Subject(
        "sorting",
        "Sorting, searching, sets",
        "Elements in order, and each once.",
        names="unique union1d intersect1d setdiff1d setxor1d",
        modules="functions.sorting functions.sets functions.vectorsets functions.ordering functions.searching",
    ),
    Subject(
        "polynomials",
        "Polynomials",
        "By their coefficients, the highest first.",
        modules="functions.polynomials",
    ),
    Subject(
        "files",
        "Files and text",
        "Arrays in files, and as text.",
        names="array2string array_repr array_str set_printoptions get_printoptions printoptions",
        modules="io functions.reading",
    ),
    Subject(
        "dtypes",
        "Dtypes and constants",
        "NumPy's own objects, and questions about them.",
        names="""
                         result_type can_cast promote_types common_type min_scalar_type isdtype
            issubdtype             finfo iinfo dtype isscalar iterable isfortran errstate bool
            bool_ int8 int16 int32             int64 int_ intc intp uint uint8 uint16 uint32
            uint64 uintp float16 float32 float64             half single double complex64
            complex128 csingle cdouble number integer signedinteger             unsignedinteger
            inexact floating complexfloating False_ True_ e pi inf nan newaxis
            euler_gamma __array_api_version__ __version__ __array_namespace_info__
        """,
    ),
    Subject(
        "places",
        "Places, memory, evaluation",
        "Where arrays are, when they are computed, what may move.",
        names="""
                         adapt place parent to_numpy materialize eager allow_scalar allow_transfer
            copyto             add_at may_share_memory shares_memory settings
        """,
        modules="devices streams graphs",
    ),
    Subject(
        "functions",
        "Functions of your own, compiled programs",
        "Elementwise functions, loops, kernels, whole programs.",
        names="broadcast map",
        modules="""
                         jit kernels functions.applying programs.compiled programs.controlflow
            programs.hints programs.persistence
        """,
    ),
    Subject(
        "dispatch",
        "Methods and seeing what happens",
        "Generic functions, and what an expression costs.",
        names="generic methods override which explain count doctor",
    ),
    Subject(
        "errors",
        "Errors and warnings",
        "What is raised, and warned of.",
        modules="dispatch.errors",
    ),
]

# Namespaces with a page of their own: (module, how it is called in examples, title).
SPACES = [
    ("mirabelle.linalg", "mb.linalg", "Linear algebra"),
    ("mirabelle.fft", "mb.fft", "Fourier transforms"),
    ("mirabelle.random", "mb.random", "Random numbers"),
    ("mirabelle.autodiff", "mb.autodiff", "Derivatives"),
    ("mirabelle.compiling", "mb.compiling", "What compiled programs are made of"),
    ("mirabelle.distributed", "mb.distributed", "Arrays over processes"),
    ("mirabelle.types", "mb.types", "Types of arrays and results"),
    ("mirabelle.ext", "mb.ext", "For extensions"),
    ("mirabelle.lib.stride_tricks", "mb.lib.stride_tricks", "Strides"),
    ("mirabelle.meshdata", "md", "Data on meshes"),
    ("mirabelle.dg", "dg", "A flow solver"),
]


def public(module: str) -> dict[str, Any]:
    """The public names of a module, without modules."""
    space = importlib.import_module(module)
    found = {name: getattr(space, name) for name in space.__all__}
    return {name: thing for name, thing in found.items() if not inspect.ismodule(thing)}


def by_subject() -> dict[str, dict[str, Any]]:
    """The names of `mb.*` by the page that has them; raises if one has none."""
    found: dict[str, dict[str, Any]] = {subject.page: {} for subject in SUBJECTS}
    for name, thing in public("mirabelle").items():
        listed = [s for s in SUBJECTS if name in s.names.split()] or [s for s in SUBJECTS if s.has(name, thing)]
        if not listed:
            raise LookupError(
                f"No page of the reference has mb.{name}: add it to SUBJECTS in docs/site/subjects.py."
            )
        found[listed[0].page][name] = thing
    return found
