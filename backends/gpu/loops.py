"""Loops of compiled programs on a card: many trips are one graph of kernels.

What a trip reads and writes is in the same few memories again after some trips: where a trip writes to what it
is given, after each; where it makes new values, after as many as it takes until all are back where they were.
So many trips, or several times as many, are launched by one call.
"""

from __future__ import annotations

from typing import Any

from mirabelle.backends.gpu.kernelgraphs import Launch
from mirabelle.backends.gpu.recording import recording

# A graph of trips has about so many launches at most.
LONGEST = 256
# After so many trips all must be back where it was.
PERIODS = 12
# The numbers of memories of a loop begin here.
MEMORIES = 1 << 40


class Turns:
    """Where the values of a loop are in each trip, until all are where they were."""

    def __init__(self, plan: Any, carried: int, passed: dict[int, int]) -> None:
        count = len(plan.inputs)
        kinds = [(s.shape, s.dtype) for s in (*plan.inputs, *plan.outputs)]
        # For each trip the memory that each input and each new result is in. The first are those of the inputs.
        self.trips: list[list[int]] = []
        # What the further memories are for.
        self.further: list[Any] = []
        self.works = len(set(plan.order)) == len(plan.order) and -1 not in plan.order
        rest = list(range(carried, count))
        state = start = list(range(carried))
        free: dict[Any, list[int]] = {}
        while self.works:
            places = [*state, *rest]
            for kind in kinds[count:]:
                spare = free.setdefault(kind, [])
                if spare:
                    places.append(spare.pop(0))
                else:
                    places.append(count + len(self.further))
                    self.further.append(kind)
            self.trips.append(places)
            made = iter([places[i] for i in plan.order])
            state = [places[passed[k]] if k in passed else next(made) for k in range(carried)]
            if len(set(state)) < carried or len(self.trips) > PERIODS or any(i in rest for i in state):
                self.works = False
            known = set(state)
            for i in dict.fromkeys([*places[:carried], *places[count:]]):
                if i not in known:
                    kind = kinds[i] if i < count else self.further[i - count]
                    free.setdefault(kind, []).append(i)
            for spare in free.values():
                spare.sort()
            if state == start:
                break

    def launches(self, plan: Any, rounds: int) -> list[Launch]:
        """All launches of so many rounds of trips."""
        (group,) = plan.segments
        found: list[Launch] = []
        each: list[list[Launch]] = []
        numbers = [s.number for s in (*plan.inputs, *plan.outputs)]
        for places in self.trips:
            to = {n: MEMORIES + i for n, i in zip(numbers, places, strict=True)}
            each.append([_moved(x, to) for x in group.launches])
        for _ in range(rounds):
            for trip in each:
                found += [
                    Launch(x.run, x.operands, x.values[len(x.operands) :], x.reads, x.writes) for x in trip
                ]
        return found


def _moved(x: Launch, to: dict[int, int]) -> Launch:
    """A launch in other memories."""
    return Launch(
        x.run,
        [(to.get(m, m), at) for m, at in x.operands],
        x.values[len(x.operands) :],
        [(to.get(m, m), low, high) for m, low, high in x.reads],
        [(to.get(m, m), low, high) for m, low, high in x.writes],
    )


def repeated(
    plan: Any, state: list[Any], rest: list[Any], passed: dict[int, int], trips: int
) -> tuple[list[Any], int]:
    """Do trips of a loop: the state after them, and how many they were; the others remain to be done.

    The memory of the state is the loop's own.
    """
    driver = plan.driver
    if trips < 4 or not driver.has_graphs or (driver.recorders and recording(driver) is not None):
        return state, 0
    if not plan.lock.acquire(blocking=False):
        return state, 0
    try:
        if driver.is_current():
            return _repeated(plan, state, rest, passed, trips)
        with driver.using():
            return _repeated(plan, state, rest, passed, trips)
    finally:
        plan.lock.release()


def _repeated(
    plan: Any, state: list[Any], rest: list[Any], passed: dict[int, int], trips: int
) -> tuple[list[Any], int]:
    plan.ready()
    if plan.only is None:
        return state, 0
    carried = len(state)
    key = carried, tuple(passed.items())
    turns = plan.turns.get(key)
    if turns is None:
        turns = plan.turns[key] = Turns(plan, carried, passed)
    if not turns.works:
        return state, 0
    period = len(turns.trips)
    rounds = rounds_for(trips // period, LONGEST // (period * len(plan.only.launches)))
    if rounds * period < 2:
        return state, 0
    views = [plan.aligned(v) for v in (*state, *rest)]
    views += [plan.inner._empty(*kind) for kind in turns.further]
    group = plan.rounds.get((key, rounds))
    if group is None:
        launches = turns.launches(plan, rounds)
        group = plan.rounds[key, rounds] = plan.group(launches, {MEMORIES + i: i for i in range(len(views))})
    given = tuple([v.ptr for v in views])
    times = trips // (rounds * period)
    for _ in range(times):
        group.run(given)
    done = times * rounds * period
    plan.count(done)
    return views[:carried], done


def rounds_for(wanted: int, most: int) -> int:
    """How many rounds one graph has, so that few trips are left over.

    >>> rounds_for(1000, 128), rounds_for(997, 128), rounds_for(5, 128), rounds_for(5, 0)
    (125, 83, 5, 0)
    """
    if wanted <= most:
        return wanted
    return min(range(most, most // 2, -1), key=lambda n: wanted % n, default=0)
