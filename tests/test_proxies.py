"""Arrays that nobody reads: NumPy's shapes, strides and overlaps for memory that is elsewhere."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes import proxies
from mirabelle.arraytypes.proxies import may_meet, offset_of, pair, proxy_of

ROOT = pathlib.Path(mb.__file__).parents[1]
DTYPES = [np.dtype(t) for t in ("?", "i1", "f4", "f8", "c16", "V8", "V3")]
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (2, 3, 4), (1, 5, 1)]
INDICES = [..., np.s_[::-1], np.s_[..., ::2], np.s_[..., None], np.s_[1:], np.s_[:0]]


@pytest.fixture(params=["reserved", "refused"])
def space(request, monkeypatch):
    """With what the system reserves, and where it reserves nothing."""
    if request.param == "refused":
        monkeypatch.setattr(proxies, "_reserved", lambda: None)
        monkeypatch.setattr(proxies, "_origin", lambda: proxies._NOWHERE)
    return request.param


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parts_lie_where_those_of_memory_do(space, dtype):
    for shape in SHAPES:
        real, drawn = np.ndarray(shape, dtype, bytearray(1000)), proxy_of(shape, dtype)
        for index in INDICES:
            if not shape and index is not Ellipsis:
                continue
            wanted, got = real[index], drawn[index]
            assert (got.shape, got.strides, got.dtype) == (wanted.shape, wanted.strides, wanted.dtype)
            assert got.flags.c_contiguous == wanted.flags.c_contiguous
            if got.size:
                assert offset_of(got) == offset_of(drawn) + wanted.ctypes.data - real.ctypes.data


def test_strides_and_offsets_are_those_that_are_given(space):
    drawn = proxy_of((3, 4), np.dtype(np.float64), (-64, 0), 1 << 20)
    assert drawn.strides == (-64, 0) and offset_of(drawn) == 1 << 20
    assert offset_of(drawn[2]) == (1 << 20) - 128
    assert offset_of(proxy_of((), np.dtype(np.int8), offset=-5)) == -5


def test_arrays_larger_than_what_is_reserved_have_proxies_too(space):
    drawn = proxy_of((1 << 30, 1 << 20), np.dtype(np.complex128))
    assert drawn.shape == (1 << 30, 1 << 20) and drawn.strides == (16 << 20, 16)
    assert offset_of(drawn[1 << 29, 3, ...]) == (1 << 29) * (16 << 20) + 48


def test_who_reads_a_proxy_reads_zeros_and_takes_no_memory():
    if proxies._reserved() is None:
        pytest.skip("this system reserves no address space")
    (shown, last, total), grown = ran("""
    import json, resource
    import numpy as np
    from mirabelle.arraytypes.proxies import proxy_of
    x = proxy_of((1 << 20, 1 << 20), np.dtype(np.float64))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = [repr(x[:2, :2]), float(x[-1, -1]), float(x[::1 << 10, 0].sum())]
    print(json.dumps([found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
    """)
    assert "0., 0." in shown and last == total == 0.0
    assert grown < 50_000, "pages that are read are all one page of zeros"


def ran(code):
    """What a fresh process prints last, as JSON."""
    lines = "\n".join(x[4:] for x in code.splitlines())
    out = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    return json.loads(out)


@pytest.mark.skipif(not pathlib.Path("/proc/self/smaps").exists(), reason="Linux says what it maps")
def test_what_is_reserved_is_in_no_core_file_and_may_be_refused():
    flags, proxied = ran("""
    import json, resource
    import numpy as np
    from mirabelle.arraytypes import proxies
    proxies.proxy_of((3,), np.dtype(float))
    maps = open("/proc/self/smaps").read().split("VmFlags:")
    kilobytes = proxies.RESERVED >> 10
    (found,) = [flags.split("\\n")[0] for maps, flags in zip(maps, maps[1:]) if f"{kilobytes} kB" in maps]
    proxies._space.clear()
    proxies._origin.cache_clear()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 44, 1 << 44))
    x = proxies.proxy_of((1 << 20, 4), np.dtype(float))
    print(json.dumps([found.split(), [proxies._reserved() is None, proxies.offset_of(x[5:])]]))
    """)
    assert "dd" in flags and proxied == [True, 160]


def test_overlaps_of_views_by_brute_force(space):
    """Views of one memory as NumPy would find them, by their layouts alone."""

    class View:
        def __init__(self, array, base):
            self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
            self.ptr = base + array.ctypes.data - memory.ctypes.data
            self.contiguous, self.nbytes = array.flags.c_contiguous, array.nbytes

    memory = np.zeros((6, 8))
    parts = [
        memory,
        memory[:3],
        memory[3:],
        memory[::2],
        memory[1::2],
        memory[:, 3],
        memory[2, ::-1],
        memory[:0],
    ]
    for base in (1 << 12, 1 << 47):
        for a in parts:
            for b in parts:
                one, other = View(a, base), View(b, base)
                arrays = pair(one, other)
                assert (arrays is not None and np.shares_memory(*arrays)) == np.shares_memory(a, b)
                assert may_meet(one, other) == np.may_share_memory(a, b)
            far = View(memory, base + (1 << 40))
            assert not may_meet(View(a, base), far)


def test_other_memory_never_meets():
    a, b = np.zeros(4), np.zeros(4)
    assert may_meet(a, a[::2]) and not may_meet(a, b)
    x, y = mb.CuArray(a), mb.CuArray(b)
    views = [mb.materialize(v)._node.view for v in (x, y)]
    assert may_meet(views[0], views[0][1:]) and not may_meet(*views) and not may_meet(a, views[0])


def test_nobody_else_makes_arrays_over_addresses():
    """`__array_interface__` is given to NumPy for memory that there is, and in proxies.py."""
    made = re.compile(r"__array_interface__\s*=|__slots__ = .*__array_interface__")
    allowed = {"arraytypes/proxies.py", "backends/gpu/simulator.py"}
    found = {
        str(path.relative_to(ROOT))
        for folder in ("arraytypes", "backends", "dispatch", "dg")
        for path in (ROOT / folder).rglob("*.py")
        if made.search(path.read_text())
    }
    assert found == allowed
