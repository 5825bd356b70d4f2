"""Differential equations with exact derivatives.

solve              initial value problems: adaptive steps in one compiled loop
sundials           SUNDIALS as an optional backend; sundials_names its solvers as methods
solution           Solution, the result; containers of arrays as the vector that methods take
stochastic         solve_sde: stochastic equations by fixed steps
dae_and_dde        solve_dae: F(t, y, y') = 0, by SUNDIALS; solve_dde: delay equations by fixed
                   steps

The methods, their loop and events are in `wengert.scipy.integrate.ivp`, which
`wengert.scipy.integrate.solve_ivp` uses, too.
"""

from wengert._engine.core.lazy_import import public_dir
from wengert.scipy.integrate.ivp.events import Event

from .dae_and_dde import DdeSolution, solve_dae, solve_dde
from .solution import Solution
from .solve import solve
from .stochastic import SdeSolution, solve_sde

__all__ = [
    "DdeSolution",
    "Event",
    "SdeSolution",
    "Solution",
    "solve",
    "solve_dae",
    "solve_dde",
    "solve_sde",
]

__dir__ = public_dir(__name__)
