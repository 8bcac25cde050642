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

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import ArrayLike, Axis, DTypeLike, Multiplies, Out
from mirabelle.arraytypes.functions.decompositions import EigResult, EighResult, QRResult, SVDResult
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult
from mirabelle.dispatch.generic import GenericFunction
from mirabelle.arraytypes.functions.factorizations import Cholesky as Cholesky
from mirabelle.arraytypes.functions.factorizations import Eigen as Eigen
from mirabelle.arraytypes.functions.factorizations import Factorization as Factorization
from mirabelle.arraytypes.functions.factorizations import LDL as LDL
from mirabelle.arraytypes.functions.factorizations import LU as LU
from mirabelle.arraytypes.functions.factorizations import QR as QR
from mirabelle.arraytypes.functions.factorizations import SVD as SVD
from mirabelle.arraytypes.functions.factorizations import Triangular as Triangular
from mirabelle.arraytypes.functions.krylov import SolverInfo as SolverInfo
from mirabelle.arraytypes.functions.lapack import LinAlgError as LinAlgError
from mirabelle.dispatch.errors import ConvergenceWarning as ConvergenceWarning

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

def block_diag(*arrays: ArrayLike) -> AbstractArray: ...

@_function
def cg(A: ArrayLike | Multiplies | Callable[[AbstractArray], Any], b: ArrayLike, /, x0: ArrayLike | None = ..., *, rtol: float = ..., atol: float = ..., maxiter: int | None = ..., M: ArrayLike | Multiplies | Callable[[AbstractArray], Any] | None = ..., callback: Callable[[int, float], Any] | None = ...) -> tuple[AbstractArray, SolverInfo]: ...

@_function
def cho_factor(a: ArrayLike, /, lower: builtins.bool = ...) -> tuple[AbstractArray, builtins.bool]: ...

def cho_solve(c_and_lower: tuple[ArrayLike, builtins.bool], b: ArrayLike) -> AbstractArray: ...

@_function
def cholesky(x: ArrayLike, /, *, upper: builtins.bool = ...) -> AbstractArray: ...

@_function
def cond(x: ArrayLike, /, p: float | str | None = ...) -> AbstractArray: ...

@_function
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = ...) -> AbstractArray: ...

@_function
def det(x: ArrayLike, /) -> AbstractArray: ...

@_function
def diagonal(x: ArrayLike, /, *, offset: int = ...) -> AbstractArray: ...

@_function
def eig(x: ArrayLike, /) -> EigResult: ...

@_function
def eigh(x: ArrayLike, /, UPLO: str = ...) -> EighResult: ...

@_function
def eigvals(x: ArrayLike, /) -> AbstractArray: ...

@_function
def eigvalsh(x: ArrayLike, /, UPLO: str = ...) -> AbstractArray: ...

@_function
def expm(A: ArrayLike, /) -> AbstractArray: ...

@_function
def factorize(A: ArrayLike, /) -> Factorization: ...

@_function
def gemm(x1: ArrayLike, x2: ArrayLike, /, *, alpha: complex = ..., beta: complex = ..., out: Out = ...) -> AbstractArray: ...

@_function
def gmres(A: ArrayLike | Multiplies | Callable[[AbstractArray], Any], b: ArrayLike, /, x0: ArrayLike | None = ..., *, rtol: float = ..., atol: float = ..., restart: int = ..., maxiter: int | None = ..., M: ArrayLike | Multiplies | Callable[[AbstractArray], Any] | None = ..., callback: Callable[[int, float], Any] | None = ...) -> tuple[AbstractArray, SolverInfo]: ...

class _Hessenberg(_Methods):
    @overload
    def __call__(self, a: ArrayLike, /, *, calc_q: Literal[False] = ...) -> AbstractArray: ...
    @overload
    def __call__(self, a: ArrayLike, /, *, calc_q: builtins.bool = ...) -> tuple[AbstractArray, AbstractArray]: ...

hessenberg: _Hessenberg

@_function
def inv(x: ArrayLike, /) -> AbstractArray: ...

@_function
def khatri_rao(a: ArrayLike, b: ArrayLike, /) -> AbstractArray: ...

@_function
def ldl(a: ArrayLike, /, *, lower: builtins.bool = ..., hermitian: builtins.bool = ...) -> tuple[AbstractArray, AbstractArray, AbstractArray]: ...

@_function
def logm(A: ArrayLike, /) -> AbstractArray: ...

@_function
def lstsq(a: ArrayLike, b: ArrayLike, /, rcond: float | None = ...) -> LstsqResult: ...

@_function
def lu(a: ArrayLike, /, *, permute_l: builtins.bool = ..., p_indices: builtins.bool = ...) -> tuple[AbstractArray, ...]: ...

