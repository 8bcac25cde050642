"""What ranks computed differently is found at a message that follows, and what they did alike is not.

Operations are compared always, and with checks all that a value depends on.
"""

import io

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.dispatch.errors import CommunicationError
from tests.test_mismatches import ended
from tests.threadranks import fails_on_ranks, on_ranks, outcomes
from tests.ways import running

D = mb.DArray[mb.HostArray]


def arrays():
    return D(np.linspace(0.5, 2.0, 12)), D(np.linspace(3.0, 1.0, 12))


# Each is one statement on rank 0 and the other on the others.
DIFFERING = {
    "other function": ("u = mb.sin(x)", "u = mb.cos(x)"),
    "other constant": ("u = x * 0.1", "u = x * 0.2"),
    "sign of zero": ("u = mb.copysign(x, 0.0)", "u = mb.copysign(x, -0.0)"),
    "other operand": ("u = x * x", "u = x * y"),
    "other order": ("u = x - y", "u = y - x"),
    "other tree": ("u = (x + y) * 2", "u = x + y * 2"),
    "one more statement": ("u = x + 1; u = u * 2", "u = x + 1"),
    "in place": ("u = mb.copy(x); u += y", "u = mb.copy(x); u -= y"),
    "a part": ("u = mb.copy(x); u[2:7] = y[2:7] + 1", "u = mb.copy(x); u[2:7] = y[2:7] + 2"),
    "a part that one does not write": ("u = x + 0.5; u[3:] = 0.0", "u = x + 0.5"),
    "other integer": ("u = 2 * x + 1", "u = 3 * x + 1"),
    "a choice": ("u = mb.where(x > 1, x, y)", "u = mb.where(x >= 1, x, y)"),
    "other type between": ("u = mb.astype(x + y, 'f4') * 1.0", "u = (x + y) * 1.0; u = mb.astype(u, 'f4')"),
    "a number that depends on the rank": ("u = x * 1.0", "u = x * 1.5"),
    "other fill": ("u = mb.full(12, 1.0, device=D) + x", "u = mb.full(12, 2.0, device=D) + x"),
    "other seed": (
        "u = mb.random.default_rng(1, device=D).normal(size=12)",
        "u = mb.random.default_rng(2, device=D).normal(size=12)",
    ),
    "other call": (
        "r = mb.random.default_rng(1, device=D); u = r.normal(size=12)",
        "r = mb.random.default_rng(1, device=D); r.normal(size=3); u = r.normal(size=12)",
    ),
    "other distribution": (
        "u = mb.random.default_rng(1, device=D).normal(size=12)",
        "u = mb.random.default_rng(1, device=D).uniform(size=12)",
    ),
    "a reduction before": ("u = x - mb.mean(x * 2)", "u = x - mb.mean(x * 3)"),
    "a look at one's own part": ("u = x + 1; u.local", "u = x + 1"),
    "of indices": ("u = x[D(np.array([3, 1, 2]))] + 1", "u = x[D(np.array([3, 1, 2]))] + 2"),
}  # fmt: skip
MESSAGES = {
    "sum": "float(mb.sum(u))",
    "largest": "float(u.max())",
    "fetched": "mb.to_numpy(u)",
    "neighbours": "mb.to_numpy(mb.abs(u[1:] - u[:-1]))",
    "later": "v = u + 1; w = mb.sqrt(mb.abs(v) * y[0]) if len(u) else u; float(mb.sum(w))",
    "of several": "a, b = mb.sum(u), mb.sum(u * u); float(a), float(b)",
}


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("name", DIFFERING)
def test_what_was_computed_differently_is_found_at_the_next_message(name, message):
    def program(comm):
        x, y = arrays()
        here = {"mb": mb, "np": np, "D": D, "x": x, "y": y}
        exec(DIFFERING[name][comm.rank > 0], here)
        exec(MESSAGES[message], here)

    with mb.settings.changed(check_collectives=True, check_timeout=2.0):
        for e in fails_on_ranks(2 + len(name) % 2, ended(program)):
            assert isinstance(e, CommunicationError) and "do different things" in str(e), repr(e)
            assert "mistake in mirabelle" not in str(e)


# Without checks: other operations, integers and seeds, at a reduction or when values are fetched.
OPERATIONS = [
    "other function", "other order of two", "other tree", "one more statement", "in place", "a choice",
    "other type between", "a reduction before", "of indices, another function", "other integer", "other seed",
    "other call", "other distribution", "of indices",
]  # fmt: skip
WITHOUT_CHECKS = DIFFERING | {
    "in place": ("u = mb.copy(x); u += mb.sin(y)", "u = mb.copy(x); u += mb.cos(y)"),
    "other order of two": ("u = mb.sin(mb.exp(x))", "u = mb.exp(mb.sin(x))"),
    "a reduction before": ("u = x - mb.max(x)", "u = x - mb.min(x)"),
    "of indices, another function": (
        "u = mb.sin(x[D(np.array([3, 1, 2]))])",
        "u = mb.cos(x[D(np.array([3, 1, 2]))])",
    ),
}


