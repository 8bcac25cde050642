"""`python -m docs.figures`: the table "How fast" of README.md, and those of docs/newcomers/.

Run it after a benchmark: every figure is read from what `python -m benchmarks` left in `benchmarks/results/`,
none is typed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- begin: python -m docs.figures -->", "<!-- end -->"


def kept(name: str) -> Any:
    """The stored result of a benchmark."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def row(command: str, result: str, what: str, beside: str, figure: str) -> str:
    return f"| {what} | {beside} | {figure} | [`{command}`](benchmarks/results/{result}.json) |"


def loops() -> str:
    cases = kept("loops")["cases"]
    sizes = sorted({c["elements"] for c in cases})
    means = [
        geometric_mean([c["numpy_s"] / c["mirabelle_s"] for c in cases if c["elements"] == n]) for n in sizes
    ]
    figure = ", ".join(f"{m:.2f} ({n:,})".replace(",", " ") for m, n in zip(means, sizes, strict=True))
    what = f"{len(cases) // len(sizes)} loops as they are written first, one thread (elements)"
    return row("loops", "loops", what, "NumPy", figure)


def overhead() -> str:
    first = min(kept("overhead")["cases"], key=lambda c: (c["expression"] != "x*y + z", c["elements"]))
    return row("overhead", "overhead", "`x*y + z` of one element", "NumPy", f"{1 / first['ratio_best']:.2f}")


def fusion() -> str:
    found = kept("fusion")
    figure = f"{1 / found['geometric_mean_ratio']:.2f}"
    what = f"{len(found['cases'])} large expressions, two threads"
    return row("fusion", "fusion", what, "the best of NumPy, numexpr, JAX", figure)


def kernels() -> list[str]:
    found = kept("npkernels")
    loops = sum(case["jit"] for case in found["cases"])
    what = (
        f"{found['kernels']} NumPy programs of many fields, {loops} of them loops under `@mb.jit`, two threads"
    )
    return [
        row("npkernels", "npkernels", what, "NumPy", f"{found['geometric_mean']:.2f}"),
        row("npkernels", "npkernels", "the same without these loops", "NumPy",
            f"{found['geometric_mean_lazy']:.2f}"),
        row("npkernels", "npkernels", "all of them", "the best of NumPy, Numba, JAX",
            f"{found['geometric_mean_over_best_peer']:.2f}"),
        row("npkernels", "npkernels", f"all of them, {found['compiled']} under `mb.compile`", "NumPy",
            f"{found['geometric_mean_compiled']:.2f}"),
    ]  # fmt: skip


def programs() -> str:
    found = kept("programs_kernels")
    what = f"{found['compared']} compiled programs, two threads"
    beside, figure = "the best of NumPy, JAX, Numba, DaCe", f"{found['geometric_mean_ratio']:.2f}"
    return row("programs kernels", "programs_kernels", what, beside, figure)


def cards() -> list[str]:
    """What was measured on cards, each row with its card."""
    found, wide = kept("gpu_npkernels"), kept("gpu_bandwidth")
    card, other = (f["machine"]["gpu"].split()[1] for f in (found, wide))
    means = found["summary"]
    peers = wide["summary"]["geometric_mean_fraction_peers"]
    what = f"{means['kernels']} of these programs on one {card}"
    share = f"{wide['summary']['geometric_mean_fraction']:.2f}"
    return [
        row("gpu npkernels", "gpu_npkernels", what, "CuPy", f"{means['geometric_mean_over_cupy']:.2f}"),
        row("gpu npkernels", "gpu_npkernels", "the same under `mb.compile`", "CuPy",
            f"{means['geometric_mean_compiled_over_cupy']:.2f}"),
        row("gpu bandwidth", "gpu_bandwidth", f"{wide['summary']['expressions']} expressions on one {other}",
            f"a copy of as many bytes (CuPy {peers['cupy']:.2f}, JAX {peers['jax']:.2f}, "
            f"torch.compile {peers['torch.compile']:.2f})", share),
    ]  # fmt: skip


def table() -> str:
    lines = [
        "| what | beside whom | times as fast (geometric mean) | `python -m benchmarks …` |",
        "|---|---|---|---|",
    ]
    return "\n".join([*lines, loops(), overhead(), *kernels(), fusion(), programs(), *cards()])


def program(name: str) -> str:
    """How long a program of docs/newcomers takes, beside its peers."""
    kept_ = kept("newcomers")
    case = next(c for c in kept_["cases"] if c["program"] == name)
    times = case["best_s"]
    unit, scale = ("µs", 1e6) if times["NumPy"] < 1e-3 else ("ms", 1e3)
    machine = kept_["machine"]
    lines = [f"| {case['what']} | {unit} | times as fast as NumPy |", "|---|--:|--:|"]
    lines += [f"| {who} | {t * scale:.3g} | {times['NumPy'] / t:.2g} |" for who, t in times.items()]
    versions = [f"{who} {machine['versions'][who.lower()]}" for who in ("NumPy", "JAX") if who in times]
    about = f"{machine['cpu']}, {machine['cores']} cores, {kept_['date'][:10]}; {', '.join(versions)}"
    about = f"({about}; best of many turns.)"
    return "\n".join([*lines, "", about])


def write(page: Path, text: str) -> None:
    """Put a table where a page has its place."""
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END, 1)[1]
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    write(ROOT / "README.md", table())
    for page in sorted((ROOT / "docs" / "newcomers").glob("*.md")):
        write(page, program(page.stem))


if __name__ == "__main__":
    main()
