"""Index tuples of all forms up to four entries, for reads, writes and augmented writes: NumPy's meaning."""

import itertools
import random

import numpy as np
import pytest

import mirabelle as mb

SHAPE = (2, 3, 2)
FORMS = ("slice", "int", "array", "list", "mask", "none", "dots", "bool")


def entry(form, n, ours, rng):
    """One entry of an index, for an axis of `n` elements."""
    if form == "slice":
        return rng.choice([slice(None), slice(1, None), slice(None, None, -1)])
    if form == "int":
        return rng.choice([0, -1, np.int64(1)])
    if form == "list":
        return rng.choice([[0, 1], [1, 0], [[0, 1]]])
    if form == "array":
        data = np.array(rng.choice([[0, 1], [1, -1], [[0], [1]], [1]]))
        return mb.HostArray(data) if ours else data
    if form == "mask":
        data = np.array([rng.random() < 0.5 for _ in range(n)])
        return mb.HostArray(data) if ours else data
    return {"none": None, "dots": Ellipsis, "bool": rng.random() < 0.5}[form]


def index_of(forms, ours, rng):
    named = [f not in ("none", "dots", "bool") for f in forms]
    axis, made = 0, []
    for k, form in enumerate(forms):
        made.append(entry(form, SHAPE[axis] if axis < len(SHAPE) else 2, ours, rng))
        if form == "dots" and "dots" not in forms[:k]:
            axis += max(len(SHAPE) - sum(named), 0)
        elif named[k]:
            axis += 1
    return tuple(made)


def outcome(act):
    try:
        return act()
    except Exception as e:
        return type(e)


def written(x, index, values):
    x[index] = values
    return x


def added(x, index):
    x[index] += 2.0
    return x


@pytest.mark.parametrize("ours", [False, True], ids=["numpy", "ours"])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_an_index_tuple_means_what_it_means_to_numpy(length, ours):
    """Any order of arrays, masks, integers, slices, None and `...`, also a `...` that stands for no axis."""
    rng = random.Random(length)
    data = np.arange(float(np.prod(SHAPE))).reshape(SHAPE)
    combinations = list(itertools.product(FORMS, repeat=length))
    if length == 4:
        combinations = rng.sample(combinations, 800)
    for forms in combinations:
        index = index_of(forms, ours, rng)
        plain = tuple(mb.to_numpy(i) if isinstance(i, mb.HostArray) else i for i in index)
        picked = outcome(lambda plain=plain: data[plain])
        shape = () if isinstance(picked, type) else picked.shape
        values = 100.0 + np.arange(float(np.prod(shape))).reshape(shape)
        for act in (lambda x, i: x[i], lambda x, i, v=values: written(x, i, v), added):
            wanted = outcome(lambda act=act, plain=plain: act(data.copy(), plain))
            found = outcome(lambda act=act, index=index: mb.to_numpy(act(mb.HostArray(data), index)))
            if isinstance(wanted, type) or isinstance(found, type):
                assert found is wanted, index
            else:
                assert found.shape == np.shape(wanted), index
                np.testing.assert_array_equal(found, wanted, err_msg=repr(index))


@pytest.mark.parametrize("place", [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]])
def test_lists_with_arrays_of_one_number_are_indices(place):
    def swapped(xp, x):
        p = xp.argmax(x[:, 0])
        kept = x[[0, p]]
        x[[0, p]] = x[[p, 0]] * 2
        return kept, x

    data = np.arange(12.0).reshape(4, 3)
    wanted = swapped(np, data.copy())
    for f in (swapped, mb.compile(swapped, static="xp")):
        for got, want in zip(f(mb, place(data)), wanted, strict=True):
            np.testing.assert_array_equal(mb.to_numpy(got), want)


def test_ufunc_at_writes_to_an_array_of_numpys():
    data = np.zeros((4, 2))
    np.add.at(data, (mb.HostArray([0, 0, 1]), 1), mb.HostArray([1.0, 2.0, 3.0]))
    assert data[:, 1].tolist() == [3, 3, 0, 0]
    np.multiply.at(data, mb.HostArray([1]), 2)
    assert data[1].tolist() == [0, 6]
    with pytest.raises(mb.PlaceError, match="to_numpy"):
        np.add.at(data, mb.RefArray([0]), 1)
    with pytest.raises(TypeError, match=r"x\[i\] = mb.negative\(x\[i\]\)"):
        np.negative.at(mb.zeros(3), [0, 0])


def test_new_axes_in_parts_of_parts():
    dice = random.Random(5)

    def entries(lengths, numbers):
        for k in lengths:
            if dice.random() < 0.3:
                yield None
            slices = [slice(None), slice(dice.randint(0, k), None), slice(None, None, -1)]
            yield dice.choice([*slices, dice.randrange(-k, k)] if k and numbers else slices)

    for _ in range(2000):
        shape = [dice.randint(1, 4) for _ in range(dice.randint(1, 4))]
        n = np.arange(float(np.prod(shape))).reshape(shape)
        x = mb.HostArray(n)
        for _ in range(3):
            first = dice.randint(0, n.ndim)
            index = [*entries(n.shape[:first], n.ndim > 1)]
            if dice.random() < 0.5:
                index += [..., *entries(n.shape[dice.randint(first, n.ndim) :], n.ndim > 1)]
            if dice.random() < 0.4:
                index.insert(dice.randint(0, len(index)), None)
            index = tuple(index) if len(index) != 1 or dice.random() < 0.5 else index[0]
            n, x = n[index], x[index]
            assert x.shape == n.shape
            np.testing.assert_array_equal(mb.to_numpy(x), n)
            if not n.ndim:
                break
        if n.ndim:
            n[...], x[...] = -1.0, -1.0
            np.testing.assert_array_equal(mb.to_numpy(x), n)


def test_outer_is_of_all_pairs_of_parts():
    n = np.arange(12.0).reshape(3, 4)
    x = mb.HostArray(n)
    for f in (np.add, np.minimum, np.arctan2):
        for a, b in ((np.s_[:, 1], np.s_[1]), (np.s_[1:], np.s_[0, ::-1]), (np.s_[0, 0], np.s_[:])):
            np.testing.assert_array_equal(mb.to_numpy(f.outer(x[a], x[b])), f.outer(n[a], n[b]))
            np.testing.assert_array_equal(mb.to_numpy(f.outer(n[a], x[b])), f.outer(n[a], n[b]))
