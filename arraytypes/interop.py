"""NumPy's functions on our arrays: np.sin(x), np.add(x, y, out=z), np.pad(x, 1) stay here.

One rule serves all functions: `np.f(x, ...)` is our function of the same name, and the arguments go to
its parameters of the same names. Where NumPy's arguments mean something that ours lack, a function
of NumPy's signature stands in `functions/conventions.py`. What we do not have is refused: nothing leaves an
array unasked.

>>> import mirabelle as mb, numpy as np
>>> x = mb.HostArray([3.0, 1.0, 2.0])
>>> np.sort(x, kind="stable")
HostArray[float64, 1]([1., 2., 3.])
>>> y = mb.zeros(3)
>>> np.add(x, 1, out=y, where=x > 1) is y
True
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array, as_selection, is_elsewhere
from mirabelle.arraytypes.elementwise import build_node, cast_to, join_families
from mirabelle.dispatch import loading, verbs
from mirabelle.dispatch.ops import Op, foreign_name
from mirabelle.dispatch.verbs import ADAPTED, UFUNC_OPERATORS, UFUNCS

# Ufuncs

# Ufuncs over vectors and matrices, and those we compose: by their names in the namespace.
_NAMED = {
    getattr(np, name): name
    for name in ("fabs", "float_power", "rint", "vecdot", "matvec", "vecmat")
    if hasattr(np, name)
}
_REDUCE = {
    "add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max", "logical_or": "any",
    "logical_and": "all",
}  # fmt: skip
# SciPy's names for functions that are verbs.
_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "expm1": "expm1", "gamma": "gamma", "gammaln": "lgamma", "log1p": "log1p",
}  # fmt: skip


@functools.cache
def _overrides(kind: type) -> bool:
    """Has a type an `__array_ufunc__` of its own, which leaves ufuncs to us where we are among the operands?"""
    if issubclass(kind, (AbstractArray, np.ndarray, np.generic)):
        return False
    return getattr(kind, "__array_ufunc__", None) is not None


def numpy_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """What a ufunc, or a method of one, is when one of the operands is ours."""
    if method == "__call__" and not kwargs:  # a NumPy number as first operand of an operator comes by here
        operator = UFUNC_OPERATORS.get(ufunc)
        if operator is not None and list not in map(type, inputs) and tuple not in map(type, inputs):
            result = operator(*inputs)
            if result is not NotImplemented:
                return result
    if True in map(_overrides, map(type, inputs)):
        # Containers of other libraries (a table of pandas') compute with NumPy's arrays.
        given = [verbs.numpy_view(x) if isinstance(x, AbstractArray) else x for x in inputs]
        return getattr(ufunc, method)(*given, **kwargs)
    run = _METHODS.get(method)
    return NotImplemented if run is None else run(ufunc, inputs, kwargs)


def _operands(inputs: tuple[Any, ...], outputs: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Lists, and arrays of libraries that leave ufuncs to NumPy (JAX's), as ours, where the others are."""
    first = next((x for x in (*inputs, *outputs) if isinstance(x, AbstractArray)), None)
    return tuple(as_array(x, first) if is_elsewhere(x) else x for x in inputs)


def _called(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc(*inputs, out=, where=, dtype=, casting=)."""
    run = _implementation(ufunc, inputs)
    return run if run is NotImplemented else called(run, ufunc, inputs, kwargs)


def called(run: Any, function: np.ufunc | Op, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """run(*inputs) with a ufunc's options; `function` says what dtypes it works in, and its name."""
    name = getattr(function, "name", None) or function.__name__  # type: ignore[union-attr]
    out = kwargs.pop("out", None)
    out = () if out is None else out if isinstance(out, tuple) else (out,)
    where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "same_kind")
    for ignored in ("order", "subok"):  # which change no value
        kwargs.pop(ignored, None)
    _refuse_options(name, kwargs)
    inputs = _operands(inputs, out)
    if dtype is not None:
        inputs = _cast_inputs(function, inputs, dtype, casting)
    result = run(*inputs)
    if result is NotImplemented:
        return result
    if where is not True and not any(x is not None for x in out):
        raise TypeError(
            f"{name}(..., where=) leaves elements undefined without out=. Write "
            f"`mb.where(mask, {getattr(run, '__name__', name)}(...), other)`."
        )
    if function.nout == 1:
        core = _core(function, inputs, result) if out else 0
        return _delivered(result, out[0] if out else None, where, casting, core)
    outs = out or (None,) * function.nout
    return tuple(_delivered(r, o, where, casting) for r, o in zip(result, outs, strict=True))


