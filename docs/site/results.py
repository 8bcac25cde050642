"""Pages on speed, from what benchmarks left in `benchmarks/results/`: machine, date, command, peers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.__main__ import NAMES
from docs import figures
from docs.site import drawings

RESULTS = figures.ROOT / "benchmarks" / "results"
# Pages: (title, results). One that nobody has stored yet is left out.
PAGES = {
    "programs": (
        "Whole programs",
        "npkernels npkernels_sources plainprograms programs_kernels newcomers paper_julia loops",
    ),
    "expressions": (
        "Expressions and functions",
        "fusion overhead functions sorts dispatch sharing first_use first_calls startup random",
    ),
    "matrices": ("Matrices", "linalg structured sparse krylov patterns"),
    "cards": (
        "Cards",
        "gpu_npkernels npkernels_sources_CuArray gpu_elementloops gpu_bandwidth gpu_reductions gpu_ranges "
        "gpu_paper gpu_launch gpu_graphs",
    ),
    "processes": (
        "Processes",
        "distributed_scaling distributed_halo distributed_overhead distributed_redistribution "
        "distributed_transports gpu_distributed_2",
    ),
    "meshes": (
        "Meshes and flows",
        "meshdata gpu_meshdata dg_host dg_gpu dg_split dg_scaling dg_scaling_CuArray",
    ),
    "compiling": (
        "Compiling",
        "programs_latency programs_overhead programs_sizes transformations ahead gpu_ahead",
    ),
}
# Results that are on no page, by the reason.
NOT_SHOWN = {
    "tests": "exits soaks gpu_suite gpu_dg gpu_programs gpu_distributed_1 verification verification_h200",
    "tables of another kind": "gpu_registers gpu_cold gpu_loops dg_setup dg_parts",
    "another machine's": "programs_kernels_xeon",
}
LABELS = (
    "name", "call", "case", "program", "loop", "expression", "statement", "text", "figure", "type", "group",
    "kernel", "contender", "what", "operation", "layout", "array", "processes", "ranks", "arguments",
    "elements", "unknowns", "cells", "nodes", "order", "n", "size", "kernels",
)  # fmt: skip
# What a case calls a number of seconds, without a unit.
CONTENDERS = ("numpy", "eager", "compiled", "cupy")
# Seconds that are no call's.
PREPARED = ("first", "again", "took", "seen", "build")
PEERS = ("numpy", "jax", "numba", "cupy-cuda13x")
TIMED = re.compile(r"(.+?)(?:_cpu)?[_ ](s|us)(?:_a_turn)?")  # the name of a number that is a time
SHOWN = 60  # rows of a table; the file has all


def command(result: str) -> str:
    """What wrote a result."""
    if result.startswith("gpu_distributed"):
        return "python -m mirabelle run -n 2 -m tests.gpudistributed"
    first = next((name for name in sorted(NAMES, key=len, reverse=True) if result.startswith(name)), result)
    rest = result.removeprefix(first).strip("_").replace("_", " ")
    array = " --array CuArray" if rest.endswith("CuArray") else ""
    if result == "gpu_meshdata":
        return "python -m benchmarks meshdata --array CuArray"
    if result.startswith("npkernels_sources"):
        first, rest = "npkernels --sources FOLDER", ""
    if result == "dg_gpu":
        return "python -m benchmarks dg gpu"
    return f"python -m benchmarks {first} {rest.removesuffix('CuArray')}".rstrip() + array


def machine(found: dict[str, Any]) -> str:
    """On what it ran and when, in a line."""
    told = found.get("machine") or {}
    gpu = told.get("gpu") or found.get("card") or found.get("gpu") or ""
    gpu = gpu.get("name", "") if isinstance(gpu, dict) else gpu
    cpu = f"{told['cpu']}, {told['cores']} cores" if "cpu" in told else ""
    versions = told.get("versions") or {}
    peers = [f"{name} {versions[name]}" for name in PEERS if versions.get(name)]
    return "; ".join(
        str(part) for part in (gpu, cpu, ", ".join(peers), str(found.get("date", ""))[:10]) if part
    )


def seconds(value: Any) -> float | None:
    """The time that a part of a case is, if it is one."""
    if isinstance(value, dict):
        for key, scale in (("best_s", 1), ("seconds", 1), ("best_events_s", 1), ("best_us", 1e-6)):
            if isinstance(value.get(key), (int, float)):
                return float(value[key]) * scale
    return None


def times(case: dict[str, Any]) -> dict[str, float]:
    """Each contender of a case, with its best time."""
    found: dict[str, float] = {}
    for key, value in case.items():
        if (t := seconds(value)) is not None:
            found["time" if key == "seconds" else key] = t
        elif isinstance(value, dict) and "wall" in value and key in ("numpy_s", "best_s", "used_s"):
            found["numpy" if key == "numpy_s" else "mirabelle"] = value["wall"]
        elif isinstance(value, dict) and key in ("times", "microseconds", "seconds", "best_s", "us"):
            scale = 1e-6 if key == "us" else 1
            for who, t in value.items():
                one = t * scale if isinstance(t, (int, float)) else seconds(t)
                if one is not None:
                    found.setdefault(who, one)
        elif isinstance(value, float) and key in CONTENDERS:
            found[key] = value
        elif isinstance(value, float) and (told := TIMED.fullmatch(key)):
            found[told[1]] = value * (1e-6 if told[2] == "us" else 1)
    if isinstance(case.get("seconds"), float):
        found["time"] = case["seconds"]
    found = {who: t for who, t in found.items() if t > 0}
    later = {who: t for who, t in found.items() if who not in PREPARED}
    return later or found


def duration(t: float) -> str:
    for scale, unit in ((1e-6, "ns"), (1e-3, "µs"), (1.0, "ms")):
        if t < scale:
            return f"{t / scale * 1000:.3g} {unit}"
    return f"{t:.3g} s"


def plain(value: Any) -> str:
    """A label as text of a table."""
    if isinstance(value, dict):
        return ", ".join(f"{k} = {plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        return " × ".join(map(plain, value))
    text = f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else str(value)
    return (
        text.replace("|", "∣").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("[", "\\[")
    )


def table(cases: list[dict[str, Any]]) -> str:
    """A row for each case: what it is, and the time of each contender."""
    measured = [times(case) for case in cases]
    labels = [k for k in LABELS if any(isinstance(c.get(k), (str, int, list, dict)) for c in cases)]
    labels = [k for k in labels if k not in ("size",) or not any("elements" in c for c in cases)][:4]
    who = list(dict.fromkeys(name for found in measured for name in found))[:7]
    if not who:
        return ""
    head = ["| " + " | ".join([*labels, *(w.replace("_", " ") for w in who)]) + " |"]
    head.append("|" + "---|" * len(labels) + "--:|" * len(who))
    rows = []
    for case, found in list(zip(cases, measured, strict=True))[:SHOWN]:
        cells = [plain(case.get(label, "")) for label in labels]
        rows.append(
            "| " + " | ".join([*cells, *(duration(found[w]) if w in found else "" for w in who)]) + " |"
        )
    more = f"\n\n({len(cases) - SHOWN} rows more are in the file.)" if len(cases) > SHOWN else ""
    return "\n".join([*head, *rows]) + more


def as_cases(found: dict[str, Any]) -> list[dict[str, Any]]:
    cases = next((found[name] for name in ("cases", "programs", "kernels") if name in found), [])
    if isinstance(cases, dict):
        return [{"name": name, **(c if isinstance(c, dict) else {"value": c})} for name, c in cases.items()]
    return list(cases)


def title(result: str, cases: list[dict[str, Any]]) -> str:
    first = next((name for name in sorted(NAMES, key=len, reverse=True) if result.startswith(name)), "")
    said = NAMES.get(first, result)
    return f"{result.replace('_', ' ')}: {said.split(';')[0]}" if first else result.replace("_", " ")


def section(result: str, folder: Path) -> str:
    """All of one benchmark."""
    found = json.loads((RESULTS / f"{result}.json").read_text())
    cases = as_cases(found)
    parts = [f"## {title(result, cases)}", f"`{command(result)}` ({machine(found)})"]
    about = found.get("method", found.get("note"))
    if isinstance(about, str):
        parts.append("\n\n".join(map(plain, about.split("\n\n"))))
    elif isinstance(about, list):
        parts.append("\n".join(f"- {plain(line)}" for line in about))
    picture = drawings.beside_numpy([times(case) for case in cases], folder / f"{result}.svg")
    if picture:
        parts.append(f"![How many times as fast as {picture} each contender is]({result}.svg)")
    parts.append(table(cases))
    file = f"The file: [{result}.json](../../benchmarks/results/{result}.json)."
    return "\n\n".join(part for part in [*parts, file] if part)


def stored(names: str) -> list[str]:
    """Of results those that are there."""
    return [name for name in names.split() if (RESULTS / f"{name}.json").exists()]


def pages(folder: Path) -> dict[str, str]:
    """The text of each page, by its file's name; pictures are written into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings.one_program(RESULTS, folder / "one_program.svg")
    made = {"index.md": "\n\n".join(first_page())}
    for name, (heading, results) in PAGES.items():
        about = "Best times of many turns; where two numbers are compared, they come from one run."
        parts = [f"# {heading}", about, *(section(result, folder) for result in stored(results))]
        made[f"{name}.md"] = "\n\n".join(parts) + "\n"
    return made


