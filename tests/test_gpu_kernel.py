"""@mb.kernel on cards: what is special to them, on a simulated one; and that its text compiles well.

That kernels do the same as on the host is in test_kernel.py, which runs on a simulated card too.
"""

import cmath
import importlib.util
import math
import re

import numpy as np
import pytest
from compare import assert_same, contents
from gpukernels import assembler, resources

import mirabelle as mb
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.gridkernel import IndexKernelText
from mirabelle.backends.gpu import kernelplan
from mirabelle.backends.gpu.simulator import SimulatedDriver
from mirabelle.dispatch.settings import settings

TILE = 16
rng = np.random.default_rng(4)


def cu(x, dtype=None):
    return mb.CuArray(np.asarray(x, dtype))


# Kernels as users write them: each is run, and compiled for a card


@mb.kernel
def saxpy(k, y, a, x):
    i = k.index(0)
    y[i] = a * x[i] + y[i]


def of_saxpy():
    x, y = rng.random(300), rng.random(300)
    out = cu(y)
    saxpy[300](out, 2.0, cu(x))
    return out, 2 * x + y


@mb.kernel(padded=True)
def transposed(k, out, x):
    tile = k.shared((TILE, TILE + 1), mb.float32)
    a, b = k.local()
    i, j = k.index()
    if k.valid:
        tile[a, b] = x[i, j]
    k.barrier()
    i, j = k.group(1) * TILE + a, k.group(0) * TILE + b
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = tile[b, a]


def of_transposed():
    x = rng.random((20, 37)).astype("f4")
    out = cu(np.zeros((37, 20), "f4"))
    transposed[(20, 37), (TILE, TILE)](out, cu(x))
    return out, x.T


@mb.kernel(padded=True)
def summed(k, out, x):
    part = k.shared(64, mb.float64)
    i = k.local(0)
    part[i] = x[k.index(0)] if k.valid else 0.0
    half = k.group_size(0) // 2
    while half > 0:
        k.barrier()
        if i < half:
            part[i] += part[i + half]
        half //= 2
    if i == 0:
        k.atomic_add(out, 0, part[0])


def of_summed():
    x = rng.integers(0, 9, 200).astype(float)
    out = cu(np.zeros(1))
    summed[(200,), (64,)](out, cu(x))
    return out, np.array([x.sum()])


@mb.kernel(padded=True)
def histogram(k, counts, x):
    part = k.shared(16, mb.int32)
    i = k.local(0)
    if i < 16:
        part[i] = 0
    k.barrier()
    if k.valid:
        k.atomic_add(part, x[k.index(0)] & 15, 1)
    k.barrier()
    if i < 16 and part[i] > 0:
        k.atomic_add(counts, i, part[i])


def of_histogram():
    x = rng.integers(0, 16, 150).astype("u1")
    counts = cu(np.zeros(16, "i4"))
    histogram[(150,), (32,)](counts, cu(x))
    return counts, np.bincount(x, minlength=16).astype("i4")


@mb.kernel(padded=True)
def gravity(k, force, position, mass, softening):
    near = k.shared((32, 4), mb.float32)
    i, t = k.index(0), k.local(0)
    n = mass.shape[0]
    at = min(i, n - 1)
    x, y, z = position[at, 0], position[at, 1], position[at, 2]
    fx = fy = fz = mb.float32(0)
    for tile in range(k.groups(0)):
        j = tile * 32 + t
        for d in range(3):
            near[t, d] = position[j, d] if j < n else mb.float32(0)
        near[t, 3] = mass[j] if j < n else mb.float32(0)
        k.barrier()
        for s in range(32):
            dx, dy, dz = near[s, 0] - x, near[s, 1] - y, near[s, 2] - z
            distance = dx * dx + dy * dy + dz * dz + softening
            weight = near[s, 3] / (distance * math.sqrt(distance))
            fx += dx * weight
            fy += dy * weight
            fz += dz * weight
        k.barrier()
    if k.valid:
        force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz


