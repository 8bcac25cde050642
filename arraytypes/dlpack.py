"""DLPack: handing memory to other array libraries, and taking theirs, without a copy.

>>> import mirabelle as mb, numpy as np
>>> x = mb.HostArray([1.0, 2.0])
>>> shown = np.from_dlpack(x)
>>> x += 1                            # what was handed out keeps its values
>>> shown, x.tolist()
(array([1., 2.]), [2.0, 3.0])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import gpu_interop
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.host import share
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.styles import HOST

# DLPack's numbers for kinds of devices; 12 stands for those it has no number for.
DEVICES = {"host": 1, "cuda": 2, "rocm": 10}
EXTENSION = 12
CPU = (DEVICES["host"], 0)
CARDS = (DEVICES["cuda"], DEVICES["rocm"])
# Memory that the host reads: its own, pinned for CUDA or ROCm, and managed by CUDA.
READABLE = {1, 3, 11, 13}


def device_of(x: AbstractArray) -> tuple[int, int]:
    """DLPack's name of the place of `x`."""
    return DEVICES.get(x.place.kind, EXTENSION), x.place.index


def export(x: AbstractArray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """The capsule that `x.__dlpack__(...)` gives.

    It shows the contents as they are now, read-only: a later write to `x` goes to other memory.
    Memory shared with NumPy is shared on, writable.
    """
    wanted = device_of(x) if dl_device is None else tuple(map(int, dl_device))
    if wanted == device_of(x) and wanted[0] in CARDS:
        return gpu_interop.export(x, stream, max_version, copy)
    if x.place != HOST:
        # Only who asks for the host by name gets a copy there.
        if wanted != CPU or copy is False or dl_device is None:
            why = "and another device was asked for" if dl_device else "whose memory no other library reads"
            raise BufferError(
                f"{type(x).__name__} lives on {x.place}, {why}. Ask for a copy on the host, "
                "`from_dlpack(x, device='cpu')`, or hand over `mb.adapt(mb.HostArray, x)`."
            )
        return verbs.to_numpy(x).__dlpack__(stream=stream, max_version=max_version)
    if wanted != CPU:
        raise BufferError(
            f"{type(x).__name__} lives on the host, and DLPack device {wanted} was asked for. Import it "
            "from the host, and move it with the library that knows the device."
        )
    exported = verbs.numpy_view(x, None, True if copy else None)
    if not exported.flags.writeable and (max_version is None or max_version[0] < 1):
        # Before version 1, DLPack cannot say that memory is read-only: who insists on no copy gets
        # the memory, and must not write to it.
        exported = exported.copy() if copy is not False else verbs.leaf_of(x).view.view()
    return exported.__dlpack__(stream=stream, max_version=max_version)


@creates
@explained
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> AbstractArray:
    """An array of any library that speaks DLPack, as ours; without a copy where that is possible.

    What the host or a card's arrays can read is shared: writes go both ways, as with `mb.asarray`. `device`
    (an array type) moves it; so does naming `mb.HostArray` for an array of another library's device.

    Parameters
    ----------
    x : object
        An array of a library that has `__dlpack__`.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.
    copy : bool or None
        True copies always, False never (an error where it is needed), None where it is needed.

    Returns
    -------
    array
        Of our array type for the device it is on, unless `device` is given.

    Examples
    --------
    >>> import mirabelle as mb, numpy as np
    >>> n = np.zeros(2)
    >>> x = mb.from_dlpack(n)
    >>> x[0] = 5
    >>> n
    array([5., 0.])
    """
    if isinstance(x, AbstractArray):
        here = device is None or maker_of(device).family.home == x.place
        return _moved(x, x.place if here else device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack takes an array of a library that speaks DLPack (it has __dlpack__), and a "
            f"{type(x).__name__} does not. Make an array of it with mb.asarray(x)."
        )
    kind, index = x.__dlpack_device__()
    if int(kind) in READABLE:
        return _moved(share(np.from_dlpack(x)), device, copy)
    if int(kind) in CARDS and (device is None or maker_of(device).family.home != HOST):
        made = gpu_interop.shared(x)
        return _moved(made, made.place if device is None else device, copy)
    if device is None or maker_of(device).family.home != HOST:
        raise BufferError(
            f"This {type(x).__module__.split('.')[0]} array lives on device ({int(kind)}, {index}) of DLPack, "
            "where no array type of mirabelle stores its data. Copy it to the host by name: "
            "`mb.from_dlpack(x, device=mb.HostArray)`."
        )
    if copy is False:
        raise BufferError("A change of place needs a copy. Leave copy=False away.")
    return _moved(share(np.from_dlpack(x, device="cpu")), device, None)


def _moved(x: Any, device: Any, copy: bool | None) -> Any:
    """`x` where `device` says: itself if it is there and may be shared."""
    maker = maker_of(device)
    if x.place == maker.family.home and maker.show is None:
        return verbs.copy(x) if copy else x
    if copy is False:
        raise BufferError(f"Making it a {maker.name} needs a copy. Leave copy=False away.")
    return maker(verbs.adapt(maker.family, x))
