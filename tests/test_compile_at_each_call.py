"""What a function does at each call beside computing (lists that grow, counters, random numbers, texts) is done
at each call under `mb.compile`, too: wherever it stands, and though the function is run once to be captured."""

import collections
import contextlib
import copy
import random

import numpy as np
import pytest

import mirabelle as mb

X = np.linspace(0.0, 1.0, 9)
STORE: dict = {}


class Counter:
    n = 0


def helped():
    STORE["list"].append(1)
    return len(STORE["list"])


def drawn_by_helper():
    return random.random()


def appends(x):
    STORE["list"].append(x.max())
    return x * len(STORE["list"])


def appends_numbers(x):
    STORE["list"].append(3)
    return x * len(STORE["list"])


def appends_before_a_value_is_asked_for(x):
    STORE["list"].append(3)
    if x.max() > 0.5:
        x = x + 1
    return x * len(STORE["list"])


def appends_to_many(x):
    STORE["many"].append(x.sum())
    return x * len(STORE["many"])


def keeps_the_last(x):
    STORE["deque"].append(x.sum())
    return x * len(STORE["deque"])


def grows_a_set(x):
    STORE["set"].add(len(STORE["set"]))
    return x * len(STORE["set"])


def counts_in_a_class(x):
    Counter.n += 1
    return x * Counter.n


def by_a_helper(x):
    return x * helped()


def goes_on(x):
    return x * next(STORE["iterator"])


def draws(x):
    return x + STORE["numpys"].random(9) + STORE["python"].random()


def draws_by_a_helper(x):
    return x + drawn_by_helper()


def by_default(x, seen=[]):
    seen.append(1)
    return x * len(seen)


def fresh():
    STORE.update(
        {
            "list": [], "many": [0] * 100, "deque": collections.deque(maxlen=3), "set": set(),
            "iterator": iter(range(1, 50)), "numpys": np.random.default_rng(3), "python": random.Random(4),
        }
    )  # fmt: skip
    Counter.n = 0
    random.seed(5)
    by_default.__defaults__[0].clear()


FUNCTIONS = [
    appends, appends_numbers, appends_before_a_value_is_asked_for, appends_to_many, keeps_the_last, grows_a_set,
    counts_in_a_class, by_a_helper, draws, draws_by_a_helper, by_default,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_is_done_at_each_call(f):
    fresh()
    wanted = [np.asarray(f(X)) for _ in range(4)]
    kept = len(STORE["list"]), len(STORE["many"]), len(STORE["set"]), Counter.n
    fresh()
    compiled = mb.compile(f)
    for k in range(4):
        np.testing.assert_allclose(mb.to_numpy(compiled(mb.HostArray(X))), wanted[k])
    assert kept == (len(STORE["list"]), len(STORE["many"]), len(STORE["set"]), Counter.n)
    assert all(type(x) is int or x.place.kind == "host" for x in STORE["list"] + STORE["many"])


def test_an_iterator_goes_on():
    iterator = iter(range(1, 50))

    def f(x):
        return x * next(iterator)

    compiled = mb.compile(f)
    assert [float(mb.max(compiled(mb.HostArray(X)))) for _ in range(4)] == [1, 2, 3, 4]


def test_what_fills_a_dictionary_is_one_program():
    cache: dict = {}

    def f(x):
        n = len(x)
        if n not in cache:
            cache[n] = 0.5 * n
        return x + cache[n]

    compiled = mb.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(mb.to_numpy(compiled(mb.HostArray(X))), X + 4.5)
    assert len(compiled.programs) == 1


TEXTS = [
    lambda x: f"{x.sum():.3f}",
    lambda x: str(x.sum()),
    lambda x: repr(x[:2]),
    lambda x: f"{x.max():.2f} {x[3]}",
    lambda x: "".join(str(v) for v in x[:2]),
    lambda x: format(x[3], ".2f"),
]


def labelled(x):
    y = x * 2
    label = f"largest {y.max():.1f}"
    return y + 1, label


def refused(x):
    if x.min() >= 0:
        raise ValueError(f"least is {x.min():.1f}")
    return x


def test_texts_are_of_values():
    x = mb.HostArray(X)
    for f in TEXTS:
        compiled = mb.compile(f)
        for _ in range(2):
            assert compiled(x) == f(x)
    compiled = mb.compile(labelled)
    for _ in range(2):
        y, label = compiled(x)
        np.testing.assert_array_equal(mb.to_numpy(y), X * 2 + 1)
        assert label == "largest 2.0"
    for _ in range(2):
        with pytest.raises(ValueError, match=r"least is 0\.0"):
            mb.compile(refused)(x)


# What is taken, counted, collected, and reached from what is written within


COUNTED: collections.Counter = collections.Counter()
TALLY: dict = {}
QUEUE = [1, 2, 3, 4, 5, 6]
BOXES = {i: i for i in range(9)}
KINDS: dict = {}
SEEN: list = []
BYTES = bytearray()


def taken(x):
    return x * QUEUE.pop()


def deleted(x):
    del QUEUE[0]
    return x * QUEUE[0]


def popped(x):
    return x * BOXES.popitem()[1]


def counted(x):
    COUNTED["calls"] += 1
    return x * COUNTED["calls"]


def tallied(x):
    TALLY["calls"] = TALLY.get("calls", 0) + 1
    return x * TALLY["calls"]


def collected(x):
    KINDS.setdefault("a", []).append(1)
    return x * len(KINDS["a"])


def in_a_comprehension(x):
    return x * sum([SEEN.append(i) or i for i in range(3)])


def in_a_function(x):
    def twice(y):
        SEEN.append(1)
        return y * 2

    return twice(twice(x)) * len(SEEN)


@contextlib.contextmanager
def entered():
    SEEN.append("in")
    yield 2
    SEEN.append("out")


def within(x):
    with entered() as k:
        return x * k


def in_bytes(x):
    BYTES.append(3)
    return x * len(BYTES)


OUTSIDE = (QUEUE, BOXES, COUNTED, TALLY, KINDS, SEEN, BYTES)
EACH = (
    taken, deleted, popped, counted, tallied, collected, in_a_comprehension, in_a_function, within, in_bytes,
)  # fmt: skip


@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_what_is_outside_is_as_python_leaves_it(f):
    held = [copy.deepcopy(x) for x in OUTSIDE]

    def outcome(f, make):
        for x, before in zip(OUTSIDE, held, strict=True):
            x.clear()
            x.update(before) if isinstance(x, dict) else x.extend(before)
        values = [np.asarray(f(make(X + k))).tolist() for k in range(4)]
        return values, copy.deepcopy(OUTSIDE)

    try:
        assert outcome(mb.compile(f), mb.HostArray) == outcome(f, lambda x: x)
    finally:
        outcome(lambda x: x, lambda x: x)
