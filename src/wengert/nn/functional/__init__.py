"""The functions behind the layers, under PyTorch's name: ``import wengert.nn.functional as F``.

activations            relu, sigmoid, softmax ...
attention              scaled_dot_product_attention
conv                   conv1d ... conv_transpose3d
pooling                max_pool1d ... adaptive_avg_pool3d; lp_pool1d ... lp_pool3d
window_options         kernel sizes, strides, padding and dilation; 1d, 2d and 3d versions from one
                       definition
dropouts               dropout, alpha_dropout ...
normalization          batch_norm, layer_norm ...
padding                pad
unpooling              max_unpool1d ... max_unpool3d
resampling             interpolate
grid_sampling          affine_grid, grid_sample
rearrangement          pixel_shuffle, channel_shuffle, unfold, fold
regression_losses      mse_loss, l1_loss, huber_loss ...
classification_losses  cross_entropy, nll_loss, binary_cross_entropy ...
margin_losses          hinge_loss, triplet_margin_loss ...; distances and similarities
ctc                    ctc_loss
linear_and_embedding   embedding, one_hot; linear, bilinear
"""

# ruff: noqa: F403  (each module's `__all__` lists its exports)

from wengert._engine.core.lazy_import import exported, public_dir

from .activations import *
from .attention import *
from .classification_losses import *
from .conv import *
from .ctc import *
from .dropouts import *
from .grid_sampling import *
from .linear_and_embedding import *
from .margin_losses import *
from .normalization import *
from .padding import *
from .pooling import *
from .rearrangement import *
from .regression_losses import *
from .resampling import *
from .unpooling import *

_MODULES = """
    activations attention classification_losses conv ctc dropouts linear_and_embedding grid_sampling
    margin_losses normalization padding pooling rearrangement
    regression_losses resampling unpooling
"""
globals()["__all__"] = exported(__name__, _MODULES)
__dir__ = public_dir(__name__)
