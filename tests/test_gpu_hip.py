"""ROCArray as far as no AMD card is needed: types and dispatch, sources, what is asked of ROCm's libraries.

(It has not run on AMD hardware.) Programs run on simulated cards; the driver meets a CuPy and a numba-hip
that only note what they are asked for.
"""

import ctypes
import sys
import types

import llvmlite.binding as llvm
import numpy as np
import pytest
from amdgpu import amd_text
from children import answer
from compare import assert_same
from kernelcatalogue import kernels, recording

import mirabelle as mb
from mirabelle.backends.gpu import keptkernels, operations
from mirabelle.backends.gpu.lowering import lowered
from mirabelle.backends.gpu.lowering_values import NotLowered
from mirabelle.backends.hip import compiler, driver
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.tree import Broadcasted, Reduced

PROGRAM = """
import json, numpy as np, mirabelle as mb
from kernelcatalogue import recording
family = getattr(mb, {family!r})
def run():
    x = family(np.arange(24.0).reshape(4, 6))
    i = family(np.array([3, 1]))
    made = [x.T * 2 + 1, mb.sum(mb.sin(x), axis=0), x[i], mb.where(x > 3, x, -x)[:, ::2],
            mb.broadcast(lambda t: t * t, x), mb.cumulative_sum(x, axis=1)]
    x[1:3] = x[:2] * 0.5
    return [*made, x]
with recording() as kept:
    made = [mb.materialize(v) for v in run()]
print(json.dumps([
    [type(v).__name__ + str(v.place) for v in made],
    [mb.to_numpy(v).tolist() for v in made],
    [[k.source.text, k.source.codes] for k in kept.kernels.values()],
]))
"""


def test_both_targets_have_the_same_sources_and_results():
    cuda = answer(PROGRAM.format(family="CuArray"), cuda="simulated")
    rocm = answer(PROGRAM.format(family="ROCArray"), hip="simulated")
    assert rocm[1:] == cuda[1:]
    assert rocm[0] == [name.replace("CuArray", "ROCArray").replace("cuda", "rocm") for name in cuda[0]]


def test_each_target_is_simulated_by_its_own_setting():
    code = """
import json, mirabelle as mb
said = []
for family in (mb.CuArray, mb.ROCArray):
    try:
        said.append(str(mb.sum(family([1.0, 2.0]))))
    except RuntimeError as e:
        said.append(str(e))
print(json.dumps([said, [str(d) for d in mb.devices()]]))
"""
    (cuda, rocm), devices = answer(code, cuda="simulated")
    assert cuda == "3.0" and "mb.ROCArray needs" in rocm and "rocm:0" not in devices
    (cuda, rocm), devices = answer(code, hip="simulated")
    assert rocm == "3.0" and "mb.CuArray needs" in cuda and "rocm:1" in devices


def test_types():
    assert issubclass(mb.ROCArray[np.float64, 2], mb.ROCArray) and issubclass(mb.ROCArray, mb.types.GPUArray)
    assert not issubclass(mb.ROCArray, mb.CuArray)
    assert mb.ROCArray.on(1).home != mb.ROCArray.home != mb.CuArray.home
    for tree in (Broadcasted, Reduced):
        resolved = [verbs.copyto.core.resolve((family, tree)) for family in (mb.ROCArray, mb.CuArray)]
        assert resolved[0] is resolved[1]


def test_targets_are_not_mixed():
    code = """
import json, mirabelle as mb
try:
    mb.CuArray([1.0]) + mb.ROCArray([1.0])
except ValueError as e:
    print(json.dumps([type(e).__name__, str(e)]))
"""
    name, text = answer(code, hip="simulated", cuda="simulated")
    assert name == "PlaceError" and "rocm:0" in text and "cuda:0" in text and "mb.adapt" in text


# What is missing


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        DeviceError, match=r"needs CuPy's build for ROCm.*mirabelle\[hip\].*MIRABELLE_HIP=simulated"
    ):
        driver.HipDriver(0)


def test_with_the_other_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy(is_hip=False))
    with pytest.raises(DeviceError, match=r"is built for CUDA. Uninstall that one"):
        driver.HipDriver(0)


