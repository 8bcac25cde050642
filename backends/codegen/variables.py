"""The variables of a block of statements: which it reads, assigns, and reads before it assigns."""

from __future__ import annotations

import ast


def names(node: ast.AST, context: type[ast.expr_context] | None = None) -> set[str]:
    return {
        n.id
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and (context is None or isinstance(n.ctx, context))
    }


def stored_names(statements: list[ast.stmt]) -> set[str]:
    return set().union(*(names(s, ast.Store) for s in statements)) if statements else set()


def is_arithmetic(e: ast.expr) -> bool:
    """Is it arithmetic that can be done twice?"""
    allowed = (
        ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.BoolOp, ast.operator,
        ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
    )  # fmt: skip
    return all(isinstance(n, allowed) for n in ast.walk(e))


def exposed(block: list[ast.stmt]) -> set[str]:
    """The variables a block may read before it has assigned them."""
    return _flow(block, set())[0]


def defined(block: list[ast.stmt]) -> set[str]:
    """The variables a block assigns whatever happens."""
    return _flow(block, set())[1]


def _flow(block: list[ast.stmt], before: set[str]) -> tuple[set[str], set[str]]:
    exposed: set[str] = set()
    defined = set(before)
    for s in block:
        if isinstance(s, ast.If):
            exposed |= names(s.test, ast.Load) - defined
            first, one = _flow(s.body, defined)
            second, other = _flow(s.orelse, defined)
            exposed |= first | second
            defined = one & other
        elif isinstance(s, ast.While):
            exposed |= names(s.test, ast.Load) - defined
            exposed |= _flow(s.body, defined)[0] | _flow(s.orelse, defined)[0]
        elif isinstance(s, ast.For):
            exposed |= names(s.iter, ast.Load) - defined
            exposed |= _flow(s.body, defined | names(s.target, ast.Store))[0]
            exposed |= _flow(s.orelse, defined)[0]
        else:
            exposed |= names(s, ast.Load) - defined
            if isinstance(s, ast.AugAssign):
                exposed |= names(s.target, ast.Store) - defined
            if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and getattr(s, "value", None):
                defined |= names(s, ast.Store)
        if isinstance(s, (ast.Break, ast.Continue)):
            break
    return exposed, defined
