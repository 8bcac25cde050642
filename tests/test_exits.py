"""Processes end cleanly, whatever they are doing: a handful of the runs of `python -m tests.exits`."""

import os
import subprocess
import sys

import exits
import pytest

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="what is left is looked up in /proc"
)

# sys.exit, exceptions, statements at exit, daemons.
RUNS = (3, 7, 9, 14, 20)


@pytest.mark.parametrize("number", RUNS)
def test_a_process_ends_cleanly(number):
    assert exits.run(number) is None


def test_an_interrupt_while_python_starts_is_a_clean_end(tmp_path):
    """Python calls it a fatal error; nothing of ours was there yet. Of every other end it is one."""
    customize = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "sitecustomize.py").write_text(customize)
    started = subprocess.run(
        [sys.executable, "-c", "print('begun')"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    status, error = started.returncode, started.stderr
    assert not started.stdout and exits.STARTING in error
    assert exits.clean("interrupt", status, error)
    assert not exits.clean("interrupt", status, error + "Fatal Python error: Segmentation fault")
    assert not exits.clean("interrupt", status, error.replace("KeyboardInterrupt", "ImportError"))
    assert not exits.clean("exception", status, error)


STANDING = """
    import json
    import numpy as np
    import mirabelle as mb
    from mirabelle.backends.host import threads
    x = mb.HostArray(np.arange(1 << 18, dtype=float))
    f = mb.compile(lambda x: mb.sin(x) * 2.0)
    for _ in range(9):
        y = f(x)
    assert threads.started() > 0
    print(json.dumps(True))
"""


def test_helpers_are_of_no_concern_to_an_interpreter_that_ends():
    """They stand by, or sleep, in memory that nobody frees; those in Python are waited for."""
    from children import answer

    assert answer(STANDING, compiler="inline", num_threads=3)


def test_the_worker_that_compiles_is_waited_for():
    """Also if somebody interrupts who waits: nothing is taken down under it."""
    from children import finish, start

    code = """
        import atexit, json, os, signal, threading, time
        from mirabelle.backends.host import background
        worker, done = background.Worker(), []
        atexit.register(lambda: print(json.dumps(done)))
        background.at_end(worker.end, worker.wait)
        def compile_slowly():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            done.append(1)
        worker.submit(compile_slowly)
        worker.submit(lambda: done.append("not begun any more"))
        time.sleep(0.1)
        """
    assert finish(start(code)) == [1]
