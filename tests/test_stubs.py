"""What checkers of types read (`mirabelle/*.pyi`) is current, and true of calls and results of the suite.

What checkers make of it, `make types` asks: they check the programs in tests/typed.
"""

import ast
import builtins
import functools
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirabelle as mb

P = inspect.Parameter
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
stubs = pytest.importorskip("docs.stubs")


@pytest.mark.parametrize("space", stubs.SPACES)
def test_stubs_are_current(space):
    path = ROOT / "mirabelle" / f"{stubs.SPACES[space]}.pyi"
    assert path.read_text() == stubs.stub(space), "run `python -m docs.stubs`"


@pytest.mark.parametrize("space", stubs.SPACES)
def test_each_public_name_stands_in_the_stub(space):
    tree = ast.parse(stubs.stub(space))
    there = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            there |= {a.asname for a in node.names if a.asname and a.asname == a.name}
        elif isinstance(node, ast.AnnAssign):
            there.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            there.add(node.name)
    module = importlib.import_module(f"mirabelle.{space}".rstrip("."))
    assert {n for n in there if not n.startswith("_")} >= {n for n in module.__all__ if not n.startswith("_")}
    # (No helper of the stub looks like a name of the namespace.)
    assert {n for n in there if not n.startswith("_") and not hasattr(module, n)} == set()


