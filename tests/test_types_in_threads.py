"""Types that are made on demand are one each, whichever threads ask for them first."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
import mirabelle as mb
from mirabelle.arraytypes.programs.traced import family_for
sys.setswitchinterval(1e-6)
found, errors = [], []
barrier = threading.Barrier(8)
def run():
    try:
        barrier.wait()
        made = {how}
        found.append((made, made.view_type))
    except BaseException as e:
        errors.append(repr(e))
threads = [threading.Thread(target=run) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not errors and len(set(found)) == 1, (errors, found)
"""


@pytest.mark.parametrize(
    "how", ["mb.DArray[mb.HostArray]", "mb.DArray[mb.RefArray]", "family_for(mb.HostArray)"]
)
def test_a_type_is_made_once(how):
    for _ in range(3):
        subprocess.run([sys.executable, "-c", PROGRAM.format(how=how)], check=True)
