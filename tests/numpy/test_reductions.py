"""Reductions and cumulative operations: values of NumPy, derivatives by finite differences.

`check` runs a function three ways: on plain arrays, where NumPy itself answers; on tensors, where
value, dtype and shape must be the same; and through check_grads, both modes, second order.
"""

import itertools
import warnings

import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.numpy as wnp
from wengert.testing import check_grads


def leaves(x):
    return list(x) if isinstance(x, tuple | list) else [x]


def equal(f, *arrays, rtol=1e-13):
    for got, want in zip(leaves(f(*map(wg.tensor, arrays))), leaves(f(*arrays)), strict=True):
        got = got.numpy() if isinstance(got, wg.Tensor) else np.asarray(got)
        assert got.shape == np.shape(want)
        assert got.dtype == np.asarray(want).dtype
        eps = 1e-5 if got.dtype.itemsize == 4 and got.dtype.kind == "f" else rtol
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps)


def same(f, *arrays, rtol=1e-13):
    """As `equal`, and traced (conftest.py)."""
    equal(f, *arrays, rtol=rtol)


def check(f, *arrays, order=2):
    same(f, *arrays)
    check_grads(f, arrays, order)


AXES = [None, 0, -1, (0, 2), (2, -3, 1)]
REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "max": np.max,
    "min": np.min,
    "ptp": np.ptp,
    "amax": np.amax,
    "median": np.median,
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanstd": np.nanstd,
    "nanprod": np.nanprod,
    "nanmax": np.nanmax,
    "nanmin": np.nanmin,
    "nanmedian": np.nanmedian,
}


@pytest.mark.sample(22)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(name, axis, keepdims, rng):
    x = (rng.permutation(12).reshape(2, 3, 2) + 0.3 * rng.random((2, 3, 2))) / 6.0 - 0.9
    if name.startswith("nan"):
        x[1, 1, 0] = np.nan
        same(lambda x: REDUCTIONS[name](x, axis=axis, keepdims=keepdims), x)
        mask = np.isnan(x)
        x[mask] = 0.3

        def f(x):
            holed = np.where(mask, np.nan, x)
            return REDUCTIONS[name](holed, axis=axis, keepdims=keepdims)

        check_grads(f, (x,), 2)
    else:
        check(lambda x: REDUCTIONS[name](x, axis=axis, keepdims=keepdims), x)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min"])
def test_where_and_initial(name, rng):
    x = rng.normal(size=(3, 4))
    mask = rng.random((3, 4)) > 0.4
    mask[:, :2] = True
    more = {"initial": 0.3} if name in ("max", "min") else {}
    for axis, keepdims in itertools.product([None, 0, 1], [False, True]):
        check(
            lambda x, axis=axis, keepdims=keepdims: getattr(np, name)(
                x, axis=axis, keepdims=keepdims, where=mask, **more
            ),
            x,
        )
    if name in ("sum", "prod"):
        check(lambda x: getattr(np, name)(x, axis=0, initial=2.5), x)


def test_where_excludes_singular_elements():
    x = np.array([0.0, 2.0, np.inf, np.nan])
    good = np.array([False, True, False, False])
    for f in (np.sum, np.mean, np.prod):
        with np.errstate(all="ignore"):
            slope = wg.grad(lambda x, f=f: f(np.log(x), where=good))(x)
        np.testing.assert_array_equal(slope, [0.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "median", "cumsum"])
def test_float32_stays(name):
    x = np.array([[0.5, 1.5], [2.5, -1.0]], np.float32)
    f = getattr(np, name)
    same(f, x)
    assert wg.grad(lambda x: np.sum(f(x)))(x).dtype == np.float32
    assert wg.jvp(f, (x,), (x,))[1].dtype == np.float32


def test_dtype_and_out():
    x32 = np.array([1.0, 2.0], np.float32)
    same(lambda x: np.sum(x, dtype=np.float64), x32)
    same(lambda x: np.mean(x, dtype=np.float64), x32)
    same(lambda x: np.prod(x, dtype=complex), x32)
    same(lambda x: np.sum(x, dtype=int), np.array([1.7, 2.7]))
    same(lambda x: np.sum(x), np.array([True, True]))
    same(lambda x: np.mean(x), np.array([1, 2]))
    x, z = wg.tensor([1.0, 2.0], requires_grad=True), wg.tensor(0.0)
    assert np.sum(x * x, out=z) is z
    z.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])
    with pytest.raises(TypeError, match="recorded"):
        np.sum(x, out=np.zeros(()))


