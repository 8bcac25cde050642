"""The site: `make site` builds it into `build/site/html`, to be read with any browser, also without a network.

Markdown pages of `docs/` are taken as they are; the reference is made of docstrings (what `help` shows), the
gallery of the notebooks, the pages on speed of `benchmarks/results`. mkdocs-material shows them, because the
pages are Markdown that the tests run already, and its search works from files.
"""
