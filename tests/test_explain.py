"""`mb.explain`: what an expression will do, without doing it."""

import warnings

import numpy as np
import pytest
from compare import assert_same
from kinds import SINGLE

import mirabelle as mb

pytestmark = pytest.mark.usefixtures("trees")


def test_it_shows_tree_source_bytes_launches_and_method():
    a = mb.HostArray(np.ones(100))
    e = mb.explain(mb.exp(a) * 2 + a)
    text = repr(e)
    for word in (
        "exp: float64[100]",
        "multiply",
        "add",
        "kernel",
        "800 B",
        "copyto",
        "launches",
        "HostArray[float64, 1]",
    ):
        assert word in text, word
    assert e.facts["launches"] == "1" and "def kernel" in e.source
    html = e._repr_html_()
    assert "<table" in html and "<details>" in html and "&lt;" not in e.tree


def test_it_evaluates_nothing():
    a = mb.HostArray(np.ones(100))
    y = mb.exp(a)
    z = mb.sum(y * a[:, None], axis=0)
    with mb.count() as c:
        mb.explain(z)
        mb.explain(z + y)
        mb.explain(mb.HostArray([1.0]) + 1)
    assert c.launches == 0 and c.temporaries == 0
    assert not z.evaluated and not y.evaluated


def test_it_changes_no_decision():
    """Explaining y must not count as an evaluation of y, which would have it stored."""
    a = mb.HostArray(np.ones(1000))
    y = a * 2
    mb.explain(y + 1)
    with mb.count() as c:
        mb.materialize(y + 1)
    assert c.bytes_written == 8000


@pytest.mark.parametrize("kind", SINGLE, ids=repr)
def test_every_kind_is_explained(kind):
    x = kind.make(kind.sample(np.ones((3, 4))))
    for expression in (x, x + 1, mb.sum(x * 2, axis=0), mb.max(x), x.T[1:] * x.T[:-1]):
        e = mb.explain(expression)
        assert "launches" in e.facts and repr(e) and e._repr_html_()
        assert kind.family.__name__.rstrip("]") in e.facts["result"]


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray])
def test_the_number_of_launches_is_the_truth(family):
    row, column = family(np.ones(40)), family(np.ones((30, 1)))
    cases = {
        "one": lambda: row * 2 + 1,
        "hoisted": lambda: mb.exp(row) * column,
        "reduction": lambda: mb.sum(row * 2),
        "over a reduction": lambda: row - mb.sum(row),
        "two reductions": lambda: mb.sum(row) + mb.max(column),
        "normalised": lambda: row / mb.sqrt(mb.sum(row * row)),
        "evaluated": lambda: mb.materialize(row * 2),
    }
    for name, make in cases.items():
        x = make()
        said = int(mb.explain(x).facts["launches"])
        with mb.count() as c:
            mb.materialize(x)
        assert said == c.launches, name


def test_the_bytes_are_the_truth(hot):
    a, b = mb.HostArray(np.ones(1 << 12)), mb.HostArray(np.ones(1 << 12, "f4"))
    x = a * b + a
    e = mb.explain(x)
    with mb.count() as c:
        mb.materialize(x)
    assert e.facts["bytes read"] == f"{c.bytes_read / 1024:.1f} KiB"
    assert e.facts["bytes written"] == f"{c.bytes_written / 1024:.1f} KiB"


def test_one_operation_at_a_time_reads_no_scalars_and_stretched_operands_once():
    a, row = mb.HostArray(np.ones((100, 10))), mb.HostArray(np.ones(10))
    # 2 * a reads and writes 8000 bytes; + row reads these and 80 more, and writes 8000
    assert mb.explain(2 * a + row).facts["one operation at a time"] == "31.3 KiB in 2 launches"


def test_shared_parts_are_shown_once():
    a = mb.HostArray([1.0, 2.0])
    y = a * 2
    tree = mb.explain(y * y + y).tree
    assert tree.count("= multiply") == 2 and "(again)" in tree
    assert sum(line.strip().startswith("x") for line in tree.splitlines()) == 1


def test_it_says_where_a_kernel_is(hot):
    a = mb.HostArray(np.ones(5000))
    x = a * 3 - 0.125
    mb.materialize(x + a * 0)
    y = a * 3 - 0.125
    mb.materialize(y)
    assert "compiled kernel" in mb.explain(a * 5 - 0.25).facts["runs as"]
    with mb.settings.changed(compiler="off", compile_size=1 << 20):
        assert "NumPy" in mb.explain(mb.cbrt(a) * 5 - mb.sin(a)).facts["runs as"]


def test_an_override_of_copyto_is_what_is_named():
    from mirabelle.ext import Broadcasted

    def mine(dest, src): ...

    with mb.override(mb.copyto, (mb.HostArray, Broadcasted), mine):
        assert "override" in mb.explain(mb.HostArray([1.0]) + 1).facts["method"]


def test_it_says_that_shared_memory_does_not_fuse():
    e = mb.explain(mb.asarray(np.ones(3)))
    assert "NumPy" in repr(e) and "HostArray(x)" in repr(e)


def test_things_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"mb\.methods"):
        mb.explain(mb.add)
    with pytest.raises(TypeError, match="array"):
        mb.explain(3)


def test_dtypes_that_do_not_compile_are_named():
    with mb.settings.changed(compiler="off"):
        e = mb.explain(mb.HostArray(np.ones(4, "f2")) + 1)
    assert "NumPy" in e.facts["runs as"]


def test_generated_source_is_in_tracebacks(hot):
    import linecache

    a = mb.HostArray(np.ones(300))
    mb.materialize(a * 3 - 0.375)
    assert any(name.startswith("<mirabelle kernel") for name in linecache.cache)


def test_broadcasted_is_a_tree_to_execute():
    t = mb.ext.broadcasted(mb.add, mb.HostArray([1.0, 2.0]), 1)
    assert type(t) is mb.ext.Broadcasted
    dest = mb.empty(2)
    assert mb.copyto(dest, t) is dest and dest.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="broadcast"):
        mb.ext.broadcasted(mb.divmod, mb.HostArray([1.0]), 2)


def test_a_kernel_that_does_not_compile_is_said_once_and_the_result_is_right(monkeypatch):
    from mirabelle.backends.host import compiler, kernels, shortcuts

    def broken(*_):
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(compiler, "compile_source", broken)
    monkeypatch.setattr(shortcuts, "_met", {})  # (what other tests met would have it compiled a moment sooner)
    x = mb.HostArray(np.arange(70_003.0))
    with mb.settings.changed(compiler="thread", cache=False, compile_size=1):
        expression = lambda: x * 3.25 - x / 7.125 + x * x * 1.0625
        n = mb.to_numpy(x)
        # (The thread may have tried before the first statement is through: then it is that one which says so.)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert_same(expression(), n * 3.25 - n / 7.125 + n**2 * 1.0625)
            kernels.settle()
            mb.materialize(expression())
            mb.materialize(expression())
        assert [w.category for w in said] == [RuntimeWarning]
        assert "did not compile" in str(said[0].message) and "explain" in str(said[0].message)
        assert "does not compile" in mb.explain(expression()).facts["runs as"]
