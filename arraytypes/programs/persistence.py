"""Programs in files: `program.save(path)`, and `mb.load_program(path)` where there is no such function.

A file is a zip of members that are not compressed: `program.json` says what the graph is after all passes, what
the program is called with and how its results are made; `data_<n>.npy` are the constant arrays in it. All of it
is checked before anything is used. Nothing in a file is executed: kernels are made of the graph, as always, or
found in the cache of kernels on disk.

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

import contextlib
import functools
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.fileformats import opening
from mirabelle.arraytypes.functions.decompositions import EighResult, EigResult, QRResult, SVDResult
from mirabelle.arraytypes.functions.solving import LstsqResult, SlogdetResult
from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.arraytypes.makers import maker_of
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.parts import ImagPart, RealPart
from mirabelle.arraytypes.programs.calledwith import bound, difference, signature_text
from mirabelle.arraytypes.programs.capture import Captured, capturing
from mirabelle.arraytypes.programs.compiled import _as_ours
from mirabelle.arraytypes.programs.deciding import Deciding, using
from mirabelle.arraytypes.programs.graph import data_node
from mirabelle.arraytypes.programs.passes import Passes
from mirabelle.arraytypes.programs.program import Program, _Clock
from mirabelle.arraytypes.programs.schedules import Schedule
from mirabelle.arraytypes.programs.signature import Arguments, has_numpy, mapped
from mirabelle.arraytypes.programs.texts import (
    DTYPES,
    Field,
    NoText,
    Reader,
    Writer,
    at,
    typed,
    whole_numbers,
)
from mirabelle.arraytypes.programs.traced import Traced, family_for, handle
from mirabelle.arraytypes.programs.validity import InvalidNode
from mirabelle.arraytypes.wrappers import BroadcastTo, PermutedDims, Reshaped, Transpose, View, Wrapper
from mirabelle.dispatch import loading, verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.annotations import Device

FORMAT, VERSION = "mirabelle program", 2
_PROGRAM = "program.json"
# What goes wrong where a text is not what it should be.
_DAMAGES = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, EOFError, MemoryError),
    *(OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError),
)

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
    results = _Results(c)
    result = results.value(c.result)
    extra = [data_node(inner, verbs.leaf_of(verbs.adapt(inner, x)).view) for x in results.constants]
    outputs = [*program.outputs[:count], *extra, *program.outputs[count:]]
    writer = Writer()
    graph = writer.graph(c.inputs, outputs)
    line = program.defined
    description = {
        "format": FORMAT,
        "version": VERSION,
        "name": str(program.name),
        "defined": None if line is None else [Path(line[0]).name, int(line[1])],
        "type": inner.__name__,
        "parameters": list(program.parameters),
        "called with": _called_with(program),
        "signatures": list(writer.signatures),
        "files": list(writer.files),
        "graph": graph,
        "written": list(c.written),
        "result": result,
    }
    located = program.decided.located()
    if located:
        description["schedule"] = located.described()
    views = [view for _, view in writer.views.values()]
    # What could not be read again is not written.
    try:
        _Graph(json.loads(json.dumps(description)), [data_node(inner, v) for v in views], [None] * len(views))
    except InvalidNode as e:
        raise NoText(f"a step that cannot be checked: {e}") from None
    return description, [np.asarray(inner._download(v), order="C") for v in views]


def _called_with(program: Program) -> Any:
    if isinstance(program, LoadedProgram):
        return program.called_with
    return signature_text(program.key, list(program.parameters), program.captured.inputs)


class _Results(Writer):
    """Texts of what a program returns: arrays in it are outputs and arguments, by their numbers."""

    def __init__(self, captured: Captured) -> None:
        super().__init__()
        self.count = len(captured.returned)
        self.known = {id(x): {"argument": i} for i, x in enumerate(captured.placeholders)}
        self.known |= {id(x): {"output": i} for i, x in enumerate(captured.returned)}
        # Arrays that are the same whatever the program is called with: outputs after those that are computed.
        self.constants: list[Any] = []

    def value(self, x: Any) -> Any:
        kind = type(x)
        if id(x) in self.known:
            return self.known[id(x)]
        if _NAMED.get(kind.__name__) is kind:
            return {"named": [kind.__name__, [self.value(item) for item in x]]}
        if isinstance(x, Wrapper) and _WRAPPERS.get(generic_class(kind).__name__) is generic_class(kind):
            _, (cls, parent, how, shape) = x.__reduce__()
            return {"shown": [cls.__name__, self.value(parent), self.value(how), list(shape)]}
        if isinstance(x, DenseArray) and not isinstance(x, Traced):
            self.constants.append(x)
            return {"output": self.count + len(self.constants) - 1}
        if kind in (tuple, list, dict):
            return super().value(x)
        try:
            return super().value(x)
        except NoText:
            raise NoText(
                f"a result of the type {kind.__name__}, and results are plain arrays, views of them, numbers, "
                "and tuples, lists and dictionaries of them"
            ) from None


def _write(path: Path, text: bytes, data: list[np.ndarray]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        # (Of no time: equal programs are equal files.)
        archive.writestr(zipfile.ZipInfo(_PROGRAM), text)
        for i, values in enumerate(data):
            with archive.open(zipfile.ZipInfo(f"data_{i}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, (1, 0), allow_pickle=False)


# Loading


def load_program(path: str | os.PathLike[str], device: Device | None = None) -> LoadedProgram:
    """The program in a file that `Program.save` wrote, to be called like the function it was made of.

    It runs on arrays of the type it was made for, or on those that `device` names: an array type, or a place.
    Its arguments must have the shapes and dtypes it was made for. Kernels are found in the cache on disk if
    they have been compiled before on this machine. A file that is damaged, or says anything that cannot be, is
    refused with a ValueError; nothing in it is executed.

    Parameters
    ----------
    path : str or path
        The file.
    device : array type, place or None
        Where it runs; None is where it ran when it was saved.

    Returns
    -------
    mb.compiling.LoadedProgram
        What it returns is nested as the results of the function were. It can be saved again, and looked at
        (`explain()`, `plan`).

    Examples
    --------
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
    # (A file that is not there says so by itself.)
    with open(where, "rb") as file, _refusing(where, "cannot be loaded"):
        description, arrays = _members(file)
    clock.passed("read")
    with _refusing(where, "holds no program that can be run"):
        inner = _family(description["type"], device)
        data = [data_node(inner, inner._upload(values)) for values in arrays]
        graph = _Graph(description, data, [_entries(values) for values in arrays])
        made = LoadedProgram(description, graph, inner, seconds)
    clock.passed("graph")
    with using(made.decided):
        made._lower(clock)
    return made


