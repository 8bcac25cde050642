"""A divided simulation of which one process dies, raises, or goes on from the last checkpoint: HOW FOLDER."""

import os
import signal
import sys

import mirabelle as mb
from mirabelle import dg

how, folder = sys.argv[1:]
comm = mb.distributed.communicator()
gas = dg.CompressibleEuler(2)
mesh, array = dg.box((6, 6), periodic=True), mb.DArray[mb.HostArray]
semi = dg.Semidiscretization(mesh, gas, dg.Solver(2), array=array)


def initial(x, t):
    return gas.conservative((1 + 0.1 * mb.sin(2 * mb.pi * x[0]), 0.1, 0.1, 1.0))


def dies(solution):
    if solution.steps == 4 and comm.rank == 1:
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("a callback of one process fails")


path = f"{folder}/a.h5"
if how == "goes on":
    solution = dg.load(path, semi)
    steps = solution.steps
    solution = dg.solve(semi, 0.006, solution, dt=1e-3, compiled=False)
    sys.stdout.write(f"from {steps} to {solution.steps}\n")
else:
    callbacks = [dg.Checkpoint(path, interval=2), dies]
    dg.solve(semi, (0.0, 1.0), initial, dt=1e-3, callbacks=callbacks, compiled=False)
