"""Each public function has a docstring in NumPy's sections: what it takes, what it gives, an example."""

import importlib
import inspect
import re

NAMES = " autodiff compiling dg distributed ext fft linalg meshdata random types"
# What gives nothing says nothing of it.
NOTHING = """
    add_at fill_diagonal free_memory put put_along_axis putmask save savetxt savez savez_compressed
    set_memory_limit synchronize dirichlet loop write_petsc write_parts"""
# Their packages (dask, petsc4py, meshio) need not be there: what they are called with, the guide shows.
ELSEWHERE = "connect from_petsc to_petsc read_mesh_file"


def functions():
    for space in NAMES.split(" "):
        module = importlib.import_module(f"mirabelle.{space}".rstrip("."))
        for name in module.__all__:
            thing = getattr(module, name)
            ours = str(getattr(thing, "__module__", "")).startswith("mirabelle")
            if callable(thing) and not isinstance(thing, type) and ours and not name.startswith("_"):
                yield f"{space}.{name}".lstrip("."), thing


def lacking(name, f):
    """The sections that a docstring should have, and has not."""
    short, doc = name.rpartition(".")[2], inspect.getdoc(f) or ""
    there = set(re.findall(r"^(\w[\w ]*)\n-{3,}$", doc, re.MULTILINE))
    wanted = {"Parameters"} if inspect.signature(f).parameters else set()
    if short not in NOTHING.split() and "Yields" not in there:
        wanted.add("Returns")
    return wanted - there | ({"an example"} if ">>> " not in doc and short not in ELSEWHERE.split() else set())


def test_each_function_says_what_it_takes_and_gives():
    found = {name: lacking(name, f) for name, f in functions()}
    assert len(found) > 600
    assert {name: lacks for name, lacks in found.items() if lacks} == {}
