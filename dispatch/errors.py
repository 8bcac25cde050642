"""The exceptions mirabelle raises.

Each is also a builtin exception, so that code written against NumPy catches what it
always caught. A message says what happened, the usual cause, and a cure to paste.
"""

from __future__ import annotations


class MirabelleError(Exception):
    """The root of every error that is mirabelle's own."""


class MissingMethodError(MirabelleError, TypeError):
    """No method of a generic function takes arguments of these types."""


class AmbiguousMethodError(MirabelleError, TypeError):
    """Two methods of a generic function fit equally well."""


class UnfaithfulAnnotationError(MirabelleError, TypeError):
    """An annotation that the type of an argument alone cannot decide."""


class PlaceError(MirabelleError, ValueError):
    """Operands live in different places, and moving data was not asked for."""


class ScalarAccessError(MirabelleError, RuntimeError):
    """One element of a device array was read or written by itself."""


class UserFunctionError(MirabelleError, TypeError):
    """A user's scalar function cannot be compiled or returns no scalar."""


class DenseFallbackWarning(UserWarning):
    """An operation has no rule for a structured array, and made it dense."""


class DenseFallbackError(MirabelleError, TypeError):
    """An operation has no rule for a structured array, and making it dense was forbidden."""


class DeviceError(MirabelleError, RuntimeError):
    """A device was asked for something it cannot do."""


class OutOfMemoryError(MirabelleError, MemoryError):
    """A device, or the host, has no room for an array. Every array it holds is what it was."""


class CommunicationError(MirabelleError, RuntimeError):
    """Processes that share an array cannot talk to each other as was asked."""


class RemoteError(CommunicationError):
    """Another process failed. `rank` is which, `remote_traceback` what it said."""

    def __init__(self, message: str, rank: int = -1, remote_traceback: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.remote_traceback = remote_traceback

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.rank, self.remote_traceback)


class LayoutError(MirabelleError, ValueError):
    """Distributed arrays are divided in ways that do not join."""


class GatheringWarning(UserWarning):
    """An operation brought a large distributed array together on each process."""


class ConvergenceWarning(UserWarning):
    """An iterative solver gave up before the residual was as small as was asked for."""
