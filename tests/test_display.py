"""What people see: text as NumPy writes it, and in notebooks a card with a picture."""

import itertools
import re
import sys
import time
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from kinds import PLAIN, SINGLE
from samples import ordinary

import mirabelle as mb
from mirabelle.arraytypes import cards, flow, pictures
from mirabelle.arraytypes.boxes import Box, drawing

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
single = pytest.mark.parametrize("kind", SINGLE, ids=repr)

rng = np.random.default_rng(5)


def host(*shape):
    return mb.HostArray(rng.normal(size=shape))


def ref(*shape):
    return mb.RefArray(rng.normal(size=shape))


SHAPES = [
    (),
    (1,),
    (7,),
    (5000,),
    (0,),
    (0, 3),
    (4, 6),
    (5000, 3),
    (3, 5000),
    (4, 5, 6),
    (2, 3, 4, 5),
    (0, 2, 2),
]

OTHERS = {
    "view": lambda make: make(10, 12)[2:5, ::3],
    "view of a row": lambda make: make(10, 12)[-1],
    "reversed": lambda make: make(30)[::-1],
    "many steps": lambda make: make(100_000)[::2],
    "new axis": lambda make: make(4)[:, None],
    "view of a view": lambda make: make(10, 12)[1:9][2:, 3],
    "stretched": lambda make: mb.broadcast_to(make(4), (5, 4)),
    "stretched number": lambda make: mb.broadcast_to(make(1), (3,)),
    "windows": lambda make: mb.sliding_window_view(make(6), 3),
    "real part": lambda make: (make(3, 3) * 1j).real,
    "pending": lambda make: mb.exp(make(3)) * 2 + make(3),
    "pending reduction": lambda make: mb.sum(make(300, 200) * 2, axis=0),
    "large pending": lambda make: mb.sin(make(300, 200)) * 2 + 1,
    "view of pending": lambda make: (make(300, 200) * 2)[::2].T,
    "Diagonal": lambda make: mb.Diagonal(make(5)),
    "large Diagonal": lambda make: mb.Diagonal(make(4000)),
    "empty Diagonal": lambda make: mb.Diagonal(make(0)),
    "Bidiagonal": lambda make: mb.Bidiagonal(make(5), make(4), "U"),
    "Tridiagonal": lambda make: mb.Tridiagonal(make(4), make(5), make(4)),
    "UpperTriangular": lambda make: mb.UpperTriangular(make(5, 5)),
    "Symmetric": lambda make: mb.Symmetric(make(40, 40)),
    "Hermitian": lambda make: mb.Hermitian(make(4, 4) * 1j),
    "Adjoint": lambda make: mb.types.Adjoint(make(4, 3) * 1j),
    "Toeplitz": lambda make: mb.Toeplitz(make(4), make(6)),
    "Circulant": lambda make: mb.Circulant(make(6)),
    "Kronecker": lambda make: mb.Kronecker(make(2, 3), make(3, 2)),
    "Kronecker of five": lambda make: mb.Kronecker(*[make(2, 2)] * 5),
    "KroneckerSum": lambda make: mb.KroneckerSum(make(3, 3), make(4, 4)),
    "LowRank": lambda make: mb.LowRank(make(50, 2), make(2, 60)),
    "BlockDiagonal": lambda make: mb.BlockDiagonal(make(2, 2), make(3, 3), make(1, 4)),
    "many blocks": lambda make: mb.BlockDiagonal(make(300, 2, 2), make(50, 50)),
    "Fill": lambda make: mb.Fill((1000, 2000), 2.5),
    "Range": lambda make: mb.Range(0, 10),
    "Range down": lambda make: mb.Range(10, 0, -1),
    "Identity": lambda make: mb.Identity(6),
    "CSR": lambda make: mb.CSR(make(6, 5) * mb.eye(6, 5, device=make(1).place)),
    "Inverse": lambda make: mb.types.Inverse(make(3, 3)),
    "Concat": lambda make: mb.Concat(make(2, 3), make(4, 3)),
    "tree": lambda make: mb.ext.tree(mb.exp(make(3)) * 2),
    "tree of a reduction": lambda make: mb.ext.tree(mb.sum(make(3, 3) * 2)),
    "explanation": lambda make: mb.explain(mb.exp(make(300, 200)) * 2),
}


