"""Library routines of distributed arrays give NumPy's results on any number of ranks, without gathering."""

import os
import pathlib
import runpy

import pytest
from ranks.launch import missing, run

PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "routines.py"
# What one start of processes checks: they cost a second or two.
GROUPS = {
    "orders": ("sorts", "sorts_of_a_line", "distinct", "looked_up", "failures_are_shared"),
    "counts": ("counted", "quantiles", "places", "products"),
    "transforms": ("transforms", "transforms_of_several_axes", "of_other_memory"),
    "matrices": ("systems", "tall_matrices", "stacks"),
}

pytestmark = [
    pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own"),
    pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}"),
]


# Four ranks can stand in a mesh, and have sizes that three do not divide. (By hand: any number of them.)
STARTS = [("orders", 4), ("counts", 2), ("transforms", 2), ("matrices", 3)]


@pytest.mark.parametrize(("group", "ranks"), STARTS)
def test_routines(group, ranks):
    pytest.importorskip("scipy")
    ended = run(ranks, str(PROGRAM), *GROUPS[group])
    assert ended.returncode == 0, ended.stdout
    assert f"{len(GROUPS[group])} checks passed on {ranks}" in ended.stdout


def test_all_checks_are_run():
    checks = runpy.run_path(str(PROGRAM))["CHECKS"]
    assert sorted(checks) == sorted(name for names in GROUPS.values() for name in names)
