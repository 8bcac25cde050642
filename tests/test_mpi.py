"""The MPI backend, on real processes: messages, failures, what launchers leave, `python -m mirabelle run`.

Starting processes costs a second, so each program in tests/mpi_programs checks many things.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from children import answer

import mirabelle as mb
from mirabelle import launch
from mirabelle.__main__ import main
from mirabelle.arraytypes.distributed import communicators
from mirabelle.backends.mpi import environment
from mirabelle.dispatch.errors import CommunicationError

ROOT = pathlib.Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "mpi_programs"
# Seconds in which a program ends of which one rank failed; most of them are for starting on a busy machine.
SOON = 30


@pytest.fixture(scope="module")
def run():
    """Run a program on some processes; gives its exit status, what it printed, and the seconds it took."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    try:
        launch.find_launcher()
    except CommunicationError as e:
        pytest.skip(str(e))
    if environment.size() is not None:
        pytest.skip("these tests start processes themselves")

    launcher = launch.find_launcher()

    def start(count, program, *arguments, command=False, **settings):
        variables = launch.surroundings(launcher, count, 1)
        variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        variables |= {f"MIRABELLE_{k.upper()}": str(v) for k, v in settings.items()}
        words = [str(PROGRAMS / program), *map(str, arguments)]
        if command:  # the command itself costs the time of an import
            line = [sys.executable, "-m", "mirabelle", "run", "-n", str(count), *words]
        else:
            line = launcher.line(count, [sys.executable, *words])
        began = time.perf_counter()
        ran = subprocess.run(
            line,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            cwd=ROOT,
        )
        return ran.returncode, ran.stdout, time.perf_counter() - began

    return start


@pytest.mark.parametrize("count", [1, 2, 3])
def test_messages(run, count):
    status, said, _ = run(count, "messages.py", count)
    assert status == 0 and said.count("fine") == count, said


def test_all_come_to_the_same_plans(run):
    status, said, _ = run(3, "layouts.py", check_collectives=1)
    assert status == 0, said
    assert said.count("fine") == 3


@pytest.mark.parametrize("count", [2, 4])
def test_compiled_programs_send_no_more_than_by_hand(run, count):
    status, said, _ = run(count, "compiled.py")
    assert status == 0 and said.count("fine") == count, said


@pytest.mark.parametrize("count", [2, 3, 4])
def test_compiled_programs_over_ranks_mean_what_they_mean_in_numpy(run, count):
    status, said, _ = run(count, "divided.py", 8, 100 * count)
    assert status == 0 and said.count("fine") == count, said
    divided = [int(n) for n in re.findall(r"fine (\d+)", said)]
    assert len(divided) == count and min(divided) >= 5, said  # most of them are divided beforehand


@pytest.mark.parametrize("count", [1, 2, 3])
def test_chains_of_stencils_mean_what_they_mean_in_numpy(run, count):
    """What is computed on both sides of a cut, rather than sent, is the same there."""
    status, said, _ = run(count, "chains.py", 6, 10 * count)
    assert status == 0 and said.count("fine") == count, said
    computed = [int(n) for n in re.findall(r"fine (\d+)", said)]
    assert max(computed) > 10 if count > 1 else computed == [0], said


@pytest.mark.parametrize(("count", "arguments"), [(2, [1]), (3, [2, "mixed"]), (4, [3, "mixed"])])
def test_statements_that_come_back_mean_what_they_mean_in_numpy(run, count, arguments):
    status, said, _ = run(count, "halos.py", *arguments)
    assert status == 0 and said.count("fine") == count, said


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_halos_of_parts_are_values_of_programs(run, count):
    status, said, _ = run(count, "parthalos.py", count)
    assert status == 0 and said.count("fine") == count, said


def test_an_exception_on_one_rank_is_raised_on_all(run):
    status, said, seconds = run(3, "failing.py", "raises")
    assert status == 1, said
    assert said.count("heard: True True") == 2 and "Rank 1 of 3 failed" in said, said
    assert seconds < SOON


def test_a_rank_that_ends_early_is_noticed(run):
    status, said, seconds = run(3, "failing.py", "exits", command=True)
    assert status == 3, said
    assert said.count("heard: False False") == 2 and "sys.exit() on some ranks" in said, said
    assert seconds < SOON


def test_a_killed_rank_ends_the_program(run):
    status, _, seconds = run(3, "failing.py", "killed")
    assert status != 0 and seconds < SOON


def test_a_thread_that_fails_is_noticed(run):
    status, said, _ = run(3, "failing.py", "thread")
    assert status == 1 and said.count("heard: True True") == 2, said


@pytest.mark.parametrize("way", ["busy", "early"])
def test_those_who_do_not_listen_are_stopped(run, way):
    status, said, seconds = run(2, "failing.py", way)
    assert status != 0 and "Rank 1 of 2 failed" in said and seconds < SOON, said
    assert ("no such file" if way == "busy" else "before there is a communicator") in said


def test_messages_that_nobody_takes_do_not_keep_a_failed_program(run):
    status, said, seconds = run(3, "failing.py", "half-way")
    assert status != 0 and said.count("RemoteError: Rank 1 failed") == 2 and seconds < SOON, said


