"""Who runs a kernel: NumPy, mirabelle, Numba and JAX, each from the one text of the program."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.npkernels._kernel import Kernel

Results = tuple[Any, ...]


@dataclass(frozen=True)
class Contender:
    """`arguments` makes what one run needs, outside the clock; `run` ends with every result computed."""

    arguments: Callable[[], Sequence[Any]]
    run: Callable[[Sequence[Any]], Results]


def _arguments(kernel: Kernel, inputs: Sequence[Any], make: Callable[[Any], Any]) -> Callable[[], list[Any]]:
    """Arrays that the program only reads are made once, those it writes to anew for each run."""
    changing = [n in kernel.writes for n in kernel.parameters]
    arrays = [isinstance(x, np.ndarray) for x in inputs]
    kept = [make(x) if a and not c else x for x, a, c in zip(inputs, arrays, changing, strict=True)]

    def fresh() -> list[Any]:
        return [make(x) if a and c else x for x, a, c in zip(kept, arrays, changing, strict=True)]

    return fresh


def numpy_contender(kernel: Kernel, inputs: Sequence[Any]) -> Contender:
    return Contender(_arguments(kernel, inputs, np.array), lambda a: kernel.run(kernel.plain, np, a))


def mirabelle_contender(kernel: Kernel, inputs: Sequence[Any]) -> Contender:
    import mirabelle as mb

    def run(arguments: Sequence[Any]) -> Results:
        results = kernel.run(kernel.program, mb, arguments)
        return tuple([mb.materialize(r) if isinstance(r, mb.AbstractArray) else r for r in results])

    return Contender(_arguments(kernel, inputs, mb.HostArray), run)


def numba_contender(kernel: Kernel, inputs: Sequence[Any]) -> Contender:
    compiled = getattr(_numba_module(kernel.plain.__module__), kernel.name)

    def program(*arguments: Any) -> Any:
        return compiled(*arguments[kernel.takes_namespace :])

    def run(arguments: Sequence[Any]) -> Results:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "faster on contiguous arrays": it is the program as it is
            return kernel.run(program, np, arguments)

    return Contender(_arguments(kernel, inputs, np.array), run)


class _ForNumba(ast.NodeTransformer):
    """Numba knows NumPy as a global, not as an argument: `xp` is taken out of signatures and calls."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.args.args = [a for a in node.args.args if a.arg != "xp"]
        node.decorator_list = [ast.Name("njit", ast.Load())]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.args = [a for a in node.args if not (isinstance(a, ast.Name) and a.id == "xp")]
        return node


@functools.cache
def _numba_module(name: str) -> Any:
    """A family's module with every function under `numba.njit`."""
    import numba

    module = sys.modules[name]
    text = ast.fix_missing_locations(_ForNumba().visit(ast.parse(inspect.getsource(module))))
    made = types.ModuleType(f"{name} under Numba")
    made.__dict__.update(njit=numba.njit, xp=np)
    exec(compile(text, str(module.__file__), "exec"), made.__dict__)
    return made


def jax_contender(kernel: Kernel, inputs: Sequence[Any]) -> Contender:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    fixed = [None if isinstance(x, np.ndarray) else x for x in inputs]

    @jax.jit
    def compiled(arrays: list[Any]) -> Any:
        left = iter(arrays)
        return kernel.run(kernel.plain, jnp, [next(left) if x is None else x for x in fixed])

    arrays = [jnp.array(x) for x in inputs if isinstance(x, np.ndarray)]
    return Contender(lambda: arrays, lambda a: tuple(jax.block_until_ready(compiled(a))))


PEERS: dict[str, Callable[[Kernel, Sequence[Any]], Contender]] = {
    "numba": numba_contender,
    "jax": jax_contender,
}


def contenders(kernel: Kernel, inputs: Sequence[Any], peers: Sequence[str]) -> dict[str, Contender]:
    """NumPy and mirabelle always; JAX only where the program changes no array."""
    chosen = [p for p in PEERS if p in peers and (p != "jax" or kernel.jax)]
    return {
        "numpy": numpy_contender(kernel, inputs),
        "mirabelle": mirabelle_contender(kernel, inputs),
        **{p: PEERS[p](kernel, inputs) for p in chosen},
    }
