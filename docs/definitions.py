"""`python -m docs.definitions LANGSERVER [PYTHON]`: does an editor find definitions in this checkout?

A language server (pyright's; Pylance is the same engine) is started as an editor starts it, in the folder of
the repository, and asked where names in files of several folders are defined. `make dev` runs this at its end.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).parent.parent
# In a file, a name in the first line that begins with a text; and where it is defined.
ASKED = [
    ("arraytypes/dense.py", "from mirabelle.dispatch import", "verbs", "dispatch/verbs.py"),
    ("backends/host/run.py", "from mirabelle.backends.codegen.source", "Layout", "backends/codegen/source.py"),
    ("backends/host/run.py", "from mirabelle.arraytypes.host", "HostArray", "arraytypes/host.py"),
    ("dispatch/schedule.py", "class Request", "Request", "dispatch/schedule.py"),
    ("dg/terms.py", "import mirabelle as mb", "mirabelle", "mirabelle/__init__.pyi"),
    ("tests/test_guide.py", "import pytest", "pytest", None),
    ("tests/test_random.py", "import mirabelle as mb", "mirabelle", "mirabelle/__init__.pyi"),
]
SECONDS = 120


class Server:
    """A language server that talks through pipes."""

    def __init__(self, command: list[str], python: str) -> None:
        self.python = str(Path(python).absolute())
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.answers: queue.Queue[Any] = queue.Queue()
        self.asked = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        out: Any = self.process.stdout
        while header := out.readline():
            length = 0
            while header.strip():
                name, _, value = header.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
                header = out.readline()
            message = json.loads(out.read(length))
            if "method" not in message:
                self.answers.put(message)
            elif "id" in message:  # it asks the editor: for its settings, mostly
                settings = {"python": {"pythonPath": self.python}}
                items = message.get("params", {}).get("items")
                result = [settings.get(item.get("section"), {}) for item in items] if items else None
                self.send({"id": message["id"], "result": result})
        self.answers.put(None)

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        to: Any = self.process.stdin
        to.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        to.flush()

    def tell(self, method: str, parameters: Any) -> None:
        self.send({"method": method, "params": parameters})

    def ask(self, method: str, parameters: Any) -> Any:
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": parameters})
        while True:
            answer = self.answers.get(timeout=SECONDS)
            if answer is None:
                raise SystemExit("The language server ended before it answered.")
            if answer.get("id") == self.asked:
                if "error" in answer:
                    raise SystemExit(f"The language server refuses {method}: {answer['error']['message']}")
                return answer.get("result")


def position(path: str, text: str, name: str) -> dict[str, int]:
    for number, line in enumerate((ROOT / path).read_text().splitlines()):
        if line.startswith(text):
            return {"line": number, "character": line.rindex(name) + 1}
    raise SystemExit(
        f"{path} has no line with {text!r} any more: docs/definitions.py is to ask for another one."
    )


def definition(server: Server, path: str, text: str, name: str) -> Path | None:
    """The file that defines a name, links followed; None where there is none."""
    uri = (ROOT / path).as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": (ROOT / path).read_text()}
    server.tell("textDocument/didOpen", {"textDocument": document})
    where = position(path, text, name)
    found = server.ask("textDocument/definition", {"textDocument": {"uri": uri}, "position": where}) or []
    first = found[0] if isinstance(found, list) and found else found
    if not first:
        return None
    return Path(unquote(urlparse(first.get("uri") or first["targetUri"]).path)).resolve()


def main(command: str, python: str = sys.executable) -> int:
    server = Server([command, "--stdio"], python)
    folder = {"uri": ROOT.as_uri(), "name": ROOT.name}
    server.ask(
        "initialize",
        {
            "processId": None,
            "rootUri": ROOT.as_uri(),
            "workspaceFolders": [folder],
            "capabilities": {"workspace": {"workspaceFolders": True, "configuration": True}},
        },
    )
    server.tell("initialized", {})
    wrong = 0
    for path, text, name, wanted in ASKED:
        found = definition(server, path, text, name)
        right = found is not None and (wanted is None or found == ROOT / wanted)
        shown = found.relative_to(ROOT) if found and found.is_relative_to(ROOT) else found
        print(f"{'  ' if right else '! '}{name} in {path}: {shown or 'not found'}")
        wrong += not right
    server.tell("exit", None)
    server.process.wait(timeout=SECONDS)
    if wrong:
        print("Definitions are not found: is build/types there (make links), and does pyproject.toml name it?")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
