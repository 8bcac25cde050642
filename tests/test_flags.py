"""`x.flags`: what NumPy's say of the memory, and arrays that are protected from whoever would write."""

import pickle

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md

PLACES = [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray], mb.DArray[mb.RefArray]]
SIZES = [6, 20_000]  # computed at once, and waiting


def add_one(x):
    x += 1.0
    return x


def double(i, x):
    x[i.index(0)] = x[i.index(0)] * 2


def spread(a, y):
    y[0] += a


WRITES = {
    "all": lambda x: x.__setitem__(..., 1.0),
    "a tree": lambda x: x.__setitem__(..., x * 2 + 1),
    "a part": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "places": lambda x: x.__setitem__([0, 1], 7.0),
    "a mask": lambda x: x.__setitem__(x > 1, 5.0),
    "+=": lambda x: x.__iadd__(1.0),
    "*= array": lambda x: x.__imul__(x + 1),
    "part +=": lambda x: x[1:].__iadd__(1.0),
    "reshaped": lambda x: x.reshape(2, -1).__setitem__((slice(1), ...), 9.0),
    "out": lambda x: mb.add(x, 1.0, out=x),
    "cumsum": lambda x: mb.cumsum(x, out=x),
    "fill": lambda x: x.fill(3.0),
    "sort": lambda x: x.sort(),
    "copyto": lambda x: mb.copyto(x, 0.0),
    "put": lambda x: mb.put(x, [0], 4.0),
    "add_at": lambda x: mb.add_at(x, mb.asarray(np.array([0, 0]), device=x.place), 1.0),
    "shuffle": lambda x: mb.random.default_rng(1).shuffle(x),
    "random": lambda x: mb.random.default_rng(1).random(out=x),
    "compiled": lambda x: mb.compile(add_one)(x),
    "kernel": lambda x: mb.kernel(double)[x.shape](x),
    "loop": lambda x: md.loop(md.Points("m", "cell", x.size), spread, 1.0, md.INC(x)),
}  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("A", PLACES[:4], ids=repr)
@pytest.mark.parametrize("how", WRITES)
def test_nobody_writes_to_a_protected_array(A, how, n):
    wanted = np.arange(n, 0, -1.0)
    for x in (A(wanted), A(wanted) * 1.0):
        x.flags.writeable = False
        with pytest.raises(ValueError, match=r"read-only: `x\.flags\.writeable` is False"):
            WRITES[how](x)
        assert np.array_equal(mb.to_numpy(x), wanted)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("A", PLACES, ids=repr)
def test_who_holds_its_values_goes_on(A, n):
    v = np.arange(1.0, n + 1)
    x = A(v)
    waits, copied = x * 2 + 1, x.copy()
    x.setflags(write=False)
    assert not x.flags.writeable and copied.flags.writeable
    copied += 1
    more = x * 3
    x.setflags(write=True)
    x += 1
    x[...] = x * 2
    for got, want in ((waits, v * 2 + 1), (copied, v + 1), (more, v * 3), (x, (v + 1) * 2)):
        assert np.array_equal(mb.to_numpy(got), want)


def test_as_numpys():
    x, n = mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "BEHAVED"):
        assert x.flags[name] == n.flags[name] and x.T.flags[name] == n.T.flags[name]
    assert x.flags.carray and not x.flags.fortran and "WRITEABLE" in repr(x.flags) and x.flags == x.flags
    x.flags["WRITEABLE"] = False
    x.setflags(write=None)
    assert not np.asarray(x).flags.writeable and not x.T.flags.writeable
    assert pickle.loads(pickle.dumps(x)).flags.writeable and mb.copy(x).flags.writeable
    with pytest.raises(
        ValueError, match=r"WRITEABLE can be set, and not 'ALIGNED': `x.flags.writeable = False`"
    ):
        x.flags["ALIGNED"] = False
    with pytest.raises(ValueError, match=r"only `write` can be set: `x.setflags\(write=False\)`"):
        x.setflags(align=False)
    with pytest.raises(ValueError, match=r"whose flag counts. Set that of the array it shows, or of a copy"):
        x.T.flags.writeable = True


def test_what_is_borrowed_read_only_stays_so():
    n = np.ones(5)
    n.flags.writeable = False
    x = mb.asarray(n, copy=False)
    with pytest.raises(ValueError, match="its memory is another library's"):
        x.flags.writeable = True


@pytest.mark.parametrize("n", SIZES)
def test_compiled_functions_do_not_write_to_memory_that_is_read_only(tmp_path, n):
    """(Of a file that is mapped to be read, writing would have ended the process.)"""
    np.save(tmp_path / "x.npy", np.ones(n))
    step = mb.compile(add_one)
    step(mb.HostArray(np.ones(n)))
    x = mb.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"), copy=False)
    for _ in range(3):
        with pytest.raises(ValueError, match="it shares the memory of a read-only array of NumPy"):
            step(x)
    assert float(mb.sum(x)) == n


def test_protected_inside_of_a_compiled_function():
    def f(x):
        z = np.zeros(3)
        z.flags.writeable = False
        try:
            z[0] = x[0]
        except ValueError:
            return x + 1
        return z

    for _ in range(2):
        assert mb.compile(f)(mb.HostArray([1.0, 2.0])).tolist() == [2.0, 3.0]
