"""Estimators with scikit-learn's interface.

linear_model         LinearRegression, Ridge, Lasso, ElasticNet
logistic_regression  LogisticRegression
mlp                  MLPClassifier, MLPRegressor
gaussian_process     GaussianProcessRegressor; covariance functions of Gaussian processes
validation           validation of inputs; the only module that imports scikit-learn

They require scikit-learn (the extra `learn`), use its parameter names and pass its estimator
checks.  They are fitted with exact derivatives and compiled code.
"""

from wengert._engine.core.lazy_import import public_dir

from .gaussian_process import GaussianProcessRegressor
from .linear_model import ElasticNet, Lasso, LinearRegression, Ridge
from .logistic_regression import LogisticRegression
from .mlp import MLPClassifier, MLPRegressor

__all__ = [
    "ElasticNet",
    "GaussianProcessRegressor",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "MLPRegressor",
    "Ridge",
]

__dir__ = public_dir(__name__)
