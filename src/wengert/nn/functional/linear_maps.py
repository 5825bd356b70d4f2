"""Linear and bilinear maps.

linear      x @ weight.T + bias
bilinear    x1 @ weight[o] @ x2 + bias[o]
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bilinear", "linear"]


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight.T + bias``.

    Parameters
    ----------
    x : array or Tensor, shape (..., inputs)
    weight : array or Tensor, shape (outputs, inputs)
    bias : array or Tensor, shape (outputs,), optional
    """
    y = np.matmul(x, weight.T)
    return y if bias is None else y + bias


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    """``y[o] = x1 @ weight[o] @ x2 + bias[o]``.

    Parameters
    ----------
    x1 : array or Tensor, shape (..., n)
    x2 : array or Tensor, shape (..., m)
    weight : array or Tensor, shape (outputs, n, m)
    bias : array or Tensor, shape (outputs,), optional
    """
    y = np.einsum("...i,oij,...j->...o", x1, weight, x2)
    return y if bias is None else y + bias
