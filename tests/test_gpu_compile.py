"""Kernels for cards, compiled without a card: by Numba to PTX, by NVIDIA's assembler, and by its simulator.

`python -m tests.gpu --registers` compiles the whole catalogue for every generation and writes the
table; here as much of it as there is time for, each time the same kernels first.
"""

import os
import time

import pytest
from children import answer
from gpukernels import assembler
from kernelcatalogue import CAPABILITIES, assembled, kernels, ptx_of

# Seconds for each generation of cards.
BUDGET = 3.0
# A thread with more registers than this leaves half of a multiprocessor idle.
MOST_REGISTERS = 128


@pytest.fixture(scope="module")
def found():
    return kernels()


@pytest.fixture(scope="module")
def compiler():
    """numba-cuda, and NVIDIA's compiler and assembler from their wheels."""
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except Exception as e:
        pytest.skip(f"needs NVVM: {e}")
    if assembler() is None:
        pytest.skip("needs ptxas")


def test_every_program_of_the_catalogue_runs(found):
    assert found[1] == {}
    assert len(found[0]) > 1000


def test_the_catalogue_has_every_frame(found):
    texts = [k.source.text for k in found[0]]
    for name in ("flat_", "rows_", "tiles_", "reduce_"):
        assert sum(f"def {name}" in t for t in texts) >= 20, name
    for lanes in (2, 4, 8):
        assert any(f"load{lanes}_" in t for t in texts) and any(f"store{lanes}_" in t for t in texts)
    assert any("fn_" in t for t in texts) and any("atomic_add" in t for t in texts)


def test_texts_are_the_same_in_every_process():
    """They are the keys of the kernels on disk."""
    code = "import json, kernelcatalogue as c; print(json.dumps(sorted(k.key for k in c.kernels()[0])))"
    texts = []
    for seed in ("1", "2"):
        os.environ["PYTHONHASHSEED"] = seed
        try:
            texts.append(answer(code, cuda="simulated"))
        finally:
            del os.environ["PYTHONHASHSEED"]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda c: "sm_{}{}".format(*c))
def test_kernels_compile_and_do_not_spill(compiler, found, capability, tmp_path):
    ptx_of(found[0][0], capability)  # (the compiler starts)
    # Each generation begins elsewhere, so that together they get far.
    order = sorted(found[0], key=lambda k: k.key)
    first = CAPABILITIES.index(capability) * len(order) // len(CAPABILITIES)
    end, done = time.monotonic() + BUDGET, 0
    for kernel in order[first:] + order[:first]:
        took = assembled(ptx_of(kernel, capability), tmp_path, capability)
        assert took.spills == 0, (kernel.program, took)
        assert took.registers <= MOST_REGISTERS, (kernel.program, took)
        done += 1
        if time.monotonic() > end:
            break
    assert done >= 10


def test_kernels_run_under_numbas_simulator():
    """Threads and barriers are real ones there; results are NumPy's, or the process fails."""
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    ran = answer("import cudasim; cudasim.main()", cuda="simulated")
    assert all(ran[frame] for frame in ("flat", "rows", "tiles", "reduce"))
