"""mb.linalg.cg, minres and gmres: beside SciPy's, on every array type, and where there is no solution."""

import itertools
import pathlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from kinds import LEAVES
from test_dg_package import lines_of_code
from threadranks import on_ranks

import mirabelle as mb
from mirabelle import autodiff
from mirabelle.linalg import ConvergenceWarning, LinAlgError, cg, gmres, minres

METHODS, AROUND = (
    pathlib.Path(__file__).parents[1] / "arraytypes" / "functions" / f"{name}.py"
    for name in ("krylovmethods", "krylov")
)
SOLVERS = [cg, minres, gmres]
FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray], mb.DArray[mb.RefArray]]


def system(solver, n=40, dtype="f8", seed=0):
    """A matrix that a solver is for, and a right-hand side."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        a, b = a + 1j * rng.standard_normal((n, n)), b + 1j * rng.standard_normal(n)
    if solver is cg:
        a = a @ a.conj().T + n * np.eye(n)
    elif solver is minres:
        a = a + a.conj().T
    else:
        a = a + 8 * np.sqrt(n / 40) * (2 if np.dtype(dtype).kind == "c" else 1) * np.eye(n)
    return a.astype(dtype), b.astype(dtype)


def jacobi(a):
    return np.diag(1 / np.abs(np.diag(a))).astype(a.dtype)


@pytest.mark.parametrize("preconditioned", [False, True], ids=["plain", "M"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_solutions(solver, dtype, preconditioned):
    """The residual is what was asked for, what is said of it is true, and so is what the method believed."""
    for seed in range(3):
        a, b = system(solver, 30, dtype, seed)
        rtol = 1e-4 if a.real.dtype == np.float32 else 1e-10
        believed = []
        options = {"M": jacobi(a)} if preconditioned else {}
        x, info = solver(
            mb.HostArray(a), mb.HostArray(b), rtol=rtol, callback=lambda k, r: believed.append(r), **options
        )
        true = np.linalg.norm(b.astype("c16") - a.astype("c16") @ mb.to_numpy(x))
        assert x.dtype == a.dtype and info.converged and not info.reason
        assert true <= rtol * np.linalg.norm(b) * 1.01
        assert info.residual == pytest.approx(true, rel=0.05) and len(believed) == info.iterations
        assert believed[-1] == pytest.approx(info.residual, rel=0.1)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_beside_scipy(solver):
    """As many turns as SciPy's, of which the residuals agree to rounding."""
    for n, seed in itertools.product((10, 60), range(3)):
        a, b = system(solver, n, "f8", seed)
        ours, theirs = [], []
        x, _ = solver(mb.HostArray(a), mb.HostArray(b), rtol=1e-8, callback=lambda k, r, to=ours: to.append(r))
        if solver is gmres:
            options = {
                "callback_type": "pr_norm",
                "callback": lambda r, to=theirs: to.append(r * np.linalg.norm(b)),
            }
        else:
            options = {"callback": lambda x, a=a, b=b, to=theirs: to.append(np.linalg.norm(b - a @ x))}
        tight = {"rtol": 1e-8} if solver is not minres else {"rtol": 1e-16, "maxiter": len(ours)}
        y, _ = getattr(sl, solver.__name__)(a, b, **tight, **options)
        turns = min(len(ours), len(theirs), 15)
        np.testing.assert_allclose(ours[:turns], theirs[:turns], rtol=1e-6, atol=1e-11 * ours[0])
        if solver is cg:
            assert abs(len(ours) - len(theirs)) <= 1
        np.testing.assert_allclose(mb.to_numpy(x), y, rtol=0, atol=1e-5 * np.abs(y).max())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_on_every_type(solver, family, many):
    """Results are of the type of b, and what a turn costs is known: on cards one read, few kernels."""
    a, b = system(solver, 12 if solver is gmres else 40)
    A, rhs = family(a), family(b)
    counts = []
    with mb.count() as c:
        x, info = solver(
            A, rhs, rtol=1e-9, callback=lambda k, r: counts.append((c.launches, c.scalar_reads + c.transfers))
        )
    assert type(x) is type(rhs) and info.converged
    np.testing.assert_allclose(mb.to_numpy(x), np.linalg.solve(a, b), atol=1e-7)
    launches, reads = np.diff(np.array(counts), axis=0)[:18].T
    if solver is not gmres:
        assert launches.max() <= {cg: 9, minres: 7}[solver]
        assert reads.max() <= (1 if family in (mb.RefArray, mb.CuArray) else 4)
    elif family in (mb.RefArray, mb.CuArray):  # one for each pass of orthogonalisation
        assert reads.max() <= 2


