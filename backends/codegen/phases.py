"""A kernel with barriers, cut into phases: what a whole group does before anybody goes on.

On a processor a group's threads are a loop. Between two barriers each phase is such a loop of its
own; loops and branches around a barrier go round it, taken by the group as one. What a thread
keeps from one phase to the next is stored for each thread; numbers that steer the group are
worked out once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mirabelle.backends.codegen.variables import defined, exposed, is_arithmetic, names, stored_names


@dataclass
class Phase:
    """Statements that each thread of a group executes, in any order of threads."""

    body: list[ast.stmt]
    # Of what threads keep: read on the way in, written on the way out.
    loads: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    # Worked out anew rather than kept: `i = index(0)`.
    again: list[ast.stmt] = field(default_factory=list)


@dataclass
class Once:
    """A statement the group executes once: it gives all threads the same number."""

    statement: ast.stmt


@dataclass
class Control:
    """A loop or branch of the whole group. `agreed`: parts that each thread must find the same."""

    node: ast.For | ast.While | ast.If
    body: list[Item]
    orelse: list[Item]
    agreed: list[tuple[str, ast.expr, Phase]]


Item = Phase | Once | Control


@dataclass
class Phases:
    items: list[Item]
    # The variables of which each thread keeps its own from phase to phase.
    kept: list[str]


class PhaseError(Exception):
    """A kernel that cannot be cut, with the node and the reason."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.node = node


