"""Typical mistakes: each is answered by a sentence with the cure, and by three frames of ours at most."""

import json
import math
import re
import signal
import subprocess
import sys
import traceback

import numpy as np
import pytest
from children import answer

import mirabelle as mb
from mirabelle import dg
from mirabelle import meshdata as md
from mirabelle.arraytypes import advice
from mirabelle.dispatch.linecounts import is_users
from mirabelle.dispatch.tracebacks import KEPT, add_advice, few_frames, trimmed

A = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
x = mb.HostArray([1.0, 2.0, 3.0])
i = mb.HostArray([1, 2, 3])
r = mb.RefArray([1.0, 2.0, 3.0])
rng = mb.random.default_rng(1)


def put(array, index, value):
    array[index] = value


D = mb.arange(6.0, device=mb.DArray[mb.HostArray])
a, b = md.Axis("a", 2), md.Axis("b", 2)
mesh = md.unit_square(2)
cells, V = mesh.points("cell"), md.space(mesh, "P", 1)
u, y = V.interpolate(1.0), mb.zeros(9)
line, wave = dg.box(4, periodic=True), dg.Advection((1.0,))
semi = dg.Semidiscretization(line, wave, dg.Solver(2))


def add(u, y):
    y[0] += u[0]


def turned(u, y):
    u[0] = 1.0


def beyond(u, y):
    y[7] += u[0]


def endless(u, y):
    while u[0] > 0:
        y[0] += 1


@mb.kernel
def saxpy(k, y, a, x):
    i = k.index(0)
    y[i] = a * x[i] + y[i]


@mb.kernel
def gives_back(k, y):
    return y[k.index(0)]


@mb.kernel
def at_halves(k, y):
    y[k.index(0) * 0.5] = 1.0


@mb.kernel
def of_two(k, y):
    y[k.index(0), k.index(1)] = 1.0


