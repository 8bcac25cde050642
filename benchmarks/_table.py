"""Tables on the terminal: through rich where it is installed, plain otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Sequence


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = ()) -> None:
    """Print a table; the first column is text, the others are aligned to the right."""
    cells = [[str(c) for c in row] for row in rows]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _plain(title, head, cells)
    else:
        table = Table(title=title, title_justify="left")
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
        for row in cells:
            table.add_row(*row)
        widths = [max(len(r[i]) for r in [list(head), *cells]) + 3 for i in range(len(head))]
        width = max(shutil.get_terminal_size().columns, sum(widths) + 1)
        Console(width=width, markup=False, highlight=False).print(table)
    for note in notes:
        print(note)
    print(flush=True)


def _plain(title: str, head: Sequence[str], cells: list[list[str]]) -> None:
    widths = [max(len(r[i]) for r in [list(head), *cells]) for i in range(len(head))]
    print(title)
    for row in [list(head), ["-" * w for w in widths], *cells]:
        first, *rest = [
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join([first, *rest]))
