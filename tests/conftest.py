"""What every test stands on: a private kernel cache, two threads, a calm Hypothesis."""

import atexit
import collections
import gc
import os
import shutil
import subprocess
import tempfile
import zlib

# Settings are read from the environment on import, and xdist's workers inherit this process's:
# they share one cache, which is one more thing tested.
if "MIRABELLE_TESTS_CACHE" not in os.environ:
    _cache = tempfile.mkdtemp(prefix="mirabelle-tests-")
    os.environ["MIRABELLE_TESTS_CACHE"] = _cache
    atexit.register(shutil.rmtree, _cache, ignore_errors=True)
os.environ["MIRABELLE_CACHE_DIR"] = os.path.join(os.environ["MIRABELLE_TESTS_CACHE"], "kernels")
os.environ["MIRABELLE_NUM_THREADS"] = "2"
os.environ["MIRABELLE_COMPILER"] = "off"
# What processes that tests start import is compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Cards are simulated, unless `python -m tests.gpu` asks for a real one.
os.environ.setdefault("MIRABELLE_CUDA", "simulated")

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from ways import WAYS, as_many, running

import mirabelle as mb
from mirabelle.dispatch.settings import TABLE

hypothesis_settings.register_profile(
    "mirabelle",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
hypothesis_settings.load_profile("mirabelle")


# Of a test with more variants than this, CI runs about a quarter: enough to see that something broke, and its
# machines are slow. Which quarter depends on their names and on the number of commits, so that the next
# landings run the others; the header says how a run is repeated. (`make test` by hand runs all.) At every
# fourth commit it is an eighth: a part of `make release-check` runs, too (`.ci/run`).
FAMILY, PARTS, EVERY = 4, 4, 4
PART = "MIRABELLE_TESTS_PART"


def commits():
    """The number of commits; 0 where there is no repository."""
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        counted = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=here, capture_output=True, text=True, timeout=30
        )
        return int(counted.stdout or 0)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def part_after(count):
    """Which part of the variants runs after so many commits: "3/4" is the last of four."""
    fourth = count // EVERY
    turn, parts = (fourth, 2 * PARTS) if count % EVERY == 0 else (count - fourth, PARTS)
    return f"{turn % parts}/{parts}"


# (Workers inherit what the process that starts them found.)
if os.environ.get("CI") == "true":
    os.environ.setdefault(PART, part_after(commits()))


def pytest_report_header():
    if os.environ.get("CI") == "true":
        share = {"4": "a quarter", "8": "an eighth"}.get(os.environ[PART].partition("/")[2], "a part")
        return f"{share} of the variants: the same again by CI=true {PART}={os.environ[PART]} make test"
    return None


def pytest_collection_modifyitems(config, items):
    # (Not of tests that tests start.)
    if os.environ.pop("CI", "") == "true":
        families = collections.defaultdict(list)
        for item in items:
            families[item.nodeid.partition("[")[0]].append(item)
        part, parts = map(int, os.environ[PART].split("/"))
        left_out = [
            i
            for variants in families.values()
            if len(variants) > FAMILY
            for i in _of_other_parts(variants, part, parts)
        ]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [i for i in items if i not in gone]
    if os.environ["MIRABELLE_CUDA"] == "simulated":
        for item in items:
            if item.get_closest_marker("card"):
                item.add_marker(pytest.mark.skip(reason="needs a real card: python -m tests.gpu"))


def _of_other_parts(variants, part, parts):
    """All but those of a part, which has one at least."""
    left_out = [v for v in variants if zlib.crc32(v.nodeid.encode()) % parts != part]
    return left_out if len(left_out) < len(variants) else left_out[1:]


def pytest_collection_finish():
    # Tens of thousands of tests stay as they are: tests that collect garbage need not look through them.
    # (Who looks for owners that are not counted looks through all.)
    gc.collect()
    if os.environ.get("MIRABELLE_CHECK_OWNERS", "0") == "0":
        gc.freeze()


@pytest.fixture(autouse=True)
def settings_as_they_were():
    """Settings are the process's: a test whose threads change them at once may leave theirs behind."""
    before = {s.name: getattr(mb.settings, s.name) for s in TABLE}
    yield
    for name, value in before.items():
        if getattr(mb.settings, name) != value:
            setattr(mb.settings, name, value)


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """A file's random numbers begin anew with each test: they do not depend on which others ran before."""
    # (Not by `monkeypatch`, which would then be undone after all that tests change by other fixtures.)
    if isinstance(getattr(request.module, "RNG", None), np.random.Generator):
        request.module.RNG = np.random.default_rng(5)


@pytest.fixture
def trees():
    """Few elements wait in trees, as many do: for tests of what is done with trees."""
    with mb.settings.changed(immediate_size=0, brief_size=0):
        yield


@pytest.fixture
def many():
    """Few elements take the way of many (`ways.as_many`)."""
    with as_many():
        yield


@pytest.fixture(params=WAYS)
def way(request):
    """Run the test on both ways of running: interpreted ("cold") and compiled ("hot")."""
    with running(request.param):
        yield request.param


@pytest.fixture
def hot():
    """Run the test with every kernel compiled before its statement goes on."""
    with running("hot"):
        yield
