"""What Python functions are made of, under `mb.compile`: each gives and writes what it does with NumPy."""

import threading

import numpy as np
import pytest
from test_compile_pieces import agree

import mirabelle as mb

H = mb.HostArray
X, Y = np.linspace(-1, 1, 30), np.arange(30.0)


def kw(x, *, scale=2.0, n=3, **more):
    for i in range(n):
        x = x * scale + more.get("b", 0)
    if x.max() > 3:
        return x - 1
    return x


def nested(x):

    def inner(v):
        return np.where(v > t, v, 0)

    t = 0.5
    a = inner(x)
    t = -0.5
    b = inner(x)
    if a.sum() > b.sum():
        t = 9
    return (a, b, t, [inner(z) for z in (x, a)])


def gen(x):
    return (
        sum(v * v for v in x),
        max(x),
        sorted(x)[:3],
        list(map(float, x[:2])),
        [float(q) for q in x if q > 0.5],
        {i: float(v) for i, v in enumerate(x[:3])},
    )


def walrus(x):
    if (s := float(x.sum())) > -5:
        y = x * s
    else:
        y = x
    while (n := len(y)) > 20:
        y = y[1:]
    return (y, n, s)


def match_(x, mode):
    match mode:
        case "a":
            y = x * 2
        case _:
            y = x * 3
    return y


def starred(x):
    a, *b = x[:3]
    c = [*b, a]
    return (np.array(c), np.stack([x, *[x * i for i in range(3)]]).sum())


def tryfin(x):
    out = []
    try:
        for i in range(len(x)):
            if x[i] > 0.5:
                raise StopIteration
            out.append(float(x[i]))
    except StopIteration:
        pass
    finally:
        x[0] = 7
    return np.array(out)


def delete(x):
    y = x * 2
    if y[0] < 0:
        del x
        z = y
    else:
        z = x
    return z


def ternary(x):
    s = 1 if x[0] > 0 else -1
    t = x if s > 0 and x.sum() > 0 else -x
    assert t.shape == x.shape, "shape"
    return s * t


def loopvar(x):
    for i in range(5):
        x = x + 1
    for j in range(len(x)):
        if x[j] > 5:
            break
    return (x, i, j)


def forelse(x):
    for i in range(len(x)):
        if x[i] > 100:
            break
    else:
        return x * 0
    return x


def aug(x, y):
    z = x
    z += 1
    y[2:5] *= z[2:5]
    w = z[::2]
    w -= 1
    if float(w.sum()) > 0:
        w *= 2
    return (x is z, z)


def alias(x):
    a = x[2:]
    b = x[:-2]
    for k in range(3):
        a[...] = b * 0.5
        if x[0] > 9:
            break
    return a


def retself(x):
    if x.sum() > -1000000000.0:
        x[0] = 1
    return x


def dtype(x):
    n = x.shape[0]
    acc = np.zeros(n, dtype=x.dtype)
    idx = np.zeros(n, dtype=np.int64)
    for i in range(n):
        idx[i] = i * 7 % n
        acc[idx[i]] += x[i]
    return (acc[idx], acc.dtype == x.dtype)


def strs(x, names):
    r = {}
    for k in names:
        r[k] = x * len(k)
    return r


def recur(x, n):
    if n == 0:
        return x
    if x.max() > 1000.0:
        return x
    return recur(x * 2, n - 1)


def twod(A):
    n, m = A.shape
    B = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            s = 0.0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if 0 <= i + di < n and 0 <= j + dj < m:
                        s += A[i + di, j + dj]
            B[i, j] = s
    return B


def neg(x):
    for i in range(len(x)):
        x[-i - 1] = x[i - 3]
    return x


def npargs(x):
    return (
        np.concatenate([x, np.ones(2)]),
        np.linspace(0, 1, 5) * x[0],
        np.array([x[0], x[1], 3.0]),
        np.array([[1, 2], [3, 4]]) @ x[:2],
        np.full(3, x[2]),
        np.eye(3)[0] * x[:3],
    )


GIVEN = {match_: (X, "a"), aug: (X, Y), strs: (X, ("a", "bb")), recur: (Y, 4)}
GIVEN |= dict.fromkeys((alias, retself, dtype, neg), (Y,))
GIVEN |= {twod: (np.random.default_rng(0).random((12, 9)),)}
OF_X = [kw, nested, gen, walrus, starred, tryfin, delete, ternary, loopvar, forelse, npargs]
CASES = GIVEN | dict.fromkeys(OF_X, (X,))


def flat(x):
    if isinstance(x, (tuple, list)):
        return tuple(z for y in x for z in flat(y))
    if isinstance(x, dict):
        return tuple(z for y in x.values() for z in flat(y))
    return (x,)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_functions_are_numpys(f):
    agree(f, *CASES[f], flatten=flat)


class Model:
    def __init__(self):
        self.w = 2.0
        self.calls = 0
        self.cache = {}

    def run(self, x):
        self.calls += 1
        for i in range(len(x)):
            if x[i] > 0:
                x[i] = x[i] * self.w
        self.cache["last"] = float(x.sum())
        return x * self.w + self.calls


def test_methods_and_what_they_hold():
    ours, theirs = Model(), Model()
    run = mb.compile(ours.run)
    for w in (2.0, 2.0, 5.0):
        ours.w = theirs.w = w
        assert np.allclose(mb.to_numpy(run(H(X.copy()))), theirs.run(X.copy()))
    assert ours.calls == theirs.calls == 3 and ours.cache == theirs.cache


def counting():
    calls = [0]

    def f(x):
        calls[0] += 1
        if x.sum() > -100:
            return x * calls[0]
        return x

    return f


def test_closures_that_change():
    ours, theirs = mb.compile(counting()), counting()
    assert all(ours(H(X)).tolist() == theirs(X).tolist() for _ in range(4))


def unbound(x):
    if x[0] > 100:
        q = 1
    return x * q


def divided(x, y):
    for i in range(len(x)):
        y[i] = y[i] / x[i]
    return y


def test_what_goes_wrong_goes_wrong_the_same_way():
    with pytest.raises(UnboundLocalError):
        mb.compile(unbound)(H(X))
    with np.errstate(all="ignore"):
        agree(divided, np.array([0.0, 1.0] * 15), Y)


def test_arguments_come_back_themselves_and_numpys_are_written_to():
    x, y = H(Y), np.zeros(5)
    f = mb.compile(retself)
    assert f(x) is x
    f(y)
    assert y[0] == 1


def halved(x, tol):
    y, n = np.zeros(len(x)), 0
    while np.abs(y - x).max() > tol:
        y = 0.5 * (x + y)
        n += 1
    return y, n


def test_several_threads():
    f, failed = mb.compile(halved), []

    def work(i):
        try:
            for _ in range(4):
                x = np.linspace(0, 1 + i, 50 + i % 3)
                (y, n), (z, m) = f(H(x), 1e-3), halved(x, 1e-3)
                assert np.allclose(mb.to_numpy(y), z) and n == m
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
