"""Generator: random numbers of any distribution, for arrays of any type."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes.dense import as_shape
from mirabelle.arraytypes.makers import creates
from mirabelle.arraytypes.random.bitgenerator import Philox
from mirabelle.arraytypes.random.continuous import Continuous
from mirabelle.arraytypes.random.discrete import Discrete
from mirabelle.arraytypes.random.docs import told
from mirabelle.arraytypes.random.filling import Piece
from mirabelle.arraytypes.random.multivariate import Multivariate
from mirabelle.arraytypes.random.sequences import Sequences
from mirabelle.dispatch.misuse import explained

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import Device, Seed, ShapeLike

# What `fill` may be asked for.
_FILLS = frozenset(
    n for family in (Continuous, Discrete, Multivariate) for n in vars(family) if not n.startswith("_")
)


@told
class Generator(Continuous, Discrete, Multivariate, Sequences):
    """Random numbers as NumPy's Generator gives them, for arrays of any type.

    A number depends on the seed, on how many calls were made before, and on its place in the array; not
    on the array's type, nor on threads, nor on how the array is divided. (They are not NumPy's numbers.)
    `device` is what creation functions take: an array type, a place, or None for the default.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence, Philox or None
        None asks the system for one.
    device : array type, place or None
        Where arrays are made; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> on_host = mb.random.Generator(42, device=mb.HostArray).normal(size=4)
    >>> on_device = mb.random.Generator(42, device=mb.RefArray).normal(size=4)
    >>> bool(mb.all(on_host == mb.adapt(mb.HostArray, on_device)))
    True
    """

    __module__ = "mirabelle.random"
    __slots__ = ()

    def __init__(self, seed: Seed = None, device: Device | None = None) -> None:
        super().__init__(seed if isinstance(seed, Philox) else Philox(seed), device)

    def fill(self, x: AbstractArray, distribution: str = "random", *args: Any, **kwargs: Any) -> AbstractArray:
        """Overwrite an array with numbers of a distribution, given by the name of its method.

        >>> import mirabelle as mb
        >>> x = mb.zeros(3, dtype=mb.float32)
        >>> y = mb.random.default_rng(7).fill(x, "uniform", 5, 6)
        >>> y is x, bool(mb.all(x >= 5)), x.dtype
        (True, True, dtype('float32'))
        """
        if distribution not in _FILLS:
            raise ValueError(
                f"There is no distribution {distribution!r}. There are: {', '.join(sorted(_FILLS))}."
            )
        return getattr(self, distribution)(*args, out=x, **kwargs)

    def piece(self, offset: ShapeLike, total: ShapeLike) -> Generator:
        """A generator for a block of a larger array: it makes the numbers that the whole would have there.

        `offset` is where the block begins, `total` the shape of the whole; `size` is then the shape of the
        block. Calls are counted together with this generator's, so workers that make the same calls on
        pieces of generators of one seed fill one array together.

        >>> import mirabelle as mb
        >>> whole = mb.random.default_rng(7).normal(size=(4, 6))
        >>> part = mb.random.default_rng(7).piece((1, 2), (4, 6)).normal(size=(2, 3))
        >>> bool(mb.all(part == whole[1:3, 2:5]))
        True
        """
        return self._with(self._bits, Piece(as_shape(offset), as_shape(total)))

    def spawn(self, n_children: int) -> list[Generator]:
        """Independent generators; each call gives others, and the numbers of this one stay as they are.

        >>> import mirabelle as mb
        >>> a, b = mb.random.default_rng(7).spawn(2)
        >>> bool(a.random() == b.random())
        False
        """
        return [self._with(b) for b in self._bits.spawn(n_children)]

    def split(self, n: int) -> list[Generator]:
        """Independent generators that depend on this one's state alone. It takes one call.

        >>> import mirabelle as mb
        >>> first, second = (mb.random.default_rng(7).split(2)[1].random() for _ in range(2))
        >>> bool(first == second)
        True
        """
        return [self._with(b) for b in self._bits.split(n)]

    def jumped(self, jumps: int = 1) -> Generator:
        """A generator of the same key, as if 2**44 calls had been made (so many times `jumps`)."""
        return self._with(self._bits.jumped(operator.index(jumps)))

    def _with(self, bits: Philox, piece: Piece | None = None) -> Generator:
        made = Generator(bits, self._device)
        made._piece = piece
        return made

    def __repr__(self) -> str:
        device = "" if self._device is None else f", device={self._device.name}"
        return f"Generator({self._bits!r}{device})"

    def __getstate__(self) -> Any:
        return self._bits, self._device, self._piece

    def __setstate__(self, state: Any) -> None:
        self._bits, self._device, self._piece = state


@explained
def default_rng(seed: Seed | Generator = None, *, device: Device | None = None) -> Generator:
    """A generator of a seed: an integer, several, a SeedSequence, a `Philox`, or None for the system's.

    A Generator is returned as it is, or with another device.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence, Philox or None
        None asks the system for one.
    device : array type, place or None
        Where arrays are made; None is the default array type.

    Returns
    -------
    mb.random.Generator
        With another device, or made of a `Philox`, it shares the state of what was given: what one draws,
        the other does not draw again.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rng = mb.random.default_rng(42)
    >>> rng.normal(size=(2, 3)).shape
    (2, 3)
    >>> mb.random.default_rng(42, device=mb.RefArray).random(2).place
    ref:0
    """
    if isinstance(seed, Generator):
        return seed if device is None else Generator(seed.bit_generator, device)
    return Generator(seed, device)


creates(default_rng)
