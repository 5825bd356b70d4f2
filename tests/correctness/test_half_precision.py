"""float16: values and gradients are float16, and what is between them loses no more than NumPy's.

NumPy adds up in float32 pairwise where it can (`np.sum`, `np.mean` of float16), and so do the
gradients; a gradient is rounded to float16 once, at its end.
"""

import numpy as np
import pytest

import wengert as wg

X = np.array([1.0, 2.0, 3.0], np.float16)
FUNCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "std": np.std,
    "norm": np.linalg.norm,
    "prod": np.prod,
    "max": np.max,
    "logsumexp": wg.numpy.logsumexp,
    "inner product": lambda x: x @ x,
    "exp": lambda x: np.sum(np.exp(x)),
    "power": lambda x: np.sum(x**3),
    "matrix": lambda x: np.sum(np.outer(x, x) @ x),
    "cumsum": lambda x: np.sum(np.cumsum(x) ** 2),
    "quotient": lambda x: np.sum(np.sin(x) / x),
    "choice": lambda x: np.sum(np.where(x > 1, np.log(x - 1), 0)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_half_precision(name):
    f = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        want = wg.grad(f)(X.astype(float))
        curve = wg.hessian(f)(X.astype(float))
        first = [wg.grad(f)(X), wg.jacfwd(f)(X), wg.vmap(wg.grad(f))(np.stack([X, X]))[0]]
        first += [wg.trace(wg.grad(f))(X)(X), wg.jit(wg.grad(f))(X)]
        second = [wg.hessian(f)(X), wg.jit(wg.hessian(f))(X)]
    for found, wanted in [*[(g, want) for g in first], *[(h, curve) for h in second]]:
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=4e-3)


def test_values_are_numpys():
    for f in FUNCTIONS.values():
        with np.errstate(all="ignore"):
            value, want = f(wg.tensor(X)), f(X)
        assert value.dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(value.numpy(), want)


@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_long_sums_do_not_stop_to_grow(make):
    """Added up one by one in float16, 5000 ones are 2048: 2048 + 1 rounds to 2048."""
    ones = np.ones(5000, np.float16)
    assert make(wg.grad(lambda c: np.sum(c * ones)))(np.float16(1)) == 5000
    assert make(lambda x: np.sum(x))(ones) == 5000
    g = make(wg.grad(lambda x: np.mean(x * x)))(ones)
    np.testing.assert_allclose(g, np.full(5000, 2 / 5000), rtol=1e-3)


def test_what_overflows_in_half_precision_is_infinite_and_not_wrong():
    with np.errstate(all="ignore"):
        assert np.isinf(wg.grad(lambda x: np.exp(x) * 8)(np.float16(11)))
        assert wg.grad(lambda x: np.logaddexp(x, np.float16(0)))(np.float16(6e4)) == 1
