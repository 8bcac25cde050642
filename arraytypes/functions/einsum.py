"""einsum: sums of products, written as indices.

Several operands are contracted in pairs, in an order found by opt_einsum or NumPy. What of it is
elementwise stays a tree, a sum over lines is one fused reduction, and the rest are matrix
products (see `contraction.py`). A repeated index is a view of a diagonal.

>>> import mirabelle as mb
>>> a, b = mb.ones((3, 4)), mb.ones((3, 4))
>>> with mb.count() as c:
...     rows = mb.materialize(mb.einsum("ij,ij->i", a, b + 1))
>>> print(rows, c.launches, c.temporaries)
[8. 8. 8.] 1 0
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.contraction import arranged, contract, total
from mirabelle.arraytypes.functions.outputs import into
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.wrappers import view_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained


@explained
def einsum(
    subscripts: Any,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    casting: str = "safe",
    optimize: Any = True,
) -> AbstractArray:
    """The sum of products that `subscripts` say: indices of each operand, and of the result.

    Indices that the result lacks are summed over. Without `->` the result has those that occur once,
    in alphabetical order; `...` stands for the dimensions that have no letter. Operands may also be
    followed by lists of integers, `einsum(a, [0, 1], b, [1, 2], [0, 2])`. `optimize` says how the
    order of contractions is found: True, False (none: one kernel for all), "greedy", "optimal", or a
    path from `einsum_path`.

    Parameters
    ----------
    subscripts : str
        Indices of each operand, and of the result: "ij,jk->ik".
    *operands : arrays
        The operands.
    out : array or None
        Where the result is written; it is returned, too.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    casting : str, default 'safe'
        Which conversions are allowed, as in `np.can_cast`.
    optimize : bool, str or path, default True
        In which order is contracted: "greedy", "optimal", a path of `einsum_path`; True chooses, False
        takes all at once.

    Returns
    -------
    array
        With the dimensions in the order of the result's indices, of none if there are none. What only
        reorders or picks of one operand is a view of it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1, 2], [3, 4]])
    >>> print(mb.einsum("ij,jk->ik", x, x), mb.einsum("ii", x), mb.einsum("ij->j", x))
    [[ 7 10]
     [15 22]] 5 [4 6]
    """
    arrays, inputs, output = parsed(subscripts, operands)
    wanted = None if dtype is None else checked_dtype(dtype)
    if wanted is not None:
        for x in arrays:
            if not np.can_cast(x.dtype, wanted, casting):  # type: ignore[arg-type]
                raise TypeError(
                    f"einsum: an operand of dtype {x.dtype.name} cannot be cast to {wanted.name} under the "
                    f'rule {casting!r}. Allow it with casting="unsafe", or convert the operand: x.astype(...).'
                )
        arrays = [cast_to(x, wanted) for x in arrays]
    else:  # (also what is summed before it meets the others is a sum in the dtype of the result)
        common = np.result_type(*[x.dtype for x in arrays])
        arrays = [x if x.dtype == common else cast_to(x, common) for x in arrays]
    pairs = [_without_repeats(x, labels) for x, labels in zip(arrays, inputs, strict=True)]
    if len(pairs) > 1:
        pairs = _stretched(pairs)
    return into(out, _contracted(pairs, output, optimize))


@explained
def einsum_path(subscripts: Any, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """The order in which `einsum` would contract: a path to give it as `optimize`, and a description.

    Parameters
    ----------
    subscripts : str
        As in `einsum`.
    *operands : arrays
        The operands.
    optimize : bool or str, default 'greedy'
        How it is searched for: "greedy" or "optimal".

    Returns
    -------
    tuple
        The path, a list of the name and of tuples of operands' numbers; and the description, a str.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.ones((2, 2))
    >>> mb.einsum_path("ij,jk,kl->il", a, a, a)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    # NumPy reads the subscripts, and shapes are all it looks at.
    given = [subscripts, *operands]
    shown: list[Any] = [x if isinstance(x, (str, list, tuple)) else _no_memory(np.shape(x)) for x in given]
    path, text = np.einsum_path(*shown, optimize=optimize)
    return list(path), text


