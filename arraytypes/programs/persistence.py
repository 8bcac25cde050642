"""Programs in files: `program.save(path)`, and `mb.load_program(path)` where there is no such function.

A file is a zip of members that are not compressed: `program.json` says what the graph is after all passes, what
the program is called with and how its results are made; `data_<n>.npy` are the constant arrays in it;
`manifest.json` has the size and the SHA-256 of each of these, and the comment of the zip has that of the
manifest. All of it is checked before anything is used. Nothing in a file is executed: kernels are made of the
graph, as always, or found in the cache of kernels on disk.

>>> import tempfile, pathlib
>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x, y: {"sum": x + y}, mb.zeros(2), mb.zeros(2))
>>> with tempfile.TemporaryDirectory() as folder:
...     program.save(pathlib.Path(folder) / "added.program")
...     added = mb.load_program(pathlib.Path(folder) / "added.program")
>>> print(added(mb.ones(2), mb.HostArray([1.0, 2.0]))["sum"])
[2. 3.]
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.fileformats import opening, write_npy_header
from mirabelle.arraytypes.functions.decompositions import EighResult, EigResult, QRResult, SVDResult
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult
from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.arraytypes.makers import maker_of
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.parts import ImagPart, RealPart
from mirabelle.arraytypes.programs.calledwith import arrays_in, bound, difference, signature_text
from mirabelle.arraytypes.programs.capture import Captured, capturing
from mirabelle.arraytypes.programs.compiled import Program, _as_ours, _Clock
from mirabelle.arraytypes.programs.graph import data_node, ordered
from mirabelle.arraytypes.programs.passes import Passes
from mirabelle.arraytypes.programs.signature import Arguments, has_numpy, mapped
from mirabelle.arraytypes.programs.texts import DTYPES, NoText, Reader, Writer, text_of, value_of, whole_numbers
from mirabelle.arraytypes.programs.traced import Traced, family_for, handle
from mirabelle.arraytypes.programs.validity import InvalidNode, check_output
from mirabelle.arraytypes.wrappers import BroadcastTo, PermutedDims, Reshaped, Transpose, View, Wrapper
from mirabelle.dispatch import verbs

FORMAT, VERSION = "mirabelle program", 1
_PROGRAM, _MANIFEST = "program.json", "manifest.json"
# What goes wrong where a text is not what it should be.
_DAMAGES = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, EOFError)

# The tuples with names that our own functions return.
_NAMED: dict[str, Any] = {
    t.__name__: t for t in (EighResult, EigResult, LstsqResult, QRResult, SlogdetResult, SVDResult)
}
# What shows an array in another way: views, transposes and the like.
_WRAPPERS: dict[str, Any] = {
    t.__name__: t for t in (BroadcastTo, ImagPart, PermutedDims, RealPart, Reshaped, Transpose, View)
}


# Saving


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program to a file (see `Program.save`)."""
    where = _path(path)
    try:
        description, data = described(program)
    except NoText as e:
        raise TypeError(
            f"{program.name}() cannot be saved: there is {e}. A file holds only what every mirabelle knows by "
            "its name. Compute that part outside of the compiled function, or write it with mirabelle's own "
            "operations."
        ) from None
    with permitted(where), replacing(where) as fresh:
        _write(fresh, json.dumps(description, allow_nan=False, separators=(",", ":")).encode(), data)


