"""Star forests, compared with what they must give. Run on several ranks; `CHECKS` are also run on threads."""

from __future__ import annotations

import itertools
import os
import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.ghoststates import ACCESSES
from mirabelle.dispatch.errors import CommunicationError, RemoteError

# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))

DTYPES = ("f8", "f4", "i4", "i8", "u1", "c16", "?", "f2", "i2")
OPERATIONS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "replace": None, "prod": np.multiply}


class World:
    """Random entries of all ranks, as each of them can work out by itself."""

    def __init__(self, rng, size, entries):
        self.size = size
        self.owner = rng.integers(0, size, entries)
        labels = rng.permutation(10 * entries)[:entries]  # (global numbers need not follow each other)
        self.held = []
        for r in range(size):
            mine = np.flatnonzero(self.owner == r)
            others = np.flatnonzero((self.owner != r) & (rng.random(entries) < rng.choice([0, 0.3, 0.9])))
            self.held.append(rng.permutation(np.concatenate([mine, others])))
        self.numbers = [labels[h] for h in self.held]
        self.owners = [self.owner[h] for h in self.held]
        self.place = [{int(g): i for i, g in enumerate(h)} for h in self.held]

    def links(self):
        """(rank, leaf, owner, root), in the order of ranks and leaves."""
        for r, h in enumerate(self.held):
            for i, g in enumerate(h):
                owner = int(self.owner[g])
                if owner != r:
                    yield r, i, owner, self.place[owner][int(g)]


def values(rng, world, dtype, shape=()):
    """Numbers of all ranks, small enough that every order of adding them gives the same."""
    return [rng.integers(0, 5, (len(h), *shape)).astype(dtype) for h in world.held]


def bcast(world, x, links=None):
    found = [v.copy() for v in x]
    for r, i, owner, root in links if links is not None else world.links():
        found[r][i] = x[owner][root]
    return found


def reduced(world, x, ufunc, links=None):
    found = [v.copy() for v in x]
    for r, i, owner, root in links if links is not None else world.links():
        found[owner][root] = x[r][i] if ufunc is None else ufunc(found[owner][root], x[r][i])
    return found


def same(x, wanted):
    x = mb.to_numpy(x) if not isinstance(x, np.ndarray) else x
    assert x.dtype == wanted.dtype and np.array_equal(x, wanted), (x, wanted)


def places(comm):
    """Constructors of local arrays."""
    found = [mb.HostArray, np.array, mb.RefArray]
    return [*found, mb.CuArray] if mb.settings.cuda == "simulated" or LOCAL is mb.CuArray else found


# Values


def random_forests(comm):
    rng = np.random.default_rng(comm.size)
    for trial in range(8):
        world = World(rng, comm.size, (9, 4, 0, 1, 60)[trial % 5])
        forest = md.StarForest.from_owners(world.numbers[comm.rank], world.owners[comm.rank], comm=comm)
        wanted = [(i, o, root) for r, i, o, root in world.links() if r == comm.rank]
        found = zip(forest.leaves.tolist(), forest.owners.tolist(), forest.roots.tolist(), strict=True)
        assert sorted(found) == sorted(wanted)
        for A in places(comm)[: (4, 3, 2)[trial] if trial < 3 else 1]:
            many = [values(rng, world, rng.choice(DTYPES), ((), (3,), (2, 2), (0,))[k % 4]) for k in range(4)]
            for count in (1, 2, 4):
                arrays = [A(x[comm.rank]) for x in many[:count]]
                with mb.count() as c:
                    forest.bcast(arrays if count > 1 else arrays[0])
                down = [(o, r) for r, _, o, _ in world.links()]
                assert c.messages == len({r for o, r in down if o == comm.rank})
                each = sum(x[comm.rank].dtype.itemsize * x[comm.rank][:1].size for x in many[:count])
                assert c.bytes_sent == each * sum(o == comm.rank for o, _ in down)
                many[:count] = [bcast(world, x) for x in many[:count]]
                for x, wanted in zip(arrays, many, strict=False):
                    same(x, wanted[comm.rank])
            for name, ufunc in OPERATIONS.items():
                x = values(rng, world, rng.choice(("f8", "i4", "f4")))
                a = A(x[comm.rank])
                forest.reduce(a, name if rng.random() < 0.5 or ufunc is None else ufunc)
                same(a, reduced(world, x, ufunc)[comm.rank])
            x, y = values(rng, world, "f8"), values(rng, world, "i4", (2,))
            a, b = A(x[comm.rank]), A(y[comm.rank])
            forest.reduce([a, b], ["min", lambda s, t: s + t])
            same(a, reduced(world, x, np.minimum)[comm.rank])
            same(b, reduced(world, y, np.add)[comm.rank])
            c = A(x[comm.rank])
            forest.reduce(c, mb.maximum)
            same(c, reduced(world, x, np.maximum)[comm.rank])
            offsets, found = forest.gather(A(x[comm.rank]))
            rows = [[] for _ in world.held[comm.rank]]
            for r, i, owner, root in world.links():
                if owner == comm.rank:
                    rows[root].append(x[r][i])
            assert offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
            assert mb.to_numpy(found).tolist() == [v for row in rows for v in row]


