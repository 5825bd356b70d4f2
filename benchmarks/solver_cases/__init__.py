"""The workloads of benchmarks/solvers.py; what they are made of is in benchmarks/native.

roots         n equations; Kepler's equation for a batch
minima        a penalized logistic regression, and curves fitted to data
systems       sparse linear systems: a bar, a plate, finite elements
effects       the Laplace approximation of a chain of random effects
integrals     integrals with parameters
peers         problems of optimistix and lineax, by the same algorithms
by_numba      what numba compiles: Brent's method, and recurrences of tridiagonal matrices
fresh         arguments that differ in each call
"""
