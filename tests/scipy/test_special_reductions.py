"""logsumexp, softmax and log_softmax: large operands, empty sums, weights, complex numbers."""

import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.scipy.special as sp
from wengert.testing import check_grads

inf = np.inf


def test_values_are_scipys(rng):
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


def test_rows_of_minus_infinity():
    rows = np.array([[-inf, -inf], [1.0, -inf]])
    got = wg.grad(lambda x: np.sum(sp.logsumexp(x, axis=1)[1:]))(rows)
    np.testing.assert_array_equal(got, [[0.0, 0.0], [1.0, 0.0]])
    got = wg.grad(lambda x: np.sum(sp.logsumexp(x, axis=1)))(rows)
    np.testing.assert_array_equal(got, [[0.0, 0.0], [1.0, 0.0]])


def test_weights_and_signs(rng):
    x, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    check_grads(lambda x, b: sp.logsumexp(x, axis=1, b=b, return_sign=True)[0], (x, b), order=2)
    b = np.array([1.0, -0.5, 0.0])
    got = wg.grad(lambda x: sp.logsumexp(x, b=b))(np.array([1.0, 0.5, 1e4]))
    share = np.array([np.e, -0.5 * np.exp(0.5), 0.0])
    np.testing.assert_allclose(got, share / share.sum(), rtol=1e-14)


def test_second_order_and_complex_numbers(rng):
    x = rng.normal(size=5)
    p = scipy.special.softmax(x)
    np.testing.assert_allclose(wg.hessian(sp.logsumexp)(x), np.diag(p) - np.outer(p, p), atol=1e-15)
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_grads(lambda z: sp.logsumexp(z, axis=1), (z,), order=2)
