"""`python -m tests.soak_memory`: whatever is repeated leaves nothing behind.

python -m tests.soak_memory --repeats 3000                     # every public function and 100 random programs
python -m tests.soak_memory --ways hot compiled --only sort    # some of them
python -m tests.soak_memory --kinds cuda --part 2/8             # on simulated cards, an eighth of it
python -m tests.soak_memory --ranks 2 --kinds dist             # over processes

Each call is repeated, after some that fill caches, and then resident memory, the memory that Python handed out,
its objects, threads and open files are what they were, and so are the references to what there is once (None,
dtypes, types), of which a lost one costs no memory. What grows is printed, with how much a turn, and the
command fails. What one turn adds must be added in each of several rounds: a cache that fills up is no leak.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import itertools
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

os.environ.setdefault("MIRABELLE_CUDA", "simulated")

WAYS = ("eager", "hot", "compiled", "differentiated", "large", "programs")
ROUNDS = 3
# What a turn may add and a round, as noise (counting itself takes some): bytes of resident memory, blocks of
# Python's memory, its objects, threads, files, references to what there is once.
NOISE = {
    "resident": (96.0, 1 << 16),
    "blocks": (0.2, 24),
    "objects": (0.1, 12),
    "threads": (0.0, 0),
    "files": (0.0, 0),
    "references": (0.2, 48),
}
# NumPy keeps a reference to float64 each time: `np.empty(n)` does, where no dtype is given (2.4).
NUMPYS_REFERENCES = {"geomspace"}
# A large array has so many times the rows of a small one; fewer where a turn would take longer than this (what
# is quadratic in its arguments would take all the time there is).
LARGE = (30, 300, 3000)
TURN = 0.005


@dataclass(frozen=True)
class Counts:
    """What a process holds."""

    resident: int
    blocks: int
    objects: int
    threads: int
    files: int
    references: int

    @classmethod
    def now(cls) -> Counts:
        gc.collect()
        folder = Path("/proc/self/fd")
        files = len(list(folder.iterdir())) if folder.exists() else 0
        references = sum(map(sys.getrefcount, _singles()))
        blocks, objects = sys.getallocatedblocks(), len(gc.get_objects())
        return cls(resident(), blocks, objects, threading.active_count(), files, references)


@functools.cache
def _singles() -> tuple[Any, ...]:
    """What there is once, and what our part in C takes references to."""
    import numpy as np

    from mirabelle.dispatch import tree

    dtypes = [np.dtype(c) for c in "?bBhHiIlLefdgFD"]
    types = [x for x in vars(tree).values() if isinstance(x, type)]
    numpys = [np.ndarray, np.float64, np.int64, np.bool_, np.generic, *map(type, dtypes)]
    pythons = [None, True, False, NotImplemented, Ellipsis, (), int, float, tuple, list, dict]
    return (*pythons, *numpys, *dtypes, *types)


def resident() -> int:
    """The memory this process takes, in bytes (0 where the system does not say)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def growth(call: Callable[[], Any], repeats: int) -> dict[str, float]:
    """What each turn of a call leaves for good; asked again, of more turns, where a cache may have filled."""
    found: dict[str, float] = {}
    for times in (1, 2, 4, 8):
        found = _growth(call, repeats * times)
        if not anywhere(bool(found)):
            break
    return found


def anywhere(yes: bool) -> bool:
    """Does one of the processes say so? (All must go through the same turns.)"""
    from mirabelle.distributed import communicator

    return any(communicator().allgather_object(yes))


