"""Loops and branches in compiled programs mean what they mean in Python, on every type of array."""

import dataclasses
import functools

import numpy as np
import pytest

import mirabelle as mb

# One program, or an error that says why not.
whole = functools.partial(mb.compile, whole=True)

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
TraceError = mb.compiling.TraceError


@pytest.fixture(params=FAMILIES, ids=lambda f: f.__name__)
def family(request):
    return request.param


def values(result):
    """The arrays and numbers of a result, as NumPy's."""
    if isinstance(result, (tuple, list)):
        return [v for x in result for v in values(x)]
    if isinstance(result, dict):
        return [v for x in result.values() for v in values(x)]
    if dataclasses.is_dataclass(result) and not isinstance(result, mb.AbstractArray):
        return [v for f in dataclasses.fields(result) for v in values(getattr(result, f.name))]
    return [mb.to_numpy(result) if isinstance(result, mb.AbstractArray) else np.asarray(result)]


def check(family, f, *args):
    """A compiled function returns and writes what it does uncompiled: also when it runs again."""
    compiled = mb.compile(f)
    for _ in range(2):
        plain, given = [family(x) for x in args], [family(x) for x in args]
        wanted, got = f(*plain), compiled(*given)
        for a, b in zip(values(wanted), values(got), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)
        for a, b in zip(values(plain), values(given), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)
    assert len(compiled.programs) == 1
    return got


X = np.array([3.0, 10.0, 0.5])
A = np.array([[2.0, 1.0], [1.0, 3.0]])


def test_while_loop(family):
    check(family, lambda x: mb.while_loop(lambda x: mb.max(x) > 1, lambda x: x / 2, x), X)


def test_while_loop_that_makes_no_trip(family):
    check(family, lambda x: mb.while_loop(lambda x: mb.max(x) < 0, lambda x: x / 2, x), X)


def test_numbers_in_a_state_become_arrays(family):
    def collatz(n):
        def step(s):
            return mb.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1

        return mb.while_loop(lambda s: s[0] != 1, step, (n, 0))[1] + 0 * n

    check(family, collatz, np.array(27))


def test_numbers_take_the_dtype_of_what_they_become(family):
    def f(x):
        return mb.while_loop(lambda s: s[1] < 3.0, lambda s: (s[0] * 2, s[1] + mb.sum(x)), (x, 0.0))

    check(family, f, np.array([0.5, 0.25], np.float32))


def test_numbers_that_stay_are_constants():
    def f(x):
        return mb.fori_loop(0, 3, lambda i, s: (s[0] * s[1], s[1]), (x, 2))

    assert mb.compile(f)(mb.HostArray(X))[1] == 2


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fori_loop_with_bounds_that_are_arrays(family, n):
    def f(x, n):
        return mb.fori_loop(0, n, lambda i, s: s * x + i, mb.zeros_like(x)) + mb.fori_loop(
            -n, n, lambda i, s: s + i, x
        )

    check(family, f, X, np.array(n))


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (2, 5), (3, 1), (-2, 2), (0, 1)])
def test_fori_loop_with_numbers_of_trips(family, lower, upper):
    check(family, lambda x: mb.fori_loop(lower, upper, lambda i, s: s + i * x, x), X)


def test_the_index_picks_and_places(family):
    def f(x, n):
        found = mb.zeros((4,)) if family is mb.HostArray else mb.zeros_like(x)

        def body(i, s):
            found[i] = mb.sum(s) * x[i]
            return s * 1.5

        return mb.fori_loop(0, n, body, x), found + 1

    check(family, f, np.arange(1.0, 5), np.array(3))


def power_iteration(A, b):
    def body(s):
        v, new, _ = s
        w = A @ v
        return w / mb.sqrt(mb.sum(w * w)), mb.sum(v * w), new

    return mb.while_loop(lambda s: abs(s[1] - s[2]) > 1e-13, body, (b, 1.0, 0.0))


def test_power_iteration(family):
    _, value, _ = check(family, power_iteration, A, np.ones(2))
    np.testing.assert_allclose(mb.to_numpy(value), np.linalg.eigvalsh(A)[-1], rtol=1e-7)