def sums_are_in_the_order_of_ranks(comm):
    n = 0 if comm.rank == 0 else 3
    forest = md.StarForest(4, [0] * n, [0] * n, [3, 1, 2][:n], comm=comm)
    x = np.array([1e16, 1.0, -1e16, 3.0]) * (1 + comm.rank)
    expected = 1e16
    for r in range(1, comm.size):
        for v in (1.0, -1e16, 3.0):
            expected += v * (1 + r)
    for A in places(comm):
        a = A(x)
        forest.reduce(a)
        if comm.rank == 0:
            assert mb.to_numpy(a)[0] == expected


def several_under_way(comm):
    rng = np.random.default_rng(7)
    world = World(rng, comm.size, 30)
    forest = md.StarForest.from_owners(world.numbers[comm.rank], world.owners[comm.rank], comm=comm)
    for A in places(comm):
        for _ in range(3):
            many = [values(rng, world, "f8") for _ in range(3)]
            arrays = [A(x[comm.rank]) for x in many]
            going = [
                forest.begin_bcast(arrays[0]),
                forest.begin_bcast(arrays[1]),
                forest.begin_reduce(arrays[2]),
            ]
            arrays[0][...] = 0  # (what is sent was gathered before)
            for u in reversed(going):
                assert not u.ended
                u.end()
                u.end()
                assert u.ended
            zeros = [np.zeros_like(x) for x in many[0]]
            for r, i, o, root in world.links():
                zeros[r][i] = many[0][o][root]
            same(arrays[0], zeros[comm.rank])
            same(arrays[1], bcast(world, many[1])[comm.rank])
            same(arrays[2], reduced(world, many[2], np.add)[comm.rank])


def what_was_said_stays(comm):
    """Values that were computed of an array, or share its memory, do not change when it is written."""
    last = comm.rank == comm.size - 1 and comm.size > 1
    for scattered, A in itertools.product((False, True), places(comm)):
        if A is np.array:
            continue
        n = 2500 if A is mb.HostArray else 40  # (larger ones are not computed at once on the host)
        leaves = np.random.default_rng(0).permutation(n) if scattered else np.arange(n)
        links = (np.zeros(n, int), np.arange(n), leaves) if last else ([], [], [])
        forest = md.StarForest(n, *links, comm=comm)
        before = np.arange(n) + 1.0 * comm.rank
        x, z = A(before), A(np.full(n, 7.0))
        double, same_as, part = x * 2, mb.copy(x), x[3:9]
        forest.bcast(x)
        other = A(np.full(n, -3.0))
        forest.bcast(other)  # (by the same buffers)
        forest.reduce(z, "sum")
        after = before.copy()
        after[leaves] = np.arange(n) if last else before[leaves]
        same(double, before * 2)
        same(same_as, before)
        same(x, after)
        same(part, after[3:9])
        same(z, np.full(n, 14.0 if comm.rank == 0 and comm.size > 1 else 7.0))
    n = 10
    forest = md.StarForest(n, *(([0] * n, range(n)) if last else ([], [])), comm=comm)
    shared = np.zeros(n)
    x = mb.asarray(shared)
    forest.bcast(x)
    forest.reduce(x, lambda a, b: a + b + 1)
    assert shared.sum() == (n if comm.rank == 0 and comm.size > 1 else 0)


# Other forests


