"""Linear algebra: values of NumPy, derivatives by finite differences, errors are LinAlgErrors.

Every entry of CASES runs on plain arrays, where NumPy answers, on tensors, and through check_grads,
in both modes and to second order.  Singular vectors and eigenvectors are free in sign or phase, so
complex entries are functions that do not depend on it.
"""

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core.op import lookup
from wengert._engine.kinds.opaque import Opaque
from wengert.errors import (
    ArgumentError,
    DerivativeError,
    DtypeError,
    MatrixError,
    OperandError,
    ShapeError,
    WengertError,
)
from wengert.testing import check_grads

la = np.linalg


def adjoint(x):
    return np.conjugate(x.mT)


def hermitian(x):
    return (x + adjoint(x)) / 2


def positive(x):
    return x @ adjoint(x) + np.eye(x.shape[-2])


def apart(x):
    """A Hermitian matrix with well separated eigenvalues."""
    return hermitian(x) + np.diag(np.arange(x.shape[-1]) * 3.0)


def spectral(a):
    w, v = la.eigh(apart(a))
    return v @ (np.exp(w / 5)[..., None] * adjoint(v)), w


def singular(a, full=False):
    u, s, vh = la.svd(a, full_matrices=full)
    k = s.shape[-1]
    u1, vh1 = u[..., :k], vh[..., :k, :]
    return u1 @ (np.exp(s)[..., None] * vh1), u1 @ adjoint(u1), adjoint(vh1) @ vh1, s


def completed(a):
    u, _, vh = la.svd(a)
    k = min(a.shape)
    return u[:, k:] @ adjoint(u[:, k:]), adjoint(vh[k:]) @ vh[k:]


def complete_qr(a):
    q, r = la.qr(a, "complete")
    rest = q[:, a.shape[1] :]
    return rest @ adjoint(rest), q @ r, adjoint(q) @ q


CASES = {
    "solve vector": (la.solve, (3, 3), (3,)),
    "solve": (la.solve, (2, 3, 3), (3, 2)),
    "solve batch vector": (la.solve, (2, 3, 3), (3,)),
    "inv": (la.inv, (2, 3, 3)),
    "det": (la.det, (2, 3, 3)),
    "slogdet": (lambda a: la.slogdet(a - 3 * np.eye(2)), (2, 2, 2)),
    "pinv tall": (la.pinv, (4, 2)),
    "pinv wide": (lambda a: la.pinv(a, rtol=None), (2, 2, 4)),
    "pinv rank": (lambda a, b: la.pinv(a @ b, 1e-10), (3, 2), (2, 3)),
    "lstsq": (lambda a, b: la.lstsq(a, b)[0], (5, 2), (5,)),
    "lstsq all": (lambda a, b: [la.lstsq(a, b)[i] for i in (0, 1, 3)], (5, 2), (5, 3)),
    "lstsq wide": (lambda a, b: la.lstsq(a, b)[0], (2, 4), (2,)),
    "tensorsolve": (la.tensorsolve, (2, 3, 6), (2, 3)),
    "tensorsolve axes": (lambda a, b: la.tensorsolve(a, b, axes=(0, 2)), (3, 6, 2), (6,)),
    "tensorinv": (lambda a: la.tensorinv(a, ind=1), (6, 3, 2)),
    "cholesky": (lambda a: la.cholesky(positive(a)), (2, 3, 3)),
    "cholesky upper": (lambda a: la.cholesky(hermitian(positive(a)), upper=True), (3, 3)),
    "qr": (lambda a: la.qr(a), (2, 4, 2)),
    "qr wide": (lambda a: la.qr(a), (2, 4)),
    "qr r": (lambda a: la.qr(a, "r"), (3, 3)),
    "qr complete": (complete_qr, (4, 2)),
    "eigh": (lambda a: la.eigh(apart(a)), (3, 3)),
    "eigvalsh": (lambda a: la.eigvalsh(apart(a), "U"), (2, 2, 2)),
    "svd": (la.svd, (3, 3)),
    "svd thin": (lambda a: la.svd(a, full_matrices=False), (4, 2)),
    "svd full": (lambda a: singular(a, True), (2, 4)),
    "svd completion": (completed, (4, 2)),
    "svdvals": (la.svdvals, (2, 2, 3)),
    "cond": (la.cond, (4, 2)),
    "cond -2": (lambda a: la.cond(a, -2), (3, 3)),
    "cond 1": (lambda a: la.cond(a, 1), (3, 3)),
    "power": (lambda a: la.matrix_power(a / 3, 5), (2, 2, 2)),
    "power of inverse": (lambda a: la.matrix_power(a, -3), (2, 2)),
    "multi_dot": (lambda *m: la.multi_dot(m), (2, 3), (3, 4), (4, 2)),
    "multi_dot vectors": (lambda *m: la.multi_dot(m), (3,), (3, 4), (4, 2), (2,)),
    "trace": (lambda a: la.trace(a, offset=1), (2, 3, 3)),
    "diagonal": (lambda a: la.diagonal(a, offset=-1), (2, 3, 4)),
    "matrix_transpose": (la.matrix_transpose, (2, 3, 4)),
}
COMPLEX = {
    **{k: CASES[k] for k in "solve inv det slogdet cholesky cond lstsq svdvals".split()},
    **{k: CASES[k] for k in ("pinv tall", "cholesky upper", "qr", "qr wide", "qr complete")},
    "eigh": (spectral, (3, 3)),
    "eigvalsh": (lambda a: la.eigvalsh(hermitian(a)), (3, 3)),
    "svd": (singular, (3, 3)),
    "svd tall": (singular, (3, 2)),
    "svd completion": (completed, (2, 3)),
}