def first_page() -> Iterator[str]:
    yield "# How fast"
    yield (
        "Every number on these pages was printed by a command of the repository, which also wrote down the "
        "machine, the date and the versions of the peers; `python -m benchmarks NAME` prints it again."
    )
    yield "## One program, on a host, on a card, on two"
    yield (
        "Three programs that are written once, for the constructor they are given: power iteration, proximal "
        "gradient descent, and the norm of a Kronecker product by its entries. A point is how many entries of "
        "the matrix are gone through in a second; lines end where the memory of a place does, or the patience."
    )
    yield "![Entries a second over the size of the problem, for three programs](one_program.svg)"
    yield (
        "(From [paper_julia.csv](../../benchmarks/results/paper_julia.csv), [gpu_paper.csv]"
        "(../../benchmarks/results/gpu_paper.csv) and [gpu_distributed_2.csv]"
        "(../../benchmarks/results/gpu_distributed_2.csv): two threads of an AMD EPYC, NVIDIA H200.)"
    )
    yield "## All together"
    yield "Above 1, mirabelle is the faster one."
    yield figures.table().replace("(benchmarks/", "(../../benchmarks/")
    yield "## The pages"
    yield "\n".join(f"- [{heading}]({name}.md)" for name, (heading, _) in PAGES.items()) + "\n"
