"""MFEM's ex18 in the Python that MFEM_PYTHON names: `python _mfem_programs.py OPTIONS` (JSON) prints a line of
JSON.

Example 18 of MFEM (https://mfem.org, R. Anderson et al., Comput. Math. Appl. 81, 2021,
doi:10.1016/j.camwa.2020.06.009): the Euler equations in two dimensions, a vortex that a uniform flow carries
through a periodic square, Rusanov's flux, Gauss points. It runs in three ways: the wheel's own program, with
stored element matrices ("ea") and without ("mf"), and what PyMFEM makes of the library's classes ("classes"),
in which Python says what a right-hand side consists of and C++ computes it.

Nothing but PyMFEM, NumPy and the standard library is imported here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

GAMMA = 1.4
RADIUS, MACH, STRENGTH = 0.2, 0.5, 0.2  # MFEM's "fast vortex", its problem 1
LIMIT_S = 120.0


def folder() -> Path:
    """What MFEM was built with, and its examples and meshes."""
    import mfem

    return Path(mfem.__file__).parent / "external" / "ser"


def vortex(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """The vortex in its first place: density, momenta, energy."""
    shape = np.exp(-0.5 * (x * x + y * y) / RADIUS**2)
    u = 1.0 - STRENGTH * y / RADIUS * shape
    v = STRENGTH * x / RADIUS * shape
    pressure = 1.0 / (GAMMA * MACH**2)
    heat = GAMMA / (GAMMA - 1.0)
    temperature = 1.0 - 0.5 * STRENGTH**2 * shape * shape / (heat * pressure)
    density = temperature ** (1.0 / (GAMMA - 1.0))
    energy = density * pressure * temperature / (GAMMA - 1.0) + 0.5 * density * (u * u + v * v)
    return density, density * u, density * v, energy


def program(order: int, refine: int, step: float, final: float, way: str) -> dict[str, Any]:
    """The wheel's compiled ex18 with RK4 and steps of one length; what it prints."""
    root = folder()
    command = [str(root / "examples" / "ex18"), "-m", str(root / "data" / "periodic-square.mesh")]
    command += ["-no-vis", "-vs", "1000000", "-p", "1", "-s", "4", "-r", str(refine), "-o", str(order)]
    command += ["-tf", repr(final), "-dt", repr(step), "-c", "-1", f"-{way}"]
    with tempfile.TemporaryDirectory(prefix="mirabelle-mfem-") as here:  # it leaves files where it is
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    said = done.stdout

    def number(pattern: str) -> float:
        found = re.findall(pattern + r"\s*([-+0-9.eE]+)", said)
        if not found:
            raise RuntimeError(f"ex18 did not print {pattern!r}: {said[-400:]}")
        return float(found[-1])

    return {
        "unknowns": int(number("Number of unknowns:")),
        "steps": int(number("time step:")),
        "seconds": number("done,"),
        "error": number("Solution error:"),
    }


def classes(order: int, refine: int, step: float, final: float) -> dict[str, Any]:
    """The same of the library's classes, as PyMFEM has them: all loops over elements and faces are in C++."""
    import mfem.ser as mfem

    mesh = mfem.Mesh(str(folder() / "data" / "periodic-square.mesh"), 1, 1)
    for _ in range(refine):
        mesh.UniformRefinement()
    collection = mfem.DG_FECollection(order, 2)
    scalar = mfem.FiniteElementSpace(mesh, collection)
    space = mfem.FiniteElementSpace(mesh, collection, 4, mfem.Ordering.byNODES)
    physics = mfem.EulerFlux(2, GAMMA)
    flux = mfem.RusanovFlux(physics)
    integrator = mfem.HyperbolicFormIntegrator(flux, 1)
    form = mfem.NonlinearForm(space)
    form.AddDomainIntegrator(integrator)
    form.AddInteriorFaceIntegrator(integrator)
    form.UseExternalIntegrators()
    mass = mfem.BilinearForm(scalar)
    mass.AddDomainIntegrator(mfem.InverseIntegrator(mfem.MassIntegrator()))
    mass.Assemble()
    mass.Finalize()
    inverse, n = mass.SpMat(), scalar.GetVSize()

    class RightHandSide(mfem.PyTimeDependentOperator):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(4 * n)
            self.rates = mfem.Vector(4 * n)

        def Mult(self, x: Any, y: Any) -> None:
            form.Mult(x, self.rates)
            for k in range(4):
                inverse.Mult(mfem.Vector(self.rates, k * n, n), mfem.Vector(y, k * n, n))

    class Vortex(mfem.VectorPyCoefficient):  # type: ignore[misc, name-defined]
        def EvalValue(self, x: Any) -> Any:
            return vortex(x[0], x[1])

    exact = Vortex(4)
    u = mfem.GridFunction(space)
    u.ProjectCoefficient(exact)
    right, solver = RightHandSide(), mfem.RK4Solver()
    solver.Init(right)
    right.SetTime(0.0)
    t, steps = 0.0, 0
    begin = time.perf_counter()
    while final - t > 1e-9 * step:
        t, _ = solver.Step(u, t, min(step, final - t))
        steps += 1
    seconds = time.perf_counter() - begin
    return {"unknowns": 4 * n, "steps": steps, "seconds": seconds, "error": u.ComputeL2Error(exact)}


def run(order: int, refine: int, step: float, final: float, way: str, times: int = 1) -> dict[str, Any]:
    """The best of several runs: seconds a right-hand side (a quarter of a step), unknowns and the error at the
    end."""
    runs = [
        classes(order, refine, step, final) if way == "classes" else program(order, refine, step, final, way)
        for _ in range(times)
    ]
    best = min(runs, key=lambda r: r["seconds"])
    seconds = best["seconds"] / (4 * best["steps"])
    return {
        "way": way,
        "order": order,
        "unknowns": best["unknowns"],
        "steps": best["steps"],
        "rhs_s": seconds,
        "unknowns_per_s": best["unknowns"] / seconds,
        "error": best["error"],
    }


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    # What the library prints is not the answer.
    answer, real = {}, os.dup(1)
    os.dup2(2, 1)
    try:
        answer = run(**json.loads(sys.argv[1]))
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
    os.write(real, (json.dumps(answer) + "\n").encode())
