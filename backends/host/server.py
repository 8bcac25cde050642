"""The helper process that compiles kernels: texts in, object code out, one at a time.

It ends with its parent: when its input closes.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys


def _mask_tails() -> None:
    """Have LLVM mask the ends of loops where the processor can: rows of stencils are often short.

    (An option of the whole process: this one compiles nothing but our kernels.)
    """
    import llvmlite.binding as llvm

    if llvm.get_host_cpu_features().get("avx512vl"):
        llvm.set_option("mirabelle", "-prefer-predicate-over-epilogue=predicate-else-scalar-epilogue")


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever Numba prints must not mix with the answers.
    os.dup2(2, 1)
    from mirabelle.backends.host.compiler import compile_source

    _mask_tails()
    while True:
        head = requests.read(8)
        if len(head) < 8:
            return
        (size,) = struct.unpack("<Q", head)
        number, text, name, functions = pickle.loads(requests.read(size))
        code: bytes | None
        try:
            code, symbol = compile_source(text, name, functions)
        except Exception:
            code, symbol = None, ""
        answer = pickle.dumps((number, code, symbol))
        try:
            answers.write(struct.pack("<Q", len(answer)) + answer)
            answers.flush()
        except OSError:
            return


if __name__ == "__main__":
    main()
