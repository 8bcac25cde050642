"""`python3 -m tests.gpuahead --out DIR`: libraries of programs for cards, called from C on a card, and timed.

Each program is built, called by a program in C that has no Python in it (in an empty environment, plainly, by
graphs, and on a stream that is recorded), and compared to the last bit with the program that Python runs. What
is wrong gets its code, and nothing is written. Then both are timed in one process, one beside the other.
Results go to DIR/gpu_ahead.json.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
FLAGS = ("-std=gnu11", "-O2")

# What programs in C have in common: the driver by hand, files of bytes, arguments as a table of pointers.
_COMMON = """
#include "NAME.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
enum { N = COUNT };
static const long sizes[N] = {SIZES};
static const int by_value[N] = {BY_VALUE};

static int
call(mirabelle_graphs **graphs, void *const *p, void *workspace, int64_t bytes, struct CUstream_st *stream)
{
    return graphs ? NAME_graph(graphs, CELLS, workspace, bytes, stream) : NAME(CELLS, workspace, bytes, stream);
}
"""

_MAIN = """
static void *driver;
#define CALL(NAME, ...) check(((int (*)())dlsym(driver, #NAME))(__VA_ARGS__), #NAME)

static void
check(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: %d\\n", what, status);
        exit(1);
    }
}

