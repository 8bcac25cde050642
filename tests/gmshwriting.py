"""gmsh files of both formats, as texts and binary, of random blocks: what readers are tried with."""

import itertools

import numpy as np

KINDS = {"vertex": 15, "interval": 1, "triangle": 2, "quadrilateral": 3, "tetrahedron": 4, "hexahedron": 5,
         "prism": 6, "pyramid": 7}  # fmt: skip
FORMS = [("2.2", False), ("2.2", True), ("4.1", False), ("4.1", True)]


class Described:
    """What is in a file: nodes in order, blocks of elements, names of groups."""

    def __init__(self, tags, places, blocks, names, periodic=()):
        self.tags, self.places, self.blocks, self.names = tags, places, blocks, names
        self.periodic = periodic  # dimension, pairs of tags


def described(rng, mesh, unused=3):
    """A mesh in random blocks, and the markers that a reader makes of the groups: component, numbers by name.

    Vertices keep their order, with others between them; tags are sparse and in no order.
    """
    n = len(mesh.coordinates)
    order = np.sort(rng.permutation(n + unused)[:n])
    places = rng.random((n + unused, 3))
    places[:, mesh.dim :] = 0.0
    places[order, : mesh.coordinates.shape[1]] = mesh.coordinates
    tags = rng.permutation(5 * (n + unused))[: n + unused] + 1
    of = tags[order]
    names = {(1, d): f"group {d}" for d in range(mesh.dim + 1)} | {(2, d): "both" for d in range(mesh.dim + 1)}
    cells = {c: mesh.closure(c, "vertex").target().table for c in mesh.components(mesh.dim)}
    queues = [(c, runs(rng, np.arange(len(t)))) for c, t in cells.items() if len(t)]
    blocks, found = [], {}
    for c, some in queues:  # (the order of shapes is that of the mesh)
        blocks.append(block(rng, mesh, c, some.pop(0), of, found))
    while any(some for _, some in queues):
        c, some = queues[rng.integers(len(queues))]
        if some:
            blocks.append(block(rng, mesh, c, some.pop(0), of, found))
    for c in mesh.shapes:
        if c not in cells:
            size = mesh.points(c).size
            chosen = rng.permutation(size)[: rng.integers(0, size + 1)]
            for some in runs(rng, chosen):
                blocks.insert(rng.integers(len(blocks) + 1), block(rng, mesh, c, some, of, found))
    return Described(tags, places, blocks, names), found


def runs(rng, numbers):
    """Numbers in a few runs."""
    cuts = np.sort(rng.integers(0, len(numbers) + 1, rng.integers(0, 3)))
    return [x for x in np.split(numbers, cuts) if len(x)]


def block(rng, mesh, component, numbers, of, found):
    shape = mesh.shapes[component]
    table = np.arange(len(mesh.coordinates))[:, None]
    if component != "vertex":
        table = mesh.closure(component, "vertex").target().table
    dim = mesh.topology.dim_of(component)
    groups = [(), (1,), (2,), (3,), (2, 3)][rng.integers(5)]
    found.setdefault(component, []).append((dim, groups, numbers))
    return shape, dim, groups, of[table[numbers]]


def markers_of(found, version):
    """What groups become: of each name the component and the numbers."""
    sets = {}
    for component, blocks in found.items():
        for dim, groups, numbers in blocks:
            for tag in groups if version == "4.1" else groups[:1]:
                name = {1: f"group {dim}", 2: "both"}.get(tag, str(tag))
                sets.setdefault(name, {}).setdefault(component, []).append(numbers)
    out = {}
    for name, by in sets.items():
        for component, parts in by.items():
            full = name if len(by) == 1 else f"{name} {component}"
            out[full] = component, np.unique(np.concatenate(parts))
    return out


def write(path, file, version, binary, kinds=None):
    """Write what is described."""
    kinds = KINDS if kinds is None else kinds
    parts = [b"$MeshFormat\n", f"{version} {int(binary)} 8\n".encode()]
    parts += [np.int32(1).tobytes(), b"\n"] if binary else []
    parts += [b"$EndMeshFormat\n$PhysicalNames\n", f"{len(file.names)}\n".encode()]
    parts += [f'{dim} {tag} "{name}"\n'.encode() for (tag, dim), name in file.names.items()]
    parts += [b"$EndPhysicalNames\n"]
    made = (_first if version == "2.2" else _second)(file, binary, kinds)
    path.write_bytes(b"".join([*parts, *made, b"$Comments\nnothing more\n$EndComments\n"]))
    return path


