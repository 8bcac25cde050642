"""Reference elements: nodes, quadratures and the matrices of operators, in NumPy.

`lattice` counts nodes and modes, `polynomials` evaluates modes, `quadrature` and `nodes` say where points are,
and `element` puts them together.
"""

from mirabelle.dg.elements.element import Face, ReferenceElement, element

__all__ = ["Face", "ReferenceElement", "element"]
