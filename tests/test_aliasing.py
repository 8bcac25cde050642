"""A write never changes what was already said, whoever looks at frames meanwhile."""

import gc
import sys

import numpy as np
import pytest
from children import answer

import mirabelle as mb

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
    assert (
        answer(script(WATCHERS[watcher], "import mirabelle as mb", stop, "print(json.dumps(wrong(mb)))")) == []
    )


# Statements in which memory is shared: what each shows at the end, and what that must be.


def _pending(x):
    y = x + 1.0
    x[...] = 0.0
    return y, [2.0, 3.0, 4.0, 5.0]


def _pending_part(x):
    y = x[1:] * 2.0
    x[2:] = 0.0
    return y, [4.0, 6.0, 8.0]


def _copied(x):
    y = mb.copy(x)
    x += x * 2.0
    return y, [1.0, 2.0, 3.0, 4.0]


def _moved(x):
    x[1:] = x[:-1] * 1.0
    return x, [1.0, 1.0, 2.0, 3.0]


def _held(x):
    y = x * 2.0
    x[...] = (y + x) * y
    return y, [2.0, 4.0, 6.0, 8.0]


def _exported(x):
    y = x * 1.0
    z = mb.materialize(y) * 3.0
    y += x
    return z, [3.0, 6.0, 9.0, 12.0]


STATEMENTS = (
    _pending,
    _pending_part,
    _copied,
    _moved,
    _held,
    _exported,
)


def right(n=4):
    """Are they all, done as with small arrays and as with large ones?"""
    for small in (mb.settings.small_size, 0):
        with mb.settings.changed(small_size=small, immediate_size=0, brief_size=0, compiler="off"):
            for statement in STATEMENTS:
                found, expected = statement(mb.HostArray(np.array([1.0, 2.0, 3.0, 4.0])))
                if mb.to_numpy(found).tolist() != expected:
                    return False
    return True


@pytest.mark.parametrize("set_", [sys.settrace, sys.setprofile])
def test_who_looks_at_frames_afterwards_changes_no_values(set_):
    def look(frame, event, argument):
        assert frame.f_locals is not None
        return look

    before = sys.gettrace() if set_ is sys.settrace else sys.getprofile()
    set_(look)
    try:
        found = [right() for _ in range(3)]
    finally:
        set_(before)
    assert all(found)


def test_without_the_collector_of_garbage():
    gc.disable()
    try:
        assert right()
    finally:
        gc.enable()
