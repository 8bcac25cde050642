"""The syntax trees of functions that users broadcast, lambdas among them, and of generated ones."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import textwrap
import types
import weakref
from typing import Any

from mirabelle.arraytypes.usercode.effects import function_tree
from mirabelle.dispatch import syntax

_numbers = itertools.count(1)


def tree_of(f: types.FunctionType) -> ast.FunctionDef | ast.Lambda | None:
    """The tree of a function, with its line numbers in its file; None if there is no source."""
    # (Of several lambdas in a line, where its code stands tells which it is.)
    found = _lambda_at(f) if f.__name__ == "<lambda>" else None
    return function_tree(f) if found is None else found


def body_of(tree: ast.FunctionDef | ast.Lambda) -> list[ast.stmt]:
    """The statements of a function, without its docstring; of a lambda, that it returns its expression."""
    if isinstance(tree, ast.Lambda):
        return [ast.copy_location(ast.Return(tree.body), tree.body)]
    first = tree.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(tree.body) > 1
    return tree.body[1:] if documented else tree.body


def _lambda_at(f: types.FunctionType) -> ast.Lambda | None:
    code = f.__code__
    places = [
        ((line, column), (end, last))
        for line, end, column, last in code.co_positions()
        if line is not None and end is not None and column is not None and last is not None and last > column
    ]
    tree = _parsed("".join(linecache.getlines(code.co_filename, f.__globals__)))
    if tree is None or not places:
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found: list[ast.Lambda] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            body = node.body
            low, high = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
            given = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
            if given == names and all(low <= a and b <= high for a, b in places):
                found.append(node)
    # The last one is the innermost.
    return found[-1] if found else None


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return syntax.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def made(definition: ast.FunctionDef, about: str, scope: dict[str, Any]) -> Any:
    """A generated function, whose text can be found as that of any other."""
    text = ast.unparse(ast.fix_missing_locations(definition)) + "\n"
    filename = f"<{textwrap.shorten(about, 60)}, {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)
    function = scope[definition.name]
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function
