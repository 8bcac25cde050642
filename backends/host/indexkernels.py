"""Index-space kernels on the host: one Numba function that runs a range of groups.

The kernel's own statements stand in it with the lines they have in the user's file; what belongs
to the context became names, and the threads of a group became loops, one for each phase.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.kernels import Kernel, launcher
from mirabelle.backends.codegen import kernelsource, phases
from mirabelle.backends.codegen.kernelsource import KernelSource
from mirabelle.backends.codegen.phases import Control, Item, Once, Phase
from mirabelle.backends.host import threads
from mirabelle.dispatch.errors import DeviceError, UserFunctionError
from mirabelle.dispatch.settings import settings


@launcher(HostArray)
def launch(kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]) -> None:
    """Run a kernel over an index space: groups over threads, the threads of a group in turn."""
    source = kernel.source
    key = (len(shape), kernel.boundscheck, *map(_kind, arguments))
    run = kernel.compiled.get(key)
    if run is None:
        run = kernel.compiled[key] = _Compiled(kernel, len(shape), arguments)
    if not source.grouped:
        group = _rows(shape)
    count = math.prod(-(-n // g) for n, g in zip(shape, group, strict=True))
    pieces = 1
    # A thread does more than an elementwise operation does for an element, as far as one can know.
    if settings.num_threads > 1 and count > 1 and math.prod(shape) >= settings.thread_size >> 4:
        pieces = min(count, settings.num_threads * 8)
    edges = [count * i // pieces for i in range(pieces + 1)]
    threads.run_all(
        [functools.partial(run, a, b, *shape, *group, *arguments) for a, b in zip(edges, edges[1:], strict=False)]
    )


def _kind(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_kind, x))
    return (x.dtype, x.ndim) if isinstance(x, np.ndarray) else type(x)


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Groups for a kernel to which they make no difference: long in the last dimension."""
    group, room = [], 4096
    for n in reversed(shape):
        group.append(max(1, min(n, room)))
        room //= group[-1]
    return tuple(reversed(group))


class _Compiled:
    """A kernel for arguments of certain kinds: a range of groups → 0."""

    def __init__(self, kernel: Kernel, ndim: int, arguments: list[Any]) -> None:
        from mirabelle.backends.host import scalarloops

        self.kernel = kernel
        self.sites: list[tuple[str, int]] = []
        made = _Host(kernel, ndim, arguments, self.sites).function()
        self.dispatcher = scalarloops.engine(made, {})

    def __call__(self, *args: Any) -> None:
        try:
            line = self.dispatcher(*args)
        except IndexError as e:
            self.explain_index(e)
            raise
        except Exception as e:
            from mirabelle.backends.host import scalarloops

            arguments = args[len(args) - len(self.kernel.source.parameters) :]
            better = scalarloops.explained(e, self.kernel, arguments)
            if better is None:
                raise
            raise better from None
        if line:
            raise diverged(self.kernel.source, line)

    def explain_index(self, e: IndexError) -> None:
        if len(e.args) >= 5 and self.sites:
            site, axis, index, size, *thread = e.args
            name, line = self.sites[site]
            raise out_of_range(self.kernel.source, name, axis, index, size, tuple(thread), line) from None


def diverged(source: KernelSource, line: int) -> DeviceError:
    return DeviceError(
        f"{source.name}(): the threads of a group part at line {line}, around a barrier: some go one way and "
        "some the other, so they never meet there. Make the condition the same for all of a group (from "
        f"sizes, {source.context}.group(), numbers passed in), or move the barrier out of it."
    )


def out_of_range(
    source: KernelSource, name: str, axis: int, index: int, size: int, thread: tuple[int, ...], line: int
) -> IndexError:
    shown = thread[0] if len(thread) == 1 else thread
    cure = (
        "Negative indices do not count from the end in a kernel."
        if index < 0
        else "Launch over fewer indices, or guard the access: `if i < n:`."
    )
    return IndexError(
        f"{source.name}(), thread {shown}, line {line}: index {index} is out of bounds for axis {axis} of "
        f"{name}, which has size {size}. {cure}"
    )


# Generating the function