@pytest.mark.parametrize("message", ["sum", "largest", "fetched", "later", "of several"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_other_operations_are_found_without_checks(name, message):
    def program(comm):
        x, y = arrays()
        here = {"mb": mb, "np": np, "D": D, "x": x, "y": y}
        exec(WITHOUT_CHECKS[name][comm.rank > 0], here)
        exec(MESSAGES[message], here)

    for e in fails_on_ranks(2 + len(name) % 2, ended(program)):
        assert isinstance(e, CommunicationError) and "do different things" in str(e), repr(e)
        assert "mistake in mirabelle" not in str(e)


def test_numbers_that_ranks_round_differently_are_no_difference_without_checks():
    def program(comm):
        x, y = arrays()
        u = x * (0.1 + 1e-17 * comm.rank) + y * np.nextafter(0.3, comm.rank)
        return float(mb.sum(u))

    assert len(set(on_ranks(3, program))) == 1


def test_many_writes_to_parts_are_no_difference_where_a_rank_holds_what_was_there():
    def program(comm):
        x, y = arrays()
        held = []
        for k in range(80):
            if (k + comm.rank) % 3 == 0:
                held.append(x[k % 5 :])
            x[k % 7 : k % 7 + 4] = y[1:5] * (1 + k % 3)
        return float(mb.sum(x))

    for checks in (False, True):
        with mb.settings.changed(check_collectives=checks):
            assert len(set(on_ranks(3, program))) == 1


def test_the_sentence_says_what_was_computed():
    def program(comm):
        x, y = arrays()
        u = mb.sin(x * 0.5) + y if comm.rank == 0 else mb.cos(x * 0.5) + y
        return float(mb.sum(u))

    with mb.settings.changed(check_collectives=True):
        for e in fails_on_ranks(2, program):
            assert "add(sin(multiply(data, 0.5)), data)" in str(
                e
            ) and "add(cos(multiply(data, 0.5)), data)" in str(e), e


# Random programs, on ranks that look at their own parts, hold what others let go of, and do so at other times.

UNARY = [
    "mb.sin({a})", "mb.abs({a}) + 0.25", "-{a}",
    "{a} * 0.5", "mb.sqrt(mb.abs({a}))", "mb.copy({a})", "{a}[::-1]",
    "{a} * (turn % 3) - turn % 2",
]  # fmt: skip
BINARY = [
    "{a} + {b}", "{a} * {b} - 1",
    "mb.where({a} > {b}, {a}, 0.5)", "mb.maximum({a}, {b})", "mb.arctan2({a}, {b})",
]  # fmt: skip
WHOLE = [
    "mb.roll({a}, 2)", "mb.concatenate([{a}[4:], {b}[:4] * 2])", "mb.reshape({a}, (3, 4)).T.reshape(12)",
    "{a}[index]", "mb.pad({a}[1:] - {b}[:-1], (1, 0))", "{a} - mb.mean({b})", "{a} * mb.sum({a} * {b}) * 0.01",
    "mb.cumsum({a}) * 0.1", "mb.sort({a})", "mb.reshape(mb.reshape({a}, (4, 3)) @ eye, 12)",
    "mb.astype(mb.astype(mb.clip({a}, 0, 9) * 10, np.int64), np.float64)",
    "mb.reshape({a} * (1 + 0.5j), 12).imag", "{a} - mb.mean(wide[1:-1] * {b} + wide[2:])",
    "mb.pad(mb.abs({a}[1:] - {b}[:-1]) * wide[2:-1], (0, 1))",
    "{a}[::-1] * {b} + mb.max(mb.diff({a}) * {b}[1:])",
]  # fmt: skip
WRITES = [
    "{a}[2:9] = {b}[1:8] * 0.5", "{a}[...] = {b} + 0.5", "{a} += {b} * 0.1",
    "{a}[1:] = {a}[:-1]", "{a}[3:4] = 0.125",
    "{a}[{b} > 0.5] = 0.75", "{a}[index[:3]] = 1.5", "{a}[:6] *= 2",
    "{a}[4:8] = {b}[:4]", "{a}[:] = 0.3",
    "{a}[:] = wide[1:-1] * {b} + wide[2:]",
    "{a}[:] = wide[1:-1] * (turn % 3 + 1) + {b}", "{a}[1:-1] = {b}[2:] - {b}[:-2]",
]  # fmt: skip
LOOKS = [
    "print({a}, file=dark)",
    "keep.append({a})",
    "keep.append({a}[2:])",
    "keep.append({a}.T)",
    "keep.clear()",
]


# (Ranks that have no part in a message of a program do nothing in it; others compare it with them before.)
COMPILED = ["{c} = mixed({a}, {b})", "{c} = relaxed({a})", "in_place({a}, {b})"]


def mixed(a, b):
    return mb.sin(a) * b + 0.5


def relaxed(a):
    s = a * 0.5
    for _ in range(3):
        s = s + 0.1 * (a - s)
    return s


def in_place(a, b):
    a[2:7] = b[1:6] * 0.5
    a += b * 0.1


def random_program(seed, elementwise=False, compiled=False):
    """Lines of a program, and for each rank what it does for itself after each of them."""
    r = np.random.default_rng(seed)
    names = ["x", "y", "z"]
    lines = []
    for _ in range(14):
        a, b, c = r.choice(names, 3)
        kinds = [UNARY, BINARY, WRITES[:3]] if elementwise else [UNARY, BINARY, WHOLE, WHOLE, WRITES, WRITES]
        kind = COMPILED if compiled and r.random() < 0.25 else kinds[r.integers(len(kinds))]
        text = str(r.choice(kind)).format(a=a, b=b, c=c)
        whole = kind in (WRITES, COMPILED) or "=" in text.split("(")[0]
        lines.append(text if whole else f"{c} = {text}")
    looks = [
        [str(r.choice(LOOKS)).format(a=r.choice(names)) if r.random() < 0.4 else "" for _ in lines]
        for _ in range(3)
    ]
    return lines, looks


def ran(lines, looks, comm):
    here = {"mb": mb, "np": np, "keep": [], "dark": io.StringIO()}
    here |= {n: D(np.random.default_rng(k).uniform(0.2, 1, 12), comm=comm) for k, n in enumerate("xyz")}
    here["index"] = D(np.array([3, 1, 2, 0, 5, 4, 11, 10, 9, 8, 7, 6]), comm=comm)
    here["eye"] = D(np.eye(3), comm=comm)
    here["wide"] = D(np.linspace(0.1, 1, 14), comm=comm)
    here |= {f.__name__: mb.compile(f) for f in (mixed, relaxed, in_place)}
    for turn, (line, look) in enumerate(zip(lines, looks[comm.rank], strict=True)):
        here["turn"] = turn
        exec(line, here)
        exec(look, here)
    return [mb.to_numpy(here[n]) for n in "xyz"]


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("seed", range(48))
def test_what_ranks_do_for_themselves_is_no_difference(seed, checks):
    lines, looks = random_program(seed, compiled=seed >= 40)
    with mb.settings.changed(check_collectives=False):
        expected = on_ranks(3, lambda comm: ran(lines, [[""] * len(lines)] * 3, comm))
    with mb.settings.changed(
        check_collectives=checks,
        check_timeout=5.0,
        immediate_size=(0, 1 << 20)[seed % 2],
        overlap_size=(0, 1 << 20)[seed // 2 % 2],
    ):
        found = on_ranks(3, lambda comm: ran(lines, looks, comm))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg="\n".join(lines))


def test_a_program_is_the_same_whatever_other_threads_do():
    def program(comm):
        f = mb.compile(in_place)
        x, y = arrays()
        f(mb.abs(x) + 0.25, y)
        f(x, y)
        return mb.to_numpy(x).tolist()

    for k in range(20):
        with mb.settings.changed(check_collectives=bool(k % 2)):
            first, *others = on_ranks(3, program)
        assert others == [first, first]


@pytest.mark.parametrize("seed", range(12))
def test_nor_is_it_where_statements_come_back(seed):
    """(What one rank knows again another does the ordinary way, as it holds what was there.)"""
    lines, looks = random_program(100 + seed)
    bounded = [f"{n} = mb.clip({n}, 0.01, 3)" for n in "xyz"]
    program = [*lines, *bounded] * 5
    own = [[*look, *[""] * 3, *[""] * (len(lines) + 3)] * 3 for look in looks]
    expected = on_ranks(3, lambda comm: ran(program, [[""] * len(program)] * 3, comm))
    with running(("hot", "cold")[seed % 2]), mb.settings.changed(overlap_size=0):
        found = on_ranks(3, lambda comm: ran(program, [o[: len(program)] for o in own], comm))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg="\n".join(lines))


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_that_differs_in_one_operation_is_found(seed):
    lines, looks = random_program(seed, elementwise=True)
    r = np.random.default_rng(1000 + seed)
    k = int(r.integers(len(lines)))
    name = "xyz"[r.integers(3)]
    other = [*lines[: k + 1], f"{name} = {name} * 1.0009765625", *lines[k + 1 :]]
    more = [[*look[: k + 1], "", *look[k + 1 :]] for look in looks]

    def values(program):
        return on_ranks(1, lambda comm: ran(program, [[""] * len(program)], comm))[0]

    differs = any(not np.array_equal(a, b) for a, b in zip(values(lines), values(other), strict=True))
    with mb.settings.changed(check_collectives=True, check_timeout=2.0):
        found = outcomes(3, lambda comm: ran(other, more, comm) if comm.rank == 1 else ran(lines, looks, comm))
    # (What was overwritten before the end may have been in a message, or not.)
    errors = [e for _, e in found]
    assert not differs or all(isinstance(e, CommunicationError) for e in errors), ("\n".join(other), errors)


@pytest.mark.parametrize("inner", ["HostArray", "RefArray"])
def test_a_whole_write_that_was_met_before_is_no_difference(inner):
    def program(comm):
        family = mb.DArray[getattr(mb, inner)]
        big, u = family(np.arange(62.0), comm=comm), family(np.zeros(60), comm=comm)
        held, sums = [], []
        for k in range(24):
            if comm.rank == 1 and k % 2:
                held.append(u[2:])  # (so this rank copies first, which is done the ordinary way)
            u[:] = big[1:-1] + big[2:] * 0.5
            sums.append(float(mb.sum(u)))
        return sums

    with running("hot"), mb.settings.changed(overlap_size=0):
        first, *others = on_ranks(3, program)
    assert others == [first, first]


@pytest.mark.parametrize("index", range(3))
def test_what_is_reduced_sends_the_same_whoever_holds_it(index):
    """(Who holds a tree of several halos gets its value first, the others reduce it as it is.)"""

    def program(comm):
        x, _ = arrays()
        wide = D(np.linspace(0.1, 1, 14))
        u = [
            lambda: wide[1:-1] * x + wide[2:],
            lambda: wide[1:-1] + mb.astype(wide, "f4")[2:] * x,
            lambda: (wide[2:] - wide[:-2]) * (wide[1:-1] + x[::-1]),
        ][index]()
        mean = mb.mean(u)
        held = [u] if comm.rank == 0 else []
        del u
        return float(mean), len(held)

    with mb.settings.changed(overlap_size=0, check_timeout=2.0):
        assert len({mean for mean, _ in on_ranks(3, program)}) == 1


@pytest.mark.parametrize("holder", [None, 0, 2])
def test_what_is_stored_is_the_same_whoever_holds_a_part_of_it(holder):
    """(A part that is stored for who holds it must not change what becomes of the tree around it.)"""

    def program(comm):
        z = D(np.random.default_rng(2).uniform(0.2, 1, 12), comm=comm)
        x = mb.reshape(z * (1 + 0.5j), 12).imag
        z = x * mb.sum(x * x) * 0.01
        held = [x] if comm.rank == holder else []
        x = x * mb.sum(x * x) * 0.01
        z[...] = x + 0.5
        z = mb.clip(z, 0.01, 3)
        y = x * 2 - 1
        z = y * z - 1
        y = mb.concatenate([z[4:], z[:4] * 2])
        return mb.to_numpy(y).tolist(), mb.to_numpy(z).tolist(), held and len(held[0])

    with mb.settings.changed(immediate_size=1 << 20, overlap_size=1 << 20, check_timeout=2.0):
        first, *others = [found[:2] for found in on_ranks(3, program)]
    assert others == [first, first]


READS = {
    "a part": "s = mb.sum(x[0:4])",
    "nothing": "s = mb.sum(x[12:])",
    "a tree over a part": "s = mb.sum(x[0:4] * 2)",
    "a part that moves": "s = mb.sum(x[8:12] + x[0:4])",
}


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("name", READS)
def test_who_copies_before_others_write_around_what_is_read_is_no_difference(name, checks):
    """(A rank that holds the array goes on with the old contents of all of it, another with what is around.)"""

    def program(comm):
        x = mb.materialize(D(np.arange(12.0)) * 2 + 1)
        here = {"mb": mb, "x": x}
        exec(READS[name], here)
        held = [x[2:], x.T, x * 1] if comm.rank == 1 else []
        x[6:8] = 5.0
        return float(here["s"]), len(held) >= 0

    for size in (0, 1 << 20):
        with mb.settings.changed(immediate_size=size, check_timeout=2.0, check_collectives=checks):
            first, *others = on_ranks(3, program)
        assert others == [first, first]
