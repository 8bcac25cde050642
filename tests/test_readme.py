"""The examples of the README run and print what it says; picture and figures are what their commands say."""

import doctest
import re
from pathlib import Path

import pytest

from docs import figures, picture

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_is_true():
    # (In a namespace of its own: it defines array types and methods.)
    result = doctest.testfile(str(README), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_readme_is_a_first_page():
    assert len(README.read_text().splitlines()) <= 170, "what is more belongs into docs/guide/"


def test_the_picture_is_what_the_program_computes():
    drawn = picture.drawing(picture.field())
    assert drawn == picture.OUT.read_text(), "draw it again: python -m docs.picture"


def figures_of(table):
    """Each row of the table by its words, with the numbers that were measured."""
    measured = re.compile(r"\d+\.\d\d")
    rows = table.strip().splitlines()[2:]
    return {measured.sub("", row): [float(number) for number in measured.findall(row)] for row in rows}


def written(text):
    return figures_of(text[text.index(figures.BEGIN) + len(figures.BEGIN) : text.index(figures.END)])


def wrong(said, found):
    """Rows that say something else than a tenth around what was measured."""
    return [
        row for row in said.keys() | found.keys() if said.get(row) != pytest.approx(found.get(row, []), rel=0.1)
    ]


def test_the_figures_are_those_of_the_benchmarks():
    """(Within a tenth: who runs a benchmark again need not rewrite the table for every hundredth.)"""
    found = figures_of(figures.table())
    assert found
    assert all(found.values())
    assert wrong(written(README.read_text()), found) == [], "python -m docs.figures writes them again"


def test_a_wrong_figure_is_found():
    found = figures_of(figures.table())
    for row in found:
        told = found | {row: [found[row][0] * 1.2, *found[row][1:]]}
        assert wrong(told, found) == [row]
        assert wrong({r: n for r, n in found.items() if r != row}, found) == [row]
