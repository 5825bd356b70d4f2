"""Losses for classification, as functions.

    several classes   cross_entropy (from logits), nll_loss (from log-probabilities)
    two classes       binary_cross_entropy_with_logits, binary_cross_entropy (from probabilities),
                      sigmoid_focal_loss, dice_loss

Prefer the functions of logits (any real numbers): probabilities may have underflowed to 0.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import lookup_index, note_lookup
from wengert._engine.core.symbolic.dim import is_symbolic, spelled
from wengert._engine.ops.indexing import getitem
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.numpy import indices

from .activations import log_softmax, sigmoid, softplus
from .regression_losses import reduced, same_shape

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dice_loss",
    "nll_loss",
    "sigmoid_focal_loss",
]


def cross_entropy(
    logits: Any,
    target: Any,
    reduction: str = "mean",
    axis: int = -1,
    weight: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Any:
    """The negative log-likelihood of the target under softmax(logits).

    Parameters
    ----------
    logits : array or Tensor
        One real number for each class along `axis`.
    target : array of int, or array or Tensor of float
        The class of each sample, in the shape of the logits without `axis`; or a probability for
        each class, in the shape of the logits.
    reduction : {"mean", "sum", "none"}
        The mean is over samples.
    axis : int, default -1
        The axis of the classes. (PyTorch uses axis 1; for matrices that is the same.)
    weight : array or Tensor, shape (classes,), optional
        The weight of each class. For integer targets the mean is divided by the sum of the samples'
        weights.
    ignore_index : int, optional
        Samples of this class (such as -100) are ignored, and the mean is over the others. By
        default none are ignored; PyTorch's default is -100.
    label_smoothing : float, default 0.0
        The fraction of the target, from 0 to 1, that is distributed evenly over all classes.

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        A class is out of range.

    Notes
    -----
    The gradient with respect to the logits is softmax(logits) - target, exactly and without
    overflow, because `log_softmax` is one operation. The mean over zero samples is NaN.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.nn.functional import cross_entropy
    >>> logits, target = np.array([[0.0, 0.0]]), np.array([1])
    >>> round(float(cross_entropy(logits, target)), 6)  # log 2
    0.693147
    >>> wg.grad(cross_entropy)(logits, target)
    array([[ 0.5, -0.5]])
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            f"cross_entropy: label_smoothing must be between 0 and 1, got {label_smoothing}"
            f"{at(user_line())}."
        )
    _check_axis(shape_of(logits), axis, "cross_entropy")
    return _class_loss(
        log_softmax(logits, axis),
        target,
        reduction,
        axis,
        weight,
        ignore_index,
        label_smoothing,
        "cross_entropy",
    )


def nll_loss(
    log_probabilities: Any,
    target: Any,
    reduction: str = "mean",
    axis: int = -1,
    weight: Any = None,
    ignore_index: int | None = None,
) -> Any:
    """The negative log-probability of the target.

    Parameters and errors are those of `cross_entropy`, with log-probabilities (from
    `log_softmax`) instead of logits.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import nll_loss
    >>> round(float(nll_loss(np.log([[0.25, 0.75]]), np.array([0]))), 6)  # log 4
    1.386294
    """
    return _class_loss(
        log_probabilities, target, reduction, axis, weight, ignore_index, 0.0, "nll_loss"
    )


def _class_loss(
    logs: Any,
    target: Any,
    reduction: str,
    axis: int,
    weight: Any,
    ignore_index: int | None,
    smoothing: float,
    what: str,
) -> Any:
    shape = shape_of(logs)
    _check_axis(shape, axis, what)
    axis = axis % len(shape)
    given = (shape[axis],) if weight is None else shape_of(weight)
    if len(given) != 1 or (given[0] != shape[axis] and not is_symbolic((*given, shape[axis]))):
        raise ShapeError(
            f"{what}: expected one weight for each of {shape[axis]} classes, got shape "
            f"{spelled(shape_of(weight))}{at(user_line())}."
        )
    classes = value_of(target) if is_traced(target) else np.asarray(value_of(target))
    if classes.dtype.kind in "iu":
        return _integer_target_loss(
            logs, classes, reduction, axis, weight, ignore_index, smoothing, what
        )
    if classes.dtype.kind != "f":
        raise DtypeError(
            f"{what}: the target must have classes as integers or probabilities as floats, got "
            f"{classes.dtype}{at(user_line())}."
        )
    same_shape(logs, target, what)
    if ignore_index is not None:
        raise ArgumentError(
            f"{what}: ignore_index={ignore_index} is not supported for a target of probabilities. "
            f"Leave the samples out, or give classes as integers{at(user_line())}."
        )
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / shape[axis]
    share = target if weight is None else target * _per_class(weight, axis, len(shape))
    return reduced(-np.sum(_times(share, logs), axis=axis), reduction)


