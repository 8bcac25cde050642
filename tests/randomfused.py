"""Random programs of loops over mesh points with elementwise statements around them, compiled and as they are.

    python -m tests.randomfused 500                # programs on the host and on RefArray
    python -m tests.randomfused 500 1000           # from number 1000 on

Several loops, operands that several read, arrays that are read elsewhere too, parts of arrays, numbers that
arrays give, arrays of several dtypes, written in place and given twice, and the derivative along a direction.
What is compared are bits.
"""

import sys

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md

MESHES = {n: md.unit_square(n) for n in (1, 2, 3)}
INTENTS = (md.INC, md.INC, md.INC, md.WRITE, md.MIN_RW, md.MAX_RW, md.MIN_WRITE)


def kernel(rng, widths, entries, adds, more):
    """A kernel of arrays of so many entries (0 is a number) that writes so many: coefficients, products, a
    quotient, a branch. With `more` it writes one of each cell, too."""
    c = rng.choice([0.5, -1.0, 0.25, 2.0, 0.0], size=(3, 3))
    kind = rng.integers(4)

    def computed(values, i):
        first, last = values[0], values[-1]
        total = 0.0
        for k, v in enumerate(values):
            for j, x in enumerate(v):
                total = total + c[k, j] * x
        if kind == 1:
            total = total * first[0]
        elif kind == 2:
            total = np.where(last[0] > 0.3, total, -0.5 * total)
        elif kind == 3:
            total = total / (1.0 + first[0] * first[0])
        return total - last[i % len(last)]

    def entries_of(given):
        return [[x[j] for j in range(n)] if n else [x] for x, n in zip(given, widths, strict=True)]

    def one(a, y):
        for i in range(entries):
            y[i] = y[i] + computed(entries_of([a]), i) if adds else computed(entries_of([a]), i)

    def two(a, b, y):
        for i in range(entries):
            y[i] = y[i] + computed(entries_of([a, b]), i) if adds else computed(entries_of([a, b]), i)

    def one_and_more(a, y, z):
        one(a, y)
        z[0] = computed(entries_of([a]), 1) * 0.5

    def two_and_more(a, b, y, z):
        two(a, b, y)
        z[0] = computed(entries_of([a, b]), 1) + c[0, 0]

    return ((one, two), (one_and_more, two_and_more))[more][len(widths) - 1]


