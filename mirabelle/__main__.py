"""`python -m mirabelle`: what is installed, the tour, the settings, the kernel cache, processes, libraries."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import select
import sys

# Optional partners by what they are for: (module, distribution).
EXTRAS = {
    "plot": (("matplotlib", "matplotlib"),),
    "terminal": (("rich", "rich"),),
    "bench": (("numexpr", "numexpr"), ("jax", "jax")),
    "test": (("pytest", "pytest"), ("hypothesis", "hypothesis"), ("xdist", "pytest-xdist")),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status.

    Where the reader of the output leaves (`| head`), it ends without a word, with the status 141 that a shell
    gives to programs that end so.
    """
    try:
        try:
            status = command(sys.argv[1:] if argv is None else argv)
        except SystemExit:  # from argparse, after a help text
            print(end="", flush=True)
            raise
        print(end="", flush=True)  # a short text waits until here
    except BrokenPipeError:
        if not _reader_left(sys.stdout.fileno()):
            raise  # it is another pipe that broke, and that is an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return 141
    return status


def _reader_left(pipe: int) -> bool:
    """Whether nobody will read what is written to a pipe."""
    if not hasattr(select, "poll"):  # Windows
        return True
    asked = select.poll()
    asked.register(pipe, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0))


def command(words: list[str]) -> int:
    """What the words after `python -m mirabelle` ask for."""
    if words[:1] == ["run"]:  # what follows the program's name is the program's
        from mirabelle.launch import main as run

        return run(words[1:])
    if words[:1] == ["doctor"]:
        from mirabelle.doctoring import main as doctor

        return doctor(words[1:])
    if words[:1] == ["build"]:
        from mirabelle.building import main as build

        return build(words[1:])
    if words[:1] == ["dg"]:
        from mirabelle.dg.command import main as dg

        return dg(words[1:])
    from mirabelle import __version__

    parser = argparse.ArgumentParser(prog="python -m mirabelle", description="One program, any array.")
    parser.add_argument("--version", action="version", version=f"mirabelle {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("info", help="versions, processor, threads, kernel cache, settings, extras")
    demo = commands.add_parser("demo", help="the tour: one program run with several array types")
    demo.add_argument("--out", default="demo_out", metavar="FOLDER", help="where the picture goes")
    demo.add_argument("--quick", action="store_true", help="fewer steps and smaller sizes: a few seconds")
    shown = commands.add_parser("settings", help="the settings, where they come from, what they do")
    shown.add_argument("--markdown", action="store_true", help="as the page docs/settings.md")
    cache = commands.add_parser("cache", help="the compiled kernels on disk")
    cache.add_argument("--clear", action="store_true", help="delete them")
    commands.add_parser("run", help="start a program as several processes: run -n 4 script.py", add_help=False)
    commands.add_parser("doctor", help="run a program and say what made it slow, by line", add_help=False)
    commands.add_parser("build", help="write a function as a library that needs no Python", add_help=False)
    commands.add_parser("dg", help="solve flow and wave problems: dg list, dg run, dg plot", add_help=False)
    given = parser.parse_args(words)
    if given.command == "info":
        return info()
    if given.command == "demo":
        from mirabelle.tour import tour

        return tour(given.out, quick=given.quick)
    if given.command == "settings":
        return settings(given.markdown)
    if given.command == "cache":
        return kernels(given.clear)
    parser.print_help()
    return 0


def info() -> int:
    """Everything one wants to know before reporting a bug."""
    import mirabelle as mb
    from mirabelle.backends.cuda.info import lines as cards
    from mirabelle.launch import described as mpi

    print(f"mirabelle   {mb.__version__} in {os.path.dirname(mb.__file__)}")
    print(f"python      {platform.python_version()} ({platform.python_implementation()}) at {sys.executable}")
    print("libraries   " + ", ".join(_versions("numpy", "numba", "llvmlite")))
    print(f"system      {platform.platform()}")
    print(f"processor   {_processor()}, {os.cpu_count()} cores; kernels use {mb.settings.num_threads} threads")
    print("backends    host (HostArray), cuda (CuArray), and RefArray, a fake card for tests")
    for i, line in enumerate(cards()):
        print(f"{'' if i else 'cards':<11} {line}")
    print(f"mpi         {mpi()}")
    print(f"cache       {_cache_line()}")
    for extra, parts in EXTRAS.items():
        there = [d for module, d in parts if importlib.util.find_spec(module)]
        missing = [d for module, d in parts if not importlib.util.find_spec(module)]
        line = ", ".join(_versions(*there)) + ("; " if there and missing else "")
        print(f"{extra:<11} {line}{'not installed: ' + ', '.join(missing) if missing else ''}")
    print("\nsettings")
    print("\n".join("  " + line for line in repr(mb.settings).splitlines()))
    return 0


def settings(markdown: bool) -> int:
    """The table of settings: as Markdown with defaults, or the values in force."""
    from mirabelle.dispatch.settings import documentation
    from mirabelle.dispatch.settings import settings as in_force

    print(documentation().rstrip("\n") if markdown else in_force)
    return 0


def kernels(clear: bool) -> int:
    """Say how many kernels are kept, or delete them."""
    from mirabelle.backends.host import diskcache

    print(_cache_line())
    where = diskcache.folder()
    if clear and where is not None:
        entries = [*where.glob("*.kernel"), *where.glob(".new-*")]
        for path in entries:
            path.unlink(missing_ok=True)
        print(f"{len(entries)} deleted")
    return 0


def _cache_line() -> str:
    from mirabelle.backends.host import diskcache

    where = diskcache.folder()
    if where is None:
        return "no kernels are kept on disk (switched off, or the folder cannot be used)"
    sizes = [path.stat().st_size for path in where.glob("*.kernel")]
    return f"{where}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB"


def _versions(*distributions: str) -> list[str]:
    found = []
    for name in distributions:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
