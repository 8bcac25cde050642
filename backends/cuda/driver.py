"""NVIDIA cards through CuPy: how kernels are made for them, and what is said where there are none."""

from __future__ import annotations

import functools
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.cuda import kernelgraph, modules
from mirabelle.backends.gpu.cupydriver import CupyDriver
from mirabelle.dispatch.errors import DeviceError


def cupy_module() -> Any:
    """CuPy, or an error that says what is missing."""
    try:
        import cupy
    except ImportError as e:
        raise DeviceError(
            f"mb.CuArray needs CuPy and numba-cuda, and importing CuPy failed ({e}). Install them: "
            '`pip install "mirabelle[cuda]"`. To try programs without a card, set MIRABELLE_CUDA=simulated.'
        ) from None
    return cupy


class CudaDriver(CupyDriver):
    """One NVIDIA card."""

    def __init__(self, index: int = 0) -> None:
        cupy = cupy_module()
        _check_card(cupy, index)
        self._start(cupy, index)

    @functools.cached_property
    def has_graphs(self) -> bool:  # type: ignore[override]
        return kernelgraph.known()

    def kernel_graph(self, launches: list[tuple[Any, list[Any]]], after: list[list[int]]) -> Any:
        return kernelgraph.KernelGraph(self, launches, after)

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Any:
        with self.device:
            return modules.load(self, source, functions, contract)


def _check_card(cupy: Any, index: int) -> None:
    """Is there a card of this number, and a driver CuPy can work with?"""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as e:
        text = str(e)
        if "InsufficientDriver" in text or "libcuda" in text or "NoDevice" in text:
            cause = (
                "no NVIDIA driver was found, or it is older than the CUDA version CuPy was built for "
                f"(CuPy's is {_version(cupy)})"
            )
        else:
            cause = "CUDA does not start"
        raise DeviceError(
            f"mb.CuArray needs an NVIDIA card: {cause}: {text.rstrip('.')}. Check `nvidia-smi`; "
            "install the CuPy that fits the driver (`pip install cupy-cuda12x` or `cupy-cuda13x`). To try "
            "programs without a card, set MIRABELLE_CUDA=simulated."
        ) from None
    if not 0 <= index < count:
        raise DeviceError(
            f"Card {index} was asked for, and there {'is' if count == 1 else 'are'} {count}, numbered from 0. "
            "Use `mb.CuArray.on(0)`, or make more visible with CUDA_VISIBLE_DEVICES."
        )


def _version(cupy: Any) -> str:
    try:
        v = cupy.cuda.runtime.runtimeGetVersion()
    except Exception:
        return "unknown"
    return f"{v // 1000}.{v % 1000 // 10}"


@functools.cache
def driver_of(index: int) -> CudaDriver:
    return CudaDriver(index)
