"""How values travel between the notebook and the workers: pickled, with arrays that stay where they are.

An array that lives on the workers is named by what it is kept under; a large NumPy array by a digest of its
contents, under which it was sent once. Both can stand anywhere in a value.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.parametric import ArrayMeta


@functools.cache
def _packer() -> Any:
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]
        """Functions go by value where the other end could not import them."""

        def __init__(self, file: io.BytesIO, name: Callable[[Any], Any], buffers: list[Any] | None) -> None:
            super().__init__(file, protocol=5, buffer_callback=None if buffers is None else buffers.append)
            self._name = name

        def persistent_id(self, x: Any) -> Any:
            return self._name(x)

        def reducer_override(self, x: Any) -> Any:
            # cloudpickle would send an array type with parameters by value, as another type of its name.
            if isinstance(x, ArrayMeta) and (x.parameters or x.__module__.split(".")[0] == "mirabelle"):
                return NotImplemented
            return super().reducer_override(x)

    return Packer


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[Any], Any], buffers: list[Any] | None) -> None:
        super().__init__(file, buffers=buffers)
        self._find = find

    def persistent_load(self, name: Any) -> Any:
        return self._find(name)


def pack(x: Any, name: Callable[[Any], Any]) -> bytes:
    """A value as bytes; what `name` gives a name for is only named."""
    file = io.BytesIO()
    _packer()(file, name, None).dump(x)
    return file.getvalue()


def unpack(text: bytes, find: Callable[[Any], Any]) -> Any:
    """The value; `find` gives what was only named."""
    return _Unpacker(io.BytesIO(text), find, None).load()


def pack_frames(x: Any, name: Callable[[Any], Any]) -> list[Any]:
    """A value as bytes, and the memory of its arrays beside, which nobody copies."""
    file, buffers = io.BytesIO(), list[Any]()
    _packer()(file, name, buffers).dump(x)
    return [file.getvalue(), *(b.raw() for b in buffers)]


def unpack_frames(frames: list[Any], find: Callable[[Any], Any]) -> Any:
    """The value, whose arrays can be written to."""
    buffers = [f if not memoryview(f).readonly else bytearray(f) for f in frames[1:]]
    return _Unpacker(io.BytesIO(frames[0]), find, buffers).load()
