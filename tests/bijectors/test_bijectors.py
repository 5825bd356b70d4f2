"""Constraint transforms: values from their definitions, inverses, Jacobian determinants, errors.

CASES has each bijector once or more; FREE says which elements of the constrained value are the
coordinates of the log-Jacobian.
"""

import numpy as np
import pytest

import wengert as wg
from wengert import bijectors as bj
from wengert.errors import ArgumentError, DtypeError, ShapeError, StructureError, WengertError

CASES = {
    "real": bj.Real((2, 2)),
    "positive": bj.Positive(3),
    "positive number": bj.Positive(),
    "softplus": bj.Positive(3, by="softplus"),
    "lower": bj.Lower(1.5, 3),
    "lower of each": bj.Lower([0.0, -1.0, 2.0], (2, 3)),
    "upper": bj.Upper(-2.0, 3),
    "interval": bj.Interval(-1.0, 2.5, 3),
    "interval of each": bj.Interval(np.zeros(3), [1.0, 2.0, 3.0], (2, 3)),
    "ordered": bj.Ordered(4),
    "ordered rows": bj.Ordered((2, 3)),
    "simplex": bj.Simplex(5),
    "simplex rows": bj.Simplex((2, 3)),
    "simplex of one": bj.Simplex(1),
    "correlation": bj.CorrelationCholesky(4),
    "correlation of one": bj.CorrelationCholesky(1),
    "covariance": bj.CovarianceCholesky(3),
    "unit vector": bj.UnitVector(3),
}
BIJECTIVE = [name for name in CASES if name != "unit vector"]


def free(bijector, x):
    """The coordinates of a constrained value."""
    if isinstance(bijector, bj.Simplex):
        x = x[..., :-1]
    elif isinstance(bijector, bj.CorrelationCholesky):
        x = x[np.tril_indices(bijector.n, -1)]
    elif isinstance(bijector, bj.CovarianceCholesky):
        x = x[np.tril_indices(bijector.n)]
    return np.reshape(x, (-1,))


def point(bijector, seed=0, scale=1.0):
    u = np.random.default_rng(seed).normal(size=bijector.unconstrained_shape, scale=scale)
    return u if u.shape else float(u)


@pytest.mark.parametrize("name", CASES)
def test_inverse_of_forward(name):
    b = CASES[name]
    u = point(b)
    x = b.forward(u)
    assert np.shape(x) == b.shape
    if name == "unit vector":
        assert np.isclose(np.sum(x**2), 1.0) and np.allclose(x / u, x[0] / u[0])
        assert np.allclose(b.forward(b.inverse(x)), x, rtol=1e-15)
    else:
        np.testing.assert_allclose(b.inverse(x), u, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BIJECTIVE)
