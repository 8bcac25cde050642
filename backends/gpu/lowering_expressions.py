"""Expressions of lowered kernels: names, arithmetic, choices, calls of functions and of operations.

Scalar operations (`log1p_f8`) are lowered from their own source in `operations`.
"""

from __future__ import annotations

import ast
import linecache
import types
from typing import Any

import numpy as np

from mirabelle.backends.gpu import lowering_words as words
from mirabelle.backends.gpu.lowering_values import (
    LLVM,
    NotLowered,
    Value,
    Writer,
    constant,
    flat,
    flat_codes,
    of_numpy,
    rebuilt,
    shape,
)
from mirabelle.dispatch.syntax import parse

_RING = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)


class Expressions(Writer):
    """Writes the expressions of one function.

    `scope` has the globals of its source; `bound` what names mean that depend on the operation.
    """

    def __init__(self, module: Any, scope: Any, bound: dict[str, Any], kernel: bool = False) -> None:
        super().__init__()
        self.module = module
        self.scope = scope
        self.bound = bound
        self.kernel = kernel

    # Expressions

    def condition(self, node: ast.expr, env: dict[str, Any]) -> Value:
        return self.truth(self.number(node, env))

    def number(self, node: ast.expr, env: dict[str, Any], want: str | None = None) -> Value:
        value = self.expression(node, env, want)
        if not isinstance(value, Value):
            raise NotLowered("something that is no number")
        return value

    def expression(self, node: ast.expr, env: dict[str, Any], want: str | None = None) -> Any:
        """A value. `want` is the integer dtype that the result is cast to, if it is."""
        if isinstance(node, ast.Name):
            return env[node.id] if node.id in env else self.global_value(node.id)
        if isinstance(node, ast.Call):
            return self.call(node, env)
        if isinstance(node, ast.BinOp):
            op = type(node.op)
            deeper = want if op in _RING else None
            x, y = self.number(node.left, env, deeper), self.number(node.right, env, deeper)
            return self.operate(op.__name__, x, y, want)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            x, y = self.number(node.left, env), self.number(node.comparators[0], env)
            return self.compare(type(node.ops[0]).__name__, x, y)
        if isinstance(node, ast.Constant):
            return literal(node.value)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, env)
        if isinstance(node, ast.Tuple):
            return tuple([self.expression(x, env) for x in node.elts])
        if isinstance(node, ast.Attribute) and node.attr in ("real", "imag"):
            return words.part_of(self.number(node.value, env), node.attr)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub):
                return self.negative(self.number(node.operand, env, want), want)
            if isinstance(node.op, ast.Not):
                return self.opposite(self.condition(node.operand, env))
            if isinstance(node.op, ast.Invert):
                return self.inverted(self.number(node.operand, env))
        if isinstance(node, ast.BoolOp):
            return self.connected(node, env)
        if isinstance(node, ast.IfExp):
            return self.choice(node, env)
        raise NotLowered(f"an expression of type {type(node).__name__}")

    def connected(self, node: ast.BoolOp, env: dict[str, Any]) -> Value:
        """`and`, `or`, of truth values; what is no more than a comparison is computed anyway."""
        both = isinstance(node.op, ast.And)
        value = self.number(node.values[0], env)
        for right in node.values[1:]:
            if value.code != "b1":
                raise NotLowered("and, or of numbers")
            if _simple(right):
                other = self.number(right, env)
                if other.code != "b1":
                    raise NotLowered("and, or of numbers")
                value = self.operate("BitAnd" if both else "BitOr", value, other, None)
                continue
            more, after, before = self.label(), self.label(), self.block
            self.branch(value.parts[0], *((more, after) if both else (after, more)))
            self.begin(more)
            other = self.number(right, env)
            if other.code != "b1":
                raise NotLowered("and, or of numbers")
            end = self.block
            self.jump(after)
            self.begin(after)
            known = "false" if both else "true"
            value = Value("b1", (self.emit(f"phi i1 [ {known}, %{before} ], [ {other.parts[0]}, %{end} ]"),))
        return value

    def choice(self, node: ast.IfExp, env: dict[str, Any]) -> Any:
        test = self.condition(node.test, env)
        if _simple(node.body) and _simple(node.orelse):
            pair = self.unified(self.expression(node.body, env), self.expression(node.orelse, env))
            return self.choose(test, *pair)
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(test.parts[0], yes, no)
        ends = []
        for label, part in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            value = self.expression(part, env)
            ends.append((self.block, {"": value}))
            self.jump(after)
        self.begin(after)
        merged = self.merged(ends)
        if "" not in merged:
            raise NotLowered("a choice between different dtypes")
        return merged[""]

    def subscript(self, node: ast.Subscript, env: dict[str, Any]) -> Any:
        whole = self.expression(node.value, env)
        if isinstance(whole, words.Shared):
            return whole.get(self, self.number(node.slice, env))
        at = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(whole, tuple) and type(at) is int and 0 <= at < len(whole):
            return whole[at]
        raise NotLowered("an index")

    def merged(self, ends: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """What names are where two ways meet; one that is not the same kind of thing on both is none."""
        (block_a, a), (block_b, b) = ends
        out = {}
        for name, x in a.items():
            y = b.get(name)
            if x is y:
                out[name] = x
            elif is_numeric(x) and is_numeric(y) and shape(x) == shape(y):
                parts = [
                    p if p == q else self.emit(f"phi {LLVM[c]} [ {p}, %{block_a} ], [ {q}, %{block_b} ]")
                    for c, p, q in zip(flat_codes(shape(x)), flat(x), flat(y), strict=True)
                ]
                out[name] = rebuilt(shape(x), parts)
        return out

    # Calls

    def call(self, node: ast.Call, env: dict[str, Any]) -> Any:
        f = node.func
        if node.keywords:
            raise NotLowered("arguments by name")
        if isinstance(f, ast.Attribute):
            return self.attribute_call(f, node, env)
        if not isinstance(f, ast.Name) or f.id in env:
            raise NotLowered("a call of what is no function")
        name = f.id
        known = self.scope.get(name)
        code = name if known is None else _code(known)
        if code in LLVM and len(node.args) == 1:
            return self.cast(self.number(node.args[0], env, code if code[0] in "iu" else None), code)
        args = [self.expression(a, env) for a in node.args]
        if isinstance(known, ast.FunctionDef):
            made = self.module.function(
                name, known, self.scope, self.bound, [shape(a) for a in args], "define internal"
            )
            return self.called(made, args)
        if isinstance(known, types.FunctionType) or name == "of":
            return self.pattern_call(name, known, args)
        if name == "barrier" and not args:
            self.module.call(self, "llvm.nvvm.barrier0", "void", [], [])
            return constant("b1", False)
        found = words.word(self, self.module, name, args)
        return self.operation(name, args) if found is None else found

    def attribute_call(self, f: ast.Attribute, node: ast.Call, env: dict[str, Any]) -> Any:
        base = f.value
        if isinstance(base, ast.Name) and base.id == "library" and "library" in self.scope:
            return words.real_function(self, self.module, f.attr, [self.number(a, env) for a in node.args])
        if ast.unparse(f) == "cuda.shared.array" and len(node.args) == 2 and self.kernel:
            length, of = node.args
            if isinstance(length, ast.Constant) and isinstance(of, ast.Name) and of.id in LLVM:
                array = words.Shared(f"shared{len(self.module.shared)}", of.id, int(str(length.value)))
                self.module.shared.append(array.declaration())
                return array
        raise NotLowered(f"a call of {ast.unparse(f)}")

    def called(self, made: tuple[str, Any], args: list[Any]) -> Any:
        name, form = made
        given = ", ".join(
            [f"{LLVM[c]} {p}" for a in args for c, p in zip(flat_codes(shape(a)), flat(a), strict=True)]
        )
        t = result_type(form)
        whole = self.emit(f"call {t} @{name}({given})")
        codes = flat_codes(form)
        if len(codes) == 1:
            return rebuilt(form, [whole])
        return rebuilt(form, [self.emit(f"extractvalue {t} {whole}, {k}") for k in range(len(codes))])

    # Scalar operations, and the functions they are written in

    def operation(self, name: str, args: list[Any]) -> Any:
        """`sin_f8`: an operation by its name and the dtype of its operands."""
        if name in self.module.own:
            name = f"{name.removeprefix('fn_')}_{args[0].code}"
        users = self.module.users
        if users is not None and name in users.functions:
            symbol, made = users.called(name, tuple([shape(a) for a in args]))
            self.module.uses_libdevice, self.module.plain = True, False
            types = [LLVM[a.code] for a in args]
            return Value(made, (self.module.call(self, symbol, LLVM[made], types, flat(tuple(args))),))
        stem, _, code = name.rpartition("_")
        if code not in LLVM or not stem:
            raise NotLowered(f"the function {name}")
        if stem == "where" and len(args) == 3:
            test, x, y = args
            return self.choose(self.truth(test), self.cast(x, code), self.cast(y, code))
        from mirabelle.backends.gpu import operations

        try:
            of_library = operations.library_function(stem, code)
            if of_library is not None:
                return words.real_function(self, self.module, of_library, args)
            function = operations.scalar_function(stem, code, "numpy")
        except KeyError:
            raise NotLowered(f"the function {name}") from None
        wider = {"f2": "f4", "c8": "c16"}.get(code)
        bound = {} if wider is None else {"of": f"{stem}_{wider}"}
        return self.function_call((stem, code), function, bound, args)

    def pattern_call(self, name: str, known: Any, args: list[Any]) -> Any:
        if name == "of":
            return self.operation(self.bound["of"], args)
        if name == "popcount" and args[0].code == "u8":
            return Value("u8", (self.module.call(self, "llvm.ctpop.i64", "i64", ["i64"], [args[0].parts[0]]),))
        return self.function_call((known.__code__, known.__name__), known, self.bound, args)

    def function_call(self, key: Any, function: Any, bound: dict[str, Any], args: list[Any]) -> Any:
        made = self.module.function(
            key, syntax(function), function.__globals__, bound, [shape(a) for a in args], "define internal"
        )
        return self.called(made, args)

    def global_value(self, name: str) -> Any:
        found = self.scope.get(name)
        if isinstance(found, (np.generic, bool, int, float)):
            return of_numpy(found) if isinstance(found, np.generic) else literal(found)
        raise NotLowered(f"the name {name}")


def result_type(form: Any) -> str:
    if form is None:
        return "void"
    parts = [LLVM[c] for c in flat_codes(form)]
    return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"


def literal(value: Any) -> Value:
    if isinstance(value, bool):
        return constant("b1", value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return constant("i8", value)
    if isinstance(value, float):
        return constant("f8", value)
    raise NotLowered(f"the constant {value!r}")


def is_numeric(x: Any) -> bool:
    """Is this a number, or a tuple of them?"""
    return all(map(is_numeric, x)) if isinstance(x, tuple) else isinstance(x, Value)


def _code(known: Any) -> str:
    """The code that a type of NumPy's stands for."""
    if isinstance(known, type) and issubclass(known, np.generic):
        dtype = np.dtype(known)
        return f"{dtype.kind}{dtype.itemsize}"
    return ""


def _simple(node: ast.expr) -> bool:
    """Is computing it for nothing cheap? Casts are; other functions and divisions are not."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and len(part.func.id) <= 3):
            return False
        if isinstance(part, (ast.FloorDiv, ast.Mod, ast.Div, ast.Subscript)):
            return False
    return True


_syntax: dict[Any, ast.FunctionDef] = {}


def syntax(function: Any) -> ast.FunctionDef:
    """The syntax tree of a plain function at the top of its file."""
    code = function.__code__
    found = _syntax.get(code)
    if found is None:
        lines = linecache.getlines(code.co_filename)
        start = code.co_firstlineno - 1
        end = start + 1
        while end < len(lines) and (not lines[end].strip() or lines[end][0] in " )"):
            end += 1
        try:
            (found,) = parse("".join(lines[start:end])).body  # type: ignore[assignment]
        except (SyntaxError, ValueError):
            found = None
        if not isinstance(found, ast.FunctionDef):
            raise NotLowered(f"the source of {function.__name__}() is not at hand")
        _syntax[code] = found
    return found
