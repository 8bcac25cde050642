"""The loop over time steps: it knows a right-hand side and a method, and everything else is a callback.

>>> import mirabelle as mb
>>> from mirabelle import dg
>>> semi = dg.Semidiscretization(dg.box(8, periodic=True), dg.Advection((1.0,)), dg.Solver(3))
>>> wave = lambda x, t: (mb.sin(2 * mb.pi * (x[0] - t)),)
>>> solution = solve(semi, (0.0, 0.1), wave, cfl=0.9)
>>> solution.t, solution.errors(wave)["u"].l2 < 1e-3
(0.1, True)
>>> solve(semi, 0.2, solution, dt=0.01).errors(wave)["u"].l2 < 1e-3
True
"""

from __future__ import annotations

import copy
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from numbers import Real
from pathlib import Path
from typing import Any, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg.returned import ensure
from mirabelle.dg.spelled import Array, Fields, Semidiscretization, Time
from mirabelle.dg.time.callbacks import Callback, as_callback
from mirabelle.dg.time.control import Carry, FixedStep, all_finite, control_of
from mirabelle.dg.time.methods import CarpenterKennedy54, RDPK3SpFSAL35, RungeKutta
from mirabelle.dg.time.solution import (
    BlowUp,
    Solution,
    where_negative_speed,
    where_not_finite,
    where_not_positive,
)

# After so many steps processes of a divided problem ask each other whether a signal came.
EVERY = 8


def solve(
    semi: Semidiscretization,
    tspan: float | tuple[float, float],
    initial: Callable[[Fields, Any], Any] | mb.AbstractArray | Solution,
    method: RungeKutta | None = None,
    dt: float | None = None,
    cfl: float | None = None,
    tolerance: float | None = None,
    callbacks: Iterable[Callback | Callable[[Solution], Any]] = (),
    compiled: bool = True,
    max_steps: int | None = None,
    cfl_interval: int = 1,
) -> Solution:
    """Integrate a semidiscretization over tspan = (t0, t1), or to a time t1.

    `initial` is a function f(x, t), a state, or a `Solution` to go on from. Steps are `dt` long, `cfl` times
    what `semi.max_dt` allows, or as long as an embedded method's error stays at `tolerance`; they are shortened
    to land on t1 and on the times that callbacks with a `dt` want. One number a step is read from where the
    arrays are, or one in `cfl_interval` steps; it tells when a state is not finite, which raises `BlowUp`.
    Initial conditions are states of the equations (`Equations.positive`), or refused.

    Ctrl-C and SIGTERM end the simulation after the step, and callbacks finish (a `Checkpoint` writes): the
    solution is `interrupted`. After Ctrl-C it is returned, for people to look at. SIGTERM means the process:
    the program ends there as `sys.exit(143)` does, with files closed and the status that a shell gives to that
    signal, and no later `solve` begins. If the program has a handler of its own for the signal, that is called
    in place of the exit, and the solution is returned. A further Ctrl-C ends the simulation at once; signals
    that are ignored stay ignored, and only the main thread listens.

    Parameters
    ----------
    semi : Semidiscretization
        What is solved.
    tspan : float or pair of float
        From when to when; one number is the end.
    initial : callable, array or Solution
        What it begins with: a function of `(x, t)`, a state, or a solution to go on from.
    method : RungeKutta or None
        How steps are made; None chooses one.
    dt : float or None
        The length of steps.
    cfl : float or None
        Their length as a part of what `semi.max_dt` allows.
    tolerance : float or None
        The error that steps may make, for embedded methods.
    callbacks : iterable of callables, default ()
        What is called after steps.
    compiled : bool, default True
        Compile steps to programs.
    max_steps : int or None
        Stop after so many; None is no limit.
    cfl_interval : int, default 1
        Work the length of steps out every so many.

    Returns
    -------
    dg.Solution
        A new one, at the time that was reached: `u` is its state, `t` the time, `steps` how many there
        were. `initial` stays as it is.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> semi, wave, tspan, _ = advection.setup(order=2, cells=4, cell="line", end=0.1)
    >>> solution = dg.solve(semi, tspan, wave, cfl=0.5)
    >>> solution.t
    0.1
    """
    method = method or (CarpenterKennedy54() if tolerance is None else RDPK3SpFSAL35())
    ensure(isinstance(method, RungeKutta), f"solve: method={method!r} is no method, such as method=dg.RK4().")
    callbacks = [callbacks] if isinstance(callbacks, Callback) or callable(callbacks) else callbacks
    ensure(
        isinstance(callbacks, Iterable), f"solve: callbacks={callbacks!r} is no list: callbacks=[dg.Alive()]."
    )
    control = control_of(method, dt, cfl, tolerance, cfl_interval)
    steps = f"dt={dt}, cfl={cfl}, tolerance={tolerance}, cfl_interval={cfl_interval}, max_steps={max_steps}"
    divided: Any = semi if hasattr(semi, "processes") else None  # (then all begin together, or none)
    if divided:
        divided.compare(tspan=tspan, method=method, steps=steps, compiled=compiled)
    with mb.distributed.together(divided.processes) if divided else nullcontext():
        solution = starting(semi, tspan, initial, method)
    return Run(solution, control, [as_callback(c) for c in callbacks], compiled).go(max_steps)


