"""The paper's three programs: power iteration, a Kronecker product of a type of one's own, gradient descent.

They stand in `mirabelle.programs`; this runs and shows them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from mirabelle.programs import (
    Kronecker,
    domeigen,
    linear_regression,
    mean_squared_error,
    norm_by_factors,
    proximal_gradient_descent,
)
from mirabelle.programs.kronecker_norm import norm_by_entries
from mirabelle.tour.examples import framed, spectrum, transposed
from mirabelle.tour.grid import device_types
from mirabelle.tour.measuring import best_time, in_words, warmed
from mirabelle.tour.screen import Plain

Constructor = Callable[[Any], Any]


def listing(f: Any) -> str:
    """The source of a function or class, without examples and without type hints that say `Any`."""
    text = inspect.getsource(f)
    text = re.sub(r'"""(.*?)\n.*?"""', r'"""\1"""', text, count=1, flags=re.DOTALL)
    text = re.sub(r" -> (tuple\[Any, Any\]|tuple\[int, \.\.\.\]|Any)", "", text)
    text = re.sub(r": (Any|Model|Loss|int|float) = ", "=", text)
    text = re.sub(r": (Any|Model|Loss|int)\b", "", text)
    return re.sub(r"\(\n\s+(.*)\n\):", r"(\1):", text)


# Power iteration


def eigenvalues(out: Plain, quick: bool) -> dict[str, list[tuple[int, float]]]:
    """Power iteration with each constructor; returns the errors on the way."""
    out.code(listing(domeigen))
    n, iterations = 64, 60
    matrix = spectrum(n)
    constructors: list[tuple[str, Constructor]] = [
        ("mb.HostArray", mb.HostArray),
        ("transposed", transposed),
        ("framed", framed),
        *((f"mb.{t.__name__}", t) for t in device_types()),
    ]
    rows = []
    for name, array in constructors:
        A = array(matrix)
        b, found = domeigen(A, iterations)
        rows.append([name, type(A).__name__, type(b).__name__, f"{float(found):.12f}"])
    D = mb.Tridiagonal(mb.full(299, -1.0), mb.full(300, 2.0), mb.full(299, -1.0))
    laplacian = mb.KroneckerSum(D, D)
    b, found = domeigen(laplacian, 60 if quick else 1000)
    rows.append(
        ["mb.KroneckerSum", "KroneckerSum[Tridiagonal, Tridiagonal]", type(b).__name__, f"{float(found):.12f}"]
    )
    out.say(
        f"For a matrix of order {n} whose eigenvalues are 1, 0.8, 0.8², ...; and for the Laplacian of a\n"
        f"300x300 grid, of order {laplacian.shape[0]}, which stores {laplacian.stored_bytes / 1e3:.0f} KB:"
    )
    out.table(["made by", "type of A", "type of the vector", "eigenvalue"], rows)

    errors = {}
    shown = constructors[:1] if quick else constructors
    for i, (name, array) in enumerate(shown):
        A = array(matrix)
        steps = range(1 + 2 * i, 73, 2 * len(shown))
        errors[name] = [(p, abs(float(domeigen(A, p)[1]) - 1.0)) for p in steps]
    return errors


# Kronecker products


def kronecker(out: Plain, quick: bool) -> dict[str, list[tuple[int, float]]]:
    """The norm of a Kronecker product of a type declared in a dozen lines; returns times by orders."""
    out.say(
        "A type says its shape and its entries. Printing, indexing, arithmetic, products and reductions\n"
        "are inherited, on every place. This is all of it:"
    )
    out.code(listing(Kronecker))
    R = Kronecker(mb.RefArray([[1.0, 2.0], [3.0, 4.0]]), mb.RefArray([[0.0, 1.0], [1.0, 0.0]]).T)
    out.say(f"{type(R).__name__}:\na row of it is {R[2]}, and its sum {mb.sum(R)}.")
    out.say("The inherited norm computes all entries and stores none. One more method, and it computes none:")
    out.code("@mb.norm.method\n" + listing(norm_by_factors))

    random = np.random.default_rng(2)
    seconds = 0.05 if quick else 0.2
    times: dict[str, list[tuple[int, float]]] = {"inherited": [], "with the method": [], "NumPy, dense": []}
    rows = []
    for n in (4, 8, 16, 32, 64, 256, 1024):
        A, B = random.normal(size=(n, n)), random.normal(size=(n, n))
        K = Kronecker(mb.HostArray(A), mb.HostArray(B))
        row = [str(n), f"{K.size:.1e}", "", "", ""]
        ways: list[tuple[str, Callable[[], Any]]] = [("with the method", lambda: mb.norm(K))]
        if n <= (32 if quick else 64):
            ways.append(("inherited", lambda: norm_by_entries(K)))
            ways.append(("NumPy, dense", lambda: np.linalg.norm(np.kron(A, B))))
        for name, norm in ways:
            warmed(norm)
            took = best_time(norm, seconds)
            times[name].append((n, took))
            row[2 + ["NumPy, dense", "inherited", "with the method"].index(name)] = in_words(took)
        rows.append(row)
    out.table(["order", "entries", "NumPy, dense", "inherited", "with the method"], rows)
    return times


# Gradient descent


def descent(out: Plain, quick: bool) -> dict[str, list[float]]:
    """Fitting a model by the derivatives of a loss; returns the loss at each step."""
    out.say(
        "The model and the loss know nothing of derivatives: they are ordinary functions, which mb.autodiff\n"
        "calls with dual numbers. Below, loss_dw and loss_db are mb.autodiff.gradient and\n"
        "mb.autodiff.derivative of loss(model(w, b, x), y)."
    )
    for function in (linear_regression, mean_squared_error, proximal_gradient_descent):
        out.code(listing(function))
    kinds: list[tuple[str, Constructor, int, int]] = [
        ("mb.HostArray", mb.HostArray, 100, 1000 if quick else 4096)
    ]
    kinds += [(f"mb.{t.__name__}", t, 4, 24) for t in device_types()]
    losses: dict[str, list[float]] = {}
    rows = []
    for name, array, n, outputs in kinds:
        random = np.random.default_rng(3)
        weights, inputs = random.normal(size=(1, n)), random.normal(size=(n, outputs))
        x, y = array(inputs), array(weights @ inputs + 0.5)
        w, b = array(np.zeros((1, n))), 0.0
        seen = []
        for _ in out.progress(range(10 if quick else 40), f"{n} weights, {outputs} outputs, {name}"):
            w, b = proximal_gradient_descent(linear_regression, mean_squared_error, w, b, x, y)
            seen.append(float(mean_squared_error(linear_regression(w, b, x), y)))
        far = float(np.max(np.abs(mb.to_numpy(w) - weights)))
        rows.append([name, type(w).__name__, f"{n}", f"{seen[0]:.3f}", f"{seen[-1]:.1e}", f"{far:.1e}"])
        losses[f"{name}, {n} weights"] = seen
    out.table(
        ["made by", "type of the weights", "weights", "first loss", "last loss", "error of the weights"], rows
    )
    return losses
