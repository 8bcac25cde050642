"""`python -m tests.sanitized`: what is in C, under gcc's sanitizers for addresses and undefined behaviour.

python -m tests.sanitized                       # tests of what is in C, and random programs
python -m tests.sanitized tests/test_suite.py   # these tests

The package is put together in a folder, with its C compiled anew; the first finding ends a process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
FLAGS = [
    *("-O1", "-g", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
]
TESTS = [
    *("native", "few_doubles", "owners", "aliasing", "statements", "statements_again", "masks", "sorting_host"),
    *("random_views", "view_bounds", "memory_of_results", "reduced_in_place", "flags", "augmented", "roll"),
    *("semantics_hypothesis", "joined_memory", "order", "sparse", "named_values", "written_over"),
]


def packed(folder: Path) -> None:
    """Put the package together, its C with the sanitizers."""
    package = folder / "mirabelle"
    for name in ("mirabelle", "dispatch", "arraytypes", "backends", "dg"):
        to = package if name == "mirabelle" else package / name
        leave = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / name, to, ignore=leave, dirs_exist_ok=True)
    headers = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    sources = sorted((ROOT / "dispatch" / "csrc").glob("*.c"))
    library = package / "dispatch" / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", *FLAGS, *headers, *sources, "-o", library, "-lpthread"], check=True
    )


def of_gcc(name: str) -> str:
    """Where a library of gcc's is."""
    asked = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return asked.stdout.strip()


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="mirabelle-") as folder:
        site, here = Path(folder, "site"), Path(folder, "here")
        packed(site)
        # (Beside the sources tests would find those instead.)
        for name in ("tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / name, here / name)
        shutil.copy(ROOT / "pyproject.toml", here)
        env = {
            **os.environ,
            "PYTHONPATH": f"{site}{os.pathsep}{here}",
            "LD_PRELOAD": f"{of_gcc('libasan.so')} {of_gcc('libubsan.so')}",
            # (Python keeps memory at its end, and asks for more than there is where tests do.)
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "MIRABELLE_COMPILER": "off",
        }
        # (Memory that is given back does not come again soon here, and one test asks where it is.)
        files = sys.argv[1:] or [*(f"tests/test_{name}.py" for name in TESTS), "-k", "not stay_where_they_are"]
        commands = [["pytest", "-q", "-p", "no:cacheprovider", *files]]
        if not sys.argv[1:]:
            commands.append(["tests.soak_programs", "--programs", "500"])
        failed = [subprocess.call([sys.executable, "-P", "-m", *c], env=env, cwd=here) for c in commands]
        return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
