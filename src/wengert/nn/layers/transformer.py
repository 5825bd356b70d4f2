"""Transformer: stacks of encoder and decoder layers.

    TransformerEncoder, TransformerDecoder    layers (transformer_layer.py), and a final norm
    Transformer                               both
    generate_square_subsequent_mask           a causal mask, to be added to scores

Names of parameters, arguments and masks are PyTorch's.  A GPT is a TransformerEncoder with
``is_causal=True``.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line
from wengert.random import Stream

from .. import init
from ..module import Module
from .transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer, norm_of

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerEncoder",
    "generate_square_subsequent_mask",
]


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
