"""The workloads of benchmarks/loops.py; what they are made of is in benchmarks/native.

peers     loops of every library under one name; C by hand, as written and with -ffast-math
lorenz    1000 Runge-Kutta steps of Lorenz's equations
kalman    the likelihood of a state-space model
garch     the likelihood of GARCH(1,1), its gradient and Hessian
lstm      a training step of a character model; the objective of GradBench
nested    derivatives in loops in derivatives: particle, saddle, Kepler's equation by Newton
rules     a function with a derivative that the user states
lengths   the first call, for 10, 1000 and a million steps
memory    a million steps backwards in bounded memory
"""
