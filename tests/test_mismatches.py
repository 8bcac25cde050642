"""Programs that differ between ranks end in an error on all of them, which names both lines."""

import re
import threading
import time

import numpy as np
import pytest
from mismatches import PROGRAMS, equal_sums_in_other_order, right
from test_mpi import run  # noqa: F401 (a fixture)

import mirabelle as mb
from mirabelle.arraytypes import assign
from mirabelle.arraytypes.distributed import marks, moving, statements
from mirabelle.arraytypes.distributed.marks import marked, mixed, named
from mirabelle.dispatch.errors import CommunicationError
from tests.fakenccl import Threads, installed
from tests.fuzzmessages import fuzz
from tests.threadranks import fails_on_ranks, on_ranks, outcomes

LINES = re.compile(r"mismatches\.py:\d+")


def ended(program):
    """The program on a rank; who ends, ends the communicator, as a process that ends does."""

    def rank(comm):
        try:
            return program(comm)
        except CommunicationError:
            raise
        except BaseException as e:
            comm.failed(e)
            raise

    return rank


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_that_differ_are_an_error_on_all_ranks(program, ranks, checks):
    began = time.monotonic()
    with mb.settings.changed(check_collectives=checks, check_timeout=2.0):
        errors = fails_on_ranks(ranks, ended(program))
    assert time.monotonic() - began < 8
    for e in errors:
        assert isinstance(e, CommunicationError), repr(e)
        assert "mistake in mirabelle" not in str(e)
        assert len(LINES.findall(str(e))) == 2, str(e)
        # (There, each does another thing, or several exchanges belong to one statement.)
        if program.__name__ not in (
            "other_message",
            "other_length_under_a_sum",
            "other_shift",
            "other_stencil",
        ):
            assert "Rank 0: " in str(e), str(e)


@pytest.mark.parametrize("ranks", [2, 3])
def test_sums_that_only_their_lines_tell_apart_are_found_with_checks(ranks):
    with mb.settings.changed(check_collectives=True, check_timeout=2.0):
        for e in fails_on_ranks(ranks, ended(equal_sums_in_other_order)):
            assert isinstance(e, CommunicationError) and len(LINES.findall(str(e))) == 2, repr(e)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_programs_that_do_not_differ_are_none(ranks, checks):
    with mb.settings.changed(check_collectives=checks):
        values = on_ranks(ranks, right)
    assert values == [(66.0, np.roll(np.arange(12.0) * 2, 1).tolist(), list(range(ranks)))] * ranks


@pytest.mark.parametrize("checks", [False, True])
def test_who_ends_early_is_named_by_those_who_wait(checks):
    def program(comm):
        if comm.rank == 1:
            comm.close()
            return None
        return right(comm)

    found = outcomes(3, program)
    for r in (0, 2):
        error = found[r][1]
        assert isinstance(error, CommunicationError) and LINES.search(str(error)), error


def test_who_fails_is_heard_of():
    def program(comm):
        if comm.rank == 1:
            raise ValueError("no such file")
        return right(comm)

    errors = fails_on_ranks(3, ended(program))
    assert [type(e) for e in errors] == [mb.RemoteError, ValueError, mb.RemoteError]
    assert all("no such file" in str(e) for e in errors)


def test_with_checks_who_does_not_come_is_an_error_in_time():
    def program(comm):
        if comm.rank == 1:
            time.sleep(1.0)
        comm.barrier()

    with mb.settings.changed(check_collectives=True, check_timeout=0.2):
        errors = fails_on_ranks(2, program)
    assert "did not come within 0.2 s" in str(errors[0])


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_between_cards_are_compared_by_the_host(ranks):
    def program(comm):
        G = mb.DArray[mb.CuArray]
        x = G(np.arange(12.0 if comm.rank == 0 else 14.0))
        return mb.to_numpy(x)

    # (Without checks they are compared when the next ones go, and the simulated NCCL waits for the first.)
    with mb.settings.changed(cuda="simulated", check_collectives=True), installed(Threads()):
        for e in fails_on_ranks(ranks, program):
            assert str(e).count("test_mismatches.py:") == 2, str(e)


