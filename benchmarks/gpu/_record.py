"""What a part has found so far, on disk after each step, so that nothing ends with the process."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.gpu._card import Card

# The exit status that asks for another process: the card's context is lost, or a call never returned.
AGAIN = 3
# How long a call that its time limit could not end may go on before its process is given up.
PATIENCE_S = 8.0
DIED = "The process died."


class ContextLost(Exception):
    """After an illegal access, no call in this process reaches the card any more."""


class Record:
    """What is stored of one part: the cases, and facts about all of them."""

    def __init__(self, part: str, folder: Path) -> None:
        self.path = folder / f"gpu_{part}.json"
        self.content: dict[str, Any] = {"benchmark": f"gpu {part}", "cases": []}

    @classmethod
    def stored(cls, part: str, folder: Path) -> Record:
        record = cls(part, folder)
        if record.path.exists():
            record.content = json.loads(record.path.read_text())
        return record

    @property
    def cases(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.content["cases"]
        return found

    def save(self) -> None:
        unfinished = self.path.with_suffix(".part")
        unfinished.write_text(json.dumps(_plain(self.content), indent=1, allow_nan=False) + "\n")
        unfinished.replace(self.path)


class Recorder(Record):
    """A record in the making. What fails is noted, and the rest goes on.

    `resume` takes over what another process left, and what it was doing when it ended counts as
    failed. Past `soft_limit_s`, `late` is true.
    """

    def __init__(self, part: str, folder: Path, card: Card, resume: bool, soft_limit_s: float) -> None:
        super().__init__(part, folder)
        self.card = card
        self.failures: dict[str, str] = {}
        self._case = ""
        self._soft_end = time.monotonic() + soft_limit_s
        self.content = {
            "benchmark": f"gpu {part}",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": card.facts(),
            "tiny": card.tiny,
            "finished": False,
            "summary": {},
            # The case and the contender at work: who it was if the process dies.
            "running": None,
            # Contenders that took their process with them, by case: not tried again.
            "avoided": {},
            "cases": [],
        }
        before = Record.stored(part, folder).content if resume else {}
        self.content |= {k: before[k] for k in ("date", "avoided", "cases") if k in before}
        if before.get("running"):
            case, who = before["running"]
            if who:
                self.content["avoided"].setdefault(case, {})[who] = DIED
            else:
                self.cases.append({"name": case, "failed": DIED, "failures": {}})
        self.save()

    @property
    def late(self) -> bool:
        """Whether to leave out what takes long and is not ours."""
        return time.monotonic() > self._soft_end

    def case(self, name: str, measure: Callable[[], dict[str, Any]], limit_s: float) -> None:
        """Measure a case unless that is done, and store what was found or why nothing was."""
        if any(c["name"] == name for c in self.cases):
            return
        self._case = name
        self.failures = dict(self.content["avoided"].get(name, {}))
        self._now(name, "")
        start = time.perf_counter()
        try:
            with time_limit(limit_s, lambda: self._given_up("")):
                found = measure()
        except ContextLost:
            self._another_process(f"{name}: the card's context is lost")
        except Exception as error:
            found = {"failed": message(error)}
        took = time.perf_counter() - start
        self.cases.append({"name": name, **found, "failures": self.failures, "took_s": round(took, 2)})
        self.content["running"] = None
        self.save()
        failures = "".join(f"\n    {who}: {why[:200]}" for who, why in self.failures.items())
        say(f"{name}: {found.get('said') or found.get('failed', '')} [{took:.1f} s]{failures}")
        if not self.card.alive():
            self._another_process(f"{name}: the card's context is lost")
        self.card.release()

    def attempt(self, who: str, make: Callable[[], Any], limit_s: float = 30.0) -> Any:
        """What `make` returns; None, and the reason in the record, if it fails or has failed before."""
        if who in self.failures:
            return None
        self._now(self._case, who)
        try:
            with time_limit(limit_s, lambda: self._given_up(who)):
                return make()
        except Exception as error:
            self.failed(who, error)
            return None
        finally:
            self._now(self._case, "")

    def failed(self, who: str, error: Exception) -> None:
        """Note why a contender dropped out."""
        self.failures[who] = message(error)
        if not self.card.alive():
            self.content["avoided"].setdefault(self._case, {})[who] = self.failures[who]
            raise ContextLost

    def _now(self, case: str, who: str) -> None:
        self.content["running"] = [case, who]
        self.save()

    def _given_up(self, who: str) -> None:
        """Called in a thread of its own, when the main one does not come back."""
        why = "It did not return within its time limit."
        if who:
            self.content["avoided"].setdefault(self._case, {})[who] = why
        else:
            self.cases.append({"name": self._case, "failed": why, "failures": self.failures})
        self._another_process(f"{self._case}{who and ', ' + who}: {why}")

    def _another_process(self, why: str) -> NoReturn:
        self.content["running"] = None
        self.save()
        say(f"{why} Going on in another process.")
        os._exit(AGAIN)


@contextlib.contextmanager
def time_limit(seconds: float, give_up: Callable[[], None]) -> Iterator[None]:
    """Raise `TimeoutError` in what takes longer; `give_up` is called if that does not end it.

    A signal is seen between two bytecodes only: a wait for a kernel that never ends is not one.
    Only for the main thread; limits may be nested.
    """

    def late(*_: Any) -> None:
        raise TimeoutError(f"It took longer than {seconds:g} s.")

    watch = threading.Timer(seconds + PATIENCE_S, give_up)
    watch.daemon = True
    watch.start()
    start = time.monotonic()
    before = signal.signal(signal.SIGALRM, late)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds)[0]
    try:
        yield
    finally:
        watch.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, outer - (time.monotonic() - start)))


def _plain(x: Any) -> Any:
    """What JSON can say: no NaN, no infinity, no library's numbers."""
    if isinstance(x, Mapping):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    if x is None or isinstance(x, (bool, int, str)):
        return x
    try:
        number = float(x)
    except (TypeError, ValueError):
        return str(x)
    return number if math.isfinite(number) else None


def message(error: BaseException) -> str:
    """The kind of an error and the first lines of what it says."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {' / '.join(lines[:6])}"[:600]


def say(text: str) -> None:
    print(text, flush=True)
