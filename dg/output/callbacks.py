"""Callbacks that write files: a series for pictures, and checkpoints to go on from."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mirabelle.dg.output.snapshots import named, save
from mirabelle.dg.output.vtk import read_pvd, write_pvd, write_vtu
from mirabelle.dg.spelled import File
from mirabelle.dg.time.callbacks import Callback
from mirabelle.dg.time.solution import Solution

SIGNAL = getattr(signal, "SIGUSR1", None)  # Windows has none
WRITERS: dict[str, Callable[[Solution, Any], Path]] = {"vtu": write_vtu, "h5": save}


class SaveSolution(Callback):
    """Writes the solution to a folder, now and then: as "vtu" for ParaView, as a snapshot "h5", or as both.

    Files are named by the number of steps; "solution.pvd" lists those for ParaView with their times. A run that
    goes on from a snapshot adds to the list of the run before.

    Parameters
    ----------
    folder : str or path
        Where files go.
    format : {"vtu", "h5"} or several, default "vtu"
        What is written.
    **when : int or float
        `interval`: every so many steps; `dt`: every so often in the time of the simulation.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.SaveSolution("out", dt=0.1, format=("vtu", "h5")).formats
    ('vtu', 'h5')
    """

    def __init__(self, folder: File, format: str | Iterable[str] = "vtu", **when: Any) -> None:
        super().__init__(**when)
        self.folder, self.list = Path(folder), Path(folder, "solution.pvd")
        self.formats = (format,) if isinstance(format, str) else tuple(format)
        if unknown := set(self.formats) - set(WRITERS):
            raise ValueError(
                f"SaveSolution: there is no format {unknown.pop()!r}. Choose "
                '"vtu" (ParaView) or "h5" (snapshots): SaveSolution("out", interval=100, format="vtu").'
            )

    def start(self, solution: Solution) -> None:
        goes_on = solution.steps > 0 and solution.speaks and self.list.exists()
        self.series = [(t, f) for t, f in read_pvd(self.list) if t < solution.t] if goes_on else []
        self.step(solution)

    def step(self, solution: Solution) -> None:
        for name in self.formats:
            file = WRITERS[name](solution, self.folder / f"solution_{solution.steps:08}.{name}")
            if name == "vtu" and solution.speaks:
                self.series.append((solution.t, file.name))
                write_pvd(self.list, self.series)
        self.last = solution.steps

    def finish(self, solution: Solution) -> None:
        if self.last != solution.steps:
            self.step(solution)


class Checkpoint(Callback):
    """Keeps the last two snapshots, at `path` and beside it as ".previous"; both are of good states.

    It is written every `interval` steps or `dt` in time, if one is given, at the end (so also when Ctrl-C or
    SIGTERM ended the run), and after the step during which the signal `on_signal` came.

    Parameters
    ----------
    path : str or path
        The file of the last snapshot.
    interval : int or None
        Every so many steps.
    on_signal : signal or None, default SIGUSR1
        Write after this signal, too.
    **when : float
        `dt`: every so often in the time of the simulation.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Checkpoint("run.h5", interval=100).previous.name
    'run.previous.h5'
    """

    def __init__(self, path: File, interval: int | None = None, on_signal: Any = SIGNAL, **when: Any) -> None:
        super().__init__(interval or (None if when else sys.maxsize), **when)
        self.path, self.on_signal, self.usual = named(path), on_signal, self.interval
        self.previous = self.path.with_suffix(f".previous{self.path.suffix}")
        self.last = -1
        self.handler: Any = None
        # Did a signal ask for it? Of a divided problem all processes have to hear of it first.
        self.asked, self.together = False, False

    def start(self, solution: Solution) -> None:
        self.together = hasattr(solution.semi, "agree")
        # Python lets only the main thread listen to signals.
        if self.on_signal is not None and threading.current_thread() is threading.main_thread():
            self.handler = signal.signal(self.on_signal, self.wanted)

    def wanted(self, number: int, frame: object) -> None:
        """A signal came. The state is whole only between steps, so the next step is made one that counts."""
        self.asked = True
        if not self.together:
            self.interval = 1

    def step(self, solution: Solution) -> None:
        self.interval = self.usual
        fresh = save(solution, self.path.with_suffix(f".new{self.path.suffix}"))
        if solution.speaks:
            if self.path.exists():
                os.replace(self.path, self.previous)
            os.replace(fresh, self.path)
        solution.gather()
        self.last = solution.steps

    def finish(self, solution: Solution) -> None:
        if self.last != solution.steps:
            self.step(solution)
        self.abort(solution)

    def abort(self, solution: Solution) -> None:
        if self.handler is not None and self.on_signal is not None:
            signal.signal(self.on_signal, self.handler)
            self.handler = None
