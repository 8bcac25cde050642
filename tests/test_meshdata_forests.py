"""Star forests on 1, 2 and 3 ranks: real processes where MPI is installed, and threads over sockets."""

import doctest
import os
import pathlib
import runpy

import pytest
from ranks.launch import missing, run
from threadranks import on_ranks

from mirabelle import meshdata as md

PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "forests.py"
CHECKS = runpy.run_path(str(PROGRAM))["CHECKS"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("check", CHECKS)
def test_on_threads(check, ranks):
    on_ranks(ranks, CHECKS[check])


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_processes(ranks):
    ended = run(ranks, str(PROGRAM), cuda="simulated")
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(f"fine: {len(CHECKS)} checks") == ranks, ended.stdout


@pytest.mark.parametrize("name", ["StarForest", "UnderWay"])
def test_examples(name):
    for test in doctest.DocTestFinder().find(getattr(md, name), name, globs={}):
        assert doctest.DocTestRunner().run(test).failed == 0
