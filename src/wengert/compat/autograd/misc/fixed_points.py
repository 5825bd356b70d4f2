"""Fixed points x = f(a)(x), with implicit derivatives with respect to `a`.

At the fixed point dx = (I - J)^-1 (df/da) da, where J is the Jacobian of f(a).  The cotangent w is
the fixed point w = g + J' w, and w df/da the gradient.

B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and
Software 3 (1994), 311-326.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..differential_operators import make_vjp
from ..extend import defvjp, primitive
from ..vspace import vspace

__all__ = ["fixed_point"]


@primitive
def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]],
    a: Any,
    x0: Any,
    distance: Callable[[Any, Any], Any],
    tol: float,
) -> Any:
    """The x with ``f(a)(x) = x``, by iteration from `x0` until the change is at most `tol`.

    Examples
    --------
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.misc.fixed_points import fixed_point
    >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
    >>> root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
    >>> round(float(grad(root)(4.0)), 9)
    0.25
    """
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _vjp_maker(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Any:
    def vjp(g: Any) -> Any:
        w = fixed_point(_adjoint_iteration(f), (a, ans, g), vspace(g).zeros(), distance, tol)
        return make_vjp(lambda a: f(a)(ans))(a)[0](w)

    return vjp


def _adjoint_iteration(f: Any) -> Any:
    """The iteration w -> g + J' w, as a function of (a, x, g)."""

    def of_point(point: Any) -> Any:
        a, x, g = point
        pull = make_vjp(f(a))(x)[0]
        return lambda w: vspace(g).add(pull(w), g)

    return of_point


defvjp(fixed_point, None, _vjp_maker, None, None, None)
