"""What an operation made lies as NumPy's result does: `reshape` shows it, also where it was computed elsewhere.

A value that is written to a part of another array (`v = -u; z[1:-1] = v`) is computed there, and read there
from then on. Nobody may notice: a new shape of it is a view of `v`, and its strides are those of an array of
its own.
"""

import numpy as np
import pytest

import mirabelle as mb
from tests.ways import running

KINDS = {
    "host": (mb.HostArray, 1500),
    "small": (mb.HostArray, 4),
    "ref": (mb.RefArray, 4),
    "divided": (mb.DArray[mb.HostArray], 1500),
}
# How `v` is made, of u (n x 4) and z (n + 2 x 6).
MADE = {
    "a part": "v = -u; z[1:-1, 1:-1] = v",
    "backwards": "v = -u; z[-2:0:-1, 1:-1] = v",
    "columns": "v = -u; z = z.T.copy(); z.T[1:-1, 1:-1] = v",
    "twice": "v = -u; z[1:-1, 1:-1] = v; z[1:-1, 2:] = v",
    "in other columns": "v = u.T * 2; z = z.T.copy(); z[1:-1, 1:-1] = v",
    "padded": "v = -u; z = np.pad(v, 1)",
    "stacked": "v = -u; z = np.stack([v, v], axis=1)",
    "joined": "v = -u; z = np.concatenate([v, v], axis=1)",
    "beside": "v = -u; z = np.hstack([v, u])",
    "appended": "v = -u; z = np.append(v, u, axis=1)",
    "in a block": "v = -u; z = np.block([[v, u], [u, v]])",
    "in columns": "v = -u[:, 0]; z = np.column_stack([v, u])",
    "a choice": "v = np.where(u > 3, u, 0); z[1:-1, 1:-1] = v",
    "a copy": "v = z[1:-1, 1:-1].copy()",
    "made of a part": "v = np.array(z[1:-1, 1:-1])",
    "cast": "v = z[1:-1, 1:-1].astype('f4')",
    "z made anew": "v = -u; z[1:-1, 1:-1] = v; z = z * 1",
    "copied to": "v = -u; np.copyto(z[1:-1, 1:-1], v)",
    "three axes": "v = -u.reshape(-1, 2, 2); z = z[:-2].reshape(-1, 2, 3).copy(); z[:, :, :2] = v",
}
# What is done with it: `n` shows the same memory, or not, as with NumPy.
DONE = {
    "reshaped": "n = v.reshape(-1); n[1:3] = 7",
    "by the function": "n = np.reshape(v, (-1, 2)); n[1] = 7",
    "raveled": "n = v.ravel(); n[1:3] = 7",
    "turned": "n = v.T.reshape(-1); n[1:3] = 7",
    "turned, by columns": "n = v.T.ravel('F'); n[1:3] = 7",
    "with an axis more": "n = v[None].reshape(-1); n[1:3] = 7",
    "a part": "n = v[1:3].reshape(-1); n[1:3] = 7",
    "real parts": "n = v.real.reshape(-1); n[1:3] = 7",
    "z written": "n = v.reshape(-1); z[...] = 0; n[0:1] = 5",
    "z read before": "n = v.reshape(-1); s = z * 2; n[0:1] = 5; z[1] = 3",
    "into": "n = v.reshape(-1); np.add(n, 1, out=n)",
    "strides": "n = np.asarray(v.strides)",
    "flags": "n = np.asarray([v.flags.c_contiguous, v.flags.f_contiguous])",
    "bytes": "n = v.view('i2'); n[..., :1] = 3",
}


def values(np_, u, z, made, done):
    """What `v`, `z` and `n` hold after a program."""
    here = {"np": np_, "u": u, "z": z}
    exec(made, here)
    exec(done, here)
    return [
        np.asarray(x) if not isinstance(x, mb.AbstractArray) else mb.to_numpy(x)
        for x in (here[k] for k in "vzn")
    ]


# (Divided arrays lie row by row, whatever their first operand does.)
TRIED = [(m, k) for m in MADE for k in KINDS if k != "divided" or "columns" not in m or m == "in columns"]


@pytest.mark.parametrize(("made", "kind"), TRIED)
def test_results_are_shown_in_other_shapes_as_numpys_are(made, kind):
    family, n = KINDS[kind]
    u, z = np.arange(4.0 * n).reshape(n, 4), np.ones((n + 2, 6))
    for name, done in DONE.items():
        try:
            expected = values(np, u.copy(), z.copy(), MADE[made], done)
        except ValueError:  # (bytes of what lies by columns)
            with pytest.raises(ValueError, match="contiguous"):
                values(mb, family(u), family(z), MADE[made], done)
            continue
        for way in ("cold", "hot"):
            with running(way), mb.settings.changed(immediate_size=0, small_size=0):
                for _ in range(1 if kind == "ref" or way == "cold" else 3):
                    found = values(mb, family(u), family(z), MADE[made], done)
        for a, b in zip(found, expected, strict=True):
            assert np.array_equal(a, b), (name, way)


def test_in_compiled_programs_too():
    @mb.compile
    def f(u, z):
        v = -u
        z[1:-1, 1:-1] = v
        n = v.reshape(-1)
        n[1:3] = 7
        return v, n

    u = mb.HostArray(np.arange(40.0).reshape(10, 4))
    z = mb.zeros((12, 6))
    for _ in range(3):
        v, n = f(u, z)
        assert v.tolist()[0] == [0, 7, 7, -3] and n.tolist()[:4] == [0, 7, 7, -3]
        assert z.tolist()[1] == [0, 0, -1, -2, -3, 0]
