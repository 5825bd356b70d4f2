"""Optimisers: how parameters move against their gradients.  PyTorch's names and formulas.

optimizer.py   Optimizer: parameter groups, zero_grad, state_dict
sgd.py         SGD: steepest descent, momentum, Nesterov
adam.py        Adam, AdamW
adaptive.py    Adagrad, RMSprop, Adadelta
lion.py        Lion
schedules.py   rates that change as training goes on
held.py        what is remembered, as variables of compiled steps
"""

from . import schedules as schedules
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, RMSprop
from .lion import Lion
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "RMSprop",
    "schedules",
]
