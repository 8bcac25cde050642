"""What `python -m mirabelle info` says of NVIDIA cards: which there are, or what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.gpu import CuArray
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.settings import settings

# CuPy is distributed under several names.
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")


def lines() -> list[str]:
    """A line for each fact."""
    if settings.cuda == "simulated":
        return [
            f"CuArray on {CuArray.cards()} simulated cards, in Python on the host (MIRABELLE_CUDA=simulated)"
        ]
    missing = [
        d
        for module, d in (("cupy", "CuPy"), ("numba_cuda", "numba-cuda"))
        if not importlib.util.find_spec(module)
    ]
    if missing:
        return [f'CuArray needs {" and ".join(missing)}: pip install "mirabelle[cuda]"']
    libraries = ", ".join(_versions())
    if not CuArray.cards():
        return [f"CuArray finds no NVIDIA card, or no driver for it (see nvidia-smi); {libraries}"]
    try:
        said = [_card(CuArray.on(i)) for i in range(CuArray.cards())]
        return [*said, f"CUDA {_cuda()}; {libraries}"]
    except DeviceError as e:
        return [*str(e).splitlines(), libraries]


def _card(family: Any) -> str:
    driver = family.driver()
    figures = driver.figures()
    major, minor = driver.capability
    return (
        f"{family.home}: {driver.name}, compute capability {major}.{minor}, "
        f"{driver.multiprocessors} multiprocessors, "
        f"{shown_bytes(figures['free'])} of {shown_bytes(figures['total'])} free"
    )


def _cuda() -> str:
    runtime = CuArray.driver().library.cuda.runtime
    versions = [runtime.driverGetVersion(), runtime.runtimeGetVersion()]
    driver, built = (f"{v // 1000}.{v % 1000 // 10}" for v in versions)
    return f"{driver} of the driver, {built} of CuPy"


def _versions() -> list[str]:
    found = []
    for names in (_CUPY, ("numba-cuda",)):
        for name in names:
            try:
                found.append(f"{name} {importlib.metadata.version(name)}")
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found
