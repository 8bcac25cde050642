"""The group frame: a kernel as one function that runs a range of groups, for a processor.

    kernel(from, to, size0, ..., group_size0, ..., arguments) -> 0

The threads of a group are loops, one for each phase (see `phases`). The range frame and the
thread frame are the elementwise kernels' (`rangeframe`, `source`).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode import kernelsource
from mirabelle.arraytypes.usercode.kernelsource import KernelSource
from mirabelle.backends.codegen import phases
from mirabelle.backends.codegen.kernelnames import Names, at, without_returns
from mirabelle.backends.codegen.phases import Control, Item, Once, Phase
from mirabelle.backends.codegen.variables import names
from mirabelle.dispatch import syntax
from mirabelle.dispatch.errors import UserFunctionError

# Function, variables → their dtypes; None where a variable is no number of one type.
TypesOf = Callable[[Any, list[str]], dict[str, np.dtype | None]]


class GroupFrame:
    """Makes the function of a kernel for a number of dimensions and kinds of arguments.

    `arrays` and `opaque` name the parameters that are arrays, and those that are neither arrays
    nor numbers. `scope` gives `_k_get` and its like a meaning.
    """

    def __init__(
        self,
        source: KernelSource,
        ndim: int,
        arrays: set[str],
        opaque: set[str],
        scope: dict[str, Any],
        types_of: TypesOf,
        *,
        padded: bool,
        checked: bool,
    ) -> None:
        self.source = source
        self.dims = range(ndim)
        self.arrays = arrays | set(source.locals)
        self.opaque = opaque
        self.padded = padded
        self.types_of = types_of
        self.line = source.function.__code__.co_firstlineno
        self.names = Names(source, ndim, self.arrays, checked)
        self.scope = {**_surroundings(source.function), **scope}
        self.scope |= {"_k_empty": np.empty, "_k_min": min, "_k_range": range, "_k_int": int}
        self.scope |= {f"_k_dtype_{a.name}": a.dtype for a in source.locals.values()}

    def function(self) -> Any:
        body = without_returns(self.names.rewritten())
        kept: list[ast.stmt] = []
        if self.source.has_barrier:
            kept, group = self.in_phases(body)
        else:
            group = self.thread_loop(body)
        return self.defined(self.frame(self.local_arrays() + kept, group))

    # Pieces of code

    def code(self, lines: list[str], **holes: list[ast.stmt]) -> list[ast.stmt]:
        """Parsed lines, with statements put where a hole's name stands as a statement."""
        tree = syntax.parse("\n".join(lines))
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = self.line  # type: ignore[attr-defined]
        return _Holes(holes).visit(tree).body  # type: ignore[no-any-return]

    def frame(self, before: list[ast.stmt], group: list[ast.stmt]) -> list[ast.stmt]:
        """A loop over groups around what a group does."""
        counts, start, rest = [], [], "_k_number"
        for d in self.dims:
            counts.append(f"_k_groups{d} = (_k_size{d} + _k_group_size{d} - 1) // _k_group_size{d}")
        for d in reversed(self.dims):
            start.append(f"_k_group{d} = {rest} % _k_groups{d}" if d else f"_k_group{d} = {rest}")
            if d:
                start.append(f"_k_rest{d} = {rest} // _k_groups{d}")
                rest = f"_k_rest{d}"
        for d in self.dims:
            start.append(f"_k_first{d} = _k_group{d} * _k_group_size{d}")
            inside = f"_k_min(_k_group_size{d}, _k_size{d} - _k_first{d})"
            start.append(f"_k_extent{d} = {f'_k_group_size{d}' if self.padded else inside}")
        head = [*counts, "BEFORE", "for _k_number in _k_range(_k_from, _k_to):"]
        body = [f"    {s}" for s in [*start, "GROUP"]]
        return self.code([*head, *body, "return 0"], BEFORE=before, GROUP=group)

    def local_arrays(self) -> list[ast.stmt]:
        made = []
        for a in self.source.locals.values():
            # Where it lives through several phases, each thread has its part.
            many = "_k_threads, " if self.source.has_barrier and not a.shared else ""
            sizes = "".join(f"{n}, " for n in a.shape)
            made.append(f"{a.name} = _k_empty(({many}{sizes}), _k_dtype_{a.name})")
        return self.code([self.threads(), *made] if made else [])

    def threads(self) -> str:
        return "_k_threads = " + " * ".join(f"_k_group_size{d}" for d in self.dims)

    def thread_loop(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Run statements for each thread of a group."""
        lines, pad = [], ""
        used = set().union(*map(names, body)) if body else set()
        for d in self.dims:
            lines.append(f"{pad}for _k_local{d} in _k_range(_k_extent{d}):")
            pad += "    "
            lines.append(f"{pad}_k_index{d} = _k_first{d} + _k_local{d}")
        if "_k_thread" in used:
            number = "_k_local0"
            for d in self.dims[1:]:
                number = f"({number}) * _k_group_size{d} + _k_local{d}"
            lines.append(f"{pad}_k_thread = {number}")
        if "_k_valid" in used:
            inside = " and ".join(f"_k_index{d} < _k_size{d}" for d in self.dims)
            lines.append(f"{pad}_k_valid = {inside if self.padded else True}")
        return self.code([*lines, f"{pad}BODY"], BODY=body)

    def defined(self, body: list[ast.stmt]) -> Any:
        """The function of these statements, where the user's function stands."""
        f = self.source.function
        sizes = [f"_k_{what}{d}" for what in ("size", "group_size") for d in self.dims]
        given = ", ".join(["_k_from", "_k_to", *sizes, *self.source.parameters])
        definition = self.code([f"def {self.source.name}({given}):", "    BODY"], BODY=body)
        tree = ast.fix_missing_locations(ast.Module(definition, []))
        exec(syntax.compiled(tree, f.__code__.co_filename), self.scope)
        made = self.scope.pop(self.source.name)
        made.__module__, made.__qualname__ = f.__module__, f.__qualname__
        return made

    # Kernels with barriers

    def in_phases(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What is made once, and what a group does."""
        steady = {f"_k_{what}{d}" for what in ("size", "group_size", "groups", "group") for d in self.dims}
        steady |= set(self.source.parameters) - self.arrays - self.opaque
        moving = {f"_k_{what}{d}" for what in ("index", "local") for d in self.dims} | {"_k_valid", "_k_thread"}
        try:
            cut = phases.Cutter(body, steady, self.arrays | self.opaque, moving, self.is_barrier).cut()
        except phases.PhaseError as e:
            self.names.fail(e.node, str(e))
        made = []
        if cut.kept:
            for name, dtype in self.types_of(self.probe(body), cut.kept).items():
                if dtype is None:
                    raise UserFunctionError(
                        f"{self.source.name}() keeps {name} from one side of a barrier to the other, and it is "
                        f"no number of one type. Keep numbers, or an array of `{self.source.context}.private"
                        "(shape, dtype)`."
                    )
                self.scope[f"_k_dtype_{name}"] = dtype
                made.append(f"_k_kept_{name} = _k_empty(_k_threads, _k_dtype_{name})")
            made.insert(0, self.threads())
        return self.code(made), self.emitted(cut.items)

    def is_barrier(self, node: ast.AST) -> bool:
        return kernelsource.is_barrier(node, self.source.context)

    def probe(self, body: list[ast.stmt]) -> Any:
        """The statements in one piece, to infer the types of their variables."""
        known = [
            f"_k_{what}{d} = _k_size{d}" for what in ("index", "local", "group", "groups") for d in self.dims
        ]
        known += ["_k_thread = _k_size0", "_k_valid = _k_size0 > 0"]
        whole = [_NoBarriers(self.is_barrier).visit(copy.deepcopy(s)) for s in body]
        return self.defined([*self.code(known), *self.local_arrays(), *whole, *self.code(["return 0"])])

    def emitted(self, items: list[Item]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for item in items:
            if isinstance(item, Phase):
                out += self.thread_loop([*self.entering(item), *item.body, *self.leaving(item)])
            elif isinstance(item, Once):
                out.append(item.statement)
            else:
                out += self.controlled(item)
        return out

    def entering(self, phase: Phase) -> list[ast.stmt]:
        loads = [f"{name} = _k_get(_k_kept_{name}, _k_thread)" for name in sorted(phase.loads)]
        return [*self.code(loads), *(copy.deepcopy(s) for s in phase.again)]

    def leaving(self, phase: Phase) -> list[ast.stmt]:
        return self.code([f"_k_put(_k_kept_{name}, _k_thread, {name})" for name in sorted(phase.stores)])

    def controlled(self, item: Control) -> list[ast.stmt]:
        """A loop or branch the group takes as one."""
        node: Any = copy.copy(item.node)
        asked: list[ast.stmt] = []
        answers: dict[int, ast.expr] = {}
        for name, part, phase in item.agreed:
            asked += self.asked(name, part, phase)
            answers[id(part)] = at(part, ast.Name(name, ast.Load()))
        body, node.orelse = self.emitted(item.body), self.emitted(item.orelse)
        if isinstance(node, ast.For):
            count: Any = copy.copy(node.iter)
            count.args = [answers.get(id(a), a) for a in count.args]
            node.iter = count
        elif asked and isinstance(node, ast.While):  # asked anew each time round
            stop = ast.UnaryOp(ast.Not(), answers[id(node.test)])
            body = [*asked, at(node, ast.If(at(node, stop), [at(node, ast.Break())], [])), *body]
            node.test, asked = at(node, ast.Constant(True)), []
        else:
            node.test = answers.get(id(node.test), node.test)
        node.body = body or [at(node, ast.Pass())]
        return [*asked, node]

    def asked(self, name: str, part: ast.expr, phase: Phase) -> list[ast.stmt]:
        """What all threads of a group must find the same; else the function returns the line."""
        mine = at(part, ast.Call(at(part, ast.Name("_k_int", ast.Load())), [part], []))
        mine = at(part, ast.Assign([at(part, ast.Name("_k_mine", ast.Store()))], mine))
        compare = self.code(
            [
                f"if _k_first_of_{name}:",
                f"    {name} = _k_mine",
                f"    _k_first_of_{name} = False",
                f"elif {name} != _k_mine:",
                f"    return {part.lineno}",
            ]
        )
        before = self.code([f"{name} = 0", f"_k_first_of_{name} = True"])
        return [*before, *self.thread_loop([*self.entering(phase), mine, *compare])]


def _surroundings(f: Any) -> dict[str, Any]:
    """What a function sees around it: its module, and what it closes over."""
    scope = dict(f.__globals__)
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            raise UserFunctionError(f"{f.__name__}() closes over {name}, which has no value yet.") from None
    return scope


class _Holes(ast.NodeTransformer):
    """Puts statements where a hole's name stands."""

    def __init__(self, holes: dict[str, list[ast.stmt]]) -> None:
        self.holes = holes

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.holes:
            return self.holes[node.value.id] or at(node, ast.Pass())
        return node


class _NoBarriers(ast.NodeTransformer):
    def __init__(self, is_barrier: Callable[[ast.AST], bool]) -> None:
        self.is_barrier = is_barrier

    def visit_Expr(self, node: ast.Expr) -> Any:
        return at(node, ast.Pass()) if self.is_barrier(node) else node
