"""Generated kernels → NVVM's LLVM text, without a compiler's front end.

Numba takes a tenth of a second to infer the types of a kernel, statement by statement. Generated
source needs no inference: it says what each value is, so that one walk over its syntax tree writes
LLVM's instructions. What is lowered is a subset of Python: straight assignments, `while` and `if`,
`return`, arithmetic, comparisons, calls of the names of `names`, shared arrays, barriers. Scalar
operations (`log1p_f8`) are lowered from their own source in `operations`. The meaning is Numba's;
where that is not certain, or something else stands in the source, `NotLowered` is raised, and Numba
compiles the kernel.
"""

from __future__ import annotations

import ast
import linecache
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.backends.codegen.element import KernelText
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

DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
# The number of the note that loops have.
LOOP = 10
_RING = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)


class Module:
    """The functions of a kernel: what is declared, defined and shared."""

    def __init__(self, source: KernelText, own: frozenset[str] = frozenset()) -> None:
        self.source = source
        # What the source calls operations that are written as users' functions are: `fn_erf`.
        self.own = own
        self.declared: dict[str, str] = {}
        self.defined: list[str] = []
        self.shared: list[str] = []
        self._made: dict[Any, Any] = {}
        self.uses_libdevice = False
        # Is it nothing but arithmetic on whole words and calls of libdevice, of which an optimizer makes
        # hardly anything better than the assembler does by itself, in a multiple of the time?
        self.plain = True
        tree = ast.parse(source.text)
        self.scope: dict[str, Any] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.scope[node.name] = node
            elif not _skipped(node):
                raise NotLowered(f"a module's {type(node).__name__}")

    def text(self, version: tuple[int, int, int, int]) -> str:
        """The whole module, for the compiler's version of NVVM IR."""
        name, codes = self.source.name, self.source.codes
        node = self.scope[name]
        self.kernel(node, codes)
        kernel = f"void ({', '.join(LLVM[c] for c in codes)})* @{name}"
        notes = [f'!{{{kernel}, !"kernel", i32 1}}']
        if self.source.threads:
            notes.append(f'!{{{kernel}, !"maxntidx", i32 {self.source.threads}}}')
        return "\n".join(
            [
                'target triple = "nvptx64-nvidia-cuda"',
                f'target datalayout = "{DATA_LAYOUT}"',
                *self.shared,
                *self.declared.values(),
                *self.defined,
                f"!nvvm.annotations = !{{{', '.join(f'!{k}' for k in range(1, 1 + len(notes)))}}}",
                "!nvvmir.version = !{!0}",
                f"!0 = !{{{', '.join(f'i32 {v}' for v in version)}}}",
                *[f"!{k} = {note}" for k, note in enumerate(notes, 1)],
                f"!{LOOP} = distinct !{{!{LOOP}, !{LOOP + 1}}}",
                f'!{LOOP + 1} = !{{!"llvm.loop.unroll.disable"}}',
                "",
            ]
        )

    def kernel(self, node: ast.FunctionDef, codes: tuple[str, ...]) -> None:
        if any(c not in ("i4", "i8", "u4", "u8", "f4", "f8") for c in codes):
            raise NotLowered("a parameter of another type")
        body = Body(self, self.scope, {}, kernel=True)
        body.define(node, list(codes), node.name, "define void")

    def call(self, w: Writer, name: str, t: str, types: list[str], args: list[str]) -> str:
        """Call a function of LLVM or of libdevice."""
        if name not in self.declared:
            self.declared[name] = f"declare {t} @{name}({', '.join(types)})"
            self.uses_libdevice |= name.startswith("__nv_")
        given = ", ".join([f"{t} {a}" for t, a in zip(types, args, strict=True)])
        if t == "void":
            w.lines.append(f"  call void @{name}({given})")
            return ""
        return w.emit(f"call {t} @{name}({given})")

    def function(
        self, key: Any, node: ast.FunctionDef, scope: Any, bound: Any, forms: list[Any], how: str
    ) -> Any:
        """A function of the source at operands of these shapes: its name in LLVM, and its result's shape."""
        key = (key, *forms)
        found = self._made.get(key)
        if found is None:
            if key in self._made:
                raise NotLowered(f"{node.name}() calls itself")
            self._made[key] = None
            self.plain &= node.name == "element"
            name = f"{node.name}.{len(self._made)}"
            body = Body(self, scope, bound)
            body.define(node, forms, name, how)
            found = self._made[key] = name, body.result
        return found