@contextlib.contextmanager
def _refusing(path: Path, what: str) -> Iterator[None]:
    """Say of what goes wrong in the block that the file is at fault."""
    try:
        yield
    except _Unfit:
        raise
    except _DAMAGES as e:
        plain = isinstance(e, (ValueError, OSError, zipfile.BadZipFile))
        said = str(e).strip().split("\n")[0].rstrip(".") if plain else _shown(e)
        if isinstance(e, zipfile.BadZipFile):
            said += ". Programs are what `program.save(path)` wrote; arrays are read by `mb.load(path)`"
        raise ValueError(f"{opening(path)} {what}: {said}.") from e


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


def _members(file: Any) -> tuple[Any, list[np.ndarray]]:
    """What is in a file: the description, and the arrays. (A zip knows a checksum of each.)"""
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        for info in infos:
            # (Of a compressed member nobody knows how much comes out.)
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"{info.filename!r} is compressed, which programs are not")
        if sum(info.file_size for info in infos) > os.fstat(file.fileno()).st_size:
            raise ValueError("its members are larger than the file")
        if _PROGRAM not in archive.namelist():
            raise ValueError("it is no program of mirabelle")
        description = json.loads(archive.read(_PROGRAM))
        if description.get("format", FORMAT) != FORMAT:
            raise ValueError("it is no program of mirabelle")
        version = description.get("version", 1)
        if version != VERSION:
            raise ValueError(
                f"it is of version {version!r} of the format, and this mirabelle reads version {VERSION}. Save "
                "the program with this mirabelle, or load it with the one that wrote it"
            )
        names = [f"data_{i}.npy" for i in range(len(infos) - 1)]
        if sorted(archive.namelist()) != sorted([_PROGRAM, *names]):
            raise ValueError("it has other members than a program and its data")
        return description, [_array_of(archive, name) for name in names]


