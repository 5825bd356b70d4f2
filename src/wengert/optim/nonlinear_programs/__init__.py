"""Nonlinear programs: minima of functions with constraints and bounds, by Ipopt or trust-constr.

interface           nlp
constraint_forms    the forms in which constraints are given; names and limits of their elements
program             the program as graphs, the conditions of its solution, and the derivative
solver_operation    a solve as an operation of graphs
problem_data        the values of one solve, and the settings of the solver
compiled_functions  the functions that a solver calls, with sparse derivatives
solve_program       a solve with plain values, by either method
ipopt               Ipopt, through ipyopt; the only module that imports it
trust_constr        SciPy's trust-constr
newton_steps        steps from the result of trust-constr to an accurate solution; the linear system
                    of the derivative of a large program; which limits are active at a solution
result              NLPResult and its parts
"""

from .interface import nlp
from .result import Multipliers, NLPProgress, NLPResult

__all__ = ["Multipliers", "NLPProgress", "NLPResult", "nlp"]
