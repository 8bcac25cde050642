"""Random numbers on a card: the host's bits, from the kernels' text run in two ways."""

import types

import gpukernels
import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.random import onblocks
from mirabelle.arraytypes.random.samplers import TABLE, Draw
from mirabelle.backends.gpu import random as on_card

STREAM = (0x12345678, 0x9ABCDEF0, 7, 1)
PARAMETERS = {
    "bounded_4": (5, 2**32 - 7, 2**32 % (2**32 - 7)),
    "bounded_8": (2**64 - 5, 2**63 + 9, 2**64 % (2**63 + 9)),
    "bounded_each": (3, 2**63 + 1),
    "gamma": (0.7,),
    "log_gamma": (0.01,),
    "haversine": (2.5,),
    "zipf": (1.7,),
    "poisson": (30.0,),
    "binomial": (100, 0.3),
    "hypergeometric": (50, 60, 40),
}
# One row; one row that begins within a block of words; rows at equal distances, and at others.
ROWS = [((1, 23), [0]), ((1, 21), [5]), ((3, 7), [2, 17, 32]), ((3, 5), [2, 17, 33])]


def expected(sampler, shape, starts, parameters, dtype=None):
    out = np.empty(shape, sampler.dtype if dtype is None else dtype)
    with np.errstate(all="ignore"):
        onblocks.fill(out, Draw(sampler, STREAM, parameters), np.asarray(starts, np.int64))
    return out


def assert_bits(got, want):
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))


def drawn(sampler, shape, starts, parameters, dtype=None):
    """What the simulated card draws, by the kernel."""
    family = mb.CuArray
    view = family._empty(shape, np.dtype(sampler.dtype if dtype is None else dtype))
    on_card.fill_by_kernel(
        family.driver(), view, Draw(sampler, STREAM, parameters), np.asarray(starts, np.int64)
    )
    return family._download(view)


@pytest.mark.parametrize("name", TABLE)
def test_kernel_has_the_hosts_bits(name):
    sampler, parameters = TABLE[name], PARAMETERS.get(name, ())
    for shape, starts in ROWS:
        assert_bits(drawn(sampler, shape, starts, parameters), expected(sampler, shape, starts, parameters))


@pytest.mark.parametrize("name", ["gamma", "poisson", "binomial", "hypergeometric", "bounded_each"])
def test_a_parameter_for_each_element(name):
    sampler = TABLE[name]
    for shape, starts in ROWS:
        n = shape[0] * shape[1]
        arrays = tuple([
            (np.arange(1, n + 1) / n * p).astype(d)
            for p, d in zip(PARAMETERS[name], sampler.parameters, strict=True)
        ])  # fmt: skip
        if name == "binomial":
            arrays = (np.arange(5, n + 5), np.linspace(0.1, 0.9, n))
        views = tuple([mb.CuArray._upload(a) for a in arrays])
        assert_bits(drawn(sampler, shape, starts, views), expected(sampler, shape, starts, arrays))


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "u8"])
def test_integers_are_cast_to_the_result(dtype):
    for count in (2, 100):
        parameters = (0, count, 2**32 % count)
        for shape, starts in ROWS:
            got = drawn(TABLE["bounded_4"], shape, starts, parameters, dtype)
            want = expected(TABLE["bounded_4"], shape, starts, parameters, dtype)
            np.testing.assert_array_equal(got, want)


# The same text compiled for this processor: types and casts as compilers take them