def _skipped(node: ast.stmt) -> bool:
    """Is this nothing but an import from the future, or text?"""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def result_type(form: Any) -> str:
    if form is None:
        return "void"
    parts = [LLVM[c] for c in flat_codes(form)]
    return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"


class Body(Writer):
    """Writes one function.

    `scope` has the globals of its source; `bound` what names mean that depend on the operation.
    """

    def __init__(self, module: Module, scope: Any, bound: dict[str, Any], kernel: bool = False) -> None:
        super().__init__()
        self.module = module
        self.scope = scope
        self.bound = bound
        self.kernel = kernel
        self.result: Any = None
        self.returned = False

    def define(self, node: ast.FunctionDef, forms: list[Any], name: str, how: str) -> None:
        names = [a.arg for a in node.args.args]
        if len(names) != len(forms):
            raise NotLowered(f"{len(forms)} operands of {node.name}()")
        env: dict[str, Any] = {}
        parameters = []
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
        end = "" if self.kernel else " alwaysinline" if node.name == "element" else ""
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

    def merged(self, ends: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        """What names are where two ways meet; one that is not the same kind of thing on both is none."""
        (block_a, a), (block_b, b) = ends
        out = {}
        for name, x in a.items():
            y = b.get(name)
            if x is y:
                out[name] = x
            elif _numbers(x) and _numbers(y) and shape(x) == shape(y):
                parts = [
                    p if p == q else self.emit(f"phi {LLVM[c]} [ {p}, %{block_a} ], [ {q}, %{block_b} ]")
                    for c, p, q in zip(flat_codes(shape(x)), flat(x), flat(y), strict=True)
                ]
                out[name] = rebuilt(shape(x), parts)
        return out

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
        form = shape(value) if _numbers(value) else None
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
                array = words.Shared(f"shared{len(self.module.shared)}", of.id, int(length.value))
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


def literal(value: Any) -> Value:
    if isinstance(value, bool):
        return constant("b1", value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return constant("i8", value)
    if isinstance(value, float):
        return constant("f8", value)
    raise NotLowered(f"the constant {value!r}")


def _numbers(x: Any) -> bool:
    return all(map(_numbers, x)) if isinstance(x, tuple) else isinstance(x, Value)


def _code(known: Any) -> str:
    """The code that a type of NumPy's stands for."""
    if isinstance(known, type) and issubclass(known, np.generic):
        dtype = np.dtype(known)
        return f"{dtype.kind}{dtype.itemsize}"
    return ""


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
            (found,) = ast.parse("".join(lines[start:end])).body  # type: ignore[assignment]
        except (SyntaxError, ValueError):
            found = None
        if not isinstance(found, ast.FunctionDef):
            raise NotLowered(f"the source of {function.__name__}() is not at hand")
        _syntax[code] = found
    return found


@dataclass(frozen=True)
class Lowered:
    """The LLVM text of a kernel, whether it needs libdevice, and whether an optimizer."""

    text: str
    libdevice: bool
    plain: bool


def lowered(
    source: KernelText, version: tuple[int, int, int, int], own: frozenset[str] = frozenset()
) -> Lowered:
    """A kernel as LLVM's text. Raises NotLowered.

    `own`: which of the functions that it calls as users' are operations of ours.
    """
    try:
        module = Module(source, own)
        text = module.text(version)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise NotLowered(f"something unforeseen ({type(e).__name__}: {e})") from e
    return Lowered(text, module.uses_libdevice, module.plain)
