"""The cache of compiled kernels: shared by processes, and never trusted blindly."""

import os
import shutil
import signal
import socket
import stat
import time
import warnings

import numpy as np
import pytest
from children import answer, finish, start
from ways import running

import mirabelle as mb
from mirabelle.backends.codegen import program
from mirabelle.backends.host import diskcache, kernels, shortcuts

# A kernel of its own, compiled inline, whose result shows that it is right.
PROGRAM = """
    import json, sys
    import numpy as np
    import mirabelle as mb
    x = mb.HostArray(np.arange(5000.0))
    with mb.count() as c:
        y = mb.to_numpy(mb.sqrt(x) * 3.25 - x / 7)
    expected = np.sqrt(np.arange(5000.0)) * 3.25 - np.arange(5000.0) / 7
    from mirabelle.backends.host import kernels
    print(json.dumps({
        "right": bool((y == expected).all()),
        "compiled": kernels.compilations,
        "numba": "numba" in sys.modules,
    }))
"""
INLINE = {"compiler": "inline", "compile_size": 1, "small_size": 0, "num_threads": 2}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder for this test alone, and no kernels in memory."""
    where = tmp_path / "kernels"
    monkeypatch.setattr(diskcache, "_warned", False)
    # (A kernel, however few its elements.)
    with running("hot"), mb.settings.changed(cache_dir=str(where), immediate_size=0):
        yield where


def forget():
    """What a new process would not know."""
    kernels.clear()
    program._programs.clear()
    shortcuts.known.clear()


def compute():
    """Run one kernel, which is found, or compiled and kept; how often it was compiled."""
    forget()
    values = np.arange(300.0)
    x = mb.HostArray(values)
    with mb.count() as c:
        got = mb.to_numpy(mb.floor(x * 0.375) - x * x)
    np.testing.assert_array_equal(got, np.floor(values * 0.375) - values * values)
    return c.compilations


def entries(folder):
    return sorted(folder.glob("*.kernel"))


def test_a_kernel_is_kept_and_found(folder):
    assert compute() == 1
    (entry,) = entries(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not entry.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    assert compute() == 0, "the second time it comes from the disk"
    assert not list(folder.glob(".new-*")), "no temporary files are left"


def damage_truncated(entry):
    entry.write_bytes(entry.read_bytes()[:-100])


def damage_flipped(entry):
    data = bytearray(entry.read_bytes())
    data[-500] ^= 0xFF
    entry.write_bytes(bytes(data))


def damage_emptied(entry):
    entry.write_bytes(b"")


def damage_replaced(entry):
    entry.write_bytes(os.urandom(5000))


def damage_of_another_version(entry):
    entry.write_bytes(entry.read_bytes().replace(b"mirabelle kernel 1", b"mirabelle kernel 0", 1))


def damage_of_another_key(entry):
    """A whole and valid entry, but of another kernel: a file renamed."""
    data = entry.read_bytes()
    key = entry.stem.encode()
    entry.write_bytes(data.replace(key, key[::-1], 1))


def damage_writable_by_others(entry):
    entry.chmod(0o666)


DAMAGES = {k[7:]: v for k, v in globals().items() if k.startswith("damage_")}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_and_foreign_entries_are_ignored_with_one_warning(folder, damage):
    compute()
    (entry,) = entries(folder)
    DAMAGES[damage](entry)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert compute() == 1, "it is compiled anew"
        DAMAGES[damage](entry)
        compute()
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert str(folder) in str(warning.message) and "MIRABELLE_CACHE_DIR" in str(warning.message)


def no_file_pipe(entry):
    os.mkfifo(entry)


def no_file_folder(entry):
    entry.mkdir()


def no_file_socket(entry):
    with socket.socket(socket.AF_UNIX) as s:
        before = os.getcwd()
        os.chdir(entry.parent)  # (the names of sockets are short)
        s.bind("s")
        os.replace("s", entry)
        os.chdir(before)


def no_file_device(entry):
    entry.symlink_to("/dev/zero")


NO_FILES = {k[8:]: v for k, v in globals().items() if k.startswith("no_file_")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files")
@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_regular_file_is_not_read(folder, what):
    """A pipe would be waited for, a device may do anything and never ends."""
    compute()
    (entry,) = entries(folder)
    entry.unlink()
    NO_FILES[what](entry)
    with pytest.warns(RuntimeWarning, match="no regular file"):
        assert compute() == 1, "it is compiled"
    lock = entry.with_suffix(".lock")
    lock.mkdir() if what == "folder" else NO_FILES[what](lock)
    compute()


def test_a_folder_at_home_is_found_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with mb.settings.changed(cache_dir="~/kernels"):
        assert diskcache.folder() == tmp_path / "kernels"
    assert os.listdir(tmp_path) == ["kernels"]


def test_one_process_makes_an_entry_that_several_want(tmp_path):
    """They wait for each other, not for one that died; and what was made is not made again."""
    code = """
        import json, os, sys, time
        from mirabelle.backends.host import diskcache
        def make():
            with open("made", "a") as f:
                f.write("x")
            time.sleep(0.3)
            if len(open("made").read()) == 1:
                os._exit(0)
            return b"code", "symbol"
        os.chdir(os.path.dirname(os.environ["MIRABELLE_CACHE_DIR"]))
        found = diskcache.read_or_make("key", make, diskcache.folder())
        print(json.dumps(found[1:]))
        """
    processes = [start(code, cache_dir=tmp_path / "kernels") for _ in range(4)]
    said = [p.communicate(timeout=60)[0].strip() for p in processes]
    assert sorted(said) == ["", '["symbol", false]', '["symbol", false]', '["symbol", true]']
    assert (tmp_path / "made").read_text() == "xx"
    assert os.listdir(tmp_path / "kernels") == ["key.kernel"]


def test_a_lock_that_nobody_gives_back_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(diskcache, "_PATIENCE", 0.1)
    with open(tmp_path / "key.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert diskcache.read_or_make("key", lambda: (b"code", "symbol"), tmp_path) == (b"code", "symbol", True)
    assert diskcache.read_or_make("key", lambda: None, tmp_path) == (b"code", "symbol", False)


def test_a_damaged_entry_is_replaced_by_a_good_one(folder):
    compute()
    (entry,) = entries(folder)
    damage_truncated(entry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compute()
    assert compute() == 0


def test_an_entry_is_never_executed_unless_its_hash_fits(folder, monkeypatch):
    from mirabelle.backends.host import compiler

    compute()
    (entry,) = entries(folder)
    damage_flipped(entry)
    damaged = entry.read_bytes()
    loaded = []
    original = compiler.load
    monkeypatch.setattr(compiler, "load", lambda code, symbol: loaded.append(code) or original(code, symbol))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compute()
    assert loaded and not any(code in damaged for code in loaded)


def test_a_symbolic_link_or_folder_in_place_of_an_entry(folder, tmp_path):
    compute()
    (entry,) = entries(folder)
    moved = tmp_path / "elsewhere"
    shutil.move(entry, moved)
    entry.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compute()


def test_a_folder_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setattr(diskcache, "_warned", False)
    with running("hot"), mb.settings.changed(cache_dir=str(open_to_all), immediate_size=0):
        with pytest.warns(RuntimeWarning, match="others may write"):
            assert diskcache.folder() is None
        assert compute() == 1
    assert not entries(open_to_all)


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    """A read-only home is no reason to stop: kernels live in memory then."""
    (tmp_path / "file").write_text("")
    with running("hot"), mb.settings.changed(cache_dir=str(tmp_path / "file" / "kernels"), immediate_size=0):
        assert diskcache.folder() is None
        assert compute() == 1


def test_a_folder_that_became_read_only(folder):
    compute()
    forget()
    folder.chmod(0o500)
    try:
        values = np.arange(300.0)
        got = mb.to_numpy(mb.ceil(mb.HostArray(values) * 0.4375))
        np.testing.assert_array_equal(got, np.ceil(values * 0.4375))
        assert compute() == 0
    finally:
        folder.chmod(0o700)


def test_a_folder_that_vanished(folder):
    compute()
    shutil.rmtree(folder)
    assert compute() == 1


def test_the_cache_can_be_switched_off(folder):
    with mb.settings.changed(cache=False):
        assert compute() == 1
        assert compute() == 1
    assert not folder.exists() or not entries(folder)


def test_a_second_process_runs_from_the_cache_without_numba(tmp_path):
    settings = {**INLINE, "cache_dir": tmp_path / "kernels"}
    first = answer(PROGRAM, **settings)
    assert first["right"] and first["compiled"] == 1
    second = answer(PROGRAM, **settings)
    assert second == {"right": True, "compiled": 0, "numba": False}


def test_processes_fill_one_cache_at_once(tmp_path):
    settings = {**INLINE, "cache_dir": tmp_path / "kernels"}
    started = [start(PROGRAM, **settings) for _ in range(4)]
    assert all(finish(p)["right"] for p in started)
    assert not list((tmp_path / "kernels").glob(".new-*"))
    assert answer(PROGRAM, **settings)["compiled"] == 0


def test_a_process_killed_while_it_writes_leaves_no_broken_entry(tmp_path):
    settings = {**INLINE, "cache_dir": tmp_path / "kernels"}
    killed = (
        """
        import os, signal
        import numpy as np
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    """
        + PROGRAM
    )
    process = start(killed, **settings)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert answer(PROGRAM, **settings)["right"]


def test_the_helper_process_compiles_in_the_background(tmp_path):
    said = answer(
        """
        import json, sys, time
        import numpy as np
        import mirabelle as mb
        from mirabelle.backends.host import kernels
        values = np.arange(500_000.0)
        x = mb.HostArray(values)
        rights = []
        for _ in range(500):  # it takes what it takes, but not for ever
            rights.append(bool((mb.to_numpy(x * 2.5 - 1) == values * 2.5 - 1).all()))
            known = mb.explain(x * 2.5 - 1).facts["runs as"]
            if "in memory" in known:
                break
            time.sleep(0.1)
        rights.append(bool((mb.to_numpy(x * 2.5 - 1) == values * 2.5 - 1).all()))
        print(json.dumps({"right": all(rights), "known": known, "numba": "numba" in sys.modules}))
        """,
        compiler="process",
        cache_dir=tmp_path / "kernels",
    )
    assert said["right"] and "in memory" in said["known"] and not said["numba"]


def test_a_helper_process_that_dies_is_survived(tmp_path):
    said = answer(
        """
        import json
        import numpy as np
        import mirabelle as mb
        from mirabelle.backends.host import kernels
        import llvmlite.binding
        values = np.arange(500_000.0)
        x = mb.HostArray(values)
        mb.materialize(x * 2.5 - 1)
        kernels._helpers.process.kill()
        kernels.settle()
        right = (mb.to_numpy(x * 2.5 - 1) == values * 2.5 - 1).all()
        right &= (mb.to_numpy(mb.sqrt(x) + 1) == np.sqrt(values) + 1).all()
        kernels.settle()
        print(json.dumps(bool(right)))
        """,
        compiler="process",
        cache_dir=tmp_path / "kernels",
    )
    assert said


def test_a_program_that_is_slow_without_kernels_waits_for_them(tmp_path):
    """On a machine without a free core they would hardly come while it runs step by step."""
    said = answer(
        """
        import json
        import numpy as np
        import mirabelle as mb
        from mirabelle.backends.host import plans
        plans.PATIENCE, plans.WAITING = 0.0, 1e6
        values = np.arange(50_000.0)
        f = mb.compile(lambda x: mb.sum(mb.sin(x) * x + 1))
        found = []
        for _ in range(3):
            x = mb.HostArray(values)
            y = float(f(x))
            runner = f.program(x).runner
            found.append([runner.segments is not None, runner.waited > 0])
        print(json.dumps([found, bool(np.isclose(y, (np.sin(values) * values + 1).sum()))]))
        """,
        compiler="process",
        cache_dir=tmp_path / "kernels",
    )
    assert said == [[[False, False], [True, True], [True, True]], True]


REFUSED = """
    import json, subprocess, threading, time
    import numpy as np
    import mirabelle as mb
    from mirabelle.backends.host import background, kernels, threads
    start, popen = threading.Thread.start, subprocess.Popen
    refused = []
    def refuse(self, *args, **kwargs):
        refused.append(type(self).__name__)
        raise RuntimeError("can't start new thread")
    def no_process(*args, **kwargs):
        refused.append("process")
        raise BlockingIOError(11, "Resource temporarily unavailable")
    threading.Thread.start, subprocess.Popen = refuse, no_process
    values = np.arange(1e6)
    x = mb.HostArray(values)
    f = mb.compile(lambda x: mb.sum(mb.sqrt(x) * 2.5))
    def right():
        sums = float(f(x)) == float(mb.sum(mb.sqrt(x) * 2.5))
        return bool((mb.to_numpy(x * 2.5 - 1) == values * 2.5 - 1).all()) and sums
    found = [right() for _ in range(3)]
    n = len(refused)
    threading.Thread.start, subprocess.Popen = start, popen
    time.sleep(1.1)
    found.append(right())
    began = time.monotonic()
    kernels.settle()
    right()
    kernels.settle()
    found.append(right())
    print(json.dumps([found, n > 0, kernels.compilations > 0]))
