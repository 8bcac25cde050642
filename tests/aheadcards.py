"""Libraries for cards where there is no card: the driver is `fakecuda.c`, kernels are the simulated card's.

`main()` is for a process of its own, in which what is called libcuda.so.1 is the fake one: it builds libraries
of programs, calls them, and prints how their results differ from the programs'.
"""

from __future__ import annotations

import collections
import ctypes
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import randomprograms

import mirabelle as mb
from benchmarks.ahead import conjugate_gradient, described, limited_step
from mirabelle.arraytypes.gpu import CuArray
from mirabelle.backends.cuda.ahead import tables
from mirabelle.dispatch import verbs

R = np.random.default_rng(5)
SOURCE = Path(__file__).with_name("fakecuda.c")


def built_fake(folder, *names):
    """The fake driver and the fake cuBLAS, as libraries of these names."""
    made = []
    for name in names or ("libcuda.so.1", "libcublas.so.13"):
        made.append(Path(folder) / name)
        words = ["gcc", "-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{name}", "-o", made[-1], SOURCE]
        subprocess.run(words, check=True)
    return made


class Fake:
    """The fake driver in this process, with the memory and the kernels of the simulated card."""

    def __init__(self, folder):
        self.card = CuArray.driver()
        self.dll, self.blas = [ctypes.CDLL(str(path)) for path in built_fake(folder)]
        self.kept, self.kernels, self.errors = {}, [], []
        self.loaded = {}
        launch = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_int, *[ctypes.POINTER(ctypes.c_uint)] * 2, ctypes.c_void_p
        )
        allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
        release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.hooks = launch(self.launch), allocate(self.allocate), release(self.release)
        self.dll.fake_hook(*[ctypes.cast(hook, ctypes.c_void_p) for hook in self.hooks])
        self.dll.fake_count.restype = ctypes.c_int64
        tables.image = self.image

    def count(self, name):
        return self.dll.fake_count(name.encode())

    def image(self, kernel, architecture):
        """What stands for a kernel's code: its number here."""
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        number = self.kernels.index(kernel)
        return f"fake {number} {len(kernel.source.codes)}".encode() + b"\0", kernel.source.name

    def allocate(self, nbytes):
        block, address = self.card.allocate(nbytes)
        self.kept[address] = block
        return address

    def release(self, address):
        del self.kept[address]

    def launch(self, number, grid, block, words):
        try:
            kernel = self.kernels[number]
            codes = kernel.source.codes
            given = np.ctypeslib.as_array(ctypes.cast(words, ctypes.POINTER(ctypes.c_uint64)), (len(codes),))
            values = [given[i : i + 1].view(c)[0].item() for i, c in enumerate(codes)]
            run = self.loaded.get(number)
            if run is None:
                run = self.loaded[number] = self.card.load(kernel.source, kernel.functions, kernel.contract)
            self.card.launcher(run, codes, tuple(grid[:3]), tuple(block[:3]), ())(*values)
        except Exception as e:
            self.errors.append(f"{type(e).__name__}: {e}")
            return 700
        return 0


class Loaded:
    """A library: called with arrays of the card, and room for results, it returns the code."""

    def __init__(self, library, program, name):
        self.dll = ctypes.CDLL(str(library.path))
        self.name, self.library, self.program = name, library, program
        self.inputs = program.captured.inputs
        written = program.captured.written
        self.by_value = [
            not x.shape and i not in written and x.dtype.kind != "c" for i, x in enumerate(self.inputs)
        ]

    def results(self):
        count = len(self.program.captured.returned)
        return [mb.CuArray(np.full(x.shape, 7).astype(x.dtype)) for x in self.program.outputs[:count]]

    def cells(self, given, results):
        """What C is given: addresses, numbers."""
        found = []
        for x, value in zip([*given, *results], [*self.by_value, *[False] * len(results)], strict=True):
            if value:
                kind = np.ctypeslib.as_ctypes_type(x.dtype)
                found.append(kind(np.array(mb.HostArray(x)).item()))
            else:
                found.append(ctypes.c_void_p(address(x)))
        return found

    def __call__(self, given, results, workspace=None, stream=None, graphs=None):
        where = (None, ctypes.c_int64(0))
        if workspace is not None:
            where = ctypes.c_void_p(address(workspace)), ctypes.c_int64(workspace.nbytes)
        first = () if graphs is None else (ctypes.byref(graphs),)
        function = getattr(self.dll, self.name + "_graph" * (graphs is not None))
        return function(*first, *self.cells(given, results), *where, stream)


