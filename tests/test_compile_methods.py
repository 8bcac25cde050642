"""What users say of a type holds for what stands for it in a compiled program."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.dispatch.generic import generic


def test_an_override_for_the_type_of_the_arguments():
    called = []

    def mine(x):
        called.append(type(x))
        return mb.sin.previous(x) * 2

    x = mb.HostArray([[1.0, 2.0]])
    f = mb.compile(lambda x: mb.sin(x))
    with mb.override(mb.sin, (mb.HostArray,), mine):
        assert np.allclose(mb.to_numpy(f(x)), 2 * np.sin(mb.to_numpy(x)))
    assert len(called) == 1 and issubclass(called[0], Traced)
    assert np.allclose(mb.to_numpy(f(x)), np.sin(mb.to_numpy(x)))


@generic
def energy(x):
    """What an application asks of its arrays."""


@energy.method
def _(x: mb.AbstractArray):
    return mb.sum(x)


@energy.method
def _(x: mb.HostArray):
    return mb.sum(x * x)


@energy.method
def _(x: mb.types.Transpose[mb.HostArray]):
    return mb.max(x)


@pytest.mark.parametrize("device", [mb.HostArray, mb.RefArray])
def test_methods_for_types_and_their_wrappers(device):
    x = mb.adapt(device, mb.HostArray([[1.0, 2.0], [3.0, 4.0]]))
    assert float(mb.compile(energy)(x)) == float(energy(x)) == (30 if device is mb.HostArray else 10)
    assert float(mb.compile(lambda x: energy(x.T))(x)) == (4 if device is mb.HostArray else 10)


def test_what_stands_for_what():
    traced = Traced[mb.HostArray]
    assert traced[np.float64, 2]._stood_for() is mb.HostArray[np.float64, 2]
    assert (
        mb.types.Transpose[traced[np.float64, 2]]._stood_for()
        is mb.types.Transpose[mb.HostArray[np.float64, 2]]
    )
    assert mb.HostArray._stood_for() is mb.HostArray