def newton(c):
    return mb.while_loop(lambda s: mb.max(abs(s * s - c)) > 1e-10, lambda s: 0.5 * (s + c / s), c)


def test_newton(family):
    np.testing.assert_allclose(values(check(family, newton, X))[0], np.sqrt(X))


def test_libraries_are_called_in_loops(family):
    check(family, lambda A, b: mb.fori_loop(0, 4, lambda i, s: mb.linalg.solve(A, s), b), A, np.ones(2))


# Writes


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_a_body_may_write_to_its_state(family, n):
    def f(u, n):
        def body(i, u):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
            return u

        return mb.fori_loop(0, n, body, u) * 2

    check(family, f, np.arange(6.0) ** 2, np.array(n))


def exchanged(u, v, n):
    def body(i, s):
        a, b = s
        b[1:-1] = a[1:-1] + 0.1 * (a[2:] - 2 * a[1:-1] + a[:-2])
        return b, a

    a, b = mb.fori_loop(0, n, body, (u, v))
    return a * 1, b * 1


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_two_arrays_take_turns(family, n):
    u = np.arange(6.0) ** 2
    check(family, exchanged, u, u + 1, np.array(n))
    check(family, lambda u, v: exchanged(u, v, n), u, u + 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7])
def test_three_arrays_take_turns(family, n):
    def f(a, b, c, n):
        def body(i, s):
            a, b, c = s
            c[...] = a * 0.5 + b
            return c, a, b

        x, y, z = mb.fori_loop(0, n, body, (a, b, c))
        return x + 0, y + 0, z + 0

    check(family, f, X, X + 1, X + 2, np.array(n))
    check(family, lambda a, b, c: f(a, b, c, n), X, X + 1, X + 2)


def test_arrays_take_turns_until_it_is_enough(family):
    def f(a, b):
        def body(s):
            a, b, k = s
            b[...] = a * 0.5
            return b, a, k + 1

        a, b, _ = mb.while_loop(lambda s: mb.max(s[0]) > 0.3, body, (a, b, 0))
        return a + 0, b + 0

    for scale in (0.0, 1.0, 2.0, 4.0):
        check(family, f, X * scale, X)


def test_swapping_takes_no_work():
    program = mb.compile(lambda x, y: mb.fori_loop(0, 5, lambda i, s: (s[1], s[0]), (x, y))).program(
        mb.HostArray(X), mb.HostArray(X)
    )
    (step,) = [s for s in program.plan.steps if s.name == "for loop"]
    loop = step.call.template[0][0]
    assert loop.passed == {0: 1, 1: 0} and loop.trips == 5 and len(loop.inputs) == 2
    check(mb.HostArray, lambda x, y: mb.fori_loop(0, 5, lambda i, s: (s[1], s[0]), (x, y)), X, X + 1)


def test_arrays_from_around_are_written_to(family):
    def f(x, total, n):
        def body(i, s):
            total[1:] += s[1:]
            total[...] = total * 2
            return s * 1.5

        r = mb.fori_loop(0, n, body, x)
        return r, total + 1

    check(family, f, X, X * 0, np.array(4))


def test_an_array_from_around_may_be_what_the_loop_starts_with(family):
    def f(x):
        # The body reads the first value of x in each trip.
        return mb.fori_loop(0, 3, lambda i, s: s * 0.5 + x, x)

    def g(x):
        def body(i, s):
            s *= 2
            return s + 0 * x if False else s

        r = mb.fori_loop(0, 3, body, x)
        return r + x

    check(family, f, X)
    check(family, g, X)


def test_what_is_written_and_dropped_is_refused():
    def f(x):
        def body(i, s):
            s[:1] = 0
            return s * 2

        return mb.fori_loop(0, 3, body, x)

    with pytest.raises(TraceError, match=r"writes to its state, and returns another array.*mb.copy\(x\)"):
        whole(f)(mb.HostArray(X))


