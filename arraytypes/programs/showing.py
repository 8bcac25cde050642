"""What people see of an array while a function is compiled: its values are only there when the program runs."""

from __future__ import annotations

import contextvars
from typing import Any

from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs import states
from mirabelle.arraytypes.programs.errors import TraceError, because_of, shown_line

# May a text say that an array has no values yet? A function that can be cut is cut where one is asked for.
texts_without_values: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "mirabelle_texts_without_values", default=True
)


def refuse_text(node: Any = None) -> None:
    """Raise the error for a text of values, where a function can be cut."""
    if not texts_without_values.get():
        raise TraceError(because_of("The text of an array is asked for", node))


def shown(x: Any) -> str | None:
    """An array without values, and where it was made; None of one whose values are known.

    >>> import mirabelle as mb
    >>> def f(x):
    ...     print(x + 1, mb.ones(2))
    ...     return x
    >>> x = mb.compile(f, whole=True)(mb.HostArray([1.0, 2.0]))  # doctest: +ELLIPSIS
    <traced float64[2], made in ...> [1. 1.]
    """
    try:
        parts = states.parts_of(x, leaf_family(type(x)))
    except Exception:  # (whatever it consists of, it is shown)
        refuse_text()
        return f"<traced {type(x).__name__}>"
    node = next((p.node for p in parts if p.node.bound), None)
    if node is None:
        return None
    refuse_text(node)
    kind = "" if len(parts) == 1 and parts[0] is x else f"{type(x).__name__.partition('[')[0]} of "
    where = "" if node.line is None else f", made in {shown_line(node.line)}"
    return f"<traced {kind}{x.dtype.name}{list(x.shape)}{where}>"
