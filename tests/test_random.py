"""Random numbers are functions of seed, call and place: the same for any array type and any division."""

import copy
import inspect
import itertools
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from compare import assert_closed, assert_same, contents
from kinds import LEAVES, SINGLE
from ways import running

import mirabelle as mb
from mirabelle.arraytypes.random import counting, elementary, filling, onblocks, philox
from mirabelle.arraytypes.random.samplers import TABLE, Draw
from mirabelle.backends.host import random as host_random
from mirabelle.dispatch import verbs

default_rng = mb.random.default_rng


def rng(seed=11, device=None):
    return default_rng(seed, device=device)


# Every method that fills a shape, with parameters it is called with.
REAL = {
    "random": (),
    "uniform": (-1.0, 3.0),
    "triangular": (1.0, 2.0, 5.0),
    "standard_normal": (),
    "normal": (3.0, 2.0),
    "lognormal": (0.5, 0.7),
    "wald": (2.0, 3.0),
    "standard_exponential": (),
    "exponential": (3.0,),
    "rayleigh": (2.0,),
    "weibull": (0.7,),
    "pareto": (3.0,),
    "power": (3.0,),
    "gumbel": (1.0, 2.0),
    "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0),
    "standard_cauchy": (),
    "standard_gamma": (2.5,),
    "gamma": (0.3, 2.0),
    "beta": (0.5, 2.0),
    "chisquare": (3.0,),
    "noncentral_chisquare": (2.5, 4.0),
    "f": (3.0, 7.0),
    "noncentral_f": (3.0, 10.0, 2.0),
    "standard_t": (2.5,),
    "vonmises": (0.5, 4.0),
}
COUNTS = {
    "integers": (-5, 1000),
    "poisson": (12.5,),
    "binomial": (100, 0.7),
    "negative_binomial": (3.0, 0.4),
    "geometric": (0.2,),
    "hypergeometric": (30, 40, 20),
    "logseries": (0.7,),
    "zipf": (2.5,),
}
VECTORS = {
    "dirichlet": ([0.2, 1.0, 3.0],),
    "multinomial": (30, [0.1, 0.2, 0.7]),
    "multivariate_hypergeometric": ([10, 20, 30], 12),
    "multivariate_normal": ([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]),
}
SIZED = {**REAL, **COUNTS}
METHODS = {**SIZED, **VECTORS}
methods = pytest.mark.parametrize("method", METHODS)
sized = pytest.mark.parametrize("method", SIZED)


def drawn(generator, method, size, **options):
    return getattr(generator, method)(*METHODS[method], size=size, **options)


# The words


