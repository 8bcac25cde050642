"""Programs for all sizes: a function is captured for a few combinations of sizes, and its plan for others is
made of these, without capturing or planning again.

Equal lengths among the arguments are one *size*; lengths of 0 to 4 are what they are (one stretches, none
holds nothing, three may be components). The function is captured at the corners of a box of sizes, and at
some even and odd ones in it. If the plans are the same but for numbers, and all numbers, those of what was
captured included, are polynomials of the sizes (`sizefits.py`), the plan holds in the whole box: what we
compare when we capture and plan (lengths, offsets, numbers of elements) is linear in each size, and has its
extremes at corners, so a comparison that comes out alike at all corners does so between them. Two parts may
be apart in two ways, one before or after the other: so `passes/geometry.py` says in which, and what lies
between each other's elements is looked at again for the sizes of each call.

What the function itself does with lengths is written down, and done again for the sizes of each call
(`extents.py`): comparisons have to come out as they did, else these sizes get a template of their own.

Where a size matters (an axis that is looped over, a matrix that has to fit a constant), a template is for one
value of it; sizes that differ by little, as those of staggered grids, may be tied. What remains is captured
for each combination of sizes, as all is without this, and `Compiled.per_size` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import Call, empty_node, number_key, ordered, walked
from mirabelle.arraytypes.programs.passes import geometry
from mirabelle.arraytypes.programs.plancopies import CannotCopy, Parts, put_together
from mirabelle.arraytypes.programs.signature import Arguments, mapped
from mirabelle.arraytypes.programs.sizefits import CUBIC, Basis, Fit, corners
from mirabelle.arraytypes.programs.steps import Plan
from mirabelle.arraytypes.programs.stillcompiling import StillCompiling
from mirabelle.arraytypes.programs.traced import Traced, family_for, handle
from mirabelle.arraytypes.wrappers import Wrapper

# A size, or several that differ by what they did when the function was captured; what is free in a template.
Group = tuple[tuple[int, int], ...]
Free = tuple[Group, ...]
# Sizes that differ by so little may be tied.
TIED = 2
# A function of more sizes than these is captured for each. (The corners of a box are 2 ** sizes.)
MOST_SIZES = 4
# Lengths of so few elements, components of a vector say, are what they are in all templates.
SMALL = 4
# Sizes that are what they are modulo one of these: `n // 2` is a polynomial of even ones.
STEPS = (1, 2, 4)
# So often it is tried to make a template for arguments of one kind; so many there may be of them.
ATTEMPTS, MOST_TEMPLATES = 3, 8
# The lowest and the highest corner of a box, where nothing speaks against it. (They differ from size to size.)
_LOW, _MIDDLE = (5, 7, 9, 11), (23, 29, 31, 37)
_HIGH, _HIGH_OF_MANY = (4099, 4111, 4127, 4129), (521, 523, 541, 547)
# Routines are run at the corners, to find out what they return: with arguments of at most so many elements.
MOST_ELEMENTS = 1 << 18


class PerSize(Exception):
    """Why programs are made for each combination of sizes."""

    def __init__(self, why: str, line: Any = None) -> None:
        super().__init__(why if line is None else f"{why}, in {shown_line(line)}")


class NoPolynomial(PerSize):
    """A number is no polynomial of the sizes. (It may be one of their halves, or quarters.)"""

    def __init__(self) -> None:
        super().__init__("a length or an offset is no polynomial of the sizes")


class _Sizeless(Arguments):
    """Arguments with their arrays' lengths as numbers of sizes; `sizes` are these."""

    __slots__ = ("numbers_of", "shapes")

    def __init__(self, arguments: Any) -> None:
        self.numbers_of: dict[int, int] = {}
        self.shapes: list[tuple[int, ...]] = []
        super().__init__(arguments)

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        # (Negative: the lengths 0 and 1.)
        found = tuple([n - 2 if n < 2 else self.numbers_of.setdefault(n, len(self.numbers_of)) for n in shape])
        self.shapes.append(found)
        return found

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.numbers_of)


def shaped(shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n + 2 if n < 0 else sizes[n] for n in shape])


