"""The workloads of benchmarks/sparse.py; what they are made of is in benchmarks/native.

peers         how the entries are asked of each library, in the order of compressed rows
brusselator   the Jacobian of a reaction with diffusion on a line
rosenbrock    the Hessian of Rosenbrock's function, which is tridiagonal
products      sparse arrays of tensors: products, their gradients, assembly
power_flow    the Jacobian and the Hessian of the lines of an AC power network
"""
