"""Loops over mesh points: at each point a kernel reads and writes what maps lead to.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> cells = md.Points("mesh", "cell", 2)
>>> corners = md.Dofs(cells, [[0, 1, 2], [1, 3, 2]], size=4)
>>> def spread(amount, y):
...     for i in range(3):
...         y[i] += amount / 3
>>> y = mb.zeros(4)
>>> md.loop(cells, spread, md.READ(mb.HostArray([3.0, 6.0])), md.INC(y, corners))
>>> print(y)
[1. 3. 3. 2.]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.lending import family_in_memory
from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.dofs import INVERSE, INVERSE_OF_ALL, Dofs, dofs
from mirabelle.arraytypes.meshdata.formulas import Fused
from mirabelle.arraytypes.meshdata.localkernels import LocalKernel, LocalProgram, local_kernel
from mirabelle.arraytypes.meshdata.localsums import collected
from mirabelle.arraytypes.meshdata.meshkernels import Argument, Source, made
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.meshdata.treedofs import map_rows, own_dofs
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

# So many kinds of arguments of one kernel are remembered.
LIKES = 16
# Threads of a group where each runs a point: so that those fill a card that need many registers.
GROUP = 128


def loop(
    points: Points | Subset,
    kernel: Callable[..., Any] | LocalKernel,
    *accesses: Access | ArrayLike,
    atomics: bool = False,
) -> None:
    """Run a kernel at each of some points.

    `points` are those of a mesh (`mesh.points("cell")`), or a subset of them. The kernel is a plain Python
    function of small arrays and numbers, one parameter for each access: `md.READ(u, map)`, `md.INC(y, map)`
    and so on. It is read once for arguments of its shapes and compiled: constant loops are written out,
    `np.sqrt`, `@` of small matrices, `np.linalg.inv` and helper functions may be used, and where it branches
    on a value both ways are computed.

    What several points add to one entry is added in the order of the points, on one thread and on many, on
    the host and on cards (sums over all points, `md.INC(total, whole=True)`, as `mb.sum` adds). `atomics=True`
    lets a card add in any order, and with fused multiply-adds: faster, and with other bits in each run.

    Parameters
    ----------
    points : Points or Subset
        Where the kernel runs.
    kernel : callable or LocalKernel
        What runs there: a function of as many arguments as there are accesses.
    *accesses : accesses
        What it reads and writes: `md.READ(u, map)`, `md.INC(y, map)` and so on.
    atomics : bool, default False
        On cards, add in any order, by atomic operations.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> edges = md.Points("mesh", "edge", 3)
    >>> ends = md.Dofs(edges, [[0, 1], [1, 2], [2, 3]], size=4)
    >>> def difference(x, d):
    ...     d[0] = x[1] - x[0]
    >>> x, d = mb.HostArray([0.0, 1.0, 4.0, 9.0]), mb.zeros(3)
    >>> md.loop(edges, difference, md.READ(x, ends), md.WRITE(d))
    >>> print(d)
    [1. 3. 5.]
    """
    local = _kernel_of(kernel)
    key = _likeness(points, accesses)
    known = None if key is None else local.likes.get(key)
    if known is not None:  # (with types that need nothing of what follows)
        run_bound(points, local, known.of(accesses), atomics)
        return
    if len(accesses) != len(local.parameters):
        raise TypeError(
            f"{local.name}() has the parameters {', '.join(local.parameters) or 'none'}, and the loop gives it "
            f"{len(accesses)}: one access for each, like md.READ(u, map)."
        )
    arrays = [a.array if type(a) is Access else a for a in accesses]
    if any(getattr(x, "carries_derivatives", False) and _communicates(x) for x in arrays):
        from mirabelle.arraytypes.meshdata.dividedderivatives import run_dual

        run_dual(points, local, accesses, atomics)
        return
    if any(isinstance(a, Access) and _communicates(a.array) for a in accesses):
        from mirabelle.arraytypes.meshdata.dividedloops import run_divided

        run_divided(points, local, accesses, atomics)
        return
    bound = [Bound(local, points, name, a) for name, a in zip(local.parameters, accesses, strict=True)]
    if key is not None:
        if len(local.likes) >= LIKES:
            oldest, *_ = local.likes  # (at once: other threads add meanwhile)
            local.likes.pop(oldest, None)
        local.likes[key] = known = Known(points, accesses, bound)
    run_bound(points, local, bound if known is None else known.of(accesses), atomics)


def _communicates(x: Any) -> bool:
    """Is an array divided over processes, or are the values of dual numbers, or of what is captured?"""
    x = x.parent if hasattr(x, "tree") else x
    while getattr(x, "carries_derivatives", False):
        x = x.value
    return getattr(x, "communicates", False) or getattr(getattr(x, "inner", None), "communicates", False)


def run_bound(points: Any, local: LocalKernel, bound: Sequence[Bound], atomics: bool) -> None:
    """Run a loop whose arguments are known to fit."""
    memo = bound.memo if isinstance(bound, Arguments) else {}
    roots = [root_of(b.array) for b in bound]
    at, fresh = memo.get("roots", (None, ()))
    if at is None or len(set(map(id, roots))) < len(roots):
        check_apart(local, bound)
    lead = lead_of(local, bound) if at is None else roots[at]
    if lead is None:
        raise TypeError(
            f"The loop of {local.name}() writes nothing: give it arrays to write to, like md.INC(y, map)."
        )
    if at is None:
        fresh = [i for i, b in enumerate(bound) if b.intent.fresh]
        if not any(isinstance(x, np.ndarray) for x in roots):  # (of NumPy's, parts of one may be two arrays)
            memo["roots"] = next((i for i, x in enumerate(roots) if x is lead), None), fresh
    for i in fresh:  # what is not to take part in a minimum or maximum is taken away
        written: Any = bound[i].array
        written[...] = bound[i].intent.neutral(bound[i].dtype)
    if len(points):
        run_loop(lead, local, len(points), bound, atomics)


def _kernel_of(kernel: Any) -> LocalKernel:
    """The local kernel of a function: kept by the function itself, so that it lives as long as that."""
    if isinstance(kernel, LocalKernel):
        return kernel
    found = getattr(kernel, "__local_kernel__", None)
    if isinstance(found, LocalKernel) and found.python is kernel:  # (`functools.wraps` copies such things)
        return found
    found = local_kernel(kernel)
    kernel.__local_kernel__ = found
    return found


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array; of a number none."""
    shape = getattr(x, "shape", None)
    return tuple(np.shape(x)) if shape is None else shape


