"""What divided arrays know of their ghosts: loops that add and read, with their messages counted exactly.

    mpiexec -n 3 python tests/mpi_programs/lazysums.py

First chains of accesses, as in the worked example X23; then random chains of loops and array operations,
against the same on one process.
"""

from __future__ import annotations

import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

ARRAY = mb.DArray[mb.HostArray]


def adds(x, y):
    for i in range(3):
        y[i] += x[i, 0] * (1 + i) + x[i, 1]


def least(x, y):
    for i in range(3):
        y[i] = x[i, 0] + i - 1


def sums(u, y):
    y[0] = u[0] - 2 * u[1] + u[2]


def mixes(u, y):
    for i in range(3):
        y[i] += u[0] + u[1] * 0.25 + u[2] - u[i]


class World:
    """A mesh, and accesses of functions on it by loops over its cells."""

    def __init__(self, size, shared=True, array=ARRAY):
        mesh = md.unit_square(6, 3 * size)
        part = None if shared else md.part(mesh, overlap=0)
        self.mesh = mesh if part is None else part.mesh
        self.V, self.cells = md.space(self.mesh, "P", 1), self.mesh.points("cell")
        self.x = md.READ(self.mesh.coordinates_in(array), self.mesh.closure("cell", "vertex"))
        volumes = self.mesh.volumes()
        self.cellwise = array(volumes) if part is None else part.divided("cell", mb.HostArray(volumes))
        self.u = self.V.interpolate(lambda x: x[..., 0] + 3 * x[..., 1], array)

    def access(self, u, name):
        to = getattr(md, name)(u, self.V.dofs)
        if name == "READ":
            md.loop(self.cells, sums, to, md.WRITE(self.cellwise))
        else:
            md.loop(self.cells, adds if name == "INC" else least, self.x, to)


def counts(comm):
    """Reductions and broadcasts of chains, in messages and bytes of all processes together."""

    def sent(*names, world, clean=False):
        u = world.u = world.u * 1.0
        mb.materialize(u)
        if clean:
            world.access(u, "READ")
        with mb.count() as c:
            for name in names:
                if name == "JOIN":
                    mb.materialize(u + 1)  # (which itself sends nothing)
                else:
                    world.access(u, name)
        return np.sum(comm.allgather_object((c.messages, c.bytes_sent)), axis=0)

    for shared in (True, False):
        world = World(comm.size, shared)
        sent("INC", "MIN_RW", "READ", world=world)  # (what is found out once is found out)
        there, back = sent("READ", world=world), sent("INC", "JOIN", world=world)
        assert there.tolist() == back.tolist()
        assert (comm.size == 1) == (not there[0])
        for names, reduces, bcasts in (
            (("INC",), 0, 0),
            (("INC", "INC", "INC"), 0, 0),
            (("INC", "INC", "INC", "READ"), 1, 1),
            (("READ", "READ"), 0, 0),
            (("READ", "INC", "INC", "INC", "READ", "READ"), 1, 1),
            (("INC", "MIN_RW", "READ"), 2, 1),
            (("INC", "MIN_WRITE", "READ"), 1, 1),
            (("MAX_RW", "MAX_RW", "READ", "INC", "READ"), 2, 2),
            (("INC", "JOIN", "READ"), 1, 1),
            (("INC", "READ", "JOIN", "READ"), 1, 1),
        ):
            found = sent(*names, world=world, clean=True)
            assert found.tolist() == (reduces * back + bcasts * there).tolist(), (shared, names, found, back)
        assert md.state_of(world.u) == md.State(None, comm.size > 1), md.state_of(world.u)


def chain(seed, size, array):
    """A random chain of loops and array operations: what is there at its end."""
    rng = np.random.default_rng(seed)
    world = World(size, True, array)
    held = [world.u, world.V.interpolate(lambda x: np.cos(x[..., 0]), array)]
    found = []
    for _ in range(rng.integers(5, 14)):
        i, j = rng.integers(0, len(held), 2)
        what = rng.integers(12)
        if what < 4:
            world.access(held[i], str(rng.choice(["INC", "INC", "INC", "MIN_RW", "MAX_RW", "MIN_WRITE"])))
        elif what == 4:
            world.access(held[i], "READ")
            found.append(world.cellwise * 1)
        elif what == 5:
            y = mb.zeros_like(held[i])
            md.loop(world.cells, mixes, md.READ(held[i], world.V.dofs), md.INC(y, world.V.dofs))
            md.loop(world.cells, mixes, md.READ(held[j], world.V.dofs), md.INC(y, world.V.dofs))
            held.append(y)
        elif what == 6:
            held.append(mb.copy(held[i]))
        elif what == 7:
            found.append(held[i] + held[j] * 0.5)  # (said now, computed when somebody asks)
        elif what == 8:
            held[i] *= 0.5
        elif what == 9:
            getattr(held[i], "parent", held[i])[2:7] = 1.5
        elif what == 10:
            held[i][...] = held[j] - 1
        else:
            found.append(mb.sum(held[i]))
    return [mb.to_numpy(getattr(x, "parent", x)) for x in (*found, *held)]


def chains(comm, count=25, first=0):
    for seed in range(first, first + count):
        for here, there in zip(
            chain(seed, comm.size, mb.HostArray), chain(seed, comm.size, ARRAY), strict=True
        ):
            np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12, err_msg=f"seed {seed}")


if __name__ == "__main__":
    everyone = mb.distributed.communicator()
    counts(everyone)
    chains(everyone, *map(int, sys.argv[1:]))
    sys.stdout.write(f"fine on rank {everyone.rank} of {everyone.size}\n")