def _no_memory(shape: tuple[int, ...]) -> np.ndarray:
    """An array of a shape, for those who look at nothing else."""
    return np.broadcast_to(np.empty((), np.int8), shape)


# Reading subscripts


def parsed(subscripts: Any, operands: tuple[Any, ...]) -> tuple[list[Any], list[list[Any]], list[Any]]:
    """Operands as arrays, the labels of their dimensions, and those of the result."""
    spelt = isinstance(subscripts, str)
    given, terms, result = (operands, [], None) if spelt else _interleaved((subscripts, *operands))
    like = next((x for x in given if isinstance(x, AbstractArray)), None)
    arrays = [as_array(x, like=like) for x in given]
    ranks = tuple(x.ndim for x in arrays)
    labels, output = _spelt(subscripts, ranks) if spelt else _labelled(terms, result, ranks)
    _check(labels, output, arrays)
    return arrays, labels, output


@functools.lru_cache(maxsize=1024)
def _spelt(text: str, ranks: tuple[int, ...]) -> tuple[list[list[Any]], list[Any]]:
    """The labels that a text means for arrays of these dimensions; kept, so not to be changed."""
    return _labelled(*_split(text, len(ranks)), ranks)


def _labelled(
    terms: list[list[str]], result: list[str] | None, ranks: tuple[int, ...]
) -> tuple[list[list[Any]], list[Any]]:
    labels = [_expanded(term, ndim, i) for i, (term, ndim) in enumerate(zip(terms, ranks, strict=True))]
    broadcast = max((sum(isinstance(label, int) for label in term) for term in labels), default=0)
    # `...` are negative numbers, counted from the end, so that dimensions are aligned there.
    dots = list(range(-broadcast, 0))
    if result is not None:
        return labels, [d for part in result for d in (dots if part == "..." else [part])]
    counts: dict[Any, int] = {}
    for term in labels:
        for label in term:
            counts[label] = counts.get(label, 0) + 1
    return labels, dots + sorted(label for label, n in counts.items() if n == 1 and isinstance(label, str))


def _split(text: str, count: int) -> tuple[list[list[str]], list[str] | None]:
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    if "-" in left or ">" in left or "->" in right or "," in right:
        raise ValueError(f"einsum: {text!r} has more than one result. Write it as 'ij,jk->ik'.")
    terms = [_symbols(term) for term in left.split(",")]
    if len(terms) != count:
        raise ValueError(
            f"einsum: {text!r} has indices for {len(terms)} operand(s), and {count} came. Separate them with "
            "commas."
        )
    return terms, _symbols(right) if arrow else None


def _symbols(term: str) -> list[str]:
    """A term as letters and `...`."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if not letter.isalpha():
            raise ValueError(
                f"einsum: invalid subscript {letter!r} in {term!r}. Indices are letters, and one `...` for the "
                "rest."
            )
    return [*before, *(["..."] if dots else []), *after]


def _interleaved(given: tuple[Any, ...]) -> tuple[list[Any], list[list[str]], list[str] | None]:
    """einsum(a, [0, 1], b, [1, 2], [0, 2])"""
    operands, lists = list(given[0 : 2 * (len(given) // 2) : 2]), list(given[1::2])
    if not lists:
        raise ValueError("einsum takes indices and operands: einsum('ij,jk->ik', a, b).")
    terms = [_numbered(numbers) for numbers in lists]
    return operands, terms, _numbered(given[-1]) if len(given) % 2 else None


def _numbered(numbers: Any) -> list[str]:
    if not isinstance(numbers, (list, tuple)):
        raise TypeError(
            "einsum: each operand is followed by a list of its indices, and here is a "
            f"{type(numbers).__name__}. Or write the indices as text first: einsum('ij,jk->ik', a, b)."
        )
    return ["..." if n is Ellipsis else _letter(int(n)) for n in numbers]


def _letter(n: int) -> str:
    """Letters in the order of their numbers: the result of an implicit output is sorted by them."""
    if not 0 <= n < 1 << 15:
        raise ValueError(f"einsum: an index is a number from 0 on, not {n}.")
    if n < 26:
        return chr(ord("A") + n)
    return chr(ord("a") + n - 26) if n < 52 else chr(140 + n)


def _expanded(term: list[str], ndim: int, i: int) -> list[Any]:
    """A term's labels, one a dimension; those of `...` are numbers below zero."""
    named = len(term) - ("..." in term)
    rest = ndim - named
    if rest < 0 or (rest and "..." not in term):
        raise ValueError(
            f"einsum: operand {i} has {ndim} dimension(s), and its indices {''.join(term)!r} name {named}. "
            "Add letters, or `...` for dimensions that are not summed."
        )
    out: list[Any] = []
    for part in term:
        out += list(range(-rest, 0)) if part == "..." else [part]
    return out


