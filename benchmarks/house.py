"""How large the house is, and how often it says the same: lines by folder, and mechanisms counted.

Nothing is imported or run: `python -m benchmarks house` before and after a change, and compare. The counts are
of what issues and reviews ask for: how many places decide one thing, how many versions a routine has. Each is
a line to look for in the sources, so a number is a hint of where to look, not a verdict.
"""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks._table import show

ROOT = Path(__file__).parents[1]
FOLDERS = ("dispatch", "arraytypes", "backends", "dg", "mirabelle", "benchmarks", "docs", "tests")
HOUSE = FOLDERS[:3]
# Who says that a function is a routine's version for a place.
VERSIONS = {
    "backends/gpu": "routine",
    "backends/host": "routine",
    "arraytypes/duals": "rule_of",
    "arraytypes/distributed": "distributed_routine",
}


def sources(*folders: str, endings: tuple[str, ...] = (".py", ".c", ".h")) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and "__pycache__" not in path.parts:
                yield path


def is_code(tree: ast.AST) -> set[int]:
    """The lines of a module that are neither documentation nor an import."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        inner = getattr(node, "body", None)
        last = inner[0].lineno - 1 if inner else node.end_lineno or node.lineno
        lines |= set(range(node.lineno, max(last, node.lineno) + 1))
    return lines


def sizes() -> dict[str, dict[str, int]]:
    """Files, lines, and lines of code by folder, the folders of the house also one by one."""
    found: dict[str, dict[str, int]] = collections.defaultdict(lambda: {"files": 0, "lines": 0, "code": 0})
    for folder in FOLDERS:
        for path in sources(folder):
            text = path.read_text()
            lines = text.splitlines()
            if path.suffix == ".py":
                full = is_code(ast.parse(text))
                code = sum(
                    bool(s.strip()) and s.lstrip()[0] != "#" for i, s in enumerate(lines, 1) if i in full
                )
            else:
                code = sum(bool(s.strip()) and s.lstrip()[:1] not in "/*" for s in lines)
            inner = path.relative_to(ROOT).parts
            for name in {folder, "/".join(inner[:2]) if folder in HOUSE and len(inner) > 2 else folder}:
                found[name]["files"] += 1
                found[name]["lines"] += len(lines)
                found[name]["code"] += code
    return dict(found)


def lines_with(pattern: str, *folders: str) -> int:
    found = re.compile(pattern)
    return sum(bool(found.search(line)) for path in sources(*folders) for line in path.read_text().splitlines())


def count_nodes(wanted: Callable[[ast.AST], Any], *folders: str) -> int:
    paths = sources(*folders, endings=(".py",))
    return sum(bool(wanted(node)) for path in paths for node in ast.walk(ast.parse(path.read_text())))


def is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def walks_trees(node: ast.AST) -> bool:
    """Is it a function that calls itself for the operands of an operation that waits?"""
    if not isinstance(node, ast.FunctionDef):
        return False
    text = ast.unparse(node)
    calls = re.search(rf"\b{re.escape(node.name)}\(", text.partition(":")[2])
    return bool(calls and ".args" in text and "Broadcasted" in text)


def is_cache(node: ast.AST) -> bool:
    """Does a function keep its results, or a module a dictionary that starts empty?"""
    if isinstance(node, ast.FunctionDef):
        return any("cache" in ast.unparse(d) for d in node.decorator_list)
    return isinstance(node, ast.AnnAssign) and node.col_offset == 0 and ast.unparse(node).endswith("= {}")


def imports_inside(node: ast.AST) -> int:
    return is_function(node) and any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(node))


def versions() -> dict[str, set[str]]:
    """Routines by name, with the places that have versions of their own."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for folder, says in VERSIONS.items():
        for path in sources(folder, endings=(".py",)):
            for names in re.findall(rf"^@(?:\w+\.)?{says}\(([^)]*)\)", path.read_text(), re.MULTILINE):
                for name in re.findall(r'"(\w+)"', names):
                    found[name].add(folder)
    return found


def mechanisms() -> dict[str, int]:
    """How often the house does what one place should do."""
    routines = collections.Counter(len(places) for places in versions().values())
    arraytypes, backends = "arraytypes", r"^\s*(from|import) mirabelle\.backends"
    return {
        "lines that read reference counts": lines_with(r"getrefcount|Py_REFCNT", *HOUSE),
        "lines that ask whether memory may be written in place": lines_with(r"\bmay_write\(", *HOUSE),
        "lines that ask whether a value is worth storing": lines_with(r"\bworth_storing\(", *HOUSE),
        "functions that walk trees (Python)": count_nodes(walks_trees, *HOUSE),
        "caches (functions and dictionaries)": count_nodes(is_cache, *HOUSE),
        "imports of backends from arraytypes": lines_with(backends, arraytypes),
        "functions that import": count_nodes(imports_inside, *HOUSE),
        "functions called _": count_nodes(lambda n: is_function(n) and getattr(n, "name", "") == "_", *HOUSE),
        "lines that ask whether somebody counts": lines_with(r"counters\.active", *HOUSE),
        "lines that ask for small_size, few or thread_size": lines_with(
            r"\bsmall_size\b|state\.few\b|\bthread_size\b", *HOUSE
        ),
        "routines of which two places have versions": routines[2],
        "routines of which three places or more have": sum(n for k, n in routines.items() if k > 2),
        "type: ignore and noqa": lines_with(r"type: ignore|noqa|pyright: ignore", *HOUSE),
    }


def run() -> None:
    found = sizes()
    order = sorted(
        found, key=lambda name: (FOLDERS.index(name.split("/")[0]), "/" in name, -found[name]["lines"])
    )
    rows = [[name, *found[name].values()] for name in order]
    total = {k: sum(found[f][k] for f in FOLDERS if f != "tests") for k in ("files", "lines", "code")}
    rows.append(["all but tests", *total.values()])
    show("The house: files, lines, and lines that are neither documentation nor imports",
         ["folder", "files", "lines", "code"], rows, [])  # fmt: skip
    show(
        "Mechanisms, in dispatch, arraytypes and backends",
        ["what", "count"],
        [[k, v] for k, v in mechanisms().items()],
        [],
    )
