"""Matrix products: every pair of layouts and dtypes, stacks, vectors, cold and compiled."""

import numpy as np
import pytest
from compare import assert_closed, assert_same
from kinds import LEAVES, PLAIN, SINGLE
from samples import DTYPES, ids, ordinary
from ways import running

import mirabelle as mb
from mirabelle.backends.host import kernels, matmul

single = pytest.mark.parametrize("kind", SINGLE, ids=repr)
leaves = pytest.mark.parametrize("kind", LEAVES.values(), ids=repr)
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))


def tolerance(*dtypes):
    dtype = np.result_type(*dtypes)
    return (
        {}
        if dtype.kind in "biu"
        else {"rtol": 64 * float(np.finfo(dtype).eps), "atol": 64 * float(np.finfo(dtype).eps)}
    )


# Layouts: functions of an array that keep its values and move them about in memory


def _steps(x):
    base = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    base[tuple(slice(None, None, 2) for _ in x.shape)] = x
    return base[tuple(slice(None, None, 2) for _ in x.shape)]


def _cut(x):
    base = np.zeros(tuple(n + 3 for n in x.shape), x.dtype)
    window = tuple(slice(1, 1 + n) for n in x.shape)
    base[window] = x
    return base[window]


def _reversed(x, axes=None):
    index = tuple(slice(None, None, -1) if axes is None or d in axes else slice(None) for d in range(x.ndim))
    return np.array(x[index])[index]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "cut": _cut,
    "steps": _steps,
    "reversed": _reversed,
    "reversed rows": lambda x: _reversed(x, {x.ndim - 2}),
    "reversed columns": lambda x: _reversed(x, {x.ndim - 1}),
}
SHAPES = [
    ((20, 30), (30, 17)),
    ((20, 30), (30,)),
    ((30,), (30, 17)),
    ((30,), (30,)),
    ((40, 30), (30, 2)),
    ((2, 30), (30, 40)),
    ((3, 20, 30), (30, 17)),
    ((3, 20, 30), (30,)),
    ((30,), (3, 30, 17)),
    ((2, 1, 20, 30), (3, 30, 17)),
    ((300, 3, 4), (300, 4, 2)),
    ((1, 3, 3), (300, 3, 3)),
    ((20, 30, 3, 3), (30, 3, 1)),
    ((0, 5), (5, 3)),
    ((4, 0), (0, 3)),
    ((0, 4, 5), (5, 3)),
]


@pytest.mark.parametrize("way", ["cold", "hot"])
@pytest.mark.parametrize("dtype", [np.dtype(d) for d in ("f8", "c8", "i8", "u2", "?")], ids=lambda d: d.name)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_pair_of_layouts(shapes, dtype, way, monkeypatch):
    monkeypatch.setattr(matmul, "SMALL", 0)
    a, b = ordinary(dtype, shapes[0]), ordinary(dtype, shapes[1], seed=1)
    expected = a @ b
    with running(way):
        for first in LAYOUTS.values():
            for second in LAYOUTS.values():
                out = np.empty(expected.shape, dtype)
                x, y = first(a), second(b)
                assert_same(matmul.product(x, y), expected, **tolerance(dtype))
                if out.ndim:
                    assert_same(matmul.product(x, y, out), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_what_blas_can_read_is_not_copied(dtype, monkeypatch):
    def copied(*args):
        raise AssertionError("an operand was copied")

    monkeypatch.setattr(matmul, "SMALL", 0)
    monkeypatch.setattr(matmul.np, "ascontiguousarray", copied)
    a, b = ordinary(dtype, (20, 30)), ordinary(dtype, (30, 17), seed=1)
    stack = ordinary(dtype, (3, 20, 30), seed=2)
    readable = [lambda x: x.copy(), np.asfortranarray, _cut, lambda x: _cut(x.T).T]
    for first in readable:
        for second in readable:
            x, y = first(a), second(b)
            assert_same(matmul.product(x, y), a @ b, **tolerance(dtype))
            assert_same(mb.HostArray(x) @ mb.HostArray(y), a @ b, **tolerance(dtype))
    for x in (stack, np.array(stack.swapaxes(1, 2), order="C").swapaxes(1, 2), _cut(stack)):
        assert_same(matmul.product(x, b), stack @ b, **tolerance(dtype))
    # A vector in any order, and rows in reverse, do not copy the matrix.
    assert_same(matmul.product(a, b[::-1, 0]), a @ b[::-1, 0], **tolerance(dtype))
    assert_same(matmul.product(a[::-1], b[:, 0]), a[::-1] @ b[:, 0], **tolerance(dtype))
    assert_same(matmul.product(a[:, ::-1], b[:, 0]), a[:, ::-1] @ b[:, 0], **tolerance(dtype))
    with pytest.raises(AssertionError, match="copied"):
        matmul.product(a[:, ::2], b[::2])


@pytest.mark.parametrize("way", ["cold", "hot"])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "biu"], ids=lambda d: d.name)
def test_integers_wrap_around_as_numpys_do(dtype, way):
    rng = np.random.default_rng(3)
    if dtype.kind == "b":
        a, b = rng.random((37, 70)) < 0.1, rng.random((70, 41)) < 0.1
    else:
        info = np.iinfo(dtype)
        a = rng.integers(info.min, info.max, (37, 70), dtype, endpoint=True)
        b = rng.integers(info.min, info.max, (70, 41), dtype, endpoint=True)
    with running(way):
        for x, y in ((a, b), (a, b[:, :3]), (a[:3], b), (a[:, ::-1], b), (a, np.asfortranarray(b)[:, :5])):
            assert_same(mb.HostArray(x) @ mb.HostArray(y), x @ y)


