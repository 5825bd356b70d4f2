"""Nonlinear programs: minima of functions with constraints and bounds, by Ipopt or trust-constr.

interface           nlp
constraint_forms    the forms in which constraints are given; names and limits of their elements
program             the program as graphs, the conditions of its solution, and the derivative
solve_program       a solve as an operation of graphs; a solve with plain values, by either method;
                    SciPy's trust-constr
problem_data        the values of one solve, and the settings of the solver; the functions that a
                    solver calls, with sparse derivatives; NLPResult and its parts
ipopt               Ipopt, through ipyopt; the only module that imports it
newton_steps        steps from the result of trust-constr to an accurate solution; the linear system
                    of the derivative of a large program; which limits are active at a solution
"""

from .interface import nlp
from .problem_data import Multipliers, NLPProgress, NLPResult

__all__ = ["Multipliers", "NLPProgress", "NLPResult", "nlp"]
