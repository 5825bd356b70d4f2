"""Optimizers, with PyTorch's names and formulas.

optimizer                 Optimizer: parameter groups, zero_grad, state_dict; ReduceLROnPlateau
sgd_adam_lion             SGD: gradient descent, momentum, Nesterov; Adam, AdamW; Lion
adagrad_rmsprop_adadelta  Adagrad, RMSprop, Adadelta
lbfgs                     LBFGS, for deterministic losses
minimization              minimize, least_squares: SciPy's methods, with exact compiled derivatives;
                          containers of arrays as vectors
nonlinear_programs        nlp: constraints and bounds, by Ipopt or trust-constr
laplace_approximation     laplace: random effects integrated out; laplace_newton their mode
schedules                 learning-rate schedules
clipping_and_averages     clip_grad_norm_, clip_grad_value_; EMA: exponential moving average of the
                          parameters
state                     optimizer state as variables of compiled steps
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from . import schedules as schedules
from .adagrad_rmsprop_adadelta import Adadelta, Adagrad, RMSprop
from .clipping_and_averages import EMA, clip_grad_norm_, clip_grad_value_
from .laplace_approximation import LaplaceApproximation, StandardErrors, laplace
from .lbfgs import LBFGS
from .minimization import least_squares, minimize
from .optimizer import Optimizer, ReduceLROnPlateau
from .sgd_adam_lion import SGD, Adam, AdamW, Lion

if TYPE_CHECKING:
    from .nonlinear_programs import nlp

__all__ = [
    "EMA",
    "LBFGS",
    "LaplaceApproximation",
    "SGD",
    "StandardErrors",
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
    "laplace",
    "least_squares",
    "minimize",
    "nlp",
    "schedules",
]

__dir__ = public_dir(__name__)
# SciPy's solvers and the sparse derivatives, which it imports, take longer than the rest.
__getattr__ = lazy_names(__name__, {"nlp": ".nonlinear_programs"})
