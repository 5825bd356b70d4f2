"""The functions behind the layers, under PyTorch's name: ``import wengert.nn.functional as F``.

activations            relu, sigmoid, softmax ...
attention              scaled_dot_product_attention
conv                   conv1d ... conv_transpose3d
pooling                max_pool1d ... adaptive_avg_pool3d
by_dimension           1d, 2d and 3d versions from one definition
window_options         kernel sizes, strides, padding and dilation
dropouts               dropout, alpha_dropout ...
normalization          batch_norm, layer_norm ...
resampling             interpolate, pixel_shuffle
regression_losses      mse_loss, l1_loss, huber_loss ...
classification_losses  cross_entropy, nll_loss, binary_cross_entropy ...
margin_losses          hinge_loss, triplet_margin_loss ...; distances and similarities
ctc                    ctc_loss
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import public_dir

from ..layers.embedding import embedding, one_hot
from .activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsigmoid,
    maxout,
    mish,
    prelu,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    swish,
    tanh,
    tanhshrink,
    threshold,
)
from .attention import scaled_dot_product_attention
from .classification_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    dice_loss,
    nll_loss,
    sigmoid_focal_loss,
)
from .conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .ctc import ctc_loss
from .dropouts import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d
from .margin_losses import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    hinge_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    soft_margin_loss,
    squared_hinge_loss,
    triplet_margin_loss,
)
from .normalization import batch_norm, group_norm, instance_norm, layer_norm, normalize, rms_norm
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .regression_losses import (
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from .resampling import interpolate, pixel_shuffle, pixel_unshuffle

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
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
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "logsigmoid",
    "maxout",
    "mish",
    "prelu",
    "relu6",
    "rrelu",
    "selu",
    "softmin",
    "softshrink",
    "softsign",
    "swish",
    "tanhshrink",
    "threshold",
    "dice_loss",
    "sigmoid_focal_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "hinge_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "pairwise_distance",
    "soft_margin_loss",
    "squared_hinge_loss",
    "triplet_margin_loss",
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "normalize",
    "rms_norm",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "embedding",
    "one_hot",
    "bilinear",
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


__dir__ = public_dir(__name__)