def test_without_a_card(monkeypatch):
    fake = cupy()

    def none():
        raise RuntimeError("hipErrorNoDevice: no ROCm-capable device is detected")

    fake.cuda.runtime.getDeviceCount = none
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(DeviceError, match=r"ROCm shows none: hipErrorNoDevice.*rocminfo"):
        driver.HipDriver(0)
    fake.cuda.runtime.getDeviceCount = lambda: 1
    with pytest.raises(DeviceError, match=r"Card 3 was asked for, and there is 1.*ROCR_VISIBLE_DEVICES"):
        driver.HipDriver(3)


def test_without_numba_hip(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.hip", None)
    with pytest.raises(DeviceError, match=r"compiles its kernels with numba-hip.*mirabelle\[hip\]"):
        compiler.numba_hip()


# What is asked of CuPy and numba-hip


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def cupy(is_hip=True):
    """A CuPy for ROCm that knows one card, and loads what it is given."""
    loaded = []

    class Module:
        def load(self, code):
            self.code = code

        def get_function(self, name):
            loaded.append((self.code, name))
            return types.SimpleNamespace(ptr=7)

    properties = {
        "name": b"AMD Instinct MI250X", "multiProcessorCount": 110, "major": 9, "minor": 0, "warpSize": 64,
        "gcnArchName": b"gfx90a:sramecc+:xnack-",
    }  # fmt: skip
    runtime = types.SimpleNamespace(
        is_hip=is_hip,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda index: properties,
        getDevice=lambda: 0,
    )
    stream = types.SimpleNamespace(ptr=0)
    cuda = types.SimpleNamespace(
        runtime=runtime,
        Device=lambda index: Context(),
        memory=types.SimpleNamespace(alloc=None, OutOfMemoryError=MemoryError),
        get_current_stream=lambda: stream,
        function=types.SimpleNamespace(Module=Module),
    )
    made = types.ModuleType("cupy")
    made.cuda, made.loaded = cuda, loaded
    return made


@pytest.fixture
def card(monkeypatch, tmp_path):
    fake = cupy()
    launches = []
    api = types.ModuleType("cupy_backends.cuda.api")
    api.driver = types.SimpleNamespace(launchKernel=lambda *args: launches.append(args))
    for name, module in (("cupy", fake), ("cupy_backends.cuda.api", api)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(keptkernels, "_loaded", {})
    made = driver.HipDriver(0)
    made.launches = launches
    with mb.settings.changed(cache_dir=str(tmp_path)):
        yield made


def source_of(program):
    with recording() as kept:
        program()
    return next(iter(kept.kernels.values())).source


def test_the_driver_asks_for_the_architecture(card):
    assert (card.name, card.architecture, card.width) == ("AMD Instinct MI250X", "gfx90a", 64)
    assert card.multiprocessors == 110


def test_kernels_are_compiled_once_and_kept(card, monkeypatch):
    asked = []

    def code_object(source, functions, architecture):
        asked.append((source.name, architecture))
        return b"\x7fELF " + source.name.encode(), "entry"

    monkeypatch.setattr(compiler, "code_object", code_object)
    source = source_of(lambda: mb.materialize(mb.cosh(mb.sinpi(mb.CuArray([1.0, 2.0]) * 2.125) - 0.375)))
    with mb.count() as c:
        kernel = card.load(source, {})
        assert card.load(source, {}) is kernel
    assert c.compilations == 1 and asked == [(source.name, "gfx90a")]
    keptkernels._loaded.clear()  # another process
    card.load(source, {})
    assert len(asked) == 1
    assert card.library.loaded == [(b"\x7fELF " + source.name.encode(), "entry")] * 2
    card.architecture = "gfx942"
    keptkernels._loaded.clear()
    card.load(source, {})
    assert asked[-1][1] == "gfx942"


def test_launches_are_those_of_cuda(card):
    run = card.launcher(types.SimpleNamespace(ptr=7), ("i8", "f8", "i8"), (2, 1, 1), (256, 1, 1), (300,))
    run(1 << 40, 2.5)
    ((function, *shape, pointers, extra),) = card.launches
    assert (function, shape, extra) == (7, [2, 1, 1, 256, 1, 1, 0, 0], 0)
    addresses = (ctypes.c_void_p * 3).from_address(pointers)
    assert ctypes.c_int64.from_address(addresses[0]).value == 1 << 40
    assert ctypes.c_double.from_address(addresses[1]).value == 2.5
    assert ctypes.c_int64.from_address(addresses[2]).value == 300


@pytest.fixture
def numba_hip(monkeypatch):
    """A numba-hip of which only names are known."""
    hip = types.ModuleType("numba.hip")
    hip.__getattr__ = lambda name: type(name, (), {})  # (its functions are classes)
    hip.jit = lambda device: lambda f: ("device", f)
    hip.syncthreads = "syncthreads"
    extending = types.ModuleType("numba.hip.extending")
    extending.intrinsic = lambda f: ("intrinsic", f)
    import numba

    monkeypatch.setattr(numba, "hip", hip, raising=False)
    monkeypatch.setitem(sys.modules, "numba.hip", hip)
    monkeypatch.setitem(sys.modules, "numba.hip.extending", extending)
    caches = [compiler.hip_names, compiler.device_function, operations._library, operations._made]
    for cache in [*caches, operations._bound, operations._constants]:
        cache.cache_clear()
    yield hip
    for cache in [*caches, operations._bound, operations._constants]:
        cache.cache_clear()


def test_names_of_sources_have_a_meaning(numba_hip):
    """Every name that a generated kernel uses is one that this target knows."""
    from mirabelle.backends.gpu.names import scope_of

    known = compiler.hip_names()
    assert known["barrier"] == "syncthreads" and known["cuda"] is numba_hip
    what, read = known["threads_y"]
    assert what == "device" and read.__globals__["hip"] is numba_hip
    assert "blockDim" in read.__code__.co_names and "y" in read.__code__.co_names
    missing = set()
    for kernel in kernels()[0]:
        text = kernel.source.text
        if "_f2" in text or "f2(" in text:
            continue
        code = compile(text, "<kernel>", "exec")
        scope = scope_of(code, known)
        calls = {n for part in code.co_consts if hasattr(part, "co_names") for n in part.co_names}
        own = {part.co_name for part in code.co_consts if hasattr(part, "co_names")}
        users = {name for name, _ in kernel.functions}
        missing |= {n for n in calls - set(scope) - own - users if n.rpartition("_")[2] in operations.CODES}
    assert not missing


def test_real_functions_are_hips_by_their_precision(numba_hip):
    single, double = operations._library("hip", 4), operations._library("hip", 8)
    assert (single.sin.__name__, double.sin.__name__) == ("sinf", "sin")
    assert (single.gamma.__name__, double.gamma.__name__) == ("tgammaf", "tgamma")
    assert (single.rint.__name__, double.popcount.__name__) == ("rintf", "popcll")
    with pytest.raises(DeviceError, match=r"half precision.*astype"):
        compiler.hip_names()["sin_f2"]


# Machine code for AMD's cards, by LLVM


@pytest.fixture(scope="module")
def machine():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    except RuntimeError as e:
        pytest.skip(f"this LLVM has no target for AMD's cards: {e}")
    return target.create_target_machine(cpu="gfx90a", opt=2)


def test_lowered_kernels_are_assembled_for_amd(machine):
    """What is lowered for NVIDIA's cards is LLVM: with AMD's names for registers, AMD's compiler takes it."""
    done = 0
    for kernel in sorted(kernels()[0], key=lambda k: k.key)[::7]:
        try:
            text, _ = lowered(kernel.source, (2, 0, 3, 2))
        except NotLowered:
            continue
        module = llvm.parse_assembly(amd_text(text, kernel.source.name))
        module.verify()
        assembly = machine.emit_assembly(module)
        assert f".amdhsa_kernel {kernel.source.name}" in assembly, kernel.program
        assert "global_store" in assembly or "flat_store" in assembly or "global_atomic" in assembly
        done += 1
    assert done > 150


def test_simulated_results(monkeypatch):
    values = np.linspace(-2, 2, 50)
    code = """
import json, numpy as np, mirabelle as mb
x = mb.ROCArray(np.linspace(-2, 2, 50))
y = mb.to_numpy(mb.exp(x) * 2 - x)
print(json.dumps(y.tolist()))
"""
    assert_same(np.array(answer(code, hip="simulated")), np.exp(values) * 2 - values)
