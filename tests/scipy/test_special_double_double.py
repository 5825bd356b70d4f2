"""Double-double arithmetic against decimals, and the series that native code sums with it."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import wengert as wg
from wengert.scipy.special import decimal_series
from wengert.scipy.special import hypergeometric_parameter_derivatives as orders
from wengert.scipy.special.double_double import DoubleDouble, log


def exact(x):
    return [Decimal(float(h)) + Decimal(float(low)) for h, low in zip(x.high, x.low, strict=True)]


def max_error(found, wanted):
    """The largest relative error in units of 1e-31."""
    pairs = zip(exact(found), wanted, strict=True)
    return max(abs(f - w) / abs(w) for f, w in pairs) * Decimal("1e31")


def test_arithmetic_has_31_digits():
    rng = np.random.default_rng(0)
    a = DoubleDouble(rng.normal(size=200) * 1e3, rng.normal(size=200) * 1e-15)
    b = DoubleDouble(rng.normal(size=200), rng.normal(size=200) * 1e-18)
    with localcontext() as context:
        context.prec = 60
        x, y = exact(a), exact(b)
        assert max_error(a * b, [p * q for p, q in zip(x, y, strict=True)]) < 2
        assert max_error(a / b, [p / q for p, q in zip(x, y, strict=True)]) < 4
        assert max_error(a + b, [p + q for p, q in zip(x, y, strict=True)]) < 1000  # some cancel
        assert max_error(3.0 - a * 2, [3 - 2 * p for p in x]) < 1000
        assert (a * -1).high is not a.high
        assert exact(a * -1) == [-p for p in x]


def test_logarithms_have_30_digits():
    rng = np.random.default_rng(1)
    a = DoubleDouble(np.exp(rng.uniform(0.3, 300.0, 50)), np.zeros(50))
    with localcontext() as context:
        context.prec = 60
        assert max_error(log(a), [x.ln() for x in exact(a)]) < 10


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "op, params, operands",
    [
        (orders.hyp0f1_orders, {"k": 1, "m": 1}, [2.5, -4.0]),
        (orders.hyp1f1_orders, {"j": 1, "k": 1, "m": 0}, [-2.3, 0.7, -12.0]),
        (orders.hyp2f1_orders, {"i": 1, "j": 0, "k": 0, "m": 1}, [0.3, 1.7, -0.6, 0.8]),
        (orders.hyp2f1_orders, {"i": 0, "j": 0, "k": 0, "m": 0}, [0.3, 1.7, 2.6, -30.0]),
        (orders.struve_orders, {"k": 1, "m": 0}, [1.2, -20.0]),
    ],
)
def test_native_series_are_accurate_to_rounding(op, params, operands):
    xs = [np.array([x]) for x in operands]
    found = wg.jit(lambda *xs: op(*xs, **params))(*xs)
    np.testing.assert_allclose(found, op(*xs, **params), rtol=5e-16)


def test_series_that_lose_digits_are_summed_with_decimals():
    compiled = wg.jit(lambda b, x: orders.hyp0f1_orders(b, x, k=1, m=0))
    b, x = np.array([1.5, 2.5]), np.array([-3.0, -4e4])
    wanted = orders.hyp0f1_orders(b, x, k=1, m=0)
    np.testing.assert_allclose(compiled(b, x), wanted, rtol=5e-16)


def test_a_finite_series_needs_no_additional_digits(monkeypatch):
    # 2F1(a, 0; c; x) = 1 for all a and c: exact zeros, which cannot be distinguished from
    # cancellation by any number of digits.
    monkeypatch.setattr(decimal_series, "_MAX_DIGITS", 60)
    f = wg.scipy.special.hyp2f1
    for k, x in ((0, -3.0), (2, -3.0), (0, 0.9)):
        slope = wg.grad(f, k)(0.5, 0.0, 0.5, x)
        assert slope == 0.0
