"""Programs on meshes as users write them: a matrix, a solver, files, trees of axes."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md


def stiffness(x: Any, matrix: Any) -> None:
    """The matrix of a triangle."""
    edges = np.stack([x[2] - x[1], x[0] - x[2], x[1] - x[0]])
    matrix += edges @ edges.T / 4


def solved(n: int) -> md.TreeArray:
    mesh = md.unit_square(n)
    V = md.space(mesh, "P", 1)
    A = md.pattern(V.dofs).matrix()
    assert_type(A, md.Matrix)
    corners = mesh.closure("cell", "vertex")
    md.loop(
        mesh.points("cell"), stiffness, md.READ(mb.HostArray(mesh.coordinates), corners), md.INC(A.data, A.dofs)
    )
    b = V.interpolate(1.0)
    assert_type(b, md.TreeArray)
    md.dirichlet(A, b, V.boundary_dofs())
    u, info = mb.linalg.cg(A, b, M=lambda r: r)
    assert_type(A.csr, mb.CSR)
    assert_type(A @ u, mb.AbstractArray)
    assert_type(u, mb.AbstractArray)
    print(info.iterations, mb.max(u))
    assert_type(md.write_vtk("u.vtu", mesh, {"u": (V, u)}), Path)
    return b


def trees() -> None:
    tree = md.tree(md.Axis("cell", {"triangle": 2, "quadrilateral": 1}), md.Axis("dof", 3))
    x = md.full(tree, 1.0)
    assert_type(x, md.TreeArray)
    assert_type(x[{"cell": ("triangle", 0)}], mb.AbstractArray)
    x[{"dof": 0}] = 0.0
    assert_type(x.tree, md.AxisTree)
    assert_type(mb.sum(x * 2), mb.AbstractArray)


def divided() -> None:
    V = md.space(md.part(md.unit_square(4)).mesh, "P", 2)
    u = V.interpolate(lambda p: p[..., 0], mb.DArray)
    assert_type(u, mb.AbstractArray)  # (over the tree, where all processes have the mesh)
    assert isinstance(u, mb.DArray)
    assert_type(u.local, mb.AbstractArray)
    A = md.pattern(V.dofs).matrix(array=mb.DArray)
    assert_type(A, md.DividedMatrix)
    forest = md.StarForest(3, owners=[0], roots=[1])
    with md.begin_access([(md.Ghosted(mb.ones(3), forest), md.READ)]) as access:
        assert_type(access, md.GhostAccess)
