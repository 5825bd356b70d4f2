"""scipy.linalg: values against SciPy, derivatives against differences.

Every entry of CASES runs on plain arrays, where SciPy answers, on tensors, in a graph, and through
check_grads in both modes, to second order.  Factors that are free in sign or phase are tested by
functions that do not depend on it.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.testing import check_grads

la = wg.scipy.linalg


def adjoint(x):
    return np.conjugate(x.mT)


def hermitian(x):
    return (x + adjoint(x)) / 2


def definite(x):
    return x @ adjoint(x) + np.eye(x.shape[-1])


def apart(x):
    return 0.3 * x + np.diag(np.arange(1.0, x.shape[-1] + 1) * 3)


def symmetric(x):
    return (x + x.mT) / 2


def projector(basis):
    return basis @ adjoint(basis)


def band(ab):
    return 0.3 * ab + np.array([[0.0], [4.0], [0.0]])


def half_band(ab):
    return 0.3 * ab + np.array([[4.0], [0.0]])


def toeplitz_column(c):
    return 0.3 * c + np.eye(c.shape[0])[0] * 4


def complex_schur(a):
    t, z = la.schur(a, "complex")
    return np.diagonal(t), z[:, :1] @ adjoint(z[:, :1]), z[:, :2] @ adjoint(z[:, :2])


def generalized(a, b, kind):
    w, v = la.eigh(apart(hermitian(a)), definite(b) / 9 + np.eye(3), type=kind)
    return w, projector(v[:, :1])


def ldl_of(a, **kw):
    low, d, _ = la.ldl(a, **kw)
    return low, d


def lu_of(a, **kw):
    return la.lu(a, **kw)[1:]


def ordered(w):
    """Eigenvalues of two matrices: their order is that of the LAPACK function, which differs."""
    return w[np.argsort(wg.stop_gradient(w).real)]


CASES = {
    "sylvester": (la.solve_sylvester, (3, 3), (2, 2), (3, 2)),
    "lyapunov": (la.solve_continuous_lyapunov, (3, 3), (3, 3)),
    "discrete lyapunov": (lambda a, q: la.solve_discrete_lyapunov(a / 9, q), (3, 3), (3, 3)),
    "riccati": (
        lambda a, b, q, r: la.solve_continuous_are(a, b, definite(q), definite(r)),
        *((2, 2), (2, 1), (2, 2), (1, 1)),
    ),
    "discrete riccati": (
        lambda a, b, q, r, s: la.solve_discrete_are(a / 5, b, definite(q), definite(r), s=s / 9),
        *((2, 2), (2, 1), (2, 2), (1, 1), (2, 1)),
    ),
    "expm": (lambda a: la.expm(a / 3), (3, 3)),
    "expm_frechet": (lambda a, e: la.expm_frechet(a / 3, e), (2, 2), (2, 2)),
    "logm": (la.logm, (3, 3)),
    "sqrtm": (la.sqrtm, (3, 3)),
    "signm": (lambda a: la.signm(a - np.diag([0.0, 9.0, 0.0])), (3, 3)),
    "power": (lambda a, t: la.fractional_matrix_power(a, np.sum(t) ** 2 + 0.1), (2, 2), (1,)),
    "cosm": (lambda a: la.cosm(a / 3), (2, 2)),
    "sinm": (lambda a: la.sinm(a / 3), (2, 2)),
    "tanm": (lambda a: la.tanm(a / 9), (2, 2)),
    "coshm": (lambda a: la.coshm(a / 3), (2, 2)),
    "sinhm": (lambda a: la.sinhm(a / 3), (2, 2)),
    "tanhm": (lambda a: la.tanhm(a / 9), (2, 2)),
    "lu": (la.lu, (3, 3)),
    "lu tall": (la.lu, (4, 2)),
    "lu wide": (lambda a: la.lu(a, permute_l=True), (2, 4)),
    "lu indices": (lambda a: la.lu(a, p_indices=True), (3, 3)),
    "lu_solve": (lambda a, b: la.lu_solve(la.lu_factor(a), b), (3, 3), (3,)),
    "lu_solve transposed": (lambda a, b: la.lu_solve(la.lu_factor(a), b, 1), (3, 3), (3, 2)),
    "lu_solve adjoint": (lambda a, b: la.lu_solve(la.lu_factor(a), b, 2), (3, 3), (3, 2)),
    "ldl": (lambda a: ldl_of(hermitian(a)), (4, 4)),
    "ldl upper": (lambda a: ldl_of(hermitian(a) - 3 * np.eye(3), lower=False), (3, 3)),
    "ldl symmetric": (lambda a: ldl_of(symmetric(a), hermitian=False), (3, 3)),
    "cho": (lambda a, b: la.cho_solve(la.cho_factor(definite(a)), b), (3, 3), (3,)),
    "cho lower": (lambda a, b: la.cho_solve(la.cho_factor(definite(a), True), b), (3, 3), (3, 2)),
    "cholesky": (lambda a: la.cholesky(definite(a)), (3, 3)),
    "solve": (la.solve, (3, 3), (3,)),
    "solve transposed": (lambda a, b: la.solve(a, b, transposed=True), (3, 3), (3, 2)),
    "solve pos": (lambda a, b: la.solve(definite(a), b, assume_a="pos"), (3, 3), (3,)),
    "solve her": (lambda a, b: la.solve(hermitian(a), b, assume_a="her"), (3, 3), (3, 2)),
    "solve sym": (lambda a, b: la.solve(symmetric(a), b, assume_a="sym"), (3, 3), (3, 2)),
    "solve diagonal": (lambda a, b: la.solve(a, b, assume_a="diagonal"), (3, 3), (3, 2)),
    "solve three": (lambda a, b: la.solve(a, b, assume_a="tridiagonal"), (4, 4), (4, 2)),
    "solve upper": (
        lambda a, b: la.solve(a, b, assume_a="upper triangular", transposed=True),
        *((3, 3), (3,)),
    ),
    "triangular": (lambda a, b: la.solve_triangular(a, b, "C", lower=True), (3, 3), (3, 2)),
    "inv": (la.inv, (3, 3)),
    "det": (la.det, (3, 3)),
    "lstsq": (lambda a, b: la.lstsq(a, b)[0], (4, 2), (4,)),
    "pinv": (la.pinv, (4, 2)),
    "pinvh": (lambda a: la.pinvh(hermitian(a)), (3, 3)),
    "banded": (lambda ab, b: la.solve_banded((1, 1), band(ab), b), (3, 4), (4,)),
    "half band": (lambda ab, b: la.solveh_banded(half_band(ab), b, lower=True), (2, 4), (4, 2)),
    "upper half": (lambda ab, b: la.solveh_banded(half_band(ab)[::-1], b), (2, 4), (4, 2)),
    "cholesky banded": (
        lambda ab, b: la.cho_solve_banded((la.cholesky_banded(half_band(ab)[::-1]), False), b),
        *((2, 4), (4, 2)),
    ),
    "cholesky banded lower": (
        lambda ab, b: la.cho_solve_banded((la.cholesky_banded(half_band(ab), lower=True), True), b),
        *((2, 4), (4,)),
    ),
    "toeplitz": (la.toeplitz, (3,), (4,)),
    "toeplitz symmetric": (la.toeplitz, (3,)),
    "solve toeplitz": (
        lambda c, r, b: la.solve_toeplitz((toeplitz_column(c), r / 3), b),
        *((4,), (4,), (4, 2)),
    ),
    "solve symmetric toeplitz": (
        lambda c, b: la.solve_toeplitz(np.real(toeplitz_column(c)), b), (4,), (4,)
    ),
    "matmul toeplitz": (lambda c, r, x: la.matmul_toeplitz((c, r), x), (4,), (3,), (3, 2)),
    "solve circulant": (lambda c, b: la.solve_circulant(toeplitz_column(c), b), (4,), (4,)),
    "hankel": (la.hankel, (3,), (2,)),
    "circulant": (la.circulant, (4,)),
    "companion": (la.companion, (4,)),
    "convolution": (lambda a: la.convolution_matrix(a, 3, "same"), (4,)),
    "convolution valid": (lambda a: la.convolution_matrix(a, 4, "valid"), (2,)),
    "block_diag": (lambda a, b, c: la.block_diag(a, b, c), (2, 1), (3,), (2, 2)),
    "khatri_rao": (la.khatri_rao, (2, 3), (4, 3)),
    "polar": (la.polar, (3, 3)),
    "polar wide": (lambda a: la.polar(a, "left"), (2, 3)),
    "procrustes": (la.orthogonal_procrustes, (4, 2), (4, 2)),
    "orth": (lambda a: projector(la.orth(a)), (4, 2)),
    "orth rank": (lambda a, b: projector(la.orth(a @ b)), (4, 2), (2, 3)),
    "null_space": (lambda a: projector(la.null_space(a)), (2, 4)),
    "null_space rank": (lambda a, b: projector(la.null_space(a @ b)), (4, 2), (2, 4)),
    "qr": (lambda a: la.qr(a, mode="economic"), (4, 2)),
    "qr full": (lambda a: [projector(la.qr(a)[0][:, 2:]), la.qr(a)[1]], (4, 2)),
    "qr pivoting": (lambda a: la.qr(a, mode="economic", pivoting=True), (3, 3)),
    "svdvals": (la.svdvals, (3, 2)),
    "eigvals": (lambda a: la.eigvals(apart(a)), (3, 3)),
    "eigvals of two": (lambda a, b: ordered(la.eigvals(apart(a), definite(b))), (3, 3), (3, 3)),
    "eig left": (lambda a: la.eig(apart(a), left=True), (3, 3)),
    "eigh": (lambda a: la.eigh(apart(hermitian(a)))[0], (3, 3)),
    "eigh subset": (
        lambda a: la.eigh(apart(hermitian(a)), subset_by_index=(1, 2), eigvals_only=True), (3, 3)
    ),
    **{
        f"eigh type {k}": (
            lambda a, b, k=k: generalized(a, b, k),
            *((3, 3), (3, 3)),
        )
        for k in (1, 2, 3)
    },
    "tridiagonal": (lambda d, e: la.eigvalsh_tridiagonal(np.real(d) + np.arange(4) * 3, np.real(e)),
                    (4,), (3,)),
    "eig_banded": (lambda ab: la.eigvals_banded(half_band(ab), lower=True), (2, 4)),
    "schur": (lambda a: la.schur(apart(a)), (3, 3)),
    "schur complex": (complex_schur, (3, 3)),
    "hessenberg": (lambda a: la.hessenberg(a, calc_q=True), (4, 4)),
}  # fmt: skip
REAL = {"expm_frechet", "power", "qr full", "eig left", "schur", "svdvals"} | {
    "solve transposed",  # complex ones are not among SciPy's
    "solve upper",
}
COMPLEX = set(CASES) - REAL


def draw(rng, shapes, kind=float):
    arrays = []
    for shape in shapes:
        x = rng.normal(size=shape)
        if kind is complex:
            x = x + 1j * rng.normal(size=shape)
        if len(shape) > 1 and shape[-1] == shape[-2]:
            x = x + 3 * np.eye(shape[-1])
        arrays.append(x)
    return arrays


def leaves(x):
    return list(x) if isinstance(x, tuple | list) else [x]


def floating(f):
    """The function without its integer results, which are not differentiable."""

    def g(*xs):
        found = [y for y in leaves(f(*xs)) if np.asarray(wg.stop_gradient(y)).dtype.kind in "fc"]
        return tuple(found)

    return g


def check(name, rng, kind):
    f, *shapes = CASES[name]
    arrays = draw(rng, shapes, kind)
    want = leaves(f(*arrays))
    got = leaves(f(*[wg.tensor(a, requires_grad=True) for a in arrays]))
    for g, w in zip(got, want, strict=True):
        assert g.shape == np.shape(w)
        g = g.numpy() if isinstance(g, wg.Tensor) else g
        assert g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)
    return f, arrays


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives(name, rng):
    f, arrays = check(name, rng, float)
    check_grads(floating(f), arrays, order=1, entries=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name, rng):
    f, arrays = check(name, rng, float)
    check_grads(floating(f), arrays, order=2, entries=False)


@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_complex(name, rng):
    f, arrays = check(name, rng, complex)
    check_grads(floating(f), arrays, order=1, entries=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_second_derivatives_of_complex_matrices(name, rng):
    f, arrays = check(name, rng, complex)
    check_grads(floating(f), arrays, order=2, entries=False)


def test_logarithms_have_a_derivative_on_the_branch_cut(rng):
    """Where an eigenvalue is negative, it is that of the logarithm of the matrix turned off it."""
    v, t, dot = draw(rng, [(3, 3)] * 3, complex)
    a = v @ np.diag([-2.0, 1.0 + 1.0j, 3.0]) @ np.linalg.inv(v)
    turned = lambda a: la.logm(a * np.exp(-0.3j))  # noqa: E731
    for derivative in (lambda f: wg.vjp(f, a)[1](t)[0], lambda f: wg.jvp(f, (a,), (dot,))[1]):
        np.testing.assert_allclose(derivative(la.logm), derivative(turned), rtol=1e-9, atol=1e-11)
