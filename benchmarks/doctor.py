"""What the cures of `mb.doctor` gain beside what it says: seconds of programs before and after."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import mirabelle as mb
from benchmarks._table import show
from benchmarks.slowprograms import PROGRAMS


def run(only: str = "", rounds: int = 0) -> None:
    rows = []
    warnings.simplefilter("ignore")  # (what is compiled often says so)
    for name, program in PROGRAMS.items():
        if only not in name:
            continue
        before, after, told = [], [], []
        program.after()
        for _ in range(rounds or 7):
            before.append(_seconds(program.before))
            after.append(_seconds(program.after))
            _tell_again()
            found = mb.doctor(program.before)
            gain = sum(f.gain for f in found.findings if f.kind == program.kind)
            told.append((found.seconds, gain))
        seconds, gain = min(told)
        rows.append(
            [
                name,
                *[f"{s * 1e3:.2f}" for s in (min(before), min(after), seconds)],
                f"{(min(before) - min(after)) * 1e3:.2f}",
                f"{gain * 1e3:.2f}",
            ]
        )
    show(
        "Cures of the doctor: ms, the best of several",
        ["program", "before", "after", "before, it says", "gained", "at most, it says"],
        rows,
        ["Before and after by the processor's clock, the doctor's by the wall's: an idle machine agrees."],
    )


def _seconds(f: Callable[[], Any]) -> float:
    """(Of this thread: those that help wait busily for a while, which is nobody's time.)"""
    began = time.thread_time()
    f()
    return time.thread_time() - began


def _tell_again() -> None:
    """Structured arrays that are made dense are told of once in a process."""
    from mirabelle.arraytypes.structured import fallback

    fallback.forget()
