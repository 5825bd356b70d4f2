"""Systems by the structure of their matrix, beside dense systems: values, derivatives, errors."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.implicit.linear_methods import structure_of
from wengert.errors import ArgumentError, ConvergenceError, MatrixError, SingularError

RNG = np.random.default_rng(11)


def elementwise(k, x):
    return k * x + 0.0


def tridiagonal(k, x):
    left = np.concatenate([np.zeros(1), x[:-1]])
    right = np.concatenate([x[1:], np.zeros(1)])
    return (3.0 + k**2) * x - k * left + 0.5 * k * right


def wide(k, x):
    """Two diagonals below, none above."""
    return (2.0 + k) * x + 0.3 * np.concatenate([np.zeros(2), x[:-2]])


def laplacian(k, x):
    """Five points of a square grid."""
    m = int(len(k) ** 0.5)
    u = np.pad(x.reshape(m, m), 1)
    flux = 4.1 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
    return k * flux.reshape(-1)


def full(k, x):
    return k * x + np.sum(x)


CASES = {
    "diagonal": (elementwise, 12),
    "banded 1 1": (tridiagonal, 24),
    "banded 2 0": (wide, 30),
    "dense": (full, 7),
    "sparse": (laplacian, 18 * 18),
}


def found(product, n):
    body = wg.trace(product)(wg.spec(n), wg.spec(n))
    from wengert._engine.core.graph_classes import Body

    return structure_of(Body(*body.outputs, inputs=body.inputs), 1, n)


@pytest.mark.parametrize("case", CASES)
def test_the_structure_is_found(case):
    """The structure, its diagonals, and the number of products that give its elements."""
    product, n = CASES[case]
    structure = found(product, n)
    assert structure.kind == case.split()[0]
    if structure.kind == "banded":
        assert [structure.below, structure.above] == [int(d) for d in case.split()[1:]]
    products = {"diagonal": 1, "banded": 3, "dense": n, "sparse": 5}[structure.kind]
    assert abs(structure.products - products) <= (2 if structure.kind == "sparse" else 0)


def by_structure(product):
    return lambda k, b: wg.custom_linear_solve(lambda x: product(k, x), b)


def by_matrix(product):
    def solve(k, b):
        return np.linalg.solve(wg.jacobian(lambda x: product(k, x))(b), b)

    return solve


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: wg.grad(lambda k, b: np.sum(f(k, b) ** 3), (0, 1)),
    "jvp": lambda f: lambda k, b: wg.jvp(f, (k, b), (b, k))[1],
    "second": lambda f: (
        lambda k, b: wg.hvp(lambda k, b: np.sum(f(k, b) ** 3), (k, b), (0.3 * b, k))
    ),
    "reverse twice": lambda f: wg.grad(
        lambda k, b: np.sum(wg.grad(lambda k: np.sum(f(k, b) ** 3))(k) ** 2), (0, 1)
    ),
}


def leaves(x):
    return [np.asarray(y) for y in (x if isinstance(x, tuple | list) else [x])]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(2 * max(len(CASES), len(TRANSFORMS)))
def test_equal_to_dense_systems(case, transform, compiled):
    """Values and derivatives of every structure are those of numpy.linalg.solve."""
    product, n = CASES[case]
    k, b = 1.0 + RNG.uniform(size=n), RNG.normal(size=n)
    f = TRANSFORMS[transform](by_structure(product))
    want = TRANSFORMS[transform](by_matrix(product))(k, b)
    for x, y in zip(leaves((wg.jit(f) if compiled else f)(k, b)), leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("case", ["diagonal", "banded 1 1", "banded 2 0"])
def test_batches_and_complex(case, compiled):
    """Batches of systems; complex matrices, whose adjoint is conjugated."""
    product, n = CASES[case]
    ks, b = 1.0 + RNG.uniform(size=(3, n)), RNG.normal(size=n)
    made = lambda form: wg.vmap(wg.grad(lambda k: np.sum(form(product)(k, b) ** 3)))  # noqa: E731
    f = wg.jit(made(by_structure)) if compiled else made(by_structure)
    np.testing.assert_allclose(f(ks), made(by_matrix)(ks), rtol=1e-9, atol=1e-12)
    c = b * (1.0 + 2.0j)

    def complex_solve(form):
        def loss(k, c):
            return np.sum(np.abs(form(lambda k, x: product(k, x) * (2.0 + 1.0j))(k, c)) ** 2)

        return wg.grad(loss, (0, 1))

    f = wg.jit(complex_solve(by_structure)) if compiled else complex_solve(by_structure)
    expected = complex_solve(
        lambda p: lambda k, c: np.linalg.solve(wg.jacfwd(lambda x: p(k, x))(np.ones(n)) + 0.0j, c)
    )
    for x, y in zip(f(ks[0], c), expected(ks[0], c), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_roots_by_structure():
    """A nonlinear tridiagonal system: Newton's steps and derivatives solve banded systems."""
    n = 40

    def residual(u, heat):
        inner = np.diff(u, prepend=0.0, append=0.0)
        return -np.diff(inner) + 0.1 * u**3 - heat

    def newton(f, u):
        def step(_, u):
            change = wg.custom_linear_solve(lambda v: wg.jvp(f, (u,), (v,))[1], f(u))
            return u - change

        return wg.fori_loop(0, 12, step, u)

    def solved(heat):
        return wg.custom_root(lambda u: residual(u, heat), np.zeros(n), newton, check=1e-10)

    heat = 0.01 * RNG.uniform(size=n)
    u = solved(heat)
    matrix = wg.jacobian(residual)(u, heat)
    for wrap in (lambda f: f, wg.jit):
        got = wrap(wg.grad(lambda h: np.sum(solved(h) ** 2)))(heat)
        np.testing.assert_allclose(got, np.linalg.solve(matrix.T, 2.0 * u), rtol=1e-9)
    report = str(wg.explain(wg.grad(lambda h: np.sum(solved(h))))(heat))
    assert "40 unknowns; the matrix is banded, 1 diagonals below and 1 above" in report


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_singular_structures(compiled):
    """Singular and nearly singular matrices raise when a derivative is taken."""
    wrap = wg.jit if compiled else lambda f: f
    n = 40
    b = RNG.normal(size=n)

    def neumann(k, x):
        """The difference operator with constants as its null vectors, plus k."""
        return -np.diff(np.diff(x), prepend=0.0, append=0.0) + k * x

    def gradient(product):
        return wrap(wg.grad(lambda k, b: np.sum(by_structure(product)(k, b)), (0, 1)))

    assert np.all(np.isfinite(wrap(by_structure(neumann))(1e-15, b)))
    with pytest.raises(SingularError, match="condition number"):
        gradient(neumann)(1e-15, b)
    gradient(neumann)(1e-8, b)
    with pytest.raises(SingularError, match="ingular"):
        gradient(elementwise)(np.array([1.0] * (n - 1) + [0.0]), b)
    scales, units = 10.0 ** np.linspace(-30, 30, n), 10.0 ** np.linspace(4, -4, n)

    def scaled(k, x):
        return scales * tridiagonal(k, x / units)

    want = wg.grad(lambda b: np.sum(by_structure(tridiagonal)(np.ones(n), b)))(b)
    got = wrap(wg.grad(lambda b: np.sum(by_structure(scaled)(np.ones(n), scales * b) / units)))(b)
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_not_a_number(compiled):
    """NaN in the matrix or the right-hand side gives NaN."""
    f = wg.grad(lambda k, b: np.sum(by_structure(tridiagonal)(k, b)), (0, 1))
    k, b = np.ones(40), np.ones(40)
    k[3] = np.nan
    for x in (wg.jit(f) if compiled else f)(k, b):
        assert np.isnan(x).any()


