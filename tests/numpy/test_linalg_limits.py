"""Equal eigenvalues and singular values, dependent columns, singular and defective matrices.

A function that does not depend on how eigenvectors of equal values are chosen is differentiable
where the values are equal; the reference is the function itself, by Richardson's differences across
the point.  A function without a derivative is refused, or NaN in a graph, and never a number.
"""

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from wengert.errors import DerivativeError, MatrixError

la = np.linalg
W = np.array([[0.3, -1.2, 0.5], [0.7, 0.2, 1.1], [-0.4, 0.9, -0.6]])
WS = W + W.T
Q = la.qr(np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0], [2.0, 0.1, 0.4]]))[0]
SOME = W + 2 * np.eye(3)


def of_eigh(g):
    def f(a):
        w, v = la.eigh(a)
        return np.sum(WS * ((v * g(w)) @ v.T))

    return f


def projector(a):
    v = la.eigh(a).eigenvectors[:, :2]
    return np.sum(WS * (v @ v.T))


def of_eig(a):
    w, v = la.eig(a)
    return np.sum(W * ((v * np.exp(w)) @ la.inv(v))).real


def of_svd(g):
    def f(a):
        u, s, vh = la.svd(a, full_matrices=False)
        return np.sum(W[: len(a), : a.shape[1]] * ((u * g(s)) @ vh))

    return f


def nuclear(a):
    return la.norm(a, "nuc")


TWO, ALL = np.diag([1.0, 1.0, 2.0]), np.eye(3)
TURNED = (Q * [1.0, 1.0, 2.0]) @ Q.T
TURNED = (TURNED + TURNED.T) / 2
CASES = {
    "exponential": (of_eigh(np.exp), TWO, True),
    "exponential, turned": (of_eigh(np.exp), TURNED, True),
    "logarithm of 1": (of_eigh(np.log), ALL, True),
    "square": (of_eigh(np.square), ALL, True),
    "projector": (projector, TURNED, True),
    "sum of logarithms": (lambda a: np.sum(np.log(la.eigvalsh(a))), TURNED, True),
    "eig": (of_eig, SOME @ TWO @ la.inv(SOME), False),
    "eigvals": (lambda a: np.sum(la.eigvals(a) ** 3).real, TWO, False),
    "svd": (of_svd(np.sin), TURNED, False),
    "svd again": (of_svd(lambda s: s), ALL, False),
    "svd, tall": (of_svd(np.sin), np.eye(3, 2), False),
    "svd, wide": (of_svd(np.sin), np.eye(2, 3), False),
    "svd, unitary": (of_svd(np.ones_like), ALL, False),
    "svd, zeros": (of_svd(np.sin), np.diag([2.0, 0.0, 0.0]), False),
    "svd, tall with zeros": (of_svd(np.sin), np.diag([2.0, 0.0, 0.0])[:, :2], False),
    "svd of zero": (of_svd(np.sin), np.zeros((3, 3)), False),
    "nuclear": (nuclear, ALL, False),
    "nuclear, wide": (nuclear, np.eye(2, 3), False),
}


def slope(f, x, v, h=1e-4):
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)


def bend(f, x, v, h=4e-3):
    near, far = f(x + h * v) + f(x - h * v), f(x + 2 * h * v) + f(x - 2 * h * v)
    return (16 * near - far - 30 * f(x)) / (12 * h * h)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_functions_that_do_not_depend_on_the_choice(name, rng):
    f, x, symmetric = CASES[name]
    v = rng.normal(size=x.shape)
    v = v + v.T if symmetric else v
    first, second = slope(f, x, v), bend(f, x, v)
    gradient = wg.grad(f)
    close = {"rel": 1e-9, "abs": 1e-9}
    assert np.sum(gradient(x) * v) == pytest.approx(first, **close)
    assert wg.jvp(f, (x,), (v,))[1] == pytest.approx(first, **close)
    close = {"rel": 1e-6, "abs": 1e-6}
    assert np.sum(wg.jvp(gradient, (x,), (v,))[1] * v) == pytest.approx(second, **close)
    assert np.sum(wg.grad(lambda y: np.sum(gradient(y) * v))(x) * v) == pytest.approx(
        second, **close
    )
    forward = wg.jvp(lambda y: wg.jvp(f, (y,), (v,))[1], (x,), (v,))[1]
    assert forward == pytest.approx(second, **close)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-4])
def test_values_that_are_nearly_equal(gap):
    """Against the exact derivative: divided differences, by expm1."""
    x = np.diag([1.0, 1.0 + gap, 2.0])
    w = np.diagonal(x)
    d = w[:, None] - w
    exact = np.exp(w) * np.where(d == 0, 1.0, np.expm1(d) / np.where(d == 0, 1.0, d))
    got = wg.grad(of_eigh(np.exp))(x)
    np.testing.assert_allclose(got, WS * exact, rtol=2e-7 if gap else 1e-12)


def test_complex_matrices_with_equal_values(rng):
    t = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    q = la.qr(t)[0]
    a = (q * [1.0, 1.0, 2.0]) @ q.conj().T
    a = (a + a.conj().T) / 2
    v = t + t.conj().T

    def f(a):
        w, u = la.eigh(a)
        return (u * np.exp(w)) @ np.conj(u).T

    want = scipy.linalg.expm_frechet(a, v, compute_expm=False)
    np.testing.assert_allclose(wg.jvp(f, (a,), (v,))[1], want, atol=1e-10)
    np.testing.assert_allclose(wg.vjp(f, a)[1](v)[0], want, atol=1e-10)

    def g(a):
        u, s, vh = la.svd(a)
        return (u * s) @ vh

    np.testing.assert_allclose(wg.jvp(g, (a,), (t,))[1], t, atol=1e-9)
    np.testing.assert_allclose(wg.vjp(g, a)[1](t)[0], t, atol=1e-9)


