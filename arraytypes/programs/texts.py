"""Graphs as text: what a file keeps of a program, in terms of JSON, and how it comes back.

Whatever is not plainly one of the things known here has no text, and nothing in a text is ever executed:
operations, reductions and routines are looked up by their names, in tables of our own. `WORDS` says how values
are written and read, `KINDS` of which fields a node consists and what makes it of them: a new kind of node adds
itself there, and to `validity.CHECKS`.

>>> values_text = Writer().value((1, -0.0, float("inf"), None, [np.float32(2)], {"axis": np.dtype("int32")}))
>>> Reader().value(values_text)
(1, -0.0, inf, None, [np.float32(2.0)], {'axis': dtype('int32')})
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.programs import graph as g
from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import Node, Slot, ordered
from mirabelle.arraytypes.programs.loops import Branches, Loop
from mirabelle.arraytypes.programs.subgraphs import Subgraph
from mirabelle.arraytypes.programs.validity import (
    Entries,
    check,
    check_output,
    check_signature,
    folded_shape,
    product_of,
    secured,
)
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig, intern


class NoText(TypeError):
    """Something that a file cannot hold."""


DTYPES: dict[str, np.dtype] = {
    np.dtype(t).str: np.dtype(t)
    for t in ("?", *[f"{k}{n}" for k in "iu" for n in (1, 2, 4, 8)], "f2", "f4", "f8", "c8", "c16")
}
# Types that are given as dtypes, by their names.
_TYPES: dict[str, Any] = {d.type.__name__: d.type for d in DTYPES.values()} | {
    t.__name__: t for t in (int, float, complex, bool)
}
# Operations that are there when this is imported: what is added to the table later is somebody's own.
_OURS = dict(TABLE)


class Writer:
    """Makes texts of values and of nodes, operands first. Graphs within a graph have writers of their own."""

    def __init__(self, outer: Writer | None = None) -> None:
        self.nodes: list[Any] = []
        self.numbers: dict[int, int] = {}
        # Operations at their dtypes, and files of lines: each said once. The views of data.
        self.signatures: dict[Any, int] = outer.signatures if outer else {}
        self.files: dict[str, int] = outer.files if outer else {}
        self.views: dict[int, tuple[int, Any]] = outer.views if outer else {}

    def value(self, x: Any) -> Any:
        """A nest of numbers, texts, dtypes, slots, nodes: each with the word that says what it is."""
        if x is None:
            return None
        word = _word_of(x)
        return {word: WORDS[word].write(x, self)}

    def graph(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> dict[str, Any]:
        """The text of a graph within this one."""
        inner = Writer(self)
        for node in (*inputs, *ordered(outputs)):
            inner.add(node)
        return {"nodes": inner.nodes, "outputs": [inner.numbers[id(x)] for x in outputs]}

    def add(self, node: Node) -> None:
        if id(node) in self.numbers:
            return
        try:
            word = _KIND_WORDS.get(type(node))
            if word is None:
                raise NoText(f"a step of the kind {type(node).__name__}")
            fields = {n: f.write(getattr(node, f.attribute or n), self) for n, f in KINDS[word].fields.items()}
        except NoText as e:
            raise NoText(f"{e}, which {shown_line(node.line)} computes with") from None
        text = {"kind": word, **{n: t for n, t in fields.items() if t is not False}}
        if node.operands and "args" not in fields:
            text["of"] = [self.numbers[id(x)] for x in node.operands]
        line = node.line
        if isinstance(line, tuple) and len(line) == 2 and type(line[0]) is str and type(line[1]) is int:
            text["line"] = [self.files.setdefault(Path(line[0]).name, len(self.files)), line[1]]
        self.numbers[id(node)] = len(self.nodes)
        self.nodes.append(text)


class Reader:
    """Makes values and nodes of texts, each of which is checked before another is computed from it.

    `data` are the nodes of data, `ranges` what is known of their entries.
    """

    def __init__(
        self, signatures: Any = (), files: Any = (), data: Sequence[Any] = (), ranges: Sequence[Any] = ()
    ) -> None:
        self.signatures = [_signature_of(*given) for given in signatures]
        self.files = [f"<saved>/{Path(typed(str, name)).name}" for name in files]
        self.data = data
        self.ranges = ranges
        self.entries = Entries()
        self.nodes: list[Node] = []
        self.inputs: list[g.Input] = []

    def value(self, text: Any) -> Any:
        """What a text of `Writer.value` stands for."""
        if text is None:
            return None
        ((word, given),) = text.items()
        return self.field(word).read(given, self)

    def field(self, word: str) -> Field:
        """How the values that a word stands for are read."""
        return WORDS[word]

    def graph(self, text: Any) -> tuple[list[g.Input], tuple[Node, ...]]:
        """The inputs and outputs of a graph within this one."""
        inner = Reader((), (), self.data, self.ranges)
        inner.signatures, inner.files = self.signatures, self.files
        return inner.inputs, inner.read(text)

    def read(self, text: Any) -> tuple[Node, ...]:
        """All nodes of a graph: its outputs."""
        for each in typed(list, text["nodes"]):
            self.add(each)
        outputs = tuple([at(self.nodes, n) for n in whole_numbers(text["outputs"])])
        for x in outputs:
            check_output(x)
        return outputs

    def add(self, text: Any) -> None:
        """The next node. (What it is computed from has been before: there are no cycles.)"""
        kind = KINDS[text["kind"]]
        fields = {n: f.read(text.get(n, False), self) for n, f in kind.fields.items()}
        node = kind.make(self, [at(self.nodes, n) for n in whole_numbers(text.get("of", []))], **fields)
        check(node)
        safe = secured(node, self.entries)
        if safe is not node:
            check(safe)
            node = safe
        self.entries.work_out(node)
        line = text.get("line")
        if line is not None and node.line is None:
            file, number = whole_numbers(line)
            node.line = at(self.files, file), number
        self.nodes.append(node)


# What texts are read as: nothing is taken for what it is not.


def typed(kind: type, given: Any) -> Any:
    if type(given) is not kind:
        raise ValueError(f"{given!r} is no {kind.__name__}")
    return given


def whole_number(x: Any) -> int:
    if type(x) is not int or not -(1 << 62) < x < 1 << 62:
        raise ValueError(f"{x!r} is no number of that kind")
    return x


def whole_numbers(x: Any) -> tuple[int, ...]:
    return tuple([whole_number(n) for n in typed(list, x)])


def at(known: Sequence[Any], number: Any) -> Any:
    if not 0 <= whole_number(number) < len(known):
        raise ValueError(f"number {number} is none of the {len(known)} values that come before it")
    return known[number]


class Field(NamedTuple):
    """How something is written, and read. A node has it as `attribute`, or else by the name of the field."""

    write: Callable[[Any, Writer], Any]
    read: Callable[[Any, Any], Any]
    attribute: str = ""


# Values, by the words that say what they are


def _float_text(x: float) -> str:
    # (Of a NaN its bits: there are many.)
    return repr(x) if x == x else "nan:" + struct.pack(">d", x).hex()


def _float_of(text: Any) -> float:
    bits = typed(str, text).removeprefix("nan:")
    return float(text) if bits == text else float(struct.unpack(">d", bytes.fromhex(bits))[0])


def _scalar_of(code: str, digits: str) -> Any:
    return np.frombuffer(bytes.fromhex(digits), DTYPES[code])[0]


def dtype_text(dtype: np.dtype) -> str:
    if dtype.str not in DTYPES:
        raise NoText(f"numbers of the kind {dtype.name}")
    return dtype.str


def _plain(kind: type) -> Field:
    return Field(lambda x, w: kind(x), lambda t, r: typed(kind, t))


def _items(kind: Any) -> Field:
    return Field(lambda x, w: [w.value(y) for y in x], lambda t, r: kind([r.value(y) for y in typed(list, t)]))


def _loop_text(x: Any, w: Writer) -> Any:
    test = () if x.condition is None else (x.condition,)
    return [w.graph(x.inputs, (*x.outputs, *test)), bool(test), x.trips]


def _loop_of(r: Reader, graph: Any, tests: Any, trips: Any) -> Loop:
    inputs, outputs = r.graph(graph)
    count = len(outputs) - typed(bool, tests)
    condition = outputs[count] if tests else None
    return Loop(inputs, outputs[:count], condition, None if trips is None else whole_number(trips))


WORDS: dict[str, Field] = {
    "bool": _plain(bool),
    "int": Field(lambda x, w: str(int(x)), lambda t, r: int(typed(str, t))),
    "float": Field(lambda x, w: _float_text(x), lambda t, r: _float_of(t)),
    "complex": Field(
        lambda x, w: [_float_text(x.real), _float_text(x.imag)], lambda t, r: complex(*map(_float_of, t))
    ),
    "numpy": Field(lambda x, w: [dtype_text(x.dtype), x.tobytes().hex()], lambda t, r: _scalar_of(*t)),
    "str": _plain(str),
    "list": _items(list),
    "tuple": _items(tuple),
    "dict": Field(
        lambda x, w: [[w.value(k), w.value(y)] for k, y in x.items()],
        lambda t, r: {r.value(k): r.value(y) for k, y in typed(list, t)},
    ),
    "slot": Field(lambda x, w: x.number, lambda t, r: Slot(whole_number(t))),
    "slice": Field(
        lambda x, w: [w.value(y) for y in (x.start, x.stop, x.step)],
        lambda t, r: slice(*[r.value(y) for y in typed(list, t)]),
    ),
    "ellipsis": Field(lambda x, w: None, lambda t, r: Ellipsis),
    "dtype": Field(lambda x, w: dtype_text(x), lambda t, r: DTYPES[t]),
    "type": Field(lambda x, w: x.__name__, lambda t, r: _TYPES[t]),
    "node": Field(lambda x, w: w.numbers[id(x)], lambda t, r: at(r.nodes, t)),
    "loop": Field(_loop_text, lambda t, r: _loop_of(r, *t)),
    "branches": Field(
        lambda x, w: [w.graph(y.inputs, y.outputs) for y in (x.if_true, x.if_false)],
        lambda t, r: Branches(*[Subgraph(*r.graph(y)) for y in typed(list, t)]),
    ),
}

_WORD_OF: dict[type, str] = {
    **{t: t.__name__ for t in (bool, int, float, complex, str, list, tuple, dict, slice)},
    type(Ellipsis): "ellipsis",
    Slot: "slot",
    Loop: "loop",
    Branches: "branches",
}


def _word_of(x: Any) -> str:
    kind = type(x)
    found = _WORD_OF.get(kind)
    if found is not None:
        return found
    if isinstance(x, Node):
        return "node"
    if isinstance(x, np.generic) and x.dtype.str in DTYPES:
        return "numpy"
    if isinstance(x, np.dtype):
        return "dtype"
    if isinstance(x, type) and x in _TYPES.values():
        return "type"
    if isinstance(x, int) and hasattr(x, "value") and kind.__module__.startswith("numpy"):
        return "int"  # (NumPy's flags, such as np.CopyMode)
    what = getattr(x, "__qualname__", "") or kind.__qualname__
    raise NoText(f"{'the function' if callable(x) and not isinstance(x, type) else 'an object'} {what}")


# Nodes


def _signature_number(sig: Sig, w: Writer) -> int:
    op = sig.op
    if _OURS.get(op.name) is not op:
        raise NoText(f"the function {getattr(op.scalar, '__qualname__', op.name)} of your own")
    key = op.name, tuple(map(dtype_text, sig.ins)), tuple(map(dtype_text, sig.outs))
    return w.signatures.setdefault(key, len(w.signatures))


def _signature_of(name: Any, ins: Any, outs: Any) -> Sig:
    op = _OURS.get(name)
    if op is None:
        raise ValueError(f"there is no operation {name!r}")
    ins, outs = tuple([DTYPES[d] for d in ins]), tuple([DTYPES[d] for d in outs])
    check_signature(op, ins, outs)
    return intern(op, ins, outs)


def _reduction_text(reduction: Any, w: Writer) -> str:
    if reduction not in REDUCTIONS.values():
        raise NoText(f"the reduction {reduction.name} of your own")
    return str(reduction.name)


def _view_number(view: Any, w: Writer) -> int:
    number, _ = w.views.setdefault(id(view), (len(w.views), view))
    return number


NUMBER = Field(lambda x, w: int(x), lambda t, r: whole_number(t))
NUMBERS = Field(lambda x, w: [int(n) for n in x], lambda t, r: whole_numbers(t))
DTYPE = WORDS["dtype"]
TEXT, FLAG = _plain(str), _plain(bool)
ARRAYS = Field(
    lambda x, w: [[list(shape), dtype_text(dtype)] for shape, dtype in x],
    lambda t, r: tuple([(whole_numbers(shape), DTYPES[code]) for shape, code in typed(list, t)]),
)
ARRAY = {"shape": NUMBERS, "dtype": DTYPE}


class Kind(NamedTuple):
    """What a kind of nodes consists of beside its operands, and what makes one of operands and fields."""

    type: type[Node]
    make: Callable[..., Node]
    fields: dict[str, Field]


def _input(r: Reader, of: Any, number: int, **array: Any) -> Node:
    if number != len(r.inputs):
        raise ValueError(f"input {number} stands where {len(r.inputs)} should")
    r.inputs.append(g.input_node(number, **array))
    return r.inputs[-1]


def _data(r: Reader, of: Any, number: int, shape: Any, dtype: np.dtype) -> Node:
    node: Node = at(r.data, number)
    if (node.shape, node.dtype) != (shape, dtype):
        said = f"{node.dtype.name}{list(node.shape)}"
        raise ValueError(f"data {number} is {said}, which the program does not expect")
    if r.ranges[number] is not None:
        r.entries.remember(node, *r.ranges[number])
    return node


def _fold(r: Reader, of: Any, reduction: Any, axes: Any, keepdims: bool, dtype: np.dtype) -> Node:
    (x,) = of
    return g.fold_node(reduction, x, axes, keepdims, folded_shape(x.shape, axes, keepdims), dtype)


def _product(r: Reader, of: Any) -> Node:
    a, b = of
    shape, dtype = product_of(a, b)
    return g.product_node(a, b, shape, dtype)


def _update(r: Reader, of: Any, offset: int, part_shape: Any, strides: Any, part_dtype: np.dtype) -> Node:
    base, value = of
    return g.update_node(base, offset, part_shape, strides, part_dtype, value)


def _call(r: Reader, of: Any, call: str, routine: str, template: Any, outputs: Any) -> Node:
    return g.call_node(call, routine, template, tuple(of), outputs)


def _result(r: Reader, of: Any, number: int) -> Node:
    (call,) = of
    if type(call) is not g.Call or not 0 <= number < len(call.outputs):
        raise ValueError(f"result {number} of what has none")
    return g.result_node(call, number)


KINDS: dict[str, Kind] = {
    "input": Kind(g.Input, _input, {"number": NUMBER, "name": TEXT, **ARRAY}),
    "data": Kind(g.Data, _data, {"number": Field(_view_number, NUMBER.read, "view"), **ARRAY}),
    "empty": Kind(g.Empty, lambda r, of, **array: g.empty_node(**array), ARRAY),
    "map": Kind(
        g.Map,
        lambda r, of, **fields: g.map_node(**fields),
        {
            "sig": Field(_signature_number, lambda t, r: at(r.signatures, t)),
            "args": _items(tuple),
            "shape": NUMBERS,
        },
    ),
    "fold": Kind(
        g.Fold,
        _fold,
        {
            "reduction": Field(_reduction_text, lambda t, r: REDUCTIONS[t]),
            "axes": NUMBERS,
            "keepdims": FLAG,
            "dtype": DTYPE,
        },
    ),
    "part": Kind(
        g.Part,
        lambda r, of, **fields: g.part_node(*of, **fields),
        {"offset": NUMBER, "strides": NUMBERS, **ARRAY, "table": FLAG},
    ),
    "update": Kind(
        g.Update, _update, {"offset": NUMBER, "strides": NUMBERS, "part_shape": NUMBERS, "part_dtype": DTYPE}
    ),
    "product": Kind(g.Product, _product, {}),
    "call": Kind(
        g.Call,
        _call,
        {
            "call": Field(lambda x, w: x, TEXT.read, "kind"),
            "routine": TEXT,
            "template": Field(lambda x, w: w.value(x), lambda t, r: r.value(t)),
            "outputs": ARRAYS,
        },
    ),
    "result": Kind(g.Result, _result, {"number": NUMBER}),
}
_KIND_WORDS = {kind.type: word for word, kind in KINDS.items()}
