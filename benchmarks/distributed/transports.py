"""What carries a halo of 8 kB between two processes: MPI, the sockets of `backends/tcp`, Dask's own comms.

This row decides that Dask's workers talk through sockets of ours: a comm of Dask's is a coroutine of the
worker's event loop, and packs, splits and joins what it sends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.distributed._ranks import on_ranks, own_core, take_turns

# Microseconds of an exchange of so many bytes: each rank sends, and receives.
BYTES, TARGET_US = 8192, 30.0
SOCKETS = "sockets"


def run(tiny: bool, folder: Path | None) -> None:
    record = on_ranks(2, "transports:measure", tiny=tiny)
    base = record["MPI"]["best_s"]
    rows = [
        [name, f"{t['best_s'] * 1e6:.1f}", f"{t['median_s'] * 1e6:.1f}", f"{t['best_s'] / base:.1f}"]
        for name, t in record.items()
    ]
    met = record[SOCKETS]["best_s"] * 1e6 <= TARGET_US
    notes = [
        f"Target: {SOCKETS} at most {TARGET_US:g} µs: {'met' if met else 'MISSED'}. Dask's comms are called "
        "from the thread in which programs run; `in the loop` is a program that were a coroutine there."
    ]
    show(f"An exchange of {BYTES} bytes, µs", ["by", "best", "median", "of MPI's"], rows, notes)
    if folder is not None:
        store("distributed_transports", {"bytes": BYTES, "target_us": TARGET_US, "cases": record}, folder)


# On a rank


def measure(tiny: bool) -> dict[str, Any] | None:
    import mirabelle as mb
    from mirabelle.backends.tcp import TLS

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    other = 1 - comm.rank
    sent, landed = np.zeros(BYTES // 8), np.empty(BYTES // 8)
    scope = {"sends": {other: sent}, "lands": {other: landed}}
    statements = {"MPI": ("comm.exchange(sends, lands)", {"comm": comm, **scope})}
    with tempfile.TemporaryDirectory() as folder:
        contexts = _contexts(comm, Path(folder))
        for suffix, tls in ("", None), (", TLS", contexts):
            if tls is None and suffix:
                continue
            joined = _joined(comm, TLS(*tls) if tls else None)
            statements[SOCKETS + suffix] = ("comm.exchange(sends, lands)", {"comm": joined, **scope})
            if importlib.util.find_spec("distributed") is not None:
                dask = DaskComm(comm, sent, tls)
                statements[f"Dask's comms{suffix}"] = ("exchange()", {"exchange": dask.exchange})
                if not suffix:
                    statements["Dask's comms, in the loop"] = ("many()", {"many": dask.many})
    times = take_turns(comm, statements, *((3, 0.004) if tiny else (80, 0.004)))
    record = {name: t.as_json() for name, t in times.items()}
    for t in (record[n] for n in record if "loop" in n):
        t |= {k: t[k] / DaskComm.MANY for k in ("best_s", "median_s")}
    return record if comm.rank == 0 else None


def _joined(comm: Any, tls: Any) -> Any:
    from mirabelle.backends.tcp import Listener, connect

    listener = Listener("127.0.0.1")
    addresses = comm.allgather_object(listener.address)
    return connect(comm.rank, comm.size, addresses, b"benchmark", listener, tls=tls)


def _contexts(comm: Any, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    """For the end that calls and the end that listens, with one certificate of all ranks."""
    made = _certificate(folder) if comm.rank == 0 and shutil.which("openssl") else None
    texts = comm.bcast_object(made)
    if texts is None:
        return None
    paths = folder / "certificate.pem", folder / "key.pem"
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    contexts = []
    for purpose in ssl.Purpose.SERVER_AUTH, ssl.Purpose.CLIENT_AUTH:
        context = ssl.create_default_context(purpose, cafile=str(paths[0]))
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(*paths)
        contexts.append(context)
    return contexts[0], contexts[1]


def _certificate(folder: Path) -> tuple[str, str]:
    paths = folder / "certificate.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=a",
    ]
    subprocess.run([*command, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths[0].read_text(), paths[1].read_text()


class DaskComm:
    """A comm of Dask's between two ranks, and the event loop that it lives in, as in a worker."""

    # Exchanges in a row within the event loop.
    MANY = 20

    def __init__(self, comm: Any, sent: np.ndarray, contexts: Any) -> None:
        from distributed.protocol.serialize import to_serialize

        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.sent = {"data": to_serialize(sent)}
        found, address = self.call(self._listen(comm.rank, contexts))
        address = comm.bcast_object(address)
        self.comm = self.call(self._open(comm.rank, address, contexts, found))

    def call(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    async def _listen(self, rank: int, contexts: Any) -> Any:
        from distributed.comm import listen

        found: asyncio.Queue[Any] = asyncio.Queue()
        if rank:
            return found, None

        async def handle(comm: Any) -> None:
            await found.put(comm)
            await asyncio.Event().wait()

        scheme, options = ("tls", {"ssl_context": contexts[1]}) if contexts else ("tcp", {})
        self.listener = await listen(f"{scheme}://127.0.0.1", handle, **options)
        return found, self.listener.contact_address

    async def _open(self, rank: int, address: str, contexts: Any, found: asyncio.Queue[Any]) -> Any:
        from distributed.comm import connect

        if rank == 0:
            return await found.get()
        return await connect(address, **({"ssl_context": contexts[0]} if contexts else {}))

    async def _exchange(self, times: int) -> None:
        for _ in range(times):
            await asyncio.gather(self.comm.write(self.sent), self.comm.read())

    def exchange(self) -> None:
        self.call(self._exchange(1))

    def many(self) -> None:
        self.call(self._exchange(self.MANY))
