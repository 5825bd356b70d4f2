"""Transformer: encoder and decoder layers, and stacks of them.

    TransformerEncoder, TransformerDecoder    layers, and a final norm; Transformer has both
    generate_square_subsequent_mask       a causal mask, to be added to scores
    TransformerEncoderLayer               self-attention
    TransformerDecoderLayer               self-attention, and attention to another sequence
    norm_of, stream_of                    norms and random streams of layers

Names of parameters, arguments and masks are PyTorch's.  A GPT is a TransformerEncoder with
``is_causal=True``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line
from wengert.random import Stream

from .. import init
from ..functional.activations import gelu, relu
from ..module import Module
from .linear_dropout_embedding import Dropout, Linear
from .multihead_attention import MultiheadAttention
from .normalization import LayerNorm

__all__ = """
    Transformer TransformerDecoder TransformerEncoder generate_square_subsequent_mask
    TransformerDecoderLayer TransformerEncoderLayer
""".split()


def _activation(given: Any, what: str) -> Callable[[Any], Any]:
    """An activation function, given as a function or by name."""
    functions: dict[str, Callable[[Any], Any]] = {"relu": relu, "gelu": gelu}
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given not in functions:
        raise ArgumentError(
            f"{what}: activation must be one of {list(functions)} or a function, got {given!r}"
            f"{at(user_line())}."
        )
    return functions[given]


class _Layer(Module):
    """Base of the layers: self-attention, a network of two linear layers, norms."""

    attentions: tuple[str, ...] = ("self_attn",)
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        rng = np.random.default_rng(rng)
        self.norm_first = norm_first
        self.activation = _activation(activation, type(self).__name__)
        for name in self.attentions:
            made = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, rng=rng, dtype=dtype
            )
            setattr(self, name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, rng, dtype)
        self.dropout = Dropout(dropout, stream_of(rng))
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng, dtype)
        count = len(self.attentions) + 1
        for k in range(1, count + 1):
            setattr(self, f"norm{k}", norm_of(d_model, layer_norm_eps, bias, dtype))
        for k in range(1, count + 1):
            setattr(self, f"dropout{k}", Dropout(dropout, stream_of(rng)))

    def _block(self, x: Any, k: int, f: Callable[[Any], Any]) -> Any:
        """A residual connection around f, with norm and dropout number k."""
        norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))

    def _network(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def stream_of(rng: np.random.Generator) -> Stream:
    """A stream of random numbers for dropout."""
    return Stream(int(rng.integers(2**63)))


def norm_of(width: int, eps: float, bias: bool, dtype: Any) -> Module:
    """A `LayerNorm` of a layer."""
    return LayerNorm(width, eps=eps, bias=bias, dtype=dtype)


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network of two linear layers at each step.

    Parameters
    ----------
    d_model : int
        Length of the last axis.
    nhead : int
        Number of heads; must divide d_model.
    dim_feedforward : int, default 2048
        Width between the linear layers.
    dropout : float, default 0.1
        Probability of dropping, in training: attention weights, values between the linear layers,
        and values added to the residual connections.
    activation : {"relu", "gelu"} or callable
    layer_norm_eps : float, default 1e-5
    batch_first : bool, default False
        Whether sequences are (batch, steps, ...) instead of (steps, batch, ...).
    norm_first : bool, default False
        Whether the input of each block is normalized, instead of its output.
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
        Source of the initial values and of dropout.
    dtype : dtype, default float64

    Attributes
    ----------
    self_attn : MultiheadAttention
    linear1, linear2 : Linear
    norm1, norm2 : LayerNorm

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, rng=0).eval()
    >>> layer(np.ones((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """Apply the layer to a sequence.

        Parameters
        ----------
        src : array or Tensor, shape (steps, batch, d_model)
            Or (batch, steps, d_model) with `batch_first`, or (steps, d_model).
        src_mask, src_key_padding_mask : array of bool or float, optional
            attn_mask and key_padding_mask of `MultiheadAttention.forward`.
        is_causal : bool, default False
            Whether step i attends to steps 0 to i only.
        """

        def attend(x: Any) -> Any:
            masks = src_key_padding_mask, False, src_mask
            return self.self_attn(x, x, x, *masks, is_causal=is_causal)[0]

        return self._block(self._block(src, 1, attend), 2, self._network)


class TransformerDecoderLayer(_Layer):
    """Self-attention, then attention to another sequence, then a network at each step.

    Parameters are those of `TransformerEncoderLayer`.

    Attributes
    ----------
    self_attn, multihead_attn : MultiheadAttention
        Self-attention, and attention to the other sequence.
    linear1, linear2 : Linear
    norm1, norm2, norm3 : LayerNorm

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, rng=0).eval()
    >>> layer(np.ones((3, 5, 8)), np.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Apply the layer to the sequence `tgt`, attending to `memory`.

        Masks are as in `TransformerEncoderLayer.forward`, for both sequences.
        """

        def attend(x: Any) -> Any:
            masks = tgt_key_padding_mask, False, tgt_mask
            return self.self_attn(x, x, x, *masks, is_causal=tgt_is_causal)[0]

        def attend_to_memory(x: Any) -> Any:
            masks = memory_key_padding_mask, False, memory_mask
            return self.multihead_attn(x, memory, memory, *masks, is_causal=memory_is_causal)[0]

        x = self._block(self._block(tgt, 1, attend), 2, attend_to_memory)
        return self._block(x, 3, self._network)


def generate_square_subsequent_mask(size: int, dtype: Any = float) -> Any:
    """A causal mask: zeros, and -inf above the diagonal, to be added to scores.

    Examples
    --------
    >>> from wengert.nn.layers.transformer import generate_square_subsequent_mask
    >>> generate_square_subsequent_mask(3)
    array([[  0., -inf, -inf],
           [  0.,   0., -inf],
           [  0.,   0.,   0.]])
    """
    return np.where(np.tri(size, dtype=bool), 0.0, -np.inf).astype(dtype)


def _copies(layer: Module, count: int) -> list[Module]:
    """Copies of a layer, with equal values and independent random streams for dropout."""
    made = [copy.deepcopy(layer) for _ in range(count)]
    for one in made:
        for copied, original in zip(one.modules(), layer.modules(), strict=True):
            rng = getattr(original, "rng", None)
            if isinstance(rng, Stream):
                copied.rng = Stream(int(rng.integers(0, 2**62)))
            elif isinstance(rng, np.random.Generator):
                copied.rng = rng.spawn(1)[0]
    return made


class TransformerEncoder(Module):
    """Several encoder layers, applied one after the other.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer, or a list of them
        A single layer is copied with its values, as in PyTorch; pass a list for layers with
        different initial values.
    num_layers : int, optional
        The number of copies of a single layer.
    norm : Module, optional
        Applied to the result.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> rng = np.random.default_rng(0)
    >>> layers = [nn.TransformerEncoderLayer(8, 2, 16, rng=rng) for _ in range(2)]
    >>> model = nn.TransformerEncoder(layers, norm=nn.LayerNorm(8)).eval()
    >>> model(np.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def __init__(
        self, encoder_layer: Any, num_layers: int | None = None, norm: Module | None = None
    ) -> None:
        self.layers = _layers(encoder_layer, num_layers, "TransformerEncoder")
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The sequence after all layers; masks as in `TransformerEncoderLayer.forward`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several decoder layers, applied one after the other.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer, or a list of them
        As for `TransformerEncoder`.
    num_layers : int, optional
    norm : Module, optional
    """

    def __init__(
        self, decoder_layer: Any, num_layers: int | None = None, norm: Module | None = None
    ) -> None:
        self.layers = _layers(decoder_layer, num_layers, "TransformerDecoder")
        self.norm = norm

    def forward(self, tgt: Any, memory: Any, *args: Any, **kwargs: Any) -> Any:
        """The sequence after all layers; masks as in `TransformerDecoderLayer.forward`."""
        for layer in self.layers:
            tgt = layer(tgt, memory, *args, **kwargs)
        return tgt if self.norm is None else self.norm(tgt)


def _layers(given: Any, count: int | None, what: str) -> list[Module]:
    if isinstance(given, Module):
        if count is None or count < 0:
            raise ArgumentError(
                f"{what} of one layer with num_layers={count}. Give the number of copies, or a "
                f"list of layers{at(user_line())}."
            )
        return _copies(given, count)
    layers = list(given)
    if count not in (None, len(layers)):
        raise ArgumentError(
            f"{what} of {len(layers)} layers with num_layers={count}. Omit num_layers"
            f"{at(user_line())}."
        )
    return layers


class Transformer(Module):
    """An encoder of a source sequence, and a decoder of a target sequence that attends to it.

    Parameters
    ----------
    d_model : int, default 512
    nhead : int, default 8
    num_encoder_layers, num_decoder_layers : int, default 6
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, rng, dtype
        As for `TransformerEncoderLayer`. All matrices are initialized by `init.xavier_uniform`.

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True, rng=0).eval()
    >>> model(np.ones((3, 7, 8)), np.ones((3, 5, 8)), tgt_is_causal=True).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        rng = np.random.default_rng(rng)
        options = (
            dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            rng, dtype,
        )  # fmt: skip
        norms = [norm_of(d_model, layer_norm_eps, bias, dtype) for _ in range(2)]
        first = [
            TransformerEncoderLayer(d_model, nhead, *options) for _ in range(num_encoder_layers)
        ]
        second = [
            TransformerDecoderLayer(d_model, nhead, *options) for _ in range(num_decoder_layers)
        ]
        self.encoder = TransformerEncoder(first, norm=norms[0])
        self.decoder = TransformerDecoder(second, norm=norms[1])
        for p in self.parameters():
            if len(p.shape) > 1:
                p.data = init.xavier_uniform(p.shape, rng, dtype)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The decoder applied to `tgt` and to the result of the encoder for `src`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)
