"""Native code by LLVM: one function for a whole graph.

To be completed.
"""