"""


@pytest.mark.parametrize("compiler", ["process", "thread"])
def test_where_neither_thread_nor_process_can_be_started_the_caller_computes(tmp_path, compiler):
    """And it is tried again later."""
    said = answer(REFUSED, compiler=compiler, num_threads=2, cache_dir=tmp_path / "kernels")
    assert said == [[True] * 5, True, True]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("way", ["main", "thread", "forked", "stopped"])
def test_helpers_of_a_killed_process_end_with_it(tmp_path, way):
    """At once: also in the middle of an import, and if a forked child holds their pipes."""
    process = start(
        f"""
        import os, threading, time
        import numpy as np
        import mirabelle as mb
        from mirabelle.backends.host import kernels
        x = mb.HostArray(np.arange(500_000.0))
        def begin():
            mb.materialize(x * 2.5 - 1)
        if {way!r} == "thread":
            thread = threading.Thread(target=begin)
            thread.start()
            thread.join()
            kernels.settle()
            assert kernels.compilations == 1, "a helper outlives the thread that started it"
        else:
            begin()
        if {way!r} == "stopped":
            kernels.settle()  # (it has begun to listen)
        if {way!r} == "forked" and not os.fork():
            time.sleep(20)
            os._exit(0)
        print(kernels._helpers.process.pid, flush=True)
        time.sleep(60)
        """,
        compiler="process",
        cache_dir=tmp_path / "kernels",
    )
    helper = int(process.stdout.readline())
    if way == "stopped":
        os.kill(helper, signal.SIGSTOP)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while alive(helper) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(helper)
    process.stdout.close()
    process.stderr.close()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# A thread that makes Numba's tables as it compiles, while another has the compiler's lock and asks for them.
LOCKS = """
import faulthandler, json, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np
import mirabelle as mb
from numba.core import cpu
made, making = cpu.CPUContext.__init__, threading.Event()
def slowly(self, *args, **options):
    making.set()
    time.sleep(2)
    made(self, *args, **options)
cpu.CPUContext.__init__ = slowly
x = mb.HostArray(np.arange(300_000.0))

@mb.jit
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s

for turn in range(3):
    mb.to_numpy(mb.sin(x + turn) * 2 + 1)
assert making.wait(30)
print(json.dumps(total(x)))
"""


def test_two_threads_that_are_first_to_compile_do_not_wait_for_each_other(tmp_path):
    said = answer(LOCKS, compiler="thread", cache_dir=tmp_path / "kernels")
    assert said == 299_999 * 150_000.0