def rows(binary, *columns):
    """Rows of numbers."""
    if binary:
        fields = [(f"f{i}", *kind) for i, (kind, _) in enumerate(columns)]
        out = np.empty(len(columns[0][1]), fields)
        for i, (_, x) in enumerate(columns):
            out[f"f{i}"] = x
        return out.tobytes()
    said = [[" ".join(map(repr, r.tolist() if r.ndim else [r.item()])) for r in x] for _, x in columns]
    return "".join(" ".join(words) + "\n" for words in zip(*said, strict=True)).encode()


def numbers(binary, kind, *values):
    if binary:
        return np.array(values, kind).tobytes()
    return (" ".join(str(v) for v in values) + "\n").encode()


def _first(file, binary, kinds):
    out = [b"$Nodes\n", f"{len(file.tags)}\n".encode()]
    out.append(rows(binary, (("i4",), file.tags), (("f8", (3,)), file.places)))
    count = sum(len(table) for *_, table in file.blocks)
    out += [b"\n" if binary else b"", b"$EndNodes\n$Elements\n", f"{count}\n".encode()]
    at = 1
    for shape, _, groups, table in file.blocks:
        n, tag = len(table), groups[0] if groups else 0
        own, two = np.arange(at, at + n), np.full((n, 2), [tag, 1 + tag])
        at += n
        if binary:
            out.append(numbers(True, "i4", kinds[shape], n, 2))
            out.append(rows(True, (("i4",), own), (("i4", (2,)), two), (("i4", (table.shape[1],)), table)))
        else:
            kind = np.full((n, 2), [kinds[shape], 2])
            out.append(rows(False, ((), own), ((), kind), ((), two), ((), table)))
    out += [b"\n" if binary else b"", b"$EndElements\n"]
    if file.periodic:
        out += [b"$Periodic\n", f"{len(file.periodic)}\n".encode()]
        for dim, pairs in file.periodic:
            out += [f"{dim} 1 2\nAffine 1 0\n{len(pairs)}\n".encode(), rows(False, ((), pairs))]
        out += [b"$EndPeriodic\n"]
    return out


def _second(file, binary, kinds):
    size = "u8"
    by_dim = [[(k, g) for k, (_, d, g, _) in enumerate(file.blocks) if d == dim] for dim in range(4)]
    out = [b"$Entities\n", numbers(binary, size, *map(len, by_dim))]
    for dim, blocks in enumerate(by_dim):
        for k, groups in blocks:
            box = [0.5] * (6 if dim else 3)
            if binary:
                out += [numbers(True, "i4", k + 1), numbers(True, "f8", *box), numbers(True, size, len(groups))]
                out += [
                    numbers(True, "i4", *groups),
                    *([numbers(True, size, 1), numbers(True, "i4", 1)] * (dim > 0)),
                ]
            else:
                out.append(numbers(False, "", k + 1, *box, len(groups), *groups, *([1, 1] * (dim > 0))))
    out += [b"\n" if binary else b"", b"$EndEntities\n$Nodes\n"]
    n = len(file.tags)
    cut = [0, n // 3, n // 3, n]  # the second block is empty, and the last has parameters
    out.append(numbers(binary, size, 3, n, file.tags.min(), file.tags.max()))
    for k, (a, b) in enumerate(itertools.pairwise(cut)):
        width = 5 if k == 2 else 3
        x = np.concatenate([file.places[a:b], np.full((b - a, width - 3), 0.25)], axis=1)
        out.append(header(binary, b - a, 2, 1, k // 2))
        out += [rows(binary, ((size,), file.tags[a:b])), rows(binary, (("f8", (width,)), x))]
    total = sum(len(table) for *_, table in file.blocks)
    out += [
        b"\n" if binary else b"",
        b"$EndNodes\n$Elements\n",
        numbers(binary, size, len(file.blocks), total, 1, total),
    ]
    at = 1
    for k, (shape, dim, _, table) in enumerate(file.blocks):
        own = np.arange(at, at + len(table))
        at += len(table)
        out.append(header(binary, len(table), dim, k + 1, kinds[shape]))
        out.append(rows(binary, ((size,), own), ((size, (table.shape[1],)), table)))
    out += [b"\n" if binary else b"", b"$EndElements\n"]
    if file.periodic:
        out += [b"$Periodic\n", numbers(binary, size, len(file.periodic))]
        for dim, pairs in file.periodic:
            out += [numbers(binary, "i4", dim, 1, 2)]
            out += [numbers(True, size, 0)] if binary else [b"0\n"]
            out += [numbers(binary, size, len(pairs)), rows(binary, ((size, (2,)), pairs))]
        out += [b"\n" if binary else b"", b"$EndPeriodic\n"]
    return out


def header(binary, count, *integers):
    """Three integers and a count, which are one line of a text."""
    if binary:
        return numbers(True, "i4", *integers) + numbers(True, "u8", count)
    return numbers(False, "", *integers, count)
