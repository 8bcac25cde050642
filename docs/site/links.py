"""Links: as they are in the repository, as they are in the site, and whether they all lead somewhere."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def outside_code(markdown: str, change: re.Pattern[str], by: object) -> str:
    """`change.sub` in what is no block of code."""
    parts, at = [], 0
    for block in CODE.finditer(markdown):
        parts += [change.sub(by, markdown[at : block.start()]), block.group()]  # type: ignore[call-overload]
        at = block.end()
    return "".join([*parts, change.sub(by, markdown[at:])])  # type: ignore[call-overload]


def moved(markdown: str, source: Path, place: str, places: dict[Path, str], wanted: set[Path]) -> str:
    """A page of the repository with links as they are in the site, at `place`.

    Files that are linked and are no pages are added to `wanted`: they come along.
    """

    def target(match: re.Match[str]) -> str:
        path, hash_, anchor = match[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        there = (source.parent / path).resolve()
        if not there.exists():
            return match[0]  # (made for the site, or broken: mkdocs says which)
        if there not in places:
            wanted.add(there)
        to = os.path.relpath(places.get(there, at_hand(there)), os.path.dirname(place) or ".")
        return f"{match[1]}{to}{hash_}{anchor}{match[3]}"

    return outside_code(markdown, LINK, target)


ROOT = Path(__file__).resolve().parents[2]


def at_hand(path: Path) -> str:
    """Where a file of the repository that is no page is in the site."""
    return f"files/{path.relative_to(ROOT)}"


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[n] for n in ("id", "name") if n in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loads.append(given["href"])


def broken(site: Path) -> list[str]:
    """What is wrong with the links of a built site: what is not there, and what is loaded from elsewhere.

    (Where links lead on the network is not asked: pages are built without one.)
    """
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # (served from any place: its links are the server's)
            continue
        here = path.relative_to(site)
        for link in [*page.links, *page.loads]:
            if re.match(r"[a-z]+:|//", link):
                if link in page.loads and not link.startswith("data:"):
                    found.append(f"{here} loads {link}, which needs a network")
                continue
            file, _, anchor = unquote(link).partition("#")
            there = (path.parent / file.partition("?")[0]).resolve() if file else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists():
                found.append(f"{here} links to {link}, and there is no such file")
            elif anchor and there in pages and anchor not in pages[there].anchors:
                found.append(f"{here} links to {link}, and there is no such place on that page")
    return found
