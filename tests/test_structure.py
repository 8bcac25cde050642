"""The house keeps its shape: imports point one way, everything public is explained and runs."""

import ast
import doctest
import importlib.util
import inspect
import pathlib
import pkgutil
import re

import numpy as np
import pytest
from children import answer

import mirabelle as mb
from mirabelle import dg
from mirabelle import meshdata as md
from mirabelle.arraytypes.dense import VIEWS
from mirabelle.arraytypes.proxies import ProxyView
from mirabelle.arraytypes.structured import fallback
from mirabelle.backends.gpu.driver import Driver
from mirabelle.backends.gpu.simulator import SimulatedDriver
from mirabelle.backends.partners import PARTNERS
from mirabelle.dispatch import loading

ROOT = pathlib.Path(__file__).parents[1]
# A wheel is tried beside nothing but the tests, without a compiler and what is optional.
OUTSIDE = not (ROOT / "mirabelle").exists()
of_the_checkout = pytest.mark.skipif(OUTSIDE, reason="looks through the checkout")
FOLDERS = ["dispatch", "arraytypes", "backends", "dg"]
# What a folder may import of the others, when it is imported and inside functions.
ALLOWED = {
    "dispatch": {"dispatch"},
    "arraytypes": {"arraytypes", "dispatch"},
    "backends": {"backends", "arraytypes", "dispatch"},
    "dg": {"dg"},  # an application: of the array library it knows what is public, `import mirabelle as mb`
}
OPTIONAL = {
    "autoray", "cloudpickle", "cupy", "dask", "einops", "gmsh", "h5py", "jax", "matplotlib", "meshio", "mpi4py",
    "pymetis", "rich", "scipy", "xarray", "zarr",
}  # fmt: skip
FORMATS = {"h5py", "zarr"}  # what files are written with, from any place


