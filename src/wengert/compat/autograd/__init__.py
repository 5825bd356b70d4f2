"""The names of HIPS autograd, on wengert's engine.

builtins                isinstance and type that look through tensors
differential_operators  grad, jacobian, hessian, make_vjp, make_jvp and their kin
extend                  primitive, defvjp, defjvp: functions with rules of the user's
test_util               check_grads
traced_call             primitive, defvjp, defjvp: functions with rules of the user's
tracer                  vspace, getval, Box
vspace                  vspace, getval, Box
wrap_util               functions of one argument made functions of any
misc/                   flatten, optimizers, fixed_points
numpy/                  NumPy's and SciPy's functions: wengert's
scipy/                  NumPy's and SciPy's functions: wengert's

from wengert.compat.autograd import grad, elementwise_grad, jacobian
    import wengert.compat.autograd.numpy as np

Derivatives of complex functions follow autograd's convention, which is the complex conjugate of
wengert's: the gradient of a real J by z is dJ/dRe z - i dJ/dIm z, and a rule multiplies by f'(z).
What else differs stands in docs/autograd-users.md.
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
