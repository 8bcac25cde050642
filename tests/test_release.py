"""What a release says of itself agrees; free-threaded builds are warned of."""

import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import everyfourth
import pytest
from installed import NOT_TRIED, NotTriedError, environment, required

import mirabelle as mb
from mirabelle.dispatch.freethreading import warn_of_free_threads

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("pyproject.toml", r'^version = "(.+)"'),
        ("CITATION.cff", r"^version: (.+)"),
        ("packaging/conda/meta.yaml", r'set version = "(.+)"'),
        ("CHANGELOG.md", r"^## ([\d.]+)"),
    ],
)
def test_versions_agree(file, said):
    assert re.search(said, (ROOT / file).read_text(), re.MULTILINE)[1] == mb.__version__


def test_what_is_deprecated_has_a_date_and_is_gone_with_the_version_it_names():
    assert re.fullmatch(r"20\d\d-\d\d", mb._MOVED_SINCE)
    ours, theirs = ([int(n) for n in v.split(".")[:2]] for v in (mb.__version__, mb._GONE_IN))
    assert ours < theirs, "the names of mb._MOVED go with this version"
    said = (ROOT / "packaging/README.md").read_text()
    assert f"| {mb._MOVED_SINCE} | {mb._GONE_IN} |" in said
    with pytest.warns(DeprecationWarning, match=rf"since {mb._MOVED_SINCE}\..*version {mb._GONE_IN}"):
        mb._unknown("Transpose")


def test_cibuildwheel_runs_tests_that_are_there():
    """(From a copy: in the checkout `mirabelle` is a folder that lacks most of the package.)"""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert all((ROOT / name).exists() for name in told["test-sources"])
    command = told["test-command"].split()
    assert command[:3] == ["python", "-m", "pytest"]
    assert all((ROOT / name).exists() for name in command if name.endswith(".py"))


def test_every_package_is_installed():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    tops = ("mirabelle", "dispatch", "arraytypes", "backends", "dg")
    found = {p.parent.relative_to(ROOT) for top in tops for p in (ROOT / top).rglob("__init__.py")}
    names = {".".join(p.parts if p.parts[0] == "mirabelle" else ("mirabelle", *p.parts)) for p in found}
    assert names == set(told["packages"])


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text()
    for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        name, bound = requirement.split(">=")
        assert f"- {name} >={bound}\n" in recipe


def test_free_threaded_builds_are_warned_of_once_with_what_is_known():
    with pytest.warns(RuntimeWarning, match="PYTHON_GIL=0.*ordinary build") as heard:
        warn_of_free_threads("t")
    assert len(heard) == 1
    warn_of_free_threads("")
    warn_of_free_threads()  # (the suite turns warnings into errors)


def test_what_is_tried_is_there():
    from installed import PART, QUICK, TASTE, THIRD, oldest

    for name in {*QUICK.split(), *TASTE.split(), *PART.split(), *THIRD.split()}:
        assert (ROOT / "tests" / f"{name}.py").exists()
    assert all(re.fullmatch(r"[\w-]+==\d+\.\d+\.\d+", r) for r in oldest())


# What CI runs at every fourth commit


def test_each_part_has_its_turn_at_a_fourth_commit(capsys):
    parts = list(everyfourth.PARTS)
    turns = [everyfourth.turn(count) for count in range(8 * len(parts))]
    assert [t for t in turns if t] == parts * 2
    assert all(turns[count] for count in range(0, len(turns), 4))
    assert "Commit 4, one of every fourth: the turn of the wheel's other tests." in capsys.readouterr().out


def test_each_variant_has_its_turn():
    import conftest

    for fourth, parts in ((True, 8), (False, 4)):
        counts = [c for c in range(100) if (c % 4 == 0) == fourth]
        assert {conftest.part_after(c) for c in counts} == {f"{k}/{parts}" for k in range(parts)}


STUB = """#!/bin/sh
echo "$0 $*" >> {told}
case "$*" in *{slow}*) sleep 300;; esac
echo "7 passed, 1 skipped in 0.01s"
"""


