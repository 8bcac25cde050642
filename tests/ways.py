"""The ways a host expression can run, forced for a block so that tests are deterministic."""

import contextlib

import mirabelle as mb
from mirabelle.arraytypes import dense
from mirabelle.backends.host import run

WAYS = ("cold", "hot")


@contextlib.contextmanager
def running(way):
    """Interpret everything ("cold"), or compile everything, however small, and use threads ("hot")."""
    if way == "cold":
        with mb.settings.changed(compiler="off"):
            yield
        return
    # Two shortcuts for small results stand before the compiler; tests use small results.
    small, direct = run.SMALL, dense.DIRECT_SIZE
    run.SMALL, dense.DIRECT_SIZE = 0, -1
    try:
        with mb.settings.changed(compiler="inline", compile_size=1, compile_after=1, thread_size=64):
            yield
    finally:
        run.SMALL, dense.DIRECT_SIZE = small, direct
