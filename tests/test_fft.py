"""mb.fft beside NumPy's and SciPy's: values, dtypes, lengths, axes, norms, places, refusals."""

import inspect

import numpy as np
import pytest
import scipy.fft as sf
from children import answer
from compare import assert_closed, assert_same
from kinds import LEAVES, PLAIN, wrapped
from samples import ordinary

import mirabelle as mb
from mirabelle import fft
from mirabelle.backends.host import pocketfft, transforms

LAYERS = ("transpose", "steps", "reversed", "stretched")
KINDS = [*LEAVES.values(), *(wrapped(LEAVES[leaf], layer) for leaf in ("host", "ref") for layer in LAYERS)]
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL_AXES = ["fftn", "ifftn", "rfftn", "irfftn"]
TWO_AXES = ["fft2", "ifft2", "rfft2", "irfft2"]
NORMS = ["backward", "ortho", "forward", None]
# Those that take real arrays alone.
REAL = {"rfft", "rfftn", "rfft2", "ihfft"}


def close(dtype):
    single = np.dtype(dtype) in (np.dtype("f4"), np.dtype("c8"), np.dtype("f2"))
    return {"rtol": 2e-4, "atol": 2e-4} if single else {"rtol": 1e-12, "atol": 1e-12}


def data(name, shape, dtype="f8"):
    if name in REAL or np.dtype(dtype).kind == "c":
        return ordinary(dtype, shape)
    return ordinary("c8" if dtype == "f4" else "c16", shape)


# Values


@plain
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE_AXIS)
def test_along_one_axis(name, norm, kind):
    a = data(name, (4, 6))
    x = kind.family(a)
    mine, numpys = getattr(fft, name), getattr(np.fft, name)
    for axis in (0, 1, -1, -2):
        for n in (None, 3, 6, 9):
            result = mine(x, n=n, axis=axis, norm=norm)
            assert_same(result, numpys(a, n=n, axis=axis, norm=norm), **close("f8"))
            assert_closed(result, kind)


@plain
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_over_several_axes(name, norm, kind):
    a = data(name, (3, 4, 6))
    x = kind.family(a)
    mine, numpys = getattr(fft, name), getattr(np.fft, name)
    for axes in (None, (0, 1, 2), (0, 2), (-1, 0), (1,)):
        result = mine(x, axes=axes, norm=norm)
        assert_same(result, numpys(a, axes=axes, norm=norm), **close("f8"))
        assert_closed(result, kind)
    for s, axes in (((2, 8), (0, 1)), ((5, 4), (2, 0)), ((3, 3, 3), (0, 1, 2))):
        assert_same(mine(x, s=s, axes=axes, norm=norm), numpys(a, s=s, axes=axes, norm=norm), **close("f8"))


@plain
@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_lengths_say_which_axes(name, kind):
    a = data(name, (3, 4, 6))
    numpys = getattr(np.fft, name)
    # Lengths without axes are for the last ones; -1 keeps a length.
    assert_same(getattr(fft, name)(kind.family(a), s=(5, 8)), numpys(a, s=(5, 8), axes=(-2, -1)), **close("f8"))
    assert_same(
        getattr(fft, name)(kind.family(a), s=(-1, 8), axes=(0, 1)),
        numpys(a, s=(3, 8), axes=(0, 1)),
        **close("f8"),
    )


@plain
@pytest.mark.parametrize("name", TWO_AXES)
def test_over_two_axes(name, kind):
    a = data(name, (3, 4, 6))
    x = kind.family(a)
    mine, numpys = getattr(fft, name), getattr(np.fft, name)
    assert_same(mine(x), numpys(a), **close("f8"))
    assert_same(mine(x, s=(3, 5), norm="ortho"), numpys(a, s=(3, 5), norm="ortho"), **close("f8"))
    assert_same(mine(x, axes=(0, 1)), numpys(a, axes=(0, 1)), **close("f8"))


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "f2", "i4", "u1", "?"])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "ihfft", "fftn", "rfftn", "hfft"])
def test_dtypes(name, dtype, kind):
    a = ordinary(dtype, (4, 6))
    if name in REAL and a.dtype.kind == "c":
        with pytest.raises(TypeError, match=r"takes real arrays.*mb\.fft\.fft|takes real arrays.*mb\.real"):
            getattr(fft, name)(kind.family(a))
        return
    result = getattr(fft, name)(kind.family(a))
    expected = getattr(np.fft, name)(a)
    tol = {"rtol": 2e-2, "atol": 2e-2} if expected.dtype == "f2" else close(dtype)
    assert_same(result, expected, **tol)
    # Single precision stays single, and half becomes it.
    assert result.dtype == {"f4": "c8", "c8": "c8", "f2": "c8"}.get(dtype, "c16") or name in ("irfft", "hfft")


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "fftn", "irfftn", "fftshift"])
def test_every_kind_of_operand(name, kind):
    a = ordinary("f8", (4, 6))
    result = getattr(fft, name)(kind.make(a))
    assert_same(result, getattr(np.fft, name)(kind.sample(a)), **close("f8"))
    assert_closed(result, kind)


