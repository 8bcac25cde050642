"""What dispatch and places do for a user: an override for a block, and what a device refuses."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.programs import domeigen
from mirabelle.tour.examples import spectrum
from mirabelle.tour.screen import Plain


def overriding(out: Plain) -> None:
    """A method replaced for a block, and only there; and one deep in a library."""

    def largest(x: Any, p: Any = 2) -> Any:
        return mb.max(mb.abs(x))

    A = mb.HostArray(spectrum(64))
    b, _ = domeigen(A, 60)
    before = mb.which(mb.norm, b)
    with mb.override(mb.norm, (mb.HostArray,), largest):
        b, _ = domeigen(A, 60)
        during = mb.which(mb.norm, b)
    out.say("domeigen is somebody else's, and normalises by mb.norm. For this call, by another one:")
    out.code(
        "with mb.override(mb.norm, (mb.HostArray,), lambda x, p=2: mb.max(mb.abs(x))):\n"
        "    b, λ = domeigen(A, 60)"
    )
    out.say(
        f"mb.norm before:  {_short(before)}\n"
        f"inside:          {_short(during)}\n"
        f"after:           {_short(mb.which(mb.norm, b))}\n"
        f"The largest entry of b came out as {float(mb.max(mb.abs(b))):.12g}."
    )
    calls = []

    def loss(x: Any) -> Any:
        calls.append(x)
        return mb.sum(mb.sin(x) ** 2)

    x = mb.linspace(0, 1, 100)
    counts = []
    for chunk in (100, 25, 8):
        calls.clear()
        with mb.override(mb.autodiff.chunk_size, (mb.HostArray,), lambda x: chunk):
            mb.autodiff.gradient(loss, x)
        counts.append(f"{chunk} derivatives at a time evaluate it {_times(len(calls))}")
    out.say("How a gradient is computed is such a method, too, and an application may choose:")
    out.code(
        "with mb.override(mb.autodiff.chunk_size, (mb.HostArray,), lambda x: 8):\n"
        "    mb.autodiff.gradient(loss, x)"
    )
    out.say(f"For a loss of {x.size} numbers,\n" + ",\n".join(counts) + ".")


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _short(method: Any) -> str:
    """A method with its file as seen from where mirabelle is installed."""
    return f"{method!r}".replace(os.path.dirname(os.path.dirname(mb.__file__)) + os.sep, "")


def refusals(out: Plain) -> None:
    """What is refused, in its own words."""
    x = mb.RefArray([1.0, 2.0, 3.0])
    h = mb.HostArray([1.0, 2.0, 3.0])
    attempts: list[tuple[str, Callable[[], Any]]] = [
        ("x + np.ones(3)", lambda: x + np.ones(3)),
        ("for i in range(3): total += float(x[i])", lambda: float(x[0])),
        ("mb.autodiff.gradient(lambda x: x * 2, x)", lambda: mb.autodiff.gradient(lambda x: x * 2, x)),
        ("mb.autodiff.gradient(lambda x: np.asarray(x).sum(), x)", lambda: mb.autodiff.gradient(_leaving, h)),
    ]
    with mb.allow_scalar(False):
        for text, attempt in attempts:
            try:
                attempt()
            except (mb.MirabelleError, ValueError) as e:
                said = textwrap.wrap(f"{type(e).__name__}: {e}", 88, subsequent_indent="    ")
                out.code(f">>> {text}\n" + "\n".join(said))


def _leaving(x: Any) -> Any:
    return np.asarray(x).sum()
