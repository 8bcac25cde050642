"""Kernels lowered to LLVM's text: run on the host they give NumPy's values; NVIDIA's compilers take them."""

import functools
import math
import re
import subprocess
import sys
import textwrap

import lowered
import numpy as np
import pytest
from compare import assert_same
from test_gpu_operations import ALL, COMPLEX_FUNCTIONS, ROUNDED, STEMS, applied, grid, numpy_values, ours

import mirabelle as mb
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.cuda.modules import assembler
from mirabelle.backends.gpu import compiler, lowering, nvvm, operations
from mirabelle.backends.gpu.lowering_values import NotLowered
from mirabelle.dispatch.ops import TABLE

VERSION = lowered.VERSION


# Scalar operations


def operation_kernel(stem, forms):
    """A kernel that applies an operation at several dtypes to arrays, one after the other."""
    names, lines = [], []
    for k, (code, ins, outs) in enumerate(forms):
        names += [f"y{k}_{j}" for j in range(len(outs))] + [f"x{k}_{j}" for j in range(len(ins))] + [f"n{k}"]
        values = ", ".join(f"load_{c}(x{k}_{j}, i)" for j, c in enumerate(ins))
        lines += ["i = i8(0)", f"while i < n{k}:", f"    r = {stem}_{code}({values})"]
        for j, c in enumerate(outs):
            lines.append(f"    store_{c}(y{k}_{j}, i, {'r' if len(outs) == 1 else f'r[{j}]'})")
        lines.append("    i = i8(i + i8(1))")
    text = f"def kernel({', '.join(names)}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    return KernelText(text, "kernel", ("i8",) * len(names))


@pytest.mark.parametrize("stem", STEMS)
def test_operations_are_numpys(stem):
    forms = [(code, ins, outs) for name, code, ins, outs in ALL if name == stem]
    kernel = lowered.Kernel(operation_kernel(stem, forms))
    arguments, made, operands = [], [], []
    for _, ins, outs in forms:
        xs = [np.ascontiguousarray(x) for x in grid(ins, 500)]
        if stem == "pow" and ins[0][0] == "i":
            xs = [np.ascontiguousarray(x[xs[1] >= 0]) for x in xs]
        ys = [np.zeros(xs[0].shape, c) for c in outs]
        arguments += [a.ctypes.data for a in (*ys, *xs)] + [xs[0].size]
        made.append(ys)
        operands.append(xs)
    kernel.run(arguments, (1, 1, 1), (1, 1, 1))
    for (code, ins, _), ys, xs in zip(forms, made, operands, strict=True):
        kind = code[0]
        if kind == "c" and stem in COMPLEX_FUNCTIONS:
            # The formula is the standard's, which is not NumPy's everywhere: that it is computed as written.
            f = operations.scalar_function(stem, code, "numpy")
            expected = applied(f, xs, ys)
        else:
            expected = numpy_values(stem, ins, xs)
        ulps = ROUNDED.get(stem, 8 if kind in "fc" and (kind == "c" or not ours(stem, code)) else 0)
        zeros = stem in ("maximum", "minimum", "fmax", "fmin")
        for mine, wanted in zip(ys, expected, strict=True):
            if stem == "pow" and kind == "f":  # a square root where NumPy sees a single number and 0.5
                mine, wanted = mine[xs[1] != 0.5], wanted[xs[1] != 0.5]
            tolerance = ulps * (np.finfo(wanted.dtype).eps if wanted.dtype.kind in "fc" else 0)
            assert_same(mine, wanted, rtol=tolerance, atol=tolerance, any_zero=zeros)


# Frames


def both(f, *arrays):
    """The same function of arrays on a card and on the host."""
    card = lowered.card(9)
    mine = f(*[card(a) for a in arrays])
    wanted = f(*[mb.HostArray(a) for a in arrays])
    mine, wanted = (x if isinstance(x, tuple) else (x,) for x in (mine, wanted))
    for a, b in zip(mine, wanted, strict=True):
        assert_same(np.array(mb.HostArray(a)), np.array(b), rtol=1e-6)


