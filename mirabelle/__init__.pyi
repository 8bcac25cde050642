# Written by `python -m docs.stubs` from the functions and docs/knowntypes.py: do not edit.
import builtins
import os
import types as modules
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    Any, Concatenate, Generic as Parametrised, Literal, ParamSpec, Self, TypeVar, TypeVarTuple, Unpack, overload
)

import numpy as np
import numpy.typing as npt

from mirabelle.arraytypes.annotations import ArrayLike, Axis, Device, DTypeLike, File, Index, Out, ShapeLike
from mirabelle.arraytypes.functions.sets import UniqueAll, UniqueCounts, UniqueInverse
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.diagnosis import Doctor
from mirabelle.arraytypes.functions.dtypes import FloatInfo, IntegerInfo
from mirabelle.arraytypes.jit import Jitted
from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.programs.compiled import Compiled
from mirabelle.arraytypes.programs.schedules import Schedule
from mirabelle.dispatch.generic import GenericFunction
from mirabelle.dispatch.methods import Method, MethodTable
from mirabelle.dispatch.styles import Place
__array_api_version__: str
__version__: str
from mirabelle import autodiff as autodiff
from mirabelle import compiling as compiling
from mirabelle import distributed as distributed
from mirabelle import ext as ext
from mirabelle import fft as fft
from mirabelle import lib as lib
from mirabelle import linalg as linalg
from mirabelle import meshdata as meshdata
from mirabelle import random as random
from mirabelle import types as types
from mirabelle.arraytypes.abstract import AbstractArray as AbstractArray
from mirabelle.arraytypes.devices import devices as devices
from mirabelle.arraytypes.devices import free_memory as free_memory
from mirabelle.arraytypes.devices import memory as memory
from mirabelle.arraytypes.devices import set_memory_limit as set_memory_limit
from mirabelle.arraytypes.distributed.darray import DArray as DArray
from mirabelle.arraytypes.functions.applying import vectorize as vectorize
from mirabelle.arraytypes.functions.grids import mgrid as mgrid
from mirabelle.arraytypes.functions.grids import ndindex as ndindex
from mirabelle.arraytypes.functions.grids import ogrid as ogrid
from mirabelle.arraytypes.functions.info import __array_namespace_info__ as __array_namespace_info__
from mirabelle.arraytypes.functions.memory import promote_types as promote_types
from mirabelle.arraytypes.functions.numpys import dtype as dtype
from mirabelle.arraytypes.functions.numpys import get_printoptions as get_printoptions
from mirabelle.arraytypes.functions.numpys import index_exp as index_exp
from mirabelle.arraytypes.functions.numpys import isscalar as isscalar
from mirabelle.arraytypes.functions.numpys import issubdtype as issubdtype
from mirabelle.arraytypes.functions.numpys import iterable as iterable
from mirabelle.arraytypes.functions.numpys import ndenumerate as ndenumerate
from mirabelle.arraytypes.functions.numpys import printoptions as printoptions
from mirabelle.arraytypes.functions.numpys import s_ as s_
from mirabelle.arraytypes.functions.numpys import set_printoptions as set_printoptions
from mirabelle.arraytypes.functions.rows import c_ as c_
from mirabelle.arraytypes.functions.rows import r_ as r_
from mirabelle.arraytypes.gpu import CuArray as CuArray
from mirabelle.arraytypes.gpu import ROCArray as ROCArray
from mirabelle.arraytypes.graphs import capture as capture
from mirabelle.arraytypes.host import HostArray as HostArray
from mirabelle.arraytypes.makers import default_array as default_array
from mirabelle.arraytypes.makers import namespace as namespace
from mirabelle.arraytypes.programs.persistence import load_program as load_program
from mirabelle.arraytypes.reference import RefArray as RefArray
from mirabelle.arraytypes.streams import stream as stream
from mirabelle.arraytypes.streams import synchronize as synchronize
from mirabelle.arraytypes.structured.banded import Banded as Banded
from mirabelle.arraytypes.structured.banded import Bidiagonal as Bidiagonal
from mirabelle.arraytypes.structured.banded import Diagonal as Diagonal
from mirabelle.arraytypes.structured.banded import Identity as Identity
from mirabelle.arraytypes.structured.banded import Tridiagonal as Tridiagonal
from mirabelle.arraytypes.structured.blocks import BlockDiagonal as BlockDiagonal
from mirabelle.arraytypes.structured.concat import Concat as Concat
from mirabelle.arraytypes.structured.implicit import Fill as Fill
from mirabelle.arraytypes.structured.implicit import Ones as Ones
from mirabelle.arraytypes.structured.implicit import Range as Range
from mirabelle.arraytypes.structured.implicit import Zeros as Zeros
from mirabelle.arraytypes.structured.kronecker import Kronecker as Kronecker
from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum as KroneckerSum
from mirabelle.arraytypes.structured.lowrank import LowRank as LowRank
from mirabelle.arraytypes.structured.mirrored import Hermitian as Hermitian
from mirabelle.arraytypes.structured.mirrored import Symmetric as Symmetric
from mirabelle.arraytypes.structured.sparse import CSR as CSR
from mirabelle.arraytypes.structured.toeplitz import Circulant as Circulant
from mirabelle.arraytypes.structured.toeplitz import Toeplitz as Toeplitz
from mirabelle.arraytypes.structured.triangular import LowerTriangular as LowerTriangular
from mirabelle.arraytypes.structured.triangular import UnitLowerTriangular as UnitLowerTriangular
from mirabelle.arraytypes.structured.triangular import UnitUpperTriangular as UnitUpperTriangular
from mirabelle.arraytypes.structured.triangular import UpperTriangular as UpperTriangular
from mirabelle.backends.explain import explain as explain
from mirabelle.dispatch.counters import count as count
from mirabelle.dispatch.errors import AmbiguousMethodError as AmbiguousMethodError
from mirabelle.dispatch.errors import CommunicationError as CommunicationError
from mirabelle.dispatch.errors import DenseFallbackError as DenseFallbackError
from mirabelle.dispatch.errors import DenseFallbackWarning as DenseFallbackWarning
from mirabelle.dispatch.errors import DeviceError as DeviceError
from mirabelle.dispatch.errors import GatheringWarning as GatheringWarning
from mirabelle.dispatch.errors import LayoutError as LayoutError
from mirabelle.dispatch.errors import MirabelleError as MirabelleError
from mirabelle.dispatch.errors import MissingMethodError as MissingMethodError
from mirabelle.dispatch.errors import OutOfMemoryError as OutOfMemoryError
from mirabelle.dispatch.errors import PlaceError as PlaceError
from mirabelle.dispatch.errors import RemoteError as RemoteError
from mirabelle.dispatch.errors import ScalarAccessError as ScalarAccessError
from mirabelle.dispatch.errors import UnfaithfulAnnotationError as UnfaithfulAnnotationError
from mirabelle.dispatch.errors import UserFunctionError as UserFunctionError
from mirabelle.dispatch.generic import override as override
from mirabelle.dispatch.policy import allow_scalar as allow_scalar
from mirabelle.dispatch.policy import allow_transfer as allow_transfer
from mirabelle.dispatch.policy import eager as eager
from mirabelle.dispatch.settings import settings as settings
from numpy import False_ as False_
from numpy import True_ as True_
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import cdouble as cdouble
from numpy import complex128 as complex128
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import double as double
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import half as half
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import pi as pi
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintp as uintp
from numpy import unsignedinteger as unsignedinteger

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_S = TypeVar("_S")
_Ts = TypeVarTuple("_Ts")
_Made = TypeVar("_Made", bound=AbstractArray)