def test_a_condition_only_looks():
    def condition(s):
        s[:1] = 0
        return mb.sum(s) > 1

    with pytest.raises(TraceError, match="A condition only looks"):
        mb.compile(lambda x: mb.while_loop(condition, lambda s: s / 2, x))(mb.HostArray(X))


def test_a_constant_array_is_not_written_to():
    constant = mb.HostArray(X)

    def body(i, s):
        s += 1
        return s

    with pytest.raises(TraceError, match="none of its arguments"):
        whole(lambda x: mb.fori_loop(0, 3, body, constant) + x)(mb.HostArray(X))
    assert mb.to_numpy(constant)[0] == 3.0
    check(mb.HostArray, lambda x: mb.fori_loop(0, 3, lambda i, s: s + x, constant), X)


# States


@dataclasses.dataclass
class Oscillator:
    x: object
    v: object
    name: str = "spring"


def test_states_are_nests_of_any_kind(family):
    def f(x):
        start = {"o": Oscillator(x, mb.zeros_like(x)), "k": [0, None], "both": (x, x)}

        def body(s):
            o = s["o"]
            v = o.v - 0.1 * o.x
            moved = Oscillator(o.x + 0.1 * v, v, o.name)
            return {"o": moved, "k": [s["k"][0] + 1, None], "both": (s["both"][1], s["both"][0] + 1)}

        s = mb.while_loop(lambda s: s["k"][0] < 7, body, start)
        assert s["o"].name == "spring" and s["k"][1] is None
        return s["o"].x, s["o"].v, s["both"]

    check(family, f, X)


def test_wrappers_in_a_state(family):
    check(family, lambda A: mb.fori_loop(0, 3, lambda i, s: s.T * 2 + 1, A[:, ::-1].T), A)
    check(family, lambda A: mb.fori_loop(0, 3, lambda i, s: (s * 2).T, A) * 1, A)

    def f(u):
        def body(i, s):
            s += 1
            return s

        return mb.fori_loop(0, 3, body, u[1:]) * 1, u * 1

    check(family, f, X)


def test_structured_arrays_in_a_state():
    def f(x):
        def body(i, D):
            return D @ D

        D = mb.fori_loop(0, 2, body, mb.Diagonal(x))
        return D @ x

    check(mb.HostArray, f, X)


def test_changed_states_are_named():
    x = mb.HostArray(X)

    def message(body, state=None):
        with pytest.raises(TraceError) as e:
            whole(lambda x: mb.fori_loop(0, 3, body, state or {"u": (x, x)}))(x)
        return str(e.value)

    said = message(lambda i, s: {"u": (s["u"][0], s["u"][1].astype(mb.float32))})
    assert "test_controlflow.py" in said
    assert "the element ['u'][1] of its state from float64[3] to float32[3]" in said
    assert "`x.astype(mb.float64)`" in said
    said = message(lambda i, s: {"u": (s["u"][0][1:], s["u"][1])})
    assert "the element ['u'][0] of its state from float64[3] to float64[2]" in said
    said = message(lambda i, s: {"u": (s["u"][0],)})
    assert "the element ['u'] of its state from a tuple of 2 to a tuple of 1" in said
    said = message(lambda i, s: {"u": None})
    assert "the element ['u'] of its state from a tuple of 2 to None" in said
    said = message(lambda i, s: {"u": (None, s["u"][1])})
    assert "['u'][0] of its state from float64[3] to None" in said
    said = message(lambda i, s: s + x, 0.5)
    assert "its state from 0.5 to float64[3]" in said and "zeros_like" in said


def test_conditions_that_are_no_truth_values():
    x = mb.HostArray(X)
    with pytest.raises(TraceError, match=r"shape \(3,\).*mb.all"):
        whole(lambda x: mb.while_loop(lambda s: s > 1, lambda s: s / 2, x))(x)
    with pytest.raises(TraceError, match="would never end"):
        whole(lambda x: mb.while_loop(lambda s: True, lambda s: s / 2, x))(x)
    with pytest.raises(TraceError, match=r"shape \(3,\).*mb.where"):
        whole(lambda x: mb.cond(x > 1, mb.sqrt, mb.exp, x))(x)


