"""Who runs the kernels: mirabelle on ranks and alone, NumPy, Dask and Heat, each in processes of its own.

Each function gives {case: {"seconds": ..., or "failed": why}}, again after each case.
"""

from __future__ import annotations

import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.distributed._cases import CASES, PEERS, Case
from benchmarks.distributed._ranks import own_core, settled, time_calls

Found = dict[str, dict[str, Any]]

# Steps on a grid that Dask and Heat do: a step of theirs takes long.
PEERS_STEPS = 2


def _each(
    scale: int,
    tiny: bool,
    measure: Callable[[Case, dict[str, int]], Any],
    most_steps: int = 1 << 30,
    quiet: bool = False,
) -> Iterator[Found]:
    """Measure each case. Of a program of more steps so many are done, and the time is that of all."""
    found: Found = {}
    for case in CASES:
        size = case.size(scale, tiny)
        steps = size.get("steps", 1)
        done = min(steps, most_steps)
        try:
            seconds = measure(case, size | {"steps": done} if "steps" in size else size)
            for key in ("best_s", "median_s"):
                seconds[key] *= steps / done
            found[case.label] = {"seconds": seconds}
            if done < steps:
                found[case.label]["steps_done"] = done
        except Exception as e:
            found[case.label] = {"failed": f"{type(e).__name__}: {str(e).strip().splitlines()[0][:200]}"}
            if not quiet:
                traceback.print_exc()
        yield found


def _checked(name: str, results: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-9) -> None:
    for r, w in zip(results, expected, strict=True):
        assert np.shape(r) == np.shape(w) and np.allclose(r, w, rtol=rtol), f"{name}: not NumPy's values"


def _expected(kernel: Any, inputs: Sequence[Any]) -> Any:
    from benchmarks.npkernels._kernel import convert

    return kernel.run(kernel.plain, np, convert(inputs, np.array))


def _prepared(kernel: Any, inputs: Sequence[Any], make: Callable[[Any], Any]) -> Callable[[], list[Any]]:
    """Arguments for a call: arrays that are only read are made once, others for each."""
    kept = [make(x) if isinstance(x, np.ndarray) else x for x in inputs]

    def prepare() -> list[Any]:
        return [
            make(x) if isinstance(x, np.ndarray) and name in kernel.writes else k
            for name, x, k in zip(kernel.parameters, inputs, kept, strict=True)
        ]

    return prepare


# mirabelle


def ranks(
    scale: int, tiny: bool, budget_s: float, compiled: bool = False, apart: bool = False
) -> Iterator[Found | None]:
    """The kernels as they are, on distributed arrays, eager or `compiled`.

    `apart` is what the machine allows: each rank has arrays of its own, of one rank's size, and sends nothing.
    """
    import mirabelle as mb
    from benchmarks.npkernels import KERNELS

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    family: Any = mb.HostArray if apart else mb.DArray[mb.HostArray]
    counted: dict[str, dict[str, int]] = {}

    def measure(case: Case, size: dict[str, int]) -> Any:
        kernel = KERNELS[case.kernel]
        inputs = kernel.inputs(size)
        program: Any = mb.compile(kernel.program) if compiled else kernel.program

        def call(arguments: Sequence[Any]) -> Any:
            return [mb.materialize(r) for r in kernel.run(program, mb, arguments)]

        prepare = _prepared(kernel, inputs, family)
        results = call(prepare())
        for _ in range(2):
            settled()
            call(prepare())
        arguments = prepare()
        with mb.count() as c:
            call(arguments)
        counted[case.label] = {"messages": c.messages, "bytes_sent": c.bytes_sent}
        if scale == comm.size == 1 or tiny:
            _checked(case.label, [mb.to_numpy(r) for r in results], _expected(kernel, inputs))
        return time_calls(prepare, call, budget_s, comm.barrier, comm.bcast_object, comm.allgather_object)

    for found in _each(scale, tiny, measure):
        for label, sent in counted.items():
            found[label] |= sent
        yield found if comm.rank == 0 else None


