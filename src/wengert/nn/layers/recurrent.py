"""Recurrent layers: RNN, GRU, LSTM over whole sequences, which may differ in length.

    run_direction    one layer in one direction
    Recurrent        base of RNN, GRU and LSTM

The formulas of a step are in recurrent_cells.py.  Names and shapes of parameters, the order of
gates and the results are PyTorch's, so its weights can be loaded; ``lengths=`` replaces packed
sequences.

Each layer is one `wengert.scan`: the contribution of the inputs to all steps is one matrix product
before the loop, and the loop body computes what depends on the state.  It runs step by step in
eager mode, and is one native loop in compiled code.

Sequences of different lengths are padded; ``lengths=`` gives the length of each.  The results are
those of PyTorch's packed sequences, computed with `np.where`: states do not change after the end of
their sequence, the reverse direction begins there, and padding gives zero outputs, has no influence
on results, and gets no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.control_flow import scan
from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import is_symbolic, spelled
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.numpy import arange, zeros
from wengert.random import Stream

from .. import functional as F
from ..init import check_layer_sizes
from ..module import Module
from .recurrent_cells import GATES, nonlinearity_of, step_of, uniform_weights

__all__ = ["GRU", "LSTM", "RNN"]


State = tuple[Any, ...]


def run_direction(
    kind: str,
    x: Any,
    state: State,
    weights: Sequence[Any],
    valid: Any = None,
    reverse: bool = False,
) -> tuple[Any, State]:
    """One layer in one direction.

    Parameters
    ----------
    kind : {"tanh", "relu", "gru", "lstm"}
    x : array or Tensor, shape (steps, ..., inputs)
    state : tuple of array or Tensor
        The initial state, (..., hidden) each: h, and c of an LSTM.
    weights : (weight_ih, weight_hh, bias_ih, bias_hh, weight_hr)
        Biases, and the projection of an LSTM, may be None.
    valid : array of bool, shape (steps, ..., 1), optional
        False for padding.
    reverse : bool
        Whether to begin with the last step.

    Returns
    -------
    outputs, shape (steps, ..., hidden), and the last state
    """
    into, weight, bias_ih, bias_hh, projection = weights
    step = step_of(kind)
    if kind != "gru" and bias_ih is not None:
        # Biases that are only added are merged, and added in the loop: saves a pass over all steps.
        bias_ih, bias_hh = None, bias_ih + bias_hh

    def advance(before: State, row: Any) -> tuple[State, Any]:
        z, here = row
        after = step(z, before, weight, bias_hh)
        if projection is not None:
            after = (F.linear(after[0], projection), *after[1:])
        if here is None:
            return after, after[0]
        given = np.where(here, after[0], 0.0)
        return tuple(np.where(here, a, b) for a, b in zip(after, before, strict=True)), given

    last, outputs = scan(advance, state, (F.linear(x, into, bias_ih), valid), reverse=reverse)
    return outputs, last


class Recurrent(Module):
    """Base of RNN, GRU and LSTM: parameters, shape checks, lengths, directions."""

    kind = ""
    proj_size = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        check_layer_sizes(self, 1, num_layers=num_layers, hidden_size=hidden_size)
        check_layer_sizes(self, input_size=input_size)
        if not 0.0 <= dropout <= 1.0:
            raise ArgumentError(
                f"{type(self).__name__}: dropout is a probability and must be from 0 to 1, got "
                f"{dropout}{at(user_line())}."
            )
        rng = np.random.default_rng(rng)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            width = input_size if layer == 0 else self._width * self._directions
            for suffix in self._suffixes(layer):
                self._add_weights(suffix, width, rng, dtype)
        self.rng = Stream(int(rng.integers(2**63))) if dropout else None

    @property
    def _directions(self) -> int:
        return 1 + bool(self.bidirectional)

    @property
    def _width(self) -> int:
        """The length of the last axis of the output of one direction."""
        return self.proj_size or self.hidden_size

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"][: self._directions]

    def _add_weights(self, suffix: str, width: int, rng: Any, dtype: Any) -> None:
        rows = GATES[self.kind] * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, width),
            "weight_hh": (rows, self._width),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, f"{name}_{suffix}", uniform_weights(shape, self.hidden_size, rng, dtype))

    def _weights(self, suffix: str) -> list[Any]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [getattr(self, f"{name}_{suffix}", None) for name in names]

    def _run(self, x: Any, hx: State | None, lengths: Any) -> tuple[Any, State]:
        """The output of the last layer, and the last states, each (layers * directions, ...)."""
        x = self._by_steps(x)
        valid = None if lengths is None else self._valid_steps(lengths, shape_of(x))
        if valid is not None:
            x = np.where(valid, x, 0.0)
        states = self._states(x, hx)
        ends: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for k, suffix in enumerate(self._suffixes(layer)):
                state = tuple(s[layer * self._directions + k] for s in states)
                weights = self._weights(suffix)
                output, end = run_direction(self.kind, x, state, weights, valid, k == 1)
                outputs.append(output)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=-1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training, self.rng)
        if self.batch_first and len(shape_of(x)) == 3:
            x = np.swapaxes(x, 0, 1)
        return x, tuple(np.stack(column) for column in zip(*ends, strict=True))

    def _by_steps(self, x: Any) -> Any:
        """The input with the steps as the first axis."""
        shape = shape_of(x)
        if len(shape) not in (2, 3) or shape[-1] != self.input_size:
            order = "(batch, steps" if self.batch_first else "(steps, batch"
            raise ShapeError(
                f"{self!r} was given an input of shape {spelled(shape)}: expected {order}, "
                f"{self.input_size}), or (steps, {self.input_size}) without a batch"
                f"{at(user_line())}."
            )
        return np.swapaxes(x, 0, 1) if self.batch_first and len(shape) == 3 else x

    def _valid_steps(self, lengths: Any, shape: tuple[Any, ...]) -> Any:
        """Booleans of shape (steps, ..., 1), False for padding."""
        steps, batch = shape[0], shape[1:-1]
        if not is_traced(lengths):
            lengths = np.asarray(value_of(lengths))
        if dtype_of(lengths).kind not in "iu":
            raise DtypeError(
                f"{type(self).__name__}: lengths must be integers, got {dtype_of(lengths)}"
                f"{at(user_line())}."
            )
        if shape_of(lengths) != batch:
            raise ShapeError(
                f"{type(self).__name__}: expected one length for each sequence, shape "
                f"{spelled(batch)}, got {spelled(shape_of(lengths))}{at(user_line())}."
            )
        concrete = isinstance(lengths, np.ndarray) and lengths.size and not is_symbolic((steps,))
        if concrete and (lengths.min() < 0 or lengths.max() > steps):
            raise ArgumentError(
                f"{type(self).__name__}: lengths must be from 0 to {steps}, the number of steps; "
                f"got {lengths.min()} to {lengths.max()}{at(user_line())}."
            )
        ends = np.expand_dims(lengths, (0, -1))
        return np.reshape(arange(steps), (-1, *[1] * (len(batch) + 1))) < ends

    def _states(self, x: Any, hx: State | None) -> State:
        """The initial states of all layers, checked."""
        batch = shape_of(x)[1:-1]
        rows = self.num_layers * self._directions
        wanted = [(rows, *batch, self._width)]
        if self.kind == "lstm":
            wanted.append((rows, *batch, self.hidden_size))
        dtype = np.result_type(dtype_of(x), dtype_of(self._weights("l0")[0]))
        if hx is None:
            return tuple(zeros(shape, dtype) for shape in wanted)
        given = [shape_of(s) for s in hx]
        if given != wanted:
            raise ShapeError(
                f"{self!r}: the state must have shape {' and '.join(map(spelled, wanted))} "
                f"(layers * directions first), got {' and '.join(map(spelled, given))}"
                f"{at(user_line())}."
            )
        return tuple(s.astype(dtype) if dtype_of(s) != dtype else s for s in hx)

    def extra_repr(self) -> str:
        """Sizes, and options that are not the defaults."""
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        values = {name: getattr(self, name) for name in defaults}
        parts += [f"{name}={values[name]}" for name, x in defaults.items() if values[name] != x]
        return ", ".join(parts)


class RNN(Recurrent):
    """Plain recurrent layers: h' = tanh(W x + b + U h + c) at each step.

    Parameters
    ----------
    input_size : int
        Length of the last axis of the input.
    hidden_size : int
        Length of the last axis of the state.
    num_layers : int, default 1
        Each layer after the first is applied to the output of the previous one.
    nonlinearity : {"tanh", "relu"}
    bias : bool, default True
    batch_first : bool, default False
        Whether inputs and outputs are (batch, steps, ...) instead of (steps, batch, ...); states
        are always (layers * directions, batch, ...).
    dropout : float, default 0
        Probability of dropping an element between layers, in training.
    bidirectional : bool, default False
        Whether to process sequences also in reverse, with separate weights; the outputs of both
        directions are concatenated.
    rng : int or numpy.random.Generator, optional
        Source of the initial values and of dropout.
    dtype : dtype, default float64

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : Parameter
        Shapes (hidden, inputs), (hidden, hidden), (hidden,) and (hidden,). Names end with
        ``l{k}`` for layer k, and with ``l{k}_reverse`` for the reverse direction, as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.RNN(3, 4, num_layers=2, rng=0)
    >>> output, last = layer(np.ones((7, 5, 3)))
    >>> output.shape, last.shape
    ((7, 5, 4), (2, 5, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        self.kind = self.nonlinearity = nonlinearity_of(nonlinearity, "RNN")
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            rng, dtype,
        )  # fmt: skip

    def forward(self, x: Any, hx: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        """Run over sequences.

        Parameters
        ----------
        x : array or Tensor, shape (steps, batch, inputs)
            Or (batch, steps, inputs) with `batch_first`, or (steps, inputs) without a batch.
        hx : array or Tensor, shape (layers * directions, batch, hidden), optional
            The initial state; zeros by default.
        lengths : array of int, shape (batch,), optional
            The number of steps of each sequence; later steps are padding.

        Returns
        -------
        output, shape (steps, batch, directions * hidden), zero after the end of a sequence
        last, shape (layers * directions, batch, hidden), the states after the last steps

        Raises
        ------
        ShapeError, ArgumentError, DtypeError
            Shapes, lengths or the state are invalid.
        """
        x, (h,) = self._run(x, None if hx is None else (hx,), lengths)
        return x, h


class GRU(Recurrent):
    """Layers of gated recurrent units (GRU).

    At each step, with gates between 0 and 1::

        reset, update = sigmoid(W x + b + U h + c), in two parts
        new = tanh(W x + b + reset * (U h + c))
        h' = (1 - update) * new + update * h

    Parameters are those of `RNN` without `nonlinearity`; weights have 3 * hidden rows, for reset,
    update and new, in this order.

    References
    ----------
    .. [1] K. Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014,
       arXiv:1406.1078; the reset gate is applied after the product with U, as in cuDNN and PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.GRU(3, 4, bidirectional=True, rng=0)
    >>> output, last = layer(np.ones((7, 2, 3)), lengths=np.array([7, 5]))
    >>> output.shape, last.shape
    ((7, 2, 8), (2, 2, 4))
    >>> bool(np.all(output[5:, 1].numpy() == 0.0))
    True
    """

    kind = "gru"

    def forward(self, x: Any, hx: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        """Run over sequences; arguments and results are those of `RNN.forward`."""
        x, (h,) = self._run(x, None if hx is None else (hx,), lengths)
        return x, h


class LSTM(Recurrent):
    """Layers of long short-term memory (LSTM).

    At each step, with gates between 0 and 1::

        in, forget, cell, out = W x + b + U h + c, in four parts
        c' = sigmoid(forget) * c + sigmoid(in) * tanh(cell)
        h' = sigmoid(out) * tanh(c')

    Parameters are those of `RNN` without `nonlinearity`, and `proj_size`; weights have 4 * hidden
    rows, for in, forget, cell and out, in this order.

    Parameters
    ----------
    proj_size : int, default 0
        If positive, the length of h', which is multiplied by another weight, ``weight_hr_l{k}`` of
        shape (proj_size, hidden); c has length hidden.

    References
    ----------
    .. [1] S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9(8), 1997;
       with the forget gate of F. Gers, J. Schmidhuber, F. Cummins (2000).
    .. [2] H. Sak, A. Senior, F. Beaufays, "Long short-term memory based recurrent neural network
       architectures for large vocabulary speech recognition", 2014 (the projection).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.LSTM(3, 4, batch_first=True, rng=0)
    >>> output, (h, c) = layer(np.ones((2, 7, 3)))
    >>> output.shape, h.shape, c.shape
    ((2, 7, 4), (1, 2, 4), (1, 2, 4))
    """

    kind = "lstm"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(
                f"LSTM: proj_size must be less than hidden_size, or 0 for no projection; got "
                f"proj_size={proj_size} and hidden_size={hidden_size}{at(user_line())}."
            )
        self.proj_size = proj_size
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            rng, dtype,
        )  # fmt: skip

    def forward(self, x: Any, hx: Any = None, lengths: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Run over sequences, as `RNN.forward`; the state is a pair of h and c."""
        x, (h, c) = self._run(x, None if hx is None else tuple(hx), lengths)
        return x, (h, c)
