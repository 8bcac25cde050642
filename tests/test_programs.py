"""The paper's programs mean on every type of array what they mean in NumPy, written by hand."""

import ast
import csv
import doctest
import importlib
import json
import pathlib
import sys

import numpy as np
import pytest
from compare import assert_closed, assert_same, contents
from kinds import LEAVES, PLAIN, wrapped

import mirabelle as mb
from mirabelle import programs
from mirabelle.programs import (
    Kronecker,
    domeigen,
    domeigen_with_buffers,
    linear_regression,
    mean_squared_error,
    norm_by_factors,
    proximal_gradient_descent,
    proximal_gradient_descent_in_place,
    train,
)
from mirabelle.programs.kronecker_norm import norm_by_entries
from mirabelle.programs.power_iteration import domeigen_recorded
from mirabelle.programs.proximal_gradient import descend_recorded

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks import paper_julia
from benchmarks.paper_julia import figures

KINDS = [
    *LEAVES.values(),
    *[
        wrapped(LEAVES[leaf], layer)
        for leaf in ("host", "ref", "cuda")
        for layer in ("transpose", "window", "steps")
    ],
]
POWER = [domeigen, domeigen_with_buffers]


@pytest.fixture(autouse=True)
def _no_elements():
    """Loops over elements are refused everywhere, as on a card."""
    with mb.allow_scalar(False):
        yield


