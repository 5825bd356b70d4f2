"""Losses as modules.

    regression       MSELoss (MSE) L1Loss SmoothL1Loss HuberLoss GaussianNLLLoss PoissonNLLLoss
                     KLDivLoss
    classification   CrossEntropyLoss NLLLoss BCEWithLogitsLoss BCELoss SigmoidFocalLoss DiceLoss
    margins          HingeLoss SquaredHingeLoss SoftMarginLoss HingeEmbeddingLoss MultiMarginLoss
                     MultiLabelMarginLoss MultiLabelSoftMarginLoss MarginRankingLoss
                     CosineEmbeddingLoss TripletMarginLoss; CosineSimilarity, PairwiseDistance
    sequences        CTCLoss

They are called with the prediction (or predictions) first and the target last.  Options other than
`reduction` are keyword arguments.  Weights are buffers: they are saved with the model.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from wengert.errors import ArgumentError, at, user_line

from ..functional import classification_losses, margin_losses, regression_losses
from ..functional.ctc import ctc_loss
from ..functional.regression_losses import REDUCTIONS
from ..module import Module
from ..parameter import Buffer

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "DiceLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSE",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SigmoidFocalLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "SquaredHingeLoss",
    "TripletMarginLoss",
]


class _Loss(Module):
    """A loss function as a module, with the reduction and the `options` as attributes.

    The options are the arguments of the function that have defaults.
    """

    function: ClassVar[Any]
    options: ClassVar[dict[str, Any]]
    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        given = inspect.signature(cls.function).parameters.values()
        defaults = {p.name: p.default for p in given if p.default is not p.empty}
        cls.options = {n: default for n, default in defaults.items() if n != "reduction"}

    def __init__(self, reduction: str = "mean", **options: Any) -> None:
        if not isinstance(reduction, str) or reduction not in self.reductions:
            raise ArgumentError(
                f"{type(self).__name__}: reduction must be one of {self.reductions}, got "
                f"{reduction!r}. Other options are keyword arguments{at(user_line())}."
            )
        unknown = sorted(options.keys() - self.options.keys())
        if unknown:
            raise ArgumentError(
                f"{type(self).__name__} has no options {unknown}. Its options are "
                f"{['reduction', *self.options]}{at(user_line())}."
            )
        self.reduction = reduction
        for name, default in self.options.items():
            value = options.get(name, default)
            if name in ("weight", "pos_weight") and value is not None:
                value = Buffer(value)
            setattr(self, name, value)

    def forward(self, *args: Any) -> Any:
        """The loss of the prediction (first) and the target (last)."""
        options = {name: getattr(self, name) for name in self.options}
        return type(self).function(*args, reduction=self.reduction, **options)

    def extra_repr(self) -> str:
        """The reduction, and options that are not the defaults."""
        given = {n: getattr(self, n) for n in self.options}
        changed = [
            f"{n}={'...' if isinstance(v, Buffer) else repr(v)}"
            for n, v in given.items()
            if isinstance(v, Buffer) or v != self.options[n]
        ]
        return ", ".join([f"reduction={self.reduction!r}", *changed])


# ---- regression --------------------------------------------------------------------------------


class MSELoss(_Loss):
    """`functional.mse_loss`: the mean squared difference."""

    function = staticmethod(regression_losses.mse_loss)


MSE = MSELoss


class L1Loss(_Loss):
    """`functional.l1_loss`: the mean absolute difference."""

    function = staticmethod(regression_losses.l1_loss)


class SmoothL1Loss(_Loss):
    """`functional.smooth_l1_loss`: squared below ``beta``, absolute beyond."""

    function = staticmethod(regression_losses.smooth_l1_loss)


class HuberLoss(_Loss):
    """`functional.huber_loss`: squared up to ``delta``, absolute beyond."""

    function = staticmethod(regression_losses.huber_loss)


class GaussianNLLLoss(_Loss):
    """`functional.gaussian_nll_loss`: called with mean, target and variance."""

    function = staticmethod(regression_losses.gaussian_nll_loss)


class PoissonNLLLoss(_Loss):
    """`functional.poisson_nll_loss`: called with the logarithm of the rate, and counts."""

    function = staticmethod(regression_losses.poisson_nll_loss)


class KLDivLoss(_Loss):
    """`functional.kl_div`: called with log-probabilities and probabilities."""

    function = staticmethod(regression_losses.kl_div)
    reductions = (*REDUCTIONS, "batchmean")


# ---- classification ----------------------------------------------------------------------------


class CrossEntropyLoss(_Loss):
    """`functional.cross_entropy`: called with logits and classes or probabilities.

    Options: ``axis``, ``weight``, ``ignore_index``, ``label_smoothing``.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> loss_fn = nn.CrossEntropyLoss()
    >>> round(float(loss_fn(np.array([[0.0, 0.0]]), np.array([0]))), 6)  # log 2
    0.693147
    """

    function = staticmethod(classification_losses.cross_entropy)


class NLLLoss(_Loss):
    """`functional.nll_loss`: called with log-probabilities."""

    function = staticmethod(classification_losses.nll_loss)


class BCEWithLogitsLoss(_Loss):
    """`functional.binary_cross_entropy_with_logits`: called with logits."""

    function = staticmethod(classification_losses.binary_cross_entropy_with_logits)


class BCELoss(_Loss):
    """`functional.binary_cross_entropy`: called with probabilities."""

    function = staticmethod(classification_losses.binary_cross_entropy)


class SigmoidFocalLoss(_Loss):
    """`functional.sigmoid_focal_loss`: called with logits; easy samples have small weights."""

    function = staticmethod(classification_losses.sigmoid_focal_loss)


class DiceLoss(_Loss):
    """`functional.dice_loss`: called with probabilities."""

    function = staticmethod(classification_losses.dice_loss)


# ---- margins -----------------------------------------------------------------------------------


class HingeLoss(_Loss):
    """`functional.hinge_loss`: called with scores and targets of 1 and -1."""

    function = staticmethod(margin_losses.hinge_loss)


class SquaredHingeLoss(_Loss):
    """`functional.squared_hinge_loss`: called with scores and targets of 1 and -1."""

    function = staticmethod(margin_losses.squared_hinge_loss)


class SoftMarginLoss(_Loss):
    """`functional.soft_margin_loss`: called with scores and targets of 1 and -1."""

    function = staticmethod(margin_losses.soft_margin_loss)


class HingeEmbeddingLoss(_Loss):
    """`functional.hinge_embedding_loss`: called with distances and targets of 1 and -1."""

    function = staticmethod(margin_losses.hinge_embedding_loss)


class MultiMarginLoss(_Loss):
    """`functional.multi_margin_loss`: called with scores and one class per sample."""

    function = staticmethod(margin_losses.multi_margin_loss)


class MultiLabelMarginLoss(_Loss):
    """`functional.multilabel_margin_loss`: called with scores and several classes per sample."""

    function = staticmethod(margin_losses.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_Loss):
    """`functional.multilabel_soft_margin_loss`: called with logits and 0 or 1 for each class."""

    function = staticmethod(margin_losses.multilabel_soft_margin_loss)


class MarginRankingLoss(_Loss):
    """`functional.margin_ranking_loss`: called with two scores and 1 or -1."""

    function = staticmethod(margin_losses.margin_ranking_loss)


class CosineEmbeddingLoss(_Loss):
    """`functional.cosine_embedding_loss`: called with two vectors and 1 or -1."""

    function = staticmethod(margin_losses.cosine_embedding_loss)


class TripletMarginLoss(_Loss):
    """`functional.triplet_margin_loss`: called with anchor, positive and negative."""

    function = staticmethod(margin_losses.triplet_margin_loss)


class CosineSimilarity(Module):
    """`functional.cosine_similarity` as a module.

    Parameters
    ----------
    axis : int, default 1
    eps : float, default 1e-8
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        self.axis, self.eps = axis, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The cosine of the angle between vectors along the axis."""
        return margin_losses.cosine_similarity(x1, x2, self.axis, self.eps)


class PairwiseDistance(Module):
    """`functional.pairwise_distance` as a module.

    Parameters
    ----------
    p : float, default 2.0
    eps : float, default 1e-6
    keepdims : bool, default False
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> None:
        self.p, self.eps, self.keepdims = p, eps, keepdims

    def forward(self, x1: Any, x2: Any) -> Any:
        """The p-norm of the difference along the last axis."""
        return margin_losses.pairwise_distance(x1, x2, self.p, self.eps, self.keepdims)


# ---- sequences ---------------------------------------------------------------------------------


class CTCLoss(Module):
    """`functional.ctc_loss` as a module.

    Parameters
    ----------
    blank : int, default 0
        The class of the blank.
    reduction : {"mean", "sum", "none"}
    zero_infinity : bool, default False
        Whether the loss of a target with more labels than steps allow is 0 instead of infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> log_probs = np.log(np.full((5, 2, 3), 1 / 3))  # steps, batch, classes
    >>> loss = nn.CTCLoss(reduction="sum")(log_probs, [[1, 2], [2, 0]], [5, 4], [2, 1])
    >>> round(float(loss), 6)
    4.029577
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ArgumentError(
                f"CTCLoss: reduction must be one of {REDUCTIONS}, got {reduction!r}"
                f"{at(user_line())}."
            )
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """The loss of log-probabilities (steps, batch, classes) and targets (batch, longest)."""
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths,
            self.blank, self.reduction, self.zero_infinity,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The blank and the reduction."""
        return f"blank={self.blank}, reduction={self.reduction!r}"
