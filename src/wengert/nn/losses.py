"""Losses, as plain functions: how far predictions are from what was observed.

    of numbers        mse_loss, l1_loss
    of classes        cross_entropy (from logits), nll_loss (from log-probabilities)
    of yes and no     binary_cross_entropy_with_logits, binary_cross_entropy (from probabilities)

PyTorch's names and order: the prediction first, the target second.  `reduction` is "mean", "sum"
or "none".  The classifying losses start from logits (any real numbers) where they can: from
probabilities, what has underflowed to 0 cannot be told apart any more.

Everything is composed of operations, so upstream gradients, targets that are tensors, and higher
orders need no rules here.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.dims import is_symbolic, spelled
from ..core.handle import is_traced, shape_of, value_of
from ..errors import ArgumentError, DtypeError, ShapeError, at, user_line
from ..numpy import indices
from ..ops import indexing
from .activations import log_softmax, softplus

REDUCTIONS = ("mean", "sum", "none")


def reduced(losses: Any, reduction: str) -> Any:
    """The mean or the sum of losses, or the losses themselves.

    Raises
    ------
    ArgumentError
        An unknown reduction.
    """
    if reduction == "mean":
        return np.mean(losses)
    if reduction == "sum":
        return np.sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(
        f"reduction={reduction!r} is not one of {REDUCTIONS}. Choose one{at(user_line())}."
    )


def _same_shape(prediction: Any, target: Any, what: str) -> None:
    given, wanted = shape_of(prediction), shape_of(target)
    if given != wanted:
        named = ""
        if is_symbolic((*given, *wanted)) and len(given) == len(wanted):
            named = ", or give equal sizes one name"
        raise ShapeError(
            f"{what}: the prediction has shape {spelled(given)}, the target {spelled(wanted)}. "
            "Broadcasting them would compare everything with everything: reshape one of them"
            f"{named}{at(user_line())}."
        )


def mse_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """The squared difference, by default its mean over all elements.

    Parameters
    ----------
    prediction, target : array or Tensor
        Of the same shape.
    reduction : {"mean", "sum", "none"}

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
    _same_shape(prediction, target, "mse_loss")
    return reduced(np.square(prediction - target), reduction)


def l1_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """The absolute difference, by default its mean over all elements; derivative 0 at 0.

    Parameters and errors are those of `mse_loss`.
    """
    _same_shape(prediction, target, "l1_loss")
    return reduced(np.absolute(prediction - target), reduction)


