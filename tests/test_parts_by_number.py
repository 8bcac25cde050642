"""`part = x[k]` where `k` is a number that was computed is a view: a write to one is seen in the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mirabelle as mb

PICKS = [
    "x[k % 3]", "x[k % 3, 1:]", "x[1:, k % 2]", "x[..., k % 4]", "x[k % 3][::-1]", "x[k % 3].copy()", "x[k]",
    "x[k % 3] * 2", "x[k % 3, k % 4, ...]", "(x * 2)[k % 3]", "x[[1, 2]][k % 2]", "x[j % 3]", "x[1:][j % 2]",
]  # fmt: skip
WRITES = [
    "x *= 2", "x[0] = 7", "x[k % 3] = 0", "x[k % 3] += 1", "part *= 3", "part[...] = 5", "xp.add(x, 1, out=x)",
    "other = part * 2", "del part; part = x[0] + 1", "part = part + 1", "x[:, 1] -= part.sum()", "k = k + 1",
]  # fmt: skip


def drawn(dice):
    """A function of random picks and writes, as text."""
    lines = ["other = x[0] + 0"]
    for _ in range(dice.randint(1, 3)):
        lines.append(f"part = {dice.choice(PICKS)}")
        lines += [dice.choice(WRITES) for _ in range(dice.randint(1, 3))]
    return "def f(xp, x, k, j):\n    " + "\n    ".join([*lines, "return part + 0, other, x"])


def results(f, xp, family):
    arrays = [np.arange(12.0).reshape(3, 4) + 1, np.array(2, "i2"), np.array(7)]
    with np.errstate(all="ignore"):
        return [mb.to_numpy(x) if xp is mb else np.array(x) for x in f(xp, *map(family, arrays))]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["HostArray", "RefArray", "CuArray"])
def test_random_picks_and_writes_are_numpys(kind, seed):
    source = drawn(random.Random(seed))
    space = {}
    exec(source, space)
    f = space["f"]
    try:
        expected = results(f, np, np.array)
    except (ValueError, IndexError):
        pytest.skip("NumPy refuses it")
    family = getattr(mb, kind)
    whole = mb.compile(lambda xp, *given: f(xp, *given), static=("xp",), whole=True)
    cut = mb.compile(lambda xp, *given: f(xp, *given), static=("xp",))
    for call in (f, f, cut, cut, whole, whole):
        for x, y in zip(results(call, mb, family), expected, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=source)


@mb.kernel
def raised(k, y):
    y[k.index()] += 1.0


def test_what_follows_no_writes_is_refused():
    x, k = mb.RefArray(np.arange(6.0).reshape(3, 2)), mb.RefArray(4)
    rng = mb.random.default_rng(0)
    part = x[k % 3]
    for write in (lambda y: rng.random(out=y), lambda y: raised[2](y[..., 0] if y.ndim > 1 else y)):
        for array in (x, part):
            with pytest.raises(ValueError, match=r"`part = mb\.copy\(x\[k\]\)`"):
                write(array)
    np.testing.assert_array_equal(mb.to_numpy(x), np.arange(6.0).reshape(3, 2))
    del part, array
    rng.random(out=x)
    raised[2](x[0])


@pytest.mark.parametrize("kind", ["HostArray", "RefArray", "CuArray"])
def test_what_compiled_functions_write_is_followed(kind):
    family = getattr(mb, kind)
    x, k = family(np.arange(6.0).reshape(3, 2)), family(4)

    @mb.compile
    def raised(x):
        x += 10
        return x[0]

    part, column = x[k % 3], x[:, k % 2]
    for turn in (1, 2):
        first = raised(x)
        np.testing.assert_array_equal(mb.to_numpy(part), [2.0 + 10 * turn, 3.0 + 10 * turn])
        np.testing.assert_array_equal(mb.to_numpy(column), np.array([0.0, 2.0, 4.0]) + 10 * turn)
        np.testing.assert_array_equal(mb.to_numpy(first), [10.0 * turn, 10.0 * turn + 1])
    raised(part)
    np.testing.assert_array_equal(mb.to_numpy(x)[1], [32.0, 33.0])
    np.testing.assert_array_equal(mb.to_numpy(column), [20.0, 32.0, 24.0])


def test_two_arguments_of_which_one_is_a_part_of_the_other_are_refused():
    @mb.compile
    def added(x, y):
        x += 1
        return y * 2

    x, k = mb.RefArray(np.arange(6.0).reshape(3, 2)), mb.RefArray(4)
    part, other = x[k % 3], x[k % 2]
    for first, second in ((x, part), (part, x), (part, other)):
        with pytest.raises(ValueError, match="another argument shares its memory"):
            added(first, second)
    np.testing.assert_array_equal(mb.to_numpy(x), np.arange(6.0).reshape(3, 2))


WRITERS = {
    "a mask": lambda x: x.__setitem__(x > 2, 0),
    "positions": lambda x: x.__setitem__([0, 1], 5.0),
    "a number": lambda x: x.__setitem__(mb.argmin(x[:, 0]), 1.0),
    "out=": lambda x: mb.add(x, 1, out=x),
    "copyto": lambda x: mb.copyto(x, 7.0, where=x < 100),
    "add_at": lambda x: mb.add_at(x, [1, 1], 1.0),
    "fill_diagonal": lambda x: mb.fill_diagonal(x, 3.0),
    "put": lambda x: mb.put(x, [2], 9.0),
    "sort": lambda x: x.sort(),
    "+=": lambda x: x.__iadd__(1),
    "a slice": lambda x: x.__setitem__(slice(1, None), 4.0),
}


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("kind", ["HostArray", "RefArray", "CuArray"])
@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_whatever_writes_is_followed_by_parts_that_are_held(writer, kind, held):
    family = getattr(mb, kind)
    x, k = family(np.arange(6.0).reshape(3, 2)), family(4)
    part = x[k % 3]
    if not held:
        del part
    for _ in range(2):
        writer(x)
        if held:
            np.testing.assert_array_equal(mb.to_numpy(part), mb.to_numpy(x)[1])


def test_parts_that_nobody_holds_take_no_memory():
    x, k = mb.RefArray(np.arange(6.0).reshape(3, 2)), mb.RefArray(4)
    held = []
    for turn in range(100):
        part = x[k % 3]
        x[0] = part * 2
        held = [part] if turn % 10 else []
        assert len(x._copy_of.parts) < 20
    del part, held
    x[0] = 0
    assert not hasattr(x, "_copy_of"), "what has no parts is written as if it had never had any"


def test_parts_that_are_gone_or_copied_hinder_nobody():
    @mb.compile(whole=True)
    def swapped(x, p, q):
        kept = x[p % 3].copy()
        x[p % 3] = x[q % 3]
        x[q % 3] = kept
        return x

    made = swapped(mb.HostArray(np.arange(6.0).reshape(3, 2)), mb.HostArray(0), mb.HostArray(2))
    np.testing.assert_array_equal(mb.to_numpy(made), [[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]])


@pytest.mark.parametrize("shape", [(1,), (1, 3)])
@pytest.mark.parametrize(
    "text", ["x[k]", "x[None][k]", "xp.broadcast_to(x, (2, *x.shape))[k]", "xp.max(x[None][k], axis=-1)"]
)
def test_compiled_programs_look_at_indices_along_axes_of_one_value(text, shape):
    f = eval(f"lambda xp, x, k: {text}")
    program = mb.compile(f, static=("xp",), whole=True)
    x = np.ones(shape)
    for k in ([0, 0], [-1, 0], [0, 2], [-3, 0]):
        try:
            expected = f(np, x, np.array(k))
        except IndexError:
            with pytest.raises(IndexError):
                mb.to_numpy(program(mb, mb.HostArray(x), mb.HostArray(k)))
        else:
            np.testing.assert_array_equal(mb.to_numpy(program(mb, mb.HostArray(x), mb.HostArray(k))), expected)


@pytest.mark.parametrize("exponent", [-1, -2, np.int8(-1), np.int64(-3)])
@pytest.mark.parametrize("dtype", ["?", "i1", "i8"])
def test_no_integers_have_negative_powers(dtype, exponent):
    expected = np.zeros((0, 3), dtype) ** exponent
    made = mb.zeros((0, 3), dtype=dtype) ** exponent
    assert made.shape == (0, 3) and made.dtype == expected.dtype
    with pytest.raises(ValueError, match="astype"):
        mb.ones(3, dtype=dtype) ** exponent


@pytest.mark.parametrize("far", [2**63, 2**64 - 1, 2**70, -(2**70)])
def test_numbers_beyond_all_indices_are_named(far):
    x = mb.HostArray([1.0, 2.0])
    with pytest.raises(IndexError, match="out of bounds"):
        x[far]
    with pytest.raises(IndexError, match="out of bounds"):
        x[None][0, far]
    if 0 < far < 2**64:
        with pytest.raises(IndexError, match=f"index {far} is out of bounds"):
            x[mb.HostArray(np.array(far, "u8"))]
