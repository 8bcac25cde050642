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
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu.lowering_body import LOOP, Body
from mirabelle.backends.gpu.lowering_values import LLVM, NotLowered, Writer
from mirabelle.backends.gpu.usercode import UserCode
from mirabelle.dispatch import syntax

DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)


class Module:
    """The functions of a kernel: what is declared, defined and shared."""

    def __init__(
        self, source: KernelText, own: frozenset[str] = frozenset(), users: UserCode | None = None
    ) -> None:
        self.source = source
        self.text = ""
        # What the source calls operations that are written as users' functions are: `fn_erf`.
        self.own = own
        self.users = users
        self.declared: dict[str, str] = {}
        self.defined: list[str] = []
        self.shared: list[str] = []
        self._made: dict[Any, Any] = {}
        self.uses_libdevice = False
        # Is it nothing but arithmetic on whole words and calls of libdevice, of which an optimizer makes
        # hardly anything better than the assembler does by itself, in a multiple of the time?
        self.plain = True
        tree = syntax.parse(source.text)
        self.scope: dict[str, Any] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.scope[node.name] = node
            elif not _skipped(node):
                raise NotLowered(f"a module's {type(node).__name__}")

    def write(self, version: tuple[int, int, int, int]) -> None:
        """Write the whole module, for the compiler's version of NVVM IR."""
        name, codes = self.source.name, self.source.codes
        node = self.scope[name]
        self.kernel(node, codes)
        kernel = f"void ({', '.join(LLVM[c] for c in codes)})* @{name}"
        notes = [f'!{{{kernel}, !"kernel", i32 1}}']
        if self.source.threads:
            notes.append(f'!{{{kernel}, !"maxntidx", i32 {self.source.threads}}}')
        self.text = "\n".join(
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


def lowered_module(
    source: KernelText,
    version: tuple[int, int, int, int],
    own: frozenset[str] = frozenset(),
    users: UserCode | None = None,
) -> Module:
    """A kernel as a module of LLVM. Raises NotLowered.

    `version` is the compiler's of NVVM IR; `own` names which of the functions that the source calls as
    users' are operations of ours, and `users` has the others.
    """
    try:
        module = Module(source, own, users)
        module.write(version)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise NotLowered(f"something unforeseen ({type(e).__name__}: {e})") from e
    return module


def lowered(
    source: KernelText, version: tuple[int, int, int, int], own: frozenset[str] = frozenset()
) -> tuple[str, bool]:
    """A kernel as LLVM's text, and whether it calls libdevice. Raises NotLowered."""
    module = lowered_module(source, version, own)
    return module.text, module.uses_libdevice
