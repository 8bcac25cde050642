"""Other libraries' ways of asking for an array, by their protocols where a library is large to install."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import mirabelle as mb

X = [3.0, 1.0, 2.0]


def test_pyarrow_makes_columns_of_arrays() -> None:
    asked: dict[str, Any] = {}
    module = types.ModuleType("pyarrow")
    module.array = lambda values, type=None: asked.update(values=values, type=type) or "column"  # type: ignore
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", module)
        assert mb.HostArray(X).__arrow_array__(type="double") == "column"
        assert type(asked["values"]) is np.ndarray and asked["type"] == "double"
        with pytest.raises(mb.PlaceError, match=r"mb\.to_numpy\(x\)"):
            mb.RefArray(X).__arrow_array__()


def test_jax_takes_a_copy_because_its_arrays_never_change() -> None:
    numpys = types.ModuleType("jax.numpy")
    numpys.asarray = lambda values: values  # type: ignore[attr-defined]
    jax = types.ModuleType("jax")
    jax.numpy = numpys  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "jax", jax)
        patch.setitem(sys.modules, "jax.numpy", numpys)
        x = mb.HostArray(X)
        theirs = x.__jax_array__()
        x[0] = 9.0
        assert theirs.tolist() == X


@pytest.mark.parametrize("values", [X, [1, 2], [True, False], [1j], [[1.0, 2.0]], [], 2.5], ids=str)
def test_ufuncs_of_pythons_functions_give_numbers(values: Any) -> None:
    function = np.frompyfunc(lambda a, b: a + b, 2, 1)
    x = mb.HostArray(np.array(values))
    made, expected = function(x, x), function(np.array(values), np.array(values))
    assert isinstance(made, mb.HostArray)
    assert np.array_equal(np.asarray(made), np.asarray(expected, np.asarray(made).dtype))
    assert made.shape == np.shape(expected)


def test_ufuncs_of_pythons_functions_with_two_results_and_on_a_device() -> None:
    both = np.frompyfunc(lambda a: (a + 1, a > 1), 1, 2)
    more, large = both(mb.HostArray(X))
    assert more.tolist() == [4.0, 2.0, 3.0] and large.dtype == bool
    with pytest.raises(TypeError, match=r"mb\.adapt\(mb\.HostArray, x\)"):
        both(mb.RefArray(X))


def test_derivatives_by_numpys_arrays_are_numpys() -> None:
    def f(x: Any) -> Any:
        return mb.sum((x - 1.0) ** 4)

    x = np.array(X)
    expected = 4 * (x - 1) ** 3
    slope = mb.autodiff.gradient(f, x)
    assert type(slope) is np.ndarray and np.allclose(slope, expected) and x.tolist() == X
    value, slope = mb.autodiff.value_and_gradient(f, x)
    assert type(value) is float and type(slope) is np.ndarray and np.allclose(slope, expected)
    assert type(mb.autodiff.jacobian(lambda v: v * v, x)) is np.ndarray
    assert np.allclose(mb.autodiff.hessian(f, x), np.diag(12 * (x - 1) ** 2))
    assert type(mb.autodiff.gradient(f, x.astype("f4"))) is np.ndarray
    with pytest.raises(TypeError):
        mb.autodiff.gradient(f, np.array([1, 2]))


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "BFGS", "trust-constr"])
@pytest.mark.filterwarnings("ignore")
def test_optimisers_of_scipy_take_our_gradients(method: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def f(x: Any) -> Any:
        return mb.sum((x - 1.0) ** 2) + x[0] ** 2

    start = np.array(X)
    found = optimize.minimize(lambda v: mb.autodiff.value_and_gradient(f, v), start, jac=True, method=method)
    assert np.allclose(found.x, [0.5, 1.0, 1.0], atol=1e-4)
    found = optimize.minimize(
        lambda v: float(f(mb.HostArray(v))), start, jac=lambda v: mb.autodiff.gradient(f, v)
    )
    assert np.allclose(found.x, [0.5, 1.0, 1.0], atol=1e-4)


def test_a_function_of_numbas_that_writes_is_refused_with_the_cure() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def first(a: Any) -> None:
        a[0] = 5.0

    x = mb.HostArray(X)
    with pytest.raises(numba.core.errors.TypingError, match=r"Compile the function with `@mb\.jit`"):
        first(x)
    assert x.tolist() == X


IN_PLACE = {
    "iadd": ("+=", np.add), "isub": ("-=", np.subtract), "imul": ("*=", np.multiply),
    "itruediv": ("/=", np.divide), "ifloordiv": ("//=", np.floor_divide), "imod": ("%=", np.remainder),
    "ipow": ("**=", np.power),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_function_of_numbas_that_changes_an_array_in_place_is_refused_with_the_cure(name: str) -> None:
    numba = pytest.importorskip("numba")
    there: dict[str, Any] = {}
    sign, ufunc = IN_PLACE[name]
    exec(f"def f(a):\n    a {sign} 2.0\n    return a", there)
    f = numba.njit(there["f"])
    x = mb.HostArray(X)
    with pytest.raises(TypeError, match=r"mb\.jit.*np\.array\(x\)"):
        f(x)
    assert x.tolist() == X
    assert f(np.array(X)).tolist() == ufunc(X, 2.0).tolist()


def test_what_numba_lets_write_unasked_is_refused_with_the_cure() -> None:
    numba = pytest.importorskip("numba")

    def flat(a: Any) -> None:
        a.flat[1] = 5.0

    def filled(a: Any) -> None:
        np.fill_diagonal(a.reshape(1, -1), 5.0)

    def product(a: Any) -> None:
        np.dot(a.reshape(1, -1), a.reshape(-1, 1), a[:1].reshape(1, 1))

    def reads(a: Any) -> Any:
        b = np.zeros((2, 2))
        np.fill_diagonal(b, a.flat[1])
        b.flat[1] = np.dot(a, a)
        return b

    x = mb.HostArray(X)
    for writes in (flat, filled, product):
        with pytest.raises(TypeError, match=r"mb\.jit.*np\.array\(x\)"):
            numba.njit(writes)(x)
        numba.njit(writes)(np.array(X))
    assert x.tolist() == X and numba.njit(reads)(x).tolist() == reads(np.array(X)).tolist()


class Theirs:
    """An array of a library that leaves NumPy's functions to NumPy, as JAX's and pandas' do in part."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


