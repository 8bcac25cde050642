"""Factorisations as objects: made once, used for many solves.

>>> import mirabelle as mb
>>> A = mb.HostArray([[4.0, 2.0], [2.0, 5.0]])
>>> F = mb.linalg.factorize(A)            # looks at A and chooses
>>> F
Cholesky of 2 x 2, float64, at host
>>> print(F.solve(mb.HostArray([6.0, 7.0])), mb.linalg.solve(F, mb.HostArray([4.0, 2.0])))
[1. 1.] [1. 0.]
>>> print(F.det(), F.L)
16.0 [[2. 0.]
 [1. 2.]]

Each holds its factors as arrays of the same place as the matrix. Stacks of matrices work throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import ArrayLike
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions import decompositions, solving
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    adjoint,
    check_matrices,
    check_square,
    identity_like,
    inexact,
    refusing,
    singular,
)
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system, solve_triangular
from mirabelle.arraytypes.parametric import ArrayMeta
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.dispatch.styles import Place


class Factorization:
    """A matrix as a product of simpler ones. The base: `solve`, `inv`, `det`, `slogdet`, `logdet`.

    A subclass names the arrays it holds in `_parts`, and computes them in `_factor`.

    >>> import mirabelle as mb
    >>> F = mb.linalg.factorize(mb.HostArray([[4.0, 0.0], [0.0, 2.0]]))
    >>> isinstance(F, mb.linalg.Factorization)
    True
    >>> print(F.solve(mb.HostArray([8.0, 2.0])))
    [2. 1.]
    """

    _parts: tuple[str, ...] = ()
    _square = True
    shape: tuple[int, ...]
    dtype: np.dtype

    def __init__(self, A: ArrayLike) -> None:
        matrix: Any = as_array(A)
        name = type(self).__name__
        (check_square if self._square else check_matrices)(name, matrix)
        (matrix,) = inexact(name, matrix)
        self.shape, self.dtype = matrix.shape, matrix.dtype
        for part, value in zip(self._parts, self._factor(matrix), strict=True):
            setattr(self, part, value)

    def _factor(self, A: Any) -> tuple[Any, ...]:
        """The arrays `_parts` names."""
        raise NotImplementedError(f"{type(self).__name__} must implement _factor.")

    def _mapped(self, f: Callable[[Any], Any]) -> Any:
        """The same factorisation with `f` of each array."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for part in self._parts:
            value = getattr(self, part)
            setattr(made, part, f(value) if isinstance(value, AbstractArray) else value)
        return made

    @property
    def place(self) -> Place:
        """Where the factors are."""
        return verbs.place(getattr(self, self._parts[0]))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape[-2:]))
        stack = f"{' x '.join(map(str, self.shape[:-2]))} matrices of " if self.ndim > 2 else ""
        return f"{type(self).__name__} of {stack}{size}, {self.dtype.name}, at {self.place}"

    def solve(self, b: ArrayLike) -> AbstractArray:
        """The x with A x = b, for one vector, or columns of them."""
        name = f"{type(self).__name__}.solve"
        like = getattr(self, self._parts[0])
        right: Any = as_array(b, like=like)
        check_system(name, self, right)
        right, _ = inexact(name, right, like)
        if right.ndim > 1:
            return self._solve(right)
        return standing_alone(self._solve(right[:, None])[..., 0])

    def _solve(self, b: Any) -> Any:
        """The solutions for columns."""
        raise NotImplementedError(f"{type(self).__name__} must implement _solve.")

    def inv(self) -> AbstractArray:
        """The inverse matrix. (To solve a system, `solve` is faster and more exact.)"""
        self._check_square("inv")
        return self.solve(identity_like(getattr(self, self._parts[0]), self.shape[-1], self.dtype))

    def slogdet(self) -> SlogdetResult:
        """Sign and logarithm of the absolute value of the determinant."""
        raise NotImplementedError(f"{type(self).__name__} must implement slogdet.")

    def det(self) -> AbstractArray:
        """The determinant."""
        sign, logabsdet = self.slogdet()
        return verbs.multiply(sign, verbs.exp(logabsdet))

    def logdet(self) -> AbstractArray:
        """The logarithm of the determinant, NaN where it is negative."""
        sign, logabsdet = self.slogdet()
        if self.dtype.kind == "c":
            return verbs.add(verbs.log(sign), logabsdet)
        return verbs.where(sign >= 0, logabsdet, np.nan)

    def _check_square(self, name: str) -> None:
        if self.shape[-1] != self.shape[-2]:
            raise LinAlgError(
                f"{type(self).__name__}.{name} needs a square matrix; this one has {self.shape[-2]} rows and "
                f"{self.shape[-1]} columns."
            )


