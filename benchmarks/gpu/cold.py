"""From an expression nobody has compiled yet to its result, in a first process and in a second one."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._table import show
from benchmarks.gpu._card import Card
from benchmarks.gpu._libraries import agree, jax_on, to_numpy, torch_on
from benchmarks.gpu._record import Record, Recorder, message

SOFT_LIMIT_S, HARD_LIMIT_S = 70.0, 170.0
ELEMENTS, EXPRESSIONS = 1 << 20, 10
TARGET_FIRST_MS, TARGET_SECOND_MS = 80.0, 5.0
METHOD = (
    "A process imports the library, runs one other expression of another shape, and then times ten generated "
    "expressions, each for the first time, until the card is done. The second process runs the same ones with "
    "the disk cache the first one left: mirabelle's, CuPy's, JAX's persistent one, Inductor's. torch.compile "
    "runs two."
)

TERMS = (
    "a*b", "b*c", "a*c", "a/(b + 2.0)", "c/(a + 3.0)", "b/(c + 2.5)", "{m}sin(a)", "{m}cos(b)", "{m}exp(-c)",
    "{m}sqrt(b)", "{m}log(a + 1.0)", "{m}tanh(c)", "{m}exp(-a*b)", "{m}sin(b + c)", "{m}sqrt(a*a + c*c)",
    "(a - b)*(a + c)", "{m}cos(a*c)", "{m}log(b*b + 1.0)",
)  # fmt: skip


def texts() -> list[str]:
    """Ten expressions, of four to six terms each, the same in every process; {m} is for the module."""
    rng = random.Random(2026)
    found = []
    for _ in range(EXPRESSIONS):
        terms = rng.sample(TERMS, rng.randint(4, 6))
        text = terms[0]
        for term in terms[1:]:
            text += f" {rng.choice('+-')} {rng.choice((0.25, 0.5, 1.5, 3.0))}*{term}"
        found.append(text)
    assert len(set(found)) == EXPRESSIONS
    return found


WARM_UP = "2.0*a - b"


def _function(text: str, module: str = "xp.") -> Callable[..., Any]:
    found: Callable[..., Any] = eval(f"lambda xp, a, b, c: {text.format(m=module)}")
    return found


# In a process of its own: from the text of an expression to a function that returns when it is there.


def with_mirabelle(card: Card) -> tuple[Callable[[Any], Any], Callable[[str], Callable[..., Any]]]:
    import mirabelle as mb

    def prepare(text: str) -> Callable[..., Any]:
        f = _function(text)
        return lambda *xs: mb.materialize(f(mb, *xs))

    return card.ours, prepare


def with_fuse(card: Card) -> tuple[Callable[[Any], Any], Callable[[str], Callable[..., Any]]]:
    cupy = card.need()

    def prepare(text: str) -> Callable[..., Any]:
        f = _function(text)

        def fused(a: Any, b: Any, c: Any) -> Any:
            return f(cupy, a, b, c)

        return lambda *xs: cupy.fuse(fused)(*xs)

    return lambda x: x, prepare


def with_kernel(card: Card) -> tuple[Callable[[Any], Any], Callable[[str], Callable[..., Any]]]:
    cupy = card.need()

    def prepare(text: str) -> Callable[..., Any]:
        body = "z = " + text.format(m="")
        parameters = "float64 a, float64 b, float64 c"
        return lambda *xs: cupy.ElementwiseKernel(parameters, "float64 z", body, "cold")(*xs)

    return lambda x: x, prepare


def with_jax(card: Card) -> tuple[Callable[[Any], Any], Callable[[str], Callable[..., Any]]]:
    jax, show_ = jax_on(card)
    import jax.numpy as jnp

    def prepare(text: str) -> Callable[..., Any]:
        f = _function(text)
        return lambda *xs: jax.block_until_ready(jax.jit(lambda a, b, c: f(jnp, a, b, c))(*xs))

    return show_, prepare


def with_torch(card: Card) -> tuple[Callable[[Any], Any], Callable[[str], Callable[..., Any]]]:
    torch, show_ = torch_on(card)

    def prepare(text: str) -> Callable[..., Any]:
        # Dynamo leaves alone what comes from no file.
        source = f"def f(a, b, c):\n    return {text.format(m='torch.')}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.write(source)
        scope: dict[str, Any] = {"torch": torch, "__name__": Path(file.name).stem}
        exec(compile(source, file.name, "exec"), scope)
        torch.compiler.reset()
        return lambda *xs: torch.compile(scope["f"], dynamic=False)(*xs)

    return show_, prepare


WITH: dict[str, tuple[Callable[[Card], Any], int]] = {
    "mirabelle": (with_mirabelle, EXPRESSIONS),
    "ElementwiseKernel": (with_kernel, EXPRESSIONS),
    "fuse": (with_fuse, EXPRESSIONS),
    "jax": (with_jax, EXPRESSIONS),
    "torch.compile": (with_torch, 2),
}


def child(name: str, tiny: bool) -> dict[str, Any]:
    """What one process sees."""
    start = time.perf_counter()
    card = Card(tiny)
    prepared, count = WITH[name]
    convert, prepare = prepared(card)
    found: dict[str, Any] = {"import_s": time.perf_counter() - start, "seconds": []}
    n = 64 if tiny else ELEMENTS
    square = [convert(card.random((n // 8, 8))) for _ in range(3)]
    vectors = [card.random((n,)) for _ in range(3)]
    hosts = [to_numpy(v) for v in vectors]
    vectors = [convert(v) for v in vectors]
    card.synchronize()
    start = time.perf_counter()
    prepare(WARM_UP)(*square)
    card.synchronize()
    found["warm_up_s"] = time.perf_counter() - start
    for text in texts()[:count]:
        compute = prepare(text)
        start = time.perf_counter()
        result = compute(*vectors)
        card.synchronize()
        found["seconds"].append(time.perf_counter() - start)
        agree(text, to_numpy(result), _function(text)(np, *hosts), 1e-10)
    return found


def _spawn(name: str, tiny: bool, cache: str, limit_s: float) -> dict[str, Any]:
    caches = {
        "MIRABELLE_CACHE_DIR": "mirabelle",
        "CUPY_CACHE_DIR": "cupy",
        "JAX_COMPILATION_CACHE_DIR": "jax",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TRITON_CACHE_DIR": "triton",
        "NUMBA_CACHE_DIR": "numba",
        "TMPDIR": "temporary",
        # The driver's own cache of what it makes from PTX.
        "CUDA_CACHE_PATH": "driver",
    }
    environment = {
        **os.environ,
        **{variable: str(Path(cache) / folder) for variable, folder in caches.items()},
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    for folder in caches.values():
        (Path(cache) / folder).mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.cold", name, *(["tiny"] if tiny else [])],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=limit_s,
    )
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise RuntimeError(" / ".join(lines[-3:]) or f"exit status {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    record.content["expressions"] = [t.format(m="") for t in texts()]
    for name in WITH:
        if name == "torch.compile" and record.late:
            continue
        record.case(name, lambda n=name: measured(record, n), limit_s=120)  # type: ignore[misc]


def measured(record: Recorder, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="mirabelle-cold-", ignore_cleanup_errors=True) as cache:
        # Inductor takes long enough once.
        for process in ("first",) if name == "torch.compile" else ("first", "second"):
            try:
                seen = _spawn(name, record.card.tiny, cache, 55)
            except Exception as error:
                record.failures[f"{process} process"] = message(error)
                break
            found[process] = {
                **seen,
                "median_ms": statistics.median(seen["seconds"]) * 1e3,
                "worst_ms": max(seen["seconds"]) * 1e3,
            }
    found["said"] = ", ".join(
        f"{p} process {found[p]['median_ms']:.1f} ms (worst {found[p]['worst_ms']:.1f})"
        for p in ("first", "second")
        if p in found
    )
    return found


def report(record: Record) -> None:
    cases = {c["name"]: c for c in record.cases if "first" in c}
    ours = cases.get("mirabelle", {})
    first, second = ours.get("first"), ours.get("second")
    record.content["summary"] = {
        "first_ms": first and first["median_ms"],
        "first_worst_ms": first and first["worst_ms"],
        "second_ms": second and second["median_ms"],
        "second_worst_ms": second and second["worst_ms"],
        "met": {
            "first": bool(first) and first["median_ms"] <= TARGET_FIRST_MS,
            "second": bool(second) and second["median_ms"] <= TARGET_SECOND_MS,
        },
    }
    show(
        "A new expression: ms, median of its kind (worst), in a first and in a second process",
        ["who", "first", "second", "import, s", "warm-up, s"],
        [
            [
                name,
                *[
                    f"{c[p]['median_ms']:.1f} ({c[p]['worst_ms']:.1f})" if p in c else "-"
                    for p in ("first", "second")
                ],
                f"{c['first']['import_s']:.2f}",
                f"{c['first']['warm_up_s']:.2f}",
            ]
            for name, c in cases.items()
        ],
        [f"Targets: {TARGET_FIRST_MS:g} ms in the first process, {TARGET_SECOND_MS:g} ms in the second."]
        + [f"{c['name']}: {why}" for c in record.cases for why in c["failures"].values()],
    )


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], "tiny" in sys.argv[2:])))
