"""Adam and AdamW: steps scaled by moving averages of the gradient and of its square.

    m <- b1 m + (1 - b1) g          running mean of the gradient
    v <- b2 v + (1 - b2) |g|^2      running mean of its square
    p <- p - lr m' / (sqrt(v') + eps)

with m' = m / (1 - b1^k), v' = v / (1 - b2^k) at step k: both means start at zero, and the
division removes the bias toward it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .adagrad_rmsprop_adadelta import squared
from .optimizer import Optimizer, Options, State, require
from .state import as_like, flush_subnormals


class Adam(Optimizer):
    """Adam, with the bias correction of the paper.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 0.001
        The learning rate: roughly the length of a step in each coordinate.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running means of the gradient and of its square.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient. `AdamW` shrinks the parameter instead.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015,
       arXiv:1412.6980.

    Examples
    --------
    The first step has length `lr` for a gradient of any size:

    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adam([p], lr=0.1)
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy().round(6)
    array([ 0.9, -1.9])
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def check(self, options: Options) -> None:
        """Raise for options outside their range."""
        super().check(options)
        require(options, "eps", lambda x: x >= 0, "at least 0", self)
        require(
            options,
            "betas",
            lambda x: len(x) == 2 and all(0 <= b < 1 for b in x),
            "two numbers in [0, 1)",
            self,
        )

    def begin(self, p: Any, options: Options) -> State:
        """Zero means."""
        return {"step": 0, "mean": np.zeros_like(p), "square": np.zeros_like(p.real)}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the mean gradient over the root of the mean square."""
        lr, (b1, b2), decay = options["lr"], options["betas"], options["weight_decay"]
        if decay and not self.decoupled:
            g = g + decay * p
        state["step"] += 1
        state["mean"] = flush_subnormals(b1 * state["mean"] + (1 - b1) * g)
        square = squared(g)
        state["square"] = flush_subnormals(b2 * state["square"] + (1 - b2) * square)
        # Both bias corrections are scalars: no extra pass over the elements.
        rate = lr / as_like(1 - b1 ** state["step"], square)
        scale = 1 / as_like(np.sqrt(1 - b2 ** state["step"]), square)
        change = -rate * state["mean"] / (scale * np.sqrt(state["square"]) + options["eps"])
        return change - lr * decay * p if decay and self.decoupled else change


class AdamW(Adam):
    """Adam with decoupled weight decay: ``lr * weight_decay * p`` is subtracted in addition.

    Parameters are those of `Adam`; ``weight_decay`` is 0.01 by default.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019,
       arXiv:1711.05101.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)