def of_gravity():
    p, m = rng.random((40, 3)).astype("f4"), rng.random(40).astype("f4")
    force = cu(np.zeros((40, 3), "f4"))
    gravity[(40,), (32,)](force, cu(p), cu(m), np.float32(0.01))
    apart = p[None] - p[:, None]
    distance = (apart**2).sum(-1, keepdims=True) + 0.01
    return force, (apart * m[None, :, None] / distance**1.5).sum(1)


@mb.kernel
def life(k, after, before):
    i, j = k.index()
    n, m = before.shape
    alive = 0
    for a in range(-1, 2):
        for b in range(-1, 2):
            if a != 0 or b != 0:
                alive += before[(i + a) % n, (j + b) % m]
    after[i, j] = 1 if alive == 3 or (alive == 2 and before[i, j] == 1) else 0


def of_life():
    x = rng.integers(0, 2, (9, 14)).astype("u1")
    out = cu(np.zeros_like(x))
    life[x.shape](out, cu(x))
    alive = sum(np.roll(x, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)) - x
    return out, ((alive == 3) | ((alive == 2) & (x == 1))).astype("u1")


@mb.kernel(padded=True)
def matmul(k, out, a, b):
    left = k.shared((TILE, TILE), mb.float32)
    right = k.shared((TILE, TILE), mb.float32)
    p, q = k.local()
    i, j = k.index()
    total = mb.float32(0)
    for t in range((a.shape[1] + TILE - 1) // TILE):
        left[p, q] = a[i, t * TILE + q] if i < a.shape[0] and t * TILE + q < a.shape[1] else mb.float32(0)
        right[p, q] = b[t * TILE + p, j] if t * TILE + p < b.shape[0] and j < b.shape[1] else mb.float32(0)
        k.barrier()
        for n in range(TILE):
            total += left[p, n] * right[n, q]
        k.barrier()
    if k.valid:
        out[i, j] = total


def of_matmul():
    a, b = rng.random((20, 18)).astype("f4"), rng.random((18, 17)).astype("f4")
    out = cu(np.zeros((20, 17), "f4"))
    matmul[(20, 17), (TILE, TILE)](out, cu(a), cu(b))
    return out, a @ b


@mb.kernel
def matmul_in_registers(k, out, a, b):
    left = k.shared((8, 16), mb.float64)
    right = k.shared((8, 16), mb.float64)
    kept = k.private((2, 2), mb.float64)
    p, q = k.local()
    for i in range(2):
        for j in range(2):
            kept[i, j] = 0.0
    for t in range(a.shape[1] // 8):
        for s in range(2):
            left[q, p + 8 * s] = a[k.group(0) * 16 + p + 8 * s, t * 8 + q]
            right[p, q + 8 * s] = b[t * 8 + p, k.group(1) * 16 + q + 8 * s]
        k.barrier()
        for n in range(8):
            for i in range(2):
                for j in range(2):
                    kept[i, j] += left[n, p * 2 + i] * right[n, q * 2 + j]
        k.barrier()
    for i in range(2):
        for j in range(2):
            out[k.group(0) * 16 + p * 2 + i, k.group(1) * 16 + q * 2 + j] = kept[i, j]


def of_matmul_in_registers():
    a, b = rng.random((16, 16)), rng.random((16, 32))
    out = cu(np.zeros((16, 32)))
    matmul_in_registers[(8, 16), (8, 8)](out, cu(a), cu(b))
    return out, a @ b


@mb.kernel
def largest(k, out, x):
    k.atomic_max(out, 0, x[k.index(0)])


def of_largest():
    x = rng.normal(size=80).astype("f4")
    x[5] = np.nan
    out = cu([-np.inf], "f4")
    largest[80](out, cu(x))
    return out, np.array([np.nanmax(x)])


def of_checked():
    x, y = rng.random(50), rng.random(50)
    out = cu(y)
    saxpy.checked[50](out, 3, cu(x))
    return out, 3 * x + y


@mb.kernel
def heat(k, after, before, rate):
    a, b, c = k.index()
    n, m, p = k.size()
    middle = before[a, b, c]
    around = 6 * middle
    if 0 < a < n - 1 and 0 < b < m - 1 and 0 < c < p - 1:
        around = before[a - 1, b, c] + before[a + 1, b, c] + before[a, b - 1, c]
        around += before[a, b + 1, c] + before[a, b, c - 1] + before[a, b, c + 1]
    after[a, b, c] = middle + rate * (around - 6 * middle)


def of_heat():
    x = rng.random((4, 5, 6))
    out = cu(np.zeros_like(x))
    heat[x.shape](out, cu(x), 0.1)
    expected = x.copy()
    inner = (slice(1, -1),) * 3
    around = sum(np.roll(x, s, d) for s in (-1, 1) for d in range(3))
    expected[inner] += 0.1 * (around - 6 * x)[inner]
    return out, expected


@mb.kernel
def mandelbrot(k, out, limit):
    i, j = k.index()
    c = complex(-2 + 3 * j / k.size(1), -1 + 2 * i / k.size(0))
    z = 0j
    n = 0
    while n < limit and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c
        n += 1
    out[i, j] = n


def of_mandelbrot():
    out = cu(np.zeros((8, 12), "i4"))
    mandelbrot[8, 12](out, 20)
    c = -2 + 3 * np.arange(12) / 12 + 1j * (-1 + 2 * np.arange(8)[:, None] / 8)
    z, n = np.zeros_like(c), np.zeros(c.shape, "i4")
    for _ in range(20):
        inside = z.real**2 + z.imag**2 < 4
        n += inside
        z = np.where(inside, z * z + c, z)
    return out, n


@mb.kernel
def halved(k, y, x, a):
    i = k.index(0)
    y[i] = x[i] * a + 1


def of_halved():
    x = np.arange(40, dtype="f2")
    out = cu(np.zeros(40, "f2"))
    halved[40](out, cu(x), np.float16(0.5))
    return out, (x * np.float32(0.5) + 1).astype("f2")


@mb.jit
def distance(p, i):
    return mb.hypot(p[i, 0], p[i, 1])


def softened(v, by=0.25):
    return v / (v + by)


def eased(v, slope=2.0):
    if v > 1:
        return 1.0
    return v * slope


WEIGHTS = np.array([0.5, 2.0, 1.0])


@mb.kernel
def called(k, out, p):
    i = k.index(0)
    out[i] = eased(distance(p, i)) * WEIGHTS[i % 3] + math.pi + softened(p[i, 0]) + np.exp(p[i, 1])


def of_called():
    p = rng.random((20, 2))
    out = cu(np.zeros(20))
    called[20](out, cu(p))
    d = np.hypot(p[:, 0], p[:, 1])
    expected = np.where(d > 1, 1.0, d * 2) * WEIGHTS[np.arange(20) % 3] + np.pi
    return out, expected + p[:, 0] / (p[:, 0] + 0.25) + np.exp(p[:, 1])


# Products are contracted: a card has other last bits.
RTOL = {of_gravity: 1e-4, of_matmul: 1e-5, of_saxpy: 1e-15, of_checked: 1e-15}
CASES = [
    of_saxpy, of_transposed, of_summed, of_histogram, of_gravity, of_life, of_matmul, of_matmul_in_registers,
    of_largest, of_checked, of_heat, of_mandelbrot, of_halved, of_called,
]  # fmt: skip


@pytest.fixture
def texts(monkeypatch):
    """The texts that are loaded while a test runs."""
    if settings.cuda != "simulated":
        pytest.skip("looks into the simulated card")
    found = []
    load = SimulatedDriver.load

    def noted(self, source, functions, contract=False):
        if isinstance(source, IndexKernelText):
            found.append(source)
            assert contract
        return load(self, source, functions, contract)

    monkeypatch.setattr(SimulatedDriver, "load", noted)
    return found


compiles = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None or assembler() is None, reason="needs numba-cuda and ptxas"
)


def compiled(source):
    """The PTX of a text."""
    from mirabelle.backends.gpu.compiler import ptx_of

    return ptx_of(source, getattr(source, "values", {}), (9, 0), contract=True)[0]


# What else one may write


def complex_numbers(k, y, x):
    i = k.index(0)
    z = complex(x[i], 1.0)
    y[i] = abs(z / (z + 1j) + z.conjugate() ** 2 - np.exp(z)) + cmath.phase(z)


def of_the_module_math(k, y, x):
    v = x[k.index(0)]
    y[k.index(0)] = math.sin(v) + math.erf(v) + math.pow(v, 1.5) + math.atan2(v, 2.0) + math.copysign(v, -1.0)


def of_numpy(k, y, x):
    v = x[k.index(0)]
    y[k.index(0)] = np.floor(v) + np.sign(v) + np.power(v, 2) + np.log2(v) + np.minimum(v, 1) + np.isnan(v)


def of_ours(k, y, x):
    v = x[k.index(0)]
    y[k.index(0)] = mb.where(v > 1, mb.sin(v), 0.0) + mb.hypot(v, 2) + mb.sqrt(4) + mb.float32(v) + mb.int32(v)


def rounding_and_whole_numbers(k, y, x):
    i = k.index(0)
    a, b = divmod(x[i], 0.7)
    n = (i + 3) ** 3 ^ 5 | (i << 2)
    y[i] = round(x[i]) + int(x[i]) + a + b + n % 7 - n // -4


def loops_and_branches(k, y, x):
    n = 0
    for weight, v in enumerate((1.0, 2.0, 3.0)):
        y[k.index(0)] += v * weight
    while n < x[0]:
        n += 1
        if n == 3:
            break
    else:
        n = 100
    y[k.index(0)] += n if 0.5 < x[k.index(0)] <= 2 else -n


def arrays_and_tuples(k, y, x):
    i = k.index(0)
    pair = (x[0], x[1])
    mine = k.private((2, 2), mb.float64)
    for a in range(2):
        for b in range(2):
            mine[a, b] = a * 2 + b
    y[i] = pair[0] + min(pair[1], x[i]) + mine[i % 2, 1] + len(x) + x.size + total(x)


@mb.jit
def total(x):
    s = 0.0
    for v in x:
        s += v
    return s


LANGUAGE = [
    complex_numbers, of_the_module_math, of_numpy, of_ours, rounding_and_whole_numbers, loops_and_branches,
    arrays_and_tuples,
]  # fmt: skip


@pytest.mark.parametrize("f", LANGUAGE, ids=lambda f: f.__name__)
def test_the_language_is_the_hosts(f):
    x = np.array([0.5, 1.5, 2.5, 0.25])
    results = []
    for family in (mb.HostArray, mb.CuArray):
        y = family(np.zeros(4))
        mb.kernel(f)[4](y, family(x))
        results.append(contents(y))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-14)


