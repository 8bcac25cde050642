"""Loops over processes in `@mb.compile`: steps of one program, with their messages, and the same numbers."""

import pathlib
import runpy
import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.backends.host import kernels

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
PROGRAMS = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "test_meshdata_programs.py"))
comm = mb.distributed.communicator()
ARRAY = mb.DArray[mb.HostArray]


def entries(result):
    found = result if isinstance(result, tuple) else (result,)
    return [mb.to_numpy(getattr(x, "parent", x)) for x in found]


def mesh_of(shared, n=6):
    return md.unit_square(n) if shared else md.part(md.unit_square(n), overlap=0).mesh


def action(shared, array=ARRAY):
    """Without a matrix, as solvers ask for it: what is around the loop is in its kernels."""
    mesh = mesh_of(shared)
    V = md.space(mesh, "P", 1)
    multiply = PROGRAMS["poisson_kernels"](V)[1]
    x, corners = mesh.coordinates_in(array), mesh.closure("cell", "vertex")
    inside = V.interpolate(1.0, array)
    inside[V.boundary_dofs()] = 0.0

    def f(u):
        y, free = mb.zeros_like(u), inside * u
        md.loop(mesh.points("cell"), multiply, md.READ(x, corners), md.READ(free, V.dofs), md.INC(y, V.dofs))
        return inside * y + (u - free)

    return f, V.interpolate(lambda x: x[..., 0] ** 2, array)


def product(shared):
    """With one."""
    mesh = mesh_of(shared)
    V = md.space(mesh, "P", 1)
    A = md.pattern(V.dofs).matrix(array=ARRAY)

    def square(K):
        for i in range(3):
            for j in range(3):
                K[i, j] += 1 + i * j

    md.loop(mesh.points("cell"), square, md.INC(A.data, A.dofs))
    return (lambda u: 2 * (A @ (u * u)) + 1), V.interpolate(lambda x: x[..., 0], ARRAY)


def gas(array=ARRAY):
    """Three loops, of which one finds the longest step of all processes."""
    mesh, start = PROGRAMS["tube"](6, 2)
    return PROGRAMS["Gas"](mesh, array).step, array(start)


def nodal(shared):
    """Entries that others own are written, and read again."""
    mesh = mesh_of(shared)
    V = md.space(mesh, "P", 1)
    some = mesh.points("cell").subset(np.arange(0, mesh.points("cell").size, 3))

    def top(u, y):
        for i in range(3):
            y[i] = np.maximum(u[0], np.maximum(u[1], u[2]))

    def f(u):
        y = u * 0 - 1
        md.loop(some, top, md.READ(u, V.dofs), md.WRITE(y, V.dofs))
        return y + u

    return f, V.interpolate(lambda x: x[..., 0] + x[..., 1] ** 2, ARRAY)


def checked(name, f, u, whole=True):
    program = mb.compile(f, whole=whole)
    program(u)
    kernels.settle(60)
    for factor in (1.0, 1.01, 0.99):
        found, wanted = entries(program(u * factor)), entries(f(u * factor))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14, err_msg=name)
    with mb.count() as compiled:
        program(u)
    with mb.count() as eager:  # (what is added to ghosts travels when somebody reads it)
        made = f(u)
        for x in made if isinstance(made, tuple) else (made,):
            mb.materialize(x)
    sent, fewest = (compiled.messages, compiled.bytes_sent), (eager.messages, eager.bytes_sent)
    # (Of arrays that are not its arguments a program does not know that ghosts hold.)
    assert sent == fewest or (name == "gas" and sent >= fewest), name
    return program


for shared in (False, True):
    program = checked("action", *action(shared))
    checked("product", *product(shared))
    checked("nodal", *nodal(shared))
checked("gas", *gas(), whole=False)
checked("fake cards", *action(True, mb.DArray[mb.RefArray]))
said = str(program.explain(action(True)[1]))
assert "send" in said or comm.size == 1, said
sys.stdout.write(f"fine on rank {comm.rank} of {comm.size}\n")
