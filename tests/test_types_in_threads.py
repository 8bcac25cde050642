"""What is made on demand is one each, whichever threads ask for it first."""

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


ORIGINS = """
import mmap, threading, time, types
import numpy as np
import mirabelle as mb
from mirabelle.arraytypes import proxies
def slowly(*args, **options):
    time.sleep(0.05)
    return mmap.mmap(*args, **options)
proxies.mmap = types.SimpleNamespace(**{**vars(mmap), "mmap": slowly})
barrier = threading.Barrier(8)
found = []
def run():
    barrier.wait()
    x = proxies.proxy_of((4,), np.dtype(float))
    found.append((proxies.offset_of(x), proxies.offset_of(x[1:])))
threads = [threading.Thread(target=run) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert set(found) == {(0, 8)}, found
"""


def test_views_of_memory_elsewhere_have_one_origin():
    subprocess.run([sys.executable, "-c", ORIGINS], check=True)
