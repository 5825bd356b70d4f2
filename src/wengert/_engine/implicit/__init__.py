"""Implicit differentiation: derivatives of solutions of equations.

solver_calls.py      the call of a solver as one node, with the rule of its derivative; unknowns of
                     equations that exchange messages; whether a solution satisfies the equation
functions.py         functions of containers as graphs of leaves
kept_graphs.py       graphs of derivatives, kept for repeated eager calls; numbers in graphs as
                     operands, so that graphs with other numbers are equal
linear_systems.py    custom_linear_solve
linear_methods.py    diagonal, banded and sparse systems; methods by name: cholesky, cg, gmres,
                     bicgstab
roots.py             custom_root, implicit
"""

from wengert._engine.core.lazy_import import public_dir

from .linear_systems import custom_linear_solve
from .roots import custom_root, implicit

__all__ = ["custom_linear_solve", "custom_root", "implicit"]

__dir__ = public_dir(__name__)
