"""What a card's memory holds, how much it may, and what is said when it is full. (Simulated cards.)"""

import gc

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

pytestmark = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")


@pytest.fixture
def limited():
    """A card that has room for so many bytes more."""

    def limit(nbytes):
        gc.collect()
        mb.set_memory_limit(mb.memory(mb.CuArray).used + nbytes, mb.CuArray)

    mb.CuArray([0.0])
    yield limit
    mb.set_memory_limit(None, mb.CuArray)


def test_memory_says_what_is_used_and_by_what():
    before = mb.memory(mb.CuArray)
    xs = [mb.CuArray(np.zeros((30, 40))) for _ in range(3)]
    parts = [x[3:7].T for x in xs]
    after = mb.memory(mb.CuArray)
    assert after.used - before.used == 3 * xs[0].nbytes
    assert after.place == xs[0].place
    assert after.total >= after.free > 0
    held = next(h for h in after.arrays if h.shape == (30, 40))
    assert (held.type, held.count, held.nbytes) == ("CuArray[float64, 2]", 3, 3 * xs[0].nbytes)
    assert list(after.arrays) == sorted(after.arrays, key=lambda h: -h.nbytes)
    del xs, parts
    assert mb.memory(mb.CuArray).used == before.used


def test_memory_reads_well():
    x = mb.CuArray(np.zeros(1 << 17))
    report = mb.memory(mb.CuArray)
    assert repr(report).startswith("memory of cuda:0\n  used")
    assert "CuArray[float64, 1] of shape (131072,): 1.0 MiB" in repr(report)
    assert "1.0 MiB" in report._repr_html_()
    assert x.nbytes == 1 << 20


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray], ids=["host", "ref"])
def test_memory_of_every_place(family):
    x = family(np.zeros((2, 1 << 18)))
    report = mb.memory(family)
    assert report.place == x.place
    assert report.used >= x.nbytes
    assert any(h.shape == (2, 1 << 18) for h in report.arrays)
    mb.free_memory(family)


def test_free_memory_of_the_host():
    x = mb.HostArray(np.zeros(1 << 20))
    del x
    assert mb.memory(mb.HostArray).held >= 1 << 23
    mb.free_memory(mb.HostArray)
    assert mb.memory(mb.HostArray).held == 0


def test_memory_without_a_device_is_that_of_the_card_in_use():
    mb.CuArray([1.0])
    assert mb.memory().place.kind == "cuda"
    with mb.default_array(mb.RefArray):
        assert mb.memory().place.kind == "ref"


def test_out_of_memory_says_what_holds_it_and_loses_nothing(limited):
    values = np.arange(600.0)
    x, y = mb.CuArray(values), mb.CuArray(values[::-1])
    held = mb.zeros((5, 200), device=mb.CuArray)
    limited(1000)
    with pytest.raises(mb.OutOfMemoryError, match=r"no room for an array of 4\.7 KiB") as caught:
        mb.materialize(x * y + 1)
    said = str(caught.value)
    assert "CuArray[float64, 2] of shape (5, 200): 7.8 KiB" in said
    assert "2 × CuArray[float64, 1] of shape (600,)" in said
    assert "the limit is" in said and "set_memory_limit" in said
    assert isinstance(caught.value, MemoryError)
    assert_same(x, values)
    assert_same(held, np.zeros((5, 200)))
    del held, caught
    assert_same(x * y + 1, values * values[::-1] + 1)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: x.__setitem__(Ellipsis, y * 2 + 1),
        lambda x, y: x.__setitem__(slice(1, 3), y[1:3] * 2),
        lambda x, y: x.__iadd__(y),
    ],
    ids=["whole", "part", "in place"],
)
def test_out_of_memory_in_a_write_leaves_the_destination(limited, write):
    values = np.arange(600.0)
    x, y = mb.CuArray(values), mb.CuArray(values)
    reader = x + 1  # needs the old contents
    limited(100)
    with pytest.raises(mb.OutOfMemoryError):
        write(x, y)
    mb.set_memory_limit(None, mb.CuArray)
    assert_same(x, values)
    assert_same(reader, values + 1)
    write(x, y)
    assert not np.array_equal(mb.to_numpy(x), values)


def test_what_only_a_cycle_holds_makes_room(limited):
    class Node:
        pass

    limited(6000)
    node = Node()
    node.me, node.array = node, mb.zeros(500, device=mb.CuArray)
    gc.disable()
    try:
        del node
        assert_same(mb.ones(500, device=mb.CuArray), np.ones(500))
    finally:
        gc.enable()


def test_limits():
    total = mb.memory(mb.CuArray).total
    try:
        mb.set_memory_limit(0.25, mb.CuArray)
        assert mb.memory(mb.CuArray).limit == total // 4
        mb.set_memory_limit(np.int64(1 << 30), "cuda")
        assert mb.memory(mb.CuArray).limit == 1 << 30
        for wrong in (0, -1, 1.5, 0.0):
            with pytest.raises(ValueError, match=r"limit|fraction"):
                mb.set_memory_limit(wrong, mb.CuArray)
        with pytest.raises(ValueError, match="pool_bytes"):
            mb.set_memory_limit(100, mb.HostArray)
    finally:
        mb.set_memory_limit(None, mb.CuArray)
    assert mb.memory(mb.CuArray).limit is None
