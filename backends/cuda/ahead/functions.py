"""What callers of a library for cards see."""

from __future__ import annotations

from typing import Any

from mirabelle.backends.cuda.ahead.tables import APART, NUMBERS, CardTables
from mirabelle.backends.host.ahead.interface import Array, Calling, Function
from mirabelle.backends.host.ahead.tables import braced

_TYPES = """
/* A stream: CUstream and cudaStream_t are the same; NULL is the default one. Graphs that are kept. */
struct CUstream_st;
typedef struct mirabelle_graphs mirabelle_graphs;
"""

_DECLARED = """
/* Have code and data on the current context's card before the first call; give them up, and before that all
   graphs that are kept. */
int {name}_load(void);
int {name}_unload(void);
/* Give up graphs that are kept (of functions that end in _graph). */
int {name}_forget(mirabelle_graphs *graphs);
/* What the driver or cuBLAS refused last, in this thread: a CUresult, or a status of cuBLAS. */
int {name}_said(void);
"""

_DEFINED = """
PUBLIC int
{name}_load(void)
{{
    return rt_card_load(&rt_code);
}}

PUBLIC int
{name}_unload(void)
{{
    return rt_card_unload();
}}

PUBLIC int
{name}_forget(mirabelle_graphs *graphs)
{{
    return rt_card_forget(graphs);
}}

PUBLIC int
{name}_said(void)
{{
    return rt_card_said();
}}
"""

CALLING = Calling(
    last="struct CUstream_st *stream",
    name="stream",
    fortran="type(c_ptr), value",
    note="""Arrays and workspaces are in the memory of the card whose context is current; numbers are given by
   value. Work goes to `stream`, in order, and may not be done when a function returns. Streams may be recorded;
   but for programs that look at values (loops with a condition, branches, indices), which wait for them.
   Functions that end in _graph launch graphs, which they keep in `*graphs` (NULL before the first call) for the
   next call with the same addresses; one thread at a time. Without a workspace one is kept there, too.""",
    types=_TYPES,
    declared=_DECLARED,
    defined=_DEFINED,
    call="rt_card_call(&rt_code, ",
)


class CardFunction(Function):
    """A program on a card as a function of C."""

    elsewhere = True
    calling = CALLING

    def alignment(self, x: Array) -> int:
        return super().alignment(x) if x.by_value else APART

    def declared(self) -> str:
        return f"{super().declared()}int {self.name}_graph(mirabelle_graphs **graphs, {self.parameters()});\n"

    def tables(self, tables: Any) -> str:
        assert isinstance(tables, CardTables)
        numbers = [k for k, x in enumerate(self.arrays) if x.by_value]
        # (What is written at once has room.)
        tables.beside = -(-len(numbers) // NUMBERS) * NUMBERS * APART
        tables.looks = False
        program, needed = tables.program(self.program.runner, self.copies)
        self.workspace = needed + tables.alignment - 1
        places = [braced(k, needed - tables.beside + APART * i) for i, k in enumerate(numbers)]
        arrays = self.arrays_table(tables)
        signature = braced(f"&{program}", arrays, self.n_arguments, len(self.results), 1, tables.alignment)
        made = tables.structure(
            "RtCardProgram", "signature", signature, tables.array("const RtNumber", places), len(numbers),
            int(tables.looks),
        )  # fmt: skip
        ways = ("", "", "NULL"), ("_graph", "mirabelle_graphs **graphs, ", "(void **)graphs")
        for word, first, kept in ways:
            checked = "    if (graphs == NULL)\n        return RT_NULL;\n" if first else ""
            tables.lines.append(
                f"PUBLIC int\n{self.name}{word}({first}{self.parameters()})\n{{\n"
                f"    void *const given[] = {{{self.cells()}}};\n{checked}"
                f"    return rt_card_run(&rt_code, &{made}, given, workspace, workspace_bytes, stream,\n"
                f"                       {kept});\n}}"
            )
        return f"{made}.signature"


__all__ = ["CardFunction"]
