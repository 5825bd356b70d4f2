"""Regression losses, and helpers of all losses.

    differences             mse_loss, l1_loss, smooth_l1_loss, huber_loss
    distributions           gaussian_nll_loss, poisson_nll_loss, kl_div
    for all losses          reduced, same_shape

Other losses are in classification_losses.py, margin_losses.py and ctc.py.

Names and order of arguments are PyTorch's: the prediction first, the target second.  `reduction`
is "mean", "sum" or "none".  All losses are compositions of operations, so derivatives of any order,
also with respect to targets, need no rules here.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import is_symbolic, spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

__all__ = [
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]

REDUCTIONS = ("mean", "sum", "none")


def reduced(losses: Any, reduction: str, weight: Any = None) -> Any:
    """The mean or the sum of losses, or the losses themselves.

    Each loss is multiplied by its weight, and the mean is divided by the sum of weights. Where a
    weight is 0, the loss is 0 even if it is NaN.

    Raises
    ------
    ArgumentError
        The reduction is unknown.
    """
    if weight is not None:
        losses = np.where(value_of(weight) == 0, 0.0, losses * weight)
        if reduction == "mean":
            return np.sum(losses) / np.sum(np.broadcast_to(weight, shape_of(losses)))
    if reduction == "mean":
        return np.mean(losses)
    if reduction == "sum":
        return np.sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(
        f"reduction must be one of {REDUCTIONS}, got {reduction!r}{at(user_line())}."
    )


def same_shape(prediction: Any, target: Any, what: str) -> None:
    """Check that prediction and target have the same shape."""
    given, wanted = shape_of(prediction), shape_of(target)
    if given != wanted:
        named = ""
        if is_symbolic((*given, *wanted)) and len(given) == len(wanted):
            named = ", or give equal sizes one name"
        raise ShapeError(
            f"{what}: the prediction has shape {spelled(given)}, the target {spelled(wanted)}. "
            "They must be equal, because broadcasting would compare all pairs: reshape one of them"
            f"{named}{at(user_line())}."
        )


# ---- differences -------------------------------------------------------------------------------


def mse_loss(prediction: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The squared difference, by default its mean over all elements.

    Parameters
    ----------
    prediction, target : array or Tensor
        Of the same shape.
    reduction : {"mean", "sum", "none"}
    weight : array, optional
        Weights of the elements, broadcast to their shape; elements of weight 0 are ignored. The
        mean is divided by the sum of weights.

    Raises
    ------
    ShapeError
        The shapes differ, even if they would broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import mse_loss
    >>> float(mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    same_shape(prediction, target, "mse_loss")
    return reduced(np.square(prediction - target), reduction, weight)


def l1_loss(prediction: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The absolute difference, by default its mean over all elements; the derivative at 0 is 0.

    Parameters and errors are those of `mse_loss`.
    """
    same_shape(prediction, target, "l1_loss")
    return reduced(np.absolute(prediction - target), reduction, weight)


def smooth_l1_loss(
    prediction: Any,
    target: Any,
    reduction: str = "mean",
    beta: float = 1.0,
    weight: Any = None,
) -> Any:
    """d**2 / (2 beta) where |d| < beta, else |d| - beta / 2, for differences d.

    Parameters are those of `mse_loss`, and

    beta : float, default 1.0
        Not negative; with 0 this is `l1_loss`.

    References
    ----------
    .. [1] R. Girshick, "Fast R-CNN", ICCV 2015, arXiv:1504.08083.
    """
    same_shape(prediction, target, "smooth_l1_loss")
    if not beta >= 0:
        raise ArgumentError(
            f"smooth_l1_loss: beta must not be negative, got {beta}{at(user_line())}."
        )
    if beta == 0:
        return l1_loss(prediction, target, reduction, weight)
    return reduced(_parabola(prediction - target, beta) * (1.0 / beta), reduction, weight)


def huber_loss(
    prediction: Any,
    target: Any,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Any = None,
) -> Any:
    """d**2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for differences d.

    Parameters are those of `mse_loss`, and

    delta : float, default 1.0
        Positive.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964)
       73-101.
    """
    same_shape(prediction, target, "huber_loss")
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}{at(user_line())}.")
    return reduced(_parabola(prediction - target, delta), reduction, weight)


