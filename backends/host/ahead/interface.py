"""What callers of a library see: its functions in C, their header, a module of Fortran."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.backends.host.ahead.tables import CannotBuild, Tables, braced, news, unmarked
from mirabelle.backends.host.plans import HostPlan

# What functions return, by their numbers (runtime.h).
ERRORS = (
    ("OK", "it is done"),
    ("NULL", "a pointer is null"),
    ("COUNT", "there is no program for so many arrays"),
    ("DTYPE", "an array has elements of another type"),
    ("SHAPE", "an array has another shape"),
    ("STRIDES", "an array does not lie in C's order, one row after another"),
    ("ALIGNMENT", "an array does not begin at a multiple of its elements' size, or on a card of 16 bytes"),
    ("OVERLAP", "memory that is written to overlaps other memory that is given"),
    ("WORKSPACE", "the workspace is too small"),
    ("MEMORY", "there is no memory for a workspace"),
    ("REFUSED", "a function refused what it was given, or an index is out of range"),
    ("CARD", "there is no card, no driver of NVIDIA's, or no context of it that is current"),
    ("CODE", "the library has no code for this card"),
    ("LIBRARY", "cuBLAS is not to be found"),
    ("DRIVER", "the card's driver refused something: the function that ends in _said has the number"),
    ("RECORDED", "the program looks at values, and there are none while its stream is recorded"),
)
_C = {
    "?": "bool", "b": "int8_t", "h": "int16_t", "i": "int32_t", "l": "int64_t", "B": "uint8_t", "H": "uint16_t",
    "I": "uint32_t", "L": "uint64_t", "f": "float", "d": "double", "F": "mirabelle_c8", "D": "mirabelle_c16",
}  # fmt: skip
_FORTRAN = {
    "?": "logical(c_bool)", "b": "integer(c_int8_t)", "h": "integer(c_int16_t)", "i": "integer(c_int32_t)",
    "l": "integer(c_int64_t)", "B": "integer(c_int8_t)", "H": "integer(c_int16_t)", "I": "integer(c_int32_t)",
    "L": "integer(c_int64_t)", "f": "real(c_float)", "d": "real(c_double)", "F": "complex(c_float_complex)",
    "D": "complex(c_double_complex)",
}  # fmt: skip
_C_WORDS = frozenset((
    "auto", "bool", "break", "case", "char", "complex", "const", "continue", "default", "do", "double",
    "else", "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "main", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "threads", "typedef",
    "union", "unsigned", "void", "volatile", "while", "workspace", "workspace_bytes", "given", "graphs",
    "sizes", "stream",
))  # fmt: skip


@dataclass(frozen=True)
class Calling:
    """How functions of a library are called: what is the host's own, and is another's on a card."""

    # The last parameter, in C, in Fortran, and as it is passed on; what the header says of it.
    last: str = "int threads"
    name: str = "threads"
    fortran: str = "integer(c_int), value"
    note: str = "`threads` is how many threads are used at most; 0 is as many as the library was built for."
    # Types of the header, and further functions: what it declares, and what they are.
    types: str = ""
    declared: str = ""
    defined: str = ""
    # What finds a program for arrays that are described.
    call: str = "rt_call("


class Array:
    """An array that a program takes: an argument, which it may write to, or room for a result."""

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype, argument: bool, written: bool
    ) -> None:
        self.name = name
        self.shape = tuple(shape)
        # (int64 has two letters.)
        self.letter = {"q": "l", "Q": "L"}.get(dtype.char, dtype.char)
        self.dtype = dtype
        self.argument = argument
        self.written = written

    @property
    def by_value(self) -> bool:
        """Is it a number that is only read?"""
        return self.argument and not self.written and self.shape == () and self.dtype.kind != "c"

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]"


class Function:
    """A program as a function of C."""

    # Is it for all sizes?
    sized = False
    # Are arrays in a memory that is not the host's?
    elsewhere = False
    calling = Calling()

    def __init__(self, name: str, program: Any) -> None:
        self.name = name
        self.program = program
        captured = program.captured
        self.count = len(captured.returned)
        taken: set[str] = set()
        self.arrays = [
            Array(_identifier(x.name or f"x{i}", taken), x.shape, x.dtype, True, i in captured.written)
            for i, x in enumerate(captured.inputs)
        ]
        self.n_arguments = len(self.arrays)
        for i, node in enumerate(program.outputs[: self.count]):
            stem = "out" if self.count == 1 else f"out{i}"
            self.arrays.append(Array(_identifier(stem, taken), node.shape, node.dtype, False, True))
        self.workspace = 0
        for x in self.arrays:
            if x.letter not in _C:
                raise CannotBuild(
                    f"The program cannot be built ahead of time: {x.name} is of {x.dtype.name}, not of C. "
                    "Convert it first: `x.astype(mb.float32)`."
                )

    @property
    def arguments(self) -> list[Array]:
        return self.arrays[: self.n_arguments]

    @property
    def results(self) -> list[Array]:
        return self.arrays[self.n_arguments :]

    def copies(self, plan: HostPlan) -> tuple[list[int], list[tuple[int, int]]]:
        """Where new results lie, and what is copied afterwards (see `Tables.program`)."""
        return self._copies(plan, self.program.captured.written)

    def _copies(self, plan: HostPlan, written: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
        outputs = plan.plan.outputs
        given = []
        direct: set[int] = set()
        for s in news(plan):
            k = next((k for k in range(self.count) if outputs[k] is s), -1)
            given.append(self.n_arguments + k if k >= 0 else -1)
            direct.add(k)
        pairs = [(k, self.n_arguments + k) for k in range(self.count) if k not in direct]
        for k, i in enumerate(written):
            s = outputs[self.count + k]
            if not (s.kind == "input" and s.index == i):
                pairs.append((self.count + k, i))
        return given, pairs

    def parameters(self) -> str:
        """Its parameters in C."""
        found = []
        for x in self.arrays:
            kind = _C[x.letter]
            const = "" if x.written else "const "
            found.append(f"{kind} {x.name}" if x.by_value else f"{const}{kind} *{x.name}")
        return ", ".join([*found, "void *workspace", "int64_t workspace_bytes", self.calling.last])

    def alignment(self, x: Array) -> int:
        """Where an array may begin: at multiples of so many bytes."""
        return min(x.dtype.itemsize, 8)

    def arrays_table(self, tables: Tables) -> str:
        """The arrays that it takes, as a table."""
        return tables.array(
            "const RtArray",
            [
                braced(
                    f"'{x.letter}'", x.dtype.itemsize, self.alignment(x), len(x.shape),
                    tables.integers(x.shape), int(np.prod(x.shape, dtype=np.int64)) * x.dtype.itemsize,
                    int(x.written),
                )
                for x in self.arrays
            ],
        )  # fmt: skip

    def cells(self) -> str:
        """The addresses of what it is given, in C."""
        given = [f"{'&' if x.by_value else ''}{x.name}" for x in self.arrays]
        return ", ".join([f"(void *){x}" for x in given]) or "NULL"

    def described(self) -> list[str]:
        """What a reader wants to know of it, in lines."""
        lines = []
        for x in self.arrays:
            shape = "".join(f"[{n}]" for n in x.shape)
            use = "result" if not x.argument else "read and written" if x.written else "read"
            lines.append(f"{x.name}{shape}: {x.dtype.name}, {use}")
        return lines

    @property
    def size_names(self) -> list[str]:
        """The lengths among its parameters."""
        return []

    def shown_shapes(self) -> list[list[str]]:
        """The lengths of its arrays, as texts."""
        return [[str(n) for n in x.shape] for x in self.arrays]

    def declared(self) -> str:
        """Its declarations in a header."""
        return (
            f"enum {{ {self.name.upper()}_WORKSPACE = {self.workspace} }};\n"
            f"int {self.name}({self.parameters()});\n"
        )

    def said(self) -> str:
        """The function in a line."""
        taken = ", ".join([f"{x!r}{', written' * x.written}" for x in self.arguments])
        given = ", ".join([repr(x) for x in self.results])
        return f"{self.name}({taken})" + (f" -> {given}" if given else "")

    def tables(self, tables: Tables) -> str:
        """The tables of the program, and its function."""
        program, needed = tables.program(self.program.runner, self.copies)
        self.workspace = needed + tables.alignment - 1
        arrays = self.arrays_table(tables)
        signature = tables.structure(
            "RtSignature",
            "signature",
            f"&{program}",
            arrays,
            self.n_arguments,
            len(self.results),
            tables.threads,
            tables.alignment,
        )
        tables.lines.append(
            f"PUBLIC int\n{self.name}({self.parameters()})\n{{\n    void *const given[] = {{{self.cells()}}};\n"
            f"    return rt_run(&{signature}, given, workspace, workspace_bytes, threads);\n}}"
        )
        return signature


def source(name: str, functions: Sequence[Function], tables: Tables) -> str:
    """The C of a library: tables, functions."""
    calling = functions[0].calling
    found = [(f.sized, f.tables(tables)) for f in functions]
    tables.finish()
    signatures, families = [[f"&{x}" for sized, x in found if sized is which] for which in (False, True)]
    with_families = f"static const RtFamily *const families[] = {{{', '.join(families)}}};" if families else ""
    # (Fixed signatures first: what is not found among them may be of any size.)
    call, workspace = _DISPATCH if families else _FIXED
    loops = "\n".join([f"void LOOP_{x}(LOOP_ARGUMENTS);" for x in sorted(tables.loops)])
    kernels = "\n".join([f"int {x}(SIGNATURE);" for x in tables.objects])
    errors = ", ".join([f'"{text}"' for _, text in ERRORS])
    how = {"call": calling.call, "last": calling.name, "n": len(signatures), "m": len(families)}
    body = unmarked("\n".join(tables.lines))
    return f"""/* Written by mirabelle: the tables of {name} (see runtime.h). */

