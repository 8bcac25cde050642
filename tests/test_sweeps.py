"""Loops over parts of other sizes each time: one statement, one kernel, and what NumPy makes of them."""

import itertools

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.dense import memory_order
from mirabelle.backends.host import layout, run, shortcuts
from mirabelle.dispatch.native import in_c

pytestmark = pytest.mark.usefixtures("trees")

N = 60


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    monkeypatch.setattr(shortcuts, "_met", {})
    known = dict(shortcuts.known)
    shortcuts.known.clear()
    with mb.settings.changed(compile_after=1, compiler="inline", small_size=1):
        yield
    shortcuts.known.clear()
    shortcuts.known.update(known)


def statements():
    return sum(map(len, shortcuts.known.values()))


SWEEPS = {
    "in place": "x[k + 1 :] -= y[k + 1 :] * 0.5",
    "from the front": "x[: k + 1] = y[: k + 1] * x[: k + 1] + 1",
    "by another": "z[k:] = x[k:] * y[k:] + 2",
    "what was stored": "t = x[k:] * y[k:]; z[k:] = t * t + x[k:]",
    "a choice": "z[k:] = where(x[k:] > 0.5, y[k:], x[k:])",
    "backwards": "x[k:] = y[::-1][k:] * 2 - x[k:]",
    "blocks": "a[k:, k:] -= b[k:, k:] * 0.5",
    "elimination": "a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :] * 0.01",
    "columns": "a[k:, k] = b[k:, k] * 0.5 + 1",
    "beside": "a[:, k + 1 :] = a[:, : N - 1 - k] * 0.5 + b[:, k + 1 :]",
    "across": "a[k:, :] = b.T[k:, :] * 0.5 + a[k:, :]",
    "stretched": "a[k:, k:] = b[k:, k:] * x[k:] + y[k:, None]",
}


def do(text, scope, of):
    exec(text, {"where": of.where, "N": N}, scope)


def operands():
    rng = np.random.default_rng(1)
    shapes = {"x": (N,), "y": (N,), "z": (N,), "a": (N, N), "b": (N, N)}
    plain = {k: rng.random(shape) for k, shape in shapes.items()}
    return plain, {k: mb.HostArray(v.copy()) for k, v in plain.items()}


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_is_one_statement(name, monkeypatch):
    plain, ours = operands()
    made = []
    launch = run.launch
    monkeypatch.setattr(run, "launch", lambda *args: made.append(1) or launch(*args))
    text = SWEEPS[name]
    for turn in range(3):
        if turn == 1:
            known = statements()
            made.clear()
        for k in range(N - 4):
            for scope, of in ((plain, np), (ours, mb)):
                scope["k"] = k
                do(text, scope, of)
            for key in "xyzab":
                assert np.array_equal(mb.to_numpy(ours[key]), plain[key]), (key, turn, k)
    # (What is as wide as the array is one dimension, not two; a statement may be several for what it stores.)
    assert 1 <= known <= 4, shortcuts.known
    assert statements() <= known + 1
    # Hardly any went the general way.
    assert len(made) <= 8


def of_length(rng, n, length, step):
    """A slice of so many elements."""
    span = (length - 1) * step + 1
    first = int(rng.integers(0, n - span + 1))
    return slice(first, first + span, step)


TEMPLATES = [
    "x[i] = x[j] * 0.5 + y[i]",
    "x[i] -= y[j] * x[i]",
    "x[i] = where(y[j] > 0.5, x[i], y[i] + 1)",
    "t = y[j] * 2; x[i] = t * t + x[i]",
    "t = x[j] * 2; x[i] = t + y[j]; y[i] = t * 0.25",
    "x[i] = y.T[i] + x[j]",
    "x[i] = x[j[0], c] + y[r, i[1]] * x[i]",
    "u = y[j] + x[i]; y[i] = u - x[j]",
]


DTYPES_OF = dict(zip(TEMPLATES, itertools.cycle(["f8", "f4", "c16", "i4", "f8"])))