ELEMENTWISE = {
    "flat": lambda x, y: x * 1.5 - y / 3,
    "turned": lambda x, y: x.T + y,
    "reversed": lambda x, y: x[::-1, ::-2] * y[:, ::2],
    "stretched": lambda x, y: x[:1] + y[:, :1],
    "choice": lambda x, y: mb.where(x > y, x, -y),
    "several": lambda x, y: mb.divmod(x, y),
    "test": lambda x, y: (x < y) & (x != 3) | mb.isfinite(y / x),
    "gather": lambda x, y: x[:, [3, 1, 1]] + y[:, :3],
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_elementwise(name, dtype):
    x = (np.arange(37 * 37).reshape(37, 37) % 89 + 1).astype(dtype)
    y = (np.arange(37 * 37).reshape(37, 37) % 31 + 1).astype(dtype)
    both(ELEMENTWISE[name], x, y)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_elementwise_complex(dtype):
    x = (np.arange(60) % 7 - 1j * np.arange(60)).astype(dtype).reshape(6, 10)
    both(lambda x: (x + x.conj() - 2j * x, x.real, abs(x), x == x.T[::-1].T), x)


REDUCTIONS = {
    "sum": lambda x: mb.sum(x * 2),
    "rows": lambda x: mb.sum(x, axis=1),
    "columns": lambda x: mb.max(x + 1, axis=0),
    "both": lambda x: (mb.min(x), mb.any(x > 5), mb.all(x > 5)),
    "product": lambda x: mb.prod(x[:3, :2], axis=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["b1", "i2", "u8", "f2", "f4", "f8", "c16"])
def test_reductions(name, dtype):
    if dtype == "c16" and name in ("columns", "both"):
        return  # complex numbers have no order
    x = (np.arange(7 * 33).reshape(7, 33) % 5).astype(dtype)
    both(REDUCTIONS[name], x)


# What is not lowered


def kernel_of(*lines, codes=("i8", "i4", "u8", "f4", "f8")):
    names = [f"{'p' if k == 0 else 'x'}{k}" for k in range(len(codes))]
    text = f"def kernel({', '.join(names)}):\n" + "\n".join(f"    {line}" for line in lines) + "\n"
    return KernelText(text, "kernel", codes)


@pytest.mark.parametrize(
    "lines",
    [
        ["for i in range(3):", "    store_i8(p0, i, i)"],
        ["store_f8(p0, 0, x4 * x1)"],  # a real and an integer
        ["store_f8(p0, 0, x4 ** x4)"],
        ["store_i8(p0, 0, x1)", "return x1"],
        ["y = x1 < p0 < x1"],
        ["y = p0 < x2"],  # int64 against uint64
        ["y = x1", "while y < x1:", "    y = y + x1"],  # becomes 64 bits wide
        ["if x1 < p0:", "    y = x1", "store_i4(p0, 0, y)"],
        ["if x1 < p0:", "    y = x1", "else:", "    y = x3", "store_i4(p0, 0, y)"],
        ["store_i4(p0, 0, unheard_of(x1))"],
        ["store_i4(p0, 0, sin_i4(x1))"],
        ["store_f8(p0, 0, x3 if x1 < p0 else x4)"],
        ["store_f8(x3, 0, x4)"],  # not an address
        ["store_f8(p0)"],
        ["x = [x1]"],
    ],
    ids=lambda lines: lines[0],
)
def test_what_is_not_certain_is_left_to_numba(lines, monkeypatch):
    source = kernel_of(*lines)
    with pytest.raises(NotLowered):
        lowering.lowered(source, VERSION)
    monkeypatch.setattr(compiler, "_ptx_by_numba", lambda *args: ("by numba", "kernel"))
    monkeypatch.setattr(compiler, "nvvm", lambda: lowered)
    monkeypatch.setattr(lowered, "version", VERSION, raising=False)
    before = compiler.not_lowered.total()
    assert compiler.ptx_of(source, {}, (9, 0)) == ("by numba", "kernel")
    assert compiler.not_lowered.total() == before + 1


def test_unused_values_of_different_dtypes_are_no_obstacle():
    lowering.lowered(kernel_of("if x1 < p0:", "    y = x1", "else:", "    y = x3"), VERSION)


# NVIDIA's compilers


@pytest.fixture
def library():
    try:
        return nvvm.nvvm()
    except nvvm.NvvmError as e:
        pytest.skip(f"libNVVM is not installed: {e}")


@functools.cache
def kernel_texts():
    """Sources of all frames."""
    card = lowered.card(8)
    x = np.arange(64.0).reshape(8, 8) + 1
    a, b, c = card(x), card(x.astype("f4")), card(x.astype("f2"))
    values = (
        a * 1.5 - a / 3, a + a.T, a[:, ::2] + 1, mb.sin(b) * b + mb.exp(b), mb.sum(a * 2), mb.max(b, axis=1),
        b > 3, c + c, card(x * 1j) + 1, mb.prod(b, axis=0),
    )  # fmt: skip
    for y in values:
        np.array(mb.HostArray(y))
    return card.driver().sources


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0)])
def test_frames_become_machine_code_without_spills(capability, library, tmp_path):
    tool = assembler()
    before = compiler.not_lowered.total()
    assert len(kernel_texts()) >= 8
    for source in kernel_texts():
        ptx, entry = compiler.ptx_of(source, {}, capability)
        assert f".entry {entry}(" in ptx
        if tool is None:
            continue
        path = tmp_path / "kernel.ptx"
        path.write_text(ptx)
        target = f"-arch=sm_{capability[0]}{capability[1]}"
        done = subprocess.run(
            [tool, target, "-v", path, "-o", tmp_path / "kernel.cubin"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert set(re.findall(r"(\d+) bytes spill", done.stderr)) <= {"0"}, source.name
    assert compiler.not_lowered.total() == before


def test_products_are_contracted_only_if_asked(library):
    source = kernel_of("store_f8(p0, 0, x4 * x4 + x4)")
    for capability in ((7, 5), (9, 0), (10, 0)):
        ptx = compiler.ptx_of(source, {}, capability)[0]
        assert "fma" not in ptx
        # An assembler may contract what does not say how it is rounded.
        assert "mul.rn.f64" in ptx and "add.rn.f64" in ptx
    assert "fma.rn.f64" in compiler.ptx_of(source, {}, (9, 0), True)[0]


def test_launch_bounds_are_said(library):
    source = kernel_of("store_f8(p0, 0, x4)")
    assert ".maxntid" not in compiler.ptx_of(source, {}, (9, 0))[0]
    source.threads = 512
    assert re.search(r"\.maxntid\s+512", compiler.ptx_of(source, {}, (9, 0))[0])


def test_numba_is_not_imported(library):
    program = """
        import sys
        from mirabelle.backends.codegen.element import KernelText
        from mirabelle.backends.gpu.compiler import ptx_of
        text = "def kernel(y, x):\\n    store_f8(y, i4(thread_x()), log1p_f8(load_f8(x, i4(thread_x()))))\\n"
        ptx, entry = ptx_of(KernelText(text, "kernel", ("i8", "i8")), {}, (8, 0))
        assert entry == "kernel" and ".target sm_80" in ptx
        assert not [m for m in sys.modules if m.partition(".")[0] == "numba"]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


# Functions of users


@pytest.fixture
def numba_cuda(library):
    pytest.importorskip("numba.cuda.compiler", reason="needs numba-cuda")


def test_a_users_function_is_compiled_alone(numba_cuda):
    source = kernel_of("store_f8(p0, 0, f8(fn_f(x4, fn_erf(x4))))")
    before = compiler.not_lowered.total()
    functions = {"fn_f": lambda x, y: math.sin(x) * x + y, "fn_erf": TABLE["erf"].scalar}
    ptx, entry = compiler.ptx_of(source, functions, (9, 0))
    assert compiler.not_lowered.total() == before
    assert entry == "kernel" and "mul.rn.f64" in ptx and "user_" not in ptx


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("fn_f(x4)[1]", lambda x: (x, x + 1)),  # results of several dtypes
        ("f8(fn_f(x4 < x4))", lambda x: 2.0 if x else 1.0),  # a truth value
    ],
)
def test_other_functions_of_users_are_left_to_numba(expression, function, numba_cuda):
    source = kernel_of(f"store_f8(p0, 0, {expression})")
    before = compiler.not_lowered.total()
    ptx, entry = compiler.ptx_of(source, {"fn_f": function}, (9, 0))
    assert f".entry {entry}" in ptx
    assert compiler.not_lowered.total() == before + 1
