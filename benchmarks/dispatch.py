"""What dispatch costs: a generic call beside a bare dictionary look-up and plum's own call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plum

import mirabelle as mb
from benchmarks._measure import store, take_turns_small
from benchmarks._table import show

TARGET = 1.5


class A:
    """An argument type of our own, so that no other method interferes."""


# What is called in the end. Without annotations: where plum sees one of a result, it converts
# the result at every call, which would be unfair to it.
def first(x):  # type: ignore[no-untyped-def]
    return x


def second(x, y):  # type: ignore[no-untyped-def]
    return y


def third(x, y, z):  # type: ignore[no-untyped-def]
    return z


# The hand-made functions: what anybody would write who wants a table of types and nothing else.
TABLE_1: dict[type, Callable[..., Any]] = {A: first, int: first, float: first}
TABLE_2: dict[tuple[type, type], Callable[..., Any]] = {(A, A): second, (A, int): second}
TABLE_3: dict[tuple[type, type, type], Callable[..., Any]] = {(A, A, A): third, (A, A, int): third}


def bare_1(x: Any) -> Any:
    return TABLE_1[type(x)](x)


def bare_2(x: Any, y: Any) -> Any:
    return TABLE_2[type(x), type(y)](x, y)


def bare_3(x: Any, y: Any, z: Any) -> Any:
    return TABLE_3[type(x), type(y), type(z)](x, y, z)


@mb.generic
def generic_1(x: Any) -> Any:
    """One dispatched argument."""


@mb.generic
def generic_2(x: Any, y: Any) -> Any:
    """Two dispatched arguments."""


@mb.generic
def generic_3(x: Any, y: Any, z: Any) -> Any:
    """Three dispatched arguments."""


for function, implementation, arity in ((generic_1, first, 1), (generic_2, second, 2), (generic_3, third, 3)):
    function.core.register(implementation, (A,) * arity)
    function.core.register(implementation, (*(A,) * (arity - 1), int))


def _plum(name: str, implementation: Callable[..., Any], arity: int) -> Any:
    def stub(*args): ...  # type: ignore[no-untyped-def]

    stub.__name__ = name
    f = plum.Function(stub)
    f.register(implementation, signature=plum.Signature(*(A,) * arity))
    f.register(implementation, signature=plum.Signature(*(A,) * (arity - 1), int))
    return f


def override_is_seen() -> bool:
    """An override is seen by the very next call, a new method too, and both go away again."""
    a = A()
    seen = [generic_2(a, 1) == 1]
    with mb.override(generic_2, (A, int), lambda x, y: "overridden"):
        seen.append(generic_2(a, 1) == "overridden")
        seen.append(generic_2(a, a) is a)
    seen.append(generic_2(a, 1) == 1)
    generic_2.core.register(lambda x, y: "new", (A, float))
    seen.append(generic_2(a, 1.0) == "new")
    generic_2.core.unregister((A, float))
    return all(seen)


def run() -> None:
    a = A()
    rows, record = [], []
    for arity, bare, ours, implementation in (
        (1, bare_1, generic_1, first),
        (2, bare_2, generic_2, second),
        (3, bare_3, generic_3, third),
    ):
        theirs = _plum(f"plum_{arity}", implementation, arity)
        arguments = (a,) * arity
        assert bare(*arguments) is ours(*arguments) is theirs(*arguments) is a
        call = f"f({', '.join(['a'] * arity)})"
        t = take_turns_small(
            {
                name: (call, {"f": f, "a": a})
                for name, f in (("dict", bare), ("generic", ours), ("plum", theirs))
            },
            rounds=40,
        )
        ratio = t["generic"].best / t["dict"].best
        record.append(
            {
                "arguments": arity,
                **{k: v.as_json() for k, v in t.items()},
                "ratio_to_dict": ratio,
                "ratio_to_dict_median": t["generic"].median / t["dict"].median,
                "plum_ratio_to_dict": t["plum"].best / t["dict"].best,
            }
        )
        rows.append(
            [arity]
            + [f"{t[k].best * 1e9:.0f} ({t[k].median * 1e9:.0f})" for k in ("dict", "generic", "plum")]
            + [f"{ratio:.2f}", f"{t['plum'].best / t['dict'].best:.1f}"]
        )
    seen = override_is_seen()
    met = seen and all(r["ratio_to_dict"] <= TARGET for r in record)
    show(
        "Dispatch: ns a call, best (median)",
        ["arguments", "dict look-up", "generic", "plum", "generic / dict", "plum / dict"],
        rows,
        [
            f"Target: at most {TARGET} times the bare look-up: {'met' if met else 'MISSED'}.",
            f"An override, and a new method, are seen by the next call: {'yes' if seen else 'NO'}.",
        ],
    )
    store("dispatch", {"target_ratio": TARGET, "met": met, "override_seen": seen, "cases": record})
