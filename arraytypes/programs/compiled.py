"""`mb.compile`: functions of arrays as programs.

>>> import mirabelle as mb
>>> @mb.compile
... def smoothed(u):
...     inner = (u[:-2] + u[1:-1] + u[2:]) / 3
...     return mb.sum(inner * inner)
>>> print(smoothed(mb.HostArray([0.0, 3.0, 3.0, 0.0])))
8.0
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs import dualcalls, partcalls
from mirabelle.arraytypes.programs.anysize import AnySize, PerSize
from mirabelle.arraytypes.programs.capture import _depth, capturing
from mirabelle.arraytypes.programs.effects import may_be_cut
from mirabelle.arraytypes.programs.errors import (
    HAS_NO_SOURCE,
    DifferentPrograms,
    PartsAsked,
    TraceError,
    has_no_source,
)
from mirabelle.arraytypes.programs.outsidevalues import (
    OutsideValues,
    ReboundOutside,
    changes_outside,
    rebinds,
    rebound_outside,
)
from mirabelle.arraytypes.programs.passes import Pass, chosen_passes
from mirabelle.arraytypes.programs.pieces import InPieces, does_something, family_of
from mirabelle.arraytypes.programs.program import Probe, Program, Resized, as_it_is
from mirabelle.arraytypes.programs.rewritten import rewritten
from mirabelle.arraytypes.programs.schedules import Schedule, ScheduleError
from mirabelle.arraytypes.programs.showing import texts_without_values
from mirabelle.arraytypes.programs.signature import (
    Arguments,
    Static,
    has_numpy,
    mapped,
    plain_key,
    what_changes,
)
from mirabelle.arraytypes.programs.stillcompiling import StillCompiling, going_on_without
from mirabelle.arraytypes.usercode.rewriting import Source
from mirabelle.dispatch import counters, generic, verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.programs.explaining import ProgramExplanation
    from mirabelle.arraytypes.programs.pieces import InPiecesExplained
    from mirabelle.arraytypes.programs.profiling import Profile

# After so many programs of one function for different numbers it is said what to do.
MANY_PROGRAMS = 32
# What a function finds outside of itself may change so often: then the statements that read it are cut.
CHANGES = 2


class Compiled:
    """A function of arrays that is compiled for each combination of types and shapes it is called with.

    >>> import mirabelle as mb
    >>> double = mb.compile(lambda x: x * 2)
    >>> isinstance(double, mb.compiling.Compiled)
    True
    >>> print(double(mb.HostArray([1.0])))
    [2.]
    """

    def __init__(
        self,
        f: Callable[..., Any],
        static: Iterable[str] = (),
        passes: str | Iterable[str | Callable[..., Any]] | None = None,
        assume_finite: bool = False,
        whole: bool = False,
        schedule: Schedule | None = None,
        sizes: str = "each",
    ) -> None:
        if any(is_it(f) for is_it in _IN_PIECES):
            raise TypeError(
                "mb.compile takes a function that returns when it is called, and "
                f"{getattr(f, '__name__', f)!r} is a generator or a coroutine, which goes on afterwards. "
                "Compile the functions that it calls."
            )
        functools.update_wrapper(self, f)
        self.function = f
        self.static = frozenset((static,) if isinstance(static, str) else static)
        self.passes = chosen_passes(passes, assume_finite)
        self._passes, self._assume_finite = passes, assume_finite
        if schedule is not None and not isinstance(schedule, Schedule):
            raise TypeError(
                f"mb.compile(f, schedule=...) takes a mb.compiling.Schedule, not {schedule!r}. What is in a "
                'file is loaded first: `mb.compiling.Schedule.load("waves.schedule")`.'
            )
        if sizes not in ("each", "any"):
            raise ValueError(
                f"sizes says what a program is for, 'each' combination of sizes or 'any', and was {sizes!r}: "
                '`mb.compile(f, sizes="any")`.'
            )
        self.sizes = sizes
        # What makes programs for other sizes of those that were captured.
        self._any: AnySize | None = AnySize(self) if sizes == "any" else None
        # What is decided about its programs.
        self.schedule = Schedule() if schedule is None else schedule
        # Must it be one program? Else what cannot be captured cuts it into pieces (see pieces.py).
        self.whole = whole or bool(self.schedule)
        self.pieces: InPieces | None = None
        self._cut = False
        # May texts say that arrays have no values yet?
        self.shows_texts = self.whole
        # Programs by the key of what they are called with.
        self.programs: dict[Any, Program] = {}
        # The program of the last call, if its arguments were arrays alone.
        self._last: Program | None = None
        self._world = generic._world
        # What the function found outside of itself, and how often that changed; what it binds anew there.
        self._outside: OutsideValues | None = None
        self._changes = 0
        # The same of objects that it was called with (`self` of a method), by which these are.
        self._given: dict[tuple[int, ...], tuple[list[Any], OutsideValues | None]] = {}
        self._rebinds: str | None = None
        self._lock = threading.RLock()
        self._warned = False
        # What is waited for, by the key of the program that there will be.
        self._still_compiling: dict[Any, StillCompiling] = {}
        # The same for dual numbers, as a function of their parts.
        self.of_duals: Compiled | None = None
        # The same for divided arrays, as a function of this process's parts; does it ask for these?
        self.of_parts: Compiled | None = None
        self._asks_for_parts = False
        parameters = _parameters(f)
        # Those that are given by their places, as the caller sees them: a bound method has no `self`.
        self._names = [name for name, p in parameters.items() if p.kind in _BY_PLACE]
        unknown = self.static - set(parameters)
        if unknown:
            raise TypeError(
                f"{getattr(f, '__name__', f)!r} has no parameter {sorted(unknown)[0]!r} that could be "
                f"static. Its parameters are {', '.join(parameters) or 'none'}."
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and self._is_as_it_was() and not _depth.get():
            # The usual case: nothing but arrays, and most often the same kind of arrays as before.
            program = self._last
            if program is None or not program.takes(args):
                try:
                    key: Any = tuple([(type(x), x._node.shape) for x in args])
                    program = self._last = self.programs.get(key)
                except (AttributeError, TypeError):
                    # Not arrays alone: with numbers, or a namespace.
                    program, arrays = self.known(args)
                    if program is not None:
                        return program.run(arrays)
            if program is not None and (
                program.distinct == 1 or program.distinct == len(args) == len({id(x) for x in args})
            ):
                return program.run(args)
        return self._called(args, kwargs)

    def known(self, args: Sequence[Any]) -> tuple[Program | None, list[Any]]:
        """The program that there is for arrays, numbers and modules, and these arrays; None for any others."""
        key, arrays = plain_key(args)
        program = self.programs.get(key) if self._is_as_it_was() else None
        if program is not None and program.distinct == len(arrays) == len({id(x) for x in arrays}):
            return program, arrays
        return None, []

    def _is_as_it_was(self, given: Sequence[Any] = ()) -> bool:
        """Are methods, and what the function finds outside of itself and in objects that it is given, those
        that programs were made with?"""
        if self._world != generic._world or not (self._outside is None or self._outside.are_the_same()):
            return False
        _, found = self._given.get(_which(given), (None, None)) if given else (None, None)
        return found is None or found.are_the_same()

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if capturing():
            # A part of the program that is being captured.
            return rewritten(self.function)(*args, **kwargs)
        if dualcalls.among((args, kwargs)):
            return dualcalls.called(self, args, kwargs)
        call = self._sorted(args, kwargs)
        if self._asks_for_parts:
            return partcalls.called(self, call.args, call.kwargs)
        if self._cut and call.key not in self.programs:
            return self._in_pieces(call)
        still = self._still_compiling.pop(call.key, None)
        if still is not None and still.is_coming():
            self._still_compiling[call.key] = still
            return self._as_it_is(call)
        try:
            with going_on_without():
                program = self._program_of(call)
        except StillCompiling as e:
            self._still_compiling[call.key] = e.with_traceback(None)
            return self._as_it_is(call)
        except ReboundOutside:
            if self.whole:
                raise
            return self._as_it_is(call)
        except Exception as e:
            if isinstance(e, PartsAsked) and partcalls.knows(self, call.args, call.kwargs):
                return partcalls.called(self, call.args, call.kwargs)
            if not self._may_be_cut(e):
                if isinstance(e, TraceError) and not self.whole and has_no_source(self.function):
                    e.args = (f"{e} {HAS_NO_SOURCE}",)
                raise
        else:
            return program.run(call.found.arrays, call.found.composed)
        result = self._in_pieces(call)
        self._cut = True
        return result

    def _may_be_cut(self, error: Exception) -> bool:
        """Capturing has failed: can the function run in pieces?"""
        if isinstance(error, (DifferentPrograms, ScheduleError)) or not self._has_pieces():
            return False
        assert self.pieces is not None
        return self.pieces.cut(error) or isinstance(error, TraceError) or self.pieces.knows(error)

    def _has_pieces(self) -> bool:
        """Can the function be cut into pieces, if it has to be?"""
        if self.pieces is None and not self.whole:
            source = Source.of(_plain(self.function)[0])
            self.pieces = None if source is None else InPieces(source, self._of_piece)
        return self.pieces is not None

    def _of_piece(self, f: Callable[..., Any]) -> Compiled:
        piece = Compiled(
            f, passes=self._passes, assume_finite=self._assume_finite, whole=True, sizes=self.sizes
        )
        piece.shows_texts = False
        return piece

    def _as_it_is(self, call: _Call) -> Any:
        """Call the function while there is no program for it, because code for it is being compiled."""
        return as_it_is(self.written, *call.values())

    def _in_pieces(self, call: _Call) -> Any:
        assert self.pieces is not None
        args, kwargs = call.values()
        family = family_of((args, kwargs))
        _, first, named = _plain(self.function)
        return self.pieces(family, [*first, *args], {**named, **kwargs})

    def _program(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], shown: bool = False
    ) -> tuple[Program, Arguments]:
        """The program for some arguments, and these sorted."""
        call = self._sorted(args, kwargs)
        return self._program_of(call, shown), call.found

    def _sorted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        """The arrays among some arguments, and the key of the program for them."""
        if self.static:
            args, kwargs = self._with_static(args, kwargs)
        if has_numpy((args, kwargs)):
            args, kwargs = mapped((args, kwargs), functools.partial(_as_ours, {}))
        found = Arguments((args, kwargs))
        place = None
        if len({type(x).family for x in found.arrays}) > 1:
            # Arrays of no dimensions, numbers as it were, go where the others are.
            place = next((type(x).family for x in found.arrays if x.ndim), type(found.arrays[0]).family)
            args, kwargs = mapped((args, kwargs), functools.partial(_placed_number, place))
            given, found = found.arrays, Arguments((args, kwargs))
        else:
            given = found.arrays
        key, arrays = (None, []) if kwargs or self.static else plain_key(args)
        if key is None or len(found.arrays) != len(arrays):
            key = found.key
        return _Call(args, kwargs, found, key, given, place)

    def _program_of(self, call: _Call, shown: bool = False) -> Program:
        """The program for a call; with `shown`, one that has all there is to show of it."""
        args, kwargs, found, key, given = call.args, call.kwargs, call.found, call.key, call.given
        with self._lock:
            objects = found.objects()
            if not self._is_as_it_was(objects):
                # What was captured may be another program now.
                self._changes += self._world == generic._world
                if self._changes == MANY_PROGRAMS:
                    warnings.warn(str(changes_outside(self.function)), RuntimeWarning, stacklevel=4)
                self._outside = None
                self._given.clear()
                self.programs.clear()
                self._last = None
                self._world = generic._world
                self._any = None if self._any is None else AnySize(self)
            program = self.programs.get(key)
            if program is None and self._any is not None and not shown:
                program = self._any.found(call)
                if program is not None:
                    self.programs[key] = program
            if program is None or (shown and type(program) is Resized):
                if self._changes > CHANGES and not shown and self._has_pieces():
                    raise changes_outside(self.function)
                if self._rebinds is None:
                    self._rebinds = rebound_outside(self.function)
                if self._rebinds:
                    raise rebinds(self.function, self._rebinds)
                before, held = OutsideValues(self.function), OutsideValues(self.function, objects)
                token = texts_without_values.set(self.shows_texts)
                cut = may_be_cut.set(not self.shows_texts and (self.whole or not has_no_source(self.function)))
                try:
                    program = Program(self, found, args, kwargs)
                finally:
                    may_be_cut.reset(cut)
                    texts_without_values.reset(token)
                self._outside = before.that_stayed(OutsideValues(self.function))
                if objects:
                    seen = held.that_stayed(OutsideValues(self.function, objects))
                    self._given[_which(objects)] = objects, seen
                self.programs[key] = program
                if counters.active:
                    counters.captured(*what_changes(list(self.programs)[-2:]))
                if self._any is not None:
                    self._any.learn(call, program)
                if found.numbers and len(self.programs) > MANY_PROGRAMS and not self._warned:
                    self._warned = True
                    warnings.warn(self._many_programs(), RuntimeWarning, stacklevel=4)
        for i in program.captured.written if given is not found.arrays else ():
            if given[i] is not found.arrays[i]:
                raise TypeError(
                    f"{program.name}() writes to its argument {i}, which is on {given[i].place}, and other "
                    f"arguments are on {found.arrays[i].place}. Bring it there: "
                    f"`mb.adapt(mb.{call.place.__name__}, x)`."
                )
        return program

    def _many_programs(self) -> str:
        """How often the function was compiled, what changed from call to call, and the cure for that."""
        shapes, numbers = what_changes(self.programs)
        said = [f"{self.__name__}() has been compiled {len(self.programs)} times"]  # type: ignore[attr-defined]
        if shapes and self.sizes == "each":
            said.append(
                "the shapes of its arrays change, and each combination of shapes is a program. One for all: "
                '`@mb.compile(sizes="any")`'
            )
        elif shapes and self.per_size:
            said.append(f'the shapes of its arrays change, and `sizes="any"` is not obeyed: {self.per_size[0]}')
        if numbers:
            said.append(
                "Python's numbers are constants of a program. What changes from call to call can be an array "
                "of no dimensions: `f(x, mb.asarray(dt))`"
            )
        return (
            ": ".join((said[0], ". ".join(said[1:]) or "what it is called with is another object each time"))
            + "."
        )

    def _with_static(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments with those marked that go by their values."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        for name in self.static:
            bound.arguments[name] = Static(bound.arguments[name])
        return bound.args, bound.kwargs

    def _for_any(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a library for all sizes is made of (see sizevariants.py); None where there can be none."""
        from mirabelle.arraytypes.programs.sizevariants import Shapes

        call = self._sorted(args, kwargs)
        try:
            return self, Shapes(
                type(call.found.arrays[0]).family if call.found.arrays else None, call.args, call.kwargs
            )
        except PerSize:
            return None

    def _probe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """The function captured and planned for other arguments, not to be run."""
        return Probe(self, Arguments((args, kwargs)), args, kwargs)

    @property
    def per_size(self) -> list[str]:
        """Why programs are made for each combination of sizes although `sizes="any"`: empty if they are not.

        >>> import mirabelle as mb
        >>> f = mb.compile(lambda x: x[1:] - x[:-1], sizes="any")
        >>> for n in (10, 20, 30):
        ...     y = f(mb.ones(n))
        >>> f.per_size
        []
        """
        found = [] if self._any is None else self._any.reasons()
        if self.pieces is not None:
            for piece in self.pieces.pieces:
                if isinstance(piece.compiled, Compiled):
                    found += [reason for reason in piece.compiled.per_size if reason not in found]
        return found

    @property
    def written(self) -> Callable[..., Any]:
        """The function as it is captured (see rewritten.py)."""
        if not self.whole and does_something(self.function):
            raise TraceError(
                f"{getattr(self.function, '__name__', 'The function')}() calls what does something, or gives "
                "another value, at each call: it cannot be one program."
            )
        return rewritten(self.function)  # type: ignore[no-any-return]

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program for these arguments, compiled but not run.

        >>> import mirabelle as mb
        >>> f = mb.compile(lambda x: x * 2 + 1)
        >>> f.program(mb.HostArray([1.0])).plan.steps[0].name
        'multiply_add'
        """
        if not self._asks_for_parts:
            try:
                program = self._program(args, kwargs, shown=True)[0]
                if self._any is not None:
                    program.any_size = self._for_any(args, kwargs)
                return program
            except PartsAsked:
                pass
        return partcalls.program(self, args, kwargs)  # type: ignore[no-any-return]

    def explain(
        self, *args: Any, source: bool = False, **kwargs: Any
    ) -> ProgramExplanation | InPiecesExplained:
        """What the program for these arguments does, step by step (see `Program.explain`).

        >>> import mirabelle as mb
        >>> f = mb.compile(lambda x: x * 2 + 1)
        >>> f.explain(mb.zeros(4)).facts["steps"]
        '1: 1 kernel'
        """
        if self._asks_for_parts:
            return partcalls.program(self, args, kwargs).explain(source=source)
        if self._cut and self.pieces is not None and self._sorted(args, kwargs).key not in self.programs:
            return self.pieces.explain()
        call = self._sorted(args, kwargs)
        explained = self._program_of(call, shown=True).explain(source=source)
        if self._any is not None:
            explained.facts["sizes"] = self._any.said(call)
        return explained

    def profile(self, *args: Any, times: int = 10, within: bool = False, **kwargs: Any) -> Profile:
        """Where the program for these arguments spends its time (see `Program.profile`).

        >>> import mirabelle as mb
        >>> f = mb.compile(lambda x: x * 2 + 1)
        >>> len(f.profile(mb.zeros(4), times=1).lines)
        1
        """
        return self.program(*args, **kwargs).profile(*args, times=times, within=within, **kwargs)

    def __reduce__(self) -> Any:
        # By its name where it stands in a module, as functions do; else by the name of the function.
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):  # type: ignore[attr-defined]
            found = getattr(found, name, None)
        if found is self:
            return self.__qualname__  # type: ignore[attr-defined]
        passes = None if self._passes is None else tuple(self._passes)
        how = passes, self._assume_finite, self.whole, self.schedule, self.sizes
        return _again, (self.function, tuple(sorted(self.static)), *how)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"<compiled {name}: {len(self.programs)} program{'s' * (len(self.programs) != 1)}>"


def _plain(f: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function behind a method or a partial one, and what that gives it first."""
    if isinstance(f, types.MethodType):
        return f.__func__, (f.__self__,), {}
    if isinstance(f, functools.partial):
        inner, first, named = _plain(f.func)
        return inner, (*first, *f.args), {**named, **f.keywords}
    return f, (), {}