def described(program: Program) -> tuple[dict[str, Any], list[np.ndarray]]:
    """A program in terms of JSON, and the arrays of data in it."""
    c, inner = program.captured, program.inner
    if _named_family(inner.__name__) is not inner:
        raise NoText(f"the array type {inner.__name__}, which is not mirabelle's")
    if inner.home.rank == 3:
        raise NoText(f"the array type {inner.__name__}, whose arrays are divided over processes")
    count = len(c.returned)
    constants: list[Any] = []
    known: dict[Any, Any] = {id(x): {"argument": i} for i, x in enumerate(c.placeholders)}
    known.update({id(x): {"output": i} for i, x in enumerate(c.returned)})
    known["outputs"] = count
    result = _result_text(known, c.result, constants)
    extra = [data_node(inner, verbs.leaf_of(verbs.adapt(inner, x)).view) for x in constants]
    outputs = [*program.outputs[:count], *extra, *program.outputs[count:]]
    writer = Writer()
    for node in (*c.inputs, *ordered(outputs)):
        writer.add(node)
    line = program.defined
    description = {
        "name": str(program.name),
        "defined": None if line is None else [Path(line[0]).name, int(line[1])],
        "type": inner.__name__,
        "parameters": list(program.parameters),
        "called with": _called_with(program),
        "signatures": writer.signatures,
        "files": writer.files,
        "nodes": writer.nodes,
        "outputs": [writer.numbers[id(x)] for x in outputs],
        "written": list(c.written),
        "result": result,
    }
    # What could not be read again is not written.
    try:
        _Graph(json.loads(json.dumps(description)), writer.data, [None] * len(writer.data))
    except InvalidNode as e:
        raise NoText(f"a step that cannot be checked: {e}") from None
    data = [np.asarray(inner._download(x.view), order="C") for x in writer.data]
    return description, data


def _called_with(program: Program) -> Any:
    if isinstance(program, LoadedProgram):
        return program.called_with
    return signature_text(program.key, [(x.dtype, x.shape) for x in program.captured.inputs])


def _result_text(known: dict[Any, Any], x: Any, constants: list[Any]) -> Any:
    """How a result is made of outputs and arguments, which are known by their ids."""
    if id(x) in known:
        return known[id(x)]
    kind = type(x)
    if kind is tuple or kind is list:
        return {kind.__name__: [_result_text(known, item, constants) for item in x]}
    if _NAMED.get(kind.__name__) is kind:
        return {"named": [kind.__name__, [_result_text(known, item, constants) for item in x]]}
    if kind is dict:
        return {"dict": [[text_of(k), _result_text(known, item, constants)] for k, item in x.items()]}
    if isinstance(x, Wrapper) and _WRAPPERS.get(generic_class(kind).__name__) is generic_class(kind):
        _, (cls, parent, how, shape) = x.__reduce__()
        return {"shown": [cls.__name__, _result_text(known, parent, constants), text_of(how), list(shape)]}
    if isinstance(x, DenseArray) and not isinstance(x, Traced):
        constants.append(x)
        return {"output": known["outputs"] + len(constants) - 1}
    try:
        return {"value": text_of(x)}
    except NoText:
        raise NoText(
            f"a result of the type {kind.__name__}, and results are plain arrays, views of them, numbers, and "
            "tuples, lists and dictionaries of them"
        ) from None


class _Hashed:
    """A member that is being written, with its hash and size."""

    def __init__(self, member: Any) -> None:
        self.member = member
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> None:
        self.hash.update(data)
        self.size += len(data)
        self.member.write(data)

    @property
    def entry(self) -> dict[str, Any]:
        return {"size": self.size, "sha256": self.hash.hexdigest()}


