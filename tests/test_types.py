"""Types carry dtype, ndim and the parent's type; they are ordinary classes, made once."""

import itertools
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from kinds import ALL, SINGLE
from samples import DTYPES, ids, ordinary

import mirabelle as mb

FAMILIES = [mb.HostArray, mb.RefArray]
both = pytest.mark.parametrize("family", FAMILIES)


@both
def test_parameters_are_real_subclasses(family):
    chain = [family["f4", 2], family["f4"], family, mb.types.DenseArray, mb.AbstractArray]
    for lower, upper in itertools.pairwise(chain):
        assert issubclass(lower, upper) and not issubclass(upper, lower)
    assert not issubclass(family["f4", 2], family["f8"])
    assert not issubclass(family["f4", 2], family["f4", 1])
    other = FAMILIES[1 - FAMILIES.index(family)]
    assert not issubclass(family["f4"], other)


@both
def test_wrappers_follow_their_parent(family):
    chain = [
        mb.types.Transpose[family["f4", 2]],
        mb.types.Transpose[family["f4"]],
        mb.types.Transpose[family],
        mb.types.Transpose,
    ]
    chain += [mb.types.PermutedDims, mb.types.Wrapper, mb.AbstractArray]
    for lower, upper in itertools.pairwise(chain):
        assert issubclass(lower, upper) and not issubclass(upper, lower)
    assert issubclass(mb.types.View[family["f4", 2], 1], mb.types.View[family["f4", 2]])
    assert issubclass(mb.types.View[family["f4", 2]], mb.types.View[family])
    assert issubclass(
        mb.types.View[mb.types.Transpose[family["f4", 2]], 1], mb.types.View[mb.types.Transpose[family]]
    )
    assert not issubclass(mb.types.View[family["f4", 2]], mb.types.View[family["f8"]])


@both
@pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))
def test_types_are_made_once_however_they_are_spelled(family, dtype):
    made = family[dtype, 2]
    assert (
        made is family[dtype.name, 2] is family[dtype.type, 2] is family[dtype.newbyteorder(">"), np.int64(2)]
    )
    assert family[dtype] is family[dtype.name]
    assert made.dtype == dtype and made.ndim == 2 and made.parameters == (dtype, 2)
    assert type(family(ordinary(dtype, (2, 2)))) is made


def test_any_is_every_dtype_as_checkers_write_it():
    def doubled(x: mb.HostArray[Any]) -> mb.DArray[mb.HostArray[Any]]: ...

    assert mb.HostArray[Any] is mb.HostArray and mb.Diagonal[Any] is mb.Diagonal and doubled
    assert mb.DArray[mb.HostArray[Any]] is mb.DArray[mb.HostArray]


def test_threads_make_one_type():
    made = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        made.append(mb.types.View[mb.types.Transpose[mb.HostArray[np.uint16, 7]], 5])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(made)) == 1


def test_names_say_the_parameters():
    assert mb.HostArray["f8", 2].__name__ == "HostArray[float64, 2]"
    assert mb.HostArray["f8"].__name__ == "HostArray[float64]"
    assert repr(mb.HostArray["f8", 2]) == "mirabelle.HostArray[float64, 2]"
    assert repr(mb.types.Transpose[mb.RefArray["i4", 2]]) == "mirabelle.types.Transpose[RefArray[int32, 2]]"
    assert mb.HostArray["f8"].__doc__ and mb.HostArray.__module__ == "mirabelle"


@pytest.mark.parametrize("kind", ALL, ids=repr)
def test_every_array_is_an_instance_of_its_generic_types(kind):
    x = kind.make(kind.sample(ordinary("f8", (3, 4))))
    cls = type(x)
    assert isinstance(x, mb.AbstractArray)
    assert cls.dtype == x.dtype and cls.ndim == x.ndim == len(x.shape)
    origin = cls.__generic_class__
    assert isinstance(x, origin) and origin[cls.parameters] is cls
    leaf = x
    while mb.parent(leaf) is not leaf:
        assert isinstance(leaf, mb.types.Wrapper)
        leaf = mb.parent(leaf)
    assert isinstance(leaf, kind.family[np.float64]) and mb.place(x) == kind.place == mb.place(leaf)


