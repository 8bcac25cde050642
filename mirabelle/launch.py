"""`python -m mirabelle run -n 4 script.py`: start a program as several processes that talk by MPI.

It finds mpiexec (or srun) and sets what that needs; the output, the exit status and Ctrl-C are the program's.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from mirabelle.backends.mpi import environment
from mirabelle.dispatch.errors import CommunicationError

USAGE = "python -m mirabelle run [-n N] [--threads K] [--mpiexec COMMAND] (script.py | -m module) [arguments]"
# Variables of programs' threads: those of BLAS libraries, and ours.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MIRABELLE_NUM_THREADS")
# Open MPI refuses to run as root, and to start more processes than there are cores, unless it is told.
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
OVERSUBSCRIBE = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "true",
}


@dataclasses.dataclass(frozen=True)
class Launcher:
    """A command that starts processes, and whose it is."""

    command: tuple[str, ...]
    # "Open MPI", "MPICH", "Intel MPI", "Slurm", or what it says of itself.
    kind: str

    def line(self, count: int, program: list[str]) -> list[str]:
        """The command line that starts so many of a program."""
        passed: list[str] = []
        if self.kind == "Open MPI":
            # To other machines it hands its own variables alone.
            for name in sorted(os.environ.keys() | THREADS):
                if name in THREADS or name.startswith("MIRABELLE_"):
                    passed += ["-x", name]
        return [*self.command, "-n", str(count), *passed, *program]


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status of the program."""
    options, program = _split(arguments)
    given = parser().parse_args(options)
    if not program:
        parser().error("name a program to run: a script, or -m and a module.")
    if environment.size() is not None:
        print(
            "This is already one of several processes of MPI, and MPI cannot start others from there. Run "
            "`python -m mirabelle run` outside of mpiexec and srun.",
            file=sys.stderr,
        )
        return 2
    try:
        launcher = find_launcher(given.mpiexec)
    except CommunicationError as e:
        print(e, file=sys.stderr)
        return 127
    count = given.n or cores()
    process = subprocess.Popen(
        launcher.line(count, [sys.executable, *program]),
        env=surroundings(launcher, count, given.threads),
    )
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:  # the launcher was told too, and ends the processes
            continue
        return 128 - status if status < 0 else status


def parser() -> argparse.ArgumentParser:
    """The options, up to the program."""
    made = argparse.ArgumentParser(prog="python -m mirabelle run", usage=USAGE)
    made.add_argument(
        "-n", "--np", dest="n", type=_positive, metavar="N", help="processes (default: the cores)"
    )
    made.add_argument(
        "--threads",
        type=_positive,
        metavar="K",
        help="threads of each process (default: the cores shared between the processes; what Slurm sets)",
    )
    made.add_argument(
        "--mpiexec",
        metavar="COMMAND",
        help="what starts the processes, with its options if it needs any (default: srun within a Slurm "
        "job, else the mpiexec beside this Python, else the one on the path)",
    )
    return made


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program with its own."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "-m" or not word.startswith("-"):
            break
        if word == "--":
            return arguments[:at], arguments[at + 1 :]
        # An option that stands alone is followed by its value.
        alone = word in ("-n", "--np", "--threads", "--mpiexec")
        at += 2 if alone else 1
    return arguments[:at], arguments[at:]


def cores() -> int:
    """The cores that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


def surroundings(launcher: Launcher, count: int, threads: int | None) -> dict[str, str]:
    """The environment of the processes."""
    variables = dict(os.environ)
    if launcher.kind == "Open MPI":
        for name, value in OVERSUBSCRIBE.items():
            variables.setdefault(name, value)
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            for name in AS_ROOT:
                variables.setdefault(name, "1")
    if threads is not None:
        variables.update(dict.fromkeys(THREADS, str(threads)))
    elif launcher.kind != "Slurm":
        # More processes than cores: they may be on several machines, but one thread each is always right.
        for name in THREADS:
            variables.setdefault(name, str(max(1, cores() // count)))
    return variables


def find_launcher(named: str | None = None) -> Launcher:
    """The command that starts processes: the one named, else srun in a job of Slurm, else mpiexec."""
    if named is not None:
        command = [named] if os.path.exists(named) else shlex.split(named)
        path = shutil.which(command[0]) if command else None
        if path is None:
            raise CommunicationError(f"There is no command {named!r} to start processes with.")
        return Launcher((path, *command[1:]), _kind(path))
    if "SLURM_JOB_ID" in os.environ and (path := shutil.which("srun")) is not None:
        return Launcher((path,), "Slurm")
    beside = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for name in ("mpiexec", "mpirun"):
        path = shutil.which(name, path=beside)
        if path is not None:
            return Launcher((path,), _kind(path))
    raise CommunicationError(
        f"No mpiexec was found beside {sys.executable} or on the path. Install MPI for this Python: "
        f"`{environment.INSTALL}`, or load the module of your cluster's MPI."
    )


def _kind(path: str) -> str:
    if pathlib.Path(path).name.startswith("srun"):
        return "Slurm"
    try:
        ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    said = ran.stdout + ran.stderr
    for word, kind in (
        ("Open MPI", "Open MPI"),
        ("OpenRTE", "Open MPI"),
        ("Intel", "Intel MPI"),
        ("HYDRA", "MPICH"),
    ):
        if word in said:
            return kind
    return said.splitlines()[0] if said else "unknown"


def described() -> str:
    """What `python -m mirabelle info` says of MPI."""
    code = (
        "import mpi4py; mpi4py.rc.initialize = False\n"
        "from mpi4py import MPI\n"
        "name, version = MPI.get_vendor()\n"
        "print('mpi4py', mpi4py.__version__, 'over', name, '.'.join(map(str, version)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode == 0:
        library = ran.stdout.strip().splitlines()[-1]
    elif "No module named" in ran.stderr:
        library = f"mpi4py is not installed: {environment.INSTALL}"
    else:
        library = f"mpi4py finds no MPI: {ran.stderr.strip().splitlines()[-1] if ran.stderr else 'it ended'}"
    try:
        launcher = find_launcher()
    except CommunicationError:
        return f"{library}; no mpiexec"
    return f"{library}; started by {launcher.command[0]} ({launcher.kind})"
