"""Faults where a function of tensors gave another type than NumPy's does, or took more."""

import numpy as np
import pytest

import wengert as wg

A = np.array([[0.3, -1.0, 2.0, 0.7], [1.1, 0.2, -0.4, 0.9]], np.float32)
METHODS = """inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen
    weibull linear median_unbiased normal_unbiased lower higher midpoint nearest""".split()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "q", [0.3, 1, [0, 1], [0.1, 0.5], np.float64(0.3), np.array([0.25], np.float32)]
)
def test_quantiles_of_single_precision_at_levels_in_double(q, method):
    plain = np.quantile(A, q, axis=1, method=method)
    ours = np.quantile(wg.tensor(A, requires_grad=True), q, axis=1, method=method)
    assert ours.dtype == plain.dtype and ours.shape == plain.shape
    assert np.allclose(ours.numpy(), plain, rtol=1e-6)
    slope = wg.grad(lambda a: np.sum(np.quantile(a, q, axis=1, method=method)).astype(float))(A)
    assert slope.dtype == np.float32


def test_percentiles_of_single_precision():
    x = wg.tensor(A)
    for q in (25, [25, 75], 12.5, np.float64(10.0)):
        assert np.percentile(x, q).dtype == np.percentile(A, q).dtype


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.gradient(a, 2.0, [0.0, 1.0, 3.0, 4.0]),
        lambda a: np.ediff1d(a, to_begin=1.0, to_end=[2.0, 3.0]),
    ],
)
def test_differences_of_single_precision(f):
    plain, ours = f(A), f(wg.tensor(A))
    for p, o in zip(plain, ours, strict=True):
        assert o.dtype == p.dtype and np.allclose(o.numpy(), p)


def test_axes_of_running_sums():
    x = wg.tensor(A)
    for f in (np.cumsum, np.cumprod):
        with pytest.raises(TypeError, match="integer"):
            f(x, axis=(1,))
    total = np.cumulative_sum(A, axis=(1,))
    assert np.array_equal(np.cumulative_sum(x, axis=(1,)).numpy(), total)
    slope = wg.grad(lambda a: np.cumulative_sum(a, axis=(1,))[0, 1])(A)
    assert slope.tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("derivative", [wg.grad, wg.value_and_grad])
def test_a_warning_named_a_line_of_the_library(derivative):
    with pytest.warns(wg.errors.UnconnectedWarning) as caught:
        derivative(lambda x, y: np.sum(x), argnums=(0, 1), unconnected="warn")(A, A)
    assert caught[0].filename == __file__
