"""Workloads and checks of benchmarks/cuda.py.

workloads     all workloads
case          what a workload is
elementwise   chains, Black-Scholes, a mixture of Gaussians
rows          sums, softmax, layer normalization: the speed of memory
loops         trajectories of Lorenz' system, Kalman filters
networks      a perceptron, a step of a GPT
convolutions  a convolutional network
matrices      many small systems, inverses and products
measure       the time of one workload, beside PyTorch and JAX
correctness   all operations and random programs, against eager execution
workers       processes that check or measure, one after the other or side by side
page          the page of the results
"""
