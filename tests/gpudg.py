"""`python3 -m tests.gpudg [--out FOLDER]`: the standard problems of dg on a card beside the host.

Right-hand sides and a few steps of each case of `tests.test_dg_examples` agree to rounding. Prints a line for
each, and writes them to FOLDER/gpu_dg.json.
"""

import argparse
import importlib
import json
import pathlib
import sys
import time

import numpy as np

import mirabelle as mb
from mirabelle import dg
from tests.test_dg_examples import CASES

# Of the largest value: sums and functions are taken in another order, or by another library.
AGREE = 1e-12


def compared(case, steps):
    """What a case came to on the host and on the card: (rates, states, launches of a right-hand side)."""
    example = importlib.import_module(f"mirabelle.dg.examples.{case.example}")
    found = []
    for array in (mb.HostArray, mb.CuArray):
        semi, initial, (begin, end), options = example.setup(array=array, **case.parameters)
        u = semi.state(initial, begin)
        t = semi.scalar(begin)
        compiled = mb.compile(semi.rhs)
        rates = mb.to_numpy(compiled(u, t))
        plain = mb.to_numpy(mb.materialize(semi.rhs(u, t)))
        solution = dg.solve(semi, (begin, end), initial, max_steps=steps, **options)
        found.append((rates, plain, mb.to_numpy(solution.u), len(compiled.program(u, t).plan.steps)))
    return found


def difference(a, b):
    """The largest difference over the largest value, where that is not rounding itself, as in steady flows."""
    return float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-2)) if a.size else 0.0


def main(words):
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpudg")
    parser.add_argument("--out", default="", metavar="FOLDER")
    parser.add_argument("--only", default="", help="names of examples, with commas between")
    given = parser.parse_args(words)
    lines, failed = [], 0
    for case in CASES:
        if given.only and case.example not in given.only.split(","):
            continue
        began = time.perf_counter()
        try:
            host, card = compared(case, min(case.steps, 3))
        except Exception as error:
            failed += 1
            print(f"FAILED  {case}: {type(error).__name__}: {error}", flush=True)
            lines.append({"case": str(case), "error": type(error).__name__})
            continue
        off = {
            "rates": difference(host[0], card[0]),
            "uncompiled rates": difference(host[1], card[1]),
            "state": difference(host[2], card[2]),
        }
        # Nothing moves in a free stream: its rates are rounding alone.
        agrees = max(off.values()) < AGREE or (case.example == "free_stream" and off["state"] < AGREE)
        failed += not agrees
        text = ", ".join(f"{name} {value:.1e}" for name, value in off.items())
        took = time.perf_counter() - began
        print(f"{'ok' if agrees else 'FAILED':7} {case}: {text}; {card[3]} steps; {took:.1f} s", flush=True)
        lines.append({"case": str(case), "agrees": agrees, "steps": card[3], **off})
    if given.out:
        pathlib.Path(given.out, "gpu_dg.json").write_text(json.dumps(lines, indent=1) + "\n")
    print(f"{len(lines) - failed} of {len(lines)} cases agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
