"""`@mb.kernel` on arrays over processes: random kernels beside Python's loops, what is sent, what is refused.

`indexkernels.py TYPE SEED FOLDER COUNT`: of arrays of that type on each process. Kernels are made of source, so
those made at random are written to FOLDER first.
"""

import importlib.util
import itertools
import pathlib
import sys

import numpy as np

import mirabelle as mb

comm = mb.distributed.communicator()
P, ME = comm.size, comm.rank
TYPE, SEED, FOLDER, COUNT = sys.argv[1:]
D = mb.DArray[getattr(mb, TYPE)]
Block, BlockCyclic, Replicated = mb.distributed.Block, mb.distributed.BlockCyclic, mb.distributed.Replicated


class Loop:
    """A kernel's context for one index."""

    def __init__(self, at, shape):
        self.at, self.shape = at, shape

    def index(self, d=None):
        return self.at if d is None else self.at[d]

    def size(self, d=None):
        return self.shape if d is None else self.shape[d]

    @staticmethod
    def atomic_add(a, i, value):
        a[i] += value

    @staticmethod
    def atomic_max(a, i, value):
        a[i] = max(a[i], value)


def looped(kernel, shape, *arguments):
    """The kernel run by Python, one index after the other, on NumPy's arrays."""
    for at in np.ndindex(*shape):
        kernel.python(Loop(at, shape), *arguments)


def beside(kernel, shape, arguments, layouts=()):
    """Run a kernel on divided arrays and by a loop: the same bits, and what was counted."""
    plain = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]

    def divided(x, layout):
        if not isinstance(x, np.ndarray):
            return x
        return D(x, layout=layout)

    for _ in range(2):  # (the second launch is a known one)
        given = [divided(x, layout) for x, layout in itertools.zip_longest(plain, layouts)]
        with mb.count() as c:
            kernel[shape](*given)
    looped(kernel, shape, *plain)
    for x, g in zip(plain, given, strict=True):
        if isinstance(x, np.ndarray):
            np.testing.assert_array_equal(mb.to_numpy(g), x, err_msg=f"{kernel.__name__} {shape} {layouts}")

    # In a program of the same arrays: a step of each process's plan, which sends no more.
    def program(*arrays):
        each = iter(arrays)
        kernel[shape](*[next(each) if isinstance(x, np.ndarray) else x for x in arguments])

    program = mb.compile(program)
    for _ in range(2):
        given = [divided(x, layout) for x, layout in itertools.zip_longest(arguments, layouts)]
        given = [x for x in given if isinstance(x, mb.AbstractArray)]
        with mb.count() as counted:
            program(*given)
    for x, g in zip([x for x in plain if isinstance(x, np.ndarray)], given, strict=True):
        words = f"{kernel.__name__} {shape} {layouts} compiled"
        np.testing.assert_array_equal(mb.to_numpy(g), x, err_msg=words)
    assert counted.messages <= c.messages, (kernel.__name__, shape, layouts, vars(counted), vars(c))
    return c


# Random kernels


def an_index(rng, i, n):
    """A read of an index along a dimension of length n (text), and a condition under which it is inside."""
    c = int(rng.integers(-4, 5))
    return [
        (f"{i} + ({c})", f"0 <= {i} + ({c}) < {n}"),
        (f"({i} + ({c})) % {n}", None),
        (f"min(max({i} - ({c}), 0), {n} - 1)", None),
        (f"{i} // 2", None),
        (f"2 * {i} - ({c})", f"2 * {i} - ({c}) >= 0 and 2 * {i} - ({c}) <= {n} - 1"),
        (f"{n} - 1 - {i}", None),
        (f"{n} - 1", f"{i} == 0"),
        ("0", f"not {i} < {n} - 1"),
        (f"{i} + s", f"{i} + s < {n} and not {i} + s < 0"),
        (f"({i} - s) % {n}", f"{i} != 0"),
    ][rng.integers(10)]


