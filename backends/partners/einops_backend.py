"""einops: `rearrange`, `reduce`, `repeat`, `pack` and `einsum` of our arrays.

einops finds a backend among the subclasses of its own that exist, by the name of the module that
its arrays are of.

>>> import mirabelle as mb, einops
>>> einops.rearrange(mb.HostArray([[1, 2], [3, 4]]), "i j -> (j i)").tolist()
[1, 3, 2, 4]
"""

from __future__ import annotations

from typing import Any

from einops._backends import AbstractBackend

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import verbs


class MirabelleBackend(AbstractBackend):  # type: ignore[misc]
    framework_name = "mirabelle"

    def __init__(self) -> None:
        import mirabelle

        self.mb: Any = mirabelle

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, AbstractArray)

    def from_numpy(self, x: Any) -> Any:
        return self.mb.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return verbs.to_numpy(x)

    def arange(self, start: int, stop: int) -> Any:
        return self.mb.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return self.mb.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return self.mb.expand_dims(x, axis=new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        # Stretched, not repeated in memory.
        for position in sorted(pos2len):
            x = self.mb.expand_dims(x, axis=position)
        return verbs.broadcast_to(x, tuple(pos2len.get(i, n) for i, n in enumerate(x.shape)))

    def tile(self, x: Any, repeats: tuple[int, ...]) -> Any:
        return self.mb.tile(x, repeats)

    def concat(self, tensors: list[Any], axis: int) -> Any:
        return self.mb.concat(tensors, axis=axis)

    def is_float_type(self, x: Any) -> bool:
        return bool(x.dtype.kind == "f")

    def einsum(self, pattern: str, *x: Any) -> Any:
        return self.mb.einsum(pattern, *x)
