"""Losses of classes: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

Classes are on axis 1.  The mean is weighted by the weights of the classes; elements whose class is
`ignore_index` have weight zero, and are not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.numpy import take, take_along_axis  # of known arrays at unknown positions, too

from .node_view import NodeView
from .registry import imports


def _loss(n: NodeView, logs: Any, target: Any, weight: Any) -> Any:
    """The loss of log-probabilities."""
    ignored = n.get("ignore_index")
    known = None if ignored is None else np.not_equal(target, ignored)
    classes = target if known is None else np.where(known, target, 0)
    picked = take_along_axis(logs, np.expand_dims(classes, 1), axis=1)
    loss = -np.squeeze(picked, axis=1)
    share = None if weight is None else take(weight, classes)
    if known is not None:
        share = np.where(known, 1 if share is None else share, 0).astype(logs.dtype)
        loss = np.where(known, loss, 0)
    if share is not None:
        loss = loss * share
    how = n.get("reduction", "mean")
    if how == "none":
        return loss
    total = np.sum(loss)
    if how == "sum":
        return total
    return np.mean(loss) if share is None else total / np.sum(share)


@imports("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(n: NodeView, logs: Any, target: Any, weight: Any = None) -> Any:
    return _loss(n, logs, target, weight)


@imports("SoftmaxCrossEntropyLoss")
def _cross_entropy(n: NodeView, scores: Any, target: Any, weight: Any = None) -> Any:
    logs = lookup("log_softmax")(scores, axis=1)
    return _loss(n, logs, target, weight), logs