def test_var_and_std_options(rng):
    x = rng.normal(size=(3, 4))
    check(lambda x: np.var(x, axis=1, ddof=1), x)
    check(lambda x: np.std(x, axis=0, correction=1.5), x)
    check(lambda x: np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), x)
    check(lambda x, m: np.std(x, axis=1, mean=m, keepdims=True), x, rng.normal(size=(3, 1)))
    with pytest.raises(ValueError, match="simultaneously"):
        np.var(wg.tensor(x), ddof=1, correction=1)


def test_std_of_a_constant_has_derivative_zero():
    for f in (np.std, np.nanstd, lambda x: np.std(x, where=[True, True, True])):
        np.testing.assert_array_equal(wg.grad(f)(np.full(3, 2.0)), np.zeros(3))
        np.testing.assert_array_equal(
            wg.grad(lambda x, f=f: np.sum(wg.grad(f)(x) ** 2))(np.full(3, 2.0)), np.zeros(3)
        )


@pytest.mark.parametrize("f", [np.sum, np.mean, np.prod, np.var, np.std, np.cumsum, np.cumprod])
def test_complex(f, rng):
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check(lambda z: f(z, axis=1), z)


def test_complex_nanvar_and_masked_var(rng):
    z = rng.normal(size=4) + 1j * rng.normal(size=4)
    check(lambda z: np.var(z, where=np.array([True, False, True, True])), z)
    check(np.nanvar, z)


def test_zero_dimensional_and_zero_size():
    for f in (np.sum, np.prod, np.mean, np.max, np.cumsum, np.cumprod):
        check(f, np.array(0.7))
    check(lambda x: np.sum(x, axis=0), np.zeros((0, 2)))
    check(lambda x: np.prod(x, axis=0), np.zeros((0, 2)))
    check(lambda x: np.max(x, axis=1), np.zeros((0, 2)))
    check(lambda x: np.max(x, axis=0, initial=1.0), np.zeros((0, 2)))
    check(lambda x: np.cumprod(x, axis=0), np.zeros((0, 2)))
    for f in (np.prod, np.hypot.reduce):
        check(lambda x, f=f: f(x, axis=(1, 2)), np.zeros((0, 2, 3)))
    with pytest.raises(ValueError, match="no identity"):
        np.max(wg.tensor(np.zeros(0)))
    with pytest.raises(ValueError, match="axis 2"):
        np.sum(wg.tensor(np.zeros(2)), axis=2)


def test_python_float_argument():
    for f in (np.sum, np.prod, np.max, np.mean, np.median, np.cumsum, wnp.logsumexp, np.average):
        assert float(wg.grad(lambda x, f=f: np.sum(f(x)))(0.5)) == 1.0


# ---- products with zeros -----------------------------------------------------------------------

