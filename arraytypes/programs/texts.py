"""Graphs as text: what a file keeps of a program, in terms of JSON, and how it comes back.

Whatever is not plainly one of the things known here has no text, and nothing in a text is ever executed:
operations, reductions and routines are looked up by their names, in tables of our own.

>>> values_text = text_of((1, -0.0, float("inf"), None, [np.float32(2)], {"axis": np.dtype("int32")}))
>>> value_of(values_text)
(1, -0.0, inf, None, [np.float32(2.0)], {'axis': dtype('int32')})
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import (
    Call,
    Data,
    Empty,
    Fold,
    Input,
    Map,
    Node,
    Part,
    Product,
    Result,
    Slot,
    Update,
    call_node,
    empty_node,
    fold_node,
    input_node,
    map_node,
    ordered,
    part_node,
    product_node,
    result_node,
    update_node,
)
from mirabelle.arraytypes.programs.validity import (
    Entries,
    check,
    check_output,
    check_shape,
    check_signature,
    secured,
    why_not_routine,
)
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.dispatch.ops import TABLE, Op
from mirabelle.dispatch.promotion import Sig, intern


class NoText(TypeError):
    """Something that a file cannot hold."""


# Values


DTYPES: dict[str, np.dtype] = {
    np.dtype(t).str: np.dtype(t)
    for t in ("?", *[f"{k}{n}" for k in "iu" for n in (1, 2, 4, 8)], "f2", "f4", "f8", "c8", "c16")
}
# Types that are given as dtypes, by their names.
_TYPES: dict[str, Any] = {d.type.__name__: d.type for d in DTYPES.values()} | {
    t.__name__: t for t in (int, float, complex, bool)
}


def dtype_text(dtype: np.dtype) -> str:
    if dtype.str not in DTYPES:
        raise NoText(f"numbers of the kind {dtype.name}")
    return dtype.str


def text_of(x: Any) -> Any:
    """A nest of numbers, texts, dtypes and slots for JSON: each with the word that says what it is."""
    kind = type(x)
    if x is None:
        return None
    if kind is bool:
        return {"bool": x}
    if kind is int:
        return {"int": str(x)}
    if kind is float:
        return {"float": _float_text(x)}
    if kind is complex:
        return {"complex": [_float_text(x.real), _float_text(x.imag)]}
    if isinstance(x, np.generic) and x.dtype.str in DTYPES:
        return {"numpy": [x.dtype.str, x.tobytes().hex()]}
    if kind is str:
        return {"str": x}
    if isinstance(x, (list, tuple)) and kind in (list, tuple):
        return {kind.__name__: [text_of(item) for item in x]}
    if kind is dict:
        return {"dict": [[text_of(k), text_of(item)] for k, item in x.items()]}
    if kind is Slot:
        return {"slot": x.number}
    if kind is slice:
        return {"slice": [text_of(item) for item in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": None}
    if isinstance(x, np.dtype):
        return {"dtype": dtype_text(x)}
    if isinstance(x, type) and x in _TYPES.values():
        return {"type": x.__name__}
    if isinstance(x, int) and hasattr(x, "value") and kind.__module__.startswith("numpy"):
        return {"int": str(int(x))}  # (NumPy's flags, such as np.CopyMode)
    what = getattr(x, "__qualname__", "") or kind.__qualname__
    raise NoText(f"{'the function' if callable(x) and not isinstance(x, type) else 'an object'} {what}")


def _float_text(x: float) -> str:
    # (Of a NaN its bits: there are many.)
    return repr(x) if x == x else "nan:" + struct.pack(">d", x).hex()


def value_of(text: Any) -> Any:
    """What a text of `text_of` stands for."""
    if text is None:
        return None
    ((word, given),) = text.items()
    return _VALUES[word](given)


def _float_of(text: str) -> float:
    if text.startswith("nan:"):
        (made,) = struct.unpack(">d", bytes.fromhex(text[4:]))
        return float(made)
    return float(text)


def _scalar_of(given: Any) -> Any:
    code, digits = given
    (made,) = np.frombuffer(bytes.fromhex(digits), DTYPES[code])
    return made


def _typed(kind: type) -> Callable[[Any], Any]:
    def made(given: Any) -> Any:
        if type(given) is not kind:
            raise ValueError(f"{given!r} is no {kind.__name__}")
        return given

    return made


# (Text is turned into numbers only by what does nothing else with it.)
_VALUES: dict[str, Callable[[Any], Any]] = {
    "bool": _typed(bool),
    "int": lambda given: int(_typed(str)(given)),
    "float": lambda given: _float_of(given),
    "complex": lambda given: complex(_float_of(given[0]), _float_of(given[1])),
    "numpy": _scalar_of,
    "str": _typed(str),
    "list": lambda given: [value_of(item) for item in _typed(list)(given)],
    "tuple": lambda given: tuple([value_of(item) for item in _typed(list)(given)]),
    "dict": lambda given: {value_of(k): value_of(item) for k, item in _typed(list)(given)},
    "slot": lambda given: Slot(whole_number(given)),
    "slice": lambda given: slice(*[value_of(item) for item in _typed(list)(given)]),
    "ellipsis": lambda given: Ellipsis,
    "dtype": lambda given: DTYPES[given],
    "type": lambda given: _TYPES[given],
}


def whole_number(x: Any) -> int:
    if type(x) is not int or not -(1 << 62) < x < 1 << 62:
        raise ValueError(f"{x!r} is no number of that kind")
    return x


def whole_numbers(x: Any) -> tuple[int, ...]:
    return tuple([whole_number(n) for n in _typed(list)(x)])


# Nodes


class Writer:
    """Makes texts of nodes, operands first. Graphs within a graph have writers of their own."""

    def __init__(self, outer: Writer | None = None) -> None:
        self.nodes: list[Any] = []
        self.numbers: dict[int, int] = {}
        # Operations at their dtypes, and files of lines: each said once.
        self.signatures: list[Any] = outer.signatures if outer else []
        self.signature_numbers: dict[int, int] = outer.signature_numbers if outer else {}
        self.files: list[str] = outer.files if outer else []
        self.file_numbers: dict[str, int] = outer.file_numbers if outer else {}
        # The nodes of data, in order.
        self.data: list[Data] = outer.data if outer else []

    def graph(self, inputs: list[Input], outputs: tuple[Node, ...]) -> dict[str, Any]:
        """The text of a graph within this one."""
        inner = Writer(self)
        for node in (*inputs, *ordered(outputs)):
            inner.add(node)
        return {"nodes": inner.nodes, "outputs": [inner.numbers[id(x)] for x in outputs]}

    def add(self, node: Node) -> None:
        if id(node) in self.numbers:
            return
        form = BY_TYPE.get(type(node))
        try:
            if form is None:
                raise NoText(f"a step of the kind {type(node).__name__}")
            text = {"kind": form.word, **form.write(node, self)}
        except NoText as e:
            raise NoText(f"{e}, which {shown_line(node.line)} computes with") from None
        if node.operands:
            text["of"] = [self.numbers[id(x)] for x in node.operands]
        line = node.line
        if isinstance(line, tuple) and len(line) == 2 and type(line[0]) is str and type(line[1]) is int:
            text["line"] = [self._file(Path(line[0]).name), line[1]]
        self.numbers[id(node)] = len(self.nodes)
        self.nodes.append(text)

    def _file(self, name: str) -> int:
        number = self.file_numbers.get(name)
        if number is None:
            number = self.file_numbers[name] = len(self.files)
            self.files.append(name)
        return number

    def signature(self, sig: Sig) -> int:
        number = self.signature_numbers.get(sig.id)
        if number is None:
            op = sig.op
            if not is_ours(op):
                raise NoText(f"the function {getattr(op.scalar, '__qualname__', op.name)} of your own")
            text = [op.name, [dtype_text(d) for d in sig.ins], [dtype_text(d) for d in sig.outs]]
            number = self.signature_numbers[sig.id] = len(self.signatures)
            self.signatures.append(text)
        return number


def is_ours(op: Op) -> bool:
    """Is it an operation that every mirabelle knows by its name?"""
    return _OURS.get(op.name) is op


# (Those that are there when this is imported: what is added to the table later is somebody's own.)
_OURS = dict(TABLE)


class Reader:
    """Makes nodes of texts, each of which is checked before another is computed from it.

    `data` are the nodes of data, with what is known of their entries.
    """

    def __init__(self, signatures: Any, files: Any, data: list[Any], ranges: list[Any]) -> None:
        self.signatures = [signature_of(*given) for given in _typed(list)(signatures)]
        self.files = [f"<saved>/{Path(_typed(str)(name)).name}" for name in _typed(list)(files)]
        self.data = data
        self.ranges = ranges
        self.entries = Entries()
        self.nodes: list[Node] = []
        self.inputs: dict[int, Input] = {}

    def graph(self, text: Any) -> tuple[list[Input], tuple[Node, ...]]:
        """The inputs and outputs of a graph within this one."""
        inner = Reader([], [], self.data, self.ranges)
        inner.signatures, inner.files = self.signatures, self.files
        for each in _typed(list)(text["nodes"]):
            inner.add(each)
        numbers = whole_numbers(text["outputs"])
        if any(not 0 <= n < len(inner.nodes) for n in numbers):
            raise ValueError("a result of a loop or a branch is none of its values")
        outputs = tuple([inner.nodes[n] for n in numbers])
        for x in outputs:
            check_output(x)
        return list(inner.inputs.values()), outputs

    def add(self, text: Any) -> None:
        """The next node. (What it is computed from has been before: there are no cycles.)"""
        form = FORMS[text["kind"]]
        numbers = whole_numbers(text.get("of", []))
        if any(not 0 <= n < len(self.nodes) for n in numbers):
            raise ValueError(f"node {len(self.nodes)} is computed from one that does not come before it")
        operands = tuple([self.nodes[n] for n in numbers])
        node = form.read(text, operands, self)
        check(node)
        safe = secured(node, self.entries)
        if safe is not node:
            check(safe)
            node = safe
        self.entries.work_out(node)
        line = text.get("line")
        if line is not None and node.line is None:
            file, number = whole_numbers(line)
            if not 0 <= file < len(self.files):
                raise ValueError(f"node {len(self.nodes)} is in file {file} of {len(self.files)}")
            node.line = self.files[file], number
        self.nodes.append(node)

    def shape(self, given: Any, dtype: np.dtype) -> tuple[int, ...]:
        made = whole_numbers(given)
        check_shape(made, dtype)
        return made


def signature_of(name: Any, ins: Any, outs: Any) -> Sig:
    """The signature of a text. (Whether there is such an operation is checked with the nodes that use it.)"""
    op = _OURS.get(name)
    if op is None:
        raise ValueError(f"there is no operation {name!r}")
    ins, outs = tuple([DTYPES[d] for d in ins]), tuple([DTYPES[d] for d in outs])
    check_signature(op, ins, outs)
    return intern(op, ins, outs)


class Form:
    """How nodes of a kind are written, and read."""

    def __init__(
        self,
        word: str,
        write: Callable[[Any, Writer], dict[str, Any]],
        read: Callable[[Any, tuple[Node, ...], Reader], Node],
    ) -> None:
        self.word = word
        self.write = write
        self.read = read


def _array(node: Any) -> dict[str, Any]:
    return {"shape": list(node.shape), "dtype": dtype_text(node.dtype)}


def _array_of(text: Any, reader: Reader) -> tuple[tuple[int, ...], np.dtype]:
    dtype = DTYPES[text["dtype"]]
    return reader.shape(text["shape"], dtype), dtype


def _write_input(node: Input, writer: Writer) -> dict[str, Any]:
    return {**_array(node), "number": node.number, "name": str(node.name)}


def _read_input(text: Any, operands: Any, reader: Reader) -> Node:
    number = whole_number(text["number"])
    if number != len(reader.inputs):
        raise ValueError(f"input {number} stands where {len(reader.inputs)} should")
    made = reader.inputs[number] = input_node(number, *_array_of(text, reader), _typed(str)(text["name"]))
    return made


def _write_data(node: Data, writer: Writer) -> dict[str, Any]:
    known = next((i for i, x in enumerate(writer.data) if x is node), -1)
    if known < 0:
        known = len(writer.data)
        writer.data.append(node)
    return {**_array(node), "number": known}


def _read_data(text: Any, operands: Any, reader: Reader) -> Node:
    number = whole_number(text["number"])
    if not 0 <= number < len(reader.data):
        raise ValueError(f"there is no data {number}")
    node: Node = reader.data[number]
    if (node.shape, node.dtype) != _array_of(text, reader):
        raise ValueError(
            f"data {number} is {node.dtype.name}{list(node.shape)}, which the program does not expect"
        )
    if reader.ranges[number] is not None:
        reader.entries.remember(node, *reader.ranges[number])
    return node


def _write_empty(node: Empty, writer: Writer) -> dict[str, Any]:
    return _array(node)


def _read_empty(text: Any, operands: Any, reader: Reader) -> Node:
    return empty_node(*_array_of(text, reader))


def _write_map(node: Map, writer: Writer) -> dict[str, Any]:
    # (An array among the arguments is a node's number, a number what stands for it.)
    args = [writer.numbers[id(a)] if isinstance(a, Node) else text_of(a) for a in node.args]
    return {"shape": list(node.shape), "signature": writer.signature(node.sig), "args": args}


def _read_map(text: Any, operands: Any, reader: Reader) -> Node:
    number = whole_number(text["signature"])
    if not 0 <= number < len(reader.signatures):
        raise ValueError(f"there is no signature {number}")
    sig = reader.signatures[number]
    args: list[Any] = []
    rest = iter(operands)
    for a in _typed(list)(text["args"]):
        if type(a) is int:
            args.append(next(rest, None))
            if args[-1] is not reader.nodes[a]:
                raise ValueError("an operation has other operands than it says")
        else:
            args.append(value_of(a))
    if next(rest, None) is not None:
        raise ValueError("an operation has more operands than it says")
    return map_node(sig, tuple(args), reader.shape(text["shape"], sig.out))


def _write_fold(node: Fold, writer: Writer) -> dict[str, Any]:
    if node.reduction not in REDUCTIONS.values():
        raise NoText(f"the reduction {node.reduction.name} of your own")
    own = {"reduction": node.reduction.name, "axes": list(node.axes), "keepdims": bool(node.keepdims)}
    return {**_array(node), **own}


def _read_fold(text: Any, operands: Any, reader: Reader) -> Node:
    shape, dtype = _array_of(text, reader)
    (operand,) = operands
    keepdims = _typed(bool)(text["keepdims"])
    return fold_node(
        REDUCTIONS[text["reduction"]], operand, whole_numbers(text["axes"]), keepdims, shape, dtype
    )


def _write_part(node: Part, writer: Writer) -> dict[str, Any]:
    own = {"offset": int(node.offset), "strides": [int(s) for s in node.strides]}
    return {**_array(node), **own, **({"table": True} if node.table else {})}


def _read_part(text: Any, operands: Any, reader: Reader) -> Node:
    shape, dtype = _array_of(text, reader)
    (source,) = operands
    strides = whole_numbers(text["strides"])
    if len(strides) != len(shape):
        raise ValueError("a part has not as many strides as dimensions")
    table = _typed(bool)(text.get("table", False))
    return part_node(source, whole_number(text["offset"]), shape, strides, dtype, table)


def _write_update(node: Update, writer: Writer) -> dict[str, Any]:
    return {
        "offset": int(node.offset),
        "strides": [int(s) for s in node.strides],
        "shape": list(node.part_shape),
        "dtype": dtype_text(node.part_dtype),
    }


def _read_update(text: Any, operands: Any, reader: Reader) -> Node:
    shape, dtype = _array_of(text, reader)
    base, value = operands
    strides = whole_numbers(text["strides"])
    if len(strides) != len(shape):
        raise ValueError("a write has not as many strides as dimensions")
    return update_node(base, whole_number(text["offset"]), shape, strides, dtype, value)


def _write_product(node: Product, writer: Writer) -> dict[str, Any]:
    return _array(node)


def _read_product(text: Any, operands: Any, reader: Reader) -> Node:
    first, second = operands
    return product_node(first, second, *_array_of(text, reader))


def _write_call(node: Call, writer: Writer) -> dict[str, Any]:
    if node.kind == "routine" and why_not_routine(node.routine) is not None:
        raise NoText(f"the routine {node.routine}, which a file must not call")
    own: dict[str, Any] = {}
    template = node.template
    if node.kind in ("while", "for", "cond"):
        (graphs, *args), options = template
        template = ((None, *args), options)
        own = _write_branches(graphs, writer) if node.kind == "cond" else _write_loop(graphs, writer)
    return {
        "call": node.kind,
        "routine": node.routine,
        "template": text_of(template),
        "outputs": [[list(shape), dtype_text(dtype)] for shape, dtype in node.outputs],
        **own,
    }


def _write_loop(loop: Any, writer: Writer) -> dict[str, Any]:
    test = () if loop.condition is None else (loop.condition,)
    return {"loop": writer.graph(loop.inputs, (*loop.outputs, *test)), "trips": loop.trips}


def _write_branches(branches: Any, writer: Writer) -> dict[str, Any]:
    both = branches.if_true, branches.if_false
    return {"branches": [writer.graph(x.inputs, x.outputs) for x in both]}


def _read_call(text: Any, operands: Any, reader: Reader) -> Node:
    outputs: list[Any] = []
    for shape, code in _typed(list)(text["outputs"]):
        dtype = DTYPES[code]
        outputs.append((reader.shape(shape, dtype), dtype))
    name, kind = _typed(str)(text["routine"]), _typed(str)(text["call"])
    template = value_of(text["template"])
    if kind in ("while", "for", "cond"):
        (_, *args), options = template
        template = (
            (_read_branches(text, reader) if kind == "cond" else _read_loop(text, kind, reader), *args),
            options,
        )
    return call_node(kind, name, template, operands, tuple(outputs))


def _read_loop(text: Any, kind: str, reader: Reader) -> Any:
    from mirabelle.arraytypes.programs.controlflow import Loop

    inputs, outputs = reader.graph(text["loop"])
    test = None
    if kind == "while":
        *rest, test = outputs
        outputs = tuple(rest)
    trips = text["trips"]
    return Loop(inputs, outputs, test, None if trips is None else whole_number(trips))


def _read_branches(text: Any, reader: Reader) -> Any:
    from mirabelle.arraytypes.programs.controlflow import Branches
    from mirabelle.arraytypes.programs.subgraphs import Subgraph

    if_true, if_false = [Subgraph(*reader.graph(each)) for each in text["branches"]]
    return Branches(if_true, if_false)


def _write_result(node: Result, writer: Writer) -> dict[str, Any]:
    return {"number": node.number}


def _read_result(text: Any, operands: Any, reader: Reader) -> Node:
    (call,) = operands
    number = whole_number(text["number"])
    if type(call) is not Call or not 0 <= number < len(call.outputs):
        raise ValueError(f"result {number} of what has none")
    return result_node(call, number)


# How each kind of node is kept. A new kind adds itself here, and to `validity.CHECKS`.
BY_TYPE: dict[type[Node], Form] = {
    Input: Form("input", _write_input, _read_input),
    Data: Form("data", _write_data, _read_data),
    Empty: Form("empty", _write_empty, _read_empty),
    Map: Form("map", _write_map, _read_map),
    Fold: Form("fold", _write_fold, _read_fold),
    Part: Form("part", _write_part, _read_part),
    Update: Form("update", _write_update, _read_update),
    Product: Form("product", _write_product, _read_product),
    Call: Form("call", _write_call, _read_call),
    Result: Form("result", _write_result, _read_result),
}
FORMS = {form.word: form for form in BY_TYPE.values()}
