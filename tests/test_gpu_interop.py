"""A card's memory shared with other libraries, without a copy. (Simulated cards; real ones: card_checks.py.)"""

import gc

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

pytestmark = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")

VALUES = np.arange(12.0).reshape(3, 4)


class Foreign:
    """An array of another library on a card: it says where its memory is, and holds it."""

    def __init__(self, x, index=0):
        self.x = mb.materialize(mb.copy(x))
        self.index = index

    @property
    def view(self):
        return mb.ext.tree(self.x).view

    @property
    def __cuda_array_interface__(self):
        v = self.view
        return {
            "version": 3,
            "shape": v.shape,
            "typestr": v.dtype.str,
            "data": (v.ptr, False),
            "strides": v.strides,
        }


class ByDLPack(Foreign):
    """One that speaks DLPack, too."""

    def __dlpack_device__(self):
        return 2, self.index

    def __dlpack__(self, **options):
        raise NotImplementedError


class OnTheHost:
    """What NumPy can import: simulated memory is the host's."""

    def __init__(self, x, **options):
        self.capsule = x.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        return self.capsule


def imported(x, max_version=(1, 0), **options):
    return np.from_dlpack(OnTheHost(x, max_version=max_version, **options))


def raw(interface):
    """The memory that an interface names."""

    class Shown:
        pass

    shown = Shown()
    shown.__array_interface__ = {k: v for k, v in interface.items() if k != "stream"}
    return np.asarray(shown)


# Out, by the interface: shared


@pytest.mark.parametrize(
    "show",
    [lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[::-1], lambda x: x * 2, lambda x: x[:0]],
    ids=["whole", "turned", "part", "reversed", "pending", "empty"],
)  # fmt: skip
def test_the_interface_shows_what_an_array_shows(show):
    x = show(mb.CuArray(VALUES))
    said = x.__cuda_array_interface__
    expected = show(VALUES)
    assert said["version"] == 3 and said["stream"] == 1
    assert (said["shape"], np.dtype(said["typestr"])) == (expected.shape, expected.dtype)
    if expected.size:
        np.testing.assert_array_equal(raw(said), expected)
    else:
        assert said["data"][0] == 0
    assert (said["strides"] is None) == mb.ext.tree(x).view.contiguous


def test_who_reads_the_interface_shares():
    x = mb.CuArray(VALUES)
    pending = x + 1
    shown = raw(x.__cuda_array_interface__)
    shown[0, 0] = 100.0
    assert float(mb.sum(x)) == VALUES.sum() + 100  # they write, we read
    assert_same(pending, VALUES + 1)  # what was said before is not changed
    later = x * 2
    assert later.evaluated
    x += 1  # we write, they read
    assert shown[0, 0] == 101.0 and shown[2, 3] == 12.0
    x[1] = 0
    assert not shown[1].any()
    x[x > 50] = -1
    assert shown[0, 0] == -1


def test_the_interface_of_a_part_shares_the_whole():
    x = mb.CuArray(VALUES)
    shown = raw(x[1:].__cuda_array_interface__)
    shown[...] = 7
    x[0] = 8
    assert_same(x, np.array([[8.0] * 4, [7.0] * 4, [7.0] * 4]))


def test_two_arrays_of_one_version_part_first():
    x = mb.CuArray(VALUES)
    y = mb.zeros((3, 4), device=mb.CuArray)
    y[...] = x  # both on one version
    raw(x.__cuda_array_interface__)[...] = -1
    assert_same(y, VALUES)
    assert_same(x, VALUES * 0 - 1)


def test_what_shows_an_element_several_times_is_read_only():
    assert mb.broadcast_to(mb.CuArray([1.0]), (3,)).__cuda_array_interface__["data"][1] is True


@pytest.mark.parametrize("make", [mb.HostArray, mb.RefArray, lambda v: mb.Diagonal(mb.CuArray(v[0]))],
                         ids=["host", "ref", "structured"])  # fmt: skip
def test_what_is_no_memory_of_a_card_has_no_interface(make):
    assert not hasattr(make(VALUES), "__cuda_array_interface__")


# Out, by DLPack: shown


@pytest.mark.parametrize("show", [lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x * 2],
                         ids=["whole", "turned", "part", "pending"])  # fmt: skip
def test_dlpack_shows_what_an_array_shows(show):
    x = show(mb.CuArray(VALUES))
    assert x.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(imported(x), show(VALUES))


