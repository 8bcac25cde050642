"""Threads that write to other parts of one array at a time lose nothing, as with NumPy."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mirabelle as mb

THREADS, TURNS = 6, 12


def by_view(x, i):
    part = x[i]
    for _ in range(TURNS):
        part += 1


def by_index(x, i):
    for _ in range(TURNS):
        x[i] += 1


def by_expression(x, i):
    for _ in range(TURNS):
        x[i] = mb.floor(x[i]) * 2 - x[i] + 1


def by_value(x, i):
    value = mb.zeros(x.shape[1], device=type(x).family)
    for _ in range(TURNS):
        value = value + 1
        x[i] = value


def overlapping(x, i):
    for _ in range(TURNS):
        x[i, 1:] = x[i, :-1] + 1
        x[i, 0] += 1
        x[i, 1:] = mb.broadcast_to(x[i, :1], (x.shape[1] - 1,))


def by_number(x, i):
    for k in range(TURNS):
        x[i, :] = k + 1


def by_array(x, i):
    for k in range(TURNS):
        x[i] = np.full(x.shape[1], k + 1.0)


def by_places(x, i):
    for _ in range(TURNS):
        x[[i]] = x[[i]] + 1


def by_mask(x, i):
    mask = np.arange(THREADS) == i
    for _ in range(TURNS):
        x[mask] += 1


def by_out(x, i):
    for _ in range(TURNS):
        mb.add(x[i], 1, out=x[i])


def by_at(x, i):
    for _ in range(TURNS):
        np.add.at(x, (i, slice(None)), 1)


def sorting(x, i):
    for k in range(TURNS):
        x[i] = k + 1
        x[i].sort()


@pytest.mark.parametrize(
    "write",
    [
        *(by_view, by_index, by_expression, by_value, overlapping, by_number, by_array, by_places, by_mask),
        *(by_out, by_at, sorting),
    ],
)
def test_threads_write_to_parts_of_one_array(write):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for length in (40, 1500, 60_000):
            for _ in range(3):
                # (Some wait to be computed, some are read by others.)
                x = mb.zeros((THREADS, length))
                read = x + 1 if length == 1500 else None
                with ThreadPoolExecutor(THREADS) as pool:
                    list(pool.map(lambda i, x=x: write(x, i), range(THREADS)))
                assert set(mb.to_numpy(x).ravel().tolist()) == {float(TURNS)}
                assert read is None or float(mb.max(read)) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("index", ["indices", "mask", "list"])
def test_writes_of_few_elements_keep_their_short_way(index):
    """(Who asks whether others have the memory may not hold it: then it would seem so.)"""
    z = mb.HostArray(np.zeros(100))
    i = {"indices": mb.HostArray(np.arange(5)), "mask": mb.HostArray(np.arange(100) > 50), "list": [1, 2]}[
        index
    ]
    calls = []
    for _ in range(3):
        z[i] = 1.0
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        z[i] = 2.0
    finally:
        sys.setprofile(None)
    assert len(calls) < 25, calls
