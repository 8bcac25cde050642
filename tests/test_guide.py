"""The examples of the guide run, and print what it says."""

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_guide_is_true(page):
    if page.stem == "pandas":
        pytest.importorskip("pandas")
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert result.attempted > 5
    assert result.failed == 0
