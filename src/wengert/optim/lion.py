"""Lion: steps of constant size, by the sign of a momentum of gradients.

c = b1 m + (1 - b1) g
p <- p - lr (sign(c) + weight_decay p)
m <- b2 m + (1 - b2) g
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .optimizer import Optimizer, Options, State, require
from .state import settled


class Lion(Optimizer):
    """Steps by the sign of a mean gradient; remembers half of what Adam does.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule, default 0.0001
        The length of a step in each coordinate; a third to a tenth of what serves Adam.
    betas : (float, float), default (0.9, 0.99)
        How much of the mean goes into a step, and how slowly the mean changes.
    weight_decay : float, default 0
        Shrinks the parameter by ``lr * weight_decay * p`` beside the step.

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
        """Refuse options outside their range."""
        super().check(options)
        require(
            options,
            "betas",
            lambda x: len(x) == 2 and all(0 <= b <= 1 for b in x),
            "two numbers from 0 to 1",
            self,
        )

    def begin(self, p: Any, options: Options) -> State:
        """The mean is zero."""
        return {"mean": np.zeros_like(p)}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the sign of the mean, and what decay takes."""
        b1, b2 = options["betas"]
        change = np.sign(b1 * state["mean"] + (1 - b1) * g)
        if options["weight_decay"]:
            change = change + options["weight_decay"] * p
        state["mean"] = settled(b2 * state["mean"] + (1 - b2) * g)
        return -options["lr"] * change
