"""Running Python elsewhere: fresh processes with settings of their own."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).parents[1]


def start(code, **settings):
    """A fresh Python that runs `code`, with MIRABELLE_ settings given by their names."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MIRABELLE_")}
    environment |= {f"MIRABELLE_{k.upper()}": str(v) for k, v in settings.items()}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def finish(process):
    """What a process printed last, as JSON; its errors are ours."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.strip().splitlines()[-1])


def answer(code, **settings):
    return finish(start(code, **settings))