def view_of(x):
    return verbs.leaf_of(x).view


def address(x):
    return view_of(x).ptr


def jacobi(A, B, w):
    for _ in range(2):
        B[1:-1, 1:-1] = w * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = w * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def sums(x):
    y = x * 2 + 1
    return mb.sum(x), mb.sum(x, axis=0), mb.max(y, axis=1), mb.any(x > 0.99), y[::2].T * 1


def many_numbers(x, a, b, c, d, e, f, g, h, i, j):
    return x * a + b + c * d + e + f - g * h + i + j, a + j


def constants(x):
    table = np.arange(30.0) ** 2
    return x[np.array([3, 1, 2, 1])] * table[:4], x + table[: x.shape[0]]


def turns(a, b, n):
    first = mb.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1] * i), (a, b))
    second = mb.fori_loop(0, 7, lambda i, s: (s[1], s[2], s[0] + s[1]), (a, b, a * 2))
    swapped = mb.fori_loop(0, 7, lambda i, s: (s[1], s[0]), (a[1:], b[1:]))

    def body(i, s):
        s[1:] = s[:-1] * 0.5 + b[1:]
        return s

    return first, second, swapped, mb.fori_loop(0, 5, body, a * 1.0)


def branch(x, t):
    return mb.cond(mb.sum(x) > t, lambda x: (x * 2, x.T[:, ::-1] * 1), lambda x: (x + 1, x - 1), x[:, 1:])


def while_loop(x):
    return mb.while_loop(lambda s: mb.sum(s[0]) < 40, lambda s: (s[0] * 1.5, s[1] + 1), (x, mb.asarray(0)))


def products(a, b, x):
    return 1.5 * a @ b + 0.5, a @ x, a.T @ x, x @ x, a[::2] @ x, a @ a.T


def whole_products(i, j):
    return i @ j


def mixed(u, dt, f):
    u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    f[...] = f * 2
    return mb.sum(u), f.astype("f8") + 1


def user(x):
    return mb.broadcast(lambda t: t if t < 0.5 else 0.5 - t, x)


def independent(a, b):
    y, z = mb.cumulative_sum(a * 0 + 1) if False else a * 2, b[::2] * 3
    return y[1:] + y[:-1], z[1:] - z[:-1], mb.sum(y), mb.sum(z)


def nested(x, n):
    def body(i, x):
        return mb.cond(mb.sum(x[:, 1:]) > 8, lambda x: x.T[:3, ::-1] * 0.5, lambda x: x + 1, x[:, 1:4][:3])

    return mb.fori_loop(0, n, lambda i, s: mb.pad(body(i, s), ((0, 0), (0, 2))), x[1:, ::2])


def gathered(x, m, i, j, k):
    return x[i] * 2, m[i[:3], j] + 1, m[:, k[::2]], m[k] * x[:4], x[i[5:5]]