def test_work_goes_on_after_a_failure_that_all_have_seen(run):
    status, said, _ = run(3, "failing.py", "together")
    assert status == 0 and said.count("fine") == 3, said


def test_operations_that_do_not_match_are_named(run):
    status, said, _ = run(3, "mismatched.py", check_collectives=1, check_timeout=0.5)
    assert status == 0, said
    told = {tuple(line.split(maxsplit=3)[:2]): line for line in said.splitlines() if len(line.split()) > 3}
    assert len(told) == 15, said
    for rank in "012":
        assert told["right", rank].endswith("fine")
        for words in ["barrier at", "reduction sum", "mismatched.py:19", "mismatched.py:21", "comm.part"]:
            assert words in told["other_operation", rank], said
        assert "(3,)" in told["other_size", rank] and "(4,)" in told["other_size", rank], said
        assert "Rank 1 did not come within 0.5 s" in told["missing", rank], said
        assert "Ranks [0, 2] are there" in told["missing", rank], said
    messages = told["other_messages", "0"]
    assert "sends 16 bytes where 24 are expected, and expects 24 where 24 are sent" in messages, said


# Without other processes


def test_alone():
    with mb.distributed.together() as comm:
        assert comm.size == 1 and comm.engine == "alone"
    with pytest.raises(KeyError), mb.distributed.together():
        raise KeyError("here")
    comm.failed(KeyError("not told to anybody"))
    assert comm.settle(3) == [3]


def test_what_launchers_say(monkeypatch):
    for name in {*environment.RANK, *environment.SIZE, *environment.LOCAL_SIZE}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    assert not environment.is_started() and environment.size() is None
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "8")  # a script of sbatch: one process
    assert not environment.is_started() and environment.size() is None
    monkeypatch.setenv("PMIX_RANK", "2")
    assert environment.is_started() and environment.size() == 8
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")
    assert environment.size() == 4 and environment.local_size() == 2


def test_without_mpi4py_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(communicators, "_world", None)
    environment.library.cache_clear()
    with mb.settings.changed(communicator="mpi"), pytest.raises(CommunicationError, match="pip install mpi4py"):
        communicators.world()
    environment.library.cache_clear()


def test_importing_under_a_launcher_starts_no_mpi():
    said = answer(
        """
        import json, os, sys
        os.environ |= {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
        import mirabelle as mb
        print(json.dumps(["mpi4py" in sys.modules, mb.settings.num_threads, os.cpu_count()]))
        """
    )
    imported, threads, cores = said
    assert not imported and threads <= max(1, cores // 2)


# The command


def test_options_end_where_the_program_begins():
    split = launch._split
    assert split(["-n", "4", "a.py", "-n", "5"]) == (["-n", "4"], ["a.py", "-n", "5"])
    assert split(["-n4", "-m", "package", "--x"]) == (["-n4"], ["-m", "package", "--x"])
    assert split(["--mpiexec=x", "--", "-c", "pass"]) == (["--mpiexec=x"], ["-c", "pass"])
    assert split(["-n", "2"]) == (["-n", "2"], [])


def test_threads_are_shared(monkeypatch):
    for name in (*launch.THREADS, *launch.OVERSUBSCRIBE, *launch.AS_ROOT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(launch, "cores", lambda: 8)
    mpich, slurm = launch.Launcher(("mpiexec",), "MPICH"), launch.Launcher(("srun",), "Slurm")
    assert launch.surroundings(mpich, 2, None)["MIRABELLE_NUM_THREADS"] == "4"
    assert launch.surroundings(mpich, 20, None)["OMP_NUM_THREADS"] == "1"
    assert launch.surroundings(mpich, 20, 3)["OMP_NUM_THREADS"] == "3"
    assert "OMP_NUM_THREADS" not in launch.surroundings(slurm, 2, None)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert launch.surroundings(mpich, 2, None)["OMP_NUM_THREADS"] == "5"


def test_open_mpi_is_told_what_it_needs(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setenv("MIRABELLE_CACHE", "0")
    launcher = launch.Launcher(("mpiexec",), "Open MPI")
    assert launch.surroundings(launcher, 4, None)["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    line = launcher.line(4, ["python", "a.py"])
    assert line[:3] == ["mpiexec", "-n", "4"] and line[-2:] == ["python", "a.py"]
    assert "-x MIRABELLE_CACHE" in " ".join(line)


def test_srun_is_used_in_a_job(monkeypatch, tmp_path):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert launch.find_launcher() == launch.Launcher((str(srun),), "Slurm")
    assert launch.find_launcher("srun --mpi=pmix").line(2, ["a"]) == [str(srun), "--mpi=pmix", "-n", "2", "a"]


def test_no_mpiexec(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for name in environment.RANK:
        monkeypatch.delenv(name, raising=False)
    assert main(["run", "-n", "2", "a.py"]) == 127
    assert "pip install mpi4py mpich" in capsys.readouterr().err
    assert main(["run", "--mpiexec", "nothing", "a.py"]) == 127


@pytest.mark.parametrize(
    "words", [["run"], ["run", "-n", "0", "a.py"], ["run", "-n"], ["run", "--what", "a.py"]]
)
def test_nonsense_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert "usage:" in capsys.readouterr().err


def test_info_names_mpi(capsys):
    said = launch.described()
    assert "mpi4py" in said
