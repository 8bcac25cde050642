"""How a program ends on all ranks when it fails on one.

The process that fails tells the others before it goes, and waits a little for them to come to their end too,
so that they can say where they were; then it ends them. MPI itself would wait for ever.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import threading
import time
from typing import Any

from mirabelle.backends.mpi.environment import library
from mirabelle.backends.mpi.watch import watches

# Seconds that the others have to end by themselves, after a failure.
GRACE = 2.0
# So many seconds a launcher gets to pass on what was said before it is told to stop all.
HEARD = 0.2
# Seconds that MPI has to end after that.
PATIENCE = 5.0
# Seconds after which a process that waits at its end says so: others may wait for messages from it.
FAREWELL = 0.05

_hooked = False
_failed = False


def install() -> None:
    """Have failures of this process told to others. Once; what was there before is called first."""
    global _hooked
    if _hooked:
        return
    _hooked = True
    before, before_in_threads = sys.excepthook, threading.excepthook

    def failed(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        _announce()
        before(kind, error, trace)
        if not (hasattr(sys, "ps1") or sys.flags.interactive):  # a prompt goes on
            _tell(error)

    def thread_failed(args: threading.ExceptHookArgs) -> None:
        before_in_threads(args)
        if args.exc_value is not None and args.exc_type is not SystemExit and args.thread is not None:
            concerned = [w for w in watches if args.thread.ident in w.threads]
            for watch in concerned:
                watch.tell(args.exc_value, tuple(range(watch.size)))

    sys.excepthook = failed
    threading.excepthook = thread_failed
    atexit.register(_leave)


def _announce() -> None:
    MPI = _running()
    if MPI is not None and MPI.COMM_WORLD.size > 1:
        with contextlib.suppress(Exception):
            print(f"Rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size} failed:", file=sys.stderr, flush=True)


def _tell(error: BaseException) -> None:
    global _failed
    _failed = True
    for watch in watches:
        watch.tell(error, tuple(range(watch.size)))
    MPI = _running()
    if MPI is not None and not watches and MPI.COMM_WORLD.size > 1:
        # The others may wait for us without looking at failures: while they make a communicator, say.
        _abort(MPI)


def _abort(MPI: Any) -> None:
    """Stop all ranks, once the launcher has had time to read what this one said: it drops the rest then."""
    _flush()
    time.sleep(HEARD)
    MPI.COMM_WORLD.Abort(1)


def _running() -> Any:
    """MPI, if this process has started it and not yet ended."""
    MPI = sys.modules.get("mpi4py.MPI")
    return MPI if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized() else None


def _leave() -> None:
    """At the end of the program: wait for the others, but not for ever if something failed."""
    MPI = _running()
    if MPI is None or not watches:
        return
    waiting = [(watch, watch.channel.Ibarrier()) for watch in watches]
    began = time.perf_counter()
    said = False
    while waiting := [(watch, request) for watch, request in waiting if not request.Test()]:
        waited = time.perf_counter() - began
        for watch, _ in waiting:
            watch.listen()
            if waited > FAREWELL and not said:
                watch.say_farewell()
        said = said or waited > FAREWELL
        if _failed and waited > GRACE:
            print(
                f"The others did not end within {GRACE:g} s after the failure of rank {MPI.COMM_WORLD.rank}; "
                "they are stopped.",
                file=sys.stderr,
            )
            _abort(MPI)
        time.sleep(min(1e-4 + waited / 16, 0.01))
    for watch in watches:
        watch.listen()
    if _failed or any(watch.count_lost() for watch in watches):
        _end_mpi()


def _end_mpi() -> None:
    """End MPI while the memory that it may still touch is there: Python frees it before MPI ends by itself.

    It may also wait for messages that nobody will ever take: not longer than PATIENCE.
    """
    _flush()
    with open(os.devnull, "w") as nowhere:
        # The one clock that ends a process while MPI keeps Python from running.
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=nowhere)
        library().Finalize()
        faulthandler.cancel_dump_traceback_later()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
