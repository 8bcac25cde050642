"""Programs of cards as libraries that need no Python: `mb.compiling.build(program)` of CuArrays.

A plan is laid out once more, on a card that only writes down what it is asked for (`driver.py`). `tables.py`
writes that as tables of C, as `backends/host/ahead` does for the host, `code.py` compiles the kernels for the
cards asked for, and `card.c` launches them.
"""