@pytest.mark.parametrize(
    "cls",
    [mb.HostArray, mb.HostArray["f4"], mb.HostArray["c16", 3], mb.RefArray["?", 0],
     mb.types.Transpose[mb.RefArray],
     mb.types.View[mb.types.Transpose[mb.HostArray["i4", 2]], 1], mb.AbstractArray, mb.types.DenseArray],
    ids=repr,
)  # fmt: skip
def test_types_pickle(cls):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(cls, protocol)) is cls


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_arrays_pickle_within_a_process(kind):
    values = kind.sample(ordinary("f8", (3, 4)))
    x = kind.make(values)
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is type(x)
    assert_same(y, values)
    if kind.writable:
        y += 1
    assert_same(x, values)


@both
def test_constructor_forms(family):
    data = [[1, 2], [3, 4]]
    for x, dtype in (
        (family(data), np.int64),
        (family(data, dtype=np.float32), np.float32),
        (family(data, "u1"), np.uint8),
        (family[np.float32](data), np.float32),
        (family[np.float32, 2](data), np.float32),
        (family(np.array(data, "i2")), np.int16),
        (family(np.array(data, ">i4")), np.int32),
        (family(((1, 2), (3, 4))), np.int64),
        (family(mb.HostArray(data)), np.int64),
        (family(mb.RefArray(data)), np.int64),
        (family["f4"](mb.RefArray(data)), np.float32),
        (family(mb.HostArray(data).T).T, np.int64),
        (family(range(4)).reshape(2, 2) + 1, np.int64),
    ):
        assert_same(x, np.array(data, dtype))
        assert isinstance(x, family) or isinstance(mb.parent(x), family)
    assert family(3.5).shape == () and family(True).dtype == bool and family(1j).dtype == "c16"
    assert family([]).shape == (0,) and family([]).dtype == "f8"
    assert family(np.float32(2)).dtype == "f4"
    with pytest.raises(ValueError, match="dimension"):
        family[np.float64, 1](data)


@both
def test_constructing_copies(family):
    n = np.ones(3)
    x = family(n)
    n[:] = 5
    y = family(x)
    x[...] = 9
    assert_same(y, np.ones(3))


def test_asarray_copies_only_where_asked_or_needed():
    n = np.ones(3)
    x = mb.HostArray(n)
    assert mb.asarray(x) is x
    assert mb.asarray(x, copy=True) is not x
    assert mb.asarray(x, dtype="f4").dtype == "f4"
    assert type(mb.asarray(n, device=mb.RefArray)) is mb.RefArray["f8", 1]
    assert type(mb.asarray(x, device=mb.RefArray)) is mb.RefArray["f8", 1]
    shared, copied, cast = mb.asarray(n), mb.asarray(n, copy=True), mb.asarray(n, dtype="f4")
    n[:] = 2
    assert shared.tolist() == [2, 2, 2] and copied.tolist() == [1, 1, 1] and cast.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="copy"):
        mb.asarray(n, dtype="f4", copy=False)
    with pytest.raises(ValueError):
        mb.asarray([1.0, 2.0], copy=False)
    assert mb.asarray([1, 2]).tolist() == [1, 2]


@both
def test_smart_constructors_do_the_algebra(family):
    x = family(np.ones((2, 3)))
    assert x.T.T is x
    assert type(x.T) is mb.types.Transpose[type(x)]
    y = family(np.ones((2, 3, 4)))
    assert y.transpose(1, 2, 0).transpose(2, 0, 1) is y
    assert type(y.transpose(1, 2, 0)) is mb.types.PermutedDims[type(y)]
    assert x.reshape(2, 3) is x and mb.broadcast_to(x, (2, 3)) is x
    assert x.reshape(6).reshape(2, 3) is x
    assert type(x[0]) is mb.types.View[type(x), 1]
    assert type(x.reshape(3, 2)) is mb.types.Reshaped[type(x), 2]
    assert type(mb.broadcast_to(x, (4, 2, 3))) is mb.types.BroadcastTo[type(x), 3]
    v = family([1.0])
    assert v.T is v
    assert mb.parent(x) is x and mb.parent(x[1:]) is x


def test_classes_are_no_place_for_attributes():
    """Arrays have slots: a misspelled attribute is an error, not a silent new one."""
    x = mb.HostArray([1.0])
    with pytest.raises(AttributeError):
        x.shpae = (2,)
    with pytest.raises(AttributeError):
        x.shape = (1, 1)
