"""Coefficients of the numerical differentiation formulas of orders 1 to 5, and their differences.

With backward differences D of the states, and d the difference of order k + 1 at the new state, the
formula of order k is ``h f = sum(SUMS[j] * D[j], j = 1..k) + LEADING[k] * d``, and the local error
is about ``ERROR[k] * d``.  KAPPA = 0 is the backward differentiation formula; the others have
smaller errors and are nearly as stable.  The numbers are those of [1]_, table 1.

    KAPPA, SUMS, LEADING, ERROR    by order, from 0, which has no meaning
    rescaled                       backward differences for another step size

References
----------
.. [1] L. F. Shampine, M. W. Reichelt, "The MATLAB ODE Suite", SIAM Journal on Scientific Computing
   18 (1), 1-22 (1997).
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

Row = tuple[float, ...]

MAX_ORDER = 5
_ORDERS = range(MAX_ORDER + 1)

KAPPA: Row = (0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0)
SUMS: Row = (0.0, *accumulate([1 / k for k in _ORDERS[1:]]))
LEADING: Row = tuple([(1 - KAPPA[k]) * SUMS[k] for k in _ORDERS])
ERROR: Row = tuple([KAPPA[k] * SUMS[k] + 1 / (k + 1) for k in _ORDERS])


def rescaled(differences: Sequence[Any], ratio: Any) -> list[Any]:
    """The backward differences of order 1, 2, ... of the same polynomial for ``ratio * h``.

    With the difference operator D for h, that for ``ratio * h`` is ``1 - (1 - D)**ratio``: a power
    series in D, whose powers are the operators of higher order.
    """
    count = len(differences)
    series = [ratio]  # the coefficients of D, D**2, ...
    for i in range(1, count):
        series.append(series[-1] * (i - ratio) * (1 / (i + 1)))
    power, found = series, []
    for order in range(1, count + 1):
        # `power` has the coefficients of D**order, D**(order + 1), ...
        total = 0.0
        for a, difference in zip(power, differences[order - 1 :], strict=True):
            total = total + a * difference
        found.append(total)
        power = [
            sum([power[m] * series[i - m] for m in range(i + 1)]) for i in range(count - order)
        ]
    return found
