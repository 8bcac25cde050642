"""Tables of plans for all sizes (see sizes.h for what they mean).

The tables of a variant are written once for each combination of sizes that it was captured at. Where they
differ in a number, that is a polynomial of the sizes, or what the function computed of them; what depends on
such numbers is filled in by a function of C when a program is called.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.programs.anysize import SMALL, PerSize
from mirabelle.arraytypes.programs.extents import ASSUMED, LENGTH, _Of
from mirabelle.arraytypes.programs.graph import number_key
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.sizefits import Basis, Fit
from mirabelle.arraytypes.programs.sizevariants import Variant
from mirabelle.arraytypes.programs.steps import Plan, Ref, Storage
from mirabelle.backends.host import runner
from mirabelle.backends.host.ahead.tables import MARKED, CannotBuild, Tables, braced, marked, news, ready
from mirabelle.backends.host.plans import HostPlan
from mirabelle.backends.host.tasks import Place, TaskList, _Launch, _Reduction, _Span


class SizedPlan(HostPlan):
    """A plan whose temporaries are slots of their own, each as large as a call's sizes say."""

    def __init__(self, plan: Plan) -> None:
        self.homes: dict[int, int] = {}
        # Rooms in the workspace: the bytes (as texts) of what lies there, one after the other; none where a
        # call finds out.
        self.rooms: list[list[str]] = []
        super().__init__(plan)

    def build(self) -> None:
        self.rooms = []
        self.homes = self.settled()
        super().build()

    def settled(self) -> dict[int, int]:
        """The room of each temporary: those that are never needed at the same time share one."""
        roots: dict[int, list[Storage]] = {}
        for s in self.plan.storages:
            if s.kind == "temporary" and s.last >= 0:
                root = s
                while root.taken is not None:
                    root = root.taken
                roots.setdefault(root.number, [root]).append(s)
        homes: dict[int, int] = {}
        ends: list[int] = []
        for number, (root, *members) in sorted(roots.items(), key=lambda item: item[1][0].first):
            free = [i for i, end in enumerate(ends) if end < root.first]
            home = free[0] if free else len(ends)
            if not free:
                ends.append(-1)
                self.rooms.append([])
            ends[home] = root.last
            self.rooms[home] += [_bytes(s.shape, s.dtype) for s in members]
            homes.update({s.number: home for s in members})
            homes[number] = home
        return homes

    def slot_of(self, room: int) -> int:
        return 1 + len(self.slots) + room

    def room_of(self, slot: int) -> int:
        return slot - 1 - len(self.slots)

    def room(self, *nbytes: str) -> int:
        """One more room; returns its number."""
        self.rooms.append(list(nbytes))
        return len(self.rooms) - 1

    def place(self, ref: Ref) -> Place:
        s = self.lodged.get(ref.storage.number, ref.storage)
        if s.kind == "temporary":
            return self.slot_of(self.homes[s.number]), ref.offset
        return self.slots[s.number], ref.offset

    def task_list(self) -> TaskList:
        return _Apart(self)


class _Apart(TaskList):
    """A list whose partial results have rooms, whether there is one for each result or there are many."""

    keeps_partials = True

    def __init__(self, plan: SizedPlan) -> None:
        super().__init__(1 << 30)
        self.plan = plan
        self.reducing = False

    def scratch(self, nbytes: int) -> Place:
        return self.plan.slot_of(self.plan.room() if self.reducing else self.plan.room(marked(nbytes))), 0

    def reduce(self, *args: Any, **options: Any) -> int:
        self.reducing = True
        try:
            return super().reduce(*args, **options)
        finally:
            self.reducing = False

    def sliced(self, number: int) -> Callable[[int], bool]:
        return lambda rows: False


class Line:
    """A table: its type, its name, what is in it with marked numbers, how many cells it has."""

    def __init__(self, kind: str, name: str, text: str, count: int) -> None:
        self.kind, self.name, self.count = kind, name, count
        self.text = MARKED.sub("\0", text)
        self.numbers = [int(n) for n in MARKED.findall(text)]


