"""Repeated indices: what is read twice gets both cotangents; what is written twice, one.

The answers follow from what NumPy computes: ``np.add.at`` and weighted `bincount` add repeated
elements, ``x[i] += v`` and ``x[i] = v`` keep the last (NumPy's guide to indexing, "Assigning values
to indexed arrays").
"""

import numpy as np
import pytest

from .ways import case, check

I = np.array([0, 0, 1])  # noqa: E741


def put(function, *more):
    def f(x, v):
        y = x * 1.0
        function(y, v)
        return np.sum(y**2)

    return f


def assign(y, v):
    y[I] = v


def add(y, v):
    y[I] += v


def scale(y, v):
    y[I] *= v


CASES = {
    "gather": case(lambda x: np.sum(x[I] ** 2), [2.0, 3.0], gradient=[8, 6]),
    "take": case(lambda x: np.sum(np.take(x, I) ** 2), [2.0, 3.0], gradient=[8, 6]),
    "take, wrapped": case(
        lambda x: np.sum(np.take(x, [0, 2, -1, 5], mode="wrap") ** 2), [2.0, 3.0], gradient=[8, 12]
    ),
    "take_along_axis": case(
        lambda x: np.sum(np.take_along_axis(x, np.array([1, 1, 0]), 0) ** 2),
        [1.0, 2.0],
        gradient=[2, 8],
    ),
    "rows": case(
        lambda x: np.sum(x[[1, 1, 0]] ** 2), [[1.0, 2.0], [3.0, 4.0]], gradient=[[2, 4], [12, 16]]
    ),
    "rows and columns": case(
        lambda x: np.sum(x[[0, 0, 1], [1, 1, 0]] ** 2),
        [[1.0, 2.0], [3.0, 4.0]],
        gradient=[[0, 8], [6, 0]],
    ),
    "repeat": case(lambda x: np.sum(np.repeat(x, [2, 1]) ** 2), [2.0, 3.0], gradient=[8, 6]),
    "add.at": case(
        put(lambda y, v: np.add.at(y, I, v)),
        [1.0, 1.0],
        [1.0, 2.0, 3.0],
        gradient=([8.0, 8.0], [8.0, 8.0, 8.0]),
    ),
    "subtract.at": case(
        put(lambda y, v: np.subtract.at(y, I, v)),
        [1.0, 1.0],
        [1.0, 2.0, 3.0],
        gradient=([-4.0, -4.0], [4.0, 4.0, 4.0]),
    ),
    "multiply.at": case(
        put(lambda y, v: np.multiply.at(y, I, v)),
        [1.0, 1.0],
        [2.0, 3.0, 4.0],
        gradient=([72.0, 32.0], [36.0, 24.0, 8.0]),
    ),
    "maximum.at": case(
        put(lambda y, v: np.maximum.at(y, I, v)),
        [1.0, 9.0],
        [2.0, 3.0, 4.0],
        gradient=([0.0, 18.0], [0.0, 6.0, 0.0]),
    ),
    "+=": case(put(add), [1.0, 1.0], [1.0, 2.0, 3.0], gradient=([6.0, 8.0], [0.0, 6.0, 8.0])),
    "*=": case(put(scale), [1.0, 2.0], [1.0, 2.0, 3.0], gradient=([8.0, 36.0], [0.0, 4.0, 24.0])),
    "=": case(put(assign), [1.0, 1.0], [1.0, 2.0, 3.0], gradient=([0.0, 0.0], [0.0, 4.0, 6.0])),
    "put_along_axis": case(
        put(lambda y, v: np.put_along_axis(y, np.array([1, 1]), v, 0)),
        [1.0, 1.0],
        [2.0, 3.0],
        gradient=([2.0, 0.0], [0.0, 6.0]),
    ),
    "put": case(
        put(lambda y, v: np.put(y, [1, 1], v)),
        [1.0, 1.0],
        [2.0, 3.0],
        gradient=([2.0, 0.0], [0.0, 6.0]),
    ),
    "bincount": case(
        lambda w: np.sum(np.bincount([0, 2, 2], w, minlength=4) ** 2),
        [1.0, 2.0, 3.0],
        gradient=[2, 10, 10],
        dtypes=(np.float64,),  # NumPy's gives float64 whatever the weights are
    ),
    "overlapping windows": case(
        lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 2) ** 2),
        [1.0, 2.0, 3.0],
        gradient=[2, 8, 6],
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_repeated_indices(name):
    check(CASES[name])
