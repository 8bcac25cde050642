"""`python -m benchmarks [NAME ... | all]`: run benchmarks, print tables, store results as JSON."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile

NAMES = {
    "house": "how large the sources are, by folder, and how often they decide the same",
    "dispatch": "a generic call beside a bare dictionary look-up and plum",
    "overhead": "small arrays: microseconds beside NumPy",
    "loops": "loops as they are written first, names bound anew at each turn, beside NumPy",
    "sharing": "statements on memory of NumPy's: copied, taken over, shared",
    "fusion": "large expressions beside NumPy, numexpr and JAX on two threads",
    "startup": "the import and first statements of a process, beside import numpy",
    "first_use": "an expression nobody has compiled yet",
    "first_calls": "the first call of a hundred functions, each in a fresh process, beside NumPy's",
    "doctor": "what the cures of mb.doctor gain beside what it says",
    "newcomers": "the programs of docs/newcomers, as the pages show them, beside NumPy and JAX",
    "npkernels": "NumPy programs as they are, beside NumPy, Numba and JAX",
    "plainprograms": "programs as scientists write them, unchanged: loops, branches, arrays",
    "ahead": "libraries built ahead of time beside the programs they are made of",
    "linalg": "matrix products by layout and dtype, solves, einsum, transforms beside NumPy and opt_einsum",
    "functions": "all public functions beside NumPy's: CPU and wall, first call and best",
    "sorts": "sorts beside NumPy's, on one thread and on two",
    "random": "random numbers beside NumPy's Generator",
    "structured": "structured arrays beside the dense matrices they stand for",
    "sparse": "sparse matrices beside SciPy's",
    "patterns": "sparse patterns of what cells reach, beside SciPy's triples",
    "krylov": "cg, minres and gmres beside SciPy's, microseconds a turn",
    "meshdata": "loops over meshes beside loops by hand: actions, assembly, finite volumes",
    "transformations": "decisions of a schedule: the same program with and without them",
    "paper_julia": "the Julia paper's three programs, as its figures 1 to 3, beside NumPy and JAX",
    "programs": "compiled programs beside eager arrays, JAX, Numba and DaCe; its parts are named after it",
    "dg": "discontinuous Galerkin operators beside MFEM and JAX; its parts are named after it",
    "verification": "rates and known numbers of the dg examples; cases are named after it",
    "distributed": "DArray on ranks of this machine beside NumPy, Dask and Heat; its parts are named after it",
    "gpu": "CuArray on an NVIDIA GPU beside CuPy, JAX, torch and Numba-CUDA; its parts are named after it",
}
# Those that take the name of a part and a number of rounds.
_BY_NAME = (
    "doctor", "fusion", "krylov", "linalg", "newcomers", "plainprograms", "sorts", "sparse", "structured",
    "transformations",
)  # fmt: skip
THREADS = os.environ.get("BENCHMARKS_THREADS", "2")


def gpu(parts: list[str], out: str, tiny: bool) -> int:
    """The benchmark on a card: it takes all of the machine, and JAX runs on the card too."""
    from benchmarks import gpu

    if parts == ["all"]:
        parts = []
    unknown = [p for p in parts if p not in gpu.PARTS]
    if unknown:
        raise SystemExit(f"gpu has no part {unknown[0]!r}; it has {', '.join(gpu.PARTS)}")
    with tempfile.TemporaryDirectory(prefix="mirabelle-benchmarks-") as cache:
        os.environ["MIRABELLE_CACHE_DIR"] = cache
        return gpu.run(parts, out, tiny)


def prepare() -> None:
    """Two threads for everyone: these variables are read when the libraries are imported.

    (A benchmark that starts several at a time gives each its own number, `BENCHMARKS_THREADS`.)
    """
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "MIRABELLE_NUM_THREADS",
        "PJRT_NPROC",  # XLA's thread pools
        "NPROC",
    ):
        os.environ[name] = THREADS
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    # (What drives cards has threads of its own.)
    on_host = os.environ.get("BENCHMARKS_ARRAY", "HostArray") == "HostArray"
    if on_host and hasattr(os, "sched_setaffinity") and "BENCHMARKS_THREADS" not in os.environ:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[: int(THREADS)])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to run; `all` runs everything")
    parser.add_argument(
        "--only",
        default="",
        help="dg, functions, fusion, krylov, linalg, loops, newcomers, npkernels, paper_julia, plainprograms, "
        "programs, sorts, sparse, structured, verification: only what has this in its name",
    )
    parser.add_argument(
        "--rounds",
        "--repeat",
        type=int,
        default=0,
        help="fusion, linalg, newcomers, npkernels, paper_julia, plainprograms, structured: rounds of each",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.0,
        help="programs: how long the contenders of a kernel take turns; loops: about how long a row takes",
    )
    parser.add_argument("--sizes", default="", help="loops: numbers of elements, with commas")
    parser.add_argument(
        "--out",
        default="",
        help="dg, distributed, gpu, npkernels, paper_julia, programs, verification: where results go",
    )
    parser.add_argument(
        "--tiny",
        "--quick",
        action="store_true",
        help="dg, distributed, gpu, npkernels with --sources, paper_julia, programs, verification: small "
        "sizes, to try it out",
    )
    parser.add_argument(
        "--sources", default="", help="npkernels: a folder of NPBench's layout, whose kernels run as they are"
    )
    parser.add_argument(
        "--peers", default="compiled,numba,jax", help="npkernels: whom to run beside us, and whether compiled"
    )
    parser.add_argument(
        "--array", default="", help="loops, meshdata, verification: the type of arrays, as CuArray"
    )
    options = parser.parse_args(arguments)
    if not options.names:
        for name, meaning in NAMES.items():
            print(f"{name:<11} {meaning}")
        return 0
    if options.names[0] == "gpu":
        return gpu(options.names[1:], options.out, options.tiny)
    if options.names[:2] == ["dg", "gpu"]:  # a card as well
        from benchmarks import dg

        return dg.run(["gpu"], options.only, options.tiny, options.out)
    # Benchmarks of the host; that of the card is asked for by its name.
    names = [n for n in NAMES if n != "gpu"] if options.names == ["all"] else options.names
    parts = []
    if names[0] in ("dg", "distributed", "programs", "verification"):
        names, parts = names[:1], names[1:]
    unknown = [n for n in names if n not in NAMES or n == "gpu"]
    if "gpu" in unknown:
        parser.error("gpu is run alone: python -m benchmarks gpu [part ...]")
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    prepare()
    with tempfile.TemporaryDirectory(prefix="mirabelle-benchmarks-") as cache:
        # A cache of our own: no run profits from an earlier one.
        os.environ["MIRABELLE_CACHE_DIR"] = cache
        for name in names:
            module = importlib.import_module(f"benchmarks.{name}")
            if name in _BY_NAME:
                module.run(only=options.only, rounds=options.rounds)
            elif name in ("functions", "first_calls"):
                module.run(only=options.only)
            elif name == "npkernels":
                module.run(
                    only=options.only,
                    rounds=options.rounds,
                    peers=options.peers,
                    sources=options.sources,
                    out=options.out if options.sources else "",
                    tiny=options.tiny,
                )
            elif name == "loops":
                module.run(only=options.only, array=options.array, sizes=options.sizes, seconds=options.seconds)
            elif name == "meshdata":
                module.run(only=options.only, rounds=options.rounds, array=options.array)
            elif name == "dg":
                module.run(parts, options.only, options.tiny, options.out)
            elif name == "verification":
                module.run(parts, options.only, options.tiny, options.out, options.array)
            elif name == "distributed":
                module.run(parts, options.tiny, options.out)
            elif name == "programs":
                module.run(
                    parts, only=options.only, seconds=options.seconds, tiny=options.tiny, out=options.out
                )
            elif name == "ahead":
                module.run(tiny=options.tiny, out=options.out)
            elif name == "paper_julia":
                module.run(only=options.only, rounds=options.rounds, tiny=options.tiny, out=options.out)
            else:
                module.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
