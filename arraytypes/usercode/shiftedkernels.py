"""An index-space kernel for a part of its index space and of its arrays: the same statements, other indices.

The thread's index is counted from the beginning of the part, and elements are where the part has them. Sizes
stay those of the whole. What has to be added is given as numbers, so that one kernel does for all parts.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, NamedTuple

from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.lending import READ
from mirabelle.arraytypes.usercode.kernelsource import COORDINATES, KernelSource, is_call
from mirabelle.dispatch import syntax

# How an index into an array is changed along a dimension: it is as it is; the part's beginning is subtracted;
# and then it is taken modulo the length of the whole, where the part goes around its end.
SAME, SHIFTED, CYCLIC = 0, 1, 2


class Variant(NamedTuple):
    """Of which dimension of the index space, and of which of each array, only a part is there."""

    ndim: int
    arrays: tuple[tuple[str, tuple[int, ...]], ...]


class Shift(NamedTuple):
    """The numbers for one part: where the index space begins and how long it is; the same of each array."""

    begins: tuple[int, ...]
    sizes: tuple[int, ...]
    groups: tuple[int, ...]
    arrays: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    def numbers(self, variant: Variant) -> list[int]:
        """The numbers in the order of `parameters`."""
        found = [*self.begins, *self.sizes, *self.groups]
        for (begins, sizes), (_, modes) in zip(self.arrays, variant.arrays, strict=True):
            for begin, size, mode in zip(begins, sizes, modes, strict=True):
                if mode:
                    found += [begin, size]
        return found


def parameters(variant: Variant) -> list[str]:
    """The further parameters of a kernel that is shifted."""
    found = [f"_part_{what}{d}" for what in ("begin", "size", "group") for d in range(variant.ndim)]
    for name, modes in variant.arrays:
        for d, mode in enumerate(modes):
            if mode:
                found += [f"_part_{name}_begin{d}", f"_part_{name}_size{d}"]
    return found


def shifted(kernel: Kernel, variant: Variant) -> Kernel:
    """The kernel for parts: it takes the arguments of the whole's, with parts of the arrays, and `Shift`."""
    key = "shifted", variant
    found = kernel.compiled.get(key)
    if found is None:
        with syntax.lock:
            found = kernel.compiled.get(key) or kernel.compiled.setdefault(key, _made(kernel, variant))
    return found  # type: ignore[no-any-return]


def _made(kernel: Kernel, variant: Variant) -> Kernel:
    source = kernel.source
    further = parameters(variant)
    made = Kernel(kernel.python, kernel.padded, kernel.boundscheck)
    made.contracts = kernel.contracts
    made._source = KernelSource(
        source.function,
        source.name,
        source.context,
        [*source.parameters, *further],
        [ast.fix_missing_locations(_Shifting(source, variant).visit(copy.deepcopy(s))) for s in source.body],
        source.effects | dict.fromkeys(further, READ),
        set(source.uses),
        dict(source.locals),
    )
    return made