def _which(objects: Sequence[Any]) -> tuple[int, ...]:
    """Which objects they are. (A function is the same however often its `def` is run.)"""
    return tuple([id(getattr(x, "__code__", x)) for x in objects])


def _placed_number(family: Any, x: Any) -> Any:
    if isinstance(x, DenseArray) and not x.ndim and type(x).family.home.rank < 2:
        return verbs.adapt(family, x)
    return x


def _again(
    f: Any,
    static: Any,
    passes: Any,
    assume_finite: bool,
    whole: bool = False,
    schedule: Any = None,
    sizes: str = "each",
) -> Compiled:
    return Compiled(f, static, passes, assume_finite, whole, schedule, sizes)


# Functions that have not done what they do when they return.
_IN_PIECES = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(f: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(f).parameters
    except (TypeError, ValueError):
        return {}


def _as_ours(shared: dict[int, Any], x: Any) -> Any:
    if isinstance(x, AbstractArray):
        return x
    made = shared.get(id(x))
    if made is None:
        made = shared[id(x)] = asarray(x)
    return made


class _Call:
    """What a function is called with: the arguments, the arrays in them, the key of the program."""

    __slots__ = ("args", "found", "given", "key", "kwargs", "place")

    def __init__(
        self, args: Any, kwargs: Any, found: Arguments, key: Any, given: list[Any], place: Any
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.found = found
        self.key = key
        # The arrays before some were brought to the `place` of the others.
        self.given = given
        self.place = place

    def values(self) -> tuple[list[Any], dict[str, Any]]:
        """What the function is to be called with."""
        args = [x.value if type(x) is Static else x for x in self.args]
        return args, {k: x.value if type(x) is Static else x for k, x in self.kwargs.items()}


@overload
def compile(
    f: Callable[..., Any],
    /,
    *,
    static: Iterable[str] = (),
    passes: str | Iterable[str | Pass] | None = None,
    assume_finite: bool = False,
    whole: bool = False,
    schedule: Schedule | None = None,
    sizes: str = "each",
) -> Compiled: ...
@overload
def compile(
    f: None = None,
    /,
    *,
    static: Iterable[str] = (),
    passes: str | Iterable[str | Pass] | None = None,
    assume_finite: bool = False,
    whole: bool = False,
    schedule: Schedule | None = None,
    sizes: str = "each",
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    f: Callable[..., Any] | None = None,
    /,
    *,
    static: Iterable[str] = (),
    passes: str | Iterable[str | Pass] | None = None,
    assume_finite: bool = False,
    whole: bool = False,
    schedule: Schedule | None = None,
    sizes: str = "each",
) -> Compiled | Callable[[Callable[..., Any]], Compiled]:
    """Compile a function of arrays: all it does becomes one plan, made once for each combination of types and
    shapes.

    The function is called once with arrays that record what is done to them. It may use everything there is,
    write to its arguments, call other functions, loop. Where it needs a value (a branch on `mb.sum(x) > 0`,
    `float(x)`, `print`) it is cut: that statement runs as Python does it, and what stands between two cuts is a
    program. With `whole=True` that is an error which names the line; so it is without it, where there is no
    source to cut: of functions that are typed at a prompt, piped into `python -`, or made by `exec`. Put them
    in a file.

    Python's numbers are constants of a program, whether they are arguments or found elsewhere: another number
    is another program. So are arrays that are no arguments (globals, what it closes over, attributes of
    objects). They are looked at before each call, and where one is another by now, or was written to, the
    program is made anew; after some such changes the statements that read them are cut. Not seen are writes
    into NumPy arrays of more than 32 kB that are no arguments, and what is more than three steps away
    (`settings.a.b.c.d`). A function that binds variables outside of it anew runs as Python does it.

    `x[mask]` can be computed with, reduced, and written back with the same mask, `x[x > 0] = x[x > 0] ** 2`;
    how many elements it has is not known, so that it cannot be returned, sorted or indexed.

    A program computes what the function returns and writes to, and nothing else. What nobody needs is not
    computed, and so does not fail: neither a library's routine, nor the bounds of an index array whose elements
    are used for nothing. What is needed is checked before any argument is written to.

    `static` names parameters that are no arrays though they look like some. `passes` says how the graph is
    transformed (see `mb.compiling.PASSES`). With `assume_finite` algebra may forget infinities and NaN: x - x
    is 0.

    Parameters
    ----------
    f : callable
        The function; without it, a decorator is returned.
    static : iterable of str
        Names of parameters that are no arrays.
    passes : list of callables or None
        How the graph is transformed; None is `mb.compiling.PASSES`.
    assume_finite : bool, default False
        Whether algebra may forget infinities and NaN.
    whole : bool, default False
        Whether it is an error if the function cannot be one program. Otherwise it is cut there, into pieces.
    schedule : mb.compiling.Schedule or None
        What you decide about the plan: what is stored, what is one kernel, tiles, order. The function is one
        program then, and a decision that cannot be carried out is an error.
    sizes : "each" or "any"
        Whether a program is made for each combination of sizes, or one for all. With "any" the function is
        captured for a few sizes, and other sizes take neither capturing nor planning; where that cannot be
        done, programs are made for each, and `f.per_size` says why.

    Returns
    -------
    mb.compiling.Compiled
        It is called as `f` is and returns the same; `f.program(...)` and `f.explain(...)` tell of a
        program. Without `f`, a decorator.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.compile
    ... def step(u, v):
    ...     u[1:-1] = v[1:-1] + 0.5 * (v[2:] - 2 * v[1:-1] + v[:-2])
    >>> u, v = mb.zeros(4), mb.HostArray([0.0, 1.0, 0.0, 0.0])
    >>> step(u, v)
    >>> print(u)
    [0.  0.  0.5 0. ]
    """
    if f is None:
        return functools.partial(
            compile,
            static=static,
            passes=passes,
            assume_finite=assume_finite,
            whole=whole,
            schedule=schedule,
            sizes=sizes,
        )
    if not callable(f):
        raise TypeError(f"mb.compile takes a function of arrays, not {f!r}: `@mb.compile` above a `def`.")
    return Compiled(f, static, passes, assume_finite, whole, schedule, sizes)


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Program:
    """The program of a function for arrays like these, ahead of time. Their contents are not looked at.

    Parameters
    ----------
    f : callable
        The function.
    *args : arrays
        Like those it will be called with.
    **kwargs : keyword arguments
        The same by name.

    Returns
    -------
    mb.compiling.Program
        It can be saved (`save`) and looked at (`explain()`, `graph`, `plan`), but is not called itself.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.compiling.trace(lambda x, y: x @ y, mb.zeros((200, 30)), mb.zeros((30, 40))).plan.steps[0].name
    'matmul'
    """
    owner = f if isinstance(f, Compiled) else Compiled(f)
    return owner.program(*args, **kwargs)
