"""Execute the notebooks and keep what they show: `python -m notebooks [NAME ...]`.

What a reader does not need is left out of the files: times of execution, and the paths of the machine it was.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# A path that is some machine's. (`mirabelle/...`, inside the repository, is everybody's.)
MACHINE = re.compile(
    r"(?<![\w.])/(?:tmp|work|home|root|Users|private|var|opt|usr|mnt)/[\w./-]+|[A-Z]:\\\\?Users|site-packages"
)


def notebooks() -> list[Path]:
    """All of them, in the order of their names."""
    return sorted(HERE.glob("*.ipynb"))


def executed(path: Path, environment: dict[str, str] | None = None) -> Any:
    """The notebook with the outputs its cells have now; raises if a cell does."""
    import nbclient
    import nbformat
    from jupyter_client.manager import AsyncKernelManager

    book = nbformat.read(path, as_version=4)
    # Files of a short path in place of ports: nobody else can listen.
    with tempfile.TemporaryDirectory(prefix="mb-") as folder:
        manager = AsyncKernelManager(
            kernel_name="python3", transport="ipc", connection_file=os.path.join(folder, "kernel.json")
        )
        client = nbclient.NotebookClient(
            book, km=manager, timeout=120, record_timing=False, resources={"metadata": {"path": str(ROOT)}}
        )
        client.execute(cleanup_kc=True, env=dict(os.environ) if environment is None else environment)
    return tidy(book)


def tidy(book: Any) -> Any:
    """The notebook without what changes from machine to machine, and from one execution to the next."""
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number:02}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [_shown(output) for output in _joined(cell.outputs)]
    return book


def _joined(outputs: list[Any]) -> list[Any]:
    """Neighbouring pieces of one stream as one."""
    made: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and made and made[-1].get("name") == output.name:
            made[-1].text += output.text
        else:
            made.append(output)
    return made


def _shown(output: Any) -> Any:
    if "text" in output:
        output.text = _everybodys(output.text)
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/") and isinstance(data, str):
            output.data[kind] = _everybodys(data)
    return output


def _everybodys(text: str) -> str:
    """Paths as seen from the repository; code of a cell is in the notebook."""
    text = re.sub(r"/[\w./-]*ipykernel_\d+/\d+\.py", "this notebook", text)
    return text.replace(f"{ROOT}{os.sep}", "")


def texts(book: Any) -> list[str]:
    """All that a reader of a notebook sees as text: sources and outputs."""
    found = [cell.source for cell in book.cells]
    for cell in book.cells:
        for output in cell.get("outputs", []):
            found += [output.get("text", ""), *map(str, output.get("traceback", []))]
            found += [d for kind, d in output.get("data", {}).items() if not kind.startswith("image/png")]
    return [text for text in found if isinstance(text, str)]


def main(names: list[str]) -> int:
    import nbformat

    for path in notebooks():
        if names and path.stem not in names:
            continue
        began = time.perf_counter()
        book = executed(path)
        nbformat.write(book, path)
        print(f"{path.name:<40} {time.perf_counter() - began:5.1f} s  {path.stat().st_size / 1024:6.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
