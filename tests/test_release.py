"""What a release says of itself agrees; free-threaded builds are warned of."""

import re
import tomllib
from pathlib import Path

import pytest

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
    from installed import PART, QUICK, THIRD, oldest

    for name in {*QUICK.split(), *PART.split(), *THIRD.split()}:
        assert (ROOT / "tests" / f"{name}.py").exists()
    assert all(re.fullmatch(r"[\w-]+==\d+\.\d+\.\d+", r) for r in oldest())
