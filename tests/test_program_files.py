"""Programs in files: what is loaded is what was saved, and what is damaged or made up is refused."""

import contextlib
import dataclasses
import json
import math
import os
import struct
import zipfile

import numpy as np
import pytest
import waves
from children import answer

import mirabelle as mb
from mirabelle.arraytypes.programs import graph, texts, validity
from mirabelle.arraytypes.programs.graph import Slot, counted, data_node

INLINE = {"compiler": "inline", "compile_size": 1, "num_threads": 2}
rng = np.random.default_rng(3)
A, V, I = rng.random((4, 4)), rng.random(4), np.array([0, 2, 1])
LARGE = rng.random((80, 90))


def same(got, wanted, exactly=True):
    if isinstance(wanted, mb.AbstractArray):
        assert isinstance(got, mb.AbstractArray) and got.dtype == wanted.dtype
        a, b = mb.to_numpy(got), mb.to_numpy(wanted)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0 if exactly else 1e-12, atol=0 if exactly else 1e-13)
    elif isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            same(a, b, exactly)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for k in wanted:
            same(got[k], wanted[k], exactly)
    else:
        assert type(got) is type(wanted) and (got == wanted or (got != got and wanted != wanted))


# What programs are made of


def elementwise(a, v):
    return mb.where(a > 0.5, mb.exp(-a) * v, -0.0) + mb.HostArray([1.0, 2.0, 3.0, 4.0]) / 3


def reductions(a):
    return mb.sum(a, axis=0), mb.max(a), mb.prod(a, axis=(0, 1), keepdims=True), mb.any(a > 0.9), mb.std(a)


def writes(a, v):
    a[1:-1, 0] = v[1:3] * 2
    v[::-2] = a[0, :2] - 1


def scatters(a, v, i):
    a[i] = v
    a[i, ::-1] += 1
    return a[i, ::-1][:, [0, 2]]


def library(a, v):
    x = mb.linalg.solve(a + 4 * mb.eye(4), v)
    return x @ a, mb.fft.fft(x), mb.sort(a, axis=0), mb.cumulative_sum(v), mb.linalg.svd(a), mb.quantile(v, 0.3)


def product(a):
    return a @ a.T


def containers(a, v):
    twice = a * 2
    several = [v, (twice, 1, None, "x", np.float32(2), math.nan)]
    return {"a": twice, 3: several, "view": twice[::-1, 1], "t": a.T}


def numbers(v):
    return v * (1 + 2j), (v * 1j).real, mb.copysign(v, -0.0), mb.minimum(v, math.inf), v + np.float32(0.1)


def dtypes(v):
    return v.astype(mb.float32) + 1, (v * 9).astype(mb.int8) // 2, mb.divmod(v, 0.3), mb.frexp(v)


def constants(v):
    return mb.HostArray([1, 2, 3]), v


def views(a):
    return a[1:, ::-2] + a.T[:3, :2], mb.concat([a[0], a[1]]), mb.reshape(a, (2, 8)).T * 1, a[..., None][0] * 1


def loops(a, v):
    def body(k, state):
        x, total = state
        x[k % 4] = x[k % 4] * 0.5 + v
        return x, total + mb.fori_loop(0, 3, lambda i, t: t + mb.sum(x) * i, mb.zeros(()))

    x, total = mb.fori_loop(0, 9, body, (a * 2, mb.zeros(())))
    small = mb.while_loop(lambda x: mb.max(x) > 0.1, lambda x: x / 2 - mb.HostArray([0.0, 0.01, 0.0, 0.0]), v)
    return x, total, small, mb.cond(total > 0, lambda y: y + 1, mb.negative, small)


def nothing(v):
    v *= 2


PROGRAMS = {
    f.__name__: (f, values)
    for f, *values in (
        (elementwise, A, V), (reductions, A), (writes, A, V), (scatters, A, V, I), (library, A, V),
        (product, LARGE), (containers, A, V), (numbers, V), (dtypes, V), (constants, V), (views, A),
        (nothing, V), (loops, A, V),
    )
}  # fmt: skip


def saved(tmp_path, f, *values, name="a.program", **options):
    arguments = [mb.HostArray(x) if isinstance(x, np.ndarray) else x for x in values]
    mb.compile(f, **options).program(*arguments).save(tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray], ids=lambda f: f.__name__)