@pytest.mark.sample(4)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "cholesky", "lu"])
def test_methods_by_name(method, compiled):
    """SciPy's Krylov methods and Cholesky's factorization, in both modes and to order two."""
    root = RNG.normal(size=(9, 9))

    def product(k, x):
        return root @ (k * (root.T @ x)) + 9.0 * x

    def solve(k, b):
        return wg.custom_linear_solve(lambda x: product(k, x), b, method)

    k, b = 1.0 + RNG.uniform(size=9), RNG.normal(size=9)
    for transform in ("value", "grad", "jvp", "second"):
        f = TRANSFORMS[transform](solve)
        want = TRANSFORMS[transform](by_matrix(product))(k, b)
        for x, y in zip(leaves((wg.jit(f) if compiled else f)(k, b)), leaves(want), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_methods_by_name_are_checked(compiled):
    """A method that fails, or does not exist, is an error."""
    wrap = wg.jit if compiled else lambda f: f
    a = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 0.0]) + np.diag(np.zeros(5), 1)

    def solve(a, b, method):
        return wg.custom_linear_solve(lambda x: a @ x, b, method)

    for method in ("cg", "gmres", "bicgstab"):
        with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match=method):
            wrap(lambda a, b, m=method: solve(a, b, m))(a, np.ones(6))
    with pytest.raises(MatrixError, match="definite"):
        wrap(lambda a, b: solve(a, b, "cholesky"))(np.ones((6, 6)) - 2.0 * np.eye(6), np.ones(6))
    with pytest.raises(ArgumentError, match="'qr' is not the name of a method"):
        solve(a, np.ones(6), "qr")
    with pytest.raises(ArgumentError, match="tangent_solve"):
        wg.custom_root(lambda y: y, 1.0, lambda f, y: y, tangent_solve="qr")
    near = np.eye(6) - (1.0 - 1e-15) / 6.0
    with pytest.raises((SingularError, MatrixError)):
        wrap(wg.grad(lambda a: np.sum(solve(a, np.ones(6), "cholesky"))))(near)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_singular_sparse_matrices(compiled):
    """The Laplace operator without boundary conditions, which has constants as null vectors."""
    m = 18

    def neumann(k, x):
        u = np.pad(x.reshape(m, m), 1, mode="edge")
        inner = u[1:-1, 1:-1]
        flux = 4.0 * inner - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
        return flux.reshape(-1) + k * x

    b = RNG.normal(size=m * m)

    def gradient(k, b):
        return wg.grad(lambda k, b: np.sum(by_structure(neumann)(k, b)), (0, 1))(k, b)

    f = wg.jit(gradient) if compiled else gradient
    with pytest.raises(SingularError, match="ingular"):
        f(1e-17, b)
    np.testing.assert_allclose(f(1e-3, b)[1], 1e3, rtol=1e-9)
    assert np.isnan(f(np.nan, b)[1]).any()
