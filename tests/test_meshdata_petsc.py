"""PETSc's binary files: byte for byte, back and forth, damaged ones; petsc4py, where it is."""

import itertools
import os
import struct
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

MATRIX = np.array([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.5, 4.0, 0.0]])


def test_bytes(tmp_path):
    """What PETSc writes for a matrix, a vector and an index set, on any machine."""
    path = tmp_path / "a.petsc"
    md.write_petsc(path, mb.CSR(MATRIX), mb.HostArray([1.0, -2.0]), np.array([7, 3]))
    expected = struct.pack(">4i3i4i4d", 1211216, 3, 3, 4, 2, 0, 2, 0, 2, 0, 1, 2.0, -1.0, 0.5, 4.0)
    expected += struct.pack(">2i2d", 1211214, 2, 1.0, -2.0) + struct.pack(">2i2i", 1211218, 2, 7, 3)
    assert path.read_bytes() == expected
    md.write_petsc(path, mb.HostArray([1 + 2j]), np.array([2**40]))
    assert path.read_bytes() == struct.pack(">2q2d", 1211214, 1, 1.0, 2.0) + struct.pack(
        ">3q", 1211218, 1, 2**40
    )


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "c8"])
def test_there_and_back(tmp_path, dtype, indices):
    rng = np.random.default_rng(0)
    for rows, columns, density in ((0, 0, 0), (3, 0, 0), (0, 4, 0), (1, 1, 1), (40, 30, 0.2), (5, 9, 0.0)):
        s = sp.random_array((rows, columns), density=density, rng=rng, format="csr").astype(dtype)
        if dtype.startswith("c"):
            s.data *= 1j
        b = rng.standard_normal(rows).astype(dtype)
        which = rng.integers(0, 99, 5)
        path = tmp_path / "x"
        md.write_petsc(path, s, mb.asarray(b), which, b * 2, indices=indices, dtype=dtype)
        for options in ({}, {"dtype": dtype}):
            if not options and (dtype == "c8" or not rows):  # (which lengths do not tell)
                continue
            A, x, i, y = md.read_petsc(path, **options)
            assert isinstance(A, mb.CSR) and A.shape == (rows, columns)
            assert A.dtype == x.dtype == dtype and i.dtype == indices
            np.testing.assert_array_equal(mb.to_numpy(mb.dense(A)), s.toarray())
            np.testing.assert_array_equal(mb.to_numpy(x), b)
            np.testing.assert_array_equal(mb.to_numpy(i), which)
            np.testing.assert_array_equal(mb.to_numpy(y), b * 2)
    A, x, *_ = md.read_petsc(path, device=mb.RefArray)
    assert type(A.data).__name__.startswith("RefArray") and type(x).__name__.startswith("RefArray")