class Arguments(list["Bound"]):
    """The arguments of a loop. `memo` has what was found out for those of the same kinds, points and maps."""

    __slots__ = ("memo",)

    def __init__(self, bound: Iterable[Bound], memo: dict[Any, Any]) -> None:
        super().__init__(bound)
        self.memo = memo


class Known:
    """What was found out about a loop, for those of the same kinds of arguments, points and maps."""

    __slots__ = ("bound", "memo", "named", "trees")

    def __init__(self, points: Any, accesses: Sequence[Any], bound: Iterable[Bound]) -> None:
        arrays = [a.array if type(a) is Access else a for a in accesses]
        self.trees = [hasattr(x, "tree") for x in arrays]
        self.bound = [b.with_array(b.name, b.intent, None) for b in bound]
        self.memo: dict[Any, Any] = {}
        # (What the key names by identity is kept with it.)
        through = [a.through for a in accesses if type(a) is Access]
        self.named = points, through, [getattr(x, "tree", None) for x in arrays]

    def of(self, accesses: Sequence[Any]) -> Arguments:
        """The arguments of a loop like that one."""
        arrays = [a.array if type(a) is Access else a for a in accesses]
        made = [
            b.with_array(b.name, b.intent, x.parent if over else x)
            for b, x, over in zip(self.bound, arrays, self.trees, strict=True)
        ]
        return Arguments(made, self.memo)


