"""A matrix that is the same in each step of a loop is factorized once, in both passes."""

import numpy as np
import pytest
import scipy.linalg
from wengert.backends import backend

import wengert as wg
from wengert import control
from wengert._engine.core.graph_classes import bodies_of
from wengert.errors import MatrixError

N = 17
RNG = np.random.default_rng(3)
A = RNG.normal(size=(N, N)) + np.diag(np.linspace(4, 8, N))
B = RNG.normal(size=N)
PERMUTED = A[RNG.permutation(N)]  # rows change places
SPD = A @ A.T + np.eye(N)
FACTORIZING = {"solve", "inv", "cholesky", "lu_packed", "linalg.lu_factors", "qr", "svd"}


def counted(graph, depth=0):
    """How many lines factorize: outside of loops, and in them."""
    found = [0, 0]
    for node in graph.nodes:
        found[depth > 0] += node.op.name in FACTORIZING
        for body in bodies_of(node):
            inner = counted(body, depth + 1)
            found = [x + y for x, y in zip(found, inner, strict=True)]
    return found


def traced(f, *args):
    return wg.trace(f)(*args).simplify()


def fori(a, b, steps=5):
    return np.sum(control.fori_loop(0, steps, lambda i, x: np.linalg.solve(a, x) + b, b) ** 2)


def scanned(a, b):
    def step(x, row):
        x = np.linalg.solve(a, x) + row * b
        return x, np.sum(x)

    return np.sum(control.scan(step, b, np.linspace(0.5, 1.5, 4))[1] ** 2)


def transposed(a, b):
    def step(i, x):
        return np.linalg.solve(a.T, x) + np.linalg.solve(a, b * x)

    return np.sum(control.fori_loop(0, 4, step, b) ** 2)


def shifted(a, b):
    """The matrix is computed, and several columns are solved for."""

    def step(i, x):
        return np.linalg.solve(np.eye(N) * 3.0 + a * 0.5, x) + np.outer(b, b[:3])

    return np.sum(control.fori_loop(0, 4, step, np.outer(b, b[:3])) ** 2)


def until(a, b):
    def step(state):
        k, x = state
        return k + 1, np.linalg.solve(a, x) + b

    return np.sum(control.while_loop(lambda s: s[0] < 4, step, (0, b))[1] ** 2)


def nested(a, b):
    def outer(i, x):
        return control.fori_loop(0, 3, lambda j, y: np.linalg.solve(a, y) + b, x) * 0.5

    return np.sum(control.fori_loop(0, 3, outer, b) ** 2)


def by_factors(a, b):
    factors = wg.scipy.linalg.lu_factor(a)
    step = lambda i, x: wg.scipy.linalg.lu_solve(factors, x) + b  # noqa: E731
    return np.sum(control.fori_loop(0, 4, step, b) ** 2)


def by_cholesky(a, b):
    factor = wg.scipy.linalg.cho_factor(a @ a.T + np.eye(N))
    step = lambda i, x: wg.scipy.linalg.cho_solve(factor, x) + b  # noqa: E731
    return np.sum(control.fori_loop(0, 4, step, b) ** 2)


LOOPS = dict(
    fori=fori, scanned=scanned, shifted=shifted, until=until, nested=nested, transposed=transposed
)
ALL = LOOPS | dict(by_factors=by_factors, by_cholesky=by_cholesky)


@pytest.mark.parametrize("name", LOOPS)
def test_one_factorization_serves_all_steps_of_both_passes(name):
    graph = traced(LOOPS[name], PERMUTED, B)
    assert counted(wg.trace(LOOPS[name])(PERMUTED, B))[1] > 0
    assert counted(graph) == [1, 0]
    assert counted(traced(wg.grad(LOOPS[name], argnums=(0, 1)), PERMUTED, B)) == [1, 0]


@pytest.mark.parametrize("name", ["by_factors", "by_cholesky"])
def test_factors_made_outside_stay_outside_and_native(name):
    for f in (ALL[name], wg.grad(ALL[name], argnums=(0, 1))):
        graph = traced(f, PERMUTED, B)
        assert counted(graph)[1] == 0
        assert backend("llvm").program(graph).host_callbacks == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ALL)
def test_values_and_gradients_are_those_of_eager(name):
    f = ALL[name]
    both = wg.value_and_grad(f, argnums=(0, 1))
    value, (by_a, by_b) = both(PERMUTED, B)
    compiled = wg.jit(both)(PERMUTED, B)
    np.testing.assert_allclose(compiled[0], value, rtol=1e-11)
    np.testing.assert_allclose(compiled[1][0], by_a, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(compiled[1][1], by_b, rtol=1e-8, atol=1e-11)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["fori", "transposed", "until"])