def _check_axis(shape: tuple[Any, ...], axis: int, what: str) -> None:
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(
            f"{what}: logits of shape {spelled(shape)} have no axis {axis} of classes"
            f"{at(user_line())}."
        )


def _integer_target_loss(
    logs: Any,
    classes: Any,
    reduction: str,
    axis: int,
    weight: Any,
    ignore_index: int | None,
    smoothing: float,
    what: str,
) -> Any:
    """The loss for integer targets."""
    shape = shape_of(logs)
    rest = shape[:axis] + shape[axis + 1 :]
    if shape_of(classes) != rest:
        raise ShapeError(
            f"{what}: logits of shape {spelled(shape)} with classes on axis {axis} need a target "
            f"of shape {spelled(rest)}, one class for each sample; got shape "
            f"{spelled(shape_of(classes))}. Give axis=, or one probability for each class as "
            f"floats{at(user_line())}."
        )
    included = None if ignore_index is None else classes != ignore_index
    if included is not None:
        classes = np.where(included, classes, np.zeros_like(classes))
    index = _index_of(classes, shape, axis, what)
    read = getitem.read if is_traced(classes) else operator.getitem
    counts = None if weight is None else note_lookup(read(weight, (index[axis],)), what, "classes")
    advice = "Renumber them, or ignore one with ignore_index={}"
    losses = -note_lookup(read(logs, index), what, "classes", advice)
    if counts is not None:
        losses = losses * counts
    if smoothing:
        share = 1.0 if weight is None else _per_class(weight, axis, len(shape))
        spread = -np.sum(_times(share, logs) if weight is not None else logs, axis=axis)
        losses = (1.0 - smoothing) * losses + (smoothing / shape[axis]) * spread
    if included is not None:
        losses = np.where(included, losses, 0.0)
        counts = np.where(included, 1.0 if counts is None else counts, 0.0)
    if reduction == "mean" and counts is not None:
        return np.sum(losses) / np.sum(counts).astype(losses.dtype)
    return reduced(losses, reduction)


def _per_class(weight: Any, axis: int, ndim: int) -> Any:
    """Class weights, reshaped to broadcast along the axis of classes."""
    return np.reshape(weight, (-1,) + (1,) * (ndim - axis - 1))


def _times(share: Any, logs: Any) -> Any:
    """share * logs, with 0 * -inf = 0."""
    impossible = (value_of(share) == 0) & np.isneginf(value_of(logs))
    return share * np.where(impossible, 0.0, logs)


def _index_of(classes: Any, shape: tuple[int, ...], axis: int, what: str) -> tuple[Any, ...]:
    """The index that selects the entry of each sample's class."""
    count = shape[axis]
    make = indices if is_symbolic(classes.shape) else np.indices
    index: list[Any] = list(make(classes.shape, sparse=True))
    if is_traced(classes):  # checked when the graph runs
        index.insert(axis, lookup_index(classes, count))
        return tuple(index)
    if classes.size and (classes.min() < 0 or classes.max() >= count):
        outside = classes.min() if classes.min() < 0 else classes.max()
        raise ArgumentError(
            f"{what}: the target has classes from {classes.min()} to {classes.max()}, but there "
            f"are {count}, numbered from 0. Renumber them, or ignore one with "
            f"ignore_index={outside}{at(user_line())}."
        )
    index.insert(axis, classes)
    return tuple(index)


# ---- two classes -------------------------------------------------------------------------------


def binary_cross_entropy_with_logits(
    logits: Any,
    target: Any,
    reduction: str = "mean",
    weight: Any = None,
    pos_weight: Any = None,
) -> Any:
    """The negative log-likelihood of the target under sigmoid(logits).

    Parameters
    ----------
    logits : array or Tensor
        Any real numbers.
    target : array or Tensor
        0, 1, or a probability; the shape of the logits.
    reduction : {"mean", "sum", "none"}
        The mean is over all elements, regardless of their weights.
    weight : array or Tensor, optional
        The weight of each element; broadcasts to the shape of the logits.
    pos_weight : array or Tensor, optional
        The weight of positive samples relative to negative ones; broadcasts likewise.

    Notes
    -----
    Computed as y softplus(-x) + (1 - y) softplus(x), which is accurate for small losses; the
    gradient is sigmoid(x) - y.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import binary_cross_entropy_with_logits
    >>> loss = binary_cross_entropy_with_logits(np.array([50.0]), np.array([1.0]))
    >>> round(float(loss) * 1e22, 6)  # e**-50
    1.92875
    """
    same_shape(logits, target, "binary_cross_entropy_with_logits")
    yes = target if pos_weight is None else target * pos_weight
    losses = yes * softplus(-logits) + (1.0 - target) * softplus(logits)
    return reduced(_weighted(losses, weight, "binary_cross_entropy_with_logits"), reduction)


