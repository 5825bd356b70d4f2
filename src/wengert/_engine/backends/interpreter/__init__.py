"""The interpreter: runs a graph node by node with NumPy.

buffer_reuse      memory that has become free during a run
interpreter       "interpret": NumPy, line by line; the meaning of a graph
"""
