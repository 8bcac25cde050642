"""Views of views of views, written to through each: random programs that mean what they mean with NumPy."""

import operator
import random

import numpy as np
import pytest

import mirabelle as mb

DTYPES = ["?", "i1", "u1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"]
IN_PLACE = {"add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul}


def values(rng, dtype, shape):
    found = np.array([rng.choice([0, 1, 2, 3, 5, 7, 100]) for _ in range(int(np.prod(shape)))]).astype(dtype)
    return (found + 1j * found[::-1] if found.dtype.kind == "c" else found).astype(dtype).reshape(shape)


def view(rng, x):
    """What to show of an array, for either library."""
    n = rng.choice(x.shape) if x.ndim else 1
    a, b = sorted((rng.randint(-n - 1, n + 1), rng.randint(-n - 1, n + 1)))
    step, axis = rng.choice([1, 2, -1, -2, None]), rng.randrange(x.ndim) if x.ndim else 0
    index = (*[slice(None)] * axis, slice(a, b, step)) if x.ndim else ...
    single = (*[slice(None)] * axis, -1, ...) if x.size and x.ndim else ...
    return rng.choice([
        lambda xp, v: v[index], lambda xp, v: v[single], lambda xp, v: v[None, ...], lambda xp, v: v.T,
        lambda xp, v: xp.flip(v) if v.ndim else v, lambda xp, v: v.real,
        lambda xp, v: v[..., None], lambda xp, v: v.imag if v.dtype.kind == "c" else v,
    ])  # fmt: skip


def statement(rng, n):
    i, j, k = (rng.randrange(n) for _ in range(3))
    name, number = rng.choice(list(IN_PLACE)), rng.choice([1, 2, True, 0.5, 3, 200])

    def all_of(xp, v):
        v[i][...] = v[j]

    def in_place(xp, v):
        IN_PLACE[name](v[i], v[j])

    def by_number(xp, v):
        IN_PLACE[name](v[i], number)

    def out(xp, v):
        getattr(xp, name)(v[j], v[k], out=v[i], casting="unsafe")

    def masked(xp, v):
        v[i][v[i] == number] = 1

    def scanned(xp, v):
        if v[i].ndim:
            v[i][...] = xp.cumsum(v[j], axis=0)

    return rng.choice([all_of, in_place, by_number, out, masked, scanned])


def run(f, xp, views):
    try:
        f(xp, views)
    except (ValueError, TypeError, IndexError, OverflowError):
        return False
    return True


@pytest.mark.parametrize("make", [mb.HostArray, mb.asarray, lambda x: mb.HostArray(x).astype(x.dtype)])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_writes_through_views_of_views_are_numpys(make, seed):
    with np.errstate(all="ignore"):
        for number in range(60):
            one_program(make, random.Random(seed * 1000 + number))


def one_program(make, rng):
    shape = tuple(rng.choice([1, 2, 3, 4, 0 if rng.random() < 0.1 else 2]) for _ in range(rng.randint(1, 3)))
    base = values(rng, rng.choice(DTYPES), shape)
    theirs, ours = [base.copy()], [make(base.copy())]
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(theirs))
        show = view(rng, theirs[at])
        theirs.append(show(np, theirs[at]))
        ours.append(show(mb, ours[at]))
    for _ in range(rng.randint(1, 6)):
        f = statement(rng, len(theirs))
        took = run(f, np, theirs), run(f, mb, ours)
        assert took[0] == took[1]
        if not took[0]:
            return
        for a, b in zip(theirs, ours, strict=True):
            if rng.random() < 0.4:
                np.testing.assert_array_equal(mb.to_numpy(b), a, strict=True)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_array_equal(mb.to_numpy(b), a, strict=True)