def parsed(html):
    """The card as a tree of elements: an error if it is not well formed."""
    return ET.fromstring(f"<body>{html}</body>")


def words(html):
    """What a reader reads of a card."""
    return " ".join(" ".join(parsed(html).itertext()).split())


def check(html):
    """Well formed, of known colours, and nothing from elsewhere."""
    parsed(html)
    assert len(html) < 60_000
    alone = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|<script|<link|<style|url\(|\bsrc=|\bhref=|\bclass=|\bid=", alone)
    # Colours that stand out on white and on black; all else has the colour of the page's text.
    colours = {*pictures.COLOURS.values(), pictures.OTHER, "currentColor", "none", "inherit"}
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', html)) <= colours
    assert set(re.findall(r"[;\"' ](?:color|background):([^;\"']*)", html)) <= colours
    assert not re.search(r"\bnan\b|inf", "".join(re.findall(r'(?:points|d|width|height|x|y)="([^"]*)"', html)))


# Notebooks


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@plain
def test_a_card_is_well_formed(kind, shape):
    for dtype in ("f8", "c8", "?", "i1"):
        html = kind.make(np.ones(shape, dtype))._repr_html_()
        check(html)
        said = words(html)
        assert (
            kind.family.__name__.rstrip("]") in said
            and np.dtype(dtype).name in said
            and repr(kind.place) in said
        )
        assert cards.shown_shape(shape) in said
        assert pictures.COLOURS[kind.place.kind] in html
        assert "<svg" in html


@pytest.mark.parametrize("make", [host, ref], ids=["host", "ref"])
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.usefixtures("trees")
def test_everything_has_a_well_formed_card(name, make):
    x = OTHERS[name](make)
    html = x._repr_html_()
    check(html)
    assert "<svg" in html or isinstance(x, mb.types.Explanation)


@single
def test_every_kind_has_a_card_and_shows_its_values(kind):
    values = kind.sample(np.array([[1.0, 2.25], [1.0, 2.25]]))
    html = kind.make(values)._repr_html_()
    check(html)
    assert "2.25" in words(html)


def test_texts_are_escaped():
    check(mb.map(lambda v: v + 1, mb.zeros((300, 300)))._repr_html_())
    check(pictures.svg(9, 9, [pictures.text(0, 0, "<b>&")]))
    check(cards.card("<b>", {"a&b": "<i>"}, "", cards.preformatted("<pre>")))
    assert words(cards.card("<b>", {"a&b": "<i>"}, "")).startswith("<b>")


def test_infinite_and_missing_values_are_shown():
    html = mb.HostArray([np.nan, np.inf, -np.inf, -0.0])._repr_html_()
    check(html)
    assert "nan inf -inf -0." in words(html)


@plain
def test_a_large_pending_array_stays_pending(kind):
    x = kind.make(np.ones((300, 200)))
    y = mb.sin(x) * 2 + x
    with mb.count() as seen:
        html = y._repr_html_()
    assert seen.launches == 0 and seen.bytes_read == 0 and seen.transfers == 0
    assert "pending: 3 operations" in words(html) and "multiply" in words(html)
    assert mb.explain(y).facts["launches"] == "1"  # still to do
    x[...] = 0  # nor does showing it keep a write from the array's memory
    np.testing.assert_array_equal(mb.to_numpy(y), np.sin(np.ones((300, 200))) * 2 + 1)


@plain
@pytest.mark.usefixtures("trees")
def test_notebooks_ask_for_a_text_too_and_nothing_large_is_computed(kind):
    y = mb.sin(kind.make(np.ones((300, 200)))) * 2
    with mb.count() as seen:
        shown = y._repr_mimebundle_()
    assert seen.launches == 0
    assert shown["text/html"] == y._repr_html_()
    assert shown["text/plain"].startswith(f"{type(y).__name__} of shape (300, 200), pending:\nv1 = multiply")
    small = kind.make(np.ones(3)) * 2
    shown = small._repr_mimebundle_(include=["text/plain"], exclude=None)
    assert shown["text/plain"] == repr(small) and "pending" in words(shown["text/html"])


def test_in_a_notebook():
    formatters = pytest.importorskip("IPython.core.formatters")
    y = mb.zeros((300, 200)) * 2
    with mb.count() as seen:
        shown, _ = formatters.DisplayFormatter().format(y)
    assert seen.launches == 0
    assert "pending" in shown["text/plain"] and "pending" in shown["text/html"]


def test_in_ipythons_terminal(monkeypatch):
    shell = SimpleNamespace(display_formatter=SimpleNamespace(active_types=["text/plain"]))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert mb.zeros((300, 200))._repr_mimebundle_() == {}  # it asks for the text: values


@plain
@pytest.mark.usefixtures("trees")
def test_a_small_pending_array_shows_how_it_comes_about_and_its_values(kind):
    y = mb.sum(kind.make(np.ones((300, 200))) * 2, axis=0)[:3] + 1
    said = words(y._repr_html_())
    assert "pending" in said and "601. 601. 601." in said
    assert "in memory" in words(y._repr_html_())


def test_a_card_says_whose_memory_it_is():
    assert "memory shared with NumPy" in words(mb.asarray(np.ones(3))._repr_html_())
    assert "in memory" in words(mb.ones(3)._repr_html_())
    x = mb.zeros((4, 6))
    assert "shows HostArray 4 × 6" in words(x.T._repr_html_())
    assert "View 2 × 6, which shows HostArray 4 × 6" in words(x[:2].T._repr_html_())
    assert "48 B stored, 288 B if dense" in words(mb.Diagonal(mb.zeros(6))._repr_html_())


def test_trees_show_what_flows_where():
    x = mb.zeros((300, 200))
    said = words(mb.ext.tree(mb.sum(mb.exp(x) * 2 + x, axis=0))._repr_html_())
    assert "sum over axis 0" in said and "exp" in said and "float64 300×200" in said
    assert said.count("x1") == 1  # read twice, drawn once
    tree = mb.ext.tree(y := mb.exp(x))
    mb.materialize(y)
    assert "in memory" in words(tree._repr_html_())


def test_a_tree_too_large_for_a_picture_is_a_text(monkeypatch):
    monkeypatch.setattr(flow, "LIMIT", 4)
    x = mb.zeros((300, 200))
    html = (mb.exp(x) * 2 + x * 3)._repr_html_()
    check(html)
    assert "v2 = multiply: float64[300, 200]" in words(html)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.Fill((10**9, 10**9), 1.0),
        lambda: mb.Identity(10**9),
        lambda: mb.broadcast_to(mb.zeros(1), (10**6, 10**6)),
        lambda: mb.Range(0, 10**12),
        lambda: mb.Kronecker(mb.zeros((1000, 1000)), mb.zeros((1000, 1000)), mb.zeros((1000, 1000))),
        lambda: mb.Diagonal(mb.zeros(10**6)),
        lambda: mb.zeros((3000, 3000)),
        lambda: mb.RefArray(np.zeros((1000, 3000))).T,
        lambda: mb.zeros((3000, 3000)) * 2 + 1,
    ],
)
def test_what_is_huge_is_shown_at_once(make):
    x = make()
    start = time.perf_counter()
    check(x._repr_html_())
    assert time.perf_counter() - start < 20