@compiles
@pytest.mark.parametrize("f", LANGUAGE, ids=lambda f: f.__name__)
def test_the_language_compiles(f, texts):
    mb.kernel(f)[4](cu(np.zeros(4)), cu(np.ones(4)))
    assert ".entry" in compiled(texts[0])


def test_functions_of_arrays_are_refused():
    @mb.kernel
    def f(k, y):
        y[k.index(0)] = mb.clip(y[k.index(0)], 0, 1)

    with pytest.raises(mb.UserFunctionError, match=r"line \d+: mb\.clip is no function of numbers"):
        f[1](cu([1.0]))


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__[3:])
def test_kernels_give_what_they_say(case):
    out, expected = case()
    assert_same(out, expected, rtol=RTOL.get(case, 1e-13))


# What the compiler makes of their text


@compiles
@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__[3:])
def test_they_compile_without_spills_or_generic_memory(case, texts, tmp_path, monkeypatch):
    for kernel in globals().values():
        if isinstance(kernel, type(saxpy)):
            monkeypatch.setattr(kernel, "compiled", {})
            monkeypatch.setattr(kernel, "_checked", None)
    case()
    (source,) = texts
    ptx = compiled(source)
    registers, spills = resources(ptx, tmp_path, (9, 0))
    assert registers <= 64 and not spills
    # Each access is known to be of global or of shared memory.
    assert not re.search(r"\b(ld|st)\.(v\d\.)?[fubs]\d+|\batom\.(add|cas|exch|max|min)", ptx)
    assert "ld.local" not in ptx and "st.local" not in ptx
    assert not re.search(r"\bcall\b\W", ptx)


