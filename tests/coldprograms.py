"""`python3 -m tests.coldprograms [card|host]`: first calls of large programs, cold and warm from disk."""

import os
import subprocess
import sys
import tempfile
import time


def measure(place):
    """Print the seconds of the first calls of two right-hand sides, and of their stages."""
    import mirabelle as mb
    from tests import waves

    array = mb.CuArray if place == "card" else mb.HostArray
    one = array([1.0, 2.0])
    mb.to_numpy(one + 1)  # (the card is ready, and so are the libraries)
    for name in ("wave", "euler"):
        arguments = getattr(waves, f"{name}_arguments")(48, array)
        compiled = mb.compile(getattr(waves, f"{name}_rhs"))
        began = time.perf_counter()
        results = compiled(*arguments)
        mb.to_numpy(results[0] if isinstance(results, tuple) else results)
        first = time.perf_counter() - began
        program = compiled.program(*arguments)
        native = ""
        if place == "host":
            while program.runner.segments is None and time.perf_counter() - began < 120:
                program.runner.complete()
                time.sleep(0.005)
            native = f", native after {time.perf_counter() - began:.2f} s"
        stages = ", ".join(f"{k} {v * 1000:.0f}" for k, v in program.seconds.items())
        nodes, steps = len(program.graph), len(program.plan.steps)
        print(
            f"  {name}: {nodes} nodes, {steps} steps, first result {first:.2f} s{native} (ms: {stages})",
            flush=True,
        )


def main():
    place = sys.argv[1] if len(sys.argv) > 1 else "host"
    if os.environ.get("MIRABELLE_COLD"):
        import mirabelle as mb

        with mb.default_array(mb.CuArray if place == "card" else mb.HostArray):
            measure(place)
        return
    with tempfile.TemporaryDirectory() as folder:
        for which in ("cold", "warm from disk"):
            print(f"{place}, {which}:", flush=True)
            env = {**os.environ, "MIRABELLE_COLD": "1", "MIRABELLE_CACHE_DIR": folder}
            subprocess.run([sys.executable, "-m", "tests.coldprograms", place], env=env, check=True)


if __name__ == "__main__":
    main()