def draw(rng, shapes, kind=float):
    arrays = []
    for s in shapes:
        x = rng.normal(size=s)
        if kind is complex:
            x = x + 1j * rng.normal(size=s)
        if len(s) > 1 and s[-1] == s[-2]:
            x = x + 3 * np.eye(s[-1])
        arrays.append(x)
    return arrays


def leaves(x):
    return list(x) if isinstance(x, tuple | list) else [x]


def same(f, arrays, rtol=1e-10):
    want, got = leaves(f(*arrays)), leaves(f(*[wg.tensor(a, requires_grad=True) for a in arrays]))
    for g, w in zip(got, want, strict=True):
        assert isinstance(g, wg.Tensor)
        assert g.shape == np.shape(w) and g.dtype == w.dtype
        np.testing.assert_allclose(g.numpy(), w, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives(name, rng):
    f, *shapes = CASES[name]
    arrays = draw(rng, shapes)
    same(f, arrays)
    check_grads(f, arrays, order=2)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices(name, rng):
    f, *shapes = COMPLEX[name]
    arrays = draw(rng, shapes, complex)
    same(f, arrays)
    check_grads(f, arrays, order=2)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays(name, rng):
    f, *shapes = CASES[name]
    arrays = [a.astype(np.float32) for a in draw(rng, shapes)]
    out, pull = wg.vjp(f, *arrays)
    dots = wg.jvp(f, tuple(arrays), tuple(arrays))[1]
    outs = [np.asarray(y) for y in leaves(out)]
    want = [np.asarray(y).dtype for y in leaves(f(*arrays))]
    assert [y.dtype for y in outs] == want
    assert [np.asarray(d).dtype for d in leaves(dots)] == want
    if all(d == np.float32 for d in want):
        ones = [np.ones_like(y) for y in outs]
        bars = pull(type(out)(ones) if type(out) in (list, tuple) else _like(out, ones))
        for bar, a in zip(bars if len(arrays) > 1 else [leaves(bars)[0]], arrays, strict=True):
            assert bar.dtype == np.float32 and bar.shape == a.shape


def _like(out, ones):
    return type(out)(*ones) if isinstance(out, tuple) else ones[0]


# ---- norms -------------------------------------------------------------------------------------

ORDERS = [None, 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("order", [*ORDERS, "fro", "nuc"])
def test_matrix_norms(order, rng):
    for kind in (float, complex):
        (x,) = draw(rng, [(2, 2, 3)], kind)
        for f in (
            lambda x: la.norm(x[0], order),
            lambda x: la.norm(x, order, axis=(0, 2), keepdims=True),
            lambda x: la.norm(x, order, axis=(2, 1)),
            lambda x: la.matrix_norm(x, ord=order or "fro"),
        ):
            same(f, [x])
            check_grads(f, [x], order=1)


@pytest.mark.parametrize("order", [*ORDERS, 0, 3, 1.5])
def test_vector_norms(order, rng):
    for kind in (float, complex):
        (x,) = draw(rng, [(2, 3)], kind)
        for f in (
            lambda x: la.norm(x[0], order),
            lambda x: la.norm(x, order, axis=-1, keepdims=True),
            lambda x: la.vector_norm(x, ord=2 if order is None else order, axis=(0, 1)),
        ):
            same(f, [x])
            check_grads(f, [x], order=1)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, np.inf])
