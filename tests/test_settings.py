"""Settings: one table, read from the environment, documented from itself."""

import pathlib
import sys
import threading
import time

import pytest

import mirabelle as mb
from mirabelle.dispatch.settings import TABLE, Settings, documentation

ROOT = pathlib.Path(__file__).parents[1]


def test_the_environment_is_read(monkeypatch):
    monkeypatch.setenv("MIRABELLE_NUM_THREADS", "7")
    monkeypatch.setenv("MIRABELLE_CACHE", "off")
    monkeypatch.setenv("MIRABELLE_CACHE_DIR", "/nowhere")
    monkeypatch.setenv("MIRABELLE_COMPILER", "thread")
    monkeypatch.setenv("MIRABELLE_TREE_LIMIT", "10")
    monkeypatch.setenv("MIRABELLE_ALLOW_SCALAR", "yes")
    s = Settings()
    assert (s.num_threads, s.cache, s.cache_dir, s.compiler, s.tree_limit, s.allow_scalar) == (
        7, False, "/nowhere", "thread", 10, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "variable, text",
    [("NUM_THREADS", "many"), ("NUM_THREADS", "0"), ("NUM_THREADS", ""), ("CACHE", "perhaps"),
     ("COMPILER", "fast"), ("TREE_LIMIT", "-1"), ("POOL_BYTES", "1GB"), ("ALLOW_SCALAR", "2")],
)  # fmt: skip
def test_nonsense_in_the_environment_is_explained(monkeypatch, variable, text):
    monkeypatch.setenv(f"MIRABELLE_{variable}", text)
    with pytest.raises(ValueError) as e:
        Settings()
    message = str(e.value)
    assert f"MIRABELLE_{variable}={text!r}" in message and "Unset it" in message
    (setting,) = [s for s in TABLE if s.variable == f"MIRABELLE_{variable}"]
    assert setting.help in message


def test_every_setting_has_its_default(monkeypatch):
    for s in TABLE:
        monkeypatch.delenv(s.variable, raising=False)
    fresh = Settings()
    for s in TABLE:
        if s.name != "num_threads":
            assert getattr(fresh, s.name) == s.default
    assert fresh.num_threads >= 1


def test_unknown_settings_are_refused_with_the_list():
    with pytest.raises(AttributeError, match=r"no setting 'threads'.*num_threads"):
        mb.settings.threads = 3
    with pytest.raises(AttributeError), mb.settings.changed(threads=3):
        pass


def test_changed_restores_also_after_an_error():
    before = mb.settings.tree_limit
    with pytest.raises(ZeroDivisionError), mb.settings.changed(tree_limit=1):
        assert mb.settings.tree_limit == 1
        raise ZeroDivisionError
    assert mb.settings.tree_limit == before


def test_values_set_in_python_are_checked():
    """As in the environment: a wrong value is refused where it is written."""
    with mb.settings.changed():
        for name, value in (("num_threads", 0), ("compiler", "fast"), ("tree_limit", -1)):
            before = getattr(mb.settings, name)
            try:
                with pytest.raises((ValueError, TypeError), match=name):
                    setattr(mb.settings, name, value)
            finally:
                mb.settings.__dict__[name] = before


def test_the_documentation_lists_every_setting():
    text = documentation()
    for s in TABLE:
        assert f"`{s.name}`" in text and f"`{s.variable}`" in text and s.help in text
    assert all(line.count("|") >= 5 for line in text.splitlines() if line.startswith("|"))


def test_the_page_in_docs_is_up_to_date():
    page = ROOT / "docs" / "settings.md"
    assert page.exists(), "python -m mirabelle settings --markdown > docs/settings.md"
    assert page.read_text() == documentation()


def test_repr_shows_values_and_help():
    text = repr(mb.settings)
    assert "MIRABELLE_NUM_THREADS=2" in text and TABLE[0].help in text


def test_what_is_told_last_is_what_holds():
    """Whichever threads set values: the part in C, which is told of them, would go on with others."""
    told, before = [], mb.settings.brief_size

    def watch(s):
        value = s.brief_size
        time.sleep(0)  # (others may run, as they may anywhere)
        told.append(value)

    mb.settings.watch(watch)

    def work(k):
        for value in range(30):
            mb.settings.brief_size = 1000 * k + value

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert told[-1] == mb.settings.brief_size
    finally:
        sys.setswitchinterval(interval)
        mb.settings._watching.remove(watch)
        mb.settings.brief_size = before
