"""Data on meshes: axis trees, arrays over them, maps, loops with access descriptors, star forests.

What users write is in `mirabelle.meshdata`; these modules say what it is.
"""
