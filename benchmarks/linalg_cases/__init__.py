"""The workloads of benchmarks/linalg.py; what they are made of is in benchmarks/native.

batched    1e5 matrices of two to six rows: solve, inv, det, cholesky, eigh, and their gradients
large      one matrix of 500 rows: forward, and value and gradient
"""