@compiles
def test_tiles_are_read_as_vectors_and_products_contracted(texts, monkeypatch):
    monkeypatch.setattr(matmul, "compiled", {})
    of_matmul()
    ptx = compiled(texts[0])
    assert ptx.count("fma.rn.f32") == TILE and ptx.count("ld.shared.v4.f32") == TILE // 4
    assert ".maxntid 256" in ptx


@compiles
def test_what_nobody_reads_atomic_operations_do_not_answer(tmp_path):
    lines = ["    atomic_add_f8(x, 1, load_f8(y, 0))", "    old = atomic_max_i8(z, 1, load_i8(z, 0))"]
    text = "def k(x, y, z):\n" + "\n".join([*lines, "    store_i8(z, 2, old)"]) + "\n"
    ptx = compiled(KernelText(text, "k", ("i8", "i8", "i8")))
    assert ptx.count("red.global.add.f64") == 1 and ptx.count("atom.global.max.s64") == 1
    assert "atom.global.add" not in ptx
    resources(ptx, tmp_path, (9, 0))


@compiles
@pytest.mark.parametrize("c", ["i4", "u4", "i8", "u8", "f4", "f8"])
def test_atomic_operations_by_address_compile(c, tmp_path):
    lines = [f"    old = atomic_{f}_{c}(x, 1, load_{c}(y, 0))" for f in ("add", "max", "min", "exchange")]
    lines.append(f"    store_{c}(y, 0, atomic_cas_{c}(x, 2, old, load_{c}(y, 1)))")
    text = "def k(x, y):\n" + "\n".join(lines) + "\n"
    ptx = compiled(KernelText(text, "k", ("i8", "i8")))
    assert "atom.global" in ptx
    resources(ptx, tmp_path, (9, 0))


