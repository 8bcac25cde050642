"""Programs as libraries without Python: the same bits, codes for what is wrong, C, Fortran, wheels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
from ahead import Loaded, differences, tried

import mirabelle as mb
from benchmarks.ahead import conjugate_gradient

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="libraries are linked by gcc"
)
R = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def with_kernels():
    """Programs run by their kernels, whose bits libraries have."""
    with mb.settings.changed(compiler="inline"):
        yield


EMPTY = {"LD_LIBRARY_PATH": "", "PATH": "/nowhere"}


def program_of(f, *arguments):
    compiled = f if isinstance(f, mb.compiling.Compiled) else mb.compile(f, whole=True)
    return compiled.program(*map(mb.HostArray, arguments))


def jacobi(A, B):
    B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
    A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def products(a, b, x):
    return 1.5 * a @ b + 0.5, a @ x, x @ a, a.T @ x, x @ x, a @ a.T, a[::2] @ x, b[:, ::-1] @ x


def sums(x):
    return (
        *[mb.sum(x, axis=k) for k in (None, 0, 1)], mb.min(x, axis=1), mb.prod(x, axis=0), mb.any(x > 0.9),
        mb.cumulative_sum(x, axis=1),
    )  # fmt: skip


def complex_sums(x):
    return mb.sum(x), mb.sum(x, axis=1), mb.prod(x, axis=1), x * x


def turns(a, b, n):
    first = mb.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1] * i), (a, b))
    second = mb.fori_loop(0, 7, lambda i, s: (s[1], s[2], s[0] + s[1]), (a, b, a * 2))
    swapped = mb.fori_loop(0, 7, lambda i, s: (s[1], s[0]), (a, b))

    def body(i, s):
        s[1:] = s[:-1] * 0.5 + b[1:]
        return s

    return first, second, swapped, mb.fori_loop(0, 5, body, a * 1.0)


def branch(x, t):
    return mb.cond(mb.sum(x) > t, lambda x: (x * 2, x.T[:, ::-1] * 1), lambda x: (x + 1, x - 1), x)


def systems(a, b, c):
    return mb.linalg.solve(a, b), mb.linalg.solve(a, c), mb.linalg.inv(a), mb.linalg.cholesky(a @ a.T)


def gathered(x, i, v):
    y = x * 1
    y[i] = v
    z = x * 1
    z[i] += v
    return x[i] * 2, y, z


def looped(a, b):
    scratch = np.zeros(len(a))
    for i in range(1, len(a)):
        scratch[i] = a[i - 1] * 0.5 + scratch[i - 1]
        a[i] = scratch[i] + b[i]
    return a * 2


def constant(x):
    return x * np.arange(30000.0).reshape(100, 300)[:, :40].sum(axis=1)


def integers(x, y):
    return x // y, x % y, x << (y & 3), x * y, mb.sum(x * y, axis=0)


def powers(x, y):
    small, large = y.astype("u1"), y.astype("u8")
    return x**5, x**33, small ** (small & 3), large ** (large & 31), large**7, x.astype("i2") ** np.int16(6)


def ordered(x, i, b):
    order = mb.argsort(x, axis=0)
    return (
        mb.sort(x, axis=0), mb.sort(x[::2, ::-1]), order, mb.argsort(x, axis=-1, descending=True), mb.sort(i),
        mb.argsort(i.T), mb.sort(b), mb.take_along_axis(x, order, axis=0), mb.sort(x.astype("f4"), axis=1),
    )  # fmt: skip


def special(n):
    x = R.integers(-5, 5, n).astype(float)
    x[R.random(n) < 0.2] = np.nan
    x[R.random(n) < 0.1] = -np.inf
    return np.where(x == 0, 1.0, x)


SQUARE = R.random((40, 40))
CASES = {
    "jacobi": (jacobi, [R.random((130, 131)), R.random((130, 131))]),
    "products": (products, [R.random((50, 50)), R.random((50, 50)), R.random(50)]),
    "sums": (sums, [R.random((300, 401)) + 0.5]),
    "sums of columns": (sums, [R.random((20000, 3)) + 0.5]),
    "complex sums": (complex_sums, [R.random((30, 40)) + 1j * R.random((30, 40))]),
    "conjugate gradients": (conjugate_gradient, [SQUARE @ SQUARE.T + 40 * np.eye(40), R.random(40)]),
    "turns": (turns, [R.random(10), R.random(10), np.array(13)]),
    "one branch": (branch, [R.random((6, 6)), np.array(3.0)]),
    "the other": (branch, [R.random((6, 6)), np.array(30.0)]),
    "systems": (systems, [SQUARE + 5 * np.eye(40), R.random(40), R.random((40, 3))]),
    "systems of floats": (
        systems, [(SQUARE + 5 * np.eye(40)).astype("f4"), *R.random((2, 40, 1)).astype("f4")],
    ),
    "gathered": (gathered, [R.random(30), R.integers(-30, 30, 8), R.random(8)]),
    "an index too large": (gathered, [R.random(30), np.array([3, 30]), R.random(2)]),
    "a singular matrix": (systems, [np.zeros((3, 3)), R.random(3), R.random((3, 2))]),
    "loops over elements": (mb.compile(looped), [R.random(500), R.random(500)]),
    "constants": (constant, [R.random(100)]),
    "integers": (integers, [R.integers(-50, 50, (30, 31)), R.integers(1, 9, (30, 31))]),
    "powers": (powers, [R.integers(-50, 50, (30, 31)), R.integers(0, 200, (30, 31))]),
    "in order": (
        ordered, [special((70, 9)), R.integers(-300, 300, (8, 50)), R.integers(0, 9, 30).astype("u1")],
    ),
    "long lines in order": (ordered, [special((1500, 2)), R.integers(-9, 9, (2, 1200)), np.zeros(5, "u1")]),
    "no lines": (ordered, [np.zeros((0, 4)), np.zeros((3, 0), int), np.zeros(0, "u1")]),
    "nothing": (jacobi, [np.zeros((3, 0)), np.zeros((3, 0))]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_library_computes_the_same_bits(name):
    f, arguments = CASES[name]
    assert differences(program_of(f, *arguments), arguments) == []


def test_functions_of_the_c_library_are_close():
    def f(x):
        return mb.exp(x), mb.sin(x) * mb.cos(x), mb.log(x + 1), x**2.5, mb.arctan2(x, x + 1), mb.hypot(x, 2.0)

    x = R.random((40, 50))
    assert differences(program_of(f, x), [x], close=True) == []


@pytest.mark.parametrize("number", range(9000, 9010))
def test_random_programs(number):
    """(`python -m tests.soak_ahead 1000` runs more.)"""
    assert tried(number)[1] == []


def test_reciprocals_of_integers():
    x = np.array([0, 1, 2, 3])
    made = {c: x.astype(c) for c in "bhilBHIL"}
    arrays = list(made.values())
    assert differences(program_of(lambda *x: tuple([mb.reciprocal(a) for a in x]), *arrays), arrays) == []


def step(u, dt):
    u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    return mb.sum(u)


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """A library of two signatures."""
    programs = [program_of(step, np.zeros(n, t), np.zeros((), t)) for n, t in ((100, "f8"), (7, "f4"))]
    return mb.compiling.build(*programs, path=tmp_path_factory.mktemp("steps") / "libstep.so", threads=2)


def test_signatures_are_found_by_dtype_and_shape(steps):
    call = Loaded(steps, "step")
    for n, t in ((100, "f8"), (7, "f4")):
        u, total, dt = R.random(n).astype(t), np.zeros((), t), np.array(0.1, t)
        ours = mb.HostArray(u)
        wanted = mb.compile(step)(ours, mb.asarray(dt))
        assert call([u, dt], [total], strided=True) == 0
        assert np.array_equal(u, mb.to_numpy(ours)) and total == mb.to_numpy(wanted)
    assert "step_2(u: float32[7], written, dt: float32[]) -> out: float32[]" in repr(steps)


def test_what_is_wrong_has_a_code_and_writes_nothing(steps):
    call = Loaded(steps, "step")
    u, dt, out = np.ones(100), np.array(0.1), np.full((), 7.0)
    wide, bytes_ = np.ones(200), np.ones(808, np.uint8)
    odd = bytes_[4:804].view("f8")
    before = [x.copy() for x in (u, out, wide, odd)]
    small = np.zeros(steps.workspace[0] - 64, np.uint8)
    wrong = {
        "another number": call([u], [out]),
        "of results": call([u, dt], []),
        "another type": call([u.astype("c16"), dt], [out]),
        "another shape": call([u[:50].copy(), dt], [out]),
        "of the result": call([u, dt], [np.zeros(1)]),
        "not in C's order": call([wide[::2], dt], [out], strided=True),
        "odd": call([odd, dt], [out]),
        "overlapping": call([u, u[3:4].reshape(())], [out]),
        "results in arguments": call([u, dt], [u[3:4].reshape(())]),
        "little workspace": call([u, dt], [out], workspace=small),
        "workspace in arguments": call([u, dt], [out], workspace=u.view(np.uint8)),
    }
    codes = {"COUNT": 2, "DTYPE": 3, "SHAPE": 4, "STRIDES": 5, "ALIGNMENT": 6, "OVERLAP": 7, "WORKSPACE": 8}
    names = [
        *("COUNT", "COUNT", "DTYPE", "SHAPE", "SHAPE", "STRIDES", "ALIGNMENT", "OVERLAP", "OVERLAP"),
        *("WORKSPACE", "WORKSPACE"),
    ]
    assert list(wrong.values()) == [codes[n] for n in names]
    for a, b in zip((u, out, wide, odd), before, strict=True):
        assert np.array_equal(a, b)
    typed = call.dll.step_1
    import ctypes as c

    pointer = [c.c_void_p(u.ctypes.data), c.c_double(0.1), c.c_void_p(out.ctypes.data)]
    assert typed(None, *pointer[1:], None, c.c_int64(0), 1) == 1
    assert typed(*pointer[:2], None, None, c.c_int64(0), 1) == 1
    assert typed(*pointer, None, c.c_int64(10), 1) == 1
    assert np.array_equal(u, before[0])
    assert call.message(5).decode().startswith("an array does not lie in C's order")
    assert call.message(77) == b"there is no such code"


def test_calls_at_once_have_memory_of_their_own(steps):
    call = Loaded(steps, "step")
    arrays = [R.random(100) for _ in range(8)]
    wanted = [x.copy() for x in arrays]
    for x in wanted:
        for _ in range(200):
            call([x, np.array(0.1)], [np.zeros(())], 1)

    def work(x):
        workspace, dt, out = np.empty(steps.workspace[0], np.uint8), np.array(0.1), np.zeros(())
        for _ in range(200):
            assert call([x, dt], [out], 2, workspace) == 0

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(a, b) for a, b in zip(arrays, wanted, strict=True))


C = """
#include "step.h"
#include <stdio.h>
int main(void) {
    double u[100], total;
    static char workspace[STEP_1_WORKSPACE];
    for (int i = 0; i < 100; i++)
        u[i] = i % 7 * 0.25;
    for (int k = 0; k < 3; k++)
        if (step_1(u, 0.1, &total, workspace, sizeof workspace, 2))
            return 1;
    printf("%.17g %.17g\\n", total, u[50]);
    return step_1(u, 0.1, &total, workspace, 10, 2) != MIRABELLE_WORKSPACE;
}
"""
FORTRAN = """
program main
  use step_library
  implicit none
  real(c_double) :: u(100), total
  integer :: i, k
  u = [(mod(i, 7) * 0.25d0, i = 0, 99)]
  do k = 1, 3
    if (step_1(u, 0.1d0, total, c_null_ptr, 0_c_int64_t, 2) /= 0) error stop
  end do
  print '(es25.17e3, es25.17e3)', total, u(51)
