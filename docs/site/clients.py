"""The page of other libraries: what was tried with arrays of ours in their place, read from tests/clients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from docs.site.links import ROOT

CLIENTS = ROOT / "tests" / "clients"
NAMES = {"scipy_programs": "SciPy", "sklearn_programs": "scikit-learn"}
ABOUT = """# Other libraries

Each line below is a program in the tests: an array of ours is given to a library, and the result is compared
with what it gives for NumPy's. Most run on any array type, with the result where the array is. *On the host*
are those that the library computes in memory which the processor reads: for arrays elsewhere they are refused
with a sentence, and moving them is one call (`mb.adapt(mb.HostArray, x)`). *Copies* are made where a library
has arrays of its own.

SciPy and scikit-learn take other arrays when they are asked to: `SCIPY_ARRAY_API=1` in the environment before
SciPy is imported, and `sklearn.set_config(array_api_dispatch=True)`. What is not listed was not tried. [The
guide](interop.md) says how arrays come and go, and there is a page on [pandas](pandas.md)."""


def texts() -> Iterator[tuple[str, str]]:
    """Each library, and the text of its programs."""
    for stem in ("scipy_programs", "sklearn_programs", "libraries"):
        tree = ast.parse((CLIENTS / f"{stem}.py").read_text())
        found = []
        for node in tree.body:
            if not isinstance(node, ast.Assign):
                continue
            if stem == "libraries" and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                        yield str(key.value), str(value.value)
            elif stem != "libraries":
                found += [c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)]
        if found:
            yield NAMES[stem], "\n".join(text for text in found if isinstance(text, str) and "\n" in text)


def programs(text: str) -> list[str]:
    """The programs of a text, a line each; a line that ends with a semicolon goes on in the next."""
    return [re.sub(r";\s+", "; ", line.strip()) for line in re.split(r"(?<!;)\n", text) if line.strip()]


def page() -> str:
    parts, rows = [], []
    for library, text in sorted(texts(), key=lambda found: found[0].lower()):
        tried = programs(text)
        kinds = {
            "On any array": [p for p in tried if not p.endswith(("# host", "# copies"))],
            "On the host": [p.removesuffix("# host").strip() for p in tried if p.endswith("# host")],
            "Copies": [p.removesuffix("# copies").strip() for p in tried if p.endswith("# copies")],
        }
        rows.append(
            f"| [{library}](#{library.lower()}) | " + " | ".join(str(len(k)) for k in kinds.values()) + " |"
        )
        parts.append(f"## {library} {{ id='{library.lower()}' }}")
        for kind, lines in kinds.items():
            if lines:
                parts += [f"**{kind}**", "```python\n" + "\n".join(lines) + "\n```"]
    head = "| library | on any array | on the host | copies |\n|---|--:|--:|--:|"
    return "\n\n".join([ABOUT, "\n".join([head, *rows]), *parts]) + "\n"
