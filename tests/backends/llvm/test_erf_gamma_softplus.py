"""Functions NumPy lacks: erf, erfc, gelu, ndtr, gamma, gammaln, softplus; against mpmath."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from wengert._engine.ops.elementwise import error_function, exponential

from .scalar_body_driver import leaf_body, run_body
from .ufunc_driver import MP, hard_points, ulps

BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32])
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")
WIDTH = {np.float64: 8, np.float32: 16}


def worst(name, body, oracle, special_values, x):
    """The largest error, and where it is."""
    found = run_body(body, x.dtype, x, width=WIDTH[x.dtype.type])
    errors = ulps(found, oracle, x, special=special_values)
    return errors.max(), x[errors.argmax()]


def around_zero(dtype, reach, count=900):
    random = np.random.default_rng(4)
    parts = [hard_points(dtype, 500), random.uniform(-reach, reach, count)]
    parts += [random.uniform(-1.3, 1.3, count), random.uniform(0, 4.2 * reach, count)]
    return np.concatenate([p.astype(dtype) for p in parts])


@pytest.mark.sample(1)
@QUIET
@BOTH
@pytest.mark.parametrize("name, limit", [("erf", 1.0), ("erfc", 3.2)])
def test_error_functions(name, limit, dtype):
    x = around_zero(dtype, 6.5)
    error, where = worst(name, leaf_body(name), name, getattr(scipy.special, name), x)
    assert error < limit, (error, where)


@pytest.mark.sample(1)
@QUIET
@BOTH
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_bodies_of_error_functions(name, dtype):
    x = around_zero(dtype, 6.5, 300)
    body = getattr(error_function, name).body
    error, where = worst(name, body, name, getattr(scipy.special, name), x)
    assert error < 4.0, (error, where)


@pytest.mark.sample(1)
@QUIET
@BOTH
def test_gelu(dtype):
    x = around_zero(dtype, 9.0)
    error, where = worst("gelu", leaf_body("gelu"), lambda x: x * MP.ncdf(x), gelu_far_out, x)
    assert error < 4.0, (error, where)


@pytest.mark.sample(1)
@QUIET
@BOTH
def test_normal_distribution_function(dtype):
    x = np.concatenate([around_zero(dtype, 9.0), np.linspace(-38.6, 9, 2000, dtype=dtype)])
    error, where = worst("ndtr", leaf_body("ndtr"), MP.ncdf, scipy.special.ndtr, x)
    assert error < 4.0, (error, where)


def gelu_far_out(x):
    """Zeros, infinities, NaN."""
    return np.where(x < 0, -0.0, x)


def test_error_functions_are_odd_and_meet():
    x = np.linspace(-6, 6, 2001)
    found = run_body(leaf_body("erf"), float, x, width=8)
    assert np.all(found == -run_body(leaf_body("erf"), float, -x, width=8))
    whole = found + run_body(leaf_body("erfc"), float, x, width=8)
    assert np.max(np.abs(whole - 1)) < 5e-16
    steps = np.diff(run_body(leaf_body("erf"), float, np.linspace(0.99, 1.01, 4001), width=8))
    assert np.all(steps > 0)  # where the two pieces meet as well


# ---- gamma -------------------------------------------------------------------------------------


def gamma_points(dtype):
    random = np.random.default_rng(6)
    hard = hard_points(dtype, 400)
    hard = hard[~(np.isfinite(hard) & (hard < -1e4))]
    near = [
        place + random.normal(size=100) * 10.0 ** -random.integers(1, 15, 100) for place in (1, 2)
    ]
    poles = random.integers(-180, 180, 150) + random.normal(size=150) * 1e-6
    spans = [(0, 12), (-10, 0), (0, 176), (-186, 0)]
    parts = [hard, *near, poles, *[random.uniform(*span, 400) for span in spans]]
    return np.concatenate([p.astype(dtype) for p in parts])


@QUIET
@BOTH
def test_gamma(dtype):
    limit = 3.6 if dtype == np.float64 else 0.501
    error, where = worst(
        "gamma", leaf_body("gamma"), MP.gamma, scipy.special.gamma, gamma_points(dtype)
    )
    assert error < limit, (error, where)


def log_gamma(x):
    return MP.log(abs(MP.gamma(x))) if abs(x) < 1e4 else MP.loggamma(x).real


@QUIET
@BOTH
def test_log_gamma(dtype):
    x = gamma_points(dtype)
    x = x[(x > -0.5) | ~np.isfinite(x)]
    limit = 2.5 if dtype == np.float64 else 0.501
    error, where = worst("gammaln", leaf_body("gammaln"), log_gamma, scipy.special.gammaln, x)
    assert error < limit, (error, where)


@QUIET
def test_log_gamma_of_negative_numbers():
    """Right absolutely near its zeros between the poles, else relatively."""
    x = gamma_points(np.float64)
    x = x[(x < 0) & (x > -200)]
    found = run_body(leaf_body("gammaln"), float, x, width=8)
    for at, got in zip(x, found, strict=True):
        if at == np.floor(at):
            assert got == np.inf
        else:
            exact = log_gamma(MP.mpf(float(at)))
            scale = max(1.0, abs(float(exact)), abs(at) * np.log(abs(at) + 2))
            assert abs(float(MP.mpf(float(got)) - exact)) < 4e-16 * scale, at


def test_whole_factorials():
    n = np.arange(1.0, 23.0)
    found = run_body(leaf_body("gamma"), float, n, width=8)
    right = np.cumprod(np.concatenate([[1.0], n[:-1]]))
    assert np.all(np.abs(found - right) <= 2 * np.spacing(right))
    assert np.all(found[:8] == right[:8])


# ---- smooth steps ------------------------------------------------------------------------------

SMOOTH = {
    "sigmoid": (lambda v: 1 / (1 + MP.exp(-v)), lambda v: 1 / (1 + np.exp(-v))),
    "softplus": (lambda v: MP.log1p(MP.exp(v)), lambda v: np.logaddexp(0, v)),
    "log_sigmoid": (lambda v: -MP.log1p(MP.exp(-v)), lambda v: -np.logaddexp(0, -v)),
}


@pytest.mark.sample(1)
@QUIET
@BOTH
@pytest.mark.parametrize("name", list(SMOOTH))
def test_smooth_steps(name, dtype):
    oracle, special_values = SMOOTH[name]
    x = around_zero(dtype, 40.0, 500)
    bodies = [getattr(exponential, name).body]
    if name != "sigmoid":
        bodies.append(leaf_body(name))
    x = x[
        ~((name == "log_sigmoid") & (x > (700 if dtype == np.float64 else 100)))
    ]  # the sign of what is left there is nobody's
    for body in bodies:
        error, where = worst(name, body, oracle, special_values, x)
        assert error < 2.0, (error, where)


@QUIET
@BOTH
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_as_numpy(name, dtype):
    x = around_zero(dtype, 40.0, 300)
    y = np.random.default_rng(9).permutation(x)
    found = run_body(getattr(exponential, name).body, dtype, x, y, width=8)
    right = getattr(np, name)(x, y)
    both = np.isnan(found) == np.isnan(right)
    scale = np.spacing(np.maximum(np.abs(right), np.abs(np.maximum(x, y))))
    off = np.abs(found - right) <= 5 * scale
    assert np.all(both & (off | (found == right) | np.isnan(right)))


@pytest.mark.sample(12)
@QUIET
@pytest.mark.parametrize("width", [1, 2, 4, 16])
@pytest.mark.parametrize(
    "name", ["erf", "erfc", "gelu", "ndtr", "gamma", "gammaln", "softplus", "log_sigmoid"]
)
def test_every_width_gives_the_same_bits(name, width):
    x = np.concatenate([np.linspace(-30, 30, 400), hard_points(float, 200)])
    x = x[np.abs(x) < 1e4]
    found = run_body(leaf_body(name), float, x, width=width)
    assert np.array_equal(found, run_body(leaf_body(name), float, x, width=8), equal_nan=True)
