"""Dual numbers: arrays whose elements know how they change along N directions.

An element is `value + Σₖ partialₖ εₖ`, with εₖ² = 0. As all arrays of several numbers an element here, they
are kept as arrays side by side: one for the values, one, with the directions in front, for the partials. Both
are arrays of any type, so where they live, how they are laid out, and how expressions fuse is decided by what
is there already; rules for dual numbers are written with the same verbs that everybody uses.

>>> import mirabelle as mb
>>> x = mb.types.Dual(mb.HostArray([3.0, 4.0]), mb.HostArray([[1.0, 0.0], [0.0, 1.0]]))
>>> y = mb.sqrt(mb.sum(x * x))
>>> print(y.value, y.partials)
5.0 [0.6 0.8]
>>> type(y).__name__
'Dual[HostArray[float64, 0]]'

**Terms.** The partials are kept as a sum of few products `coefficient * base`: the base has the directions,
the coefficient has not. An elementwise function then multiplies the coefficient alone, which costs what the
function itself costs, however many directions there are. A base is an array, or a `Seed`, the unit directions
that a gradient starts from, which is no memory at all: `Seed @ X` is X, and the sum of `c * Seed` is c. The
product is only formed by what mixes elements and knows nothing better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.duals.tags import FREE, Tag
from mirabelle.arraytypes.elementwise import build, cast_to, default_family, leaf_family
from mirabelle.arraytypes.structured.base import indices
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import MirabelleError
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.tree import Leaf

_new = object.__new__
NUMBERS = (bool, int, float, complex, np.generic)
# A coefficient of None is 1.
Term = tuple[Any, Any]


class DualError(MirabelleError, TypeError):
    """A dual number met something that would lose its derivative, or one of another differentiation.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.autodiff.gradient(lambda x: float(mb.sum(x)), mb.HostArray([1.0]))
    ... except mb.autodiff.DualError:
    ...     print("float() would lose the derivative")
    float() would lose the derivative
    """


class TooManyDirections(Exception):
    """The partials of an array would take more memory than their differentiation wants to spend."""

    def __init__(self, directions: int, tag: Tag | None) -> None:
        self.directions = directions
        self.tag = tag


class Seed:
    """The unit directions of (a part of) the elements of an array: partial `at + i` of element `start + i` is
    1."""

    __slots__ = ("at", "count", "made", "n", "shape", "start")

    def __init__(self, n: int, shape: tuple[int, ...], start: int, count: int, at: int) -> None:
        self.n = n
        self.shape = shape
        self.start = start
        self.count = count
        self.at = at
        # The parts and shapes of it that were asked for: one object each, so that terms of one base join.
        self.made: dict[Any, Seed] = {}

    def shaped(self, shape: tuple[int, ...]) -> Seed:
        """The same directions of the elements in another shape."""
        if shape == self.shape:
            return self
        found = self.made.get(shape)
        if found is None:
            found = self.made[shape] = Seed(self.n, shape, self.start, self.count, self.at)
            found.made[self.shape] = self
        return found

    def sliced(self, low: int, high: int) -> Seed | None:
        """Those of the elements low to high of a vector; None if these have no direction."""
        found = self.made.get((low, high, ":"))
        if found is None:
            first, last = max(self.start, low), min(self.start + self.count, high)
            if first >= last:
                return None
            at = self.at + first - self.start
            found = Seed(self.n, (high - low,), first - low, last - first, at)
            self.made[low, high, ":"] = found
        return found

    @property
    def whole(self) -> bool:
        """Do all of the directions belong to this array?"""
        return self.at == 0 and self.count == self.n

    def part(self, flat: Any) -> Any:
        """Of a value for each element (a row of them, along the first axis), those that have a direction."""
        return flat if self.count == flat.shape[0] else flat[self.start : self.start + self.count]

    def placed(self, rows: Any) -> Any:
        """Rows for the directions of this array, among zeros for the others."""
        if self.whole:
            return rows
        from mirabelle.arraytypes.functions.joining import concatenate

        before, after = self.at, self.n - self.at - self.count
        zeros = [zeros_for(rows, (n, *rows.shape[1:])) if n else None for n in (before, after)]
        return concatenate([x for x in (zeros[0], rows, zeros[1]) if x is not None])

    def times(self, coefficient: Any, like: Any) -> Any:
        """coefficient * self as an array of (directions, elements): a tree, which fuses."""
        if self.n == 1 and not self.shape and isinstance(coefficient, AbstractArray):
            return verbs.reshape(coefficient, (1, *coefficient.shape))
        family = family_of(like)
        size = int(np.prod(self.shape, dtype=np.int64))
        element = verbs.reshape(indices(family, size), self.shape)
        row = verbs.reshape(indices(family, self.n), (self.n, *(1,) * len(self.shape)))
        hit = verbs.equal(verbs.add(row, self.start - self.at), element)
        if not self.whole:
            mine = verbs.logical_and(verbs.greater_equal(row, self.at), verbs.less(row, self.at + self.count))
            hit = verbs.logical_and(hit, mine)
        one = like.dtype.type(1) if isinstance(like, AbstractArray) else 1.0
        return verbs.where(hit, one if coefficient is None else coefficient, 0)


class Dual(AbstractArray):
    """An array of dual numbers: values, and partial derivatives along N directions.

    `partials` has one axis more than `value`, in front: a row for each direction. `mb.autodiff` makes them; by
    hand one asks how a result changes along directions of one's own.

    Parameters
    ----------
    value : array
        The values.
    partials : array
        The partial derivatives, with an axis more in front: a row for each direction.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.types.Dual(mb.HostArray([1.0, 2.0]), mb.HostArray([[1.0, 1.0]]))
    >>> x * x
    Dual[HostArray[float64, 1]]([1., 4.]; partials [[2., 4.]])
    """

    __module__ = "mirabelle.types"
    __slots__ = ("__weakref__", "_n", "_owns", "_source", "_tag", "_terms", "_value", "_version")

    # Wrapper types show a part of each of its arrays (duals/views.py).
    _of_several = True

    _value: Any
    _terms: tuple[Term, ...]
    _n: int
    _tag: Tag
    # Of a view: (the array it shows a part of, how: a function of its partials).
    _source: tuple[Any, Callable[[Any], Any]] | None
    # Are the partials memory that a write to this array writes to?
    _owns: bool
    # How often all of it was written at once, which gives it other terms; of a view, when it was made.
    _version: int
    parent_type: Any = AbstractArray
    # Of several types that have rules of their own for elementwise operations, this one's come first.
    carries_derivatives = True

    def __new__(cls, value: Any, partials: Any) -> Any:
        if not isinstance(value, (AbstractArray, *NUMBERS)):
            from mirabelle.arraytypes.creation import asarray

            value = asarray(value)
        if not isinstance(partials, AbstractArray):
            partials = verbs.astype(as_partials(partials, value), checked_float(value), copy=False)
        shape = value.shape if isinstance(value, AbstractArray) else ()
        if partials.ndim != len(shape) + 1 or partials.shape[1:] != shape:
            raise ValueError(
                "The partials of a Dual have one axis more than its value, in front, a row for each "
                f"direction; these have shape {partials.shape} beside a value of shape {shape}. Of one "
                "direction: mb.types.Dual(x, dx[None])."
            )
        checked_float(value)
        return cls._of(snapshot(value), ((None, snapshot(partials)),), partials.shape[0], FREE)

    @classmethod
    def _of(cls, value: Any, terms: tuple[Term, ...], n: int, tag: Tag) -> Any:
        x = _new(_typed(type(value)))
        x._value, x._terms, x._n, x._tag = value, terms, n, tag
        x._source = None
        x._version = 0
        x._owns = False
        return x

    def _with(self, value: Any, terms: tuple[Term, ...]) -> Any:
        """Other values with other terms along the same directions; without terms, no dual number."""
        if not terms:
            return value
        return Dual._of(value, terms, self._n, self._tag)

    @property
    def value(self) -> AbstractArray:
        """The values, without their derivatives."""
        return self._value

    @property
    def partials(self) -> AbstractArray:
        """The partial derivatives: an array of shape (N, *self.shape)."""
        found = combined(self, self._now())
        shape = (self._n, *self.shape)
        return cast_to(found if found.shape == shape else verbs.broadcast_to(found, shape), self.dtype)

    @property
    def directions(self) -> int:
        """How many partials an element has."""
        return self._n

    def _is_number(self) -> bool:
        return True

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        value = self._value
        return value.shape if isinstance(value, AbstractArray) else ()

    @property
    def ndim(self) -> int:  # type: ignore[override]
        """(Of most it is known from the type of their values.)"""
        return len(self.shape)

    @property
    def flags(self) -> Any:
        """How the values lie in memory."""
        return self._value.flags

    def _now(self) -> tuple[Term, ...]:
        """The terms as they are now, in arrays that nobody writes to."""
        owner, way = self._owner()
        if owner._owns:
            return ((None, snapshot(_shown(owner._terms[0][1], way))),)
        if self._version == owner._version:
            return self._terms
        return ((None, _shown(partials_of(owner), way)),)

    def _owner(self) -> tuple[Any, list[Callable[[Any], Any]]]:
        """The array whose partials a view shows (else itself), and how, from the outermost step on."""
        owner, way = self, []
        while owner._source is not None:
            owner, show = owner._source
            way.append(show)
        return owner, way

    def _writable(self) -> Any:
        """The partials as memory that belongs to this array, or is shown by it."""
        owner, way = self._owner()
        if not owner._owns:
            whole = verbs.astype(partials_of(owner), owner.dtype, copy=False)
            if isinstance(owner._value, Dual):  # of an outer differentiation: such numbers can be written to it
                made = verbs.assign(verbs.similar(owner._value, shape=whole.shape), whole)
            else:
                made = verbs.copy(whole)
            owner._terms = ((None, made),)
            owner._owns = True
        return _shown(owner._terms[0][1], way)

    def _rewritten(self, terms: tuple[Term, ...]) -> None:
        """Other partials for all elements: no memory, until a part is written."""
        self._terms = terms
        self._owns = False
        self._version += 1

    def __reduce__(self) -> Any:
        if self._tag is not FREE:
            raise DualError(
                f"A dual number of {self._tag} belongs to a differentiation that runs in this process, and "
                "does not pickle. Send its values and partials: `x.value`, `x.partials`."
            )
        return Dual, (self._value, self.partials)

    # Parameters: the type of the values.

    @classmethod
    def _normalise(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parameters) != 1 or not (
            isinstance(parameters[0], type) and issubclass(parameters[0], (AbstractArray, *NUMBERS))
        ):
            raise TypeError(
                f"{cls.__name__} takes the type of its values, for instance mb.types.Dual[mb.HostArray]."
            )
        return parameters

    @classmethod
    def _widened(cls, parameters: Any) -> Iterator[tuple[Any, ...]]:
        if issubclass(parameters[0], AbstractArray) and parameters[0].parameters:
            wider = parameters[0].__mro__[1]
            if issubclass(wider, AbstractArray):
                yield (wider,)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        value = parameters[0]
        if issubclass(value, AbstractArray):
            attributes: dict[str, Any] = {"parent_type": value}
            if isinstance(getattr(value, "dtype", None), np.dtype):
                attributes["dtype"] = value.dtype
            if isinstance(getattr(value, "ndim", None), int):
                attributes["ndim"] = value.ndim
            return attributes
        dtype = np.dtype(value)
        return {"parent_type": default_family()[dtype, 0], "dtype": dtype, "ndim": 0}

    # A number leaves the arrays only where its derivative may be lost.

    def _read(self) -> np.ndarray:
        raise DualError(
            f"Converting a dual number to a plain one would lose its derivative (of {self._tag}). Compute "
            "with mirabelle's functions, mb.sin(x) for math.sin(x), or say that it is a constant: "
            "`mb.autodiff.value(x)`."
        )

    def __bool__(self) -> bool:
        return bool(self._value)


_types: dict[type, Any] = {}


def _typed(value: type) -> Any:
    found = _types.get(value)
    if found is None:
        generic: Any = Dual
        found = _types[value] = generic[value]
    return found


def _shown(partials: Any, way: list[Callable[[Any], Any]]) -> Any:
    for show in reversed(way):
        partials = show(partials)
    return partials


# What rules are made of


def family_of(*arrays: Any) -> Any:
    """The dense type of the first array, or the default one."""
    return next((leaf_family(type(x)) for x in arrays if isinstance(x, AbstractArray)), default_family())


def checked_float(value: Any) -> np.dtype:
    """The dtype of values that have derivatives, or a TypeError."""
    dtype = value.dtype if hasattr(value, "dtype") else np.dtype(type(value))
    if dtype.kind not in "fc":
        cure = "float(x)" if isinstance(value, NUMBERS) else "x.astype(float)"
        raise TypeError(
            f"Only real numbers have derivatives, and these are {dtype.name}. Convert them: `{cure}`."
        )
    return dtype


def as_partials(partials: Any, value: Any) -> Any:
    """Partials given as numbers or lists, where the values are."""
    from mirabelle.arraytypes.creation import asarray

    made = asarray(partials, device=value.place if isinstance(value, AbstractArray) else None)
    return verbs.reshape(made, (1,)) if made.ndim == 0 else made


def zeros_for(like: Any, shape: tuple[int, ...]) -> Any:
    """Zeros that rows of `like` can be written into: dual numbers, where those are."""
    if isinstance(like, Dual):
        return like._with(zeros_for(like._value, shape), ((None, zeros_for(like._value, (like._n, *shape))),))
    from mirabelle.arraytypes.structured.base import zeros

    return zeros(family_of(like), shape, like.dtype if hasattr(like, "dtype") else np.dtype(type(like)))


def snapshot(x: Any) -> Any:
    """What `x` is now, whatever is written to it later: a handle of its own, and no copy."""
    if isinstance(x, DenseArray):
        node = x._node
        if type(node) is Leaf:
            if node.foreign:
                return verbs.copy(x)
        elif node.value is not None:
            node = node.value
        made = _new(type(x))
        made._node = node
        return made
    if isinstance(x, Dual):
        return x._with(snapshot(x._value), x._now())
    if not isinstance(x, AbstractArray) or hasattr(x, "_stored"):
        return x
    version = verbs.capture(x)
    if type(version) is Leaf and version.foreign:
        return verbs.copy(x)
    return wrap(leaf_family(type(x)), version)


def no_change(n: int) -> tuple[Term, ...]:
    """The terms of a constant that may be written dual numbers."""
    return ((0.0, Seed(n, (), 0, 1, 0)),)


def shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """`x`, which a rule has just made, in another shape: an array of its own in that memory, and no wrapper."""
    if isinstance(x, DenseArray):
        leaf = verbs.leaf_of(x)
        if leaf.view.flags.c_contiguous and not leaf.foreign:
            shown = leaf.view.reshape(shape, copy=False)
            own = x.family._standing(shown)
            return wrap(x.family, Leaf(own, root=leaf if own is shown else None))
    return verbs.reshape(x, shape)


def holds_duals(t: Any) -> bool:
    """Does an array type have dual numbers inside: Dual itself, or a structured array of such parts?"""
    return issubclass(t, Dual) or any(
        isinstance(p, type) and holds_duals(p) for p in getattr(t, "parameters", ())
    )


def directions_in_front(x: Any, ndim: int) -> Any:
    """A base with its elements' axes aligned at the end to `ndim` axes, and the directions before."""
    missing = ndim + 1 - x.ndim
    return verbs.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:])) if missing > 0 else x


