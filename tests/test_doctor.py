"""The doctor names the line that is slow and why, and nothing where nothing is; it changes no program."""

import json
import linecache
import subprocess
import sys
import warnings

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.diagnosis import RULES
from mirabelle.dispatch.linecounts import LineCount, LineCounts


def kinds(found):
    return {(f.kind, f.text.split("#")[0].strip()) for f in found.findings}


def said_of(counts):
    """What the rules say of counted lines, however little time it took."""
    found = set()
    for (file, number), line in counts.lines.items():
        text = linecache.getline(file, number).strip()
        found |= {kind for kind, rule in RULES.items() if rule(line, text)}
    return found


def test_loops_over_elements():
    x = mb.zeros(500)
    with mb.doctor() as found:
        for i in range(500):
            x[i] = 1.0
    assert kinds(found) == {("loop over elements", "x[i] = 1.0")}
    with mb.doctor() as found:
        total = 0.0
        for i in range(500):
            total += float(x[i])
    assert kinds(found) == {("loop over elements", "total += float(x[i])")} and total == 500


def test_values_asked_for_are_told_from_elements():
    x = mb.ones(5000)
    with LineCounts() as counts:
        for _ in range(150):
            x = x * 0.5
            if mb.sum(x) < 0:
                raise AssertionError
    said = said_of(counts)
    assert "values asked for" in said and "loop over elements" not in said


def test_rows_one_by_one_are_a_loop_over_elements():
    A, s = mb.ones((150, 5)), mb.zeros(150)
    with mb.doctor() as found:
        for i in range(150):
            s[i] = mb.sum(A[i] * A[i])
    assert kinds(found) == {("loop over elements", "s[i] = mb.sum(A[i] * A[i])")}
    assert "axis=1" in found.findings[0].cure
    with mb.doctor() as found:
        t = 0.0
        for v in mb.ones(200):
            t += v * v
    assert kinds(found) == {("loop over elements", "t += v * v")} and float(t) == 200


def test_arrays_that_grow():
    x = mb.zeros(0)
    with mb.doctor() as found:
        for i in range(300):
            x = mb.append(x, 0.5 * i)
    assert kinds(found) == {("an array that grows", "x = mb.append(x, 0.5 * i)")}
    assert "mb.asarray(numbers)" in found.findings[0].cure


def test_functions_that_are_captured_again():
    @mb.compile
    def smooth(u, dt):
        u[1:-1] = u[1:-1] + dt * (u[2:] + u[:-2])
        return u

    with mb.doctor() as found, mb.count() as c:
        for n in range(20, 28):
            smooth(mb.ones(n), 0.5)  # of other sizes
        for i in range(8):
            smooth(mb.ones(20), i + 2.5)  # of other numbers
        for _ in range(300):
            smooth(mb.ones(20), 0.5)
    assert c.captures == 16
    again = {f.text: f for f in found.findings if f.kind == "compiled again"}
    assert set(again) == {
        "smooth(mb.ones(n), 0.5)  # of other sizes",
        "smooth(mb.ones(20), i + 2.5)  # of other numbers",
    }
    sizes, numbers = again.values() if "sizes" in next(iter(again)) else reversed(again.values())
    assert 'sizes="any"' in sizes.cure and "mb.asarray" not in sizes.cure and "other shapes" in sizes.what
    assert "mb.asarray(dt)" in numbers.cure and "sizes" not in numbers.cure and "numbers" in numbers.what
    assert "8 times" in sizes.what and "8 times" in numbers.what


def test_what_stops_only_is_no_more_than_stops():
    """(And of what is computed, passes over memory.)"""
    x, total = mb.ones(300_000), 0.0
    with mb.doctor() as found:
        for _ in range(120):
            x = x * 0.99
            total += float(mb.sum(x))
    asked = [f.gain for f in found.findings if f.kind == "values asked for"]
    assert sum(asked) <= 120 * (5e-6 + 4 * 300_100 * 8 * 1e-10)


def test_small_statements():
    u = mb.ones(8)
    with LineCounts() as counts:
        for _ in range(300):
            u = u * 0.5 + 1.0
    assert said_of(counts) == {"small statements"}


