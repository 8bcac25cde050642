"""The NCCL backend: memory of cards goes from card to card, and not by way of the host.

Programs say nothing of it. When the first array with parts on cards is made over a communicator (MPI's,
sockets'), its members find out together whether each has a card of its own and a NCCL that CuPy can load;
then memory of cards goes by NCCL, and everything else as before. `mb.settings.nccl = False`
(MIRABELLE_NCCL=0) leaves it out. On AMD's cards the same is RCCL.

Importing this reads the environment, to give each rank of a machine a card of its own (see cards.py).
CuPy and NCCL are loaded with the first such array.
"""

from __future__ import annotations

import socket
import warnings
from typing import Any

from mirabelle.arraytypes.distributed import communicators
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.nccl import binding, cards
from mirabelle.dispatch import loading
from mirabelle.dispatch.settings import settings

# What divided arrays on cards do beside their messages (and cards alone do not need).
loading.completed_by(GPUArray, "mirabelle.backends.gpu.halos")


@communicators.carrier_for.method
def _(inner: type[GPUArray], comm: Communicator) -> Communicator | None:
    """NCCL, where it can."""
    if comm.size == 1 or inner.fake:
        return None
    why, card = _readiness(inner)
    said = comm.allgather_object((why, card))
    reasons = [f"rank {r}: {text}" for r, (text, _) in enumerate(said) if text]
    found = [place for _, place in said]
    if not reasons and len(set(found)) < len(found):
        first = next(place for place in found if found.count(place) > 1)
        sharing = [r for r, place in enumerate(found) if place == first]
        reasons = [
            f"ranks {sharing} share card {first[1]} of {first[0]}, and NCCL wants one for each. Start one "
            "rank for each card at most, or let each see another card (CUDA_VISIBLE_DEVICES)"
        ]
    if not reasons:
        return _connected(comm, inner)
    if comm.rank == 0 and any(place is not None for place in found):
        warnings.warn(
            f"Parts on cards go by way of the host, because NCCL cannot be used: {'; '.join(reasons)}. "
            "MIRABELLE_NCCL=0 says that this is meant.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _readiness(inner: Any) -> tuple[str, Any]:
    """Why NCCL cannot be used on this process, or nothing; and which card it has, if NCCL is wanted."""
    if not settings.nccl:
        return "it is switched off", None
    try:
        driver = inner.driver()
        if driver.simulated and not binding.simulated:
            return "the card is simulated", None
        card = socket.gethostname(), binding.card_name(driver)
    except Exception as e:
        return f"{type(e).__name__}: {e}".rstrip("."), None
    reason = binding.missing()
    return reason, card


def _connected(comm: Communicator, inner: Any) -> Communicator | None:
    from mirabelle.backends.nccl.communicator import NCCLCommunicator

    made: Any = None
    error = ""
    key = comm.bcast_object(binding.new_key() if comm.rank == 0 else None)
    try:
        made = NCCLCommunicator(comm, inner, key)
    except Exception as e:
        error = f"{type(e).__name__}: {e}"
    said = comm.allgather_object(error)
    failed = [f"rank {r}: {text}" for r, text in enumerate(said) if text]
    if not failed:
        return made  # type: ignore[no-any-return]
    if comm.rank == 0:
        warnings.warn(
            f"NCCL did not start, and parts on cards go by way of the host ({'; '.join(failed)}). Set "
            "NCCL_DEBUG=WARN to see why; MIRABELLE_NCCL=0 says that this is meant.",
            RuntimeWarning,
            stacklevel=3,
        )
    return None


cards.choose()
