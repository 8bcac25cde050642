"""Generic functions: methods, overrides and their scopes, refusals, messages."""

import asyncio
import collections.abc
import contextlib
import functools
import numbers
import os
import re
import sys
import threading
import types
from typing import Any, Literal, Optional, Protocol, TypeVar, Union

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.dispatch import generic as machinery
from mirabelle.dispatch.generic import by_type, generic


class Animal: ...


class Dog(Animal): ...


class Cat(Animal): ...


@pytest.fixture
def speak():
    """A generic function of one argument, known to nobody else."""

    @functools.partial(generic, operator=True)
    def speak(x):
        """Say something."""

    yield speak
    machinery._registry.remove(speak.core)


@pytest.fixture
def meet():
    @generic
    def meet(x, y, *, loudly=False):
        """Two meet."""

    yield meet
    machinery._registry.remove(meet.core)


@pytest.fixture
def sound():
    """A generic function that dispatches on types themselves."""

    @by_type
    def sound(kind, times=1):
        """What animals of a kind say."""

    yield sound
    machinery._registry.remove(sound.core)


# Methods


def test_the_most_specific_method_answers(speak):
    speak.method(lambda x: "object", signature=(object,))
    speak.method(lambda x: "animal", signature=(Animal,))

    @speak.method
    def _(x: Dog):
        return "dog"

    assert [speak(v) for v in (1, Cat(), Dog())] == ["object", "animal", "dog"]


