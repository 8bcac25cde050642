"""Libraries take our arrays and give them back, on the host and on a device."""

import warnings

import pytest
from handover import outcome, where
from libraries import MODULES, PROGRAMS

CLIENTS = [
    pytest.param(library, program, family, id=f"{family}: {program}")
    for library, table in PROGRAMS.items()
    for program in table
    for family in where(program)
]


@pytest.mark.parametrize(("library", "program", "family"), CLIENTS)
def test_clients_give_the_right_answer_as_our_type(library, program, family):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library
        # A library that fails to import where it is installed is no reason to skip.
        pytest.importorskip(library, exc_type=ModuleNotFoundError)
    wrong = outcome(program, MODULES[library], family)
    assert not wrong, wrong
