"""Files, pictures, checkpoints."""

from mirabelle.dg.output.callbacks import Checkpoint, SaveSolution
from mirabelle.dg.output.plotting import movie, plot, thumbnail
from mirabelle.dg.output.snapshots import load, save
from mirabelle.dg.output.vtk import write_pvd, write_vtu

__all__ = ["Checkpoint", "SaveSolution", "load", "movie", "plot", "save", "thumbnail", "write_pvd", "write_vtu"]
