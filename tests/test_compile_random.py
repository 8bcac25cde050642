"""Random programs mean the same compiled: arguments and results are NumPy's, in all calls."""

import pytest
from compiledprograms import MAKERS, check, check_in_threads, check_on_ranks
from ways import running

import mirabelle as mb

BLOCKS = 5


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", MAKERS)
def test_programs_are_numpys(kind, block):
    first = 1000 * list(MAKERS).index(kind) + 100 * block
    came = [check(number, kind, lines=18) for number in range(first, first + 12)]
    # (Some ask where a mask holds, or return what it picks, which is refused.)
    assert came.count("same") > 5


@pytest.mark.parametrize("passes", [[], ["parts"]], ids=str)
def test_without_passes_they_are_the_same(passes):
    came = [check(number, "host", passes) for number in range(9000, 9060)]
    assert came.count("same") > 40


def test_compiled_natively_they_are_the_same():
    with running("hot"), mb.settings.changed(thread_size=16):
        came = [check(number, "host", lines=16) for number in range(9100, 9130)]
    assert came.count("same") > 15


@pytest.mark.parametrize("ranks", [2, 3])
def test_divided_over_ranks_they_are_the_same(ranks):
    came = [check_on_ranks(number, ranks) for number in range(9200, 9206)]
    assert came.count("same") > 3


def test_captured_by_several_threads_at_once_they_are_the_same():
    came = check_in_threads(list(range(9300, 9324)))
    assert not [e for e in came.values() if isinstance(e, Exception)], came
    assert list(came.values()).count("same") > 12
