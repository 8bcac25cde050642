"""The guide: its examples run and print what they say, links lead somewhere, and nothing is said twice."""

import collections
import doctest
import functools
import json
import re
import tomllib
import warnings
from pathlib import Path

import pytest

import mirabelle as mb
from docs import definitions
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.structured import fallback

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(page for page in GUIDE.glob("*.md") if page.stem != "README")
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What has no examples, and what the examples of a page need.
PROSE = {"limits"}
NEEDS = {"pandas": "pandas", "dask": "distributed", "interop": "h5py", "autodiff": "scipy"}


def named(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_the_examples_of_a_page_are_true(page):
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert (result.attempted > 2) is (page.stem not in PROSE)
    assert result.failed == 0


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """What `#...` may be in a link to a page, as GitHub and editors make it of headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(page.read_text()), flags=re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def links(text):
    """The targets of a text's links and pictures within the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(text))
    return [t for t in targets if not re.match(r"[a-z]+:", t)]


def broken(page):
    """The links of a page that lead nowhere."""
    found = []
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", TEXTS, ids=named(TEXTS))
def test_links_lead_somewhere(page):
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    (tmp_path / "there.md").write_text("# A `mb.name`, and more\n\n```\n# no heading\n```\n")
    page.write_text(
        "[a](there.md#a-mbname-and-more) [b](gone.md) [c](there.md#no-heading) [d](https://x.org)\n"
    )
    assert broken(page) == ["gone.md", "there.md#no-heading"]


def test_the_index_has_every_page():
    assert sorted(t for t in links((GUIDE / "README.md").read_text()) if "/" not in t) == [
        p.name for p in PAGES
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_it_is_for(page):
    title, empty, first = page.read_text().splitlines()[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert first.startswith("This page ")


def sentences(text):
    """The sentences of a text, without code, tables and links' targets."""
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"^\|.*$", "", without_code(text), flags=re.MULTILINE))
    found = re.split(r"(?<=[.:?])\s+(?=[A-Z`*\[])|\n\s*\n|\n- ", text)
    return [" ".join(s.split()) for s in found]


def test_nothing_is_said_twice():
    said = collections.defaultdict(list)
    for page in [ROOT / "README.md", *PAGES]:
        for sentence in sentences(page.read_text()):
            if len(sentence) > 50:
                said[sentence].append(page.name)
    assert {s: pages for s, pages in said.items() if len(pages) > 1} == {}


# What the page on structured arrays says of each type and operation


def becomes(operation, matrix, space):
    """What a cell of its tables says: the type of a result, and whether it was made dense with a warning."""
    x = eval(matrix, space)
    fallback.forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = mb.materialize(eval(operation, space | {"x": x}))
    if any(issubclass(w.category, mb.DenseFallbackWarning) for w in caught):
        return "**dense**"
    kept = generic_class(type(result))
    return "*same*" if kept is generic_class(type(x)) else f"`{kept.__name__}`" if kept in KEPT else "*array*"


KEPT = {t for t in vars(mb.types).values() if isinstance(t, type) and issubclass(t, mb.types.Structured)}


def cells(text):
    """(operation, matrix, what is said) of the tables whose first column is `x`."""
    for table in re.findall(r"^\| `x` \|.*?\n\n", text, flags=re.MULTILINE | re.DOTALL):
        head, _, *rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
        for matrix, *said in rows:
            assert len(said) == len(head) - 1, matrix
            yield from ((o.strip("`"), matrix.strip("`"), s) for o, s in zip(head[1:], said, strict=True))


def test_what_stays_structured_is_what_the_page_says():
    text = (GUIDE / "structured.md").read_text()
    text = text[text.index("## What stays structured") : text.index("A rule that is missing")]
    space = {"mb": mb}
    for example in doctest.DocTestParser().get_examples(text):
        exec(example.source, space)
    found = list(cells(text))
    assert len(found) > 200
    wrong = {(o, m): now for o, m, said in found if (now := becomes(o, m, space)) != said}
    assert wrong == {}


# What CONTRIBUTING and the design say of the sources

SOURCES = [
    path.relative_to(ROOT)
    for folder in ("mirabelle", "dispatch", "arraytypes", "backends", "dg", "benchmarks", "tests", "docs")
    for path in sorted((ROOT / folder).rglob("*.*"))
    if "__pycache__" not in path.parts
]
ENDINGS = collections.defaultdict(list)  # every way to name a file: by its name, with a folder, with two, ...
for source in SOURCES:
    for length in range(1, len(source.parts) + 1):
        ENDINGS["/".join(source.parts[-length:])].append(source)
# Files that the texts make up, as a reader's own.
MADE_UP = {"program.py", "script.py", "heat.py"}


def defined(path):
    """The names that a file defines, at any depth."""
    if path.suffix != ".py":
        return set(re.findall(r"\w+", path.read_text()))
    return set(re.findall(r"^\s*(?:async )?(?:def|class) (\w+)", path.read_text(), flags=re.MULTILINE))


def missing(text):
    """Files, and names in files (`path.py::name`), that a text mentions and that are not there."""
    found = []
    for path, name in re.findall(r"(?<![\w/.{*-])((?:\w+/)*\w+\.(?:py|c))\b(?:::(\w+))?", text):
        there = ENDINGS.get(path, [])
        if path in MADE_UP or any(not name or name in defined(ROOT / p) for p in there):
            continue
        found.append(f"{path}::{name}" if name else path)
    return found


@pytest.mark.parametrize("page", TEXTS, ids=named(TEXTS))
def test_files_that_are_named_are_there(page):
    assert missing(page.read_text()) == []


def test_files_and_names_that_are_not_there_are_found():
    text = "`gone.py`, `dispatch/gone.py::f`, `assign.py::gone`, `assign.py::write`, `csrc/gone.c`, `test_*.py`"
    assert missing(text) == ["gone.py", "dispatch/gone.py::f", "assign.py::gone", "csrc/gone.c"]


def questions():
    """The rows of the table in CONTRIBUTING: a question, what to search for, where it leads."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("## Where is what?") :].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    return {question.strip("| "): (re.findall(r"`([^`]+)`", words), place) for question, words, place in rows}


QUESTIONS = questions()


def test_there_are_twelve_questions():
    assert len(QUESTIONS) >= 12


@functools.cache
def code():
    return {
        str(p): (ROOT / p).read_text() for p in SOURCES if p.suffix in (".py", ".c") and p.parts[0] != "tests"
    }


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_are_answered_by_a_search(question):
    """The words are in few files, one of which is named as the answer."""
    words, place = QUESTIONS[question]
    named_files = set(re.findall(r"[\w/]+\.(?:py|c)", place))
    for word in words:
        if word.startswith("mb."):
            continue
        hits = {path for path, text in code().items() if word in text}
        assert hits & named_files, word
        assert len(hits) <= 10, f"{word} is in too many files to look through: {hits}"


# What editors are told


def test_editors_look_where_the_links_are():
    """`make links` makes a tree of all folders of the package, and pyright's and VS Code's settings know it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    makefile = (ROOT / "Makefile").read_text()
    folders = re.search(r"^SOURCES = (.*)$", makefile, flags=re.MULTILINE)[1].split()
    assert set(folders) == {path.split("/")[0] for path in project["setuptools"]["package-dir"].values()}
    (tree,) = project["pyright"]["extraPaths"]
    assert f"to={tree}/mirabelle/" in makefile
    settings = json.loads((ROOT / ".vscode" / "settings.json").read_text())
    assert settings["python.defaultInterpreterPath"].endswith(".venv-test/bin/python")


@pytest.mark.parametrize("asked", definitions.ASKED, ids=lambda asked: f"{asked[2]}-{asked[0]}")
def test_what_the_language_server_is_asked_is_there(asked):
    """(`make dev` asks it.)"""
    path, text, name, wanted = asked
    definitions.position(path, text, name)
    assert wanted is None or (ROOT / wanted).is_file()