def _check(inputs: list[list[Any]], output: list[Any], arrays: list[Any]) -> None:
    sizes: dict[Any, int] = {}
    for labels, x in zip(inputs, arrays, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, n)
            if known == 1:
                sizes[label] = n
            elif n not in (1, known):
                shown = label if isinstance(label, str) else "..."
                raise ValueError(
                    f"einsum: index {shown!r} stands for dimensions of {known} and of {n} elements; operands "
                    f"could not be broadcast together: {', '.join(str(a.shape) for a in arrays)}."
                )
    for label in output:
        if label not in sizes:
            raise ValueError(f"einsum: the result has the index {label!r}, which no operand has.")
    if len(set(output)) < len(output):
        raise ValueError("einsum: an index comes twice in the result. A diagonal matrix is mb.diag(x).")
    missing = [label for label in sizes if isinstance(label, int) and label not in output]
    if missing:
        raise ValueError(
            "einsum: `...` stands for dimensions of an operand, and the result has no `...` for them. Name "
            "them by letters to sum over them."
        )


# Contracting

Term = tuple[Any, list[Any]]


def _without_repeats(x: Any, labels: list[Any]) -> Term:
    """A diagonal for each index that an operand has twice."""
    while True:
        again = next((label for i, label in enumerate(labels) if label in labels[:i]), None)
        if again is None:
            return x, labels
        first = labels.index(again)
        second = labels.index(again, first + 1)
        if x.shape[first] != x.shape[second]:
            raise ValueError(
                f"einsum: index {again!r} comes twice in one operand, for dimensions of {x.shape[first]} and "
                f"{x.shape[second]} elements. A diagonal needs equal ones."
            )
        x = diagonal_view(x, 0, first, second)
        labels = [label for i, label in enumerate(labels) if i not in (first, second)] + [again]


def _stretched(terms: list[Term]) -> list[Term]:
    """Operands whose dimensions of one element are as long as those of the others that share their index.

    (Those of `...` stay as they are: they are in the result, where elementwise products stretch them.)
    """
    sizes: dict[Any, int] = {}
    for x, labels in terms:
        for label, n in zip(labels, x.shape, strict=True):
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    found: list[Term] = []
    for x, labels in terms:
        shape = tuple(sizes[i] if isinstance(i, str) else n for i, n in zip(labels, x.shape, strict=True))
        found.append((x if shape == x.shape else verbs.broadcast_to(x, shape), labels))
    return found


def _contracted(terms: list[Term], output: list[Any], optimize: Any) -> Any:
    if len(terms) == 1:
        return _finished(*terms[0], output)
    if len(terms) == 2:
        return _pair(terms[0], terms[1], output)[0]
    if optimize is False:
        return _all_at_once(terms, output)
    for step in _path(terms, output, optimize):
        taken = [terms[i] for i in sorted(step)]
        terms = [t for i, t in enumerate(terms) if i not in step]
        while len(taken) > 1:
            others = [label for _, labels in (*terms, *taken[2:]) for label in labels]
            last = not terms and len(taken) == 2
            taken[:2] = [_pair(taken[0], taken[1], output if last else _needed(taken[:2], [*others, *output]))]
        terms += taken
    if len(terms) > 1:  # a path that does not go to the end
        return _contracted(terms, output, [tuple(range(len(terms)))] if len(terms) > 2 else True)
    x, labels = terms[0]
    return x if labels == output else _finished(x, labels, output)