class Sheet(Tables):
    """The tables of a program at one combination of sizes; kernels, data and loops are those of a library."""

    def __init__(self, tables: Tables) -> None:
        self.__dict__.update(tables.__dict__)
        self.found: list[Line] = []
        self.plan_at_hand: Any = None

    def array(self, kind: str, values: Any, stem: str = "t") -> str:
        cells = [value if isinstance(value, str) else marked(value) for value in values]
        if not cells:
            return "NULL"
        name = self.name(stem)
        self.found.append(Line(kind, name, "{" + ", ".join(cells) + "}", len(cells)))
        return name

    def structure(self, kind: str, stem: str, *fields: Any) -> str:
        name = self.name(stem)
        self.found.append(Line(f"const {kind}", name, "{" + braced(*fields) + "}", 0))
        return name

    def packed(self, at: int, nbytes: int) -> tuple[Any, int]:
        return f"W[{self.plan_at_hand.room(marked(nbytes))}]", at

    def sized(self, function: Any, program: Any) -> str:
        """The program at these sizes: the name of its RtSized."""
        plan = self.plan_at_hand = ready(SizedPlan(program.plan), SizedPlan)
        assert isinstance(plan, SizedPlan)
        steps, lists = [], []
        for segment in plan.segments or ():
            if isinstance(segment, TaskList):
                lists.append(f"&{self.sized_tasks(segment)}")
                steps.append(braced("NULL", lists[-1]))
                continue
            kind, what, _ = self.step(plan, segment, 0)
            if kind in ("rt_loop", "rt_branch", "rt_function"):
                raise self.refused(f"{segment.name}() is planned for each size by itself")
            steps.append(braced(kind, f"&{what}"))
        given, pairs = function.copies_of(program, plan)
        new = dict(zip([s.number for s in news(plan)], given, strict=True))
        views = [s.node.view for s in plan.data]  # type: ignore[attr-defined]
        slots = [braced("NULL", -1, 0)]
        slots += [braced(self.constant(np.asarray(in_c_order(HostArray, v))), -1, 0) for v in views]
        slots += [braced("NULL", i, 0) for i in range(len(plan.inputs))]
        for s in (*plan.outputs, *plan.made):
            place = new.get(s.number, -1)
            slots.append(braced("NULL", place, 0 if place >= 0 else plan.room(_bytes(s.shape, s.dtype))))
        slots += [braced("NULL", -1, room) for room in range(len(plan.rooms))]
        copies = [braced(plan.slots[plan.plan.outputs[k].number], to) for k, to in pairs]
        arrays = self.array(
            "const RtArray",
            [
                braced(
                    f"'{x.letter}'", x.dtype.itemsize, function.alignment(x), len(x.shape),
                    self.integers(shape), _bytes(shape, x.dtype), int(x.written),
                )
                for x, shape in zip(function.arrays, function.shapes(program), strict=True)
            ],
        )  # fmt: skip
        rooms = [_largest(sizes) for sizes in plan.rooms] or ["0"]
        return self.structure(
            "RtSized", "sized", arrays, self.array("const RtSlot", slots), self.array("const RtStep", steps),
            self.array("const RtSizedTasks *const", lists), self.array("const RtCopy", copies),
            self.array("int64_t", rooms), self.array("int64_t", ["0"] * (len(rooms) + 1)), len(slots),
            len(steps), len(lists), len(copies), len(plan.rooms),
        )  # fmt: skip

    def sized_tasks(self, tasks: TaskList) -> str:
        codes, words = self.code_of(tasks)
        statements = []
        for s in tasks._statements:
            if isinstance(s, _Launch):
                fields = (
                    "RT_LAUNCH",
                    codes[s.code],
                    s.block,
                    s.rows,
                    s.inner,
                    int(s.tiled),
                    s.cost,
                    0,
                    0,
                    "NULL",
                    0,
                )
            elif isinstance(s, _Span):
                copy = s.code == runner.COPY
                kind = "RT_COPY" if copy else "RT_FILL"
                fields = kind, codes[s.code], s.block, 0, s.count, 0, s.itemsize, 0, 0, "NULL", 0
            else:
                assert isinstance(s, _Reduction)
                fields = self.reduction(s, codes, words)
            statements.append(braced(*fields))
        patches = [braced(*patch) for patch in tasks.patches]
        return self.structure(
            "RtSizedTasks", "tasks", self.array("int64_t", words), self.array("const RtPatch", patches),
            self.array("const RtStatement", statements), len(words), len(patches), len(statements),
        )  # fmt: skip

    def reduction(self, s: _Reduction, codes: dict[int, str], words: list[Any]) -> tuple[Any, ...]:
        plan = s.plan
        partials = []
        for i, dtype in enumerate(plan.dtypes):
            fill, filled = s.fill_results[i]
            (where, _), (slot, offset) = s.partials[i], s.results[i]
            address = s.block + plan.addresses[i]
            if not s.columns:
                words[address + 1] = 0  # (how far partial results of rows are apart is found out by a call)
            fold = s.folds[i]
            words[fold + 4 : fold + 9] = [0] * 5
            first = filled if s.columns else s.fill_partials[i][1]
            partials.append(
                braced(
                    address,
                    dtype.itemsize,
                    slot,
                    offset,
                    where,
                    self.plan_at_hand.room_of(where),
                    codes[fill],
                    first,
                    filled,
                    fold,
                )
            )
        return (
            "RT_COLUMNS" if s.columns else "RT_ROWS", codes[s.code], s.block, 0, plan.inner, 0, s.cost,
            plan.kept, plan.reduced, self.array("const RtPartial", partials), len(partials),
        )  # fmt: skip


