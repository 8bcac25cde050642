"""Kernels of a folder that is laid out as NPBench's checkout, as they are: not a letter of them is changed.

`bench_info/NAME.json` says what a kernel is called, its sizes and arguments; in `npbench/benchmarks/PATH`,
`MODULE.py` makes the arguments and `MODULE_numpy.py` holds the program. Each runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store

# Seconds that NumPy should take, and at most takes; seconds that one kernel may take in all.
LEAST, MOST, LIMIT = 0.01, 0.4, 150
WAYS = ("eager", "compiled", "numba")


def run_sources(folder: str, only: str = "", rounds: int = 5, out: str = "", tiny: bool = False) -> None:
    """Measure all kernels of a folder, or those whose names are in `only` (a list with commas)."""
    root = Path(folder).expanduser().resolve()
    names = sorted(p.stem for p in (root / "bench_info").glob("*.json"))
    chosen = [n for n in names if not only or n in only.split(",")]
    if not chosen:
        raise SystemExit(f"{root} has no bench_info/*.json of these names; the layout is that of NPBench.")
    if os.environ.get("BENCHMARKS_ARRAY", "HostArray") != "HostArray":
        from benchmarks.npkernels._sources_cards import run_on_card

        run_on_card(root, chosen, rounds, out, tiny)
        return
    print(f"{'kernel':28} {'size':>5} {'NumPy ms':>9} {'first s':>8} " + " ".join(f"{w:>9}" for w in WAYS))
    rows = []
    for name in chosen:
        row = _apart(root, name, rounds)
        rows.append(row)
        print(_line(row), flush=True)
    means = _summary(rows)
    if out:
        store("npkernels_sources", {"means": means, "kernels": rows}, Path(out))


def _line(row: dict[str, Any]) -> str:
    if "numpy" not in row:
        return f"{row['name']:28} {row.get('error', '')[:80]}"
    cells = []
    for way in WAYS:
        found = row.get(way)
        cells.append(f"{row['numpy'] / found:9.2f}" if isinstance(found, float) else f"{str(found)[:9]:>9}")
    wrong = f"  {row['why'][:90]}" if row.get("why") else ""
    first = row.get("first", math.nan)
    return f"{row['name']:28} {row['size']:>5} {row['numpy'] * 1e3:9.2f} {first:8.2f} {' '.join(cells)}{wrong}"


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    means: dict[str, Any] = {}
    done = [r for r in rows if "numpy" in r]
    for way in WAYS:
        ratios = [r["numpy"] / r[way] for r in done if isinstance(r.get(way), float)]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            slow = sum(x < 0.9 for x in ratios)
            means[way] = {"right": len(ratios), "of": len(done), "mean": mean, "below": slow}
            print(f"{way:9} {len(ratios)} of {len(done)} right, geometric mean {mean:.2f}, {slow} below 0.9")
    firsts = [
        r["first"] for r in done if isinstance(r.get("first"), float) and isinstance(r.get("compiled"), float)
    ]
    if firsts:
        print(f"first call: median {statistics.median(firsts):.2f} s, longest {max(firsts):.2f} s")
        means["first_s"] = {"median": statistics.median(firsts), "longest": max(firsts)}
    return means


def _apart(root: Path, name: str, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.npkernels._sources", str(root), name, str(rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"not done in {LIMIT} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)  # type: ignore[no-any-return]
    return {"name": name, "error": (done.stderr.strip().splitlines() or ["no word"])[-1]}


class _Kernel:
    """One kernel of the folder."""

    def __init__(self, root: Path, name: str) -> None:
        info = json.loads((root / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self.info = info
        path = info["relative_path"].replace("/", ".")
        sys.path.insert(0, str(root))
        module = f"npbench.benchmarks.{path}.{info['module_name']}"
        self.init = info.get("init")
        if self.init:
            self.initialize = getattr(importlib.import_module(module), self.init["func_name"])
        self.module = importlib.import_module(f"{module}_numpy")
        self.program: Callable[..., Any] = getattr(self.module, info["func_name"])

    def arguments(self, size: str) -> dict[str, Any]:
        given: dict[str, Any] = dict(self.info["parameters"][size])
        if self.init:
            taken = [given[k] for k in self.init["input_args"]]
            parameters = inspect.signature(self.initialize).parameters
            options = {k: np.float64 for k in ("datatype", "dtype") if k in parameters}
            with contextlib.suppress(ValueError):  # (nussinov's are integers)
                if "datatype" in options and parameters["datatype"].default in (
                    np.int32,
                    np.int64,
                    np.complex128,
                ):
                    options = {}
            made = self.initialize(*taken, **options)
            names = self.init["output_args"]
            made = (made,) if len(names) == 1 and not isinstance(made, tuple) else made
            given.update(zip(names, made, strict=True))
        return {k: given[k] for k in self.info["input_args"]}


def _copied(arguments: dict[str, Any], make: Callable[[Any], Any]) -> dict[str, Any]:
    return {k: make(x) if isinstance(x, np.ndarray) and x.ndim else x for k, x in arguments.items()}


def _results(returned: Any, arguments: dict[str, Any]) -> list[Any]:
    values = returned if isinstance(returned, (tuple, list)) else (returned,)
    return [x for x in (*values, *arguments.values()) if x is not None]


def _same(found: list[Any], wanted: list[Any]) -> bool:
    if len(found) != len(wanted):
        return False
    for a, b in zip(found, wanted, strict=True):
        try:
            a, b = np.asarray(a), np.asarray(b)
            if a.dtype.kind not in "biufc":
                continue
            rtol = 1e-4 if b.dtype in (np.float32, np.complex64) else 1e-7
            if a.shape != b.shape or not np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True):
                return False
        except TypeError:
            continue
    return True


def _when_compiled(f: Any, arguments: dict[str, Any]) -> list[Any]:
    """The results of a later call, when all that the first one did without is there."""
    import mirabelle as mb
    from mirabelle.backends.host import kernels

    kernels.settle()
    given = _copied(arguments, mb.HostArray)
    return _results(f(*given.values()), given)


def _is_chaotic(kernel: _Kernel, arguments: dict[str, Any], wanted: list[Any]) -> bool:
    """Do NumPy's results differ, too, where arrays differ in their last bits?"""
    beside = _copied(arguments, lambda x: x * (1 + 2e-16) if x.dtype.kind in "fc" else x.copy())
    return not _same(_results(kernel.program(*beside.values()), beside), wanted)


