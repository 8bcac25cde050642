"""Pages of the reference: every public name with its signature, what `help` says of it, and what is NumPy's."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import mirabelle as mb
from docs.site import subjects
from docs.site.docstrings import escaped, markdown, prose, summary, text_of
from docs.site.examples import example
from mirabelle.arraytypes.define import array_function

# Namespaces of NumPy and SciPy that have functions of the same names. (What NumPy lacks has no such line.)
NUMPYS = {"mb": np, "mb.linalg": np.linalg, "mb.fft": np.fft, "mb.lib.stride_tricks": np.lib.stride_tricks}
NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# What signatures do not say: names that NumPy has for something else, functions that take anything.
SAID = {
    "apply_along_axis": "the same parameters; `func1d` gets arrays of the type of `arr`.",
    "broadcast": "its function of this name pairs the shapes of arrays: here `mb.broadcast_shapes`, "
    "`mb.broadcast_arrays`.",
    "clip": "the same parameters, of options only `out` and `casting`; `a_min`, `a_max` by name.",
    "default_rng": "only here: `device`. The same methods, other numbers ([random "
    "numbers](../guide/random.md)).",
    "einsum": "the same parameters, without `order`; what is contracted first is chosen, unless "
    "`optimize=False`.",
    "fromfunction": "not here: `like`; only here: `device`.",
    "fromstring": "not here: `like`; only here: `device`. `sep` has to be given: bytes are for "
    "`mb.frombuffer`.",
    "generic": "`np.generic` is the type of NumPy's numbers; results here are arrays without axes.",
    "pad": "the same parameters, all modes.",
    "piecewise": "the same parameters.",
    "place": "`np.place(x, mask, values)` writes; so does this one with three arguments.",
    "savez": "the same parameters; objects of Python are not written, whatever `allow_pickle` says.",
    "savez_compressed": "as of `savez`.",
    "vectorize": "the same parameters, without `signature`; `pyfunc` is compiled, so that it returns numbers.",
}
# Arguments that no function here takes.
NEVER = {"like", "axes"}
WIDE = 88  # a signature that is longer stands on several lines


def signature(thing: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return None


def told(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter without an annotation that says nothing."""
    return parameter.replace(annotation=parameter.empty) if parameter.annotation in ("Any", Any) else parameter


def written(called: str, thing: Any) -> str:
    """The call with its parameters, one a line if they are many."""
    found = signature(thing)
    if found is None:
        return called
    kept = [told(p) for p in found.parameters.values()]
    said = str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty)).replace("'", "")
    returned = found.return_annotation
    after = "" if returned in ("Any", "None", Any, None, found.empty) else f" -> {shown_type(returned)}"
    if len(called + said + after) <= WIDE:
        return called + said + after
    rows, slash, star = [], False, False
    for p in kept:
        if slash and p.kind is not p.POSITIONAL_ONLY:
            rows.append("/")
        if p.kind is p.KEYWORD_ONLY and not star:
            rows.append("*")
        slash, star = p.kind is p.POSITIONAL_ONLY, star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        rows.append(str(p).replace("'", ""))
    rows += ["/"] if slash else []
    return f"{called}(\n" + "".join(f"    {row},\n" for row in rows) + f"){after}"


def shown_type(annotation: Any) -> str:
    """What a signature says that comes back, as a program writes it."""
    return inspect.formatannotation(annotation).replace("'", "").replace("mirabelle.", "mb.")


def numpys_counterpart(space: str, names: Iterable[str]) -> Any:
    """NumPy's function of one of the names, if there is one and it is not this very object."""
    return next((f for f in (getattr(NUMPYS.get(space), n, None) for n in names) if callable(f)), None)


