"""Symbolic sizes: lengths of arrays that are polynomials in named integers.

dim.py          Dim: a symbolic length; arithmetic, comparison, bounds for all sizes
polynomial.py   the algebra of these polynomials
constraints.py  requirements of operations on sizes: equal, at least; broadcasting; sizes as text:
                `dim`, "2*n + 1"
"""