end program main
"""


def wanted_of_c():
    u = mb.HostArray(np.arange(100) % 7 * 0.25)
    for _ in range(3):
        total = mb.compile(step)(u, mb.asarray(0.1))
    return [float(total), float(mb.to_numpy(u)[50])]


@pytest.mark.parametrize(
    ("compiler", "suffix", "text"),
    [("gcc", "c", C), ("g++", "cpp", C), ("gfortran", "f90", FORTRAN)],
    ids=["C", "C++", "Fortran"],
)
def test_programs_in_other_languages(steps, tmp_path, compiler, suffix, text):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    folder = steps.path.parent
    (tmp_path / f"main.{suffix}").write_text(text)
    sources = [str(folder / "step.f90")] if suffix == "f90" else []
    where = [f"-I{folder}", f"-L{folder}", "-lstep", f"-Wl,-rpath,{folder}"]
    subprocess.run([compiler, *sources, f"main.{suffix}", *where, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], env=EMPTY, capture_output=True, text=True, check=True)
    assert [float(x) for x in done.stdout.split()] == wanted_of_c()


def test_a_library_needs_no_python(steps):
    needs = subprocess.run(["ldd", steps.path], capture_output=True, text=True, check=True).stdout
    assert not any(word in needs.lower() for word in ("python", "numba", "llvm", "not found"))


def test_a_wheel_is_installed_and_imported_without_mirabelle(tmp_path):
    program = program_of(lambda a, b: a @ b + 1, R.random((70, 80)), R.random((80, 90)))
    library = mb.compiling.build(
        program, path=tmp_path / "multiplied-2.1-any.whl", name="multiplied", blas="none"
    )
    assert library.path.name.startswith("multiplied-2.1-py3-none-linux")
    with zipfile.ZipFile(library.path) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import sys, numpy as np, multiplied; a = np.ones((70, 80)); b = np.ones((80, 90))\n"
        "assert 'mirabelle' not in sys.modules and np.array_equal(multiplied.multiplied(a, b), a @ b + 1)\n"
        "try: multiplied.call(a, a)\nexcept TypeError as e: print(e)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == "" and "There is no program for such arrays" in done.stdout


def test_the_command(tmp_path):
    (tmp_path / "solver.py").write_text(
        "import numpy as np\n"
        "def step(A, w, n=2):\n    for _ in range(n):\n        A[1:] = w * A[:-1]\n    return np.sum(A)\n"
    )

    def command(*words):
        return subprocess.run(
            [sys.executable, "-m", "mirabelle", "build", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    done = command("solver:step", "--for", "f8[40,30], f8, n=3", "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "step(A: float64[40, 30], written, w: float64[]) -> out: float64[]" in done.stdout
    assert (
        (tmp_path / "libstep.so").exists()
        and (tmp_path / "step.h").exists()
        and (tmp_path / "step.f90").exists()
    )
    assert "neither a dtype" in command("solver:step", "--for", "f8[40,30").stderr
    assert "there is no function 'solver:stop'" in command("solver:stop", "--for", "f8").stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == [
        "libstep.so", "solver.py", "step.f90", "step.h",
    ]  # fmt: skip


def test_lengths_may_have_names(tmp_path):
    from mirabelle.building import named_sizes, signature

    texts = named_sizes(["f8[n, m], x=f8[m], f4[2,n], 3"], ["n=4,7", "m=5", "m=6"])
    assert texts == ["f8[4, 6], x=f8[6], f4[2,4], 3", "f8[7, 6], x=f8[6], f4[2,7], 3"]
    for given, sizes, said in (
        (["f8[3]"], ["n=4"], "no signature has one"),
        (["f8[n]"], ["n=4,x"], "is no name with its lengths"),
        (["f8[n]"], ["n="], "is no name with its lengths"),
    ):
        with pytest.raises(ValueError, match=said):
            named_sizes(given, sizes)

    assert named_sizes(["f8[n,m]"], ["m=3"]) == ["f8[n,3]"]

    def scaled(a, x):
        return a * x

    compiled = mb.compile(scaled, whole=True)
    programs = [compiled.program(*signature(t)[0]) for t in named_sizes(["f8[n,m], f8[m]"], ["n=3,4", "m=2,5"])]
    call = Loaded(mb.compiling.build(*programs, path=tmp_path / "libscaled.so"), "scaled")
    for n, m in ((3, 2), (4, 2), (3, 5), (4, 5)):
        a, x, out = R.random((n, m)), R.random(m), np.zeros((n, m))
        assert call([a, x], [out]) == 0 and np.array_equal(out, a * x)
    assert call([a, R.random(2)], [out]) == 4 and call([R.random((5, 5)), x], [np.zeros((5, 5))]) == 4


def layouts_of(program, threads):
    """In how many pieces each of a library's lists is run: by one thread, and by several."""
    from mirabelle.backends.host.ahead import linking
    from mirabelle.backends.host.ahead.tables import Tables, news, unmarked

    tables = Tables(threads, "native", linking.offered_loops())
    tables.program(program.runner, lambda plan: ([-1] * len(news(plan)), []))
    lists = [unmarked(line) for line in tables.lines if line.startswith("static const RtTasks ")]
    return [tuple(int(n) for n in re.findall(r", (\d+), \d+\}", line)[:2]) for line in lists]


