"""A file of 500 000 tetrahedra that processes read in pieces: what each holds of it, and the volume.

`mpiexec -n 4 python tests/mpi_programs/meshpieces.py`; with `file.msh` it says what reading that one takes.
"""

import pathlib
import sys
import tempfile
import tracemalloc

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from gmshwriting import Described, write

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.readparts import own_cells

SIDE = 44


def made(folder):
    mesh = md.unit_cube(SIDE)
    cells = mesh.cells["tetrahedron"].astype(np.int64) + 1
    order = np.random.default_rng(0).permutation(SIDE)  # (gmsh's own order is as good as this)
    cells = cells.reshape(SIDE, -1, 4)[order].reshape(-1, 4)
    sides = mesh.exterior()
    faces = mesh.closure("face", "vertex").target().table[sides.indices].astype(np.int64) + 1
    blocks = [("triangle", 2, (2,), faces), ("tetrahedron", 3, (1,), cells)]
    names = {(1, 3): "inside", (2, 2): "wall"}
    tags = np.arange(1, len(mesh.coordinates) + 1)
    return write(
        pathlib.Path(folder) / "cube.msh", Described(tags, mesh.coordinates, blocks, names), "4.1", True
    )


def main(comm, path):
    tracemalloc.start()
    pieces = own_cells(path, "flip", comm)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    half = path.stat().st_size / 2
    assert sum(len(c.nodes) for c in pieces.cells.values()) > 0
    return peak, half


if __name__ == "__main__":
    world = mb.distributed.communicator()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
        if path is None:
            path = world.bcast_object(made(folder) if world.rank == 0 else None)
        peak, half = main(world, path)
        if len(sys.argv) == 1:
            assert peak < half, (peak, half)
            part = md.read_part(path)
            volumes = part.mesh.volumes()[: part.owned("cell")].sum()
            walls = len(part.mesh.markers["wall"])
            assert part.owned("cell") == len(part.mesh.markers["inside"])
            sums = np.sum(world.allgather_object((volumes, walls)), axis=0)
            assert abs(sums[0] - 1) < 1e-12 and sums[1] == 12 * SIDE**2, sums
        world.barrier()
        sys.stdout.write(f"fine: {peak / 2**20:.1f} MB of {2 * half / 2**20:.1f} MB on rank {world.rank}\n")