SQUARE = R.random((7, 7))
CASES = {
    "nested": (nested, [R.random((4, 9)), np.array(3)]),
    "gathered": (
        gathered,
        [
            R.random(9),
            R.random((9, 4)),
            R.integers(-9, 9, 5),
            R.integers(-4, 4, 3).astype("i2"),
            R.integers(0, 4, 6).astype("u8"),
        ],
    ),
    "jacobi": (jacobi, [R.random((9, 11)), R.random((9, 11)), 0.2]),
    "sums": (sums, [R.random((12, 17))]),
    "a sum in two passes": (lambda x: (mb.sum(x * 2), mb.max(x)), [R.random(9000)]),
    "many numbers": (many_numbers, [R.random(5), *R.random(10)]),
    "constants": (constants, [R.random(6)]),
    "turns": (turns, [R.random(10), R.random(10), np.array(6)]),
    "one branch": (branch, [R.random((4, 5)), 3.0]),
    "the other": (branch, [R.random((4, 5)), 30.0]),
    "while": (while_loop, [R.random(6)]),
    "limited step": (limited_step, [np.sin(np.arange(40.0) / 3), 0.5]),
    "products": (products, [SQUARE, R.random((7, 7)), R.random(7)]),
    "whole products": (whole_products, [R.integers(-9, 9, (5, 6)), R.integers(-9, 9, (6, 4))]),
    "conjugate gradients": (conjugate_gradient, [SQUARE @ SQUARE.T + 7 * np.eye(7), R.random(7)]),
    "single precision": (mixed, [R.random(9), 0.1, R.random(6).astype("f4")]),
    "a user's function": (user, [R.random(20)]),
    "chains": (independent, [R.random(20), R.random(30)]),
}
# Of these other programs of cuBLAS's are called than NumPy's.
CLOSE = ("products", "conjugate gradients")


def on_card(arrays):
    return [mb.CuArray(np.array(x)) for x in arrays]


def program_of(f, arrays):
    return mb.compile(f, whole=True).program(*on_card(arrays))


def differences(name, fake, folder):
    """How a library's results differ from the program's."""
    f, arrays = CASES[name]
    stem = "f" + "".join(c for c in name if c.isalpha())
    return differences_of(program_of(f, arrays), arrays, stem, fake, folder, name in CLOSE)


def differences_of(program, arrays, stem, fake, folder, close=False):
    """How a library's results differ: called plainly, with a workspace, by graphs, and with descriptions."""
    library = mb.compiling.build(program, path=Path(folder) / f"lib{stem}.so", name=stem)
    call = Loaded(library, program, stem)
    wanted = [CuArray._download(v) for v in program.runner.run([view_of(x) for x in on_card(arrays)])]
    workspace = mb.CuArray(np.full(library.workspace[0], 0xA5, np.uint8))
    graphs = ctypes.c_void_p()
    found = []
    for way in (
        "plain",
        "workspace",
        "graph",
        "graph again",
        "graph elsewhere",
        *["graph moved"] * 4,
        "described",
    ):
        if way != "graph again":
            given, results = on_card(arrays), call.results()
        else:
            for x, y in zip(given, arrays, strict=True):
                fake.card.upload(address(x), np.array(y))
        fake.errors.clear()
        if way == "described":
            code = by_description(call, given, results)
        else:
            options = {"graphs": graphs} if way.startswith("graph") else {}
            code = call(given, results, None if way == "plain" else workspace, **options)
        if code or fake.errors:
            found.append((way, code, call.dll[f"{stem}_said"](), fake.errors[:1]))
            continue
        after = [given[i] for i in program.captured.written]
        got = [CuArray._download(view_of(x)) for x in (*results, *after)]
        for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
            same = a.dtype == b.dtype and a.tobytes() == b.tobytes()
            if not (same or (close and np.allclose(a, b, rtol=1e-10))):
                found.append((way, k, a.tolist(), b.tolist()))
    forget = call.dll[f"{stem}_forget"]
    forget(graphs)
    call.dll[f"{stem}_unload"]()
    for counted in ("graphs", "loads", "allocations"):
        if fake.count(counted):
            found.append((counted, fake.count(counted)))
    return found


def by_description(call, given, results):
    keep = []
    shown = [
        np.lib.stride_tricks.as_strided(np.empty(1, x.dtype), x.shape, [0] * x.ndim) for x in (*given, *results)
    ]
    arrays = [described(shown[: len(given)], keep), described(shown[len(given) :], keep)]
    for to, x, value in zip(arrays[0], given, call.by_value, strict=False):
        if value:
            keep.append(np.array(mb.HostArray(x)))
            to.data = keep[-1].ctypes.data
        else:
            to.data = address(x)
    for to, x in zip(arrays[1], results, strict=False):
        to.data = address(x)
    return call.dll[f"{call.name}_call"](
        arrays[0], len(given), arrays[1], len(results), None, ctypes.c_int64(0), None
    )


