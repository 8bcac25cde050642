"""`python -m tests.soak_programs`: random programs of all dtypes, eager and compiled, beside NumPy.

python -m tests.soak_programs --programs 20000
python -m tests.soak_programs --first 4711 --programs 1 --show     # one program again, by its number
python -m tests.soak_programs --passes each                        # each pass alone, beside none
python -m tests.soak_programs --way hot --threads 2 --fresh-cache  # machine code for everything, compiled anew
python -m tests.soak_programs --traced                             # under a tracer

What fails is shrunk and printed as a script, which is run where `tests` is a folder to import from. The exit
status is 1 if a program failed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tests.soak_programs", description=__doc__.splitlines()[0])
    found.add_argument("--first", type=int, default=0, help="the number of the first program")
    found.add_argument("--programs", type=int, default=20_000)
    found.add_argument("--lines", type=int, default=12, help="statements of a program at most")
    found.add_argument("--show", action="store_true", help="print each program as a script")
    found.add_argument("--passes", default="all", help="all, none, each, or names with commas")
    found.add_argument("--only", choices=("eager", "compiled"), default=None)
    found.add_argument("--kind", default="host", help="host, ref or cuda")
    found.add_argument("--way", choices=("as-is", "cold", "hot"), default="as-is")
    found.add_argument("--threads", type=int, default=None)
    found.add_argument("--fresh-cache", action="store_true", help="with an empty folder of compiled kernels")
    found.add_argument("--traced", action="store_true", help="under a tracer that looks at all frames")
    found.add_argument("--most", type=int, default=20, help="failures that are shown")
    return found


def main() -> int:
    given = parser().parse_args()
    changes: dict[str, str] = {}
    if given.fresh_cache and "MIRABELLE_SOAK_CACHE" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            changes |= {"MIRABELLE_CACHE_DIR": folder, "MIRABELLE_SOAK_CACHE": folder}
            return again(changes)
    if any(os.environ.get(k) != v for k, v in changes.items()):
        return again(changes)
    # (by themselves, because other packages leave a `tests` of theirs beside them)
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    if given.traced:
        sys.settrace(looking)  # (while mirabelle is imported, too)
    import conftest  # noqa: F401 (the settings that tests have)

    with settings_of(given):
        return soak(given)


def again(changes: dict[str, str]) -> int:
    """The same command with other variables in its environment."""
    command = [sys.executable, "-m", "tests.soak_programs", *sys.argv[1:]]
    return subprocess.call(command, env={**os.environ, **changes}, cwd=Path(__file__).parents[1])


def looking(frame: Any, event: str, arg: Any) -> Any:
    """A tracer that does nothing but look at the names of each frame, as debuggers do."""
    _ = frame.f_locals
    return looking


@contextlib.contextmanager
def settings_of(given: argparse.Namespace) -> Any:
    from ways import running

    import mirabelle as mb

    with contextlib.ExitStack() as stack:
        if given.way != "as-is":
            stack.enter_context(running(given.way))
        if given.threads is not None:
            stack.enter_context(mb.settings.changed(num_threads=given.threads))
        yield


def soak(given: argparse.Namespace) -> int:
    import randomprograms as programs

    import mirabelle as mb

    count: collections.Counter[str] = collections.Counter()
    failed: list[str] = []
    began = time.perf_counter()
    for number in range(given.first, given.first + given.programs):
        program = programs.drawn(number, given.lines)
        if given.show:
            print(program.script, flush=True)
        passes: Any
        for passes in chosen(given.passes, list(mb.compiling.PASSES)):
            how: dict[str, Any] = {"passes": passes, "kind": given.kind}
            if given.only:
                how["only"] = (given.only,)
            elif passes:
                how["only"] = ("compiled",)
            try:
                count[programs.came(program, **how)] += 1
            except Exception as e:
                failed.append(f"{number}{'' if passes is None else f' ({passes})'}")
                said = " ".join(f"{type(e).__name__}: {e}".split())
                print(f"\n# {failed[-1]}: {said[:500]}", flush=True)
                if len(failed) <= given.most:
                    print(programs.shrunk(program, **how).script, flush=True)
    for what, n in count.most_common():
        print(f"{n:6d} {what}")
    print(f"{len(failed)} failed {' '.join(failed[:40])}; {time.perf_counter() - began:.1f} s")
    return 1 if failed else 0


def chosen(text: str, names: list[str]) -> list[Any]:
    """The lists of passes that programs are compiled with; None for all passes."""
    if text == "all":
        return [None]
    if text == "none":
        return [[]]
    return [[], *[[name] for name in names]] if text == "each" else [text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
