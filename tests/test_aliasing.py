"""Reference counts say who reads what is written, whoever looks at frames while mirabelle is imported."""

import sys

import pytest
from children import answer

from mirabelle.arraytypes import aliasing
from mirabelle.dispatch import references

# Programs whose memory is shared, on host arrays (and on a simulated card), as NumPy has them.
PROGRAMS = """
import json
import numpy as np

def alias(xp, make, n):
    x = make(np.arange(float(n)))
    y, z = x + 1, xp.copy(x)
    x[...] = 0
    x += y[::-1] * z
    w = x[1:] * 2
    x[: n // 2] = 7
    return [v[:9] for v in (x, y, z, w)]

def wrong(mb):
    from kinds import LEAVES
    from programs import Draft, Rolled, assert_logs_agree, numpys, run, written
    found = []
    for n in (10, 6000, 40000):
        for ours, numpys_ in zip(alias(mb, mb.HostArray, n), alias(np, np.asarray, n)):
            if mb.to_numpy(ours).tolist() != numpys_.tolist():
                found.append(n)
    for number in range(PROGRAMS):
        source = written(Draft(Rolled(number)), 14)
        try:
            expected = run(source, np, numpys)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        for kind in ("host", "ref"):
            try:
                assert_logs_agree(run(source, mb, LEAVES[kind].make), expected)
            except AssertionError:
                found.append(f"{kind} {number}")
    return found
"""

WATCHERS = {
    "a tracer": "import sys; sys.settrace(look)",
    "a profiler": "import sys; sys.setprofile(look)",
    "tracers of all threads": "import sys, threading; threading.settrace(look); sys.settrace(look)",
    "a monitor": """
        import sys
        m = sys.monitoring
        m.use_tool_id(m.COVERAGE_ID, "looks")
        m.register_callback(m.COVERAGE_ID, m.events.LINE, lambda *a: sys._getframe(1).f_locals and None)
        m.set_events(m.COVERAGE_ID, m.events.LINE)
    """,
}
STOP = {"a monitor": "m.set_events(m.COVERAGE_ID, 0)"}


def script(*parts, programs=30):
    import textwrap

    look = "\ndef look(frame, event, argument):\n    frame.f_locals\n    return look\n"
    if sys.version_info[:2] == (3, 12):
        # There, who looks at the variables of a module breaks its comprehensions (already those of `types`).
        look = look.replace("    frame.f_locals", "    if frame.f_code.co_flags & 1: frame.f_locals")
    return "\n".join(
        [look, *map(textwrap.dedent, parts[:1]), PROGRAMS.replace("PROGRAMS", str(programs)), *parts[1:]]
    )


@pytest.mark.parametrize("watcher", WATCHERS)
def test_who_looks_at_frames_during_the_import_changes_no_values(watcher):
    if watcher == "a monitor" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    stop = STOP.get(watcher, "sys.settrace(None); sys.setprofile(None)")
    end = "from mirabelle.dispatch import references\nprint(json.dumps([references.certain, wrong(mb)]))"
    assert answer(script(WATCHERS[watcher], "import mirabelle as mb", stop, end)) == [True, []]


@pytest.mark.parametrize("set_", [sys.settrace, sys.setprofile])
def test_who_looks_at_frames_afterwards_changes_no_values(set_):
    def look(frame, event, argument):
        assert frame.f_locals is not None
        return look

    before = sys.gettrace() if set_ is sys.settrace else sys.getprofile()
    set_(look)
    try:
        right = [aliasing.holds() for _ in range(3)]
    finally:
        set_(before)
    assert all(right)


FALSIFIED = """
    import json
    import mirabelle as mb
    from mirabelle.arraytypes import aliasing, assign
    from mirabelle.backends.host import direct
    from mirabelle.dispatch import references
"""


def test_statements_run_at_import_notice_counts_that_are_wrong():
    # As if an interpreter counted a reference less of what names hold.
    end = """
found = [aliasing.reliable()]
for module, name in ((assign, "_ALONE"), (direct, "_unshared")):
    right = getattr(module, name)
    setattr(module, name, right + 1)
    found.append(aliasing.reliable())
    setattr(module, name, right)
print(json.dumps(found))
"""
    assert answer(script(FALSIFIED, end)) == [True, False, False]


def test_where_counts_are_wrong_all_memory_counts_as_shared():
    end = """
assign._ALONE += 1
direct._unshared += 1
direct._sole += 1
aliasing.check()
references.distrust()  # (small arrays, in C, ask nobody)
print(json.dumps([references.certain, aliasing.holds(), wrong(mb)]))
"""
    assert answer(script(FALSIFIED, end)) == [False, True, []]


def test_nobody_is_called_in_an_unwatched_block():
    called = []

    def look(frame, event, argument):
        called.append(frame.f_code.co_name)
        return look

    def inside():
        return sum(i for i in range(3))

    before = sys.gettrace()
    sys.settrace(look)
    try:
        with references.unwatched():
            inside()
        noted = list(called)
        inside()
    finally:
        sys.settrace(before)
    assert "inside" not in noted and "inside" in called


def test_a_place_that_was_never_asked_shares_all():
    assert references.least([]) == references.SHARED and references.least([4, 3]) == 3
