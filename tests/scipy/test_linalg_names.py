"""Other functions of scipy.linalg: values against SciPy, derivatives to second order.

Each case is a function of real matrices, run on plain arrays, where SciPy answers, on tensors, and
through check_grads.  What is free in sign or phase is tested by functions that do not depend on it.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import MatrixError
from wengert.testing import check_grads

la = wg.scipy.linalg


def _with_complex_pair(a):
    """A real matrix with two conjugate eigenvalues, at a distance of 1.5 from a real one."""
    return 0.2 * a + np.array([[1.0, 2.0, 0.3], [-0.5, 1.4, 0.2], [0.1, -0.3, -2.0]])


def _pair(w):
    return la.cdf2rdf(w * np.array([1.0 + 1j, 1.0 - 1j]), np.array([[1.0, 2j], [3.0 + 1j, 1.0]]))


CASES = {
    "schur with a block": (lambda a: la.schur(_with_complex_pair(a)), (3, 3)),
    "rq": (la.rq, (3, 3)),
    "rq of a wide matrix": (lambda a: la.rq(a, mode="economic"), (2, 3)),
    "rq of a tall matrix": (lambda a: la.rq(a, mode="r"), (3, 2)),
    "qr_multiply": (lambda a, c: la.qr_multiply(a, c, "left")[0], (3, 2), (2, 2)),
    "funm": (lambda a: la.funm(_with_complex_pair(a), np.exp), (3, 3)),
    "expm_cond": (lambda a: la.expm_cond(a), (2, 2)),
    "matrix_balance": (
        lambda a: la.matrix_balance(a * np.array([1.0, 1e3, 1e-2]))[0],
        (3, 3),
    ),
    "subspace_angles": (la.subspace_angles, (4, 2), (4, 1)),
    "rsf2csf": (lambda a: la.rsf2csf(*la.schur(_with_complex_pair(a)[:2, :2])), (3, 3)),
    "cdf2rdf": (_pair, (2,)),
    "fiedler": (la.fiedler, (3,)),
    "fiedler_companion": (lambda a: la.fiedler_companion(a + 3.0), (5,)),
    "leslie": (la.leslie, (3,), (2,)),
    "solve_lyapunov": (lambda a, q: la.solve_lyapunov(a + 3 * np.eye(2), q), (2, 2), (2, 2)),
    "fht": (lambda a: wg.scipy.fft.fht(a, 0.2, 0.5, 0.1, 0.3), (5,)),
    "ifht": (lambda a: wg.scipy.fft.ifht(a, 0.2, 0.5, 0.1, 0.3), (4,)),
}


HEAVY = ("funm", "expm_cond", "subspace_angles", "rsf2csf", "ifht", "qr_multiply", "rq", "fiedler")
SOME = [pytest.param(n, marks=[pytest.mark.slow] * (n in HEAVY)) for n in CASES]


def _given(name):
    rng = np.random.default_rng(3)
    fun, *shapes = CASES[name]
    return fun, [rng.normal(size=shape) for shape in shapes]


def _parts(x):
    return [p for y in x for p in _parts(y)] if isinstance(x, tuple) else [np.asarray(x)]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    fun, arrays = _given(name)
    got = _parts(fun(*map(wg.tensor, arrays)))
    for x, y in zip(got, _parts(fun(*arrays)), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", SOME)
def test_derivatives(name):
    fun, arrays = _given(name)
    check_grads(fun, tuple(arrays), order=2, entries=False)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SOME)
def test_native_code_agrees(name):
    fun, arrays = _given(name)

    def total(*xs):
        return sum(np.sum(np.real(p) ** 2 + np.real(p)) for p in _flat(fun(*xs)))

    gradient = wg.grad(total)
    compiled = wg.jit(gradient, host_callbacks="forbid") if name not in CALLED else wg.jit(gradient)
    np.testing.assert_allclose(compiled(*arrays), gradient(*arrays), rtol=1e-9, atol=1e-10)


CALLED = ("matrix_balance", "rsf2csf")  # what they look at in values is looked at in Python


def _flat(x):
    return [p for y in x for p in _flat(y)] if isinstance(x, tuple) else [x]


def test_the_real_schur_form_of_a_rotation_is_not_differentiable():
    with pytest.raises(MatrixError, match="columns is not unique"):
        wg.grad(lambda a: la.schur(a)[0].sum())(np.array([[0.0, 1.0], [-1.0, 0.0]]))


def test_the_complex_schur_form_of_a_rotation_is_differentiable():
    f = lambda a: np.sum(np.diagonal(la.schur(a, "complex")[0]).imag ** 2)  # noqa: E731
    slope = wg.grad(f)(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    np.testing.assert_allclose(slope, [[0.0, 2.0], [-2.0, 0.0]], atol=1e-12)


def test_hankel_transforms_are_differentiable_in_step_and_order():
    a = np.random.default_rng(0).normal(size=5)
    check_grads(lambda *x: wg.scipy.fft.fht(a, *x), (0.2, 0.5, 0.1, 0.3), order=2, entries=False)
    check_grads(wg.scipy.fft.fhtoffset, (0.2, 0.5, 0.1, 0.3), order=2, entries=False)


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["dct", "dst"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_cosine_and_sine_transforms_are_native(kind, type):
    x = np.random.default_rng(1).normal(size=(2, 5))
    for n in (4, 7):
        f = lambda x: getattr(wg.scipy.fft, kind)(x, type, n, norm="ortho")  # noqa: B023, E731
        want = f(wg.tensor(x)).numpy()
        np.testing.assert_allclose(
            wg.jit(f, host_callbacks="forbid")(x), want, rtol=1e-12, atol=1e-14
        )


def test_complex_cosine_transforms_are_orthogonal_as_in_scipy():
    z = np.array([1.0 + 2j, 0.5, -1j])
    for ends in (True, False, None):
        f = lambda z: wg.scipy.fft.dct(z, 2, orthogonalize=ends)  # noqa: B023, E731
        np.testing.assert_allclose(f(wg.tensor(z)).numpy(), f(z), rtol=1e-13)
        check_grads(f, (z,), order=1, entries=False)


@pytest.mark.parametrize("complex_", [False, True])
def test_a_determinant_and_its_gradient_share_a_factorization(complex_):
    rng = np.random.default_rng(2)
    a = rng.normal(size=(2, 9, 9)) + (1j * rng.normal(size=(2, 9, 9)) if complex_ else 0.0)
    for f in (
        lambda a: np.sum(np.linalg.slogdet(a)[1]),
        lambda a: np.sum(np.abs(np.linalg.det(a)) ** 2),
        lambda a: np.linalg.slogdet(a[0])[1] + np.sum(np.real(np.linalg.inv(a[0]))),
    ):
        both = wg.value_and_grad(f)
        value, slope = wg.jit(both, host_callbacks="forbid")(a)
        want, wanted = both(a)
        np.testing.assert_allclose(value, want, rtol=1e-12)
        np.testing.assert_allclose(slope, wanted, rtol=1e-9, atol=1e-11 * np.abs(wanted).max())


def test_singular_matrices_in_a_shared_factorization_are_an_error():
    f = wg.jit(lambda a: (np.linalg.slogdet(a)[1], np.linalg.inv(a)))
    with pytest.raises(MatrixError, match="ingular"):
        f(np.ones((9, 9)))


def test_determinants_of_2x2_matrices_near_overflow_and_underflow():
    det = wg.jit(np.linalg.det)
    for rows, want in (
        ([[1e200, 1e200], [1e200, 1e200]], 0.0),
        ([[1e200, 1e-200], [3e200, 1e-200]], -2.0),
        ([[1e155, 1e155], [1e155, 1e155 * (1 + 2**-40)]], 1e155 * (1e155 * (1 + 2**-40) - 1e155)),
    ):
        many = np.broadcast_to(np.array(rows), (9, 2, 2)).copy()
        np.testing.assert_allclose(det(many), want, rtol=1e-13)
    single = np.array([[1e30, 1e30], [1e30, 2e30]], np.float32)
    assert np.isinf(det(single))


@pytest.mark.parametrize("order", [1, 2, np.inf])
def test_norms_of_empty_matrices_are_zero(order):
    for shape in ((0, 0), (0, 3), (3, 0)):
        f = lambda x: np.linalg.norm(x, order)  # noqa: E731
        assert f(wg.tensor(np.zeros(shape))).numpy() == 0.0
        assert wg.grad(f)(np.zeros(shape)).shape == shape


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "fun",
    [
        lambda a: np.sum(np.linalg.svd(a)[1] ** 3),
        lambda a: np.sum(la.lu(a)[2] ** 2),
        lambda a: np.sum(la.schur(a)[0] ** 2 * np.arange(4.0).reshape(2, 2)),
    ],
    ids=["svd", "lu", "schur"],
)
def test_compiled_hessians_of_factorizations(fun):
    a = np.array([[1.0, 2.0], [-0.5, 1.3]])
    want = wg.hessian(fun)(a)
    np.testing.assert_allclose(wg.jit(wg.hessian(fun))(a), want, rtol=1e-9, atol=1e-12)
