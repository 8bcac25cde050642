"""Functions of a library for all sizes: lengths are arguments, and programs are found by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirabelle.arraytypes.programs.anysize import PerSize
from mirabelle.arraytypes.programs.sizevariants import Variant, named, variants
from mirabelle.backends.host.ahead import interface
from mirabelle.backends.host.ahead.sizedtables import expression, variant_tables
from mirabelle.backends.host.ahead.tables import CannotBuild, Tables, braced
from mirabelle.backends.host.plans import HostPlan
from mirabelle.dispatch.settings import settings


class SizedFunction(interface.Function):
    """A function of C that takes lengths, and arrays of these."""

    sized = True

    def __init__(self, name: str, program: Any, names: Mapping[str, int] | None) -> None:
        super().__init__(name, program)
        owner, shapes = program.any_size
        try:
            self.names = named(shapes, names)
        except PerSize as e:
            raise _refused(e) from None
        self.owner, self.given = owner, shapes
        # The programs that there are, and why there are none for some lengths.
        self.variants: list[Variant] = []
        self.left_out: list[str] = []
        taken = {x.name.lower() for x in self.arrays}
        self.sizes = [interface._identifier(name, taken) for name in self.names]

    # Of the program at some sizes

    def shapes(self, program: Any) -> list[tuple[int, ...]]:
        outputs = program.outputs[: self.count]
        return [x.shape for x in (*program.captured.inputs, *outputs)]

    def copies_of(self, program: Any, plan: HostPlan) -> tuple[list[int], list[tuple[int, int]]]:
        return self._copies(plan, program.captured.written)

    # What callers see

    @property
    def size_names(self) -> list[str]:
        return self.sizes

    def axes(self, k: int) -> list[int]:
        """Which of the sizes each axis of an argument has, or -1 - its length."""
        at = {n: i for i, n in enumerate(self.names.values())}
        return [at.get(n, -1 - n) for n in self.arrays[k].shape]

    def shown_shapes(self) -> list[list[str]]:
        """The lengths of arrays as texts in C."""
        general: Variant = self.variants[-1]
        template = general.template
        assert template is not None
        first = dict(zip(general.names.values(), self.sizes, strict=True))
        of = {number: length for length, number in general.numbers_of.items()}
        step = template.step
        free = [(f"({first[of[g[0][0]]]} / {step})" if step > 1 else first[of[g[0][0]]]) for g in template.free]
        rows = zip(*[self.shapes(p) for p in general.programs], strict=True)
        found = []
        for k, shapes in enumerate(rows):
            if k < self.n_arguments:
                found.append([self.sizes[a] if a >= 0 else str(-1 - a) for a in self.axes(k)])
                continue
            fits = [template.basis.fitted(column) for column in zip(*shapes, strict=True)]
            found.append(["?" if f is None else expression(template.basis, f, free) for f in fits])
        return found

    def ranges(self) -> str:
        """For which sizes there is a program, as a text."""
        found = []
        for v in reversed(self.variants):
            t = v.template
            if t is None or v.fixed or len(set(v.names.values())) < len(v.names):
                continue
            found.append(f"{', '.join(self.sizes)} of {t}")
        small = any(v.fixed for v in self.variants)
        text = "; ".join(found).replace(" and ", ", ")
        return text + (" (and smaller ones)" if small else "")

    def size_parameters(self) -> str:
        return ", ".join([f"int64_t {name}" for name in self.sizes])

    def parameters(self) -> str:
        return f"{self.size_parameters()}, {super().parameters()}"

    def declared(self) -> str:
        return (
            f"/* For {self.ranges()}; else MIRABELLE_SHAPE.\n   The bytes of a workspace for some sizes, or "
            f"minus a code. */\nint64_t {self.name}_bytes({self.size_parameters()});\n"
            f"int {self.name}({self.parameters()});\n"
        )

    def described(self) -> list[str]:
        lines = []
        for x, shape in zip(self.arrays, self.shown_shapes(), strict=True):
            use = "result" if not x.argument else "read and written" if x.written else "read"
            lines.append(f"{x.name}{''.join([f'[{n}]' for n in shape])}: {x.dtype.name}, {use}")
        return lines

    def said(self) -> str:
        found = []
        for x, shape in zip(self.arrays, self.shown_shapes(), strict=True):
            found.append(
                f"{x.name}: {x.dtype.name}[{', '.join(shape)}]" + ", written" * (x.argument and x.written)
            )
        taken, given = ", ".join(found[: self.n_arguments]), ", ".join(found[self.n_arguments :])
        return f"{self.name}({taken})" + (f" -> {given}" if given else "") + f" for {self.ranges()}"

    def tables(self, tables: Tables) -> str:
        """The tables of all variants, and the function."""

        def accept(v: Variant) -> Any:
            try:
                return variant_tables(tables, self, v)
            except CannotBuild as e:
                raise PerSize(str(e).removeprefix("The program cannot be built ahead of time: ")) from None

        try:
            self.variants, self.left_out = variants(self.owner, self.given, self.names, accept)
        except PerSize as e:
            raise _refused(e) from None
        entries = []
        for v in self.variants:
            lines, entry = v.written
            tables.lines += lines
            entries.append(entry)
        tables.parts.add("sizes.c")
        arguments = [
            braced(
                f"'{x.letter}'", x.dtype.itemsize, self.alignment(x), len(x.shape), "NULL", 0, int(x.written)
            )
            for x in self.arguments
        ]
        axes = [tables.integers(self.axes(k)) for k in range(self.n_arguments)]
        family = tables.structure(
            "RtFamily", "family", tables.array("const RtVariant", entries), len(entries), len(self.sizes),
            self.n_arguments, len(self.results), tables.threads, settings.thread_size,
            tables.array("const RtArray", arguments), tables.array("const int64_t *const", axes),
        )  # fmt: skip
        sizes = ", ".join(self.sizes)
        tables.lines.append(
            f"PUBLIC int\n{self.name}({self.parameters()})\n{{\n    void *const given[] = {{{self.cells()}}};\n"
            f"    const int64_t sizes[] = {{{sizes}}};\n"
            f"    return rt_sized(&{family}, sizes, given, workspace, workspace_bytes, threads);\n}}\n\n"
            f"PUBLIC int64_t\n{self.name}_bytes({self.size_parameters()})\n{{\n"
            f"    const int64_t sizes[] = {{{sizes}}};\n    return rt_sized_workspace(&{family}, sizes);\n}}"
        )
        return family


def _refused(e: PerSize) -> CannotBuild:
    return CannotBuild(
        f"The program cannot be built for all sizes: {e}. Build it for those there are: "
        "`mb.compiling.build(f.program(x), sizes={})`, or `--size n=100,200`."
    )


__all__ = ["SizedFunction"]