@pytest.mark.parametrize(
    "counter, key, expected",
    [  # the known answers that Random123 comes with
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers(counter, key, expected):
    given = [np.array([int(w, 16)], np.uint64) for w in (*counter.split(), *key.split())]
    assert [f"{int(w[0]):08x}" for w in philox.philox(*given)] == expected.split()


def test_the_counter_is_place_draw_and_call():
    stream = tuple(np.uint64(w) for w in (5, 6, 7, 8))
    place, draw = (3 << 32) | 9, 2
    made = philox.words(np.array([place], np.uint64), np.uint64(draw), stream)
    plain = philox.philox(*(np.array([w], np.uint64) for w in (9, 3 | 2 << 16, 7, 8, 5, 6)))
    assert [int(w[0]) for w in made] == [int(w[0]) for w in plain]


def test_random_is_made_of_the_words_as_documented():
    g = mb.random.Generator(mb.random.Philox(key=(6 << 32) | 5, call=1))
    index = np.arange(5, dtype=np.uint64)
    words = philox.long_words(index, np.uint64(0), tuple(np.uint64(w) for w in (5, 6, 1, 0)))
    expected = (np.stack(words, axis=1).reshape(-1)[:9] >> np.uint64(11)) * 2.0**-53
    assert_same(g.random(9), expected)


# Elementary functions of exactly rounded operations


def ulps(f, exact, x):
    with np.errstate(all="ignore"):
        mine, true = f(x), exact(x.astype(np.longdouble))
    return float(np.max(np.abs((mine - true) / np.spacing(np.abs(true.astype(mine.dtype))))))


_numbers = np.random.default_rng(0)
_PI = np.longdouble("3.14159265358979323846264338327950288")


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs a longer type to compare with")
@pytest.mark.parametrize(
    "f, exact, x",
    [
        (elementary.log, np.log, _numbers.random(20000)),
        (elementary.log, np.log, np.exp(_numbers.uniform(-600, 600, 20000))),
        (elementary.log, np.log, 1 + _numbers.normal(0, 1e-3, 20000)),
        (elementary.log1p, np.log1p, _numbers.uniform(-0.99, 3, 20000)),
        (elementary.log1p, np.log1p, _numbers.normal(0, 1e-9, 20000)),
        (elementary.exp, np.exp, _numbers.uniform(-707, 709, 20000)),
        (elementary.expm1, np.expm1, _numbers.normal(0, 1e-6, 20000)),
        (elementary.expm1, np.expm1, _numbers.uniform(-40, 40, 20000)),
        (lambda r: elementary.eighth_turn(r)[0], lambda r: np.cos(_PI * r), _numbers.uniform(0, 0.25, 20000)),
        (lambda r: elementary.eighth_turn(r)[1], lambda r: np.sin(_PI * r), _numbers.uniform(0, 0.25, 20000)),
        (
            lambda r: elementary.eighth_turn_4(r)[1],
            lambda r: np.sin(_PI * r),
            _numbers.uniform(0, 0.25, 20000).astype("f4"),
        ),
        (
            lambda x: elementary.log_beside_4(x, np.float32(1) - x),
            np.log,
            _numbers.random(20000, dtype="f4") + np.float32(2.0**-25),
        ),
    ],
)
def test_elementary_functions_are_within_three_units(f, exact, x):
    assert ulps(f, exact, x) < 3


def test_exp_at_its_ends():
    with np.errstate(all="ignore"):
        got = elementary.exp(np.array([-np.inf, -1e9, -709.0, 0.0, 709.9, np.inf]))
    np.testing.assert_array_equal(got, [0, 0, 0, 1, np.inf, np.inf])


def test_log1p_rest_does_not_cancel():
    q = np.array([1e-9, -1e-9, 1e-5, 0.001])
    np.testing.assert_allclose(
        elementary.log1p_rest(q), -(q**2) / 2 + q**3 / 3 - q**4 / 4 + q**5 / 5, rtol=1e-9
    )


def test_log_factorial():
    k = np.array([*range(200), 10**4, 10**7, 10**9], float)
    exact = [math.lgamma(n + 1) for n in k]
    np.testing.assert_allclose(counting.log_factorial(k), exact, rtol=1e-12, atol=1e-12)
    rest = [0.0, *(math.lgamma(n + 1) - n * math.log(n) + n for n in range(1, 100))]
    np.testing.assert_allclose(counting.log_factorial_rest(k[:100]), rest, atol=2e-12)


# Compiled and interpreted samplers give the same bits


PARAMETERS = {
    "bounded_4": (5, 3 << 30, (1 << 32) % (3 << 30)),  # a quarter is refused
    "bounded_8": (5, 3 << 62, (1 << 64) % (3 << 62)),
    "bounded_each": (5, 77),
    "gamma": (0.7,),
    "log_gamma": (2.5,),
    "haversine": (3.0,),
    "zipf": (2.5,),
    "poisson": (30.0,),
    "binomial": (100, 0.3),
    "hypergeometric": (30, 40, 20),
}
# (The others compile from the same functions; each takes the compiler about a second.)
COMPILED = [
    ("uniform", "f8", False),
    ("normal_4", "f4", False),
    ("bounded_4", "i2", False),
    ("bounded_4", "?", False),
    ("bounded_each", "u8", True),
    ("gamma", "f4", False),
    ("poisson", "i8", True),
    ("binomial", "i8", False),
]


@pytest.mark.parametrize("name, dtype, each", COMPILED)
def test_compiled_samplers_give_the_bits_of_interpreted_ones(name, dtype, each):
    sampler = TABLE[name]
    start = np.array([5, (1 << 40) - 3], np.int64)
    parameters = (0, 2, 0) if dtype == "?" else PARAMETERS.get(name, ())
    if each:
        varied = np.linspace(0.2, 1.5, 2 * 3001)
        parameters = tuple((varied * p).astype(d) for p, d in zip(parameters, sampler.parameters, strict=True))
    draw = Draw(sampler, (1, 2, 3, 4), parameters)
    hot, cold = np.zeros((2, 2, 3001), dtype)
    with running("hot"):
        filling.draw(mb.HostArray, hot, draw, start)
    host_random.quietly(onblocks.fill, cold, draw, start)
    np.testing.assert_array_equal(hot.view(f"u{hot.itemsize}"), cold.view(f"u{cold.itemsize}"))
    assert len(np.unique(hot)) > (1 if dtype == "?" else 20)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["normal", "gamma"])
def test_threads_do_not_show(name, threads):
    draw = Draw(TABLE[name], (1, 2, 3, 4), PARAMETERS.get(name, ()))
    whole, parts = np.empty((2, 1, 30011))
    onblocks.fill(whole, draw, np.array([1], np.int64))
    with mb.settings.changed(num_threads=threads, thread_size=1):
        filling.draw(mb.HostArray, parts, draw, np.array([1], np.int64))
    np.testing.assert_array_equal(whole, parts)


# The same numbers for any type and any division


@methods
def test_every_place_gives_the_same_numbers(method):
    on_host = drawn(rng(device=mb.HostArray), method, (3, 5))
    on_device = drawn(rng(device=mb.RefArray), method, (3, 5))
    assert_closed(on_host, LEAVES["host"])
    assert_closed(on_device, LEAVES["ref"])
    assert_same(on_device, contents(on_host))


@methods
def test_any_block_of_the_whole_is_what_the_whole_has_there(method):
    whole = contents(drawn(rng(), method, (5, 7)))
    for offset, shape in [
        ((0, 0), (5, 7)),
        ((1, 0), (3, 7)),
        ((2, 3), (3, 4)),
        ((4, 6), (1, 1)),
        ((0, 5), (5, 0)),
    ]:
        part = drawn(rng().piece(offset, (5, 7)), method, shape)
        index = tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))
        if method == "multivariate_normal":  # the product with the factor is BLAS's, which may round anew
            assert_same(part, whole[index], rtol=1e-12)
        else:
            assert_same(part, whole[index])


def test_pieces_of_three_dimensions():
    whole = contents(rng().random((3, 4, 5)))
    part = rng().piece((1, 1, 0), (3, 4, 5)).random((2, 2, 5))
    assert_same(part, whole[1:3, 1:3])


def test_pieces_count_calls_together():
    a, b = rng(), rng()
    piece = a.piece(2, 5)
    piece.random(3), b.random(5)
    assert_same(a.normal(size=4), contents(b.normal(size=4)))


def test_a_longer_array_begins_as_a_shorter_one():
    assert_same(rng().gamma(2.0, size=1000)[:10], contents(rng().gamma(2.0, size=10)))
    assert_same(rng().random((4, 5)), contents(rng().random(20)).reshape(4, 5))


@pytest.mark.parametrize("method", ["standard_gamma", "poisson", "binomial", "hypergeometric", "zipf"])
def test_a_parameter_for_each_element_gives_the_numbers_of_one_for_all(method):
    numbers = METHODS[method]
    arrays = [np.full(50, p) for p in numbers]
    one = contents(getattr(rng(), method)(*numbers, size=50))
    assert_same(getattr(rng(), method)(*arrays), one)
    assert_same(getattr(rng(), method)(*arrays[:-1], numbers[-1], size=(50,)), one)


def test_calls_differ():
    g = rng()
    a, b = contents(g.random(100)), contents(g.random(100))
    assert not np.any(a == b)
    assert g.bit_generator.call == 2


# Distributions


