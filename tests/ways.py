"""The ways a host expression can run, forced for a block so that tests are deterministic."""

import contextlib
import gc

import mirabelle as mb
from mirabelle.backends.host import shortcuts

WAYS = ("cold", "hot")


@contextlib.contextmanager
def running(way):
    """Interpret everything ("cold"), or compile everything, however small, and use threads ("hot")."""
    if way == "cold":
        shortcuts.known.clear()  # (a statement is of all sizes, and runs the kernel that it was met with)
        with mb.settings.changed(compiler="off"):
            yield
        return
    # What is small is left to NumPy before the compiler is asked; tests use small results.
    with mb.settings.changed(compiler="inline", compile_size=1, compile_after=1, small_size=0, thread_size=64):
        yield


@contextlib.contextmanager
def as_many():
    """Few elements take the way of many: for what a program does at a size that matters, tested with few.

    (What few do by default is in test_counting.py.)
    """
    with mb.settings.changed(immediate_size=0, brief_size=0, small_size=0):
        yield


# So many reductions may wait; with each further one the oldest is computed (dispatch/csrc/reducing.c).
MAY_WAIT = 16
_NUMBERS = mb.HostArray([1.0, 2.0])


@contextlib.contextmanager
def counting_as_many():
    """Count what many elements would do. (And neither what a collection of other tests' garbage lets go, nor a
    reduction of theirs that has waited for so long that the next one has it computed.)"""
    collects = gc.isenabled()
    gc.disable()
    try:
        with as_many():
            for _ in range(MAY_WAIT):
                mb.sum(_NUMBERS)
            with mb.count() as c:
                yield c
    finally:
        if collects:
            gc.enable()
