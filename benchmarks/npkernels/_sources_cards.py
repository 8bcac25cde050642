"""Kernels of a folder on a card: our arrays, eager and compiled, beside CuPy's, and NumPy's on the host.

    BENCHMARKS_ARRAY=CuArray python -m benchmarks npkernels --sources FOLDER [--tiny] [--out FOLDER]

Each source runs as its user would run it on other arrays: as it is, and with the names of NumPy in its module
meaning the other library's; the faster of the two counts, for CuPy's arrays as for ours.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import geometric_mean, store
from benchmarks.gpu._card import Card
from benchmarks.gpu._libraries import to_numpy
from benchmarks.npkernels import _sources

# A card is given more to do than the host: NumPy should take so many seconds, or arguments have so many bytes.
LEAST, BYTES = 0.05, 2e7
# Seconds for one call (of a compiled function: its first), for all rounds of a way, and for a kernel in all.
CALL, FIRST, ROUNDS, KERNEL = 5, 40, 0.5, 100
# Calls before those that count; so many single elements read or written make a program one of loops.
BEFORE, FEW = 3, 64
WAYS = ("eager", "compiled", "cupy")
METHOD = (
    "Seconds from the call until the card is done with all results, the median; arguments are made anew before "
    "each call, outside of the clock. eager and cupy are the source as it is or with NumPy's names replaced, "
    "whichever is faster (form says it); compiled is mb.compile of the source as it is. A program is one of "
    f"loops if it reads or writes more than {FEW} single elements of its arguments at the smallest size. "
    "transfers and scalar_reads are those of one call, after the first."
)


def run_on_card(root: Path, names: list[str], rounds: int, out: str, tiny: bool) -> None:
    """Measure kernels on a card, print the table, and store it after each kernel. What the file has of the same
    kind of card is not measured again, so that a run that was ended goes on."""
    array = os.environ["BENCHMARKS_ARRAY"]
    card = Card(tiny=True)
    head = f"{'kernel':28} {'size':>5} {'NumPy ms':>9} {'CuPy ms':>9} {'first s':>8}"
    print(f"{head} {'eager':>8} {'compiled':>8} {'transf.':>8} {'reads':>8}   (CuPy's time / ours)")
    facts = card.facts()
    rows = _stored(Path(out) / f"npkernels_sources_{array}.json", names, facts) if out else []
    for row in rows:
        print(_line(row), flush=True)
    known = {row["name"] for row in rows}
    for row in _rows(root, [n for n in names if n not in known], rounds, tiny):
        rows.append(row)
        print(_line(row), flush=True)
        if out:
            content = {
                "array": array,
                "method": METHOD,
                "card": facts,
                "means": means(rows),
                "kernels": rows,
            }
            store(f"npkernels_sources_{array}", content, Path(out))
    for what, found in means(rows).items():
        print(f"{what}: {json.dumps(found, default=float)}")


def _stored(path: Path, names: list[str], facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an earlier run on the same kind of card that came to an end."""
    if not path.exists():
        return []
    before = json.loads(path.read_text())
    if before["card"]["gpu"] != facts["gpu"] or before["card"]["versions"] != facts["versions"]:
        return []
    return [row for row in before["kernels"] if row["name"] in names and "error" not in row]


