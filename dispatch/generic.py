"""Generic functions: the most specific method answers, and a table remembers which that is.

A generic function is an ordinary Python function, generated for its arity, whose body is
one look-up in a table keyed by the types of its arguments. A miss looks for the most specific
method that fits and stores the answer, so the steady state costs a dictionary look-up.

>>> from mirabelle.dispatch.generic import by_type, generic
>>> @generic
... def describe(x):
...     "Say what x is."
>>> @describe.method
... def _(x: int):
...     return "an integer"
>>> describe(3)
'an integer'

A *generated* method is called with the argument types, once for each new combination, and
returns the function that answers calls of these types (as Julia's generated functions do):

>>> @describe.generated
... def _(x: float):
...     name = x.__name__
...     return lambda value: f"a {name} of value {value}"
>>> describe(1.5)
'a float of value 1.5'

One *by type* is called with a type, and its methods are for types themselves: what a place does for its arrays.

>>> @by_type
... def smallest(kind):
...     "The smallest number of a kind."
>>> @smallest.method
... def _(kind: type[int]):
...     return kind(1)
>>> smallest(bool)
True
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import itertools
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mirabelle.dispatch import loading, native
from mirabelle.dispatch.annotations import (
    Classes,
    accepted,
    annotated,
    check_faithful,
    covers,
    positional,
    type_name,
)
from mirabelle.dispatch.errors import (
    AmbiguousMethodError,
    MissingMethodError,
    UnfaithfulAnnotationError,
)
from mirabelle.dispatch.forks import ForkLock
from mirabelle.dispatch.methods import Method, MethodTable
from mirabelle.dispatch.misuse import explain, no_array
from mirabelle.dispatch.naming import named, of_types
from mirabelle.dispatch.resolving import Ambiguous, Plum, most_specific
from mirabelle.dispatch.signatures import telling

if TYPE_CHECKING:
    from mirabelle.dispatch.verbs import Generic

# Held while methods and tables are changed, and while nothing else is waited for.
_changing = ForkLock()
_registry: list[GenericFunction] = []
_world = 0

# Overrides of the current context: {generic: ((types, implementation), ...)}, innermost last.
_overrides: contextvars.ContextVar[dict[GenericFunction, tuple[tuple[Any, Any], ...]] | None]
_overrides = contextvars.ContextVar("mirabelle_overrides", default=None)
# Which of the overrides of a generic is running, counted from the innermost.
_levels: contextvars.ContextVar[dict[GenericFunction, int]]
_levels = contextvars.ContextVar("mirabelle_override_levels", default={})  # noqa: B039 - never changed


def world() -> int:
    """The world age: an integer that grows whenever any method appears or disappears.

    Whatever cached the outcome of a dispatch (a compiled program, a graph) compares it.

    Returns
    -------
    int
        It means nothing by itself: compare it with one that was read before.

    Examples
    --------
    >>> import mirabelle as mb
    >>> before = mb.ext.world()
    >>> with mb.override(mb.sin, (mb.HostArray,), lambda x: x):
    ...     mb.ext.world() > before
    True
    """
    return _world


def _bump() -> None:
    global _world
    _world += 1
    native.forget()


class _Table(dict[Any, Callable[..., Any]]):
    """Argument types → implementation; a miss resolves and stores."""

    __slots__ = ("function", "operator")

    def __init__(self, function: GenericFunction, operator: bool) -> None:
        super().__init__()
        self.function = function
        self.operator = operator

    def __missing__(self, key: Any) -> Callable[..., Any]:
        signature = key if isinstance(key, tuple) else (key,)
        with loading.lock:
            before = _world
            implementation = self.function._implementation(signature, self.operator)
            # A method may appear meanwhile, in a generated method or another thread: then it is not kept.
            self[key] = implementation
            if _world != before:
                self.pop(key, None)
        return implementation


def _is_ours(implementation: Any) -> bool:
    return (getattr(implementation, "__module__", None) or "").startswith("mirabelle.")


def _not_implemented(*_: Any, **__: Any) -> Any:
    return NotImplemented


class GenericFunction:
    """The bookkeeping behind one generic function: its methods, tables and overrides."""

    def __init__(
        self, prototype: Callable[..., Any], arity: int, options: dict[str, Any], by_type: bool = False
    ) -> None:
        self.__name__ = prototype.__name__
        self.__doc__ = prototype.__doc__
        self.prototype = prototype
        self.arity = arity
        # Are the arguments that it dispatches on types, which are looked up themselves?
        self.by_type = by_type
        self.methods: list[Method] = []
        # The methods that plum knows, and it.
        self._plum: tuple[list[Method], Plum | None] = [], None
        self.active_overrides = 0
        self._users = -1, False
        # What answers a call with arguments that the prototype does not have, if the function is a wider one.
        self.further: Callable[..., Any] = self.refuse_further
        self.table = _Table(self, operator=False)
        self.operator_table = _Table(self, operator=True)
        self._options = options
        _registry.append(self)

    def register(
        self,
        implementation: Callable[..., Any],
        signature: tuple[Any, ...] | None = None,
        *,
        generated: bool = False,
    ) -> Callable[..., Any]:
        """Add a method for good. The signature comes from the annotations unless given."""
        checked = self._signature(implementation, signature)
        named(implementation, of_types(self.__name__, map(type_name, checked)))
        runs = implementation if generated else self._tolerant(implementation)
        method = Method(self, checked, runs, generated=generated)
        with _changing:
            self.methods = [m for m in self.methods if m.signature != method.signature] + [method]
            # (What comes with the first use of a package is for types that nobody called it with.)
            if not _is_ours(implementation) or self._answered(method.classes):
                self._forget()
        return implementation

    def unregister(self, signature: tuple[Any, ...]) -> None:
        """Take a method away again."""
        with _changing:
            self.methods = [m for m in self.methods if m.signature != tuple(signature)]
            self._forget()

    def _signature(self, f: Callable[..., Any], given: tuple[Any, ...] | None) -> tuple[Any, ...]:
        if given is None:
            names = positional(f)[: self.arity]
            given = annotated(f, names)
            if self.by_type:
                given = tuple([self._meant(name, t) for name, t in zip(names, given, strict=True)])
        else:
            given = tuple(given)
            names = [f"argument {i + 1}" for i in range(len(given))]
        if len(given) != self.arity:
            raise TypeError(
                f"{self.__name__}() dispatches on {self.arity} argument(s), but this method takes "
                f"{len(given)}. Its methods look like `def _({', '.join(self._parameter_names())}):`."
            )
        given = tuple(object if t is Any else type(None) if t is None else t for t in given)
        for annotation, name in zip(given, names, strict=True):
            check_faithful(self.__name__, annotation, name)
        return given

    def _meant(self, name: str, annotation: Any) -> Any:
        """The class of an annotation `type[Class]`."""
        if typing.get_origin(annotation) is type:
            return typing.get_args(annotation)[0]
        if annotation in (object, Any):
            return object
        raise UnfaithfulAnnotationError(
            f"{self.__name__}() is called with a type, not with an instance of one. Annotate with "
            f"`{name}: type[{type_name(annotation)}]`."
        )

    def types_of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a call with these arguments is looked up by."""
        return args[: self.arity] if self.by_type else tuple(map(type, args[: self.arity]))

    def _tolerant(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """`f`, called without the options it does not have, as long as they are at their defaults."""
        known = accepted(f) if self._options else None
        options = {} if known is None else {k: v for k, v in self._options.items() if k not in known}
        if not options:
            return f

        @functools.wraps(f)
        def without_options(*args: Any, **kwargs: Any) -> Any:
            for name, default in options.items():
                given = kwargs.pop(name, default)
                if given is not default and given != default:
                    raise TypeError(
                        f"This method of {self.__name__}() has no option {name!r} (it was given "
                        f"{given!r}). Add it to the method: `def _(..., {name}={default!r})`."
                    )
            return f(*args, **kwargs)

        return without_options

    def answer_further(self, implementation: Callable[..., Any]) -> None:
        """Have calls with arguments that the prototype does not have answered."""
        self.further = implementation

    def refuse_further(self, *args: Any, **options: Any) -> Any:
        """The error for arguments that the prototype does not have."""
        known = inspect.signature(self.prototype).parameters
        unknown = [f"{k}=" for k in options if k not in known] or [f"{len(args)} arguments by position"]
        raise TypeError(f"{self.__name__}() takes {', '.join(known)}; not {', '.join(unknown)}.")

    def _parameter_names(self) -> list[str]:
        return list(inspect.signature(self.prototype).parameters)[: self.arity]

    def _forget(self) -> None:
        """Every cached answer may be wrong now."""
        _bump()  # (first: who keeps an answer looks at it afterwards)
        self.table.clear()
        self.operator_table.clear()

    @property
    def has_methods_of_users(self) -> bool:
        """Did somebody override a method, or add one of their own?"""
        if self._users[0] != _world:
            self._users = _world, bool(self.active_overrides) or any(m.is_users for m in self.methods)
        return self._users[1]

    def _answered(self, classes: Classes) -> bool:
        """Was there a call that a method for these classes fits?"""
        keys = {*self.table.copy(), *self.operator_table.copy()}
        return any(covers(classes, key if isinstance(key, tuple) else (key,)) for key in keys)

    def resolve(self, signature: tuple[type, ...]) -> Method | None:
        """The method for these types, overrides aside; None where there is none."""
        loading.complete_types(signature)
        try:
            if any(m.is_users for m in self.methods):
                return self._by_plum(signature)
            return most_specific(self.methods, signature)
        except Ambiguous:
            raise AmbiguousMethodError(self._ambiguous(signature)) from None

    def _by_plum(self, signature: tuple[type, ...]) -> Method | None:
        """What plum says, which knows our methods as they are now."""
        known, plum = self._plum
        if plum is None or known != self.methods:
            known, plum = self._plum = [*self.methods], Plum(self.__name__, self.methods)
        return plum.most_specific(signature)

    def _implementation(self, signature: tuple[type, ...], operator: bool) -> Callable[..., Any]:
        if self.active_overrides:
            return self._guarded(signature, operator)
        return self._plain(signature, operator)

    def _plain(self, signature: tuple[type, ...], operator: bool) -> Callable[..., Any]:
        method = self.resolve(signature)
        other = _stood_for(signature)
        if other is not None:
            # What a user says of a type holds for what stands for it in a compiled program, too.
            theirs = self.resolve(other)
            if theirs is not None and theirs.is_users:
                method = theirs
        if method is None:
            if operator:
                return _not_implemented
            raise MissingMethodError(self._missing(signature))
        if method.generated:
            made: Callable[..., Any] = method.implementation(*signature)
            if made is NotImplemented:
                if operator:
                    return _not_implemented
                raise MissingMethodError(self._missing(signature))
            return made
        return method.implementation

    def _guarded(self, signature: tuple[type, ...], operator: bool) -> Callable[..., Any]:
        """While an override is active somewhere, each call asks its own context."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            method = self.overriding(signature)
            if method is None:
                return self._plain(signature, operator)(*args, **kwargs)
            return self.run_override(method, 0, args, kwargs)

        return guarded

    def run_override(
        self, method: Callable[..., Any], level: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the override that lies `level` below the innermost; `previous` goes on from there."""
        token = _levels.set({**_levels.get(), self: level})
        try:
            return method(*args, **kwargs)
        finally:
            _levels.reset(token)

    def overriding(self, signature: tuple[type, ...], skip: int = 0) -> Callable[..., Any] | None:
        """The innermost override of this context that covers `signature`."""
        active = _overrides.get()
        if not active:
            return None
        other = _stood_for(signature)
        found = [
            implementation
            for _, implementation in reversed(active.get(self, ()))
            if covers(implementation.classes, signature)
            or (other is not None and covers(implementation.classes, other))
        ]
        return found[skip] if len(found) > skip else None

    def _missing(self, signature: tuple[type, ...]) -> str:
        for t in signature:  # (a type that computes nowhere here says what to do instead)
            cure = getattr(t, "_instead_of", None)
            if cure is not None:
                return str(cure(self.__name__))
        shown = ", ".join(type_name(t) for t in signature)
        ranked = sorted(
            self.methods,
            key=lambda m: sum(not issubclass(s, c) for s, c in zip(signature, m.classes, strict=True)),
        )
        closest = "".join(f"\n    {m!r}" for m in ranked[:3])
        hint = self._hint(tuple(map(_open, signature)))
        body = f"{self.__name__}() has no method for ({shown})."
        if self.prototype.__module__.startswith("mirabelle."):  # (a user's functions are of anything)
            body += "".join(f" {cure}" for cure in dict.fromkeys(map(_cure, signature)) if cure)
        body += f"\n  Closest:{closest}" if closest else "\n  It has no methods at all."
        return body + f"\n  Define one like this:\n    @{self._spelled()}.method\n    def _({hint}): ..."

    def _spelled(self) -> str:
        """How a program names this function: `mb.sum`, `mb.ext.lower`, or a user's as it is."""
        package = sys.modules.get("mirabelle")
        for space in ("", "linalg", "fft", "ext", "compiling", "distributed", "autodiff", "meshdata", "random"):
            found = getattr(package, space, None) if space else package
            if getattr(getattr(found, self.__name__, None), "core", None) is self:
                return ".".join(["mb", space, self.__name__] if space else ["mb", self.__name__])
        return self.__name__

    def _hint(self, signature: tuple[type, ...]) -> str:
        """The parameters of a method for these types."""
        pattern = "{}: type[{}]" if self.by_type else "{}: {}"
        names = map(type_name, signature)
        return ", ".join(map(pattern.format, self._parameter_names(), names))

    def _ambiguous(self, signature: tuple[type, ...]) -> str:
        shown = ", ".join(type_name(t) for t in signature)
        fits = [m for m in self.methods if covers(m.classes, signature)]
        lines = "".join(f"\n    {m!r}" for m in fits)
        hint = self._hint(signature)
        return (
            f"{self.__name__}({shown}) fits several methods and none is the most specific:{lines}\n"
            f"  Settle it with a method for the overlap:\n"
            f"    @{self._spelled()}.method\n    def _({hint}): ..."
        )


def _cure(kind: type) -> str:
    """What to do with an argument of a type for which there is no method."""
    if hasattr(kind, "__array__") and kind.__module__.partition(".")[0] not in ("mirabelle", "numpy"):
        return f"Make an array of the {kind.__name__}: `mb.asarray(x)`."
    return no_array(kind)


def _stood_for(signature: tuple[type, ...]) -> tuple[type, ...] | None:
    """The types that those of a signature stand for in a compiled program; None where all are themselves."""
    found = tuple([_of_its_own(t) for t in signature])
    return None if all(a is b for a, b in zip(found, signature, strict=True)) else found


def _of_its_own(t: Any) -> Any:
    # (An array type's metaclass says it.)
    ask = getattr(type(t), "_stood_for", None)
    return t if ask is None else ask(t)


def _open(tp: type) -> type:
    """The unparametrised class a user would annotate with (HostArray for HostArray[f8, 2])."""
    return getattr(tp, "__generic_class__", tp)


def generic(
    prototype: Callable[..., Any],
    arity: int | None = None,
    *,
    wider: bool = False,
    optional: int = 0,
    operator: bool = False,
    by_type: bool = False,
) -> Generic:
    """Make a generic function of a prototype (its name, signature and docstring).

    The parameters before any keyword-only or defaulted one are dispatched on, or the first
    `arity` of them; the others are passed through as they are. The body of the prototype is
    never run.

    A `wider` function takes further arguments, too: what `function.further` is given answers calls that
    have any. The last `optional` of the dispatched parameters may be left away, and are None then. What an
    `operator` of Python runs has a second form, `function.operator`, which answers `NotImplemented` where there
    is no method. One `by_type` dispatches on its first argument, which is a type itself.

    Parameters
    ----------
    prototype : callable
        Its name, its parameters, its docstring; the body is never run.
    arity : int or None
        How many arguments decide; None is all that may be given by position.
    wider : bool, default False
        Whether it takes NumPy's further arguments.
    optional : int, default 0
        How many of the deciding arguments may be left out.
    operator : bool, default False
        Whether it is called for an operator, too.
    by_type : bool, default False
        Whether the first argument is a type, which itself decides.

    Returns
    -------
    callable
        The generic function, without methods yet: `@function.method` adds one for the annotated types.

    Examples
    --------
    >>> from mirabelle.dispatch.generic import generic
    >>> def describe(x): "Say what x is."
    >>> describe = generic(describe, wider=True)
    >>> describe.further(lambda x, loudly: f"{x!r}{'!' if loudly else ''}")
    >>> describe(3, loudly=True)
    '3!'
    """
    if not callable(prototype):
        raise TypeError(
            f"generic: {prototype!r} is no function. Write one without a body: `def area(shape): ...`."
        )
    signature = inspect.signature(telling(prototype))
    dispatched = [
        p.name
        for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ][: 1 if by_type else arity]
    rest = [p for p in signature.parameters.values() if p.name not in dispatched]
    options = {p.name: p.default for p in rest if p.default is not p.empty}
    core = GenericFunction(prototype, len(dispatched), options, by_type)
    name = prototype.__name__
    # (Editors read what a call gives in the source of ours that say it. The body of a user's is not run.)
    tells = signature.return_annotation is not signature.empty and prototype.__module__.startswith("mirabelle.")

    # The generated source: one look-up, one call. Those whose parameters are called the same share it.
    needed = len(dispatched) - optional
    head = [*dispatched[:needed], *[f"{d}=None" for d in dispatched[needed:]]]
    call = list(dispatched)
    defaults: dict[str, Any] = {}
    wider = wider and not any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in rest)
    positional = [p.name for p in rest if p.kind is not p.KEYWORD_ONLY and p.default is not p.empty]
    starred = False
    for p in rest:
        if p.kind is p.VAR_POSITIONAL:
            head.append(f"*{p.name}")
            call.append(f"*{p.name}")
            starred = True
            continue
        if p.kind is p.VAR_KEYWORD:
            head.append(f"**{p.name}")
            call.append(f"**{p.name}")
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            head.append("*_more" if wider else "*")
            starred = True
        if p.default is p.empty:
            head.append(p.name)
            call.append(p.name if p.kind is not p.KEYWORD_ONLY else f"{p.name}={p.name}")
            continue
        defaults[p.name] = p.default
        head.append(f"{p.name}=_defaults[{p.name!r}]")
        call.append(f"{p.name}={p.name}")
    key = dispatched[0] if by_type else ", ".join(f"type({d})" for d in dispatched)
    body = look_up = f"    return _table[{key}]({', '.join(call)})\n"
    # What operators run: they come with operands alone.
    narrow = f"({', '.join(['*' if h == '*_more' else h for h in head])}):\n{look_up}"
    if wider:
        head += ["**_options"] if starred else ["*_more", "**_options"]
        known = ", ".join(f"{p.name!r}: {p.name}" for p in rest if p.default is not p.empty)
        operands = "".join(f"{p.name}, " for p in signature.parameters.values() if p.name not in defaults)
        asked = f"_further(({operands}), {{{known}}}, _more, _options)"
        body = f"    if _more or _options:\n        return {asked}\n{body}"
    # (A `try` costs nothing where nothing is raised.)
    given = ", ".join([*(f"{p!r}: {p}" for p in signature.parameters), *(["**_options"] if wider else [])])
    if prototype.__module__.startswith("mirabelle."):
        body = f"    try:\n{textwrap.indent(body, '    ')}    except Exception as _e:\n"
        body += f"        _explain(_e, _name, {{{given}}}, _defaults)\n        raise\n"

    def further(
        operands: tuple[Any, ...], known: dict[str, Any], more: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """A call with arguments that the prototype does not have."""
        if more:
            operands += (*[known.pop(p) for p in positional], *more)
        given = {k: v for k, v in known.items() if v is not defaults[k]}
        return core.further(*operands, **given, **options)

    def build(table: _Table, source: str) -> Any:
        namespace: dict[str, Any] = {
            "_table": table,
            "_defaults": defaults,
            "_further": further,
            "_explain": explain,
            "_name": name,
        }
        exec(_compiled(source), namespace)
        f = namespace["_"]
        # (Those of types are steps on the way of others: no user asks for them, and no error names them.)
        file = f"<mirabelle {'by type' if by_type else 'generic'} {name}>"
        f.__code__ = f.__code__.replace(co_name=name, co_qualname=name, co_filename=file)
        f.__name__ = name
        f.__doc__ = prototype.__doc__
        f.__module__ = prototype.__module__
        f.__qualname__ = prototype.__qualname__
        f.__signature__ = signature
        if tells:
            f.__wrapped__ = prototype
        return f

    function = build(core.table, f"({', '.join(head)}):\n{body}")
    function.core = core
    if operator:
        table = core.operator_table
        function.operator = native.operator(table, build(table, narrow), len(dispatched))
    function.method = lambda f=None, signature=None: (
        core.register(f, signature) if f is not None else (lambda g: core.register(g, signature))
    )
    function.generated = lambda f=None, signature=None: (
        core.register(f, signature, generated=True)
        if f is not None
        else (lambda g: core.register(g, signature, generated=True))
    )
    function.further = core.answer_further
    function.previous = lambda *args, **kwargs: _previous(core, args, kwargs)
    return function


# A generic function that dispatches on its first argument, which is a type itself.
by_type = functools.partial(generic, by_type=True)


@functools.cache
def _compiled(source: str) -> types.CodeType:
    return compile(f"def _{source}", "<mirabelle generic>", "exec")


def _previous(core: GenericFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    signature = core.types_of(args)
    level = _levels.get().get(core, -1) + 1
    shadowed = core.overriding(signature, skip=level)
    if shadowed is None:
        return core._plain(signature, operator=False)(*args, **kwargs)
    return core.run_override(shadowed, level, args, kwargs)


def core_of(function: Any) -> GenericFunction:
    """The bookkeeping of a generic function, or a TypeError that says what was expected."""
    core = getattr(function, "core", None)
    if not isinstance(core, GenericFunction):
        raise TypeError(
            f"{function!r} is not a generic function of mirabelle. Generic functions are those "
            "that mb.methods lists, for instance mb.methods(mb.add)."
        )
    return core


@contextlib.contextmanager
def override(
    function: Callable[..., Any], signature: tuple[type, ...] | type, implementation: Callable[..., Any]
) -> Iterator[Method]:
    """Within the block, and only in this context, answer these types with `implementation`.

    An override wins over every method whose arguments it covers; of nested ones the innermost
    wins. Other threads and asyncio tasks do not see it. `function.previous(...)` calls what the
    override hides.

    Parameters
    ----------
    function : generic function
        What is overridden.
    signature : types
        Of the arguments that decide.
    implementation : callable
        What answers.

    Returns
    -------
    context manager
        It yields the method that answers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 4.0])
    >>> with mb.override(mb.sqrt, (mb.HostArray,), lambda a: mb.sqrt.previous(a) + 100):
    ...     print(mb.sqrt(x))
    [101. 102.]
    >>> print(mb.sqrt(x))
    [1. 2.]
    """
    core = core_of(function)
    if not isinstance(signature, tuple):
        signature = (signature,)
    checked = core._signature(implementation, signature)
    method = Method(core, checked, core._tolerant(implementation), scope="override")
    current = _overrides.get() or {}
    entry = (*current.get(core, ()), (checked, method))
    with _changing:
        core.active_overrides += 1
        _bump()
        if core.active_overrides == 1:
            core.table.clear()
            core.operator_table.clear()
    token = _overrides.set({**current, core: entry})
    try:
        yield method
    finally:
        _overrides.reset(token)
        with _changing:
            core.active_overrides -= 1
            _bump()
            if core.active_overrides == 0:
                core.table.clear()
                core.operator_table.clear()


def methods(function: Callable[..., Any]) -> MethodTable:
    """Every method of a generic function, active overrides first, with file and line.

    Parameters
    ----------
    function : generic function
        What is asked about.

    Returns
    -------
    list
        Of methods, which print one a line. Each can be called, and knows its `signature`, `file` and
        `line`; the list is empty where there are none.

    Examples
    --------
    >>> import mirabelle as mb
    >>> len(mb.methods(mb.add)) >= 1
    True
    """
    core = core_of(function)
    loading.everything()
    active = [m for _, m in reversed((_overrides.get() or {}).get(core, ()))]
    return MethodTable(active + core.methods)


def which(function: Callable[..., Any], *args: object) -> Method:
    """The method that a call with these arguments would run. It can be called.

    Parameters
    ----------
    function : generic function
        What would be called.
    *args : arguments
        What with; types of arrays will do.

    Returns
    -------
    method
        It knows its `function`, `signature`, `file` and `line`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.which(mb.sqrt, mb.HostArray([1.0])).function.__name__
    'sqrt'
    """
    core = core_of(function)
    signature = core.types_of(args)
    if len(signature) < core.arity:
        raise TypeError(
            f"{core.__name__}() dispatches on {core.arity} argument(s), and {len(signature)} came. "
            f"Call mb.which(mb.{core.__name__}, {', '.join(core._parameter_names())})."
        )
    method = core.overriding(signature)
    if method is None:
        method = core.resolve(signature)
    if method is None:
        raise MissingMethodError(core._missing(signature))
    assert isinstance(method, Method)
    return method


def all_generics() -> list[GenericFunction]:
    """Every generic function made so far, in order of creation."""
    return list(_registry)


def ambiguities(cores: list[GenericFunction] | None = None) -> list[tuple[Method, Method]]:
    """Pairs of methods that overlap without either, or a third, deciding the overlap.

    The suite demands that there are none, so that a user never meets one.
    """
    found = []
    for core in _registry if cores is None else cores:
        for a, b in itertools.combinations(core.methods, 2):
            for meet in _meets(a.classes, b.classes):
                try:
                    core.resolve(meet)
                except AmbiguousMethodError:
                    found.append((a, b))
                    break
    return found


def _meets(a: Classes, b: Classes) -> Iterator[tuple[Any, ...]]:
    """The largest signatures of single classes below both."""
    places = []
    for x, y in zip(a, b, strict=True):
        common = {s if issubclass(s, t) else t for s in x for t in y if issubclass(s, t) or issubclass(t, s)}
        places.append(sorted(common, key=type_name))
    yield from itertools.product(*places)
