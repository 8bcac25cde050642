"""`mb.compile` of functions that cannot be one program: cut where Python needs a value, loops over elements
compiled, NumPy's names as arrays of the arguments' place."""

import ast
import copy
import functools
import gc
import importlib.util
import math
import pickle
import random as plain_random
import weakref

import numpy as np
import pytest
import randompython
import randomshapes

import mirabelle as mb
from mirabelle.arraytypes.programs import rewritten as reading
from mirabelle.arraytypes.programs.elementcalls import ElementLoop
from mirabelle.arraytypes.programs.rewritten import rewritten
from mirabelle.arraytypes.usercode.elementloops import Bounds, is_element_loop, may_overflow, same_arithmetic
from mirabelle.arraytypes.usercode.rewriting import Liveness, Source, surely_bound

H = mb.HostArray
PLACES = [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray]]


def listed(x):
    return x if isinstance(x, tuple) else () if x is None else (x,)


def agree(f, *args, make=H, turns=3, rtol=1e-12, flatten=listed):
    """The compiled function gives what the function gives with NumPy, and writes the same; it is returned."""
    compiled = mb.compile(f)
    for _ in range(turns):
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
        mine = [make(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
        wanted, got = f(*given), compiled(*mine)
        wanted, got = flatten(wanted), flatten(got)
        for a, b in zip([*got, *mine], [*wanted, *given], strict=True):
            if isinstance(b, np.ndarray):
                assert isinstance(a, mb.AbstractArray)
            if not isinstance(b, (np.ndarray, np.generic, int, float)):
                continue
            np.testing.assert_allclose(mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a, b, rtol=rtol)
    return compiled


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_random_python_programs_are_numpys(tmp_path, first):
    assert randompython.failures(10, 40_000 + first, tmp_path) == []


@pytest.mark.parametrize("first", range(0, 12, 6))
def test_random_programs_of_other_shapes_are_numpys(tmp_path, first):
    assert randomshapes.failures(6, 60_000 + first, tmp_path) == []


@pytest.mark.parametrize("place", [mb.RefArray, mb.CuArray])
def test_random_python_programs_elsewhere(tmp_path, place):
    assert randompython.failures(4, 41_000, tmp_path, make=place) == []


# Cuts


def until(x, tol):
    y, count, change = np.zeros(len(x)), 0, 1.0
    while change > tol:
        new = 0.5 * (x + y)
        change = np.abs(new - y).max()
        y = new
        count += 1
        if count > 50:
            break
    return y, count


@pytest.mark.parametrize("place", PLACES)
def test_a_loop_that_asks_for_values(place):
    compiled = agree(until, np.linspace(0, 1, 40), 1e-3, make=place)
    assert not compiled.programs
    text = repr(compiled.explain(place(np.linspace(0, 1, 40)), 1e-3))
    assert "`while change > tol:`: The values of an array are asked for" in text
    # (The count is another number in each turn: what reads it is no part of the piece.)
    assert "`count += 1`: `count` is another number in each call" in text
    assert "between pieces" in text and "<table>" in compiled.pieces.explain()._repr_html_()
    piece = next(p for p in compiled.pieces.pieces if p.lines[0] > until.__code__.co_firstlineno + 2)
    assert not piece.reason and len(piece.compiled.programs) == 1


def test_a_program_that_is_to_be_whole_says_why_it_is_not():
    with pytest.raises(
        mb.compiling.TraceError, match=r"The values of an array are asked for.*while change > tol"
    ):
        mb.compile(until, whole=True)(H([1.0, 2.0]), 1e-3)
    with pytest.raises(mb.compiling.TraceError):
        mb.compile(until).program(H([1.0, 2.0]), 1e-3)


LOG = []
KEPT = H(np.zeros(3))


def branches(x, y):
    if x.sum() > y.sum():
        x[0] = 1.0
        return x - y, "more"
    return x + y, "less"


def remembers(x):
    LOG.append(float(x[0]))
    return x * 2 + len(LOG) * 0


def writes_outside(x):
    KEPT[...] = KEPT + x
    return KEPT * 1


def in_a_list(x):
    parts = []
    for k in range(4):
        parts.append(x[k : k + 2] * k)
        if parts[-1].max() > 5:
            break
    return np.concatenate(parts), len(parts)


def views(x):
    if x[0] > 100:
        return x
    v = x[1:]
    w = v[::2]
    if float(w[0]) > 0:
        w[...] = -w
    v *= 2
    return v, w


def guarded(x):
    try:
        y = np.linalg.inv(x.reshape(2, 2))
    except np.linalg.LinAlgError:
        y = np.zeros((2, 2))
    with np.errstate(all="ignore"):
        z = np.log(x * 0)
    return y, z


def fibonacci(x, n):
    return x if n < 2 else fibonacci(x, n - 1) + fibonacci(x, n - 2)


def sized(x):
    small = x[x < 2]
    order = np.argsort(small)
    return small[order], np.unique(small), np.nonzero(x > 1)[0], len(small)


def reshaped(x):
    y = x * 1
    y.shape = (2, -1)
    y[0] += y[1]
    return y


def swapped(x, y):
    for _ in range(3):
        x, y = y, x
    x += 1
    return x, y


@pytest.mark.parametrize(
    "f", [branches, in_a_list, views, guarded, sized, reshaped, swapped], ids=lambda f: f.__name__
)
def test_what_no_program_holds_is_right(f):
    x, y = np.array([4.0, 1.0, 3.0, 1.5]), np.array([1.0, 2.0, 0.5, 0.25])
    arguments = (x, y) if f in (branches, swapped) else (x,)
    if f is branches:
        for given in (arguments, arguments[::-1]):
            compiled = mb.compile(f)
            a, b = [H(v.copy()) for v in given], [v.copy() for v in given]
            (got, word), (wanted, said) = compiled(*a), f(*b)
            assert word == said and got.tolist() == wanted.tolist() and a[0].tolist() == b[0].tolist()
        return
    agree(f, *arguments)


def test_functions_that_call_themselves():
    agree(fibonacci, np.array([1.0, 2.0]), 5)


def test_what_happens_at_each_call_happens_at_each_call(capsys):
    x = H([1.0, 2.0, 3.0])
    LOG.clear()
    f = mb.compile(remembers)
    assert [f(x).tolist() for _ in range(3)] == [[2, 4, 6]] * 3 and LOG == [1.0] * 3

    g = mb.compile(writes_outside)
    KEPT[...] = 0
    assert [g(x).tolist() for _ in range(3)] == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]

    @mb.compile
    def drawn(x):
        return x + np.random.random(3), plain_random.random()  # noqa: NPY002

    (a, p), (b, q) = drawn(x), drawn(x)
    assert a.tolist() != b.tolist() and p != q

    @mb.compile
    def seeded(x):
        return x + np.random.default_rng(3).random(3)

    assert (
        seeded(x).tolist()
        == seeded(x).tolist()
        == (np.arange(1, 4) + np.random.default_rng(3).random(3)).tolist()
    )
    assert len(seeded.programs) == 1


def test_errors_are_the_functions_own():
    def wrong(x):
        y = x[:3] * 1
        y[7] = 1
        return y

    def raises(x):
        if x.max() > 1:
            raise KeyError("too large")
        return x

    with pytest.raises(IndexError):
        mb.compile(wrong)(H(np.ones(5)))
    f = mb.compile(raises)
    with pytest.raises(KeyError, match="too large"):
        f(H([2.0]))
    assert f(H([0.5])).tolist() == [0.5]
    with pytest.raises(KeyError, match="too large"):
        f(H([2.0]))


# NumPy's names


def makes(x):
    a, b = np.zeros(3), np.ndarray((2, 2), dtype=np.float64)
    b[...] = np.float32(2)
    c = np.empty_like(x)
    c[:] = np.sqrt(2.0) * x
    assert isinstance(x, np.ndarray) and isinstance(np.sqrt(2.0), float) and not isinstance(3, np.ndarray)
    return a, b, c, np.arange(3) * x[:3], np.linalg.norm(x), np.minimum(x, np.pi), np.add.outer(x, x)


@pytest.mark.parametrize("place", PLACES)
def test_numpys_names_mean_arrays_where_the_arguments_are(place):
    x = np.array([4.0, 1.0, 3.0, 1.5])
    compiled = agree(makes, x, make=place)
    assert len(compiled.programs) == 1
    if place is not H:
        for a in compiled(place(x))[:4]:
            assert issubclass(type(a), place)
    # (Nothing has changed outside.)
    assert type(np.zeros(3)) is np.ndarray and type(makes(x)[0]) is np.ndarray


def half(v):
    return np.where(v > 0, np.zeros(len(v)), v) * 0.5


def test_functions_that_are_called_are_read_the_same_way():
    def f(x):
        return half(x) + half(-x)

    compiled = agree(f, np.array([1.0, -2.0]))
    assert len(compiled.programs) == 1
    assert rewritten(half) is not half and rewritten(math.sqrt) is math.sqrt and rewritten(mb.sum) is mb.sum


def test_functions_are_let_go():
    """Who lets go of a function lets go of what was made of it; what wraps it is another one."""

    def made():
        def f(x):
            for i in range(len(x)):
                x[i] = np.abs(x[i]) * 0.5
            return x if x.sum() > 0 else np.zeros(len(x))

        return f

    f = made()
    assert rewritten(f) is rewritten(f) is not f

    @functools.wraps(f)
    def g(x):
        return np.ones(2) + x

    again = copy.deepcopy(f.__dict__)
    assert pickle.loads(pickle.dumps(f.__dict__)).keys() == again.keys()
    assert rewritten(g) is not rewritten(f) and rewritten(half) is rewritten(half)
    gone = weakref.ref(f)
    del f, g, again
    gc.collect()
    assert gone() is None


# Loops over elements


def factorised(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


def filtered(x, a):
    y = np.zeros(len(x))
    state, largest = 0.0, 0
    for k in range(len(x)):
        state = a * state + helped(x[k], 1 - a)
        y[k] = state
        if abs(y[k]) > abs(y[largest]):
            largest = k
    return y, state, largest


def helped(v, w):
    return v * w


def counted(data):
    crc = 0xFFFF
    for b in data:
        byte = 0xFF & b
        for _ in range(8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            byte >>= 1
    return crc


SQUARE = np.random.default_rng(0).random((30, 30)) + 30 * np.eye(30)
LONG = np.random.default_rng(1).standard_normal(200)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("f", "arguments"),
    [(factorised, (SQUARE,)), (filtered, (LONG, 0.5)), (counted, (np.arange(100).astype("u1"),))],
    ids=["factorised", "filtered", "counted"],
)
def test_loops_over_elements_are_compiled(f, arguments, place):
    with mb.count() as c:
        compiled = agree(f, *arguments, make=place, rtol=1e-10)
    assert c.scalar_reads < 20  # (no element is read one by one)
    if place is H:
        (program,) = compiled.programs.values()
        assert "jit" in [getattr(n, "kind", "") for n in program.graph]


def loops_in(f):
    return [c.cell_contents for c in rewritten(f).__closure__ or () if isinstance(c.cell_contents, ElementLoop)]


def test_indices_that_are_not_inside_are_errors_as_numpys():
    def shifted(x, y, n):
        for i in range(n):
            y[i] = x[i + 3] * 2

    x = np.arange(40.0)
    compiled = agree(shifted, x, np.zeros(40), 37)
    (loop,) = loops_in(shifted)
    assert set(loop._compiled) == {False}
    for n in (38, 60):
        y = H(np.zeros(40))
        with pytest.raises(IndexError):
            compiled(H(x), y, n)
    assert set(loop._compiled) == {False, True}

    def looked_up(x, at):
        total = 0.0
        for i in range(len(at)):
            total += x[at[i]]
        return total

    agree(looked_up, x, np.arange(30) - 7)
    with pytest.raises(IndexError):
        mb.compile(looked_up)(H(x), H(np.full(30, 40)))


def sparse_product(rows, columns, entries, x):
    y = np.empty(rows.size - 1, entries.dtype)
    for i in range(rows.size - 1):
        at = columns[rows[i] : rows[i + 1]]
        y[i] = entries[rows[i] : rows[i + 1]] @ x[at]
    return y


def test_what_a_loop_only_reads_is_not_copied():
    n = 200_000
    rng = np.random.default_rng(4)
    given = (np.arange(0, n + 1, 4, "u4"), rng.integers(0, 50, n).astype("u4"), rng.random(n), rng.random(50))
    agree(sparse_product, *given, rtol=1e-10)
    (loop,) = loops_in(sparse_product)
    (jitted,) = loop._compiled.values()
    assert [n for n, how in jitted.effects.items() if how] == ["y"]


def returned(x):
    for k in range(20):
        y = np.zeros(3) + k
        x = x + y[0] + x[k % 3] * 0
    return x, y


def shown_twice(x):
    v = x[1:]
    for i in range(1, len(v)):
        v[i] = x[i] * 0.5 + v[i - 1]
    return v * 1


@pytest.mark.parametrize("place", PLACES)
def test_loops_that_work_on_one_memory_under_two_names(place):
    agree(shown_twice, np.arange(30.0), make=place)


@pytest.mark.parametrize("place", PLACES)
def test_loops_that_leave_arrays_behind_stand_between_programs(place):
    compiled = agree(returned, np.ones(3), make=place)
    assert issubclass(type(compiled(place(np.ones(3)))[0]), place)
    assert compiled.pieces is None or "a function made by mb.jit returns numbers" in repr(
        compiled.pieces.explain()
    )


def masked_in_two_dimensions(A, n):
    for k in range(n):
        B = A * k
        B[B > 1] = 1.0 / B[B > 1]
        A[k % 3] += B[k % 3] * 0.5
    return A


def test_what_the_compiler_of_loops_fails_at_is_left_to_python():
    agree(masked_in_two_dimensions, np.random.default_rng(0).random((3, 4)), 40)


def test_arithmetic_that_compiled_loops_do_otherwise_is_left_to_numpy():
    def wrapped(x):
        for i in range(1, len(x)):
            x[i] = x[i] + x[i - 1] * 2

    def grown(x):
        h = 1
        for i in range(len(x)):
            h = h * 31 + int(x[i])
        return h % 1000003

    with np.errstate(all="ignore"):
        agree(wrapped, np.full(40, 100, "u1"))
        agree(wrapped, np.full(40, 100, "i2"))
    agree(grown, np.arange(40))
    agree(grown, np.arange(40.0))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for i in range(n):\n    x[i] = x[i - 1]", True),
        ("for i in range(n):\n    x[i:] -= x[i - 1]", True),
        ("for v in x:\n    s += v", True),
        ("while x[i] > 0:\n    i += 1", True),
        ("for t in range(n):\n    x[1:-1] = x[2:]", False),
        ("for t in range(n):\n    s = s + 1", False),
        ("for i in range(n):\n    x[i] = unknown(x[i])", True),
        ("for i in range(n):\n    parts.append(x[i])", False),
        ("for i in range(n):\n    x[i] = [j for j in range(i)][0]", False),
        ("for i in range(n):\n    print(x[i])", False),
        ("for k in names:\n    x[k] = d['a']", False),
        ("for i in range(n):\n    try:\n        x[i] = 1\n    except ValueError:\n        pass", False),
    ],
)
def test_which_loops_are_over_elements(text, found):
    import builtins

    def meaning(name):
        from mirabelle.arraytypes.usercode.effects import NO_VALUE

        return helped if name == "unknown" else getattr(builtins, name, NO_VALUE)

    (loop,) = ast.parse(text).body
    assert is_element_loop(loop, meaning) is found


