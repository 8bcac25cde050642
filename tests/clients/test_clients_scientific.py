"""SciPy and scikit-learn take our arrays and give them back, on the host and on a device."""

import fcntl
import json
import os
import pathlib
import subprocess
import sys

import pytest
from handover import where
from scientific import TABLES

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def outcomes():
    """What is wrong with each program, found by a process in which SciPy takes other arrays.

    All of xdist's workers share one such process: the first starts it, the others wait.
    """
    paths = [str(HERE), str(HERE.parents[1])]
    shared = pathlib.Path(os.environ["MIRABELLE_TESTS_CACHE"]) / "scientific.json"
    with open(shared, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if known := file.read():
            return json.loads(known)
        done = subprocess.run(
            [sys.executable, str(HERE / "scientific.py")],
            env=os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        file.write(done.stdout)
        return json.loads(done.stdout)


PROGRAMS = [p for table, _ in TABLES.values() for p in table]


def check(client, outcomes):
    if client not in outcomes:
        pytest.skip("the library is not installed")
    assert not outcomes[client], outcomes[client]


@pytest.mark.parametrize("client", [f"{family}: {p}" for p in PROGRAMS for family in where(p)])
def test_clients_give_the_right_answer_as_our_type(client, outcomes):
    check(client, outcomes)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if where(p) == ["host"]])
def test_what_needs_the_host_refuses_a_device_with_the_cure(program, outcomes):
    check(f"refused: {program}", outcomes)
