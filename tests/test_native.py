"""The pieces in C do what Python does beside them, and keep no account wrong."""

import gc
import re
import sys
import weakref

import numpy as np
import pytest
from children import answer
from hypothesis import given
from hypothesis import strategies as st

import mirabelle as mb
from mirabelle.backends.host import reduce, shortcuts
from mirabelle.dispatch import native, verbs
from mirabelle.dispatch.tree import Broadcasted, Leaf, kept

MISSING = """
    import json, sys
    sys.modules["mirabelle.dispatch._native"] = MODULE
    LOCK
    try:
        import mirabelle
    except ImportError as e:
        print(json.dumps(str(e)))
"""


@pytest.mark.parametrize(
    ("module", "lock", "text"),
    [
        ("None", "", "is not there: .*`pip install -e .`"),
        ("type(sys)('old')", "", "built of other sources .version None; .*`pip install -e .`"),
        (
            "SAME",
            "sys._is_gil_enabled = lambda: False",
            "needs the interpreter's global lock, .*Start Python without",
        ),
        ("SAME", "sys.byteorder = 'big'", "the lowest byte of a number first"),
    ],
)
def test_an_import_without_them_says_how_to_get_them(module, lock, text):
    same = f"type(sys)('same'); sys.modules['mirabelle.dispatch._native'].VERSION = {native.VERSION}"
    said = answer(MISSING.replace("MODULE", module.replace("SAME", same)).replace("LOCK", lock))
    assert re.search(text, said) and len(said) < 400


# Views

entries = st.one_of(
    st.integers(-5, 5),
    st.builds(
        slice,
        *[st.one_of(st.none(), st.integers(-6, 6))] * 2,
        st.one_of(st.none(), st.integers(-3, 3).filter(bool)),
    ),
    st.sampled_from([None, Ellipsis, True, np.int64(1), 1.5, slice(1.0, None), slice(0, None, 0)]),
)
indices = st.one_of(entries, st.lists(entries, max_size=5).map(tuple))


def outcome(f):
    try:
        return f()
    except (IndexError, TypeError, ValueError) as e:
        return type(e)


@given(indices, st.sampled_from([(4,), (3, 4), (2, 3, 4), (3, 0)]), st.booleans(), st.booleans())
def test_views_are_numpys(index, shape, turned, pending):
    plain = np.arange(float(np.prod(shape))).reshape(shape)
    ours = mb.HostArray(plain)
    if pending:
        plain, ours = plain + 1.0, ours + 1.0
    if turned:
        plain, ours = plain.T, ours.T
    expected, found = outcome(lambda: plain[index]), outcome(lambda: ours[index])
    if isinstance(expected, type):
        assert found == expected
    else:
        assert found.shape == expected.shape
        np.testing.assert_array_equal(mb.to_numpy(found), expected)


@given(indices, st.sampled_from([2.0, 3, np.float64(-1.0), "view", "array", "tree"]))
def test_writes_are_numpys(index, value):
    plain = np.arange(24.0).reshape(4, 6)
    ours = mb.HostArray(plain)
    other = np.full((4, 6), 7.0)
    values = {"view": (lambda x: x[1:, 1:2]), "array": (lambda x: x), "tree": (lambda x: x * 2.0)}
    for _ in range(2):
        given = [values[value](x) if isinstance(value, str) else value for x in (other, mb.HostArray(other))]

        def write(x, v):
            x[index] = v

        expected, found = (
            outcome(lambda g=given: write(plain, g[0])),
            outcome(lambda g=given: write(ours, g[1])),
        )
        assert expected == found
        np.testing.assert_array_equal(mb.to_numpy(ours), plain)


@pytest.mark.parametrize(
    "index", [(True,), (np.True_, ...), (np.array(True),), (1.0,), (1 + 0j,), (slice(0, 2.0),)]
)
def test_what_is_equal_to_an_index_need_not_be_it(index):
    plain = np.arange(12.0).reshape(3, 4)
    ours = mb.HostArray(plain)

    def write(x):
        x[index] = x[slice(0, 2) if isinstance(index[0], slice) else 1]

    assert outcome(lambda: write(plain)) == outcome(lambda: write(ours))
    np.testing.assert_array_equal(mb.to_numpy(ours), plain)


