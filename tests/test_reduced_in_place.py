"""What is reduced as it is, without a kernel yet: read where it lies, at once, in the order of the kernel."""

import tracemalloc

import numpy as np
import pytest
from ways import as_many, running

import mirabelle as mb
from mirabelle.backends.host.reduce import ReductionPlan

SHAPES = [
    ((70_001,), None), ((3, 40_000), 1), ((3, 40_000), 0), ((9000, 5), 0), ((9000, 5), 1), ((9000, 5), None),
    ((70, 70, 3), 0), ((70, 70, 3), 1), ((70, 70, 3), (0, 2)), ((70, 70, 3), (1, 2)), ((5000, 64), 0),
    ((130, 1025), 1), ((2, 4161, 3), 1), ((1, 4000), 0), ((4000, 1), 0),
]  # fmt: skip
NAMES = ["sum", "prod", "max", "min", "mean"]


def reduced(x, name, axis):
    return mb.to_numpy(getattr(mb, name)(x, axis=axis))


@pytest.mark.parametrize("shape, axis", SHAPES, ids=repr)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_it_has_the_bits_that_the_kernel_will_give(monkeypatch, shape, axis, dtype):
    n = np.random.default_rng(3).normal(0.1, 1, shape).astype(dtype)
    names = [name for name in NAMES if dtype != "c16" or name not in ("max", "min")]
    # (Turned around and with steps it is copied: the same once more.)
    for view in (n, n[::-1], np.asfortranarray(n), np.repeat(n, 2, axis=-1)[..., ::2]):
        found = []
        for way in ("cold", "hot"):
            with running(way), as_many(), monkeypatch.context() as m:
                if way == "cold":  # (also where another test had the kernel made)
                    m.setattr(ReductionPlan, "ready", lambda plan, wait=False: False)
                found.append([reduced(mb.HostArray(view), name, axis).tobytes() for name in names])
        assert found[0] == found[1]


@pytest.mark.parametrize("name", ["sum", "max", "any"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_it_is_not_copied(name, axis):
    x = mb.HostArray(np.ones((100_000, 10), "?" if name == "any" else "f8"))
    with running("cold"):
        reduced(x, name, axis)
        tracemalloc.start()
        reduced(x, name, axis)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 2_000_000 + (axis == 1) * x.nbytes // 5