def test_what_is_loaded_does_what_was_saved(tmp_path, name, family):
    f, values = PROGRAMS[name]
    path = saved(tmp_path, f, *values)
    program = mb.load_program(path, device=None if family is mb.HostArray else family)
    for _ in range(2):
        given, expected = [family(x) for x in values], [mb.HostArray(x) for x in values]
        got = program(*given)
        same(got, mb.compile(f)(*expected), exactly=family is mb.HostArray)
        same(given, expected, exactly=family is mb.HostArray)
    # And it can be saved again.
    program.save(tmp_path / "again.program")
    again = mb.load_program(tmp_path / "again.program", device=mb.HostArray)
    same(again(*[mb.HostArray(x) for x in values]), mb.compile(f)(*[mb.HostArray(x) for x in values]))


@pytest.mark.parametrize(
    ("f", "arguments"),
    [(waves.wave_rhs, waves.wave_arguments), (waves.euler_rhs, waves.euler_arguments)],
    ids=["wave", "euler"],
)
def test_large_programs(tmp_path, f, arguments):
    values = arguments(8)
    program = mb.compile(f).program(*values)
    program.save(tmp_path / "a.program")
    loaded = mb.load_program(tmp_path / "a.program")
    assert counted(loaded.graph) == counted(program.graph)
    assert [step.name for step in loaded.plan.steps] == [step.name for step in program.plan.steps]
    assert loaded.plan.arena_bytes == program.plan.arena_bytes
    same(loaded(*values), program.run([x for x in values if isinstance(x, mb.types.DenseArray)]))


def test_the_graph_is_the_same_to_the_last_node(tmp_path):
    """Equal nodes are one object: so what is read, of the same inputs, are those that were written."""
    with graph.undisturbed():  # (one table of nodes for both)
        program = mb.compile(waves.wave_rhs).program(*waves.wave_arguments(8))
        writer = texts.Writer()
        text = json.loads(json.dumps(writer.graph(program.captured.inputs, program.outputs)))
        data = [data_node(program.inner, view) for _, view in writer.views.values()]
        reader = texts.Reader(
            json.loads(json.dumps(list(writer.signatures))), writer.files, data, [None] * len(data)
        )
        count = len(program.captured.inputs)
        assert [x["kind"] for x in text["nodes"][:count]] == ["input"] * count
        reader.nodes += program.captured.inputs
        for each in text["nodes"][count:]:
            reader.add(each)
        wanted = {id(x) for x in program.graph}
        assert wanted <= {id(x) for x in reader.nodes}


def test_equal_programs_are_equal_files(tmp_path):
    first = saved(tmp_path, writes, A, V, name="1").read_bytes()
    assert first == saved(tmp_path, writes, A, V, name="2").read_bytes()


def test_no_paths_of_this_machine_are_in_a_file(tmp_path):
    path = saved(tmp_path, elementwise, A, V)
    text = path.read_bytes()
    assert os.fsencode(os.path.dirname(__file__)) not in text and b"test_program_files.py" in text
    program = mb.load_program(path)
    lines = {node.line for node in program.graph if node.line}
    assert {os.path.basename(file) for file, _ in lines} == {"test_program_files.py"}
    assert lines <= {("<saved>/test_program_files.py", n) for n in range(1, 200)}
    assert "test_program_files.py" in str(program.explain())


VALUES = [
    None, True, 0, -(10**30), 0.1, -0.0, math.inf, -math.inf, 1e-320, complex(-0.0, math.inf), "text", "",
    [1, (2, [3.0])], (), {"a": 1, 2: None, (1, 2): "t"}, slice(None, 2, -1), Ellipsis, np.dtype("int32"),
    np.float64, np.float32(-0.0), np.complex64(1 - 2j), np.bool_(True), np.uint8(255), np.float16(0.1), Slot(3),
    float, int,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value):
    text = json.loads(json.dumps(texts.Writer().value(value), allow_nan=False))
    got = texts.Reader().value(text)
    assert type(got) is type(value) and repr(got) == repr(value)


@pytest.mark.parametrize("bits", ["7ff8000000000000", "fff8000000000001", "7ff0000000000001"])
def test_nans_come_back_bit_by_bit(bits):
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    back = texts.Reader().value(json.loads(json.dumps(texts.Writer().value(value))))
    # (A processor may make a quiet NaN of the third.)
    assert struct.pack(">d", back).hex() in (bits, struct.pack(">d", value).hex())
    scalar = np.frombuffer(bytes.fromhex(bits), ">f8").astype("<f8")[0]
    assert texts.Reader().value(texts.Writer().value(scalar)).tobytes() == scalar.tobytes()


