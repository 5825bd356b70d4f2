"""logsumexp, softmax and log_softmax: large operands, empty sums, weights, complex numbers."""

import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.scipy.special as sp
from wengert.testing import check_grads

inf = np.inf


def test_values(rng):
    x = rng.normal(size=(3, 4)) * 10
    for f in (sp.logsumexp, sp.softmax, sp.log_softmax):
        theirs = getattr(scipy.special, f.__name__)
        for axis in (None, 0, 1, (0, 1)):
            np.testing.assert_array_equal(f(x, axis=axis), theirs(x, axis=axis))
            np.testing.assert_allclose(
                f(wg.tensor(x), axis=axis).numpy(), theirs(x, axis=axis), rtol=1e-14, atol=1e-14
            )


@pytest.mark.parametrize("backend", ["eager", "graph", "jit"])
def test_gradients_of_large_operands(backend):
    how = {"eager": lambda f: f, "jit": wg.jit, "graph": lambda f: lambda x: wg.trace(f)(x)(x)}
    grad = lambda f: how[backend](wg.grad(f))  # noqa: E731
    for f, x, want in [
        (sp.logsumexp, [1e4, -1e4, 1e4], [0.5, 0.0, 0.5]),
        (lambda x: sp.softmax(x)[0], [1e4, 1e4, 0.0], [0.25, -0.25, 0.0]),
        (lambda x: sp.log_softmax(x)[1], [1e4, -1e4], [-1.0, 1.0]),
    ]:  # a sum of 1e4 is rounded to 1e-12
        np.testing.assert_allclose(grad(f)(np.array(x)), want, rtol=1e-12)


def test_slices_of_minus_infinity():
    rows = np.array([[-inf, -inf], [1.0, -inf]])
    got = wg.grad(lambda x: np.sum(sp.logsumexp(x, axis=1)[1:]))(rows)
    np.testing.assert_array_equal(got, [[0.0, 0.0], [1.0, 0.0]])
    got = wg.grad(lambda x: np.sum(sp.logsumexp(x, axis=1)))(rows)
    np.testing.assert_array_equal(got, [[0.0, 0.0], [1.0, 0.0]])


def test_weights_and_signs(rng):
    x, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    check_grads(
        lambda x, b: sp.logsumexp(x, axis=1, b=b, return_sign=True)[0],
        (x, b),
        order=2,
        entries=False,
    )
    b = np.array([1.0, -0.5, 0.0])
    got = wg.grad(lambda x: sp.logsumexp(x, b=b))(np.array([1.0, 0.5, 1e4]))
    share = np.array([np.e, -0.5 * np.exp(0.5), 0.0])
    np.testing.assert_allclose(got, share / share.sum(), rtol=1e-14)


def derivatives_in_all_modes(f, *args):
    """The derivatives of f with respect to all arguments: eager and compiled, in both modes."""
    wrt = tuple(range(len(args)))
    for compiled in (lambda g: g, wg.jit):
        for jacobian in (wg.jacfwd, wg.jacrev):
            yield compiled(jacobian(f, argnums=wrt))(*args)


def weighted(a, b):
    return sp.logsumexp(a, b=b)


ZERO_WEIGHTS = [  # a, b, derivative with respect to a, derivative with respect to b
    ([0.0, 0.0, 0.0], [2.0, 0.0, 5.0], [2 / 7, 0, 5 / 7], [1 / 7, 1 / 7, 1 / 7]),
    ([0.0, 1e3, 0.0], [1.0, 0.0, 1.0], [0.5, 0, 0.5], [0.5, inf, 0.5]),  # e**1000 overflows
    ([0.0, -inf, inf], [1.0, 0.0, 0.0], [1, 0, 0], [1, 0, inf]),
    ([0.0, 800.0, -inf], [0.0, 0.0, 0.0], [0, 0, 0], [inf, inf, 0]),  # the derivative of log at 0
    ([0.0, 0.0], [1.0, -1.0], [inf, -inf], [inf, inf]),
]


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", range(len(ZERO_WEIGHTS)))
def test_derivatives_with_respect_to_weights_that_are_zero(row):
    a, b, by_a, by_b = map(np.array, ZERO_WEIGHTS[row])
    with np.errstate(all="ignore"):
        want = scipy.special.logsumexp(a, b=b) if np.any(b) else -inf  # SciPy: NaN for 800
        assert weighted(wg.tensor(a), wg.tensor(b)).item() == pytest.approx(want, rel=1e-15)
    for got in derivatives_in_all_modes(weighted, a, b):
        np.testing.assert_allclose(got[0], by_a, rtol=1e-14)
        np.testing.assert_allclose(got[1], by_b, rtol=1e-14)


def test_hessian_with_respect_to_weights_that_are_zero():
    a, b = np.zeros(3), np.array([2.0, 0.0, 5.0])
    p = b / 7
    across = (np.eye(3) - p[:, None]) / 7  # the derivative of exp(a_j) / s with respect to a_i
    for jacobian in (wg.jacfwd, wg.jacrev):
        for compiled in (lambda g: g, wg.jit):
            h = compiled(jacobian(wg.grad(weighted, argnums=(0, 1)), argnums=(0, 1)))(a, b)
            np.testing.assert_allclose(h[0][0], np.diag(p) - np.outer(p, p), atol=1e-15)
            np.testing.assert_allclose(h[1][1], np.full((3, 3), -1 / 49), rtol=1e-14)
            np.testing.assert_allclose(h[0][1], across, atol=1e-15)
            np.testing.assert_allclose(h[1][0], across.T, atol=1e-15)


def test_second_order_and_complex_numbers(rng):
    x = rng.normal(size=5)
    p = scipy.special.softmax(x)
    np.testing.assert_allclose(wg.hessian(sp.logsumexp)(x), np.diag(p) - np.outer(p, p), atol=1e-15)
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_grads(lambda z: sp.logsumexp(z, axis=1), (z,), order=2, entries=False)
