"""The screen of the tour: rich where it is installed, plain text where it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator


class Plain:
    """What the tour says, on any terminal."""

    def __init__(self) -> None:
        self.part = 0

    def title(self, text: str) -> None:
        self.part += 1
        print(f"\n{self.part}. {text}\n" + "=" * (len(text) + 3) + "\n")

    def say(self, text: str) -> None:
        print(text + "\n")

    def code(self, text: str) -> None:
        print("\n".join("    " + line for line in text.rstrip().splitlines()) + "\n")

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in [head, ["-" * w for w in widths], *rows]:
            cells = [
                cell.ljust(w) if i < 2 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            print("  ".join(cells).rstrip())
        print()

    def progress(self, steps: range, what: str) -> Iterable[int]:
        print(f"{what} ...", flush=True)
        return steps


class Rich(Plain):
    """The same in colour."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console

        console = Console()
        # Where nothing says how wide the screen is (a pipe, CI), as wide as the tables need.
        self.console = console if console.is_terminal else Console(width=108)

    def title(self, text: str) -> None:
        self.part += 1
        self.console.print()
        self.console.rule(f"[bold magenta]{self.part}[/]  [bold]{text}[/]", align="left", style="magenta")
        self.console.print()

    def say(self, text: str) -> None:
        self.console.print(text + "\n", highlight=False, markup=False)

    def code(self, text: str) -> None:
        from rich.padding import Padding
        from rich.syntax import Syntax

        shown = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text.rstrip())
        shown.rstrip()  # highlighting ends with a line break of its own
        self.console.print(Padding(shown, (0, 0, 1, 4), expand=False))

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        made = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1))
        for i, name in enumerate(head):
            made.add_column(name, justify="left" if i < 2 else "right", no_wrap=i != 1, overflow="fold")
        for row in rows:
            made.add_row(*[Text(cell, style="bold" if i == 0 else "") for i, cell in enumerate(row)])
        self.console.print(made)

    def progress(self, steps: range, what: str) -> Iterator[int]:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=40, complete_style="magenta", finished_style="magenta"),
            TextColumn("{task.completed:.0f}/{task.total:.0f} steps"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console) as bar:
            yield from bar.track(steps, description=what)


def screen() -> Plain:
    with contextlib.suppress(ImportError):
        return Rich()
    return Plain()
