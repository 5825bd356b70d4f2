"""Gradient clipping, and exponential moving averages of parameters.

    clip_grad_norm_   scale all gradients to a maximal common norm
    clip_grad_value_  clip each element to a range
    EMA               averages of the parameters, a <- decay a + (1 - decay) p after each step

Names and arguments of clipping are PyTorch's.  All are made of ordinary operations, so they compile
as part of a step (`wengert.jit`).

The averages are variables, so `update` can be part of a compiled step.  `applied` replaces the
parameters by their averages in a block, for evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.recording import current_trace, no_grad
from wengert._engine.graphs.built_by_hand import variable
from wengert.errors import ArgumentError, NotFiniteError, ShapeError, StructureError, at, user_line

from .state import as_like, write

__all__ = ["EMA", "clip_grad_norm_", "clip_grad_value_"]


@no_grad()
def clip_grad_norm_(
    parameters: Iterable[Any],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Any:
    """Scale all gradients by one factor, so that their common norm is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are skipped.
    max_norm : float
        The largest norm allowed, positive.
    norm_type : float, default 2
        The order p of the norm (sum |g|^p)^(1/p), at least 1; ``inf`` for the largest element.
    error_if_nonfinite : bool, default False
        Raise if the norm is NaN or infinite. Otherwise gradients become NaN then, or zero beside
        an infinite one, as in PyTorch.

    Returns
    -------
    numpy.float64, or Tensor while a graph is built
        The norm before clipping.

    Raises
    ------
    ArgumentError
        `max_norm` is not positive, or `norm_type` below 1.
    NotFiniteError
        The norm is not finite, with `error_if_nonfinite`; not in compiled functions, where values
        are unknown during tracing (there apply `wengert.debug.guard` to the returned norm).

    Notes
    -----
    Squares are summed in float64, so that they do not overflow for float32 gradients. The factor
    is ``max_norm / norm`` if the norm exceeds `max_norm`, else exactly 1. *Cost*: two passes over
    the gradients.

    References
    ----------
    .. [1] R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
       networks", ICML 2013, arXiv:1211.5063.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, 1.0], requires_grad=True)
    >>> np.sum(p * np.array([3.0, 4.0])).backward()
    >>> float(optim.clip_grad_norm_([p], max_norm=1.0))
    5.0
    >>> p.grad.numpy()
    array([0.6, 0.8])
    """
    if not max_norm > 0:
        raise ArgumentError(
            f"clip_grad_norm_(max_norm={max_norm}): max_norm must be above 0. Change it"
            f"{at(user_line())}."
        )
    if not norm_type >= 1:
        raise ArgumentError(
            f"clip_grad_norm_(norm_type={norm_type}): norm_type must be at least 1. Use 1, 2 or "
            f"inf, for example{at(user_line())}."
        )
    owners = _with_gradient(parameters, "clip_grad_norm_")
    if not owners:
        return np.float64(0.0)
    norm = _norm([value_of(p.grad) for p in owners], float(norm_type))
    if error_if_nonfinite and not is_traced(norm) and not np.isfinite(norm):
        raise NotFiniteError(
            f"clip_grad_norm_: the norm of the gradients is {norm}. Locate the operation that "
            f"causes it with wengert.debug(nan=True, inf=True){at(user_line())}."
        )
    # Not min(1, max/norm), which divides by a norm of 0 and hides NaN.
    with np.errstate(invalid="ignore"):
        factor = np.where(norm <= max_norm, 1.0, max_norm / np.where(norm == 0, 1.0, norm))
    for p in owners:
        g = value_of(p.grad)
        with np.errstate(invalid="ignore"):
            p.grad = g * factor.astype(g.real.dtype)
    return norm


def _norm(gradients: list[Any], order: float) -> Any:
    """The common norm, in float64."""
    sizes = [np.absolute(g).astype(np.float64) for g in gradients if g.size]
    if not sizes:
        return np.float64(0.0)
    if order == np.inf:
        largest = [np.max(size) for size in sizes]
        total = largest[0]
        for other in largest[1:]:
            total = np.maximum(total, other)
        return total
    if order == 1.0:
        return sum(np.sum(size) for size in sizes)
    if order == 2.0:
        return np.sqrt(sum(np.sum(np.square(size)) for size in sizes))
    return sum(np.sum(size**order) for size in sizes) ** (1.0 / order)


@no_grad()
def clip_grad_value_(parameters: Iterable[Any], clip_value: float) -> None:
    """Clip every element of every gradient to [-clip_value, clip_value].

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are skipped.
    clip_value : float
        At least 0.

    Raises
    ------
    ArgumentError
        A negative value, or complex gradients, which have no order.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, 1.0], requires_grad=True)
    >>> np.sum(p * np.array([3.0, -0.5])).backward()
    >>> optim.clip_grad_value_([p], 1.0)
    >>> p.grad.numpy()
    array([ 1. , -0.5])
    """
    if not clip_value >= 0:
        raise ArgumentError(
            f"clip_grad_value_(clip_value={clip_value}): clip_value must be at least 0. Change it"
            f"{at(user_line())}."
        )
    for p in _with_gradient(parameters, "clip_grad_value_"):
        g = value_of(p.grad)
        if g.dtype.kind == "c":
            raise ArgumentError(
                f"clip_grad_value_: complex numbers ({g.dtype}) are not ordered. Use "
                f"clip_grad_norm_{at(user_line())}."
            )
        p.grad = np.clip(g, -clip_value, clip_value)


def _with_gradient(parameters: Any, what: str) -> list[Any]:
    entries: list[Any] = [parameters] if isinstance(parameters, Handle) else list(parameters)
    for p in entries:
        if not isinstance(p, Handle):
            raise ArgumentError(
                f"{what} was given a {type(p).__name__} as a parameter. Pass model.parameters()"
                f"{at(user_line())}."
            )
    return [p for p in entries if p.grad is not None]


# ---- moving averages ---------------------------------------------------------------------------


class EMA:
    """Exponential moving averages of parameters.

    Parameters
    ----------
    parameters : iterable of Tensor
        Their current values are the initial averages.
    decay : float, default 0.999
        Weight of the old average in an update, in [0, 1).
    warmup : bool, default False
        Use the decay ``min(decay, (1 + n) / (10 + n))`` in update n, which reduces the weight of
        the initial values.

    Raises
    ------
    ArgumentError
        No parameters, something that is not a tensor, or a decay outside its range.

    References
    ----------
    .. [1] B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by
       averaging", SIAM J. Control Optim. 30 (1992) 838-855, doi:10.1137/0330046.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([0.0], requires_grad=True)
    >>> average = optim.EMA([p], decay=0.5)
    >>> for value in (4.0, 8.0):
    ...     p.data = np.array([value])
    ...     average.update()
    >>> with average.applied():
    ...     print(p.numpy())
    [5.]
    >>> p.numpy()
    array([8.])
    """

    def __init__(
        self, parameters: Iterable[Any], decay: float = 0.999, warmup: bool = False
    ) -> None:
        given: list[Any] = [parameters] if isinstance(parameters, Handle) else list(parameters)
        self.parameters = given
        if not self.parameters:
            raise ArgumentError(
                f"EMA was given no parameters. Pass model.parameters(){at(user_line())}."
            )
        for p in self.parameters:
            if not isinstance(p, Handle):
                raise ArgumentError(
                    f"EMA was given a {type(p).__name__} as a parameter. Pass model.parameters()"
                    f"{at(user_line())}."
                )
        if not 0 <= decay < 1:
            raise ArgumentError(
                f"EMA(decay={decay}): decay must be in [0, 1). Change it{at(user_line())}."
            )
        self.decay, self.warmup = float(decay), bool(warmup)
        self.averages = [_variable(value_of(p)) for p in self.parameters]
        self.count = _variable(0)

    @no_grad()
    def update(self) -> None:
        """Update the averages with the current parameters."""
        keep: Any = self.decay
        if self.warmup:
            n = value_of(self.count)
            keep = np.minimum(self.decay, (1.0 + n) / (10.0 + n))
        for average, p in zip(self.averages, self.parameters, strict=True):
            a = value_of(average)
            share = as_like(1.0 - keep, a.real) if self.warmup else 1.0 - keep
            write(average, a + share * (value_of(p) - a))
        write(self.count, value_of(self.count) + 1)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Context manager that sets the parameters to their averages, and restores them."""
        if current_trace() is not None:
            raise StructureError(
                "EMA.applied() was called while a graph is built, where parameters have no values "
                f"to replace. Call the compiled function inside the block{at(user_line())}."
            )
        before = [np.array(value_of(p)) for p in self.parameters]
        try:
            self.copy_to()
            yield
        finally:
            for p, value in zip(self.parameters, before, strict=True):
                p.data = value

    def copy_to(self) -> None:
        """Set the parameters to their averages."""
        for p, average in zip(self.parameters, self.averages, strict=True):
            p.data = np.array(value_of(average))

    def state_dict(self) -> dict[str, Any]:
        """The averages, in order, and the number of updates."""
        averages = [np.array(value_of(a)) for a in self.averages]
        return {"averages": averages, "count": int(value_of(self.count))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises
        ------
        StructureError
            The number of parameters differs. Nothing is changed.
        ShapeError
            A shape differs. Nothing is changed.
        """
        averages = list(state["averages"])
        if len(averages) != len(self.averages):
            raise StructureError(
                f"EMA.load_state_dict: the state has {len(averages)} parameters, this EMA has "
                f"{len(self.averages)}. Load the state of the same model{at(user_line())}."
            )
        for number, (mine, other) in enumerate(zip(self.averages, averages, strict=True)):
            if np.shape(other) != mine.shape:
                raise ShapeError(
                    f"EMA.load_state_dict: parameter {number} has shape {np.shape(other)} in the "
                    f"state and {mine.shape} here. Load the state of the same model"
                    f"{at(user_line())}."
                )
        with no_grad():
            for mine, other in zip(self.averages, averages, strict=True):
                write(mine, np.asarray(other))
            write(self.count, np.asarray(int(state["count"])))

    def __repr__(self) -> str:
        count = int(value_of(self.count))
        more = ", warmup=True" if self.warmup else ""
        number = len(self.parameters)
        return f"EMA(decay={self.decay}{more}, {number} parameters, {count} updates)"


def _variable(value: Any) -> Any:
    return variable(np.array(value), "average", differentiable=False)
