"""How an array lies in memory, and whether it may be written: `x.flags`, as NumPy has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.proxies import lying
from mirabelle.arraytypes.wrappers import lie_alone
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray


class Flags:
    """What NumPy's flags say of an array's memory. `writeable` may be set: an array that holds its own memory
    can be protected from being written.

    Parameters
    ----------
    array : array
        Whose memory is asked about. What waits is computed.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros(3)
    >>> x.flags.c_contiguous, x.flags["WRITEABLE"]
    (True, True)
    >>> x.flags.writeable = False
    >>> x[0] = 1.0
    Traceback (most recent call last):
        ...
    ValueError: assignment destination is read-only: `x.flags.writeable` is False. Copy it: `x = mb.copy(x)`.
    """

    __slots__ = ("_array", "_numpys")

    def __init__(self, array: AbstractArray) -> None:
        lie_alone(array)
        self._array = array
        self._numpys = lying(verbs.leaf_of(array).view).flags

    @property
    def writeable(self) -> bool:
        """May the array be written?"""
        return bool(self._numpys.writeable)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        if bool(value) != self.writeable:
            set_writeable(self._array, bool(value))
            self._numpys = verbs.leaf_of(self._array).view.flags

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpys, name)

    def __getitem__(self, name: str) -> bool:
        return bool(self._numpys[name])

    def __setitem__(self, name: str, value: bool) -> None:
        if name not in ("WRITEABLE", "W"):
            raise ValueError(
                f"Of the flags of an array WRITEABLE can be set, and not {name!r}: `x.flags.writeable = False`."
            )
        self.writeable = value

    def __eq__(self, other: object) -> bool:
        return bool(self._numpys == (other._numpys if isinstance(other, Flags) else other))

    __hash__ = None  # type: ignore[assignment] # (as NumPy's: they change)

    def __dir__(self) -> list[str]:
        return dir(self._numpys)

    def __repr__(self) -> str:
        return repr(self._numpys)


def set_writeable(x: Any, wanted: bool) -> None:
    """Protect an array that holds its own memory, or let it be written again.

    What is read-only has a leaf that says so, as borrowed memory has (see `assign.check_writable`): whatever
    writes asks that leaf. Who holds the values goes on with those it had.
    """
    from mirabelle.arraytypes.dense import DenseArray  # which stand on this module
    from mirabelle.arraytypes.lending import own

    if not isinstance(x, DenseArray):
        raise ValueError(
            f"A {type(x).__name__} shows the memory of another array, whose flag counts. Set that of the array "
            "it shows, or of a copy: `y = mb.copy(x)`."
        )
    if type(x).family.home.kind == "traced":
        from mirabelle.arraytypes.programs.capture import side_effect

        raise side_effect(x)
    leaf = verbs.leaf_of(x)
    if wanted and not leaf.recalled("protected"):
        raise ValueError(
            "cannot set WRITEABLE flag to True of this array: its memory is another library's, which says that "
            "it is read-only. Copy it: `x = mb.copy(x)`."
        )
    if wanted:
        x._node = verbs.leaf_of(verbs.copy(x))
    else:
        own(x)
        x._node = protected(verbs.leaf_of(x))


def protected(leaf: Leaf) -> Leaf:
    """A leaf of the same memory that nobody writes to."""
    view: Any = leaf.view
    if isinstance(view, np.ndarray):
        shown = view.view()
        shown.flags.writeable = False
    else:
        shown = view._shown(view.proxy.view())
        shown.proxy.flags.writeable = False
    made = Leaf(shown, foreign=True)
    made.known = {"protected": (0, True)}
    return made
