"""Calls of library routines in a graph: what they return, and how they are run.

What a routine returns is found by running it: on what it is given, where that depends on no argument of the
program; else once, on other numbers of the same shapes and dtypes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import VIEWS, DenseArray, wrap
from mirabelle.arraytypes.distributed.communicators import Alone, use_communicator
from mirabelle.arraytypes.library import registered, routine_of, scan
from mirabelle.arraytypes.programs.errors import TraceError, because_of, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Node, Slot, frozen
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

# Routines whose results have as many elements as the values say.
_SHAPED_BY_VALUES = frozenset(
    (
        "nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts", "unique_inverse",
        "unique_values", "union1d", "intersect1d", "setdiff1d", "setxor1d", "bincount", "compress", "extract",
        "trim_zeros", "csr_from_dense", "csr_from_triples", "csr_times_csr", "csr_rows",
        "csr_combined", "csr_joined", "csr_block", "places",
    )
)  # fmt: skip


class Found:
    """What a call returns: `outputs` are the shapes and dtypes of its arrays, `values` their views if known."""

    __slots__ = ("nest", "outputs", "values")

    def __init__(self, nest: Any, outputs: Any, values: Any) -> None:
        self.nest = nest
        self.outputs = outputs
        self.values = values

    def rebuilt(self, make: Callable[[int], Any]) -> Any:
        """The nest of results, each array made from its number."""
        return _filled(self.nest, make)


def _filled(nest: Any, make: Callable[[int], Any]) -> Any:
    if isinstance(nest, Slot):
        return make(nest.number)
    if isinstance(nest, (list, tuple)):
        return tuple([_filled(x, make) for x in nest])
    return nest


def results_of(family: Any, kind: str, name: str, template: Any, operands: list[Node]) -> Found:
    """What a call returns."""
    inner = family.inner
    if not any(x.bound for x in operands):
        views = [evaluated_node(inner, x) for x in operands]
        values: list[Any] = []
        nest = _sorted_out(run_call(inner, kind, name, template, views), values)
        return Found(nest, None, values)
    if name in _SHAPED_BY_VALUES or (name == "repeat" and isinstance(template[0][1], Slot)):
        raise TraceError(
            because_of(
                f"{name}() returns as many elements as the values say, and is called",
                more=" A mask can be kept as a mask: mb.where(mask, x, 0)." if name in _OF_MASKS else "",
            )
        )
    specs = tuple([(x.shape, x.dtype) for x in operands])
    nest, outputs, numbers = _inferred(inner, kind, name, _Template(template), specs)
    if numbers:
        raise TraceError(
            because_of(f"{name}() returns something that is no array and depends on values, and is called")
        )
    return Found(nest, outputs, None)


class _Template:
    """A template as a key."""

    __slots__ = ("key", "nest")

    def __init__(self, nest: Any) -> None:
        self.nest = nest
        self.key = frozen(nest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Template) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@functools.lru_cache(maxsize=4096)
def _inferred(inner: Any, kind: str, name: str, template: _Template, specs: Any) -> Any:
    """The nest of results and the shapes and dtypes of its arrays, found by running the call once."""
    if name.startswith("csr_"):
        samples = _sparse_samples(template.nest, specs)
    else:
        samples = [_sample(shape, dtype) for shape, dtype in specs]
    if name == "polyfit":
        # (Through points of which all are the same there is no line.)
        for x in samples:
            x[...] = np.arange(x.size).reshape(x.shape) if x.dtype.kind in "iu" else x
    if name == "toeplitz_solve":
        samples[0][..., samples[0].shape[-1] // 2] += 4
    if name == "linalg.lstsq" and samples[0].ndim == 2:
        # (How many squares of what remains there are depends on the rank: it is mostly the greatest.)
        samples[0][...] = np.eye(*samples[0].shape)
    values: list[Any] = []
    try:
        # (Others may have found it before, and would not answer.)
        with np.errstate(all="ignore"), use_communicator(Alone()):
            views = [inner._upload(x) for x in samples]
            nest = _sorted_out(run_call(inner, kind, name, template.nest, views), values)
    except Exception as e:
        raise TraceError(
            f"{name}() in {shown_line(user_line())} cannot be part of a program: what it returns is found by "
            f"running it on other numbers of the same shapes, which failed: {type(e).__name__}: {e}"
        ) from e
    outputs = tuple([(tuple(v.shape), np.dtype(v.dtype)) for v in values])
    return nest, outputs, _has_numbers(nest)


def _has_numbers(nest: Any) -> bool:
    """Is there something beside arrays (a number, factors in a form of the library's own)?"""
    if isinstance(nest, (list, tuple)):
        return any(map(_has_numbers, nest))
    return not isinstance(nest, (Slot, str, type(None)))


def _sparse_samples(template: Any, specs: Any) -> list[np.ndarray]:
    """Operands of a routine of sparse matrices: the first three are one with a diagonal."""
    samples = [_sample(shape, dtype) for shape, dtype in specs]
    if len(samples) > 2 and samples[2].ndim == 1:
        data, indices, indptr = samples[:3]
        rows, n = max(indptr.size - 1, 1), indices.size
        options = template[1]
        shape = options.get("shape") or (rows, options.get("columns", rows))
        columns = max(int(shape[1]), 1)
        indptr[...] = [min(i * columns, n - n * (rows - i) // rows) for i in range(indptr.size)]
        data *= data.dtype.type(data.dtype.kind == "b" or 0.01)
        for i, (low, high) in enumerate(itertools.pairwise(indptr)):
            first = min(i, columns - int(high - low))
            indices[low:high] = range(first, first + int(high - low))
            if low < high and 0 <= i - first < high - low:
                data[low + i - first] = 1
    return samples


def _sample(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Numbers that routines can do something with: a regular matrix, places that exist."""
    if dtype.kind in "iu":
        return np.zeros(shape, dtype)
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    data = np.empty(shape, dtype)
    data.reshape(-1)[...] = np.linspace(0.25, 0.5, data.size)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        data *= 1e-3
        data = data + np.swapaxes(data, -1, -2) + np.eye(shape[-1]).astype(dtype)
    return data.astype(dtype)


def _sorted_out(result: Any, values: list[Any]) -> Any:
    """The nest of results with slots for arrays, whose views are added to `values`."""
    if isinstance(result, DenseArray):
        result = verbs.leaf_of(result).view
    if isinstance(result, (tuple, list)):
        return tuple([_sorted_out(r, values) for r in result])
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if isinstance(result, np.ndarray) or type(result) in VIEWS:
        values.append(result)
        return Slot(len(values) - 1)
    return result


def run_call(inner: Any, kind: str, name: str, template: Any, views: list[Any]) -> Any:
    """Run a call on views of the inner family."""
    args, options = filled(template, views)
    if kind == "routine":
        return routine_of(inner, name)(*args, **options)
    return KINDS[kind](inner, *args, **options)


def prepared(inner: Any, kind: str, name: str, template: Any) -> Callable[[list[Any]], Any] | None:
    """What runs a call on views, for one that runs often: None where views are nested in its arguments."""
    args, options = template
    nests = (list, tuple, dict, Slot)
    if any(isinstance(x, nests[:3]) for x in args) or any(isinstance(x, nests) for x in options.values()):
        return None
    run = routine_of(inner, name) if kind == "routine" else functools.partial(KINDS[kind], inner)
    numbers = [x.number if isinstance(x, Slot) else -1 for x in args]
    return lambda views: run(*[x if i < 0 else views[i] for i, x in zip(numbers, args, strict=True)], **options)


def arrays_of(result: Any) -> list[Any]:
    """The views in what a call returned, in order."""
    values: list[Any] = []
    _sorted_out(result, values)
    return values


def filled(nest: Any, views: list[Any]) -> Any:
    """A nest with views in place of its slots."""
    if isinstance(nest, Slot):
        return views[nest.number]
    if isinstance(nest, (list, tuple)):
        return type(nest)([filled(x, views) for x in nest])
    if isinstance(nest, dict):
        return {k: filled(x, views) for k, x in nest.items()}
    return nest


def _accumulated(inner: Any, view: Any, op: Any, axis: int) -> Any:
    return scan(inner, wrap(inner, Leaf(view)), op, axis)


def _scattered(inner: Any, target: Any, *views: Any, **options: Any) -> Any:
    made = inner._empty(target.shape, target.dtype)
    inner._copy_into(made, target)
    routine_of(inner, "scatter")(made, *views, **options)
    return made


# What tells where a mask holds.
_OF_MASKS = frozenset(("nonzero", "flatnonzero", "argwhere", "extract", "compress"))
_FEW = 32


def _checked_within(inner: Any, index: Any, axis: int, n: int) -> Any:
    from mirabelle.arraytypes.elementwise import cast_to
    from mirabelle.arraytypes.indexing import within

    if type(index) is np.ndarray and index.dtype == np.int64 and index.size <= _FEW:
        # (An index or a few: a look is sooner taken than bounds are asked for.)
        entries = index.ravel().tolist()
        if not entries or (min(entries) >= 0 and max(entries) < n):
            return index
    own = registered(inner, "within")
    found = None if own is None else own(index, axis, n)
    if found is not None:
        return found
    # (Of one dtype, whatever the entries are.)
    return cast_to(within(wrap(inner, Leaf(index)), axis, n), np.dtype(np.int64))


def _of_some(inner: Any, values: Any, held: Any, name: str) -> Any:
    """The least or the largest of some elements, if there are any."""
    if not verbs.fetch(wrap(inner, Leaf(held))):
        raise ValueError(
            f"zero-size array to reduction operation {name}imum which has no identity: a mask picks nothing, "
            f"and {name} of nothing is not defined. Say what it is then: `x[mask].{name}(initial=0)`."
        )
    return verbs.copy(wrap(inner, Leaf(values)))


def _drawn(inner: Any, shape: Any, dtype: Any, sampler: Any, stream: Any, parameters: Any, piece: Any) -> Any:
    from mirabelle.arraytypes.random.filling import fill

    made = inner._empty(shape, dtype)
    given = tuple([wrap(inner, Leaf(p)) if type(p) in VIEWS else p for p in parameters])
    fill(inner, made, sampler, stream, given, piece)
    return made


# What a kind of call does with the views of its operands.
KINDS: dict[str, Callable[..., Any]] = {
    "accumulate": _accumulated,
    "draw": _drawn,
    "scatter": _scattered,
    "some": _of_some,
    "within": _checked_within,
}


def evaluated_node(inner: Any, node: Node) -> Any:
    """The contents of a node that depends on no argument."""
    from mirabelle.arraytypes.programs.running import evaluate

    return evaluate(inner, (node,))[0]
