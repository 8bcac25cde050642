"""What shares memory with its operand: where NumPy's result does, over layouts."""

import numpy as np
import pytest

import mirabelle as mb

# (mb.real and mb.imag give values: docs/design.md, section 5.)
FUNCTIONS = {
    "ravel": lambda xp, x: xp.ravel(x),
    "x.ravel": lambda xp, x: x.ravel(),
    "x.reshape": lambda xp, x: x.reshape(-1),
    "ravel A": lambda xp, x: xp.ravel(x, order="A"),
    "reshape": lambda xp, x: xp.reshape(x, (x.size, 1)),
    "reshape F": lambda xp, x: xp.reshape(x, (-1,), order="F"),
    "flatten": lambda xp, x: x.flatten(),
    "squeeze": lambda xp, x: xp.squeeze(x),
    "T": lambda xp, x: x.T,
    "x.real": lambda xp, x: x.real,
    "x.imag": lambda xp, x: x.imag,
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, -1),
    "flip": lambda xp, x: xp.flip(x),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "rot90": lambda xp, x: xp.rot90(x),
    "expand_dims": lambda xp, x: xp.expand_dims(x, 0),
    "atleast_3d": lambda xp, x: xp.atleast_3d(x),
    "diagonal": lambda xp, x: xp.diagonal(x),
    "diag": lambda xp, x: xp.diag(x),
    "asarray": lambda xp, x: xp.asarray(x),
    "array": lambda xp, x: xp.array(x),
    "copy": lambda xp, x: x.copy(),
    "astype": lambda xp, x: x.astype(x.dtype),
    "astype same": lambda xp, x: x.astype(x.dtype, copy=False),
    "split": lambda xp, x: xp.split(x, 1)[0],
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, x.shape),
    "contiguous": lambda xp, x: xp.ascontiguousarray(x),
    "permute_dims": lambda xp, x: xp.permute_dims(x, tuple(range(x.ndim))[::-1]),
    "roll": lambda xp, x: xp.roll(x, 1),
    "fliplr": lambda xp, x: xp.fliplr(x),
    "take": lambda xp, x: xp.take(x, [0], 0),
    "slice": lambda xp, x: x[:1],
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "positive": lambda xp, x: +x,
    "view": lambda xp, x: x[...],
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "round": lambda xp, x: xp.round(x),
    "real_if_close": lambda xp, x: xp.real_if_close(x),
}
LAYOUTS = {
    "rows": lambda x: x, "columns": lambda x: x.T, "steps": lambda x: x[::2], "reversed": lambda x: x[::-1],
    "column steps": lambda x: x[..., ::2], "part": lambda x: x[1:], "one column": lambda x: x[..., 1:2],
    "one row": lambda x: x[:1], "new axis": lambda x: x[None], "reversed columns": lambda x: x.T[::-1],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_a_result_shares_memory_where_numpys_does(layout, dtype):
    show, wrong = LAYOUTS[layout], []
    for shape in ((6,), (4, 4), (2, 3, 4), (1, 4), (4, 1)):
        for name, f in FUNCTIONS.items():
            data = 1 + np.arange(float(np.prod(shape))).reshape(shape).astype(dtype) * (
                1j if dtype == "c16" else 1
            )
            x = mb.HostArray(data)
            try:
                wanted = f(np, show(data))
            except (ValueError, IndexError):
                continue  # (it takes no such shape)
            if not wanted.size:
                continue
            found = f(mb, show(x))
            before = mb.to_numpy(found)
            np.testing.assert_array_equal(before, wanted)
            x[...] = -7.0 - 2.0j if dtype == "c16" else -7.0
            changed = not np.array_equal(before, mb.to_numpy(found))
            if changed != np.shares_memory(data, wanted):
                wrong.append((name, shape, f"ours {changed}"))
    assert not wrong


def test_what_numpy_shows_in_another_shape_is_written_where_it_is():
    "Routines whose result is NumPy's view of new memory: a write copies nothing."
    v = mb.HostArray(np.arange(6.0))
    made = {
        "roll": lambda: mb.roll(v, 1),
        "tile": lambda: mb.tile(v, 2),
        "linspace": lambda: mb.linspace(0, 1, 6),
    }
    for name, make in made.items():
        x = make()
        wanted = np.array(x)
        before = mb.to_numpy(x).ctypes.data
        with mb.count() as c:
            x[0] = 7.0
        wanted[0] = 7.0
        assert c.temporaries == 0, name
        np.testing.assert_array_equal(mb.to_numpy(x), wanted)
        assert mb.to_numpy(x).ctypes.data == before, name


def test_only_what_is_small_is_copied_to_own_its_memory():
    from mirabelle.arraytypes.host import itself

    small, large, own = np.arange(6.0).reshape(2, 3), np.zeros(20_000).reshape(2, -1), np.arange(6.0)
    assert itself(small).base is None and itself(large) is large and itself(own) is own
    np.testing.assert_array_equal(itself(small), small)
    x, y = mb.roll(mb.HostArray(large), 1), mb.roll(mb.HostArray(large), 1)
    x[0, 0] = 7.0
    assert mb.to_numpy(x)[0, 0] == 7.0 and mb.to_numpy(y)[0, 0] == 0.0


def test_small_values_that_wait_are_computed_and_written_where_they_are():
    k, z = mb.HostArray([3, 1, 2]), mb.HostArray([1 + 2j, 3.0])
    for make, wanted in ((lambda: k.astype(float), [9.0, 1.0, 2.0]), (lambda: mb.real(z), [9.0, 3.0])):
        x = make()
        y = x + 0 * x  # (what reads it, goes on to read what it was)
        with mb.count() as c:
            x[0] = 9.0
        assert c.temporaries == 0
        np.testing.assert_array_equal(mb.to_numpy(x), wanted)
        assert mb.to_numpy(y)[0] == mb.to_numpy(make())[0]
        x = make()
        x[0] = x[1] * 2
        x[1:] += x[0]
        plain = mb.to_numpy(make()).copy()
        plain[0] = plain[1] * 2
        plain[1:] += plain[0]
        np.testing.assert_array_equal(mb.to_numpy(x), plain)
