"""A program of a user's, for type checkers: what they know of tensors and transformations.

It is not run.  `make types` checks it with mypy, test_type_checkers.py with pyright.  Each error
that a checker must find is marked ``type: ignore``, and a mark that nothing needs is an error.
"""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import wengert as wg
import wengert.numpy as wnp
from wengert import Tensor, nn, optim

Floats = NDArray[np.float64]


def tensors() -> None:
    """Operators, methods and attributes of Tensor."""
    x, y = wg.tensor([1.0, 2.0], requires_grad=True), Tensor(np.ones(2))
    assert_type(x + y, Tensor)
    assert_type(2.0 * x - 1, Tensor)
    assert_type(x @ y, Tensor)
    assert_type(-(x**2) / y, Tensor)
    assert_type(x < y, Tensor)
    assert_type(x == y, Tensor)
    assert_type(divmod(x, y), tuple[Tensor, Tensor])
    assert_type(x[0], Tensor)
    assert_type(x.T, Tensor)
    assert_type(x.sum(), Tensor)
    assert_type(x.mean(axis=(0, 1), keepdims=True), Tensor)
    assert_type(x.reshape(2, 1).squeeze(-1), Tensor)
    assert_type(x.argsort(), Tensor)
    assert_type(x.nonzero(), tuple[Tensor, ...])
    assert_type(x.astype(np.float32).dtype, np.dtype[Any])
    assert_type(x.ndim, int)
    assert_type(len(x), int)
    assert_type(float(x.sum()), float)
    assert_type(x.grad, Tensor | None)
    assert_type(x.requires_grad_(), Tensor)
    assert_type([row for row in x], list[Tensor])
    assert_type(wg.stop_gradient(x), Tensor)
    x += y
    x[0] = 3.0
    x.sum().backward()
    x.sum(axes=0)  # type: ignore[call-arg]  # the argument is called axis
    x.summe()  # type: ignore[attr-defined]
    np.sin(x)
    wnp.sin(x)


def energy(x: Floats, k: float = 1.0) -> float:
    """A function of an array, and a number that has a default."""
    return float(k * np.sum(x * x))


@wg.jit
def doubled(x: Floats) -> Floats:
    """Compiled, with the signature of the function."""
    return 2 * x


@wg.jit(static_argnames="n")
def scaled(x: Floats, n: int) -> Floats:
    """Compiled by the decorator with options."""
    return n * x


def transformations(x: Floats) -> None:
    """`jit`, `grad` and `vmap` keep what a function takes."""
    assert_type(doubled(x), Floats)
    assert_type(scaled(x, n=3), Floats)
    assert_type(wg.jit(energy)(x, k=2.0), float)
    assert_type(wg.vmap(scaled)(x, 3), Floats)
    assert_type(wg.value_and_grad(energy)(x)[0], float)
    assert_type(wg.checkpoint(energy)(x), float)
    wg.grad(energy)(x, k=2.0)
    wg.hessian(energy, argnums=0)(x)
    wg.jit(wg.grad(energy))(x)
    wg.jacobian(np.sin)(x)
    doubled.lower(x)
    doubled(x, 1)  # type: ignore[call-arg]
    scaled(x, m=3)  # type: ignore[call-arg]
    wg.grad(energy)("a")  # type: ignore[arg-type]
    wg.jit(energy)(x, j=1)  # type: ignore[call-arg]


def modules() -> None:
    """Public modules are known, also those that stand elsewhere."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    optim.Adam(model.parameters(), lr=0.1)
    wg.backends.report  # noqa: B018 - known to checkers
    wg.show.to_svg(wg.tensor(1.0))
    wg.trace(energy)
    with wg.debug(nan=True):
        pass