def signs_and_logs(d: Any) -> SlogdetResult:
    """Sign and logarithm of the products of diagonals."""
    size = verbs.abs(d)
    unit = verbs.where(size > 0, verbs.divide(d, size), 0) if d.dtype.kind == "c" else verbs.sign(d)
    return SlogdetResult(verbs.prod(unit, axis=-1), verbs.sum(verbs.log(size), axis=-1))


def _diagonal(x: Any) -> Any:
    return diagonal_view(x, 0, -2, -1)


def _triangle(x: Any, lower: bool, k: int = 0) -> Any:
    """A triangle of matrices with zeros in the other."""
    from mirabelle.arraytypes import library

    return library.call("tril" if lower else "triu", x, k=k)


class LU(Factorization):
    """A = P L U with row exchanges: what a general square matrix is solved by.

    Parameters
    ----------
    A : matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> F = mb.linalg.LU([[0.0, 2.0], [1.0, 3.0]])
    >>> print(F.P @ F.L @ F.U)
    [[0. 2.]
     [1. 3.]]
    """

    _parts = ("factors", "pivots")
    _square = False
    factors: Any
    pivots: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return solving.lu_factor(A)  # type: ignore[no-any-return]

    @property
    def L(self) -> AbstractArray:
        """The lower triangular factor, with ones on its diagonal."""
        k = min(self.shape[-2:])
        made = _triangle(self.factors[..., :k], lower=True, k=-1)
        verbs.assign(_diagonal(made), 1)
        return made

    @property
    def U(self) -> AbstractArray:
        """The upper triangular factor."""
        return _triangle(self.factors[..., : min(self.shape[-2:]), :], lower=False)

    def _permutation(self) -> tuple[Any, Any]:
        return refusing("LU", "linalg.permutation", self.pivots, rows=self.shape[-2])  # type: ignore[no-any-return]

    @property
    def p(self) -> AbstractArray:
        """The order of rows: A[p] = L U."""
        return self._permutation()[0]

    @property
    def P(self) -> AbstractArray:
        """The permutation as a matrix: A = P L U."""
        order = self.p
        rows = _range_like(order, self.shape[-2])[:, None]
        return cast_to(verbs.equal(order[..., None, :], rows), self.dtype)

    def _solve(self, b: Any) -> Any:
        self._check_square("solve")
        return refusing("LU.solve", "linalg.lu_solve", self.factors, self.pivots, b)

    def slogdet(self) -> SlogdetResult:
        self._check_square("slogdet")
        sign, logabsdet = signs_and_logs(_diagonal(self.factors))
        return SlogdetResult(
            cast_to(verbs.multiply(sign, cast_to(self._permutation()[1], sign.dtype)), sign.dtype), logabsdet
        )

    def det(self) -> AbstractArray:
        self._check_square("det")
        product = verbs.prod(_diagonal(self.factors), axis=-1)
        return verbs.multiply(product, cast_to(self._permutation()[1], product.dtype))


def _range_like(x: Any, n: int) -> Any:
    """0 to n - 1 where `x` is."""
    from mirabelle.arraytypes.creation import arange

    return arange(n, device=x.place)