@plain
def test_there_and_back(kind):
    for dtype in ("f8", "f4", "c16"):
        a = ordinary(dtype, (5, 8))
        x, tol = kind.family(a), close(dtype)
        wide = a.astype(np.result_type(dtype, "c8"))
        assert_same(fft.ifft(fft.fft(x)), wide, **tol)
        assert_same(fft.ifftn(fft.fftn(x, norm="ortho"), norm="ortho"), wide, **tol)
        assert_same(fft.ifft2(fft.fft2(x)), wide, **tol)
        assert_same(fft.ifftshift(fft.fftshift(x)), a)
        if a.dtype.kind == "f":
            assert_same(fft.irfft(fft.rfft(x)), a, **tol)
            assert_same(fft.irfft(fft.rfft(x, axis=0), n=5, axis=0), a, **tol)
            assert_same(fft.irfftn(fft.rfftn(x)), a, **tol)
            assert_same(fft.irfft2(fft.rfft2(x)), a, **tol)
            assert_same(fft.hfft(fft.ihfft(x)), a, **tol)


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?"])
def test_large_transforms_are_the_same(dtype, kind, monkeypatch):
    # From some size on SciPy computes them, on several threads.
    monkeypatch.setattr(transforms, "LARGE", 16)
    a = ordinary(dtype, (6, 20))
    x, tol = kind.family(a), close(dtype)
    for name in ("fft", "rfft", "ihfft", "fftn", "rfftn"):
        assert_same(getattr(fft, name)(x), getattr(np.fft, name)(a), **tol)
        assert_same(getattr(fft, name)(x, norm="forward"), getattr(np.fft, name)(a, norm="forward"), **tol)
    z = ordinary("c16", (6, 20))
    for name in ("fft", "ifft", "irfft", "hfft", "irfftn"):
        assert_same(getattr(fft, name)(kind.family(z)), getattr(np.fft, name)(z), **close("f8"))


# Frequencies and shifts


@plain
@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, n, kind):
    mine, numpys = getattr(fft, name), getattr(np.fft, name)
    assert_same(mine(n), numpys(n))
    assert_same(mine(n, d=0.1), numpys(n, d=0.1))
    assert_same(mine(n, d=2, dtype=mb.float32), numpys(n, d=2).astype("f4"))
    made = mine(n, device=kind.place)
    assert_closed(made, kind)
    with mb.default_array(kind.family):
        assert_closed(mine(n), kind)


@plain
@pytest.mark.parametrize("dtype", ["f8", "i4", "?", "c8"])
def test_shifts(dtype, kind):
    a = ordinary(dtype, (3, 4, 5))
    x = kind.family(a)
    for name in ("fftshift", "ifftshift"):
        mine, numpys = getattr(fft, name), getattr(np.fft, name)
        for axes in (None, 0, -1, (0, 2), (1,)):
            result = mine(x, axes=axes)
            assert_same(result, numpys(a, axes=axes))
            assert_closed(result, kind)


# Cosines and sines


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosines_and_sines(name, dtype, kind):
    a = ordinary(dtype, (4, 6))
    x = kind.family(a)
    mine, scipys = getattr(fft, name), getattr(sf, name)
    for type_ in (1, 2, 3, 4):
        for norm in (None, "ortho", "forward"):
            expected = scipys(a, type=type_, norm=norm)
            assert_same(mine(x, type=type_, norm=norm), expected, **close(expected.dtype))
    assert_same(mine(x, n=5, axis=0), scipys(a, n=5, axis=0), **close(dtype))
    assert_closed(mine(x), kind)


