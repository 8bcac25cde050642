"""Names that are not ours, and what stands for them: NumPy's, CuPy's, JAX's, PyTorch's, and such with a typo.

`mb.name` is answered at once (`missing`). What Python itself says of a call or of an array's attribute has no
cure; it is added as a note where an error is shown that nobody caught (`advice`; dispatch/tracebacks.py), so
that programs which ask whether an array has an attribute pay nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import linecache
import re
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import loading, misuse
from mirabelle.dispatch.settings import Settings

# Names of NumPy's that are not here on purpose, and what to write.
_INSTEAD = {
    "dg": "It is imported by itself: `import mirabelle.dg as dg`.",
    "ndarray": "The type of all arrays is mb.AbstractArray: `isinstance(x, mb.AbstractArray)`. Arrays are made "
               "with mb.array or mb.zeros.",
    "nditer": "Go through the elements with `for i, x in mb.ndenumerate(a)`, or compute on whole arrays with "
              "`mb.map(f, a)`.",
    "nested_iters": "Go through places with `mb.ndindex(shape)`.",
    "frompyfunc": "Arrays hold numbers, not Python's objects: `mb.vectorize(f)`, or `mb.broadcast(f, x, y)`, "
                  "which is compiled.",
    "matrix": "A matrix is an array of two dimensions: `mb.array(data, ndmin=2)`, with `@` for products.",
    "asmatrix": "A matrix is an array of two dimensions: `mb.array(data, ndmin=2)`, with `@` for products.",
    "bmat": "Put matrices together with `mb.block([[a, b], [c, d]])`.",
    "memmap": "Read a file where it lies with `mb.load(file, mmap=True)`.",
    "poly1d": "Polynomials are arrays of coefficients: `mb.polyval(p, x)`, `mb.roots(p)`, `mb.polyder(p)`.",
    "polynomial": "Polynomials are arrays of coefficients: `mb.polyval(p, x)`, `mb.polyfit(x, y, degree)`.",
    "ma": "Mask with `where=`, as in `mb.sum(x, where=mask)`, or with NaN, as in `mb.nansum(x)`.",
    "row_stack": "It is `mb.vstack`.",
    "trapz": "It is `mb.trapezoid`.",
    "in1d": "It is `mb.isin`.",
    "product": "It is `mb.prod`.",
    "emath": "Take the function of complex numbers: `mb.sqrt(x.astype(complex))`.",
    "seterr": "mirabelle warns of no NaN or infinity: look with `mb.all(mb.isfinite(x))`.",
    "float128": "The widest floating-point numbers are mb.float64's.",
    "longdouble": "The widest floating-point numbers are mb.float64's.",
    "complex256": "The widest complex numbers are mb.complex128's.",
    "clongdouble": "The widest complex numbers are mb.complex128's.",
    "datetime64": "Arrays hold numbers: count seconds or days from a date, as integers.",
    "timedelta64": "Arrays hold numbers: count seconds or days, as integers.",
    "object_": "Arrays hold numbers, not Python's objects.",
    "str_": "Arrays hold numbers, not texts.",
    "bytes_": "Arrays hold numbers: `mb.frombuffer(data, mb.uint8)`.",
}  # fmt: skip
# The letters of the dtypes that arrays have.
_NUMBERS = frozenset("?bhilqBHILQefdFD")
# NumPy's older names of what generators do.
_OLD_RANDOM = {
    "rand": "random(size)", "random_sample": "random(size)", "ranf": "random(size)", "sample": "random(size)",
    "randn": "normal(size=size)", "randint": "integers(low, high, size)",
    "random_integers": "integers(low, high, size)",
}  # fmt: skip


# Words of other array libraries, as `module.word` there, and what to write.
_ELSEWHERE = {
    "grad": "Derivatives are of functions, `mb.autodiff.gradient(f, x)`, and taken forwards.",
    "value_and_grad": "It is `mb.autodiff.value_and_gradient(f, x)`.",
    "vmap": "There is no such transformation: write axes, `x[:, None]`, or `mb.broadcast(f, x)` for a "
            "function of numbers.",
    "lax": "Loops and branches of programs are `mb.while_loop`, `mb.fori_loop` and `mb.cond`.",
    "numpy": "The functions are here: `mb.sum(x)`.",
    "asnumpy": "It is `mb.to_numpy(x)`.",
    "device_put": "It is `mb.adapt(mb.CuArray, x)`.",
    "device": "A place is said by an array type, `mb.zeros(3, device=mb.CuArray)`; `mb.devices()` names "
              "those that are there.",
    "cuda": "Arrays on a card are `mb.CuArray`s: `mb.CuArray(x)`, `mb.zeros(3, device=mb.CuArray)`.",
    "tensor": "It is `mb.HostArray(x)`, or `mb.CuArray(x)` on a card.",
    "Tensor": "The type of all arrays is mb.AbstractArray; make one with `mb.HostArray(x)`.",
    "Array": "The type of all arrays is mb.AbstractArray; make one with `mb.HostArray(x)`.",
    "no_grad": "Nothing is recorded for derivatives, so that nothing has to be switched off.",
    "from_numpy": "It is `mb.HostArray(x)`, which copies, or `mb.asarray(x)`.",
    "cat": "It is `mb.concat([x, y])`.",
    "manual_seed": "There is no global generator: `rng = mb.random.default_rng(seed)`.",
    "ElementwiseKernel": "Expressions are fused as they are; a function of numbers is `mb.broadcast(f, x)`.",
    "RawKernel": "Kernels are written in Python, under `@mb.kernel`.",
    "float": "Say how large: mb.float64, or Python's `float`.",
    "int": "Say how large: mb.int64, or Python's `int`.",
    "complex": "Say how large: mb.complex128, or Python's `complex`.",
}  # fmt: skip
# Attributes that arrays of other libraries have.
_ATTRIBUTES = [
    ("numpy get cpu asnumpy compute", "In NumPy's memory it is `mb.to_numpy(x)`; computed where it is, "
     "`mb.materialize(x)`."),
    ("to cuda device_put", "`mb.adapt(mb.CuArray, x)` moves an array; `x.astype(mb.float32)` "
     "changes its dtype."),
    ("block_until_ready wait persist", "`mb.materialize(x)` computes it, `mb.synchronize()` waits for a card."),
    ("at", "Arrays are written in place: `x[i] = v`; `mb.add_at(x, i, v)` adds, also where places repeat."),
    ("clone detach", "It is `x.copy()`."),
    ("backward grad requires_grad", "Derivatives are of functions: `mb.autodiff.gradient(f, x)`."),
    ("local halo layout owned", "Arrays over processes have it: `mb.DArray[mb.HostArray](x)`."),
    ("values to_list array", "In NumPy's memory it is `mb.to_numpy(x)`, as lists `x.tolist()`."),
    ("length len count", "The first size is `len(x)`, the number of elements `x.size`, that of those not zero "
     "`mb.count_nonzero(x)`."),
    ("push extend pop remove", "Arrays keep their length: `mb.concat([x, y])`, `mb.delete(x, i)` copy."),
    ("index find", "Where a value stands says `mb.argwhere(x == v)`."),
    ("apply applymap vectorize", "A function of arrays is applied as it is, `f(x)`, one of numbers by "
     "`mb.map(f, x)`."),
    ("unsqueeze", "It is `x[:, None]`, or `mb.expand_dims(x, axis=0)`."),
    ("permute", "It is `x.transpose(1, 0)`."),
    ("add_ sub_ mul_ div_ zero_", "Arrays are written in place by `x += y` and `x[...] = 0`."),
    ("dumps dump", "It is `pickle.dumps(x)`, or `mb.save(path, x)`."),
    ("byteswap newbyteorder getfield setfield", "Bytes are looked at in NumPy's memory: "
     "`mb.to_numpy(x).byteswap()`."),
    ("data ctypes", "The memory is NumPy's in `mb.to_numpy(x)`; on the host it is "
     "`memoryview(x)`."),
    ("resize", "Arrays keep their length: `mb.resize(x, shape)` is a new one."),
    ("iloc loc", "Elements and parts are `x[i]` and `x[i:j]`."),
    ("__delitem__", "Arrays keep their length: `mb.delete(x, i)` is a new one without an element."),
]  # fmt: skip
# How what cannot be set is had.
_SETTERS = {
    "shape": "x = x.reshape(shape)", "dtype": "x = x.astype(dtype)", "T": "x = x.T",
    "device": "x = mb.adapt(to, x)",
}  # fmt: skip
# Parameters that are called otherwise elsewhere.
_PARAMETERS = {
    "dim": "axis",
    "axes": "axis",
    "keepdim": "keepdims",
    "size": "shape",
    "degree": "order",
    "static_argnames": "static",
}
# Where functions are looked for by the name that Python says of them.
_SPACES = ("", ".linalg", ".fft", ".autodiff", ".distributed", ".compiling", ".meshdata", ".dg")


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that is not in the namespace: says what stands for it, if there is something."""
    text = f"{module} has no {name!r}."
    theirs = None if name.startswith("_") else getattr(np, name, None)
    if instead := _INSTEAD.get(name) or _ELSEWHERE.get(name):
        text += f" {instead}"
    elif isinstance(theirs, type) and issubclass(theirs, np.generic):
        known = theirs in np.sctypeDict.values() and np.dtype(theirs).char in _NUMBERS
        text += f" Say how large: mb.{np.dtype(theirs).name}." if known else " Arrays hold numbers."
    elif theirs is not None:
        text += f" It is NumPy's alone, `numpy.{name}`: give it what `mb.to_numpy(x)` gives."
    elif not name.startswith("_"):  # (those are asked for by programs, again and again)
        near = _near(name, loading.public().__all__)
        text += f" Did you mean `mb.{near}`?" if near else ""
    return AttributeError(text, name=name)