class Program:
    """A random program: `run(arrays)` with arrays by name."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.mesh = MESHES[int(rng.choice([1, 2, 3]))]
        self.n = {w: self.mesh.points(w).size for w in ("vertex", "cell")}
        self.dtype = np.dtype(rng.choice(["f8", "f8", "f4"]))
        self.statements = [self.statement() for _ in range(rng.integers(3, 9))]
        self.returned = int(rng.integers(1, 4))

    def statement(self):
        rng = self.rng
        what = rng.choice(
            ["map", "map", "loop", "loop", "loop", "inplace", "part", "sum", "fill", "rows"],
            p=[0.2, 0.1, 0.2, 0.15, 0.1, 0.08, 0.05, 0.05, 0.04, 0.03],
        )
        where = str(rng.choice(["vertex", "vertex", "cell"]))
        picks = rng.integers(0, 1 << 30, size=6).tolist()
        number = float(rng.choice([2.0, -0.5, 0.0, -0.0, 1.0, 0.1, 3.0]))
        spec = {
            "what": str(what),
            "where": where,
            "picks": picks,
            "number": number,
            "op": int(rng.integers(12)),
        }
        if what == "loop":
            spec["intent"] = INTENTS[rng.integers(len(INTENTS))]
            spec["target"] = str(rng.choice(["vertex", "vertex", "cell"]))
            spec["sources"] = [str(rng.choice(["vertex", "vertex", "cell"])) for _ in range(rng.integers(1, 3))]
            spec["fresh"] = bool(rng.random() < 0.6)
            if spec["intent"] is md.WRITE:
                spec["target"] = "cell"
            widths = [3 if w == "vertex" else 0 for w in spec["sources"]]
            entries = 3 if spec["target"] == "vertex" else 1
            spec["more"] = bool(rng.random() < 0.4)
            spec["kernel"] = kernel(rng, widths, entries, spec["intent"] is md.INC, spec["more"])
        return spec

    def arrays(self, kind):
        rng = np.random.default_rng(7)
        made = {}
        for w, n in self.n.items():
            for i in range(2):
                x = rng.standard_normal(n).round(1).astype(self.dtype)
                x[0] = -0.0
                made[f"{w}{i}"] = getattr(mb, kind)(x)
        made["other"] = getattr(mb, kind)(
            rng.standard_normal(self.n["vertex"]).astype("f4" if self.dtype == "f8" else "f8")
        )
        return made

    def run(self, *given):
        """The program, of the arrays in the order of `arrays`."""
        pool = {"vertex": [*given[:2], given[4]], "cell": list(given[2:4])}
        corners, cells = self.mesh.closure("cell", "vertex"), self.mesh.points("cell")
        scalars = [2.0]
        for s in self.statements:
            p, own = s["picks"], pool[s["where"]]
            a, b, c = (own[p[k] % len(own)] for k in range(3))
            scalar = scalars[p[5] % len(scalars)]
            if s["what"] == "map":
                own.append(mapped(s["op"], a, b, c, s["number"], scalar))
            elif s["what"] == "sum":
                scalars.append(mb.sum(a) * 0.125)
            elif s["what"] == "fill":
                own.append(mb.full_like(a, s["number"]))
            elif s["what"] == "part":
                a[1:] = b[1:] * s["number"]
            elif s["what"] == "rows":
                own.append(b[::-1] * 1.0)
            elif s["what"] == "inplace":
                if s["op"] % 2:
                    a += s["number"] * b
                else:
                    a[...] = mb.where(b > 0, c, a)
            else:
                target = pool[s["target"]]
                y = target[p[3] % len(target)]
                sources = [pool[w][p[k] % len(pool[w])] for k, w in enumerate(s["sources"])]
                if s["op"] % 3 == 0:
                    sources[0] = mapped(s["op"] // 3, sources[0], sources[0], sources[0], s["number"], scalar)
                if s["fresh"]:
                    y = mb.full_like(y, s["number"])
                    target.append(y)
                elif any(x is y for x in sources):
                    continue
                ways = {"vertex": corners, "cell": None}
                reads = [md.READ(x, ways[w]) for x, w in zip(sources, s["sources"], strict=True)]
                more = [mb.zeros_like(pool["cell"][p[4] % len(pool["cell"])])] if s["more"] else []
                written = s["intent"](y, ways[s["target"]])
                md.loop(cells, s["kernel"], *reads, written, *(md.WRITE(z) for z in more))
                pool["cell"] += [z if s["op"] % 2 else 2 * z + pool["cell"][0] for z in more]
                if s["op"] % 4 == 0:
                    target.append(
                        mapped(
                            s["op"] // 4 + 1, y, a if s["target"] == s["where"] else y, y, s["number"], scalar
                        )
                    )
        found = [*pool["vertex"][3:], *pool["cell"][2:]] or [given[0] * 1.0]
        return tuple(found[-self.returned :])


def mapped(op, a, b, c, number, scalar):
    """A random elementwise expression."""
    return (
        lambda: number * a + b,
        lambda: a - number * b * c,
        lambda: a / (b * b + 1.0),
        lambda: mb.where(a > b, c, number),
        lambda: mb.sqrt(mb.abs(a)) - b,
        lambda: scalar * a,
        lambda: a + scalar * (b - a) * (c - 0.5),
        lambda: -a,
        lambda: mb.where((a < number), a * a, mb.abs(b)),
        lambda: mb.sin(a) + b,
        lambda: a * number + number,
        lambda: mb.maximum(a, b) * 0.5,
    )[op % 12]()


def bits(x):
    x = mb.to_numpy(x)
    x = np.where(x != x, np.nan, x) if x.dtype.kind == "f" else x
    return x.dtype.str, x.shape, np.ascontiguousarray(x).tobytes()


def of(program, kind, run, twice=False):
    """What a run of a program leaves behind: its results, and the arrays it was given."""
    given = list(program.arrays(kind).values())
    if twice:
        given[1] = given[0]
    results = run(*given)
    return [bits(x) for x in (*results, *given)]


def check(seed, kind):
    """Is a compiled program, called twice, the program as it is? So its derivative along a direction?"""
    program = Program(seed)
    with np.errstate(all="ignore"):
        twice = seed % 5 == 0
        expected = of(program, kind, program.run, twice)
        step = mb.compile(program.run, whole=True)
        for _ in range(2):
            assert of(program, kind, step, twice) == expected, f"seed {seed}, {kind}"
        if seed % 4 or any(s["what"] in ("part", "inplace") for s in program.statements):
            return step
        given = list(program.arrays(kind).values())
        along = [x * 0.5 + 1 for x in given]

        def derivative(*both):
            x, d = both[:5], both[5:]
            return mb.autodiff.jvp(lambda *x: program.run(*[mb.copy(y) for y in x]), x, d)[1]

        plain = [bits(x) for x in derivative(*given, *along)]
        found = [bits(x) for x in mb.compile(derivative, whole=True)(*given, *along)]
        assert found == plain, f"derivative of seed {seed}, {kind}"
    return step


def main(count=100, first=0):
    failed = joined = 0
    for seed in range(first, first + count):
        for kind in ("HostArray", "RefArray"):
            try:
                step = check(seed, kind)
                program = step.program(*Program(seed).arrays(kind).values())
                joined += sum("(" in s.name for s in program.plan.steps)
            except Exception as e:
                failed += 1
                print(f"seed {seed}, {kind}: {type(e).__name__}: {str(e)[:400]}", flush=True)
    print(f"{count} programs on 2 kinds: {failed} failed; {joined} loops were joined with what surrounds them")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
