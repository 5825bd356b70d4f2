"""Names of SUNDIALS' solvers as methods of `wengert.integrate.solve`.

solver_of       the solver of a name, or None
is_of_sundials  whether a method is one of them
"""

from __future__ import annotations

_SOLVERS = {
    "cvode": "CVODE_BDF",
    "cvodes": "CVODE_BDF",
    "cvode_bdf": "CVODE_BDF",
    "cvode_adams": "CVODE_Adams",
    "ida": "IDA",
    "idas": "IDA",
}


def solver_of(method: object) -> str | None:
    """The solver of a name, in small or capital letters; None if it is not one of SUNDIALS."""
    return _SOLVERS.get(method.lower()) if isinstance(method, str) else None


def is_of_sundials(method: object) -> bool:
    """Whether a method is a solver of SUNDIALS."""
    return solver_of(method) is not None