def starting(semi: Any, tspan: Any, initial: Any, method: RungeKutta) -> Solution:
    """The solution before the first step, checked; its span is what to integrate over."""
    if isinstance(initial, str | Path):
        raise ValueError(
            f"solve: {str(initial)!r} is a path. Read it: solve(semi, t1, dg.load({str(initial)!r}, semi))."
        )
    before = initial if isinstance(initial, Solution) else Solution(semi, cast(Any, None))
    pair: Any = tuple(tspan) if isinstance(tspan, Iterable) else (before.t, tspan)
    numbers = len(pair) == 2 and all(isinstance(t, Real) and math.isfinite(t) for t in pair)
    said = f"solve: tspan={tspan!r} has to be t1, or (t0, t1) with t0 <= t1, all finite: solve(semi, 1.0, f)."
    ensure(numbers and pair[0] <= pair[1], said)
    begin, end = map(float, pair)
    if before is initial and abs(begin - before.t) > 1e-12 * max(1.0, abs(begin)):
        raise ValueError(
            f"solve: tspan begins at {begin}, and the solution to go on from is at {before.t}. "
            f"Go on from there: solve(semi, {end}, solution)."
        )
    u = before.u if before is initial else semi.state(initial, begin) if callable(initial) else initial
    u = u if isinstance(u, mb.AbstractArray) else semi.put(u)
    expected = (len(semi.equations.names), *semi.x[0].shape)
    if tuple(u.shape) != expected:
        raise ValueError(
            f"solve: the initial state has the shape {tuple(u.shape)}, and states of this semidiscretization "
            f"have {expected} (fields, nodes, cells). A state of another mesh or order is no start: give a "
            "function, solve(semi, tspan, lambda x, t: (...))."
        )
    was = before.semi
    if was is not semi and (was.element, was.mesh.fingerprint) != (semi.element, semi.mesh.fingerprint):
        raise ValueError(
            "solve: the solution to go on from is of another mesh, or of another kind of nodes. Give the "
            "semidiscretization what it had, or start anew: solve(semi, tspan, lambda x, t: (...))."
        )
    if bad := where_not_finite(semi, u):
        raise ValueError(
            f"solve: the initial condition is not finite: {bad}. The usual causes are a division by zero or "
            "the root of a negative number at a node; look at it with semi.state(initial, t)."
        )
    # What goes on is the run that it would have been: it is not asked what its steps are not asked.
    if before is not initial and (bad := where_not_positive(semi, u)):
        e = semi.equations
        raise ValueError(
            f"solve: the initial condition is no state of {type(e).__name__}, in which "
            f"{' and '.join(e.positive(semi.fields(u)))} are positive: {bad}. Initial conditions are the "
            f"fields ({', '.join(e.names)}). Of primitive ones, they are "
            f"semi.equations.conservative(({', '.join(e.primitive_names)})); where polynomials overshoot, a "
            "limiter mends them: solve(semi, tspan, semi.limit(semi.state(initial)))."
        )
    if before is not initial and (bad := where_negative_speed(semi, u)):
        raise ValueError(
            f"solve: {bad}, and neither speeds nor diffusivities are below zero: steps would go backwards. "
            "Return absolute values, `return mb.abs(...)`."
        )
    solution = copy.copy(before)
    solution.semi, solution.u, solution.method = semi, mb.materialize(u), method
    solution.t, solution.span = float(begin), (float(begin), float(end))
    solution.stopped, solution.interrupted, solution.timers = "", False, type(before.timers)()
    return solution


