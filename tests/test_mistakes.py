"""Typical mistakes: each is answered by a sentence with the cure, and by three frames of ours at most."""

import math
import subprocess
import sys
import traceback

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle import meshdata as md
from mirabelle.dispatch.linecounts import is_users
from mirabelle.dispatch.tracebacks import KEPT, trimmed

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


def loop(points, first=None, kernel=add):
    md.loop(points, kernel, md.READ(u, V.dofs) if first is None else first, md.INC(y, V.dofs))


# What a program does, and a piece of the sentence that says what to do instead.
MISTAKES = {
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
    "no length of steps": (lambda: dg.solve(semi, 1.0, lambda p, t: (mb.sin(p[0]),)), r"cfl=0\.8"),
    "a solution that is no tuple": (
        lambda: dg.solve(semi, 0.1, lambda p, t: mb.sin(p[0]), cfl=0.5),
        r"lambda x, t: \(0\.0,\)",
    ),
    "a method's type": (
        lambda: dg.solve(semi, 0.1, lambda p, t: (mb.sin(p[0]),), cfl=0.5, method=dg.RK4),
        r"dg\.RK4\(\)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_the_cure_in_three_frames(mistake):
    assert len(MISTAKES) >= 80
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


def test_errors_that_pass_through_nothing_of_ours_stay():
    def own():
        import json

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
