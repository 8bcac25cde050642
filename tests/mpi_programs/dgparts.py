"""The standard problems of `mirabelle.dg` with their cells divided over ranks, compared with one process."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
from test_dg_examples import CASES

import mirabelle as mb
from mirabelle import dg

# (On cards: MIRABELLE_TEST_ARRAY=CuArray.)
ARRAY = mb.DArray[getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))]
COMPILED = "isentropic_vortex", "navier_stokes_manufactured"


def in_order(semi, u):
    """An array over all cells as NumPy's, in the order that the cells had."""
    u = mb.to_numpy(u)
    found = np.empty_like(u)
    found[..., semi.numbers] = u
    return found


def solved(case, array, compiled, ranks=None):
    """The semidiscretization, the first right-hand side, and the solution after some steps."""
    module = importlib.import_module(f"mirabelle.dg.examples.{case.example}")
    semi, initial, (begin, _), options = module.setup(array=array, **case.parameters)
    u = semi.state(initial, begin)
    rhs = semi.rhs(u, semi.scalar(begin))
    options = {k: v for k, v in options.items() if k != "callbacks"}
    solution = dg.solve(
        semi, (begin, begin + 10), u, max_steps=min(case.steps, 3), compiled=compiled, **options
    )
    return semi, rhs, solution


def alike(a, b, tolerance, least=1e-30):
    scale = max(np.abs(b).max(), least)
    return np.abs(a - b).max() <= tolerance * scale


def examples(comm, wanted):
    """Each problem gives the same, to rounding, and conserves as much."""
    met = set()
    for case in CASES:
        if wanted and case.example not in wanted:
            continue
        compiled = case.example in COMPILED and case.example not in met
        met.add(case.example)
        one, rhs, alone = solved(case, mb.HostArray, compiled)
        if len(one.mesh) < comm.size:
            continue
        semi, divided, solution = solved(case, ARRAY, compiled)
        tolerance = max(case.alike, 1e-9)
        assert alike(
            in_order(semi, divided), mb.to_numpy(rhs), tolerance, np.abs(mb.to_numpy(alone.u)).max()
        ), case
        assert solution.steps == alone.steps, case
        assert abs(solution.t - alone.t) <= 1e-10 * max(alone.t, 1e-30), (case, solution.t, alone.t)
        assert alike(in_order(semi, solution.u), mb.to_numpy(alone.u), tolerance), (case, "u")
        if case.conserves:
            before = mb.to_numpy(one.integrate(one.state(_initial(case), 0.0)))
            after = mb.to_numpy(semi.integrate(solution.u))
            assert np.allclose(before, after, rtol=1e-11, atol=1e-11), (case, before, after)


def _initial(case):
    module = importlib.import_module(f"mirabelle.dg.examples.{case.example}")
    return module.setup(**case.parameters)[1]


def vortex(array, order=3):
    cells = (8, 6) if ARRAY.inner is mb.HostArray else (4, 3)  # (cards are simulated)
    gas = dg.CompressibleEuler(2)

    def initial(x, t):
        bump = 0.2 * mb.exp(-((x[0] - 0.4) ** 2 + (x[1] - 0.5) ** 2) * 20)
        return gas.conservative((1 + bump, 0.5, 0.25, 1.0))

    mesh = dg.box(cells, periodic=True)
    return dg.Semidiscretization(mesh, gas, dg.Solver(order), array=array), initial