class CompiledByNumba:
    """A kernel without barriers, compiled for the host: its threads run one after the other."""

    def __init__(self, source):
        import numba
        from numba.extending import intrinsic

        from mirabelle.backends.gpu.names import Names, memory_function, scope_of

        self.source = source
        self.place = np.zeros(2, np.int32)
        where = self.place.__array_interface__["data"][0]
        load, store = (memory_function(intrinsic, f"{what}_i4") for what in ("load", "store"))
        options = {"error_model": "numpy"}
        device = types.SimpleNamespace(jit=lambda **_: numba.njit(**options))
        names = Names(
            intrinsic, {}, None, cuda=device,
            thread_x=numba.njit(lambda: load(where, 0)), block_x=numba.njit(lambda: load(where, 1)),
        )  # fmt: skip
        code = compile(source.text, source.name, "exec")
        scope = scope_of(code, names)
        exec(code, scope)
        kernel = numba.njit(**options)(scope[source.name])

        @numba.njit(**options)
        def run(blocks, threads, arguments):
            for b in range(blocks):
                for t in range(threads):
                    store(where, 0, numba.int32(t))
                    store(where, 1, numba.int32(b))
                    kernel(*arguments)

        self.run = run

    def __call__(self, grid, block, *arguments):
        convert = [np.dtype(c).type for c in self.source.codes]
        self.run(grid[0], block[0], tuple([t(a) for t, a in zip(convert, arguments, strict=True)]))


def run_over_a_row(name, kind):
    """The values of a sampler by its compiled kernel, and what they should be."""
    sampler, parameters = TABLE[name], PARAMETERS.get(name, ())
    n, lanes, dtype = 701, sampler.lanes, sampler.dtype
    out = np.zeros(n + 16, dtype)
    shift = -out.ctypes.data % 16 // dtype.itemsize
    source = on_card.source(sampler, dtype, (False,) * len(parameters), on_card.ONE, lanes > 1)
    first = 3 * lanes
    blocks = -(-n // lanes // 256) + 1
    arguments = out[shift:].ctypes.data, *STREAM, *parameters, first // lanes, 0, 1, n, n
    kind(source)((blocks, 1, 1), (256, 1, 1), *arguments)
    assert not out[shift + n :].any()
    return out[shift : shift + n], expected(sampler, (1, n), [first], parameters)[0]


@pytest.mark.parametrize("name", TABLE)
def test_lowered_text_has_the_same_bits(name):
    assert_bits(*run_over_a_row(name, gpukernels.OnHost))


def test_text_compiled_by_numba_has_the_same_bits():
    assert_bits(*run_over_a_row("normal_4", CompiledByNumba))


# The card's code


@pytest.mark.parametrize("name", ["normal", "normal_4", "bounded_8", "gamma"])
def test_ptx_rounds_exactly(name, tmp_path):
    sampler = TABLE[name]
    each = (False,) * len(sampler.parameters)
    ptx = gpukernels.ptx(on_card.source(sampler, sampler.dtype, each, on_card.ONE, sampler.lanes > 1))
    for word in ("fma.", "approx", ".ftz", "div.full", ".local"):
        assert word not in ptx
    registers, spills = gpukernels.resources(ptx, tmp_path)
    assert registers <= 64
    assert spills == 0


# As users see it


@pytest.mark.parametrize("method", ["random", "standard_normal", "standard_exponential"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_generator_gives_the_hosts_numbers(method, dtype):
    def make(device):
        return getattr(mb.random.default_rng(42, device=device), method)((37, 3), dtype=dtype)

    x = make(mb.CuArray)
    assert isinstance(x, mb.CuArray)
    assert_bits(mb.to_numpy(x), mb.to_numpy(make(mb.HostArray)))


def test_generator_with_parameters_from_the_card():
    shape = np.linspace(0.2, 4.0, 12).reshape(3, 4)
    on_host = mb.random.default_rng(5).gamma(mb.HostArray(shape))
    with mb.count() as counts:
        x = mb.random.default_rng(5, device=mb.CuArray).gamma(mb.CuArray(shape))
        assert isinstance(x, mb.CuArray)
        x = mb.materialize(x)
    assert counts.launches <= 2
    assert_bits(mb.to_numpy(x), mb.to_numpy(on_host))


def test_integers_and_pieces():
    def make(device):
        rng = mb.random.default_rng(3, device=device)
        whole = rng.integers(-5, 1000, (8, 6))
        return mb.to_numpy(whole), mb.to_numpy(rng.piece((2, 1), (8, 6)).integers(-5, 1000, (4, 3)))

    for got, want in zip(make(mb.CuArray), make(mb.HostArray), strict=True):
        np.testing.assert_array_equal(got, want)