def test_what_is_handed_over_again_and_again():
    x, seen = mb.ones(200_000), []
    with mb.doctor() as found:
        for _ in range(40):
            x = x * 0.5
            seen.append(x.tolist()[0])
    (handed,) = [f for f in found.findings if f.kind == "handed over"]
    assert handed.text == "seen.append(x.tolist()[0])" and "float(x[0])" in handed.cure
    with LineCounts() as counts:
        for v in x.tolist()[:200]:  # (once, however often its line is visited)
            seen.append(v)
    assert "handed over" not in said_of(counts)


def test_an_inverse_is_told_to_solve():
    A, b = mb.eye(300) * 2, mb.ones(300)
    with mb.doctor() as found:
        x = mb.linalg.inv(A) @ b
    (inverse,) = [f for f in found.findings if f.kind == "an inverse"]
    assert "mb.linalg.solve(A, b)" in inverse.cure and float(x[0]) == 0.5
    assert np.allclose(mb.linalg.factorize(A).solve(b), x)


def test_where_no_rule_knows_why_the_longest_lines_are_shown():
    x = mb.ones((300, 300))
    with mb.doctor() as found:
        for _ in range(5):
            x = mb.linalg.qr(x).Q
    assert not found.findings and "What took longest" in repr(found) and "mb.linalg.qr(x).Q" in repr(found)
    assert "What took longest" in found.html()


def test_falls_to_dense_are_said_with_the_warnings_cure():
    D = mb.Diagonal(mb.ones(300))
    with mb.doctor() as found:
        for _ in range(3):
            y = mb.cos(D)
            mb.materialize(y)
    assert [f.kind for f in found.findings if f.text == "y = mb.cos(D)"] == ["fell back to dense"]
    assert "no rule" in found.findings[0].what and "mb.dense(x)" in found.findings[0].cure


def test_transfers():
    with mb.doctor() as found:
        for _ in range(20):
            mb.asarray(mb.HostArray([1.0] * 2000), device=mb.RefArray)
    assert ("moved between places", "mb.asarray(mb.HostArray([1.0] * 2000), device=mb.RefArray)") in kinds(
        found
    )


def test_compilations_that_come_again_are_told_from_the_first():
    line = LineCount(seconds=2.0, visits=50, compiling=1)
    assert RULES["compiled again"](line, "x = f(x)") is None
    line.compiling, line.compiled_again = 20, 1.5
    what, cure, gain = RULES["compiled again"](line, "x = f(x)")
    assert "20 of 50 visits" in what and "repeat" in cure and 1.2 < gain < 1.5
    # Of a loop in one line only the last visit compiles nothing, and says nothing of the others.
    line.visits, line.compiling = 41, 40
    assert RULES["compiled again"](line, "for n in sizes: f(mb.ones(n))")[2] == 1.5


def test_rules_never_fail_whatever_was_counted():
    rng = np.random.default_rng(1)
    for _ in range(300):
        line = LineCount(seconds=rng.random(), visits=int(rng.integers(100)), compiling=int(rng.integers(9)))
        line.counts = [int(n) for n in rng.integers(0, 10 ** rng.integers(1, 7), len(line.counts))]
        for kind, rule in RULES.items():
            found = rule(line, "x = f(x)")
            assert found is None or (found[0] and found[1]), kind


def test_a_good_program_has_no_findings():
    x = mb.ones((400, 400))
    mb.materialize(x @ x + 1)
    with mb.doctor() as found:
        y = mb.materialize(x @ x + 1)
    assert not found.findings and "Nothing" in repr(found) and y.shape == (400, 400)


def test_what_functions_do_is_at_their_lines_and_what_libraries_do_at_the_callers():
    def inner(x):
        return sum(float(x[i]) for i in range(200))

    def outer(x):
        return inner(x) + sum(map(float, x))

    found = mb.doctor(outer, mb.ones(200))
    assert found.result == 400
    lines = {f.text for f in found.findings}
    assert lines == {"return sum(float(x[i]) for i in range(200))", "return inner(x) + sum(map(float, x))"}
    # (Each event belongs to one line: all counters together are those of a block around it.)
    counts = LineCounts()
    with mb.count() as all_of_it, counts:
        outer(mb.ones(200))
    assert sum(line["scalar_reads"] for line in counts.lines.values()) == all_of_it.scalar_reads
    assert sum(line.seconds for line in counts.lines.values()) <= counts.seconds * 1.01


def test_what_is_made_by_exec_is_at_the_line_that_calls_it():
    made = {"mb": mb}
    exec("def twice(x):\n    return mb.materialize(2 * x)\n", made)
    counts, x = LineCounts(), mb.ones(100_000)
    with counts:
        for _ in range(3):
            x = made["twice"](x)
            float(mb.sum(mb.sin(x) + 1))
    assert {file for file, _ in counts.lines} == {__file__}