def missing_random(name: str) -> AttributeError:
    """The error for a name that is not in `mb.random`: NumPy's functions of its global generator are not."""
    from mirabelle.arraytypes.random import Generator

    text = f"mirabelle.random has no {name!r}."
    call = _OLD_RANDOM.get(name) or (f"{name}(...)" if hasattr(Generator, name) else None)
    made = " There is no global generator: make one with `rng = mb.random.default_rng(seed)`, and "
    if name in ("seed", "get_state", "set_state", "RandomState"):
        text += f"{made}hand it on."
    elif call is not None and not name.startswith("_"):
        text += f"{made}call `rng.{call}`."
    return AttributeError(text, name=name)


# What is added to what Python says


def advice(error: BaseException) -> str:
    """The cure for an error of Python's own about an attribute or a call; empty if there is none.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.ones(3).block_until_ready()
    ... except AttributeError as e:
    ...     print(advice(e))
    `mb.materialize(x)` computes it, `mb.synchronize()` waits for a card.
    """
    if isinstance(error, (IndexError, ValueError)) and not isinstance(error, AttributeError):
        return misuse.cure_of(str(error)) if _passed_ours(error) and not str(error).endswith((".", "`")) else ""
    if isinstance(error, AttributeError):
        if str(error) == "__delitem__":
            return _attribute(AbstractArray, "__delitem__")
        if set_ := re.match(r"property '(\w+)' of '\w*Array\b.*' object has no setter", str(error)):
            return f"It is `{_SETTERS.get(set_[1], 'x[...] = y')}`."
        return _attribute(type(error.obj), error.name, error.obj) if error.name else ""
    if not isinstance(error, TypeError):
        return ""
    if re.search(r"Object of type \w*Array\b.* is not JSON serializable", str(error)):
        return "JSON has lists of Python's numbers: `json.dumps(x.tolist())`."
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    names = {**at.tb_frame.f_globals, **at.tb_frame.f_locals} if at is not None else {}
    called = re.match(r"(\w+)\(\) (missing|takes)", str(error))
    there = names.get(called[1]) if called else None
    if there is not None and not str(there.__module__).startswith("mirabelle"):
        return ""  # (a user's function of that name)
    return _call(str(error)) or _called_value(error, at, names) or _operands(str(error))