def test_bounds_that_are_no_integers():
    x = mb.HostArray(X)
    for compiled in (False, True):
        for bound in (1.5, "a", x, mb.asarray(1.5)):

            def f(x, bound=bound):
                return mb.fori_loop(0, bound, lambda i, s: s, x)

            with pytest.raises(TypeError, match="upper bound of a loop is an integer"):
                (mb.compile(f) if compiled else f)(x)


# Loops in loops, and branches


def test_nested_loops(family):
    def f(x, n):
        total = mb.zeros_like(x)

        def outer(i, s):
            def inner(j, t):
                total[...] = total + t * j
                return t + x * i

            return mb.fori_loop(0, i + 1, inner, s)

        return mb.fori_loop(0, n, outer, x), total

    check(family, f, X, np.array(4))


def test_inner_loops_write_to_the_state_of_the_outer(family):
    def f(x):
        def outer(i, s):
            def inner(j, t):
                s[1:] += t[1:] * j
                return t * 0.5

            mb.fori_loop(0, 3, inner, x)
            return s

        return mb.fori_loop(0, 4, outer, x * 1)

    check(family, f, X)


def test_cond(family):
    f = lambda x: mb.cond(mb.sum(x) > 0, mb.sqrt, mb.negative, abs(x)) + x
    check(family, f, X)
    check(family, f, -X)


def test_both_branches_may_write(family):
    def f(x, y):
        def yes():
            x[:1] = 5.0
            return x, 1.0

        def no():
            y[1:] = 2.0
            return y * 2, 2

        r = mb.cond(mb.sum(x) > 5, yes, no)
        return r[0] * 1, r[1] * x, x + y

    check(family, f, X, X + 1)
    check(family, f, X * 0, X + 1)


def test_branches_choose_arrays(family):
    def f(x, y):
        z = mb.cond(mb.sum(x) > mb.sum(y), lambda a, b: a, lambda a, b: b, x, y)
        w = mb.cond(mb.sum(x) > mb.sum(y), lambda: x.T[::-1], lambda: y)
        return z * 2, w * 3

    check(family, f, X, X + 1)
    check(family, f, X + 2, X + 1)


def test_only_one_branch_is_run():
    calls = []

    @mb.jit
    def unused(x):
        return 0.0

    def f(x, A):
        return mb.cond(mb.sum(x) > 0, lambda: mb.linalg.solve(A, x), lambda: x * 2)

    singular = mb.HostArray(np.zeros((3, 3)))
    g = mb.compile(f)
    np.testing.assert_allclose(mb.to_numpy(g(mb.HostArray(-X), singular)), -2 * X)
    with pytest.raises(np.linalg.LinAlgError):
        mb.materialize(g(mb.HostArray(X), singular))
    assert not calls


def test_branches_that_differ_are_named():
    x = mb.HostArray(X)
    with pytest.raises(
        TraceError, match=r"different results: float64\[3\] of the one, float64\[2\] of the other"
    ):
        mb.compile(lambda x: mb.cond(mb.sum(x) > 0, lambda: x, lambda: x[1:]))(x)
    with pytest.raises(TraceError, match=r"element \[1\] is float64\[3\] of the one, int64\[3\] of the other"):
        mb.compile(lambda x: mb.cond(mb.sum(x) > 0, lambda: (x, x * 2), lambda: (x, x.astype(mb.int64))))(x)
    with pytest.raises(TraceError, match="a tuple of 2 of the one"):
        mb.compile(lambda x: mb.cond(mb.sum(x) > 0, lambda: (x, x), lambda: x))(x)


def test_branches_of_constants_are_plain():
    seen = []

    def f(x):
        return mb.cond(x.ndim == 1, lambda: seen.append(1) or x, lambda: seen.append(2) or x)

    mb.compile(f)(mb.HostArray(X))
    assert seen == [1]


