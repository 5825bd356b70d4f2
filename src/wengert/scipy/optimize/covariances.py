"""What fits need of the Jacobian at the solution.

has_full_rank     whether a covariance is determined
covariance_of     the covariance of the solution
minpack_factors   the factors of the Jacobian under MINPACK's names
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from wengert._engine.core.handle import is_traced, value_of

from ..linalg import solve_triangular


def has_full_rank(jacobian: Any) -> bool:
    """Whether the columns of a Jacobian are independent; in a graph, where it is not known, True.

    A column counts as dependent if its part that is orthogonal to the others is rounding.
    """
    values = value_of(jacobian)
    if is_traced(values):
        return True
    values = np.asarray(values)
    if values.shape[0] < values.shape[1] or not np.isfinite(values).all():
        return False
    # with columns of size one, since units of parameters differ
    norms = np.linalg.norm(values, axis=0)
    if not norms.all():
        return False
    factor = scipy.linalg.qr(values / norms, mode="r", pivoting=True)[0]
    sizes = np.abs(np.diag(factor))
    return bool(np.all(sizes > np.finfo(float).eps * max(values.shape) * sizes[0]))


def covariance_of(jacobian: Any) -> Any:
    """The inverse of ``J.T @ J``, by a factor of J, whose condition number is not squared."""
    factor: Any = np.linalg.qr(jacobian, mode="r")
    inverse = solve_triangular(factor, np.eye(int(factor.shape[0])))
    return inverse @ inverse.T


def minpack_factors(jacobian: Any, residuals: Any) -> dict[str, Any]:
    """`fjac`, `ipvt` and `qtf` of `scipy.optimize.leastsq`; empty in a graph.

    Signs of rows may differ from those of MINPACK.
    """
    values = [value_of(x) for x in (jacobian, residuals)]
    if any(map(is_traced, values)):
        return {}
    matrix, right = map(np.asarray, values)
    q, r, order = scipy.linalg.qr(matrix, pivoting=True)
    fjac = np.zeros(matrix.shape[::-1])
    fjac[:, : r.shape[0]] = r.T
    return {
        "fjac": fjac,
        "ipvt": order.astype(np.int32) + _first_position(),
        "qtf": (q.T @ right)[: r.shape[1]],
    }


@functools.cache
def _first_position() -> int:
    """Of `ipvt`: SciPy's MINPACK in Fortran began with one, that in C begins with zero."""
    found = scipy.optimize.leastsq(lambda x: x, np.ones(1), full_output=True)
    return int(found[2]["ipvt"][0])