class Cutter:
    """Cuts one kernel.

    `uniform` holds the names all threads of a group see alike (sizes, numbers passed in), and
    `is_barrier` knows a barrier; `arrays` are never kept, they are there for everybody.
    """

    def __init__(
        self,
        body: list[ast.stmt],
        uniform: set[str],
        arrays: set[str],
        coordinates: set[str],
        is_barrier: Callable[[ast.AST], bool],
    ) -> None:
        self.body = body
        self.arrays = arrays
        self.coordinates = coordinates
        self.is_barrier = is_barrier
        self.assigned = stored_names(body) - arrays
        self.given = uniform - self.assigned
        self.control: set[int] = set()
        self.same: set[str] = set()
        self.group: set[str] = set()
        self.count = 0

    def cut(self) -> Phases:
        self.find_control(self.body, None)
        self.find_uniform()
        self.find_group()
        again = self.find_again()
        items = self.items(self.body)
        kept = self.find_kept(items, again)
        return Phases(items, kept)

    # What the group does as one

    def find_control(self, block: list[ast.stmt], loop: ast.AST | None) -> None:
        for s in block:
            if isinstance(s, (ast.For, ast.While, ast.If)) and any(self.is_barrier(n) for n in ast.walk(s)):
                self.control.add(id(s))
                if isinstance(s, ast.For):
                    self.check_range(s)
                if isinstance(s, (ast.For, ast.While)) and s.orelse:
                    raise PhaseError(s, "a loop around a barrier has no else. Write it after the loop")
                inner = s if isinstance(s, (ast.For, ast.While)) else loop
                self.find_control(s.body, inner)
                self.find_control(s.orelse, loop)
            elif isinstance(s, ast.If) and loop is not None and any(self.jumps(s)):
                # It leaves a loop that the group takes as one, so the group decides.
                self.control.add(id(s))
                self.find_control(s.body, loop)
                self.find_control(s.orelse, loop)
            elif loop is not None and isinstance(s, (ast.For, ast.While)):
                self.find_control(s.body, None)

    def check_range(self, s: ast.For) -> None:
        call = s.iter
        if (
            not isinstance(s.target, ast.Name)
            or not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Name)
            or call.func.id != "range"
            or call.keywords
        ):
            raise PhaseError(s, "a loop around a barrier runs over a range: `for t in range(n):`")
        others = sum(
            isinstance(n, ast.Name) and n.id == s.target.id and isinstance(n.ctx, ast.Store)
            for b in self.body
            for n in ast.walk(b)
        )
        if others > 1:
            raise PhaseError(s, f"{s.target.id} counts a loop around a barrier and is assigned elsewhere")

    def jumps(self, s: ast.AST) -> Iterator[ast.AST]:
        """The breaks and continues of a statement that leave a loop around it."""
        if isinstance(s, (ast.Break, ast.Continue)):
            yield s
        elif not isinstance(s, (ast.For, ast.While)):
            for child in ast.iter_child_nodes(s):
                yield from self.jumps(child)

    # Which variables are the same for all threads of a group

    def find_uniform(self) -> None:
        """The largest set of variables that only ever get the same value in all threads."""
        self.same = set(self.assigned)
        while True:
            varying: set[str] = set()
            self.look(self.body, True, varying)
            if not varying & self.same:
                return
            self.same -= varying

    def look(self, block: list[ast.stmt], here: bool, varying: set[str]) -> None:
        """Collect what is assigned differently in different threads. `here`: do all come here?"""
        for s in block:
            if isinstance(s, (ast.If, ast.While)):
                inside = here and self.is_uniform(s.test)
                if id(s) in self.control:
                    inside = here  # the threads must agree, or it is an error
                varying |= self.walrus(s.test)
                self.look(s.body, inside, varying)
                self.look(s.orelse, inside, varying)
            elif isinstance(s, ast.For):
                counts = isinstance(s.iter, ast.Call) and names(s.iter.func) == {"range"}
                inside = here and (id(s) in self.control or (counts and self.is_uniform(s.iter)))
                if not inside:
                    varying |= names(s.target, ast.Store)
                self.look(s.body, inside, varying)
                self.look(s.orelse, inside, varying)
            elif isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                value = s.value
                if not here or value is None or not self.is_uniform(value) or self.walrus(value):
                    varying |= names(s, ast.Store)
            else:
                varying |= names(s, ast.Store)

    def walrus(self, node: ast.AST) -> set[str]:
        return names(node, ast.Store)

    def is_uniform(self, e: ast.AST) -> bool:
        """Is an expression the same for all threads, whenever they come to it?"""
        for n in ast.walk(e):
            if isinstance(n, ast.Name):
                if n.id in self.arrays and not self.of_shape(e, n):
                    return False
                if n.id in self.coordinates or (n.id in self.assigned and n.id not in self.same):
                    return False
        return True

    def of_shape(self, e: ast.AST, name: ast.Name) -> bool:
        """Is an array only asked for its shape?"""
        return any(
            isinstance(n, ast.Attribute) and n.value is name and n.attr in ("shape", "size", "ndim")
            for n in ast.walk(e)
        ) or any(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "len" and name in n.args
            for n in ast.walk(e)
        )

    # Which of them steer the group

    def find_group(self) -> None:
        wanted: set[str] = set()
        for s in self.statements(self.body):
            if id(s) in self.control:
                if isinstance(s, ast.For):
                    wanted |= names(s.target)
                for part in self.conditions(s):
                    if self.is_uniform(part):
                        wanted |= names(part)
        while True:
            before = len(self.control), len(wanted)
            self.reach(self.body, [], wanted)
            if before == (len(self.control), len(wanted)):
                break
        self.group = wanted & self.assigned

    def reach(self, block: list[ast.stmt], above: list[ast.stmt], wanted: set[str]) -> None:
        """What is needed to know the wanted variables: other variables, and the branches around."""
        for s in block:
            if isinstance(s, (ast.If, ast.While, ast.For)):
                self.reach(s.body, [*above, s], wanted)
                self.reach(s.orelse, [*above, s], wanted)
                if isinstance(s, ast.For) and names(s.target) & wanted & self.same:
                    self.steer([*above, s], wanted)
            elif isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                given = names(s, ast.Store)
                if given & wanted and given <= self.same:
                    wanted |= names(s)
                    self.steer(above, wanted)

    def steer(self, above: list[ast.stmt], wanted: set[str]) -> None:
        for s in above:
            if id(s) not in self.control:
                self.control.add(id(s))
                if isinstance(s, ast.For):
                    self.check_range(s)
                    wanted |= names(s.target)
                for part in self.conditions(s):
                    wanted |= names(part)

    def statements(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        for s in block:
            yield s
            for part in ("body", "orelse"):
                yield from self.statements(getattr(s, part, []))

    def conditions(self, s: ast.AST) -> list[ast.expr]:
        if isinstance(s, ast.For):
            assert isinstance(s.iter, ast.Call)
            return s.iter.args
        assert isinstance(s, (ast.If, ast.While))
        return [s.test]

    # Cutting

    def items(self, block: list[ast.stmt]) -> list[Item]:
        found: list[Item] = []
        run: list[ast.stmt] = []

        def end() -> None:
            if run:
                found.append(Phase(list(run)))
                run.clear()

        for s in block:
            if self.is_barrier(s):
                end()
            elif id(s) in self.control:
                end()
                assert isinstance(s, (ast.For, ast.While, ast.If))
                agreed = []
                for part in self.conditions(s):
                    if not self.is_uniform(part):
                        self.count += 1
                        agreed.append((f"_k_agreed{self.count}", part, Phase([])))
                found.append(Control(s, self.items(s.body), self.items(s.orelse), agreed))
            elif isinstance(s, (ast.Break, ast.Continue)) or (
                isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and names(s, ast.Store) & self.group
            ):
                end()
                found.append(Once(s))
            else:
                run.append(s)
        end()
        return found

    # What threads keep between phases

    def find_again(self) -> dict[str, ast.stmt]:
        """Variables that cost less to work out again than to keep: `i = index(0)`, `row = i // n`."""
        again: dict[str, ast.stmt] = {}
        counts: dict[str, int] = {}
        for s in self.body:
            for n in ast.walk(s):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    counts[n.id] = counts.get(n.id, 0) + 1
        for s in self.body:
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                name = s.targets[0].id
                free = names(s.value) & (self.assigned | self.arrays)
                if (
                    counts[name] == 1
                    and name not in self.group
                    and free <= set(again)
                    and is_arithmetic(s.value)
                ):
                    again[name] = s
        return again

    def find_kept(self, items: list[Item], again: dict[str, ast.stmt]) -> list[str]:
        phases = list(_phases(items))
        mine = self.assigned - self.group - set(again)
        wanted = set().union(*(exposed(p.body) for p in phases)) if phases else set()
        for c in _controls(items):
            for _, part, phase in c.agreed:
                phase.loads = names(part) & mine
                phase.again = _needed(names(part), again)
                wanted |= phase.loads
        kept = wanted & mine
        for p in phases:
            inside = stored_names(p.body)
            p.stores = inside & kept
            # What is only perhaps assigned must go out as it came in.
            p.loads = kept & (exposed(p.body) | (inside - defined(p.body)))
            own = {n for n in again if n in inside}
            used = set().union(*(names(s) for s in p.body))
            p.again = [s for s in _needed(used, again) if not names(s, ast.Store) & own]
        return sorted(kept)


def _phases(items: list[Item]) -> Iterator[Phase]:
    for item in items:
        if isinstance(item, Phase):
            yield item
        elif isinstance(item, Control):
            yield from _phases(item.body)
            yield from _phases(item.orelse)


def _controls(items: list[Item]) -> Iterator[Control]:
    for item in items:
        if isinstance(item, Control):
            yield item
            yield from _controls(item.body)
            yield from _controls(item.orelse)


def _needed(used: set[str], again: dict[str, ast.stmt]) -> list[ast.stmt]:
    """The definitions that `used` asks for, and those they ask for, in their order."""
    wanted = used & set(again)
    for name in reversed(list(again)):
        if name in wanted:
            wanted |= names(again[name]) & set(again)
    return [s for name, s in again.items() if name in wanted]
