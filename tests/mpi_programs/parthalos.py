"""`x.halo` and `x.local` in compiled functions: values of a program, whose messages travel meanwhile.

`parthalos.py COUNT`: what programs give is what the functions give; other widths on other ranks are an error.
"""

import os
import sys

import numpy as np

import mirabelle as mb

# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
D = mb.DArray[LOCAL]
comm = mb.distributed.communicator()
assert comm.size == int(sys.argv[1])


def heat(u):
    h = u.halo(1, wrap=True)
    return mb.DArray.from_local(0.5 * (h[2:] + h[:-2]), u.layout)


def edges(u):
    return u.halo((1, 0)) * 2, u.owned[0].start


def mixed(u, v):
    shifted = u[2:] - u[:-2]
    h, g = u.halo(2), v.halo(1, wrap=True)
    w = mb.DArray.from_local(mb.cumsum(h[2 - len(h) :]) * g[0])
    return mb.sum(u * v), shifted, {"g": g[2:] - g[:-2], "w": mb.max(w)}, u.local * 2


def stepped(u, dt):
    for _ in range(3):
        h = u.halo(1, wrap=True)
        u = mb.DArray.from_local(u.local + dt * (h[2:] - 2 * h[1:-1] + h[:-2]), u.layout)
    return u, mb.distributed.allreduce(mb.max(u.local), "max")


def numbers(x):
    if isinstance(x, (tuple, list)):
        return [n for y in x for n in numbers(y)]
    if isinstance(x, dict):
        return numbers([x[k] for k in sorted(x)])
    return [np.asarray(mb.to_numpy(x) if isinstance(x, (mb.AbstractArray)) else x)]


rng = np.random.default_rng(5)
for f, shapes in ((heat, [23]), (edges, [(11, 3)]), (mixed, [17, 17]), (stepped, [(29,)])):
    given = [D(rng.random(shape)) for shape in shapes] + [0.1] * (f is stepped)
    compiled = mb.compile(f)
    for _ in range(3):
        for made, wanted in zip(numbers(compiled(*given)), numbers(f(*given)), strict=True):
            np.testing.assert_array_equal(made, wanted)
    assert compiled._asks_for_parts and not compiled._cut, f
    compiled(*given)
    with mb.count() as counts:
        numbers(compiled(*given))
    with mb.count() as eager:
        numbers(f(*given))
    assert counts.messages <= eager.messages, (f, counts, eager)


# What one process sends before it is needed is under way meanwhile, and what goes to one process goes at once.
def spread(u):
    h, g = u.halo(1), (u * 2).halo(2)
    return h[2:, 1:-1] + h[:-2, 1:-1] + h[1:-1, 2:] + h[1:-1, :-2], g


compiled, u = mb.compile(spread), D(rng.random((400, 400)))
made, wanted = compiled(u), spread(u)
np.testing.assert_array_equal(mb.to_numpy(made[0]), mb.to_numpy(wanted[0]))
np.testing.assert_array_equal(mb.to_numpy(made[1]), mb.to_numpy(wanted[1]))
if comm.size > 1:
    names = [step.name for step in compiled.program(u).plan.steps]
    assert names.count("send") == 1, names
    assert names.index("send") < names.index("add_add_add") < names.index("receive"), names
    assert "send" in str(compiled.explain(u))


def uneven(u):
    return u.halo(1 + comm.rank) * 2


if comm.size > 1:
    try:
        mb.compile(uneven)(D(rng.random(40)))
    except mb.compiling.TraceError as e:
        assert str(e).count("parthalos.py") == 2 and "have compiled programs whose messages do not fit" in str(
            e
        ), e
    else:
        raise AssertionError("halos of other widths were exchanged")


# What a program of parts cannot do is done in pieces, as ever.
def writing(u):
    h = u.halo(1, wrap=True)
    u[...] = 0.0
    return h * 2


for _ in range(2):
    a, b = D(np.arange(9.0)), D(np.arange(9.0))
    for x, y in zip(numbers([mb.compile(writing)(a), a]), numbers([writing(b), b]), strict=True):
        np.testing.assert_array_equal(x, y)
comm.barrier()
print("fine")
