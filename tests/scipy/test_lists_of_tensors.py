"""SciPy's functions take lists that contain tensors, as they take lists of numbers."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.stats

import wengert as wg

KNOTS = [0.0, 1.0, 2.0, 3.0]
CALLS = {
    "lfilter": lambda a, b, c: scipy.signal.lfilter([1.0, a], [1.0, -b], [c, 2.0, 1.0])[-1],
    "fftconvolve": lambda a, b, c: scipy.signal.fftconvolve([a, 1.0], [b, c])[1],
    "sosfilt": lambda a, b, c: scipy.signal.sosfilt([[a, 0.1, 0.2, 1.0, b, 0.1]], [1.0, c])[1],
    "freqz": lambda a, b, c: np.abs(scipy.signal.freqz([a, c], [1.0, b], worN=4)[1]).sum(),
    "block_diag": lambda a, b, c: scipy.linalg.block_diag([[a, b]], [c])[1, 2] * a * b,
    "solve_banded": lambda a, b, c: scipy.linalg.solve_banded(
        (0, 1), [[0.0, 0.1], [a, b]], [c, 1.0]
    )[0],
    "multivariate normal": lambda a, b, c: scipy.stats.multivariate_normal.logpdf(
        [a, 1.0], [b, 0.0], [[1.0, 0.1], [0.1, c]]
    ),
    "norm": lambda a, b, c: scipy.stats.norm.logpdf([a, 1.0], b, [c, 1.0]).sum(),
    "dirichlet": lambda a, b, c: scipy.stats.dirichlet.logpdf([0.2, 0.3, 0.5], [a, b, c]),
    "gaussian_filter": lambda a, b, c: scipy.ndimage.gaussian_filter([a, b, c], 1.0)[1],
    "CubicSpline": lambda a, b, c: scipy.interpolate.CubicSpline(KNOTS, [a, b, c, 1.0])(a),
    "make_interp_spline": lambda a, b, c: scipy.interpolate.make_interp_spline(
        KNOTS, [a, b, c, 1.0], k=2
    )(0.5),
    "splev": lambda a, b, c: scipy.interpolate.splev(
        0.5, scipy.interpolate.splrep(KNOTS, [a, b, c, 1.0])
    ),
    "simpson": lambda a, b, c: scipy.integrate.simpson([a, b, c], dx=a),
    "cumulative_trapezoid": lambda a, b, c: scipy.integrate.cumulative_trapezoid([a, b, c])[1],
    "fft": lambda a, b, c: np.abs(scipy.fft.fft([a, b, c])[1]),
    "dct": lambda a, b, c: scipy.fft.dct([a, b, c])[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_list_of_tensors(name):
    f = CALLS[name]
    point, h = np.array([0.3, 0.7, 1.2]), 1e-6
    expected = [(f(*(point + h * e)) - f(*(point - h * e))) / (2 * h) for e in np.eye(3)]
    value, gradient = wg.value_and_grad(lambda x: f(x[0], x[1], x[2]))(point)
    np.testing.assert_allclose(value, f(*point), rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_compiled():
    f = CALLS["lfilter"]
    whole = lambda x: f(x[0], x[1], x[2])  # noqa: E731
    point = np.array([0.3, 0.7, 1.2])
    np.testing.assert_allclose(wg.jit(wg.grad(whole))(point), wg.grad(whole)(point), rtol=1e-14)