def test_matrices_of_loops_and_many_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("mirabelle.arraytypes.meshdata.petsc._CHUNK", 5)
    A = md.pattern(md.unit_square(3).closure("cell", "vertex")).matrix()
    A.data[...] = np.arange(A.pattern.nnz) + 1.0
    path = tmp_path / "A"
    md.write_petsc(str(path), A)
    [B] = md.read_petsc(path)
    np.testing.assert_array_equal(mb.to_numpy(mb.dense(B)), mb.to_numpy(mb.dense(A.csr)))
    # Entries in any order, as other programs may leave them; and PETSc's dense form.
    path.write_bytes(struct.pack(">4i1i2i2d", 1211216, 1, 3, 2, 2, 2, 0, 5.0, 6.0))
    assert mb.to_numpy(mb.dense(md.read_petsc(path)[0])).tolist() == [[6, 0, 5]]
    path.write_bytes(struct.pack(">4i6d", 1211216, 2, 3, -1, *range(6)))
    assert mb.to_numpy(md.read_petsc(path)[0]).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_nothing_is_written_by_half(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mirabelle.arraytypes.meshdata.petsc._put", fails)
    with pytest.raises(OSError, match="No space"):
        md.write_petsc(path, mb.HostArray([1.0]))
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["a"]


def test_damaged_files(tmp_path):
    """Cut at each byte, and with each integer changed: a sentence, or another matrix, never a crash."""
    path = tmp_path / "a"
    md.write_petsc(path, mb.CSR(MATRIX), mb.HostArray([1.0, 2.0, 3.0]))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        if cut == 76:  # (between the two objects)
            continue
        with pytest.raises(ValueError, match="is no whole PETSc file: "):
            md.read_petsc(path, dtype="f8")
    for k in range(11):
        for value in (-1, -5, 3, 99, 2**31 - 1):
            path.write_bytes(whole[: 4 * k] + struct.pack(">i", value) + whole[4 * k + 4 :])
            try:
                found = md.read_petsc(path)
            except ValueError as e:
                assert "is no whole PETSc file" in str(e) and str(e).endswith(".")
            else:
                assert all(isinstance(x, mb.CSR) or x.ndim in (1, 2) for x in found)
    for bytes_, text in (
        (b"", "it is empty"),
        (b"\x93NUMPY\x01\x00" * 9, "no object of PETSc"),
        (struct.pack(">2i", 1211219, 3), "a bag"),
        (struct.pack(">2i", 1211214, -3), r"a vector has the sizes \[-3\]"),
        (struct.pack(">4i1i1i1d", 1211216, 1, 2, 1, 1, 2, 1.0), "an entry in column 2"),
        (struct.pack(">4i1i1i1d", 1211216, 1, 2, 1, 2, 1, 1.0), "of 1 entries have 2"),
    ):
        path.write_bytes(bytes_)
        with pytest.raises(ValueError, match=text):
            md.read_petsc(path)
    with pytest.raises(FileNotFoundError):
        md.read_petsc(tmp_path / "none")


def test_mistakes(tmp_path):
    path = tmp_path / "a"
    x = mb.HostArray([1.0])
    for error, text, call in (
        (ValueError, "nothing to write", lambda: md.write_petsc(path)),
        (TypeError, "Make it sparse", lambda: md.write_petsc(path, np.eye(3))),
        (TypeError, "hold numbers", lambda: md.write_petsc(path, np.array(["a"]))),
        (TypeError, r"mb\.real", lambda: md.write_petsc(path, np.array([1j]), dtype="f8")),
        (TypeError, "single or double", lambda: md.write_petsc(path, x, dtype="f2")),
        (TypeError, "single or double", lambda: md.read_petsc(__file__, dtype="i4")),
        (ValueError, "64-bit", lambda: md.write_petsc(path, np.array([2**40]), indices=np.int32)),
        (ValueError, "64-bit", lambda: md.write_petsc(path, x, indices=np.int16)),
        (mb.PlaceError, "mb.adapt", lambda: md.write_petsc(path, mb.RefArray([1.0]))),
        (mb.PlaceError, "mb.adapt", lambda: md.write_petsc(path, mb.CSR(mb.RefArray(MATRIX)))),
        (FileNotFoundError, "no folder", lambda: md.write_petsc(tmp_path / "none" / "a", x)),
    ):
        with pytest.raises(error, match=text):
            call()
    assert not path.exists()
    if "petsc4py" not in sys.modules:
        try:
            import petsc4py  # noqa: F401
        except ImportError:
            for call in (md.to_petsc, md.from_petsc):
                with pytest.raises(ImportError, match=r"pip install mirabelle.petsc..*md\.write_petsc"):
                    call(x)


class Mat:
    """As much of petsc4py as is called here."""

    def createAIJ(self, size, csr, comm):
        self.size, self.csr = size, csr
        return self

    def getValuesCSR(self):
        return self.csr

    def getSize(self):
        return self.size


class Vec:
    def createSeq(self, n, comm):
        self.x = np.empty(n)
        return self

    def setArray(self, x):
        self.x[...] = x

    def getArray(self, readonly):
        return self.x


class IS:
    def createGeneral(self, x, comm):
        self.x = x
        return self

    def getIndices(self):
        return self.x


def test_petsc4py(monkeypatch):
    """To PETSc's objects and back: of the real one where it is installed, else of one that looks like it."""
    try:
        import petsc4py  # noqa: F401
    except ImportError:
        stands_in = types.SimpleNamespace(
            Mat=Mat, Vec=Vec, IS=IS, COMM_SELF=None, IntType=np.int32, ScalarType=np.float64
        )
        monkeypatch.setitem(sys.modules, "petsc4py", types.SimpleNamespace(PETSc=stands_in))
    A, b, which = mb.CSR(MATRIX), mb.HostArray([1.0, 2.0, 3.0]), mb.HostArray([2, 0])
    for x in (A, b, which):
        back = md.from_petsc(md.to_petsc(x))
        assert type(back) is type(x) or back.dtype == np.int32
        np.testing.assert_array_equal(mb.to_numpy(mb.dense(back)), mb.to_numpy(mb.dense(x)))
    with pytest.raises(TypeError, match=r"mb\.real"):
        md.to_petsc(mb.HostArray([1j]))
    with pytest.raises(TypeError, match="Mat, Vec or IS"):
        md.from_petsc(b)


# Over processes


def assembled(array=mb.DArray, n=4):
    """A matrix that is not symmetric, and a vector, of a divided mesh."""
    mesh = md.part(md.unit_square(n), overlap=0).mesh
    V, cells, corners = md.space(mesh, "P", 2), mesh.points("cell"), mesh.closure("cell", "vertex")

    def element(x, K, f):
        for i in range(6):
            f[i] += x[i % 3, 0]
            for j in range(6):
                K[i, j] += (1 + i) * x[j % 3, 1] + j

    A, f = md.pattern(V.dofs).matrix(array=array), V.zeros(array)
    x = mesh.coordinates_in(array)
    md.loop(cells, element, md.READ(x, corners), md.INC(A.data, A.dofs), md.INC(f, V.dofs))
    return A, f


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_divided_matrices_and_vectors(tmp_path, ranks):
    path = tmp_path / "divided.petsc"

    def written(comm):
        A, f = assembled()
        md.write_petsc(path, A, f, dtype="f8")
        np.testing.assert_allclose(A.to_scipy() @ mb.to_numpy(f), mb.to_numpy(A @ f), rtol=1e-13)
        return mb.to_numpy(A @ f), mb.to_numpy(f)

    product, f = on_ranks(ranks, written)[0]
    A, b = md.read_petsc(path)
    np.testing.assert_allclose(np.asarray(A @ b), product, rtol=1e-13)
    assert np.array_equal(np.asarray(b), f)
    columns, starts = (np.asarray(mb.to_numpy(p)) for p in A.parts[1:])
    assert all((np.diff(columns[a:b]) > 0).all() for a, b in itertools.pairwise(starts))
    alone, _ = on_ranks(1, lambda comm: assembled())[0]
    assert A.nnz == alone.pattern.nnz and A.shape == alone.shape


def test_divided_matrices_that_cannot_be_written(tmp_path):
    def nowhere(comm):
        md.write_petsc(tmp_path / "none" / "A.petsc", *assembled(n=2))

    assert all(isinstance(e, FileNotFoundError) for e in fails_on_ranks(2, nowhere))

    def objects(comm):
        md.to_petsc(assembled(n=2)[0])

    assert all("divided over processes" in str(e) for e in fails_on_ranks(2, objects))