class Run:
    """One call of `solve`: the solution as it goes on, and what decides about its steps."""

    def __init__(
        self, solution: Solution, control: FixedStep, callbacks: list[Callback], compiled: bool
    ) -> None:
        self.solution, self.control, self.callbacks, self.compiled = solution, control, callbacks, compiled
        self.semi, (begin, self.end) = cast(Any, solution.semi), solution.span
        # What steps are made of: of a divided problem, this process's part.
        self.local = getattr(solution.semi, "local", solution.semi)
        self.tiny = 1e-13 * max(abs(self.end), self.end - begin)
        self.targets = {id(c): next_multiple(c.dt, begin) for c in callbacks if c.dt}
        self.carry: Carry = ()
        self.shown: Any = None  # what `carry` is shown as: the solution's state
        self.good = copy.copy(solution)
        self.best: Any = None  # its state, as steps have it
        self.called = False  # were callbacks called after the last step?

    def go(self, max_steps: int | None) -> Solution:
        """Step until the end, or until somebody asks to stop."""
        solution = self.solution
        last = math.inf if max_steps is None else solution.steps + max_steps
        with stopping_on_signals(solution):
            try:
                self.call("start", self.callbacks)
                while solution.t < self.end and not solution.stopped:
                    self.step()
                    self.agree()
                    if solution.steps >= last and solution.t < self.end:
                        solution.request_stop(f"after {max_steps} steps, as max_steps says")
                if self.carry:
                    self.verify()
                self.show()
                self.call("finish", self.callbacks)
            except BaseException:
                self.show()
                self.call("abort", self.callbacks)
                raise
        return solution

    def call(self, what: str, callbacks: list[Callback]) -> None:
        """Call one method of callbacks, in their order."""
        for callback in callbacks:
            with self.solution.timers(callback.name):
                getattr(callback, what)(self.solution)

    def agree(self) -> None:
        """Let all processes of a divided problem do the same, of whom one may have been told to stop.

        They ask each other after callbacks, and now and then for what signals said.
        """
        if hasattr(self.semi, "agree") and (self.called or self.solution.steps % EVERY == 0):
            self.semi.agree(self.solution, self.callbacks)

    def step(self) -> None:
        """One step that counts: it is tried until its control accepts it."""
        solution, control, semi = self.solution, self.control, self.local
        t = semi.scalar(solution.t)
        # At first, or where a callback set another state.
        if not self.carry or (solution.u is not None and self.shown is not solution.u):
            self.carry = control.begin(semi, self.taken(solution.u), t)
            solution.rhs_calls += len(self.carry) - 1
        judged = solution.control != repr(control) or solution.steps % control.interval == 0
        if solution.control != repr(control):
            solution.dt = control.first(semi, solution.method, self.carry, self.end - solution.t)
            solution.control, solution.history = repr(control), (1.0, 1.0)
        accepted, dt, span, now = False, 0.0, 0.0, solution.t
        carry = self.carry
        while not accepted:
            if not solution.dt > self.tiny:
                raise self.blow_up(self.carry if control.early else carry)
            span, now = self.fitted(math.inf if judged and control.early else solution.dt)
            carry, verdict, dt = self.attempt(judged, t, span)
            accepted = not judged or control.accepts(verdict)
            solution.dt = control.after(verdict, dt, solution) if judged else solution.dt
            solution.rejected += not accepted and not control.early
        if dt < span:
            now = solution.t + dt
        if judged and control.early:
            self.good, self.best = copy.copy(solution), self.carry[0]
        due = self.due(now)
        self.carry, solution.t, solution.steps = carry, now, solution.steps + 1
        self.called = bool(due)
        self.shown = solution.u = carry[0] if self.local is self.semi else cast(Any, None)
        if due or not control.early:
            self.verify()
        if due:
            self.show()
        self.call("step", due)
        self.targets.update((id(c), next_multiple(c.dt, now)) for c in due if c.dt)

    def verify(self) -> None:
        """See that the state is finite, before anybody sees it: of what is judged late, it has been."""
        if self.control.early and not all_finite(self.local, self.carry[0]):
            raise self.blow_up(self.carry)
        self.good, self.best = copy.copy(self.solution), self.carry[0]

    def taken(self, u: Array) -> Any:
        """A state as steps take it."""
        return u if self.local is self.semi else self.semi.taken(u)

    def as_shown(self, u: Array) -> Any:
        """What steps made, as a state."""
        return u if self.local is self.semi else self.semi.shown(u)

    def show(self) -> None:
        """Let the solution have its state, which that of a divided problem gets when somebody is to see it."""
        if self.solution.u is None:
            self.shown = self.solution.u = self.as_shown(self.carry[0])

    def fitted(self, dt: float) -> tuple[float, float]:
        """The step to take, at most dt (or a hair more, not to leave a hair), and the time it leads to."""
        t, stop = self.solution.t, min((self.end, *self.targets.values()))
        stop = self.end if self.end - stop < self.tiny else stop
        return (stop - t, stop) if dt >= (stop - t) * (1 - 1e-9) else (dt, t + dt)

    def due(self, now: float) -> list[Callback]:
        """The callbacks to call after a step that leads to this time."""
        steps = self.solution.steps + 1
        return [
            c
            for c in self.callbacks
            if (c.interval and steps % c.interval == 0) or (c.dt and self.targets[id(c)] <= now + 1e-9 * c.dt)
        ]

    def attempt(self, judged: bool, t: Time, span: float) -> tuple[Carry, float, float]:
        """Run the program of a step, at most so long; its verdict if it is read, and its length."""
        solution, key = self.solution, (self.solution.method, self.control, judged, self.compiled)
        programs = vars(self.local).setdefault("step_programs", {})
        name = "steps" if key in programs else "first step"
        if key not in programs:
            programs[key] = program(self.local, *key)
        with solution.timers(name):
            *carry, read = programs[key](self.carry, t, self.local.scalar(span))
            read = mb.to_numpy(read) if judged else np.array([0.0, span])
        solution.rhs_calls += solution.method.stages if solution.method else 0
        return tuple(carry), float(read[0]), span if read[1] >= read.dtype.type(span) else float(read[1])

    def blow_up(self, carry: Carry) -> BlowUp:
        """The error that says what happened, with the last good solution."""
        semi, good, last = self.semi, self.good, self.as_shown(carry[0])
        self.show()
        if good.u is None:
            good.u = self.as_shown(self.best)
        signs = [where_not_finite(semi, u) or where_not_positive(semi, u) for u in (good.u, last)]
        where = next(filter(None, signs), "")
        if signs[0]:
            where += ", already before that step"
        if not where and (bad := where_not_finite(semi, semi.rhs(last, semi.scalar(good.t)))):
            where = f"the right-hand side of {bad}"
        first, end = good.steps + 1, self.solution.steps
        which = f"step {first}" if end <= first else f"steps {first} to {end}"
        return BlowUp(
            f"The solution blew up in {which}, at t = {good.t:.6g}: "
            f"{where or 'no step is short enough'}. Usually steps are longer than the stable ones, or a "
            "shock or near vacuum has no limiter: try a smaller cfl, dt or tolerance, or limiters=. "
            f"The last finite state, of step {good.steps} at t = {good.t:.6g}, is error.solution.",
            good,
        )


