"""Programs for any size (`mb.compile(f, sizes="any")`): what NumPy computes, whatever the sizes are."""

import math

import numpy as np
import pytest
from randomsizes import check, outcome, same

import mirabelle as mb


def resized(f):
    """How many programs were made of templates."""
    return sum(type(p).__name__ == "Resized" for p in f.programs.values())


def called(f, plain, *shapes, seed=0):
    """Call a compiled function and a plain one with arrays of some shapes, and compare."""
    rng = np.random.default_rng(seed)
    args = [rng.integers(-9, 9, s).astype(float) for s in shapes]
    expected = outcome(plain, [x.copy() for x in args])
    assert same(expected, outcome(f, [mb.HostArray(x) for x in args])), shapes


@pytest.mark.parametrize("block", range(3))
def test_random_functions_are_numpys(block):
    made = [check(number) for number in range(8 * block, 8 * block + 8)]
    assert sum(n for n, _ in made) > 10


def test_other_sizes_are_not_captured_again():
    @mb.compile(sizes="any")
    def f(u, v):
        u[1:-1, 1:-1] += v[2:, 1:-1] - v[:-2, 1:-1]
        return mb.sum(u, axis=0), u.mean()

    def plain(u, v):
        u[1:-1, 1:-1] += v[2:, 1:-1] - v[:-2, 1:-1]
        return np.sum(u, axis=0), u.mean()

    called(f, plain, (30, 20), (30, 20))
    with mb.count() as counted:
        for n, m in ((31, 21), (400, 7), (8, 64), (1000, 999), (13, 14)):
            called(f, plain, (n, m), (n, m))
    assert counted.captures == 0
    assert resized(f) == 5
    assert f.per_size == []
    assert f.explain(mb.ones((30, 20)), mb.ones((30, 20))).facts["sizes"].startswith("any, ")


# Functions of x, and whether a plan for any size is made of them.
ONE = {
    "x * 2": True,
    "x - x.mean()": True,
    "x[1:] - x[:-1]": True,
    "x[:10].sum() + x[-10:].sum()": True,
    "xp.sort(x)": True,
    "xp.cumulative_sum(x)": True,
    "x[::-1]": True,
    "x[::2].sum() + x[1::2]": True,
    "x / x.shape[0]": True,
    "x * (1.0 / (x.shape[0] + 2.5))": True,
    "x * (x.shape[0] ** 2 - 3)": True,
    "x[x.shape[0] // 2 :]": True,
    "x[: x.size // 2]": True,
    "x[x.shape[0] // 4]": True,
    "x if x.shape[0] > 40 else -x": True,
    "x + 1 if x[2:].shape[0] % 2 else x - 1": True,
    "x.reshape(1, x.size)": True,
    "xp.zeros((x.shape[0], 2)) + x[:, None]": True,
    "xp.broadcast_to(x[:1], (x.shape[0] + 3,))": True,
    "x[: min(x.shape[0], 20)]": True,
    "sum([r for r in x[:20]], x[0])": True,
    "x + 1 if xp.size(x[1:]) % 2 else x - 1": True,
    "x + 1 if xp.shape(x)[0] % 4 else x - 1": True,
    "x + 1 if xp.shape(x)[0] % 3 else x - 1": False,
    "x / len(x)": False,
    "xp.arange(x.shape[0]) + x": False,
    "x * float(x.shape[0])": False,
    "x * int(x.shape[0] / 3)": False,
    "x * f'{x.shape[0]}'.count('1')": False,
    "x * math.sqrt(x.shape[0])": False,
    "x * hash(x.shape[0])": False,
    "x * x.shape[0].bit_length()": False,
    "x * divmod(x.shape[0], 3)[1]": False,
    "x + [5, 6, 7, 8][x.shape[0] % 4]": True,
    "x + (1 if isinstance(x.shape[0], int) else 2)": True,
    "x if x.shape == (33,) else -x": True,
    "x + (3 if (x.shape[0], 1) in {(33, 1), (64, 1)} else 4)": False,
    "sum([x * k for k in range(x.shape[0] % 5)], x)": False,
    "{64: x, 32: -x}.get(x.shape[0], x * 2)": False,
}


