"""`python -m mirabelle dg`: standard problems from files of parameters, and a look at their results.

    python -m mirabelle dg list isentropic_vortex
    python -m mirabelle dg run vortex.toml order=4 array=CuArray
    python -m mirabelle run -n 4 -m mirabelle dg run vortex.toml --array CuArray
    python -m mirabelle dg plot out/checkpoint.h5 rho picture.png

A file of parameters, of which all but `case` may be left out:

    case = "isentropic_vortex"        # one of `python -m mirabelle dg list`
    array = "HostArray"
    end_time = 1.0
    cfl = 0.5
    restart = "out/checkpoint.h5"     # a snapshot to go on from
    [parameters]                      # as `python -m mirabelle dg list isentropic_vortex` shows them
    order = 3
    [output]
    folder = "out"
    formats = ["vtu", "h5"]
    dt = 0.1                          # or interval, in steps
    checkpoint = 1000                 # in steps
    plot = ["rho"]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import functools
import importlib
import inspect
import os
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import mirabelle as mb

RUN: dict[str, Any] = {"case": "", "array": "HostArray", "end_time": None, "cfl": None, "restart": ""}
RUN |= {"parameters": {}, "output": {}}
OUTPUT: dict[str, Any] = {"folder": "out", "formats": (), "interval": 0, "dt": 0, "checkpoint": 0, "plot": ()}


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status.

    >>> main(["run", "vortx"])                                       # doctest: +ELLIPSIS
    There is no problem 'vortx'...
    2
    """
    parser = argparse.ArgumentParser(prog="python -m mirabelle dg", description="Discontinuous Galerkin.")
    commands = parser.add_subparsers(metavar="command", required=True)

    def command(function: Any, text: str, *words: str, more: str | None = None) -> argparse.ArgumentParser:
        raw = argparse.RawDescriptionHelpFormatter
        made = commands.add_parser(
            function.__name__.strip("_"), help=text, description=text, epilog=more, formatter_class=raw
        )
        made.set_defaults(function=function)
        for word in words:
            made.add_argument(word)
        return made

    file = (__doc__ or "").partition("picture.png\n\n")[2]
    changes = command(_run, "solve a problem, by its name or a file of parameters (.toml)", "case", more=file)
    changes.add_argument("changes", nargs="*", metavar="name=value", help="order=4 array=CuArray end_time=0.5")
    changes.add_argument("--array", default="", help="the type of arrays, as array=CuArray")
    listed = command(_list, "the standard problems, or the parameters of one")
    listed.add_argument("case", nargs="?", default="")
    command(_info, "what a snapshot has", "file")
    cut = command(_partition, "divide a mesh for some processes, a file for each (dg.read_parts)", "mesh")
    cut.add_argument("-n", type=int, required=True, help="the number of processes")
    cut.add_argument(
        "-o", "--out", default="", help="the folder, by default that of the mesh, named mesh.parts"
    )
    drawn = command(_plot, "draw a field of a snapshot", "file", "field", "picture")
    drawn.add_argument("--at", action="append", default=[], metavar="z=0.5", help="a plane to cut along")
    drawn.add_argument("--mesh", action="store_true", help="draw the cells, too")
    given = vars(parser.parse_args(argv))
    try:
        given.pop("function")(**given)
    except FileNotFoundError as problem:
        name = str(problem.filename)
        run = f"python -m mirabelle dg run {name if name in problems() else 'sod'} output.checkpoint=100"
        print(f"There is no file {name!r}. Snapshots are written where they are asked for: `{run}`.")
        return 2
    except (OSError, ImportError, ValueError, ArithmeticError, mb.DeviceError) as problem:
        print(problem)
        return 2
    return 0


