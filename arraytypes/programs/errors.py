"""What goes wrong while a function is captured, said with the line of the program."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from pathlib import Path
from typing import Any

from mirabelle.arraytypes.random.bitgenerator import compiling
from mirabelle.arraytypes.usercode.effects import function_tree

_ROOT = str(Path(__file__).resolve().parents[2])
_OURS = tuple(str(Path(_ROOT) / name) for name in ("arraytypes", "dispatch", "backends", "mirabelle", "dg"))
# Where Python's modules and installed libraries are.
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# Which files are ours, of those that were met: asked for each node that is captured.
_is_ours: dict[str, bool] = {}


class TraceError(TypeError):
    """A function does what a program cannot: it decides on values that are only there when the program runs.

    >>> import mirabelle as mb
    >>> def signed(x): return x if mb.sum(x) > 0 else -x
    >>> try:
    ...     mb.compile(signed, whole=True)(mb.HostArray([1.0]))
    ... except mb.compiling.TraceError:
    ...     print("the branch depends on a value")
    the branch depends on a value
    """


class DifferentPrograms(TraceError):
    """Processes that are to run one program have compiled several."""


class PartsAsked(AttributeError):
    """A program of divided arrays asks for this process's part of one (see partcalls.py)."""


def is_ours(file: str) -> bool:
    """Is a file of code one of ours?"""
    found = _is_ours.get(file)
    if found is None:
        found = _is_ours[file] = file.startswith((*_OURS, "<mirabelle", "<frozen"))
    return found


def is_users(x: Any) -> bool:
    """Is a function or a class of a user's: neither ours nor an installed library's?"""
    code = getattr(x, "__code__", None)
    file = getattr(sys.modules.get(x.__module__), "__file__", None) if code is None else code.co_filename
    return file is not None and not is_ours(file) and not file.startswith(_LIBRARIES)


def user_line(depth: int = 1) -> tuple[str, int] | None:
    """The file and line of the program that is being executed: the innermost frame that is not ours."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_ours(name):
            return name, frame.f_lineno
        frame = frame.f_back
    return None


def shown_line(line: Any) -> str:
    """A line as text: file, number, and what stands there."""
    if line is None:
        return "a line that is not known"
    import linecache

    file, number = line
    text = linecache.getline(file, number).strip()
    return f"{file_text(file)}:{number}" + (f", `{text}`" if text else "")


def file_text(file: str) -> str:
    """A file as its author knows it: its name, or the number of the cell in a notebook.

    >>> file_text("/home/me/waves.py")
    'waves.py'
    """
    notebook: Any = sys.modules.get("IPython")
    if notebook is not None:
        # (A cell is a file named by a hash, which IPython alone knows to be a cell.)
        compiler: Any = getattr(notebook.get_ipython(), "compile", None)
        named = getattr(compiler, "format_code_name", None)
        cell: Any = None if named is None else named(file)
        if cell is not None:
            return str(cell[1])
    return Path(file).name


HAS_NO_SOURCE = (
    "(A function of a file would be cut here, and run. The source of this one is not known, as it was typed at "
    "a prompt, piped into Python, or made by exec: put it in a file, `python script.py`.)"
)


def has_no_source(f: Any) -> bool:
    """Is it a function of Python's whose text is not to be had?"""
    f = getattr(f, "__func__", f)
    return inspect.isfunction(f) and function_tree(f) is None


def random_outside() -> TraceError:
    """The error for going on with random numbers that were begun outside of the program."""
    if hasattr(compiling.get(), "program"):
        return TraceError(
            f"Random numbers are drawn in {shown_line(user_line(3))} from a generator that is made outside "
            "of the body of a loop, or of a branch, while that is captured: each trip would get the same "
            "ones. Draw all before the loop, `noise = rng.standard_normal((n, 3))`, and pick `noise[i]` in "
            "its body."
        )
    return TraceError(
        f"Random numbers are drawn in {shown_line(user_line(3))} from a generator that is made outside of "
        "the function, or without a seed, while the function is being compiled: the program would give the "
        "same ones each time it runs. Draw them outside and pass them in, `f(x, "
        "rng.standard_normal(x.shape))`, or make the generator in the function: `mb.random.default_rng(42)`."
    )


class Because(str):
    """A message; `at_cut` is what of it is said beside the statement, where a function is cut there."""

    at_cut: str

    def __new__(cls, text: str, at_cut: str) -> Because:
        made = super().__new__(cls, text)
        made.at_cut = at_cut
        return made

    def __reduce__(self) -> Any:
        return Because, (str(self), self.at_cut)


def because_of(what: str, node: Any = None, more: str = "") -> str:
    """The message for a question about values, with where it is asked, of what, and what to do."""
    line = user_line(2)
    where = shown_line(line)
    of = f" The array is made in {shown_line(node.line)}." if node is not None and node.line else ""
    if compiling.get() is None:
        return (
            f"{what} in {where}, and it is an array of a program that was left behind when its function had "
            f"been compiled.{of} Only what a compiled function returns has values outside of it: `return x, "
            "y`."
        )
    made = node.line if node is not None and node.line and node.line != line else None
    at_cut = what.removesuffix(", and is called") + (f", which is made in {shown_line(made)}" if made else "")
    text = (
        f"{what} in {where}, while the function is being compiled: values are only there when the program "
        f"runs.{of} Choose between values with mb.where(condition, a, b), between branches with "
        "mb.cond(condition, f, g, *args), loop with mb.while_loop(condition, body, state) or "
        "mb.fori_loop(lower, upper, body, state); what is the same in every call can be an argument of its "
        "own, named in mb.compile(f, static=('n',))."
    )
    return Because(text + more, f"{at_cut}.{more}")
