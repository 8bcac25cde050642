"""The tour: one program, run with several array types (`python -m mirabelle demo`).

It uses the public interface only, and reads like a user's script.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import mirabelle as mb

# The program. Nothing in it names an array type; `u` and `v` may also be NumPy arrays.


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def step(u, v, feed, kill):
    """Two substances diffuse; v eats u and multiplies; u is fed, v is removed."""
    U, V = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = U * V * V
    du = 0.16 * laplacian(u) - reaction + feed * (1 - U)
    dv = 0.08 * laplacian(v) + reaction - (feed + kill) * V
    u[1:-1, 1:-1] = U + du
    v[1:-1, 1:-1] = V + dv


def domeigen(A, v, steps, seen):
    """The dominant eigenvalue of A by power iteration."""
    for _ in range(steps):
        w = A @ v
        seen.append(mb.dot(v, w))
        v = w / mb.norm(w)
    return mb.dot(v, A @ v)


# The data


def start(n: int) -> tuple[Any, ...]:
    """The two substances at the beginning, and a feed rate that rises from left to right."""
    random = np.random.default_rng(4)
    u, v = np.ones((n, n)), np.zeros((n, n))
    for _ in range(n // 6):
        i, j = random.integers(6, n - 6, 2)
        u[i - 3 : i + 3, j - 3 : j + 3] = 0.5
        v[i - 3 : i + 3, j - 3 : j + 3] = 0.25
    return u, v, np.linspace(0.018, 0.056, n - 2)


KILL = 0.061


def transposed(x: Any) -> Any:
    """The same array, stored the other way round and seen through a Transpose."""
    return mb.HostArray(np.ascontiguousarray(x.T)).T


def framed(x: Any) -> Any:
    """The same array as the inner part of a larger one, seen through a View."""
    pad = np.zeros([n + 16 for n in x.shape])
    inner = tuple(slice(8, -8) for _ in x.shape)
    pad[inner] = x
    return mb.HostArray(pad)[inner]


def spectrum(n: int) -> Any:
    """A symmetric matrix whose eigenvalues are 1, 0.8, 0.8², …"""
    q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))
    return (q * 0.8 ** np.arange(n)) @ q.T


# The screen: rich where it is installed, plain text where it is not


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


# Measuring


def evaluated(*arrays: Any) -> None:
    for x in arrays:
        if isinstance(x, mb.AbstractArray):
            mb.materialize(x)


def timed(state: list[Any], seconds: float = 0.6) -> float:
    """The median time of a step, once its kernels are compiled."""
    from mirabelle.backends.host import kernels

    for _ in range(3):
        step(*state)
        evaluated(*state)
        kernels.settle()
    times: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(times) < 5:
        before = time.perf_counter()
        step(*state)
        evaluated(*state)
        times.append(time.perf_counter() - before)
    return float(np.median(times))


def agreement(x: Any, expected: Any) -> str:
    """How well a result agrees with NumPy's."""
    got = x if isinstance(x, np.ndarray) else mb.to_numpy(x)
    if np.array_equal(got, expected):
        return "the same bits"
    return f"{np.max(np.abs(got - expected)):.1e} apart"


# The parts of the tour


def swap(out: Plain, n: int, small: int) -> list[tuple[str, float, str]]:
    """The program with each constructor: agreement with NumPy, launches, time."""
    constructors: list[tuple[str, int, Callable[[Any], Any]]] = [
        ("np.array", n, np.array),
        ("mb.HostArray", n, mb.HostArray),
        ("transposed", n, transposed),
        ("framed", n, framed),
        ("np.array", small, np.array),
        ("mb.RefArray", small, mb.RefArray),
    ]
    rows: dict[int, list[list[str]]] = {n: [], small: []}
    bars: list[tuple[str, float, str]] = []
    expected: dict[int, Any] = {}
    for name, size, array in constructors:
        state = [*(array(x) for x in start(size)), KILL]
        for _ in range(4):
            step(*state)
        u = state[0]
        kind, same, launches = "numpy.ndarray", "", ""
        if isinstance(u, mb.AbstractArray):
            kind = type(u).__name__
            same = agreement(u, expected[size])
            with mb.count() as c:
                step(*state)
                evaluated(*state)
            launches = str(c.launches)
        else:
            expected[size] = u.copy()
        row = [name, kind, same, launches]
        if size == n:
            took = timed(state)
            bars.append((f"{name}\n{kind}", took, same))
            row += [f"{took * 1e3:.2f} ms", f"{bars[0][1] / took:.1f}x"]
        rows[size].append(row)
    head = ["made by", "type of u", "beside NumPy", "launches"]
    out.say(
        f"A {n}x{n} grid; u beside NumPy's after 4 steps, kernels and time of a further step\n"
        f"(NumPy computes on one thread, the kernels on {mb.settings.num_threads}):"
    )
    out.table([*head, "a step", "speed"], rows[n])
    out.say(
        f"A device, on a grid of {small}x{small}, small because Python executes each thread of its kernels\n"
        "and checks each load and store:"
    )
    out.table(head, rows[small])
    return bars