@pytest.mark.parametrize("space", stubs.SPACES)
def test_each_name_in_an_annotation_is_known(space):
    tree = ast.parse(stubs.stub(space))
    known = {
        *dir(builtins),
        *(n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))),
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            known |= {a.asname or a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert used <= known, "name its module in HOMES of docs/stubs.py"


@pytest.mark.parametrize("name", stubs.OVERLOADS)
def test_overloads_have_all_parameters(name):
    space, _, short = name.rpartition(".")
    f = getattr(importlib.import_module(f"mirabelle.{space}".rstrip(".")), short)
    said = {p for s in signatures(space)[short] for p in s.parameters}
    positional = ("VAR_KEYWORD", "VAR_POSITIONAL", "POSITIONAL_ONLY")
    there = {p.name for p in inspect.signature(f).parameters.values() if p.kind.name not in positional}
    assert there <= said


# What the stub says, as signatures


@functools.cache
def signatures(space):
    """By name, the signatures of functions: `inspect.Signature` whose annotations are texts."""
    found, classes, variables = {}, {}, {}
    for node in ast.parse(stubs.stub(space)).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(signature_of(node))
        elif isinstance(node, ast.ClassDef):
            calls = [b for b in node.body if isinstance(b, ast.FunctionDef) and b.name == "__call__"]
            bases = [ast.unparse(b) for b in node.bases]
            inherited = [s for b in bases for s in classes.get(b, [])]
            classes[node.name] = [signature_of(c, skip=1) for c in calls] or inherited
        elif isinstance(node, ast.AnnAssign):
            variables[node.target.id] = ast.unparse(node.annotation)
    return found | {n: classes[c] for n, c in variables.items() if c in classes}


def signature_of(node, skip=0):
    a = node.args
    said = []
    positional = [*a.posonlyargs, *a.args]
    for i, p in enumerate(positional):
        kind = (
            inspect.Parameter.POSITIONAL_ONLY
            if i < len(a.posonlyargs)
            else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        has = i >= len(positional) - len(a.defaults)
        said.append(parameter(p, kind, ... if has else P.empty))
    if a.vararg:
        said.append(parameter(a.vararg, P.VAR_POSITIONAL))
    for p, default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        said.append(parameter(p, P.KEYWORD_ONLY, ... if default else P.empty))
    if a.kwarg:
        said.append(parameter(a.kwarg, P.VAR_KEYWORD))
    return inspect.Signature(said[skip:], return_annotation=ast.unparse(node.returns))


def parameter(p, kind, default=P.empty):
    return inspect.Parameter(
        p.arg, kind, default=default, annotation=ast.unparse(p.annotation) if p.annotation else ""
    )


def is_of(x, said):
    """Is a value of the type that a text says? (Of types it does not know, their name.)"""
    if (
        said in ("Any", "_R")
        or said.endswith("| Any")
        or said.startswith(("_CompiledFunction", "_JittedFunction"))
    ):
        return True
    if said in ("AbstractArray", "_Made"):
        return isinstance(x, mb.AbstractArray)
    outer, _, inner = said.partition("[")
    if outer in ("tuple", "list"):
        parts = [p.strip() for p in inner[:-1].split(",")]
        if parts[-1] == "...":
            parts = parts[:1] * len(x)
        elif outer == "list":
            parts = parts * len(x)
        return type(x).__name__ == outer and all(is_of(v, p) for v, p in zip(x, parts, strict=True))
    known = {"builtins.bool": bool, "None": type(None), "np.dtype": np.dtype, "npt.NDArray": np.ndarray}
    if outer in known:
        return isinstance(x, known[outer])
    name = outer.rpartition(".")[2]
    return name in [c.__name__ for c in type(x).__mro__] or (name == "type" and isinstance(x, type))


def takes(said, x):
    """Does the annotation of a parameter take a value? What it says of arrays, numbers, texts and None."""
    if (
        said in ("Any", "", "_Ts", "Unpack[_Ts]")
        or "Callable" in said
        or "ArrayLike" in said
        or said == "Index"
        or "DTypeLike" in said
    ):
        return x is not None or "None" in said or "Any" in said or "DTypeLike" in said or "ArrayLike |" in said
    if x is None:
        return "None" in said or said in ("Axis", "Out")
    if isinstance(x, str):
        return "str" in said or "Literal" in said or "Device" in said or said.startswith("File")
    if isinstance(x, mb.AbstractArray):
        dense = "DenseArray" in said and isinstance(x, mb.types.DenseArray)
        return dense or said in ("Out", "_Made", "_R", "AbstractArray")
    if isinstance(x, bool):
        return repr(x) in said if "Literal" in said else "bool" in said
    if isinstance(x, (int, np.integer)):
        return bool(re.search(r"\bint\b|SupportsIndex|float|complex|Axis|Shape", said))
    if isinstance(x, float):
        return "float" in said or "complex" in said
    return True


def fits(signature, args, kwargs):
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    for name, x in bound.arguments.items():
        p = signature.parameters[name]
        given = x if p.kind is p.VAR_POSITIONAL else x.values() if p.kind is p.VAR_KEYWORD else (x,)
        if not all(takes(p.annotation, v) for v in given):
            return False
    return True


def recorded(space, monkeypatch):
    """Let each function of a namespace note its calls: (name, args, kwargs, result)."""
    module = importlib.import_module(f"mirabelle.{space}".rstrip("."))
    calls = []
    for name in signatures(space):
        f = getattr(module, name, None)
        if f is None or name in ("compile", "jit", "kernel", "generic", "which", "methods"):
            continue

        def noting(*args, _name=name, _f=f, **kwargs):
            found = _f(*args, **kwargs)
            calls.append((_name, args, kwargs, found))
            return found

        monkeypatch.setattr(module, name, noting)
    return calls


def test_what_the_suite_calls_fits_the_stubs_and_gives_what_they_say(monkeypatch, tmp_path):
    from soak_memory import functions

    monkeypatch.chdir(tmp_path)  # (some calls write files)

    notes = {space: recorded(space, monkeypatch) for space in stubs.SPACES}
    with warnings.catch_warnings(), np.errstate(all="ignore"), mb.allow_scalar():
        warnings.simplefilter("ignore")
        for _, f, arrays in functions():
            operands = [mb.HostArray(x) if isinstance(x, np.ndarray) else x for x in arrays]
            short = getattr(f, "__name__", "")
            direct = short in signatures("") and getattr(f, "core", None) is not None
            try:
                found = f(*operands)
            except Exception:  # (what is refused is another test's)
                continue
            if direct:
                notes[""].append((short, tuple(operands), {}, found))
    monkeypatch.undo()
    wrong, seen = [], set()
    for space, calls in notes.items():
        known = signatures(space)
        for name, args, kwargs, found in calls:
            fitting = [s for s in known.get(name, ()) if fits(s, args, kwargs)]
            seen.add(f"{space}.{name}")
            if not fitting and name in known:
                wrong.append(f"{space}.{name}{args, kwargs} is refused"[:200])
            elif fitting and not is_of(found, fitting[0].return_annotation):
                wrong.append(f"{space}.{name} gives {type(found)}, not {fitting[0].return_annotation}")
    assert wrong == []
    assert len(seen) > 250


def test_two_of_the_checked_programs_run():
    sys.path.insert(0, str(ROOT / "tests" / "typed"))
    try:
        algebra, holding = (importlib.import_module(name) for name in ("algebra", "holding"))
    finally:
        del sys.path[0]
    A, x = mb.HostArray([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]), mb.ones(3)
    assert algebra.decompositions(A, x).shape == (3, 3)
    assert algebra.structured(x).shape == (3, 3)
    assert len(algebra.sampled(6)) == 9
    algebra.derivatives(mb.ones(4))
    holding.reductions(mb.ones((2, 3)))
    assert np.isclose(holding.Particles(mb.ones(3), mb.ones(3)).push(0.1).energy, 1.5 * 0.99**2)


COMPLETIONS = {
    "x.": {"sum", "T", "reshape"},
    "x.re": {"real", "repeat", "reshape"},
    "mb.lin": {"linalg", "linspace"},
    "mb.linalg.sol": {"solve", "solve_triangular"},
    "mb.roll(x, ax": {"axis="},
    "x.sum(ax": {"axis="},
}
# (What IPython completes where it may make calls: "unsafe".)
OF_CALLS = {"mb.zeros(3).": {"sum", "T"}, "mb.linalg.qr(x[:, None]).Q.": {"reshape"}}
# (jedi takes seconds for its first.)
COMPLETE = """
import json, sys
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
import mirabelle as mb
shell = InteractiveShell(colors="nocolor")
shell.user_ns |= {"mb": mb, "x": mb.zeros(3)}
shell.Completer.use_jedi = False
complete = lambda t: [c.text for c in shell.Completer.completions(t, len(t))]
with provisionalcompleter():
    found = {t: complete(t) for t in json.loads(sys.argv[1])}
    shell.Completer.evaluation = "unsafe"
    found |= {t: complete(t) for t in json.loads(sys.argv[2])}
print(json.dumps(found))
"""


def test_a_notebook_completes_names_and_parameters(tmp_path):
    """(In a process of its own: a shell makes this one interactive, where elements of cards may be read.)"""
    pytest.importorskip("IPython.core.interactiveshell")
    command = [sys.executable, "-c", COMPLETE, json.dumps(list(COMPLETIONS)), json.dumps(list(OF_CALLS))]
    env = os.environ | {"IPYTHONDIR": str(tmp_path)}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    for text, texts in json.loads(said.splitlines()[-1]).items():
        found = {name.lstrip(".") for name in texts}
        assert found >= (COMPLETIONS | OF_CALLS)[text] and not any(name.startswith("_") for name in found), text


# What editors that look at the source know of a call that was not made.
INFERRED = ["mb.zeros(3)", "mb.asarray([1])", "mb.eye(3)", "mb.concatenate([x])", "mb.sum(x)", "x.T",
            "mb.zeros(3).T", "mb.zeros(3).sum()", "mb.linalg.cho_solve(x, x)", "mb.fft.fftfreq(3)",
            "mb.linalg.qr(A)[0]", "mb.linalg.qr(A).Q", "mb.linalg.svd(A).S", "mb.linalg.eigh(A).eigenvalues",
            "mb.where(x > 0, x, x)", "mb.unique(x)", "mb.linspace(0, 1, 3)", "mb.split(x, 3)[0]",
            "mb.meshgrid(x, x)[0]", "mb.nonzero(x)[0]", "mb.histogram(x)[0]", "mb.linalg.cg(A, x)[0]",
            "x.sum()", "x.reshape(3)", "mb.load('x')", "mb.gradient(x)"]  # fmt: skip
INFER = """
import json, sys
import jedi
import mirabelle as mb
scope = [{"mb": mb, "x": mb.zeros(3), "A": mb.eye(3)}]
found = {t: jedi.Interpreter(f"{t}.", scope).complete() for t in json.loads(sys.argv[1])}
print(json.dumps({t: [c.name for c in completions] for t, completions in found.items()}))
"""


@pytest.mark.parametrize("installed", [False, True])
def test_jedi_completes_what_calls_give(tmp_path, installed):
    """In this checkout, and in the package as it is installed: all folders in one."""
    pytest.importorskip("jedi")
    package = Path(mb.__file__).parent
    if installed:
        made = tmp_path / "mirabelle"
        made.mkdir()
        beside = (ROOT / name for name in ("arraytypes", "dispatch", "backends", "dg"))
        for part in [*package.iterdir(), *beside]:
            if part.name != "__pycache__" and not (made / part.name).exists():
                (made / part.name).symlink_to(part)
    command = [sys.executable, "-c", INFER, json.dumps(INFERRED)]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=env, cwd=tmp_path).stdout
    lost = [t for t, names in json.loads(said.splitlines()[-1]).items() if not {"sum", "reshape"} <= {*names}]
    assert lost == []


# Functions that give whatever there is: a view of some backend, what another library calls a mesh or a matrix.
ANYTHING = {
    "ext.lower", "autodiff.value", "meshdata.from_petsc", "meshdata.to_petsc", "meshdata.read_mesh_file",
}  # fmt: skip


def test_each_public_function_says_what_it_gives():
    silent = []
    for space in (
        "",
        "autodiff",
        "compiling",
        "distributed",
        "ext",
        "fft",
        "lib",
        "linalg",
        "meshdata",
        "random",
    ):
        module = importlib.import_module(f"mirabelle.{space}".rstrip("."))
        for name in getattr(module, "__all__", dir(module)):
            f = getattr(module, name)
            if isinstance(f, type) or not str(getattr(f, "__module__", "")).startswith("mirabelle"):
                continue
            if callable(f) and not name.startswith("_") and f"{space}.{name}" not in ANYTHING:
                said = inspect.signature(f).return_annotation
                silent += [f"{space}.{name}"] * (
                    said is P.empty or said in (inspect.Signature.empty, "Any", Any)
                )
    assert silent == []


# Parameters that take what other libraries call a mesh, an element, a matrix; and the parameters of others.
FOREIGN = {
    "Generator.fill.args", "from_petsc.x", "to_petsc.comm", "physical_groups.file", "space.family",
    "Axis.__init__.components", "Axis.__init__.numbering", "Axis.__init__.regions",
}  # fmt: skip
CLASSES = ("Generator", "Philox", "Mesh", "Axis", "Space", "StarForest")


def methods_of(kind):
    for name in dir(kind):
        f = inspect.getattr_static(kind, name)
        if inspect.isfunction(f) and (name == "__init__" or not name.startswith("_")):
            yield f"{kind.__name__}.{name}", f


def test_parameters_of_random_numbers_and_meshes_have_types():
    functions = [
        (name, f) for m in (mb.random, mb.meshdata) for name, f in vars(m).items() if name in m.__all__
    ]
    said = [(name, f) for name, f in functions if inspect.isfunction(f)]
    said += [method for name, kind in functions if name in CLASSES for method in methods_of(kind)]
    untyped = {
        f"{name}.{p.name}"
        for name, f in said
        for p in inspect.signature(f).parameters.values()
        if p.name != "self" and p.kind is not P.VAR_KEYWORD and p.annotation in (P.empty, "Any")
    }
    assert len(said) > 100 and untyped - FOREIGN == set()


def test_signatures_name_what_comes_back():
    """(Of those that return several arrays the source says which; the others' docstrings say it.)"""

    def gives(f):
        return re.sub(
            r"mirabelle[.]", "", inspect.formatannotation(inspect.signature(f).return_annotation)
        ).strip("'")

    assert gives(mb.linalg.qr) == "QRResult | AbstractArray"
    assert gives(mb.linalg.eigh) == "EighResult"
    assert gives(mb.split) == gives(mb.hsplit) == "list[AbstractArray]"
    assert gives(mb.histogram) == "tuple[AbstractArray, AbstractArray]"
    either = ["Union[AbstractArray, tuple[AbstractArray, ...]]", "AbstractArray | tuple[AbstractArray, ...]"]
    assert gives(mb.where) in either  # (Python 3.14 writes the second)
    assert gives(mb.linspace) == "AbstractArray | tuple[AbstractArray, AbstractArray]"
    assert gives(mb.load) == "AbstractArray | dict[str, AbstractArray]"
    assert gives(mb.to_numpy) == "np.ndarray"
    assert gives(mb.place) == "Place"


def test_numpys_order_of_options_of_decompositions():
    A = mb.HostArray([[3.0, 0.0, 1.0], [0.0, 4.0, 2.0]])
    B = np.array([[2.0, 1.0], [7.0, 3.0]])
    numpys = np.linalg.svd(np.asarray(A), False)
    assert [x.shape for x in mb.linalg.svd(A, False)] == [x.shape for x in numpys]
    assert np.allclose(mb.linalg.svd(A, True, False), numpys.S)
    assert np.allclose(abs(mb.linalg.qr(A, "r")), abs(np.linalg.qr(np.asarray(A), "r")))
    assert np.allclose(mb.linalg.eigh(mb.HostArray(B), "U").eigenvalues, np.linalg.eigvalsh(B, "U"))
    assert np.allclose(mb.linalg.eigvalsh(mb.HostArray(B), "L"), np.linalg.eigvalsh(B, "L"))
    with pytest.raises(TypeError, match="svd\\(\\) takes x, full_matrices, compute_uv, hermitian; not 5"):
        mb.linalg.svd(A, True, True, False, 3)


def test_operators_keep_what_the_checker_is_told_that_they_keep():
    """What arraytypes/kepttypes.py says of operators, with numbers of Python and arrays of the same type."""
    import operator as o

    for kind in (mb.HostArray, mb.RefArray):
        for dtype in ("f8", "c16", "f4", "c8", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"):
            x = kind(np.arange(1, 4), dtype)
            real, whole = dtype[0] != "c", dtype[0] in "iu"
            others = [2, x, *[1.5] * (not whole)]
            ops = [o.add, o.sub, o.mul, *[o.mod, o.floordiv] * real, *[o.truediv, o.pow] * (not whole)]
            for other in others:
                for op in ops:
                    made = op(x, other), op(other, x)
                    assert all(isinstance(y, kind) and y.dtype == x.dtype for y in made), (kind, dtype, op)
            for y in (x @ x, -x, +x):
                assert isinstance(y, kind) and y.dtype == x.dtype


def test_methods_say_what_they_do():
    silent, strange = [], []
    for name in dir(mb.AbstractArray):
        method = inspect.getattr_static(mb.AbstractArray, name)
        if not name.startswith("_") and (callable(method) or isinstance(method, property)):
            said = inspect.getdoc(method) or ""
            silent += [name] * (not said)
            strange += [f for f in re.findall(r"`mb[.](\w+)`", said) if not hasattr(mb, f)]
    assert not silent and not strange