class Triangular(Factorization):
    """A matrix that is triangular already: nothing is to be factored.

    Parameters
    ----------
    A : matrix
        The matrix.
    lower : bool, default False
        Which triangle is read.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.Triangular([[2.0, 0.0], [1.0, 4.0]], lower=True).solve([2.0, 9.0]))
    [1. 2.]
    """

    _parts = ("matrix",)
    matrix: Any

    def __init__(self, A: ArrayLike, lower: bool = False) -> None:
        self.lower = bool(lower)
        super().__init__(A)

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return (_triangle(A, self.lower),)

    def _solve(self, b: Any) -> Any:
        return solve_triangular(self.matrix, b, lower=self.lower)

    def slogdet(self) -> SlogdetResult:
        return signs_and_logs(_diagonal(self.matrix))

    def det(self) -> AbstractArray:
        return verbs.prod(_diagonal(self.matrix), axis=-1)


class Cholesky(Factorization):
    """A = L Lᴴ of a positive definite matrix: half the work of LU, and no exchanges.

    Parameters
    ----------
    A : matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.Cholesky([[4.0, 2.0], [2.0, 5.0]]).L)
    [[2. 0.]
     [1. 2.]]
    """

    _parts = ("L",)
    L: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return (decompositions.cholesky(A),)

    @property
    def U(self) -> AbstractArray:
        """The upper triangular factor: A = Uᴴ U."""
        return adjoint(self.L)

    def _solve(self, b: Any) -> Any:
        y = solve_triangular(self.L, b, lower=True)
        return solve_triangular(self.L, y, lower=True, trans=2)

    def slogdet(self) -> SlogdetResult:
        sign, logs = signs_and_logs(_diagonal(self.L))
        return SlogdetResult(sign, verbs.multiply(logs, 2))

    def det(self) -> AbstractArray:
        return verbs.square(verbs.prod(_diagonal(self.L), axis=-1))


class LDL(Factorization):
    """A = L D Lᴴ of a symmetric (Hermitian) matrix that need not be definite (Bunch and Kaufman).

    Parameters
    ----------
    A : matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> F = mb.linalg.LDL([[0.0, 1.0], [1.0, 0.0]])
    >>> print(F.solve([2.0, 3.0]), F.det())
    [3. 2.] -1.0
    """

    _parts = ("L", "D", "p")
    L: Any
    D: Any
    p: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return decompositions.ldl(A)  # type: ignore[no-any-return]

    def _blocks(self) -> Any:
        """The determinants of the blocks of D, spread over the diagonal (ones for second rows)."""
        d = _diagonal(self.D)
        if self.shape[-1] < 2:
            return d
        off = verbs.abs(diagonal_view(self.D, -1, -2, -1))
        paired = off > 0  # rows i and i + 1 are one block
        both = verbs.subtract(verbs.multiply(d[..., :-1], d[..., 1:]), verbs.square(off))
        made = verbs.copy(d)
        verbs.assign(made[..., :-1], verbs.where(paired, both, d[..., :-1]))
        verbs.assign(made[..., 1:], verbs.where(paired, 1, made[..., 1:]))
        return made

    def _solve(self, b: Any) -> Any:
        if bool(verbs.any(verbs.equal(self._blocks(), 0))):
            raise LinAlgError(singular("LDL.solve"))
        return refusing("LDL.solve", "linalg.ldl_solve", self.L, self.D, self.p, b)

    def slogdet(self) -> SlogdetResult:
        return signs_and_logs(self._blocks())

    def det(self) -> AbstractArray:
        return verbs.prod(self._blocks(), axis=-1)


