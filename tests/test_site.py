"""The site: each public name has its page, docstrings and notebooks become Markdown, links lead somewhere.

What needs mkdocs is `make site`; here is what it is given.
"""

import base64
import doctest
import functools
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

import mirabelle as mb
from docs import figures
from docs.site import clients, drawings, flows, gallery, links, reference, results, subjects
from docs.site.docstrings import escaped, markdown, sections, summary, text_of
from docs.site.examples import EXAMPLES, example
from mirabelle.dg.command import problems

ROOT = Path(__file__).parent.parent
SPACES = {space: subjects.public(module) for module, space, _ in subjects.SPACES} | {
    "mb": subjects.public("mirabelle")
}


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_public_name_stands_on_a_page_and_in_the_index(pages):
    for space, names in SPACES.items():
        for name in names:
            called = f"{space}.{name}"
            places = [path for path, text in pages.items() if any(f"id={q}{called}{q}" in text for q in "'\"")]
            assert len(places) == 1, called
            assert f"[`{called}`]({places[0]}#{called})" in pages["index.md"]


def test_a_name_without_a_page_is_an_error(monkeypatch):
    monkeypatch.setattr(subjects, "SUBJECTS", [s for s in subjects.SUBJECTS if s.page != "polynomials"])
    with pytest.raises(LookupError, match=r"mb\.poly: add it to SUBJECTS"):
        subjects.by_subject()


def test_lists_of_subjects_name_only_what_is_there_once():
    listed = [name for s in subjects.SUBJECTS for name in s.names.split()]
    assert sorted(set(listed)) == sorted(listed)
    assert set(listed) <= set(mb.__all__)


def test_an_entry_has_what_one_looks_up(pages):
    text = pages["statistics.md"]
    entry = text[text.index("## `mb.percentile`") :].split("\n## ")[0]
    assert "method: str = 'linear'" in entry.replace('"', "'") or "method" in entry
    assert "```pycon\n>>> import mirabelle as mb" in entry
    assert "Beside NumPy" in entry


def like(a, axis=None, dtype=None, out=None): ...
def other(a, axis=None, wrap=False): ...
def renamed(x, axis=None, dtype=None, out=None): ...
def positional(x, /, axis=None, *, dtype=None, out=None): ...
def everything(a, axis=None, **options): ...


@pytest.mark.parametrize(
    "function, said",
    [
        (like, "the same parameters"),
        (positional, "the same parameters"),
        (everything, "the same parameters"),
        (renamed, "`a` is `x` here"),
        (other, "not here: `dtype`, `out`; only here: `wrap`"),
        (mb.sin, "the same parameters"),
        (mb.asarray, "not here: `like`"),
        (mb.sort, "only here: `descending`"),
        (np.cumsum, "NumPy's own"),
    ],
)
def test_differences_to_numpy_are_read_from_signatures(function, said):
    name = {mb.sin: "sin", mb.asarray: "asarray", mb.sort: "sort"}.get(function, "cumsum")
    assert reference.beside_numpy("mb", [name], function) == f"*Beside NumPy:* {said}."


def test_names_that_numpy_has_not_or_otherwise():
    assert reference.beside_numpy("mb", ["nothing_of_this_name"], other) == ""
    assert "with three arguments" in reference.beside_numpy("mb", ["place"], mb.place)


def test_every_function_that_numpy_has_too_says_what_differs():
    """What signatures cannot say is written, of functions that there are."""
    spaces = SPACES | {"mb.random": subjects.public("mirabelle.random")}
    for space, names in spaces.items():
        for name, thing in names.items():
            theirs = reference.numpys_counterpart(space, [name])
            if theirs is not None and (not inspect.isclass(thing) or name in reference.SAID):
                assert reference.beside_numpy(space, [name], thing), name
    assert set(reference.SAID) <= set(mb.__all__) | {"default_rng"}


