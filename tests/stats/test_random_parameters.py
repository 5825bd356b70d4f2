"""Distributions with random parameters, far points, and small and large shapes (slow)."""

import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

from .distributions import CONTINUOUS

pytestmark = pytest.mark.slow
ours = wg.scipy.stats


def parameters(name, rng):
    """Shape parameters of very different magnitudes."""
    count = len(CONTINUOUS[name][0])
    if name == "truncnorm":
        low = rng.normal() * 6.0
        return low, low + np.exp(rng.normal())
    if name == "triang":
        return (rng.uniform(0.02, 0.98),)
    if name in ("genextreme", "genpareto"):
        return (rng.normal() * 0.3,)
    if name == "skewnorm":
        return (rng.normal() * 3.0,)
    wide = 0.7 if name in ("lognorm", "exponnorm", "invgauss", "f") else 1.5
    found = np.exp(wide * rng.normal(size=count))
    if name in ("gamma", "chi2", "chi", "weibull_min", "weibull_max", "beta", "powerlaw"):
        found = found + 0.4  # below, points are so near the end that differences see nothing
    return tuple(found)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_values_and_gradients(name):
    rng = np.random.default_rng(sum(map(ord, name)))
    law = getattr(ours, name)
    for _ in range(4):
        shapes = parameters(name, rng)
        loc, scale = rng.normal() * 3.0, np.exp(rng.normal())
        with np.errstate(all="ignore"):
            known = getattr(theirs, name)(*shapes, loc=loc, scale=scale)
            x = known.ppf(rng.uniform(0.02, 0.98, 3))
            want = known.logpdf(x)
        np.testing.assert_allclose(
            law.logpdf(x, *shapes, loc, scale), want, rtol=1e-10, atol=1e-10, err_msg=str(shapes)
        )
        point = (x, *map(np.float64, shapes), np.float64(loc), np.float64(scale))
        wg.check_grads(law.logpdf, point, order=2, entries=False)


@pytest.mark.parametrize("name", ["gamma", "beta", "t", "chi2", "f", "invgamma", "lognorm", "norm"])
def test_far_points_have_finite_derivatives(name):
    law = getattr(ours, name)
    rng = np.random.default_rng(1)
    count = len(law.shapes)
    for x in (1e-300, 1e-30, 1e-8, 0.5, 1.0 - 1e-12, 30.0, 1e8, 1e100):
        for _ in range(5):
            shapes = np.exp(3.0 * rng.normal(size=count))
            args = (x, *shapes, 0.0, 1.0)
            slopes = wg.grad(law.logpdf, tuple(range(len(args))))(*args)
            assert not np.any(np.isnan(slopes)), (x, shapes, slopes)
            slopes = wg.grad(law.cdf, tuple(range(len(args))))(*args)
            assert not np.any(np.isnan(slopes)), (x, shapes, slopes)
