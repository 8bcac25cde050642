"""Loops over elements in functions that are compiled or captured: found in the source, compiled by `mb.jit`.

Such a loop becomes a call of an `ElementLoop`. Where `mb.jit` takes its arrays and computes what NumPy does,
it runs there (in a program it is one node); else its statements run as they are.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import runs_kernels
from mirabelle.arraytypes.lending import READ, family_in_memory
from mirabelle.arraytypes.programs.capture import capturing
from mirabelle.arraytypes.programs.errors import TraceError, shown_line
from mirabelle.arraytypes.programs.kernelloops import KernelLoop, names_written
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.usercode.elementloops import (
    Bounds,
    may_divide_by_zero,
    may_overflow,
    operations,
    same_arithmetic,
)
from mirabelle.arraytypes.usercode.parallelloops import taken_whole
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import PlaceError, UserFunctionError

# A loop of fewer turns stays as it is, and one whose turns work on parts of more elements than these.
FEWEST_TURNS, LARGEST_PART, MOST_AXES = 16, 1 << 15, 2
# Of loops over parts alone, those of fewer operations are unrolled in programs: where parts are matrices, whose
# products may become one, and else.
MOST_WITH_PRODUCTS, MOST_OPERATIONS = 15_000, 3000
# How many combinations of sizes are remembered.
_MOST = 1024
# Numbers of these kinds are computed by compiled loops as by NumPy. (Integers of 32 bits, but for what does not
# fit: there NumPy warns, and compiled loops go on in 64 bits.)
_WIDE = {"float64", "complex128", "int64", "float32", "complex64", "int32"}


class LoopApart(TraceError):
    """A loop over elements that is compiled, and stands between two programs."""


class ElementLoop:
    """A loop, as a function of the variables it reads, which returns those it assigns."""

    def __init__(
        self,
        loop: ast.stmt,
        parameters: list[str],
        python: Any,
        captured: Any,
        compiled: Callable[[], types.FunctionType],
        numpys: Callable[[Any], types.FunctionType],
        kernels: KernelLoop,
    ) -> None:
        self.loop = loop
        self.line = python.__code__.co_filename, loop.lineno
        self.parameters = parameters
        # What runs it as it is, and what does so while a function is captured.
        self._python, self._captured = python, captured
        self._make = compiled
        self._make_numpys = numpys
        self.kernels = kernels
        self._subscripted = {
            n.value.id for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
        }
        self._compiled: dict[bool, Any] = {}
        # By what the loop was called with: the function that runs it.
        self._known: dict[Any, Any] = {}
        # Why it is not compiled, by the types of what it was called with.
        self.refused: dict[Any, str] = {}

    def __call__(self, *values: Any) -> Any:
        key = tuple([_key(x) for x in values])
        run = self._known.get(key)
        if run is None:
            run = self._chosen(values)
            if len(self._known) < _MOST:
                self._known[key] = run
        return run(values)

    # What runs it

    def _chosen(self, values: Sequence[Any]) -> Any:
        kinds = tuple([_type(x) for x in values])
        if kinds in self.refused:
            return self._as_it_is
        why = self._unfit(values)
        if why:
            self.refused[kinds] = why
            return self._as_it_is
        bounds = Bounds(self.loop, dict(zip(self.parameters, values, strict=True)))
        if may_divide_by_zero(self.loop, dict(zip(self.parameters, values, strict=True)), bounds):
            return self._as_it_is
        if bounds.turns < FEWEST_TURNS or bounds.largest > LARGEST_PART or bounds.deepest > MOST_AXES:
            return self._as_it_is
        if capturing() and not bounds.elements:
            # (Passes know more of parts than a compiler of loops does, as far as it can be unrolled.)
            most = MOST_WITH_PRODUCTS if bounds.deepest == 2 else MOST_OPERATIONS
            if bounds.turns * operations(self.loop) <= most:
                return self._as_it_is
        checked = not bounds.inside
        away = [x for x in values if isinstance(x, AbstractArray) and not _is_here(x)]
        if not away:
            return lambda given: self._run(checked, kinds, given)
        arrays = {n: x.ndim for n, x in zip(self.parameters, values, strict=True) if _is_array(x)}
        if taken_whole(self.loop, arrays):
            return self._as_it_is  # (Its work is that of arrays, and they are there.)
        family = self._of_kernels(values)
        plan, why = (None, "") if family is None else self.kernels.chosen(values)
        if capturing():
            raise self._apart(away[0], plan is not None, why)
        if plan is None:
            return lambda given: self._brought(checked, kinds, given)
        return lambda given: self._there(plan, family, checked, kinds, given)

    def _of_kernels(self, values: Sequence[Any]) -> Any:
        """The type of the arrays, if kernels run where they are and each is a memory of its own; else None."""
        arrays = [x for x in values if isinstance(x, (AbstractArray, np.ndarray)) and x.ndim]
        ours = [x for x in arrays if isinstance(x, AbstractArray)]
        families = {_in_memory(x) for x in ours if not _is_here(x)}
        if len(families) != 1 or len({id(root_of(x)) for x in ours}) < len(ours):
            return None
        if len(ours) < len(arrays) and names_written(self.loop) & {
            n for n, x in zip(self.parameters, values, strict=True) if isinstance(x, np.ndarray) or _is_here(x)
        }:
            return None
        (family,) = families
        return family if runs_kernels(family) else None

    def _apart(self, x: Any, there: bool, why: str) -> LoopApart:
        line, why, place = shown_line(self.line), f" ({why})" if why else "", _in_memory(x).home
        if there:
            how = "as kernels of its own, between two programs"
            return LoopApart(f"The loop over elements in {line} runs on {place} {how}{why}.")
        return LoopApart(
            f"The loop over elements in {line} runs on the host, and {place} is another place: what it works "
            f"on is brought here and back{why}. Array operations, or an index-space kernel (`@mb.kernel`), "
            "would run there."
        )

    def _there(self, plan: Any, family: Any, checked: bool, kinds: Any, values: Sequence[Any]) -> Any:
        """Run as kernels where the arrays are."""
        if plan.why:
            return self._brought(checked, kinds, values)
        try:
            return self.kernels.run(plan, values, family)
        except Exception as e:
            if not isinstance(e, _REFUSALS) and not _of_the_compiler(e):
                raise
            plan.why = str(e) or type(e).__name__
            return self._brought(checked, kinds, values)

    def _as_it_is(self, values: Sequence[Any]) -> Any:
        return (self._captured if capturing() else self._python)(*values)

    def _unfit(self, values: Sequence[Any]) -> str:
        """Why compiled code would not do what the statements do; empty if it would."""
        narrow = set()
        for name, x in zip(self.parameters, values, strict=True):
            if isinstance(x, (AbstractArray, np.ndarray)):
                if isinstance(x, AbstractArray) and family_in_memory(type(x)) is None:
                    return f"{name} is a {type(x).__name__}"
                if not x.ndim and name in self._subscripted:
                    return f"{name} has no dimensions"
                if x.dtype.name not in _WIDE:
                    if x.dtype.kind not in "biu":
                        return f"{name} is of {x.dtype.name}"
                    narrow.add(name)
            elif isinstance(x, np.generic):
                if x.dtype.name not in _WIDE:
                    narrow.add(name)
            elif type(x) is int:
                if not -(1 << 62) < x < 1 << 62:
                    return f"{name} is a very large integer"
            elif type(x) is tuple:
                if not all(type(y) in (int, float, bool, complex) for y in x):
                    return f"{name} is a tuple of other things than numbers"
            elif type(x) not in (float, bool, complex, type(None)):
                return f"{name} is a {type(x).__name__}"
        if not same_arithmetic(self.loop, narrow):
            return f"{min(narrow)} is of narrow integers or truth values, which compiled code computes wider"
        if may_overflow(self.loop, dict(zip(self.parameters, values, strict=True))):
            return "an integer of Python's grows, and compiled ones end at 64 bits"
        return ""

    def _jitted(self, checked: bool) -> Any:
        found = self._compiled.get(checked)
        if found is None:
            from mirabelle.arraytypes.programs.loopfunctions import LoopFunction  # (which imports Numba)

            options = {"boundscheck": True} if checked else {}
            found = self._compiled[checked] = LoopFunction(self._make(), options, self._make_numpys)
        return found

    def _run(self, checked: bool, kinds: Any, values: Sequence[Any]) -> Any:
        if kinds in self.refused:
            return self._as_it_is(values)
        jitted = self._jitted(checked)
        tracing = capturing()
        # (What is an array of no dimensions is a number to the loop, unless it writes to `x[()]`.)
        given = [
            _number(x) if not tracing and isinstance(x, (AbstractArray, np.ndarray)) and not x.ndim else x
            for x in values
        ]
        try:
            found = jitted(*given)
        except Exception as e:
            if not isinstance(e, _REFUSALS) and not _of_the_compiler(e):
                raise
            if tracing and isinstance(e, TraceError):
                # (It can be compiled, and what it leaves behind are arrays, of which nothing is known.)
                try:
                    return self._as_it_is(values)
                except TraceError:
                    raise LoopApart(str(e)) from None
            self.refused[kinds] = str(e) or type(e).__name__
            return self._as_it_is(values)
        return found if tracing else _as_numpy_does(found)

    def _brought(self, checked: bool, kinds: Any, values: Sequence[Any]) -> Any:
        """Run with arrays of another place: they are brought here, and back if they were written to."""
        away = {id(x): x for x in values if isinstance(x, AbstractArray) and not _is_here(x)}
        if len({id(root_of(x)) for x in away.values()}) < len(away):
            return self._as_it_is(values)  # (of arrays that show one memory, copies would not)
        here: dict[int, Any] = {}
        given = []
        for x in values:
            if isinstance(x, AbstractArray) and not _is_here(x):
                if id(x) not in here:
                    here[id(x)] = verbs.adapt(HostArray, x)
                x = here[id(x)]
            given.append(x)
        found = self._run(checked, kinds, given)
        effects = self._jitted(checked).effects.values()
        back: set[int] = set()
        for x, y, how in zip(values, given, effects, strict=True):
            if y is not x and how != READ and id(x) not in back:
                back.add(id(x))
                verbs.assign(x, verbs.adapt(type(x).family, y) if hasattr(type(x), "family") else y)
        origin = {id(y): away[key] for key, y in here.items()}
        place = leaf_family(type(next(iter(away.values()))))
        return _taken_back(found, origin, place)


def _taken_back(found: Any, origin: dict[int, Any], place: Any) -> Any:
    """What a loop returned here, where its arguments came from."""
    if type(found) is tuple:
        return tuple([_taken_back(x, origin, place) for x in found])
    if not isinstance(found, (AbstractArray, np.ndarray)):
        return found
    return origin[id(found)] if id(found) in origin else verbs.adapt(place, asarray(found))


_REFUSALS = (UserFunctionError, ImportError, TraceError, PlaceError)


def _of_the_compiler(error: BaseException) -> bool:
    """Was an error raised while a loop was compiled, and not by the loop?"""
    step = error.__traceback__
    while step is not None:
        if "numba" in Path(step.tb_frame.f_code.co_filename).parts:
            return True
        step = step.tb_next
    return False


def _key(x: Any) -> Any:
    if isinstance(x, (AbstractArray, np.ndarray)):
        return type(x), x.dtype, x.shape
    if type(x) is tuple:
        return tuple(map(_key, x))
    # (Whether indices lie inside, and divisors are zero, was found out for these numbers.)
    if isinstance(x, (int, np.integer, np.bool_)):
        return type(x), int(x)
    return (type(x), bool(x)) if isinstance(x, (float, complex)) else type(x)


def _type(x: Any) -> Any:
    return (type(x), x.dtype, x.ndim) if isinstance(x, (AbstractArray, np.ndarray)) else type(x)


def _is_here(x: Any) -> bool:
    family = family_in_memory(type(x))
    return family is HostArray or (
        family is not None and issubclass(family, Traced) and family.inner is HostArray
    )


def _in_memory(x: Any) -> Any:
    """The type of memory that an array is in, or will be in where it is captured."""
    family = family_in_memory(type(x))
    return family.inner if family is not None and issubclass(family, Traced) else family


def _is_array(x: Any) -> bool:
    return isinstance(x, (AbstractArray, np.ndarray)) and bool(x.ndim)


def _number(x: Any) -> Any:
    """An array of no dimensions as the number it holds."""
    return (verbs.to_numpy(x) if isinstance(x, AbstractArray) else x)[()]


def _as_numpy_does(found: Any) -> Any:
    """Numbers that a compiled loop returned, as NumPy's statements would have left them."""
    if type(found) is tuple:
        return tuple([_as_numpy_does(x) for x in found])
    if type(found) is float:
        return np.float64(found)
    return np.complex128(found) if type(found) is complex else found