@pytest.mark.parametrize("value", [object(), len, lambda: 0, np.dtype("M8[s]"), {1, 2}, np.zeros(2), list])
def test_what_is_no_plain_value_has_no_text(value):
    with pytest.raises(texts.NoText):
        texts.Writer().value(value)


# Fresh processes

LOAD = """
    import json, sys
    import numpy as np
    import mirabelle as mb
    from mirabelle.backends.host import kernels
    program = mb.load_program({path!r})
    rng = np.random.default_rng(3)
    A, V = rng.random((4, 4)), rng.random(4)
    with mb.count() as c:
        got = mb.to_numpy(program(mb.HostArray(A), mb.HostArray(V)))
        again = mb.to_numpy(program(mb.HostArray(A), mb.HostArray(V)))
    expected = np.where(A > 0.5, np.exp(-A) * V, -0.0) + np.array([1.0, 2, 3, 4]) / 3
    print(json.dumps({{
        "right": bool(np.allclose(got, expected, rtol=1e-14) and (got == again).all()),
        "compilations": c.compilations,
        "compiled": kernels.compilations,
        "numba": "numba" in sys.modules,
    }}))
"""


def test_a_fresh_process_runs_a_program_from_the_disk_and_compiles_nothing(tmp_path):
    path = saved(tmp_path, elementwise, A, V)
    settings = {**INLINE, "cache_dir": tmp_path / "kernels"}
    code = LOAD.format(path=str(path))
    first = answer(code, **settings)
    assert first["right"] and first["compiled"] > 0
    second = answer(code, **settings)
    assert second == {"right": True, "compilations": 0, "compiled": 0, "numba": False}


# Calling


@dataclasses.dataclass
class State:
    u: object
    v: object


def test_arguments_in_containers_by_name_and_as_numpy(tmp_path):
    def f(state, pair, *, scale, k=2):
        return state.u * scale["s"] + pair[0] * k - state.v

    u = mb.HostArray(V)
    program = mb.compile(f).program(State(u, u), [u, 3], scale={"s": u}, k=4)
    program.save(tmp_path / "a")
    loaded = mb.load_program(tmp_path / "a")
    other = mb.HostArray(V + 1)
    got = loaded(State(other, other), [other, 3], k=4, scale={"s": other})
    same(got, f(State(other, other), [other, 3], scale={"s": other}, k=4))
    with pytest.raises(TypeError, match="array that was given before"):
        loaded(State(other, mb.HostArray(V)), [other, 3], scale={"s": other}, k=4)
    with pytest.raises(TypeError, match=r"argument k is 5, .* made for 4, which is a constant"):
        loaded(State(other, other), [other, 3], scale={"s": other}, k=5)


def test_views_as_arguments(tmp_path):
    def f(a):
        a[0] = 7
        return a * 2

    program = mb.compile(f).program(mb.HostArray(A).T)
    program.save(tmp_path / "a")
    given, expected = mb.HostArray(A + 1), mb.HostArray(A + 1)
    same(mb.load_program(tmp_path / "a")(given.T), f(expected.T))
    same(given, expected)
    with pytest.raises(TypeError, match="the program takes a Transpose"):
        mb.load_program(tmp_path / "a")(given)


def test_by_place_and_by_name_are_the_same(tmp_path):
    program = mb.load_program(saved(tmp_path, elementwise, A, V))
    a, v = mb.HostArray(A), mb.HostArray(V)
    wanted = program(a, v)
    same(program(a, v=v), wanted)
    same(program(v=v, a=a), wanted)
    same(program(A, V), wanted)  # NumPy's
    same(program(a * 1, v + 0), wanted)  # pending


def test_numpy_arrays_are_written_to(tmp_path):
    program = mb.load_program(saved(tmp_path, nothing, V))
    x = V.copy()
    assert program(x) is None
    np.testing.assert_array_equal(x, V * 2)