def beside_numpy(space: str, names: Sequence[str], thing: Any) -> str:
    """What parameters NumPy's function has more and less, read from both signatures."""
    theirs = numpys_counterpart(space, names)
    if theirs is thing and theirs is not None:
        return "*Beside NumPy:* NumPy's own."
    if space in ("mb", "mb.random") and names[0] in SAID:
        return f"*Beside NumPy:* {SAID[names[0]]}"
    if theirs is None or inspect.isclass(thing):
        return ""
    ours, numpys = signature(thing), signature(theirs)
    if ours is None or numpys is None or any(p.kind is p.VAR_KEYWORD for p in numpys.parameters.values()):
        return ""
    said = differences(ours, numpys, taken(thing))
    return f"*Beside NumPy:* {'; '.join(said) or 'the same parameters'}."


def taken(thing: Any) -> Container[str] | None:
    """What a function takes besides what its signature says: `out=` alone, or None, all that NumPy's takes."""
    further = getattr(getattr(thing, "core", None), "further", None)
    if further is None:
        return ()
    return ("out",) if further.__module__ == array_function.__module__ else None


def differences(
    ours: inspect.Signature, numpys: inspect.Signature, besides: Container[str] | None
) -> list[str]:
    """What differs, in words; what a function takes `besides` its signature (see `taken`) is no difference."""
    mine, theirs = dict(ours.parameters), dict(numpys.parameters)
    wider = besides is None or any(p.kind is p.VAR_KEYWORD for p in mine.values())
    renamed = []
    for (a, p), (b, q) in zip(ours.parameters.items(), numpys.parameters.items(), strict=False):
        if p.default is not p.empty or q.default is not q.empty or q.kind is q.KEYWORD_ONLY:
            break  # (operands are compared by their places, options by their names)
        if a != b and a not in theirs and b not in mine:  # the same place under another name
            renamed += [f"`{b}` is `{a}` here"] if p.kind is q.kind is p.POSITIONAL_OR_KEYWORD else []
            del mine[a], theirs[b]
    missing = [n for n, q in theirs.items() if n not in mine and q.kind is not q.VAR_POSITIONAL]
    missing = [n for n in missing if n in NEVER or not (wider or n in (besides or ()))]
    further = [n for n, p in mine.items() if n not in theirs and p.kind in NAMED]
    told = [("not here: ", missing), ("only here: ", further)]
    return renamed + [head + ", ".join(f"`{n}`" for n in found) for head, found in told if found]


def own(thing: type) -> dict[str, Any]:
    """What a class has and array types do not have in common; of their root, all it has."""
    common = set() if thing is mb.AbstractArray else set(mb.AbstractArray.__mro__)
    found: dict[str, Any] = {}
    for base in reversed([c for c in thing.__mro__ if c is thing or c not in common]):
        if base.__module__.startswith("mirabelle"):
            found |= vars(base)
    return {
        name: value for name, value in found.items() if not name.startswith("_") and not inspect.isclass(value)
    }


def methods(thing: type) -> Iterator[str]:
    """Rows of a table: the methods and properties of a class, each with its first sentence."""
    for name, value in sorted(own(thing).items()):
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        what = getattr(function, "fget", None) or getattr(function, "func", None) or function
        about = escaped(summary(what)) if callable(what) else ""
        if not about and hasattr(np.ndarray, name):
            about = f"as `np.ndarray.{name}`"
        if not about:
            continue
        found = signature(function) if callable(function) else None
        call = name
        if found is not None:
            kept = [told(p) for n, p in found.parameters.items() if n not in ("self", "cls")]
            call += str(found.replace(parameters=kept, return_annotation=found.empty)).replace("'", "")
        yield f"| `{call}` | {about} |".replace(" | None", " or None")


def entry(space: str, names: list[str], thing: Any) -> str:
    """A name and its other names."""
    called = f"{space}.{names[0]}"
    anchors = "".join(f'<a id="{space}.{name}"></a>' for name in names[1:])
    parts = [f"## `{called}` {{ id='{called}' }}"]
    if "__" in called:  # (in an attribute Markdown would make bold type of it)
        parts = [f"## `{called}`", f'<a id="{called}"></a>']
    if anchors:
        told_there = "Also called" in text_of(thing)
        also = "Also called " + ", ".join(f"`{space}.{n}`" for n in names[1:]) + "."
        parts.append(anchors + ("" if told_there else also))
    if callable(thing):
        parts.append(f"```python\n{written(called, thing)}\n```")
    if callable(thing) or type(thing).__module__ != "builtins":
        parts.append(markdown(text_of(thing)) if is_ours(thing) else numpys_text(thing))
    else:
        parts.append(f"`{thing!r}`")
    parts.append(prose(example(called.removeprefix("mb."))))
    parts.append(beside_numpy(space, names, thing))
    if inspect.isclass(thing) and is_ours(thing):
        rows = list(methods(thing))
        if rows:
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part)


