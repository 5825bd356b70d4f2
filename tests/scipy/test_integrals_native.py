"""Integrals that compiled programs compute without Python: results of SciPy's routines."""

import warnings

import numpy as np
import pytest
from scipy import integrate

import wengert as wg
from wengert.scipy.integrate import integral_operation

INF = np.inf
FUNCTIONS = [
    lambda x, p: p * np.exp(-x * x),
    lambda x, p: np.cos(3.0 * x) + p * x**5,
    lambda x, p: 1.0 / (1.0 + p * x * x),
    lambda x, p: np.sqrt(np.abs(x - 0.3)) * p,
    lambda x, p: np.sin(40.0 * p * x) * np.exp(x),
    lambda x, p: 0.0 * x * p,
    lambda x, p: p + 0.0 * x,
    lambda x, p: x * p,  # zero for symmetric limits
    lambda x, p: np.where(x > 0.2, x, -p),
    lambda x, p: np.log(np.abs(x) + 1e-30) * p,
    lambda x, p: p / np.sqrt(np.abs(x) + 1e-300),  # singular
    lambda x, p: np.abs(x) ** -p,  # infinite at zero
    lambda x, p: np.exp(-np.abs(x) * p) * np.sin(x),
    lambda x, p: 1.0 / (1.0 + np.abs(x)) ** (1.3 + p),
    lambda x, p: p / ((x - 0.4) ** 2 + 1e-4),
]
LIMITS = [(0.0, 1.0), (1.0, -2.0), (-1.0, 1.0), (0.5, 0.5), (-3.0, 1e-9), (0.0, 200.0)]
LIMITS += [(0.0, INF), (INF, 1.0), (-INF, 0.7), (-INF, INF)]
UNBOUNDED = (0, 2, 5, 10, 12, 13, 14)  # functions that are integrated to infinity
OPTIONS = [{}, {"epsabs": 1e-14, "epsrel": 1e-13}, {"limit": 3}, {"limit": 200, "epsabs": 0.0}]
OPTIONS += [{"points": (0.3, 0.1, 0.4, 0.1, 5.0)}, {"limit": 1}]


@pytest.mark.sample(8)
@pytest.mark.parametrize("k", range(len(FUNCTIONS)))
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_values_errors_and_counts_are_those_of_scipy(k, options):
    f = FUNCTIONS[k]

    def both(a, b, p):
        value, error, info = integrate.quad(lambda x: f(x, p), a, b, full_output=1, **options)[:3]
        return value, error, info["neval"]

    compiled = wg.jit(both)
    for a, b in LIMITS:
        if np.isfinite(a + b) or (k in UNBOUNDED and "points" not in options):
            with np.errstate(all="ignore"):
                expected = both(a, b, 0.7)
            found = compiled(a, b, 0.7)
            size = 1e-14 * (1.0 + abs(expected[0]) + expected[1])
            if expected[2] == found[2]:
                np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=10 * size)
                np.testing.assert_allclose(found[1], expected[1], rtol=1e-3, atol=size)
            else:  # the last bit of a function decides
                assert options.get("epsabs") == 1e-14, (k, a, b)
                np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)


def smooth(a, b):
    return integrate.quad(lambda x: a * np.exp(-b * x * x) * np.cos(x), 0.0, 1.5)[0]


def peak(a, b):
    return integrate.quad(lambda x: 1.0 / ((x - a) ** 2 + b * b / 50.0), 0.0, 1.0, limit=200)[0]


def tail(a, b):
    return integrate.quad(lambda x: x**a * np.exp(-b * x), 0.0, INF)[0]


def line(a, b):
    return integrate.quad(lambda x: np.exp(-a * x * x + b * x), -INF, INF)[0]


def kink(a, b):
    return integrate.quad(lambda x: a * np.abs(x - 0.3) + b, 0.0, 1.0, points=[0.3])[0]


def branches(a, b):
    return integrate.quad(lambda x: a * x if x < 0.5 else b * np.sqrt(x), 0.0, 1.0, points=[0.5])[0]


def series(a, b):
    def value(x):
        term = total = 1.0
        for k in range(1, 12):
            term = term * a * x / k
            total = total + term
        return b * total

    return integrate.quad(value, 0.0, 1.0)[0]


def area(a, b):
    return integrate.dblquad(lambda y, x: np.sqrt(x + a * y) * b, 0.0, 1.0, 0.0, lambda x: x)[0]


def plane(a, b):
    ranges, options = [(-INF, INF), (0.0, INF)], {"limit": 100}
    function = lambda y, x: np.exp(-a * x - b * x * y * y - y * y)  # noqa: E731
    return integrate.nquad(function, ranges, opts=options)[0]


INTEGRALS = [smooth, peak, tail, line, kink, branches, series, area, plane]
POINT = 0.7, 0.9


@pytest.mark.parametrize("value", INTEGRALS, ids=lambda f: f.__name__)
def test_no_python_runs(value, monkeypatch):
    """SciPy is not called for values, gradients, tangents and batches."""
    gradient = wg.value_and_grad(value, (0, 1))
    expected = gradient(*POINT)
    tangent = wg.jit(lambda a, b: wg.jvp(value, (a, b), (1.0, 0.0))[1])
    compiled, batch = wg.jit(gradient), wg.jit(wg.vmap(value, (0, None)))
    several = np.array([0.7, 0.8])
    before = compiled(*POINT), tangent(*POINT), batch(several, 0.9)
    monkeypatch.setattr(integrate, "quad", None)
    assert compiled(*POINT) == before[0]
    assert tangent(*POINT) == before[1]
    assert list(batch(several, 0.9)) == list(before[2])
    np.testing.assert_allclose(before[0][0], expected[0], rtol=1e-10)
    np.testing.assert_allclose(before[0][1], expected[1], rtol=1e-7)
    np.testing.assert_allclose(before[1], expected[1][0], rtol=1e-7)
    np.testing.assert_allclose(before[2][0], expected[0], rtol=1e-10)


