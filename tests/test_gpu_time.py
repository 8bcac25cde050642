"""Streams and graphs. (Simulated cards, whose streams do their work as late as they may.)"""

import gc
import threading

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

VALUES = np.arange(1.0, 13.0).reshape(3, 4)
simulated = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")


def card(values=VALUES):
    return mb.CuArray(values)


# Streams


def test_what_a_block_computes_is_there_after_it():
    x = card()
    with mb.stream(mb.CuArray) as s:
        y = mb.materialize(x * 2)
        z = mb.sum(y)  # pending: it leaves the block
    assert_same(y + z, VALUES * 2 + VALUES.sum() * 2)
    assert s.ptr and s.place == x.place and s.__cuda_stream__() == (0, s.ptr)
    s.synchronize()


def test_a_block_begins_after_what_was_queued_before():
    x = card()
    with mb.stream(mb.CuArray):
        y = mb.materialize(x + 1)
        with mb.stream(mb.CuArray):
            z = mb.materialize(y * 2)
            assert_same(z, (VALUES + 1) * 2)  # reading waits
        y += 1
    assert_same(y, VALUES + 2)
    assert_same(z, (VALUES + 1) * 2)


def test_values_that_are_let_go_of_in_a_block():
    x = card()
    with mb.stream(mb.CuArray):
        for _ in range(4):
            x = mb.materialize(mb.sqrt(x * x) + 1)
            gc.collect()
    assert_same(x, VALUES + 4)


@simulated
def test_without_join_the_block_does_not_hold_up_what_follows():
    x, z = card(), card()
    mb.materialize(x), mb.materialize(z)
    s = mb.stream(mb.CuArray, join=False)
    with s:
        z[...] = x * 2
    assert_same(z, VALUES)  # the card has not come to it
    s.join()
    assert_same(z, VALUES * 2)
    t = mb.stream(mb.CuArray, join=False)
    with s:
        z += 1
    t.wait(s)
    with t:
        y = mb.materialize(z * 1)
    t.synchronize()
    assert_same(y, VALUES * 2 + 1)


def test_synchronize_waits_for_all_streams():
    x = card()
    mb.materialize(x)
    with mb.stream(mb.CuArray, join=False):
        x += 1
    mb.synchronize()
    assert_same(x, VALUES + 1)
    mb.synchronize(mb.CuArray)
    mb.synchronize(mb.HostArray)


@simulated
def test_streams_are_left_when_something_fails():
    with pytest.raises(ZeroDivisionError), mb.stream(mb.CuArray):
        raise ZeroDivisionError
    driver = mb.CuArray.driver()
    assert driver.current_stream() is driver.default


def test_handles_of_streams_are_used_again():
    used = {mb.stream(mb.CuArray).ptr for _ in range(5)}
    assert len(used) == 1


def test_each_thread_has_its_own_current_stream():
    x, seen = card(), []
    with mb.stream(mb.CuArray) as s:
        thread = threading.Thread(target=lambda: seen.append(mb.CuArray.driver().current_stream().ptr))
        thread.start()
        thread.join()
        assert mb.CuArray.driver().current_stream().ptr == s.ptr
    assert seen == [0] and x.shape == (3, 4)


def test_a_stream_needs_a_card():
    for make in (mb.stream, mb.capture):
        with pytest.raises(mb.DeviceError, match="belongs to a card"):
            make(mb.HostArray)


# Graphs


def test_a_replay_does_the_block_again():
    x, z = card(), mb.zeros((3, 4), device=mb.CuArray)
    with mb.capture(mb.CuArray) as g:
        z[...] = x * 2 + 1
    assert_same(z, VALUES * 2 + 1)  # the block is done once
    x[...] = 5
    assert_same(z, VALUES * 2 + 1)
    with mb.count() as c:
        g.replay()
    assert_same(z, np.full((3, 4), 11.0))
    assert (c.launches, g.kernels) == (0, 1)
    assert "1 kernel," in repr(g)


def test_a_recurrence():
    u = card()
    with mb.capture(mb.CuArray) as step:
        u[...] = u * 2
        u += 1
    expected = VALUES * 2 + 1
    assert_same(u, expected)
    for _ in range(3):
        step.replay()
        expected = expected * 2 + 1
    assert_same(u, expected)


