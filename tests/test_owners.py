"""Who keeps a version is counted, and memory that anybody reads is not written in place."""

import collections
import gc
import os
import random
import sys
import threading

import numpy as np
import pytest
from children import answer
from kinds import LEAVES

import mirabelle as mb
from mirabelle.dispatch import native
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, evaluating, kept, may_write

Handle = native.in_c.Handle


@pytest.fixture(params=["at once", "waiting"])
def sizes(request):
    """Few elements as they are computed by default, or by trees as many are."""
    with mb.settings.changed(immediate_size=2048 if request.param == "at once" else 0, compiler="off"):
        yield request.param


# The counts


def counted():
    """How many holders each version has, by what all that there is refers to."""
    found = collections.Counter()
    for x in gc.get_objects():
        kind = type(x)  # (`isinstance` would ask what proxies are of)
        if issubclass(kind, Handle):
            fields = (getattr(x, "_node", None),)
        elif kind is Broadcasted:
            fields = (*(x.args or ()), x.value)
        elif kind is Reduced:
            fields = (x.operand, x.value)
        else:
            continue
        found.update(id(v) for v in fields if isinstance(v, (Leaf, Broadcasted, Reduced)))
    return found


def versions_below(arrays):
    stack, seen = [x._node for x in arrays], {}
    while stack:
        v = stack.pop()
        if isinstance(v, (Leaf, Broadcasted, Reduced)) and id(v) not in seen:
            seen[id(v)] = v
            stack += [*(getattr(v, "args", None) or ()), getattr(v, "operand", None)]
            stack.append(None if isinstance(v, Leaf) else v.value)
    return seen.values()


@pytest.mark.parametrize("seed", range(6))
def test_each_version_knows_how_many_hold_it(seed, sizes):
    dice = random.Random(seed)
    arrays = [mb.HostArray(np.arange(1.0, 8.0)) for _ in range(3)]
    for turn in range(60):
        x, y = dice.choice(arrays), dice.choice(arrays)
        what = dice.randrange(9)
        if what < 3:
            arrays.append(x * y + x if what else mb.sqrt(mb.abs(x)))
        elif what == 3:
            arrays.append(mb.broadcast_to(mb.sum(x), (7,)) * 1.0 + y)
        elif what == 4:
            x[...] = y + 1.0
        elif what == 5:
            x[1:4] = y[2:5] * 0.5
        elif what == 6:
            mb.materialize(x)
        elif what == 7:
            x += y
        elif len(arrays) > 3:
            del arrays[dice.randrange(len(arrays))]
        del x, y
        if turn % 12 == 11:
            expected = counted()
            for v in versions_below(arrays):
                assert v.holders == expected[id(v)], v
            del v


def test_fields_that_hold_versions_count_when_they_are_set():
    leaf, other = Leaf(np.zeros(2)), Leaf(np.ones(2))
    assert leaf.holders == 0
    node = Broadcasted(None, (leaf, 2.0, leaf), (2,), 1)
    assert leaf.holders == 2
    node.args = (other,)
    assert (leaf.holders, other.holders) == (0, 1)
    node.value = other
    node.args = None
    assert other.holders == 1
    holder = kept(other)
    assert other.holders == 2 and holder._node is other
    holder._node = leaf
    assert (leaf.holders, other.holders) == (1, 1)
    del holder._node
    assert leaf.holders == 0
    with pytest.raises(AttributeError):
        holder._node
    with pytest.raises(AttributeError):
        node.holders = 3
    del node, holder
    assert other.holders == 0


def test_a_cycle_that_is_collected_lets_go():
    leaf = Leaf(np.zeros(2))
    holder = kept(leaf)
    other = Leaf(np.zeros(2))
    other.known = {"cycle": (0, [holder, other])}
    del holder, other
    assert leaf.holders == 1
    gc.collect()
    assert leaf.holders == 0


def test_deep_trees_are_let_go():
    with mb.settings.changed(tree_limit=1 << 20, immediate_size=0, brief_size=0):
        x = mb.HostArray(np.ones(3))
        y = x
        for _ in range(30_000):
            y = y + x
        leaf = x._node
        assert leaf.holders == 30_002
        del y
        assert leaf.holders == 1 and may_write(leaf)


