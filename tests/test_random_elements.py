"""Random programs of elements and small slices (randomelements.py); numbers whose memory is used again."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from randomelements import difference

import mirabelle as mb
from mirabelle.dispatch.tree import Leaf


def shared(x):
    """An array of ours on NumPy's memory, which NumPy can write to all along."""
    KEPT.append(x.copy())
    return mb.asarray(KEPT[-1])


DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "c16", "c8", "f2", "?"]
KEPT: list[np.ndarray] = []


@pytest.mark.parametrize("make", [mb.HostArray, shared], ids=["own", "shared"])
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_programs_of_elements_are_numpys(make, first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 50):
            assert not (said := difference(seed, make)), said
    KEPT.clear()


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_that_somebody_has_is_not_used_again(dtype):
    x = mb.HostArray(np.arange(40).astype(dtype))
    n = mb.to_numpy(x)
    arrays = [np.asarray(x[i]) for i in range(20)]
    buffers = [memoryview(np.asarray(x[i])) for i in range(20)]
    versions = [x[i]._node for i in range(20)]
    views = [x[i]._node.view for i in range(20)]
    later = [x[i] for i in range(20, 40)]
    for i in range(20):
        assert arrays[i] == n[i] and views[i] == n[i] and np.asarray(versions[i].view) == n[i]
        assert np.asarray(buffers[i]) == n[i]
        assert mb.to_numpy(later[i]) == n[20 + i]


def test_what_a_number_was_told_is_not_the_next_ones():
    x = mb.HostArray(np.arange(8.0))
    for change in [
        lambda e: e.__iadd__(1),
        lambda e: e._node.remember("bounds", (1, 2)),
        lambda e: e._node.keep(),
        lambda e: setattr(e._node, "address", 17),
        lambda e: setattr(e._node, "checked", True),
        lambda e: e._node.view.setflags(write=False),
        lambda e: mb.sum(e),
        lambda e: e.reshape(1, 1),
        lambda e: weakref.ref(e),
        lambda e: weakref.ref(e._node),
        lambda e: weakref.ref(e._node.view),
        lambda e: setattr(e._node.view, "dtype", np.int64),
    ]:
        for _ in range(20):
            kept = [x[1], x[2], x[3]]
            for e in kept:
                change(e)
            del e, kept
            made = [x[5], x[6], x[7]]
            assert [float(e) for e in made] == [5.0, 6.0, 7.0]
            for e in made:
                leaf = e._node
                assert (leaf.known, leaf.root, leaf.writes, leaf.holders, leaf.checked) == (
                    None,
                    None,
                    0,
                    1,
                    False,
                )
                assert leaf.view.flags.writeable and leaf.view.dtype == np.float64 and leaf.element
                assert not hasattr(leaf, "address")


def test_constructed_numbers_are_constructed_and_results_are_not():
    for _ in range(30):
        made = mb.zeros(())
        same = made
        made += 1.0
        assert float(same) == 1.0
        del made, same
        x = mb.HostArray([1.0, 2.0])[0]
        same = x
        x += 1.0
        assert (float(x), float(same)) == (2.0, 1.0)
        total = x * 2.0
        same = total
        total += 1.0
        assert (float(total), float(same)) == (5.0, 4.0)
        assert not (x + same)._node.element and mb.HostArray([1.0])[0]._node.element


def test_references_that_die_with_a_number_are_told():
    x = mb.HostArray(np.arange(4.0))
    told = []
    for i in range(40):
        e = x[i % 4]
        weakref.finalize(e, told.append, i)
        del e
    assert told == list(range(40))


def test_a_users_class_is_not_kept():
    class Mine(mb.HostArray):
        def __del__(self):
            gone.append(self.ndim)

    gone = []
    x = Mine(np.arange(4.0))
    for i in range(12):
        e = x[i % 4]
        assert float(e) == i % 4
        e = e + 1
        assert float(e) == i % 4 + 1
        del e
    del x
    gc.collect()
    assert 1 in gone


def test_numbers_of_many_types_and_threads():
    arrays = [mb.HostArray(np.arange(50).astype(t)) for t in DTYPES]
    wanted = [mb.to_numpy(x) for x in arrays]
    wrong = []

    def work(first):
        held = []
        for k in range(400):
            for x, n in zip(arrays[first:] + arrays[:first], wanted[first:] + wanted[:first], strict=True):
                held.append((x[k % 50], n[k % 50]))
            if len(held) > 60:
                wrong.extend([(e, v) for e, v in held if mb.to_numpy(e) != v])
                held = held[k % 7 :: 3]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


NUMBERS = {
    "constructed": lambda x: mb.HostArray(2.0), "sum": lambda x: mb.materialize(mb.sum(x)),
    "zeros": lambda x: mb.zeros(()), "shared": lambda x: mb.asarray(np.array(3.0)),
    "copy": lambda x: mb.copy(mb.asarray(3.0)), "picked": lambda x: x[2],
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("first", [False, True])
def test_what_goes_with_a_cycle_is_kept_whole(kind, first):
    """The collector takes cycles apart: a handle that it lets go is kept, and its leaf was cleared next."""
    x = mb.HostArray(np.arange(6.0))
    for _ in range(3):
        for _ in range(20):
            cycle = []
            if first:
                cycle.append(cycle)
            cycle.append(NUMBERS[kind](x))
            if not first:
                cycle.append(cycle)
        del cycle
        gc.collect()
        assert all(hasattr(leaf, "view") for leaf in gc.get_objects() if type(leaf) is Leaf)
        assert [float(x[k]) for k in range(6)] == [0, 1, 2, 3, 4, 5]