def distribution(method):
    stats = pytest.importorskip("scipy.stats")
    return {
        "random": lambda: stats.uniform(),
        "uniform": lambda low, high: stats.uniform(low, high - low),
        "triangular": lambda a, b, c: stats.triang((b - a) / (c - a), a, c - a),
        "standard_normal": stats.norm,
        "normal": stats.norm,
        "lognormal": lambda mean, sigma: stats.lognorm(sigma, 0, math.exp(mean)),
        "wald": lambda mean, scale: stats.invgauss(mean / scale, 0, scale),
        "standard_exponential": stats.expon,
        "exponential": lambda scale: stats.expon(0, scale),
        "rayleigh": lambda scale: stats.rayleigh(0, scale),
        "weibull": stats.weibull_min,
        "pareto": stats.lomax,
        "power": stats.powerlaw,
        "gumbel": stats.gumbel_r,
        "laplace": stats.laplace,
        "logistic": stats.logistic,
        "standard_cauchy": stats.cauchy,
        "standard_gamma": stats.gamma,
        "gamma": lambda shape, scale: stats.gamma(shape, 0, scale),
        "beta": stats.beta,
        "chisquare": stats.chi2,
        "noncentral_chisquare": stats.ncx2,
        "f": stats.f,
        "noncentral_f": stats.ncf,
        "standard_t": stats.t,
        "vonmises": lambda mu, kappa: stats.vonmises(kappa, mu),
        "integers": stats.randint,
        "poisson": stats.poisson,
        "binomial": stats.binom,
        "negative_binomial": stats.nbinom,
        "geometric": stats.geom,
        "hypergeometric": lambda good, bad, n: stats.hypergeom(good + bad, good, n),
        "logseries": stats.logser,
        "zipf": stats.zipf,
    }[method]


MORE = [
    *REAL.items(),
    ("gamma", (0.05, 1.0)),
    ("gamma", (1.0, 1.0)),
    ("gamma", (1e4, 1.0)),
    ("gamma", (1e15, 1.0)),
    ("beta", (50.0, 1000.0)),
    ("beta", (1.0, 1.0)),
    ("wald", (200.0, 0.3)),
    ("chisquare", (0.5,)),
    ("noncentral_chisquare", (0.5, 3.0)),
    ("standard_t", (1.0,)),
    ("vonmises", (0.0, 1e-6)),
    ("vonmises", (0.0, 100.0)),
]