def test_a_simplified_graph_has_the_same_derivatives(name):
    f = LOOPS[name]
    value, slope = traced(f, PERMUTED, B), wg.grad(f, argnums=(0, 1))(PERMUTED, B)
    assert "lu_packed" in [n.op.name for n in value.nodes]
    for ours, expected in zip(value.grad((0, 1))(PERMUTED, B), slope, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-11)
    direction = RNG.normal(size=A.shape)
    expected = wg.jvp(wg.grad(f, argnums=1), (PERMUTED, B), (direction, B))[1]

    def pushed(a, b):
        return wg.jvp(wg.grad(f, argnums=1), (a, b), (direction, b))[1]

    np.testing.assert_allclose(wg.jit(pushed)(PERMUTED, B), expected, rtol=1e-8, atol=1e-11)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_other_dtypes_and_adjoints(dtype):
    a = (A + 1j * A[::-1] if dtype[0] == "c" else A).astype(dtype)
    b = (B * (1 + 0.5j) if dtype[0] == "c" else B).astype(dtype)

    def f(a, b):
        def step(i, x):
            y = np.linalg.solve(a, x) + b
            return np.linalg.solve(np.conj(a.T), y) + np.linalg.solve(a.T, b * x)

        return np.sum(np.abs(control.fori_loop(0, 3, step, b)) ** 2)

    assert counted(traced(f, a, b)) == [1, 0]
    value, slope = wg.value_and_grad(f)(a, b)
    native = wg.jit(wg.value_and_grad(f))(a, b)
    close = 2e-4 if dtype in ("f4", "c8") else 1e-9
    assert native[1].dtype == slope.dtype == a.dtype
    np.testing.assert_allclose(native[0], value, rtol=close)
    np.testing.assert_allclose(native[1], slope, rtol=close, atol=close * np.abs(slope).max())


def test_a_batch_of_matrices():
    many = np.stack([A, PERMUTED, A.T])
    mapped = wg.vmap(fori, in_axes=(0, None))
    np.testing.assert_allclose(wg.jit(mapped)(many, B), mapped(many, B), rtol=1e-11)
    slope = wg.vmap(wg.grad(fori), in_axes=(0, None))
    assert counted(traced(slope, many, B)) == [1, 0]
    np.testing.assert_allclose(wg.jit(slope)(many, B), slope(many, B), rtol=1e-8, atol=1e-11)


def test_a_singular_matrix_is_refused_where_it_is_solved_with():
    singular = A.copy()
    singular[:, 2] = 0.0
    for f in (fori, until, wg.grad(fori)):
        with pytest.raises(MatrixError, match=r"[Ss]ingular"):
            wg.jit(f)(singular, B)


def test_a_loop_without_steps_refuses_nothing():
    def f(a, b, n):
        return control.fori_loop(0, n, lambda i, x: np.linalg.solve(a, x) + b, b)

    def cholesky_until(a, b, n):
        step = lambda s: (s[0] + 1, np.linalg.cholesky(a) @ s[1])  # noqa: E731
        return control.while_loop(lambda s: s[0] < n, step, (0, b))[1]

    zero = np.zeros((N, N))
    for g in (f, cholesky_until):
        np.testing.assert_array_equal(wg.jit(g)(zero, B, 0), B)
        with pytest.raises(MatrixError):
            wg.jit(g)(zero, B, 1)
    assert counted(traced(f, A, B, 3)) == [1, 0]
    assert counted(traced(cholesky_until, SPD, B, 3)) == [0, 1]  # it may have to refuse nothing


@pytest.mark.parametrize("name", ["inv", "cholesky", "qr", "svd"])
def test_other_factorizations_move_before_a_loop_that_has_a_step(name):
    parts = {
        "inv": np.linalg.inv,
        "cholesky": np.linalg.cholesky,
        "qr": lambda a: np.linalg.qr(a)[1],
        "svd": lambda a: np.linalg.svd(a)[1],
    }

    def f(a, b):
        return np.sum(control.fori_loop(0, 3, lambda i, x: parts[name](a) @ x * 0.1 + b, b) ** 2)

    graph = traced(wg.value_and_grad(f), SPD, B)
    assert counted(graph)[1] == 0 and counted(graph)[0] >= 1
    value, slope = wg.value_and_grad(f)(SPD, B)
    native = wg.jit(wg.value_and_grad(f))(SPD, B)
    np.testing.assert_allclose(native[0], value, rtol=1e-9)
    np.testing.assert_allclose(native[1], slope, rtol=1e-6, atol=1e-9 * np.abs(slope).max())


def test_small_systems_stay_in_registers():
    graph = traced(fori, A[:4, :4], B[:4])
    assert "lu_packed" not in [n.op.name for n in graph.nodes]


def test_packed_factors_are_lapacks():
    graph = traced(fori, PERMUTED, B)
    packed = next(n for n in graph.nodes if n.op.name == "lu_packed")
    factors, pivots = packed.op.run(PERMUTED)
    expected = scipy.linalg.lu_factor(PERMUTED)
    np.testing.assert_array_equal(factors.T, expected[0])
    np.testing.assert_array_equal(pivots - 1, expected[1])
