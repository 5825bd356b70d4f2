"""Derivatives where two branches of a formula meet: at medians and modes, to second order."""

from math import pi

import numpy as np
import pytest

import wengert as wg
from wengert.scipy import stats

# Function, point, and the first and second derivative there in closed form.
CASES = {
    "cauchy.ppf": (lambda q: stats.cauchy.ppf(q, 0.5, 0.5), 0.5, 0.5 * pi, 0.0),
    "cauchy.isf": (lambda q: stats.cauchy.isf(q, 0.5, 0.5), 0.5, -0.5 * pi, 0.0),
    "cauchy.ppf, where branches meet": (stats.cauchy.ppf, 0.25, 2.0 * pi, -4.0 * pi**2),
    "cauchy.cdf": (stats.cauchy.cdf, 0.0, 1.0 / pi, 0.0),
    "laplace.cdf": (lambda x: stats.laplace.cdf(x, 0.5, 0.5), 0.5, 1.0, None),
    "laplace.sf": (lambda x: stats.laplace.sf(x, 0.5, 0.5), 0.5, -1.0, None),
    "laplace.logcdf": (stats.laplace.logcdf, 0.0, 1.0, None),
    "laplace.ppf": (stats.laplace.ppf, 0.5, 2.0, None),
    "logistic.logpdf": (stats.logistic.logpdf, 0.0, 0.0, -0.5),
    "logistic.pdf": (stats.logistic.pdf, 0.0, 0.0, -0.125),
    "logistic.cdf": (stats.logistic.cdf, 0.0, 0.25, 0.0),
    "t.cdf": (lambda x: stats.t.cdf(x, 3.0), 0.0, 2.0 / (pi * np.sqrt(3.0)), 0.0),
    "t.ppf": (lambda q: stats.t.ppf(q, 3.0), 0.5, 0.5 * pi * np.sqrt(3.0), 0.0),
    "norm.ppf": (stats.norm.ppf, 0.5, np.sqrt(2.0 * pi), 0.0),
    "norm.logcdf": (stats.norm.logcdf, 0.0, np.sqrt(2.0 / pi), -2.0 / pi),
    "vonmises.cdf": (lambda x: stats.vonmises.cdf(x, 0.0), 0.0, 0.5 / pi, 0.0),
    "vonmises.cdf, at pi": (lambda x: stats.vonmises.cdf(x, 0.0), pi, 0.5 / pi, 0.0),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    f, x, first, second = CASES[name]
    np.testing.assert_allclose(wg.grad(f)(x), first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(wg.jvp(f, (x,), (1.0,))[1], first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), first, rtol=1e-13, atol=1e-15)
    if second is not None:
        np.testing.assert_allclose(wg.grad(wg.grad(f))(x), second, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            wg.jvp(wg.grad(f), (x,), (1.0,))[1], second, rtol=1e-12, atol=1e-13
        )
