"""Optimisers: how parameters move against their gradients.  PyTorch's names and formulas.

optimizer.py   Optimizer: parameter groups, zero_grad, state_dict
sgd.py         SGD: steepest descent, momentum, Nesterov
adam.py        Adam, AdamW
held.py        what is remembered, as variables of compiled steps
"""

from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