def test_of_a_devices_array_only_what_is_shown_is_fetched(monkeypatch):
    fetched = []
    download = mb.RefArray._download.__func__

    def recorded(cls, view):
        fetched.append(int(np.prod(view.shape)))
        return download(cls, view)

    x = mb.RefArray(ordinary("f8", (400, 500)))
    expected = str(mb.to_numpy(x))
    monkeypatch.setattr(mb.RefArray, "_download", classmethod(recorded))
    for show in (repr, str, lambda a: a._repr_html_(), lambda a: repr(a.T), lambda a: repr(a[10:, ::2])):
        fetched.clear()
        show(x)
        assert 0 < sum(fetched) < 100
    assert str(x) == expected


# Text: NumPy's


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?", "c16", "u1"])
@pytest.mark.parametrize("shape", [*SHAPES, (2000, 2, 3), (7, 8, 9, 10), (2, 3, 4, 5, 20)], ids=str)
def test_texts_are_numpys(shape, dtype):
    values = ordinary(dtype, shape)
    for kind in PLAIN:
        x = kind.make(values)
        assert str(x) == str(values)
        if shape and 0 not in shape:
            # `repr` writes commas, and begins further right: all else is the same.
            flat = re.sub(r"\s", "", repr(values)).removeprefix("array(")
            assert re.sub(r"\s", "", repr(x)).split("(", 1)[1].startswith(flat.split("]")[0].rstrip(")"))
        assert f"{x}" == str(values) and (x.size <= 1000 or f"shape={shape}" in repr(x))


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2}, {"suppress": True}, {"edgeitems": 1}, {"edgeitems": 5, "threshold": 50},
        {"linewidth": 40}, {"sign": "+"}, {"threshold": 10**6}, {"floatmode": "fixed"}, {"nanstr": "missing"},
        {"formatter": {"float": lambda v: f"<{v:.1f}>"}}, {"edgeitems": 0, "threshold": 5},
    ],
    ids=" ".join,
)  # fmt: skip
def test_texts_follow_numpys_print_options(options):
    values = rng.normal(size=(40, 50)) * 10.0 ** rng.integers(-3, 4, size=(40, 50))
    values[0, 0] = np.nan
    for n in (values, values[:3, :4], values[0]):
        for kind in PLAIN:
            with np.printoptions(**options):
                assert str(kind.make(n)) == str(n)
                repr(kind.make(n))


