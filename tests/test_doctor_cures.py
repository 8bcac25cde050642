"""Programs that are slow for known reasons: the doctor names line, reason and cure, which gives the same."""

import linecache
import re
import warnings

import numpy as np
import pytest

import mirabelle as mb
from benchmarks.slowprograms import PROGRAMS
from mirabelle.arraytypes import slowlines
from mirabelle.arraytypes.slowlines import RULES
from mirabelle.arraytypes.structured import fallback
from mirabelle.dispatch.linecounts import NAMES, LineCount


@pytest.fixture(autouse=True)
def _told_again():
    fallback.forget()
    yield
    fallback.forget()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_the_reason_and_the_cure(name):
    program = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mb.doctor(program.before)
        after = program.after()
    told = {f.text.split("  # ")[0]: f for f in found.findings if f.kind == program.kind}
    assert program.text in told and program.cure in told[program.text].cure, (name, told)
    for f in found.findings:
        assert 0 <= f.gain <= f.seconds <= found.seconds
    if program.kind != "compiled again":  # (each turn is for other arguments, and the last is what is compared)
        assert np.allclose(mb.to_numpy(mb.asarray(found.result)), mb.to_numpy(mb.asarray(after)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_follows_the_cure_is_not_told_the_same(name):
    program = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mb.doctor(program.after)
    assert program.kind not in {f.kind for f in found.findings}, found


def test_all_time_is_accounted_for():
    found = mb.doctor(PROGRAMS["history"].before)
    saved = {}
    for f in found.findings:
        saved[f.number] = max(f.gain, saved.get(f.number, 0.0))
    assert sum(saved.values()) + sum(line.seconds for line in found.rest) == pytest.approx(found.seconds)
    assert all(line.seconds >= 0 for line in found.rest)
    (grows,) = [line for line in found.rest if line.text == PROGRAMS["history"].text]
    assert grows.seconds > 0, "the sums that it appends are no part of what is saved"


def test_small_findings_stand_beside_large_ones_and_the_rest_is_shown():
    x = mb.zeros(200)

    def program():
        for i in range(200):
            x[i] = 1.0
        u = mb.ones(1000)
        for i in range(40):
            u = mb.append(u, 1.0)
        return mb.linalg.eigh(mb.ones((400, 400)))

    found = mb.doctor(program)
    assert {f.kind for f in found.findings} == {"loop over elements", "an array that grows"}
    shown = str(found)
    assert shown.count("loop over elements") == 1 and shown.count("an array that grows") == 1
    assert "What took longest of the rest" in shown and "mb.linalg.eigh(mb.ones((400, 400)))" in shown
    assert "all other lines" in shown and "all other lines" in found.html()


CURES = {
    "hist[b[i]] += 1": "`mb.add_at(hist, b, 1)`, or count with `mb.bincount(b)`",
    "for i in range(n): h.total[int(b[i])] += 1": "`mb.add_at(h.total, b, 1)`",
    "A[p[i], q[i]] -= v[i]": "`mb.add_at(A, (p, q), -values)`",
    "y[p[i]] = x[i]": "write to all elements at once, `y[p]`",
    "y[i] = x[p[i], q[i]]": "pick all elements at once, `x[p, q]`",
    "hist[k] += w": "`mb.add_at(y, indices, values)`",
    "t += float(x[i])": "for the whole array",
    "if x[b[i]] > 0:": "`x[b]`",
    "elif x[b[i]] > 0:": "for the whole array",
    "y[i] = mb.sum(A[b[i]])": "axis=1",
    "(": "for the whole array",
}


@pytest.mark.parametrize("text", CURES)
def test_cures_say_it_with_the_names_of_the_line(text):
    line = LineCount(seconds=1.0, visits=500)
    line.counts[NAMES.index("scalar_reads")] = 1000
    line.counts[NAMES.index("launches")] = 1000
    line.counts[NAMES.index("bytes_read")] = 16_000
    what, cure, gain = RULES["loop over elements"](line, text)
    assert CURES[text] in cure and "`@mb.jit`" in cure and "1000 times" in what and 0.9 < gain <= 1


def test_elements_with_computed_indices_are_elements_however_much_is_read():
    line = LineCount(seconds=1.0, visits=500)
    line.counts[NAMES.index("scalar_reads")] = 500
    line.counts[NAMES.index("bytes_read")] = 500 * 8000
    for text in ("for i in r: hist[b[i]] += 1", "t += float(x[b[i]])", "x[k] = 1"):
        assert RULES["loop over elements"](line, text) and not RULES["values asked for"](line, text), text
    for text in (
        "s = float(mb.sum(x[b[0]]))",
        "if mb.any(x):",
        "u[...] = u * float(mb.sum(u))",
        "u[1:] = v[b[0]:]",
    ):
        assert RULES["values asked for"](line, text) and not RULES["loop over elements"](line, text), text


def test_the_examples_in_cures_run():
    """(Names of arrays in them stand for the user's.)"""
    texts = [line for line in linecache.getlines(slowlines.__file__) if "`mb." in line]
    names = {name for line in texts for name in re.findall(r"mb\.((?:\w+\.)*\w+)", line)}
    for name in names:
        at = mb
        for part in name.split("."):
            at = getattr(at, part)
    assert "add_at" in names and "linalg.solve" in names


def test_what_grows_beside_other_work_gains_its_copies_and_no_more():
    line = LineCount(seconds=1.0, visits=100)
    line.counts[NAMES.index("launches")] = 300
    line.counts[NAMES.index("bytes_written")] = 1_000_000
    gain = RULES["an array that grows"](line, "x = mb.append(x, mb.sum(y * z))")[2]
    assert gain < 0.01
    line.counts[NAMES.index("launches")] = 100
    assert RULES["an array that grows"](line, "x = mb.append(x, 1.0)")[2] == 1.0


def test_what_falls_back_gains_the_conversion_alone():
    said = mb.DenseFallbackWarning(
        "qr(Toeplitz): no rule, so it was made dense, 1 MB; give it one, or mb.dense(x)."
    )
    said.nbytes = 1_000_000
    line = LineCount(seconds=1.0, visits=10)
    what, cure, gain = slowlines.fell_back(line, said, 1)
    assert "10 visits" in what and "another routine" in cure and 0 < gain < 0.01
    assert "dense once, before the loop" in cure
    line.visits = 1
    what, cure, gain = slowlines.fell_back(line, said, 1)
    assert gain == 0 and "before the loop" not in cure and "another routine" in cure
