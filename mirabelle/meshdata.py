"""Data on meshes: axis trees, arrays over them, maps, loops with access descriptors, star forests.

>>> from mirabelle import meshdata as md
>>> md.Points("mesh", "cell", 2)
Points(axis='mesh', component='cell', size=2)
"""

from mirabelle.arraytypes.meshdata.elements import Element, element
from mirabelle.arraytypes.meshdata.points import Points, Subset
from mirabelle.arraytypes.meshdata.quadrature import quadrature
from mirabelle.arraytypes.meshdata.vtkcells import vtk_nodes, write_vtk_cells

__all__ = ["Element", "Points", "Subset", "element", "quadrature", "vtk_nodes", "write_vtk_cells"]