#include "{name}.h"
#include "loops.h"
#include "sizes.h"
{tables.includes}
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
extern const unsigned char DATA[] __attribute__((visibility("hidden")));
{loops}
{kernels}

{body}

static const RtSignature *const signatures[] = {{{", ".join(signatures)}}};
{with_families}

PUBLIC int
{name}_call(const mirabelle_array *arguments, int n_arguments, const mirabelle_array *results, int n_results,
    void *workspace, int64_t workspace_bytes, {calling.last})
{{
    {call.format(**how)}
}}

PUBLIC int64_t
{name}_workspace(const mirabelle_array *arguments, int n_arguments)
{{
    {workspace.format(**how)}
}}

PUBLIC const char *
{name}_message(int code)
{{
    static const char *const texts[] = {{{errors}}};
    return code < 0 || code >= {len(ERRORS)} ? "there is no such code" : texts[code];
}}
{calling.defined.format(name=name)}"""


_FIXED = (
    """return {call}signatures, {n}, (const RtDescribed *)arguments, n_arguments,
                   (const RtDescribed *)results, n_results, workspace, workspace_bytes, {last});""",
    "return rt_workspace(signatures, {n}, (const RtDescribed *)arguments, n_arguments);",
)
_DISPATCH = (
    """if (arguments == NULL && n_arguments)
        return RT_NULL;
    int code = rt_call(signatures, {n}, (const RtDescribed *)arguments, n_arguments,
                       (const RtDescribed *)results, n_results, workspace, workspace_bytes, threads);
    if (code != RT_COUNT && code != RT_DTYPE && code != RT_SHAPE)
        return code;
    int other = rt_sized_call(families, {m}, (const RtDescribed *)arguments, n_arguments,
                              (const RtDescribed *)results, n_results, workspace, workspace_bytes, threads);
    return other == RT_OK || other > code ? other : code;""",
    """if (arguments == NULL && n_arguments)
        return -RT_NULL;
    int64_t bytes = rt_workspace(signatures, {n}, (const RtDescribed *)arguments, n_arguments);
    if (bytes >= 0)
        return bytes;
    return rt_sized_called_workspace(families, {m}, (const RtDescribed *)arguments, n_arguments);""",
)
_ARRAY = """#ifndef MIRABELLE_ARRAY
#define MIRABELLE_ARRAY
/* An array for functions that take any: NumPy's letter of its elements ('d': double, 'f': float, 'l': int64,
   'i': int32, '?': bool, 'D': double complex, ...), its shape, how many bytes apart (NULL: C's order). */
