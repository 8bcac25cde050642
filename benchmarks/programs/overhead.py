"""What a call of a compiled program of one tiny kernel costs, in microseconds, and one of fifty of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import check, store, take_turns_small, warm_up
from benchmarks._table import show
from benchmarks.programs._compiler import NotThereError, compiler

ELEMENTS = 16
TARGET_US = 10.0
FIFTY = 50


def one(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def fifty(x: Any, y: Any, z: Any) -> Any:
    """So many kernels that depend on each other: each writes memory that the next reads shifted."""
    for k in range(FIFTY):
        source, target = (x, y) if k % 2 == 0 else (y, x)
        target[1:-1] = 0.25 * (source[:-2] + source[2:]) + z[1:-1]
    return x, y


def run(tiny: bool = False, folder: Path | None = None) -> None:
    import mirabelle as mb

    try:
        compiled = compiler()
    except NotThereError as why:
        print(f"overhead: {why}; the others are timed without it")
        compiled = None
    rng = np.random.default_rng(0)
    arrays = [0.25 * rng.random(ELEMENTS) for _ in range(3)]
    rows, record = [], []
    for text, function, kernels in (("x*y + z", one, 1), (f"{FIFTY} statements", fifty, FIFTY)):
        statements: dict[str, tuple[str, dict[str, Any]]] = {}
        expected = function(*[np.array(a) for a in arrays])

        def add(
            name: str, f: Any, make: Any, force: Any = None, text: str = text, expected: Any = expected
        ) -> None:
            """Check a contender, and time it again and again with the same arguments."""
            made = [make(a) for a in arrays]
            result = f(*[make(a) for a in arrays])
            result = force(result) if force else result
            check(f"{text}, {name}", tuple(result) if isinstance(result, (tuple, list)) else result, expected)
            scope = {"f": f, "force": force, **{f"x{i}": a for i, a in enumerate(made)}}
            call = "f(x0, x1, x2)"
            if force is not None:
                call = f"force({call})"
            for _ in range(80):  # past the use count from which small kernels are compiled
                eval(call, dict(scope))
            warm_up(lambda: eval(call, dict(scope)))
            statements[name] = (call, scope)

        def forced(result: Any) -> Any:
            return (
                tuple([mb.materialize(r) for r in result])
                if isinstance(result, tuple)
                else mb.materialize(result)
            )

        add("numpy", function, np.array)
        add("eager", function, mb.HostArray, mb.materialize if kernels == 1 else forced)
        if compiled is not None:
            add("compiled", compiled(function), mb.HostArray)
        if importlib.util.find_spec("jax") and kernels == 1:
            import jax
            import jax.numpy as jnp

            jax.config.update("jax_enable_x64", True)
            add("jax", jax.jit(function), jnp.array, jax.block_until_ready)
        rounds = {"rounds": 3, "round_s": 0.005} if tiny else {}
        t = take_turns_small(statements, **rounds)
        record.append({"program": text, "kernels": kernels, **{k: v.as_json() for k, v in t.items()}})
        rows.append(
            [text]
            + [
                f"{t[k].best * 1e6:.2f} ({t[k].median * 1e6:.2f})" if k in t else "-"
                for k in ("numpy", "eager", "compiled", "jax")
            ]
            + [f"{t['compiled'].best / kernels * 1e6:.2f}" if "compiled" in t else "-"]
        )
    took = record[0].get("compiled", {}).get("best_s")
    met = took is not None and took * 1e6 <= TARGET_US
    note = f"Target: a call of one kernel of {ELEMENTS} elements in at most {TARGET_US:g} µs: "
    note += f"{'met' if met else 'MISSED'}." if took is not None else "not measured."
    show(
        f"Overhead of a program of {ELEMENTS} elements: µs a call, best (median)",
        ["program", "NumPy", "eager", "compiled", "JAX jit", "compiled, a kernel"],
        rows,
        [note],
    )
    if folder is not None:
        store(
            "programs_overhead",
            {"elements": ELEMENTS, "target_us": TARGET_US, "met": met, "cases": record},
            folder,
        )
