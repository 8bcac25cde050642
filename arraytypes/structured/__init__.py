"""Arrays that store parts and know their other entries. `base.py` says how to add one."""

from mirabelle.arraytypes.structured import (  # noqa: F401 - they add methods
    banded,
    base,
    broadcasting,
    conjugated,
    display,
    fallback,
    implicit,
    linalg_rules,
    mirrored,
    reductions,
    sketches,
    triangular,
)
