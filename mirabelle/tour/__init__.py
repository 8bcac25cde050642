"""The tour: programs written once, run with several array types (`python -m mirabelle demo`).

It uses the public interface, and its programs read like a user's script.
"""

from __future__ import annotations

import time

from mirabelle.tour import grid, paper, policy
from mirabelle.tour.picture import picture
from mirabelle.tour.screen import screen


def tour(folder: str = "demo_out", quick: bool = False) -> int:
    """Run the tour; returns the exit status. The picture goes to `folder`/tour.png."""
    out = screen()
    began = time.perf_counter()

    out.title("One program")
    grid.program(out)

    out.title("Operations build a tree, and a tree becomes one kernel")
    grid.one_kernel(out)

    out.title("Swap the constructor, keep the program")
    bars = grid.swap(out, 512, 18, 0.1 if quick else 0.6)

    out.title("Linear algebra: power iteration, on dense and structured matrices")
    errors = paper.eigenvalues(out, quick)

    out.title("Declare an array type, then make it fast by one method")
    norms = paper.kronecker(out, quick)

    out.title("Differentiate any program: proximal gradient descent")
    losses = paper.descent(out, quick)

    out.title("Override a method, for a block")
    policy.overriding(out)

    out.title("What is refused")
    policy.refusals(out)

    out.title("The pattern")
    n, steps = 240, 400 if quick else 4000
    shots, took = grid.evolve(out, n, steps)
    out.say(f"{steps} steps in {took:.1f} s, {took / steps * 1e3:.2f} ms each.")
    try:
        path = picture(folder, shots, bars, errors, norms, losses)
        out.say(f"The picture: {path}")
    except ImportError:
        out.say("There is no picture because matplotlib is not installed: pip install 'mirabelle[plot]'.")
    out.say(f"The tour took {time.perf_counter() - began:.0f} s. The notebooks tell more: notebooks/.")
    return 0
