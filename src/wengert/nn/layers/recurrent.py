"""Recurrent layers: RNN, GRU, LSTM over whole sequences.

Their base class is in recurrent_scan.py, the formulas of a step are in recurrent_cells.py.  Names
and shapes of parameters, the order of gates and the results are PyTorch's, so its weights can be
loaded; ``lengths=`` replaces packed sequences.
"""

from __future__ import annotations

from typing import Any

from wengert.errors import ArgumentError, at, user_line

from .recurrent_cells import nonlinearity_of
from .recurrent_scan import Recurrent

__all__ = ["GRU", "LSTM", "RNN"]


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
