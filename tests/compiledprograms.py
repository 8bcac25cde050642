"""Random programs (see programs.py) as compiled functions of their arrays: `python -m tests.compiledprograms`.

Each runs twice on different numbers: the second call runs the program that the first has made. Arguments, which
programs write to and show parts of, and results are compared with NumPy's afterwards.

python -m tests.compiledprograms --programs 2000
python -m tests.compiledprograms --first 4711 --programs 1 --show
python -m tests.compiledprograms --ranks 3                          # divided over threads as ranks
MIRABELLE_CUDA=auto python -m tests.compiledprograms --kind cuda   # on a real card
"""

from __future__ import annotations

import argparse
import collections
import sys
import threading
import time
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    import conftest  # noqa: F401 (the settings that tests have)

from compare import assert_near, on_real_card
from programs import STATEMENTS, Draft, Rolled, numpys, operations, written
from samples import ordinary
from threadranks import changing_often, on_ranks

import mirabelle as mb

NUMPYS_ERRORS = (ValueError, TypeError, IndexError, OverflowError)


def shared(x):
    return mb.asarray(np.array(x))


def steps(x):
    base = np.zeros(tuple(2 * n + 1 for n in x.shape), x.dtype)
    index = tuple(slice(1, None, 2) for _ in x.shape)
    base[index] = x
    return mb.asarray(base)[index] if index else mb.asarray(base)


MAKERS = {
    "host": mb.HostArray,
    "pending": lambda x: mb.HostArray(x).astype(x.dtype),
    "fortran": lambda x: mb.HostArray(np.array(x, order="F")),
    "shared": shared,
    "transposed": lambda x: mb.HostArray(np.array(x.T, order="C")).T,
    "steps": steps,
    "ref": mb.RefArray,
    "cuda": mb.CuArray,
    "dist": mb.DArray[mb.HostArray],
}
# What is reshaped of these is a copy, where NumPy's arrays of this test show the same memory.
RELAID = ("fortran", "transposed", "steps")


def source_of(number, kind, lines=14):
    draft = Draft(Rolled(number), reshapes=number % 3 > 0 and kind not in RELAID)
    statements = [*STATEMENTS, *["move"] * 4, "product", "product", "swap", "loop"]
    return written(draft, lines, statements)


def function(source, xp, constant, make):
    """The program as a function of the arrays it makes, but for those that are constants of it."""
    space = {}
    exec(compile(source, "<program>", "exec"), space)

    def program(arrays):
        given = iter(arrays)
        made = [0]
        seen = []

        def new(seed, shape, dtype):
            made[0] += 1
            if constant(made[0]):
                return make(ordinary(dtype, shape, seed))
            return next(given)

        def note(x):
            seen.append((mb.copy(x) if isinstance(x, mb.AbstractArray) else np.array(x), x))

        def total(x):
            seen.append((xp.sum(x) * 1.0, xp.sum(abs(x)) * 1.0))

        others = operations(make, [])
        space["program"](xp=xp, **{**others, "new": new, "note": note, "total": total, "force": lambda x: None})
        return seen

    return program


def needed(source, constant, seeds):
    """The arrays that a program makes, as NumPy's, with numbers of other seeds."""
    found = []

    class Done(Exception):
        pass

    space = {}
    exec(source, space)
    made = [0]

    def new(seed, shape, dtype):
        made[0] += 1
        x = ordinary(dtype, shape, seed if constant(made[0]) else seed + seeds)
        if not constant(made[0]):
            found.append(np.array(x))
        return x

    log = []
    with np.errstate(all="ignore"):
        space["program"](xp=np, **{**operations(numpys, log), "new": new})
    return found


