"""The NumPy programs of `benchmarks/npkernels` mean on every array what they mean on NumPy's."""

import inspect
import json
import pathlib
import sys

import numpy as np
import pytest

import mirabelle as mb

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks.npkernels import FAMILIES, KERNELS
from benchmarks.npkernels._contenders import _numba_module
from benchmarks.npkernels._kernel import convert
from benchmarks.npkernels._report import same

# Numba would rather multiply columns that were copied first.
pytestmark = pytest.mark.filterwarnings("ignore:.*faster on contiguous arrays")

LAZY = [k for k in KERNELS.values() if not k.jitted]
# What is compiled for these is compiled for conv2d, mlp and mandelbrot1 too.
COMPILED = [k for k in LAZY if k.name not in ("lenet", "resnet", "nbody")]
JITTED = [k for k in KERNELS.values() if k.jitted]

each = pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda k: k.name)
each_lazy = pytest.mark.parametrize("kernel", LAZY, ids=lambda k: k.name)
each_jitted = pytest.mark.parametrize("kernel", JITTED, ids=lambda k: k.name)


@pytest.fixture(autouse=True)
def quiet_numpy():
    with np.errstate(all="ignore"):
        yield


def numpys(kernel):
    return kernel.run(kernel.plain, np, convert(kernel.inputs(kernel.tiny), np.array))


def check(kernel, family):
    """The program on arrays of `family`: values as NumPy's, data where it was."""
    arguments = convert(kernel.inputs(kernel.tiny), family)
    results = kernel.run(kernel.program, mb.namespace(family), arguments)
    expected = numpys(kernel)
    for result, wanted in zip(results, expected, strict=True):
        if not isinstance(result, mb.AbstractArray):
            assert isinstance(result, (int, float, complex)), type(result)
        else:
            assert result.place == family.home
            assert result.dtype == np.asarray(wanted).dtype
    same(
        kernel,
        family.__name__,
        [mb.to_numpy(r) if isinstance(r, mb.AbstractArray) else r for r in results],
        expected,
    )


@each
def test_on_the_host(kernel):
    check(kernel, mb.HostArray)


@pytest.mark.parametrize("kernel", COMPILED, ids=lambda k: k.name)
def test_on_the_host_compiled(kernel, hot):
    check(kernel, mb.HostArray)


@each_lazy
def test_on_the_reference_device(kernel):
    check(kernel, mb.RefArray)


@each_lazy
def test_on_a_card_cuda(kernel):
    check(kernel, mb.CuArray)


@each_jitted
def test_loops_over_elements_are_refused_on_a_device(kernel):
    arguments = convert(kernel.inputs(kernel.tiny), mb.RefArray)
    with pytest.raises(mb.PlaceError, match=r"mb\.adapt\(mb\.HostArray"):
        kernel.run(kernel.program, mb.namespace(mb.RefArray), arguments)


@each
def test_arguments_that_are_only_read_stay_as_they_are(kernel):
    inputs = kernel.inputs(kernel.tiny)
    arguments = convert(inputs, np.array)
    kernel.run(kernel.plain, np, arguments)
    for name, x, y in zip(kernel.parameters, inputs, arguments, strict=True):
        if isinstance(x, np.ndarray) and name not in kernel.writes:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["hdiff", "floyd_warshall", "mandelbrot2"])
def test_numbas_text_is_the_program_without_its_namespace(name):
    kernel = KERNELS[name]
    stripped = getattr(_numba_module(kernel.plain.__module__), name).py_func
    assert tuple(inspect.signature(stripped).parameters) == kernel.parameters
    arguments = convert(kernel.inputs(kernel.tiny), np.array)
    same(kernel, "numba", kernel.run(lambda xp, *a: stripped(*a), np, arguments), numpys(kernel))


def test_each_family_says_what_it_is():
    for family in FAMILIES:
        assert family.__doc__
    assert len(KERNELS) == 54


# Kernels of a folder on a card

FOLDER = {
    "smoothed": "def kernel(x, y):\n    for t in range(3):\n        y[1:-1] = (x[:-2] + x[2:]) * 0.5\n"
    "        x = np.abs(y) + np.zeros(len(y))\n    return x\n",
    "carried": "def kernel(x, y):\n    for i in range(1, len(x)):\n        y[i] = y[i - 1] * 0.5 + x[i]\n",
}


@pytest.fixture
def folder(tmp_path):
    made = "import numpy as np\n\n\ndef initialize(n):\n    return np.arange(n) * 0.1, np.ones(n)\n"
    (tmp_path / "bench_info").mkdir()
    for name, text in FOLDER.items():
        path = tmp_path / "npbench" / "benchmarks" / f"own_{name}"
        path.mkdir(parents=True)
        (path / f"{name}.py").write_text(made)
        (path / f"{name}_numpy.py").write_text(f"import numpy as np\n\n\n{text}")
        init = {"func_name": "initialize", "input_args": ["n"], "output_args": ["x", "y"]}
        info = {
            "relative_path": path.name,
            "module_name": name,
            "func_name": "kernel",
            "parameters": {"S": {"n": 80}},
            "init": init,
            "input_args": ["x", "y"],
        }
        (tmp_path / "bench_info" / f"{name}.json").write_text(json.dumps({"benchmark": info}))
    return tmp_path


def test_a_folder_of_kernels_runs_on_a_card(folder, monkeypatch):
    from benchmarks.gpu._card import Card
    from benchmarks.npkernels import _sources_cards

    monkeypatch.setenv("BENCHMARKS_ARRAY", "CuArray")
    monkeypatch.setattr(sys, "path", list(sys.path))
    rows = [_sources_cards.measure(folder, name, 1, True, Card(tiny=True)) for name in FOLDER]
    assert [r["loops"] for r in rows] == [False, True]
    for row in rows:
        assert isinstance(row["compiled"], float), row
        assert row["counts"]["compiled"]["scalar_reads"] == 0
    # As it is, the first mixes arrays of NumPy's with those on the card: with other names it does not.
    assert rows[0]["forms"]["eager"] == "names replaced"
    found = _sources_cards.means([*rows, {"name": "broken", "error": "its process died"}])
    assert found["array programs"]["compiled"]["right"] == found["loop programs"]["compiled"]["right"] == 1
    assert found["broken"] == ["broken"]
