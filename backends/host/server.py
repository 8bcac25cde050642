"""The helper process that compiles kernels: texts in, object code out, one at a time.

It ends with its parent: when its input closes.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever Numba prints must not mix with the answers.
    os.dup2(2, 1)
    from mirabelle.backends.host.compiler import compile_source

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