def other_forests(comm):
    rng = np.random.default_rng(3)
    for _ in range(4):
        world = World(rng, comm.size, int(rng.choice([1, 10, 40])))
        me = comm.rank
        forest = md.StarForest.from_owners(world.numbers[me], world.owners[me], comm=comm)
        # With entries under points: sizes of a point are the same wherever it is.
        of = rng.integers(0, 4, len(world.owner))
        sizes = [of[h] for h in world.held]
        orders = [rng.permutation(len(h)) for h in world.held]
        offsets = []
        for s, order in zip(sizes, orders, strict=True):
            start = np.zeros(len(s), int)
            start[order] = np.cumsum(s[order]) - s[order]
            offsets.append(start)
        block = int(rng.choice([1, 2]))
        dofs = forest.expanded(offsets[me], sizes[me], block=block)
        links = [
            (r, (offsets[r][i] + k) * block + b, o, (offsets[o][j] + k) * block + b)
            for r, i, o, j in world.links()
            for k in range(sizes[r][i])
            for b in range(block)
        ]
        x = [rng.standard_normal(int(s.sum()) * block) for s in sizes]
        a = LOCAL(x[me])
        dofs.bcast(a)
        same(a, bcast(world, x, links)[me])
        # Two columns of offsets: the second behind all of the first.
        two = [np.stack([np.arange(len(h)), len(h) + np.arange(len(h))], axis=1) for h in world.held]
        pairs = forest.expanded(two[me], size=2 * len(two[me]) + 1)
        assert pairs.size == 2 * len(two[me]) + 1 and len(pairs.leaves) == 2 * len(forest.leaves)
        # Some of the links.
        kept = [rng.random(len(h)) < 0.5 for h in world.held]
        known = [rng.random(len(h)) < 0.5 for h in world.held]
        some = [k for k in world.links() if kept[k[0]][k[1]] and known[k[2]][k[3]]]
        x = values(rng, world, "f8")
        a = LOCAL(x[me])
        forest.restricted(kept[me], np.flatnonzero(known[me])).bcast(a)
        same(a, bcast(world, x, some)[me])
        # Other numbers.
        new = [np.where(k, rng.permutation(len(k)), -1) for k in kept]
        a = np.zeros(len(new[me]))
        here = new[me] >= 0
        a[new[me][here]] = x[me][here]
        forest.renumbered(new[me], len(a)).bcast(a)
        moved = [k for k in world.links() if kept[k[0]][k[1]] and kept[k[2]][k[3]]]
        same(a[new[me][here]], bcast(world, x, moved)[me][here])
        # A division of the same entries in another way, and back.
        order = rng.permutation(len(world.owner))
        parts = np.array_split(order, comm.size)
        roots = [world.place[int(world.owner[g])][int(g)] for g in parts[me]]
        away = md.StarForest(
            len(parts[me]), world.owner[parts[me]], roots, root_size=len(world.held[me]), comm=comm
        )
        out = LOCAL(np.zeros(len(parts[me])))
        away.bcast(LOCAL(x[me]), out)
        known = {
            int(g): x[r][i] for r, h in enumerate(world.held) for i, g in enumerate(h) if world.owner[g] == r
        }
        same(out, np.array([known[int(g)] for g in parts[me]]))
        back = LOCAL(np.zeros(len(world.held[me])))
        away.reduce(out, "replace", back)
        mine = world.owner[world.held[me]] == me
        same(back, np.where(mine, x[me], 0))
        # Leaves of `again` are copies of any entries; their roots' roots are found.
        who = rng.integers(0, comm.size, (comm.size, 5))
        which = [[int(rng.integers(0, max(len(world.held[r]), 1))) for r in row] for row in who]
        ok = [np.array([len(world.held[r]) > 0 for r in row]) for row in who]
        again = md.StarForest(
            5, who[me][ok[me]], np.array(which[me])[ok[me]], np.flatnonzero(ok[me]),
            root_size=len(world.held[me]), comm=comm,
        )  # fmt: skip
        led = forest.compose(again)
        out = np.zeros(5)
        led.bcast(x[me], out)
        after = bcast(world, x)
        same(
            out, np.array([after[r][i] if k else 0 for r, i, k in zip(who[me], which[me], ok[me], strict=True)])
        )


# Ghosts


def chain(comm):
    """X20 for any number of ranks: a row of vertices, of which each rank but the first has the last one "
    "before."""
    n = 4 if comm.rank == 0 else 3
    ghosts = [] if comm.rank == 0 else [0]
    owner, root = ([], []) if comm.rank == 0 else ([comm.rank - 1], [3 if comm.rank == 1 else 2])
    forest = md.StarForest(n + len(ghosts), owner, root, comm=comm)
    cells = [[0, 1], [1, 2], [2, 3]] if comm.rank == 0 else [[3, 0], [0, 1], [1, 2]]
    return forest, np.array(cells)


def counted(comm, work, reduces, bcasts):
    """Is as much sent as so many reductions and broadcasts along a chain send?"""
    with mb.count() as c:
        result = work()
    assert c.messages == reduces * (comm.rank > 0) + bcasts * (comm.rank < comm.size - 1), c
    assert c.bytes_sent == 8 * c.messages
    return result