def test_numbers_are_formatted_as_numbers():
    x = mb.HostArray(3.14159)
    assert f"{x:.2f}" == "3.14" and f"{x:10.3e}" == " 3.142e+00" and format(mb.HostArray(7), "04d") == "0007"
    with pytest.raises(TypeError, match="format"):
        format(mb.HostArray([1.0, 2.0]), ".2f")


def test_structured_texts_have_dots_for_zeros():
    assert str(mb.Diagonal([1.5, 2.0])) == "[[1.5  . ]\n [ .  2. ]]"
    assert "parts:" in repr(mb.Diagonal(mb.zeros(5000)))


# The pieces


def test_pictures_are_in_proportion():
    high, wide = pictures.lengths((1000, 10))
    assert high == pictures.SIDE and pictures.LEAST <= wide < high / 2
    assert pictures.lengths((3, 3)) == [pictures.SIDE] * 2


def test_a_type_may_have_a_picture_of_its_own():
    x = mb.Diagonal(mb.ones(3))
    with mb.override(pictures.picture, (mb.Diagonal,), lambda x: "<svg>mine</svg>"):
        assert "mine" in words(x._repr_html_()) and "mine" not in words(mb.ones(3)._repr_html_())
    assert "mine" not in words(x._repr_html_())


@pytest.mark.parametrize("seed", range(40))
def test_boxes_of_any_graph_stand_apart(seed):
    """Whatever reads what: all are drawn, none over another, and lines lead downwards."""
    rng = np.random.default_rng(seed)
    drawn = []
    for i in range(int(rng.integers(1, 25))):
        box = Box(
            f"n{i}" * int(rng.integers(1, 5)), ["note"][: int(rng.integers(2))], "#000000", source=not i % 3
        )
        for _ in range(0 if box.is_source else int(rng.integers(4))):
            box.reading(drawn[int(rng.integers(len(drawn)))] if drawn else None, bool(rng.integers(2)))
        drawn.append(box)
    said = drawing(drawn)
    found = re.findall(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', said)
    rectangles = [tuple(map(float, r)) for r in found]
    assert len(rectangles) >= len(drawn) and all(f">{b.said}<" in said for b in drawn)
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(rectangles, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    for path in re.findall(r'<path d="(.*?)"', said):
        heights = [float(y) for y in re.findall(r",(-?[\d.]+)", path)]
        assert heights == sorted(heights)
