"""What versions keep: for checkers of types, which do not read the part in C (dispatch/native.py)."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

VERSION: int

# What holds a version by being an array. (One by itself keeps a version for whoever made it.)
class Handle:
    _node: Any

class Leaf:
    # How many handles, operations, reductions and values keep it.
    @property
    def holders(self) -> int: ...
    view: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    # 0; of foreign memory past every limit, so that whatever reads it is evaluated at once.
    size: int
    foreign: bool
    root: Any
    table: bool
    # Is it one element read out of an array by its index?
    element: bool
    # What was worked out about the contents (the bounds of an index array), with the number of
    # writes in place, to the memory it is a part of, that had happened by then.
    known: dict[str, tuple[int, Any]] | None
    writes: int
    # The thread that is writing to a part of it; 0 if there is none.
    writer: int
    # Set on a destination whose writer made sure that the tree reads it at most element on element.
    checked: bool
    reducers: list[weakref.ref[Any]] | None
    # Where its memory begins: there once a compiled program has asked.
    address: int
    def __init__(self, view: Any, foreign: bool = False, root: Any = None, table: bool = False) -> None: ...
    # Does any leaf show a part of this one's memory?
    @property
    def parts(self) -> bool: ...
    def shows(self, root: Any) -> None: ...
    def keep(self) -> None: ...
    def held_parts(self) -> list[Any]: ...

class Node:
    @property
    def holders(self) -> int: ...
    sig: Any
    args: tuple[Any, ...] | None
    shape: tuple[int, ...]
    # The operations below, those shared by several parents counted for each.
    size: int
    value: Any
    # How often it was evaluated inside a larger tree without being stored.
    evaluations: int
    names: int
    reducers: list[weakref.ref[Any]] | None
    # How the result is to be divided over processes, where somebody said so.
    layout: Any
    def __init__(
        self, sig: Any, args: tuple[Any, ...], shape: tuple[int, ...], size: int | None = None
    ) -> None: ...
    @property
    def dtype(self) -> np.dtype: ...

class Reduced:
    @property
    def holders(self) -> int: ...
    reduction: Any
    operand: Any
    axes: tuple[int, ...]
    keepdims: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    value: Any
    # How many reductions, one after the other, have to be computed before.
    depth: int
    reducers: list[weakref.ref[Any]] | None
    # This process's part of it, where others' have yet to be combined with it.
    term: Any
    def __init__(
        self,
        reduction: Any,
        operand: Any,
        axes: tuple[int, ...],
        keepdims: bool,
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> None: ...

def adopted(leaf: Leaf) -> bool: ...
def may_write(leaf: Leaf, reads: int = 0, *shown: Any) -> bool: ...
def memory_alone(leaf: Leaf) -> bool: ...
def operations(root: Node) -> list[Any]: ...
def local_tree(tree: Node, buffer: Any, /) -> tuple[Any, Any] | None: ...
def history_number(tree: Any, of_reduction: Callable[[Any, int], int], /) -> int: ...
def history_mixed(mark: int, /, *operands: int) -> int: ...
def waiting_reductions(root: Node) -> list[Any]: ...
def dag_cost(root: Node) -> int: ...
def worth_storing(root: Node, stored: list[Any] = ..., /) -> bool: ...
def evaluating(function: Any, *args: Any) -> Any: ...
def shown_part(x: Any) -> Any: ...
def __getattr__(name: str) -> Any: ...