def example_20(comm):
    forest, cells = chain(comm)
    found = md.classify(cells, forest)
    last = comm.rank == comm.size - 1
    shared = [] if last else [2]
    leaf = [] if comm.rank == 0 else [0]
    assert (found.root.tolist(), found.leaf.tolist()) == ([c for c in shared if c not in leaf], leaf)
    assert found.touched == ("ghosts" if comm.size > 1 else "core")
    assert sorted([*found.core, *found.root, *found.leaf]) == [0, 1, 2]
    for A in places(comm):
        y = md.Ghosted(A(np.zeros(4)), forest)

        def add(y=y):
            with y.begin(md.INC):
                for row in cells:
                    mb.add_at(y.array, row, 1.0) if not isinstance(y.array, np.ndarray) else np.add.at(
                        y.array, row, 1.0
                    )

        counted(comm, add, 0, 0)
        assert y.state == md.State("sum", False)
        one = {0: [1, 2, 2, 1], 1: [2, 2, 1, 1]}[min(comm.rank, 1)]
        same(y.array, np.array(one, float))
        counted(comm, add, 0, 0)
        same(y.array, 2 * np.array(one, float))

        def read(y=y):
            return y.data_ro()

        counted(comm, read, 1, 1)
        end = 2.0 if last else 4.0
        same(y.array, np.array([2, 4, 4, end] if comm.rank == 0 else [4, 4, end, 4]))
        counted(comm, read, 0, 0)


def example_21(comm):
    """Two ranks with ghosts of each other, and others that have nothing."""
    inf = np.inf
    local = {0: (5, [1], [0]), 1: (5, [0, 0], [3, 2])}.get(comm.rank, (0, [], []))
    if comm.size == 1:
        return
    forest = md.StarForest(*local, comm=comm)
    cells = {0: [[0, 1], [1, 2], [2, 3], [3, 4]], 1: [[3, 0], [0, 1], [1, 2], [4, 3]]}.get(comm.rank)
    cells = np.array(cells if cells else np.zeros((0, 2), int))
    found = md.classify(cells, forest)
    classes = {0: ([0], [1, 2], [3]), 1: ([2], [1], [0, 3])}.get(comm.rank, ([], [], []))
    assert (found.core.tolist(), found.root.tolist(), found.leaf.tolist()) == classes
    me = min(comm.rank, 2)

    def expect(x, *wanted):
        same(x, np.array((*wanted, [])[me], float))

    def message_of(work):
        with mb.count() as c:
            work()
        assert (c.messages, c.bytes_sent) == ((1, 16), (1, 8), (0, 0))[me] or work is reduce, c
        return c.messages

    x = np.array(([10, 11, 12, 13, 0], [14, 15, 16, 0, 0], [])[me], float)
    u = md.Ghosted(LOCAL(x), forest, valid=False)
    message_of(u.data_ro)
    expect(u.array, [10, 11, 12, 13, 14], [14, 15, 16, 13, 12])

    y = md.Ghosted(np.zeros(forest.size), forest)
    with y.begin("INC"):
        for row in cells[:3]:
            y.array[row] += comm.rank + 1
    expect(y.array, [1, 2, 2, 1, 0], [4, 4, 2, 2, 0])

    def reduce():
        forest.reduce(y.array)

    assert message_of(reduce) == (1, 1, 0)[me]
    expect(y.array, [1, 2, 2, 3, 0], [4, 4, 2, 2, 0])
    forest.bcast(y.array)
    expect(y.array, [1, 2, 2, 3, 4], [4, 4, 2, 3, 2])

    z = md.Ghosted(np.full(forest.size, 99.0), forest)
    with z.begin("MIN_RW"):
        for c, row in enumerate(cells[:3]):
            z.array[row] = np.minimum(z.array[row], 10 * comm.rank + c)
    expect(z.array, [0, 0, 1, 2, inf], [10, 11, 12, 10, inf])
    expect(z.data_ro(), [0, 0, 1, 2, 10], [10, 11, 12, 2, 1])


def example_22(comm):
    """Numbers that all ranks share."""
    star = md.StarForest.star(comm=comm)
    total = md.Ghosted(LOCAL([5.0]), star)
    with total.begin("INC") as access:
        total.array[0] += 3.0 + comm.rank
        assert access.pieces == ["INC"]
    assert total.array.tolist() == [8.0 if comm.rank == 0 else 3.0 + comm.rank]
    with mb.count() as c:
        total.data_ro()
    assert c.messages == (comm.size - 1 if comm.rank == 0 else 1)
    assert total.array.tolist() == [5.0 + sum(3.0 + r for r in range(comm.size))]
    three = md.StarForest.star(3, comm=comm)
    mine = np.full((3, 2), comm.rank + 1.0)
    for op, wanted in (("replace", comm.size), ("sum", sum(range(comm.size + 1)))):
        x = md.Ghosted(mine.copy(), three, pending=op)
        assert (x.data_ro() == wanted).all()