def test_log_jacobian_is_that_of_the_matrix_of_derivatives(name):
    b = CASES[name]
    u = point(b, 1)
    jacobian = wg.jacobian(lambda v: free(b, b.forward(v)))(u)
    expected = np.linalg.slogdet(np.reshape(jacobian, (b.size, b.size)))[1]
    np.testing.assert_allclose(b.log_det_jacobian(u), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    b = CASES[name]
    if b.size:
        wg.check_grads(b.forward_and_log_det, (point(b, 2, 0.7),), order=2)


@pytest.mark.parametrize("name", CASES)
def test_compiled_and_batched(name):
    b = CASES[name]
    u = np.stack([point(b, k) for k in range(3)])
    both = [b.forward_and_log_det(v) for v in u]
    for f in (wg.vmap(b.forward_and_log_det), wg.jit(wg.vmap(b.forward_and_log_det))):
        values, log_dets = f(u)
        np.testing.assert_allclose(values, np.stack([x for x, _ in both]), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(log_dets, [d for _, d in both], rtol=1e-12, atol=1e-14)
    assert np.allclose(wg.jit(b.inverse)(both[0][0]), b.inverse(both[0][0]))


@pytest.mark.parametrize("name", CASES)
def test_single_precision_is_kept(name):
    b = CASES[name]
    u = np.asarray(point(b), np.float32)
    if name not in ("lower of each", "interval of each"):  # bounds of double precision
        assert np.asarray(b.forward(u)).dtype == np.float32
        if name != "simplex of one":
            assert np.allclose(b.inverse(b.forward(u)), b.inverse(b.forward(u.astype(float))), 1e-3)


def test_stick_breaking_is_that_of_its_definition():
    u = np.array([0.3, -1.2, 2.0])
    left, log_det, expected = 1.0, 0.0, []
    for k, v in enumerate(u):
        z = 1.0 / (1.0 + np.exp(-(v - np.log(len(u) - k))))
        log_det += np.log(left * z * (1.0 - z))
        expected.append(left * z)
        left -= expected[-1]
    x, found = bj.Simplex(4).forward_and_log_det(u)
    assert np.allclose(x, [*expected, left], rtol=1e-14) and np.isclose(found, log_det)


def test_correlations_are_those_of_their_definition():
    u = np.array([0.5, -1.0, 0.2])
    z = np.tanh(u)
    rows = [[1.0, 0.0, 0.0], [z[0], np.sqrt(1 - z[0] ** 2), 0.0]]
    second = z[2] * np.sqrt(1 - z[1] ** 2)
    rows.append([z[1], second, np.sqrt(1 - z[1] ** 2 - second**2)])
    assert np.allclose(bj.CorrelationCholesky(3).forward(u), rows, rtol=1e-14)


def test_unit_vectors_are_uniform_under_a_constant_density():
    """The density of u, exp(log_det), is that of standard normal numbers up to a constant."""
    u = np.array([0.3, -1.0, 2.0])
    assert np.isclose(bj.UnitVector(3).log_det_jacobian(u), -0.5 * np.sum(u**2))


def test_far_values_are_finite():
    x = bj.Simplex(3).forward([-700.0, 0.0])
    assert x[0] > 0.0 and np.isclose(np.log(x[0]), -700.0 - np.log(2.0), rtol=1e-14)
    for b in (bj.Simplex(3), bj.CorrelationCholesky(3), bj.Interval(0.0, 1.0, 3)):
        u = np.full(b.unconstrained_shape, 400.0)
        assert np.isfinite(b.log_det_jacobian(u))
        assert np.all(np.isfinite(wg.grad(b.log_det_jacobian)(u)))
    softplus = bj.Positive(2, by="softplus")
    assert np.allclose(softplus.inverse(softplus.forward([-300.0, 800.0])), [-300.0, 800.0])


def test_bounds_can_be_parameters():
    def density(p):
        value, log_det = bj.Interval(p["low"], p["low"] + 2.0, 2).forward_and_log_det(p["u"])
        return np.sum(value**2) + log_det

    p = {"low": 0.5, "u": np.array([0.1, -0.4])}
    wg.check_grads(density, (p,), order=2)
    compiled, eager = wg.jit(wg.grad(density))(p), wg.grad(density)(p)
    assert np.isclose(compiled["low"], eager["low"]) and np.allclose(compiled["u"], eager["u"])
    bound = wg.grad(lambda high: bj.Upper(high, 2).forward(np.zeros(2)).sum())(1.0)
    assert bound == 2.0 and wg.grad(lambda low: bj.Lower(low).inverse(3.0))(1.0) == -0.5


JOINT = {"corr": bj.CorrelationCholesky(3), "parts": [bj.Positive(2), bj.Real()]}


def test_containers():
    joint = bj.Joint(JOINT)
    assert joint.size == 6
    v = np.arange(6.0) / 5.0
    u = joint.unravel(v)
    assert np.array_equal(joint.ravel(u), v) and u["corr"].shape == (3,)
    x, log_det = joint.forward_and_log_det(u)
    expected = JOINT["corr"].log_det_jacobian(v[:3]) + v[3] + v[4]
    assert np.isclose(log_det, expected) and np.isclose(joint.log_det_jacobian(u), expected)
    assert np.allclose(joint.ravel(joint.inverse(x)), v) and np.allclose(
        joint.forward(u)["parts"][0], np.exp(v[3:5])
    )
    assert bj.Joint({}).size == 0 and bj.Joint({}).ravel({}).size == 0


def test_densities_of_vectors():
    joint = bj.Joint({"sd": bj.Positive(), "w": bj.Simplex(3)})

    def density(p):
        return -p["sd"] - np.sum((p["w"] - 0.2) ** 2)

    on_vectors = joint.unconstrained(density)
    v = np.array([0.2, -0.3, 0.4])
    p, log_det = joint.forward_and_log_det(joint.unravel(v))
    assert np.isclose(on_vectors(v), density(p) + log_det)
    wg.check_grads(on_vectors, (v,), order=2)
    compiled = wg.jit(wg.value_and_grad(on_vectors))
    assert np.allclose(compiled(v)[1], wg.grad(on_vectors)(v))
    assert np.allclose(wg.hessian(on_vectors)(v), wg.jit(wg.hessian(on_vectors))(v))


ERRORS = [
    (lambda: bj.Positive(2).inverse([1.0, -3.0]), ArgumentError, r"Positive.*positive.*-3\.0"),
    (lambda: bj.Lower(2.0).inverse(1.5), ArgumentError, r"Lower\(2\.\).*above the bound.*1\.5"),
    (lambda: bj.Upper(2.0).inverse(2.0), ArgumentError, r"Upper\(2\.\).*below the bound.*2\.0"),
    (lambda: bj.Interval(0, 1).inverse(1.0), ArgumentError, r"between the bounds.*1\.0"),
    (lambda: bj.Interval(1.0, 1.0), ArgumentError, r"low must be below high.*low=1\..*high=1\."),
    (lambda: bj.Interval(0.0, np.inf), ArgumentError, r"high must be finite.*inf"),
    (lambda: bj.Lower([1.0, 2.0], 3), ShapeError, r"low has the shape \(2,\).*\(3,\)"),
    (lambda: bj.Ordered(2).inverse([1.0, 1.0]), ArgumentError, r"Ordered\(2\).*increase.*\[1\.0"),
    (lambda: bj.Simplex(2).inverse([0.5, 0.6]), ArgumentError, r"sum of the elements must be 1"),
    (lambda: bj.Simplex(2).inverse([1.5, -0.5]), ArgumentError, r"elements must be pos.*-0\.5"),
    (lambda: bj.UnitVector(2).inverse([1.0, 1.0]), ArgumentError, r"length must be 1"),
    (lambda: bj.UnitVector(0), ArgumentError, r"UnitVector: the shape is 0"),
    (lambda: bj.Simplex(()), ArgumentError, r"Simplex: the shape is \(\)"),
    (lambda: bj.CorrelationCholesky(2).inverse(np.ones((2, 2))), ArgumentError, "above the diag"),
    (lambda: bj.CorrelationCholesky(2).inverse(2 * np.eye(2)), ArgumentError, "rows must have"),
    (lambda: bj.CovarianceCholesky(2).inverse(-np.eye(2)), ArgumentError, "must be positive"),
    (lambda: bj.CovarianceCholesky(0), ArgumentError, r"CovarianceCholesky: n=0"),
    (lambda: bj.CorrelationCholesky(2.5), ArgumentError, r"CorrelationCholesky: n=2\.5"),
    (lambda: bj.Real().inverse(np.nan), ArgumentError, r"Real\(\).*finite.*nan"),
    (lambda: bj.Real(2).forward(np.zeros(3)), ShapeError, r"Real\(shape=\(2,\)\).*\(3,\)"),
    (lambda: bj.Real().forward(1j), DtypeError, r"complex128.*must be real"),
    (lambda: bj.Real("a"), DtypeError, r"Real: the shape is 'a'"),
    (lambda: bj.Real(-1), ArgumentError, r"Real: the shape is -1"),
    (lambda: bj.Positive(by="log"), ArgumentError, r"by='log'"),
    (lambda: bj.Joint({"a": 3.0}), DtypeError, r"a.* is 3\.0.*must be a bijector"),
    (lambda: bj.Joint(JOINT).unravel(np.zeros(7)), ShapeError, r"\(7,\).*there are 6"),
    (lambda: bj.Joint(JOINT).forward({"corr": np.zeros(3)}), StructureError, "another structure"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors_name_what_was_given(case):
    make, kind, message = ERRORS[case]
    with pytest.raises(kind, match=f"(?s){message}") as caught:
        make()
    assert isinstance(caught.value, WengertError) and "test_bijectors.py" in str(caught.value)


def test_values_of_traced_functions_are_not_checked():
    assert np.isnan(wg.jit(bj.Positive().inverse)(-1.0))


def test_bijectors_are_immutable():
    """Compiled functions have bounds as constants."""
    given = np.array([1.0, 2.0])
    b = bj.Lower(given, 2)
    compiled = wg.jit(lambda u: b.forward(u))
    assert compiled(np.zeros(2)).tolist() == [2.0, 3.0]
    with pytest.raises(AttributeError, match=r"Lower.*immutable"):
        b.low = 3.0
    with pytest.raises(ValueError, match="read-only"):
        b.low[0] = 3.0
    given[0] = 7.0
    assert b.forward(np.zeros(2)).tolist() == [2.0, 3.0]
    b = bj.Lower(5.0, 2)
    assert compiled(np.zeros(2)).tolist() == [6.0, 6.0]
