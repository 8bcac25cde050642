"""The kernels in DaCe's Python, and the process that runs them.

DaCe needs an older NumPy than mirabelle, so it runs in an interpreter of its own, which imports nothing of ours
and is asked line by line: `python -m benchmarks.programs._dace_programs`. A line names a kernel and a file of
its inputs; an empty line asks for a run; each answer is a line of JSON. Loops and array statements are those of
`benchmarks.npkernels`, with symbolic sizes. Where DaCe has no such function (transposed views written to,
`triu`), the statement says the same in terms that it has.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A program, how inputs (as NumPy's program takes them) become its arguments, and which are results."""

    program: Any
    arguments: Callable[..., Arguments]
    results: tuple[str, ...]


def entries() -> dict[str, Entry]:
    """All programs; made in a function, because `dace` is there in one interpreter only."""
    from benchmarks.programs import _dace_sources as d

    def jacobi(steps: int, a: Any, b: Any) -> Arguments:
        return {"steps": steps, "a": a, "b": b, "N": a.shape[0]}

    def fdtd(ex: Any, ey: Any, hz: Any, pulse: Any) -> Arguments:
        sizes = {"NI": ex.shape[0], "NJ": ex.shape[1], "T": pulse.shape[0]}
        return {"ex": ex, "ey": ey, "hz": hz, "pulse": pulse, **sizes}

    def hdiff(f: Any, strength: Any) -> Arguments:
        sizes = dict(zip(("NI", "NJ", "NK"), strength.shape, strict=True))
        return {"f": f, "strength": strength, "out": np.empty_like(strength), **sizes}

    def vadv(tendency: Any, u: Any, w: Any, u_pos: Any, u_tendency: Any, per_step: float) -> Arguments:
        arrays = {"tendency": tendency, "u": u, "w": w, "u_pos": u_pos, "u_tendency": u_tendency}
        return {**arrays, "per_step": per_step, **dict(zip(("NI", "NJ", "NK"), u.shape, strict=True))}

    def cavity(n: int, steps: int, sweeps: int, dt: float, rho: float, nu: float) -> Arguments:
        fields = {name: np.zeros((n, n)) for name in ("u", "v", "p", "b")}
        return {
            **fields,
            "steps": steps,
            "sweeps": sweeps,
            "h": 2.0 / (n - 1),
            "dt": dt,
            "rho": rho,
            "nu": nu,
            "N": n,
        }

    def channel(n: int, sweeps: int, tolerance: float, dt: float, rho: float, nu: float, force: float) -> Any:
        fields = {name: np.zeros((n, n)) for name in ("u", "v", "p")}
        numbers = {"sweeps": sweeps, "tolerance": tolerance, "dt": dt, "rho": rho, "nu": nu, "force": force}
        return {**fields, **numbers, "h": 2.0 / (n - 1), "N": n}

    def adi(steps: int, u: Any) -> Arguments:
        return {"steps": steps, "u": u, "N": u.shape[0]}

    def deriche(image: Any, alpha: float) -> Arguments:
        sizes = {"NI": image.shape[0], "NJ": image.shape[1]}
        return {"image": image, "alpha": alpha, "out": np.empty_like(image), **sizes}

    def stockham(radix: int, stages: int, x: Any) -> Arguments:
        done = radix ** np.arange(stages)
        rest = x.shape[0] // radix // done
        sizes = {"M": x.shape[0] // radix, "R": radix, "S": stages}
        return {"x": x, "out": np.empty_like(x), "rests": rest, "dones": done, **sizes}

    def nbody(position: Any, velocity: Any, mass: Any, steps: int, dt: float, softening: float) -> Arguments:
        energies = {"kinetic": np.empty(steps), "potential": np.empty(steps)}
        arrays = {"position": position, "velocity": velocity, "mass": mass[:, 0]}
        return {**arrays, **energies, "dt": dt, "softening": softening, "N": position.shape[0], "T": steps}

    def mandelbrot(width: int, height: int, limit: int) -> Arguments:
        c = np.linspace(-2.0, 0.5, width) + 1j * np.linspace(-1.25, 1.25, height)[:, None]
        found = {"z": np.zeros_like(c), "escaped": np.zeros(c.shape, np.int64)}
        return {"c": c, **found, "most": limit, "NI": height, "NJ": width}

    def conv2d(x: Any, w: Any, bias: Any) -> Arguments:
        (b, h, wide, ci), (k, _, _, co) = x.shape, w.shape
        out = np.empty((b, h - k + 1, wide - k + 1, co), x.dtype)
        return {"x": x, "w": w, "bias": bias, "out": out, "B": b, "H": h, "W": wide, "CI": ci, "CO": co, "K": k}

    def lenet(x: Any, *weights: Any) -> Arguments:
        names = ("w1", "b1", "w2", "b2", "w3", "b3", "w4", "b4", "w5", "b5")
        b, h = x.shape[:2]
        out = np.empty((b, 10), x.dtype)
        half = (h - 4) // 2
        sizes = {"B": b, "SIDE": h, "HALF": half, "LEAST": (half - 4) // 2}
        return {"x": x, **dict(zip(names, weights, strict=True)), "out": out, **sizes}

    def softmax(x: Any) -> Arguments:
        sizes = dict(zip(("NI", "NJ", "NK", "NL"), x.shape, strict=True))
        return {"x": x, "out": np.empty_like(x), **sizes}

    def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Arguments:
        sizes = {"B": x.shape[0], "CI": x.shape[1], "H": w1.shape[1], "CO": w3.shape[1]}
        weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3, "b3": b3}
        return {"x": x, **weights, "out": np.empty((x.shape[0], w3.shape[1]), x.dtype), **sizes}

    return {
        "jacobi_1d": Entry(d.jacobi_1d, jacobi, ("a", "b")),
        "jacobi_2d": Entry(d.jacobi_2d, jacobi, ("a", "b")),
        "heat_3d": Entry(d.heat_3d, jacobi, ("a", "b")),
        "fdtd_2d": Entry(d.fdtd_2d, fdtd, ("ex", "ey", "hz")),
        "vadv": Entry(d.vadv, vadv, ("tendency",)),
        "hdiff": Entry(d.hdiff, hdiff, ("out",)),
        "cavity_flow": Entry(d.cavity_flow, cavity, ("u", "v", "p")),
        "channel_flow": Entry(d.channel_flow, channel, ("u", "v", "p")),
        "adi": Entry(d.adi, adi, ("u",)),
        "deriche": Entry(d.deriche, deriche, ("out",)),
        "stockham_fft": Entry(d.stockham_fft, stockham, ("out",)),
        "nbody": Entry(d.nbody, nbody, ("kinetic", "potential", "position", "velocity")),
        "mandelbrot1": Entry(d.mandelbrot1, mandelbrot, ("z", "escaped")),
        "conv2d": Entry(d.conv2d, conv2d, ("out",)),
        "lenet": Entry(d.lenet, lenet, ("out",)),
        "softmax": Entry(d.softmax, softmax, ("out",)),
        "mlp": Entry(d.mlp, mlp, ("out",)),
    }


def read_inputs(path: str) -> list[Any]:
    """The inputs of a kernel, in order; 0-d arrays are numbers."""
    with np.load(path) as stored:
        given = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    return [x if x.ndim else x.item() for x in given]


def serve(questions: Any, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer lines until there are no more."""
    run: Callable[[], tuple[float, Sequence[Any]]] | None = None
    for line in questions:
        asked = line.strip()
        try:
            if asked:
                name, inputs, results = json.loads(asked)
                start = time.perf_counter()
                run = prepared(entries()[name], read_inputs(inputs))
                compiled = time.perf_counter() - start
                seconds, found = run()
                np.savez(results, *found)
                answer({"first_s": compiled + seconds})
            elif run is not None:
                answer({"s": run()[0]})
        except Exception as error:
            answer({"failed": f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]})


def prepared(entry: Entry, inputs: Sequence[Any]) -> Callable[[], tuple[float, Sequence[Any]]]:
    """Compile, and give the function that makes fresh arguments and times one call with them."""
    import dace
    from dace.transformation.auto.auto_optimize import auto_optimize

    graph = auto_optimize(entry.program.to_sdfg(simplify=True), dace.DeviceType.CPU)
    compiled = graph.compile()
    given = entry.arguments(*inputs)
    # What was folded away is no argument any more, and an unknown one is refused.
    taken = set(graph.arglist())

    def run() -> tuple[float, Sequence[Any]]:
        arguments = {k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
        passed = {k: v for k, v in arguments.items() if k in taken}
        start = time.perf_counter()
        compiled(**passed)
        seconds = time.perf_counter() - start
        return seconds, [arguments[n] for n in entry.results]

    return run


def main() -> None:
    """Answers go to what was standard output; DaCe and the compiler talk on the error stream."""
    import os

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(content: dict[str, Any]) -> None:
        print(json.dumps(content), file=out, flush=True)

    serve(sys.stdin, answer)


if __name__ == "__main__":
    main()
