"""From a graph to a plan: which values lie in memory, and which kernels compute them.

A value is stored if a library, a view or another index space needs it in memory, or if computing it again for
each of its readers would take more than writing and reading it. All others are computed inside the kernels of
those that read them. A write goes into the memory of the value before it, if nobody reads that one later.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.fusing import (
    LARGEST_TREE,
    MOST_OPERANDS,
    MOST_RESULTS,
    Kernel,
    arranged,
    fusable,
    kernels_of,
    operations_of,
)
from mirabelle.arraytypes.programs.graph import (
    MESSAGES,
    Call,
    Data,
    Empty,
    Fold,
    Input,
    Map,
    Node,
    Part,
    Product,
    Result,
    Update,
    is_barrier,
    ordered,
    users_of,
)
from mirabelle.arraytypes.programs.joining import joined
from mirabelle.arraytypes.programs.kerneltrees import KernelBuilder, composed
from mirabelle.arraytypes.programs.lateness import late, messages_of, results_after
from mirabelle.arraytypes.programs.launchplanning import plan_launch
from mirabelle.arraytypes.programs.memory import place_temporaries
from mirabelle.arraytypes.programs.messageplanning import plan_messages
from mirabelle.arraytypes.programs.passes.geometry import apart, harmless
from mirabelle.arraytypes.programs.steps import (
    CallStep,
    CopyStep,
    FoldStep,
    KernelStep,
    Plan,
    ProductStep,
    Ref,
    Step,
    Storage,
    whole,
)
from mirabelle.arraytypes.programs.subgraphs import deciding
from mirabelle.arraytypes.programs.wanted import wanted
from mirabelle.dispatch.schedule import HOIST_COST

# What an addition costs beside reading or writing an element of memory.
OPERATION = 0.2
NEVER = 1 << 60


def planned(
    outputs: tuple[Node, ...], inputs: list[Input], owned: dict[int, int] | None = None, joins: bool = True
) -> Plan:
    """The plan that computes the outputs.

    `owned` says for outputs, by their places, which input they are the new contents of: the memory of these
    inputs may be written to, and what is there at the end is the output. `joins` says whether kernels of unlike
    sizes may be one launch (see `joining.py`).
    """
    return _Planner(outputs, inputs, owned or {}).plan(joins)


class _Planner:
    def __init__(self, outputs: tuple[Node, ...], inputs: list[Input], owned: dict[int, int]) -> None:
        self.outputs = outputs
        self.becomes = owned
        self.owned = {id(x) for x in inputs if x.number in owned.values()}
        self.inputs = inputs
        self.nodes = late(ordered(outputs))
        # What a user has decided (see deciding.py), None for most; what is decided here, if somebody asks.
        self.wanted = wanted(self.nodes, users_of(self.nodes))
        if self.wanted is not None:
            self.nodes = self.wanted.in_order(self.nodes)
        self.log: list[Any] | None = getattr(deciding.get(), "log", None)
        self.place = {id(x): i for i, x in enumerate(self.nodes)}
        self.users = users_of(self.nodes)
        self.is_output = {id(x) for x in (*outputs, *results_after(outputs))}
        self.stored: set[int] = set()
        self.storages: list[Storage] = []
        self.where: dict[int, Storage] = {}
        self.steps: list[Step] = []
        # The step that computes a stored value; and the last that wrote to a storage.
        self.made_by: dict[int, int] = {}
        self.view: dict[int, Ref] = {}
        self.composed: list[Node] = []
        # Values that are computed where an update puts them, with that update.
        self.home: dict[int, Update] = {}
        # The storages of owned inputs.
        self.mine: set[Storage] = set()
        # The position from which on a value in memory is overwritten by an update of it.
        self.overwritten: dict[int, int] = {}
        # The messages of calls that begin them.
        self.exchanges: dict[int, Any] = {}
        # The kernels that compute several values: by these, and by where they are run.
        self.kernel_of: dict[int, Kernel] = {}
        self.kernel_at: dict[int, Kernel] = {}
        # Updates whose value before had to be copied.
        self.copied: set[int] = set()

    # Which values are stored

    def choose(self) -> None:
        stored = self.stored
        size: dict[int, int] = {}
        cost: dict[int, int] = {}
        x: Any
        for x in self.nodes:
            kind: Any = type(x)
            if kind is Map:
                n = 1
                c = x.sig.cost if x.sig.cost > 2 else 0
                for a in x.operands:
                    if type(a) is Map:
                        n += size[id(a)]
                        c += cost[id(a)]
                # (An operation of several results has no value of its own to store.)
                if n > LARGEST_TREE:
                    n = operations_of(x, stored)  # (those that are shared once)
                if (n > LARGEST_TREE and x.sig.op.nout == 1) or id(x) in self.is_output or is_barrier(x):
                    stored.add(id(x))
                    n = c = 0
                size[id(x)] = n
                cost[id(x)] = c
            elif kind is Part:
                source = x.operands[0]
                if id(x) in self.is_output:
                    stored.add(id(x))  # (by a copy: outputs have memory of their own)
                if not isinstance(source, Part) or composed(x) is None:
                    stored.add(id(source))
            else:
                if kind is not Call:
                    stored.add(id(x))
                if kind is Product or kind is Call:
                    for a in x.operands:
                        if type(a) is not Part:
                            stored.add(id(a))
                elif kind is Fold and not fusable(x):
                    if type(x.operands[0]) is not Part:
                        stored.add(id(x.operands[0]))
                elif kind is Update:
                    stored.add(id(x.operands[0]))
        self.fuse()
        again = self.again()
        self.expire()
        roots: dict[int, set[int]] = {}
        position = self.place
        for x in reversed(self.nodes):
            kind = type(x)
            if kind is Fold and id(x) not in self.is_output and not self.has_company(x):
                self.settle(x, {position[id(u)] for u in self.users.get(id(x), ()) if id(u) in stored}, roots)
            if id(x) in stored or kind is Call:
                continue
            if kind is Part and type(x.operands[0]) is not Part:
                continue  # (what it shows is stored: nobody asks)
            found: set[int] = set()
            for u in self.users.get(id(x), ()):
                key = id(u)
                if key in stored or type(u) is Call:
                    found = found | {position[key]}
                else:
                    # (Most have one reader, and share its set.)
                    found = found | roots[key] if found else roots[key]
            here = position[id(x)]
            expiry = self.expiry[id(x)]
            if kind is Map and x.sig.op.nout == 1 and expiry > here and found and max(found) > expiry:
                # What it reads will have been overwritten when it is wanted.
                stored.add(id(x))
                if self.amid(x, found):
                    self.beside(x, found)
                continue
            if kind is Map and x.sig.op.nout == 1:
                # What is costly and smaller than its readers is computed once for each of its own elements.
                stretches = cost[id(x)] >= HOIST_COST and any(
                    0 < 2 * x.size <= (u.part_size if type(u) is Update else u.size)
                    for u in self.users.get(id(x), ())
                    if type(u) is not Fold
                )
                if self.keeps(x, stretches, len(found), again):
                    home = self.settle(x, found, roots)
                    if home is None:
                        stored.add(id(x))
                        if not stretches or self.amid(x, found):
                            self.beside(x, found)
                        continue
                    found = {position[id(home)]}
            roots[id(x)] = found

    def keeps(self, x: Map, stretches: bool, readers: int, again: set[int]) -> bool:
        """Is a value that several kernels read, or larger ones, stored?"""
        found = stretches or (readers > 1 and id(x) not in again and self.pays(x, readers))
        if self.wanted is not None:
            found = self.wanted.keeps(x, found, stretches or readers > 1)
        if self.log is not None and (stretches or readers > 1):
            self.log.append((x, found, readers, *self.estimated(x)))
        return found

    def fuse(self) -> None:
        """Find out which values one kernel computes. Each has the place of the last of these."""
        kernels = kernels_of(self.nodes, self.users, self.stored, self.wanted, self.is_output)
        before, self.nodes = self.nodes, arranged(self.nodes, kernels)
        if messages_of(before) != messages_of(self.nodes):
            # (Other processes make theirs in the order of the program.)
            kernels, self.nodes = [], before
        self.place = {id(x): i for i, x in enumerate(self.nodes)}
        for k in kernels:
            last = max([self.place[id(x)] for x in k.members])
            self.kernel_at[last] = k
            for x in k.members:
                self.kernel_of[id(x)] = k
                self.place[id(x)] = last

    def again(self) -> set[int]:
        """Values that each of their kernels computes, because that takes less than storing them: what the same
        kernels need is looked at together, as it is computed from much the same."""
        inner = [x for x in self.nodes if type(x) is Map and id(x) not in self.stored]
        if not any(len(self.users.get(id(x), ())) > 1 for x in inner):
            return set()
        roots: dict[int, frozenset[int]] = {}
        groups: dict[frozenset[int], list[Map]] = {}
        for x in reversed(self.nodes):
            if id(x) in self.stored or type(x) is Call:
                continue
            found: frozenset[int] = frozenset()
            for u in self.users.get(id(x), ()):
                known = roots.get(id(u))
                if known is None:
                    known = frozenset((self.place[id(u)],))
                found = found | known if found else known
            roots[id(x)] = found
            if len(found) > 1 and type(x) is Map and x.sig.op.nout == 1:
                groups.setdefault(found, []).append(x)
        result: set[int] = set()
        for readers, group in groups.items():
            inside = {id(x) for x in group}
            computed, stored, leaves = 0.0, 0.0, {}
            for x in group:
                computed += x.size * OPERATION * max(x.sig.cost, 1)
                leaves.update({id(a): min(a.size, x.size) for a in x.operands if id(a) not in inside})
                if not all(id(u) in inside for u in self.users[id(x)]):
                    stored += x.size * (1 + len(readers))
            if (len(readers) - 1) * (computed + sum([n for n in leaves.values() if n > 1])) <= stored:
                result |= inside
        return result

    def has_company(self, x: Node) -> bool:
        """Is a value computed by a kernel that computes others, too?"""
        return id(x) in self.kernel_of and len(self.kernel_of[id(x)].members) > 1

    def beside(self, x: Map, readers: set[int]) -> None:
        """Let the first kernel that computes a value, which is to be stored, store it, too."""
        k = self.kernel_at.get(min(readers))
        if k is None or k.shape != x.shape or k.axes is not None or k.closed:
            return
        if len(k.members) >= MOST_RESULTS and not self.within(x, k):
            return
        k.members.insert(0, x)
        k.inside.add(id(x))
        self.kernel_of[id(x)] = k
        self.place[id(x)] = self.place[id(k.members[-1])]

    def amid(self, x: Node, readers: set[int]) -> bool:
        """Does a value depend on others of the first kernel that reads it? (It can be nowhere else then.)"""
        k = self.kernel_at.get(min(readers))
        return k is not None and self.within(x, k)

    def within(self, x: Node, k: Kernel) -> bool:
        """Does a value depend on others that are computed by a kernel?"""
        stack, seen = [x], {id(x)}
        while stack:
            node = stack.pop()
            if node is not x and id(node) in k.inside:
                return True
            for a in node.operands if node is x or id(node) not in self.stored else ():
                if id(a) not in seen:
                    seen.add(id(a))
                    stack.append(a)
        return False

    def settle(self, x: Node, readers: set[int], roots: dict[int, set[int]]) -> Update | None:
        """Can a value be computed straight into the place that an update gives it, and be read there by
        others?"""
        updates = [u for u in self.users.get(id(x), ()) if type(u) is Update and u.value is x]
        if len(updates) != 1:
            return None
        home: Update = updates[0]  # type: ignore[assignment]
        here = self.place[id(home)]
        if home.part_shape != x.shape or home.part_dtype != x.dtype or 0 in home.strides or home.base is x:
            return None
        if isinstance(x, Fold) and not fusable(x):
            return None
        for u in self.users.get(id(x), ()):
            if u is not home and type(u) not in (Map, Update, Fold):
                return None
            if u is not home and id(u) not in self.stored:
                readers = readers | roots[id(u)]
        others = readers - {here}
        until = self._until(x.operands[0]) if isinstance(x, Fold) else self.expiry[id(x)]
        if until < here or (others and min(others) < here):
            return None
        if others:
            # Until when does it stay there?
            last, dest = max(others), _region(home)
            after: Node = home
            while True:
                following = [u for u in self.users.get(id(after), ()) if type(u) is Update and u.base is after]
                if not following or self.place[id(following[0])] >= last:
                    break
                if len(following) > 1 or not apart(dest, _region(following[0])):
                    return None
                after = following[0]
        self.home[id(x)] = home
        return home

    def expire(self) -> None:
        """Until where each value that is not stored can be computed: what it reads may be overwritten."""
        for x in self.nodes:
            if type(x) is Update and (id(x.base) in self.owned or not isinstance(x.base, (Input, Data, Empty))):
                key = id(x.base)
                self.overwritten[key] = min(self.overwritten.get(key, NEVER), self.place[id(x)])
        self.expiry: dict[int, int] = {}
        for x in self.nodes:
            if id(x) in self.stored:
                continue
            until = NEVER
            for a in x.operands:
                until = min(until, self._until(a))
            self.expiry[id(x)] = until

    def _until(self, x: Node) -> int:
        return self.overwritten.get(id(x), NEVER) if id(x) in self.stored else self.expiry[id(x)]

    def pays(self, x: Map, readers: int) -> bool:
        """Does storing it cost less than computing it for each reader?"""
        cost, leaves, seen = 0.0, 0.0, set()
        stack: list[Any] = [x]
        while stack:
            node: Any = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if type(node) is Map and (node is x or id(node) not in self.stored):
                cost += max(node.sig.cost, 1)
                stack += node.operands
            elif node.size > 1:
                leaves += min(1.0, node.size / max(x.size, 1))
            if (readers - 1) * (cost * OPERATION + leaves) > 1 + readers:
                return True
        return False

    def estimated(self, x: Map) -> tuple[float, float]:
        """What computing a value takes, and what it reads: in elements of memory, for each of its own."""
        cost, leaves = 0.0, 0.0
        seen: set[Any] = {x}
        stack: list[Any] = [x]
        while stack:
            node = stack.pop()
            if type(node) is Map and (node is x or id(node) not in self.stored):
                cost += max(node.sig.cost, 1) * OPERATION
                stack += [a for a in node.operands if a not in seen]
                seen.update(node.operands)
            elif node.size > 1:
                leaves += min(1.0, node.size / max(x.size, 1))
        return cost, leaves

    # Storages and views of them

    def new_storage(self, node: Node, kind: str = "temporary") -> Storage:
        s = Storage(len(self.storages), kind, node)
        self.storages.append(s)
        return s

    def ref(self, node: Node) -> Ref:
        """Where a stored value, or a part of one, is."""
        found = self.view.get(id(node))
        if found is not None:
            return found
        if type(node) is Part and id(node) not in self.where:
            source: Node = node.operands[0]
            if isinstance(source, Part) and id(source) not in self.where:
                flat = composed(node)
                assert flat is not None
                # Kept, because what is known of nodes is known by their ids.
                self.composed.append(flat)
                found = self.ref(flat)
            else:
                assert isinstance(node, Part)
                found = Ref(
                    self.where[id(source)], node.offset, node.shape, node.strides, node.dtype, node.table
                )
        else:
            found = whole(self.where[id(node)])
        self.view[id(node)] = found
        return found

    def version_of(self, node: Node) -> Node:
        """The stored value that a leaf of a kernel reads."""
        home = self.home.get(id(node))
        if home is not None:
            return home
        while type(node) is Part and id(node) not in self.where:
            node = node.operands[0]
        return node

    # Steps

    def add(self, step: Step) -> None:
        step.number = len(self.steps)
        self.steps.append(step)
        for x in step.nodes:
            self.made_by[id(x)] = step.number

    def plan(self, joins: bool) -> Plan:
        self.choose()
        x: Any
        for x in self.inputs:
            s = self.new_storage(x, "input")
            s.index = x.number
            self.where[id(x)] = s
            if id(x) in self.owned:
                self.mine.add(s)
            self.made_by[id(x)] = -1
        for x in self.nodes:
            kind: Any = type(x)
            if kind is Input:
                continue
            k = self.kernel_of.get(id(x))
            if k is not None and len(k.members) > 1:
                if x is k.members[-1]:
                    self.together(k)
                continue
            if kind is Data:
                s = self.new_storage(x, "data")
                self.where[id(x)] = s
                self.made_by[id(x)] = -1
            elif kind is Call:
                self.call(x)
            elif id(x) not in self.stored or id(x) in self.home:
                continue
            elif kind is Empty:
                self.where[id(x)] = self.new_storage(x)
                self.made_by[id(x)] = -1
            elif kind is Update:
                self.update(x)
            elif kind is Fold:
                self.fold(x)
            elif kind is Product:
                s = self.new_storage(x, "made")
                self.add(ProductStep(x, [self.ref(a) for a in x.operands], s))
                self.where[id(x)] = s
            elif kind is Map or kind is Part:
                self.kernel(x)
            elif kind is not Result:
                raise TypeError(f"A node of a kind that cannot be planned: {x!r}.")
        outputs = self.deliver()
        self.stay(outputs)
        alone = () if self.wanted is None else self.wanted.launched_alone()
        steps = joined(self.steps, alone) if joins else self.steps
        plan = Plan(list(self.inputs), steps, self.storages, outputs)
        if self.wanted is not None:
            self.wanted.check(self, plan)
        place_temporaries(plan)
        return plan

    def call(self, call: Call) -> None:
        if call.kind in MESSAGES:
            return plan_messages(self, call)
        if call.kind == "kernel":
            return plan_launch(self, call)
        dests: dict[int, Storage] = {}
        for r in self.users.get(id(call), ()):
            assert isinstance(r, Result)
            s = dests[r.number] = self.new_storage(r, "made")
            self.where[id(r)] = s
        step = CallStep(call, [self.ref(a) for a in call.operands], dests)
        self.add(step)
        for r in self.users.get(id(call), ()):
            self.made_by[id(r)] = step.number

    def together(self, k: Kernel) -> None:
        """A step for several values."""
        builder = KernelBuilder(self, k.shape)
        if k.axes is not None:
            request = builder.request(tuple([builder.operand(x.operands[0]) for x in k.members]))
            for x in k.members:
                self.where[id(x)] = self.new_storage(x)
            self.add(FoldStep(list(k.members), request, k.axes, [whole(self.where[id(x)]) for x in k.members]))
            return
        builder.inside = k.inside
        builder.owners = {id(x) for x in k.members}
        tops = [builder.top(x) if type(x) is Map else builder.operand(x.value) for x in k.members]
        dests: list[Ref] = []
        updates: set[Node] = set()
        later: list[tuple[Update, Ref, Ref]] = []
        for x in k.members:
            if type(x) is Map:
                s = self.where[id(x)] = self.new_storage(x)
                dests.append(whole(s))
                continue
            s = self.where[id(x)] = self.where[id(x.base)] if x.base in updates else self.destination(x)
            updates.add(x)
            dest = Ref(s, x.offset, x.part_shape, x.strides, x.part_dtype)
            home: Any = self.home.get(id(x.value))
            if home is x:
                self.view[id(x.value)] = dest
            if all(harmless(r, dest) for r in builder.leaves):
                dests.append(dest)
                continue
            # The kernel reads what it overwrites, at other places: by way of memory of its own.
            between = whole(self.new_storage(_made_of(x.value, x)))
            dests.append(between)
            later.append((x, between, dest))
        self.add(KernelStep(list(k.members), builder.request(tuple(tops)), dests))
        for update, between, dest in later:
            builder = KernelBuilder(self, update.part_shape)
            self.add(KernelStep([update], builder.request((builder.leaf(between, update.value),)), [dest]))

    def kernel(self, node: Node) -> None:
        """A step for a stored elementwise value, or a further result of one that is there already."""
        if isinstance(node, Map):
            merged = self.merged(node)
            if merged:
                return
        builder = KernelBuilder(self, node.shape)
        top = builder.top(node)
        s = self.new_storage(node)
        self.where[id(node)] = s
        request = builder.request((top,))
        self.add(KernelStep([node], request, [whole(s)]))

    def merged(self, node: Map) -> bool:
        """Can an earlier kernel over the same index space compute it, too?"""
        alone: Any = None
        for step in reversed(self.steps[-8:]):
            if (
                not isinstance(step, KernelStep)
                or self.alone(node, step)
                or step.request.shape != node.shape
                or len(step.dests) >= MOST_RESULTS
                or isinstance(step.nodes[0], Update)
                or not all(isinstance(x, Map) for x in step.nodes)
            ):
                continue
            if alone is None:
                alone = KernelBuilder(self, node.shape)
                alone.top(node)
            if not self.fits(alone, step):
                continue
            builder = KernelBuilder(self, node.shape)
            builder.inside = {id(x) for x in step.nodes}
            refs = tuple([builder.top(x) for x in (*step.nodes, node)])
            if len(builder.leaves) > MOST_OPERANDS or len(builder.steps) > LARGEST_TREE:
                continue
            s = self.new_storage(node)
            self.where[id(node)] = s
            step.request = builder.request(refs)
            step.nodes.append(node)
            step.dests.append(whole(s))
            self.made_by[id(node)] = step.number
            return True
        return False

    def alone(self, node: Node, step: Step) -> bool:
        """Has the user decided that a value, or what a step computes, is a kernel of its own?"""
        return self.wanted is not None and any(id(x) in self.wanted.separate for x in (node, *step.nodes))

    def fits(self, alone: KernelBuilder, step: KernelStep) -> bool:
        """Is all that a kernel reads there at an earlier step, and is some of it what that one reads or
        makes?"""
        known = {r.key for r in step.request.leaves}  # type: ignore[attr-defined]
        shares = False
        inside = {id(x) for x in step.nodes if not is_barrier(x)}
        for ref, version in zip(alone.leaves, alone.versions, strict=True):
            if id(version) in inside:
                if not ref.is_whole or ref.shape != step.request.shape:
                    return False
                shares = True
            elif self.made_by[id(version)] >= step.number:
                return False
            elif ref.key in known and ref.size > 1:
                shares = True
        return shares

    def fold(self, node: Fold) -> None:
        operand = node.operands[0]
        if fusable(node):
            for step in reversed(self.steps[-4:]):
                if (
                    isinstance(step, FoldStep)
                    and not self.alone(node, step)
                    and step.axes == node.axes
                    and step.nodes[0].operands[0] is operand
                    and fusable(step.nodes[0])  # type: ignore[arg-type]
                    and len(step.dests) < MOST_RESULTS
                ):
                    s = self.new_storage(node)
                    self.where[id(node)] = s
                    step.nodes.append(node)
                    step.dests.append(whole(s))
                    operations, tops = step.request.key
                    step.request.key = (operations, (*tops, tops[0]))
                    self.made_by[id(node)] = step.number
                    return
        builder = KernelBuilder(self, operand.shape)
        top = builder.operand(operand)
        s = self.new_storage(node)
        self.where[id(node)] = s
        self.add(FoldStep([node], builder.request((top,)), node.axes, [whole(s)]))

    def update(self, node: Update) -> None:
        """A write: in place where nobody reads the value before it any more."""
        value = node.value
        builder = KernelBuilder(self, node.part_shape)
        folded = isinstance(value, Fold) and self.home.get(id(value)) is node
        if folded:
            builder = KernelBuilder(self, value.operands[0].shape)
            top = builder.operand(value.operands[0])
        else:
            builder.owners = {id(node)}
            top = builder.operand(value)
        storage = self.destination(node)
        dest = Ref(storage, node.offset, node.part_shape, node.strides, node.part_dtype)
        if id(value) in self.home and self.home[id(value)] is node:
            self.view[id(value)] = dest
        if folded and all(r.storage is not storage or (not r.table and apart(r, dest)) for r in builder.leaves):
            fold: Any = value
            self.add(FoldStep([fold], builder.request((top,)), fold.axes, [dest]))
            self.made_by[id(node)] = len(self.steps) - 1
            self.where[id(node)] = storage
            return
        if folded:
            del self.home[id(value)]
            del self.view[id(value)]
            self.fold(value)  # type: ignore[arg-type]
            builder = KernelBuilder(self, node.part_shape)
            top = builder.operand(value)
        if not all(harmless(r, dest) for r in builder.leaves):
            # It reads what it overwrites, at other places: by way of memory of its own.
            between = self.new_storage(_made_of(value, node))
            self.add(KernelStep([value], builder.request((top,)), [whole(between)]))
            builder = KernelBuilder(self, node.part_shape)
            top = builder.leaf(whole(between), value)
        self.add(KernelStep([node], builder.request((top,)), [dest]))
        self.where[id(node)] = storage

    def destination(self, node: Update) -> Storage:
        """The memory that an update writes to: that of the value before it, where nobody reads that later."""
        base = node.base
        if isinstance(base, Empty):
            return self.new_storage(base)
        return self.memory_over(base, node)

    def memory_over(self, base: Node, node: Node, shared: bool = False) -> Storage:
        """The memory of a value, to be written to by `node`; that of a copy, if somebody reads the value later,
        or if it is `shared` with something else that `node` reads."""
        if (
            not shared
            and id(base) in self.where
            and (self.is_ours(base) or self.where[id(base)] in self.mine)
            and id(base) not in self.is_output
            and self.is_last(base, node)
        ):
            return self.where[id(base)]
        storage = self.new_storage(base)
        self.copied.add(id(node))
        source = self.ref(base)
        if source.is_contiguous:
            self.add(CopyStep([], whole(storage), source))
        else:  # (one number for all, say: its bytes are not those of what is written)
            builder = KernelBuilder(self, base.shape)
            self.add(KernelStep([base], builder.request((builder.leaf(source, base),)), [whole(storage)]))
        return storage

    def is_ours(self, base: Node) -> bool:
        """Is its memory the program's own? (What a library returns may be what it was given.)"""
        return self.where[id(base)].kind == "temporary" or type(base) is Product

    def is_last(self, base: Node, update: Node) -> bool:
        """Does nobody read a value after it has been updated?"""
        limit = self.place[id(update)]
        stack, seen = [base], {id(base)}
        while stack:
            for u in self.users.get(id(stack.pop()), ()):
                if u is update or id(u) in seen:
                    continue
                seen.add(id(u))
                if type(u) is Call or id(u) in self.stored:
                    if self.place[id(u)] > limit:
                        return False
                else:
                    stack.append(u)
        return True

    def stay(self, outputs: list[Storage]) -> None:
        """Let the new contents of an input that is written as a whole lie where the old ones do, if these are
        done with."""
        if not self.becomes:
            return
        reads: dict[int, list[tuple[Step, Ref]]] = {}
        writes: dict[int, list[tuple[Step, Ref]]] = {}
        for step in self.steps:
            for ref in step.reads:
                reads.setdefault(ref.storage.number, []).append((step, ref))
            for ref in step.writes:
                writes.setdefault(ref.storage.number, []).append((step, ref))
        for i, number in self.becomes.items():
            new, old = outputs[i], self.where[id(self.inputs[number])]
            if new.kind != "output" or outputs.count(new) > 1 or old in outputs or old.number in writes:
                continue
            made = writes.get(new.number, ())
            if not made or not isinstance(made[0][0], KernelStep) or not made[0][1].covers:
                continue
            at = made[0][0].number
            if all(
                step.number < at or (step.number == at and ref.covers and ref.shape == made[0][1].shape)
                for step, ref in reads.get(old.number, ())
            ):
                for _, ref in (*made, *reads.get(new.number, ())):
                    ref.storage = old
                new.kind = "temporary"
                outputs[i] = old
                writes[old.number] = list(made)

    def deliver(self) -> list[Storage]:
        """The storages of the outputs, in memory that is the caller's afterwards."""
        found: list[Storage] = []
        for i, x in enumerate(self.outputs):
            s = self.where[id(x)]
            if s.kind == "data" or (
                s.kind == "input" and (isinstance(x, Input) or self.becomes.get(i) != s.index)
            ):
                # (The caller may write to what it is given.)
                copy = self.new_storage(x)
                self.add(CopyStep([], whole(copy), whole(s)))
                s = copy
            if s.kind == "temporary":
                s.kind = "output"
                s.index = i
            found.append(s)
        return found


def _region(update: Any) -> Ref:
    """Where an update writes, in memory of its own."""
    memory = Storage(0, "temporary", update.base)
    return Ref(memory, update.offset, update.part_shape, update.strides, update.part_dtype)


def _made_of(value: Node, update: Update) -> Node:
    """A node that gives a storage the shape of what an update writes."""
    from mirabelle.arraytypes.programs.graph import empty_node

    return empty_node(update.part_shape, value.dtype)