def a_kernel(rng, name, ndim):
    """The text of a kernel that writes y where it is, of elements of x around it."""
    ij = "ij"[:ndim]
    lines = [f"    {', '.join(ij)} = k.index()" if ndim > 1 else "    i = k.index(0)"]
    lines += [f"    {n} = x.shape[{d}]" for d, n in enumerate("nm"[:ndim])]
    lines.append("    t = y[" + ", ".join(ij) + "] * 0")
    for _ in range(rng.integers(1, 4)):
        parts, conditions = [], []
        for i, n in zip(ij, "nm", strict=False):
            text, condition = an_index(rng, i, n) if rng.random() < 0.7 else (i, None)
            parts.append(text)
            conditions += [condition] if condition else []
        read = f"x[{', '.join(parts)}]"
        how = rng.integers(3)
        test = " and ".join(f"({c})" for c in conditions) or "True"
        if how == 0:
            lines += [f"    if {test}:", f"        t += {read}"]
        elif how == 1:
            lines.append(f"    t += {read} if {test} else {int(rng.integers(3))}")
        else:
            w = int(rng.integers(1, 4))
            around = ", ".join(["a", *ij[1:]])
            lines += [f"    for a in range(max(i - {w}, 0), min(i + {w}, n)):", f"        t = t + x[{around}]"]
            lines += [
                f"    if not ({test}):",
                f"        t = t + {int(rng.integers(3))}",
                "    else:",
                f"        t -= {read}",
            ]
    lines.append(f"    y[{', '.join(ij)}] = t + {ij[-1]}")
    return f"@mb.kernel\ndef {name}(k, y, x, s):\n" + "\n".join(lines) + "\n\n\n"


def random_kernels(seed, folder, count):
    rng = np.random.default_rng(seed)
    text = "import mirabelle as mb\n\n\n"
    dims = [int(rng.integers(1, 3)) for _ in range(count)]
    for k, ndim in enumerate(dims):
        text += a_kernel(rng, f"kernel{k}", ndim)
    path = pathlib.Path(folder) / f"kernels{seed}_{ME}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for k, ndim in enumerate(dims):
        kernel = getattr(module, f"kernel{k}")
        for shape in [
            tuple(map(int, rng.integers(1, 14, ndim))),
            tuple(map(int, rng.integers(1, 4, ndim))),
        ]:
            dtype = rng.choice(["f8", "f4", "i8", "i4", "c16"])
            x = rng.integers(-9, 9, shape).astype(dtype)
            y = np.zeros(shape, dtype)
            layouts = [None, Block(0), Block(-1)]
            mine = rng.choice(3)
            theirs = [*layouts, BlockCyclic(0, 2), Replicated(), layouts[mine], layouts[mine]][rng.integers(7)]
            with mb.settings.changed(overlap_size=int(rng.choice([0, 1 << 30]))):
                beside(kernel, shape, [y, x, int(rng.integers(-3, 4))], [layouts[mine], theirs])


# What is sent


@mb.kernel
def smoothed(k, y, x):
    i = k.index(0)
    if i > 0 and i < x.shape[0] - 1:
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]


@mb.kernel
def around(k, y, x, w):
    i = k.index(0)
    n = len(x)
    y[i] = x[(i + w) % n] - x[(i - 1) % n]


@mb.kernel
def plate(k, y, x, s):
    i, j = k.index()
    n, m = x.shape
    up = x[i - 1, j] if i > 0 else s
    down = x[i + 1, j] if i < n - 1 else s
    left = x[i, j - 1] if j > 0 else s
    right = x[i, j + 1] if j + 1 < m else s
    y[i, j] = (up + down + left + right) / 4


@mb.kernel
def colored(k, x, color):
    i, j = k.index()
    if (i + j) % 2 == color and 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4


@mb.kernel
def times(k, y, a, x):
    i = k.index(0)
    t = y[i] * 0
    for j in range(a.shape[1]):
        t += a[i, j] * x[j]
    y[i] = t