def random_writes(seed):
    """Statements that write parts of arrays, of each other and of themselves, pending or computed."""
    r = np.random.default_rng(seed)
    lines = []
    for _ in range(12):
        x, y = r.choice(["x", "y", "z"], 2)
        parts = ["[1:]", "[:-1]", "[2:7]", "[::-1][1:]", "[3:]", "[:2]"]
        p = parts[r.integers(6)]
        same = {
            "[1:]": "[:-1]",
            "[:-1]": "[1:]",
            "[2:7]": "[4:9]",
            "[::-1][1:]": "[1:]",
            "[3:]": "[:-3]",
            "[:2]": "[-2:]",
        }
        value = f"{y}{same[p]}{r.choice(['', ' * 0.5', ' + ' + x + p])}"
        kind = r.integers(7)
        if kind < 3:
            lines.append(f"{x}{p} = {value}")
        elif kind == 3:
            lines.append(f"t = {y} * 2 - {x}")
            lines.append(f"{r.choice(['x', 'y', 'z'])}{p} = t{p}")
            lines.append(f"{r.choice(['x', 'y', 'z'])} = mb.pad(t[1:], (1, 0)) + mb.pad(t[:-1], (0, 1))")
        elif kind == 4:
            lines.append(f"t = {y}[1:] * 2 - {x}[:-1]")
            lines += [f"{name}{p} = t" for name, p in zip(r.permutation(["x", "y", "z"]), ["[1:]", "[:-1]"])]
        elif kind == 5:
            lines.append(f"{x} += {y}.sum() / 100")
        else:
            lines.append(f"{x}{p} += {value}")
    return lines


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("size", [9, 3000])
def test_what_else_a_process_does_changes_no_message(monkeypatch, seed, size):
    """Whether memory is written in place may be another thing on each rank, and what they send is not."""
    lines = random_writes(seed)
    nobody_else, r = assign.nobody_else, np.random.default_rng(seed)
    busy = [r.random(500) < share for share in (0.0, 0.5, 1.0)]

    def sometimes(*args):
        name = threading.current_thread().name
        if name.startswith("rank"):
            turn = calls[name] = calls.get(name, -1) + 1
            if busy[int(name.split()[1])][turn % 500]:
                return False
        return nobody_else(*args)

    calls = {}

    def program(comm):
        here = {"mb": mb}
        for k, name in enumerate("xyz"):
            here[name] = mb.DArray[mb.HostArray](np.random.default_rng(k).normal(size=size), comm=comm)
        for line in lines:
            exec(line, here)
        return [mb.to_numpy(here[name]) for name in "xyz"]

    for module in (assign, statements, moving):
        monkeypatch.setattr(module, "nobody_else", sometimes)
    expected = {"mb": np, **{n: np.random.default_rng(k).normal(size=size) for k, n in enumerate("xyz")}}
    for line in lines:
        exec(line, expected)
    for found in on_ranks(3, program):
        for name, f in zip("xyz", found, strict=True):
            np.testing.assert_allclose(f, expected[name], rtol=1e-9, atol=1e-9, err_msg="\n".join(lines))


@pytest.mark.parametrize(("ranks", "checks"), [(3, 0), (2, 1)])
def test_the_same_by_mpi(run, ranks, checks):  # noqa: F811
    status, said, _ = run(ranks, "differing.py", check_collectives=checks, check_timeout=3)
    assert status == 0, said
    assert said.count("fine") == ranks * (len(PROGRAMS) + 1), said


def test_a_rank_that_has_gone_on_to_the_end_of_its_block_is_named_at_once(run):  # noqa: F811
    status, said, _ = run(2, "goneon.py")
    assert status == 0, said
    assert sorted(line for line in said.splitlines() if line.startswith(("alone", "other", "short"))) == [
        "alone 0: heard of it", "alone 1: named both",
        "other_part 0: heard of it", "other_part 1: named both",
        "short_message 0: heard of it", "short_message 1: named both",
    ], said  # fmt: skip


def test_spoilt_messages_are_an_error_and_never_a_number(monkeypatch):
    """A slice of `python -m tests.fuzzmessages`."""
    monkeypatch.setattr(marks, "ANSWER", 0.02)
    said = {fuzz(number) for number in range(200)}
    assert {s for s in said if s.endswith("right")} == {"none: right"}


def test_marks_are_the_same_in_every_process():
    assert marked("sum of", np.dtype("f8"), (3, 4)) == marked("sum of", np.dtype("f8"), (3, 4))
    assert marked("sum of", "f8") != marked("max of", "f8")
    assert mixed(1, 2) != mixed(2, 1)
    assert marked("a mark") == MARK and named(MARK) == "a mark"


# (As it was in another process.)
MARK = -5685273894476198604
