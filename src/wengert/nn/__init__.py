"""Models: modules, parameters, layers and losses.  PyTorch's names, NumPy's arrays.

module.py        Module, and functional_call: a model as a function of its parameters
parameter.py     Parameter
layers.py        Linear, Sequential, activations, Dropout, losses as modules
recurrent.py     RNN, GRU, LSTM; recurrence.py: what they share; cells.py: one step of them
functional.py    the functions behind them
init.py          where parameters start
tracing.py       what a module does differently while a graph is built
progress.py      a progress bar (imported on its own: ``from wengert.nn.progress import ...``)
"""

from . import functional, init
from .cells import GRUCell, LSTMCell, RNNCell
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
    Sequential,
    Sigmoid,
    Softmax,
    Softplus,
    Tanh,
)
from .module import Module, functional_call
from .parameter import Parameter
from .recurrent import GRU, LSTM, RNN

__all__ = [
    "Module",
    "Parameter",
    "functional_call",
    "functional",
    "init",
    "Linear",
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
