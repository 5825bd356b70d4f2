"""The functions behind the layers, under PyTorch's name: ``import wengert.nn.functional as F``.

activations            relu, sigmoid, softmax ...
attention              scaled_dot_product_attention
conv                   conv1d ... conv_transpose3d; kernel sizes, strides, padding and dilation; 1d,
                       2d and 3d versions from one definition
pooling                max_pool1d ... adaptive_avg_pool3d; lp_pool1d ... lp_pool3d
linear_dropout_embedding  dropout, alpha_dropout ...; embedding, one_hot; linear, bilinear
normalization          batch_norm, layer_norm ...
padding_rearrangement  pad; pixel_shuffle, channel_shuffle, unfold, fold
resampling             max_unpool1d ... max_unpool3d; interpolate
grid_sampling          affine_grid, grid_sample
regression_losses      mse_loss, l1_loss, huber_loss ...
classification_losses  cross_entropy, nll_loss, binary_cross_entropy ...
margin_losses          hinge_loss, triplet_margin_loss ...; distances and similarities
ctc                    ctc_loss
"""

# ruff: noqa: F403  (each module's `__all__` lists its exports)

from wengert._engine.core.lazy_import import exported, public_dir

from .activations import *
from .attention import *
from .classification_losses import *
from .conv import *
from .ctc import *
from .grid_sampling import *
from .linear_dropout_embedding import *
from .margin_losses import *
from .normalization import *
from .padding_rearrangement import *
from .pooling import *
from .regression_losses import *
from .resampling import *

_MODULES = """
    activations attention classification_losses conv ctc grid_sampling linear_dropout_embedding
    margin_losses normalization padding_rearrangement pooling regression_losses resampling
"""
globals()["__all__"] = exported(__name__, _MODULES)
__dir__ = public_dir(__name__)