def main(only=()):
    with tempfile.TemporaryDirectory() as folder:
        fake = Fake(folder)
        print(json.dumps({name: differences(name, fake, folder) for name in only or CASES}, default=str))


def tried(number, fake, folder):
    """A random program as a library: what became of it, and how that differs from the program."""
    program = randomprograms.drawn(number)
    try:
        randomprograms.expected(program)
    except randomprograms.REFUSALS:
        return "NumPy refuses", []
    f, given = program.function(), list(program.arrays(0).values())
    compiled = mb.compile(lambda *x: f(mb, mb.autodiff.gradient, *x), whole=True)
    try:
        with randomprograms.anywhere("cuda"):
            made = compiled.program(*on_card(given))
    except Exception as e:  # (what cannot be compiled is for others to test)
        return f"no program: {type(e).__name__}", []
    try:
        return "built", differences_of(made, given, f"r{number}", fake, folder)
    except TypeError as e:
        said = str(e)
        return "refused", [] if "cannot be built ahead of time" in said else [said]


def randomly(numbers, fake=None):
    """What became of random programs, and those that differ."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fake = fake or Fake(folder)
        found = {n: tried(n, fake, folder) for n in numbers}
    wrong = {n: differ for n, (_, differ) in found.items() if differ}
    return collections.Counter(what for what, _ in found.values()), wrong


def mistakes():
    """What each mistake gives: the codes by name, and what has been written or launched all the same."""
    with tempfile.TemporaryDirectory() as folder:
        fake = Fake(folder)
        arrays = [R.random(9), 0.1, R.random(6).astype("f4")]
        program, other = program_of(mixed, arrays), program_of(branch, [R.random((4, 5)), 3.0])
        libraries = [
            mb.compiling.build(p, path=Path(folder) / f"lib{name}.so", name=name, arch=arch)
            for p, name, arch in ((program, "f", "sm_80,sm_90"), (other, "g", "sm_90,compute_90"))
        ]
        f, g = Loaded(libraries[0], program, "f"), Loaded(libraries[1], other, "g")
        needed = libraries[0].workspace[0]
        given, results = on_card(arrays), f.results()
        before = [CuArray._download(view_of(x)) for x in (*given, *results)]
        room = mb.CuArray(np.zeros(needed + 64, np.uint8))
        stream = ctypes.c_void_p()
        found = {}

        def call(name, *changes, workspace=None, size=0, function=f.dll.f, stream=None):
            cells = f.cells(given, results)
            for k, cell in changes:
                cells[k] = cell
            found[name] = function(*cells, workspace, ctypes.c_int64(size), stream)

        at = address(given[0])
        call("null", (0, None))
        call("null result", (3, None))
        call("null workspace", size=100)
        call("alignment", (0, ctypes.c_void_p(at + 8)))
        call("overlap", (4, ctypes.c_void_p(at + 16)))
        call("workspace", workspace=ctypes.c_void_p(address(room)), size=needed - 256)
        call("workspace overlaps", workspace=ctypes.c_void_p(at), size=1 << 20)
        found["null graphs"] = f.dll.f_graph(None, *f.cells(given, results), None, ctypes.c_int64(0), None)
        fake.dll.fake_state(0, 90)
        call("no context")
        for capability in (70, 86, 75, 100):
            fake.dll.fake_state(1, capability)
            found[f"code on {capability}"] = f.dll.f_load()
            f.dll.f_unload()
        fake.dll.fake_state(1, 90)
        for name in ("cuModuleLoadData", "cuMemAlloc", "cuLaunchKernel"):
            fake.dll.fake_fail(name.encode())
            call(name)
            found[f"{name} said"] = f.dll.f_said()
            f.dll.f_unload()
        fake.dll.fake_fail(b"")
        after = [CuArray._download(view_of(x)) for x in (*given, *results)]
        found["written"] = [
            k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a.tobytes() != b.tobytes()
        ]
        found["launches"] = fake.count("launches")
        fake.dll.cuStreamCreate(ctypes.byref(stream), 0)
        # A stream that is recorded has the launches later, and what looks at values is refused.
        fake.dll.cuStreamBeginCapture_v2(stream, 0)
        call("recorded", workspace=ctypes.c_void_p(address(room)), size=room.nbytes, stream=stream)
        others = [mb.CuArray(np.array(x)) for x in (R.random((4, 5)), 3.0)]
        found["recorded branch"] = g(others, g.results(), stream=stream)
        found["recorded launches"] = fake.count("launches")
        graph, run = ctypes.c_void_p(), ctypes.c_void_p()
        fake.dll.cuStreamEndCapture(stream, ctypes.byref(graph))
        fake.dll.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, ctypes.c_ulonglong(0))
        found["run"] = fake.dll.cuGraphLaunch(run, None)
        wanted = program.runner.run([view_of(x) for x in on_card(arrays)])
        found["same"] = all(
            CuArray._download(view_of(x)).tobytes() == CuArray._download(y).tobytes()
            for x, y in zip((*results, given[0], given[2]), wanted, strict=True)
        )
        shapes = [np.zeros(9), np.zeros(()), np.zeros(6, "f4")]
        keep = []
        for name, arguments in {
            "count": shapes[:2],
            "dtype": [*shapes[:2], np.zeros(6)],
            "shape": [*shapes[:2], np.zeros(7, "f4")],
        }.items():
            arguments = described(arguments, keep), len(arguments)
            found[f"described {name}"] = f.dll.f_call(*arguments, None, 0, None, ctypes.c_int64(0), None)
        found["loops"] = turned(fake, folder)
        found["two"] = several(folder)
        program = program_of(lambda x, i: x[i], [R.random(9), R.integers(0, 9, 4)])
        library = mb.compiling.build(program, path=Path(folder) / "libpicked.so", name="picked")
        call = Loaded(library, program, "picked")
        for last in (8, -9, 9, -10):
            found[f"index {last}"] = call(on_card([R.random(9), np.array([0, 1, 2, last])]), call.results())
        print(json.dumps(found))


def several(folder):
    """A library of two signatures, of which the arrays' dtypes and shapes choose one."""
    programs = [program_of(lambda x, a: x * a, [x, x.dtype.type(3)]) for x in (np.zeros(4), np.zeros(5, "f4"))]
    library = mb.compiling.build(*programs, path=Path(folder) / "libtwo.so", name="two")
    found = []
    for program, x in zip(programs, (R.random(4), R.random(5).astype("f4")), strict=True):
        call = Loaded(library, program, "two")
        given, results = on_card([x, x.dtype.type(3)]), call.results()
        code = by_description(call, given, results)
        found.append(
            (code, CuArray._download(view_of(results[0])).tobytes() == (x * x.dtype.type(3)).tobytes())
        )
    return found


def turned(fake, folder):
    """How many graphs run a loop of 100 trips, and of as many as an argument says."""

    def diffusion(u, n):
        def body(i, u):
            u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[2:] + u[:-2])
            return u

        return mb.fori_loop(0, 100, lambda i, u: u * 0.5 + 1.0, u), mb.fori_loop(0, n, body, u * 1.0)

    arrays = [R.random(12), np.array(37)]
    program = program_of(diffusion, arrays)
    library = mb.compiling.build(program, path=Path(folder) / "libloops.so", name="loops")
    call, graphs, counts = Loaded(library, program, "loops"), ctypes.c_void_p(), []
    wanted = program.runner.run([view_of(x) for x in on_card(arrays)])
    for options in ({"graphs": graphs}, {}):
        fake.dll.fake_forget()
        given, results = on_card(arrays), call.results()
        code = call(given, results, **options)
        same = [CuArray._download(view_of(x)).tobytes() for x in results] == [
            CuArray._download(y).tobytes() for y in wanted
        ]
        counts.append([code, same, fake.count("runs"), fake.count("launches")])
    return counts
