"""AMD cards through CuPy's build for ROCm: how kernels are made, and what is said where no card is."""

from __future__ import annotations

from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu.cupydriver import CupyDriver
from mirabelle.backends.hip import modules
from mirabelle.dispatch.errors import DeviceError

_CURE = (
    'Install them, on a machine with ROCm: `pip install "mirabelle[hip]"`. To try programs without a card, set '
    "MIRABELLE_HIP=simulated."
)


def cupy_for_rocm() -> Any:
    """CuPy as built for ROCm, or an error that says what is missing."""
    try:
        import cupy
    except ImportError as e:
        raise DeviceError(
            f"mb.ROCArray needs CuPy's build for ROCm and numba-hip, and importing CuPy failed ({e}). {_CURE}"
        ) from None
    if not cupy.cuda.runtime.is_hip:
        raise DeviceError(
            "mb.ROCArray needs CuPy's build for ROCm and numba-hip, and the CuPy that is installed is built "
            f"for CUDA. Uninstall that one; the two cannot be there together. {_CURE}"
        )
    return cupy


class HipDriver(CupyDriver):
    """One AMD card."""

    aligns_arrays = False

    def __init__(self, index: int = 0) -> None:
        cupy = cupy_for_rocm()
        _check_card(cupy, index)
        self._start(cupy, index)
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        # "gfx90a:sramecc+:xnack-": the architecture, and features of this card.
        self.architecture = properties["gcnArchName"].decode().partition(":")[0]
        self.width = int(properties["warpSize"])

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Any:
        with self.device:
            return modules.load(self, source, functions)


def _check_card(cupy: Any, index: int) -> None:
    """Is there a card of this number, and a driver that CuPy can work with?"""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as e:
        raise DeviceError(
            f"mb.ROCArray needs an AMD card, and ROCm shows none: {str(e).rstrip('.')}. Check `rocminfo`; "
            "install the CuPy that fits the ROCm on this machine. To try programs without a card, set "
            "MIRABELLE_HIP=simulated."
        ) from None
    if not 0 <= index < count:
        raise DeviceError(
            f"Card {index} was asked for, and there {'is' if count == 1 else 'are'} {count}, numbered from 0. "
            "Use `mb.ROCArray.on(0)`, or make more visible with ROCR_VISIBLE_DEVICES."
        )