def _write(path: Path, text: bytes, data: list[np.ndarray]) -> None:
    members: dict[str, Any] = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        # (Of no time: equal programs are equal files.)
        with archive.open(zipfile.ZipInfo(_PROGRAM), "w", force_zip64=True) as member:
            made = _Hashed(member)
            made.write(text)
        members[_PROGRAM] = made.entry
        for i, values in enumerate(data):
            name = f"data_{i}.npy"
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                made = _Hashed(member)
                write_npy_header(made, values.shape, values.dtype)
                made.write(memoryview(values.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
            members[name] = made.entry
        manifest = json.dumps({"format": FORMAT, "version": VERSION, "members": members}, indent=1).encode()
        archive.writestr(zipfile.ZipInfo(_MANIFEST), manifest)
        archive.comment = hashlib.sha256(manifest).hexdigest().encode()


# Loading


def load_program(path: str | os.PathLike[str], device: Any = None) -> LoadedProgram:
    """The program in a file that `Program.save` wrote, to be called like the function it was made of.

    It runs on arrays of the type it was made for, or on those that `device` names: an array type, or a place.
    Its arguments must have the shapes and dtypes it was made for. Kernels are found in the cache on disk if
    they have been compiled before on this machine. A file that is damaged, or says anything that cannot be, is
    refused with a ValueError; nothing in it is executed.

    >>> import tempfile
    >>> import mirabelle as mb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mb.compiling.trace(lambda x: mb.sum(x * x), mb.zeros(3)).save(f"{folder}/squares.program")
    ...     squares = mb.load_program(f"{folder}/squares.program", device=mb.RefArray)
    >>> print(squares(mb.RefArray([1.0, 2.0, 3.0])))
    14.0
    """
    where = _path(path)
    seconds: dict[str, float] = {}
    clock = _Clock(seconds)
    members = _verified(where)
    clock.passed("read")
    try:
        description = json.loads(members.pop(_PROGRAM))
        inner = _family(description["type"], device)
        views: list[Any] = []
        ranges: list[Any] = []
        for i in range(len(members)):
            values = _array_of(members.pop(f"data_{i}.npy"))
            views.append(inner._upload(values))
            ranges.append(_entries(values))
        graph = _Graph(description, [data_node(inner, view) for view in views], ranges)
        made = LoadedProgram(description, graph, inner, seconds)
    except _DAMAGES as e:
        if isinstance(e, _Unfit):
            raise
        said = str(e).strip().split("\n")[0].rstrip(".") if isinstance(e, ValueError) else _shown(e)
        raise ValueError(f"{opening(where)} holds no program that can be run: {said}.") from e
    clock.passed("graph")
    made._lower(clock)
    return made


def _shown(e: BaseException) -> str:
    return f"something is missing or of another kind ({type(e).__name__}: {str(e)[:80]})"


class _Unfit(ValueError):
    """What is wrong is no damage of the file."""


def _path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f'A program is saved under a name, "step.program" say, not {path!r}.')
    made = Path(os.fspath(path))  # pyright: ignore
    if made.is_dir():
        raise IsADirectoryError(
            f"{str(made)!r} is a folder. A program is one file in it: {str(made / 'a.program')!r}."
        )
    return made


def _verified(path: Path) -> dict[str, bytes]:
    """The members of a file, each of which has the hash that the manifest says, without the manifest."""
    # (A file that is not there says so by itself.)
    with open(path, "rb") as file:
        try:
            return _members(file)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, *_DAMAGES) as e:
            plain = isinstance(e, (ValueError, OSError, zipfile.BadZipFile))
            said = str(e).strip().split("\n")[0].rstrip(".") if plain else _shown(e)
            raise ValueError(f"{opening(path)} cannot be loaded: {said}.") from e


def _members(file: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        total = os.fstat(file.fileno()).st_size
        infos = {info.filename: info for info in archive.infolist()}
        if len(infos) != len(archive.infolist()):
            raise ValueError("two of its members have the same name")
        for info in infos.values():
            # (Of a compressed member nobody knows how much comes out.)
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"{info.filename!r} is compressed, which programs are not")
        if sum(info.file_size for info in infos.values()) > total:
            raise ValueError("its members are larger than the file")
        if _MANIFEST not in infos:
            raise ValueError("it is no program of mirabelle")
        manifest = archive.read(_MANIFEST)
        if hashlib.sha256(manifest).hexdigest().encode() != archive.comment:
            raise ValueError("its manifest is not what was written")
        said = json.loads(manifest)
        if said.get("format") != FORMAT:
            raise ValueError("it is no program of mirabelle")
        if said["version"] != VERSION:
            raise ValueError(
                f"it is of version {said['version']!r} of the format, and this mirabelle reads version "
                f"{VERSION}. Save the program with this mirabelle, or load it with the one that wrote it"
            )
        entries = said["members"]
        wanted = {_PROGRAM, *(f"data_{i}.npy" for i in range(len(entries) - 1))}
        if set(entries) != wanted or set(infos) != wanted | {_MANIFEST}:
            raise ValueError("its members are not those that the manifest names")
        members: dict[str, bytes] = {}
        for name, entry in entries.items():
            if infos[name].file_size != entry["size"]:
                raise ValueError(f"{name!r} has not the size that was written")
            members[name] = archive.read(name)
            if hashlib.sha256(members[name]).hexdigest() != entry["sha256"]:
                raise ValueError(f"{name!r} is not what was written: its hash is another")
        return members