def problems() -> dict[str, str]:
    """The standard problems and the first lines of what they say of themselves.

    >>> all(len(line) > 15 for line in problems().values())
    True
    """
    found = {}
    for file in sorted(Path(__file__).with_name("examples").glob("[!_]*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        found[file.stem] = (text or "").partition("\n")[0]
    return found


def wanted(case: str, changes: Collection[str] = ()) -> dict[str, Any]:
    """What to run and what to write, by a name or a file, and changes "name=value".

    >>> wanted("sod", ["order=4", "end_time=0.1", "output.folder=here"])["parameters"]
    {'order': 4}
    """
    read: dict[str, Any] = {"case": case}
    if case.endswith(".toml"):
        try:
            read = tomllib.loads(Path(case).read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as problem:
            raise ValueError(f"{case} is no TOML: {problem}. Texts have quotes: array = 'CuArray'.") from None
    found = RUN | read
    _check_kinds(found)
    found |= {name: dict(found[name]) for name in ("parameters", "output")}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ValueError(f"{change!r} changes nothing: write name=value, such as order=4.")
        section, _, key = name.rpartition(".")
        section = section if section or key in RUN else "parameters"
        found.get(section, found)[key] = _value(text)
    _check_kinds(found)
    _check(found, RUN, f"{case}: there is no setting")
    _check(found["output"], OUTPUT, f"{case}: there is no setting of [output]")
    return found | {"output": OUTPUT | found["output"]}


def _value(text: str) -> Any:
    """A value as TOML has it; brackets around numbers with commas between, and quotes, may be left away.

    >>> _value("0.5"), _value("32,32"), _value("[1, 2]"), _value("CuArray")
    (0.5, [32, 32], [1, 2], 'CuArray')
    """
    for written in (text, f"[{text}]") if "," in text else (text,):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {written}")["value"]
    return text


def _check(given: Collection[str], known: Collection[str], what: str) -> None:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}."
            raise ValueError(f"{what} {name!r}. {hint}")


def _check_kinds(found: dict[str, Any]) -> None:
    for name in ("parameters", "output"):
        if not isinstance(found[name], dict):
            raise ValueError(
                f"{name} = {found[name]!r} is no table: in a file, write [{name}] above the lines that belong "
                f"to it, in a command {name}.{'order=4' if name == 'parameters' else 'folder=out'}."
            )
    for name in ("end_time", "cfl"):
        if not isinstance(found[name], int | float | None):
            raise ValueError(f"{name} = {found[name]!r} is no number. Write one: {name} = 0.5.")


def _problem(case: str) -> Any:
    _check([case], problems(), "There is no problem")
    return importlib.import_module(f"mirabelle.dg.examples.{case}")


def _run(case: str, changes: list[str], array: str = "") -> None:
    comm = mb.distributed.communicator()
    with contextlib.ExitStack() as block:
        if comm.size > 1:  # all end as one does, and one speaks for all
            block.enter_context(mb.distributed.together(comm))
            if comm.rank:
                block.enter_context(contextlib.redirect_stdout(block.enter_context(open(os.devnull, "w"))))
        _solve(case, [*changes, *([f"array={array}"] if array else [])])


def _solve(case: str, changes: list[str]) -> None:
    from mirabelle import dg

    given = wanted(case, changes)
    module = _problem(given["case"])
    known = inspect.signature(module.setup).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        _check(given["parameters"], known, f"{given['case']} has no parameter")
    _check([given["array"]], ("HostArray", "RefArray", "CuArray"), "There is no type of arrays")
    parameters = {  # a flux has its name
        k: getattr(dg, str(v), v) if k in known and callable(known[k].default) else v
        for k, v in given["parameters"].items()
    }
    array: Any = getattr(mb, given["array"])
    if mb.distributed.communicator().size > 1:  # the cells are divided
        array = mb.DArray[array]  # type: ignore[valid-type]
    semi, initial, (begin, end), options = module.setup(array=array, **parameters)
    end = end if given["end_time"] is None else float(given["end_time"])
    if given["cfl"] is not None:
        options = {k: v for k, v in options.items() if k not in ("dt", "tolerance")} | {"cfl": given["cfl"]}
    output, folder = given["output"], Path(given["output"]["folder"])
    callbacks = [*options.pop("callbacks", ()), dg.Alive(interval=100)]
    if output["formats"]:
        often = {k: output[k] for k in ("interval", "dt") if output[k]} or {"dt": (end - begin) / 10}
        callbacks.append(dg.SaveSolution(folder, output["formats"], **often))
    if output["checkpoint"]:
        callbacks.append(dg.Checkpoint(folder / "checkpoint.h5", output["checkpoint"]))
    drawn = [output["plot"]] if isinstance(output["plot"], str) else output["plot"]
    e = semi.equations
    _check(drawn, dict.fromkeys((*e.names, *e.primitive_names)), f"{type(e).__name__} has no field")
    print(semi)
    start = dg.load(given["restart"], semi) if given["restart"] else initial
    try:
        tspan = end if given["restart"] else (begin, end)
        solution = dg.solve(semi, tspan, start, callbacks=callbacks, **options)
    except dg.BlowUp as problem:
        kept = problem.solution.save(folder / "last_good.h5")
        raise ValueError(f"{str(problem).replace('error.solution', str(kept))}") from problem
    if exact := getattr(module, "exact", None):
        told = {k: v for k, v in given["parameters"].items() if k in inspect.signature(exact).parameters}
        for name, errors in solution.errors(functools.partial(exact, **told)).items():
            print(f"error of {name:8} L2 {errors.l2:.6e}  Linf {errors.linf:.6e}")
    for field in drawn:
        _picture(solution, field, folder / f"{field}.png")
    print(solution.summary())


def _list(case: str) -> None:
    if case:
        setup = _problem(case).setup
        print(f"{problems()[case]}\n{inspect.getdoc(setup)}\n")
        for name, p in inspect.signature(setup).parameters.items():
            if name != "array":
                print(f"{name} = {getattr(p.default, '__name__', None) or repr(p.default)}")
        return
    found = problems()
    for name, line in found.items():
        print(f"{name:{max(map(len, found))}}  {line}")


def _info(file: str) -> None:
    from mirabelle import dg

    solution = dg.load(file)
    semi, u = solution.semi, mb.to_numpy(solution.u)
    print(f"{solution}\n{semi.equations}\n{semi.mesh}, fingerprint {semi.mesh.fingerprint}")
    print(f"{semi.element}, {u.size} unknowns of {u.dtype}")
    for name, values in zip(semi.equations.names, u, strict=True):
        print(f"{name:8} from {values.min():.6g} to {values.max():.6g}")


def _partition(mesh: str, n: int, out: str) -> None:
    from mirabelle import dg

    folder = Path(out or Path(mesh).with_suffix(".parts"))
    whole = dg.read_mesh(mesh)
    dg.write_parts(whole, folder, n)
    print(f"{folder}: {whole} for {n} processes")


def _plot(file: str, field: str, picture: str, at: list[str], mesh: bool) -> None:
    from mirabelle import dg

    planes = {name: float(value or "nan") for name, _, value in (text.partition("=") for text in at)}
    _picture(dg.load(file), field, Path(picture), at=planes, mesh=mesh)


def _picture(solution: Any, field: str, path: Path, **options: Any) -> None:
    from matplotlib.figure import Figure

    from mirabelle.dg.output.files import replacing

    figure = Figure(layout="tight")
    solution.plot(field, ax=figure.add_subplot(), **options)
    if solution.speaks:
        with replacing(path) as fresh:
            figure.savefig(fresh, dpi=150)
    print(path)
