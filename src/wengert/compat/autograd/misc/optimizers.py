"""sgd, rmsprop and adam, as functions.

Each takes ``grad(x, i)``, an initial value (any container of numbers and arrays), and a
``callback(x, i, g)`` that is called before each step; it returns the final value.  `wengert.optim`
has more optimizers, as objects with state.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .flatten import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], None] | None


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Make an optimizer of vectors an optimizer of containers (a decorator)."""

    @functools.wraps(optimize)
    def of_containers(
        grad: Gradient, x0: Any, callback: Callback = None, *args: Any, **kwargs: Any
    ) -> Any:
        vector, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(flat_grad, vector, flat_callback, *args, **kwargs))

    return of_containers


def _steps(grad: Gradient, x: list[Any], callback: Any, num_iters: int) -> Iterator[Any]:
    """The number and gradient of each step; the caller updates ``x[0]``."""
    for i in range(num_iters):
        g = grad(x[0], i)
        callback(x[0], i, g)
        yield i, g


@unflatten_optimizer
def sgd(
    grad: Gradient,
    x: Any,
    callback: Any = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Gradient descent with momentum.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.misc.optimizers import sgd
    >>> loss = lambda x, i: np.sum((x - 3.0) ** 2)
    >>> bool(np.allclose(sgd(grad(loss), np.zeros(2)), 3.0, atol=1e-3))
    True
    """
    velocity, at = np.zeros_like(x), [x]
    for _, g in _steps(grad, at, callback, num_iters):
        velocity = mass * velocity - (1.0 - mass) * g
        at[0] = at[0] + step_size * velocity
    return at[0]


@unflatten_optimizer
def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps along the gradient divided by its root mean square.

    T. Tieleman and G. Hinton, lecture 6.5 of Neural Networks for Machine Learning, 2012.
    """
    mean_square, at = np.ones_like(x), [x]
    for _, g in _steps(grad, at, callback, num_iters):
        mean_square = gamma * mean_square + (1.0 - gamma) * g**2
        at[0] = at[0] - step_size * g / (np.sqrt(mean_square) + eps)
    return at[0]


@unflatten_optimizer
def adam(
    grad: Gradient,
    x: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam: D. P. Kingma and J. Ba, arXiv:1412.6980, algorithm 1."""
    first, second, at = np.zeros_like(x), np.zeros_like(x), [x]
    for i, g in _steps(grad, at, callback, num_iters):
        first = (1.0 - b1) * g + b1 * first
        second = (1.0 - b2) * g**2 + b2 * second
        m, v = first / (1.0 - b1 ** (i + 1)), second / (1.0 - b2 ** (i + 1))
        at[0] = at[0] - step_size * m / (np.sqrt(v) + eps)
    return at[0]
