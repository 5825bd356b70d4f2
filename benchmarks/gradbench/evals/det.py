"""det: a determinant by expansion of minors along the first row, then the second, and so on.

Of the last m rows there is a minor for every m of the columns, and each is a sum of entries of its
first row times minors of the rows below.  All minors of m rows are computed at once from those of
m - 1 rows, so that each is computed once: n 2**(n-1) products, where the recursion, which computes
them anew wherever they occur, has e n!.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed, number


def expansions(n: int) -> list[Any]:
    """For 1, 2, ..., n rows: the columns of each minor, and where its sub-minors stand."""
    place = {(): 0}
    steps = []
    for m in range(1, n + 1):
        minors = list(combinations(range(n), m))
        below = [[place[columns[:j] + columns[j + 1 :]] for j in range(m)] for columns in minors]
        steps.append((np.array(minors), np.array(below)))
        place = {columns: i for i, columns in enumerate(minors)}
    return steps


def determinant(n: int) -> Any:
    """Return the determinant as a function of an n by n matrix in row-major order."""
    steps = expansions(n)

    def det(a: Any) -> Any:
        rows = a.reshape(n, n)
        minors = np.ones(1)
        for m, (columns, below) in enumerate(steps, 1):
            sign = (-1.0) ** np.arange(m)
            minors = np.sum(sign * rows[n - m][columns] * minors[below], axis=1)
        return minors[0]

    return det


def primal(given: dict[str, Any]) -> Task:
    """The value."""
    return Task(wg.jit(determinant(given["ell"])), (np.array(given["A"]),), number)


def gradient(given: dict[str, Any]) -> Task:
    """The gradient, in row-major order."""
    return Task(wg.jit(wg.grad(determinant(given["ell"]))), (np.array(given["A"]),), listed)


FUNCTIONS = {"primal": primal, "gradient": gradient}
