"""Proximal gradient descent: a model and a loss that know nothing of derivatives, and a few lines that do.

`proximal_gradient_descent` takes both as functions and differentiates what they compute, whatever it is
(listing 2). Weights are a row, inputs have a column for each output.

>>> import mirabelle as mb
>>> x = mb.HostArray([[0.0, 1.0, 2.0, 3.0]])
>>> y = 2 * x + 1
>>> w, b, steps = train(linear_regression, mean_squared_error, mb.zeros((1, 1)), 0.0, x, y, below=1e-6)
>>> print(mb.around(w, 2), f"{float(b):.2f}", steps < 500)
[[2.]] 1.00 True

Another model is another function:

>>> def parabola(w, b, x):
...     return w @ (x * x) + b
>>> w, b, _ = train(parabola, mean_squared_error, mb.zeros((1, 1)), 0.0, x, x * x, lr=0.02, below=1e-6)
>>> print(mb.around(w, 2))
[[1.]]

How many derivatives one evaluation carries is a method, too, and so an application can choose it for a
type of arrays (listing 20):

>>> with mb.override(mb.autodiff.chunk_size, (mb.HostArray,), lambda x: 8):
...     dw = loss_dw(linear_regression, mean_squared_error, mb.zeros((1, 1)), 0.0, x, y)
>>> print(dw)
[[-17.]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirabelle as mb
from mirabelle.programs.recorded import recorded

Model = Callable[[Any, Any, Any], Any]
Loss = Callable[[Any, Any], Any]


# model
def linear_regression(w: Any, b: Any, x: Any) -> Any:
    """One output a column of `x`.

    >>> import mirabelle as mb
    >>> print(linear_regression(mb.HostArray([[1.0, 2.0]]), 0.5, mb.HostArray([[1.0, 0.0], [1.0, 2.0]])))
    [[3.5 4.5]]
    """
    return w @ x + b


# loss function
def abs2(x: Any) -> Any:
    """|x²| of one number: an ordinary scalar function.

    >>> abs2(-3.0)
    9.0
    """
    return abs(x * x)


def mean_squared_error(ŷ: Any, y: Any) -> Any:
    """The mean over the outputs; `abs2` runs inside the kernel that subtracts and adds up.

    >>> import mirabelle as mb
    >>> print(mean_squared_error(mb.HostArray([[1.0, 2.0]]), mb.HostArray([[1.0, 4.0]])))
    2.0
    """
    return mb.mapreduce(abs2, mb.add, ŷ - y) / y.shape[1]


# get gradient w.r.t. to 'w'
def loss_dw(model: Model, loss: Loss, w: Any, b: Any, x: Any, y: Any) -> Any:
    """The gradient of the loss by the weights.

    >>> import mirabelle as mb
    >>> x, y = mb.HostArray([[1.0, 2.0]]), mb.HostArray([[2.0, 4.0]])
    >>> print(loss_dw(linear_regression, mean_squared_error, mb.HostArray([[1.0]]), 0.0, x, y))
    [[-5.]]
    """
    return mb.autodiff.gradient(lambda w: loss(model(w, b, x), y), w)


# get derivative w.r.t. to 'b'
def loss_db(model: Model, loss: Loss, w: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative of the loss by the bias.

    >>> import mirabelle as mb
    >>> x, y = mb.HostArray([[1.0, 2.0]]), mb.HostArray([[2.0, 4.0]])
    >>> print(float(loss_db(linear_regression, mean_squared_error, mb.HostArray([[1.0]]), 0.0, x, y)))
    -3.0
    """
    return mb.autodiff.derivative(lambda b: loss(model(w, b, x), y), b)


# optimization algorithm
def proximal_gradient_descent(
    model: Model, loss: Loss, w: Any, b: Any, x: Any, y: Any, *, lr: float = 0.1
) -> tuple[Any, Any]:
    """One step: other weights and another bias, at which the loss is less.

    >>> import mirabelle as mb
    >>> x, y = mb.HostArray([[1.0, 2.0]]), mb.HostArray([[2.0, 4.0]])
    >>> w = mb.HostArray([[1.0]])
    >>> w, b = proximal_gradient_descent(linear_regression, mean_squared_error, w, 0.0, x, y)
    >>> print(w, f"{float(b):.2f}")
    [[1.5]] 0.15
    """
    w = w - lr * loss_dw(model, loss, w, b, x, y)
    b = b - lr * loss_db(model, loss, w, b, x, y)
    return w, b


