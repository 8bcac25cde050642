"""NumPy as strict as CuPy: to find on the host what would fail on a card.

Arrays here meet no arrays of NumPy, give single elements as arrays of 0 dimensions, and have only the methods
that CuPy's have; functions exist if CuPy has them, and take the arguments that CuPy's take. What CuPy does in
its own way (see `simulated_library`), these do so, too.
"""

import functools
import importlib
import inspect
import sys
import types
import warnings

import numpy as np
import pytest

from mirabelle.backends.gpu.simulated_library import SimulatedLibrary, flushed

with warnings.catch_warnings():  # (it tells that there is no card)
    warnings.simplefilter("ignore")
    cupy = pytest.importorskip("cupy")


class Card(np.ndarray):
    """An array as CuPy's are."""

    def __array_finalize__(self, obj):
        pass

    def __getattribute__(self, name):
        if name[0] != "_" and name not in ("ctypes",) and not hasattr(cupy.ndarray, name):
            raise AttributeError(f"cupy.ndarray has no {name}")
        found = super().__getattribute__(name)
        if name in ("sum", "prod", "max", "min", "any", "all", "mean", "std", "argmax", "argmin", "trace"):
            return lambda *args, **kwargs: card(found(*args, **kwargs))
        return found

    def __getitem__(self, index):
        for i in index if isinstance(index, tuple) else (index,):
            refuse_host(i)
        return card(super().__getitem__(index))

    def __setitem__(self, index, value):
        for i in index if isinstance(index, tuple) else (index,):
            refuse_host(i)
        refuse_host(value)
        super().__setitem__(index, value)

    def __iter__(self):
        return (self[i] for i in range(self.shape[0]))

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        assert method in ("__call__", "at", "reduce"), f"{ufunc.__name__}.{method} is not CuPy's"
        assert hasattr(cupy, ufunc.__name__), f"CuPy has no {ufunc.__name__}"
        for x in inputs:
            refuse_host(x)
        plain = [flushed(base(x)) for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(base(x) for x in out)
        found = getattr(ufunc, method)(*plain, **kwargs)
        if method == "at":
            return None
        if out is not None:
            return out[0]
        return tuple(card(x) for x in found) if isinstance(found, tuple) else card(found)


def base(x):
    return x.view(np.ndarray) if isinstance(x, Card) else x


def refuse_host(x):
    if type(x) is np.ndarray:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(x, (list, tuple)):
        for item in x:
            refuse_host(item)


def card(x):
    """NumPy's array as one of the card."""
    return np.asarray(x).view(Card) if isinstance(x, (np.ndarray, np.generic)) else x


def carded(x):
    """Results of NumPy's functions as the card's."""
    if isinstance(x, (tuple, list)):
        return type(x)(*map(carded, x)) if hasattr(x, "_fields") else type(x)(carded(item) for item in x)
    return card(x)


def based(x):
    if isinstance(x, (tuple, list)):
        return type(x)(based(item) for item in x)
    return x.made if isinstance(x, Sparse) else base(x)


class Function:
    """NumPy's function, with the arguments of CuPy's."""

    def __init__(self, run, theirs, uploads=False):
        self.run, self.theirs, self.uploads = run, theirs, uploads
        functools.update_wrapper(self, run, ("__name__",), ())

    def __call__(self, *args, **kwargs):
        try:
            signature = inspect.signature(self.theirs)
        except ValueError:
            signature = None
        if signature is not None:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as e:
                raise AssertionError(f"cupy.{self.run.__name__}: {e}") from None
        if not self.uploads:
            for x in (*args, *kwargs.values()):
                refuse_host(x)
        return carded(self.run(*[based(x) for x in args], **{k: based(v) for k, v in kwargs.items()}))

    def at(self, into, where, values):
        for x in (into, where, values):
            refuse_host(x)
        self.run.at(base(into), based(where), base(values))


class Module(types.ModuleType):
    """NumPy, where CuPy has the same name."""

    def __init__(self, name, ours, theirs):
        super().__init__(name)
        self._ours, self._theirs = ours, theirs

    def __getattr__(self, name):
        if name == "ndarray":
            return Card
        theirs = getattr(self._theirs, name) if self._theirs is not None else None
        ours = getattr(self._ours, name)
        if isinstance(ours, types.ModuleType):
            return Module(f"{self.__name__}.{name}", ours, theirs)
        if isinstance(ours, type) or not callable(ours):
            return ours
        return Function(ours, theirs if theirs is not None else ours, name in ("asarray", "array"))


class Sparse:
    """SciPy's sparse matrix, whose parts are the card's."""

    def __init__(self, made):
        self.made = made

    def __matmul__(self, other):
        found = self.made @ (other.made if isinstance(other, Sparse) else base(other))
        return Sparse(found) if hasattr(found, "tocsr") else card(found)

    def __getattr__(self, name):
        found = getattr(self.made, name)
        return card(found) if isinstance(found, np.ndarray) else found

    def tocsr(self):
        return Sparse(self.made.tocsr())


def strict():
    """The module, known to the library as one for cards."""
    from mirabelle.backends.gpu import library

    module = Module("cupy_like", SimulatedLibrary(), cupy)
    for part in ("linalg", "sparse.linalg"):
        # (CuPy's own cannot be imported without a card's libraries.)
        sys.modules[f"cupy_like_scipy.{part}"] = Module(part, importlib.import_module(f"scipy.{part}"), None)
    sparse = types.ModuleType("sparse")
    import scipy.sparse

    def csr_matrix(parts, shape):
        return Sparse(scipy.sparse.csr_matrix(tuple(base(p) for p in parts), shape=shape))

    sparse.csr_matrix = csr_matrix
    sys.modules["cupy_like_scipy.sparse"] = sparse
    library.SCIPY["cupy_like"] = "cupy_like_scipy"
    return module
