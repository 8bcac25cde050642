"""Random axis trees, and the order of their entries by a walk through them in plain Python."""

import numpy as np

import mirabelle as mb
from mirabelle import meshdata as md


class Node:
    """An axis as a walk reads it: components (key, extents, regions, child), extents by the indices above."""

    def __init__(self, label, components, numbering=None):
        self.label, self.components, self.numbering = label, components, numbering


def random_tree(rng, depth=3):
    """A tree, and a list of its entries in the order they are stored: (path, indices)."""
    node = _node(rng, depth, ())
    return _tree(node), stored(node)


def _entries(above, labels):
    """The indices of all entries of some axes above, in row-major order."""
    found = [{}]
    for label, extent in above:
        if label in labels:
            found = [e | {label: i} for e in found for i in range(_at(extent, e))]
    return found


def _at(extent, indices):
    return extent if isinstance(extent, int) else extent[1][tuple(indices[name] for name in extent[0])]


def _closed(above, labels):
    for label, extent in reversed(above):
        if label in labels and not isinstance(extent, int):
            labels |= set(extent[0])
    return tuple(label for label, _ in above if label in labels)


def _random_extent(rng, above, most=4):
    if not above or rng.random() < 0.5:
        return int(rng.integers(0 if rng.random() < 0.2 else 1, most))
    over = _closed(above, {above[i][0] for i in rng.integers(len(above), size=rng.integers(1, 3))})
    sizes = {tuple(e[name] for name in over): int(rng.integers(0, most)) for e in _entries(above, over)}
    return over, sizes


def _split(rng, extent):
    """An extent as two that add up to it."""
    if isinstance(extent, int):
        n = int(rng.integers(0, extent + 1))
        return n, extent - n
    over, sizes = extent
    first = {k: int(rng.integers(0, n + 1)) for k, n in sizes.items()}
    return (over, first), (over, {k: n - first[k] for k, n in sizes.items()})


def _node(rng, depth, above):
    label = f"{'abcd'[len(above)]}{rng.integers(2)}"
    keys = [None] if rng.random() < 0.4 else ["x", "y", "z"][: rng.integers(1, 4)]
    components = []
    for key in keys:
        extent = _random_extent(rng, above)
        regions = None
        if rng.random() < 0.25:
            names = ["own", "ghost"] if rng.random() < 0.8 else ["ghost", "own"]
            regions = dict(zip(names, _split(rng, extent), strict=True))
        child = _node(rng, depth - 1, (*above, (label, extent))) if depth > 1 and rng.random() < 0.7 else None
        components.append((key, extent, regions, child))
    numbering = None
    if all(isinstance(c[1], int) for c in components) and rng.random() < 0.3:
        numbering = rng.permutation(sum(c[1] for c in components))
    return Node(label, components, numbering)


def _nested(extent):
    """An extent as `Ragged` takes it: lists nested as the axes are, or flat."""
    if isinstance(extent, int):
        return extent
    over, sizes = extent

    def lists(head):
        if len(head) == len(over):
            return sizes[head]
        inside = sorted({k[len(head)] for k in sizes if k[: len(head)] == head})
        return [lists((*head, i)) for i in inside]

    # (Where an axis is empty somewhere, lists of lists cannot be told from lists of numbers: flat then.)
    return (
        md.Ragged(over, lists(())) if len(over) == 1 else md.Ragged(over, np.array(list(sizes.values()), int))
    )


def _tree(node):
    if node is None:
        return None
    extents = {key: _nested(extent) for key, extent, _, _ in node.components}
    regions = {
        key: {name: _nested(n) for name, n in r.items()} for key, _, r, _ in node.components if r is not None
    }
    axis = md.Axis(node.label, extents, numbering=node.numbering, regions=regions or None)
    return md.tree(axis, {key: _tree(child) for key, _, _, child in node.components})


def stored(root):
    """The entries of a tree in the order they are stored, by a walk."""
    names = []

    def collect(node, depth):
        for _, _, regions, child in node.components:
            if regions:
                if depth == len(names):
                    names.append([])
                names[depth] += [r for r in regions if r not in names[depth]]
            if child is not None:
                collect(child, depth + bool(regions))

    collect(root, 0)
    found = []

    def walk(node, path, indices, turn):
        slots = [(c, i) for c in node.components for i in range(_at(c[1], indices))]
        for s in range(len(slots)) if node.numbering is None else node.numbering:
            (key, _, regions, child), i = slots[s]
            here, at, mine = (*path, (node.label, key)), indices | {node.label: i}, turn
            if regions:
                ends = np.cumsum([_at(n, indices) for n in regions.values()])
                name = list(regions)[int(np.searchsorted(ends, i, side="right"))]
                mine = (*turn, names[len(turn)].index(name))
            if child is None:
                found.append(((*mine, *[0] * (len(names) - len(mine))), here, at))
            else:
                walk(child, here, at, mine)

    walk(root, (), {}, ())
    found.sort(key=lambda entry: entry[0])
    return [(path, at) for _, path, at in found]


