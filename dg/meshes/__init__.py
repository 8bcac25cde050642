"""Meshes: cells, their geometry, and who touches whom."""

from mirabelle.dg.meshes.generators import box
from mirabelle.dg.meshes.importing import read_mesh
from mirabelle.dg.meshes.mesh import Mesh

__all__ = ["Mesh", "box", "read_mesh"]