# What a call does


@plain
def test_a_transform_is_one_call_and_takes_pending_arrays(kind, many):
    a = ordinary("f8", (8, 8))
    x = kind.family(a)
    with mb.count() as c:
        fft.fft(x)
    assert (c.library_calls, c.launches, c.transfers, c.scalar_reads) == (1, 0, 0, 0)
    with mb.count() as c:
        result = fft.fft(x * 2 + 1)
    assert (c.library_calls, c.launches) == (1, 1)
    assert_same(result, np.fft.fft(a * 2 + 1), **close("f8"))
    # What follows is elementwise again, and fuses.
    with mb.count() as c:
        power = mb.materialize(mb.square(mb.abs(fft.rfft(x))))
    assert (c.library_calls, c.launches) == (1, 1)
    assert_same(power, np.abs(np.fft.rfft(a)) ** 2, rtol=1e-11, atol=1e-11)


@plain
def test_operands_keep_what_they_were(kind):
    a = ordinary("c16", (8,))
    x = kind.family(a)
    y = fft.fft(x)
    x[...] = 0
    assert_same(y, np.fft.fft(a), **close("c16"))


def test_numpys_arrays_and_lists():
    a = ordinary("f8", (5,))
    for x in (a, a.tolist(), tuple(a.tolist())):
        result = fft.fft(x)
        assert type(result) is mb.HostArray[mb.complex128, 1]
        assert_same(result, np.fft.fft(a), **close("f8"))
    assert_same(fft.dct(a), sf.dct(a), **close("f8"))


@plain
def test_nans_infinities_and_nothing(kind):
    a = np.array([[np.nan, 1.0, 2.0], [1.0, 2.0, 3.0], [np.inf, 0.0, 0.0]])
    result = mb.to_numpy(fft.fft(kind.family(a)))
    assert np.isnan(result[0]).all() and not np.isfinite(result[2]).any()
    assert_same(result[1], np.fft.fft(a[1]), **close("f8"))
    none = kind.family(np.zeros((0, 4)))
    assert fft.fft(none).shape == (0, 4) and fft.rfft(none).shape == (0, 3)
    assert_same(fft.fft(kind.family(np.ones((2, 1)))), np.ones((2, 1), complex))


def test_large_cosines_without_scipy_say_what_to_install():
    code = """
        import json, sys
        sys.modules["scipy"] = None
        import numpy as np, mirabelle as mb
        x = mb.HostArray(np.arange(1 << 16) * 1.0)
        right = np.array_equal(mb.to_numpy(mb.fft.rfft(x)), np.fft.rfft(np.arange(1 << 16) * 1.0))
        try:
            mb.fft.dct(x)
        except ImportError as e:
            print(json.dumps([bool(right), str(e)]))
    """
    right, said = answer(code)
    assert right and "pip install scipy" in said and "mb.fft.dct" in said


# SciPy's module that computes, without the rest of SciPy


def of_scipy(name, x, **options):
    return getattr(sf, name)(x, workers=2, **options)


def of_its_module(name, x, **options):
    return getattr(transforms.scipys(), name)(x, workers=2, **options)


def samples_of(name, dtype):
    shapes = [(1,), (2,), (7,), (12, 9), (3, 5, 8)]
    if name in REAL or np.dtype(dtype).kind != "f" or name in COSINES:
        made = [ordinary(dtype, shape) for shape in shapes]
    else:
        made = [ordinary(dtype, shape) + 1j * ordinary(dtype, shape)[..., ::-1] for shape in shapes]
    made = [x.astype(np.result_type(x, dtype) if x.dtype.kind == "c" else dtype) for x in made]
    turned = [made[3].T, made[4][::-1, :, ::2], made[3].astype(made[3].dtype.newbyteorder(">"))]
    turned = turned[:2] if dtype == "f2" else turned  # (of which SciPy has the order of bytes wrong)
    return [x for x in [*made, *turned] if name not in HALVED or x.shape[-1] > 1]


