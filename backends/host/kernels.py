"""Getting kernels: from memory, from disk, or compiled, without making the caller wait.

Compiling takes about 50 ms of Python, which in a thread of this process would stall every
other statement (the interpreter has one lock). So a helper process compiles, and what it made
is picked up by whoever asks for a kernel; until then the interpreter serves. Where no process can be started a
thread compiles, and where no thread can be started either, nobody does, until it is tried again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from mirabelle.backends.codegen.source import Source
from mirabelle.backends.host import background, compiler, diskcache
from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings

# Kernels by source text. A value is a kernel, its code until it is asked for, PENDING while it compiles, or
# FAILED. (The code of functions of `mb.jit` is ELSEWHERE, on disk.)
PENDING = object()
FAILED = object()
ELSEWHERE = object()


class Refused(Exception):
    """What Numba `said` of a function of a user's that it does not compile."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


_kernels: dict[Any, Any] = {}
_lock = threading.Lock()
compilations = 0


def get(
    source: Source,
    wait: bool = False,
    functions: dict[str, Any] | None = None,
) -> Any:
    """The kernel of a source, or None while it is being compiled (or cannot be)."""
    if functions is not None:
        return _of_users(source, functions)
    key = source.text
    found = _kernels.get(key)
    if found is None:
        found = _find(key, source, wait)
    if found is PENDING:
        found = _await(key) if wait else _polled(key)
    if type(found) is _Code:
        code = found
        at_once = wait or settings.compiler == "inline" or getattr(_here, "only_known", None) is False
        found = _mapped(key, code, at_once)
        if found is FAILED and code.is_stored:  # for another machine
            _kernels.pop(key, None)
            found = _find(key, source, wait, anew=True)
    if found is FAILED:
        _report(key, source)
    return None if found is PENDING or found is FAILED else found


_here = threading.local()


@contextlib.contextmanager
def only_known(only: bool = True) -> Iterator[None]:
    """Within the block, in this thread, nothing is asked to be compiled while something else is.

    For statements that are run until a better way to run them is there: their kernels would only delay it.
    (With False what is within is that better way.)
    """
    before = getattr(_here, "only_known", False)
    _here.only_known = only
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


def _of_users(source: Source, functions: dict[str, Any]) -> Any:
    """A kernel that calls users' functions, which live in this process.

    The first are compiled here, at once. What LLVM leaves behind of each stays for good (see codememory.py), so
    that further ones are compiled by a helper, if it can be told what the functions are: a helper ends after
    some kernels. Who asks keeps the kernel, since the functions may be let go.
    """
    if counters.active:
        counters.add(compilations=1)
    if enough_here():
        found = _by_helper(source, functions)
        if found is not None:
            return found
    count_here()
    return _compile_here(source, {**_builtins(source), **_called_from(functions)}, None)


# So many functions of users, and kernels that call such, are compiled in this process.
COMPILED_HERE = 16
_compiled_here = 0


def count_here() -> None:
    """Count what was compiled of users' functions in this process."""
    global _compiled_here
    _compiled_here += 1


def enough_here() -> bool:
    """Has so much been compiled in this process that helpers should do the rest?"""
    return _compiled_here >= COMPILED_HERE and settings.compiler == "process"


def _called_from(functions: dict[str, Any]) -> dict[str, Any]:
    from mirabelle.arraytypes.usercode.userfunctions import jitted

    return {label: jitted(f) for label, f in functions.items()}


def _by_helper(source: Source, functions: dict[str, Any]) -> Any:
    """A kernel that calls users' functions, compiled by a helper; None if that cannot be."""
    from mirabelle.backends.host import overloadjobs

    described = {label: overloadjobs.described(f) for label, f in functions.items()}
    if None in described.values():
        return None
    entry = diskcache.entry_key([compiler.target_tag(), source.text, *map(repr, sorted(described.items()))])
    key = ("user functions", entry)
    stored = diskcache.read(entry)
    if stored is None:
        where = diskcache.folder()
        called: Any = {**_builtins(source), **described}
        if not ask(background.Job(key, source, called, entry, None if where is None else str(where))):
            return None
        found = _await(key)
        _kernels.pop(key, None)
        if type(found) is not _Code:
            return None
        stored = found.code, found.symbol
    compiler.remember(source.text)
    try:
        return compiler.load(*stored)
    except OSError:
        return None


def _builtins(source: Source) -> dict[str, str]:
    return {label(op): op.name for op in source.functions if _is_builtin(op)}


def _find(key: Any, source: Source, wait: bool, anew: bool = False) -> Any:
    if settings.compiler == "off":
        return None
    builtins = _builtins(source)
    entry = diskcache.entry_key([compiler.target_tag(), source.text])
    stored = None if anew else diskcache.read(entry)
    if stored is not None:
        return _keep(key, _Code(*stored, source.text, is_stored=True))
    mode = settings.compiler
    if getattr(_here, "only_known", False) and mode != "inline" and compiling():
        return None
    if counters.active and key not in _kernels:
        counters.add(compilations=1)
    if mode == "inline" or (wait and mode != "process"):
        return _keep(key, _compile_here(source, dict(builtins), entry))
    with _lock:
        if key in _kernels:
            return _kernels[key]
        _kernels[key] = PENDING
    where = diskcache.folder()
    job = background.Job(key, source, dict(builtins), entry, None if where is None else str(where))
    if mode == "process" and _helpers.submit(job):
        return PENDING
    if _worker.submit(functools.partial(_compile_or_fail, job)):
        return PENDING
    # No process and no thread can be started now: it is tried again when somebody asks next.
    _kernels.pop(key, None)
    return _keep(key, _compile_here(source, dict(builtins), entry)) if wait else None


