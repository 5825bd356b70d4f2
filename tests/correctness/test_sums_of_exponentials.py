"""Sums of exponentials: far out, with infinite operands, in rows without a finite element.

The derivative of logsumexp is the softmax, whose shares depend on differences only: 1/2 for each of
two equal elements, also at 1e4 in float32.  Of -inf alone it is an empty sum, of which nobody has a
share; +inf belongs to the +infs (docs/conventions.md, 6).
"""

import numpy as np
import pytest

import wengert as wg

from .ways import case, check

logsumexp, softmax = wg.numpy.logsumexp, wg.numpy.softmax
log_softmax = wg.numpy.log_softmax
inf = np.inf
W = np.array([1.0, 2.0, 4.0])
ZEROS = np.zeros((2, 2))


def naive(x):
    return np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x)


CASES = {
    "logsumexp": case(logsumexp, [1e4, -1e4, 1e4], gradient=[0.5, 0, 0.5]),
    "logsumexp of negative": case(logsumexp, [-1e4, -1e4], gradient=[0.5, 0.5]),
    "logsumexp, -inf": case(logsumexp, [-inf, 1.0], gradient=[0, 1], hessian=ZEROS),
    "logsumexp, all -inf": case(logsumexp, [-inf, -inf], gradient=[0, 0], hessian=ZEROS),
    "logsumexp, inf": case(logsumexp, [inf, 1.0], gradient=[1, 0], orders=1),
    "logsumexp, infs": case(logsumexp, [inf, inf, 1.0], gradient=[0.5, 0.5, 0], orders=1),
    "logsumexp of rows": case(
        lambda x: np.sum(logsumexp(x, axis=1)),
        [[-inf, -inf], [-1e4, 1e4], [0.0, 0.0]],
        gradient=[[0, 0], [0, 1], [0.5, 0.5]],
    ),
    "logsumexp with weights": case(
        lambda x: logsumexp(x, b=np.array([1.0, 0.0, 3.0])),
        [1e4, inf, 1e4],
        gradient=[0.25, 0, 0.75],
    ),
    "softmax": case(lambda x: softmax(x) @ W, [1e4, -1e4, 1e4], gradient=[-0.75, 0, 0.75]),
    "softmax, -inf": case(lambda x: softmax(x) @ W, [0.0, -inf, 0.0], gradient=[-0.75, 0, 0.75]),
    "log_softmax": case(
        lambda x: np.sum(log_softmax(x)), [1e4, -1e4, 1e4], gradient=[-0.5, 1, -0.5]
    ),
    "log_softmax of rows": case(
        lambda x: log_softmax(x, axis=1)[0, 0],
        [[3e4, 3e4], [0.0, 1.0]],
        gradient=[[0.5, -0.5], [0, 0]],
    ),
    "cross entropy": case(
        lambda x: -wg.nn.functional.log_softmax(x)[0], [-1e4, 1e4], gradient=[-1, 1]
    ),
    "logaddexp": case(np.logaddexp, 1e4, -1e4, gradient=(1.0, 0.0)),
    "logaddexp of equals": case(np.logaddexp, -1e4, -1e4, gradient=(0.5, 0.5)),
    "logaddexp, -inf": case(np.logaddexp, -inf, 3.0, gradient=(0.0, 1.0)),
    "logaddexp, all -inf": case(np.logaddexp, -inf, -inf, gradient=(0.0, 0.0)),
    "logaddexp, inf": case(np.logaddexp, inf, 3.0, gradient=(1.0, 0.0)),
    "logaddexp, infs": case(np.logaddexp, inf, inf, gradient=(0.5, 0.5)),
    "logaddexp2": case(np.logaddexp2, 1e4, -1e4, gradient=(1.0, 0.0)),
    "logaddexp.reduce": case(np.logaddexp.reduce, [-inf, 1e4, 1e4], gradient=[0, 0.5, 0.5]),
    "shifted by hand": case(naive, [1e4, -1e4, 1e4], gradient=[0.5, 0, 0.5]),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_sums_of_exponentials(name):
    check(CASES[name])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_shares_sum_to_one_wherever_they_are(dtype):
    """The derivative of logsumexp by a shift of all operands is 1, up to the rounding of these.

    In narrow dtypes to the last digit: there the rounding of 1e4 is too much to lose.
    """
    for x in (1e4, -1e4, 5e4, 0.0):
        g = wg.grad(logsumexp)(np.array([x, x + 16, x], dtype))
        assert g.dtype == dtype
        size = abs(x) + 16 if dtype == np.float64 else 1.0
        digits = 4 * np.finfo(dtype).eps * size
        assert abs(float(np.sum(g, dtype=float)) - 1) < digits, (x, g)
