"""What only a real card can show of memory and time: other libraries, streams, graphs, running out of memory.

`python -m tests.gpu tests/test_gpu_card.py` runs them. What is not installed, or needs a second card, is
skipped.
"""

import gc
import os
import time

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb

# JAX, which is imported by its test, shall leave memory to the others.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
pytestmark = pytest.mark.card
two_cards = pytest.mark.skipif(
    mb.settings.cuda == "simulated" or mb.CuArray.cards() < 2, reason="there are not two cards"
)

VALUES = np.arange(1.0, 13.0).reshape(3, 4)


def address(x):
    return mb.ext.tree(mb.materialize(x)).view.ptr


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


# CuPy


@pytest.mark.parametrize(
    "show", [lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[::-1], lambda x: x[:0],
     lambda x: x[0, 0]],
    ids=["whole", "turned", "part", "reversed", "empty", "element"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "?", "c16"])
def test_cupy_takes_ours_and_gives_its_own(cupy, show, dtype):
    values = VALUES.astype(dtype)
    x = show(mb.CuArray(values))
    for take in (cupy.from_dlpack, cupy.asarray):
        theirs = take(x)
        np.testing.assert_array_equal(cupy.asnumpy(theirs), show(values))
        if theirs.size:
            assert theirs.data.ptr == mb.ext.tree(x).view.ptr
        del theirs  # (what was handed out keeps its values: sharing would move the array)
    theirs = show(cupy.asarray(values))
    for ours in (mb.asarray(theirs), mb.from_dlpack(theirs)):
        assert_same(ours, show(values))
        assert not theirs.size or mb.ext.tree(ours).view.ptr == theirs.data.ptr


def test_what_cupy_was_shown_keeps_its_values(cupy):
    x = mb.CuArray(VALUES)
    where = address(x)
    shown, part = cupy.from_dlpack(x), cupy.from_dlpack(x[1:])
    x += 1
    x[0] = 0
    np.testing.assert_array_equal(shown.get(), VALUES)
    np.testing.assert_array_equal(part.get(), VALUES[1:])
    moved = address(x)
    assert moved != where
    del shown, part
    gc.collect()
    x += 1
    assert address(x) == moved


def test_cupy_and_we_write_to_shared_memory(cupy):
    x = mb.CuArray(VALUES)
    pending = x * 2
    theirs = cupy.asarray(x)
    theirs += 1
    assert_same(x, VALUES + 1)
    assert_same(pending, VALUES * 2)
    x[1] = 0
    x[...] = x[::-1]
    expected = VALUES + 1
    expected[1] = 0
    np.testing.assert_array_equal(theirs.get(), expected[::-1])
    ours = mb.asarray(theirs)
    ours *= 2
    np.testing.assert_array_equal(theirs.get(), expected[::-1] * 2)


def test_cupys_arrays_are_operands(cupy):
    x, c = mb.CuArray(VALUES), cupy.asarray(VALUES)
    with mb.count() as count:
        results = [
            x + c,
            mb.add(c, x),
            mb.where(x > 2, c, 0.0),
            mb.sum(c, axis=0),
            mb.exp(c),
            x @ c.T,
            mb.roll(c, 1),
        ]
        expected = [2 * VALUES, 2 * VALUES, np.where(VALUES > 2, VALUES, 0.0), VALUES.sum(0), np.exp(VALUES),
                    VALUES @ VALUES.T, np.roll(VALUES, 1)]  # fmt: skip
        for r in results:
            assert isinstance(r, mb.CuArray)
            mb.materialize(r)
    assert count.transfers == 0
    for r, e in zip(results, expected, strict=True):
        assert_same(r, e, rtol=1e-14)
    assert isinstance(c + x, cupy.ndarray)  # the first operand's library takes it
    z = mb.zeros((3, 4), device=mb.CuArray)
    z[...] = c
    z[0] = c[1]
    assert_same(z, np.stack([VALUES[1], VALUES[1], VALUES[2]]))
    with pytest.raises(mb.PlaceError):
        mb.HostArray(VALUES) + c
    assert_same(mb.HostArray(c), VALUES)