@pytest.mark.parametrize("template, dtype", DTYPES_OF.items())
def test_parts_of_any_layout_are_told_apart(template, dtype):
    """Of any two parts of an array, alike, apart, interleaved or overlapping."""
    n = 14
    rng = np.random.default_rng(TEMPLATES.index(template))
    plain = {k: (rng.random((n, n)) * 4).astype(dtype) for k in "xy"}
    ours = {k: mb.HostArray(v.copy()) for k, v in plain.items()}
    hits = []
    for turn in range(100):
        rows, columns = (int(v) for v in rng.integers(1, n + 1, 2))
        rows = rows if turn % 3 else n
        steps = [int(rng.choice([1, 1, 2])) if length * 2 <= n else 1 for length in (rows, columns)]
        i, j = (
            tuple(of_length(rng, n, length, s) for length, s in zip((rows, columns), steps, strict=True))
            for _ in range(2)
        )
        if rng.random() < 0.3:
            j = i
        if rng.random() < 0.2:
            i = (slice(i[0].stop - 1, i[0].start - 1 if i[0].start else None, -i[0].step), i[1])
        c, r = (slice(v, v + 1) for v in rng.integers(0, n, 2).tolist())
        for scope, of in ((plain, np), (ours, mb)):
            scope.update(i=i, j=j, c=c, r=r)
            with np.errstate(all="ignore"):
                do(template, scope, of)
        for key in "xy":
            found, wanted = mb.to_numpy(ours[key]), plain[key]
            assert np.array_equal(found, wanted, equal_nan=True), (turn, i, j)
        for scope in (plain, ours):  # numbers stay small
            scope["x"][...] = scope["x"] / 4 if dtype != "i4" else scope["x"] % 100
            scope["y"][...] = scope["y"] / 2 if dtype != "i4" else scope["y"] % 100
        hits.append(statements())
    assert hits[-1] > 0


def test_values_have_the_order_of_their_operands():
    """One statement of many layouts gives memory the order that the general way does."""
    row = mb.HostArray(np.ones(1))
    for turn in range(60):
        for shape, order in (((3 + turn % 7, 5), "C"), ((4, 2 + turn % 9), "F"), ((6, 1), "F"), ((1, 7), "F")):
            x = mb.HostArray(np.ones(shape, order=order))
            for tree in (x * 3.0 + row, mb.transpose(x) * 3.0 - row):
                wanted = np.empty(tree.shape, order=memory_order(tree._node))
                assert mb.to_numpy(mb.materialize(tree)).strides == wanted.strides, (turn, shape, order)
    assert 0 < statements() <= 12


@pytest.mark.parametrize("place", [mb.CuArray, mb.RefArray])
def test_cards_compile_no_kernel_for_a_size(place):
    rng = np.random.default_rng(0)
    given = {k: rng.random(shape) for k, shape in {"x": 40, "y": 40, "a": (24, 24)}.items()}
    there = {k: place(v) for k, v in given.items()}
    texts = (
        "x[k + 1 :] -= y[k + 1 :] * 0.5",
        "y[: 20 - k] = where(x[k : 20] > 0.5, x[k : 20], 0.25)",
        "a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :] * 0.01",
    )

    def turn(k):
        for scope, of in ((given, np), (there, mb)):
            scope["k"] = k
            for text in texts:
                do(text, scope, of)

    for k in range(5):  # (where parts begin decides how many elements are read at once)
        turn(k)
    with mb.count() as c:
        for k in range(5, 17):
            turn(k)
    assert c.compilations == 0
    for key in "xya":
        np.testing.assert_allclose(mb.to_numpy(there[key]), given[key], rtol=1e-14)


# Reductions

