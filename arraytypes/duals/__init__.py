"""Dual numbers: `base.py` says how they are kept, the others give the rules."""

from mirabelle.arraytypes.duals import (  # noqa: F401 - they add methods
    counting,
    elementwise,
    factoring,
    joining,
    leaving,
    matrixfunctions,
    moving,
    ordering,
    products,
    reducing,
    routines,
    scalarfunctions,
    signals,
    solving,
    sparse,
    structured,
    views,
)
from mirabelle.dispatch import loading

loading.complete(__name__)
