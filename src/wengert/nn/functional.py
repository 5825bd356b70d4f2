"""The functions behind the layers, under PyTorch's name: ``import wengert.nn.functional as F``.

activations.py   relu, sigmoid, softmax, ...
losses.py        mse_loss, cross_entropy, ...
dropping.py      dropout
attention.py     scaled_dot_product_attention
ctc.py           ctc_loss
here             linear
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .activations import (
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from .attention import scaled_dot_product_attention
from .ctc import ctc_loss
from .dropping import dropout
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    l1_loss,
    mse_loss,
    nll_loss,
)

__all__ = [
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "linear",
    "dropout",
    "scaled_dot_product_attention",
    "ctc_loss",
]


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
