"""What a checker knows of arrays: constructors, annotations, operators, methods, indices."""

from typing import Any, assert_type

import numpy as np

import mirabelle as mb

x = mb.HostArray([1.0, 2.0, 3.0])
assert_type(x, mb.HostArray[Any])
assert_type(mb.CuArray([1, 2]), mb.CuArray[Any])
assert_type(mb.HostArray[mb.float32]([1.0]), mb.HostArray[mb.float32])
assert_type(mb.DArray[mb.HostArray]([1.0]), mb.DArray[mb.HostArray[Any]])
assert_type(mb.Diagonal(x), mb.Diagonal)
assert_type(mb.Identity(3, dtype=mb.float32), mb.Identity)
# (One of a diagonal matrix is that matrix.)
assert_type(mb.UpperTriangular(x), mb.AbstractArray)


def dtypes(a: mb.HostArray[mb.float64], b: mb.AbstractArray) -> None:
    assert_type(a.dtype, np.dtype[mb.float64])
    assert_type(b.dtype, np.dtype[Any])
    # Types of wrapped and structured arrays take what they take at run time.
    _ = [mb.types.Transpose[mb.HostArray], mb.Diagonal[mb.HostArray[mb.float64]]]


assert_type(x + 1, mb.HostArray[Any])
assert_type(2 - x, mb.HostArray[Any])
assert_type(x @ x, mb.HostArray[Any])
assert_type(x**2 / (1 + abs(-x)), mb.AbstractArray)
assert_type(x > 1, mb.AbstractArray)
assert_type(x == 1, mb.AbstractArray)
assert_type(x != np.ones(3), mb.AbstractArray)
assert_type((x > 1) & ~(x < 2), mb.AbstractArray)
assert_type(divmod(x, 2), tuple[mb.AbstractArray, mb.AbstractArray])
x += 1
assert_type(x, mb.HostArray[Any])

assert_type(x[0], mb.AbstractArray)
assert_type(x[1:, None], mb.AbstractArray)
assert_type(x[..., ::2], mb.AbstractArray)
assert_type(x[x > 1], mb.AbstractArray)
assert_type(x[[0, 2]], mb.AbstractArray)
assert_type(x[np.array([0, 2])], mb.AbstractArray)
x[0] = 2.0
x[x > 1] = x[:1]
for row in x:
    assert_type(row, mb.AbstractArray)

assert_type(x.T, mb.AbstractArray)
assert_type(x.mT, mb.AbstractArray)
assert_type(x.real, mb.AbstractArray)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.size, int)
assert_type(x.nbytes, int)
assert_type(x.sum(), mb.AbstractArray)
assert_type(x.sum(axis=0, keepdims=True).mean(0), mb.AbstractArray)
assert_type(x.reshape(3, 1).reshape((1, 3)).astype(mb.float32), mb.AbstractArray)
assert_type(x.clip(0, 1).round(2).argmax(), mb.AbstractArray)
assert_type(x.copy().cumsum().take([0]), mb.AbstractArray)
assert_type(x.nonzero(), tuple[mb.AbstractArray, ...])
assert_type(x.tobytes(), bytes)

assert_type(float(x.sum()), float)
assert_type(int(x.argmax()), int)
assert_type(complex(x[0]), complex)
assert_type(bool(x[0] > 1), bool)
assert_type(len(x), int)
values = np.asarray(x)
print(values.sum(), f"{x[0]:.2f}")