@pytest.mark.parametrize("c", ["i4", "u8", "f4"])
def test_atomic_operations_by_address(c, texts):
    text = (
        "def k(x, y, o):\n"
        "    i = thread_x()\n"
        f"    v = load_{c}(x, i)\n"
        f"    atomic_add_{c}(y, 0, v)\n"
        f"    atomic_max_{c}(y, 1, v)\n"
        f"    atomic_min_{c}(y, 2, v)\n"
        f"    store_{c}(o, i, atomic_exchange_{c}(y, 3, v))\n"
        f"    atomic_cas_{c}(y, 4, {c}(9), v)\n"
    )
    x, y, o = cu([4, 7, 2], c), cu([1, 5, 5, 0, 9], c), cu([0, 0, 0], c)
    views = [a._node.view for a in (x, y, o)]
    driver = mb.CuArray.driver()
    kernel = driver.load(KernelText(text, "k", ("i8", "i8", "i8")), {})
    driver.launcher(kernel, ("i8", "i8", "i8"), (1, 1, 1), (3, 1, 1), ())(*[v.ptr for v in views])
    # (Who is last there is not said: each gets what the one before put.)
    last = mb.to_numpy(y)[3]
    assert_same(y[:3], np.array([14, 7, 2], c))
    assert mb.to_numpy(y)[4] in (4, 7, 2)
    assert sorted([*mb.to_numpy(o).tolist(), last]) == [0, 2, 4, 7]


