"""Rosenbrock's function, its gradient, its Hessian, and products with it, of tensors.

rosen           the function
rosen_der       its gradient
rosen_hess      its Hessian
rosen_hess_prod the product of the Hessian with a vector
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import hessian
from wengert._engine.autodiff.jvp_vjp import jvp

from ..dispatch import counterpart, floating

__all__ = ["rosen", "rosen_der", "rosen_hess", "rosen_hess_prod"]


def _value(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2, axis=0)


def _slope(x: Any) -> Any:
    return grad(lambda y: np.sum(_value(y)))(x)


@counterpart(scipy.optimize.rosen)
def rosen(x: Any) -> Any:
    """Rosenbrock's function of a vector, as ``scipy.optimize.rosen``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(optimize.rosen)(np.array([0.0, 2.0]))
    array([ -2., 400.])
    """
    return _value(floating(x))


@counterpart(scipy.optimize.rosen_der)
def rosen_der(x: Any) -> Any:
    """The gradient of Rosenbrock's function, as ``scipy.optimize.rosen_der``."""
    return _slope(floating(x))


@counterpart(scipy.optimize.rosen_hess)
def rosen_hess(x: Any) -> Any:
    """The Hessian of Rosenbrock's function, as ``scipy.optimize.rosen_hess``."""
    return hessian(_value)(floating(x))


@counterpart(scipy.optimize.rosen_hess_prod)
def rosen_hess_prod(x: Any, p: Any) -> Any:
    """The product of the Hessian with `p`, as ``scipy.optimize.rosen_hess_prod``."""
    return jvp(_slope, (floating(x),), (floating(p),))[1]