def test_no_array_is_made_for_nothing():
    """A turn of cg on a card stores its three vectors, the product and numbers."""
    a, b = system(cg)
    A, rhs = mb.RefArray(a), mb.RefArray(b)
    written = []
    with mb.count() as c:
        cg(A, rhs, rtol=1e-9, callback=lambda k, r: written.append(c.bytes_written))
    assert np.diff(written).max() <= 4 * b.nbytes + 64


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("preconditioned", [False, True], ids=["plain", "M"])
def test_reductions_over_processes(ranks, preconditioned):
    """Two reductions a turn, whatever the preconditioner; gmres has as many as passes of orthogonalisation."""
    a, b = system(cg, 30)
    diagonal = 1 / np.diag(a)

    def program(comm):
        family = mb.DArray[mb.HostArray]
        matrix, rhs, d = family(a), family(b), family(diagonal)
        product = 0
        with mb.count() as c:
            mb.materialize(matrix @ rhs)
            product = c.collectives, c.messages
        found = []
        for solver in SOLVERS:
            counts = []
            with mb.count() as c:
                x, info = solver(
                    matrix,
                    rhs,
                    rtol=1e-10,
                    M=(lambda r: d * r) if preconditioned else None,
                    callback=lambda k, r, c=c, to=counts: to.append(c.collectives),
                )
            found.append((mb.to_numpy(x), info, np.diff(counts).max() - product[0]))
        return found

    for of_rank in on_ranks(ranks, program):
        for (x, info, reductions), solver in zip(of_rank, SOLVERS, strict=True):
            np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-10)
            assert info.converged
            assert reductions <= {cg: 2, minres: 3 if preconditioned else 2, gmres: 2}[solver]


def test_fields_functions_and_libraries():
    """b of any shape with a function; SciPy's matrices and operators, lists, NumPy's and structured arrays."""

    def laplacian(u):
        v = 4 * u
        v[1:] -= u[:-1]
        v[:-1] -= u[1:]
        v[:, 1:] -= u[:, :-1]
        v[:, :-1] -= u[:, 1:]
        return v

    u = mb.HostArray(np.random.default_rng(1).standard_normal((7, 5)))
    for solver in SOLVERS:
        x, info = solver(laplacian, laplacian(u), rtol=1e-12)
        assert x.shape == (7, 5) and info.converged
        np.testing.assert_allclose(mb.to_numpy(x), mb.to_numpy(u), atol=1e-10)
    n = 30
    T = sp.diags_array([2.5 * np.ones(n), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]).tocsr()
    b = np.arange(n) / n
    true = np.linalg.solve(T.toarray(), b)
    banded = mb.Tridiagonal(-np.ones(n - 1), 2.5 * np.ones(n), -np.ones(n - 1))
    for A in (T, mb.CSR(T), sl.aslinearoperator(T), T.toarray(), T.toarray().tolist(), banded, lambda v: T @ v):
        for solver, rhs in itertools.product(SOLVERS, (b, b.tolist(), mb.HostArray(b))):
            x, info = solver(A, rhs, rtol=1e-12, M=sl.aslinearoperator(sp.diags_array(np.ones(n) / 2.5)))
            assert type(x) is mb.HostArray[np.dtype("f8"), 1] and info.converged
            np.testing.assert_allclose(mb.to_numpy(x), true, atol=1e-10)
    x, info = cg(banded, mb.Ones(n), rtol=1e-12)
    np.testing.assert_allclose(mb.to_numpy(x), np.linalg.solve(T.toarray(), np.ones(n)), atol=1e-10)


