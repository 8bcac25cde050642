"""What evaluating a tree or a reduction reads and writes, where NumPy's calls compute it one by one.

A kernel's plan says what a launch of it moves. Few elements have no plan, and are looked at here, if somebody
counts. What such an evaluation computes on the way stays in the caches, as a kernel's does in registers, and is
not counted.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> with mb.settings.changed(immediate_size=0), mb.count() as c:
...     y = mb.materialize(x * x + 1)
>>> c.launches, c.bytes_read, c.bytes_written
(1, 24, 24)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mirabelle.dispatch import counters, native
from mirabelle.dispatch.schedule import operations
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced


class Evaluation:
    """One launch: looked at before it begins, told when it is `done`."""

    __slots__ = ("operands", "pending", "written")

    def __init__(self, version: Any, together: Sequence[Reduced] = ()) -> None:
        reduces = type(version) is Reduced
        root = version.operand if reduces else version
        waits = type(root) is Broadcasted and root.value is None
        nodes = list(operations(root)) if waits else []
        of_this = {id(n) for n in nodes}
        made = [*nodes, version, *together]
        if reduces and waits and root.holders <= max(1, len(together)):
            made.remove(root)  # (nobody has it but what reduces it)
        self.written = {id(x): x for x in made}
        read = [a for n in nodes for a in n.args or ()] if waits else [root]
        self.operands = [a for a in read if type(a) in (Leaf, Broadcasted, Reduced) and id(a) not in of_this]
        # Reductions in the tree are launches of their own before this one.
        self.pending = {id(a) for a in self.operands if type(a) is Reduced and a.value is None}

    def done(self) -> None:
        leaves = [a if type(a) is Leaf else a.value for a in self.operands]
        values = [x.value for x in self.written.values()]
        counters.add(
            launches=1,
            temporaries=len(self.pending),
            bytes_read=sum({x.key(): x.view.nbytes for x in leaves if x is not None}.values()),
            bytes_written=sum(x.view.nbytes for x in values if x is not None),
        )


native.tell(evaluation=Evaluation)