def imports(path):
    """(module, at the top of the file?) of every import of a file."""
    tree = ast.parse(path.read_text())
    top = set()
    stack = list(tree.body)
    while stack:  # what runs on import: also inside try, if and with, but not inside functions
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            top.add(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            stack += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module, node in top
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node in top


def sources(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder):
    for path in sources(folder):
        for module, _ in imports(path):
            parts = module.split(".")
            if parts[0] != "mirabelle":
                continue
            where = path.relative_to(ROOT)
            if len(parts) > 1 and parts[1] in FOLDERS:
                assert parts[1] in ALLOWED[folder], f"{where} imports {module}"
            else:  # the public names, which stand above: for `dg`, and where they are registered
                assert folder == "dg" or path.is_relative_to(ROOT / "backends" / "partners"), (
                    f"{where}: {module}"
                )


@of_the_checkout
def test_backends_do_not_import_each_other_but_for_the_host():
    """Any backend can be deleted, but for what others stand on: the host's, what cards share, sockets, which
    Dask's workers talk through, and MPI, by which NCCL finds its members."""
    backends = {p.name for p in (ROOT / "backends").iterdir() if p.is_dir()} - {
        "host",
        "codegen",
        "gpu",
        "mpi",
        "tcp",
        "__pycache__",
    }
    for backend in backends:
        for other in [*backends, "host"]:
            if other == backend:
                continue
            for path in sources(f"backends/{other}"):
                for module, _ in imports(path):
                    assert not module.startswith(f"mirabelle.backends.{backend}"), path


def test_optional_partners_are_imported_lazily():
    for folder in ["mirabelle", *ALLOWED]:
        for path in sources(folder):
            for module, at_top in imports(path):
                partner = module.split(".")[0]
                if partner in OPTIONAL and not path.stem.startswith(f"{partner}_"):  # its own module
                    assert not at_top, path
                    assert folder in ("backends", "dg", "mirabelle") or partner in FORMATS, path


def test_ordinary_use_with_the_compiler_off_needs_no_numba():
    said = answer(
        """
        import json, sys
        import mirabelle as mb
        x = mb.HostArray([1.0, 2.0])
        repr(mb.sum(mb.exp(x) + mb.RefArray([1.0]).tolist()[0]))
        print(json.dumps("numba" in sys.modules))
        """,
        compiler="off",
    )
    assert said is False


def test_tests_can_run_from_an_installed_package():
    """The package names resolve through the import system, not through the working folder."""
    for name in ("dispatch", "arraytypes", "backends", "dg"):
        module = __import__(f"mirabelle.{name}", fromlist=["_"])
        assert pathlib.Path(module.__file__).parent.name == name


# Documentation


def public():
    """Every public name that is ours and can carry a docstring."""
    names = {name: getattr(mb, name) for name in mb.__all__}
    for space in ("types", "distributed", "ext"):
        names |= {f"{space}.{n}": getattr(names[space], n) for n in names[space].__all__ if n not in names}
    for name, thing in sorted(names.items()):
        if name.startswith("_") or inspect.ismodule(thing):
            continue
        if callable(thing) and (getattr(thing, "__module__", "") or "").startswith("mirabelle"):
            yield name, thing


PUBLIC = dict(public())
MESHDATA = {f"md.{name}": getattr(md, name) for name in md.__all__}
DG = {f"dg.{name}": getattr(dg, name) for name in dg.__all__}


def modules():
    packages = {module: partner.split(".")[0] for partner, module in PARTNERS.items()}
    missing = {module for module, package in packages.items() if importlib.util.find_spec(package) is None}
    without = () if importlib.util.find_spec("distributed") else ("mirabelle.backends.dask.",)
    for folder in ALLOWED:
        package = __import__(f"mirabelle.{folder}", fromlist=["_"])
        yield package
        for info in pkgutil.walk_packages(package.__path__, f"mirabelle.{folder}."):
            # The helper is a program; the primitives need Numba; a partner's module is imported by
            # its partner, if that is there.
            if info.name.endswith((".server", ".primitives")) or info.name in missing:
                continue
            if not info.name.startswith(without):
                yield __import__(info.name, fromlist=["_"])


MODULES = {m.__name__: m for m in [mb, *modules()]}


@pytest.mark.parametrize("name", [*PUBLIC, *MESHDATA, *DG])
def test_everything_public_has_a_docstring(name):
    doc = inspect.getdoc({**PUBLIC, **MESHDATA, **DG}[name])
    assert doc and len(doc) > 2, name


@pytest.mark.parametrize("name", ["HostArray", "RefArray", *(n for n in PUBLIC if inspect.isclass(PUBLIC[n]))])
def test_public_methods_of_classes_are_documented_or_named_as_numpys(name):
    import numpy as np

    for attribute, value in vars(PUBLIC[name]).items():
        if attribute.startswith("_") or not callable(value):
            continue
        assert inspect.getdoc(value) or hasattr(np.ndarray, attribute), f"{name}.{attribute}"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    assert MODULES[name].__doc__ and len(MODULES[name].__doc__.splitlines()[0]) > 15


def examples():
    """Docstring examples of public names and modules. Generic functions are made by exec, so
    ordinary scanning of modules misses them. An example of a public name stands by itself:
    what it shows can be pasted."""
    parser, finder = doctest.DocTestParser(), doctest.DocTestFinder(recurse=True)
    found = {}
    for name, thing in PUBLIC.items():
        if inspect.isclass(thing):
            for test in finder.find(thing, f"mb.{name}", globs={"mb": mb}):
                found[test.name] = test
        elif thing.__doc__:
            found[f"mb.{name}"] = parser.get_doctest(thing.__doc__, {"mb": mb}, f"mb.{name}", None, 0)
    for name, thing in MESHDATA.items():  # (Classes say that their module is `mirabelle.meshdata`.)
        if inspect.isclass(thing):
            found.update((test.name, test) for test in finder.find(thing, name, globs={}))
    alone = {inspect.getdoc(thing) for thing in (*MESHDATA.values(), *DG.values())}
    for name, module in MODULES.items():
        for test in finder.find(module, name, module):
            if inspect.cleandoc(test.docstring or "") in alone:
                test.globs = {}
            found.setdefault(test.name, test)
    return {name: test for name, test in found.items() if test.examples}


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name):
    test = EXAMPLES[name]
    fallback.forget()  # (what another test was told of)
    test.globs = {"__name__": "__main__", **test.globs}
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    if OUTSIDE and (lacks := re.search(r"There is no C compiler|pip install [\w'\[\]-]+", "".join(said))):
        pytest.skip(f"not here: {lacks[0]}")
    assert not runner.failures, "".join(said)


def test_the_examples_were_found():
    for name in (
        "mb.add",
        "mb.sum",
        "mb.HostArray",
        "mb.broadcast",
        "mb.override",
        "mirabelle.arraytypes.wrappers",
    ):
        assert name in EXAMPLES
    assert len(EXAMPLES) > 60


def test_the_public_namespace_has_the_array_api():
    wanted = """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
        bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
        expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less
        less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor
        maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
        round sign signbit sin sinh square sqrt subtract tan tanh trunc where max mean min prod std
        sum var any all count_nonzero arange asarray empty empty_like full full_like linspace ones
        ones_like zeros zeros_like e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16
        uint32 uint64 float32 float64 complex64 complex128 broadcast_to permute_dims reshape astype
        matmul result_type
    """
    assert [n for n in wanted.split() if not hasattr(mb, n)] == []