def _weighted(losses: Any, weight: Any, what: str) -> Any:
    if weight is None:
        return losses
    product = np.where(value_of(weight) == 0, 0.0, losses * weight)
    if shape_of(product) != shape_of(losses):
        raise ShapeError(
            f"{what}: weights of shape {spelled(shape_of(weight))} do not broadcast to losses of "
            f"shape {spelled(shape_of(losses))}{at(user_line())}."
        )
    return product


def binary_cross_entropy(
    probabilities: Any, target: Any, reduction: str = "mean", weight: Any = None
) -> Any:
    """The negative log-likelihood of the target.

    Parameters
    ----------
    probabilities : array or Tensor
        From 0 to 1. Prefer `binary_cross_entropy_with_logits`: 1 - 1e-17 is 1.
    target : array or Tensor
        0, 1, or a probability; the same shape.
    reduction : {"mean", "sum", "none"}
    weight : array or Tensor, optional
        The weight of each element.

    Notes
    -----
    0 log 0 is 0; the loss is inf if the target has probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import binary_cross_entropy
    >>> loss = binary_cross_entropy(np.array([1.0, 0.5]), np.array([1.0, 0.0]), "sum")
    >>> round(float(loss), 6)  # 0 + log 2
    0.693147
    """
    same_shape(probabilities, target, "binary_cross_entropy")
    p, y = value_of(probabilities), value_of(target)
    # 0 log 0: replaced before the logarithm, so that the derivative is finite.
    yes = np.log(np.where((y == 0) & (p == 0), 1.0, probabilities))
    no = np.log1p(-np.where((y == 1) & (p == 1), 0.0, probabilities))
    losses = -(target * yes + (1.0 - target) * no)
    return reduced(_weighted(losses, weight, "binary_cross_entropy"), reduction)


def sigmoid_focal_loss(
    logits: Any,
    target: Any,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "mean",
) -> Any:
    """Binary cross entropy times a power of the probability of the wrong class.

    Well-classified samples get a small weight, so that hard ones are not dominated by them.

    Parameters
    ----------
    logits : array or Tensor
    target : array or Tensor
        0 or 1; the same shape.
    alpha : float, default 0.25
        The weight of positive samples; negative ones have 1 - alpha. Not used if below 0.
    gamma : float, default 2.0
        The exponent.
    reduction : {"mean", "sum", "none"}

    References
    ----------
    .. [1] T.-Y. Lin et al., "Focal loss for dense object detection", arXiv:1708.02002.
    """
    same_shape(logits, target, "sigmoid_focal_loss")
    losses = target * softplus(-logits) + (1.0 - target) * softplus(logits)
    wrong = target * sigmoid(-logits) + (1.0 - target) * sigmoid(logits)
    losses = losses * wrong**gamma
    if alpha >= 0:
        losses = losses * (alpha * target + (1.0 - alpha) * (1.0 - target))
    return reduced(losses, reduction)


def dice_loss(probabilities: Any, target: Any, reduction: str = "mean", eps: float = 1.0) -> Any:
    """1 - 2 |A and B| / (|A| + |B|) for each sample, for sets given by probabilities.

    Parameters
    ----------
    probabilities, target : array or Tensor, shape (samples, ...)
        From 0 to 1.
    reduction : {"mean", "sum", "none"}
    eps : float, default 1.0
        Added to numerator and denominator, so that the loss of two empty sets is 0.

    References
    ----------
    .. [1] F. Milletari, N. Navab and S.-A. Ahmadi, "V-Net", 3DV 2016, arXiv:1606.04797.
    """
    same_shape(probabilities, target, "dice_loss")
    axis = tuple(range(1, len(shape_of(probabilities))))
    both = np.sum(probabilities * target, axis=axis)
    either = np.sum(probabilities, axis=axis) + np.sum(target, axis=axis)
    return reduced(1.0 - (2.0 * both + eps) / (either + eps), reduction)
