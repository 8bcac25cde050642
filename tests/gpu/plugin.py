"""What a run of the tests on a real card needs of pytest: which tests, and what becomes of a lost card."""

from __future__ import annotations

import os
import sys

import pytest


def pytest_collection_modifyitems(config, items):
    """The tests of the kinds on a card, and those marked `card`."""
    chosen, others = [], []
    for item in items:
        wanted = any(name in item.nodeid.lower() for name in ("cuda", "cuarray")) or item.get_closest_marker(
            "card"
        )
        (chosen if wanted else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid, location):
    """After an illegal access no call of a process reaches the card: xdist replaces a worker that ends."""
    if "PYTEST_XDIST_WORKER" in os.environ and lost():
        os._exit(3)


def lost():
    """Has this process's context on the card died?"""
    cupy = sys.modules.get("cupy")
    if cupy is None or os.environ["MIRABELLE_CUDA"] == "simulated":
        return False
    try:
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError:
        return True
    return False