def test_what_is_said_beside_numpy_is_true():
    x, y = mb.arange(5.0), mb.eye(2)
    mb.place(x, x > 2, [7.0, 8.0])
    assert x.tolist() == [0, 1, 2, 7, 8]
    for wrong in (
        lambda: mb.clip(x, 0, 1, where=x > 0),
        lambda: mb.einsum("ij->i", y, order="F"),
        lambda: mb.fromstring("1 2"),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(NotImplementedError):
        mb.vectorize(abs, signature="(n)->()")
    assert mb.clip(x, a_min=2, a_max=7, out=mb.zeros(5), casting="unsafe").tolist() == [2, 2, 2, 7, 7]
    modes = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric"]
    for mode in [*modes, "wrap", "empty"]:
        assert mb.pad(x, 1, mode).shape == np.pad(np.arange(5.0), 1, mode).shape


def test_what_numpys_function_takes_is_taken_or_said_beside_it():
    """Each parameter of NumPy's that has a default is given that default."""
    from benchmarks._functioncases import CASES
    from benchmarks.functions import Inputs

    inputs, tried = Inputs(100), 0
    for case in CASES:
        call = re.fullmatch(r"xp\.((?:linalg\.|fft\.)?\w+)\((.*)\)", case.text)
        if call is None:
            continue
        space, _, name = f"mb.{call[1]}".rpartition(".")
        theirs, ours = (functools.reduce(getattr, call[1].split("."), library) for library in (np, mb))
        for p in with_defaults(theirs):
            values = {n: inputs[n] for n in case.inputs}
            text = f"xp.{call[1]}({call[2]}, {p.name}=default)"
            scope = {"np": np, "default": p.default}
            try:
                with np.errstate(all="ignore"):
                    eval(text, scope | {"xp": np} | values)
            except (TypeError, ValueError, SyntaxError):  # (given already, or not beside the others)
                continue
            values = {n: mb.HostArray(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
            tried += 1
            try:
                eval(text, scope | {"xp": mb} | values)
            except TypeError as error:
                assert f"`{p.name}`" in reference.beside_numpy(space, [name], ours), (call[1], p.name, error)
    assert tried > 800


def with_defaults(function):
    """Those that have a default, and are known."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    known = [p for p in found if p.default is not p.empty and p.default is not np._NoValue]
    return [p for p in known if p.kind in reference.NAMED]


def test_long_signatures_stand_on_lines():
    def f(x, y, /, first="a" * 30, second="b" * 30, *, third: int = 3, **rest): ...

    lines = reference.written("mb.f", f).splitlines()
    assert lines[0] == "mb.f(" and lines[-1] == ")"
    assert [line.strip(" ,") for line in lines[1:4]] == ["x", "y", "/"]
    assert "    *," in lines and "    third: int = 3," in lines and "    **rest," in lines
    assert reference.written("mb.f", lambda x, /: 0) == "mb.f(x, /)"


def test_docstrings_become_markdown():
    made = markdown(
        "Sums x * y of *all* `a * b` <b>.\n\nMore:\n- one\n- two\n\n"
        "Parameters\n----------\nx, y : array\n    What\n    is added.\naxis\n    Along it.\n\n"
        "Returns\n-------\nThe sum.\n\n>>> 1 + 1\n2\n\n    indented\n\n"
        "```python\nx = y * z\n\ny * z\n```\n"
    )
    assert "```python\nx = y * z\n\ny * z\n```" in made
    assert r"Sums x \* y of \*all\* `a * b` \<b>." in made
    assert "More:\n\n- one" in made
    assert "**Parameters**\n\n- `x`, `y` *(array)*: What is added.\n- `axis`: Along it." in made
    assert "**Returns**\n\nThe sum." in made
    assert markdown("Adds.\n\nReturns\n-------\ntuple of array\n    Sums, of\n    `x`.\n") == (
        "Adds.\n\n**Returns**\n\n*tuple of array*: Sums, of `x`."
    )
    assert "```pycon\n>>> 1 + 1\n2\n```" in made
    assert "```text\nindented\n```" in made


@pytest.mark.parametrize("name", ["sum", "roll", "HostArray", "pi", "float64", "settings"])
def test_summaries_are_one_line(name):
    assert "\n" not in escaped(summary(getattr(mb, name)))


def test_notebooks_become_pages_with_their_pictures(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "What it is\nabout. More.\n"]},
        {"cell_type": "code", "source": "x = 1", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
            {"output_type": "display_data", "data": {"image/png": base64.b64encode(b"PNG").decode()}},
            {"output_type": "execute_result", "data": {"text/html": "<b>t</b>", "text/plain": "t"}},
            {"output_type": "error", "traceback": ["\x1b[31mError\x1b[0m: no"]},
        ]},
    ]  # fmt: skip
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": cells}))
    made = gallery.pages(tmp_path, tmp_path / "site")
    assert "```python\nx = 1\n```\n\n```text\none\n```" in made["book.md"]
    assert (tmp_path / "site" / "pictures" / "book-01-1.png").read_bytes() == b"PNG"
    assert "Error: no" in made["book.md"] and "<b>t</b>" in made["book.md"]
    assert "**[Title](book.md)**\n\nWhat it is about. More." in made["index.md"]


def test_links_move_with_the_pages(tmp_path):
    source = ROOT / "docs" / "guide" / "arrays.md"
    places = {ROOT / "docs" / "design.md": "design/design.md", source: "guide/arrays.md"}
    wanted = set()
    text = (
        "[a](../design.md#the-words) [b](../../benchmarks/results/loops.json) [c](#here) [d](https://x.org) "
        "[e](gone.md)\n"
        "```\n[f](../design.md)\n```\n"
    )
    assert links.moved(text, source, "guide/arrays.md", places, wanted) == (
        "[a](../design/design.md#the-words) [b](../files/benchmarks/results/loops.json) [c](#here) "
        "[d](https://x.org) [e](gone.md)\n```\n[f](../design.md)\n```\n"
    )
    assert wanted == {ROOT / "benchmarks" / "results" / "loops.json"}


def test_broken_links_and_what_needs_a_network_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here">1</a><a href="b.html#there">2</a><a href="https://x.org">3</a>'
        '<a href="#gone">4</a><a href="b.html#gone">5</a><a href="c.html">6</a><img src="https://x.org/p.png">'
    )
    (tmp_path / "b.html").write_text('<p id="there">')
    assert len(links.broken(tmp_path)) == 4


# Pages that are written by hand, beside those of docs/guide/ (tests/test_guide.py)

PROGRAMS = sorted((ROOT / "docs" / "newcomers").glob("*.md"))
COMING_FROM = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("start", "ideas", "when_not")] + PROGRAMS + COMING_FROM


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_are_true(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert result.attempted > 5 and result.failed == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "clusters.md"], ids=lambda page: page.stem)
def test_a_page_says_what_it_is_for(page):
    title, empty, first = page.read_text().splitlines()[:3]
    assert title.startswith("# ") and empty == "" and first.startswith("This page ")


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_the_times_of_a_program_are_those_of_the_benchmark(page):
    shown = page.read_text().split(figures.BEGIN)[1].split(figures.END)[0].strip()
    assert shown == figures.program(page.stem), "python -m docs.figures writes them again"


@pytest.mark.parametrize("page", COMING_FROM, ids=lambda page: page.stem)
def test_names_of_ours_in_a_table_are_there(page):
    """(What stands in the second column.)"""
    cells = [line.split(" | ")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    names = [name for cell in cells for name in re.findall(r"\bmb((?:\.\w+)+)", cell)]
    assert len(names) > 10
    for name in names:
        thing = mb
        for part in name[1:].split("."):
            thing = getattr(thing, part)


# What `help` says

OURS = {
    f"{space}.{name}": thing
    for space, names in SPACES.items()
    for name, thing in names.items()
    if reference.is_ours(thing) and not name.startswith("__") and (callable(thing) or name == "settings")
}
# Names whose example is not run, by the reason.
WITHOUT_EXAMPLE = {
    "it needs a cluster: its page in the guide runs one": "mb.distributed.connect",
    "it needs petsc4py": "md.from_petsc md.to_petsc",
    "it needs meshio": "md.read_mesh_file",
}


def documented(doc):
    """The parameters that a docstring's section names."""
    body = dict(sections(doc)).get("Parameters", "")
    heads = [line.partition(" : ")[0] for line in body.splitlines() if line and not line[0].isspace()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def parameters(thing):
    found = reference.signature(thing)
    return [name for name in (found.parameters if found else ()) if name not in ("self", "cls")]


def test_every_public_name_has_an_example():
    """(tests/test_structure.py runs them.)"""
    told = {called for called, thing in OURS.items() if ">>>" in text_of(thing)}
    allowed = {called for names in WITHOUT_EXAMPLE.values() for called in names.split()}
    assert OURS.keys() - told == allowed


def test_signatures_of_array_functions_have_no_annotation_that_tells_nothing():
    """(`help(mb.roll)`, and what a notebook shows; checkers read the stubs.)"""
    shown = {name: str(reference.signature(f)) for name, f in OURS.items() if hasattr(f, "core")}
    assert len(shown) > 300 and shown["mb.roll"].startswith("(x, /, shift, *, axis=None)")
    assert [name for name, text in shown.items() if ": 'Any'" in text or "-> 'Any'" in text] == []


# Namespaces whose functions say of every parameter what it is.
EXPLAINED = (
    "mb",
    "mb.linalg",
    "mb.fft",
    "mb.random",
    "mb.autodiff",
    "mb.distributed",
    "mb.compiling",
    "mb.ext",
    "mb.types",
    "md",
    "dg",
)
# Types that others make, whose parameters no user gives.
MADE = re.compile(
    r"mb\.(\w+Error|AbstractArray|random\.Philox|linalg\.Factorization|distributed\.(LayoutReport|Delivery)|"
    r"compiling\.[A-Z]\w+|ext\.[A-Z]\w+)$|"
    r"mb\.types\.(Counters|Explanation|Graph|Stream|(Dense|GPU)Array|Implicit|Structured|Triangular)$|"
    r"md\.(Action|AxisTree|Columns|(Divided)?Matrix|Element|EntityClasses|GhostAccess|LocalKernel|MixedSpace|"
    r"Part|Pattern|Selection|Space|State|Target|Topology|UnderWay)$|"
    r"dg\.(BlowUp|Divided(Mesh)?|Mesh|ReferenceElement|Solution|Viscous)$"
)


@pytest.mark.parametrize("called", [c for c in OURS if c.rpartition(".")[0] in EXPLAINED and not MADE.match(c)])
def test_what_help_says_of_parameters_is_what_a_function_takes(called):
    thing = OURS[called]
    names = parameters(thing)
    if names and not (inspect.isclass(thing) and set(names) <= {"args", "kwargs"}):
        assert documented(text_of(thing)) == names


# Functions that return nothing.
NOTHING = [
    "mb.add_at", "mb.fill_diagonal", "mb.free_memory", "mb.put", "mb.put_along_axis", "mb.putmask",
    "mb.save", "mb.savetxt", "mb.savez", "mb.savez_compressed", "mb.set_memory_limit", "mb.synchronize",
    "md.dirichlet", "md.loop", "md.write_petsc", "dg.write_parts",
]  # fmt: skip


@pytest.mark.parametrize(
    "called", [c for c in OURS if c.rpartition(".")[0] in EXPLAINED and not inspect.isclass(OURS[c])]
)
def test_help_says_what_a_function_returns(called):
    told = "Returns" in dict(sections(text_of(OURS[called]))) or not callable(OURS[called])
    assert told != (called in NOTHING)


# Pages that are made of results


def test_each_result_is_on_a_page_or_left_out_for_a_reason():
    said = [name for _, names in results.PAGES.values() for name in results.stored(names)]
    said += [name for names in results.NOT_SHOWN.values() for name in names.split()]
    assert sorted(said) == sorted(path.stem for path in results.RESULTS.glob("*.json"))


def test_the_results_on_the_pages_are_there_and_have_times():
    for _, names in results.PAGES.values():
        for name in results.stored(names):
            if name not in ("first_use", "startup"):  # (numbers of other kinds)
                found = json.loads((results.RESULTS / f"{name}.json").read_text())
                assert results.table(results.as_cases(found)), name


@pytest.mark.parametrize(
    "case, expected",
    [
        (
            {"numpy": {"best_s": 2.0, "rounds": 3}, "mirabelle": {"best_s": 1.0}},
            {"numpy": 2.0, "mirabelle": 1.0},
        ),
        ({"times": {"jax": {"seconds": 3.0}, "none": None}, "first_s": {"jax": 9.0}}, {"jax": 3.0}),
        ({"best_s": {"NumPy": 2.0}}, {"NumPy": 2.0}),
        ({"numpy_s": 2.0, "mirabelle_s": 1.0, "first_s": 5.0}, {"numpy": 2.0, "mirabelle": 1.0}),
        ({"us": {"alone": 3.0}}, {"alone": 3e-6}),
        ({"name": "adi", "first": 3.0, "numpy": 2.0, "eager": 1.0, "cupy": None}, {"numpy": 2.0, "eager": 1.0}),
        (
            {
                "numpy_s": {"cpu": 1.0, "wall": 2.0},
                "best_s": {"cpu": 3.0, "wall": 4.0},
                "first_s": {"wall": 9.0},
            },
            {"numpy": 2.0, "mirabelle": 4.0},
        ),
        ({"plan_us": 3.0, "library_us": 2.0, "build_s": 4.0, "kB": 1.0}, {"plan": 3e-6, "library": 2e-6}),
        ({"name": "x", "elements": 3, "ratio": 2.0}, {}),
    ],
)
def test_times_are_found_in_cases(case, expected):
    assert results.times(case) == pytest.approx(expected)


def test_commands_name_the_benchmark():
    assert results.command("npkernels") == "python -m benchmarks npkernels"
    assert results.command("programs_kernels") == "python -m benchmarks programs kernels"
    assert results.command("dg_scaling_CuArray") == "python -m benchmarks dg scaling --array CuArray"
    folder = "python -m benchmarks npkernels --sources FOLDER"
    assert results.command("npkernels_sources") == folder
    assert results.command("npkernels_sources_CuArray") == f"{folder} --array CuArray"
    assert results.command("gpu_npkernels") == "python -m benchmarks gpu npkernels"


@pytest.mark.parametrize("t, said", [(3e-9, "3 ns"), (2.5e-6, "2.5 µs"), (0.0123, "12.3 ms"), (2.0, "2 s")])
def test_durations_have_units(t, said):
    assert results.duration(t) == said


def test_the_picture_of_one_program_has_all_places():
    for places in drawings.points(results.RESULTS).values():
        assert all(places.values())


def test_pictures_can_be_read_on_a_telephone(tmp_path):
    """Their text, where a picture is 370 pixels wide; that of exponents is 0.7 of it."""
    pytest.importorskip("matplotlib")
    drawings.one_program(results.RESULTS, tmp_path / "programs.svg")
    drawings.beside_numpy([{"NumPy": 1.0, "mirabelle": 0.1 * n} for n in (1, 2, 3)], tmp_path / "cases.svg")
    for path in tmp_path.iterdir():
        text = path.read_text()
        width = float(re.search(r'width="([\d.]+)pt"', text)[1]) * 96 / 72
        found = re.findall(r"font(?:-size)?: ([\d.]+)px", text)
        sizes = [float(size) * 96 / 72 for size in found]
        assert sizes and min(sizes) * min(1, 370 / width) >= 7, path.name
        assert np.median(sizes) * min(1, 370 / width) >= 10, path.name


def test_every_problem_of_dg_has_a_picture():
    assert set(flows.DRAWN) == set(problems())


@pytest.mark.parametrize(
    "thing, there, absent",
    [
        (mb.AbstractArray, ["sum(", "reshape(", "T`"], ["__add__"]),
        (mb.HostArray, [], ["sum(", "reshape("]),
        (mb.random.Generator, ["normal(", "integers("], ["_"]),
        (mb.linalg.LU, ["solve(", "logdet("], []),
    ],
)
def test_methods_are_told_where_they_are_at_home(thing, there, absent):
    rows = [row.split("`")[1] + "`" for row in reference.methods(thing)]
    assert all(any(row.startswith(name) for row in rows) for name in there)
    assert not [row for row in rows for name in absent if row.startswith(name)]


def test_the_page_of_other_libraries_has_the_programs_that_are_tried():
    found = {library: clients.programs(text) for library, text in clients.texts()}
    assert {"SciPy", "scikit-learn", "xarray", "dask", "pandas", "einops"} <= set(found)
    assert len(found["SciPy"]) > 100 and "stats.zscore(x)" in found["SciPy"]
    assert "a = 1; b = 2" in clients.programs("  a = 1;\n      b = 2\n c\n")
    assert "**On the host**\n\n```python\nstats." in clients.page()


@pytest.mark.parametrize(
    "line, made",
    [
        ("**Bold.** x * y", r"**Bold.** x \* y"),
        ("2**x is *not* it", r"2\*\*x is \*not\* it"),
        ("a `b * c` [d]", r"a `b * c` \[d\]"),
    ],
)
def test_plain_text_stays_plain(line, made):
    assert escaped(line) == made


def test_no_generated_page_takes_the_place_of_one_that_is_written():
    import docs.site.__main__ as site

    made = dict.fromkeys(site.written_by_hand().values(), "by hand")
    assert "guide/libraries.md" in made
    with pytest.raises(ValueError, match=r"two pages for guide/libraries\.md"):
        site.add(made, "guide/libraries.md", "generated")
    for place, text in {
        "start/glossary.md": site.glossary(),
        "guide/other_libraries.md": clients.page(),
    }.items():
        site.add(made, place, text)


def test_help_names_the_other_names_of_a_function():
    for space in ("mb", "mb.linalg", "mb.fft"):
        for called, thing in SPACES[space].items():
            if inspect.isfunction(thing) and reference.is_ours(thing) and called != thing.__name__:
                assert f"`{space}.{called}`" in text_of(thing), called


def test_signatures_say_where_arrays_come_back():
    """(Jedi completes `mb.sum(x).` by them.)"""
    for f in (mb.zeros, mb.sum, mb.roll, mb.sin, mb.percentile, mb.linalg.solve, mb.fft.fft, mb.kron):
        assert inspect.signature(f).return_annotation is mb.AbstractArray
    for f in (mb.linalg.qr, mb.divmod, mb.nonzero, mb.shape, mb.save):
        assert inspect.signature(f).return_annotation is not mb.AbstractArray


def test_every_entry_of_the_reference_has_an_example():
    """(Where a card, a cluster or another library is needed, one that is not run.)"""
    lacking = set()
    for path, text in reference.pages().items():
        for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:] if path != "index.md" else ():
            if ">>> " not in part and part.count("```python\n") < 2:
                lacking.add(part.split("`")[1])
    assert not lacking


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_reference_are_true(name):
    said = []
    found = doctest.DocTestParser().get_doctest(example(name) + "\n", {}, name, None, 0)
    assert found.examples
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(found, out=said.append)
    assert not runner.failures, "".join(said)
