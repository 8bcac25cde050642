"""`python -m tests.installed wheel|versions`: the package as who installs it has it, outside of the checkout.

wheel     builds an sdist, and from it a wheel for this system; installs the wheel into an empty environment,
          from wheels alone; runs the tour and a third of the suite there with no compiler on the path
versions  for each Python that is found (3.11 to 3.14), builds, installs with the newest NumPy, Numba and plum,
          and runs a part of the suite; for the oldest Python with the oldest that are allowed, too

A Python is looked for on the path and among pyenv's; one that is not there is named, and is no failure.
`--keep FOLDER` keeps the environments there, and uses those that it finds; `--part` runs fewer tests, and
`--quick` very few. A commit with a tag `v1.2.3` must have that version: a release is a tag.

What comes from the network is installed first, apart from what is ours: if that fails nothing was tried, which
is said by the exit status `NOT_TRIED`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TOOLS = ("pytest>=8", "pytest-xdist", "hypothesis>=6.100", "scipy")
NOT_TRIED = 75  # (EX_TEMPFAIL of sysexits.h)

QUICK = "test_types test_few_doubles"
# With these CI has time for several environments.
TASTE = f"{QUICK} test_native test_owners test_dispatch test_errors test_controlflow test_following"
# What depends on the interpreter: C, tracebacks, events, code that is read, kernels in files, buffers.
PART = f"""{TASTE} test_compile test_user_functions test_jit test_diskcache test_forgotten_functions
    test_loading"""
# With these more than a third of all tests.
THIRD = f"""{PART} test_suite test_structure test_structured test_structured_linalg test_linalg test_indexing
    test_functions test_kernel test_toeplitz test_tour"""


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.installed", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("wheel", "versions"))
    parser.add_argument("--keep", metavar="FOLDER", type=Path)
    parser.add_argument("--part", action="store_true", help="of the tests a part, as CI has time for")
    parser.add_argument("--tests", nargs="+", metavar="NAME", help="of the tests these files: test_suite")
    parser.add_argument("--quick", action="store_true", help="of the tests a few: do they run at all?")
    parser.add_argument("--only", nargs="+", metavar="PYTHON", help="of the versions, these: --only 3.13")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mirabelle-") as scratch:
        folder = Path(scratch)
        kept = (given.keep or folder).absolute()
        kept.mkdir(parents=True, exist_ok=True)
        check_tag()
        try:
            if given.what == "wheel":
                files = QUICK if given.quick else PART if given.part else THIRD
                return tried_wheel(folder, kept, " ".join(given.tests or [files]))
            files = QUICK if given.quick else TASTE if given.part else PART
            return tried_versions(folder, kept, given.only, files, given.part)
        except NotTriedError as failure:
            print(f"not tried: {failure}", flush=True)
            return NOT_TRIED


class NotTriedError(Exception):
    """What others make, and a package index gives, could not be installed."""


def check_tag() -> None:
    """A tagged commit is the version that its tag says."""
    command = ["git", "tag", "--points-at", "HEAD"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    version = project()["project"]["version"]
    wrong = [tag for tag in said if tag.startswith("v") and tag != f"v{version}"]
    if wrong:
        raise SystemExit(f"This commit is tagged {wrong[0]}, and pyproject.toml says version {version!r}.")


# The wheel


def tried_wheel(folder: Path, kept: Path, files: str) -> int:
    wheel = built(folder, kept, Path(sys.executable), ROOT / "dist")
    wanted = ["--only-binary=:all:", *required(), *TOOLS, "matplotlib"]
    python = environment(kept / "wheel", Path(sys.executable), wanted, wheel)
    print(f"{wheel.name} is installed from wheels alone", flush=True)
    outside = beside_the_tests(folder)
    nobody = without_compiler(folder, python)
    ran = run([python, "-m", "mirabelle", "demo", "--quick", "--out", folder / "tour"], outside, nobody)
    return ran or suite(python, outside, files, nobody)


def built(folder: Path, kept: Path, base: Path, into: Path) -> Path:
    """The wheel of this checkout, made from its sdist: what the sdist lacks, the wheel cannot have."""
    tools = ["build", *project()["build-system"]["requires"]]
    builder = environment(kept / f"build-{version_of(base)}", base, tools)
    source = folder / "source"
    if not source.exists():
        shutil.copytree(
            ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "*.so", "demo_out")
        )
    into.mkdir(exist_ok=True)
    shutil.rmtree(folder / "dist", ignore_errors=True)
    command = [builder, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source]
    run(command, source, check=True, quiet=True)
    for path in (folder / "dist").iterdir():
        shutil.copy(path, into)
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
    return into / next((folder / "dist").glob("*.whl")).name


def without_compiler(folder: Path, python: Path) -> dict[str, str]:
    """Surroundings in which nothing can be compiled: a path with the environment's programs alone."""
    none = {"PATH": str(python.parent), "CC": "no-compiler", "HOME": str(folder), "MPLBACKEND": "Agg"}
    return none | {k: v for k, v in os.environ.items() if k == "CI"}