def _parabola(d: Any, width: float) -> Any:
    """d**2 / 2 where |d| < width, else its tangent."""
    size = np.absolute(d)
    inside = value_of(size) < width
    near = np.where(inside, d, 0.0)  # large differences are not squared: no overflow
    return np.where(inside, 0.5 * near * near, width * (size - 0.5 * width))


# ---- distributions -----------------------------------------------------------------------------


def gaussian_nll_loss(
    prediction: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """The negative log-density of a Gaussian with predicted mean and variance.

    Parameters
    ----------
    prediction, target : array or Tensor
        The predicted mean and the observation, of the same shape.
    var : array or Tensor
        The predicted variance, not negative; of the same shape, or without the last axis, or with
        a last axis of length 1.
    full : bool, default False
        Whether to add the constant log(2 pi) / 2.
    eps : float, default 1e-6
        Lower bound of the variance; below it the derivative with respect to the variance is 0.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        A variance is negative.
    """
    same_shape(prediction, target, "gaussian_nll_loss")
    shape, given = shape_of(prediction), shape_of(var)
    if given != shape and given == shape[:-1]:
        var = np.expand_dims(var, -1)
    elif given not in ((), shape, (*shape[:-1], 1)):
        raise ShapeError(
            f"gaussian_nll_loss: variances of shape {spelled(given)} for predictions of shape "
            f"{spelled(shape)}. Give one for each element, or for each row{at(user_line())}."
        )
    if not is_traced(var) and np.any(np.asarray(value_of(var)) < 0):
        raise ArgumentError(
            "gaussian_nll_loss: a variance is negative. Predict its logarithm, and pass its "
            f"exponential{at(user_line())}."
        )
    var = np.maximum(var, eps)
    losses = 0.5 * (np.log(var) + np.square(prediction - target) / var)
    return reduced(losses + 0.5 * log(2.0 * pi) if full else losses, reduction)


def poisson_nll_loss(
    prediction: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Any:
    """The negative log-probability of a count under a Poisson distribution.

    Parameters
    ----------
    prediction, target : array or Tensor
        The logarithm of the rate, and the count, of the same shape.
    log_input : bool, default True
        If False, the prediction is the rate itself.
    full : bool, default False
        Whether to add log(target!), which does not depend on the prediction, in Stirling's
        approximation, for counts above 1.
    eps : float, default 1e-8
        Added to the rate before the logarithm if `log_input` is False.
    reduction : {"mean", "sum", "none"}
    """
    same_shape(prediction, target, "poisson_nll_loss")
    if log_input:
        losses = np.exp(prediction) - target * prediction
    else:
        losses = prediction - target * np.log(prediction + eps)
    if full:
        large = value_of(target) > 1
        count = np.where(large, target, 2.0)
        stirling = count * np.log(count) - count + 0.5 * np.log(2.0 * pi * count)
        losses = losses + np.where(large, stirling, 0.0)
    return reduced(losses, reduction)


def kl_div(prediction: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """The terms of the Kullback-Leibler divergence, target (log(target) - prediction).

    Parameters
    ----------
    prediction : array or Tensor
        Log-probabilities.
    target : array or Tensor
        Probabilities, or log-probabilities with `log_target`; the same shape.
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean", the sum divided by the length of the first axis, is the divergence; "mean"
        divides by the number of elements.
    log_target : bool, default False

    Notes
    -----
    0 log 0 is 0.
    """
    same_shape(prediction, target, "kl_div")
    if log_target:
        impossible = np.isneginf(value_of(target))
        logs = np.where(impossible, 0.0, target)
        terms = np.where(impossible, 0.0, np.exp(logs) * (logs - prediction))
    else:
        impossible = value_of(target) == 0
        some = np.where(impossible, 1.0, target)
        terms = np.where(impossible, 0.0, some * (np.log(some) - prediction))
    if reduction == "batchmean":
        shape = shape_of(prediction)
        return np.sum(terms) / (shape[0] if shape else 1)
    return reduced(terms, reduction)
