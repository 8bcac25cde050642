"""Views made of strides that have a name. (`as_strided`, which reads any memory, is not among them.)

>>> import mirabelle as mb
>>> print(mb.lib.stride_tricks.sliding_window_view(mb.arange(4), 3))
[[0 1 2]
 [1 2 3]]
"""

from mirabelle.arraytypes.functions.manipulation import broadcast_shapes
from mirabelle.arraytypes.parts import sliding_window_view
from mirabelle.dispatch.verbs import broadcast_to

__all__ = ["broadcast_shapes", "broadcast_to", "sliding_window_view"]
