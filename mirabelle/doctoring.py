"""`python -m mirabelle doctor script.py`: run a program and say, by line, what made it slow."""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

USAGE = "python -m mirabelle doctor [--json FILE] [--html FILE] script.py [arguments]"


# How the page looks, light or dark as who reads it likes it.
STYLE = """:root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto;
max-width: 75em; padding: 0 1em; overflow-wrap: anywhere } table { border-collapse: collapse }
tr { border-bottom: 1px solid #8884 } td, th { min-width: 5em; padding: .5em; text-align: left }
td { vertical-align: top } td:first-child { min-width: 16em } code { font-size: .9em }
@media (max-width: 45em) { th { display: none } td { display: block }
td:nth-child(4)::before { content: "takes " } td:nth-child(5)::before { content: "may save " } }"""


def main(words: list[str]) -> int:
    """Run the program, print what was found; the exit status is the program's."""
    from mirabelle.arraytypes.diagnosis import doctor

    parser = argparse.ArgumentParser(prog="python -m mirabelle doctor", usage=USAGE, description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was found there, too")
    parser.add_argument("--html", metavar="FILE", type=Path, help="as a table that a browser shows")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    if not Path(given.script).is_file():
        print(f"There is no program {given.script!r}. Usage: {USAGE}", file=sys.stderr)
        return 2
    found, status = doctor(), 0
    with _as_program(given.script, given.arguments):
        try:
            with found:
                runpy.run_path(given.script, run_name="__main__")
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
        except Exception:
            traceback.print_exc()
            status = 1
    print(f"\n{found}")
    if given.json:
        given.json.write_text(found.json())
    if given.html:
        given.html.write_text(
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{given.script}</title>"
            f"<style>{STYLE}</style><h1>{given.script}</h1>{found.html()}</html>"
        )
    return status


@contextlib.contextmanager
def _as_program(script: str, arguments: list[str]) -> Iterator[None]:
    """What a program finds in `sys` when it is run by itself."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).absolute().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
