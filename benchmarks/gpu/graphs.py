"""Fifty small kernels: one launch after the other, and as one CUDA graph."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._table import show
from benchmarks.gpu._card import Card
from benchmarks.gpu._libraries import agree, to_numpy, torch_on
from benchmarks.gpu._record import Record, Recorder

SOFT_LIMIT_S, HARD_LIMIT_S = 20.0, 60.0
ELEMENTS, STEPS = 1024, 50
ROUNDS, REPLAYS = 9, 100
TARGET_US = 1.2
METHOD = (
    f"{STEPS} statements z = 0.5*z + x, each of which needs the one before. Wall clock of {REPLAYS} runs of "
    "all of them with one wait at the end; microseconds are a statement's. CuPy's ways with `multiply` and "
    "`add` take two kernels a statement. A graph is recorded once and replayed; its results are "
    "checked, also after x has changed."
)


@dataclass(frozen=True)
class Way:
    """How the statements are run: `run` starts them all; `start` sets x and z; `result` is z's values."""

    run: Callable[[], object]
    start: Callable[[Any, Any], object]
    result: Callable[[], np.ndarray]
    kernels: int = 1  # a statement


def our_arrays(card: Card, n: int) -> tuple[Any, Any]:
    return card.ours(card.random((n,))), card.ours(card.random((n,)))


def our_way(card: Card, n: int) -> tuple[Any, Any, Callable[[], None], Callable[[Any, Any], None]]:
    x, z = our_arrays(card, n)

    def steps() -> None:
        for _ in range(STEPS):
            z[...] = 0.5 * z + x

    def start(x0: Any, z0: Any) -> None:
        x[...] = card.ours(x0)
        z[...] = card.ours(z0)
        card.synchronize()

    return x, z, steps, start


def ours_streamed(card: Card, n: int) -> Way:
    _, z, steps, start = our_way(card, n)
    return Way(steps, start, lambda: to_numpy(z))


def ours_replayed(card: Card, n: int) -> Way:
    import mirabelle as mb

    _, z, steps, start = our_way(card, n)
    steps()  # compiled before it is recorded
    card.synchronize()
    with mb.capture() as graph:
        steps()
    return Way(graph.replay, start, lambda: to_numpy(z))


def cupy_arrays(card: Card, n: int) -> tuple[Any, Any, Any, Callable[[Any, Any], None]]:
    cupy = card.need()
    x, z = card.random((n,)), card.random((n,))

    def start(x0: Any, z0: Any) -> None:
        x[...] = x0
        z[...] = z0
        card.synchronize()

    return cupy, x, z, start


def eager_steps(cupy: Any, x: Any, z: Any) -> Callable[[], None]:
    def steps() -> None:
        for _ in range(STEPS):
            cupy.multiply(z, 0.5, out=z)
            cupy.add(z, x, out=z)

    return steps


def kernel_steps(cupy: Any, x: Any, z: Any) -> Callable[[], None]:
    kernel = cupy.ElementwiseKernel("float64 w, float64 x", "float64 z", "z = 0.5*w + x", "one_step")

    def steps() -> None:
        for _ in range(STEPS):
            kernel(z, x, z)

    return steps


def cupy_streamed(make: Callable[..., Callable[[], None]], kernels: int) -> Callable[[Card, int], Way]:
    def way(card: Card, n: int) -> Way:
        cupy, x, z, start = cupy_arrays(card, n)
        return Way(make(cupy, x, z), start, lambda: cupy.asnumpy(z), kernels)

    return way


def cupy_replayed(make: Callable[..., Callable[[], None]], kernels: int) -> Callable[[Card, int], Way]:
    def way(card: Card, n: int) -> Way:
        cupy, x, z, start = cupy_arrays(card, n)
        steps = make(cupy, x, z)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            steps()
            stream.synchronize()
            stream.begin_capture()
            steps()
            graph = stream.end_capture()
        return Way(lambda: graph.launch(stream), start, lambda: cupy.asnumpy(z), kernels)

    return way


def torch_way(card: Card, n: int, replayed: bool) -> Way:
    torch, show_ = torch_on(card)
    x, z = show_(card.random((n,))).clone(), show_(card.random((n,))).clone()

    def steps() -> None:
        for _ in range(STEPS):
            torch.add(x, z, alpha=0.5, out=z)

    def start(x0: Any, z0: Any) -> None:
        x.copy_(show_(x0))
        z.copy_(show_(z0))
        card.synchronize()

    if not replayed:
        return Way(steps, start, lambda: to_numpy(z))
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        steps()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps()
    return Way(graph.replay, start, lambda: to_numpy(z))


WAYS: dict[str, Callable[[Card, int], Way]] = {
    "mirabelle, stream": ours_streamed,
    "mirabelle, graph": ours_replayed,
    "CuPy, stream": cupy_streamed(eager_steps, 2),
    "CuPy, graph": cupy_replayed(eager_steps, 2),
    "CuPy ElementwiseKernel, stream": cupy_streamed(kernel_steps, 1),
    "CuPy ElementwiseKernel, graph": cupy_replayed(kernel_steps, 1),
    "torch, stream": lambda card, n: torch_way(card, n, replayed=False),
    "torch, graph": lambda card, n: torch_way(card, n, replayed=True),
}


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    for name, make in WAYS.items():
        record.case(name, lambda n=name, m=make: measured(record, n, m), limit_s=20)  # type: ignore[misc]


def measured(record: Recorder, name: str, make: Callable[[Card, int], Way]) -> dict[str, Any]:
    card = record.card
    n = 64 if card.tiny else ELEMENTS
    way = make(card, n)
    for what in ("the values", "the values after x has changed"):
        x0, z0 = card.random((n,)), card.random((n,))
        way.start(x0, z0)
        way.run()
        card.synchronize()
        x, z = to_numpy(x0), to_numpy(z0)
        for _ in range(STEPS):
            z = 0.5 * z + x
        agree(f"{name}: {what}", way.result(), z, 1e-12)
    replays = 2 if card.tiny else REPLAYS
    times = []
    for _ in range(2 if card.tiny else ROUNDS):
        card.synchronize()
        begin = time.perf_counter()
        for _ in range(replays):
            way.run()
        card.synchronize()
        times.append((time.perf_counter() - begin) / replays / STEPS * 1e6)
    best, median = min(times), statistics.median(times)
    return {
        "best_us": best,
        "median_us": median,
        "median_us_a_kernel": median / way.kernels,
        "kernels_a_statement": way.kernels,
        "said": f"{median:.2f} µs a statement (best {best:.2f})",
    }


def report(record: Record) -> None:
    found = {c["name"]: c for c in record.cases if "median_us" in c}
    ours = found.get("mirabelle, graph")
    record.content["summary"] = {
        "replay_us": ours and ours["median_us"],
        "met": bool(ours) and ours["median_us"] <= TARGET_US,
    }
    show(
        f"{STEPS} statements z = 0.5*z + x on {ELEMENTS} elements: µs",
        ["way", "a statement", "best", "a kernel"],
        [
            [n, f"{c['median_us']:.2f}", f"{c['best_us']:.2f}", f"{c['median_us_a_kernel']:.2f}"]
            for n, c in found.items()
        ],
        [f"Target for mirabelle's graph: at most {TARGET_US} µs a kernel."]
        + [f"{c['name']}: {c['failed']}" for c in record.cases if "failed" in c],
    )