def cross_entropy(logits: Any, target: Any, reduction: str = "mean", axis: int = -1) -> Any:
    """Minus the logarithm of the probability that softmax(logits) gives to the target.

    Parameters
    ----------
    logits : array or Tensor
        One number for each class along `axis`; any real numbers.
    target : array of int, or array or Tensor of float
        The class of each sample, in the shape of the logits without `axis`; or a probability for
        each class, in the shape of the logits.
    reduction : {"mean", "sum", "none"}
        The mean is over samples.
    axis : int, default -1
        Where the classes are. (PyTorch has them on axis 1; for matrices that is the same.)

    Raises
    ------
    ShapeError
        The shapes do not fit together.
    ArgumentError
        A class that does not exist.

    Notes
    -----
    The gradient by the logits is softmax(logits) - target, exactly and without overflow, because
    `log_softmax` is one operation.

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
    return nll_loss(log_softmax(logits, axis), target, reduction, axis, _what="cross_entropy")


def nll_loss(
    log_probabilities: Any,
    target: Any,
    reduction: str = "mean",
    axis: int = -1,
    _what: str = "nll_loss",
) -> Any:
    """Minus the given log-probability of the target.

    Parameters and errors are those of `cross_entropy`, with log-probabilities (from
    `log_softmax`) in the place of logits.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import nll_loss
    >>> round(float(nll_loss(np.log([[0.25, 0.75]]), np.array([0]))), 6)  # log 4
    1.386294
    """
    shape = shape_of(log_probabilities)
    axis = axis % len(shape) if shape else axis
    rest = shape[:axis] + shape[axis + 1 :]
    classes = value_of(target) if is_traced(target) else np.asarray(value_of(target))
    if classes.dtype.kind in "iu":
        if classes.shape != rest:
            raise ShapeError(
                f"{_what}: logits of shape {spelled(shape)} with classes on axis {axis} need one "
                f"class for each sample, shape {spelled(rest)}, but the target has shape "
                f"{spelled(classes.shape)}. Give "
                f"axis=, or one probability for each class as floats{at(user_line())}."
            )
        index = _index_of(classes, shape, axis, _what)
        read = indexing.read if is_traced(classes) else operator.getitem
        return reduced(-read(log_probabilities, index), reduction)
    if classes.dtype.kind != "f":
        raise DtypeError(
            f"{_what}: a target of {classes.dtype}. Give classes as integers or probabilities as "
            f"floats{at(user_line())}."
        )
    _same_shape(log_probabilities, target, _what)
    # A class of probability 0 contributes 0 whatever its logarithm is, also if that is -inf.
    impossible = (classes == 0) & np.isneginf(value_of(log_probabilities))
    terms = target * np.where(impossible, 0.0, log_probabilities)
    return reduced(-np.sum(terms, axis=axis), reduction)


def _index_of(classes: Any, shape: tuple[int, ...], axis: int, what: str) -> tuple[Any, ...]:
    """The index that picks, for each sample, the entry of its class."""
    count = shape[axis]
    make = indices if is_symbolic(classes.shape) else np.indices
    index: list[Any] = list(make(classes.shape, sparse=True))
    if is_traced(classes):  # one that does not exist is an error when the graph runs
        index.insert(axis, np.where(classes < 0, count, classes))
        return tuple(index)
    if classes.size and (classes.min() < 0 or classes.max() >= count):
        raise ArgumentError(
            f"{what}: the target names classes from {classes.min()} to {classes.max()}, but there "
            f"are {count}, numbered from 0. Renumber them{at(user_line())}."
        )
    index.insert(axis, classes)
    return tuple(index)


def binary_cross_entropy_with_logits(logits: Any, target: Any, reduction: str = "mean") -> Any:
    """Minus the logarithm of the probability that sigmoid(logits) gives to the target.

    Parameters
    ----------
    logits : array or Tensor
        Any real numbers.
    target : array or Tensor
        0, 1, or a probability between them; the shape of the logits.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    Computed as y softplus(-x) + (1 - y) softplus(x), which keeps all digits of small losses; the
    gradient is sigmoid(x) - y.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import binary_cross_entropy_with_logits
    >>> loss = binary_cross_entropy_with_logits(np.array([50.0]), np.array([1.0]))
    >>> round(float(loss) * 1e22, 6)  # e**-50
    1.92875
    """
    _same_shape(logits, target, "binary_cross_entropy_with_logits")
    return reduced(target * softplus(-logits) + (1.0 - target) * softplus(logits), reduction)


def binary_cross_entropy(probabilities: Any, target: Any, reduction: str = "mean") -> Any:
    """Minus the logarithm of the probability given to the target.

    Parameters
    ----------
    probabilities : array or Tensor
        From 0 to 1. Prefer `binary_cross_entropy_with_logits`: 1 - 1e-17 is 1.
    target : array or Tensor
        0, 1, or a probability between them; the same shape.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    0 log 0 is 0; what was called impossible and happened costs inf.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import binary_cross_entropy
    >>> loss = binary_cross_entropy(np.array([1.0, 0.5]), np.array([1.0, 0.0]), "sum")
    >>> round(float(loss), 6)  # 0 + log 2
    0.693147
    """
    _same_shape(probabilities, target, "binary_cross_entropy")
    p, y = value_of(probabilities), value_of(target)
    # The point where 0 log 0 is taken to be 0 is replaced before the logarithm and not after, so
    # that no derivative meets the infinity.
    yes = np.log(np.where((y == 0) & (p == 0), 1.0, probabilities))
    no = np.log1p(-np.where((y == 1) & (p == 1), 0.0, probabilities))
    return reduced(-(target * yes + (1.0 - target) * no), reduction)