def test_batches_in_which_some_are_equal(rng):
    a = np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), TURNED])

    def f(a):
        w, v = la.eigh(a)
        return np.sum((v * np.exp(w)[..., None, :]) @ v.mT * WS)

    want = [wg.grad(f)(x) for x in a]
    np.testing.assert_allclose(wg.grad(f)(a), want, atol=1e-12)


def test_single_precision():
    x = TURNED.astype(np.float32)
    got = wg.grad(lambda a: of_eigh(np.exp)(a))(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wg.grad(of_eigh(np.exp))(TURNED), atol=1e-5)


NONE = {
    "eigh": (lambda a: la.eigh(a)[1][0, 1], np.eye(3)),
    "eigh, turned": (lambda a: np.sum(la.eigh(a)[1][:, 0] * W[0]), TURNED),
    "svd": (lambda a: la.svd(a)[0][0, 1], np.eye(3)),
    "svd, zeros": (lambda a: np.sum(la.svd(a)[0] * W), np.diag([2.0, 0.0, 0.0])),
    "eig": (lambda a: np.sum(la.eig(a)[1] * W).real, np.eye(3)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NONE)
def test_functions_that_depend_on_the_choice(name, rng):
    f, x = NONE[name]
    for run in (wg.grad(f), lambda x: wg.jvp(f, (x,), (rng.normal(size=(3, 3)),))):
        with pytest.raises(DerivativeError, match="depends on their basis"):
            run(x)
    assert np.isnan(wg.jit(wg.grad(f))(x)).any()


def test_third_derivatives_are_an_error(rng):
    v = rng.normal(size=(3, 3))
    v = v + v.T

    def along(f):
        return lambda x: wg.jvp(f, (x,), (v,))[1]

    with pytest.raises(DerivativeError, match="third"):
        along(along(along(of_eigh(np.exp))))(np.eye(3))
    with pytest.raises(DerivativeError, match="third"):
        wg.grad(along(along(of_eigh(np.exp))))(np.eye(3))


def test_defective_matrices_have_no_derivative_of_eigenvalues():
    jordan = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    for f in (lambda a: np.sum(la.eigvals(a) ** 2).real, of_eig):
        with pytest.raises(MatrixError, match="defective"):
            wg.grad(f)(jordan)
        with pytest.raises(MatrixError, match="defective"):
            wg.jvp(f, (jordan,), (W,))
        assert np.isnan(wg.jit(wg.grad(f))(jordan)).any()


@pytest.mark.parametrize("shape", [(3, 3), (4, 3)])
def test_qr_of_dependent_columns(shape):
    a = np.outer(np.arange(1.0, shape[0] + 1), [1.0, 2.0, -1.0])
    for f in (lambda a: np.sum(la.qr(a)[1]), lambda a: np.sum(la.qr(a)[0])):
        with pytest.raises(MatrixError, match="dependent"):
            wg.grad(f)(a)
        with pytest.raises(MatrixError, match="dependent"):
            wg.jvp(f, (a,), (np.ones(shape),))
        assert np.isnan(wg.jit(wg.grad(f))(a)).any()


def test_slogdet_of_a_singular_matrix():
    with pytest.raises(MatrixError, match="Use det"):
        wg.grad(lambda a: la.slogdet(a)[1])(np.ones((2, 2)))
    with pytest.raises(MatrixError, match="Use det"):
        wg.jvp(lambda a: la.slogdet(a)[1], (np.ones((2, 2)),), (np.eye(2),))


def test_pinv_and_lstsq_keep_the_rank(rng):
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    moves = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    b = rng.normal(size=4)

    def f(p, q):
        return la.pinv(p @ q) @ b, la.lstsq(p @ q, b)[0]

    def along(h):
        return f(left + h * moves[0], right + h * moves[1])[0]

    h = 1e-5
    want = (along(h) - along(-h)) / (2 * h)
    for got in wg.jvp(f, (left, right), moves)[1]:
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)


def test_nuclear_norm_of_a_matrix_without_full_rank():
    a = np.diag([2.0, 0.0])
    np.testing.assert_array_equal(wg.grad(nuclear)(a), [[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(MatrixError, match="rank-deficient"):
        wg.hessian(nuclear)(a)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2)])
def test_matrices_without_elements(shape):
    a = np.zeros(shape)
    square = shape[-1] == shape[-2]
    functions = [lambda a: np.sum(la.svd(a, full_matrices=False)[0]), lambda a: np.sum(la.pinv(a))]
    functions += [lambda a: np.sum(la.qr(a)[1])] if 0 not in shape[:1] or square else []
    if square:
        functions += [
            lambda a: np.sum(la.eigh(a)[1]),
            lambda a: np.sum(la.eigvals(a)).real,
            lambda a: np.sum(la.inv(a)),
            lambda a: np.sum(la.det(a)),
            lambda a: np.sum(la.slogdet(a)[1]),
            lambda a: np.sum(la.cholesky(a)),
            lambda a: np.sum(la.solve(a, np.ones((shape[-1], 2)))),
        ]
    if shape == (0, 2, 2):
        functions.append(lambda a: np.sum(la.norm(a, "nuc", axis=(1, 2))))
    for f in functions:
        assert wg.grad(f)(a).shape == shape
        assert wg.jvp(f, (a,), (a,))[1] == 0