@pytest.mark.parametrize("method, parameters", MORE, ids=lambda x: str(x))
def test_continuous_distributions(method, parameters):
    from scipy import stats

    d = distribution(method)(*parameters)
    x = contents(getattr(rng(), method)(*parameters, size=20000))
    assert x.dtype == np.float64 and np.all(np.isfinite(x))
    if method == "vonmises":  # angles are from [-π, π]; scipy's distribution goes on beyond
        assert np.all(np.abs(x) <= np.pi)
        x = np.where(x < parameters[0] - np.pi, x + 2 * np.pi, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert stats.kstest(x, d.cdf).pvalue > 1e-3


MORE_COUNTS = [
    *COUNTS.items(),
    ("integers", (0, 2)),
    ("poisson", (0.01,)),
    ("poisson", (9.99,)),
    ("poisson", (10.0,)),
    ("poisson", (1000.0,)),
    ("binomial", (5, 0.2)),
    ("binomial", (10, 0.9)),
    ("binomial", (40, 0.25)),
    ("binomial", (10**6, 1e-6)),
    ("binomial", (10**6, 0.3)),
    ("negative_binomial", (0.5, 0.1)),
    ("geometric", (0.9,)),
    ("hypergeometric", (5, 5, 3)),
    ("hypergeometric", (30, 40, 60)),
    ("hypergeometric", (3, 500, 100)),
    ("hypergeometric", (500, 3, 400)),
    ("hypergeometric", (10**5, 10**5, 1000)),
    ("logseries", (0.1,)),
    ("zipf", (1.5,)),
    ("zipf", (20.0,)),
]


@pytest.mark.parametrize("method, parameters", MORE_COUNTS, ids=lambda x: str(x))
def test_discrete_distributions(method, parameters):
    from scipy import stats

    d = distribution(method)(*parameters)
    x = contents(getattr(rng(), method)(*parameters, size=20000))
    assert x.dtype == np.int64
    # Values by their frequency; what is rare goes together with its neighbours.
    edges = np.unique(np.quantile(x, np.linspace(0, 1, 41)))[:-1]
    observed = np.diff([0, *(np.count_nonzero(x <= e) for e in edges), len(x)])
    expected = np.diff([0.0, *d.cdf(edges), 1.0]) * len(x)
    likely = expected > 5
    observed, expected = (np.append(a[likely], a[~likely].sum()) for a in (observed, expected))
    if expected[-1] < 5:
        assert observed[-1] < 25
        observed, expected = observed[:-1], expected[:-1]
    if len(observed) > 1:
        assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("method, mean", [("poisson", 1e17), ("binomial", 0.5e17)])
def test_counts_of_huge_mean_stay_right(method, mean):
    from scipy import stats

    parameters = (mean,) if method == "poisson" else (10**17, 0.5)
    x = contents(getattr(rng(), method)(*parameters, size=20000))
    spread = math.sqrt(mean if method == "poisson" else mean / 2)
    assert stats.kstest((x - mean) / spread, "norm").pvalue > 1e-3


def test_tails_are_there():
    x = contents(rng().standard_normal(2_000_000))
    assert 4.8 < np.abs(x).max() < 6.5
    e = contents(rng().standard_exponential(500_000, dtype="f4"))
    assert e.min() > 0 and e.max() > 10


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_two_of_a_normal_pair_are_independent(dtype):
    x = contents(rng().standard_normal((100_000, 2), dtype=dtype)).astype("f8")
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.015 and abs(np.corrcoef((x**2).T)[0, 1]) < 0.015


def test_special_parameters():
    g = rng()
    assert_same(g.standard_gamma(0.0, 3), np.zeros(3))
    assert_same(g.poisson(0.0, 3), np.zeros(3, np.int64))
    assert_same(g.binomial(0, 0.5, 3), np.zeros(3, np.int64))
    assert_same(g.binomial([3, 4], [0.0, 1.0]), np.array([0, 4]))
    assert_same(g.geometric(1.0, 3), np.ones(3, np.int64))
    assert_same(g.logseries(0.0, 3), np.ones(3, np.int64))
    assert_same(g.hypergeometric([0, 5, 5], [5, 0, 5], [3, 3, 10]), np.array([0, 3, 5]))
    assert_same(g.normal(2.0, 0.0, 3), np.full(3, 2.0))
    assert_same(g.weibull(0.0, 2), np.zeros(2))
    assert_same(g.zipf(2000.0, 3), np.ones(3, np.int64))
    assert np.all(np.isnan(contents(g.normal(np.nan, 1.0, 3))))
    assert g.geometric([1e-300]).item() == np.iinfo(np.int64).max
    shares = contents(g.dirichlet([1e-3] * 3, 100))
    assert np.all(np.isfinite(shares)) and np.allclose(shares.sum(axis=1), 1)


# Shapes, dtypes, destinations


@sized
@pytest.mark.parametrize("size", [None, 0, 3, (2, 0), (2, 3), ()])
def test_size(method, size):
    x = drawn(rng(), method, size)
    expected = () if size is None else (size,) if isinstance(size, int) else size
    assert x.shape == expected
    assert x.dtype == (np.int64 if method in COUNTS else np.float64)


@pytest.mark.parametrize("method", VECTORS)
def test_size_of_vectors(method):
    n = len(VECTORS[method][-1 if method == "multinomial" else 0])
    assert drawn(rng(), method, None).shape == (n,)
    assert drawn(rng(), method, (2, 3)).shape == (2, 3, n)
    assert drawn(rng(), method, 0).shape == (0, n)


@pytest.mark.parametrize("method", REAL)
def test_single_precision(method):
    x = drawn(rng(), method, 2000, dtype=mb.float32)
    assert x.dtype == np.float32
    assert np.all(np.isfinite(contents(x)))
    d, low, high = distribution(method)(*REAL[method]), *np.quantile(contents(x), [0.3, 0.7])
    if method != "vonmises":
        assert abs(d.cdf(high) - d.cdf(low) - 0.4) < 0.06


@pytest.mark.parametrize("kind", [k for k in SINGLE if k.writable], ids=repr)
def test_out_of_any_kind(kind):
    x = kind.make(np.zeros((3, 4)))
    y = rng().normal(2.0, 3.0, out=x)
    assert y is x
    assert_same(x, contents(rng().normal(2.0, 3.0, size=(3, 4))))
    assert_same(rng().fill(kind.make(np.zeros((3, 4))), "random"), contents(rng().random((3, 4))))


@sized
def test_fill(method):
    dtype = np.int32 if method in COUNTS else np.float32
    x = mb.zeros((2, 3), dtype=np.int64 if method in COUNTS else dtype)
    assert rng().fill(x, method, *METHODS[method]) is x
    options = {} if method in COUNTS else {"dtype": dtype}
    assert_same(x, contents(drawn(rng(), method, (2, 3), **options)))


@pytest.mark.parametrize("method", VECTORS)
def test_vectors_fill_too(method):
    expected = contents(drawn(rng(), method, 5))
    x = mb.zeros(expected.shape, dtype=expected.dtype)
    assert rng().fill(x, method, *VECTORS[method]) is x
    assert_same(x, expected)


def address(x):
    return verbs.leaf_of(x).view.__array_interface__["data"][0]


@pytest.mark.parametrize("method", ["random", "standard_normal", "normal", "standard_gamma"])
def test_filling_takes_no_other_memory(method):
    x = mb.zeros(100_000)  # (what is small is written by swapping it)
    before = address(x)
    drawn(rng(), method, None, out=x)
    assert address(x) == before


def test_filling_is_one_launch():
    x = mb.zeros(100)
    with mb.count() as c:
        rng().random(out=x)
    assert (c.launches, c.temporaries, c.bytes_written) == (1, 0, 800)


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_a_formula_fuses_with_what_follows(family, many):
    g = rng(device=family)
    with mb.count() as c:
        mb.materialize(mb.exp(g.normal(1.0, 2.0, size=10)) + 1)
    assert (c.launches, c.temporaries, c.transfers) == (2, 0, 0)


@pytest.mark.parametrize("kind", [LEAVES["host"], LEAVES["ref"]], ids=repr)
def test_filling_never_changes_what_was_already_said(kind):
    x = kind.make(np.arange(5.0))
    pending, view = x + 1, x[1:3]
    total = mb.sum(x)
    rng().random(out=x)
    assert_same(pending, np.arange(1.0, 6.0))
    assert_same(total, np.float64(10.0))
    new = contents(rng().random(5))
    assert_same(view, new[1:3])
    assert_same(mb.sum(x), np.sum(new), rtol=1e-15)


def test_a_destination_may_be_a_parameter():
    for method in ("normal", "gamma"):
        x = mb.HostArray([1.0, 20.0, 300.0])
        expected = contents(getattr(rng(), method)(np.array([1.0, 20.0, 300.0]), 2.0))
        getattr(rng(), method)(x, 2.0, out=x)
        assert_same(x, expected)
        y = mb.HostArray([300.0, 20.0, 1.0])
        getattr(rng(), method)(y[::-1], 2.0, out=y)
        assert_same(y, expected)


def test_numpy_memory_is_filled_where_it_lies():
    n = np.zeros((4, 3))
    rng().random(out=n)
    np.testing.assert_array_equal(n, contents(rng().random((4, 3))))
    rng().random(out=n.T)
    np.testing.assert_array_equal(n.T, contents(rng().random((3, 4))))


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_out_decides_the_place(family):
    x = family(np.zeros(4))
    assert_same(rng(device=mb.HostArray).random(out=x), contents(rng().random(4)))
    assert type(x).family is family


def test_parameters_broadcast():
    loc = mb.HostArray([[0.0], [100.0]])
    x = rng().normal(loc, [0.0, 0.0, 0.0])
    assert_same(x, np.array([[0.0] * 3, [100.0] * 3]))
    assert rng().poisson(mb.HostArray([1.0, 2.0]), (5, 2)).shape == (5, 2)
    assert rng().gamma(mb.HostArray([[1.0], [2.0]]), mb.HostArray([1.0, 2.0, 3.0])).shape == (2, 3)
    assert rng().integers(mb.HostArray([0, 10]), 20).shape == (2,)
    assert rng().normal(mb.HostArray(5.0)).shape == ()


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_parameters_of_any_kind(kind):
    data = np.array([[0.5, 2.0, 30.0], [1.0, 9.0, 11.0]])
    x, shown = kind.make(data), kind.sample(data)
    g, again = rng(device=kind.family), rng()
    for method in ("standard_gamma", "poisson", "exponential"):
        assert_same(getattr(g, method)(x), contents(getattr(again, method)(shown)))


def test_structured_parameters():
    assert_same(rng().normal(mb.Zeros((4,)), 1.0), contents(rng().standard_normal(4)))


# Integers


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_of_every_dtype(dtype):
    d = np.dtype(dtype)
    least, most = (0, 1) if d.kind == "b" else (np.iinfo(d).min, np.iinfo(d).max)
    x = contents(rng().integers(int(least), int(most), 3000, dtype=d, endpoint=True))
    assert x.dtype == d
    assert abs(np.mean(x.astype(float)) - (float(least) + float(most)) / 2) < 0.03 * (
        float(most) - float(least)
    )
    if d.itemsize == 1:
        assert len(np.unique(x)) == int(most) - int(least) + 1
    one = contents(rng().integers(int(most), int(most) + 1, 3, dtype=d))
    assert np.all(one == most)


@pytest.mark.parametrize("span", [1, 2, 6, 1000, 2**32 - 1, 2**32, 2**32 + 1, 3 * 2**40, 2**63, 2**64])
def test_integers_of_every_span(span):
    low = -(2**63) if span > 2**62 else -7
    dtype = np.int64
    x = contents(rng().integers(low, low + span, 5000, dtype=dtype))
    scaled = (x.astype(float) - low) / span
    assert scaled.min() >= 0 and scaled.max() <= 1
    if span > 5:
        assert abs(scaled.mean() - 0.5 * (1 - 1 / span)) < 0.02
    each = contents(rng().integers(np.full(5000, low), low + span - 1, endpoint=True))
    assert abs(((each.astype(float) - low) / span).mean() - 0.5 * (1 - 1 / span)) < 0.02


def test_integers_of_ranges_of_their_own():
    low = mb.HostArray(np.arange(-50, 50))
    x = contents(rng().integers(low, low + 2, endpoint=False))
    assert np.all((x >= np.arange(-50, 50)) & (x < np.arange(-48, 52))) and x.dtype == np.int64
    y = rng().integers([0, 100], [10, 110], (3, 2), dtype=mb.uint8)
    assert y.dtype == np.uint8 and np.all(contents(y) // 100 == [0, 1])
    z = contents(rng().integers(np.array([2**63, 2**64 - 5], np.uint64), 2**64 - 1, dtype="u8", endpoint=True))
    assert z[0] >= 2**63 and z[1] >= 2**64 - 5


def test_float_ends_are_rounded_inwards():
    x = contents(rng().integers(0.5, 2.5, 100))
    assert set(x.tolist()) == {1, 2}


# Orders and choices


def test_permutation_of_numbers():
    x = rng().permutation(1000)
    assert_closed(x, LEAVES["host"])
    assert x.dtype == np.int64
    assert_same(mb.HostArray(np.sort(contents(x))), np.arange(1000))
    assert_same(rng(device=mb.RefArray).permutation(1000), contents(x))


def test_all_orders_are_equally_likely():
    g, seen = rng(), {}
    for _ in range(300):
        order = tuple(contents(g.permutation(3)).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6 and min(seen.values()) > 25


@pytest.mark.parametrize("kind", [k for k in SINGLE if "stretched" not in k.wrappers], ids=repr)
def test_permutation_and_shuffle_of_any_kind(kind):
    data = np.arange(12).reshape(4, 3)
    expected = data[contents(rng().permutation(4))]
    assert_same(rng().permutation(kind.make(data)), expected)
    x = kind.make(data)
    rng().shuffle(x)
    assert_same(x, expected)
    across = data[:, contents(rng().permutation(3))]
    assert_same(rng().permutation(kind.make(data), axis=1), across)
    assert_same(rng().permutation(kind.make(data), axis=-1), across)
    mine = contents(rng().permuted(kind.make(data), axis=1))
    np.testing.assert_array_equal(np.sort(mine, axis=1), data)
    assert_same(rng().permuted(kind.make(data), axis=1), mine)
    everything = contents(rng().permuted(kind.make(data)))
    np.testing.assert_array_equal(np.sort(everything, axis=None), np.arange(12))


def test_shuffle_of_what_is_not_ours():
    items = ["a", "b", "c", "d"]
    rng().shuffle(items)
    assert sorted(items) == ["a", "b", "c", "d"]
    n = np.arange(10)
    rng().shuffle(n)
    assert sorted(n.tolist()) == list(range(10)) and n.tolist() != list(range(10))


def test_permuted_into_out():
    x, out = mb.HostArray([1, 2, 3]), mb.zeros(3, dtype=np.int64)
    assert rng().permuted(x, out=out) is out
    assert_same(mb.HostArray(np.sort(contents(out))), np.array([1, 2, 3]))


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [None, [0.5, 0.0, 0.2, 0.3]])
def test_choice(family, replace, p):
    g = rng(device=family)
    x = g.choice(4, 3, replace=replace, p=p)
    assert type(x) is family[np.int64, 1]
    values = contents(x)
    assert p is None or 1 not in values
    assert replace or len(set(values.tolist())) == 3
    assert_same(rng().choice(4, 3, replace=replace, p=p), values)
    pool = family(np.array([[10, 1], [20, 2], [30, 3], [40, 4]]))
    assert_same(rng().choice(pool, 3, replace=replace, p=p), contents(pool)[values])
    assert_same(rng().choice(contents(pool), 3, replace=replace, p=p), contents(pool)[values])
    assert rng(device=family).choice(pool, (2, 2), axis=1).shape == (4, 2, 2)
    assert g.choice([5, 6, 7]).shape == ()


def test_choice_frequencies():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    x = contents(rng().choice(4, 20000, p=p))
    np.testing.assert_allclose(np.bincount(x) / 20000, p, atol=0.015)
    # Without return, the second is drawn from what the first leaves.
    g = rng()
    first = [tuple(contents(g.choice(3, 2, replace=False, p=[0.6, 0.3, 0.1])).tolist()) for _ in range(700)]
    share = {pair: first.count(pair) / 700 for pair in itertools.permutations(range(3), 2)}
    assert abs(share[0, 1] - 0.6 * 0.3 / 0.4) < 0.06 and abs(share[1, 0] - 0.3 * 0.6 / 0.7) < 0.06


@pytest.mark.parametrize("n, drawn_", [(10**6, 5), (10**12, 1000), (70000, 2000)])
def test_few_of_many_without_return(n, drawn_):
    x = contents(rng().choice(n, drawn_, replace=False))
    assert len(np.unique(x)) == drawn_ and x.min() >= 0 and x.max() < n
    assert_same(rng(device=mb.RefArray).choice(n, drawn_, replace=False), x)


def test_bytes():
    assert rng().bytes(10) == rng(device=mb.RefArray).bytes(10) != rng(1).bytes(10)
    assert rng().bytes(0) == b"" and len(rng().bytes(7)) == 7


# Vectors


def test_moments_of_vectors():
    g = rng()
    counts = contents(g.multinomial(30, [0.1, 0.2, 0.7], 20000))
    assert np.all(counts.sum(axis=1) == 30)
    np.testing.assert_allclose(counts.mean(axis=0), [3, 6, 21], rtol=0.02)
    drawn_ = contents(g.multivariate_hypergeometric([10, 20, 30], 12, 20000))
    assert np.all(drawn_.sum(axis=1) == 12)
    np.testing.assert_allclose(drawn_.mean(axis=0), [2, 4, 6], rtol=0.02)
    shares = contents(g.dirichlet([0.2, 1.0, 3.0], 20000))
    np.testing.assert_allclose(shares.mean(axis=0), np.array([0.2, 1, 3]) / 4.2, rtol=0.05)
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("svd", "eigh", "cholesky"):
        x = contents(g.multivariate_normal([1.0, 2.0], cov, 20000, method=method))
        np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
        np.testing.assert_allclose(x.mean(axis=0), [1, 2], atol=0.04)


def test_multinomial_of_several():
    x = rng().multinomial([10, 20], [[0.5, 0.5], [1.0, 0.0]])
    assert x.shape == (2, 2) and contents(x).sum(axis=1).tolist() == [10, 20]
    assert contents(x)[1].tolist() == [20, 0]
    assert rng().multinomial([10, 20], [0.5, 0.5], (3, 2)).shape == (3, 2, 2)
    assert contents(rng().multinomial(5, [1.0])).tolist() == [5]


def test_a_covariance_that_is_none():
    bad = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.warns(RuntimeWarning, match="positive-semidefinite"):
        rng().multivariate_normal([0.0, 0.0], bad)
    with pytest.raises(ValueError, match="positive-semidefinite"):
        rng().multivariate_normal([0.0, 0.0], bad, check_valid="raise")
    rng().multivariate_normal([0.0, 0.0], bad, check_valid="ignore")


# State


def test_seeds():
    assert_same(rng(5).random(3), contents(rng(np.random.SeedSequence(5)).random(3)))
    assert not np.any(contents(rng(5).random(3)) == contents(rng(6).random(3)))
    assert rng([1, 2, 3]).bit_generator.key != rng([1, 2]).bit_generator.key
    assert default_rng().bit_generator.key != default_rng().bit_generator.key
    g = rng()
    assert default_rng(g) is g
    assert default_rng(g, device=mb.RefArray).bit_generator is g.bit_generator
    assert mb.random.Generator(mb.random.Philox(3)).bit_generator.key == mb.random.Philox(3).key


def test_state_can_be_set():
    g = rng()
    g.random(3)
    state = g.state
    x = contents(g.normal(size=5))
    g.state = pickle.loads(pickle.dumps(state))
    assert_same(g.normal(size=5), x)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
@pytest.mark.parametrize("device", [None, mb.HostArray, mb.RefArray, mb.types.Transpose[mb.HostArray]])
def test_generators_are_copied(clone, device):
    g = rng(device=device)
    g.random(3)
    other = clone(g)
    assert repr(other) == repr(g)
    assert_same(other.random((2, 2)), contents(g.random((2, 2))))
    assert copy.copy(g).bit_generator is g.bit_generator


def test_spawn():
    g = rng()
    a, b = g.spawn(2)
    (c,) = g.spawn(1)
    keys = {x.bit_generator.key for x in (g, a, b, c, *a.spawn(2))}
    assert len(keys) == 6
    assert g.bit_generator.call == 0
    assert [x.bit_generator.key for x in rng().spawn(3)] == [x.bit_generator.key for x in (a, b, c)]


def test_split_depends_on_the_state_alone():
    g = rng()
    before = g.state
    first = [x.bit_generator.key for x in g.split(3)]
    again = [x.bit_generator.key for x in g.split(3)]
    assert len({*first, *again}) == 6
    g.state = before
    assert [x.bit_generator.key for x in g.split(3)] == first


def test_jumped_and_advance():
    g = rng()
    far = g.jumped(2)
    assert far.bit_generator.call == 2 * 2**44 and g.bit_generator.call == 0
    g.bit_generator.advance(2 * 2**44)
    assert_same(g.random(3), contents(far.random(3)))
    g.bit_generator.advance(-1)
    assert g.bit_generator.call == 2 * 2**44


def test_calls_from_threads_are_each_their_own():
    import threading

    g, made = rng(), []
    workers = [
        threading.Thread(target=lambda: made.extend(g.bit_generator.next_call() for _ in range(200)))
        for _ in range(4)
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(set(made)) == 800


def test_representations():
    assert repr(mb.random.Philox(key=16, call=3)) == "Philox(key=0x10, call=3)"
    assert repr(mb.random.Generator(mb.random.Philox(key=16), device=mb.RefArray)) == (
        "Generator(Philox(key=0x10, call=0), device=RefArray)"
    )


# Where arrays are made


def test_the_default_array_is_made():
    g = rng()
    with mb.default_array(mb.RefArray):
        assert type(g.random(2)) is mb.RefArray[np.float64, 1]
    assert type(g.random(2)) is mb.HostArray[np.float64, 1]
    xp = mb.namespace(mb.RefArray)
    assert xp.random.default_rng(1).normal(size=2).place == mb.RefArray.home
    x = rng(device=mb.types.Transpose[mb.HostArray]).random((2, 3))
    assert type(x) is mb.types.Transpose[mb.HostArray[np.float64, 2]]
    assert_same(x, contents(rng().random((2, 3))))


def test_methods_and_parameters_are_numpys():
    compared = 0
    for name in dir(np.random.Generator):
        if name.startswith("_"):
            continue
        mine = getattr(mb.random.Generator, name)
        try:
            theirs = inspect.signature(getattr(np.random.Generator, name))
        except (TypeError, ValueError):
            continue
        expected = list(theirs.parameters)
        assert list(inspect.signature(mine).parameters)[: len(expected)] == expected, name
        compared += 1
    assert compared > 30


# Bad input: a clear error, and nothing drawn or written


BAD = [
    (lambda g: g.normal(0.0, -1.0), ValueError, "scale < 0"),
    (lambda g: g.normal(0.0, [1.0, -1.0]), ValueError, r"scale < 0: an array of shape \(2,\)"),
    (lambda g: g.normal("a"), TypeError, "loc is a number"),
    (lambda g: g.normal(1j), TypeError, "loc is a number"),
    (lambda g: g.normal(mb.HostArray([1j])), TypeError, "loc is real"),
    (lambda g: g.normal([1.0, 2.0], size=3), ValueError, "not compatible with broadcast dimensions"),
    (lambda g: g.normal(np.zeros((2, 3)), np.zeros(4)), ValueError, "could not be broadcast"),
    (lambda g: g.uniform(0.0, np.inf), OverflowError, "range exceeds valid bounds"),
    (lambda g: g.uniform([0.0, 0.0], [1.0, np.nan]), OverflowError, "range exceeds valid bounds"),
    (lambda g: g.uniform(1.0, 0.0), ValueError, "high - low < 0"),
    (lambda g: g.triangular(3.0, 2.0, 5.0), ValueError, "left > mode"),
    (lambda g: g.triangular(1.0, 6.0, 5.0), ValueError, "mode > right"),
    (lambda g: g.triangular(1.0, 1.0, 1.0), ValueError, "left == right"),
    (lambda g: g.standard_exponential(method="x"), ValueError, "method is"),
    (lambda g: g.gamma(-1.0), ValueError, "shape < 0"),
    (lambda g: g.gamma(np.nan), ValueError, "NaN"),
    (lambda g: g.gamma([1.0, np.inf]), ValueError, "too large"),
    (lambda g: g.beta(0.0, 1.0), ValueError, "a <= 0"),
    (lambda g: g.chisquare(0.0), ValueError, "df <= 0"),
    (lambda g: g.standard_t(-1.0), ValueError, "df <= 0"),
    (lambda g: g.f(1.0, 0.0), ValueError, "dfden <= 0"),
    (lambda g: g.wald(0.0, 1.0), ValueError, "mean <= 0"),
    (lambda g: g.vonmises(0.0, -1.0), ValueError, "kappa < 0"),
    (lambda g: g.pareto(0.0), ValueError, "a <= 0"),
    (lambda g: g.weibull(-1.0), ValueError, "a < 0"),
    (lambda g: g.poisson(-1.0), ValueError, "lam < 0"),
    (lambda g: g.poisson([1.0, np.nan]), ValueError, "NaN"),
    (lambda g: g.poisson(1e30), ValueError, "lam value too large"),
    (lambda g: g.binomial(10, 1.5), ValueError, "p > 1"),
    (lambda g: g.binomial(10, np.nan), ValueError, "p is NaN"),
    (lambda g: g.binomial(-1, 0.5), ValueError, "n < 0"),
    (lambda g: g.binomial(2.5, 0.5), TypeError, "n is a whole number"),
    (lambda g: g.binomial([2.5], 0.5), TypeError, "n is a whole number"),
    (lambda g: g.geometric(0.0), ValueError, "p <= 0"),
    (lambda g: g.logseries(1.0), ValueError, "p >= 1"),
    (lambda g: g.zipf(1.0), ValueError, "a <= 1"),
    (lambda g: g.hypergeometric(3, 4, 10), ValueError, "ngood \\+ nbad < nsample"),
    (lambda g: g.hypergeometric(10**9, 4, 10), ValueError, "less than 1000000000"),
    (lambda g: g.integers(5, 5), ValueError, "low >= high"),
    (lambda g: g.integers(6, 5, endpoint=True), ValueError, "low > high"),
    (lambda g: g.integers([1, 5], [2, 5]), ValueError, "low >= high"),
    (lambda g: g.integers(300, dtype="u1"), ValueError, "high is out of bounds for uint8"),
    (lambda g: g.integers(-1, 5, dtype="u1"), ValueError, "low is out of bounds for uint8"),
    (lambda g: g.integers([-1], 5, dtype="u1"), ValueError, "low is out of bounds for uint8"),
    (lambda g: g.integers([1.5], 5), TypeError, "no integer"),
    (lambda g: g.integers(3, dtype="f8"), TypeError, "Unsupported dtype"),
    (lambda g: g.random(3, dtype="i4"), TypeError, "Unsupported dtype"),
    (lambda g: g.random(3, dtype="f2"), TypeError, "Unsupported dtype"),
    (lambda g: g.random(-3), ValueError, "negative dimensions"),
    (lambda g: g.random("a"), TypeError, "A shape is"),
    (lambda g: g.random((1 << 30, 1 << 30)), ValueError, "more elements than can be numbered"),
    (lambda g: g.random(4, out=mb.zeros(3)), ValueError, "size must match out.shape"),
    (lambda g: g.random(dtype="f4", out=mb.zeros(3)), TypeError, "Expected float32, got float64"),
    (lambda g: g.random(out=[1.0]), TypeError, "out= takes an array"),
    (lambda g: g.random(out=mb.broadcast_to(mb.zeros(1), (3,))), ValueError, "read-only"),
    (lambda g: g.random(out=mb.Zeros((3,))), TypeError, "nothing to write to"),
    (lambda g: g.poisson(out=mb.zeros(3, dtype="u1")), TypeError, "Cannot cast"),
    (lambda g: g.fill(mb.zeros(3), "nothing"), ValueError, "There is no distribution"),
    (lambda g: g.choice(3, 5, replace=False), ValueError, "larger sample than population"),
    (lambda g: g.choice(3, p=[0.5, 0.5]), ValueError, "must have same size"),
    (lambda g: g.choice(2, p=[0.1, 0.2]), ValueError, "do not sum to 1"),
    (lambda g: g.choice(2, p=[1.5, -0.5]), ValueError, "not non-negative"),
    (lambda g: g.choice(2, p=[np.nan, 1.0]), ValueError, "contain NaN"),
    (lambda g: g.choice(2, p=[[1.0, 0.0]]), ValueError, "1-dimensional"),
    (lambda g: g.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0]), ValueError, "Fewer non-zero entries"),
    (lambda g: g.choice(0), ValueError, "cannot be empty"),
    (lambda g: g.choice(-1), ValueError, "non-negative integer"),
    (lambda g: g.choice(2.5), TypeError, "a must be"),
    (lambda g: g.permutation(mb.zeros((2, 2)), axis=2), (ValueError, IndexError), "axis"),
    (lambda g: g.shuffle(3), TypeError, "shuffle changes an array or a list"),
    (lambda g: g.shuffle([1, 2], axis=1), NotImplementedError, "axis"),
    (lambda g: g.permuted(mb.zeros(3), out=mb.zeros(4)), ValueError, "same shape"),
    (lambda g: g.bytes(-1), ValueError, "not negative"),
    (lambda g: g.dirichlet([-1.0, 1.0]), ValueError, "alpha < 0"),
    (lambda g: g.dirichlet(1.0), ValueError, "alpha is a vector"),
    (lambda g: g.multinomial(5, [0.5, 0.6, 0.1]), ValueError, "sum\\(pvals"),
    (lambda g: g.multinomial(5, [1.5, -0.5]), ValueError, "pvals < 0"),
    (lambda g: g.multinomial(5, 0.5), ValueError, "pvals holds"),
    (lambda g: g.multinomial([5, 6], [0.5, 0.5], 3), ValueError, "not compatible"),
    (lambda g: g.multivariate_hypergeometric([3, 4], 10), ValueError, "nsample > sum"),
    (lambda g: g.multivariate_normal([0.0, 0.0], [[1.0]]), ValueError, "same length"),
    (lambda g: g.multivariate_normal([0.0], [[1.0]], method="qr"), ValueError, "method is"),
    (lambda g: g.piece(3, 2), ValueError, "does not lie"),
    (lambda g: g.piece(1, 4).random(5), ValueError, "does not lie"),
    (lambda g: g.piece(1, 4).random(), ValueError, "does not lie"),
    (lambda g: g.piece(1, 4).permutation(4), ValueError, "needs the whole array"),
    (lambda g: g.spawn(-1), ValueError, "n is an integer"),
    (lambda g: setattr(g, "state", {"bit_generator": "PCG64"}), ValueError, "no state of"),
    (lambda g: setattr(g, "state", 3), ValueError, "no state of"),
]


@pytest.mark.parametrize("call, error, text", BAD, ids=range(len(BAD)))
def test_bad_input(call, error, text):
    g = rng()
    before = g.state
    with pytest.raises(error, match=text):
        call(g)
    assert g.state == before or "Cannot cast" in text


def test_a_refused_call_writes_nothing():
    x = mb.HostArray([1.0, 2.0])
    for options in ({"scale": -1.0}, {"scale": [1.0, -1.0]}, {"size": 3}):
        with pytest.raises(ValueError):
            rng().normal(out=x, **options)
    assert_same(x, np.array([1.0, 2.0]))


@pytest.mark.parametrize("seed, error", [(-1, ValueError), (1.5, TypeError), ("x", TypeError)])
def test_bad_seeds(seed, error):
    with pytest.raises(error):
        default_rng(seed)


@pytest.mark.parametrize("options", [{"key": -1}, {"key": 1 << 64}, {"seed": 3, "key": 4}, {"call": -1}])
def test_bad_keys(options):
    with pytest.raises(ValueError):
        mb.random.Philox(**options)
    with pytest.raises(TypeError):
        mb.random.Philox(key="a")


def test_parameters_never_move_unasked():
    g = rng(device=mb.RefArray)
    for x in (mb.zeros(3), np.zeros(3)):
        with pytest.raises(mb.PlaceError, match="loc"):
            g.normal(x)
        with pytest.raises(mb.PlaceError):
            g.poisson(x)
        with mb.allow_transfer(), mb.count() as c:
            g.normal(x)
        assert c.transfers >= 1
    with pytest.raises(mb.PlaceError):
        rng().normal(mb.RefArray([1.0]))
    assert g.normal([1.0, 2.0]).shape == (2,)  # a list is data to be made an array of


def test_a_family_without_random_numbers_says_so():
    with pytest.raises(TypeError, match="makes no random numbers"):
        filling.draw(mb.types.DenseArray, None, None, None)


@pytest.mark.parametrize("a", [0.5, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("what", ["weibull", "power"])
def test_powers_are_the_same_on_all_places(what, a):
    ours, theirs = (
        mb.to_numpy(getattr(mb.random.default_rng(3, device=place), what)(a, 3001))
        for place in (mb.HostArray, mb.RefArray)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_methods_of_generators_say_what_they_take_and_give():
    from test_site import sections

    for name in dir(mb.random.Generator):
        method = inspect.getattr_static(mb.random.Generator, name)
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        found = dict(sections(inspect.getdoc(method)))
        said = re.findall(r"^([*]*\w+) : ", found.get("Parameters", ""), flags=re.MULTILINE)
        taken = [str(p).partition(":")[0] for p in inspect.signature(method).parameters.values()]
        assert said == [p.strip() for p in taken[1:]], name
        assert ("Returns" in found) == (method.__annotations__["return"] != "None"), name
        assert ">>> " in found["Examples"], name
