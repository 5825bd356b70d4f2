"""Ends of domains and ranges: the slope that the function has there, not what a formula rounds to.

Closed forms: d log1p = 1/(1+x), d expm1 = e^x, d tanh = sech^2, d arctanh = 1/(1-x^2), the sinc has
-pi^2/3 as its second derivative at 0 (NIST DLMF 4.7, 4.35, 4.38).  A slope that is infinite is inf.
"""

import numpy as np
import pytest
import scipy.special

import wengert as wg

from .ways import case, check

SIGMOID = wg.nn.functional.sigmoid
inf = np.inf
DOUBLE = (np.float64,)


def summed(f):
    return lambda x: np.sum(f(x))


CASES = {
    "log1p": case(
        summed(np.log1p), [-1.0, 0.0, 1e-300], gradient=[inf, 1, 1], orders=1, dtypes=DOUBLE
    ),
    "log": case(
        summed(np.log), [0.0, 1e-300, inf], gradient=[inf, 1e300, 0], orders=1, dtypes=DOUBLE
    ),
    "expm1": case(summed(np.expm1), [-800.0, 0.0, 1e-300], gradient=[0, 1, 1], dtypes=DOUBLE),
    "exp": case(summed(np.exp), [-800.0, -inf, 0.0], gradient=[0, 0, 1]),
    "sinc": case(
        summed(np.sinc),
        [0.0, 1e-9],
        gradient=[0, -(np.pi**2) / 3 * 1e-9],
        hessian=-np.eye(2) * np.pi**2 / 3,
    ),
    "tanh": case(summed(np.tanh), [-1e3, 0.0, 1e3], gradient=[0, 1, 0], hessian=np.zeros((3, 3))),
    "tanh far out": case(summed(np.tanh), [15.0], gradient=[1 / np.cosh(15.0) ** 2], dtypes=DOUBLE),
    "arctanh": case(summed(np.arctanh), [-1.0, 0.0, 1.0], gradient=[inf, 1, inf], orders=1),
    "arcsin": case(summed(np.arcsin), [-1.0, 0.0, 1.0], gradient=[inf, 1, inf], orders=1),
    "arccos": case(summed(np.arccos), [-1.0, 0.0, 1.0], gradient=[-inf, -1, -inf], orders=1),
    "arccosh": case(summed(np.arccosh), [1.0, 2.0], gradient=[inf, 1 / np.sqrt(3)], orders=1),
    "arctan": case(
        summed(np.arctan), [-inf, 0.0, 1e200], gradient=[0, 1, 0], orders=1, dtypes=DOUBLE
    ),
    "sigmoid": case(summed(SIGMOID), [-800.0, 0.0, 800.0], gradient=[0, 0.25, 0]),
    "sigmoid far out": case(
        summed(SIGMOID), [-30.0], gradient=[np.exp(-30) / (1 + np.exp(-30)) ** 2]
    ),
    "softplus": case(summed(wg.nn.functional.softplus), [-800.0, 0.0, 800.0], gradient=[0, 0.5, 1]),
    "log of sigmoid": case(
        summed(wg.nn.functional.log_sigmoid), [-800.0, 0.0, 800.0], gradient=[1, 0.5, 0]
    ),
    "cosh": case(summed(np.cosh), [0.0, -20.0], gradient=[0, -np.sinh(20.0)]),
    "cancelling": case(
        lambda x: np.sum(np.expm1(x) / np.exp(x)), [1e-9, 0.0], gradient=[1 - 1e-9, 1]
    ),
    "square of large numbers": case(summed(np.square), [1e200], gradient=[2e200], dtypes=DOUBLE),
    "reciprocal": case(summed(np.reciprocal), [inf, -2.0], gradient=[0, -0.25]),
}


