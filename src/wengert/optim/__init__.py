"""Optimisers: how parameters move against their gradients.  PyTorch's names and formulas.

adagrad_rmsprop_adadelta  Adagrad, RMSprop, Adadelta
adam                      Adam, AdamW
ema                       EMA: a moving mean of the parameters
grad_clipping             clip_grad_norm_, clip_grad_value_
lbfgs                     LBFGS, for losses that are the same at every call
lion                      Lion
minimization              minimize, least_squares: SciPy's methods, with exact compiled derivatives
optimizer                 Optimizer: parameter groups, zero_grad, state_dict
ravel                     containers of arrays as vectors
reduce_on_plateau         ReduceLROnPlateau: smaller when a figure stops getting better
schedules                 rates that change as training goes on
sgd                       SGD: steepest descent, momentum, Nesterov
state                     what is remembered, as variables of compiled steps
"""

from wengert._engine.core.lazy_import import public_dir

from . import schedules as schedules
from .adagrad_rmsprop_adadelta import Adadelta, Adagrad, RMSprop
from .adam import Adam, AdamW
from .ema import EMA
from .grad_clipping import clip_grad_norm_, clip_grad_value_
from .lbfgs import LBFGS
from .lion import Lion
from .minimization import least_squares, minimize
from .optimizer import Optimizer
from .reduce_on_plateau import ReduceLROnPlateau
from .sgd import SGD

__all__ = [
    "EMA",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "RMSprop",
    "ReduceLROnPlateau",
    "clip_grad_norm_",
    "clip_grad_value_",
    "least_squares",
    "minimize",
    "schedules",
]

__dir__ = public_dir(__name__)
