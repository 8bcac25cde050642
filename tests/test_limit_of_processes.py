"""A user who may start no further thread or process: statements compute, and NumPy's products still do."""

import os
import shutil
import subprocess
import sys

import pytest
from children import ROOT

PROGRAM = """
import os, resource
import numpy as np, scipy.linalg, numba
import mirabelle as mb

A = np.ones((300, 300))
assert (A @ A)[0, 0] == 300  # (OpenBLAS has its threads)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
x = mb.HostArray(np.arange(200_000.0))
assert float(mb.sum(x * 2 + 1)) == float(np.sum(np.arange(200_000.0) * 2 + 1))
assert float(mb.compile(lambda v: mb.sum(v * 3 + 1))(x)) == float(np.sum(np.arange(200_000.0) * 3 + 1))
assert float(mb.max(mb.broadcast(lambda a: a * 3, x))) == 3 * 199_999.0
assert (A @ A)[0, 0] == 300  # (which ends the process where it has lost its threads, and gets no others)
assert float((mb.HostArray(A) @ mb.HostArray(A))[0, 0]) == 300
print("done")
"""
# (The superuser has no such limit, and another user may not read where Python lies.)
ANOTHER = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=-all,+dac_override,+dac_read_search", "--ambient-caps=-all,+dac_override,+dac_read_search"),
)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_NPROC counts what Linux counts")
def test_under_a_limit_of_processes_all_is_computed(tmp_path):
    command = [sys.executable, "-c", PROGRAM]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MIRABELLE_")}
    environment |= {"MIRABELLE_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    if os.getuid() == 0:
        if (
            shutil.which("setpriv") is None
            or subprocess.run([*ANOTHER, "true"], capture_output=True).returncode
        ):
            pytest.skip("there is no setpriv, or it may not become another user")
        os.chown(tmp_path, 65534, 65534)
        command = [*ANOTHER, *command]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
