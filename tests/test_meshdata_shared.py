"""Programs of one process, with nothing but the constructor of arrays swapped: the mesh is whole on each."""

import os
import pathlib
import runpy

import numpy as np
import pytest
from ranks.launch import missing, run
from test_meshdata_loops import by_hand, random_column_loop, random_loop
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

HERE = pathlib.Path(__file__).parent
GIVEN = runpy.run_path(str(HERE / "mpi_programs" / "sharedmeshes.py"))
CHECKS, SOME, DIVIDED = GIVEN["CHECKS"], GIVEN["SOME"], GIVEN["DIVIDED"]


@pytest.mark.parametrize("check", CHECKS)
def test_on_threads(check):
    on_ranks(2, CHECKS[check])


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_on_processes(ranks):
    """Each whole program: Poisson of all orders with and without a matrix, Stokes, elasticity, gas."""
    ended = run(ranks, str(HERE / "mpi_programs" / "sharedmeshes.py"))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(f"fine: {len(SOME)} checks") == ranks, ended.stdout


# Whatever the loop, and however arrays are divided


def some_layout(rng, shape, ranks):
    """Of rows in runs, of rows with any process, of columns, or of none."""
    owners = rng.integers(0, ranks, shape[0] if shape else 0)
    kinds = [mb.distributed.Block(0), mb.distributed.Listed.of(0, owners, ranks), mb.distributed.Replicated()]
    if len(shape) > 1:
        kinds.append(mb.distributed.Block(1))
    return kinds[rng.integers(len(kinds))]


def one_of_all(seed, kind, ranks):
    """A random loop on a mesh that all have, some of whose arrays are divided somehow."""

    def some_loop(rng):
        return random_column_loop(rng) if seed % 3 == 2 else random_loop(rng, kind)

    points, kernel, accesses = some_loop(np.random.default_rng(seed))
    if not any(a.intent.writes and not a.whole for a in accesses):
        return
    wanted = by_hand(points, kernel, *accesses)
    family = mb.DArray[getattr(mb, kind)]

    def program(comm):
        rng = np.random.default_rng(seed)
        points, kernel, accesses = some_loop(rng)
        moved = []
        for a in accesses:
            x = a.array
            if hasattr(x, "shape") and (a.intent.writes or rng.integers(0, 2)):
                # (Sums over all points are in a small array that all have, or is divided.)
                x = family(x) if not x.shape else family(x, layout=some_layout(rng, x.shape, comm.size))
            elif hasattr(x, "shape"):
                x = family.inner(x)
            moved.append(type(a)(a.intent, x, a.through, a.whole))
        md.loop(points, kernel, *moved)
        return [mb.to_numpy(a.array) if hasattr(a.array, "shape") else None for a in moved]

    for found in on_ranks(ranks, program):
        for got, want in zip(found, wanted, strict=True):
            if got is not None:
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_loops(ranks):
    for seed in range(3 * ranks - 2):
        one_of_all(seed, "HostArray", ranks)


def test_random_loops_on_fake_cards():
    for seed in range(2):
        one_of_all(100 + seed, "RefArray", 2)


# Whatever is done one after the other: what is pending, and which ghosts hold


def some_mesh(rng):
    n, m = (int(k) for k in rng.integers(1, 4, 2))
    square, quads = md.unit_square(n, m), md.unit_square(n, m, shape="quadrilateral")
    k = quads.points("cell").size // 2
    several = {"quadrilateral": quads.cells["quadrilateral"][:k], "triangle": square.cells["triangle"][2 * k :]}
    return [
        lambda: md.interval(n * m + 1), lambda: square, lambda: quads, lambda: md.unit_cube(1),
        lambda: md.Mesh(square.coordinates, {s: c for s, c in several.items() if len(c)}),
    ][rng.integers(5)]()  # fmt: skip


INTENTS = [md.INC, md.INC, md.WRITE, md.WRITE, md.RW, md.MIN_RW, md.MAX_RW, md.MIN_WRITE, md.MAX_WRITE]


