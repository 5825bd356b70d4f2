"""The workloads of benchmarks/odes.py, and what they share.

problem        what an initial value problem is
published      problems with published times of derivatives
classic        usual test problems of solvers
detest         the problems of DETEST, for tests
references     accurate values and derivatives, from references.json
contestants    who takes part in a case

by_wengert     wengert.integrate
by_diffrax     diffrax
by_casadi      CVODES and IDAS by CasADi
by_lsoda       numbalsoda and SciPy
by_hand        loops for numba

values         the last state
gradients      a loss of states at many times, and its gradient
sensitivities  the derivative of the last state with respect to all parameters
trajectories   last states for 1,000 choices of the parameters
first_calls    the first call in a fresh process
"""
