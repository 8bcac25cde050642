"""Functions of users are compiled by helpers once enough of them were compiled here, to the same effect.

(What LLVM leaves behind of each function it compiles is never given back to this process; a helper ends.)
"""

import functools
import math

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.usercode import codememory, userfunctions
from mirabelle.backends.host import background, kernels, overloadjobs
from mirabelle.dispatch.errors import UserFunctionError

X = np.linspace(-2, 2, 41)
SCALE = 3


def twice(a):
    return 2 * a


def calls_another(a):
    return twice(a) + twice(SCALE)


def shifted(a, by=0.5):
    return math.sqrt(abs(a)) + by


def branches(a):
    if a > 1:
        return a * a
    return -a if a < 0 else np.sin(a)


def closes_over(n):
    return lambda a: a * n + SCALE


def two_results(a):
    return a + 1, a > 0


def steps(a):
    total = 0.0
    for i in range(4):
        total += a**i
    return total


FUNCTIONS = [
    calls_another, shifted, branches, closes_over(3), closes_over(2.5), two_results, steps, lambda a: a + 1j
]  # fmt: skip


@pytest.fixture
def elsewhere(monkeypatch):
    """Nothing more of users' functions is compiled here."""
    monkeypatch.setattr(kernels, "COMPILED_HERE", 0)
    userfunctions.forget()
    with mb.settings.changed(compiler="process"):
        yield
    userfunctions.forget()


def counted(f):
    """How many things were compiled here meanwhile."""
    before = kernels._compiled_here
    f()
    return kernels._compiled_here - before


@pytest.mark.parametrize("f", FUNCTIONS)
def test_broadcasts_are_what_they_are_here(f, elsewhere):
    def check():
        got, expected = mb.broadcast(f, mb.HostArray(X)), [f(float(v)) for v in X]
        expected = zip(*expected, strict=True) if f is two_results else [expected]
        for g, e in zip(got if f is two_results else [got], expected, strict=True):
            assert_same(g, np.array(list(e)), rtol=1e-15)

    assert counted(check) == 0


def test_folds_scans_and_partials_are_too(elsewhere):
    def longer(a, b):
        return a + b * 0.5

    x = mb.HostArray(X)
    total = functools.reduce(longer, X, 0.0)

    def check():
        assert_same(mb.mapreduce(twice, longer, x, init=0.0), functools.reduce(longer, 2 * X, 0.0), rtol=1e-14)
        assert_same(mb.accumulate(x, longer)[-1], functools.reduce(longer, X), rtol=1e-14)
        assert_same(mb.broadcast(functools.partial(longer, 2.0), x), 2.0 + X * 0.5)
        assert np.isfinite(total)

    assert counted(check) == 0


def test_functions_of_jit_are_too(elsewhere):
    @mb.jit
    def norm(v):
        total = 0.0
        for i in range(v.shape[0]):
            total += twice_jitted(v[i]) ** 2
        return math.sqrt(total)

    assert counted(lambda: assert_same(norm(mb.HostArray(X)), np.linalg.norm(2 * X), rtol=1e-14)) == 0


twice_jitted = mb.jit(twice)


def test_what_a_helper_cannot_be_told_is_compiled_here(elsewhere, monkeypatch):
    here = object()
    assert overloadjobs.described(calls_another) is not None
    assert overloadjobs.described(abs) is None and overloadjobs.described(lambda a: (a, here)) is None
    monkeypatch.setattr(overloadjobs, "described", lambda f: None)
    assert counted(lambda: assert_same(mb.broadcast(lambda a: a - 7, mb.HostArray(X)), X - 7)) == 1


def test_where_no_helper_can_be_had_it_is_compiled_here(elsewhere, monkeypatch):
    monkeypatch.setattr(kernels._helpers, "submit", lambda job: False)
    assert counted(lambda: assert_same(mb.broadcast(lambda a: a - 9, mb.HostArray(X)), X - 9)) == 1


def test_what_raises_says_so(elsewhere):
    def picky(a):
        if a > 1.5:
            raise ValueError("too large")
        return a

    assert_same(mb.broadcast(picky, mb.HostArray(X[:9])), X[:9])
    with pytest.raises(UserFunctionError, match="picky"):
        mb.materialize(mb.broadcast(picky, mb.HostArray(X)))
    with pytest.raises(UserFunctionError, match="cannot be compiled for scalars"):
        mb.broadcast(lambda a: a.nothing, mb.HostArray(X))


def test_memory_does_not_grow_with_their_number(elsewhere):
    x = mb.HostArray(X)

    def use(i):
        scope = {"__name__": __name__}
        exec(f"def f{i}(a):\n    return a * {i}.25 + 1\n", scope)
        assert_same(mb.broadcast(scope[f"f{i}"], x), X * (i + 0.25) + 1)

    use(0)
    before = codememory.taken()
    for i in range(1, 5):
        use(i)
    assert codememory.taken() - before < 4 * 100_000  # (LLVM leaves about 1 MB of each)


def test_what_was_compiling_when_we_began_to_watch_is_not_counted():
    """Another thread may be at it."""
    from numba.core import event

    codememory.watch()
    before = codememory.taken()
    event.end_event("numba:compile")
    assert codememory.taken() == before
    with event.trigger_event("numba:compile"):
        pass
    assert codememory.taken() >= before


def test_inference_compiles_nothing():
    userfunctions.forget()
    op, _ = userfunctions.operation(steps, 1)
    assert userfunctions.infer(op, (np.dtype("i4"),)) == (np.dtype("f8"),)
    assert not userfunctions.jitted(op.scalar).overloads


def test_a_helper_ends_after_some_kernels(elsewhere, monkeypatch):
    monkeypatch.setattr(background, "MOST", 1)
    x = mb.HostArray(X)
    assert_same(mb.broadcast(lambda a: a * 1.75, x), X * 1.75)
    first = {h.process.pid for h in kernels._helpers.helpers if h.process is not None}
    assert first
    kernels.settle()
    assert_same(mb.broadcast(lambda a: a * 2.75, x), X * 2.75)
    assert not first & {h.process.pid for h in kernels._helpers.helpers if h.process is not None}