def program(semi: Any, method: Any, control: FixedStep, judged: bool, compiled: bool) -> Callable[..., Any]:
    """A whole step as one function (*carry, verdict), compiled if wanted; what is not judged has no verdict."""

    def step(carry: Carry, t: Time, span: Any) -> tuple[Any, ...]:
        carry, verdict = control.advance(semi, method, carry, t, span, judged)
        return (*carry, verdict)

    if not compiled:
        return step
    return mb.compile(step)


def next_multiple(dt: float, t: float) -> float:
    """The first multiple of dt after t."""
    return dt * (math.floor(t / dt + 1e-9) + 1)


@contextmanager
def stopping_on_signals(solution: Solution) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the simulation after the step, then pass SIGTERM on to whom it was for.

    Only Ctrl-C means more when it comes again: `timeout` and launchers of processes send SIGTERM twice.
    """
    came: list[int] = []

    def stop(number: int, frame: Any) -> None:
        if came and number == signal.SIGINT:
            pass_on(number)
        came.append(number)
        reason = f"interrupted by {signal.Signals(number).name}"
        if hasattr(solution.semi, "agree"):  # (all processes are to hear of it first)
            solution.told = solution.told or reason
            return
        solution.interrupted = True
        solution.request_stop(reason)

    def pass_on(number: int) -> None:
        before = listeners[number]
        if callable(before):
            before(number, None)
        else:
            raise SystemExit(128 + number)

    listeners: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # only that one may handle signals
        listeners = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # What is ignored stays so, and None is a listener that Python does not know and could not give back.
    listeners = {n: who for n, who in listeners.items() if who not in (signal.SIG_IGN, None)}
    for number in listeners:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, before in listeners.items():
            signal.signal(number, before)
        for number in dict.fromkeys(came):
            if listeners[number] is not signal.default_int_handler:  # Ctrl-C is answered: the solution is there
                pass_on(number)
