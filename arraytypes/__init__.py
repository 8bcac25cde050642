"""What the data is: AbstractArray and the array types. Knows no backend."""

from mirabelle.arraytypes import (  # noqa: F401 - they add methods
    assign,
    display,
    elementwise,
    indexing,
    interop,
    reductions,
    specialvalues,
    structured,
    ufuncs,
    wrappers,
)
from mirabelle.arraytypes.functions import conventions  # noqa: F401
from mirabelle.dispatch import loading

# (What belongs to dual numbers comes with them, and nothing more.)
loading.completed_by("mirabelle.arraytypes.duals")
