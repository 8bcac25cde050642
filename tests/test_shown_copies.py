"""What stands where NumPy has a view: a write reaches the array or is refused; it is never lost."""

import numpy as np
import pytest

import mirabelle as mb

VALUES = np.arange(1.0, 17).reshape(4, 4)

MAKERS = {
    "Diagonal": lambda a, m: mb.Diagonal(a(m[0])),
    "Tridiagonal": lambda a, m: mb.Tridiagonal(a(m[0, :3]), a(m[1]), a(m[2, :3])),
    "Banded": lambda a, m: (lambda t: t @ t)(mb.Tridiagonal(a(m[0, :3]), a(m[1]), a(m[2, :3]))),
    "UpperTriangular": lambda a, m: mb.UpperTriangular(a(m)),
    "Symmetric": lambda a, m: mb.Symmetric(a(m)),
    "Hermitian": lambda a, m: mb.Hermitian(a(m)),
    "Adjoint": lambda a, m: mb.adjoint(a(m)),
    "Toeplitz": lambda a, m: mb.types.Toeplitz(a(m[0]), a(m[0])),
    "Circulant": lambda a, m: mb.types.Circulant(a(m[0])),
    "CSR": lambda a, m: mb.CSR(a(np.where(m.real % 3 == 1, m, 0))),
    "BlockDiagonal": lambda a, m: mb.types.BlockDiagonal(a(m[:2, :2]), a(m[:2, 2:])),
    "Kronecker": lambda a, m: mb.types.Kronecker(a(m[:2, :2]), a(m[:2, 2:])),
    "LowRank": lambda a, m: mb.LowRank(a(m[:, :1]), a(m[:1])),
    "Identity": lambda a, m: mb.Identity(4),
    "Concat": lambda a, m: mb.concat([a(m[:2]), mb.Diagonal(a(m[0]))[:2]]),
}  # fmt: skip

VIEWS = {
    "row": lambda x: x[0], "column": lambda x: x[:, 0], "rows": lambda x: x[1:], "reversed": lambda x: x[::-1],
    "axis": lambda x: x[..., None], "element": lambda x: x[0, 0, ...], "all": lambda x: x[:],
    "transpose": lambda x: x.T, "real": lambda x: x.real, "imag": lambda x: x.imag, "flip": mb.flip,
    "reshape": lambda x: x.reshape(-1), "ravel": lambda x: x.ravel(), "diagonal": lambda x: x.diagonal(),
    "off the diagonal": lambda x: x.diagonal(1), "swapped": lambda x: x.swapaxes(0, 1),
    "expanded": lambda x: mb.expand_dims(x, 0), "turned": mb.rot90, "split": lambda x: mb.split(x, 2)[0],
    "bytes": lambda x: x.view("f4"), "part of a part": lambda x: x[1:][0], "of the transpose": lambda x: x.T[0],
    "unstacked": lambda x: mb.unstack(x)[1], "iterated": lambda x: next(iter(x)),
    "stretched": lambda x: mb.broadcast_to(x, (2, 4, 4)),
}  # fmt: skip


def writes():
    def whole(x):
        x[...] = 7.0

    def part(x):
        if x.ndim:
            x[..., :1] = mb.zeros(x[..., :1].shape) + 3

    def augmented(x):
        x += 1

    def expression(x):
        x[...] = x * 3 + 1

    def out(x):
        mb.add(x, 1, out=x)

    def copied(x):
        mb.copyto(x, 5.0)

    return [whole, part, augmented, expression, out, copied]


CASES = [
    *[(kind, mb.HostArray, dtype) for kind in MAKERS for dtype in ("f8", "c16")],
    *[(kind, mb.RefArray, "f8") for kind in ("CSR", "Kronecker")],
]


@pytest.mark.parametrize(("kind", "array", "dtype"), CASES, ids=lambda c: getattr(c, "__name__", c))
@pytest.mark.filterwarnings("ignore")
def test_a_write_to_what_a_structured_array_shows_reaches_it_or_is_refused(kind, array, dtype):
    values = VALUES.astype(dtype) * (1 if dtype == "f8" else 1 + 1j)
    for k, (name, view) in enumerate(VIEWS.items()):
        for write in (writes() * 2)[k % 6 : k % 6 + 2]:
            for times in range(2):  # (what was met before takes other ways)
                x = MAKERS[kind](array, values)
                if not isinstance(x, mb.types.Structured):
                    return
                _check(x, name, view, write, times)


def _check(x, name, view, write, times):
    try:
        shown = view(x)
    except (ValueError, TypeError):
        assert name == "bytes"
        return
    before, was = mb.to_numpy(x).copy(), mb.to_numpy(shown).copy()
    try:
        write(shown)
    except (ValueError, TypeError) as e:
        assert str(e).endswith(".") and np.array_equal(mb.to_numpy(shown), was), (name, write, e)
        assert np.array_equal(mb.to_numpy(x), before)
    else:
        changed = not np.array_equal(mb.to_numpy(shown), was)
        assert not changed or not np.array_equal(mb.to_numpy(x), before), (name, write, times)


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
def test_the_refusal_names_the_cure_and_a_copy_can_be_written_to():
    A = mb.Diagonal(mb.ones(3))
    with pytest.raises(ValueError, match=r"a copy of entries of a Diagonal.*A\[index\] = value.*mb.copy\(x\)"):
        A[0][...] = 2
    row = mb.copy(A[0])
    row[...] = 2
    assert row.tolist() == [2, 2, 2] and (A[0] + 1).tolist() == [2, 1, 1]
    picked = A[[0, 1]]  # (a copy with NumPy, too)
    picked[...] = 4
    A[0, 0] += 1
    assert A[0, 0] == 2
    with pytest.raises(ValueError, match="read-only"):
        A.real.T[0] += 1
    z = mb.Diagonal(mb.HostArray([1 + 1j, 2]))
    with pytest.raises(ValueError, match="read-only"):
        z.real = 5
    dense = mb.dense(A)
    dense[...] = 1
    inside = mb.compile(lambda d: mb.copy(mb.Diagonal(d)[0]) * 2)(mb.ones(2))
    inside[...] = 3


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("make", [mb.Diagonal, lambda x: mb.Toeplitz(x), lambda x: mb.Range(3, device=type(x))])
def test_what_index_arrays_pick_is_a_new_array(make, family):
    """As with NumPy: an array of ours, a list or a mask picks a copy, which is written to."""
    x, at = make(family([1.0, 2.0, 3.0])), family([2, 0])
    before = mb.to_numpy(x)
    for index in (at, [2, 0], family([True, False, True]), (..., at)):
        picked = x[index]
        picked[...] = 9.0
        assert (mb.to_numpy(picked) == 9.0).all() and picked.size
    np.testing.assert_array_equal(mb.to_numpy(x), before)
