"""What tests of kernels for cards stand on: PTX, what NVIDIA's assembler says of it, runs of lowered text."""

import ctypes
import importlib.util
import itertools
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest


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


def assembler():
    """Where ptxas is: in NVIDIA's wheels, beside the compiler, or in the path; None if nowhere."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(root).glob("cu[0-9]*/bin/ptxas"), reverse=True):
            return str(found)
    return shutil.which("ptxas")


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


_POINTER = re.compile(r"(<[^<>]*>|\[[^\[\]]*\]|\w+) addrspace\((\d)\)\*")
_REGISTER = re.compile(r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.([xyz])")
_PLACES = [f"{what}_{axis}" for what in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"]


class OnHost:
    """A kernel as it is lowered for a card, compiled for this processor.

    `kernel((blocks, 1, 1), (threads, 1, 1), *arguments)` runs the blocks one after the other; the threads
    of a block likewise, or, where there are barriers, each as a thread of ours.
    """

    def __init__(self, source):
        from llvmlite import binding

        from mirabelle.backends.gpu.lowering import lowered

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        text, with_libdevice = lowered(source, (2, 0, 3, 2))
        assert not with_libdevice
        self.waits = "barrier0" in text
        self.here = threading.local()
        self.barrier = None
        self.callbacks = (
            ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda k: self.here.places[k]),
            ctypes.CFUNCTYPE(None)(lambda: self.barrier.wait() and None),
        )
        target = binding.Target.from_default_triple()
        module = binding.parse_assembly(
            _for_host(text, *[ctypes.cast(f, ctypes.c_void_p).value for f in self.callbacks])
        )
        module.triple = target.triple
        module.verify()
        # (Halves are converted by instructions, where there are any.)
        features = binding.get_host_cpu_features()
        if "half" in text and not features.get("f16c"):
            pytest.skip("needs a processor that knows halves")
        machine = target.create_target_machine(binding.get_host_cpu_name(), features.flatten(), opt=2)
        self.engine = binding.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        kinds = {"i8": ctypes.c_int64, "u8": ctypes.c_uint64, "f8": ctypes.c_double, "f4": ctypes.c_float}
        prototype = ctypes.CFUNCTYPE(None, *[kinds[c] for c in source.codes])
        self.function = prototype(self.engine.get_function_address(source.name))

    def __call__(self, grid, block, *arguments):
        blocks = [b[::-1] for b in itertools.product(*map(range, grid[::-1]))]
        threads = [t[::-1] for t in itertools.product(*map(range, block[::-1]))]

        def run(mine):
            for b in blocks:
                for t in mine:
                    self.here.places = (*t, *b, *block, *grid)
                    self.function(*arguments)
                if self.waits:
                    self.barrier.wait()

        if not self.waits:
            run(threads)
            return
        self.barrier = threading.Barrier(len(threads), timeout=60)
        running = [threading.Thread(target=run, args=([t],)) for t in threads]
        for t in running:
            t.start()
        for t in running:
            t.join()


def _for_host(text, place, wait):
    """NVVM's text as today's LLVM takes it; registers and barriers are functions of ours."""
    skipped = ("target ", "!", "declare i32 @llvm.nvvm", "declare void @llvm.nvvm")
    lines = [line for line in text.splitlines() if not line.startswith(skipped)]
    body = _POINTER.sub(r"ptr addrspace(\2)", "\n".join(lines)).replace("@llvm.nvvm.barrier0", "@barrier")
    body = _REGISTER.sub(r"@\1_\2", body)
    reads = [
        f"define internal i32 @{name}() {{\n  %f = inttoptr i64 {place} to ptr\n"
        f"  %x = call i32 %f(i32 {k})\n  ret i32 %x\n}}"
        for k, name in enumerate(_PLACES)
    ]
    called = f"  %f = inttoptr i64 {wait} to ptr\n  call void %f()\n  ret void"
    return "\n".join([body, *reads, f"define internal void @barrier() {{\n{called}\n}}"])
