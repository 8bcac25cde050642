"""The pass `refined`: operations on reshaped values are operations over the axes these have before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.passes.refined import split_axes
from mirabelle.arraytypes.programs.steps import KernelStep

M, N, K = 3, 4, 20
_rng = np.random.default_rng(5)
WITHOUT = [name for name in mb.compiling.PASSES if name != "refined"]


def some(*shape: int) -> np.ndarray:
    # (Sums of such numbers are exact.)
    return _rng.integers(-8, 9, shape) / 4.0


FINE, COARSE = some(M, N, N, K), some(M, N * N, K)
COLUMN, ROW = some(N, 1, 1), some(N, 1)


def checked(f: Callable[..., Any], *data: np.ndarray, exact: bool = True) -> tuple[Any, Any]:
    """The program with and without the pass: both give what the function gives, and the first is no longer."""

    def arrays() -> list[Any]:
        return [mb.HostArray(x.copy()) for x in data]

    def results(made: Any, given: list[Any]) -> list[np.ndarray]:
        made = made if isinstance(made, tuple) else () if made is None else (made,)
        return [np.asarray(mb.to_numpy(x)) for x in (*made, *given)]

    given = arrays()
    wanted = results(f(*given), given)
    found = []
    for passes in (None, WITHOUT):
        program = mb.compile(f, passes=passes)
        given = arrays()
        for a, b in zip(wanted, results(program(*given), given), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a, b) if exact else np.testing.assert_allclose(a, b, rtol=1e-12)
        found.append(program.program(*arrays()))
    new, old = found
    assert len(new.plan.steps) <= len(old.plan.steps)
    assert moved(new) <= moved(old)
    return new, old


def kernels(program: Any) -> list[tuple[int, ...]]:
    """The index spaces of a program's kernels."""
    return [step.request.shape for step in program.plan.steps if isinstance(step, KernelStep)]


def moved(program: Any) -> int:
    """The bytes that a call reads and writes."""
    return sum([sum(step.traffic) for step in program.plan.steps])


def temporaries(program: Any) -> int:
    return sum(1 for s in program.plan.storages if s.kind == "temporary" and s.last >= 0)


def sums(x: Any, c: Any, r: Any) -> tuple[Any, Any]:
    """Sums over lines along two axes, as rates and lifts of discontinuous Galerkin methods are."""
    first: Any = 0.0
    for j in range(N):
        first = first + c * x[:, j : j + 1] + r * x[:, :, j : j + 1]
    second = c * x[:, :1] + r * x[:, :, -1:]
    return mb.reshape(first, (M, N * N, K)), mb.reshape(second, (M, N * N, K))


def stage(x: Any, c: Any, r: Any, u: Any, k: Any) -> Any:
    volume, surface = sums(x, c, r)
    k = -0.5 * k + 0.25 * (volume + surface)
    return u + 0.5 * k, k


def test_a_stage_of_a_runge_kutta_method_is_one_kernel() -> None:
    new, old = checked(stage, FINE, COLUMN, ROW, COARSE, COARSE)
    assert kernels(new) == [(M, N, N, K)] and len(old.plan.steps) == 2
    # Two arrays are not written, nor read.
    assert moved(old) - moved(new) == 4 * COARSE.nbytes
    assert temporaries(new) == 0
    assert new.plan.outputs[0].shape == COARSE.shape


