"""Libraries take our arrays and give them back, on the host and on a device."""

import warnings

import pytest
from handover import outcome, refusal, where
from libraries import MODULES, PROGRAMS

CLIENTS = [
    pytest.param(library, program, family, id=f"{family}: {program}")
    for library, table in PROGRAMS.items()
    for program in table
    for family in where(program)
]


HOST_ONLY = [
    pytest.param(library, program, id=program)
    for library, table in PROGRAMS.items()
    for program in table
    if where(program) == ["host"]
]


def need(library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library
        # A library that fails to import where it is installed is no reason to skip.
        pytest.importorskip(library, exc_type=ModuleNotFoundError)


@pytest.mark.parametrize(("library", "program", "family"), CLIENTS)
def test_clients_give_the_right_answer_as_our_type(library, program, family):
    need(library)
    wrong = outcome(program, MODULES[library], family)
    assert not wrong, wrong


@pytest.mark.parametrize(("library", "program"), HOST_ONLY)
def test_what_needs_the_host_refuses_a_device_with_the_cure(library, program):
    need(library)
    wrong = refusal(program, MODULES[library])
    assert not wrong, wrong
