"""Matrices over processes: each assembles what its own cells add to, and a product sends what lies on borders.

A process has a matrix of its part of the mesh, ghosts included, into which its own cells are added. The whole
matrix is the sum of these, and no entry of it travels: a product brings the ghosts of the vector up,
multiplies, and adds what came out for ghosts to the owners' entries. Vectors are `DArray`s of what each
process owns, so that inner products and solvers are what they are elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray, zeros
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.agreement import on_all
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed.views import family_over
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.forests import StarForest
from mirabelle.arraytypes.meshdata.matrices import Matrix
from mirabelle.arraytypes.meshdata.treearray import TreeArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


class DividedMatrix:
    """A square matrix over processes: the sum of what each one's cells add to.

    `local` is the matrix of this process' part, and `forest` says which of its rows and columns are ghosts. All
    processes make it together, and multiply together.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> part = md.unit_square(2).part([0] * 8, mb.communicator().rank)
    >>> local = md.pattern(part.mesh.closure("cell", "vertex")).matrix()
    >>> def ones(K):
    ...     K += 1
    >>> md.loop(part.owned_points(), ones, md.INC(local.data, local.dofs))
    >>> A = md.DividedMatrix(local, md.part_forest(part, "vertex"))
    >>> print(A @ A.vector(mb.ones(9)))
    [ 3.  9.  6.  9. 18.  9.  6.  9.  3.]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("_own", "_part", "forest", "local", "shape")

    def __init__(self, local: Matrix, forest: StarForest) -> None:
        on_all(forest.comm, lambda: _check(local, forest))
        self.local, self.forest = local, forest
        own = np.ones(forest.size, bool)
        own[forest.leaves] = False
        family = leaf_family(type(local.data))
        count = int(np.count_nonzero(own))
        self._own: Any = slice(0, count) if own[:count].all() else asarray(np.flatnonzero(own), device=family)
        whole = DArray.from_local(zeros(count, dtype=local.dtype, device=family), comm=forest.comm)
        self._part = verbs.leaf_of(whole).view.partition
        self.shape = (int(whole.shape[0]), int(whole.shape[0]))

    @property
    def dtype(self) -> np.dtype:
        return self.local.dtype

    def vector(self, x: Any, op: str | None = None) -> Any:
        """The distributed vector of what each process owns of its `x`, which has ghosts, too.

        With `op`, "sum" say, what stands in ghosts joins the owners' entries first: right-hand sides that loops
        added to.
        """
        x = x.parent if isinstance(x, TreeArray) else x
        if op is not None:
            x = verbs.copy(x)
            self.forest.reduce(x, op)
        own = verbs.copy(x[self._own])
        family = family_over(leaf_family(type(own)))
        return wrap(family, Leaf(family._of_local(self.forest.comm, self._part, verbs.leaf_of(own).view)))

    def with_ghosts(self, v: Any) -> Any:
        """What this process has of a distributed vector, its ghosts included."""
        view = verbs.leaf_of(v).view if isinstance(v, DArray) else None
        if view is None or view.partition is not self._part:
            raise ValueError(
                f"A vector of this matrix is divided as its rows are, {self._part!r}; this is a "
                f"{type(v).__name__} of shape {v.shape}. Make it by `A.vector(x)`, of what each process has."
            )
        inner = view.buffer.inner
        made = zeros(self.forest.size, dtype=v.dtype, device=inner)
        made[self._own] = wrap(inner, Leaf(view.buffer.local))
        self.forest.bcast(made)
        return made

    def __matmul__(self, v: Any) -> Any:
        y = self.local @ self.with_ghosts(v)
        self.forest.reduce(y, "sum")
        return self.vector(y)

    def __repr__(self) -> str:
        n, comm = self.shape[0], self.forest.comm
        return f"DividedMatrix({n} x {n} over {comm.size} processes, {self.local!r} on rank {comm.rank})"


def _check(local: Matrix, forest: StarForest) -> None:
    if not isinstance(local, Matrix) or local.shape != (forest.size, forest.size):
        raise ValueError(
            f"The matrix of a process has a row and a column for each entry of its part, {forest.size}; this "
            f"is {local!r}. Make it by `md.pattern(dofs).matrix()`, the forest by `md.part_forest(part, tree)`."
        )
