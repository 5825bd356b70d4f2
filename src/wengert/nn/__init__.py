"""Models: modules, parameters, layers and losses.  PyTorch's names, NumPy's arrays.

module.py        Module; found.py, what belongs to one; hooks.py
state.py         functional_call and stateful_call: a model as a function of its parameters
parameter.py     Parameter, Buffer
containers.py    Sequential, Parallel, Residual, lists and dicts
layers.py        Linear, activations, Dropout, losses as modules
multihead.py     MultiheadAttention
positions.py     positional encodings, rotary embeddings
ctc.py           CTCLoss
recurrent.py     RNN, GRU, LSTM; recurrence.py: what they share; cells.py: one step of them
functional.py    the functions behind them
attention.py     scaled_dot_product_attention; dropping.py: dropout
init.py          where parameters start
tracing.py       what a module does differently while a graph is built
progress.py      a progress bar (imported on its own: ``from wengert.nn.progress import ...``)
"""

from . import functional, init
from .containers import (
    ModuleDict,
    ModuleList,
    Parallel,
    ParameterDict,
    ParameterList,
    Residual,
    Sequential,
)
from .cells import GRUCell, LSTMCell, RNNCell
from .ctc import CTCLoss
from .layers import (
    MSE,
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    L1Loss,
    Linear,
    LogSoftmax,
    MSELoss,
    NLLLoss,
    ReLU,
    Sigmoid,
    Softmax,
    Softplus,
    Tanh,
)
from .module import Module
from .multihead import MultiheadAttention
from .parameter import Buffer, Parameter
from .state import functional_call, stateful_call
from .positions import (
    LearnedPositions,
    PositionalEncoding,
    RotaryEmbedding,
    rotary_embedding,
    sinusoidal_positions,
)
from .recurrent import GRU, LSTM, RNN

__all__ = [
    "Module",
    "Parameter",
    "Buffer",
    "functional_call",
    "stateful_call",
    "ModuleList",
    "ModuleDict",
    "ParameterList",
    "ParameterDict",
    "Parallel",
    "Residual",
    "functional",
    "init",
    "Linear",
    "CTCLoss",
    "MultiheadAttention",
    "PositionalEncoding",
    "LearnedPositions",
    "RotaryEmbedding",
    "rotary_embedding",
    "sinusoidal_positions",
    "RNN",
    "GRU",
    "LSTM",
    "RNNCell",
    "GRUCell",
    "LSTMCell",
    "Sequential",
    "Dropout",
    "Flatten",
    "ReLU",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Softmax",
    "LogSoftmax",
    "MSELoss",
    "MSE",
    "L1Loss",
    "CrossEntropyLoss",
    "NLLLoss",
    "BCEWithLogitsLoss",
    "BCELoss",
]
