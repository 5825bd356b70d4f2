"""Matrices at the points where formulas by the inverse have none.

The determinant is a polynomial: its gradient are the cofactors, whatever the rank (docs/
conventions.md, 9.3).  Smooth functions of a spectrum are smooth where eigenvalues are equal: the
trace of f(A) has the gradient f'(A).  What has no derivative is refused, or infinite, and not a
finite number.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import MatrixError, WengertError

from .ways import case, check

RANK_ONE = np.outer([1.0, 2.0, -1.0], [3.0, 1.0, 1.0])
ALL_EQUAL = 2.0 * np.eye(3)
TURN = np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
PAIR = TURN @ np.diag([1.0, 1.0, 3.0]) @ TURN.T
DOUBLE = (np.float64,)


def cofactors(a):
    n = len(a)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            found[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return found


def second(a):
    """Second derivatives of the determinant of a 2 by 2 matrix."""
    h = np.zeros((2, 2, 2, 2))
    h[0, 0, 1, 1] = h[1, 1, 0, 0] = 1
    h[0, 1, 1, 0] = h[1, 0, 0, 1] = -1
    return h


def eigenvalues(f):
    return lambda a: np.sum(f(np.linalg.eigvalsh(a)))


CASES = {
    "det of rank 1": case(
        np.linalg.det, np.diag([1.0, 0.0]), gradient=np.diag([0.0, 1.0]), hessian=second(0)
    ),
    "det of rank 0": case(
        np.linalg.det, np.zeros((2, 2)), gradient=np.zeros((2, 2)), hessian=second(0)
    ),
    "det of rank 2 of 3": case(
        np.linalg.det,
        np.diag([2.0, 0.0, 3.0]),
        gradient=np.diag([0.0, 6.0, 0.0]),
    ),
    "det of rank 1 of 3": case(
        np.linalg.det, RANK_ONE, gradient=cofactors(RANK_ONE), orders=1, dtypes=DOUBLE
    ),
    "det of none": case(np.linalg.det, np.zeros((0, 0)), gradient=np.zeros((0, 0)), orders=1),
    "slogdet of negative": case(
        lambda a: np.linalg.slogdet(a)[1],
        np.diag([-2.0, 4.0]),
        gradient=np.diag([-0.5, 0.25]),
    ),
    "equal eigenvalues, sum of squares": case(
        eigenvalues(np.square), ALL_EQUAL, gradient=2 * ALL_EQUAL, orders=1, dtypes=DOUBLE
    ),
    "equal eigenvalues, sum of exponentials": case(
        eigenvalues(np.exp), ALL_EQUAL, gradient=np.exp(2) * np.eye(3), orders=1, dtypes=DOUBLE
    ),
    "two equal eigenvalues": case(
        eigenvalues(lambda x: x**3), PAIR, gradient=3 * PAIR @ PAIR, orders=1, dtypes=DOUBLE
    ),
    "nuclear norm": case(
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False)),
        ALL_EQUAL,
        gradient=np.eye(3),
        orders=1,
        dtypes=DOUBLE,
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_matrices(name):
    check(CASES[name])


def test_slogdet_of_a_singular_matrix_has_no_finite_slope():
    try:
        with np.errstate(all="ignore"):
            g = wg.grad(lambda a: np.linalg.slogdet(a)[1])(np.diag([1.0, 0.0]))
    except MatrixError:
        return
    assert not np.isfinite(g[1, 1])


@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_what_is_not_positive_definite_is_refused(make):
    for a in (np.diag([1.0, -1.0]), np.zeros((2, 2))):
        with pytest.raises((WengertError, np.linalg.LinAlgError)):
            make(wg.grad(lambda a: np.sum(np.linalg.cholesky(a))))(a)


@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_a_singular_matrix_is_refused(make):
    for f in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(2))):
        with pytest.raises((WengertError, np.linalg.LinAlgError)):
            make(wg.grad(lambda a, f=f: np.sum(f(a))))(np.zeros((2, 2)))