COSINES, HALVED = ["dct", "idct", "dst", "idst"], ["irfft", "irfftn", "hfft"]


TAKEN = [
    (name, dtype)
    for name in [*ONE_AXIS, *SEVERAL_AXES, *COSINES]
    for dtype in ("f2", "f4", "f8", "g", "i4", "?", "c8", "c16")
    if not (name in REAL and dtype in ("c8", "c16")) and not (name in COSINES and dtype == "?")
]


@pytest.mark.parametrize("name, dtype", TAKEN)
def test_scipys_module_alone_has_the_bits_of_scipy(name, dtype):
    for x in samples_of(name, dtype):
        if name in SEVERAL_AXES:
            last = x.ndim - 1
            ways = [{}, {"axes": (last,)}, {"axes": (0, last)[-x.ndim :]}, {"axes": (last,), "s": (5,)}]
            ways += [{"axes": (-1, 0), "s": (4, 13)}] if x.ndim > 1 and x.shape[0] > 1 else []
        else:
            ways = [
                {},
                {"axis": -1, "n": 5},
                {"axis": -1, "n": 24},
                *([{"axis": 0, "n": 4}] if x.ndim > 1 else []),
            ]
        ways = [w for w in ways if name not in HALVED or all(x.shape[a] > 1 for a in w.get("axes", ()))]
        kinds = [{"type": k} for k in (1, 2, 3, 4) if k > 1 or x.shape[-1] > 1] if name in COSINES else [{}]
        for options in ({**w, **k, "norm": norm} for w in ways for k in kinds for norm in NORMS):
            before = x.copy()
            expected, found = of_scipy(name, x, **options), of_its_module(name, x, **options)
            assert_same(found, expected)
            assert np.array_equal(x, before) and (expected is x or not np.shares_memory(found, x))


def test_transforms_import_nothing_of_scipy():
    code = """
        import json, sys
        import mirabelle as mb
        x = mb.HostArray([1.0] * (1 << 16))
        made = [mb.materialize(f(x)) for f in (mb.fft.rfft, mb.fft.irfft, mb.fft.dct, mb.fft.fftn)]
        before = sorted(name for name in sys.modules if name.startswith("scipy"))
        import scipy.fft
        print(json.dumps([before, abs(scipy.fft.rfft([1.0, 2.0])[0])]))
    """
    assert answer(code) == [[], 3.0]


@pytest.mark.parametrize("there", [True, False, "unused"])
def test_another_scipy_is_imported_as_a_whole(there, monkeypatch, tmp_path):
    """(Its module has another name, or functions that are called otherwise, or is left out by a setting.)"""
    other = tmp_path / "other.py"
    other.write_text("c2c = r2c = c2r = dct = dst = lambda plan: plan\n")
    if there == "unused":
        monkeypatch.setattr(mb.settings, "internals", "blas")
    else:
        monkeypatch.setattr(pocketfft, "_compiled", lambda: other if there else None)
    transforms.scipys.cache_clear()
    try:
        assert transforms.scipys() is sf
        a = ordinary("f8", (1 << 15,))
        assert_same(fft.rfft(mb.HostArray(a)), sf.rfft(a))
    finally:
        transforms.scipys.cache_clear()