typedef struct {
    void *data;
    int dtype, rank;
    const int64_t *shape, *strides;
} mirabelle_array;
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> mirabelle_c8;
typedef std::complex<double> mirabelle_c16;
#else
#include <complex.h>
typedef float _Complex mirabelle_c8;
typedef double _Complex mirabelle_c16;
#endif
"""


def header(name: str, functions: Sequence[Function], version: str) -> str:
    """The header of a library."""
    calling = functions[0].calling
    errors = ",\n".join([f"    MIRABELLE_{word} = {i} /* {text} */" for i, (word, text) in enumerate(ERRORS)])
    guard = f"{name.upper()}_H"
    parts = []
    for f in functions:
        lines = "\n".join([f"     {line}" for line in f.described()])
        parts.append(
            f"/* {f.program.name}, for\n{lines}\n"
            f"   Arrays lie in C's order (the last index is the next element). */\n{f.declared()}"
        )
    declared = "\n".join(parts)
    return f"""/* {name}: built ahead of time by mirabelle {version}. It needs no Python.

   All functions return MIRABELLE_OK, or why they did nothing: then nothing has been written. (After
   MIRABELLE_REFUSED results hold nothing of use.) `workspace` is memory for temporaries, which only the call
   uses: so calls with workspaces of their own may run at once. With NULL and 0 it is allocated for the call.
   {calling.note} */