# By hand: what somebody writes who knows NumPy, Numba and mpi4py


def by_hand(scale: int, tiny: bool, budget_s: float) -> Iterator[Found | None]:
    """Two of the kernels written for mpi4py: products by BLAS, a stencil by Numba, rows on each rank."""
    import numba
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    own_core(comm.rank, comm.size)

    @numba.njit(fastmath=False)  # type: ignore[untyped-decorator]
    def five(a: Any, b: Any, first: int, last: int) -> None:
        for i in range(first, last):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])

    def rows(x: Any) -> Any:
        n = -(-len(x) // comm.size)
        return np.array(x[comm.rank * n : (comm.rank + 1) * n])

    def atax(size: dict[str, int]) -> Any:
        A, x = KERNELS["atax"].inputs(size)
        mine, whole = rows(A), np.array(x)
        out = np.empty(len(whole))

        def call(_: Any) -> Any:
            comm.Allreduce(mine.T @ (mine @ whole), out)
            return out

        _checked("atax by hand", [call(None)], _expected(KERNELS["atax"], (A, x)))
        return lambda: None, call

    def jacobi_2d(size: dict[str, int]) -> Any:
        steps, a, b = KERNELS["jacobi_2d"].inputs(size)
        above = comm.rank - 1 if comm.rank else MPI.PROC_NULL
        below = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL

        def ghosted(x: Any) -> Any:
            mine = rows(x)
            made = np.zeros((len(mine) + 2, x.shape[1]))
            made[1:-1] = mine
            return made

        local = [ghosted(a), ghosted(b)]
        first, last = 1 + (comm.rank == 0), len(local[0]) - 1 - (comm.rank == comm.size - 1)

        def half(u: Any, v: Any) -> None:
            wanted = [comm.Irecv(u[0], above), comm.Irecv(u[-1], below)]
            wanted += [comm.Isend(u[1], above), comm.Isend(u[-2], below)]
            five(u, v, 2, len(u) - 2)
            MPI.Request.Waitall(wanted)
            for i in {first, last - 1} - set(range(2, len(u) - 2)):
                five(u, v, i, i + 1)

        def call(arguments: Any) -> Any:
            u, v = arguments
            for _ in range(steps):
                half(u, v)
                half(v, u)
            return u

        def prepare() -> Any:
            return [x.copy() for x in local]

        _checked("jacobi_2d by hand", [call(prepare())[1:-1]],
                 [rows(_expected(KERNELS["jacobi_2d"], (steps, a, b))[0])])  # fmt: skip
        return prepare, call

    from benchmarks.npkernels import KERNELS

    written = {"atax": atax, "jacobi_2d": jacobi_2d}

    def measure(case: Case, size: dict[str, int]) -> Any:
        if case.label not in written:
            raise NotImplementedError("not written by hand")
        prepare, call = written[case.label](size)
        return time_calls(prepare, call, budget_s, comm.Barrier, comm.bcast, comm.allgather)

    for found in _each(scale, tiny, measure, quiet=True):
        yield found if comm.rank == 0 else None


def alone(tiny: bool, budget_s: float, numpy: bool) -> Iterator[Found]:
    """The kernels on HostArray, or on NumPy's arrays, with the threads this process was given."""
    import mirabelle as mb
    from benchmarks.npkernels import KERNELS

    def measure(case: Case, size: dict[str, int]) -> Any:
        kernel = KERNELS[case.kernel]

        def call(arguments: Sequence[Any]) -> Any:
            if numpy:
                return kernel.run(kernel.plain, np, arguments)
            return [mb.materialize(r) for r in kernel.run(kernel.program, mb, arguments)]

        prepare = _prepared(kernel, kernel.inputs(size), np.array if numpy else mb.HostArray)
        for _ in range(1 if numpy else 3):
            call(prepare())
            settled()
        return time_calls(prepare, call, budget_s)

    return _each(1, tiny, measure)


# Dask: chunks are the rows of a worker, and data are there before the clock starts


def dask(scale: int, tiny: bool, budget_s: float, workers: int, cluster: bool) -> Iterator[Found]:
    import contextlib
    import os
    import uuid

    import dask as library
    import dask.array as da

    from benchmarks.npkernels import KERNELS

    with contextlib.ExitStack() as stack:
        if cluster:
            from distributed import Client, LocalCluster, wait

            stack.enter_context(library.config.set({"distributed.worker.daemon": True}))
            made = stack.enter_context(
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
            )
            client = stack.enter_context(Client(made))
            for i, worker in enumerate(client.scheduler_info()["workers"]):
                client.run(own_core, i, max(workers, 2), workers=[worker])
            assert os.getpid() not in client.run(os.getpid).values()

            def persisted(*x: Any) -> Any:
                found = client.persist(list(x))
                wait(found)
                return found
        else:
            stack.enter_context(library.config.set(scheduler="threads", num_workers=workers))

            def persisted(*x: Any) -> Any:
                return library.persist(*x)

        def make(x: np.ndarray) -> Any:
            rows = -(-x.shape[0] // max(workers, scale))
            return persisted(da.from_array(x, chunks=(rows, *x.shape[1:])))[0]

        def measure(case: Case, size: dict[str, int]) -> Any:
            kernel = KERNELS[case.kernel]
            inputs = kernel.inputs(size)
            kept = [make(x) if isinstance(x, np.ndarray) else x for x in inputs]

            def prepare() -> Any:
                # Under names of their own: what Dask has computed once it finds again by its name.
                return [
                    persisted(da.map_blocks(np.copy, x, dtype=x.dtype, token=uuid.uuid4().hex))[0]
                    if isinstance(x, da.Array)
                    else x
                    for x in kept
                ]

            def call(arguments: Sequence[Any]) -> Any:
                return persisted(*PEERS[case.kernel](da, *arguments))

            if tiny:
                _checked(case.label, library.compute(*call(prepare())), _expected(kernel, inputs))
            return time_calls(prepare, call, budget_s)

        yield from _each(scale, tiny, measure, PEERS_STEPS)


# Heat


def heat(scale: int, tiny: bool, budget_s: float) -> Iterator[Found | None]:
    import heat as ht
    import torch

    from benchmarks.npkernels import KERNELS

    comm = ht.get_comm()
    own_core(comm.rank, comm.size)
    torch.set_num_threads(1)
    world = comm.handle

    def doitgen(xp: Any, A: Any, basis: Any) -> Any:
        """As one product of matrices: Heat has none of a stack and a matrix."""
        return (xp.reshape(xp.reshape(A, (-1, A.shape[2])) @ basis, A.shape),)

    def gemver(xp: Any, *arguments: Any) -> Any:
        """With an outer product of our own: in that of Heat, of a few kilobytes, all send and none receives."""

        def outer(u: Any, v: Any) -> Any:
            return xp.expand_dims(u, 1) * xp.expand_dims(xp.resplit(v, None), 0)

        return PEERS["gemver"](types.SimpleNamespace(outer=outer), *arguments)

    programs = PEERS | {"doitgen": doitgen, "gemver": gemver}

    def measure(case: Case, size: dict[str, int]) -> Any:
        kernel = KERNELS[case.kernel]
        inputs = kernel.inputs(size)
        kept = [ht.array(x, split=0) if isinstance(x, np.ndarray) else x for x in inputs]

        def prepare() -> Any:
            return [ht.copy(x) if isinstance(x, ht.DNDarray) else x for x in kept]

        def call(arguments: Sequence[Any]) -> Any:
            return programs[case.kernel](ht, *arguments)

        if tiny:
            # (A Python float is rounded to single precision there.)
            _checked(case.label, [x.numpy() for x in call(prepare())], _expected(kernel, inputs), 1e-6)
        return time_calls(prepare, call, budget_s, world.Barrier, world.bcast, world.allgather)

    for found in _each(scale, tiny, measure, PEERS_STEPS):
        yield found if comm.rank == 0 else None


def versions(names: Sequence[str]) -> Mapping[str, str | None]:
    """The versions of distributions that are there."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
