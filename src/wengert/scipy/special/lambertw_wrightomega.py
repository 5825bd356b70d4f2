"""Lambert W and Wright omega functions, which solve w e^w = z and w + log w = z: DLMF 4.13.

    lambertw       all branches; its derivative is 1 / (z + e^w)
    wrightomega    real and complex; its derivative is w / (1 + w)

As in SciPy, lambertw of real operands is complex and in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from wengert._engine.kinds.elementwise import REAL, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart

from .elementary import check_integers
from .register import PREFIX, OracleExpression, function

__all__ = ["lambertw", "wrightomega"]


@elementwise(
    name=f"{PREFIX}lambertw",
    domain=[(0.0, np.inf), (-2, 2)],
    oracle=OracleExpression("z k", "lambertw(z, int(k))"),
    complex_ok=True,
    singular=True,
    half=False,
    single=False,
)
def lambertw_of(s: Any, z: Any, k: Any) -> Any:
    """Branch k of the solution w of w e^w = z, DLMF 4.13."""
    return s.special("lambertw", z, k)


lambertw_of.partials(lambda t, out, z, k: t / (z + np.exp(out)), None)


@counterpart(scipy.special.lambertw)
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Lambert W function: branch k of the complex solution w of w e^w = z.

    Parameters
    ----------
    z : array or Tensor
    k : int or array of int
        The branch; not differentiable.
    tol : float
        Ignored for tensors, whose values have the accuracy of SciPy's default.

    Examples
    --------
    >>> round(float(wg.grad(lambda z: wg.scipy.special.lambertw(z).real)(np.e)), 12)
    0.183939720586
    """
    return lambertw_of(z, check_integers(k, "lambertw", "k", -(2**31)))


wrightomega = function(
    "wrightomega",
    "z",
    domain=[REAL],
    oracle=OracleExpression("z", "lambertw(exp(z), ceil((im(z) - pi) / (2 * pi)))"),
    complex_ok=True,
    doc="Wright omega: the solution w of w + log(w) = z; its derivative is w / (1 + w).",
)
wrightomega.partials(lambda t, out, z: t * (out / (1.0 + out)))