class QR(Factorization):
    """A = Q R: solves square systems, and least squares where there are more rows than columns.

    Parameters
    ----------
    A : matrix
        The matrix.

    Examples
    --------
    >>> import mirabelle as mb
    >>> F = mb.linalg.QR([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> print(mb.round(F.solve([1.0, 3.0, 5.0])))
    [1. 2.]
    """

    _parts = ("Q", "R")
    _square = False
    Q: Any
    R: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        # Of a wide matrix the adjoint is factored: its columns span what a shortest solution is made of.
        self.wide = A.shape[-2] < A.shape[-1]
        return decompositions.qr(adjoint(A) if self.wide else A)  # type: ignore[no-any-return]

    def _solve(self, b: Any) -> Any:
        try:
            if self.wide:
                return verbs.matmul(self.Q, solve_triangular(self.R, b, trans=2))
            return solve_triangular(self.R, verbs.matmul(adjoint(self.Q), b))
        except LinAlgError:
            raise LinAlgError(singular("QR.solve")) from None

    def slogdet(self) -> SlogdetResult:
        self._check_square("slogdet")
        sign, logabsdet = signs_and_logs(_diagonal(self.R))
        return SlogdetResult(verbs.multiply(sign, solving.det(self.Q)), logabsdet)

    def det(self) -> AbstractArray:
        self._check_square("det")
        return verbs.multiply(verbs.prod(_diagonal(self.R), axis=-1), solving.det(self.Q))


class SVD(Factorization):
    """A = U diag(S) Vh: solves anything in the sense of least squares, and tells rank and condition.

    Singular values below `rtol` times the largest count as zero.

    Parameters
    ----------
    A : matrix
        The matrix.
    rtol : float or None
        Smaller singular values, relative to the largest, count as zero.

    Examples
    --------
    >>> import mirabelle as mb
    >>> F = mb.linalg.SVD([[2.0, 0.0], [0.0, 0.0]])
    >>> print(F.solve([4.0, 1.0]), F.rank())
    [2. 0.] 1
    """

    _parts = ("U", "S", "Vh")
    _square = False
    U: Any
    S: Any
    Vh: Any

    def __init__(self, A: ArrayLike, rtol: float | None = None) -> None:
        super().__init__(A)
        self.rtol = float(np.finfo(self.dtype).eps) * max(self.shape[-2:]) if rtol is None else float(rtol)

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return decompositions.svd(A, full_matrices=False)  # type: ignore[no-any-return]

    def _counts(self) -> Any:
        """Which singular values count."""
        return verbs.greater(self.S, verbs.multiply(self.S[..., :1], self.rtol))

    def _reciprocals(self) -> Any:
        counts = self._counts()
        return verbs.where(counts, verbs.divide(1, verbs.where(counts, self.S, 1)), 0)

    def _solve(self, b: Any) -> Any:
        y = verbs.matmul(adjoint(self.U), b)
        return verbs.matmul(adjoint(self.Vh), verbs.multiply(y, self._reciprocals()[..., None]))

    def inv(self) -> AbstractArray:
        self._check_square("inv")
        if not bool(verbs.all(self.S > 0)):
            raise LinAlgError(singular("SVD.inv"))
        return self.pinv(rtol=0.0)

    def pinv(self, rtol: float | None = None) -> AbstractArray:
        """The pseudo-inverse."""
        if rtol is not None:
            scaled = verbs.divide(adjoint(self.Vh), self.S[..., None, :])
        else:
            scaled = verbs.multiply(adjoint(self.Vh), self._reciprocals()[..., None, :])
        return verbs.matmul(scaled, adjoint(self.U))

    def rank(self) -> AbstractArray:
        """How many singular values count."""
        return verbs.count_nonzero(self._counts(), axis=-1)

    def cond(self) -> AbstractArray:
        """The largest singular value over the smallest."""
        return verbs.divide(self.S[..., 0], self.S[..., -1])

    def slogdet(self) -> SlogdetResult:
        self._check_square("slogdet")
        unit = verbs.multiply(solving.det(self.U), solving.det(self.Vh))
        return SlogdetResult(unit, verbs.sum(verbs.log(self.S), axis=-1))

    def det(self) -> AbstractArray:
        self._check_square("det")
        unit = verbs.multiply(solving.det(self.U), solving.det(self.Vh))
        return verbs.multiply(unit, verbs.prod(self.S, axis=-1))


