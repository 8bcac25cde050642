"""Numbers that loops gather over all of their turns: sums, products, the smallest and the largest."""

from __future__ import annotations

import ast

from mirabelle.arraytypes.usercode.rewriting import names_loaded

_GATHERED = {ast.Add: "sum", ast.Sub: "sum", ast.Mult: "prod"}


def reduction_of(name: str, loop: ast.stmt) -> str:
    """What a variable gathers, if each statement that names it is like `s += x[i]`: sum, prod, min or max."""
    found: set[str] = set()
    seen = 0
    for s in ast.walk(loop):
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and s.target.id == name:
            how, value, here = _GATHERED.get(type(s.op), ""), s.value, 1
        elif isinstance(s, ast.Assign) and [ast.dump(t) for t in s.targets] == [
            ast.dump(ast.Name(name, ast.Store()))
        ]:
            how, value = _gathered(name, s.value)
            here = 2
        else:
            continue
        if not how or name in names_loaded([value]):
            return ""
        found.add(how)
        seen += here
    named = sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(loop))
    return found.pop() if len(found) == 1 and seen == named else ""


def _gathered(name: str, e: ast.expr) -> tuple[str, ast.expr]:
    """What `s = s + e` gathers, and of what."""

    def is_it(x: ast.expr) -> bool:
        return isinstance(x, ast.Name) and x.id == name

    if isinstance(e, ast.BinOp) and type(e.op) in _GATHERED:
        if is_it(e.left):
            return _GATHERED[type(e.op)], e.right
        if is_it(e.right) and not isinstance(e.op, ast.Sub):
            return _GATHERED[type(e.op)], e.left
    if isinstance(e, ast.Call) and len(e.args) == 2 and is_it(e.args[0]) and not e.keywords:
        # (Python's max(s, e) leaves s where e is NaN, max(e, s) does not.)
        name = e.func.id if isinstance(e.func, ast.Name) else ""
        return (name if name in ("min", "max") else ""), e.args[1]
    return "", e