@pytest.mark.parametrize("leaf", ["host", "ref", "cuda", "dist", "host_pending", "host_shared", "host_swapped"])
def test_arguments_are_left_alone(leaf):
    kind = LEAVES[leaf]
    for solver in SOLVERS:
        a, b = system(solver, 12)
        A, rhs, start = kind.make(a), kind.make(b), kind.make(b * 0.5)
        _, info = solver(A, rhs, start, rtol=1e-10)
        y, _ = solver(lambda v: v, rhs, start)  # a function that returns what it was given
        assert info.converged
        for given, true in ((A, a), (rhs, b), (start, b * 0.5), (y, b)):
            np.testing.assert_allclose(mb.to_numpy(given), true, rtol=1e-14)


def test_derivatives():
    """Of matrix, right-hand side and functions; and of derivatives."""
    rng = np.random.default_rng(3)
    for solver in SOLVERS:
        a, b = system(cg, 10)
        da, db = rng.standard_normal((10, 10)), rng.standard_normal(10)
        da = da + da.T
        x = np.linalg.solve(a, b)
        dx = np.linalg.solve(a, db - da @ x)
        for f in (
            lambda A, b: solver(A, b, rtol=1e-13)[0],
            lambda A, b: solver(lambda v: A @ v, b, rtol=1e-13)[0],
        ):
            for family in (mb.HostArray, mb.RefArray):
                y, dy = autodiff.jvp(f, (family(a), family(b)), (family(da), family(db)))
                np.testing.assert_allclose(mb.to_numpy(y), x, atol=1e-12)
                np.testing.assert_allclose(mb.to_numpy(dy), dx, atol=1e-12)

        def scaled(s, solver=solver, a=a, b=b):
            return mb.sum(solver(mb.HostArray(a) * s[0], mb.HostArray(b) * s[1], rtol=1e-13)[0])

        second = mb.to_numpy(autodiff.hessian(scaled, mb.HostArray([1.0, 1.0])))
        np.testing.assert_allclose(second, x.sum() * np.array([[2, -1], [-1, 0]]), atol=1e-11)


# Where there is no solution, or none to be found


def gives_up(solver, a, b, *args, **options):
    with pytest.warns(ConvergenceWarning, match=f"{solver.__name__} did not converge") as told:
        x, info = solver(mb.HostArray(a), mb.HostArray(b), *args, **options)
    assert not info.converged and info.reason in str(told[0].message) and told[0].filename == __file__
    with np.errstate(invalid="ignore"):
        residual = np.linalg.norm(b - a @ mb.to_numpy(x))
    assert residual == pytest.approx(info.residual, rel=1e-6, abs=1e-14, nan_ok=True)
    return mb.to_numpy(x), info


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_what_cannot_be_solved(solver):
    ones = np.ones(4)
    x, info = gives_up(solver, np.eye(4), np.array([1, np.nan, 0, 0]))
    assert np.isnan(x).all() and "NaN" in info.reason
    x, info = gives_up(solver, np.diag([1, np.inf, 1, 1.0]), ones, maxiter=20)
    assert "not finite" in info.reason
    x, info = gives_up(solver, np.zeros((4, 4)), ones)
    assert not x.any() and info.residual == 2
    x, info = gives_up(solver, np.diag([1.0, 2, 3, 0]), ones)
    assert "singular" in info.reason
    if solver is minres:
        np.testing.assert_allclose(x[:3], [1, 1 / 2, 1 / 3])
    x, info = gives_up(solver, system(solver)[0], system(solver)[1], maxiter=3)
    assert info.iterations == 3 and "maxiter" in info.reason
    x, info = gives_up(solver, np.eye(4), ones, maxiter=0)
    assert info.iterations == 0 and not x.any()
    x, info = gives_up(solver, np.diag([1.0, 2, 3, 4]) + 0.1, ones, rtol=0)
    assert info.residual < 1e-14, "it does not go on for ever"


