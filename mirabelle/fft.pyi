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
from mirabelle.arraytypes.annotations import ArrayLike, Device, DTypeLike
from mirabelle.dispatch.generic import GenericFunction

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

def dct(x: ArrayLike, /, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

def dst(x: ArrayLike, /, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def fft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def fft2(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] = ..., norm: str | None = ...) -> AbstractArray: ...

def fftfreq(n: int, /, d: float = ..., *, dtype: DTypeLike = ..., device: Device | None = ...) -> AbstractArray: ...

@_function
def fftn(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def fftshift(x: ArrayLike, /, axes: int | Sequence[int] | None = ...) -> AbstractArray: ...

@_function
def hfft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

def idct(x: ArrayLike, /, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

def idst(x: ArrayLike, /, type: int = ..., n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def ifft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def ifft2(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def ifftn(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def ifftshift(x: ArrayLike, /, axes: int | Sequence[int] | None = ...) -> AbstractArray: ...

@_function
def ihfft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def irfft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def irfft2(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def irfftn(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def rfft(x: ArrayLike, /, n: int | None = ..., axis: int = ..., norm: str | None = ...) -> AbstractArray: ...

@_function
def rfft2(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...

def rfftfreq(n: int, /, d: float = ..., *, dtype: DTypeLike = ..., device: Device | None = ...) -> AbstractArray: ...

@_function
def rfftn(x: ArrayLike, /, s: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., norm: str | None = ...) -> AbstractArray: ...