def eigenvalues(out: Plain) -> dict[str, list[float]]:
    """Power iteration with each constructor; returns the errors on the way."""
    steps, n = 80, 64
    matrix, vector = spectrum(n), np.ones(n)
    errors, rows = {}, []
    constructors: list[tuple[str, Callable[[Any], Any]]] = [
        ("mb.HostArray", mb.HostArray),
        ("transposed", transposed),
        ("framed", framed),
        ("mb.RefArray", mb.RefArray),
    ]
    for name, array in constructors:
        seen: list[Any] = []
        v = array(vector)
        found = domeigen(array(matrix), v / mb.norm(v), steps, seen)
        rows.append([name, type(array(matrix)).__name__, f"{float(mb.to_numpy(found)):.15f}"])
        errors[name] = [abs(float(mb.to_numpy(x)) - 1.0) for x in seen]
    out.table(["made by", "type of A", f"eigenvalue after {steps} iterations"], rows)
    return errors


def overriding(out: Plain) -> None:
    """A method replaced for a block, and only there."""

    def largest(x: Any, p: Any = 2) -> Any:
        return mb.max(mb.abs(x))

    A, v = mb.HostArray(spectrum(64)), mb.HostArray(np.ones(64))
    before = mb.which(mb.norm, v)
    with mb.override(mb.norm, (mb.HostArray,), largest):
        w = A @ v
        w = w / mb.norm(w)
        inside = float(mb.max(mb.abs(w)))
        during = mb.which(mb.norm, v)
    out.code(
        "with mb.override(mb.norm, (mb.HostArray,), lambda x, p=2: mb.max(mb.abs(x))):\n"
        "    w = A @ v\n"
        "    w = w / mb.norm(w)      # scaled so that the largest entry is 1"
    )
    out.say(
        f"mb.norm before:  {_short(before)}\n"
        f"inside:          {_short(during)}\n"
        f"the largest entry of w came out as {inside}; after the block mb.norm is what it was:\n"
        f"                 {_short(mb.which(mb.norm, v))}"
    )


def _short(method: Any) -> str:
    return f"{method!r}".replace(os.path.dirname(os.path.dirname(method.file)) + os.sep, "")


def refusals(out: Plain) -> None:
    """What a device refuses, in its own words."""
    x = mb.RefArray([1.0, 2.0, 3.0])
    attempts: list[tuple[str, Callable[[], Any]]] = [
        ("x + np.ones(3)", lambda: x + np.ones(3)),
        ("np.asarray(x)", lambda: np.asarray(x)),
        ("for i in range(3): total += float(x[i])", lambda: float(x[0])),
    ]
    with mb.allow_scalar(False):
        for text, attempt in attempts:
            try:
                attempt()
            except mb.MirabelleError as e:
                out.code(f">>> {text}\n" + _wrapped(f"{type(e).__name__}: {e}"))


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, 88, subsequent_indent="    "))