def test_arguments_are_written_to_where_they_are() -> None:
    def in_place(x: Any, c: Any, r: Any, u: Any, k: Any) -> None:
        made = stage(x, c, r, u, k)
        u[...] = made[0]
        k[...] = made[1]

    new, _ = checked(in_place, FINE, COLUMN, ROW, COARSE, COARSE)
    assert kernels(new) == [(M, N, N, K)]
    assert [s.kind for s in new.plan.outputs] == ["input", "input"] and temporaries(new) == 0
    assert sorted(new.in_place) == [3, 4]

    def in_parts(x: Any, c: Any, r: Any, u: Any) -> Any:
        before = u * 2
        u[0] = 1.0
        volume, _ = sums(x, c, r)
        u[1:] += (volume + before)[1:]
        return before

    checked(in_parts, FINE, COLUMN, ROW, COARSE)

    def updated(x: Any, c: Any, r: Any, u: Any) -> Any:
        y = u + sums(x, c, r)[0]
        y[:, 1] = 0.0
        return y, y[:, ::2] + 1

    new, _ = checked(updated, FINE, COLUMN, ROW, COARSE)
    assert kernels(new) == [(M, N, N, K), (M, K), (M, N * N // 2, K)]  # (y, what is written to it, its part)


def test_several_stages() -> None:
    def stages(x: Any, c: Any, r: Any, u: Any, k: Any) -> Any:
        for _ in range(3):
            u, k = stage(x * mb.reshape(u, x.shape), c, r, u, k)
        return u, k

    new, old = checked(stages, FINE, COLUMN, ROW, COARSE, COARSE)
    assert set(kernels(new)) == {(M, N, N, K)} and moved(new) < 0.8 * moved(old)
    assert (len(new.plan.steps), len(old.plan.steps)) == (3, 6)


# What is computed, of arrays over fine, coarse and smaller axes, and how many kernels that takes.
CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "merged": (lambda x, u, c, k: u + mb.reshape(x * c, u.shape), 1),
    "merged twice": (lambda x, u, c, k: mb.reshape(u - mb.reshape(x * c, u.shape), (-1, K)) * k[0, 0], 1),
    "all axes": (lambda x, u, c, k: mb.reshape(x * c, (-1,)) + mb.reshape(u, (-1,)), 1),
    "split": (lambda x, u, c, k: mb.reshape(mb.sin(u) * k[:, :1] + mb.exp(u), x.shape) * c, 1),
    "there and back": (lambda x, u, c, k: mb.reshape(mb.reshape(x * c, u.shape) + u, x.shape) * x, 1),
    "stretched": (lambda x, u, c, k: mb.reshape(x * c, u.shape) * u[:, :1] + u[0] - u[1:2, :, 3:4], 1),
    "transposed": (lambda x, u, c, k: u[::-1, :, ::-1] * mb.reshape(x - c, u.shape), 1),
    "numbers": (lambda x, u, c, k: mb.where(mb.reshape(x > c, u.shape), u, mb.astype(k > 1, u.dtype)), 1),
    "both read": (lambda x, u, c, k: (mb.reshape(x * c, u.shape) + u, x * c - 1), 1),
    "several results": (lambda x, u, c, k: (mb.frexp(mb.reshape(x * c, u.shape) + u)[0] * k, u * 2), 1),
    "also over other axes": (lambda x, u, c, k: (u * mb.reshape(x * c, u.shape), k - u, u + 1), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_reshapes_end_no_kernels(name: str) -> None:
    f, count = CASES[name]
    new, _ = checked(f, FINE, COARSE, COLUMN, some(M, N * N, K), exact=name != "split")
    assert len(new.plan.steps) == count
    assert temporaries(new) == 0


def test_what_is_in_memory_in_any_case_is_read_there() -> None:
    def as_output(x: Any, u: Any, c: Any) -> Any:
        y = x * c
        return y, mb.reshape(y, u.shape) + u

    def read_by_a_product(x: Any, u: Any, c: Any) -> Any:
        y = mb.reshape(x * c, u.shape)
        return u + y, y @ u[0].T

    def reduced(x: Any, u: Any, c: Any) -> Any:
        y = u + mb.reshape(x * c, u.shape)
        return y, mb.max(y * y, axis=1), mb.sum(y)

    def only_reduced(x: Any, u: Any, c: Any) -> Any:
        return mb.max(mb.reshape(x * c, u.shape) + u, axis=2)

    def shared(x: Any, u: Any, c: Any) -> Any:
        y = mb.reshape(x * c, u.shape)
        return mb.max(y + u, axis=1), mb.min(y - u, axis=0), mb.sum(y * u, axis=2), y[0]

    for f in (as_output, read_by_a_product, reduced, only_reduced, shared):
        checked(f, FINE, COARSE, COLUMN)


def test_gathers_and_joined_pieces() -> None:
    places = _rng.integers(0, M * N * N * K, (M, N * N, K)).astype(np.int32)

    def gathered(x: Any, u: Any, c: Any, places: Any) -> Any:
        return mb.reshape(x * c, u.shape) + mb.reshape(u, (-1,))[places]

    new, _ = checked(gathered, FINE, COARSE, COLUMN, places)
    assert kernels(new) == [FINE.shape]

    def joined(x: Any, u: Any, c: Any) -> Any:
        pieces = [mb.reshape(x[i] * c, u.shape[1:]) + u[i] for i in range(M)]
        return mb.stack(pieces)

    new, old = checked(joined, FINE, COARSE, COLUMN)
    assert len(new.plan.steps) == 1 < len(old.plan.steps)


def test_short_lines_and_other_reshapes_stay() -> None:
    def lines(x: Any, u: Any, row: Any) -> Any:
        return mb.sin(mb.reshape(x * row, u.shape)) + u

    new, _ = checked(lines, some(500, 3), some(1500), some(3), exact=False)
    assert (1500,) in kernels(new)
    # 12 is no product of axes of (3, 8), and the other way round.
    new, _ = checked(lines, some(20, 3, 8, 20), some(20, 4, 6, 20), some(8, 1), exact=False)
    assert len(new.plan.steps) == 2
    checked(lines, np.zeros((0, 3, 4)), np.zeros((0, 12)), some(4))


def test_axes_that_split() -> None:
    assert split_axes((6, 4), (2, 3, 4)) == [(2, 3), (4,)]
    assert split_axes((6, 4), (6, 2, 1, 2)) == [(6,), (2, 1, 2)]
    assert split_axes((1, 6), (2, 3)) == [(), (2, 3)]
    assert split_axes((6,), (2, 3, 1, 1)) == [(2, 3, 1, 1)]
    assert split_axes((6, 4), (2, 12)) is None
    assert split_axes((6, 4), (3, 8)) is None
    assert split_axes((), (1,)) is None
