"""Getting kernels: from memory, from disk, or compiled, without making the caller wait.

Compiling takes about 50 ms of Python, which in a thread of this process would stall every
other statement (the interpreter has one lock). So a helper process compiles, and what it made
is picked up from its answer; until then the interpreter serves.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from mirabelle.backends.codegen.source import Source
from mirabelle.backends.host import compiler, diskcache
from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings

# Kernels by source text. A value is a kernel, PENDING while it compiles, or FAILED.
PENDING = object()
FAILED = object()
_kernels: dict[Any, Any] = {}
_lock = threading.Lock()
compilations = 0


def get(
    source: Source,
    wait: bool = False,
    functions: dict[str, Any] | None = None,
) -> Any:
    """The kernel of a source, or None while it is being compiled (or cannot be)."""
    key = source.text if functions is None else (source.text, *functions.values())
    found = _kernels.get(key)
    if found is None:
        found = _find(key, source, wait, functions)
    if found is PENDING and wait:
        found = _await(key)
    if found is FAILED:
        _report(key, source)
    return None if found is PENDING or found is FAILED else found


_here = threading.local()


@contextlib.contextmanager
def only_known() -> Iterator[None]:
    """Within the block, in this thread, nothing is asked to be compiled while something else is.

    For statements that are run until a better way to run them is there: their kernels would only delay it.
    """
    before = getattr(_here, "only_known", False)
    _here.only_known = True
    try:
        yield
    finally:
        _here.only_known = before


_reported: set[Any] = set()


def _report(key: Any, source: Source) -> None:
    """Say once that a kernel does not compile: the results are right, but not as fast as they could be."""
    if key not in _reported:
        _reported.add(key)
        warnings.warn(
            f"The kernel {source.name} did not compile and is run by NumPy on blocks instead. This is a "
            "mistake in mirabelle: please report it with the source that `mb.explain(expression)` prints.",
            RuntimeWarning,
            stacklevel=6,
        )


def _find(key: Any, source: Source, wait: bool, functions: dict[str, Any] | None) -> Any:
    if settings.compiler == "off" and functions is None:
        return None
    builtins = {label(op): op.name for op in source.functions if _is_builtin(op)}
    if functions is not None:
        if counters.active:
            counters.add(compilations=1)
        # User functions live in this process: they are compiled here, and only kept in memory.
        return _keep(key, _compile_here(source, {**builtins, **functions}, None))
    entry = diskcache.entry_key([compiler.target_tag(), source.text])
    stored = diskcache.read(entry)
    if stored is not None:
        try:
            compiler.remember(source.text)
            return _keep(key, compiler.load(*stored))
        except OSError:
            pass  # written for another machine: compiled anew
    mode = settings.compiler
    if getattr(_here, "only_known", False) and mode != "inline" and PENDING in list(_kernels.values()):
        return None
    if counters.active and key not in _kernels:
        counters.add(compilations=1)
    if mode == "inline" or (wait and mode != "process"):
        return _keep(key, _compile_here(source, dict(builtins), entry))
    with _lock:
        if key in _kernels:
            return _kernels[key]
        _kernels[key] = PENDING
    if mode == "process" and _server.submit(key, source, builtins, entry):
        return PENDING
    thread = threading.Thread(
        target=lambda: _compile_or_fail(key, source, dict(builtins), entry),
        daemon=True,
        name="mirabelle-compiler",
    )
    thread.start()
    return PENDING


def label(op: Any) -> str:
    from mirabelle.backends.codegen.source import function_name

    return function_name(op)


def _is_builtin(op: Any) -> bool:
    from mirabelle.backends.codegen.program import is_user_function

    return not is_user_function(op)


def _keep(key: Any, kernel: Any) -> Any:
    _kernels[key] = kernel
    return kernel


def _compile_or_fail(key: Any, source: Source, functions: dict[str, Any], entry: str) -> None:
    """Compile where nobody waits for an exception."""
    try:
        _keep(key, _compile_here(source, functions, entry))
    except Exception:
        _keep(key, FAILED)


def _await(key: Any, timeout: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout
    while _kernels.get(key) is PENDING and time.monotonic() < deadline:
        time.sleep(0.002)
    return _kernels.get(key)


def _compile_here(source: Source, functions: dict[str, Any], entry: str | None) -> Any:
    global compilations
    code, symbol = compiler.compile_source(source.text, source.name, functions)
    compilations += 1
    if entry is not None:
        diskcache.write(entry, code, symbol)
    return compiler.load(code, symbol)


def known(source: Source) -> str:
    """Where a source's kernel is: "in memory", "compiling" or "not compiled"."""
    found = _kernels.get(source.text)
    return (
        "does not compile"
        if found is FAILED
        else "not compiled"
        if found is None
        else "compiling"
        if found is PENDING
        else "in memory"
    )


