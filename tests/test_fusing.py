"""What one kernel computes, joins that are written where they belong, and sums of products as one product."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.graph import Update
from mirabelle.arraytypes.programs.joining import singly
from mirabelle.arraytypes.programs.steps import CopyStep, FoldStep, JoinedStep, KernelStep, ProductStep

pytestmark = pytest.mark.usefixtures("trees")

CELLS, NODES, FACES, POINTS, FIELDS = 600, 4, 4, 3, 5
rng = np.random.default_rng(8)


def given(*shape):
    return mb.HostArray(1 + rng.random(shape))


def program_of(f, *args):
    return mb.compile(f).program(*args)


def agrees(f, *args, near=1e-12):
    """The program, once its results are what the statements one by one give."""
    compiled = mb.compile(f)
    want = f(*args)
    want = want if isinstance(want, tuple) else (want,)
    want = [mb.to_numpy(mb.materialize(x)) for x in want]
    for _ in range(3):
        got = compiled(*args)
        got = got if isinstance(got, tuple) else (got,)
        for a, b in zip(got, want, strict=True):
            assert np.allclose(mb.to_numpy(a), b, rtol=near, atol=near * np.abs(b).max())
    return compiled.program(*args)


def gas(u):
    """The fluxes of a gas along three directions."""
    rho, *momentum, energy = u
    velocity = [m / rho for m in momentum]
    pressure = 0.4 * (energy - 0.5 * sum(m * v for m, v in zip(momentum, velocity, strict=True)))
    along = []
    for d in range(3):
        rest = [momentum[i] * velocity[d] + (pressure if i == d else 0.0) for i in range(3)]
        along.append((momentum[d], *rest, (energy + pressure) * velocity[d]))
    return along


class Gas:
    """A right-hand side as discontinuous elements have it: fluxes in cells and at faces, and one product."""

    def __init__(self):
        self.metric = given(3, 3, 1, CELLS)
        self.normal = given(3, FACES, 1, CELLS)
        self.own = mb.HostArray(rng.integers(0, NODES * CELLS, (FACES, POINTS, CELLS)).astype(np.int32))
        self.other = mb.HostArray(rng.integers(0, NODES * CELLS, (FACES, POINTS, CELLS)).astype(np.int32))
        self.matrices = [given(NODES, NODES) for _ in range(3)]
        self.lift = given(NODES, FACES * POINTS)
        self.whole = mb.concat([*self.matrices, self.lift], axis=1)

    def volume(self, u):
        flux = gas([u[i] for i in range(FIELDS)])
        return [
            [sum(self.metric[r, d] * flux[d][i] for d in range(3)) for i in range(FIELDS)] for r in range(3)
        ]

    def surface(self, u):
        inside = [mb.reshape(u[i], (-1,))[self.own] for i in range(FIELDS)]
        outside = [mb.reshape(u[i], (-1,))[self.other] for i in range(FIELDS)]
        a, b = gas(inside), gas(outside)
        return [
            sum(self.normal[d] * (a[d][i] + b[d][i]) for d in range(3)) - 2.0 * (outside[i] - inside[i])
            for i in range(FIELDS)
        ]

    def into_memory(self, u):
        volume, surface = self.volume(u), self.surface(u)
        flux = mb.empty((FIELDS, 3 * NODES + FACES * POINTS, CELLS))
        for i in range(FIELDS):
            for r in range(3):
                flux[i, r * NODES : (r + 1) * NODES] = volume[r][i]
            flux[i, 3 * NODES :] = mb.reshape(surface[i], (-1, CELLS))
        return self.whole @ flux

    def joined(self, u):
        volume, surface = self.volume(u), self.surface(u)
        rows = [
            mb.concat([*[v[i] for v in volume], mb.reshape(surface[i], (-1, CELLS))]) for i in range(FIELDS)
        ]
        return self.whole @ mb.stack(rows)

    def by_terms(self, u):
        volume, surface = self.volume(u), self.surface(u)
        lifted = self.lift @ mb.reshape(mb.stack(surface), (FIELDS, -1, CELLS))
        return sum(self.matrices[r] @ mb.stack(volume[r]) for r in range(3)) + lifted

    def stage(self, u, k, dt):
        k = 0.5 * k + dt * self.by_terms(u)
        return u + 0.25 * k, k


@pytest.mark.parametrize("form", ["into_memory", "joined", "by_terms"])
def test_fluxes_are_two_kernels_and_one_product(form):
    problem, u = Gas(), given(FIELDS, NODES, CELLS)
    program = agrees(getattr(problem, form), u)
    volume, surface, product = singly(program.plan.steps)
    results = [len(step.dests) for step in (volume, surface)]
    assert sorted(results) == [FIELDS, 3 * FIELDS] and isinstance(product, ProductStep)
    # Each reads the fields, the metric and the indices once; what is written is what the product reads.
    joined = FIELDS * (3 * NODES + FACES * POINTS) * CELLS * 8
    assert sum(w.nbytes for step in (volume, surface) for w in step.writes) == joined
    fields, few = u.nbytes, (9 + 3 * FACES) * CELLS * 8 + 2 * FACES * POINTS * CELLS * 4
    read = sum(r.nbytes for r in {r.key: r for s in (volume, surface) for r in s.reads if not r.table}.values())
    assert read == fields + few
    assert program.plan.arena_bytes == -(-joined // 64) * 64


def test_a_stage_is_one_kernel_more():
    problem, dt = Gas(), mb.HostArray(np.array(0.01))
    u, k = given(FIELDS, NODES, CELLS), given(FIELDS, NODES, CELLS)
    program = agrees(problem.stage, u, k, dt)
    steps = [type(step) for step in singly(program.plan.steps)]
    assert steps == [KernelStep, KernelStep, ProductStep, KernelStep]
    assert len(program.plan.steps[-1].dests) == 2


def test_programs_are_saved_with_kernels_of_several_results(tmp_path):
    problem, u = Gas(), given(FIELDS, NODES, CELLS)
    program = mb.compile(problem.by_terms).program(u)
    program.save(tmp_path / "gas.program")
    again = mb.load_program(tmp_path / "gas.program")
    assert np.array_equal(mb.to_numpy(again(u)), mb.to_numpy(mb.compile(problem.by_terms)(u)))
    assert "1 joint kernel, 1 product" in str(program.explain())


def test_launches_are_counted():
    problem, u = Gas(), given(FIELDS, NODES, CELLS)
    compiled = mb.compile(problem.joined)
    with mb.settings.changed(compiler="inline"):
        compiled(u)
        compiled(u)
        with mb.count() as counted:
            compiled(u)
    assert counted.launches <= 3  # (BLAS has kernels, too)


# Kernels


def test_what_several_results_share_is_computed_once_in_one_kernel():
    def f(x, y):
        t = mb.sqrt(x) / y
        return t + 1, t * x, t - y, t * t, y / t, t + x, t * 3, t - 2

    (step,) = agrees(f, given(90), given(90)).plan.steps
    assert len(step.dests) == 8 and step.name.count("sqrt") == 1


def test_a_value_that_others_read_later_is_stored_by_the_kernel_that_computes_it():
    def f(x, d):
        t = mb.exp(x)
        return d @ (t + 1), t * 2 + (d @ (t - 1))

    steps = agrees(f, given(20, 6), given(20, 20)).plan.steps
    assert [len(s.dests) for s in steps if isinstance(s, KernelStep) and "exp" in s.name] in ([2], [3])
    assert sum(s.name.count("exp") for s in steps) == 1


def test_kernels_do_not_wait_for_themselves():
    # (b reads all of what is made of a: it cannot be computed with it)
    def f(x):
        a = x * 2
        s = mb.sum(a)
        b = x * s
        return a, b, a + b

    steps = agrees(f, given(50)).plan.steps
    assert len(steps) == 3


def test_neighbours_of_a_result_are_read_after_it_is_written():
    def f(x):
        a = mb.sin(x)
        return a, a[1:] - a[:-1], a * 2

    steps = agrees(f, given(50)).plan.steps
    assert [len(s.dests) for s in steps] == [2, 1]


def test_writes_wait_for_those_who_read_what_was_there():
    def f(a, b):
        old = a[1:] - a[:-1]
        a[...] = a * 2 + b
        b[...] = b + 1
        return old + mb.sum(b)

    for _ in range(2):
        a, b = given(40), given(40)
        x, y = mb.to_numpy(a), mb.to_numpy(b)
        got = mb.compile(f)(a, b)
        old, x = x[1:] - x[:-1], x * 2 + y
        y = y + 1
        assert np.allclose(mb.to_numpy(got), old + y.sum())
        assert np.allclose(mb.to_numpy(a), x) and np.allclose(mb.to_numpy(b), y)


def test_pieces_of_an_argument_that_are_read_elsewhere_are_not_overwritten_early():
    def f(a, b):
        a[:3] = b[:3] + a[3:6]
        a[3:6] = b[3:6] + a[:3]
        return mb.sum(a)

    a, b = given(6), given(6)
    x, y = mb.to_numpy(a), mb.to_numpy(b)
    for _ in range(3):
        x[:3] = y[:3] + x[3:6]
        x[3:6] = y[3:6] + x[:3]
    compiled = mb.compile(f)
    for _ in range(3):
        compiled(a, b)
    assert np.allclose(mb.to_numpy(a), x)


def test_kernels_are_not_too_large():
    def f(x):
        return tuple(mb.sin(x * k) for k in range(40))

    steps = agrees(f, given(30)).plan.steps
    assert max(len(s.dests) for s in steps) <= 16 and len(steps) <= 4


def test_sums_of_different_values_are_one_reduction():
    def f(x, y):
        a, b = x[:, None] * y, mb.sqrt(x[:, None]) + y
        return mb.stack(
            [mb.sum(a * b, axis=0), mb.sum(a / b, axis=0), mb.max(a + b, axis=0), mb.sum(a, axis=0)]
        )

    program = agrees(f, given(20), given(20, 50))
    folds = [s for s in program.plan.steps if isinstance(s, FoldStep)]
    assert [len(s.dests) for s in folds] == [4] and folds[0].name == "sum_sum_max_sum"
    assert program.plan.arena_bytes < 20 * 50 * 8  # (none of what is summed is in memory)


def test_sums_along_other_axes_are_others():
    def f(x, y):
        t = x * y + 1
        return mb.sum(t, axis=0), mb.sum(t * x, axis=0), mb.sum(t, axis=1), mb.sum(t - y), mb.sum(t), mb.max(t)

    agrees(f, given(30, 40), given(30, 40))


def test_what_the_same_kernels_need_is_not_stored_value_by_value():
    places = mb.HostArray(rng.permutation(4000).astype(np.int32))

    def f(u, d):
        fields = [u[i][places] for i in range(5)]
        velocity = [fields[i] / fields[0] for i in (1, 2, 3)]
        # (both read much of the same, and one needs a product of the other's)
        one = mb.stack([sum(velocity), *velocity, fields[4] * velocity[0]])
        two = d @ one
        return mb.stack([two[i] + v * f for i, (v, f) in enumerate(zip(velocity, fields, strict=False))])

    program = agrees(f, given(5, 4000), given(5, 5))
    assert program.plan.arena_bytes <= 5 * 4000 * 8 + 64
    assert {w.storage.kind for s in program.plan.steps for w in s.writes} <= {"temporary", "made", "output"}


# Joins


def test_joins_of_joins_are_written_once():
    def f(a, b):
        return mb.stack([mb.concat([a * k, b + k]) for k in range(1, 4)])

    program = agrees(f, given(6, 20), given(5, 20))
    assert all(w.storage.kind == "output" for s in program.plan.steps for w in s.writes)
    assert len(singly(program.plan.steps)) == 2 and program.plan.arena_bytes == 0


def test_joins_of_joins_along_other_axes():
    def f(a, b):
        inner = [mb.stack([a * k, b - k], axis=1) for k in range(2, 4)]
        rows = [mb.concat([a + k * b, a - k * b], axis=1) for k in range(2, 4)]
        return mb.concat([mb.concat(inner, axis=2), mb.stack(rows, axis=1)], axis=0)

    program = agrees(f, given(5, 4), given(5, 4))
    assert program.plan.arena_bytes == 0
    assert not any(isinstance(s, CopyStep) or s.name == "copy" for s in program.plan.steps)


def test_what_is_joined_and_read_twice_is_in_memory():
    def f(a, b):
        row = mb.concat([a * 2, b * 2])
        return mb.stack([row, row[::-1]]), mb.sum(row)

    agrees(f, given(6), given(6))


def test_writes_over_one_another_stay_in_order():
    def f(a, b):
        out = mb.empty((2, 8))
        row = mb.zeros(8)
        row[1:7] = a * 2
        row[2:4] = b
        out[0] = row
        out[1] = a[0] + 1
        out[0, :2] = b * 3
        return out

    agrees(f, given(6), given(2))


# Sums of products


def product_names(program):
    return [s.name for s in program.plan.steps if isinstance(s, ProductStep)]


@pytest.mark.parametrize("shape", [(9, 4000), (3, 9, 400), (2, 3, 9, 400)])
def test_sums_of_products_are_one_product(shape):
    a, b, c = given(7, 9), given(7, 9), given(7, 9)

    def f(x, y):
        return -(a @ (x + 1)) + (b @ (y * 2) - 0.5 * (c @ (x * y)))

    program = agrees(f, given(*shape), given(*shape))
    assert [type(s) for s in program.plan.steps] == [KernelStep, ProductStep]
    assert program.plan.steps[1].operands[0].shape == (7, 27)


def test_sums_of_products_from_the_right():
    a, b = given(9, 7), given(5, 7)
    program = agrees(lambda x, y: (x + 1) @ a + (y + 1) @ b, given(80, 9), given(80, 5))
    assert product_names(program) == ["matmul"] and program.plan.steps[-1].operands[1].shape == (14, 7)


def test_what_lies_next_to_each_other_is_not_copied():
    a, b = given(7, 9), given(7, 9)
    program = agrees(lambda x: a @ x[0] + b @ x[1], given(2, 9, 4000))
    assert [type(s) for s in program.plan.steps] == [ProductStep]


def test_products_that_are_read_elsewhere_stay():
    a, b = given(7, 9), given(7, 9)

    def f(x, y):
        p = a @ (x + 1)
        return p + b @ (y + 1), p

    assert len(product_names(agrees(f, given(9, 4000), given(9, 4000)))) == 2


def test_matrices_may_be_arguments():
    def f(a, b, x, y):
        return a @ (x + 1) + b @ (y + 1)

    program = agrees(f, given(7, 9), given(7, 5), given(9, 4000), given(5, 4000))
    assert product_names(program) == ["matmul"]


def test_sums_of_products_and_other_things():
    a, b = given(7, 9), given(7, 9)
    program = agrees(lambda x, y: a @ (x + 1) + b @ (y + 1) + y[:7], given(9, 4000), given(9, 4000))
    assert product_names(program) == ["matmul"]
    agrees(lambda x, y: a @ (x + 1) + y[:7] + b @ (y + 1), given(9, 4000), given(9, 4000))
    agrees(lambda x: a @ x + a @ x, given(9, 4000))
    agrees(lambda x: a @ x - a @ x, given(9, 4000))


def test_pieces_of_one_shape_follow_one_another():
    def f(x, y):
        out = mb.empty((8, 30))
        for k in range(2):
            out[4 * k] = x * (k + 1)
            out[4 * k + 1 : 4 * k + 4] = y + k
        return out

    program = agrees(f, given(30), given(3, 30))
    assert [len(s.dests) for s in singly(program.plan.steps)] == [2, 2]
    assert all(isinstance(x, Update) for s in program.plan.steps for x in s.nodes)


def test_products_in_operations_of_several_numbers():
    a, b = given(7, 9), given(7, 9)
    agrees(lambda x: mb.clip(a @ x, 0.0, 5.0) + mb.where(b @ x > 3.0, b @ x, 1.0), given(9, 4000))
    agrees(lambda x: mb.clip(a @ x, 0.0, 5.0) + 3 * (b @ x), given(9, 4000))


def test_walls_of_one_size_are_a_kernel_each():
    """They read the same memory through different indices, and share nothing else: a launch is all of them."""
    from mirabelle import dg

    mesh, gas_ = dg.box((3, 3, 3), cell="hexahedron"), dg.CompressibleEuler(3)
    semi = dg.Semidiscretization(mesh, gas_, dg.Solver(1), dict.fromkeys(mesh.boundaries, dg.SlipWall()))
    u = semi.state(lambda x, t: gas_.conservative((1 + 0.1 * x[0], 0.1, 0.2, 0.3, 1.0)))
    steps = mb.compile(semi.rhs).program(u, semi.scalar(0.0)).plan.steps
    assert [len(s.dests) for s in singly(steps)].count(5) == 7  # six walls, and all faces
    assert [len(s.members) for s in steps if isinstance(s, JoinedStep)] == [6]
    assert len(steps) <= 6


def test_narrow_convolutions_are_products():
    def convolved(x, w):
        out = mb.empty((2, 20, 20, w.shape[-1]))
        for i in range(20):
            for j in range(20):
                out[:, i, j, :] = mb.sum(x[:, i : i + 5, j : j + 5, :, None] * w[None], axis=(1, 2, 3))
        return out

    for columns, expected in ((6, ["matmul"]), (1, [])):
        program = agrees(convolved, given(2, 24, 24, 1), given(5, 5, 1, columns))
        assert product_names(program) == expected
