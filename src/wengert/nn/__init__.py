"""Models: modules, parameters, layers and losses.  PyTorch's names, NumPy's arrays.

module.py        Module; found.py, what belongs to one; hooks.py; counted.py: sizes, checked
state.py         functional_call and stateful_call: a model as a function of its parameters
parameter.py     Parameter, Buffer
containers.py    Sequential, Parallel, Residual, lists and dicts
layers.py        Linear, Bilinear, Flatten, ...; embedding.py
norm_layers.py   BatchNorm2d, LayerNorm, ...; dropouts.py: Dropout, ...
activation_layers.py, loss_layers.py   activations and losses as modules
multihead.py     MultiheadAttention
transformer.py   Transformer, its encoder and decoder; transformer_layers.py: one layer
positions.py     positional encodings, rotary embeddings
ctc.py           CTCLoss
recurrent.py     RNN, GRU, LSTM; recurrence.py: what they share; cells.py: one step of them
convolution.py   Conv1d ... ConvTranspose3d; convolutional.py: what they share
pooling.py       MaxPool1d ... AdaptiveAvgPool3d
functional.py    the functions behind them
activations.py   relu, ...; normalizing.py: batch_norm, ...; resampling.py: interpolate
losses.py        mse_loss, ...; class_losses.py: cross_entropy, ...; margin_losses.py
attention.py     scaled_dot_product_attention; dropping.py: dropout
convolutions.py  conv1d ...; convolve.py: what they share; window_options.py: their options
pools.py         max_pool1d ...; adaptive_pools.py: adaptive ones; pool.py: what they share
init.py          where parameters start
exchange.py      weights as safetensors; summaries.py: a table of a model
tracing.py       what a module does differently while a graph is built
training         fit, evaluate, checkpoints, logs: imported when asked for
progress.py      a progress bar (imported on its own: ``from wengert.nn.progress import ...``);
                 bar.py draws it on a terminal
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import public_dir

from . import functional, init
from .activation_layers import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Maxout,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from .cells import GRUCell, LSTMCell, RNNCell
from .containers import (
    ModuleDict,
    ModuleList,
    Parallel,
    ParameterDict,
    ParameterList,
    Residual,
    Sequential,
)
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .ctc import CTCLoss
from .dropouts import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
)
from .embedding import (
    Embedding,
)
from .layers import (
    Bilinear,
    Flatten,
    Identity,
    Linear,
    PixelShuffle,
    PixelUnshuffle,
    Unflatten,
    Upsample,
)
from .loss_layers import (
    MSE,
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    DiceLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HingeLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PairwiseDistance,
    PoissonNLLLoss,
    SigmoidFocalLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    SquaredHingeLoss,
    TripletMarginLoss,
)
from .module import Module
from .multihead import MultiheadAttention
from .norm_layers import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from .parameter import Buffer, Parameter
from .pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from .positions import (
    LearnedPositions,
    PositionalEncoding,
    RotaryEmbedding,
    rotary_embedding,
    sinusoidal_positions,
)
from .recurrent import GRU, LSTM, RNN
from .state import functional_call, stateful_call
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
    generate_square_subsequent_mask,
)
from .transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer

if TYPE_CHECKING:
    from .exchange import load_safetensors, save_safetensors
    from .summaries import summary
    from .training import evaluate, fit

__all__ = [
    "evaluate",
    "fit",
    "Module",
    "Parameter",
    "Buffer",
    "functional_call",
    "stateful_call",
    "summary",
    "save_safetensors",
    "load_safetensors",
    "ModuleList",
    "ModuleDict",
    "ParameterList",
    "ParameterDict",
    "Parallel",
    "Residual",
    "functional",
    "init",
    "Linear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "CTCLoss",
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "generate_square_subsequent_mask",
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
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Maxout",
    "Mish",
    "PReLU",
    "ReLU6",
    "RReLU",
    "SELU",
    "SiLU",
    "Softmin",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "DiceLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SigmoidFocalLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "SquaredHingeLoss",
    "TripletMarginLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
    "AlphaDropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Bilinear",
    "Identity",
    "Unflatten",
    "Upsample",
    "PixelShuffle",
    "PixelUnshuffle",
    "Embedding",
]

_LATE = {
    "save_safetensors": ".exchange",
    "load_safetensors": ".exchange",
    "summary": ".summaries",
}


def __getattr__(name: str) -> Any:
    if name in ("evaluate", "fit", "training"):
        training = import_module(".training", __name__)
        return training if name == "training" else getattr(training, name)
    if name in _LATE:
        return getattr(import_module(_LATE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, "functional", "init", "training")