def messages(comm, _):
    """An evaluation sends each neighbour one message, with the traces on the cut and nothing else."""
    semi, initial = vortex(ARRAY)
    u = semi.state(initial)
    semi.rhs(u, semi.scalar(0.0))
    part = semi.local.part
    with mb.count() as counts:
        semi.rhs(u, semi.scalar(0.0))
    assert counts.messages == len(np.unique(part.ranks)), counts
    assert counts.bytes_sent == len(part.faces) * 4 * 4 * 8, counts
    on_host = ARRAY.inner is mb.HostArray
    for order in (1, 2) if on_host else ():
        semi_, initial_ = vortex(ARRAY, order)
        dg.solve(semi_, (0.0, 1.0), initial_, cfl=0.5, max_steps=1)
    # In a compiled step, for each of its stages.
    solution = dg.solve(semi, (0.0, 1.0), u, dt=1e-3, max_steps=1)
    (program,) = vars(semi.local)["step_programs"].values()
    (made,) = program.programs.values()
    names = [step.name for step in made.plan.steps]
    assert names.count("send") == names.count("receive") == (5 if comm.size > 1 else 0), names
    if comm.size > 1:
        first = names.index("send")
        assert names.index("receive") > first + 1, names  # the volume is computed meanwhile
        inside = 0 < semi.local.operators.cut.first < semi.local.K  # and the faces of cells beside no cut
        assert not on_host or names.index("receive") > first + 1 + inside, names
        assert not on_host or semi.local.operators.cut.first == part.local_cells.min()
    with mb.count() as counts:
        dg.solve(semi, (solution.t, 1.0), solution.u, dt=1e-3, max_steps=2)
    # (Elsewhere terms of reductions are messages, too.)
    assert not on_host or counts.messages == 10 * len(np.unique(part.ranks)), counts
    # How long a step may be leaves with the first traces, and is waited for at their end: one number a step.
    for steps in (1, 3) if on_host else (1,):
        solution = dg.solve(semi, (0.0, 1.0), u, cfl=0.5, max_steps=steps)
        with mb.count() as counts:
            solution = dg.solve(semi, (0.0, 1.0), u, cfl=0.5, max_steps=steps)
        assert not on_host or counts.messages == 5 * steps * len(np.unique(part.ranks)), counts
        # (one more when all is over, and what `solve` asks all)
        assert not on_host or comm.size == 1 or counts.collectives == steps + 1, counts
    made = [p for f in vars(semi.local)["step_programs"].values() for p in f.programs.values()][-1]
    names = [step.name for step in made.plan.steps]
    if on_host and comm.size > 1:
        begun, ended = (next(k for k, name in enumerate(names) if w in name) for w in ("allreduce", "end of"))
        assert begun < names.index("send") < names.index("receive") and ended > names.index("send") + 1, names
        assert "FoldStep" not in {type(s).__name__ for s in made.plan.steps[begun + 1 :]}, names
        assert float(semi.report().splitlines()[1].split()[6]) > 0.0


def files(comm, _):
    """Snapshots go on where they were, on any number of processes; pieces for ParaView; probes."""
    folder = Path(comm.bcast_object(tempfile.mkdtemp() if comm.rank == 0 else None))
    one, initial = vortex(mb.HostArray)
    semi, _ = vortex(ARRAY)
    points = np.array([[0.1, 0.51, 0.77, 3.0], [0.2, 0.53, 0.9, 0.5]])
    probe, alone = dg.Probe(points[:, :3], interval=1), dg.Probe(points[:, :3], interval=1)
    how = {"dt": 1e-3, "compiled": False}
    whole = dg.solve(one, (0.0, 1.0), initial, max_steps=4, callbacks=[alone], **how)
    half = dg.solve(
        semi, (0.0, 1.0), initial, max_steps=2, callbacks=[probe, dg.Checkpoint(folder / "a.h5")], **how
    )
    half = dg.solve(semi, 1.0, dg.load(folder / "a.h5", semi), max_steps=2, callbacks=[probe], **how)
    assert alike(in_order(semi, half.u), mb.to_numpy(whole.u), 1e-12)
    assert np.allclose(probe.values[:3], alone.values[:3], rtol=1e-12)
    assert np.isnan(semi.sample(half.u, points)[:, 3]).all()
    went_on = dg.solve(one, 1.0, dg.load(folder / "a.h5", one), max_steps=2, **how)  # on one process
    assert alike(mb.to_numpy(went_on.u), mb.to_numpy(whole.u), 1e-12)
    before = mb.to_numpy(one.integrate(one.state(initial)))
    for problem, ended in ((semi, half), (one, went_on)):
        assert np.allclose(mb.to_numpy(problem.integrate(ended.u)), before, rtol=1e-13), (before, ended)
    if comm.rank == 0:
        dg.save(went_on, folder / "one.h5")
    comm.barrier()
    back = dg.load(folder / "one.h5", semi)
    assert alike(in_order(semi, back.u), mb.to_numpy(whole.u), 1e-12)
    assert semi.fingerprint == one.fingerprint
    # A mesh that was divided beforehand.
    if comm.rank == 0:
        dg.write_parts(one.mesh, folder / "box.parts", comm.size)
        dg.write_parts(one.mesh, folder / "other.parts", comm.size + 1)
    comm.barrier()
    mesh = dg.read_parts(folder / "box.parts")
    read = dg.Semidiscretization(mesh, one.equations, one.solver, array=ARRAY)
    again = dg.solve(read, 1.0, dg.load(folder / "one.h5", read), dt=1e-3, max_steps=1, compiled=False)
    alone = dg.solve(one, 1.0, went_on, dt=1e-3, max_steps=1, compiled=False)
    assert alike(in_order(read, again.u), mb.to_numpy(alone.u), 1e-12)
    assert read.mesh.fingerprint == semi.mesh.fingerprint
    try:
        dg.read_parts(folder / "other.parts")
    except (ValueError, mb.RemoteError) as e:
        assert f"for {comm.size + 1} processes, and there are {comm.size}" in str(e)
    else:
        raise AssertionError("a mesh for another number of processes was taken")
    listed = dg.write_vtu(half, folder / "b.vtu")
    if comm.rank == 0:
        text = listed.read_text()
        assert listed.name == "b.pvtu" and text.count("<Piece") == comm.size
        assert all((folder / f"b_{r:04}.vtu").exists() for r in range(comm.size))
        assert 'Name="rho"' in text and 'Name="p"' in text
        shown = dg.load(folder / "a.h5")
        assert shown.plot("rho").get_title() == f"rho, t = {shown.t:g}"


