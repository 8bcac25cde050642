"""The array API standard's extensions, `linalg` and `fft`, on arrays that Hypothesis draws.

Matrices in stacks, also of none; values are compared with NumPy's where the result is unique, and put
together again where it is not. (test_linalg.py and test_fft.py have the cases worth naming.)
"""

import math

import numpy as np
import pytest
from drawing import (
    COMPLEX,
    EVERY,
    FLOATS,
    INEXACT,
    NAMESPACES,
    NUMERIC,
    array,
    axes,
    axis,
    check_signature,
    conforms,
    is_like,
    name_of,
    options,
    promotable,
    read,
    same,
    shapes,
    signature_lines,
    strategies,
)
from hypothesis import strategies as st

LINALG = """
    cholesky(x, /, *, upper=False)
    cross(x1, x2, /, *, axis=-1)
    det(x, /)
    diagonal(x, /, *, offset=0)
    eig(x, /)
    eigh(x, /)
    eigvals(x, /)
    eigvalsh(x, /)
    inv(x, /)
    matmul(x1, x2, /)
    matrix_norm(x, /, *, keepdims=False, ord="fro")
    matrix_power(x, n, /)
    matrix_rank(x, /, *, rtol=None)
    matrix_transpose(x, /)
    outer(x1, x2, /)
    pinv(x, /, *, rtol=None)
    qr(x, /, *, mode="reduced")
    slogdet(x, /)
    solve(x1, x2, /)
    svd(x, /, *, full_matrices=True)
    svdvals(x, /)
    tensordot(x1, x2, /, *, axes=2)
    trace(x, /, *, offset=0, dtype=None)
    vecdot(x1, x2, /, *, axis=-1)
    vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
ALONG_AN_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
ALONG_SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
FFT = "".join(f'{name}(x, /, *, n=None, axis=-1, norm="backward")\n' for name in ALONG_AN_AXIS)
FFT += "".join(f'{name}(x, /, *, s=None, axes=None, norm="backward")\n' for name in ALONG_SEVERAL)
FFT += """
    fftfreq(n, /, *, d=1.0, dtype=None, device=None)
    rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fftshift(x, /, *, axes=None)
    ifftshift(x, /, *, axes=None)
