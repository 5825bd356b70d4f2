"""scipy.spatial.distance with tensors: values are SciPy's, derivatives those of differences."""

import numpy as np
import pytest
import scipy.spatial.distance as theirs

import wengert as wg
from wengert.errors import ArgumentError, ShapeError
from wengert.scipy.spatial import distance

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.1, 1.0, (4, 3)), RNG.uniform(0.1, 1.0, (5, 3))
W = np.array([0.5, 2.0, 1.5])
P = RNG.normal(size=(3, 3))
METRICS = [
    *[(name, {}) for name in distance._VECTOR_METRICS],
    ("jensenshannon", {}),
    *[(name, {"w": W}) for name in
      "euclidean sqeuclidean cityblock chebyshev cosine correlation braycurtis canberra".split()],
    ("minkowski", {"p": 3.0, "w": W}),
    ("minkowski", {"p": 1.5}),
    ("minkowski", {"p": np.inf}),
    ("seuclidean", {"V": W}),
    ("mahalanobis", {"VI": P @ P.T}),
]  # fmt: skip
IDS = [f"{name} {'-'.join(options)}" for name, options in METRICS]


def differences(f, x, h=1e-6):
    steps = h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(f(x + d) - f(x - d)) / (2 * h) for d in steps]).reshape(x.shape)


@pytest.mark.parametrize(("metric", "options"), METRICS, ids=IDS)
def test_all_pairs(metric, options):
    weights, of_one = RNG.normal(size=(4, 5)), RNG.normal(size=6)
    ours = lambda x: np.sum(weights * distance.cdist(x, B, metric, **options))  # noqa: E731
    scipys = lambda x: np.sum(weights * theirs.cdist(x, B, metric, **options))  # noqa: E731
    value, gradient = wg.value_and_grad(ours)(A)
    np.testing.assert_allclose(value, scipys(A), rtol=1e-12)
    np.testing.assert_allclose(gradient, differences(scipys, A), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.grad(ours))(A), gradient, rtol=1e-10, atol=1e-12)
    ours = lambda x: np.sum(of_one * distance.pdist(x, metric, **options))  # noqa: E731
    scipys = lambda x: np.sum(of_one * theirs.pdist(x, metric, **options))  # noqa: E731
    value, gradient = wg.value_and_grad(ours)(A)
    np.testing.assert_allclose(value, scipys(A), rtol=1e-12)
    np.testing.assert_allclose(gradient, differences(scipys, A), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*distance._VECTOR_METRICS, "jensenshannon"])
def test_two_vectors(name):
    more = {"seuclidean": [W], "mahalanobis": [P @ P.T], "minkowski": [3.0]}.get(name, [])
    f, g = getattr(distance, name), getattr(theirs, name)
    value, gradient = wg.value_and_grad(lambda u: f(u, B[0], *more))(A[0])
    np.testing.assert_allclose(value, g(A[0], B[0], *more), rtol=1e-12)
    expected = differences(lambda u: g(u, B[0], *more), A[0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    assert f(A[0], B[0], *more) == g(A[0], B[0], *more)  # plain arrays are SciPy's


def test_scipys_own_functions_are_replaced():
    def kernel(x):  # as in a Gaussian process
        return np.sum(np.exp(-0.5 * theirs.cdist(x, x, "sqeuclidean")))

    gradient = wg.jit(wg.grad(kernel))(A)
    np.testing.assert_allclose(gradient, differences(kernel, A), rtol=1e-6, atol=1e-8)
    whole = lambda x: np.sum(theirs.squareform(theirs.pdist(x)) ** 3)  # noqa: E731
    np.testing.assert_allclose(wg.grad(whole)(A), differences(whole, A), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "mahalanobis", "jensenshannon"])
def test_equal_rows_have_derivative_zero(metric):
    options = {"VI": np.eye(3)} if metric == "mahalanobis" else {}
    f = lambda x: np.sum(distance.cdist(x, A, metric, **options) * np.eye(4))  # noqa: E731
    for transform in (wg.grad, lambda f: wg.jit(wg.grad(f))):
        assert np.array_equal(transform(f)(A), np.zeros((4, 3)))


def test_a_function_of_two_vectors():
    def metric(u, v, power=2):
        return np.sum(np.abs(u - v) ** power) * u[0]

    f = lambda x: np.sum(distance.cdist(x, B, metric, power=3))  # noqa: E731
    expected = differences(lambda x: np.sum(theirs.cdist(x, B, metric, power=3)), A)
    np.testing.assert_allclose(wg.grad(f)(A), expected, rtol=1e-6, atol=1e-8)
    g = lambda x: np.sum(distance.pdist(x, metric))  # noqa: E731
    expected = differences(lambda x: np.sum(theirs.pdist(x, metric)), A)
    np.testing.assert_allclose(wg.grad(g)(A), expected, rtol=1e-6, atol=1e-8)


def test_squareform():
    d = np.arange(1.0, 7.0)
    assert np.array_equal(distance.squareform(wg.tensor(d)).numpy(), theirs.squareform(d))
    matrix = theirs.squareform(d)
    assert np.array_equal(distance.squareform(wg.tensor(matrix)).numpy(), d)
    assert distance.jensenshannon(wg.tensor(A[0]), A[1], 2.0) == pytest.approx(
        theirs.jensenshannon(A[0], A[1], 2.0)
    )
    gradient = wg.grad(lambda d: np.sum(distance.squareform(d) ** 2))(d)
    np.testing.assert_allclose(gradient, 4 * d)


def test_errors():
    x = wg.tensor(A)
    with pytest.raises(ArgumentError, match=r"no metric 'jaccard'. Choose one of .*euclidean"):
        distance.cdist(x, B, "jaccard")
    with pytest.raises(ArgumentError, match="out= is not possible with tensors"):
        distance.cdist(x, B, out=np.zeros((4, 5)))
    with pytest.raises(ArgumentError, match="'cityblock' has no option 'p', but w"):
        distance.pdist(x, "cityblock", p=3)
    with pytest.raises(ShapeError, match="XA have 3 elements, and those of XB 2"):
        distance.cdist(x, B[:, :2])
    with pytest.raises(ShapeError, match="must be a matrix whose rows are vectors"):
        distance.cdist(x[0], B)
    with pytest.raises(ShapeError, match=r"euclidean: arrays of shapes .* For many use cdist"):
        distance.euclidean(x, A)
    with pytest.raises(ShapeError, match=r"shape \(5,\)"):
        distance.squareform(wg.tensor(np.zeros(5)))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = distance.nothing
