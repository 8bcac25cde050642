"""Generated kernels run by Numba's own simulator of CUDA, threads and barriers being real ones there.

Run in a process of its own, with NUMBA_ENABLE_CUDASIM=1. Memory and scalar functions are those of the
simulated card; which thread this is, barriers and shared memory are the simulator's.
"""

import json
import os
import re
import warnings

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

import mirabelle as mb
from mirabelle.backends.gpu import simulator

_REGISTERS = "\n".join(
    f"def {name}_{axis}():\n    return cuda.{of}.{axis}"
    for name, of in (
        ("thread", "threadIdx"),
        ("block", "blockIdx"),
        ("threads", "blockDim"),
        ("blocks", "gridDim"),
    )
    for axis in "xyz"
)
_WORDS = f"{_REGISTERS}\ndef barrier():\n    cuda.syncthreads()\n"
_OURS = re.findall(r"^def (\w+)", _WORDS, flags=re.MULTILINE)
launched = []


class Integer:
    """int64: a dtype for shared arrays; addresses and indices stay Python's integers."""

    dtype = np.dtype(np.int64)

    def __call__(self, x):
        return simulator._integer(x)


class Kernel:
    """A kernel's source as one of Numba's."""

    def __init__(self, driver, source, functions):
        self.name = source.name
        scope = {**functions, "cuda": cuda, "i8": Integer(), **dict.fromkeys(_OURS)}
        known = simulator._Names(simulator._Machine(driver.memory))
        code = compile(source.text, f"<{source.name}>", "exec")
        for part in (code, *[c for c in code.co_consts if hasattr(c, "co_names")]):
            for name in part.co_names:
                if name not in scope and name not in _BUILTIN:
                    try:
                        scope[name] = known[name]
                    except KeyError:
                        pass  # an attribute, or a function of the source itself
        exec(_WORDS, scope)
        exec(code, scope)
        self.function = cuda.jit(scope[source.name])

    def run(self, arguments, grid, block):
        launched.append(self.name.partition("_")[0])
        self.function[tuple(grid), tuple(block)](*arguments)


_BUILTIN = frozenset(("complex", "abs", "range", "min", "max", "float", "int", "bool", "element"))


def check(mine, expected):
    got = mb.to_numpy(mine)
    np.testing.assert_allclose(got, expected, rtol=1e-13 if got.dtype.itemsize >= 8 else 1e-5, strict=True)


def programs():
    rng = np.random.default_rng(0)
    for d in ("f8", "i4", "u2", "b1", "c16"):
        a, b = ((rng.normal(size=(12, 40)) * 9).astype(d) for _ in range(2))
        x, y = mb.CuArray(a), mb.CuArray(b)
        check(x & y if d == "b1" else x * y + x, a & b if d == "b1" else a * b + a)
        check(x[1:, ::3] == y[:-1, ::3], a[1:, ::3] == b[:-1, ::3])
        check(mb.where(x.T == y.T, x.T, y.T[:1]), np.where(a.T == b.T, a.T, b.T[:1]))
        check(x[:, :36] + mb.CuArray(a[:, :36].T.copy()).T, a[:, :36] + a[:, :36])
        check(x[[3, 1, 1], 2:], a[[3, 1, 1], 2:])
        for axis in (None, 0, 1) if d in ("f8", "i4") else (1,):
            check(mb.sum(x, axis=axis), np.sum(a, axis=axis))
            check(mb.any(x == y, axis=axis), np.any(a == b, axis=axis))
    a = rng.normal(size=5000)
    x = mb.CuArray(a)
    check(mb.max(mb.abs(x - 1)), np.max(np.abs(a - 1)))
    check(mb.broadcast(lambda t: t * t if t > 0 else -t, x), np.where(a > 0, a * a, -a))
    check(mb.cumulative_sum(x), np.cumsum(a))


def main():
    # (NumPy's own switch for these does not reach the simulator's threads)
    warnings.simplefilter("ignore", RuntimeWarning)
    simulator.SimulatedDriver.load = lambda self, source, functions, contract=False: Kernel(
        self, source, functions
    )
    programs()
    print(json.dumps({kind: launched.count(kind) for kind in sorted(set(launched))}))


if __name__ == "__main__":
    main()