# What may be written


def test_who_else_has_the_memory_is_known():
    x = mb.HostArray(np.arange(9.0))
    leaf = x._node
    assert may_write(leaf) and not may_write(leaf, -1)
    for share in (
        lambda: np.asarray(x),
        lambda: np.asarray(x)[2:],
        lambda: np.asarray(x[2:]),
        lambda: memoryview(x),
        lambda: np.from_dlpack(x),
        lambda: kept(leaf),
        lambda: x + np.arange(9.0) if mb.settings.immediate_size == 0 else kept(leaf),
        lambda: np.ascontiguousarray(leaf.view[1:4]),
    ):
        shared = share()
        assert not may_write(leaf), share
        del shared
        assert may_write(leaf), share
    part = Leaf(leaf.view[2:5], root=leaf)
    assert may_write(leaf)  # (nobody holds it, or its array)
    its_array = part.view
    assert not may_write(leaf)
    del its_array
    shown = leaf.view[1:]
    assert not may_write(leaf) and may_write(leaf, 0, shown)
    assert not may_write(part)


def test_while_another_thread_evaluates_nothing_is_written_in_place():
    leaf = mb.HostArray(np.arange(9.0))._node
    inside, leave = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert leave.wait(20)

    other = threading.Thread(target=lambda: evaluating(wait))
    other.start()
    assert inside.wait(20)
    assert not may_write(leaf)
    if hasattr(os, "fork"):  # (a child has this thread only)
        child = os.fork()
        if not child:
            os._exit(0 if may_write(leaf) else 1)
        assert os.waitpid(child, 0)[1] == 0
    leave.set()
    other.join()
    assert may_write(leaf) and evaluating(may_write, leaf)
    with pytest.raises(ZeroDivisionError):
        evaluating(lambda: 1 / 0)
    assert may_write(leaf)


# Programs