@_function
def lu_factor(a: ArrayLike, /) -> tuple[AbstractArray, AbstractArray]: ...

def lu_solve(lu_and_piv: ArrayLike, b: ArrayLike, trans: int = ...) -> AbstractArray: ...

@_function
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

@_function
def matrix_exp(A: ArrayLike, /) -> AbstractArray: ...

@_function
def matrix_norm(x: ArrayLike, /, *, keepdims: builtins.bool = ..., ord: float | str | None = ...) -> AbstractArray: ...

@_function
def matrix_power(x: ArrayLike, n: int, /) -> AbstractArray: ...

@_function
def matrix_rank(x: ArrayLike, /, tol: float | None = ..., hermitian: builtins.bool = ..., *, rtol: float | None = ...) -> AbstractArray: ...

@_function
def matrix_transpose(x: ArrayLike, /) -> AbstractArray: ...

@_function
def minres(A: ArrayLike | Multiplies | Callable[[AbstractArray], Any], b: ArrayLike, /, x0: ArrayLike | None = ..., *, rtol: float = ..., atol: float = ..., maxiter: int | None = ..., M: ArrayLike | Multiplies | Callable[[AbstractArray], Any] | None = ..., callback: Callable[[int, float], Any] | None = ...) -> tuple[AbstractArray, SolverInfo]: ...

def multi_dot(arrays: ArrayLike, *, out: Out = ...) -> AbstractArray: ...

@_function
def norm(x: ArrayLike, /, ord: float | str | None = ..., axis: Axis = ..., keepdims: builtins.bool = ...) -> AbstractArray: ...

@_function
def null_space(A: ArrayLike, /, *, rcond: float | None = ...) -> AbstractArray: ...

@_function
def orth(A: ArrayLike, /, *, rcond: float | None = ...) -> AbstractArray: ...

@_function
def outer(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

@_function
def pinv(x: ArrayLike, /, rcond: float | None = ..., hermitian: builtins.bool = ..., *, rtol: float | None = ...) -> AbstractArray: ...

@_function
def polar(a: ArrayLike, /, *, side: str = ...) -> tuple[AbstractArray, AbstractArray]: ...

class _Qr(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, mode: Literal["reduced", "complete"] = ...) -> QRResult: ...
    @overload
    def __call__(self, x: ArrayLike, /, mode: Literal["r"]) -> AbstractArray: ...
    @overload
    def __call__(self, x: ArrayLike, /, mode: str) -> QRResult | AbstractArray: ...

qr: _Qr

@_function
def schur(a: ArrayLike, /, *, output: str = ...) -> tuple[AbstractArray, AbstractArray]: ...

@_function
def slogdet(x: ArrayLike, /) -> SlogdetResult: ...

@_function
def solve(x1: ArrayLike, x2: ArrayLike, /) -> AbstractArray: ...

@_function
def solve_triangular(a: ArrayLike, b: ArrayLike, /, *, trans: int | str = ..., lower: builtins.bool = ..., unit_diagonal: builtins.bool = ...) -> AbstractArray: ...

@_function
def sqrtm(A: ArrayLike, /) -> AbstractArray: ...

class _Svd(_Methods):
    @overload
    def __call__(self, x: ArrayLike, /, full_matrices: builtins.bool = ..., compute_uv: Literal[True] = ..., hermitian: builtins.bool = ...) -> SVDResult: ...
    @overload
    def __call__(self, x: ArrayLike, /, full_matrices: builtins.bool, compute_uv: Literal[False], hermitian: builtins.bool = ...) -> AbstractArray: ...
    @overload
    def __call__(self, x: ArrayLike, /, full_matrices: builtins.bool = ..., *, compute_uv: Literal[False], hermitian: builtins.bool = ...) -> AbstractArray: ...
    @overload
    def __call__(self, x: ArrayLike, /, full_matrices: builtins.bool = ..., compute_uv: builtins.bool = ..., hermitian: builtins.bool = ...) -> SVDResult | AbstractArray: ...

svd: _Svd

@_function
def svdvals(x: ArrayLike, /) -> AbstractArray: ...

@_function
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | Sequence[Any] = ...) -> AbstractArray: ...

@_function
def tensorinv(a: ArrayLike, /, ind: int = ...) -> AbstractArray: ...

@_function
def tensorsolve(a: ArrayLike, b: ArrayLike, /, axes: Sequence[int] | None = ...) -> AbstractArray: ...

@_function
def trace(x: ArrayLike, /, *, offset: int = ..., dtype: DTypeLike = ...) -> AbstractArray: ...

@_function
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = ...) -> AbstractArray: ...

@_function
def vector_norm(x: ArrayLike, /, *, axis: Axis = ..., keepdims: builtins.bool = ..., ord: float | str | None = ...) -> AbstractArray: ...
