"""Programs as libraries that need no Python: `mb.compiling.build(program)`.

A plan of the host is data: task lists with their argument blocks, products, loops, branches. `tables.py` writes
it as tables of C, `objects.py` makes its kernels position-independent, `interface.py` writes what callers see,
and `linking.py` has the system's C compiler put them together with what runs them (`runtime.c`, `lists.c`,
`products.c`, `loops.c` and `dispatch/csrc/pool.c`, which runs task lists in Python, too).
"""