def data(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def symmetric(n, seed=0):
    """A matrix whose largest eigenvalue is 3, and the next 1.5."""
    q, _ = np.linalg.qr(data(n, n, seed=seed))
    return (q * np.array([3.0, *np.linspace(-1.0, 1.5, n - 1)])) @ q.T


MODULES = ["", ".power_iteration", ".kronecker_norm", ".proximal_gradient"]


@pytest.mark.parametrize("name", MODULES)
def test_their_examples_run(name):
    module = importlib.import_module(f"mirabelle.programs{name}")
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


@pytest.mark.parametrize("name", MODULES[1:])
def test_they_name_no_array_type_and_nothing_private(name):
    tree = ast.parse(pathlib.Path(importlib.import_module(f"mirabelle.programs{name}").__file__).read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mb"
    }
    types = {
        n for n in used if isinstance(getattr(mb, n), type) and issubclass(getattr(mb, n), mb.types.DenseArray)
    }
    assert used <= set(mb.__all__) and not types
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    assert imported == {"mirabelle"}


# Power iteration


def domeigen_in_numpy(A, p, start):
    b = start
    for _ in range(p):
        b = A @ b
        b = b / np.sqrt(np.sum(b * b))
    return b, (A @ b) @ b / (b @ b)


def start(n, dtype=np.float64):
    return mb.to_numpy(mb.random.default_rng(0, device=mb.HostArray).random(n, dtype=dtype))


@pytest.mark.parametrize("program", POWER)
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_the_dominant_eigenvalue_is_numpys(kind, program):
    A = symmetric(6)
    b, λ = program(kind.make(A), 30)
    vector, value = domeigen_in_numpy(A, 30, start(6))
    assert_same(b, vector, rtol=1e-12)
    assert_same(λ, value, rtol=1e-12)
    assert abs(value - 3.0) < 1e-6
    assert_closed(b, kind)
    assert_closed(λ, kind)


@pytest.mark.parametrize("program", POWER)
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_single_precision_stays(kind, program):
    A = symmetric(5).astype(np.float32)
    b, λ = program(kind.make(A), 40)
    assert b.dtype == λ.dtype == np.float32
    assert_same(λ, np.float32(3.0), rtol=1e-5)


@pytest.mark.parametrize("program", POWER)
@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
def test_a_structured_matrix_is_used_as_it_is(array, program):
    main, side = np.array([5.0, 3.0, 2.0, 1.0]), np.full(3, 0.5)
    T = mb.Tridiagonal(array(side), array(main), array(side))
    dense = np.diag(main) + np.diag(side, 1) + np.diag(side, -1)
    with mb.settings.changed(dense_fallback="error"):
        b, λ = program(T, 60)
    assert type(b) is array[np.float64, 1]
    assert_same(λ, np.max(np.linalg.eigvalsh(dense)), rtol=1e-9)
    K = Kronecker(array(np.diag([2.0, 1.0])), array(np.diag([3.0, 1.0])))
    assert_same(program(K, 40)[1], 6.0, rtol=1e-9)


@pytest.mark.parametrize("program", POWER)
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_an_iteration_writes_two_vectors_and_two_numbers(kind, program):
    n = 8
    A = kind.make(symmetric(n))

    def counted(p):
        with mb.count() as c:
            b, _ = program(A, p)
            mb.materialize(b)
        return c

    few, many = counted(3), counted(13)
    assert many.scalar_reads == 0
    assert many.transfers == few.transfers  # nothing moves in the loop
    # A product, a sum of squares in one pass, its root, a division.
    assert many.launches + many.library_calls - few.launches - few.library_calls <= 4 * 10
    assert many.bytes_written - few.bytes_written <= (2 * n + 2) * 8 * 10


def test_more_iterations_are_closer_and_a_seed_is_another_start():
    A = mb.HostArray(symmetric(7))
    errors = [abs(float(mb.to_numpy(domeigen(A, p)[1])) - 3.0) for p in (2, 8, 24)]
    assert errors[0] > errors[1] > errors[2]
    first, again, other = (contents(domeigen(A, 3, seed=s)[0]) for s in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_no_iteration_gives_the_start():
    b, _ = domeigen(mb.RefArray(symmetric(4)), 0)
    assert_same(b, start(4))


def test_what_does_not_fit_says_so():
    with pytest.raises(ValueError, match="do not fit"):
        domeigen(mb.HostArray(data(3, 4)), 2)
    with pytest.raises(TypeError, match="float64"):
        domeigen(mb.HostArray([[1, 2], [3, 4]]), 2)


# The norm of a Kronecker product


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_entries_are_those_of_numpys_kron(kind):
    a, b = data(2, 3), data(3, 2, seed=1)
    K = Kronecker(kind.make(a), kind.make(b))
    assert K.shape == (6, 6) and K.place == kind.place
    assert_same(mb.dense(K), np.kron(a, b))
    assert_closed(mb.dense(K), kind)


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_what_is_not_declared_is_inherited(kind):
    a, b, v = data(2, 3), data(3, 2, seed=1), data(6, seed=2)
    K, expected = Kronecker(kind.make(a), kind.make(b)), np.kron(a, b)
    assert_same(K + 1, expected + 1)
    assert_same(mb.exp(K.T), np.exp(expected.T))
    assert_same(K @ kind.make(v), expected @ v, rtol=1e-12)
    assert_same(mb.sum(K, axis=0), expected.sum(axis=0), rtol=1e-12, atol=1e-14)
    assert_same(K[1:4, ::2], expected[1:4, ::2])
    assert_same(mb.max(mb.abs(K)), np.max(np.abs(expected)))


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_the_norm_is_that_of_the_factors(kind, p):
    a, b = data(2, 3), data(3, 2, seed=1)
    K = Kronecker(kind.make(a), kind.make(b))
    found = mb.norm(K, p)
    assert_same(found, np.linalg.norm(np.kron(a, b).ravel(), p), rtol=1e-12)
    assert_closed(found, kind)


def test_factors_of_one_type_and_products_of_products():
    a, b = data(2, 2), data(3, 2, seed=1)
    K = Kronecker(mb.HostArray(a).T, mb.Diagonal(mb.HostArray(b[:, 0])))
    expected = np.kron(a.T, np.diag(b[:, 0]))
    assert type(K).__name__ == "Kronecker[Transpose[HostArray[float64, 2]], Diagonal[HostArray[float64, 1]]]"
    assert_same(mb.norm(K), np.linalg.norm(expected), rtol=1e-12)
    twice = Kronecker(K, mb.HostArray(b))
    assert_same(mb.norm(twice), np.linalg.norm(np.kron(expected, b)), rtol=1e-12)


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_the_norm_reads_the_factors_alone(kind):
    n = 20
    K = Kronecker(kind.make(data(n, n)), kind.make(data(n, n, seed=1)))
    with mb.settings.changed(dense_fallback="error"), mb.count() as c:
        mb.materialize(mb.norm(K))
    assert c.scalar_reads == 0
    assert c.bytes_read + c.bytes_written < 3 * 8 * n * n
    assert c.launches <= 3


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_entries_are_computed_where_they_are_read(kind, many):
    n = 6
    K = Kronecker(kind.make(data(n, n)), kind.make(data(n, n, seed=1)))
    with mb.count() as c:
        found = mb.materialize(norm_by_entries(K))
    assert_same(found, contents(norm_by_factors(K)), rtol=1e-12)
    assert c.bytes_written < 8 * n**4 / 2  # the product itself is never written


def test_a_method_for_good_and_one_for_a_block():
    K = Kronecker(mb.HostArray(data(2, 3)), mb.HostArray(data(3, 2)))
    assert mb.which(mb.norm, K).implementation is norm_by_factors
    factors, entries = contents(mb.norm(K)), contents(norm_by_entries(K))
    with mb.override(mb.norm, (Kronecker,), lambda K, p=2: mb.norm.previous(K, p) * 0):
        assert contents(mb.norm(K)) == 0
    with mb.override(mb.norm, (Kronecker,), norm_by_entries):
        assert_same(mb.norm(K), entries)
    assert_same(mb.norm(K), factors)


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_a_rule_for_somebody_elses_type(kind):
    class Outer(mb.types.Structured):
        """Declared without a norm."""

        @classmethod
        def _shape_of(cls, u, v):
            return len(u), len(v)

        def _entries(self, i, j):
            return self.parts[0][i] * self.parts[1][j]

    u, v = data(4), data(3, seed=1)
    x = Outer(kind.make(u), kind.make(v))
    with (
        mb.settings.changed(dense_fallback="error"),
        mb.override(mb.norm, (Outer,), norm_by_factors),
    ):
        assert_same(mb.norm(x), np.linalg.norm(np.outer(u, v)), rtol=1e-12)
    with pytest.warns(mb.DenseFallbackWarning, match="norm"):
        assert_same(mb.norm(x), np.linalg.norm(np.outer(u, v)), rtol=1e-12)


def test_factors_of_two_places_are_refused():
    with pytest.raises(mb.PlaceError):
        Kronecker(mb.HostArray(data(2, 2)), mb.RefArray(data(2, 2)))


# Proximal gradient descent


def regression(parameters=4, outputs=9):
    """Weights, bias, inputs, outputs."""
    w, x = data(1, parameters), data(parameters, outputs, seed=1)
    return w, 0.25, x, data(1, outputs, seed=2)


def gradient_in_numpy(w, b, x, y):
    """The derivatives of the mean squared error of a linear regression, by hand."""
    r = w @ x + b - y
    return 2 / y.shape[1] * r @ x.T, 2 / y.shape[1] * np.sum(r)


def step_in_numpy(w, b, x, y, lr=0.1):
    w = w - lr * gradient_in_numpy(w, b, x, y)[0]
    return w, b - lr * gradient_in_numpy(w, b, x, y)[1]


def made(kind, values):
    return [kind.make(v) if isinstance(v, np.ndarray) else v for v in values]


needs_autodiff = pytest.mark.skipif(not hasattr(mb, "autodiff"), reason="mb.autodiff")


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_model_and_loss_are_those_of_numpy(kind):
    w, b, x, y = regression()
    mine = made(kind, (w, b, x, y))
    found = mean_squared_error(linear_regression(*mine[:3]), mine[3])
    assert_same(found, np.sum((w @ x + b - y) ** 2) / 9, rtol=1e-12)
    assert_closed(found, kind)


@needs_autodiff
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_derivatives_are_those_found_by_hand(kind):
    w, b, x, y = regression()
    mine = made(kind, (w, b, x, y))
    dw = programs.loss_dw(linear_regression, mean_squared_error, *mine)
    db = programs.loss_db(linear_regression, mean_squared_error, *mine)
    by_w, by_b = gradient_in_numpy(w, b, x, y)
    assert_same(dw, by_w, rtol=1e-12, atol=1e-14)
    assert_same(db, by_b, rtol=1e-12)
    assert_closed(dw, kind)


@needs_autodiff
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_steps_are_those_found_by_hand(kind):
    w, b, x, y = regression()
    mine = made(kind, (w, b, x, y))
    v, c = mine[:2]
    with mb.count() as counters:
        for _ in range(5):
            v, c = proximal_gradient_descent(linear_regression, mean_squared_error, v, c, *mine[2:])
            w, b = step_in_numpy(w, b, x, y)
        mb.materialize(v)
    assert counters.scalar_reads == 0
    assert_same(v, w, rtol=1e-11)
    assert_same(c, b, rtol=1e-11)
    assert_closed(v, kind)


@needs_autodiff
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_steps_in_place_write_to_what_they_were_given(kind):
    w, b, x, y = regression()
    mine = made(kind, (w, np.array(b), x, y))
    v, c = mine[:2]
    for _ in range(5):
        got = proximal_gradient_descent_in_place(linear_regression, mean_squared_error, *mine)
        w, b = step_in_numpy(w, b, x, y)
    assert got[0] is v and got[1] is c
    assert_same(v, w, rtol=1e-11)
    assert_same(c, np.array(b), rtol=1e-11)


@needs_autodiff
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_training_ends_below_the_limit(kind):
    x = data(3, 12)
    y = np.array([[1.0, -2.0, 0.5]]) @ x + 0.75
    with mb.count() as counters:
        w, b, steps = train(
            linear_regression, mean_squared_error, kind.make(np.zeros((1, 3))), 0.0, kind.make(x), kind.make(y)
        )
    loss = mean_squared_error(linear_regression(w, b, kind.make(x)), kind.make(y))
    assert contents(loss) < 0.01 and 3 < steps < 200
    assert counters.scalar_reads <= steps + 1  # whether to go on
    np.testing.assert_allclose(contents(w), [[1.0, -2.0, 0.5]], atol=0.3)


@needs_autodiff
def test_training_that_does_not_end_says_why():
    x, y = mb.HostArray(data(2, 4)), mb.HostArray(data(1, 4, seed=1))
    with pytest.raises(RuntimeError, match=r"learning rate.*lr=0\.01"):
        train(linear_regression, mean_squared_error, mb.zeros((1, 2)), 0.0, x, y, below=-1.0, limit=3)


@needs_autodiff
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_how_many_derivatives_at_once_is_a_method(kind):
    w, b, x, y = regression(parameters=7)
    mine = made(kind, (w, b, x, y))
    asked = []

    def three(x):
        asked.append(type(x))
        return 3

    with mb.override(mb.autodiff.chunk_size, (kind.family,), three):
        dw = programs.loss_dw(linear_regression, mean_squared_error, *mine)
    assert asked and all(issubclass(t, kind.family) for t in asked)
    assert_same(dw, gradient_in_numpy(w, b, x, y)[0], rtol=1e-12, atol=1e-14)


@needs_autodiff
def test_another_model_and_another_loss():
    def model(w, b, x):
        return mb.tanh(w @ x) * b

    def loss(ŷ, y):
        return mb.max(mb.abs(ŷ - y))

    w, b, x, y = regression()
    mine = made(LEAVES["ref"], (w, b, x, y))
    dw = contents(programs.loss_dw(model, loss, *mine))
    db = contents(programs.loss_db(model, loss, *mine))

    def value(w, b):
        return np.max(np.abs(np.tanh(w @ x) * b - y))

    e = 1e-6
    by_w = [(value(w + e * d, b) - value(w - e * d, b)) / (2 * e) for d in np.eye(4)[:, None]]
    np.testing.assert_allclose(dw, [by_w], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(db, (value(w, b + e) - value(w, b - e)) / (2 * e), rtol=1e-6)


# The paper's figures


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda f: f.name)
def test_what_is_measured_is_what_numpy_computes(figure, array):
    if figure in (figures.DESCENT, figures.GRADIENT) and not hasattr(mb, "autodiff"):
        pytest.skip("mb.autodiff")
    case = figures.Case(figure, 2**figure.first, tiny=True)
    data = case.data()
    expected = figures.by_hand(case, data, np, "NumPy")
    first = next(iter(expected.values()))()
    found = figures.ours(case, data, array)
    assert "mirabelle" in found
    for call in [*expected.values(), *found.values()]:
        np.testing.assert_allclose(contents(call()), first, rtol=1e-8)


def test_the_figures_are_stored_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    paper_julia.run(only="kronecker", tiny=True, out=str(tmp_path))
    stored = json.loads((tmp_path / "paper_julia.json").read_text())
    assert {c["n"] for c in stored["cases"]} == {4, 8}
    assert stored["summary"]["kronecker"]["statements"]["extra_us_per_operation"] > 0
    with (tmp_path / "paper_julia.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["series"] for r in rows} >= {"NumPy", "mirabelle", "mirabelle, dense"}
    assert all(float(r["median_s"]) > 0 for r in rows)
    for name in ("paper_julia.png", "paper_julia_figure2.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "paper_julia_figure1.png").exists()


def test_recorded_steps_are_the_steps():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 40))
    y = rng.normal(size=(1, 5)) @ x + 0.3
    w, b, x, y = [mb.CuArray(v) for v in (np.zeros((1, 5)), 0.0, x, y)]
    run = descend_recorded(linear_regression, mean_squared_error, mb.copy(w), mb.copy(b), x, y)
    for n in (0, 1, 5):
        found = run(w, b, n)
        v, c = w, b
        for _ in range(n):
            v, c = proximal_gradient_descent(linear_regression, mean_squared_error, v, c, x, y)
        np.testing.assert_allclose(contents(found[0]), contents(v), rtol=1e-12)
        np.testing.assert_allclose(contents(found[1]), contents(c), rtol=1e-12)
    A = mb.CuArray(symmetric(12))
    iterate = domeigen_recorded(A)
    for n in (1, 7):
        assert_same(iterate(n)[1], contents(domeigen(A, n)[1]), rtol=1e-12)
