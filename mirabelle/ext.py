"""What extensions are made of: new array types, backends, and whatever looks into trees.

`docs/guide/extending.md` says how a type is added. Each name is stable for as long as `mirabelle` is.

>>> import mirabelle as mb
>>> with mb.settings.changed(immediate_size=0):
...     y = mb.HostArray([1.0, 2.0]) * 2
>>> type(mb.ext.tree(y)).__name__
'Broadcasted'
"""

import typing as _typing

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.structured.base import Implicit, Structured
from mirabelle.arraytypes.structured.reordered import Reordered
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import loading as _loading
from mirabelle.dispatch.generic import generic, methods, override, which, world
from mirabelle.dispatch.tree import Broadcasted
from mirabelle.dispatch.verbs import (
    adapt,
    assign,
    copyto,
    lower,
    materialize,
    parent,
    place,
    show,
    similar,
    tree,
)

if _typing.TYPE_CHECKING:
    from mirabelle.arraytypes.programs.outlines import outline
    from mirabelle.backends.explain import broadcasted

_LATER = {
    "mirabelle.arraytypes.programs.outlines": "outline",
    "mirabelle.backends.explain": "broadcasted",
}

_loading.arrays_come(__name__)
__all__ = [
    "AbstractArray",
    "Broadcasted",
    "DenseArray",
    "Implicit",
    "Reordered",
    "Structured",
    "Wrapper",
    "adapt",
    "assign",
    "broadcasted",
    "copyto",
    "generic",
    "lower",
    "materialize",
    "methods",
    "outline",
    "override",
    "parent",
    "place",
    "show",
    "similar",
    "tree",
    "which",
    "world",
]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _loading.later(__name__, _LATER)
