"""What pytest needs to run the same tests on all ranks at once.

All ranks collect the same tests and run them in the same order. At the end of each step of a test they
meet: one that failed on any of them fails on all, also where the others wait for it in the middle, and the
next begins on all together. Rank 0 reports. A test that hangs ends the run, with the stacks of all ranks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import traceback

import pytest

import mirabelle as mb
from mirabelle.dispatch.errors import RemoteError

# Seconds after which a test hangs.
PATIENCE = 60
COMM = mb.distributed.communicator()
# Where stacks are written while pytest keeps what is printed.
STDERR = os.fdopen(os.dup(2), "w")

if COMM.rank:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, help="only every so many-th of the tests")
    parser.addoption("--all-kinds", action="store_true", help="also what is not of a distributed kind")


def pytest_report_header():
    return f"ranks: {COMM.size}"


def pytest_collection_modifyitems(config, items):
    """The tests of distributed kinds, or an even sample of them."""
    chosen = [i for i in items if config.getoption("--all-kinds") or is_distributed(i)]
    chosen = chosen[:: config.getoption("--every")]
    kept = {id(item) for item in chosen}
    config.hook.pytest_deselected(items=[i for i in items if id(i) not in kept])
    items[:] = chosen
    names = "\n".join(i.nodeid for i in chosen)
    if len(set(COMM.allgather_object(hash_of(names)))) > 1:
        raise pytest.UsageError(
            "The ranks collected different tests: parameters must not depend on the process."
        )


@pytest.fixture
def tmp_path(tmp_path):
    """One folder for all ranks."""
    return COMM.bcast_object(tmp_path)


def is_distributed(item):
    return "dist" in item.nodeid.partition("[")[2] or "tests/test_distributed" in item.nodeid


def hash_of(text):
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def met(item):
    """Leave a step of a test with all others: what one raised, all raise."""
    error = None
    try:
        yield
    except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
        raise
    except BaseException as e:  # (pytest's own outcomes are no Exceptions)
        error = e
    skipped = isinstance(error, pytest.skip.Exception)
    own = error is not None and not skipped and not isinstance(error, RemoteError)
    if own:
        COMM.failed(error)
    said = None
    if skipped:
        said = "skipped"
    elif error is not None:
        said = "".join(traceback.format_exception(error)) if own else "stopped"
    outcomes = COMM.settle(said)
    if own or len(set(outcomes)) == 1:
        if error is not None:
            raise error
        return
    for rank, text in enumerate(outcomes):
        if text not in (None, "skipped", "stopped"):
            pytest.fail(f"Rank {rank} failed:\n\n{text}", pytrace=False)
    if error is not None and not skipped:
        raise error
    pytest.fail(f"The ranks did not do the same: {outcomes}", pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    faulthandler.dump_traceback_later(PATIENCE, exit=True, file=STDERR)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    with met(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    kind = getattr(item, "callspec", None) and item.callspec.params.get("kind")
    layout = getattr(kind, "layout", None)
    with met(item), mb.distributed.use_layout(layout) if layout is not None else contextlib.nullcontext():
        return (yield)


def pytest_unconfigure():
    STDERR.close()
