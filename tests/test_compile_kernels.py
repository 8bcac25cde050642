"""The statement-loop kernels of `benchmarks/programs` mean compiled what they mean with NumPy.

Each form that the benchmark offers is compiled at a tiny size and called three times with fresh arguments.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

import mirabelle as mb

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks.npkernels._kernel import convert
from benchmarks.programs._compiler import phases
from benchmarks.programs._kernels import NAMES, forms, kernel
from benchmarks.programs._one import agrees
from benchmarks.programs._runners import compiled_contender

# Forms whose text asks for values: these cannot be captured.
REFUSED = {"channel_flow": 1}


@pytest.mark.parametrize("name", NAMES)
def test_compiled_kernels_give_what_numpy_gives(name: str) -> None:
    k = kernel(name)
    inputs = k.inputs(k.tiny)
    expected = k.run(k.plain, np, convert(inputs, np.array))
    for form in forms(name)[REFUSED.get(name, 0) :]:
        contender = compiled_contender(k, inputs, form)
        for _ in range(3):
            agrees(k, "compiled", contender.run(contender.arguments()), expected)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_names_the_line(name: str) -> None:
    k = kernel(name)
    contender = compiled_contender(k, k.inputs(k.tiny), forms(name)[0])
    with pytest.raises(TypeError, match=r"\.py:\d+"):
        contender.run(contender.arguments())


def test_arrays_made_while_a_function_is_compiled_can_be_written_to() -> None:
    def made(x):
        inside = [mb.zeros(3), mb.empty((3,), dtype=x.dtype), mb.ones(3), mb.zeros_like(x)]
        for y in inside:
            y[1:] = x[1:]
            y[:1] = 2 * x[:1]
        return inside

    compiled = mb.compile(made)
    for start in (1.0, 5.0):
        x = mb.HostArray([start, 2.0, 3.0])
        for y in compiled(x):
            assert np.array_equal(np.asarray(y), [2 * start, 2.0, 3.0])


def test_stages_of_compiling_are_timed() -> None:
    f = mb.compile(lambda x: x * 2 + 1)
    f(mb.HostArray([1.0]))
    assert {"capture", "transform"} <= set(phases(f))
