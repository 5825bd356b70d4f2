"""SGD, Adam, AdamW and Lion: steps by moving averages of the gradient.

    v <- momentum v + g    (v is g at the first step)
    p <- p - lr v          or, with nesterov, p - lr (g + momentum v)

    m <- b1 m + (1 - b1) g          running mean of the gradient
    v <- b2 v + (1 - b2) |g|^2      running mean of its square
    p <- p - lr m' / (sqrt(v') + eps)

with m' = m / (1 - b1^k), v' = v / (1 - b2^k) at step k: both means start at zero, and the
division removes the bias toward it.

c = b1 m + (1 - b1) g
p <- p - lr (sign(c) + weight_decay p)
m <- b2 m + (1 - b2) g
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError, at, user_line
from .adagrad_rmsprop_adadelta import squared
from .optimizer import Optimizer, Options, State, require
from .state import as_like, flush_subnormals


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
