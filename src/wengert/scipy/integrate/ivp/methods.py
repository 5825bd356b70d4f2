"""The methods by name, with step size controllers, and arguments that only some of them take.

NATIVE              the methods that run in one loop
method_of           the method and the controller of a name
checked_mass        the mass matrix as an array like the state
checked_jacobian    a user's Jacobian, whose result is checked
check_dtype         whether the method has steps for the dtype of the state
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .bdf_method import BdfMethod
from .esdirk_methods import KVAERNO3, KVAERNO4, KVAERNO5, EsdirkMethod
from .explicit_methods import DOP853, RK23, RK45, TSIT5, VERN7, Dop853, ExplicitMethod
from .method import Method
from .radau_method import RadauMethod
from .rosenbrock_methods import RODAS4, RODAS5P, RosenbrockMethod
from .step_control import I_CONTROL, PI_CONTROL, StepControl

NATIVE: dict[str, tuple[Method, StepControl]] = {
    "RK23": (ExplicitMethod(RK23), I_CONTROL),
    "RK45": (ExplicitMethod(RK45), I_CONTROL),
    "DOP853": (Dop853(DOP853), I_CONTROL),
    "tsit5": (ExplicitMethod(TSIT5), PI_CONTROL),
    "vern7": (ExplicitMethod(VERN7), PI_CONTROL),
    "rodas4": (RosenbrockMethod(RODAS4), PI_CONTROL),
    "rodas5p": (RosenbrockMethod(RODAS5P), PI_CONTROL),
    "kvaerno3": (EsdirkMethod(KVAERNO3), PI_CONTROL),
    "kvaerno4": (EsdirkMethod(KVAERNO4), PI_CONTROL),
    "kvaerno5": (EsdirkMethod(KVAERNO5), PI_CONTROL),
    "Radau": (RadauMethod(), I_CONTROL),
    "BDF": (BdfMethod(), I_CONTROL),
}


def method_of(name: object, what: str) -> tuple[Method, StepControl]:
    """The method and the controller of a name; small letters may be capital ones.

    Raises
    ------
    ArgumentError
        There is no such method.
    """
    found = NATIVE.get(name) if isinstance(name, str) else None
    if found is None and isinstance(name, str):
        found = {key.lower(): value for key, value in NATIVE.items()}.get(name.lower())
    if found is None:
        is_lsoda = isinstance(name, str) and name.lower() == "lsoda"
        more = " ('LSODA' is SciPy's, which scipy.integrate.solve_ivp calls)" if is_lsoda else ""
        raise ArgumentError(
            f"{what}: there is no method {name!r}{more}. Choose one of {', '.join(NATIVE)}"
            f"{at(user_line())}."
        )
    return found


def checked_mass(mass: Any, method: Method, spec: Spec, what: str) -> Any:
    """The mass matrix as an array of the dtype of the state.

    Raises
    ------
    ArgumentError
        The method is explicit, or an element is not finite.
    ShapeError, DtypeError
        It is not a matrix of numbers like the state.
    """
    if mass is None:
        return None
    if not method.is_implicit:
        names = ", ".join([name for name, (m, _) in NATIVE.items() if m.is_implicit])
        raise ArgumentError(
            f"{what}: method={method.name!r} is explicit, and takes no mass matrix. Choose one of "
            f"{names}{at(user_line())}."
        )
    return _like_state(as_array(mass), "mass", spec, what)


def checked_jacobian(f: Callable[..., Any], spec: Spec, what: str) -> Callable[..., Any]:
    """A user's Jacobian as a function of time and state."""

    def checked(t: Any, y: Any) -> Any:
        found = converted(f)(t, y)
        if isinstance(found, list | tuple):
            found = np.stack([np.stack([as_array(x) for x in row]) for row in found])
        return _like_state(as_array(found), "the result of jac", spec, what)

    return checked


def _like_state(x: Any, name: str, spec: Spec, what: str) -> Any:
    """A matrix of shape (n, n) and of the dtype of the state."""
    square = (*spec.shape, *spec.shape)
    if tuple(x.shape) != square:
        raise ShapeError(
            f"{what}: {name} has shape {tuple(x.shape)}, and must have shape {square} for a state "
            f"of shape {spec.shape}{at(user_line())}."
        )
    if x.dtype.kind not in "biufc":
        raise DtypeError(
            f"{what}: {name} is an array of {x.dtype}, and must be one of numbers{at(user_line())}."
        )
    if x.dtype.kind == "c" and spec.dtype.kind != "c":
        raise DtypeError(
            f"{what}: {name} is complex, and the initial state is real. Give y0 a complex dtype"
            f"{at(user_line())}."
        )
    if not is_traced(x) and not np.all(np.isfinite(value_of(x))):
        raise ArgumentError(f"{what}: all elements of {name} must be finite{at(user_line())}.")
    return casts.astype(x, spec.dtype) if x.dtype != spec.dtype else x


def check_dtype(method: Method, spec: Spec, what: str) -> None:
    """Refuse complex states for methods that are for real ones.

    Raises
    ------
    DtypeError
        The state is complex, and the method is not.
    """
    if spec.dtype.kind != "c" or method.takes_complex:
        return
    names = ", ".join([name for name, (m, _) in NATIVE.items() if m.takes_complex])
    raise DtypeError(
        f"{what}: method={method.name!r} is for real states, as in SciPy, and y0 is {spec.dtype}. "
        f"Choose one of {names}, or give the real and the imaginary part as two components"
        f"{at(user_line())}."
    )
