"""Tensor: the array that users hold; each file adds a part of the class.

numpy_protocols.py         NumPy's protocols: which function of ours stands for which of NumPy's
numpy_dispatch.py          how a function of wengert.numpy meets NumPy's of the same name
operators.py               + - * / @ ** == < ..., in-place and reflected forms, x[i], x[i] = v
methods.py                 NumPy's methods and attributes
grad_attributes.py         .grad, .backward(), hooks, leaves: PyTorch's names
traced_grad_attributes.py  the same while a function is compiled
operand_conversion.py      what may stand beside a tensor, and as what it is taken
conversion_errors.py       what to write instead where a tensor cannot become plain data
suggested_code.py          the user's own expression, written so that it takes tensors
types.py                   type aliases: what operators take, axes, dtypes
tensor.py                  the class made of these, conversion, printing, copying, pickling
"""

from .numpy_protocols import implements
from .tensor import Tensor, tensor

__all__ = ["Tensor", "implements", "tensor"]
