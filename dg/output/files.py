"""Files that are whole or not there: written beside their place, and moved there at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` if all goes well; a file there survives failures.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "new", "a.txt")) as fresh:
    ...         _ = fresh.write_text("whole")
    ...     Path(folder, "new", "a.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays the last part of the name: some libraries tell the format by it.
    fresh = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield fresh
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