def example_23(comm):
    forest, _ = chain(comm)
    for words, reduces, bcasts in (
        ("READ INC INC INC READ READ WRITE READ", 1, 2),
        ("INC MIN_RW READ", 2, 1),
        ("INC MIN_WRITE READ", 1, 1),
        ("INC WRITE READ", 0, 1),
        ("RW RW READ", 0, 2),
        ("INC RW", 1, 1),
        ("ASSIGN READ INC INC INC ASSIGN READ", 0, 0),
    ):
        for A in places(comm)[:1]:
            x = md.Ghosted(A(np.zeros(4)), forest)
            counted(comm, lambda x=x, words=words: [x.begin(w).end() for w in words.split()], reduces, bcasts)


def accesses_at_random(comm):
    """Whatever is done to an array with ghosts, what is read is what one process would read."""
    rng = np.random.default_rng(11 + comm.size)
    me = comm.rank
    for trial in range(12):
        world = World(rng, comm.size, int(rng.integers(1, 12)))
        forest = md.StarForest.from_owners(world.numbers[me], world.owners[me], comm=comm)
        wide = trial % 3 == 2
        A = places(comm)[:3][trial % 3 if trial < 6 else trial % 2]
        truth = rng.integers(0, 9, (len(world.owner), *((2,) if wide else ()))).astype("f8")
        x = md.Ghosted(A(truth[world.held[me]]), forest)
        labels = forest.labels
        for _ in range(30):
            access = str(rng.choice([a for a in ACCESSES if a != "ASSIGN" or rng.random() < 0.3]))
            touched = str(rng.choice(["core", "owned", "ghosts", "ghosts"]))
            levels = [world_labels(world, r) for r in range(comm.size)]
            reach = ["core", "owned", "ghosts"].index(touched)
            # Which entries each rank reaches, and with which numbers.
            hit = [(lab <= reach) & (rng.random(len(lab)) < 0.6) for lab in levels]
            new = [rng.integers(-9, 9, (len(lab), *truth.shape[1:])).astype("f8") for lab in levels]
            subset = access == "WRITE" and bool(rng.random() < 0.5)
            if access == "WRITE" and not subset:
                hit = [lab <= 1 for lab in levels]
                touched = "ghosts" if touched == "core" else touched
            flow = x.begin(access, touched, subset=subset)
            if rng.random() < 0.5:
                flow.roots()
            flow.end()
            (piece,) = flow.pieces
            now = mb.to_numpy(x.array).copy() if not isinstance(x.array, np.ndarray) else x.array.copy()
            expected = truth[world.held[me]]
            if access in ("READ", "RW"):
                assert np.array_equal(now[labels <= reach], expected[labels <= reach]), (trial, access, touched)
            mine = hit[me] if access not in ("RW", "WRITE") else hit[me] & (labels < 2)
            if piece == "INC":
                now[mine] += new[me][mine]
            elif piece in ("MIN_RW", "MAX_RW"):
                combined = (np.minimum if piece == "MIN_RW" else np.maximum)(now, new[me])
                now[mine] = combined[mine]
            elif piece in ("RW", "WRITE"):
                now[mine] = new[me][mine]
            if access == "ASSIGN":
                x.fill(float(new[0].flat[0]) if new[0].size else 1.0)
            elif access != "READ":
                x.array[...] = now if isinstance(x.array, np.ndarray) else A(now)
            # The same for all, on one process.
            if access in ("MIN_WRITE", "MAX_WRITE"):
                truth[...] = np.inf if access == "MIN_WRITE" else -np.inf
            if access == "ASSIGN":
                truth[...] = float(new[0].flat[0]) if new[0].size else 1.0
            for r, h in enumerate(world.held):
                for i, g in enumerate(h):
                    if not hit[r][i] or access in ("READ", "ASSIGN"):
                        continue
                    if access == "INC":
                        truth[g] += new[r][i]
                    elif access.startswith("MIN"):
                        truth[g] = np.minimum(truth[g], new[r][i])
                    elif access.startswith("MAX"):
                        truth[g] = np.maximum(truth[g], new[r][i])
                    elif levels[r][i] < 2:
                        truth[g] = new[r][i]
        same(x.data_ro(), truth[world.held[me]])


def world_labels(world, r):
    """Of each entry of a rank: 0 core, 1 root, 2 leaf."""
    shared = {int(g) for other, h in enumerate(world.held) for g in h if other != world.owner[g]}
    return np.array([2 if world.owner[g] != r else int(int(g) in shared) for g in world.held[r]], np.int8)