ZEROS = {
    "none": [1.5, -2.0, 0.5, 3.0, 2.0],
    "one": [1.5, 0.0, 0.5, 3.0, 2.0],
    "two": [1.5, 0.0, 0.5, 0.0, 2.0],
    "three": [0.0, -2.0, 0.0, 3.0, 0.0],
    "all": [0.0] * 5,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("zeros", ZEROS)
def test_prod_with_zeros_to_third_order(zeros):
    x, c = np.array(ZEROS[zeros][:4]), np.arange(1.0, 5.0)
    check(np.prod, x, order=3)
    check(lambda x: np.sum(np.cumprod(x) * c), x, order=3)


@pytest.mark.parametrize("zeros", ZEROS)
def test_hessian_of_prod_is_exact(zeros):
    x = np.array(ZEROS[zeros])
    hessian = wg.jacobian(wg.grad(np.prod))(x)
    for i, j in itertools.product(range(5), range(5)):
        rest = [x[k] for k in range(5) if k not in (i, j)]
        assert hessian[i, j] == pytest.approx(0.0 if i == j else np.prod(rest), abs=1e-15)


def test_prod_over_several_axes(rng):
    x = rng.normal(size=(2, 3, 2))
    x[0, 1, 1] = x[1, 0, 0] = x[1, 2, 0] = 0.0
    for axis in [(0, 1), (0, 2), (1,), None]:
        check(lambda x, axis=axis: np.prod(x, axis=axis), x)


def test_long_product_costs_linear_work():
    x = np.full(100_001, 1.0)
    x[5] = 0.0
    slope = wg.grad(np.prod)(x)
    assert slope[5] == 1.0 and np.count_nonzero(slope) == 1


# ---- ties and NaN ------------------------------------------------------------------------------


def test_ties_split_evenly():
    x = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    share = wg.vjp(lambda x: np.max(x, axis=1), x)[1](np.array([1.0, 3.0]))[0]
    np.testing.assert_allclose(share, [[0.5, 0.0, 0.5], [1.0, 1.0, 1.0]])
    dot = wg.jvp(lambda x: np.max(x, axis=1), (x,), (np.arange(6.0).reshape(2, 3),))[1]
    np.testing.assert_allclose(dot, [1.0, 4.0])
    share32 = wg.grad(np.min)(np.ones(3, np.float32))
    assert share32.dtype == np.float32


def test_nan_wins_an_extreme():
    x = np.array([1.0, np.nan, 3.0])
    same(np.max, x)
    np.testing.assert_array_equal(wg.grad(np.max)(x), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(wg.grad(np.nanmax)(x), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(wg.grad(np.max)(np.array([np.inf, 1.0])), [1.0, 0.0])


def test_empty_nan_slices_are_nan_with_derivative_zero():
    x = np.array([[np.nan, np.nan], [1.0, np.nan]])
    for f in (np.nanmean, np.nanvar, np.nanmax, np.nanmin, np.nanmedian):
        with pytest.warns(RuntimeWarning):
            same(lambda x, f=f: f(x, axis=1), x)
        with pytest.warns(RuntimeWarning):
            slope = wg.grad(lambda x, f=f: f(x, axis=1)[1] * 1.0)(x)
        assert slope[1, 1] == 0.0 and not slope[0].any()
    with pytest.raises(ValueError, match="All-NaN"):
        np.nanargmax(wg.tensor(x), axis=1)


def test_positions_truth_and_counts(rng):
    x = rng.normal(size=(3, 4))
    x[0, 0] = 0.0
    for f in (np.argmax, np.argmin, np.nanargmax, np.nanargmin):
        same(f, x)
        same(lambda x, f=f: f(x, axis=1, keepdims=True), x)
    for f in (np.any, np.all, np.count_nonzero):
        same(lambda x, f=f: f(x, axis=(0, 1)), x)
        same(lambda x, f=f: f(x, axis=0, keepdims=True), x)
    same(lambda x: np.any(x > 5, axis=1, where=np.ones((3, 4), bool)), x)
    slope = wg.grad(lambda x: x.ravel()[np.argmax(x)] + np.count_nonzero(x))(x)
    assert slope.ravel()[x.argmax()] == 1.0 and slope.sum() == 1.0


# ---- log-sum-exp -------------------------------------------------------------------------------


def test_logsumexp_is_scipys(rng):
    x = rng.normal(size=(2, 3, 2)) * 3
    for axis, keepdims in itertools.product(AXES, [False, True]):
        keys = {"axis": axis, "keepdims": keepdims}
        np.testing.assert_allclose(
            wnp.logsumexp(x, **keys), scipy.special.logsumexp(x, **keys), rtol=1e-14
        )
        check(lambda x, keys=keys: wnp.logsumexp(x, **keys), x)
    assert wnp.logsumexp(np.array([0.0, -50.0])) == scipy.special.logsumexp([0.0, -50.0]) > 0
    check(wnp.logsumexp, rng.normal(size=3) + 1j * rng.normal(size=3))
    check(lambda x: wnp.softmax(x, axis=1), x)
    check(lambda x: wnp.log_softmax(x, axis=(0, 2)), x)
    np.testing.assert_allclose(wnp.softmax(x, 1), scipy.special.softmax(x, 1), rtol=1e-13)


def test_logsumexp_with_weights(rng):
    x, b = rng.normal(size=(3, 4)), rng.normal(size=4) + 3.0
    f = wnp.logsumexp
    np.testing.assert_allclose(f(x, 1, b), scipy.special.logsumexp(x, 1, b), rtol=1e-14)
    check(lambda x, b: f(x, 1, b), x, b)
    b[0] = -9.0
    for got, want in zip(
        f(x, 1, b, True, True), scipy.special.logsumexp(x, 1, b, True, True), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    check_grads(lambda x, b: f(x, 1, b, return_sign=True)[0], (x, b), 2)


def test_logsumexp_at_infinity():
    inf = np.inf
    x = np.array([[-inf, -inf], [-inf, 1.0], [inf, 1.0], [inf, inf], [1000.0, 999.0]])
    np.testing.assert_array_equal(wnp.logsumexp(x, 1), scipy.special.logsumexp(x, 1))
    slope = wg.vjp(lambda x: wnp.logsumexp(x, 1), x)[1](np.ones(5))[0]
    e = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(slope, [[0, 0], [0, 1], [1, 0], [0.5, 0.5], [e, 1 - e]], atol=1e-15)
    assert np.isnan(wg.grad(wnp.logsumexp)(np.array([np.nan, 1.0]))).all()


# ---- norms -------------------------------------------------------------------------------------

ORDERS = [0, 0.5, 1, 1.5, 2, 3, -1, -2, np.inf, -np.inf]


@pytest.mark.sample(3)
@pytest.mark.parametrize("ord", ORDERS)
def test_vector_norm(ord, rng):
    x = rng.normal(size=(2, 3)) + 0.1
    z = x + 1j * rng.normal(size=(2, 3))
    for a in (x, z):
        for axis, keepdims in [(None, False), (1, False), (0, True), ((0, 1), False)]:
            keys = {"ord": ord, "axis": axis, "keepdims": keepdims}
            np.testing.assert_allclose(
                wnp.vector_norm(a, **keys), np.linalg.vector_norm(a, **keys), rtol=1e-13
            )
            check_grads(lambda x, keys=keys: wnp.vector_norm(x, **keys), (a,), 2)
    with np.errstate(divide="ignore"):  # NumPy's own value of a negative order at zero
        zero = wg.grad(lambda x: wnp.vector_norm(x, ord))(np.zeros(3))
    np.testing.assert_array_equal(zero, np.zeros(3))
    assert wg.grad(lambda x: wnp.vector_norm(x, ord))(x[0].astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("ord", ["fro", 1, -1, np.inf, -np.inf])
def test_matrix_norm(ord, rng):
    x = rng.normal(size=(2, 3, 4))
    want = np.linalg.norm(x, ord, axis=(2, 0))
    np.testing.assert_allclose(wnp.matrix_norm(x, ord, (2, 0)), want, rtol=1e-14)
    check_grads(lambda x: wnp.matrix_norm(x, ord, (2, 0), True), (x,), 2)


# ---- running -----------------------------------------------------------------------------------


@pytest.mark.sample(6)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("f", [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod])
def test_running(f, axis, rng):
    x = rng.normal(size=(3, 4))
    check(lambda x: f(x, axis=axis), x)
    x[1, 2] = np.nan
    if f in (np.nancumsum, np.nancumprod):
        same(lambda x: f(x, axis=axis), x)
        slope = wg.grad(lambda x: np.sum(f(x, axis=axis)))(x)
        assert slope[1, 2] == 0.0 and np.isfinite(slope).all()


def test_cumulative_with_initial(rng):
    x = rng.normal(size=(2, 3))
    check(lambda x: np.cumulative_sum(x, axis=1, include_initial=True), x)
    check(lambda x: np.cumulative_prod(x, axis=0), x)
    with pytest.raises(ValueError, match="axis="):
        np.cumulative_sum(wg.tensor(x))


def test_differences_and_integrals(rng):
    x, y = rng.normal(size=(3, 5)), np.cumsum(rng.random(5) + 0.2)
    check(lambda x: np.diff(x, n=2, axis=1), x)
    check(lambda x: np.diff(x, axis=0, prepend=0.0, append=x[:1]), x)
    check(lambda x: np.ediff1d(x, to_begin=x[0, 0], to_end=[1.0, 2.0]), x)
    check(np.gradient, x[0])
    check(lambda x: np.gradient(x, 2.0, axis=1, edge_order=2), x)
    check(lambda x, y: np.gradient(x, y, axis=1), x, y)
    check(lambda x, y: np.gradient(x, y, axis=1, edge_order=2), x, y)
    check(lambda x, y: np.gradient(x, 0.5, y), x, y)
    check(lambda x, y: np.trapezoid(x, y), x, y)
    check(lambda x: np.trapezoid(x, dx=0.3, axis=0), x)
    with pytest.raises(ValueError, match="at least"):
        np.gradient(wg.tensor([1.0]))


def test_interp(rng):
    xp, fp = np.cumsum(rng.random(5) + 0.2), rng.normal(size=5)
    x = np.array([[xp[0] - 1.0, 0.3 * xp[0] + 0.7 * xp[1]], [0.5 * (xp[2] + xp[3]), xp[4] + 2.0]])
    check(np.interp, x, xp, fp)
    check(lambda x, xp, fp: np.interp(x, xp, fp, left=-1.0, right=7.0), x, xp, fp)
    check(lambda x, xp, fp: np.interp(x, xp, fp, period=1.7), x, xp, fp)
    same(lambda x: np.interp(x, xp, fp), xp)
    same(np.interp, *(a.astype(np.float32) for a in (x, xp, fp)))
    same(lambda fp: np.interp(0.7, xp, fp), fp * 1j)
    check(lambda x, fp: np.interp(x, [1.0], fp), x, fp[:1])


@pytest.mark.sample(8)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (5, 2), (2, 5), (1, 3)])
def test_convolve_and_correlate(mode, sizes, rng):
    a, v = rng.normal(size=sizes[0]), rng.normal(size=sizes[1])
    for f in (np.convolve, np.correlate):
        check(lambda a, v, f=f: f(a, v, mode), a, v)
        same(lambda a, v, f=f: f(a, v, mode), a * (1 + 2j), v * (2 - 1j))


def test_complex_convolve_gradient(rng):
    a, v = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    check(lambda a, v: np.correlate(a, v[:2], "full"), a, v)


# ---- statistics --------------------------------------------------------------------------------


def test_average(rng):
    x, w = rng.normal(size=(3, 4)), rng.random((3, 4)) + 0.5
    check(np.average, x)
    check(lambda x, w: np.average(x, weights=w), x, w)
    check(lambda x, w: np.average(x, axis=1, weights=w[0], keepdims=True), x, w)
    check(lambda x, w: np.average(x, axis=(1, 0), weights=w.T, returned=True), x, w)
    check(lambda x: np.average(x, axis=0, returned=True), x)
    with pytest.raises(ZeroDivisionError):
        np.average(wg.tensor(x[0]), weights=np.zeros(4))


def test_cov_and_corrcoef(rng):
    x, y = rng.normal(size=(3, 6)), rng.normal(size=(2, 6))
    f, a = np.array([1, 2, 1, 3, 1, 1]), rng.random(6) + 0.5
    check(np.cov, x)
    check(lambda x, y: np.cov(x, y, ddof=0), x, y)
    check(lambda x: np.cov(x.T, rowvar=False, bias=True), x)
    check(lambda x, a: np.cov(x, fweights=f, aweights=a), x, a)
    check(lambda x, a: np.cov(x, aweights=a, ddof=0), x, a)
    check(lambda x: np.cov(x, fweights=f), x)
    check(lambda x: np.cov(x), x[0])
    same(np.cov, x + 1j * x[::-1])
    same(np.corrcoef, x)
    check_grads(lambda x: np.corrcoef(x)[0, 1:], (x,), 2)
    with pytest.warns(RuntimeWarning), np.errstate(all="ignore"):
        same(np.cov, x[:, :1])


QUANTILE_METHODS = """linear weibull hazen interpolated_inverted_cdf median_unbiased
    normal_unbiased inverted_cdf averaged_inverted_cdf closest_observation lower higher midpoint
    nearest""".split()


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", QUANTILE_METHODS)
def test_quantile_methods(method, rng):
    x = rng.permutation(28).reshape(2, 7, 2) + rng.random((2, 7, 2)) * 0.5
    q = np.array([0.0, 0.13, 0.5, 0.77, 1.0])
    same(lambda x: np.quantile(x, q, method=method), x, rtol=1e-12)
    check(lambda x: np.quantile(x, 0.37, axis=1, method=method, keepdims=True), x)
    p = q.reshape(1, 5) * 100
    check(lambda x: np.percentile(x, p, axis=(0, 1), method=method), x, order=1)
    levels = np.linspace(0, 1, 13)
    for n in range(1, 8):
        for level in levels:
            equal(lambda x, level=level: np.quantile(x, level, method=method), x[0, :n, 0])
        if n in (1, 2, 7):
            same(lambda x: np.quantile(x, levels, method=method), x[0, :n, 0])


def test_quantile_by_level_nan_and_weights(rng):
    x = rng.normal(size=(3, 6))
    check_grads(lambda q: np.quantile(x, q, axis=1), (np.array([0.33, 0.71]),), 2)
    holed = x.copy()
    holed[1, 2] = holed[2, 0] = np.nan
    same(lambda x: np.quantile(x, [0.2, 0.7], axis=1), holed)
    for method in ("linear", "lower", "hazen"):
        same(lambda x, m=method: np.nanquantile(x, [0.2, 0.7], axis=1, method=m), holed)
    same(lambda x: np.nanpercentile(x, 30, axis=0), holed)
    w = rng.random((3, 6))
    for weights, axis in ((w, 1), (w[0], 1), (w, None)):
        same(
            lambda x, w=weights, axis=axis: np.quantile(
                x, [0.2, 0.5], axis=axis, weights=w, method="inverted_cdf"
            ),
            x,
        )
    same(lambda x: np.quantile(x, 0.3), np.array([3, 1, 2]))
    same(lambda x: np.quantile(x, 0.3), np.array([3, 1, 2], np.float32))
    with pytest.raises(ValueError, match="range"):
        np.quantile(wg.tensor(x), 1.5)


def test_median_of_float32_empty_and_nan():
    same(np.median, np.array([3, 1, 2, 5], np.float32))
    same(np.median, np.array([1.0, np.nan]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(np.median, np.zeros(0))
        same(lambda x: np.median(x, axis=1), np.zeros((2, 0)))
        same(np.nanmedian, np.zeros(0))
    same(lambda x: np.median(x, axis=0), np.zeros((3, 0)))


def test_histogram_and_bincount(rng):
    x, w = rng.normal(size=30), rng.random(30)
    e = np.linspace(-2, 2, 6)
    same(lambda x: np.histogram(x, e), x)
    same(np.histogram, x)
    same(lambda x: np.histogram(x, "sturges"), x)
    same(lambda x: np.histogram(x, 4, range=(-1, 1)), x)
    check(lambda w: np.histogram(x, e, weights=w)[0], w[:30])
    same(lambda x: np.histogram(x, 5, density=True), x)
    check_grads(lambda x: np.histogram(x, 3)[1], (x,), 2)
    same(np.bincount, np.array([0, 3, 3, 1]))
    check(lambda w: np.bincount([0, 3, 3, 1], w, minlength=6), w[:4])


# ---- methods of tensors, plain arrays ----------------------------------------------------------


def test_methods_of_tensors(rng):
    x = rng.normal(size=(2, 3))
    t = wg.tensor(x)
    for name in "sum prod mean var std max min argmax argmin any all cumsum cumprod".split():
        np.testing.assert_allclose(getattr(t, name)(0), getattr(x, name)(0), rtol=1e-15)
    np.testing.assert_allclose(t.sum(axis=1, keepdims=True), x.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(t.std(axis=1, ddof=1), x.std(axis=1, ddof=1))
    np.testing.assert_allclose(t.max(initial=9.0), 9.0)
    assert [n for n in wnp.reductions.__all__ if not callable(getattr(wnp, n))] == []


def test_plain_arrays_give_exactly_numpys_results(rng):
    x = rng.normal(size=(3, 4))
    for name in [*REDUCTIONS, "cumsum", "cumprod", "argmax", "any", "average"]:
        got, want = getattr(wnp, name)(x), getattr(np, name)(x)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