class Model:
    """Arrays and what NumPy says they hold, with all that may keep their memory."""

    def __init__(self, seed, n, make=mb.HostArray):
        self.dice, self.n, self.make = random.Random(seed), n, make
        self.ours, self.theirs, self.out = {}, {}, []
        for name in "abc":
            self.new(name, np.round(np.random.default_rng(seed).random(n) * 8) + 1)

    def new(self, name, values):
        self.ours[name], self.theirs[name] = self.make(values), np.array(values)

    def step(self):
        dice, ours, theirs, n = self.dice, self.ours, self.theirs, self.n
        a, b = dice.choice(list(ours)), dice.choice(list(ours))
        i, j, m = dice.randrange(n // 3), dice.randrange(n // 3), n // 2
        what = dice.randrange(14)
        if what < 3:  # a further name
            name = dice.choice("defgh")
            ours[name], theirs[name] = ours[a] * 0.5 + ours[b], theirs[a] * 0.5 + theirs[b]
        elif what == 3:
            ours[a][i : i + m] = ours[b][j : j + m] * 0.5 + 1.0
            theirs[a][i : i + m] = theirs[b][j : j + m] * 0.5 + 1.0
        elif what == 4:
            ours[a][...] = ours[a][::-1] * 0.5 + ours[b]
            theirs[a][...] = theirs[a][::-1] * 0.5 + theirs[b]
        elif what == 5:
            ours[a][i : i + m], theirs[a][i : i + m] = 3.0, 3.0
        elif what == 6:
            ours[a] += ours[b]
            theirs[a] += theirs[b]
        elif what == 7:  # one element out of a pending or written array, which is a copy
            self.out.append((ours[a][i], np.array(theirs[a][i])))
        elif what == 8:
            self.out.append((np.asarray(ours[a]), theirs[a].copy()))
        elif what == 9:
            self.out.append((memoryview(ours[a][i : i + m]), theirs[a][i : i + m].copy()))
        elif what == 10:  # what waits, for itself and in others; a reduction that waits
            pending, total = ours[a] * 2.0 - ours[b], mb.sum(ours[a])
            self.out += [(pending, theirs[a] * 2.0 - theirs[b]), (total, theirs[a].sum())]
        elif what == 11:  # a generator that holds a version of what it was given

            def later(x):
                y = x + 1.0
                yield
                yield y

            held = later(ours[a])
            next(held)
            self.out.append((held, theirs[a] + 1.0))
        elif what == 12:  # an error whose frames hold what was under way
            try:
                ours[a][...] = ours[b] + ours[a][: m - 1]
            except ValueError as e:
                self.out.append((e, None))
        elif len(ours) > 3:
            del ours[a], theirs[a]
        if self.out and dice.random() < 0.4:
            self.look(self.out.pop(dice.randrange(len(self.out))))

    def look(self, handed):
        found, expected = handed
        if expected is not None:
            found = next(found) if hasattr(found, "gi_frame") else found
            np.testing.assert_array_equal(
                mb.to_numpy(found) if isinstance(found, mb.AbstractArray) else np.asarray(found), expected
            )

    def run(self, turns=60):
        for _ in range(turns):
            self.step()
        self.dice.shuffle(self.out)
        for handed in self.out:
            self.look(handed)
        for name, x in self.ours.items():
            np.testing.assert_array_equal(mb.to_numpy(x), self.theirs[name])


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_held_stays_as_it_was(seed, sizes):
    Model(seed, (9, 700, 5000)[seed % 3]).run()


@pytest.fixture
def restless():
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("how", ["a tracer", "a profiler", "no collector", "debugging frames"])
@pytest.mark.parametrize("seed", range(100, 103))
def test_so_it_does_whoever_looks_on(how, seed):
    seen = []

    def look(frame, event, argument):
        seen.append(dict(frame.f_locals) if how == "debugging frames" else len(frame.f_locals))
        del seen[:-20]
        return look

    model = Model(seed, 700)
    before = sys.gettrace(), sys.getprofile()
    try:
        if how == "no collector":
            gc.disable()
        elif how == "a profiler":
            sys.setprofile(look)
        else:
            sys.settrace(look)
        model.run(30)
    finally:
        gc.enable()
        sys.settrace(before[0])
        sys.setprofile(before[1])


def test_threads_that_evaluate_one_tree_while_another_writes_what_it_reads(restless):
    """The value of a tree is that of its line, whichever thread is first to need it."""
    wrong = []
    with mb.settings.changed(compiler="off", num_threads=1, immediate_size=0):
        for turn in range(200):
            n = (300, 9000)[turn % 2]
            x = mb.HostArray(np.full(n, 2.0))
            y = x * 3.0 + 1.0
            z = mb.sqrt(y + 2.0)
            gate = threading.Barrier(3)

            def read(what, expected, gate=gate):
                gate.wait()
                if not np.all(mb.to_numpy(what()) == expected):
                    wrong.append(expected)

            def write(x=x, y=y, gate=gate, n=n):
                gate.wait()
                mb.materialize(y)
                x[...] = 100.0
                x[: n // 2] = x[n // 2 :] * 2.0

            threads = [
                threading.Thread(target=read, args=(lambda z=z: mb.max(z), 3.0)),
                threading.Thread(target=read, args=(lambda y=y: y - 0.0, 7.0)),
                threading.Thread(target=write),
            ]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
    assert not wrong


# The check


UNCOUNTED = """
    import json
    import numpy as np
    import mirabelle as mb
    from mirabelle.dispatch.ownercheck import UncountedOwnerError
    from mirabelle.dispatch.tree import kept

    said, somewhere = [], []
    x = mb.HostArray(np.arange(9.0))

    def written(index, value):
        before = x._node  # (a local variable is no holder)
        try:
            x[index] = value
        except UncountedOwnerError as e:
            said.append(str(e))
        return x._node is before

    def holds(version):
        yield
        yield version

    assert written(slice(1, None), 1.0)
    somewhere.append({"deep": [x._node]})
    assert written(slice(1, None), 2.0)
    somewhere[0] = kept(x._node)
    assert not written(slice(1, None), 3.0)  # (into other memory)
    somewhere.clear()
    suspended = holds(x._node)
    next(suspended)
    assert written(slice(2, None), 4.0)
    suspended.close()
    assert written(slice(3, None), 5.0)
    print(json.dumps([said, mb.to_numpy(x).tolist()]))
"""


def test_the_check_finds_who_is_not_counted():
    said, values = answer(UNCOUNTED, check_owners=1)
    assert len(said) == 2 and "generator" in said[1]
    assert all("about to be written in place" in s and "kept(version)" in s for s in said)
    assert values == [0.0, 3.0, 3.0, *[5.0] * 6]


def test_the_check_finds_nothing_in_programs():
    script = """
        import json, sys
        sys.path.insert(0, "tests")
        import mirabelle as mb
        from test_owners import Model
        for seed in range(6):
            Model(seed, 700).run(30)
        print(json.dumps(mb.settings.check_owners))
    """
    assert answer(script, check_owners=1) is True


@pytest.mark.parametrize("n", [30, 2_000])
@pytest.mark.parametrize("kind", ["host", "ref", "cuda"])
def test_what_is_kept_with_a_mask_is_written_by_nobody(kind, n):
    """Where a mask holds is kept with it, and read again: results of as many integers go elsewhere."""
    make = LEAVES[kind].make
    numbers, values = np.arange(n) * 3, np.random.default_rng(0).random(n)
    x, mask = make(numbers), mb.materialize(make(values) > 0.5)
    wanted = numbers[values > 0.5]
    for _ in range(3):
        assert np.array_equal(mb.to_numpy(x[mask]), wanted)
        out = make(np.zeros(n, np.int64))
        out[x[mask] // 3] = 1
        assert np.array_equal(mb.to_numpy(out) == 1, values > 0.5)
        y = x[mask]
        y += 1
        assert np.array_equal(mb.to_numpy(y), wanted + 1)


# Reductions that wait


SUMS = {
    "whole": lambda xp, x: xp.sum(x),
    "tree": lambda xp, x: xp.max(x * x - 1.0),
    "part": lambda xp, x: xp.sum(x[3:-5]),
    "axis": lambda xp, x: xp.sum(x.reshape(-1, 10), axis=0),
    "named": lambda xp, x: xp.sum((x + 1.0)[::2]),
    "two": lambda xp, x: xp.sum(x) * xp.min(x),
}


def scaled(x):
    x *= 0.5


def added_to_a_part(x):
    x[1:-1] += 1.0


def one_element(x):
    x[0] = 7.0


def of_itself(x):
    x[1:] = x[:-1] * 2


def where_large(x):
    x[x > 0.5] = -1.0


def at_places(x):
    x[[0, 3, 5]] = 2.0


WRITES = [scaled, added_to_a_part, one_element, of_itself, where_large, at_places]


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("reduction", SUMS)
@pytest.mark.parametrize("n", [3000, 80_000])
def test_a_write_computes_the_reductions_that_wait_for_it(n, reduction, write):
    """They would keep the old contents, so that the write would go to other memory."""
    array = np.random.default_rng(5).random(n)
    x = mb.HostArray(array)
    reduce = SUMS[reduction]
    stays = write in (added_to_a_part, one_element, at_places) and reduction != "named"
    for turn in range(12):  # (statements that are met again, too)
        before = address_of(x._node.view) if stays else 0
        s, t = reduce(mb, x), reduce(np, array)
        write(x)
        write(array)
        np.testing.assert_allclose(mb.to_numpy(s), t, rtol=1e-12)
        np.testing.assert_array_equal(mb.to_numpy(x), array)
        if stays:
            assert address_of(x._node.view) == before, turn


def test_a_reduction_that_may_fail_waits_on():
    """Who reads it is told; the write goes around what it reads."""

    def positive(v):
        if v < 0:
            raise ValueError("negative")
        return v

    x = mb.HostArray(np.linspace(-1, 1, 5000))
    s = mb.mapreduce(positive, mb.add, x)
    x[0] = 3.0
    with pytest.raises(UserFunctionError, match="raised an exception"):
        float(s)
    assert float(x[0]) == 3.0