def _array_of(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as member:
        values: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError(f"{name} is longer than its shape says")
    if values.dtype.str not in DTYPES or not values.flags.c_contiguous:
        raise ValueError(f"data is {values.dtype.name}, or in another order")
    if values.dtype.kind == "b" and values.size and int(values.view(np.uint8).max()) > 1:
        raise ValueError("there is something else than true and false in data of that kind")
    return values


def _entries(values: np.ndarray) -> tuple[int, int] | None:
    if values.dtype.kind not in "iu" or not values.size:
        return None
    return int(values.min()), int(values.max())


def _named_family(name: Any) -> Any:
    """The array type of mirabelle's of that name; None if there is none."""
    mirabelle = loading.public()

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
    """The graph in a description, checked."""

    def __init__(self, description: Any, data: list[Any], ranges: list[Any]) -> None:
        reader = Reader(typed(list, description["signatures"]), typed(list, description["files"]), data, ranges)
        self.outputs = reader.read(description["graph"])
        self.inputs = reader.inputs
        self.written = list(whole_numbers(description["written"]))
        self.count = len(self.outputs) - len(self.written)
        if self.count < 0 or len(set(self.written)) != len(self.written):
            raise ValueError("it writes to more arguments than it computes values for")
        for i, x in zip(self.written, self.outputs[self.count :], strict=True):
            taken = at(self.inputs, i)
            if (x.shape, x.dtype) != (taken.shape, taken.dtype):
                said = f"{x.dtype.name}{list(x.shape)}"
                raise ValueError(f"it writes {said} to argument {i}, which is another array")
        self.called_with = typed(list, description["called with"])
        arrays = [what for _, kind, what in self.called_with if kind == "array"]
        bound([], self.called_with, (), {})  # (which reads how many there are)
        if arrays != [f"{x.dtype.name}{list(x.shape)}" for x in self.inputs]:
            raise ValueError("its arguments are not those that it computes with")


class LoadedProgram(Program):
    """A program from a file: it is called like the function that it was made of.

    It has all that a program has: `graph`, `plan`, `explain()`, `profile(...)`, `save(path)`. What each stage
    of loading took is in `seconds`.

    >>> import mirabelle as mb
    >>> import tempfile
    >>> program = mb.compiling.trace(lambda x: x * 2, mb.zeros(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program.save(f"{folder}/double.mbp")
    ...     again = mb.load_program(f"{folder}/double.mbp")
    >>> print(again(mb.HostArray([4.0])))
    [8.]
    """

    def __init__(
        self, description: Mapping[str, Any], graph: Any, inner: type[AbstractArray], seconds: dict[str, float]
    ) -> None:
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
        said = description.get("schedule")
        self.decided = Deciding(Schedule() if said is None else Schedule.of(said), self.name)
        self.inner = inner
        self.outputs = graph.outputs
        family = family_for(inner)
        placeholders = [handle(family, x) for x in graph.inputs]
        returned = [handle(family, x) for x in graph.outputs[: graph.count]]
        result = _ResultReader(returned, placeholders).value(description["result"])
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
            given = signature_text(found.key, self.parameters, found.arrays)
        except NoText as e:
            raise TypeError(f"The program {self.name} is called with {e}, which it is not made for.") from None
        if given != self.called_with:
            said = difference(self.called_with, given)
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


class _ResultReader(Reader):
    """What a program returns, with stand-ins for the arrays in it."""

    own: ClassVar[dict[str, Field]] = {
        "output": Field(NotImplemented, lambda t, r: at(r.returned, t)),
        "argument": Field(NotImplemented, lambda t, r: at(r.placeholders, t)),
        "named": Field(NotImplemented, lambda t, r: _NAMED[t[0]](*map(r.value, t[1]))),
        "shown": Field(NotImplemented, lambda t, r: _shown_again(r, *t)),
    }

    def __init__(self, returned: list[Any], placeholders: list[Any]) -> None:
        super().__init__()
        self.returned, self.placeholders = returned, placeholders

    def field(self, word: str) -> Field:
        return self.own.get(word) or super().field(word)


def _shown_again(r: Reader, name: str, parent: Any, how: Any, shape: Any) -> Any:
    """A view of a stand-in, whose shape is that which it says."""
    kind, shown = _WRAPPERS[name], r.value(parent)
    if not isinstance(shown, (Traced, Wrapper)):
        raise ValueError(f"it returns a {name} of what is no array")
    made = kind._of(shown, r.value(how), whole_numbers(shape))
    root = made
    while isinstance(root, Wrapper):
        root = root._parent
    if tuple(verbs.lower(made, verbs.leaf_of(root)).shape) != made.shape:
        raise ValueError(f"it returns a {name} of shape {list(made.shape)}, which it has not")
    return made