def proximal_gradient_descent_in_place(
    model: Model, loss: Loss, w: Any, b: Any, x: Any, y: Any, *, lr: float = 0.1
) -> tuple[Any, Any]:
    """The same step, written to the weights and the bias it was given (arrays, both).

    >>> import mirabelle as mb
    >>> x, y = mb.HostArray([[1.0, 2.0]]), mb.HostArray([[2.0, 4.0]])
    >>> w, b = mb.HostArray([[1.0]]), mb.HostArray(0.0)
    >>> _ = proximal_gradient_descent_in_place(linear_regression, mean_squared_error, w, b, x, y)
    >>> print(w, f"{float(b):.2f}")
    [[1.5]] 0.15
    """
    w -= lr * loss_dw(model, loss, w, b, x, y)
    b -= lr * loss_db(model, loss, w, b, x, y)
    return w, b


def descend(
    model: Model,
    loss: Loss,
    w: Any,
    b: Any,
    x: Any,
    y: Any,
    steps: int,
    *,
    optimize: Callable[..., tuple[Any, Any]] = proximal_gradient_descent,
) -> tuple[Any, Any]:
    """So many steps. All of them are one program to `mb.compile`, which sees through the derivatives.

    >>> import mirabelle as mb
    >>> x, y = mb.HostArray([[1.0, 2.0]]), mb.HostArray([[2.0, 4.0]])
    >>> many = mb.compile(lambda w, b: descend(linear_regression, mean_squared_error, w, b, x, y, 20))
    >>> w, b = many(mb.HostArray([[1.0]]), mb.HostArray(0.0))
    >>> print(f"{float(w[0, 0]):.2f} {float(b):.2f}")
    1.88 0.19
    """
    for _ in range(steps):
        w, b = optimize(model, loss, w, b, x, y)
    return w, b


def descend_recorded(
    model: Model, loss: Loss, w: Any, b: Any, x: Any, y: Any, *, lr: float = 0.1
) -> Callable[[Any, Any, int], tuple[Any, Any]]:
    """Steps on a card, where one, derivatives and all, is recorded, and replayed as one launch.

    The result is called with weights and a bias to start from and the number of steps; its results are in `w`
    and `b`.
    """
    replay = recorded(lambda: proximal_gradient_descent_in_place(model, loss, w, b, x, y, lr=lr))

    def run(from_w: Any, from_b: Any, steps: int) -> tuple[Any, Any]:
        w[...], b[...] = from_w, from_b
        replay(steps)
        return w, b

    return run


def train(
    model: Model,
    loss: Loss,
    w: Any,
    b: Any,
    x: Any,
    y: Any,
    *,
    lr: float = 0.1,
    below: float = 0.01,
    limit: int = 10_000,
    optimize: Callable[..., tuple[Any, Any]] = proximal_gradient_descent,
) -> tuple[Any, Any, int]:
    """Steps until the loss is below a limit: the weights, the bias, and how many steps it took.

    The loss is the one number that is read from the arrays at each step.

    >>> import mirabelle as mb
    >>> x, y = mb.RefArray([[1.0, -1.0]]), mb.RefArray([[3.0, -3.0]])
    >>> w, b, steps = train(linear_regression, mean_squared_error, mb.zeros_like(x)[:, :1], 0.0, x, y)
    >>> print(mb.abs(w - 3) < 0.1, type(w).__name__)
    [[ True]] RefArray[float64, 2]
    """
    steps = 0
    while loss(model(w, b, x), y) >= below:
        if steps == limit:
            raise RuntimeError(
                f"The loss is not below {below:g} after {limit} steps. Usually the learning rate is too large "
                f"or too small: train(..., lr={lr / 10:g})."
            )
        w, b = optimize(model, loss, w, b, x, y, lr=lr)
        steps += 1
    return w, b, steps
