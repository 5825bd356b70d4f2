"""Workloads of benchmarks/cuda.py.

workloads     the programs, in wengert and in PyTorch
correctness   all operations and random programs on the card, against eager execution
"""
