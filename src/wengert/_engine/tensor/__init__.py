"""Tensor: the array type of users; each file defines a part of the class.

numpy_protocols.py         NumPy's protocols: dispatch of NumPy's functions to ours
numpy_dispatch.py          registration of functions of wengert.numpy for those of NumPy
operators.py               + - * / @ ** == < ..., in-place and reflected forms, x[i], x[i] = v; type
                           aliases: operands, axes, dtypes
methods.py                 NumPy's methods and attributes
grad_attributes.py         .grad, .backward(), hooks, leaves: PyTorch's names; .grad and backward
                           while a function is traced
operand_conversion.py      the operands that operators of tensors accept, and their conversion;
                           operators of tensors and SciPy's sparse arrays
conversion_errors.py       errors of conversions to plain data, with the code to use instead
suggested_code.py          the user's expression, rewritten so that it accepts tensors
tensor.py                  the class, with conversion, printing, copying, pickling; tensors that are
                           rows of an array of values that a loop appended
tree.py                    wengert.tree: functions of nested containers
"""

from .numpy_protocols import implements
from .tensor import Tensor, tensor

__all__ = ["Tensor", "implements", "tensor"]