def _array_of(member: bytes) -> np.ndarray:
    """The array in a member, without a copy."""
    file = io.BytesIO(member)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("data is of another version of NumPy's format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    start = file.tell()
    if dtype.str not in DTYPES or fortran:
        raise ValueError(f"data is {dtype.name}, or in another order")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"data has the shape {shape!r}")
    size = functools.reduce(lambda a, b: a * b, shape, 1)
    if len(member) - start != size * dtype.itemsize:
        raise ValueError(f"data of shape {shape} is {len(member) - start} bytes long")
    values = np.frombuffer(member, DTYPES[dtype.str], size, start).reshape(shape)
    if dtype.kind == "b" and size and int(values.view(np.uint8).max()) > 1:
        raise ValueError("there is something else than true and false in data of that kind")
    return values


def _entries(values: np.ndarray) -> tuple[int, int] | None:
    if values.dtype.kind not in "iu" or not values.size:
        return None
    return int(values.min()), int(values.max())


def _named_family(name: Any) -> Any:
    """The array type of mirabelle's of that name; None if there is none."""
    import mirabelle

    found = getattr(mirabelle, name, None) if type(name) is str and name in mirabelle.__all__ else None
    is_type = isinstance(found, type) and issubclass(found, DenseArray) and not issubclass(found, Traced)
    return found if is_type else None


def _family(name: Any, device: Any) -> Any:
    if device is None:
        found = _named_family(name)
        if found is None:
            raise ValueError(f"it is for arrays of a type {name!r}, which is none of mirabelle's")
        return found
    maker = maker_of(device)
    family = maker.family
    if maker.show is not None or family.home.rank > 2 or issubclass(family, Traced):
        raise _Unfit(
            f"A program runs on plain arrays of one place, and not on {maker.name}: device=mb.HostArray, "
            "mb.RefArray or mb.CuArray."
        )
    return family


class _Graph:
    """The graph in a description, checked, and how results are made of it."""

    def __init__(self, description: Any, data: list[Any], ranges: list[Any]) -> None:
        reader = Reader(description["signatures"], description["files"], data, ranges)
        for text in description["nodes"]:
            reader.add(text)
        nodes = reader.nodes
        self.inputs = list(reader.inputs.values())
        numbers = whole_numbers(description["outputs"])
        if any(not 0 <= n < len(nodes) for n in numbers):
            raise ValueError("a result is none of the values")
        self.outputs = tuple([nodes[n] for n in numbers])
        for x in self.outputs:
            check_output(x)
        self.written = list(whole_numbers(description["written"]))
        self.count = len(self.outputs) - len(self.written)
        if self.count < 0 or len(set(self.written)) != len(self.written):
            raise ValueError("it writes to more arguments than it computes values for")
        for i, x in zip(self.written, self.outputs[self.count :], strict=True):
            if not 0 <= i < len(self.inputs):
                raise ValueError(f"it writes to argument {i}, which there is not")
            if (x.shape, x.dtype) != (self.inputs[i].shape, self.inputs[i].dtype):
                raise ValueError(
                    f"it writes {x.dtype.name}{list(x.shape)} to argument {i}, which is another array"
                )
        self.called_with = description["called with"]
        taken = arrays_in(self.called_with)
        if taken != [(x.dtype.str, list(x.shape)) for x in self.inputs]:
            raise ValueError("its arguments are not those that it computes with")


