"""Sparse matrices in compressed rows: `mb.CSR` stores the entries that are not zero, and where they are.

>>> import mirabelle as mb
>>> S = mb.CSR(mb.HostArray([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 4.0]]))
>>> S
CSR[HostArray[float64, 1], HostArray[int32, 1], HostArray[int32, 1]](
[[ ., 2.,  .],
 [1.,  .,  .],
 [ .,  ., 4.]])
>>> print(S @ mb.HostArray([1.0, 1.0, 1.0]), mb.sum(S * S), S.nnz)
[2. 1. 4.] 21.0 3
>>> type(mb.sin(S) + S @ S.T).__name__.split("[")[0]
'CSR'

The parts are arrays of one place: `data`, and the pattern, `indices` and `indptr`, which is shared by
what is made of the matrix, and never written to. Elementwise functions that make zero of zero run
over `data` alone, lazily, and where patterns differ over their union. Products and solves are
routines of the place's library: SciPy's, on the host.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import DenseArray, as_shape, wrap
from mirabelle.arraytypes.elementwise import join_families, leaf_family
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.indexing import Advanced, parsed
from mirabelle.arraytypes.makers import maker_of
from mirabelle.arraytypes.methods import TURNED
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.structured.banded import Banded, Diagonal, Identity
from mirabelle.arraytypes.structured.base import Implicit, Structured, indices
from mirabelle.arraytypes.structured.fallback import normal_indices
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device, DTypeLike, ShapeLike


@functools.partial(generic, arity=1)
def mapped_entries(x: Any, op: Any, operands: tuple[Any, ...]) -> Any:
    """An elementwise operation over stored entries (sparse_rules.py); NotImplemented where there is none."""


class CSR(Structured):
    """A sparse matrix in compressed rows.

    Made of a dense matrix, of a SciPy sparse matrix, of triples `(data, (i, j))` of which equal places are
    added up, or of the parts `(data, indices, indptr)`: row i is data[indptr[i]:indptr[i + 1]], in
    the columns that `indices` says.

    Parameters
    ----------
    x : matrix
        A dense or SciPy matrix, or (data, indices, indptr) with a `shape`.
    shape : pair of int or None
        The shape, where `x` does not say it.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> S = mb.CSR(([1.0, 2.0, 3.0], ([0, 1, 1], [2, 0, 0])), shape=(2, 3))
    >>> print(S)
    [[ .  . 1.]
     [5.  .  .]]
    >>> print(mb.CSR((S.data * 2, S.indices, S.indptr), shape=S.shape).T[0])
    [ 0. 10.]
    """

    __module__ = "mirabelle"
    # The matrix this is the transpose of; its own parts are made when somebody asks for them.
    __slots__ = ("_turned",)
    entrywise = True

    _turned: CSR

    def __new__(
        cls,
        x: Any,
        shape: ShapeLike | None = None,
        *,
        dtype: DTypeLike = None,
        device: Device | None = None,
    ) -> Self:
        shape = None if shape is None else as_shape(shape)
        if shape is not None and len(shape) != 2:
            raise ValueError(f"A CSR is a matrix, of two dimensions; the shape {shape} has {len(shape)}.")
        made: Any
        if isinstance(x, tuple):
            made = _of_parts(x, shape, device)
        elif hasattr(x, "tocsr"):
            made = _of_scipy(x, maker_of(device).family)
        elif isinstance(x, CSR):
            made = x
        else:
            made = _of_dense(asarray(x, device=device))
        if shape is not None and made.shape != shape:
            raise ValueError(f"This matrix has shape {made.shape}, and shape={shape} was asked for.")
        return made if dtype is None else verbs.astype(made, dtype, copy=False)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        attributes.pop("dtype", None)
        if isinstance(getattr(parameters[0], "dtype", None), np.dtype):
            attributes["dtype"] = parameters[0].dtype
        return attributes

    @property
    def data(self) -> AbstractArray:
        """The stored entries, row by row."""
        return self._parts[0]

    @property
    def indices(self) -> AbstractArray:
        """The column of each stored entry."""
        return self._parts[1]

    @property
    def indptr(self) -> AbstractArray:
        """Where in `data` each row begins; and at last where the last one ends."""
        return self._parts[2]

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return int(self._parts[0].shape[0])

    def to_scipy(self) -> Any:
        """The same matrix as SciPy's csr_array: an explicit transfer, from anywhere."""
        parts = [verbs.to_numpy(p) for p in self._parts]
        return library.routine_of(HostArray, "csr_scipy")(*parts, shape=self._shape)

    # Structure

    def _with_data(self, data: Any) -> Any:
        """Other entries at the same places."""
        return CSR._of((data, *self._parts[1:]), self._shape)

    def _cast(self, dtype: np.dtype) -> Any:
        return self._with_data(verbs.astype(self.data, dtype, copy=False))

    def _conjugated(self) -> Any:
        return self._with_data(verbs.conj(self.data))

    def _transposed(self) -> Any:
        """The transpose: its parts are those of another order, and products with it need only ours."""
        data, pattern = self._parts[0], self._parts[1:]
        like: Any = None
        if self.place.rank <= 2 and isinstance(data, DenseArray) and not data.carries_derivatives:
            version = verbs.capture(data)
            # (Memory that SciPy or NumPy may write to is copied, which is less than to order the entries anew.)
            foreign = getattr(version, "foreign", False)
            like = verbs.copy(data) if foreign else wrap(leaf_family(type(data)), version)
        if type(like) is not type(data):
            return self._called("transposed", shape=self._shape, made=self._shape[::-1])
        x = object.__new__(type(self))
        x._shape, x._how = self._shape[::-1], None
        # (What is written to our entries later is not seen.)
        x._turned = CSR._of((like, *pattern), self._shape)
        return x

    def __getattr__(self, name: str) -> Any:
        """The parts of a transpose, which are not there yet."""
        if name != "_parts":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        whole = self._whole()
        if whole is None:
            return object.__getattribute__(self, name)
        self._parts = library.call("csr_transposed", *whole._parts, shape=whole._shape)
        del self._turned
        return self._parts

    def _whole(self) -> Any:
        """The matrix this is the transpose of, while its own parts are not there; else None."""
        try:
            return self._turned
        except AttributeError:
            return None

    def _memory(self) -> set[int]:
        whole = self._whole()
        return super()._memory() if whole is None else whole._memory()  # type: ignore[no-any-return]

    def _shows(self, x: Any) -> bool:
        return self._whole() is None and super()._shows(x)

    def _called(self, name: str, *operands: Any, made: tuple[int, ...], **options: Any) -> Any:
        """The sparse matrix that a routine makes of this one."""
        return CSR._of(library.call(f"csr_{name}", *self._parts, *operands, **options), made)

    def _rows(self) -> Any:
        """The row of each stored entry: worked out once for each pattern."""
        leaf = verbs.leaf_of(self.indptr)
        known = leaf.recalled("csr_rows")
        if known is None:  # (An array is kept, and not its version: who holds an array reads it.)
            known = library.call("csr_rows", self.indptr)
            if self._shape[0]:
                verbs.leaf_of(known).remember("bounds", (0, self._shape[0] - 1))
            leaf.remember("csr_rows", known)
        return wrap(self.family, verbs.leaf_of(known))

    def _dense(self) -> Any:
        return library.call("csr_dense", *self._parts, shape=self._shape)

    def _entries(self, i: Any, j: Any) -> Any:
        return library.call("csr_lookup", *self._parts, i, j, columns=self._shape[1])

    def _diagonal(self, offset: int) -> Any:
        rows, columns = self._shape
        n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        return library.call("csr_diagonal", *self._parts, offset=offset, length=n)

    def _pattern(self) -> np.ndarray:
        found = np.zeros(self._shape, bool)
        found[verbs.fetch(self._rows()), verbs.fetch(self.indices)] = True
        return found

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}", f"nnz={self.nnz}"]

    # Reading and writing

    def _index(self, index: tuple[Any, ...]) -> Any:
        rows, columns = self._shape
        if len(index) == 2 and all(_is_integer(i) for i in index):
            i, j = normal_indices(self, index)
            element = verbs.copy(library.call("csr_entry", *self._parts, i=i, j=j))
            if not element.carries_derivatives:
                element._node.element = True
            return element
        full = _expanded(index)
        if full is not None and isinstance(full[0], slice) and _is_rows(full[1]):  # columns are rows, turned
            turned = verbs.permute_dims(self, TURNED)
            return verbs.permute_dims(verbs.getitem(turned, full[::-1]), TURNED)
        if full is None or not isinstance(full[1], slice):
            return NotImplemented
        first, along = full[0], range(columns)[full[1]]
        if _is_integer(first) and len(along) == columns and along.step == 1:
            i = normal_indices(self.indptr[:-1], (first,))[0]
            return library.call("csr_row", *self._parts, i=i, columns=columns)
        if isinstance(first, slice):
            down = range(rows)[first]
            if down == range(rows) and along == range(columns):
                return self
            return self._block(indices(self.family, len(down)) * down.step + down.start, along)
        if _is_rows(first):
            # Bounds are checked, and a mask becomes indices, as for a vector of so many rows.
            how = parsed(self.indptr[:-1], (first,))
            if isinstance(how, Advanced) and how.used[0].ndim == 1:
                return self._block(how.used[0], along)
        return NotImplemented

    def _block(self, at: Any, along: range) -> Any:
        shape = (at.shape[0], len(along))
        where = (along.start, along.step, len(along))
        return self._called("block", at, where, columns=self._shape[1], made=shape)

    def _place_of(self, index: tuple[Any, ...]) -> int:
        i, j = normal_indices(self, index)
        return int(library.call("csr_position", *self._parts, i=i, j=j))

    def _write(self, index: Any, value: Any) -> None:
        if index is None:
            if isinstance(value, CSR) and value.shape == self._shape and same_pattern(self, value):
                verbs.assign(self.data, value.data)
                return
            if isinstance(value, (bool, int, float, complex, np.generic)) and (
                value == 0 or self.nnz == self.size
            ):
                verbs.assign(self.data, value)
                return
            raise ValueError(
                "Only a matrix of its pattern, or 0, can be written to all of this CSR: its other entries "
                "are zero. Make a new array, `S = S + x`, or write to its entries: `S.data[...] = v`."
            )
        if len(index) == 2 and all(_is_integer(i) for i in index):
            at = self._place_of(index)
            if at >= 0:
                self.data[at] = value
                return
            scalar_access("Writing", self.place)
            if value != 0:
                raise ValueError(
                    f"Entry {tuple(index)} of this CSR is not stored, and cannot become {value!r}. Add a "
                    "matrix that has it: `S = S + mb.CSR(([v], ([i], [j])), shape=S.shape)`."
                )
            return
        raise TypeError(
            "This CSR is written to entry by entry, S[i, j] = v, or all of what it stores: `S.data[...] = v`. "
            "For more, make a dense copy: `x = mb.HostArray(S)`."
        )

    # Products

    def _mapped(self, op: Any, operands: tuple[Any, ...]) -> Any:
        return mapped_entries(self, op, operands)

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Identity):
            return NotImplemented  # it gives back what it meets
        if isinstance(other, Diagonal):
            return self._with_data(verbs.multiply(self.data, other.parts[0][self.indices]))
        other = _factor(other)
        if other is NotImplemented:
            return NotImplemented
        if isinstance(other, CSR):
            shapes = (self._shape, other._shape)
            made = (self._shape[0], other._shape[1])
            return self._called("times_csr", *other._parts, shapes=shapes, made=made)
        return self._product(other, left=True)

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if isinstance(other, Diagonal):
            return self._with_data(verbs.multiply(other.parts[0][self._rows()], self.data))
        other = _factor(other)
        if other is NotImplemented:
            return NotImplemented
        if isinstance(other, CSR):
            return other._times(self)
        return self._product(other, left=False)

    def _product(self, other: Any, left: bool) -> Any:
        """self @ other with a dense one, or other @ self."""
        whole = self._whole()
        if whole is None or other.ndim > 2:
            return library.call("csr_product", *self._parts, other, shape=self._shape, left=left)
        turned = whole._product(_turned(other), left=not left)  # (A^T B)^T = B^T A
        return _turned(turned)