def test_a_product_is_right_while_its_kernel_compiles(monkeypatch):
    # The kernel arrives after two pieces: the rest is its.
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**40), 2**40, (50, 60)), rng.integers(-(2**40), 2**40, (60, 40))
    asked = []
    get = kernels.get

    def late(source, *args, **kwargs):
        asked.append(source.name)
        return None if len(asked) < 3 else get(source, *args, **kwargs)

    with running("hot"):
        monkeypatch.setattr(kernels, "get", late)
        monkeypatch.setattr(matmul, "COLD_PIECE", 60 * 40 * 10)
        assert_same(matmul.product(a, b), a @ b)
    assert len(asked) == 3


def test_large_integer_products_use_several_threads():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 9, (130, 90)), rng.integers(0, 9, (90, 150))
    for threads in (1, 2):
        with running("hot"), mb.settings.changed(num_threads=threads):
            assert_same(matmul.product(a, b), a @ b)
            assert_same(matmul.product(a[:2], b), a[:2] @ b)


@every_dtype
@plain
def test_dtypes(kind, dtype):
    a, b = ordinary(dtype, (5, 6)), ordinary(dtype, (6, 4), seed=1)
    result = kind.family(a) @ kind.family(b)
    assert_same(result, a @ b, **tolerance(dtype))
    assert_closed(result, kind)


@plain
@pytest.mark.parametrize(
    "dtypes", [("i4", "f4"), ("f4", "f8"), ("?", "i8"), ("f8", "c8"), ("i1", "u1"), ("f2", "f4"), ("u8", "f2")]
)
def test_mixed_dtypes_promote(kind, dtypes):
    a, b = ordinary(dtypes[0], (5, 6)), ordinary(dtypes[1], (6, 4), seed=1)
    assert_same(kind.family(a) @ kind.family(b), a @ b, **tolerance(*dtypes))
    assert_same(kind.family(b).T @ kind.family(a).T, b.T @ a.T, **tolerance(*dtypes))


def test_half_precision_is_added_up_in_single():
    a = np.full((1, 5000), 1.0, "f2")
    assert_same(mb.HostArray(a) @ mb.HostArray(a.T), np.full((1, 1), 5000, "f2"))


@single
def test_under_every_wrapper(kind):
    for shapes in (((4, 5), (5, 3)), ((2, 4, 5), (5, 3)), ((4, 5), (5,))):
        a, b = kind.sample(ordinary("f8", shapes[0])), kind.sample(ordinary("f8", shapes[1], seed=1))
        result = kind.make(a) @ kind.make(b)
        assert_same(result, a @ b, rtol=1e-14, atol=1e-14)
        assert_closed(result, kind)


