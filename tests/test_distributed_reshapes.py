"""A divided array in another shape shows the same memory, also where the parts of processes are cut."""

import numpy as np
import pytest

import mirabelle as mb
from tests.randomdivided import difference, program
from tests.threadranks import on_ranks

D = mb.DArray[mb.HostArray]
WRITES = [
    "z.reshape(3, 4)[i[:3] % 3] = 2.0", "z.reshape(3, 4).imag[0] = 2.0", "z.reshape(3, 4).imag[...] = 2.0",
    "z.reshape(3, 4).imag[1:, 2:] = 2.0", "x.reshape(3, 4)[1:] = 5.0", "x.reshape(3, 4)[i[:2] % 3] = 5.0",
    "x.reshape(3, 4).T[1] = 5.0", "x.reshape(3, 4).T[i[:2] % 4] = 5.0", "x.reshape(3, 4).ravel()[2:4] = 9",
    "x.reshape(3, 4).reshape(2, 6)[1] = 9", "x.reshape(3, 4)[x.reshape(3, 4) > 5] = 0",
    "z.reshape(3, 4).real[z.reshape(3, 4).real > 5] = 0", "z.reshape(3, 4).imag += 1",
    "x.reshape(3, 4)[0] += 1",
    "x.reshape(3, 4).view('i8')[0] = 1", "z.reshape(3, 4).real.T[i[:2] % 4] = 1",
    "np.fill_diagonal(x.reshape(3, 4), 9.0)", "np.put(x.reshape(3, 4), [1, 2], 9.0)",
    "np.copyto(x.reshape(3, 4), 7.0)", "np.add(x.reshape(3, 4), 1.0, out=x.reshape(3, 4))",
    "x.reshape(3, 4).fill(3)", "z.reshape(4, 3)[::2, 1:].imag[...] = 4",
    "y = x.reshape(2, 6); x += 1; y[1] *= y[0]",
    "y = x.reshape(3, 4); w = y * 2; x[2:5] = 0; y[2] = w[0]; x[:3] = w[1, 1:]",
    "x.reshape(3, 4)[...] = x.reshape(3, 4)[::-1]",
    "x.reshape(2, 6)[:, 1:] = x.reshape(2, 6)[:, :-1]", "w = np.sum(x.reshape(3, 4), axis=0); x[:4] = w",
    "x[:] = np.reshape(x.reshape(3, 4) @ x.reshape(4, 3), 9)[:1]",
    "w = x.reshape(12, 1)[::2].reshape(3, 2); x[:3] = w[:, 1]",
]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_writes_to_another_shape_are_writes_to_the_array(ranks):
    def program(comm):
        return [after(w, lambda a: D(a, comm=comm), mb) for w in WRITES]

    found = on_ranks(ranks, program)
    for k, write in enumerate(WRITES):
        expected = after(write, lambda a: a, np)
        for values in found:
            for a, b in zip(values[k], expected, strict=True):
                np.testing.assert_allclose(a, b, err_msg=f"{write} on {ranks}")


def after(write, make, library):
    x, z = make(np.arange(12.0)), make(np.arange(12) * (1 + 0.5j) + 1j)
    exec(write, {"np": library, "x": x, "z": z, "i": make(np.array([3, 1, 2, 0]))})
    return mb.to_numpy(x), mb.to_numpy(z)


READS = [
    "z.imag[i]", "z.real[i]", "z.imag[::2][i[:4] // 2]", "z.reshape(3, 4).imag[i[1:4] % 3]", "z.imag[::-1][i]",
    "z.reshape(3, 4).T.imag[i[1:4] % 4]", "z.reshape(3, 4).real[:, i[:3] % 4]", "np.take(z.imag, i)",
    "z.real[z.imag > 2]", "z.imag[1:][i[:3]]", "np.sum(z.imag[i] * z.real[:4])", "z.reshape(2, 6)[i % 2].imag",
]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_elements_are_picked_from_the_parts_of_complex_numbers(ranks):
    z, i = np.arange(12) * (1 + 0.5j) + 1j, np.array([3, 1, 2, 0])

    def program(comm):
        here = {"np": mb, "z": D(z, comm=comm), "i": D(i, comm=comm)}
        return [mb.to_numpy(eval(text, here)) for text in READS]

    for values in on_ranks(ranks, program):
        for text, found in zip(READS, values, strict=True):
            np.testing.assert_allclose(found, eval(text, {"np": np, "z": z, "i": i}), err_msg=text)


@pytest.mark.parametrize("seed", range(30))
def test_random_shapes_show_the_same_memory(seed):
    r = np.random.default_rng(seed)
    shapes = [(24,), (2, 12), (3, 8), (4, 6), (6, 4), (8, 3), (2, 3, 4), (4, 3, 2), (1, 24), (24, 1)]
    lines = []
    for _ in range(8):
        a, b = (shapes[k] for k in r.integers(0, len(shapes), 2))
        first, step = int(r.integers(0, a[0])), int(r.choice([1, 2, -1]))
        part = f"x.reshape({a})[{first}::{step}]"
        lines.append(
            [
                f"{part} = {r.random():.3f}",
                f"{part} += x.reshape({a})[{first}::{step}] * 0.5",
                f"x.reshape({a})[...] = mb.reshape(x.reshape({b}) * 0.5, {a}) + 1",
                f"v.append(x.reshape({a})); v.append({part} * 2)",
                "x += v[-1].sum() * 0.01 if v else 1; v and v[0].__setitem__(slice(1), 0.25)",
            ][r.integers(5)]
        )

    def program(comm, xp=mb):
        make = D if xp is mb else np.array
        here = {"mb": xp, "v": []}
        here["x"] = D(np.arange(24.0), comm=comm) if xp is mb else make(np.arange(24.0))
        for line in lines:
            exec(line, here)
        return [mb.to_numpy(a) if xp is mb else a for a in (here["x"], *here["v"])]

    expected = program(None, np)
    for values in on_ranks(1 + seed % 4, program):
        for a, b in zip(values, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg="\n".join(lines))


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.filterwarnings("ignore")
def test_random_programs_over_divided_arrays(seed):
    """A slice of `python -m tests.randomdivided`."""
    said = difference(seed, 1 + seed % 4)
    assert said is None, "\n".join([said, *program(seed)[0]])
