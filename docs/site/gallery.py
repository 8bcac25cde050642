"""The notebooks as pages, with what their cells printed and drew when they were last executed."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any


def text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def shown(output: Any, name: str, pictures: Path) -> str:
    """What a cell put out, as Markdown; pictures become files in a folder."""
    if output["output_type"] == "stream":
        return fenced(text(output["text"]))
    if output["output_type"] == "error":
        return fenced(re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output["traceback"])))
    data = output.get("data", {})
    if "image/png" in data:
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / f"{name}.png").write_bytes(base64.b64decode(text(data["image/png"])))
        return f"![What the cell draws](pictures/{name}.png)"
    if "text/html" in data:
        return f'<div class="output" markdown="0">\n{text(data["text/html"])}\n</div>'
    return fenced(text(data.get("text/plain", "")))


def fenced(words: str) -> str:
    return f"```text\n{words.rstrip()}\n```" if words.strip() else ""


def page(path: Path, folder: Path) -> str:
    """A notebook as Markdown."""
    book = json.loads(path.read_text())
    parts = []
    for number, cell in enumerate(book["cells"]):
        source = text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for count, output in enumerate(cell.get("outputs", [])):
            parts.append(shown(output, f"{path.stem}-{number:02}-{count}", folder / "pictures"))
    return "\n\n".join(part for part in parts if part) + "\n"


def title(markdown: str) -> str:
    return re.search(r"^# (.*)$", markdown, flags=re.MULTILINE)[1]  # type: ignore[index]


def about(markdown: str) -> str:
    """The first paragraph below the title."""
    after = re.split(r"^# .*$", markdown, maxsplit=1, flags=re.MULTILINE)[1]
    found = next(p for p in re.split(r"\n\s*\n", after) if p.strip())
    return " ".join(found.split())


def pages(notebooks: Path, folder: Path) -> dict[str, str]:
    """The text of each page of the gallery, by its file's name; its pictures are written into `folder`."""
    made = {f"{path.stem}.md": page(path, folder) for path in sorted(notebooks.glob("*.ipynb"))}
    cards = []
    for path, markdown in made.items():
        pictures = re.findall(r"\]\((pictures/[^)]+)\)", markdown)
        picture = f"[![]({pictures[-1]})]({path})" if pictures else ""
        words = f"**[{title(markdown)}]({path})**\n\n{about(markdown)}"
        cards.append(f'<div class="card" markdown>\n{picture}\n\n{words}\n</div>')
    intro = "Notebooks to read here, and to run: they are in the folder `notebooks` of the repository."
    made["index.md"] = (
        "\n\n".join(["# Gallery", intro, '<div class="cards" markdown>', *cards, "</div>"]) + "\n"
    )
    return made
