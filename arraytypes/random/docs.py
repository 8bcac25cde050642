"""Docstrings of generators' methods, whose sentences are the same for many: parameters, results, examples.

What a method is stands with the method; the sections that follow are made here.
"""

from __future__ import annotations

import inspect
import textwrap
from types import FunctionType
from typing import TypeVar

G = TypeVar("G")

_REALS = "array of float64, of float32 if `dtype` says so"
_WHOLES = "array of int64"
_SIZED = "Of shape `size`, or of the shape that the parameters have together; `out`, if it is given."

# Parameters by name: their type, and what they say. Those of one method stand under its name.
_NUMBERS = {
    "a": "The shape, positive.",
    "alpha": "The shapes of the gamma numbers, positive: one for each share.",
    "b": "The second shape, positive.",
    "beta.a": "The first shape, positive.",
    "colors": "How many there are of each color.",
    "cov": "The covariance matrix.",
    "df": "The degrees of freedom, positive.",
    "dfden": "The degrees of freedom of the denominator, positive.",
    "dfnum": "The degrees of freedom of the numerator, positive.",
    "high": "The upper bound.",
    "kappa": "How narrow the distribution is, not negative; 0 is uniform.",
    "lam": "The mean, not negative.",
    "left": "The lower bound.",
    "loc": "Where the distribution lies: its mean.",
    "gumbel.loc": "Where the density is largest.",
    "low": "The lower bound.",
    "mean": "The mean.",
    "lognormal.mean": "The mean of the logarithm.",
    "mode": "Where the density is largest.",
    "mu": "The mean direction, an angle.",
    "multinomial.n": "How many experiments there are.",
    "multivariate_normal.mean": "The mean, a vector.",
    "n": "How many trials there are.",
    "nbad": "How many bad ones there are.",
    "negative_binomial.n": "The number of successes, positive.",
    "ngood": "How many good ones there are.",
    "nonc": "The sum of the squares of the means, not negative.",
    "nsample": "How many are drawn.",
    "p": "A probability, from 0 to 1.",
    "pvals": "The probabilities of the outcomes, which sum to 1.",
    "right": "The upper bound.",
    "scale": "The scale, not negative.",
    "normal.scale": "The standard deviation, not negative.",
    "exponential.scale": "The mean, not negative.",
    "shape": "The shape of the distribution, not negative.",
    "sigma": "The standard deviation of the logarithm, not negative.",
    "zipf.a": "The exponent, greater than 1.",
}
# Those that are vectors, by how these sentences end.
_VECTORS = ("a vector.", "each share.", "each color.", "outcomes, which sum to 1.", "covariance matrix.")
_OPTIONS = {
    "size": ("int, tuple of int or None", "The shape of the result; None is that of the parameters."),
    "dtype": ("dtype or None", "float64 or float32; None is float64."),
    "integers.high": ("int, array or None", "The upper bound; None is `low`, and numbers begin at 0 then."),
    "integers.low": ("int or array", "The lower bound; alone, the upper one."),
    "integers.dtype": ("dtype or None", "Any integer dtype, or bool; None is int64."),
    "out": ("array or None", "Where the numbers are written; None is a new array."),
    "axis": ("int, default 0", "Along which axis."),
    "permuted.axis": ("int or None", "Along which axis; None shuffles all elements."),
    "check_valid": ("{'warn', 'raise', 'ignore'}", "What is done if `cov` is no covariance."),
    "choice.a": ("array or int", "What is chosen from; an integer stands for those below it."),
    "choice.p": ("array or None", "How likely each is; None is all equally."),
    "choice.size": ("int, tuple of int or None", "How many are chosen; None is one."),
    "distribution": ("str, default 'random'", "The name of a method."),
    "*args": ("numbers and arrays", "The method's own parameters."),
    "**kwargs": ("numbers and arrays", "The same by name."),
    "endpoint": ("bool, default False", "Whether `high` may come."),
    "jumps": ("int, default 1", "How many times."),
    "length": ("int", "How many."),
    "method": ("str", "Taken for NumPy's sake: there is one way here."),
    "multivariate_normal.method": ("{'svd', 'eigh', 'cholesky'}", "How `cov` is factorised."),
    "n_children": ("int", "How many."),
    "offset": ("tuple of int", "Where the block begins."),
    "replace": ("bool, default True", "Whether one may be chosen again."),
    "shuffle": ("bool, default True", "Taken for NumPy's sake: the order is always random."),
    "split.n": ("int", "How many."),
    "tol": ("float, default 1e-08", "How far from a covariance `cov` may be."),
    "total": ("tuple of int", "The shape of the whole."),
    "fill.x": ("array", "What is overwritten."),
    "permutation.x": ("array or int", "What is shuffled; an integer stands for those below it."),
    "permuted.x": ("array", "What is shuffled."),
    "shuffle.x": ("array or list", "What is shuffled, in place."),
}
# What those give that give no array of the parameters' shape.
_GIVEN = {
    "bytes": ("bytes", "Of that length."),
    "choice": ("array", "Of the dtype of `a`, int64 for an integer; along `axis` it has the shape `size`."),
    "dirichlet": (_REALS, "Of shape `size` and one dimension more, for the shares."),
    "fill": ("array", "`x` itself."),
    "integers": ("array of int64, or of `dtype`", _SIZED),
    "jumped": ("Generator", "It has calls of its own."),
    "multinomial": (_WHOLES, "Of shape `size` and one dimension more, for the outcomes."),
    "multivariate_hypergeometric": (_WHOLES, "Of shape `size` and one dimension more, for the colors."),
    "multivariate_normal": (_REALS, "Of shape `size` and one dimension more, for the components."),
    "permutation": ("array", "A new one, of the shape and dtype of `x`; int64 for an integer."),
    "permuted": ("array", "Of the shape and dtype of `x`; `out`, if it is given."),
    "piece": ("Generator", "`size` is the shape of the block for it."),
    "spawn": ("list of Generator", "Each has a key of its own."),
    "split": ("list of Generator", "Each has a key of its own."),
}
# Examples: calls, and their means.
_MEANS = {
    "beta": ("2.0, 3.0", 0.4),
    "chisquare": ("4.0", 4.0),
    "f": ("5.0, 12.0", 1.2),
    "gumbel": ("1.0, 2.0", 2.2),
    "hypergeometric": ("6, 4, 5", 3.0),
    "laplace": ("1.0, 2.0", 1.0),
    "logistic": ("1.0, 0.5", 1.0),
    "lognormal": ("0.0, 0.5", 1.1),
    "logseries": ("0.5", 1.4),
    "negative_binomial": ("3, 0.5", 3.0),
    "noncentral_chisquare": ("3.0, 2.0", 5.0),
    "noncentral_f": ("4.0, 12.0, 2.0", 1.8),
    "pareto": ("6.0", 0.2),
    "power": ("4.0", 0.8),
    "rayleigh": ("2.0", 2.5),
    "triangular": ("0.0, 1.0, 5.0", 2.0),
    "vonmises": ("1.0, 4.0", 1.0),
    "wald": ("3.0, 9.0", 3.0),
    "weibull": ("2.0", 0.9),
    "zipf": ("5.0", 1.0),
}
_OTHERS = {
    "jumped": "rng = mb.random.default_rng(7)\n>>> bool(rng.jumped().random() == rng.random())\nFalse",
    "standard_cauchy": "mb.random.default_rng(7).standard_cauchy((2, 3)).shape\n(2, 3)",
}


