"""The Julia paper's three programs, measured as in its figures 1 to 3: time over problem size.

`python -m benchmarks paper_julia` measures on the host, `python -m benchmarks gpu paper` on a card;
`python -m benchmarks.paper_julia [FOLDER]` draws again what both have stored. `figures` says what is
measured, `peers` has the same programs as NumPy's, CuPy's and JAX's users write them.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["run"]


def run(only: str = "", rounds: int = 0, tiny: bool = False, out: str = "") -> None:
    """Measure the figures whose names contain `only`; a part is stored only where `out` says where."""
    from benchmarks._measure import RESULTS
    from benchmarks.paper_julia import _host

    folder = Path(out) if out else None if tiny or only else RESULTS
    _host.run(only, rounds, tiny, folder)
