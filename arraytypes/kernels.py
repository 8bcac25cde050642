"""`@kernel`: one function of an index, run for every index of a space, wherever the arrays are.

A backend says how with `@launcher(ArrayType)`: it gets the kernel, the index space, the shape of
a group, and the arguments as views of its memory and numbers.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NoReturn, overload

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import DTypeLike
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.lending import Use, family_in_memory, flattened, lender, rebuilt
from mirabelle.arraytypes.usercode.kernelsource import read_kernel
from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import DeviceError, PlaceError

# The shape of a group where a launch gives none.
GROUPS = {1: (256,), 2: (16, 16), 3: (4, 8, 8)}
LARGEST_GROUP = 1024
# How many launches a kernel remembers, to find the next one like them at once.
KEPT_LAUNCHES = 64

Launcher = Callable[["Kernel", tuple[int, ...], tuple[int, ...], list[Any]], None]
_launchers: dict[Any, Launcher] = {}


def launcher(family: Any) -> Callable[[Launcher], Launcher]:
    """Say how kernels are launched on arrays of a type.

    The function gets the kernel (`kernel.source` is its checked syntax tree, `kernel.compiled` a
    dictionary to keep things in), the shapes of the index space and of a group, and the arguments:
    views of the family's memory, numbers, and tuples of these. A 0-d view of a parameter that is
    not written stands for its number.
    """

    def register(f: Launcher) -> Launcher:
        _launchers[family] = f
        return f

    return register


def _inherited(family: Any) -> Launcher | None:
    """The launcher of the nearest base class that has one: it is this type's as well."""
    found = next((_launchers[base] for base in family.__mro__ if base in _launchers), None)
    if found is not None:
        _launchers[family] = found
    return found