FLAT = {  # functions that are flat, or straight, at infinity: slopes there, the second all zero
    "arctan": (np.arctan, [-inf, inf], 0.0),
    "arctan2": (lambda x: np.arctan2(x, 1.0), [-inf, inf], 0.0),
    "arctan2 by x": (lambda x: np.arctan2(1.0, x), [-inf, inf], 0.0),
    "arcsinh": (np.arcsinh, [-inf, inf], 0.0),
    "arccosh": (np.arccosh, [inf], 0.0),
    "tanh": (np.tanh, [-inf, inf], 0.0),
    "sigmoid": (SIGMOID, [-inf, inf], 0.0),
    "softplus": (wg.nn.functional.softplus, [-inf, inf], [0.0, 1.0]),
    "logaddexp": (lambda x: np.logaddexp(x, 0.0), [-inf, inf], [0.0, 1.0]),
    "hypot": (lambda x: np.hypot(x, 1.0), [-inf, inf], [-1.0, 1.0]),
    "abs": (np.abs, [-inf, inf], [-1.0, 1.0]),
    "erf": (scipy.special.erf, [-inf, inf], 0.0),
    "erfc": (scipy.special.erfc, [-inf, inf], 0.0),
    "ndtr": (scipy.special.ndtr, [-inf, inf], 0.0),
    "log_ndtr": (scipy.special.log_ndtr, [inf], 0.0),
    "exp": (np.exp, [-inf], 0.0),
    "expm1": (np.expm1, [-inf], 0.0),
    "log": (np.log, [inf], 0.0),
    "log1p": (np.log1p, [inf], 0.0),
    "sqrt": (np.sqrt, [inf], 0.0),
    "cbrt": (np.cbrt, [-inf, inf], 0.0),
    "reciprocal": (np.reciprocal, [-inf, inf], 0.0),
    "power": (lambda x: x**-2.0, [-inf, inf], 0.0),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", FLAT)
def test_infinity(name):
    """Slopes and second derivatives are their limits, in all mixtures of modes, in graphs too."""
    f, x, slope = FLAT[name]
    x = np.array(x)

    def forward(f):
        return lambda x: wg.jvp(f, (x,), (np.ones(x.shape),))[1]

    def reverse(f):
        return wg.grad(lambda x: np.sum(f(x)))

    def all_of_them(x):
        modes = (forward, reverse)
        first, second = [a(f) for a in modes], [a(b(f)) for a in modes for b in modes]
        return tuple([d(x) for d in first]), tuple([d(x) for d in second])

    with np.errstate(all="ignore"):
        for run in (all_of_them, wg.trace(all_of_them)(x), wg.jit(all_of_them)):
            slopes, bends = run(x)
            for found in slopes:
                np.testing.assert_allclose(found, np.full(x.shape, slope), rtol=1e-12)
            for found in bends:
                np.testing.assert_array_equal(found, np.zeros(x.shape))


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", CASES)
def test_ends(name):
    check(CASES[name])


def test_a_sigmoid_written_by_hand_overflows_without_harm():
    """1 / (1 + exp(800)): exp is inf, its share of the cotangent exactly 0."""
    f = lambda x: np.sum(1 / (1 + np.exp(-x)))  # noqa: E731
    x = np.array([-800.0, 0.0, 800.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wg.grad(f)(x), [0, 0.25, 0])
        np.testing.assert_array_equal(wg.jit(wg.grad(f))(x), [0, 0.25, 0])


@pytest.mark.sample(4)
@pytest.mark.parametrize("scale", [1e260, 1e-260])
@pytest.mark.parametrize("second", [wg.hessian, lambda f: wg.jacrev(wg.grad(f))])
@pytest.mark.parametrize("way", [lambda f: f, wg.jit])
def test_a_quotient_of_what_has_no_square(scale, second, way):
    # x / y by (x, y): [[0, -1 / y**2], [-1 / y**2, 2 x / y**3]], whatever both are multiplied by.
    point = np.array([0.75, 2.0])
    found = way(second(lambda p: (p[0] * scale) / (p[1] * scale)))(point)
    np.testing.assert_allclose(found, [[0.0, -0.25], [-0.25, 0.1875]], rtol=1e-14)
