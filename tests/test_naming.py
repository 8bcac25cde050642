"""Methods are called by what they are in tracebacks, profiles and sources, though they are written as `_`."""

import cProfile
import functools
import inspect
import pstats
import traceback
import types

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes import library
from mirabelle.arraytypes.duals import routines as dual_routines
from mirabelle.arraytypes.structured import fallback
from mirabelle.backends.gpu import library as gpu_library
from mirabelle.dispatch import generic as generics
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.naming import named


@pytest.fixture
def speak():
    def speak(x, *, loud=False):
        "Say what x is."

    function = generic(speak)
    yield function
    generics._registry.remove(function.core)


def shown(f):
    return f.__name__, f.__qualname__.rpartition(".")[2], f.__code__.co_name, f.__code__.co_qualname


def ours():
    """All functions that answer calls of generics and routines, as they were written."""
    methods = [m.implementation for g in generics._registry for m in g.methods if not m.is_users]
    gpu_library._chapters()
    tables = [gpu_library.ROUTINES, dual_routines.RULES, *library.ROUTINES.values()]
    for f in [*methods, *(f for table in tables for f in table.values())]:
        yield inspect.unwrap(f.func if isinstance(f, functools.partial) else f)


def test_nothing_that_is_registered_is_called_underscore():
    assert [f"{f.__module__}:{f.__code__.co_firstlineno}" for f in ours() if "_" in shown(f)] == []


def test_a_method_has_the_name_of_its_function_and_its_types():
    for g in generics._registry:
        for m in g.methods:
            name = getattr(inspect.unwrap(m.implementation), "__name__", "")
            assert "[" not in name or name.startswith((f"{g.__name__}[", "map_")) or m.is_users, (m, name)


def test_tracebacks_and_profiles_say_it(speak):
    @speak.method
    def _(x: int):
        return 1 / x

    speak(1)
    with pytest.raises(ZeroDivisionError) as raised:
        speak(0)
    assert "speak[int]" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]

    profile = cProfile.Profile()
    profile.runcall(speak, 2)
    assert "speak[int]" in {name for _, _, name in pstats.Stats(profile).stats}


def test_what_is_written_stays_what_it_is(speak):
    held = [1]

    @speak.method
    def _(x: int | float, *, loud=True, **more: str):
        "The docstring."
        held[0] += 1
        return x, loud, held[0]

    name = "speak[int | float]"
    assert shown(_) == (name, name, name, f"{test_what_is_written_stays_what_it_is.__name__}.<locals>.{name}")
    assert speak(3, loud=True) == (3, True, 2)
    assert speak(2.5, loud=False) == (2.5, False, 3)
    assert "held[0] += 1" in inspect.getsource(_)
    assert _.__doc__ == "The docstring."
    assert _.__kwdefaults__ == {"loud": True}
    assert _.__annotations__ == {"x": int | float, "more": str}
    assert mb.methods(speak)[0].line == _.__code__.co_firstlineno


def test_generated_methods_and_methods_of_two_functions(speak):
    def other(x):
        "Another."

    other = generic(other)
    try:

        @other.method
        @speak.method
        def _(x: str):
            return x.upper()

        @speak.generated
        def made(x: bytes):
            return lambda value, loud: value.decode()

        @speak.generated
        def _(x: list):
            return lambda value, loud: len(value)

        # The first name is kept.
        assert inspect.unwrap(other.core.methods[0].implementation).__name__ == "speak[str]"
        assert (speak("a"), other("b"), speak(b"c"), speak([1, 2])) == ("A", "B", "c", 2)
        assert [inspect.unwrap(m.implementation).__name__ for m in speak.core.methods] == [
            "speak[str]", "made", "speak[list]",
        ]  # fmt: skip
    finally:
        generics._registry.remove(other.core)


class Unnamed:
    def __call__(self, x):
        return "called"


@pytest.mark.parametrize(
    "f",
    [lambda x: x, len, functools.partial(max, 1), Unnamed(), np.add],
    ids=["lambda", "builtin", "partial", "object", "ufunc"],
)
def test_what_has_a_name_or_no_code_is_left_alone(f):
    before = getattr(f, "__name__", None)
    assert named(f, "other") is f
    assert getattr(f, "__name__", None) == before


def test_what_is_called_by_a_function_that_stands_for_it_is_left_alone():
    def written(x):
        return x

    @functools.wraps(written)
    def _(*args):
        return written(*args)

    named(_, "other[int]")  # it is called `written`, as it was wrapped to be
    assert shown(_)[0] == "written"
    assert isinstance(_, types.FunctionType)


def test_routines_of_a_family():
    try:

        @library.routine(mb.HostArray, "doubled_here")
        def _(x):
            return x * 2

        assert _.__code__.co_name == "doubled_here[HostArray]"
        assert library.call("doubled_here", mb.HostArray([1, 2])).tolist() == [2, 4]
    finally:
        del library.ROUTINES[mb.HostArray]["doubled_here"]
        library.additions += 1


def test_messages_say_the_function_alone():
    """What mirabelle says of itself by looking at the stack does not show types."""
    seen = []

    class Watched(mb.HostArray):
        home = mb.HostArray.home

    @mb.norm.method
    def _(x: Watched, p=2):
        seen.append(fallback.called_from_outside())
        return 0

    try:
        mb.norm(Watched([1.0]))
    finally:
        mb.norm.core.unregister((Watched,))
    assert [name for name in seen if "[" in name] == []
