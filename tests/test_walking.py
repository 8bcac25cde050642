"""What is asked of a tree as a whole (dispatch/csrc/walking.c), beside the same in a few lines of Python."""

import random

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.dispatch import schedule
from mirabelle.dispatch._native import waiting_reductions
from mirabelle.dispatch.tree import Broadcasted, Reduced


def walked(root):
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if not any(node is x for x in found):
            found.append(node)
            stack += [a for a in node.args or () if type(a) is Broadcasted and a.value is None]
    return found


def drawn(dice, n):
    """A pending array of about `n` operations, many of them read several times; and what it is made of."""
    made = [mb.HostArray(np.linspace(0, 1, 5000)) for _ in range(2)]
    sums = []
    for _ in range(n):
        a, b = dice.choice(made[-6:]), dice.choice(made)
        form = dice.randint(0, 9)
        if form == 0:
            sums.append(mb.sum(a))
            made.append(b * sums[-1])
        elif form == 1:
            made.append(mb.exp(a))
        else:
            made.append(a + b * 0.5 if form < 7 else mb.maximum(a, b))
        if dice.random() < 0.1:
            made[-1]._node.evaluations += type(made[-1]._node) is Broadcasted and made[-1]._node.value is None
    return made, sums


@pytest.mark.parametrize("seed", range(30))
def test_walks_find_each_operation_once_in_order(seed):
    dice = random.Random(seed)
    with mb.settings.changed(brief_size=0, tree_limit=100_000, immediate_size=0):
        made, _sums = drawn(dice, dice.choice([3, 10, 47, 48, 49, 60, 300]))
        root = made[-1]._node
        if type(root) is not Broadcasted or root.value is not None:
            return
        expected = walked(root)
        assert [id(x) for x in schedule.operations(root)] == [id(x) for x in expected]
        waiting = [a for node in expected for a in node.args or () if type(a) is Reduced and a.value is None]
        assert [id(x) for x in waiting_reductions(root)] == [id(x) for x in waiting]
        cost = sum(node.sig.cost for node in expected if node.sig.cost > 2)
        assert schedule.dag_cost(root) == cost
        assert schedule.worth_storing(root) == (cost >= 16 or any(node.evaluations for node in expected))
        stored = [node for node in expected if node.evaluations]
        assert schedule.worth_storing(root, stored) == (cost >= 16)
        if stored:
            assert schedule.worth_storing(root, stored[1:])


def test_what_is_no_tree_is_refused():
    leaf = mb.HostArray([1.0])._node
    for ask in (schedule.operations, schedule.dag_cost, schedule.worth_storing, waiting_reductions):
        with pytest.raises(TypeError, match="is no operation"):
            ask(leaf)
    with pytest.raises(TypeError, match="stored"):
        schedule.worth_storing(leaf, ())


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "u1", "u2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3000,), (4, 5), (60, 70), (2, 3, 4)])
def test_sums_of_small_integers_are_numpys(dtype, shape):
    rng = np.random.default_rng(0)
    a = (rng.random(shape) * 200).astype(dtype)
    for x, n in (
        (mb.HostArray(a), a),
        (mb.HostArray(a)[::-1], a[::-1]),
        (mb.HostArray(a) + mb.HostArray(a), a + a),
    ):
        for options in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": ()}):
            made, expected = mb.sum(x, **options), np.sum(n, **options)
            assert made.dtype == expected.dtype and made.shape == expected.shape
            np.testing.assert_allclose(mb.to_numpy(made), expected, rtol=1e-5)
        if n.size:
            np.testing.assert_allclose(float(mb.mean(x)), np.mean(n), rtol=1e-4)


def test_chains_of_reductions_that_nobody_reads_end():
    x = mb.HostArray(np.ones(3000))
    s = mb.sum(x)
    for _ in range(5000):
        s = mb.sum(x * s) / 3000
    assert float(s) == 3000.0
