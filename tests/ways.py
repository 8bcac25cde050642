"""The ways a host expression can run, forced for a block so that tests are deterministic."""

import contextlib

import mirabelle as mb

WAYS = ("cold", "hot")


@contextlib.contextmanager
def running(way):
    """Interpret everything ("cold"), or compile everything, however small, and use threads ("hot")."""
    if way == "cold":
        with mb.settings.changed(compiler="off"):
            yield
        return
    # What is small is left to NumPy before the compiler is asked; tests use small results.
    with mb.settings.changed(compiler="inline", compile_size=1, compile_after=1, small_size=0, thread_size=64):
        yield