# How index spaces lie in the grid


@mb.kernel
def counted(k, x):
    k.atomic_add(x, 0, 1)
    i, j = k.index()
    if i == k.size(0) - 1 and j == k.size(1) - 1:
        x[1], x[2], x[3] = i, j, k.group(0)


@pytest.mark.parametrize("shape", [(70_000, 1), (1, 300)], ids=str)
def test_more_groups_than_a_dimension_of_the_grid_has(shape):
    x = cu(np.zeros(4, "i8"))
    counted[shape, (1, 2)](x)
    n, m = shape
    assert_same(x, np.array([n * m, n - 1, m - 1, n - 1]))


@mb.kernel
def placed(k, x):
    i, j, l = k.index()
    x[i, j, l] = k.local(0) * 100 + k.local(1) * 10 + k.local(2)


def test_groups_deeper_than_a_block():
    x = cu(np.zeros((130, 3, 2), int))
    placed[x.shape, (100, 2, 1)](x)
    i, j, l = np.indices(x.shape)
    assert_same(x, i % 100 * 100 + j % 2 * 10 + 0 * l)


class Wide:
    shape, strides = (2**32,), (8,)


def test_index_spaces_of_more_than_31_bits_are_counted_in_64():
    how, block, grid = kernelplan._geometry(saxpy, (2**33,), (256,), [])
    assert how.wide and block == (256, 1, 1) and grid == (2**25, 1, 1)
    how, block, grid = kernelplan._geometry(life, (10**6, 10**4), (16, 16), [])
    assert block == (256, 1, 1) and grid == (40 * 10**6, 1, 1) and how.linear
    how, *_ = kernelplan._geometry(saxpy, (100,), (256,), [Wide])
    assert how.wide
    with pytest.raises(ValueError, match=r"groups, and a card takes.*Launch over fewer"):
        kernelplan._geometry(saxpy, (2**40,), (256,), [])


def test_blocks_follow_the_shape_where_the_kernel_does_not_ask():
    for shape, block, grid in (
        ((1000, 1000), (256, 1, 1), (4, 1000, 1)),
        ((1000, 3), (4, 64, 1), (1, 16, 1)),
        ((7,), (32, 1, 1), (1, 1, 1)),
        ((9, 5, 30), (32, 8, 1), (1, 1, 9)),
        ((500, 1, 1), (1, 1, 64), (1, 1, 8)),
    ):
        group = kernelplan.GROUPS[len(shape)]
        how, *got = kernelplan._geometry(saxpy, shape, group, [])
        assert got == [block, grid] and how.group == ()
    # What a user asks for, he gets.
    how, *got = kernelplan._geometry(saxpy, (100, 100), (2, 64), [])
    assert got == [(64, 2, 1), (2, 50, 1)] and how.group == (2, 64)


# Text: one for all launches that differ in sizes and addresses


def test_one_text_serves_all_sizes(texts):
    @mb.kernel
    def shifted(k, y, x, by):
        i = k.index(0)
        y[i] = x[i] + by

    for n in (3, 50):
        x, y = np.arange(float(n)), cu(np.zeros(n))
        shifted[n](y, cu(x), 1.0)
        assert_same(y, x + 1)
    assert len(texts) == 1
    shifted[25](y, cu(x)[::2], 2.0)
    assert_same(y[:25], x[::2] + 2)
    shifted[50](y, cu(x)[::-1], 2.0)  # other strides, the same text
    assert_same(y, x[::-1] + 2)
    assert len(texts) == 2 and texts[0].text != texts[1].text
    assert "_p_x_s0" in texts[1].text and "_p_x_s0" not in texts[0].text
    shifted[50](y, cu(x), 1)  # an integer
    assert len(texts) == 3
    found = shifted.compiled[GPUArray]
    before = len(found)
    shifted[50](y, cu(x), 5)
    assert len(found) == before and len(texts) == 3


