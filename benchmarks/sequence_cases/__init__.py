"""The workloads of benchmarks/sequences.py; what they are made of is in benchmarks/native.

lstm     value and gradient of a model of characters, of one layer of long short-term memory
"""
