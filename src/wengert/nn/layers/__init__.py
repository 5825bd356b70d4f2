"""Layers, with PyTorch's names, arguments and initial values.

linear_dropout_embedding  Linear, Bilinear, Flatten ...; Dropout, AlphaDropout ...; Embedding
activations          ReLU, Softmax ...
conv                 Conv1d ... ConvTranspose3d; layers over 1, 2 and 3 dimensions from one class
padding              ZeroPad1d ... CircularPad3d
pooling              MaxPool1d ... LPPool3d; MaxUnpool1d ... MaxUnpool3d
resampling           Upsample, PixelShuffle, Fold ...
normalization        BatchNorm2d, LayerNorm ...
positional_encoding  positional encodings, rotary embeddings
recurrent            RNN, GRU, LSTM; several layers and both directions over a sequence
recurrent_cells      RNNCell, GRUCell, LSTMCell
multihead_attention  MultiheadAttention
transformer          Transformer, its encoder and decoder; TransformerEncoderLayer,
                     TransformerDecoderLayer
losses               losses as modules
"""

# ruff: noqa: F403  (each module's `__all__` lists its exports)

from wengert._engine.core.lazy_import import exported

from .activations import *
from .conv import *
from .linear_dropout_embedding import *
from .losses import *
from .multihead_attention import *
from .normalization import *
from .padding import *
from .pooling import *
from .positional_encoding import *
from .recurrent import *
from .recurrent_cells import *
from .resampling import *
from .transformer import *

_MODULES = """
    activations conv linear_dropout_embedding losses multihead_attention normalization padding
    pooling positional_encoding recurrent recurrent_cells resampling transformer
"""
globals()["__all__"] = exported(__name__, _MODULES)
