"""One case in a fresh process: `python -m benchmarks.dg._one ANSWER OPTIONS` (JSON); what is found is stored
as it is found."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dg._bounds import bounds
from benchmarks.dg._cases import Case, problem

# Of the largest value: others add in another order, and cards' compilers of others contract products and sums.
EQUAL = 2e-11
# The steps that are taken, as a part of the longest stable ones.
CFL = 0.5
# How long the contenders of a case take turns, and how many turns they take at most.
SECONDS, ROUNDS = 4.0, 15

Report = Callable[[str, Any], None]


def measure(case: Case, where: str, who: list[str], quick: bool, report: Report) -> None:
    """Check and time a case: `where` is the type of arrays, `who` are "compiled", "eager", "jax"."""
    import mirabelle as mb

    field = Field(where, quick)
    semi, u = problem(case, getattr(mb, where))
    # On a card nobody disturbs, and what ours take is known before others have compiled anything.
    rounds = [who] if field.card is None else [[w for w in who if w != "jax"], ["jax"] if "jax" in who else []]
    times: dict[str, Any] = {}
    for names in rounds:
        field.calls = {}
        for name in names:
            report(name, prepared(name, case, semi, u, field))
        times |= field.times()
        report("times", times)
        report("summary", summary(case, times))


def prepared(name: str, case: Case, semi: Any, u: Any, field: Field) -> dict[str, Any]:
    """What there is to say of a contender; its calls wait in `field` unless something was wrong."""
    found: dict[str, Any] = {}
    try:
        found = {"compiled": compiled, "eager": eager, "jax": jax_calls}[name](case, semi, u, field)
        agrees(found)
    except Exception as error:
        found["failed"] = f"{type(error).__name__}: {error}"[:500]
    if "failed" in found:
        field.drop(name)
    return found


def compiled(case: Case, semi: Any, u: Any, field: Field) -> dict[str, Any]:
    """The right-hand side and a whole step, each as one program."""
    import mirabelle as mb

    step_of, t, dt = method_of(case), semi.scalar(0.0), semi.scalar(step_length(semi, u))
    rhs = mb.compile(lambda u, t: semi.rhs(u, t))
    step = mb.compile(lambda u, t, dt: step_of(semi.rhs, u, t, dt))
    found: dict[str, Any] = {}
    for name, f, args in (("rhs", rhs, (u, t)), ("step", step, (u, t, dt))):
        begin = time.perf_counter()
        made = f(*args)
        field.wait()
        found[name] = {"first_s": time.perf_counter() - begin, **counted(f, args)}
        found[name]["difference"] = field.difference(name, mb.to_numpy(made))
        field.calls[f"compiled {name}"] = lambda f=f, args=args: f(*args)  # type: ignore[misc]
    return found


def eager(case: Case, semi: Any, u: Any, field: Field) -> dict[str, Any]:
    """The same functions, each expression a kernel of its own when it is needed."""
    import mirabelle as mb

    step_of, t, dt = method_of(case), semi.scalar(0.0), semi.scalar(step_length(semi, u))
    found: dict[str, Any] = {}
    for name, f in (("rhs", lambda: semi.rhs(u, t)), ("step", lambda: step_of(semi.rhs, u, t, dt))):
        begin = time.perf_counter()
        made = mb.materialize(f())
        field.wait()
        took = time.perf_counter() - begin
        with mb.count() as c:
            mb.materialize(f())
        found[name] = {"first_s": took, **counts(c), "difference": field.difference(name, mb.to_numpy(made))}
        field.calls[f"eager {name}"] = lambda f=f: mb.materialize(f())  # type: ignore[misc]
    return found


def jax_calls(case: Case, semi: Any, u: Any, field: Field) -> dict[str, Any]:
    """The same operator as a user of JAX writes it."""
    from benchmarks.dg._plain_programs import PHYSICS, compiled_by_jax

    if case.physics not in PHYSICS:
        return {"failed": f"{case.physics} is not written for JAX."}
    if not importlib.util.find_spec("jax"):
        return {"failed": "JAX is not installed."}
    import jax

    import mirabelle as mb

    jax.config.update("jax_enable_x64", True)
    rhs, step = compiled_by_jax(case.physics, semi)
    v, dt = jax.numpy.asarray(mb.to_numpy(u)), jax.numpy.asarray(step_length(semi, u))
    found: dict[str, Any] = {"version": jax.__version__, "platform": jax.devices()[0].platform}
    for name, f, args in (("rhs", rhs, (v,)), ("step", step, (v, dt))):
        begin = time.perf_counter()
        made = np.asarray(f(*args))
        found[name] = {"first_s": time.perf_counter() - begin, "difference": field.difference(name, made)}
        field.waits[f"jax {name}"] = jax.block_until_ready
        field.calls[f"jax {name}"] = lambda f=f, args=args: f(*args)  # type: ignore[misc]
    return found


def agrees(found: dict[str, Any]) -> None:
    """Refuse to time who has other results."""
    for name in ("rhs", "step"):
        off = found.get(name, {}).get("difference", 0.0)
        if not off <= EQUAL:
            raise ValueError(f"Its {name} differs from that of the first by {off:.1e} of the largest value.")


def method_of(case: Case) -> Callable[..., Any]:
    """One step: MFEM's ex18 takes RK4, the others a low-storage method of five stages."""
    from mirabelle.dg.time.methods import RK4, CarpenterKennedy54

    return (RK4() if case.physics == "vortex" else CarpenterKennedy54()).step


