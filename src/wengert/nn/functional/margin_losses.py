"""Margin losses, and distances and similarities of vectors.

    score and sign         hinge_loss, squared_hinge_loss, soft_margin_loss, hinge_embedding_loss
    score for each class   multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss
    pairs and triplets     margin_ranking_loss, cosine_embedding_loss, triplet_margin_loss
    vectors                cosine_similarity, pairwise_distance, pdist

The derivative at the margin itself is 0, that of relu at 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import lookup_index, note_lookup
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.elementwise.exponential import log_sigmoid, softplus
from wengert._engine.ops.elementwise.selection import relu
from wengert._engine.ops.indexing import getitem
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.numpy import arange

from .regression_losses import reduced, same_shape

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "hinge_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "pairwise_distance",
    "pdist",
    "soft_margin_loss",
    "squared_hinge_loss",
    "triplet_margin_loss",
]


def _check_signs(target: Any, what: str) -> None:
    """Check that all targets are 1 or -1."""
    if is_traced(target):
        return
    y = np.asarray(value_of(target))
    if y.size and not np.all(np.abs(y) == 1):
        raise ArgumentError(
            f"{what}: targets must be 1 or -1, got {y[np.abs(y) != 1].flat[0]}. Convert 0 and 1 by "
            f"2 * y - 1{at(user_line())}."
        )


# ---- score and sign ----------------------------------------------------------------------------


def hinge_loss(prediction: Any, target: Any, reduction: str = "mean", margin: float = 1.0) -> Any:
    """max(0, margin - y x): 0 for scores that are correct by at least the margin.

    Parameters
    ----------
    prediction : array or Tensor
        Scores.
    target : array or Tensor
        1 or -1; the same shape.
    reduction : {"mean", "sum", "none"}
    margin : float, default 1.0

    Raises
    ------
    ShapeError
        The shapes differ.
    ArgumentError
        A target is neither 1 nor -1.
    """
    same_shape(prediction, target, "hinge_loss")
    _check_signs(target, "hinge_loss")
    return reduced(relu(margin - target * prediction), reduction)


def squared_hinge_loss(
    prediction: Any, target: Any, reduction: str = "mean", margin: float = 1.0
) -> Any:
    """The square of `hinge_loss` for each element. Parameters and errors are the same."""
    same_shape(prediction, target, "squared_hinge_loss")
    _check_signs(target, "squared_hinge_loss")
    return reduced(np.square(relu(margin - target * prediction)), reduction)


def soft_margin_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + exp(-y x)), without overflow. Parameters and errors are those of `hinge_loss`."""
    same_shape(prediction, target, "soft_margin_loss")
    _check_signs(target, "soft_margin_loss")
    return reduced(softplus(-(target * prediction)), reduction)


def hinge_embedding_loss(
    prediction: Any, target: Any, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    """The distance x where y is 1, and max(0, margin - x) where y is -1.

    Parameters
    ----------
    prediction : array or Tensor
        Distances.
    target : array or Tensor
        1 for similar pairs, -1 for dissimilar ones; the same shape.
    margin : float, default 1.0
    reduction : {"mean", "sum", "none"}
    """
    same_shape(prediction, target, "hinge_embedding_loss")
    _check_signs(target, "hinge_embedding_loss")
    together = value_of(target) == 1
    return reduced(np.where(together, prediction, relu(margin - prediction)), reduction)


# ---- score for each class ----------------------------------------------------------------------


def _check_scores(prediction: Any, what: str) -> tuple[Any, ...]:
    shape = shape_of(prediction)
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"{what}: scores must have shape (samples, classes) or (classes,), got "
            f"{spelled(shape)}{at(user_line())}."
        )
    return shape


