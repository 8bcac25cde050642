"""What a checker knows of functions: elementwise, reductions, creation, linear algebra, several results."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import mirabelle as mb

x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])

# Elementwise
assert_type(mb.sin(x), mb.AbstractArray)
assert_type(mb.add(x, [1, 2]), mb.AbstractArray)
assert_type(mb.maximum(x, np.ones((2, 2))), mb.AbstractArray)
assert_type(mb.exp(x, out=x), mb.HostArray[Any])
assert_type(mb.multiply(x, 2, out=x, where=x > 1), mb.HostArray[Any])
assert_type(mb.add.reduce(x, axis=0), mb.AbstractArray)
assert_type(mb.subtract.outer(x, x).T, mb.AbstractArray)
assert_type(mb.where(x > 1, x, 0), mb.AbstractArray)
assert_type(mb.where(x > 1), tuple[mb.AbstractArray, ...])
assert_type(mb.divmod(x, 2), tuple[mb.AbstractArray, mb.AbstractArray])
assert_type(mb.clip(x, 0, 1), mb.AbstractArray)
assert_type(mb.round(x, 2), mb.AbstractArray)

# Reductions: by position as NumPy's, or by name
assert_type(mb.sum(x), mb.AbstractArray)
assert_type(mb.sum(x, 0), mb.AbstractArray)
assert_type(mb.sum(x, axis=(0, 1), keepdims=True, dtype=mb.float32), mb.AbstractArray)
assert_type(mb.mean(x, axis=0, out=mb.HostArray([0.0, 0.0])), mb.HostArray[Any])
assert_type(mb.max(x, -1), mb.AbstractArray)
assert_type(mb.std(x, ddof=1), mb.AbstractArray)
assert_type(mb.any(x > 1), mb.AbstractArray)
assert_type(mb.argmin(x, axis=1), mb.AbstractArray)
assert_type(mb.average(x, weights=x), mb.AbstractArray)
assert_type(mb.average(x, 0, x, True), tuple[mb.AbstractArray, mb.AbstractArray])
assert_type(mb.percentile(x, [5, 95], axis=0), mb.AbstractArray)
assert_type(mb.cumsum(x, 0), mb.AbstractArray)
assert_type(mb.norm(x), mb.AbstractArray)

# Functions that are handed on: what a lambda is given is known
assert_type(mb.apply_along_axis(lambda row: mb.sum(row * row), 0, x), mb.AbstractArray)
assert_type(mb.apply_along_axis(np.sum, 0, x), mb.AbstractArray)
assert_type(mb.piecewise(x, [x < 0, x >= 0], [lambda a: -a, 1.0]), mb.AbstractArray)
assert_type(mb.fromfunction(lambda i, j: i + 10 * j, (3, 3)), mb.AbstractArray)
assert_type(mb.mapreduce(lambda a: a * a, lambda a, b: a + b, x), mb.AbstractArray)
assert_type(mb.mapreduce("abs", mb.maximum, x), mb.AbstractArray)
assert_type(mb.reduce(max, x), mb.AbstractArray)
assert_type(mb.autodiff.jvp(lambda a, b: a * b, (x, x), (x, x)), tuple[mb.HostArray[Any], mb.HostArray[Any]])

# Creation: of the type that `device=` says
assert_type(mb.zeros(3), mb.AbstractArray)
assert_type(mb.zeros((2, 3), dtype=mb.float32, device=mb.HostArray), mb.HostArray[Any])
assert_type(mb.ones(3, mb.int64, device=mb.CuArray), mb.CuArray[Any])
assert_type(mb.arange(3, device=mb.RefArray), mb.RefArray[Any])
assert_type(mb.arange(0, 1, 0.1), mb.AbstractArray)
assert_type(mb.full((2, 2), 1.5, device=x.device), mb.AbstractArray)
assert_type(mb.linspace(0, 1, 5), mb.AbstractArray)
assert_type(mb.linspace(0, 1, 5, retstep=True), tuple[mb.AbstractArray, mb.AbstractArray])
assert_type(mb.asarray([[1, 2], [3, 4]], dtype=float), mb.AbstractArray)
assert_type(mb.array([1, 2], device=mb.HostArray), mb.HostArray[Any])
assert_type(mb.zeros_like(x), mb.AbstractArray)
assert_type(mb.eye(3, k=1), mb.AbstractArray)

# Shapes and parts
assert_type(mb.reshape(x, (4,)), mb.AbstractArray)
assert_type(mb.roll(x, 1, axis=0), mb.AbstractArray)
assert_type(mb.concat([x, x], axis=0), mb.AbstractArray)
assert_type(mb.stack([x, x]), mb.AbstractArray)
assert_type(mb.split(x, 2), list[mb.AbstractArray])
assert_type(mb.unstack(x), tuple[mb.AbstractArray, ...])
assert_type(mb.meshgrid(x, x), tuple[mb.AbstractArray, ...])
assert_type(mb.atleast_2d(x), mb.AbstractArray)
assert_type(mb.atleast_2d(x, 1), tuple[mb.AbstractArray, ...])
assert_type(mb.unique(x), mb.AbstractArray)
assert_type(mb.unique(x, return_counts=True), tuple[mb.AbstractArray, ...])
assert_type(mb.unique_counts(x).counts, mb.AbstractArray)
assert_type(mb.histogram(x, 5), tuple[mb.AbstractArray, mb.AbstractArray])
assert_type(mb.sort(x, axis=0), mb.AbstractArray)
assert_type(mb.take(x, [0], axis=0), mb.AbstractArray)
assert_type(mb.nonzero(x), tuple[mb.AbstractArray, ...])
assert_type(mb.einsum("ij,jk->ik", x, x), mb.AbstractArray)
assert_type(mb.tensordot(x, x, axes=1), mb.AbstractArray)
assert_type(mb.gradient(x, axis=0), mb.AbstractArray)

# What is no array
assert_type(mb.to_numpy(x), npt.NDArray[Any])
assert_type(mb.allclose(x, x), bool)
assert_type(mb.result_type(x, mb.float32), np.dtype[Any])
assert_type(mb.shape(x), tuple[int, ...])
assert_type(mb.finfo(mb.float32).eps, float)

# Linear algebra and transforms
assert_type(mb.linalg.solve(x, x), mb.AbstractArray)
assert_type(mb.linalg.eigh(x).eigenvalues, mb.AbstractArray)
assert_type(mb.linalg.slogdet(x)[1], mb.AbstractArray)
Q, R = mb.linalg.qr(x)
assert_type(Q @ R, mb.AbstractArray)
assert_type(mb.linalg.svd(x).S, mb.AbstractArray)
assert_type(mb.linalg.norm(x, axis=0), mb.AbstractArray)
solution, how = mb.linalg.cg(x, [1.0, 2.0])
assert_type(solution, mb.AbstractArray)
assert_type(how.iterations, int)
assert_type(mb.linalg.factorize(x).solve(x), mb.AbstractArray)
assert_type(mb.real(mb.fft.ifft(mb.fft.fft(x))), mb.AbstractArray)
assert_type(mb.fft.rfftfreq(8, d=0.5), mb.AbstractArray)
