"""Powers: x**y by x and by y, at 0, at negative numbers, at 0**0, to order two.

d/dx x^n = n x^(n-1) holds at 0 for whole n >= 1, and is 0 for n = 0 as x^0 = 1 everywhere; d/dy x^y
= x^y log x has the limit 0 at x = 0, y > 0 (NIST DLMF 4.2.30, 4.4.17).  Next to a whole y, a power
of a negative x is not real: its derivative with respect to y does not exist.
"""

import numpy as np
import pytest

from .ways import case, check

CASES = {
    "0 by the exponent": case(lambda y: np.sum(0.0**y), [0.0, 1.0, 2.0], gradient=[0, 0, 0]),
    "by the exponent": case(
        lambda y: np.sum(2.0**y), [0.0, 1.0], gradient=[np.log(2), 2 * np.log(2)]
    ),
    "both, at 0 and 2": case(np.power, 0.0, 2.0, gradient=(0.0, 0.0)),
    "both, at 0 and 1": case(np.power, 0.0, 1.0, gradient=(1.0, 0.0)),
    "both, at 0 and 0": case(np.power, 0.0, 0.0, gradient=(0.0, 0.0)),
    "both, at -2 and 3": case(np.power, -2.0, 3.0, gradient=(12.0, np.nan)),
    "a negative base behind a choice": case(
        lambda x: np.sum(np.where(x > 0, x**0.5, -x)), [-2.0, 4.0], gradient=[-1, 0.25]
    ),
    "negative exponent": case(lambda x: np.sum(x**-1), [-2.0], gradient=[-0.25]),
    "fractional exponent at 0": case(
        lambda x: np.sum(x**1.5), [0.0, 4.0], gradient=[0, 3], orders=1
    ),
    "square at 0 of a power": case(
        lambda x: np.sum((x**2) ** 1.5), [0.0, -2.0], gradient=[0, -12], orders=1
    ),
    "x**x": case(lambda x: np.sum(x**x), [1.0, 2.0], gradient=[1, 4 * (np.log(2) + 1)]),
    "polynomial": case(
        lambda x: np.polyval(np.array([3.0, 0.0, 2.0, 1.0]), x[0]),
        [0.0],
        gradient=[2],
        hessian=[[0]],
    ),
    "Vandermonde matrix": case(
        lambda x: np.sum(np.vander(x, 4)), [0.0, -1.0], gradient=[1, 3 - 2 + 1]
    ),
    "exponents as a row": case(
        lambda x: np.sum(x[:, None] ** np.arange(4.0)), [0.0, -1.0], gradient=[1, 3 - 2 + 1]
    ),
}
WRITTEN = {
    "int": lambda n: lambda x: np.sum(x**n),
    "float": lambda n: lambda x: np.sum(x ** float(n)),
    "array of int": lambda n: lambda x: np.sum(x ** np.array([n])),
    "array of float": lambda n: lambda x: np.sum(x ** np.array([float(n)])),
    "np.power": lambda n: lambda x: np.sum(np.power(x, n)),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_powers(name):
    check(CASES[name])


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("how", WRITTEN)
def test_whole_exponents_at_zero_and_below(how, n):
    x = np.array([0.0, -2.0, 3.0])
    slope = np.array([n * v ** (n - 1) if n else 0.0 for v in x])
    curve = np.array([n * (n - 1) * v ** (n - 2) if n > 1 else 0.0 for v in x])
    check(case(WRITTEN[how](n), x, gradient=slope, hessian=np.diag(curve)))
