"""The shared suite and random programs on distributed arrays over several real processes.

Here a sample of each, as large as a test run can afford: `python -m tests.ranks -n 3` runs all tests,
`python -m tests.soak` as many programs as one likes.
"""

import json
import re

import pytest
from ranks.launch import missing, run
from ranks.suite import arguments

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

# (ranks, what pytest is given): every so many-th test of the distributed kinds.
SAMPLES = {
    "suite on 3 ranks": (3, ["tests/test_suite.py", "--every", "61", "-k", "not hot"]),
    "indexing and products on 3 ranks": (
        3,
        ["tests/test_indexing.py", "tests/test_matmul.py", "--every", "29", "-k", "not hot"],
    ),
    "functions on 2 ranks": (2, ["tests/test_functions.py", "--every", "29", "-k", "not hot"]),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_suite_on_ranks(sample):
    ranks, given = SAMPLES[sample]
    done = run(ranks, *arguments(*given), test_ranks=str(ranks))
    said = done.stdout
    assert done.returncode == 0, said[-8000:]
    assert int(re.search(r"(\d+) passed", said)[1]) >= 25, said[-2000:]
    assert "failed" not in said and "error" not in said.splitlines()[-1]


def test_random_programs_on_slow_ranks():
    done = run(3, "tests/soak.py", "--on-rank", "--statements", "300")
    assert done.returncode == 0, done.stdout[-8000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["statements"] >= 300 and found["buffers left"] == 0


def test_a_rank_that_fails_in_a_random_program():
    """All ranks raise it, also those that wait for the rank; the next program runs on all."""
    done = run(3, "tests/soak.py", "--on-rank", "--programs", "12", "--fail", "5")
    assert done.returncode == 0, done.stdout[-8000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["programs"] == 12 and found["buffers left"] == 0
    assert found["failures"] == [
        [0, "RemoteError", 1],
        [1, "ZeroDivisionError", None],
        [2, "RemoteError", 1],
    ]


def test_a_failure_on_one_rank_fails_the_test_on_all(tmp_path):
    """What `python -m tests.ranks` itself does then: the suite goes on, and says what happened where."""
    tests = tmp_path / "test_sample.py"
    tests.write_text(
        "import pytest\n"
        "import mirabelle as mb\n"
        "@pytest.mark.parametrize('kind', ['dist'])\n"
        "def test_before(kind): pass\n"
        "@pytest.mark.parametrize('kind', ['dist'])\n"
        "def test_in_the_middle(kind):\n"
        "    x = mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])\n"
        "    if mb.distributed.communicator().rank == 1:\n"
        "        raise OSError('only here')\n"
        "    assert float(mb.sum(x)) == 6\n"
        "@pytest.mark.parametrize('kind', ['dist'])\n"
        "def test_after(kind):\n"
        "    assert float(mb.sum(mb.DArray[mb.HostArray]([1.0, 2.0, 3.0]))) == 6\n"
        "@pytest.mark.parametrize('kind', ['dist'])\n"
        "def test_skipped(kind): pytest.skip('on all')\n"
    )
    done = run(3, *arguments(str(tests)), test_ranks="3")
    assert done.returncode != 0
    assert "1 failed, 2 passed, 1 skipped" in done.stdout, done.stdout[-8000:]
    assert "only here" in done.stdout
