"""Differential equations with exact derivatives.

solve        initial value problems: adaptive steps in one compiled loop
solution     Solution, the result
state_leaves containers of arrays as the vector that methods take

The methods, their loop and events are in `wengert.scipy.integrate.ivp`, which
`wengert.scipy.integrate.solve_ivp` uses, too.
"""

from wengert._engine.core.lazy_import import public_dir
from wengert.scipy.integrate.ivp.events import Event

from .solution import Solution
from .solve import solve

__all__ = ["Event", "Solution", "solve"]

__dir__ = public_dir(__name__)
