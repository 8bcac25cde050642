"""A kernel's statements with the names that they have in its text for a card (see `kernelnames`)."""

from __future__ import annotations

import ast
import copy
from typing import Any

from mirabelle.arraytypes.usercode import kernelsource
from mirabelle.arraytypes.usercode.effects import scope_of
from mirabelle.backends.codegen.kernelnames import Names, at
from mirabelle.dispatch import syntax


class GridNames(Names):
    """Names for a grid: every thread has its own private arrays, and shared ones have atomic operations."""

    def element(self, array: Any, index: ast.expr, node: ast.AST) -> ast.expr:
        return index

    def whereabouts(self, array: Any, node: Any) -> list[ast.expr]:
        return [at(node, ast.Name("_k_record", ast.Load())), *self.site(array.id, node)]

    def site(self, what: Any, node: Any) -> list[ast.expr]:
        self.sites.append((what, node.lineno, 0))
        index = [at(node, ast.Name(f"_k_index{d}", ast.Load())) for d in range(self.ndim)]
        return [at(node, ast.Constant(len(self.sites) - 1)), at(node, ast.Tuple(index, ast.Load()))]

    def visit_Call(self, node: ast.Call) -> Any:
        made = super().visit_Call(node)
        if (
            isinstance(made, ast.Call)
            and isinstance(made.func, ast.Name)
            and made.func.id.startswith("_k_own_")
        ):
            local = self.source.locals[made.args[0].id]  # type: ignore[attr-defined]
            if local.shared:
                made.func.id = made.func.id.replace("_k_own_", "_k_shared_")
        return made

    def visit_Expr(self, node: ast.Expr) -> Any:
        if kernelsource.is_barrier(node, self.k):
            return at(node, ast.Expr(at(node, ast.Call(at(node, ast.Name("_k_barrier", ast.Load())), [], []))))
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        """An error is recorded, and raised by whoever launched the kernel."""
        error = self.error_of(node)
        where = [at(node, ast.Name("_k_record", ast.Load())), *self.site(error, node)]
        return [at(node, ast.Expr(self.call("_k_fail", where, node))), at(node, ast.Return())]

    def visit_Assert(self, node: ast.Assert) -> Any:
        error: ast.expr = at(node, ast.Name("AssertionError", ast.Load()))
        if node.msg is not None:
            error = at(node, ast.Call(error, [node.msg], []))
        test = at(node, ast.UnaryOp(ast.Not(), self.visit(node.test)))
        return at(node, ast.If(test, self.visit_Raise(at(node, ast.Raise(error))), []))

    def error_of(self, node: ast.Raise) -> BaseException:
        look_up = scope_of(self.source.function)
        made: Any = None
        if node.exc is not None and node.cause is None:
            found = {n.id: look_up(n.id) for n in ast.walk(node.exc) if isinstance(n, ast.Name)}
            tree = ast.fix_missing_locations(ast.Expression(copy.deepcopy(node.exc)))
            try:
                made = eval(syntax.compiled(tree, "<raise>", "eval"), {}, found)
            except Exception:
                pass
        if isinstance(made, type) and issubclass(made, BaseException):
            made = made()
        if not isinstance(made, BaseException):
            self.fail(node, 'a kernel raises an error of constants: `raise ValueError("negative")`')
        return made
