"""Libraries for cards, where there is none: what stands for the driver runs the simulated card's kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
from aheadcards import CASES, built_fake, program_of
from children import answer

import mirabelle as mb
from mirabelle import building
from mirabelle.backends.cuda.modules import assembler

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="libraries are linked by gcc"
)
R = np.random.default_rng(8)


@pytest.fixture(scope="module")
def differing():
    return answer("import aheadcards; aheadcards.main()", cuda="simulated")


@pytest.mark.parametrize("name", CASES)
def test_a_library_computes_the_same_bits(differing, name):
    assert differing[name] == []


def test_random_programs():
    code = "import aheadcards as a, json; print(json.dumps(a.randomly(range(700, 712))))"
    became, wrong = answer(code, cuda="simulated")
    assert wrong == {} and became["built"] > 4


@pytest.fixture(scope="module")
def mistaken():
    return answer("import aheadcards; aheadcards.mistakes()", cuda="simulated")


def test_what_is_wrong_has_a_code_and_nothing_is_launched(mistaken):
    null, alignment, overlap, workspace, memory = 1, 6, 7, 8, 9
    card, code, driver = 11, 12, 14
    wanted = {
        "null": null, "null result": null, "null workspace": null, "null graphs": null, "alignment": alignment,
        "overlap": overlap, "workspace": workspace, "workspace overlaps": overlap, "no context": card,
        "cuModuleLoadData": driver, "cuMemAlloc": memory, "cuLaunchKernel": driver,
        "cuLaunchKernel said": 999, "described count": 2, "described dtype": 3, "described shape": 4,
        "written": [], "launches": 0, "index 8": 0, "index -9": 0, "index 9": 10, "index -10": 10,
    }  # fmt: skip
    assert {k: mistaken[k] for k in wanted} == wanted
    # Code of a generation is for later cards of it, and text for all later ones.
    assert [mistaken[f"code on {n}"] for n in (70, 75, 86, 100)] == [code, code, 0, 0]


def test_a_stream_may_be_recorded_unless_the_host_looks_at_values(mistaken):
    wanted = {"recorded": 0, "recorded launches": 0, "run": 0, "same": True, "recorded branch": 15}
    assert {k: mistaken[k] for k in wanted} == wanted


def test_signatures_are_found_by_dtype_and_shape(mistaken):
    assert mistaken["two"] == [[0, True]] * 2


def test_many_trips_of_loops_are_one_graph(mistaken):
    by_graphs, plainly = mistaken["loops"]
    assert by_graphs[:2] == plainly[:2] == [0, True]
    assert by_graphs[3] == plainly[3] > 137 and by_graphs[2] < 12 and plainly[2] == 0


C_PROGRAM = """
#include "step.h"
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    mirabelle_graphs *graphs = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    static double u[100] __attribute__((aligned(64))), total[2] __attribute__((aligned(64)));
    static char workspace[STEP_WORKSPACE];
    int code = step(u, 0.1, total, workspace, sizeof workspace, NULL);
    if (driver == NULL) {
        puts(step_message(code));
        return code != MIRABELLE_CARD;
    }
    int codes[] = {code, step_graph(&graphs, u, 0.1, total, NULL, 0, NULL),
                   step(NULL, 0.1, total, NULL, 0, NULL), step(u, 0.1, u + 2, NULL, 0, NULL),
                   step_forget(graphs), step_unload()};
    for (int i = 0; i < 6; i++)
        printf("%d ", codes[i]);
    int64_t (*count)(const char *) = (int64_t (*)(const char *))dlsym(driver, "fake_count");
    printf("%d %d", (int)count("launches"), (int)count("loads"));
    return 0;
}
"""


def step(u, dt):
    u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    return mb.sum(u)


@pytest.mark.skipif(assembler() is None, reason="needs ptxas")
def test_a_program_in_c_needs_no_python(tmp_path):
    """With the code of cards in it, which the driver that is none takes for what it is."""
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    library = mb.compiling.build(
        program_of(step, [np.zeros(100), 0.1]), path=tmp_path / "libstep.so", name="step", arch="sm_80,sm_90"
    )
    assert library.functions == ["step(u: float64[100], written, dt: float64[]) -> out: float64[]"]
    said = subprocess.run(["ldd", library.path], capture_output=True, text=True, check=True).stdout
    assert "python" not in said and "cuda" not in said
    # (Numbers are stored, a step is computed, written, and summed: four kernels, for two generations.)
    assert library.path.read_bytes().count(b"\x7fELF") == 1 + 2 * 4
    (tmp_path / "main.c").write_text(C_PROGRAM)
    words = [
        "gcc",
        "-std=gnu11",
        "-Wall",
        "-Werror",
        "main.c",
        "-o",
        "main",
        "-L.",
        "-lstep",
        "-ldl",
    ]
    subprocess.run(words, cwd=tmp_path, check=True)
    if shutil.which("g++"):
        subprocess.run(
            ["g++", "-fsyntax-only", "-Wall", "-Werror", "-x", "c++", "step.h"], cwd=tmp_path, check=True
        )
    (tmp_path / "with").mkdir()
    built_fake(tmp_path / "with", "libcuda.so.1")

    def ran(*folders):
        environment = {"LD_LIBRARY_PATH": ":".join(map(str, folders)), "PATH": "/nowhere"}
        return subprocess.run([tmp_path / "main"], env=environment, capture_output=True, text=True, check=True)

    assert "there is no card" in ran(tmp_path).stdout
    assert ran(tmp_path, tmp_path / "with").stdout == "0 0 1 7 0 0 8 0"


REFUSED = {
    "scans": (lambda x: mb.cumulative_sum(x), "cumulative_sum"),
    "sorts": (lambda x: mb.sort(x), "sort"),
    "transforms": (lambda x: mb.fft.fft(x), "fft"),
    "systems": (lambda x: mb.linalg.solve(x.reshape(6, 5)[:5], x[:5]), "solve"),
    "scatters": (lambda x: mb.put(x, x.astype("i8"), 1.0), "scatter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_library_is_refused_with_its_line(name):
    f, word = REFUSED[name]
    with pytest.raises(TypeError, match="cannot be built ahead of time") as caught:
        mb.compiling.build(program_of(f, [R.random(30)]))
    assert word in str(caught.value) and "test_ahead_cards.py" in str(caught.value)


def test_bad_options_are_refused(tmp_path):
    program = program_of(lambda x: x * 2, [np.zeros(3)])
    with pytest.raises(ValueError, match="arch says for which cards"):
        mb.compiling.build(program, arch="hopper")
    with pytest.raises(TypeError, match="threads is about processors"):
        mb.compiling.build(program, threads=2)
    with pytest.raises(ValueError, match="blas is 'none'"):
        mb.compiling.build(program, blas="openblas")
    with pytest.raises(TypeError, match="Wheels are for programs of the host"):
        mb.compiling.build(program, path=tmp_path / "f-1.0-py3-none-any.whl")
    with pytest.raises(TypeError, match="arch is about cards"):
        mb.compiling.build(mb.compile(lambda x: x * 2).program(mb.zeros(3)), arch="sm_90")
    with pytest.raises(TypeError, match="for the sizes that they have"):
        mb.compiling.build(mb.compile(lambda x: x * 2, sizes="any").program(mb.CuArray(np.zeros(30))))
    inner = program_of(lambda x: x @ x, [R.random(90000)])
    with pytest.raises(TypeError, match=r"a product of float64\[90000\] and .* is a routine of CuPy's"):
        mb.compiling.build(inner, blas="none")


def test_arguments_may_be_called_as_what_the_library_needs(tmp_path):
    def f(stream, graphs, given, code, workspace):
        return stream * graphs + given * code + workspace

    program = program_of(f, [np.zeros(3), 1.0, np.zeros(3), 1.0, np.zeros(3)])
    library = mb.compiling.build(program, arch="compute_80", name="f", path=tmp_path / "libf.so")
    assert "given_: float64[3], code: float64[]" in library.functions[0]


def test_a_plan_stays_as_it_was(tmp_path):
    program = program_of(lambda a, b: mb.sum(mb.exp(a @ b) + a), [R.random((9, 9))] * 2)
    before = program.plan.peak_bytes, program.plan.arena_bytes, [s.offset for s in program.plan.storages]
    mb.compiling.build(program, arch="compute_80")
    assert before == (
        program.plan.peak_bytes, program.plan.arena_bytes, [s.offset for s in program.plan.storages]
    )  # fmt: skip


@pytest.mark.skipif(assembler() is None, reason="needs ptxas")
def test_the_command(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    (tmp_path / "halving.py").write_text("def half(x, w):\n    x[...] = x * w\n    return x.sum()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["halving:half", "--for", "f4[3,5], f4", "--array", "CuArray", "--arch", "compute_80"]
    assert building.main(words) == 0
    assert "half(x: float32[3, 5], written, w: float32[]) -> out: float32[]" in capsys.readouterr().out
    assert b".target sm_80" in (tmp_path / "libhalf.so").read_bytes()
    assert building.main([*words[:-1], "ampere"]) == 1
