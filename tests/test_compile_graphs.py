"""What compiling leaves behind: graphs go, equal nodes are one."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.programs import graph


def test_graphs_go_with_their_programs() -> None:
    program = mb.compile(lambda x: mb.exp(x) * 2 + 1).program(mb.ones(3))
    node = weakref.ref(program.graph[-1])
    graph.ordered(program.outputs)
    assert node() is not None
    del program
    gc.collect()
    assert node() is None


def test_equal_nodes_are_one_however_many_there_were() -> None:
    x = graph.input_node(0, (3,), np.dtype(float), "x")
    kept = graph.part_node(x, 8, (2,), (8,), x.dtype)
    for i in range(2 * graph.FEW_KNOWN):
        graph.part_node(x, 0, (1, i + 2), (8, 0), x.dtype)
    assert len(graph.work.known) <= graph.work.most + 1
    assert graph.part_node(x, 8, (2,), (8,), x.dtype) is kept


def test_each_node_has_the_line_of_its_operation() -> None:
    def f(x: Any) -> Any:
        y = x[1:] - x[:-1]
        return mb.exp(
            y,
        )

    program = mb.compile(f, passes=[]).program(mb.ones(4))
    first = f.__code__.co_firstlineno
    lines = {node.label: node.line[1] - first for node in program.graph if node.line}
    assert lines["part"] == lines["subtract"] == 1 and lines["exp"] == 2
    assert all(node.line[0] == __file__ for node in program.graph if node.line)
