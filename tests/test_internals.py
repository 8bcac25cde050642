"""What leans on the insides of other projects can be switched off, each by itself: results are the same."""

import ctypes
import gc
import inspect
import pathlib
import re
import sys
import types

import numpy as np
import pytest
from children import answer

import mirabelle as mb
from mirabelle.arraytypes.usercode.capturednumbers import lift
from mirabelle.backends import partners
from mirabelle.backends.host import numpyblas
from mirabelle.backends.host.loops import loop_address
from mirabelle.dispatch import internals, promotion
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.ops import TABLE

WORDS = ["all", "none", *internals.INTERNALS, ",".join(internals.INTERNALS)]


@pytest.mark.parametrize("word", WORDS)
def test_what_is_used(word):
    with mb.settings.changed(internals=word):
        for name in internals.INTERNALS:
            assert internals.used(name) == (word == "all" or name in word.split(","))


@pytest.mark.parametrize("word", ["", "everything", "blas;imports", "blas,", "all,blas", "none,blas"])
def test_what_is_no_name_is_refused(word):
    with pytest.raises(ValueError, match="internals cannot be"):
        mb.settings.internals = word


# A program that goes through each of them, of numbers that are the same to the last bit.
PROGRAM = """
    import json
    import numpy as np
    import mirabelle as mb
    rng = np.random.default_rng(1)
    found = []
    for rows, columns in ((2, 2), (3, 7), (16, 5), (33, 64), (1, 4), (4, 1), (0, 3)):
        a, x, y = rng.random((rows, columns)), rng.random(columns), rng.random(rows)
        ours = mb.HostArray(a)
        for got, wanted in (
            (ours @ mb.HostArray(x), a @ x),
            (mb.HostArray(y) @ ours, y @ a),
            (ours.T @ mb.HostArray(y), a.T @ y),
            (mb.HostArray(x) @ ours.T, x @ a.T),
        ):
            assert np.array_equal(mb.to_numpy(got), wanted)
    for by in (2.0, 3.5, -0.0, float("nan")):
        found.append(mb.to_numpy(mb.broadcast(lambda v: v * by + 1, mb.HostArray([1.0, 2.0]))).tobytes().hex())
    from mirabelle.arraytypes.usercode import userfunctions
    import autoray
    x = autoray.do("tanh", mb.HostArray([0.5]))
    print(json.dumps([found, len(userfunctions._ops), type(x).__name__]))
"""


@pytest.fixture(scope="module")
def with_all():
    pytest.importorskip("autoray")
    return answer(PROGRAM, internals="all", cache="0")


def test_results_are_the_same_without_any(with_all):
    bits, operations, kind = with_all
    assert operations == 1, "one kernel for all values that are captured"
    assert answer(PROGRAM, internals="none", cache="0") == [bits, 4, kind]


# NumPy's BLAS


def test_numpys_blas_is_asked_for_only_where_it_may_be():
    with mb.settings.changed(internals="bytecode,imports"):
        assert numpyblas.gemv() == 0
    with mb.settings.changed(internals="blas"):
        assert numpyblas.gemv() >= 0


def test_a_numpy_with_other_names_goes_through_matmul(monkeypatch):
    monkeypatch.setattr(numpyblas, "_NAMES", ("no_such_gemv",))
    assert numpyblas.gemv() == 0


# NumPy's objects, by NumPy's headers

ARRAYS = [
    np.zeros(3),
    np.zeros((4, 5))[1:, ::-2],
    np.zeros(()),
    np.zeros(7, np.uint8)[3:],
    np.zeros(0),
    np.broadcast_to(1.0, (3, 4)),
]


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: str(x.shape))
def test_addresses_are_those_that_numpy_says(x):
    assert address_of(x) == x.__array_interface__["data"][0]


def test_bytes_have_addresses_and_nothing_else_has():
    assert ctypes.string_at(address_of(b"where"), 5) == b"where"
    for x in ("text", 3, None, [1.0], np.float64(1)):
        with pytest.raises(TypeError, match="has no address"):
            address_of(x)


@pytest.mark.parametrize("ufunc", [np.exp, np.add, np.isnan, np.divmod, np.left_shift, np.matmul])
def test_loops_are_as_many_as_types(ufunc):
    loops = in_c.loops_of(ufunc)
    assert len(loops) == len(ufunc.types) and all(type(x) is int for pair in loops for x in pair)
    assert len({code for code, _ in loops}) > 1
    with pytest.raises(TypeError, match="no ufunc"):
        in_c.loops_of(len)


def test_a_loop_that_is_called_by_its_address_is_numpys():
    sig = promotion.signature(TABLE["exp"], (np.dtype(float),))
    code, data = loop_address(sig)
    x, y = np.linspace(-3, 3, 17), np.empty(17)
    pointers = (ctypes.c_void_p * 2)(address_of(x), address_of(y))
    sizes, steps = (ctypes.c_ssize_t * 1)(17), (ctypes.c_ssize_t * 2)(8, 8)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
    kind(code)(*[ctypes.cast(p, ctypes.c_void_p) for p in (pointers, sizes, steps)], data or None)
    np.testing.assert_array_equal(y, np.exp(x))


# Bytecode


def closure(by):
    return lambda x: x * by