def test_loops_in_branches_in_loops(family):
    def f(x, n):
        def body(i, s):
            return mb.cond(
                i % 2 == 0,
                lambda s: s + x,
                lambda s: s * mb.fori_loop(0, i, lambda j, t: t + 1.0, 0.0),
                s,
            )

        return mb.fori_loop(0, n, body, x)

    check(family, f, X, np.array(6))


# What does not change is computed once


def test_what_does_not_change_is_computed_before_the_loop():
    def f(x, y):
        return mb.fori_loop(0, 5, lambda i, s: s + mb.exp(y) * mb.sum(y), x)

    program = mb.compile(f).program(mb.HostArray(X), mb.HostArray(X))
    (step,) = [s for s in program.plan.steps if s.name == "for loop"]
    loop = step.call.template[0][0]
    assert not [x for x in mb_nodes(loop.outputs) if x.label in ("exp", "sum")]
    check(mb.HostArray, f, X, X)


def mb_nodes(outputs):
    from mirabelle.arraytypes.programs.graph import ordered

    return ordered(outputs)


def test_what_may_fail_waits_for_the_first_trip():
    f = mb.compile(lambda A, b, n: mb.fori_loop(0, n, lambda i, s: s + mb.linalg.solve(A, b), b))
    singular, b = mb.HostArray(np.zeros((2, 2))), mb.HostArray(np.ones(2))
    assert mb.to_numpy(f(singular, b, mb.asarray(0))).tolist() == [1, 1]
    with pytest.raises(np.linalg.LinAlgError):
        f(singular, b, mb.asarray(1))


def test_errors_in_a_body_leave_arrays_as_they_were():
    def f(x):
        total = x * 1

        def body(i, s):
            total[...] = 0
            raise KeyError("mine")

        try:
            mb.fori_loop(0, 3, body, x)
        except KeyError:
            pass
        return total

    assert mb.to_numpy(mb.compile(f)(mb.HostArray(X))).tolist() == X.tolist()


# Derivatives


def test_gradients_in_programs(family):
    def loss(x):
        return mb.sum(mb.fori_loop(0, 3, lambda i, s: s * mb.sin(x) + i, x))

    check(family, lambda x: mb.autodiff.gradient(loss, x), X)
    check(family, lambda c: mb.autodiff.gradient(lambda c: mb.sum(newton(c)), c), X)


def test_states_get_derivatives(family):
    def loss(x):
        return mb.sum(mb.fori_loop(0, 3, lambda i, s: s + x * x, mb.zeros_like(x)))

    check(family, lambda x: mb.autodiff.gradient(loss, x), X)
    check(
        family,
        lambda x: mb.autodiff.gradient(lambda x: mb.fori_loop(0, 3, lambda i, s: s + mb.sum(x * x), 0.0), x),
        X,
    )


def test_branches_have_derivatives(family):
    def loss(x):
        return mb.sum(mb.cond(mb.sum(x) > 0, lambda: x * x, lambda: mb.ones_like(x)))

    check(family, lambda x: mb.autodiff.gradient(loss, x), X)
    check(family, lambda x: mb.autodiff.gradient(loss, x), -X)


# What cannot be captured, and what can