@leaves
def test_a_pending_matrix_times_a_vector_is_one_kernel(kind, many):
    a, b = ordinary("f8", (6, 7)), ordinary("f8", (7,), seed=1)
    x, y = kind.make(a), kind.make(b)
    mb.materialize(x), mb.materialize(y)
    for make, expected in (
        (lambda: (x * 2) @ y, (a * 2) @ b),
        (lambda: y @ (x * 2).T, b @ (a * 2).T),
        (lambda: (y + 1) @ y, (b + 1) @ b),
        (lambda: y @ (y + 1), b @ (b + 1)),
    ):
        with mb.count() as c:
            result = mb.materialize(make())
        assert_same(result, expected, rtol=1e-13)
        assert_closed(result, kind)
        if kind.lazy and kind.counted:
            assert (c.launches, c.temporaries, c.library_calls) == (1, 0, 0)


@plain
def test_numpys_arrays_and_lists(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (4, 2), seed=1)
    x = kind.family(a)
    if kind.on_device and not kind.takes_numpy:
        with pytest.raises(mb.PlaceError, match="adapt"):
            x @ b
        return
    assert_same(x @ b, a @ b)
    assert_same(b.T @ x.T, b.T @ a.T)
    assert_same(x @ b.tolist(), a @ b)
    assert_same([1.0, 2.0, 3.0] @ x, [1.0, 2.0, 3.0] @ a)
    assert type(mb.matmul(a, b)) is mb.HostArray[np.dtype("f8"), 2]


@plain
def test_shapes_that_do_not_fit_say_so(kind):
    x = kind.family(ordinary("f8", (3, 4)))
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(3, 4\) do not fit.*x\.T"):
        x @ x
    with pytest.raises(ValueError, match="at least one dimension"):
        x @ kind.family(2.0)
    with pytest.raises(mb.PlaceError):
        mb.HostArray([[1.0]]) @ mb.RefArray([[1.0]])


def test_operands_keep_what_they_were():
    a = ordinary("f8", (4, 4))
    x = mb.HostArray(a)
    y = x @ x
    x[...] = 0
    assert_same(y, a @ a)
    x = mb.HostArray(a)
    x @= x
    assert_same(x, a @ a)


# gemm: the product that adds to its destination


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8", "f2"])
@pytest.mark.parametrize("factors", [(1, 0), (2, 0), (1, 1), (-1, 1), (2, 3)], ids=str)
def test_gemm(kind, dtype, factors):
    alpha, beta = factors
    a, b, c = (ordinary(dtype, s, seed=i) for i, s in enumerate([(5, 6), (6, 4), (5, 4)]))
    for window in (np.s_[:, :], np.s_[::-1, :], np.s_[:, ::-1]):
        whole = np.zeros((11, 9), c.dtype)
        for place in (np.s_[:5, :4], np.s_[:4, :5], np.s_[1:11:2, 1:9:2]):
            x, y, z = kind.family(a), kind.family(b), kind.family(whole)
            dest = z[place].T if place == np.s_[:4, :5] else z[place]
            dest = dest[window]
            mb.ext.assign(dest, kind.family(c))
            result = mb.linalg.gemm(x, y, alpha=alpha, beta=beta, out=dest)
            assert result is dest
            expected = (alpha * (a @ b) + beta * c).astype(dtype)
            assert_same(dest, expected, **tolerance(dtype))
            assert_same(mb.sum(z != 0) <= 20, True)


@plain
def test_gemm_does_not_read_what_it_overwrites(kind):
    a = ordinary("f8", (4, 4))
    x = kind.family(a)
    c = kind.family(np.full((4, 4), np.nan))
    assert_same(mb.linalg.gemm(x, x, alpha=2.0, out=c), 2 * (a @ a), rtol=1e-14)
    assert_same(mb.linalg.gemm(x, x, alpha=2.0), 2 * (a @ a), rtol=1e-14)


