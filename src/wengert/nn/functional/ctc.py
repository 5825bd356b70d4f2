"""Connectionist temporal classification: sequences that are not aligned with their labels.

A network outputs, for each step, log-probabilities of the labels and of a *blank*.  An alignment
has one symbol for each step; it spells the labels that remain when repeated symbols are merged and
blanks are dropped.  The loss is the negative log-probability of all alignments that spell the
target, computed by the forward recursion of Graves et al. in log space, as one `wengert.scan`.

    ctc_loss         the loss
    BlankedTargets   targets with blanks inserted, and the lengths, validated
    log_sum          log(exp(a) + exp(b) + exp(c)); terms may be -inf
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.control_flow import scan
from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import lookup_index, note_lookup
from wengert._engine.core.symbolic.dim import is_symbolic, spelled
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError, at, user_line
from wengert.numpy import arange, full

from .regression_losses import reduced

__all__ = ["ctc_loss"]

_WHAT = "ctc_loss"


class BlankedTargets(NamedTuple):
    """Targets with blanks inserted.

    labels : (batch, 2 * longest + 1); blank, first, blank, second, ..., blank
    skips : the same shape; whether the preceding blank may be skipped
    steps : (batch,); numbers of steps of the log-probabilities
    lengths : (batch,); lengths of the targets
    """

    labels: Any
    skips: Any
    steps: Any
    lengths: Any


def log_sum(*terms: Any) -> Any:
    """The logarithm of a sum of exponentials of arrays of the same shape.

    Where all terms are -inf, the result is -inf with zero derivatives.
    """
    top = terms[0]
    for x in terms[1:]:
        top = np.maximum(top, x)
    top = stop_gradient(top)  # the result does not depend on it
    top = np.where(np.isneginf(top), 0.0, top)
    total = np.exp(terms[0] - top)
    for x in terms[1:]:
        total = total + np.exp(x - top)
    some = value_of(total) > 0
    return np.where(some, np.log(np.where(some, total, 1.0)) + top, -np.inf)


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """The negative log-probability of the target, summed over all alignments.

    Parameters
    ----------
    log_probs : array or Tensor, shape (steps, batch, classes) or (steps, classes)
        Log-probabilities: the result of `log_softmax` along the last axis.
    targets : array of int, shape (batch, longest), (longest,) or (sum of target_lengths,)
        Classes; in the last form the targets are concatenated. Elements after the end of a target
        are ignored.
    input_lengths, target_lengths : array of int, shape (batch,), or int
        The numbers of steps and of labels of each sequence.
    blank : int, default 0
        The class of the blank.
    reduction : {"mean", "sum", "none"}
        "mean" first divides each loss by the length of its target (at least 1), as in PyTorch.
    zero_infinity : bool, default False
        Whether the loss of a target with more labels than steps allow is 0 instead of infinity.

    Returns
    -------
    Tensor or number; shape (batch,) or () with ``reduction="none"``

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        Shapes, dtypes, lengths or classes are invalid.
    TraceError
        Concatenated targets with traced lengths.

    Notes
    -----
    The derivative with respect to `log_probs` is minus the probability of each class at each step
    given the target. (PyTorch's rule adds the softmax, which makes no difference after a
    `log_softmax`.) An infinite loss has derivative 0. Time and memory are proportional to steps *
    batch * (2 * longest + 1); derivatives of any order are supported.

    References
    ----------
    .. [1] A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal
       classification", ICML 2006, section 4.1.

    Examples
    --------
    With two steps, each "a" or blank with probability 1/2, three of four alignments spell "a".

    >>> import numpy as np
    >>> from wengert.nn.functional import ctc_loss
    >>> log_probs = np.log(np.full((2, 1, 2), 0.5))
    >>> round(float(np.exp(-ctc_loss(log_probs, [[1]], [2], [1], reduction="sum"))), 6)
    0.75
    """
    shape = shape_of(log_probs)
    if len(shape) not in (2, 3) or dtype_of(log_probs).kind != "f":
        raise ShapeError(
            f"{_WHAT}: log_probs must be floating-point numbers of shape (steps, batch, classes) "
            f"or (steps, classes), got shape {spelled(shape)} and dtype {dtype_of(log_probs)}"
            f"{at(user_line())}."
        )
    single = len(shape) == 2
    if single:
        log_probs, shape = np.expand_dims(log_probs, 1), (shape[0], 1, shape[1])
    found = _insert_blanks(targets, input_lengths, target_lengths, blank, shape)
    losses = _losses(log_probs, found)
    if zero_infinity:
        losses = np.where(np.isposinf(value_of(losses)), 0.0, losses)
    if single:
        losses = losses[0]
    if reduction == "mean":
        share = np.maximum(found.lengths, 1).astype(dtype_of(losses))
        losses = losses / (share[0] if single else share)
    return reduced(losses, reduction)


def _losses(log_probs: Any, found: BlankedTargets) -> Any:
    """The losses by the forward recursion, shape (batch,)."""
    steps, batch = shape_of(log_probs)[:2]
    width = shape_of(found.labels)[1]
    index = np.broadcast_to(np.expand_dims(found.labels, 0), (steps, batch, width))
    symbols = note_lookup(np.take_along_axis(log_probs, index, axis=2), _WHAT, "classes")
    never = full((batch, width), -np.inf, dtype_of(log_probs))
    # Before the first step no label has been read: the state is the leading blank.
    start = np.where(arange(width) == 0, 0.0, never)

    def advance(before: Any, row: Any) -> tuple[Any, None]:
        symbol, k = row
        one = np.concatenate([never[:, :1], before[:, :-1]], axis=1)
        two = np.concatenate([never[:, :2], before[:, :-2]], axis=1)
        after = log_sum(before, one, np.where(found.skips, two, -np.inf)) + symbol
        return np.where(np.expand_dims(k < found.steps, 1), after, before), None

    last, _ = scan(advance, start, (symbols, arange(steps)))
    ends = np.expand_dims(2 * found.lengths, 1)
    by_blank = np.take_along_axis(last, ends, axis=1)[:, 0]
    by_label = np.take_along_axis(last, np.maximum(ends - 1, 0), axis=1)[:, 0]
    by_label = np.where(found.lengths > 0, by_label, -np.inf)
    return -log_sum(by_blank, by_label)


def _insert_blanks(
    targets: Any, steps: Any, lengths: Any, blank: int, shape: Any
) -> BlankedTargets:
    """Targets with blanks inserted, and lengths; concrete values are validated."""
    maximum, batch, classes = shape
    if isinstance(classes, int) and not 0 <= blank < classes:
        raise ArgumentError(
            f"{_WHAT}: blank={blank}, but there are {classes} classes, numbered from 0"
            f"{at(user_line())}."
        )
    targets, steps, lengths = (
        _integers(x, name)
        for x, name in (
            (targets, "targets"),
            (steps, "input_lengths"),
            (lengths, "target_lengths"),
        )
    )
    steps, lengths = (_per_sequence(x, batch) for x in (steps, lengths))
    targets = _padded(targets, lengths, batch)
    longest = shape_of(targets)[1]
    _check_lengths(steps, maximum, "input_lengths", "steps")
    _check_lengths(lengths, longest, "target_lengths", "labels")
    inside = arange(longest) < np.expand_dims(lengths, 1)
    _check_classes(targets, inside, classes, blank)
    if is_traced(targets):  # checked when the graph runs
        targets = lookup_index(targets, classes)
    targets = np.where(inside, targets, blank)
    before = np.concatenate([full((batch, 1), blank), targets[:, :-1]], axis=1)[:, :longest]
    labels = _interleave(blank, targets, batch, longest)
    skips = _interleave(False, targets != before, batch, longest)
    return BlankedTargets(labels, skips, steps, lengths)


def _interleave(fill: Any, x: Any, batch: Any, longest: Any) -> Any:
    """The columns of x, with a column of `fill` before each and after the last."""
    pairs = np.stack([full((batch, longest), fill), x], axis=2)
    pairs = np.reshape(pairs, (batch, 2 * longest))
    return np.concatenate([pairs, full((batch, 1), fill)], axis=1)


def _integers(x: Any, name: str) -> Any:
    """An array of integers as int64."""
    x = x if is_traced(x) else np.asarray(value_of(x))
    if dtype_of(x).kind not in "iu" and not (isinstance(x, np.ndarray) and x.size == 0):
        raise DtypeError(f"{_WHAT}: {name} must be integers, got {dtype_of(x)}{at(user_line())}.")
    return x.astype(np.int64)


def _per_sequence(lengths: Any, batch: Any) -> Any:
    """One length for each sequence."""
    if shape_of(lengths) == ():
        lengths = np.reshape(lengths, (1,))
    if shape_of(lengths) != (batch,):
        raise ShapeError(
            f"{_WHAT}: expected one length for each of {batch} sequences, got shape "
            f"{spelled(shape_of(lengths))}{at(user_line())}."
        )
    return lengths


def _padded(targets: Any, lengths: Any, batch: Any) -> Any:
    """Targets as (batch, longest)."""
    shape = shape_of(targets)
    if len(shape) == 2 and shape[0] == batch:
        return targets
    if len(shape) == 1 and batch == 1:
        return np.expand_dims(targets, 0)
    if len(shape) == 1 and is_traced(lengths):
        raise TraceError(
            f"{_WHAT}: concatenated targets are not supported with traced lengths. Pad them to "
            f"shape (batch, longest){at(user_line())}."
        )
    if len(shape) != 1 or shape[0] != np.sum(lengths):
        raise ShapeError(
            f"{_WHAT}: targets of {batch} sequences must have shape (batch, longest), or be "
            f"concatenated with length sum(target_lengths), got shape {spelled(shape)}"
            f"{at(user_line())}."
        )
    starts = np.cumsum(lengths) - lengths
    index = starts[:, None] + np.arange(max(lengths, default=0))
    return targets[np.minimum(index, shape[0] - 1)] if shape[0] else np.zeros((batch, 0), np.int64)


def _check_lengths(lengths: Any, maximum: Any, name: str, of: str) -> None:
    if is_traced(lengths) or not isinstance(maximum, int) or not lengths.size:
        return
    if lengths.min() < 0 or lengths.max() > maximum:
        raise ArgumentError(
            f"{_WHAT}: {name} must be from 0 to {maximum}, the number of {of}; got "
            f"{lengths.min()} to {lengths.max()}{at(user_line())}."
        )


def _check_classes(targets: Any, inside: Any, classes: Any, blank: int) -> None:
    if is_traced(targets) or is_traced(inside) or is_symbolic((classes,)):
        return
    used = targets[inside]
    if used.size and (used.min() < 0 or used.max() >= classes or np.any(used == blank)):
        raise ArgumentError(
            f"{_WHAT}: targets with classes from {used.min()} to {used.max()}. There are "
            f"{classes}, numbered from 0; {blank} is the blank, which must not occur in targets"
            f"{at(user_line())}."
        )
