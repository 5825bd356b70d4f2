"""Distributions where an intermediate value overflows, underflows or has a removable singularity.

These cases were found by tests/finite_differences; references are mpmath and closed forms.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.stats

import wengert as wg
from wengert.scipy import stats
from wengert.scipy.stats import circstd


def derivatives(f, *args):
    """The derivatives with respect to each argument, after comparing both modes."""
    args = tuple(map(np.float64, args))
    backward = np.array(wg.grad(f, argnums=tuple(range(len(args))))(*args), float)
    ones = np.eye(len(args))
    forward = np.array([wg.jvp(f, args, tuple(one))[1] for one in ones], float)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-300)
    return backward


def mpmath_derivatives(f, *args):
    with mp.workdps(60):
        units = np.eye(len(args), dtype=int)
        return np.array([float(mp.diff(f, args, tuple(map(int, one)))) for one in units])


def skewed(x, a, b):
    return mp.betainc(a, b, 0, (1 + x / mp.sqrt(a + b + x * x)) / 2, regularized=True)


@pytest.mark.parametrize("shapes", [(0.5, 0.5), (1.5, 2.5)])
def test_jf_skew_t_at_the_median(shapes):
    """At 0 the derivative with respect to the point is the density."""
    found = derivatives(stats.jf_skew_t.cdf, 0.0, *shapes)
    np.testing.assert_allclose(found, mpmath_derivatives(skewed, 0.0, *shapes), rtol=1e-10)
    np.testing.assert_allclose(found[0], scipy.stats.jf_skew_t.pdf(0.0, *shapes), rtol=1e-12)


@pytest.mark.parametrize(("beta", "bend"), [(2.0, -2.0), (3.0, 0.0), (4.0, 0.0)])
def test_second_derivative_of_gennorm_at_the_median(beta, bend):
    hessian = wg.hessian(lambda x: stats.gennorm.logpdf(x, beta))
    np.testing.assert_allclose(hessian(0.0), bend, atol=1e-300)
    assert wg.grad(lambda x: stats.gennorm.logpdf(x, 1.0))(0.0) == 0.0  # a kink: the middle


@pytest.mark.parametrize("law", ["gennorm", "halfgennorm"])
def test_high_powers_are_nearly_uniform(law):
    """x^1700 underflows, but the cdf does not (SciPy returns 0 and 1/2)."""
    part = 0.5 if law == "gennorm" else 1.0
    with mp.workdps(40):
        a = mp.mpf(1) / 1700
        less = float(mp.mpf("0.25") / mp.gamma(1 + a))  # DLMF 8.7.1 in its first term
        by_shape = float(-mp.diff(lambda b: mp.mpf("0.25") / mp.gamma(1 + 1 / b), 1700))
    cdf = getattr(stats, law).cdf
    np.testing.assert_allclose(cdf(0.25, 1700.0), 1.0 - part + part * less, rtol=1e-14)
    found = derivatives(cdf, 0.25, 1700.0)
    np.testing.assert_allclose(found, [part * less / 0.25, -part * by_shape], rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "args"),
    [
        (stats.invweibull.cdf, (0.3, 2300.0)),
        (stats.invweibull.sf, (0.3, 2300.0)),
        (stats.invweibull.logsf, (0.3, 2300.0)),
        (stats.exponweib.cdf, (1.5, 1.7, 2300.0)),
        (stats.exponweib.logsf, (0.3, 1.7, 2300.0)),
        (stats.invweibull.pdf, (0.3, 2300.0)),
        (stats.burr.ppf, (0.3, 4e-6, 2e-6)),
        (stats.nakagami.ppf, (0.3, 1e-6)),
        (stats.chi.ppf, (0.3, 1e-6)),
        (stats.planck.mean, (2000.0,)),
        (stats.planck.std, (3000.0,)),
        (stats.planck.entropy, (2000.0,)),
        (stats.dlaplace.entropy, (2000.0,)),
        (stats.dlaplace.std, (3000.0,)),
        (stats.zipf.std, (3000.0,)),
    ],
)
def test_underflow_gives_no_nan(call, args):
    """Values that underflow are 0 or 1, with derivatives 0 in both modes and to second order."""
    np.testing.assert_array_equal(derivatives(call, *args), 0.0)
    assert np.all(np.isfinite(wg.hessian(lambda x: call(x, *args[1:]))(args[0])))


def test_derivatives_near_the_end_of_the_support():
    np.testing.assert_allclose(derivatives(stats.truncexpon.mean, 1700.0), 0.0, atol=1e-300)
    np.testing.assert_allclose(derivatives(stats.truncexpon.var, 1700.0), 0.0, atol=1e-300)
    np.testing.assert_allclose(derivatives(lambda a: stats.planck.logsf(2, a), 2000.0), -3.0)
    # The root of 2^-a, with which 2 comes: all digits, where E x^2 - (E x)^2 has none.
    np.testing.assert_allclose(stats.zipf.std(100.0), 2.0**-50, rtol=1e-15)
    slope = derivatives(stats.zipf.std, 100.0)
    np.testing.assert_allclose(slope, -0.5 * np.log(2.0) * 2.0**-50, rtol=1e-14)


def log_ncx2(x, df, nc):
    order, z = df / 2 - 1, mp.sqrt(nc * x)
    out = -mp.log(2) - (x + nc) / 2 + order / 2 * mp.log(x / nc)
    return out + mp.log(mp.besseli(order, z))


@pytest.mark.parametrize(
    "point", [(0.6, 300.0, 2.0), (0.6, 1700.0, 2300.0), (1e5, 4.0, 9e4), (1e-8, 100.0, 2.0)]
)
def test_ncx2_where_the_density_underflows(point):
    with mp.workdps(40):
        wanted = float(log_ncx2(*map(mp.mpf, point)))
    np.testing.assert_allclose(stats.ncx2.logpdf(*point), wanted, rtol=1e-11)
    wanted = mpmath_derivatives(log_ncx2, *map(mp.mpf, point))
    np.testing.assert_allclose(derivatives(stats.ncx2.logpdf, *point), wanted, rtol=1e-8)


def test_genhyperbolic_of_large_parameters():
    """The cotangent of a Bessel function that is about 1e260 would overflow."""
    args = (0.6, 1700.0, 2300.0, 1200.0)
    found = derivatives(stats.genhyperbolic.pdf, *args)
    log_slopes = derivatives(stats.genhyperbolic.logpdf, *args)
    np.testing.assert_allclose(found, stats.genhyperbolic.pdf(*args) * log_slopes, rtol=1e-11)
    bend = wg.hessian(lambda p: stats.geninvgauss.mean(p, 2300.0))(1700.0)
    np.testing.assert_allclose(
        bend, 9.83242229406005e-8, rtol=1e-4
    )  # by 80 digits (tests/finite_differences)


def test_circstd_of_points_close_to_each_other():
    x = 1e-6 * np.array([0.31, 0.72, 0.55, 0.18])
    value, slope = wg.value_and_grad(circstd)(x)
    np.testing.assert_allclose(value, np.std(x), rtol=1e-11)
    np.testing.assert_allclose(slope, (x - x.mean()) / (4 * np.std(x)), rtol=1e-6)
