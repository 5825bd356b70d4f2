"""Recurrent cells: one step of a recurrent layer, as a formula and as a module.

    step_of            the formulas by name: "tanh" and "relu" (plain), "gru", "lstm"
    GATES              the number of gates of each, stacked in its weights
    uniform_weights    initial weights of all recurrent layers
    RNNCell GRUCell LSTMCell     the modules

The contribution of the input, ``x @ weight_ih.T + bias_ih``, is an argument of a step: for a whole
sequence it is one product, computed before the loop (recurrent.py).  Names, shapes and the
order of gates are PyTorch's (plain; reset, update, new; in, forget, cell, out), so that its weights
load.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.elementwise.exponential import sigmoid
from wengert._engine.ops.elementwise.selection import relu
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import zeros

from .. import init
from ..functional import linear
from ..module import Module
from ..parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]

Step = Callable[..., tuple[Any, ...]]
GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}


def uniform_weights(shape: tuple[int, ...], hidden: int, rng: Any, dtype: Any) -> Parameter:
    """Uniform between -1/sqrt(hidden) and 1/sqrt(hidden), PyTorch's initial weights and biases."""
    return Parameter(init.uniform(shape, 1.0 / sqrt(max(1, hidden)), rng, dtype))


def part(z: Any, k: int, hidden: int) -> Any:
    """Gate k of several that are concatenated on the last axis."""
    return z[..., k * hidden : (k + 1) * hidden]


def _tanh(z: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    return (np.tanh(z + linear(state[0], weight, bias)),)


def _relu(z: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    return (relu(z + linear(state[0], weight, bias)),)


def _gru(z: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    (h,) = state
    n = shape_of(h)[-1]
    y = linear(h, weight, bias)
    both = sigmoid(z[..., : 2 * n] + y[..., : 2 * n])
    reset, update = part(both, 0, n), part(both, 1, n)
    new = np.tanh(part(z, 2, n) + reset * part(y, 2, n))
    return (new + update * (h - new),)


def _lstm(z: Any, state: tuple[Any, ...], weight: Any, bias: Any) -> tuple[Any, ...]:
    h, c = state
    n = shape_of(c)[-1]
    z = z + linear(h, weight, bias)
    c = sigmoid(part(z, 1, n)) * c + sigmoid(part(z, 0, n)) * np.tanh(part(z, 2, n))
    return sigmoid(part(z, 3, n)) * np.tanh(c), c


_STEPS: dict[str, Step] = {"tanh": _tanh, "relu": _relu, "gru": _gru, "lstm": _lstm}


def step_of(kind: str) -> Step:
    """The formula of one step.

    Its arguments are the contribution of the input, (..., gates * hidden); the state, a tuple of
    arrays; the hidden weight, (gates * hidden, hidden); and the bias or None.  It returns the next
    state, whose first array is the output.
    """
    return _STEPS[kind]


def nonlinearity_of(name: str, what: str) -> str:
    """The kind of a plain recurrent layer, checked.

    Raises
    ------
    ArgumentError
        The name is neither "tanh" nor "relu".
    """
    if name not in ("tanh", "relu"):
        raise ArgumentError(
            f"{what}: nonlinearity must be 'tanh' or 'relu', got {name!r}{at(user_line())}."
        )
    return name


class _Cell(Module):
    """Base of the cells: parameters and shape checks."""

    kind = ""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        rng = np.random.default_rng(rng)
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = GATES[self.kind] * hidden_size
        make = lambda *shape: uniform_weights(shape, hidden_size, rng, dtype)  # noqa: E731
        self.weight_ih, self.weight_hh = make(rows, input_size), make(rows, hidden_size)
        self.bias_ih = make(rows) if bias else None
        self.bias_hh = make(rows) if bias else None

    def _next(self, x: Any, state: tuple[Any, ...] | None, parts: int) -> tuple[Any, ...]:
        shape = shape_of(x)
        if shape[-1:] != (self.input_size,):
            raise ShapeError(
                f"{self!r} was given an input of shape {spelled(shape)}: its last axis must have "
                f"length {self.input_size}. Reshape the input, or change the cell"
                f"{at(user_line())}."
            )
        wanted = (*shape[:-1], self.hidden_size)
        if state is None:
            dtype = np.result_type(dtype_of(x), dtype_of(self.weight_hh))
            state = (zeros(wanted, dtype),) * parts
        for h in state:
            if shape_of(h) != wanted:
                raise ShapeError(
                    f"{self!r}: for an input of shape {spelled(shape)} the state must have shape "
                    f"{spelled(wanted)}, got {spelled(shape_of(h))}{at(user_line())}."
                )
        z = linear(x, self.weight_ih, self.bias_ih)
        return step_of(self.kind)(z, state, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


class RNNCell(_Cell):
    """One step of a plain recurrent layer: tanh(W x + b + U h + c).

    Parameters
    ----------
    input_size, hidden_size : int
        Lengths of the last axis of the input and of the state.
    bias : bool, default True
    nonlinearity : {"tanh", "relu"}
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight_ih : Parameter, shape (hidden_size, input_size)
    weight_hh : Parameter, shape (hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (hidden_size,), or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> cell = nn.RNNCell(3, 2, rng=0)
    >>> h = cell(np.ones((5, 3)))
    >>> cell(np.ones((5, 3)), h).shape
    (5, 2)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        self.kind = self.nonlinearity = nonlinearity_of(nonlinearity, "RNNCell")
        super().__init__(input_size, hidden_size, bias, rng, dtype)

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The next state, (..., hidden_size); the state `hx` is zero by default."""
        return self._next(x, None if hx is None else (hx,), 1)[0]


class GRUCell(_Cell):
    """One step of a layer of gated recurrent units (Cho et al. 2014).

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight_ih : Parameter, shape (3 * hidden_size, input_size)
        For reset, update and new, in this order.
    weight_hh : Parameter, shape (3 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (3 * hidden_size,), or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.GRUCell(3, 2, rng=0)(np.ones((5, 3)), np.zeros((5, 2))).shape
    (5, 2)
    """

    kind = "gru"

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The next state, (..., hidden_size); the state `hx` is zero by default."""
        return self._next(x, None if hx is None else (hx,), 1)[0]


class LSTMCell(_Cell):
    """One step of a long short-term memory (Hochreiter and Schmidhuber 1997).

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight_ih : Parameter, shape (4 * hidden_size, input_size)
        For in, forget, cell and out, in this order.
    weight_hh : Parameter, shape (4 * hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (4 * hidden_size,), or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> cell = nn.LSTMCell(3, 2, rng=0)
    >>> h, c = cell(np.ones((5, 3)))
    >>> h, c = cell(np.ones((5, 3)), (h, c))
    >>> h.shape, c.shape
    ((5, 2), (5, 2))
    """

    kind = "lstm"

    def forward(self, x: Any, hx: Any = None) -> Any:
        """The next pair (h, c); the state `hx` is zero by default."""
        h, c = self._next(x, None if hx is None else tuple(hx), 2)
        return h, c