"""
REAL_OF = {"complex64": "float32", "complex128": "float64"}
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
MODERATE = {"low": -9, "high": 9}
CLOSE = {"rtol": 1e-3, "atol": 1e-3}


def real_of(x):
    dtype = name_of(x.dtype)
    return REAL_OF.get(dtype, dtype)


def complex_of(x):
    dtype = name_of(x.dtype)
    return COMPLEX_OF.get(dtype, dtype)


def stacked(draw, rows, columns=None):
    """The shape of a stack of matrices."""
    n = draw(rows)
    return (*draw(shapes(max_dims=2, max_side=2)), n, n if columns is None else draw(columns))


def square(xp, draw, dtypes=INEXACT, **bounds):
    return array(xp, draw, dtypes, stacked(draw, st.integers(0, 4)), **(bounds or MODERATE))


def rectangular(xp, draw, dtypes=INEXACT, least=0, **bounds):
    sizes = st.integers(least, 4)
    return array(xp, draw, dtypes, stacked(draw, sizes, sizes), **(bounds or MODERATE))


def invertible(xp, draw):
    """Triangular matrices with a diagonal far from zero, as a pending tree."""
    x = square(xp, draw, low=-1, high=1)
    return xp.triu(x, k=1) + 3 * xp.eye(x.shape[-1], dtype=x.dtype)


def hermitian(xp, draw):
    x = square(xp, draw)
    return (x + xp.conj(xp.matrix_transpose(x))) * 0.5


@pytest.mark.parametrize("place", NAMESPACES)
@signature_lines(LINALG)
def test_signature_of_linalg(line, place):
    check_signature(getattr(NAMESPACES[place].linalg, line.partition("(")[0]), line)


@pytest.mark.parametrize("place", NAMESPACES)
@signature_lines(FFT)
def test_signature_of_fft(line, place):
    check_signature(getattr(NAMESPACES[place].fft, line.partition("(")[0]), line)


# Products


def twins(draw, dtypes=NUMERIC):
    first = draw(st.sampled_from(dtypes))
    return first, draw(st.sampled_from(promotable(first, dtypes)))


def same_product(out, expected):
    same(out, expected, **({} if expected.dtype.kind in "iu" else {"rtol": 1e-3, "atol": 1e-2}))


@conforms("vv", "vm", "mv", "mm")
def test_matmul(xp, name, draw):
    n, k, m = (draw(st.integers(0, 3)) for _ in range(3))
    stack = strategies(xp).mutually_broadcastable_shapes(2, min_side=0, max_dims=2, max_side=2)
    s1, s2 = draw(stack).input_shapes
    shape1 = (k,) if name[0] == "v" else (*s1, n, k)
    shape2 = (k,) if name[1] == "v" else (*s2, k, m)
    first, second = twins(draw)
    x1, x2 = array(xp, draw, first, shape1, **MODERATE), array(xp, draw, second, shape2, **MODERATE)
    expected = np.asarray(np.matmul(read(x1), read(x2)))
    for f in (xp.matmul, xp.linalg.matmul, lambda a, b: a @ b):
        same_product(f(x1, x2), expected)


@conforms()
def test_matmul_in_place(xp, draw):
    x = array(xp, draw, NUMERIC, stacked(draw, st.integers(0, 3), st.integers(0, 3)), **MODERATE)
    y = array(xp, draw, name_of(x.dtype), (x.shape[-1],) * 2, **MODERATE)
    expected = np.matmul(read(x), read(y))
    x @= y
    same_product(x, expected)


@conforms()
def test_matmul_refuses(xp, draw):
    shape1, shape2 = draw(st.sampled_from([((), (3,)), ((3,), ()), ((2,), (3,)), ((2, 3), (2, 3))]))
    for f in (xp.matmul, xp.linalg.matmul, lambda a, b: a @ b):
        with pytest.raises(ValueError):
            f(xp.ones(shape1), xp.ones(shape2))


@conforms()
def test_tensordot(xp, draw):
    first, second = twins(draw)
    shape = draw(shapes(max_dims=3, max_side=2))
    order = draw(st.permutations(range(len(shape))))
    k = draw(st.integers(0, len(shape)))
    extra = draw(shapes(max_dims=1, max_side=2))
    paired = tuple(shape[d] for d in order[:k])
    x1, x2 = array(xp, draw, first, shape, **MODERATE), array(xp, draw, second, (*extra, *paired), **MODERATE)
    along = (tuple(order[:k]), tuple(range(len(extra), len(extra) + k)))
    x3 = array(xp, draw, second, (*shape[len(shape) - k :], *extra), **MODERATE)
    for f in (xp.tensordot, xp.linalg.tensordot):
        same_product(f(x1, x2, axes=along), np.asarray(np.tensordot(read(x1), read(x2), axes=along)))
        same_product(f(x1, x3, axes=k), np.asarray(np.tensordot(read(x1), read(x3), axes=k)))


@conforms()
def test_vecdot(xp, draw):
    first, second = twins(draw)
    shape = draw(shapes(min_dims=1, max_side=2))
    along = draw(st.integers(-len(shape), -1))
    other = [draw(st.sampled_from([1, n])) for n in shape]
    other[along] = shape[along]
    x1 = array(xp, draw, first, shape, **MODERATE)
    x2 = array(xp, draw, second, tuple(other[draw(st.integers(0, len(shape) + along)) :]), **MODERATE)
    expected = np.asarray(np.vecdot(read(x1), read(x2), axis=along))
    for f in (xp.vecdot, xp.linalg.vecdot):
        same_product(f(x1, x2, axis=along), expected)


@conforms()
def test_outer(xp, draw):
    first, second = twins(draw)
    sizes = st.integers(0, 4)
    x1, x2 = (
        array(xp, draw, first, (draw(sizes),), **MODERATE),
        array(xp, draw, second, (draw(sizes),), **MODERATE),
    )
    same_product(xp.linalg.outer(x1, x2), np.outer(read(x1), read(x2)))
    with pytest.raises(ValueError):
        xp.linalg.outer(x1, xp.ones((2, 2)))


@conforms()
def test_cross(xp, draw):
    first, second = twins(draw)
    shape = list(draw(shapes(min_dims=1, max_side=2)))
    along = draw(st.integers(-len(shape), -1))
    other = [draw(st.sampled_from([1, n])) for n in shape]
    shape[along] = other[along] = 3
    x1 = array(xp, draw, first, tuple(shape), **MODERATE)
    x2 = array(xp, draw, second, tuple(other), **MODERATE)
    expected = np.cross(*np.broadcast_arrays(read(x1), read(x2)), axis=along)
    same_product(xp.linalg.cross(x1, x2, axis=along), expected.astype(np.result_type(first, second)))
    shape[along] = 2
    with pytest.raises(ValueError):
        xp.linalg.cross(x1, xp.ones(tuple(shape)), axis=along)


# Parts and numbers of matrices


@conforms()
def test_diagonal_and_trace(xp, draw):
    x = rectangular(xp, draw, NUMERIC)
    kw = options(draw, offset=st.integers(-5, 5))
    same(xp.linalg.diagonal(x, **kw), np.diagonal(read(x), axis1=-2, axis2=-1, **kw))
    kw |= options(draw, dtype=st.sampled_from([None, x.dtype]))
    same_product(xp.linalg.trace(x, **kw), np.asarray(np.linalg.trace(read(x), **kw)))
    same(xp.linalg.matrix_transpose(x), read(x).swapaxes(-1, -2))


@conforms("det", "slogdet")
def test_determinants(xp, name, draw):
    x = square(xp, draw)
    found, expected = getattr(xp.linalg, name)(x), getattr(np.linalg, name)(read(x))
    if name == "det":
        same(found, np.asarray(expected), rtol=1e-2, atol=1e-1)
        return
    assert found._fields == ("sign", "logabsdet")
    is_like(found.sign, x.dtype, x.shape[:-2])
    is_like(found.logabsdet, real_of(x), x.shape[:-2])


@conforms()
def test_matrix_norm(xp, draw):
    x = rectangular(xp, draw, least=1)
    orders = [math.inf, -math.inf, 1, 2, -1, -2, "fro", "nuc"]
    kw = options(draw, ord=st.sampled_from(orders), keepdims=st.booleans())
    same(xp.linalg.matrix_norm(x, **kw), np.asarray(np.linalg.matrix_norm(read(x), **kw), real_of(x)), **CLOSE)


@conforms()
def test_vector_norm(xp, draw):
    x = array(xp, draw, INEXACT, shapes(min_side=1), low=0.5, high=9)
    orders = [0, 1, 2, 3, -1, -2, 0.5, 2.5, math.inf, -math.inf]
    some = axes(x.ndim).filter(lambda found: found != ())
    kw = options(draw, ord=st.sampled_from(orders), axis=some, keepdims=st.booleans())
    expected = np.asarray(np.linalg.vector_norm(read(x), **kw), real_of(x))
    same(xp.linalg.vector_norm(x, **kw), expected, **CLOSE)


@conforms("matrix_rank", "pinv")
def test_tolerances(xp, name, draw):
    x = rectangular(xp, draw, least=1)
    each = array(xp, draw, real_of(x), x.shape[:-2], low=0, high=1)
    kw = options(draw, rtol=st.sampled_from([None, 0.5, each]))
    out = getattr(xp.linalg, name)(x, **kw)
    if name == "matrix_rank":
        is_like(out, np.int64, x.shape[:-2])
    else:
        is_like(out, x.dtype, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


# Decompositions


@conforms()
def test_cholesky(xp, draw):
    x = square(xp, draw, low=-1, high=1)
    n = x.shape[-1]
    x = xp.matmul(x, xp.conj(xp.matrix_transpose(x))) + 2 * xp.eye(n, dtype=x.dtype)
    kw = options(draw, upper=st.booleans())
    out = xp.linalg.cholesky(x, **kw)
    is_like(out, x.dtype, x.shape)
    a = read(out)
    conjugate = a.swapaxes(-1, -2).conj()
    same(x, (conjugate @ a if kw.get("upper") else a @ conjugate).astype(a.dtype), **CLOSE)
    assert (a == (np.triu if kw.get("upper") else np.tril)(a)).all()


@conforms("eigh", "eigvalsh", "eig", "eigvals")
def test_eigenvalues(xp, name, draw):
    x = hermitian(xp, draw)
    found = getattr(xp.linalg, name)(x)
    values = found if name.endswith(("vals", "valsh")) else found.eigenvalues
    real = name in ("eigh", "eigvalsh")
    is_like(values, real_of(x) if real else complex_of(x), x.shape[:-1])
    if found is not values:
        assert found._fields == ("eigenvalues", "eigenvectors")
        is_like(found.eigenvectors, x.dtype if real else complex_of(x), x.shape)
        vectors = read(found.eigenvectors)
        product = read(x).astype(vectors.dtype) @ vectors
        np.testing.assert_allclose(product, vectors * read(values)[..., None, :], rtol=1e-2, atol=1e-2)


@conforms("reduced", "complete")
def test_qr(xp, name, draw):
    x = rectangular(xp, draw)
    found = xp.linalg.qr(x, **({} if name == "reduced" else {"mode": name}))
    assert found._fields == ("Q", "R")
    n, m = x.shape[-2:]
    k = min(n, m) if name == "reduced" else n
    is_like(found.Q, x.dtype, (*x.shape[:-1], k))
    is_like(found.R, x.dtype, (*x.shape[:-2], k, m))
    same(x, (read(found.Q) @ read(found.R)).astype(found.Q.dtype), **CLOSE)
    assert (read(found.R) == np.triu(read(found.R))).all()


@conforms("full", "thin")
def test_svd(xp, name, draw):
    x = rectangular(xp, draw)
    found = xp.linalg.svd(x, **({} if name == "full" else {"full_matrices": False}))
    assert found._fields == ("U", "S", "Vh")
    n, m = x.shape[-2:]
    k = min(n, m)
    is_like(found.U, x.dtype, (*x.shape[:-1], n if name == "full" else k))
    is_like(found.S, real_of(x), (*x.shape[:-2], k))
    is_like(found.Vh, x.dtype, (*x.shape[:-2], m if name == "full" else k, m))
    product = (read(found.U)[..., :k] * read(found.S)[..., None, :]) @ read(found.Vh)[..., :k, :]
    same(x, product.astype(found.U.dtype), rtol=1e-3, atol=1e-2)
    same(xp.linalg.svdvals(x), read(found.S), rtol=1e-3, atol=1e-2)


@conforms()
def test_inv_and_matrix_power(xp, draw):
    x = invertible(xp, draw)
    same(xp.linalg.inv(x), np.linalg.inv(read(x)), **CLOSE)
    n = draw(st.integers(-3, 4))
    same(xp.linalg.matrix_power(x, n), np.linalg.matrix_power(read(x), n), rtol=1e-2, atol=1e-2)


@conforms("vector", "matrix")
def test_solve(xp, name, draw):
    a = invertible(xp, draw)
    n = a.shape[-1]
    stack = tuple(draw(st.sampled_from([1, k])) for k in a.shape[:-2])[draw(st.integers(0, a.ndim - 2)) :]
    shape = (n,) if name == "vector" else (*stack, n, draw(st.integers(0, 3)))
    b = array(xp, draw, INEXACT, shape, **MODERATE)
    same(xp.linalg.solve(a, b), np.linalg.solve(read(a), read(b)), **CLOSE)


# Fourier transforms

TRANSFORMED = shapes(min_dims=1, min_side=1).filter(lambda shape: math.prod(shape) > 1)
NORMS = st.sampled_from(["backward", "ortho", "forward"])


def transformable(xp, draw, name):
    among = (
        FLOATS
        if name in ("rfft", "ihfft", "rfftn")
        else COMPLEX
        if name[0] in "h" or "irf" in name
        else INEXACT
    )
    return array(xp, draw, among, TRANSFORMED, **MODERATE)


def same_transform(name, x, out, expected):
    real = name in ("irfft", "hfft", "irfftn")
    assert name_of(out.dtype) == (real_of(x) if real else complex_of(x))
    same(out, expected.astype(name_of(out.dtype)), **CLOSE)


@conforms(*ALONG_AN_AXIS)
def test_transforms_along_an_axis(xp, name, draw):
    x = transformable(xp, draw, name)
    kw = options(draw, axis=axis(x.ndim, none=False), norm=NORMS)
    size = x.shape[kw.get("axis", -1)]
    if size < 2 or draw(st.booleans()):
        kw["n"] = draw(st.integers(max(size // 2, 1), 2 * size))
    same_transform(name, x, getattr(xp.fft, name)(x, **kw), getattr(np.fft, name)(read(x), **kw))


@conforms(*ALONG_SEVERAL)
def test_transforms_along_several_axes(xp, name, draw):
    x = transformable(xp, draw, name)
    along = draw(strategies(xp).valid_tuple_axes(x.ndim, min_size=1))
    kw = options(draw, norm=NORMS, axes=st.just(along))
    sizes = [x.shape[d] for d in (along if "axes" in kw else range(x.ndim))]
    if sizes[-1] < 2 or ("axes" in kw and draw(st.booleans())):
        kw |= {
            "axes": kw.get("axes", tuple(range(x.ndim))),
            "s": tuple(draw(st.integers(1, n + 2)) for n in sizes),
        }
    same_transform(name, x, getattr(xp.fft, name)(x, **kw), getattr(np.fft, name)(read(x), **kw))


@conforms("fftfreq", "rfftfreq")
def test_frequencies(xp, name, draw):
    n, kw = draw(st.integers(1, 30)), options(draw, d=st.floats(0.01, 10))
    dtype = draw(st.sampled_from([None, "float32", "float64"]))
    home = xp.__array_namespace_info__().default_device()
    out = getattr(xp.fft, name)(n, dtype=dtype and getattr(xp, dtype), device=home, **kw)
    assert out.device == home
    same(out, getattr(np.fft, name)(n, **kw).astype(dtype or "float64"), rtol=1e-6)


@conforms("fftshift", "ifftshift")
def test_shifts(xp, name, draw):
    x = array(xp, draw, EVERY)
    kw = options(draw, axes=axes(x.ndim))
    expected = read(x) if not x.ndim or kw.get("axes") == () else getattr(np.fft, name)(read(x), **kw)
    same(getattr(xp.fft, name)(x, **kw), expected)
