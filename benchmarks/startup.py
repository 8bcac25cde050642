"""What a process pays before its first result: `import mirabelle` beside `import numpy`, and first statements.

Each figure is the median of fresh processes that take turns: CPU seconds as the system counted them for the
whole process (its start, user and system time), and resident memory at its end. Bytecode is on disk, as pip
leaves it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks._measure import store
from benchmarks._table import show

ROUNDS = 11
CPU_LIMIT, MEMORY_LIMIT = 2.5, 2.0  # times NumPy's
_IMPORT = "import mirabelle as mb\n"
PROGRAMS = {
    "python": "",
    "import numpy": "import numpy\n",
    "import mirabelle": _IMPORT,
    "few numbers": _IMPORT + "x = mb.asarray([1.0, 2.0, 3.0])\nfloat(mb.sum(x * 2 + 1))\n",
    "a matrix solved": _IMPORT + "mb.linalg.solve(mb.eye(3) + 1, mb.ones(3)).tolist()\n",
    "many numbers": _IMPORT + "x = mb.linspace(0, 1, 1_000_000)\nfloat(mb.sum(mb.sin(x) * 2))\n",
    "a gradient": _IMPORT + "mb.autodiff.gradient(lambda x: mb.sum(x * x), mb.ones(3)).tolist()\n",
    "a program": _IMPORT + "mb.compile(lambda x: x * 2 + 1)(mb.ones(3)).tolist()\n",
    "random numbers": _IMPORT + "mb.random.default_rng(0).normal(size=3).tolist()\n",
}
# Printed at the end of each: resident memory in kB, and how many modules there are, of ours and in all.
_LAST = """
import sys
own = sum(m == "mirabelle" or m.startswith("mirabelle.") for m in sys.modules)
kB = next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmRSS"))
print(kB, own, len(sys.modules))
"""


def measured(code: str, cache: str) -> dict[str, float]:
    """CPU seconds, memory and modules of one fresh process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(
        [sys.executable, "-c", code + _LAST],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**environment, "MIRABELLE_CACHE_DIR": cache},
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory, own, modules = map(float, out.split()[-3:])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "memory_mb": memory / 1024, "own_modules": own, "modules": modules}


def run() -> None:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="mirabelle-startup-") as cache:
        for turn in range(ROUNDS + 1):  # (the first writes bytecode)
            for name, code in PROGRAMS.items():
                found = measured(code, cache)
                if turn:
                    runs[name].append(found)
    medians: dict[str, dict[str, Any]] = {
        name: {key: statistics.median(r[key] for r in found) for key in found[0]}
        for name, found in runs.items()
    }
    numpy = medians["import numpy"]
    rows = [
        [
            name,
            f"{m['cpu_s'] * 1e3:.0f}",
            f"{m['cpu_s'] / numpy['cpu_s']:.2f}",
            f"{m['memory_mb']:.0f}",
            f"{m['memory_mb'] / numpy['memory_mb']:.2f}",
            f"{m['own_modules']:.0f} of {m['modules']:.0f}",
        ]
        for name, m in medians.items()
    ]
    ours = medians["import mirabelle"]
    cpu, memory = ours["cpu_s"] / numpy["cpu_s"], ours["memory_mb"] / numpy["memory_mb"]
    show(
        "Processes that do nothing else: medians",
        ["process", "CPU ms", "of import numpy", "MB", "of import numpy", "modules"],
        rows,
        [
            f"import mirabelle: {cpu:.2f} times the CPU seconds of import numpy (at most {CPU_LIMIT}: "
            f"{'met' if cpu <= CPU_LIMIT else 'MISSED'}), {memory:.2f} times the memory (at most "
            f"{MEMORY_LIMIT}: {'met' if memory <= MEMORY_LIMIT else 'MISSED'})."
        ],
    )
    store("startup", {"rounds": ROUNDS, "medians": medians, "cpu_ratio": cpu, "memory_ratio": memory})
