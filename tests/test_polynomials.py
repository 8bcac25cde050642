"""Polynomials on all places: NumPy's results, whoever composes them."""

import warnings

import numpy as np
import pytest

import mirabelle as mb
from tests.threadranks import on_ranks

PLACES = {
    "host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray, "two": mb.DArray[mb.HostArray],
}  # fmt: skip
RNG = np.random.default_rng(5)


def cases():
    for dtype in ("f8", "i4", "c16", "f4"):
        p, q = (RNG.integers(1, 6, n).astype(dtype) for n in (5, 3))
        led = p.copy()
        led[:2] = 0
        for name in ("polyadd", "polysub", "polymul", "polydiv"):
            for a, b in ((p, q), (q, p), (led, q), (p, q[:1]), (p * 0, q), (p, p)):
                yield name, (a, b), {}
        for m in range(4):
            yield "polyder", (p, m), {}
            yield from (("polyint", (p, m, *k), {}) for k in ((), (2,), ([1.0, 2, 3, 4],)))
        yield "poly", (q,), {}
        yield "poly", (p[:0],), {}
        for r in (p, led, p * 0, p[:1], np.append(p, [0, 0]).astype(dtype), p[:0]):
            yield "roots", (r,), {}
    for r in ([1.0, -3, 2], [2, 0, 8], [1, 2 + 1j, 3]):
        yield "roots", (np.array(r),), {}
    yield "poly", (np.array([[2.0, 1], [1, 3]]),), {}
    yield "poly", (np.array([1 + 2j, 1 - 2j, 3]),), {}
    x, w = np.linspace(-1, 2, 9), np.linspace(1, 2, 9)
    y = 3 * x**2 - x + 0.1 * RNG.normal(size=9)
    for columns in (y, np.stack([y, -y], 1)):
        for options in ({}, {"full": True}, {"w": w}, {"cov": True}, {"cov": "unscaled", "w": w}):
            yield "polyfit", (x, columns, 2), options


CASES = list(cases())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", sorted({name for name, *_ in CASES}))
def test_what_numpy_gives(name, place):
    def there(x):
        return PLACES[place](x) if isinstance(x, np.ndarray) else x

    def here(x):
        found = mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)
        return np.sort_complex(found) if name == "roots" else found

    for _, args, options in [c for c in CASES if c[0] == name]:
        expected = getattr(np, name)(*args, **options)
        found = getattr(mb, name)(*map(there, args), **{k: there(v) for k, v in options.items()})
        for f, e in zip(*[v if type(v) is tuple else (v,) for v in (found, expected)], strict=True):
            f, e = here(f), here(e)
            assert f.dtype == e.dtype or not f.shape, (args, options)
            rtol = 1e-5 if e.dtype.char in "fF" else 1e-9
            np.testing.assert_allclose(f, e, rtol=rtol, atol=rtol, err_msg=repr((args, options)))


@pytest.mark.parametrize("place", ["host", "ref"])
def test_in_programs(place):
    p, q = (PLACES[place](x) for x in ([2.0, 3.0, 1.0, 5.0], [1.0, 4.0]))
    for f in (
        mb.polyadd, mb.polysub, mb.polymul, mb.polydiv, lambda p, q: mb.polyder(p, 2),
        lambda p, q: mb.polyint(p),
        lambda p, q: mb.poly(q), lambda p, q: mb.abs(mb.roots(p)).sum(), lambda p, q: mb.polyfit(p, p * p, 2),
    ):  # fmt: skip
        found, expected = (g(p, q) for g in (mb.compile(f), f))
        for a, b in zip(*[v if type(v) is tuple else (v,) for v in (found, expected)], strict=True):
            np.testing.assert_allclose(mb.to_numpy(a), mb.to_numpy(b), rtol=1e-9)


def test_on_several_processes():
    given = np.array([0.0, 2.0, 3.0, 1.0, 5.0, 7.0, 1.0]), np.array([1.0, 4.0])

    def program(comm):
        p, q = (mb.DArray[mb.HostArray](x, comm=comm) for x in given)
        found = mb.polyadd(p, q), mb.polymul(p, q), *mb.polydiv(p, q), mb.polyder(p), mb.polyint(p), mb.poly(q)
        return [mb.to_numpy(f) for f in (*found, mb.polyfit(p, p * p, 2))]

    p, q = given
    expected = np.polyadd(p, q), np.polymul(p, q), *np.polydiv(p, q), np.polyder(p), np.polyint(p), np.poly(q)
    for found in on_ranks(3, program):
        for f, e in zip(found, (*expected, np.polyfit(p, p * p, 2)), strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("place", ["ref", "cuda"])
def test_what_is_refused(place):
    x = PLACES[place]([1.0, 2.0, 3.0])
    for kind, text, f in (
        (ValueError, "must be positive", lambda: mb.polyder(x, -1)),
        (ValueError, "must be positive", lambda: mb.polyint(x, -1)),
        (ValueError, "length 1 or >m", lambda: mb.polyint(x, 3, [1.0, 2.0])),
        (ValueError, "rank-1", lambda: mb.roots(x[None])),
        (ValueError, "1d or non-empty square", lambda: mb.poly(x[None])),
        (ValueError, "deg >= 0", lambda: mb.polyfit(x, x, -1)),
        (TypeError, "1D vector", lambda: mb.polyfit(x[None], x, 1)),
        (TypeError, "non-empty", lambda: mb.polyfit(x[:0], x[:0], 1)),
        (TypeError, "1D or 2D", lambda: mb.polyfit(x, x[:, None, None], 1)),
        (TypeError, "same length", lambda: mb.polyfit(x, x[1:], 1)),
        (TypeError, "same length", lambda: mb.polyfit(x, x, 1, w=x[1:])),
        (ValueError, "must exceed order", lambda: mb.polyfit(x, x, 2, cov=True)),
    ):
        with pytest.raises(kind, match=text):
            f()
    with pytest.warns(np.exceptions.RankWarning):
        mb.polyfit(x * 0 + 1, x, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mb.polyfit(x, x, 1)
