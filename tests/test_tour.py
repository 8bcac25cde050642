"""`python -m mirabelle demo`: it tells all of its story, on any terminal."""

import re
import sys

import pytest

from mirabelle.__main__ import main
from mirabelle.programs import Kronecker, domeigen, proximal_gradient_descent
from mirabelle.tour.measuring import in_words
from mirabelle.tour.paper import listing
from mirabelle.tour.screen import Plain, Rich, screen


@pytest.mark.filterwarnings("default")  # (of fonts, the first time matplotlib looks for them)
def test_the_demo_tells_its_story(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as where rich is not installed
    folder = tmp_path / "pictures"
    assert main(["demo", "--quick", "--out", str(folder)]) == 0
    said = capsys.readouterr().out
    parts = re.findall(r"^(\d)\. ", said, re.MULTILINE)
    assert parts == [str(i) for i in range(1, 10)]
    for words in (
        "launches                 1",
        "RefArray[float64, 2]",
        "KroneckerSum[Tridiagonal, Tridiagonal]",
        "@mb.norm.method",
        "error of the weights",
        "8 derivatives at a time evaluate it 13 times",
        "PlaceError",
        "DualError",
    ):
        assert words in said
    assert "DIFFERENT" not in said and "Traceback" not in said
    eigenvalues = [float(line.split()[-1]) for line in said.splitlines() if re.search(r" 0\.9{6}\d+$", line)]
    assert len(eigenvalues) >= 4
    assert (folder / "tour.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("make", [Plain, Rich])
def test_a_screen_shows_all_it_is_given(make, capsys):
    if make is Rich:
        pytest.importorskip("rich")
    out = make()
    out.title("A title")
    out.say("Words [with brackets].")
    out.code("x = [1]")
    out.table(["name", "what", "how many"], [["a", "b[0]", "3"]])
    assert list(out.progress(range(3), "counting")) == [0, 1, 2]
    said = capsys.readouterr().out
    for words in ("A title", "Words [with brackets].", "x = [1]", "b[0]", "counting"):
        assert words in said


def test_the_screen_is_richs_where_that_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert type(screen()) is Plain


@pytest.mark.parametrize("what", [domeigen, proximal_gradient_descent, Kronecker])
def test_a_listing_is_a_program_and_nothing_else(what):
    text = listing(what)
    compile(text, "listing", "exec")
    assert ">>>" not in text and "Any" not in text
    assert what.__doc__.strip().splitlines()[0] in text


@pytest.mark.parametrize(
    ("seconds", "said"), [(7e-6, "7 µs"), (0.00123, "1.23 ms"), (0.0123, "12.3 ms"), (0.5, "500 ms")]
)
def test_times_have_a_unit(seconds, said):
    assert in_words(seconds) == said
