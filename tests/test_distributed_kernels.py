"""The NumPy programs that DaCe distributes, and the paper's three, unmodified on the ranks of mpiexec.

One start of mpiexec runs all of them (tests/mpi_programs/kernels.py), and compares them with NumPy's there.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.distributed.kernelranges import _least_arc
from mirabelle.arraytypes.usercode.indexvalues import IndexValue

pytest.importorskip("mpi4py")

PROGRAMS = pathlib.Path(__file__).parent / "mpi_programs"
# Open MPI asks to be told that it may run as root, and more processes than there are cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def outcomes(ranks, path):
    """What came of each case on so many ranks: see `outcome` in the program."""
    ran("kernels.py", ranks, str(path))
    return json.loads(path.read_text())


def ran(program, ranks, *arguments):
    """What a program says on so many ranks."""
    mpiexec = pathlib.Path(sys.executable).parent / "mpiexec"
    command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(ranks), sys.executable]
    environment = os.environ | OPEN_MPI | {"MIRABELLE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = [str(PROGRAMS.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(found)
    command += [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_kernels_and_programs_are_exact_on_ranks(ranks, tmp_path):
    found = outcomes(ranks, tmp_path / "outcomes.json")
    failures = [f"{name}:\n{error}" for name, case in found.items() for error in case["errors"]]
    assert not failures, "\n".join(failures)
    digests = {}
    for name, case in found.items():
        kernel, _, rest = name.partition(" ")
        digests.setdefault((kernel, rest.partition(" ")[0]), set()).add(case["digest"])
    assert all(len(same) == 1 for same in digests.values()), "however they are divided, the bits are the same"
    nothing_is_sent_that_need_not_be(found, ranks)


def nothing_is_sent_that_need_not_be(found, ranks):
    """Of arrays divided in rows: m, n, k = 29, 37, 23, three steps of two statements."""

    def counted(name, what):
        return [rank[what] for rank in found[name]["ranks"]]

    def by_kernel(name):
        return f"{name} odd default cold"

    others = ranks - 1
    neighbours = [0] if ranks == 1 else [1, *[2] * (ranks - 2), 1]

    # Steps on grids: each statement sends a neighbour the one row of which it needs one.
    for name, row in (("jacobi_1d", 1), ("jacobi_2d", 37 - 2)):
        assert counted(by_kernel(name), "messages") == [6 * n for n in neighbours]
        assert counted(by_kernel(name), "bytes_sent") == [6 * n * row * 8 for n in neighbours]
        assert counted(by_kernel(name), "collectives") == [0] * ranks

    # Products: what is multiplied by comes once (a vector of n, a matrix of k times n), and results
    # stay where they are: what DaCe's transformations call redundant gathers and scatters is not there.
    # The products with a transposed matrix add up their terms, which is one collective.
    for name, brought, collectives in (
        ("atax", 37, 1),
        ("bicg", 29, 1),
        ("mvt", 37, 1),
        ("gemm", 23 * 37, 0),
        ("doitgen", 19 * 19, 0),
    ):
        assert counted(by_kernel(name), "messages") == [others] * ranks
        assert sum(counted(by_kernel(name), "bytes_sent")) == others * brought * 8
        assert counted(by_kernel(name), "collectives") == [collectives * (ranks > 1)] * ranks
    for name in ("atax", "bicg", "gemm", "k2mm", "k3mm", "jacobi_2d") if ranks < 4 else ():
        everywhere = f"{name} odd all cold"
        assert counted(everywhere, "messages") == counted(everywhere, "collectives") == [0] * ranks

    # Compiled, each process has a plan of its own: nothing more is sent, less where statements need the same.
    for name in ("atax", "bicg", "doitgen", "gemm", "gesummv", "jacobi_1d", "jacobi_2d", "k2mm", "k3mm", "mvt"):
        for layout in ("default", *(() if ranks == 4 else ("columns", "all"))):
            alone, program = f"{name} odd {layout} cold", f"{name} odd {layout} program"
            # (What steps on grids need across cuts comes at once, in a few bytes more; the rest is computed.)
            more = 1.1 if name.startswith("jacobi") else 1
            for what in ("messages", "bytes_sent", "collectives"):
                most = [n * (more if what == "bytes_sent" else 1) for n in counted(alone, what)]
                assert all(b <= a for a, b in zip(most, counted(program, what), strict=True)), (name, layout)
            if more > 1:
                assert all(n <= 2 * others for n in counted(program, "messages")), (name, layout)
    assert sum(counted("gesummv odd default program", "messages")) == others * ranks
    assert sum(counted("gemver odd default program", "messages")) == 2 * others * ranks

    # An iteration brings the vector together and adds up the terms of its norm.
    for name in ("domeigen", "domeigen_with_buffers"):
        assert counted(name, "messages") == [31 * others] * ranks
        assert counted(name, "collectives") == [32 * (ranks > 1)] * ranks
    # The norms of the factors are all there is to a Kronecker product's.
    assert counted("norm_by_factors", "messages") == [0] * ranks
    assert counted("norm_by_factors", "collectives") == [2 * (ranks > 1)] * ranks


def test_kernels_take_arrays_and_loops_take_the_parts_and_say_so():
    @mb.kernel
    def doubled(k, y, x):
        y[k.index(0)] = 2.0 * x[k.index(0)]

    @mb.jit
    def running(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1]

    D = mb.DArray[mb.HostArray]
    x, y = D([1.0, 2.0, 3.0]), D([0.0, 0.0, 0.0])
    doubled[3](y, x)
    with pytest.raises(mb.PlaceError, match=r"running\(x.local\)"):
        running(x)
    doubled[y.local.shape](y.local, y.local)
    running(y.local)
    np.testing.assert_array_equal(mb.to_numpy(y), [4.0, 12.0, 24.0])
    with pytest.raises(mb.PlaceError, match="which runs on the host and on cards"):
        running(mb.RefArray([1.0]))


@pytest.mark.parametrize(
    ("local", "ranks"), [("RefArray", 1), ("HostArray", 2), ("CuArray", 2), ("RefArray", 3)]
)
def test_index_kernels_run_where_their_results_are(local, ranks, tmp_path):
    said = ran("indexkernels.py", ranks, local, "3", str(tmp_path), "1" if ranks == 1 else "4")
    assert said.count("fine") == ranks, said


def test_the_least_run_around_a_circle_has_all_that_is_wanted_and_no_shorter_one_has():
    rng = np.random.default_rng(0)
    for _ in range(1500):
        n = int(rng.integers(1, 10))
        arcs = []
        for _ in range(rng.integers(0, 4)):
            a = int(rng.integers(0, n))
            arcs.append((a, a + int(rng.integers(0, n + 1))))
        places = {i % n for a, b in arcs for i in range(a, b)}
        start, stop = _least_arc(arcs, n)
        assert places <= {i % n for i in range(start, stop)}, (n, arcs, start, stop)
        shortest = min(
            length
            for length in range(n + 1)
            for s in range(n)
            if places <= {(s + i) % n for i in range(length)}
        )
        assert stop - start == shortest and (not places or 0 <= start < n), (n, arcs, start, stop)


def test_indices_stay_in_a_range_just_where_they_are_said_to():
    rng = np.random.default_rng(1)
    for _ in range(1500):
        least, most = sorted(int(x) for x in rng.integers(-3, 12, 2))
        value = IndexValue(
            tuple(int(x) for x in rng.integers(-2, 3, 2)),
            *sorted(int(x) for x in rng.integers(-5, 6, 2)),
            int(rng.integers(1, 4)),
            least if rng.random() < 0.3 else None,
            most if rng.random() < 0.3 else None,
        )
        box = tuple((int(a), int(a + b)) for a, b in rng.integers(1, 6, (2, 2)))

        def at(i, j, r, v=value):
            found = (v.coefs[0] * i + v.coefs[1] * j + r) // v.divisor
            found = found if v.least is None else max(found, v.least)
            return found if v.most is None else min(found, v.most)

        numbers = range(value.low, value.high + 1)
        every = [at(i, j, r) for i in range(*box[0]) for j in range(*box[1]) for r in numbers]
        assert value.over(box) == (min(every), max(every))
        low = int(rng.integers(-6, 8))
        held = (low, low + int(rng.integers(1, 9)))
        found = value.inside(0, held, box)
        good = [
            i
            for i in range(*box[0])
            if all(held[0] <= at(i, j, r) < held[1] for j in range(*box[1]) for r in numbers)
        ]
        assert (found is None) == (value.coefs[0] == 0)
        if found is not None:
            assert list(range(*found)) == good, (value, box, held)
