"""`mb.types`, `mb.distributed`, `mb.ext`: what is where, and what names from before do."""

import pathlib
import pickle
import re
import subprocess
import sys

import pytest
from children import answer

import mirabelle as mb

ROOT = pathlib.Path(__file__).parents[1]
SPACES = ("types", "distributed", "ext")
MOVED = {name: space for space, names in mb._MOVED.items() for name in names.split()}


def test_names_have_one_home():
    assert not set(MOVED) & set(mb.__all__)
    assert len(mb.__all__) <= 530
    for name, space in MOVED.items():
        assert name in getattr(mb, space).__all__
    for space in SPACES:
        module = getattr(mb, space)
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            thing = getattr(module, name)
            others = [s for s in SPACES if s != space and name in getattr(mb, s).__all__]
            assert all(getattr(getattr(mb, s), name) is thing for s in others)
            assert name in MOVED or getattr(mb, name, thing) is thing


def test_old_names_hold_and_say_once_where_they_are_now():
    said = answer(
        f"""
        import json, warnings
        import mirabelle as mb
        wrong = []
        for name, space in {MOVED!r}.items():
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = [getattr(mb, name), getattr(mb, name)]
            if not (found[0] is found[1] is getattr(getattr(mb, space), name)):
                wrong.append(name)
            new = f"mb.{{space}}.{{name}} "
            told = [(w.category.__name__, new in str(w.message), w.filename) for w in heard]
            if told != [("DeprecationWarning", True, "<string>")]:
                wrong.append([name, *map(str, heard)])
        print(json.dumps(wrong))
        """
    )
    assert said == []


def test_our_own_texts_use_the_names_of_today():
    old = re.compile(rf"(?<![\w.])mb\.({'|'.join(MOVED)})\b")
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.ipynb"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = listed.stdout.split()
    if not files:
        pytest.skip("no checkout")
    texts = {f: (ROOT / f).read_text() for f in files if f != "CHANGELOG.md" and (ROOT / f).exists()}
    found = [f"{f}: {m[0]}" for f, text in texts.items() for m in old.finditer(text)]
    assert found == []


def test_types_are_pickled_by_their_new_names():
    for cls in (mb.types.Transpose[mb.HostArray], mb.types.View, mb.distributed.Layout, mb.types.Dual):
        text = pickle.dumps(cls, protocol=0).decode()
        assert pickle.loads(pickle.dumps(cls)) is cls
        assert "mirabelle\n" not in text or cls.__name__ not in vars(mb)
    x = mb.HostArray([[1.0, 2.0]]).T
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).tolist())"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=pickle.dumps(x),
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    assert ran.stdout.strip() == b"[[1.0], [2.0]]"
