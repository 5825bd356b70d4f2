"""Integrals that end after 21 evaluations, which compiled programs compute themselves."""

import numpy as np
import pytest
from scipy import integrate

import wengert as wg
from wengert.scipy.integrate import first_rule

FUNCTIONS = [
    lambda x, p: p * np.exp(-x * x),
    lambda x, p: np.cos(3.0 * x) + p * x**5,
    lambda x, p: 1.0 / (1.0 + p * x * x),
    lambda x, p: np.sqrt(np.abs(x - 0.3)) * p,  # more than 21
    lambda x, p: np.sin(40.0 * p * x) * np.exp(x),  # more than 21
    lambda x, p: 0.0 * x * p,
    lambda x, p: p + 0.0 * x,
    lambda x, p: x * p,  # zero for symmetric limits
    lambda x, p: np.where(x > 0.2, x, -p),
    lambda x, p: np.log(np.abs(x) + 1e-30) * p,
]
LIMITS = [
    (0.0, 1.0),
    (1.0, -2.0),
    (-1.0, 1.0),
    (0.5, 0.5),
    (0.0, np.inf),
    (-3.0, 1e-9),
    (0.0, 200.0),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("k", range(len(FUNCTIONS)))
@pytest.mark.parametrize("options", [{}, {"epsabs": 1e-14, "epsrel": 1e-13}, {"limit": 3}])
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_values_errors_and_counts_are_those_of_scipy(k, options):
    f = FUNCTIONS[k]

    def both(a, b, p):
        value, error, info = integrate.quad(lambda x: f(x, p), a, b, full_output=1, **options)[:3]
        return value, error, info["neval"]

    compiled = wg.jit(both)
    for a, b in LIMITS:
        if k in (0, 2, 5) or np.isfinite(b):
            with np.errstate(all="ignore"):
                expected = both(a, b, 0.7)
            found = compiled(a, b, 0.7)
            size = 1e-14 * (1.0 + abs(expected[0]) + expected[1])
            if expected[2] == found[2]:
                np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=10 * size)
                np.testing.assert_allclose(found[1], expected[1], rtol=1e-3, atol=size)
            else:  # the last bit of an estimate decides
                np.testing.assert_allclose(found[0], expected[0], atol=2e-8, rtol=1e-8)


def test_counts():
    def count(b):
        return integrate.quad(lambda x: np.exp(-b * x), 0.0, b, full_output=1)[2]["neval"]

    assert [int(wg.jit(count)(b)) for b in (1.0, 30.0, np.inf)] == [
        integrate.quad(lambda x, b=b: np.exp(-b * x), 0.0, b, full_output=1)[2]["neval"]
        for b in (1.0, 30.0, np.inf)
    ]


def test_no_python_runs(monkeypatch):
    """SciPy is not called for the value and its derivatives of both orders."""

    def value(a, b):
        return integrate.quad(lambda x: a * np.exp(-b * x * x) * np.cos(x), 0.0, 1.5)[0]

    slope = wg.jit(wg.grad(value, (0, 1)))
    curvature = wg.jit(wg.hessian(value))
    before = slope(1.3, 0.7), curvature(1.3, 0.7)
    monkeypatch.setattr(integrate, "quad", None)
    assert (slope(1.3, 0.7), curvature(1.3, 0.7)) == before
    with pytest.raises(TypeError):
        slope(1.3, 70000.0)


def test_vectors_batches_and_nested_integrals():
    def value(w):
        return integrate.quad(lambda x: np.exp(-np.sum(w * x ** np.arange(3.0))), 0.0, 1.0)[0]

    w = np.array([0.3, 0.2, 0.1])
    np.testing.assert_allclose(wg.jit(wg.grad(value))(w), wg.grad(value)(w), rtol=1e-12)
    several = np.stack([w, 2.0 * w, 300.0 * w])
    batch = wg.jit(wg.vmap(wg.value_and_grad(value)))(several)
    for k, row in enumerate(several):
        np.testing.assert_allclose(batch[0][k], value(row), rtol=1e-10)
        np.testing.assert_allclose(batch[1][k], wg.grad(value)(row), rtol=1e-10)

    def area(a):
        return integrate.dblquad(lambda y, x: np.exp(-a * x * y), 0.0, 1.0, 0.0, lambda x: x)[0]

    np.testing.assert_allclose(wg.jit(wg.grad(area))(0.8), wg.grad(area)(0.8), rtol=1e-12)


def test_large_integrands_are_not_written_for_all_points():
    table = np.linspace(0.0, 1.0, 5000)

    def big(c):
        return integrate.quad(lambda x: np.sum(np.cos(c * x * table)), 0.0, 1.0)[0]

    assert "host callback scipy_integral\n" in str(wg.jit(big).lower(wg.spec(())).loops)
    np.testing.assert_allclose(wg.jit(wg.grad(big))(0.5), wg.grad(big)(0.5), rtol=1e-9)


def test_nodes_and_weights():
    for power in range(0, 31, 2):
        exact = 2.0 / (power + 1.0)
        np.testing.assert_allclose(first_rule.KRONROD @ first_rule.NODES**power, exact, rtol=1e-14)
        if power < 20:
            found = first_rule.GAUSS @ first_rule.NODES**power
            np.testing.assert_allclose(found, exact, rtol=1e-14)