def is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "mirabelle")).startswith("mirabelle")


def numpys_text(thing: Any) -> str:
    return f"NumPy's own: {escaped(summary(thing))}"


def grouped(found: dict[str, Any]) -> list[tuple[list[str], Any]]:
    """(names, thing), with all names of one thing together; its own name first."""
    groups: dict[int, tuple[list[str], Any]] = {}
    for name, thing in found.items():
        # (Small numbers are one object, whoever says them.)
        key = id(thing) if callable(thing) else id(name)
        groups.setdefault(key, ([], thing))[0].append(name)
    made = []
    for names, thing in groups.values():
        own = getattr(thing, "__name__", "")
        made.append((sorted(names, key=lambda n, own=own: (n != own, n)), thing))
    return sorted(made, key=lambda group: group[0][0].lower())


def page(space: str, title: str, about: str, found: dict[str, Any]) -> str:
    """A page: a table of its names with their first sentences, then each."""
    groups = grouped(found)
    rows = []
    for names, thing in groups:
        said = escaped(summary(thing)) if is_ours(thing) else "NumPy's own"
        rows.append(f"| [`{names[0]}`](#{space}.{names[0]}) | {said} |")
    table = "\n".join(["| | |", "|---|---|", *rows])
    return "\n\n".join([f"# {title}", about, table, *(entry(space, *group) for group in groups)]) + "\n"


def index(pages: dict[str, tuple[str, str, dict[str, Any]]]) -> str:
    """All names by letter, each a link to where it stands."""
    letters: dict[str, list[tuple[str, str]]] = {}
    for path, (space, _, found) in pages.items():
        for names, _ in grouped(found):
            for name in names:
                target = f"{path}#{space}.{name}"
                letters.setdefault(name.lstrip("_")[0].upper(), []).append((f"{space}.{name}", target))
    made = ["# Every public name", "What stands behind a name is what `help` shows of it, too."]
    made.append(
        "*Beside NumPy* compares the parameters of a function with those of NumPy's of the same name. What "
        "differs of all of them (values wait, reductions give arrays, sums have an order of their own) is on "
        "the page [from NumPy](../coming_from/numpy.md)."
    )
    made.append("By subject: " + " · ".join(f"[{title}]({path})" for path, (_, title, _) in pages.items()))
    for letter, links in sorted(letters.items()):
        links.sort(key=lambda link: link[0].rsplit(".", 1)[1].lower())
        made += [f"## {letter}", " · ".join(f"[`{called}`]({target})" for called, target in links)]
    return "\n\n".join(made) + "\n"


def pages() -> dict[str, str]:
    """The text of each page of the reference, by its file's name."""
    found: dict[str, tuple[str, str, dict[str, Any]]] = {}
    abouts: dict[str, str] = {}
    things = subjects.by_subject()
    for subject in subjects.SUBJECTS:
        found[f"{subject.page}.md"] = ("mb", subject.title, things[subject.page])
        abouts[f"{subject.page}.md"] = subject.about
    for module, space, title in subjects.SPACES:
        path = f"{module.removeprefix('mirabelle.').replace('.', '_')}.md"
        found[path] = (space, title, subjects.public(module))
        abouts[path] = f"`{module}`. " + markdown(
            inspect.cleandoc(importlib.import_module(module).__doc__ or "")
        )
    made = {path: page(space, title, abouts[path], things) for path, (space, title, things) in found.items()}
    made["index.md"] = "---\nsearch: {exclude: true}\n---\n\n" + index(found)
    return made