def check(tree, entries):
    """Compare the layouts of a tree with a walk; an AssertionError where they differ."""
    assert tree.size == len(entries)
    at = {}
    for offset, (path, indices) in enumerate(entries):
        at.setdefault(path, []).append((tuple(indices.values()), offset))
    for leaf in tree.leaves:
        path = tuple(leaf.items())
        expected = sorted(at.pop(path, []))
        assert tree.offsets(leaf).tolist() == [offset for _, offset in expected], (tree, leaf)
        if expected:
            columns = np.array([i for i, _ in expected]).T
            indices = {label: column for (label, _), column in zip(path, columns, strict=True)}
            assert tree.offset(leaf, indices).tolist() == [offset for _, offset in expected]
    assert not at
    for offset in range(0, len(entries), 5):
        path, indices = entries[offset]
        assert tree.locate(offset) == (dict(path), indices)


def check_array(rng, tree, entries, array):
    """Compare an array of some type over a tree with a walk: its parts by labels, what is written to them, an
    operation over the tree, and a loop over the entries of one axis."""
    u = md.wrap(tree, array(np.arange(float(tree.size))))
    at = {}
    for offset, (path, indices) in enumerate(entries):
        at.setdefault(path, []).append((tuple(indices.values()), offset))
    expected = np.arange(float(tree.size))
    for number, leaf in enumerate(tree.leaves):
        offsets = [offset for _, offset in sorted(at.get(tuple(leaf.items()), []))]
        part = u[leaf]
        assert mb.to_numpy(part).ravel().tolist() == [expected[o] for o in offsets], (tree, leaf)
        if rng.random() < 0.5:
            u[leaf] = -1.0 - number
            expected[offsets] = -1.0 - number
    assert mb.to_numpy(u.parent).tolist() == expected.tolist(), tree
    assert mb.to_numpy((2 * u + u).parent).tolist() == (2 * expected + expected).tolist()
    for label, component in {next(iter(leaf.items())) for leaf in tree.leaves}:
        _check_loop(tree, entries, label, component, array, expected)


def added(x, y):
    for i in range(len(x)):
        y[0] += x[i]


def _check_loop(tree, entries, label, component, array, values):
    """What stands under each index of the outermost axis, summed up by a loop, if it is as many everywhere."""
    under = {}
    for offset, (path, indices) in enumerate(entries):
        if path[0] == (label, component):
            under.setdefault(indices[label], []).append(offset)
    if not under or len({len(x) for x in under.values()}) > 1 or len(under) != max(under) + 1:
        return
    points = md.Points(label, component, len(under))
    table = md.Dofs(points, [under[i] for i in range(len(under))], size=tree.size)
    y = array(np.zeros(len(under)))
    md.loop(points, added, md.READ(array(values), table), md.INC(y))
    expected = [sum(values[under[i]].tolist()) for i in range(len(under))]
    np.testing.assert_allclose(mb.to_numpy(y), expected, rtol=1e-14, atol=1e-12)


# Layers on a mesh


def random_columns(rng):
    """Columns on a small mesh, and trees over it: of product axes in any order, with others among them."""
    bases = (
        lambda: md.interval(int(rng.integers(1, 5))),
        lambda: md.unit_square(int(rng.integers(1, 4)), int(rng.integers(1, 3))),
        lambda: md.unit_square(int(rng.integers(1, 3)), shape="quadrilateral"),
    )
    columns = md.columns(bases[rng.integers(3)](), int(rng.integers(1, 6)))
    return columns, [_column_tree(rng, columns) for _ in range(3)]


def _column_tree(rng, columns):
    """Some components of the mesh, each with axes below it, or axes that are below others on the mesh's."""
    upward = (md.Axis("level", columns.layers + 1), md.Axis("layer", columns.layers))
    kinds = [p.component for p in columns.base.closure("cell").targets]
    kinds = [str(c) for c in rng.permutation(kinds)[: rng.integers(1, len(kinds) + 1)]]

    def nested(first):
        further = [md.Axis(name, int(rng.integers(1, 4))) for name in ("dof", "dim") if rng.random() < 0.4]
        axes = [*first, *([upward[rng.integers(2)]] if rng.random() < 0.85 else []), *further]
        axes = [axes[i] for i in rng.permutation(len(axes))]
        return md.tree(*axes) if axes else None

    mesh = columns.base.axis_of(*kinds)
    if len(kinds) > 1 or rng.random() < 0.5:
        return md.tree(mesh, {kind: nested([]) for kind in kinds})
    return nested([mesh] if rng.random() < 0.9 else []) or md.tree(mesh)


def check_columns(columns, tree):
    """Compare what points in columns reach with a walk over all entries of the tree."""
    base, layers, reach = columns.base, columns.layers, columns.dofs(tree)
    around = {p.component: t.table for p, t in base.closure("cell").targets.items()}
    entries = [tree.locate(offset) for offset in range(tree.size)]
    assert reach.table.shape == (base.points("cell").size * layers, reach.arity)
    for p, row in enumerate(reach.table.tolist()):
        cell, layer = divmod(p, layers)
        wanted = []
        for offset, (path, at) in enumerate(entries):
            if base.points("cell").axis in path and at["mesh"] not in around[path["mesh"]][cell]:
                continue
            if at.get("layer", layer) == layer and at.get("level", layer) in (layer, layer + 1):
                wanted.append(offset)
        assert sorted(row) == wanted, (tree, p)
        heights = [at["level"] - layer for _, at in (entries[r] for r in row) if "level" in at]
        kinds = [path.get("mesh") for path, _ in (entries[r] for r in row)]
        assert len(tree.leaves) > 1 or heights == sorted(heights), (tree, p)
        assert [k for k in (*around, None) if k in kinds] == list(dict.fromkeys(kinds)), (tree, p)
