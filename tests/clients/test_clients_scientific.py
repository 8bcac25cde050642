"""SciPy and scikit-learn take our arrays and give them back, on the host and on a device."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from scientific import SCIKIT_LEARN, SCIPY, where

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def outcomes():
    """What is wrong with each program, found by a process in which SciPy takes other arrays."""
    paths = [str(HERE), str(HERE.parents[1])]
    done = subprocess.run(
        [sys.executable, str(HERE / "scientific.py")],
        env=os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("client", [f"{family}: {p}" for p in SCIPY + SCIKIT_LEARN for family in where(p)])
def test_clients_give_the_right_answer_as_our_type(client, outcomes):
    if client not in outcomes:
        pytest.skip("the library is not installed")
    assert not outcomes[client], outcomes[client]
