"""Gradient clipping, between `backward` and `step`.

    clip_grad_norm_    all gradients together shortened to a length
    clip_grad_value_   each element kept within a range

PyTorch's names and arguments.  Both are ordinary lines of the program, so a compiled step
(`wengert.jit`) contains them, and loses no call to Python by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.recording import no_grad
from wengert.errors import ArgumentError, NotFiniteError, at, user_line

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


@no_grad()
def clip_grad_norm_(
    parameters: Iterable[Any],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Any:
    """Shorten all gradients by one factor, so that their common norm is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are passed over.
    max_norm : float
        Above 0.
    norm_type : float, default 2
        The order p of the norm (sum |g|^p)^(1/p), at least 1; ``inf`` for the largest element.
    error_if_nonfinite : bool, default False
        Raise where the norm is NaN or infinite. Without it, gradients become NaN, or zero beside
        an infinite one, as in PyTorch.

    Returns
    -------
    float64 number, or Tensor while a graph is built
        The norm before clipping.

    Raises
    ------
    ArgumentError
        `max_norm` is not above 0, or `norm_type` below 1.
    NotFiniteError
        The norm is not finite, if asked; not in compiled functions, whose numbers are known only
        when they run (there `wengert.debug.guard` the norm that is returned).

    Notes
    -----
    Squares are summed in float64, so that gradients of float32 do not overflow. The factor is
    ``max_norm / norm`` where the norm is larger, and exactly 1 elsewhere. *Cost*: two passes over
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
            f"clip_grad_norm_(max_norm={max_norm}): a norm is above 0. Change it{at(user_line())}."
        )
    if not norm_type >= 1:
        raise ArgumentError(
            f"clip_grad_norm_(norm_type={norm_type}): below 1 it is not a norm. Take 1, 2 or inf"
            f"{at(user_line())}."
        )
    owners = _with_gradient(parameters, "clip_grad_norm_")
    if not owners:
        return np.float64(0.0)
    norm = _norm([value_of(p.grad) for p in owners], float(norm_type))
    if error_if_nonfinite and not is_traced(norm) and not np.isfinite(norm):
        raise NotFiniteError(
            f"clip_grad_norm_: the norm of the gradients is {norm}. Look where that begins "
            f"(wengert.debug(nan=True, inf=True)){at(user_line())}."
        )
    # A choice, and not min(1, max/norm): a norm of 0 divides nothing, and NaN stays visible.
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
    """Keep every element of every gradient from ``-clip_value`` to ``clip_value``.

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are passed over.
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
            f"clip_grad_value_(clip_value={clip_value}): it is at least 0. Change it"
            f"{at(user_line())}."
        )
    for p in _with_gradient(parameters, "clip_grad_value_"):
        g = value_of(p.grad)
        if g.dtype.kind == "c":
            raise ArgumentError(
                f"clip_grad_value_: a gradient of {g.dtype} has no order. Take clip_grad_norm_"
                f"{at(user_line())}."
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
