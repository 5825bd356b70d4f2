"""Lambert's W and Wright's omega, which solve w e^w = z and w + log w = z: DLMF 4.13.

    lambertw       on every branch; its derivative is 1 / (z + e^w), which is 1 at z = 0
    wrightomega    real and complex; its derivative is w / (1 + w)

As in SciPy, lambertw of real operands is complex, in double precision; a real program takes its
real part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from wengert._engine.kinds.elementwise import REAL, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart

from .oracle_expression import Witness
from .register import PREFIX, function
from .sinpi_cospi import whole_numbers

__all__ = ["lambertw", "wrightomega"]


@elementwise(
    name=f"{PREFIX}lambertw",
    domain=[(0.0, np.inf), (-2, 2)],
    oracle=Witness("z k", "lambertw(z, int(k))"),
    complex_ok=True,
    singular=True,
    half=False,
    single=False,
)
def lambertw_of(s: Any, z: Any, k: Any) -> Any:
    """Branch k of w with w e^w = z, DLMF 4.13."""
    return s.special("lambertw", z, k)


lambertw_of.partials(lambda t, out, z, k: t / (z + np.exp(out)), None)


@counterpart(scipy.special.lambertw)
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Lambert's W, branch k: w with w e^w = z, complex. dw/dz is 1 / (z + e^w).

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
    return lambertw_of(z, whole_numbers(k, "lambertw: the branch k", -(2**31)))


wrightomega = function(
    "wrightomega",
    "z",
    domain=[REAL],
    oracle=Witness("z", "lambertw(exp(z), ceil((im(z) - pi) / (2 * pi)))"),
    complex_ok=True,
    doc="Wright's omega: w in w + log(w) = z; its derivative is w / (1 + w).",
)
wrightomega.partials(lambda t, out, z: t * (out / (1.0 + out)))
