"""Star forests on 1, 2 and 3 ranks: real processes where MPI is installed, and threads over sockets."""

import doctest
import os
import pathlib
import runpy

import numpy as np
import pytest
from ranks.launch import missing, run
from threadranks import on_ranks

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.ghoststates import COMBINES
from tests.fakenccl import Threads, installed

PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "forests.py"
CHECKS = runpy.run_path(str(PROGRAM))["CHECKS"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("check", CHECKS)
def test_on_threads(check, ranks):
    on_ranks(ranks, CHECKS[check])


@pytest.mark.parametrize("check", ["random_forests", "several_under_way", "loops_overlap"])
def test_from_card_to_card(check):
    """By NCCL (one for simulated cards): nothing goes by way of the host."""
    with mb.settings.changed(cuda="simulated"), installed(Threads()) as nccl:
        on_ranks(2, CHECKS[check])
    assert {"send", "recv"} <= {call[0] for call in nccl.calls}


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
@pytest.mark.parametrize(("ranks", "cards"), [(2, "simulated"), (3, "auto")])
def test_on_processes(ranks, cards):
    ended = run(ranks, str(PROGRAM), cuda=cards)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(f"fine: {len(CHECKS)} checks") == ranks, ended.stdout


@pytest.mark.parametrize(
    "name",
    [
        "StarForest",
        "UnderWay",
        "Ghosted",
        "GhostAccess",
        "begin_access",
        "transition",
        "classify",
        "tree_forest",
        "part_forest",
    ],
)
def test_examples(name):
    for test in doctest.DocTestFinder().find(getattr(md, name), name, globs={}):
        assert doctest.DocTestRunner().run(test).failed == 0


# The table of states (notes on pyop3, section 4): from A (ghosts hold), B (they do not), C (the same operation
# is pending) and D (another one is); then the state after it. R reduces, B sends to ghosts, L and F fill leaves
# or all entries.
TABLE = """
READ       ghosts  -   B   RB  RB   A
RW         ghosts  -   B   RB  RB   B
WRITE      ghosts  -   -   -   -    B
INC        ghosts  L   L   -   RL   C
MIN_RW     ghosts  L   L   -   RL   C
MAX_RW     ghosts  L   L   -   RL   C
MIN_WRITE  ghosts  F   F   F   F    C
MAX_WRITE  ghosts  F   F   F   F    C
READ       owned   -   -   R   R    ABBB
RW         owned   -   -   R   R    B
WRITE      owned   -   -   -   -    B
INC        owned   -   -   -   R    BBCB
MIN_RW     owned   -   -   -   R    BBCB
MAX_RW     owned   -   -   -   R    BBCB
MIN_WRITE  owned   F   F   F   F    B
MAX_WRITE  owned   F   F   F   F    B
READ       core    -   -   -   -    ABCD
RW         core    -   -   -   -    ABCD
WRITE      core    -   -   -   -    ABCD
INC        core    -   -   -   -    ABCD
MIN_RW     core    -   -   -   -    ABCD
MAX_RW     core    -   -   -   -    ABCD
MIN_WRITE  core    F   F   F   F    A
MAX_WRITE  core    F   F   F   F    A
ASSIGN     ghosts  -   -   -   -    A
ASSIGN     owned   -   -   -   -    A
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_of_states(row):
    """Two cells differ from the notes: a MIN_WRITE discards what an earlier one left, pending or not.

    (There it would take part, unless somebody had read the array in between: reading would change results.)
    """
    access, touched, *cells, after = row
    op = COMBINES.get(access, "sum")
    other = "min" if op != "min" else "sum"
    states = {"A": md.State(None, True), "B": md.State(None, False), "C": md.State(op, False)}
    states["D"] = md.State(other, False)
    for k, (name, cell) in enumerate(zip("ABCD", cells, strict=True)):
        state = states[name]
        full = {
            "R": ("reduce", state.pending),
            "B": ("bcast", None),
            "L": ("fill leaves", op),
            "F": ("fill", op),
        }
        actions, found = md.transition(state, access, touched)
        assert [tuple(a) for a in actions] == [full[c] for c in cell if c != "-"], (row, name)
        assert found == states[after[k] if len(after) > 1 else after], (row, name)
        assert not (found.pending and found.valid)


@pytest.mark.parametrize("state", [md.State(None, True), md.State(None, False), md.State("sum", False)])
def test_writing_some_entries_forgets_nothing(state):
    for touched in ("core", "owned", "ghosts"):
        reach = "owned" if touched == "ghosts" else touched
        assert md.transition(state, "WRITE", touched, subset=True) == md.transition(state, "RW", reach)


def eager(state, access, touched, subset):
    """What a code does that knows nothing of states: all is sent before each access."""
    flush = () if state.pending is None else (md.Action("reduce", state.pending),)
    actions, after = md.transition(md.State(None, True), access, touched, subset)
    return (*flush, md.Action("bcast"), *actions), after


@pytest.mark.parametrize("seed", range(8))
def test_lazily_sent_is_what_eagerly_sent_would_be(seed):
    """On ranks that are rows of tables: 3 000 accesses, of which no read tells that messages were saved."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(2, int)
    for _ in range(25):
        ranks, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        owner = rng.integers(0, ranks, n)
        has = rng.random((ranks, n)) < 0.6
        has[owner, np.arange(n)] = True
        leaf = has & (np.arange(ranks)[:, None] != owner)
        level = np.where(leaf, 2, leaf.any(axis=0))
        start = rng.integers(0, 9, n).astype("f8")
        both = [np.where(has, start, np.nan) for _ in range(2)]
        states = [md.State(None, True)] * 2
        for _ in range(15):
            access = str(rng.choice(["READ", "RW", "WRITE", *COMBINES]))
            touched = int(rng.integers(0, 3))
            subset = bool(rng.random() < 0.5)
            if access == "WRITE" and not subset:
                touched = 2
            hit = has & (level <= touched) & (rng.random((ranks, n)) < 0.6)
            if access in ("RW", "WRITE"):
                hit = has & ~leaf & (hit | (access == "WRITE" and not subset))
            new = rng.integers(-9, 9, (ranks, n)).astype("f8")
            sent = []
            for k, plan in enumerate((md.transition, eager)):
                actions, states[k] = plan(states[k], access, ("core", "owned", "ghosts")[touched], subset)
                sent.append(sum(a.what in ("reduce", "bcast") for a in actions))
                for action in actions:
                    carry_out(action, both[k], owner, leaf, has)
            counts += sent
            seen = has & (level <= touched)
            if access in ("READ", "RW"):
                np.testing.assert_array_equal(both[0][seen], both[1][seen], f"{access} of {touched}")
            for x in both:
                if access == "INC":
                    x[hit] += new[hit]
                elif access[:3] in ("MIN", "MAX"):
                    x[hit] = (np.fmin if access[:3] == "MIN" else np.fmax)(x, new)[hit]
                elif access != "READ":
                    x[hit] = new[hit]
    assert 2 * counts[0] < counts[1]


def carry_out(action, x, owner, leaf, has):
    every = np.arange(x.shape[1])
    if action.what == "reduce":
        joins = {"sum": np.add, "min": np.minimum, "max": np.maximum}[action.op]
        for row, mine in zip(x, leaf, strict=True):
            x[owner[mine], every[mine]] = joins(x[owner[mine], every[mine]], row[mine])
    elif action.what == "bcast":
        x[leaf] = np.broadcast_to(x[owner, every], x.shape)[leaf]
    else:
        x[leaf if action.what == "fill leaves" else has] = {"sum": 0, "min": np.inf, "max": -np.inf}[action.op]


@pytest.mark.parametrize(
    ("tables", "owned", "roots", "wanted"),
    [
        (np.array([[0, 1], [1, 2], [2, 3], [3, 4]]), 4, [3], "0 0 1 2"),
        ([[0, -1], [-1, -1], [2, 1]], 2, [0], "1 0 2"),
        ([np.array([[0], [1], [2]]), np.array([[5, 5], [0, 5], [0, 0]])], [3, 5], [[1], [0]], "2 2 1"),
        ((np.array([0, 0, 2, 3]), np.array([0, 1, 2])), 2, [0], "0 1 2"),
        (np.zeros((0, 3), int), 3, [1], ""),
        (np.zeros((2, 0), int), 3, [1], "0 0"),
        ([np.array([[0, 1]])], 2, None, "0"),
    ],
)
def test_classes_of_entities(tables, owned, roots, wanted):
    found = md.classify(tables, owned, roots)
    classes = [int(c) for c in wanted.split()]
    for c, entities in enumerate((found.core, found.root, found.leaf)):
        assert entities.tolist() == [i for i, k in enumerate(classes) if k == c]
    assert found.touched == ("core", "owned", "ghosts")[max(classes, default=0)]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: md.transition(md.State(None, True), "ADD"), ValueError, "is no access: there are READ"),
        (lambda: md.transition(md.State(None, True), "READ", "all"), ValueError, "'core', 'owned' or 'ghosts'"),
        (lambda: md.Ghosted(mb.zeros(3), ONE), ValueError, "forest is of 2 entries"),
        (lambda: md.Ghosted([0.0, 0.0], ONE), TypeError, "own array"),
        (lambda: md.Ghosted(mb.zeros(2), ONE, pending="mean"), ValueError, "'mean' is no reduction"),
        (lambda: md.Ghosted(mb.zeros(2), TWO), ValueError, "copies of entries of the same array"),
        (lambda: md.Ghosted(mb.zeros(2), FIRST).owned, ValueError, "are no range"),
        (lambda: md.Ghosted(mb.zeros(2, "c16"), ONE).begin("MIN_RW"), TypeError, "no least"),
        (lambda: both_ways(md.Ghosted(mb.zeros(2), ONE)), ValueError, "by READ and by INC"),
        (lambda: md.classify(np.array([[2]]), ONE), IndexError, "leads to entry 2"),
        (lambda: md.classify(np.array([[-2]]), 3), IndexError, "leads to entry -2"),
        (lambda: md.classify(np.array([1, 2]), 3), ValueError, "a row for each"),
        (lambda: md.classify(np.array([[0.5]]), 3), TypeError, "integers"),
        (lambda: md.classify(np.array([[0]]), 3, [3]), IndexError, "below 3"),
        (lambda: md.classify([np.array([[0]]), np.array([[0], [1]])], 3), ValueError, "of 1 entities and of 2"),
        (lambda: md.classify([np.array([[0]])] * 2, [3]), ValueError, "one for all"),
    ],
)
def test_bad_input_gets_a_sentence(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


ONE = md.StarForest(2, [0], [0])
TWO = md.StarForest(2, [0], [0], root_size=1)
FIRST = md.StarForest(2, [0], [1], [0])


def both_ways(x):
    md.begin_access([(x, "READ"), (x, md.INC)])