@pytest.mark.parametrize("text", ONE)
def test_functions_of_one_size(text):
    def of(xp):
        scope = {"xp": xp, "math": math}
        exec(f"def f(x):\n    return {text}\n", scope)
        return scope["f"]

    f, plain = mb.compile(of(mb), sizes="any"), of(np)
    for n in (50, 51, 64, 32, 33, 7, 9, 3, 2, 1, 0, 300, 99, 41, 40):
        called(f, plain, (n,), seed=n)
    assert bool(resized(f)) == ONE[text], f.per_size
    assert ONE[text] or f.per_size


def test_equal_lengths_are_another_kind():
    def plain(x, y):
        return x * 2 + y

    f = mb.compile(plain, sizes="any")
    for n, m in ((30, 30), (30, 1), (1, 30), (20, 20), (20, 1), (1, 1), (40, 41), (0, 1), (0, 0), (25, 25)):
        called(f, plain, (n,), (m,))
    assert resized(f) == 3


def test_sizes_that_differ_by_one():
    def plain(u, p):
        u[1:-1] -= p[1:] - p[:-1]
        return u.sum()

    f = mb.compile(plain, sizes="any")
    for n in (50, 51, 20, 7, 3, 2, 300):
        called(f, plain, (n + 1,), (n,))
    called(f, plain, (n,), (n,))  # which is an error in both
    assert resized(f) == 4


def test_lengths_that_have_to_be_what_they_are():
    matrix = np.arange(25.0).reshape(5, 5)
    ours = mb.HostArray(matrix)
    f = mb.compile(lambda x: x @ ours + x[:, :1], sizes="any")
    for n in (300, 400, 350, 301, 299):
        called(f, lambda x: x @ matrix + x[:, :1], (n, 5))
    called(f, lambda x: x @ matrix + x[:, :1], (40, 6))
    assert resized(f)


def test_parts_that_meet_for_some_sizes():
    def plain(x):
        x[30:40] = x[-20:-10] + x[0]
        x[-3:] += x[:3]

    f = mb.compile(plain, sizes="any")
    for n in (100, 80, 41, 45, 50, 55, 59, 60, 61, 70, 39, 20, 4):
        called(f, plain, (n,))


def test_a_result_that_is_a_view():
    f = mb.compile(lambda x: (x, (x * 2)[3:-1], x[::-1]), sizes="any")
    for n in (50, 60, 8, 5, 4, 2):
        x = mb.ones(n)
        same_array, part, turned = f(x)
        assert same_array is x
        assert part.shape == np.ones(n)[3:-1].shape
        turned[0] = 7.0
        assert x[-1] == 7.0
    assert resized(f) == 3


def test_what_cannot_be_is_said_with_its_line():
    @mb.compile(sizes="any")
    def f(x):
        return mb.fori_loop(0, 3, lambda i, s: s * 2, x)

    f(mb.ones(20))
    f(mb.ones(30))
    assert "return mb.fori_loop(0, 3" in f.per_size[0]
    assert f.explain(mb.ones(40)).facts["sizes"] == "each by itself: " + f.per_size[0]


def test_pieces_are_for_any_size():
    @mb.compile(sizes="any")
    def f(x):
        y = x * 2
        if float(y.sum()) > 0:
            y = y + 1
        return y[1:] - y[:-1]

    for n in (30, 31, 40, 9, 1):
        np.testing.assert_array_equal(np.asarray(f(mb.ones(n))), np.zeros(n - 1))
    assert f.pieces is not None
    assert [resized(piece.compiled) for piece in f.pieces.pieces].count(3) >= 2


def test_numbers_are_numbers_outside():
    @mb.compile(sizes="any")
    def f(x):
        return x * 2, x.shape[0], x.shape

    for n in (30, 31, 40):
        _, length, shape = f(mb.ones(n))
        assert type(length) is int
        assert length == n
        assert type(shape[0]) is int


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="sizes says what a program is for"):
        mb.compile(lambda x: x, sizes="all")


def test_python_with_lengths():
    """(With a source that can be read: `len` and NumPy's functions of numbers are followed there.)"""

    def plain(u):
        n, half = len(u), u.shape[0] // 2
        if n > 30 and half % 2 == 0:
            u[:half] += u[half : 2 * half]
        h = 1.0 / (n + 1)
        return (u[1:] - u[:-1]) / h, u.sum() / n, np.sqrt(n) * u[half]

    f = mb.compile(plain, sizes="any")
    for n in (50, 52, 64, 60, 41, 43, 32, 80, 36, 20, 21, 7, 2, 100, 104, 108):
        called(f, plain, (n,))
    assert resized(f) >= 5, f.per_size
