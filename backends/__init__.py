"""Backends: how and where arrays compute. Each folder only adds methods.

The host's is imported at once, another when its arrays, or what it does on the host, are first used.
"""

from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.dispatch import loading

loading.completed_by(GPUArray, "mirabelle.backends.gpu", "mirabelle.backends.cuda", "mirabelle.backends.hip")
loading.completed_by(GPUView, "mirabelle.backends.gpu")
loading.completed_by(
    "mirabelle.arraytypes.distributed",
    "mirabelle.backends.host.halos",
    "mirabelle.backends.mpi.finding",
    "mirabelle.backends.nccl",
)
loading.completed_by(
    "mirabelle.arraytypes.programs",
    "mirabelle.backends.host.plans",
    "mirabelle.arraytypes.programs.kernelcalls",
)
loading.completed_by(
    "mirabelle.arraytypes.programs.reports",
    "mirabelle.backends.explainprograms",
    "mirabelle.backends.drawprofiles",
)
loading.completed_by("mirabelle.arraytypes.jit", "mirabelle.backends.host.scalarloops")
loading.completed_by("mirabelle.arraytypes.random", "mirabelle.backends.host.random")