def mistakes(comm, _):
    """What cannot be is said on all ranks."""
    gas, array = dg.CompressibleEuler(1), ARRAY

    def said(make):
        try:
            make()
        except (ValueError, TypeError, ArithmeticError, mb.RemoteError) as e:
            return str(e)
        raise AssertionError("nothing was raised")

    def mine(order=1, cells=8, walls=0):
        mesh = dg.box(cells, periodic=not walls)
        conditions = dict.fromkeys(mesh.boundaries, dg.SlipWall())
        return dg.Semidiscretization(mesh, gas, dg.Solver(order), conditions, array=array)

    if comm.size > 1:
        text = said(lambda: dg.Semidiscretization(dg.box(1, periodic=True), gas, dg.Solver(1), array=array))
        assert f"{comm.size} processes cannot divide 1 cells" in text, text
        for case in ({"order": 1 + comm.rank}, {"cells": 8 + 2 * comm.rank}, {"walls": comm.rank}):
            text = said(lambda case=case: mine(**case))
            assert "Processes solve different problems: of rank 0 the" in text, text
        on_one_rank(comm, said)
    mesh = dg.box(8)
    text = said(lambda: dg.Semidiscretization(mesh, gas, dg.Solver(1), {"x_neg": dg.SlipWall()}, array=array))
    assert "x_pos" in text
    ranks = np.full(8, comm.size)
    text = said(lambda: dg.Divided(dg.box(8, periodic=True), gas, dg.Solver(1), ranks=ranks))
    assert "ranks= go from" in text, text
    semi = dg.Semidiscretization(dg.box(8, periodic=True), gas, dg.Solver(2), array=array)
    text = said(
        lambda: dg.solve(
            semi, 1.0, lambda x, t: (mb.where(x[0] > 0.9, -1.0, 1.0), 0.0 * x[0], 1.0 + x[0]), dt=1e-3
        )
    )
    assert "is no state" in text and "rho" in text, text
    text = said(lambda: semi.rhs(mb.zeros((3, 3, 8))))
    assert "over all processes" in text
    bad = lambda x, t: gas.conservative((1.0 + 0.5 * mb.sin(6.283185307179586 * x[0]), 0.3, 1.0))
    text = said(lambda: dg.solve(semi, 10.0, bad, dt=5.0))
    assert "blew up" in text, text


def on_one_rank(comm, said):
    """What one process alone does wrong, all hear of, and can go on."""
    here, mesh, wave = comm.rank == comm.size - 1, dg.box(8), dg.Advection((1.0,))
    walls = dict.fromkeys(mesh.boundaries, dg.Prescribed(lambda x, t: (0.0 * x[0],)))

    def made(conditions=walls, **more):
        return dg.Semidiscretization(mesh, wave, dg.Solver(1), conditions, array=ARRAY, **more)

    def solved(tspan=0.1, initial=lambda x, t: (mb.sin(x[0]),), **more):
        return dg.solve(made(), tspan, initial, **{"cfl": 0.5} | more)

    def fails(x, t):
        raise ArithmeticError("no such flow") if here else ArithmeticError("nobody asks")

    some = {"x_neg": walls["x_neg"]}
    for make, what in (
        (lambda: made(some if here else walls), "boundary conditions is"),
        (lambda: made({**walls, "x_neg": 3} if here else walls), "x_neg (int)"),
        (lambda: made(ranks=np.sort(np.arange(8) % comm.size) if here else np.arange(8) % comm.size), "ranks="),
        (lambda: made(source=(lambda u, x, t, equations: u) if here else None), "source is None"),
        (lambda: solved(0.1 + 0.1 * here), "tspan is 0.1"),
        (lambda: solved(cfl=0.5 - 0.25 * here), "cfl=0.5"),
        (lambda: solved(initial=fails if here else (lambda x, t: (mb.sin(x[0]),))), "no such flow"),
    ):
        text = said(make)
        assert what in text, text
    assert solved().t == 0.1