def _core(function: np.ufunc | Op, inputs: tuple[Any, ...], result: Any) -> int:
    """How many of a result's last dimensions are of the operation itself (of a product), not of its loop over
    such."""
    signature = getattr(getattr(function, "ufunc", function), "signature", None)
    if signature is None:
        return 0
    own = [len(names.split(",")) for names in signature.partition("->")[0].strip("()").split("),(")]
    ranks = [len(x.shape) if hasattr(x, "shape") else np.ndim(x) for x in inputs]
    return len(result.shape) - max(0, *[rank - n for rank, n in zip(ranks, own, strict=True)])


def _implementation(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Our function for a ufunc: a verb, a function of the namespace, or a node that runs the ufunc itself."""
    verb = UFUNCS.get(ufunc)
    if verb is not None:
        return verb.operator
    name = _NAMED.get(ufunc)
    if name is not None:
        return getattr(_space("numpy"), name)
    complex_ = any(getattr(x, "dtype", None) is not None and x.dtype.kind == "c" for x in inputs)
    special = sys.modules.get("scipy.special")
    if getattr(special, ufunc.__name__, None) is ufunc and ufunc.__name__ in _SPECIAL and not complex_:
        return verbs.ELEMENTWISE[_SPECIAL[ufunc.__name__]].operator
    return functools.partial(_foreign, ufunc)


def _foreign(ufunc: np.ufunc, *inputs: Any) -> Any:
    """A ufunc of another package: lazy and fused like NumPy's on the host, which can call its loops."""
    family = join_families(
        ufunc.__name__, tuple(x for x in inputs if isinstance(x, (AbstractArray, np.ndarray)))
    )
    if family.home.rank >= 2:
        raise TypeError(
            f"{ufunc.__name__} comes from a package that computes on the host, and the data is on "
            f"{family.home}. Move it there and back: `mb.adapt(mb.HostArray, x)`; or write the function with "
            "operations that mirabelle has, for instance with mb.broadcast(f, x)."
        )
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None and not _of_python(ufunc):
        return build_node(_operation(ufunc), inputs)
    # One over whole slices, or one of Numba's, which compiles for the operands it meets: run at once.
    views = [verbs.numpy_view(x) if isinstance(x, AbstractArray) else x for x in inputs]
    if _of_python(ufunc):
        made = ufunc(*views)
        made = tuple([_as_numbers(m) for m in made]) if isinstance(made, tuple) else _as_numbers(made)
        return library._wrapped(family, made)
    return library._wrapped(family, ufunc(*views))


def _of_python(ufunc: np.ufunc) -> bool:
    """Whether a ufunc calls a function of Python's (np.frompyfunc), which takes and returns objects."""
    return isinstance(ufunc, np.ufunc) and ufunc.ntypes == 1 and set(ufunc.types[0]) <= set("O->")


def _as_numbers(objects: Any) -> np.ndarray:
    """What a function of Python's returned for each element, in the dtype of the numbers it returned."""
    objects = np.asarray(objects, object)
    return np.asarray(objects.tolist()).reshape(objects.shape)


@functools.cache
def _operation(ufunc: np.ufunc) -> Op:
    # The cost of a function of unknown work: storing its values beats computing them again.
    return Op(foreign_name(ufunc.__name__), ufunc.nin, nout=ufunc.nout, ufunc=ufunc, cost=60)


def _refuse_options(name: str, options: dict[str, Any]) -> None:
    known = ("signature", "sig")  # which may be None
    left = {k: v for k, v in options.items() if v is not np._NoValue and not (k in known and v is None)}
    if left:
        raise TypeError(
            f"{name} on mirabelle's arrays takes out=, where=, dtype= and casting=; not "
            f"{', '.join(f'{k}={v!r}' for k, v in left.items())}."
        )


def _cast_inputs(function: np.ufunc | Op, inputs: tuple[Any, ...], dtype: Any, casting: Any) -> tuple[Any, ...]:
    """Operands in the dtypes of the loop that gives results of `dtype`."""
    dtype = np.dtype(dtype)
    ufunc = getattr(function, "ufunc", function)
    loop: Any = [dtype] * len(inputs)
    if isinstance(ufunc, np.ufunc):
        given = tuple(_kind_of(x) for x in inputs)
        wanted = (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
        loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), signature=wanted, casting=casting)
    return tuple(
        cast_to(x, d)
        if isinstance(x, AbstractArray)
        else np.asarray(x, d)[()]
        if np.ndim(x) == 0
        else x.astype(d)
        for x, d in zip(inputs, loop, strict=False)
    )