def loops_overlap(comm):
    """Core entities are computed before anything has come; arrays of one forest travel together."""
    forest, cells = chain(comm)
    classes = md.classify([cells, cells[:, :1]], forest)
    for A in places(comm):
        u = md.Ghosted(A(np.arange(4.0) + 10 * comm.rank), forest, valid=False)
        v = md.Ghosted(A(np.ones((4, 2), "i4")), forest, pending="sum")
        w = md.Ghosted(A(np.ones(4)), forest, pending="max")
        y = md.Ghosted(A(np.full(4, 5.0)), forest)
        before = mb.to_numpy(u.array)[3] if A is not np.array else u.array[3]
        with (
            mb.count() as c,
            md.begin_access(
                [(u, md.READ, classes.touched), (v, md.READ), (w, md.RW), (y, md.INC), (u, md.READ)]
            ) as access,
        ):
            now = u.array if A is np.array else mb.to_numpy(u.array)
            assert comm.rank == 0 or now[3] == before
            try:
                u.begin("READ")
            except RuntimeError as e:
                assert "while an earlier access is under way" in str(e)
            else:
                raise AssertionError("an array was accessed twice at once")
            access.roots()
            access.end()
            access.end()
        # One reduction of v and w; u goes at once, v and w after it.
        first, lasts = comm.rank > 0, comm.rank < comm.size - 1
        assert c.messages == first + 2 * lasts, c
        assert c.bytes_sent == first * (8 + 8) + lasts * (8 + 8 + 8)
        if comm.rank:
            now = u.array if A is np.array else mb.to_numpy(u.array)
            assert now[3] == (3.0 if comm.rank == 1 else 2.0 + 10 * (comm.rank - 1))
        assert [x.state for x in (u, v, w, y)] == [
            md.State(None, True), md.State(None, True), md.State(None, False), md.State("sum", False),
        ]  # fmt: skip
    for access, kept in (("READ", md.State(None, True)), ("INC", md.State("sum", False))):
        x = md.Ghosted(np.zeros(4), forest)
        try:
            with x.begin(access):
                raise KeyError("a kernel failed")
        except KeyError:
            assert x.state == kept
        x.begin("READ").end()
    x = md.Ghosted(np.zeros(4), forest, valid=False)
    try:
        with x.begin("READ"):
            raise KeyError("a kernel failed")
    except KeyError:
        assert x.state == md.State(None, False)
    assert (x.data_ro() == 0).all()


# Meshes


def act(u, y):
    for i in range(6):
        for j in range(6):
            y[i] += (1.5 + i) * (j - 2.25) * u[j]


def loops_over_parts(comm):
    """A loop of all processes over their cells gives what it gives on one."""
    whole = md.unit_square(4)
    owner = md.partition(whole, comm.size, method="hilbert")
    V = md.space(whole, "P", 2)

    def f(x):
        return np.sin(3 * x[..., 0]) + x[..., 1]

    u, y = V.interpolate(f), V.zeros()
    md.loop(whole.points("cell"), act, md.READ(u, V.dofs), md.INC(y, V.dofs))
    md.loop(whole.points("cell"), act, md.READ(u, V.dofs), md.INC(y, V.dofs))
    wanted = mb.to_numpy(y.parent)
    for overlap in (0, 1):
        part = whole.part(owner, comm.rank, overlap=overlap)
        cells = part.owned_points()
        W = md.space(part.mesh, "P", 2)
        forest = md.part_forest(part, W.tree, comm=comm)
        classes = md.classify(W.dofs.table[cells.indices], forest)
        assert sum(map(len, (classes.core, classes.root, classes.leaf))) == len(cells)
        u, y = md.Ghosted(W.interpolate(f), forest, valid=False), md.Ghosted(W.zeros(), forest)
        u.array[forest.leaves] = 1e9  # (what stands in ghosts before they hold)
        for _ in range(2):
            with md.begin_access([(u, md.READ, classes.touched), (y, md.INC, classes.touched)]) as access:
                for arrived, which in (
                    (None, classes.core),
                    (access.roots, classes.root),
                    (access.end, classes.leaf),
                ):
                    if arrived is not None:
                        arrived()
                    some = part.mesh.points("cell").subset(cells.indices[which])
                    md.loop(some, act, md.READ(u.array, W.dofs), md.INC(y.array, W.dofs))
        with mb.count() as c:
            found = mb.to_numpy(y.data_ro().parent)
        up, down = forest._up, forest._down
        sent = [r for route in (up, down) for r in route.outgoing]
        assert (c.messages, c.bytes_sent) == (len(sent), 8 * (len(up.index) + len(down.index)))
        there = V.positions(V.tree, {}, {})
        for kind, at in W.positions(W.tree, {}, {}).items():
            numbers = part.numbers(kind)
            np.testing.assert_allclose(found[at], wanted[there[kind][numbers]], rtol=1e-12, atol=1e-12)