int
main(int argc, char **argv)
{
    void *context, *p[N], *stream, *graph, *run, *host[N];
    Address workspace;
    mirabelle_graphs *graphs = NULL;
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    int ways = argc > 3 ? atoi(argv[3]) : 4;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuStreamCreate, &stream, 1);
    CALL(cuMemAlloc_v2, &workspace, (size_t)WORKSPACE);
    for (int i = 0; i < N; i++) {
        host[i] = calloc(1, (size_t)sizes[i] + 8);
        if (fread(host[i], 1, (size_t)sizes[i], in) != (size_t)sizes[i])
            return 3;
        p[i] = host[i];
        if (!by_value[i])
            CALL(cuMemAlloc_v2, (Address *)(p + i), (size_t)sizes[i] + 1);
    }
    /* Without a context nothing can be done. */
    CALL(cuCtxSetCurrent, NULL);
    if (call(NULL, p, NULL, 0, NULL) != MIRABELLE_CARD)
        return 2;
    CALL(cuCtxSetCurrent, context);
    void *back = malloc(1 << 28);
    /* Plainly; plainly, with memory of the call's own; by a graph; by the graph again; recorded. */
    for (int way = 0; way < ways; way++) {
        for (int i = 0; i < N; i++)
            if (!by_value[i])
                CALL(cuMemcpyHtoDAsync_v2, (Address)p[i], host[i], (size_t)sizes[i], stream);
        int own = way == 1;
        if (way == 4)
            CALL(cuStreamBeginCapture_v2, stream, 0);
        mirabelle_graphs **kept = way == 2 || way == 3 ? &graphs : NULL;
        int code = call(kept, p, own ? NULL : (void *)workspace, own ? 0 : WORKSPACE, stream);
        if (code) {
            fprintf(stderr, "way %d: %s (%d)\\n", way, NAME_message(code), NAME_said());
            return 4;
        }
        if (way == 4) {
            CALL(cuStreamEndCapture, stream, &graph);
            CALL(cuGraphInstantiateWithFlags, &run, graph, 0ull);
            CALL(cuGraphLaunch, run, stream);
        }
        for (int i = 0; i < N; i++)
            if (!by_value[i]) {
                CALL(cuMemcpyDtoHAsync_v2, back, (Address)p[i], (size_t)sizes[i], stream);
                CALL(cuStreamSynchronize, stream);
                fwrite(back, 1, (size_t)sizes[i], out);
            }
    }
    check(NAME_forget(graphs), "forget");
    check(NAME_unload(), "unload");
    return fclose(out);
}
"""

_MANY = """
int
many(void **graphs, void *const *p, void *workspace, int64_t bytes, struct CUstream_st *stream, long times)
{
    int code = 0;
    while (times-- > 0 && !code)
        code = call((mirabelle_graphs **)graphs, p, workspace, bytes, stream);
    return code;
}
"""


def summed(x, y):
    import mirabelle as mb

    return mb.sum(x * y + 1), mb.sum(x, axis=0), mb.max(y, axis=1)


def waves(p, u):
    import mirabelle as mb

    def step(k, s):
        p, u = s
        new = mb.zeros_like(u)
        inner = u[1:-1, 1:-1]
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
        new[1:-1, 1:-1] = 2 * inner - p[1:-1, 1:-1] + 0.1 * lap
        return u, new

    return mb.fori_loop(0, 1000, step, (p, u))


def cases(quick: bool) -> list[tuple[str, Any, list[np.ndarray]]]:
    import mirabelle as mb
    from benchmarks import ahead
    from mirabelle import dg

    r = np.random.default_rng(1)
    found = [(name.replace(" ", "_").replace("-", "_"), f, x) for name, f, x in ahead.cases()[:-1]]
    found[0] = ("jacobi_2d", ahead.jacobi_2d, [r.random((1000, 1000)) for _ in range(2)])
    found.append(("jacobi_small", ahead.jacobi_2d, [r.random((64, 64)) for _ in range(2)]))
    found.append(("summed", summed, [r.random((2000, 1500)) for _ in range(2)]))
    found.append(("waves", waves, [r.random((256, 256)) for _ in range(2)]))
    index = r.integers(-100000, 100000, 50000)
    found.append(("gathered", lambda x, i: mb.sum(x[i] * 2) + x[i], [r.random(100000), index]))
    n = 8 if quick else 64
    mesh = dg.box((n, n), lower=0.0, upper=1.0, periodic=True)
    semi = dg.Semidiscretization(mesh, dg.CompressibleEuler(2), dg.Solver(order=4), array=mb.CuArray)

    def start(x: Any, t: Any) -> Any:
        rho = 1 + 0.2 * mb.sin(2 * np.pi * x[0])
        return rho, 0.1 * rho, 0.2 * rho, 2.5 + 0.025 * rho

    def dg_right_hand_side(u: Any) -> Any:
        return semi.rhs(u, 0.0)

    found.append(("dg_rhs", dg_right_hand_side, [np.array(mb.to_numpy(semi.state(start)))]))
    return found


class Built:
    """A program, its library, and what C is told of it."""

    def __init__(self, name: str, f: Any, arrays: list[np.ndarray], work: Path, arch: Any = None) -> None:
        import mirabelle as mb

        self.name, self.work = name, work
        self.program = mb.compile(f, whole=True).program(*map(mb.CuArray, arrays))
        began = time.perf_counter()
        self.library = mb.compiling.build(self.program, path=work / f"lib{name}.so", name=name, arch=arch)
        self.seconds = time.perf_counter() - began
        captured = self.program.captured
        self.results = self.program.outputs[: len(captured.returned)]
        self.arrays = [np.array(x, order="C") for x in arrays]
        self.by_value = [x.ndim == 0 and i not in captured.written for i, x in enumerate(self.arrays)]
        self.by_value += [False] * len(self.results)
        self.bytes = [x.nbytes for x in self.arrays] + [x.nbytes for x in self.results]
        kinds = {"d": "double", "f": "float", "l": "int64_t", "i": "int32_t"}
        cells = [
            f"*(const {kinds[self.arrays[i].dtype.char]} *)p[{i}]" if value else f"p[{i}]"
            for i, value in enumerate(self.by_value)
        ]
        self.common = (
            _COMMON.replace("NAME", name).replace("COUNT", str(len(cells))).replace("CELLS", ", ".join(cells))
            .replace("SIZES", ", ".join(map(str, self.bytes)))
            .replace("BY_VALUE", ", ".join(str(int(v)) for v in self.by_value))
        )  # fmt: skip

    def compiled(self, text: str, out: str, *flags: str) -> Path:
        text = text.replace("NAME", self.name).replace("WORKSPACE", str(self.library.workspace[0]))
        (self.work / f"{out}.c").write_text(self.common + text)
        words = [
            "gcc",
            *FLAGS,
            *flags,
            f"{out}.c",
            "-o",
            out,
            "-L.",
            f"-l{self.name}",
            "-Wl,-rpath,$ORIGIN",
            "-ldl",
        ]
        subprocess.run(words, cwd=self.work, check=True)
        return self.work / out

    def wanted(self) -> list[bytes]:
        """The bytes of arguments and results after the program that Python runs."""
        import mirabelle as mb
        from mirabelle.dispatch import verbs

        given = [verbs.leaf_of(mb.CuArray(x)).view for x in self.arrays]
        found = self.program.runner.run(given)
        count, written = len(self.results), self.program.captured.written
        after = [x.tobytes() for x in self.arrays]
        for k, i in enumerate(written):
            after[i] = np.ascontiguousarray(mb.CuArray._download(found[count + k])).tobytes()
        made = [np.ascontiguousarray(mb.CuArray._download(v)).tobytes() for v in found[:count]]
        return [x for x, value in zip([*after, *made], self.by_value, strict=True) if not value]


def from_c(built: Built, environment: dict[str, str], ways: int) -> str:
    """How results of a program in C differ from Python's; nothing if they do not."""
    main = built.compiled(_MAIN, f"main_{built.name}")
    source, result = built.work / "in.bin", built.work / "out.bin"
    filled = [x.tobytes() for x in built.arrays] + [b"\x07" * n for n in built.bytes[len(built.arrays) :]]
    source.write_bytes(b"".join(filled))
    done = subprocess.run(
        [main, source, result, str(ways)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    wanted, got, at, wrong = built.wanted(), result.read_bytes(), 0, []
    for way in range(ways):
        for k, x in enumerate(wanted):
            if got[at : at + len(x)] != x:
                a, b = (np.frombuffer(y, "u1") for y in (got[at : at + len(x)], x))
                wrong.append(f"way {way}, array {k}: {int((a != b).sum())} of {len(x)} bytes")
            at += len(x)
    return "; ".join(wrong)


def timed(built: Built, seconds: float) -> dict[str, float]:
    """Microseconds a call: of the program, of the library by graphs, and of the library's launches."""
    import cupy

    import mirabelle as mb
    from mirabelle.dispatch import verbs

    many = ctypes.CDLL(str(built.compiled(_MANY, f"many_{built.name}.so", "-shared", "-fPIC"))).many
    ours = [mb.CuArray(x) for x in built.arrays]
    keep = [mb.CuArray(x) for x in built.arrays]
    keep += [mb.CuArray(np.zeros(x.shape, x.dtype)) for x in built.results]
    cells = (ctypes.c_void_p * len(keep))(
        *[
            built.arrays[i].ctypes.data if value else verbs.leaf_of(x).view.ptr
            for i, (x, value) in enumerate(zip(keep, built.by_value, strict=True))
        ]
    )
    workspace = cupy.zeros(built.library.workspace[0], "u1")
    where = ctypes.c_void_p(workspace.data.ptr), ctypes.c_int64(workspace.nbytes)
    graphs = ctypes.c_void_p()
    synchronize = cupy.cuda.runtime.deviceSynchronize
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)

    def library(kept: Any) -> Any:
        def run(times: int) -> float:
            synchronize()
            began = time.perf_counter()
            code = many(kept, cells, *where, stream, ctypes.c_long(times))
            synchronize()
            assert code == 0, code
            return (time.perf_counter() - began) / times * 1e6

        return run

    def plan(times: int) -> float:
        synchronize()
        began = time.perf_counter()
        for _ in range(times):
            made = built.program.run(ours)
        synchronize()
        del made
        return (time.perf_counter() - began) / times * 1e6

    ways = {"plan": plan, "graph": library(ctypes.byref(graphs)), "launches": library(None)}
    for run in ways.values():
        run(3)
    times = max(1, int(seconds / 20 / (ways["plan"](5) * 1e-6)))
    rounds = [{name: run(times) for name, run in ways.items()} for _ in range(7)]
    return {name: statistics.median(r[name] for r in rounds) for name in ways}


def refused(built: Built) -> str:
    """What a library on a card says to mistakes, and whether it has written something."""
    import cupy

    dll = ctypes.CDLL(str(built.library.path))
    a = cupy.arange(64 * 64, dtype="f8").reshape(64, 64)
    b, small = a + 1, cupy.zeros(8, "u1")
    function, nothing = dll[built.name], ctypes.c_int64(0)
    before = a.get().tobytes(), b.get().tobytes()

    def at(x: Any, off: int = 0) -> Any:
        return ctypes.c_void_p(x.data.ptr + off)

    codes = {
        "null": (1, function(None, at(b), None, nothing, None)),
        "alignment": (6, function(at(a, 8), at(b), None, nothing, None)),
        "overlap": (7, function(at(a), at(a, 64), None, nothing, None)),
    }
    if built.library.workspace[0] > 256:  # (it needs some)
        codes["workspace"] = 8, function(at(a), at(b), at(small), ctypes.c_int64(8), None)
    cupy.cuda.runtime.deviceSynchronize()
    wrong = [f"{name}: {got} and not {code}" for name, (code, got) in codes.items() if got != code]
    if before != (a.get().tobytes(), b.get().tobytes()):
        wrong.append("something was written")
    return "; ".join(wrong)


class Card:
    """The card for `aheadcards`, where it takes one that is none."""

    def __init__(self) -> None:
        import mirabelle as mb

        self.card = mb.CuArray.driver()
        self.errors: list[str] = []

    def count(self, name: str) -> int:
        return 0


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.gpuahead", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing, for each program")
    parser.add_argument("--only", default="", help="names of programs, with commas between")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--random", type=int, default=60, help="so many random programs")
    given = parser.parse_args()
    os.environ.setdefault("MIRABELLE_CUDA", "auto")
    import cupy

    from mirabelle.backends.cuda.kernelgraph import _path_of

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"on {device}", flush=True)
    cupy.ones((4, 4)) @ cupy.ones((4, 4))
    # An empty environment but for where cuBLAS is, which lies among Python's packages here.
    environment = {"LD_LIBRARY_PATH": str(Path(_path_of("libcublas.so")).parent)}
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, f, arrays in cases(given.quick):
            if given.only and name not in given.only.split(","):
                continue
            try:
                built = Built(name, f, arrays, Path(folder))
                looks = name in ("conjugate_gradient", "branch", "gathered")
                row: dict[str, Any] = {"name": name, "build_s": built.seconds}
                row["kB"] = built.library.path.stat().st_size / 1000
                row["differs"] = from_c(built, environment, 4 if looks else 5)
                if name == "jacobi_small":
                    row["refused"] = refused(built)
                    text = Built(f"{name}_text", f, arrays, Path(folder), arch="compute_80")
                    row["text"] = from_c(text, environment, 5)
                row["us"] = timed(built, given.seconds)
                rows.append(row)
                wrong = [row[word] for word in ("differs", "refused", "text") if row.get(word)]
                failures += [f"{name}: {x}" for x in wrong]
                us = row["us"]
                print(
                    f"{name:20} plan {us['plan']:9.1f} us, library by graphs {us['graph']:9.1f} "
                    f"({us['plan'] / us['graph']:.2f}), by launches {us['launches']:9.1f}, "
                    f"{wrong or 'the same bits'}, {row['kB']:.0f} kB in {row['build_s']:.1f} s",
                    flush=True,
                )
            except Exception:
                failures.append(f"{name}: {traceback.format_exc()}")
                print(failures[-1], flush=True)
    if given.random:
        sys.path.insert(0, str(ROOT / "tests"))
        import aheadcards

        became, wrong = aheadcards.randomly(range(given.random), Card())
        print(f"random programs: {dict(became)}; {len(wrong)} differ")
        failures += [f"random program {n}: {str(x)[:500]}" for n, x in wrong.items()]
    print("In brackets: the program's time over the library's. Goal: at least 0.95, the same bits.")
    print(*failures, f"{len(failures)} failures", sep="\n")
    given.out.mkdir(parents=True, exist_ok=True)
    found = {"card": device, "programs": rows, "failures": failures}
    (given.out / "gpu_ahead.json").write_text(json.dumps(found, indent=1) + "\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