def test_a_program_of_the_command_line_has_lines():
    program = (
        "import mirabelle as mb\ndef loop():\n    x = mb.zeros(400)\n"
        "    for i in range(400):\n        x[i] = i\n"
        "print(*[(f.kind, f.number) for f in mb.doctor(loop).findings])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "('loop over elements', 5)\n"


def test_tracers_warnings_and_errors_are_as_before():
    seen = []

    def tracer(frame, event, arg):
        seen.append(event)

    before, shown = sys.gettrace(), warnings.showwarning
    sys.settrace(tracer)
    try:
        with pytest.raises(ZeroDivisionError), mb.doctor() as found:
            1 / 0
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert warnings.showwarning is shown and found.seconds > 0
    with pytest.warns(UserWarning, match="mine"), mb.doctor():
        warnings.warn("mine", stacklevel=1)


def test_reports_are_texts_json_and_html():
    x = mb.zeros(300)
    with mb.doctor() as found:
        for i in range(300):
            x[i] = 1.0 if i < 2 else 2.0
    told = json.loads(found.json())
    assert told["findings"][0]["number"] > 0 and told["findings"][0]["file"] == __file__
    assert "i &lt; 2" in found.html() and "x[i] = 1.0 if i < 2 else 2.0" in str(found)
    assert 0 <= told["findings"][0]["gain"] <= told["findings"][0]["seconds"] <= told["seconds"]


def test_the_command_runs_a_program_and_keeps_its_exit_status(tmp_path, capsys):
    program = tmp_path / "slow.py"
    program.write_text(
        "import sys\nimport mirabelle as mb\nx = mb.zeros(400)\nfor i in range(400):\n    x[i] = i\n"
        "print(sys.argv[1:], __name__)\nsys.exit(3)\n"
    )
    command = [
        sys.executable,
        "-m",
        "mirabelle",
        "doctor",
        "--json",
        "f.json",
        "--html",
        "f.html",
        program,
        "--json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 3 and "['--json'] __main__" in ran.stdout and "loop over elements" in ran.stdout, (
        ran
    )
    assert json.loads((tmp_path / "f.json").read_text())["findings"][0]["number"] == 5
    assert "<table>" in (tmp_path / "f.html").read_text()
    from mirabelle.__main__ import main

    assert main(["doctor", str(tmp_path / "nothing.py")]) == 2
    with pytest.raises(SystemExit):
        main(["doctor"])
    assert capsys.readouterr().err.endswith("the following arguments are required: script\n")
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"mirabelle {mb.__version__}\n"


def ran(folder, *words):
    command = [sys.executable, "-m", "mirabelle", "doctor", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_a_hyphen_is_the_standard_output(tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(
        "import mirabelle as mb\nx = mb.zeros(400)\nfor i in range(400):\n    x[i] = i\nprint(5)\n"
    )
    told = ran(tmp_path, "--json", "-", program)
    assert json.loads(told.stdout)["findings"][0]["number"] == 4
    assert told.stderr.startswith("5\n") and "loop over elements" in told.stderr
    told = ran(tmp_path, "--html", "-", "--json", "f.json", program)
    assert told.stdout.startswith("<!doctype html>") and told.stdout.endswith("</html>\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.json", "slow.py"]
    both = ran(tmp_path, "--html", "-", "--json", "-", program)
    assert both.returncode == 2 and "the name of a file" in both.stderr


@pytest.mark.parametrize(
    "last",
    ["mb.linalg.solve(mb.ones((3, 3)), mb.ones(7))", "y = ?", "raise KeyboardInterrupt", "sys.exit('no')"],
)
def test_a_program_that_fails_says_what_it_says_alone(last, tmp_path):
    program = tmp_path / "fails.py"
    loop = "import sys\nimport mirabelle as mb\nx = mb.zeros(400)\nfor i in range(400):\n    x[i] = i\n"
    program.write_text(f"{loop}def f():\n    {last}\nf()\n")
    alone = subprocess.run(
        [sys.executable, program.name], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    told = ran(tmp_path, program.name)
    assert alone.stderr and told.stderr == alone.stderr
    assert told.returncode == (130 if "Interrupt" in last else alone.returncode)
    assert ("fails.py:5: loop over elements" in told.stdout) == ("?" not in last)