def test_what_dlpack_shows_keeps_its_values():
    x = mb.CuArray(VALUES)
    where = mb.ext.tree(x).view.ptr
    shown, part = imported(x), imported(x[1:])
    assert shown.__array_interface__["data"][0] == where  # no copy
    assert not shown.flags.writeable
    x += 1
    x[0] = 5
    np.testing.assert_array_equal(shown, VALUES)
    np.testing.assert_array_equal(part, VALUES[1:])
    moved = mb.ext.tree(x).view.ptr
    assert moved != where
    del shown, part
    gc.collect()
    x += 1  # nobody reads the new memory: it is written in place
    assert mb.ext.tree(x).view.ptr == moved


def test_a_part_that_lives_hides_no_reader():
    x = mb.CuArray(VALUES)
    held = mb.materialize(x)[0] + 1  # a pending reader of a part
    shown = imported(x)
    x[1:] = 0
    np.testing.assert_array_equal(shown, VALUES)
    assert_same(held, VALUES[0] + 1)


def test_a_copy_may_be_written():
    x = mb.CuArray(VALUES)
    shown = imported(x, copy=True)
    shown[...] = 0
    assert_same(x, VALUES)


def test_dlpack_to_the_host_is_a_copy_that_is_asked_for():
    x = mb.CuArray(VALUES)
    with mb.count() as c:
        assert_same(np.from_dlpack(OnTheHost(x, dl_device=(1, 0), max_version=(1, 0))), VALUES)
    assert c.transfers == 1
    with pytest.raises(BufferError, match="device='cpu'"):
        x.__dlpack__(dl_device=(2, 1))
    with pytest.raises(BufferError, match=r"mb\.adapt"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


# In


@pytest.mark.parametrize("kind", [Foreign, ByDLPack])
@pytest.mark.parametrize(
    "take",
    [mb.asarray, lambda c: mb.asarray(c, device=mb.CuArray), lambda c: mb.asarray(c, copy=False)],
    ids=["asarray", "device", "no copy"],
)
def test_asarray_shares_another_librarys_array(kind, take):
    theirs = kind(mb.CuArray(VALUES))
    with mb.count() as c:
        x = take(theirs)
    assert (c.transfers, c.launches) == (0, 0)
    assert type(x) is mb.CuArray[np.float64, 2]
    assert mb.ext.tree(x).view.ptr == theirs.view.ptr
    before = x * 2
    raw(theirs.__cuda_array_interface__)[0, 0] = 50
    assert_same(before, VALUES * 2)
    assert_same(x[0], [50.0, 1, 2, 3])
    x[...] = x[::-1]  # it overlaps what it reads
    assert_same(theirs.x, mb.to_numpy(x))
    assert raw(theirs.__cuda_array_interface__)[2, 0] == 50
    kept = theirs.view.ptr
    del theirs
    gc.collect()
    assert mb.ext.tree(x).view.ptr == kept and float(mb.max(x)) == 50  # it holds what it shares


def test_from_dlpack_shares():
    theirs = ByDLPack(mb.CuArray(VALUES[:, ::2]))
    x = mb.from_dlpack(theirs)
    assert mb.ext.tree(x).view.ptr == theirs.view.ptr
    assert_same(x, VALUES[:, ::2])
    assert mb.ext.tree(mb.from_dlpack(theirs, copy=True)).view.ptr != theirs.view.ptr
    assert mb.from_dlpack(theirs, device=mb.CuArray.on(1)).place == mb.CuArray.on(1).home


def test_a_strided_array_is_shared():
    theirs = Foreign(mb.CuArray(VALUES))
    theirs.x = mb.CuArray(VALUES).T

    class Turned(Foreign):
        @property
        def view(self):
            return mb.ext.tree(theirs.x).view

    x = mb.asarray(Turned(mb.CuArray([0.0])))
    assert_same(x, VALUES.T)
    x += 1
    assert_same(theirs.x, VALUES.T + 1)


@pytest.mark.parametrize("take", [mb.CuArray, mb.CuArray["f8", 2], lambda c: mb.CuArray(c, dtype="f4"),
                                  lambda c: mb.asarray(c, copy=True), lambda c: mb.array(c)],
                         ids=["type", "parameters", "dtype", "asarray", "array"])  # fmt: skip
def test_a_constructor_copies_on_the_card(take):
    theirs = Foreign(mb.CuArray(VALUES))
    with mb.count() as c:
        x = take(theirs)
    assert c.transfers == 0
    raw(theirs.__cuda_array_interface__)[...] = -1
    assert_same(x, VALUES.astype(x.dtype))
    assert not (x * 2).evaluated  # nobody else writes to it: it is lazy


def test_a_constructor_moves_where_it_is_told():
    theirs = Foreign(mb.CuArray(VALUES))
    x = mb.CuArray.on(1)(theirs)
    assert x.place == mb.CuArray.on(1).home
    assert_same(x, VALUES)
    assert_same(mb.HostArray(theirs), VALUES)
    with pytest.raises(ValueError, match="change of place"):
        mb.asarray(theirs, device=mb.CuArray.on(1), copy=False)


def test_arrays_of_other_libraries_are_operands():
    x, theirs = mb.CuArray(VALUES), Foreign(mb.CuArray(VALUES))
    z = mb.zeros((3, 4), device=mb.CuArray)
    z[...] = theirs
    assert_same(z, VALUES)
    z[1] = mb.asarray(theirs)[0] + x[1]
    assert_same(z[1], VALUES[0] + VALUES[1])
    assert_same(mb.roll(theirs, 1, axis=0), np.roll(VALUES, 1, axis=0))


def test_operands_on_different_cards():
    other = mb.CuArray.on(1)(VALUES)
    theirs = Foreign(mb.CuArray(VALUES))
    with pytest.raises(mb.PlaceError, match=r"CuArray\.on\(1\)"):
        other[...] = theirs
    host = mb.HostArray(VALUES)
    with pytest.raises(mb.PlaceError):
        host[...] = theirs
    assert_same(other, VALUES)


# What cannot be shared


class Broken:
    def __init__(self, **said):
        x = mb.CuArray(VALUES)
        self.x = mb.materialize(x)
        v = mb.ext.tree(self.x).view
        self.__dict__["said"] = {
            "version": 3,
            "shape": v.shape,
            "typestr": v.dtype.str,
            "data": (v.ptr, False),
            **said,
        }

    @property
    def __cuda_array_interface__(self):
        return self.said


def test_memory_of_the_host_is_no_memory_of_a_card():
    n = np.zeros(3)
    for take in (mb.asarray, mb.CuArray):
        with pytest.raises(mb.DeviceError, match="no memory of a card"):
            take(Broken(data=(n.__array_interface__["data"][0], False)))


def test_memory_that_was_given_back():
    x = mb.CuArray(np.zeros(1000))
    where = mb.ext.tree(x).view.ptr
    del x
    gc.collect()
    with pytest.raises(mb.DeviceError, match="was given back"):
        mb.asarray(Broken(data=(where, False)))


def test_dtypes_that_no_array_has():
    with pytest.raises(TypeError, match="none of them"):
        mb.asarray(Broken(typestr="<M8[s]"))


def test_what_must_not_be_written_is_not():
    v = mb.CuArray(VALUES)
    x = mb.asarray(Broken(data=(mb.ext.tree(v).view.ptr, True)))
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    assert_same(mb.copy(x) + 1, VALUES + 1)


def test_numpy_is_told_the_cure():
    with pytest.raises(mb.PlaceError, match=r"mb\.to_numpy"):
        np.asarray(mb.CuArray(VALUES))


# Writes to memory that others write to


@pytest.mark.parametrize("family", [mb.HostArray, mb.CuArray, mb.RefArray], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(slice(1, None), x[:-1] + 0),
        lambda x: x.__setitem__(Ellipsis, x[::-1]),
        lambda x: x.__setitem__(slice(None, None, 2), x[1::2] * 2),
        lambda x: x.__iadd__(x[::-1]),
        lambda x: x.__setitem__(slice(0, 4), x[2:6]),
    ],
    ids=["shift", "reverse", "interleave", "in place", "overlap"],
)
def test_writes_to_shared_memory_that_overlap_what_they_read(family, write):
    from mirabelle.arraytypes.gpu_interop import share_leaf

    values = np.arange(10.0)
    expected, theirs = values.copy(), values.copy()
    if family is mb.HostArray:
        x = mb.asarray(theirs)
    else:
        x = family(values)
        share_leaf(mb.ext.tree(x))
    address = mb.ext.tree(x)
    write(x)
    write(expected)
    assert mb.ext.tree(x) is address
    assert_same(x, expected)
