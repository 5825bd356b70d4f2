"""The workloads of benchmarks/posteriors.py; what they are made of is in benchmarks/native.

gradients     the log-density of each model with its gradient, as samplers call it
models        the models: parameters with their constraints, and the log-density in NumPy
by_jax        the same log-densities by hand for JAX
database      data, Stan programs and reference means, from a checkout of posteriordb
"""
