"""No public signature says `Any` where something is known: each one that does stands here, with the reason.

What is looked at is what checkers read: the stubs of `mb`, `mb.linalg` and `mb.fft`, and elsewhere the sources.
"""

import functools
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any, get_overloads

import pytest

import mirabelle as mb

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
stubs = pytest.importorskip("docs.stubs")

STUBBED = {"": mb, "linalg": mb.linalg, "fft": mb.fft}
SPACES = {
    name: importlib.import_module(f"mirabelle.{name}")
    for name in [
        "autodiff",
        "compiling",
        "dg",
        "distributed",
        "ext",
        "meshdata",
        "random",
        "types",
        "lib",
        "lib.stride_tricks",
    ]
}
SPECIAL = ("__init__", "__call__", "__getitem__", "__setitem__", "__matmul__", "__iter__", "__len__")

# Where nothing is known, and why.
UNKNOWN = {
    "nested lists, dictionaries and arrays of any depth": "block:arrays save:x autodiff.value:x",
    "what has a buffer: Python has a type for it from 3.12 on": "frombuffer:buffer",
    "the array standard leaves it to libraries": "AbstractArray.to_device:stream",
    "numbers of Python or NumPy, of the kind that the dtype says": """
        AbstractArray.item:return AbstractArray.tolist:return Fill.value:return Fill.known:return
        types.Dual.flags:return autodiff.value:return""",
    "what another function returns, or stands for": """
        vectorize.__call__:return compiling.Compiled.__call__:return
        compiling.LoadedProgram.__call__:return compiling.Program.run:return
        compiling.Program.run:composed compiling.Program.resized:result
        compiling.LoadedProgram.__init__:graph compiling.axis_roles:of compiling.Decision.option:return
        meshdata.Dofs.known:return dg.CompressibleNavierStokes.__init__:viscosity""",
    "any object that can be pickled": """
        distributed.Communicator.allgather_object:x distributed.Communicator.bcast_object:x
        distributed.Communicator.bcast_object:return distributed.Communicator.settle:x""",
    "memory, of the host or of a card": """
        distributed.Communicator.allgather:mine distributed.Communicator.broadcast:data
        distributed.Communicator.allreduce:data""",
    "of a package that need not be there": """
        CSR.to_scipy:return distributed.connect:client distributed.mpi_communicator:comm
        dg.Checkpoint.__init__:on_signal meshdata.DividedMatrix.to_scipy:return
        meshdata.DividedMatrix.to_cupy:return meshdata.Matrix.to_scipy:return
        meshdata.Matrix.to_cupy:return meshdata.from_petsc:x meshdata.from_petsc:return
        meshdata.to_petsc:comm meshdata.to_petsc:return meshdata.physical_groups:file
        meshdata.read_mesh_file:return meshdata.space:family types.GPUArray.driver:return""",
    "the functions of `dispatch`, which knows no arrays": """
        ext.assign:dest ext.assign:value ext.assign:return ext.lower:x ext.lower:leaf ext.lower:return
        ext.show:x ext.tree:x""",
    "one thing, or a tuple of them": """
        meshdata.DividedMatrix.dofs:return meshdata.Matrix.dofs:return meshdata.Axis.__init__:components
        meshdata.AxisTree.offset:return meshdata.TreeArray.offset:return
        meshdata.Points.__init__:component meshdata.Points.__init__:division meshdata.Points.__init__:of
        meshdata.Region.__init__:name""",
    "a class that is made while a program runs": "types.GPUArray.on:return",
    "numbers and arrays of Numba's, inside of a kernel": """
        types.KernelContext.index:return types.KernelContext.local:return
        types.KernelContext.group:return types.KernelContext.size:return
        types.KernelContext.group_size:return types.KernelContext.groups:return
        types.KernelContext.shared:return types.KernelContext.private:return
        types.KernelContext.atomic_add:a types.KernelContext.atomic_add:return
        types.KernelContext.atomic_max:a types.KernelContext.atomic_max:return
        types.KernelContext.atomic_min:a types.KernelContext.atomic_min:return
        types.KernelContext.atomic_exchange:a types.KernelContext.atomic_exchange:return
        types.KernelContext.atomic_cas:a types.KernelContext.atomic_cas:return""",
    "a field or a property, as a subclass likes": "dg.Equations.names:return",
}


def signatures():
    """(name, signature) of each public function, and of each public method of a public class, once."""
    from test_stubs import signatures as stubbed

    seen = set()
    for space, module in STUBBED.items():
        functions = stubbed(space)
        for name, of in functions.items():
            if not name.startswith("_"):
                yield from ((f"{space}.{name}".lstrip("."), s) for s in of)
        for name in module.__all__:
            if isinstance(getattr(module, name), type):
                yield from of_class(name, getattr(module, name), seen)
    for space, module in SPACES.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if name in stubbed("") or name in stubbed("linalg"):
                continue
            if isinstance(thing, type):
                yield from of_class(f"{space}.{name}", thing, seen)
            elif callable(thing) and id(thing) not in seen and is_ours(thing):
                seen.add(id(thing))
                yield f"{space}.{name}", written(thing)


def of_class(name, kind, seen):
    if kind in seen or not is_ours(kind):
        return
    seen.add(kind)
    for attribute, value in vars(kind).items():
        f = function_of(value)
        if (attribute.startswith("_") and attribute not in SPECIAL) or f is None or not is_ours(f):
            continue
        if get_overloads(f):  # (checkers read those)
            continue
        if not f.__qualname__.startswith(f"{kind.__name__}."):  # (a simulated card has put its own there)
            continue
        signature = written(f)
        first, *others = [*signature.parameters.values(), None]
        kept = [p for p in (first, *others) if p is not None]
        if not isinstance(value, staticmethod):
            kept = kept[1:]
        yield f"{name}.{attribute}", signature.replace(parameters=kept)


def function_of(value):
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    value = getattr(value, "__func__", value)
    return value if inspect.isfunction(value) else None


def is_ours(thing):
    return str(getattr(thing, "__module__", "")).startswith("mirabelle")


def written(f):
    """The signature as it is written."""
    f = f.core.prototype if hasattr(f, "core") else f
    f = inspect.unwrap(f)
    if not inspect.isfunction(f):
        return inspect.signature(f)
    parameters = stubs._free(f)
    return inspect.Signature(
        parameters, return_annotation=f.__annotations__.get("return", inspect.Signature.empty)
    )


def unsaid(signature):
    """The parameters whose annotation is `Any`, or missing; `return` for the result."""
    for p in [*signature.parameters.values(), None]:
        if p is not None and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        said = signature.return_annotation if p is None else p.annotation
        if said in ("Any", "Any | None", "None | Any", Any, inspect.Signature.empty, ""):
            yield "return" if p is None else p.name


def counted():
    total, found = 0, {}
    for name, signature in signatures():
        total += 1 + len(signature.parameters)
        for word in unsaid(signature):
            found[f"{name}:{word}"] = signature
    return total, found


def test_any_is_said_only_where_nothing_is_known():
    total, found = counted()
    allowed = {name for names in UNKNOWN.values() for name in names.split()}
    print(f"{len(found)} of {total} parameters and results are `Any`")
    assert total > 4000
    more = " ".join(sorted(set(found) - allowed))
    assert more == "", "say what is known of them, or why nothing is"
    less = " ".join(sorted(allowed - set(found)))
    assert less == "", "they are known now"


if __name__ == "__main__":
    total, found = counted()
    print("\n".join(found))
    print(f"{len(found)} of {total} parameters and results are `Any`")