def test_there_are_no_late_hooks():
    """`Class._name = function` in another module, or after the class: a second dispatch beside generics.

    What a class or a module has stands in its text, or is a method of a generic function.
    """
    found = []
    for folder in ["mirabelle", *ALLOWED]:
        for path in sources(folder):
            tree = ast.parse(path.read_text())
            classes = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
            stack = [(node, False) for node in tree.body]
            while stack:
                node, called = stack.pop()
                called |= isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                stack += [(n, called) for n in ast.iter_child_nodes(node)]
                targets = node.targets if isinstance(node, ast.Assign) else []
                for target in [t for group in targets for t in getattr(group, "elts", [group])]:
                    if not isinstance(target, ast.Attribute) or target.attr in ("__module__", "__name__"):
                        continue
                    # (Functions may give what they make attributes, but no class that has a name here.)
                    root = target.value.id if isinstance(target.value, ast.Name) else ""
                    if not called or root in classes or (root[:1].isupper() and not root.isupper()):
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(target)}")
    # (h5py has no other way in.)
    found = [x for x in found if "h5py.Dataset." not in x]
    assert not found, "\n".join(found)


def test_no_file_is_left_to_grow():
    """A module is one subject: past some length it is several. (The lists of all names, and of all verbs with
    what `help` says of them, are one.)"""
    for folder in ["mirabelle", *ALLOWED]:
        for path in sources(folder):
            limit = 1600 if path.name in ("__init__.py", "verbs.py") else 800
            assert len(path.read_text().splitlines()) < limit, path


# Lines that read CPython's reference counts. They may become fewer.
COUNTS = {
    # Of NumPy's arrays, which count who holds their memory; of users' arrays, for what is worth storing.
    "dispatch/csrc/owners.c": 5,
}


@of_the_checkout
def test_functions_in_c_have_names_of_their_own():
    """What is compiled for some versions of Python only may not be called as what all files see.

    (CI has one version: it would not be seen that others do not compile.)
    """
    texts = {p.name: p.read_text() for p in (ROOT / "dispatch" / "csrc").glob("*.[ch]")}
    shared = set(re.findall(r"^(?!static)\w[\w *]*?[ *](\w+)\([^;{]*\);", texts["native.h"], re.M))
    assert {"may_write", "looped", "copied"} <= shared
    for name, text in texts.items():
        own = re.findall(r"^static[\w *]*\n(\w+)\(", text, re.M)
        assert not shared & set(own), (name, shared & set(own))


@of_the_checkout
def test_reference_counts_are_read_in_one_place():
    """Who holds a version is counted by us, and nothing else depends on the interpreter's counts."""
    found = {}
    for folder in ["mirabelle", *ALLOWED]:
        for path in [*sources(folder), *(ROOT / folder).rglob("*.[ch]")]:
            lines = sum(
                bool(re.search(r"getrefcount|Py_REFCNT", line)) for line in path.read_text().splitlines()
            )
            if lines:
                found[path.relative_to(ROOT).as_posix()] = lines
    assert found == COUNTS


# What is decided in one place (the line that does it, and where it stands), and how many lines of which files
# ask, or look at what it is decided by. They may become fewer.
DECIDED = {
    "may it be written in place?": (
        (r"^may_write\(Leaf|def nobody_else\(", {"dispatch/csrc/owners.c": 1, "arraytypes/assign.py": 1}),
        (
            r"(?<!def )\b(nobody_else|may_write)\((?!Leaf)(?!.*-> bool)",
            {
                "dispatch/csrc/owners.c": 3, "dispatch/csrc/assigning.c": 2, "dispatch/csrc/statements.c": 1,
                "dispatch/tree.py": 1, "arraytypes/assign.py": 3,
                "arraytypes/distributed/moving.py": 1, "arraytypes/distributed/statements.py": 1,
                "arraytypes/graphs.py": 1, "arraytypes/lending.py": 1,
                "arraytypes/programs/fusing.py": 3, "arraytypes/programs/program.py": 1,
                "arraytypes/random/filling.py": 1, "backends/gpu/direct.py": 4, "backends/gpu/shortcuts.py": 1,
                "backends/host/direct.py": 1, "backends/host/picking.py": 2,
            },
        ),
        (
            r"\bholders\s*(?:[<>]=?|==|!=)",
            {
                "dispatch/csrc/owners.c": 2, "dispatch/csrc/nodes.c": 2, "dispatch/csrc/reducing.c": 1,
                "dispatch/csrc/computing.c": 2, "dispatch/csrc/statements.c": 3, "dispatch/csrc/divided.c": 3,
                "dispatch/evaluation.py": 1,
                "dispatch/schedule.py": 3, "arraytypes/assign.py": 1, "arraytypes/indexing.py": 1,
                "arraytypes/distributed/combining.py": 2, "arraytypes/distributed/execution.py": 1,
                "backends/gpu/direct.py": 4, "backends/gpu/shortcuts.py": 1,
            },
        ),
    ),
    "is it worth storing?": (
        (r"^is_worth_storing\(", {"dispatch/csrc/walking.c": 1}),
        (
            r"(?<!def )\bworth_storing\(",
            {
                "dispatch/schedule.py": 2, "dispatch/csrc/walking.c": 2, "arraytypes/wrappers.py": 1,
                "arraytypes/distributed/combining.py": 1, "arraytypes/distributed/execution.py": 1,
                "backends/gpu/direct.py": 2,
            },
        ),
    ),
}  # fmt: skip