def _passed_ours(error: BaseException) -> bool:
    at = error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__", "")).startswith("mirabelle."):
            return True
        at = at.tb_next
    return False


def _called_value(error: TypeError, at: types.TracebackType | None, names: dict[str, Any]) -> str:
    """What to write for `x.size()`: a value of an array, or of a module of ours, that is called."""
    if at is None or not str(error).endswith("object is not callable"):
        return ""
    line = linecache.getline(at.tb_frame.f_code.co_filename, at.tb_lineno, at.tb_frame.f_globals)
    for name, attribute in re.findall(r"\b(\w+)\.(\w+)\(", line):
        owner = names.get(name)
        ours = isinstance(owner, AbstractArray) or owner is sys.modules["mirabelle"]
        if ours and not callable(getattr(owner, attribute, print)):
            return f"`{name}.{attribute}` is a value, and takes no parentheses."
    return ""


def _operands(said: str) -> str:
    """What to do where Python finds no operator for an array and something else, or needs a key."""
    if re.match(r"unhashable type: '\w*Array\b", said):
        return "Arrays change, and so are no keys: take `tuple(x.tolist())`, or of the object itself `id(x)`."
    found = re.search(r"unsupported operand type\(s\) for .*?: '(.+)' and '(.+)'", said)
    if found is None or not any(re.match(r"\w*Array\b", name) for name in found.groups()):
        return ""
    python = {t.__name__: t for kinds, _ in misuse.NO_ARRAYS for t in kinds}
    return next((misuse.no_array(python[name]) for name in found.groups() if name in python), "")


