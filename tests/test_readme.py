"""The examples of the README run, and print what it says."""

import doctest
from pathlib import Path


def test_the_readme_is_true():
    # (In a namespace of its own: it defines array types and methods.)
    result = doctest.testfile(
        str(Path(__file__).parent.parent / "README.md"), module_relative=False, optionflags=doctest.REPORT_NDIFF
    )
    assert result.attempted > 50
    assert result.failed == 0
