"""What kernels take of a card: compiled for four generations, assembled, and written down."""

from __future__ import annotations

import collections
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

# (before mirabelle is imported, which reads it)
os.environ["MIRABELLE_CUDA"] = "simulated"

import kernelcatalogue as catalogue

_kernels: list[catalogue.Kernel] = []


def write(out: Path) -> int:
    """Compile every kernel of the catalogue for every generation; 1 if one fails or spills."""
    if catalogue.assembler() is None:
        raise SystemExit("ptxas is missing. Install it with the compiler: pip install -e '.[cuda-compile]'")
    start = time.perf_counter()
    found, refused = catalogue.kernels()
    _kernels[:] = found
    jobs = [(n, c) for c in catalogue.CAPABILITIES for n in range(len(found))]
    print(f"{len(found)} kernels for {len(catalogue.CAPABILITIES)} generations of cards")
    results = {}
    # (users' functions do not pickle: children have them from us)
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        for done, (job, said) in enumerate(pool.imap_unordered(_measured, jobs, chunksize=8), 1):
            results[job] = said
            if done % 500 == 0:
                print(f"  {done} of {len(jobs)}, {time.perf_counter() - start:.0f} s", flush=True)
    content = summary(found, results)
    content |= {"refused programs": refused, "seconds": round(time.perf_counter() - start)}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_laid_out(content))
    print(f"most registers {content['most registers']}, spilling {len(content['spilling'])}: {out}")
    return 1 if content["failed"] or content["spilling"] or refused else 0


def _measured(job):
    n, capability = job
    try:
        with tempfile.TemporaryDirectory() as folder:
            ptx = catalogue.ptx_of(_kernels[n], capability)
            return job, catalogue.assembled(ptx, Path(folder), capability)
    except Exception as e:
        return job, f"{type(e).__name__}: {str(e)[:300]}"


def summary(found, results):
    """The table: registers by generation for each kernel, and what stands out."""
    names = ["sm_{}{}".format(*c) for c in catalogue.CAPABILITIES]
    rows, failed, spilling, stacks = {}, {}, {}, {}
    counts = {name: collections.Counter() for name in names}
    for n, kernel in enumerate(found):
        row = []
        for name, c in zip(names, catalogue.CAPABILITIES, strict=True):
            said = results[n, c]
            if isinstance(said, str):
                failed[f"{kernel.program} on {name}"] = said
                row.append(None)
                continue
            row.append(said.registers)
            counts[name][-(-said.registers // 8) * 8] += 1
            if said.spills:
                spilling[f"{kernel.program} on {name}"] = said.spills
            if said.stack:
                stacks[f"{kernel.program} on {name}"] = said.stack
        rows[f"{kernel.program}: {kernel.source.name} {kernel.key}"] = row
    measured = [r for row in rows.values() for r in row if r is not None]
    return {
        "benchmark": "what kernels for cards take, compiled without one",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "generations": names,
        "kernels": len(found),
        "most registers": max(measured, default=0),
        "kernels by registers up to": {k: dict(sorted(v.items())) for k, v in counts.items()},
        "failed": failed,
        "spilling": spilling,
        "bytes of stack (tables that NVIDIA's functions index)": stacks,
        "registers": rows,
    }


def versions():
    said = subprocess.run(
        [catalogue.assembler(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = {"python": platform.python_version(), "ptxas": said.strip().splitlines()[-1]}
    for name in ("numba", "numba-cuda", "llvmlite", "numpy"):
        found[name] = importlib.metadata.version(name)
    return found


def _laid_out(content):
    """JSON with a line for each kernel."""
    text = json.dumps(content | {"registers": {}}, indent=1)
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in content["registers"].items()]
    return text.replace('"registers": {}', '"registers": {\n' + ",\n".join(rows) + "\n }") + "\n"