def settle(timeout: float = 60.0) -> None:
    """Wait until nothing compiles any more."""
    deadline = time.monotonic() + timeout
    while any(k is PENDING for k in list(_kernels.values())) and time.monotonic() < deadline:
        time.sleep(0.005)


def clear() -> None:
    """Forget every kernel in memory."""
    _kernels.clear()


class _Server:
    """The helper process: requests go to its standard input, answers come from its output."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.broken = False
        self.waiting: dict[int, tuple[Any, Source, dict[str, Any], str]] = {}
        self.lock = threading.Lock()
        self.number = 0
        self.outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def start(self) -> bool:
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mirabelle.backends.host.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                close_fds=True,
                # The helper must find what this process found, wherever it was started.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        except OSError:
            self.broken = True
            return False
        if hasattr(os, "setpriority"):
            # Compiling can wait; the statement that is being interpreted cannot.
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, 5)
        threading.Thread(target=self.send, args=(self.process,), daemon=True).start()
        threading.Thread(target=self.read, args=(self.process,), daemon=True).start()
        return True

    def submit(self, key: Any, source: Source, builtins: dict[str, str], entry: str) -> bool:
        with self.lock:
            if self.broken or (self.process is None and not self.start()):
                return False
            self.number += 1
            self.waiting[self.number] = (key, source, dict(builtins), entry)
            request = pickle.dumps((self.number, source.text, source.name, builtins))
            self.outgoing.put(struct.pack("<Q", len(request)) + request)
        return True

    def send(self, process: subprocess.Popen[bytes]) -> None:
        """Hand over what is to be compiled: the pipe may be full, and nobody else shall wait for that."""
        assert process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # (it died, which whoever reads its answers sees, too)
            while True:
                process.stdin.write(self.outgoing.get())
                process.stdin.flush()

    def read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while True:
            head = process.stdout.read(8)
            if len(head) < 8:
                break
            (size,) = struct.unpack("<Q", head)
            body = process.stdout.read(size)
            if len(body) < size:
                break
            number, code, symbol = pickle.loads(body)
            with self.lock:
                key, source, _, entry = self.waiting.pop(number)
            self.accept(key, source, entry, code, symbol)
        # The helper died: what it had not answered is compiled in a thread.
        with self.lock:
            self.broken = True
            rest = list(self.waiting.values())
            self.waiting.clear()
        for key, source, builtins, entry in rest:
            _compile_or_fail(key, source, builtins, entry)

    def accept(self, key: Any, source: Source, entry: str, code: bytes | None, symbol: str) -> None:
        global compilations
        if code is None:
            _keep(key, FAILED)
            return
        compilations += 1
        diskcache.write(entry, code, symbol)
        compiler.remember(source.text)
        try:
            _keep(key, compiler.load(code, symbol))
        except OSError:
            _keep(key, FAILED)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(Exception):
                process.kill()
                process.wait(1)


class _Servers:
    """Several helpers, where there are processors for them: another starts when one has enough to do."""

    def __init__(self) -> None:
        processors = os.cpu_count() or 1
        self.servers = [_Server() for _ in range(min(processors, max(2, processors // 2), 4))]

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The first helper."""
        return self.servers[0].process

    def submit(self, key: Any, source: Source, builtins: dict[str, str], entry: str) -> bool:
        # (A helper takes a second to start: two kernels are sooner compiled by one that is there.)
        known = [s for s in self.servers if not s.broken]
        free = [s for s in known if s.process is not None and len(s.waiting) < _ENOUGH]
        for server in (*free, *[s for s in known if s.process is None], *sorted(known, key=_load)):
            if server.submit(key, source, builtins, entry):
                return True
        return False

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


# How many kernels one helper has waiting before another starts.
_ENOUGH = 3


def _load(server: _Server) -> int:
    return len(server.waiting)


_server = _Servers()
atexit.register(lambda: _server.stop())


def _after_fork() -> None:
    """A forked child has no use for its parent's helper, and must not answer for it."""
    global _server, _lock
    _server, _lock = _Servers(), threading.Lock()
    for key in [k for k, v in _kernels.items() if v is PENDING]:
        del _kernels[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