def test_writes_go_on_after_methods_changed():
    x = mb.HostArray(np.zeros(5))
    x[1] = 2.0
    asked = []
    with mb.override(verbs.copyto, (mb.HostArray, Broadcasted), lambda dest, src: asked.append(src)):
        x[1:3] = mb.HostArray(np.ones(2)) * 3.0
    assert asked
    x[1], x[3:] = 2.5, x[:2]
    assert mb.to_numpy(x).tolist() == [0.0, 2.5, 0.0, 0.0, 2.5]


def test_more_dimensions_than_most_have():
    plain = np.arange(2.0**20).reshape((2,) * 20)
    ours = mb.HostArray(plain)
    index = (slice(None),) * 3 + (None,) * 4 + (1,) * 12
    assert ours[index].shape == plain[index].shape
    np.testing.assert_array_equal(mb.to_numpy(ours[index] * 2.0), plain[index] * 2.0)
    with pytest.raises(IndexError):
        ours[(None,) * 64]


# Nodes


def test_parts_are_known_while_somebody_holds_them():
    root = Leaf(np.zeros(10))
    assert not root.parts and root.held_parts() == []
    parts = [Leaf(root.view[i:], root=root) for i in range(5)]
    assert root.parts and root.held_parts() == []
    holders = [kept(part) for part in parts]
    assert set(map(id, root.held_parts())) == set(map(id, parts))
    deeper = Leaf(parts[2].view[1:], root=parts[2])
    holders.append(kept(deeper))
    assert deeper.root is root and len(root.held_parts()) == 6
    del holders[1], holders[2]
    assert len(root.held_parts()) == 4
    del parts, deeper, holders
    gc.collect()
    assert root.held_parts() == [] and not root.parts


def test_a_part_can_be_given_to_another():
    one, other = Leaf(np.zeros(4)), Leaf(np.ones(4))
    part = Leaf(one.view[1:], root=one)
    part.shows(other)
    holder = kept(part)
    assert one.held_parts() == [] and other.held_parts() == [holder._node] and part.root is other
    with pytest.raises(TypeError):
        part.shows(3)
    with pytest.raises(AttributeError):
        part.root = one


def test_nodes_in_cycles_are_collected():
    leaf = Leaf(np.zeros(3))
    part = Leaf(leaf.view[1:], root=leaf)
    leaf.known = {"cycle": (0, [leaf, part])}
    gone = weakref.ref(leaf), weakref.ref(part)
    del leaf, part
    gc.collect()
    assert [g() for g in gone] == [None, None]


def test_deep_trees_end():
    x = mb.HostArray(np.zeros(3))
    with mb.settings.changed(tree_limit=1 << 20):
        y = x
        for _ in range(100_000):
            y = y + 1.0
        del y
    assert mb.to_numpy(x).sum() == 0


@pytest.mark.usefixtures("trees")
def test_nodes_say_what_they_are():
    x = mb.HostArray(np.zeros(3)) + 1.0
    node = x._node
    assert type(node) is Broadcasted and node.dtype == np.float64 and node.size == 1 and node.value is None
    assert node.args is not None and node.evaluations == 0 and node.layout is None and not node.foreign
    twin = Broadcasted(node.sig, node.args, node.shape)
    assert twin.size == 1 and Broadcasted(node.sig, node.args, node.shape, 5).size == 5


# Dispatch


def test_operators_hear_of_new_methods():
    x = mb.HostArray([1.0, 4.0])
    assert mb.to_numpy(x + x).tolist() == [2.0, 8.0]
    with mb.override(mb.add, (mb.HostArray, mb.HostArray), lambda a, b: "mine"):
        assert x + x == "mine"
    assert mb.to_numpy(x + x).tolist() == [2.0, 8.0]
    with mb.override(verbs.getitem, (mb.HostArray, slice), lambda a, i: "part"):
        assert x[1:] == "part"
    assert x[1:].shape == (1,)


