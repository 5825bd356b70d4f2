"""SGD: gradient descent, optionally with momentum.

v <- momentum v + g          (v is g at the first step)
p <- p - lr v                or, with nesterov, p - lr (g + momentum v)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError, at, user_line
from .optimizer import Optimizer, Options, State, require
from .state import flush_subnormals


class SGD(Optimizer):
    """Gradient descent, optionally with momentum or Nesterov momentum.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        See `Optimizer`.
    lr : float or schedule
        The learning rate.
    momentum : float, default 0
        Share of the previous step that is added, from 0 to 1.
    nesterov : bool, default False
        Use Nesterov momentum.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient: the gradient of half the squared norm.

    Raises
    ------
    ArgumentError
        An option outside its range, or `nesterov` without momentum.

    References
    ----------
    .. [1] I. Sutskever et al., "On the importance of initialization and momentum in deep
       learning", ICML 2013.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.SGD([p], lr=0.1)
    >>> np.sum(p * p).backward()
    >>> optimizer.step()
    >>> p.numpy()
    array([ 0.8, -1.6])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay
        )

    def check(self, options: Options) -> None:
        """Raise for options outside their range."""
        super().check(options)
        require(options, "momentum", lambda x: 0 <= x <= 1, "from 0 to 1", self)
        if options["nesterov"] and options["momentum"] == 0:
            raise ArgumentError(
                "SGD(nesterov=True, momentum=0): Nesterov momentum needs a momentum. Set it, to "
                f"0.9 for example{at(user_line())}."
            )

    def begin(self, p: Any, options: Options) -> State:
        """Zero velocity, with momentum."""
        return {"velocity": np.zeros_like(p)} if options["momentum"] else {}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """-lr times the gradient, or times the velocity with momentum."""
        lr, momentum, decay = options["lr"], options["momentum"], options["weight_decay"]
        if decay:
            g = g + decay * p
        if not momentum:
            return -lr * g
        v = state["velocity"] = flush_subnormals(momentum * state["velocity"] + g)
        return -lr * (g + momentum * v) if options["nesterov"] else -lr * v
