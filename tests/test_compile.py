"""Compiled functions: arguments and results of every kind; what cannot be compiled, and around them."""

import collections
import copy
import dataclasses
import functools
import math
import pickle
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from ways import running

import mirabelle as mb
from mirabelle.compiling import Compiled, TraceError

# One program, or an error that says why not.
whole = functools.partial(mb.compile, whole=True)

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray], mb.DArray[mb.RefArray]]
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
H = mb.HostArray


def agree(f, make, rtol=1e-12, passes=None):
    """The function compiled is the function: values, types, and what it does to its arguments; called twice."""
    eager = make()
    expected = f(*eager)
    compiled = mb.compile(f, passes=passes)
    for _ in range(2):
        arguments = make()
        same(compiled(*arguments), expected, rtol)
        same(arguments, eager, rtol)
    assert len(compiled.programs) == 1
    return compiled


def same(x, y, rtol):
    if isinstance(y, (tuple, list)):
        assert type(x) is type(y) and len(x) == len(y)
        for a, b in zip(x, y, strict=True):
            same(a, b, rtol)
    elif isinstance(y, mb.AbstractArray):
        assert type(x) is type(y)
        assert_same(x, mb.to_numpy(y), rtol=rtol, atol=rtol)
    else:
        assert x == y


def rng(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


# Arrays made inside


@families
def test_arrays_made_by_a_namespace_are_recorded(family):
    """They can be written to; with `mb.zeros` that holds where the program's arrays are of the default type."""
    xp = mb.namespace(family)

    def f(x):
        found = xp.zeros((4, 4), dtype=x.dtype)
        for i in range(4):
            found[i, i:] = x[i:] * (i + 1.0)
        return found + xp.eye(4)

    agree(f, lambda: (family(rng(4)),))


# Kinds of arrays


def everything(x, y):
    z = x * 2 + mb.sin(y)
    y[1:] = z[:-1]
    x[..., 0] = y[..., 1]
    scanned = mb.cumulative_sum(z, axis=1)
    return z, mb.sum(z, axis=0), scanned, z.T, mb.sort(z, axis=-1), z @ z.T, mb.argmax(z, axis=0), z[[0, 1]], x


@families
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_place(family, dtype):
    a, b = rng(4, 4).astype(dtype), rng(4, 4, seed=1).astype(dtype)
    agree(everything, lambda: (family(a), family(b)), rtol=1e-6 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("passes", [[], ["parts"], None], ids=str)
def test_passes_change_nothing(passes):
    a, b = rng(5, 5), rng(5, 5, seed=1)
    agree(everything, lambda: (H(a), H(b)), passes=passes)


WRAPPED = {
    "transpose": lambda: H(rng(3, 3)).T,
    "window": lambda: H(rng(4, 5))[1:, 1:4],
    "steps": lambda: H(rng(6, 6))[::-2, ::2],
    "reshaped": lambda: H(rng(9)).reshape(3, 3),
    "stretched": lambda: mb.broadcast_to(H(rng(3)), (3, 3)),
    "fortran": lambda: H(np.asfortranarray(rng(3, 3))),
    "shared": lambda: mb.asarray(rng(3, 3)),
    "shared steps": lambda: mb.asarray(rng(6, 6)[::2, ::-2]),
    "pending": lambda: H(rng(3, 3)) * 2,
}


@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_arrays_that_show_others(make):
    def f(x):
        return x + 1, x.T, x[1:], x * x.T, x @ x, mb.sum(x), x[0]

    agree(f, lambda: (make(),))
    x = make()
    back = mb.compile(lambda x, y: (x, y, x))
    for _ in range(2):
        a, b, c = back(x, 3)
        assert a is x and c is x and b == 3


@pytest.mark.parametrize("make", [m for k, m in WRAPPED.items() if k != "stretched"])
def test_writes_through_arrays_that_show_others(make):
    def f(x):
        x[1:] = x[:-1] * 2
        x += 1
        x[0, 0] = -1

    agree(f, lambda: (make(),))


def test_dtypes_and_shapes():
    def f(x):
        return x + x, mb.sum(x), x[..., None], mb.where(x != 0, x, 0), mb.ones_like(x)

    for dtype in ("?", "i1", "u8", "i4", "f2", "f4", "f8", "c8", "c16"):
        for shape in ((), (0,), (2, 0, 3), (3,), (2, 3)):
            agree(f, lambda d=dtype, s=shape: (H(np.ones(s, d)),))


S = np.eye(3) * 3 + rng(3, 3)
STRUCTURED = {
    "Diagonal": lambda: mb.Diagonal(H(rng(3))),
    "Tridiagonal": lambda: mb.Tridiagonal(H(rng(2)), H(rng(3)), H(rng(2))),
    "Kronecker": lambda: mb.Kronecker(H(S), H(rng(2, 2))),
    "Symmetric": lambda: mb.Symmetric(H(S)),
    "LowerTriangular": lambda: mb.LowerTriangular(H(S)),
    "Toeplitz": lambda: mb.Toeplitz(H(rng(3) + 2 * np.eye(3)[0]), H(rng(3) + 2 * np.eye(3)[0])),
    "Circulant": lambda: mb.Circulant(H(rng(3))),
    "CSR": lambda: mb.CSR(H(S * (S > 0.4))),
    "BlockDiagonal": lambda: mb.BlockDiagonal(H(S), H(rng(2, 2))),
}


@pytest.mark.parametrize("make", STRUCTURED.values(), ids=STRUCTURED)
def test_structured_arrays(make):
    def f(s, x):
        return s @ x, s * 2, s, s.T, mb.sum(s), s + s, mb.dense(s), s[0], None if sparse else s * x

    n = make().shape[0]
    sparse = isinstance(make(), mb.CSR)  # (the row of each entry depends on values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.DenseFallbackWarning)
        agree(f, lambda: (make(), H(rng(n))))


def test_one_value_for_all_elements_that_a_program_computes_is_returned_and_taken():
    for f in (
        lambda x: mb.Fill((3,), mb.sum(x)),
        lambda x: [mb.Fill((2,), x[0]), mb.dense(mb.sum(x) * mb.Identity(3))],
        lambda x: mb.autodiff.gradient(lambda x: mb.where(x[0] > 0, mb.sum(x * 3), mb.sum(x * 2)), x),
    ):
        agree(f, lambda: (H(np.array([1.0, 2.0, 3.0])),))
    agree(lambda a, x: (a, a * 2, a + x), lambda: (mb.Fill((3,), mb.sum(H(np.ones(3)))), H(np.ones(3))))


@pytest.mark.parametrize(
    "name", ["Tridiagonal", "Kronecker", "Symmetric", "LowerTriangular", "Toeplitz", "CSR"]
)
def test_structured_solvers(name):
    make = STRUCTURED[name]
    agree(mb.linalg.solve, lambda: (make(), H(rng(make().shape[0]))), rtol=1e-11)


def test_what_a_library_keeps_of_its_own_is_no_part_of_a_program():
    # (The factors of one matrix would be those of all.)
    with pytest.raises(TraceError):
        whole(lambda s, b: mb.linalg.factorize(s).solve(b))(STRUCTURED["CSR"](), H(rng(3)))


def objective(x):
    return mb.sum(mb.sin(x) * x * mb.sum(x))


DERIVATIVES = {
    "gradient": lambda x: mb.autodiff.gradient(objective, x),
    "hessian": lambda x: mb.autodiff.hessian(objective, x),
    "jacobian": lambda x: mb.autodiff.jacobian(lambda y: mb.exp(y) * mb.sum(y), x),
}


@pytest.mark.parametrize("family", [mb.HostArray, mb.CuArray])
@pytest.mark.parametrize("f", DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives_within(f, family):
    agree(f, lambda: (family(rng(4)),))


def test_derivatives_of_compiled_functions():
    compiled = mb.compile(objective)
    x = H(rng(4))
    for _ in range(2):
        same(mb.autodiff.gradient(compiled, x), mb.autodiff.gradient(objective, x), 1e-13)
        same(compiled(x), objective(x), 1e-13)


@families
def test_numbers_beside_arrays_of_any_place(family):
    f = mb.compile(lambda x, c: x * c)
    for c in (2.0, 5.0):
        result = f(family([1.0, 2.0]), mb.asarray(c))
        assert type(result).family is family
        assert_same(result, np.array([c, 2 * c]))
    assert len(f.programs) == 1


def test_numbers_that_were_moved_are_not_written_to():
    def f(x, c):
        c[...] = mb.sum(x)

    agree(f, lambda: (H([1.0, 2.0]), mb.asarray(np.array(1.0))))
    with pytest.raises(TypeError, match=r"writes to its argument 1.*mb\.adapt"):
        mb.compile(f)(mb.RefArray([1.0, 2.0]), mb.asarray(1.0))


# Containers and kinds of arguments


@dataclasses.dataclass
class State:
    u: Any
    v: Any
    n: int = 2


Pair = collections.namedtuple("Pair", "a b")


def test_containers():
    @mb.compile
    def f(s, p, d, items, k=None, *, z=3):
        s.u[0] = 1.0
        return State(s.u + p.a, d["x"], s.n), Pair(p.b, {"q": [items[0] * z, None, k]}), (), "text"

    for _ in range(2):
        s, p, d = State(H([5.0, 6.0]), H([1.0])), Pair(H([1.0, 1.0]), H([2])), {"x": H([3])}
        a, b, c, text = f(s, p, d, [H([1.0, 2.0]), []], z=4)
        assert type(a) is State and a.v is d["x"] and a.n == 2 and b.a is p.b and c == () and text == "text"
        assert_same(a.u, np.array([2.0, 7.0]))
        assert_same(s.u, np.array([1.0, 6.0]))
        assert_same(b.b["q"][0], np.array([4.0, 8.0]))
        assert b.b["q"][1:] == [None, None]


def test_defaults_keywords_and_numbers():
    w = H([3.0])

    @mb.compile
    def f(x, a=2, b=w):
        return x * a + b

    assert float(f(H([1.0]))[0]) == 5
    assert float(f(x=H([1.0]), a=3)[0]) == 6
    assert float(f(H([1.0]), b=H([1.0]))[0]) == 3
    integers = mb.compile(lambda x, c: x * c)
    assert [integers(H([1, 2]), c).dtype.kind for c in (2, 2.0, True, 2j)] == ["i", "f", "i", "c"]
    signs = mb.compile(lambda x, c: x * c)
    assert math.copysign(1, float(signs(H([1.0]), -0.0)[0])) == -1
    assert math.copysign(1, float(signs(H([1.0]), 0.0)[0])) == 1
    for _ in range(2):
        assert math.isnan(signs(H([1.0]), math.nan)[0])
    assert len(signs.programs) == 3


def test_static_arguments_go_by_their_values():
    f = mb.compile(lambda x, n: x * n, static=("n",))
    assert float(f(H([1.0]), 3)[0]) == 3 and float(f(H([1.0]), n=4)[0]) == 4
    g = mb.compile(lambda x, w: x * float(w[0]), static="w")
    for value in (3.0, 4.0, 3.0):
        assert float(g(H([1.0]), H([value]))[0]) == value
        assert float(g(H([1.0]), np.array([value]))[0]) == value
    assert len(g.programs) == 4
    with pytest.raises(TypeError, match="no parameter 'm'"):
        mb.compile(lambda x: x, static="m")


def test_sets_and_other_objects():
    f = mb.compile(lambda x, o: x + len(o))
    some = {1}
    assert float(f(H([1.0]), some)[0]) == 2
    some.add(5)
    assert float(f(H([1.0]), some)[0]) == 3


def test_methods():
    class Scaled:
        def __init__(self, w):
            self.w = w

        @mb.compile
        def times(self, x):
            return self.w * x

    a, b = Scaled(H([2.0, 3.0])), Scaled(4.0)
    for _ in range(2):
        assert_same(a.times(H([1.0, 1.0])), np.array([2.0, 3.0]))
        assert_same(b.times(H([1.0, 1.0])), np.array([4.0, 4.0]))
    for k in range(40):  # (others come to lie where some were)
        assert float(Scaled(float(k)).times(H([1.0]))[0]) == k


def test_functions_without_arrays():
    ones = mb.compile(lambda: mb.ones(3) * 2)
    ones()[0] = 9
    assert_same(ones(), np.full(3, 2.0))
    assert mb.compile(lambda x: 3)(H([1.0])) == 3
    assert mb.compile(lambda x: None)(H([1.0])) is None
    assert mb.compile(lambda x: x.shape[0] * len(x))(H([1.0, 2.0])) == 4


def test_numpys_arrays_are_written_to():
    @mb.compile
    def f(a):
        a[0] = 9
        return mb.sum(a)

    for _ in range(2):
        n = np.arange(3.0)
        assert float(f(n)) == 12 and n[0] == 9


# Aliases


def test_arguments_come_back_themselves():
    f = mb.compile(lambda x, y: (x, y + 1, [x, y]))
    x, y = H([1.0]), H([2.0])
    for a, b in ((x, y), (x, x), (y, x), (x, y)):
        r = f(a, b)
        assert r[0] is a and r[2][0] is a and r[2][1] is b


def test_one_array_twice():
    @mb.compile
    def f(a, b):
        a[0] = 5
        return b * 2

    for _ in range(2):
        x, y, z = H([1.0, 2.0]), H([1.0, 2.0]), H([7.0, 8.0])
        assert_same(f(x, x), np.array([10.0, 4.0]))
        assert_same(x, np.array([5.0, 2.0]))
        assert_same(f(y, z), np.array([14.0, 16.0]))


@pytest.mark.parametrize(
    "make", [H, lambda n: mb.asarray(np.array(n)), mb.RefArray], ids=["own", "shared", "ref"]
)
def test_an_array_and_its_views(make):
    def shifted(a, b):
        b[...] = a[:2] + 1
        a[:1] = b[1:] * 3
        return a * 1, b

    compiled = mb.compile(shifted)
    for _ in range(2):
        x, n = make(np.arange(3.0)), np.arange(3.0)
        mine, numpys = compiled(x, x[1:]), shifted(n, n[1:])
        for a, b in ((x, n), (mine[0], numpys[0]), (mine[1], numpys[1])):
            np.testing.assert_array_equal(mb.to_numpy(a), b)


def test_memory_shared_by_two_arguments_is_refused():
    @mb.compile
    def f(a, b):
        a[...] = a + 1
        return b * 1

    n = np.arange(5.0)
    with pytest.raises(ValueError, match=r"argument 0.*shares its memory.*mb\.copy"):
        f(mb.asarray(n[:4]), mb.asarray(n[1:]))
    assert n.tolist() == [0, 1, 2, 3, 4]
    f(mb.asarray(n[:2]), mb.asarray(n[2:4]))
    assert n.tolist() == [1, 2, 2, 3, 4]


def test_results_that_show_arguments_and_each_other():
    view = mb.compile(lambda x: x[1:])
    x = H([1.0, 2.0, 3.0])
    for k in range(2):
        view(x)[0] = k
        assert float(x[1]) == k

    @mb.compile
    def f(x):
        y = x + 1
        return y, y[1:], y

    for _ in range(2):
        a, b, c = f(x)
        b[0] = 50
        assert a is c and float(a[1]) == 50
    assert float(f(x)[0][1]) == float(x[1]) + 1


def test_what_waits_keeps_what_it_was_told():
    @mb.compile
    def f(x):
        x[...] = x * 2

    x = H([1.0, 2.0])
    waiting, exported = x + 1, np.asarray(x)
    f(x)
    f(x)
    assert_same(waiting, np.array([2.0, 3.0]))
    assert exported.tolist() == [1.0, 2.0]
    assert_same(x, np.array([4.0, 8.0]))


def test_captured_arrays_are_looked_at_before_each_call():
    w, n = H([1.0, 2.0]), np.array([1.0, 2.0])
    shared = mb.asarray(n)
    for f, change in (
        (lambda x: x + w, lambda: w.__setitem__(0, 9.0)),
        (lambda x: x + shared, lambda: n.__setitem__(0, 9.0)),
        (lambda x: x + n, lambda: n.__setitem__(0, 7.0)),
    ):
        w[0] = n[0] = 1.0
        compiled = mb.compile(f)
        for _ in range(2):
            assert_same(compiled(H([0.0, 0.0])), np.array([1.0, 2.0]))
        change()
        assert_same(compiled(H([0.0, 0.0])), f(np.array([0.0, 0.0])))


def test_results_belong_to_the_caller():
    @mb.compile
    def f(x):
        return x + 1, mb.zeros(2), mb.sum(x)

    x = H([1.0, 2.0])
    a = f(x)
    b = f(x)
    a[0][0] = a[1][0] = 100
    assert_same(b[0], np.array([2.0, 3.0]))
    assert_same(f(x)[1], np.zeros(2))


# What cannot be compiled


def refused(f, *args, match):
    before = [mb.to_numpy(x) for x in args]
    with pytest.raises(TraceError, match=match):
        whole(f)(*args)
    for x, y in zip(args, before, strict=True):
        assert_same(x, y)


def test_values_are_not_there_yet():
    x = H([1.0, 2.0])

    def branch(x):
        if x[0] > 0:
            return x
        return -x

    refused(branch, x, match=r"(?s)if x\[0\] > 0.*mb\.cond")
    for f in (
        lambda x: float(x[0]), lambda x: int(x[0]), lambda x: [float(v) for v in x], lambda x: np.asarray(x),
        lambda x: x.tolist(), lambda x: range(3)[x.astype(int)[0]], lambda x: x.mean() > 1 and 1,
        lambda x: x[x > 1].size, lambda x: mb.unique(x), lambda x: mb.nonzero(x),
    ):  # fmt: skip
        refused(f, x, match=r"test_compile\.py:\d+")
    assert float(whole(lambda x: sum(v for v in x))(x)) == 3


OUTSIDE = H([1.0, 2.0])
SHOWN = OUTSIDE[1:]


def test_writes_to_other_arrays_are_refused_by_name():
    inside = H([1.0, 2.0])
    history: list[Any] = []
    x = H([3.0, 4.0])

    def added(x):
        nonlocal inside
        inside += 1

    def some(x):
        inside[:1] = 3

    def picked(x):
        inside[[0, 1]] = 3

    def one(x):
        inside[0] = 3

    def element(x):
        inside[0] = x[0]

    def by_numpy(x):
        np.add(inside, 1, out=inside)

    def of_the_module(x):
        OUTSIDE[...] = x

    def view_of_the_module(x):
        SHOWN[...] = 1

    def remembered(x):
        history.append(x * 2)

    refused(added, x, match=r"binds `inside` anew, which is a variable outside")
    for f in (some, picked, one, element):
        refused(f, x, match=r"none of its arguments.*`inside`")
    refused(by_numpy, x, match="`inside`")
    refused(of_the_module, x, match="`OUTSIDE`|`SHOWN`")
    refused(view_of_the_module, x, match="`SHOWN`|`OUTSIDE`")
    refused(remembered, x, match=r"`history\[0\]`")
    assert inside.tolist() == OUTSIDE.tolist() == [1.0, 2.0]


def test_what_arguments_hold_is_not_changed():
    def rebound(s):
        s.u = s.u + 1

    def appended(items, x):
        items.append(x)

    def counted(d):
        d["n"] += 1

    with pytest.raises(TraceError, match=r"`s\.u`"):
        whole(rebound)(State(H([1.0]), None))
    with pytest.raises(TraceError, match=r"`items\[0\]`"):
        whole(appended)([], H([1.0]))
    with pytest.raises(TraceError, match=r"`d\['n'\]`"):
        whole(counted)({"n": 1, "x": H([1.0])})

    class Solver:
        def __init__(self):
            self.u = H([1.0])

        @whole
        def step(self, x):
            self.u[...] = self.u + x

        @whole
        def keep(self, x):
            self.last = x + 1

    with pytest.raises(TraceError, match=r"`self\.u`"):
        Solver().step(H([1.0]))
    with pytest.raises(TraceError, match=r"`self\.last`"):
        Solver().keep(H([1.0]))


class Layer:
    """A model as people write them: it is called, and keeps its weights."""

    def __init__(self):
        self.w, self.n, self.kept, self.table = H([1.0, 2.0]), 0, None, {}

    def __call__(self, x):
        return self.leave(x)

    def leave(self, x):
        self.w = x * 2
        return x + self.w

    def replace(self, x):
        self.w = H([3.0, 4.0])
        return x + self.w

    def count(self, x):
        self.n += 1
        return x + self.n

    def fail(self, x):
        self.w, self.table["x"] = x, x
        raise LookupError

    def remember(self, x):  # as caches do
        if self.kept is None:
            self.kept = H([5.0, 6.0])
        return x + self.w + self.kept


WAYS_TO_AN_OBJECT = {
    "bound": lambda layer, name: whole(getattr(layer, name)),
    "closure": lambda layer, name: whole(lambda x: getattr(layer, name)(x)),
    "partial": lambda layer, name: whole(functools.partial(getattr(Layer, name), layer)),
    "method": lambda layer, name: functools.partial(whole(getattr(Layer, name)), layer),
}


@pytest.mark.parametrize("way", WAYS_TO_AN_OBJECT)
def test_what_objects_hold_is_not_replaced(way):
    """An attribute that is another after the function would be so once: it is refused, and what it was."""
    layer, x = Layer(), H([1.0, 1.0])
    before = dict(vars(layer))

    compiled = functools.partial(WAYS_TO_AN_OBJECT[way], layer)
    for name, what in ("leave", r"leaves arrays.*\.w`"), ("replace", r"value.*\.w`"), ("count", r"value.*\.n`"):
        with pytest.raises(TraceError, match=what):
            compiled(name)(x)
    with pytest.raises(LookupError):
        compiled("fail")(x)
    assert all(vars(layer)[name] is y for name, y in before.items()) and not layer.table
    f = compiled("remember")
    assert f(x).tolist() == f(x).tolist() == [7.0, 9.0]


def test_objects_that_are_called_are_looked_at():
    layer = Layer()
    with pytest.raises(TraceError, match=r"leaves arrays behind: `self\.w`"):
        mb.compile(layer)(H([1.0, 1.0]))
    assert layer.w.tolist() == [1.0, 2.0]


def test_arrays_left_behind_say_so():
    class Box:
        def __call__(self):
            pass

    box = Box()
    far = [[[[box]]]]  # (so far nobody looks)

    @mb.compile
    def f(x):
        far[0][0][0][0].value = x * 2
        return x + 1

    f(H([1.0]))
    with pytest.raises(TraceError, match=r"left behind.*return"):
        float(box.value[0])


def test_arrays_that_helpers_leave_behind_have_values():
    class Box:
        pass

    box = Box()

    def put(x):
        box.value = x

    @mb.compile
    def f(x):
        put(x * 2)
        return x + 1

    for value in (1.0, 2.0):
        f(H([value]))
        assert float(box.value[0]) == 2 * value


def test_random_numbers():
    rng = mb.random.default_rng(0)
    refused(lambda x: x + rng.random(2), H([1.0, 2.0]), match=r"made outside.*default_rng\(42\)")
    refused(lambda x: x + mb.random.default_rng().random(2), H([1.0, 2.0]), match="without a seed")
    rng.random(2)
    f = whole(lambda x: x + mb.random.default_rng(3).random(2))
    for _ in range(2):
        assert_same(f(H([0.0, 0.0])), mb.to_numpy(mb.random.default_rng(3).random(2)))


def test_kernels_are_recorded():
    @mb.kernel
    def add(k, y, a, x):
        i = k.index(0)
        y[i] = a * x[i] + y[i]

    def f(y, x):
        z = y + 1
        add[x.shape](z, 2.0, x)
        add[2](y[1:], 3.0, x)
        return z * 2

    for family in (mb.HostArray, mb.RefArray, mb.CuArray):
        agree(f, lambda family=family: (family([10.0, 20.0, 30.0]), family([1.0, 2.0, 3.0])))

    def overlapping(y, x):
        add[2](y[1:], 3.0, y)

    with pytest.raises(TraceError, match=r"another view.*mb\.copy"):
        whole(overlapping)(H([1.0, 2.0, 3.0]), H([1.0]))


def test_functions_that_go_on_later():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    for f in (generator, coroutine):
        with pytest.raises(TypeError, match="generator or a coroutine"):
            mb.compile(f)
    with pytest.raises(TypeError, match="takes a function"):
        mb.compile(3)


def test_two_places():
    f = mb.compile(lambda x, y: x + y)
    with pytest.raises(TypeError, match=r"HostArray, RefArray.*mb\.adapt"):
        f(H([1.0]), mb.RefArray([1.0]))


# Around them


def test_errors_change_nothing():
    fails = [True]

    @whole
    def f(x):
        x[0] = 5
        if fails[0]:
            raise KeyError("later")
        return x + 1

    x = H([1.0, 2.0])
    with pytest.raises(KeyError):
        f(x)
    assert x.tolist() == [1.0, 2.0]
    fails[0] = False
    assert f(x).tolist() == [6.0, 3.0] and x.tolist() == [5.0, 2.0]

    @whole
    def g(x, i):
        x[0] = 7
        return x[i]

    for way in ("cold", "hot"):
        with running(way):
            x = H([1.0, 2.0])
            with pytest.raises(IndexError):
                g(x, H([0, 5]))
            assert x.tolist() == [1.0, 2.0]
            assert g(x, H([1, -1])).tolist() == [2.0, 2.0]


def test_what_nobody_needs_does_not_fail():
    """What the documentation says of dead code; what is needed is checked though few of its elements are."""

    @mb.compile
    def unused(x, i):
        x[i] * 2
        mb.linalg.inv(mb.diag(x))
        return x + 1

    @mb.compile
    def partly(x, i):
        return x[i][:1]

    x, i = H([1.0, 0.0]), H([0, 5])
    assert unused(x, i).tolist() == [2.0, 1.0]
    assert not [step for step in unused.program(x, i).plan.steps if step.name in ("within", "inv")]
    with pytest.raises(IndexError):
        partly(x, i)


def test_indices_that_wrap_around():
    def f(x, i):
        return x[i]

    compiled = mb.compile(f)
    table = mb.compile(lambda i: OUTSIDE[i] + 1)
    for dtype in ("i4", "i8", "u1"):
        for values in ([0, 1], [1, 0]) if dtype == "u1" else ([0, 1], [-1, -2], [1, -1]):
            i = np.array(values, dtype)
            assert_same(compiled(H([3.0, 4.0]), H(i)), np.array([3.0, 4.0])[i])
            assert_same(table(H(i)), np.array([2.0, 3.0])[i])


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_what_returns_its_operand(dtype):
    # (The checked indices were the temporary's memory, which the next kernel wrote to.)
    def f(x):
        return x[x % 3]

    with running("hot"):
        a = np.arange(12, dtype=dtype).reshape(3, 4) - 5
        agree(f, lambda: (H(a),))


def test_nothing_at_all_by_native_calls():
    def f(x):
        return mb.isin(x, x), mb.sort(x), x + 1, mb.searchsorted(mb.sort(x), x)

    with running("hot"):
        agree(f, lambda: (H(np.zeros(0)),))
        agree(f, lambda: (H(np.zeros(3)),))


def test_within_each_other_and_recursive():
    inner = mb.compile(lambda x: x + 1)
    outer = mb.compile(lambda x: inner(x) * inner(x))
    assert float(outer(H([1.0]))[0]) == 4 and float(inner(H([1.0]))[0]) == 2

    @mb.compile
    def powers(x, n):
        return x if n == 0 else powers(x, n - 1) * 2

    assert float(powers(H([1.0]), 5)[0]) == 32

    @mb.compile
    def overwrite(x):
        x[0] = 9

    @mb.compile
    def both(x):
        y = x + 1
        overwrite(y)
        overwrite(x)
        return y

    for _ in range(2):
        x = H([1.0, 2.0])
        assert both(x).tolist() == [9.0, 3.0] and x.tolist() == [9.0, 2.0]


@pytest.mark.parametrize("way", ["cold", "hot"])
def test_threads_call_one_program(way):
    @mb.compile
    def f(x, y):
        z = mb.sin(x) + y
        y[...] = z * 2
        return z @ z, mb.sum(z, axis=0), mb.sort(z[0])

    wrong = []

    def work(seed):
        a = rng(30, 30, seed=seed)
        z = np.sin(a) + a
        for _ in range(25):
            x, y = H(a), H(a)
            got = [mb.to_numpy(r) for r in (*f(x, y), y)]
            if not all(map(np.allclose, got, (z @ z, z.sum(0), np.sort(z[0]), z * 2))):
                wrong.append(seed)

    with running(way):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong and len(f.programs) == 1


def test_other_threads_compute_while_one_is_compiling():
    begun, done = threading.Event(), threading.Event()

    @mb.compile
    def f(x):
        begun.set()
        done.wait(10)
        return x + 1

    t = threading.Thread(target=lambda: f(H([1.0])))
    t.start()
    begun.wait(10)
    try:
        w = H([1.0, 2.0])
        w[0] = float(w[1]) + 3
        w += 1
        assert (w * 2).tolist() == [12.0, 6.0] and mb.zeros(2).place.kind == "host"
        mb.random.default_rng(0).random(3)
    finally:
        done.set()
        t.join()


def test_methods_that_appear_are_seen():
    f = mb.compile(lambda x: mb.sin(x))
    x = H([0.0, 0.0])
    assert f(x).tolist() == [0.0, 0.0]
    with mb.override(mb.sin, (mb.AbstractArray,), lambda x: x + 1):
        assert f(x).tolist() == [1.0, 1.0]
    assert f(x).tolist() == [0.0, 0.0]


def test_eager_blocks_and_counters():
    f = mb.compile(lambda x: mb.sum(x * 2))
    x = H(np.ones(100))
    with mb.eager():
        assert float(f(x)) == 200

    def g(x):
        with mb.eager():
            y = x + 1
        return y * 2

    agree(g, lambda: (H([1.0]),))
    with mb.count() as c:
        f(x)
    assert c.launches == 1 and c.scalar_reads == 0


@mb.compile
def plus_one(x):
    return x + 1


def test_copies_and_pickles():
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one
    f = mb.compile(lambda x: x + 1)
    f(H([1.0]))
    for g in (copy.copy(f), copy.deepcopy(f), copy.copy(plus_one)):
        assert isinstance(g, Compiled) and float(g(H([1.0]))[0]) == 2
    other = mb.compile(math_function, static="n")
    again = pickle.loads(pickle.dumps(other))
    assert again.static == {"n"} and float(again(H([1.0]), 2)[0]) == 3


def math_function(x, n):
    return x + n


def test_many_numbers_are_said():
    f = mb.compile(lambda x, t: x * t)
    with pytest.warns(
        RuntimeWarning, match=r"compiled 33 times: Python's numbers .* `f\(x, mb.asarray\(dt\)\)`"
    ) as said:
        for k in range(40):
            f(H([1.0]), k / 7)
    assert len(said) == 1 and "shapes" not in str(said[0].message)


def test_many_sizes_are_said_and_not_the_number_that_stays():
    f = mb.compile(lambda x, t: x * t)
    with pytest.warns(RuntimeWarning, match=r'shapes .* `@mb.compile\(sizes="any"\)`') as said:
        for n in range(1, 40):
            f(mb.ones(n), 1.0)
    assert len(said) == 1 and "numbers" not in str(said[0].message)
    both = mb.compile(lambda x, t: x * t)
    with pytest.warns(RuntimeWarning, match=r'sizes="any".*mb.asarray\(dt\)'):
        for n in range(1, 40):
            both(mb.ones(n), float(n))
    nested = mb.compile(lambda p, t: p["a"][0] * t)
    with pytest.warns(RuntimeWarning, match="shapes") as said:
        for n in range(1, 40):
            nested({"a": [mb.ones(n), 2.5]}, 2.0)
    assert "numbers" not in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cured = mb.compile(lambda x, t: x * t, sizes="any")
        for n in range(1, 60):
            cured(mb.ones(n), 1.0)


def test_what_is_printed_is_printed_at_each_call(capsys):
    @mb.compile
    def f(x):
        print(x, repr(x * 2), f"{x}")
        return x

    for _ in range(2):
        f(H([1.0]))
        assert capsys.readouterr().out == "[1.] HostArray[float64, 1]([2.]) [1.]\n"
    with pytest.raises(TraceError, match=r"calls what does something, or gives another value, at each call"):
        mb.compile(f.function).program(H([1.0]))


def test_constants_of_a_device_may_stand_on_either_side():
    """An operand's place does not depend on where it stands in an operation."""
    kept = mb.RefArray(np.full((1, 4), 2.0))
    u = mb.RefArray(np.ones((2, 3, 4)))
    for f in (lambda u: u[0] * kept, lambda u: kept * u[0], lambda u: (u[0] - 1) * kept + kept):
        assert np.array_equal(mb.to_numpy(mb.compile(f)(u)), mb.to_numpy(f(u)))


def test_what_a_gather_reads_of_constants_is_all_of_it():
    """Once: only where the table begins was kept, and the program read what lay behind."""
    i = mb.HostArray([3, 1, 2, 0])
    x = np.sin(np.arange(8.0) * 0.5)
    for f, expected in [
        (lambda i: mb.sin(mb.arange(8.0) * 0.5)[i], x[[3, 1, 2, 0]]),
        (lambda i: mb.sin(mb.arange(8.0) * 0.5)[2:][i], x[2:][[3, 1, 2, 0]]),
        (lambda i: mb.sin(mb.arange(8.0) * 0.5)[::-1][i], x[::-1][[3, 1, 2, 0]]),
        (lambda i: mb.take(mb.cumulative_sum(mb.arange(4)), i), np.array([6, 1, 3, 0])),
    ]:
        for passes in (None, ["constants"], []):
            np.testing.assert_array_equal(mb.to_numpy(mb.compile(f, passes=passes)(i)), expected)


def test_gradients_of_what_is_taken_by_indices_are_those_of_eager_calls():
    v, i = mb.HostArray([3.0, 1.0, 2.0, 5.0]), mb.HostArray([3, 1, 1, 0])
    for f in (
        lambda v: v[i] ** 2, lambda v: mb.sort(v) * mb.arange(4), lambda v: mb.median(v * v),
        lambda v: mb.take(v, mb.argsort(v)) * mb.arange(4), lambda v: mb.sin(mb.arange(4.0))[i] * v,
    ):  # fmt: skip

        def gradient(v, f=f):
            return mb.autodiff.gradient(lambda w: mb.sum(f(w)), v)

        compiled = mb.compile(lambda v, g=gradient: g(v))(v)
        np.testing.assert_array_equal(mb.to_numpy(compiled), mb.to_numpy(gradient(v)))


def test_a_value_that_is_materialized_in_a_program_is_stored_by_a_kernel_of_its_own():
    x = mb.HostArray(np.arange(6.0))

    def kernels(f, *args, **options):
        compiled = mb.compile(f, **options)
        expected = f(*[mb.copy(a) for a in args])
        for mine, other in zip(compiled(*[mb.copy(a) for a in args]), expected, strict=True):
            np.testing.assert_array_equal(mb.to_numpy(mine), mb.to_numpy(other))
        return [step.name for step in compiled.program(*args).plan.steps]

    def differences(barrier):
        def f(x):
            y = barrier(x * 2 + 1)
            z = barrier(y[1:] - y[:-1])
            return mb.sum(z * y[1:]), y + 1

        return f

    assert kernels(differences(lambda x: x), x) == ["sum", "multiply_add_add"]  # in the order of the text
    assert kernels(differences(mb.materialize), x) == ["multiply_add", "subtract", "sum", "add"]
    for name in mb.compiling.PASSES:
        assert "multiply_add" in kernels(differences(mb.materialize), x, passes=[name])

    def written(x):
        y = x + 1
        mb.materialize(y)  # (whether what it returns is used, or not)
        y[0] = 9
        return y, mb.materialize(mb.materialize(y.T * 3)), mb.materialize(mb.sum(x)), mb.materialize(x)

    kernels(written, x)
    # What is in memory anyway, or known when the program is made, takes no kernel more.
    assert kernels(lambda x: (mb.materialize(x) + mb.materialize(mb.ones(6) * 2),), x) == ["add"]
    assert kernels(lambda x: (mb.materialize(x + 1),), x) == ["add"]

    def gradient(x):
        return (mb.autodiff.gradient(lambda v: mb.sum(mb.materialize(v * v) * v), x),)

    assert "multiply" in kernels(gradient, x)[0] and len(kernels(gradient, x)) > 1
    loop = mb.compile(lambda x: mb.fori_loop(0, 3, lambda i, s: mb.materialize(s * 2) + 1, x))
    np.testing.assert_array_equal(mb.to_numpy(loop(x)), np.arange(6.0) * 8 + 7)


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray]])
def test_a_materialized_value_is_the_same_on_every_place(family, tmp_path):
    def f(x):
        y = mb.materialize(mb.sin(x) * 2)
        return y[1:] + y[:-1], mb.sum(y * y)

    x = np.linspace(0, 1, 33)
    compiled = mb.compile(f)
    for mine, expected in zip(compiled(family(x)), f(mb.HostArray(x)), strict=True):
        np.testing.assert_allclose(mb.to_numpy(mine), mb.to_numpy(expected), rtol=1e-12)