def test_operators_are_methods():
    x = mb.HostArray([1.0, 4.0])
    assert mb.to_numpy(x.__add__(1.0)).tolist() == [2.0, 5.0]
    assert mb.to_numpy(x.__radd__(1.0)).tolist() == [2.0, 5.0]
    assert mb.to_numpy(x.__rsub__(1.0)).tolist() == [0.0, -3.0]
    assert x.__add__("text") is NotImplemented
    assert mb.HostArray.__add__.__name__ == "add" and mb.HostArray.__getitem__.__name__ == "getitem"
    with pytest.raises(TypeError):
        x.__add__()
    with pytest.raises(TypeError):
        x.__add__(1.0, 2.0, 3.0)


def test_numpys_numbers_come_first():
    x = mb.HostArray([1.0, 4.0])
    for result, expected in [
        (np.float64(2.0) * x, [2.0, 8.0]), (np.float64(2.0) - x[:], [1.0, -2.0]), (np.add(x, 1.0), [2.0, 5.0]),
        (np.sqrt(x), [1.0, 2.0]), (np.add([1.0, 1.0], x), [2.0, 5.0]), (np.int64(3) / x, [3.0, 0.75]),
    ]:  # fmt: skip
        assert isinstance(result, mb.AbstractArray) and mb.to_numpy(result).tolist() == expected
    out = mb.HostArray([0.0, 0.0])
    assert np.add(x, 1.0, out=out) is out and mb.to_numpy(out).tolist() == [2.0, 5.0]


@given(st.sampled_from([0, 1, -1, 1 << 31, 1 << 53, (1 << 53) + 1, -(1 << 63), 1 << 64, 1 << 80]))
def test_integers_that_do_not_fit_say_so(n):
    for dtype in (np.int8, np.int64, np.uint64, np.float32, np.float64):
        plain = np.ones(3, dtype)
        ours = mb.HostArray(plain)
        try:
            expected = plain + n
        except OverflowError:
            with pytest.raises(OverflowError):
                ours + n
            continue
        if expected.dtype != object:
            np.testing.assert_array_equal(mb.to_numpy(ours + n), expected)
            np.testing.assert_array_equal(mb.to_numpy(ours[:] + n), expected)


# Accounts


@pytest.mark.parametrize(
    "statement",
    [
        "x[1:] = y[1:] * 2.0 + y[:-1]",
        "x[1:] += y[1:] * 2.0",
        "t = y * 2.0; u = t + x; v = t - x; x[...] = u * v",
        "x[0] = 1.5; x[1] = y[2]; x[2:5] = x[5:8]",
        "z = (y[1:] + x[1:]) * 0.5; z = z.T if z.ndim > 1 else z",
        "np.float64(2.0) * x[1:]; 2 * x; x.T[1:] + 1.0",
        "w = y + 1.0; x[2:] = w[2:] * w[:-2]; w = None",
        "x[1] = mb.sum(y * x); s = mb.max(y[2:]); x[2] = s; mb.sum(x * y, axis=0); mb.min(x[1:])",
    ],
)
def test_nothing_is_kept(statement):
    """References and objects after many statements are as many as before."""
    code = compile(statement, "<statement>", "exec")
    with mb.settings.changed(compile_after=8, compiler="inline"):
        x, y = mb.HostArray(np.ones(64)), mb.HostArray(np.ones(64))
        scope = {"x": x, "y": y, "np": np, "mb": mb}

        def some(n):
            for _ in range(n):
                exec(code, scope)
                x[...] = 1.0
            gc.collect()

        some(200)
        watched = [None, x.dtype, verbs.add, (1, 2), np.float64, type(x)]
        for _ in range(3):  # (what earlier tests left behind may still come and go)
            counts = [sys.getrefcount(o) for o in watched]
            objects = len(gc.get_objects())
            some(300)
            grown = [sys.getrefcount(o) - c for o, c in zip(watched, counts, strict=True)]
            grown.append(len(gc.get_objects()) - objects)
            if max(map(abs, grown)) < 50:
                return
        raise AssertionError(grown)


