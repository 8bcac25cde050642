"""The exceptions mirabelle raises.

Each is also a builtin exception, so that code written against NumPy catches what it
always caught. A message says what happened, the usual cause, and a cure to paste.
"""

from __future__ import annotations


class MirabelleError(Exception):
    """The root of every error that is mirabelle's own.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.RefArray([1.0]) + mb.HostArray([1.0])
    ... except mb.MirabelleError as error:
    ...     print(type(error).__name__)
    PlaceError
    """


class MissingMethodError(MirabelleError, TypeError):
    """No method of a generic function takes arguments of these types.

    >>> import mirabelle as mb
    >>> @mb.generic
    ... def area(shape): ...
    >>> try:
    ...     area(3)
    ... except mb.MissingMethodError:
    ...     print("nobody has said what the area of an int is")
    nobody has said what the area of an int is
    """


class AmbiguousMethodError(MirabelleError, TypeError):
    """Two methods of a generic function fit equally well.

    >>> import mirabelle as mb
    >>> issubclass(mb.AmbiguousMethodError, TypeError)
    True
    """


class UnfaithfulAnnotationError(MirabelleError, TypeError):
    """An annotation that the type of an argument alone cannot decide.

    >>> import mirabelle as mb
    >>> @mb.generic
    ... def first(x): ...
    >>> try:
    ...     @first.method
    ...     def _(x: list[int]): return x[0]
    ... except mb.UnfaithfulAnnotationError:
    ...     print("whether a list is one of int, its type does not say")
    whether a list is one of int, its type does not say
    """


class PlaceError(MirabelleError, ValueError):
    """Operands live in different places, and moving data was not asked for.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.RefArray([1.0]) + mb.HostArray([1.0])
    ... except mb.PlaceError:
    ...     print("moved nowhere unasked")
    moved nowhere unasked
    """


class ScalarAccessError(MirabelleError, RuntimeError):
    """One element of a device array was read or written by itself.

    >>> import mirabelle as mb
    >>> with mb.allow_scalar(False):
    ...     try:
    ...         float(mb.RefArray([1.0])[0])
    ...     except mb.ScalarAccessError:
    ...         print("one element by itself")
    one element by itself
    """


class UserFunctionError(MirabelleError, TypeError):
    """A user's scalar function cannot be compiled or returns no scalar.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.materialize(mb.broadcast(lambda v: [v, v], mb.HostArray([1.0])))
    ... except mb.UserFunctionError:
    ...     print("a scalar function returns numbers")
    a scalar function returns numbers
    """


class DenseFallbackWarning(UserWarning):
    """An operation has no rule for a structured array, and made it dense, of so many bytes.

    >>> import mirabelle as mb
    >>> import warnings
    >>> with mb.settings.changed(dense_fallback="warn"), warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     x = mb.exp(mb.Diagonal([1.0, 2.0]))
    >>> told[0].category is mb.DenseFallbackWarning, told[0].message.nbytes
    (True, 32)
    """

    nbytes = 0


class DenseFallbackError(MirabelleError, TypeError):
    """An operation has no rule for a structured array, and making it dense was forbidden.

    >>> import mirabelle as mb
    >>> with mb.settings.changed(dense_fallback="error"):
    ...     try:
    ...         mb.exp(mb.Diagonal([1.0, 2.0]))
    ...     except mb.DenseFallbackError:
    ...         print("exp(0) is 1: the result is not diagonal")
    exp(0) is 1: the result is not diagonal
    """


class DeviceError(MirabelleError, RuntimeError):
    """A device was asked for something it cannot do.

    >>> import mirabelle as mb
    >>> try:
    ...     mb.stream(mb.HostArray)
    ... except mb.DeviceError as error:
    ...     print(error)
    A stream belongs to a card, and host is none. Name one: `device=mb.CuArray`.
    """


class OutOfMemoryError(MirabelleError, MemoryError):
    """A device, or the host, has no room for an array. Every array it holds is what it was.

    >>> import mirabelle as mb
    >>> try:
    ...     x = mb.zeros(10**15)
    ... except mb.OutOfMemoryError:
    ...     x = mb.zeros(10**3)
    >>> x.shape
    (1000,)
    """


class CommunicationError(MirabelleError, RuntimeError):
    """Processes that share an array cannot talk to each other as was asked.

    >>> import mirabelle as mb
    >>> try:
    ...     raise mb.CommunicationError("Ranks do different things.")
    ... except RuntimeError as error:
    ...     print(error)
    Ranks do different things.
    """


class RemoteError(CommunicationError):
    """Another process failed. `rank` is which, `remote_traceback` what it said.

    >>> import mirabelle as mb
    >>> try:
    ...     raise mb.RemoteError("Process 3 failed: no space left on its disk.", rank=3)
    ... except mb.RemoteError as error:
    ...     print(error.rank)
    3
    """

    def __init__(self, message: str, rank: int = -1, remote_traceback: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.remote_traceback = remote_traceback

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.rank, self.remote_traceback)


class LayoutError(MirabelleError, ValueError):
    """Distributed arrays are divided in ways that do not join.

    >>> import mirabelle as mb
    >>> columns = mb.distributed.Layout(mb.distributed.Block(1))
    >>> try:
    ...     mb.distributed.redistribute(mb.DArray[mb.HostArray]([1.0, 2.0]), columns)
    ... except mb.LayoutError as error:
    ...     print(error)
    Block(1) divides dimension 1, and the array has 1: shape (2,).
    """


class GatheringWarning(UserWarning):
    """An operation brought a large distributed array together on each process.

    A program that must not do so makes it an error:

    >>> import mirabelle as mb
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", mb.GatheringWarning)
    ...     print(mb.sum(mb.ones(4, device=mb.DArray[mb.HostArray])))
    4.0
    """


class ConvergenceWarning(UserWarning):
    """An iterative solver gave up before the residual was as small as was asked for.

    >>> import mirabelle as mb
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     x = mb.linalg.cg(mb.Diagonal([1.0, 50.0]), mb.HostArray([1.0, 1.0]), maxiter=1)
    >>> told[0].category is mb.linalg.ConvergenceWarning
    True
    """