@pytest.mark.parametrize(
    "write",
    [
        lambda u: u.__setitem__(slice(1, -1), u[:-2] + u[2:]),
        lambda u: u.__setitem__(Ellipsis, u[::-1] * 1.0),
        lambda u: u.__setitem__(slice(None, None, 2), u[1::2]),
        lambda u: u.__setitem__((slice(None), 0), u[:, 1] * 3),
        lambda u: u.__setitem__(Ellipsis, mb.sum(u, axis=0) + 0 * u),
        lambda u: u.__imul__(mb.mean(u)),
    ],
    ids=["stencil", "reverse", "interleave", "column", "sum", "mean"],
)
def test_writes_that_overlap_what_they_read_stay_in_place(write):
    values = np.arange(24.0).reshape(6, 4)
    u = card(values)
    where = mb.ext.tree(u).view.ptr
    with mb.capture(mb.CuArray) as g:
        write(u)
    plain = mb.HostArray(values)
    write(plain)
    assert_same(u, plain, rtol=1e-15)
    g.replay()
    write(plain)
    assert_same(u, plain, rtol=1e-15)
    assert mb.ext.tree(u).view.ptr == where


def test_names_that_live_at_the_end_are_results():
    x = card()
    with mb.capture(mb.CuArray) as g:
        y = mb.sqrt(x) * 2  # pending
        s = mb.sum(y, axis=1)
        unused = x + 100
        del unused
    assert y.evaluated and s.evaluated
    assert_same(y, np.sqrt(VALUES) * 2)
    x *= 4
    before = y + 0  # waits; keeps what it was said of
    g.replay()
    assert_same(y, np.sqrt(VALUES * 4) * 2)
    assert_same(s, (np.sqrt(VALUES * 4) * 2).sum(axis=1), rtol=1e-15)
    assert_same(before, np.sqrt(VALUES) * 2)


def test_what_was_said_before_a_replay_stays():
    x, z = card(), mb.zeros((3, 4), device=mb.CuArray)
    with mb.capture(mb.CuArray) as g:
        z[...] = x + 1
    waits, part, other = z * 10, z[1] * 10, mb.zeros((3, 4), device=mb.CuArray)
    other[...] = z
    total = mb.sum(z)
    x[...] = 0
    g.replay()
    assert_same(z, np.ones((3, 4)))
    for got, expected in ((waits, (VALUES + 1) * 10), (part, (VALUES[1] + 1) * 10), (other, VALUES + 1)):
        assert_same(got, expected)
    assert float(total) == (VALUES + 1).sum()
    assert float(mb.sum(z)) == 12
    g.replay()
    assert_same(waits, (VALUES + 1) * 10)


def test_what_was_written_elsewhere_comes_back():
    x, z = card(), card()
    with mb.capture(mb.CuArray) as g:
        z[...] = x + z
    expected = VALUES * 2
    reader = x + 1  # so that the next write goes to other memory
    x[...] = 7
    z = z
    g.replay()
    expected = expected + 7
    assert_same(z, expected)
    assert_same(reader, VALUES + 1)
    x[...] = x * 2  # pending or in place, as it may be
    keep = z * 1
    z[...] = mb.where(z > 15, z, 0.0)
    expected = np.where(expected > 15, expected, 0.0) + 14
    g.replay()
    assert_same(z, expected)
    assert_same(keep, VALUES * 2 + 7)
    assert_same(x, np.full((3, 4), 14.0))


def test_what_waits_at_the_start_is_computed_before():
    x = card()
    y = x * 2
    with mb.capture(mb.CuArray) as g:
        z = y + 1
    x[...] = 0
    g.replay()
    assert_same(z, VALUES * 2 + 1)  # y keeps its values
    assert_same(y, VALUES * 2)
    y[...] = 3
    g.replay()
    assert_same(z, np.full((3, 4), 4.0))


def test_arrays_that_shared_a_version():
    x, y = card(), card()
    y[...] = x
    with mb.capture(mb.CuArray) as g:
        w = x * 2
        y[...] = w
        y += 1
        z = mb.zeros((3, 4), device=mb.CuArray)
        z[...] = x
    x[...] = 10
    g.replay()
    for got, value in ((w, 20.0), (y, 21.0), (z, 10.0), (x, 10.0)):
        assert_same(got, np.full((3, 4), value))
    y[...] = 0
    assert_same(w, np.full((3, 4), 20.0))


