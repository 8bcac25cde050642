"""einsum and its relatives beside NumPy's: subscripts of every kind, paths, fusion, refusals."""

import itertools
import sys

import numpy as np
import opt_einsum
import pytest
from compare import assert_closed, assert_same
from kinds import LEAVES, PLAIN, wrapped
from samples import ordinary

import mirabelle as mb
from mirabelle.arraytypes import library
from mirabelle.arraytypes.elementwise import leaf_family

LAYERS = ("transpose", "permuted", "steps", "reversed", "reshaped", "stretched")
KINDS = [*LEAVES.values(), *(wrapped(LEAVES[leaf], layer) for leaf in ("host", "ref") for layer in LAYERS)]
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2, "i": 3, "j": 4, "k": 5, "l": 2, "m": 3, "A": 2, "B": 3}


def operands(text, dtype="f8"):
    """Arrays for the subscripts of an expression, with a dimension for each letter."""
    terms = text.replace(" ", "").partition("->")[0].split(",")
    return [ordinary(dtype, tuple(SIZES[x] for x in t if x != "."), seed=i) for i, t in enumerate(terms)]


def check(text, *arrays, kind, tol=None, **options):
    expected = np.einsum(text, *arrays)
    tol = ({} if expected.dtype.kind in "biu" else CLOSE) if tol is None else tol
    result = mb.einsum(text, *[kind.family(x) for x in arrays], **options)
    assert_same(result, expected, **tol)
    # What sums nothing is a view, of the same leaves.
    assert leaf_family(type(result)) is kind.family and result.place == kind.place


# Subscripts

EXPRESSIONS = (
    # one operand: views, sums, diagonals
    "i->i ij->ij ij->ji ijk->kij ij->i ij->j ij-> ijk->j ijk->ki",
    # two: elementwise, outer, inner
    "i,i->i ij,ij->ij ij,ji->ij i,j->ij i,j->ji ij,i->ij ij,kl->ikjl i,i-> ij,ij-> ij,ji-> ij,ij->i ij,ij->j",
    ",ij->ij ij,->i ij,kl-> ij,kl->il ij,jk-> ij,jk->j ij,jk->i AB,BA->A",
    # matrix products, their transposes, and stacks of them
    "ij,j->i ij,i->j j,ij->i ij,jk->ik ij,jk->ki ji,jk->ik ij,kj->ik ji,kj->ik ji,kj->ki aij,ajk->aik",
    "aij,ajk->aki aij,jk->aik ij,ajk->aik aij,bjk->abik aij,bjk->iabk ija,jkb->abik abij,abjk->abik",
    "ijk,jkl->il ijk,ljk->il ijk,kjl->il jik,kjl->li aijk,ajkl->ail ijk,j->ik ijk,k->ij ijkl,lk->ij",
    # three and more
    "ij,jk,kl->il i,j,k->ijk ij,ij,ij-> ij,ij,ij->i ij,ik,il->jkl ij,jk,ki-> ij,j,jk,k->i abc,ad,be->cde",
    "ijk,ia,jb,kc->abc ij,jk,kl,lm,ma->ia ij,,jk->ik",
)
EXPRESSIONS = [text for line in EXPRESSIONS for text in line.split()]


@plain
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_subscripts(text, kind):
    arrays = operands(text)
    check(text, *arrays, kind=kind)
    check(text, *[x.astype("i4") for x in arrays], kind=kind)


@plain
@pytest.mark.parametrize(
    "text", ["ij", "ji", "ba", "i,i", "i,j", "ij,ij", "ij,jk", "kj,ji", "ab,cb,cd", "bA,Ai"]
)
def test_without_an_arrow_the_rest_comes_in_alphabetical_order(text, kind):
    check(text, *operands(text), kind=kind)


DIAGONALS = [
    "ii",
    "ii->i",
    "ii->",
    "iij->ij",
    "iji->j",
    "iii->i",
    "iijj->ij",
    "iijj->ji",
    "ii,i->i",
    "ii,ij->ij",
]


@plain
@pytest.mark.parametrize("text", [*DIAGONALS, "ij,jj->i"])
def test_a_repeated_index_is_a_diagonal(text, kind):
    terms = text.partition("->")[0].split(",")
    arrays = [ordinary("f8", (3,) * len(t), seed=i) for i, t in enumerate(terms)]
    check(text, *arrays, kind=kind)


