"""Star forests, compared with what they must give. Run on several ranks; `CHECKS` are also run on threads."""

from __future__ import annotations

import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.dispatch.errors import CommunicationError

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
    """Constructors of local arrays. (A simulated card serves one thread.)"""
    found = [mb.HostArray, np.array, mb.RefArray]
    return [*found, mb.CuArray] if comm.engine != "tcp" and mb.settings.cuda == "simulated" else found


# Values


def random_forests(comm):
    rng = np.random.default_rng(comm.size)
    for trial in range(12):
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
            offsets, found = forest.gather(A(x[comm.rank]))
            rows = [[] for _ in world.held[comm.rank]]
            for r, i, owner, root in world.links():
                if owner == comm.rank:
                    rows[root].append(x[r][i])
            assert offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
            assert mb.to_numpy(found).tolist() == [v for row in rows for v in row]


def sums_are_in_the_order_of_ranks(comm):
    n = 0 if comm.rank == 0 else 3
    forest = md.StarForest(4, [0] * n, [0] * n, comm=comm)
    x = np.array([1e16, 1.0, -1e16, 1.0]) * (1 + comm.rank)
    expected = 1e16
    for r in range(1, comm.size):
        for v in (1.0, -1e16, 1.0):
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
        a = mb.HostArray(x[me])
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
        a = mb.HostArray(x[me])
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
        out = mb.HostArray(np.zeros(len(parts[me])))
        away.bcast(mb.HostArray(x[me]), out)
        known = {
            int(g): x[r][i] for r, h in enumerate(world.held) for i, g in enumerate(h) if world.owner[g] == r
        }
        same(out, np.array([known[int(g)] for g in parts[me]]))
        back = np.zeros(len(world.held[me]))
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
    x = mb.HostArray([1.0, 2.0, 3.0, 4.0])
    forest.bcast(x)  # after all that
    assert x.tolist() == ([1, 2, 3, 2] if mine else [1, 2, 3, 4])


CHECKS = {f.__name__: f for f in (
    random_forests, sums_are_in_the_order_of_ranks, several_under_way, other_forests, refused,
)}  # fmt: skip

if __name__ == "__main__":
    world = mb.communicator()
    for check in CHECKS.values():
        check(world)
    sys.stdout.write(f"fine: {len(CHECKS)} checks on rank {world.rank} of {world.size}\n")
