"""Statements of lowered kernels: assignments, `if`, `while`, `return`; and whole functions.

Variables become values in registers: where ways of control meet, LLVM's `phi` chooses.
"""

from __future__ import annotations

import ast
from typing import Any

from mirabelle.backends.gpu import lowering_words as words
from mirabelle.backends.gpu.lowering_expressions import Expressions, is_numeric, result_type
from mirabelle.backends.gpu.lowering_values import LLVM, NotLowered, flat, flat_codes, rebuilt, shape

# The number of the note of loops that are not to be unrolled.
LOOP = 10


class Body(Expressions):
    """Writes one function."""

    def __init__(self, module: Any, scope: Any, bound: dict[str, Any], kernel: bool = False) -> None:
        super().__init__(module, scope, bound, kernel)
        self.result: Any = None
        self.returned = False

    def define(self, node: ast.FunctionDef, forms: list[Any], name: str, how: str) -> None:
        names = [a.arg for a in node.args.args]
        more = node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.posonlyargs
        if len(names) != len(forms) or more:
            raise NotLowered(f"{len(forms)} operands of {node.name}()")
        if any(not ast.unparse(d).startswith("cuda.jit(") for d in node.decorator_list):
            raise NotLowered(f"what decorates {node.name}()")
        env: dict[str, Any] = {}
        parameters: list[str] = []
        for label, form in zip(names, forms, strict=True):
            parts = []
            for c in flat_codes(form):
                parts.append(f"%a{len(parameters)}")
                parameters.append(f"{LLVM[c]} {parts[-1]}")
            env[label] = rebuilt(form, parts)
        self.statements(node.body, env)
        if self.alive:
            if not self.kernel:
                raise NotLowered(f"{node.name}() may end without a result")
            self.lines.append("  ret void")
        what = how if self.kernel else f"{how} {result_type(self.result)}"
        end = "" if self.kernel else " alwaysinline" if node.name.startswith("element") else ""
        head = f"{what} @{name}({', '.join(parameters)}){end} {{"
        self.module.defined.append("\n".join([head, "entry:", *self.first, *self.lines, "}"]))

    # Statements

    def statements(self, nodes: list[ast.stmt], env: dict[str, Any]) -> None:
        for node in nodes:
            if not self.alive:
                raise NotLowered("statements after a return")
            self.statement(node, env)

    def statement(self, node: ast.stmt, env: dict[str, Any]) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value, env)
        elif isinstance(node, ast.If):
            self.conditional(node, env)
        elif isinstance(node, ast.While) and not node.orelse:
            self.loop(node, env)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self.expression(node.value, env)
        elif isinstance(node, ast.Return):
            self.give(node, env)
        else:
            raise NotLowered(f"a statement of type {type(node).__name__}")

    def assign(self, target: ast.expr, value: ast.expr, env: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = self.expression(value, env)
        elif isinstance(target, ast.Tuple):
            made = self.expression(value, env)
            if not isinstance(made, tuple) or len(made) != len(target.elts):
                raise NotLowered("an assignment to several names")
            for part, x in zip(target.elts, made, strict=True):
                if not isinstance(part, ast.Name):
                    raise NotLowered("an assignment to several places")
                env[part.id] = x
        elif isinstance(target, ast.Subscript):
            array = self.expression(target.value, env)
            if not isinstance(array, words.Shared):
                raise NotLowered("an assignment to an element")
            index = self.number(target.slice, env)
            array.put(self, index, self.expression(value, env))
        else:
            raise NotLowered("an assignment to something else")

    def conditional(self, node: ast.If, env: dict[str, Any]) -> None:
        test = self.condition(node.test, env)
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(test.parts[0], yes, no)
        ends = []
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            inner = dict(env)
            self.statements(body, inner)
            if self.alive:
                ends.append((self.block, inner))
                self.jump(after)
        if not ends:
            return
        self.begin(after)
        merged = ends[0][1] if len(ends) == 1 else self.merged(ends)
        env.clear()
        env.update(merged)

    def loop(self, node: ast.While, env: dict[str, Any]) -> None:
        carried = [n for n in sorted(_assigned(node.body)) if n in env]
        before = {n: env[n] for n in carried}
        entry, head, inside, after = self.block, self.label(), self.label(), self.label()
        self.jump(head)
        self.begin(head)
        place = len(self.lines)
        forms = {n: shape(before[n]) for n in carried}
        for n in carried:
            env[n] = rebuilt(forms[n], [self.fresh() for _ in flat_codes(forms[n])])
        test = self.condition(node.test, env)
        self.branch(test.parts[0], inside, after)
        self.begin(inside)
        inner = dict(env)
        self.statements(node.body, inner)
        back = None
        if self.alive:
            back = self.block
            # Frames unroll what is worth it, but for loops that are known to be short.
            short = _short(node.test)
            self.module.plain &= not short
            self.lines.append(f"  br label %{head}" + ("" if short else f", !llvm.loop !{LOOP}"))
            self.alive = False
        phis = []
        for n in carried:
            if back is not None and (n not in inner or shape(inner[n]) != forms[n]):
                raise NotLowered(f"{n} changes its dtype in a loop")
            came = flat(inner[n]) if back is not None else flat(before[n])
            for c, name, first, again in zip(
                flat_codes(forms[n]), flat(env[n]), flat(before[n]), came, strict=True
            ):
                more = f", [ {again}, %{back} ]" if back is not None else ""
                phis.append(f"  {name} = phi {LLVM[c]} [ {first}, %{entry} ]{more}")
        self.lines[place:place] = phis
        self.begin(after)

    def give(self, node: ast.Return, env: dict[str, Any]) -> None:
        self.alive = False
        if self.kernel:
            if node.value is not None:
                raise NotLowered("a kernel's result")
            self.lines.append("  ret void")
            return
        if node.value is None:
            raise NotLowered("a function without a result")
        value = self.expression(node.value, env)
        self.alive = False
        form = shape(value) if is_numeric(value) else None
        if form is None or (self.returned and form != self.result):
            raise NotLowered("results of different dtypes")
        self.result, self.returned = form, True
        parts, t = flat(value), result_type(form)
        if len(parts) == 1:
            self.lines.append(f"  ret {t} {parts[0]}")
            return
        whole = "undef"
        for k, (c, p) in enumerate(zip(flat_codes(form), parts, strict=True)):
            whole = self.emit(f"insertvalue {t} {whole}, {LLVM[c]} {p}, {k}")
        self.lines.append(f"  ret {t} {whole}")


def _assigned(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements give a value."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in target.elts if isinstance(target, ast.Tuple) else (target,):
                    if isinstance(part, ast.Name):
                        out.add(part.id)
        elif isinstance(node, (ast.If, ast.While)):
            out |= _assigned(node.body) | _assigned(node.orelse)
    return out


def _short(test: ast.expr) -> bool:
    """Does a loop count up to a constant?"""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt):
        return False
    end = test.comparators[0]
    return isinstance(end, ast.Call) and isinstance(end.args[0], ast.Constant)
