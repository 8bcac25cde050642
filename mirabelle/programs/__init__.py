"""The programs of Besard, Churavy, Edelman and De Sutter's paper on rapid prototyping with arrays in Julia.

Each is written once against arrays, with public names only, and names no array type: which one runs
is the caller's choice of a constructor. Tests, benchmarks and notebooks import them from here.

- `power_iteration`: plain array operations (listing 1), and with buffers of its own (listing 19);
- `kronecker_norm`: an array type declared by its user (listing 3), and a method for it (listing 4);
- `proximal_gradient`: a model and a loss that somebody else wrote, differentiated (listings 2 and 20).

>>> import mirabelle as mb
>>> from mirabelle.programs import domeigen
>>> for array in mb.HostArray, mb.RefArray:
...     b, λ = domeigen(array([[2.0, 1.0], [1.0, 2.0]]), 50)
...     print(type(b).__name__, float(mb.around(λ, 6)))
HostArray[float64, 1] 3.0
RefArray[float64, 1] 3.0
"""

from mirabelle.programs.kronecker_norm import Kronecker, norm_by_factors
from mirabelle.programs.power_iteration import domeigen, domeigen_with_buffers
from mirabelle.programs.proximal_gradient import (
    abs2,
    descend,
    linear_regression,
    loss_db,
    loss_dw,
    mean_squared_error,
    proximal_gradient_descent,
    proximal_gradient_descent_in_place,
    train,
)

__all__ = [
    "Kronecker",
    "abs2",
    "descend",
    "domeigen",
    "domeigen_with_buffers",
    "linear_regression",
    "loss_db",
    "loss_dw",
    "mean_squared_error",
    "norm_by_factors",
    "proximal_gradient_descent",
    "proximal_gradient_descent_in_place",
    "train",
]
