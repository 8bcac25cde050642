"""A part of what `python -m tests.gpuvalues` asks of cards: of simulated ones, and of other places."""

import numpy as np
import pytest
from gpuvalues import CASTS, DTYPES, ELEMENTS, LINEAR, MIXED, ORDERS, PLACES, SUMS, WRITES, Attack, integers_of

import mirabelle as mb

TABLES = {
    "orders": ORDERS, "sums": SUMS, "elements": ELEMENTS, "places": PLACES, "mixed": MIXED, "linear": LINEAR,
    "casts": CASTS, "writes": "".join(f"{line}!\n" for line in WRITES.strip().splitlines()),
}  # fmt: skip
FAMILIES = {"host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("table", TABLES)
def test_values_where_things_go_wrong_are_numpys(table, family):
    if table == "casts" and family != "cuda":
        pytest.skip("the formula is the cards'")
    attack = Attack(FAMILIES[family], compiled=False)
    for i, text in enumerate(TABLES[table].strip().splitlines()):
        for dtype in DTYPES[i % 6 :: 6]:
            attack.case(text, dtype, 0)
    assert not attack.report()


@pytest.mark.parametrize("table", TABLES)
def test_compiled_programs_give_the_same(table):
    attack = Attack(mb.CuArray)
    for i, text in enumerate(TABLES[table].strip().splitlines()[::2]):
        attack.case(text, DTYPES[i % len(DTYPES)], 1)
    assert not attack.report()


def test_the_formula_of_casts_is_numpys_within_the_range():
    x = np.array([0.0, -0.9, 1.9, -7.5, 1e9, -1e9, 2.0**62])
    assert (integers_of(x, "i8") == x.astype("i8")).all()
    assert integers_of(np.array([np.nan, -5.0, 300.0, 1e300]), "u1").tolist() == [0, 251, 44, 0]