class Elsewhere(mb.distributed.Communicator):
    """Rank 1 of 2, of which the other is nowhere."""

    rank, size = 1, 2


def test_what_processes_do_together_in_a_program():
    x, d = mb.HostArray(np.arange(6.0)), mb.DArray[mb.HostArray](np.arange(6.0))
    with pytest.raises(mb.CommunicationError, match="gives an array to process 1"):
        mb.compile(lambda x: mb.distributed.exchange({1: x[1:]}))(x)
    with pytest.raises(
        TypeError, match=r"mb.distributed.exchange takes local arrays \(.*\), not a .* \(for process 0\)"
    ):
        mb.distributed.exchange({0: d}, comm=Elsewhere())
    for part, said in ((lambda d: d, "DArray"), (lambda d: d[1:], "View")):
        with pytest.raises(TypeError, match=rf"takes local arrays \(.*\), not a {said}\[(?!.*Traced)"):
            mb.compile(lambda d, part=part: mb.distributed.exchange({0: part(d)}, comm=Elsewhere()))(d)
    assert (
        mb.compile(lambda x: (mb.distributed.exchange({}), x + 1)[1])(x).tolist()
        == (mb.to_numpy(x) + 1).tolist()
    )
    assert float(mb.compile(lambda x: mb.distributed.allreduce(mb.sum(x), "max"))(x)) == 15.0
    with pytest.raises(ValueError, match="knows the operations 'sum'"):
        mb.distributed.allreduce(x, "mean")
    for f in (lambda d: d.local, lambda d: d.halo(1)):
        assert mb.compile(f, whole=True)(d).tolist() == f(d).tolist()