def test_memory_of_a_graph_is_nobody_elses():
    x = card()
    with mb.capture(mb.CuArray) as g:
        y = (
            mb.sum(mb.sqrt(x * x) @ mb.ones((4, 3), device=mb.CuArray))
            if False
            else mb.sum(mb.materialize(x * x))
        )
    del x
    gc.collect()
    others = [mb.CuArray(np.full((3, 4), -1.0)) for _ in range(8)]
    g.replay()
    assert float(y) == (VALUES * VALUES).sum()
    assert all(bool(mb.all(o == -1)) for o in others)
    used = mb.memory(mb.CuArray).used
    del g
    gc.collect()
    assert mb.memory(mb.CuArray).used < used


@simulated
def test_values_cannot_be_read_in_the_block():
    x = card()
    mb.CuArray.on(1)([0.0])
    for read in (
        lambda: float(mb.sum(x * 2)), lambda: mb.to_numpy(x), lambda: print(x), lambda: mb.synchronize(),
        lambda: mb.adapt(mb.CuArray.on(1), x),
    ):  # fmt: skip
        with (
            pytest.raises(mb.DeviceError, match=r"Inside mb\.capture\(\) nothing is computed yet"),
            mb.capture(mb.CuArray),
        ):
            read()
    assert_same(x, VALUES)


def test_readers_of_old_contents_move_in_the_block():
    x, z = card(), card()
    where = mb.ext.tree(mb.materialize(z)).view.ptr
    with mb.capture(mb.CuArray) as g:
        reader, part = z * 2, z[1:, 1]
        kept = part + 0
        z[...] = x + 1
        z[z > 10] = -1
        z[0] = kept[0]
    expected = VALUES + 1
    expected[expected > 10] = -1
    expected[0] = VALUES[1, 1]
    assert_same(z, expected)
    assert_same(reader, VALUES * 2)
    g.replay()
    assert_same(reader, expected * 2)
    assert mb.ext.tree(z).view.ptr == where


def test_what_another_library_shows_is_not_written_in_the_block():
    z = card()
    shown = z.__dlpack__(max_version=(1, 0))
    with pytest.raises(mb.DeviceError, match="another library still shows"), mb.capture(mb.CuArray):
        z += 1
    del shown
    assert_same(z, VALUES)


def test_a_block_that_fails_has_done_what_came_before():
    x = card()
    g = mb.capture(mb.CuArray)
    with pytest.raises(ZeroDivisionError), g:
        x += 1
        raise ZeroDivisionError
    assert_same(x, VALUES + 1)
    assert not mb.CuArray.driver().recorders
    x += 1
    assert_same(x, VALUES + 2)


def test_graphs_are_recorded_once_and_not_within_each_other():
    x = card()
    with mb.capture(mb.CuArray) as g:
        x += 1
        with pytest.raises(mb.DeviceError, match="recorded already"), mb.capture(mb.CuArray):
            pass
        with pytest.raises(mb.DeviceError, match="after its block"):
            mb.capture(mb.CuArray).replay()
    with pytest.raises(mb.DeviceError, match="recorded once"), g:
        pass
    assert_same(x, VALUES + 1)


def test_numbers_of_the_host_are_those_of_the_recording():
    x, factor = card(), mb.CuArray(2.0)
    n = np.full(4, 3.0)
    with mb.capture(mb.CuArray) as g:
        z = x * factor + mb.CuArray(n)
    n[...] = 0
    factor[...] = 5
    g.replay()
    assert_same(z, VALUES * 5 + 3)


def test_what_another_library_shows_is_not_overwritten():
    x, z = card(), card()
    with mb.capture(mb.CuArray) as g:
        z[...] = x + 1
    capsule = z.__dlpack__(max_version=(1, 0))
    with pytest.raises(mb.DeviceError, match="DLPack"):
        g.replay()
    del capsule
    g.replay()
    z.__cuda_array_interface__
    x[...] = 1
    g.replay()
    assert_same(z, np.full((3, 4), 2.0))


@simulated
def test_a_graph_on_the_second_card():
    second = mb.CuArray.on(1)
    x = second(VALUES)
    with mb.capture(second) as g, mb.stream(second):
        x[...] = x + 1
    g.replay()
    assert_same(x, VALUES + 2)
    assert g.place == second.home


@simulated
def test_replays_go_to_the_current_stream():
    x = card()
    with mb.capture(mb.CuArray) as g:
        x += 1
    s = mb.stream(mb.CuArray, join=False)
    with s:
        g.replay()
    assert_same(x, VALUES + 1)
    s.join()
    assert_same(x, VALUES + 2)
