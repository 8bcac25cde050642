"""Local kernels: what a loop does at one point, a Python function of small arrays and numbers."""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.localarrays import MOST_PATHS, LocalNames, Recorder, Unset, local_array
from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.dispatch import loading
from mirabelle.dispatch.errors import UserFunctionError

# A kernel of more operations is refused: compilers need minutes for functions of such a length.
MOST_OPERATIONS = 60_000

# What a kernel sees of an argument: its intent, the shape of its local array, its dtype.
Given = tuple[Intent, tuple[int, ...], Any]


class LocalProgram:
    """What a kernel does for arguments of certain shapes: a graph, and the nodes of each argument's entries.

    `outputs[i]` is None where argument i is only read; an entry of it is None where the kernel leaves it alone.
    """

    def __init__(self, given: Sequence[Given], graph: Graph, outputs: list[list[int | None] | None]) -> None:
        self.given = given
        self.graph = graph
        self.outputs = outputs

    @property
    def written(self) -> list[int]:
        """All nodes that are written somewhere."""
        return [n for entries in self.outputs if entries for n in entries if n is not None]

    @property
    def operations(self) -> int:
        """How many operations on numbers it takes at each point."""
        return self.graph.operations(self.written)

    def read(self) -> list[list[int]]:
        """For each argument the entries that are needed."""
        found: list[list[int]] = [[] for _ in self.given]
        for n in self.graph.reached(self.written):
            what = self.graph.nodes[n]
            if what[0] == "input":
                found[what[1]].append(what[2])
        return [sorted(x) for x in found]


class LocalKernel:
    """A function that a loop runs at each point. `md.loop` makes one of a plain function by itself.

    >>> from mirabelle import meshdata as md
    >>> @md.local_kernel
    ... def mass(x, y):
    ...     for i in range(2):
    ...         y[i] += x[i] / 2
    >>> mass
    <local kernel mass(x, y)>
    """

    __module__ = "mirabelle.meshdata"
    # May products with constants be collected?
    collects = True

    def __init__(self, function: Callable[..., Any]) -> None:
        if not inspect.isfunction(function):
            raise TypeError(
                f"A loop's kernel is a Python function of small arrays, and {function!r} is a "
                f"{type(function).__name__}. Write a `def`, and give the points first: "
                "`md.loop(points, kernel, ...)`."
            )
        self.python = function
        self.name = function.__name__ if function.__name__ != "<lambda>" else "kernel"
        parameters = list(inspect.signature(function).parameters.values())
        if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
            raise TypeError(f"{self.name}() has *args or keyword-only parameters. Name each parameter.")
        self.parameters = [p.name for p in parameters]
        # What loops make of it, by what they are given.
        self.compiled: dict[Any, Any] = {}
        # What was found out about loops of it (see loops.py).
        self.likes: dict[Any, Any] = {}
        self._programs: dict[Any, LocalProgram] = {}

    def __repr__(self) -> str:
        return f"<local kernel {self.name}({', '.join(self.parameters)})>"

    def program(self, given: Sequence[Given]) -> LocalProgram:
        """What it does with arguments of these intents, shapes and dtypes."""
        key = tuple(given)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = _read(self, key)
        return found


def local_kernel(function: Callable[..., Any]) -> LocalKernel:
    """Make a local kernel of a function, to name it once and use it in several loops.

    Parameters
    ----------
    function : callable
        A plain Python function of small arrays and numbers.

    Returns
    -------
    mb.meshdata.LocalKernel
        It is given to `md.loop`; Python cannot call it. One that is a local kernel already comes back.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> @md.local_kernel
    ... def double(x, y):
    ...     y[0] = 2 * x
    >>> y = mb.zeros(2)
    >>> md.loop(md.Points("mesh", "cell", 2), double, md.READ(mb.HostArray([1.0, 2.0])), md.WRITE(y))
    >>> print(y)
    [2. 4.]
    """
    return function if isinstance(function, LocalKernel) else LocalKernel(function)


def _read(kernel: LocalKernel, given: Sequence[Given]) -> LocalProgram:
    """Run a kernel for all answers to what it asks, and choose between the outcomes."""
    graph = Graph()
    waiting: list[list[bool]] = [[]]
    outcomes: list[tuple[list[int], list[bool], list[list[int] | None]]] = []
    while waiting:
        recorder = Recorder(kernel.name, graph, waiting.pop())
        known = len(recorder.answers)
        outcome = _once(kernel, recorder, given)
        outcomes.append((recorder.asked, recorder.answers, outcome))
        for i in range(known, len(recorder.asked)):
            waiting.append([*recorder.answers[:i], False])
        if len(outcomes) + len(waiting) > MOST_PATHS:
            recorder.too_many_paths()
    outputs: list[list[int | None] | None] = []
    for i, (g, entries) in enumerate(zip(given, _chosen(graph, outcomes, 0), strict=True)):
        outputs.append(
            None
            if entries is None
            else [None if _idle(graph, g, i, j, n) else n for j, n in enumerate(entries)]
        )
    program = LocalProgram(given, graph, outputs)
    if program.operations > MOST_OPERATIONS:
        raise UserFunctionError(
            f"{kernel.name}() takes {program.operations} operations at each point when its loops are written "
            "out, and "
            f"at most {MOST_OPERATIONS} are compiled. Use sums of products (sum factorisation), or several "
            "loops."
        )
    return program


