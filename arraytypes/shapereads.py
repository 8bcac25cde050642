"""Who wants to know when a shape is read (see `programs/extents.py`)."""

from __future__ import annotations

from typing import Any

# The `Reads` that write it down; None where nobody does.
current: Any = None