def test_calls_with_numbers_and_namespaces_are_as_short_as_those_of_arrays_alone():
    """What is called again goes straight to its program, and nobody looks for similar names."""
    import sys

    def scaled(xp, x, alpha, beta):
        return xp.sin(x) * alpha + beta

    f, x = mb.compile(scaled), mb.HostArray(np.linspace(0, 1, 9))
    g = mb.compile(lambda x: mb.sin(x) * 2.0 + 1)

    def calls(call):
        seen = []
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
        try:
            call()
        finally:
            sys.setprofile(None)
        return seen

    for _ in range(5):
        assert np.array_equal(f(mb, x, 2.0, 1), np.sin(np.linspace(0, 1, 9)) * 2.0 + 1)
        g(x)
    seen = calls(lambda: f(mb, x, 2.0, 1))
    assert "_called" not in seen and "get_close_matches" not in seen
    assert len(seen) <= len(calls(lambda: g(x))) + 12
    # Other numbers, types of numbers, zeros of either sign and arrays twice are other programs.
    values = np.linspace(0, 1, 9)
    for alpha, beta in (
        (3.0, 1),
        (2, 1),
        (2.0, True),
        (-0.0, 1),
        (0.0, 1),
        (np.float32(2), 1),
        (float("nan"), 1),
    ):
        for _ in range(2):
            got = f(mb, x, alpha, beta)
            assert np.array_equal(got, np.sin(values) * alpha + beta, equal_nan=True)
    h = mb.compile(lambda x, n, y: x * n - y)
    assert np.array_equal(h(x, 3, x), values * 3 - values) and np.array_equal(h(x, 3, mb.copy(x)), values * 2)
    assert np.array_equal(h(x, 3, x), values * 2) and np.array_equal(h(x, 3, mb.zeros(9)), values * 3)