def check(number, kind="host", passes=None, lines=14, show=False):
    """One program; returns what it came to: "same", or why it could not be compared."""
    source = source_of(number, kind, lines)
    if show:
        print(source)
    ways = (lambda i: False, lambda i: i % 2 == 0, lambda i: i % 2 == 1)
    constant = ways[number % 3]
    make = MAKERS[kind]
    plain = {"ref": mb.RefArray, "cuda": mb.CuArray, "dist": mb.DArray[mb.HostArray]}.get(kind, mb.HostArray)
    compiled = mb.compile(function(source, mb, constant, plain), passes=passes, whole=True)
    came = "same"
    for again in range(3):
        try:
            data = needed(source, constant, 10 * (again % 2))
            mine = [make(np.array(x)) for x in data]
            others = [np.array(x) for x in data]
            with np.errstate(all="ignore"):
                expected = function(source, np, constant, numpys)(others)
        except NUMPYS_ERRORS:
            return "NumPy refuses" if not again else came
        before = [np.array(x) for x in data]
        try:
            with mb.allow_scalar():
                got = compiled(mine)
        except mb.compiling.TraceError as e:
            for x, y in zip(mine, before, strict=True):
                np.testing.assert_array_equal(mb.to_numpy(x), y)
            return "refused: " + (str(e)[:240] if show else str(e).split(" in ")[0][:60])
        assert len(got) == len(expected)
        for i, ((copy, last), (numpys_copy, numpys_last)) in enumerate(zip(got, expected, strict=True)):
            where = f"result {i}, call {again}"
            if isinstance(numpys_copy, np.ndarray):
                same(copy, numpys_copy, where)
                same(last, numpys_last, where + " in the end")
            else:
                close(copy, numpys_copy, numpys_last, where)
        for i, (x, y) in enumerate(zip(mine, others, strict=True)):
            same(x, y, f"argument {i}, call {again}")
    assert len(compiled.programs) == 1
    return came


def check_on_ranks(number, ranks, passes=None, lines=10):
    """The same program of divided arrays, on ranks that are threads of this process."""
    came = on_ranks(ranks, lambda comm: check(number, "dist", passes, lines))
    assert len(set(came)) == 1, came
    return came[0]


def check_in_threads(numbers, threads=4):
    """Programs that are captured at the same time, each by a thread of its own: what each came to."""
    came = {}

    def run(mine):
        for number in mine:
            try:
                came[number] = check(number, ("host", "ref", "dist", "pending")[number % 4], lines=12)
            except Exception as e:
                came[number] = e

    started = [threading.Thread(target=run, args=(numbers[i::threads],)) for i in range(threads)]
    with changing_often():
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    return came


def same(x, y, where):
    real_card = on_real_card(x)
    x, y = np.asarray(mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else x), np.asarray(y)
    assert x.shape == y.shape and x.dtype == y.dtype, (where, x.dtype, x.shape, y.dtype, y.shape)
    if real_card and x.dtype.kind in "fc":  # (whose functions differ in the last bits)
        assert_near(x, y, any_zero=True)
        return
    np.testing.assert_array_equal(x, y, err_msg=where)


def close(x, y, scale, where):
    x, y = np.asarray(mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else x), np.asarray(y)
    rounding = {"float16": 1e-2, "float32": 1e-5}.get(x.dtype.name, 1e-5)
    assert x.dtype == y.dtype, (where, x.dtype, y.dtype)
    np.testing.assert_allclose(x, y, rtol=0, atol=float(scale) * rounding, err_msg=where)


def main():
    given = argparse.ArgumentParser("python -m tests.compiledprograms")
    given.add_argument("--first", type=int, default=0)
    given.add_argument("--programs", type=int, default=200)
    given.add_argument("--kind", default=None)
    given.add_argument("--lines", type=int, default=14)
    given.add_argument("--ranks", type=int, default=0)
    given.add_argument("--passes", default=None, help="all, none")
    given.add_argument("--show", action="store_true")
    given = given.parse_args()
    kinds = list(MAKERS)
    count = collections.Counter()
    failed = []
    began = time.perf_counter()
    for number in range(given.first, given.first + given.programs):
        kind = given.kind or (kinds[number % 13] if number % 13 < len(kinds) else "host")
        passes = [] if given.passes == "none" or (given.passes is None and number % 4 == 1) else None
        try:
            if given.ranks:
                count[check_on_ranks(number, given.ranks, passes, given.lines)] += 1
            else:
                count[check(number, kind, passes, given.lines, given.show)] += 1
        except Exception as e:
            if given.show:
                raise
            failed.append(number)
            said = str(e).strip().splitlines() or [""]
            print(
                f"program {number} ({kind}, {passes}): {type(e).__name__}: {' '.join(said[:4])[:200]}",
                flush=True,
            )
    for what, n in count.most_common():
        print(f"{n:6d} {what}")
    print(f"{len(failed)} failed: {failed[:40]}; {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