BAD_CALLS = {
    "dtype": (
        lambda a, v: (a.astype(mb.float32), v),
        "argument a is float32.4, 4., and the program takes float64",
    ),
    "shape": (
        lambda a, v: (a[:3] * 1, v),
        r"argument a is float64\[3, 4\], and .* float64\[4, 4\]\. A program "
        "is for",
    ),
    "rank": (lambda a, v: (a, a * 1), r"argument v is float64\[4, 4\], and the program takes float64\[4\]"),
    "fewer": (lambda a, v: (a,), "takes 2 arguments, and is given 1 argument"),
    "number": (lambda a, v: (a, 3.5), r"argument v is 3\.5, and the program takes float64\[4\]"),
    "list": (lambda a, v: (a, [v]), "argument v is a list of 1"),
    "text": (lambda a, v: (a, "v"), "argument v is 'v'"),
    "twice": (lambda a, v: (a, a), "argument v is an array that was given before"),
    "view": (lambda a, v: (a.T, v), r"argument a is a Transpose, .* Pass its contents"),
    "place": (
        lambda a, v: (mb.RefArray(A), mb.RefArray(V)),
        r"runs on HostArray, and .* "
        r"RefArray.*device=mb\.RefArray",
    ),
    "function": (lambda a, v: (a, len), "no array, number or text"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_other_arguments_are_told_apart(tmp_path, name):
    make, message = BAD_CALLS[name]
    program = mb.load_program(saved(tmp_path, elementwise, A, V))
    given = make(mb.HostArray(A), mb.HostArray(V))
    with pytest.raises(TypeError, match=message):
        program(*given)
    if name != "function":
        with pytest.raises(TypeError, match="takes 2 arguments"):
            program(*given, extra=1)
    # It goes on running with what it was made for.
    same(program(mb.HostArray(A), mb.HostArray(V)), mb.compile(elementwise)(mb.HostArray(A), mb.HostArray(V)))


def test_a_loaded_program_is_no_part_of_another(tmp_path):
    program = mb.load_program(saved(tmp_path, nothing, V))
    with pytest.raises(TypeError, match="cannot be part of another one"):
        mb.compile(lambda x: program(x), whole=True)(mb.HostArray(V))


@pytest.mark.parametrize("device", [mb.types.Transpose, mb.compiling.Traced[mb.HostArray]])
def test_only_plain_arrays_are_devices(tmp_path, device):
    path = saved(tmp_path, nothing, V)
    with pytest.raises((TypeError, ValueError)):
        mb.load_program(path, device=device)


# What cannot be saved


@dataclasses.dataclass
class Pair:
    a: object


@mb.jit
def jitted(v):
    return v[0] + 1


REFUSED = {
    "user function": (lambda v: mb.broadcast(lambda x: x * x + 1, v), "the function .* of your own"),
    "dataclass": (lambda v: Pair(v * 2), "a result of the type Pair"),
    "object": (lambda v: (v * 2, object()), "a result of the type object"),
    "set": (lambda v: (v * 2, {1}), "a result of the type set"),
    "reduction": (lambda v: mb.reduce(lambda a, b: a + b * b, v, init=0.0), "the reduction .* of your own"),
    "jit": (lambda v: jitted(v), "an object"),
    "structured": (lambda v: mb.Diagonal(v), "a result of the type Diagonal"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_name_is_refused_and_nothing_is_left(tmp_path, name):
    f, message = REFUSED[name]
    program = mb.compile(f).program(mb.HostArray(V))
    (tmp_path / "a").write_text("what was there")
    with pytest.raises(TypeError, match=f"cannot be saved: there is {message}") as e:
        program.save(tmp_path / "a")
    assert name != "user function" or "test_program_files.py:" in str(e.value)
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "what was there"


def test_an_argument_that_is_a_function_is_refused(tmp_path):
    program = mb.compile(lambda f, v: f(v)).program(mb.exp, mb.HostArray(V))
    with pytest.raises(TypeError, match="known to this process alone"):
        program.save(tmp_path / "a")


def test_where_it_cannot_be_saved(tmp_path):
    program = mb.compile(nothing).program(mb.HostArray(V))
    with pytest.raises(IsADirectoryError, match="is a folder"):
        program.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        program.save(tmp_path / "there" / "a")
    with pytest.raises(TypeError, match="under a name"):
        program.save(3)
    if os.getuid():
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(PermissionError):
                program.save(tmp_path / "a")
        finally:
            tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path, monkeypatch):
    path = saved(tmp_path, elementwise, A, V)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="No space"):
        saved(tmp_path, nothing, V)
    assert os.listdir(tmp_path) == ["a.program"] and path.read_bytes() == before


# Files that are damaged


def test_missing_files_folders_and_others(tmp_path):
    with pytest.raises(FileNotFoundError):
        mb.load_program(tmp_path / "there.program")
    with pytest.raises(IsADirectoryError):
        mb.load_program(tmp_path)
    with pytest.raises(TypeError, match="name"):
        mb.load_program(None)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("no program\n" * 100)
    np.savez(tmp_path / "arrays.npz", a=V)
    np.savez_compressed(tmp_path / "small.npz", a=V)
    for name in ("empty", "text", "arrays.npz", "small.npz"):
        with pytest.raises(ValueError, match=f"The file '.*{name}' cannot be loaded"):
            mb.load_program(tmp_path / name)


def test_truncated_files(tmp_path):
    path = saved(tmp_path, elementwise, A, V)
    data = path.read_bytes()
    for n in (*range(0, len(data), 97), len(data) - 1):
        path.write_bytes(data[:n])
        with pytest.raises(ValueError, match="cannot be loaded"):
            mb.load_program(path)


def test_a_flipped_byte_is_found_or_means_nothing(tmp_path):
    path = saved(tmp_path, elementwise, A, V)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    a, v = mb.HostArray(A), mb.HostArray(V)
    wanted = mb.compile(elementwise)(a, v)
    step = max(len(data) // 400, 1)
    harmless = 0
    for n in range(0, len(data), step):
        damaged = bytearray(data)
        damaged[n] ^= 0x41
        path.write_bytes(damaged)
        try:
            program = mb.load_program(path)
        except ValueError:
            continue
        # (A date, say, which nobody reads.)
        harmless += 1
        same(program(a, v), wanted)
    assert harmless < 40 * len(names)
    # In what is read each is found.
    for name in names:
        at = data.index(name.encode()) + len(name) + 60
        damaged = bytearray(data)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be loaded"):
            mb.load_program(path)


# Files that somebody made up


def rewritten(path, change, compressed=False, extra=None):
    """The file with another description (which `change` changes in place, or returns), or other data."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    description = json.loads(members["program.json"])
    changed = change(description, members)
    members["program.json"] = json.dumps(description if changed is None else changed).encode()
    put_together(path, {**members, **(extra or {})}, compressed)


def put_together(path, members, compressed=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for n, m in members.items():
            archive.writestr(n, m)


def refused(path, match="."):
    with pytest.raises(ValueError, match=match) as e:
        mb.load_program(path)
    assert path.name in str(e.value)


def unchanged(description, members):
    pass


def test_what_a_made_up_file_is_like(tmp_path):
    path = saved(tmp_path, scatters, A, V, I)
    rewritten(path, unchanged)
    mb.load_program(path)  # (this is no bad file)
    rewritten(path, lambda d, members: d.update(version=3))
    refused(path, "version 3 of the format")
    rewritten(path, lambda d, members: d.pop("version") and None)
    refused(path, "version 1 of the format")
    rewritten(path, lambda d, members: d.update(version=2, format="other"))
    refused(path, "no program of mirabelle")
    saved(tmp_path, scatters, A, V, I)
    rewritten(path, unchanged, compressed=True)
    refused(path, "compressed")
    saved(tmp_path, scatters, A, V, I)
    rewritten(path, unchanged, extra={"more.npy": b"more"})
    refused(path, "other members")


def of_kind(description, kind, **fields):
    return next(
        n
        for n in description.get("graph", description)["nodes"]
        if n["kind"] == kind and all(n.get(k) == v for k, v in fields.items())
    )


def loop_in(d):
    return of_kind(d, "call", call="for")["template"]["tuple"][0]["tuple"][0]["loop"][0]


def forged(f, *values):
    """A decorator: the test's function changes the description of a program of `f`, and returns what is said of
    it."""

    def decorate(change):
        FORGERIES[change.__name__] = f, values, change
        return change

    return decorate


FORGERIES = {}


@forged(views, A)
def a_part_that_begins_too_late(d):
    of_kind(d, "part")["offset"] += 8 * 16
    return "memory outside"


@forged(views, A)
def a_part_that_begins_too_early(d):
    of_kind(d, "part")["offset"] -= 8 * 16
    return "memory outside"


@forged(views, A)
def a_part_with_long_strides(d):
    of_kind(d, "part")["strides"][0] *= 1000
    return "memory outside"


@forged(views, A)
def a_part_with_huge_numbers(d):
    of_kind(d, "part")["strides"][0] = 1 << 63
    return "no number of that kind"


@forged(views, A)
def a_part_with_text_for_an_offset(d):
    of_kind(d, "part")["offset"] = "0"
    return "no number"


@forged(views, A)
def a_part_where_no_number_begins(d):
    of_kind(d, "part")["offset"] += 1
    return "where none can begin|outside"


@forged(views, A)
def a_part_that_is_larger(d):
    of_kind(d, "part")["shape"][0] += 5
    return "outside|shape"


@forged(views, A)
def a_part_that_is_a_table(d):
    of_kind(d, "part")["table"] = True
    return "gather"


@forged(writes, A, V)
def a_write_outside(d):
    of_kind(d, "update")["offset"] += 8 * 16
    return "memory outside"


@forged(writes, A, V)
def a_write_of_more(d):
    of_kind(d, "update")["part_shape"] = [400]
    return "outside|writes an array"


@forged(writes, A, V)
def a_write_of_another_dtype(d):
    of_kind(d, "update")["part_dtype"] = "<c16"
    return "outside|writes float64 as complex128"


@forged(elementwise, A, V)
def an_operation_of_another_shape(d):
    of_kind(d, "map")["shape"] = [2, 4]
    return "shape"


@forged(elementwise, A, V)
def an_unknown_operation(d):
    d["signatures"][0][0] = "__import__"
    return "no operation '__import__'"


@forged(elementwise, A, V)
def an_operation_at_other_dtypes(d):
    sig = next(s for s in d["signatures"] if s[0] == "exp")
    sig[2] = ["|b1"]
    return "exp does not make bool of float64"


@forged(elementwise, A, V)
def a_dtype_of_objects(d):
    d["signatures"][0][1][0] = "|O"
    return "missing or of another kind"


@forged(elementwise, A, V)
def too_few_operands(d):
    node = of_kind(d, "map")
    node["args"].pop()
    return "has 1 operands"


@forged(elementwise, A, V)
def operands_that_come_later(d):
    node = of_kind(d, "map")
    node["args"][0] = {"node": len(d["graph"]["nodes"]) - 1}
    return "none of the .* that come before it"


@forged(elementwise, A, V)
def an_operand_of_itself(d):
    i = next(i for i, n in enumerate(d["graph"]["nodes"]) if n["kind"] == "map")
    d["graph"]["nodes"][i]["args"][0] = {"node": i}
    return "none of the .* that come before it"


@forged(elementwise, A, V)
def a_negative_operand(d):
    of_kind(d, "map")["args"][0] = {"node": -1}
    return "none of the .* that come before it"


@forged(elementwise, A, V)
def an_unknown_kind(d):
    of_kind(d, "map")["kind"] = "exec"
    return "missing or of another kind"


@forged(elementwise, A, V)
def an_input_that_is_larger_than_the_argument(d):
    of_kind(d, "input")["shape"] = [400, 4]
    return "."


@forged(elementwise, A, V)
def arguments_that_are_smaller_than_the_inputs(d):
    d["called with"][1][2] = "float64[1, 4]"
    return "arguments are not those"


@forged(elementwise, A, V)
def data_of_another_shape(d):
    of_kind(d, "data")["shape"] = [400]
    return "data 0 is float64"


@forged(reductions, A)
def a_reduction_of_another_name(d):
    of_kind(d, "fold")["reduction"] = "system"
    return "missing or of another kind"


@forged(reductions, A)
def a_reduction_along_what_is_not_there(d):
    of_kind(d, "fold", axes=[0])["axes"] = [7]
    return "reduction of 2 dimensions"


@forged(reductions, A)
def a_reduction_with_a_result_of_another_dtype(d):
    of_kind(d, "fold", axes=[0])["dtype"] = "<c16"
    return "is complex128"


@forged(library, A, V)
def a_routine_that_runs_a_program(d):
    of_kind(d, "call", routine="sort")["routine"] = "testing.runstring"
    return "none of those that only compute"


@forged(library, A, V)
def a_routine_that_reads_files(d):
    of_kind(d, "call", routine="sort")["routine"] = "load"
    return "none of those that only compute"


@forged(library, A, V)
def a_method_that_is_no_operations(d):
    of_kind(d, "call", routine="sort")["routine"] = "lib.reduce"
    return "none of those that only compute"


@forged(library, A, V)
def a_call_of_an_unknown_kind(d):
    of_kind(d, "call")["call"] = "shell"
    return "no calls of the kind 'shell'"


@forged(library, A, V)
def a_call_with_a_slot_too_many(d):
    text = of_kind(d, "call", routine="sort")["template"]
    text["tuple"][0]["tuple"][0] = {"slot": 5}
    return "operand 5 of 1"


@forged(library, A, V)
def a_result_too_many(d):
    of_kind(d, "result")["number"] = 9
    return "result 9"


@forged(library, A, V)
def a_call_used_as_an_array(d):
    nodes = d["graph"]["nodes"]
    i = next(i for i, n in enumerate(nodes) if n["kind"] == "call")
    nodes.append({"kind": "part", "of": [i], "shape": [], "dtype": "|b1", "offset": 0, "strides": []})
    nodes.append({"kind": "fold", "of": [i], "dtype": "|b1", "reduction": "all", "axes": []})
    return "as if it were an array"


@forged(product, LARGE)
def a_product_of_what_does_not_fit(d):
    node = of_kind(d, "product")
    node["of"] = node["of"][:1] * 2
    return "a matrix product of shapes"


@forged(loops, A, V)
def a_loop_that_carries_more(d):
    of_kind(d, "call", call="for")["outputs"][0][0] = [400, 4]
    return "changes from trip to trip|a result|shape|memory"


@forged(loops, A, V)
def a_loop_that_is_given_less(d):
    of_kind(d, "call", call="for")["template"]["tuple"][0]["tuple"][1]["list"].pop()
    return "takes other arrays than it is given"


@forged(loops, A, V)
def a_loop_that_writes_outside(d):
    of_kind(loop_in(d), "part")["offset"] += 10_000
    return "memory outside"


@forged(loops, A, V)
def a_branch_with_a_larger_result(d):
    branch = of_kind(d, "call", call="cond")["template"]["tuple"][0]["tuple"][0]["branches"][1]
    branch["outputs"] = branch["outputs"] * 2
    return "other arrays than they say"


@forged(containers, A, V)
def a_result_that_there_is_not(d):
    d["result"]["dict"][0][1] = {"output": 77}
    return "number 77"


@forged(containers, A, V)
def a_view_of_another_shape(d):
    view = next(x for _, x in d["result"]["dict"] if "shown" in x)
    view["shown"][3] = [400] * len(view["shown"][3])
    return "which it has not"


@forged(containers, A, V)
def a_result_of_another_class(d):
    view = next(x for _, x in d["result"]["dict"] if "shown" in x)
    view["shown"][0] = "HostArray"
    return "missing or of another kind"


@forged(writes, A, V)
def a_write_to_another_argument(d):
    d["written"].reverse()
    return "which is another array"


@forged(writes, A, V)
def a_write_to_no_argument(d):
    d["written"][0] = 9
    return "number 9 is none"


@forged(writes, A, V)
def outputs_that_there_are_not(d):
    d["graph"]["outputs"][0] = -1
    return "none of the"


@forged(writes, A, V)
def an_array_type_that_there_is_not(d):
    d["type"] = "settings"
    return "none of mirabelle's"


@forged(writes, A, V)
def nodes_that_are_missing(d):
    del d["graph"]["nodes"][-1]
    return "none of the"


@forged(writes, A, V)
def a_deep_nest(d):
    nest = 0
    for _ in range(200_000):
        nest = [nest]
    d["name"] = "deep"
    return None


@pytest.mark.parametrize("name", [n for n in FORGERIES if n != "a_deep_nest"])
def test_forged_programs_are_refused(tmp_path, name):
    f, values, change = FORGERIES[name]
    path = saved(tmp_path, f, *values)
    message = []
    rewritten(path, lambda d, members: message.append(change(d)))
    refused(path, message[0])


def leaves(x, path=()):
    """The places of everything in a description."""
    if isinstance(x, (dict, list)):
        for k in x if isinstance(x, dict) else range(len(x)):
            yield (*path, k)
            yield from leaves(x[k], (*path, k))


OTHERS = [None, -1, 0, 1, 3, 1 << 40, 1 << 63, 0.5, "", "x", "<f4", "|O", True, [], {}, [0], {"int": "1"}]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("product", "loops")])
def test_descriptions_changed_anywhere_are_refused_or_run(tmp_path, name):
    """Nothing else happens: what is loaded runs, or raises an error of its own."""
    f, values = PROGRAMS[name]
    path = saved(tmp_path, f, *values)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    random, refusals = np.random.default_rng(len(name)), 0
    places = list(leaves(json.loads(members["program.json"])))
    for _ in range(25):
        description = json.loads(members["program.json"])
        place = places[random.integers(len(places))]
        holder = description
        for k in place[:-1]:
            holder = holder[k]
        holder[place[-1]] = OTHERS[random.integers(len(OTHERS))]
        put_together(path, {**members, "program.json": json.dumps(description)})
        try:
            program = mb.load_program(path)
        except ValueError as e:
            assert path.name in str(e)
            refusals += 1
            continue
        with contextlib.suppress(TypeError, IndexError, ValueError), np.errstate(all="ignore"):
            program(*[mb.HostArray(x) for x in values])
    assert refusals > 5


def test_forged_texts(tmp_path):
    """JSON that is none, that is nested deeply, or that is no description."""
    path = saved(tmp_path, nothing, V)
    for text in (b"", b"[" * 100_000, b"[]", b"null", b"\xff\xfe", b"3"):
        put_together(path, {"program.json": text})
        refused(path, "cannot be loaded")
        saved(tmp_path, nothing, V)


def test_forged_data(tmp_path):
    def data(values, allow_pickle=False):
        import io

        file = io.BytesIO()
        np.lib.format.write_array(file, values, allow_pickle=allow_pickle)
        return file.getvalue()

    good = np.array([1.0, 2, 3, 4])
    for member in (
        data(np.arange(3.0)),
        data(good.astype(np.float32)),
        data(good.astype(">f8")),
        data(np.array([object()] * 4), allow_pickle=True),
        data(good)[:-1],
        data(good) + b"1",
        b"",
        data(good).replace(b"(4,)", b"(9,)"),
        data(good).replace(b"(4,)", b"(-4,)"),
    ):
        path = saved(tmp_path, elementwise, A, V)

        def change(d, members, member=member):
            members["data_0.npy"] = member

        rewritten(path, change)
        refused(path, "cannot be loaded|holds no program")


def test_indices_of_a_forged_file_are_looked_at(tmp_path):
    """A gather or a scatter whose indices need not lie within is told so when it runs."""
    path = saved(tmp_path, scatters, A, V, I)

    def change(d, members):
        # The check of the indices is left out.
        nodes = d["graph"]["nodes"]
        checks = [i for i, n in enumerate(nodes) if n["kind"] == "call" and n["call"] == "within"]
        results = [i for i, n in enumerate(nodes) if n["kind"] == "result" and n["of"][0] in checks]
        assert results
        for node in nodes:
            if node["kind"] == "map":
                node["args"] = [{"node": 2} if a.get("node") in results else a for a in node["args"]]
            if "of" in node:
                node["of"] = [2 if k in results else k for k in node["of"]]

    rewritten(path, change)
    program = mb.load_program(path)
    a, v = mb.HostArray(A), mb.HostArray(V)
    i = mb.HostArray(I)
    same(program(mb.HostArray(A), v, i), mb.compile(scatters)(a, v, i))
    for bad in ([0, 2, 4000], [-4000, 2, 0]):
        a = mb.HostArray(A)
        with pytest.raises(IndexError):
            program(a, mb.HostArray(V), mb.HostArray(bad))
        same(a, mb.HostArray(A))


def test_data_that_indexes_is_looked_at(tmp_path):
    def f(a):
        return a[mb.HostArray([0, 3, 1])] * 2

    path = saved(tmp_path, f, A)
    same(mb.load_program(path)(mb.HostArray(A)), f(mb.HostArray(A)))

    def change(d, members):
        (name,) = [n for n in members if n.endswith(".npy")]
        old = np.frombuffer(members[name][-24:], np.int64)
        members[name] = members[name][:-24] + (old * 100_000).tobytes()

    rewritten(path, change)
    with contextlib.suppress(ValueError):
        program = mb.load_program(path)
        with pytest.raises(IndexError):
            program(mb.HostArray(A))


def test_every_graph_that_is_captured_is_valid():
    for f, values in PROGRAMS.values():
        program = mb.compile(f).program(*map(mb.HostArray, values))
        for node in program.graph:
            validity.check(node)


COLD = """
    import json
    import numpy as np
    import mirabelle as mb
    from mirabelle.backends.host import kernels
    def f(a):
        b = a[1:] * 2.5 + a[:-1]
        return b, mb.sqrt(abs(b)) - 1, mb.sum(b * b, axis=0)
    a = mb.HostArray(np.arange(300_000.0).reshape(300, 1000))
    program = mb.compile(f).program(a)
    wanted = len(kernels._kernels)
    first = program.run([a])
    kernels.settle()
    again = program.run([a])
    right = all(np.allclose(mb.to_numpy(x), mb.to_numpy(y), rtol=1e-13) for x, y in zip(first, again))
    print(json.dumps([right, wanted > 0, kernels.compilations == wanted]))
"""


def test_while_a_program_is_compiled_nothing_else_is(tmp_path):
    """Until its kernels are there it is run in another way, which needs no kernels of its own."""
    assert answer(COLD, compiler="process", compile_size=1, num_threads=2, cache_dir=tmp_path) == [True] * 3
