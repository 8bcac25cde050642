"""What is imported with its first use: the import is light, and nothing depends on what came when."""

import ast
import pathlib
import threading

import pytest
from children import answer, finish, start

import mirabelle as mb
from mirabelle.dispatch import loading
from mirabelle.dispatch.loading import later

# What only some programs need.
HEAVY = [
    *("numba", "llvmlite", "scipy", "cupy", "dask", "distributed", "mpi4py", "plum", "beartype", "rich"),
    *("numpy.fft", "numpy.random", "email", "zipfile", "socket"),
    *(f"mirabelle.arraytypes.{m}" for m in ("duals", "programs", "distributed", "random", "meshdata")),
    *(f"mirabelle.backends.{m}" for m in ("gpu", "cuda", "hip", "nccl", "dask", "explain")),
    *("mirabelle.linalg", "mirabelle.fft", "mirabelle.autodiff", "mirabelle.compiling"),
]
MODULES = 173  # of ours after the import; fewer is better

# First uses of families that are not there after `import mirabelle`.
USES = {
    "card": "np.add(mb.CuArray([1.0, 2.0]), 1)",
    "reference": "mb.sort(mb.RefArray([2.0, 1.0]))",
    "processes": "mb.DArray[mb.HostArray]([1.0, 2.0]) * 2",
    "dual": "mb.autodiff.gradient(lambda x: mb.sum(x * x), x)",
    "program": "mb.compile(lambda x: mb.sin(x) + 1)(x)",
    "random": "mb.random.default_rng(3).normal(size=2)",
    "mesh": "mb.meshdata.interval(3)",
    "linalg": "mb.linalg.solve(mb.eye(2), x)",
    "functions": "mb.polyval(x, x)",
}
# The methods of all functions, and what else answers calls, as text.
TABLES = """
def tables():
    import mirabelle.meshdata
    from mirabelle.dispatch import generic, loading
    for name in mb.__all__:
        getattr(mb, name)
    loading.everything()
    found = {f"{c.prototype.__module__}.{c.__name__}": (sorted(map(repr, c.methods)), c.further.__qualname__)
             for c in generic.all_generics()}
    hooks = {t.__name__: sorted(vars(t)) for t in (mb.HostArray, mb.CuArray, mb.DArray, mb.types.Dual)}
    return hashlib.sha256(json.dumps([found, hooks], sort_keys=True).encode()).hexdigest(), len(found)
"""


def test_the_import_is_light():
    said = answer(
        f"""
        import json, sys
        import mirabelle
        own = [m for m in sys.modules if m.partition(".")[0] == "mirabelle"]
        print(json.dumps([[m for m in {HEAVY!r} if m in sys.modules], len(own)]))
        """
    )
    assert said[0] == [] and said[1] <= MODULES


def test_linear_algebra_and_transforms_import_nothing_of_processes():
    said = answer(
        """
        import json, sys
        import mirabelle as mb
        x = mb.HostArray([[2.0, 1.0], [1.0, 3.0]])
        for made in (mb.linalg.solve(x, x[0]), mb.linalg.cg(x, x[0])[0], mb.fft.rfft(x)):
            mb.materialize(made)
        print(json.dumps([m for m in sys.modules if m.startswith("mirabelle.arraytypes.distributed")]))
        """
    )
    assert said == []


def test_few_numbers_import_no_more():
    said = answer(
        """
        import json, sys
        import numpy as np
        import mirabelle as mb
        before = set(sys.modules)
        x = mb.asarray([1.0, 2.0, 3.0])
        y = mb.reshape(mb.where(x > 1, x * 2, mb.exp(-x)), (3, 1)) @ x[None, :]
        y[1:] += 1
        assert float(mb.sum(y)) > 0 and repr(y) and np.asarray(y).shape == (3, 3) and y.T[0].tolist()
        print(json.dumps([m for m in set(sys.modules) - before if m.split(".")[0] == "mirabelle"]))
        """
    )
    assert said == []


def test_all_methods_are_found_whatever_is_used_first():
    """In every process the same methods, and each family works as the first."""
    orders = [list(USES), list(USES)[::-1], sorted(USES, key=lambda name: name[::-1])]
    code = (
        "import hashlib, json\nimport numpy as np\nimport mirabelle as mb\nimport mirabelle.meshdata\n"
        + TABLES
        + "x = mb.HostArray([1.0, 2.0])\nvalues = {}\n"
        + "for name, use in %s:\n    values[name] = repr(eval(use))\n"
        + "print(json.dumps([values, tables()]))\n"
    )
    running = [start(code % [(n, USES[n]) for n in order], cuda="simulated") for order in orders]
    first, *others = map(finish, running)
    assert first[1][1] > 300
    for other in others:
        assert other == first


@pytest.mark.parametrize("name", USES)
def test_what_comes_later_changes_nothing_said_before(name):
    """Its methods are for types, or of functions, that were not there: no call before could have had them."""
    odd = answer(
        f"""
        import gc, json
        import numpy as np
        import mirabelle as mb
        from mirabelle.dispatch import generic, loading
        x = mb.HostArray([1.0, 2.0])
        types = {{id(t) for t in gc.get_objects() if isinstance(t, type)}}
        types -= {{id(t) for t in loading._missing if isinstance(t, type)}}  # (dispatch sees to these)
        known = {{id(c): (set(map(id, c.methods)), c.further) for c in generic.all_generics()}}
        world = mb.ext.world()
        import mirabelle.meshdata
        {USES[name]}
        found = []
        for core in generic.all_generics():
            if id(core) in known:
                methods, further = known[id(core)]
                found += [
                    repr(m) for m in core.methods
                    if id(m) not in methods and not any(all(id(t) not in types for t in c) for c in m.classes)
                ]
                found += [core.__name__] * (core.further != further)
        print(json.dumps([found, mb.ext.world() - world]))
        """,
        cuda="simulated",
    )
    assert odd[0] == []


