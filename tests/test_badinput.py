"""Nonsense in calls ends in sentences: a slice of `python -m tests.badinput`, and what must not be reworded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from badinput import run

import mirabelle as mb
from mirabelle.arraytypes.functions import reducing

EAGER = mb.HostArray([1.0, 2.0, 3.0])


def test_calls_with_nonsense_end_in_sentences() -> None:
    found = run(2500, seed=3)
    assert len(found) <= 5, found


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mb.concat(5), r"concat: arrays=5 is no row of arrays\. Give a list of arrays: `\[x, y\]`"),
        (lambda: mb.vstack(np.float64), "vstack: .* is no row of arrays"),
        (lambda: mb.hanning("a"), "hanning: M='a' is no number"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named_by_the_function_that_was_called(
    call: Any, text: str
) -> None:
    with pytest.raises(TypeError, match=text) as caught:
        call()
    assert caught.value.__cause__ is not None  # what happened inside stays to be seen


def test_a_list_that_contains_itself_is_a_sentence() -> None:
    endless: list[Any] = [1.0]
    endless.append(endless)
    for function in (mb.sin, mb.sum, mb.sort, mb.linalg.norm, mb.fft.fft):
        with pytest.raises(TypeError, match=r"contains itself\. Give numbers"):
            function(endless)


def test_errors_of_users_functions_pass_as_they_are() -> None:
    def mine(x: Any) -> Any:
        return {}["missing"]

    for call in (
        lambda: mb.apply_along_axis(mine, 0, EAGER),
        lambda: mb.fromfunction(lambda i: mine(i), (3,)),
        lambda: mb.piecewise(EAGER, [EAGER > 1], [mine, 0.0]),
    ):
        with pytest.raises(KeyError, match=r"^'missing'$"):
            call()


def test_an_override_and_a_generic_of_a_user_raise_what_they_raise() -> None:
    @mb.generic
    def speak(x: Any) -> Any: ...

    @speak.method
    def _(x: int) -> Any:
        return x.nothing  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        speak(3)

    def wrong(x: Any) -> Any:
        return len(5)  # type: ignore[arg-type]

    with (
        mb.override(mb.sin, (mb.HostArray,), wrong),
        pytest.raises(TypeError, match=r"^object of type 'int' has"),
    ):
        mb.sin(EAGER)


def test_what_numpy_says_of_sizes_and_places_stays() -> None:
    for call, kind in (
        (lambda: EAGER + mb.HostArray([1.0, 2.0]), ValueError),
        (lambda: mb.take(EAGER, 7), IndexError),
        (lambda: mb.sum(EAGER, axis=3), np.exceptions.AxisError),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert "cannot work with" not in str(caught.value)


# What goes wrong inside, as source: it is put into one of our own modules.
FAULTS = {
    "an attribute that our arrays lack": "return x.nothing_of_this_name",
    "a name that is not there": "return nothing_of_this_name",
    "an assertion": "assert x is None",
    "a key that nobody gave": "return {}['nothing of this name']",
    "None is called": "nothing = None\n    return nothing(x)",
    "an element of None": "nothing = None\n    return nothing[0]",
    "an attribute of None": "return None.shape",
    "None is added": "return x + [None][0].real",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_inside_is_called_a_mistake_of_ours_and_not_of_the_call(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = {"__name__": reducing.__name__}
    exec(compile(f"def broken(x, *more):\n    {FAULTS[fault]}", reducing.__file__, "exec"), namespace)
    monkeypatch.setattr(reducing, "mask_like", namespace["broken"])
    for call in (
        lambda: mb.sum(EAGER, where=[True, False, True]),
        lambda: mb.max(EAGER, where=[True, False, True], initial=0.0),
        lambda: mb.mean(EAGER, axis=0, where=EAGER > 1),
    ):
        with pytest.raises(TypeError, match=r"failed inside, .* in mirabelle\..*, line [23]\.") as caught:
            call()
        assert "this is a mistake in mirabelle. Please report it" in str(caught.value)
        assert "One of the arguments" not in str(caught.value) and caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mb.array_split(EAGER, 2.5), r"indices_or_sections=2\.5 is no number of parts\. Give a whole"),
        (lambda: EAGER.astype("f4", order="Q"), r"^order must be one of 'C', 'F', 'A', or 'K' \(got 'Q'\)\.$"),
        (lambda: mb.add_at(mb.Diagonal([1.0, 2.0]), 0, 1.0), r"A Diagonal stores less .* `x = mb\.dense\(x\)`"),
        (lambda: mb.hint(EAGER, axes=1.5), r"axes= takes a name for each axis, and not 1\.5"),
        (lambda: mb.diagonal(EAGER.reshape(3, 1), offset=None), "diagonal cannot work with what it was given"),
        (lambda: mb.permute_dims(EAGER, None), "permute_dims cannot work with what it was given"),
        (lambda: mb.fft.fftn(EAGER, s=np.array([None], object)), "fftn cannot work with what it was given"),
    ],
)
def test_what_a_call_is_to_blame_for_is_no_mistake_of_ours(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text) as caught:
        call()
    assert "mistake in mirabelle" not in str(caught.value)


def test_no_value_is_read_for_the_text_of_an_error() -> None:
    with (
        mb.allow_scalar(False),
        pytest.raises(TypeError, match=r"is no row|nothing that an array|contains|array"),
    ):
        mb.concat([mb.RefArray([1.0]) * 2, object()])
