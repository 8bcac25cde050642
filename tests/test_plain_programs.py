"""The programs of docs/guide/numpy_programs.md, as they are: NumPy's results, no element read one by one."""

import numpy as np
import pytest

import mirabelle as mb
from benchmarks import _arrayprograms
from benchmarks.plainprograms import PROGRAMS, arguments


@pytest.mark.parametrize("place", [mb.HostArray, mb.CuArray])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_as_a_scientist_writes_them(name, place):
    # (The simulated card takes long.)
    f, given = PROGRAMS[name], arguments(name, 0.02 if place is mb.HostArray else 0.002)
    if name == "push":
        given = (*given[:2], 100 if place is mb.HostArray else 5, given[3])
    compiled = mb.compile(f)
    for _ in range(3):
        plain = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
        mine = [place(x) if isinstance(x, np.ndarray) else x for x in given]
        wanted = f(*plain)
        with mb.count() as c:
            got = compiled(*mine)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        got = got if isinstance(got, tuple) else (got,)
        for a, b in zip([*got, *mine], [*wanted, *plain], strict=True):
            a = mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a
            np.testing.assert_allclose(a, b, rtol=1e-10)
        assert c.scalar_reads <= (110 if name == "push" else 20)  # (whose loop asks for the greatest speed)


# (Each is compiled by the benchmark, too, which compares.)
COMPILED = ["life", "kalman", "epidemic", "percolation", "stump", "red_black"]


@pytest.mark.parametrize("name", _arrayprograms.PROGRAMS)
def test_programs_on_arrays(name):
    f, given = _arrayprograms.PROGRAMS[name][0], _arrayprograms.arguments(name)
    if name == "kalman":
        given = (given[0][:30],)
    wanted = np.asarray(f(np, *[x.copy() for x in given]))
    for g in (f, mb.compile(f)) if name in COMPILED else (f,):
        found = np.asarray(g(mb, *map(mb.HostArray, given)))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
