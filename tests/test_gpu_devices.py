"""Several cards: types, places, copies from one to another, mistakes. (Simulated cards.)"""

import copy
import pickle

import numpy as np
import pytest
from children import answer
from compare import assert_same

import mirabelle as mb

if mb.settings.cuda != "simulated":
    pytest.skip("of simulated cards; test_gpu_card.py is of real ones", allow_module_level=True)

pytestmark = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")

VALUES = np.arange(12.0).reshape(3, 4)
SECOND = mb.CuArray.on(1)


def test_arrays_say_on_which_card_they_are():
    x = mb.CuArray(VALUES, device=1)
    assert x.place == mb.devices()[mb.devices().index(x.place)]
    assert repr(x.place) == "cuda:1"
    assert type(x) is SECOND[np.float64, 2]
    assert isinstance(x, mb.CuArray)
    assert not isinstance(mb.CuArray(VALUES), SECOND)
    assert SECOND.on(0) is mb.CuArray and SECOND.on(1) is SECOND
    assert type(x * 2 + 1).__name__ == "CuArray.on(1)[float64, 2]"
    assert_same(x * 2 + 1, VALUES * 2 + 1)
    assert mb.CuArray["f4"](VALUES, device=1).dtype == np.float32


@pytest.mark.parametrize(
    "device",
    [SECOND, SECOND["f8"], "cuda:1", mb.CuArray([1.0], device=1).place],
    ids=["type", "dtype", "text", "place"],
)
def test_devices_of_creation_functions(device):
    x = mb.linspace(0, 1, 3, device=device)
    assert type(x).family is SECOND
    assert type(mb.asarray(mb.CuArray([1.0]), device=device)).family is SECOND
    assert type(mb.HostArray([1.0]).to_device(device)).family is SECOND
    with mb.default_array(device):
        assert type(mb.zeros(2)).family is SECOND
    assert type(mb.namespace(device).ones(2)).family is SECOND


def test_devices_lists_cards():
    kinds = [p.kind for p in mb.devices()]
    assert kinds.count("cuda") == 2 and kinds.count("rocm") == 0 and kinds[0] == "host"
    assert mb.__array_namespace_info__().devices() == mb.devices()


def test_the_import_starts_no_card():
    said = answer(
        """
        import json, sys
        import mirabelle as mb
        mb.HostArray([1.0]) + 1
        mb.devices(), mb.__array_namespace_info__().devices()
        print(json.dumps([m for m in ("cupy", "numba.cuda") if m in sys.modules]))
        """
    )
    assert said == []


@pytest.mark.parametrize(
    "show",
    [lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[::-1], lambda x: x[2], lambda x: x + 1,
     lambda x: x[:0], lambda x: mb.sum(x), lambda x: mb.diag(x[0, :3])],
    ids=["whole", "turned", "part", "reversed", "row", "pending", "empty", "number", "structured"],
)  # fmt: skip
def test_copies_go_from_card_to_card(show):
    x = show(mb.CuArray(VALUES))
    expected = mb.to_numpy(x)
    mb.materialize(x)
    with mb.count() as c:
        moved = mb.adapt(SECOND, x)
    assert (c.transfers, c.scalar_reads) == (1, 0)
    assert moved.place == SECOND.home
    assert_same(moved, expected)
    back = mb.adapt(mb.CuArray, moved)
    assert back.place == mb.CuArray.home
    assert_same(back, expected)


def test_what_was_copied_is_a_copy():
    x = mb.CuArray(VALUES)
    y = SECOND(x)
    x += 1
    y *= 2
    assert_same(x, VALUES + 1)
    assert_same(y, VALUES * 2)


@pytest.mark.parametrize(
    "mix",
    [lambda x, y: x + y, lambda x, y: mb.where(x > 0, x, y), lambda x, y: x @ y.T,
     lambda x, y: x.__setitem__(0, y[0]), lambda x, y: x.__iadd__(y), lambda x, y: mb.concat([x, y])],
    ids=["add", "where", "matmul", "write", "in place", "concat"],
)  # fmt: skip
def test_cards_are_not_mixed(mix):
    x, y = mb.CuArray(VALUES), SECOND(VALUES)
    with pytest.raises(mb.PlaceError, match=r"cuda:0.*cuda:1|cuda:1.*cuda:0") as caught:
        mix(x, y)
    assert "mb.adapt(mb.CuArray" in str(caught.value)
    with pytest.raises(mb.PlaceError, match=r"mb\.adapt\(mb\.CuArray\.on\(1\), x\)"):
        mix(y, x)
    assert_same(x, VALUES)


def test_the_cure_is_one_that_can_be_pasted():
    x, y = mb.CuArray(VALUES), SECOND(VALUES)
    with pytest.raises(mb.PlaceError) as caught:
        y + x
    cure = str(caught.value).split("`")[1]
    assert_same(y + eval(cure), 2 * VALUES)


def test_types_and_arrays_are_pickled():
    for kind in (mb.CuArray, SECOND, SECOND["f4"], SECOND["f4", 2], mb.types.Transpose[SECOND["f8", 2]]):
        assert pickle.loads(pickle.dumps(kind)) is kind
    x = SECOND(VALUES)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), pickle.loads(pickle.dumps(x.T)).T):
        assert type(y) is type(x)
        assert_same(y, VALUES)


def test_a_type_is_pickled_into_a_process_that_has_not_seen_it(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps(SECOND([1.0, 2.0])))
    said = answer(
        f"""
        import json, pickle
        x = pickle.loads(open({str(tmp_path / "x")!r}, "rb").read())
        print(json.dumps([type(x).__name__, repr(x.place), (x + 1).tolist()]))
        """,
        cuda="simulated",
    )
    assert said == ["CuArray.on(1)[float64, 1]", "cuda:1", [2.0, 3.0]]


def test_a_card_that_is_not_there():
    for make in (lambda: mb.CuArray([1.0], device=7), lambda: mb.zeros(2, device="cuda:7")):
        with pytest.raises(mb.DeviceError, match="Card 7 was asked for"):
            make()
    with pytest.raises(ValueError, match="numbered from 0"):
        mb.CuArray.on(-1)
    with pytest.raises(ValueError, match="no place"):
        mb.zeros(2, device="tpu:0")


def test_memory_of_another_card_is_no_memory_of_this():
    from mirabelle.arraytypes.gpu import handle, view_at

    x = mb.CuArray(VALUES)
    view = mb.ext.tree(x).view
    stray = handle(SECOND, view_at(SECOND.view_type, view.owner, view.ptr, view.shape, view.dtype))
    with pytest.raises(mb.DeviceError, match="illegal memory access"):
        mb.to_numpy(stray + 1)


def test_info_names_the_cards(capsys):
    from mirabelle.__main__ import main

    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert "CuArray" in said and "simulated" in said
