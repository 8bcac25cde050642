"""Arrays that Hypothesis draws, and results read as a conformance suite reads them: one by one.

    @conforms("abs", "negative")
    def test_unary(xp, name, draw): ...

is a test for each namespace and name: `draw` draws from strategies.
"""

import functools
import inspect
import itertools

import numpy as np
import pytest
from compare import assert_near, assert_same, on_real_card
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import mirabelle as mb

NAMESPACES = {
    "host": mb,
    "ref": mb.namespace(mb.RefArray),
    "cuda": mb.namespace(mb.CuArray),
    "transposed": mb.namespace(mb.types.Transpose[mb.HostArray]),
    "pending": mb.namespace(lambda x: mb.where(True, x, x)),
    "transposed ref": mb.namespace(mb.types.Transpose[mb.RefArray]),
}
# How many examples each test draws: the reference device is slow.
EXAMPLES = {"host": 15, "ref": 4, "cuda": 4, "transposed": 6, "pending": 6, "transposed ref": 3}

KINDS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
INTEGERS = [f"{k}{bits}" for k in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = [*INTEGERS, *FLOATS]
INEXACT = [*FLOATS, *COMPLEX]
NUMERIC = [*REAL, *COMPLEX]
EVERY = ["bool", *NUMERIC]


def kind(dtype):
    """The Python type of an element."""
    return KINDS[np.dtype(dtype).kind]


def promotable(dtype, among=EVERY):
    """The dtypes that the standard promotes together with one."""
    families = [["bool"], INTEGERS, INEXACT]
    (family,) = [f for f in families if dtype in f]
    return [d for d in family if d in among and np.promote_types(d, dtype).name in family]


def conforms(*names):
    """Run the test for every namespace, and for every name if there are some."""

    def decorate(check):
        def run(place, name):
            xp = NAMESPACES[place]

            @settings(max_examples=EXAMPLES[place])
            @given(data=st.data())
            def examples(data):
                with mb.allow_scalar(), np.errstate(all="ignore"):
                    check(xp, *name, data.draw)

            examples()

        def plain(place):
            run(place, ())

        def named(place, name):
            run(place, (name,))

        test = named if names else plain
        test.__doc__, test.__name__ = check.__doc__, check.__name__
        test = pytest.mark.parametrize("place", NAMESPACES)(test)
        if names:
            test = pytest.mark.parametrize("name", names)(test)
        return test

    return decorate


# Drawing


@functools.cache
def strategies(xp):
    return make_strategies_namespace(xp)


def shapes(min_dims=0, max_dims=3, min_side=0, max_side=3):
    return strategies(mb).array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )


def broadcastable(number):
    """That many shapes that fit one another."""
    made = strategies(mb).mutually_broadcastable_shapes(number, min_side=0, max_dims=3, max_side=3)
    return made.map(lambda found: found.input_shapes)


def elements(dtype, low=None, high=None, finite=False):
    """Numbers that a dtype holds; of complex ones the bounds are for both parts."""
    if dtype in COMPLEX:
        part = elements({"complex64": "float32", "complex128": "float64"}[dtype], low, high, finite)
        return st.builds(complex, part, part)
    options = {}
    if low is not None:
        options["min_value"] = low if kind(dtype) is float else max(low, int(np.iinfo(dtype).min))
    if high is not None:
        options["max_value"] = high if kind(dtype) is float else min(high, int(np.iinfo(dtype).max))
    if kind(dtype) is float and (finite or options):
        options |= {"allow_nan": False, "allow_infinity": False}
    return strategies(mb).from_dtype(getattr(mb, dtype), **options)


def array(xp, draw, dtypes, shape=None, values=None, **bounds):
    """An array of one of the dtypes; of any shape, or one of a strategy's."""
    dtype = draw(st.sampled_from(dtypes)) if isinstance(dtypes, list) else dtypes
    if not isinstance(shape, tuple):
        shape = draw(shapes() if shape is None else shape)
    if values is None and bounds:
        values = elements(dtype, **bounds)
    return draw(strategies(xp).arrays(dtype=getattr(xp, dtype), shape=shape, elements=values))


def axis(ndim, none=True):
    """One axis of so many dimensions."""
    one = st.integers(-ndim, ndim - 1) if ndim else st.nothing()
    return st.none() | one if none or not ndim else one


def axes(ndim):
    """None, an axis, or several."""
    return axis(ndim) | strategies(mb).valid_tuple_axes(ndim)


def options(draw, **strategies_):
    """Some of the options, each left away or not."""
    return {name: draw(s) for name, s in strategies_.items() if draw(st.booleans())}


# Reading


def name_of(dtype):
    """The standard's name of a dtype, found by comparing as its users do."""
    (found,) = [name for name in EVERY if getattr(mb, name) == dtype]
    return found


def read(x):
    """The contents as a NumPy array, element by element through Python's numbers."""
    dtype = name_of(x.dtype)
    python = kind(dtype)
    values = []
    for index in itertools.product(*map(range, x.shape)):
        element = x[index]
        assert element.shape == () and element.dtype == x.dtype
        values.append(python(element))
    return np.array(values, dtype).reshape(x.shape)


def same(x, expected, **tolerance):
    """The result is what NumPy's is; with `rtol`, where that is finite."""
    got, expected = read(x), np.asarray(expected)
    if on_real_card(x) and got.dtype.kind in "fc" and not tolerance.get("rtol"):
        # (its functions differ from NumPy's in the last bits)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert_near(got, expected, **tolerance)
        return
    if tolerance.get("rtol"):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        known = np.isfinite(expected) & np.isfinite(got)
        got, expected = np.where(known, got, got.dtype.type(0)), np.where(known, expected, got.dtype.type(0))
    assert_same(got, expected, **tolerance)


def is_like(x, dtype, shape):
    """Its dtype and shape are these, and all its elements can be read."""
    assert name_of(x.dtype) == np.dtype(dtype).name and x.shape == tuple(shape)
    read(x)


# Signatures


def check_signature(f, line):
    """Every parameter of the standard's signature is there, of its kind, in its order."""
    scope = {}
    exec(f"def {line}: ...", scope)
    wanted = inspect.signature(scope[line.partition("(")[0]]).parameters
    found = inspect.signature(f).parameters
    for a, b in zip(wanted.values(), found.values(), strict=False):
        if a.kind is not a.KEYWORD_ONLY:
            assert a.kind is b.kind, f"{b} is {b.kind.description}"
            assert a.kind is a.POSITIONAL_ONLY or a.name == b.name
    for name, p in wanted.items():
        if p.kind is p.KEYWORD_ONLY:
            assert found[name].kind is p.KEYWORD_ONLY and found[name].default == p.default
    for name, p in found.items():  # what is ours besides need not be given
        if len(found) > len(wanted) and name not in wanted and p.kind is p.KEYWORD_ONLY:
            assert p.default is not p.empty


def signature_lines(table):
    """A test for each line of a table of signatures."""
    lines = [line.strip() for line in table.splitlines() if line.strip()]
    return pytest.mark.parametrize("line", lines, ids=[line.partition("(")[0] for line in lines])
