"""What shows the memory of an array, and what is a copy, is the same in NumPy, eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb

FORMS = [
    "x.T", "x.mT", "xp.flip(x)", "xp.flip(x, axis=0)", "xp.flip(x, axis=())", "xp.ravel(x)", "xp.asarray(x)",
    "xp.asarray(x, dtype=x.dtype)", "xp.array(x)", "xp.asanyarray(x)", "xp.ascontiguousarray(x)",
    "xp.squeeze(x)", "xp.expand_dims(x, axis=0)", "xp.moveaxis(x, 0, -1)", "xp.swapaxes(x, 0, -1)",
    "xp.transpose(x)", "xp.reshape(x, (-1,))", "x.reshape(x.shape)", "x.astype(x.dtype, copy=False)",
    "x.astype(x.dtype)", "xp.astype(x, x.dtype, copy=False)", "xp.atleast_1d(x)", "xp.atleast_2d(x)",
    "xp.broadcast_to(x, x.shape)", "xp.broadcast_arrays(x, x)[0]", "xp.diagonal(x)", "xp.diag(x)",
    "xp.take(x, 0, axis=0)", "xp.take(x, [0], axis=0)", "x.take(0, axis=0)", "xp.split(x, 1)[0]",
    "xp.unstack(x)[0]", "xp.roll(x, 0)", "xp.concat([x])", "xp.stack([x])", "xp.where(True, x, x)",
    "xp.clip(x, None, None)", "xp.nan_to_num(x)", "xp.rot90(x)", "xp.fliplr(x)", "xp.tril(x)", "xp.copy(x)",
    "xp.require(x)", "xp.choose(0, [x])", "xp.sort(x)", "xp.select([True], [x])", "xp.sum(x, axis=())",
    "xp.round(x)", "xp.repeat(x, 1, axis=0)", "xp.positive(x)", "xp.conj(x)", "+x", "x.flatten()", "x.ravel()",
    "x.real", "x.imag", "x.copy()", "x.view()", "x[...]", "x[()]", "x[:]", "x[None]", "x[0]", "x[[0]]",
    "x[1:][::-1]", "x[:, 1]", "x.swapaxes(0, -1)", "x[xp.isfinite(x)]", "x.diagonal()",
    "xp.einsum('ij->ji', x)", "xp.permute_dims(x, tuple(range(x.ndim)))",
]  # fmt: skip
WRITES = {
    "item": "x[...] = 99",
    "out": "xp.add(x * 0, 99, out=x)",
    "out of a view": "xp.add(x.T * 0, 99, out=x.T)",
    "in place": "x *= 0",
    "copyto": "xp.copyto(x, 99)",
}
SHAPES = [(3, 4), (4,), (1,), ()]


def function(form, write):
    """A function that returns what `form` shows before and after a write to `x`, with x."""
    space = {"np": np}
    body = [f"y = {form}", "before = xp.asarray(y, copy=True)", write, "return before, y, x"]
    exec("\n    ".join(["def f(xp, x):", *body]), space)
    return space["f"]


def shown(results):
    return [np.array(mb.to_numpy(r) if isinstance(r, mb.AbstractArray) else r).tolist() for r in results]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_views_and_copies_are_numpys_eager_and_compiled(shape, write):
    differing, compared = [], 0
    for form in FORMS:
        f = function(form, WRITES[write])
        for dtype in ("f8", "c16") if write == "item" else ("f8",):
            values = np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)
            for local in (False, True):

                def run(xp, x, f=f, local=local):
                    return f(xp, x * 1 if local else x)

                if not shape and local:
                    continue  # (NumPy's results without axes are numbers)
                try:
                    expected = shown(run(np, values.copy()))
                except (TypeError, ValueError, IndexError):
                    continue
                for how, call in (("eager", run), ("compiled", mb.compile(run, static=["xp"]))):
                    try:
                        got = shown(call(mb, mb.HostArray(values)))
                    except (ValueError, IndexError, mb.compiling.TraceError):
                        continue  # (with a reason)
                    compared += 1
                    if got != expected:
                        differing.append((form, dtype, how, local))
    assert not differing
    assert compared > 60


@pytest.mark.parametrize("again", ["u * 1.0", "u.copy()", "u[:]*1.0", "xp.where(True, u, u)", "-(-u)"])
@pytest.mark.parametrize("value", ["v[1:-1, 4]", "v[1:-1, 4] * 2", "3.0"])
def test_a_copy_of_what_was_written_is_written_to(again, value):
    """One kernel writes a value to both: the argument keeps what it had when it was copied."""
    scope = {}
    exec(
        f"def f(xp, u, v):\n    u[2:, 1] = {value}\n    u = {again}\n    u[1:-1, 2] = {value}\n"
        f"    w = {again}\n    w[2:, 3] = {value}\n    return u, w",
        scope,
    )
    u, v = np.arange(115.0).reshape(23, 5), np.arange(115.0).reshape(23, 5) / 7
    compiled = mb.compile(lambda u, v: scope["f"](mb, u, v))
    for _ in range(2):
        mine, plain = mb.HostArray(u), u.copy()
        found, wanted = compiled(mine, mb.HostArray(v)), scope["f"](np, plain, v)
        for a, b in zip((*found, mine), (*wanted, plain), strict=True):
            np.testing.assert_array_equal(mb.to_numpy(a), b)


# How an argument may lie in memory.
LAYOUTS = {
    "columns": np.asfortranarray,
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "turned": lambda x: x.T.copy().T[:, ::-1],
}
OF_LAYOUT = [
    "x.ravel('K')", "x.ravel('F')", "x.ravel('A')", "x.flatten('K')", "x.T.ravel()", "x.T.reshape(-1)",
    "x[1:].reshape(-1)", "x.reshape(2, 2, -1)", "xp.reshape(x, (2, -1), order='A')",
    "x.reshape((2, 6), order='F')",
    "x.T[1:].ravel()", "xp.asfortranarray(x)", "xp.ascontiguousarray(x.T)", "xp.require(x, requirements='F')",
    "xp.asarray(x.flags.f_contiguous)", "xp.asarray(x.strides)", "x[:, None].reshape(-1, 1)",
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_depends_on_how_an_argument_lies_is_numpys(layout):
    """A graph takes arguments to lie in rows: a function that asks, where one does not, is called as it is."""
    differing, compared = [], 0
    for form in (*[f for f in FORMS if any(name in f for name in ("ravel", "reshape", "contig"))], *OF_LAYOUT):
        for write in ("x[...] = 99", "y[...] = 7"):
            f = function(form, write)
            try:
                wanted = shown(f(np, LAYOUTS[layout](np.arange(12.0).reshape(3, 4))))
            except (ValueError, TypeError, IndexError):
                continue

            def run(x, f=f):
                return f(mb, x)

            for call in (run, mb.compile(run)):
                found = shown(call(mb.asarray(LAYOUTS[layout](np.arange(12.0).reshape(3, 4)))))
                compared += 1
                if found != wanted:
                    differing.append((form, write, call))
    assert not differing
    assert compared > 60


def test_a_compiled_program_leaves_an_argument_lying_as_it_did():
    def write(x):
        x[0] = 5.0

    for made in (mb.HostArray, lambda x: mb.HostArray(x) * 1.0):
        x = made(np.asfortranarray(np.arange(12.0).reshape(3, 4)))
        row = x.T.reshape(-1)  # which shows it in the order it lies in
        mb.compile(write)(x)
        assert x.flags.f_contiguous and row.tolist() == np.ravel(x.tolist(), order="F").tolist()