def evolve(out: Plain, n: int, steps: int) -> tuple[list[tuple[int, Any]], float]:
    """The pattern: snapshots of v on the way, and the time all steps took."""
    state = [*(mb.HostArray(x) for x in start(n)), KILL]
    wanted = {steps // 40, steps // 10, steps // 3}
    shots = []
    began = time.perf_counter()
    for k in out.progress(range(steps), f"a {n}x{n} HostArray"):
        step(*state)
        if k + 1 in wanted:
            shots.append((k + 1, mb.to_numpy(state[1])))
    took = time.perf_counter() - began
    shots.append((steps, mb.to_numpy(state[1])))
    return shots, took


def tour(folder: str = "demo_out", quick: bool = False) -> int:
    """Run the tour; returns the exit status. The picture goes to `folder`/tour.png."""
    out = screen()
    began = time.perf_counter()

    out.title("One program")
    out.say(
        "Gray and Scott's reaction and diffusion of two substances on a grid, in plain array code.\n"
        "Nothing in it names an array type."
    )
    out.code(inspect.getsource(step))

    out.title("Operations build a tree, and a tree becomes one kernel")
    u, v, _ = (mb.HostArray(x) for x in start(256))
    U, V = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = U * V * V
    shown = mb.explain(0.08 * laplacian(v) + reaction - (0.03 + KILL) * V)
    out.say("mb.explain(0.08 * laplacian(v) + reaction - (feed + kill) * V), before anything ran:")
    facts = ["launches", "bytes read", "bytes written", "one operation at a time", "runs as"]
    out.code("\n".join(f"{name:<24} {shown.facts[name]}" for name in facts if name in shown.facts))
    lines = shown.source.splitlines()
    body = next((i for i, line in enumerate(lines) if "for row in" in line), 0)
    out.say("The kernel, from its loop on:")
    out.code("\n".join(lines[body:]))

    out.title("Swap the constructor, keep the program")
    bars = swap(out, 512, 18)

    out.title("Another program: power iteration")
    out.code(inspect.getsource(domeigen))
    out.say("For a matrix whose eigenvalues are 1, 0.8, 0.8², ... :")
    errors = eigenvalues(out)

    out.title("Override a method, for a block")
    overriding(out)

    out.title("What a device refuses")
    refusals(out)

    out.title("The pattern")
    n, steps = 240, 400 if quick else 4000
    shots, took = evolve(out, n, steps)
    out.say(f"{steps} steps in {took:.1f} s, {took / steps * 1e3:.2f} ms each.")
    try:
        path = picture(folder, shots, bars, errors)
        out.say(f"The picture: {path}")
    except ImportError:
        out.say("There is no picture because matplotlib is not installed: pip install 'mirabelle[plot]'.")
    out.say(f"The tour took {time.perf_counter() - began:.0f} s.")
    return 0


# The picture

PAPER, INK, FAINT = "#14101a", "#f3e9dc", "#8d8494"
COLOURS = ["#f2b134", "#e8615a", "#c65fa4", "#9a8cf5"]


def picture(
    folder: str,
    shots: list[tuple[int, Any]],
    bars: list[tuple[str, float, str]],
    errors: dict[str, list[float]],
) -> str:
    """Draw the results of the tour; returns the file's path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    colours = LinearSegmentedColormap.from_list(
        "mirabelle", ["#14101a", "#3b1f4a", "#8f2d63", "#e2604a", "#f6b73c", "#fff3c4"]
    )
    # The outermost cells are the fixed edge, where v piles up: the picture leaves them out.
    shots = [(k, v[8:-8, 8:-8]) for k, v in shots]
    top = max(float(v.max()) for _, v in shots)
    figure = Figure(figsize=(15, 8.6), facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.text(0.035, 0.945, "One program, any array", color=INK, size=23, weight="bold")
    figure.text(
        0.035, 0.905, "mirabelle: the user swaps the array constructor, and dispatch does the rest",
        color=FAINT, size=12.5,
    )  # fmt: skip

    last, final = shots[-1]
    ax = figure.add_axes((0.035, 0.09, 0.455, 0.455 * 15 / 8.6))
    ax.imshow(final, cmap=colours, vmin=0, vmax=top, interpolation="bicubic")
    ax.set_axis_off()
    n = final.shape[0] + 16
    figure.text(
        0.035, 0.045,
        f"Gray–Scott reaction and diffusion: v after {last} steps on a {n}×{n} HostArray. "
        "The feed rate rises from left to right.",
        color=FAINT, size=10,
    )  # fmt: skip

    for i, (k, v) in enumerate(shots[:-1]):
        ax = figure.add_axes((0.535 + i * 0.15, 0.655, 0.13, 0.13 * 15 / 8.6))
        ax.imshow(v, cmap=colours, vmin=0, vmax=top, interpolation="bicubic")
        ax.set_axis_off()
        ax.set_title(f"step {k}", color=FAINT, size=10, loc="left", pad=4)

    ax = figure.add_axes((0.645, 0.365, 0.32, 0.215))
    styled(ax)
    names, times = [b[0] for b in bars], [b[1] * 1e3 for b in bars]
    ax.barh(names, times, color=[FAINT, *COLOURS][: len(bars)], height=0.66)
    for i, t in enumerate(times):
        ax.text(t + max(times) * 0.015, i, f"{t:.2f} ms", color=INK, size=10, va="center")
    ax.invert_yaxis()
    agree = all(b[2] == "the same bits" for b in bars[1:])
    title = "One step on a 512×512 grid" + (", all with the same bits" if agree else "")
    ax.set_xlim(0, max(times) * 1.16)
    ax.set_xticks([])
    ax.tick_params(axis="y", labelsize=8.5, colors=INK, length=0)
    ax.spines["bottom"].set_visible(False)
    ax.set_title(title, color=INK, size=12, loc="left", pad=8)

    ax = figure.add_axes((0.575, 0.09, 0.39, 0.195))
    styled(ax)
    shapes = ["o", "s", "^", "D"]
    for i, (name, error) in enumerate(errors.items()):
        y = np.maximum(error, 1e-17)
        # All four lie on one line: each marks its own iterations.
        ax.semilogy(
            np.arange(len(y))[2 * i :: 8],
            y[2 * i :: 8],
            shapes[i],
            color=COLOURS[i],
            label=name,
            ms=6,
            mec=PAPER,
            mew=0.6,
        )
    ax.set_ylim(1e-17, 5)
    ax.set_yticks([1e-16, 1e-8, 1])
    ax.minorticks_off()
    ax.grid(axis="y", color="#2c2534", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("iteration", color=FAINT, size=10)
    ax.tick_params(colors=FAINT, labelsize=9, length=0)
    ax.set_title("Power iteration: error of the eigenvalue", color=INK, size=12, loc="left", pad=8)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower left", ncols=2, handletextpad=0.2)

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "tour.png")
    figure.savefig(path, dpi=120, facecolor=PAPER)
    return path


def styled(ax: Any) -> None:
    ax.set_facecolor(PAPER)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color("#40384a")
