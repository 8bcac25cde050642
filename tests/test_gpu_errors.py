"""What is said when something is missing or wrong on a card: clear sentences, and no data half-written.

Cards are simulated; what CuPy, the driver and numba-cuda say of themselves is put in their mouths.
"""

import json
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from children import answer
from compare import assert_same

import mirabelle as mb
from mirabelle.backends.cuda import driver
from mirabelle.backends.gpu import compiler
from mirabelle.dispatch.errors import DeviceError, PlaceError, ScalarAccessError, UserFunctionError

if mb.settings.cuda != "simulated":
    pytest.skip("of simulated cards; test_gpu_card.py is of real ones", allow_module_level=True)

VALUES = np.arange(12.0).reshape(3, 4)


def full_sentences(text):
    """Errors are sentences: they begin as one and end as one."""
    assert text[0].isupper() or text.startswith(("mb.", "unknown()")), text
    assert text.rstrip().endswith("."), text
    return text


# What is missing


def without(monkeypatch, *names):
    """As if modules were not installed."""
    for loaded in list(sys.modules):
        if loaded.startswith(tuple(f"{name}." for name in names)):
            monkeypatch.delitem(sys.modules, loaded)
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_cupy(monkeypatch):
    without(monkeypatch, "cupy")
    with pytest.raises(DeviceError) as e:
        driver.CudaDriver(0)
    said = full_sentences(str(e.value))
    assert re.search(
        r"needs CuPy and numba-cuda, and importing CuPy failed \(.*cupy.*pip install \"mirabelle\[cuda\]\"",
        said,
    )
    assert "MIRABELLE_CUDA=simulated" in said


def test_without_cupy_everything_else_works():
    code = """
import json, sys, mirabelle as mb
sys.modules.update({"cupy": None, "cupyx": None, "numba_cuda": None})
said = []
for make in (mb.CuArray, mb.CuArray["f4"], lambda x: mb.CuArray(x, device=1),
             lambda x: mb.adapt(mb.CuArray, mb.HostArray(x)), lambda x: mb.zeros(2, device=mb.CuArray)):
    try:
        make([1.0])
    except RuntimeError as e:
        said.append(str(e))
print(json.dumps([said, float(mb.sum(mb.HostArray([1.0, 2.0]))), [str(p) for p in mb.devices()]]))
"""
    said, total, devices = answer(code)
    assert len(said) == 5 and all("mirabelle[cuda]" in text for text in said)
    assert total == 3.0 and not [d for d in devices if d.startswith("cuda")]


def cupy(count, version=13020):
    """A CuPy whose runtime answers `count()` when asked for cards."""
    runtime = types.SimpleNamespace(
        getDeviceCount=count, runtimeGetVersion=lambda: version, getDeviceProperties=lambda index: {}
    )
    made = types.ModuleType("cupy")
    made.cuda = types.SimpleNamespace(runtime=runtime)
    return made


def raising(text):
    def count():
        raise RuntimeError(text)

    return count


@pytest.mark.parametrize(
    ("says", "cause"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
         r"or it is older than the CUDA version CuPy was built for \(CuPy's is 13.2\)"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "no NVIDIA driver was found"),
        ("libcuda.so.1: cannot open shared object file", "no NVIDIA driver was found"),
        ("cudaErrorSystemDriverMismatch: system has unsupported display driver", "CUDA does not start"),
    ],
    ids=["old driver", "no card", "no driver", "mismatch"],
)  # fmt: skip
def test_without_a_usable_card(monkeypatch, says, cause):
    monkeypatch.setitem(sys.modules, "cupy", cupy(raising(says)))
    with pytest.raises(DeviceError, match=cause) as e:
        driver.CudaDriver(0)
    said = full_sentences(str(e.value))
    assert (
        says in said and "nvidia-smi" in said and "cupy-cuda12x" in said and "MIRABELLE_CUDA=simulated" in said
    )


@pytest.mark.parametrize(
    ("index", "count", "there"), [(1, 1, "there is 1"), (7, 4, "there are 4"), (0, 0, "there are 0")]
)
def test_a_card_that_is_not_there(monkeypatch, index, count, there):
    monkeypatch.setitem(sys.modules, "cupy", cupy(lambda: count))
    with pytest.raises(DeviceError, match=f"Card {index} was asked for, and {there}.*CUDA_VISIBLE_DEVICES"):
        driver.CudaDriver(index)


@pytest.mark.parametrize("make", [lambda: mb.CuArray([1.0], device=5), lambda: mb.CuArray.on(9)([1.0])])
def test_a_simulated_card_that_is_not_there(make):
    with pytest.raises(DeviceError, match="numbered from 0"):
        make()


def test_cards_have_no_negative_numbers():
    with pytest.raises(ValueError, match="numbered from 0 on"):
        mb.CuArray.on(-1)


def test_without_numba_cuda(monkeypatch):
    """Kernels that call users' functions need it."""
    without(monkeypatch, "numba.cuda")
    import numba

    monkeypatch.delattr(numba, "cuda", raising=False)
    source = text_of(lambda t: t * 2)
    with pytest.raises(DeviceError, match=r"numba-cuda, and importing it failed.*mirabelle\[cuda\]"):
        compiler.ptx_of(*source, (9, 0))


def text_of(f):
    """A kernel that calls a function of a user's, and the function."""
    from kernelcatalogue import recording

    with recording() as kept:
        mb.materialize(mb.broadcast(f, mb.CuArray([1.0, 2.0])))
    (kernel,) = kept.kernels.values()
    return kernel.source, dict(kernel.functions)