@plain
@pytest.mark.parametrize(
    "text, shapes",
    [
        ("...", [(2, 3)]),
        ("...->...", [(2, 3)]),
        ("...ij->...ji", [(2, 3, 4)]),
        ("i...->...i", [(2, 3, 4)]),
        ("i...->...", [(2, 3, 4)]),
        ("i...j->ij...", [(2, 3, 4, 5)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("...i,...i->...", [(2, 3, 4), (2, 3, 4)]),
        ("...i,...i->...", [(2, 3, 4), (3, 4)]),
        ("...i,i->...", [(2, 3, 4), (4,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("...ij,...jk", [(2, 3, 4), (2, 4, 2)]),
        ("ij...,jk...->ik...", [(3, 4, 2), (4, 5, 2)]),
        ("...,...->...", [(2, 3), (2, 3)]),
        ("...,...", [(2, 3), (3,)]),
        ("...,i->...i", [(2, 3), (4,)]),
        ("i,...", [(3,), (2,)]),
        ("...a,...b,...->...ab", [(2, 3), (2, 4), (2,)]),
        ("k...,jk", [(3, 2), (4, 3)]),
    ],
)
def test_ellipsis(text, shapes, kind):
    arrays = [ordinary("f8", s, seed=i) for i, s in enumerate(shapes)]
    check(text, *arrays, kind=kind)


@plain
def test_dimensions_of_one_stretch(kind):
    a, b = ordinary("f8", (1, 4)), ordinary("f8", (3, 4), seed=1)
    check("ij,ij->ij", a, b, kind=kind)
    check("ij,ij->i", a, b, kind=kind)
    check("ij,ij->", b, a, kind=kind)
    check("ij,jk->ik", ordinary("f8", (3, 1)), ordinary("f8", (4, 2)), kind=kind)
    check("ij,ij,ij->j", a, b, ordinary("f8", (1, 1)), kind=kind)


@plain
def test_indices_as_lists(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (4, 5), seed=1)
    x, y = kind.family(a), kind.family(b)
    pairs = [
        (mb.einsum(x, [0, 1], y, [1, 2], [0, 2]), np.einsum(a, [0, 1], b, [1, 2], [0, 2])),
        (mb.einsum(x, [7, 1], y, [1, 30], [30, 7]), np.einsum(a, [7, 1], b, [1, 30], [30, 7])),
        (mb.einsum(x, [1, 0], y, [0, 2]), np.einsum(a, [1, 0], b, [0, 2])),
        (mb.einsum(x, [0, 1]), np.einsum(a, [0, 1])),
        (mb.einsum(x, [1, 0]), np.einsum(a, [1, 0])),
        (mb.einsum(x, [..., 0], y, [0, 2]), np.einsum(a, [..., 0], b, [0, 2])),
        (mb.einsum(x, (0, 1), (1,)), np.einsum(a, [0, 1], [1])),
    ]
    for mine, expected in pairs:
        assert_same(mine, expected, **CLOSE)
        assert mine.place == kind.place


@plain
def test_spaces_capitals_and_letters_beyond_the_alphabet(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (4, 5), seed=1)
    assert_same(mb.einsum(" i j , j k -> i k ", kind.family(a), kind.family(b)), a @ b, **CLOSE)
    assert_same(mb.einsum("αβ,βγ->αγ", kind.family(a), kind.family(b)), a @ b, **CLOSE)
    assert_same(mb.einsum("iB,BA->Ai", kind.family(a), kind.family(b)), (a @ b).T, **CLOSE)


# Operands


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_every_kind_of_operand(kind):
    a, b, c = ordinary("f8", (3, 4)), ordinary("f8", (4, 3), seed=1), ordinary("f8", (3,), seed=2)
    x, y, z = map(kind.make, (a, b, c))
    a, b, c = map(kind.sample, (a, b, c))
    for text, mine, numpys in (
        ("ij,jk->ik", (x, y), (a, b)),
        ("ij,ji->i", (x, y), (a, b)),
        ("ij,i,jk->k", (x, z, y), (a, c, b)),
        ("ij->j", (x,), (a,)),
        ("ij->ji", (x,), (a,)),
        ("i,j->ji", (z, z), (c, c)),
    ):
        result = mb.einsum(text, *mine)
        assert_same(result, np.einsum(text, *numpys), **CLOSE)
        assert result.place == kind.place


@plain
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "i4", "u2", "u8", "?"])
@pytest.mark.parametrize("text", ["ij,jk->ik", "ij,ij->i", "ij->", "ij,jk,kl->il", "i,j->ij", "aij,ajk->aik"])
def test_dtypes(text, dtype, kind):
    tol = {}
    if np.dtype(dtype).kind in "fc":
        tol = {"rtol": 2e-2 if dtype == "f2" else 1e-4 if dtype in ("f4", "c8") else 1e-12}
        tol["atol"] = tol["rtol"] * 10
    arrays = [x / np.dtype(dtype).type(4) if dtype == "f2" else x for x in operands(text, dtype)]
    check(text, *arrays, kind=kind, tol=tol)


@plain
@pytest.mark.parametrize(
    "dtypes", [("i4", "f4"), ("f4", "f8"), ("f8", "c8"), ("?", "i2"), ("f8", "?")], ids=str
)
def test_mixed_dtypes(dtypes, kind):
    a, b = ordinary(dtypes[0], (3, 4)), ordinary(dtypes[1], (4, 5), seed=1)
    tol = {} if "f" not in "".join(dtypes) else {"rtol": 1e-4, "atol": 1e-4}
    check("ij,jk->ik", a, b, kind=kind, tol=tol)


@plain
def test_wanted_dtypes_and_casts(kind):
    a = ordinary("i1", (3, 40))
    x = kind.family(a)
    assert_same(mb.einsum("ij,ij->i", x, x, dtype=mb.int64), np.einsum("ij,ij->i", a, a, dtype="i8"))
    assert_same(mb.einsum("ij->", x, dtype="f8"), np.einsum("ij->", a, dtype="f8"))
    f = kind.family(ordinary("f8", (3, 4)))
    with pytest.raises(TypeError, match=r"float64 cannot be cast to float32.*'safe'.*casting=\"unsafe\""):
        mb.einsum("ij->i", f, dtype="f4")
    assert mb.einsum("ij->i", f, dtype="f4", casting="same_kind").dtype == np.float32


@plain
def test_results_that_are_given(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (4, 5), seed=1)
    x, y, out = kind.family(a), kind.family(b), kind.family(np.zeros((3, 5)))
    waiting = out + 1
    assert mb.einsum("ij,jk->ik", x, y, out=out) is out
    assert_same(out, a @ b, **CLOSE)
    assert_same(waiting, np.ones((3, 5)))
    mb.einsum("ij,jk->ki", x, y, out=out.T)
    assert_same(out, a @ b, **CLOSE)
    with pytest.raises(ValueError, match=r"\(3,\s?5\)|shape"):
        mb.einsum("ij,jk->ki", x, y, out=out)


def test_numpys_arrays_numbers_and_lists():
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (4,), seed=1)
    for left, right in itertools.product((a, a.tolist(), mb.HostArray(a)), (b, b.tolist(), mb.HostArray(b))):
        result = mb.einsum("ij,j->i", left, right)
        assert type(result) is mb.HostArray[mb.float64, 1]
        assert_same(result, a @ b, **CLOSE)
    assert_same(mb.einsum(",i->i", 3.0, mb.HostArray(b)), 3 * b)
    assert_same(mb.einsum("i,i", b, b), np.asarray(b @ b), **CLOSE)


@plain
def test_nothing_and_single_elements(kind):
    none, some = np.zeros((0, 4)), ordinary("f8", (4, 3))
    check("ij,jk->ik", none, some, kind=kind)
    check("ij->j", none, kind=kind)
    check("ij,ij->", none, none, kind=kind)
    check("ij,jk->ik", np.zeros((2, 0)), np.zeros((0, 3)), kind=kind)
    check("ij,jk,kl->il", np.zeros((2, 0)), np.zeros((0, 3)), some[:3], kind=kind)
    check("ij,ij->ij", np.ones((1, 1)), np.ones((1, 1)), kind=kind)


def test_operands_of_two_places_are_refused():
    with pytest.raises(mb.PlaceError, match="adapt"):
        mb.einsum("ij,jk->ik", mb.HostArray(np.eye(2)), mb.RefArray(np.eye(2)))
    with pytest.raises(mb.PlaceError, match="adapt"):
        mb.einsum("ij,ij->ij", np.eye(2), mb.RefArray(np.eye(2)))


# Views


@plain
def test_what_sums_nothing_is_a_view_or_stays_a_tree(kind, many):
    x = kind.family(ordinary("f8", (3, 3)))
    with mb.count() as c:
        t, d, again = mb.einsum("ij->ji", x), mb.einsum("ii->i", x), mb.einsum("ij", x)
    assert (c.launches, c.bytes_written, c.library_calls) == (0, 0, 0)
    with mb.count() as c:
        pending = mb.einsum("i,j->ij", x[0], x[1])
    assert (c.launches, c.bytes_written) == (0, 0)
    before = mb.to_numpy(x)
    x[:1, 1:2] = 50.0
    assert float(mb.to_numpy(t)[1, 0]) == 50.0 and d.shape == (3,) and again.shape == (3, 3)
    assert_same(pending, np.outer(before[0], before[1]))


# Paths

CHAIN = "ij,jk,kl,lm->im"


def chain(kind):
    shapes = [(30, 2), (2, 30), (30, 2), (2, 30)]
    arrays = [ordinary("f8", s, seed=i) for i, s in enumerate(shapes)]
    return arrays, [kind.family(x) for x in arrays]


@plain
@pytest.mark.parametrize(
    "optimize",
    [
        True, False, "greedy", "optimal", "auto", "branch-2", "dp", ("greedy", 10**6),
        ["einsum_path", (0, 1), (0, 1), (0, 1)], [(2, 3), (1, 2), (0, 1)], [(0, 1, 2), (0, 1)], [(1, 2)],
    ],
    ids=str,
)  # fmt: skip
def test_every_way_to_a_path(optimize, kind):
    shapes = [(3, 2), (2, 4), (4, 2), (2, 3)]
    arrays = [ordinary("f8", s, seed=i) for i, s in enumerate(shapes)]
    result = mb.einsum(CHAIN, *map(kind.family, arrays), optimize=optimize)
    assert_same(result, np.linalg.multi_dot(arrays), rtol=1e-11, atol=1e-11)
    assert_closed(result, kind)


@plain
def test_the_cheapest_order_is_taken(kind):
    arrays, mine = chain(kind)
    with mb.count() as c:
        result = mb.einsum(CHAIN, *mine)
    assert_same(result, np.linalg.multi_dot(arrays), rtol=1e-11, atol=1e-11)
    # Two 2 x 2 products, one of 30 x 2 by 2 x 2, and the result: never two of 30 x 30.
    assert c.bytes_written < 1.3 * result.nbytes


def test_the_path_is_opt_einsums():
    arrays, _ = chain(PLAIN[0])
    path, _ = opt_einsum.contract_path(CHAIN, *arrays)
    with mb.count() as c:
        mb.einsum(CHAIN, *map(mb.HostArray, arrays))
    with mb.count() as d:
        mb.einsum(CHAIN, *map(mb.HostArray, arrays), optimize=path)
    assert c == d


def test_without_opt_einsum_numpy_finds_the_path(monkeypatch):
    from mirabelle.arraytypes.functions import einsum

    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    einsum._found_path.cache_clear()
    arrays, mine = chain(PLAIN[0])
    assert_same(mb.einsum(CHAIN, *mine), np.linalg.multi_dot(arrays), rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="pip install opt_einsum"):
        mb.einsum(CHAIN, *mine, optimize="branch-2")
    einsum._found_path.cache_clear()


@plain
def test_einsum_path(kind):
    arrays, mine = chain(kind)
    for optimize in ("greedy", "optimal", True, False):
        path, text = mb.einsum_path(CHAIN, *mine, optimize=optimize)
        wanted, _ = np.einsum_path(CHAIN, *arrays, optimize=optimize)
        assert path == wanted and "Complete contraction" in text
        assert_same(mb.einsum(CHAIN, *mine, optimize=path), np.linalg.multi_dot(arrays), rtol=1e-11, atol=1e-11)
    with mb.count() as c:
        mb.einsum_path(CHAIN, *mine)
    assert (c.launches, c.transfers, c.library_calls, c.scalar_reads) == (0, 0, 0, 0)


def test_opt_einsum_contracts_our_arrays():
    arrays, _ = chain(PLAIN[0])
    for family in (mb.HostArray, mb.RefArray):
        result = opt_einsum.contract(CHAIN, *map(family, arrays))
        assert type(result) is family[mb.float64, 2]
        assert_same(result, np.linalg.multi_dot(arrays), rtol=1e-11, atol=1e-11)


# Fusion


@plain
def test_elementwise_parts_are_fused(kind, many):
    a, b = ordinary("f8", (6, 5)), ordinary("f8", (6, 5), seed=1)
    x, y = kind.family(a), kind.family(b)
    cases = [
        (lambda: mb.einsum("ij,ij->i", x + 1, y * 2), np.einsum("ij,ij->i", a + 1, b * 2)),
        (lambda: mb.einsum("ij,ij->", x - y, x - y), np.einsum("ij,ij->", a - b, a - b)),
        (lambda: mb.einsum("ij->j", mb.abs(x)), np.abs(a).sum(0)),
        (lambda: mb.sqrt(mb.einsum("ij,ij->ij", x, x) + 1), np.sqrt(a * a + 1)),
        (lambda: mb.einsum("ij,ij,ij->i", x, y, x, optimize=False), np.einsum("ij,ij,ij->i", a, b, a)),
        (lambda: mb.einsum("i,j->ij", x[:, 0] + 1, y[0]) + 1, np.outer(a[:, 0] + 1, b[0]) + 1),
        (lambda: mb.einsum("ij,j->i", x * 2, y[0]), (a * 2) @ b[0]),
        (
            lambda: mb.einsum("aij,aj->ai", mb.broadcast_to(x, (3, 6, 5)), y[:3]),
            np.einsum("ij,aj->ai", a, b[:3]),
        ),
    ]
    for make, expected in cases:
        with mb.count() as c:
            result = mb.materialize(make())
        assert_same(result, expected, **CLOSE)
        assert (c.launches, c.temporaries, c.library_calls, c.scalar_reads) == (1, 0, 0, 0)


@plain
def test_matrix_products_are_one_call_without_copies(kind):
    a, b = ordinary("f8", (3, 6, 5)), ordinary("f8", (5, 4), seed=1)
    x, y = kind.family(a), kind.family(b)
    flat = kind.family(ordinary("f8", (3, 30)))
    for make in (
        lambda: mb.einsum("aij,jk->aik", x, y),
        lambda: mb.einsum("aij,kj->aik", x, kind.family(b.T)),
        lambda: mb.einsum("aij,aik->ajk", x, x),
        lambda: mb.einsum("aij,bij->ab", x, x),
        lambda: mb.einsum("ij,jk->ki", x[0], y),
        lambda: mb.tensordot(x, y, axes=1),
        lambda: mb.tensordot(x, x, axes=([1, 2], [1, 2])),
        lambda: mb.inner(x, x),
        lambda: flat @ mb.reshape(x, (3, 30)).T,
    ):
        make()
        with mb.count() as c:
            result = make()
        # All that is written is the result.
        assert (c.launches, c.bytes_written, c.library_calls) == (1, result.nbytes, 0)


@plain
def test_inner_products_of_lines_in_memory_are_the_librarys(kind, many):
    a, b = ordinary("f8", (6, 5)), ordinary("f8", (6, 5), seed=1)
    x, y, turned = kind.family(a), kind.family(b), kind.family(np.ascontiguousarray(b.T)).T
    for make, calls in (
        (lambda: mb.einsum("ij,ij->i", x, y), 1),
        (lambda: mb.vecdot(x, y), 1),
        (lambda: mb.vecdot(x[::2, 1:], y[::2, 1:]), 1),
        (lambda: mb.vecdot(x, turned), 0),  # columns of one are neighbours: in blocks
        (lambda: mb.vecdot(x * 1, y), 0),
        (lambda: mb.einsum("ij,ij->j", x, y), 0),
    ):
        with mb.count() as c:
            result = mb.materialize(make())
        if not library.has(kind.family, "vecdot"):  # a card's own reductions are as quick
            calls = 0
        assert (c.library_calls, c.launches, c.temporaries) == (calls, 1 - calls, 0)
        assert_closed(result, kind)
    assert_same(mb.vecdot(x[::2, 1:], y[::2, 1:]), np.vecdot(a[::2, 1:], b[::2, 1:]), **CLOSE)
    assert_same(mb.vecdot(x, turned), np.vecdot(a, b), **CLOSE)


# Relatives


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_products_by_their_names(kind):
    a, b = ordinary("f8", (3, 4)), ordinary("f8", (3, 4), seed=1)
    x, y = kind.make(a), kind.make(b)
    a, b = kind.sample(a), kind.sample(b)
    for mine, expected in (
        (mb.tensordot(x, y.T, axes=1), np.tensordot(a, b.T, axes=1)),
        (mb.tensordot(x, y, axes=([0], [0])), np.tensordot(a, b, axes=([0], [0]))),
        (mb.tensordot(x, y, axes=0), np.tensordot(a, b, axes=0)),
        (mb.vecdot(x, y), np.vecdot(a, b)),
        (mb.vecdot(x, y, axis=0), np.vecdot(a, b, axis=0)),
        (mb.inner(x, y), np.inner(a, b)),
        (mb.outer(x, y), np.outer(a, b)),
        (mb.kron(x, y), np.kron(a, b)),
        (mb.dot(x, y.T), np.dot(a, b.T)),
        (mb.vdot(x, y), np.asarray(np.vdot(a, b))),
        (x[:, None, :] @ y[..., None], a[:, None, :] @ b[..., None]),
    ):
        assert_same(mine, expected, **CLOSE)
        assert_closed(mine, kind)


@plain
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
        ((1, 3, 4), (7, 4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((5, 1, 1, 4), (4, 3)),
        ((2, 3, 0), (2, 0, 5)), ((0, 3, 4), (4, 5)),
    ],
    ids=str,
)  # fmt: skip
def test_matmul_of_stacks(shapes, kind):
    a, b = ordinary("f8", shapes[0]), ordinary("f8", shapes[1], seed=1)
    result = kind.family(a) @ kind.family(b)
    assert_same(result, a @ b, **CLOSE)
    assert_closed(result, kind)


# Refusals


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: mb.einsum("ij,jk->ik", x), ValueError, r"indices for 2 operand\(s\), and 1 came"),
        (lambda x: mb.einsum("ij->ik", x), ValueError, "the index 'k', which no operand has"),
        (lambda x: mb.einsum("i->i", x), ValueError, r"has 2 dimension\(s\), and its indices 'i' name 1"),
        (lambda x: mb.einsum("ijk->i", x), ValueError, "name 3"),
        (lambda x: mb.einsum("ij->ii", x), ValueError, r"twice in the result.*mb\.diag"),
        (lambda x: mb.einsum("ij->i->j", x), ValueError, "more than one result"),
        (lambda x: mb.einsum("ij-i", x), ValueError, "'ij,jk->ik'"),
        (lambda x: mb.einsum("i1->i", x), ValueError, "invalid subscript '1'"),
        (lambda x: mb.einsum("i.j->i", x), ValueError, "invalid subscript"),
        (lambda x: mb.einsum("...i...->i", x), ValueError, "invalid subscript"),
        (lambda x: mb.einsum("...j->j", x), ValueError, r"no `\.\.\.`"),
        (lambda x: mb.einsum("ii->i", x), ValueError, "index 'i' stands for dimensions of 2 and of 3"),
        (lambda x: mb.einsum("ii->i", x[:1]), ValueError, "twice in one operand.*1 and 3"),
        (lambda x: mb.einsum("ij,jk->ik", x, x), ValueError, r"index 'j' stands for .* 3 and of 2.*\(2, 3\)"),
        (lambda x: mb.einsum("i...,i...->i", x, x.T), ValueError, "stands for|no `"),
        (lambda x: mb.einsum("ij,ij,ij", x, x, x, optimize="best"), ValueError, "'best' is no way.*\"greedy\""),
        (lambda x: mb.einsum("ij,ij,ij", x, x, x, optimize=[(0, 3)]), ValueError, "3 operand.*optimize=True"),
        (lambda x: mb.einsum("ij,ij,ij", x, x, x, optimize=[(0, 0)]), ValueError, "contracts"),
        (lambda x: mb.einsum(x, "ij"), TypeError, "followed by a list of its indices"),
        (lambda x: mb.einsum(x, [0, -1]), ValueError, "from 0 on, not -1"),
        (lambda x: mb.einsum(x), ValueError, "takes indices and operands"),
        (lambda x: mb.einsum(), TypeError, "subscripts"),
        (lambda x: mb.einsum("ij->i", x, dtype="i4"), TypeError, "casting"),
        (lambda x: mb.einsum("ij->i", x, out=mb.zeros(5)), (ValueError, TypeError, mb.PlaceError), "."),
        (lambda x: mb.kron(x, None), TypeError, "."),
        (lambda x: mb.inner(x, x.T), ValueError, "equally long"),
        (lambda x: mb.vdot(x, x[0]), ValueError, "equally many"),
        (lambda x: mb.tensordot(x, x, axes=-1), ValueError, "axes=-1"),
    ],
)  # fmt: skip
@plain
def test_refusals_are_sentences(call, error, text, kind):
    a = ordinary("f8", (2, 3))
    x = kind.family(a)
    with pytest.raises(error, match=text):
        call(x)
    assert_same(x, a)