def _kind_of(x: Any) -> Any:
    """What a ufunc resolves its dtypes by: numbers of Python's are weak, but for truth values."""
    return np.dtype(bool) if type(x) is bool else getattr(x, "dtype", type(x))


def _delivered(result: Any, out: Any, where: Any, casting: Any, core: int = 0) -> Any:
    """A result, written into `out` where the mask holds. Its last `core` dimensions are not stretched."""
    if out is None:
        return result
    if where is not True:
        result = verbs.where(where, result, out)
    rank = len(out.shape)  # (a write would stretch a result, or cut it where dimensions are 1)
    if len(result.shape) > rank or out.shape[rank - core :] != result.shape[len(result.shape) - core :]:
        raise ValueError(
            f"non-broadcastable output operand with shape {out.shape} doesn't match the broadcast shape "
            f"{result.shape}. Give an output of that shape: `out=mb.empty({result.shape})`."
        )
    if isinstance(out, AbstractArray):
        return verbs.assign(out, result, casting=casting)
    np.copyto(out, verbs.numpy_view(result), casting=casting)
    return out


def _reduced(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.reduce(x, axis=0, dtype=, out=, keepdims=, initial=, where=)."""
    from mirabelle.arraytypes.functions import reducing
    from mirabelle.arraytypes.functions.outputs import into

    (x,) = _operands(inputs, kwargs.get("out") or ())
    options = {k: v for k, v in kwargs.items() if v is not np._NoValue}
    out = (options.pop("out", None) or (None,))[0]
    axis = options.pop("axis", 0)
    name = _REDUCE.get(ufunc.__name__) if ufunc in UFUNCS else None
    dtype = options.get("dtype")
    if name is None or (dtype is not None and name not in ("sum", "prod")):
        return into(out, _through_library(ufunc, "reduce", as_array(x), axis=axis, **options))
    if dtype is None:
        options.pop("dtype", None)
    initial = options.pop("initial", None) if name in ("any", "all") else None
    if initial is None:
        return getattr(reducing, name)(x, axis=axis, out=out, **options)
    combine = verbs.logical_or if name == "any" else verbs.logical_and
    return into(out, combine(getattr(reducing, name)(x, axis=axis, **options), bool(initial)), "unsafe")


def _accumulated(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.accumulate(x, axis=0, dtype=, out=)."""
    from mirabelle.arraytypes.functions.outputs import into

    (x,) = _operands(inputs, kwargs.get("out") or ())
    out = (kwargs.pop("out", None) or (None,))[0]
    if kwargs.get("dtype") is None and ufunc in UFUNCS:
        return into(out, verbs.accumulate(as_array(x), ufunc, kwargs.get("axis", 0)))
    return into(out, _through_library(ufunc, "accumulate", as_array(x), **kwargs))


def _reduced_at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.reduceat(x, indices, axis=0, dtype=, out=)."""
    from mirabelle.arraytypes.functions.outputs import into

    out = (kwargs.pop("out", None) or (None,))[0]
    x, indices = inputs
    operands = (x, as_selection(indices, x)) if isinstance(x, AbstractArray) else _operands(inputs)
    return into(out, _through_library(ufunc, "reduceat", *operands, **kwargs))


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.outer(x, y): all pairs, as a pending node."""
    a, b = inputs
    if not (isinstance(a, AbstractArray) and isinstance(b, AbstractArray)):
        a, b = _operands(inputs)
        first = a if isinstance(a, AbstractArray) else b
        a, b = as_array(a, first), as_array(b, first)
    pairs = verbs.getitem(a, (..., *[None] * b.ndim)), b
    operator = None if kwargs else UFUNC_OPERATORS.get(ufunc)
    return _called(ufunc, pairs, kwargs) if operator is None else operator(*pairs)


def _as_numpys(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, AbstractArray) else x


def _at(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.at(x, index, values): for every entry of the index in turn."""
    from mirabelle.arraytypes.indexing import write_at

    x, index, *values = inputs
    if isinstance(x, np.ndarray):
        # (Into NumPy's array: ours on the host are read, others say where they are.)
        entries = tuple([_as_numpys(i) for i in index]) if isinstance(index, tuple) else _as_numpys(index)
        ufunc.at(x, entries, *map(_as_numpys, values))
        return None
    if isinstance(x, AbstractArray) and ufunc.nin == 1:
        name = ufunc.__name__
        raise TypeError(
            f"np.{name}.at computes once more each time that an entry is named, and no place does that. Write "
            f"`x[i] = mb.{name}(x[i])`, which does so once."
        )
    if not isinstance(x, AbstractArray) or len(values) != 1 or ufunc not in UFUNCS:
        return NotImplemented
    (value,) = _operands(tuple(values), (x,))
    write_at(x, index if isinstance(index, tuple) else (index,), value, op=ufunc.__name__)
    return None


_METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _called,
    "reduce": _reduced,
    "accumulate": _accumulated,
    "reduceat": _reduced_at,
    "outer": _outer,
    "at": _at,
}


def _through_library(ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
    """A ufunc's method as a routine of the place."""
    if ufunc not in UFUNCS:
        raise TypeError(
            f"{ufunc.__name__}.{method} does not know mirabelle's arrays. Fetch the values first: "
            f"`{ufunc.__name__}.{method}(mb.to_numpy(x))`."
        )
    return library.call(f"{ufunc.__name__}.{method}", *operands, **options)


# Functions


def numpy_function(func: Any, args: Any, kwargs: dict[str, Any], like: Any = None) -> Any:
    """What a NumPy function that is no ufunc does with our arrays.

    `like` is the array that was asked first: functions that make arrays make such.
    """
    kind = type(like) if isinstance(like, AbstractArray) else None
    found = ADAPTED.get((func, kind))  # type: ignore[arg-type]
    if found is None:
        if len(ADAPTED) >= _MANY:
            ADAPTED.clear()
        found = ADAPTED[func, kind] = _adapted(func, kind)  # type: ignore[index]
    return (found[2] if type(found) is tuple else found)(*args, **kwargs)


# So many functions are remembered, each for the types it was called with.
_MANY = 4096


def _adapted(func: Any, kind: type | None) -> Any:
    """Our function for NumPy's, called with NumPy's arguments, as `verbs.ADAPTED` has it."""
    from mirabelle.arraytypes.functions.conventions import CONVENTIONS

    name, module = func.__name__, func.__module__
    if module == "numpy" and name in CONVENTIONS:
        return CONVENTIONS[name]  # type: ignore[no-any-return]
    ours = getattr(_space(module, kind), name, None)
    if ours is None or isinstance(ours, type):
        return functools.partial(_refuse, func)
    try:
        theirs = inspect.signature(func)
        mine = inspect.signature(ours)
    except ValueError:  # a builtin without a signature
        return ours  # type: ignore[no-any-return]
    matched = _matched(theirs, mine)
    general = functools.partial(_rearranged, func, ours, theirs, mine, matched)
    leading, names = _alike(theirs, mine, matched)
    if not leading and not names:
        return general

    behind = tuple(theirs.parameters)[leading:]

    def adapted(*args: Any, **kwargs: Any) -> Any:
        if len(args) > leading:
            more = dict(zip(behind, args[leading:], strict=False))
            if len(more) + leading < len(args) or not more.keys().isdisjoint(kwargs):
                return general(*args, **kwargs)
        else:
            more = {}
        for name, value in (more | kwargs).items() if more else kwargs.items():
            if name not in names or value is np._NoValue:
                return general(*args, **kwargs)
        return ours(*args[:leading], **more, **kwargs)

    return leading, ours, adapted


def _space(module: str, kind: type | None = None) -> Any:
    """The namespace that answers for a module of NumPy's."""
    mirabelle = loading.public()

    space: Any = mirabelle
    if kind is not None:
        from mirabelle.arraytypes.elementwise import default_family, leaf_family
        from mirabelle.arraytypes.makers import namespace

        family = leaf_family(kind)
        space = mirabelle if family is default_family() else namespace(family)
    for part in module.removesuffix(".lib.stride_tricks").split(".")[1:]:
        space = getattr(space, part, None)
    return space


# What NumPy's functions may be told that changes no value: how to sort, what to keep, how to do it.
_HARMLESS = {
    "kind", "subok", "copy", "assume_unique", "overwrite_input", "like", "allow_pickle", "device",
}  # fmt: skip


def _matched(theirs: inspect.Signature, mine: inspect.Signature) -> dict[str, str | None]:
    """NumPy's parameters → ours: by name, else the leading ones by position."""
    found: dict[str, str | None] = {n: n for n in theirs.parameters if n in mine.parameters}
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_more = any(p.kind is p.VAR_KEYWORD for p in mine.parameters.values())
    free = [p for p in mine.parameters.values() if p.kind in positional and p.name not in found]
    for p in theirs.parameters.values():
        if p.name in found:
            continue
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            match = next((m.name for m in mine.parameters.values() if m.kind is p.kind), None)
            found[p.name] = match
        elif p.kind in positional and free and (p.default is p.empty or free[0].kind is p.POSITIONAL_ONLY):
            found[p.name] = free.pop(0).name
        else:
            found[p.name] = p.name if takes_more else None
    return found


def _alike(
    theirs: inspect.Signature, mine: inspect.Signature, matched: dict[str, str | None]
) -> tuple[int, frozenset[str]]:
    """How many leading arguments mean the same by their place, and which ones by their names.

    Those that NumPy's function must be given count by place, as `_rearranged` passes them on.
    """
    required = [p for p in theirs.parameters.values() if p.default is p.empty]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in theirs.parameters.values()):
        return 0, frozenset()
    leading = 0
    for p, own in zip(required, mine.parameters.values(), strict=False):
        if matched[p.name] != own.name or own.kind not in (own.POSITIONAL_ONLY, own.POSITIONAL_OR_KEYWORD):
            break
        leading += 1
    if leading < len(required):
        return 0, frozenset()
    names = {
        n for n, m in matched.items()
        if n == m and theirs.parameters[n].default is not inspect.Parameter.empty
        and n in mine.parameters and not _is_positional(mine.parameters[n])
    }  # fmt: skip
    return leading, frozenset(names)


def _rearranged(
    func: Any, ours: Any, theirs: inspect.Signature, own: inspect.Signature, matched: dict[str, str | None],
    *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call our function with NumPy's arguments."""
    from mirabelle.arraytypes.functions.outputs import into

    positional: list[Any] = []
    options: dict[str, Any] = {}
    out = None
    for name, value in theirs.bind(*args, **kwargs).arguments.items():
        p = theirs.parameters[name]
        mine = matched[name]
        if p.kind is p.VAR_POSITIONAL:
            positional += value
        elif p.kind is p.VAR_KEYWORD:
            options |= {k: v for k, v in value.items() if v is not np._NoValue}
        elif value is np._NoValue or (mine is None and _is_default(value, p.default)):
            continue
        elif mine is not None and (p.default is p.empty or _is_positional(own.parameters.get(mine))):
            positional.append(value)
        elif mine is not None:
            options[mine] = value
        elif name == "out":
            out = value
        elif name not in _HARMLESS:
            raise TypeError(
                f"np.{func.__name__} on mirabelle's arrays has no {name}=. It has: {', '.join(own.parameters)}."
            )
    result = ours(*positional, **options)
    return result if out is None else into(out, result)


def _is_positional(p: inspect.Parameter | None) -> bool:
    return p is not None and p.kind is p.POSITIONAL_ONLY


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (bool, int, float, str)) and value == default)


def _refuse(func: Any, *args: Any, **kwargs: Any) -> Any:
    module = "np" if func.__module__ == "numpy" else func.__module__.replace("numpy", "np", 1)
    raise TypeError(
        f"{module}.{func.__name__} does not know mirabelle's arrays, and nothing leaves them unasked. "
        f"Fetch the values first: `{module}.{func.__name__}(mb.to_numpy(x))`."
    )
