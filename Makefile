# Every target makes the virtual environment it needs, so a machine needs only Python >= 3.11 and
# a C compiler. An environment is made again when pyproject.toml, setup.py or what is written in C changes.

# The first Python on the path that is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check --no-input
SOURCES = mirabelle dispatch arraytypes backends dg

.PHONY: help demo test lint types wheel versions release-check dev links format bench docs site clean

help:
	@echo "make demo     run the tour: one program, several arrays, a picture"
	@echo "make test     run the tests"
	@echo "make lint     ruff check and ruff format --check"
	@echo "make types    mypy and pyright"
	@echo "make dev      what an editor needs: environments, and a tree in which definitions are found"
	@echo "make wheel    build a wheel, and try it in an empty environment without a compiler"
	@echo "make versions try each Python that is here, the oldest and the newest NumPy and Numba"
	@echo "make release-check   all that a release must pass beside the tests: wheel, versions, site"
	@echo "make format   let ruff put the code in order"
	@echo "make bench    run the benchmarks beside their peers"
	@echo "make docs     write docs/settings.md, the README's picture and figures, and execute the notebooks"
	@echo "make site     build the site, with every function, into build/site/html; warnings and broken links are errors"
	@echo "make clean    remove everything that can be made again"

demo: .venv-demo/.made
	.venv-demo/bin/python -m mirabelle demo

test: .venv-test/.made
	.venv-test/bin/python -m pytest -n 2 tests

lint: .venv-lint/.made
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .

format: .venv-lint/.made
	.venv-lint/bin/ruff check --fix .
	.venv-lint/bin/ruff format .

# The type checkers see the package as it is installed: a tree of links, because no checker reads
# setuptools' package-dir. Files are linked one by one, because pyright follows no linked folder.
# (A strict editable install is such a tree too, but lacks files made after it.)
links:
	@rm -rf build/types
	@for f in $$(find $(SOURCES) -name '*.py' -o -name '*.pyi' -o -name py.typed); do \
		to=build/types/mirabelle/$${f#mirabelle/}; mkdir -p $$(dirname $$to); ln -s "$(CURDIR)/$$f" $$to; done

types: .venv-lint/.made links
	@failed=0; \
	(cd build/types && ../../.venv-lint/bin/mypy --config-file ../../pyproject.toml -p mirabelle) & mypy=$$!; \
	.venv-lint/bin/pyright --pythonpath .venv-lint/bin/python || failed=1; \
	.venv-lint/bin/pyright --pythonpath .venv-lint/bin/python -p tests/typed || failed=1; \
	wait $$mypy || failed=1; \
	exit $$failed

# Editors look in the same tree ([tool.pyright] in pyproject.toml); a language server is asked whether it finds its way.
dev: .venv-lint/.made .venv-test/.made links
	.venv-lint/bin/python -m docs.definitions .venv-lint/bin/pyright-langserver .venv-test/bin/python

bench: .venv-bench/.made
	.venv-bench/bin/python -m benchmarks

docs: .venv-docs/.made
	.venv-docs/bin/python -m mirabelle settings --markdown > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md
	.venv-docs/bin/python -m docs.picture
	.venv-docs/bin/python -m docs.figures
	.venv-docs/bin/python -m notebooks

# To be read with any browser: build/site/html/index.html. (`python -m docs.site --serve` shows it while pages are written.)
site: .venv-site/.made
	.venv-site/bin/python -m docs.site

wheel: .venv-test/.made
	.venv-test/bin/python -m tests.installed wheel

versions: .venv-test/.made
	.venv-test/bin/python -m tests.installed versions

release-check: wheel versions site

clean:
	rm -rf .venv-demo .venv-test .venv-lint .venv-bench .venv-docs .venv-site build dist *.egg-info demo_out
	rm -f dispatch/*.so
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find $(SOURCES) tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# What each environment holds. The package itself is installed as a link to this folder, so that
# what runs is always the code that stands here.
.venv-demo/.made: WANTED = -e '.[plot]' rich
.venv-test/.made: WANTED = -e '.[test]'
.venv-lint/.made: WANTED = -e '.[lint]'
.venv-bench/.made: WANTED = -e '.[bench]'
.venv-docs/.made: WANTED = -e '.[docs,scipy]'
.venv-site/.made: WANTED = -e '.[site]'

.venv-%/.made: pyproject.toml setup.py $(wildcard dispatch/csrc/*)
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 was found. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "making .venv-$* with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python $(PIP_INSTALL) $(WANTED)
	@touch $@
