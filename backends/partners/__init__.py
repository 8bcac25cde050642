"""Libraries that must be told of our arrays: each is told once it is imported, and never imported here.

Most libraries need no telling: they ask an array what it can do (`__array_namespace__`,
`__array_function__`, `__dlpack__`, the buffer protocol), or look for a module of the name its class
says. Those that keep a table of the types they know have a module here, and importing it registers
our arrays with them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from mirabelle.dispatch import internals

# What is imported → the module here that imports it too, and registers our arrays with it.
PARTNERS = {
    "autoray": "mirabelle.backends.partners.autoray_functions",
    "cupy": "mirabelle.backends.partners.cupy_arrays",
    "dask.array": "mirabelle.backends.partners.dask_reductions",
    "einx": "mirabelle.backends.partners.einx_backend",
    "einops": "mirabelle.backends.partners.einops_backend",
    "h5py": "mirabelle.backends.partners.h5py_datasets",
    "numba": "mirabelle.backends.partners.numba_arguments",
}


class _Loader(importlib.abc.Loader):
    """A partner's loader, and after it a registration."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec
        self.loader: Any = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self.loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        # (Who looks at the module finds the loader that it would have without us.)
        self.spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _register(self.spec.name)


class _Watch(importlib.abc.MetaPathFinder):
    """Sees imports before anybody else, and lets those of partners end with a registration."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in PARTNERS:
            for finder in sys.meta_path:
                spec = None if finder is self else finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _Loader(spec)
                    return spec
        return None


def _register(name: str) -> None:
    try:
        importlib.import_module(PARTNERS[name])
    except Exception as e:
        warnings.warn(
            f"mirabelle could not make its arrays known to {name}, which will not take them; all else works. "
            f"The usual cause is a version of {name} newer or older than tried. ({type(e).__name__}: {e})",
            RuntimeWarning,
            stacklevel=2,
        )


def watch() -> None:
    """Register with the partners that are imported already, and with the others once they are.

    Those that are imported later are seen by a finder of imports, unless `mb.settings.internals` leaves
    `imports` out: import them before mirabelle then, or call this again.
    """
    if internals.used("imports") and not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())
    for name in PARTNERS:
        if name in sys.modules:
            _register(name)
