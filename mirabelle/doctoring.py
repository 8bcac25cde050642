"""`python -m mirabelle doctor script.py`: run a program and say, by line, what made it slow."""

from __future__ import annotations

import argparse
import builtins
import contextlib
import io
import sys
import types
from collections.abc import Iterator
from pathlib import Path

USAGE = "python -m mirabelle doctor [--json FILE] [--html FILE] script.py [arguments]"


# How the page looks, light or dark as who reads it likes it.
STYLE = """:root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto;
max-width: 75em; padding: 0 1em; overflow-wrap: anywhere } table { border-collapse: collapse }
tr { border-bottom: 1px solid #8884 } td, th { min-width: 5em; padding: .5em; text-align: left }
td { vertical-align: top } td:first-child { min-width: 16em } code { font-size: .9em }
@media (max-width: 45em) { th, td:empty { display: none !important } td { display: block }
td:nth-child(4)::before { content: "takes " } td:nth-child(5)::before { content: "may save " } }"""


def main(words: list[str]) -> int:
    """Run the program, print what was found; the exit status is the program's."""
    from mirabelle.arraytypes.diagnosis import doctor

    parser = argparse.ArgumentParser(prog="python -m mirabelle doctor", usage=USAGE, description=__doc__)
    to = "; - is the standard output, and what else is printed goes to standard error then"
    parser.add_argument("--json", metavar="FILE", help=f"write what was found there, too{to}")
    parser.add_argument("--html", metavar="FILE", help="as a table that a browser shows; - as above")
    parser.add_argument("script", help="the program")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    rest.required = False
    given = parser.parse_args(words)
    if not Path(given.script).is_file():
        print(f"There is no program {given.script!r}. Usage: {USAGE}", file=sys.stderr)
        return 2
    script = Path(given.script).absolute()
    wanted = [given.json, given.html]
    if wanted == ["-", "-"]:
        parser.error("one of --json and --html can be -: the other needs the name of a file")
    with contextlib.redirect_stdout(sys.stderr if "-" in wanted else sys.stdout):
        found, status = doctor(), 0
        with _as_program(script, [given.script, *given.arguments]) as program:
            try:
                with found:
                    exec(_code(script), program.__dict__)
            except SystemExit as e:
                status = _status(e)
            except BaseException as e:
                status = 130 if isinstance(e, KeyboardInterrupt) else 1
                _show(e, str(script))
        print(f"\n{found}")
    page = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{given.script}</title>"
        f"<style>{STYLE}</style><h1>{given.script}</h1>{found.html()}</html>"
    )
    for file, text in zip(wanted, (found.json(), page), strict=True):
        if file == "-":
            print(text)
        elif file:
            Path(file).write_text(text)
    return status


def _code(script: Path) -> types.CodeType:
    """The program, compiled as Python does it."""
    with io.open_code(str(script)) as f:
        return compile(f.read(), str(script), "exec", dont_inherit=True)


def _status(end: SystemExit) -> int:
    """The exit status that a program asked for; a text is said, as Python does it."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _show(error: BaseException, script: str) -> None:
    """Show an error as Python does where the program is run alone: without the frames of who ran it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(trace), trace)


@contextlib.contextmanager
def _as_program(script: Path, words: list[str]) -> Iterator[types.ModuleType]:
    """What a program finds in `sys` when it is run by itself; its module."""
    argv, path, main = sys.argv, sys.path[:], sys.modules.get("__main__")
    program = types.ModuleType("__main__")
    program.__dict__.update(__file__=str(script), __builtins__=builtins, __cached__=None)
    sys.argv, sys.modules["__main__"] = words, program
    sys.path.insert(0, str(script.parent))
    try:
        yield program
    finally:
        sys.argv, sys.path[:] = argv, path
        if main is not None:
            sys.modules["__main__"] = main
