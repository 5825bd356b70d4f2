"""Kinds of operations: what is the same for all elementwise functions, all reductions, ..."""