class AnySize:
    """The templates of a compiled function, by the kinds of arguments that they are for."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.kinds: dict[Any, _Kind] = {}

    def found(self, call: Any) -> Any:
        """The program for a call, made of a template; None if there is none for it."""
        like = _Sizeless((call.args, call.kwargs))
        kind = self.kinds.get(like.key)
        return None if kind is None else kind.found(call, like.sizes)

    def learn(self, call: Any, program: Any) -> None:
        """Make a template of what a program for a call was made of, if that is possible."""
        like = _Sizeless((call.args, call.kwargs))
        kind = self.kinds.get(like.key)
        if kind is None:
            kind = self.kinds[like.key] = _Kind(self.owner, like)
        kind.learn(call, like.sizes, program)

    def said(self, call: Any) -> str:
        """For which sizes the plan of a call is made, as a sentence."""
        kind = self.kinds.get(_Sizeless((call.args, call.kwargs)).key)
        if kind is None or kind.reason or not kind.templates:
            why = "" if kind is None or not kind.reason else f": {kind.reason}"
            return f"each by itself{why}"
        return "any, " + " or ".join(map(str, kind.templates))

    def reasons(self) -> list[str]:
        return list(dict.fromkeys([k.reason for k in self.kinds.values() if k.reason]))


class _Kind:
    """Arguments of the same types, ranks and equal lengths."""

    def __init__(self, owner: Any, like: _Sizeless) -> None:
        self.owner = owner
        self.shapes = like.shapes
        self.keep = like.keep
        self.templates: list[Template] = []
        self.failed = 0
        # Why programs are made for each combination of sizes; "" if they are not.
        self.reason = ""

    def found(self, call: Any, sizes: tuple[int, ...]) -> Any:
        for template in self.templates:
            made = template.plan(sizes) if template.fits(sizes) else None
            if made is not None:
                return template.base.resized(call.found, *made, (call.args, call.kwargs))
        return None

    def learn(self, call: Any, sizes: tuple[int, ...], program: Any) -> None:
        if any(t.fits(sizes) and t.plan(sizes) is not None for t in self.templates):
            return  # (the program was made to be shown)
        if self.failed >= ATTEMPTS or len(self.templates) >= MOST_TEMPLATES or max(sizes, default=0) <= SMALL:
            return
        try:
            self.templates.append(self.template(call, sizes, program))
            self.reason = ""
        except StillCompiling:
            return  # (a later call will)
        except PerSize as e:
            self.failed += 1
            self.reason = str(e)

    def template(
        self,
        call: Any,
        sizes: tuple[int, ...],
        program: Any,
        probes: _Probes | None = None,
        wide: Sequence[tuple[list[int], list[int]]] = (),
        accept: Callable[[Template], None] | None = None,
    ) -> Template:
        """A template whose box holds these sizes: one of those that are `wide` if it can be, and one that
        `accept` does not refuse."""
        if call.found.composed:
            raise PerSize("arguments are made of several arrays")
        if program.inner.home.rank > 1:
            raise PerSize("arrays are divided over processes")
        if program.reads.line is not None:
            raise PerSize(
                f"a length is used as it cannot be written down ({program.reads.why})", program.reads.line
            )
        if program.decided.active:
            raise PerSize("decisions of yours are carried out for each combination")
        if sum(n > SMALL for n in sizes) > MOST_SIZES:
            raise PerSize(f"there are more than {MOST_SIZES} different lengths")
        runs = any(type(x) is Call for x in ordered(program.outputs))
        probes = probes or _Probes(self, call, sizes, program)
        every = probes.every
        error: PerSize | None = None
        for free in (every, None):
            if free is None:
                free = probes.free()
                if not free or free == every:
                    break
            for low, high in _boxes(sizes, free, wide):
                if runs and not self._small(sizes, at_point(sizes, free, high)):
                    continue
                for step in STEPS:
                    try:
                        made = Template(probes, free, low, high, step)
                        if accept is not None:
                            accept(made)
                        return made
                    except NoPolynomial as e:
                        error = error or e
                    except PerSize as e:
                        error = error or e
                        if not program.reads.divides:
                            break
        raise error or PerSize("a routine is run for each size, to see what it returns")

    def _small(self, sizes: tuple[int, ...], largest: tuple[int, ...]) -> bool:
        """May routines be run with arguments of the largest sizes?"""
        elements, before = [sum(math.prod(shaped(s, n)) for s in self.shapes) for n in (largest, sizes)]
        return elements <= max(MOST_ELEMENTS, 8 * before)


def at_point(sizes: tuple[int, ...], free: Free, point: Sequence[int]) -> tuple[int, ...]:
    """Sizes of which those that are free are others."""
    made = list(sizes)
    for group, n in zip(free, point, strict=True):
        for i, more in group:
            made[i] = n + more
    return tuple(made)


def _boxes(
    sizes: tuple[int, ...], free: Free, wide: Sequence[tuple[list[int], list[int]]] = ()
) -> Iterator[tuple[list[int], list[int]]]:
    """The lowest and highest corners of boxes around sizes, the largest first."""
    highest: Sequence[int] = _HIGH if len(free) < 3 else _HIGH_OF_MANY
    held = {i for group in free for i, _ in group}
    taken = {n for i, n in enumerate(sizes) if i not in held}
    own = [sizes[group[0][0]] for group in free]
    for low, high in (
        *wide,
        (_LOW, highest),
        (_MIDDLE, highest),
        ([n - n // 4 for n in own], highest),
        (_LOW, [4 * n for n in own]),
        ([n // 2 for n in own], [2 * n for n in own]),
        ([n - n // 4 for n in own], [n + n // 4 for n in own]),
    ):
        yield (
            _different([max(SMALL + 1, min(n, a)) for n, a in zip(own, low, strict=False)], taken, -1),
            _different([max(n + 2, b) for n, b in zip(own, high, strict=False)], taken, 1),
        )


def _different(numbers: list[int], taken: set[int], step: int) -> list[int]:
    """Numbers that differ from one another and from those that are taken: these, or next to them."""
    found: list[int] = []
    for n in numbers:
        while n in taken or n in found:
            n += step
        found.append(n)
    return found


def _inside(low: list[int], high: list[int]) -> list[tuple[int, ...]]:
    """Some sizes in a box: even and odd ones, multiples of three and of four."""
    rows = []
    for k, (a, b) in enumerate(zip(low, high, strict=True)):
        third = (a + (b - a) // 3) // 12 * 12 + 12 * k
        half = ((a + b) // 2 + 4 * k) | 1
        row = [third, half, third + 4, half - 2, a + (b - a) // 5, b - (b - a) // 5]
        rows.append([n if a < n < b else a + (b - a) * (i + 1) // 8 for i, n in enumerate(row)])
    return [p for p in zip(*rows, strict=True) if len(set(p)) == len(p)]


class _Probes:
    """A function captured and planned for other sizes."""

    def __init__(self, kind: _Kind, call: Any, sizes: tuple[int, ...], program: Any) -> None:
        self.kind, self.call, self.sizes = kind, call, sizes
        self.program = program
        self.known: dict[tuple[int, ...], tuple[Parts, Any] | PerSize] = {}
        # Are boxes to begin at the lowest sizes?
        self.to_lowest = False
        self.every: Free = tuple([((i, 0),) for i, n in enumerate(sizes) if n > SMALL])

    def at(self, sizes: tuple[int, ...], base: Parts) -> Parts:
        """What the plan for some sizes consists of: the same as another one, but for numbers."""
        found, _ = self.known_at(sizes)
        if found.same != base.same:
            pairs = zip(found.same, base.same, base.lines, strict=False)
            line = next((line for a, b, line in pairs if a != b), None)
            raise PerSize("the plan is another one for other sizes", line)
        return found

    def known_at(self, sizes: tuple[int, ...]) -> tuple[Parts, Any]:
        found = self.known.get(sizes)
        if found is None:
            try:
                found = self._made(sizes)
            except PerSize as e:
                found = e
            self.known[sizes] = found
        if isinstance(found, PerSize):
            raise found
        return found

    def _made(self, sizes: tuple[int, ...]) -> tuple[Parts, Any]:
        call, program = self.call, self.program
        made: dict[int, Any] = {}
        rest = iter(self.kind.shapes)

        def like(x: Any) -> Any:
            if not isinstance(x, DenseArray):
                raise PerSize("arguments are made of several arrays")
            found = made.get(id(x))
            if found is None:
                node = empty_node(shaped(next(rest), sizes), x.dtype)
                found = made[id(x)] = handle(family_for(program.inner), node)
            return found

        try:
            args, kwargs = mapped((call.args, call.kwargs), like)
            with geometry.asking() as asked:
                probe = self.kind.owner._probe(args, kwargs)
        except (StillCompiling, PerSize):
            raise
        except Exception as e:
            raise PerSize(f"for other sizes it fails: {type(e).__name__}: {e}") from None
        noted, probe.noted = probe.noted, []
        try:
            parts = Parts(probe.plan, probe.captured.result, asked, noted, probe.reads)
        except CannotCopy as e:
            raise PerSize(e.why, e.line) from None
        parts.same += [probe.in_place, probe._returns, _outcome(probe)]
        parts.lines += [None] * 3
        return parts, probe

    def free(self) -> Free:
        """The sizes that may be others while the rest stays as it is; and those that may be if they differ as
        they do now."""
        found = [group for group in self.every if self._may_be(group)]
        held = sorted([group[0][0] for group in self.every if group not in found], key=lambda i: self.sizes[i])
        groups: list[list[int]] = []
        for i in held:
            if groups and self.sizes[i] - self.sizes[groups[-1][-1]] <= TIED:
                groups[-1].append(i)
            else:
                groups.append([i])
        for g in groups:
            group = tuple([(i, self.sizes[i] - self.sizes[g[0]]) for i in g])
            if len(g) > 1 and self._may_be(group):
                found.append(group)
        return tuple(found)

    def _may_be(self, group: Group) -> bool:
        n = self.sizes[group[0][0]] | 1  # (Powers of two are special: a division by one is a product.)
        try:
            base, _ = self.known_at(at_point(self.sizes, (group,), (n,)))
            for other in (n + 12, n + 25):
                self.at(at_point(self.sizes, (group,), (other,)), base)
        except PerSize:
            return False
        return True


class _Outcome(Arguments):
    """A result with its arrays' ranks, and those that are constants by what they are."""

    __slots__ = ()

    def of(self, x: Any) -> Any:
        if isinstance(x, Wrapper):
            return generic_class(type(x)), self.of(x._parent)
        if isinstance(x, DenseArray) and not isinstance(x, Traced):
            return "constant", id(x)
        return super().of(x)

    def shape_of(self, shape: tuple[int, ...]) -> Any:
        return len(shape)