@of_the_checkout
@pytest.mark.parametrize("question", DECIDED)
def test_what_is_decided_in_one_place_stays_there(question):
    for pattern, allowed in DECIDED[question]:
        found = {}
        for folder in ALLOWED:
            for path in [*sources(folder), *(ROOT / folder).rglob("*.c")]:
                lines = sum(bool(re.search(pattern, line)) for line in path.read_text().splitlines())
                if lines:
                    found[path.relative_to(ROOT).as_posix()] = lines
        assert all(n <= allowed.get(path, 0) for path, n in found.items()), (pattern, found)


# Functions in Python that go through a tree by calling themselves. They may become fewer.
WALKERS = {
    ("dispatch/schedule.py", "visit"), ("dispatch/schedule.py", "_reach"), ("dispatch/tree.py", "walk"),
    ("arraytypes/flow.py", "_collect"), ("arraytypes/wrappers.py", "_rewrite"),
    ("arraytypes/distributed/execution.py", "node"), ("arraytypes/distributed/execution.py", "_quick"),
    ("arraytypes/distributed/gathering.py", "_walk"), ("arraytypes/distributed/overlapping.py", "node"),
    ("arraytypes/programs/traced.py", "node_of"), ("backends/gpu/direct.py", "_walk"),
    ("backends/gpu/direct.py", "_step"), ("backends/host/direct.py", "reductions_first"),
}  # fmt: skip


@of_the_checkout
def test_walkers_of_trees_do_not_become_more():
    from benchmarks import house

    found = {
        (path.relative_to(ROOT).as_posix(), node.name)
        for folder in house.HOUSE
        for path in sources(folder)
        if "Broadcasted" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if house.walks_trees(node)
    }
    assert found <= WALKERS, found - WALKERS


def classes_with(name):
    """The classes of the library that define something of this name."""
    return [
        node.name
        for folder in FOLDERS
        for path in sources(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(
            getattr(n, "name", "") == name
            or (isinstance(n, ast.Assign) and any(getattr(t, "id", "") == name for t in n.targets))
            for n in node.body
        )
    ]


@of_the_checkout
def test_views_have_one_base():
    """Memory that NumPy does not read is shown by one kind of views, whatever holds it."""
    loading.everything()
    _ = mb.types.DArray[mb.HostArray], mb.RefArray([1.0]) + 1
    kinds = [view for view in VIEWS if view is not np.ndarray]
    assert len(kinds) > 3 and all(issubclass(view, ProxyView) for view in kinds)
    assert classes_with("sliding_windows") == ["ProxyView"]


@of_the_checkout
def test_there_is_one_fake_device():
    """What RefArray runs is what cards run; one driver pretends to be a card, and one machine runs threads."""
    fakes = {type(family.driver()) for family in (mb.RefArray, mb.CuArray) if family.driver().simulated}
    assert fakes == {SimulatedDriver} and issubclass(mb.RefArray, mb.types.GPUArray)
    drivers = [kind for kind in Driver.__subclasses__() if kind.__module__.startswith("mirabelle")]
    assert [kind for kind in drivers if kind.simulated] == [SimulatedDriver]
    orders = [p.name for p in sources("backends") if "104729" in p.read_text()]  # (threads' shuffled order)
    assert orders == ["simulator.py"]


@of_the_checkout
def test_routines_with_versions_by_place_do_not_become_more():
    """A routine is composed once for all places, or written once for an array module (`backends/csr.py`).

    Where a place's library is quicker, it has one. `python -m benchmarks house` counts; they may become fewer.
    """
    from benchmarks import house

    found = house.versions()
    several = [name for name, places in found.items() if len(places) > 1]
    many = [name for name in several if len(found[name]) > 2]
    assert len(several) <= 48, sorted(several)
    assert len(many) <= 21, sorted(many)
    for composed in ("pad", "quantile", "polyfit", "unique_all"):
        assert composed not in several
