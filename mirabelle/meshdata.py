"""Data on meshes: axis trees, arrays over them, maps, loops with access descriptors, star forests.

>>> from mirabelle import meshdata as md
>>> md.Points("mesh", "cell", 2)
Points(axis='mesh', component='cell', size=2)
"""

from mirabelle.dispatch import loading as _loading

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.meshdata import derivatives, programs  # noqa: F401 - dual numbers, programs
    from mirabelle.arraytypes.meshdata.access import INC, MAX_RW, MAX_WRITE, MIN_RW, MIN_WRITE, READ, RW, WRITE
    from mirabelle.arraytypes.meshdata.axes import Axis, Ragged
    from mirabelle.arraytypes.meshdata.columns import Columns, columns
    from mirabelle.arraytypes.meshdata.dirichletrows import dirichlet
    from mirabelle.arraytypes.meshdata.dividedghosts import state_of
    from mirabelle.arraytypes.meshdata.dividedmatrices import DividedMatrix
    from mirabelle.arraytypes.meshdata.dofs import Dofs, dofs
    from mirabelle.arraytypes.meshdata.elements import Element, element
    from mirabelle.arraytypes.meshdata.entityclasses import EntityClasses, classify
    from mirabelle.arraytypes.meshdata.extrusion import extruded
    from mirabelle.arraytypes.meshdata.forests import StarForest, UnderWay
    from mirabelle.arraytypes.meshdata.generators import interval, unit_cube, unit_square
    from mirabelle.arraytypes.meshdata.ghosts import GhostAccess, Ghosted, begin_access
    from mirabelle.arraytypes.meshdata.ghoststates import Action, State, transition
    from mirabelle.arraytypes.meshdata.localkernels import LocalKernel, local_kernel
    from mirabelle.arraytypes.meshdata.loops import loop
    from mirabelle.arraytypes.meshdata.maps import Map, Target, ragged_rows
    from mirabelle.arraytypes.meshdata.matrices import Matrix, Pattern, pattern
    from mirabelle.arraytypes.meshdata.meshes import Mesh
    from mirabelle.arraytypes.meshdata.meshfiles import physical_groups, read_mesh, read_mesh_file
    from mirabelle.arraytypes.meshdata.mixedspaces import MixedSpace, mixed
    from mirabelle.arraytypes.meshdata.numbering import hilbert_order, reverse_cuthill_mckee
    from mirabelle.arraytypes.meshdata.output import write_vtk
    from mirabelle.arraytypes.meshdata.pairs import pairs
    from mirabelle.arraytypes.meshdata.parting import Part
    from mirabelle.arraytypes.meshdata.parting import divided_part as part
    from mirabelle.arraytypes.meshdata.partition import partition, partition_graph
    from mirabelle.arraytypes.meshdata.petsc import from_petsc, read_petsc, to_petsc, write_petsc
    from mirabelle.arraytypes.meshdata.piecewise import part_of_cells
    from mirabelle.arraytypes.meshdata.points import Points, Subset
    from mirabelle.arraytypes.meshdata.quadrature import quadrature
    from mirabelle.arraytypes.meshdata.readparts import read_part
    from mirabelle.arraytypes.meshdata.spacemaking import space
    from mirabelle.arraytypes.meshdata.spaces import Space
    from mirabelle.arraytypes.meshdata.topology import Topology
    from mirabelle.arraytypes.meshdata.treearray import TreeArray, full, ones, wrap, zeros
    from mirabelle.arraytypes.meshdata.treebuilding import tree
    from mirabelle.arraytypes.meshdata.treeforests import part_forest, tree_forest
    from mirabelle.arraytypes.meshdata.treeindex import Selection
    from mirabelle.arraytypes.meshdata.trees import AxisTree
    from mirabelle.arraytypes.meshdata.treetaking import Region
    from mirabelle.arraytypes.meshdata.vtkcells import vtk_nodes, write_vtk_cells
    from mirabelle.backends.host import meshloops  # noqa: F401 - how the host runs loops

__all__ = [
    "INC",
    "MAX_RW",
    "MAX_WRITE",
    "MIN_RW",
    "MIN_WRITE",
    "READ",
    "RW",
    "WRITE",
    "Action",
    "Axis",
    "AxisTree",
    "Columns",
    "DividedMatrix",
    "Dofs",
    "Element",
    "EntityClasses",
    "GhostAccess",
    "Ghosted",
    "LocalKernel",
    "Map",
    "Matrix",
    "Mesh",
    "MixedSpace",
    "Part",
    "Pattern",
    "Points",
    "Ragged",
    "Region",
    "Selection",
    "Space",
    "StarForest",
    "State",
    "Subset",
    "Target",
    "Topology",
    "TreeArray",
    "UnderWay",
    "begin_access",
    "classify",
    "columns",
    "dirichlet",
    "dofs",
    "element",
    "extruded",
    "from_petsc",
    "full",
    "hilbert_order",
    "interval",
    "local_kernel",
    "loop",
    "mixed",
    "ones",
    "pairs",
    "part",
    "part_forest",
    "part_of_cells",
    "partition",
    "partition_graph",
    "pattern",
    "physical_groups",
    "quadrature",
    "ragged_rows",
    "read_mesh",
    "read_mesh_file",
    "read_part",
    "read_petsc",
    "reverse_cuthill_mckee",
    "space",
    "state_of",
    "to_petsc",
    "transition",
    "tree",
    "tree_forest",
    "unit_cube",
    "unit_square",
    "vtk_nodes",
    "wrap",
    "write_petsc",
    "write_vtk",
    "write_vtk_cells",
    "zeros",
]
