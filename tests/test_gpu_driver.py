"""The driver of NVIDIA's cards over a CuPy that notes what it is asked: memory, streams, graphs, sharing."""

import concurrent.futures
import gc
import sys
import time

import numpy as np
import pytest
from fakecupy import Array, CUDARuntimeError, FakeCupy, Memory, MemoryPointer, OutOfMemoryError

import mirabelle as mb
from mirabelle.backends.cuda import driver as cuda
from mirabelle.backends.gpu.cards import give_cards

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def card(monkeypatch):
    """The fake module, with CuArray's driver over it."""
    cupy = FakeCupy()
    monkeypatch.setattr(cuda, "cupy_module", lambda: cupy)
    monkeypatch.setattr(mb.CuArray, "_made_driver", cuda.CudaDriver(0), raising=False)
    yield cupy
    gc.collect()


def array(cupy, n=2):
    memory = Memory(8 * n, cupy.made)
    memory.bytes[:] = 0
    return Array((n,), "f8", MemoryPointer(memory, 0), (8,))


# Memory


def test_memory_and_limits_are_the_pools(card):
    x = mb.CuArray(VALUES)
    report = mb.memory(mb.CuArray)
    assert (report.used, report.held, report.limit, report.total) == (1000, 2000, None, 1 << 34)
    assert x.shape in [h.shape for h in report.arrays]
    mb.set_memory_limit(0.25, mb.CuArray)
    assert mb.memory(mb.CuArray).limit == 1 << 32
    mb.set_memory_limit(None, mb.CuArray)
    assert card.limit == 0


def test_before_memory_is_said_to_be_exhausted_what_is_held_is_given_back(card):
    x = mb.CuArray(VALUES)
    card.said()
    with pytest.raises(mb.OutOfMemoryError, match=r"no room for an array of 16\.0 MiB") as caught:
        mb.empty(1 << 21, device=mb.CuArray)
    assert card.said() == ["free plans", "free blocks"]
    assert "CuArray[float64, 2] of shape (2, 3): 48 B" in str(caught.value)
    np.testing.assert_array_equal(mb.to_numpy(x), VALUES)


def test_a_routine_that_runs_out_of_memory_is_tried_again(card):
    driver = mb.CuArray.driver()
    tries = []

    def routine(n):
        tries.append(n)
        if len(tries) == 1:
            raise OutOfMemoryError(n)
        return n

    assert driver.attempt(routine, [5], {}) == 5
    assert card.said()[-1] == "free blocks"
    with pytest.raises(mb.OutOfMemoryError, match=r"4\.9 KiB"), driver.using():
        raise OutOfMemoryError(5000)


# Streams


def test_a_block_waits_and_is_waited_for(card):
    x, y = mb.CuArray(VALUES), mb.CuArray(VALUES)
    card.said()
    with mb.stream(mb.CuArray) as s:
        mb.CuArray._copy_into(mb.ext.tree(y).view, mb.ext.tree(x).view)
        assert x.__cuda_array_interface__["stream"] == s.ptr
    assert card.said() == [("wait", s.ptr, 0), ("copy", 3, s.ptr), ("wait", 0, s.ptr)]
    with mb.stream(mb.CuArray, join=False) as t:
        pass
    assert t.ptr != s.ptr and card.said() == [("wait", t.ptr, 0)]
    t.wait(s)
    s.synchronize()
    mb.synchronize(mb.CuArray)
    assert card.said() == [("wait", t.ptr, s.ptr), ("synchronize", s.ptr), "drain"]
    first = s.ptr
    del s
    assert mb.stream(mb.CuArray).ptr == first


# Graphs


