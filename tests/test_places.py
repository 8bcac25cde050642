"""Where arrays are made: lists and numbers have no place, and go where they are needed or asked for."""

import inspect
import pickle

import numpy as np
import pytest

import mirabelle as mb

FAMILIES = (mb.HostArray, mb.RefArray)
DEVICE = mb.RefArray([0.0]).place
XP = mb.namespace(mb.RefArray)
M = [[4.0, 1.0], [1.0, 3.0]]


def values(x):
    return mb.to_numpy(x)


def places(found):
    """The places of the arrays in what a function gives back."""
    if isinstance(found, (tuple, list)):
        return set().union(*map(places, found))
    return {found.place} if isinstance(found, mb.AbstractArray) else set()


# Lists written to arrays


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x: x.__setitem__(slice(None), [1, 2, 3, 4]), [1, 2, 3, 4]),
        (lambda x: x.__setitem__(..., (1, 2, 3, 4)), [1, 2, 3, 4]),
        (lambda x: x.__setitem__(slice(1, 3), [7, 8]), [0, 7, 8, 30]),
        (lambda x: x.__setitem__([0, 1], [5, 6]), [5, 6, 20, 30]),
        (lambda x: x.__setitem__(x > 10, [5, 6]), [0, 10, 5, 6]),
        (lambda x: x.__setitem__(x > 10, [5]), [0, 10, 5, 5]),
        (lambda x: x[::2].__setitem__(..., [1, 2]), [1, 10, 2, 30]),
        (lambda x: mb.copyto(x, [1, 2, 3, 4]), [1, 2, 3, 4]),
        (lambda x: mb.put(x, [3], [9]), [0, 10, 20, 9]),
        (lambda x: np.add.at(x, [0, 0], [1, 2]), [3, 10, 20, 30]),
    ],
)
def test_lists_are_written(family, write, expected):
    x = family([0.0, 10.0, 20.0, 30.0])
    write(x)
    assert x.place == family([0.0]).place and values(x).tolist() == expected


def test_lists_of_arrays_are_written_where_they_are():
    x = mb.RefArray([0.0, 0.0])
    x[:] = [mb.RefArray(1.0), mb.RefArray(2.0)]
    assert values(x).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("family", FAMILIES)
def test_lists_that_do_not_fit_are_refused(family):
    x = family([1, 2, 3])
    with pytest.raises(ValueError, match="could not broadcast"):
        x[:] = [1, 2]
    with pytest.raises(ValueError, match="same length"):
        x[:] = [[1], [1, 2]]


def test_numpy_arrays_stay_refused_on_devices():
    x = mb.RefArray([1.0, 2.0])
    for index in (slice(None), [0, 1], np.array([True, True])):
        with pytest.raises(mb.PlaceError, match=r"Data never moves unasked"):
            x[index] = np.ones(2)
    x[:] = np.array(7.0)  # (one number joins by value)
    assert values(x).tolist() == [7.0, 7.0]


@pytest.mark.parametrize("family", FAMILIES)
def test_spacings_given_as_lists(family):
    y, x = [1.0, 2.0, 4.0, 7.0, 3.0], [0, 1, 3, 4, 9]
    found = mb.gradient(family(y), x)
    assert found.place == family(y).place
    np.testing.assert_allclose(values(found), np.gradient(y, x))
    steps = ([0, 2], [1.0, 4.0])
    for ours, theirs in zip(mb.gradient(family(M), *steps), np.gradient(M, *steps), strict=True):
        np.testing.assert_allclose(values(ours), theirs)


# Namespaces and the default

