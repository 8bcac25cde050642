"""Nonsense in calls ends in sentences: a slice of `python -m tests.badinput`, and what must not be reworded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from badinput import run

import mirabelle as mb

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


def test_no_value_is_read_for_the_text_of_an_error() -> None:
    with (
        mb.allow_scalar(False),
        pytest.raises(TypeError, match=r"is no row|nothing that an array|contains|array"),
    ):
        mb.concat([mb.RefArray([1.0]) * 2, object()])
