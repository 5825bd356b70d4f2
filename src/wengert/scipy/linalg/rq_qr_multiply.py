"""RQ decomposition, and products with the Q of a QR decomposition.

    rq             RQ decomposition
    qr_multiply    product with the factor Q

The RQ decomposition is the QR decomposition of the adjoint with rows and columns reversed; the
signs agree with LAPACK's, as the reflections are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import linalg as names

from ..dispatch import counterpart, floating
from .decompositions import qr

__all__ = ["qr_multiply", "rq"]


@counterpart(scipy.linalg.rq)
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """The RQ decomposition, as ``scipy.linalg.rq``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    overwrite_a, lwork, check_finite
        Ignored; for compatibility with SciPy.
    mode : {"full", "r", "economic"}

    Returns
    -------
    R : Tensor of shape (..., m, n), or (..., m, k) with "economic", k = min(m, n)
    Q : Tensor of shape (..., n, n) or (..., k, n); not with "r"

    Raises
    ------
    MatrixError
        A derivative is needed and the last min(m, n) rows are linearly dependent.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> wg.grad(lambda a: abs(wg.scipy.linalg.rq(a)[0][1, 1]))(a)
    array([[0., 0.],
           [0., 1.]])
    """
    modes = {"full": "complete", "r": "complete", "economic": "reduced"}
    if mode not in modes:
        raise ArgumentError(
            f"rq of a tensor with mode={mode!r}: the mode must be one of {sorted(modes)}"
            f"{at(user_line())}."
        )
    reversed_adjoint = adjoint(floating(a)[..., ::-1, ::-1])
    q, r = names.qr(reversed_adjoint, modes[mode])
    r = adjoint(r)[..., ::-1, ::-1]
    return r if mode == "r" else (r, adjoint(q)[..., ::-1, ::-1])


@counterpart(scipy.linalg.qr_multiply)
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """The product of a matrix with Q of `a`, and R, as ``scipy.linalg.qr_multiply``.

    Parameters
    ----------
    a : array_like of shape (m, n)
    c : array_like
        A vector or a matrix of matching shape.
    mode : {"right", "left"}
        ``c @ Q``, or ``Q @ c``.
    pivoting : bool, default False
        As for `qr`.
    conjugate : bool, default False
        Whether to multiply with the conjugate of Q.
    overwrite_a, overwrite_c
        Ignored; for compatibility with SciPy.
    """
    if mode not in ("left", "right"):
        raise ArgumentError(
            f"qr_multiply with mode={mode!r}: the mode must be 'left' or 'right'{at(user_line())}."
        )
    c = floating(c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = np.conjugate(q) if conjugate and q.dtype.kind == "c" else q
    if c.shape[0 if mode == "left" or c.ndim == 1 else 1] != q.shape[1 if mode == "left" else 0]:
        raise ShapeError(
            f"qr_multiply of shapes {np.shape(a)} and {c.shape}: c cannot be multiplied by Q of "
            f"shape {q.shape} from the {mode}{at(user_line())}."
        )
    return (q @ c if mode == "left" else c @ q), *rest
