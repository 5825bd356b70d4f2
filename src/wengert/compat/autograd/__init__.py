"""The names of HIPS autograd, on wengert's engine.

differential_operators  grad, jacobian, hessian, make_vjp, make_jvp ...
extend                  primitive, defvjp, defjvp
primitives              primitives, the tables of their rules, and their calls as nodes of a graph
deprecated              primitives with autograd's old methods
errors                  errors that are also those of autograd
tracer                  Box, getval
vspace                  vspace: the vector space of a value
wrap_util               operators on functions of one argument, extended to any argument
builtins                isinstance, type, dict, list and tuple that accept tensors
test_util               check_grads
core, util              names that programs import from there
import_hook, __main__   `import autograd` gives this package
strict                  refuse what autograd refuses
misc/                   flatten, optimizers, fixed_points
numpy/                  NumPy's functions, by autograd's module names
scipy/                  SciPy's functions, by autograd's module names

    from wengert.compat.autograd import grad, elementwise_grad, jacobian
    import wengert.compat.autograd.numpy as np

Programs that import autograd run unchanged by ``python -m wengert.compat.autograd script.py``.

Derivatives of complex functions follow autograd's convention, the complex conjugate of wengert's:
the gradient of a real J with respect to z is dJ/dRe z - i dJ/dIm z, and a rule multiplies by f'(z).
docs/autograd-users.md lists the other differences.
"""

# ruff: noqa: F403  (the `__all__` of each module says what is exported)

import importlib
from typing import Any

from wengert._engine.core.conversion_hook import NAMESPACES, NUMPY_NAMESPACES
from wengert._engine.core.lazy_import import exported, public_dir

from .builtins import *
from .deprecated import primitive as primitive
from .differential_operators import *

SUBMODULES = (
    "core",
    "import_hook",
    "misc",
    "numpy",
    "scipy",
    "strict",
    "test_util",
    "util",
)  # imported when they are asked for

# `import wengert.compat.autograd.numpy as np`: arrays made by np.zeros can be assigned to.
NAMESPACES[f"{__name__}.numpy"] = f"{__name__}.numpy"
NUMPY_NAMESPACES.add(f"{__name__}.numpy")

globals()["__all__"] = ["primitive", *exported(__name__, "builtins differential_operators")]


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, *SUBMODULES)
