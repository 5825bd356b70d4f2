"""Optimisers: how parameters move against their gradients.  PyTorch's names and formulas.

optimizer.py  Optimizer: parameter groups, zero_grad, state_dict
sgd.py        SGD: steepest descent, momentum, Nesterov
adam.py       Adam, AdamW
adaptive.py   Adagrad, RMSprop, Adadelta
lion.py       Lion
lbfgs.py      LBFGS, for losses that are the same at every call
minima.py     minimize, least_squares: SciPy's methods, with exact compiled derivatives
raveled.py    containers of arrays as vectors
schedules.py  rates that change as training goes on
plateau.py    ReduceLROnPlateau: smaller when a figure stops getting better
clipping.py   clip_grad_norm_, clip_grad_value_
averaging.py  EMA: a moving mean of the parameters
held.py       what is remembered, as variables of compiled steps
"""

from wengert._engine.core.lazy_import import public_dir

from . import schedules as schedules
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, RMSprop
from .averaging import EMA
from .clipping import clip_grad_norm_, clip_grad_value_
from .lbfgs import LBFGS
from .lion import Lion
from .minima import least_squares, minimize
from .optimizer import Optimizer
from .plateau import ReduceLROnPlateau
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
