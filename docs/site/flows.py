"""The standard problems of `mirabelle.dg`, each with a picture of its solution when the site is built."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import shutil
import time
from pathlib import Path
from typing import Any

from docs.site.docstrings import escaped
from docs.site.links import ROOT

KEPT = ROOT / "build" / "flows"  # pictures of earlier builds, by what they were drawn from

# What is drawn of each, and with which parameters where those of the example take long.
DRAWN: dict[str, tuple[Any, dict[str, Any]]] = {
    "advection": ("u", {}),
    "standing_wave": ("p", {}),
    "acoustic_pulse": ("p", {"cells": 16, "end": 0.6}),
    "maxwell_cavity": ("E3", {}),
    "diffusion": ("u", {"cells": (5, 5), "end": 0.05}),
    "sod": ("rho", {"cells": 60}),
    "shu_osher": ("rho", {"cells": 100, "end": 0.9}),
    "euler_source": ("rho", {}),
    "isentropic_vortex": ("rho", {"end": 1.0}),
    "kelvin_helmholtz": ("rho", {"cells": (12, 12), "end": 2.0}),
    "entropy_conservation": ("rho", {"cells": 16}),
    "double_mach": ("rho", {"cells": (32, 8)}),
    "forward_facing_step": ("rho", {"cells": (45, 15), "end": 1.0}),
    "free_stream": ("p", {"cells": (4, 4, 4), "end": 0.1}),
    "couette": ("rho_v1", {"end": 0.2}),
    "poiseuille": ("rho_v1", {"end": 0.2}),
    "becker_shock": ("rho", {"cells": 20, "end": 0.1}),
    "navier_stokes_manufactured": ("rho", {"cells": (6, 6), "end": 0.1}),
    "taylor_green": ("rho_v1", {"cells": (4, 4, 4), "end": 0.1}),
    "viscous_shock_tube": ("rho", {"cells": (16, 8), "end": 0.4}),
}


def drawn_from(name: str) -> str:
    """What a picture depends on: the package, and what is asked of it."""
    sources = sorted((ROOT / "dg").rglob("*.py"))
    said = b"".join(path.read_bytes() for path in sources) + repr((name, DRAWN[name])).encode()
    return hashlib.sha256(said).hexdigest()[:16]


def picture(name: str, path: Path, quick: bool) -> None:
    """Solve a problem and draw it; a picture that was drawn from the same before is taken as it is.

    `quick` takes any picture of it that is there.
    """
    kept = KEPT / f"{name}-{drawn_from(name)}.png"
    if quick:
        kept = max(KEPT.glob(f"{name}-*.png"), key=lambda found: found.stat().st_mtime, default=kept)
    if not kept.exists():
        field, parameters = DRAWN[name]
        began = time.perf_counter()
        module = importlib.import_module(f"mirabelle.dg.examples.{name}")
        figure = module.run(**parameters).plot(field).figure
        figure.set_size_inches(7, 4.2)
        kept.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(kept, dpi=100, bbox_inches="tight")
        print(f"drew {name} in {time.perf_counter() - began:.0f} s")
    shutil.copy(kept, path)


def about(name: str) -> tuple[str, str]:
    """The title of an example, and what it is about: the first line of its docstring."""
    module = importlib.import_module(f"mirabelle.dg.examples.{name}")
    return name.replace("_", " ").title(), inspect.cleandoc(module.__doc__ or "").split("\n")[0]


def pages(folder: Path, quick: bool = False) -> dict[str, str]:
    """The page of all problems; pictures are written into `folder`."""
    import matplotlib

    matplotlib.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Flows and waves",
        "The standard problems of `mirabelle.dg`: each is a short script in `dg/examples/`, and its command "
        "runs it as it is there (some pictures here are of fewer cells). [The guide](../guide/flow_solver.md) "
        "says how problems of your own are written, [the reference](../reference/dg.md) what there is.",
    ]
    for name in DRAWN:
        picture(name, folder / f"{name}.png", quick)
        heading, said = about(name)
        source = f"[dg/examples/{name}.py](../../dg/examples/{name}.py)"
        parts += [f"## {heading}", escaped(said), f"![{heading}]({name}.png)"]
        parts.append(f"`python -m mirabelle.dg.examples.{name}` ({source})")
    return {"index.md": "\n\n".join(parts) + "\n"}