def _bytes(shape: Sequence[int], dtype: np.dtype) -> str:
    """The bytes of an array in C, by its lengths."""
    return " * ".join([*map(marked, shape), str(dtype.itemsize)])


def _largest(sizes: Sequence[str]) -> str:
    found = "0"
    for n in dict.fromkeys(sizes):
        found = n if found == "0" else f"MOST({found}, {n})"
    return found


class Filled:
    """The function of C that fills in the tables of a variant."""

    def __init__(self, variant: Variant, sizes: Sequence[str]) -> None:
        self.variant = variant
        self.sizes = list(sizes)
        template = variant.template
        self.points = template.points if template is not None else [()]
        step = template.step if template is not None else 1
        self.basis = (
            Basis([tuple([n // step for n in p]) for p in self.points]) if template is not None else None
        )
        self.polynomials: dict[Fit, str] = {}
        self.events = template.reads.events if template is not None else []
        programs = variant.programs
        self.computed = [[e.value for e in p.reads.events] for p in programs]
        self.used_events: set[int] = set()
        names = {length: name for name, length in variant.names.items()}
        for _, length in template.fixed if template is not None else ():
            if length in names and length not in variant.fixed:
                raise PerSize(f"the plan is another one for each length {names[length]}")
        if template is not None and any(kind == "between" for _, kind, _ in template.asked):
            raise PerSize("parts of arrays lie between each other's elements")

    def text(self, values: Sequence[int]) -> str:
        """What a number is in C, given what it is at the points."""
        if values.count(values[0]) == len(values):
            n = values[0]
            return f"({n + 1} - 1)" if n == -(1 << 63) else str(n)
        assert self.basis is not None
        fit = self.basis.fitted(values)
        if fit is not None:
            return self.polynomial(fit)
        # (Of several sizes polynomials are linear in each: k * k elements are k times what is.)
        for i, more in itertools.product(range(len(self.points[0])), (0, -1, -2, 1, 2)):
            factors = [p[i] + more for p in self.points]
            if all(f > 0 and v % f == 0 for f, v in zip(factors, values, strict=True)):
                fit = self.basis.fitted([v // f for f, v in zip(factors, values, strict=True)])
                if fit is not None:
                    return f"((f{i} + {more}) * {self.polynomial(fit)})"
        doubles = [float(np.int64(n).view(np.float64)) for n in values]
        singles = [float(np.int64(n).view(np.uint64).astype(np.uint32).view(np.float32)) for n in values]
        for k, column in enumerate(zip(*self.computed, strict=True)):
            if all(type(v) is int for v in column) and list(column) == list(values):
                return self.event(k)
            if all(type(v) in (int, float) for v in column):
                if [float(v) for v in column] == doubles:
                    return f"rt_bits((double){self.event(k)})"
                if [float(np.float32(v)) for v in column] == singles:
                    return f"rt_bits4((float){self.event(k)})"
        for numbers, single in ((doubles, False), (singles, True)):
            found = self._of_sizes(numbers, single)
            if found is not None:
                return f"rt_bits4((float)({found}))" if single else f"rt_bits({found})"
        raise PerSize("a number of its plan is no polynomial of the sizes")

    def _of_sizes(self, numbers: Sequence[float], single: bool) -> str | None:
        """A number that is a polynomial of sizes, or one over that."""
        if not all(np.isfinite(numbers)) or 0.0 in numbers or max(map(abs, numbers)) > 2.0**52:
            return None
        for over in (False, True):
            if over and min(map(abs, numbers)) < 2.0**-52:
                return None
            whole = [round(1 / x) if over else round(x) for x in numbers]
            if 0 in whole:
                continue
            made = [1 / n if over else float(n) for n in whole]
            if [float(np.float32(x)) if single else x for x in made] != list(numbers):
                continue
            fit = self.basis.fitted(whole)  # type: ignore[union-attr]
            if fit is not None:
                return f"1.0 / (double){self.polynomial(fit)}" if over else f"(double){self.polynomial(fit)}"
        return None

    def polynomial(self, fit: Fit) -> str:
        return self.polynomials.setdefault(fit, f"p{len(self.polynomials)}")

    def event(self, k: int) -> str:
        if k not in self.used_events:
            self.used_events.add(k)
            for a in self.events[k].operands:
                if isinstance(a, _Of):
                    self.event(a.number)
        return f"e{k}"

    # What of

    def guards(self) -> list[str]:
        """The conditions under which the variant is for some sizes (`n[i]`)."""
        at = {name: f"n[{i}]" for i, name in enumerate(self.sizes)}
        names, found = self.variant.names, []
        first: dict[int, str] = {}
        fixed = self.variant.fixed
        for name, length in names.items():
            if length in first:
                found.append(f"{at[name]} == {at[first[length]]}")
                continue
            if length in fixed:
                found.append(f"{at[name]} == {length}")
            else:
                found += [f"{at[name]} != {at[other]}" for k, other in first.items() if k not in fixed]
                found += [f"{at[name]} != {n}" for n in (*self.variant.held, *fixed) if n > SMALL]
            first[length] = name
        template = self.variant.template
        if template is None:
            return found
        of = {number: length for length, number in self.variant.numbers_of.items()}
        for group, low, high, rest in zip(
            template.free, template.low, template.high, template.rest, strict=True
        ):
            name = at[first[of[group[0][0]]]]
            found.append(f"{name} >= {low} && {name} <= {high}")
            if template.step > 1:
                found.append(f"{name} % {template.step} == {rest}")
            found += [f"{at[first[of[i]]]} == {name} + {more}" for i, more in group[1:]]
        return found

    def variables(self) -> list[str]:
        """The sizes that polynomials are of, in C."""
        template = self.variant.template
        if template is None:
            return []
        at = {name: f"n[{i}]" for i, name in enumerate(self.sizes)}
        first = {length: name for name, length in reversed(self.variant.names.items())}
        of = {number: length for length, number in self.variant.numbers_of.items()}
        return [at[first[of[g[0][0]]]] for g in template.free]

    def reads(self) -> list[str]:
        """What the function did with lengths, in C: comparisons that came out otherwise end it."""
        template = self.variant.template
        if template is None:
            return []
        lengths = iter(zip(*[p.reads.lengths for p in self.variant.programs], strict=True))
        made = []
        for k, e in enumerate(self.events):
            if e.what is LENGTH:
                text = self.text(list(next(lengths)))
                made.append((k, f"const int64_t e{k} = {text};"))
                continue
            if e.what is ASSUMED or isinstance(e.value, bool):
                self.event(k)
            made.append((k, _computed(e, k)))
        return [text for k, text in made if k in self.used_events]

    def function(self, sheets: Sequence[Sheet], result: str, number: int) -> tuple[list[str], str]:
        """The tables and the function, and its entry among variants."""
        columns = list(zip(*[sheet.found for sheet in sheets], strict=False))
        same = all(len(s.found) == len(sheets[0].found) for s in sheets)
        if not same or any(
            (x.kind, x.name, x.text) != (c[0].kind, c[0].name, c[0].text) for c in columns for x in c
        ):
            raise PerSize("kernels are others for other sizes")
        image: dict[str, Line] = {}
        fixed: list[str] = []
        filled: list[str] = []
        late: list[str] = []
        for column in columns:
            line = column[0]
            rows = list(zip(*[x.numbers for x in column], strict=True))
            cells = iter([self.text(list(row)) for row in rows])
            text = re.sub("\0", lambda _: next(cells), line.text)
            varies = any(row.count(row[0]) < len(row) for row in rows) or not line.kind.startswith("const")
            words = set(re.findall(r"\b\w+_\d+\b", text))
            if not varies and not words & image.keys() and "W[" not in text:
                fixed.append(f"static {line.kind} {line.name}[] = {text};")
                continue
            image[line.name] = line
            text = re.sub(r"&?\b(\w+_\d+)\b", lambda m: f"im->{m[1]}" if m[1] in image else m[0], text)
            bare = _bare(line.kind)
            made = f"memcpy(im->{line.name}, (({bare}[]){text}), sizeof im->{line.name});"
            (late if "W[" in text else filled).append(made)
        # (All tables are arrays: their names are their addresses.)
        names = {c[0].name for c in columns}
        fixed = [re.sub(r"&(\w+_\d+)\b", lambda m: m[1] if m[1] in names else m[0], t) for t in fixed]
        reads = self.reads()
        members = "\n".join([f"    {_bare(x.kind)} {_declared(x)};" for x in image.values()])
        variables = self.variables()
        step = self.variant.template.step if self.variant.template is not None else 1
        polynomials = [
            f"const int64_t {name} = {expression(self.basis, fit)};" for fit, name in self.polynomials.items()
        ]
        guards = " && ".join(self.guards()) or "1"
        body = "\n".join(
            f"    {x}"
            for x in (
                f"image_{number} *im = image;",
                f"if (!({guards}))\n        return NULL;",
                *[f"const int64_t f{i} = {v}, s{i} = f{i} / {step};" for i, v in enumerate(variables)],
                *polynomials,
                *reads,
                *filled,
                f"rt_measure(im->{result});",
                "const int64_t *const W = im->" + _rooms(image[result]) + ";",
                "(void)W;",
                *late,
                f"return im->{result};",
            )
        )
        lines = [
            *fixed,
            f"typedef struct {{\n{members}\n}} image_{number};",
            f"static const RtSized *\nfilled_{number}(void *image, const int64_t *n)\n{{\n{body}\n}}",
        ]
        return lines, braced(f"filled_{number}", f"sizeof(image_{number})")


def _rooms(line: Line) -> str:
    """The table of where rooms begin, of a RtSized."""
    return re.findall(r"\w+_\d+", line.text)[-1]


def _bare(kind: str) -> str:
    return kind.removeprefix("const ") if "*" not in kind else kind.removesuffix("const").strip()


def _declared(line: Line) -> str:
    return f"{line.name}[{max(line.count, 1)}]"


def expression(basis: Any, fit: Fit, names: Sequence[str] | None = None) -> str:
    """A polynomial of sizes, in C.

    >>> expression(Basis([(5,), (7,), (9,), (11,)]), (3, 1))
    's0 - 2'
    """
    count = basis.sizes
    names = names or [f"s{i}" for i in range(count)]
    terms: dict[tuple[int, ...], int] = {}
    made: dict[tuple[int, ...], int]
    monomials: list[dict[tuple[int, ...], int]] = [{(0,) * count: 1}]
    if count == 1:
        for (node,) in basis.points[: len(fit) - 1]:
            before = monomials[-1]
            made = {(k[0] + 1,): c for k, c in before.items()}
            for k, c in before.items():
                made[k] = made.get(k, 0) - node * c
            monomials.append(made)
    else:
        for i, low in enumerate(basis.points[0]):
            more = []
            for m in monomials:
                made = {tuple([d + (j == i) for j, d in enumerate(k)]): c for k, c in m.items()}
                for k, c in m.items():
                    made[k] = made.get(k, 0) - low * c
                more.append(made)
            monomials += more
    for c, m in zip(fit, monomials, strict=False):
        for k, d in m.items():
            terms[k] = terms.get(k, 0) + c * d
    found = ""
    for k, c in sorted(terms.items(), key=lambda item: (-sum(item[0]), [-d for d in item[0]])):
        if not c:
            continue
        factors = [name for name, d in zip(names, k, strict=True) for _ in range(d)]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = ("-" if c < 0 else "") if not found else (" - " if c < 0 else " + ")
        found += sign + " * ".join(factors)
    return found or "0"


_SYMBOLS: dict[Any, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip


def _computed(e: Any, k: int) -> str:
    """An event in C."""
    operands = []
    for a in e.operands:
        if isinstance(a, _Of):
            operands.append(f"e{a.number}")
        elif type(a) is int:
            operands.append(str(a))
        elif type(a) is float and np.isfinite(a):
            operands.append(repr(a))
        else:
            return f"#error {k}"
    kind = {int: "int64_t", float: "double", bool: "int"}.get(type(e.value))
    what, before = e.what, ""
    if what is ASSUMED:
        if number_key(e.value) != number_key(e.operands[0]) and type(e.value) is not int:
            return f"#error {k}"
        return f"if ({operands[0]} != {e.value})\n        return NULL;"
    if what in _SYMBOLS:
        text = f"{operands[0]} {_SYMBOLS[what]} {operands[1]}"
    elif what is operator.truediv:
        before = f"if ({operands[1]} == 0)\n        return NULL;\n    "
        text = f"(double){operands[0]} / (double){operands[1]}"
    elif what in (operator.floordiv, operator.mod) and kind == "int64_t":
        before = f"if ({operands[1]} == 0)\n        return NULL;\n    "
        text = f"{'rt_floor' if what is operator.floordiv else 'rt_rest'}({operands[0]}, {operands[1]})"
    elif what is operator.neg:
        text = f"-{operands[0]}"
    elif what is bool:
        text = f"{operands[0]} != 0"
    else:
        return f"#error {k}"
    if kind is None:
        return f"#error {k}"
    check = f"\n    if ({'!' * bool(e.value)}e{k})\n        return NULL;" if kind == "int" else ""
    return f"{before}const {kind} e{k} = {text};{check}"


def variant_tables(tables: Tables, function: Any, variant: Variant) -> tuple[list[str], str]:
    """The tables of a variant, and its entry among variants. (Kernels and data go to the library's at once.)"""
    filled = Filled(variant, function.sizes)
    start = tables.number
    sheets, result = [], ""
    for program in variant.programs:
        sheet = Sheet(tables)
        sheet.number = start
        result = sheet.sized(function, program)
        tables.blas |= sheet.blas
        sheets.append(sheet)
    tables.number = max(sheet.number for sheet in sheets) + 1
    lines, entry = filled.function(sheets, result, tables.number)
    if any("#error" in line for line in lines):
        raise PerSize("what is computed of a length is not to be written in C")
    return lines, entry


__all__ = ["CannotBuild", "Filled", "Sheet", "SizedPlan", "expression", "variant_tables"]
