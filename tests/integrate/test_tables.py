"""Coefficients of the methods: order conditions in rational arithmetic, and SciPy's numbers.

The conditions hold to the rounding of the stored coefficients up to the stated order, and one of
the next order is violated by far more: the stated order is the order.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import DOP853 as SCIPY_DOP853
from scipy.integrate import RK23 as SCIPY_RK23
from scipy.integrate import RK45 as SCIPY_RK45
from scipy.integrate._ivp import radau as scipy_radau

from wengert.scipy.integrate.ivp import radau_method
from wengert.scipy.integrate.ivp.esdirk_methods import KVAERNO3, KVAERNO4, KVAERNO5
from wengert.scipy.integrate.ivp.explicit_methods import DOP853, RK23, RK45, TSIT5, VERN7
from wengert.scipy.integrate.ivp.rosenbrock_methods import RODAS4, RODAS5P

from .rooted_trees import errors, gamma, size, trees

ROUNDING = 4.0  # units of errors(): each coefficient is rounded once
VIOLATED = 1e6

EXPLICIT = {table.name: table for table in (RK23, RK45, TSIT5, DOP853, VERN7)}
ORDERS_OF_ERRORS = {"RK23": 2, "RK45": 4, "tsit5": 4, "DOP853": 5, "vern7": 6}
ORDERS_OF_INTERPOLANTS = {"RK23": 3, "RK45": 4, "tsit5": 4, "DOP853": 7, "vern7": 6}


def square(table):
    """The matrix of all stages: of the step, at its end, and of the interpolant."""
    rows = [(), *table.a, table.b, *table.extra_a]
    return [[*row, *(0.0,) * (len(rows) - len(row))] for row in rows]


def padded(weights, a):
    return [*weights, *(0.0,) * (len(a) - len(weights))]


def polynomials(table):
    """Coefficients of the powers of x for each stage, with the nested form of DOP853 expanded."""
    if table.interpolant:
        return table.interpolant
    stages, end = len(table.c) + 1 + len(table.extra_c), len(table.c)
    rows = [[Fraction(0)] * stages for _ in range(7)]
    for i, b in enumerate(table.b):
        rows[0][i] += Fraction(b)
        rows[1][i] -= Fraction(b)
        rows[2][i] += 2 * Fraction(b)
    rows[1][0] += 1
    rows[2][0] -= 1
    rows[2][end] -= 1
    for k, row in enumerate(table.dop853_interpolant, start=3):
        rows[k] = [Fraction(x) for x in row]
    total = np.zeros((stages, 8), dtype=object)
    factor = np.array([Fraction(1)])
    for k, row in enumerate(rows):
        factor = np.convolve(factor, [0, 1] if k % 2 == 0 else [1, -1])
        total[:, : len(factor)] += np.outer(row, factor)
    return [list(row[1:]) for row in total]


@pytest.mark.parametrize("name", EXPLICIT)
def test_conditions_of_the_stated_order_hold(name):
    table = EXPLICIT[name]
    a = square(table)
    weights = padded(table.b, a)
    for order in range(1, table.order + 1):
        assert max(errors(a, weights, order)) < ROUNDING
    assert max(errors(a, weights, table.order + 1)) > VIOLATED


@pytest.mark.parametrize("name", EXPLICIT)
def test_the_error_estimate_is_that_of_an_embedded_method(name):
    table = EXPLICIT[name]
    a = square(table)
    estimates = [(table.error, ORDERS_OF_ERRORS[name])]
    if table.error_3:
        estimates.append((table.error_3, 3))
    for weights, embedded in estimates:
        for order in range(1, embedded + 1):
            assert max(errors(a, padded(weights, a), order, lambda tree: Fraction(0))) < ROUNDING
        assert max(errors(a, padded(weights, a), embedded + 1, lambda tree: Fraction(0))) > VIOLATED


@pytest.mark.parametrize("name", EXPLICIT)
def test_the_interpolant_has_its_order(name):
    table = EXPLICIT[name]
    a, rows = square(table), polynomials(table)
    assert len(rows) == len(a)
    for order in range(1, ORDERS_OF_INTERPOLANTS[name] + 2):
        largest = 0.0
        for power in range(1, len(rows[0]) + 1):
            weights = [row[power - 1] for row in rows]
            found = errors(
                a, weights, order, lambda t, p=power: Fraction(int(p == size(t)), gamma(t))
            )
            largest = max(largest, *found)
        if order <= ORDERS_OF_INTERPOLANTS[name]:
            assert largest < 40 * ROUNDING
        else:
            assert largest > VIOLATED


@pytest.mark.parametrize("name", EXPLICIT)
def test_times_of_stages_are_sums_of_rows(name):
    table = EXPLICIT[name]
    times = (*table.c, 1, *table.extra_c)
    sums = [float(sum(map(Fraction, row))) for row in square(table)]
    np.testing.assert_allclose(sums, times, rtol=4e-15, atol=1e-14)


@pytest.mark.parametrize("theirs", [SCIPY_RK23, SCIPY_RK45, SCIPY_DOP853])
def test_coefficients_are_those_of_scipy(theirs):
    table = EXPLICIT[theirs.__name__]
    stages = len(table.b)
    np.testing.assert_array_equal(table.c, theirs.C)
    np.testing.assert_array_equal(table.b, theirs.B)
    np.testing.assert_array_equal(
        [row[:stages] for row in square(table)[:stages]], padded_columns(theirs.A, stages)
    )
    if table.name == "DOP853":
        np.testing.assert_array_equal(table.error, theirs.E5)
        np.testing.assert_array_equal(table.error_3, theirs.E3)
        np.testing.assert_array_equal(table.dop853_interpolant, theirs.D)
        np.testing.assert_array_equal(square(table)[stages + 1 :], theirs.A_EXTRA)
        np.testing.assert_array_equal(table.extra_c, theirs.C_EXTRA)
    else:
        np.testing.assert_array_equal(table.error, theirs.E)
        np.testing.assert_array_equal(table.interpolant, theirs.P)


def padded_columns(a, columns):
    return np.pad(a, ((0, 0), (0, columns - a.shape[1])))


def test_there_are_as_many_trees_as_conditions():
    assert [len(trees(n)) for n in range(1, 10)] == [1, 1, 2, 4, 9, 20, 48, 115, 286]


def with_diagonal(rows, diagonal):
    """A lower triangular matrix from the rows below its diagonal."""
    size = len(diagonal)
    return [
        [*map(Fraction, row), Fraction(d), *(Fraction(0),) * (size - k - 1)]
        for k, (row, d) in enumerate(zip(((), *rows), diagonal, strict=True))
    ]


def product(a, b):
    columns = list(zip(*b, strict=True))
    return [[sum(x * y for x, y in zip(row, c, strict=True)) for c in columns] for row in a]


def inverted(a):
    """The inverse of a lower triangular matrix."""
    rows = []
    for k, row in enumerate(a):
        unit = [Fraction(int(j == k)) for j in range(len(a))]
        for j in range(k):
            unit = [u - row[j] * x for u, x in zip(unit, rows[j], strict=True)]
        rows.append([u / row[k] for u in unit])
    return rows


def rounded(rows):
    """Fractions as multiples of a power of two, far below the rounding of the coefficients."""
    return [[Fraction(round(x * 2**140), 2**140) for x in row] for row in rows]


@pytest.mark.parametrize("table", [KVAERNO3, KVAERNO4, KVAERNO5], ids=lambda t: t.name)
def test_kvaerno(table):
    """Orders of both states; the last stage forgets infinitely stiff components (L-stable)."""
    a = with_diagonal(table.a, (0.0, *(table.gamma,) * len(table.a)))
    np.testing.assert_allclose([float(sum(row)) for row in a], table.times, atol=1e-14)
    for weights, order in ((a[-1], table.order), (a[-2], table.error_order)):
        for k in range(1, order + 1):
            assert max(errors(a, weights, k)) < 4 * ROUNDING
        assert max(errors(a, weights, order + 1)) > VIOLATED
    states = [Fraction(1)]
    for row in a[1:]:
        earlier = sum(x * y for x, y in zip(row[: len(states)], states, strict=True))
        states.append(-earlier / row[len(states)])
    assert abs(states[-1]) < 1e-13 and abs(states[-2]) < 1
    assert all(abs(sum(row) - 1) < 1e-12 for row in table.predictor)


@pytest.mark.parametrize("table", [RODAS4, RODAS5P], ids=lambda t: t.name)
def test_rosenbrock(table):
    """Orders of both states, in the variables in which the stages multiply with the Jacobian."""
    size = len(table.times)
    minus = [[-x for x in row] for row in table.c]
    gamma_matrix = inverted(with_diagonal(minus, (1 / Fraction(table.gamma),) * size))
    alpha = product(with_diagonal(table.a, (0.0,) * size), gamma_matrix)
    beta = [
        [x + y for x, y in zip(*rows, strict=True)]
        for rows in zip(alpha, gamma_matrix, strict=True)
    ]
    last = [*map(Fraction, table.a[-1]), Fraction(1)]
    weights = product([last], gamma_matrix)[0]
    embedded = product([[*map(Fraction, table.a[-1]), Fraction(0)]], gamma_matrix)[0]
    np.testing.assert_allclose([float(sum(row)) for row in alpha], table.times, atol=2e-14)
    sums = [float(sum(row)) for row in gamma_matrix]
    np.testing.assert_allclose(sums, table.time_weights, atol=2e-13)
    alpha, beta, (weights, embedded) = map(rounded, (alpha, beta, (weights, embedded)))
    for b, order in ((weights, table.order), (embedded, table.error_order)):
        for k in range(1, order + 1):
            assert max(errors(alpha, b, k, single=beta)) < 1e2 * ROUNDING
        assert max(errors(alpha, b, order + 1, single=beta)) > VIOLATED


def test_radau():
    """The order, the transformation to block diagonal form, and SciPy's numbers."""
    a, b = radau_method.WEIGHTS, radau_method.WEIGHTS[-1]
    for order in range(1, 6):
        assert max(errors(a, b, order)) < ROUNDING
    assert max(errors(a, b, 6)) > VIOLATED
    np.testing.assert_allclose(np.sum(a, axis=1), radau_method.NODES, rtol=1e-15)
    mu = radau_method.COMPLEX
    blocks = np.array([[radau_method.REAL, 0, 0], [0, mu.real, -mu.imag], [0, mu.imag, mu.real]])
    vectors, inverse = np.array(radau_method.VECTORS), np.array(radau_method.INVERSE)
    np.testing.assert_allclose(vectors @ blocks @ inverse @ a, np.eye(3), atol=2e-14)
    np.testing.assert_allclose(vectors @ inverse, np.eye(3), atol=2e-15)
    for ours, theirs in (
        ("NODES", "C"),
        ("ERROR", "E"),
        ("REAL", "MU_REAL"),
        ("COMPLEX", "MU_COMPLEX"),
        ("VECTORS", "T"),
        ("INVERSE", "TI"),
        ("INTERPOLANT", "P"),
    ):
        np.testing.assert_array_equal(getattr(radau_method, ours), getattr(scipy_radau, theirs))
