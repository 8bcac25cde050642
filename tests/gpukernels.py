"""What tests of kernels for cards stand on: PTX, what NVIDIA's assembler says of it, runs of lowered text."""

import re
import subprocess

import pytest
from lowered import Kernel

from mirabelle.backends.cuda.modules import assembler


def ptx(source, functions=None, capability=(8, 0)):
    """A kernel's PTX; skips the test where numba-cuda or its compiler is missing."""
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    from mirabelle.backends.gpu.compiler import ptx_of

    try:
        return ptx_of(source, functions or {}, capability)[0]
    except Exception as e:
        if type(e).__name__ == "NvvmSupportError":
            pytest.skip("needs NVVM")
        raise


def resources(text, directory, capability=(8, 0)):
    """The registers and the bytes of spills of PTX once assembled; skips the test without ptxas."""
    tool = assembler()
    if tool is None:
        pytest.skip("needs ptxas")
    file = directory / "kernel.ptx"
    file.write_text(text)
    arch = "sm_{}{}".format(*capability)
    command = [tool, f"-arch={arch}", "-v", str(file), "-o", str(directory / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Unsupported .version" in done.stderr:
        pytest.skip("needs a ptxas as new as the compiler")
    assert done.returncode == 0, done.stderr
    (registers,) = re.findall(r"Used (\d+) registers", done.stderr)
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes (?:stack frame|spill)", done.stderr))
    return int(registers), spills


# Lowered kernels on this processor


class OnHost(Kernel):
    """A kernel as it is lowered for a card, compiled for this processor.

    `kernel((blocks, 1, 1), (threads, 1, 1), *arguments)` runs the blocks one after the other.
    """

    def __call__(self, grid, block, *arguments):
        self.run(arguments, grid, block)