def _turned(x: Any) -> Any:
    return x if x.ndim < 2 else verbs.permute_dims(x, (1, 0))


def _factor(x: Any) -> Any:
    """The other factor of a product, as data or sparse; NotImplemented for one that may know better."""
    if isinstance(x, Banded):
        return csr_of_bands(x)
    if isinstance(x, Structured) and not isinstance(x, CSR):
        return verbs.dense(x) if x.fuses and not isinstance(x, Implicit) else NotImplemented
    return x


def _is_integer(i: Any) -> bool:
    return isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_))


def _is_rows(i: Any) -> bool:
    """Is it a list, mask or array that picks rows?"""
    return isinstance(i, list) or (isinstance(i, (np.ndarray, AbstractArray)) and i.ndim == 1)


def _expanded(index: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """An index as one entry for the rows and one for the columns; None for another one."""
    dots = [k for k, i in enumerate(index) if i is Ellipsis]
    if len(dots) > 1 or any(i is None for i in index) or len(index) - len(dots) > 2:
        return None
    missing = (slice(None),) * (2 - len(index) + len(dots))
    at = dots[0] if dots else len(index)
    full = (*index[:at], *missing, *index[at + 1 :])
    return full[0], full[1]


# Making them


def _of_parts(x: tuple[Any, ...], shape: Any, device: Any) -> Any:
    given: tuple[Any, ...] = (x[0], *x[1]) if len(x) == 2 and isinstance(x[1], (tuple, list)) else x
    if len(given) != 3:
        raise ValueError(
            "A CSR is made of (data, indices, indptr), of triples (data, (i, j)), or of a matrix; not of "
            f"{len(x)} things."
        )
    like = next((p for p in given if isinstance(p, AbstractArray)), None)
    join_families("CSR", given)
    family = maker_of(device).family if like is None or device is not None else leaf_family(type(like))
    parts = tuple(_vector(p, family, integers=k > 0) for k, p in enumerate(given))
    if len(x) == 3:
        shape, made = library.call("csr_checked", *parts, shape=shape)
    else:
        shape, made = library.call("csr_from_triples", *parts, shape=shape)
    return CSR._of(parts if made is None else made, shape)


def _vector(x: Any, family: Any, integers: bool) -> Any:
    if isinstance(x, AbstractArray):
        return verbs.adapt(family, x)
    if isinstance(x, np.ndarray) and family.home.rank < 2:
        return as_array(x)
    data = np.asarray(x)
    if integers and not data.size:
        data = data.astype(np.int32)
    checked_dtype(data.dtype)
    return wrap(family, Leaf(family._upload(data)))


def _of_scipy(x: Any, family: Any) -> Any:
    if x.ndim != 2:
        raise ValueError(f"A CSR is a matrix; this sparse array has shape {x.shape}.")
    x = x.tocsr()
    parts = tuple(_vector(p, family, False) for p in (x.data.copy(), x.indices.copy(), x.indptr.copy()))
    shape, made = library.call("csr_checked", *parts, shape=tuple(map(int, x.shape)))
    return CSR._of(parts if made is None else made, shape)


def _of_dense(x: Any) -> Any:
    if x.ndim != 2:
        raise ValueError(f"A CSR is made of a matrix; this array has shape {x.shape}.")
    if isinstance(x, Banded):
        return csr_of_bands(x)
    return CSR._of(library.call("csr_from_dense", verbs.dense(x)), x.shape)


def csr_of_bands(x: Banded) -> Any:
    """A matrix of some diagonals as a sparse one."""
    at = indices(x.family, x.order)
    parts = [(k, p) for k, p in zip(x.offsets, x.parts, strict=True) if p.size]
    if not parts:
        return _of_dense(x._dense())
    from mirabelle.arraytypes.functions.manipulation import concat

    data = concat([verbs.dense(p) for _, p in parts])
    i, j = (concat([at[max(s * k, 0) :][: p.shape[0]] for k, p in parts]) for s in (-1, 1))
    _, made = library.call("csr_from_triples", data, i, j, shape=x.shape)
    return CSR._of(made, x.shape)


def same_pattern(x: CSR, y: CSR) -> bool:
    """Do two matrices share their pattern? (Equal patterns in different memory are not looked for.)"""
    return all(p is q or _version(p) is _version(q) for p, q in zip(x.parts[1:], y.parts[1:], strict=True))


def _version(x: Any) -> Any:
    return getattr(x, "_node", x)