def trees_over_parts(comm):
    """Entries of any tree over a mesh: ragged, under fields, interleaved, with regions, in each rank's "
    "own layout."""
    whole = md.unit_square(3)
    owner = md.partition(whole, comm.size, method="hilbert")
    for overlap in (0, 1, 2):
        part = whole.part(owner, comm.rank, overlap=overlap)
        m = part.mesh.axis
        vertices = part.numbers("vertex")
        field = md.Axis("field", {"u": 1, "p": 1})
        trees = [
            md.tree(m, {"edge": md.Axis("dof", 2), "vertex": md.Axis("dof", 1)}),
            md.tree(field, {"u": md.tree(m, {"vertex": md.Axis("dim", 2)}), "p": m}),
            md.tree(m, {"vertex": md.tree(field, {"u": md.Axis("dim", 2)}), "edge": md.tree(field)}),
            md.tree(md.Axis("dim", 2), m),
            md.tree(md.Axis("mesh", len(vertices)), md.Axis("own", (vertices % 3).tolist())),
        ]
        for k, tree in enumerate(trees):
            if k < 4:
                forest = md.part_forest(part, tree, comm=comm)
            else:
                forest = md.tree_forest(tree, {None: md.part_forest(part, "vertex", comm=comm)}, "mesh")
            # What each entry is, told by numbers of the whole mesh.
            x = np.zeros(tree.size)
            is_copy = np.zeros(tree.size, bool)
            for n, path in enumerate(tree.leaves):
                at = tree.domain(path).indices
                kind = path["mesh"] or "vertex"
                number = part.numbers(kind)[at["mesh"]]
                rest = sum(7 * (1 + i) for name, i in at.items() if name != "mesh")
                x[tree.offsets(path)] = 1000 * n + 20 * number + rest / 100
                is_copy[tree.offsets(path)] = at["mesh"] >= part.owned(kind)
            assert np.array_equal(np.sort(forest.leaves), np.flatnonzero(is_copy))
            got = np.where(is_copy, -1.0, x)
            forest.bcast(got)
            assert np.array_equal(got, x), k


def after_a_failure(comm):
    """One rank fails while the others wait for it: after that, the same can be done again."""
    if comm.engine != "mpi" or comm.size == 1:
        return
    forest, _ = chain(comm)
    x = LOCAL(np.arange(4.0) + 10 * comm.rank)
    u = md.Ghosted(LOCAL(np.ones(4)), forest, valid=False)
    forest.bcast(x)  # (so that there are buffers, and requests, to be used again)
    for failing in range(comm.size):
        comm.barrier()  # (who fails must not find others before the block)
        try:
            with mb.distributed.together(comm):
                if comm.rank == failing:
                    raise KeyError("on one rank")
                for _ in range(3):
                    x[3 if comm.rank else 0] = -1.0
                    forest.bcast(x)
                    u.data_rw()
        except (KeyError, RemoteError) as e:
            assert isinstance(e, KeyError) == (comm.rank == failing)
        else:
            raise AssertionError("nobody said that a rank failed")
        values = np.arange(4.0) + 10 * comm.rank
        x[...] = LOCAL(values)
        with mb.count() as c:
            forest.bcast(x)
        assert c.messages == (comm.rank < comm.size - 1)
        values[3] = values[3] if comm.rank == 0 else 3.0 if comm.rank == 1 else 2.0 + 10 * (comm.rank - 1)
        same(x, values)
        forest.reduce(x, "max")
        u.reset(valid=False)  # (ranks stopped at different accesses)
        assert (mb.to_numpy(u.data_ro()) == 1).all()


# Bad input