# Functions of users


def unknown(t):
    return t.banana


def test_a_function_that_cannot_be_compiled():
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    x = mb.CuArray(VALUES)
    before = mb.to_numpy(x)
    with pytest.raises(UserFunctionError) as e:
        x[...] = mb.broadcast(unknown, x)
    said = full_sentences(str(e.value))
    assert "unknown()" in said and len(said.splitlines()) <= 3 and len(said) < 700
    assert_same(x, before)


def test_the_compilers_message_is_cut_to_the_line_and_the_reason():
    """Numba's own has dozens of lines; what stands in it of the user's function is kept."""
    pytest.importorskip("numba.cuda.extending", reason="needs numba-cuda")
    source, functions = text_of(lambda t: t * 2)
    (name,) = functions
    with pytest.raises(UserFunctionError) as e:
        compiler.ptx_of(source, {name: unknown}, (9, 0))
    said = full_sentences(str(e.value))
    assert said.startswith("unknown() cannot be compiled for the card")
    assert "may use arithmetic and math.* functions" in said
    assert "test_gpu_errors.py" in said and "Unknown attribute 'banana' of type float64." in said
    assert "Traceback" not in said and len(said.splitlines()) == 1 and len(said) < 600


def test_a_function_that_returns_no_number():
    x = mb.CuArray(VALUES)
    with pytest.raises(UserFunctionError):
        mb.broadcast(lambda t: "text", x)
    assert_same(x, VALUES)


# Indices


@pytest.mark.parametrize(
    "index",
    [[7], [0, -4], (slice(None), [1, 4]), ([0, 1], [0, 9])],
    ids=["large", "negative", "columns", "pairs"],
)
def test_an_index_out_of_range(index):
    x = mb.CuArray(VALUES)
    with pytest.raises(IndexError) as expected:
        VALUES[index]
    with mb.count() as c, pytest.raises(IndexError) as e:
        mb.materialize(x[index] * 2)
    assert str(e.value) == str(expected.value)
    assert c.launches <= 2  # (those that find the least and the largest index)
    with pytest.raises(IndexError):
        x[index] = 1
    assert_same(x, VALUES)


def test_an_array_of_indices_out_of_range():
    x, i = mb.CuArray(VALUES), mb.CuArray(np.array([0, 3, 1]))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        x[i]
    with pytest.raises(IndexError):
        x[i] = 5.0
    with pytest.raises(IndexError):
        mb.add_at(x, i, 1.0)
    assert_same(x, VALUES)


def test_elements_are_not_read_by_themselves():
    x = mb.CuArray(VALUES)
    with mb.allow_scalar(False):
        for read in (
            lambda: float(x[0, 0]),
            lambda: int(x[1, 1]),
            lambda: bool(x[0, 0] > 1),
            lambda: x[0, 0].item(),
        ):
            with pytest.raises(
                ScalarAccessError, match=r"Reading one element .* on cuda:0 by itself is refused"
            ):
                read()
    with mb.allow_scalar(), mb.count() as c:
        assert float(x[1, 1]) == 5.0
    assert c.scalar_reads == 1


# Places


@pytest.mark.parametrize(
    "other",
    [VALUES, mb.HostArray(VALUES), mb.RefArray(VALUES), mb.CuArray(VALUES, device=1)],
    ids=["numpy", "host", "reference device", "another card"],
)
@pytest.mark.parametrize("how", [lambda x, y: x + y, lambda x, y: y * x, lambda x, y: mb.where(x > 1, x, y)])
def test_places_are_not_mixed(other, how):
    x = mb.CuArray(VALUES)
    with pytest.raises(PlaceError, match=r"(?s)cuda:0.*Data never moves unasked.*mb\.adapt\("):
        how(x, other)
    assert_same(x, VALUES)


@pytest.mark.parametrize(
    "other", [mb.HostArray(VALUES), mb.CuArray(VALUES, device=1)], ids=["host", "another card"]
)
def test_writing_does_not_move_data_unasked(other):
    x = mb.CuArray(np.zeros((3, 4)))
    with pytest.raises(PlaceError):
        x += other
    with pytest.raises(PlaceError):
        x @ other.T
    assert_same(x, np.zeros((3, 4)))


def test_numpy_does_not_read_a_card():
    x = mb.CuArray(VALUES)
    with pytest.raises(PlaceError, match=r"mb\.to_numpy\(x\)"):
        np.asarray(x)
    with pytest.raises(DeviceError, match=r"mb\.to_numpy\(x\)"):
        np.asarray(mb.ext.tree(x).view)


# Memory


def test_out_of_memory_keeps_what_is_there():
    x = mb.CuArray(VALUES)
    mb.set_memory_limit(mb.memory(mb.CuArray).used + 100, mb.CuArray)
    try:
        with pytest.raises(MemoryError, match="no room"):
            mb.materialize(mb.broadcast_to(x, (50, 3, 4)) * 2)
        with pytest.raises(MemoryError):
            mb.CuArray(np.zeros(1000))
    finally:
        mb.set_memory_limit(None, mb.CuArray)
    assert_same(x, VALUES)
    assert_same(x * 2, VALUES * 2)


# Real cards, seen from a machine without one


def test_info_says_what_is_missing():
    done = subprocess.run(
        [sys.executable, "-m", "mirabelle", "info"], capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("cards"))
    assert "CuArray" in line
    json.dumps(line)
