"""Small programs, each a line or two, that hand arrays to other libraries.

A program is text, so that it runs unchanged on NumPy's arrays and on ours, also in another
process. Its result is that of its last line, and must be what NumPy's arrays give, as our type.
At the end it may say that the library

    # copies     gives NumPy's arrays, whatever it gets,
    # host       keeps our type, but reads memory that only the host has.
"""

import importlib
import re
import traceback
import warnings

import numpy as np

import mirabelle as mb

_rng = np.random.default_rng(7)
SAMPLES = {
    "x": _rng.normal(size=40),
    "y": _rng.normal(1.0, 2.0, size=40),
    "p": _rng.uniform(0.1, 0.9, size=20),
    "A": _rng.normal(size=(40, 3)),
    "B": _rng.normal(size=(3, 5)),
    "S": (lambda m: m @ m.T + 4 * np.eye(4))(_rng.normal(size=(4, 4))),
    "v": _rng.normal(size=4),
    "image": _rng.normal(size=(8, 10)),
    "z": _rng.normal(size=16) + 1j * _rng.normal(size=16),
    "k": _rng.integers(0, 2, size=40),
    "n": np.arange(6),
    "ordered": np.linspace(0.0, 3.0, 12),
}
FAMILIES = {"host": mb.HostArray, "ref": mb.RefArray}


def programs(text):
    """The programs of a text, a line each; a line that ends with a semicolon goes on in the next."""
    return [re.sub(r";\s+", "; ", p.strip()) for p in re.split(r"(?<!;)\n", text) if p.strip()]


def where(program):
    """The array families a program runs on."""
    return ["host"] if program.endswith(("# copies", "# host")) else list(FAMILIES)


def run(program, modules, make):
    """The result of a program whose samples are made by `make`."""
    *body, last = re.split(r";\s", program.split("#")[0].strip())
    names = {name: _imported(path) for name, path in modules.items()}
    names |= {"np": np, "make": make, "xp": make(0.0).__array_namespace__()}
    names |= {name: make(values) for name, values in SAMPLES.items() if _mentions(program, name)}
    exec("\n".join(body), names)
    return eval(last, names)


def _imported(path):
    """A module, or a thing in one."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _mentions(program, name):
    return re.search(rf"(?<![\w.]){name}(?!\w)", program) is not None


def leaves(result):
    """The arrays and numbers of a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def outcome(program, modules, family):
    """What is wrong with a program's result on our arrays; an empty text if nothing is."""
    make = FAMILIES[family]
    kept = not program.endswith("# copies")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries; ours are errors in the other tests
            expected = leaves(run(program, modules, np.array))
            with mb.allow_scalar():
                got = leaves(run(program, modules, make))
                return _differences(got, expected, make.home if kept else None)
    except Exception:
        return traceback.format_exc(limit=-6)


def refusal(program, modules):
    """What is wrong with how a program that needs the host's memory takes a device's arrays.

    They are refused, with the cure. Or else the library gets along, and its result is right.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = leaves(run(program, modules, mb.RefArray))
        except Exception as e:
            said = traceback.format_exception(e, limit=-6)
            return "" if any("mb.to_numpy" in part or "mb.adapt" in part for part in said) else "".join(said)
        got = [mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else x for x in got]
        return _differences(got, leaves(run(program, modules, np.array)), None)


def _differences(got, expected, place):
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for a, b in zip(got, expected, strict=True):
        if isinstance(b, str) and a == b:
            continue
        if isinstance(b, np.ndarray) and getattr(a, "place", None) != place:
            return f"gave a {type(a).__name__}: {a!r}"
        values = mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else np.asarray(a)
        if values.shape != np.shape(b) or values.dtype.kind != np.asarray(b).dtype.kind:
            return f"gave {values!r} instead of {b!r}"
        if not np.allclose(values, b, rtol=1e-9, atol=1e-12, equal_nan=True):
            return f"gave {values!r} instead of {b!r}"
    return ""