def _attribute(kind: type, name: str, owner: Any = None) -> str:
    """What to write instead of an attribute that an array, or a module of ours, has not."""
    if issubclass(kind, AbstractArray):
        for names, instead in _ATTRIBUTES:
            if name in names.split():
                return instead
        if name in loading.public().__all__ and callable(getattr(loading.public(), name)):
            return f"It is a function: `mb.{name}(x, ...)`."
        near = _near(name, dir(kind))
        return f"Did you mean `x.{near}`?" if near else ""
    rng = _generator()
    if rng is not None and issubclass(kind, rng):
        if name in ("seed", "get_state", "set_state"):
            return "A generator is made with its seed: `rng = mb.random.default_rng(seed)`."
        near = _near(name, dir(kind))
        return (
            f"It is `rng.{_OLD_RANDOM[name]}`."
            if name in _OLD_RANDOM
            else f"Did you mean `rng.{near}`?"
            if near
            else ""
        )
    if isinstance(owner, contextlib._GeneratorContextManager) and str(owner.func.__module__).startswith(
        "mirabelle"
    ):
        return f"It is for a block, `with mb.{owner.func.__name__}(...) as c:`, and then there is `c.{name}`."
    if isinstance(owner, Settings):
        near = next((known for known in vars(owner) if name in known), _near(name, vars(owner)))
        return f"Did you mean `mb.settings.{near}`?" if near else "`python -m mirabelle settings` lists them."
    if inspect.ismodule(owner) and owner.__name__.startswith("mirabelle."):
        short = owner.__name__.removeprefix("mirabelle.")
        near = _near(name, getattr(owner, "__all__", ()))
        return _ELSEWHERE.get(name) or (f"Did you mean `mb.{short}.{near}`?" if near else "")
    return ""