def test_a_later_method_is_seen_by_the_next_call(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    assert speak(Dog()) == "animal"
    speak.method(lambda x: "dog", signature=(Dog,))
    assert speak(Dog()) == "dog"
    speak.method(lambda x: "other dog", signature=(Dog,))
    assert speak(Dog()) == "other dog"
    assert len(mb.methods(speak)) == 2, "the same signature is replaced, not added"


def test_methods_of_two_arguments(meet):
    @meet.method
    def _(x: Dog, y: Cat, *, loudly=False):
        return "chase" + "!" * loudly

    @meet.method
    def _(x: Animal, y: Animal, *, loudly=False):
        return "sniff"

    assert meet(Dog(), Cat()) == "chase"
    assert meet(Dog(), Cat(), loudly=True) == "chase!"
    assert meet(Cat(), Dog()) == "sniff"


def test_annotations_as_strings_and_unions(speak):
    @speak.method
    def _(x: "Dog | Cat"):
        return "pet"

    @speak.method
    def _(x: Union[int, None]):  # noqa: UP007 - the old spelling is what is tested
        return "nothing much"

    @speak.method
    def _(x: Optional[str]):  # noqa: UP045
        return "text"

    assert speak(Cat()) == "pet" and speak(3) == "nothing much" and speak("a") == "text"


def test_abstract_base_classes_are_faithful(speak):
    speak.method(lambda x: "number", signature=(numbers.Number,))
    speak.method(lambda x: "sequence", signature=(collections.abc.Sequence,))
    assert speak(2.5) == "number" and speak([1]) == "sequence"
    assert speak(np.float32(1)) == "number"


def test_a_parameter_without_annotation_is_object(speak):
    @speak.method
    def _(x):
        return "anything"

    assert speak(object()) == "anything"


def test_generated_methods_run_once_a_type(speak):
    made = []

    @speak.generated
    def _(x: Animal):
        made.append(x)
        return lambda value: x.__name__

    assert [speak(Dog()), speak(Dog()), speak(Cat())] == ["Dog", "Dog", "Cat"]
    assert made == [Dog, Cat]
    assert "[generated]" in repr(mb.methods(speak))


def test_a_generated_method_may_decline(speak):
    speak.generated(lambda x: NotImplemented, signature=(Animal,))
    with pytest.raises(mb.MissingMethodError):
        speak(Dog())
    assert speak.operator(Dog()) is NotImplemented


def test_a_generated_method_that_registers_methods(speak):
    """What is registered while it runs must be seen by the next call."""

    @speak.generated
    def _(x: Animal):
        speak.method(lambda v: "registered", signature=(Dog,))
        return lambda v: "first"

    assert speak(Dog()) == "first"
    assert speak(Dog()) == "registered"


def test_the_world_age_grows_with_every_change(speak):
    ages = [mb.ext.world()]
    speak.method(lambda x: 1, signature=(Dog,))
    ages.append(mb.ext.world())
    with mb.override(speak, (Dog,), lambda x: 2):
        ages.append(mb.ext.world())
    ages.append(mb.ext.world())
    speak.core.unregister((Dog,))
    ages.append(mb.ext.world())
    assert ages == sorted(set(ages))
    with pytest.raises(mb.MissingMethodError):
        speak(Dog())


def test_parametric_types_dispatch_at_every_level(speak):
    speak.method(lambda x: "abstract", signature=(mb.AbstractArray,))
    speak.method(lambda x: "host", signature=(mb.HostArray,))
    speak.method(lambda x: "f4", signature=(mb.HostArray[mb.float32],))
    speak.method(lambda x: "f4 matrix", signature=(mb.HostArray[mb.float32, 2],))
    speak.method(lambda x: "view of a ref", signature=(mb.types.View[mb.RefArray],))
    x = mb.HostArray(np.ones((2, 2), "f4"))
    assert [speak(v) for v in (x, x[0], x.astype("f8"))] == ["f4 matrix", "abstract", "host"]
    assert speak(mb.HostArray(np.ones(3, "f4"))) == "f4"
    assert speak(mb.RefArray([1.0])) == "abstract"
    assert speak(mb.RefArray([1.0])[:]) == "view of a ref"


def test_calls_by_keyword_work_or_say_how(meet):
    """Dispatched arguments may be named, as in any Python function."""
    meet.method(lambda x, y, loudly=False: (x, y), signature=(int, str))
    assert meet(x=1, y="a") == (1, "a")
    assert meet(1, y="a") == (1, "a")
    with pytest.raises(TypeError):
        meet(1)
    with pytest.raises(TypeError):
        meet(1, "a", "b", "c")


# What is listed and found


def test_methods_are_listed_with_file_and_line(speak):
    @speak.method
    def _(x: Dog):
        return "dog"

    line = sys._getframe().f_lineno - 4
    (method,) = mb.methods(speak)
    assert method.file == __file__ and abs(method.line - line) <= 1
    assert repr(method) == f"speak(Dog) at {__file__}:{method.line}"
    assert "<table>" in mb.methods(speak)._repr_html_() and "Dog" in mb.methods(speak)._repr_html_()
    assert repr(mb.methods(speak)) == repr(method)


def test_which_finds_the_method_and_it_can_be_called(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    assert mb.which(speak, Dog())(Dog()) == "animal"
    with pytest.raises(mb.MissingMethodError):
        mb.which(speak, 1)
    with pytest.raises(TypeError, match="argument"):
        mb.which(speak)
    with mb.override(speak, (Dog,), lambda x: "override"):
        method = mb.which(speak, Dog())
        assert method.scope == "override" and method(Dog()) == "override"
        assert mb.methods(speak)[0] is method and "[override]" in repr(method)
    assert mb.which(mb.add, mb.HostArray([1]), 2)(mb.HostArray([1]), 2).tolist() == [3]


def test_every_public_generic_lists_methods():
    for name, f in ((n, getattr(mb, n)) for n in mb.__all__):
        if hasattr(f, "core"):
            table = mb.methods(f)
            assert len(table) >= 1, name
            # (Examples of docstrings, run by other tests, may have added some that stand in no file.)
            assert all(os.path.exists(m.file) for m in table if not m.file.startswith("<doctest"))


def test_things_that_are_not_generic_are_refused():
    for f in (len, mb.arange, None, "add"):
        with pytest.raises(TypeError, match="not a generic function"):
            mb.methods(f)
        with pytest.raises(TypeError, match="not a generic function"):
            mb.which(f, 1)


# Overrides


def test_an_override_is_seen_by_the_next_call_and_gone_after(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    assert speak(Dog()) == "animal"
    with mb.override(speak, (Animal,), lambda x: "override"):
        assert speak(Dog()) == "override"
    assert speak(Dog()) == "animal"


def test_an_override_ends_with_an_exception(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    with pytest.raises(ZeroDivisionError), mb.override(speak, (Animal,), lambda x: 1 / 0):
        speak(Dog())
    assert speak(Dog()) == "animal" and not speak.core.active_overrides


def test_overrides_nest_and_call_what_they_hide(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    with (
        mb.override(speak, (Animal,), lambda x: "outer+" + speak.previous(x)),
        mb.override(speak, (Animal,), lambda x: "inner+" + speak.previous(x)),
    ):
        assert speak(Dog()).startswith("inner+outer")
        assert speak(Dog()) == "inner+outer+animal"


def test_the_innermost_override_wins_over_a_more_specific_method(speak):
    speak.method(lambda x: "dog", signature=(Dog,))
    with mb.override(speak, (object,), lambda x: "anything"):
        assert speak(Dog()) == "anything"
        with mb.override(speak, (Cat,), lambda x: "cat"):
            assert speak(Dog()) == "anything" and speak(Cat()) == "cat"


def test_an_override_takes_a_single_type_and_unions(speak):
    with mb.override(speak, Dog, lambda x: "dog"):
        assert speak(Dog()) == "dog"
    with mb.override(speak, (Dog | Cat,), lambda x: "pet"):
        assert speak(Cat()) == "pet"


def test_a_method_registered_inside_an_override_stays(speak):
    with mb.override(speak, (Dog,), lambda x: "override"):
        speak.method(lambda x: "registered", signature=(Dog,))
        assert speak(Dog()) == "override"
    assert speak(Dog()) == "registered"


def test_other_threads_do_not_see_an_override(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    seen, ready, go = [], threading.Event(), threading.Event()

    def other():
        ready.wait(10)
        seen.append(speak(Dog()))
        with mb.override(speak, (Dog,), lambda x: "theirs"):
            seen.append(speak(Dog()))
        go.set()

    t = threading.Thread(target=other)
    t.start()
    with mb.override(speak, (Dog,), lambda x: "ours"):
        ready.set()
        assert go.wait(10)
        assert speak(Dog()) == "ours"
    t.join()
    assert seen == ["animal", "theirs"] and speak(Dog()) == "animal"


def test_asyncio_tasks_have_their_own_overrides(speak):
    speak.method(lambda x: "animal", signature=(Animal,))

    async def task(name):
        with mb.override(speak, (Dog,), lambda x: name):
            await asyncio.sleep(0)
            first = speak(Dog())
            await asyncio.sleep(0)
            return first, speak(Dog())

    async def plain():
        await asyncio.sleep(0)
        return speak(Dog())

    async def main():
        return await asyncio.gather(task("a"), plain(), task("b"))

    assert asyncio.run(main()) == [("a", "a"), "animal", ("b", "b")]
    assert speak(Dog()) == "animal"


def test_an_override_of_an_operator_reaches_the_operator():
    x = mb.HostArray([1.0, 2.0])
    with mb.override(mb.add, (mb.HostArray, int), lambda a, b: mb.multiply(a, b)):
        assert (x + 3).tolist() == [3.0, 6.0]
    assert (x + 3).tolist() == [4.0, 5.0]
    with mb.override(mb.sqrt, (mb.HostArray,), lambda a: "root"):
        assert np.sqrt(x) == "root"


def test_an_override_of_copyto_sees_every_evaluation():
    """Whoever overrides copyto is asked, for small trees too."""
    from mirabelle.ext import Broadcasted

    seen = []

    def watching(dest, src):
        seen.append(src.shape)
        return mb.copyto.previous(dest, src)

    x = mb.HostArray([1.0, 2.0])
    mb.materialize(x + 1)
    with mb.override(mb.copyto, (mb.HostArray, Broadcasted), watching):
        assert (x * 2).tolist() == [2.0, 4.0]
    assert seen == [(2,)]


def test_an_override_is_checked_when_made(speak):
    with pytest.raises(mb.UnfaithfulAnnotationError), mb.override(speak, (list[int],), lambda x: 1):
        pass
    with pytest.raises(TypeError, match="dispatches on 1"), mb.override(speak, (int, int), lambda x: 1):
        pass
    assert not speak.core.active_overrides


def test_threads_register_and_call_at_once(speak):
    speak.method(lambda x: "animal", signature=(Animal,))
    errors = []
    classes = [type(f"C{i}", (Animal,), {}) for i in range(40)]

    def work(i):
        try:
            for j, cls in enumerate(classes):
                if j % 4 == i:
                    speak.method(lambda x, n=j: n, signature=(cls,))
                assert speak(cls()) in (j, "animal")
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert [speak(cls()) for cls in classes] == list(range(40))


# Refusals and messages


class Shape(Protocol):
    def area(self) -> float: ...


class InstancesByValue(type):
    def __instancecheck__(cls, x):
        return x == 1


class One(metaclass=InstancesByValue): ...


class Promised(metaclass=InstancesByValue):
    __faithful__ = True


T = TypeVar("T")


@pytest.mark.parametrize(
    "annotation",
    [list[int], dict[str, int], Literal[1], type[int], Shape, One, T, 3, collections.abc.Sequence[int],
     None | list[int], int | Literal["a"]],
    ids=repr,
)  # fmt: skip
def test_annotations_that_a_type_cannot_decide_are_refused(speak, annotation):
    with pytest.raises(mb.UnfaithfulAnnotationError, match=r"speak\(\)") as e:
        speak.method(lambda x: 1, signature=(annotation,))
    written = annotation.__name__ if isinstance(annotation, type) else repr(annotation).replace("typing.", "")
    if isinstance(annotation, (types.GenericAlias, type(Literal[1]))):
        assert written.split(".")[-1] in str(e.value), "the message names the annotation"
    with pytest.raises(mb.UnfaithfulAnnotationError):

        @speak.method
        def _(x: annotation): ...

    assert not mb.methods(speak)
    assert isinstance(e.value, TypeError)


def test_a_class_may_promise_to_be_faithful(speak):
    speak.method(lambda x: "promised", signature=(Promised,))
    assert len(mb.methods(speak)) == 1


def test_any_is_object(speak):
    speak.method(lambda x: "any", signature=(Any,))
    assert speak(None) == "any"


def test_a_method_of_the_wrong_arity_is_refused(meet):
    with pytest.raises(TypeError, match=r"dispatches on 2 argument.*takes 1"):
        meet.method(lambda x: 1, signature=(int,))
    with pytest.raises(TypeError, match="def _"):

        @meet.method
        def _(x: int): ...


def test_a_missing_method_names_candidates_and_says_how_to_define_one(meet):
    @meet.method
    def near(x: Dog, y: Cat): ...

    meet.method(lambda x, y, loudly=False: 1, signature=(int, int))
    with pytest.raises(mb.MissingMethodError) as e:
        meet(Dog(), Dog())
    message = str(e.value)
    assert "meet() has no method for (Dog, Dog)" in message
    assert message.index("meet(Dog, Cat)") < message.index("meet(int, int)"), "the closest comes first"
    assert re.search(re.escape(__file__) + r":\d+", message)
    assert "Define one like this" in message and "@meet.method" in message
    assert "def _(x: Dog, y: Dog)" in message
    assert isinstance(e.value, TypeError)


def test_a_missing_method_of_an_array_suggests_the_open_type():
    with pytest.raises(mb.MissingMethodError, match=r"def _\(x: str\)"):
        mb.sqrt("four")
    with pytest.raises(mb.MissingMethodError) as e:
        mb.dot(mb.HostArray([1.0]), "x")
    assert "x1: HostArray," in str(e.value)


def test_operators_leave_foreign_objects_a_chance():
    class Foreign:
        def __radd__(self, other):
            return "theirs"

    assert mb.HostArray([1.0]) + Foreign() == "theirs"
    with pytest.raises(TypeError, match="unsupported operand"):
        mb.HostArray([1.0]) - Foreign()


def test_ambiguous_methods_are_explained(meet):
    meet.method(lambda x, y, loudly=False: 1, signature=(Dog, Animal))
    meet.method(lambda x, y, loudly=False: 2, signature=(Animal, Dog))
    with pytest.raises(mb.AmbiguousMethodError) as e:
        meet(Dog(), Dog())
    message = str(e.value)
    assert "meet(Dog, Animal)" in message and "meet(Animal, Dog)" in message and "@meet.method" in message
    assert machinery.ambiguities([meet.core])
    meet.method(lambda x, y, loudly=False: 3, signature=(Dog, Dog))
    assert machinery.ambiguities([meet.core]) == []
    assert meet(Dog(), Dog()) == 3


def test_what_an_array_can_be_made_of_is_told_so():
    class Column:
        __array_priority__ = 1000

        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    for f, arguments in ((mb.sin, (Column(),)), (mb.sum, (Column(),)), (mb.where, (Column(), 1, 2))):
        with pytest.raises(mb.MissingMethodError, match=r"Make an array of the Column: `mb\.asarray\(x\)`\."):
            f(*arguments)
    assert mb.sin(mb.asarray(Column())).shape == (2,)


def test_no_generic_function_of_mirabelle_is_ambiguous():
    """(Alone, and beside other libraries' arrays, for which methods come with their import.)"""
    assert machinery.ambiguities() == []
    with contextlib.suppress(ImportError):
        import cupy as cupy
    assert machinery.ambiguities() == []
    assert mb.add([1.0], [2.0]).tolist() == [3.0]


def test_ambiguities_of_three_methods_and_unions_are_found(meet):
    meet.method(lambda x, y, loudly=False: 1, signature=(Dog | Cat, object))
    meet.method(lambda x, y, loudly=False: 2, signature=(object, Dog | Cat))
    assert machinery.ambiguities([meet.core])
    meet.method(lambda x, y, loudly=False: 3, signature=(Dog, Dog))
    assert machinery.ambiguities([meet.core]), "(Dog, Cat) is still undecided"


def test_generic_functions_look_like_functions():
    import inspect

    assert inspect.isfunction(mb.add) and mb.add.__name__ == "add" and mb.add.__doc__
    shown = ["x", "axis", "dtype", "keepdims", "out", "initial", "where"]
    assert list(inspect.signature(mb.sum).parameters) == shown
    assert functools.reduce(mb.add, [mb.HostArray([1]), 2, 3]).tolist() == [6]


def test_tables_do_not_keep_what_is_unregistered(speak):
    speak.method(lambda x: 1, signature=(Animal,))
    speak(Dog())
    speak.core.unregister((Animal,))
    with pytest.raises(mb.MissingMethodError, match="no methods at all"):
        speak(Dog())


def test_the_most_specific_method_is_the_one_that_plum_finds():
    """An implementation that is not ours decides over all that we have: which methods, which combinations."""
    plum = pytest.importorskip("plum")
    random = np.random.default_rng(11)
    types_ = [
        *(mb.HostArray, mb.HostArray[np.float64, 2], mb.RefArray, mb.CuArray[np.int32], mb.DArray),
        *(mb.HostArray[np.float64, 2], mb.Diagonal, mb.Diagonal[mb.HostArray], mb.types.Dual, mb.Fill, mb.CSR),
        *(
            mb.types.Transpose[mb.HostArray],
            mb.types.View,
            mb.Kronecker,
            mb.types.Triangular,
            mb.Symmetric,
            mb.Banded,
        ),
        *(int, float, bool, complex, list, tuple, str, type(None), np.ndarray, np.float64, type, object),
    ]
    asked = found = 0
    for core in machinery.all_generics():
        if len(core.methods) < 2 or not core.prototype.__module__.startswith("mirabelle."):
            continue
        theirs = plum.Function(lambda *args: None)
        for method in core.methods:

            def stand_in(*args):
                raise AssertionError

            stand_in.method = method
            theirs.register(stand_in, signature=plum.Signature(*method.signature))
        own = {t for m in core.methods for classes in m.classes for t in classes}
        pool = [*types_, *sorted(own, key=lambda t: (t.__module__, t.__qualname__))]
        for _ in range(min(6, 2 * len(core.methods))):
            signature = tuple(pool[i] for i in random.integers(len(pool), size=core.arity))
            try:
                expected = theirs.resolve_method(plum.Signature(*signature))[0].method
            except plum.NotFoundLookupError:
                expected = None
            except plum.AmbiguousLookupError:
                with pytest.raises(mb.AmbiguousMethodError):
                    core.resolve(signature)
                continue
            assert core.resolve(signature) is expected, (core.__name__, signature)
            asked += 1
            found += expected is not None
    assert asked > 1000 and found > 500


# Functions of types


def test_a_function_of_types_looks_up_the_type_itself(sound):
    @sound.method
    def _(kind: type[Animal], times=1):
        return "?" * times

    assert sound(Dog) == sound(Animal) == "?" and sound(Dog, times=2) == "??"

    @sound.method
    def _(kind: type[Dog], times=1):
        return sound.previous(Animal) + kind.__name__

    sound.method(lambda kind: kind(7), signature=(int | str,))
    assert (sound(Dog), sound(bool), sound(str), sound(Cat)) == ("?Dog", True, "7", "?")
    assert mb.which(sound, Dog).function.__name__ == "sound" and mb.which(sound, Cat)(Cat, 3) == "???"
    with mb.override(sound, Cat, lambda kind, times=1: f"over {sound.previous(kind)}"):
        assert (sound(Cat), sound(Dog)) == ("over ?", "?Dog")
    assert sound(Cat) == "?"
    # An array type stands for its parameters, too.
    sound.method(lambda kind: "array", signature=(mb.types.DenseArray,))
    assert sound(mb.HostArray) == sound(mb.HostArray[mb.float64, 2]) == "array"
    sound.method(lambda kind: "Cat", signature=(Cat,))
    with pytest.raises(mb.AmbiguousMethodError, match=r"(?s)fits several methods.*kind: type\[Both\]"):
        sound(type("Both", (Dog, Cat), {}))


def test_what_a_function_of_types_refuses(sound):
    with pytest.raises(mb.MissingMethodError, match=r"no methods at all[^_]*def _\(kind: type\[Dog\]\)"):
        sound(Dog)
    with pytest.raises(mb.UnfaithfulAnnotationError, match=r"with a type, .* `kind: type\[Dog\]`"):

        @sound.method
        def _(kind: Dog): ...

    with pytest.raises(mb.UnfaithfulAnnotationError, match="does not decide"):

        @sound.method
        def _(kind: type[Shape]): ...

    sound.method(lambda kind: "any", signature=(object,))
    assert sound(Dog) == "any"
    with pytest.raises(TypeError):
        sound([])  # no type, and nothing that can be looked up


def test_round_takes_decimals_or_options_of_ufuncs():
    x, out = mb.HostArray([1.26, 2.74]), mb.zeros(2)
    with pytest.raises(TypeError, match="without decimals="):
        mb.round(x, 1, where=x > 2)
    assert mb.round(x, where=x > 2, out=out).tolist() == [0.0, 3.0]
    assert mb.round(x, 1).tolist() == [1.3, 2.7]