MADE = {
    "Identity": lambda xp: xp.Identity(2),
    "Range": lambda xp: xp.Range(3),
    "Fill": lambda xp: xp.Fill(2, 1.0),
    "Zeros": lambda xp: xp.Zeros((2, 2)),
    "Diagonal": lambda xp: xp.Diagonal([1.0, 2]),
    "Diagonal of NumPy's": lambda xp: xp.Diagonal(np.ones(2)),
    "Tridiagonal": lambda xp: xp.Tridiagonal([1.0], [2.0, 2.0], np.ones(1)),
    "Toeplitz": lambda xp: xp.Toeplitz([1.0, 2]),
    "Circulant": lambda xp: xp.Circulant([1.0, 2]),
    "Symmetric": lambda xp: xp.Symmetric(M),
    "Inverse": lambda xp: xp.Inverse(M),
    "Adjoint": lambda xp: xp.types.Adjoint(M),
    "LowRank": lambda xp: xp.LowRank([[1.0], [2.0]], [[3.0, 4.0]]),
    "LowRank of NumPy's": lambda xp: xp.LowRank(np.ones((2, 1)), np.ones((1, 2)), np.ones(1)),
    "CSR": lambda xp: xp.CSR(M),
    "CSR of NumPy's": lambda xp: xp.CSR(np.eye(2)),
    "CSR of triples": lambda xp: xp.CSR(([1.0], ([0], [1])), shape=(2, 2)),
    "Kronecker": lambda xp: xp.Kronecker(M, M),
    "kronecker": lambda xp: xp.kronecker(M, M),
    "kronecker_sum": lambda xp: xp.kronecker_sum(M, M),
    "block_diagonal": lambda xp: xp.block_diagonal(M, M),
    "diag": lambda xp: xp.diag([1, 2]),
    "diagflat": lambda xp: xp.diagflat([1, 2]),
    "vander": lambda xp: xp.vander([1, 2]),
    "tril": lambda xp: xp.tril(M),
    "triu": lambda xp: xp.triu(M, k=1),
    "copy": lambda xp: xp.copy([1, 2]),
    "ascontiguousarray": lambda xp: xp.ascontiguousarray([1, 2]),
    "broadcast_to": lambda xp: xp.broadcast_to(1.0, (2,)),
    "block": lambda xp: xp.block([[1, 2], [3, 4]]),
    "meshgrid": lambda xp: xp.meshgrid([1, 2], [3]),
    "unravel_index": lambda xp: xp.unravel_index([3, 1], (2, 2)),
    "concat": lambda xp: xp.concat([[1], [2]]),
    "stack": lambda xp: xp.stack([1, 2]),
    "hstack": lambda xp: xp.hstack(([1], [2])),
    "zeros_like": lambda xp: xp.zeros_like([1.0, 2.0]),
    "sum": lambda xp: xp.sum([1, 2]),
    "matmul": lambda xp: xp.linalg.matmul(M, M),
    "solve": lambda xp: xp.linalg.solve(M, [1.0, 2.0]),
    "svd": lambda xp: xp.linalg.svd(M),
    "fft": lambda xp: xp.fft.fft([1.0, 2.0]),
    "percentile": lambda xp: xp.percentile([1.0, 2.0], [50]),
}
COMPUTED = {
    "sin": lambda: mb.sin(1.0),
    "sin of a list": lambda: mb.sin([1.0]),
    "add": lambda: mb.add(1, np.float64(2.0)),
    "add of lists": lambda: mb.add([1], [2.0]),
    "where": lambda: mb.where(True, 1, 2),
    "divmod": lambda: mb.divmod(7, 2),
    "pow": lambda: mb.pow(2.0, 3),
}


def same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    else:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:mb.(Inverse|Adjoint) is mb.types:DeprecationWarning")
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_lists_is_where_the_namespace_or_the_default_says(name):
    make = MADE[name]
    host = make(mb)
    assert places(host) == {mb.HostArray([0.0]).place}
    with mb.default_array(mb.RefArray):
        inside = make(mb)
        assert places(make(mb.namespace(mb.HostArray))) == places(host)
    for made in (make(XP), inside):
        assert places(made) == {DEVICE}, name
        same(made, host)
    assert places(make(mb)) == places(host)


@pytest.mark.parametrize("name", COMPUTED)
def test_numbers_computed_with_are_where_the_default_says(name):
    host = COMPUTED[name]()
    with mb.default_array(mb.RefArray):
        made = COMPUTED[name]()
    assert places(made) == {DEVICE} and places(host) == {mb.HostArray([0.0]).place}
    same(made, host)


def test_what_is_given_arrays_stays_where_they_are():
    h, n = mb.HostArray(M), np.array(M)
    host = {h.place}
    for f in (
        lambda xp: xp.tril(h), lambda xp: xp.tril(n), lambda xp: xp.concat([h, [[1.0, 2.0]]]),
        lambda xp: xp.concat([[[1.0, 2.0]], n]), lambda xp: xp.diag(v=h), lambda xp: xp.Diagonal(h[0]),
        lambda xp: xp.Kronecker(h, M), lambda xp: xp.CSR(h), lambda xp: xp.linalg.solve(h, [1.0, 2.0]),
        lambda xp: xp.take(h, [0, 1], axis=0), lambda xp: xp.percentile(n, [50]), lambda xp: xp.copy(h),
        lambda xp: xp.meshgrid([1.0], h[0]), lambda xp: xp.sin(h), lambda xp: xp.sum(n),
        lambda xp: xp.LowRank(h, M, [1.0, 2]),
    ):  # fmt: skip
        assert places(f(XP)) == host
    with mb.default_array(mb.RefArray):
        assert mb.sin(n).place == h.place == (h + 1).place
    r = mb.RefArray(M)
    xp = mb.namespace(mb.HostArray)
    assert places([xp.tril(r), xp.concat([[[1.0, 2.0]], r]), xp.Diagonal(r[0]), xp.CSR(r)]) == {DEVICE}


def test_the_functions_of_a_namespace_are_what_they_show():
    for name in ("tril", "copy", "meshgrid", "concat", "sum", "kronecker", "CSR", "Fill", "arange"):
        ours, theirs = getattr(XP, name), getattr(mb, name)
        assert inspect.signature(ours) == inspect.signature(theirs), name
        assert (ours.__name__, ours.__doc__) == (theirs.__name__, theirs.__doc__)
    assert XP.sin is mb.sin and XP.RefArray is mb.RefArray and XP.PlaceError is mb.PlaceError
    assert XP.tril.core is mb.tril.core and mb.methods(XP.tril)
    assert XP.sum.method and XP is mb.RefArray([1.0]).__array_namespace__()
    with pytest.raises(TypeError):
        XP.tril()


