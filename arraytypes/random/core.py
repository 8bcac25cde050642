"""What all methods of a generator share: its state, its place, and how results come to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import check_writable
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import as_shape
from mirabelle.arraytypes.elementwise import cast_to, leaf_family
from mirabelle.arraytypes.lending import family_in_memory
from mirabelle.arraytypes.makers import Maker, maker_of
from mirabelle.arraytypes.random import filling
from mirabelle.arraytypes.random.bitgenerator import Philox
from mirabelle.arraytypes.random.checks import output_shape, parameter
from mirabelle.arraytypes.random.filling import Piece
from mirabelle.arraytypes.random.samplers import TABLE
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device

# The dtypes that samplers know by a suffix.
_SINGLE = np.dtype(np.float32)


class Request:
    """One call of a method: its parameters, ready to compute with, and where the result goes.

    `target` is `out` as long as nothing has been drawn into it.
    """

    __slots__ = ("family", "out", "parameters", "shape", "target")

    def __init__(self, family: Any, out: Any, parameters: list[Any], shape: tuple[int, ...]) -> None:
        self.family = family
        self.out = self.target = out
        self.parameters = parameters
        self.shape = shape


class Core:
    """A bit generator, and the type of the arrays it fills."""

    __slots__ = ("_bits", "_device", "_piece")

    def __init__(self, bits: Philox, device: Device | None = None, piece: Piece | None = None) -> None:
        self._bits = bits
        self._device = None if device is None else maker_of(device)
        self._piece = piece

    @property
    def bit_generator(self) -> Philox:
        """The key and the number of calls made, shared with all pieces of this generator."""
        return self._bits

    @property
    def state(self) -> dict[str, Any]:
        """What the next numbers depend on; set it to draw them again.

        >>> import mirabelle as mb
        >>> rng = mb.random.default_rng(1)
        >>> before = rng.state
        >>> x = rng.random(3)
        >>> rng.state = before
        >>> bool(mb.all(rng.random(3) == x))
        True
        """
        return self._bits.state

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._bits.state = value

    def _maker(self) -> Maker:
        return self._device if self._device is not None else maker_of(None)

    def _request(self, size: Any, out: Any, whole: tuple[str, ...] = (), **parameters: Any) -> Request:
        """Look at what a method was given, before anything is drawn. `whole`: which parameters count."""
        if out is not None:
            out = self._destination(out)
        family = self._maker().family if out is None else leaf_family(type(out))
        ready = [parameter(family, name, x, name in whole) for name, x in parameters.items()]
        shape = output_shape(None if size is None else as_shape(size), out, ready)
        return Request(family, out, ready, shape)

    def _destination(self, out: Any) -> Any:
        if not isinstance(out, (AbstractArray, np.ndarray)):
            raise TypeError(f"out= takes an array to write to, not a {type(out).__name__}.")
        out = as_array(out)
        if family_in_memory(type(out)) is None:
            raise TypeError(
                f"out= is a {type(out).__name__}, which computes its elements or stores only some: there is "
                "nothing to write to. Give an array in memory: mb.empty(shape)."
            )
        check_writable(out)
        return out

    def _draw(self, r: Request, sampler: str, dtype: Any = None, *parameters: Any, shape: Any = None) -> Any:
        """An array from a sampler: the one to be filled itself, if it can be written to as it is."""
        d = TABLE[sampler].dtype if dtype is None else dtype
        if d == _SINGLE and f"{sampler}_4" in TABLE:
            sampler += "_4"
        shape = r.shape if shape is None else shape
        filling.rows_of(shape, self._piece)  # refuses what cannot be, before a call is taken
        stream = self._bits.next_call()
        target, r.target = r.target, None
        if target is not None and target.shape == shape and target.dtype == d:
            # An array among the parameters may be a view of the target.
            alone = not any(isinstance(p, AbstractArray) for p in (*r.parameters, *parameters))
            view = filling.in_place(target) if alone else None
            if view is not None:
                filling.fill(r.family, view, TABLE[sampler], stream, parameters, self._piece)
                return target
        return filling.new(r.family, sampler, stream, shape, d, parameters, self._piece)

    def _deliver(self, r: Request, result: Any, dtype: Any = None) -> Any:
        """The result as the caller gets it: of the dtype asked for, in `out` or as the maker shows it."""
        if dtype is not None:
            result = cast_to(result, dtype)
        if r.out is None:
            return self._maker()(result)
        if result is not r.out:
            verbs.assign(r.out, result, casting="same_kind")
        return r.out
