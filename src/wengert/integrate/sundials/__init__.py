"""SUNDIALS as an optional backend: CVODE for y' = f(t, y), IDA for equations with algebraic ones.

library          CVODE and IDA, through scikit-sundae; the only module that imports it
system           equations as graphs, with their linearization and Jacobian
trajectory       the solution for plain values: at times, and between them
adjoint          the adjoint equation for plain values
rules            derivatives of any order; both as operations of graphs
vector_problems  arguments checked, functions traced

Derivatives are those of the sensitivity and adjoint equations, integrated by the same solvers
(docs/design/0025-differential-equations.md).
"""