def test_matrices_of_another_kind():
    indefinite, turning = np.diag([1.0, -2, 3, -4]), np.roll(np.eye(4), 1, 0)
    for a in (indefinite, -np.eye(4), turning):
        _, info = gives_up(cg, a, np.array([1.0, 2, 3, 5]), maxiter=30)
        assert a is not indefinite or "minres" in info.reason
    gives_up(minres, turning, np.array([1.0, 2, 3, 5]), maxiter=30)
    _, info = gives_up(minres, indefinite, np.ones(4), M=-np.eye(4))
    assert "M is not positive definite" in info.reason
    for a in (indefinite, turning):
        assert gmres(mb.HostArray(a), mb.HostArray([1.0, 2, 3, 5]))[1].converged
    # Fewer turns between restarts than this one needs: it says so.
    _, info = gives_up(gmres, turning, np.array([1.0, 0, 0, 0]), restart=2)
    assert "restart" in info.reason


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_edges(solver):
    """Nothing to solve, systems that reach only a part, numbers whose squares leave the range, other dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for b, x0 in ((np.zeros(4), None), (np.zeros(4), np.ones(4))):
            x, info = solver(np.eye(4), b, x0)
            assert not mb.to_numpy(x).any() and (info.converged, info.iterations, info.residual) == (True, 0, 0)
        assert solver(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)
        x, info = solver(np.eye(4), np.ones(4), np.ones(4))
        assert info.iterations == 0 and info.converged
        x, info = solver(np.diag([1.0, 2, 3, 0]), np.array([1.0, 1, 1, 0]))
        np.testing.assert_allclose(mb.to_numpy(x), [1, 1 / 2, 1 / 3, 0], rtol=1e-5)
        for size, dtype in ((1e200, "f8"), (1e-200, "f8"), (1e300, "f8"), (1e-30, "f4"), (1e30, "f4")):
            x, info = solver(np.diag([1, 2, 3, 4]).astype(dtype), np.full(4, size, dtype))
            assert info.converged and x.dtype == dtype
            np.testing.assert_allclose(mb.to_numpy(x) / size, [1, 1 / 2, 1 / 3, 1 / 4], rtol=1e-5)
        assert solver([[2, 0], [0, 4]], [2, 4])[0].dtype == np.float64
        assert solver(np.eye(2, dtype="f2"), np.ones(2, "f2"))[0].dtype == np.float32
        assert solver(np.eye(2) * (1 + 0j), np.ones(2))[0].dtype == np.complex128


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda f: f.__name__)
def test_mistakes(solver):
    A, b = mb.HostArray(np.eye(3)), mb.HostArray(np.ones(3))
    for error, text, call in (
        (LinAlgError, "square matrix of 4 rows", lambda: solver(A, mb.HostArray(np.ones(4)))),
        (LinAlgError, "square matrix", lambda: solver(mb.HostArray(np.ones((3, 4))), b)),
        (LinAlgError, "M has shape", lambda: solver(A, b, M=mb.HostArray(np.eye(4)))),
        (LinAlgError, "not one number", lambda: solver(A, mb.HostArray(1.0))),
        (LinAlgError, "keep the shape", lambda: solver(lambda v: v[:2], b)),
        (LinAlgError, "complex128", lambda: solver(lambda v: 1j * v, b)),
        (TypeError, "a function that multiplies", lambda: solver(5, b)),
        (ValueError, "x0 has shape", lambda: solver(A, b, mb.HostArray(np.ones(2)))),
        (ValueError, "rtol=-1", lambda: solver(A, b, rtol=-1)),
        (ValueError, "atol=nan", lambda: solver(A, b, atol=np.nan)),
        (ValueError, "maxiter=1.5", lambda: solver(A, b, maxiter=1.5)),
        (mb.PlaceError, "mb.adapt", lambda: solver(A, mb.RefArray(np.ones(3)))),
        (TypeError, "info.converged", lambda: bool(solver(A, b)[1])),
    ):
        with pytest.raises(error, match=text):
            call()
    with pytest.raises(ValueError, match="restart=0"):
        gmres(A, b, restart=0)


def test_the_methods_are_short():
    """Lines of code, without docstrings, comments and blank lines: of the methods and what they share, and
    of what stands around them, which checks arguments, warns, and solves for dual numbers."""
    assert lines_of_code(METHODS.read_text()) < 200
    assert lines_of_code(METHODS.read_text()) + lines_of_code(AROUND.read_text()) < 400
