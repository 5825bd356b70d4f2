"""The Kaiser window, and the Bessel function that defines it.

    i0        the modified Bessel function of order zero
    kaiser    I0(beta sqrt(1 - t^2)) / I0(beta), for t between -1 and 1

NumPy's other windows (bartlett, blackman, hamming, hanning) depend on a length only, and are plain
arrays.  Both functions here are differentiable with respect to x and beta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of
from wengert._engine.core.op import lookup
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart

from ..errors import DtypeError, at, user_line

__all__ = ["i0", "kaiser"]


@counterpart(np.i0)
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, order 0, as ``numpy.i0``; DLMF 10.25.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> float(wg.grad(np.i0)(0.0))
    0.0
    """
    dtype = dtype_of(x)
    if dtype.kind == "c":
        raise DtypeError(
            "i0 of complex numbers: it is defined for real numbers only. Use scipy.special.iv(0, z)"
            f"{at(user_line())}."
        )
    made = lookup("special.i0")(x if dtype.kind == "f" else casts.astype(x, float))
    return made if dtype.kind != "f" or made.dtype == dtype else casts.astype(made, dtype)


def kaiser(M: Any, beta: Any) -> Any:
    """The Kaiser window of length M, as ``numpy.kaiser``; differentiable with respect to `beta`.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda beta: wnp.kaiser(3, beta))(2.0).round(3)
    array([-0.306,  0.   , -0.306])
    """
    if not isinstance(beta, Handle):
        return np.kaiser(M, beta)
    if M < 1:
        return as_array(beta)[None][:0]
    if M == 1:
        return np.ones_like(as_array(beta)[None], float)
    middle = (M - 1) / 2.0
    t = (np.arange(0, M) - middle) / middle
    beta = casts.astype(beta, float)
    return i0(beta * np.sqrt(1 - t**2.0)) / i0(beta)