class Eigen(Factorization):
    """A = V diag(w) V⁻¹ with eigenvalues w and eigenvectors as columns of V.

    `hermitian=True` reads one triangle, and gives real eigenvalues and orthonormal eigenvectors.

    Parameters
    ----------
    A : matrix
        The matrix.
    hermitian : bool or None, default False
        Whether A is Hermitian; None looks.

    Examples
    --------
    >>> import mirabelle as mb
    >>> F = mb.linalg.Eigen([[2.0, 1.0], [1.0, 2.0]], hermitian=True)
    >>> root = F.apply(mb.sqrt)
    >>> print(F.values, mb.round(root @ root))
    [1. 3.] [[2. 1.]
     [1. 2.]]
    """

    _parts = ("values", "vectors")
    values: Any
    vectors: Any

    def __init__(self, A: ArrayLike, hermitian: bool = False) -> None:
        self.hermitian = bool(hermitian)
        super().__init__(A)

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return decompositions.eigh(A) if self.hermitian else decompositions.eig(A)  # type: ignore[no-any-return]

    def _in_eigenvectors(self, b: Any) -> Any:
        """The coefficients of columns in the eigenvectors."""
        if self.hermitian:
            return verbs.matmul(adjoint(self.vectors), b)
        return solving.solve(self.vectors, b)

    def _solve(self, b: Any) -> Any:
        if bool(verbs.any(verbs.equal(self.values, 0))):
            raise LinAlgError(singular("Eigen.solve"))
        coefficients = verbs.divide(self._in_eigenvectors(b), self.values[..., None])
        return verbs.matmul(self.vectors, coefficients)

    def apply(self, f: Callable[[Any], Any]) -> AbstractArray:
        """The function of the matrix that is `f` of its eigenvalues: V diag(f(w)) V⁻¹."""
        scaled = verbs.multiply(self.vectors, f(self.values)[..., None, :])
        if self.hermitian:
            return verbs.matmul(scaled, adjoint(self.vectors))
        # X V = scaled, read from the right
        return solving.solve(self.vectors.mT, scaled.mT).mT

    def slogdet(self) -> SlogdetResult:
        return signs_and_logs(self.values)

    def det(self) -> AbstractArray:
        return verbs.prod(self.values, axis=-1)


# Choosing one


@array_function
def factorize(A: Any, /) -> Factorization:
    """The factorisation that suits a matrix, for solving with it more than once.

    Triangular matrices are used as they are; symmetric (Hermitian) ones are factored by Cholesky if
    they are definite, else as L D Lᴴ; other square ones by LU, and rectangular ones by QR. Of dual
    numbers the values are factored, once for all directions.

    Parameters
    ----------
    A : matrix
        Dense or structured.

    Returns
    -------
    mb.linalg.Factorization
        It has `solve(b)`, `inv()`, `det()`, `slogdet()` and `logdet()`, and can stand as the first argument
        of `mb.linalg.solve`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.linalg.factorize(mb.HostArray([[1.0, 2.0], [3.0, 4.0]]))
    LU of 2 x 2, float64, at host
    """
    check_matrices("factorize", A)
    if A.shape[-1] != A.shape[-2]:
        return QR(A)
    (A,) = inexact("factorize", A)
    if not A.size:
        return LU(A)
    for lower in (False, True):
        if not bool(verbs.any(verbs.not_equal(_triangle(A, not lower, k=1 if lower else -1), 0))):
            return Triangular(A, lower=lower)
    if bool(verbs.all(verbs.equal(A, adjoint(A)))):
        if bool(verbs.all(verbs.real(_diagonal(A)) > 0)):
            try:
                return Cholesky(A)
            except LinAlgError:
                pass  # the diagonal promised too much
        return LDL(A)
    return LU(A)


@factorize.method
def _(A: Factorization) -> Any:
    return A


@solving.solve.method
def _(x1: Factorization, x2: object) -> Any:
    return x1.solve(cast(Any, x2))


@solving.inv.method
def _(x: Factorization) -> Any:
    return x.inv()


@solving.det.method
def _(x: Factorization) -> Any:
    return x.det()


@solving.slogdet.method
def _(x: Factorization) -> Any:
    return x.slogdet()


@verbs.adapt.method
def _(to: ArrayMeta, x: Factorization) -> Any:
    return x._mapped(lambda part: verbs.adapt(to, part))