def test_launches_wait_for_nothing_unless_they_are_checked(texts, monkeypatch):
    x, y = cu([1.0, 2.0]), cu([0.0, 0.0])
    saxpy[2](y, 1.0, x)
    waited = []
    download = SimulatedDriver.download
    monkeypatch.setattr(SimulatedDriver, "download", lambda *a: (waited.append(1), download(*a)))
    monkeypatch.setattr(SimulatedDriver, "synchronize", lambda self: waited.append(2))
    a = mb.sum(x)  # a number that is still on the card
    saxpy[2](y, a, x)
    assert not waited
    saxpy.checked[2](y, 1.0, x)
    assert waited == [1]
    assert_same(y, np.array([5.0, 10.0]))


def test_variables_may_be_called_as_generated_names_are():
    one = np.int32(1)

    def same(i4):
        return i4 * 0 + one

    @mb.kernel
    def f(k, cuda, f8):
        np = k.index(0)
        barrier = f8[np] + math.inf * 0 if f8[np] > 100 else f8[np]
        i8 = 2.0
        math_ = mb.float32(i8) * same(np)
        outside = k.private(1, mb.float64)
        outside[0] = barrier * math_
        cuda[np] = outside[0]

    x, y = cu([1.0, 2.0]), cu([0.0, 0.0])
    f[2](y, x)
    assert_same(y, np.array([2.0, 4.0]))


def test_parameters_may_be_called_as_parts_of_the_text_are():
    @mb.kernel
    def f(k, get, n0, size0, record):
        i = k.index(0)
        get[i] = get[i] * n0 + size0 + record[i]

    y = cu([1.0, 2.0])
    f.checked[2](y, 3.0, 1, cu([10.0, 20.0]))
    assert_same(y, np.array([14.0, 27.0]))


def test_functions_without_source_and_what_they_see():
    scope = {"np": np}
    exec("def twice(x):\n    return x + x\n", scope)
    twice = scope["twice"]
    shift = np.float32(0.5)
    limits = (0.0, 3.0)

    @mb.kernel
    def f(k, y, x):
        i = k.index(0)
        y[i] = min(max(twice(x[i]) + shift, limits[0]), limits[1])

    y = cu(np.zeros(3))
    f[3](y, cu([-1.0, 1.0, 2.0]))
    assert_same(y, np.array([0.0, 2.5, 3.0]))


@mb.kernel
def twofold(k, y, x, a):
    i = k.index(0)
    y[i] = doubled(x[i], a)


def doubled(v, a):
    return v * a * 2


def test_numbers_on_the_card_are_numbers_to_called_functions():
    y = cu(np.zeros(3))
    twofold[3](y, cu([1.0, 2.0, 3.0]), mb.sum(cu([1.0, 2.0])))
    assert_same(y, np.array([6.0, 12.0, 18.0]))


def test_arrays_around_called_functions_are_refused():
    def looked_up(i):
        return WEIGHTS[i]

    @mb.kernel
    def f(k, y):
        y[k.index(0)] = looked_up(k.index(0))

    with pytest.raises(
        mb.UserFunctionError, match=r"looked_up\(\), line \d+: it reads an array.*Pass the array"
    ):
        f[3](cu(np.zeros(3)))


def test_more_shared_memory_than_there_is():
    @mb.kernel
    def f(k, y):
        tile = k.shared((128, 64), mb.float64)
        tile[0, k.local(0)] = y[k.index(0)]

    with pytest.raises(mb.DeviceError, match=r"asks for 65536 bytes of k\.shared.*49152"):
        f[3](cu(np.zeros(3)))


