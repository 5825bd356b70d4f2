"""Models: modules, parameters, layers and losses.  PyTorch's names, NumPy's arrays.

module          Module
parameter       Parameter, Buffer
containers      Sequential, Parallel, Residual, lists and dicts
traversal       parameters, buffers and submodules of a module, found from its attributes
hooks           functions called before and after `forward`
init            initial values of parameters
state_dict      functional_call and stateful_call: a model as a function of its parameters
check_sizes     validation of sizes before parameters are allocated
model_summary   table of layers with shapes, parameters and operations
module_tracing  modules while tracing
progress        a progress bar (import it from wengert.nn.progress)
rich_progress   the progress bar on a terminal; the only module that imports rich
safetensors_io  weights in safetensors files
functional/     the functions behind the layers
layers/         layers
training/       fit, evaluate, checkpoints, logs; imported at first use
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import public_dir

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
from .functional.ctc import CTCLoss
from .layers.activations import (
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
from .layers.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layers.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d
from .layers.embedding import Embedding
from .layers.linear_and_shape import (
    Bilinear,
    Flatten,
    Identity,
    Linear,
    PixelShuffle,
    PixelUnshuffle,
    Unflatten,
    Upsample,
)
from .layers.losses import (
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
from .layers.multihead_attention import MultiheadAttention
from .layers.normalization import (
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
from .layers.pooling import (
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
from .layers.positional_encoding import (
    LearnedPositions,
    PositionalEncoding,
    RotaryEmbedding,
    rotary_embedding,
    sinusoidal_positions,
)
from .layers.recurrent import GRU, LSTM, RNN
from .layers.recurrent_cells import GRUCell, LSTMCell, RNNCell
from .layers.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
    generate_square_subsequent_mask,
)
from .layers.transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer
from .module import Module
from .parameter import Buffer, Parameter
from .state_dict import functional_call, stateful_call

if TYPE_CHECKING:
    from .model_summary import summary
    from .safetensors_io import load_safetensors, save_safetensors
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
    "save_safetensors": ".safetensors_io",
    "load_safetensors": ".safetensors_io",
    "summary": ".model_summary",
}


def __getattr__(name: str) -> Any:
    if name in ("evaluate", "fit", "training"):
        training = import_module(".training", __name__)
        return training if name == "training" else getattr(training, name)
    if name in _LATE:
        return getattr(import_module(_LATE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, "functional", "init", "training")