def test_addresses_that_are_no_memory_of_a_card(cupy):
    class Claims:
        def __init__(self, pointer):
            self.__cuda_array_interface__ = {
                "version": 3, "shape": (3,), "typestr": "<f8", "data": (pointer, False), "strides": None
            }  # fmt: skip

        __cuda_array_interface__ = None

    n = np.zeros(3)
    with pytest.raises(mb.DeviceError, match="no memory of a card"):
        mb.asarray(Claims(n.__array_interface__["data"][0]))
    memory = cupy.cuda.memory.Memory(1 << 20)  # not of the pool
    pointer = memory.ptr
    assert mb.asarray(Claims(pointer)).shape == (3,)
    del memory
    gc.collect()
    with pytest.raises(mb.DeviceError, match="given back"):
        mb.asarray(Claims(pointer))


def test_streams_of_cupy_are_honoured(cupy):
    n = 1 << 22
    s = cupy.cuda.Stream(non_blocking=True)
    with s:
        x = mb.CuArray(np.full(n, 2.0))
        y = mb.materialize(mb.sqrt(x * x) + 1)
        assert mb.CuArray.driver().stream_number() == s.ptr
        theirs = cupy.from_dlpack(y) * 2
        s.synchronize()
        assert float(theirs[-1]) == 6.0


# Other libraries


def test_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no card")
    x = mb.CuArray(VALUES)
    theirs = torch.from_dlpack(x)
    assert theirs.data_ptr() == address(x) and theirs.device.type == "cuda"
    x += 1
    np.testing.assert_array_equal(theirs.cpu().numpy(), VALUES)
    shared = torch.as_tensor(mb.CuArray(VALUES), device="cuda")
    np.testing.assert_array_equal(shared.cpu().numpy(), VALUES)
    t = torch.arange(12, dtype=torch.float64, device="cuda").reshape(3, 4)
    ours = mb.asarray(t.T)
    assert address(ours) == t.data_ptr()
    t += 1
    assert_same(ours, np.arange(1.0, 13.0).reshape(3, 4).T)
    ours *= 2
    np.testing.assert_array_equal(t.cpu().numpy(), np.arange(2.0, 26.0, 2).reshape(3, 4))
    assert_same(mb.CuArray(t), t.cpu().numpy())
    for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64):
        v = torch.ones(5, dtype=dtype, device="cuda")
        assert_same(mb.asarray(v), v.cpu().numpy())
        np.testing.assert_array_equal(
            torch.from_dlpack(mb.CuArray(v.cpu().numpy())).cpu().numpy(), v.cpu().numpy()
        )
    with pytest.raises((TypeError, ValueError, BufferError)):
        mb.asarray(torch.ones(2, dtype=torch.bfloat16, device="cuda"))


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no card")
    x = mb.CuArray(VALUES.astype("f4"))
    theirs = jax.dlpack.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(theirs * 2), VALUES.astype("f4") * 2)
    x += 1
    np.testing.assert_array_equal(np.asarray(theirs), VALUES.astype("f4"))
    ours = mb.asarray(theirs * 3)
    assert_same(ours + 1, VALUES.astype("f4") * 3 + 1)
    with pytest.raises(ValueError, match="read-only"):  # JAX's arrays never change
        ours += 1


def test_numba():
    cuda = pytest.importorskip("numba.cuda")
    x = mb.CuArray(VALUES)

    @cuda.jit
    def doubled(a):
        i, j = cuda.grid(2)
        if i < a.shape[0] and j < a.shape[1]:
            a[i, j] *= 2

    doubled[(1, 1), (8, 8)](cuda.as_cuda_array(x))
    doubled[(1, 1), (8, 8)](x)
    assert_same(x, VALUES * 4)
    theirs = cuda.to_device(VALUES)
    ours = mb.asarray(theirs)
    ours += 1
    np.testing.assert_array_equal(theirs.copy_to_host(), VALUES + 1)


# Memory


@pytest.fixture
def limited():
    def limit(nbytes):
        gc.collect()
        mb.free_memory(mb.CuArray)
        report = mb.memory(mb.CuArray)
        mb.set_memory_limit(report.used + report.held + nbytes, mb.CuArray)

    mb.CuArray([0.0])
    yield limit
    mb.set_memory_limit(None, mb.CuArray)


