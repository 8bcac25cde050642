"""Kernels of one's own in compiled programs write in place, and nobody who reads a value before sees it."""

import numpy as np
import pytest

import mirabelle as mb


@mb.kernel
def added(k, y, x, s):
    i = k.index(0)
    y[i] += s * x[i]


@mb.kernel
def both(k, x, y):
    i = k.index(0)
    x[i], y[i] = y[i] + 1, x[i]


@mb.kernel
def shifted(k, y, x):
    i = k.index(0)
    if i > 0:
        y[i] = x[i - 1]


def run(kernel, shape, *arguments):
    """The kernel as NumPy has it: in order, as no index reads what another writes."""
    if isinstance(arguments[0], np.ndarray):
        for i in range(shape[0]):
            kernel.python(_At(i), *arguments)
    else:
        kernel[shape](*arguments)


class _At:
    def __init__(self, i):
        self.i = i

    def index(self, d):
        return self.i


def random_program(seed):
    """Statements and launches on three arrays and on what is kept of them."""
    lines = []
    rng = np.random.default_rng(seed)
    for step in range(rng.integers(3, 9)):
        a, b = rng.choice(["x", "y", "z"], 2, replace=False)
        c = rng.choice(["x", "y", "z"])
        lines.append(
            [
                lambda v, a=a, b=b, s=step: run(added, v[a].shape, v[a], v[b], s),
                lambda v, a=a, b=b: run(both, v[a].shape, v[a], v[b]),
                lambda v, a=a, b=b: run(shifted, v[a].shape, v[a], v[b]),
                lambda v, a=a, b=b, s=step: v.__setitem__(f"kept{s}", v[a] * 2 + v[b]),
                lambda v, a=a, c=c: v.__setitem__(a, v[c].copy()),
                lambda v, a=a, b=b: v.__setitem__(a, v[b] + 0),
                lambda v, a=a, b=b: v[a].__setitem__(slice(1, None), v[b][:-1]),
                lambda v, a=a, b=b, s=step: run(added, v[a].shape, v[a], v[b] * s, 2.0),
                lambda v, a=a, b=b: run(added, (3,), v[a][:3], v[b][1:4], 3.0),
                lambda v, a=a, s=step: v.__setitem__(f"kept{s}", v[a].copy()),
                lambda v, a=a, s=step: v.__setitem__(f"sum{s}", v[a].sum()),
            ][rng.integers(11)]
        )
    rebound = rng.integers(2)

    def program(x, y, z):
        v = {"x": x, "y": y, "z": z if rebound else z * 1}
        for line in lines:
            line(v)
        return tuple(v[name] for name in sorted(v))

    return program


FAMILIES = {
    "host": (mb.HostArray, 6),
    "ref": (mb.RefArray, 16),
    "card": (mb.CuArray, 12),
    "divided": (mb.DArray[mb.RefArray], 12),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_random_programs_with_kernels_mean_what_they_mean_in_numpy(name):
    family, count = FAMILIES[name]
    for seed in range(count):
        program = random_program(seed)
        compiled = mb.compile(program)
        for trial in range(2):
            data = np.random.default_rng(trial).integers(-4, 5, (3, 6)).astype(float)
            plain, given = [x.copy() for x in data], [family(x) for x in data]
            wanted, found = program(*plain), compiled(*given)
            for w, f in zip((*wanted, *plain), (*found, *given), strict=True):
                np.testing.assert_array_equal(mb.to_numpy(f), w, err_msg=f"{name} {seed}")
    assert compiled.programs


def test_launches_one_after_another_copy_nothing():
    def steps(x, y):
        a, b = x + 1, y + 1
        for _ in range(4):
            added[a.shape](a, b, 0.5)
            added[a.shape](b, a, 0.5)
        return a, b

    program = mb.compile(steps).program(mb.ones(5), mb.ones(5))
    assert [s.name for s in program.plan.steps].count("copy") == 0
    assert [s.name for s in program.plan.steps].count("added") == 8

    def kept(x, y):
        a = x + 1
        before = a + y
        added[a.shape](a, y, 0.5)
        return a, before, a + before

    program = mb.compile(kept).program(mb.ones(5), mb.ones(5))
    assert [s.name for s in program.plan.steps].count("copy") == 0


def test_arguments_are_written_where_they_are_unless_a_kernel_may_raise():
    @mb.kernel
    def halved(k, y, x):
        i = k.index(0)
        if x[i] < 0:
            raise ValueError("negative")
        y[i] += x[i] / 2

    def steps(x, y):
        added[x.shape](x, y, 2.0)
        added[x.shape](y, x, 0.5)

    def checked(x, y):
        added[x.shape](x, y, 2.0)
        halved[x.shape](y, x)

    assert [s.name for s in mb.compile(steps).program(mb.ones(5), mb.ones(5)).plan.steps] == ["added"] * 2
    assert not added.source.may_raise and halved.source.may_raise
    x, y = mb.HostArray([1.0, -8.0]), mb.HostArray([0.5, 0.5])
    with pytest.raises(ValueError, match="negative"):
        mb.compile(checked)(x, y)
    np.testing.assert_array_equal(x, [1.0, -8.0])  # (as it was: nothing is written of what failed)
    mb.compile(steps)(x, y)
    np.testing.assert_array_equal(x, [2.0, -7.0])
    np.testing.assert_array_equal(y, [1.5, -3.0])
