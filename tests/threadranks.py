"""Ranks that are threads of this process: for what distributed arrays do, without starting any.

They change places as often as CPython can, so that what one of them has half done is seen by the others.
"""

import contextlib
import sys
import threading

import mirabelle as mb
from mirabelle.backends.tcp import local_group


@contextlib.contextmanager
def changing_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def outcomes(ranks, program):
    """What `program(comm)` returned or raised on each of so many ranks."""
    group = local_group(ranks)
    found = [None] * ranks

    def run(comm):
        try:
            with mb.distributed.use_communicator(comm):
                found[comm.rank] = program(comm), None
        except BaseException as e:
            found[comm.rank] = None, e

    threads = [threading.Thread(target=run, args=(c,), name=f"rank {c.rank}", daemon=True) for c in group]
    try:
        with changing_often():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive(), f"{thread.name} waits for ever; the others: {found}"
    finally:
        for comm in group:
            comm.close()
    return found


def on_ranks(ranks, program):
    """What `program(comm)` returned on each of so many ranks."""
    found = outcomes(ranks, program)
    errors = [e for _, e in found if e is not None]
    if errors:
        raise ExceptionGroup(f"on {len(errors)} of {ranks} ranks", errors) from errors[0]
    return [value for value, _ in found]


def fails_on_ranks(ranks, program):
    """What `program(comm)` raised on each of so many ranks; it has to, on all."""
    errors = [e for _, e in outcomes(ranks, program)]
    assert all(e is not None for e in errors), errors
    return errors
