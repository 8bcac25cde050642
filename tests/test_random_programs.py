"""Random programs of all dtypes are NumPy's, eager and compiled; see also `python -m tests.soak_programs`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from randomprograms import Wrong, came, drawn, shrunk
from ways import running

import mirabelle as mb

BLOCKS, BLOCK = 5, 50


@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs_of_all_dtypes_are_numpys(block):
    outcomes = [came(drawn(number)) for number in range(BLOCK * block, BLOCK * (block + 1))]
    # (Some ask where a mask holds, which is refused.)
    assert outcomes.count("same") > BLOCK // 2


@pytest.mark.parametrize("name", [None, *mb.compiling.PASSES])
def test_each_pass_alone_leaves_programs_numpys(name):
    passes = [] if name is None else [name]
    outcomes = [came(drawn(n), passes=passes, turns=1, only=("compiled",)) for n in range(1000, 1030)]
    assert outcomes.count("same") > 15


@pytest.mark.parametrize("kind", ["ref", "cuda"])
def test_random_programs_of_all_dtypes_are_numpys_on_other_places(kind):
    outcomes = [came(drawn(number), kind=kind, turns=1) for number in range(2000, 2025)]
    assert outcomes.count("same") > 10


def test_random_programs_of_all_dtypes_are_numpys_as_machine_code():
    with running("hot"):
        outcomes = [came(drawn(number, lines=6), turns=1) for number in range(3000, 3005)]
    assert outcomes.count("same") > 2


def test_a_wrong_program_is_shrunk_to_what_is_wrong_and_printed_as_a_script(monkeypatch, tmp_path):
    monkeypatch.setitem(mb.compiling.PASSES, "algebra", lambda outputs: tuple(map(negated, outputs)))
    number = next(n for n in range(100) if len(drawn(n).lines) > 6 and fails(drawn(n)))
    program = shrunk(drawn(number))
    assert len(program.lines) <= 3
    script = tmp_path / "script.py"
    script.write_text(program.script)
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    found = subprocess.run([sys.executable, script], env=environment, capture_output=True, check=True)
    assert len(found.stdout.splitlines()) >= 3


def fails(program):
    try:
        came(program)
    except Wrong:
        return True
    return False


def negated(node):
    """A pass that is wrong: the first number of what is written out has another sign."""
    from mirabelle.arraytypes.programs.graph import map_node
    from mirabelle.dispatch.ops import TABLE
    from mirabelle.dispatch.promotion import signature

    if node.dtype != np.float64 or not node.shape:
        return node
    return map_node(signature(TABLE["negative"], (node.dtype,)), (node,), node.shape)
