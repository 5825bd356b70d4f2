"""Kinds of operations: what all elementwise functions, all reductions, ... have in common.

elementwise.py           one element of the result from one element of each operand; the language in
                         which bodies are written
reduction.py             some axes combined into one number each
contraction.py           products summed over shared axes; contraction_lowering.py as matmul
collective.py            operations of all processes of a communicator
linear_map.py            linear maps of the first operand: views, joins, casts; whether a rule has a
                         transpose
opaque.py                operations that run arbitrary code, with explicit rules
batching.py              batching rules that several kinds share
"""