CALLS = {
    "add": lambda x, t: np.add(x, t),
    "add, theirs first": lambda x, t: np.add(t, x),
    "maximum into": lambda x, t: np.maximum(x, t, out=np.empty_like(x)),
    "outer": lambda x, t: np.multiply.outer(x, t),
    "where": lambda x, t: np.where(x > 1.5, t, x),
    "where, their mask": lambda x, t: np.where(Theirs(np.asarray(t) > 1), x, 0.0),
    "clip": lambda x, t: np.clip(x, t, 5),
    "concatenate": lambda x, t: np.concatenate([t, x]),
    "dot": lambda x, t: np.dot(x, t),
    "interp": lambda x, t: np.interp(t, t, x),
    "insert": lambda x, t: np.insert(x, 1, t),
    "full_like": lambda x, t: np.full_like(x, t),
}


def _written(x: Any, t: Any, how: str) -> Any:
    if how == "copyto":
        np.copyto(x, t)
    elif how == "place":
        np.place(x, x > 1.5, t)
    elif how == "put":
        np.put(x, [0, 2], t)
    elif how == "[...]":
        x[...] = t
    else:
        x[1:] = Theirs(t.values[1:])
    return x


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_numpys_functions_take_other_libraries_arrays(array: Any, name: str) -> None:
    if array is mb.RefArray and name == "interp":
        pytest.skip("a function of the host's")
    theirs = Theirs([1.0, 2.0, 3.0])
    found = CALLS[name](array(X), theirs)  # (a device gets them as it gets lists)
    assert isinstance(found, array)
    np.testing.assert_array_equal(mb.to_numpy(found), CALLS[name](np.array(X), theirs))


@pytest.mark.parametrize("how", ["copyto", "place", "put", "[...]", "[1:]"])
def test_other_libraries_arrays_are_written_into_ours(how: str) -> None:
    theirs = Theirs([1.0, 2.0, 3.0])
    expected = _written(np.array(X), theirs, how)
    assert np.asarray(_written(mb.HostArray(X), theirs, how)).tolist() == expected.tolist()


def test_tables_of_pandas_are_operands_of_numpys_functions() -> None:
    pandas = pytest.importorskip("pandas")
    s, x = pandas.Series(X), mb.HostArray([5.0, 6.0, 7.0])
    assert np.asarray(np.where(s > 1.5, s, x)).tolist() == [3.0, 6.0, 2.0]
    assert np.asarray(np.where(x > 5.5, s, x)).tolist() == [5.0, 1.0, 2.0]


class Measured:
    """What has `__array__` alone: NumPy's operators make an array of it."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([1.0, 3.0, 2.0], dtype)


class Prioritised(Measured):
    """An array of another library, whose operators go before."""

    __array_priority__ = 100

    def __eq__(self, other: object) -> Any:
        return "theirs"

    __hash__ = None  # type: ignore[assignment]

    def __radd__(self, other: object) -> str:
        return "theirs"


def add_in_place(a: Any) -> Any:
    a += Measured()
    return a


MIXED = {
    "equal": lambda a: a == Measured(), "equal, turned": lambda a: Measured() == a,
    "not equal": lambda a: a != Measured(), "less": lambda a: a < Measured(),
    "less, turned": lambda a: Measured() < a,
    "add": lambda a: a + Measured(), "radd": lambda a: Measured() + a, "power": lambda a: a ** Measured(),
    "matmul": lambda a: a @ Measured(), "rmatmul": lambda a: Measured() @ a,
    "divmod": lambda a: divmod(a, Measured())[1],
    "in place": add_in_place, "function": lambda a: np.add(a, Measured()),
}  # fmt: skip


@pytest.mark.parametrize("kind", [mb.HostArray, mb.RefArray], ids=lambda k: k.__name__)
@pytest.mark.parametrize("name", MIXED)
def test_operators_make_arrays_of_what_says_it_is_one(name: str, kind: Any) -> None:
    made, expected = MIXED[name](kind(X)), MIXED[name](np.array(X))
    assert isinstance(made, kind) and made.dtype == expected.dtype
    assert np.array_equal(mb.to_numpy(made), expected)


def test_operators_leave_to_other_libraries_what_is_theirs() -> None:
    x = mb.HostArray(X)
    assert (x == Prioritised()) == "theirs" and x + Prioritised() == "theirs"
    with pytest.raises(TypeError):
        x - Prioritised()
    assert (x == object()) is False and (x == "name") is False


def test_powers_of_truth_values_have_the_dtypes_of_numpys_function_and_operator() -> None:
    b = np.array([True, False])
    x = mb.HostArray(b)
    for n in (0, 1, 2, 3, True, np.int8(2), 2.0):
        for power in (np.power, lambda x, n: x**n):
            assert power(x, n).dtype == power(b, n).dtype, (n, power)
        assert mb.power(x, n).dtype == np.power(b, n).dtype, n
