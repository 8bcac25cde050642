"""Pillow makes images of arrays, and keeps what it was given."""

import numpy as np
import pytest

import mirabelle as mb

Image = pytest.importorskip("PIL.Image")
PICTURES = {
    "grey": lambda x: x,
    "rows": lambda x: x[1:],
    "every other column": lambda x: x[:, ::2],
    "turned": lambda x: x.T,
    "upside down": lambda x: x[::-1],
    "a tree": lambda x: x // 2 + 1,
}


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "?"])
@pytest.mark.parametrize("part", PICTURES.values(), ids=PICTURES)
def test_images_of_arrays(part, dtype):
    n = (np.arange(12 * 10).reshape(12, 10) * 2).astype(dtype)
    if n.dtype == bool and part is PICTURES["a tree"]:
        return
    wanted, x = part(n), part(mb.HostArray(n))
    if wanted.dtype != n.dtype:
        wanted, x = wanted.astype(dtype), x.astype(dtype)
    np.testing.assert_array_equal(np.asarray(Image.fromarray(x)), np.asarray(Image.fromarray(wanted)))


def test_colours():
    n = np.arange(5 * 4 * 3).reshape(5, 4, 3).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.fromarray(mb.HostArray(n))), n)


def test_an_image_keeps_what_it_was_given():
    x = mb.HostArray(np.ones((4, 4), np.uint8))
    image, interface = Image.fromarray(x), x.__array_interface__
    held = np.asarray(type("Reader", (), {"__array_interface__": interface})())
    x[...] = 7
    assert np.asarray(image).max() == 1 and held.max() == 1


def test_devices_offer_none():
    assert not hasattr(mb.RefArray(np.ones((2, 2))), "__array_interface__")
    assert not hasattr(mb.CuArray(np.ones((2, 2))), "__array_interface__")
