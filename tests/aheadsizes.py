"""Random programs over arrays of any lengths, and libraries of them called at random lengths."""

from __future__ import annotations

import shutil

import numpy as np
from ahead import Loaded

import mirabelle as mb

# Lengths that are tried beside random ones.
EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025)


class Drawn:
    """A random function of u[n], a[n, m], v[m] and a number, by its seed. (Exp and sin are the C library's.)"""

    def __init__(self, seed):
        r = self.r = np.random.default_rng(seed)
        self.lines = []
        vectors, rows, tables, numbers = ["u"], ["v"], ["a"], ["t"]

        def one(names):
            return names[r.integers(len(names))]

        for k in range(r.integers(3, 8)):
            name = f"x{k}"
            kind = r.integers(10)
            if kind == 0:
                line = f"{one(tables)} * {one(rows)} + {one(vectors)}[:, None]"
                kept = tables
            elif kind == 1:
                line = f"mb.sum({one(tables)}, axis=1) - {one(vectors)} * {one(numbers)}"
                kept = vectors
            elif kind == 2:
                line = f"mb.max({one(tables)}, axis=0, initial=0.5) + mb.sum({one(tables)}, axis=0)"
                kept = rows
            elif kind == 3:
                line = f"mb.sum({one(vectors)} * {one(vectors)}) / (1 + len({one(vectors)}))"
                kept = numbers
            elif kind == 4:
                line = f"{one(vectors)}[::-1] * 0.5 + mb.abs({one(vectors)})"
                kept = vectors
            elif kind == 5:
                line = f"{one(tables)} @ {one(rows)}"
                kept = vectors
            elif kind == 6:
                line = f"mb.where({one(tables)} > {one(numbers)}, {one(tables)}, {one(tables)} * 2)"
                kept = tables
            elif kind == 7:
                line = f"mb.cumulative_sum({one(vectors)}) * 0.25"
                kept = vectors
            elif kind == 8:
                target = one(vectors[:1])
                self.lines.append(f"{target}[1:-1] += 0.25 * ({target}[2:] - {target}[:-2])")
                continue
            else:
                line = f"{one(rows)} / {one(rows)}.shape[0] + mb.mean({one(rows)} * 0.5 + 1)"
                kept = rows
            self.lines.append(f"{name} = {line}")
            kept.append(name)
        self.returned = [one(vectors), one(rows), one(tables), one(numbers)]
        body = "\n    ".join([*self.lines, f"return {', '.join(self.returned)}, {one(tables)}.T * 2"])
        self.text = f"def f(u, a, v, t):\n    {body}\n"
        scope = {"mb": mb}
        exec(compile(self.text, f"<program {seed}>", "exec"), scope)
        self.function = scope["f"]

    def arrays(self, n, m, r):
        return [r.random(n) + 0.5, r.random((n, m)) + 0.5, r.random(m) + 0.5, np.array(r.random())]


def differences(f, axes, library, sizes, all_of_them=True, threads=(1, 2)):
    """How a library for all sizes differs from the programs for some lengths, of which `axes` makes arguments;
    unless it is for all of them, it may have none for some."""
    call, found = Loaded(library, "f"), []
    for n in sizes:
        given = axes(n)
        wanted, written = None, []
        try:
            program = mb.compile(f, whole=True).program(*map(mb.HostArray, given))
            written = program.captured.written
            count = len(program.captured.returned)
            wanted = [np.array(x) for x in program.runner.run([x.copy() for x in given])]
        except Exception as e:
            found += [] if call(given, []) else [(n, "refused by Python alone", e)]
            continue
        for k in threads:
            mine = [x.copy() for x in given]
            results = [np.full(x.shape, 7, x.dtype) for x in wanted[:count]]
            workspace = None
            if k > 1:
                needs = bytes_of(call, mine)
                workspace = np.full(max(needs, 0), 0xA5, np.uint8)
                if needs > 63 and call(mine, results, k, workspace[: needs - 64]) != 8:
                    found.append((n, k, "too little workspace was enough"))
            code = call(mine, results, k, workspace)
            if code == 4 and not all_of_them:
                continue
            if code:
                found.append((n, k, f"code {code}"))
                continue
            after = [*results, *[mine[i] for i in written]]
            for i, (a, b) in enumerate(zip(after, wanted, strict=True)):
                if a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=True):
                    found.append((n, k, i, float(np.max(np.abs(a - b)))))
    return found


def bytes_of(call, arrays):
    from benchmarks.ahead import described

    keep = []
    return call.needs(described(arrays, keep), len(arrays))


def tried(seed, count=12):
    """A random program as a library for all sizes: what became of it, how that differs from the programs."""
    drawn = Drawn(seed)
    r = np.random.default_rng(seed)
    compiled = mb.compile(drawn.function, whole=True, sizes="any")
    program = compiled.program(*map(mb.HostArray, drawn.arrays(57, 91, r)))
    try:
        library = mb.compiling.build(program, name="f", threads=2)
    except TypeError as e:
        return f"refused: {str(e).split(': ', 1)[-1][:90]}", []
    lengths = [
        tuple(int(x) for x in (*r.choice(EDGES, 1), *r.choice(EDGES[:10], 1))) for _ in range(count // 2)
    ]
    lengths += [(int(r.integers(5, 4000)), int(r.integers(5, 300))) for _ in range(count // 2)]
    try:
        return "built", differences(drawn.function, lambda n: drawn.arrays(*n, r), library, lengths, False)
    finally:
        shutil.rmtree(library.path.parent)


def main():
    import argparse
    import collections
    import warnings

    parser = argparse.ArgumentParser(description="Random programs as libraries for all sizes.")
    parser.add_argument("count", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    came = collections.Counter()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        with mb.settings.changed(compiler="inline"):
            what, found = tried(seed)
        came[what] += 1
        wrong += bool(found)
        if found:
            print(f"program {seed}: {found[:4]}\n{Drawn(seed).text}", flush=True)
    print(f"{given.count} programs, {wrong} differ; {dict(came)}")


if __name__ == "__main__":
    main()