REDUCTIONS = {
    "of all": "s = float(sum_(x[k:] * y[k:]))",
    "of rows": "z[k:] = sum_(a[k:, k:] * 0.5, axis=1)",
    "of columns": "b[k, k:] = sum_(a[k:, k:] * x[k:], axis=0)",
    "of a view": "s = float(max_(a[k:, : N - k]))",
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_sweep_of_reductions_is_one_statement(name):
    plain, ours = operands()
    for turn in range(2):
        for k in range(N - 4):
            for scope, of in ((plain, np), (ours, mb)):
                scope["k"] = k
                exec(REDUCTIONS[name], {"sum_": of.sum, "max_": of.max, "N": N}, scope)
            for key in "zb":
                assert np.array_equal(mb.to_numpy(ours[key]), plain[key]), (key, turn, k)
            assert ours.get("s") == plain.get("s")
        if turn == 0:
            known = statements()
    assert 1 <= known <= 6, shortcuts.known
    assert statements() <= known + 1


@pytest.mark.parametrize("name, dtype", [("sum", "f8"), ("max", "f4")])
def test_reductions_of_any_size_are_those_of_the_general_way(name, dtype):
    """To the last bit: of lines longer than a block, of rows and columns, turned, with gaps and stretched."""
    rng = np.random.default_rng(len(name))
    hits = 0
    for turn in range(16):
        nd = int(rng.integers(1, 4))
        sizes = {1: (1, 2500, 5000, 20000), 2: (1, 3, 40, 1100), 3: (1, 2, 13, 30)}[nd]
        shape = tuple(int(rng.choice(sizes)) for _ in range(nd))
        if np.prod(shape) > 60000:
            continue
        views = [random_view(rng, shape, dtype), random_view(rng, shape[turn % nd :], dtype)]
        for v in views:
            v[...] = (rng.random(v.shape) * 3 - 1).astype(dtype)
        x, y = (mb.HostArray(v) for v in views)
        axes = tuple(d for d in range(nd) if rng.random() < 0.6) or (nd - 1,)
        keep = bool(turn % 2)

        def value(x=x, y=y, axes=axes, keep=keep):
            return mb.to_numpy(getattr(mb, name)(x * y + x, axis=axes, keepdims=keep)).copy()

        before = dict(shortcuts.known)
        shortcuts.known.clear()
        wanted = value()
        shortcuts.known.update(before)
        for _ in range(9):
            found = value()
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            assert found.tobytes() == wanted.tobytes(), (turn, shape, axes, keep)
        hits += statements() > 0
    assert hits > 0


# Operands in C


def random_view(rng, shape, dtype):
    """An array of this shape that lies in any way: turned, with gaps, backwards."""
    order = rng.permutation(len(shape)) if rng.random() < 0.5 else np.arange(len(shape))
    steps = [int(rng.choice([1, 1, 2])) for _ in shape]
    room = np.zeros([shape[d] * steps[d] + int(rng.integers(0, 2)) for d in order], dtype)
    index = [slice(None, n * s, s) for n, s in zip(shape, steps, strict=True)]
    back = [slice(None, None, -1) if rng.random() < 0.2 else slice(None) for _ in shape]
    return room.transpose(np.argsort(order))[(*index, ...)][(*back, ...)]


def test_arrangements_show_the_elements():
    """Whatever is merged and turned, each operand gives the same elements in the same places."""
    rng = np.random.default_rng(0)
    for _ in range(800):
        shape = tuple(int(rng.choice([1, 2, 3, 9])) for _ in range(rng.integers(0, 5)))
        views = [random_view(rng, shape, rng.choice(["f8", "f4", "c16", "i1"]))]
        for _ in range(rng.integers(0, 4)):
            tail = shape[int(rng.integers(0, len(shape) + 1)) :]
            tail = tuple(1 if rng.random() < 0.2 else n for n in tail)
            views.append(random_view(rng, tail, rng.choice(["f8", "f4", "c16", "i1"])))
        found = layout.arrange(shape, views)
        for v in views:
            v[...] = rng.integers(0, 100, v.shape)
        shown = [
            np.lib.stride_tricks.as_strided(v, found.sizes, s)
            for v, s in zip(views, found.strides, strict=True)
        ]
        whole = [np.broadcast_to(v, shape) for v in views]
        pairs = sorted(zip(*[w.ravel().tolist() for w in whole], strict=True), key=str)
        assert pairs == sorted(zip(*[s.ravel().tolist() for s in shown], strict=True), key=str)
        if found.in_order:
            for s, w in zip(shown, whole, strict=True):
                assert np.array_equal(s.ravel(), w.ravel())
        for c, s, v in zip(found.classes, found.strides, views, strict=True):
            assert c == layout.inner_class(s[-1], v.dtype) or len(found.sizes) == 1


def test_arrangements_of_reductions_show_the_elements():
    rng = np.random.default_rng(1)
    for _ in range(800):
        shape = tuple(int(rng.choice([1, 2, 3, 9])) for _ in range(rng.integers(0, 5)))
        views = [random_view(rng, shape, "f8") for _ in range(rng.integers(1, 3))]
        for v in views:
            v[...] = rng.integers(0, 100, v.shape)
        axes = tuple(d for d in range(len(shape)) if rng.random() < 0.5)
        found = layout.arrange_reduction(shape, axes, views)
        kept = len(found.kept) if not found.inner_kept else None
        for v, strides in zip(views, found.strides, strict=True):
            shown = np.lib.stride_tricks.as_strided(v, found.sizes, strides)
            if kept is not None:
                sums = shown.sum(axis=tuple(range(kept, shown.ndim)))
            else:
                first = len(found.kept)
                sums = shown.sum(axis=tuple(range(first, first + len(found.reduced))))
            left = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
            wanted = v.sum(axis=tuple(d for d in range(len(shape)) if d not in left))
            order = [left.index(d) for d in found.order]
            assert np.array_equal(sums.ravel(), np.asarray(wanted).transpose(order).ravel()), (shape, axes)


@pytest.mark.parametrize(
    "args",
    [
        (),
        ((2,),),
        ((2,), []),
        ([2], [np.ones(2)]),
        ((2,), [1]),
        ((2,), [((2,), (8, 8), 8)]),
        ((2,), [np.ones((2, 2))]),
        ((2,) * 65, [np.ones(2)]),
        ((2,), [np.ones(2)], (1,)),
        ((2,), [np.ones(2)], [0]),
    ],
)
def test_what_is_no_launch(args):
    with pytest.raises((TypeError, ValueError)):
        in_c.arrange(*args)