class LoadedProgram(Program):
    """A program from a file: it is called like the function that it was made of.

    It has all that a program has: `graph`, `plan`, `explain()`, `profile(...)`, `save(path)`. What each stage
    of loading took is in `seconds`.
    """

    def __init__(self, description: Any, graph: Any, inner: Any, seconds: dict[str, float]) -> None:
        self.name = str(description["name"])
        self.parameters = [str(name) for name in description["parameters"]]
        self.called_with = graph.called_with
        # (The same in terms of keys is known to nobody but who calls it.)
        self.key = None
        self.keep = []
        self.distinct = len(graph.inputs)
        self.seconds = seconds
        line = description["defined"]
        self.defined = None if line is None else (f"<saved>/{Path(line[0]).name}", int(line[1]))
        self.line = self.defined
        self.passes = Passes([])
        self.inner = inner
        self.outputs = graph.outputs
        family = family_for(inner)
        placeholders = [handle(family, x) for x in graph.inputs]
        returned = [handle(family, x) for x in graph.outputs[: graph.count]]
        result = _result_of(description["result"], returned, placeholders)
        self.captured = Captured(
            inner, graph.inputs, graph.outputs, placeholders, result, returned, graph.written
        )
        # What it was called with before, by types and shapes.
        self._known: set[Any] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            try:
                key: Any = tuple([(type(x), x._node.shape) for x in args])
                if key in self._known and self.distinct == len({id(x) for x in args}) and not capturing():
                    return self.run(args)
            except (AttributeError, TypeError):
                pass  # not arrays alone
        if capturing():
            raise TypeError(
                f"The program {self.name}, which was loaded from a file, cannot be part of another one. Call "
                "it outside of the compiled function."
            )
        args, kwargs = bound(self.parameters, self.called_with, args, kwargs)
        if has_numpy((args, kwargs)):
            args, kwargs = mapped((args, kwargs), functools.partial(_as_ours, {}))
        found = Arguments((args, kwargs))
        self._check(found)
        if not kwargs and len(found.arrays) == len(args) and all(isinstance(x, DenseArray) for x in args):
            self._known.add(tuple([(type(x), x.shape) for x in args]))
        return self.run(found.arrays)

    def _check(self, found: Arguments) -> None:
        """Say what differs between the arguments and those that the program was made for."""
        try:
            given = signature_text(found.key, [(x.dtype, x.shape) for x in found.arrays])
        except NoText as e:
            raise TypeError(f"The program {self.name} is called with {e}, which it is not made for.") from None
        if given != self.called_with:
            said = difference(self.parameters, self.called_with, given)
            raise TypeError(
                f"The program {self.name} is called with other arguments than it was made for: {said}"
            )
        for x, wanted in zip(found.arrays, self.captured.inputs, strict=True):
            if type(x).family is not self.inner:
                name = type(x).family.__name__
                raise TypeError(
                    f"The program {self.name} runs on {self.inner.__name__}, and is called with {name}. Bring "
                    f"the arrays there, `mb.adapt(mb.{self.inner.__name__}, x)`, or load the program for "
                    f"these: `mb.load_program(path, device=mb.{name})`."
                )
            assert (x.shape, x.dtype) == (wanted.shape, wanted.dtype)

    def __repr__(self) -> str:
        return super().__repr__().replace("<program", "<loaded program", 1)


def _result_of(text: Any, returned: list[Any], placeholders: list[Any]) -> Any:
    """What a program returns, with stand-ins for the arrays in it."""
    ((word, given),) = text.items()
    if word == "value":
        return value_of(given)
    if word in ("output", "argument"):
        (number,) = whole_numbers([given])
        known = returned if word == "output" else placeholders
        if not 0 <= number < len(known):
            raise ValueError(f"it returns {word} {number} of {len(known)}")
        return known[number]
    if word == "dict":
        return {value_of(k): _result_of(x, returned, placeholders) for k, x in given}
    if word == "named":
        name, items = given
        return _NAMED[name](*[_result_of(x, returned, placeholders) for x in items])
    if word == "shown":
        name, parent, how, shape = given
        return _shown_again(_WRAPPERS[name], _result_of(parent, returned, placeholders), value_of(how), shape)
    if word not in ("tuple", "list"):
        raise ValueError(f"it returns something that is called {word!r}")
    made = [_result_of(x, returned, placeholders) for x in given]
    return tuple(made) if word == "tuple" else made


def _shown_again(kind: Any, parent: Any, how: Any, shape: Any) -> Any:
    """A view of a stand-in, whose shape is that which it says."""
    if not isinstance(parent, (Traced, Wrapper)):
        raise ValueError(f"it returns a {kind.__name__} of what is no array")
    made = kind._of(parent, how, whole_numbers(shape))
    root = made
    while isinstance(root, Wrapper):
        root = root._parent
    if tuple(verbs.lower(made, verbs.leaf_of(root)).shape) != made.shape:
        raise ValueError(f"it returns a {kind.__name__} of shape {list(made.shape)}, which it has not")
    return made
