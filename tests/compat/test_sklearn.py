"""Estimators: the checks of scikit-learn, comparison with its results, pipelines."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs the extra `learn`")

from sklearn import datasets, gaussian_process, linear_model
from sklearn.gaussian_process import kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import wengert as wg
from wengert import errors
from wengert.compat import sklearn
from wengert.compat.sklearn.gaussian_process import KERNELS, squared_distances

QUICK = ["Ridge"]
OF_ENVIRONMENT = "check_array_api_input"  # wants SCIPY_ARRAY_API=1 before SciPy is imported


def passes(name, only=()):
    """Run all checks, or those of some names; return the reasons of skipped ones."""
    skipped = []
    for estimator, check in estimator_checks_generator(getattr(sklearn, name)()):
        own = getattr(check, "func", check).__name__
        if own == OF_ENVIRONMENT or (only and own not in only):
            continue
        try:
            check(estimator)
        except pytest.skip.Exception as why:
            skipped.append(str(why))
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                raise
            skipped.append(str(error))
    return skipped


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in sorted(sklearn.__all__)],
)
def test_estimator_checks_of_scikit_learn(name):
    assert len(passes(name)) < 10


# Of all estimators in each run; all checks of all of them are slow.
FAST = """check_fit2d_1sample check_classifiers_one_label check_complex_data
check_estimators_empty_data_messages check_get_params_invariance check_set_params
check_do_not_raise_errors_in_init_or_set_param check_no_attributes_set_in_init""".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(sklearn.__all__))
def test_fast_checks_of_scikit_learn(name):
    assert len(passes(name, FAST)) < 4


@pytest.fixture(scope="module")
def diabetes():
    return datasets.load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def iris():
    return datasets.load_iris(return_X_y=True)


# ---- linear ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [slice(None), slice(0, 6)], ids=["tall", "wide"])
def test_ridge_agrees_with_scikit_learn(diabetes, rows):
    x, y = diabetes[0][rows], diabetes[1][rows]
    y = np.stack([y, y[::-1] ** 2], axis=1)
    weight = np.linspace(0, 1, len(y))
    for intercept in (True, False):
        ours = sklearn.Ridge(0.3, fit_intercept=intercept).fit(x, y, weight)
        theirs = linear_model.Ridge(0.3, fit_intercept=intercept).fit(x, y, weight)
        np.testing.assert_allclose(ours.predict(x), theirs.predict(x), rtol=1e-8)


@pytest.mark.parametrize("rows", [slice(None), slice(0, 6)], ids=["tall", "wide"])
def test_linear_regression_agrees_with_scikit_learn(diabetes, rows):
    x, y = diabetes[0][rows], diabetes[1][rows]
    weight = np.linspace(0, 1, len(y))
    for target in (y, np.stack([y, y[::-1] ** 2], axis=1)):
        for intercept in (True, False):
            ours = sklearn.LinearRegression(fit_intercept=intercept).fit(x, target, weight)
            theirs = linear_model.LinearRegression(fit_intercept=intercept).fit(x, target, weight)
            np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8)
            assert ours.rank_ == theirs.rank_
    fitted = sklearn.LinearRegression().fit(x, 3.0 * x[:, 0] - 1.0)
    assert fitted.score(x, 3.0 * x[:, 0] - 1.0) == pytest.approx(1.0)


def test_ridge_of_dependent_features_has_minimal_norm(diabetes):
    x, y = diabetes
    x = np.hstack([x, x[:, :2]])
    ours = sklearn.Ridge(0.0).fit(x, y)
    centered = x - x.mean(axis=0)
    want = np.linalg.lstsq(centered, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(ours.coef_, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.7, 0.0])
def test_elastic_net_agrees_with_scikit_learn(diabetes, share):
    x, y = diabetes
    ours = sklearn.ElasticNet(0.02, l1_ratio=share, tol=1e-13, max_iter=100_000).fit(x, y)
    if share:
        theirs = linear_model.ElasticNet(0.02, l1_ratio=share, tol=1e-13, max_iter=100_000)
    else:
        theirs = linear_model.Ridge(0.02 * len(y))
    theirs.fit(x, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)


def test_lasso_satisfies_the_optimality_conditions(diabetes):
    """The Karush-Kuhn-Tucker conditions at the minimum."""
    x, y = diabetes
    model = sklearn.Lasso(0.5, tol=1e-12).fit(x, y)
    slope = x.T @ (y - model.predict(x)) / len(y)
    chosen = model.coef_ != 0
    assert 0 < chosen.sum() < x.shape[1]
    np.testing.assert_allclose(slope[chosen], 0.5 * np.sign(model.coef_[chosen]), rtol=1e-4)
    assert np.all(np.abs(slope[~chosen]) <= 0.5 + 1e-6)
    assert 0 <= model.dual_gap_ < 1e-6


def test_missing_convergence_warns(diabetes):
    with pytest.warns(UserWarning, match="did not converge: the duality gap"):
        sklearn.Lasso(1e-3, max_iter=2).fit(*diabetes)


# ---- classes -----------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression_agrees_with_scikit_learn(iris, classes, intercept):
    x, y = iris
    x, y = x[y < classes], y[y < classes]
    ours = sklearn.LogisticRegression(2.0, fit_intercept=intercept, tol=1e-9).fit(x, y)
    theirs = linear_model.LogisticRegression(
        C=2.0, fit_intercept=intercept, tol=1e-12, max_iter=10_000, solver="newton-cg"
    ).fit(x, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=2e-5)
    assert np.array_equal(ours.predict(x), theirs.predict(x))


def test_probabilities_do_not_underflow():
    model = sklearn.LogisticRegression(np.inf, max_iter=5)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    model.coef_, model.intercept_ = np.array([[1000.0]]), np.array([0.0])
    logs = model.predict_log_proba([[-2.0], [2.0]])
    np.testing.assert_allclose(logs, [[0.0, -2000.0], [-2000.0, 0.0]], atol=1e-300)


def test_perceptron_in_a_pipeline_and_a_grid_search(iris):
    x, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pipe = make_pipeline(
        StandardScaler(),
        sklearn.MLPClassifier(learning_rate_init=0.02, max_iter=60, tol=0.0, random_state=0),
    )
    search = GridSearchCV(pipe, {"mlpclassifier__hidden_layer_sizes": [(8,), (4, 4)]}, cv=2)
    with pytest.warns(UserWarning, match="did not converge"):
        search.fit(x, names)
    assert search.score(x, names) > 0.9
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(x), search.predict(x))


def test_perceptron_is_reproducible_from_the_seed(diabetes, monkeypatch):
    x, y = diabetes[0] * 10, diabetes[1] / 100

    def trained(worth):
        monkeypatch.setattr("wengert.compat.sklearn.mlp.MIN_COMPILED_STEPS", worth)
        model = sklearn.MLPRegressor(
            (6,), "tanh", batch_size=100, max_iter=6, tol=0.0, n_iter_no_change=100, random_state=3
        )
        with pytest.warns(UserWarning, match="did not converge"):
            return model.fit(x, y).predict(x)

    eager, same, compiled = trained(10**9), trained(10**9), trained(3)
    assert np.array_equal(eager, same)
    np.testing.assert_allclose(compiled, eager, rtol=1e-9)


# ---- Gaussian processes ------------------------------------------------------------------------

THEIRS = {
    "rbf": lambda s: kernels.RBF(s),
    "matern12": lambda s: kernels.Matern(s, nu=0.5),
    "matern32": lambda s: kernels.Matern(s, nu=1.5),
    "matern52": lambda s: kernels.Matern(s, nu=2.5),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_process_with_given_scales_agrees_with_scikit_learn(rng, kernel):
    x, y, z = rng.normal(size=(15, 2)), rng.normal(size=15), rng.normal(size=(4, 2))
    ours = sklearn.GaussianProcessRegressor(
        kernel, length_scale=[0.7, 1.9], noise=0.1, optimize=False
    ).fit(x, y)
    theirs = gaussian_process.GaussianProcessRegressor(
        THEIRS[kernel]([0.7, 1.9]), alpha=0.1, optimizer=None
    ).fit(x, y)
    for options in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(ours.predict(z, **options), theirs.predict(z, **options), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_)


def test_process_maximizes_the_likelihood(iris):
    x, y = iris[0][::3, :3], iris[0][::3, 3]
    ours = sklearn.GaussianProcessRegressor(normalize_y=True).fit(x, y)
    kernel = kernels.ConstantKernel(1.0) * kernels.RBF(np.ones(3)) + kernels.WhiteKernel(1e-2)
    theirs = gaussian_process.GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
    assert ours.log_marginal_likelihood_ >= theirs.log_marginal_likelihood_value_ - 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_where_samples_coincide(kernel):
    x = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.5]])

    def f(scales):
        return np.sum(KERNELS[kernel](squared_distances(x, x, np.exp(scales))))

    wg.check_grads(f, (np.array([0.1, -0.2]),), order=1)
    assert np.all(np.isfinite(wg.grad(f)(np.zeros(2))))


def test_samples_from_the_posterior():
    model = sklearn.GaussianProcessRegressor(noise=1e-6, optimize=False)
    model.fit([[0.0], [1.0]], [2.0, -1.0])
    drawn = model.sample_y([[0.0], [1.0], [9.0]], 500)
    np.testing.assert_allclose(drawn[:2].mean(axis=1), [2.0, -1.0], atol=1e-2)
    assert drawn[2].std() == pytest.approx(1.0, rel=0.15)


# ---- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: sklearn.Ridge(-1.0), "alpha must be at least 0"),
        (lambda: sklearn.ElasticNet(l1_ratio=2.0), "from 0 to 1"),
        (lambda: sklearn.GaussianProcessRegressor("cubic"), "one of"),
        (lambda: sklearn.GaussianProcessRegressor(length_scale=0.0), "must be positive"),
        (lambda: sklearn.GaussianProcessRegressor(noise=0.0), "larger than 0"),
        (lambda: sklearn.MLPRegressor(activation="step"), "one of"),
        (lambda: sklearn.MLPRegressor((0,)), "must be at least 1"),
        (lambda: sklearn.MLPRegressor(learning_rate_init=0.0), "larger than 0"),
    ],
)
def test_options_out_of_range(make, what):
    with pytest.raises(errors.ArgumentError, match=what):
        make().fit([[0.0], [1.0]], [0.0, 1.0])


def test_classifiers_need_two_classes():
    for make in (sklearn.LogisticRegression, sklearn.MLPClassifier):
        with pytest.raises(errors.ArgumentError, match="given one class, "):
            make().fit([[0.0], [1.0]], [1, 1])
