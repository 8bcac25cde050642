"""einx: it asks arrays for their namespace where array_api_compat has been imported, and finds ours there.

>>> import mirabelle as mb, einx
>>> einx.sum("a [b]", mb.HostArray([[1.0, 2.0], [3.0, 4.0]]))
HostArray[float64, 1]([3., 7.])
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(ModuleNotFoundError):  # einx says what is missing
    import array_api_compat  # noqa: F401