def test_norm_of_zero_has_derivative_zero(order):
    np.testing.assert_array_equal(wg.grad(lambda x: la.norm(x, order))(np.zeros((3, 2))), 0)


def test_spectral_norm_shares_a_tie():
    np.testing.assert_allclose(wg.grad(lambda x: la.norm(x, 2))(np.eye(2)), np.eye(2) / 2)


# ---- determinants ------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinant_of_a_singular_matrix(rank, rng):
    for kind, order, n in ((float, 3, 3 + rank // 3), (complex, 2, 4)):
        left, right = draw(rng, [(n, rank), (rank, n)], kind)
        check_grads(la.det, [left @ right], order=order)


def test_determinants_of_a_batch_with_singular_ones(rng):
    a = np.stack([np.zeros((2, 2)), rng.normal(size=(2, 2)), np.ones((2, 2))])
    check_grads(la.det, [a], order=3)


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0])
def test_second_derivatives_near_singular_matrices(small, rng):
    """The reference are minors, none of which is small."""
    u, v = (la.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    a = u @ np.diag([1.0, 0.5, small]) @ v
    hessian = wg.hessian(la.det)(a)
    for i, j in np.ndindex(3, 3):
        minor = np.delete(np.delete(hessian[i, j], i, 0), j, 1)
        rest = np.delete(np.delete(a, i, 0), j, 1)
        sign = (-1.0) ** (i + j)
        adjugate = np.array([[rest[1, 1], -rest[1, 0]], [-rest[0, 1], rest[0, 0]]])
        np.testing.assert_allclose(minor, sign * adjugate, atol=1e-12)


def test_unused_logarithm_of_a_singular_determinant():
    a = np.stack([2 * np.eye(2), np.ones((2, 2))])
    keep = np.array([True, False])
    bar = wg.grad(lambda a: np.sum(np.where(keep, la.slogdet(a)[1], 0.0)))(a)
    np.testing.assert_allclose(bar, [np.eye(2) / 2, np.zeros((2, 2))])
    with pytest.raises(MatrixError):
        wg.grad(lambda a: np.sum(la.slogdet(a)[1]))(a)


def test_square_of_a_logarithm_that_is_zero():
    hessian = wg.hessian(lambda a: la.slogdet(a)[1] ** 2 / 2)(np.eye(2)).reshape(4, 4)
    np.testing.assert_allclose(hessian, np.outer([1, 0, 0, 1], [1, 0, 0, 1]))


# ---- spectra -----------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [[[1.0, 0.3], [0.1, 2.0]], [[1.0, 2.0], [-3.0, 0.5]]])
def test_eig_of_real_matrices(a):
    a = np.array(a)
    same(la.eig, [a])
    same(la.eigvals, [a])
    check_grads(la.eig, [a])


def test_eig_of_complex_matrices(rng):
    (a,) = draw(rng, [(2, 3, 3)], complex)
    a = a + np.diag([0, 3, 6j])
    same(la.eigvals, [a])
    check_grads(lambda a: la.eigvals(a), [a])
    check_grads(lambda a: la.eig(a), [a], order=1)


def test_equal_eigenvalues():
    eye = np.eye(3)
    np.testing.assert_allclose(wg.grad(lambda a: np.sum(la.eigvalsh(a) ** 3))(eye), 3 * eye)

    def chosen(a):
        return np.sum(la.eigh(a)[1] * np.arange(9.0).reshape(3, 3))

    with pytest.raises(DerivativeError, match="depends on their basis"):
        wg.grad(chosen)(eye)
    assert np.isnan(wg.jit(wg.grad(chosen))(eye)).all(), "no derivative, and not a silent zero"


def test_cholesky_gradient_is_symmetric(rng):
    a = positive(rng.normal(size=(3, 3)))
    t = rng.normal(size=(3, 3))
    for f in (la.cholesky, lambda a: la.eigh(a)[1]):
        bar = wg.grad(lambda a, f=f: np.sum(f(a) * t))(a)
        np.testing.assert_allclose(bar, bar.T, atol=1e-14)


# ---- operations without a NumPy name -----------------------------------------------------------


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular(trans, lower, unit, rng):
    op = lookup("solve_triangular")
    options = {"lower": lower, "trans": trans, "unit_diagonal": unit}
    for kind in (float, complex):
        a, b = draw(rng, [(3, 3), (3, 2)], kind)
        want = scipy.linalg.solve_triangular(a, b, **options)
        for form in (np.ascontiguousarray, np.asfortranarray):
            np.testing.assert_allclose(op(form(a), b, **options), want, rtol=1e-12)
        check_grads(lambda a, b: op(a, b, **options), [a, b], order=2 if kind is float else 1)
    with pytest.raises(MatrixError, match="Singular"):
        op(np.zeros((2, 2)), np.ones(2))


def test_expm(rng):
    (a,) = draw(rng, [(3, 3)])
    same(lambda a: lookup("expm")(a) if isinstance(a, wg.Tensor) else scipy.linalg.expm(a), [a])
    check_grads(lookup("expm"), [a], order=1)


def test_missing_mode_is_derived_for_several_outputs(rng):
    """The engine derives the missing rule, to second order."""
    eigh = lookup("eigh")
    forward = Opaque(eigh.run, name="eigh forward", jvp=eigh.jvp_rule, trusted=True)
    backward = Opaque(eigh.run, name="eigh backward", vjp=eigh.vjp_rule, trusted=True)
    a = rng.normal(size=(3, 3))
    for op in (forward, backward):
        check_grads(lambda a, op=op: op(apart(a)), [a], order=2)


# ---- empty matrices ----------------------------------------------------------------------------

EMPTY = {
    "inv": (la.inv, (0, 0)),
    "inv batch": (la.inv, (0, 2, 2)),
    "det": (la.det, (0, 0)),
    "det batch": (la.det, (0, 2, 2)),
    "slogdet": (la.slogdet, (2, 0, 0)),
    "cholesky": (la.cholesky, (0, 0)),
    "cholesky batch": (la.cholesky, (0, 2, 2)),
    "eigh": (la.eigh, (0, 0)),
    "eig": (la.eig, (0, 0)),
    "qr": (la.qr, (3, 0)),
    "qr batch": (la.qr, (0, 2, 2)),
    "svd": (lambda a: la.svd(a, full_matrices=False), (3, 0)),
    "svd batch": (la.svd, (0, 3, 2)),
    "pinv": (la.pinv, (3, 0)),
    "power": (lambda a: la.matrix_power(a, 3), (0, 0)),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", EMPTY)
def test_empty_matrices(name):
    f, shape = EMPTY[name]
    same(f, [np.zeros(shape)])
    check_grads(f, [np.zeros(shape)], order=1)


# ---- refusals ----------------------------------------------------------------------------------

ONES = np.ones((2, 2))
REFUSED = {
    "indefinite": (MatrixError, lambda x: la.cholesky(-x)),
    "singular": (MatrixError, lambda x: la.solve(x, np.ones(2))),
    "inverse": (MatrixError, la.inv),
    "not square": (MatrixError, lambda x: la.inv(x[:1])),
    "one axis": (MatrixError, lambda x: la.det(x[0])),
    "infinite": (MatrixError, lambda x: la.eig(x * np.inf)),
    "right side": (ShapeError, lambda x: la.solve(x + np.eye(2), np.ones(3))),
    "half": (DtypeError, lambda x: la.inv(x.astype(np.float16))),
    "norm name": (ArgumentError, lambda x: la.norm(x, "big")),
    "norm of vector": (ArgumentError, lambda x: la.norm(x[0], "nuc")),
    "norm order": (ArgumentError, lambda x: la.norm(x, 3)),
    "norm axes": (ShapeError, lambda x: la.norm(x[None], 2)),
    "norm axis twice": (ShapeError, lambda x: la.norm(x, 1, axis=(0, -2))),
    "mode": (ArgumentError, lambda x: la.qr(x, "raw")),
    "side": (ArgumentError, lambda x: la.eigh(x, "M")),
    "power": (DtypeError, lambda x: la.matrix_power(x, 0.5)),
    "power shape": (MatrixError, lambda x: la.matrix_power(x[:1], 2)),
    "one factor": (ArgumentError, lambda x: la.multi_dot([x])),
    "three axes": (MatrixError, lambda x: la.multi_dot([x, x[None]])),
    "factors": (ShapeError, lambda x: la.multi_dot([x, np.ones((3, 2))])),
    "lstsq": (MatrixError, lambda x: la.lstsq(x, np.ones(3))),
    "tensorsolve": (MatrixError, lambda x: la.tensorsolve(x[:1], np.ones(1))),
    "tensorinv": (ShapeError, lambda x: la.tensorinv(x, 0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_error(name):
    cls, f = REFUSED[name]
    with np.errstate(all="ignore"), pytest.raises(cls, match=r"test_linalg\.py") as caught:
        f(wg.tensor(ONES, requires_grad=True))
    assert isinstance(caught.value, WengertError)
    if cls is MatrixError:
        assert isinstance(caught.value, la.LinAlgError) and isinstance(caught.value, OperandError)


def test_errors_do_not_change_state():
    x = wg.tensor(4 * np.eye(2), requires_grad=True)
    for _ in range(2):
        with pytest.raises(la.LinAlgError):
            wg.grad(lambda a: np.sum(la.cholesky(-a)))(x)
    la.cholesky(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((2, 2), 0.25))


def test_plain_arrays_give_the_results_of_numpy():
    assert type(wnp.linalg.det(np.eye(2))) is np.float64
    with pytest.raises(la.LinAlgError) as caught:
        wnp.linalg.inv(ONES)
    assert type(caught.value) is la.LinAlgError
    missing = set(la.__all__) - set(wnp.linalg.__all__)
    assert not missing


def test_rank_is_an_integer(rng):
    x = wg.tensor(rng.normal(size=(2, 3, 2)) @ rng.normal(size=(2, 3)), requires_grad=True)
    rank = la.matrix_rank(x)
    np.testing.assert_array_equal(rank.numpy(), [2, 2])
    assert not rank.requires_grad


def test_other_operands(rng):
    whole = np.array([[2, 1], [1, 3]])
    for a in (whole, whole.tolist()):
        bar = wg.grad(lambda b, a=a: la.solve(a, b).sum())(np.ones(2))
        np.testing.assert_allclose(bar, [0.4, 0.2])
    np.testing.assert_allclose(la.inv(wg.tensor(whole)).numpy(), la.inv(whole))
    (b,) = draw(rng, [(2, 2)], complex)
    check_grads(lambda a: la.solve(a, b), [whole * 1.0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
def test_the_gradient_of_the_norm_of_a_large_vector(dtype, scale):
    """It is x / norm(x) to the last digits, also times cotangents that are very small or large."""
    x = (np.random.default_rng(8).normal(size=20000) * scale).astype(dtype)
    unit = x.astype("f8") / np.linalg.norm(x.astype("f8"))
    for factor in (1.0, 1e-25, 1e25):
        factor = np.dtype(dtype).type(factor)
        _, pull = wg.vjp(np.linalg.norm, x)
        np.testing.assert_allclose(pull(factor)[0], factor * unit, rtol=50 * np.finfo(dtype).eps)
    assert float(wg.vjp(np.linalg.norm, x)[0]) == float(np.linalg.norm(x))
    np.testing.assert_array_equal(wg.grad(np.linalg.norm)(np.zeros(20000)), 0.0)
    rows = x.reshape(200, 100)
    got = wg.grad(lambda x: np.sum(np.linalg.norm(x, axis=1)))(rows)
    wanted = rows / np.linalg.norm(rows.astype("f8"), axis=1, keepdims=True)
    np.testing.assert_allclose(got, wanted, rtol=50 * np.finfo(dtype).eps)
