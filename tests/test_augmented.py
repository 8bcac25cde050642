"""Augmented assignment: numbers are bound anew, arrays are written to."""

import operator

import numpy as np
import pytest

import mirabelle as mb


def numbers():
    x, m = mb.HostArray(np.arange(6.0)), mb.HostArray(np.eye(3))
    return {
        "sum": mb.sum(x), "method": x.max(), "element": x[2], "elementwise": mb.sum(x) * 2, "dot": x @ x,
        "evaluated": mb.materialize(mb.sum(x)), "norm": mb.linalg.norm(m), "median": mb.median(x),
        "where": mb.where(mb.sum(x) > 1, 2.0, 3.0), "shared": mb.asarray(np.arange(3.0)).sum(),
        "array plus number": mb.zeros(()) + 1, "reference": mb.sum(mb.RefArray(np.arange(3.0))),
        "program": mb.compile(lambda v: mb.sum(v))(x), "cast": mb.sum(x).astype("f4"),
        "gradient": mb.autodiff.gradient(lambda v: v * v, mb.asarray(2.0)), "empty index": mb.zeros(())[()],
    }  # fmt: skip


def written():
    x = mb.zeros(())
    x[...] = mb.sum(mb.ones(3)) * 2
    return x


def arrays():
    return {
        "zeros": mb.zeros(()), "full": mb.full((), 2.0), "empty": mb.empty(()), "asarray": mb.asarray(2.0),
        "array": mb.array(2.0), "type": mb.HostArray(2.0), "reference": mb.RefArray(2.0),
        "shared": mb.asarray(np.array(2.0)), "zeros_like": mb.zeros_like(mb.sum(mb.ones(2))),
        "copy": mb.copy(mb.zeros(())), "view": mb.ones(3)[1, ...], "reshaped": mb.reshape(mb.zeros(1), ()),
        "moved": mb.adapt(mb.RefArray, mb.zeros(())), "written": written(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", list(numbers()))
def test_a_result_without_axes_is_bound_anew_as_numpys_numbers(kind):
    t = numbers()[kind]
    before, held = float(t), t
    t += 1
    assert t is not held and float(held) == before and float(t) == before + 1


@pytest.mark.parametrize("kind", list(arrays()))
def test_an_array_without_axes_that_a_constructor_made_is_written_to(kind):
    t = arrays()[kind]
    t[...] = 4.0
    held = t
    t += 1
    t *= 2
    assert t is held and float(held) == 10.0


AUGMENTED = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("name", AUGMENTED)
def test_every_augmented_operator_binds_numbers_anew_and_writes_to_arrays(name, array):
    op = AUGMENTED[name]
    x = array(np.arange(1.0, 4) if name == "/=" else np.arange(1, 4))
    t = held = mb.sum(x)
    before = t.tolist()
    t = op(t, 2)
    assert t is not held and held.tolist() == before and t.tolist() == op(np.sum(mb.to_numpy(x)), 2)
    a = held = mb.copy(x)
    a = op(a, 2)
    assert a is held and a.tolist() == op(mb.to_numpy(x), 2).tolist()
    with pytest.raises(ValueError, match="non-broadcastable"):
        op(array(mb.to_numpy(x)), array(mb.to_numpy(x)[None]))


def test_a_root_is_written_in_place_and_bound_anew():
    t = mb.sum(mb.ones(4))
    held = t
    t **= 0.5
    assert (float(t), float(held)) == (2.0, 4.0)
    x = held = mb.HostArray([4.0, 9.0])
    x **= 0.5
    assert x is held and x.tolist() == [2.0, 3.0]


def test_the_rule_holds_inside_of_programs():
    @mb.compile
    def f(x):
        t = mb.sum(x)
        u = t
        t += 1
        a = mb.zeros(())
        b = a
        a += 1
        return t, u, b

    assert [float(v) for v in f(mb.ones(3))] == [4.0, 3.0, 1.0]


def test_an_augmented_element_is_cast_back_and_an_augmented_array_is_not():
    x = mb.HostArray([1, 2])
    x[0] += 1.5
    assert x.tolist() == [2, 2]
    t = mb.asarray(1)
    with pytest.raises(TypeError, match="Cannot cast"):
        t += 1.5


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_augmented_assignment_gives_an_array_no_further_axes(array):
    x = array(np.ones(5))
    with pytest.raises(ValueError, match="non-broadcastable output operand with shape"):
        x += array(np.ones((1, 5)))
    with pytest.raises(ValueError, match=r"could not broadcast|non-broadcastable"):
        x += array(np.ones((2, 5)))
    assert x.tolist() == [1.0] * 5


N = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize(
    "left, right, shape",
    [
        (N, N.T[:, :1], (3, 3)), (N[:1], N.T, (3, 3)), (N[0], N.T, (1,)), (N, N[0], (1,)),
        (N[:1], N.T[:, :1], (3, 3)),
    ],
)  # fmt: skip
def test_an_output_is_no_larger_than_a_product_in_the_products_own_axes(array, left, right, shape):
    with pytest.raises(ValueError, match="core dimension"):
        np.matmul(left, right, out=np.zeros(shape))
    with pytest.raises(ValueError, match="non-broadcastable output operand with shape"):
        mb.matmul(array(left), array(right), out=array(np.zeros(shape)))


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_an_output_may_be_larger_than_a_product_in_what_it_is_repeated_over(array):
    x = array(N)
    for right, shape in [(N.T, (3, 3)), (N.T, (2, 3, 3)), (N[0], (2, 3))]:
        out = array(np.zeros(shape))
        assert mb.matmul(x, array(right), out=out) is out
        assert out.tolist() == np.matmul(N, right, out=np.zeros(shape)).tolist()


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("shape", [(1, 4), (1, 1), (2, 4)])
def test_a_mask_has_no_further_axes_than_what_it_is_written_to(array, shape):
    for xp, x in ((np, np.zeros(4)), (mb, array(np.zeros(4)))):
        with pytest.raises(ValueError, match="could not broadcast"):
            xp.copyto(x, 1.0, where=np.ones(shape, bool))
        assert x.tolist() == [0.0] * 4


# Functions of one array whose results have no axes.
NAMED = ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin",
         "count_nonzero",
         "median", "nanmedian", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanstd", "nanvar",
         "nanargmax", "nanargmin", "ptp", "trapezoid")  # fmt: skip
WITHOUT_AXES = {
    **{name: getattr(mb, name) for name in NAMED},
    "quantile": lambda x: mb.quantile(x, 0.3), "nanquantile": lambda x: mb.nanquantile(x, 0.3),
    "percentile": lambda x: mb.percentile(x, 30), "nanpercentile": lambda x: mb.nanpercentile(x, 30),
    "nearest": lambda x: mb.quantile(x, 0.3, method="nearest"), "dot": lambda x: mb.dot(x, x),
    "vdot": lambda x: mb.vdot(x, x), "inner": lambda x: mb.inner(x, x), "norm": mb.linalg.norm,
    "trace": lambda x: mb.trace(mb.outer(x, x)), "det": lambda x: mb.linalg.det(mb.diag(x)),
    "matmul": lambda x: x @ x, "interp": lambda x: mb.interp(1.5, x, x), "element": lambda x: x[1],
    "einsum": lambda x: mb.einsum("i,i->", x, x), "take": lambda x: mb.take(x, 1),
    "polyval": lambda x: mb.polyval(x, 2.0), "mapreduce": lambda x: mb.mapreduce(mb.abs, mb.add, x),
}  # fmt: skip
FAMILIES = {"host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray, "dist": mb.DArray[mb.HostArray]}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_results_without_axes_are_numbers_everywhere(name, family):
    f, x = WITHOUT_AXES[name], FAMILIES[family](np.array([1.0, 2.0, 4.0, 3.0]))
    # (nanargmax looks whether there is a number.)
    for way in (f,) if family == "dist" or name.startswith("nanarg") else (f, mb.compile(f)):
        t = way(x)
        held, before = t, mb.to_numpy(t).item()
        t += 1
        assert mb.to_numpy(held).item() == before and mb.to_numpy(t).item() == before + 1, way


def test_parts_that_are_updated_where_they_are():
    """Few elements are computed in place, if nobody else reads them, and assigning is ours."""
    x = mb.HostArray(np.arange(8.0))
    where = x._node.view.ctypes.data
    x[2:5] += 1.0
    x[:] *= x
    x[1:4] -= x[4:7]
    x[::-1] /= 2.0
    assert x._node.view.ctypes.data == where
    wanted = np.arange(8.0)
    wanted[2:5] += 1.0
    wanted[:] *= wanted
    wanted[1:4] -= wanted[4:7]
    wanted[::-1] /= 2.0
    np.testing.assert_array_equal(mb.to_numpy(x), wanted)
    # What overlaps, what others read, and what others have.
    part, sums, old, snapshot = x[1:], mb.sum(x), x * 2.0, np.asarray(x)
    x[1:] += x[:-1]
    assert part._parent is x and float(sums) == wanted.sum()
    np.testing.assert_array_equal(snapshot, wanted)
    np.testing.assert_array_equal(mb.to_numpy(old), wanted * 2.0)
    wanted[1:] += wanted[:-1].copy()
    np.testing.assert_array_equal(mb.to_numpy(x), wanted)
    with pytest.raises(ValueError, match="broadcast"):
        x[1:3] += mb.ones(3)
    with pytest.raises(TypeError, match="Cannot cast"):
        mb.HostArray([1, 2, 3])[:2] += mb.HostArray([0.5, 0.5])


def test_an_override_of_assigning_sees_updates_of_parts():
    seen = []

    def assign(dest, value, casting="unsafe"):
        seen.append(dest.shape)
        return mb.ext.assign.previous(dest, value, casting=casting)

    x = mb.HostArray(np.arange(8.0))
    x[1:3] += 1.0
    with mb.override(mb.ext.assign, (mb.AbstractArray, mb.AbstractArray), assign):
        x[1:3] += 1.0
    x[1:3] += 1.0
    assert seen == [(2,)] and mb.to_numpy(x).tolist() == [0, 4, 5, 3, 4, 5, 6, 7]


SHOWN = {
    "reshape": lambda t: mb.reshape(t, (-1,)), "method": lambda t: t.reshape(1, 1), "None": lambda t: t[None],
    "ravel": mb.ravel, "at least": mb.atleast_1d, "expanded": lambda t: mb.expand_dims(t, 0),
    "dots": lambda t: t[...], "transposed": lambda t: t.T.reshape(1),
    "squeezed": lambda t: mb.squeeze(t)[None],
}  # fmt: skip


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize(("kinds", "kind"), [(f, kind) for f in (numbers, arrays) for kind in f()])
def test_what_shows_a_number_shows_a_copy_as_numpys_arrays_of_scalars(kinds, kind, shown):
    given = kinds()[kind]
    before = float(given)
    part = SHOWN[shown](given)
    assert float(mb.sum(part)) == before
    part[...] = before + 7
    assert float(mb.sum(part)) == before + 7
    assert float(given) == (before if kinds is numbers else before + 7)


@pytest.mark.parametrize("kind", [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]])
@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_numbers_are_numbers(part, kind):
    for values in (np.array([1 + 2j, 3.0]), np.array([1.0, 2.0])):
        if part == "imag" and values.dtype == float:
            continue  # (zeros that nobody writes to)
        x, total = kind(values), values.sum()
        t = getattr(mb.sum(x), part)
        u = t
        t += np.array([1.0, 2.0])[:1] if kind is mb.HostArray else 1.0
        assert mb.to_numpy(u) == getattr(total, part) and mb.to_numpy(t) == getattr(total, part) + 1
    made = kind(np.array(1 + 2j))  # (what a constructor made is an array, whose parts are views)
    shown = getattr(made, part)
    shown += 1
    assert mb.to_numpy(getattr(made, part)) == getattr(1 + 2j, part) + 1
