"""The registry of array kinds: what the shared suite runs over.

A kind says how to make an array of given values. A new array type registers one leaf:

    register_leaf("cuda", mb.CuArray)

and gets the whole suite, on itself and under every composition of wrappers up to depth three.
"""

import functools
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.distributed.layouts import Placement
from mirabelle.arraytypes.programs.traced import Traced

# On how many processes this runs, where `python -m tests.ranks` started it.
RANKS = int(os.environ.get("MIRABELLE_TEST_RANKS", "0"))


@dataclass(frozen=True)
class ArrayKind:
    """One way an array can be: a leaf of some family under some wrappers.

    `make(x)` gives an array equal to the NumPy array `x`; a kind that cannot show every value
    (a stretched one repeats itself) shows `sample(x)`, which is what to compare with.
    """

    name: str
    family: Any
    make: Callable[[np.ndarray], Any]
    sample: Callable[[np.ndarray], np.ndarray] = np.array
    wrappers: tuple[str, ...] = ()
    # May one write through it? And does a write reach the array it was made of?
    writable: bool = True
    # Its leaf is memory and not a tree: what the suite may count launches over.
    evaluated: bool = True
    # Operations on it wait and fuse (those on memory that NumPy can write to do not).
    lazy: bool = True
    # How it is divided over processes, and so what a test makes of its family without saying how.
    layout: Any = None

    @property
    def place(self):
        return self.family.home

    @property
    def distributed(self):
        return self.place.rank == 3

    @property
    def one_process(self):
        """Is all of it here? Else messages take kernels and memory of their own, and a part may be empty."""
        return not (self.distributed and RANKS > 1)

    @property
    def traced(self):
        """Is nothing computed but recorded?"""
        return self.place.rank == 4

    @property
    def counted(self):
        """Does each statement run as kernels of this process, so that one may count them?"""
        return self.one_process and not self.traced

    @property
    def on_device(self):
        return 2 <= self.place.rank < 4

    @property
    def takes_numpy(self):
        """May NumPy's arrays stand beside it? (Those that all processes have are divided like its own.)"""
        return self.family.joins(None) if self.distributed or self.traced else not self.on_device

    def __repr__(self):
        return self.name


# A layer is a function of values: it returns what the parent must hold, and how to show of the
# parent the values wanted. `show` is written so that NumPy and mirabelle understand it.


def _transpose(x):
    return np.array(x.T, order="C"), lambda a: a.T


def _permuted(x):
    order = (*range(1, x.ndim), 0) if x.ndim else ()
    back = tuple(int(i) for i in np.argsort(order))
    return np.array(x.transpose(order), order="C"), lambda a: a.transpose(back) if a.ndim else a


def _window(x):
    index = tuple(slice(1, 1 + n) for n in x.shape)
    return np.pad(x, 1) if x.ndim else x, lambda a: a[index] if index else a


def _steps(x):
    base = np.zeros(tuple(2 * n + 1 for n in x.shape), x.dtype)
    base[tuple(slice(1, None, 2) for _ in x.shape)] = x
    index = tuple(slice(1, None, 2) for _ in x.shape)
    return base, lambda a: a[index] if index else a


def _reversed(x):
    index = tuple(slice(None, None, -1) for _ in x.shape)
    return np.array(x[index]), lambda a: a[index] if index else a


def _picked(x):
    base = np.stack([np.zeros_like(x), x, np.ones_like(x)])
    return base, lambda a: a[1, ...]


def _reshaped(x):
    return np.array(x).reshape(-1), lambda a: a.reshape(x.shape)


def _stretched(x):
    head = x[:1] if x.ndim else x
    return np.array(head), lambda a: _broadcast_to(a, x.shape)


def _broadcast_to(a, shape):
    return (np if isinstance(a, np.ndarray) else mb).broadcast_to(a, shape)


LAYERS = {
    "transpose": _transpose,
    "permuted": _permuted,
    "window": _window,
    "steps": _steps,
    "reversed": _reversed,
    "picked": _picked,
    "reshaped": _reshaped,
    "stretched": _stretched,
}


def wrapped(kind, layer):
    """`kind` under one more wrapper."""
    rule = LAYERS[layer]

    def make(x):
        base, show = rule(x)
        return show(kind.make(base))

    def sample(x):
        base, show = rule(np.asarray(x))
        return np.array(show(kind.sample(base)))

    return ArrayKind(
        name=f"{layer}-{kind.name}",
        family=kind.family,
        make=make,
        sample=sample,
        wrappers=(layer, *kind.wrappers),
        writable=kind.writable and layer != "stretched",
        evaluated=kind.evaluated,
        lazy=kind.lazy,
        layout=kind.layout,
    )


LEAVES: dict[str, ArrayKind] = {}


def register_leaf(name, family, make=None, **traits):
    LEAVES[name] = ArrayKind(name, family, make or family, **traits)