def _likeness(points: Any, accesses: Sequence[Any]) -> Any:
    """What loops have in common for which the same is found out; None if that takes looking at values."""
    key: list[Any] = [id(points) if isinstance(points, Subset) else points]
    for a in accesses:
        x = a
        if type(a) is Access:
            x = a.array
            key += (a.intent, a.whole, id(a.through))
        kind = type(x)
        if kind in _VALUES:
            key.append(kind)
            continue
        shape = getattr(x, "shape", None)
        if shape is None:
            return None
        key += (kind, shape, x.dtype, id(x.tree) if hasattr(x, "tree") else None)
    return tuple(key)


_VALUES = frozenset((bool, float, complex))


class Bound:
    """An argument of a loop: its array, and how the points of the loop reach it."""

    __slots__ = ("array", "dofs", "flat", "fused", "intent", "name", "row_shape", "sources", "whole")

    def __init__(self, kernel: LocalKernel, points: Any, name: str, access: Any) -> None:
        if not isinstance(access, Access):
            access = (
                Access(Intent.READ, access, None, True)
                if not shape_of(access)
                else _no_access(kernel, name, access)
            )
        self.name = name
        self.intent: Intent = access.intent
        self.whole: bool = access.whole
        self.dofs: Dofs | None = None
        # What surrounds the loop and is done in it, and the arrays and numbers that this reads.
        self.fused: Fused | None = None
        self.sources: Sequence[Any] = ()
        array = access.array
        tree = getattr(array, "tree", None)
        self.flat = tree is not None
        through = access.through
        if isinstance(array, (bool, int, float, complex, np.generic)) or (
            not shape_of(array) and self.intent is Intent.READ
        ):
            self.whole = True
        if through is None and not self.whole and (self.flat or isinstance(points, Subset)):
            through = _own_entries(points, tree, array)
        if through is not None:
            self.dofs = _rows(kernel, name, points, through, tree)
        self.array = array.parent if self.flat else array
        self.row_shape = self._shape_of_rows(kernel, points, name)

    def _shape_of_rows(self, kernel: LocalKernel, points: Any, name: str) -> tuple[int, ...]:
        """The block that each row reaches; and does the array fit?"""
        array, table = self.array, self.dofs
        if self.whole:
            return shape_of(array)
        shape = shape_of(array)
        if table is None:
            if not shape or shape[0] != len(points):
                raise ValueError(
                    f"{kernel.name}(): {name} has shape {shape}, and the loop runs over {len(points)} "
                    "points. Without "
                    "a map the first axis counts the points; give a map, md.READ(a, map), or whole=True."
                )
            return shape[1:]
        size = math.prod(table.block)
        if self.flat or (table.block and shape == (table.size * size,)):
            self.flat = True
            if shape != (table.size * size,):
                raise ValueError(
                    f"{kernel.name}(): {name} has {math.prod(shape)} entries, and the table leads into "
                    f"{table.size * size}: it was made for another tree."
                )
            return table.block
        if not shape or shape[0] != table.size or (table.block and shape[1:] != table.block):
            raise ValueError(
                f"{kernel.name}(): {name} has shape {shape}, and its map leads to {table.size} entries"
                f"{f' of shape {table.block}' if table.block else ''}: the first axis of a plain array "
                "counts these."
            )
        return shape[1:]

    def with_array(self, name: str, intent: Intent, array: Any) -> Bound:
        """The same way to reach another array."""
        made = object.__new__(Bound)
        made.dofs, made.flat, made.row_shape, made.whole = self.dofs, self.flat, self.row_shape, self.whole
        made.name, made.intent, made.array = name, intent, array
        made.fused, made.sources = None, ()
        return made

    def fused_with(self, fused: Fused | None, array: Any, sources: Sequence[Any]) -> Bound:
        """The same argument, of what surrounds the loop."""
        made = self.with_array(self.name, self.intent, array)
        made.fused, made.sources = fused, sources
        return made

    @property
    def arrays(self) -> list[Any]:
        """All that a kernel is given of it."""
        return [*(() if self.fused and not self.intent.writes else (self.array,)), *self.sources]

    @property
    def how(self) -> str:
        if self.fused is not None:
            return self.fused.how
        if self.dofs is not None:
            return "table"
        if self.whole:
            return "number" if not shape_of(self.array) and self.intent is Intent.READ else "whole"
        return "direct"

    @property
    def dtype(self) -> np.dtype:
        if self.fused is not None:
            return self.fused.dtype
        found = getattr(self.array, "dtype", None)
        return found if isinstance(found, np.dtype) else np.result_type(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the kernel's local array."""
        table = self.dofs
        if table is None:
            return self.row_shape
        return table.local if table.block == self.row_shape else (table.arity, *self.row_shape)

    def kind(self) -> tuple[Any, ...]:
        """All that the source depends on: no sizes."""
        table = self.dofs
        arity, partial = (table.arity, table.partial) if table is not None else (0, False)
        strides = table.strides if table is not None else ()
        return (
            self.intent, self.how, arity, self.shape, self.row_shape, self.flat, partial, self.dtype, strides,
            self.fused,
        )  # fmt: skip


def _no_access(kernel: LocalKernel, name: str, given: Any) -> Any:
    raise TypeError(
        f"{kernel.name}(): {name} is given a {type(given).__name__}, and a loop needs to know what happens "
        f"to it: md.READ({name}), md.INC({name}, map)."
    )


def rows_of(kernel: LocalKernel, name: str, base: Points, through: Any, array: Any) -> Dofs:
    """The table by which all points reach the entries of a plain array."""
    return _rows(kernel, name, base, _own_entries(base, None, array) if through is None else through, None)


def _own_entries(points: Any, tree: Any, array: Any) -> Any:
    """What a point's own entries are: of a tree what stands under it, of a plain array its row."""
    base = points.points if isinstance(points, Subset) else points
    if tree is not None:
        return own_dofs(base, tree)
    shape = shape_of(array)
    if not shape or shape[0] != base.size:
        raise ValueError(
            f"The loop runs over some of {base.size} points, and without a map the first axis of an array "
            f"counts them all: this one has shape {shape}. Give a map, md.READ(a, map), or whole=True."
        )
    return _rows_of_all(Points(base.axis, base.component, base.size), shape[1:])  # (without what they are of)


@functools.lru_cache(maxsize=64)
def _rows_of_all(base: Points, row: tuple[int, ...]) -> Dofs:
    return Dofs(base, np.arange(base.size)[:, None], base.size, block=row, local=row)


def _rows(kernel: LocalKernel, name: str, points: Any, through: Any, tree: Any) -> Dofs:
    """The table of an argument, for the points of the loop."""
    if not isinstance(through, Dofs):
        through = dofs(through, tree) if tree is not None else _map_rows(kernel, name, through)
    base = points.points if isinstance(points, Subset) else points
    if through.source != base:
        if not isinstance(base, Points):
            raise TypeError(
                f"{kernel.name}(): a loop runs over points, and not over {points!r}. Give those of a mesh, "
                '`mesh.points("cell")`, or some of them, `mesh.points("cell").subset([0, 2])`.'
            )
        raise ValueError(
            f"{kernel.name}(): the map of {name} leads from {through.source!r}, and the loop runs over "
            f"{base!r}."
        )
    if tree is not None and through.tree is not None and through.tree != tree:
        raise ValueError(
            f"{kernel.name}(): the table of {name} was made for another axis tree than the array's."
        )
    if isinstance(points, Subset):
        return through.known(("subset", id(points)), lambda t: _part(through, points))[1]  # type: ignore[no-any-return]
    return through


def _part(whole: Dofs, points: Subset) -> tuple[Subset, Dofs]:
    """The rows of a subset. (It is kept with what it is a part of, and keeps the subset that names it.)"""
    rows = Dofs(
        Points(whole.source.axis, whole.source.component, len(points)),
        whole.table[points.indices],
        whole.size,
        block=whole.block,
        tree=whole.tree,
        local=whole.local,
    )
    return points, rows


def _map_rows(kernel: LocalKernel, name: str, through: Any) -> Dofs:
    """A map to one kind of points, as a table of rows of a plain array."""
    if len(through.targets) != 1:
        shown = ", ".join(p.name for p in through.targets)
        raise ValueError(
            f"{kernel.name}(): the map of {name} leads to {shown}, and a plain array has rows for one kind "
            "of points. "
            "Give an array over an axis tree, md.zeros(tree), or restrict the map: `map.restrict(points)`."
        )
    return map_rows(through)


def check_apart(kernel: LocalKernel, bound: Sequence[Any]) -> None:
    """An array that is written comes once."""
    roots = [root_of(b.array) if isinstance(b.array, AbstractArray) else b.array for b in bound]
    for i, b in enumerate(bound):
        if not b.intent.writes:
            continue
        for j, other in enumerate(bound):
            if i != j and (roots[i] is roots[j] or _same_memory(roots[i], roots[j])):
                raise ValueError(
                    f"{kernel.name}(): {b.name} and {other.name} are one array, with {b.intent.value} and "
                    f"{other.intent.value}: what a point reads would depend on which came before. Read from "
                    f"a copy, mb.copy({other.name}), or use two loops."
                )
        if b.intent is Intent.RW and isinstance(b, Bound) and b.dofs is not None and not b.dofs.injective:
            raise ValueError(
                f"{kernel.name}(): several points reach one entry of {b.name} with RW: what they read would "
                "depend on which came before. Use INC, or MIN_RW and MAX_RW, or WRITE to another array."
            )


def _same_memory(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def lead_of(kernel: LocalKernel, bound: Sequence[Bound]) -> Any:
    """The array whose type says how the loop is run: one that is written, unless others carry derivatives."""
    lead: Any = None
    for b in bound:
        if b.intent.writes:
            if not isinstance(b.array, (AbstractArray, np.ndarray)):
                raise TypeError(
                    f"{kernel.name}(): {b.name} is a {type(b.array).__name__}, and {b.intent.value} needs an "
                    "array."
                )
            root = root_of(b.array) if isinstance(b.array, AbstractArray) else HostArray(0.0)
            lead = root if lead is None else lead
    if lead is not None:
        for b in bound:
            if getattr(b.array, "carries_derivatives", False):
                return b.array
    return lead


# How a loop is run


@generic
def run_loop(lead: Any, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    """Run a loop over n points where an array is. A backend that knows a better way gives a method."""


class Compiled:
    """The kernels of a loop for arguments of certain kinds."""

    def __init__(self, kernel: LocalKernel, bound: Sequence[Bound]) -> None:
        given = [(b.intent, b.shape, b.dtype) for b in bound]
        names: dict[Any, str] = {}
        for b in bound:
            names.setdefault(_rows_key(b.dofs), f"{b.name}_rows")
        program = kernel.program(given)
        self.program: LocalProgram = collected(program) if kernel.collects else program
        self.arguments = [
            Argument(b.name, b.intent, b.how, 0 if b.dofs is None else b.dofs.arity, b.row_shape, b.flat,
                     b.dofs is not None and b.dofs.partial, b.dtype, names[_rows_key(b.dofs)],
                     b.dofs.strides if b.dofs is not None else (), b.fused)
            for b in bound
        ]  # fmt: skip
        self.source = Source(kernel.name, self.program, self.arguments)
        # (In any order sums may be those that the kernel has, which are nearer to what they are of.)
        as_written = program.operations <= self.program.operations
        self.unordered = Source(kernel.name, program, self.arguments) if as_written else self.source
        self.made: dict[Any, Kernel] = {}

    def leaves_some(self, i: int) -> bool:
        """Does the kernel leave entries of an argument alone, so that it writes nothing of them to a buffer?"""
        return None in (self.program.outputs[i] or ())

    def kernel(self, form: str, *options: Any) -> Kernel:
        """One of the forms, as a kernel."""
        key = form, *options
        found = self.made.get(key)
        if found is None:
            unordered = key == ("elements", True)
            text, scope = getattr(self.unordered if unordered else self.source, form)(*options)
            name = text[4 : text.index("(")]
            found = self.made[key] = Kernel(made(name, text, scope))
            found.contracts = unordered  # (which has no bits to keep)
        return found


def compiled(kernel: LocalKernel, bound: Sequence[Bound]) -> Compiled:
    """The kernels of a loop, made once for arguments of these kinds."""
    key = (*[b.kind() for b in bound], tuple(_first(bound)))
    found = kernel.compiled.get(key)
    if found is None:
        found = kernel.compiled[key] = Compiled(kernel, bound)
    return found  # type: ignore[no-any-return]


def _first(bound: Sequence[Bound]) -> list[int]:
    """For each argument the first that has the same table."""
    tables = [_rows_key(b.dofs) for b in bound]
    return [tables.index(t) for t in tables]


def tables_of(bound: Sequence[Bound]) -> list[Dofs]:
    """The tables of a loop, each once."""
    return list({_rows_key(b.dofs): b.dofs for b in bound if b.dofs is not None}.values())


def _rows_key(table: Dofs | None) -> Any:
    """What arguments have in common that read one table."""
    return None if table is None else (id(table.rows), table.strides)


def layers_of(bound: Sequence[Bound]) -> list[int]:
    """How many points each column of points has, where they stand in columns."""
    found = {b.dofs.layers for b in bound if b.dofs is not None and b.dofs.strides}
    if len(found) > 1:
        raise ValueError(
            f"The loop is over columns, and its tables are of {sorted(found)} layers: of one number."
        )
    return list(found)


@run_loop.method
def _(lead: AbstractArray, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    family = family_in_memory(type(lead))
    if family is None:
        raise DeviceError(
            f"Loops do not run on {type(lead).__name__}. Give the arrays it is made of, or a dense copy, "
            "mb.HostArray(x)."
        )
    plan = compiled(kernel, bound)
    values, parts = [], []
    for i, (b, a) in enumerate(zip(bound, plan.arguments, strict=True)):
        free = atomics and a.scattered and a.intent.combines is not None
        if a.buffered and not free:
            parts.append(_buffer(family, n, a, plan.leaves_some(i)))
        if not (a.buffered and not a.intent.gathers) or free:
            values += b.arrays
    rows = [table.on(family) for table in tables_of(bound)]
    plan.kernel("elements", bool(atomics))[(n,), (GROUP,)](*values, *rows, *parts, *layers_of(bound))
    waiting = iter(parts)
    for i, (b, a) in enumerate(zip(bound, plan.arguments, strict=True)):
        if not a.buffered or (atomics and a.scattered and a.intent.combines is not None):
            continue
        part = next(waiting)
        if a.how == "whole":
            join_whole(b, part.reshape((a.entries, n)))
        else:
            assert b.dofs is not None
            table = b.dofs
            inverse = [table.on(family, what) for what in (INVERSE if b.fused is None else INVERSE_OF_ALL)]
            size, entries = math.prod(a.block), table.size if b.fused is not None else len(inverse[0])
            if entries:
                plan.kernel("gathered", i)[entries, size](*b.arrays, part, n * a.arity, *inverse)


def _buffer(family: Any, n: int, a: Any, leaves_some: bool) -> Any:
    from mirabelle.arraytypes.creation import empty, full

    shape = (n * a.entries,)
    if leaves_some:
        return full(shape, a.intent.neutral(a.dtype), dtype=a.dtype, device=family)
    if family.home.rank < 4:
        return wrap(family, Leaf(family._empty(shape, a.dtype)))
    return empty(shape, dtype=a.dtype, device=family)


_JOINED: dict[str, Callable[..., Any]] = {"add": verbs.sum, "minimum": verbs.min, "maximum": verbs.max}


def join_whole(b: Bound, parts: Any) -> None:
    """Join the contributions of all points to a whole array, which stand in rows."""
    combine = b.intent.combines
    assert combine is not None
    total, shape = _JOINED[combine](parts, axis=1), shape_of(b.array)
    total = total if total.shape == shape else verbs.reshape(total, shape)
    written: Any = b.array
    written[...] = getattr(verbs, combine)(written, total)
