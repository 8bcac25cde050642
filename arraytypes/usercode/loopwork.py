"""How often loops turn, as far as it is known before they run, and how much they do."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from mirabelle.arraytypes.usercode.parallelloops import is_counted, is_size
from mirabelle.dispatch import syntax

# How many turns a loop is taken to have of which nothing is known.
_UNKNOWN = 256
_SCOPE = {"__builtins__": {"range": range, "len": len, "min": min, "max": max, "abs": abs, "int": int}}
# What a loop's node keeps: the code of its range.
_TURNS = "_mirabelle_turns"


class Ranges:
    """The ranges of counted loops, for these values of variables."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def at(self, loop: ast.For, value: int) -> Ranges:
        """The same, in a turn of a loop."""
        assert isinstance(loop.target, ast.Name)
        return Ranges({**self.values, loop.target.id: value})

    def of(self, loop: ast.For) -> range:
        """The turns of a loop.

        >>> loop = ast.parse("for i in range(1, n - 1): pass").body[0]
        >>> Ranges({"n": 10}).of(loop)
        range(1, 9)
        """
        code = getattr(loop, _TURNS, None)
        if code is None:
            code = syntax.compiled(ast.Expression(loop.iter), "<mirabelle range>", "eval")
            setattr(loop, _TURNS, code)
        return eval(code, _SCOPE, self.values)  # type: ignore[arg-type, no-any-return]

    @staticmethod
    def names(loop: ast.For) -> set[str]:
        """The variables that say how often a loop turns (what sizes of arrays do is always known).

        >>> sorted(Ranges.names(ast.parse("for i in range(k, x.shape[0] - n): pass").body[0]))
        ['k', 'n']
        """
        assert isinstance(loop.iter, ast.Call)
        found: set[str] = set()
        todo: list[ast.AST] = list(loop.iter.args)
        while todo:
            n = todo.pop()
            if is_size(n):
                continue
            if isinstance(n, ast.Name):
                found.add(n.id)
            elif isinstance(n, ast.Call):
                # (Of what is called, only these are known: others are no names of numbers.)
                known = (
                    isinstance(n.func, ast.Name)
                    and n.func.id in ("min", "max", "abs", "int")
                    and not n.keywords
                )
                todo += n.args if known else [ast.Name("<call>", ast.Load())]
            elif isinstance(n, (ast.BinOp, ast.UnaryOp)):
                todo += [x for x in ast.iter_child_nodes(n) if isinstance(x, ast.expr)]
            elif not (isinstance(n, ast.Constant) and type(n.value) is int):
                found.add("<other>")
        return found


def work(body: Iterable[ast.stmt], ranges: Ranges) -> float:
    """About how many elements statements touch.

    >>> loop = ast.parse("for i in range(10): y[i] = x[i] + x[i + 1]").body
    >>> work(loop, Ranges({}))
    40.0
    """
    total = 0.0
    for s in body:
        if isinstance(s, ast.For):
            turns, inside = float(_UNKNOWN), ranges
            if is_counted(s):
                try:
                    found = ranges.of(s)
                    turns = len(found)
                    if found:
                        inside = ranges.at(s, found[len(found) // 2])
                except Exception:
                    pass  # (it depends on values)
            total += turns * work(s.body, inside)
        elif isinstance(s, ast.While):
            total += _UNKNOWN * (work(s.body, ranges) + _own(s.test))
        else:
            heads = [n for n in ast.iter_child_nodes(s) if not isinstance(n, ast.stmt)]
            total += 1 + sum(map(_own, heads))
            total += work(getattr(s, "body", []), ranges) + work(getattr(s, "orelse", []), ranges)
    return total


def _own(e: ast.AST) -> float:
    """What an expression touches (a function counts as some elements)."""
    return sum(4 * isinstance(n, ast.Call) + isinstance(n, ast.Subscript) for n in ast.walk(e))