def told(generator: type[G]) -> type[G]:
    """A class of generators whose methods say in NumPy's sections what they take and give.

    >>> import mirabelle as mb
    >>> print((inspect.getdoc(mb.random.Generator.rayleigh) or "").partition("\\n\\nExamples")[0])
    The length of a vector of two normal components of deviation `scale`.
    <BLANKLINE>
    Parameters
    ----------
    scale : float or array, default 1.0
        The scale, not negative.
    size : int, tuple of int or None
        The shape of the result; None is that of the parameters.
    dtype : dtype or None
        float64 or float32; None is float64.
    out : array or None
        Where the numbers are written; None is a new array.
    <BLANKLINE>
    Returns
    -------
    array of float64, of float32 if `dtype` says so
        Of shape `size`, or of the shape that the parameters have together; `out`, if it is given.
    """
    for name in dir(generator):
        f = inspect.getattr_static(generator, name)
        if isinstance(f, FunctionType) and not name.startswith("_"):
            f.__doc__ = _docstring(name, f)
    return generator


def _docstring(name: str, f: FunctionType) -> str:
    meaning, _, example = inspect.cleandoc(f.__doc__ or "").partition(">>> ")
    said = [_parameter(name, p) for p in list(inspect.signature(f).parameters.values())[1:]]
    found = [meaning.rstrip(), _section("Parameters", said)]
    if f.__annotations__["return"] != "None":
        wholes = "dtype" not in f.__annotations__
        found.append(_section("Returns", [_GIVEN.get(name, (_WHOLES if wholes else _REALS, _SIZED))]))
    return "\n\n".join([*found, f"Examples\n--------\n>>> {example or _example(name)}"])


def _parameter(name: str, p: inspect.Parameter) -> tuple[str, str]:
    shown = str(p).partition(":")[0].partition("=")[0].strip()
    kind, text = _OPTIONS.get(f"{name}.{shown}") or _OPTIONS.get(shown) or ("", "")
    if not kind or f"{name}.{shown}" in _NUMBERS:
        text = _NUMBERS.get(f"{name}.{shown}") or _NUMBERS[shown]
        one = "" if text.endswith(_VECTORS) else "int or " if text.startswith("How many") else "float or "
        kind = f"{one}array{'' if p.default in (None, p.empty) else f', default {p.default}'}"
    return f"{shown} : {kind}", text


def _section(title: str, entries: list[tuple[str, str]]) -> str:
    lines = [title, "-" * len(title)]
    for head, text in entries:
        lines += [head, textwrap.indent(text, "    ")]
    return "\n".join(lines)


def _example(name: str) -> str:
    lines = "import mirabelle as mb\n>>> "
    if name in _OTHERS:
        return lines + _OTHERS[name]
    given, mean = _MEANS[name]
    return (
        f"{lines}x = mb.random.default_rng(7).{name}({given}, size=10_000)\n"
        f'>>> print(f"{{mb.mean(x):.1f}}")\n{mean}'
    )
