"""The workloads of benchmarks/growth.py: one program each, at several points of one axis.

points   a point of a program, measured in a fresh process; rows for the page
size     numbers of an array
depth    operations, one behind the other
straight nodes of an unrolled algorithm
order    of the derivative
leaves   arrays in the container of parameters
peaks    not an axis: the memory of a deep chain and of a perceptron, eager and compiled
"""
