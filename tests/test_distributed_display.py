"""What people see of distributed arrays. Looking at one sends no messages: a single process may do it."""

import functools
import re

import numpy as np
import pytest
from test_display import check, words
from threadranks import on_ranks

import mirabelle as mb
from mirabelle.arraytypes.distributed import rehearsal
from mirabelle.distributed import Block, BlockCyclic, Layout, Listed, Partial, Ragged, Replicated

HOST, REF = mb.DArray[mb.HostArray], mb.DArray[mb.RefArray]
VALUES = np.arange(60.0).reshape(12, 5)


@functools.cache
class Silent(mb.distributed.Communicator):
    """One of several processes, of which the others never answer: a message is an error."""

    engine = "silent"

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def start(self, sends, receives):
        raise AssertionError("a message")

    def allgather_object(self, x, mark=0):
        raise AssertionError("a message")


LAYOUTS = {
    "rows": Block(0),
    "columns": Block(1),
    "dealt out": BlockCyclic(0, 2),
    "ragged": Ragged(0, (7, 0, 2, 3)),
    "replicated": Replicated(),
    "mesh": Layout(Block(0), Block(1), mesh=(2, 2)),
    "copies": Layout(Replicated(), BlockCyclic(0, 3), mesh=(2, 2)),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def made(layout=None, values=VALUES, rank=1, size=4, family=HOST):
    return family(values, layout=layout, comm=Silent(rank, size))


VIEWS = {
    "itself": lambda x: x,
    "inner": lambda x: x[1:-1, 1:],
    "steps": lambda x: x[::3, ::2],
    "backwards": lambda x: x[::-1],
    "transposed": lambda x: x.T,
    "row": lambda x: x[3],
    "column": lambda x: x[:, 2],
    "part of the transpose": lambda x: x.T[1:, 4:9],
    "new axis": lambda x: x[:, None, 1],
    "stretched": lambda x: (np if isinstance(x, np.ndarray) else mb).broadcast_to(x[2], (3, 5)),
    "nothing": lambda x: x[3:3],
}


# Values


def shown_values(text):
    return [float(t) for t in re.findall(r"-?\d+\.", text)]


@pytest.mark.parametrize("family", [HOST, REF], ids=["host", "ref"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@layouts
def test_each_process_shows_what_it_holds(layout, view, family):
    """The parts that all say they have are the array's, at the places where they say they are."""
    expected = view(VALUES)
    seen = np.zeros(expected.shape, int)
    for rank in range(4):
        x = view(made(layout, rank=rank, family=family))
        report = mb.distributed.layout_of(x)
        division = report._division
        held = division.held(rank)
        places = np.ix_(*[[i for a, b in h for i in range(a, b)] for h in held]) if held else None
        mine = expected[places] if held else np.empty(0)
        assert report.elements[rank] == mine.size
        for show in (repr, str):
            values = shown_values(show(x).split(":\n", 1)[-1].split(", the same")[0])
            if "nothing" in show(x).split("\n")[0]:
                values = []
            assert values == mine.ravel().tolist()
        if held:
            seen[places] += 1
        check(x._repr_html_())
        check(report._repr_html_())
        assert repr(report)
    copies = 4 if division.replicated else None
    assert (seen == (copies or seen.max(initial=0))).all() and (seen > 0).all()


@layouts
def test_large_parts_are_shortened_and_only_what_is_shown_is_fetched(layout, monkeypatch):
    fetched = []
    download = mb.RefArray._download.__func__
    x = made(layout, np.arange(12.0 * 4000).reshape(12, 4000), rank=0, family=REF)
    monkeypatch.setattr(
        mb.RefArray, "_download", classmethod(lambda cls, v: fetched.append(v.size) or download(cls, v))
    )
    for show in (repr, str, lambda x: x._repr_html_(), lambda x: repr(x.T), lambda x: repr(x[:, ::2])):
        fetched.clear()
        assert "..." in show(x)
        assert 0 < sum(fetched) < 100


@layouts
@pytest.mark.parametrize(
    "options",
    [{"precision": 2}, {"sign": "+"}, {"edgeitems": 0, "threshold": 5}, {"edgeitems": 1, "threshold": 5}],
)
def test_texts_follow_numpys_print_options(layout, options):
    for rank in range(4):
        x = made(layout, VALUES / 7, rank=rank)
        part = mb.to_numpy(x.local)
        with np.printoptions(**options):
            text = np.array2string(part, threshold=0 if "threshold" in options else None)
            assert (text in str(x)) if part.size else ("nothing" in str(x))
            repr(x)


def test_a_text_says_what_a_process_has():
    x = made(Block(0))
    assert repr(x).startswith(
        "DArray[HostArray[float64, 2]] of shape (12, 5), rows in equal runs over 4 processes; "
        "rank 1 has [3:6, :]:\n[[15., 16., 17., 18., 19.],\n"
    )
    assert str(x).startswith("rank 1 of 4 has [3:6, :] of (12, 5):\n[[15. 16.")
    assert str(x[0]) == "rank 1 of 4 has nothing of (5,)"
    assert repr(x[0]).endswith("of shape (5,), on rank 0 alone, of 4 processes; rank 1 has nothing")
    assert f"{x}" == str(x)


def test_what_is_the_same_everywhere_is_shown_as_any_array():
    x = made(Replicated(), VALUES[:2])
    assert str(x) == str(VALUES[:2]) and "the same on all 4 processes, this is rank 1" in repr(x)
    assert str(x * 2 + 1) == str(VALUES[:2] * 2 + 1)  # which a process can compute by itself
    assert str(mb.sum(x)) == str(VALUES[:2].sum())
    with mb.distributed.batch():
        assert "pending" in str(mb.sum(x))  # it waits for others there
    assert "pending" in str(mb.distributed.redistribute(x, Block(0)))


def test_on_one_process_texts_are_numpys():
    x = HOST(VALUES)
    assert str(x) == str(VALUES) and str(x + 1) == str(VALUES + 1) and str(x[2:4].T) == str(VALUES[2:4].T)
    assert repr(HOST([1.0, 2.0])) == "DArray[HostArray[float64, 1]]([1., 2.], on one process)"
    assert repr(HOST(np.zeros((3, 0)))) == "DArray[HostArray[float64, 2]]([], shape=(3, 0), on one process)"
    assert str(HOST(2.5)) == "2.5"


# What is pending


PENDING = {
    "sum of two": lambda x, y: x * 2 + y,
    "stencil": lambda x, y: x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1],
    "reduction": lambda x, y: mb.sum(x * y),
    "kept dimension": lambda x, y: mb.max(x - y, axis=0, keepdims=True),
    "over a reduction": lambda x, y: x / mb.sum(x * y, axis=0) + mb.max(y),
    "stretched": lambda x, y: x[0] + y,
    "redistributed": lambda x, y: mb.distributed.redistribute(x, Block(1)) + 1,
    "view of a tree": lambda x, y: (x + y)[::2].T,
    "view of a costly tree": lambda x, y: mb.exp(x)[2:].T,
    "by index": lambda x, y: x[[3, 1, 8]] * 2,
    "transposed": lambda x, y: x.T + y.T,
}


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING.keys())
@layouts
def test_what_others_take_part_in_stays_pending(layout, make):
    with mb.distributed.use_communicator(Silent(1, 4)):
        y = make(made(layout), made(Block(0)))
    before = repr(mb.ext.tree(y)) if hasattr(y, "_node") else None
    if not mb.arraytypes.cards.elsewhere(y):
        assert "pending" not in str(y)  # this process can compute it by itself
        return
    for show in (repr, str, lambda y: y._repr_html_(), lambda y: y._repr_mimebundle_()["text/plain"]):
        assert "pending" in show(y)
    check(y._repr_html_())
    assert "all processes compute it together: mb.materialize(x)" in str(y)
    assert repr(mb.distributed.layout_of(y)) and repr(mb.explain(y)) and mb.explain(y)._repr_html_()
    if before is not None:
        assert repr(mb.ext.tree(y)) == before


@pytest.mark.parametrize("make", PENDING.values(), ids=PENDING.keys())
@layouts
def test_what_was_foretold_comes_true(layout, make):
    """The layout that a pending array is said to have, and the messages it is said to take."""

    def program(comm):
        x, y = HOST(VALUES, layout=layout, comm=comm), HOST(VALUES, comm=comm)
        z = make(x, y)
        said, explained = mb.distributed.layout_of(z), mb.explain(z)
        steps = rehearsal.rehearse(mb.ext.tree(z)) if hasattr(z, "_node") else None
        with mb.count() as counted:
            z = mb.materialize(z)
        sent = None
        if steps is not None and all(n.sent is not None for s in steps for n in s.needs):
            sent = (
                sum(len(n.sends) for s in steps for n in s.needs),
                sum(sum(n.sends.values()) for s in steps for n in s.needs),
            )
        return said.words, mb.distributed.layout_of(z).words, sent, counted, explained.facts, steps

    for said, true, sent, counted, facts, steps in on_ranks(4, program):
        if make is not PENDING["by index"]:
            assert said == true
        combined = [s for s in steps or () if s.combines]
        if sent is not None and not combined:
            assert (counted.messages, counted.bytes_sent) == sent
        if steps is not None and make is not PENDING["by index"]:
            assert counted.collectives == len({s.combines[0] for s in combined}) or len(combined) > 1
        assert facts["layout"].startswith(true) or make is PENDING["by index"]


def test_all_messages_are_added_up():
    def program(comm):
        x = HOST(VALUES, comm=comm)
        y = x[1:] + x[:-1]
        said = mb.explain(y).facts["exchanged"]
        with mb.count() as counted:
            mb.materialize(y)
        return said, counted.messages, counted.bytes_sent

    found = on_ranks(3, program)
    assert {said for said, _, _ in found} == {
        f"{sum(b for *_, b in found)} B in 2 messages between 3 processes"
    }
    assert sum(m for _, m, _ in found) == 2


SENT = [
    lambda x, w, f: w[1:-1] * x + w[2:],
    lambda x, w, f: w[2:] * w[2:] * x,
    lambda x, w, f: w[2:] * w[:-2] + w[1:-1],
    lambda x, w, f: f[2:] * w[2:] + x,
    lambda x, w, f: mb.sum(w[2:] * w[:-2] + w[1:-1]),
    lambda x, w, f: mb.sum(f[2:] * w[:-2] + w[1:-1]) * w[1:],
    lambda x, w, f: x[::-1] + w[2:] + w[:-2],
]


@pytest.mark.parametrize("least", [0, 1 << 30])
@pytest.mark.parametrize("make", SENT)
def test_messages_that_travel_together_are_counted_once(make, least):
    def program(comm):
        x, w, f = HOST(np.arange(12.0)), HOST(np.arange(14.0)), HOST(np.arange(14, dtype=np.float32))
        y = make(x, w, f)
        said = mb.explain(y).facts["exchanged"]
        with mb.count() as counted:
            mb.materialize(y)
        return said, counted.messages, counted.bytes_sent

    with mb.settings.changed(overlap_size=least):
        found = on_ranks(3, program)
    messages, size = sum(m for _, m, _ in found), sum(b for *_, b in found)
    assert {said for said, _, _ in found} == {
        f"{size} B in {messages} message{'s' * (messages > 1)} between 3 processes"
    }


def test_terms_are_said():
    x = made(Block(0))
    facts = mb.explain(mb.sum(x * 2, axis=0)).facts
    assert facts["combined"] == "sum: a term of 40 B on each of ranks 0, 1, 2 and 3"
    assert facts["layout"] == "the same on all 4 processes, this is rank 1"
    assert facts["work"] == "rows in equal runs over 4 processes"
    assert facts["exchanged"] == "no operands, only terms"
    assert mb.explain(mb.sum(x, axis=1)).facts["exchanged"] == "nothing: each process has what it needs"
    assert "combined" not in mb.explain(mb.sum(x, axis=1)).facts


def test_a_halo_is_said_with_its_bytes():
    x = made(Block(0), np.ones((400, 300)))
    e = mb.explain(x[2:] - x[:-2])
    assert e.facts["exchanged"] == "14.1 KiB in 3 messages between 4 processes"
    assert e.facts["x1"] == "is here"  # what is divided as the first operand is needs no more of it
    assert e.facts["x2"] == "4.7 KiB come from rank 0, 4.7 KiB go to rank 2"
    assert e.facts["bytes written"] == "234.4 KiB" and "load_f8" in e.source
    evaluated = mb.explain(x).facts
    assert evaluated["launches"] == "0" and "evaluated" in evaluated["state"]


def test_terms_that_wait_are_not_combined_to_be_shown():
    shapes = [(2, 3)] * 3

    def program(comm):
        x = mb.DArray.from_local(mb.full(shapes[comm.rank], comm.rank + 1.0), Partial("sum"), comm)
        y = x * 2
        with mb.count() as counted:
            texts = (
                repr(x),
                str(x),
                words(x._repr_html_()),
                repr(y),
                repr(mb.distributed.layout_of(x)),
                repr(mb.explain(y)),
            )
        assert (counted.messages, counted.collectives) == (0, 0)
        return texts, mb.to_numpy(y).tolist()

    for rank, (texts, values) in enumerate(on_ranks(3, program)):
        assert "the sum of a term on each of 3 processes" in texts[0]
        assert texts[1].startswith(f"rank {rank} of 3's term is") and f"{rank + 1}." in texts[1]
        assert f"the term of rank {rank}" in texts[2]
        assert "pending" in texts[3] and "0 + 1 + 2" in texts[4]
        assert "is combined from the terms of all, then is here" in texts[5]
        assert values == [[12.0] * 3] * 2


# Arrays that are made of several


@pytest.mark.parametrize(
    "make",
    [
        lambda v, m: mb.Diagonal(v), lambda v, m: mb.Diagonal(v * 2), lambda v, m: mb.Symmetric(m),
        lambda v, m: mb.Kronecker(m, m), lambda v, m: mb.types.Dual(v, m[:2]),
        lambda v, m: mb.UpperTriangular(m),
        lambda v, m: mb.Diagonal(v).T, lambda v, m: mb.types.Dual(v * 2, m[:2] + 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", [Block(0), Replicated()], ids=repr)
def test_arrays_of_distributed_arrays_are_shown_by_their_parts(make, layout):
    v, m = made(layout, np.arange(20.0)), made(layout, np.ones((20, 20)))
    x = make(v, m)
    assert repr(x) and str(x)
    check(x._repr_html_())
    assert x._repr_mimebundle_()
    if not isinstance(x, mb.types.Dual):
        with pytest.raises(TypeError, match=r"made of several arrays|not distributed"):
            mb.distributed.layout_of(x)


# Layouts


def test_a_layout_can_be_looked_at_before_there_is_an_array():
    report = mb.distributed.layout_of((10, 4), Block(0), 3)
    assert report.elements == (16, 12, 12) and report.bytes is None and report.processes == 3
    assert report.imbalance == pytest.approx(1.2) and "1.20 times the mean" in repr(report)
    assert report.where(2) == "[7:10, :]" and report.words == "rows in equal runs over 3 processes"
    assert mb.distributed.layout_of(10, None, 5).elements == (2,) * 5
    assert mb.distributed.layout_of((), None, 3).elements == (1, 1, 1)
    x = made(Block(0))
    assert mb.distributed.layout_of(x).bytes == (120,) * 4 and mb.distributed.layout_of(x).imbalance == 1
    other = mb.distributed.layout_of(x, Block(1))
    assert other.words == "columns in equal runs over 4 processes" and other.bytes == (192, 96, 96, 96)
    assert mb.distributed.layout_of(x, processes=2).elements == (30, 30)
    assert mb.distributed.layout_of((4, 4)).processes == 1
    with pytest.raises(TypeError, match=r"mb\.distributed\.layout_of\(x\.shape"):
        mb.distributed.layout_of(mb.zeros(3))
    with pytest.raises(mb.LayoutError, match="mesh"):
        mb.distributed.layout_of((4, 4), Layout(Block(0), Block(1), mesh=(2, 2)), 3)


@pytest.mark.parametrize(
    ("layout", "shape", "size", "expected"),
    [
        (Block(0), (8,), 4, "elements in equal runs over 4 processes"),
        (Block(2), (2, 3, 8), 4, "dimension 2 in equal runs over 4 processes"),
        (BlockCyclic(1, 3), (4, 40), 4, "columns dealt out in runs of 3 over 4 processes"),
        (Listed.of(0, [0, 1, 1, 0, 0, 0, 2]), (7, 2), 3, "rows dealt out in 4 runs over 3 processes"),
        (Ragged(0, (1, 0, 7)), (8, 2), 3, "rows in runs of 1, 0, 7 over 3 processes"),
        (Ragged(0, range(10)), (45,), 10, "elements in runs of 0 to 9 over 10 processes"),
        (Replicated(), (8,), 4, "the same on all 4 processes"),
        (Replicated(), (8,), 1, "on one process"),
        (Partial("max"), (8,), 4, "the max of a term on each of 4 processes"),
        (
            Layout(Block(1), Block(0), mesh=(2, 3)), (9, 8), 6,
            "rows in equal runs over 3, columns in equal runs over 2 (2 × 3 processes)",
        ),
        (
            Layout(Block(0), Replicated(), mesh=(2, 3)), (9, 8), 6,
            "rows in equal runs over 2, each part on 3 (2 × 3 processes)",
        ),
        (
            Layout(Block(0), Partial("sum"), mesh=(2, 2)), (9, 8), 4,
            "the sum of a term on each of 2 processes; rows in equal runs over 2 (2 × 2 processes)",
        ),
    ],
)  # fmt: skip
def test_words(layout, shape, size, expected):
    report = mb.distributed.layout_of(shape, layout, size)
    assert report.words == expected and expected in repr(report)
    check(report._repr_html_())
    said = words(report._repr_html_())
    assert expected in said and f"rank {size - 1}" in said


def test_words_of_views():
    x = made(Block(0))
    assert mb.distributed.layout_of(x[::-1]).words == "rows in runs, the last first over 4 processes"
    assert mb.distributed.layout_of(x[5]).words == "on rank 1 alone, of 4 processes"
    assert (
        mb.distributed.layout_of(made(LAYOUTS["mesh"])[5]).words
        == "elements in equal runs, on ranks 0 and 1 alone, of 4 processes"
    )
    assert mb.distributed.layout_of(x.T).words == "columns in equal runs over 4 processes"


def test_the_picture_in_text_is_to_scale():
    lines = repr(mb.distributed.layout_of((10,), Ragged(0, (5, 0, 2, 3)), 4)).split("\n")
    boxes = lines[2].strip("┌┐").split("┬")
    assert [len(b) for b in boxes] == [29, 12, 17]
    assert [w.strip() for w in lines[3].strip("│").split("│")] == ["0", "2", "3"]
    assert lines[1].split() == ["0", "5", "7", "10"]
    assert all(len(line) < 80 for line in lines)


@pytest.mark.parametrize(
    ("layout", "shape", "size"),
    [
        (Block(0), (10**6,), 1000),
        (BlockCyclic(0, 1), (10**5, 3), 7),
        (
            Layout(BlockCyclic(0, 2), BlockCyclic(1, 2), mesh=(16, 16)),
            (4000, 4000),
            256,
        ),
        (Replicated(), (10, 10), 1000),
        (Partial("prod"), (10, 10), 64),
        (Block(3), (2, 3, 4, 500, 6), 16),
        (Block(0), (0, 5), 4),
        (Block(0), (3, 10**6), 3),
        (Block(0), (10**6, 2), 4),
    ],
)
def test_what_is_large_is_drawn_in_part(layout, shape, size):
    report = mb.distributed.layout_of(shape, layout, size)
    text = repr(report)
    assert len(text.split("\n")) < 60 and max(map(len, text.split("\n"))) < 132
    check(report._repr_html_())


def test_this_process_is_marked():
    report = mb.distributed.layout_of(made(Block(0), rank=2))
    assert report.rank == 2
    assert [line.startswith("rank 2") for line in repr(report).split("\n") if "(this one)" in line] == [True]
    assert "this is rank 2" in words(report._repr_html_())


def test_a_view_across_the_parts_is_named_so():
    x = made(Block(0), np.ones((8, 8)))
    for y in (mb.linalg.diagonal(x), mb.linalg.diagonal(x * 2), mb.sliding_window_view(x, 3, axis=0)):
        said = "across the parts of an array of 8 × 8: rows in equal runs over 4 processes"
        assert said in repr(y) and said in words(y._repr_html_()) and said in repr(mb.distributed.layout_of(y))
        check(y._repr_html_())
        assert str(y)
    assert "element by element" in mb.explain(mb.linalg.diagonal(x) + 1).facts["x1"]
    assert str(made(Block(0))[3:3]) == "[]"


def test_what_is_written_to_decides_who_computes_what():
    def program(comm):
        u = HOST(np.arange(200.0).reshape(20, 10), comm=comm)
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        facts = mb.explain(around, into=inner).facts
        total = mb.explain(mb.sum(u, axis=0), into=u[3]).facts
        copied = mb.explain(u[:4], into=u[10:14]).facts
        with mb.count() as counted:
            u[1:-1, 1:-1] = around
        with mb.count() as copying:
            u[10:14] = u[:4]
        return facts, total, copied, counted, copying

    found = on_ranks(2, program)
    assert {facts["exchanged"] for facts, *_ in found} == {"128 B in 2 messages between 2 processes"}
    assert [c.bytes_sent for *_, c, _ in found] == [64, 64]
    assert {facts["layout"].split(",")[0] for facts, *_ in found} == {"rows in equal runs over 2 processes"}
    assert {total["combined"] for _, total, *_ in found} == {"sum: a term of 80 B on each of ranks 0 and 1"}
    assert {copied["exchanged"] for _, _, copied, *_ in found} == {"320 B in 1 message between 2 processes"}
    assert sum(c.bytes_sent for *_, c in found) == 320
    with pytest.raises(TypeError, match=r"mb\.explain\(x, into="):
        mb.explain(made() + 1, into=made() * 2)