@plain
def test_gemm_into_an_operand_and_beside_readers(kind):
    a, c = ordinary("f8", (4, 4)), ordinary("f8", (4, 4), seed=1)
    x = kind.family(a)
    mb.linalg.gemm(x, x, alpha=1.0, beta=1.0, out=x)
    assert_same(x, a @ a + a, rtol=1e-14)
    x = kind.family(a)
    mb.linalg.gemm(x.T, x[::-1], out=x)
    assert_same(x, a.T @ a[::-1], rtol=1e-14)
    x, z = kind.family(a), kind.family(c)
    waiting = z + 1  # reads the old contents
    mb.linalg.gemm(x, x, beta=1.0, out=z)
    assert_same(waiting, c + 1)
    assert_same(z, a @ a + c, rtol=1e-14)


def test_gemm_into_numpys_memory_goes_there():
    n = ordinary("f8", (4, 4))
    expected = 2 * (n @ n) + n
    x = mb.asarray(n)
    mb.linalg.gemm(x, x, alpha=2, beta=1, out=x)
    assert_same(n, expected, rtol=1e-14)


def test_gemm_writes_no_temporary():
    x, c = mb.HostArray(ordinary("f8", (64, 64))), mb.HostArray(np.ones((64, 64)))
    memory = mb.to_numpy(c).shape, c._node.view.__array_interface__["data"]
    with mb.count() as n:
        mb.linalg.gemm(x, x.T, alpha=2.0, beta=0.5, out=c)
    assert (n.library_calls, n.launches, n.temporaries, n.scalar_reads) == (1, 0, 0, 0)
    assert c._node.view.__array_interface__["data"] == memory[1]


def test_gemm_without_scipy(monkeypatch):
    from mirabelle.backends.host import blas

    monkeypatch.setattr(blas, "_gemm", lambda prefix: None)
    a, c = ordinary("f8", (4, 4)), mb.HostArray(np.ones((4, 4)))
    mb.linalg.gemm(mb.HostArray(a), mb.HostArray(a), alpha=2.0, beta=3.0, out=c)
    assert_same(c, 2 * (a @ a) + 3, rtol=1e-14)


def test_gemm_of_stacks():
    a, b, c = ordinary("f8", (3, 4, 5)), ordinary("f8", (5, 2), seed=1), ordinary("f8", (3, 4, 2), seed=2)
    out = mb.HostArray(c)
    mb.linalg.gemm(mb.HostArray(a), mb.HostArray(b), alpha=2.0, beta=3.0, out=out)
    assert_same(out, 2 * (a @ b) + 3 * c, rtol=1e-13)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: mb.linalg.gemm(x, x[0]), ValueError, "takes matrices"),
        (lambda x: mb.linalg.gemm(x, x), ValueError, "do not fit"),
        (lambda x: mb.linalg.gemm(x, x.T, beta=1.0), ValueError, "out=C"),
        (lambda x: mb.linalg.gemm(x, x.T, out=mb.zeros((2, 2))), ValueError, "mb.empty"),
        (lambda x: mb.linalg.gemm(x, x.T, out=mb.zeros((3, 3), dtype=mb.int64)), TypeError, "int64"),
        (lambda x: mb.linalg.gemm(x, x.T, alpha="2"), TypeError, "alpha is a number"),
        (lambda x: mb.linalg.gemm(x, x.T, alpha=1j, beta=1, out=mb.ones((3, 3))), TypeError, "complex"),
    ],
)
def test_gemm_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call(mb.HostArray(ordinary("f8", (3, 4))))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "shapes",
    [
        ((300, 8, 9), (300, 9, 7)),
        ((300, 8, 9), (9, 7)),
        ((8, 9), (300, 9, 7)),
        ((2, 150, 8, 9), (150, 9, 7)),
        ((150, 8, 9), (2, 1, 9, 7)),
        ((300, 2, 9), (9, 7)),
        ((300, 8, 9), (9,)),
        ((9,), (300, 9, 7)),
    ],
    ids=str,
)
def test_stacks_are_divided_among_threads(shapes, threads, monkeypatch):
    monkeypatch.setattr(matmul.productkernels, "THREADED", 1)
    a, b = ordinary("f8", shapes[0]), ordinary("f8", shapes[1], seed=1)
    with mb.settings.changed(num_threads=threads, thread_size=1):
        for x, y in ((a, b), (np.asfortranarray(a), b), (a[::-1], b) if a.ndim > 2 else (a, b[..., ::-1])):
            assert_same(mb.HostArray(x) @ mb.HostArray(y), x @ y, rtol=1e-13, atol=1e-13)