def _growth(call: Callable[[], Any], repeats: int) -> dict[str, float]:
    """How much of what grows in every round, in the least of them."""
    for _ in range(max(12, repeats // 4)):
        call()
    seen = [Counts.now()]
    each = max(1, repeats // ROUNDS)
    for _ in range(ROUNDS):
        for _ in range(each):
            call()
        seen.append(Counts.now())
        if not anywhere(any(_grown(seen[-2], seen[-1], each).values())):
            return {}
    rounds = [_grown(a, b, each) for a, b in itertools.pairwise(seen)]
    least = {name: min(r[name] for r in rounds) for name in NOISE}
    return {name: n for name, n in least.items() if n}


def _grown(before: Counts, after: Counts, turns: int) -> dict[str, float]:
    found = {}
    for f in fields(Counts):
        n = getattr(after, f.name) - getattr(before, f.name)
        turn, all_turns = NOISE[f.name]
        found[f.name] = n / turns if n > max(all_turns, turn * turns) else 0.0
    return found


# What is repeated


def functions() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Calls of every public function, from the suite's tables: a name, a function of arrays, and arrays."""
    from differentiable import CALLS, OTHERS, A, V, W
    from test_autodiff_functions import CONSTANTS, REFUSED

    for table in (CALLS, OTHERS):
        for name, found in table.items():
            for i, (f, *arrays) in enumerate(found):
                yield (f"{name} {i}" if i else name), f, tuple(arrays)
    for name, f in CONSTANTS.items():
        yield name, f, (V, W, A)
    for name, f in REFUSED.items():
        yield name, f, (V,)


def read(found: Any) -> Any:
    """Compute what a call gave."""
    import mirabelle as mb

    if isinstance(found, (tuple, list)):
        for x in found:
            read(x)
    elif isinstance(found, mb.AbstractArray):
        mb.materialize(found)


def subjects(way: str, kind: Any, programs: int) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """What is repeated in a way, on arrays of a kind: names, and what makes the call."""
    import numpy as np

    import mirabelle as mb

    if way == "programs":
        for name, call in random_programs(kind, programs):
            yield name, functools.partial(_itself, call)
        return
    for name, f, arrays in functions():
        call: Callable[..., Any] = f
        if way == "compiled":
            call = mb.compile(f)
        elif way == "differentiated":
            call = functools.partial(_gradient, f)

        def of(times: int, call: Any = call, arrays: Any = arrays) -> Callable[[], Any]:
            made = [np.concatenate([x] * times) if getattr(x, "ndim", 0) else x for x in arrays]
            operands = [kind.make(x) if isinstance(x, np.ndarray) else x for x in made]
            return functools.partial(_done, call, operands)

        yield name, functools.partial(_large, of) if way == "large" else functools.partial(of, 1)


def _itself(x: Any) -> Any:
    return x


def _large(of: Callable[[int], Callable[[], Any]]) -> Callable[[], Any]:
    """The call on the largest arrays for which a turn does not take long, on any process."""
    found = of(1)
    for times in LARGE:
        with contextlib.suppress(Exception):  # (what is not possible is skipped by who repeats it)
            more = of(times)
            more()
            began = time.perf_counter()
            more()
            if anywhere(time.perf_counter() - began > TURN):
                break
            found = more
    return found


def _gradient(f: Callable[..., Any], x: Any, *rest: Any) -> Any:
    import mirabelle as mb

    def number(x: Any) -> Any:
        found = f(x, *rest)
        return mb.sum(mb.real(found[0] if isinstance(found, tuple) else found))

    return mb.autodiff.gradient(number, x)


def _done(call: Callable[..., Any], operands: list[Any]) -> None:
    read(call(*operands))


def random_programs(kind: Any, count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    import numpy as np
    from programs import Draft, Rolled, numpys, run, written

    import mirabelle as mb

    for number in range(count):
        source = written(Draft(Rolled(number)), 14)
        with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
            run(source, np, numpys)
            yield f"program {number}", functools.partial(run, source, mb, kind.make)


def soak(given: argparse.Namespace) -> list[str]:
    """Repeat all of it: a line for each thing that grows."""
    from kinds import LEAVES
    from ways import running

    grown = []
    part, parts = (int(n) for n in given.part.split("/"))
    gc.collect()
    gc.freeze()  # (what was imported is not looked through each time)
    for kind in given.kinds:
        for way in given.ways:
            began, count, skipped = time.perf_counter(), 0, 0
            mode = running("hot") if way == "hot" else contextlib.nullcontext()
            with warnings.catch_warnings(), mode, _quiet():
                warnings.simplefilter("ignore")
                for k, (name, make) in enumerate(subjects(way, LEAVES[kind], given.programs)):
                    if k % parts != part or (given.only and given.only not in name):
                        continue
                    try:
                        call = make()
                        call()
                    except Exception:  # (not every function takes every kind, or is one of compiled programs)
                        skipped += 1
                        continue
                    count += 1
                    found = growth(call, given.repeats)
                    if name.partition(" ")[0] in NUMPYS_REFERENCES:
                        found.pop("references", None)
                    if found:
                        said = ", ".join(f"{n:.2f} {what}" for what, n in found.items())
                        grown.append(f"{kind}, {way}, {name}: {said} a turn")
                        print(grown[-1], flush=True)
            seconds = time.perf_counter() - began
            print(f"{kind}, {way}: {count} calls, {skipped} not possible, {seconds:.0f} s", flush=True)
    return grown


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import numpy as np

    import mirabelle as mb

    with np.errstate(all="ignore"), mb.allow_scalar():
        yield


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tests.soak_memory", description=__doc__.splitlines()[0])
    found.add_argument("--repeats", type=int, default=3000)
    found.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    found.add_argument("--kinds", nargs="+", default=["host"], help="as tests/kinds.py names them")
    found.add_argument(
        "--programs", type=int, default=100, help="so many random programs, of ten statements each"
    )
    found.add_argument("--only", help="what has this in its name")
    found.add_argument("--part", default="0/1", help="only a part, as 3/8: the fourth of eight")
    found.add_argument("--ranks", type=int, default=1)
    found.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    return found


def main() -> int:
    # (by themselves, because other packages leave a `tests` of theirs beside them)
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    given = parser().parse_args()
    if given.ranks > 1 and not given.on_rank:
        import subprocess

        from ranks.launch import command, environment

        words = command(given.ranks, __file__, "--on-rank", *sys.argv[1:])
        return subprocess.call(words, env=environment(given.ranks))
    import conftest  # noqa: F401 - (what simulates cards)

    # (Some of what is called writes files.)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        grown = soak(given)
    print(f"{len(grown)} of them grow." if grown else "Nothing grows.")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
