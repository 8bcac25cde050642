"""Compiled programs: what `mb.compile` is made of.

>>> import mirabelle as mb
>>> program = mb.compiling.trace(lambda x: x * 2 + 1, mb.zeros(3))
>>> [step.name for step in program.plan.steps]
['multiply_add']
"""

from mirabelle.dispatch import loading as _loading

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.programs.building import Library, build
    from mirabelle.arraytypes.programs.compiled import Compiled, compile, trace
    from mirabelle.arraytypes.programs.deciding import decide
    from mirabelle.arraytypes.programs.errors import TraceError
    from mirabelle.arraytypes.programs.expansions import Expansion, expand
    from mirabelle.arraytypes.programs.hints import axis_roles
    from mirabelle.arraytypes.programs.passes import FINITE, PASSES, rewrite
    from mirabelle.arraytypes.programs.persistence import LoadedProgram, load_program
    from mirabelle.arraytypes.programs.program import Program
    from mirabelle.arraytypes.programs.schedules import Decision, Schedule, ScheduleError
    from mirabelle.arraytypes.programs.traced import Traced

__all__ = [
    "FINITE",
    "PASSES",
    "Compiled",
    "Decision",
    "Expansion",
    "Library",
    "LoadedProgram",
    "Program",
    "Schedule",
    "ScheduleError",
    "TraceError",
    "Traced",
    "axis_roles",
    "build",
    "compile",
    "decide",
    "expand",
    "load_program",
    "rewrite",
    "trace",
]