def means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means over CuPy and over NumPy on the host, of array programs and of loop programs."""
    found: dict[str, Any] = {}
    for what, loops in (("array programs", False), ("loop programs", True)):
        mine = [r for r in rows if r.get("loops") is loops]
        of: dict[str, Any] = {"programs": len(mine)}
        for way in ("eager", "compiled"):
            ran = [r for r in mine if isinstance(r.get(way), float)]
            beside = {r["name"]: r["cupy"] / r[way] for r in ran if isinstance(r.get("cupy"), float)}
            of[way] = {
                "right": len(ran),
                "not": [r["name"] for r in mine if r not in ran],
                "compared_with_cupy": len(beside),
                "over_cupy": geometric_mean(list(beside.values())),
                "slower_than_cupy": [n for n, x in beside.items() if x < 0.95],
                "over_numpy": geometric_mean([r["numpy"] / r[way] for r in ran]),
            }
        of["cupy_cannot"] = [r["name"] for r in mine if not isinstance(r.get("cupy"), float)]
        of["transfers_or_scalar_reads"] = {
            r["name"]: c
            for r in mine
            if (c := r.get("counts", {}).get("compiled")) and (c["transfers"] or c["scalar_reads"])
        }
        found[what] = of
    broken = [r["name"] for r in rows if "loops" not in r]
    return {**found, **({"broken": broken} if broken else {})}


def _line(row: dict[str, Any]) -> str:
    if "numpy" not in row:
        return f"{row['name']:28} {row.get('error', '')[:100]}"
    theirs = row.get("cupy")
    said = [f"{theirs * 1e3:9.2f}" if isinstance(theirs, float) else f"{str(theirs or '-')[:9]:>9}"]
    said.append(f"{row.get('first', math.nan):8.2f}")
    for way in ("eager", "compiled"):
        mine = row.get(way)
        if isinstance(mine, float):
            shown = f"{theirs / mine:8.2f}" if isinstance(theirs, float) else f"{mine * 1e3:6.1f}ms"
        else:
            shown = f"{str(mine)[:8]:>8}"
        said.append(shown)
    counts = row.get("counts", {}).get("compiled", {})
    said += [f"{counts.get(k, '-'):>8}" for k in ("transfers", "scalar_reads")]
    mark = " loops" if row["loops"] else ""
    why = f"  {row['why'][:120]}" if row.get("why") else ""
    return f"{row['name']:28} {row['size']:>5} {row['numpy'] * 1e3:9.2f} {' '.join(said)}{mark}{why}"


# One process measures one kernel after the other; where it hangs or dies, another goes on after that


def _rows(root: Path, names: list[str], rounds: int, tiny: bool) -> Iterator[dict[str, Any]]:
    left = list(names)
    while left:
        command = [sys.executable, "-m", __name__, str(root), str(rounds), str(int(tiny)), ",".join(left)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_passed_on, args=(worker.stdout, lines), daemon=True).start()
        while left:
            try:
                line, why = lines.get(timeout=KERNEL), "its process died"
            except queue.Empty:
                line, why = "", f"not done in {KERNEL} s"
            if not line:
                yield {"name": left.pop(0), "error": why}
                break
            row = json.loads(line)
            left.remove(row["name"])
            yield row
        worker.kill()
        worker.wait()


def _passed_on(stream: Any, lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def _work(root: Path, rounds: int, tiny: bool, names: list[str]) -> None:
    stdout, sys.stdout = sys.stdout, sys.stderr  # (what kernels print is no row)
    card = Card(tiny=True)
    for name in names:
        try:
            row = measure(root, name, rounds, tiny, card)
        except BaseException as e:
            row = {"name": name, "error": f"{type(e).__name__}: {e}"[:300]}
        print(json.dumps(row, default=float), file=stdout, flush=True)
        card.release()


# One kernel


def measure(root: Path, name: str, rounds: int, tiny: bool, card: Card) -> dict[str, Any]:
    """The row of one kernel: seconds by way, a text where it failed, and what was counted."""
    import mirabelle as mb

    warnings.simplefilter("ignore")
    kernel = _sources._Kernel(root, name)
    size, _, arguments = _sources._sized(kernel, 0.0 if tiny else LEAST, BYTES)
    row: dict[str, Any] = {"name": name, "size": size, "loops": _is_of_loops(kernel)}
    plain = _sources._copied(arguments, np.array)
    results = _sources._results(kernel.program(*plain.values()), plain)
    wanted = [np.copy(x) for x in results if not _is_sparse(x)]
    why: list[str] = []
    row["forms"], row["counts"] = {}, {}
    with np.errstate(all="ignore"), mb.allow_scalar():
        row["numpy"] = _Way(kernel.program, _numpys, arguments, card).seconds(rounds)
        for way in WAYS:
            ran = _ran(way, _candidates(way, kernel, arguments, card), wanted, why, row)
            if ran is not None:
                row[way] = ran.seconds(rounds)
                if way != "cupy":
                    row["counts"][way] = _counted(ran)
            gc.collect()
    if not any(isinstance(x, np.ndarray) for x in arguments.values()) and "compiled" in row:
        row["compiled"] = "constant"  # (its numbers are constants of a program: that remembers its result)
    row["why"] = "; ".join(why)[:600]
    return row


class _Way:
    """A program on some library's arrays."""

    def __init__(
        self, program: Callable[..., Any], make: Callable[[Any], Any], arguments: dict[str, Any], card: Card
    ) -> None:
        self.program, self.make, self.arguments, self.card = program, make, arguments, card
        self._kept: dict[str, Any] = {}

    def given(self) -> list[Any]:
        """Arguments for one call: copies of those that are where the program runs."""
        self._kept = self._kept or {k: self.make(x) if _is_data(x) else x for k, x in self.arguments.items()}
        return [_copied(x) if _is_data(self.arguments[k]) else x for k, x in self._kept.items()]

    def timed(self) -> tuple[float, list[Any]]:
        import mirabelle as mb

        given = self.given()
        self.card.synchronize()
        began = time.perf_counter()
        found = _sources._results(self.program(*given), dict(enumerate(given)))
        found = [mb.materialize(x) if isinstance(x, mb.AbstractArray) else x for x in found]
        self.card.synchronize()
        return time.perf_counter() - began, found

    def seconds(self, rounds: int) -> float:
        """The median of some calls, after a few; of one, where it takes long."""
        times: list[float] = []
        began = time.perf_counter()
        for turn in range(BEFORE + rounds):
            took = self.timed()[0]
            spent = time.perf_counter() - began
            if turn >= BEFORE or spent > ROUNDS:
                times.append(took)
            if spent > 2 * ROUNDS:
                break
        return statistics.median(times)


