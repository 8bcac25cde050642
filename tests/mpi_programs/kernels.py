"""The NumPy programs that DaCe distributes, and the paper's, on the ranks of mpiexec: `kernels.py FILE`.

Each is run as it stands on distributed arrays and on NumPy's; rank 0 writes what came of it to FILE, as JSON:
a digest of the results, what each rank counted, and what failed. All data are whole numbers (and halves and
quarters) so small that no sum of doubles is rounded: any order of summation gives the same bits.
"""

import hashlib
import json
import os
import pathlib
import sys
import traceback
import warnings

sys.path.append(str(pathlib.Path(__file__).parents[2]))  # `benchmarks` is not installed
sys.path.append(str(pathlib.Path(__file__).parents[1]))

import numpy as np
from ways import running

import mirabelle as mb
from benchmarks.npkernels import KERNELS
from benchmarks.npkernels._kernel import convert
from mirabelle import programs
from mirabelle.programs.kronecker_norm import norm_by_entries

# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
DHost = mb.DArray[LOCAL]
NAMES = (
    "atax",
    "bicg",
    "doitgen",
    "gemm",
    "gemver",
    "gesummv",
    "jacobi_1d",
    "jacobi_2d",
    "k2mm",
    "k3mm",
    "mvt",
)
# No two dimensions are alike, and nothing is divided evenly.
ODD = {"m": 29, "n": 37, "k": 23, "p": 19, "q": 17, "r": 11, "steps": 3}


def layouts(ranks):
    """What new arrays are divided by, where their shapes allow it."""
    found = {"default": mb.distributed.Block(0), "dealt": mb.distributed.BlockCyclic(0, 3)}
    if ranks == 4:
        return found | {
            "mesh": mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))
        }
    return found | {"columns": mb.distributed.Block(1), "all": mb.distributed.Replicated()}


def cases(ranks):
    """What is run: (name, size, layout, way)."""
    for name in NAMES:
        for layout in layouts(ranks):
            yield name, "odd", layout, "cold"
        yield name, "tiny", "default", "cold"  # some ranks have nothing
        if ranks == 2 and name in ("gemver", "jacobi_2d"):
            yield name, "odd", "default", "hot"  # kernels are compiled
    for name in (*NAMES, "adi"):  # (adi is not whole numbers, and makes arrays by np.zeros: a program's)
        for layout in layouts(ranks) if ranks < 4 else ("default",):
            yield name, "odd" if name != "adi" else "small", layout, "program"


# Programs


def exact(kernel, size):
    """The kernel's arguments of a size, with whole numbers for its random ones."""
    rng = np.random.default_rng(7)
    for x in kernel.inputs(size):
        if isinstance(x, np.ndarray):
            yield (rng.integers(1, 9, x.shape) * rng.choice([-1, 1], x.shape)).astype(x.dtype)
        else:
            yield np.floor(4 * x) / 4 if isinstance(x, float) else x


def kernel_outcome(name, size, layout, way):
    kernel = KERNELS[name]
    wanted = dict(kernel.tiny) if size == "tiny" else {k: ODD[k] for k in kernel.tiny}
    if size == "small":
        wanted = {"steps": 2, "n": 11}
    inputs = list(exact(kernel, wanted) if name != "adi" else kernel.inputs(wanted))
    expected = kernel.run(kernel.plain, np, convert(inputs, np.array))
    program = kernel.program
    if way == "program":  # (compiled as a whole: one plan for each process)
        program, way = mb.compile(kernel.plain), "cold"
    with mb.distributed.use_layout(layouts(mb.distributed.communicator().size)[layout]), running(way):
        for _ in range(1 if program is kernel.program else 2):
            arguments = convert(inputs, DHost)
            with mb.count() as counted:
                results = kernel.run(program, mb, arguments)
                results = [mb.materialize(r) for r in results]
    assert all(isinstance(r, DHost) for r in results)
    found = [mb.to_numpy(r) for r in results]
    for result, want in zip(found, expected, strict=True):
        assert result.dtype == want.dtype and result.shape == want.shape
        if name == "adi":
            np.testing.assert_allclose(result, want, rtol=1e-12)
        else:
            np.testing.assert_array_equal(result, want)
    return found, counted


def symmetric(n):
    """A matrix whose largest eigenvalue is 3, and the next 1.5."""
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))
    return (q * np.array([3.0, *np.linspace(-1.0, 1.5, n - 1)])) @ q.T


def power(program):
    def run(family):
        b, value = getattr(programs, program)(family(symmetric(13)), 30)
        return [b, value]

    return run


def kronecker(norm):
    def run(family):
        rng = np.random.default_rng(1)
        K = programs.Kronecker(family(rng.normal(size=(7, 5))), family(rng.normal(size=(4, 6))))
        return [norm(K)]

    return run


def descent(optimize):
    def run(family):
        x = np.random.default_rng(2).normal(size=(3, 21))
        y = np.array([[1.0, -2.0, 3.0]]) @ x + 0.5
        start = family(np.zeros((1, 3))), family(np.array(0.0))
        w, b, steps = programs.train(
            programs.linear_regression,
            programs.mean_squared_error,
            *start,
            family(x),
            family(y),
            below=1e-6,
            optimize=getattr(programs, optimize),
        )
        return [w, b, LOCAL(steps)]

    return run


PROGRAMS = {
    "domeigen": power("domeigen"),
    "domeigen_with_buffers": power("domeigen_with_buffers"),
    "norm_by_factors": kronecker(mb.norm),
    "norm_by_entries": kronecker(norm_by_entries),
    "proximal_gradient_descent": descent("proximal_gradient_descent"),
    "proximal_gradient_descent_in_place": descent("proximal_gradient_descent_in_place"),
}


def program_outcome(name):
    expected = [mb.to_numpy(x) for x in PROGRAMS[name](mb.HostArray)]
    with mb.count() as counted:
        results = [mb.materialize(x) for x in PROGRAMS[name](DHost)]
    found = [mb.to_numpy(x) for x in results]
    for result, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-14)
    return found, counted


# On all ranks


def outcome(run, *arguments):
    """What a case gave: the same on all ranks, or what went wrong on one of them."""
    comm = mb.distributed.communicator()
    found, counted = [], None
    error = None
    try:
        with mb.distributed.together():
            found, counted = run(*arguments)
    except Exception:
        error = traceback.format_exc()
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x + 0.0).tobytes() for x in found)).hexdigest()
    counts = vars(counted) if counted is not None else {}
    every = comm.allgather_object((digest, counts, error))
    errors = [e for _, _, e in every if e is not None]
    if not errors and len({d for d, _, _ in every}) > 1:
        errors = ["The ranks got different results."]
    return {"digest": digest, "ranks": [c for _, c, _ in every], "errors": errors}


def main(path):
    comm = mb.distributed.communicator()
    # What is brought together on each rank because nothing better is known of it is an error, however small.
    mb.settings.gather_bytes = 0
    warnings.simplefilter("error")
    found = {}
    for case in cases(comm.size):
        found[" ".join(case)] = outcome(kernel_outcome, *case)
    for name in PROGRAMS:
        found[name] = outcome(program_outcome, name)
    if comm.rank == 0:
        path.write_text(json.dumps(found))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
