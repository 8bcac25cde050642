"""Code generation shared by all backends: programs, kernel source, user functions."""

from mirabelle.arraytypes.usercode import userfunctions as _userfunctions  # noqa: F401 - registers
