"""The names of HIPS autograd, on wengert's engine.

differential_operators  grad, jacobian, hessian, make_vjp, make_jvp ...
extend                  primitive, defvjp, defjvp
traced_call             calls of such primitives as nodes of the graph
tracer                  Box, getval
vspace                  vspace: the vector space of a value
wrap_util               operators on functions of one argument, extended to any argument
builtins                isinstance, type, dict, list and tuple that accept tensors
test_util               check_grads
misc/                   flatten, optimizers, fixed_points
numpy/                  NumPy's functions, by autograd's module names
scipy/                  SciPy's functions, by autograd's module names

    from wengert.compat.autograd import grad, elementwise_grad, jacobian
    import wengert.compat.autograd.numpy as np

Derivatives of complex functions follow autograd's convention, the complex conjugate of wengert's:
the gradient of a real J with respect to z is dJ/dRe z - i dJ/dIm z, and a rule multiplies by f'(z).
docs/autograd-users.md lists the other differences.
"""

import importlib
from typing import Any

from wengert._engine.core.lazy_import import public_dir

from .builtins import dict, isinstance, list, tuple, type
from .differential_operators import (
    checkpoint,
    deriv,
    egrad,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    hvp,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from .extend import primitive

SUBMODULES = ("misc", "numpy", "scipy", "test_util")  # imported when they are asked for

__all__ = [
    "checkpoint",
    "deriv",
    "dict",
    "egrad",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "hvp",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, *SUBMODULES)
