"""Methods as a person sees them: what each takes, what it runs, where it was written."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mirabelle.dispatch.annotations import classes_of, type_name

if TYPE_CHECKING:
    from mirabelle.dispatch.generic import GenericFunction


class Method:
    """One method of a generic function: what it takes, what it runs, where it was written."""

    __slots__ = ("classes", "function", "generated", "implementation", "scope", "signature")

    def __init__(
        self,
        function: GenericFunction,
        signature: tuple[Any, ...],
        implementation: Callable[..., Any],
        *,
        generated: bool = False,
        scope: str = "global",
    ) -> None:
        self.function = function
        self.signature = signature
        self.classes = tuple(map(classes_of, signature))
        self.implementation = implementation
        self.generated = generated
        self.scope = scope

    @property
    def is_users(self) -> bool:
        """Was it given by a user, and not by this package?"""
        module = getattr(inspect.unwrap(self.implementation), "__module__", None) or ""
        return not module.startswith("mirabelle.")

    @property
    def file(self) -> str:
        code = getattr(inspect.unwrap(self.implementation), "__code__", None)
        return code.co_filename if code is not None else "<builtin>"

    @property
    def line(self) -> int:
        code = getattr(inspect.unwrap(self.implementation), "__code__", None)
        return code.co_firstlineno if code is not None else 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.generated:
            return self.implementation(*self.function.types_of(args))(*args, **kwargs)
        return self.implementation(*args, **kwargs)

    def __repr__(self) -> str:
        inner = ", ".join(type_name(t) for t in self.signature)
        note = "" if self.scope == "global" else f" [{self.scope}]"
        note += " [generated]" if self.generated else ""
        return f"{self.function.__name__}({inner}){note} at {self.file}:{self.line}"


class MethodTable(list[Method]):
    """The methods of one generic function; shows one a line, also in a notebook."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) if self else "no methods"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{html.escape(m.function.__name__)}("
            f"{html.escape(', '.join(type_name(t) for t in m.signature))})</code></td>"
            f"<td>{html.escape(m.scope)}</td>"
            f"<td><code>{html.escape(m.file)}:{m.line}</code></td></tr>"
            for m in self
        )
        return f"<table><tr><th>method</th><th>scope</th><th>where</th></tr>{rows}</table>"
