"""The lazy broadcast tree.

Every array a user holds is a handle on an immutable *version*: a `Leaf` (data in memory), a
`Broadcasted` (an operation on versions, not computed yet) or a `Reduced` (a reduction of one).
Operations capture versions, never handles. So a later write to an array, which gives its
handle another version, cannot change what was said before; each version counts who holds it,
which tells whether anybody still needs the old one (dispatch/csrc/owners.c).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.dispatch import _native, native
from mirabelle.dispatch.addresses import address_of

# The size of a foreign leaf: past every limit, so that whatever reads it is evaluated at once.
FOREIGN = 1 << 30


class Leaf(_native.Leaf):
    """Data in memory: a backend's array object, never changed while somebody else reads it.

    `foreign` marks memory that others can write to (a NumPy array wrapped without a copy):
    expressions over it are evaluated at once. `root` is the leaf whose memory this one shows a part
    of. `table` marks memory that gathers read, at places only the kernel knows.
    """

    __slots__ = ("__weakref__",)

    # A leaf has no value beside itself; the name is there for code that has asked what it holds.
    value: Any

    def key(self) -> Any:
        """What leaves that show the same elements share."""
        if self.root is None and not self.table:
            return id(self)
        view = self.view
        if isinstance(view, np.ndarray):
            start: Any = address_of(view)
        else:
            start = view.start
        return (self.table, start, view.shape, view.strides, view.dtype.num)

    def remember(self, what: str, value: Any) -> None:
        """Keep what was worked out about the contents, until they change."""
        if not self.foreign:
            if self.known is None:
                self.known = {}
            self.known[what] = ((self.root or self).writes, value)

    def recalled(self, what: str) -> Any:
        """What was worked out about the contents, if they are the same still."""
        if self.known is None or what not in self.known:
            return None
        writes, value = self.known[what]
        return value if writes == (self.root or self).writes else None

    def __repr__(self) -> str:
        return f"Leaf({self.dtype.name}, shape={self.shape})"


# Can nobody else write to a leaf's memory, or not any more? (What was another's is ours once nobody else holds
# its array.)
adopted: Callable[[Any], bool] = _native.adopted
# May a leaf's memory be written where it is? may_write(leaf, how often the tree that is written reads all of
# it, arrays that show parts of it and nobody else has, ...). Who reads parts is for the asker to find out.
may_write: Callable[..., bool] = _native.may_write
# Does nobody outside have what stands for a leaf's memory: NumPy's array, or a card's view?
memory_alone: Callable[[Any], bool] = _native.memory_alone
# Call what is about to read versions: meanwhile other threads write no memory in place.
evaluating: Callable[..., Any] = _native.evaluating


class Broadcasted(_native.Node):
    """An elementwise operation on versions and scalars, with its shape and dtype known.

    Once evaluated it holds its value and lets go of its operands.

    >>> import mirabelle as mb
    >>> with mb.settings.changed(immediate_size=0):
    ...     t = mb.ext.tree(mb.HostArray([1.0, 2.0]) * 2)
    >>> isinstance(t, mb.ext.Broadcasted), t.shape
    (True, (2,))
    """

    foreign = False
    element = False

    def __repr__(self) -> str:
        return format_tree(self)

    def _repr_html_(self) -> str:
        return _shown(self)


class Reduced(_native.Reduced):
    """A reduction of a version along axes, not computed yet."""

    size = 1
    foreign = False
    element = False

    def __repr__(self) -> str:
        return format_tree(self)

    def _repr_html_(self) -> str:
        return _shown(self)


def _shown(version: Broadcasted | Reduced) -> str:
    from mirabelle.dispatch import verbs  # which stand on this module

    return verbs.show_html(version)  # type: ignore[no-any-return]


def is_element(version: Any) -> bool:
    """Is a single number one element picked out of an array, or computed from such?"""
    stack = [version]
    while stack:
        x = stack.pop()
        if isinstance(x, (Leaf, Broadcasted, Reduced)):
            if x.element:
                return True
            if isinstance(x, Broadcasted):
                stack += [x.value] if x.value is not None else x.args or ()
    return False


def kept(version: Version) -> Any:
    """What keeps a version as an array does, for as long as it lives."""
    holder = _native.Handle()
    holder._node = version
    return holder


def destination(view: Any) -> Leaf:
    """A leaf about to be written, by a writer who has looked after aliasing."""
    leaf = Leaf(view)
    leaf.checked = True
    return leaf


Version = Leaf | Broadcasted | Reduced

native.tell(leaf=Leaf, node=Broadcasted, reduced=Reduced)
# Versions yet to be filled in, for who makes many.
new_leaf: Callable[[type[Leaf]], Any] = Leaf.__new__
new_node: Callable[[type[Broadcasted]], Any] = Broadcasted.__new__


def format_tree(version: Any, name: Callable[[Any], str] | None = None) -> str:
    """A tree as an indented text, a line a node."""
    lines: list[str] = []
    seen: dict[Any, str] = {}
    count = {"x": 0, "v": 0}

    def new(letter: str) -> str:
        count[letter] += 1
        return f"{letter}{count[letter]}"

    def describe(x: Any) -> str:
        if isinstance(x, Leaf):
            key = x.key()
            label = seen.get(key)
            if label is None:
                label = seen[key] = name(x) if name else new("x")
            return f"{label}: {x.dtype.name}{list(x.shape)}"
        return f"{x!r}" if not hasattr(x, "dtype") else f"{x!s}: {x.dtype.name}"

    def walk(x: Any, depth: int) -> None:
        pad = "  " * depth
        if isinstance(x, (Broadcasted, Reduced)) and x.value is not None:
            x = x.value
        if isinstance(x, Broadcasted):
            label = seen.get(id(x))
            if label is not None:
                lines.append(f"{pad}{label} (again)")
                return
            seen[id(x)] = label = new("v")
            lines.append(f"{pad}{label} = {x.sig.op.name}: {x.dtype.name}{list(x.shape)}")
            for a in x.args or ():
                walk(a, depth + 1)
        elif isinstance(x, Reduced):
            lines.append(f"{pad}{x.reduction.name}(axis={x.axes}): {x.dtype.name}{list(x.shape)}")
            walk(x.operand, depth + 1)
        else:
            lines.append(pad + describe(x))

    walk(version, 0)
    return "\n".join(lines)


def broadcast_shapes(shapes: list[tuple[int, ...]], what: str) -> tuple[int, ...]:
    """The common shape under NumPy's rule (align at the end, 1 stretches), or its error."""
    return _broadcast(what, *shapes)


@functools.lru_cache(maxsize=1 << 12)
def _broadcast(what: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    ndim = max(map(len, shapes))
    out = [1] * ndim
    for shape in shapes:
        pad = ndim - len(shape)
        for i, n in enumerate(shape):
            if n != 1:
                if out[pad + i] == 1:
                    out[pad + i] = n
                elif out[pad + i] != n:
                    shown = " ".join(str(s).replace(" ", "") for s in shapes)
                    raise ValueError(
                        f"operands could not be broadcast together with shapes {shown} in {what}. "
                        "Dimensions are aligned at the end and must be equal or 1; insert one with "
                        "`x[:, None]` or swap two with `x.T`."
                    )
    return tuple(out)
