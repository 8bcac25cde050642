"""A gmsh file of many triangles that is divided beforehand: what each process holds of it.

`python -m benchmarks dg parts [--quick]` writes the file, runs `python -m mirabelle dg partition FILE -n 4`,
and has four processes read their parts.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show

CELLS, PROCESSES = 5_000_000, 4
METHOD = (
    "A square of triangles in a binary file of MSH 4.1. MB are 10^6 bytes: of the file, of what the process "
    "that divides it took at its peak, and of each process that reads its part what it holds of the mesh and "
    "what it held at its peak while it read (all memory of Python and NumPy, by tracemalloc)."
)


def write_square(path: Path, n: int) -> int:
    """A square of n by n squares of two triangles, with its sides as one group; returns the number of cells.

    >>> import tempfile
    >>> from mirabelle import dg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cells = write_square(Path(folder, "a.msh"), 3)
    ...     print(cells, dg.read_mesh(Path(folder, "a.msh")))
    18 Mesh(18 triangles of order 1 in 2 dimensions; boundaries wall: 12)
    """
    grid = np.arange(1, (n + 1) ** 2 + 1).reshape(n + 1, n + 1)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    triangles = np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], 2).reshape(-1, 3)
    ring = np.concatenate([grid[:-1, 0], grid[-1, :-1], grid[:0:-1, -1], grid[0, :0:-1]])
    lines = np.stack([ring, np.roll(ring, -1)], 1)
    x = np.zeros((grid.size, 3))
    x[:, 0], x[:, 1] = np.repeat(np.arange(n + 1), n + 1) / n, np.tile(np.arange(n + 1), n + 1) / n
    box = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    with path.open("wb") as file:

        def put(*words: Any) -> None:
            for word in words:
                file.write(word if isinstance(word, bytes) else np.asarray(word).tobytes())

        def entity(tag: int, groups: list[int]) -> None:
            put(np.int32(tag), box, np.int64(len(groups)), np.int32(groups), np.int64(0))

        def elements(dim: int, kind: int, first: int, nodes: np.ndarray) -> None:
            put(np.int32([dim, 1, kind]), np.int64(len(nodes)))
            put(np.concatenate([np.arange(first, first + len(nodes))[:, None], nodes], 1))

        put(b"$MeshFormat\n4.1 1 8\n", np.int32(1), b"\n$EndMeshFormat\n")
        put(b'$PhysicalNames\n1\n1 1 "wall"\n$EndPhysicalNames\n')
        put(b"$Entities\n", np.int64([0, 1, 1, 0]))
        entity(1, [1])
        entity(1, [])
        put(b"\n$EndEntities\n$Nodes\n", np.int64([1, grid.size, 1, grid.size]))
        put(np.int32([2, 1, 0]), np.int64(grid.size), grid.ravel(), x, b"\n$EndNodes\n")
        count = len(lines) + len(triangles)
        put(b"$Elements\n", np.int64([2, count, 1, count]))
        elements(1, 1, 1, lines)
        elements(2, 2, 1 + len(lines), triangles)
        put(b"\n$EndElements\n")
    return len(triangles)


def run(only: str = "", quick: bool = False, folder: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="mirabelle-parts-") as where:
        file, parts, answer = Path(where, "square.msh"), Path(where, "square.parts"), Path(where, "answer.json")
        cells = write_square(file, round(((10_000 if quick else CELLS) / 2) ** 0.5))
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mirabelle", "dg", "partition", str(file), "-n", str(PROCESSES)],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        seconds = time.perf_counter() - began
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        line = [
            sys.executable,
            "-m",
            "mirabelle",
            "run",
            "-n",
            str(PROCESSES),
            "-m",
            "benchmarks.dg._parts_program",
        ]
        subprocess.run([*line, str(parts), str(answer)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        each = json.loads(answer.read_text())
        size = file.stat().st_size
    most = max(e["peak_bytes"] for e in each)
    rows = [
        [str(e["cells"]), mega(e["held_bytes"]), mega(e["peak_bytes"]), f"{e['seconds']:.2f}"] for e in each
    ]
    said = f"{cells} triangles, a file of {mega(size)} MB, divided in {seconds:.0f} s with {mega(took)} MB"
    ends = f"At its peak a process held {most / size:.3f} of the file's size."
    show(said, ["cells", "held MB", "peak MB", "seconds"], rows, [METHOD, ends])
    if folder is not None:
        found = {"cells": cells, "file_bytes": size, "divided_in_s": seconds, "divided_with_bytes": took}
        store("dg_parts", {"method": METHOD, **found, "processes": each, "share_at_peak": most / size}, folder)


def mega(n: float) -> str:
    return f"{n / 1e6:.1f}"
