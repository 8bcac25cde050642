"""Libraries for all sizes: lengths are arguments, and the bits are those of the programs for them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from ahead import Loaded
from aheadsizes import bytes_of, differences, tried

import mirabelle as mb

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="libraries are linked by gcc"
)
R = np.random.default_rng(11)


@pytest.fixture(autouse=True, scope="module")
def with_kernels():
    """Programs run by their kernels, whose bits libraries have."""
    with mb.settings.changed(compiler="inline"):
        yield


def step(u, dt):
    u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    return mb.sum(u), u / len(u)


def halves(u):
    k = len(u) // 2
    if len(u) > 700:
        return u[:k] + u[len(u) - k :], mb.sum(u)
    return u[:k] - u[len(u) - k :], mb.mean(u)


def rows(a):
    e = a - mb.max(a, axis=1, keepdims=True, initial=0.0)
    return e / (1 + mb.sum(e, axis=1, keepdims=True)), mb.sum(a, axis=0), a.T + 1


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    program = mb.compile(step, whole=True, sizes="any").program(mb.zeros(100), mb.asarray(0.1))
    return mb.compiling.build(program, path=tmp_path_factory.mktemp("any") / "libstep.so", name="f", threads=2)


def test_one_library_is_for_all_lengths(stepped):
    lengths = [*range(12), 63, 64, 1000, 1023, 1024, 1025, 5000, 70001, 200003]
    found = differences(step, lambda n: [R.random(n), np.array(0.1)], stepped, lengths)
    assert found == []
    assert stepped.functions[0].startswith(
        "f(u: float64[n], written, dt: float64[]) -> out0: float64[], out1: float64[n]"
    )


def test_what_a_function_does_with_lengths_is_done_again():
    program = mb.compile(halves, whole=True, sizes="any").program(mb.zeros(100))
    library = mb.compiling.build(program, name="f", threads=2)
    found = differences(
        halves, lambda n: [R.random(n)], library, [*range(12), 99, 100, 699, 700, 701, 702, 3333]
    )
    assert found == []


def test_lengths_of_two_names():
    program = mb.compile(rows, whole=True, sizes="any").program(mb.zeros((57, 91)))
    library = mb.compiling.build(program, name="f", threads=2)
    some = [
        (0, 3),
        (3, 0),
        (1, 1),
        (1, 9),
        (9, 1),
        (2, 4),
        (5, 6),
        (6, 5),
        (7, 7),
        (8, 8),
        (8, 200),
        (20000, 3),
        (300, 301),
    ]
    assert differences(rows, lambda n: [R.random(n)], library, some) == []


@pytest.mark.parametrize("seed", range(2))
def test_random_programs(seed):
    """(`python tests/aheadsizes.py 100` runs more.)"""
    assert tried(seed, 6)[1] == []


def test_what_is_wrong_has_a_code_and_writes_nothing(stepped):
    call = Loaded(stepped, "f")
    u, dt, total, out = np.ones(100), np.array(0.1), np.full((), 7.0), np.full(100, 7.0)
    wide = np.ones(200)
    small = np.zeros(bytes_of(call, [u, dt]) - 64, np.uint8)
    found = [
        call([u], [total, out]), call([u, dt], [total]), call([u.astype("f4"), dt], [total, out]),
        call([u.reshape(10, 10), dt], [total, out]), call([u, dt], [total, out[:50].copy()]),
        call([wide[::2], dt], [total, out], strided=True), call([u, dt], [total, u]),
        call([u, dt], [total, out], workspace=small),
    ]  # fmt: skip
    assert found == [2, 2, 3, 4, 4, 5, 7, 8]
    f, pointer = call.dll.f, lambda x: ctypes.c_void_p(x.ctypes.data)
    rest = None, ctypes.c_int64(0), 1

    def typed(n, *arrays):
        return f(ctypes.c_int64(n), arrays[0], ctypes.c_double(0.1), *arrays[1:], *rest)

    assert typed(100, None, pointer(total), pointer(out)) == 1
    assert typed(100, pointer(u), None, pointer(out)) == 1
    assert typed(-1, pointer(u), pointer(total), pointer(out)) == 4
    assert typed(1 << 60, pointer(u), pointer(total), pointer(out)) == 4
    assert np.all(u == 1) and total == 7 and np.all(out == 7)
    call.dll.f_bytes.restype = ctypes.c_int64
    assert call.dll.f_bytes(ctypes.c_int64(-1)) == -4 and bytes_of(call, [u]) == -2
    assert call.dll.f_bytes(ctypes.c_int64(100)) == bytes_of(call, [u, dt])
    assert typed(100, pointer(u), pointer(total), pointer(out)) == 0


C = """
#include "f.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int64_t n = 0; n < 3000; n += 1 + n / 3) {
        double *u = malloc(8 * n + 8), *out = malloc(8 * n + 8), total;
        int64_t bytes = f_bytes(n);
        void *workspace = malloc(bytes);
        for (int64_t i = 0; i < n; i++)
            u[i] = i % 7 * 0.25;
        for (int threads = 1; threads < 3; threads++)
            if (f(n, u, 0.1, &total, out, workspace, bytes, threads))
                return 1;
        printf("%.17g\\n", total);
        free(u), free(out), free(workspace);
    }
    return f(-5, NULL, 0.1, NULL, NULL, NULL, 0, 1) != MIRABELLE_SHAPE;
}
"""


@pytest.mark.parametrize("flags", [[], ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]])
def test_from_c_in_an_empty_environment(stepped, tmp_path, flags, monkeypatch):
    library = stepped
    if flags:
        from mirabelle.backends.host.ahead import linking

        monkeypatch.setenv("CC", "gcc -g " + " ".join(flags))
        linking._part.cache_clear()
        program = mb.compile(step, whole=True, sizes="any").program(mb.zeros(100), mb.asarray(0.1))
        try:
            library = mb.compiling.build(program, path=tmp_path / "libf.so", name="f", threads=2)
        except RuntimeError:
            pytest.skip("gcc has no sanitizers here")
        finally:
            linking._part.cache_clear()
    folder = library.path.parent
    (tmp_path / "main.c").write_text(C)
    where = [str(library.path), f"-I{folder}", f"-Wl,-rpath,{folder}"]
    subprocess.run(["gcc", *flags, "main.c", *where, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [tmp_path / "main"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wanted, n = [], 0
    while n < 3000:
        u = mb.HostArray(np.arange(n) % 7 * 0.25)
        for _ in range(2):
            total, _ = mb.compile(step)(u, mb.asarray(0.1))
        wanted.append(float(total))
        n += 1 + n // 3
    assert [float(x) for x in done.stdout.split()] == wanted
    needs = subprocess.run(["ldd", library.path], capture_output=True, text=True, check=True).stdout
    assert not any(word in needs.lower() for word in ("python", "numba", "llvm"))


def test_the_command_takes_names_for_lengths(tmp_path):
    (tmp_path / "solver.py").write_text("def scaled(a, x):\n    return a * x + a.shape[0]\n")
    words = [sys.executable, "-m", "mirabelle", "build", "solver:scaled", "--for", "f8[n,m], f8[m]"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert "scaled(a: float64[n, m], x: float64[m]) -> out: float64[n, m] for n, m of 5 to" in done.stdout
    header, module = (tmp_path / "scaled.h").read_text(), (tmp_path / "scaled.f90").read_text()
    assert "int scaled(int64_t n, int64_t m, const double *a, const double *x, double *out," in header
    assert "int64_t scaled_bytes(int64_t n, int64_t m);" in header
    assert "intent(in) :: a(m, n)" in module and "integer(c_int64_t), value :: n" in module


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path):
    def loop(u):
        for _ in range(len(u)):
            u = u * 2
        return u

    program = mb.compile(loop, whole=True, sizes="any").program(mb.zeros(20))
    with pytest.raises(TypeError, match="cannot be built for all sizes"):
        mb.compiling.build(program, name="f")
    assert mb.compiling.build(program, name="f", sizes={}).functions == [
        "f(u: float64[20]) -> out: float64[20]"
    ]
    with pytest.raises(TypeError, match="for their sizes alone"):
        mb.compiling.build(mb.compile(loop, whole=True).program(mb.zeros(20)), sizes={"n": 20})
    program = mb.compile(lambda x: x * 2, sizes="any").program(mb.zeros(20))
    with pytest.raises(TypeError, match="Wheels are for programs of fixed sizes"):
        mb.compiling.build(program, name="f", path=tmp_path / "f.whl")
    with pytest.raises(TypeError, match="none of its lengths may be any"):
        mb.compiling.build(program, name="f", sizes={"n": 21})
