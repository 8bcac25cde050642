"""Who runs a kernel, each as one `Runner`: its first call, and calls that are timed."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.npkernels._contenders import Contender, mirabelle_contender, numba_contender, numpy_contender
from benchmarks.npkernels._kernel import Kernel
from benchmarks.npkernels._report import timed
from benchmarks.programs._compiler import compiler, settle
from benchmarks.programs._kernels import Form, forms

Results = tuple[Any, ...]
CALLS_BEFORE = 6
DACE_LIMIT_S = 60.0
# So long after a pause calls do not count: the processor's caches and clocks are a sleeper's.
WARM_S = 0.005


class Runner(Protocol):
    """`first` gives seconds from calling what is not compiled yet to its results; `once` those of a call."""

    def first(self) -> tuple[float, Results]: ...

    def settle(self) -> Results | None: ...

    def once(self) -> float: ...

    def close(self) -> None: ...


class Here:
    """A contender in this process."""

    def __init__(self, contender: Contender, warm: bool = False) -> None:
        self.contender = contender
        self.warm = warm

    def first(self) -> tuple[float, Results]:
        return timed(self.contender)

    def settle(self) -> Results | None:
        """Call until what compiles in the background is there; the results then."""
        if not self.warm:
            return None
        for _ in range(CALLS_BEFORE):
            timed(self.contender)
            settle()
        return timed(self.contender)[1]

    def once(self) -> float:
        return timed(self.contender)[0]

    def close(self) -> None:
        pass


def numpy_runner(kernel: Kernel, inputs: Sequence[Any]) -> Here:
    return Here(numpy_contender(kernel, inputs))


def mirabelle_runner(kernel: Kernel, inputs: Sequence[Any]) -> Here:
    return Here(mirabelle_contender(kernel, inputs), warm=True)


def numba_runner(kernel: Kernel, inputs: Sequence[Any]) -> Here:
    return Here(numba_contender(kernel, inputs))


def jax_runner(kernel: Kernel, inputs: Sequence[Any]) -> Here:
    from benchmarks.programs._jax_programs import contender

    return Here(contender(kernel, inputs))


class Compiled(Here):
    """`mb.compile` of a kernel: the first of its forms that compiles; `refused` says why others did not."""

    def __init__(self, kernel: Kernel, inputs: Sequence[Any]) -> None:
        compiler()
        self.kernel, self.inputs = kernel, inputs
        self.refused: list[str] = []
        self.why = ""

    def first(self) -> tuple[float, Results]:
        offered = forms(self.kernel.name)
        for form in offered:
            contender = compiled_contender(self.kernel, self.inputs, form)
            super().__init__(contender, warm=True)
            try:
                found = timed(contender)
            except Exception as error:
                if form is offered[-1]:
                    raise
                self.refused.append(f"{type(error).__name__}: {str(error).strip()}".splitlines()[0])
            else:
                self.why = form.why
                return found
        raise AssertionError("a kernel has no form")


def compiled_contender(kernel: Kernel, inputs: Sequence[Any], form: Form) -> Contender:
    import mirabelle as mb

    call = form.calling(compiler(), mb, inputs)
    start = form.start(inputs)

    def run(arrays: Sequence[Any]) -> Results:
        return tuple([mb.materialize(r) if isinstance(r, mb.AbstractArray) else r for r in call(arrays)])

    # Those only read are made once, as for the others.
    kept = [mb.HostArray(x) for x in start]
    if len(start) == len([x for x in inputs if isinstance(x, np.ndarray)]):
        names = [n for n, x in zip(kernel.parameters, inputs, strict=True) if isinstance(x, np.ndarray)]
        changing = [n in kernel.writes for n in names]
    else:
        changing = [True] * len(start)
    return Contender(
        lambda: [mb.HostArray(x) if c else k for x, k, c in zip(start, kept, changing, strict=True)], run
    )


class Dace:
    """DaCe in its own interpreter, which is told line by line what to do."""

    def __init__(self, kernel: Kernel, inputs: Sequence[Any]) -> None:
        python = os.environ.get("DACE_PYTHON", "")
        if not python:
            raise RuntimeError("DACE_PYTHON names no Python that has DaCe")
        self.kernel, self.inputs = kernel, inputs
        self.folder = tempfile.TemporaryDirectory(prefix="mirabelle-dace-")
        root = str(Path(__file__).parents[2])
        beside = str(Path(python).absolute().parent)
        environment = os.environ | {
            "PYTHONPATH": root,
            "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")]),  # cmake may be beside it
            "DACE_CONFIG": str(Path(self.folder.name) / "dace.conf"),
        }
        self.log = open(Path(self.folder.name) / "log", "w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [str(Path(python).absolute()), "-m", "benchmarks.programs._dace_programs"],
            cwd=self.folder.name,  # what it builds lands here
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            if not waiting.select(DACE_LIMIT_S):
                raise TimeoutError(f"DaCe gave no answer within {DACE_LIMIT_S:g} s")
        said = self.process.stdout.readline()
        if not said:
            self.log.seek(0)
            raise RuntimeError(f"DaCe's process ended: {self.log.read()[-400:].strip()}")
        answer: dict[str, Any] = json.loads(said)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer

    def first(self) -> tuple[float, Results]:
        folder = Path(self.folder.name)
        given, found = folder / "inputs.npz", folder / "results.npz"
        np.savez(given, *[np.asarray(x) for x in self.inputs])
        seconds = self.ask(json.dumps([self.kernel.name, str(given), str(found)]))["first_s"]
        with np.load(found) as stored:
            return seconds, tuple(stored[f"arr_{i}"] for i in range(len(stored.files)))

    def settle(self) -> Results | None:
        return None

    def once(self) -> float:
        return float(self.ask("")["s"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


RUNNERS: dict[str, Callable[[Kernel, Sequence[Any]], Runner]] = {
    # The compiled program is first: nothing that another compiled is there for it.
    "compiled": Compiled,
    "numpy": numpy_runner,
    "mirabelle": mirabelle_runner,
    "jax": jax_runner,
    "numba": numba_runner,
    "dace": Dace,
}


def take_turns(field: dict[str, Runner], seconds: float) -> dict[str, list[float]]:
    """Times of calls, in turns, in another order each round: 9 rounds, then until the seconds are over."""
    import gc

    from benchmarks.npkernels._report import PAUSE_S

    times: dict[str, list[float]] = {name: [] for name in field}
    names = list(field)
    start = time.perf_counter()
    gc.collect()
    gc.disable()
    try:
        for r in range(200):
            shift = r % len(names)
            for name in names[shift:] + names[:shift]:
                # As in npkernels: libraries' idle threads spin for a while, and caches are another's. These
                # calls are shorter, so that one does not make up for it.
                time.sleep(PAUSE_S)
                warm = time.perf_counter() + WARM_S
                field[name].once()
                while time.perf_counter() < warm:
                    field[name].once()
                times[name].append(field[name].once())
            if r >= 8 and time.perf_counter() - start > seconds:
                break
    finally:
        gc.enable()
    return times