# The versions


def tried_versions(folder: Path, kept: Path, only: list[str] | None, files: str, part: bool = False) -> int:
    failed = []
    outside = beside_the_tests(folder)
    for name, base, wanted in combinations(only, part):
        if base is None:
            print(f"== Python {name}: not found here, not tried", flush=True)
            continue
        wheel = built(folder, kept, base, folder / f"dist-{name}")
        place = kept / f"{name}-{'oldest' if wanted else 'newest'}"
        python = environment(place, base, [*(wanted or required()), *TOOLS], wheel)
        run([python, "-c", SAID], outside, check=True)
        if suite(python, outside, files, dict(os.environ)):
            failed.append(f"{name} {' '.join(wanted)}".strip())
    print(f"failed: {', '.join(failed)}" if failed else "all that were tried pass")
    return bool(failed)


SAID = """import importlib.metadata, sys
names = ("numpy", "numba", "plum-dispatch")
print("== Python", sys.version.split()[0], *(f"{n} {importlib.metadata.version(n)}" for n in names), flush=True)
"""


def combinations(only: list[str] | None, part: bool) -> Iterator[tuple[str, Path | None, list[str]]]:
    """Each Python with the newest of all, and before that the oldest Python with the oldest of all.

    (A part leaves out the Python that runs this with the newest, as CI's own suite has it.)
    """
    for name in only or PYTHONS:
        base = found(name)
        if name == PYTHONS[0] and base is not None:
            yield name, base, oldest()
        if not part or name != version_of(Path(sys.executable)):
            yield name, base, []


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def required() -> list[str]:
    """The requirements of pyproject.toml."""
    return list(project()["project"]["dependencies"])


def oldest() -> list[str]:
    """The same with their lower bounds."""
    pairs = (requirement.split(">=") for requirement in required())
    return [f"{name}=={bound}{'.0' * (2 - bound.count('.'))}" for name, bound in pairs]


def found(version: str) -> Path | None:
    """A Python of a version: this one, one on the path, or one of pyenv's."""
    candidates = [Path(sys.executable)]
    on_path = shutil.which(f"python{version}")
    candidates += [Path(on_path)] if on_path else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += [p / "bin" / "python" for p in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    return next((p for p in candidates if version_of(p) == version), None)


def version_of(python: Path) -> str | None:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


# What both do


def environment(where: Path, base: Path, wanted: list[str], wheel: Path | None = None) -> Path:
    """The Python of an environment that holds what is wanted, and a wheel; one that is there is used again.

    Raises NotTriedError if the package index does not give what is wanted.
    """
    python = where / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        run([base, "-m", "venv", where], ROOT, check=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    if run([*pip, "install", "--upgrade", *wanted], where):
        raise NotTriedError(f"pip could not install {' '.join(wanted)}; is there a network?")
    if wheel is not None:  # (by force: the same version, and perhaps another build)
        run([*pip, "install", "--no-index", "--no-deps", "--force-reinstall", wheel], where, check=True)
        run([*pip, "check"], where, check=True)  # (what the wheel asks for is there)
    return python


def beside_the_tests(folder: Path) -> Path:
    """A folder with the tests and pytest's settings, and nothing of the package."""
    where = folder / "outside"
    shutil.copytree(ROOT / "tests", where / "tests", ignore=shutil.ignore_patterns("__pycache__", "typed"))
    shutil.copy(ROOT / "pyproject.toml", where)
    return where


def suite(python: Path, where: Path, files: str, surroundings: dict[str, str]) -> int:
    began = time.monotonic()
    paths = [f"tests/{name}.py" for name in files.split()]
    kernels = {"MIRABELLE_CACHE_DIR": str(where / "kernels")}
    command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *paths]
    ran = run(command, where, surroundings | kernels)
    print(f"   {time.monotonic() - began:.0f} s", flush=True)
    return ran


def run(
    command: list[object],
    where: Path,
    surroundings: dict[str, str] | None = None,
    *,
    check: bool = False,
    quiet: bool = False,
) -> int:
    words = [str(word) for word in command]
    clean = {
        k: v
        for k, v in (surroundings or os.environ).items()
        if not re.match("PYTHON(PATH|HOME)|VIRTUAL_ENV", k)
    }
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(words, cwd=where, env=clean, check=check, stdout=output).returncode


if __name__ == "__main__":
    sys.exit(main())