class _Host:
    """Makes the host's function of a kernel, for a number of dimensions and kinds of arguments."""

    def __init__(self, kernel: Kernel, ndim: int, arguments: Sequence[Any], sites: list[tuple[str, int]]) -> None:
        self.kernel = kernel
        self.source = kernel.source
        self.ndim = ndim
        self.arguments = arguments
        self.line = self.source.function.__code__.co_firstlineno
        self.arrays = {
            name
            for name, x in zip(self.source.parameters, arguments, strict=True)
            if isinstance(x, np.ndarray)
        } | set(self.source.locals)
        self.sites = sites if kernel.boundscheck else None
        self.scope = self.namespace()

    def namespace(self) -> dict[str, Any]:
        """The globals of the generated function: the user's, and what stands for the context."""
        from mirabelle.backends.host import elements

        f = self.source.function
        scope = dict(f.__globals__)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            scope[name] = cell.cell_contents
        scope |= elements.names()
        scope["_k_empty"] = np.empty
        for array in self.source.locals.values():
            scope[f"_k_dtype_{array.name}"] = array.dtype
        return scope

    def fail(self, node: ast.AST, why: str) -> NoReturn:
        raise UserFunctionError(f"{self.source.name}() cannot be compiled: line {getattr(node, 'lineno', 0)}: {why}.")

    def function(self) -> Any:
        body = _Names(self).rewritten()
        if self.source.has_barrier:
            statements = self.in_phases(body)
        else:
            statements = self.thread_loop(body)
        return self.defined(self.frame(self.local_arrays(shared=True) + self.local_arrays(shared=False), statements))

    # Pieces of code

    def dims(self) -> range:
        return range(self.ndim)

    def code(self, text: str, **holes: list[ast.stmt]) -> list[ast.stmt]:
        """Parsed text, with statements put where a hole's name stands as a statement."""
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for attribute in ("lineno", "end_lineno"):
                if hasattr(node, attribute):
                    setattr(node, attribute, self.line)
        return _Holes(holes).visit(tree).body  # type: ignore[no-any-return]

    def frame(self, before: list[ast.stmt], groups: list[ast.stmt]) -> list[ast.stmt]:
        """The function around what a group does."""
        start = []
        rest = "_k_number"
        for d in reversed(self.dims()):
            start.append(f"_k_group{d} = {rest} % _k_groups{d}" if d else f"_k_group{d} = {rest}")
            if d:
                start.append(f"_k_rest{d} = {rest} // _k_groups{d}")
                rest = f"_k_rest{d}"
        for d in self.dims():
            start.append(f"_k_first{d} = _k_group{d} * _k_group_size{d}")
            extent = f"_k_group_size{d}"
            if not self.kernel.padded:
                extent = f"min({extent}, _k_size{d} - _k_first{d})"
            start.append(f"_k_extent{d} = {extent}")
        counts = [
            f"_k_groups{d} = (_k_size{d} + _k_group_size{d} - 1) // _k_group_size{d}" for d in self.dims()
        ]
        return self.code(
            "\n".join(
                [*counts, "BEFORE", "for _k_number in range(_k_from, _k_to):", *(f"    {s}" for s in start)]
                + ["    GROUPS", "return 0"]
            ),
            BEFORE=before,
            GROUPS=groups,
        )

    def local_arrays(self, shared: bool, keep: bool = False) -> list[ast.stmt]:
        made = []
        for array in self.source.locals.values():
            if array.shared == shared:
                # Each thread's own, where it lives through several phases.
                many = "_k_threads, " if self.source.has_barrier and not shared else ""
                sizes = "".join(f"{n}, " for n in array.shape)
                made.append(f"{array.name} = _k_empty(({many}{sizes}), _k_dtype_{array.name})")
        if any("_k_threads" in m for m in made):
            made.insert(0, self.threads())
        return self.code("\n".join(made))

    def threads(self) -> str:
        return "_k_threads = " + " * ".join(f"_k_group_size{d}" for d in self.dims())

    def thread_loop(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Run statements for each thread of a group."""
        lines, pad = [], ""
        used = set().union(*(phases.names(s) for s in body)) if body else set()
        for d in self.dims():
            lines.append(f"{pad}for _k_local{d} in range(_k_extent{d}):")
            pad += "    "
            lines.append(f"{pad}_k_index{d} = _k_first{d} + _k_local{d}")
        if "_k_thread" in used:
            number = "_k_local0"
            for d in self.dims()[1:]:
                number = f"({number}) * _k_group_size{d} + _k_local{d}"
            lines.append(f"{pad}_k_thread = {number}")
        if "_k_valid" in used:
            inside = " and ".join(f"_k_index{d} < _k_size{d}" for d in self.dims())
            lines.append(f"{pad}_k_valid = {inside if self.kernel.padded else True}")
        return self.code("\n".join([*lines, f"{pad}BODY"]), BODY=without_returns(body))

    # Kernels with barriers

    def in_phases(self, body: list[ast.stmt]) -> list[ast.stmt]:
        steady = {f"_k_{what}{d}" for what in ("size", "group_size", "groups", "group") for d in self.dims()}
        coordinates = {f"_k_{what}{d}" for what in ("index", "local") for d in self.dims()} | {"_k_valid", "_k_thread"}
        uniform = steady | {p for p in self.source.parameters if p not in self.arrays}
        cutter = phases.Cutter(body, uniform, self.arrays, coordinates, self.is_barrier)
        try:
            cut = cutter.cut()
        except phases.PhaseError as e:
            self.fail(e.node, str(e))
        kept = []
        if cut.kept:
            dtypes = self.types_of(body, cut.kept)
            kept.append(self.threads())
            for name in cut.kept:
                self.scope[f"_k_dtype_{name}"] = dtypes[name]
                kept.append(f"_k_kept_{name} = _k_empty(_k_threads, _k_dtype_{name})")
        return self.code("\n".join(kept)) + self.emitted(cut.items)

    def is_barrier(self, node: ast.AST) -> bool:
        return kernelsource.is_barrier(node, self.source.context)

    def emitted(self, items: list[Item]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for item in items:
            if isinstance(item, Phase):
                out += self.thread_loop(self.entering(item) + item.body + self.leaving(item))
            elif isinstance(item, Once):
                out.append(item.statement)
            else:
                out += self.controlled(item)
        return out

    def entering(self, phase: Phase) -> list[ast.stmt]:
        loads = [f"{name} = _k_get(_k_kept_{name}, _k_thread)" for name in sorted(phase.loads)]
        return [copy.deepcopy(s) for s in phase.again] + self.code("\n".join(loads))

    def leaving(self, phase: Phase) -> list[ast.stmt]:
        return self.code("\n".join(f"_k_put(_k_kept_{name}, _k_thread, {name})" for name in sorted(phase.stores)))

    def controlled(self, item: Control) -> list[ast.stmt]:
        """A loop or branch of the group; what threads must agree on is asked of each."""
        asked: list[ast.stmt] = []
        node: Any = copy.copy(item.node)
        replaced: dict[int, str] = {}
        for name, part, phase in item.agreed:
            self.scope["_k_int"] = int
            asked += self.code(f"{name} = 0\n{name}_known = False")
            question = self.code(
                f"if not {name}_known:\n    {name} = MINE\n    {name}_known = True\n"
                f"elif {name} != MINE:\n    return {item.node.lineno}\n"
            )
            mine = ast.Call(ast.Name("_k_int", ast.Load()), [copy.deepcopy(part)], [])
            question = [_Put("MINE", ast.copy_location(mine, part)).visit(q) for q in question]
            asked += self.thread_loop(self.entering(phase) + question, plain=True)
            replaced[id(part)] = name
        if isinstance(node, ast.For):
            node.iter = copy.copy(node.iter)
            node.iter.args = [_agreed(a, replaced) for a in node.iter.args]
        elif item.agreed and isinstance(node, ast.While):
            test = _agreed(node.test, replaced)
            leave = self.code("if not ASKED:\n    break")
            leave = [_Put("ASKED", test).visit(s) for s in leave]
            node.test = ast.copy_location(ast.Constant(True), node.test)
            node.body = [*asked, *leave, *self.emitted(item.body)]
            node.orelse = []
            return [node]
        else:
            node.test = _agreed(node.test, replaced)
        node.body = self.emitted(item.body) or [ast.Pass()]
        node.orelse = self.emitted(item.orelse)
        return [*asked, node]

    def types_of(self, body: list[ast.stmt], wanted: list[str]) -> dict[str, np.dtype]:
        """The dtypes of variables, as Numba's type inference finds them."""
        from mirabelle.backends.host import scalarloops

        coordinates = [
            f"_k_{what}{d} = _k_size{d}" for what in ("index", "local", "group", "groups") for d in self.dims()
        ]
        lines = [*coordinates, "_k_thread = _k_size0", "_k_valid = _k_size0 > 0", self.threads()]
        whole = [s for s in (self.without_barriers(copy.deepcopy(s)) for s in body) if s is not None]
        local = self.local_arrays(shared=True) + self.local_arrays(shared=False)
        probe = self.defined(self.code("\n".join(lines)) + local + without_returns(whole) + self.code("return 0"))
        sizes = [1] * (2 + 2 * self.ndim)
        try:
            found = scalarloops.inferred(probe, [*sizes, *self.arguments])
        except Exception as e:
            better = scalarloops.explained(e, self.kernel, self.arguments)
            if better is None:
                raise
            raise better from None
        out = {}
        for name in wanted:
            dtype = scalarloops.number_dtype(found.get(name, []))
            if dtype is None:
                raise UserFunctionError(
                    f"{self.source.name}() keeps {name} across a barrier, and it is not a number of one type "
                    f"({', '.join(map(str, found.get(name, [])))}). Keep numbers, or use "
                    f"`{self.source.context}.private(shape, dtype)`."
                )
            out[name] = dtype
        return out

    def without_barriers(self, s: ast.stmt) -> Any:
        return _NoBarriers(self).visit(s)

    def defined(self, body: list[ast.stmt]) -> Any:
        """The function of these statements."""
        f = self.source.function
        sizes = [f"_k_{what}{d}" for what in ("size", "group_size") for d in self.dims()]
        given = ["_k_from", "_k_to", *sizes, *self.source.parameters]
        (definition,) = self.code(f"def {self.source.name}({', '.join(given)}):\n    BODY", BODY=body)
        tree = ast.fix_missing_locations(ast.Module([definition], []))
        exec(compile(tree, f.__code__.co_filename, "exec"), self.scope)
        made = self.scope.pop(self.source.name)
        made.__module__ = f.__module__
        made.__qualname__ = f.__qualname__
        return made


def _agreed(part: ast.expr, replaced: dict[int, str]) -> ast.expr:
    name = replaced.get(id(part))
    return part if name is None else ast.copy_location(ast.Name(name, ast.Load()), part)


class _Holes(ast.NodeTransformer):
    """Puts statements where a hole's name stands."""

    def __init__(self, holes: dict[str, list[ast.stmt]]) -> None:
        self.holes = holes

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.holes:
            return self.holes[node.value.id] or ast.copy_location(ast.Pass(), node)
        return node


class _Put(ast.NodeTransformer):
    """Puts an expression where a name stands."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> Any:
        return copy.deepcopy(self.value) if node.id == self.name else node


class _NoBarriers(ast.NodeTransformer):
    def __init__(self, host: _Host) -> None:
        self.host = host

    def visit_Expr(self, node: ast.Expr) -> Any:
        return ast.copy_location(ast.Pass(), node) if self.host.is_barrier(node) else node


class _Names(ast.NodeTransformer):
    """The kernel's statements with what belongs to the context as names and calls."""

    def __init__(self, host: _Host) -> None:
        self.host = host
        self.source = host.source
        self.k = host.source.context
        self.temporaries = 0
        self.before: list[ast.stmt] = []

    def rewritten(self) -> list[ast.stmt]:
        body = [copy.deepcopy(s) for s in self.source.body]
        body = [s for s in body if kernelsource.declared(s, self.k) is None]
        # A parameter that is assigned is a variable of each thread, not of all.
        assigned = sorted(phases.stored_names(body) & set(self.source.parameters))
        for name in assigned:
            body = [_Rename(name, f"_k_own_{name}").visit(s) for s in body]
        first = self.host.code("\n".join(f"_k_own_{name} = {name}" for name in assigned))
        return first + self.block(body)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in statements:
            made = self.visit(s)
            out += made if isinstance(made, list) else [made]
        return out

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for part in ("body", "orelse"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                setattr(node, part, self.block(inner))
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse") and isinstance(value, list):
                continue
            if isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
        return node

    # The context

    def coordinate(self, what: str, d: int, node: ast.AST) -> ast.expr:
        n = self.host.ndim
        if not -n <= d < n:
            self.host.fail(
                node, f"{self.k}.{what}({d}) asks for a dimension that an index space of {n} does not have"
            )
        return ast.copy_location(ast.Name(f"_k_{what}{d % n}", ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> Any:
        if kernelsource.is_call(node, self.k, *kernelsource.COORDINATES):
            assert isinstance(node.func, ast.Attribute)
            what = node.func.attr
            if node.args:
                assert isinstance(node.args[0], ast.Constant)
                return self.coordinate(what, node.args[0].value, node)
            parts = [self.coordinate(what, d, node) for d in self.host.dims()]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), node)
        if kernelsource.is_call(node, self.k, *kernelsource.ATOMICS):
            assert isinstance(node.func, ast.Attribute) and isinstance(node.args[0], ast.Name)
            array, index, *values = node.args
            own = node.args[0].id in self.source.locals
            name = node.func.attr.replace("atomic", "_k_own" if own else "_k_atomic")
            place = self.element(array, self.visit(index), node)
            return self.call(name, [array, place, *map(self.visit, values)], node)
        if kernelsource.is_call(node, self.k, "barrier"):
            return node
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr == "valid" and isinstance(node.value, ast.Name) and node.value.id == self.k:
            return ast.copy_location(ast.Name("_k_valid", ast.Load()), node)
        return self.generic_visit(node)

    # Elements

    def call(self, name: str, args: list[ast.expr], at: ast.AST) -> ast.Call:
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), at), args, []), at)

    def is_element(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.host.arrays
        )

    def element(self, array: Any, index: ast.expr, at: ast.AST) -> ast.expr:
        """The index of an element, with the thread in front where each thread has its own array."""
        local = self.source.locals.get(array.id)
        if self.host.sites is not None:
            index = self.checked(array, index, at)
        if local is not None and not local.shared and self.source.has_barrier:
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            if not isinstance(index, ast.Tuple) and len(local.shape) > 1:
                self.host.fail(at, f"{array.id} is indexed in full: `{array.id}[i, j]`")
            thread = ast.copy_location(ast.Name("_k_thread", ast.Load()), at)
            return ast.copy_location(ast.Tuple([thread, *parts], ast.Load()), at)
        return index

    def checked(self, array: Any, index: ast.expr, at: ast.AST) -> ast.expr:
        return index

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not self.is_element(node) or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        index = self.element(node.value, self.visit(node.slice), node)
        return self.access("get", node.value, index, [], node)

    def access(self, what: str, array: ast.expr, index: ast.expr, values: list[ast.expr], at: Any) -> ast.Call:
        if self.host.sites is None:
            return self.call(f"_k_{what}", [array, index, *values], at)
        assert isinstance(array, ast.Name)
        self.host.sites.append((array.id, at.lineno))
        site = ast.copy_location(ast.Constant(len(self.host.sites) - 1), at)
        thread = ast.Tuple(
            [ast.Name(f"_k_index{d}", ast.Load()) for d in self.host.dims()], ast.Load()
        )
        return self.call(f"_k_{what}_checked", [array, index, *values, site, ast.copy_location(thread, at)], at)

    def put(self, target: ast.Subscript, value: ast.expr) -> ast.stmt:
        index = self.element(target.value, self.visit(target.slice), target)
        made = self.access("put", target.value, index, [value], target)
        return ast.copy_location(ast.Expr(made), target)

    def visit_Assign(self, node: ast.Assign) -> Any:
        stores = any(self.is_element(n) for t in node.targets for n in ast.walk(t))
        value = self.visit(node.value)
        if not stores:
            node.value = value
            pairs = self.separate(node)
            return [self.generic_targets(p) for p in pairs]
        if len(node.targets) == 1 and self.is_element(node.targets[0]):
            return self.put(node.targets[0], value)  # type: ignore[arg-type]
        # Several targets: the values first, then each element.
        out: list[ast.stmt] = []
        for target in node.targets:
            name = self.temporary(node)
            if not out:
                out.append(self.bind(name, value, node))
                whole = name
            out += self.unpack(target, whole, node)
        return out

    def temporary(self, at: ast.AST) -> str:
        self.temporaries += 1
        return f"_k_value{self.temporaries}"

    def bind(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), at)], value), at)

    def unpack(self, target: ast.expr, name: str, at: ast.AST) -> list[ast.stmt]:
        value = ast.copy_location(ast.Name(name, ast.Load()), at)
        if self.is_element(target):
            return [self.put(target, value)]  # type: ignore[arg-type]
        if isinstance(target, (ast.Tuple, ast.List)):
            out = []
            for i, part in enumerate(target.elts):
                item = ast.Subscript(value, ast.copy_location(ast.Constant(i), at), ast.Load())
                inner = self.temporary(at)
                out += [self.bind(inner, ast.copy_location(item, at), at), *self.unpack(part, inner, at)]
            return out
        return [ast.copy_location(ast.Assign([target], value), at)]

    def separate(self, node: ast.Assign) -> list[ast.Assign]:
        """`i, j = a, b` as two assignments, where that is the same."""
        target, value = node.targets[0], node.value
        if (
            len(node.targets) == 1
            and isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
            and all(isinstance(t, ast.Name) for t in target.elts)
            and not phases.names(target) & phases.names(value)
        ):
            return [
                ast.copy_location(ast.Assign([t], v), node)
                for t, v in zip(target.elts, value.elts, strict=True)
            ]
        return [node]

    def generic_targets(self, node: ast.Assign) -> ast.stmt:
        node.targets = [self.visit(t) for t in node.targets]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        if not self.is_element(node.target):
            node.value = value
            node.target = self.visit(node.target)
            return node
        assert isinstance(node.target, ast.Subscript)
        out: list[ast.stmt] = []
        index = self.visit(node.target.slice)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not all(isinstance(p, (ast.Name, ast.Constant)) for p in parts):
            # Worked out once, as Python does.
            name = self.temporary(node)
            out.append(self.bind(name, index, node))
            index = ast.copy_location(ast.Name(name, ast.Load()), node)
            if isinstance(node.target.slice, ast.Tuple):
                items = [
                    ast.Subscript(index, ast.copy_location(ast.Constant(i), node), ast.Load())
                    for i in range(len(parts))
                ]
                index = ast.copy_location(ast.Tuple([ast.copy_location(i, node) for i in items], ast.Load()), node)
        place = self.element(node.target.value, index, node)
        old = self.access("get", node.target.value, place, [], node)
        new = ast.copy_location(ast.BinOp(old, node.op, value), node)
        again = copy.deepcopy(place)
        out.append(ast.copy_location(ast.Expr(self.access("put", node.target.value, again, [new], node)), node))
        return out