@pytest.mark.parametrize(
    ("text", "inside", "turns"),
    [
        ("for i in range(10):\n    x[i] = x[i - 10]", True, 10),
        ("for i in range(11):\n    x[i] = 0", False, 11),
        ("for i in range(10):\n    x[i] = x[i - 11]", False, 10),
        ("for i in range(n):\n    for j in range(i):\n        A[i, j] = x[i + j - n]", True, 30),
        ("for i in range(9, -1, -1):\n    x[i] = x[9 - i]", True, 10),
        ("for i in range(len(x)):\n    x[i % 10] = x[i // 2]", True, 10),
        ("for i in range(A.shape[0]):\n    x[min(i, 3)] = A[i][0]", False, 6),
        ("for i in range(5, 5):\n    x[100] = 0", True, 1),
        ("for i in range(n):\n    k = i\n    x[k] = 0", False, 6),
        ("for i in range(m):\n    x[i] = 0", False, math.inf),
        ("for i in range(n):\n    i = i + 9\n    x[i] = 0", False, 6),
        ("for i in range(n):\n    y = x[i:] + x[:i]", True, 6),
    ],
)
def test_where_indices_lie(text, inside, turns):
    (loop,) = ast.parse(text).body
    found = Bounds(loop, {"x": np.zeros(10), "A": np.zeros((6, 7)), "n": 6, "m": 2.5})
    assert found.inside is inside and (not inside or found.turns == turns)