def _call(said: str) -> str:
    """What to write instead of a call that does not fit a function of ours."""
    if unknown := re.search(
        r"(?:^|[ .:])(\w+)(\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", said
    ):
        function, _, word = unknown.groups()
        known = _parameters(function)
        other = _PARAMETERS.get(word, "")
        other = other if other in known else _near(word, known)
        if other or not known:
            return f"Here it is `{other}=`." if other else ""
        return f"The parameters of {function} are {', '.join(known)}."
    if re.match(r"DenseArray\.__new__\(\) missing", said):
        return "It is made of its elements, `mb.HostArray([1, 2, 3])`; of a shape there is `mb.zeros((2, 3))`."
    if of := re.match(r"(\w+)\.(\w+)\(\) (?:missing|takes) .*positional", said):
        for shown, kind in (("x", AbstractArray), ("rng", _generator())):
            if any(k.__name__ == of[1] and hasattr(k, of[2]) for k in getattr(kind, "__mro__", ())):
                found = list(inspect.signature(getattr(kind, of[2])).parameters.values())
                return f"It is called as `{shown}.{of[2]}({_words(found)})`."
    if lacking := re.match(r"(\w+)\(\) missing \d+ required positional", said):
        return _called_as(lacking[1], re.findall(r"'(\w+)'", said))
    if many := re.match(r"(\w+)\(\) takes (?:from \d+ to )?\d+ positional arguments? but", said):
        function = many[1]
        if _parameters(function)[:1] in (["arrays"], ["tup"]):
            return f"Arrays are given as one list: `mb.{function}([x, y])`."
        return _called_as(function)
    if said == "'Grid' object is not callable":
        return "Grids are indexed: `mb.mgrid[0:3, 0:4]`."
    if re.match(r"(Dense|Cu|ROC|Ref)Array\.__new__\(\) takes .* positional arguments", said):
        return "Elements are given as one list: `mb.HostArray([1, 2, 3])`; a shape goes to `mb.zeros((2, 3))`."
    callable_ = re.match(r"'(.*)' object is not callable", said)
    if callable_ and re.match(r"\w+(Array\b|Transpose\b)", callable_[1]):
        return (
            "An array is no function: elements are `x[i]`, and `x.T`, `x.shape`, `x.size` take no parentheses."
        )
    return ""


def _called_as(function: str, having: Iterable[str] = ()) -> str:
    """How a public function is called, which has these parameters; empty if there is no such function."""
    for space, found in _signatures(function):
        if not {p.name for p in found}.issuperset(having):
            continue
        of_one = {"maximum": "max", "minimum": "min"}.get(function)
        text = f"It is called as `mb{space}.{function}({_words(found)})`."
        return f"{text} The largest or smallest element of one array is `mb.{of_one}(x)`." if of_one else text
    return ""


def _words(found: list[inspect.Parameter]) -> str:
    """Parameters as they stand in a call."""
    named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "self"]
    return ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in named)


def _generator() -> Any:
    """The class of generators of random numbers, where there are any."""
    return getattr(sys.modules.get("mirabelle.random"), "Generator", None)


def _parameters(function: str) -> list[str]:
    """The names of a public function's parameters; none if there is no such function."""
    for _, found in _signatures(function):
        return [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name != "self"]
    return []


def _signatures(function: str) -> Iterator[tuple[str, list[inspect.Parameter]]]:
    """Where public functions of a name are, and their parameters."""
    owners = [(space, sys.modules.get(f"mirabelle{space}")) for space in _SPACES]
    public = [(space, owner) for space, owner in owners if function in getattr(owner, "__all__", ())]
    rng = _generator()
    for space, owner in [*public, (".random.default_rng(seed)", rng)]:
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            yield space, list(inspect.signature(getattr(owner, function)).parameters.values())


def _near(name: str, known: Iterable[str]) -> str:
    """The known name that looks like one that is not."""
    public = [k for k in known if not k.startswith("_")]
    return next(iter(difflib.get_close_matches(name, public, 1, 0.75)), "")