def test_out_of_memory_says_what_holds_it(limited):
    n = 1 << 20
    values = np.arange(float(n))
    limited(5 << 23)
    x, y, held = mb.CuArray(values), mb.CuArray(values), mb.ones((4, n // 4), device=mb.CuArray)
    more = mb.ones(n, device=mb.CuArray)
    with pytest.raises(mb.OutOfMemoryError, match="no room") as caught:
        keep = [mb.materialize(x * y + i) for i in range(4)]
    print(caught.value)
    assert "CuArray[float64, 2] of shape (4, 262144): 8.0 MiB" in str(caught.value)
    keep = None  # noqa: F841
    assert_same(x, values)
    assert float(mb.sum(more)) == n
    del held, caught
    assert_same(x * y + 1, values * values + 1)


def test_out_of_memory_in_a_routine_of_cupy(limited):
    n = 1 << 20
    x = mb.CuArray(np.arange(float(n))[::-1])
    limited(1 << 20)
    with pytest.raises(mb.OutOfMemoryError, match="no room"):
        mb.sort(x)
    mb.set_memory_limit(None, mb.CuArray)
    assert_same(mb.sort(x), np.arange(float(n)))


def test_memory_that_is_held_makes_room(limited):
    n = 1 << 20
    limited(3 << 23)
    for size in (n, n // 2, 2 * n, n // 3, 5 * n // 2):  # of sizes that do not fit each other
        x = mb.ones(size, device=mb.CuArray)
        assert float(mb.sum(x)) == size
        del x


def test_free_memory_gives_it_back():
    x = mb.ones(1 << 24, device=mb.CuArray)
    before = mb.memory(mb.CuArray)
    assert before.used >= 1 << 27 and any(h.shape == (1 << 24,) for h in before.arrays)
    del x
    gc.collect()
    assert mb.memory(mb.CuArray).held >= 1 << 27
    mb.free_memory(mb.CuArray)
    after = mb.memory(mb.CuArray)
    assert after.held < 1 << 27  # (what is free, other processes change, too)
    print(repr(after))


# Streams


def test_streams_order_their_work():
    n = 1 << 24
    x = mb.CuArray(np.zeros(n))
    for i in range(20):
        with mb.stream():
            x = mb.materialize(mb.sqrt(x * x) + 1)
            with mb.stream():
                y = mb.materialize(x * 2)
            y = mb.materialize(y + x)
        assert float(mb.max(y)) == 3 * (i + 1)
    assert float(mb.min(x)) == float(mb.max(x)) == 20


def test_memory_freed_in_a_block_is_not_used_before_its_end():
    n = 1 << 24
    for _ in range(10):
        x = mb.CuArray(np.full(n, 3.0))
        with mb.stream():
            for _ in range(20):
                x = mb.materialize(x * 1.0 + 0.0)  # lets go of memory that the stream still reads
        noise = [mb.materialize(mb.zeros(n, device=mb.CuArray) - i) for i in range(4)]
        assert float(mb.min(x)) == float(mb.max(x)) == 3.0
        del noise


def test_streams_without_join():
    n = 1 << 22
    x = mb.CuArray(np.ones(n))
    streams = [mb.stream(join=False) for _ in range(3)]
    results = []
    for i, s in enumerate(streams):
        with s:
            y = mb.materialize(x * i)
            for _ in range(10):
                y = mb.materialize(mb.sqrt(y * y))
            results.append(y)
    for s in streams:
        s.join()
    assert [float(mb.max(y)) for y in results] == [0.0, 1.0, 2.0]
    mb.synchronize()


# Graphs


def test_a_graph_of_kernels_reductions_and_routines():
    x = mb.CuArray(VALUES)
    z, m = mb.zeros((3, 4), device=mb.CuArray), mb.zeros((3, 3), device=mb.CuArray)
    with mb.capture() as g:
        z[...] = mb.cosh(x) * 0 + x * 2 + 1  # a kernel that is compiled and loaded in the block
        s = mb.sum(z * z)
        m[...] = z @ z.T
        r = mb.sort(mb.reshape(z[:, ::-1], -1))
        n = mb.CuArray(np.array([1.0, 2.0, 3.0, 4.0])) + z

    def check(values):
        e = values * 2 + 1
        assert_same(z, e)
        assert_same(s, np.sum(e * e), rtol=1e-14)
        assert_same(m, e @ e.T, rtol=1e-14)
        assert_same(r, np.sort(e, axis=None))
        assert_same(n, e + np.arange(1.0, 5.0))

    check(VALUES)
    print(g)
    for values in (VALUES[::-1], VALUES * 0, VALUES * 3):
        x[...] = mb.CuArray(values)
        junk = [mb.CuArray(np.full((3, 4), -7.0)) for _ in range(50)]
        gc.collect()
        mb.free_memory()
        g.replay()
        check(values)
        del junk


def test_a_recurrence_replayed_many_times():
    u = mb.CuArray(VALUES)
    with mb.capture() as g:
        u[1:-1] = (u[:-2] + u[2:]) / 2
        u += 1
    expected = VALUES.copy()

    def step():
        expected[1:-1] = (expected[:-2] + expected[2:]) / 2
        expected[...] += 1

    step()
    for _ in range(50):
        g.replay()
        step()
    assert_same(u, expected)


def test_what_was_said_before_a_replay_stays():
    x, z = mb.CuArray(VALUES), mb.CuArray(VALUES)
    with mb.capture() as g:
        z[...] = x + z
    waits, other = z * 10, mb.zeros((3, 4), device=mb.CuArray)
    other[...] = z
    reader = x + 1
    x[...] = 7
    g.replay()
    assert_same(z, VALUES * 2 + 7)
    assert_same(waits, VALUES * 20)
    assert_same(other, VALUES * 2)
    assert_same(reader, VALUES + 1)


def test_values_cannot_be_read_in_a_block():
    x = mb.CuArray(VALUES)
    for read in (lambda: float(mb.sum(x * 3)), lambda: mb.to_numpy(x), mb.synchronize, lambda: mb.unique(x)):
        with pytest.raises(mb.DeviceError, match="capture"), mb.capture():
            read()
        assert_same(x + 1, VALUES + 1)  # the card is as it was
    g = mb.capture()
    with pytest.raises(ZeroDivisionError), g:
        x += 1
        raise ZeroDivisionError
    assert_same(x, VALUES + 1)


def test_the_memory_of_a_graph_goes_with_it():
    x = mb.ones(1 << 22, device=mb.CuArray)
    before = mb.memory().used
    with mb.capture() as g:
        y = mb.sqrt(mb.materialize(mb.materialize(x + 1) * 2))
    g.replay()
    assert mb.memory().used - before >= 1 << 25
    del g
    gc.collect()
    assert mb.memory().used - before < 2 << 25
    assert float(mb.max(y)) == 2.0


def test_the_cost_of_replays():
    x, z = mb.CuArray(np.ones(100)), mb.CuArray(np.ones(100))
    kernels = 200
    with mb.capture() as g:
        for i in range(kernels):
            z[...] = x * 2 + z * (i + 1.0)
    mb.synchronize()
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(10):
            g.replay()
        best = min(best, (time.perf_counter() - start) / 10)
        mb.synchronize()
    print(f"{g}: {best / kernels * 1e6:.3f} us of the host for a kernel")
    start = time.perf_counter()
    for _ in range(20):
        g.replay()
    mb.synchronize()
    took = (time.perf_counter() - start) / 20 / kernels
    print(f"{took * 1e6:.3f} us for a kernel, done")
    assert g.kernels == kernels and best / kernels < 1.2e-6


# Two cards


@two_cards
def test_copies_from_card_to_card():
    second = mb.CuArray.on(1)
    big = np.arange(float(1 << 22)).reshape(1 << 10, -1)
    x = mb.CuArray(big)
    for show in (lambda a: a, lambda a: a.T, lambda a: a[1:, ::3], lambda a: a * 2):
        with mb.count() as c:
            y = mb.adapt(second, show(x))
        assert c.transfers == 1 and y.place == second.home
        assert_same(y, show(big))
        assert_same(mb.adapt(mb.CuArray, y * 1), show(big))
    with pytest.raises(mb.PlaceError, match=r"CuArray\.on\(1\)"):
        second(big) + x
    assert_same(mb.sum(second(big) @ second(big).T), (big @ big.T).sum(), rtol=1e-12)
    print(mb.memory(second))


@two_cards
def test_streams_and_graphs_of_the_second_card():
    second = mb.CuArray.on(1)
    x = second(VALUES)
    with mb.stream(second):
        x += 1
    with mb.capture(second) as g:
        x *= 2
    g.replay()
    assert_same(x, (VALUES + 1) * 4)


@two_cards
def test_the_other_cards_arrays_of_cupy(cupy):
    with cupy.cuda.Device(1):
        c = cupy.asarray(VALUES)
    x = mb.asarray(c)
    assert x.place == mb.CuArray.on(1).home
    assert_same(x + 1, VALUES + 1)
    assert_same(mb.CuArray(c), VALUES)
    with pytest.raises(mb.PlaceError):
        mb.CuArray(VALUES) + c
