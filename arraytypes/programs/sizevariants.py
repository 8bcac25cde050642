"""The programs of a function for all sizes: what `sizes="any"` finds out, for whoever needs all of it at once.

Lengths have names, those that are equal in a call one. A function is captured for each pattern of them: all
are different, some are equal, some are small (a length of 0 to 4 is what it is, see `anysize.py`). For each
there is a template, and the programs captured at the points it was made of.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.anysize import (
    _LOW,
    _MIDDLE,
    SMALL,
    PerSize,
    Template,
    _Kind,
    _Probes,
    _Sizeless,
)
from mirabelle.arraytypes.programs.graph import empty_node
from mirabelle.arraytypes.programs.signature import Arguments, mapped
from mirabelle.arraytypes.programs.traced import family_for, handle

# Lengths that stand for any; small lengths are told apart if there are so few names. (They are 6 ** names.)
_TRIED = ((57, 91, 133, 205), (9, 11, 13, 15), (1009, 1511, 2003, 3001), (20011, 30011, 40009, 50021))
MOST_NAMES, MOST_WITH_SMALL = 4, 2
# So many variants there may be of one pattern; lengths that are what they are.
MOST_VARIANTS, MOST_SMALL = 16, 8
# The highest corners of boxes, before those of `anysize`: where plans hold for all sizes, they do so far out.
_NEXT = (9, 11, 13, 15)
_FAR: dict[int, list[int]] = {
    1: [(1 << 40) - 87, (1 << 20) + 7, (1 << 14) + 27], 2: [(1 << 20) + 7, (1 << 14) + 27], 3: [(1 << 13) + 17],
}  # fmt: skip


class Shapes:
    """Arguments without what is in them: arrays are shapes and dtypes, all else is what it was."""

    def __init__(self, inner: Any, args: Any, kwargs: Any) -> None:
        self.inner = inner
        self.args, self.kwargs = self._like((args, kwargs), {})
        self.lengths = list(
            dict.fromkeys([n for x in Arguments((self.args, self.kwargs)).arrays for n in x.shape])
        )

    def _like(self, nest: Any, lengths: Mapping[int, int]) -> Any:
        family, made = family_for(self.inner), {}

        def like(x: Any) -> Any:
            if not isinstance(x, DenseArray):
                raise PerSize("arguments are made of several arrays")
            if id(x) not in made:
                made[id(x)] = handle(family, empty_node(tuple([lengths.get(n, n) for n in x.shape]), x.dtype))
            return made[id(x)]

        return mapped(nest, like)

    def with_lengths(self, lengths: Mapping[int, int]) -> tuple[Any, Any]:
        """The arguments with other lengths."""
        found: tuple[Any, Any] = self._like((self.args, self.kwargs), lengths)
        return found


class _Call:
    def __init__(self, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.found = Arguments((args, kwargs))


class Variant:
    """The programs of one pattern of lengths.

    `names` are the lengths by their names; `template` is what holds for all of them (None: they are what they
    are), and `programs` those at its points, of which `numbers_of` says which size each length is.
    """

    def __init__(
        self, names: dict[str, int], fixed: frozenset[int], held: tuple[int, ...], numbers_of: dict[int, int],
        template: Template | None,
        programs: list[Any], written: Any = None,
    ) -> None:  # fmt: skip
        # Lengths with names that are what they are, and those without.
        self.fixed = fixed
        self.names, self.held, self.numbers_of = names, held, numbers_of
        self.template, self.programs = template, programs
        # What `accept` made of it (see `variants`).
        self.written = written


def named(shapes: Shapes, names: Mapping[str, int] | None) -> dict[str, int]:
    """The lengths that may be any, by name."""
    if names is None:
        free = [n for n in shapes.lengths if n > SMALL]
        names = dict(zip("nmkl", free, strict=False))
        if len(free) > len(names):
            raise PerSize(f"there are more than {MOST_NAMES} different lengths")
    names = {name: n for name, n in names.items() if n in shapes.lengths}
    if len(names) > MOST_NAMES:
        raise PerSize(f"there are more than {MOST_NAMES} different lengths")
    if not names:
        raise PerSize(f"none of its lengths may be any (those up to {SMALL} are what they are)")
    return names


def patterns(names: Mapping[str, int], small: list[int]) -> Iterator[tuple[int, ...]]:
    """What lengths may have in common, for each name the number of a group (those of one are equal), or -1 less
    a small length, which is what it is: all that are any and different first."""
    small = [-1 - n for n in small]
    groups = [*range(len(names))]
    for chosen in sorted(itertools.product([*groups, *small], repeat=len(names)), reverse=True):
        # (Groups are numbered as they first come.)
        found = list(dict.fromkeys([c for c in chosen if c >= 0]))
        if found == groups[: len(found)]:
            yield chosen


def variants(
    owner: Any, shapes: Shapes, names: Mapping[str, int], accept: Callable[[Variant], Any]
) -> tuple[list[Variant], list[str]]:
    """The variants of a function, the most special first, and why there are none for some lengths.

    `accept` makes something of each, and raises `PerSize` where that holds for fewer sizes.
    """
    held = tuple([n for n in shapes.lengths if n > SMALL and n not in names.values()])
    found: list[tuple[int, list[Variant]]] = []
    reasons: list[str] = []
    # (Patterns that follow are told by the first one.)
    todo = [tuple(range(len(names)))]
    if len(names) > MOST_WITH_SMALL:
        todo = [*patterns(names, [])]
    for chosen in todo:
        groups = len({c for c in chosen if c >= 0})
        mine: list[Variant] = []
        for candidate in _TRIED if len(names) <= MOST_WITH_SMALL else _TRIED[:1]:
            free = [n for n in candidate if n not in held]
            lengths = {k: free[c] if c >= 0 else -1 - c for k, c in zip(names, chosen, strict=True)}
            fixed = frozenset([-1 - c for c in chosen if c < 0])
            try:
                made = _variant(owner, shapes, names, lengths, fixed, held, mine, accept)
            except PerSize as e:
                if not mine and groups == len(names):
                    raise
                shown = [f"{k}={n if n <= SMALL else k}" for k, n in lengths.items()]
                reasons.append(f"{', '.join(shown)}: {e}")
                break
            mine += made
            if not groups:
                break
        found.append((groups, mine))
        if groups == len(names) and len(names) <= MOST_WITH_SMALL:
            # (Lengths below those of the template are what they are, too.)
            lowest = min([n for v in mine if v.template is not None for n in v.template.low], default=SMALL + 1)
            more = [*patterns(names, [*range(min(lowest, MOST_SMALL + 1))])]
            todo += [c for c in more if c not in todo]
    return [v for _, mine in sorted(found, key=lambda pair: pair[0]) for v in mine], reasons


def _variant(
    owner: Any, shapes: Shapes, names: Mapping[str, int], lengths: dict[str, int], fixed: frozenset[int],
    held: tuple[int, ...], before: list[Variant], accept: Callable[[Variant], Any],
) -> list[Variant]:  # fmt: skip
    """The variants for some lengths: none where one of those before is for them."""
    args, kwargs = shapes.with_lengths({names[k]: n for k, n in lengths.items()})
    call, like = _Call(args, kwargs), _Sizeless((args, kwargs))
    if any(
        v.template is not None and v.template.fits(like.sizes) and v.template.plan(like.sizes) for v in before
    ):
        return []
    if len(before) >= MOST_VARIANTS:
        return []
    try:
        program = owner._probe(args, kwargs)
    except Exception as e:
        raise PerSize(f"it fails: {type(e).__name__}: {e}") from None
    if fixed.issuperset(lengths.values()):
        alone = Variant(lengths, fixed, held, like.numbers_of, None, [program])
        alone.written = accept(alone)
        return [alone]
    kind = _Kind(owner, like)
    probes = _Probes(kind, call, like.sizes, program)
    probes.every = tuple([group for group in probes.every if like.sizes[group[0][0]] not in (*held, *fixed)])
    probes.to_lowest = True
    count = len(probes.every)
    wide = [(list(low[:count]), [n] * count) for n in _FAR.get(count, ()) for low in (_LOW, _NEXT, _MIDDLE)]
    found: list[Variant] = []

    def accepted(template: Template) -> None:
        programs = [probes.known_at(sizes)[1] for sizes in template.every]
        v = Variant(lengths, fixed, held, like.numbers_of, template, programs)
        v.written = accept(v)
        found[:] = [v]

    bounds = _bounds(program.reads, like.sizes, probes.every)
    if bounds is not None:
        wide = [bounds, *wide]
    template = kind.template(call, like.sizes, program, probes, wide, accepted)
    made = found
    # (Sizes that are something else modulo 2 or 4 are for templates of their own.)
    if template.step > 1:
        for more in itertools.product(range(template.step), repeat=count):
            other = {k: n if n in fixed else n + more[_number(lengths, n, fixed)] for k, n in lengths.items()}
            made += _variant(owner, shapes, names, other, fixed, held, [*before, *made], accept)
    return made


def _bounds(reads: Any, sizes: tuple[int, ...], every: Any) -> tuple[list[int], list[int]] | None:
    """Between which sizes, each by itself, comparisons of lengths come out as they did."""
    lengths = reads.lengths
    if not any(isinstance(e.value, bool) for e in reads.events):
        return None
    low, high = [], []
    for group in every:
        own = sizes[group[0][0]]

        def same(n: int, own: int = own) -> bool:
            return reads.again([n if m == own else m for m in lengths]) is not None

        ends = []
        for end in (SMALL + 1, _FAR[2][0]):
            inside, outside = own, end
            if same(end):
                inside = end
            else:
                while abs(outside - inside) > 1:
                    middle = (inside + outside) // 2
                    inside, outside = (middle, outside) if same(middle) else (inside, middle)
            ends.append(inside)
        low.append(ends[0])
        high.append(ends[1])
    return low, high


def _number(lengths: Mapping[str, int], n: int, fixed: frozenset[int]) -> int:
    """Which of the different lengths that are any one is."""
    return list(dict.fromkeys([m for m in lengths.values() if m not in fixed])).index(n)


__all__ = ["Shapes", "Variant", "named", "variants"]