def _is_data(x: Any) -> bool:
    return _is_sparse(x) or (isinstance(x, np.ndarray) and bool(x.ndim))


def _copied(x: Any) -> Any:
    """A copy of an array, where it is. (No program writes to a sparse matrix.)"""
    import mirabelle as mb

    if _is_sparse(x):
        return x
    return mb.materialize(mb.copy(x)) if isinstance(x, mb.AbstractArray) else x.copy()


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "tocsr") or type(x).__name__.partition("[")[0] == "CSR"


def _numpys(x: Any) -> Any:
    return x.copy() if hasattr(x, "tocsr") else np.array(x)


def _cupys(x: Any) -> Any:
    import cupy

    if not hasattr(x, "tocsr"):
        return cupy.array(x)
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix(x.tocsr())


def _candidates(way: str, kernel: Any, arguments: dict[str, Any], card: Card) -> dict[str, _Way]:
    """The forms of a program for a way, by what they are."""
    import mirabelle as mb

    family = getattr(mb, os.environ["BENCHMARKS_ARRAY"])
    library: Any
    if way == "cupy":
        if not card:
            return {}
        make, library = _cupys, card.cupy
    else:

        def make(x: Any) -> Any:
            return mb.CSR(x, device=family) if hasattr(x, "tocsr") else mb.materialize(family(x))

        library = mb.namespace(family)
    if way == "compiled":
        return {"as it is": _Way(mb.compile(kernel.program), make, arguments, card)}
    replaced = _with_names(kernel, library)
    return {
        "as it is": _Way(kernel.program, make, arguments, card),
        "names replaced": _Way(replaced, make, arguments, card),
    }


def _ran(
    way: str, forms: dict[str, _Way], wanted: list[Any], why: list[str], row: dict[str, Any]
) -> _Way | None:
    """The faster of the forms whose results are NumPy's."""
    took: dict[str, float] = {}
    for form, mine in forms.items():
        said = ""
        try:
            with _sources._limited(FIRST if way == "compiled" else CALL):
                seconds, found = mine.timed()
                if way == "compiled":
                    row["first"] = seconds
                elif seconds < CALL / 3:
                    seconds = mine.timed()[0]
            # (What is written to is compared as well: `found` holds the arguments.)
            if _sources._same([to_numpy(x) for x in found if not _is_sparse(x)], wanted):
                took[form] = seconds
            else:
                said = "values differ"
        except TimeoutError as e:
            said = str(e)
        except BaseException as e:
            said = f"{type(e).__name__} {str(e)[:150]}"
        if said:
            why.append(f"{way}, {form}: {said}")
    if not took:
        row[way] = "cannot" if forms else "-"
        return None
    row["forms"][way] = best = min(took, key=took.__getitem__)
    return forms[best]


def _counted(way: _Way) -> dict[str, int]:
    import mirabelle as mb

    given = way.given()
    with mb.count() as c:
        found = _sources._results(way.program(*given), dict(enumerate(given)))
        for x in found:
            if isinstance(x, mb.AbstractArray):
                mb.materialize(x)
    return {k: getattr(c, k) for k in ("transfers", "scalar_reads", "launches")}


def _with_names(kernel: Any, library: Any) -> Callable[..., Any]:
    """The program of a copy of its module in which NumPy's names mean another library's."""
    spec = importlib.util.spec_from_file_location(f"{kernel.module.__name__}_replaced", kernel.module.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in list(vars(module).items()):
        if value is np:
            setattr(module, name, library)
        elif isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
            setattr(module, name, getattr(library, value.__name__.partition(".")[2]))
    return getattr(module, kernel.info["func_name"])  # type: ignore[no-any-return]


class _Watched(np.ndarray):
    """An array that counts the single elements that are read and written."""

    touched = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        _Watched.touched += not isinstance(found, np.ndarray)
        return found

    def __setitem__(self, at: Any, value: Any) -> None:
        if all(isinstance(i, (int, np.integer)) for i in (at if isinstance(at, tuple) else (at,))):
            _Watched.touched += (len(at) if isinstance(at, tuple) else 1) == self.ndim
        super().__setitem__(at, value)

    def __iter__(self) -> Any:
        if self.ndim == 1:
            _Watched.touched += len(self)
        return super().__iter__()


def _is_of_loops(kernel: Any) -> bool:
    """Does the program read or write many single elements?"""
    sizes = kernel.info["parameters"]
    _Watched.touched = 0
    given = _sources._copied(
        kernel.arguments("S" if "S" in sizes else next(iter(sizes))), lambda x: np.array(x).view(_Watched)
    )
    try:
        with _sources._limited(CALL), np.errstate(all="ignore"):
            kernel.program(*given.values())
    except BaseException:
        pass
    return _Watched.touched > FEW


if __name__ == "__main__":
    _work(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1", sys.argv[4].split(","))
