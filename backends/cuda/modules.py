"""Kernels of an NVIDIA card: compiled once, linked to the card's code, kept on disk, loaded by CuPy."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu.keptkernels import kept, own_part
from mirabelle.backends.host.compiler import _numba_version
from mirabelle.dispatch.errors import DeviceError


def load(driver: Any, source: KernelText, functions: dict[str, Any], contract: bool) -> Any:
    """The function of a kernel on the current card."""
    from cupy.cuda import function

    def loaded(code: bytes, entry: str) -> Any:
        module = function.Module()
        module.load(code)
        return module.get_function(entry)

    def made() -> tuple[bytes, str]:
        ptx, entry = text_of(source, functions, driver.capability, contract)
        return linked(ptx, source.name, driver), entry

    key = (driver.index, source.text, source.codes, source.threads, contract, tuple(functions.values()))
    # (What a user's function reads from around it is not in the source.)
    parts = None if functions else functools.partial(depends_on, source, driver.capability, contract)
    return kept(key, parts, loaded, made)


def depends_on(source: KernelText, capability: tuple[int, int], contract: bool) -> list[str]:
    """All that a card's code of a kernel depends on."""
    how = f"{contract} {source.threads} {capability} {_WAIT}"
    return ["cuda", source.text, *source.codes, how, *_versions()]


def text_of(
    source: KernelText, functions: dict[str, Any], capability: tuple[int, int], contract: bool
) -> tuple[str, str]:
    """A kernel as PTX for a generation of cards, and the name of its entry."""
    from mirabelle.backends.gpu.compiler import ptx_of

    ptx, entry = ptx_of(source, functions, capability, contract)
    return (waiting(ptx) if capability >= EARLY_FROM else ptx), entry


def waiting(ptx: str) -> str:
    """A kernel that waits for the one before it, and lets the one after it be set up meanwhile.

    Outside of graphs that ask for it, neither does anything.

    >>> waiting(".entry f(.param .u64 x) { ret; }").split()[-5:]
    ['{', 'griddepcontrol.launch_dependents;', 'griddepcontrol.wait;', 'ret;', '}']
    """
    return _ENTRY.sub(lambda m: m[0] + _WAIT, ptx)


# Cards from Hopper on set up a kernel while the one before it runs.
EARLY_FROM = (9, 0)
_ENTRY = re.compile(r"\.entry\s+[\w$.]+\s*\([^)]*\)[^{]*\{")
_WAIT = "\n\tgriddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;"


def linked(ptx: str, name: str, driver: Any) -> bytes:
    """PTX as the card's own code, by the driver's linker; by nvJitLink where the driver is older."""
    from cupy.cuda import function

    try:
        state = function.LinkState()
        state.add_ptr_data(ptx.encode(), name)
        # The linker owns the memory: it is copied before that goes.
        return bytes(state.complete())
    except Exception as e:
        try:
            return _linked_by_toolkit(ptx, driver.capability)
        except Exception:
            raise DeviceError(
                f"The driver does not take the code that numba-cuda made ({e}). That is so when the toolkit is "
                "newer than the driver: install the toolkit of the driver's CUDA version, "
                '`pip install "cuda-toolkit[nvvm,nvrtc]==13.0.*"`, say; `nvidia-smi` shows the version.'
            ) from e


def assembled(ptx: str, capability: tuple[int, int]) -> bytes:
    """PTX as the code of a generation of cards, without one: by nvJitLink, or by the toolkit's assembler."""
    try:
        return _linked_by_toolkit(ptx, capability)
    except Exception:  # it is missing, or older than the compiler
        tool = assembler()
    if tool is None:
        raise DeviceError(
            "Code for cards is assembled by nvJitLink or ptxas, and neither is to be found. Install one, "
            '`pip install "nvidia-nvjitlink"` or `pip install "nvidia-cuda-nvcc"`.'
        )
    with tempfile.TemporaryDirectory(prefix="mirabelle-ptx-") as folder:
        (Path(folder) / "kernel.ptx").write_text(ptx)
        arch = "-arch=sm_{}{}".format(*capability)
        words = [tool, arch, "kernel.ptx", "-o", "kernel.cubin"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeviceError(f"NVIDIA's assembler refuses a kernel: {done.stderr.strip()[:400]}")
        return (Path(folder) / "kernel.cubin").read_bytes()


def assembler() -> str | None:
    """Where ptxas is: in NVIDIA's wheels, beside the compiler, or in the path; None if nowhere."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob("cu[0-9]*/bin/ptxas"), reverse=True):
            return str(found)
    return shutil.which("ptxas")


def _linked_by_toolkit(ptx: str, capability: tuple[int, int]) -> bytes:
    from cuda.bindings import nvjitlink

    major, minor = capability
    handle = nvjitlink.create(1, [f"-arch=sm_{major}{minor}"])
    try:
        data = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
        nvjitlink.complete(handle)
        out = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, out)
        return bytes(out)
    finally:
        nvjitlink.destroy(handle)


@functools.cache
def _versions() -> tuple[str, ...]:
    """What else kernels depend on: the compiler, and mirabelle's own part in them."""
    from mirabelle.backends import gpu

    parts = ("names", "elements", "atomics", "operations", "compiler", "lowering", "nvvm")
    address = str(ctypes.sizeof(ctypes.c_void_p))
    return _numba_version(), _numba_cuda_version(), own_part([gpu], parts), address


def _numba_cuda_version() -> str:
    """numba-cuda's version, without importing it."""
    spec = importlib.util.find_spec("numba_cuda")
    if spec is None or spec.origin is None:
        return "none"
    found = sorted(Path(spec.origin).parent.parent.glob("numba_cuda-*.dist-info"))
    return found[-1].name if found else "unknown"