@pytest.mark.skipif(os.name == "nt", reason="a script of a shell")
@pytest.mark.parametrize(
    ("slow", "fourth"), [("", True), ("", False), ("test", True), ("everyfourth", True), ("nothing", True)]
)
def test_ci_ends_in_its_time_whatever_is_slow(slow, fourth, tmp_path):
    """All that it runs is a script that sleeps where it is called so: "" is all of it."""
    told = tmp_path / "told"
    stub = STUB.format(told=told, slow=slow)
    for name, text in {
        ".ci/run": (ROOT / ".ci/run").read_text(),
        "bin/make": stub,
        ".venv-test/bin/python": stub,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    git(tmp_path, "init")
    for _ in range(4 if fourth else 3):
        git(tmp_path, "commit", "--allow-empty", "-m", "x")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    seconds = 60 if slow == "nothing" else 6
    surroundings = os.environ | {"PATH": path, "MIRABELLE_CI_SECONDS": str(seconds)}
    began = time.monotonic()
    ran = subprocess.run([tmp_path / ".ci/run"], env=surroundings, capture_output=True, text=True)
    assert time.monotonic() - began < seconds + 10, ran.stdout  # (a second is what it counts in)
    asked = told.read_text()
    assert all(word in asked for word in (".venv-lint/.made", ".venv-test/.made", " lint", " types", " test\n"))
    assert ("everyfourth" in asked) and ("for at most" in ran.stdout)
    assert (ran.returncode == 0) == (slow == "nothing"), ran.stdout
    if ran.returncode == 0:
        assert ran.stdout.splitlines()[-1] == "7 passed, 1 skipped in 0.01s"


def git(where, *words):
    asked = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    subprocess.run(asked, cwd=where, check=True, capture_output=True)


def test_commits_are_counted_where_they_are_known(tmp_path, capsys):
    whole, shallow, none = (tmp_path / name for name in ("whole", "shallow", "none"))
    for folder in (whole, none):
        folder.mkdir()
    git(whole, "init")
    for _ in range(3):
        git(whole, "commit", "--allow-empty", "-m", "x")
    git(tmp_path, "clone", "--depth", "1", whole.as_uri(), "shallow")
    assert everyfourth.commits(whole) == (3, "")
    assert everyfourth.turn(*everyfourth.commits(shallow)) is None
    assert everyfourth.turn(*everyfourth.commits(none)) is None
    said = capsys.readouterr().out
    assert "cannot be counted, this clone is shallow" in said
    assert "cannot be counted, this is no checkout" in said


def exits(status):
    return (sys.executable, "-c", f"raise SystemExit({status})")


@pytest.mark.parametrize(
    ("part", "status", "said"),
    [
        (everyfourth.Part(exits(0)), 0, "passed"),
        (everyfourth.Part(exits(1)), 1, "failed"),
        (everyfourth.Part(exits(-9)), 1, "failed"),
        (everyfourth.Part(exits(NOT_TRIED)), 0, "not tried"),
        (everyfourth.Part(exits(1), exits(0)), 1, "failed"),
        (everyfourth.Part(exits(0), exits(2)), 0, "not tried"),
        (everyfourth.Part(exits(1), exits(2)), 0, "not tried"),
    ],
)
def test_a_part_that_failed_fails_and_one_that_could_not_be_tried_does_not(part, status, said, capsys):
    assert everyfourth.tried("it", part, 60.0) == status
    assert f"it: {said}" in capsys.readouterr().out


def test_a_part_is_ended_with_all_that_it_began(tmp_path, capsys):
    late = f"import time; time.sleep(0.6); open({str(tmp_path / 'late')!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    assert everyfourth.tried("it", everyfourth.Part((sys.executable, "-c", code)), 0.3) == 0
    assert "did not end in time" in capsys.readouterr().out
    time.sleep(0.5)
    assert not (tmp_path / "late").exists()


def test_a_part_is_not_begun_where_little_time_is_left(capsys):
    assert everyfourth.main(["--part", "wheel", "--seconds", "30"]) == 0
    assert "not run, 30 s are left" in capsys.readouterr().out


def test_an_index_that_does_not_answer_is_no_verdict(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(NotTriedError, match=r"could not install numpy>=.*is there a network\?"):
        environment(tmp_path, Path(sys.executable), required())
