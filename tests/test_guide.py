"""The guide: its examples run and print what they say, links lead somewhere, and nothing is said twice."""

import collections
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(page for page in GUIDE.glob("*.md") if page.stem != "README")
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What has no examples, and what the examples of a page need.
PROSE = {"limits"}
NEEDS = {"pandas": "pandas", "dask": "distributed"}


def named(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_guide_is_true(page):
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert (result.attempted > 3) is (page.stem not in PROSE)
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
