"""`python -m docs.site`: build the site, with warnings as errors, and follow its links.

`--quick` takes pictures of flows of an earlier build; `--pages` only writes the pages that mkdocs is given;
`--serve` shows the site on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from docs.site import clients, flows, gallery, links, reference, results

HERE = Path(__file__).resolve().parent
ROOT = links.ROOT
BUILT = ROOT / "build" / "site"
PAGES, HTML = BUILT / "pages", BUILT / "html"

Nav = list[str | dict[str, "Nav"] | dict[str, str]]

# The pages that are written by hand: (section, folder in the site, files of the repository in their order).
FROM = ("numpy", "cupy", "jax", "dask", "julia")
PROGRAMS = ("nbody", "image_filter", "pricing", "small_net", "shallow_water")
SECTIONS = [
    ("Start", "start", ["docs/start.md", "docs/ideas.md", "docs/when_not.md"]),
    ("Coming from", "from", [f"docs/coming_from/{name}.md" for name in FROM]),
    ("Programs", "programs", [f"docs/newcomers/{name}.md" for name in PROGRAMS]),
    ("Guide", "guide", ["docs/guide/*.md", "docs/clusters.md"]),
    (
        "Design",
        "design",
        ["docs/design.md", "docs/dg.md", "docs/settings.md", "CONTRIBUTING.md", "CHANGELOG.md"],
    ),
]


def order(pattern: str) -> list[Path]:
    """The files of a pattern; in the order of their index where there is one."""
    found = sorted(ROOT.glob(pattern))
    contents = next((path for path in found if path.name == "README.md"), None)
    if contents is None:
        return found
    listed = re.findall(r"\]\((\w+\.md)\)", contents.read_text())
    found.remove(contents)
    return [contents, *sorted(found, key=lambda path: [*listed, path.name].index(path.name))]


def written_by_hand() -> dict[Path, str]:
    """Where each page of the repository is in the site."""
    places = {ROOT / "README.md": "index.md"}
    for _, folder, patterns in SECTIONS:
        for path in (p for pattern in patterns for p in order(pattern)):
            name = "index.md" if path.name == "README.md" else path.name.lower()
            places.setdefault(path, f"{folder}/{name}")
    return places


def as_markdown_is_here(text: str) -> str:
    """What GitHub and this Markdown read differently: prompts, and lists that follow a line of text."""
    text = re.sub(r"^```python\n(?=>>> )", "```pycon\n", text, flags=re.MULTILINE)
    text = re.sub(r"\n+^```$", "\n```", text, flags=re.MULTILINE)
    text = links.outside_code(text, re.compile(r"^ {2,3}- ", re.MULTILINE), "    - ")  # (lists in lists)
    return links.outside_code(text, re.compile(r"^(?!\s*[-|*\d])(.*\S.*)\n(?=- )", re.MULTILINE), r"\1\n\n")


def title(text: str) -> str:
    return re.search(r"^# (.*)$", text, flags=re.MULTILINE)[1].replace("`", "")  # type: ignore[index]


def glossary() -> str:
    """The words, which stand in the design."""
    text = (ROOT / "docs" / "design.md").read_text().split("### The words\n")[1]
    return "# The words\n" + re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]


def add(made: dict[str, str], place: str, text: str) -> None:
    """Add a page that is generated. One of the same name that is written by hand would be lost."""
    if made.setdefault(place, text) is not text:
        raise ValueError(f"There are two pages for {place} of the site: give the generated one another name.")


def write_pages(quick: bool) -> Nav:
    """Write all pages for mkdocs, with what they show; returns the navigation."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(HERE / "assets", PAGES / "assets")
    places = written_by_hand() | {
        path: f"gallery/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")
    }
    made: dict[str, str] = {}
    wanted: set[Path] = set()
    for source, place in places.items():
        if source.suffix == ".md":
            made[place] = as_markdown_is_here(links.moved(source.read_text(), source, place, places, wanted))
    made["index.md"] = "---\nhide: [navigation]\n---\n\n" + made["index.md"]
    made["design/changelog.md"] = "---\nsearch: {exclude: true}\n---\n\n" + made["design/changelog.md"]
    add(made, "start/glossary.md", glossary())
    add(made, "guide/other_libraries.md", clients.page())
    for folder, found in [
        ("reference", reference.pages()),
        ("gallery", gallery.pages(ROOT / "notebooks", PAGES / "gallery")),
        ("performance", results.pages(PAGES / "performance")),
        ("flows", flows.pages(PAGES / "flows", quick)),
    ]:
        for name, text in found.items():
            # (Links of a notebook are as from its folder, those of other pages as from one in docs/.)
            here = ROOT / ("notebooks" if folder == "gallery" else f"docs/{folder}") / name
            add(made, f"{folder}/{name}", links.moved(text, here, f"{folder}/{name}", places, wanted))
    for place, text in made.items():
        (PAGES / place).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / place).write_text(text)
    for path in wanted:
        if path.is_file():  # (what is not there is a broken link, which mkdocs finds)
            there = PAGES / links.at_hand(path)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)
    return navigation(places, made)


def navigation(places: dict[Path, str], made: dict[str, str]) -> Nav:
    def section(pages: list[str]) -> Nav:
        first = [p for p in pages if p.endswith("/index.md")]
        return [*first, *({title(made[p]): p} for p in pages if p not in first)]

    nav: Nav = ["index.md"]
    for name, folder, _ in SECTIONS[:-1]:
        nav.append({name: section([p for p in made if p.startswith(f"{folder}/")])})
    for name, folder in [
        ("Gallery", "gallery"),
        ("Flows", "flows"),
        ("Reference", "reference"),
        ("Speed", "performance"),
    ]:
        nav.append({name: section([p for p in made if p.startswith(f"{folder}/")])})
    nav.append({SECTIONS[-1][0]: section([p for p in places.values() if p.startswith(f"{SECTIONS[-1][1]}/")])})
    return nav


def mkdocs(what: str) -> int:
    """Run mkdocs on what is written; returns its exit status. What it prints is shown if something is wrong."""
    command = [sys.executable, "-m", "mkdocs", what, "--strict", "--config-file", str(BUILT / "mkdocs.yml")]
    # (Without it, each build says that mkdocs-material has a successor, which reads this file, too: Zensical.)
    told = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    quiet = subprocess.PIPE if what == "build" else None
    done = subprocess.run(command, check=False, env=told, stdout=quiet, stderr=quiet, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
    return done.returncode


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m docs.site", description="Build the site into build/site/html."
    )
    parser.add_argument("--pages", action="store_true", help="only write the pages")
    parser.add_argument("--quick", action="store_true", help="take old pictures of flows, where there are any")
    parser.add_argument("--serve", action="store_true", help="show the site on this machine")
    asked = parser.parse_args(words)
    began = time.perf_counter()
    nav = write_pages(asked.quick)
    told = {
        "INHERIT": str(HERE / "mkdocs.yml"), "docs_dir": str(PAGES), "site_dir": str(HTML), "nav": nav,
        "theme": {"custom_dir": str(HERE / "theme")},
    }  # fmt: skip
    (BUILT / "mkdocs.yml").write_text(json.dumps(told, indent=1))  # (JSON is YAML)
    print(f"{len(list(PAGES.rglob('*.md')))} pages in {time.perf_counter() - began:.0f} s")
    if asked.pages:
        return 0
    if status := mkdocs("serve" if asked.serve else "build"):
        return status
    wrong = links.broken(HTML)
    print(
        "\n".join(wrong)
        or f"{HTML / 'index.html'}: built in {time.perf_counter() - began:.0f} s; no broken link"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
