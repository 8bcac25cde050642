"""Lowered kernels run on the host: LLVM's text, with registers and memory spaces put in.

`card(9)` is a simulated card that runs its kernels in this way. Threads of kernels with barriers are
threads here.
"""

import contextlib
import ctypes
import functools
import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numpy as np

import mirabelle as mb
from mirabelle.backends.gpu import operations, simulator
from mirabelle.backends.gpu.compiler import is_own
from mirabelle.backends.gpu.lowering import lowered
from mirabelle.backends.gpu.lowering_body import LOOP
from mirabelle.backends.host.compiler import _target_machine

VERSION = (2, 0, 3, 2)
_REGISTERS = [f"{r}.{axis}" for r in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"]
_C = {
    "i4": ctypes.c_int32, "i8": ctypes.c_int64, "u4": ctypes.c_uint32, "u8": ctypes.c_uint64,
    "f4": ctypes.c_float, "f8": ctypes.c_double,
}  # fmt: skip
# Exact functions, which libm has too; what else libdevice has is NumPy's here.
_LIBM = ("ldexp", "frexp", "fmod", "nextafter")
_barrier = None


@ctypes.CFUNCTYPE(None)
def _wait():
    _barrier.wait(60)


def _rounded_half(x):
    with np.errstate(all="ignore"):
        return int(np.array(x).astype(np.float16).view(np.uint16))


# Conversions of halves, for which not all processors have instructions.
_HALVES = {
    "cvt.f32.f16": ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(
        lambda bits: float(np.uint16(bits).view(np.float16))
    ),
    "cvt.rn.f16.f32": ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(_rounded_half),
    "cvt.rn.f16.f64": ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(_rounded_half),
}


def host_text(text):
    """NVVM's text as the host's: pointers without types and spaces, registers from memory."""
    for name, plain in (*[(name, name) for name in ("fabs", "floor", "ceil", "trunc")], ("round", "rint")):
        for kind, bits in (("d", 64), ("f", 32)):
            text = text.replace(f"@llvm.nvvm.{name}.{kind}(", f"@llvm.{plain}.f{bits}(")
    text = text.replace(f", !llvm.loop !{LOOP}", "")
    text = re.sub(r"^(target|!|declare \w+ @llvm\.nvvm\.).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(\w+|<\d+ x \w+>|\[\d+ x \w+\])( addrspace\(\d\))?\*", "ptr", text)
    text = text.replace("internal addrspace(3) global", "internal global")
    text = re.sub(r"(define void @\w+\()", r"\1ptr %registers, ", text)
    for k, name in enumerate(_REGISTERS):
        text = re.sub(
            rf"  (%\w+) = call i32 @llvm\.nvvm\.read\.ptx\.sreg\.{re.escape(name)}\(\)",
            rf"  \1.at = getelementptr i32, ptr %registers, i64 {k}\n  \1 = load i32, ptr \1.at",
            text,
        )
    wait = ctypes.cast(_wait, ctypes.c_void_p).value
    text = text.replace("call void @llvm.nvvm.barrier0()", f"call void inttoptr (i64 {wait} to ptr)()")
    for name, function in _HALVES.items():
        address = ctypes.cast(function, ctypes.c_void_p).value
        text = re.sub(rf'asm "{name} [^"]*", "[^"]*"', f"inttoptr (i64 {address} to ptr)", text)
    text = re.sub(rf"@__nv_({'|'.join(_LIBM)})", r"@\1", text)
    text = re.sub(r"^declare \w+ @__nv_.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"@__nv_(\w+)", _called, text)


def _called(found):
    address = ctypes.cast(_function(found[1]), ctypes.c_void_p).value
    return f"inttoptr (i64 {address} to ptr)"


@functools.cache
def _function(name):
    """NumPy's function under a name of libdevice's, for C."""
    single = name[-1] == "f" and name != "erf"
    stem = name[:-1] if single else name
    made = operations._guarded({"tgamma": "gamma"}.get(stem, stem), 4 if single else 8)
    t = np.float32 if single else np.float64

    def call(*args):
        with np.errstate(all="ignore"):
            return float(np.ravel(made(*[np.array([x, x], t) for x in args]))[0])

    c = ctypes.c_float if single else ctypes.c_double
    return ctypes.CFUNCTYPE(c, *[c] * (2 if stem in ("pow", "atan2", "hypot") else 1))(call)


class Kernel:
    """A lowered kernel as a function of the host. Raises NotLowered."""

    def __init__(self, source, own=frozenset()):
        text, _ = lowered(source, VERSION, own)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.load_library_permanently("libm.so.6")
        module = llvm.parse_assembly(host_text(text))
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, _target_machine())
        self.engine.finalize_object()
        self.name = source.name
        self.waits = "llvm.nvvm.barrier0" in text
        types = [_C[c] for c in source.codes]
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *types)(
            self.engine.get_function_address(source.name)
        )

    def run(self, arguments, grid, block):
        global _barrier
        threads = [at[::-1] for at in itertools.product(*(range(n) for n in reversed(block)))]
        with contextlib.ExitStack() as stack:
            if self.waits:
                _barrier = threading.Barrier(len(threads))
                pool = stack.enter_context(ThreadPoolExecutor(len(threads)))
            for place in itertools.product(*(range(n) for n in reversed(grid))):

                def run(at, place=place[::-1]):
                    registers = np.array([*at, *place, *block, *grid], np.int32)
                    self.call(registers.ctypes.data, *arguments)

                if self.waits:
                    list(pool.map(run, threads))
                else:
                    for at in threads:
                        run(at)


class LoweredDriver(simulator.SimulatedDriver):
    """A simulated card that runs kernels lowered, and keeps their sources."""

    def __init__(self, index):
        super().__init__(0)
        self.index = index
        self.sources = []

    def load(self, source, functions, contract=False):
        own = frozenset(name for name, f in functions.items() if is_own(name, f))
        self.sources.append(source)
        return Kernel(source, own)


@functools.cache
def card(index):
    """The type of arrays on a card of this kind, of which other tests know nothing."""
    family = mb.CuArray.on(index)
    family._made_driver = LoweredDriver(index)
    return family
