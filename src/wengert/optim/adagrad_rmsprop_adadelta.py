"""Adagrad, RMSprop and Adadelta: per-coordinate learning rates from past gradients.

    Adagrad     s <- s + |g|^2                 p <- p - lr g / (sqrt(s) + eps)
    RMSprop     s <- a s + (1 - a) |g|^2       p <- p - lr g / (sqrt(s) + eps)
    Adadelta    s as RMSprop's                 c = -g sqrt(d + eps) / sqrt(s + eps)
                d <- a d + (1 - a) |c|^2       p <- p + lr c

RMSprop has two variants: *centered* replaces s by the variance s - |m|^2, with m the running mean
of g; *momentum* applies momentum to the quotients, as SGD to gradients.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .optimizer import Optimizer, Options, State, require
from .state import as_like, flush_subnormals


def squared(g: Any) -> Any:
    """|g|^2, real."""
    return g * g if g.dtype.kind != "c" else (g * g.conj()).real


class Adagrad(Optimizer):
    """Learning rates divided by the root of the sum of all squared gradients.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 0.01
        The learning rate of the first step.
    lr_decay : float, default 0
        The learning rate of step k is ``lr / (1 + (k - 1) * lr_decay)``.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    initial_accumulator_value : float, default 0
        Initial value of the sums.
    eps : float, default 1e-10
        Added to the denominator.

    References
    ----------
    .. [1] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 12 (2011) 2121-2159.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adagrad([p], lr=0.1)
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy().round(6)
    array([ 0.9, -1.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )

    def check(self, options: Options) -> None:
        """Refuse options outside their range."""
        super().check(options)
        for name in ("lr_decay", "initial_accumulator_value", "eps"):
            require(options, name, lambda x: x >= 0, "at least 0", self)

    def begin(self, p: Any, options: Options) -> State:
        """The initial sums."""
        return {"step": 0, "sum": np.full_like(p.real, options["initial_accumulator_value"])}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the gradient over the root of the sum of squares."""
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        rate = options["lr"]
        if options["lr_decay"]:
            rate = rate / as_like(1 + state["step"] * options["lr_decay"], g.real)
        state["step"] += 1
        state["sum"] = state["sum"] + squared(g)
        return -rate * g / (np.sqrt(state["sum"]) + options["eps"])


class RMSprop(Optimizer):
    """Learning rates divided by the root of a running mean of squared gradients.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 0.01
        The learning rate.
    alpha : float, default 0.99
        Decay rate of the running mean.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    momentum : float, default 0
        Share of the previous step that is added.
    centered : bool, default False
        Divide by the standard deviation instead of the root mean square.

    References
    ----------
    .. [1] T. Tieleman and G. Hinton, "Neural networks for machine learning", lecture 6.5, 2012.
    .. [2] A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850,
       equations 38 to 45: the centered variant.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.RMSprop([p], lr=0.01)
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy().round(6)
    array([ 0.9, -1.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
        )

    def check(self, options: Options) -> None:
        """Refuse options outside their range."""
        super().check(options)
        require(options, "eps", lambda x: x >= 0, "at least 0", self)
        require(options, "alpha", lambda x: 0 <= x <= 1, "from 0 to 1", self)
        require(options, "momentum", lambda x: x >= 0, "at least 0", self)

    def begin(self, p: Any, options: Options) -> State:
        """Zero means and velocity."""
        state: State = {"square": np.zeros_like(p.real)}
        if options["centered"]:
            state["mean"] = np.zeros_like(p)
        if options["momentum"]:
            state["velocity"] = np.zeros_like(p)
        return state

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the gradient over its root mean square or standard deviation."""
        lr, a, momentum = options["lr"], options["alpha"], options["momentum"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        size = state["square"] = flush_subnormals(a * state["square"] + (1 - a) * squared(g))
        if options["centered"]:
            state["mean"] = flush_subnormals(a * state["mean"] + (1 - a) * g)
            # Rounding can make the variance negative if all gradients are equal.
            size = np.maximum(size - squared(state["mean"]), 0)
        change = g / (np.sqrt(size) + options["eps"])
        if momentum:
            change = state["velocity"] = flush_subnormals(momentum * state["velocity"] + change)
        return -lr * change


class Adadelta(Optimizer):
    """Steps scaled to the size of past steps, so that no learning rate has to be chosen.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 1
        Factor of the step.
    rho : float, default 0.9
        Decay rate of the running means.
    eps : float, default 1e-6
        Added to both mean squares; determines the size of the first steps.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.

    References
    ----------
    .. [1] M. D. Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adadelta([p])
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy().round(6)
    array([ 0.996838, -1.996838])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)

    def check(self, options: Options) -> None:
        """Refuse options outside their range."""
        super().check(options)
        require(options, "rho", lambda x: 0 <= x <= 1, "from 0 to 1", self)
        require(options, "eps", lambda x: x > 0, "above 0", self)

    def begin(self, p: Any, options: Options) -> State:
        """Zero mean squares of gradients and of steps."""
        return {"square": np.zeros_like(p.real), "moved": np.zeros_like(p.real)}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the gradient, scaled to the root mean square of past steps."""
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        state["square"] = flush_subnormals(rho * state["square"] + (1 - rho) * squared(g))
        change = -g * (np.sqrt(state["moved"] + eps) / np.sqrt(state["square"] + eps))
        state["moved"] = flush_subnormals(rho * state["moved"] + (1 - rho) * squared(change))
        return options["lr"] * change