register_leaf("host", mb.HostArray)
register_leaf("ref", mb.RefArray)
register_leaf("cuda", mb.CuArray)
register_leaf("cuda_pending", mb.CuArray, lambda x: mb.CuArray(x).astype(x.dtype), evaluated=False)
register_leaf("host_pending", mb.HostArray, lambda x: mb.HostArray(x).astype(x.dtype), evaluated=False)
register_leaf("ref_pending", mb.RefArray, lambda x: mb.RefArray(x).astype(x.dtype), evaluated=False)
# NumPy's memory, shared: expressions over it run at once.
register_leaf("host_shared", mb.HostArray, lambda x: mb.asarray(np.array(x)[...]), lazy=False)
# Fortran order, and data whose bytes are the other way round.
register_leaf("host_fortran", mb.HostArray, lambda x: mb.HostArray(np.array(x, order="F")))
register_leaf("host_swapped", mb.HostArray, lambda x: mb.HostArray(x.astype(x.dtype.newbyteorder(">"))))
# Over processes: here over this one alone; `python -m tests.ranks` runs the suite on several (see there),
# and divides arrays in every way.
# Recorded as a graph, which is evaluated where values are asked for.
register_leaf("traced", Traced[mb.HostArray])
DHost, DRef = mb.DArray[mb.HostArray], mb.DArray[mb.RefArray]
register_leaf("dist", DHost)


@dataclass(frozen=True, repr=False)
class Uneven(Placement):
    """The first has a third more than half, the last the rest, and those between them nothing."""

    axis: int = 0

    def pieces(self, n, parts):
        most = n - n // 3 if parts > 1 else n
        sizes = (n,) if parts == 1 else (most, *[0] * (parts - 2), n - most)
        return mb.distributed.Ragged(self.axis, sizes).pieces(n, parts)


@dataclass(frozen=True, repr=False)
class Scattered(Placement):
    """Each place with some process, in no order."""

    axis: int = 0

    def pieces(self, n, parts):
        owners = np.random.default_rng(n).integers(0, parts, n)
        return mb.distributed.Listed.of(self.axis, owners, parts).pieces(n, parts)


def register_layout(name, layout, family=DHost):
    """A leaf that is divided so where its shape allows it."""

    def make(x):
        with mb.distributed.use_layout(layout):
            return family(x)

    register_leaf(name, family, make, layout=layout)


if RANKS:
    register_leaf("dist_pending", DHost, lambda x: DHost(x).astype(x.dtype), evaluated=False)
    # Messages go by way of the host.
    register_leaf("dist_ref", DRef)
    register_layout("dist_ragged", Uneven(0))
    register_layout("dist_last", mb.distributed.Block(-1))
    register_layout("dist_cyclic", mb.distributed.BlockCyclic(0, 2))
    register_layout("dist_listed", Scattered(0))
    register_layout("dist_replicated", mb.distributed.Replicated())
    register_layout("dist_mesh", mb.distributed.Layout(Uneven(0), mb.distributed.Block(1), mesh=(RANKS, 1)))
    if RANKS > 1:
        register_layout(
            "dist_columns",
            mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(1, RANKS)),
        )
# On real cards, one for each rank (`python -m tests.ranks --cards`): these alone.
CARDS = bool(os.environ.get("MIRABELLE_TEST_CARDS"))
if CARDS:
    for known in [name for name in LEAVES if name.startswith("dist")]:
        del LEAVES[known]
    DCard = mb.DArray[mb.CuArray]
    register_leaf("dist_cuda", DCard)
    register_layout("dist_cuda_ragged", Uneven(0), DCard)
    register_layout("dist_cuda_cyclic", mb.distributed.BlockCyclic(0, 2), DCard)
DISTRIBUTED = [k for k in LEAVES.values() if k.distributed]


def compositions(depth):
    """Chains of layers. The third layer cycles through the views, which are many and alike."""
    if depth <= 2:
        yield from itertools.product(LAYERS, repeat=depth)
        return
    views = itertools.cycle(["window", "steps", "reversed", "picked"])
    for chain in itertools.product(["transpose", "permuted", "view", "reshaped", "stretched"], repeat=depth):
        yield tuple(next(views) if layer == "view" else layer for layer in chain)


def generated(leaf, depth):
    kinds = []
    for n in range(1, depth + 1):
        for chain in compositions(n):
            kinds.append(functools.reduce(wrapped, reversed(chain), LEAVES[leaf]))
    return kinds


PLAIN = [LEAVES["host"], LEAVES["ref"], LEAVES["cuda"], *(k for k in DISTRIBUTED if k.evaluated)]
SINGLE = [*LEAVES.values(), *(k for leaf in LEAVES for k in generated(leaf, 1))]
# (What runs on RefArray is what runs on cards: deep compositions of one of them are enough.)
DEEP = [k for leaf in ("host", "cuda") for k in generated(leaf, 3) if len(k.wrappers) > 1]
if RANKS:
    # All ranks run one test after the other: the others need not be collected.
    PLAIN = [k for k in PLAIN if k.distributed]
    SINGLE = [k for k in SINGLE if k.distributed]
    deep = ("dist_cuda",) if CARDS else ("dist", "dist_ragged")
    DEEP = [k for leaf in deep for k in generated(leaf, 3) if len(k.wrappers) > 1]
ALL = SINGLE + DEEP