def runs_kernels(family: Any) -> bool:
    """Are kernels launched where arrays of a type are?"""
    return family in _launchers or _inherited(family) is not None


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(*, padded: bool = False, boundscheck: bool = False) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None, /, *, padded: bool = False, boundscheck: bool = False
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel: a function that is run once for every index of a space, in no given order.

    Its first parameter is the context, which knows the index (`mb.types.KernelContext` lists all it
    offers); the others are arrays, numbers, and tuples of these. It returns nothing and writes to
    arrays. One source runs on the host's threads, on the reference device and on GPUs: wherever
    the arrays are. Over processes each runs it for the indices whose results it holds, and gets
    the elements of others that these read.

    Parameters
    ----------
    function : callable
        Its first parameter is the context (`mb.types.KernelContext`), the others are arrays and
        numbers.
    padded : bool, default False
        Whether threads outside of the index space run, too, for kernels with barriers.
    boundscheck : bool, default False
        Whether each access is checked.

    Returns
    -------
    callable
        `k[space](...)` runs it and returns nothing. With options alone (`@mb.kernel(padded=True)`), a
        decorator that makes a kernel.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.kernel
    ... def saxpy(k, y, a, x):
    ...     i = k.index(0)
    ...     y[i] = a * x[i] + y[i]
    >>> x = mb.RefArray([1.0, 2.0, 3.0])
    >>> y = mb.RefArray([10.0, 20.0, 30.0])
    >>> saxpy[x.shape](y, 2.0, x)
    >>> print(y)
    [12. 24. 36.]

    In the brackets stands the index space: `saxpy[n]`, `saxpy[n, m]` or a shape; and, if threads
    work together, the shape of a group: `tiles[(n, m), (16, 16)]`. Threads of one group share
    memory (`k.shared`) and meet at barriers (`k.barrier()`), groups know nothing of each other:

    >>> @mb.kernel
    ... def partial_sums(k, out, x):
    ...     part = k.shared(64, mb.float64)
    ...     i = k.local(0)
    ...     part[i] = x[k.index(0)]
    ...     half = k.group_size(0) // 2
    ...     while half > 0:
    ...         k.barrier()
    ...         if i < half:
    ...             part[i] += part[i + half]
    ...         half //= 2
    ...     if i == 0:
    ...         out[k.group(0)] = part[0]
    >>> out = mb.zeros(2)
    >>> partial_sums[(128,), (64,)](out, mb.ones(128))
    >>> print(out)
    [64. 64.]

    **Indices outside.** Where groups do not divide the index space, the last ones are cut off:
    threads outside run nothing, and nobody waits for them at a barrier. With `padded=True` they
    run too (to load their part of a tile, say), `k.valid` is False for them, and what they must not
    do stands under `if k.valid:`.

    **Elements.** A kernel reads and writes single elements, with an index for each dimension. An
    index outside an array is an error on the reference device and with `boundscheck=True` (or
    `saxpy.checked[n](...)`), and undefined elsewhere. Negative indices do not count from the end.

    **Barriers** are for all threads of a group: a loop or branch around one must go the same way for
    all, and `return` cannot come before one. Arrays of `k.shared` and `k.private` start undefined.

    **On a card** a group is a block of threads, whose last dimension is the fastest: neighbours along it
    should touch neighbouring elements. A launch waits for nothing, unless the kernel raises errors or
    checks its indices. Elements of float16 are computed with as float32.

    Arrays that a kernel writes to follow the rule of every write: what was said before keeps its
    values. The reference device reports races (two threads at one element, one writing, without a
    barrier or an atomic operation between them), threads that part at a barrier, and local
    elements read before they were written.
    """
    if function is None:
        return functools.partial(_kernel, padded=padded, boundscheck=boundscheck)
    return _kernel(function, padded=padded, boundscheck=boundscheck)


def _kernel(function: Any, padded: bool, boundscheck: bool) -> Kernel:
    if not inspect.isfunction(function):
        raise TypeError(
            f"mb.kernel makes kernels of Python functions, and {function!r} is a {type(function).__name__}. "
            "Put it above a `def`: `@mb.kernel`."
        )
    return Kernel(function, padded, boundscheck)


class KernelContext:
    """What a kernel's first parameter offers. Dimensions are given as constants.

    >>> import mirabelle as mb
    >>> @mb.kernel
    ... def transposed(k: mb.types.KernelContext, out, x):
    ...     i, j = k.index()
    ...     out[j, i] = x[i, j]
    >>> out = mb.zeros((2, 1))
    >>> transposed[1, 2](out, mb.HostArray([[1.0, 2.0]]))
    >>> print(out)
    [[1.]
     [2.]]
    """

    __module__ = "mirabelle.types"

    valid: bool = True

    def index(self, d: int | None = None) -> Any:
        """This thread's index in the index space, along dimension `d` or as a tuple."""
        self._outside()

    def local(self, d: int | None = None) -> Any:
        """This thread's index in its group."""
        self._outside()

    def group(self, d: int | None = None) -> Any:
        """The index of this thread's group among the groups."""
        self._outside()

    def size(self, d: int | None = None) -> Any:
        """The size of the index space."""
        self._outside()

    def group_size(self, d: int | None = None) -> Any:
        """The size of a group (also of one that the index space cuts off)."""
        self._outside()

    def groups(self, d: int | None = None) -> Any:
        """How many groups there are."""
        self._outside()

    def shared(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """An array all threads of a group see, of constant shape: `tile = k.shared((16, 16), mb.float32)`."""
        self._outside()

    def private(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """An array of this thread's own, of constant shape."""
        self._outside()

    def barrier(self) -> None:
        """Wait for all threads of the group; what they wrote before is seen by all after."""
        self._outside()

    def atomic_add(self, a: Any, i: int | tuple[int, ...], value: complex) -> Any:
        """`a[i] += value` in one step that nobody comes between; returns what was there."""
        self._outside()

    def atomic_max(self, a: Any, i: int | tuple[int, ...], value: complex) -> Any:
        """`a[i] = max(a[i], value)` in one step (NaN loses); returns what was there."""
        self._outside()

    def atomic_min(self, a: Any, i: int | tuple[int, ...], value: complex) -> Any:
        """`a[i] = min(a[i], value)` in one step (NaN loses); returns what was there."""
        self._outside()

    def atomic_exchange(self, a: Any, i: int | tuple[int, ...], value: complex) -> Any:
        """`a[i] = value`, and returns what was there."""
        self._outside()

    def atomic_cas(self, a: Any, i: int | tuple[int, ...], old: complex, new: complex) -> Any:
        """`a[i] = new` if `old` is there; returns what was there."""
        self._outside()

    def _outside(self) -> NoReturn:
        raise TypeError("A kernel's context exists only inside a kernel that runs: `kernel[n](...)`.")


class Kernel:
    """A function made by `@mb.kernel`. `kernel[index_space, group](...)` launches it."""

    __module__ = "mirabelle"
    __name__: str
    __qualname__: str
    python: Callable[..., Any]

    def __init__(self, function: Any, padded: bool = False, boundscheck: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.python = function
        self.padded = padded
        self.boundscheck = boundscheck
        # May a card round a product and a sum once, as a fused multiply-add? (Bits are not the host's then.)
        self.contracts = True
        # What backends keep for this kernel, by keys of their own.
        self.compiled: dict[Any, Any] = {}
        self._source: Any = None
        self._lenders: dict[Any, Any] = {}
        self._checked: Kernel | None = None
        self._launches: dict[Any, Launch] = {}

    @property
    def source(self) -> Any:
        """The kernel's syntax tree, checked, and what is known about it."""
        if self._source is None:
            self._source = read_kernel(self.python)
        return self._source

    @property
    def checked(self) -> Kernel:
        """The same kernel with every index checked."""
        if self.boundscheck:
            return self
        if self._checked is None:
            self._checked = Kernel(self.python, self.padded, True)
            self._checked.contracts = self.contracts
        return self._checked

    def __getitem__(self, spaces: Any) -> Launch:
        try:
            found = self._launches.get(spaces)
        except TypeError:  # a list
            found = None
        if found is None:
            shape, group = self._spaces(spaces)
            if len(self._launches) >= KEPT_LAUNCHES:
                self._launches.clear()
            found = self._launches.setdefault((shape, group), Launch(self, shape, group))
            try:
                self._launches[spaces] = found
            except TypeError:
                pass
        return found

    def _spaces(self, spaces: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What stands in the brackets, as the shapes of the index space and of a group."""
        given = spaces if isinstance(spaces, tuple) else (spaces,)
        group: Any = None
        if len(given) == 2 and isinstance(given[0], (tuple, list)):
            given, group = given
        elif len(given) == 1 and isinstance(given[0], (tuple, list)):
            (given,) = given
        shape = self._shape(given, "an index space", 0)
        if not 1 <= len(shape) <= 3:
            raise ValueError(
                f"{self.__name__}: an index space has one to three dimensions, not {len(shape)}: {shape}. "
                "Launch over the size, and take the index apart: `i // m, i % m`."
            )
        group = GROUPS[len(shape)] if group is None else self._shape(group, "a group", 1)
        if len(group) != len(shape):
            raise ValueError(
                f"{self.__name__}: the group {group} and the index space {shape} have different numbers of "
                f"dimensions. Give a group like {GROUPS[len(shape)]}."
            )
        if math.prod(group) > LARGEST_GROUP:
            raise ValueError(
                f"{self.__name__}: a group has at most {LARGEST_GROUP} threads, and {group} has "
                f"{math.prod(group)}. Give a group like {GROUPS[len(shape)]}."
            )
        return shape, group

    def _shape(self, given: Any, what: str, least: int) -> tuple[int, ...]:
        given = given if isinstance(given, (tuple, list)) else (given,)
        try:
            shape = tuple(int(n.__index__()) for n in given)
        except (TypeError, AttributeError):
            raise TypeError(
                f"{self.__name__}: {what} is made of integers, not {given!r}. Launch like "
                f"`{self.__name__}[(n, m), (16, 16)](...)`."
            ) from None
        if any(n < least for n in shape):
            raise ValueError(f"{self.__name__}: {what} cannot have the size {shape}.")
        return shape

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.__name__} is a kernel: say over which indices it runs, for instance "
            f"`{self.__name__}[x.shape](...)`."
        )

    def __repr__(self) -> str:
        return f"<mb.kernel {self.__qualname__}{inspect.signature(self.python)}>"

    def __reduce__(self) -> str:
        return self.__qualname__

    def launcher_of(self, family: Any) -> Launcher | None:
        """What launches it on arrays of a type."""
        return _launchers.get(family) or _inherited(family)

    # Arguments

    def lent(self, args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """The family the arrays are of, and the arguments as a launcher gets them."""
        known = self._lenders.get(tuple(map(type, args)))
        if known is not None:
            return known[0], known[1](args)
        names = self.source.parameters
        uses: list[Use] = [(n, self.source.effects[n]) for n in names]
        flat: Any = args
        nested = any(isinstance(x, (tuple, list, dict, set)) for x in args)
        if nested:
            flat, uses = flattened(self.__name__, args, uses)
        types = tuple(map(type, flat))
        key = (types, tuple(uses)) if nested else types
        found = self._lenders.get(key)
        if found is None:
            family = self._family(flat)
            names = [(n, t) for (n, _), t in zip(uses, types, strict=True)]
            lend = lender(self.__name__, types, uses, family, functools.partial(self._refuse, family, names))
            found = self._lenders[key] = family, lend
        family, lend = found
        views = lend(flat)
        return family, rebuilt(args, views) if nested else views

    def _family(self, flat: Any) -> Any:
        families = [family_in_memory(type(x)) for x in flat if isinstance(x, AbstractArray) and x.ndim]
        return next((f for f in families if f is not None and f.home.rank >= 2), HostArray)

    def _refuse(self, family: Any, names: list[tuple[str, type]], name: str, x: Any) -> NoReturn:
        if name.startswith("_"):  # (of a kernel that mirabelle wrote: it is the user's arrays that disagree)
            given = [(n, t) for n, t in names if n[0] != "_" and issubclass(t, AbstractArray)]
            places = {n: f"mb.{f.__name__}" for n, t in given if (f := family_in_memory(t)) is not None}
            raise PlaceError(
                f"{self.__name__}: its arrays are at several places, "
                f"{', '.join(f'{n} at {place}' for n, place in places.items())}, and it moves none. "
                f"Move it once, with all of what it is used with: `x = mb.adapt(mb.{family.__name__}, x)`."
            )
        shown = "a NumPy array (host)" if isinstance(x, np.ndarray) else f"a {type(x).__name__} on {x.place}"
        raise PlaceError(
            f"{self.__name__}: {name} is {shown}, and other arguments are on {family.home}. A kernel runs "
            "where its arrays are, and moves nothing. Move it once: "
            f"`{name} = mb.adapt(mb.{family.__name__}, {name})`."
        )


class Launch:
    """A kernel with its index space: call it with the kernel's arguments."""

    __module__ = "mirabelle"
    __slots__ = ("group", "kernel", "shape", "size")

    def __init__(self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...]) -> None:
        self.kernel = kernel
        self.shape = shape
        self.group = group
        self.size = math.prod(shape)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        kernel = self.kernel
        if kwargs or len(args) != len(kernel.source.parameters):
            args = self._bound(args, kwargs)
        family, arguments = kernel.lent(args)
        run = _launchers.get(family) or _inherited(family)
        if run is None:
            raise DeviceError(
                f"Kernels do not run on {family.__name__} yet. Its backend says how with "
                f"`@mirabelle.arraytypes.kernels.launcher({family.__name__})`."
            )
        if counters.active:
            counters.add(launches=1)
        if self.size:
            run(kernel, self.shape, self.group, arguments)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        signature = inspect.signature(self.kernel.python)
        name = self.kernel.__name__
        try:
            bound = signature.bind(None, *args, **kwargs)
        except TypeError as e:
            shown = ", ".join(self.kernel.source.parameters)
            raise TypeError(f"{name}: {e}. It is launched as `{name}[n]({shown})`.") from None
        bound.apply_defaults()
        return bound.args[1:]

    def __repr__(self) -> str:
        return f"<{self.kernel!r} over {self.shape} in groups of {self.group}>"


# What every backend says of a kernel that goes wrong


def diverged(kernel: Kernel, line: int) -> DeviceError:
    """The error for threads of a group that go different ways around a barrier."""
    source = kernel.source
    return DeviceError(
        f"{source.name}(): the threads of a group part at line {line}, around a barrier: some go one way and "
        "some the other, so they never meet there. Make the condition the same for all of a group (from "
        f"sizes, {source.context}.group(0), numbers passed in), or move the barrier out of it."
    )


def out_of_range(
    kernel: Kernel, name: str, axis: int, index: int, size: int, thread: Any, line: int
) -> IndexError:
    """The error for an index outside an array."""
    source = kernel.source
    shown = ", ".join(map(str, thread))
    cure = (
        "Negative indices do not count from the end in a kernel."
        if index < 0
        else f"Launch over fewer indices, or guard the access: `if i < {name}.shape[{axis}]:`."
    )
    return IndexError(
        f"{source.name}(), thread ({shown}), line {line}: index {index} is out of bounds for axis {axis} of "
        f"{name}, which has size {size}. {cure}"
    )
