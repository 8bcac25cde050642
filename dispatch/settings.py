"""Every setting of mirabelle, in one table: name, environment variable, default, help.

>>> from mirabelle.dispatch.settings import settings
>>> settings.tree_limit
64
>>> with settings.changed(tree_limit=8):
...     settings.tree_limit
8
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mirabelle.dispatch.forks import ForkLock


@dataclass(frozen=True)
class Setting:
    """One setting: where it comes from, how its text is read, and what it does."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    help: str

    def checked(self, value: Any) -> Any:
        """A value set in Python, which must be one the environment could have given."""
        if value is None and self.default is None and self.name != "num_threads":
            return None
        text = "1" if value is True else "0" if value is False else str(value)
        try:
            if self.parse(text) != value:
                raise ValueError(text)
        except ValueError:
            raise ValueError(
                f"The setting {self.name} cannot be {value!r}. {self.help} "
                f"Set it to something like {4 if self.name == 'num_threads' else self.default!r}."
            ) from None
        return value

    @property
    def variable(self) -> str:
        return f"MIRABELLE_{self.name.upper()}"


def _cores() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not every system can say which cores are ours
        return max(1, os.cpu_count() or 1)


def _flag(text: str) -> bool:
    if text.strip().lower() in ("1", "true", "yes", "on"):
        return True
    if text.strip().lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    parse.__doc__ = "one of " + ", ".join(choices)
    return parse


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _threads(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


# What leans on other projects' insides, and what for (see `internals.py`).
INTERNALS = {
    "blas": "small products of matrices and vectors call NumPy's BLAS themselves",
    "bytecode": "numbers that users' functions capture become operands of their kernels",
    "imports": "libraries that are imported later are told of our arrays then",
    "transforms": "SciPy's module of Fourier transforms is loaded without the rest of SciPy",
}


def _internals(text: str) -> str:
    names = text.split(",")
    if text not in ("all", "none") and not (names and set(names) <= set(INTERNALS)):
        raise ValueError(text)
    return text


TABLE: tuple[Setting, ...] = (
    Setting("num_threads", _threads, None, "Threads of a host kernel (default: the cores we may use)."),
    Setting("cache", _flag, True, "Keep compiled host kernels on disk."),
    Setting("cache_dir", str, None, "Where they are kept (default: the user's cache folder)."),
    Setting(
        "compiler",
        _one_of("process", "thread", "inline", "off"),
        "process",
        "Where host kernels compile: in a helper process, a thread, before the statement goes on "
        "(inline), or not at all (off).",
    ),
    Setting("compile_size", _count, 1 << 15, "Results from this many elements on have their kernel compiled."),
    Setting("small_size", _count, 1 << 12, "Results up to this many elements are left to NumPy's own calls."),
    Setting(
        "compile_after", _count, 64, "Smaller results are compiled after this many uses of one expression."
    ),
    Setting(
        "thread_size",
        _count,
        1 << 16,
        "Results from this many elements on are computed by several threads.",
    ),
    Setting(
        "immediate_size",
        _count,
        1 << 11,
        "Results up to this many elements are computed where they are written, without a tree (host).",
    ),
    Setting(
        "brief_size",
        _count,
        1 << 16,
        "Trees of results up to this many elements reach over two names at most (host).",
    ),
    Setting("tree_limit", _count, 64, "An expression of more operations than this is evaluated at once."),
    Setting(
        "internals",
        _internals,
        "all",
        "Which insides of other projects are leant on: all, none, or some, joined by commas: "
        + "; ".join(f"{name} ({what})" for name, what in INTERNALS.items())
        + ". Read when something is first made of them.",
    ),
    Setting("full_tracebacks", _flag, False, "Show all frames of errors, those inside of mirabelle, too."),
    Setting("pool_bytes", _count, 1 << 29, "Freed large host buffers kept for reuse, at most."),
    Setting("allow_scalar", _flag, None, "Element access on device arrays (default: only at a prompt)."),
    Setting(
        "cuda",
        _one_of("auto", "simulated"),
        "auto",
        "Where CuArray's kernels run: on an NVIDIA card (auto), or, to try programs and to test without one, "
        "in Python on the host (simulated). Read when the first CuArray is made.",
    ),
    Setting(
        "hip",
        _one_of("auto", "simulated"),
        "auto",
        "The same for ROCArray: on an AMD card (auto), or in Python on the host (simulated).",
    ),
    Setting(
        "dense_fallback",
        _one_of("warn", "error", "silent"),
        "warn",
        "What happens when an operation has no rule for a structured array and makes it dense: a warning "
        "the first time (warn), an error, or nothing (silent).",
    ),
    Setting(
        "exchange_bytes",
        _count,
        1 << 28,
        "A redistribution sends and receives about so many bytes at a time on each process.",
    ),
    Setting(
        "gather_bytes",
        _count,
        1 << 28,
        "Distributed arrays larger than this are brought together for a routine with a warning.",
    ),
    Setting(
        "overlap_size",
        _count,
        1 << 16,
        "From so many elements on a process (on the host a 16th of it) the inner part of a stencil is computed "
        "while halos travel.",
    ),
    Setting(
        "communicator",
        _one_of("auto", "alone", "mpi"),
        "auto",
        "Which processes distributed arrays are made over: those that mpiexec or srun started (auto), all that "
        "MPI knows (mpi), or this one alone. Read when a communicator is first asked for.",
    ),
    Setting(
        "check_collectives",
        _flag,
        False,
        "Before each operation on what several processes share they compare which it is, and on what line "
        "of the program. Slow; for finding what hangs.",
    ),
    Setting("check_timeout", _seconds, 20.0, "Seconds to wait there for the others to come."),
    Setting(
        "device_messages",
        _one_of("auto", "on", "off"),
        "auto",
        "Hand the memory of cards to MPI as it is (on), copy it by way of the host (off), or do what MPI "
        "says that it can.",
    ),
    Setting(
        "check_owners",
        _flag,
        False,
        "Before memory is written in place, look for whatever holds it without being counted, and raise an "
        "error if something does. Slow; for tests of mirabelle itself.",
    ),
    Setting("nccl", _flag, True, "Send the memory of cards by NCCL, where each process has a card of its own."),
    Setting(
        "rank_cards",
        _flag,
        True,
        "Where mpiexec or srun started several processes on a machine with several cards, let each see one of "
        "them. Read when mirabelle is imported.",
    ),
)
_BY_NAME = {s.name: s for s in TABLE}


# Who is told of values hears them in the order in which they are set, whichever threads set them.
_TELLING = ForkLock()


class Settings:
    """The settings in force, as attributes; `python -m mirabelle settings` lists them with what they do.

    >>> import mirabelle as mb
    >>> with mb.settings.changed(num_threads=1):        # for a block
    ...     mb.settings.num_threads
    1
    """

    # (Attributes are read on hot paths, so they are plain.)
    num_threads: int
    cache: bool
    cache_dir: str | None
    compiler: str
    compile_size: int
    small_size: int
    compile_after: int
    thread_size: int
    immediate_size: int
    brief_size: int
    tree_limit: int
    internals: str
    pool_bytes: int
    allow_scalar: bool | None
    cuda: str
    hip: str
    dense_fallback: str
    exchange_bytes: int
    gather_bytes: int
    overlap_size: int
    communicator: str
    check_collectives: bool
    check_timeout: float
    check_owners: bool
    full_tracebacks: bool
    device_messages: str
    nccl: bool
    rank_cards: bool
    # `tree_limit`, or less than any size while an eager block is open: what building reads.
    node_limit: int

    _watching: list[Callable[[Settings], object]]

    def __init__(self) -> None:
        self.__dict__["_watching"] = []
        self.reload()

    def reload(self) -> None:
        """Read the environment again."""
        for s in TABLE:
            text = os.environ.get(s.variable)
            if text is None:
                value = s.default
            else:
                try:
                    value = s.parse(text)
                except ValueError:
                    raise ValueError(
                        f"{s.variable}={text!r} is not understood. {s.help} "
                        f"Unset it, or set it to something like {s.default!r}."
                    ) from None
            if s.name == "num_threads" and value is None:
                value = _cores()
            self.__dict__[s.name] = value
        self.__dict__["node_limit"] = self.tree_limit
        self._tell()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _BY_NAME:
            raise AttributeError(f"There is no setting {name!r}. The settings are: {', '.join(_BY_NAME)}.")
        checked = _BY_NAME[name].checked(value)
        with _TELLING:
            self.__dict__[name] = checked
            if name == "tree_limit" and self.node_limit >= 0:
                self.__dict__["node_limit"] = value
            self._tell()

    def hurry(self, now: bool) -> None:
        """Have every new node looked at (an eager block is open somewhere), or no longer."""
        with _TELLING:
            self.__dict__["node_limit"] = -1 if now else self.tree_limit
            self._tell()

    def _tell(self) -> None:
        for told in self._watching:
            told(self)

    def watch(self, told: Callable[[Settings], object]) -> None:
        """Have a function told of the values, now and whenever one changes."""
        self._watching.append(told)
        told(self)

    @contextlib.contextmanager
    def changed(self, **values: Any) -> Iterator[Settings]:
        """Other values within a block (for the whole process: settings are not per thread)."""
        before = {k: getattr(self, k) for k in values}
        for k, v in values.items():
            setattr(self, k, v)
        try:
            yield self
        finally:
            for k, v in before.items():
                setattr(self, k, v)

    def __repr__(self) -> str:
        return "\n".join(f"{s.variable}={getattr(self, s.name)!r}  # {s.help}" for s in TABLE)


settings = Settings()


def documentation() -> str:
    """The table as Markdown; docs/settings.md is made of it."""
    rows = [f"| `{s.name}` | `{s.variable}` | `{s.default!r}` | {s.help} |" for s in TABLE]
    return "\n".join(
        [
            "# Settings",
            "",
            "Set the environment variable before Python starts, or `mb.settings.name = value`, or",
            "`with mb.settings.changed(name=value):`. This page is generated:",
            "`python -m mirabelle settings --markdown > docs/settings.md`.",
            "",
            "| setting | environment variable | default | what it does |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
