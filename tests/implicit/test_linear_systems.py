"""custom_linear_solve: values and derivatives of any order, beside numpy.linalg.solve."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.ops.linalg.packed_factors import definite_packed, order_of_pivots
from wengert.errors import ArgumentError, DtypeError, MatrixError, ShapeError, StructureError

RNG = np.random.default_rng(7)
A = RNG.normal(size=(4, 4)) + 4.0 * np.eye(4)
B = RNG.normal(size=4)
W = RNG.normal(size=4)


def conjugate_gradients(matvec, b):
    """The method of conjugate gradients, with a fixed number of steps."""
    x = np.zeros_like(b)
    r = p = b
    for _ in range(b.size):
        q = matvec(p)
        step = np.vdot(r, r) / np.vdot(p, q)
        x, new = x + step * p, r - step * q
        p = new + np.vdot(new, new) / np.vdot(r, r) * p
        r = new
    return x


def by_solve(a, b):
    return np.linalg.solve(a, b)


def by_function(a, b):
    return wg.custom_linear_solve(lambda x: a @ x, b)


def by_given_solver(a, b):
    return wg.custom_linear_solve(
        lambda x: a @ x, b, lambda matvec, c: np.linalg.solve(wg.jacobian(matvec)(c), c)
    )


def by_pair_of_solvers(a, b):
    def solve(matvec, c):
        return np.linalg.solve(np.asarray(A), c) * 1.0

    def transpose_solve(vecmat, c):
        return np.linalg.solve(np.asarray(A).T, c) * 1.0

    return wg.custom_linear_solve(lambda x: a @ x, b, solve, transpose_solve)


FORMS = [by_function, by_given_solver]
LOSS = {
    "value": lambda f: f,
    "grad": lambda f: lambda a, b: wg.grad(lambda a, b: np.sum(W * f(a, b) ** 2), (0, 1))(a, b),
    "jacrev": lambda f: wg.jacrev(f, (0, 1)),
    "jacfwd": lambda f: wg.jacfwd(f, (0, 1)),
    "jvp": lambda f: lambda a, b: wg.jvp(f, (a, b), (a.T, W))[1],
    "hvp": lambda f: (
        lambda a, b: wg.hvp(lambda a, b: np.sum(W * f(a, b) ** 2), (a, b), (a.T * 1.0, W))
    ),
    "reverse over reverse": lambda f: wg.jacrev(wg.jacrev(lambda a, b: np.sum(W * f(a, b)))),
    "forward over forward": lambda f: wg.jacfwd(wg.jacfwd(lambda a, b: np.sum(W * f(a, b)))),
    "third": lambda f: (
        lambda a, b: wg.grad(lambda a: np.sum(W @ wg.hessian(lambda b: np.sum(f(a, b) ** 3))(b)))(a)
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("derivative", LOSS)
def test_equals_numpy_solve(form, derivative, compiled):
    """Values and derivatives equal those of numpy.linalg.solve."""
    made = LOSS[derivative](form)
    result = (wg.jit(made) if compiled else made)(A, B)
    expected = LOSS[derivative](by_solve)(A, B)
    pairs = zip(leaves(result), leaves(expected), strict=True)
    for got, want in pairs:
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


def leaves(x):
    return [np.asarray(y) for y in (x if isinstance(x, tuple | list) else [x])]


def test_the_adjoint_solver_is_used():
    """Reverse mode calls `transpose_solve`, forward mode `solve`."""
    g = wg.grad(lambda a, b: np.sum(W * by_pair_of_solvers(a, b)), (0, 1))(A, B)
    expected = wg.grad(lambda a, b: np.sum(W * by_solve(a, b)), (0, 1))(A, B)
    for got, want in zip(g, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_complex(compiled):
    """The adjoint of a complex matrix is conjugated."""
    a, b = A + 1j * A.T[::-1], B + 0.3j
    forms = {
        "value": lambda form: form,
        "grad": lambda form: wg.grad(lambda a, b: np.sum(W * np.abs(form(a, b)) ** 2), (0, 1)),
        "jvp": LOSS["jvp"],
    }
    for made in forms.values():
        f = wg.jit(made(by_function)) if compiled else made(by_function)
        for got, want in zip(leaves(f(a, b)), leaves(made(by_solve)(a, b)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(dtype):
    """The dtype of the right-hand side is kept."""
    a, b = A.astype(dtype), B.astype(dtype)
    x = wg.jit(by_function)(a, b)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, by_solve(a, b), rtol=1e-4)


def test_symmetric_with_conjugate_gradients():
    """A symmetric system is solved by its own solver in both modes."""
    s = A @ A.T

    def loss(s, form):
        return np.sum(W * form(s))

    def implicit(s):
        return wg.custom_linear_solve(
            lambda x: (s + s.T) @ x / 2, B, conjugate_gradients, symmetric=True
        )

    def direct(s):
        return np.linalg.solve((s + s.T) / 2, B)

    for transform in (wg.grad, wg.hessian):
        got = transform(lambda s: loss(s, implicit))(s)
        want = transform(lambda s: loss(s, direct))(s)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_containers(compiled):
    """Right-hand sides may be containers; leaves may have any shapes."""
    b = {"u": np.array([1.0, 2.0]), "v": (np.array([[3.0], [4.0]]), 5.0)}

    def product(k, x):
        u, (v, w) = x["u"], x["v"]
        return {"u": k * u + v[:, 0], "v": (3.0 * v + k * w, 2.0 * w + u[0])}

    def f(k):
        x = wg.custom_linear_solve(lambda x: product(k, x), b)
        return np.sum(x["u"] ** 2) + np.sum(x["v"][0]) * x["v"][1]

    def dense(k):
        m = np.array(
            [[k, 0, 1, 0, 0], [0, k, 0, 1, 0], [0, 0, 3, 0, k], [0, 0, 0, 3, k], [1, 0, 0, 0, 2.0]]
        )
        x = np.linalg.solve(m, np.array([1.0, 2, 3, 4, 5]))
        return np.sum(x[:2] ** 2) + np.sum(x[2:4]) * x[4]

    for t in (lambda f: f, wg.grad, wg.hessian):
        made = wg.jit(t(f)) if compiled else t(f)
        np.testing.assert_allclose(made(2.5), t(dense)(2.5), rtol=1e-10)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_vmap(compiled):
    """A batch of systems, also under derivatives, and with a shared matrix."""
    many = np.stack([A, A.T, 2.0 * A])
    rights = RNG.normal(size=(3, 4))

    def made(form, axes):
        def loss(a, b):
            return np.sum(W * form(a, b) ** 2)

        return lambda a, b: (
            wg.vmap(form, axes)(a, b),
            *wg.vmap(wg.grad(loss, (0, 1)), axes)(a, b),
            *wg.grad(lambda a, b: np.sum(wg.vmap(loss, axes)(a, b)), (0, 1))(a, b),
        )

    for axes in ((0, 0), (None, 0), (0, None)):
        args = (many if axes[0] == 0 else A, rights if axes[1] == 0 else B)
        f = made(by_function, axes)
        results = (wg.jit(f) if compiled else f)(*args)
        for got, want in zip(results, made(by_solve, axes)(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_in_loops_and_branches():
    """Systems in compiled loops and branches."""

    def f(a, b, form):
        def step(_, x):
            return wg.cond(x[0] > 100.0, lambda x: x, lambda x: form(a, x), x)

        return np.sum(wg.fori_loop(0, 3, step, b))

    for t in (lambda g: g, lambda g: wg.grad(g, (0, 1))):
        got = wg.jit(t(lambda a, b: f(a, b, by_function)))(A, B)
        want = t(lambda a, b: f(a, b, by_solve))(A, B)
        for x, y in zip(leaves(got), leaves(want), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10)


def test_one_factorization_for_value_and_gradient():
    """Value and gradient of a compiled function factorize the matrix once."""
    a, b = np.eye(6) + np.diag(np.ones(5), 1), np.arange(6.0)

    def loss(a, b):
        return np.sum(wg.custom_linear_solve(lambda x: a @ x, b) ** 2)

    graph = wg.rewrite.simplify(
        wg.rewrite.without_calls(wg.trace(wg.value_and_grad(loss, (0, 1)))(a, b))
    )
    names = [n.op.name for n in graph.nodes]
    assert names.count("lu_packed") == 1
    assert names.count("solve_packed") == 2
    assert "einsum" not in names[: names.index("lu_packed")]  # not multiplied by unit vectors


def test_integers_become_floats():
    """Integer right-hand sides are converted to float64."""
    x = wg.custom_linear_solve(lambda x: 2.0 * x, np.array([1, 3]))
    np.testing.assert_array_equal(x, [0.5, 1.5])


def test_bad_input():
    """Errors name what is wrong."""
    with pytest.raises(ShapeError, match="shape \\(4,\\)"):
        wg.custom_linear_solve(lambda x: x[:2], B)
    with pytest.raises(StructureError, match="nested"):
        wg.custom_linear_solve(lambda x: (x, x), B)
    with pytest.raises(DtypeError, match="complex128"):
        wg.custom_linear_solve(lambda x: 1j * x, B)
    with pytest.raises(StructureError, match="contains nothing"):
        wg.custom_linear_solve(lambda x: x, [])
    with pytest.raises(StructureError, match="str"):
        wg.custom_linear_solve(lambda x: x, "b")
    with pytest.raises(MatrixError, match="ingular"):
        wg.custom_linear_solve(lambda x: 0.0 * x, B)
    with pytest.raises(MatrixError, match="ingular"):
        wg.jit(lambda k: wg.custom_linear_solve(lambda x: k * x, B))(0.0)
    with pytest.raises(ShapeError, match="result of solve"):
        wg.custom_linear_solve(lambda x: x, B, lambda matvec, b: b[:2])
    with pytest.raises(ArgumentError, match="custom_linear_solve"):
        wg.custom_linear_solve(A, B)


def test_a_jacobian_of_reshaped_parts_in_a_loop():
    """The products with unit vectors are constants, several of which have the same array."""

    def rate(y):
        u, v = y[:64].reshape(8, 8), y[64:].reshape(8, 8)
        return np.concatenate([(np.roll(u, 1, 0) - u * u * v).ravel(), (v - u).ravel()])

    def step(y):
        product = lambda v: 30.0 * v - wg.jvp(rate, (y,), (v,))[1]  # noqa: E731
        return y + 0.1 * wg.custom_linear_solve(product, y)

    def run(y):
        return wg.while_loop(lambda s: s[1] < 2, lambda s: (step(s[0]), s[1] + 1), (y, 0))[0]

    y = expected = np.linspace(0.0, 1.0, 128)
    for _ in range(2):
        matrix = 30.0 * np.eye(128) - wg.jacobian(rate)(expected)
        expected = expected + 0.1 * np.linalg.solve(matrix, expected)
    np.testing.assert_allclose(wg.jit(run)(y), expected, rtol=1e-12)


# ---- positive definite matrices ------------------------------------------------------------------


def symmetric(n, kind):
    """A symmetric matrix; 'nearly': up to rounding."""
    rng = np.random.default_rng(n)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    a = q @ np.diag(np.linspace(1.0, 3.0, n)) @ q.T
    a = (a + a.T) / 2
    if kind == "nearly":
        return a * (1.0 + 1e-16 * rng.integers(-4, 4, size=(n, n)))
    if kind == "indefinite":
        return a - 2.0 * np.eye(n) + 0.01 * np.ones((n, n))
    return a - 0.1 * np.triu(a, 1) if kind == "other" else a


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("kind", ["definite", "nearly", "indefinite", "other"])
@pytest.mark.parametrize("n", [12, 40])
def test_definite_matrices_are_found(n, kind, compiled):
    """They have no exchanges of rows; the others are factorized as usual."""
    a, b = symmetric(n, kind), np.linspace(-1.0, 1.0, n)
    wrap = wg.jit if compiled else lambda f: f
    packed, pivots = wrap(lambda a: definite_packed(a))(a)
    low, up = np.tril(packed.T, -1) + np.eye(n), np.triu(packed.T)
    order = np.argsort(order_of_pivots.run(np.asarray(pivots)))
    np.testing.assert_allclose((low @ up)[order], a, rtol=1e-12, atol=1e-13)
    if kind in ("definite", "nearly"):
        np.testing.assert_allclose(low, up.T / np.diagonal(up), atol=1e-12)
        assert np.all(pivots == np.arange(1, n + 1))

    def loss(a, b):
        return np.sum(wg.custom_linear_solve(lambda x: a @ x, b) ** 2)

    value, (of_a, of_b) = wrap(wg.value_and_grad(loss, (0, 1)))(a, b)
    x = np.linalg.solve(a, b)
    multipliers = np.linalg.solve(a.T, 2.0 * x)
    np.testing.assert_allclose(value, x @ x, rtol=1e-10)
    np.testing.assert_allclose(of_b, multipliers, rtol=1e-9)
    np.testing.assert_allclose(of_a, -np.outer(multipliers, x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_definite_matrices_in_batches_with_nan(compiled):
    many = np.stack([symmetric(14, k) for k in ("definite", "indefinite", "other")])
    many[2, 3, 4] = np.nan
    solve = wg.vmap(lambda a: wg.custom_linear_solve(lambda x: a @ x, np.ones(14)))
    found = (wg.jit(solve) if compiled else solve)(many)
    np.testing.assert_allclose(found[:2], np.linalg.solve(many[:2], np.ones((2, 14, 1)))[..., 0])
    assert np.isnan(found[2]).any()