class Statements:
    """A random program on a mesh: loops of all kinds over all kinds of points, and what stands between them."""

    def __init__(self, seed, parted, length=10):
        self.rng = rng = np.random.default_rng(seed)
        self.mesh, self.parted = some_mesh(rng), parted
        self.dim = {c: self.mesh.topology.dim_of(c) for c in self.mesh.topology.shapes}
        self.kinds = [c for c in self.dim if self.mesh.points(c).size]
        self.components = {f"{c}{i}": c for c in self.kinds for i in range(2)}
        self.block = {x: tuple(int(b) for b in rng.integers(1, 3, rng.integers(0, 2))) for x in self.components}
        self.start = {
            x: rng.integers(0, 9, (self.mesh.points(c).size, *self.block[x])).astype(float)
            for x, c in self.components.items()
        }
        self.lines = [self.loop() if rng.random() < 0.7 else self.other() for _ in range(length)]

    def loop(self):
        rng = self.rng
        if rng.random() < 0.2 and self.mesh.topology.dim > 1:
            return self.loop_of_pairs()
        source = str(rng.choice(self.kinds))
        names = [str(x) for x in rng.permutation(list(self.components))]
        names = [x for x in names if self.ways(source, self.components[x])][: rng.integers(2, 5)]
        writes = max(1, len(names) // 2)
        accesses = []
        for i, x in enumerate(names):
            intent = INTENTS[rng.integers(len(INTENTS))] if i < writes else md.READ
            way = str(rng.choice(self.ways(source, self.components[x])))
            if intent is md.RW and way != "own":
                intent = md.INC
            table = None
            if way == "table":
                size, n = self.mesh.points(self.components[x]).size, self.mesh.points(source).size
                table = rng.integers(-1, size, (n, int(rng.integers(1, 4))))
            accesses.append((intent, x, way, table))
        some = None
        if rng.random() < 0.3:
            some = np.flatnonzero(rng.random(self.mesh.points(source).size) < 0.6)
            some = some if self.parted or rng.random() < 0.5 else rng.permutation(some)
        return "loop", source, accesses, some, [int(w) for w in rng.integers(1, 4, 64)]

    def loop_of_pairs(self):
        """A loop within a loop: over points, and over what each leads to, as many as there are."""
        rng = self.rng
        cells = [c for c in self.kinds if self.dim[c] == self.mesh.topology.dim]
        outer, inner = "vertex", str(rng.choice(cells))
        if rng.random() < 0.3:
            outer, inner = inner, outer
        accesses = []
        for i, x in enumerate(x for x in self.components if self.components[x] in (outer, inner)):
            intent = md.READ if i % 2 else [md.INC, md.INC, md.WRITE, md.MIN_RW, md.MAX_WRITE][rng.integers(5)]
            accesses.append((intent, x, "second" if self.components[x] == inner else "first", None))
        return "loop", (outer, inner), accesses, None, [int(w) for w in rng.integers(1, 4, 64)]

    def ways(self, source, target):
        if source == target:
            return ["own"] if self.parted else ["own", "own", "table"]
        if self.dim[source] > self.dim[target]:
            there = target in {p.component for p in self.mesh.closure(source).targets}
            return ["closure"] if there else []
        if self.parted:
            return []
        up = {p.component for p in self.mesh.star(source).targets}
        return ["table", "star", "around"] if target in up else ["table"]

    def other(self):
        rng = self.rng
        x = str(rng.choice(list(self.components)))
        alike = [y for y in self.components if (self.components[y], self.block[y]) ==
                 (self.components[x], self.block[x])]  # fmt: skip
        what = str(rng.choice(["fill", "add", "lazy", "copy", "sum", "own", "look"]))
        return what, x, str(rng.choice(alike)), int(rng.integers(-3, 4))

    def run(self, make, mesh, loop, numbers=None, look=lambda x, y: None):
        """Everything, on arrays that are made so; `look` is shown some of them meanwhile."""
        arrays = {x: make(self.components[x], v) for x, v in self.start.items()}
        held = []
        for line in self.lines:
            if line[0] != "loop":
                what, x, y, number = line
                if what == "fill":
                    arrays[x][...] = float(number)
                elif what == "add":
                    arrays[x] += number * arrays[y]
                elif what == "lazy":
                    held.append((self.components[x], arrays[x] * 2.0 + arrays[y]))
                elif what == "copy":
                    arrays[x] = arrays[y] * 1.0
                elif what == "sum":
                    held.append((None, (arrays[x] * 1.0).sum()))
                elif what == "own":
                    arrays[x] = arrays[x] - number
                else:
                    look(self.components[x], arrays[x])
                continue
            _, source, accesses, some, weights = line
            kernel, given = self.kernel(accesses, weights), []
            if isinstance(source, tuple):
                lead = mesh.star if self.dim[source[0]] < self.dim[source[1]] else mesh.closure
                points, *ends = md.pairs(lead(*source))
                given = [intent(arrays[x], ends[way == "second"]) for intent, x, way, _ in accesses]
            else:
                points = mesh.points(source)
                for intent, x, way, table in accesses:
                    given.append(intent(arrays[x], self.through(mesh, source, self.components[x], way, table)))
            if some is not None:
                chosen = some if numbers is None else np.isin(numbers(source), some)
                points = points.subset(chosen)
            loop(points, kernel, *given)
        return [*arrays.items(), *held]

    def through(self, mesh, source, target, way, table):
        if way == "own":
            return None
        if way == "table":
            return md.Dofs(mesh.points(source), table, mesh.points(target).size)
        if way == "closure":
            return mesh.closure(source, target)
        found = mesh.star(source, target).padded()
        if way == "around":  # (back, and there again: composed, with nothing at nothing)
            back = mesh.closure(target, source)
            found = found(back)(found) if found.arity * back.arity * found.arity < 20 else found
        return found

    def kernel(self, accesses, weights):
        gathers = [intent in (md.READ, md.RW) for intent, *_ in accesses]
        writes = [intent is not md.READ for intent, *_ in accesses]

        def mixed(*given):
            total = 0.0
            for i, x in enumerate(given):
                if gathers[i]:
                    for j, e in enumerate(np.ravel(x)):
                        total = total + np.minimum(np.maximum(e, -30.0), 30.0) * weights[(i + j) % 64]
            total = np.minimum(np.maximum(total, -30.0), 30.0)
            for i, y in enumerate(given):
                if writes[i]:
                    for j, at in enumerate(np.ndindex(y.shape)):
                        y[at] = total * weights[(i * 7 + j) % 64] + j

        scope = {"mixed": mixed}
        names = ", ".join(f"x{i}" for i in range(len(accesses)))
        exec(f"def kernel({names}):\n    mixed({names})", scope)
        return scope["kernel"]


def loop_by_hand(points, kernel, *accesses):
    tables = []
    for a in accesses:
        through = a.through
        if hasattr(through, "target"):
            to = next(iter(through.targets))
            through = md.Dofs(through.source, through.target().table, to.size)
        tables.append(type(a)(a.intent, a.array, through, a.whole))
    for a, found in zip(accesses, by_hand(points, kernel, *tables), strict=True):
        a.array[...] = found


def one_after_the_other(seed, kind, ranks, parted):
    program = Statements(seed, parted)
    wanted = program.run(lambda _, v: v.copy(), program.mesh, loop_by_hand)
    owner = np.random.default_rng(seed).integers(0, ranks, sum(map(len, program.mesh.cells.values())))
    array, overlap = mb.DArray[getattr(mb, kind)], seed % 2

    def of_parts(comm):
        part = md.part(program.mesh, owner if seed % 3 else None, overlap=overlap)

        def make(c, v):
            return part.divided(c, array.inner(v[part.numbers(c)]))

        found = program.run(make, part.mesh, md.loop, part.numbers, lambda c, x: x.local)
        return [
            (
                c,
                mb.to_numpy(x)
                if c is None
                else (
                    program.components.get(c, c),
                    part.numbers(program.components.get(c, c)),
                    mb.to_numpy(part.local(program.components.get(c, c), x)),
                ),
            )
            for c, x in found
        ]

    def of_all(comm):
        rng, mesh = np.random.default_rng(seed), md.Mesh(program.mesh.coordinates, program.mesh.cells)
        found = program.run(
            lambda c, v: array(v, layout=some_layout(rng, v.shape, comm.size)), mesh, md.loop,
            look=lambda c, x: x.local,
        )  # fmt: skip
        return [(c, mb.to_numpy(x)) for c, x in found]

    for found in on_ranks(ranks, of_parts if parted else of_all):
        for (name, want), (_, got) in zip(wanted, found, strict=True):
            if isinstance(got, tuple):
                _, numbers, got = got
                want = want[numbers]
            np.testing.assert_array_equal(got, want, err_msg=f"{name}")


def compiled_and_not(seed, kind):
    """The same on one process, as it is and as a compiled program."""
    program = Statements(seed, False)
    wanted = program.run(lambda _, v: v.copy(), program.mesh, loop_by_hand)
    family = getattr(mb, kind)

    def run(*arrays):
        given = iter(arrays)
        return tuple(x for _, x in program.run(lambda c, v: next(given) * 1.0, program.mesh, md.loop))

    for f in (run, mb.compile(run)):
        for _ in range(2):
            for (name, want), got in zip(wanted, f(*map(family, program.start.values())), strict=True):
                np.testing.assert_array_equal(mb.to_numpy(got), want, err_msg=f"{name}")


@pytest.mark.parametrize("kind", ["HostArray", "RefArray", "CuArray"])
def test_statements_compiled_and_not(kind):
    compiled_and_not(308, kind)


@pytest.mark.parametrize("parted", [False, True])
def test_statements_one_after_the_other(parted):
    """(`python -m tests.soak_meshloops 500 0 3` runs others: these were wrong.)"""
    seed = 706 if parted else 20
    one_after_the_other(seed, "HostArray", 2, parted)


# Whatever the mesh and the space


SPACES = [
    (lambda: md.interval(7), "DP", 1, None), (lambda: md.unit_square(3), "P", 2, None),
    (lambda: md.unit_square(3), "P", 1, 2), (lambda: md.unit_square(2), "RT", 1, None),
    (lambda: md.unit_square(3, shape="quadrilateral"), "Q", 2, 2), (lambda: md.unit_cube(1), "P", 3, None),
    (lambda: md.interval(2), "P", 2, 3),
]  # fmt: skip


def mixing(x, u, y):
    s = x[0, 0] + 1
    for i in range(u.shape[0]):
        y[i] += s * u[i] + u[(i + 1) % u.shape[0]]


def spread(u, K):
    for i in range(u.shape[0]):
        K[i, i] += 2 * u[i]
        K[i, (i + 1) % u.shape[0]] -= u[i]


def some_space(rng):
    """A mesh, and what is on it."""
    n, m = (int(k) for k in rng.integers(1, 4, 2))
    make, families = [
        (lambda: md.interval(n * m), [("P", 3), ("DP", 2)]),
        (lambda: md.unit_square(n, m), [("P", 3), ("DP", 1), ("RT", 1), ("N", 1)]),
        (lambda: md.unit_square(n, m, shape="quadrilateral"), [("Q", 2), ("Q", 1)]),
        (lambda: md.unit_cube(1), [("P", 2), ("DP", 0)]),
    ][rng.integers(4)]
    family, degree = families[rng.integers(len(families))]
    components = None if family in ("RT", "N") or rng.integers(2) else int(rng.integers(1, 3))
    return make, family, degree, components


def of_a_space(seed, all_ranks, space=None):
    rng = np.random.default_rng(seed)
    make, family, degree, components = space or some_space(rng)
    whole = make()
    cells = rng.permutation(whole.points("cell").size)
    whole = whole.renumbered(cells=cells, vertices=rng.permutation(len(whole.coordinates)))

    def program(array, rows):
        """Vectors that are divided as the space is, and as arrays are."""
        mesh = md.Mesh(whole.coordinates, whole.cells)
        V = md.space(mesh, family, degree, components=components)
        numbers = np.round(np.sin(np.arange(V.tree.size)), 3)
        x, corners = array(mesh.coordinates), mesh.closure("cell", "vertex")
        u, y = V.function(numbers, array), V.zeros(array)
        md.loop(mesh.points("cell"), mixing, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
        v, z = array(numbers), array(np.zeros(V.tree.size))
        if array is mb.HostArray:
            v, z = md.wrap(V.tree, v), md.wrap(V.tree, z)
        md.loop(mesh.points("cell"), mixing, md.READ(x, corners), md.READ(v, V.dofs), md.INC(z, V.dofs))
        found = [y, z, mb.sum(y * z)]
        if components is None:
            A = md.pattern(V.dofs).matrix(array=array)
            md.loop(mesh.points("cell"), spread, md.READ(u, V.dofs), md.INC(A.data, A.dofs))
            md.dirichlet(A, y, rows, 2.0, symmetric=False)
            found += [A @ u, A @ v, y, A.to_scipy().toarray()]
            if array is mb.HostArray:
                found += [A.to_scipy().T @ found[1], A.to_scipy().T @ found[0]]
            else:
                found += [A.T @ z, y @ A]
        return [x if isinstance(x, np.ndarray) else mb.to_numpy(getattr(x, "parent", x)) for x in found]

    size = md.space(whole, family, degree, components=components).tree.size
    rows = np.unique(rng.integers(0, size, 5))
    wanted = program(mb.HostArray, rows)
    for ranks in all_ranks:
        for found in on_ranks(ranks, lambda comm: program(DIVIDED, rows)):
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("which", range(len(SPACES)))
def test_spaces(which):
    of_a_space(which, (1, 2, 3), SPACES[which])


# What points write, and derivatives


@pytest.mark.parametrize("divided_before", [False, True])
def test_the_last_point_that_writes_an_entry_has_it(divided_before):
    """Also where the process that owns the entry runs no point that writes it."""
    whole, rng = md.unit_square(4), np.random.default_rng(3)
    chosen, owner = rng.permutation(32)[:11], rng.integers(0, 3, 32)

    def program(array, mesh, numbers, part=None):
        V, here = md.space(mesh, "P", 1), np.isin(numbers, chosen)
        some = mesh.points("cell").subset(here)
        u = V.interpolate(lambda x: x[..., 0] * 0 - 1, array)
        of = array(numbers * 1.0) if part is None else part.divided("cell", numbers * 1.0)
        md.loop(some, numbered, md.READ(of), md.WRITE(u, V.dofs))
        return V.evaluate(u, whole.coordinates)

    wanted = program(mb.HostArray, whole, np.arange(32))

    def over(comm):
        if not divided_before:
            return mb.to_numpy(program(DIVIDED, md.Mesh(whole.coordinates, whole.cells), np.arange(32)))
        part = md.part(whole, owner, overlap=0)
        return mb.to_numpy(program(DIVIDED, part.mesh, part.numbers("cell"), part))

    for found in on_ranks(3, over):
        assert found.tolist() == mb.to_numpy(wanted).tolist()


def numbered(n, y):
    for i in range(3):
        y[i] = n


def steep(x, u, y):
    for i in range(3):
        y[i] += u[(i + 1) % 3] ** 2 * x[i, 0] + u[i]


def test_derivatives():
    def program(array):
        mesh = md.unit_square(3)
        V, corners, x = md.space(mesh, "P", 1), mesh.closure("cell", "vertex"), array(mesh.coordinates)

        def f(u):
            y = mb.zeros_like(u)
            md.loop(mesh.points("cell"), steep, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
            return mb.sum(y * y)

        u, v = V.interpolate(lambda x: np.sin(3 * x[..., 0]), array), V.interpolate(lambda x: x[..., 1], array)
        value, change = mb.autodiff.jvp(f, (u,), (v,))
        found = value, change, mb.autodiff.gradient(f, u).parent
        return np.concatenate([np.ravel(mb.to_numpy(x)) for x in found])

    wanted = program(mb.HostArray)
    for found in on_ranks(2, lambda comm: program(DIVIDED)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


# Files


def test_files_are_those_of_one_process(tmp_path):
    def written(array, at):
        mesh = md.unit_square(3)
        V = md.space(mesh, "P", 1, components=2)
        u, A = V.interpolate(lambda x: x**2, array), md.pattern(V.dofs).matrix(array=array)
        md.loop(
            mesh.points("cell"), whole_block, md.READ(array(1.0 + np.arange(18) % 3)), md.INC(A.data, A.dofs)
        )
        md.write_vtk(at / "u.vtu", mesh, {"u": (V, u), "size": array(mesh.volumes())})
        md.write_petsc(at / "A.dat", A, u)

    folders = tmp_path / "one", tmp_path / "three"
    for folder in folders:
        folder.mkdir()
    written(mb.HostArray, folders[0])
    on_ranks(3, lambda comm: written(DIVIDED, folders[1]))
    for name in ("u.vtu", "A.dat"):
        one, three = ((folder / name).read_bytes() for folder in folders)
        assert one == three, name
    assert len(list(folders[1].iterdir())) == len(list(folders[0].iterdir()))


def whole_block(size, K):
    for i in range(6):
        for j in range(6):
            K[i, j] += size * (1 + i * j)  # (of which sums are exact)


# What is refused


def one(y):
    y[0] += 1


def two(x, y):
    y[0] += x[0]


def mistakes():
    mesh = md.unit_square(2)

    def unlike_meshes(comm):
        md.space(md.unit_square(2 + comm.rank), "P", 1).zeros(mb.DArray)

    def a_part_without_others(comm):
        part = mesh.part(np.arange(8) % 2, comm.rank).mesh
        md.space(part, "P", 1).zeros(mb.DArray)

    def a_loop_over_a_part_without_others(comm):
        V = md.space(mesh.part(np.arange(8) % 2, comm.rank).mesh, "P", 1)
        md.loop(V.mesh.points("cell"), one, md.INC(mb.DArray[mb.HostArray](np.zeros(V.tree.size)), V.dofs))

    def a_local_array(comm):
        V = md.space(mesh, "P", 1)
        md.loop(mesh.points("cell"), two, md.READ(V.zeros(mb.DArray), V.dofs), md.INC(mb.zeros(1), whole=True))

    def to_cupy(comm):
        md.pattern(md.space(mesh, "P", 1).dofs).matrix(array=mb.DArray).to_cupy()

    def of_another_length(comm):
        md.loop(mesh.points("cell"), one, md.INC(mb.zeros(3, device=DIVIDED), md.space(mesh, "P", 1).dofs))

    return [
        (unlike_meshes, "Each makes the same mesh"),
        (a_part_without_others, "one process' part, made without the others"),
        (a_loop_over_a_part_without_others, "nothing says which of its entries"),
        (a_local_array, "each would write what its own points do"),
        (to_cupy, "divided over processes, and CuPy's matrices"),
        (of_another_length, "its map leads to 9 entries"),
    ]


@pytest.mark.parametrize(("program", "text"), mistakes(), ids=lambda x: getattr(x, "__name__", ""))
def test_mistakes(program, text):
    assert all(text in str(e) for e in fails_on_ranks(2, program))


def test_meshes_go_when_nobody_holds_them():
    """(Their tables are large: they do not wait for rubbish to be collected.)"""
    import gc
    import weakref

    gc.disable()
    try:
        mesh = md.unit_square(2)
        V = md.space(mesh, "P", 1)
        y = V.zeros(DIVIDED)
        md.loop(mesh.points("cell"), one, md.INC(y, V.dofs))
        held = weakref.ref(mesh.topology)
        del mesh, V, y
        assert held() is None
    finally:
        gc.enable()
