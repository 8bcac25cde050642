"""Small programs, each a line or three, that hand arrays to other libraries.

A program is text, so that it runs unchanged on NumPy's arrays and on ours, also in another
process. Its result is that of its last line. The names in it are samples (below) and modules.
Where a library gives back NumPy's arrays whatever it gets, the program says `# host`.
"""

import importlib
import re
import traceback

import numpy as np

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


def parts(program):
    """The statements of a program, its last expression, and whether it gives NumPy's arrays."""
    text = program.strip()
    host = text.endswith("# host")
    if host:
        text = text[: -len("# host")].rstrip()
    *body, last = [line.strip() for line in re.split(r";\s|\n", text)]
    return "\n".join(body), last, host


def run(program, modules, make):
    """The result of a program whose samples are made by `make`."""
    names = {m.rsplit(".", 1)[-1]: importlib.import_module(m) for m in modules}
    body, last, _ = parts(program)
    names |= {"np": np, "make": make} | {
        name: make(values) for name, values in SAMPLES.items() if _mentions(program, name)
    }
    exec(body, names)
    return eval(last, names)


def _mentions(program, name):
    return re.search(rf"(?<![\w.]){name}(?!\w)", program) is not None


def leaves(result):
    """The arrays and numbers of a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in leaves(item)]
    if isinstance(result, dict):
        return [leaf for item in result.values() for leaf in leaves(item)]
    return [result]


def outcome(program, modules, make, ours, contents):
    """What is wrong with a program's result on our arrays; an empty text if nothing is."""
    try:
        expected = leaves(run(program, modules, np.array))
        got = leaves(run(program, modules, make))
    except Exception:
        return traceback.format_exc(limit=-6)
    _, _, host = parts(program)
    if len(expected) != len(got):
        return f"{len(got)} results for {len(expected)}"
    for a, b in zip(got, expected, strict=True):
        if isinstance(b, (np.ndarray, np.generic)) and isinstance(a, ours) == host:
            return f"gave a {type(a).__name__}"
        values = contents(a)
        if values.shape != np.shape(b) or not np.allclose(values, b, rtol=1e-9, atol=1e-12, equal_nan=True):
            return f"gave {values!r} instead of {b!r}"
    return ""