def test_decisions_about_tiles_and_threads_are_the_librarys():
    def layers(x):
        y = mb.exp(x) + 1
        return mb.sqrt(y) * y

    x = R.random((600, 500))
    found = {}
    for name, schedule in {
        "none": mb.compiling.Schedule(),
        "tile": mb.compiling.Schedule().store("y =").tile("y =", rows=20),
        "threads": mb.compiling.Schedule().store("y =").threads("y =", "sqrt", most=1).tile("y =", rows=600),
    }.items():
        program = program_of(mb.compile(layers, schedule=schedule), x)
        assert differences(program, [x], close=True) == []
        found[name] = layouts_of(program, 4)[0]
    assert found == {"none": (1, 4), "tile": (1, 30), "threads": (1, 1)}


REFUSED = {
    "unstable": (lambda x: x.argsort(), "argsort"),
    "complex": (lambda x: mb.sort(x + 1j), "sort"),
    "halves": (lambda x: x.astype("f2"), "float16"),
    "powers of numbers with a sign": (lambda x: x.astype("i8") ** x.astype("i8"), "uint64"),
    "transforms": (lambda x: mb.fft.fft(x), "no library of C with it to link"),
    "what depends on values": (lambda x: mb.linalg.lstsq(x.reshape(6, 5), x[:6])[1], "lstsq"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_python_is_refused_with_its_line(name):
    f, word = REFUSED[name]
    with pytest.raises(TypeError, match="cannot be built ahead of time") as caught:
        mb.compiling.build(program_of(f, R.random(30)))
    assert word in str(caught.value)


def test_bad_input_is_refused(tmp_path):
    program = program_of(lambda x: x * 2, np.zeros(3))
    with pytest.raises(TypeError, match="takes programs"):
        mb.compiling.build()
    with pytest.raises(TypeError, match="takes programs, not function"):
        mb.compiling.build(jacobi)
    with pytest.raises(ValueError, match=r"ends in \.so"):
        mb.compiling.build(program, path=tmp_path / "f.txt")
    with pytest.raises(ValueError, match="name is what functions"):
        mb.compiling.build(program, path=tmp_path / "lib2f.so")
    with pytest.raises(ValueError, match="threads is how many"):
        mb.compiling.build(program, threads=0)
    with pytest.raises(TypeError, match="cannot be built ahead of time"):
        mb.compiling.build(mb.compile(lambda x: x * 2).program(mb.RefArray(np.zeros(3))))
    with pytest.raises(RuntimeError, match="C compiler"):
        mb.compiling.build(
            program_of(lambda a: a @ a, R.random((90, 90))), path=tmp_path / "libf.so", blas="nosuchblas"
        )
    assert list(tmp_path.iterdir()) == []