def test_statements_that_cannot_be_said_are_refused():
    module = native.in_c
    for arguments in [(), (0, 1, 1, 1, [0], 5, (1,), (8,), np.dtype(float), "C", [], print, None)]:
        with pytest.raises((TypeError, ValueError)):
            module.Statement(*arguments)
    with pytest.raises(TypeError):
        module.tell(nobody=1)
    with pytest.raises(TypeError):
        module.tell(handle_node=3)
    with pytest.raises(TypeError):
        module.inspected(3)
    with pytest.raises((TypeError, ValueError)):
        module.Builder(None, int, "x", None, ())
    with pytest.raises(ValueError):
        module.Operator({}, print, 4)


def test_trees_that_come_back_are_known():
    with mb.settings.changed(compile_after=8, compiler="inline"):
        x, y = (mb.HostArray(np.random.default_rng(0).random((30, 30))) for _ in range(2))

        def step():
            t = x * 2.0 + y
            u = mb.materialize(t * t - y)
            return t, u

        for _ in range(40):
            step()
        met = dict(shortcuts._met)
        for _ in range(20):
            t, u = step()
        assert shortcuts._met == met
        expected = mb.to_numpy(x) * 2.0 + mb.to_numpy(y)
        np.testing.assert_array_equal(mb.to_numpy(t), expected)
        np.testing.assert_array_equal(mb.to_numpy(u), expected * expected - mb.to_numpy(y))


# What NumPy computes


