"""The helper process that compiles kernels: texts in, object code out, one at a time.

It ends with its parent, at once and whatever it is doing: the system tells it, its input closes, or somebody
else has become its parent.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
import threading
import time
from typing import Any

# How often it is looked whether the parent is still there, in seconds, should nothing else tell.
_LOOK = 0.5


def _mask_tails(text: str) -> None:
    """Have LLVM mask the ends of loops where the processor can: rows of stencils are often short.

    Not of loops over complex numbers: what is masked there is each part by itself, scattered. Nor of
    reductions, which mostly wait for memory: a masked loop takes one vector at a time, others four. (An option
    of the whole process, which compiles nothing but our kernels, one after the other.)
    """
    import llvmlite.binding as llvm

    if llvm.get_host_cpu_features().get("avx512vl"):
        unmasked = not text or "_c8(" in text or "_c16(" in text or text.startswith("def reduce_")
        how = "scalar-epilogue" if unmasked else "predicate-else-scalar-epilogue"
        llvm.set_option("mirabelle", f"-prefer-predicate-over-epilogue={how}")


def _die_with(parent: int) -> None:
    """End when the process that started this one does, should nothing else tell (`background._HELPER`)."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(0)

    try:
        threading.Thread(target=look, daemon=True).start()
    except RuntimeError:
        pass  # (no thread can be started: there are two other ways)


def _requests(stream: Any) -> Any:
    """The requests, one after the other. A thread reads them, to notice the end while one is compiled."""
    found: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def next_one() -> bytes:
        head = stream.read(8)
        body = stream.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else b""
        if not body:
            os._exit(0)  # (in the middle of compiling, too)
        return body

    def read() -> None:
        while True:
            found.put(next_one())

    try:
        threading.Thread(target=read, daemon=True).start()
    except RuntimeError:
        return next_one
    return found.get


def main(parent: int) -> None:
    """Compile what is asked for, until the process ends that asks."""
    _die_with(parent)
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever Numba prints must not mix with the answers.
    os.dup2(2, 1)
    next_request = _requests(sys.stdin.buffer)
    from mirabelle.backends.host import diskcache, kernels
    from mirabelle.backends.host.background import OVERLOAD
    from mirabelle.backends.host.compiler import compile_source

    kernels.COMPILED_HERE = sys.maxsize  # (a helper has no helpers)
    while True:
        number, text, name, functions, entry, folder = pickle.loads(next_request())

        def compiled(text: str = text, name: str = name, functions: Any = functions) -> tuple[bytes, str]:
            if name == OVERLOAD:
                from mirabelle.backends.host import overloadjobs

                _mask_tails("")
                return overloadjobs.compiled_for(text)
            _mask_tails(text)
            return compile_source(text, name, functions)

        code: bytes | None
        try:
            code, symbol, made = diskcache.read_or_make(entry, compiled, folder)
        except Exception as e:
            # (What Numba said of a user's function is told to its user.)
            code, symbol, made = None, getattr(e, "said", ""), True
        answer = pickle.dumps((number, code, symbol, made))
        try:
            answers.write(struct.pack("<Q", len(answer)) + answer)
            answers.flush()
        except OSError:
            os._exit(0)