def test_code_that_is_not_known_is_left_alone():
    by = 3

    def inner(x):
        return (lambda: x * by)()

    def several(*x):
        return x[0] * by

    assert lift(closure(3), ["by"])(2, 10) == 20
    assert lift(inner, ["by"]) is None and lift(several, ["by"]) is None
    with mb.settings.changed(internals="none"):
        assert lift(closure(3), ["by"]) is None


GLOBAL = 10.0


@pytest.mark.parametrize("word", ["all", "none"])
@pytest.mark.parametrize("numba_first", [False, True])
def test_what_is_captured_is_what_it_was_when_the_line_ran(word, numba_first, monkeypatch):
    import numba

    by = 1.0
    f = lambda v: v * GLOBAL + by
    f = numba.njit(f) if numba_first else f
    x = mb.HostArray([1.0, 2.0])
    with mb.settings.changed(internals=word):
        assert mb.broadcast(f, x).tolist() == [11.0, 21.0]
        pending = mb.broadcast(f, x)
        monkeypatch.setitem(globals(), "GLOBAL", 100.0)
        by = 2.0
        assert mb.broadcast(f, x).tolist() == [102.0, 202.0]
        assert pending.tolist() == [11.0, 21.0]


@pytest.mark.parametrize("value", [np.ones(2), mb.HostArray([1.0, 2.0]), mb.types.Dual[float](1.0, 2.0)])
def test_arrays_that_are_captured_are_refused_without_bytecode(value):
    x = mb.HostArray([1.0, 2.0])
    with (
        mb.settings.changed(internals="none"),
        pytest.raises(mb.UserFunctionError, match=r"reads value from around it.*Make it a parameter"),
    ):
        mb.broadcast(lambda v: v * value, x)


# Imports


@pytest.fixture
def partner(tmp_path, monkeypatch):
    """A library that can be imported, and what happens when it is told of our arrays."""
    (tmp_path / "some_partner.py").write_text("value = 3\n")
    (tmp_path / "some_registration.py").write_text("import some_partner\nsome_partner.value += 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if not isinstance(f, partners._Watch)])
    monkeypatch.setattr(partners, "PARTNERS", {"some_partner": "some_registration"})
    yield
    for name in ("some_partner", "some_registration"):
        sys.modules.pop(name, None)


def test_a_partner_is_told_when_it_is_imported_and_keeps_its_loader(partner):
    partners.watch()
    import some_partner

    assert some_partner.value == 4
    for loader in (some_partner.__loader__, some_partner.__spec__.loader):
        assert type(loader).__name__ == "SourceFileLoader"
    assert inspect.getsource(some_partner) == "value = 3\n"


def test_nobody_watches_imports_where_that_is_left_out(partner):
    before = list(sys.meta_path)
    with mb.settings.changed(internals="none"):
        partners.watch()
        assert sys.meta_path == before
        import some_partner

        assert some_partner.value == 3
        partners.watch()  # by hand, once it is there
        assert some_partner.value == 4


def test_a_partner_that_cannot_be_told_is_imported_all_the_same(partner, tmp_path):
    (tmp_path / "some_registration.py").write_text("raise RuntimeError('of another version')\n")
    partners.watch()
    with pytest.warns(RuntimeWarning, match="could not make its arrays known to some_partner"):
        import some_partner
    assert isinstance(some_partner, types.ModuleType) and some_partner.value == 3


# Garbage


def test_compiling_leaves_the_collector_of_garbage_alone(monkeypatch):
    def f(x):
        assert gc.isenabled()
        return x + 1

    assert gc.isenabled()
    for name in ("disable", "enable", "freeze", "unfreeze", "set_threshold", "collect"):
        monkeypatch.setattr(gc, name, lambda *a, name=name: pytest.fail(f"gc.{name} is called"))
    mb.compile(f)(mb.HostArray(np.ones(3)))


# Where it stands

ROOT = pathlib.Path(mb.__file__).parents[1]
TRICKS = {
    r"co_code|co_varnames=": {"arraytypes/usercode/capturednumbers.py"},
    # (In a checkout the folders beside the package are found by it.)
    r"sys\.meta_path|sys\.path_hooks": {"backends/partners/__init__.py", "mirabelle/__init__.py"},
    r"exec_module": {"backends/partners/__init__.py", "backends/host/pocketfft.py"},
    r"pypocketfft": {"backends/host/pocketfft.py"},
    r"_multiarray_umath|openblas|cblas_": {"backends/host/numpyblas.py"},
    r"\bgc\.(disable|enable|freeze|unfreeze|set_threshold)\(": set(),
    # (What the C interfaces of CUDA and NVVM declare is for others to read.)
    r"from_address\(id\(": set(),
    r"^\s*(np|numpy)(\.\w+)+ = |setattr\((np|numpy)\b": set(),
}


@pytest.mark.parametrize("pattern", TRICKS)
def test_what_leans_on_insides_stands_in_its_module(pattern):
    looks = re.compile(pattern, re.MULTILINE)
    found = {
        str(path.relative_to(ROOT))
        for folder in ("arraytypes", "backends", "dispatch", "dg", "mirabelle")
        for path in (ROOT / folder).rglob("*.py")
        if looks.search(path.read_text())
    }
    assert found == TRICKS[pattern]
