"""Kinds of operations: what is the same for all elementwise functions, all reductions, ...

elementwise.py   one element of the result from one element of each operand
reduction.py     some axes combined into one number each
contraction.py   products summed over shared axes (contracting.py: as matrix products)
linear.py        linear maps of the first operand: views, joins, casts
opaque.py        what the engine does not look into
batching.py      the rules of many rows, and specs.py those of specs, that several of them share
"""