def test_assertions_and_errors_come_out_after_the_launch():
    @mb.kernel
    def f(k, x):
        i = k.index(0)
        assert x[i] >= 0, "below zero"
        if x[i] > 5:
            raise OverflowError
        x[i] += 1

    x = cu([1.0, 2.0])
    f[2](x)
    assert_same(x, np.array([2.0, 3.0]))
    with pytest.raises(AssertionError, match=r"^below zero$"):
        f[2](cu([1.0, -1.0]))
    with pytest.raises(OverflowError):
        f[2](cu([7.0, 1.0]))

    @mb.kernel
    def g(k, x):
        raise ValueError(f"at {k.index(0)}")

    with pytest.raises(mb.UserFunctionError, match="an error of constants"):
        g[1](x)

    def root(v):
        if v < 0:
            raise ValueError("negative")
        return math.sqrt(v)

    @mb.kernel
    def h(k, x):
        x[k.index(0)] = root(x[k.index(0)])

    with pytest.raises(mb.UserFunctionError, match=r"root\(\), line \d+: .*raise in the kernel"):
        h[1](x)


def test_numbers_that_no_register_holds():
    @mb.kernel
    def f(k, x, n):
        x[k.index(0)] = n

    x = cu(np.zeros(2, "u8"))
    f[2](x, np.uint64(2**64 - 1))
    assert_same(x, np.full(2, 2**64 - 1, "u8"))
    with pytest.raises(TypeError, match="too large a number"):
        f[2](x, 2**64)
    with pytest.raises(TypeError, match="n is a str"):
        f[2](x, "a")


@pytest.mark.skipif(settings.cuda != "simulated", reason="there may be one card only")
def test_a_second_card():
    other = mb.CuArray.on(1)
    x, y = other(np.arange(4.0)), other(np.zeros(4))
    saxpy[4](y, 2.0, x)
    assert_same(contents(y), 2 * np.arange(4.0))
    with pytest.raises(mb.PlaceError, match="adapt"):
        saxpy[4](y, 2.0, cu(np.arange(4.0)))


def test_jit_functions_name_the_kernel_as_the_remedy():
    @mb.jit
    def total(x):
        s = 0.0
        for v in x:
            s += v
        return s

    with pytest.raises(mb.PlaceError, match=r"x is a CuArray.*@mb\.kernel"):
        total(cu([1.0]))


@compiles
def test_what_does_not_compile_names_the_line(texts, monkeypatch):
    """The compiler's word, about the text, said of the user's file."""
    from mirabelle.backends.gpu.compiler import ptx_of

    monkeypatch.setattr(SimulatedDriver, "load", lambda self, s, f, contract: ptx_of(s, f, (9, 0), contract))

    def helper(v):
        return v.nothing()

    def bad_text(k, y, x):
        i = k.index(0)
        y[i] = x[i] + "a"

    def bad_index(k, y, x):
        y[x[k.index(0)]] = 1.0

    def bad_helper(k, y, x):
        y[k.index(0)] = helper(x[0])

    def bad_name(k, y, x):
        y[k.index(0)] = no_such_thing(x[0])  # noqa: F821

    def bad_rank(k, y, x):
        y[k.index(0)] = x[0, 0]

    x = cu([1.0])
    for f, text in (
        (bad_text, r"there is no add\(float64, 'a'\)\. At line \d+: `y\[i\] = x\[i\] \+ \"a\"`"),
        (bad_index, r"an index is an integer.*At line \d+: `y\[x\[k\.index"),
        (bad_helper, r"Unknown attribute 'nothing'.*At line \d+"),
        (bad_name, r"line \d+: no_such_thing is not defined"),
        (bad_rank, r"1 dimension\(s\) is indexed with 2"),
    ):
        with pytest.raises(mb.UserFunctionError, match=text):
            mb.kernel(f)[1](x, x)