def step_length(semi: Any, u: Any) -> float:
    return float(semi.max_dt(u, CFL))


def stages_of(case: Case) -> int:
    return 4 if case.physics == "vortex" else 5


def counts(c: Any) -> dict[str, int]:
    return {
        n: getattr(c, n) for n in ("launches", "temporaries", "bytes_read", "bytes_written", "library_calls")
    }


def counted(f: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """What one call of a compiled program launches and moves, and the memory it plans for what it does not
    return."""
    import mirabelle as mb

    program = f.program(*args)
    with mb.count() as c:
        mb.materialize(f(*args))
    # What runs as one graph of a card, or natively, does not count its bytes: the plan knows them.
    steps = program.explain().steps
    return {
        **counts(c),
        "bytes_read": sum(s.read for s in steps),
        "bytes_written": sum(s.written for s in steps),
        "steps": len(program.plan.steps),
        "temporary_bytes": program.plan.arena_bytes,
        "peak_bytes": program.plan.peak_bytes,
        "seconds": dict(program.seconds),
    }


class Field:
    """Who takes turns, and how time is told: by the clock, or on a card."""

    def __init__(self, where: str, quick: bool) -> None:
        self.quick = quick
        self.calls: dict[str, Callable[[], Any]] = {}
        self.waits: dict[str, Callable[[Any], Any]] = {}  # what ends when a call's result is there
        self.first: dict[str, np.ndarray] = {}
        self.card: Any = None
        if where == "CuArray":
            from benchmarks.gpu._card import Card

            self.card = Card(quick)

    def wait(self) -> None:
        if self.card:
            self.card.synchronize()

    def drop(self, who: str) -> None:
        self.calls = {n: c for n, c in self.calls.items() if not n.startswith(who)}

    def difference(self, name: str, made: np.ndarray) -> float:
        """The largest difference from what the first contender made, relative to the largest value."""
        wanted = self.first.setdefault(name, made)
        return float(np.abs(made - wanted).max() / np.abs(wanted).max())

    def times(self) -> dict[str, Any]:
        """Seconds a call of each."""
        calls = self.calls
        seconds, rounds = (0.2, 3) if self.quick else (SECONDS, ROUNDS)
        if self.card is not None:
            return self._on_card(calls, seconds, rounds)
        from benchmarks._measure import take_turns, warm_up

        ready = {}
        for name, call in calls.items():
            wait = self.waits.get(name)
            ready[name] = call if wait is None else (lambda call=call, wait=wait: wait(call()))  # type: ignore[misc]
            warm_up(ready[name], 1 if self.quick else 2)
        return {n: t.as_json() for n, t in take_turns(ready, rounds, seconds * len(ready) / 2).items()}

    def _on_card(self, calls: dict[str, Callable[[], Any]], seconds: float, rounds: int) -> dict[str, Any]:
        from benchmarks.gpu._card import Contender

        if not self.card:  # a simulated one, whose times mean nothing
            return {
                name: {"best_s": took, "median_s": took}
                for name, took in zip(calls, map(once, calls.values()), strict=True)
            }
        failed: dict[str, Any] = {}
        found = self.card.take_turns(
            {n: Contender(c, self.waits.get(n)) for n, c in calls.items()},
            lambda name, error: failed.update({name: {"failed": f"{type(error).__name__}: {error}"[:300]}}),
            rounds=rounds,
            round_s=0.02,
            limit_s=seconds,
        )
        made = {n: {"best_s": min(t.events), "median_s": t.seconds, **t.as_json()} for n, t in found.items()}
        return made | failed


def once(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def summary(case: Case, times: dict[str, Any]) -> dict[str, Any]:
    """Unknowns a second of right-hand sides; a step counts as many as it has stages."""
    found: dict[str, Any] = {}
    for name, timing in times.items():
        if "median_s" not in timing:
            continue
        stages = stages_of(case) if name.endswith("step") else 1
        found[name] = {
            "ms": timing["median_s"] * 1e3,
            "unknowns_per_s": case.unknowns * stages / timing["median_s"],
        }
    moved = bounds(case.physics, case.order, case.unknowns)
    return {"who": found, "bounds_bytes": moved}


def vortex_error(case: Case, final: float, steps: int) -> float:
    """The error of the vortex after a while against where it began, as MFEM prints it: L2 of all fields
    together."""
    import mirabelle as mb
    from benchmarks.dg._cases import vortex

    semi, u = problem(case, mb.HostArray)
    t, dt = semi.scalar(0.0), semi.scalar(final / steps)
    step = mb.compile(lambda u, t, dt: method_of(case)(semi.rhs, u, t, dt))
    for _ in range(steps):
        u = step(u, t, dt)
    norms = semi.norms(u, lambda x, t: vortex(x), 0.0)
    return float(np.sqrt(semi.volume * sum(l2 * l2 for l2, _ in norms.values())))


def main() -> None:
    answer, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    case = Case(options["physics"], options["order"], tuple(options["cells"]))
    found: dict[str, Any] = case.as_json()

    def report(key: str, value: Any) -> None:
        found[key] = value
        answer.write_text(json.dumps(found, default=float))

    if cores := options.get("cores"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if "final" in options:
        report("error", vortex_error(case, options["final"], options["steps"]))
    else:
        measure(case, options["where"], options["who"], options["quick"], report)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of libraries neither hold it up nor fail at its end