#ifndef {guard}
#define {guard}

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stdint.h>

{_ARRAY}
enum {{
{errors}
}};
#endif
{calling.types}
#ifdef __cplusplus
extern "C" {{
#endif

{declared}
/* The program for such arguments, of those above; the workspace that it takes, or minus a code. */
int {name}_call(const mirabelle_array *arguments, int n_arguments, const mirabelle_array *results,
    int n_results, void *workspace, int64_t workspace_bytes, {calling.last});
int64_t {name}_workspace(const mirabelle_array *arguments, int n_arguments);
/* What a code says. */
const char *{name}_message(int code);
{calling.declared.format(name=name)}
#ifdef __cplusplus
}}
#endif

#endif
"""


def fortran(name: str, functions: Sequence[Function]) -> str:
    """A module of Fortran with the functions of a library."""
    parts = []
    for f in functions:
        names = [*f.size_names, *[x.name for x in f.arrays]]
        lines = [f"      integer(c_int64_t), value :: {name}" for name in f.size_names]
        for x, shown in zip(f.arrays, f.shown_shapes(), strict=True):
            intent = "in" if not x.written else "inout" if x.argument else "out"
            kind = _FORTRAN[x.letter]
            if x.by_value:
                lines.append(f"      {kind}, value :: {x.name}")
            elif f.elsewhere:
                lines.append(f"      type(c_ptr), value :: {x.name}")
            else:
                # (What is the last index in C is the first in Fortran.)
                shape = "*" if shown and f.sized and not x.argument else ", ".join(reversed(shown))
                lines.append(f"      {kind}, intent({intent}) :: {x.name}{f'({shape})' if shape else ''}")
        taken = ", &\n        ".join([*names, "workspace", "workspace_bytes", f.calling.name])
        declared = "\n".join(lines)
        parts.append(
            f'''    function {f.name}( &
        {taken} &
        ) result(code) bind(c, name="{f.name}")
      import
{declared}
      type(c_ptr), value :: workspace
      integer(c_int64_t), value :: workspace_bytes
      {f.calling.fortran} :: {f.calling.name}
      integer(c_int) :: code
    end function {f.name}
'''
        )
    sizes = "\n".join(
        f"  integer(c_int64_t), parameter :: {f.name}_workspace_bytes = {f.workspace}_c_int64_t"
        for f in functions
        if not f.sized
    )
    body = "\n".join(parts)
    return f"""! {name}: built ahead of time by mirabelle. The first index is the last of C.
module {name}_library
  use, intrinsic :: iso_c_binding
  implicit none
{sizes}
  interface
{body}  end interface
end module {name}_library
"""


def _identifier(name: str, taken: set[str]) -> str:
    """A name that C, Fortran and Python allow and that is not taken yet."""
    stem = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "x"
    if stem[0].isdigit():
        stem = f"x{stem}"
    while stem.lower() in taken or stem in _C_WORDS or keyword.iskeyword(stem):
        stem += "_"
    taken.add(stem.lower())
    return stem