def _needed(pair: Sequence[Term], later: list[Any]) -> list[Any]:
    """The labels of two operands that somebody still needs, in their order."""
    return [label for label in dict.fromkeys([*pair[0][1], *pair[1][1]]) if label in later]


def _pair(first: Term, second: Term, out: list[Any]) -> Term:
    return contract(*first, *second, out), out


def _finished(x: Any, labels: list[Any], output: list[Any]) -> Any:
    """One operand, summed over what the result lacks: a view where nothing is summed."""
    axes = tuple(i for i, label in enumerate(labels) if label not in output)
    kept = [label for label in labels if label in output]
    if not axes:
        x = arranged(x, labels, output)
        return view_of(x, (...,)) if isinstance(x, AbstractArray) and labels == output else x
    return arranged(total(x, axes), kept, output)


def _all_at_once(terms: list[Term], output: list[Any]) -> Any:
    """The product of all operands, summed in one kernel."""
    summed = [label for label in dict.fromkeys(n for _, labels in terms for n in labels) if label not in output]
    full = [*output, *summed]
    product = functools.reduce(verbs.multiply, [arranged(x, labels, full) for x, labels in terms])
    return total(product, tuple(range(len(output), len(full))))


def _path(terms: list[Term], output: list[Any], optimize: Any) -> list[tuple[int, ...]]:
    if isinstance(optimize, (list, tuple)):
        steps = [step for step in optimize if step != "einsum_path"]
        if all(isinstance(step, (list, tuple)) for step in steps):
            return _given_path(steps, len(terms))
        optimize = tuple(optimize)  # a method, and the elements a temporary may have
    seen = dict.fromkeys(label for _, labels in terms for label in labels)
    letter = {label: chr(n + (65 if n < 26 else 71 if n < 52 else 140)) for n, label in enumerate(seen)}
    spelt = ["".join(letter[label] for label in labels) for labels in (*(t[1] for t in terms), output)]
    return _found_path(f"{','.join(spelt[:-1])}->{spelt[-1]}", tuple(x.shape for x, _ in terms), optimize)


def _given_path(steps: list[Any], count: int) -> list[tuple[int, ...]]:
    """A path as the caller wrote it: at each step, operands by their place among those left."""
    for step in steps:
        chosen = {operator.index(i) for i in step}
        if len(chosen) < len(step) or not all(0 <= i < count for i in chosen):
            raise ValueError(
                f"einsum: the path {steps!r} contracts {tuple(step)!r} where {count} operand(s) are left. Let "
                "one be found: optimize=True, or einsum_path(...)."
            )
        count += 1 - len(step)
    return [tuple(step) for step in steps]


@functools.lru_cache(maxsize=1024)
def _found_path(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[tuple[int, ...]]:
    """The cheapest order of contractions: opt_einsum's where it is installed, else NumPy's."""
    if optimize is True or (isinstance(optimize, str) and optimize not in ("greedy", "optimal")):
        if importlib.util.find_spec("opt_einsum") is not None:
            opt_einsum: Any = importlib.import_module("opt_einsum")
            method = "auto" if optimize is True else optimize
            try:
                path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=method)
            except KeyError:
                raise ValueError(
                    f'einsum: optimize={optimize!r} is no way to find a path. There are True, False, "greedy", '
                    '"optimal", a path, and the methods of opt_einsum: "auto", "dp", "branch-2", ...'
                ) from None
            return [tuple(step) for step in path]
        if optimize is not True:
            raise ValueError(
                f"einsum: optimize={optimize!r} is a method of opt_einsum, which is not installed: "
                "`pip install opt_einsum`. NumPy knows 'greedy' and 'optimal'."
            )
    path, _ = np.einsum_path(
        text, *map(_no_memory, shapes), optimize="greedy" if optimize is True else optimize
    )
    return [tuple(step) for step in path[1:]]  # type: ignore[arg-type]