def _outcome(program: Any) -> Any:
    """What a program returns beside the values of arrays."""
    if program._returns < 3:
        return None
    found = _Outcome(program.captured.result)
    family = family_for(program.inner)
    return [x if x is not family else None for x in walked(found.key)]


class Template:
    """A plan for all sizes in a box: those that are `free`, from `low` to `high`; the rest is what it was."""

    def __init__(self, probes: _Probes, free: Free, low: list[int], high: list[int], step: int = 1) -> None:
        own = [probes.sizes[group[0][0]] for group in free]
        # Sizes are those of a box that are some multiple of a step more than these.
        self.step, self.rest = step, [n % step for n in own]
        low, high = self._stepped(low), self._stepped(high, -1 if probes.to_lowest else 1)
        self.free, self.low, self.high = free, low, high
        held = {i for group in free for i, _ in group}
        self.fixed = [(i, n) for i, n in enumerate(probes.sizes) if i not in held]
        self.keep = probes.kind.keep
        points = corners(low, high)
        # (Powers of two are special: a division by one is a product.)
        inside = [] if any(n & (n - 1) == 0 for n in own) else [tuple(own)]
        inside += [tuple(self._stepped(p)) for p in _inside(low, high)]
        points += [p for p in dict.fromkeys(inside) if p not in points]
        wanted = CUBIC + 1 if len(free) == 1 else 1 << len(free)
        every = [at_point(probes.sizes, free, p) for p in points]
        if len(points) < wanted + 2 or any(len(set(sizes)) < len(sizes) for sizes in every[:wanted]):
            raise PerSize("there are too few sizes like these to find out what depends on them")
        # (Sizes that are equal by chance are another kind of arguments.)
        points = [p for p, sizes in zip(points, every, strict=True) if len(set(sizes)) == len(sizes)]
        points = points[: wanted + 3]
        if probes.to_lowest:
            points[-1:-1] = [p for p in self._lowest() if p not in points]
        every = [at_point(probes.sizes, free, p) for p in points]
        # The points, as sizes of a call and as those that are free.
        self.every, self.points = every, points
        base, self.base = probes.known_at(every[-1])
        self.asked, self.reads = base.asked, base.reads
        found = [probes.at(sizes, base) for sizes in every]
        self.basis = Basis([tuple([n // step for n in p]) for p in points])
        # Different polynomials, and which of them each number of the plan is; of scalars also what makes them.
        self.polynomials: list[Fit] = []
        self._places: dict[Fit, int] = {}
        self.numbers = [self._place(list(v)) for v in zip(*[f.numbers for f in found], strict=True)]
        if None in map(self.basis.fitted, set(zip(*[f.captured for f in found], strict=True))):
            raise NoPolynomial
        # What the function does with lengths, and the polynomials that these are.
        self.lengths = [self._place(list(v)) for v in zip(*[f.reads.lengths for f in found], strict=True)]
        computed = [[e.value for e in f.reads.events] for f in found]
        self._computed = {
            tuple(map(number_key, v)): k for k, v in reversed([*enumerate(zip(*computed, strict=True))])
        }
        self.scalars = [
            self._scalar(list(v), line)
            for v, line in zip(zip(*[f.scalars for f in found], strict=True), base.scalar_lines, strict=True)
        ]

    def _lowest(self) -> list[tuple[int, ...]]:
        """Points that let the box begin at the lowest sizes. (Its corners are at different ones.)"""
        found = []
        lowest = min(self.low)
        for k, low in enumerate(self.low):
            if low > lowest + 6:
                continue
            smaller = [n for n in range(lowest, low) if n % self.step == self.rest[k]]
            for n in smaller:
                for others in (self.high, [next(m for m in range(a, a + 99) if m != n) for a in self.low]):
                    point = [*others]
                    point[k] = n
                    found.append(tuple(self._stepped(point)))
            self.low[k] = min([low, *smaller])
        return [p for p in found if len(set(p)) == len(p)]

    def _stepped(self, point: Sequence[int], way: int = 1) -> list[int]:
        """Sizes that are a multiple of the step more than those at hand: these, or larger (smaller) ones."""
        return [n + way * (way * (rest - n) % self.step) for n, rest in zip(point, self.rest, strict=True)]

    def _place(self, values: list[int]) -> int:
        """Which of the polynomials some numbers lie on."""
        place = self._fit(values)
        if place is None:
            raise NoPolynomial
        return place

    def _fit(self, values: list[int]) -> int | None:
        fit = self.basis.fitted(values)
        if fit is None:
            return None
        place = self._places.setdefault(fit, len(self.polynomials))
        if place == len(self.polynomials):
            self.polynomials.append(fit)
        return place

    def _scalar(self, values: list[Any], line: Any) -> Any:
        """How a number that a kernel is given is made: it is always the same, or of a type and a polynomial, or
        one over that, or what the function computed."""
        first = values[0]
        if all(number_key(a) == number_key(first) for a in values):
            return "same", None, first
        known = self._computed.get(tuple(map(number_key, values)))
        if known is not None:
            return "computed", None, known
        kind = type(first)
        for word in ("whole", "over"):
            try:
                whole = [round(1 / a) if word == "over" else round(a) for a in values]
                made = [kind(1) / kind(n) if word == "over" else kind(n) for n in whole]
                if all(a and number_key(a) == number_key(b) for a, b in zip(made, values, strict=True)):
                    return word, kind, self._place(whole)
            except (TypeError, ValueError, OverflowError, ZeroDivisionError):
                pass
        raise PerSize("a number is computed of sizes", line)

    def __str__(self) -> str:
        free = [f"{a} to {b}" for a, b in zip(self.low, self.high, strict=True)]
        found = " and ".join(free + [str(n) for _, n in self.fixed])
        return found + (f" in steps of {self.step}" if self.step > 1 else "")

    def fits(self, sizes: tuple[int, ...]) -> bool:
        """Does the plan hold for these?"""
        if any(sizes[i] != n for i, n in self.fixed):
            return False
        for group, low, high, rest in zip(self.free, self.low, self.high, self.rest, strict=True):
            n = sizes[group[0][0]]
            if (
                not low <= n <= high
                or n % self.step != rest
                or any(sizes[i] != n + more for i, more in group[1:])
            ):
                return False
        return True

    def plan(self, sizes: tuple[int, ...]) -> tuple[Plan, Any] | None:
        """The plan for some sizes, and the result; None if parts of arrays meet there that do not otherwise."""
        point = tuple([sizes[group[0][0]] // self.step for group in self.free])
        values = self.basis.at(point, self.polynomials)
        computed = self.reads.again([values[k] for k in self.lengths])
        if computed is None:
            return None
        scalars = []
        for word, kind, at in self.scalars:
            if word == "same":
                scalars.append(at)
            elif word == "computed":
                scalars.append(computed[at])
            else:
                scalars.append(kind(values[at]) if word == "whole" else kind(1) / kind(values[at]))
        result = self.base.captured.result
        numbers = iter([values[k] for k in self.numbers])
        return put_together(self.base.plan, result, self.asked, numbers, iter(scalars))