class _Shifting(ast.NodeTransformer):
    def __init__(self, source: KernelSource, variant: Variant) -> None:
        self.source = source
        self.k = source.context
        self.ndim = variant.ndim
        self.modes = dict(variant.arrays)

    def given(self, what: str, node: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Name(f"_part_{what}", ast.Load()), node)

    def sum(self, a: ast.expr, op: ast.operator, b: ast.expr, node: ast.AST) -> ast.expr:
        return ast.copy_location(ast.BinOp(a, op, b), node)

    # The thread's place

    def visit_Call(self, node: ast.Call) -> Any:
        if is_call(node, self.k, *COORDINATES):
            what = node.func.attr  # type: ignore[attr-defined]
            if what in ("local", "group_size"):
                return node
            if node.args:
                d = node.args[0].value  # type: ignore[attr-defined]
                # (A dimension that is not there is an error that the backend says.)
                return self.coordinate(what, d % self.ndim, node) if -self.ndim <= d < self.ndim else node
            parts = [self.coordinate(what, d, node) for d in range(self.ndim)]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            modes = self.modes_of(node.args[0])
            if modes and modes[0]:
                return self.given(f"{node.args[0].id}_size0", node)  # type: ignore[attr-defined]
            return node if modes is not None else self.generic_visit(node)
        if is_call(node, self.k, "atomic_add", "atomic_max", "atomic_min", "atomic_exchange", "atomic_cas"):
            array, index, *rest = node.args
            index = self.visit(index)
            modes = self.modes_of(array)
            if modes is not None:
                index = self.element(array.id, modes, index)  # type: ignore[attr-defined]
            node.args = [array, index, *(self.visit(x) for x in rest)]
            return node
        return self.generic_visit(node)

    def coordinate(self, what: str, d: int, node: ast.AST) -> ast.expr:
        if what == "size":
            return self.given(f"size{d}", node)
        asked = ast.Call(
            ast.Attribute(ast.Name(self.k, ast.Load()), "index" if what == "index" else "group", ast.Load()),
            [ast.Constant(d)],
            [],
        )
        mine = ast.copy_location(asked, node)
        if what == "index":
            return self.sum(mine, ast.Add(), self.given(f"begin{d}", node), node)
        group = ast.copy_location(
            ast.Call(
                ast.Attribute(ast.Name(self.k, ast.Load()), "group_size", ast.Load()), [ast.Constant(d)], []
            ),
            node,
        )
        if what == "group":
            return self.sum(mine, ast.Add(), self.given(f"group{d}", node), node)
        # (as many groups as the whole has)
        above = self.sum(self.given(f"size{d}", node), ast.Sub(), ast.Constant(1), node)
        return self.sum(
            self.sum(above, ast.FloorDiv(), group, node),
            ast.Add(),
            ast.copy_location(ast.Constant(1), node),
            node,
        )

    # Arrays

    def modes_of(self, node: ast.AST) -> tuple[int, ...] | None:
        return self.modes.get(node.id) if isinstance(node, ast.Name) else None

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            modes = self.modes_of(node.value.value)
            at = node.slice
            known = isinstance(at, ast.Constant) and isinstance(at.value, int)
            if modes is not None and known and -len(modes) <= at.value < len(modes):  # type: ignore[attr-defined]
                return self.size(node.value.value, at.value % len(modes), node)  # type: ignore[attr-defined]
        modes = self.modes_of(node.value)
        if modes is None:
            return self.generic_visit(node)
        node.slice = self.element(node.value.id, modes, self.visit(node.slice))  # type: ignore[attr-defined]
        return node

    def element(self, name: str, modes: tuple[int, ...], index: ast.expr) -> ast.expr:
        if len(modes) > 1 and any(modes) and not isinstance(index, ast.Tuple):  # (a variable that is a tuple)
            each: list[ast.expr] = [
                ast.copy_location(ast.Subscript(copy.deepcopy(index), ast.Constant(d), ast.Load()), index)
                for d in range(len(modes))
            ]
            index = ast.copy_location(ast.Tuple(each, ast.Load()), index)
        if isinstance(index, ast.Tuple):
            parts = [
                self.place(name, d, mode, e) for (d, mode), e in zip(enumerate(modes), index.elts, strict=False)
            ]
            return ast.copy_location(ast.Tuple([*parts, *index.elts[len(parts) :]], ast.Load()), index)
        return self.place(name, 0, modes[0], index) if modes else index

    def place(self, name: str, d: int, mode: int, index: ast.expr) -> ast.expr:
        if mode == SAME:
            return index
        found = self.sum(index, ast.Sub(), self.given(f"{name}_begin{d}", index), index)
        if mode == CYCLIC:
            found = self.sum(found, ast.Mod(), self.given(f"{name}_size{d}", index), index)
        return found

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        modes = self.modes_of(node.value)
        if modes is None or not any(modes):
            return self.generic_visit(node)
        if node.attr == "shape":
            parts = [self.size(node.value, d, node) for d in range(len(modes))]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        if node.attr == "size":
            found = self.size(node.value, 0, node)
            for d in range(1, len(modes)):
                found = self.sum(found, ast.Mult(), self.size(node.value, d, node), node)
            return found
        return node

    def size(self, array: ast.expr, d: int, node: ast.AST) -> ast.expr:
        name = array.id  # type: ignore[attr-defined]
        if self.modes[name][d]:
            return self.given(f"{name}_size{d}", node)
        shape = ast.Attribute(ast.Name(name, ast.Load()), "shape", ast.Load())
        return ast.copy_location(ast.Subscript(shape, ast.Constant(d), ast.Load()), node)