def multi_margin_loss(
    prediction: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Any:
    """The mean over wrong classes i of max(0, margin - x[y] + x[i])**p, times (n - 1) / n.

    Parameters
    ----------
    prediction : array or Tensor, shape (samples, n) or (n,)
        Scores.
    target : array of int, shape (samples,) or ()
        The class of each sample.
    p : {1, 2}, default 1
    margin : float, default 1.0
    weight : array or Tensor, shape (n,), optional
        The weight of each class.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        A class is out of range, or `p` is neither 1 nor 2.
    """
    shape = _check_scores(prediction, "multi_margin_loss")
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p must be 1 or 2, got {p}{at(user_line())}.")
    is_target = _target_mask(target, shape, "multi_margin_loss")
    right = np.sum(np.where(is_target, prediction, 0.0), axis=-1, keepdims=True)
    terms = relu(margin - right + prediction)
    terms = np.where(is_target, 0.0, terms if p == 1 else np.square(terms))
    if weight is not None:
        terms = terms * np.sum(np.where(is_target, weight, 0.0), axis=-1, keepdims=True)
    return reduced(np.sum(terms, axis=-1) * (1.0 / shape[-1]), reduction)


def _target_mask(target: Any, shape: tuple[Any, ...], what: str) -> Any:
    """Booleans of the shape of the scores: whether each class is the target."""
    y = value_of(target) if is_traced(target) else np.asarray(value_of(target))
    if y.dtype.kind not in "iu":
        raise DtypeError(
            f"{what}: the target must have classes as integers, got {y.dtype}{at(user_line())}."
        )
    if shape_of(y) != shape[:-1]:
        raise ShapeError(
            f"{what}: scores of shape {spelled(shape)} need a target of shape "
            f"{spelled(shape[:-1])}, got {spelled(shape_of(y))}{at(user_line())}."
        )
    count = shape[-1]
    if not is_traced(y) and y.size and (y.min() < 0 or y.max() >= count):
        raise ArgumentError(
            f"{what}: the target has classes from {y.min()} to {y.max()}, but there are {count}, "
            f"numbered from 0{at(user_line())}."
        )
    return np.expand_dims(_checked(y, count, what), -1) == np.arange(count)


def _checked(classes: Any, count: Any, what: str) -> Any:
    """The same classes; if traced, they are checked when the graph runs."""
    if not is_traced(classes):
        return classes
    return note_lookup(getitem.read(arange(count), lookup_index(classes, count)), what, "classes")


def multilabel_margin_loss(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """The sum over right classes j and wrong ones i of max(0, 1 - x[j] + x[i]), divided by n.

    Parameters
    ----------
    prediction : array or Tensor, shape (samples, n) or (n,)
        Scores.
    target : array of int, the same shape
        Each row has the right classes first, then -1; elements after -1 are ignored.
    reduction : {"mean", "sum", "none"}
    """
    shape = _check_scores(prediction, "multilabel_margin_loss")
    same_shape(prediction, target, "multilabel_margin_loss")
    y = np.asarray(value_of(target)) if not is_traced(target) else value_of(target)
    before = np.cumsum(y < 0, axis=-1) == 0  # before the first -1
    if not is_traced(y) and np.any(before & (y >= shape[-1])):
        raise ArgumentError(
            f"multilabel_margin_loss: the target has class {y[before].max()}, but there are "
            f"{shape[-1]}, numbered from 0{at(user_line())}."
        )
    labels = _checked(np.where(before, y, 0), shape[-1], "multilabel_margin_loss")
    named = np.expand_dims(np.where(before, labels, -1), -1) == np.arange(shape[-1])
    right = np.any(named, axis=-2)
    pairs = np.expand_dims(right, -1) & ~np.expand_dims(right, -2)
    differences = 1.0 - np.expand_dims(prediction, -1) + np.expand_dims(prediction, -2)
    terms = np.where(pairs, relu(differences), 0.0)
    return reduced(np.sum(terms, axis=(-2, -1)) * (1.0 / shape[-1]), reduction)


def multilabel_soft_margin_loss(
    prediction: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Any:
    """The mean over classes of the binary cross entropy of logits.

    Parameters
    ----------
    prediction : array or Tensor, shape (..., n)
        Logits.
    target : array or Tensor, the same shape
        1 for the right classes, 0 for the others.
    weight : array or Tensor, shape (n,), optional
    reduction : {"mean", "sum", "none"}
    """
    same_shape(prediction, target, "multilabel_soft_margin_loss")
    terms = -(target * log_sigmoid(prediction) + (1.0 - target) * log_sigmoid(-prediction))
    if weight is not None:
        terms = terms * weight
    return reduced(np.mean(terms, axis=-1), reduction)


# ---- pairs and triplets ------------------------------------------------------------------------


def margin_ranking_loss(
    x1: Any, x2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """max(0, margin - y (x1 - x2)), where y states which score should be larger.

    Parameters
    ----------
    x1, x2 : array or Tensor
        Scores, of the same shape.
    target : array or Tensor
        1 where x1 should be larger, -1 where x2 should.
    margin : float, default 0.0
    reduction : {"mean", "sum", "none"}
    """
    same_shape(x1, x2, "margin_ranking_loss")
    same_shape(x1, target, "margin_ranking_loss")
    _check_signs(target, "margin_ranking_loss")
    return reduced(relu(margin - target * (x1 - x2)), reduction)


def cosine_embedding_loss(
    x1: Any, x2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """1 - cos(x1, x2) where y is 1, and max(0, cos(x1, x2) - margin) where y is -1.

    Parameters
    ----------
    x1, x2 : array or Tensor, shape (samples, n) or (n,)
    target : array or Tensor, shape (samples,) or ()
        1 for similar pairs, -1 for dissimilar ones.
    margin : float, default 0.0
        From -1 to 1.
    reduction : {"mean", "sum", "none"}
    """
    same_shape(x1, x2, "cosine_embedding_loss")
    _check_signs(target, "cosine_embedding_loss")
    if shape_of(target) != shape_of(x1)[:-1]:
        raise ShapeError(
            f"cosine_embedding_loss: vectors of shape {spelled(shape_of(x1))} need a target of "
            f"shape {spelled(shape_of(x1)[:-1])}, got {spelled(shape_of(target))}{at(user_line())}."
        )
    eps = 1e-12  # added to each squared norm, as in PyTorch
    product = np.sum(x1 * x2, axis=-1)
    squares = (np.sum(x1 * x1, axis=-1) + eps) * (np.sum(x2 * x2, axis=-1) + eps)
    cosine = product / np.sqrt(squares)
    together = value_of(target) == 1
    return reduced(np.where(together, 1.0 - cosine, relu(cosine - margin)), reduction)


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the p-norm distance.

    Parameters
    ----------
    anchor, positive, negative : array or Tensor, shape (..., n)
        Of the same shape.
    margin : float, default 1.0
    p : float, default 2.0
    eps : float, default 1e-6
        Added to each difference.
    swap : bool, default False
        Whether to use d(positive, negative) where it is less than d(anchor, negative).
    reduction : {"mean", "sum", "none"}

    References
    ----------
    .. [1] V. Balntas et al., "Learning local feature descriptors with triplets and shallow
       convolutional neural networks", BMVC 2016.
    """
    same_shape(anchor, positive, "triplet_margin_loss")
    same_shape(anchor, negative, "triplet_margin_loss")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = np.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(relu(near - far + margin), reduction)


# ---- vectors -----------------------------------------------------------------------------------


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False
) -> Any:
    """The p-norm of x1 - x2 + eps along the last axis.

    Parameters
    ----------
    x1, x2 : array or Tensor, shape (..., n)
    p : float, default 2.0
    eps : float, default 1e-6
        Makes the derivative exist where x1 = x2.
    keepdims : bool, default False
    """
    return np.linalg.norm(x1 - x2 + eps, ord=p, axis=-1, keepdims=keepdims)


def pdist(x: Any, p: float = 2.0) -> Any:
    """The p-norm distances of all pairs of rows i < j, in the order of `scipy.spatial`'s `pdist`.

    Parameters
    ----------
    x : array or Tensor, shape (m, n)
    p : float, default 2.0
        From 0 (the number of different elements) to infinity.

    Returns
    -------
    array or Tensor, shape (m (m - 1) / 2,)
        The derivative of the distance of equal rows is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.pdist(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    array([5.        , 1.        , 4.24264069])
    """
    shape = shape_of(x)
    if len(shape) != 2 or not isinstance(shape[0], int):
        raise ShapeError(
            f"pdist: expected shape (m, n), with a known number of rows, got {spelled(shape)}"
            f"{at(user_line())}."
        )
    if not p >= 0.0:
        raise ArgumentError(f"pdist: p must not be negative, got {p}{at(user_line())}.")
    first, second = np.triu_indices(shape[0], 1)
    apart = np.take(x, first, axis=0) - np.take(x, second, axis=0)
    if p == 0.0:
        return np.sum(np.not_equal(apart, 0.0), axis=-1).astype(dtype_of(x))
    return np.linalg.norm(apart, ord=p, axis=-1)


def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along an axis.

    Parameters
    ----------
    x1, x2 : array or Tensor
        Broadcast to a common shape, including the axis: a vector of length 1 is repeated.
    axis : int, default 1
        An axis of the common shape.
    eps : float, default 1e-8
        Lower bound of the norms.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> float(F.cosine_similarity(np.ones(4), np.ones(1), axis=0))
    1.0
    """
    shapes = shape_of(x1), shape_of(x2)
    if shapes[0] != shapes[1]:
        x1, x2 = np.broadcast_arrays(x1, x2)
    one = np.maximum(np.linalg.norm(x1, axis=axis), eps)
    two = np.maximum(np.linalg.norm(x2, axis=axis), eps)
    return np.sum(x1 * x2, axis=axis) / (one * two)
