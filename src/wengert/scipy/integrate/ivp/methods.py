"""The methods by name, each with its step size controller.

NATIVE      the methods that run in one loop
method_of   the method and the controller of a name
"""

from __future__ import annotations

from wengert.errors import ArgumentError, at, user_line

from .bdf_steps import BdfMethod
from .esdirk_steps import EsdirkMethod
from .esdirk_tables import KVAERNO3, KVAERNO4, KVAERNO5
from .explicit_steps import Dop853, ExplicitMethod
from .explicit_tables import RK23, RK45, TSIT5
from .high_order_tables import DOP853, VERN7
from .method import Method
from .radau_steps import RadauMethod
from .rosenbrock_steps import RosenbrockMethod
from .rosenbrock_tables import RODAS4, RODAS5P
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