# Refusals


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda f: fft.fft(f(1.0)), ValueError, r"at least one dimension.*reshape"),
        (lambda f: fft.fftn(f(1.0)), ValueError, "at least one dimension"),
        (lambda f: fft.fft(f([1.0, 2.0]), norm="both"), ValueError, 'norm is "backward".*both'),
        (lambda f: fft.fft(f([1.0, 2.0]), n=0), ValueError, "at least one point, and 0"),
        (lambda f: fft.fft(f([1.0, 2.0]), n=-3), ValueError, "at least one point, and -3"),
        (lambda f: fft.fft(f([1.0, 2.0]), n=2.5), TypeError, "integer"),
        (lambda f: fft.fft(f([1.0, 2.0]), axis=1), np.exceptions.AxisError, "out of bounds"),
        (lambda f: fft.fftn(f(np.eye(2)), axes=(0, 2)), np.exceptions.AxisError, "out of bounds"),
        (lambda f: fft.fftn(f(np.eye(2)), s=(2, 2), axes=(0,)), ValueError, "2 lengths in s for 1 axes"),
        (lambda f: fft.fftn(f(np.eye(2)), s=(2, 0)), ValueError, "at least one point"),
        (lambda f: fft.fftn(f(np.eye(2)), s=(2, 2, 2)), ValueError, "."),
        (lambda f: fft.rfft(f([1j])), TypeError, r"takes real arrays.*mb\.fft\.fft"),
        (lambda f: fft.rfftn(f([1j])), TypeError, r"mb\.fft\.fftn"),
        (lambda f: fft.rfft2(f([[1j]])), TypeError, "takes real arrays"),
        (lambda f: fft.ihfft(f([1j])), TypeError, "takes real arrays"),
        (lambda f: fft.fft(f(np.zeros((2, 0)))), ValueError, "."),
        (lambda f: fft.fft2(f([1.0, 2.0])), np.exceptions.AxisError, "out of bounds"),
        (lambda f: fft.fftshift(f([1.0]), axes=3), np.exceptions.AxisError, "out of bounds"),
        (lambda f: fft.fftfreq(0), ValueError, "at least one point"),
        (lambda f: fft.fftfreq(2.5), TypeError, "integer"),
        (lambda f: fft.rfftfreq(4, dtype=mb.int64), ValueError, "floating"),
        (lambda f: fft.dct(f([1.0, 2.0]), type=5), ValueError, "types 1, 2, 3 and 4"),
        (lambda f: fft.dct(f([1.0, 2.0]), n=0), ValueError, "at least one point"),
    ],
)
@plain
def test_refusals_are_sentences(call, error, text, kind):
    with pytest.raises(error, match=text):
        call(kind.family)


# The array API standard's signatures (2025.12)

SIGNATURES = dict.fromkeys(ONE_AXIS, "(x, /, *, n=None, axis=-1, norm='backward')")
SIGNATURES |= dict.fromkeys(SEVERAL_AXES, "(x, /, *, s=None, axes=None, norm='backward')")
SIGNATURES |= dict.fromkeys(["fftfreq", "rfftfreq"], "(n, /, *, d=1.0, dtype=None, device=None)")
SIGNATURES |= dict.fromkeys(["fftshift", "ifftshift"], "(x, /, *, axes=None)")


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_standards_signatures(name):
    scope = {}
    exec(f"def wanted{SIGNATURES[name]}: ...", scope)
    wanted = inspect.signature(scope["wanted"]).parameters
    mine = inspect.signature(getattr(fft, name)).parameters
    assert {p.name: (p.kind, p.default) for p in mine.values()} == {
        p.name: (p.kind, p.default) for p in wanted.values()
    }


def test_the_namespace_has_them():
    assert mb.fft is fft and "fft" in mb.__all__
    assert mb.namespace(mb.RefArray).fft.fft.core is fft.fft.core
    assert all(getattr(fft, name).__doc__ for name in fft.__all__)


def test_plans_of_transforms_are_bounded():
    pytest.importorskip("scipy")

    mb.free_memory(mb.HostArray)
    rng = np.random.default_rng(0)
    for n in (300_000, 300_001, 300_002, 262_144, 300_007, 300_009, 300_011, 300_013, 300_017):
        x = rng.standard_normal(n)
        np.testing.assert_allclose(mb.to_numpy(mb.fft.rfft(mb.HostArray(x))), np.fft.rfft(x), atol=1e-8)
        report = mb.memory(mb.HostArray)
        assert 0 < report.kept["plans"] <= max(transforms.PLAN_BYTES, transforms.plan_bytes(n))
        assert report.held >= report.kept["plans"] and "plans" in repr(report)
    mb.free_memory(mb.HostArray)
    assert mb.memory(mb.HostArray).kept["plans"] == 0


@pytest.mark.parametrize("name", ["fft", "rfft", "fftn", "dct", "dst"])
def test_memory_does_not_grow_with_the_lengths_that_were_transformed(name):
    pytest.importorskip("scipy")

    seen = []
    transforms.let_go()
    for n in range(200_000, 200_040):
        transforms.note_plans(name, np.zeros(n), {"axes": (0,)} if name == "fftn" else {"axis": -1})
        seen.append(sum(transforms._plans.values()))
    assert max(seen) <= transforms.PLAN_BYTES