def test_a_block_is_captured_and_launched(card):
    x, y = mb.CuArray(VALUES), mb.CuArray(VALUES)
    card.said()
    with mb.capture(mb.CuArray) as g:
        mb.CuArray._copy_into(mb.ext.tree(y).view, mb.ext.tree(x).view)
        n = mb.CuArray(np.ones(3))
    said = card.said()
    stream = next(s for kind, s in (e for e in said if len(e) == 2) if kind == "begin")
    side = next(e[2] for e in said if e[:2] == ("copy", 1))
    assert side not in (0, stream)
    assert said == [
        ("wait", stream, 0), ("begin", stream), ("copy", 3, stream),
        # what comes from the host meanwhile is copied now, in memory of the order outside
        ("allocate", 24, 0), ("wait", side, 0), ("copy", 1, side), ("synchronize", side),
        ("end", stream), ("graph", 0),
    ]  # fmt: skip
    assert not card.entered and card.allocator is None
    g.replay()
    with mb.stream(mb.CuArray) as s:
        g.replay()
    assert [e for e in card.said() if e[0] == "graph"] == [("graph", 0), ("graph", s.ptr)]
    assert n.shape == (3,)


def test_memory_of_a_graph_lives_as_long_as_it(card):
    x = mb.CuArray(VALUES)
    where = mb.ext.tree(x).view.ptr
    with mb.capture(mb.CuArray) as g:
        y = mb.empty(5, device=mb.CuArray)
        mb.CuArray.driver().array(mb.ext.tree(x).view)
        made = mb.ext.tree(y).view.ptr
    del x, y
    held = g._run.held[0]
    assert {where, made} <= set(held)


def test_a_block_that_cannot_be_captured(card):
    x, y = mb.CuArray(VALUES), mb.CuArray(VALUES)
    card.fails = "cudaErrorStreamCaptureInvalidated"
    with pytest.raises(mb.DeviceError, match=r"cannot be captured.*Invalidated"), mb.capture(mb.CuArray):
        mb.CuArray._copy_into(mb.ext.tree(y).view, mb.ext.tree(x).view)
    assert not card.entered and card.allocator is None and not mb.CuArray.driver().recorders
    for read in (lambda: mb.to_numpy(x), lambda: mb.synchronize(mb.CuArray)):
        card.fails = None
        with pytest.raises(mb.DeviceError, match="nothing is computed yet"), mb.capture(mb.CuArray):
            read()
    with (
        pytest.raises(mb.DeviceError, match="a routine of CuPy waits for the card"),
        mb.capture(mb.CuArray),
        mb.CuArray.driver().using(),
    ):
        raise CUDARuntimeError(
            "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"
        )
    assert not mb.CuArray.driver().recorders


# Sharing


def test_arrays_of_cupy_are_shared(card):
    theirs = array(card)
    x = mb.asarray(theirs)
    assert mb.ext.tree(x).view.ptr == theirs.data.ptr and mb.ext.tree(x).foreign
    card.said()
    copied = mb.CuArray(theirs)
    assert card.said() == [("allocate", 16, 0), ("copy", 3, 0)] and not mb.ext.tree(copied).foreign


def test_what_dlpack_hands_out_is_read_only_and_a_reader(card):
    x = mb.CuArray(VALUES)
    view = mb.ext.tree(x).view

    class Consumer:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return self.capsule

    alone = sys.getrefcount(view)
    shown = np.from_dlpack(Consumer(x.__dlpack__(max_version=(1, 0))))
    np.testing.assert_array_equal(shown, VALUES)
    assert not shown.flags.writeable and shown.__array_interface__["data"][0] == view.ptr
    assert sys.getrefcount(view) > alone
    del shown
    assert sys.getrefcount(view) == alone


def test_stray_addresses(card):
    theirs = array(card)
    card.made.clear()
    with pytest.raises(mb.DeviceError, match="no memory of a card that lives"):
        mb.asarray(theirs)


@pytest.mark.parametrize("family", [mb.CuArray, mb.ROCArray, mb.RefArray], ids=lambda f: f.__name__)
def test_threads_that_begin_at_once_have_one_driver(monkeypatch, family):
    def slowly(index):
        time.sleep(0.02)
        return object()

    for name in ("driver", "cards"):
        monkeypatch.setattr(family, name, family.__dict__[name])
    give_cards(family, slowly, lambda: 1)
    monkeypatch.setattr(family, "_made_driver", None, raising=False)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: family.driver(), range(4)))) == 1