class _Methods:
    __name__: str
    core: GenericFunction
    method: Any
    generated: Any
    previous: Any

class _Function(_Methods, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

def _function(f: Callable[_P, _R], /) -> _Function[_P, _R]: ...

class _Unary(_Methods):
    operator: Any
    @overload
    def __call__(self, x: ArrayLike, /, *, out: _Made, where: ArrayLike = ..., dtype: DTypeLike = ..., casting: str = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, out: Out = ..., /, *, where: ArrayLike = ..., dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

class _Binary(_Methods):
    operator: Any
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, *, out: _Made, where: ArrayLike = ..., dtype: DTypeLike = ..., casting: str = ...) -> _Made: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, out: Out = ..., /, *, where: ArrayLike = ..., dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

class _Ufunc(_Binary):
    def reduce(
        self, array: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ...,
        initial: complex | None = ..., where: ArrayLike = ...,
    ) -> AbstractArray: ...
    def accumulate(self, array: ArrayLike, axis: int = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...
    def reduceat(self, array: ArrayLike, indices: ArrayLike, axis: int = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...
    def outer(self, A: ArrayLike, B: ArrayLike, /, **options: Any) -> AbstractArray: ...
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike, /) -> None: ...

class _CompiledFunction(Compiled, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(
        self: _CompiledFunction[Concatenate[_S, _Q], _R], instance: _S, owner: Any = ...
    ) -> Callable[_Q, _R]: ...

class _JittedFunction(Jitted, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

abs: _Unary

absolute: _Unary

@_function
def accumulate(x: ArrayLike, op: str | Callable[[Any, Any], Any] | None = ..., axis: Axis = ..., init: complex | None = ...) -> AbstractArray: ...

acos: _Unary

acosh: _Unary

class _Adapt(_Methods):
    @overload
    def __call__(self, to: type[_Made], x: DenseArray[Any] | npt.NDArray[Any]) -> _Made: ...
    @overload
    def __call__(self, to: type[AbstractArray], x: AbstractArray) -> AbstractArray: ...
    @overload
    def __call__(self, to: type[AbstractArray], x: tuple[Any, ...]) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, to: type[AbstractArray], x: list[Any]) -> list[Any]: ...
    @overload
    def __call__(self, to: type[AbstractArray], x: Mapping[_R, Any]) -> dict[_R, Any]: ...

adapt: _Adapt

add: _Ufunc

@_function
def add_at(x: ArrayLike, index: Index, values: ArrayLike, /) -> None: ...

@_function
def adjoint(x: ArrayLike, /) -> AbstractArray: ...

class _All(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., where: ArrayLike = ...) -> AbstractArray: ...

all: _All

def allclose(a: ArrayLike, b: ArrayLike, rtol: float = ..., atol: float = ..., equal_nan: builtins.bool = ...) -> builtins.bool: ...

class _Amax(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

amax: _Amax

class _Amin(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

amin: _Amin

@_function
def angle(z: ArrayLike, deg: builtins.bool = ...) -> AbstractArray: ...

class _Any(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., where: ArrayLike = ...) -> AbstractArray: ...

any: _Any

@_function
def append(arr: ArrayLike, values: ArrayLike, axis: Axis = ...) -> AbstractArray: ...

@overload
def apply_along_axis(func1d: Callable[Concatenate[AbstractArray, ...], Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> AbstractArray: ...
@overload
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> AbstractArray: ...

def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]) -> AbstractArray: ...

@overload
def arange(start: ArrayLike, /, stop: ArrayLike | None = ..., step: ArrayLike = ..., dtype: DTypeLike = ..., *, device: type[_Made]) -> _Made: ...
@overload
def arange(start: ArrayLike, /, stop: ArrayLike | None = ..., step: ArrayLike = ..., dtype: DTypeLike = ..., *, device: Device | None = ...) -> AbstractArray: ...

arccos: _Unary

arccosh: _Unary

arcsin: _Unary

arcsinh: _Unary

arctan: _Unary

arctan2: _Ufunc

arctanh: _Unary

@_function
def argmax(x: ArrayLike, /, axis: Axis = ..., out: Out = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def argmin(x: ArrayLike, /, axis: Axis = ..., out: Out = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def argpartition(a: ArrayLike, kth: int | Sequence[int], axis: Axis = ..., kind: str = ...) -> AbstractArray: ...

@_function
def argsort(x: ArrayLike, /, axis: Axis = ..., kind: str | None = ..., order: str | None = ..., *, stable: builtins.bool | None = ..., descending: builtins.bool = ...) -> AbstractArray: ...

@_function
def argwhere(a: ArrayLike) -> AbstractArray: ...

@_function
def around(a: ArrayLike, decimals: int = ..., out: Out = ...) -> AbstractArray: ...

@overload
def array(object: ArrayLike, dtype: DTypeLike = ..., *, copy: builtins.bool | None = ..., order: str = ..., ndmin: int = ..., device: type[_Made]) -> _Made: ...
@overload
def array(object: ArrayLike, dtype: DTypeLike = ..., *, copy: builtins.bool | None = ..., order: str = ..., ndmin: int = ..., device: Device | None = ...) -> AbstractArray: ...

def array2string(a: ArrayLike, *args: Any, **options: Any) -> str: ...

def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: builtins.bool = ...) -> builtins.bool: ...

def array_equiv(a1: ArrayLike, a2: ArrayLike) -> builtins.bool: ...

def array_repr(arr: ArrayLike, *args: Any, **options: Any) -> str: ...

@_function
def array_split(ary: ArrayLike, indices_or_sections: int | ArrayLike, axis: int = ...) -> list[AbstractArray]: ...

def array_str(a: ArrayLike, *args: Any, **options: Any) -> str: ...

def asanyarray(obj: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, device: Device | None = ..., copy: builtins.bool | None = ...) -> AbstractArray: ...

@overload
def asarray(obj: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, copy: builtins.bool | None = ..., device: type[_Made]) -> _Made: ...
@overload
def asarray(obj: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, copy: builtins.bool | None = ..., device: Device | None = ...) -> AbstractArray: ...

def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike = ..., order: str | None = ..., *, device: Device | None = ...) -> AbstractArray: ...

@_function
def ascontiguousarray(a: ArrayLike, dtype: DTypeLike = ...) -> AbstractArray: ...

@_function
def asfortranarray(a: ArrayLike, dtype: DTypeLike = ...) -> AbstractArray: ...

asin: _Unary

asinh: _Unary

@_function
def astype(x: ArrayLike, dtype: DTypeLike, /, copy: builtins.bool = ..., *, device: Device | None = ...) -> AbstractArray: ...

atan: _Unary

atan2: _Ufunc

atanh: _Unary

@overload
def atleast_1d(ary: ArrayLike, /) -> AbstractArray: ...
@overload
def atleast_1d(*arys: ArrayLike) -> tuple[AbstractArray, ...]: ...

@overload
def atleast_2d(ary: ArrayLike, /) -> AbstractArray: ...
@overload
def atleast_2d(*arys: ArrayLike) -> tuple[AbstractArray, ...]: ...

@overload
def atleast_3d(ary: ArrayLike, /) -> AbstractArray: ...
@overload
def atleast_3d(*arys: ArrayLike) -> tuple[AbstractArray, ...]: ...

class _Average(_Methods):
    @overload
    def __call__(self, a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: Literal[False] = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...
    @overload
    def __call__(self, a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: builtins.bool = ..., *, keepdims: builtins.bool = ...) -> tuple[AbstractArray, AbstractArray]: ...

average: _Average

@_function
def band(x: ArrayLike, /, offset: int = ...) -> AbstractArray: ...

def bartlett(M: int, *, device: Device | None = ...) -> AbstractArray: ...

@_function
def bincount(x: ArrayLike, /, weights: ArrayLike | None = ..., minlength: int = ...) -> AbstractArray: ...

bitwise_and: _Ufunc

bitwise_count: _Unary

bitwise_invert: _Unary

bitwise_left_shift: _Ufunc

bitwise_not: _Unary

bitwise_or: _Ufunc

bitwise_right_shift: _Ufunc

bitwise_xor: _Ufunc

def blackman(M: int, *, device: Device | None = ...) -> AbstractArray: ...

def block(arrays: Any) -> AbstractArray: ...

def block_diagonal(*blocks: ArrayLike) -> AbstractArray: ...

@overload
def broadcast(f: Callable[[Any], complex], x1: ArrayLike, /) -> AbstractArray: ...
@overload
def broadcast(f: Callable[[Any], tuple[Any, ...]], x1: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def broadcast(f: Callable[[Any, Any], complex], x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...
@overload
def broadcast(f: Callable[[Any, Any], tuple[Any, ...]], x1: ArrayLike, x2: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def broadcast(f: Callable[[Any, Any, Any], complex], x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> AbstractArray: ...
@overload
def broadcast(f: Callable[[Any, Any, Any], tuple[Any, ...]], x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def broadcast(f: Callable[..., Any], /, *operands: ArrayLike) -> AbstractArray: ...

def broadcast_arrays(*args: ArrayLike, subok: builtins.bool = ...) -> tuple[AbstractArray, ...]: ...

def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]: ...

@_function
def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> AbstractArray: ...

def can_cast(from_: DTypeLike, to: DTypeLike, /, casting: str = ...) -> builtins.bool: ...

cbrt: _Unary

ceil: _Unary

def choose(a: ArrayLike, choices: ArrayLike, out: Out = ..., mode: str = ...) -> AbstractArray: ...

@_function
def clip(x: ArrayLike, /, a_min: ArrayLike | None = ..., a_max: ArrayLike | None = ..., out: Out = ..., *, min: ArrayLike | None = ..., max: ArrayLike | None = ..., casting: str = ...) -> AbstractArray: ...

def column_stack(tup: ArrayLike) -> AbstractArray: ...

def common_type(*arrays: ArrayLike) -> type[np.inexact[Any]]: ...

@overload
def compile(f: Callable[_P, _R], /, *, static: Iterable[str] = ..., passes: str | Iterable[str | Callable[..., Any]] | None = ..., assume_finite: builtins.bool = ..., whole: builtins.bool = ..., schedule: Schedule | None = ..., sizes: builtins.str = ...) -> _CompiledFunction[_P, _R]: ...
@overload
def compile(f: None = ..., /, *, static: Iterable[str] = ..., passes: str | Iterable[str | Callable[..., Any]] | None = ..., assume_finite: builtins.bool = ..., whole: builtins.bool = ..., schedule: Schedule | None = ..., sizes: builtins.str = ...) -> Callable[[Callable[_P, _R]], _CompiledFunction[_P, _R]]: ...

@_function
def compress(condition: ArrayLike, a: ArrayLike, axis: Axis = ..., out: Out = ...) -> AbstractArray: ...

def concat(arrays: ArrayLike, /, axis: Axis = ..., out: Out = ..., *, dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

def concatenate(arrays: ArrayLike, /, axis: Axis = ..., out: Out = ..., *, dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

def cond(predicate: ArrayLike, if_true: Callable[[Unpack[_Ts]], _R], if_false: Callable[[Unpack[_Ts]], _R], *operands: Unpack[_Ts]) -> _R: ...

conj: _Unary

conjugate: _Unary

@_function
def convolve(a: ArrayLike, v: ArrayLike, mode: str = ...) -> AbstractArray: ...

copy: _Unary

copysign: _Ufunc

@_function
def copyto(dest: ArrayLike, src: ArrayLike, *, casting: str = ..., where: ArrayLike = ...) -> AbstractArray: ...

@_function
def corrcoef(x: ArrayLike, y: ArrayLike | None = ..., rowvar: builtins.bool = ..., *, dtype: DTypeLike = ...) -> AbstractArray: ...

@_function
def correlate(a: ArrayLike, v: ArrayLike, mode: str = ...) -> AbstractArray: ...

cos: _Unary

cosh: _Unary

cospi: _Unary

@_function
def count_nonzero(x: ArrayLike, /, axis: Axis = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def cov(m: ArrayLike, y: ArrayLike | None = ..., rowvar: builtins.bool = ..., bias: builtins.bool = ..., ddof: float | None = ..., fweights: ArrayLike | None = ..., aweights: ArrayLike | None = ..., *, dtype: DTypeLike = ...) -> AbstractArray: ...

@_function
def cross(a: ArrayLike, b: ArrayLike, /, axisa: int = ..., axisb: int = ..., axisc: int = ..., axis: Axis = ...) -> AbstractArray: ...

@_function
def cumprod(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...

@_function
def cumsum(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...

@_function
def cumulative_prod(x: ArrayLike, /, axis: Axis = ..., *, dtype: DTypeLike = ..., include_initial: builtins.bool = ...) -> AbstractArray: ...

@_function
def cumulative_sum(x: ArrayLike, /, axis: Axis = ..., *, dtype: DTypeLike = ..., include_initial: builtins.bool = ...) -> AbstractArray: ...

deg2rad: _Unary

degrees: _Unary

@_function
def delete(arr: ArrayLike, obj: ArrayLike, axis: Axis = ...) -> AbstractArray: ...

@_function
def dense(x: ArrayLike) -> AbstractArray: ...

@_function
def diag(v: ArrayLike, k: int = ...) -> AbstractArray: ...

def diag_indices(n: int, ndim: int = ..., *, device: Device | None = ...) -> tuple[AbstractArray, ...]: ...

def diag_indices_from(arr: ArrayLike) -> tuple[AbstractArray, ...]: ...

@_function
def diagflat(v: ArrayLike, k: int = ...) -> AbstractArray: ...

@_function
def diagonal(a: ArrayLike, offset: int = ..., axis1: int = ..., axis2: int = ...) -> AbstractArray: ...

@_function
def diff(x: ArrayLike, /, n: int = ..., axis: int = ..., prepend: ArrayLike | None = ..., append: ArrayLike | None = ...) -> AbstractArray: ...

@_function
def digitize(x: ArrayLike, bins: int | str | ArrayLike, right: builtins.bool = ...) -> AbstractArray: ...

divide: _Ufunc

@_function
def divmod(x1: ArrayLike, x2: ArrayLike, /, *, out: tuple[AbstractArray | None, ...] | None = ..., where: ArrayLike = ...) -> tuple[AbstractArray, AbstractArray]: ...

def doctor(f: Callable[..., Any] | None = ..., *args: Any, **kwargs: Any) -> Doctor: ...

@_function
def dot(x1: ArrayLike, x2: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def dsplit(ary: ArrayLike, indices_or_sections: int | ArrayLike) -> list[AbstractArray]: ...

def dstack(tup: ArrayLike) -> AbstractArray: ...

@_function
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = ..., to_begin: ArrayLike | None = ...) -> AbstractArray: ...

def einsum(subscripts: str | ArrayLike, *operands: ArrayLike, out: Out = ..., dtype: DTypeLike = ..., casting: str = ..., optimize: builtins.bool | str | Sequence[Any] = ...) -> AbstractArray: ...

def einsum_path(subscripts: str | ArrayLike, *operands: ArrayLike, optimize: builtins.bool | str | Sequence[Any] = ...) -> tuple[list[Any], str]: ...

@overload
def empty(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: type[_Made]) -> _Made: ...
@overload
def empty(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def empty_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: type[_Made]) -> _Made: ...
@overload
def empty_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: Device | None = ...) -> AbstractArray: ...

equal: _Ufunc

erf: _Unary

erfc: _Unary

def errstate(**options: Any) -> np.errstate: ...

exp: _Unary

exp2: _Unary

@_function
def expand_dims(x: ArrayLike, /, axis: Axis) -> AbstractArray: ...

expm1: _Unary

@_function
def extract(condition: ArrayLike, arr: ArrayLike) -> AbstractArray: ...

@overload
def eye(n_rows: int, n_cols: int | None = ..., /, *, k: int = ..., dtype: DTypeLike = ..., order: str = ..., device: type[_Made]) -> _Made: ...
@overload
def eye(n_rows: int, n_cols: int | None = ..., /, *, k: int = ..., dtype: DTypeLike = ..., order: str = ..., device: Device | None = ...) -> AbstractArray: ...

@_function
def fabs(x: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: builtins.bool = ...) -> None: ...

def finfo(type: DTypeLike | ArrayLike, /) -> FloatInfo: ...

@_function
def fix(x: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def flatnonzero(a: ArrayLike) -> AbstractArray: ...

@_function
def flip(x: ArrayLike, /, axis: Axis = ...) -> AbstractArray: ...

@_function
def fliplr(m: ArrayLike) -> AbstractArray: ...

@_function
def flipud(m: ArrayLike) -> AbstractArray: ...

@_function
def float_power(x1: ArrayLike, x2: ArrayLike) -> AbstractArray: ...

floor: _Unary

floor_divide: _Ufunc

@_function
def fma(x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /, *, out: Out = ..., where: ArrayLike = ...) -> AbstractArray: ...

fmax: _Ufunc

fmin: _Ufunc

fmod: _Ufunc

def fori_loop(lower: ArrayLike, upper: ArrayLike, body: Callable[[Any, _R], _R], state: _R) -> _R: ...

@_function
def frexp(x: ArrayLike, /, *, out: tuple[AbstractArray | None, ...] | None = ..., where: ArrayLike = ...) -> tuple[AbstractArray, AbstractArray]: ...

def from_dlpack(x: ArrayLike, /, *, device: Device | None = ..., copy: builtins.bool | None = ...) -> AbstractArray: ...

def frombuffer(buffer: Any, dtype: DTypeLike = ..., count: int = ..., offset: int = ..., *, device: Device | None = ...) -> AbstractArray: ...

def fromfile(file: File, dtype: DTypeLike = ..., count: int = ..., sep: str = ..., offset: int = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def fromfunction(function: Callable[[AbstractArray], Any], shape: ShapeLike, *, dtype: DTypeLike = ..., device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...
@overload
def fromfunction(function: Callable[[AbstractArray, AbstractArray], Any], shape: ShapeLike, *, dtype: DTypeLike = ..., device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...
@overload
def fromfunction(function: Callable[[AbstractArray, AbstractArray, AbstractArray], Any], shape: ShapeLike, *, dtype: DTypeLike = ..., device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...
@overload
def fromfunction(function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = ..., device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...

def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = ..., *, device: Device | None = ...) -> AbstractArray: ...

def fromstring(string: str, dtype: DTypeLike = ..., count: int = ..., *, sep: str, device: Device | None = ...) -> AbstractArray: ...

@overload
def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike = ..., order: str = ..., *, device: type[_Made]) -> _Made: ...
@overload
def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike = ..., order: str = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def full_like(x: ArrayLike, /, fill_value: ArrayLike, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: type[_Made]) -> _Made: ...
@overload
def full_like(x: ArrayLike, /, fill_value: ArrayLike, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: Device | None = ...) -> AbstractArray: ...

gamma: _Unary

gcd: _Ufunc

def generic(prototype: Callable[_P, _R], arity: int | None = ..., *, wider: builtins.bool = ..., optional: int = ..., operator: builtins.bool = ..., by_type: builtins.bool = ...) -> _Function[_P, _R]: ...

def genfromtxt(fname: File | Iterable[str], *args: Any, device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...

def geomspace(start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: builtins.bool = ..., dtype: DTypeLike = ..., axis: int = ..., *, device: Device | None = ...) -> AbstractArray: ...

class _Gradient(_Methods):
    @overload
    def __call__(self, f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int = ...) -> AbstractArray: ...
    @overload
    def __call__(self, f: ArrayLike, *varargs: ArrayLike, axis: tuple[int, int, Unpack[tuple[int, ...]]], edge_order: int = ...) -> tuple[AbstractArray, ...]: ...
    @overload
    def __call__(self, f: ArrayLike, *varargs: ArrayLike, axis: Axis = ..., edge_order: int = ...) -> AbstractArray | Any: ...

gradient: _Gradient

greater: _Ufunc

greater_equal: _Ufunc

def hamming(M: int, *, device: Device | None = ...) -> AbstractArray: ...

def hanning(M: int, *, device: Device | None = ...) -> AbstractArray: ...

heaviside: _Ufunc

def hint(x: _R, /, *, store: builtins.bool = ..., once: builtins.bool = ..., recompute: builtins.bool = ..., separate: builtins.bool = ..., own_memory: builtins.bool = ..., precision: str | None = ..., library: str | None = ..., tile: int | None = ..., threads: int | None = ..., tag: str | None = ..., axes: Iterable[str] | None = ...) -> _R: ...

@_function
def histogram(a: ArrayLike, bins: int | str | ArrayLike = ..., range: tuple[float, float] | None = ..., density: builtins.bool | None = ..., weights: ArrayLike | None = ...) -> tuple[AbstractArray, AbstractArray]: ...

@_function
def histogram2d(x: ArrayLike, y: ArrayLike, bins: int | str | ArrayLike = ..., range: Sequence[Any] | None = ..., density: builtins.bool | None = ..., weights: ArrayLike | None = ...) -> tuple[AbstractArray, AbstractArray, AbstractArray]: ...

@_function
def histogram_bin_edges(a: ArrayLike, bins: int | str | ArrayLike = ..., range: tuple[float, float] | None = ..., weights: ArrayLike | None = ...) -> AbstractArray: ...

def histogramdd(sample: ArrayLike, bins: int | str | ArrayLike = ..., range: Sequence[Any] | None = ..., density: builtins.bool | None = ..., weights: ArrayLike | None = ...) -> tuple[AbstractArray, list[AbstractArray]]: ...

@_function
def hsplit(ary: ArrayLike, indices_or_sections: int | ArrayLike) -> list[AbstractArray]: ...

def hstack(tup: ArrayLike, *, dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

hypot: _Ufunc

@_function
def i0(x: ArrayLike) -> AbstractArray: ...

@overload
def identity(n: int, dtype: DTypeLike = ..., *, device: type[_Made]) -> _Made: ...
@overload
def identity(n: int, dtype: DTypeLike = ..., *, device: Device | None = ...) -> AbstractArray: ...

def iinfo(type: DTypeLike | ArrayLike, /) -> IntegerInfo: ...

imag: _Unary

@overload
def indices(dimensions: ShapeLike, dtype: DTypeLike = ..., sparse: Literal[False] = ..., *, device: Device | None = ...) -> AbstractArray: ...
@overload
def indices(dimensions: ShapeLike, dtype: DTypeLike = ..., sparse: builtins.bool = ..., *, device: Device | None = ...) -> tuple[AbstractArray, ...]: ...

@_function
def inner(a: ArrayLike, b: ArrayLike, /) -> AbstractArray: ...

@_function
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: Axis = ...) -> AbstractArray: ...

@_function
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: complex | None = ..., right: complex | None = ..., period: complex | None = ...) -> AbstractArray: ...

class _Intersect1D(_Methods):
    @overload
    def __call__(self, ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = ..., return_indices: Literal[False] = ...) -> AbstractArray: ...
    @overload
    def __call__(self, ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = ..., return_indices: builtins.bool = ...) -> tuple[AbstractArray, AbstractArray, AbstractArray]: ...

intersect1d: _Intersect1D

@_function
def inverse(A: ArrayLike, /) -> AbstractArray: ...

invert: _Unary

@_function
def isclose(a: ArrayLike, b: ArrayLike, rtol: float = ..., atol: float = ..., equal_nan: builtins.bool = ...) -> AbstractArray: ...

@_function
def iscomplex(x: ArrayLike) -> AbstractArray: ...

def iscomplexobj(x: ArrayLike) -> builtins.bool: ...

def isdtype(dtype: DTypeLike, kind: str | None) -> builtins.bool: ...

isfinite: _Unary

@_function
def isfortran(a: ArrayLike) -> builtins.bool: ...

@_function
def isin(x1: ArrayLike, x2: ArrayLike, /, assume_unique: builtins.bool = ..., invert: builtins.bool = ..., *, kind: str | None = ...) -> AbstractArray: ...

isinf: _Unary

isnan: _Unary

@_function
def isneginf(x: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def isposinf(x: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def isreal(x: ArrayLike) -> AbstractArray: ...

def isrealobj(x: ArrayLike) -> builtins.bool: ...

def ix_(*args: ArrayLike, device: Device | None = ...) -> tuple[AbstractArray, ...]: ...

@overload
def jit(function: Callable[_P, _R], /, *, parallel: builtins.bool = ..., fastmath: builtins.bool = ..., nogil: builtins.bool = ..., boundscheck: builtins.bool = ...) -> _JittedFunction[_P, _R]: ...
@overload
def jit(function: None = ..., /, *, parallel: builtins.bool = ..., fastmath: builtins.bool = ..., nogil: builtins.bool = ..., boundscheck: builtins.bool = ...) -> Callable[[Callable[_P, _R]], _JittedFunction[_P, _R]]: ...

def kaiser(M: int, beta: ArrayLike, *, device: Device | None = ...) -> AbstractArray: ...

@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(*, padded: builtins.bool = ..., boundscheck: builtins.bool = ...) -> Callable[[Callable[..., Any]], Kernel]: ...

@_function
def kron(a: ArrayLike, b: ArrayLike, /) -> AbstractArray: ...

def kronecker(*factors: ArrayLike) -> AbstractArray: ...

def kronecker_sum(*matrices: ArrayLike) -> AbstractArray: ...

lcm: _Ufunc

ldexp: _Ufunc

left_shift: _Ufunc

less: _Ufunc

less_equal: _Ufunc

def lexsort(keys: ArrayLike, axis: int = ...) -> AbstractArray: ...

lgamma: _Unary

@overload
def linspace(start: ArrayLike, stop: ArrayLike, /, num: int = ..., endpoint: builtins.bool = ..., retstep: Literal[False] = ..., dtype: DTypeLike = ..., axis: int = ..., *, device: type[_Made]) -> _Made: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, /, num: int = ..., endpoint: builtins.bool = ..., retstep: Literal[False] = ..., dtype: DTypeLike = ..., axis: int = ..., *, device: Device | None = ...) -> AbstractArray: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, /, num: int = ..., endpoint: builtins.bool = ..., *, retstep: Literal[True], dtype: DTypeLike = ..., axis: int = ..., device: Device | None = ...) -> tuple[AbstractArray, AbstractArray]: ...

@overload
def load(file: File, /, name: str, *, mmap: builtins.bool = ..., device: Device | None = ..., mmap_mode: str | None = ..., allow_pickle: builtins.bool = ...) -> AbstractArray: ...
@overload
def load(file: File, /, name: None = ..., *, mmap: Literal[True], device: Device | None = ..., mmap_mode: str | None = ..., allow_pickle: builtins.bool = ...) -> AbstractArray: ...
@overload
def load(file: File, /, name: None = ..., *, mmap: builtins.bool = ..., device: Device | None = ..., mmap_mode: str | None = ..., allow_pickle: builtins.bool = ...) -> AbstractArray | Any: ...

def loadtxt(fname: File | Iterable[str], *args: Any, device: Device | None = ..., **kwargs: Any) -> AbstractArray: ...

log: _Unary

log10: _Unary

log1p: _Unary

log2: _Unary

logaddexp: _Ufunc

logaddexp2: _Ufunc

logical_and: _Ufunc

logical_not: _Unary

logical_or: _Ufunc

logical_xor: _Ufunc

def logspace(start: ArrayLike, stop: ArrayLike, num: int = ..., endpoint: builtins.bool = ..., base: ArrayLike = ..., dtype: DTypeLike = ..., axis: int = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def map(f: Callable[[Any], complex], x1: ArrayLike, /) -> AbstractArray: ...
@overload
def map(f: Callable[[Any], tuple[Any, ...]], x1: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def map(f: Callable[[Any, Any], complex], x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...
@overload
def map(f: Callable[[Any, Any], tuple[Any, ...]], x1: ArrayLike, x2: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def map(f: Callable[[Any, Any, Any], complex], x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> AbstractArray: ...
@overload
def map(f: Callable[[Any, Any, Any], tuple[Any, ...]], x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
@overload
def map(f: Callable[..., Any], /, *operands: ArrayLike) -> AbstractArray: ...

def mapreduce(f: str | Callable[[Any], Any], op: str | Callable[[Any, Any], Any], x: ArrayLike, *, init: complex | None = ..., axis: Axis = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

def mask_indices(n: int, mask_func: Callable[..., Any], k: int = ..., *, device: Device | None = ...) -> tuple[AbstractArray, ...]: ...

materialize: _Unary

@_function
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

@_function
def matrix_transpose(x: ArrayLike, /) -> AbstractArray: ...

@_function
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

class _Max(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

max: _Max

maximum: _Ufunc

def may_share_memory(a: ArrayLike, b: ArrayLike, /, max_work: int = ...) -> builtins.bool: ...

class _Mean(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., *, out: _Made, keepdims: builtins.bool = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ...) -> AbstractArray: ...

mean: _Mean

@_function
def median(a: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

def meshgrid(*arrays: ArrayLike, indexing: str = ..., sparse: builtins.bool = ..., copy: builtins.bool = ...) -> tuple[AbstractArray, ...]: ...

def methods(function: Callable[..., Any]) -> MethodTable: ...

class _Min(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

min: _Min

def min_scalar_type(a: ArrayLike, /) -> np.dtype: ...

minimum: _Ufunc

mod: _Ufunc

@_function
def modf(x: ArrayLike, /, *, out: tuple[AbstractArray | None, ...] | None = ..., where: ArrayLike = ...) -> tuple[AbstractArray, AbstractArray]: ...

@_function
def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> AbstractArray: ...

multiply: _Ufunc

@_function
def nan_to_num(x: ArrayLike, copy: builtins.bool = ..., nan: float = ..., posinf: float | None = ..., neginf: float | None = ...) -> AbstractArray: ...

@_function
def nanargmax(a: ArrayLike, axis: Axis = ..., out: Out = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def nanargmin(a: ArrayLike, axis: Axis = ..., out: Out = ..., *, keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def nancumprod(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...

@_function
def nancumsum(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...

@_function
def nanmax(a: ArrayLike, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

@_function
def nanmean(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ...) -> AbstractArray: ...

@_function
def nanmedian(a: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def nanmin(a: ArrayLike, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

@_function
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., method: str = ..., keepdims: builtins.bool = ..., *, weights: ArrayLike | None = ...) -> AbstractArray: ...

@_function
def nanprod(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

@_function
def nanquantile(a: ArrayLike, q: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., method: str = ..., keepdims: builtins.bool = ..., *, weights: ArrayLike | None = ...) -> AbstractArray: ...

@_function
def nanstd(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., ddof: float | None = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ..., mean: ArrayLike | None = ..., correction: float | None = ...) -> AbstractArray: ...

@_function
def nansum(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

@_function
def nanvar(a: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., ddof: float | None = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ..., mean: ArrayLike | None = ..., correction: float | None = ...) -> AbstractArray: ...

def ndim(a: ArrayLike) -> int: ...

negative: _Unary

nextafter: _Ufunc

@_function
def nonzero(x: ArrayLike, /) -> tuple[AbstractArray, ...]: ...

@_function
def norm(x: ArrayLike, p: float = ...) -> AbstractArray: ...

not_equal: _Ufunc

@overload
def ones(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: type[_Made]) -> _Made: ...
@overload
def ones(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def ones_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: type[_Made]) -> _Made: ...
@overload
def ones_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: Device | None = ...) -> AbstractArray: ...

@_function
def outer(a: ArrayLike, b: ArrayLike, /) -> AbstractArray: ...

@_function
def packbits(a: ArrayLike, /, axis: Axis = ..., bitorder: str = ...) -> AbstractArray: ...

@_function
def pad(array: ArrayLike, pad_width: int | Sequence[Any], mode: str | Callable[..., Any] = ..., **kwargs: Any) -> AbstractArray: ...

@_function
def parent(x: ArrayLike) -> AbstractArray: ...

@_function
def partition(a: ArrayLike, kth: int | Sequence[int], axis: Axis = ..., kind: str = ...) -> AbstractArray: ...

@_function
def percentile(a: ArrayLike, q: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., method: str = ..., keepdims: builtins.bool = ..., *, weights: ArrayLike | None = ...) -> AbstractArray: ...

@_function
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> AbstractArray: ...

class _Piecewise(_Methods):
    @overload
    def __call__(self, x: ArrayLike, condlist: Sequence[ArrayLike], funclist: Sequence[ArrayLike | Callable[Concatenate[AbstractArray, ...], Any]], *args: Any, **kw: Any) -> AbstractArray: ...
    @overload
    def __call__(self, x: ArrayLike, condlist: Sequence[ArrayLike], funclist: Sequence[ArrayLike | Callable[..., Any]], *args: Any, **kw: Any) -> AbstractArray: ...

piecewise: _Piecewise

@_function
def place(x: ArrayLike) -> Place: ...

@_function
def poly(seq_of_zeros: ArrayLike) -> AbstractArray: ...

@_function
def polyadd(a1: ArrayLike, a2: ArrayLike) -> AbstractArray: ...

@_function
def polyder(p: ArrayLike, m: int = ...) -> AbstractArray: ...

@_function
def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[AbstractArray, AbstractArray]: ...

@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Literal[False] = ..., w: ArrayLike | None = ..., cov: Literal[False] = ...) -> AbstractArray: ...
@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: builtins.bool = ..., w: ArrayLike | None = ..., cov: builtins.bool | str = ...) -> tuple[Any, ...]: ...

@_function
def polyint(p: ArrayLike, m: int = ..., k: ArrayLike | None = ...) -> AbstractArray: ...

@_function
def polymul(a1: ArrayLike, a2: ArrayLike) -> AbstractArray: ...

@_function
def polysub(a1: ArrayLike, a2: ArrayLike) -> AbstractArray: ...

@_function
def polyval(p: ArrayLike, x: ArrayLike) -> AbstractArray: ...

positive: _Unary

pow: _Ufunc

power: _Ufunc

class _Prod(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

prod: _Prod

@_function
def ptp(a: ArrayLike, axis: Axis = ..., out: Out = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str = ...) -> None: ...

@_function
def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int = ...) -> None: ...

@_function
def putmask(a: ArrayLike, mask: ArrayLike, values: ArrayLike) -> None: ...

@_function
def quantile(a: ArrayLike, q: ArrayLike, axis: Axis = ..., out: Out = ..., overwrite_input: builtins.bool = ..., method: str = ..., keepdims: builtins.bool = ..., *, weights: ArrayLike | None = ...) -> AbstractArray: ...

rad2deg: _Unary

radians: _Unary

@_function
def ravel(a: ArrayLike, order: str = ...) -> AbstractArray: ...

def ravel_multi_index(multi_index: Sequence[ArrayLike] | AbstractArray, dims: ShapeLike, mode: str = ..., order: str = ...) -> AbstractArray: ...

real: _Unary

@_function
def real_if_close(a: ArrayLike, tol: float = ...) -> AbstractArray: ...

reciprocal: _Unary

def reduce(op: str | Callable[[Any, Any], Any], x: ArrayLike, *, init: complex | None = ..., axis: Axis = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

remainder: _Ufunc

@_function
def repeat(x: ArrayLike, repeats: ArrayLike, /, axis: Axis = ...) -> AbstractArray: ...

@_function
def require(a: ArrayLike, dtype: DTypeLike = ..., requirements: str | Sequence[str] | None = ...) -> AbstractArray: ...

@_function
def reshape(x: ArrayLike, /, shape: ShapeLike, order: str = ..., *, copy: builtins.bool | None = ...) -> AbstractArray: ...

@_function
def resize(a: ArrayLike, new_shape: ShapeLike) -> AbstractArray: ...

def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike) -> np.dtype: ...

right_shift: _Ufunc

@_function
def rint(x: ArrayLike, out: Out = ...) -> AbstractArray: ...

@_function
def roll(x: ArrayLike, /, shift: int | Sequence[int], axis: Axis = ...) -> AbstractArray: ...

@_function
def rollaxis(a: ArrayLike, axis: int, start: int = ...) -> AbstractArray: ...

@_function
def roots(p: ArrayLike) -> AbstractArray: ...

@_function
def rot90(m: ArrayLike, k: int = ..., axes: Sequence[int] = ...) -> AbstractArray: ...

@_function
def round(x: ArrayLike, /, decimals: int = ..., out: Out = ..., *, where: ArrayLike = ...) -> AbstractArray: ...

def save(file: File, x: Any, /, *, compressed: builtins.bool = ..., allow_pickle: builtins.bool = ...) -> None: ...

def savetxt(fname: File | Iterable[str], X: ArrayLike, *args: Any, **kwargs: Any) -> None: ...

def savez(file: File, /, *arrays: ArrayLike, allow_pickle: builtins.bool = ..., **named: Any) -> None: ...

def savez_compressed(file: File, /, *arrays: ArrayLike, allow_pickle: builtins.bool = ..., **named: Any) -> None: ...

@_function
def searchsorted(x1: ArrayLike, x2: ArrayLike, /, side: str = ..., sorter: ArrayLike | None = ...) -> AbstractArray: ...

def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = ...) -> AbstractArray: ...

@_function
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = ...) -> AbstractArray: ...

@_function
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: builtins.bool = ...) -> AbstractArray: ...

def shape(a: ArrayLike) -> tuple[int, ...]: ...

def shares_memory(a: ArrayLike, b: ArrayLike, /, max_work: int = ...) -> builtins.bool: ...

sign: _Unary

signbit: _Unary

@_function
def similar(x: ArrayLike, dtype: DTypeLike = ..., shape: ShapeLike | None = ...) -> AbstractArray: ...

sin: _Unary

@_function
def sinc(x: ArrayLike) -> AbstractArray: ...

sinh: _Unary

sinpi: _Unary

def size(a: ArrayLike, axis: Axis = ...) -> int: ...

def sliding_window_view(x: ArrayLike, window_shape: ShapeLike, axis: Axis = ...) -> AbstractArray: ...

@_function
def sort(x: ArrayLike, /, axis: Axis = ..., kind: str | None = ..., order: str | None = ..., *, stable: builtins.bool | None = ..., descending: builtins.bool = ...) -> AbstractArray: ...

@_function
def sort_complex(a: ArrayLike) -> AbstractArray: ...

spacing: _Unary

@_function
def split(ary: ArrayLike, indices_or_sections: int | ArrayLike, axis: int = ...) -> list[AbstractArray]: ...

sqrt: _Unary

square: _Unary

@_function
def squeeze(x: ArrayLike, /, axis: Axis = ...) -> AbstractArray: ...

def stack(arrays: ArrayLike, /, axis: Axis = ..., out: Out = ..., *, dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

@_function
def std(x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., ddof: float | None = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ..., mean: ArrayLike | None = ..., correction: float | None = ...) -> AbstractArray: ...

subtract: _Ufunc

class _Sum(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., *, out: _Made, keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: builtins.bool = ..., initial: complex | None = ..., where: ArrayLike = ...) -> AbstractArray: ...

sum: _Sum

@_function
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> AbstractArray: ...

@_function
def take(x: ArrayLike, indices: ArrayLike, /, axis: Axis = ..., out: Out = ..., mode: str = ...) -> AbstractArray: ...

@_function
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = ...) -> AbstractArray: ...

tan: _Unary

tanh: _Unary

@_function
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | Sequence[Any] = ...) -> AbstractArray: ...

@_function
def tile(x: ArrayLike, repetitions: ShapeLike, /) -> AbstractArray: ...

@_function
def to_numpy(x: ArrayLike) -> npt.NDArray[Any]: ...

@_function
def trace(a: ArrayLike, offset: int = ..., axis1: int = ..., axis2: int = ..., dtype: DTypeLike = ..., out: Out = ...) -> AbstractArray: ...

@_function
def transpose(a: ArrayLike, axes: Sequence[int] | None = ...) -> AbstractArray: ...

@_function
def trapezoid(y: ArrayLike, x: ArrayLike | None = ..., dx: ArrayLike = ..., axis: int = ...) -> AbstractArray: ...

def tri(N: int, M: int | None = ..., k: int = ..., dtype: DTypeLike = ..., *, device: Device | None = ...) -> AbstractArray: ...

@_function
def tril(x: ArrayLike, /, k: int = ...) -> AbstractArray: ...

def tril_indices(n: int, k: int = ..., m: int | None = ..., *, device: Device | None = ...) -> tuple[AbstractArray, AbstractArray]: ...

def tril_indices_from(arr: ArrayLike, k: int = ...) -> tuple[AbstractArray, AbstractArray]: ...

@_function
def trim_zeros(filt: ArrayLike, trim: str = ..., axis: Axis = ...) -> AbstractArray: ...

@_function
def triu(x: ArrayLike, /, k: int = ...) -> AbstractArray: ...

def triu_indices(n: int, k: int = ..., m: int | None = ..., *, device: Device | None = ...) -> tuple[AbstractArray, AbstractArray]: ...

def triu_indices_from(arr: ArrayLike, k: int = ...) -> tuple[AbstractArray, AbstractArray]: ...

true_divide: _Ufunc

trunc: _Unary

@_function
def union1d(ar1: ArrayLike, ar2: ArrayLike) -> AbstractArray: ...

class _Unique(_Methods):
    @overload
    def __call__(self, ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: builtins.bool = ..., sorted: builtins.bool = ...) -> AbstractArray: ...
    @overload
    def __call__(self, ar: ArrayLike, return_index: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., axis: int | None = ..., *, equal_nan: builtins.bool = ..., sorted: builtins.bool = ...) -> tuple[AbstractArray, ...]: ...

unique: _Unique

@_function
def unique_all(x: ArrayLike, /) -> UniqueAll: ...

@_function
def unique_counts(x: ArrayLike, /) -> UniqueCounts: ...

@_function
def unique_inverse(x: ArrayLike, /) -> UniqueInverse: ...

@_function
def unique_values(x: ArrayLike, /) -> AbstractArray: ...

@_function
def unpackbits(a: ArrayLike, /, axis: Axis = ..., count: int | None = ..., bitorder: str = ...) -> AbstractArray: ...

@_function
def unravel_index(indices: ArrayLike, shape: ShapeLike, order: str = ...) -> tuple[AbstractArray, ...]: ...

@_function
def unstack(x: ArrayLike, /, axis: Axis = ...) -> tuple[AbstractArray, ...]: ...

@_function
def unwrap(p: ArrayLike, discont: float | None = ..., axis: int = ..., *, period: float = ...) -> AbstractArray: ...

@_function
def vander(x: ArrayLike, N: int | None = ..., increasing: builtins.bool = ...) -> AbstractArray: ...

@_function
def var(x: ArrayLike, /, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., ddof: float | None = ..., keepdims: builtins.bool = ..., *, where: ArrayLike = ..., mean: ArrayLike | None = ..., correction: float | None = ...) -> AbstractArray: ...

@_function
def vdot(a: ArrayLike, b: ArrayLike, /) -> AbstractArray: ...

@_function
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = ...) -> AbstractArray: ...

@_function
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

@_function
def vsplit(ary: ArrayLike, indices_or_sections: int | ArrayLike) -> list[AbstractArray]: ...

def vstack(tup: ArrayLike, *, dtype: DTypeLike = ..., casting: str = ...) -> AbstractArray: ...

class _Where(_Methods):
    @overload
    def __call__(self, condition: ArrayLike, /) -> tuple[AbstractArray, ...]: ...
    @overload
    def __call__(self, condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

where: _Where

def which(function: Callable[..., Any], *args: object) -> Method: ...

def while_loop(condition: Callable[[_R], Any], body: Callable[[_R], _R], state: _R) -> _R: ...

@overload
def zeros(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: type[_Made]) -> _Made: ...
@overload
def zeros(shape: ShapeLike, dtype: DTypeLike = ..., order: str = ..., *, device: Device | None = ...) -> AbstractArray: ...

@overload
def zeros_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: type[_Made]) -> _Made: ...
@overload
def zeros_like(x: ArrayLike, /, dtype: DTypeLike = ..., order: str = ..., *, shape: ShapeLike | None = ..., device: Device | None = ...) -> AbstractArray: ...
