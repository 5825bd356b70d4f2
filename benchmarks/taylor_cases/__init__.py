"""The workloads of benchmarks/taylor.py; what they are made of is in benchmarks/native.

programs   Taylor series of small programs, to orders 4, 8 and 10
"""