def test_a_program_is_not_traced_again_when_a_family_comes():
    traced = answer(
        """
        import json
        import mirabelle as mb
        runs = []
        @mb.compile
        def step(x):
            runs.append(1)
            return mb.sin(x) * 2 + 1
        x = mb.HostArray([1.0, 2.0])
        step(x)
        mb.autodiff.gradient(lambda x: mb.sum(x * x), x)
        mb.RefArray([1.0]) + 1
        mb.DArray[mb.HostArray]([1.0])
        step(x)
        print(json.dumps(len(runs)))
        """
    )
    assert traced == 1


def test_threads_that_begin_together_find_everything():
    """All of them use families for the first time, in different orders, while others are being imported."""
    code = (
        "import itertools, json, threading\nimport numpy as np\nimport mirabelle as mb\n"
        f"USES = {list(USES.values())!r}\n"
        """
import mirabelle.meshdata
failed, start = [], threading.Barrier(8)
def work(k):
    x = mb.HostArray([1.0, 2.0])
    start.wait()
    try:
        for use in USES[k:] + USES[:k]:
            repr(eval(use, {"mb": mb, "np": np, "x": x}))
    except Exception as e:
        failed.append(repr(e))
threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join(60)
print(json.dumps([failed, sum(t.is_alive() for t in threads)]))
"""
    )
    assert finish(start(code, cuda="simulated")) == [[], 0]


# One thread is in the middle of an import when another one begins with what that will need.
MEANWHILE = """
import importlib, json, sys, threading, time
import mirabelle as mb

begun, failed = threading.Event(), []

class Slow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "mirabelle.arraytypes.programs":
            begun.set()
            time.sleep(0.3)

def run(use):
    try:
        use()
    except Exception as e:
        failed.append(repr(e))

sys.meta_path.insert(0, Slow())
first = threading.Thread(target=run, args=(lambda: importlib.import_module("{module}"),), daemon=True)
first.start()
begun.wait(30)
second = threading.Thread(target=run, args=(lambda: {use},), daemon=True)
second.start()
first.join(60), second.join(60)
print(json.dumps([failed, first.is_alive() or second.is_alive()]))
"""


@pytest.mark.parametrize("module", ["compiling", "meshdata"])
@pytest.mark.parametrize(
    "use", ["mb.compile", "mb.compiling", "mb.meshdata", "importlib.import_module('mirabelle.compiling')"]
)
def test_public_modules_are_imported_beside_what_other_threads_ask_for(module, use):
    code = MEANWHILE.replace("{module}", f"mirabelle.{module}").replace("{use}", use)
    assert answer(code) == [[], False]


def test_public_modules_take_the_lock_before_those_of_what_they_show():
    """Whoever imports one has its lock; the others' are for who has ours.

    (`ext` and `distributed` import nothing that `import mirabelle` does not.)
    """
    folder = pathlib.Path(mb.__file__).parent
    for name in ("autodiff", "compiling", "fft", "linalg", "meshdata", "random", "types"):
        for node in ast.parse((folder / f"{name}.py").read_text()).body:
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] != "mirabelle" or node.module.startswith(
                    "mirabelle.dispatch"
                ), (name, node.module)


def test_the_table_of_names_says_what_a_checker_sees():
    tree = ast.parse(pathlib.Path(mb.__file__).read_text())
    blocks = [n for n in tree.body if isinstance(n, ast.If)]
    (checked,) = [n for n in blocks if ast.unparse(n.test) == "_typing.TYPE_CHECKING"]
    seen = {}
    for node in checked.body:
        if node.module == "mirabelle":
            seen |= {f"mirabelle.{a.name}": "" for a in node.names}
        else:
            assert all(a.asname is None for a in node.names)
            seen[node.module] = " ".join(a.name for a in node.names)
    table = {module: " ".join(names.split()) for module, names in mb._LATER.items()}
    assert table == seen
    assert set(dir(mb)) == set(mb.__all__)
    assert all(getattr(mb, name) is not None or name in ("newaxis",) for name in mb.__all__)


def test_a_name_that_is_not_there_is_explained():
    with pytest.raises(AttributeError, match="mirabelle"):
        mb.no_such_name
    get, _ = later("mirabelle", {"json": "dumps"})
    with pytest.raises(AttributeError, match="'nothing'"):
        get("nothing")


def test_what_fails_to_come_is_tried_again(monkeypatch):
    class Family: ...

    loading.completed_by(Family, "mirabelle.no_such_module")
    try:
        for _ in range(2):
            with pytest.raises(ModuleNotFoundError):
                loading.complete_types((int, Family))
    finally:
        del loading._missing[Family]
    assert not loading.complete(Family)


def test_completing_waits_for_who_completes():
    """A thread that needs a family waits for another that is importing it."""

    class Family: ...

    events = []
    loading.completed_by(Family, "json")
    try:
        with loading.lock:
            other = threading.Thread(target=lambda: (loading.complete(Family), events.append("done")))
            other.start()
            other.join(0.05)
            assert events == [] and Family in loading._missing
        other.join(10)
        assert events == ["done"] and Family not in loading._missing
    finally:
        loading._missing.pop(Family, None)
