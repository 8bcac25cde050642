"""Schedules: decisions about a plan, as a value.

>>> import mirabelle as mb
>>> schedule = mb.compiling.Schedule().store("line 3").separate("sum")
>>> schedule
Schedule().store('line 3').separate('sum')
>>> len(schedule), [decision.name for decision in schedule]
(2, ['store', 'separate'])

What decisions are about is said by patterns (see `Schedule`), how they are carried out is in `deciding.py`.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.io import permitted, replacing

FORMAT, VERSION = "mirabelle schedule", 1
# What is stored as what, if it is asked for by name.
NARROWER = {
    "float64": ("float32", "float16"),
    "float32": ("float16",),
    "complex128": ("complex64",),
}


class ScheduleError(ValueError):
    """A decision of a schedule that cannot be carried out: it matches nothing, or would change results.

    >>> import mirabelle as mb
    >>> schedule = mb.compiling.Schedule().store("cosh")
    >>> try:
    ...     mb.compile(lambda x: mb.exp(x) + 1, schedule=schedule).program(mb.zeros(3))
    ... except mb.compiling.ScheduleError as e:
    ...     print(str(e).split(": ")[0])
    store('cosh') matches nothing in <lambda>()
    """


@dataclasses.dataclass(frozen=True)
class Decision:
    """One decision of a schedule: its name, the patterns it is about, and what is chosen.

    `note` is what planning knew when it decided by itself; it is no part of what is compared.

    >>> import mirabelle as mb
    >>> (decision,) = mb.compiling.Schedule().tile("line 4", rows=64)
    >>> decision.name, decision.where, decision.options
    ('tile', ('line 4',), (('rows', 64),))
    """

    name: str
    where: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    note: str = dataclasses.field(default="", compare=False)

    def option(self, name: str) -> Any:
        """What is chosen, by its name; None if nothing is."""
        return dict(self.options).get(name)

    def __repr__(self) -> str:
        said = [repr(pattern) for pattern in self.where]
        said += [f"{name}={value!r}" for name, value in self.options]
        return f"{self.name}({', '.join(said)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Schedule:
    """Decisions about the plan of a compiled function: `mb.compile(f, schedule=schedule)`.

    A schedule is a value. Each method returns another one with one more decision, `a + b` has those of both,
    and `save` and `load` keep it in a file of JSON. None changes what a program computes, except for
    `precision` and `library`, which say so; one that cannot be carried out is a `ScheduleError` that names the
    line.

    Decisions are about values, which patterns find:

    - `"line 12"`, or `"waves.py:12"`: what the line computes;
    - `"exp"`: each value of that operation, reduction, routine or argument;
    - `"line 12 exp"`, `"line 12 exp[1]"`: those of a line; the second of them;
    - `"flux = 0.5 * (a + b)"`: the lines in which this text stands;
    - `"#flux"`: what `mb.hint(x, tag="flux")` has marked.

    With a schedule a function is one program: it is not cut into pieces. A compiled function that another one
    calls is part of that one's program, and of its schedule.

    Parameters
    ----------
    decisions : tuple of Decision
        The decisions; the methods make them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> def f(x):
    ...     y = mb.exp(x) * 2
    ...     return y[1:] - y[:-1]
    >>> [step.name for step in mb.compile(f).program(mb.zeros(9)).plan.steps]
    ['exp_multiply', 'subtract']
    >>> schedule = mb.compiling.Schedule().recompute("exp").recompute("multiply")
    >>> [step.name for step in mb.compile(f, schedule=schedule).program(mb.zeros(9)).plan.steps]
    ['exp_multiply_exp_multiply_subtract']
    """

    decisions: tuple[Decision, ...] = ()

    # What is in memory

    def store(self, *where: str) -> Schedule:
        """Values lie in memory: a kernel computes them as the program says, and what reads them comes after it.

        It is what `mb.materialize(x)` and `mb.hint(x, store=True)` say in the program itself. No pass moves
        anything through such a value. It costs a write and reads, and saves what is computed more than once.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().store("exp")
        >>> f = mb.compile(lambda x: mb.exp(x) + 1, schedule=schedule)
        >>> [step.name for step in f.program(mb.zeros(3)).plan.steps]
        ['exp', 'add']
        """
        return self._with("store", where)

    def once(self, *where: str) -> Schedule:
        """Values that several kernels read are computed once: the first of these stores them, too.

        >>> import mirabelle as mb
        >>> f = lambda x: (mb.sum((x * 2)[1:]), mb.sum(x * 2, axis=0) + mb.max(x * 2))
        >>> schedule = mb.compiling.Schedule().once("multiply")
        >>> mb.compile(f, schedule=schedule).program(mb.zeros(9)).plan.steps[0].name
        'multiply'
        """
        return self._with("once", where)

    def recompute(self, *where: str) -> Schedule:
        """Values are not stored: each kernel that reads them computes them again.

        >>> import mirabelle as mb
        >>> def f(x):
        ...     y = mb.exp(x)
        ...     return mb.sum(y[1:]), mb.sum(y)
        >>> [step.name for step in mb.compile(f).program(mb.zeros(9)).plan.steps]
        ['exp', 'sum', 'sum']
        >>> schedule = mb.compiling.Schedule().recompute("exp")
        >>> len(mb.compile(f, schedule=schedule).program(mb.zeros(9)).plan.steps)
        2
        """
        return self._with("recompute", where)

    def precision(self, *where: str, dtype: str) -> Schedule:
        """Values are rounded to a narrower dtype and stored so, which changes numbers: half the memory is
        moved. What reads them computes in their own dtype.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().precision("divide", dtype="float32")
        >>> f = mb.compile(lambda x: x / 3 + 1, schedule=schedule)
        >>> print(f(mb.HostArray([1.0])) - 4 / 3)
        [9.93410754e-09]
        """
        made = np.dtype(dtype).name
        if not any(made in narrower for narrower in NARROWER.values()):
            raise ValueError(
                f"Values are stored as float32, float16 or complex64 beside their own dtype, not as {made}: "
                "`precision(..., dtype='float32')`."
            )
        return self._with("precision", where, dtype=made)

    def own_memory(self, *where: str) -> Schedule:
        """Temporaries lie in memory of their own, which nothing else uses before or after them; without a
        pattern all do. It takes more memory, and what is independent on a card need not wait for a place.

        >>> import mirabelle as mb
        >>> def f(x):
        ...     for _ in range(3):
        ...         x = mb.materialize(x[::-1] * 2)
        ...     return x + 1
        >>> mb.compile(f).program(mb.zeros(8)).plan.arena_bytes
        128
        >>> schedule = mb.compiling.Schedule().own_memory()
        >>> mb.compile(f, schedule=schedule).program(mb.zeros(8)).plan.arena_bytes
        192
        """
        return self._with("own_memory", where)

    def in_place(self, *where: str) -> Schedule:
        """Writes go into the memory of the value before them; a program that would have to copy it, because
        somebody reads the old value later, is refused.

        >>> import mirabelle as mb
        >>> def f(x):
        ...     y = x * 2
        ...     y[0] = 1
        ...     return y
        >>> schedule = mb.compiling.Schedule().in_place("y[0] = 1")
        >>> mb.compile(f, schedule=schedule).program(mb.zeros(3)).plan.steps[1].name
        'copy'
        """
        return self._with("in_place", where)

    # What is one kernel, and when it runs

    def fuse(self, *where: str) -> Schedule:
        """What these compute, each in memory, is one kernel, if they go over one index space.

        >>> import mirabelle as mb
        >>> f = lambda x, y: (x + 1, y * 2)
        >>> len(mb.compile(f).program(mb.zeros(9), mb.ones(9)).plan.steps)
        2
        >>> schedule = mb.compiling.Schedule().fuse("add", "multiply")
        >>> len(mb.compile(f, schedule=schedule).program(mb.zeros(9), mb.ones(9)).plan.steps)
        1
        """
        return self._with("fuse", where)

    def separate(self, *where: str) -> Schedule:
        """Each of these is a kernel of its own, which computes nothing else, and a launch of its own.

        >>> import mirabelle as mb
        >>> f = lambda x: (x + 1, x * 2)
        >>> schedule = mb.compiling.Schedule().separate("add")
        >>> len(mb.compile(f, schedule=schedule).program(mb.zeros(9)).plan.steps)
        2
        """
        return self._with("separate", where)

    def order(self, *where: str, before: str) -> Schedule:
        """These are computed before others, with what they need.

        >>> import mirabelle as mb
        >>> f = lambda x, y: (mb.sum(x), mb.max(y))
        >>> schedule = mb.compiling.Schedule().order("max", before="sum")
        >>> [s.name for s in mb.compile(f, schedule=schedule).program(mb.ones(4), mb.ones(9)).plan.steps]
        ['max', 'sum']
        """
        return self._with("order", where, before=_pattern("order", before))

    def unroll(self, *where: str) -> Schedule:
        """Loops of the program with a known number of trips are written out, each trip as kernels of its own.

        >>> import mirabelle as mb
        >>> f = lambda x: mb.fori_loop(0, 3, lambda i, s: s * 2, x)
        >>> schedule = mb.compiling.Schedule().unroll("for loop")
        >>> [s.name for s in mb.compile(f, schedule=schedule).program(mb.ones(4)).plan.steps]
        ['multiply_multiply_multiply']
        """
        return self._with("unroll", where)

    # How a step is run

    def library(self, *where: str, by: str) -> Schedule:
        """Products, and sums of products, are computed by one of several ways: `"library"` (BLAS), `"sums"` (a
        fused reduction), or an expansion of your own (`mb.compiling.Expansion`). Sums are added in another
        order, so that the last bits differ.

        >>> import mirabelle as mb
        >>> a = mb.ones((300, 300))
        >>> schedule = mb.compiling.Schedule().library("product", by="sums")
        >>> mb.compile(lambda a: a @ a, schedule=schedule).program(a).plan.steps[0].name
        'sum'
        """
        return self._with("library", where, by=_text("library", "by", by))

    def tile(self, *where: str, rows: int) -> Schedule:
        """On the host: statements that go through the same rows one after the other take so many rows at once
        through all of them; as many as there are means one statement after the other.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().tile("exp", rows=16)
        >>> def softmax(x):
        ...     e = mb.exp(x)
        ...     return e / mb.sum(e, axis=1, keepdims=True)
        >>> mb.compile(softmax, schedule=schedule)(mb.zeros((64, 8))).shape
        (64, 8)
        """
        return self._with("tile", where, rows=_count("tile", "rows", rows))

    def threads(self, *where: str, most: int) -> Schedule:
        """On the host: so many threads at most work on a statement.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().threads("exp", most=1)
        >>> print(mb.compile(lambda x: mb.exp(x), schedule=schedule)(mb.HostArray([0.0])))
        [1.]
        """
        return self._with("threads", where, most=_count("threads", "most", most))

    # What values are called

    def tag(self, *where: str, name: str) -> Schedule:
        """Values get a name, by which other decisions find them: `"#name"`.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().tag("exp", "log", name="slow").store("#slow")
        >>> f = mb.compile(lambda x: mb.exp(x) + mb.log(x), schedule=schedule)
        >>> f.program(mb.ones(3)).plan.steps[-1].name
        'add'
        """
        return self._with("tag", where, name=_text("tag", "name", name))

    def axes(self, *where: str, roles: tuple[str, ...]) -> Schedule:
        """The axes of values have roles, which passes can read (`mb.compiling.axis_roles`). They are those of
        what is computed of these elementwise, too.

        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().axes("u", roles=("cell", "node"))
        >>> def f(u): return mb.sum(u * 2, axis=1)
        >>> program = mb.compile(f, schedule=schedule).program(mb.zeros((5, 3)))
        >>> roles = mb.compiling.axis_roles(program)
        >>> [roles.get(node) for node in program.graph]
        [('cell', 'node'), ('cell', 'node'), ('cell',)]
        """
        made = tuple([_text("axes", "roles", role) for role in roles])
        return self._with("axes", where, roles=made)

    # As a value

    def _with(self, name: str, where: tuple[str, ...], /, **options: Any) -> Schedule:
        if not where and name != "own_memory":
            raise TypeError(
                f"{name} needs to know of what: `{name}('line 12')`, `{name}('exp')`, or the text of a line."
            )
        patterns = tuple([_pattern(name, pattern) for pattern in where])
        return Schedule((*self.decisions, Decision(name, patterns, tuple(options.items()))))

    def __add__(self, other: Schedule) -> Schedule:
        if not isinstance(other, Schedule):
            return NotImplemented
        return Schedule((*self.decisions, *[d for d in other.decisions if d not in self.decisions]))

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __repr__(self) -> str:
        return "".join(["Schedule()", *[f".{decision!r}" for decision in self.decisions]])

    def __str__(self) -> str:
        """One decision a line, with what planning knew of it: this can be pasted, too."""
        if not self.decisions:
            return "Schedule()"
        lines = [f"    .{d!r}" + (f"  # {d.note}" if d.note else "") for d in self.decisions]
        return "\n".join(["(", "    Schedule()", *lines, ")"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schedule to a file of JSON, which `Schedule.load` reads.

        >>> import tempfile
        >>> import mirabelle as mb
        >>> schedule = mb.compiling.Schedule().fuse("line 3", "line 4")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     schedule.save(f"{folder}/waves.schedule")
        ...     mb.compiling.Schedule.load(f"{folder}/waves.schedule") == schedule
        True
        """
        text = json.dumps(self.described(), indent=1) + "\n"
        with permitted(Path(path)), replacing(Path(path)) as fresh:
            fresh.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schedule:
        """The schedule in a file that `save` wrote. Nothing in it is executed: what is no decision of a
        schedule is refused.

        >>> import mirabelle as mb
        >>> mb.compiling.Schedule.load("no such file")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
        """
        text = Path(path).read_bytes()
        try:
            return cls.of(json.loads(text))
        except (ValueError, TypeError, LookupError, RecursionError) as e:
            said = str(e).strip().split("\n")[0].rstrip(".")
            raise ValueError(f"{os.fspath(path)!r} holds no schedule that can be used: {said}.") from e

    def described(self) -> dict[str, Any]:
        """The schedule in terms of JSON."""
        decisions = [
            {"name": d.name, "where": list(d.where), "options": _plain(dict(d.options))}
            | ({"note": d.note} if d.note else {})
            for d in self.decisions
        ]
        return {"format": FORMAT, "version": VERSION, "decisions": decisions}

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Schedule:
        """The schedule that `described` made this of; each decision is made, and so checked, by its method."""
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise ValueError("it is no schedule of mirabelle")
        if description.get("version") != VERSION:
            raise ValueError(
                f"it is of version {description.get('version')!r}, and this mirabelle reads {VERSION}"
            )
        made = cls()
        for given in description["decisions"]:
            name, where, options = given["name"], given["where"], dict(given["options"])
            if name not in NAMES:
                raise ValueError(f"there is no decision {name!r}; there are {', '.join(NAMES)}")
            if "roles" in options:
                options["roles"] = tuple(options["roles"])
            wanted = set(inspect.signature(getattr(cls, name)).parameters) - {"self", "where"}
            if set(options) != wanted or not isinstance(where, list):
                raise ValueError(f"{name} has other options: {', '.join(sorted(wanted)) or 'none'}")
            *_, last = getattr(made, name)(*where, **options)
            note = given.get("note", "")
            made = cls((*made.decisions, dataclasses.replace(last, note=note if isinstance(note, str) else "")))
        return made


# The transformations, by the names of methods.
NAMES = (
    *("store", "once", "recompute", "precision", "own_memory", "in_place", "fuse", "separate", "order"),
    *("unroll", "library", "tile", "threads", "tag", "axes"),
)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {name: list(x) if isinstance(x, tuple) else x for name, x in options.items()}


def _pattern(name: str, pattern: Any) -> str:
    if not isinstance(pattern, str) or not pattern.strip():
        raise TypeError(
            f"{name} takes patterns, 'line 12', 'waves.py:12', 'exp', '#tag' or the text of a line, and not "
            f"{pattern!r}."
        )
    return " ".join(pattern.split())


def _text(name: str, what: str, given: Any) -> str:
    if not isinstance(given, str) or not given.isidentifier():
        raise TypeError(f"{name}(..., {what}=...) takes a name, not {given!r}.")
    return given


def _count(name: str, what: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise TypeError(f"{name}(..., {what}=...) takes a whole number from 1 on, not {given!r}.")
    return int(given)
