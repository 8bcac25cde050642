"""Stencils of several operands and dtypes, whose halos travel together, have NumPy's values."""

import numpy as np
import pytest
from haloprograms import program, ran
from threadranks import on_ranks
from ways import running

import mirabelle as mb


@pytest.mark.parametrize("way", ["cold", "hot"])
@pytest.mark.parametrize("inner", ["HostArray", "RefArray"])
@pytest.mark.parametrize("seed", range(12))
def test_operands_of_several_dtypes(seed, inner, way):
    arrays, statements = program(seed)
    turns = 5  # (a statement is known again from the third time on)
    expected = ran(np, arrays, np.zeros(arrays[0].shape), statements, turns)
    family = mb.DArray[getattr(mb, inner)]

    def on_rank(comm):
        mine = [family(x, comm=comm) for x in arrays]
        out = family(np.zeros(arrays[0].shape), comm=comm)
        return mb.to_numpy(ran(mb, mine, out, statements, turns))

    with running(way), mb.settings.changed(overlap_size=0, immediate_size=(0, 1 << 20)[seed % 2]):
        for found in on_ranks(2 + seed % 3, on_rank):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_halos_of_several_operands_are_one_message_to_each_neighbour():
    def on_rank(comm):
        a, b = (mb.DArray[mb.HostArray](np.arange(60.0) + k, comm=comm) for k in range(2))
        out = mb.zeros_like(a)
        for _ in range(3):  # (the second time it is known again)
            with mb.count() as c:
                out[1:-1] = a[2:] + a[:-2] + b[2:] * b[:-2]
        return c.messages, c.bytes_sent

    with mb.settings.changed(overlap_size=0):
        assert on_ranks(3, on_rank) == [(1, 16), (2, 32), (1, 16)]


@pytest.mark.parametrize("inner", [mb.HostArray, mb.RefArray])
def test_a_method_of_a_users_on_copyto_sees_what_was_met_before(inner):
    seen = []

    def watched(dest, src):
        seen.append(dest.shape)
        return mb.copyto.previous(dest, src)

    def on_rank(comm):
        a, out = (mb.DArray[inner](np.arange(60.0), comm=comm) for _ in range(2))
        for k in range(8):
            if k < 6:
                out[1:-1] = a[2:] + a[:-2]
                continue
            before = len(seen)
            with mb.override(mb.copyto, (inner, object), watched):
                out[1:-1] = a[2:] + a[:-2]
            assert len(seen) > before
        return mb.to_numpy(out)

    with running("hot"), mb.settings.changed(overlap_size=0):
        for found in on_ranks(2, on_rank):
            assert found[1:-1].tolist() == [2.0 * i for i in range(1, 59)]
