"""The interpreter: runs a graph node by node with NumPy.

interpreter   "interpret": the reference semantics of graphs
buffer_reuse  reuse of memory that is freed during a run
"""