def test_bounds_are_true_for_random_loops():
    """What is said to lie inside never raises."""
    dice = plain_random.Random(3)
    said = 0
    for _ in range(400):
        index = dice.choice(
            ["i", "i + j", "i - j", "n - i", "2 * i - j", "(i * 3) % n", "i // 2 + j", "-i", "max(i, j)"]
        )
        bounds = [
            dice.choice(["n", "i", "2, n", "n - 1, -1, -1", "1, n, 2", "i, n", "len(x) - 3"]) for _ in range(2)
        ]
        outer = bounds[0].replace("i", "0")
        text = f"for i in range({outer}):\n    for j in range({bounds[1]}):\n        x[{index}] += 1"
        values = {"x": np.zeros(dice.randint(1, 12)), "n": dice.randint(0, 7)}
        (loop,) = ast.parse(text).body
        if Bounds(loop, values).inside:
            said += 1
            exec(ast.unparse(loop), dict(values))
    assert said > 50


def quotients(x, n, a):
    for i in range(len(x)):
        x[i] = x[i] / (i - 500) + n / a + (i // 3) * 0.5 + i % n
    return x


def inverse(x, m):
    for i in range(len(x)):
        x[i] = x[i] + 1.0 / (i - m)
    return x


def test_numbers_of_pythons_are_not_divided_by_zero():
    agree(quotients, np.arange(40.0), 4, 2.5)
    assert loops_in(quotients)[0]._compiled
    for a in (0, 0.0):
        with pytest.raises(ZeroDivisionError):
            mb.compile(quotients)(H(np.arange(40.0)), 4, a)
    agree(inverse, np.arange(40.0), 50)
    with pytest.raises(ZeroDivisionError):
        mb.compile(inverse)(H(np.arange(40.0)), 7)
    with np.errstate(all="ignore"):
        agree(inverse, np.arange(40.0), np.float64(7))


def test_which_arithmetic_is_the_same():
    def one(text):
        return ast.parse(text).body[0]

    assert same_arithmetic(one("for i in range(n):\n    y = x[i] + 1"), set())
    assert not same_arithmetic(one("for i in range(n):\n    y = x[i] + 1"), {"x"})
    assert not same_arithmetic(one("for v in x:\n    w = v\n    s = s + w"), {"x"})
    assert not same_arithmetic(one("for i in range(n):\n    y = -x[i]"), {"x"})
    assert same_arithmetic(one("for i in range(n):\n    y[x[i]] = 1.0 if x[i] > 2 else 0.0"), {"x"})
    assert may_overflow(one("for i in range(n):\n    h = h * 31 + x[i]"), {"h": 1, "x": np.zeros(3, int)})
    assert not may_overflow(one("for i in range(n):\n    h = h * 31 + x[i]"), {"h": 1.0, "x": np.zeros(3, int)})
    assert not may_overflow(one("for i in range(n):\n    h *= x[i]"), {"h": 1, "x": np.zeros(3)})


# Loops of many turns


def relaxed(x, y, n):
    for t in range(n):
        y[1:-1] = 0.25 * (x[2:] + 2 * x[1:-1] + x[:-2])
        x[1:-1] = 0.25 * (y[2:] + 2 * y[1:-1] + y[:-2])
    return x + y


def carried(x, n):
    total = np.zeros(len(x))
    y = x
    for _ in range(n):
        z = 0.5 * y
        total = total + z
        y = z + 0.001 * total
        for _ in range(2):
            y = y - 0.25 * z
    return total, y


@pytest.mark.parametrize(("place", "n"), [*[(H, n) for n in (0, 1, 5, 400, 5003)], (mb.RefArray, 60)])
def test_loops_of_many_turns_are_loops_of_the_program(place, n):
    rng = np.random.default_rng(n)
    compiled = agree(relaxed, rng.random(30), rng.random(30), n, make=place, turns=2)
    (program,) = compiled.programs.values()
    assert len(program.graph) < 1500
    agree(carried, rng.random(30), n, make=place, turns=2)


def with_index(x, y, n):
    total = 0.0
    for t in range(n):
        y[t % 7] = np.mean(x) + 0.001 * t
        x = np.sin(x) + y[(2 * t) % 7] * 0.25 + t / n
        k = t + 1
        total = total * 0.5 + k
    return x, y, total


def with_parts_of_moving_size(x, y, n):
    for t in range(1, n):
        x[: t % 5] = x[: t % 5] * 0.5 + y[t % 3]
        y = np.cos(y) * 0.25 + x.sum() * 0.01
    return x, y


def divided_by_index(x, y, n):
    for t in range(n):
        x = np.cos(x) + 1 / (n - 3 - t) + y
    return x


def backwards(x, y, n):
    for t in range(n, 0, -3):
        y[t % len(y)] += np.max(np.cos(x * t))
        x = x * 0.5 + y[-(t % 4) - 1]
    return x, y


def beyond(x, y, n):
    for t in range(n):
        y[t] = np.sum(np.cos(x) + 0.5)
    return y


def narrow(x, y, n):
    for t in range(n):
        x = np.cos(x) * 0.5 + t * np.float32(0.001) - (x[t % 9] * 2) / 5
    return x


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("f", [with_index, with_parts_of_moving_size, backwards, narrow])
def test_loops_of_many_turns_that_look_at_their_number(f, dtype):
    rng = np.random.default_rng(5)
    x, y = rng.random(30).astype(dtype), rng.random(7).astype(dtype)
    agree(f, x, y, 2400, turns=2, rtol=1e-3 if dtype == "f4" else 1e-9)


def test_a_loop_with_its_number_is_one_program():
    rng = np.random.default_rng(5)
    for f in (with_index, backwards):
        compiled = agree(f, rng.random(30), rng.random(7), 4000, turns=2, rtol=1e-9)
        assert compiled.pieces is None and len(compiled.programs) == 1


@pytest.mark.parametrize(("f", "error"), [(beyond, IndexError), (divided_by_index, ZeroDivisionError)])
def test_what_a_loop_with_its_number_raises(f, error):
    rng = np.random.default_rng(5)
    with pytest.raises(error):
        mb.compile(f)(H(rng.random(30)), H(rng.random(30)), 4000)


def test_a_function_that_unrolls_without_end_is_cut(monkeypatch):
    monkeypatch.setattr(reading, "MOST_NODES", 3000)

    def long(x, n):
        for t in range(n):
            x = np.sin(x) + 0.001 * (t if t % 3 else -t)
        return x

    compiled = agree(long, np.linspace(0, 1, 50), 2000, turns=2, rtol=1e-9)
    assert compiled.pieces is not None and "unrolls into more than" in repr(compiled.pieces.explain())


# What is known of sources


def test_liveness_and_what_surely_has_a_value():
    (function,) = ast.parse(
        "def f(x, n):\n"
        "    a = x\n"
        "    if n > 1:\n"
        "        b = a + 1\n"
        "    else:\n"
        "        b = 2\n"
        "        c = 3\n"
        "    for i in range(n):\n"
        "        a = a + b\n"
        "        if a > 3:\n"
        "            break\n"
        "        d = a\n"
        "    return b\n"
    ).body
    body = function.body
    live = Liveness(body)
    assert live.of(body[0]) >= {"a", "n"} and "x" not in live.of(body[0])
    assert live.of(body[2].body[0]) >= {"a", "b"} and "d" not in live.of(body[2].body[2])
    assert live.of(body[2]) == {"b"}
    bound = surely_bound(body, {"x", "n"})
    assert bound[id(body[2])] == {"x", "n", "a", "b"} and "i" not in bound[id(body[3])]


def test_sources_that_are_not_made_anew():
    def global_one(x):
        global KEPT
        KEPT = x

    def frames(x):
        return locals()

    def generator(x):
        yield x

    assert Source.of(global_one) is None and Source.of(frames) is None and Source.of(generator) is None
    assert Source.of(len) is None and Source.of(np.add) is None
    source = Source.of(until)
    again = source.remade(source.body, {})
    assert again.__code__.co_filename == until.__code__.co_filename and again.__name__ == "until"
    assert again(np.ones(3), 1e-3)[1] == until(np.ones(3), 1e-3)[1]


def moved(x, y, n):
    for i in range(n):
        y[i] = x[i + 3] * 2


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8])
def test_numbers_of_every_kind_are_looked_at_anew(kind):
    """What lies inside for one number does not for another: indices are never taken on trust."""
    compiled = mb.compile(moved)
    compiled(H(np.arange(40.0)), H(np.zeros(40)), kind(20))
    with pytest.raises(IndexError):
        compiled(H(np.arange(40.0)), H(np.zeros(40)), kind(39))