@mb.kernel
def flat(k, y, x):
    at = k.index(0)
    m = y.shape[1]
    y[at // m, at % m] = 2 * x[at // m, at % m] + at


@mb.kernel
def lines(k, y, z, x):
    i, j = k.index()
    m = k.size(1)
    y[i * m + j] = 2 * x[i * m + j] + i
    z[i * m + j] = x[(i * m + j + m) % len(x)]


@mb.kernel
def interior(k, y, x):
    i = k.index(0)
    y[i + 1] = x[i] + x[i + 2]


@mb.kernel
def two(k, y, z, x):
    i = k.index(0)
    y[i] = x[max(i - 2, 0)]
    z[i + 1] = y[i] + x[i]


@mb.kernel
def backwards(k, y, x):
    i = k.index(0)
    y[len(x) - 1 - i] = x[i]


@mb.kernel
def counted(k, n, x):
    i = k.index(0)
    k.atomic_add(n, i, x[i])
    k.atomic_max(n, i, k.size(0))


def counts(wide):
    """Of n elements in equal runs: who sends how many messages, of how many bytes."""
    neighbours = (0 if P == 1 else 1 if ME in (0, P - 1) else 2), (0 if P == 1 else 1 if P == 2 else 2)
    n = 60 if wide else 23
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, n).astype(float)
    c = beside(smoothed, (n,), [np.zeros(n), x])
    assert (c.messages, c.bytes_sent, c.collectives) == (neighbours[0], 8 * neighbours[0], 0), vars(c)
    shape = (n, 5)
    x2 = rng.integers(-9, 9, shape).astype("f4") * 4
    c = beside(plate, shape, [np.zeros(shape, "f4"), x2, 8])
    assert (c.messages, c.bytes_sent) == (neighbours[0], 4 * 5 * neighbours[0]), vars(c)
    if TYPE == "HostArray":
        return
    # Three elements to the one side and one to the other; between two processes that is one message.
    c = beside(around, (n,), [np.zeros(n), x, 3])
    assert (c.messages, c.bytes_sent) == (neighbours[1], 8 * 4 * (P > 1)), vars(c)
    c = beside(colored, shape, [x2, 1])
    assert (c.messages, c.bytes_sent) == (neighbours[0], 4 * 5 * neighbours[0]), vars(c)
    # Columns are no other than rows.
    c = beside(plate, shape, [np.zeros(shape, "f4"), x2, 8], [Block(1), Block(1)])
    assert (c.messages, c.bytes_sent) == (neighbours[0], 4 * n * neighbours[0]), vars(c)
    c = beside(flat, (n * 5,), [np.zeros(shape), x2])
    assert c.messages == 0, vars(c)
    if not wide:
        # (all of x on each process: one part to each of the others)
        c = beside(times, (n,), [np.zeros(n), rng.integers(0, 9, (n, n)) * 1.0, x])
        assert c.messages == P - 1, vars(c)
        shape = (4 * P, 3)  # (parts of the arrays are whole lines)
        beside(lines, shape, [np.zeros(12 * P), np.zeros(12 * P), np.arange(12.0 * P)])
        beside(interior, (n - 2,), [np.zeros(n), x])
        first, *others = parts(n)
        staggered = mb.distributed.Ragged(0, (first + 1, *others))
        beside(two, (n,), [np.zeros(n), np.zeros(n + 1), x], [None, staggered])
        beside(backwards, (n,), [np.zeros(n), x])
        beside(counted, (n,), [np.zeros(n, int), x.astype(int)])


def parts(n):
    return [sum(b - a for a, b in held) for held in Block(0).pieces(n, P)]


def views():
    """Parts of arrays are arrays, also where they are written."""
    x = np.arange(40.0).reshape(8, 5)
    a, b = D(x), D(np.zeros((8, 5)))
    plain = np.zeros((8, 5))
    smoothed[4](b[::2, 1], a[1::2, 3])
    looped(smoothed, (4,), plain[::2, 1], x[1::2, 3])
    plate[3, 8](b[:, 2:].T, a[:, 2:].T, 1.0)
    looped(plate, (3, 8), plain[:, 2:].T, x[:, 2:].T, 1.0)
    smoothed[5](b[3], a[5])  # rows of one process each
    looped(smoothed, (5,), plain[3], x[5])
    np.testing.assert_array_equal(mb.to_numpy(b), plain)
    # What was said of an array before keeps its values, also with terms that are still to be added up.
    before, total = a * 1, mb.sum(a, axis=0)
    colored[8, 5](a, 0)
    np.testing.assert_array_equal(mb.to_numpy(before), x)
    smoothed[5](total, total * 1)
    want = x.sum(0)
    looped(smoothed, (5,), want, x.sum(0))
    np.testing.assert_array_equal(mb.to_numpy(total), want)