REFUSED = {
    "if mb.sum(x) > 0: pass": "mb.cond",
    "while mb.sum(x) > 0: pass": "mb.while_loop",
    "int(x[0])": "mb.fori_loop",
    "float(x[0])": "mb.where",
    "complex(x[0])": "mb.where",
    "bool(x[0])": "mb.cond",
    "not x[0]": "mb.cond",
    "round(x[0])": "mb.where",
    "math.sqrt(x[0])": "mb.where",
    "range(n)": "mb.fori_loop",
    "[1, 2, 3][n]": "mb.where",
    "mb.zeros((n,))": "static=",
    "np.asarray(x)": "NumPy asks",
    "np.array(x)": "NumPy asks",
    "mb.to_numpy(x)": "mb.where",
    "x[0].item()": "mb.where",
    "x.item(0)": "mb.where",
    "x.tolist()": "mb.where",
    "x.tobytes()": "mb.where",
    "1.0 in x": "mb.cond",
    "max(x)": "mb.cond",
    "sorted(x)": "mb.cond",
    "mb.allclose(x, x)": "mb.cond",
    "mb.array_equal(x, x)": "mb.cond",
    "len(x[x > 0])": r"mb.where\(mask, x, 0\)",
    "mb.nonzero(x)": "mb.where",
    "mb.unique(x)": "mb.where",
    "pickle.dumps(x)": "mb.where",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_questions_about_values_are_refused(statement):
    import math
    import pickle

    names = {"mb": mb, "np": np, "math": math, "pickle": pickle}

    def f(x, n):
        exec(statement, names, {"x": x, "n": n})
        return x

    with pytest.raises(TraceError, match=REFUSED[statement]) as e:
        mb.compile(f)(mb.HostArray(X), mb.asarray(2))
    assert "<string>:1" in str(e.value)


def test_the_line_that_asks_is_named():
    def f(x):
        y = x + 1
        if mb.sum(y) > 0:
            return y
        return x

    with pytest.raises(TraceError, match=r"test_controlflow.py:\d+, `if mb.sum\(y\) > 0:`"):
        whole(f)(mb.HostArray(X))


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        mb.compile(lambda x: {x: 1})(mb.HostArray(X))


def test_loops_over_rows_and_sizes_are_plain():
    def f(x):
        total = mb.zeros_like(x[0])
        for row in x:
            total += row
        for i in range(len(x)):
            total += x[i] * x.shape[0]
        if x.ndim == 2 and x.dtype == mb.float64 and x is not None:
            total *= 2
        return total

    check(mb.HostArray, f, A)


def test_traced_arrays_can_be_printed(capsys):
    texts = []

    def f(x):
        y = x + 1
        print(x, y)
        texts.extend([repr(y), str(y), f"{y}", f"{y[0]:.2f}", repr(y[1:]), repr(y.T), str(mb.Diagonal(y))])
        texts.extend([y._repr_html_(), y[1:]._repr_html_(), mb.Diagonal(y)._repr_html_(), mb.ext.show(y)])
        mb.autodiff.gradient(lambda x: (texts.append(repr(x)), mb.sum(x))[1], x)
        assert repr(mb.ones(2)).endswith("([1., 1.], place=traced(host))")
        return y

    whole(f)(mb.HostArray(X))
    assert all("traced" in t for t in texts)
    assert "<traced float64[3], made in test_controlflow.py:" in texts[0]
    assert "y = x + 1" in texts[0]
    assert capsys.readouterr().out.startswith("<traced float64[3]")


# Functions that loop over elements


@mb.jit
def smoothed_in_place(x, weight):
    for i in range(1, x.shape[0]):
        x[i] += weight * x[i - 1]


@mb.jit
def extremes(x):
    low, high = x[0], x[0]
    for v in x:
        low, high = min(low, v), max(high, v)
    return low, high


@mb.jit
def total_of(pair, n):
    a, b = pair
    s = 0.0
    for i in range(min(n, a.shape[0])):
        s += a[i] * b[i]
    return s


@mb.jit
def doubled(x):
    return x * 2


@mb.kernel
def saxpy(k, y, a, x):
    i = k.index(0)
    y[i] = a * x[i] + y[i]


def test_jitted_functions_are_calls():
    constant = mb.HostArray(X)

    def f(x, n):
        y = x * 2
        before = y + 0
        smoothed_in_place(y, 0.5)
        smoothed_in_place(y[1:], mb.sum(x))
        smoothed_in_place(x, 0.25)
        low, high = extremes(y)
        return y, before, low + high, total_of((y, constant), n), total_of((x[::-1], y), 2)

    check(mb.HostArray, f, X, np.array(2))


def test_jitted_functions_in_loops():
    def f(x, n):
        def body(i, s):
            smoothed_in_place(s, 0.5)
            return s / extremes(s)[1]

        def other(i, s):
            smoothed_in_place(x, 0.5)
            return s + x

        return mb.fori_loop(0, n, lambda i, s: body(i, s * 1), x), mb.fori_loop(0, n, other, x * 1)

    check(mb.HostArray, f, X, np.array(3))


def test_jitted_functions_that_programs_cannot_call():
    x = mb.HostArray(X)
    with pytest.raises(TraceError, match=r"doubled\(\) in test_controlflow.py:.*doubled\(out, ...\)"):
        whole(lambda x: doubled(x))(x)
    with pytest.raises(TraceError, match="none of its arguments"):
        whole(lambda y: smoothed_in_place(x, mb.sum(y)))(x)
    with pytest.raises(mb.PlaceError, match="on the host"):
        whole(lambda x: total_of((x, x), 2))(mb.RefArray(X))
    with pytest.raises(TraceError, match="another part"):
        whole(shifted_call)(x)


@mb.jit
def shifted(x, y):
    for i in range(x.shape[0]):
        x[i] += y[i]


def shifted_call(x):
    shifted(x[1:], x[:-1])
    return x


def test_kernels_in_loops(family):
    def f(x, n):
        y = mb.zeros_like(x)

        def body(i, s):
            saxpy[x.shape](y, 2.0, s)
            saxpy[x.shape](s, 0.5, x)
            return s

        return mb.fori_loop(0, n, body, x * 1), y

    check(family, f, X, np.array(3))


# Outlined functions


def test_outlined_functions_are_captured_once(family):
    seen = []

    @mb.ext.outline
    def stage(state, dt):
        seen.append(1)
        u, v = state
        v -= dt * u
        return {"u": u + dt * v, "v": v, "n": 3}

    def f(u, v):
        for k in range(6):
            found = stage((u, v), 0.1 if k < 5 else 0.2)
            u = found["u"]
        return u, v, found["n"]

    check(family, f, X, X + 1)
    seen.clear()
    mb.compile(f)(family(X), family(X))
    assert len(seen) == 2  # for each number once


def test_outlined_functions_that_look_around(family):
    def f(x, n):
        scale = mb.zeros_like(x)
        count = mb.zeros_like(x) + x

        @mb.ext.outline
        def scaled(y):
            return y + scale

        @mb.ext.outline
        def counted(y):
            count[:1] += 1
            return y * count

        a = scaled(x)
        scale[...] = 2.0
        b = scaled(x)
        scale[1:] = x[1:]
        c = scaled(x) + scaled(b)
        d = counted(x) + counted(x)
        e = mb.fori_loop(0, n, lambda i, s: scaled(counted(s * 0.1)), x)
        return a, b, c, d, e, count

    check(family, f, X, np.array(3))


def test_outlined_functions_of_wrappers_and_constants(family):
    constant = family(X)

    @mb.ext.outline
    def f(x, y, k=1):
        x[:1] = 0
        return x.T, x, y * k, None

    def g(x):
        a, b, c, _ = f(x[::-1], x)
        d, *_ = f(c, constant, k=3)
        e, *_ = f(x, x)
        return a * 1, b * 1, c, d, e * 1, f(x * 1, d)[2]

    check(family, g, X)


def test_derivatives_of_outlined_functions(family):
    @mb.ext.outline
    def f(x):
        return mb.sum(x * mb.sin(x))

    check(family, lambda x: mb.autodiff.gradient(f, x) + f(x) + f(x), X)


# Compiled functions of dual numbers


def test_gradients_of_compiled_functions(family):
    calls = []

    @mb.compile
    def loss(x, y):
        calls.append(1)
        return mb.sum(newton(x) * y + mb.sin(x))

    for scale in (1.0, 2.0, 0.5):
        x, y = family(X * scale), family(X + 1)
        got = mb.autodiff.gradient(lambda x: loss(x, y), x)
        wanted = mb.autodiff.gradient(lambda x: loss.function(x, y), x)
        np.testing.assert_allclose(mb.to_numpy(got), mb.to_numpy(wanted), rtol=1e-12)
        both = mb.autodiff.gradient(lambda xy: loss(*xy), (x, y))
        for a, b in zip(both, mb.autodiff.gradient(lambda xy: loss.function(*xy), (x, y)), strict=True):
            np.testing.assert_allclose(mb.to_numpy(a), mb.to_numpy(b), rtol=1e-12)
    assert len(loss.of_duals.programs) == 2 and not loss.programs


def test_other_derivatives_of_compiled_functions():
    x, dx = mb.HostArray(X), mb.HostArray(X[::-1].copy())

    def f(x):
        return {"a": (x * mb.exp(-x), 3), "b": mb.cumsum(x) / mb.sum(x)}

    def flat(f):
        return lambda x: f(x)["b"] * f(x)["a"][0]

    g = mb.compile(f)
    assert g(x)["a"][1] == 3
    for derivative in (
        lambda f: mb.autodiff.jacobian(flat(f), x),
        lambda f: mb.autodiff.jvp(flat(f), (x,), (dx,)),
        lambda f: mb.autodiff.hessian(lambda x: mb.sum(flat(f)(x)), x),
        lambda f: mb.autodiff.gradient(lambda x: mb.sum(flat(f)(x)), x, chunk=2),
        lambda f: mb.autodiff.derivative(lambda t: mb.sum(flat(f)(x * t)), 2.0),
        lambda f: [flat(f)(mb.types.Dual(x, mb.stack([dx, x]))).partials],
    ):
        for a, b in zip(values(derivative(g)), values(derivative(f)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_compiled_functions_do_not_write_to_dual_numbers():
    @mb.compile
    def f(x):
        x[:1] = 0
        return mb.sum(x)

    with pytest.raises(TraceError, match=r"writes to an argument that is an array of dual.*mb.copy\(x\)"):
        mb.autodiff.gradient(lambda x: f(x * 1), mb.HostArray(X))


def test_random_numbers_in_bodies():
    def f(x):
        rng = mb.random.default_rng(0)
        noise = rng.random((3, 3))
        return mb.fori_loop(0, 3, lambda i, s: s + noise[i] + mb.random.default_rng(1).random(3), x)

    check(mb.HostArray, f, X)

    def g(x):
        rng = mb.random.default_rng(0)
        return mb.fori_loop(0, 3, lambda i, s: s + rng.random(3), x)

    with pytest.raises(TraceError, match=r"each trip would get the same.*noise\[i\]"):
        whole(g)(mb.HostArray(X))


def test_arrays_that_leave_a_body():
    def f(x):
        kept = []

        def body(i, s):
            kept.append(s * 2)
            return s + 1

        mb.fori_loop(0, 3, body, x)
        return kept[0]

    with pytest.raises(
        TraceError, match=r"body of the loop in test_controlflow.py:\d+.*return it in the state"
    ):
        whole(f)(mb.HostArray(X))


def test_loops_over_distributed_arrays():
    check(mb.DArray[mb.HostArray], lambda x: mb.while_loop(lambda s: mb.sum(s) < 99, lambda s: s * 2 + x, x), X)


def test_descent_in_a_loop(family):
    def f(x):
        gradient = lambda s: mb.autodiff.gradient(lambda y: mb.sum((y - 3) ** 2), s)
        return mb.fori_loop(0, 50, lambda i, s: s - 0.1 * gradient(s), x)

    check(family, f, X)


def test_derivatives_that_a_body_writes_to_from_outside_are_refused():
    p = mb.HostArray([0.2, 0.7])

    def f(p):
        u = p * 2

        def once(i, total):
            u[:1] += p[:1]
            return total + mb.sum(u * u)

        return mb.fori_loop(0, 5, once, 0.0)

    def carried(p):
        def once(i, state):
            u, total = state
            u = mb.copy(u)
            u[:1] += p[:1]
            return u, total + mb.sum(u * u)

        return mb.fori_loop(0, 5, once, (p * 2, 0.0))[1]

    assert np.allclose(mb.to_numpy(mb.autodiff.gradient(f, p)), [54, 28])
    with pytest.raises(mb.compiling.TraceError, match="part of the state"):
        mb.autodiff.gradient(mb.compile(f), p)
    assert np.allclose(mb.to_numpy(mb.autodiff.gradient(mb.compile(carried), p)), [54, 28])