def _chosen(graph: Graph, outcomes: list[Any], depth: int) -> list[list[int] | None]:
    """One outcome of many: where each entry's node is chosen by the answers."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first[2]  # type: ignore[no-any-return]
    yes = _chosen(graph, [o for o in outcomes if o[1][depth]], depth + 1)
    no = _chosen(graph, [o for o in outcomes if not o[1][depth]], depth + 1)
    condition = first[0][depth]
    return [
        None
        if a is None or b is None
        else [graph.apply("where", condition, x, y) for x, y in zip(a, b, strict=True)]
        for a, b in zip(yes, no, strict=True)
    ]


def _idle(graph: Graph, given: Given, argument: int, entry: int, node: int) -> bool:
    """Does the kernel leave an entry as it is?"""
    intent, _, dtype = given
    if intent is Intent.WRITE:
        return False
    if intent is Intent.RW:
        return graph.nodes[node] == ("input", argument, entry)
    value = graph.value_of(node)
    return value is not None and value == intent.neutral(dtype)


def _once(kernel: LocalKernel, recorder: Recorder, given: Sequence[Given]) -> list[list[int] | None]:
    """One run of a kernel: the nodes of what it writes."""
    arguments, starts = [], []
    for i, (intent, shape, dtype) in enumerate(given):
        entries = _entries(recorder, kernel.parameters[i], i, intent, shape, dtype)
        starts.append(entries)
        if not shape and intent is Intent.READ:
            arguments.append(entries[0])
        else:
            arguments.append(local_array(recorder, list(entries), shape or (1,)))
    function = _with_names(kernel.python, recorder, {})
    try:
        returned = function(*arguments)
    except (ValueError, IndexError, TypeError) as e:
        if isinstance(e, UserFunctionError):
            raise
        shown = ", ".join(f"{p}: {g[1]}" for p, g in zip(kernel.parameters, given, strict=True))
        raise UserFunctionError(
            f"{kernel.name}() fails on local arrays of the shapes {shown}: {type(e).__name__}: {e}. A kernel "
            "sees, of each argument, what its map reaches from one point, and indexes it with constants ("
            "choose by a value with np.where)."
        ) from e
    if returned is not None:
        recorder.fail("it returns something. Write results into its arguments: `y[i] += value`.")
    return [_written(recorder, kernel.parameters[i], g, starts[i], arguments[i]) for i, g in enumerate(given)]


def _entries(recorder: Recorder, name: str, i: int, intent: Intent, shape: Any, dtype: Any) -> list[Any]:
    n = math.prod(shape)
    if intent.gathers:
        return [recorder.scalar(recorder.graph.input(i, j)) for j in range(n)]
    if intent is Intent.WRITE:
        return [Unset(recorder, f"{name}[{j}]") for j in range(n)]
    return [intent.neutral(dtype)] * n


def _written(recorder: Recorder, name: str, given: Given, start: list[Any], argument: Any) -> Any:
    if given[0] is Intent.READ:
        if isinstance(argument, np.ndarray) and any(
            a is not b for a, b in zip(np.asarray(argument).reshape(-1), start, strict=True)
        ):
            recorder.fail(f"it writes to {name}, which it promised to read: READ({name}). Say RW or INC.")
        return None
    nodes: list[int] = []
    for j, value in enumerate(np.asarray(argument).reshape(-1)):
        if isinstance(value, Unset):
            recorder.fail(
                f"it does not write {name}[{j}], and promised to: WRITE({name}). Write all of it on every "
                "way, or say RW."
            )
        nodes.append(recorder.node_of(value))
    return nodes


# The names a kernel sees


def _with_names(function: Any, recorder: Recorder, made: dict[Any, Any]) -> Any:
    """The function, for which np, math and mb mean what they mean in a local kernel; so for its helpers."""
    if function in made:
        return made[function]
    new = types.FunctionType(
        function.__code__, {}, function.__name__, function.__defaults__, function.__closure__
    )
    made[function] = new
    scope = {
        k: _local_meaning(v, recorder, made) for k, v in function.__globals__.items() if _matters(k, function)
    }
    new.__globals__.update({"__builtins__": __builtins__, "__name__": function.__module__, **scope})
    if function.__closure__:
        cells = tuple(
            types.CellType(_local_meaning(c.cell_contents, recorder, made)) for c in function.__closure__
        )
        made[function] = replaced = types.FunctionType(
            function.__code__, new.__globals__, function.__name__, function.__defaults__, cells
        )
        replaced.__kwdefaults__ = function.__kwdefaults__
        return replaced
    new.__kwdefaults__ = function.__kwdefaults__
    return new


def _matters(name: str, function: Any) -> bool:
    return name in _names(function.__code__)


@functools.lru_cache(maxsize=256)
def _names(code: types.CodeType) -> frozenset[str]:
    inner = [_names(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def _local_meaning(value: Any, recorder: Recorder, made: dict[Any, Any]) -> Any:
    mirabelle = loading.public()

    if value is np or value is math or value is mirabelle:
        return LocalNames(recorder, value)
    if isinstance(value, LocalKernel):
        value = value.python
    if isinstance(value, types.FunctionType) and value.__module__ not in ("numpy", "mirabelle"):
        return (
            value
            if value.__module__.startswith(("numpy.", "mirabelle."))
            else _with_names(value, recorder, made)
        )
    if hasattr(value, "to_numpy") or (
        hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))
    ):
        raise UserFunctionError(
            f"A local kernel uses an array from outside, a {type(value).__name__}. Pass it as an argument, "
            "`md.READ(a, whole=True)`, or use a NumPy array, whose entries are constants of the kernel."
        )
    return value
