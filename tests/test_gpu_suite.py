"""`python -m tests.gpu` itself: what it takes for equal on a real card, and what it writes down."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from children import ROOT
from compare import assert_near, assert_same, on_real_card

import mirabelle as mb


def off(x, units):
    """`x` as an inexact function would have it."""
    x = np.asarray(x)
    return x + x * x.dtype.type(np.finfo(x.dtype).eps * units)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_the_last_bits_may_differ(dtype):
    x = np.array([1.0, -2.5, 3e5, 0.0], dtype)
    assert_near(off(x, 8), x)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_near(off(x, 100), x)
    with pytest.raises(AssertionError):
        assert_same(off(x, 8), x)


def test_what_cancelled_is_compared_with_what_was_computed_with():
    expected = np.array([1.0, 1e-17, 0.0])
    assert_near(np.array([1.0, -2e-17, 3e-16]), expected)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_near(np.array([1.0, 1e-14, 0.0]), expected)


@pytest.mark.parametrize(
    "wrong",
    [[np.inf, 1.0, 0.0, -3.0], [np.nan, 1.0, np.nan, -3.0], [-np.nan, 1.0, -0.0, -3.0], [np.nan, 1.0, 0.0, 3.0],
     [np.nan, np.inf, 0.0, -3.0]],
    ids=["no NaN", "a NaN", "a sign of zero", "a sign", "an infinity"],
)  # fmt: skip
def test_what_is_exact_on_every_card(wrong):
    expected = np.array([np.nan, 1.0, 0.0, -3.0])
    assert_near(expected.copy(), expected)
    with pytest.raises(AssertionError):
        assert_near(np.array(wrong), expected)


def test_simulated_cards_are_compared_exactly():
    x = mb.CuArray([1.0, 2.0])
    if mb.settings.cuda != "simulated":
        pytest.skip("a real card")
    assert not on_real_card(x)
    with pytest.raises(AssertionError):
        assert_same(x, off(mb.to_numpy(x), 1))


def run(tmp_path, *arguments):
    out = tmp_path / "results.json"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MIRABELLE"))}
    command = [sys.executable, "-m", "tests.gpu", "--simulated", "--out", str(out), "-n0", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done, json.loads(out.read_text())


def test_the_file_of_results(tmp_path):
    tests = tmp_path / "test_sample.py"
    tests.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('kind', ['cuda', 'host'])\n"
        "def test_kind(kind): pass\n"
        "@pytest.mark.card\n"
        "def test_card(): pass\n"
        "def test_fails_on_cuda(): assert 1 == 2, 'as it should'\n"
    )
    broken = tmp_path / "test_broken.py"
    broken.write_text("import nothing_of_this_name\n")
    done, found = run(tmp_path, str(tests), str(broken))
    assert done.returncode == 1
    assert [found[k] for k in ("passed", "failed", "skipped")] == [2, 1, 0]
    ((name, reason),) = found["failures"].items()
    assert name.endswith("test_fails_on_cuda") and "as it should" in reason
    (reason,) = found["not_collected"].values()
    assert "nothing_of_this_name" in reason
    assert found["complete"] and found["machine"]["versions"]["numpy"] == np.__version__
    assert "1 failed" in done.stdout and "deselected" in done.stdout


def test_the_command_runs_tests_of_ours(tmp_path):
    done, found = run(tmp_path, "tests/test_suite.py", "-k", "test_wrappers or clip")
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["passed"] > 0 and found["failed"] == 0
