"""HostArray's `copyto`: a tree becomes one launch on the host. (Reductions: `reduce.py`.)"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import settle
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.host import shortcuts
from mirabelle.backends.host.run import force_host, statement
from mirabelle.dispatch import verbs
from mirabelle.dispatch.schedule import schedule
from mirabelle.dispatch.tree import Broadcasted, Leaf


@verbs.copyto.method
def _(dest: HostArray, src: Broadcasted) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    target = dest._node.view  # type: ignore[union-attr]
    if shortcuts.stored(src, target):
        return dest
    request = schedule(src, force_host)
    outs = [target]
    dtypes = (target.dtype,)
    if request.stored:
        # As the destination runs through memory, so that all are written in one order.
        order = "F" if target.ndim > 1 and abs(target.strides[0]) < abs(target.strides[-1]) else "C"
        for node in request.stored:
            outs.append(HostArray._empty(node.shape, node.dtype, order))
        dtypes = tuple([o.dtype for o in outs])
    statement(program_for(request, dtypes), [leaf.view for leaf in request.leaves], request.scalars, outs)
    for node, out in zip(request.stored, outs[1:], strict=True):
        settle(node, Leaf(out))
    return dest