def refused(comm):
    def links(owners, roots, leaves=None, size=4):
        return md.StarForest(size, owners, roots, leaves, comm=comm)

    last = comm.size - 1
    mine = comm.rank == last

    def only(*given):
        return given if mine else ([], [])

    def of(numbers, owners):
        return md.StarForest.from_owners(numbers, owners, comm=comm)

    forest = links(*only([0], [1]))
    cases = [
        (lambda: links(*only([comm.size], [0])), CommunicationError, f"names rank {comm.size} as an owner"),
        (lambda: links(*only([0], [4])), IndexError, "copy of entry 4 of rank 0, and that has 4"),
        (lambda: links(*only([0], [-1])), IndexError, "copy of entry -1 of rank 0"),
        (lambda: links(*only([0], [0, 1])), ValueError, "1 leaves, 1 owners and 2 roots"),
        (
            lambda: links(*only([0, 0], [0, 1]), [3, 3] if mine else []),
            ValueError,
            "stands twice among its leaves",
        ),
        (lambda: links(*only([0], [1]), [7] if mine else []), IndexError, "its entry 7 is a leaf"),
        (lambda: links(*only([0] * 5, [0] * 5)), ValueError, "5 leaves among them"),
        (lambda: links(*only([0.5], [0])), TypeError, "list of integers"),
        (lambda: links([], [], size=-1 if mine else 3), ValueError, "gives -1 as the number"),
        # On each rank the last entry is a copy of the last one of the next.
        (lambda: links([(comm.rank + 1) % comm.size], [3]), ValueError, "which is a leaf itself"),
        (lambda: of([5, 5] if mine else [5], [last, last] if mine else [last]), ValueError, "5 stands twice"),
        (lambda: of([1, 2], [comm.rank]), ValueError, "2 numbers and 1 owners"),
        (lambda: forest.restricted(leaves=[9] if mine else None), IndexError, "9 is none of the 4"),
        (lambda: forest.renumbered([0] if mine else [0, 1, 2, 3]), ValueError, "each of the 4|Each of the 4"),
        (lambda: forest.expanded([0, 1, 2, 3], [1, -1 if mine else 1, 1, 1]), ValueError, "has -1 entries"),
        (lambda: forest.expanded(block=0), ValueError, "block"),
        (lambda: forest.expanded([0, 3, 6, 9], 3, size=11), IndexError, "up to 11, and there are 11"),
        (lambda: forest.bcast(mb.zeros(3)), ValueError, "of 4 entries here"),
        (lambda: forest.bcast([]), ValueError, "there is one for each"),
        (lambda: forest.bcast([1.0, 2.0]), TypeError, "own array"),
        (lambda: forest.bcast(np.array([1, "a", 2, 3], object)), TypeError, "dtype object"),
        (lambda: forest.bcast([mb.zeros(4), mb.RefArray(np.zeros(4))]), mb.PlaceError, "one place"),
        (lambda: forest.bcast(np.broadcast_to(1.0, 4)), ValueError, "read-only"),
        (lambda: forest.reduce(mb.zeros(4), "mean"), ValueError, "'mean' is no reduction"),
        (lambda: forest.reduce(mb.zeros(4), np.sin), TypeError, "no function of two arrays"),
        (lambda: forest.reduce(mb.zeros(4), 3), TypeError, "a reduction is|A reduction is"),
        (
            lambda: forest.reduce(np.zeros(4, int), np.true_divide),
            TypeError,
            "not written to an array of int64",
        ),
        (lambda: forest.reduce([mb.zeros(4)], ["sum", "max"]), ValueError, "2 operations"),
        (lambda: forest.compose(links([], [], size=5)), ValueError, "lead them on"),
    ]
    if comm.size > 1:
        cases += [
            (lambda: of([10, 20 + comm.rank], [comm.rank] * 2), ValueError, "all say that they own entry 10"),
            (lambda: of([comm.rank], [0]), ValueError, "which that does not even have"),
            (lambda: of([3], [(comm.rank + 1) % comm.size]), ValueError, "disagree on ownership"),
        ]
        sizes = [1, 2, 3, 4] if comm.rank == 0 else [4, 4, 4, 4]
        cases.append(
            (lambda: forest.expanded(sizes=sizes), ValueError, "has 4 entries and is a copy of point 1")
        )
    for k, (make, kind, words) in enumerate(cases):
        try:
            made = make()
        except kind as e:
            assert any(w in str(e) for w in words.split("|")), (k, str(e))
        else:
            raise AssertionError(f"case {k} was taken: {made}")
    x = LOCAL([1.0, 2.0, 3.0, 4.0])
    forest.bcast(x)  # after all that
    assert x.tolist() == ([1, 2, 3, 2] if mine else [1, 2, 3, 4])


CHECKS = {f.__name__: f for f in (
    random_forests, sums_are_in_the_order_of_ranks, several_under_way, other_forests, refused, example_20,
    example_21, example_22, example_23, accesses_at_random, loops_overlap,
    loops_over_parts, trees_over_parts, what_was_said_stays,
    after_a_failure,
)}  # fmt: skip

if __name__ == "__main__":
    world = mb.distributed.communicator()
    with mb.allow_scalar():  # (some write a number to an array on a card)
        for check in CHECKS.values():
            check(world)
    sys.stdout.write(f"fine: {len(CHECKS)} checks on rank {world.rank} of {world.size}\n")
