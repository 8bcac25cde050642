"""A kernel's statements with plain names for what belongs to the context.

`k.index(0)` becomes `_k_index0`, `x[i]` becomes `_k_get(x, i)`, `k.atomic_add(x, i, v)` becomes
`_k_atomic_add(x, i, v)`: what these mean a backend says. Everything else stays as the user wrote
it, with the lines it has in his file.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, NoReturn

from mirabelle.arraytypes.usercode import kernelsource
from mirabelle.arraytypes.usercode.kernelsource import KernelSource
from mirabelle.backends.codegen.variables import names, stored_names
from mirabelle.dispatch.errors import UserFunctionError


class Names(ast.NodeTransformer):
    """Rewrites a kernel for an index space of `ndim` dimensions.

    `arrays` are the names whose elements are read and written through `_k_get` and `_k_put`. With
    `checked`, these are the checking ones, which are told where they stand: `sites` numbers the
    accesses, as (array, line, leading indices that are not the user's).
    """

    def __init__(self, source: KernelSource, ndim: int, arrays: set[str], checked: bool) -> None:
        self.source = source
        self.k = source.context
        self.ndim = ndim
        self.arrays = arrays
        self.checked = checked
        self.sites: list[tuple[str, int, int]] = []
        self.temporaries = 0

    def rewritten(self) -> list[ast.stmt]:
        body = [copy.deepcopy(s) for s in self.source.body if kernelsource.declared(s, self.k) is None]
        first: list[ast.stmt] = []
        # A parameter that is assigned is a variable of each thread, not of all.
        for name in sorted(stored_names(body) & set(self.source.parameters)):
            mine = f"_k_own_{name}"
            if name in self.arrays:
                self.fail(body[0], f"the array {name} is given another value. Use another name for it")
            body = [_Renamed(name, mine).visit(s) for s in body]
            first.append(self.bind(mine, at(body[0], ast.Name(name, ast.Load())), body[0]))
        return first + self.block(body)

    def fail(self, node: ast.AST, why: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        raise UserFunctionError(f"{self.source.name}() cannot be compiled: line {line}: {why}.")

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in statements:
            made = self.visit(s)
            out += made if isinstance(made, list) else [made]
        return out

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse") and isinstance(value, list):
                setattr(node, field, self.block(value))
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
        return node

    # What the context answers

    def coordinate(self, what: str, d: int, node: ast.AST) -> ast.expr:
        n = self.ndim
        if not -n <= d < n:
            raise kernelsource.dimension_error(self.source, what, d, n)
        return at(node, ast.Name(f"_k_{what}{d % n}", ast.Load()))

    def visit_Call(self, node: ast.Call) -> Any:
        if kernelsource.is_call(node, self.k, *kernelsource.COORDINATES):
            what = node.func.attr  # type: ignore[attr-defined]
            if node.args:
                return self.coordinate(what, node.args[0].value, node)  # type: ignore[attr-defined]
            return at(node, ast.Tuple([self.coordinate(what, d, node) for d in range(self.ndim)], ast.Load()))
        if kernelsource.is_call(node, self.k, *kernelsource.ATOMICS):
            array, index, *values = node.args
            own = array.id in self.source.locals  # type: ignore[attr-defined]
            name = node.func.attr.replace("atomic", "_k_own" if own else "_k_atomic")  # type: ignore[attr-defined]
            index = self.element(array, self.visit(index), node)
            values = [self.visit(v) for v in values]
            if self.checked:
                name = f"{name}_checked"
                values += self.whereabouts(array, node)
            return self.call(name, [array, index, *values], node)
        if kernelsource.is_call(node, self.k, "barrier"):
            return node
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr == "valid" and isinstance(node.value, ast.Name) and node.value.id == self.k:
            return at(node, ast.Name("_k_valid", ast.Load()))
        return self.generic_visit(node)

    # Elements

    def call(self, name: str, args: list[ast.expr], node: ast.AST) -> ast.Call:
        return at(node, ast.Call(at(node, ast.Name(name, ast.Load())), args, []))

    def is_element(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in self.arrays
        )

    def element(self, array: Any, index: ast.expr, node: ast.AST) -> ast.expr:
        """The index of an element, the thread in front where each thread has an array of its own."""
        local = self.source.locals.get(array.id)
        if local is None or local.shared or not self.source.has_barrier:
            return index
        if not isinstance(index, ast.Tuple) and len(local.shape) > 1:
            self.fail(node, f"index {array.id} in full: `{array.id}[i, j]`")
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return at(node, ast.Tuple([at(node, ast.Name("_k_thread", ast.Load())), *parts], ast.Load()))

    def whereabouts(self, array: Any, node: Any) -> list[ast.expr]:
        local = self.source.locals.get(array.id)
        leading = int(local is not None and not local.shared and self.source.has_barrier)
        self.sites.append((array.id, node.lineno, leading))
        index = [at(node, ast.Name(f"_k_index{d}", ast.Load())) for d in range(self.ndim)]
        return [at(node, ast.Constant(len(self.sites) - 1)), at(node, ast.Tuple(index, ast.Load()))]

    def access(self, what: str, array: ast.expr, args: list[ast.expr], node: ast.AST) -> ast.Call:
        if not self.checked:
            return self.call(f"_k_{what}", [array, *args], node)
        return self.call(f"_k_{what}_checked", [array, *args, *self.whereabouts(array, node)], node)

    def put(self, target: Any, value: ast.expr) -> ast.stmt:
        index = self.element(target.value, self.visit(target.slice), target)
        return at(target, ast.Expr(self.access("put", target.value, [index, value], target)))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not self.is_element(node) or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.access("get", node.value, [self.element(node.value, self.visit(node.slice), node)], node)

    # Assignments

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1 and self.is_element(node.targets[0]):
            return self.put(node.targets[0], value)
        if any(self.is_element(n) for t in node.targets for n in ast.walk(t)):
            # The value first, whole, then each element.
            name = self.temporary()
            out = [self.bind(name, value, node)]
            for target in node.targets:
                out += self.unpacked(target, name, node)
            return out
        node.value = value
        return self.separated(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return at(node, ast.Pass())
        return self.visit(at(node, ast.Assign([node.target], node.value)))

    def temporary(self) -> str:
        self.temporaries += 1
        return f"_k_value{self.temporaries}"

    def bind(self, name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
        return at(node, ast.Assign([at(node, ast.Name(name, ast.Store()))], value))

    def item(self, name: str, i: int, node: ast.AST) -> ast.expr:
        return at(
            node, ast.Subscript(at(node, ast.Name(name, ast.Load())), at(node, ast.Constant(i)), ast.Load())
        )

    def unpacked(self, target: ast.expr, name: str, node: ast.AST) -> list[ast.stmt]:
        value = at(node, ast.Name(name, ast.Load()))
        if self.is_element(target):
            return [self.put(target, value)]
        if not isinstance(target, (ast.Tuple, ast.List)):
            return [at(node, ast.Assign([target], value))]
        out = []
        for i, part in enumerate(target.elts):
            inner = self.temporary()
            out += [self.bind(inner, self.item(name, i, node), node), *self.unpacked(part, inner, node)]
        return out

    def separated(self, node: ast.Assign) -> list[ast.stmt]:
        """`i, j = a, b` as two assignments, where that is the same."""
        target, value = node.targets[0], node.value
        if (
            len(node.targets) == 1
            and isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and all(isinstance(t, ast.Name) for t in target.elts)
            and not names(target) & names(value)
        ):
            pairs = zip(target.elts, value.elts, strict=True)
            return [at(node, ast.Assign([t], v)) for t, v in pairs]
        return [node]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target: Any = node.target
        if not self.is_element(target):
            return self.generic_visit(node)
        out: list[ast.stmt] = []
        index = self.visit(target.slice)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not all(isinstance(p, (ast.Name, ast.Constant)) for p in parts):
            # Worked out once, as Python does.
            name = self.temporary()
            out.append(self.bind(name, index, node))
            if isinstance(index, ast.Tuple):
                index = at(node, ast.Tuple([self.item(name, i, node) for i in range(len(parts))], ast.Load()))
            else:
                index = at(node, ast.Name(name, ast.Load()))
        index = self.element(target.value, index, node)
        old = self.access("get", target.value, [index], node)
        new = at(node, ast.BinOp(old, node.op, self.visit(node.value)))
        out.append(at(node, ast.Expr(self.access("put", target.value, [copy.deepcopy(index), new], node))))
        return out


def at(node: ast.AST, made: Any) -> Any:
    """A new node, on the line of an old one."""
    return ast.copy_location(made, node)


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self.old:
            node.id = self.new
        return node


def without_returns(block: list[ast.stmt]) -> list[ast.stmt]:
    """`return` ends a thread, and the loop over threads goes on: a flag skips what is left."""
    start = next((i for i, s in enumerate(block) if any(isinstance(n, ast.Return) for n in ast.walk(s))), None)
    if start is None:
        return block
    first = block[start]

    def done() -> ast.expr:
        return at(first, ast.Name("_k_done", ast.Load()))

    def set_to(value: bool) -> ast.stmt:
        return at(
            first, ast.Assign([at(first, ast.Name("_k_done", ast.Store()))], at(first, ast.Constant(value)))
        )

    def lowered(statements: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(statements):
            if isinstance(s, ast.Return):
                return [*out, set_to(True), *([at(s, ast.Break())] if in_loop else [])]
            out.append(s)
            if isinstance(s, (ast.If, ast.For, ast.While)) and any(
                isinstance(n, ast.Return) for n in ast.walk(s)
            ):
                s.body = lowered(s.body, in_loop or not isinstance(s, ast.If))
                s.orelse = lowered(s.orelse, in_loop)
                rest = lowered(statements[i + 1 :], in_loop)
                if in_loop:
                    return [*out, at(s, ast.If(done(), [at(s, ast.Break())], [])), *rest]
                if rest:
                    out.append(at(s, ast.If(at(s, ast.UnaryOp(ast.Not(), done())), rest, [])))
                return out
        return out

    return [*block[:start], set_to(False), *lowered(block[start:], False)]