# In compiled programs


def steps(x, y):
    for _ in range(2):
        smoothed[x.shape](y, x + 1)
        smoothed[x.shape](x, y)
    z = x * 2 + y
    return z, z.sum()


def compiled():
    plain = [np.arange(21.0) % 4 * 64, np.zeros(21)]
    program = mb.compile(steps)
    for _ in range(2):
        a, b = map(D, plain)
        with mb.count() as c:
            z, total = program(a, b)
        expected = 0 if P == 1 else 4 if ME in (0, P - 1) else 8
        # (Terms of the sum may be messages, too; those in a graph of a card are not counted.)
        assert c.messages in (expected, expected + P - 1) or (TYPE == "CuArray" and not c.messages), vars(c)
        x, y = (p.copy() for p in plain)
        for _ in range(2):
            looped(smoothed, x.shape, y, x + 1)
            looped(smoothed, x.shape, x, y)
        for got, want in ((a, x), (b, y), (z, x * 2 + y), (total, (x * 2 + y).sum())):
            np.testing.assert_array_equal(mb.to_numpy(got), want)


# What is refused


@mb.kernel
def spread(k, y, x):
    i = k.index(0)
    y[i] = x[i]
    y[i + 1] = 2 * x[i]


@mb.kernel
def scattered(k, y, x, at):
    i = k.index(0)
    y[at[i]] = x[i]


@mb.kernel
def gathered(k, y, x, at):
    i = k.index(0)
    y[i] = x[at[i]]


@mb.kernel
def summed(k, y, total, x):
    i = k.index(0)
    y[i] = x[i]
    k.atomic_add(total, (), x[i])


@mb.kernel
def tiled(k, y, x):
    part = k.shared(4, mb.float64)
    part[k.local(0)] = x[k.index(0)]
    k.barrier()
    y[k.index(0)] = part[3 - k.local(0)]


@mb.jit
def first(x, i):
    return x[i]


@mb.kernel
def handed(k, y, x):
    i = k.index(0)
    y[i] = first(x, i)


def refused(run, *words):
    try:
        run()
    except mb.LayoutError as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError(f"not refused: {words}")


def refusals():
    n = 12
    y, x, at = D(np.zeros(n)), D(np.arange(12.0)), D(np.arange(n)[::-1].copy())
    refused(lambda: spread[n - 1](y, x), "`y[i + 1] = 2 * x[i]`", "another process's", "x.local")
    refused(lambda: scattered[n](y, x, at), "elements of y at places that depend on values of arrays")
    refused(lambda: gathered[n](y, x, at), "depends on values", "Replicated()")
    refused(lambda: summed[n](y, D(0.0), x), "several processes hold the same", "mb.sum")
    refused(lambda: handed[n](y, x), "called by another name")
    refused(lambda: smoothed[n](D(np.zeros(n), layout=BlockCyclic(0, 1)), x), "dealt out", "Block(0)")
    refused(lambda: around[n](x, x, 3), "is given one array as x and as y", "mb.copy(x)")
    np.testing.assert_array_equal(mb.to_numpy(y), 0)
    # The cures.
    gathered[n](y, mb.distributed.redistribute(x, Replicated()), at)
    np.testing.assert_array_equal(mb.to_numpy(y), np.arange(12.0)[::-1])
    handed[n](y, mb.distributed.redistribute(x, Replicated()))
    np.testing.assert_array_equal(mb.to_numpy(y), np.arange(12.0))
    if n // P % 4 == 0:
        tiled[(n,), (4,)](y, x)  # (groups end where parts do)
        np.testing.assert_array_equal(mb.to_numpy(y), np.arange(12.0).reshape(3, 4)[:, ::-1].reshape(-1))
    else:
        refused(lambda: tiled[(n,), (4,)](y, x), "groups of (4,)", "x.local")


# (The host compiles each kernel, in seconds: some of them are enough.)
if TYPE != "HostArray":
    random_kernels(int(SEED), FOLDER, int(COUNT))
    counts(wide=False)
    views()
    if P > 1:
        refusals()
with mb.settings.changed(overlap_size=0):  # inner parts first, also of few elements
    counts(wide=True)
compiled()
print("fine")