OTHER = """
import builtins

def min(a, b):
    return builtins.min(a, b) + 5

def range(n):
    return builtins.range(n + 5)

def clipped(x):
    for i in builtins.range(30):
        x[min(i, 1)] = i
    return x

def longer(x):
    for i in range(40):
        x[i] = x[i] + 1
    return x

def repeated(x):
    for _ in range(50):
        x = x + 1
    return x
"""


@pytest.mark.parametrize("name", ["clipped", "longer", "repeated"])
def test_names_of_pythons_that_mean_others(tmp_path, name):
    (tmp_path / "own_names.py").write_text(OTHER)
    spec = importlib.util.spec_from_file_location("own_names", tmp_path / "own_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if name == "longer":
        with pytest.raises(IndexError):
            mb.compile(module.longer)(H(np.arange(40.0)))
    else:
        agree(getattr(module, name), np.arange(40.0))


@pytest.mark.parametrize("place", PLACES[:3])
def test_grids_of_indices_are_where_the_arguments_are(place):
    def gathered(x, out):
        i, j = np.ogrid[1 : len(x) - 1, 0:3]
        rows, _ = np.mgrid[0:2, 0:4]
        out[i, j] = x[i + 1, j] + x[i - 1, j]
        return out, np.exp(-1.0 * rows) * x[:2, :4], np.repeat(np.mgrid[0:3], 2) + x[:6, 0]

    x = np.arange(40.0).reshape(8, 5)
    agree(gathered, x, np.zeros_like(x), make=place)


@pytest.mark.parametrize("place", PLACES[:3])
def test_one_element_is_written_by_a_program(place):
    def energies(x, turns):
        kept = np.ndarray(turns, dtype=x.dtype)
        kept[0], kept[-1] = np.sum(x), x.max()
        for i in range(1, turns - 1):
            x = x * 0.5 + 0.1
            kept[i] = np.sum(x)
        return kept

    compiled = mb.compile(energies, whole=True)
    with mb.count() as counted:
        got = mb.materialize(compiled(place(np.arange(9.0)), 20))
    assert counted.scalar_reads == 0
    assert np.allclose(mb.to_numpy(got), energies(np.arange(9.0), 20), rtol=1e-14)


@pytest.mark.parametrize("place", PLACES[1:3])
def test_a_loop_whose_work_is_that_of_arrays_stays_where_they_are(place):
    def force(p, m):
        return (p.reshape(-1, 1) - p) @ m

    def moved(p, m, e):
        for i in range(len(e)):
            p = p + 0.001 * force(p, m)
            e[i] = np.sum(p)
        return p

    rng = np.random.default_rng(3)
    compiled = agree(moved, rng.random(6), rng.random(6), np.zeros(20), make=place, rtol=1e-10)
    with mb.count() as counted:
        compiled(*[place(x) for x in (rng.random(6), rng.random(6), np.zeros(20))])
    assert counted.transfers == 3 and counted.scalar_reads == 0  # (which are the arguments)


def test_what_a_piece_without_arrays_makes_is_where_the_arguments_are():
    def program(x, n):
        found = np.zeros((n, n))
        if float(x[0]) > 0:
            found = found + 1
        return found + x

    compiled = mb.compile(program)
    for array in (mb.RefArray, mb.HostArray, mb.CuArray):
        got = compiled(array(np.arange(1.0, 4)), 3)
        assert type(got).family is array
        assert np.array_equal(mb.to_numpy(got), np.ones((3, 3)) + np.arange(1.0, 4))


def test_pieces_that_are_known_go_straight_to_their_programs(hot):
    """A loop that Python ends by a value costs little a turn: nothing is sorted or captured anew."""
    import sys

    def relaxed(x, steps):
        total = 0.0
        for k in range(steps):
            y = x * 0.5 + 1
            x, r = y, mb.sum(y)
            if float(r) < 0:
                break
            total = total + r * 0.25
        return x, total, 3, None

    f, x = mb.compile(relaxed), mb.HostArray(np.linspace(0, 1, 50))
    for _ in range(3):
        got, want = f(x, 12), relaxed(x, 12)
        assert np.array_equal(got[0], want[0]) and float(got[1]) == float(want[1]) and got[2:] == (3, None)
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f(x, 12)
    finally:
        sys.setprofile(None)
    assert seen.count("_sorted") < 4 and len(seen) < 12 * 90, (seen.count("_sorted"), len(seen))


def names_and_dates(x):
    names = np.array(["b", "a", "b"])
    found, places = np.unique(names, return_inverse=True)
    sums = np.zeros(len(found))
    for i, k in enumerate(places):
        sums[k] += x[i]
    days = np.asarray(["2016-07-01", "2016-07-03"], dtype="datetime64[D]")
    records = np.zeros(2, dtype=[("a", int), ("b", float)])
    records["b"] = 2.5
    anything = np.array([None, 1])
    return (
        sums * (days[1] - days[0]).astype(int) + records["b"].sum() + (anything[1] or 0),
        np.where(names == "b", x, -x),
        np.sort(names)[0] == "a",
    )


@pytest.mark.parametrize("make", PLACES[:3], ids=repr)
def test_what_holds_no_numbers_is_numpys(make):
    agree(names_and_dates, np.array([1.0, 2.0, 3.0]), make=make)


def test_texts_are_chosen_by_masks_of_the_host():
    names = np.array(["b", "a", "b"])
    assert mb.compile(lambda x: names[x > 1])(H([1.0, 2.0, 3.0])).tolist() == ["a", "b"]


def test_what_is_deleted_on_the_other_side_of_a_cut():
    @mb.compile
    def f(x):
        v = x * 2
        u = v + 1
        del v
        w = mb.nonzero(u > 3)[0] + 0
        del x
        return w, u

    for values in ([1.0, 2.0, 2.0], [3.0, 0.0, 1.5]):
        w, u = f(mb.HostArray(values))
        assert u.tolist() == [2 * v + 1 for v in values]
        assert w.tolist() == [k for k, v in enumerate(values) if 2 * v + 1 > 3]