@pytest.mark.parametrize("value", [smooth, peak, tail])
def test_second_derivatives(value):
    step = 1e-5
    slope = wg.grad(value)
    difference = (slope(0.7 + step, 0.9) - slope(0.7 - step, 0.9)) / (2 * step)
    np.testing.assert_allclose(wg.jit(wg.grad(slope))(*POINT), difference, rtol=1e-6)


def test_limits_are_found_when_the_program_runs():
    def value(a, b):
        return integrate.quad(lambda x: np.exp(-np.abs(x)) * (1.0 + x), a, b)[0]

    compiled, slope = wg.jit(value), wg.jit(wg.grad(value, (0, 1)))
    ends = [(0.0, 1.0), (1.0, 0.0), (2.0, INF), (INF, 2.0), (-INF, 0.5), (-INF, INF), (3.0, 3.0)]
    for a, b in ends:
        np.testing.assert_allclose(compiled(a, b), value(a, b), rtol=1e-13, err_msg=f"{a}, {b}")
        assert np.all(np.isfinite(slope(a, b)))
    with pytest.warns(integrate.IntegrationWarning):
        assert np.isnan(compiled(np.nan, 1.0))


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


def test_elements_of_a_gradient_end_at_different_times():
    def value(w):
        return integrate.quad(lambda x: np.sum(np.cos(w * x)), 0.0, 10.0)[0]

    w = np.array([0.1, 3.0, 11.0])
    exact = 10.0 * np.cos(10.0 * w) / w - np.sin(10.0 * w) / w**2
    np.testing.assert_allclose(wg.jit(wg.grad(value))(w), exact, rtol=1e-9)


def test_large_integrands_and_many_subintervals():
    table = np.linspace(0.0, 1.0, 5000)

    def big(c):
        return integrate.quad(lambda x: np.sum(np.cos(c * x * table)), 0.0, 1.0)[0]

    np.testing.assert_allclose(wg.jit(wg.grad(big))(0.5), wg.grad(big)(0.5), rtol=1e-9)

    def many(c):
        return integrate.quad(lambda x: np.cos(c * x), 0.0, 1.0, limit=10000, full_output=1)

    value, _, info = wg.jit(many)(9000.0)
    np.testing.assert_allclose(value, np.sin(9000.0) / 9000.0, atol=1e-8)
    assert abs(int(info["neval"]) - many(9000.0)[2]["neval"]) <= 84


def test_warnings_are_those_of_scipy(monkeypatch):
    """SciPy gives its message once for each status; later ones are shown without it."""
    monkeypatch.setattr(integral_operation, "_MESSAGES", {})

    def value(c):
        return integrate.quad(lambda x: np.cos(c * x), 0.0, 1.0, limit=7, full_output=1)

    compiled = wg.jit(lambda c: value(c)[0])
    expected, message = [value(900.0 + k)[0] for k in range(2)], value(900.0)[3]
    for k in range(2):
        with pytest.warns(integrate.IntegrationWarning) as caught:
            found = compiled(900.0 + k)
        assert [str(w.message) for w in caught] == [f"quad: {message}"]
        np.testing.assert_allclose(found, expected[k], rtol=1e-9)
        monkeypatch.setattr(integrate, "quad", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(1.0)
        with pytest.raises(integrate.IntegrationWarning):
            compiled(900.0)


def test_warnings_of_elements():
    def value(w):
        return integrate.quad(lambda x: np.sum(np.cos(w * x)), 0.0, 1.0, limit=2)[0]

    with pytest.warns(integrate.IntegrationWarning) as caught:
        slope = wg.jit(wg.grad(value))(np.array([1.0, 90.0, 80.0]))
    derived = [w for w in caught if str(w.message).startswith("the derivative of quad: ")]
    assert len(derived) == 2 and np.all(np.isfinite(slope))
    with pytest.warns(integrate.IntegrationWarning) as caught:
        wg.jit(wg.grad(value))(np.array([1.0, 90.0, 80.0]))
    assert len([w for w in caught if "derivative" in str(w.message)]) == 2


def test_a_program_for_several_sizes(monkeypatch):
    def value(w):
        return integrate.quad(lambda x: np.exp(-np.sum(w * x**2)), 0.0, INF)[0]

    compiled, slope = wg.jit(value), wg.jit(wg.grad(value))
    for n in (3, 4, 5, 20):
        w = np.linspace(0.5, 1.0, n)
        np.testing.assert_allclose(compiled(w), value(w), rtol=1e-13)
        np.testing.assert_allclose(slope(w), wg.grad(value)(w), rtol=1e-10)
    assert "loop quadrature" in str(compiled.lower(wg.spec("n")).loops)
    vector = integrate.quad_vec
    monkeypatch.setattr(integrate, "quad_vec", None)  # few elements are separate integrals
    slope(np.linspace(0.5, 1.0, 4))
    monkeypatch.setattr(integrate, "quad_vec", vector)


def test_lines_of_nodes_are_those_of_the_integral():
    def value(a):
        return integrate.quad(lambda x: np.exp(a * x), 0.0, 1.0)[0]

    with pytest.raises(wg.errors.BackendError, match=r"test_integrals_native.py:\d+, in value"):
        wg.jit(value).export("value.o", (wg.spec(()),))
