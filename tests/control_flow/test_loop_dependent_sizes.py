"""Slices whose bounds depend on loop counters: values, derivatives, batches, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import TraceError

BACKENDS = ["interpret", "llvm"]


# ---- programs: `loop` is wg.fori_loop, or a Python loop for the reference ----------------------


def cholesky(A: Any, loop: Any) -> Any:
    A = A * 1.0

    def row(i: Any, A: Any) -> Any:
        def column(j: Any, A: Any) -> Any:
            A[i, j] -= wnp.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
            return A

        A = loop(0, i, column, A)
        A[i, i] = wnp.sqrt(A[i, i] - (A[i, :i] ** 2).sum())
        return A

    return loop(0, A.shape[0], row, A)


def lu(A: Any, loop: Any) -> Any:
    A = A * 1.0

    def row(i: Any, A: Any) -> Any:
        def lower(j: Any, A: Any) -> Any:
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
            return A

        def upper(j: Any, A: Any) -> Any:
            A[i, j] -= A[i, :i] @ A[:i, j]
            return A

        A = loop(0, i, lower, A)
        return loop(i, A.shape[0], upper, A)

    return loop(0, A.shape[0], row, A)


def triangular_solve(A: Any, loop: Any) -> Any:
    n = A.shape[0]
    x = A[:, 0] * 1.0

    def step(i: Any, x: Any) -> Any:
        x[i] = (A[i, 1] - A[i, :i] @ x[:i]) / A[i, i]
        return x

    return loop(0, n, step, x)


def back_substitution(A: Any, loop: Any) -> Any:
    n = A.shape[0]
    x = A[:, 0] * 1.0

    def step(k: Any, x: Any) -> Any:
        i = n - 1 - k
        x[i] = (A[i, 1] - (A[i, i + 1 :] * x[i + 1 :]).sum()) / A[i, i]
        return x

    return loop(0, n, step, x)


def eliminate(A: Any, loop: Any) -> Any:
    n = A.shape[0]
    y = A[0] * 1.0

    def step(k: Any, y: Any) -> Any:
        y[k:] -= 0.1 * y[k] * A[k, k:]
        return y

    return loop(0, n, step, y)


def durbin(A: Any, loop: Any) -> Any:
    r = A[0] / 40.0
    y = r * 0.0

    def step(k: Any, carry: Any) -> Any:
        y, alpha, beta = carry
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + wnp.dot(wnp.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * wnp.flip(y[:k])
        y[k] = alpha
        return y, alpha, beta

    y[0] = -r[0]
    return loop(1, A.shape[0], step, (y, -r[0], 1.0 + 0 * r[0]))[0]


def reversed_slices(A: Any, loop: Any) -> Any:
    y = A[0] * 1.0

    def step(k: Any, y: Any) -> Any:
        y[:k] += 0.1 * A[1, k - 1 :: -1][:k] * y[k]
        y[k::-2] *= 1.1
        return y

    return loop(1, A.shape[0], step, y)


def trmm(A: Any, loop: Any) -> Any:
    B = wnp.cos(A)

    def row(i: Any, B: Any) -> Any:
        def column(j: Any, B: Any) -> Any:
            B[i, j] += wnp.dot(A[i + 1 :, i], B[i + 1 :, j])
            return B

        return loop(0, A.shape[0], column, B)

    return loop(0, A.shape[0], row, B)


def syrk(A: Any, loop: Any) -> Any:
    C = wnp.sin(A)

    def row(i: Any, C: Any) -> Any:
        C[i, : i + 1] *= 0.5

        def column(k: Any, C: Any) -> Any:
            C[i, : i + 1] += 1.5 * A[i, k] * A[: i + 1, k]
            return C

        return loop(0, A.shape[1], column, C)

    return loop(0, A.shape[0], row, C)


def symm(A: Any, loop: Any) -> Any:
    B, C = wnp.cos(A), wnp.sin(A)

    def row(i: Any, C: Any) -> Any:
        def column(j: Any, C: Any) -> Any:
            C[:i, j] += 1.5 * B[i, j] * A[i, :i]
            C[i, j] += 1.5 * (B[i, j] * A[i, i] + B[:i, j] @ A[i, :i])
            return C

        return loop(0, A.shape[1], column, C)

    return loop(0, A.shape[0], row, C * 0.5)


def products(A: Any, loop: Any) -> Any:
    """Matrices of computed size, means, maxima, broadcasting, shifted slices."""
    total = A.sum() * 0.0

    def step(i: Any, total: Any) -> Any:
        block = A[:i, :i]
        total = (
            total + (block @ A[:i, 0]).mean() + block.max() + (block * A[1, :i]).prod(axis=0).sum()
        )
        return total + (A[0, 1 : i + 1] - A[1, :i]).var() + wnp.tanh(A[0, :-i]).sum()

    return loop(1, A.shape[0], step, total)


def captured(A: Any, loop: Any) -> Any:
    """An array of computed size that an inner loop reads; two lengths; a branch."""

    def row(i: Any, s: Any) -> Any:
        part = A[i, :i]

        def column(j: Any, s: Any) -> Any:
            outer = A[i, :i, None] * A[None, j, j:]
            return s + (part * A[j, :i]).sum() * A[i, j] + wnp.tanh(outer).sum()

        return loop(0, i, column, s)

    return loop(0, A.shape[0], row, A[0, 0])


def branching(A: Any, loop: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return s + wg.cond(A[i, 0] > 0, lambda: A[i, :i].sum(), lambda: (A[i:, i] ** 2).sum())

    return loop(0, A.shape[0], step, A[0, 0])


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    cholesky, lu, triangular_solve, back_substitution, eliminate, durbin, reversed_slices, trmm,
    syrk, symm, products, captured, branching,
]  # fmt: skip


def python_loop(lower: int, upper: int, step: Any, value: Any) -> Any:
    for i in range(lower, upper):
        value = step(i, value)
    return value


def matrix(n: int) -> np.ndarray[Any, Any]:
    M = np.random.default_rng(n).normal(size=(n, n))
    return M @ M.T / n + 2 * np.eye(n)


def looped(f: Any) -> Any:
    return lambda A: f(A, wg.fori_loop)


def scalar(f: Any, loop: Any) -> Any:
    return lambda A: (wnp.sin(f(A, loop)) * 1.5).sum()


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_gradients_are_those_of_the_python_loop(f: Any, backend: str) -> None:
    A = matrix(5)
    want = f(wg.tensor(A), python_loop)
    np.testing.assert_allclose(wg.jit(looped(f), backend=backend)(A), np.asarray(want), rtol=1e-12)
    slope = wg.grad(scalar(f, python_loop))(A)
    found = wg.jit(wg.grad(scalar(f, wg.fori_loop)), backend=backend)(A)
    np.testing.assert_allclose(found, slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [cholesky, durbin, syrk, products])
@pytest.mark.sample(1)
def test_forward_mode_and_second_derivatives(f: Any) -> None:
    A, D = matrix(4), np.random.default_rng(0).normal(size=(4, 4))
    g, reference = scalar(f, wg.fori_loop), scalar(f, python_loop)
    slope = wg.grad(reference)(A)
    forward = wg.jit(lambda A: wg.jvp(g, (A,), (D,))[1])(A)
    np.testing.assert_allclose(forward, (slope * D).sum(), rtol=1e-10)
    h = 1e-5
    want = (wg.grad(reference)(A + h * D) - wg.grad(reference)(A - h * D)) / (2 * h)
    for second in (
        lambda A: wg.grad(lambda A: (wg.grad(g)(A) * D).sum())(A),
        lambda A: wg.jvp(wg.grad(g), (A,), (D,))[1],
    ):
        np.testing.assert_allclose(wg.jit(second)(A), want, rtol=1e-5, atol=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [cholesky, durbin, eliminate])
def test_vmap_and_checkpoints(f: Any) -> None:
    A = np.stack([matrix(4), matrix(4) + np.eye(4)])
    g = scalar(f, wg.fori_loop)
    want = np.stack([wg.grad(scalar(f, python_loop))(a) for a in A])
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(g)))(A), want, rtol=1e-10, atol=1e-12)

    def limited(lower: Any, upper: Any, step: Any, value: Any) -> Any:
        return wg.fori_loop(lower, upper, step, value, memory=2)

    found = wg.jit(wg.grad(scalar(f, limited)))(A[0])
    np.testing.assert_allclose(found, want[0], rtol=1e-10, atol=1e-12)


def test_lengths_that_differ_in_a_batch() -> None:
    def f(x: Any, n: Any) -> Any:
        return wg.fori_loop(0, 3, lambda i, s: s + (x[:n] ** 2).sum() * x[n - 1], 0.0)

    x, counts = np.arange(1.0, 6.0), np.array([1, 3, 5])
    want = [3 * (x[:n] ** 2).sum() * x[n - 1] for n in counts]
    many = wg.vmap(f, in_axes=(None, 0))
    np.testing.assert_allclose(wg.jit(many)(x, counts), want)
    slopes = wg.jit(wg.vmap(wg.grad(f), in_axes=(None, 0)))(x, counts)
    np.testing.assert_allclose(slopes[0], [9.0, 0, 0, 0, 0])


SLICES: list[Callable[[Any, Any], Any]] = [
    lambda x, i: x[:i],
    lambda x, i: x[i:],
    lambda x, i: x[i - 3 : i + 2],
    lambda x, i: x[i:-2],
    lambda x, i: x[-i:],
    lambda x, i: x[: 2 * i - 7],
    lambda x, i: x[i : i * i : 2],
    lambda x, i: x[i::3],
    lambda x, i: x[i::-1],
    lambda x, i: x[:i:-2],
    lambda x, i: x[i + 2 : i - 4 : -1],
    lambda x, i: x[i - 1 :: -3],
    lambda x, i: x[None, i:, None],
]


@pytest.mark.sample(14)
@pytest.mark.parametrize("cut", SLICES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds_are_clipped_as_by_numpy(cut: Any, backend: str) -> None:
    x = np.arange(1.0, 8.0)

    def read(x: Any) -> Any:
        def step(i: Any, out: Any) -> Any:
            part = cut(x, i)
            out[i, 0] = part.sum()
            out[i, 1] = (part * part).sum()
            out[i, 2] = wnp.ones_like(part).sum()
            return out

        return wg.fori_loop(0, 10, step, wnp.zeros((10, 3)))

    want = [[p.sum(), (p * p).sum(), p.size] for p in (cut(x, i) for i in range(10))]
    np.testing.assert_allclose(wg.jit(read, backend=backend)(x), want)
    slope = np.sum([2 * x * (_marked(cut, i) > 0) + (_marked(cut, i) > 0) for i in range(10)], 0)
    found = wg.jit(wg.grad(lambda x: read(x).sum()), backend=backend)(x)
    np.testing.assert_allclose(found, slope)


def _marked(cut: Any, i: int) -> np.ndarray[Any, Any]:
    marks = np.zeros(7)
    cut(marks, i)[...] = 1
    return marks


def test_while_and_scan_take_slices_too() -> None:
    x = np.arange(1.0, 7.0)

    def sums(x: Any) -> Any:
        return wg.scan(lambda k, row: (k + 1, (x[:k] * row).sum()), 0, x)[1]

    np.testing.assert_allclose(wg.jit(sums)(x), [v * x[:k].sum() for k, v in enumerate(x)])

    def until(x: Any) -> Any:
        def more(c: Any) -> Any:
            return c[1] < 20.0

        return wg.while_loop(
            more, lambda c: (c[0] + 1, x[: c[0] + 1].sum() * c[2], c[2]), (0, 0.0, x[0])
        )

    np.testing.assert_allclose(wg.jit(until)(x)[1], 21.0)
    slope = wg.jit(wg.grad(lambda x: until(x)[1]))(x)
    np.testing.assert_allclose(slope, [22.0, 1, 1, 1, 1, 1])


def test_symbolic_sizes_and_float32() -> None:
    compiled = wg.jit(wg.grad(scalar(cholesky, wg.fori_loop)))
    for n in (1, 2, 3, 6):
        A = matrix(n).astype(np.float32)
        want = wg.grad(scalar(cholesky, python_loop))(A)
        found = compiled(A)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-5)


def test_a_length_that_differs_may_not_leave_the_step() -> None:
    x = np.arange(5.0)
    with pytest.raises((TraceError, wg.errors.ShapeError), match=r"slice|shape"):
        wg.jit(lambda x: wg.fori_loop(0, 3, lambda i, y: x[:i], x))(x)
    with pytest.raises(TraceError, match="differs"):
        wg.jit(lambda x: wg.scan(lambda c, k: (c, x[:k]), 0.0, np.arange(3))[1])(x)
    with pytest.raises(wg.errors.ShapeError, match="lengths of slices"):
        wg.jit(lambda x: wg.fori_loop(0, 3, lambda i, s: s + (x[:i] * x[i:]).sum(), 0.0))(x)
    with pytest.raises(TraceError, match=r"np\.where"):
        wg.jit(lambda x, n: x[:n], source=False)(x, 3)
    assert wg.jit(lambda x, n: x[:n].sum())(x, 3) == 3.0


def test_positions_out_of_bounds_raise() -> None:
    def f(A: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s + A[i, :i].sum()

        return wg.fori_loop(0, 6, step, 0.0)

    with pytest.raises(IndexError):
        wg.jit(f)(np.ones((5, 5)))


def test_saved_and_read_again(tmp_path: Any) -> None:
    A = matrix(4)
    graph = wg.trace(looped(cholesky))(wg.spec((4, 4)))
    wg.save(graph, tmp_path / "cholesky")
    again = wg.load(tmp_path / "cholesky")
    np.testing.assert_array_equal(again(A), graph(A))


def test_the_graph_does_not_grow_with_the_sizes() -> None:
    def nodes(n: int) -> int:
        graph = wg.trace(wg.grad(scalar(lu, wg.fori_loop)))(wg.spec((n, n)))
        return len(str(graph.show()))

    assert nodes(4) <= nodes(400) <= nodes(4) + 400  # the numbers are longer