def measure(root: Path, name: str, rounds: int) -> dict[str, Any]:
    """The row of one kernel: seconds by way; a text where it failed."""
    import mirabelle as mb

    warnings.simplefilter("ignore")
    kernel = _Kernel(root, name)
    size, _, arguments = _sized(kernel)
    row: dict[str, Any] = {"name": name, "size": size}
    plain = _copied(arguments, np.array)
    wanted = _results(kernel.program(*plain.values()), plain)

    def materialised(results: list[Any]) -> list[Any]:
        return [mb.materialize(x) if isinstance(x, mb.AbstractArray) else x for x in results]

    ways: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {"numpy": (kernel.program, np.array)}
    ways["eager"] = kernel.program, mb.HostArray
    ways["compiled"] = mb.compile(kernel.program), mb.HostArray
    why = []
    for way in ("compiled", "eager"):
        f, make = ways[way]
        given = _copied(arguments, make)
        began = time.perf_counter()
        try:
            with _limited(40):
                found = materialised(_results(f(*given.values()), given))
        except BaseException as e:
            row[way] = "error"
            why.append(f"{way}: {type(e).__name__} {e}")
            del ways[way]
            continue
        took = time.perf_counter() - began
        if way == "compiled":
            row["first"] = took
            found = materialised(_when_compiled(f, arguments))
        if not _same(found, wanted):
            if _is_chaotic(kernel, arguments, wanted):
                why.append(f"{way}: chaotic, NumPy's own results differ when begun a last bit beside")
                continue
            row[way] = "wrong"
            why.append(f"{way}: values differ")
            del ways[way]
        elif way == "eager" and took > 10:
            row[way] = took
            del ways[way]
    with contextlib.suppress(Exception):  # (what Numba does not take)
        _add_numba(kernel, ways, arguments, wanted)
    if not any(isinstance(x, np.ndarray) for x in arguments.values()):
        # (Its numbers are constants of a program: that remembers its result.)
        ways.pop("compiled", None)
        row["compiled"] = "constant"
    times: dict[str, list[float]] = {way: [] for way in ways}
    spent = 0.0
    for turn in range(rounds + 4):
        for way, (f, make) in ways.items():
            given = _copied(arguments, make)
            began = time.perf_counter()
            materialised(_results(f(*given.values()), given))
            took = time.perf_counter() - began
            spent += took
            if turn >= 4 or spent > 20:
                times[way].append(took)
        if turn < 4:
            with contextlib.suppress(Exception):
                from mirabelle.backends.host import kernels

                kernels.settle()
        if spent > 30 and all(times.values()):
            break
    row.update({way: min(t) for way, t in times.items() if t})
    row["why"] = "; ".join(why)
    return row


def _sized(
    kernel: _Kernel, least: float = LEAST, bytes_enough: float = math.inf
) -> tuple[str, float, dict[str, Any]]:
    """The smallest size for which NumPy takes long enough, or arguments have so many bytes."""
    found: Any = None
    for size in ("S", "M", "L", "paper"):
        if size not in kernel.info["parameters"]:
            continue
        arguments = kernel.arguments(size)
        plain = _copied(arguments, np.array)
        began = time.perf_counter()
        kernel.program(*plain.values())
        took = time.perf_counter() - began
        if found is not None and took > MOST * 4:
            return found  # type: ignore[no-any-return]
        found = size, took, arguments
        if took >= least or sum(getattr(x, "nbytes", 0) for x in arguments.values()) >= bytes_enough:
            break
    assert found is not None
    return found  # type: ignore[no-any-return]


def _add_numba(kernel: _Kernel, ways: dict[str, Any], arguments: dict[str, Any], wanted: list[Any]) -> None:
    """The unchanged program under numba.njit, where that takes it."""
    if os.environ.get("BENCHMARKS_NUMBA", "1") == "0":
        return
    import numba

    f = numba.njit(kernel.program)
    given = _copied(arguments, np.array)
    with _limited(30):
        found = _results(f(*given.values()), given)
    if _same(found, wanted):
        ways["numba"] = f, np.array


@contextlib.contextmanager
def _limited(seconds: int) -> Any:
    import signal

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
