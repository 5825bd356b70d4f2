"""Tensor: the handle that users hold, in short files.

protocols.py   NumPy's protocols: which function of ours stands for which of NumPy's
numpy_dispatch.py   how a function of wengert.numpy meets NumPy's of the same name
operators.py   + - * / @ ** == < ..., in-place and reflected forms, x[i], x[i] = v
methods.py     NumPy's methods and attributes
gradients.py   .grad, .backward(), hooks, leaves: PyTorch's names
traced_gradients.py   the same while a function is compiled
operands.py    what may stand beside a tensor, and as what it is taken
refusals.py    what to write instead where a tensor cannot become plain data
replacements.py   the user's own expression, written so that it takes tensors
tensor.py      the class made of these, conversion, printing, copying, pickling
"""

from .protocols import implements
from .tensor import Tensor, tensor

__all__ = ["Tensor", "implements", "tensor"]
