"""Rooted trees, and with them the order conditions of Runge-Kutta methods in rational arithmetic.

A tree is the sorted tuple of the trees below its root. A method has order p if
``sum_i b_i phi_i(t) == 1 / gamma(t)`` for all trees t with at most p nodes, where ``phi_i(t)`` is
the product over the children u of ``sum_j a_ij phi_j(u)`` and gamma the product of the numbers of
nodes of all subtrees (E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential
Equations I, section II.2).
"""

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import prod

EPSILON = Fraction(2) ** -52
SCALE = 2**160  # a multiple of all coefficients, which have 53 bits or are rounded to it


@cache
def trees(nodes):
    """All trees with this number of nodes."""
    return sorted(tuple(sorted(children)) for children in forests(nodes - 1, nodes - 1))


@cache
def forests(nodes, largest):
    """All multisets of trees with `nodes` nodes together, each of at most `largest`."""
    if nodes == 0:
        return [()]
    found = []
    for size in range(1, min(nodes, largest) + 1):
        for count in range(1, nodes // size + 1):
            for rest in forests(nodes - size * count, size - 1):
                for same in combinations_with_replacement(trees(size), count):
                    found.append((*same, *rest))
    return found


@cache
def size(tree):
    return 1 + sum(map(size, tree))


@cache
def gamma(tree):
    return size(tree) * prod(map(gamma, tree))


def scaled(rows):
    """Floats as integers times a common power of two: exact, and faster than Fraction."""
    numbers = [[Fraction(x) * SCALE for x in row] for row in rows]
    assert all(x.denominator == 1 for row in numbers for x in row)
    return [[x.numerator for x in row] for row in numbers]


def stage_weights(a, single):
    """A function of a tree that returns phi_i of all stages, times SCALE for each node but one.

    single : the matrix for nodes with one child, which is another one in Rosenbrock methods.
    """
    kept = {}

    def weights(tree):
        if tree not in kept:
            products = [1] * len(a)
            for child in tree:
                inner, matrix = weights(child), single if len(tree) == 1 else a
                sums = [sum(x * w for x, w in zip(row, inner, strict=True) if x) for row in matrix]
                products = [p * s for p, s in zip(products, sums, strict=True)]
            kept[tree] = products
        return kept[tree]

    return weights


def absolute(rows):
    return [[abs(x) for x in row] for row in rows]


def errors(a, b, order, wanted=lambda tree: Fraction(1, gamma(tree)), single=None):
    """Errors in all conditions of this order, in units of the rounding of the coefficients."""
    a, b = scaled(a), scaled([b])[0]
    single = a if single is None else scaled(single)
    weights, sizes = stage_weights(a, single), stage_weights(absolute(a), absolute(single))
    found = []
    for tree in trees(order):
        target = wanted(tree) * SCALE**order
        error = sum(x * w for x, w in zip(b, weights(tree), strict=True)) - target
        scale = sum(abs(x) * w for x, w in zip(b, sizes(tree), strict=True)) + abs(target)
        found.append(abs(float(error / (scale * order * EPSILON))) if error else 0.0)
    return found