@mb.jit
def total(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def full(fill_value):
    """A user's function with a name of ours."""


def at_rest(p, t):
    return (0.0 * p[0],)


def solved(**options):
    return dg.solve(semi, 0.1, lambda p, t: (mb.sin(p[0]),), **options)


block = mb.distributed.Block


def loop(points, first=None, kernel=add):
    md.loop(points, kernel, md.READ(u, V.dofs) if first is None else first, md.INC(y, V.dofs))


# What a program does, and a piece of the sentence that says what to do instead.
def deep(n):
    x = 1.0
    for _ in range(n):
        x = [x]
    return x


MISTAKES = {
    "lists in lists without end": (lambda: mb.sum(deep(2000)), "at most 64 dimensions"),
    "a shape that is a dictionary": (lambda: mb.zeros({2: 3}), "A shape is an integer or a tuple"),
    "a shape that is a set": (lambda: mb.ones({2}), "A shape is an integer or a tuple"),
    "a shape of bytes": (lambda: mb.ones(b"ab"), "A shape is an integer or a tuple"),
    "an exchange of a part in a program": (
        lambda: mb.compile(lambda q: mb.distributed.exchange(q[1:]))(mb.DArray[mb.HostArray](np.arange(4.0))),
        r"and not a View\[DArray\[HostArray\[float64, 1\]\], 1\]",
    ),
    "diagonals without places": (lambda: mb.Banded([1.0, 2.0], [1.0]), r"mb\.Tridiagonal"),
    "if of an array": (lambda: 1 if x > 1 else 0, r"mb\.any\(x\)"),
    "and of arrays": (lambda: x > 1 and x < 2, r"mb\.all\(x\)"),
    "float of an array": (lambda: float(x), r"mb\.sum\(x\)"),
    "int of an array": (lambda: int(x), r"mb\.sum\(x\)"),
    "item of many": (lambda: x.item(), r"x\[i\]"),
    "len of a number": (lambda: len(mb.sum(x)), r"float\(x\)"),
    "a format for an array": (lambda: f"{x:.2f}", r"np\.array2string"),
    "shapes that do not fit": (lambda: x + mb.ones(4), r"x\[:, None\]"),
    "where of shapes that do not fit": (lambda: mb.where(x > 1, mb.ones(2), 0.0), r"x\[:, None\]"),
    "a product that does not fit": (lambda: A @ x, r"x\.T"),
    "in place, and larger": (lambda: x.__iadd__(A), r"x\[:, None\]"),
    "in place, of another dtype": (lambda: i.__iadd__(0.5), r"x = x \+ y"),
    "a write that does not fit": (lambda: put(A, slice(None), mb.ones(3)), "must be equal or 1"),
    "a write to what is broadcast": (lambda: put(mb.broadcast_to(x, (2, 3)), (0, 0), 1.0), r"mb\.copy\(x\)"),
    "a write beside the diagonal": (lambda: put(mb.Diagonal(x), (0, 1), 1.0), r"mb\.HostArray\(x\)"),
    "a real number as an index": (lambda: x[1.0], r"int\(\)"),
    "host and card": (lambda: x + r, r"mb\.adapt\(mb\.RefArray"),
    "NumPy of a card's array": (lambda: np.asarray(r), r"mb\.to_numpy\(x\)"),
    "an element of a card's array": (lambda: float(r[0]), "array operations"),
    "a write to an element on a card": (lambda: put(r, 0, 1.0), "array operations"),
    "a place that is none": (lambda: mb.zeros(3, device="gpu7"), r"mb\.HostArray"),
    "sizes one by one": (lambda: mb.zeros(2, 3), r"mb\.float64"),
    "a dtype that is none": (lambda: mb.zeros(3, dtype="flaot"), "float32"),
    "texts": (lambda: mb.HostArray(["a", "b"]), r"x\.astype\(float\)"),
    "rows of several lengths": (lambda: mb.HostArray([[1, 2], [3]]), "the same length"),
    "objects": (lambda: mb.HostArray([object()]), r"x\.astype\(float\)"),
    "bits of real numbers": (lambda: x & 1, r"x\.astype\(mb\.int64\)"),
    "a name with a typo": (lambda: mb.summ(x), r"mb\.sum`"),
    "a name of NumPy's alone": (lambda: mb.busday_count, r"numpy\.busday_count"),
    "the global generator": (lambda: mb.random.normal(3), r"default_rng\(seed\)"),
    "too many without replacement": (lambda: rng.choice(3, size=5, replace=False), "5 of 3"),
    "stacked shapes": (lambda: mb.stack([x, mb.ones(2)]), r"mb\.concat\(arrays\)"),
    "a split that does not come out": (lambda: mb.split(x, 2), r"mb\.array_split"),
    "axes that are not there": (lambda: mb.permute_dims(A, (0, 2)), "each of 0 to 1 once"),
    "einsum of other dimensions": (lambda: mb.einsum("ij,jk->ik", A, x), r"`\.\.\.`"),
    "a singular matrix": (lambda: mb.linalg.solve(mb.zeros((2, 2)), mb.ones(2)), r"mb\.linalg\.lstsq"),
    "no square matrix": (lambda: mb.linalg.inv(mb.ones((2, 3))), r"mb\.linalg\.lstsq"),
    "not positive definite": (lambda: mb.linalg.cholesky(-A), r"mb\.linalg\.ldl"),
    "the gradient of an array": (lambda: mb.autodiff.gradient(lambda u: u * u, x), r"jacobian\(f, x\)"),
    "a value in a compiled function": (lambda: mb.compile(lambda u: float(mb.sum(u)) * u)(x), "program runs"),
    "an unknown name in a function of elements": (
        lambda: mb.materialize(mb.map(lambda t: nowhere + t, x)),  # noqa: F821
        r"math\.\*",
    ),
    "an attribute in a jitted function": (lambda: mb.jit(lambda u: u.nothing)(x), "take numbers, arrays"),
    "a shape of other elements": (lambda: mb.reshape(x, (2, 2)), r"x\.reshape\(-1, n\)"),
    "a range of a real number": (lambda: range(mb.sum(x)), r"int\(x\)"),
    "a function of math": (lambda: math.sin(x), r"mb\.sin\(x\)"),
    "arrays that are joined, not a list": (lambda: mb.concat(x, x), r"mb\.concat\(\[x, y\]\)"),
    "a setting with a typo": (lambda: setattr(mb.settings, "num_thread", 2), "The settings are: num_threads"),
    "a setting of another kind": (lambda: setattr(mb.settings, "num_threads", "many"), "something like 4"),
    "half an element": (lambda: mb.linspace(0, 1, 10.5), r"int\(10\.5\)"),
    "a write to a Toeplitz matrix": (lambda: put(mb.Toeplitz(x), (0, 1), 2.0), r"mb\.HostArray\(x\)"),
    "a gradient of integers": (lambda: mb.autodiff.gradient(mb.sum, i), r"x\.astype\(float\)"),
    "a gradient of what is computed": (lambda: mb.autodiff.gradient(mb.sum(x), x), "lambda x: x"),
    "NumPy of what is divided": (lambda: np.asarray(mb.DArray[mb.HostArray](x)), r"mb\.to_numpy\(x\)"),
    "a layout by name": (lambda: mb.distributed.redistribute(D, "rows"), r"mb\.distributed\.Block\(0\)"),
    "DArray of no array type": (lambda: mb.zeros(3, device=mb.DArray[3]), r"mb\.DArray\[mb\.HostArray\]"),
    "a compiled function that is none": (lambda: mb.compile(3), r"@mb\.compile"),
    "if in a compiled function": (lambda: mb.compile(lambda u: u if u[0] > 0 else -u)(x), r"mb\.where\(cond"),
    "NumPy in a compiled function": (lambda: mb.compile(lambda u: np.asarray(u) * 2)(x), r"mb\.where\(cond"),
    "what a mask picks": (lambda: mb.compile(lambda u: u[u > 1])(x), r"mb\.count_nonzero\(mask\)"),
    "functions of fewer elements": (
        lambda: mb.materialize(mb.map(lambda a, b: a + b, x)),
        "one element of each",
    ),
    "no numbers from elements": (lambda: mb.materialize(mb.map(lambda a: str(a), x)), "returns a number"),
    "a kernel's loop over a name": (lambda: loop("cell"), r'mesh\.points\("cell"\)'),
    "a kernel's loop over a mesh": (lambda: loop(mesh), r'mesh\.points\("cell"\)'),
    "a loop of fewer accesses": (lambda: md.loop(cells, add, md.READ(u, V.dofs)), r"md\.READ\(u, map\)"),
    "a loop of arrays without access": (lambda: loop(cells, u), r"md\.INC\(u, map\)"),
    "a loop over two places": (lambda: loop(cells, md.READ(mb.RefArray(mb.ones(9)), V.dofs)), r"mb\.adapt"),
    "a loop without its map": (lambda: loop(cells, md.READ(x)), "whole=True"),
    "a kernel that returns": (lambda: loop(cells, kernel=lambda u, y: u), r"y\[i\] \+= value"),
    "a kernel that writes what it reads": (lambda: loop(cells, kernel=turned), "Say RW or INC"),
    "a kernel's index out of bounds": (lambda: loop(cells, kernel=beyond), r"np\.where"),
    "a kernel's endless loop": (lambda: loop(cells, kernel=endless), r"np\.where"),
    "a family that is none": (lambda: md.space(mesh, "CG", 1), r'md\.element\("P"'),
    "boxes' elements on triangles": (lambda: md.space(mesh, "Q", 1), r'md\.element\("P"'),
    "vertices from one": (lambda: md.Mesh([[0, 0], [1, 0], [0, 1]], [[1, 2, 3]]), "numbered from 0"),
    "arrays over two trees": (lambda: md.zeros(md.tree(a)) + md.zeros(md.tree(b)), r"y\.arranged\(x\.tree\)"),
    "an axis that a tree has not": (lambda: md.zeros(md.tree(a))[{"c": 0}], "It has 'a'"),
    "one component of two": (
        lambda: md.space(mesh, "P", 1, components=2).interpolate(lambda p: p[..., 0]),
        r"np\.stack",
    ),
    "an order for a solver": (lambda: dg.Semidiscretization(line, wave, 3), r"dg\.Solver\(3\)"),
    "boundaries without conditions": (
        lambda: dg.Semidiscretization(dg.box(4), wave, dg.Solver(2)),
        'boundary_conditions={"x_neg"',
    ),
    "equations of other dimensions": (
        lambda: dg.Semidiscretization(dg.box((2, 2), periodic=True), wave, dg.Solver(2)),
        r"dg\.box\(\(8,\)\)",
    ),
    "a flux that is not written for it": (
        lambda: dg.Semidiscretization(line, wave, dg.Solver(2, surface_flux=dg.hllc)).rhs(
            mb.ones((1, 3, 4)), 0.0
        ),
        r"dg\.hll`",
    ),
    "a row and a matrix joined": (lambda: mb.concat([x, mb.ones((2, 3))]), r"x\[None, :\]"),
    # (Over meshes)
    "a kernel before the points": (lambda: loop(add, kernel=cells), r"md\.loop\(points, kernel"),
    "a space for a map": (lambda: loop(cells, md.READ(u, V)), r"md\.READ\(u, V\.dofs\)"),
    "a map for an array": (lambda: md.READ(V.dofs, u), r"md\.READ\(u, map\)"),
    "a map of other points": (lambda: loop(mesh.points("edge")), "the loop runs over"),
    "a kernel of fewer parameters": (lambda: loop(cells, kernel=lambda u: None), r"md\.READ\(u, map\)"),
    "points that are none": (lambda: mesh.points("triangle"), "it has"),
    "a space without a degree": (lambda: md.space(mesh, "P"), r'md\.element\("P", "triangle", 2\)'),
    "values for a function": (lambda: V.interpolate(np.ones(5)), r"lambda x: x\[\.\.\., 0\]"),
    "a pattern of a space": (lambda: md.pattern(V), r"md\.pattern\(V\.dofs\)"),
    "conditions of a vector": (lambda: md.dirichlet(u, u, [0], 0.0), r"md\.pattern\(V\.dofs\)\.matrix\(\)"),
    "half a cell": (lambda: md.unit_square(2.5), r"md\.unit_square\(\(8, 4\)\)"),
    "a plain array for a function": (lambda: V.evaluate(y, [0.5, 0.5]), r"md\.wrap\(V\.tree, flat\)"),
    "a shape with a typo": (lambda: md.quadrature("triangel", 2), "Cells are interval"),
    "a mesh file that is not there": (lambda: md.read_mesh("no.msh"), "A path begins"),
    "a file for a part": (lambda: md.part("a.msh"), r"md\.read_mesh\(path\)"),
    # (Flows)
    "a start without a time": (lambda: dg.solve(semi, 0.1, lambda p: (mb.sin(p[0]),), cfl=0.5), "lambda x, t"),
    "an exact solution without a time": (
        lambda: semi.norms(semi.state(at_rest), lambda p: (p[0],), 0.0),
        "x, t",
    ),
    "a source of fewer parameters": (
        lambda: dg.Semidiscretization(line, wave, dg.Solver(2), source=lambda u, x: (0.0,)),
        "lambda u, x, t, equations",
    ),
    "equations before the mesh": (lambda: dg.Semidiscretization(wave, line, dg.Solver(2)), r"dg\.box\(8"),
    "a class of equations": (lambda: dg.Semidiscretization(line, dg.Advection, dg.Solver(2)), "the class Adv"),
    "a file for a mesh": (lambda: dg.Semidiscretization("a.msh", wave, dg.Solver(2)), r"dg\.read_mesh\(path"),
    "a flux by name": (lambda: dg.Solver(2, surface_flux="hllc"), r"surface_flux=dg\.hllc"),
    "a flux for a form": (lambda: dg.Solver(2, volume=dg.ranocha), r"dg\.FluxDifferencing\(dg\.ranocha\)"),
    "a number for a condition": (
        lambda: dg.Semidiscretization(dg.box(4), wave, dg.Solver(2), {"x_neg": 0.0, "x_pos": 0.0}),
        r"dg\.SlipWall\(\)",
    ),
    "a place by name": (
        lambda: dg.Semidiscretization(line, wave, dg.Solver(2), array="cuda"),
        r"array=mb\.CuArray",
    ),
    "two lengths of steps": (lambda: solved(cfl=0.5, dt=0.1), "Give one of them"),
    "a field that is not there": (lambda: solved(cfl=0.5).plot("rho"), "Its fields are u"),
    # (Programs)
    "sizes with a typo": (lambda: mb.compile(abs, sizes="all"), r'sizes="any"'),
    "a schedule by name": (lambda: mb.compile(abs, schedule="tiles"), r"Schedule\.load"),
    "a library of a function": (lambda: mb.compiling.build(mb.compile(abs), "f.so"), r"f\.program\(x, y\)"),
    "arrays for a program's file": (lambda: mb.load_program(__file__), r"mb\.load\(path\)"),
    "another place for a part of a program": (lambda: mb.compile(lambda a, b: a + b)(x, r), r"mb\.adapt"),
    "a host's array in a card's program": (
        lambda: mb.compile(lambda i: mb.arange(4.0)[i])(mb.RefArray([1, 0])),
        r"RefArray\[int64, 1\] of shape \(2,\) \(ref:0\)\. .*`mb\.adapt\(mb\.RefArray, x\)`",
    ),
    "a state that grows": (
        lambda: mb.compile(lambda a: mb.while_loop(lambda s: s[0] < 9, lambda s: mb.concat([s, s]), a))(x),
        "Start with an array of the shape",
    ),
    "a branch on many": (lambda: mb.cond(x > 1, lambda: x, lambda: -x), r"mb\.any\(x\)"),
    "arrays for branches": (lambda: mb.cond(x[0] > 1, x, -x), "lambda x: x"),
    # (Kernels)
    "a kernel without indices": (lambda: saxpy(x, 2.0, x), r"saxpy\[x\.shape\]"),
    "a kernel with an argument too few": (lambda: saxpy[3](x, 2.0), r"saxpy\[n\]\(y, a, x\)"),
    "half an index": (lambda: saxpy[3.5](x, 2.0, x), "made of integers"),
    "a kernel over two places": (lambda: saxpy[3](x, 2.0, r), r"mb\.adapt"),
    "a list for a kernel": (lambda: saxpy[3](x, 2.0, [1.0, 2.0, 3.0]), r"mb\.HostArray\(x\)"),
    "a kernel that gives something back": (lambda: gives_back[3](mb.zeros(3)), r"out\[i\] = value"),
    "a real index in a kernel": (lambda: at_halves[3](mb.zeros(3)), r"int\(\)"),
    "a kernel over fewer dimensions": (lambda: of_two[3](mb.zeros((3, 3))), r"of_two\[n, m\]"),
    "a card's array in a loop": (lambda: total(r), r"mb\.adapt\(mb\.HostArray, x\)"),
    "an array over processes in a loop": (lambda: total(D), r"total\(x\.local\)"),
    "an option of Numba": (lambda: mb.jit(abs, nopython=True), "Its options are"),
    # (Processes)
    "a number for a layout": (lambda: mb.DArray[mb.HostArray](x, layout=0), r"mb\.distributed\.Block\(0\)"),
    "a dimension that is not there": (lambda: mb.DArray[mb.HostArray](x, layout=block(3)), "the array has 1"),
    "a halo that is negative": (lambda: D.halo(-1), r"x\.halo\(1\)"),
    "a layout of what is not divided": (lambda: mb.distributed.redistribute(x, block(0)), r"layout=mb\.dist"),
    "a list to exchange": (lambda: mb.distributed.exchange([x]), r"exchange\(\{rank: x\}\)"),
    "a process that is not there": (lambda: mb.distributed.exchange({5: x}), r"mirabelle run -n 4"),
    "a sum by another name": (lambda: mb.distributed.allreduce(x, "add"), "'sum'"),
    "no length of steps": (lambda: dg.solve(semi, 1.0, lambda p, t: (mb.sin(p[0]),)), r"cfl=0\.8"),
    "a solution that is no tuple": (
        lambda: dg.solve(semi, 0.1, lambda p, t: mb.sin(p[0]), cfl=0.5),
        r"lambda x, t: \(0\.0,\)",
    ),
    # (Values)
    "a kind of error that is none": (lambda: mb.errstate(divid="ignore"), "divide, over"),
    "nothing that is done of errors": (lambda: mb.errstate(divide="foo"), "divide='ignore'"),
    "a number for truth values": (lambda: mb.copyto(x > 1, -1), r"y\.astype\(mb\.bool\)"),
    "a number for a function": (lambda: mb.generic(1), "def area"),
    "a number for the condition of a loop": (lambda: mb.while_loop(3, lambda s: s, x), "lambda s"),
    "percent above all": (lambda: mb.percentile(x, 120), r"mb\.quantile\(x, 0\.95\)"),
    "percent for fractions": (lambda: mb.quantile(x, 95), r"mb\.percentile\(x, 95\)"),
    "bins below none": (lambda: mb.histogram(x, bins=-2), "bins=10"),
    "a size below none": (lambda: mb.zeros(-3), "from 0 on"),
    "a mask of another shape": (lambda: A[mb.ones(3) > 0], r"x\[x > 0\]"),
    "a write by a mask of another shape": (lambda: put(A, mb.ones(3) > 0, 1.0), r"x\[x > 0\]"),
    "elements one by one": (lambda: mb.HostArray(3, 4), r"mb\.zeros\(\(2, 3\)\)"),
    "a step of nothing": (lambda: mb.arange(0, 1, 0), r"mb\.linspace"),
    "no arrays to join": (lambda: mb.concat([]), r"\[x, y\]"),
    "a fit of fewer values": (lambda: mb.polyfit(x, mb.ones(4), 1), "as many values"),
    "counts of what is below zero": (lambda: mb.bincount(-i), "from 0 on"),
    "the function behind the array": (lambda: mb.autodiff.gradient(x, mb.sum), "comes first"),
    "a number that is vectorized": (lambda: mb.vectorize(3), "lambda a"),
    # (Calls)
    "the larger of two": (lambda: mb.max(x, x), r"mb\.maximum\(x, y\)"),
    "the smaller of two numbers": (lambda: mb.min(1.0, 2.0), r"mb\.minimum\(x, y\)"),
    "an array of a generator": (lambda: mb.HostArray(v for v in x), r"mb\.HostArray\(list\(values\)\)"),
    "a sum of a generator": (lambda: mb.sum(v for v in x), r"mb\.HostArray\(list\(values\)\)"),
    "an array of a dictionary": (lambda: mb.HostArray({"a": 1.0}), r"d\.values\(\)"),
    "an array of a set": (lambda: mb.HostArray({1.0, 2.0}), r"sorted\(values\)"),
    "an array of nothing": (lambda: mb.HostArray(None), "without a `return`"),
    "a function of a text": (lambda: mb.abs("3"), r"float\(text\)"),
    "a text among the elements": (lambda: "a" in x, r"float\(text\)"),
    "edges out of order": (lambda: mb.histogram(x, bins=[3, 2, 1]), r"edges in order"),
    "real numbers to count": (lambda: mb.bincount(x * 1.0), r"x\.astype\(mb\.int64\)"),
    "a generator of NumPy's as a seed": (lambda: mb.random.default_rng(np.random.default_rng(1)), r"seed_seq"),
    "a text as a seed": (lambda: mb.random.default_rng("a"), r"from 0 on, several"),
    "a negative seed": (lambda: mb.random.default_rng(-3), r"from 0 on"),
    "the first half": (lambda: x[: len(x) / 2], r"n // 2"),
    "the rows of a number": (lambda: list(mb.sum(x)), r"float\(x\)"),
    "an array before the file": (lambda: mb.save(x, "a.npy"), r"mb\.save\('x\.npy', x\)"),
    "an array before its place": (lambda: mb.adapt(x, mb.RefArray), r"mb\.adapt\(mb\.CuArray, x\)"),
    "the place's name": (lambda: mb.adapt("cuda", x), r"mb\.adapt\(mb\.CuArray, x\)"),
    "a function after the array": (lambda: mb.apply_along_axis(x, 0, max), r"call it"),
    "half a degree": (lambda: mb.polyfit(x, x, 1.5), "whole number: `1`"),
    "a mode that is none": (lambda: mb.pad(x, 1, mode="zeros"), "constant, edge"),
    "a norm of a vector by name": (lambda: mb.linalg.norm(x, ord="fro"), "a norm of matrices"),
    "half a power of a matrix": (lambda: mb.linalg.matrix_power(A, 0.5), r"mb\.linalg\.logm"),
    "probabilities that are none": (lambda: rng.choice(3, p=[0.5, 0.1, 0.1]), r"p / mb\.sum\(p\)"),
    "NaN among integers": (lambda: put(i, 0, float("nan")), r"x\.astype\(mb\.float64\)"),
    "a complex number among real ones": (lambda: put(x, 0, 1j), r"x\.astype\(mb\.complex128\)"),
    "powers of integers below zero": (lambda: mb.materialize(i**-1), r"x\.astype\(float\)"),
    "where of two": (lambda: mb.where(x > 1, x), r"mb\.where\(mask, x, y\)"),
    "a method's type": (
        lambda: dg.solve(semi, 0.1, lambda p, t: (mb.sin(p[0]),), cfl=0.5, method=dg.RK4),
        r"dg\.RK4\(\)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_the_cure_in_three_frames(mistake):
    assert len(MISTAKES) >= 157
    program, cure = MISTAKES[mistake]
    with pytest.raises(Exception, match=cure) as caught:
        program()
    text = str(caught.value.args[0]).strip()  # (a KeyError shows its text in quotes)
    assert text.endswith((".", "`", "?", ")", "`.")) and len(text.split()) > 4
    frames = list(traceback.walk_tb(trimmed(caught.value.__traceback__)[0]))
    ours = [f for f, _ in frames if not is_users(f.f_code)]
    assert len(ours) <= KEPT
    # The line of the program stays, and so does the one that raised.
    all_of_them = list(traceback.walk_tb(caught.value.__traceback__))
    assert [f for f, _ in frames if is_users(f.f_code)] == [f for f, _ in all_of_them if is_users(f.f_code)]
    assert frames[-1][0] is all_of_them[-1][0]


# What Python says by itself, and a piece of the note that is added where it is shown.
NOTES = {
    "x.numpy()": "mb.to_numpy(x)",
    "r.get()": "mb.to_numpy(x)",
    "x.to('cuda')": "mb.adapt(mb.CuArray, x)",
    "x.block_until_ready()": "mb.materialize(x)",
    "x.at[0].set(1.0)": "x[i] = v",
    "x.clone()": "x.copy()",
    "mb.sum(x).backward()": "mb.autodiff.gradient(f, x)",
    "x.halo(1)": "mb.DArray[mb.HostArray](x)",
    "x.append(1.0)": "mb.append(x, ...)",
    "x.sume()": "x.sum",
    "x.__delitem__": "mb.delete(x, i)",
    "mb.fft.rft(x)": "mb.fft.rfft",
    "mb.autodiff.grad": "mb.autodiff.gradient",
    "mb.linalg.sovle(A, x)": "mb.linalg.solve",
    "x.T()": "no parentheses",
    "x(0)": "x[i]",
    "mb.HostArray(1, 2, 3)": "mb.HostArray([1, 2, 3])",
    "mb.sum(A, dim=0)": "`axis=`",
    "A.mean(axis=0, keepdim=True)": "`keepdims=`",
    "mb.zeros(size=3)": "`shape=`",
    "mb.compile(abs, size='any')": "`sizes=`",
    "mb.compile(abs, static_argnums=0)": "f, static, passes",
    "rng.normal(shape=3)": "loc, scale, size",
    "rng.normal(3, 4, 5, 6, 7)": "rng.normal(loc=0.0, scale=1.0, size=None",
    "rng.binomial(3)": "rng.binomial(n, p, size=None",
    "x.sum(0, 1, 2, 3, 4, 5, 6, 7)": "x.sum(axis=None",
    "dg.Solver(degree=3)": "`order=`",
    "md.loop(cells, add, whole=True)": "points, kernel, atomics",
    "x.values": "mb.to_numpy(x)",
    "x.length": "len(x)",
    "x.push(1.0)": "mb.concat([x, y])",
    "x.index(2.0)": "mb.argwhere",
    "x.apply(math.sin)": "mb.map(f, x)",
    "x.unsqueeze(0)": "x[:, None]",
    "A.permute(1, 0)": "x.transpose(1, 0)",
    "x.add_(1)": "x += y",
    "x.iloc": "x[i:j]",
    "setattr(x, 'shape', (3, 1))": "x = x.reshape(shape)",
    "{x: 1}": "tuple(x.tolist())",
    "x + None": "without a `return`",
    "x + '1'": "float(text)",
    "mb.maximum(x)": "mb.max(x)",
    "mb.hstack(x, x)": "mb.hstack([x, y])",
    "mb.full(3)": "mb.full(shape, fill_value, ",
    "mb.autodiff.gradient(mb.sum)": "mb.autodiff.gradient(f, x",
    "mb.HostArray()": "mb.zeros((2, 3))",
    "mb.mgrid(3)": "mb.mgrid[0:3, 0:4]",
    "mb.count().launches": "with mb.count(...) as c:",
    "mb.settings.threads": "mb.settings.num_threads",
    "mb.sum(x, axis=5)": "Its only axis is 0",
    "mb.cumsum(A, axis=5)": "axes are 0 to 1",
    "mb.flip(mb.sum(x), axis=0)": "leave axis= away",
    "x[5]": "0 to 2",
    "x[[0, 9]]": "0 to 2",
    "x[0, 0]": "x[:, None]",
    "mb.zeros(0)[0]": "x.size",
    "json.dumps(x)": "x.tolist()",
    "rng.randn(3)": "rng.normal(size=size)",
    "rng.seed(3)": "default_rng(seed)",
    "rng.poison(3)": "rng.poisson",
    # Not ours:
    "np.ones(3)[5]": "",
    "np.sum(np.ones(3), axis=5)": "",
    "json.dumps(rng)": "",
    "full()": "",
    "y.pi()": "",
    "1 + '1'": "",
    "{[]: 1}": "",
    "x.nothing_like_it": "",
    "{}.numpy": "",
    "print(axes=0)": "",
    "().index(dim=1)": "",
    "math.sinn": "",
    "(lambda: 0)(dim=1)": "",
    "1 + None": "",
}


@pytest.mark.parametrize("text", NOTES)
def test_what_python_says_is_given_the_cure_for_a_note(text):
    with pytest.raises((AttributeError, TypeError, ValueError, IndexError)) as caught:
        eval(text)
    for _ in range(2):
        add_advice(caught.value)
    notes = getattr(caught.value, "__notes__", [])
    assert len(notes) == bool(NOTES[text])
    assert not notes or (NOTES[text] in notes[0] and notes[0].endswith((".", "?")))


@pytest.mark.parametrize(
    "name, cure",
    [
        ("grad", "mb.autodiff.gradient"),
        ("vmap", "mb.broadcast"),
        ("asnumpy", "mb.to_numpy"),
        ("tensor", "mb.HostArray"),
        ("cuda", "mb.CuArray"),
        ("device", "device="),
        ("float", "mb.float64"),
        ("no_grad", "Nothing is recorded"),
    ],
)
def test_words_of_other_libraries_are_told_what_they_are_here(name, cure):
    with pytest.raises(AttributeError, match=rf"has no '{name}'\..*{cure}"):
        getattr(mb, name)


def test_every_cure_of_a_note_is_there():
    for text in [*advice._ELSEWHERE.values(), *(instead for _, instead in advice._ATTRIBUTES)]:
        for path in re.findall(r"mb\.([\w.]+)", text):
            thing = mb
            for part in path.rstrip(".").split("."):
                thing = getattr(thing, part)
    assert not set(advice._ELSEWHERE) & set(mb.__all__)


def test_a_value_that_is_called_is_named():
    for call, name in (
        (lambda: x.size(), "x.size"),
        (lambda: mb.pi(), "mb.pi"),
        (lambda: x.shape(), "x.shape"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        add_advice(caught.value)
        assert caught.value.__notes__ == [f"`{name}` is a value, and takes no parentheses."]


CELLS = ["mb.einsum('ij', mb.ones(3))", "mb.ones(3).numpy()", "1 / 0", "int('a'", "mb.sum(mb.ones(3), dim=0)"]


def test_a_cell_of_a_notebook_shows_as_few(tmp_path):
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    (tmp_path / "program.py").write_text(PROGRAM)
    code = f"""
        import json, sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="nocolor", xmode="Plain")
        shell.run_cell("import mirabelle as mb")
        shown = []
        shell._showtraceback = lambda kind, error, lines: shown.append("\\n".join(lines))
        for cell in {[*CELLS, CELLS[0]]!r}:
            ran = shell.run_cell(cell)
            shown.append(type(ran.error_in_exec or ran.error_before_exec).__name__)
        frames, step = 0, sys.last_traceback  # (what a debugger shows)
        while step is not None:
            frames, step = frames + 1, step.tb_next
        import os, warnings
        os.chdir({str(tmp_path)!r})
        warnings.simplefilter("ignore")  # (`%run -m` warns of each error)
        for run in ("%run program.py", "%run -m program", "%tb"):
            shell.run_cell(run)
        print(json.dumps([*shown, frames]))
    """
    assert interactive
    *said, run, of_module, again, frames = answer(code)
    einsum, numpy, zero, syntax, unknown = said[0::2][:5]
    assert said[1:10:2] == ["ValueError", "AttributeError", "ZeroDivisionError", "SyntaxError", "TypeError"]
    assert "Add letters" in einsum and einsum.count("File ") <= KEPT + 1
    assert "mb.to_numpy(x)" in numpy and "division by zero" in zero and "SyntaxError" in syntax
    assert "`axis=`" in unknown and frames > KEPT
    for text in (run, of_module, again):
        assert "Add letters" in text and "program.py" in text
        inside = [f for f in re.findall(r"File ([^\n:]+):", text) if "program.py" not in f and "runpy" not in f]
        assert inside and len(inside) <= KEPT, text


def test_errors_that_pass_through_nothing_of_ours_stay():
    def own():
        json.loads("{")

    with pytest.raises(ValueError) as caught:
        own()
    assert trimmed(caught.value.__traceback__) == (caught.value.__traceback__, 0)


def test_frames_of_callbacks_stay():
    def callback(u):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        mb.apply_along_axis(callback, 0, A)
    frames = [f.f_code.co_name for f, _ in traceback.walk_tb(trimmed(caught.value.__traceback__)[0])]
    assert frames[-1] == "callback" and sum(name not in ("callback", frames[0]) for name in frames) <= KEPT


PROGRAM = "import mirabelle as mb\nx = mb.HostArray([1.0])\nmb.einsum('ij', x)\n"


@pytest.mark.parametrize("full", ["0", "1"])
def test_what_a_terminal_shows(tmp_path, full, monkeypatch):
    monkeypatch.setenv("MIRABELLE_FULL_TRACEBACKS", full)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    frames = ran.stderr.count('  File "')
    assert ran.returncode == 1 and "program.py" in ran.stderr and "Add letters" in ran.stderr
    assert frames > KEPT + 1 if full == "1" else frames <= KEPT + 1
    assert ("MIRABELLE_FULL_TRACEBACKS=1 shows them" in ran.stderr) == (full == "0")


# Programs whose errors stand behind others, what is shown of them, and what is not.
CHAINS = {
    "caught inside": ("mb.percentile(mb.ones(3), 120)", ["mb.quantile"], ["During handling", "_thread._local"]),
    "two places": ("mb.RefArray([1.0]) * mb.HostArray([1.0])", ["mb.adapt"], ["During handling"]),
    "of the program": (
        "try:\n    mb.ones(3) + mb.ones(4)\nexcept ValueError as e:\n    raise RuntimeError('mine') from e",
        ["mine", "direct cause", "x[:, None]"], [],
    ),
    "while another is handled": (
        "try:\n    mb.ones(3) + mb.ones(4)\nexcept ValueError:\n    mb.percentile(mb.ones(3), 120)",
        ["During handling", "x[:, None]", "mb.quantile"], ["_thread._local"],
    ),
    "in a thread": (
        "from threading import Thread\nThread(target=lambda: mb.einsum('ij', mb.ones(3))).start()",
        ["Add letters", "Exception in thread"], [],
    ),
    "of a group": (
        "found = []\nfor n in (3, 4):\n    try:\n        mb.percentile(mb.ones(n), 120)\n"
        "    except ValueError as e:\n        found.append(e)\nraise ExceptionGroup('all', found)",
        ["mb.quantile", "all (2 sub-exceptions)"], ["_thread._local"],
    ),
    "of a callback": (
        "def own(row):\n    return {}['no']\nmb.apply_along_axis(own, 0, mb.ones((2, 2)))",
        ["KeyError", "in own"], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", CHAINS)
def test_errors_behind_errors_are_as_short(tmp_path, program):
    text, there, missing = CHAINS[program]
    file = tmp_path / "program.py"
    file.write_text(f"import mirabelle as mb\n{text}\n")
    said = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False).stderr
    assert all(t in said for t in there) and not any(t in said for t in missing)
    for trace in re.split("The above exception|During handling|Traceback", said):
        # (what was written by the user, or by threading, is not ours)
        ours = [
            f for f in re.findall(r'File "([^"]+)"', trace) if "program.py" not in f and "threading" not in f
        ]
        assert len(ours) <= KEPT


def test_what_is_shown_changes_no_error():
    try:
        mb.percentile(x, 120)
    except ValueError as e:
        error = e
    before = (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__)
    with few_frames(error, error.__traceback__) as shorter:
        assert error.__traceback__ is shorter is not before[0] and error.__cause__ is None is error.__context__
    assert (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__) == before
    error.__context__ = error.__cause__.__context__ = error  # (a ring ends)
    with few_frames(error, error.__traceback__):
        pass
    assert error.__context__ is error or error.__context__ is None


def test_a_ring_of_errors_of_ours_ends():
    def caught(n):
        try:
            mb.einsum("ij", mb.ones(n))
        except ValueError as e:
            e.__traceback__ = e.__traceback__.tb_next  # (from ours on, as what is caught inside)
            return e

    first, second = caught(3), caught(4)
    first.__context__, second.__context__ = second, first
    first.__cause__ = second.__cause__ = None
    before = (first.__traceback__, first.__context__, second.__context__)
    with few_frames(first, first.__traceback__):
        pass
    assert (first.__traceback__, first.__context__, second.__context__) == before


def test_an_interrupt_ends_a_process_by_its_signal():
    """(Shells end their loops where a program was ended by Ctrl-C.)"""
    code = "import mirabelle; raise KeyboardInterrupt"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == -signal.SIGINT and "KeyboardInterrupt" in ran.stderr
