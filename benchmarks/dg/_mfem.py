"""MFEM's ex18 beside ours: asked of the Python that MFEM_PYTHON names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

WAYS = ("ea", "mf", "classes")
MISSING = (
    "MFEM was not there: set MFEM_PYTHON to a Python that has PyMFEM "
    "(python -m venv mfem; mfem/bin/pip install mfem)."
)
LIMIT_S = 300.0


def there() -> bool:
    return bool(os.environ.get("MFEM_PYTHON"))


def run(**options: Any) -> dict[str, Any]:
    """`_mfem_programs.run` in MFEM's Python, on one core."""
    script = Path(__file__).with_name("_mfem_programs.py")
    try:
        done = subprocess.run(
            [os.environ["MFEM_PYTHON"], str(script), json.dumps(options)],
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"failed": (done.stderr.strip().splitlines() or ["it gave no answer"])[-1][:300]}
    return found