SHAPES = [(), (5,), (3, 5), (1, 5), (3, 1)]
# Of arrays a and b, a part p, and a number.
SMALL = [
    "a + b", "a * 2 - b / 3.0", "-a", "np.sqrt(a * a)", "a ** 2 + b * a", "(a > b) | (a < 0)", "abs(a) % 2.5",
    "mb_where(a > 0, a, b)", "a.astype(np.float32) + b", "a / (b - b)", "p * a", "p + p.T.T - 1", "a * a.sum()",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # (NumPy's; ours says nothing of a division by zero)
@pytest.mark.parametrize("text", SMALL)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_small_trees_are_numpys(text, dtype):
    """To the last bit; also where somebody holds parts of them, and when they are written."""
    if dtype == "c16" and any(op in text for op in "><%"):
        pytest.skip("complex numbers have no order")
    for shape in SHAPES:
        rng = np.random.default_rng(1)
        a = (rng.standard_normal((3, 5)) * 4).astype(dtype)
        b = (rng.standard_normal(shape) * 4).astype(dtype)
        plain = {"a": a, "b": b, "p": np.broadcast_to(a, (3, 5))[:, ::-1], "mb_where": np.where, "np": np}
        ours = {"a": mb.HostArray(a), "b": mb.HostArray(b), "mb_where": mb.where, "np": np}
        ours["p"] = ours["a"][:, ::-1]
        expected = np.asarray(eval(text, plain))
        for _ in range(3):
            tree = eval(text, ours)
            held = tree + tree
            x = mb.empty((3, 5), dtype=expected.dtype)
            x[...] = tree
            x[1:, 2] = tree[1:, 2]
            for found in (x, tree, eval(text, ours)):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(mb.to_numpy(found), np.broadcast_to(expected, found.shape))
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(mb.to_numpy(held), expected + expected)


def test_warnings_are_as_before():
    """Who wants NumPy's warnings still has them after small trees were computed without."""
    x = mb.HostArray([1.0, 0.0])
    before = np.geterr()
    y = mb.zeros(2)
    for _ in range(3):
        y[:] = x / (x - x)
        mb.materialize(x / 0.0)
        mb.HostArray(np.full((2, 2), np.inf)) @ mb.zeros(2)
    assert np.geterr() == before
    with pytest.raises(FloatingPointError), np.errstate(all="raise"):
        np.ones(1) / np.zeros(1)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_products_of_parts_are_numpys(dtype):
    rng = np.random.default_rng(2)
    a, b = ((rng.standard_normal((7, 9)) * 4).astype(dtype) for _ in range(2))
    x, y = mb.HostArray(a), mb.HostArray(b)
    parts = {
        "a vector": lambda m: m[:, 2],
        "a row": lambda m: m[1],
        "backwards": lambda m: m[::-1, 4],
        "turned": lambda m: m.T,
        "cut": lambda m: m[:, 3:8],
        "every other": lambda m: m[::2, ::3],
        "reversed": lambda m: m[:, ::-1],
        "a column": lambda m: m[:, :1],
        "nothing": lambda m: m[:, :0],
        "whole": lambda m: m,
    }
    for first in parts.values():
        for second in parts.values():
            for f, s in ((first, second), (lambda m, first=first: first(m).T, second)):
                expected = outcome(lambda f=f, s=s: f(a) @ s(b))
                for x1, x2 in ((f(x), s(y)), (f(x), s(y))):
                    found = outcome(lambda x1=x1, x2=x2: x1 @ x2)
                    if isinstance(expected, type):
                        assert found == expected
                        continue
                    assert found.dtype == expected.dtype and found.shape == expected.shape
                    rtol = 1e-5 if dtype == "f4" else 1e-13
                    np.testing.assert_allclose(mb.to_numpy(found), expected, rtol=rtol, atol=1e-4 * rtol)


def test_products_see_what_was_written_and_who_counts():
    x, v = mb.ones((4, 4)), mb.ones(4)
    for k in range(4):
        x[k] = x[k] * 2.0
        np.testing.assert_array_equal(mb.to_numpy(x[1:] @ v), mb.to_numpy(x)[1:].sum(1))
    with mb.count() as counted:
        mb.materialize(x[1:] @ v)
    assert counted.launches + counted.library_calls > 0
    with mb.override(mb.matmul, (mb.AbstractArray, mb.AbstractArray), lambda a, b: "overridden"):
        assert x[1:] @ v == "overridden"
    assert (x[1:] @ v).shape == (3,)


@pytest.mark.parametrize("axis", [2, -3, 2**70, -(2**70), (0, 2**70), (0, 0), (0, -2), 1.0, "0"], ids=repr)
@pytest.mark.parametrize("made", ["x[1:]", "x * 2.0", "x"])
def test_axes_that_are_none(made, axis):
    x = eval(made, {"x": mb.HostArray(np.arange(12.0).reshape(3, 4))})
    with pytest.raises((np.exceptions.AxisError, TypeError, ValueError)):
        mb.sum(x, axis=axis)


def test_an_interrupt_is_not_lost():
    """Computing what has waited for long takes time, in which somebody may press Ctrl-C."""

    def interrupted(node):
        raise KeyboardInterrupt

    x = mb.ones((200, 200)) * 1.5
    held = [mb.sum(x[k:], axis=1) for k in range(8)]
    native.tell(waited=interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            held += [mb.sum(x[k:], axis=1) for k in range(40)]
    finally:
        native.tell(waited=reduce.waited)
    held += [mb.sum(x[k:], axis=1) for k in range(40)]
    for y in held:
        assert set(mb.to_numpy(y).tolist()) == {300.0}


def test_an_interrupt_of_a_small_value_is_not_lost():
    """What goes wrong in C is left to Python, which says so: but not that somebody interrupts."""

    def interrupted(*args):
        raise KeyboardInterrupt

    # (Numbers of half precision are NumPy's to convert.)
    x, n, y = mb.HostArray(np.float16(1)), mb.HostArray(np.int64(2)), mb.HostArray(np.ones(3))
    native.tell(asarray=interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            mb.materialize(x + n)
        with pytest.raises(KeyboardInterrupt):
            y[0] = x + n
    finally:
        native.tell(asarray=np.asarray)
    assert float(x + n) == 3


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8", "?"])
def test_single_elements_are_numpys(dtype):
    a = np.array([3, 5, 7]).astype(dtype)
    x = mb.HostArray(a)
    for case in (
        lambda u, s: s(u) * 2,
        lambda u, s: -(s(u) + s(u)) if u.dtype.kind != "b" else s(u) + 1,
        lambda u, s: 0.5 * s(u * u),
        lambda u, s: s(u) == s(u * u),
    ):
        ours = [case(x, mb.sum) for _ in range(20)]
        numpys = case(a, np.sum)
        for found in [*map(np.asarray, ours), np.asarray(mb.stack(ours)[3])]:
            assert found.shape == () and found.dtype == numpys.dtype
            assert found == numpys
