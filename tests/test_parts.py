"""Which tests CI leaves out: of families with many variants a part, and all parts have each of them."""

import zlib

import conftest
import pytest


class Item:
    def __init__(self, nodeid):
        self.nodeid = nodeid


def test_four_landings_run_all_variants_and_none_twice():
    variants = [Item(f"tests/test_x.py::test_y[{k}]") for k in range(200)]
    for parts in (4, 8):
        run = []
        for part in range(parts):
            left_out = conftest._of_other_parts(variants, part, parts)
            run += [v.nodeid for v in variants if v not in left_out]
        assert sorted(run) == sorted(v.nodeid for v in variants)


def test_a_part_without_any_runs_one():
    variants = [Item(f"t[{k}]") for k in range(2)]
    (part,) = {zlib.crc32(v.nodeid.encode()) % 4 for v in variants[:1]}
    other = next(p for p in range(4) if all(zlib.crc32(v.nodeid.encode()) % 4 != p for v in variants))
    assert len(conftest._of_other_parts(variants, other, 4)) == 1
    assert variants[0] not in conftest._of_other_parts(variants, part, 4)


@pytest.mark.parametrize("first", [1, 1180, 99_999])
def test_landings_take_turns(first):
    """Of landings one commit apart each quarter comes; every fourth has an eighth, and eight of these all."""
    counts = range(first, first + 64)
    quarters = [conftest.part_after(n) for n in counts if n % conftest.EVERY]
    assert all(len({*quarters[k : k + 4]}) == 4 and p.endswith("/4") for k, p in enumerate(quarters[:-4]))
    eighths = [conftest.part_after(n) for n in counts if n % conftest.EVERY == 0]
    assert len({*eighths[:8]}) == 8 and all(p.endswith("/8") for p in eighths)