def test_the_array_types_of_a_namespace_stand_for_the_types():
    D = XP.Diagonal([1.0, 2.0])
    assert type(D) is mb.Diagonal[mb.RefArray[np.float64, 1]]
    assert isinstance(D, XP.Diagonal) and isinstance(D, mb.Diagonal) and not isinstance(D, XP.CSR)
    assert isinstance(mb.Diagonal([1.0]), XP.Diagonal) and isinstance(XP.Diagonal, type)
    assert issubclass(mb.Identity, XP.Diagonal) and issubclass(XP.Diagonal, XP.Diagonal)
    assert not issubclass(mb.CSR, XP.Diagonal) and repr(XP.Diagonal) == repr(mb.Diagonal)
    assert XP.Diagonal[mb.HostArray] is mb.Diagonal[mb.HostArray]
    assert XP.Diagonal[mb.HostArray]([1.0]).place == mb.HostArray([1.0]).place

    class Named(XP.Diagonal):
        pass

    assert issubclass(Named, mb.Diagonal) and issubclass(Named, XP.Diagonal)
    same(pickle.loads(pickle.dumps(D)), D)
    match D:
        case XP.CSR():
            pytest.fail("a diagonal matrix is no CSR")
        case XP.Diagonal():
            pass


def test_the_default_is_as_it_was_after_an_error():
    with pytest.raises(ValueError):
        XP.tril([1.0])
    with pytest.raises(ValueError):
        XP.Toeplitz(M)
    assert places([mb.zeros(2), mb.tril(M), mb.Toeplitz([1.0])]) == {mb.HostArray([0.0]).place}


# Other libraries


@pytest.mark.parametrize("family", FAMILIES)
def test_autoray_fetches(family):
    autoray = pytest.importorskip("autoray")
    for found in (autoray.to_numpy(family(M)), autoray.do("to_numpy", family(M) + 0)):
        assert type(found) is np.ndarray and found.tolist() == M


R, H = mb.RefArray, mb.HostArray
TWO_PLACES = {
    "take_along_axis": lambda x, i: mb.take_along_axis(x, i, 0), "take": lambda x, i: mb.take(x, i),
    "put_along_axis": lambda x, i: mb.put_along_axis(x, i, 1.0, 0), "index": lambda x, i: x[i],
    "write": lambda x, i: x.__setitem__(i, 1.0), "isin": lambda x, i: mb.isin(x, i),
    "compress": lambda x, i: mb.compress(i > 1, x), "where": lambda x, i: mb.where(i > 1, x, x),
    "select": lambda x, i: mb.select([i > 1], [x]), "choose": lambda x, i: mb.choose(i % 2, [x, x]),
    "searchsorted": lambda x, i: mb.searchsorted(x, i), "digitize": lambda x, i: mb.digitize(x, i),
    "interp": lambda x, i: mb.interp(x, i, i), "convolve": lambda x, i: mb.convolve(x, i),
    "bincount": lambda x, i: mb.bincount(x.astype("i8"), weights=i), "lexsort": lambda x, i: mb.lexsort((x, i)),
    "histogram": lambda x, i: mb.histogram(x, weights=i), "average": lambda x, i: mb.average(x, weights=i),
    "cov": lambda x, i: mb.cov(x, i), "union1d": lambda x, i: mb.union1d(x, i),
    "vdot": lambda x, i: mb.vdot(x, i),
    "outer": lambda x, i: mb.outer(x, i), "add.at": lambda x, i: mb.add.at(x, i, 1.0),
    "einsum": lambda x, i: mb.einsum("i,i->", x, i), "add.reduceat": lambda x, i: mb.add.reduceat(x, i),
    "putmask": lambda x, i: mb.putmask(x, i > 1, 1.0),
    "copyto": lambda x, i: mb.copyto(x, 1.0, where=i > 1), "clip": lambda x, i: mb.clip(x, i, 9),
    "solve": lambda x, i: mb.linalg.solve(mb.diag(x + 1), i), "CSR": lambda x, i: mb.CSR(mb.diag(x)) @ i,
    "out": lambda x, i: mb.add(x, 1, out=i),
}  # fmt: skip


@pytest.mark.parametrize("name", TWO_PLACES)
@pytest.mark.parametrize("turned", [False, True], ids=["card and host", "host and card"])
def test_arrays_of_two_places_are_refused_by_the_function_that_gets_them(name, turned):
    first, second = (H, R) if turned else (R, H)
    with pytest.raises(mb.PlaceError, match=r"mb\.adapt"):
        TWO_PLACES[name](first(np.arange(4.0)), second(np.arange(4)))