def label(op: Any) -> str:
    from mirabelle.backends.codegen.source import function_name

    return function_name(op)


def _is_builtin(op: Any) -> bool:
    from mirabelle.backends.codegen.program import is_user_function

    return not is_user_function(op)


def _keep(key: Any, kernel: Any) -> Any:
    _kernels[key] = kernel
    return kernel


class _Code(NamedTuple):
    """A kernel that was compiled elsewhere, or before, and nobody has asked for yet."""

    code: bytes
    symbol: str
    text: str
    is_stored: bool = False


# What links code takes 30 ms to be imported, as long as a short program. So statements do without their stored
# kernels until one of them is asked for again, or so many have been.
UNLINKED = 8
_unlinked: set[Any] = set()


def _mapped(key: Any, found: _Code, at_once: bool) -> Any:
    """Its function; while what links code is not there yet, something to wait for, or nothing."""
    if not at_once and not compiler.can_link():
        if key not in _unlinked and len(_unlinked) < UNLINKED:
            _unlinked.add(key)
            return None
        if _keep_when_ready(key, found) is PENDING:
            return PENDING
    compiler.remember(found.text)
    try:
        return _keep(key, compiler.load(found.code, found.symbol))
    except OSError:
        return _keep(key, FAILED)


def _keep_when_ready(key: Any, found: _Code) -> Any:
    """Code, as soon as it can be linked without a pause; until then it is to be waited for."""
    if not compiler.can_link():
        _kernels[key] = PENDING
        if _worker.submit(compiler.get_ready) and _worker.submit(functools.partial(_keep, key, found)):
            return PENDING
    return _keep(key, found)


def _poll(seconds: float = 0.0) -> None:
    """Take what helpers have answered, waiting for an answer so long."""
    global compilations
    answers, lost = _helpers.poll(seconds)
    for job, code, symbol, made in answers:
        if job.source.name == background.OVERLOAD:
            _keep(job.key, ELSEWHERE if code is not None else Refused(symbol) if symbol else FAILED)
            continue
        compilations += made
        if code is None:
            _keep(job.key, FAILED)
        else:
            _keep_when_ready(job.key, _Code(code, symbol, job.source.text))
    # A helper died: what it had not answered is compiled in a thread.
    for job in lost:
        if job.source.name == background.OVERLOAD:
            _keep(job.key, FAILED)  # (by who wants it)
        elif not _worker.submit(functools.partial(_compile_or_fail, job)):
            _kernels.pop(job.key, None)


def _polled(key: Any) -> Any:
    _poll()
    return _kernels.get(key)


def ask(job: background.Job) -> bool:
    """Have a helper do a job that is none yet; false if none can."""
    with _lock:
        if job.key in _kernels:
            return _kernels[job.key] is PENDING
        _kernels[job.key] = PENDING
    if _helpers.submit(job):
        return True
    _kernels.pop(job.key, None)
    return False


def is_known(key: Any) -> bool:
    """Was somebody asked for this?"""
    return key in _kernels


def is_coming(key: Any) -> bool:
    """Is it being made? Raises what was `Refused`."""
    found = _kernels.get(key)
    if found is PENDING:
        found = _polled(key)
    if type(found) is Refused:
        raise Refused(*found.args)
    return found is PENDING


def wait_for(key: Any) -> None:
    """Wait until it is made, if it is being made."""
    if key in _kernels:
        _await(key)


def compiling(functions: bool = False) -> bool:
    """Is a kernel being compiled? Or a function of `mb.jit`, if `functions` count?"""
    _poll()
    return any(k is PENDING and (functions or type(key) is str) for key, k in list(_kernels.items()))


def _compile_or_fail(job: background.Job) -> None:
    """Compile where nobody waits for an exception."""
    try:
        _keep(job.key, _compile_here(job.source, dict(job.builtins), job.entry))
    except Exception:
        _keep(job.key, FAILED)


def _await(key: Any, timeout: float = 60.0) -> Any:
    deadline = time.monotonic() + timeout
    while _kernels.get(key) is PENDING and time.monotonic() < deadline:
        _poll(0.002)
    return _kernels.get(key)


def _compile_here(source: Source, functions: dict[str, Any], entry: str | None) -> Any:
    global compilations

    def made() -> tuple[bytes, str]:
        return compiler.compile_source(source.text, source.name, functions)

    if entry is None:
        code, symbol, fresh = *made(), True
    else:
        code, symbol, fresh = diskcache.read_or_make(entry, made, diskcache.folder())
    compilations += fresh
    return compiler.load(code, symbol)


def known(source: Source) -> str:
    """Where a source's kernel is: "in memory", "compiling" or "not compiled"."""
    _poll()
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


def settle(timeout: float = 60.0, functions: bool = True) -> None:
    """Wait until nothing compiles any more (but for functions of `mb.jit`, if they do not count)."""
    deadline = time.monotonic() + timeout
    while compiling(functions) and (left := deadline - time.monotonic()) > 0:
        _poll(min(left, 0.005))


def clear() -> None:
    """Forget every kernel in memory."""
    _kernels.clear()


_helpers = background.Helpers()
_worker = background.Worker()


def _end() -> None:
    _worker.end()
    _helpers.stop()


background.at_end(_end, lambda: _worker.wait())


def _after_fork() -> None:
    """A forked child has no use for its parent's helpers, and must not answer for them."""
    global _helpers, _worker, _lock
    _helpers.forget()
    _helpers, _worker, _lock = background.Helpers(), background.Worker(), threading.Lock()
    for key in [k for k, v in _kernels.items() if v is PENDING]:
        del _kernels[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
