"""One kernel in a fresh process: `python -m benchmarks.programs._one KERNEL ANSWER OPTIONS` (JSON)."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import Timing
from benchmarks.npkernels._kernel import Kernel
from benchmarks.npkernels._report import same
from benchmarks.programs._kernels import SIZES, kernel
from benchmarks.programs._runners import RUNNERS, Compiled, Runner, take_turns


def prepare_libraries(who: list[str]) -> None:
    """Import what will be used: the first call is that of a process that has its libraries."""
    import mirabelle as mb

    mb.HostArray(np.zeros(2))
    if "jax" in who and importlib.util.find_spec("jax"):
        import jax

        jax.devices()
    if "numba" in who:
        import numba  # noqa: F401


def measure(name: str, who: list[str], seconds: float, tiny: bool) -> dict[str, Any]:
    """Check everybody against NumPy, and time calls unless `seconds` is 0."""
    k = kernel(name)
    size = k.tiny if tiny else SIZES[name]
    inputs = k.inputs(size)
    prepare_libraries(who)
    found: dict[str, Any] = {"name": name, "size": dict(size), "first_s": {}, "failures": {}, "notes": []}
    expected = tuple(np.array(r) for r in k.run(k.plain, np, [_copy(x) for x in inputs]))
    field: dict[str, Runner] = {}
    for contender in who:
        runner: Runner | None = None
        try:
            runner = RUNNERS[contender](k, inputs)
            found["first_s"][contender], results = runner.first()
            agrees(k, contender, results, expected)
            later = runner.settle() if seconds else None
            if later is not None:
                agrees(k, f"{contender}, later", later, expected)
            field[contender] = runner
        except Exception as error:
            found["first_s"].pop(contender, None)
            found["failures"][contender] = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
            if runner is not None:
                runner.close()
        if isinstance(runner, Compiled):
            found["refused_forms"] = runner.refused
            if runner.why:
                found["notes"].append(runner.why)
    try:
        if seconds and field:
            times = take_turns(field, seconds)
            found["times"] = {n: Timing.of(t).as_json() for n, t in times.items()}
    finally:
        for runner in field.values():
            runner.close()
    return found


# Points whose orbits stay near the border of the set go elsewhere with another rounding (fused multiply-add).
CHAOTIC = {"mandelbrot1": 0.005}


def agrees(k: Kernel, who: str, results: Sequence[Any], expected: Sequence[Any]) -> None:
    """Refuse results that are not NumPy's; of a chaotic program, where more than a few elements are not."""
    allowed = CHAOTIC.get(k.name)
    if allowed is None:
        same(k, who, results, expected)
        return
    assert len(results) == len(expected), f"{k.name}, {who}: {len(results)} results, not {len(expected)}"
    for i, (got, wanted) in enumerate(zip(results, expected, strict=True)):
        got = np.asarray(got)
        assert got.shape == wanted.shape, f"{k.name}, {who}: shape {got.shape}, not {wanted.shape}"
        off = 1.0 - float(np.mean(np.isclose(got, wanted, rtol=1e-6, equal_nan=True)))
        assert off <= allowed, f"{k.name}, {who}: {off:.1%} of result {i} differ from NumPy's"


def _copy(x: Any) -> Any:
    return np.array(x) if isinstance(x, np.ndarray) else x


if __name__ == "__main__":
    answer = measure(sys.argv[1], **json.loads(sys.argv[3]))
    Path(sys.argv[2]).write_text(json.dumps(answer))