def product(term: Term, ndim: int, like: Any) -> Any:
    """coefficient * base as an array (directions, ...), aligned to `ndim` axes, stretched to no shape."""
    coefficient, base = term
    if isinstance(base, Seed):
        if isinstance(coefficient, AbstractArray) and coefficient.ndim > len(base.shape):
            made = verbs.multiply(directions_in_front(base.times(None, like), coefficient.ndim), coefficient)
        else:
            made = base.times(coefficient, like)
        return directions_in_front(made, ndim)
    aligned = directions_in_front(base, ndim)
    return aligned if coefficient is None else verbs.multiply(aligned, coefficient)


def combined(x: Any, terms: tuple[Term, ...]) -> Any:
    """The sum of the terms as one array (directions, ...): a tree, stretched to no shape."""
    ndim = len(x.shape)
    guard(x)
    made = product(terms[0], ndim, x._value)
    for term in terms[1:]:
        made = verbs.add(made, product(term, ndim, x._value))
    return made


def guard(x: Any) -> None:
    """Before partials are formed: are they too much memory for the differentiation that they belong to?"""
    budget = x._tag.budget
    if budget is not None and x._n > 1:
        each = x.dtype.itemsize
        for d in x.shape:
            each *= d
        if x._n * each > budget:
            raise TooManyDirections(max(1, budget // each), x._tag)


def partials_of(x: Any) -> Any:
    """All partials of `x`, stretched to its shape."""
    shape = (x._n, *x.shape)
    found = combined(x, x._now())
    return found if found.shape == shape else verbs.broadcast_to(found, shape)


def plus(a: Any, b: Any) -> Any:
    """The sum of two coefficients."""
    return (
        verbs.add(1 if a is None else a, 1 if b is None else b)
        if isinstance(a, AbstractArray) or isinstance(b, AbstractArray)
        else (1 if a is None else a) + (1 if b is None else b)
    )


# Of more terms than these, the products are formed, lazily, and added.
MOST_TERMS = 4


def collected(x: Any, value: Any, terms: list[Term]) -> Any:
    """`x._with(value, terms)`, where terms of one base are joined, and many are added up."""
    if len(terms) > 1:
        joined: dict[int, Term] = {}
        for c, base in terms:
            if type(c) is float and c == 0.0:  # of an array that was made to be written to
                continue
            known = joined.get(id(base))
            joined[id(base)] = (c, base) if known is None else (plus(known[0], c), base)
        terms = list(joined.values()) or terms[:1]
        if len(terms) > MOST_TERMS:
            out = x._with(value, tuple(terms))
            terms = [(None, combined(out, out._terms))]
    return x._with(value, tuple(terms))


def outermost(operands: Any) -> Any:
    """Of operands, the dual number of the innermost differentiation; checks that they can meet."""
    top = None
    for x in operands:
        if isinstance(x, Dual):
            if not x._tag.open:
                raise DualError(
                    f"A dual number of {x._tag} is used after that has finished: it was kept in a variable "
                    "outside of its function. Keep its value instead: `mb.autodiff.value(x)`."
                )
            if top is None or x._tag.order > top._tag.order:
                top = x
            elif x._tag is top._tag and x._n != top._n:
                raise DualError(
                    f"Dual numbers of {x._n} and of {top._n} directions meet: they are not of one "
                    "differentiation. Give all arguments together, `mb.autodiff.jvp(f, (x, y), (dx, dy))`, "
                    "or partials of as many rows."
                )
    return top


def value_in(x: Any, tag: Tag) -> Any:
    """What `x` is for the differentiation `tag`: its values, or itself where it is a constant."""
    if isinstance(x, Dual):
        return x._value if x._tag is tag else x
    if getattr(x, "carries_derivatives", False):  # in the parts of a structured array
        return x._with_parts(tuple(value_in(p, tag) for p in x._parts))
    return x


def plain(x: Any) -> Any:
    """`x` without derivatives of any differentiation."""
    while isinstance(x, Dual):
        x = x._value
    if getattr(x, "carries_derivatives", False):
        return x._with_parts(tuple(plain(p) for p in x._parts))
    return x


def one_value(op: Any, values: tuple[Any, ...]) -> Any:
    """An elementwise operation on Python's numbers, as a Python number (which decides no dtype)."""
    found = op.of_numbers(*values)
    return (
        tuple(f.item() for f in found) if isinstance(found, tuple) else getattr(found, "item", lambda: found)()
    )


def applied(op: Any, values: tuple[Any, ...]) -> Any:
    """An elementwise operation on arrays or numbers."""
    verb = verbs.ELEMENTWISE.get(op.name)
    if verb is not None and len(values) == verb.core.arity and isinstance(values[0], AbstractArray):
        return verb(*values)
    if all(type(v) in (bool, int, float, complex) for v in values):
        return one_value(op, values)
    return build(op, values)


def apply(name: str, *values: Any) -> Any:
    """The same, by name: what formulas of derivatives are written with."""
    return applied(TABLE[name], values)


def no_rule(x: Any, name: str | None = None) -> DualError:
    """The error for an operation that has no rule."""
    from mirabelle.arraytypes.structured.fallback import called_from_outside, operation

    name = operation(x)[0] if name is None else name
    if name in ("mb.setitem", "mb.ext.assign", "mb.copyto"):
        return cannot_hold(x)
    if name == "mb.materialize":  # no generic function: a method, or a function of other things than arrays
        return DualError(
            f"{called_from_outside()}() has no rule for dual numbers, and without one the derivative (of "
            f"{x._tag}) would be lost. Say that its argument is a constant, `mb.autodiff.value(x)`; or give a "
            "function of your own that calls it a rule, with mb.autodiff.differentiable and mb.autodiff.rule."
        )
    return DualError(
        f"{name} has no rule for dual numbers, and without one the derivative (of {x._tag}) would be lost. "
        f"Give it one with `@mb.autodiff.rule({name})`, or say that its result is a constant: "
        f"`{name}(mb.autodiff.value(x))`."
    )


def cannot_hold(value: Any) -> DualError:
    """The error for dual numbers written into plain ones."""
    return DualError(
        f"An array of plain numbers cannot hold dual numbers (of {value._tag}), and their derivative would "
        "be lost. Make the array like what is written into it: mb.similar(x), mb.zeros_like(x) of a dual x; "
        "or make the result with mb.stack([...]) or mb.where(...)."
    )
