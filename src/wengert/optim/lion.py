"""Lion: steps of constant size in the direction of the sign of a momentum.

c = b1 m + (1 - b1) g
p <- p - lr (sign(c) + weight_decay p)
m <- b2 m + (1 - b2) g
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .optimizer import Optimizer, Options, State, require
from .state import flush_subnormals


class Lion(Optimizer):
    """Steps in the direction of the sign of a mean gradient, with half the state of Adam.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 0.0001
        The length of a step in each coordinate; typically a third to a tenth of Adam's.
    betas : (float, float), default (0.9, 0.99)
        Weight of the mean in a step, and decay rate of the mean.
    weight_decay : float, default 0
        Decoupled weight decay: ``lr * weight_decay * p`` is subtracted in addition.

    References
    ----------
    .. [1] X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023,
       arXiv:2302.06675.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Lion([p], lr=0.1)
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy()
    array([ 0.9, -1.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay)

    def check(self, options: Options) -> None:
        """Raise for options outside their range."""
        super().check(options)
        require(
            options,
            "betas",
            lambda x: len(x) == 2 and all(0 <= b <= 1 for b in x),
            "two numbers from 0 to 1",
            self,
        )

    def begin(self, p: Any, options: Options) -> State:
        """Zero mean."""
        return {"mean": np.zeros_like(p)}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the sign of the mean, plus weight decay."""
        b1, b2 = options["betas"]
        change = np.sign(b1 * state["mean"] + (1 - b1) * g)
        if options["weight_decay"]:
            change = change + options["weight_decay"] * p
        state["mean"] = flush_subnormals(b2 * state["mean"] + (1 - b2) * g)
        return -options["lr"] * change
