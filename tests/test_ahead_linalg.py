"""Decompositions in libraries without Python: the bits of the program, codes for what is wrong, C, Fortran."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
from ahead import Loaded, differences

import mirabelle as mb

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="libraries are linked by gcc"
)
R = np.random.default_rng(11)
L = mb.linalg


@pytest.fixture(autouse=True)
def with_kernels():
    with mb.settings.changed(compiler="inline"):
        yield


def program_of(f, *arguments):
    return mb.compile(f, whole=True).program(*map(mb.HostArray, arguments))


def rectangular(a):
    return (
        *L.qr(a), *L.qr(a, mode="complete"), L.qr(a)[1] * 2, *L.svd(a), *L.svd(a, full_matrices=False),
        L.svdvals(a), L.svd(mb.swapaxes(a, -1, -2))[1],
    )  # fmt: skip


def square(a):
    s = a + mb.conj(mb.swapaxes(a, -1, -2))
    return *rectangular(a), *L.eigh(s), L.eigvalsh(a), L.eigh(s, UPLO="U")[1], L.det(a), *L.slogdet(s)


def least(a, b, c):
    x, _, rank, s = L.lstsq(a, b)
    return x, rank, s, L.lstsq(a, c)[0], L.lstsq(a, c, rcond=0.3)[0], L.lstsq(a, c, rcond=0.3)[2]


def matrices(shape, dtype):
    x = R.normal(size=shape)
    return (x + 1j * R.normal(size=shape) if dtype in "FD" else x).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *[((4, 4), dtype) for dtype in "dfFD"],
        *[(shape, "d") for shape in ((50, 50), (7, 3), (2, 3, 6), (0, 0), (0, 2, 2))],
        *[(shape, "D") for shape in ((3, 7), (3, 2, 2), (3, 0))],
    ],
)
def test_decompositions_have_the_bits_of_the_program(shape, dtype):
    a = matrices(shape, dtype)
    f = square if shape[-1] == shape[-2] else rectangular
    assert differences(program_of(f, a), [a], threads=(1,)) == []


@pytest.mark.parametrize(
    ("shape", "dtype"), [((8, 3), "d"), ((3, 8), "D"), ((5, 5), "f"), ((3, 0), "d"), ((8, 3), "F")]
)
def test_least_squares(shape, dtype):
    arrays = [matrices(shape, dtype), matrices(shape[:1], dtype), matrices((shape[0], 2), dtype)]
    assert differences(program_of(least, *arrays), arrays, threads=(1,)) == []


def test_matrices_that_are_singular_or_no_numbers():
    broken = np.full((3, 3), np.nan)
    for f, a in (
        (lambda a: (L.det(a), *L.slogdet(a), *L.qr(a)), np.ones((3, 3))),
        (lambda a: L.svdvals(a), broken),
        (lambda a: L.svd(a), np.array([[1.0, np.inf], [0.0, 1.0]])),
        (lambda a: L.det(a), broken),
        (lambda a: L.qr(a), broken),
    ):
        assert differences(program_of(f, a), [a], threads=(1,)) == [], (f, a)


def fitted(a, b, w):
    """Least squares by QR, written over `w`, and singular values."""
    q, r = L.qr(a)
    w[...] = L.solve(r, q.T @ b)
    return L.svdvals(a)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with mb.settings.changed(compiler="inline"):
        program = program_of(fitted, np.zeros((6, 3)), np.zeros(6), np.zeros(3))
        return mb.compiling.build(program, path=tmp_path_factory.mktemp("fit") / "libfit.so")


def test_what_is_wrong_has_a_code_and_writes_nothing(library):
    call = Loaded(library, "fit")
    a, b, w, s = R.random((6, 3)), R.random(6), np.full(3, 7.0), np.full(3, 7.0)
    small = np.zeros(library.workspace[0] - 64, np.uint8)
    found = [
        call([a.T.copy(), b, w], [s]), call([a, b[:5].copy(), w], [s]), call([a.astype("f4"), b, w], [s]),
        call([a, b, w], [w]), call([a, b, w], [s], workspace=small), call([a, b], [s]),
        call([np.full_like(a, np.nan), b, w], [s]), call([a * 0, b, w], [s]),
    ]  # fmt: skip
    assert found == [4, 4, 3, 7, 8, 2, 10, 10]
    assert np.all(w == 7)
    import ctypes as c

    given = [c.c_void_p(x.ctypes.data) for x in (a, b, w, s)]
    for k in range(4):
        assert call.dll.fit(*given[:k], None, *given[k + 1 :], None, c.c_int64(0), 1) == 1
    assert np.all(w == 7)
    assert call([a, b, w], [s]) == 0
    assert np.allclose(w, np.linalg.lstsq(a, b)[0]) and np.allclose(s, np.linalg.svd(a)[1])


C = """
#include "fit.h"
#include <stdio.h>
int main(void) {
    double a[18], b[6], w[3], s[3];
    for (int i = 0; i < 18; i++)
        a[i] = (i * i) % 7 * 0.25 + 1;
    for (int i = 0; i < 6; i++)
        b[i] = i;
    if (fit(a, b, w, s, NULL, 0, 1))
        return 1;
    printf("%.17g %.17g %.17g\\n", w[0], w[2], s[1]);
    return fit(a, NULL, w, s, NULL, 0, 1) != MIRABELLE_NULL;
}
"""
FORTRAN = """
program main
  use fit_library
  implicit none
  real(c_double) :: a(3, 6), b(6), w(3), s(3)
  integer :: i
  a = reshape([(mod(i * i, 7) * 0.25d0 + 1, i = 0, 17)], [3, 6])
  b = [(real(i, c_double), i = 0, 5)]
  if (fit(a, b, w, s, c_null_ptr, 0_c_int64_t, 1) /= 0) error stop
  print '(3es26.17e3)', w(1), w(3), s(2)
end program main
"""


@pytest.mark.parametrize(
    ("compiler", "suffix", "text"), [("gcc", "c", C), ("gfortran", "f90", FORTRAN)], ids=["C", "Fortran"]
)
def test_c_and_fortran(library, tmp_path, compiler, suffix, text):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    folder = library.path.parent
    (tmp_path / f"main.{suffix}").write_text(text)
    sources = [*([str(folder / "fit.f90")] if suffix == "f90" else []), f"main.{suffix}"]
    subprocess.run(
        [compiler, *sources, f"-I{folder}", "-o", "main", str(library.path)], cwd=tmp_path, check=True
    )
    said = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True, env={}).stdout
    a, b = (np.arange(18) ** 2 % 7 * 0.25 + 1).reshape(6, 3), np.arange(6.0)
    w = mb.HostArray(np.zeros(3))
    s = mb.compile(fitted)(mb.HostArray(a), mb.HostArray(b), w)
    w, s = mb.to_numpy(w), mb.to_numpy(s)
    assert [float(x) for x in said.split()] == [w[0], w[2], s[1]]