def stops(comm, _):
    """What a signal says to one process all do, after the same step."""
    folder = Path(comm.bcast_object(tempfile.mkdtemp() if comm.rank == 0 else None))
    semi, initial = vortex(ARRAY)
    last = comm.size - 1
    for number, often in ((signal.SIGUSR1, 1), (signal.SIGTERM, 1), (signal.SIGTERM, 5)):
        written = []

        def tell(solution, number=number):
            if solution.steps == 5 and comm.rank == last:
                os.kill(os.getpid(), number)

        class Noted(dg.Checkpoint):
            def step(self, solution, written=written):
                written.append(solution.steps)
                super().step(solution)

        told = dg.time.callbacks.as_callback(tell)
        told.interval = often
        callbacks = [Noted(folder / "a.h5"), told]
        how = {"dt": 1e-4, "max_steps": 24, "callbacks": callbacks, "compiled": False}
        try:
            solution = dg.solve(semi, (0.0, 1.0), initial, **how)
        except SystemExit as e:
            assert comm.rank == last and number == signal.SIGTERM and e.code == 143, e
        else:
            assert number == signal.SIGUSR1 or (comm.rank < last and solution.interrupted), solution
        steps = comm.allgather_object(written)
        assert all(s == steps[0] for s in steps), steps
        assert steps[0] == ([6, 24] if number == signal.SIGUSR1 else [5]), steps
        assert dg.load(folder / "a.h5", semi).steps == steps[0][-1]


def islands(comm, _):
    """A process whose cells touch those of no other takes part in what others do, and in no message."""
    box = dg.box((4, 2))
    cells = np.concatenate([box.cells, box.cells + box.cells.max() + 1], axis=1)
    away = box.coordinates + np.array([5.0, 0.0])[:, None, None]
    mesh = dg.Mesh.from_cells("quadrilateral", cells, np.concatenate([box.coordinates, away], axis=-1), {})
    n, gas = len(box), dg.CompressibleEuler(2)
    conditions = dict.fromkeys(mesh.boundary_names, dg.SlipWall())

    def initial(x, t):
        return gas.conservative((1 + 0.1 * mb.sin(x[0]) * mb.cos(x[1]), 0.1, 0.2, 1.0))

    # Rank 0 has the first box alone, the others share the second.
    ranks = np.concatenate([np.zeros(n, int), 1 + np.arange(n) * (comm.size - 1) // n])
    semi = dg.Divided(mesh, gas, dg.Solver(2), conditions, array=ARRAY, ranks=ranks)
    one = dg.Semidiscretization(mesh, gas, dg.Solver(2), conditions, array=ARRAY.inner)
    wanted = mb.to_numpy(one.rhs(one.state(initial), one.scalar(0.0)))
    u, t = semi.state(initial), semi.scalar(0.0)
    for rhs in (semi.rhs, mb.compile(semi.rhs)):
        np.testing.assert_allclose(in_order(semi, rhs(u, t)), wanted, atol=1e-12)
    assert dg.solve(semi, (0.0, 0.02), initial, cfl=0.5).steps > 0


CHECKS = {f.__name__: f for f in (examples, messages, files, islands, mistakes, stops)}


def main():
    with contextlib.ExitStack() as block:
        if os.environ.get("MIRABELLE_TEST_NCCL"):  # (of simulated cards)
            from tests import fakenccl

            nccl = block.enter_context(fakenccl.installed(fakenccl.Processes()))
        run()
        if os.environ.get("MIRABELLE_TEST_NCCL"):
            assert {call[0] for call in nccl.calls} >= {"send", "recv", "allGather"}


def run():
    comm = mb.distributed.communicator()
    names = [a for a in sys.argv[1:] if a in CHECKS] or list(CHECKS)
    wanted = [a for a in sys.argv[1:] if a not in CHECKS]
    for name in names:
        CHECKS[name](comm, wanted)
        comm.barrier()
    sys.stdout.write(f"fine {comm.rank}\n")


if __name__ == "__main__":
    main()
