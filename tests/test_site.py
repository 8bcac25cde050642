"""The site: each public name has its page, docstrings and notebooks become Markdown, links lead somewhere.

What needs mkdocs is `make site`; here is what it is given.
"""

import base64
import json
from pathlib import Path

import pytest

import mirabelle as mb
from docs.site import gallery, links, reference, subjects
from docs.site.docstrings import escaped, markdown, summary

ROOT = Path(__file__).parent.parent
SPACES = {space: subjects.public(module) for module, space, _ in subjects.SPACES} | {
    "mb": subjects.public("mirabelle")
}


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_public_name_stands_on_a_page_and_in_the_index(pages):
    for space, names in SPACES.items():
        for name in names:
            called = f"{space}.{name}"
            places = [path for path, text in pages.items() if any(f"id={q}{called}{q}" in text for q in "'\"")]
            assert len(places) == 1, called
            assert f"[`{called}`]({places[0]}#{called})" in pages["index.md"]


def test_a_name_without_a_page_is_an_error(monkeypatch):
    monkeypatch.setattr(subjects, "SUBJECTS", [s for s in subjects.SUBJECTS if s.page != "polynomials"])
    with pytest.raises(LookupError, match=r"mb\.poly: add it to SUBJECTS"):
        subjects.by_subject()


def test_lists_of_subjects_name_only_what_is_there_once():
    listed = [name for s in subjects.SUBJECTS for name in s.names.split()]
    assert sorted(set(listed)) == sorted(listed)
    assert set(listed) <= set(mb.__all__)


def test_an_entry_has_what_one_looks_up(pages):
    text = pages["statistics.md"]
    entry = text[text.index("## `mb.percentile`") :].split("\n## ")[0]
    assert "method: str = 'linear'" in entry.replace('"', "'") or "method" in entry
    assert "```pycon\n>>> import mirabelle as mb" in entry
    assert "Beside NumPy" in entry


def test_differences_to_numpy_are_read_from_signatures():
    def like(a, axis=None, dtype=None, out=None): ...

    assert reference.beside_numpy("mb", ["cumsum"], like) == "*Beside NumPy:* the same parameters."

    def other(a, axis=None, wrap=False): ...

    assert reference.beside_numpy("mb", ["cumsum"], other) == (
        "*Beside NumPy:* not here: `dtype`, `out`; only here: `wrap`."
    )
    assert reference.beside_numpy("mb", ["nothing_of_this_name"], other) == ""


def test_long_signatures_stand_on_lines():
    def f(x, y, /, first="a" * 30, second="b" * 30, *, third: int = 3, **rest): ...

    lines = reference.written("mb.f", f).splitlines()
    assert lines[0] == "mb.f(" and lines[-1] == ")"
    assert [line.strip(" ,") for line in lines[1:4]] == ["x", "y", "/"]
    assert "    *," in lines and "    third: int = 3," in lines and "    **rest," in lines
    assert reference.written("mb.f", lambda x, /: 0) == "mb.f(x, /)"


def test_docstrings_become_markdown():
    made = markdown(
        "Sums x * y of *all* `a * b` <b>.\n\nMore:\n- one\n- two\n\n"
        "Parameters\n----------\nx, y : array\n    What\n    is added.\naxis\n    Along it.\n\n"
        "Returns\n-------\nThe sum.\n\n>>> 1 + 1\n2\n\n    indented\n"
    )
    assert r"Sums x \* y of \*all\* `a * b` \<b>." in made
    assert "More:\n\n- one" in made
    assert "**Parameters**\n\n- `x`, `y` *(array)*: What is added.\n- `axis`: Along it." in made
    assert "**Returns**\n\nThe sum." in made
    assert "```pycon\n>>> 1 + 1\n2\n```" in made
    assert "```text\nindented\n```" in made


@pytest.mark.parametrize("name", ["sum", "roll", "HostArray", "pi", "float64", "settings"])
def test_summaries_are_one_line(name):
    assert "\n" not in escaped(summary(getattr(mb, name)))


def test_notebooks_become_pages_with_their_pictures(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "What it is\nabout. More.\n"]},
        {"cell_type": "code", "source": "x = 1", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
            {"output_type": "display_data", "data": {"image/png": base64.b64encode(b"PNG").decode()}},
            {"output_type": "execute_result", "data": {"text/html": "<b>t</b>", "text/plain": "t"}},
            {"output_type": "error", "traceback": ["\x1b[31mError\x1b[0m: no"]},
        ]},
    ]  # fmt: skip
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    made = gallery.pages(tmp_path, tmp_path / "site")
    assert "```python\nx = 1\n```\n\n```text\none\n```" in made["book.md"]
    assert (tmp_path / "site" / "pictures" / "book-01-1.png").read_bytes() == b"PNG"
    assert "Error: no" in made["book.md"] and "<b>t</b>" in made["book.md"]
    assert "**[Title](book.md)**\n\nWhat it is about. More." in made["index.md"]


def test_links_move_with_the_pages(tmp_path):
    source = ROOT / "docs" / "guide" / "arrays.md"
    places = {ROOT / "docs" / "design.md": "design/design.md", source: "guide/arrays.md"}
    wanted = set()
    text = (
        "[a](../design.md#the-words) [b](../../benchmarks/results/loops.json) [c](#here) [d](https://x.org) "
        "[e](gone.md)\n"
        "```\n[f](../design.md)\n```\n"
    )
    assert links.moved(text, source, "guide/arrays.md", places, wanted) == (
        "[a](../design/design.md#the-words) [b](../files/benchmarks/results/loops.json) [c](#here) "
        "[d](https://x.org) [e](gone.md)\n```\n[f](../design.md)\n```\n"
    )
    assert wanted == {ROOT / "benchmarks" / "results" / "loops.json"}


def test_broken_links_and_what_needs_a_network_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">1</a><a href="b.html#there">2</a><a href="https://x.org">3</a>'
        '<a href="#gone">4</a><a href="b.html#gone">5</a><a href="c.html">6</a><img src="https://x.org/p.png">'
    )
    (tmp_path / "b.html").write_text('<p id="there">')
    assert len(links.broken(tmp_path)) == 4