class _Rename(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self.old:
            node.id = self.new
        return node


def without_returns(block: list[ast.stmt]) -> list[ast.stmt]:
    """`return` ends a thread, and the loop over threads goes on: a flag skips what is left."""
    if not any(isinstance(n, ast.Return) for s in block for n in ast.walk(s)):
        return block
    at = block[0]

    def name(context: ast.expr_context) -> ast.expr:
        return ast.copy_location(ast.Name("_k_done", context), at)

    def set_to(value: bool) -> ast.stmt:
        constant = ast.copy_location(ast.Constant(value), at)
        return ast.copy_location(ast.Assign([name(ast.Store())], constant), at)

    def lower(statements: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(statements):
            if isinstance(s, ast.Return):
                out.append(set_to(True))
                if in_loop:
                    out.append(ast.copy_location(ast.Break(), s))
                return out
            out.append(s)
            if any(isinstance(n, ast.Return) for n in ast.walk(s)):
                loops = isinstance(s, (ast.For, ast.While))
                s.body = lower(s.body, in_loop or loops)  # type: ignore[attr-defined]
                s.orelse = lower(s.orelse, in_loop)  # type: ignore[attr-defined]
                rest = lower(statements[i + 1 :], in_loop)
                if in_loop:
                    out.append(ast.copy_location(ast.If(name(ast.Load()), [ast.copy_location(ast.Break(), s)], []), s))
                    return out + rest
                if rest:
                    test = ast.copy_location(ast.UnaryOp(ast.Not(), name(ast.Load())), s)
                    out.append(ast.copy_location(ast.If(test, rest, []), s))
                return out
        return out

    return [set_to(False), *lower(block, False)]


Runner = Callable[..., int]
