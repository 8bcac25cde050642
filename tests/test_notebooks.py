"""The notebooks run, and what they keep is what a reader needs."""

import os

import pytest

from notebooks.__main__ import MACHINE, executed, notebooks, texts

pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

BOOKS = notebooks()
IDS = [path.stem for path in BOOKS]


@pytest.fixture
def environment(tmp_path):
    """That of a reader: settings by default, kernels of these tests, Jupyter's own files out of the way."""
    wanted = {k: v for k, v in os.environ.items() if not k.startswith("MIRABELLE_")}
    wanted["MIRABELLE_CACHE_DIR"] = os.environ["MIRABELLE_CACHE_DIR"]
    return wanted | {"IPYTHONDIR": str(tmp_path), "MPLCONFIGDIR": str(tmp_path), "PYTHONWARNINGS": "default"}


# (Jupyter's packages warn of themselves and of each other.)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", BOOKS, ids=IDS)
def test_every_cell_runs(path, environment):
    book = executed(path, environment)
    kept = nbformat.read(path, as_version=4)
    for now, then in zip(book.cells, kept.cells, strict=True):
        assert now.get("execution_count") == then.get("execution_count"), "cells were run in another order"
        assert _kinds(now) == _kinds(then), f"the kept outputs are old: make docs\n{now.source}"


def _kinds(cell):
    return {(o.output_type, *sorted(o.get("data", {}))) for o in cell.get("outputs", [])}


@pytest.mark.parametrize("path", BOOKS, ids=IDS)
def test_outputs_are_kept(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "there is no picture"
    assert not [output for output in outputs if output.output_type == "error"]


@pytest.mark.parametrize("path", BOOKS, ids=IDS)
def test_nothing_is_of_the_machine_it_ran_on(path):
    book = nbformat.read(path, as_version=4)
    assert not [found for text in texts(book) for found in MACHINE.findall(text)]
    assert not [cell for cell in book.cells if cell.metadata]
    assert set(book.metadata) == {"kernelspec", "language_info"}
    assert path.stat().st_size < 600_000


def test_there_are_ten():
    assert len(BOOKS) == 10
    assert "this notebook" in str([texts(nbformat.read(path, as_version=4)) for path in BOOKS])
