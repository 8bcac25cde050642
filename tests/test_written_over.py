"""x += y of thousands of elements: written where they are, while nobody else has them."""

import random

import numpy as np
import pytest
from ways import running

import mirabelle as mb

SIZES = [2047, 2048, 2049, 4096, 9000, 40_000]
# Statements of three arrays, a number, and values that are held: pending, computed, shown, reduced.
LINES = """
x += y; x -= y; x *= s; x += 1.0; x -= s * y; x += y * z; x += s * (y - x); x += x; x *= x; x -= x * 0.5
x /= 4.0; x = x + y; y = x; z = y * s; h = x * 2 + y; h = x + 0; h = x[::2]; h = x[1:5]; h = mb.sum(x)
h = mb.max(x * y); x += x[::-1]; x[1:] += y[:-1]; x[:] = y; x[...] = x + s; y -= h.sum() * 1e-3
x += mb.sum(y) * 1e-3; h = [x, y + 1]; h = mb.to_numpy(x); h = x.copy(); x, y = y, x; z += x; z *= 0.5; y += z
h = -x; x = abs(x); x += mb.sqrt(abs(y)); x = mb.minimum(x, 50.0); y = mb.clip(y, -20.0, 20.0); x += 2
z = mb.minimum(abs(z), 9.0); h = x.T; x += np.float64(0.5); x *= True; x += y.astype('f4')
h = mb.where(x > 0, x, y); x += h if h.shape == x.shape else 0
"""
STATEMENTS = [line.strip() for line in LINES.replace("\n", ";").split(";") if line.strip()]


class NumPys:
    """NumPy by the names that the statements use."""

    def __getattr__(self, name):
        return np.array if name == "to_numpy" else getattr(np, name)


def program(seed):
    r = random.Random(seed)
    return ["h = x * 1.0", *(r.choice(STATEMENTS) for _ in range(r.randint(8, 30)))]


def ran(lines, xp, make, size, dtype, turns):
    r = np.random.default_rng(size)
    arrays = {name: make(np.round(r.normal(size=size), 2).astype(dtype)) for name in "xyz"}
    here = {"mb": xp, "np": np, "s": 0.25, "h": arrays["x"], **arrays}
    kept = []
    with np.errstate(all="ignore"):
        for _ in range(turns):
            for line in lines:
                before = {name: here[name] for name in "xyz"}
                try:
                    exec(line, here)
                except (ValueError, TypeError, AttributeError) as e:  # (what does not fit, in both)
                    kept.append(type(e))
                    here.update(before)
            h = here["h"]
            kept += [mb.to_numpy(v) if isinstance(v, mb.AbstractArray) else np.array(v) for v in
                     (h if isinstance(h, list) else [h])]  # fmt: skip
    return [mb.to_numpy(here[name]) if xp is mb else here[name] for name in "xyz"], kept


def differs(seed, size, dtype="f8", turns=3):
    """A random program, on our arrays and NumPy's: what differs, or nothing."""
    lines, near = program(seed), 1e-9 if dtype == "f8" else 1e-4
    theirs, them = ran(lines, NumPys(), np.array, size, dtype, turns)
    ours, us = ran(lines, mb, mb.HostArray, size, dtype, turns)
    for name, a, b in zip([*"xyz", *["held"] * len(us)], [*ours, *us], [*theirs, *them], strict=True):
        refused = isinstance(a, type) or isinstance(b, type)
        if a is not b if refused else not np.allclose(a, b, rtol=near, atol=near, equal_nan=True):
            return f"{name}: {a}, not {b}; " + "; ".join(lines)
    return None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["cold", "hot"])
def test_random_updates_are_numpys(size, way):
    with running(way):
        for seed in range(12):
            assert differs(seed, size) is None


def test_updates_are_written_where_the_array_is():
    """And nothing is made room for: the loops and kernels write to the array's own memory."""
    for size in (2500, 5000, 30_000):
        x, y = mb.HostArray(np.zeros(size)), mb.HostArray(np.ones(size))
        for _ in range(80):
            x += y
        at = x._node.view.ctypes.data
        for _ in range(20):
            x += y
            x -= y
            x *= 0.5
        assert x._node.view.ctypes.data == at, size
        held = x + 0
        old = mb.to_numpy(held).copy()
        other = x
        other += 1.0
        assert (mb.to_numpy(x) == old + 1).all() and (mb.to_numpy(held) == old).all()


if __name__ == "__main__":  # python tests/test_written_over.py 2000
    import sys

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    wrong = [
        (seed, found)
        for seed in range(count)
        if (found := differs(seed, random.Random(seed).choice(SIZES), ["f8", "f8", "f4", "f8"][seed % 4]))
    ]
    print(*wrong, sep="\n")
    print(f"{count} programs, {len(wrong)} differ")
